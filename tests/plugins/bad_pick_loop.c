/* SPDX-License-Identifier: Apache-2.0
 * Never decides at request 7. */
#include <kvcast/policy.h>

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    volatile bool undecided = request->index == 7;

    (void)state, (void)views, (void)load_weight, (void)rng;
    while (undecided)
        ;
    return (uint32_t)(request->index % n);
}

#include "bad_router.h"
