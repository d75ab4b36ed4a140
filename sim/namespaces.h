/* SPDX-License-Identifier: Apache-2.0
 * A trace seen in namespaces, as where a cache_salt is part of a block's key: what one namespace
 * stored, no other finds. Each (namespace, segment) that a request touches becomes a segment of its
 * own, so all that runs on a trace runs on this one; namespaces are chosen per run. */
#ifndef KVC_SIM_NAMESPACES_H
#define KVC_SIM_NAMESPACES_H

#include "traces/trace.h"

struct kvc_namespaces {
    struct kvc_trace trace; /* its other columns are those of the trace it was made of */
    uint32_t *seg_from;     /* by segment: which it is there .. */
    uint32_t *seg_space;    /* .. and whose */
};

/* space_of: by request. The trace must outlive the result. Takes O(requests + pairs).
 * KVC_ERR_LIMIT beyond 2^32 - 2 pairs. */
enum kvc_status kvc_namespaces_create(struct kvc_namespaces *out, const struct kvc_trace *trace,
                                      const uint32_t *space_of, struct kvc_error *err);
void kvc_namespaces_clear(struct kvc_namespaces *spaces);

#endif
