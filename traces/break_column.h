/* SPDX-License-Identifier: Apache-2.0
 * The breaks of a trace as one column of numbers: how many prompts were compared, then
 * KVC_BREAK_NUMBERS for each break. */
#ifndef KVC_TRACES_BREAK_COLUMN_H
#define KVC_TRACES_BREAK_COLUMN_H

#include "traces/trace.h"

#define KVC_BREAK_NUMBERS 8

/* *n 0 and NULL when the log held no texts; else for kvc_free. NULL with *n > 0: no memory. */
uint64_t *kvc_breaks_pack(const struct kvc_trace *trace, size_t *n);
/* False: these can't be breaks, or no memory. */
bool kvc_breaks_unpack(const uint64_t *numbers, uint64_t n, struct kvc_trace *trace);

#endif
