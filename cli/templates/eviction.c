/* @NAME@: a cache policy for kvcast, to be changed into your own. kvcast/policy.h documents all of
 * it.
 *
 * As it stands it is segmented LRU (Karedla, Love and Wherry 1994): newcomers wait in a first
 * queue; what is touched there moves to a second one, of a share of the cache, which what is
 * touched once never gets into. The oldest of the first queue goes. */
#include <kvcast/policy.h>

enum { WAITING, KEPT }; /* queues */
enum { OPTION_KEEP };   /* places in the table of options, below */

/* Everything that changes during a run; global variables must not, as runs go on side by side. */
struct state {
    uint64_t most_kept; /* blocks */
};

static void *create(const struct kvc_host *host, const union kvc_option_value *options)
{
    struct state *s = host->alloc(host, 1, sizeof(*s));
    double keep = options ? options[OPTION_KEEP].number : 0.5;
    if (!s)
        return NULL; /* out of memory: the host ends the run in order */
    s->most_kept = host->capacity_blocks == UINT64_MAX
                       ? UINT64_MAX
                       : (uint64_t)((double)host->capacity_blocks * keep);
    return s;
}

static void destroy(const struct kvc_host *host, void *state)
{
    host->free(host, state);
}

/* New blocks have come into the cache. */
static void stored(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost)
{
    (void)state;
    (void)ghost;
    host->put(host, WAITING, piece);
}

/* Blocks that were there are used again, all of the piece. */
static void touched(const struct kvc_host *host, void *state, kvc_piece piece)
{
    const struct state *s = state;
    host->put(host, KEPT, piece);
    while (host->queued(host, KEPT) > s->most_kept) {
        kvc_piece oldest = host->oldest(host, KEPT);
        if (oldest == KVC_PIECE_NONE)
            return; /* all of them are pinned */
        const struct kvc_piece_info *info = host->info(host, oldest);
        uint64_t too_many = host->queued(host, KEPT) - s->most_kept;
        if (too_many < info->hi - info->lo)
            oldest = host->cut(host, oldest, (uint32_t)too_many);
        if (oldest == KVC_PIECE_NONE)
            return;
        host->put(host, WAITING, oldest);
    }
}

/* The cache is full: whose deepest block goes? *blocks comes in as 1, which is always right. It may
 * be raised where newcomers that come one by one would all find the same victim: here while the
 * victim waits, for they queue up behind it. Where it is one of those kept, the first newcomer
 * would be the next victim. */
static kvc_piece victim(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks)
{
    kvc_piece piece = host->oldest(host, WAITING);
    (void)state;
    if (piece == KVC_PIECE_NONE)
        return host->oldest(host, KEPT);
    *blocks = newcomer->hi - newcomer->lo;
    return piece;
}

/* kvcast ceiling --policy ./@NAME@.so:keep=0.8 */
static const struct kvc_policy_option options[] = {
    [OPTION_KEEP] = {"keep", KVC_OPTION_NUMBER, "0.5", 0, 1,
                     "share of the cache for blocks used again"},
};

static const struct kvc_evict_ops ops = {
    .struct_size = sizeof(struct kvc_evict_ops),
    .queues = 2,
    .create = create,
    .destroy = destroy,
    .stored = stored,
    .touched = touched,
    .victim = victim,
};

static const struct kvc_policy policy = {
    .abi = KVC_POLICY_ABI,
    .struct_size = sizeof(struct kvc_policy),
    .kind = KVC_POLICY_EVICTION,
    .name = "@NAME@",
    .summary = "touched once first, then touched longest ago",
    .source = "Karedla, Love and Wherry, IEEE Computer 1994",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .ops = &ops,
};

const struct kvc_policy *kvc_policy_plugin(void)
{
    return &policy;
}
