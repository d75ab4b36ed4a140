/* SPDX-License-Identifier: Apache-2.0
 * What the orders of requests that break one rule each have in common: they are first come, first
 * served, but for what they say otherwise before they include this. */
#include <kvcast/policy.h>

#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef MORE
#define MORE
#endif

static const struct kvc_ordering_ops ops = {
    .struct_size = sizeof(struct kvc_ordering_ops), .flags = FLAGS, .rank = rank, MORE};

#define KIND KVC_POLICY_ORDERING
#include "bad_policy.h"
