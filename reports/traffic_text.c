/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/reports.h"
#include "reports/traffic.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define WIDTH 100

/* Right-aligned. */
static void put_cell(struct kvc_text *t, struct kvc_str value, int width)
{
    kvc_text_addf(t, "%*s", width, value.s);
}

void kvc_traffic_wrap(struct kvc_text *t, const char *first, const char *next, const char *s)
{
    for (const char *lead = first; *s; lead = next) {
        size_t n = strlen(s), room = WIDTH - strlen(lead);
        if (n > room) {
            n = room; /* a number and its unit stay on one line */
            while (n && (s[n] != ' ' || (s[n - 1] >= '0' && s[n - 1] <= '9')))
                n--;
            n = n ? n : room;
        }
        kvc_text_add(t, lead);
        kvc_text_addn(t, s, n);
        kvc_text_add(t, "\n");
        s += n;
        s += *s == ' ';
    }
}

static void put_findings(struct kvc_text *t, const struct kvc_traffic *f)
{
    if (f->n_findings)
        kvc_text_add(t, "\nWhat follows\n");
    for (uint32_t i = 0; i < f->n_findings; i++)
        kvc_traffic_wrap(t, "  - ", "    ", f->findings[i]);
}

static void put_head(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_trace_stats *s = &f->stats;
    const struct kvc_profile *p = &f->profile;
    kvc_text_addf(t, "%s over %s, %s input and %s output tokens\n",
                  kvc_fmt_some(s->requests, "request").s,
                  kvc_fmt_seconds((double)s->span_ns * 1e-9).s, kvc_fmt_count(s->input_tokens).s,
                  s->unknown_outputs < s->requests ? kvc_fmt_count(s->output_tokens).s : "unknown");
    if (s->has_prefix)
        kvc_text_addf(t, "%s of %u tokens in %s, %s block and %s\n",
                      kvc_fmt_some(s->blocks, "block").s, s->block_tokens,
                      kvc_fmt_some(s->segments, "segment").s, kvc_fmt_count(s->block_touches).s,
                      kvc_fmt_some(s->segment_touches, "segment touch").s);
    kvc_text_addf(t, "sessions: %s, tenants: %s, models: %s, digest %s\n",
                  s->sessions ? kvc_fmt_count(s->sessions).s : "not named",
                  f->trace->tenant ? kvc_fmt_count(s->tenants).s : "not named",
                  s->models ? kvc_fmt_count(s->models).s : "not named", s->digest);
    if (p->failed || p->cancelled)
        kvc_text_addf(t, "%s failed, %s cancelled (counted in all that follows)\n",
                      kvc_fmt_some(p->failed, "request").s, kvc_fmt_count(p->cancelled).s);
}

/* ---- lengths ---- */

static void put_dist(struct kvc_text *t, const char *name, const struct kvc_dist *d, int decimals)
{
    const double v[] = {d->mean, d->p50, d->p90, d->p95, d->p99, d->max};
    if (!d->count)
        return;
    kvc_text_addf(t, "  %-16s", name);
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
        put_cell(t, kvc_fmt_fixed(v[i], decimals, true), 12);
    kvc_text_add(t, "\n");
}

static void put_bar(struct kvc_text *t, double share)
{
    static const char bar[] = "########################";
    int n = isnan(share) ? 0 : (int)lround(share * (double)(sizeof(bar) - 1));
    kvc_text_add(t, n ? "  " : "");
    kvc_text_addn(t, bar, (size_t)n);
}

static void put_classes(struct kvc_text *t, const struct kvc_profile *p)
{
    uint64_t in = p->input_tokens.count, tokens = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < KVC_PROFILE_LENGTHS; i++) {
        tokens += p->input_sum[i];
        last = p->input_requests[i] || p->output_requests[i] ? i : last;
    }
    kvc_text_add(t, "\n         tokens     inputs  of requests  of tokens    outputs  "
                    "of requests\n");
    for (uint32_t i = 0; i <= last; i++) {
        if (!p->input_requests[i] && !p->output_requests[i])
            continue;
        kvc_text_add(t, "  ");
        put_cell(t, kvc_fmt_count(i ? (uint64_t)1 << (i - 1) : 0), 9);
        kvc_text_add(t, i ? " on " : "    ");
        put_cell(t, kvc_fmt_count(p->input_requests[i]), 11);
        put_cell(t, kvc_fmt_percent(kvc_ratio(p->input_requests[i], in)), 13);
        put_cell(t, kvc_fmt_percent(kvc_ratio(p->input_sum[i], tokens)), 11);
        put_cell(t, kvc_fmt_count(p->output_requests[i]), 11);
        put_cell(t, kvc_fmt_percent(kvc_ratio(p->output_requests[i], p->output_tokens.count)), 13);
        kvc_text_add(t, "\n");
    }
}

static void put_lengths(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    kvc_text_addf(t, "\nLengths               %8s%12s%12s%12s%12s%12s\n", "mean", "p50", "p90",
                  "p95", "p99", "max");
    put_dist(t, "input tokens", &p->input_tokens, 0);
    put_dist(t, "output tokens", &p->output_tokens, 0);
    put_dist(t, "turns", &p->turns, 1);
    put_dist(t, "think time, s", &p->think_s, 1);
    put_classes(t, p);
    kvc_text_add(t, "\n");
    if (f->stats.has_prefix)
        kvc_text_addf(t, "  answers: known in %s (from the log or a later turn), unknown "
                         "in %s\n",
                      kvc_fmt_some(p->outputs_known, "request").s,
                      kvc_fmt_count(f->stats.requests - p->outputs_known).s);
    if (p->unknown_output)
        kvc_text_addf(t, "  of %s requests the log does not say how much they generated: unknown, "
                         "in no figure of outputs\n", kvc_fmt_count(p->unknown_output).s);
    if (p->zero_output)
        kvc_text_addf(t, "  nothing generated: %s\n", kvc_fmt_some(p->zero_output, "request").s);
    if (f->stats.sessions)
        kvc_text_addf(t, "  in sessions: %s; too short to repeat what was before: %s\n",
                      kvc_fmt_some(p->in_sessions, "request").s,
                      kvc_fmt_some(p->shrunken_turns, "turn").s);
    if (f->stats.sessions)
        kvc_text_addf(t, "  think time is stated for %s\n",
                      kvc_fmt_some(p->think_s.count, "request").s);
    if (p->cached_rows)
        kvc_text_addf(t, "  the serving system states cached tokens in %s: %s of their "
                         "input\n", kvc_fmt_some(p->cached_rows, "row").s,
                      kvc_fmt_percent(kvc_traffic_measured(f)).s);
}

/* ---- arrivals ---- */

static void put_profile(struct kvc_text *t, const struct kvc_profile *p)
{
    uint64_t peak = 0;
    uint32_t step = (p->n_rates + 19) / 20; /* windows a line */
    for (uint32_t i = 0; i < p->n_rates; i++)
        peak = p->requests_in[i] > peak ? p->requests_in[i] : peak;
    kvc_text_add(t, "\n       from  requests/s\n");
    for (uint32_t i = 0; i < p->n_rates; i += step) {
        uint64_t sum = 0;
        uint32_t n = 0;
        for (; n < step && i + n < p->n_rates; n++)
            sum += p->requests_in[i + n];
        put_cell(t, kvc_fmt_seconds((double)(p->rate_window_ns * i) * 1e-9), 11);
        put_cell(t, kvc_fmt_general((double)sum * 1e9 / (double)(p->rate_window_ns * n)), 12);
        put_bar(t, (double)sum / ((double)peak * (double)n));
        kvc_text_add(t, "\n");
    }
}

static void put_arrivals(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    if (!f->stats.span_ns) /* one moment has no rate */
        return;
    kvc_text_add(t, "\nArrivals\n");
    kvc_text_addf(t, "  %s requests/s on average, %s in the busiest minute, which begins at %s\n",
                  kvc_fmt_general(p->requests_per_s).s, kvc_fmt_general(p->peak_requests_per_s).s,
                  kvc_fmt_seconds(60.0 * (double)p->peak_minute).s);
    kvc_text_addf(t, "  gaps between arrivals: standard deviation %s times the mean (1 = random)\n",
                  kvc_fmt_general(p->gap_cv).s);
    for (size_t i = 0; i < KVC_PROFILE_COUNTS; i++)
        if (!isnan(p->counts[i].dispersion))
            kvc_text_addf(t, "  arrivals in %s: variance %s times the mean (1 = random)\n",
                          kvc_traffic_age_name(p->counts[i].window_ns).s,
                          kvc_fmt_general(p->counts[i].dispersion).s);
    if (f->stats.batch_period_ns)
        kvc_text_addf(t, "  batched: %s requests come at %s distinct times, %s apart; queueing "
                         "below that is\n  an artefact of the log unless arrivals are spread "
                         "(arrivals.spread)\n",
                      kvc_fmt_count(f->stats.requests).s,
                      kvc_fmt_count(f->stats.distinct_arrivals).s,
                      kvc_fmt_seconds((double)f->stats.batch_period_ns * 1e-9).s);
    if (f->stats.requests >= 30)
        put_profile(t, p);
}

/* ---- sharing ---- */

static void put_kinds(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    for (int k = 0; k < KVC_CONTENTS; k++) {
        const char *name = kvc_traffic_kind(f, (enum kvc_content)k);
        if (!name || (k >= KVC_CONTENT_PARTIAL && !p->content_tokens[k]))
            continue;
        double share = kvc_ratio(p->content_tokens[k], f->stats.input_tokens);
        kvc_text_addf(t, "  %-26s", name);
        put_cell(t, kvc_fmt_count(p->content_tokens[k]), 18);
        put_cell(t, kvc_fmt_percent(share), 9);
        put_bar(t, share);
        kvc_text_add(t, "\n");
    }
    if (!p->by_session)
        kvc_text_add(t, "  (without sessions documents and histories can't be told apart)\n");
}

static void put_depths(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    kvc_text_add(t, "\n  depth in tokens    block touches   seen before    system");
    kvc_text_add(t, p->by_session ? "  document   history       new\n" : "  doc/hist       new\n");
    for (uint32_t i = 0; i < p->n_depths; i++) {
        uint64_t from = i ? (uint64_t)1 << (i - 1) : 0, all = 0;
        for (int k = 0; k < KVC_CONTENT_PARTIAL; k++)
            all += p->depth_tokens[i][k];
        put_cell(t, kvc_fmt_count(from * f->stats.block_tokens), 12);
        kvc_text_add(t, " on ");
        put_cell(t, kvc_fmt_count(p->depth_touches[i]), 18);
        put_cell(t, kvc_fmt_percent(kvc_ratio(p->depth_reused[i], p->depth_touches[i])), 14);
        for (int k = 0; k < KVC_CONTENT_PARTIAL; k++)
            if (k != KVC_CONTENT_HISTORY || p->by_session)
                put_cell(t, kvc_fmt_percent(kvc_ratio(p->depth_tokens[i][k], all)), 10);
        kvc_text_add(t, "\n");
    }
}

/* A row past the first TTL that loses nothing says nothing new. */
static void put_ages(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    if (!p->seen_tokens || !f->stats.span_ns)
        return;
    kvc_text_addf(t, "\n  time to live  loses of reuse  hit rate left   %-27s%s\n",
                  "held at peak", "on average");
    for (size_t i = 0; i < KVC_PROFILE_AGES; i++) {
        double loss = kvc_traffic_ttl_loss(f, i);
        put_cell(t, kvc_traffic_age_name(p->age_limit_ns[i]), 14);
        put_cell(t, kvc_fmt_percent(loss), 16);
        put_cell(t, kvc_fmt_percent(kvc_traffic_bound(f) * (1 - loss)), 15);
        kvc_text_addf(t, "   %-27s%s\n", kvc_traffic_size(f, (double)p->held_peak_blocks[i]).s,
                      kvc_traffic_size(f, p->held_mean_blocks[i]).s);
        if (loss == 0)
            break;
    }
}

static void put_working_set(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    kvc_text_addf(t, "\n  working set     %-32s%s\n", "mean", "peak");
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        kvc_text_addf(t, "  in %8s     %-32s%s\n",
                      kvc_traffic_age_name(p->working_set[i].window_ns).s,
                      kvc_traffic_size(f, p->working_set[i].mean_blocks).s,
                      kvc_traffic_size(f, (double)p->working_set[i].peak_blocks).s);
        if (p->working_set[i].window_ns > f->stats.span_ns)
            break;
    }
    if (!f->kv_bytes_per_token)
        kvc_text_add(t, "  (--model NAME makes tokens into bytes)\n");
}

static void put_hot(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    if (!p->n_hot)
        return;
    kvc_text_addf(t, "\n  hottest prefixes%10s%10s%s%s%15s\n", "tokens", "requests",
                  p->by_session ? "  sessions" : "", p->tenants ? "  tenants" : "",
                  "of all reuse");
    for (uint32_t i = 0; i < p->n_hot; i++) {
        const struct kvc_hot_prefix *h = &p->hot[i];
        const char *kind = kvc_traffic_kind(f, h->kind);
        put_cell(t, kvc_fmt_count((uint64_t)h->from_block * f->stats.block_tokens), 14);
        kvc_text_add(t, " on ");
        put_cell(t, kvc_fmt_count((uint64_t)h->blocks * f->stats.block_tokens), 10);
        put_cell(t, kvc_fmt_count(h->requests), 10);
        if (p->by_session)
            put_cell(t, kvc_fmt_count(h->sessions), 10);
        if (p->tenants)
            put_cell(t, kvc_fmt_count(h->tenants), 9);
        put_cell(t, kvc_fmt_percent(kvc_ratio(h->seen_tokens, p->seen_tokens)), 15);
        kvc_text_addf(t, "  %s\n", kind ? kind : kvc_traffic_kind(f, KVC_CONTENT_DOCUMENT));
    }
    kvc_text_addf(t, "  %s of %s distinct blocks (%s) are touched by one request only\n",
                  kvc_fmt_count(p->one_hit_blocks).s, kvc_fmt_count(p->touched_blocks).s,
                  kvc_fmt_percent(kvc_ratio(p->one_hit_blocks, p->touched_blocks)).s);
}

static void put_offered(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    char text[200];
    bool covered = false;
    kvc_text_add(t, "\nSharing: unknown, not 0.");
    kvc_text_add(t, p->n_offered ? " Offered, of the input tokens, if\n" : "\n");
    for (uint32_t i = 0; i < p->n_offered; i++) {
        kvc_traffic_assumption(&p->offered[i], text, sizeof(text));
        put_cell(t, kvc_fmt_percent(kvc_ratio(p->offered[i].seen_tokens, f->stats.input_tokens)),
                 9);
        kvc_text_addf(t, "  %s%s\n", text,
                      kvc_traffic_believable(f, &p->offered[i]) ? "" : " *");
        covered |= !kvc_traffic_believable(f, &p->offered[i]);
    }
    if (covered)
        kvc_text_add(t, "  * nine prompts in ten are no longer than that: nothing would be left of "
                        "their own\n");
    kvc_text_add(t, "  (prompts of one model; ");
    kvc_text_add(t, !f->stats.sessions
                        ? "nothing can be offered for turns: the log names no sessions)\n"
                        : "a turn shorter than the prompt and answer before it carries nothing "
                          "over)\n");
}

static void put_sharing(struct kvc_text *t, const struct kvc_traffic *f)
{
    if (!f->stats.has_prefix) {
        put_offered(t, f);
        return;
    }
    kvc_text_addf(t, "\nSharing: %s of the input tokens were seen before (full blocks, infinite "
                     "cache)\n", kvc_fmt_percent(kvc_traffic_bound(f)).s);
    put_kinds(t, f);
    put_depths(t, f);
    put_ages(t, f);
    put_working_set(t, f);
    put_hot(t, f);
}

/* ---- groups ---- */

static const char *name_of(char **names, uint32_t i)
{
    return names && names[i][0] ? names[i] : "(no name)";
}

static void put_tenants(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    if (!p->n_top)
        return;
    kvc_text_addf(t, "\n%-30s%12s%18s%12s%12s%14s\n", "Tenants", "requests", "input tokens",
                  "hit bound", "own only", "from others");
    for (uint32_t i = 0; i < p->n_top; i++) {
        const struct kvc_tenant_profile *one = &p->tenants[p->top[i]];
        kvc_text_addf(t, "  %-28.28s", name_of(f->trace->tenant_names, p->top[i]));
        put_cell(t, kvc_fmt_count(one->requests), 12);
        put_cell(t, kvc_fmt_count(one->input_tokens), 18);
        double whole = kvc_traffic_judged(f, one);
        put_cell(t, kvc_fmt_percent((double)one->seen_tokens / whole), 12);
        put_cell(t, kvc_fmt_percent((double)one->own_seen_tokens / whole), 12);
        put_cell(t, kvc_fmt_percent((double)(one->seen_tokens - one->own_seen_tokens) / whole),
                 14);
        kvc_text_add(t, "\n");
    }
    if (f->trace->n_tenants > p->n_top)
        kvc_text_addf(t, "  .. and %s smaller ones (--json lists all)\n",
                      kvc_fmt_count(f->trace->n_tenants - p->n_top).s);
}

/* Who profits from whom: hits of the row's tenant on what the column's touched last. */
static void put_overlap(struct kvc_text *t, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    uint32_t n = p->n_top;
    bool others = f->trace->n_tenants > n;
    if (!f->stats.has_prefix || n < 2)
        return;
    kvc_text_add(t, "\n  of a row's hits, what it never had itself and a column's tenant (numbered "
                    "as above) had last\n  ");
    for (uint32_t k = 0; k < n; k++)
        kvc_text_addf(t, "%s%8u", k ? "" : "          ", (unsigned)k + 1);
    kvc_text_add(t, others ? "  others\n" : "\n");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t hits = p->tenants[p->top[i]].seen_tokens;
        kvc_text_addf(t, "  %2u %-7.7s", (unsigned)i + 1,
                      name_of(f->trace->tenant_names, p->top[i]));
        for (uint32_t k = 0; k < n + others; k++) {
            double share = kvc_ratio(p->from_tokens[i][k < n ? k : KVC_PROFILE_TENANTS], hits);
            if (k == i || isnan(share))
                kvc_text_add(t, "       -");
            else
                put_cell(t, kvc_fmt_percent(share), 8);
        }
        kvc_text_add(t, "\n");
    }
}

static void put_models(struct kvc_text *t, const struct kvc_traffic *f)
{
    const uint64_t *n = f->profile.model_requests;
    uint32_t count = f->trace->n_models;
    if (!n)
        return;
    kvc_text_addf(t, "\n%-30s%12s\n", "Models", "requests");
    for (uint32_t i = 0; i < count && i < 20; i++)
        kvc_text_addf(t, "  %-28.40s%12s\n", name_of(f->trace->model_names, i),
                      kvc_fmt_count(n[i]).s);
    if (count > 20)
        kvc_text_addf(t, "  .. and %s more (--json lists all)\n", kvc_fmt_count(count - 20).s);
}

void kvc_traffic_text(struct kvc_text *t, const struct kvc_traffic *f)
{
    put_head(t, f);
    put_findings(t, f);
    put_arrivals(t, f);
    put_lengths(t, f);
    put_sharing(t, f);
    kvc_traffic_breaks_text(t, f);
    put_tenants(t, f);
    put_overlap(t, f);
    put_models(t, f);
}
