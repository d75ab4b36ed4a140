/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cli/trace_args.h"
#include "cli/validate/headlines.h"
#include "cli/validate/prefix.h"
#include "cli/validate/requests.h"
#include "cli/validate/rows.h"
#include "studies/kernels/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kvc_cli_option options[] = {
    {"rows", "F.csv", NULL,
     "engine benchmark rows (columns as aiconfigurator's silicon_sample.csv), .zst and .gz too"},
    {"mode", "MODE", NULL, "agg or disagg: only rows of that kind of serving"},
    {"alike", NULL, NULL,
     "with --rows: leave aside what is published of how each row ran, take all as run alike"},
    {"kernels", NULL, NULL,
     "the files are tables of measured kernels (columns as aiconfigurator's), .zst and .gz too"},
    {"profile", "F", NULL, "predict from this profile instead of the program's own"},
    {"like", "GPU", NULL, "predict from that GPU's tables, as if this one had none"},
    {"tables", NULL, NULL, "a line per table (shape of head, kernel) instead of per dtype"},
    {"requests", "F", NULL,
     "what a served run measured of each request: JSON lines with queued_ts, first_token_ts and "
     "last_token_ts, or the CSV of replay --requests"},
    {"prefix", "F.csv", NULL,
     "TTFTs of one prefix by length and serving tier: columns tokens, tier (miss, hbm, dram or "
     "remote) and ttft_ms"},
    {"calibrate", NULL, NULL, "with --prefix: the first row sets front end and host of the engine"},
    {"calibrate-loads", NULL, NULL,
     "with --prefix: the shortest and the longest row of a tier set what its loads cost beside "
     "their copy, once and for each token, in place of engine.kv_load_time and "
     "engine.kv_load_token_time"},
    {"format", "NAME", "auto", "format of the trace that goes with --requests"},
    KVC_CLI_LOG_OPTIONS,
    {NULL, NULL, NULL, NULL},
};

static const char *verdict(const struct kvc_kernel_check *k)
{
    double target = k->borrowed ? 20 : kvc_kernel_target(k->family, k->key);

    return isnan(target) ? "-" : k->sum.mape <= target ? "met" : "missed";
}

static void print_text(const struct kvc_kernel_validation *v)
{
    const struct kvc_kernel_check *last = NULL;

    for (size_t i = 0; i < v->n; i++) {
        const struct kvc_kernel_check *k = &v->check[i];
        double target = k->borrowed ? 20 : kvc_kernel_target(k->family, k->key);
        if (!last || last->family != k->family || strcmp(last->from, k->from) != 0 ||
            strcmp(last->label.system, k->label.system) != 0 ||
            strcmp(last->label.backend, k->label.backend) != 0)
            printf("%s%s %s %s %s, tables of %s%s; claimed: %s\n"
                   "    rows  MAPE %%   P90 %%  bias %%  target\n",
                   last ? "\n" : "", k->label.system, k->family->name, k->label.backend,
                   k->label.version, k->from, k->borrowed ? " (borrowed)" : "", k->family->claim);
        last = k;
        printf("%8zu %7.2f %7.2f %7.2f", k->sum.rows, k->sum.mape, k->sum.p90, k->sum.bias);
        if (isnan(target))
            fputs("       -", stdout);
        else
            printf(" %3.0f %-6s", target, verdict(k));
        printf("  %s", k->key);
        if (k->outside)
            printf(" (%zu rows outside what was measured)", k->outside);
        putchar('\n');
    }
    for (size_t i = 0; i < v->n_excluded; i++)
        printf("%sexcluded %zu: %s\n", i || !v->n ? "" : "\n", v->excluded[i].rows,
               v->excluded[i].reason);
    if (v->rows)
        printf("\n%zu rows, %zu excluded: MAPE %.2f %%, P90 %.2f %%, bias %.2f %%\n", v->rows,
               v->rows_excluded, v->sum.mape, v->sum.p90, v->sum.bias);
    else
        printf("no row to score, %zu excluded\n", v->rows_excluded);
}

static void put_error(struct kvc_json *j, const struct kvc_kernel_error *e)
{
    kvc_json_double(j, "mape_percent", e->mape);
    kvc_json_double(j, "p90_ape_percent", e->p90);
    kvc_json_double(j, "bias_percent", e->bias);
}

static void put_check(struct kvc_json *j, const struct kvc_kernel_check *k)
{
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "system", k->label.system);
    kvc_json_string(j, "family", k->family->name);
    kvc_json_string(j, "backend", k->label.backend);
    kvc_json_string(j, "version", k->label.version);
    kvc_json_string(j, "table", k->key);
    kvc_json_string(j, "range", k->family->claim);
    kvc_json_string(j, "tables_of", k->from);
    kvc_json_bool(j, "borrowed", k->borrowed);
    kvc_json_u64(j, "rows", k->sum.rows);
    kvc_json_u64(j, "outside", k->outside);
    put_error(j, &k->sum);
    kvc_json_double(j, "target_percent",
                    k->borrowed ? 20 : kvc_kernel_target(k->family, k->key));
    kvc_json_string(j, "verdict", verdict(k));
    kvc_json_close(j);
}

static enum kvc_status print_json(const struct kvc_kernel_validation *v, struct kvc_error *err)
{
    struct kvc_json j;

    kvc_cli_json_begin(&j, "kvcast.validate.kernels.v1");
    kvc_json_u64(&j, "rows", v->rows);
    kvc_json_u64(&j, "excluded", v->rows_excluded);
    kvc_json_open_object(&j, "summary");
    put_error(&j, &v->sum);
    kvc_json_close(&j);
    kvc_json_open_array(&j, "tables");
    for (size_t i = 0; i < v->n; i++)
        put_check(&j, &v->check[i]);
    kvc_json_close(&j);
    kvc_json_open_array(&j, "excluded_by_reason");
    for (size_t i = 0; i < v->n_excluded; i++) {
        kvc_json_open_object(&j, NULL);
        kvc_json_string(&j, "reason", v->excluded[i].reason);
        kvc_json_u64(&j, "rows", v->excluded[i].rows);
        kvc_json_close(&j);
    }
    kvc_json_close(&j);
    return kvc_cli_json_print(&j, err);
}

/* ---- without files: what the program's tables state of themselves ---- */

#define STATED 1024

struct stated_list {
    struct kvc_kernel_stated *v;
    size_t n, cap;
    bool failed;
};

static void take_stated(void *user, const struct kvc_kernel_stated *stated)
{
    struct stated_list *l = user;

    if (!kvc_grow((void **)&l->v, &l->cap, l->n + 1, sizeof *l->v)) {
        l->failed = true;
        return;
    }
    l->v[l->n] = *stated;
    l->v[l->n++].version = NULL; /* of a store that goes away */
}

static int by_family(const void *a, const void *b)
{
    const struct kvc_kernel_stated *x = a, *y = b;
    int order = strcmp(x->family->name, y->family->name);

    order = order ? order : strcmp(x->dtype, y->dtype);
    order = order ? order : strcmp(x->gpu->id, y->gpu->id);
    return order ? order : strcmp(x->backend, y->backend);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median of random (or shape) over n entries; NAN where none has one. */
static double median(const struct kvc_kernel_stated *s, size_t n, bool shape)
{
    double v[STATED];
    size_t m = 0;

    for (size_t i = 0; i < n && m < STATED; i++) {
        double x = shape ? s[i].shape : s[i].random;
        if (!isnan(x))
            v[m++] = x;
    }
    qsort(v, m, sizeof *v, ascending);
    return m == 0 ? NAN : m % 2 ? v[m / 2] : (v[m / 2 - 1] + v[m / 2]) / 2;
}

static const char *number(char text[16], double v)
{
    if (isnan(v))
        return "-";
    snprintf(text, 16, "%.1f", v);
    return text;
}

static size_t same_dtype(const struct stated_list *l, size_t from)
{
    size_t to = from;

    while (to < l->n && l->v[to].family == l->v[from].family &&
           strcmp(l->v[to].dtype, l->v[from].dtype) == 0)
        to++;
    return to - from;
}

/* Markdown, so that docs/accuracy.md is this output. */
static void print_stated(const struct stated_list *l)
{
    char a[16], b[16], c[16], d[16];

    puts("Mean absolute errors in percent; of the first table, medians over files.\n");
    puts("| family, dtype | files | rows aside | shapes aside | at most | |\n"
         "|---|---|---|---|---|---|");
    for (size_t i = 0, n; i < l->n; i += n) {
        const struct kvc_kernel_stated *s = &l->v[i];
        double target = kvc_kernel_target(s->family, s->dtype), random, shape;
        n = same_dtype(l, i);
        random = median(s, n, false);
        shape = median(s, n, true);
        printf("| %s %s | %zu | %s | %s | %s | %s |\n", s->family->name, s->dtype, n,
               number(a, random), number(b, shape), number(c, target),
               isnan(target)                       ? ""
               : random > target || shape > target ? "missed"
                                                   : "met");
    }
    puts("\n| system | backend | family, dtype | rows | fitted | rows aside | shapes aside |\n"
         "|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < l->n; i++) {
        const struct kvc_kernel_stated *s = &l->v[i];
        printf("| %s | %s | %s %s | %zu | %s | %s | %s |\n", s->gpu->id, s->backend,
               s->family->name, s->dtype, s->rows, number(a, s->fitted), number(b, s->random),
               number(d, s->shape));
    }
}

static enum kvc_status stated_json(const struct stated_list *l, struct kvc_error *err)
{
    struct kvc_json j;

    kvc_cli_json_begin(&j, "kvcast.validate.kernels.v1");
    kvc_json_open_array(&j, "stated");
    for (size_t i = 0; i < l->n; i++) {
        const struct kvc_kernel_stated *s = &l->v[i];
        kvc_json_open_object(&j, NULL);
        kvc_json_string(&j, "system", s->gpu->id);
        kvc_json_string(&j, "backend", s->backend);
        kvc_json_string(&j, "family", s->family->name);
        kvc_json_string(&j, "dtype", s->dtype);
        kvc_json_u64(&j, "rows", s->rows);
        kvc_json_double(&j, "fitted_mape_percent", s->fitted);
        kvc_json_double(&j, "random_split_mape_percent", s->random);
        kvc_json_double(&j, "shape_split_mape_percent", s->shape);
        kvc_json_double(&j, "target_percent", kvc_kernel_target(s->family, s->dtype));
        kvc_json_close(&j);
    }
    kvc_json_close(&j);
    return kvc_cli_json_print(&j, err);
}

static int run_stated(struct kvc_cli *cli)
{
    struct stated_list l = {0};
    struct kvc_error err = {0};
    enum kvc_status status = kvc_kernel_stated(take_stated, &l, &err);

    if (status == KVC_OK && l.failed)
        status = kvc_fail_nomem(&err);
    if (status == KVC_OK && l.n)
        qsort(l.v, l.n, sizeof *l.v, by_family);
    if (status == KVC_OK && kvc_cli_json(cli))
        status = stated_json(&l, &err);
    else if (status == KVC_OK)
        print_stated(&l);
    kvc_free(l.v);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}

/* What is validated, and the options that only some of it takes: none is passed over in silence. */
enum task { HEADLINES = 1, ROWS = 2, KERNELS = 4, REQUESTS = 8, PREFIX = 16 };

static int task_of(struct kvc_cli *cli, enum task *task)
{
    static const struct { const char *option; enum task task; } tasks[] = {
        {"rows", ROWS}, {"kernels", KERNELS}, {"requests", REQUESTS}, {"prefix", PREFIX}};
    static const struct { const char *option; int with; } parts[] = {
        {"mode", ROWS}, {"alike", ROWS}, {"profile", KERNELS | REQUESTS | PREFIX},
        {"like", KERNELS}, {"tables", KERNELS}, {"calibrate", PREFIX},
        {"calibrate-loads", PREFIX}};
    const char *first = NULL;

    *task = HEADLINES;
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        if (!kvc_cli_flag(cli, tasks[i].option))
            continue;
        if (first)
            return kvc_cli_usage(cli, "--%s and --%s are two tasks: one at a time", first,
                                 tasks[i].option);
        first = tasks[i].option;
        *task = tasks[i].task;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (kvc_cli_flag(cli, parts[i].option) && !(parts[i].with & (int)*task))
            return first ? kvc_cli_usage(cli, "--%s does not go with --%s", parts[i].option, first)
                         : kvc_cli_usage(cli, "--%s says nothing of published figures",
                                         parts[i].option);
    return KVC_EXIT_OK;
}

static int run(struct kvc_cli *cli)
{
    struct kvc_kernel_validation v;
    struct kvc_error err = {0};
    const struct kvc_kernel_validate_options o = {kvc_cli_value(cli, "profile"),
                                                  kvc_cli_value(cli, "like"),
                                                  kvc_cli_flag(cli, "tables")};
    const char *paths[256];
    size_t n = kvc_cli_count(cli);
    enum kvc_status status = KVC_OK;

    enum task task;
    int rc = task_of(cli, &task);

    if (rc != KVC_EXIT_OK)
        return rc;
    if (task == ROWS)
        return kvc_validate_rows(cli);
    if (task == PREFIX)
        return kvc_validate_prefix(cli);
    if (task == REQUESTS)
        return kvc_validate_requests(cli);
    if (task == HEADLINES)
        return kvc_validate_headlines(cli);
    if (n == 0 && (o.profile || o.like || kvc_cli_flag(cli, "tables")))
        return kvc_cli_usage(cli, "no file of kernel rows named");
    if (n == 0)
        return run_stated(cli);
    if (n > sizeof paths / sizeof paths[0])
        return kvc_cli_usage(cli, "256 files at most");
    if (o.profile && o.like)
        return kvc_cli_usage(cli, "--profile and --like each name the tables to use");
    for (size_t i = 0; i < n; i++)
        paths[i] = kvc_cli_argument(cli, i);
    if (kvc_kernel_validate(&v, paths, n, &o, &err) != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (kvc_cli_json(cli))
        status = print_json(&v, &err);
    else
        print_text(&v);
    kvc_kernel_validation_clear(&v);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}

const struct kvc_cli_command kvc_cmd_validate = {
    .name = "validate",
    .arguments = "[ID..] | --rows F.csv | --kernels [FILE.csv..] | --requests F [TRACE] [--KEY "
                 "VALUE..] | --prefix F.csv [--KEY VALUE..]",
    .summary = "hold predictions against measured results",
    .description =
        "Alone: figures that others published, or those of the ids, each beside what kvcast says "
        "under the published conditions: met, order (within a factor of two), missed, or "
        "conditions unknown, with the reason.\n"
        "--rows: each measured run of a serving engine (closed loop: so many clients, prompts of "
        "isl and answers of osl tokens) beside its prediction, errors by group and whether the bar "
        "of the group is met. Known mistakes in labels are repaired, repeats of a measurement left "
        "out, and rows that can't be predicted counted with the reason. Lengths, budgets, slots "
        "and the like are those of the published scripts of the runs. Runs with attention data "
        "parallelism, disaggregated ones and those that guess tokens ahead are groups of their "
        "own.\n"
        "--kernels: "
        "predicts the time of each measured kernel row and sums up the errors, over the ranges in "
        "which the model claims to hold; rows outside them are counted by reason. A file is named "
        "system__family__backend__version.csv, or has columns of these names. A system whose "
        "backend was never measured takes the tables of the GPU most like it, as shares of its own "
        "peaks: its target is 20 %.\n"
        "Without a file: what the program's own tables state of themselves, the mean absolute "
        "error on a quarter of the rows and of the shapes kept aside while fitting, its median "
        "over files against the target, as Markdown.\n"
        "--requests: replays TRACE (the log itself where none is given: its prompts then share "
        "nothing known) on the engine that the scenario keys name, and holds mean and percentiles "
        "of TTFT, TPOT and E2E against what the log says. A meta.json beside the log, as vLLM's "
        "benchmark scripts write it, says what the keys don't. Times of an engine's clock have no "
        "front end in them, so none is predicted.\n"
        "--prefix: each row is a request whose whole prompt rests in that tier, replayed on the "
        "engine and links that the scenario keys name; 15 % are allowed.",
    .options = options,
    .scenario_keys = true,
    .run = run,
};
