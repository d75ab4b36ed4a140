/* SPDX-License-Identifier: Apache-2.0
 * What the routers that break one rule each have in common: pick is theirs. */
#include <kvcast/policy.h>

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops), .pick = pick,
};

#define KIND KVC_POLICY_ROUTING
#include "bad_policy.h"
