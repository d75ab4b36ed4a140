/* SPDX-License-Identifier: Apache-2.0
 * Never comes back. */
#include <kvcast/policy.h>

static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    (void)host, (void)state, (void)request;
    for (volatile int go = 1; go;)
        ;
    return 0;
}

#include "bad_ordering.h"
