/* SPDX-License-Identifier: Apache-2.0
 * The optimum where hits are worth what they save, bounded from both sides. */
#ifndef KVC_SIM_CEILING_COST_H
#define KVC_SIM_CEILING_COST_H

#include "sim/ceiling/ceiling.h"

/* upto[k]: what a leading run of k blocks saves, k up to the longest path; convex. */
enum kvc_status kvc_ceiling_cost_of(const struct kvc_ceiling_view *view, const double *upto,
                                    uint64_t capacity_blocks, struct kvc_cost_bound *out,
                                    struct kvc_error *err);
/* Leading runs that fit into the capacity, from wanted ones: first no more than these, in order of
 * requests, then whatever else fits. */
enum kvc_status kvc_ceiling_pack(const struct kvc_ceiling_view *view, uint64_t capacity_blocks,
                                 const uint32_t *wanted, uint32_t *runs, struct kvc_error *err);

#endif
