/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/reports.h"
#include "reports/traffic.h"

#include <math.h>

static double rate(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void put_dist(struct kvc_json *j, const char *key, const struct kvc_dist *d)
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

/* ---- arrivals and lengths ---- */

static void put_arrivals(struct kvc_json *j, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    if (!f->stats.span_ns) { /* one moment has no rate */
        kvc_json_null(j, "arrivals");
        return;
    }
    kvc_json_open_object(j, "arrivals");
    kvc_json_double(j, "requests_per_s", p->requests_per_s);
    kvc_json_double(j, "peak_minute_requests_per_s", p->peak_requests_per_s);
    kvc_json_double(j, "peak_minute_start_s", 60.0 * (double)p->peak_minute);
    kvc_json_double(j, "gap_variation", p->gap_cv);
    kvc_json_open_array(j, "counts");
    for (size_t i = 0; i < KVC_PROFILE_COUNTS; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_double(j, "window_s", seconds(p->counts[i].window_ns));
        kvc_json_u64(j, "windows", p->counts[i].windows);
        kvc_json_double(j, "dispersion", p->counts[i].dispersion);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_double(j, "start_requests_per_s", p->start_per_s);
    kvc_json_double(j, "steady_requests_per_s", p->steady_per_s);
    kvc_json_double(j, "rate_window_s", seconds(p->rate_window_ns));
    kvc_json_open_array(j, "requests_in_window");
    for (uint32_t i = 0; i < p->n_rates; i++)
        kvc_json_u64(j, NULL, p->requests_in[i]);
    kvc_json_close(j);
    kvc_json_close(j);
}

static void put_classes(struct kvc_json *j, const char *key, const uint64_t *requests,
                        const uint64_t *tokens)
{
    kvc_json_open_array(j, key);
    for (uint32_t i = 0; i < KVC_PROFILE_LENGTHS; i++) {
        if (!requests[i])
            continue;
        kvc_json_open_object(j, NULL);
        kvc_json_u64(j, "from_tokens", i ? (uint64_t)1 << (i - 1) : 0);
        kvc_json_u64(j, "below_tokens",
                     i < KVC_PROFILE_LENGTHS - 1 ? (uint64_t)1 << i : (uint64_t)1 << 32);
        kvc_json_u64(j, "requests", requests[i]);
        if (tokens)
            kvc_json_u64(j, "tokens", tokens[i]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_rows(struct kvc_json *j, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    kvc_json_open_object(j, "outputs");
    kvc_json_u64(j, "known", p->outputs_known);
    kvc_json_u64(j, "unknown", f->stats.requests - p->outputs_known);
    kvc_json_u64(j, "zero", p->zero_output);
    kvc_json_u64(j, "unknown_length", p->unknown_output);
    kvc_json_close(j);
    kvc_json_open_object(j, "rows");
    kvc_json_u64(j, "failed", p->failed);
    kvc_json_u64(j, "cancelled", p->cancelled);
    kvc_json_u64(j, "in_sessions", p->in_sessions);
    kvc_json_u64(j, "shrunken_turns", p->shrunken_turns);
    kvc_json_close(j);
    if (!p->cached_rows) {
        kvc_json_null(j, "measured");
        return;
    }
    kvc_json_open_object(j, "measured");
    kvc_json_u64(j, "rows", p->cached_rows);
    kvc_json_u64(j, "input_tokens", p->cached_of_tokens);
    kvc_json_u64(j, "cached_tokens", p->cached_tokens);
    kvc_json_double(j, "token_hit_rate", kvc_traffic_measured(f));
    kvc_json_close(j);
}

/* ---- sharing ---- */

/* Null where a log without sessions does not tell. */
static void put_kinds(struct kvc_json *j, const struct kvc_traffic *f, const uint64_t *tokens)
{
    bool by = f->profile.by_session;
    kvc_json_u64(j, "system_tokens", tokens[KVC_CONTENT_SYSTEM]);
    if (by) {
        kvc_json_u64(j, "document_tokens", tokens[KVC_CONTENT_DOCUMENT]);
        kvc_json_u64(j, "history_tokens", tokens[KVC_CONTENT_HISTORY]);
    } else {
        kvc_json_null(j, "document_tokens");
        kvc_json_null(j, "history_tokens");
    }
    kvc_json_u64(j, "document_or_history_tokens",
                 tokens[KVC_CONTENT_DOCUMENT] + tokens[KVC_CONTENT_HISTORY]);
    kvc_json_u64(j, "new_tokens", tokens[KVC_CONTENT_NEW]);
}

static void put_depths(struct kvc_json *j, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    kvc_json_open_array(j, "by_depth");
    for (uint32_t i = 0; i < p->n_depths; i++) {
        uint64_t from = i ? (uint64_t)1 << (i - 1) : 0;
        kvc_json_open_object(j, NULL);
        kvc_json_u64(j, "from_block", from);
        kvc_json_u64(j, "touches", p->depth_touches[i]);
        kvc_json_u64(j, "reused", p->depth_reused[i]);
        kvc_json_u64(j, "from_token", from * f->stats.block_tokens);
        put_kinds(j, f, p->depth_tokens[i]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_size(struct kvc_json *j, const struct kvc_traffic *f, const char *tokens_key,
                     const char *bytes_key, double blocks)
{
    double tokens = blocks * f->stats.block_tokens;
    kvc_json_double(j, tokens_key, tokens);
    if (f->kv_bytes_per_token)
        kvc_json_double(j, bytes_key, tokens * (double)f->kv_bytes_per_token);
    else
        kvc_json_null(j, bytes_key);
}

static void put_ages(struct kvc_json *j, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    kvc_json_open_array(j, "reuse_age");
    for (size_t i = 0; i < KVC_PROFILE_AGES; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_double(j, "within_s", seconds(p->age_limit_ns[i]));
        kvc_json_u64(j, "touches", p->age_touches[i]);
        kvc_json_u64(j, "hit_tokens", p->age_tokens[i]);
        kvc_json_double(j, "ttl_lost_share", kvc_traffic_ttl_loss(f, i));
        put_size(j, f, "held_mean_tokens", "held_mean_bytes", p->held_mean_blocks[i]);
        put_size(j, f, "held_peak_tokens", "held_peak_bytes", (double)p->held_peak_blocks[i]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_open_array(j, "working_set");
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_double(j, "window_s", seconds(p->working_set[i].window_ns));
        kvc_json_double(j, "mean_blocks", p->working_set[i].mean_blocks);
        kvc_json_u64(j, "peak_blocks", p->working_set[i].peak_blocks);
        put_size(j, f, "mean_tokens", "mean_bytes", p->working_set[i].mean_blocks);
        put_size(j, f, "peak_tokens", "peak_bytes", (double)p->working_set[i].peak_blocks);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_hot(struct kvc_json *j, const struct kvc_traffic *f)
{
    static const char *const kinds[] = {"system", "document", "history"};
    const struct kvc_profile *p = &f->profile;
    kvc_json_open_array(j, "hottest");
    for (uint32_t i = 0; i < p->n_hot; i++) {
        const struct kvc_hot_prefix *h = &p->hot[i];
        kvc_json_open_object(j, NULL);
        kvc_json_u64(j, "from_token", (uint64_t)h->from_block * f->stats.block_tokens);
        kvc_json_u64(j, "tokens", (uint64_t)h->blocks * f->stats.block_tokens);
        kvc_json_u64(j, "requests", h->requests);
        if (p->by_session)
            kvc_json_u64(j, "sessions", h->sessions);
        else
            kvc_json_null(j, "sessions");
        kvc_json_u64(j, "tenants", h->tenants);
        kvc_json_u64(j, "hit_tokens", h->seen_tokens);
        kvc_json_double(j, "share_of_reuse", rate(h->seen_tokens, p->seen_tokens));
        kvc_json_string(j, "kind", !p->by_session && h->kind != KVC_CONTENT_SYSTEM
                                       ? "document_or_history" : kinds[h->kind]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_sharing(struct kvc_json *j, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    if (!f->stats.has_prefix) {
        kvc_json_null(j, "sharing");
        return;
    }
    kvc_json_open_object(j, "sharing");
    kvc_json_u64(j, "reused_touches", p->reused_touches);
    kvc_json_double(j, "reused_share", rate(p->reused_touches, f->stats.block_touches));
    kvc_json_u64(j, "hit_tokens", p->seen_tokens);
    kvc_json_double(j, "token_hit_rate", kvc_traffic_bound(f));
    kvc_json_u64(j, "one_hit_blocks", p->one_hit_blocks);
    kvc_json_double(j, "one_hit_share", rate(p->one_hit_blocks, p->touched_blocks));
    kvc_json_u64(j, "outputs_known", p->outputs_known);
    kvc_json_open_object(j, "kinds");
    kvc_json_bool(j, "by_session", p->by_session);
    put_kinds(j, f, p->content_tokens);
    kvc_json_u64(j, "partial_tokens", p->content_tokens[KVC_CONTENT_PARTIAL]);
    kvc_json_u64(j, "unknown_tokens", p->content_tokens[KVC_CONTENT_UNKNOWN]);
    kvc_json_u64(j, "system_prompts", p->system_roots);
    kvc_json_close(j);
    put_depths(j, f);
    put_ages(j, f);
    put_hot(j, f);
    kvc_json_close(j);
}

static void put_offered(struct kvc_json *j, const struct kvc_traffic *f)
{
    static const char *const carries[] = {"none", "prompt", "prompt_and_answer"};
    const struct kvc_profile *p = &f->profile;
    char text[200];
    if (!p->n_offered) {
        kvc_json_null(j, "offered");
        return;
    }
    kvc_json_open_array(j, "offered");
    for (uint32_t i = 0; i < p->n_offered; i++) {
        const struct kvc_offered *o = &p->offered[i];
        kvc_traffic_assumption(o, text, sizeof(text));
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "assumption", text);
        kvc_json_u64(j, "shared_tokens", o->shared_tokens);
        kvc_json_string(j, "turns_carry", carries[o->carry]);
        kvc_json_u64(j, "hit_tokens", o->seen_tokens);
        kvc_json_double(j, "token_hit_rate", kvc_ratio(o->seen_tokens, f->stats.input_tokens));
        kvc_json_u64(j, "prompts_covered", o->covered);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

/* ---- groups ---- */

static void put_tenants(struct kvc_json *j, const struct kvc_traffic *f)
{
    const struct kvc_trace *t = f->trace;
    const struct kvc_profile *p = &f->profile;
    kvc_json_open_array(j, "tenants");
    for (uint32_t i = 0; p->tenant_requests && i < t->n_tenants; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", t->tenant_names ? t->tenant_names[i] : NULL);
        kvc_json_u64(j, "requests", p->tenant_requests[i]);
        if (p->tenants) {
            const struct kvc_tenant_profile *one = &p->tenants[i];
            kvc_json_u64(j, "input_tokens", one->input_tokens);
            if (!isnan(kvc_traffic_judged(f, one))) {
                kvc_json_u64(j, "hit_tokens", one->seen_tokens);
                kvc_json_u64(j, "own_hit_tokens", one->own_seen_tokens);
            } else {
                kvc_json_null(j, "hit_tokens");
                kvc_json_null(j, "own_hit_tokens");
            }
        }
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

/* Rows and columns: the tenants named, then, where there are more, all the others together. */
static void put_overlap(struct kvc_json *j, const struct kvc_traffic *f)
{
    const struct kvc_trace *t = f->trace;
    const struct kvc_profile *p = &f->profile;
    uint32_t n = p->n_top, others = t->n_tenants > n;
    if (!f->stats.has_prefix || n < 2) {
        kvc_json_null(j, "overlap");
        return;
    }
    kvc_json_open_object(j, "overlap");
    kvc_json_open_array(j, "tenants");
    for (uint32_t i = 0; i < n; i++)
        kvc_json_string(j, NULL, t->tenant_names ? t->tenant_names[p->top[i]] : NULL);
    kvc_json_close(j);
    kvc_json_bool(j, "others", others);
    for (int what = 0; what < 2; what++) {
        kvc_json_open_array(j, what ? "hit_tokens_from" : "tokens_of_both");
        for (uint32_t i = 0; i < n + (what ? 0 : others); i++) {
            uint32_t a = i < n ? i : KVC_PROFILE_TENANTS;
            kvc_json_open_array(j, NULL);
            for (uint32_t k = 0; k < n + others; k++) {
                uint32_t b = k < n ? k : KVC_PROFILE_TENANTS;
                kvc_json_u64(j, NULL, what ? p->from_tokens[a][b]
                                           : p->both_blocks[a][b] * f->stats.block_tokens);
            }
            kvc_json_close(j);
        }
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_models(struct kvc_json *j, const struct kvc_traffic *f)
{
    kvc_json_open_array(j, "models");
    for (uint32_t i = 0; f->profile.model_requests && i < f->trace->n_models; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", f->trace->model_names ? f->trace->model_names[i] : NULL);
        kvc_json_u64(j, "requests", f->profile.model_requests[i]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

void kvc_traffic_json(struct kvc_json *j, const struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    put_arrivals(j, f);
    put_dist(j, "input_tokens", &p->input_tokens);
    put_dist(j, "output_tokens", &p->output_tokens);
    put_dist(j, "turns", &p->turns);
    put_dist(j, "think_s", &p->think_s);
    put_classes(j, "input_classes", p->input_requests, p->input_sum);
    put_classes(j, "output_classes", p->output_requests, NULL);
    put_rows(j, f);
    put_sharing(j, f);
    put_offered(j, f);
    kvc_traffic_breaks_json(j, f);
    put_tenants(j, f);
    put_overlap(j, f);
    put_models(j, f);
    if (f->kv_bytes_per_token)
        kvc_json_u64(j, "kv_bytes_per_token", f->kv_bytes_per_token);
    else
        kvc_json_null(j, "kv_bytes_per_token");
    kvc_json_open_array(j, "findings");
    for (uint32_t i = 0; i < f->n_findings; i++)
        kvc_json_string(j, NULL, f->findings[i]);
    kvc_json_close(j);
}
