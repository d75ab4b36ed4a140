/* SPDX-License-Identifier: Apache-2.0
 * Policies that count: lfu (counts begin anew after an eviction) and plfu (they never do). Queue f
 * holds the runs touched f times, by last touch, so the victim is the oldest of the first queue
 * that is not empty. Lenaware evicts the block deepest in its request, of equals the one touched
 * longest ago. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"

/* ---- queues by frequency ---- */

static bool start(struct kvc_runs *c)
{
    (void)c;
    return true;
}

static bool plfu_start(struct kvc_runs *c)
{
    c->touches = kvc_calloc(c->n_segments, sizeof(*c->touches));
    return c->touches != NULL;
}

/* The first queue from here that is not empty; there is one. */
static uint32_t lowest(struct kvc_runs *c)
{
    uint32_t f = c->hand == KVC_RUN_NONE ? 1 : c->hand;
    while (!c->queue[f].blocks)
        f++;
    c->hand = f;
    return f;
}

static void count_to(struct kvc_runs *c, uint32_t r, uint32_t f)
{
    if (!kvc_queues_grow(c, (size_t)f + 1))
        return;
    kvc_queue_take(c, r);
    kvc_queue_put(c, f, r);
}

/* Newcomers join queue f. */
static uint32_t join(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t f)
{
    uint32_t n = hi - lo;
    if (!kvc_queues_grow(c, (size_t)f + 1))
        return n;
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
    } else {
        uint32_t from = lowest(c), r = c->queue[from].oldest;
        struct kvc_run *run = &c->run[r];
        if (from == f && c->queue[f].newest == r && run->seg == seg && run->lo == hi) {
            kvc_run_slide(c, r, n); /* each newcomer pushes out the one before the last ones */
            return n;
        }
        n = from > f ? 1 : kvc_least(n, kvc_run_blocks(c, r));
        kvc_run_drop(c, r, n);
    }
    if (c->hand == KVC_RUN_NONE || f < c->hand)
        c->hand = f;
    kvc_run_add(c, seg, hi - n, hi, f, 0);
    return n;
}

static void lfu_hit(struct kvc_runs *c, uint32_t r)
{
    count_to(c, r, c->run[r].queue + 1);
}

static uint32_t lfu_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                         uint32_t ghost)
{
    (void)ghost;
    return join(c, seg, lo, hi, 1);
}

static void plfu_hit(struct kvc_runs *c, uint32_t r)
{
    count_to(c, r, c->touches[c->run[r].seg]);
}

/* All blocks of a segment have been touched equally often. */
static uint32_t plfu_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                          uint32_t ghost)
{
    (void)ghost;
    return join(c, seg, lo, hi, c->touches[seg]);
}

static void come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t f)
{
    if (!kvc_queues_grow(c, (size_t)f + 1))
        return;
    c->hand = f < c->hand ? f : c->hand;
    kvc_run_add(c, seg, lo, hi, f, 0);
}

static void lfu_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    (void)ghost;
    come(c, seg, lo, hi, 1);
}

/* Nobody may have asked for it: a known output. */
static void plfu_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    (void)ghost;
    come(c, seg, lo, hi, c->touches[seg]);
}

static uint32_t evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = KVC_RUN_NONE;
    while (c->hand < c->n_queues && !c->queue[c->hand].blocks)
        c->hand++;
    for (uint32_t f = c->hand; f < c->n_queues && r == KVC_RUN_NONE; f++)
        r = kvc_order_oldest(c, f);
    return kvc_order_leave(c, r, want);
}

static const struct kvc_order_ops lfu_order = {.come = lfu_come, .evict = evict,
                                               .renew = kvc_order_requeue};
static const struct kvc_order_ops plfu_order = {.come = plfu_come, .evict = evict,
                                                .renew = kvc_order_requeue};
const struct kvc_runs_ops kvc_runs_lfu = {.name = "lfu", .start = start, .hit = lfu_hit,
                                          .miss = lfu_miss, .order = &lfu_order};
const struct kvc_runs_ops kvc_runs_plfu = {.name = "plfu", .start = plfu_start, .hit = plfu_hit,
                                           .miss = plfu_miss, .order = &plfu_order};

/* ---- lenaware ---- */

static uint32_t end_depth(const struct kvc_runs *c, const struct kvc_run *run)
{
    return c->seg[run->seg].depth + run->hi;
}

static bool goes_first(const struct kvc_runs *c, const struct kvc_run *a, const struct kvc_run *b)
{
    uint32_t x = end_depth(c, a), y = end_depth(c, b);
    return x != y ? x > y : a->stamp < b->stamp;
}

/* The deeper neighbour, if this touch has been there. */
static uint32_t neighbour(const struct kvc_runs *c, uint32_t seg, uint32_t hi)
{
    uint32_t n = kvc_run_at(c, seg, hi);
    return n != KVC_RUN_NONE && c->run[n].stamp == c->clock ? n : KVC_RUN_NONE;
}

static void lenaware_hit(struct kvc_runs *c, uint32_t r)
{
    uint32_t n = neighbour(c, c->run[r].seg, c->run[r].hi);
    if (n != KVC_RUN_NONE && kvc_runs_tags_alike(c, n, r)) {
        c->run[n].lo = c->run[r].lo;
        kvc_heap_take(c, r);
        kvc_run_free(c, r);
        return;
    }
    c->run[r].stamp = c->clock;
    kvc_heap_sift(c, c->run[r].older);
}

/* How many blocks the top loses before another run goes first. */
static uint32_t stays_first(const struct kvc_runs *c, uint32_t most)
{
    const struct kvc_run *top = &c->run[c->heap[0]], *second;
    if (c->n_heap == 1)
        return most;
    second = &c->run[c->heap[1]];
    if (c->n_heap > 2 && goes_first(c, &c->run[c->heap[2]], second))
        second = &c->run[c->heap[2]];
    uint32_t n = end_depth(c, top) - end_depth(c, second) + (top->stamp < second->stamp);
    return n < most ? n : most;
}

static uint32_t lenaware_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                              uint32_t ghost)
{
    uint32_t n = hi - lo, own = neighbour(c, seg, hi);
    (void)ghost;
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
    } else if (own != KVC_RUN_NONE && c->heap[0] == own) {
        n = stays_first(c, n); /* each newcomer pushes out the deepest of those before */
        kvc_run_slide(c, own, n);
        kvc_heap_sift(c, 0);
        return n;
    } else {
        n = own == KVC_RUN_NONE ? 1 : stays_first(c, kvc_least(n, kvc_run_blocks(c, c->heap[0])));
        kvc_heap_shorten_top(c, n);
    }
    if (own != KVC_RUN_NONE) {
        c->run[own].lo -= n;
        c->size += n;
    } else {
        kvc_heap_come(c, seg, hi - n, hi, 0, 0);
    }
    return n;
}

static void lenaware_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                          uint32_t ghost)
{
    (void)ghost;
    kvc_heap_come(c, seg, lo, hi, 0, 0);
}

static uint32_t lenaware_evict(struct kvc_runs *c, uint32_t want)
{
    (void)want; /* the block above may lie less deep than another */
    return kvc_order_leave(c, kvc_order_first(c, kvc_order_free), 1);
}

static const struct kvc_order_ops lenaware_order = {.come = lenaware_come, .evict = lenaware_evict,
                                                    .renew = kvc_order_restamp};
const struct kvc_runs_ops kvc_runs_lenaware = {.name = "lenaware", .first = goes_first,
                                               .hit = lenaware_hit, .miss = lenaware_miss,
                                               .order = &lenaware_order};
