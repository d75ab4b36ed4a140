/* SPDX-License-Identifier: Apache-2.0
 * The descriptor of a plug-in that breaks a rule, of whatever kind: its header defines ops and KIND
 * before it includes this. */
#ifndef ABI
#define ABI KVC_POLICY_ABI
#endif
#ifndef NAME
#define NAME "bad"
#endif
#ifndef OPTIONS
#define OPTIONS
#endif

static const struct kvc_policy policy = {
    .abi = ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KIND,
    .name = NAME,
    .summary = "breaks a rule",
    .ops = &ops,
    OPTIONS
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
