/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/reports.h"

#include "base/alloc.h"
#include "base/distribution.h"
#include "base/error.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double kvc_ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : (double)NAN;
}

bool kvc_bounds_known(const struct kvc_result *r)
{
    return r->has_prefix && !isnan(r->content_token_hit_rate) &&
           (r->content_token_hit_rate > 0 || r->n_curve > 0);
}

const struct kvc_band *kvc_band_find(const struct kvc_result *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_bands; i++) {
        if (strcmp(r->bands[i].name, name) == 0)
            return &r->bands[i];
    }
    return NULL;
}

const char *kvc_cause_text(enum kvc_miss_cause cause)
{
    static const char *const texts[KVC_MISS_CAUSES] = {
        [KVC_MISS_FIRST_SIGHT] = "seen for the first time; no cache can serve it",
        [KVC_MISS_PARTIAL_BLOCK] = "in a block that was not full, so never shared",
        [KVC_MISS_ALIGNMENT] = "lost to page edges and the last-token rule",
        [KVC_MISS_EVICTED] = "was stored, but evicted before it came back",
        [KVC_MISS_TTL] = "was stored, but its time to live ran out",
        [KVC_MISS_OTHER_REPLICA] = "lies on another replica than the one chosen",
        [KVC_MISS_SALTED] = "kept apart by tenant salts",
        [KVC_MISS_NOT_READY] = "still being computed or moved when it was asked for",
        [KVC_MISS_DIVERGED] = "known output that the engine did not reproduce",
        [KVC_MISS_FAILED] = "of requests that failed or could not be served",
    };
    return (unsigned)cause < KVC_MISS_CAUSES ? texts[cause] : "unknown";
}

const char *kvc_tier_title(const char *name)
{
    static const char *const titles[][2] = {
        {"hbm", "HBM"}, {"dram", "DRAM"}, {"nvme", "NVMe"}, {"remote", "Remote"}};
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        if (strcmp(titles[i][0], name) == 0)
            return titles[i][1];
    }
    return name;
}

double kvc_ttft_quantile(size_t i)
{
    return i < 100 ? (double)i / 100 : i == 100 ? 0.999 : 1.0;
}

/* ---- GPUs, their price, and the router ---- */

static double number_at(const struct kvc_jval *root, const char *group, const char *key)
{
    double value;
    const struct kvc_jval *object = kvc_jval_member(root, group);
    bool has = object && kvc_jval_kind(object) == KVC_JOBJECT;
    const struct kvc_jval *v = has ? kvc_jval_member(object, key) : NULL;
    return v && kvc_jval_number(v, &value) ? value : (double)NAN;
}

/* A time of the scenario, "2s", in ms. */
static double ms_at(const struct kvc_jval *root, const char *group, const char *key)
{
    uint64_t ns;
    const struct kvc_jval *object = kvc_jval_member(root, group);
    bool has = object && kvc_jval_kind(object) == KVC_JOBJECT;
    const struct kvc_jval *v = has ? kvc_jval_member(object, key) : NULL;
    const char *text = v ? kvc_jval_string(v) : NULL;
    return text && kvc_parse_ns(text, key, &ns, NULL) == KVC_OK && ns ? (double)ns / 1e6
                                                                     : (double)NAN;
}

static bool word_is(const struct kvc_jval *root, const char *group, const char *key,
                    const char *word)
{
    const struct kvc_jval *object = kvc_jval_member(root, group);
    bool has = object && kvc_jval_kind(object) == KVC_JOBJECT;
    const struct kvc_jval *v = has ? kvc_jval_member(object, key) : NULL;
    const char *text = v ? kvc_jval_string(v) : NULL;
    return text && strcmp(text, word) == 0;
}

static void read_scenario(struct kvc_findings *f, const struct kvc_result *r)
{
    f->gpus = f->usd_per_gpu_hour = (double)NAN;
    f->aim_ttft_p99_ms = f->aim_tpot_p99_ms = (double)NAN;
    struct kvc_jval *root = NULL;
    if (!r->scenario_json || kvc_json_parse(&root, r->scenario_json, strlen(r->scenario_json),
                                            true, "scenario", 1, NULL) != KVC_OK)
        return;
    if (kvc_jval_kind(root) != KVC_JOBJECT) {
        kvc_json_free(root);
        return;
    }
    double pp = number_at(root, "cluster", "pp");
    double replicas = number_at(root, "cluster", "replicas");
    f->gpus = number_at(root, "cluster", "tp") * (isnan(pp) ? 1 : pp) *
              (r->n_replicas ? (double)r->n_replicas : replicas);
    f->usd_per_gpu_hour = number_at(root, "prices", "gpu_hour_usd");
    if (isnan(f->usd_per_gpu_hour) && f->gpus > 0 && r->cost.part_gpu > 0)
        f->usd_per_gpu_hour = r->cost.part_gpu / f->gpus;
    f->aim_ttft_p99_ms = ms_at(root, "slo", "ttft_p99");
    f->aim_tpot_p99_ms = ms_at(root, "slo", "tpot_p99");
    const struct kvc_jval *tiers = kvc_jval_member(root, "tiers");
    bool through = tiers && kvc_jval_kind(tiers) == KVC_JOBJECT &&
                   word_is(tiers, "dram", "write", "through");
    f->dram_copies_hbm = through && r->n_tiers > 1 && strcmp(r->tiers[1].name, "dram") == 0 &&
                         r->tiers[1].capacity_bytes < 2 * r->tiers[0].capacity_bytes;
    f->prefix_router = word_is(root, "router", "policy", "prefix");
    kvc_json_free(root);
}

/* ---- the ladder ---- */

static void add_rung(struct kvc_findings *f, const char *name, const char *gap_means, double rate)
{
    struct kvc_rung *rung = &f->rungs[f->n_rungs++];
    rung->name = name;
    rung->gap_means = gap_means;
    rung->rate = rate;
}

/* Why a run stays below one shared pool. */
static const char *below_pool(const struct kvc_result *r)
{
    if (r->n_tiers < 2)
        return r->n_replicas == 1 ? "timing and pages" : "separate replicas, timing and pages";
    return r->n_replicas == 1 ? "copies in several tiers, timing, pages and transfers"
                              : "separate replicas, copies in several tiers, timing, pages and "
                                "transfers";
}

/* LRU is no bound: a run that has more than it is not held against it. */
static void make_ladder(struct kvc_findings *f, const struct kvc_result *r)
{
    bool beaten = r->lru_token_hit_rate < f->hit_rate;
    bool lru = !isnan(r->lru_token_hit_rate) && !beaten;
    if (f->bounds) {
        add_rung(f, "Content: every prefix kept for ever", "more capacity only",
                 r->content_token_hit_rate);
        add_rung(f, "Optimum: perfect foresight at this capacity",
                 lru ? "a better eviction order or more capacity"
                     : "eviction order, separate replicas, timing and pages",
                 r->capacity_token_hit_rate);
        if (lru)
            add_rung(f, "LRU: one shared pool of this capacity", below_pool(r),
                     r->lru_token_hit_rate);
    }
    const char *reached = f->bounds && beaten ? "Reached in this run, more than one LRU pool"
                                              : "Reached in this run";
    add_rung(f, reached, "", f->hit_rate);
    for (uint32_t i = 0; i < f->n_rungs; i++) {
        struct kvc_rung *rung = &f->rungs[i];
        rung->gap = i + 1 < f->n_rungs ? rung->rate - rung[1].rate : (double)NAN;
        rung->gpu_s_per_hour = rung->gap * 100 * f->point_gpu_s_per_hour;
        rung->usd_per_hour = rung->gap * 100 * f->point_usd_per_hour;
    }
}

static double tier_cost(const struct kvc_result *r, const char *name)
{
    if (strcmp(name, "dram") == 0)
        return r->cost.part_dram;
    if (strcmp(name, "nvme") == 0)
        return r->cost.part_nvme;
    if (strcmp(name, "remote") == 0)
        return r->cost.part_network; /* the store and the way to it */
    return (double)NAN;              /* HBM is part of the GPU */
}

static void weigh_tiers(struct kvc_findings *f, const struct kvc_result *r)
{
    uint64_t lower = 0;
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        struct kvc_worth *w = &f->worth[i];
        w->hit_rate = r->has_prefix ? kvc_ratio(r->tiers[i].hit_tokens, r->input_tokens)
                                    : (double)NAN;
        w->usd_saved_per_hour = w->hit_rate * 100 * f->point_usd_per_hour;
        w->usd_cost_per_hour = tier_cost(r, r->tiers[i].name);
        lower += i ? r->tiers[i].hit_tokens : 0;
    }
    f->lower_hit_rate = r->has_prefix ? kvc_ratio(lower, r->input_tokens) : (double)NAN;
}

static void find_top_cause(struct kvc_findings *f, const struct kvc_result *r)
{
    uint64_t most = 0;
    f->top_cause = KVC_MISS_CAUSES;
    for (uint32_t i = KVC_MISS_ALIGNMENT; i < KVC_MISS_CAUSES; i++) {
        if (r->has_prefix && r->missed_tokens[i] > most) {
            most = r->missed_tokens[i];
            f->top_cause = i;
        }
    }
}

static void find_knee(struct kvc_findings *f, const struct kvc_result *r)
{
    f->content_95_bytes = (double)NAN;
    double best = r->n_curve ? r->curve[r->n_curve - 1].lru_token_hit_rate : 0;
    for (uint32_t i = 0; best > 0 && i < r->n_curve; i++) {
        if (r->curve[i].lru_token_hit_rate >= 0.95 * best) {
            f->content_95_bytes = (double)r->curve[i].capacity_bytes;
            return;
        }
    }
}

/* ---- TTFT by what served the prompt ---- */

static unsigned class_of(const struct kvc_request_result *q)
{
    for (unsigned i = 1; i < KVC_MAX_TIERS; i++) {
        if (q->hit_tokens[i])
            return 3;
    }
    return q->hit_tokens[0] ? 2 : 1;
}

static void fill_quantiles(struct kvc_ttft_class *c, uint64_t *ns, uint64_t n)
{
    qsort(ns, n, sizeof(*ns), kvc_order_u64);
    c->count = n;
    for (size_t i = 0; n && i < KVC_TTFT_QUANTILES; i++) {
        double rank = ceil(kvc_ttft_quantile(i) * (double)n - 1e-9);
        uint64_t at = rank < 1 ? 0 : (uint64_t)rank - 1;
        c->q_ms[i] = (double)ns[at < n ? at : n - 1] / 1e6;
    }
}

static enum kvc_status sort_ttft(struct kvc_findings *f, const struct kvc_result *r,
                                 struct kvc_error *err)
{
    static const char *const names[KVC_TTFT_CLASSES] = {"all requests", "no hit", "HBM hit",
                                                        "lower-tier hit"};
    uint64_t n[KVC_TTFT_CLASSES] = {0};
    uint64_t *ns = kvc_malloc(r->n_requests, sizeof(*ns));
    if (!ns)
        return kvc_fail_nomem(err);
    for (unsigned c = 0; c < KVC_TTFT_CLASSES; c++) {
        for (uint64_t i = 0; i < r->n_requests; i++) {
            const struct kvc_request_result *q = &r->requests[i];
            if (q->measured && q->ttft_ns != KVC_TIME_NONE && (!c || class_of(q) == c))
                ns[n[c]++] = q->ttft_ns;
        }
        f->ttft[c].name = names[c];
        fill_quantiles(&f->ttft[c], ns, n[c]);
        f->has_ttft |= n[c] > 0;
    }
    kvc_free(ns);
    return KVC_OK;
}

enum kvc_status kvc_findings_make(struct kvc_findings *out, const struct kvc_result *r,
                                  struct kvc_error *err)
{
    struct kvc_findings *f = kvc_calloc(1, sizeof(*f));
    if (!f)
        return kvc_fail_nomem(err);
    f->bounds = kvc_bounds_known(r);
    f->hit_rate = r->has_prefix ? kvc_ratio(r->hit_tokens, r->input_tokens) : (double)NAN;
    f->hours = (double)r->makespan_ns / 3.6e12;
    read_scenario(f, r);
    double point_tokens = f->hours > 0 ? (double)r->input_tokens / f->hours / 100 : (double)NAN;
    f->point_gpu_s_per_hour = point_tokens / 1e6 * r->gpu_seconds_per_million_missed_tokens;
    f->point_usd_per_hour = f->point_gpu_s_per_hour / 3600 * f->usd_per_gpu_hour;
    make_ladder(f, r);
    weigh_tiers(f, r);
    find_top_cause(f, r);
    find_knee(f, r);
    enum kvc_status status = sort_ttft(f, r, err);
    if (status == KVC_OK) {
        kvc_verdict(f, r);
        *out = *f;
    }
    kvc_free(f);
    return status;
}
