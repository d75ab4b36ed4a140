/* SPDX-License-Identifier: Apache-2.0
 * Judges by how long a segment is, which depends on who else came by. */
#include <kvcast/policy.h>

static uint32_t answer(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment)
{
    (void)state, (void)request;
    return host->seg_blocks[segment] > 1 ? host->seg_blocks[segment] : 0;
}

#define ADMITS answer
#include "bad_admission.h"
