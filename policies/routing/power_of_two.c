/* SPDX-License-Identifier: Apache-2.0
 * The lighter of two replicas drawn at random (Mitzenmacher 2001): nearly as even as looking at
 * all of them, and without the herd that follows a stale count. */
#include "policies/routing/routers.h"

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    (void)state;
    (void)request;
    (void)load_weight;
    if (n == 1)
        return 0;
    uint32_t a = (uint32_t)kvc_rng_below(rng, n);
    uint32_t b = (uint32_t)kvc_rng_below(rng, n - 1);
    b += b >= a;
    return kvc_route_lighter(&views[b], &views[a]) ? b : a;
}

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops),
    .wants_load = true,
    .pick = pick,
};

const struct kvc_policy kvc_router_power_of_two = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ROUTING,
    .name = "power-of-two",
    .summary = "the lighter of two drawn at random",
    .ops = &ops,
};
