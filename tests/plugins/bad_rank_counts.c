/* SPDX-License-Identifier: Apache-2.0
 * Counts in rank, where nothing may change. */
#include <kvcast/policy.h>

static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    (void)host, (void)state, (void)request;
    static double asked;
    return asked++;
}

#include "bad_ordering.h"
