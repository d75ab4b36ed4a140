/* SPDX-License-Identifier: Apache-2.0
 * A part of a trace: the requests of some tenants or models. */
#ifndef KVC_TRACES_WHERE_H
#define KVC_TRACES_WHERE_H

#include "traces/trace.h"

/* Whether the words are "tenant=NAME" and "model=NAME", by commas: of one kind any may hold, both
 * kinds must. */
enum kvc_status kvc_where_check(const char *where, struct kvc_error *err);
/* Leaves only those requests in a trace that is whole, as if the log had had no others: the first
 * arrives at 0, names, sessions and segments of the others are gone. (What the log told of an
 * output by a later turn stays known.) KVC_ERR_USAGE where a name is
 * none of the trace's, which then is as it was; after other errors it is good for nothing but to be
 * destroyed. *left_out: requests. */
enum kvc_status kvc_trace_where(struct kvc_trace *trace, const char *where, uint64_t *left_out,
                                struct kvc_error *err);
/* Counts them in the report, in words. */
void kvc_where_tell(struct kvc_import_report *report, const char *where, uint64_t left_out);

#endif
