/* SPDX-License-Identifier: Apache-2.0
 * Orders that look at one request at a time. */
#include "policies/ordering/rules.h"

/* ---- fcfs: the order of the queue itself ---- */

static double fcfs(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request)
{
    (void)host, (void)state, (void)request;
    return 0;
}

static const struct kvc_ordering_ops fcfs_ops = {
    .struct_size = sizeof(fcfs_ops), .flags = KVC_ORDERING_ONCE, .rank = fcfs};
KVC_ORDERING(fcfs, &fcfs_ops, NULL, 0, "who has waited longest", "vLLM, SGLang");

/* ---- shortest ---- */

static double shortest(const struct kvc_policy_host *host, const void *state,
                       const struct kvc_waiting *request)
{
    (void)host, (void)state;
    return (double)request->input_tokens + request->generated_tokens;
}

static const struct kvc_ordering_ops shortest_ops = {
    .struct_size = sizeof(shortest_ops), .flags = KVC_ORDERING_ONCE, .rank = shortest};
KVC_ORDERING(shortest, &shortest_ops, NULL, 0, "the shortest prompt", NULL);

/* ---- uncached ---- */

static double uncached(const struct kvc_policy_host *host, const void *state,
                       const struct kvc_waiting *request)
{
    (void)host, (void)state;
    return (double)request->input_tokens + request->generated_tokens - request->hit_tokens_any;
}

static const struct kvc_ordering_ops uncached_ops = {
    .struct_size = sizeof(uncached_ops), .rank = uncached,
    .flags = KVC_ORDERING_PREFIX | KVC_ORDERING_STEADY};
KVC_ORDERING(uncached, &uncached_ops, NULL, 0, "the fewest tokens that are in no tier",
             "Dynamo's wspt with equal weights");

/* ---- lpm ---- */

static const struct kvc_policy_option lpm_options[] = {
    {"most", KVC_OPTION_COUNT, "128", 0, 4294967295.0,
     "requests that wait, beyond which it is fcfs"},
};

static void *lpm_create(const struct kvc_policy_host *host, const union kvc_option_value *options)
{
    uint64_t *most = host->alloc(host, 1, sizeof(*most));
    if (most)
        *most = options ? options[0].count : 128;
    return most;
}

static void lpm_destroy(const struct kvc_policy_host *host, void *state)
{
    host->free(host, state);
}

static double lpm(const struct kvc_policy_host *host, const void *state,
                  const struct kvc_waiting *request)
{
    const uint64_t *most = state;
    (void)host;
    return request->waiting > *most ? 0 : -(double)request->hit_tokens;
}

static const struct kvc_ordering_ops lpm_ops = {
    .struct_size = sizeof(lpm_ops), .create = lpm_create,
    .flags = KVC_ORDERING_PREFIX | KVC_ORDERING_STEADY,
    .destroy = lpm_destroy, .rank = lpm};
KVC_ORDERING(lpm, &lpm_ops, lpm_options, 1, "the longest prefix in GPU memory",
             "SGLang, without its rule in a batch");
