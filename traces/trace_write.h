/* SPDX-License-Identifier: Apache-2.0
 * What readers of traces/ need to make a trace whole. */
#ifndef KVC_TRACES_TRACE_WRITE_H
#define KVC_TRACES_TRACE_WRITE_H

#include "traces/trace.h"

/* Of all that a replay reads; the same on every machine. */
void kvc_trace_digest(const struct kvc_trace *trace, char out[24]);

#endif
