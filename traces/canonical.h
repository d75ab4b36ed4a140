/* SPDX-License-Identifier: Apache-2.0
 * One numbering for equal traces: segments, sessions, tenants and models by first appearance in
 * time order, whatever order the log's rows came in. */
#ifndef KVC_TRACES_CANONICAL_H
#define KVC_TRACES_CANONICAL_H

#include "base/spill.h"
#include "traces/trace.h"

/* Renumbers in place: segments that prompts reach first, then those that only known outputs do.
 * Names no request has are dropped. False: no memory; the trace is only fit to be destroyed. */
bool kvc_trace_canonical(struct kvc_trace *trace, struct kvc_spill *spill);

#endif
