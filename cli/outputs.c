/* SPDX-License-Identifier: Apache-2.0
 * Before anything is done: whether what a command writes would overwrite what else it writes or
 * what its options read. What its arguments name it looks at itself, as it knows what they are. */
#include "cli/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool kvc_cli_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           S_ISREG(x.st_mode);
}

static bool is_stdout(const char *path)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return kvc_cli_same_file(path, "/dev/stdout");
}

static bool is_output(const struct kvc_cli *cli, const char *name)
{
    const char *const *o = cli->command->outputs;
    while (*o && strcmp(*o, name) != 0)
        o++;
    return *o != NULL;
}

/* Whether the file is one that a value names: a path, or one of a list of paths with options. */
static bool reads(const char *value, const char *path)
{
    char part[1024];
    if (kvc_cli_same_file(value, path))
        return true;
    for (const char *p = value; *p;) {
        size_t n = strcspn(p, ",+:");
        snprintf(part, sizeof(part), "%.*s", (int)(n < sizeof(part) ? n : 0), p);
        if (kvc_cli_same_file(part, path))
            return true;
        p += n + (p[n] != '\0');
    }
    return false;
}

static const char *dashes(const char *name)
{
    return name[1] ? "--" : "-";
}

/* Against the other given options: each pair of outputs once. */
static int check_output(const struct kvc_cli *cli, size_t at)
{
    const struct kvc_cli_given *out = &cli->given[at];
    for (size_t i = 0; i < cli->n_given; i++) {
        const struct kvc_cli_given *g = &cli->given[i];
        if (i == at || !g->value || strcmp(g->name, out->name) == 0)
            continue;
        if (g->scenario_key || !is_output(cli, g->name)) {
            if (reads(g->value, out->value))
                return kvc_cli_usage(cli, "%s%s %s would overwrite what --%s reads; give another "
                                     "file", dashes(out->name), out->name, out->value, g->name);
        } else if (strcmp(g->value, out->value) == 0 || kvc_cli_same_file(g->value, out->value) ||
                   (is_stdout(g->value) && is_stdout(out->value))) {
            return kvc_cli_usage(cli, "%s%s and %s%s both want %s; give each a file",
                                 dashes(out->name), out->name, dashes(g->name), g->name, g->value);
        }
    }
    return KVC_EXIT_OK;
}

int kvc_cli_check_outputs(const struct kvc_cli *cli)
{
    int rc = KVC_EXIT_OK;
    for (size_t i = 0; cli->command->outputs && i < cli->n_given && rc == KVC_EXIT_OK; i++) {
        const struct kvc_cli_given *g = &cli->given[i];
        if (g->scenario_key || !g->value || !is_output(cli, g->name))
            continue;
        if (cli->json && strcmp(g->value, "-") != 0 && is_stdout(g->value))
            return kvc_cli_usage(cli, "--json and %s%s %s both want stdout; give a file",
                                 dashes(g->name), g->name, g->value);
        rc = check_output(cli, i);
    }
    return rc;
}
