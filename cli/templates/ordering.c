/* @NAME@: an order of requests for kvcast, to be changed into your own. kvcast/policy.h documents
 * all of it.
 *
 * As it stands the fewest tokens that have to be computed go first, and each second of waiting is
 * worth some of them, so that nobody waits for ever. */
#include <kvcast/policy.h>

enum { OPTION_PATIENCE }; /* places in the table of options, below */

struct state { /* of one replica in one run */
    double tokens_per_s;
};

static void *create(const struct kvc_policy_host *host, const union kvc_option_value *options)
{
    struct state *s = host->alloc(host, 1, sizeof(*s));
    if (s)
        s->tokens_per_s = options ? options[OPTION_PATIENCE].number : 1000;
    return s;
}

static void destroy(const struct kvc_policy_host *host, void *state)
{
    host->free(host, state);
}

/* Lower goes first, of equals who has waited longest. It changes nothing: what a policy learns, it
 * learns in arrived, admitted, served and ended. */
static double rank(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    const struct state *s = state;
    double tokens = (double)request->input_tokens - request->hit_tokens_any;
    double waited_s = (double)(host->now_ns - request->arrived_ns) / 1e9;
    return tokens - s->tokens_per_s * waited_s;
}

/* --order ./@NAME@.so:patience=500 */
static const struct kvc_policy_option options[] = {
    [OPTION_PATIENCE] = {"patience", KVC_OPTION_NUMBER, "1000", 0, 1e9,
                         "tokens that a second of waiting is worth"},
};

static const struct kvc_ordering_ops ops = {
    .struct_size = sizeof(struct kvc_ordering_ops),
    .flags = KVC_ORDERING_PREFIX,
    .create = create,
    .destroy = destroy,
    .rank = rank,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_ORDERING,
    .name = "@NAME@",
    .summary = "the fewest tokens to compute, less what waiting is worth",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
