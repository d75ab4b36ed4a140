/* SPDX-License-Identifier: Apache-2.0
 * Reads prefixes and wants to be asked once. */
#include <kvcast/policy.h>

static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    (void)host, (void)state, (void)request;
    return 0;
}

#define FLAGS (KVC_ORDERING_ONCE | KVC_ORDERING_PREFIX)
#include "bad_ordering.h"
