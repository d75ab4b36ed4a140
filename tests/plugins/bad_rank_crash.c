/* SPDX-License-Identifier: Apache-2.0
 * Crashes on a tenant that is there. */
#include <kvcast/policy.h>

static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    (void)host, (void)state, (void)request;
    return *(const double *)(uintptr_t)request->tenant;
}

#include "bad_ordering.h"
