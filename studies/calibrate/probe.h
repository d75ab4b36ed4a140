/* SPDX-License-Identifier: Apache-2.0
 * One request's TTFT with its prefix at rest in one tier: a replay of the request that leaves it
 * there and, long after, of the one that finds it. */
#ifndef KVC_STUDIES_PROBE_H
#define KVC_STUDIES_PROBE_H

#include "sim/scenario/scenario.h"

enum kvc_probe_tier { KVC_PROBE_RECOMPUTE, KVC_PROBE_HBM, KVC_PROBE_DRAM, KVC_PROBE_REMOTE };

/* By the names that published tables use (gpu_hit, cpu_hit, miss ..); false: none of them. */
bool kvc_probe_tier_parse(const char *name, enum kvc_probe_tier *out);

/* The second request's row (the first one's, to recompute). The scenario names engine and cluster;
 * room and scope of the tier are set here, its link is the scenario's. The prompt is the prefix and
 * 16 tokens of its own, the answer one token. */
enum kvc_status kvc_probe(struct kvc_request_result *out, const struct kvc_scenario *scenario,
                          enum kvc_probe_tier tier, uint32_t tokens, struct kvc_error *err);

#endif
