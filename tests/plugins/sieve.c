/* SPDX-License-Identifier: Apache-2.0
 * sieve as a plug-in (Zhang et al., NSDI 2024). The hand is a piece; its memory says whether it was
 * visited since the hand passed. */
#include <kvcast/policy.h>

struct sieve {
    kvc_piece hand; /* KVC_PIECE_NONE: at the oldest */
};

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    (void)options;
    return host->alloc(host, 1, sizeof(struct sieve));
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

static void stored(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)state, (void)ghost;
    host->put(host, 0, piece);
}

static void touched(const struct kvc_host *host, void *state, kvc_piece piece)
{
    unsigned char *visited = host->memory(host, piece);
    (void)state;
    *visited = 1;
}

/* One block at a time of the newest piece: the hand passes on to what comes next, a newcomer. */
static kvc_piece victim(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    struct sieve *s = state;
    kvc_piece p = s->hand;
    if (p != KVC_PIECE_NONE && host->info(host, p)->pinned)
        p = host->newer(host, p);
    if (p == KVC_PIECE_NONE)
        p = host->oldest(host, 0);
    for (unsigned char *visited; p != KVC_PIECE_NONE; p = host->newer(host, p)) {
        visited = host->memory(host, p);
        if (!*visited)
            break;
        *visited = 0;
        if (host->newer(host, p) == KVC_PIECE_NONE)
            return s->hand = KVC_PIECE_NONE, victim(host, state, newcomer, blocks);
    }
    s->hand = p;
    if (p != KVC_PIECE_NONE && host->newer(host, p) != KVC_PIECE_NONE)
        *blocks = newcomer->hi - newcomer->lo;
    return p;
}

static void removed(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t blocks)
{
    struct sieve *s = state;
    const struct kvc_piece_info *info = host->info(host, piece);
    if (s->hand == piece && blocks == info->hi - info->lo)
        s->hand = host->newer(host, piece);
}

static const struct kvc_evict_ops ops = {
    .struct_size = sizeof(struct kvc_evict_ops),
    .piece_bytes = 1,
    .queues = 1,
    .create = create,
    .destroy = destroy,
    .stored = stored,
    .touched = touched,
    .victim = victim,
    .removed = removed,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_EVICTION,
    .name = "plug-sieve",
    .summary = "first not visited since the hand passed",
    .source = "Zhang et al., NSDI 2024",
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
