/* @NAME@: a router for kvcast, to be changed into your own. kvcast/policy.h documents all of it.
 *
 * As it stands a request goes to the longest cached prefix among the replicas that have no more
 * than some requests above the least loaded one. */
#include <kvcast/policy.h>

#include <stdlib.h>

enum { OPTION_SLACK }; /* places in the table of options, below */

static uint64_t requests(const struct kvc_route_view *view)
{
    return (uint64_t)view->running + view->waiting;
}

/* Which of n replicas takes the request? rng is a random stream that repeats from run to run. */
static uint32_t pick(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng)
{
    const uint64_t *slack = state;
    uint64_t least = requests(&views[0]);
    uint32_t best = (uint32_t)(request->index % n), at = best;
    bool found = false;
    (void)load_weight;
    (void)rng;
    for (uint32_t i = 1; i < n; i++)
        least = requests(&views[i]) < least ? requests(&views[i]) : least;
    for (uint32_t i = 0; i < n; i++, at = at + 1 == n ? 0 : at + 1) {
        if (requests(&views[at]) > least + *slack)
            continue;
        if (!found || views[at].hit_tokens_any > views[best].hit_tokens_any)
            best = at;
        found = true;
    }
    return best;
}

static void *create(uint32_t replicas, const union kvc_option_value *options)
{
    uint64_t *slack = malloc(sizeof(*slack));
    (void)replicas;
    if (slack)
        *slack = options ? options[OPTION_SLACK].count : 8;
    return slack;
}

static void destroy(void *state)
{
    free(state);
}

/* --router ./@NAME@.so:slack=4 */
static const struct kvc_policy_option options[] = {
    [OPTION_SLACK] = {"slack", KVC_OPTION_COUNT, "8", 0, 1e6,
                      "requests more than the least loaded replica has that a prefix is worth"},
};

static const struct kvc_router_ops ops = {
    .struct_size = sizeof(struct kvc_router_ops),
    .wants_load = true,
    .wants_prefix = true,
    .create = create,
    .destroy = destroy,
    .pick = pick,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ROUTING,
    .name = "@NAME@",
    .summary = "the longest cached prefix among replicas that are not overloaded",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
