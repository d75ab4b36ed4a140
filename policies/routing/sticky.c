/* SPDX-License-Identifier: Apache-2.0
 * A session always goes to the same replica, by hash; requests without a session go in turn. */
#include "policies/routing/routers.h"

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    (void)state;
    (void)views;
    (void)load_weight;
    (void)rng;
    if (request->session == KVC_NO_ID)
        return (uint32_t)(request->index % n);
    return (uint32_t)(kvc_mix64((uint64_t)request->session + 1) % n);
}

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops),
    .pick = pick,
};

const struct kvc_policy kvc_router_sticky = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ROUTING,
    .name = "sticky",
    .summary = "each session to its own replica",
    .ops = &ops,
};
