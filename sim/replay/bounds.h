/* SPDX-License-Identifier: Apache-2.0
 * What no policy can beat on a trace, in the terms of a replay: full blocks only, capacity in
 * bytes of one shared pool, known outputs cached as well as prompts. */
#ifndef KVC_SIM_BOUNDS_H
#define KVC_SIM_BOUNDS_H

#include "traces/trace.h"

/* The trace with each request's path extended by its known output; borrows the other columns of
 * the original. */
struct kvc_bounds;

/* order: every request of the trace once, as they looked for their hits. */
enum kvc_status kvc_bounds_create(struct kvc_bounds **out, const struct kvc_trace *trace,
                                  const uint32_t *order, uint64_t block_bytes,
                                  struct kvc_error *err);
void kvc_bounds_destroy(struct kvc_bounds *bounds);
/* Share of input tokens; 0 without prefix information. */
double kvc_bounds_content(const struct kvc_bounds *bounds);
/* Share of input tokens at each capacity, cheapest when they ascend: the optimum, or LRU. */
enum kvc_status kvc_bounds_at(const struct kvc_bounds *bounds, bool optimum,
                              const uint64_t *capacity_bytes, size_t n, double *rate,
                              struct kvc_error *err);
uint64_t kvc_bounds_unique_bytes(const struct kvc_bounds *bounds);

#endif
