/* SPDX-License-Identifier: Apache-2.0
 * Router least-loaded as a plug-in. */
#include <kvcast/policy.h>

static bool lighter(const struct kvc_route_view *a, const struct kvc_route_view *b)
{
    uint64_t requests_a = (uint64_t)a->running + a->waiting;
    uint64_t requests_b = (uint64_t)b->running + b->waiting;
    if (requests_a != requests_b)
        return requests_a < requests_b;
    return a->queued_tokens != b->queued_tokens ? a->queued_tokens < b->queued_tokens
                                                : a->context_tokens < b->context_tokens;
}

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    uint32_t best = (uint32_t)(request->index % n);
    (void)state, (void)load_weight, (void)rng;
    for (uint32_t i = 1; i < n; i++)
        if (lighter(&views[(request->index + i) % n], &views[best]))
            best = (uint32_t)((request->index + i) % n);
    return best;
}

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops), .wants_load = true, .pick = pick,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI, .struct_size = sizeof(struct kvc_policy), .kind = KVC_POLICY_ROUTING,
    .name = "least", .summary = "the replica with the fewest requests", .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
