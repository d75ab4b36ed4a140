/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/internal.h"

#include "base/alloc.h"
#include "base/units.h"
#include "reports/out.h"
#include "sim/scenario/scenario.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct kvc_cli_option kvc_cli_common[] = {
    {"json", NULL, NULL, "one JSON object on stdout and nothing else"},
    {"quiet", NULL, NULL, "no notes and no progress on stderr, only errors"},
    {"progress", "WHEN", "auto", "show progress on stderr: auto (on a terminal), always or never"},
    {"seed", "N", "0", "seed of all random choices"},
    {"threads", "N", "all cores", "threads to use at most; results do not depend on it"},
    {"version", NULL, NULL, "print the version"},
    {"help", NULL, NULL, "print this help"},
    {NULL, NULL, NULL, NULL},
};

/* ---- finding options ---- */

static const struct kvc_cli_option *find_in(const struct kvc_cli_option *options, const char *name)
{
    for (; options && options->name; options++) {
        if (kvc_name_equal(options->name, name))
            return options;
    }
    return NULL;
}

static size_t list_options(const struct kvc_cli_command *command, const char **names)
{
    size_t n = 0, n_keys = 0;
    const struct kvc_scenario_key *keys =
        command->scenario_keys ? kvc_scenario_keys(&n_keys) : NULL;
    for (const struct kvc_cli_option *o = command->options; o && o->name; o++, n++) {
        if (names)
            names[n] = o->name;
    }
    for (const struct kvc_cli_option *o = kvc_cli_common; o->name; o++, n++) {
        if (names)
            names[n] = o->name;
    }
    for (size_t i = 0; i < n_keys; i++) {
        if (names)
            names[n] = keys[i].name;
        n++;
        if (!keys[i].flag)
            continue;
        if (names)
            names[n] = keys[i].flag;
        n++;
    }
    if (names)
        names[n] = NULL;
    return n;
}

static int unknown_option(const struct kvc_cli *cli, const char *name)
{
    const char **names = kvc_calloc(list_options(cli->command, NULL) + 1, sizeof(*names));
    const char *nearest = NULL;
    int rc;
    if (names) {
        list_options(cli->command, names);
        nearest = kvc_name_nearest(name, names);
    }
    if (nearest)
        rc = kvc_cli_usage(cli, "unknown option --%s; did you mean --%s?", name, nearest);
    else
        rc = kvc_cli_usage(cli, "unknown option --%s", name);
    kvc_free(names);
    return rc;
}

/* ---- parsing ---- */

struct matched {
    const char *name;
    bool takes_value, scenario_key;
    const char *maybe; /* "[WORD]": the only value, and it may be left out */
};

static bool match(const struct kvc_cli *cli, const char *name, struct matched *out)
{
    const struct kvc_cli_option *o = find_in(cli->command->options, name);
    if (!o)
        o = find_in(kvc_cli_common, name);
    if (o) {
        bool maybe = o->arg && o->arg[0] == '[';
        *out = (struct matched){o->name, o->arg && !maybe, false, maybe ? o->arg : NULL};
        return true;
    }
    const struct kvc_scenario_key *key =
        cli->command->scenario_keys ? kvc_scenario_key_find(name) : NULL;
    /* whole tiers and other groups may be set at once ("--tiers.dram null") */
    if (!key && cli->command->scenario_keys && kvc_scenario_key_group(name)) {
        *out = (struct matched){name, true, true, NULL};
        return true;
    }
    if (key)
        *out = (struct matched){key->name, true, true, NULL};
    return key != NULL;
}

static void keep(struct kvc_cli *cli, const struct matched *m, const char *value)
{
    cli->given[cli->n_given++] = (struct kvc_cli_given){m->name, value, m->scenario_key};
}

static bool is_maybe(const struct matched *m, const char *word)
{
    size_t n = m->maybe ? strlen(m->maybe) - 2 : 0;
    return n && strlen(word) == n && strncmp(word, m->maybe + 1, n) == 0;
}

/* The word at *i begins with "--". Its copy is cut at '=' so that names end there. */
static int parse_long(struct kvc_cli *cli, int n, char **words, int *i)
{
    char *name = words[*i] + 2, *value = strchr(name, '=');
    struct matched m;
    if (value)
        *value++ = '\0';
    if (!match(cli, name, &m))
        return unknown_option(cli, name);
    if (m.maybe && !value && *i + 1 < n && is_maybe(&m, words[*i + 1]))
        value = words[++*i];
    if (!m.takes_value && value && !is_maybe(&m, value))
        return m.maybe ? kvc_cli_usage(cli, "--%s %s: --%s %s is expected", name, value,
                                       name, m.maybe)
                       : kvc_cli_usage(cli, "--%s takes no value", name);
    if (m.takes_value && !value) {
        if (*i + 1 >= n || strncmp(words[*i + 1], "--", 2) == 0)
            return kvc_cli_usage(cli, "--%s needs a value", name);
        value = words[++*i];
    }
    keep(cli, &m, value);
    return KVC_EXIT_OK;
}

static int parse_letter(struct kvc_cli *cli, int n, char **words, int *i)
{
    char letter[2] = {words[*i][1], '\0'};
    const char *rest = words[*i] + 2;
    struct matched m;
    if (letter[0] == 'h' && !*rest && !find_in(cli->command->options, "h")) {
        keep(cli, &(struct matched){"help", false, false, NULL}, NULL);
        return KVC_EXIT_OK;
    }
    const struct kvc_cli_option *o = find_in(cli->command->options, letter);
    if (!o)
        return kvc_cli_usage(cli, "unknown option -%s", words[*i] + 1);
    m = (struct matched){o->name, o->arg != NULL, false, NULL};
    if (!m.takes_value && *rest)
        return kvc_cli_usage(cli, "-%s takes no value", letter);
    if (m.takes_value && !*rest) {
        if (*i + 1 >= n)
            return kvc_cli_usage(cli, "-%s needs a value", letter);
        rest = words[++*i];
    }
    keep(cli, &m, m.takes_value ? rest : NULL);
    return KVC_EXIT_OK;
}

static int read_number(const struct kvc_cli *cli, const char *name, uint64_t min, uint64_t max,
                       uint64_t *out)
{
    const char *text = kvc_cli_value(cli, name);
    uint64_t v;
    if (!text)
        return KVC_EXIT_OK;
    if (kvc_parse_u64(text, name, &v, NULL) != KVC_OK || v < min || v > max)
        return kvc_cli_usage(cli, "--%s %s: a whole number from %" PRIu64 " to %" PRIu64
                             " is expected", name, text, min, max);
    *out = v;
    return KVC_EXIT_OK;
}

static int read_common(struct kvc_cli *cli)
{
    const char *when = kvc_cli_value(cli, "progress");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = cores > 0 ? (uint64_t)cores : 1;
    int rc;
    cli->json = kvc_cli_flag(cli, "json");
    cli->quiet = kvc_cli_flag(cli, "quiet");
    cli->help = kvc_cli_flag(cli, "help");
    cli->version = kvc_cli_flag(cli, "version");
    if (when && strcmp(when, "auto") && strcmp(when, "always") && strcmp(when, "never"))
        return kvc_cli_usage(cli, "--progress %s: auto, always or never is expected", when);
    cli->progress_mode = !when || !strcmp(when, "auto") ? 0 : !strcmp(when, "always") ? 1 : -1;
    if ((rc = read_number(cli, "seed", 0, UINT64_MAX, &cli->seed)) != KVC_EXIT_OK)
        return rc;
    if ((rc = read_number(cli, "threads", 1, 4096, &threads)) != KVC_EXIT_OK)
        return rc;
    cli->threads = (uint32_t)threads;
    return KVC_EXIT_OK;
}

int kvc_cli_parse(struct kvc_cli *cli, int n, char **words)
{
    bool only_arguments = false;
    int rc = KVC_EXIT_OK;
    size_t room = n > 0 ? (size_t)n : 1;
    cli->arguments = kvc_calloc(room, sizeof(*cli->arguments));
    cli->given = kvc_calloc(room, sizeof(*cli->given));
    if (!cli->arguments || !cli->given) {
        fprintf(stderr, "kvcast: out of memory\n");
        return KVC_EXIT_FAILED;
    }
    for (int i = 0; i < n && rc == KVC_EXIT_OK; i++) {
        char *w = words[i];
        if (only_arguments || w[0] != '-' || !w[1])
            cli->arguments[cli->n_arguments++] = w;
        else if (strcmp(w, "--") == 0)
            only_arguments = true;
        else if (w[1] == '-')
            rc = parse_long(cli, n, words, &i);
        else
            rc = parse_letter(cli, n, words, &i);
    }
    if (rc == KVC_EXIT_OK)
        rc = read_common(cli);
    return rc == KVC_EXIT_OK && !cli->help ? kvc_cli_check_outputs(cli) : rc;
}

void kvc_cli_clear(struct kvc_cli *cli)
{
    kvc_cli_progress_clear(cli);
    kvc_free(cli->arguments);
    kvc_free(cli->given);
}

/* ---- what a subcommand asks ---- */

size_t kvc_cli_count(const struct kvc_cli *cli)
{
    return cli->n_arguments;
}

const char *kvc_cli_argument(const struct kvc_cli *cli, size_t i)
{
    return i < cli->n_arguments ? cli->arguments[i] : NULL;
}

static const struct kvc_cli_given *last_given(const struct kvc_cli *cli, const char *name)
{
    for (size_t i = cli->n_given; i-- > 0;) {
        if (!cli->given[i].scenario_key && strcmp(cli->given[i].name, name) == 0)
            return &cli->given[i];
    }
    return NULL;
}

const char *kvc_cli_value(const struct kvc_cli *cli, const char *name)
{
    const struct kvc_cli_given *g = last_given(cli, name);
    return g ? g->value : NULL;
}

const char *kvc_cli_nth(const struct kvc_cli *cli, const char *name, size_t i)
{
    for (size_t k = 0; k < cli->n_given; k++)
        if (!cli->given[k].scenario_key && strcmp(cli->given[k].name, name) == 0 && i-- == 0)
            return cli->given[k].value;
    return NULL;
}

bool kvc_cli_flag(const struct kvc_cli *cli, const char *name)
{
    return last_given(cli, name) != NULL;
}

bool kvc_cli_json(const struct kvc_cli *cli)
{
    return cli->json;
}

bool kvc_cli_quiet(const struct kvc_cli *cli)
{
    return cli->quiet;
}

uint64_t kvc_cli_seed(const struct kvc_cli *cli)
{
    return cli->seed;
}

uint32_t kvc_cli_threads(const struct kvc_cli *cli)
{
    return cli->threads;
}

enum kvc_status kvc_cli_apply_scenario(const struct kvc_cli *cli, struct kvc_scenario *scenario,
                                       struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    for (size_t i = 0; i < cli->n_given && st == KVC_OK; i++) {
        if (cli->given[i].scenario_key)
            st = kvc_scenario_set(scenario, cli->given[i].name, cli->given[i].value, err);
    }
    if (st == KVC_OK && kvc_cli_flag(cli, "seed"))
        st = kvc_scenario_set(scenario, "seed", kvc_cli_value(cli, "seed"), err);
    if (st == KVC_ERR_INPUT || st == KVC_ERR_LIMIT || st == KVC_ERR_UNSUPPORTED)
        st = err ? (err->status = KVC_ERR_USAGE) : KVC_ERR_USAGE; /* whatever key it names */
    return st;
}

void kvc_cli_scenario_file(struct kvc_cli *cli, const char *path)
{
    cli->scenario_file = path;
}

static bool is_scenario_key(const struct kvc_cli *cli, const char *field)
{
    return cli && cli->command && cli->command->scenario_keys && *field &&
           (kvc_scenario_key_find(field) || kvc_scenario_key_group(field));
}

/* By itself, or within a group given at once. */
static bool gives(const struct kvc_cli *cli, const char *key)
{
    bool found = false;
    for (size_t i = 0; i < cli->n_given && !found; i++) {
        size_t n = strlen(cli->given[i].name);
        found = cli->given[i].scenario_key &&
                (kvc_name_equal(cli->given[i].name, key) ||
                 (strncmp(cli->given[i].name, key, n) == 0 && key[n] == '.'));
    }
    return found;
}

/* ---- messages ---- */

/* A scenario's key that is refused is bad input where a file holds it, else wrong usage. */
static int exit_code(const struct kvc_cli *cli, const struct kvc_error *err)
{
    bool key = is_scenario_key(cli, err->field);
    switch (err->status) {
    case KVC_OK:
        return KVC_EXIT_OK;
    case KVC_ERR_USAGE:
    case KVC_ERR_INPUT:
    case KVC_ERR_LIMIT:
    case KVC_ERR_UNSUPPORTED:
        return (key ? !err->file[0] : err->status == KVC_ERR_USAGE) ? KVC_EXIT_USAGE
                                                                    : KVC_EXIT_INPUT;
    default:
        return KVC_EXIT_FAILED;
    }
}

int kvc_cli_fail(const struct kvc_cli *cli, const struct kvc_error *err)
{
    struct kvc_error placed = *err;
    char text[1024];
    if (cli && cli->progress.on_screen)
        fputs("\r\033[K", stderr);
    if (!err->file[0] && is_scenario_key(cli, err->field) && cli->scenario_file &&
        !gives(cli, err->field))
        snprintf(placed.file, sizeof(placed.file), "%s", cli->scenario_file);
    kvc_error_format(&placed, text, sizeof(text));
    kvc_plain(text);
    fprintf(stderr, "kvcast: %s\n", text);
    return exit_code(cli, &placed);
}

void kvc_cli_note(const struct kvc_cli *cli, const char *fmt, ...)
{
    va_list args;
    if (cli->quiet)
        return;
    fputs("kvcast: note: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

int kvc_cli_usage(const struct kvc_cli *cli, const char *fmt, ...)
{
    va_list args;
    const char *name = cli && cli->command ? cli->command->name : NULL;
    fputs("kvcast: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\n'kvcast %s%s--help' shows what there is\n", name ? name : "",
            name ? " " : "");
    return KVC_EXIT_USAGE;
}

static void note_rows(uint64_t rows, const char *what)
{
    if (rows)
        fprintf(stderr, "kvcast: note: %s: %s\n", kvc_fmt_some(rows, "row").s, what);
}

void kvc_cli_import_report(const struct kvc_cli *cli, const struct kvc_import_report *r)
{
    char text[1024];
    if (cli->quiet || r->stored) /* told when it was imported */
        return;
    /* where no row is left the first one's error is the command's */
    for (uint32_t i = r->accepted == 0 && r->bad ? 1 : 0; i < r->n_shown; i++) {
        kvc_error_format(&r->shown[i], text, sizeof(text));
        fprintf(stderr, "kvcast: skipped: %s\n", text);
    }
    if (r->bad > r->n_shown)
        fprintf(stderr, "kvcast: skipped: .. and %" PRIu64 " more\n", r->bad - r->n_shown);
    if (r->bad)
        fprintf(stderr, "kvcast: %" PRIu64 " of %" PRIu64 " rows could not be used "
                "(--strict stops at the first)\n", r->bad, r->rows);
    if (r->without_ids < r->accepted)
        note_rows(r->without_ids, "nothing about shared prefixes");
    note_rows(r->repeated_ids, "a block id twice, which a hash of a prefix never has: told apart "
                               "by what comes before");
    note_rows(r->gateway_answered, "left out, as the gateway's response cache answered");
    note_rows(r->inversions, "earlier than the row before; sorted by time, equal times in the "
                             "order of the log");
    if (r->cached_rows)
        fprintf(stderr,
                "kvcast: note: %s: %" PRIu64 " of %" PRIu64 " prompt tokens stated as cached\n",
                kvc_fmt_some(r->cached_rows, "row").s, r->cached_tokens, r->cached_of_tokens);
    if (r->spend_rows)
        fprintf(stderr, "kvcast: note: %s: stated costs of $%.6g in all\n",
                kvc_fmt_some(r->spend_rows, "row").s, r->spend_usd);
    if (r->failed || r->cancelled)
        fprintf(stderr, "kvcast: note: %s failed, %" PRIu64 " cancelled\n",
                kvc_fmt_some(r->failed, "request").s, r->cancelled);
    for (uint32_t i = 0; i < r->n_tallies; i++)
        note_rows(r->tallies[i].rows, r->tallies[i].text);
    for (uint32_t i = 0; i < r->n_notes; i++)
        fprintf(stderr, "kvcast: note: %s\n", r->notes[i]);
}

void kvc_cli_forgotten(const struct kvc_cli *cli, const struct kvc_trace_stats *s)
{
    if (!cli->quiet && s->sample.weight)
        fprintf(stderr, "kvcast: warning: the trace holds samples of one in %" PRIu32 " subtrees "
                "of prompts: %" PRIu64 " of %" PRIu64 " requests, in part or whole, of %" PRIu64
                " input tokens; counts and times of it are not the log's, only rates that ceiling "
                "gives with a band are\n", s->sample.weight, s->requests, s->sample.requests,
                s->sample.input_tokens);
    if (cli->quiet || !s->forgotten_blocks)
        return;
    fprintf(stderr, "kvcast: warning: prefixes untouched for %.6g h were forgotten at import (%"
            PRIu64 " blocks); up to %" PRIu64 " of %" PRIu64 " input tokens (%.2f %%) count as new "
            "although an endless cache might have known them: bounds may be too low by so much\n",
            (double)s->forget_ns / 3.6e12, s->forgotten_blocks, s->unjudged_tokens,
            s->input_tokens, s->input_tokens ? 100.0 * (double)s->unjudged_tokens /
                                                   (double)s->input_tokens : 0);
}
