/* SPDX-License-Identifier: Apache-2.0
 * The sentences that sum a run up for someone who reads nothing else. Each names the figures it
 * rests on, and "it does not pay" is as likely an answer as any. */
#include "reports/reports.h"

#include "base/units.h"

#include <math.h>
#include <string.h>

#define LITTLE 0.02 /* of the bill: below it a saving is lost in the bands of its figures */

static void put_tier_shares(struct kvc_text *t, const struct kvc_findings *f,
                            const struct kvc_result *r)
{
    for (uint32_t i = 0; i < r->n_tiers; i++)
        kvc_text_addf(t, "%s%s %s", i ? ", " : "", kvc_tier_title(r->tiers[i].name),
                      kvc_fmt_percent(f->worth[i].hit_rate).s);
}

/* Held or missed, and whether all of the band says so. */
static void put_aim(struct kvc_text *t, const struct kvc_result *r, const char *what, double is,
                    double aim, const char *band_name)
{
    const struct kvc_band *band = kvc_band_find(r, band_name);
    if (isnan(aim))
        return;
    bool held = is <= aim;
    kvc_text_addf(t, " The aim of %s p99 %s is %s%s.", what, kvc_fmt_ms(aim).s,
                  held ? "held" : "missed",
                  band && (held ? band->high > aim : band->low <= aim)
                      ? ", but not over the whole band" : "");
}

/* What the time goes into decides what helps. */
static void put_main_part(struct kvc_text *t, const struct kvc_result *r)
{
    const struct { double ms; const char *text; } parts[] = {
        {r->ttft_part_queue_ms, "waiting for an engine: more or faster replicas shorten it, and "
                                "the band, taken from engines that keep up, is too narrow for it"},
        {r->ttft_part_prefill_ms, "the prompt's own prefill: hits and faster GPUs shorten it, "
                                  "more replicas hardly do"},
        {r->ttft_part_load_ms, "loading from lower tiers: their links are the limit"},
        {r->ttft_part_host_ms, "the host's: tokenizing, scheduling, answering"},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].ms > r->ttft_ms.mean / 2)
            kvc_text_addf(t, " Most of the mean TTFT (%s) is %s.",
                          kvc_fmt_percent(parts[i].ms / r->ttft_ms.mean).s, parts[i].text);
    }
}

static void put_ttft(struct kvc_text *t, const struct kvc_findings *f, const struct kvc_result *r)
{
    if (!r->ttft_ms.count) {
        kvc_text_add(t, r->arrived && !r->measured
                            ? "All requests came within the warm-up, so there is no TTFT to tell."
                            : "No request got a first token, so there is no TTFT to tell.");
        return;
    }
    kvc_text_addf(t, "TTFT is %s at the median and %s at the 99th percentile",
                  kvc_fmt_ms(r->ttft_ms.p50).s, kvc_fmt_ms(r->ttft_ms.p99).s);
    const struct kvc_band *band = kvc_band_find(r, "ttft_ms.p99");
    if (band)
        kvc_text_addf(t, " (80 %% band %s to %s)", kvc_fmt_ms(band->low).s,
                      kvc_fmt_ms(band->high).s);
    kvc_text_add(t, ".");
    for (uint32_t i = 0; i < r->n_warnings; i++) {
        if (strcmp(r->warnings[i].code, "overloaded") == 0)
            kvc_text_add(t, " The cluster is overloaded: with more of this traffic latencies only "
                            "grow.");
    }
    put_main_part(t, r);
    put_aim(t, r, "TTFT", r->ttft_ms.p99, f->aim_ttft_p99_ms, "ttft_ms.p99");
    if (r->tpot_ms.count)
        put_aim(t, r, "TPOT", r->tpot_ms.p99, f->aim_tpot_p99_ms, "tpot_ms.p99");
}

static void say_what_it_does(struct kvc_text *t, const struct kvc_findings *f,
                             const struct kvc_result *r)
{
    if (!r->arrived) {
        kvc_text_add(t, "The trace holds no requests, so there is nothing to forecast.");
        return;
    }
    if (isnan(f->hit_rate)) {
        kvc_text_add(t, "The trace does not tell which prompts share a beginning, so what a cache "
                        "would serve is unknown (not zero). ");
    } else {
        kvc_text_addf(t, "Caches serve %s of the %s prompt tokens (",
                      kvc_fmt_percent(f->hit_rate).s,
                      kvc_fmt_tokens((double)r->input_tokens).s);
        put_tier_shares(t, f, r);
        kvc_text_add(t, "). ");
    }
    put_ttft(t, f, r);
}

/* What the hits of each lower tier stand for, and what the tier costs. */
static void put_tier_worth(struct kvc_text *t, const struct kvc_findings *f,
                           const struct kvc_result *r)
{
    double net = 0;
    for (uint32_t i = 1; i < r->n_tiers; i++) {
        const struct kvc_worth *w = &f->worth[i];
        if (isnan(w->usd_saved_per_hour))
            continue;
        kvc_text_addf(t, " %s serves prefill work worth %s an hour",
                      kvc_tier_title(r->tiers[i].name), kvc_fmt_usd(w->usd_saved_per_hour).s);
        if (!isnan(w->usd_cost_per_hour))
            kvc_text_addf(t, " for %s%s", kvc_fmt_usd(w->usd_cost_per_hour).s,
                          w->usd_saved_per_hour < w->usd_cost_per_hour ? ": it does not pay" : "");
        kvc_text_add(t, ".");
        if (i == 1 && f->dram_copies_hbm && w->usd_saved_per_hour < w->usd_cost_per_hour)
            kvc_text_add(t, " Written through, DRAM of less than twice HBM's size holds mostly "
                            "copies of HBM's blocks; with tiers.dram.write=on-evict it holds "
                            "others.");
        net += w->usd_saved_per_hour - (isnan(w->usd_cost_per_hour) ? 0 : w->usd_cost_per_hour);
    }
    /* by a tenth: sums that differ by less are the same to a reader */
    if (net * KVC_HOURS_PER_MONTH > 1.1 * r->cost.saving_vs_hbm_only_usd_per_month && net > 0)
        kvc_text_add(t, " Together that is more than the saving: without them HBM would serve "
                        "part of it.");
}

/* Dollars an hour that serving all that can be served would save. */
static double most_to_gain(const struct kvc_findings *f)
{
    return f->bounds ? (f->rungs[0].rate - f->hit_rate) * 100 * f->point_usd_per_hour
                     : (double)NAN;
}

static void say_no_lower_tier(struct kvc_text *t, const struct kvc_findings *f,
                              const struct kvc_result *r)
{
    double gain = most_to_gain(f);
    kvc_text_add(t, "There is no tier below HBM in this run.");
    if (!isnan(gain))
        kvc_text_addf(t, " Tiers of any size could save prefill work worth at most %s an hour, %s "
                         "of the bill, before their own cost.",
                      kvc_fmt_usd(gain).s, kvc_fmt_percent(gain / r->cost.usd_per_hour).s);
    if (!isnan(f->content_95_bytes) && r->n_tiers)
        kvc_text_addf(t, " LRU in one shared pool gets 95 %% of what it can reach with %s; HBM "
                         "holds %s.",
                      kvc_fmt_bytes(f->content_95_bytes).s,
                      kvc_fmt_bytes((double)r->tiers[0].capacity_bytes).s);
}

/* The saving compares with the same run without lower tiers; it is money only where the freed GPU
 * time is used. */
static void say_whether_it_pays(struct kvc_text *t, const struct kvc_findings *f,
                                const struct kvc_result *r)
{
    if (!r->arrived)
        return;
    if (r->n_tiers < 2) {
        say_no_lower_tier(t, f, r);
        return;
    }
    double saving = r->cost.saving_vs_hbm_only_usd_per_month;
    double month = r->cost.usd_per_hour * KVC_HOURS_PER_MONTH;
    if (!r->has_prefix || isnan(saving))
        kvc_text_add(t, "Whether the tiers below HBM pay is unknown: the same run with HBM only "
                        "would tell.");
    else if (f->lower_hit_rate == 0)
        kvc_text_add(t, "The tiers below HBM do not pay for this traffic: they served nothing.");
    else if (saving <= 0)
        kvc_text_addf(t, "The tiers below HBM do not pay for this traffic: they cost %s a month "
                         "more than the GPU time they free.",
                      kvc_fmt_usd(-saving).s);
    else
        kvc_text_addf(t, "The tiers below HBM save %s a month (%s of the bill) after their own "
                         "cost, against the same run with HBM only, if the GPU time they free is "
                         "put to use.",
                      kvc_fmt_usd(saving).s, kvc_fmt_percent(saving / month).s);
    if (f->lower_hit_rate > 0)
        put_tier_worth(t, f, r);
}

static const char *remedy(const struct kvc_findings *f)
{
    switch (f->top_cause) {
    case KVC_MISS_ALIGNMENT:
        return "smaller pages, or prompts padded to page edges";
    case KVC_MISS_EVICTED:
        return "more capacity or a better eviction order";
    case KVC_MISS_TTL:
        return "a longer time to live";
    case KVC_MISS_OTHER_REPLICA:
        return f->prefix_router ? "a store shared by the replicas"
                                : "prefix-aware routing or a store shared by the replicas";
    case KVC_MISS_SALTED:
        return "sharing between tenants, where that is allowed";
    case KVC_MISS_NOT_READY:
        return "holding back requests that share a prefix in computation";
    case KVC_MISS_FAILED:
        return "a configuration that can serve these requests";
    default:
        return NULL;
    }
}

static void put_bounds(struct kvc_text *t, const struct kvc_findings *f)
{
    const double shown = 0.0005; /* less would print as 0.0 points */
    bool any = false, memory = false;
    kvc_text_addf(t, "No cache of any size can serve more than %s",
                  kvc_fmt_percent(f->rungs[0].rate).s);
    if (f->rungs[0].rate - f->hit_rate < shown) {
        kvc_text_add(t, ", which this run reaches.");
        return;
    }
    kvc_text_addf(t, ", %s above what this run reaches: ",
                  kvc_fmt_points(f->rungs[0].rate - f->hit_rate).s);
    for (uint32_t i = 0; i + 1 < f->n_rungs; i++) {
        if (fabs(f->rungs[i].gap) < shown)
            continue;
        kvc_text_addf(t, "%s%s for %s", any ? ", " : "",
                      kvc_fmt_fixed(f->rungs[i].gap * 100, 1, true).s, f->rungs[i].gap_means);
        any = true;
        memory |= i + 2 < f->n_rungs;
    }
    kvc_text_add(t, memory ? "." : "; more memory or another eviction order would add nothing.");
}

static void say_what_bounds_it(struct kvc_text *t, const struct kvc_findings *f,
                               const struct kvc_result *r)
{
    if (!r->arrived)
        return;
    if (f->bounds)
        put_bounds(t, f);
    else
        kvc_text_add(t, r->has_prefix ? "No bounds were computed for this run."
                                      : "Without prefixes no bound can be told.");
    double lost = f->top_cause < KVC_MISS_CAUSES
                      ? kvc_ratio(r->missed_tokens[f->top_cause], r->input_tokens)
                      : 0;
    if (lost >= 0.0005 && remedy(f)) /* shown as 0.1 % or more */
        kvc_text_addf(t, " The largest loss that can be helped, %s of the tokens (%s), calls for "
                         "%s.",
                      kvc_fmt_percent(lost).s,
                      kvc_miss_cause_name((enum kvc_miss_cause)f->top_cause), remedy(f));
    if (r->has_prefix && f->point_usd_per_hour > 0)
        kvc_text_addf(t, " One point of hit rate is worth %s an hour here.",
                      kvc_fmt_usd(f->point_usd_per_hour).s);
}

/* A title for the whole: whether to buy, in a few words. */
static const char *headline(const struct kvc_findings *f, const struct kvc_result *r)
{
    double saving = r->cost.saving_vs_hbm_only_usd_per_month;
    double hour = r->cost.usd_per_hour, gain = most_to_gain(f);
    if (!r->arrived)
        return "No requests, no forecast";
    if (!r->has_prefix)
        return "What a cache would save is unknown";
    if (r->n_tiers < 2)
        return isnan(gain) || !(hour > 0) ? "HBM alone"
               : gain < LITTLE * hour     ? "HBM alone is enough for this traffic"
                                          : "More cache than HBM could save some of the bill";
    if (isnan(saving))
        return "Whether the tiers below HBM pay is unknown";
    if (f->lower_hit_rate == 0 || saving <= 0)
        return "The tiers below HBM do not pay for this traffic";
    return saving < LITTLE * hour * KVC_HOURS_PER_MONTH
               ? "The tiers below HBM save next to nothing"
               : "The tiers below HBM can pay for this traffic";
}

static void keep(char *dst, size_t size, struct kvc_text *t)
{
    size_t n = t->failed || !t->buf ? 0 : t->len < size ? t->len : size - 1;
    if (n)
        memcpy(dst, t->buf, n);
    dst[n] = '\0';
    kvc_text_clear(t);
}

void kvc_verdict(struct kvc_findings *f, const struct kvc_result *r)
{
    struct kvc_text t = {0};
    strncpy(f->headline, headline(f, r), sizeof(f->headline) - 1);
    say_what_it_does(&t, f, r);
    keep(f->verdict[0], sizeof(f->verdict[0]), &t);
    say_whether_it_pays(&t, f, r);
    keep(f->verdict[1], sizeof(f->verdict[1]), &t);
    say_what_bounds_it(&t, f, r);
    keep(f->verdict[2], sizeof(f->verdict[2]), &t);
}
