/* SPDX-License-Identifier: Apache-2.0
 * The replica with the fewest requests, running and waiting: the least_conn of web balancers. Equal
 * counts go by prompt tokens not yet computed, then by context; full equals in turn. */
#include "policies/routing/routers.h"

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    (void)state;
    (void)load_weight;
    (void)rng;
    uint32_t best = kvc_route_turn(request, n), at = best;
    for (uint32_t i = 1; i < n; i++) {
        at = kvc_route_after(at, n);
        if (kvc_route_lighter(&views[at], &views[best]))
            best = at;
    }
    return best;
}

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops),
    .wants_load = true,
    .pick = pick,
};

const struct kvc_policy kvc_router_least_loaded = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ROUTING,
    .name = "least-loaded",
    .summary = "the replica with the fewest requests",
    .ops = &ops,
};
