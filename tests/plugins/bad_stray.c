/* SPDX-License-Identifier: Apache-2.0
 * Counts replicas from 1. */
#include <kvcast/policy.h>

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    (void)state, (void)views, (void)load_weight, (void)rng;
    return 1 + (uint32_t)(request->index % n);
}

#include "bad_router.h"
