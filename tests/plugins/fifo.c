/* SPDX-License-Identifier: Apache-2.0
 * fifo as a plug-in: the piece stored longest ago goes. */
#include <kvcast/policy.h>

static void stored(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)state, (void)ghost;
    host->put(host, 0, piece);
}

static kvc_piece victim(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)state;
    *blocks = newcomer->hi - newcomer->lo;
    return host->oldest(host, 0);
}

static const struct kvc_evict_ops ops = {
    .struct_size = sizeof(struct kvc_evict_ops),
    .queues = 1,
    .stored = stored,
    .victim = victim,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_EVICTION,
    .name = "plug-fifo",
    .summary = "stored longest ago",
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
