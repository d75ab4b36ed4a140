/* SPDX-License-Identifier: Apache-2.0
 * priority: TensorRT-LLM's eviction with retention (evictionPolicy.cpp). A block has a level of 0
 * to 100, 35 where nothing is said; the block released longest ago of the lowest level goes, and
 * with it all that lies below it. A hit gives a block the level of the request that hits it. A
 * level may hold for a duration from the release on; then the block falls to 35, as the newest
 * there.
 *
 * Logs carry no retention configs, so a rule stands for them: the first tokens of every prompt have
 * a level of their own (a system prompt, tools), and so may the prompts of one tenant.
 *
 * A request claims what it finds, so its own blocks are never victims, and what has no room
 * stays outside; at its end all of its blocks are released, the deepest first. Queue: the level;
 * note: the turn (the request) of the release, stamp: its time. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"
#include "base/whole.h"

#include <string.h>

enum { HEAD, HEAD_LEVEL, LEVEL, TENANT, TENANT_LEVEL, DURATION, DEFAULT_LEVEL = 35, LEVELS = 101 };

static const struct kvc_policy_option options[] = {
    {"head", KVC_OPTION_COUNT, "1024", 0, UINT32_MAX, "tokens at the start of each prompt"},
    {"headlevel", KVC_OPTION_COUNT, "80", 0, 100, "level of blocks that begin in them"},
    {"level", KVC_OPTION_COUNT, "35", 0, 100, "level of the others"},
    {"tenant", KVC_OPTION_COUNT, "4294967295", 0, UINT32_MAX,
     "number of a tenant, in the trace's order from 0"},
    {"tenantlevel", KVC_OPTION_COUNT, "60", 0, 100, "level of its blocks behind the head"},
    {"duration", KVC_OPTION_TIME, "0s", 0, 1e18, "how long levels hold after a use; 0s: for ever"},
};

static bool start(struct kvc_runs *c)
{
    size_t n = c->n_segments;
    c->below = kvc_calloc(n, sizeof(*c->below)); /* segments below with blocks */
    c->child = kvc_malloc(n, sizeof(*c->child));
    c->sibling = kvc_malloc(n, sizeof(*c->sibling));
    if (!c->below || !c->child || !c->sibling || !kvc_queues_grow(c, LEVELS))
        return false;
    memset(c->child, 0xff, n * sizeof(*c->child));
    for (uint32_t s = 0; s < c->n_segments; s++) {
        uint32_t up = c->seg[s].parent;
        c->sibling[s] = up == KVC_RUN_NONE ? KVC_RUN_NONE : c->child[up];
        if (up != KVC_RUN_NONE)
            c->child[up] = s;
    }
    return true;
}

/* ---- levels that end ---- */

/* Whether a was released before b. */
static bool earlier(const struct kvc_runs *c, uint32_t a, uint32_t b)
{
    const struct kvc_run *x = &c->run[a], *y = &c->run[b];
    return x->note != y->note ? x->note < y->note
                              : c->seg[x->seg].depth + x->hi > c->seg[y->seg].depth + y->hi;
}

static void arrive(struct kvc_runs *c, uint32_t leaf)
{
    static const unsigned levels[] = {HEAD_LEVEL, LEVEL, TENANT_LEVEL};
    uint64_t duration = c->option[DURATION].time_ns;
    (void)leaf;
    for (uint32_t due = 0; duration && due != KVC_RUN_NONE;) {
        due = KVC_RUN_NONE;
        for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
            uint64_t level = c->option[levels[i]].count;
            uint32_t r = level == DEFAULT_LEVEL ? KVC_RUN_NONE : c->queue[level].oldest;
            if (r != KVC_RUN_NONE && c->now_ns - c->run[r].stamp >= duration &&
                (due == KVC_RUN_NONE || earlier(c, r, due)))
                due = r;
        }
        if (due != KVC_RUN_NONE)
            kvc_run_move(c, due, kvc_run_blocks(c, due), DEFAULT_LEVEL, c->run[due].note);
    }
}

/* ---- victims ---- */

static void empty(struct kvc_runs *c, uint32_t seg)
{
    while (c->seg[seg].deepest != KVC_RUN_NONE)
        kvc_run_drop(c, c->seg[seg].deepest, kvc_run_blocks(c, c->seg[seg].deepest));
    c->below[seg] = 0;
}

/* All that lies below a segment. */
static void drop_below(struct kvc_runs *c, uint32_t top)
{
    uint32_t s = c->below[top] ? c->child[top] : KVC_RUN_NONE;
    while (s != KVC_RUN_NONE) {
        bool deeper = c->below[s] > 0;
        empty(c, s);
        if (deeper) {
            s = c->child[s];
            continue;
        }
        while (s != top && c->sibling[s] == KVC_RUN_NONE)
            s = c->seg[s].parent;
        s = s == top ? KVC_RUN_NONE : c->sibling[s];
    }
    c->below[top] = 0;
}

/* Makes room for a block at least, for want at most where that takes leaves only. Nothing else of
 * the request's path is in a queue. */
static bool evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t level = 0;
    while (level < LEVELS && !c->queue[level].blocks)
        level++;
    if (level == LEVELS)
        return false;
    uint32_t r = c->queue[level].oldest, seg = c->run[r].seg, n = 1;
    if (c->seg[seg].deepest == r && !c->below[seg])
        n = kvc_least(want, kvc_run_blocks(c, r));
    drop_below(c, seg);
    while (c->seg[seg].deepest != r)
        kvc_run_drop(c, c->seg[seg].deepest, kvc_run_blocks(c, c->seg[seg].deepest));
    kvc_run_drop(c, r, n);
    if (c->seg[seg].deepest == KVC_RUN_NONE && c->seg[seg].parent != KVC_RUN_NONE)
        c->below[c->seg[seg].parent]--;
    return true;
}

/* ---- a request ---- */

/* Takes the path's blocks out of their queues; returns how many there are. */
static uint32_t claim(struct kvc_runs *c, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seg = c->path[i], r;
        while ((r = c->seg[seg].deepest) != KVC_RUN_NONE) {
            found += kvc_run_blocks(c, r);
            kvc_queue_take(c, r);
            kvc_run_free(c, r);
        }
    }
    return found;
}

/* The first blocks of the path go back into queues, the deepest first. */
static void release(struct kvc_runs *c, uint32_t n, uint32_t blocks, uint32_t found)
{
    uint64_t head = kvc_div_up(c->option[HEAD].count, c->block_tokens);
    bool theirs = c->tenant != KVC_ID_NONE && c->tenant == c->option[TENANT].count;
    uint32_t level = (uint32_t)c->option[theirs ? TENANT_LEVEL : LEVEL].count;
    for (uint32_t i = n; i-- > 0 && !c->failed;) {
        uint32_t seg = c->path[i], depth = c->seg[seg].depth;
        if (depth >= blocks)
            continue;
        if (depth >= found && i > 0)
            c->below[c->path[i - 1]]++;
        uint32_t hi = kvc_least(c->seg[seg].len, blocks - depth);
        uint32_t cut = head <= depth ? 0 : kvc_least(hi, head - depth);
        const uint32_t lo[] = {cut, 0}, end[] = {hi, cut};
        const uint32_t queue[] = {level, (uint32_t)c->option[HEAD_LEVEL].count};
        for (int part = 0; part < 2; part++) {
            if (lo[part] == end[part])
                continue;
            uint32_t r = kvc_run_add(c, seg, lo[part], end[part], queue[part], c->turn);
            if (r != KVC_RUN_NONE)
                c->run[r].stamp = c->now_ns;
        }
    }
}

static uint64_t whole(struct kvc_runs *c, uint32_t leaf)
{
    uint32_t n = kvc_runs_path(c, leaf), found = claim(c, n), blocks = found;
    uint32_t all = kvc_least(c->seg[leaf].depth + c->seg[leaf].len, c->limit);
    while (blocks < all) { /* what is claimed still counts in size */
        if (c->size == c->capacity && !evict(c, all - blocks))
            break;
        uint32_t more = kvc_least(all - blocks, c->capacity - c->size);
        blocks += more;
        c->size += more;
    }
    c->size -= blocks; /* release counts them again */
    release(c, n, blocks, found);
    return found;
}

/* ---- in an engine's cache, which says what is held ---- */

/* Blocks of the request in hand are released: runs that begin in the head end with it. */
static uint32_t level_of(const struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t *hi)
{
    uint64_t head = kvc_div_up(c->option[HEAD].count, c->block_tokens);
    uint32_t depth = c->seg[seg].depth;
    bool theirs = c->tenant != KVC_ID_NONE && c->tenant == c->option[TENANT].count;
    if (depth + lo >= head)
        return (uint32_t)c->option[theirs ? TENANT_LEVEL : LEVEL].count;
    *hi = kvc_least(*hi, head - depth);
    return (uint32_t)c->option[HEAD_LEVEL].count;
}

static void order_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t cut = hi, level = level_of(c, seg, lo, &cut);
    if (cut < hi)
        order_come(c, seg, cut, hi, ghost);
    uint32_t r = kvc_run_add(c, seg, lo, cut, level, c->turn);
    if (r != KVC_RUN_NONE)
        c->run[r].stamp = c->now_ns;
}

static void order_use(struct kvc_runs *c, uint32_t r)
{
    uint32_t cut = c->run[r].hi, level = level_of(c, c->run[r].seg, c->run[r].lo, &cut);
    if (cut < c->run[r].hi) {
        uint32_t deeper = kvc_run_cut(c, r, cut);
        if (deeper == KVC_RUN_NONE)
            return;
        order_use(c, deeper);
    }
    kvc_run_move(c, r, kvc_run_blocks(c, r), level, c->turn);
    r = c->queue[level].newest;
    if (r != KVC_RUN_NONE)
        c->run[r].stamp = c->now_ns;
}

/* The next segment below top, depth first; NONE: that was the last. */
static uint32_t next_below(const struct kvc_runs *c, uint32_t top, uint32_t s)
{
    if (c->kids[s])
        return c->child[s];
    while (s != top && c->sibling[s] == KVC_RUN_NONE)
        s = c->seg[s].parent;
    return s == top ? KVC_RUN_NONE : c->sibling[s];
}

/* Of all that lies below a run what was released longest ago; the run itself: nothing does. */
static uint32_t first_below(const struct kvc_runs *c, uint32_t r)
{
    uint32_t top = c->run[r].seg, best = r;
    for (uint32_t s = top; s != KVC_RUN_NONE; s = next_below(c, top, s))
        for (uint32_t d = c->seg[s].deepest; d != KVC_RUN_NONE && d != r; d = c->run[d].shallower)
            if (best == r || earlier(c, d, best))
                best = d;
    return best;
}

/* Whether a run may go with all that lies below it. */
static bool may_go(const struct kvc_runs *c, uint32_t r)
{
    uint32_t top = c->run[r].seg;
    bool free = kvc_order_free(c, r);
    for (uint32_t s = top; free && s != KVC_RUN_NONE; s = next_below(c, top, s))
        for (uint32_t d = c->seg[s].deepest; free && d != KVC_RUN_NONE && d != r;
             d = c->run[d].shallower)
            free = kvc_order_free(c, d);
    return free;
}

static uint32_t order_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = KVC_RUN_NONE;
    uint64_t size = c->size;
    for (uint32_t level = 0; level < LEVELS && r == KVC_RUN_NONE; level++) {
        r = c->queue[level].oldest;
        while (r != KVC_RUN_NONE && !may_go(c, r))
            r = c->run[r].newer;
    }
    for (uint32_t level = 0; level < LEVELS && r == KVC_RUN_NONE; level++)
        if ((r = kvc_order_oldest(c, level)) != KVC_RUN_NONE)
            return kvc_order_leave(c, r, 1); /* alone: below each of them something is held */
    if (r == KVC_RUN_NONE)
        return 0;
    for (uint32_t below; (below = first_below(c, r)) != r;) {
        kvc_order_leave(c, below, c->allowed ? 1 : UINT32_MAX);
        if (c->allowed)
            return 1;
    }
    kvc_order_leave(c, r, size == c->size ? want : 1);
    return (uint32_t)(size - c->size);
}

static void order_renew(struct kvc_runs *c, uint32_t r)
{
    uint32_t level = c->run[r].queue;
    kvc_run_move(c, r, kvc_run_blocks(c, r), level, c->turn);
    c->run[c->queue[level].newest].stamp = c->now_ns;
}

static const struct kvc_order_ops order = {.come = order_come, .evict = order_evict,
                                           .use = order_use, .renew = order_renew, .tree = true};
const struct kvc_runs_ops kvc_runs_priority = {.name = "priority", KVC_OPTIONS(options),
                                               .start = start, .arrive = arrive,
                                               .whole = whole, .order = &order};
