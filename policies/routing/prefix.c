/* SPDX-License-Identifier: Apache-2.0
 * Cache-aware routing: the longest prefix a replica holds, weighed against the work it has.
 *
 *     work  = queued_tokens + context_tokens / 16
 *     score = hit_tokens - load_weight * (work - least work of all)
 *
 * Everything is in prompt tokens: one that is held is one less to compute, one that is queued has
 * to be computed first. With load_weight 1 the highest score is the smallest queue plus own
 * prefill, the estimate of TTFT by which Mooncake's conductor chooses, with a decode term as in
 * Dynamo's KV router, which takes context at full weight; 0 follows the cache only. That a token
 * of context counts a sixteenth of a queued one is assumed: it only slows decoding a little, but
 * without it a prefix that everybody shares would keep a lightly loaded cluster on the few
 * replicas that hold it. Hits count over all tiers that the replica reaches. Equal scores prefer
 * hits in HBM, then the lighter replica, then go in turn. */
#include "policies/routing/routers.h"

#define CONTEXT_SHARE 16

static uint64_t work(const struct kvc_route_view *view)
{
    return view->queued_tokens + view->context_tokens / CONTEXT_SHARE;
}

static double score(const struct kvc_route_view *view, uint64_t least_work, double load_weight)
{
    uint32_t hits = view->hit_tokens_any > view->hit_tokens ? view->hit_tokens_any
                                                            : view->hit_tokens;
    return (double)hits - load_weight * (double)(work(view) - least_work);
}

static bool tie_breaks(const struct kvc_route_view *a, const struct kvc_route_view *b)
{
    if (a->hit_tokens != b->hit_tokens)
        return a->hit_tokens > b->hit_tokens;
    return kvc_route_lighter(a, b);
}

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    (void)state;
    (void)rng;
    uint64_t least = work(&views[0]);
    for (uint32_t i = 1; i < n; i++)
        if (work(&views[i]) < least)
            least = work(&views[i]);
    uint32_t best = kvc_route_turn(request, n), at = best;
    double best_score = score(&views[best], least, load_weight);
    for (uint32_t i = 1; i < n; i++) {
        at = kvc_route_after(at, n);
        double s = score(&views[at], least, load_weight);
        if (s > best_score || (s == best_score && tie_breaks(&views[at], &views[best]))) {
            best = at;
            best_score = s;
        }
    }
    return best;
}

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops),
    .assumed = "a token of context in decoding counts 1/16 of a queued one",
    .wants_prefix = true,
    .wants_load = true,
    .pick = pick,
};

const struct kvc_policy kvc_router_prefix = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ROUTING,
    .name = "prefix",
    .summary = "the longest cached prefix, less load_weight times the extra work waiting",
    .ops = &ops,
};
