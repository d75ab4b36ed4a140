/* SPDX-License-Identifier: Apache-2.0
 * What the report writers share: the figures derived from a result, the sentences that sum it up,
 * and reports rebuilt from stored runs. Writers see results only, never the simulation. */
#ifndef KVC_REPORTS_REPORTS_H
#define KVC_REPORTS_REPORTS_H

#include <kvcast/kvcast.h>

#include "base/json.h"
#include "reports/out.h"

struct kvc_traffic; /* reports/traffic.h */

/* ---- derived figures; NAN = not known ---- */

/* A hit rate no policy of that kind exceeds, or that was reached; best first. The gap is to the
 * rung below, worth so much prefill work and money at this load. */
struct kvc_rung {
    const char *name, *gap_means;
    double rate, gap, gpu_s_per_hour, usd_per_hour;
};

#define KVC_RUNGS 4
#define KVC_TTFT_CLASSES 4
#define KVC_TTFT_QUANTILES 102 /* 0, 1, .. 99, 99.9, 100 percent */

struct kvc_ttft_class {
    const char *name;
    uint64_t count;
    double q_ms[KVC_TTFT_QUANTILES];
};
double kvc_ttft_quantile(size_t i); /* the fraction that q_ms[i] stands for */

/* What a tier's hits save in prefill work, and what the tier costs. */
struct kvc_worth {
    double hit_rate, usd_saved_per_hour, usd_cost_per_hour;
};

struct kvc_findings {
    bool bounds; /* the ceilings were computed */
    double hit_rate, lower_hit_rate; /* usable, of all input tokens; lower: not from HBM */
    double hours;                    /* of makespan */
    double gpus, usd_per_gpu_hour;
    bool prefix_router, dram_copies_hbm; /* written through, so it holds first what HBM holds */
    double aim_ttft_p99_ms, aim_tpot_p99_ms; /* slo.*, NAN = none */
    double point_gpu_s_per_hour, point_usd_per_hour; /* one point of hit rate */
    uint32_t n_rungs;
    struct kvc_rung rungs[KVC_RUNGS];
    struct kvc_worth worth[KVC_MAX_TIERS];
    uint32_t top_cause; /* of avoidable misses; KVC_MISS_CAUSES = none */
    double content_95_bytes; /* where the LRU curve reaches 95 % of its own end */
    struct kvc_ttft_class ttft[KVC_TTFT_CLASSES]; /* all, no hit, HBM only, lower tier */
    bool has_ttft;
    char headline[96];
    char verdict[3][960]; /* what it does, whether it pays, what bounds it */
};

enum kvc_status kvc_findings_make(struct kvc_findings *out, const struct kvc_result *result,
                                  struct kvc_error *err);
void kvc_verdict(struct kvc_findings *f, const struct kvc_result *result); /* fills verdict[] */
double kvc_ratio(uint64_t part, uint64_t whole); /* NAN for 0 / 0 */
/* False when the run skipped its ceilings or the trace tells no prefixes. */
bool kvc_bounds_known(const struct kvc_result *result);
const char *kvc_tier_title(const char *name); /* "HBM" for "hbm"; other names as they are */
const char *kvc_cause_text(enum kvc_miss_cause cause); /* for people, a few words */
const struct kvc_band *kvc_band_find(const struct kvc_result *result, const char *name);

/* "TTFT p99" for "ttft_ms.p99". */
struct kvc_str kvc_band_title(const char *name);

/* ---- writers that leave the file to the caller ---- */

/* The object that replay --json prints. */
void kvc_result_to_json(struct kvc_json *j, const struct kvc_result *result);
/* What a report needs beyond it, for the database. */
void kvc_detail_to_json(struct kvc_json *j, const struct kvc_result *result,
                        const struct kvc_findings *findings);
void kvc_text_summary(struct kvc_text *t, const struct kvc_result *result,
                      const struct kvc_findings *findings);
void kvc_markdown(struct kvc_text *t, const struct kvc_result *result,
                  const struct kvc_findings *findings);
/* Runs gnuplot for the pictures; without it there are tables. traffic may be NULL. */
enum kvc_status kvc_html(struct kvc_text *t, const struct kvc_result *result,
                         const struct kvc_findings *findings, const struct kvc_traffic *traffic,
                         struct kvc_error *err);
/* kvc_report_html with the section "Your traffic". */
enum kvc_status kvc_report_html_traffic(const struct kvc_result *result,
                                        const struct kvc_traffic *traffic, const char *path,
                                        struct kvc_error *err);
/* One row a figure: dotted name, value. figures: a run's JSON. */
void kvc_figures_csv(struct kvc_text *t, const struct kvc_jval *figures);

/* ---- stored runs ---- */

struct kvc_stored; /* a result rebuilt from a run's JSON or a database row */

/* path: JSON of `replay --json`, or a results database; run_id 0 = the latest row. */
enum kvc_status kvc_stored_open(struct kvc_stored **out, const char *path, int64_t run_id,
                                struct kvc_error *err);
const struct kvc_result *kvc_stored_result(const struct kvc_stored *stored);
const struct kvc_findings *kvc_stored_findings(const struct kvc_stored *stored);
const struct kvc_jval *kvc_stored_figures(const struct kvc_stored *stored);
const char *kvc_stored_json(const struct kvc_stored *stored); /* the figures as stored */
void kvc_stored_close(struct kvc_stored *stored); /* NULL is fine */

/* ---- tenants ---- */

void kvc_json_dist(struct kvc_json *j, const char *key, const struct kvc_dist *d);
/* The array of tenants; and what follows it at the end of a replay's document. */
void kvc_tenants_to_json(struct kvc_json *j, const struct kvc_result *r);
void kvc_losses_to_json(struct kvc_json *j, const struct kvc_result *r);
/* What a group of tenants held on average in each part of the run; false: not known. */
#define KVC_HELD_PARTS 8
bool kvc_tenants_held(const struct kvc_result *r, uint32_t group, double held[KVC_HELD_PARTS]);
/* summary_tenants.c */
void kvc_text_tenants(struct kvc_text *t, const struct kvc_result *r);
/* Whether the tenant's losses are told apart from those of others. */
bool kvc_tenant_own_group(const struct kvc_result *r, const struct kvc_tenant_result *t);

#endif
