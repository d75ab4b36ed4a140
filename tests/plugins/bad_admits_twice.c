/* SPDX-License-Identifier: Apache-2.0
 * Says now this, now that. */
#include <kvcast/policy.h>

static uint32_t asked;

static uint32_t answer(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment)
{
    (void)state, (void)request;
    return asked++ % 2 ? host->seg_blocks[segment] : 0;
}

#define ADMITS answer
#include "bad_admission.h"
