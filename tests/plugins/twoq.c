/* SPDX-License-Identifier: Apache-2.0
 * twoq as a plug-in (Johnson and Shasha, VLDB 1994): newcomers wait in a queue of a quarter; what
 * leaves it is remembered, and enters the main LRU when it comes again. With options. */
#include <kvcast/policy.h>

enum { IN, MAIN };
enum { OPTION_IN, OPTION_OUT };

struct twoq {
    uint64_t in, out;
};

static uint64_t part(const struct kvc_host *host, double share)
{
    uint64_t blocks = (uint64_t)((double)host->capacity_blocks * share);
    return host->capacity_blocks == UINT64_MAX ? UINT64_MAX : blocks ? blocks : 1;
}

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    struct twoq *q = host->alloc(host, 1, sizeof(*q));
    if (!q)
        return NULL;
    q->in = part(host, options ? options[OPTION_IN].number : 0.25);
    q->out = part(host, options ? options[OPTION_OUT].number : 0.5);
    return q;
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

/* A piece remembers which queue it is in. */
static void enter(const struct kvc_host *host, kvc_piece piece, unsigned char queue)
{
    unsigned char *mine = host->memory(host, piece);
    *mine = queue;
    host->put(host, queue, piece);
}

static void stored(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    const struct twoq *q = state;
    enter(host, piece, ghost == KVC_GHOST_NONE ? IN : MAIN);
    while (host->ghosts(host, 0) > q->out) {
        kvc_piece oldest = host->oldest_ghost(host, 0);
        const struct kvc_piece_info *info = host->info(host, oldest);
        uint64_t much = host->ghosts(host, 0) - q->out;
        host->drop(host, oldest, much < info->hi - info->lo ? (uint32_t)much : info->hi - info->lo);
    }
}

static void touched(const struct kvc_host *host, void *state, kvc_piece piece)
{
    const unsigned char *queue = host->memory(host, piece);
    (void)state;
    if (*queue == MAIN)
        host->put(host, MAIN, piece);
}

/* How many newcomers find the queues as the first of them does. */
static uint64_t alike(const struct kvc_host *host, const struct twoq *q,
                      const struct kvc_newcomer *newcomer, bool from_in)
{
    uint64_t waiting = host->queued(host, IN);
    bool to_in = newcomer->ghost == KVC_GHOST_NONE;
    if (from_in == to_in)
        return UINT64_MAX;
    if (from_in)
        return waiting > q->in ? waiting - q->in : 1;
    return q->in - waiting + 1;
}

static kvc_piece victim(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    const struct twoq *q = state;
    bool from_in = host->queued(host, IN) > q->in || !host->queued(host, MAIN);
    uint64_t most = alike(host, q, newcomer, from_in);
    uint32_t want = newcomer->hi - newcomer->lo;
    kvc_piece piece = host->oldest(host, from_in ? IN : MAIN);
    *blocks = want < most ? want : (uint32_t)most;
    if (piece != KVC_PIECE_NONE)
        return piece;
    *blocks = 1;
    return host->oldest(host, from_in ? MAIN : IN); /* all of the queue is pinned */
}

static void removed(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t blocks)
{
    const unsigned char *queue = host->memory(host, piece);
    (void)state, (void)blocks;
    if (*queue == IN)
        host->remember(host, 0);
}

static const struct kvc_policy_option options[] = {
    [OPTION_IN] = {"in", KVC_OPTION_NUMBER, "0.25", 0, 1,
                   "share of the capacity where newcomers wait"},
    [OPTION_OUT] = {"out", KVC_OPTION_NUMBER, "0.5", 0, 4, "as much as this share is remembered"},
};

static const struct kvc_evict_ops ops = {
    .struct_size = sizeof(struct kvc_evict_ops),
    .piece_bytes = 1,
    .queues = 2,
    .ghost_queues = 1,
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
    .name = "plug-twoq",
    .summary = "in queue, main LRU, ghosts",
    .source = "Johnson and Shasha, VLDB 1994",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
