/* SPDX-License-Identifier: Apache-2.0
 * Request i goes to replica i mod n, whatever is there. */
#include "policies/routers.h"

static uint32_t pick(const struct kvc_route_request *request, const struct kvc_route_view *views,
                     uint32_t n, double load_weight, uint64_t *rng)
{
    (void)views;
    (void)load_weight;
    (void)rng;
    return (uint32_t)(request->index % n);
}

const struct kvc_router_ops kvc_router_round_robin = {
    .name = "round-robin",
    .summary = "each replica in turn",
    .pick = pick,
};
