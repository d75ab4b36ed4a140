/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/traffic.h"

#include "reports/reports.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum kvc_status kvc_traffic_make(struct kvc_traffic *out, const struct kvc_trace *trace,
                                 const char *title, uint64_t kv_bytes_per_token,
                                 struct kvc_error *err)
{
    memset(out, 0, sizeof(*out));
    enum kvc_status status = kvc_profile_trace(trace, &out->profile, err);
    if (status != KVC_OK)
        return status;
    out->trace = trace;
    out->title = title;
    out->import = trace->report;
    out->kv_bytes_per_token = kv_bytes_per_token;
    kvc_trace_stats(trace, &out->stats);
    kvc_traffic_findings(out);
    return KVC_OK;
}

void kvc_traffic_clear(struct kvc_traffic *traffic)
{
    kvc_profile_clear(&traffic->profile);
}

/* ---- derived figures ---- */

double kvc_traffic_bound(const struct kvc_traffic *f)
{
    if (!f->stats.has_prefix)
        return (double)NAN;
    return kvc_ratio(f->profile.seen_tokens, f->stats.input_tokens);
}

double kvc_traffic_judged(const struct kvc_traffic *f, const struct kvc_tenant_profile *one)
{
    bool judged = f->stats.has_prefix && one->unknown_tokens < one->input_tokens;
    return judged ? (double)one->input_tokens : (double)NAN;
}

double kvc_traffic_measured(const struct kvc_traffic *f)
{
    return kvc_ratio(f->profile.cached_tokens, f->profile.cached_of_tokens);
}

double kvc_traffic_ttl_loss(const struct kvc_traffic *f, size_t age)
{
    const struct kvc_profile *p = &f->profile;
    return kvc_ratio(p->seen_tokens - p->age_tokens[age], p->seen_tokens);
}

size_t kvc_traffic_age(const struct kvc_traffic *f, uint64_t seconds)
{
    size_t i = 0;
    while (i + 1 < KVC_PROFILE_AGES && f->profile.age_limit_ns[i] < seconds * 1000000000u)
        i++;
    return i;
}

size_t kvc_traffic_ttl_for(const struct kvc_traffic *f, double loss)
{
    size_t i = 0;
    while (i + 1 < KVC_PROFILE_AGES && kvc_traffic_ttl_loss(f, i) > loss)
        i++;
    return i;
}

/* ---- words ---- */

struct kvc_str kvc_traffic_size(const struct kvc_traffic *f, double blocks)
{
    struct kvc_str out;
    double tokens = blocks * f->stats.block_tokens;
    if (f->kv_bytes_per_token)
        snprintf(out.s, sizeof(out.s), "%.18s tokens (%.18s)", kvc_fmt_tokens(tokens).s,
                 kvc_fmt_bytes(tokens * (double)f->kv_bytes_per_token).s);
    else
        snprintf(out.s, sizeof(out.s), "%.20s tokens", kvc_fmt_tokens(tokens).s);
    return out;
}

struct kvc_str kvc_traffic_age_name(uint64_t ns)
{
    static const struct {
        uint64_t s;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    struct kvc_str out;
    uint64_t s = ns / 1000000000u;
    size_t i = 0;
    while (i < 3 && (s < units[i].s || s % units[i].s))
        i++;
    snprintf(out.s, sizeof(out.s), "%.20s %s", kvc_fmt_count(s / units[i].s).s, units[i].unit);
    return out;
}

const char *kvc_traffic_kind(const struct kvc_traffic *f, enum kvc_content kind)
{
    bool by = f->profile.by_session;
    switch (kind) {
    case KVC_CONTENT_SYSTEM:
        return "system prompts and tools";
    case KVC_CONTENT_DOCUMENT:
        return by ? "shared documents" : "documents or history";
    case KVC_CONTENT_HISTORY:
        return by ? "a session's own history" : NULL;
    case KVC_CONTENT_NEW:
        return "new";
    case KVC_CONTENT_PARTIAL:
        return "behind the last full block";
    case KVC_CONTENT_UNKNOWN:
        return "of prompts without ids";
    default:
        return NULL;
    }
}

void kvc_traffic_assumption(const struct kvc_offered *o, char *buf, size_t size)
{
    char start[96] = "";
    if (o->shared_tokens)
        snprintf(start, sizeof(start), "prompts begin with the same %.40s tokens",
                 kvc_fmt_count(o->shared_tokens).s);
    static const char *const turns[] = {
        "", "turns repeat the prompt before, no answers",
        "turns repeat the prompt and answer before"};
    snprintf(buf, size, "%s%s%s", start, start[0] && o->carry ? "; " : "", turns[o->carry]);
}

bool kvc_traffic_believable(const struct kvc_traffic *f, const struct kvc_offered *o)
{
    return o->covered <= f->stats.requests - f->stats.requests / 10;
}
