/* SPDX-License-Identifier: Apache-2.0
 * What follows from a trace's profile, in sentences for somebody who has to buy or run a cache. */
#include "reports/reports.h"
#include "reports/traffic.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* From where on something is worth a sentence; a matter of taste, so that all are here. Below them
 * the figures are in the sections all the same. */
#define MOSTLY 0.5           /* one kind of reuse is more than the others together */
#define LOCAL_IDS 0.98       /* of the reuse is history: real agents share their system prompt .. */
#define LOCAL_SESSIONS 10    /* .. and among fewer sessions none may */
#define TTL_LOSS 0.01        /* of the reuse, too little to pay memory for */
#define ONE_HIT 0.25         /* of the blocks: a quarter of all that is written */
#define BURSTY 3             /* times the variance of random arrivals */

KVC_PRINTF(2, 3)
static void say(struct kvc_traffic *f, const char *fmt, ...)
{
    va_list args;
    if (f->n_findings == KVC_TRAFFIC_FINDINGS)
        return;
    va_start(args, fmt);
    vsnprintf(f->findings[f->n_findings++], sizeof(f->findings[0]), fmt, args);
    va_end(args);
}

static void say_offered(struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    uint64_t low = UINT64_MAX, high = 0;
    bool covered = false;
    for (uint32_t i = 0; i < p->n_offered; i++) {
        if (!kvc_traffic_believable(f, &p->offered[i])) {
            covered = true;
            continue;
        }
        low = p->offered[i].seen_tokens < low ? p->offered[i].seen_tokens : low;
        high = p->offered[i].seen_tokens > high ? p->offered[i].seen_tokens : high;
    }
    say(f, "The log does not say which prompts share a prefix: hit rates are unknown, not 0.");
    if (!high || !f->stats.input_tokens)
        return;
    double top = kvc_ratio(high, f->stats.input_tokens), measured = kvc_traffic_measured(f);
    say(f, "Under the assumptions offered below, a cache without limits would serve %s%.24s%s%.24s "
           "of the input tokens%s. %s",
        low < high ? "between " : "",
        low < high ? kvc_fmt_percent(kvc_ratio(low, f->stats.input_tokens)).s : "",
        low < high ? " and " : "", kvc_fmt_percent(top).s,
        covered ? ", those left out that leave nine prompts in ten nothing of their own" : "",
        isnan(measured)  ? "Nothing in the log tells which of them holds."
        : measured > top ? "The measured rate lies above them all: prompts share more than that."
                         : "The measured rate tells which of them can hold.");
}

static void say_bound(struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    uint64_t unknown = p->content_tokens[KVC_CONTENT_UNKNOWN];
    say(f, "At most %.24s of the input tokens can come from a cache, whatever its size and policy; "
           "the rest is new, or shorter than a block.", kvc_fmt_percent(kvc_traffic_bound(f)).s);
    if (unknown)
        say(f, "%.24s of the input tokens belong to prompts without ids. Their reuse is unknown "
               "and counts as none, so the true bound may be higher.",
            kvc_fmt_percent(kvc_ratio(unknown, f->stats.input_tokens)).s);
}

static void say_kinds(struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    double system = kvc_ratio(p->content_tokens[KVC_CONTENT_SYSTEM], p->seen_tokens);
    double document = kvc_ratio(p->content_tokens[KVC_CONTENT_DOCUMENT], p->seen_tokens);
    double history = kvc_ratio(p->content_tokens[KVC_CONTENT_HISTORY], p->seen_tokens);
    if (!p->seen_tokens)
        return;
    if (p->by_session && f->stats.sessions >= LOCAL_SESSIONS && history > LOCAL_IDS &&
        !kvc_traffic_has_breaks(f))
        say(f, "Hardly anything is shared between sessions. Logs look like that when block ids are "
               "local to a session, as in kv-cache-tester: a system prompt that all have is then "
               "there but can't be seen.");
    if (!p->by_session)
        say(f, "Of what is reused, %.24s is system prompts and tools; the rest is documents or "
               "histories, which a log without sessions does not tell apart.",
            kvc_fmt_percent(system).s);
    else if (history >= MOSTLY)
        say(f, "%.24s of the reuse is a session's own history: keep a session on one replica or "
               "share the store, and size for the pauses between turns.",
            kvc_fmt_percent(history).s);
    else if (document >= MOSTLY)
        say(f, "%.24s of the reuse is documents that several sessions ask for: route by prefix or "
               "share the store, or each replica computes its own copy.",
            kvc_fmt_percent(document).s);
    else if (system >= MOSTLY)
        say(f, "%.24s of the reuse is system prompts and tools: few bytes that every replica's "
               "HBM holds by itself; a larger cache adds little.", kvc_fmt_percent(system).s);
    else
        say(f, "The reuse is mixed: %.24s system prompts and tools, %.24s shared documents, %.24s "
               "a session's own history.",
            kvc_fmt_percent(system).s, kvc_fmt_percent(document).s, kvc_fmt_percent(history).s);
}

static void say_ttl(struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    size_t five = kvc_traffic_age(f, 300), hour = kvc_traffic_age(f, 3600);
    size_t enough = kvc_traffic_ttl_for(f, TTL_LOSS);
    if (!p->seen_tokens || !f->stats.span_ns)
        return;
    if (f->stats.span_ns > p->age_limit_ns[hour])
        say(f, "A time to live of 5 min loses %.24s of the reuse, one of 1 h %.24s.",
            kvc_fmt_percent(kvc_traffic_ttl_loss(f, five)).s,
            kvc_fmt_percent(kvc_traffic_ttl_loss(f, hour)).s);
    else
        say(f, "A time to live of 5 min loses %.24s of the reuse. The log covers %.24s only: reuse "
               "after longer pauses does not show.",
            kvc_fmt_percent(kvc_traffic_ttl_loss(f, five)).s,
            kvc_fmt_seconds((double)f->stats.span_ns * 1e-9).s);
    if (kvc_traffic_ttl_loss(f, enough) <= TTL_LOSS)
        say(f, "To lose no more than %.24s of it, keep KV for %.20s after its last use: at peak "
               "%.47s, %.47s on average.", kvc_fmt_percent(TTL_LOSS).s,
            kvc_traffic_age_name(p->age_limit_ns[enough]).s,
            kvc_traffic_size(f, (double)p->held_peak_blocks[enough]).s,
            kvc_traffic_size(f, p->held_mean_blocks[enough]).s);
}

static void say_one_hit(struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    double once = kvc_ratio(p->one_hit_blocks, p->touched_blocks);
    if (once >= ONE_HIT)
        say(f, "%.24s of all distinct blocks are used by one request only: written through to a "
               "drive or a remote store, they are never read back. Admit on second sight.",
            kvc_fmt_percent(once).s);
}

static void say_arrivals(struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    double dispersion = p->counts[1].dispersion;
    if (f->stats.batch_period_ns)
        say(f, "Arrivals come in steps of %.20s, most likely those of the log's clock: spread them "
               "(arrivals.spread) before you believe queueing times below that.",
            kvc_fmt_seconds((double)f->stats.batch_period_ns * 1e-9).s);
    else if (dispersion >= BURSTY)
        say(f, "Arrivals are bursty: counts in 10 s vary %.24s times as much as random ones, so "
               "size for the peak, not the mean.", kvc_fmt_general(dispersion).s);
    if (p->slow_start)
        say(f, "The log starts slowly: %.24s requests/s in its first tenth, %.24s in its second "
               "half (%.24s times as many). Leave the start out (import --window), or rates and "
               "caches look smaller than they are.", kvc_fmt_general(p->start_per_s).s,
            kvc_fmt_general(p->steady_per_s).s,
            kvc_fmt_general(p->steady_per_s / p->start_per_s).s);
}

static void say_measured(struct kvc_traffic *f)
{
    double measured = kvc_traffic_measured(f), gap = kvc_traffic_bound(f) - measured;
    if (isnan(measured))
        return;
    if (isnan(gap))
        say(f, "The serving system states that %.24s of the prompt tokens were cached, over %.24s "
               "rows: what its cache reached, so that at least this can be reached.",
            kvc_fmt_percent(measured).s, kvc_fmt_count(f->profile.cached_rows).s);
    else if (gap > 0)
        say(f, "The serving system states %.24s cached, over %.24s rows: %.24s below the bound are "
               "there to gain.", kvc_fmt_percent(measured).s,
            kvc_fmt_count(f->profile.cached_rows).s, kvc_fmt_points(gap).s);
    else
        say(f, "The serving system states %.24s cached, over %.24s rows: more than the log can "
               "explain. Its cache was warm before the log began, or shares more than the ids "
               "show.", kvc_fmt_percent(measured).s, kvc_fmt_count(f->profile.cached_rows).s);
}

static void say_tenants(struct kvc_traffic *f)
{
    const struct kvc_profile *p = &f->profile;
    uint64_t lost = 0;
    for (uint32_t i = 0; p->tenants && i < f->trace->n_tenants; i++)
        lost += p->tenants[i].seen_tokens - p->tenants[i].own_seen_tokens;
    if (p->tenants && f->trace->n_tenants > 1 && p->seen_tokens)
        say(f, "Keeping tenants apart (a salt each) would lose %.24s of the reuse.",
            kvc_fmt_percent(kvc_ratio(lost, p->seen_tokens)).s);
}

static void say_breaks(struct kvc_traffic *f)
{
    char text[sizeof(f->findings[0])];
    kvc_traffic_breaks_finding(f, text, sizeof(text));
    if (text[0])
        say(f, "%s", text);
}

void kvc_traffic_findings(struct kvc_traffic *f)
{
    f->n_findings = 0;
    if (!f->stats.requests)
        return;
    if (!f->stats.has_prefix) {
        say_offered(f);
    } else {
        say_bound(f);
        say_breaks(f);
        say_kinds(f);
        say_ttl(f);
        say_one_hit(f);
    }
    say_measured(f);
    if (f->stats.has_prefix)
        say_tenants(f);
    say_arrivals(f);
}
