/* SPDX-License-Identifier: Apache-2.0
 * The parts of the result record, each in its file: collect.c (counts, latencies, tiers, links,
 * series), cost.c (money), explain.c (assumptions, warnings, bands). */
#ifndef KVC_SIM_COLLECT_H
#define KVC_SIM_COLLECT_H

#include "sim/engine.h"

void kvc_collect_cost(const struct kvc_engine *e, struct kvc_result *r);
enum kvc_status kvc_collect_explain(const struct kvc_engine *e, struct kvc_result *r,
                                    struct kvc_error *err);

#endif
