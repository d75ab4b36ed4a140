/* SPDX-License-Identifier: Apache-2.0
 * The summary for a terminal: at most 100 columns and 60 lines, the verdict first. */
#include "reports/reports.h"

#include "base/error.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define COLUMNS 100
#define MAX_LINES 60

/* Wraps at blanks, but not between a number and its unit; later lines are indented. */
static void put_wrapped(struct kvc_text *t, const char *first, const char *indent, const char *s)
{
    size_t column = strlen(first);
    kvc_text_add(t, first);
    bool start = true;
    while (*s) {
        size_t n = strcspn(s, " ");
        while (s[n] && n && (isdigit((unsigned char)s[n - 1]) || (n == 3 && !strncmp(s, "USD", 3))))
            n += 1 + strcspn(s + n + 1, " ");
        if (!start && column + 1 + n > COLUMNS) {
            kvc_text_addf(t, "\n%s", indent);
            column = strlen(indent);
            start = true;
        }
        if (!start)
            kvc_text_add(t, " ");
        kvc_text_addn(t, s, n);
        column += n + !start;
        start = false;
        s += n;
        s += strspn(s, " ");
    }
    kvc_text_add(t, "\n");
}

static void put_ladder(struct kvc_text *t, const struct kvc_findings *f)
{
    kvc_text_add(t, "\nHit rate, share of input tokens\n");
    for (uint32_t i = 0; i < f->n_rungs; i++) {
        const struct kvc_rung *rung = &f->rungs[i];
        kvc_text_addf(t, "  %-44s %9s", rung->name, kvc_fmt_percent(rung->rate).s);
        if (!isnan(rung->gap)) {
            kvc_text_addf(t, "   %s to the next", kvc_fmt_points(rung->gap).s);
            if (!isnan(rung->usd_per_hour))
                kvc_text_addf(t, ", %s/h", kvc_fmt_usd(rung->usd_per_hour).s);
        }
        kvc_text_add(t, "\n");
    }
    if (f->point_gpu_s_per_hour > 0)
        kvc_text_addf(t, "  One point is worth %s GPU-seconds an hour.\n",
                      kvc_fmt_general(f->point_gpu_s_per_hour).s);
}

static void put_dist(struct kvc_text *t, const char *name, const struct kvc_dist *d)
{
    kvc_text_addf(t, "  %-6s", name);
    if (!d->count) {
        kvc_text_add(t, " none: no request got that far\n");
        return;
    }
    const double v[] = {d->mean, d->p50, d->p90, d->p95, d->p99, d->max};
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
        kvc_text_addf(t, " %11s", kvc_fmt_ms(v[i]).s);
    kvc_text_addf(t, "  of %s\n", kvc_fmt_count(d->count).s);
}

static void put_times(struct kvc_text *t, const struct kvc_result *r)
{
    static const char *const heads[] = {"mean", "p50", "p90", "p95", "p99", "max"};
    kvc_text_add(t, "\nLatency (percentiles by nearest rank)\n        ");
    for (size_t i = 0; i < 6; i++)
        kvc_text_addf(t, " %11s", heads[i]);
    kvc_text_add(t, "\n");
    put_dist(t, "TTFT", &r->ttft_ms);
    put_dist(t, "TPOT", &r->tpot_ms);
    put_dist(t, "e2e", &r->e2e_ms);
    put_dist(t, "queue", &r->queue_ms);
    if (r->ttft_ms.count)
        kvc_text_addf(t,
                      "  TTFT mean is queue %s + route %s + load %s + prefill %s + host %s\n",
                      kvc_fmt_ms(r->ttft_part_queue_ms).s, kvc_fmt_ms(r->ttft_part_route_ms).s,
                      kvc_fmt_ms(r->ttft_part_load_ms).s, kvc_fmt_ms(r->ttft_part_prefill_ms).s,
                      kvc_fmt_ms(r->ttft_part_host_ms).s);
    struct kvc_text band = {0};
    for (uint32_t i = 0; i < r->n_bands; i++)
        kvc_text_addf(&band, "%s%s %s to %s", i ? ", " : "80 % bands: ",
                      kvc_band_title(r->bands[i].name).s,
                      kvc_fmt_ms(r->bands[i].low).s, kvc_fmt_ms(r->bands[i].high).s);
    if (r->n_bands) {
        kvc_text_add(&band, " (rows behind them: --json or the report)");
        put_wrapped(t, "  ", "  ", band.buf ? band.buf : "");
    }
    kvc_text_clear(&band);
}

static void put_tiers(struct kvc_text *t, const struct kvc_findings *f, const struct kvc_result *r)
{
    kvc_text_addf(t, "\n%-8s %-12s %11s %11s %11s %11s %11s %9s\n", "Tier", "scope", "capacity",
                  "peak", "read", "written", "never read", "hits");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        const struct kvc_tier_result *tier = &r->tiers[i];
        kvc_text_addf(t, "%-8s %-12s %11s %11s %11s %11s %11s %9s\n", kvc_tier_title(tier->name),
                      tier->scope, kvc_fmt_bytes((double)tier->capacity_bytes).s,
                      kvc_fmt_bytes((double)tier->peak_bytes).s,
                      kvc_fmt_bytes((double)tier->read_bytes).s,
                      kvc_fmt_bytes((double)tier->written_bytes).s,
                      kvc_fmt_bytes((double)tier->never_read_bytes).s,
                      kvc_fmt_percent(f->worth[i].hit_rate).s);
    }
    for (uint32_t i = 0; i < r->n_links && i < 6; i++) {
        const struct kvc_link_result *l = &r->links[i];
        kvc_text_addf(t, "Link %-20s %11s, %s busy, %s mean, at most %u at once\n", l->name,
                      kvc_fmt_bytes((double)l->bytes).s, kvc_fmt_percent(l->busy_fraction).s,
                      kvc_fmt_bandwidth(l->mean_bytes_per_s).s, (unsigned)l->peak_flows);
    }
}

static void put_missed(struct kvc_text *t, const struct kvc_result *r)
{
    struct kvc_text line = {0};
    if (!r->has_prefix)
        kvc_text_add(&line, "Missed tokens: unknown, the trace tells no prefixes");
    for (int i = 0; r->has_prefix && i < KVC_MISS_CAUSES; i++) {
        if (r->missed_tokens[i])
            kvc_text_addf(&line, "%s%s %s", line.len ? ", " : "Missed tokens: ",
                          kvc_miss_cause_name((enum kvc_miss_cause)i),
                          kvc_fmt_percent(kvc_ratio(r->missed_tokens[i], r->input_tokens)).s);
    }
    if (line.len) {
        kvc_text_addf(&line, ". Recomputed after preemption: %s tokens.",
                      kvc_fmt_tokens((double)r->recomputed_tokens).s);
        kvc_text_add(t, "\n");
        put_wrapped(t, "", "  ", line.buf ? line.buf : "");
    }
    kvc_text_clear(&line);
}

/* What there was none of has no price. */
static struct kvc_str price(double usd)
{
    return isnan(usd) ? (struct kvc_str){"none"} : kvc_fmt_usd(usd);
}

static void put_cost(struct kvc_text *t, const struct kvc_cost *c)
{
    kvc_text_addf(t, "\nCost %s an hour (GPU %s, DRAM %s, NVMe %s,", kvc_fmt_usd(c->usd_per_hour).s,
                  kvc_fmt_fixed(c->part_gpu, 2, true).s, kvc_fmt_fixed(c->part_dram, 2, true).s,
                  kvc_fmt_fixed(c->part_nvme, 2, true).s);
    kvc_text_addf(t, " network %s, power %s)\n", kvc_fmt_fixed(c->part_network, 2, true).s,
                  kvc_fmt_fixed(c->part_power, 2, true).s);
    kvc_text_addf(t, "  per million tokens: input computed %s, input cached %s, output %s\n",
                  price(c->usd_per_million_input_tokens).s,
                  price(c->usd_per_million_cached_tokens).s,
                  price(c->usd_per_million_output_tokens).s);
}

static size_t count_lines(const struct kvc_text *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->len; i++)
        n += t->buf[i] == '\n';
    return n;
}

/* As many as fit. */
static void put_warnings(struct kvc_text *t, const struct kvc_result *r)
{
    size_t used = count_lines(t) + 2; /* an empty line, and the one about the rest */
    uint32_t shown = 0;
    for (; shown < r->n_warnings; shown++) {
        struct kvc_text line = {0}, wrapped = {0};
        kvc_text_addf(&line, "%s (%s)", r->warnings[shown].text, r->warnings[shown].code);
        put_wrapped(&wrapped, "Warning: ", "  ", line.buf ? line.buf : "");
        size_t lines = count_lines(&wrapped);
        bool fits = used + lines <= MAX_LINES;
        if (fits)
            kvc_text_addf(t, "%s%s", shown ? "" : "\n", wrapped.buf ? wrapped.buf : "");
        t->failed |= line.failed || wrapped.failed;
        kvc_text_clear(&line);
        kvc_text_clear(&wrapped);
        used += lines;
        if (!fits)
            break;
    }
    if (shown < r->n_warnings)
        kvc_text_addf(t, "%sand %u more warning%s, see --json or the report\n", shown ? "" : "\n",
                      (unsigned)(r->n_warnings - shown), r->n_warnings - shown == 1 ? "" : "s");
}

void kvc_text_summary(struct kvc_text *t, const struct kvc_result *r, const struct kvc_findings *f)
{
    put_wrapped(t, "", "  ", r->title[0] ? r->title : "untitled run");
    for (size_t i = 0; i < 3; i++) {
        if (f->verdict[i][0])
            put_wrapped(t, "", "", f->verdict[i]);
    }
    kvc_text_addf(t, "\nRequests: %s arrived, %s completed, %s failed, %s unservable, %s measured;",
                  kvc_fmt_count(r->arrived).s, kvc_fmt_count(r->completed).s,
                  kvc_fmt_count(r->failed).s, kvc_fmt_count(r->unservable).s,
                  kvc_fmt_count(r->measured).s);
    kvc_text_addf(t, "\n  %s requests/s, %s input and %s output tokens/s over %s\n",
                  kvc_fmt_general(r->requests_per_s).s, kvc_fmt_tokens(r->input_tokens_per_s).s,
                  kvc_fmt_tokens(r->output_tokens_per_s).s,
                  kvc_fmt_seconds((double)r->makespan_ns / 1e9).s);
    put_ladder(t, f);
    put_times(t, r);
    put_tiers(t, f, r);
    put_missed(t, r);
    kvc_text_tenants(t, r);
    put_cost(t, &r->cost);
    put_warnings(t, r);
}

enum kvc_status kvc_report_text(const struct kvc_result *result, const char *path,
                                struct kvc_error *err)
{
    struct kvc_findings f;
    enum kvc_status status = kvc_findings_make(&f, result, err);
    if (status != KVC_OK)
        return status;
    struct kvc_text t = {0};
    kvc_text_summary(&t, result, &f);
    return kvc_file_put_text(path, &t, err);
}
