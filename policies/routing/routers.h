/* SPDX-License-Identifier: Apache-2.0
 * What the routers share: which of two replicas has less to do, and the order of the undecided. */
#ifndef KVC_POLICIES_ROUTERS_H
#define KVC_POLICIES_ROUTERS_H

#include <kvcast/policy.h>

/* Fewer requests, then less prompt work waiting, then less context to decode over. */
static inline bool kvc_route_lighter(const struct kvc_route_view *a, const struct kvc_route_view *b)
{
    uint64_t requests_a = (uint64_t)a->running + a->waiting;
    uint64_t requests_b = (uint64_t)b->running + b->waiting;
    if (requests_a != requests_b)
        return requests_a < requests_b;
    if (a->queued_tokens != b->queued_tokens)
        return a->queued_tokens < b->queued_tokens;
    return a->context_tokens < b->context_tokens;
}

/* Where a scan over the replicas begins: equals are tried in turn, as nginx's least_conn does, so
 * that an idle cluster does not send everything to replica 0. */
static inline uint32_t kvc_route_turn(const struct kvc_route_request *request, uint32_t n)
{
    return (uint32_t)(request->index % n);
}

static inline uint32_t kvc_route_after(uint32_t replica, uint32_t n)
{
    return replica + 1 == n ? 0 : replica + 1;
}

extern const struct kvc_policy kvc_router_round_robin, kvc_router_least_loaded,
    kvc_router_prefix, kvc_router_sticky, kvc_router_power_of_two;

#endif
