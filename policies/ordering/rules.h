/* SPDX-License-Identifier: Apache-2.0
 * The orders of requests that are built in. They are made of kvcast/policy.h alone, as plug-ins
 * are. */
#ifndef KVC_POLICIES_ORDERING_RULES_H
#define KVC_POLICIES_ORDERING_RULES_H

#include <kvcast/policy.h>

extern const struct kvc_policy kvc_ordering_fcfs, kvc_ordering_shortest, kvc_ordering_uncached,
    kvc_ordering_lpm, kvc_ordering_fair;

#define KVC_ORDERING(NAME, ops_of, options_of, n, text, from)                                      \
    const struct kvc_policy kvc_ordering_##NAME = {                                                \
        .abi = KVC_POLICY_ABI, .struct_size = sizeof(struct kvc_policy),                           \
        .kind = KVC_POLICY_ORDERING, .name = #NAME, .summary = text, .source = from,               \
        .options = options_of, .n_options = n, .ops = ops_of,                                      \
    }

/* A flag of built-in orders: rank looks at nothing but what it is told of the request, not at
 * times, so that it is asked again only where that has changed. */
#define KVC_ORDERING_STEADY (1u << 16)

#endif
