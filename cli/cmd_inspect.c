/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/error.h"
#include "base/units.h"
#include "cli/trace_args.h"
#include "traces/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct kvc_cli_option options[] = {
    {"format", "NAME", "auto",
     "format of a log: auto, mooncake, llmservingsim or kv-cache-tester"},
    {"block-tokens", "N", "the format's", "tokens of a block id"},
    {"strict", NULL, NULL, "stop at the first bad row of a log"},
    KVC_CLI_TIME_OPTIONS,
    {NULL, NULL, NULL, NULL},
};

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* ---- JSON ---- */

static void json_dist(struct kvc_json *j, const char *key, const struct kvc_dist *d)
{
    if (!d->count) {
        kvc_json_null(j, key);
        return;
    }
    kvc_json_open_object(j, key);
    kvc_json_double(j, "mean", d->mean);
    kvc_json_double(j, "p50", d->p50);
    kvc_json_double(j, "p90", d->p90);
    kvc_json_double(j, "p95", d->p95);
    kvc_json_double(j, "p99", d->p99);
    kvc_json_double(j, "max", d->max);
    kvc_json_u64(j, "count", d->count);
    kvc_json_close(j);
}

static void json_groups(struct kvc_json *j, const char *key, char **names, const uint64_t *n,
                        uint32_t count)
{
    kvc_json_open_array(j, key);
    for (uint32_t i = 0; n && i < count; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", names[i]);
        kvc_json_u64(j, "requests", n[i]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void json_sharing(struct kvc_json *j, const struct kvc_trace_stats *s,
                         const struct kvc_profile *p)
{
    if (!s->has_prefix) {
        kvc_json_null(j, "sharing");
        return;
    }
    kvc_json_open_object(j, "sharing");
    kvc_json_u64(j, "reused_touches", p->reused_touches);
    kvc_json_double(j, "reused_share", share(p->reused_touches, s->block_touches));
    kvc_json_u64(j, "one_hit_blocks", p->one_hit_blocks);
    kvc_json_double(j, "one_hit_share", share(p->one_hit_blocks, p->touched_blocks));
    kvc_json_u64(j, "outputs_known", p->outputs_known);
    kvc_json_open_array(j, "by_depth");
    for (uint32_t i = 0; i < p->n_depths; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_u64(j, "from_block", i ? (uint64_t)1 << (i - 1) : 0);
        kvc_json_u64(j, "touches", p->depth_touches[i]);
        kvc_json_u64(j, "reused", p->depth_reused[i]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_open_array(j, "reuse_age");
    for (size_t i = 0; i < KVC_PROFILE_AGES; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_double(j, "within_s", (double)p->age_limit_ns[i] * 1e-9);
        kvc_json_u64(j, "touches", p->age_touches[i]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_open_array(j, "working_set");
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_double(j, "window_s", (double)p->working_set[i].window_ns * 1e-9);
        kvc_json_double(j, "mean_blocks", p->working_set[i].mean_blocks);
        kvc_json_u64(j, "peak_blocks", p->working_set[i].peak_blocks);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}

static void print_json(const struct kvc_trace *t, const struct kvc_trace_stats *s,
                       const struct kvc_profile *p, const struct kvc_import_report *r)
{
    struct kvc_json j;
    kvc_json_init(&j, true);
    kvc_json_open_object(&j, NULL);
    kvc_json_string(&j, "schema", "kvcast.inspect.v1");
    kvc_json_string(&j, "version", kvc_version());
    kvc_cli_json_trace(&j, s);
    if (s->span_ns) {
        kvc_json_open_object(&j, "arrivals");
        kvc_json_double(&j, "requests_per_s", p->requests_per_s);
        kvc_json_double(&j, "peak_minute_requests_per_s", p->peak_requests_per_s);
        kvc_json_double(&j, "gap_variation", p->gap_cv);
        kvc_json_close(&j);
    } else {
        kvc_json_null(&j, "arrivals");
    }
    json_dist(&j, "input_tokens", &p->input_tokens);
    json_dist(&j, "output_tokens", &p->output_tokens);
    json_dist(&j, "turns", &p->turns);
    json_dist(&j, "think_s", &p->think_s);
    json_sharing(&j, s, p);
    json_groups(&j, "tenants", t->tenant_names, p->tenant_requests, t->n_tenants);
    json_groups(&j, "models", t->model_names, p->model_requests, t->n_models);
    if (r->rows)
        kvc_cli_json_report(&j, r);
    else
        kvc_json_null(&j, "import");
    kvc_json_close(&j);
    char *text = kvc_json_take(&j);
    if (text)
        puts(text);
    kvc_free(text);
}

/* ---- text ---- */

static void text_dist(const char *name, const struct kvc_dist *d)
{
    if (d->count)
        printf("%-16s %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n", name, d->mean, d->p50, d->p90,
               d->p95, d->p99, d->max);
}

static void text_arrivals(const struct kvc_trace_stats *s, const struct kvc_profile *p)
{
    char period[32];
    if (!s->span_ns) /* one moment has no rate */
        return;
    printf("\nArrivals\n");
    printf("  %.2f requests/s on average, %.2f in the busiest minute\n", p->requests_per_s,
           p->peak_requests_per_s);
    printf("  gaps vary by %.2f of their mean (1 = random arrivals)\n", p->gap_cv);
    if (s->batch_period_ns) {
        kvc_format_ns(s->batch_period_ns, period, sizeof(period));
        printf("  batched: %" PRIu64 " requests come at %" PRIu64 " distinct times, %s apart; "
               "queueing below that is\n  an artefact of the log unless arrivals are spread "
               "(arrivals.spread)\n", s->requests, s->distinct_arrivals, period);
    }
}

static void text_sharing(const struct kvc_trace_stats *s, const struct kvc_profile *p)
{
    char age[32];
    printf("\nSharing\n");
    if (!s->has_prefix) {
        printf("  the log says nothing about shared prefixes: hit rates are unknown, not 0\n");
        return;
    }
    printf("  %.2f %% of block touches were of a block seen before (content bound, partial tails "
           "counted)\n", 100 * share(p->reused_touches, s->block_touches));
    printf("  %.1f %% of the %" PRIu64 " blocks are touched by one request only\n",
           100 * share(p->one_hit_blocks, p->touched_blocks), p->touched_blocks);
    if (p->outputs_known)
        printf("  the blocks of %" PRIu64 " answers are known (from the log, or a later turn that "
               "repeats them)\n", p->outputs_known);
    printf("\n  depth in blocks       touches   seen before\n");
    for (uint32_t i = 0; i < p->n_depths; i++)
        printf("  %9" PRIu64 " and on %12" PRIu64 " %11.1f %%\n", i ? (uint64_t)1 << (i - 1) : 0,
               p->depth_touches[i], 100 * share(p->depth_reused[i], p->depth_touches[i]));
    printf("\n  reused within   share of reuse\n");
    for (size_t i = 0; i < KVC_PROFILE_AGES; i++) {
        kvc_format_ns(p->age_limit_ns[i], age, sizeof(age));
        printf("  %13s %14.1f %%\n", age, 100 * share(p->age_touches[i], p->reused_touches));
    }
    printf("\n  working set           mean blocks   peak blocks\n");
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        kvc_format_ns(p->working_set[i].window_ns, age, sizeof(age));
        printf("  in windows of %5s %13.0f %13" PRIu64 "\n", age, p->working_set[i].mean_blocks,
               p->working_set[i].peak_blocks);
    }
}

static void text_groups(const char *what, char **names, const uint64_t *n, uint32_t count)
{
    if (!n)
        return;
    printf("\n%s\n", what);
    for (uint32_t i = 0; i < count && i < 20; i++)
        printf("  %-32s %10" PRIu64 " requests\n", names[i], n[i]);
    if (count > 20)
        printf("  .. and %u more (--json lists all)\n", count - 20);
}

static void text_rows(const struct kvc_import_report *r, bool has_prefix)
{
    if (!r->rows)
        return;
    printf("\nRows\n");
    printf("  %" PRIu64 " rows: %" PRIu64 " used, %" PRIu64 " bad; %" PRIu64 " blank lines\n",
           r->rows, r->accepted, r->bad, r->blank);
    if (has_prefix)
        printf("  last partial block: with an id in %" PRIu64 " rows, without in %" PRIu64 "\n",
               r->ceil_rows, r->floor_rows);
    if (r->inversions)
        printf("  %" PRIu64 " rows earlier than the row before them (sorted, order kept among "
               "equals)\n", r->inversions);
    if (r->repeated_ids)
        printf("  %" PRIu64 " rows hold a block id twice\n", r->repeated_ids);
    if (r->without_ids)
        printf("  %" PRIu64 " rows without ids: their reuse is unknown\n", r->without_ids);
    if (r->zero_output)
        printf("  %" PRIu64 " rows generate nothing\n", r->zero_output);
}

static void print_text(const struct kvc_trace *t, const struct kvc_trace_stats *s,
                       const struct kvc_profile *p, const struct kvc_import_report *r)
{
    printf("%" PRIu64 " requests over %.1f s, %" PRIu64 " input and %" PRIu64 " output tokens\n",
           s->requests, (double)s->span_ns * 1e-9, s->input_tokens, s->output_tokens);
    if (s->has_prefix)
        printf("%" PRIu64 " blocks of %u tokens in %" PRIu64 " segments; %" PRIu64
               " block touches are %" PRIu64 " segment touches\n", s->blocks, s->block_tokens,
               s->segments, s->block_touches, s->segment_touches);
    printf("%" PRIu64 " sessions, %" PRIu64 " tenants, %" PRIu64 " models, digest %s\n",
           s->sessions, s->tenants, s->models, s->digest);
    printf("\n%-16s %10s %10s %10s %10s %10s %10s\n", "", "mean", "p50", "p90", "p95", "p99",
           "max");
    text_dist("input tokens", &p->input_tokens);
    text_dist("output tokens", &p->output_tokens);
    text_dist("turns", &p->turns);
    text_dist("think time, s", &p->think_s);
    text_arrivals(s, p);
    text_sharing(s, p);
    text_groups("Tenants", t->tenant_names, p->tenant_requests, t->n_tenants);
    text_groups("Models", t->model_names, p->model_requests, t->n_models);
    text_rows(r, s->has_prefix);
}

static int run(struct kvc_cli *cli)
{
    struct kvc_import_options io;
    struct kvc_import_report report = {0};
    struct kvc_error err = {0};
    struct kvc_trace_stats stats;
    struct kvc_profile profile;
    struct kvc_trace *trace = NULL;
    if (kvc_cli_count(cli) != 1)
        return kvc_cli_usage(cli, kvc_cli_count(cli) ? "one trace at a time" : "no trace named");
    int rc = kvc_cli_import_options(cli, &io);
    if (rc != KVC_EXIT_OK)
        return rc;
    enum kvc_status status = kvc_trace_open(&trace, kvc_cli_argument(cli, 0), &io, &report, &err);
    if (status == KVC_OK)
        status = kvc_profile_trace(trace, &profile, &err);
    if (status != KVC_OK) {
        kvc_trace_destroy(trace);
        return kvc_cli_fail(cli, &err);
    }
    kvc_cli_import_report(cli, &report);
    kvc_trace_stats(trace, &stats);
    if (kvc_cli_json(cli))
        print_json(trace, &stats, &profile, &report);
    else
        print_text(trace, &stats, &profile, &report);
    kvc_profile_clear(&profile);
    kvc_trace_destroy(trace);
    return KVC_EXIT_OK;
}

const struct kvc_cli_command kvc_cmd_inspect = {
    .name = "inspect",
    .arguments = "T",
    .summary = "show what is in a trace or log",
    .description =
        "T is a .kvt or a log. Shows rates, lengths, turns, sharing by depth, ages of reuse, "
        "working sets, tenants, and which rows of a log were dropped and why.",
    .options = options,
    .run = run,
};
