/* SPDX-License-Identifier: Apache-2.0
 * The lighter of two replicas drawn at random (Mitzenmacher 2001): nearly as even as looking at
 * all of them, and without the herd that follows a stale count. */
#include "base/rng.h"
#include "policies/routers.h"

static uint32_t pick(const struct kvc_route_request *request, const struct kvc_route_view *views,
                     uint32_t n, double load_weight, uint64_t *rng)
{
    (void)request;
    (void)load_weight;
    if (n == 1)
        return 0;
    uint32_t a = (uint32_t)kvc_rng_below(rng, n);
    uint32_t b = (uint32_t)kvc_rng_below(rng, n - 1);
    b += b >= a;
    return kvc_route_lighter(&views[b], &views[a]) ? b : a;
}

const struct kvc_router_ops kvc_router_power_of_two = {
    .name = "power-of-two",
    .summary = "the lighter of two drawn at random",
    .wants_load = true,
    .pick = pick,
};
