/* SPDX-License-Identifier: Apache-2.0
 * Ceilings from close up as text and JSON: by group, by replica, in namespaces, and why it
 * missed. */
#ifndef KVC_REPORTS_CLOSEUP_H
#define KVC_REPORTS_CLOSEUP_H

#include "base/json.h"
#include "base/text.h"

/* What was asked for. */
struct kvc_closeup_asked {
    const char *by, *isolate; /* NULL: not */
    uint32_t replicas;
    bool why, has_prefix, has_tokens;
};

/* Members of the object in hand: the figures of kvcast.ceiling.v1, null where not known. */
void kvc_hits_json(struct kvc_json *j, const struct kvc_hits *h, bool has_prefix, bool has_tokens);
/* What is beside them in a point. */
void kvc_closeup_json(struct kvc_json *j, const struct kvc_closeup_result *r,
                      const struct kvc_closeup_asked *asked);
void kvc_crossing_json(struct kvc_json *j, const struct kvc_crossing *c, const char *isolate);

/* One policy at n capacities. */
struct kvc_closeup_rows {
    const char *policy; /* and the router, in words */
    const uint64_t *capacity_blocks;
    struct kvc_closeup_result *const *result;
    size_t n;
    const struct kvc_closeup_result *content;
};

/* The tables that were asked for. */
void kvc_closeup_text(struct kvc_text *t, const struct kvc_closeup_rows *rows,
                      const struct kvc_closeup_asked *asked);
void kvc_crossing_text(struct kvc_text *t, const struct kvc_crossing *c, const char *isolate);

#endif
