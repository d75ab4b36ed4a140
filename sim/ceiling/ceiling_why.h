/* SPDX-License-Identifier: Apache-2.0
 * Why prompt tokens missed, without time: what had been seen before, by whom, and for whose request
 * it left the cache. docs/tenants.md defines the causes. */
#ifndef KVC_SIM_CEILING_WHY_H
#define KVC_SIM_CEILING_WHY_H

#include "sim/ceiling/ceiling.h"
#include "sim/ceiling/marks.h"
#include "sim/namespaces.h"

#define KVC_WHY_EXPIRED (KVC_MARK_NONE - 1)

struct kvc_why {
    const struct kvc_ceiling_view *view;
    const struct kvc_trace *trace;        /* without namespaces */
    const struct kvc_namespaces *spaces;  /* NULL: all share */
    uint8_t *seen, *seen_by_any;          /* by segment of the view, and of the trace */
    struct kvc_marks marks;               /* by segment of the view: who made it leave last */
    const uint32_t *who_of;               /* by request, for those marks */
    uint64_t request;                     /* in hand */
};

/* Missed tokens of one request. */
struct kvc_why_missed {
    uint64_t tokens[KVC_MISS_CAUSES];
};

enum kvc_status kvc_why_init(struct kvc_why *why, const struct kvc_ceiling_view *view,
                             const struct kvc_trace *trace, const struct kvc_namespaces *spaces,
                             const uint32_t *who_of, struct kvc_error *err);
void kvc_why_clear(struct kvc_why *why);
/* Blocks leave a cache; of struct kvc_why *. */
void kvc_why_left(void *why, uint32_t seg, uint32_t lo, uint32_t hi, bool expired);
/* The next request, between its lookup and its touch. run: blocks found; elsewhere: the most that
 * another replica has. evicted(user, who, tokens) tells whose requests made room with what counts
 * as evicted, KVC_MARK_NONE: nobody's. NULL: not wanted. */
void kvc_why_request(struct kvc_why *why, uint64_t request, uint64_t run, uint64_t elsewhere,
                     struct kvc_why_missed *missed,
                     void (*evicted)(void *user, uint32_t who, uint64_t tokens), void *user);

#endif
