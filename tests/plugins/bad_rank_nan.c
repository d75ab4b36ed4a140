/* SPDX-License-Identifier: Apache-2.0
 * A rank that is no number, after a while. */
#include <kvcast/policy.h>

static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    (void)host, (void)state, (void)request;
    return request->index > 20 ? (double)__builtin_nanf("") : 0;
}

#include "bad_ordering.h"
