/* SPDX-License-Identifier: Apache-2.0
 * The admission policies that are built in. They are made of kvcast/policy.h alone, as plug-ins
 * are. */
#ifndef KVC_POLICIES_ADMISSION_RULES_H
#define KVC_POLICIES_ADMISSION_RULES_H

#include <kvcast/policy.h>

extern const struct kvc_policy kvc_admission_always, kvc_admission_second, kvc_admission_depth,
    kvc_admission_size, kvc_admission_tinylfu, kvc_admission_ttl;

#define KVC_ADMISSION(NAME, ops_of, options_of, n, text, from)                                     \
    const struct kvc_policy kvc_admission_##NAME = {                                               \
        .abi = KVC_POLICY_ABI, .struct_size = sizeof(struct kvc_policy),                           \
        .kind = KVC_POLICY_ADMISSION, .name = #NAME, .summary = text, .source = from,              \
        .options = options_of, .n_options = n, .ops = ops_of,                                      \
    }

#endif
