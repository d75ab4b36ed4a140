/* SPDX-License-Identifier: Apache-2.0
 * The order of the queue, as the built-in fcfs. */
#include <kvcast/policy.h>

static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    (void)host, (void)state, (void)request;
    return 0;
}

#define NAME "first"
#include "bad_ordering.h"
