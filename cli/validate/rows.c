/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/trace_args.h"
#include "studies/engine/recipe.h"
#include "studies/engine/study.h"

/* ---- text: Markdown, so that docs/accuracy.md is this output ---- */

/* "8.1/9.0/18 -3" */
static void put_cell(const struct kvc_engine_errors *e)
{
    if (e->rows)
        printf(" %.1f/%.1f/%.0f %+.0f |", e->median, e->mean, e->p90, e->bias);
    else
        fputs(" - |", stdout);
}

static void put_bar(double value, double bar)
{
    if (isnan(bar))
        fputs(" - |", stdout);
    else
        printf(" %g %s |", bar, kvc_engine_verdict(value, bar));
}

static const char *kind_name(enum kvc_row_kind kind)
{
    return kind == KVC_ROW_DATA_PARALLEL ? ", attention DP"
           : kind == KVC_ROW_SPECULATIVE ? ", speculative"
           : kind == KVC_ROW_DISAGG      ? ", disaggregated"
                                         : "";
}

/* "15 met", and which rows it is of where not all. */
static void put_ttft_bar(const struct kvc_engine_group *g)
{
    if (!isnan(g->bars.ttft_median) && g->bars.ttft_clients)
        printf(" %g %s (c <= %u) |", g->bars.ttft_median,
               kvc_engine_verdict(g->aside_ttft.median, g->bars.ttft_median),
               g->bars.ttft_clients);
    else
        put_bar(g->aside_ttft.median, g->bars.ttft_median);
}

static void put_name(const struct kvc_engine_group *g)
{
    if (g->llm)
        printf("| %s %s, %s, %s%s |", g->llm->name, g->format, g->system, g->backend,
               kind_name(g->kind));
    else if (g->unfitted)
        printf("| **%s, no constant fitted** |", g->unfitted);
    else
        printf("| **all %s** |", g->backend ? g->backend : "rows");
}

/* Verdicts are on rows that no constant of their predictions is fitted to. */
static const struct kvc_engine_errors *judged(const struct kvc_engine_group *g)
{
    return g->unfitted ? &g->tpot : &g->aside_tpot;
}

static void put_group(const struct kvc_engine_group *g)
{
    put_name(g);
    printf(" %zu (%zu) |", g->tpot.rows, g->aside_tpot.rows);
    put_cell(&g->tpot);
    put_cell(&g->aside_tpot);
    put_bar(judged(g)->median, g->bars.tpot_median);
    put_bar(judged(g)->p90, g->bars.tpot_p90);
    put_cell(&g->ttft);
    put_cell(&g->aside_ttft);
    put_ttft_bar(g);
    putchar('\n');
}

static void put_share(double share, double bar)
{
    if (isnan(share)) {
        fputs(" - | - |", stdout);
        return;
    }
    printf(" %.0f |", 100 * share);
    if (isnan(bar))
        fputs(" - |", stdout);
    else
        printf(" %.0f %s |", 100 * bar, kvc_engine_verdict(-share, -bar));
}

/* An 80 % band that holds more is too wide to be of use. */
static void put_coverage(const struct kvc_engine_errors *e)
{
    if (e->rows)
        printf(" %.0f %s |", 100 * e->coverage,
               e->coverage >= 0.7 && e->coverage <= 0.9 ? "met" : "missed");
    else
        fputs(" - |", stdout);
}

static void put_shares(const struct kvc_engine_group *g)
{
    put_name(g);
    put_share(g->aside_tpot.within_20, g->bars.tpot_within_20);
    put_share(g->aside_ttft.within_20, g->bars.ttft_within_20);
    put_share(g->aside_ttft.within_50, g->bars.ttft_within_50);
    put_coverage(&g->aside_tpot);
    put_coverage(&g->aside_ttft);
    putchar('\n');
}

static void print_text(const struct kvc_engine_validation *v)
{
    size_t n = v->n_groups + v->n_backends + 1;

    if (v->scored) {
        puts("Errors in percent: median/mean/P90 of the absolute error, then the bias (signed "
             "median).\n*Aside*: rows of the configurations that no constant is fitted to; "
             "verdicts are on them.\n");
        puts("| group | rows (aside) | TPOT | TPOT aside | median at most | P90 at most | TTFT | "
             "TTFT aside | median at most |\n|---|---|---|---|---|---|---|---|---|");
        for (size_t i = 0; i < n + KVC_ENGINE_UNFITTED; i++)
            if (v->group[i].tpot.rows)
                put_group(&v->group[i]);
        putchar('\n');
    }
    if (v->group[n - 1].aside_tpot.rows) { /* of disaggregated ones and the like there is no sum */
        puts("| % of rows aside | TPOT within 20 % | at least | TTFT within 20 % | at least | "
             "TTFT within 50 % | at least | TPOT in the band, 70 to 90 | TTFT in it, 70 to 90 |\n"
             "|---|---|---|---|---|---|---|---|---|");
        for (size_t i = v->n_groups; i < n; i++)
            if (v->group[i].tpot.rows)
                put_shares(&v->group[i]);
        putchar('\n');
    }
    printf("%zu rows scored, %zu predicted but doubtful, %zu skipped%s\n", v->scored, v->doubtful,
           v->skipped, v->n_reasons ? ":\n" : "");
    for (size_t i = 0; i < v->n_reasons; i++)
        printf("- %zu: %s\n", v->reason[i].rows, v->reason[i].text);
}

/* ---- JSON ---- */

static void put_errors(struct kvc_json *j, const char *key, const struct kvc_engine_errors *e)
{
    kvc_json_open_object(j, key);
    kvc_json_u64(j, "rows", e->rows);
    kvc_json_double(j, "median_ape_percent", e->median);
    kvc_json_double(j, "mean_ape_percent", e->mean);
    kvc_json_double(j, "p90_ape_percent", e->p90);
    kvc_json_double(j, "bias_percent", e->bias);
    kvc_json_double(j, "within_20_percent", e->within_20);
    kvc_json_double(j, "within_50_percent", e->within_50);
    kvc_json_double(j, "band_coverage", e->coverage);
    kvc_json_close(j);
}

static void put_verdict(struct kvc_json *j, const char *key, double value, double bar)
{
    kvc_json_open_object(j, key);
    kvc_json_double(j, "at_most", bar);
    kvc_json_string(j, "verdict", kvc_engine_verdict(value, bar));
    kvc_json_close(j);
}

static void json_group(struct kvc_json *j, const struct kvc_engine_group *g)
{
    kvc_json_open_object(j, NULL);
    if (g->unfitted)
        kvc_json_string(j, "name", g->unfitted);
    kvc_json_string(j, "model", g->llm ? g->llm->name : NULL);
    kvc_json_string(j, "system", g->system);
    kvc_json_string(j, "backend", g->backend);
    kvc_json_string(j, "weights_dtype", g->llm ? g->format : NULL);
    put_errors(j, "ttft", &g->ttft);
    put_errors(j, "tpot", &g->tpot);
    put_errors(j, "ttft_aside", &g->aside_ttft);
    put_errors(j, "tpot_aside", &g->aside_tpot);
    kvc_json_open_object(j, "bars");
    put_verdict(j, "tpot_median", judged(g)->median, g->bars.tpot_median);
    put_verdict(j, "tpot_p90", judged(g)->p90, g->bars.tpot_p90);
    put_verdict(j, "ttft_median", g->aside_ttft.median, g->bars.ttft_median);
    kvc_json_close(j);
    kvc_json_close(j);
}

static void put_pair(struct kvc_json *j, const char *key, double ttft, double tpot)
{
    kvc_json_open_object(j, key);
    kvc_json_double(j, "ttft_ms", ttft);
    kvc_json_double(j, "tpot_ms", tpot);
    kvc_json_close(j);
}

static void put_flags(struct kvc_json *j, const struct kvc_engine_row *r,
                      const struct kvc_engine_prediction *p)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = {{KVC_STEP_PAST, "prefill_behind_past"},
                 {KVC_STEP_OUTSIDE, "outside_tables"},
                 {KVC_STEP_BORROWED, "borrowed_kernels"},
                 {KVC_STEP_SHAPE, "shape_between_tables"}};

    kvc_json_open_array(j, "flags");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (p->flags & names[i].flag)
            kvc_json_string(j, NULL, names[i].name);
    if (r->repaired)
        kvc_json_string(j, NULL, "label_repaired");
    if (r->doubtful)
        kvc_json_string(j, NULL, "doubtful_not_scored");
    if (r->kind != KVC_ROW_PLAIN)
        kvc_json_string(j, NULL, kind_name(r->kind) + 2);
    if (p->aside)
        kvc_json_string(j, NULL, "kept_aside");
    kvc_json_close(j);
}

/* How it is taken to have run; of a disaggregated row only the lengths are known. */
static void put_recipe(struct kvc_json *j, const struct kvc_engine_row *r)
{
    struct kvc_engine_recipe how;

    kvc_engine_recipe_of(r, &how);
    kvc_json_double(j, "shortest_length", how.shortest);
    if (r->disagg)
        return;
    kvc_json_bool(j, "options_published", how.published);
    kvc_json_u64(j, "max_batched_tokens", how.batching.max_batched_tokens);
    kvc_json_u64(j, "slots", how.batching.slots);
    kvc_json_u64(j, "wait_steps", how.batching.wait_steps);
    kvc_json_u64(j, "receive_steps", how.batching.receive_steps);
}

static void put_row(struct kvc_json *j, const struct kvc_engine_row *r,
                    const struct kvc_engine_prediction *p)
{
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "id", r->id);
    put_pair(j, "measured", r->ttft_ms, r->tpot_ms);
    put_pair(j, "predicted", p->ttft_ms, p->tpot_ms);
    if (!r->disagg)
        put_pair(j, "unfitted", p->unfitted_ttft_ms, p->unfitted_tpot_ms);
    kvc_json_open_object(j, "band");
    kvc_json_open_array(j, "ttft_ms");
    kvc_json_double(j, NULL, p->ttft_ms * p->band.ttft_low);
    kvc_json_double(j, NULL, p->ttft_ms * p->band.ttft_high);
    kvc_json_close(j);
    kvc_json_open_array(j, "tpot_ms");
    kvc_json_double(j, NULL, p->tpot_ms * p->band.tpot_low);
    kvc_json_double(j, NULL, p->tpot_ms * p->band.tpot_high);
    kvc_json_close(j);
    kvc_json_close(j);
    put_flags(j, r, p);
    if (r->repaired)
        kvc_json_string(j, "repaired", r->repaired);
    if (r->doubtful)
        kvc_json_string(j, "doubtful", r->doubtful);
    kvc_json_open_object(j, "taken_as");
    kvc_json_u64(j, "tp", p->tp);
    kvc_json_u64(j, "ep", p->ep);
    kvc_json_string(j, "weights_dtype", kvc_dtype_name(p->weights));
    kvc_json_string(j, "kv_dtype", kvc_dtype_name(p->kv));
    put_recipe(j, r);
    kvc_json_close(j);
    kvc_json_close(j);
}

static enum kvc_status print_json(const struct kvc_engine_validation *v, struct kvc_error *err)
{
    const struct kvc_engine_group *all = &v->group[v->n_groups + v->n_backends];
    struct kvc_json j;

    kvc_cli_json_begin(&j, "kvcast.validate.v1");
    kvc_json_open_array(&j, "rows");
    for (size_t i = 0; i < v->rows.n; i++)
        if (!v->prediction[i].skipped)
            put_row(&j, &v->rows.row[i], &v->prediction[i]);
    kvc_json_close(&j);
    kvc_json_open_array(&j, "groups");
    for (size_t i = 0; i < v->n_groups; i++)
        json_group(&j, &v->group[i]);
    kvc_json_close(&j);
    kvc_json_open_array(&j, "backends");
    for (size_t i = 0; i < v->n_backends; i++)
        json_group(&j, &v->group[v->n_groups + i]);
    kvc_json_close(&j);
    kvc_json_open_array(&j, "unfitted");
    for (size_t i = 0; i < KVC_ENGINE_UNFITTED; i++)
        json_group(&j, &all[1 + i]);
    kvc_json_close(&j);
    kvc_json_open_object(&j, "summary");
    kvc_json_u64(&j, "rows", v->scored);
    kvc_json_u64(&j, "doubtful", v->doubtful);
    kvc_json_u64(&j, "skipped", v->skipped);
    put_errors(&j, "ttft", &all->ttft);
    put_errors(&j, "tpot", &all->tpot);
    kvc_json_close(&j);
    kvc_json_open_array(&j, "skipped_by_reason");
    for (size_t i = 0; i < v->n_reasons; i++) {
        kvc_json_open_object(&j, NULL);
        kvc_json_string(&j, "reason", v->reason[i].text);
        kvc_json_u64(&j, "rows", v->reason[i].rows);
        kvc_json_close(&j);
    }
    kvc_json_close(&j);
    return kvc_cli_json_print(&j, err);
}

int kvc_validate_rows(struct kvc_cli *cli)
{
    const char *mode = kvc_cli_value(cli, "mode");
    struct kvc_engine_validation v;
    struct kvc_error err = {0};
    void *user = NULL;
    kvc_progress_fn progress = kvc_cli_progress(cli, &user);

    if (kvc_cli_count(cli))
        return kvc_cli_usage(cli, "--rows takes one file and no other argument");
    if (mode && strcmp(mode, "agg") != 0 && strcmp(mode, "disagg") != 0)
        return kvc_cli_usage(cli, "--mode is agg or disagg, not '%s'", mode);
    enum kvc_status status =
        kvc_engine_validate(&v, kvc_cli_value(cli, "rows"), mode, kvc_cli_flag(cli, "alike"),
                            progress, user, &err);
    kvc_cli_progress_clear(cli);
    if (status == KVC_OK && v.rows.n == 0) {
        kvc_engine_validation_clear(&v);
        status = kvc_fail_at(&err, KVC_ERR_INPUT, kvc_cli_value(cli, "rows"), 0, NULL,
                             "no row in it");
    }
    if (status != KVC_OK)
        return kvc_cli_fail(cli, &err);
    if (kvc_cli_json(cli))
        status = print_json(&v, &err);
    else
        print_text(&v);
    kvc_engine_validation_clear(&v);
    return status == KVC_OK ? KVC_EXIT_OK : kvc_cli_fail(cli, &err);
}
