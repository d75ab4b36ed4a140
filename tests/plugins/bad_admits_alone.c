/* SPDX-License-Identifier: Apache-2.0
 * Takes it for granted that blocks come with a request. */
#include <kvcast/policy.h>

static uint32_t answer(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment)
{
    (void)state;
    bool stores = host->seg_depth[segment] < host->seg_blocks[request->segment];
    return stores ? host->seg_blocks[segment] : 0;
}

#define ADMITS answer
#include "bad_admission.h"
