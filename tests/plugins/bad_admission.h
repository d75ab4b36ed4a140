/* SPDX-License-Identifier: Apache-2.0
 * What the admission policies that break one rule each have in common: they store all, but for what
 * they say otherwise before they include this. */
#include <kvcast/policy.h>

#ifndef ADMITS
static uint32_t admits(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment)
{
    (void)state, (void)request;
    return host->seg_blocks[segment];
}
#define ADMITS admits
#endif

#ifndef KIND
#define KIND KVC_POLICY_ADMISSION
#endif
#ifndef MORE
#define MORE
#endif

static const struct kvc_admission_ops ops = {
    .struct_size = sizeof(struct kvc_admission_ops), .admits = ADMITS, MORE};

#include "bad_policy.h"
