/* SPDX-License-Identifier: Apache-2.0
 * Request i goes to replica i mod n, whatever is there. */
#include "policies/routing/routers.h"

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    (void)state;
    (void)views;
    (void)load_weight;
    (void)rng;
    return (uint32_t)(request->index % n);
}

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops),
    .pick = pick,
};

const struct kvc_policy kvc_router_round_robin = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ROUTING,
    .name = "round-robin",
    .summary = "each replica in turn",
    .ops = &ops,
};
