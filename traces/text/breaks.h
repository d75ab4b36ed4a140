/* SPDX-License-Identifier: Apache-2.0
 * What breaks caching: where prompts part ways with the one before, and whether they go on alike
 * behind that place, which a cache then can't use. Found while texts are imported; of the texts
 * nothing but these counts is kept (docs/inspect.md). */
#ifndef KVC_TRACES_BREAKS_H
#define KVC_TRACES_BREAKS_H

#include "traces/text/text_blocks.h"
#include "traces/trace.h"

#define KVC_BREAKS_SHOWN 20 /* places a trace keeps, most tokens first */

struct kvc_breaks;

/* Watches the prompts of an import. NULL: no memory. */
struct kvc_breaks *kvc_breaks_create(struct kvc_import *im);
void kvc_breaks_destroy(struct kvc_breaks *b); /* NULL is fine */
/* Moves what was found into the trace. bytes_per_token > 0. False: no memory. */
bool kvc_breaks_finish(const struct kvc_breaks *b, double bytes_per_token,
                       struct kvc_trace *trace);

#endif
