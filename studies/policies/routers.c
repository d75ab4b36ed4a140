/* SPDX-License-Identifier: Apache-2.0
 * The checks on routers. */
#include "studies/policies/trials.h"

#include "base/rng.h"

#define DECISIONS 2000
#define REPLICAS 64

static void draw(uint64_t *rng, struct kvc_route_view *views, uint32_t n,
                 const struct kvc_router_ops *ops)
{
    for (uint32_t i = 0; i < n; i++) {
        views[i] = (struct kvc_route_view){0};
        if (ops->wants_load) {
            views[i].running = (uint32_t)kvc_rng_below(rng, 300);
            views[i].waiting = (uint32_t)kvc_rng_below(rng, 20);
            views[i].queued_tokens = kvc_rng_below(rng, 1 << 20);
            views[i].context_tokens = kvc_rng_below(rng, 1 << 22);
        }
        if (ops->wants_prefix) {
            views[i].hit_tokens = (uint32_t)kvc_rng_below(rng, 1 << 14);
            views[i].hit_tokens_any = views[i].hit_tokens + (uint32_t)kvc_rng_below(rng, 1 << 14);
        }
    }
}

/* A run of decisions over n replicas; returns a digest of the answers. */
static uint64_t decide(struct kvc_trials *t, const struct kvc_plugin *p, uint32_t n,
                       const union kvc_option_value *value)
{
    const struct kvc_router_ops *ops = &p->ops.router;
    struct kvc_route_view views[REPLICAS];
    uint64_t rng = kvc_rng_stream(n, "views"), own = kvc_rng_stream(0, "router"), digest = 0;
    void *state = NULL;
    t->board->place.hook = KVC_HOOK_CREATE;
    if (ops->create && !(state = ops->create(n, value)))
        kvc_trial_fails(t, "create returned NULL with memory left, for %u replicas", n);
    for (uint64_t i = 0; i < DECISIONS && t->board->verdict == KVC_CHECK_PASSED; i++) {
        uint32_t session = (uint32_t)kvc_rng_below(&rng, 50);
        const struct kvc_route_request request = {i, session < 5 ? KVC_NO_ID : session,
                                                  1 + (uint32_t)kvc_rng_below(&rng, 1 << 15)};
        draw(&rng, views, n, ops);
        kvc_trial_stage(t, "decision %llu among %u replicas (hook pick)", (unsigned long long)i, n);
        uint32_t answer = ops->pick(state, &request, views, n, i % 3 ? 1.0 : 0.0, &own);
        if (answer >= n)
            kvc_trial_fails(t, "it picked replica %u of %u, which count from 0, at %s", answer, n,
                            t->board->stage);
        digest = kvc_mix64(digest ^ answer) + 1;
    }
    t->board->place.hook = KVC_HOOK_DESTROY;
    if (state)
        ops->destroy(state);
    t->board->place.hook = KVC_HOOK_NONE;
    return digest;
}

static uint64_t decide_all(struct kvc_trials *t, bool null_options)
{
    static const uint32_t sizes[] = {1, 2, 3, 8, REPLICAS};
    union kvc_option_value value[KVC_POLICY_OPTIONS];
    struct kvc_plugin *p;
    uint64_t digest = 0;
    if (!kvc_trial_open(t, &p))
        return 0;
    if (kvc_policy_options(p->policy.name, kvc_plugin_options(t->spec), p->policy.options,
                           p->policy.n_options, value, NULL) == KVC_OK)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            digest = kvc_mix64(digest ^ decide(t, p, sizes[i], null_options ? NULL : value)) + 1;
    kvc_plugin_close(p);
    return digest;
}

void kvc_trial_router_rules(struct kvc_trials *t)
{
    t->board->digest = decide_all(t, false);
    if (t->board->verdict == KVC_CHECK_PASSED)
        decide_all(t, true);
}

void kvc_trial_router_repeats(struct kvc_trials *t)
{
    uint64_t first = t->board->digest;
    for (int i = 0; i < 2 && t->board->verdict == KVC_CHECK_PASSED; i++)
        if (decide_all(t, false) != first)
            kvc_trial_fails(t, "the same requests went elsewhere %s: let nothing decide but what "
                               "pick is given",
                            i ? "a second time in one process" : "in another process");
}
