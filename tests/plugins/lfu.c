/* SPDX-License-Identifier: Apache-2.0
 * lfu as a plug-in: the piece touched least since it was stored goes, of equals the one touched
 * longest ago. */
#include <kvcast/policy.h>

static void stored(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)state, (void)ghost;
    host->rank(host, piece, 1);
}

static void touched(const struct kvc_host *host, void *state, kvc_piece piece)
{
    (void)state;
    host->rank(host, piece, host->info(host, piece)->touches);
}

/* A newcomer goes before anything that was touched twice, so that only one may push it out. */
static kvc_piece victim(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    kvc_piece least = host->lowest(host);
    (void)state;
    if (least != KVC_PIECE_NONE && host->info(host, least)->touches == 1)
        *blocks = newcomer->hi - newcomer->lo;
    return least;
}

static const struct kvc_evict_ops ops = {
    .struct_size = sizeof(struct kvc_evict_ops),
    .flags = KVC_EVICT_TOUCHES | KVC_EVICT_CLOSED,
    .stored = stored,
    .touched = touched,
    .victim = victim,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_EVICTION,
    .name = "plug-lfu",
    .summary = "fewest touches since stored",
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
