/* SPDX-License-Identifier: Apache-2.0
 * What is in a trace, beyond the sums of kvc_trace_stats: distributions, sharing by depth, ages
 * of reuse, working sets. */
#ifndef KVC_TRACES_PROFILE_H
#define KVC_TRACES_PROFILE_H

#include "traces/trace.h"

#define KVC_PROFILE_DEPTHS 24
#define KVC_PROFILE_AGES 7
#define KVC_PROFILE_WINDOWS 3

struct kvc_profile {
    struct kvc_dist input_tokens, output_tokens, turns, think_s;
    double requests_per_s;      /* over the span; 0 when there is none */
    double peak_requests_per_s; /* in the busiest minute */
    double gap_cv; /* standard deviation of arrival gaps over their mean; Poisson 1 */
    uint64_t outputs_known;  /* requests whose output the log shows, or a later turn */
    uint64_t one_hit_blocks; /* touched by one request only */
    uint64_t touched_blocks; /* by any prompt */
    uint64_t reused_touches; /* of blocks an earlier request had: the content bound */

    /* Touches at depths [2^(i-1), 2^i) blocks (first: depth 0), and those seen before. */
    uint32_t n_depths;
    uint64_t depth_touches[KVC_PROFILE_DEPTHS], depth_reused[KVC_PROFILE_DEPTHS];

    /* Block touches whose previous touch was no longer ago than age_limit_ns. */
    uint64_t age_limit_ns[KVC_PROFILE_AGES], age_touches[KVC_PROFILE_AGES];

    /* Distinct blocks touched within windows of this length, side by side from 0. */
    struct {
        uint64_t window_ns;
        double mean_blocks;
        uint64_t peak_blocks;
    } working_set[KVC_PROFILE_WINDOWS];

    uint64_t *tenant_requests; /* [n_tenants], NULL without tenants */
    uint64_t *model_requests;  /* [n_models], NULL without models */
};

enum kvc_status kvc_profile_trace(const struct kvc_trace *trace, struct kvc_profile *out,
                                  struct kvc_error *err);
void kvc_profile_clear(struct kvc_profile *profile);

#endif
