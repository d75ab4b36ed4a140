/* SPDX-License-Identifier: Apache-2.0
 * The piece of the lowest segment goes, in runs of single blocks as well; and what is said of
 * places is true. */
#include <kvcast/policy.h>

static void stored(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    const struct kvc_piece_info *i = host->info(host, piece);
    (void)state, (void)ghost;
    if (i->lo >= i->hi || i->hi > host->seg_blocks[i->segment] ||
        i->depth != host->seg_depth[i->segment] + i->lo)
        (host->fail)(host, "info is wrong");
    host->rank(host, piece, i->segment);
}

static void touched(const struct kvc_host *host, void *state, kvc_piece piece)
{
    (void)state;
    host->rank(host, piece, host->info(host, piece)->segment);
}

static kvc_piece victim(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    (void)state, (void)blocks;
    if (newcomer->lo >= newcomer->hi || newcomer->hi > host->seg_blocks[newcomer->segment])
        (host->fail)(host, "the newcomer is wrong");
    return host->lowest(host);
}

static void request(const struct kvc_host *host, void *state,
                    const struct kvc_policy_request *r)
{
    (void)state;
    if (r->segment != KVC_NO_ID &&
        r->blocks != host->seg_depth[r->segment] + host->seg_blocks[r->segment])
        (host->fail)(host, "the request is wrong");
}

static const struct kvc_evict_ops ops = {
    .struct_size = sizeof(struct kvc_evict_ops),
    .request = request,
    .stored = stored,
    .touched = touched,
    .victim = victim,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_EVICTION,
    .name = "plug-places",
    .summary = "the lowest segment",
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
