/* SPDX-License-Identifier: Apache-2.0
 * Draws in rank, which is asked as often as it happens. */
#include <kvcast/policy.h>

static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    (void)host, (void)state, (void)request;
    return (double)host->random(host);
}

#include "bad_ordering.h"
