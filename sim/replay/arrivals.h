/* SPDX-License-Identifier: Apache-2.0
 * When requests arrive: at the trace's times (open), when clients are free (closed, in rounds if
 * the scenario says so), or when both is so (paced). */
#ifndef KVC_SIM_ARRIVALS_H
#define KVC_SIM_ARRIVALS_H

#include "sim/scenario/scenario.h"
#include "traces/trace.h"

struct kvc_arrivals;

enum kvc_status kvc_arrivals_create(struct kvc_arrivals **out, const struct kvc_trace *trace,
                                    const struct kvc_scenario *scenario, struct kvc_error *err);
void kvc_arrivals_destroy(struct kvc_arrivals *arrivals);
/* Time of the next arrival, KVC_TIME_NONE when none is known now. */
uint64_t kvc_arrivals_next_ns(const struct kvc_arrivals *arrivals);
uint32_t kvc_arrivals_pop(struct kvc_arrivals *arrivals); /* its request */
/* The client of request is free again at time_ns. */
void kvc_arrivals_ended(struct kvc_arrivals *arrivals, uint32_t request, uint64_t time_ns);

#endif
