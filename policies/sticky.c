/* SPDX-License-Identifier: Apache-2.0
 * A session always goes to the same replica, by hash; requests without a session go in turn. */
#include "base/rng.h"
#include "policies/routers.h"

static uint32_t pick(const struct kvc_route_request *request, const struct kvc_route_view *views,
                     uint32_t n, double load_weight, uint64_t *rng)
{
    (void)views;
    (void)load_weight;
    (void)rng;
    if (request->session == KVC_ID_NONE)
        return (uint32_t)(request->index % n);
    return (uint32_t)(kvc_mix64((uint64_t)request->session + 1) % n);
}

const struct kvc_router_ops kvc_router_sticky = {
    .name = "sticky",
    .summary = "each session to its own replica",
    .pick = pick,
};
