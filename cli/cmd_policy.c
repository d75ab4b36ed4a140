/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/policy/parts.h"
#include "cli/templates.h"
#include "cli/trace_args.h"
#include "policies/plugins/plugin.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/outfile.h"
#include "base/text.h"

static const struct kvc_cli_option options[] = {
    {"kind", "KIND", "eviction", "new: eviction, admission, routing or ordering"},
    {"o", "DIR", "the name", "new: the folder it goes to, made where it is missing"},
    {"limit", "TIME", "30s", "check: CPU time that each of the checks may take"},
    {NULL, NULL, NULL, NULL},
};

/* ---- new ---- */

static const struct kvc_blob *template_of(const char *name)
{
    const struct kvc_blob *b = kvc_cli_templates;
    while (b->name && strcmp(b->name, name) != 0)
        b++;
    return b->name ? b : NULL;
}

/* A template with every @NAME@ replaced, as DIR/file. An existing file stays as it is: an error. */
static enum kvc_status write_file(const char *template, const char *name, const char *folder,
                                  const char *file, struct kvc_error *err)
{
    static const char mark[] = "@NAME@";
    const char *from = (const char *)template_of(template)->data, *at;
    struct kvc_text text = {0}, path = {0};
    struct stat there;
    enum kvc_status st = KVC_OK;
    kvc_text_addf(&path, "%s/%s", folder, file);
    for (; (at = strstr(from, mark)) != NULL; from = at + sizeof(mark) - 1) {
        kvc_text_addn(&text, from, (size_t)(at - from));
        kvc_text_add(&text, name);
    }
    kvc_text_add(&text, from);
    if (text.failed || path.failed)
        st = kvc_fail_nomem(err);
    else if (stat(path.buf, &there) == 0)
        st = kvc_fail_at(err, KVC_ERR_USAGE, path.buf, 0, NULL,
                         "is there already and stays as it is; choose another name or -o");
    else
        st = kvc_outfile_put(path.buf, text.buf, text.len, err);
    kvc_text_clear(&text);
    kvc_text_clear(&path);
    return st;
}

static enum kvc_status make_folder(const char *path, struct kvc_error *err)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST
               ? KVC_OK
               : kvc_fail_errno(err, path, "making the folder");
}

static enum kvc_status write_all(const char *name, const char *kind, const char *folder,
                                 struct kvc_error *err)
{
    char source[64], test[64], template[64];
    struct kvc_text header = {0};
    snprintf(source, sizeof(source), "%s.c", name);
    snprintf(template, sizeof(template), "%s.c", kind);
    snprintf(test, sizeof(test), "test_%s.sh", kind);
    kvc_text_addf(&header, "%s/kvcast", folder);
    enum kvc_status st = header.failed ? kvc_fail_nomem(err) : make_folder(folder, err);
    if (st == KVC_OK)
        st = write_file(template, name, folder, source, err);
    if (st == KVC_OK)
        st = write_file("Makefile", name, folder, "Makefile", err);
    if (st == KVC_OK)
        st = write_file(test, name, folder, "test.sh", err);
    if (st == KVC_OK)
        st = make_folder(header.buf, err);
    if (st == KVC_OK)
        st = write_file("policy.h", name, header.buf, "policy.h", err);
    kvc_text_clear(&header);
    return st;
}

static bool is_kind(const char *word)
{
    bool found = false;
    for (uint32_t kind = KVC_POLICY_EVICTION; kvc_policy_kind_name(kind); kind++)
        found = found || strcmp(kvc_policy_kind_name(kind), word) == 0;
    return found;
}

static int new_policy(struct kvc_cli *cli, const char *name)
{
    const char *kind = kvc_cli_value(cli, "kind"), *folder = kvc_cli_value(cli, "o");
    struct kvc_error err = {0};
    kind = kind ? kind : "eviction";
    folder = folder ? folder : name;
    if (!is_kind(kind))
        return kvc_cli_usage(cli,
                             "--kind %s: eviction, admission, routing or ordering is expected",
                             kind);
    if (!islower((unsigned char)name[0]) || strlen(name) > 30 ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name))
        return kvc_cli_usage(cli, "'%s': a name is of small letters, digits and '-', begins with a "
                                  "letter and has 30 characters at most", name);
    if (kvc_policy_built_in(name))
        return kvc_cli_usage(cli, "'%s' is a built-in policy; choose another name", name);
    if (write_all(name, kind, folder, &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (!kvc_cli_quiet(cli))
        fprintf(stderr, "kvcast: %s/%s.c, a policy to change into your own; 'make test' there "
                        "builds and judges it\n", folder, name);
    return KVC_EXIT_OK;
}

/* ---- list and check ---- */

static int list(struct kvc_cli *cli, const char *path)
{
    struct kvc_error err = {0};
    struct kvc_plugin *plugin = NULL;
    if (path && !kvc_plugin_is(path))
        return kvc_cli_usage(cli, "'%s' is no path of a plug-in: it holds a '/' or ends in .so",
                             path);
    enum kvc_status st = path ? kvc_plugin_open(&plugin, path, 0, &err) : KVC_OK;
    if (st == KVC_OK && kvc_cli_json(cli))
        st = kvc_policy_list_json(plugin, &err);
    else if (st == KVC_OK)
        kvc_policy_list_text(plugin);
    kvc_plugin_close(plugin);
    return st == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}

static int check(struct kvc_cli *cli, const char *spec)
{
    struct kvc_policy_check found;
    struct kvc_error err = {0};
    const char *limit = kvc_cli_value(cli, "limit");
    uint64_t limit_ns = 0;
    if (limit && (kvc_parse_ns(limit, "--limit", &limit_ns, &err) != KVC_OK || !limit_ns))
        return kvc_cli_usage(cli, "--limit %s: %s", limit,
                             err.text[0] ? err.text : "a time above 0 is expected");
    if (!kvc_plugin_is(spec))
        return kvc_cli_usage(cli, "'%s' is no path of a plug-in: it holds a '/' or ends in .so",
                             spec);
    enum kvc_status st = kvc_policy_check(spec, NULL, (double)limit_ns / 1e9, &found, &err);
    if (st == KVC_OK && kvc_cli_json(cli))
        st = kvc_policy_check_json(&found, &err);
    else if (st == KVC_OK)
        kvc_policy_check_text(&found);
    if (st != KVC_OK)
        return kvc_cli_fail(cli, &err);
    return found.passed ? KVC_EXIT_OK : found.kind ? KVC_EXIT_FAILED : KVC_EXIT_INPUT;
}

static int policy_main(struct kvc_cli *cli)
{
    const char *action = kvc_cli_argument(cli, 0), *what = kvc_cli_argument(cli, 1);
    if (!action)
        return kvc_cli_usage(cli, "say what to do: list, new or check");
    bool lists = strcmp(action, "list") == 0;
    if (!lists && strcmp(action, "new") != 0 && strcmp(action, "check") != 0)
        return kvc_cli_usage(cli,
                             "'%s' is no part of kvcast policy: list, new or check is expected",
                             action);
    if (kvc_cli_count(cli) > 2)
        return kvc_cli_usage(cli, "'%s' is one word too many", kvc_cli_argument(cli, 2));
    if (lists)
        return list(cli, what);
    if (!what)
        return kvc_cli_usage(cli, strcmp(action, "new") == 0 ? "give the new policy a name"
                                                             : "give the path of a plug-in");
    return strcmp(action, "new") == 0 ? new_policy(cli, what) : check(cli, what);
}

const struct kvc_cli_command kvc_cmd_policy = {
    .name = "policy",
    .arguments = "list [PATH.so] | new NAME | check PATH.so[:OPTIONS]",
    .summary = "list policies, begin one of your own, and judge it",
    .description =
        "list shows every policy with its options, and where it is from, or a plug-in alone. "
        "new writes a policy in C "
        "that compiles as it is, a Makefile, a test and the header it needs. check runs a plug-in "
        "in processes of their own: whether it keeps the rules of kvcast/policy.h, whether the "
        "hits it gives are right and repeat, what it costs beside lru, and how far from the "
        "optimum it stays on bundled workloads; it exits with 1 when a check fails and with 3 when "
        "the file is no plug-in. docs/plugins.md takes a newcomer through all of it.",
    .options = options,
    .run = policy_main,
};
