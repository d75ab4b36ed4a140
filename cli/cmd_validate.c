/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "cli/trace_args.h"
#include "studies/kernel_study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct kvc_cli_option options[] = {
    {"kernels", NULL, NULL,
     "the files are tables of measured kernels (columns as aiconfigurator's), .zst and .gz too"},
    {"profile", "F", NULL, "predict from this profile instead of the program's own"},
    {"like", "GPU", NULL, "predict from that GPU's tables, as if this one had none"},
    {"tables", NULL, NULL, "a line per table (shape of head, kernel) instead of per dtype"},
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

    if (!kvc_cli_flag(cli, "kernels"))
        return kvc_cli_usage(cli, "say what to hold predictions against: --kernels FILE.csv is "
                                  "what this release knows");
    if (n == 0 || n > sizeof paths / sizeof paths[0])
        return kvc_cli_usage(cli, n ? "256 files at most" : "no file of kernel rows named");
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
    .arguments = "--kernels FILE.csv..",
    .summary = "predictions beside measured results",
    .description =
        "Predicts the time of each measured kernel row and sums up the errors, over the ranges in "
        "which the model claims to hold; rows outside them are counted by reason. A file is named "
        "system__family__backend__version.csv, or has columns of these names. A system whose "
        "backend was never measured takes the tables of the GPU most like it, as shares of its own "
        "peaks: its target is 20 %.",
    .options = options,
    .run = run,
};
