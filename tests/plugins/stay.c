/* SPDX-License-Identifier: Apache-2.0
 * A router: what a session was sent to last, while no other replica has far fewer requests. */
#include <kvcast/policy.h>

#include <stdlib.h>

#define SESSIONS 4096

struct stay {
    uint32_t replica[SESSIONS]; /* + 1; 0: none yet */
    uint64_t slack;
};

static void *create(uint32_t replicas, const union kvc_option_value *options)
{
    struct stay *s = calloc(1, sizeof(*s));
    (void)replicas;
    if (s)
        s->slack = options ? options[0].count : 4;
    return s;
}

static void destroy(void *state)
{
    free(state);
}

static uint64_t requests(const struct kvc_route_view *view)
{
    return (uint64_t)view->running + view->waiting;
}

static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    struct stay *s = state;
    uint32_t *last = &s->replica[request->session % SESSIONS];
    uint32_t best = (uint32_t)(request->index % n);
    (void)load_weight, (void)rng;
    for (uint32_t i = 0; i < n; i++)
        if (requests(&views[i]) < requests(&views[best]))
            best = i;
    if (request->session == KVC_NO_ID)
        return best;
    if (!*last || requests(&views[*last - 1]) > requests(&views[best]) + s->slack)
        *last = best + 1;
    return *last - 1;
}

static const struct kvc_policy_option options[] = {
    {"slack", KVC_OPTION_COUNT, "4", 0, 1e6, "requests more than the least that it puts up with"},
};

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops),
    .wants_load = true,
    .create = create,
    .destroy = destroy,
    .pick = pick,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ROUTING,
    .name = "stay",
    .summary = "where the session was, unless that is busy",
    .options = options,
    .n_options = 1,
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
