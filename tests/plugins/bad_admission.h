/* SPDX-License-Identifier: Apache-2.0
 * What the admission policies that break one rule each have in common: they store all, but for what they
 * say otherwise before they include this. */
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

#ifndef NAME
#define NAME "bad"
#endif
#ifndef KIND
#define KIND KVC_POLICY_ADMISSION
#endif
#ifndef MORE
#define MORE
#endif

static const struct kvc_admission_ops ops = {
    .struct_size = sizeof(struct kvc_admission_ops), .admits = ADMITS, MORE};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KIND,
    .name = NAME,
    .summary = "breaks a rule",
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
