/* SPDX-License-Identifier: Apache-2.0
 * The parts of the result record, each in its file: collect.c (counts, latencies, tiers, links),
 * collect_series.c, collect_tenants.c, cost.c (money), explain.c (what it rests on), trust.c (how
 * far it can be trusted; slower.c: what others of its formats would have made of it). */
#ifndef KVC_SIM_COLLECT_H
#define KVC_SIM_COLLECT_H

#include "sim/replay/engine.h"

#define KVC_NS_PER_MS 1e6

/* Whether the request counts among the latencies. */
bool kvc_collect_counts(const struct kvc_request_result *q);
enum kvc_status kvc_collect_series(const struct kvc_engine *e, struct kvc_result *r,
                                   struct kvc_error *err);
/* v: scratch for a value of each request. */
enum kvc_status kvc_collect_tenants(struct kvc_engine *e, struct kvc_result *r, uint64_t *v,
                                    struct kvc_error *err);
/* What a run that differs from the result's in one thing made of the same requests; noisy: whose
 * it did without, or NULL. */
enum kvc_status kvc_collect_what_if(struct kvc_engine *e, const char *noisy,
                                    struct kvc_result *result, struct kvc_error *err);
void kvc_collect_cost(const struct kvc_engine *e, struct kvc_result *r);
/* Assumptions; and warnings and bands, of latencies that are known. */
enum kvc_status kvc_collect_explain(const struct kvc_engine *e, const struct kvc_trace_stats *stats,
                                    struct kvc_result *r, struct kvc_error *err);
enum kvc_status kvc_collect_trust(const struct kvc_engine *e, const struct kvc_trace_stats *stats,
                                  struct kvc_result *r, struct kvc_error *err);
/* Whether the weights' format makes steps like those of the run longer than bf16 would, or the
 * engine's default kernel of the experts longer than the one assumed; text says how much. */
bool kvc_slower_weights(const struct kvc_engine *e, const struct kvc_result *r, char *text,
                        size_t size);
bool kvc_slower_experts(const struct kvc_engine *e, const struct kvc_result *r, char *text,
                        size_t size);

#endif
