/* SPDX-License-Identifier: Apache-2.0
 * Never decides at request 7. */
#include <kvcast/policy.h>

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    volatile bool undecided = request->index == 7;

    (void)state, (void)views, (void)load_weight, (void)rng;
    while (undecided)
        ;
    return (uint32_t)(request->index % n);
}

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops), .pick = pick,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI, .struct_size = sizeof(struct kvc_policy), .kind = KVC_POLICY_ROUTING,
    .name = "bad", .summary = "breaks a rule", .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
