/* SPDX-License-Identifier: Apache-2.0
 * Policies that remember what they evicted: s3fifo (Yang et al., SOSP 2023), twoq (Johnson and
 * Shasha, VLDB 1994) and arc (Megiddo and Modha, FAST 2003). Their decisions depend on the sizes
 * of their queues, so a newcomer and its victim go as one step, and as many steps at once as leave
 * every decision as it is. */
#include "policies/eviction/runs_internal.h"

/* Newcomers, remembered or not, into a queue. */
static void enter(struct kvc_runs *c, uint32_t seg, uint32_t hi, uint32_t n, uint32_t ghost,
                  uint32_t queue)
{
    if (ghost == KVC_RUN_NONE)
        kvc_run_add(c, seg, hi - n, hi, queue, 0);
    else
        kvc_run_move(c, ghost, n, queue, 0);
}

/* ---- s3fifo: note = frequency, at most 3 ---- */

enum { SMALL, MAIN, OUT };

enum { S3_SMALL, S3_GHOSTS, S3_USES };

static const struct kvc_policy_option s3fifo_options[] = {
    {"small", KVC_OPTION_NUMBER, "0.1", 0, 1, "part of the cache that newcomers go through"},
    {"ghosts", KVC_OPTION_NUMBER, "1", 0, 16,
     "blocks remembered, by blocks outside the small part"},
    {"uses", KVC_OPTION_COUNT, "2", 1, 3, "touches after which one moves on to the main part"},
};

static bool s3fifo_start(struct kvc_runs *c)
{
    uint64_t small = kvc_share(c->capacity, c->option[S3_SMALL].number);
    c->small = small ? small : 1;
    c->ghosts = kvc_share(c->capacity - c->small, c->option[S3_GHOSTS].number);
    return true;
}

static void s3fifo_hit(struct kvc_runs *c, uint32_t r)
{
    c->run[r].note += c->run[r].note < 3;
}

static bool from_small(const struct kvc_runs *c)
{
    return c->queue[SMALL].blocks >= c->small || !c->queue[MAIN].blocks;
}

/* Small is searched to its end, what was used more than once moving to main. */
static uint32_t s3fifo_victim(struct kvc_runs *c)
{
    uint32_t r;
    if (from_small(c))
        while ((r = c->queue[SMALL].oldest) != KVC_RUN_NONE) {
            if (c->run[r].note < c->option[S3_USES].count)
                return r;
            kvc_run_move(c, r, kvc_run_blocks(c, r), MAIN, 0);
        }
    while (c->run[r = c->queue[MAIN].oldest].note)
        kvc_run_move(c, r, kvc_run_blocks(c, r), MAIN, c->run[r].note - 1);
    return r;
}

static uint32_t s3fifo_steps(const struct kvc_runs *c, uint32_t victim, uint32_t want,
                             uint32_t ghost)
{
    uint64_t small = c->queue[SMALL].blocks, n = kvc_least(want, kvc_run_blocks(c, victim));
    bool to_main = ghost != KVC_RUN_NONE;
    if (c->run[victim].queue == MAIN)
        return to_main ? (uint32_t)n : kvc_least(n, c->small - small);
    if (!from_small(c)) /* moves made it too short to be asked again */
        return 1;
    if (to_main)
        n = kvc_least(n, small >= c->small ? small - c->small + 1 : 1);
    return (uint32_t)n;
}

static uint32_t s3fifo_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                            uint32_t ghost)
{
    uint32_t n = hi - lo;
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
    } else {
        uint32_t victim = s3fifo_victim(c);
        bool leaves_ghost = c->run[victim].queue == SMALL;
        if (leaves_ghost && c->queue[OUT].blocks == c->ghosts && c->queue[OUT].oldest == ghost)
            ghost = KVC_RUN_NONE; /* its victim's ghost takes the place of each newcomer's own */
        n = s3fifo_steps(c, victim, n, ghost);
        if (leaves_ghost && ghost != KVC_RUN_NONE && c->queue[OUT].blocks == c->ghosts)
            kvc_run_drop(c, c->queue[OUT].oldest, 1); /* later newcomers leave room themselves */
        if (leaves_ghost)
            kvc_run_move(c, victim, n, OUT, 0);
        else
            kvc_run_drop(c, victim, n);
    }
    enter(c, seg, hi, n, ghost, ghost == KVC_RUN_NONE ? SMALL : MAIN);
    kvc_queue_trim(c, OUT, c->ghosts);
    return n;
}

/* The run that an engine's cache lets go of next. */
static uint32_t s3fifo_free(struct kvc_runs *c)
{
    uint32_t r, next;
    if (from_small(c))
        for (r = c->queue[SMALL].oldest; r != KVC_RUN_NONE; r = next) {
            next = c->run[r].newer;
            if (!kvc_order_free(c, r))
                continue;
            if (c->run[r].note < c->option[S3_USES].count)
                return r;
            kvc_run_move(c, r, kvc_run_blocks(c, r), MAIN, 0);
        }
    while ((r = kvc_order_oldest(c, MAIN)) != KVC_RUN_NONE && c->run[r].note)
        kvc_run_move(c, r, kvc_run_blocks(c, r), MAIN, c->run[r].note - 1);
    return r != KVC_RUN_NONE ? r : kvc_order_oldest(c, SMALL);
}

static uint32_t s3fifo_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = s3fifo_free(c);
    if (r == KVC_RUN_NONE)
        return 0;
    uint64_t small = c->queue[SMALL].blocks;
    if (c->run[r].queue == MAIN)
        return kvc_order_leave(c, r, want);
    if (c->queue[MAIN].blocks) /* how long small is says which one is asked */
        want = kvc_least(want, small >= c->small ? small - c->small + 1 : 1);
    uint32_t n = kvc_least(want, kvc_run_blocks(c, r));
    kvc_run_move(c, r, n, OUT, 0);
    kvc_queue_trim(c, OUT, c->ghosts);
    return n;
}

static void s3fifo_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    enter(c, seg, hi, hi - lo, ghost, ghost == KVC_RUN_NONE ? SMALL : MAIN);
}

static const struct kvc_order_ops s3fifo_order = {.come = s3fifo_come, .evict = s3fifo_evict};
const struct kvc_runs_ops kvc_runs_s3fifo = {.name = "s3fifo", KVC_OPTIONS(s3fifo_options),
                                             .resident_queues = 2, .start = s3fifo_start,
                                             .hit = s3fifo_hit,
                                             .miss = s3fifo_miss, .order = &s3fifo_order};

/* ---- twoq ---- */

enum { TWOQ_IN, TWOQ_OUT };

static const struct kvc_policy_option twoq_options[] = {
    {"in", KVC_OPTION_NUMBER, "0.25", 0, 1, "part of the cache for blocks touched once"},
    {"out", KVC_OPTION_NUMBER, "0.5", 0, 16, "blocks remembered, by blocks of the cache"},
};

static bool twoq_start(struct kvc_runs *c)
{
    uint64_t in = kvc_share(c->capacity, c->option[TWOQ_IN].number);
    uint64_t out = kvc_share(c->capacity, c->option[TWOQ_OUT].number);
    c->small = in ? in : 1;
    c->ghosts = out ? out : 1;
    return true;
}

static void twoq_hit(struct kvc_runs *c, uint32_t r)
{
    if (c->run[r].queue != MAIN)
        return;
    kvc_queue_take(c, r);
    kvc_queue_put(c, MAIN, r);
}

static uint32_t twoq_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                          uint32_t ghost)
{
    uint32_t n = hi - lo, queue = ghost == KVC_RUN_NONE ? SMALL : MAIN;
    uint64_t small = c->queue[SMALL].blocks;
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
        enter(c, seg, hi, n, ghost, queue);
        return n;
    }
    bool shrink = small > c->small || !c->queue[MAIN].blocks;
    uint32_t victim = c->queue[shrink ? SMALL : MAIN].oldest;
    n = kvc_least(n, kvc_run_blocks(c, victim));
    if (shrink && queue == MAIN)
        n = kvc_least(n, small > c->small ? small - c->small : 1);
    if (!shrink && queue == SMALL)
        n = kvc_least(n, c->small - small + 1);
    if (!shrink)
        kvc_run_drop(c, victim, n);
    enter(c, seg, hi, n, ghost, queue); /* out of the ghosts before its victim comes in */
    if (shrink) {
        victim = c->queue[SMALL].oldest;
        kvc_run_move(c, victim, n, OUT, 0);
        kvc_queue_trim(c, OUT, c->ghosts);
    }
    return n;
}

static void twoq_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    enter(c, seg, hi, hi - lo, ghost, ghost == KVC_RUN_NONE ? SMALL : MAIN);
    kvc_queue_trim(c, OUT, c->ghosts); /* one more until then: it may be what comes */
}

static uint32_t twoq_evict(struct kvc_runs *c, uint32_t want)
{
    uint64_t small = c->queue[SMALL].blocks;
    bool shrink = small > c->small || !c->queue[MAIN].blocks;
    uint32_t r = kvc_order_oldest(c, shrink ? SMALL : MAIN);
    if (r == KVC_RUN_NONE)
        r = kvc_order_oldest(c, shrink ? MAIN : SMALL);
    if (r == KVC_RUN_NONE || c->run[r].queue == MAIN)
        return kvc_order_leave(c, r, shrink ? 1 : want);
    if (c->queue[MAIN].blocks)
        want = kvc_least(want, small > c->small ? small - c->small : 1);
    uint32_t n = kvc_least(want, kvc_run_blocks(c, r));
    kvc_run_move(c, r, n, OUT, 0);
    kvc_queue_trim(c, OUT, c->ghosts + 1);
    return n;
}

static const struct kvc_order_ops twoq_order = {.come = twoq_come, .evict = twoq_evict,
                                                .renew = twoq_hit};
const struct kvc_runs_ops kvc_runs_twoq = {.name = "twoq", KVC_OPTIONS(twoq_options),
                                           .resident_queues = 2, .start = twoq_start,
                                           .hit = twoq_hit,
                                           .miss = twoq_miss, .order = &twoq_order};

/* ---- arc ---- */

enum { T1, T2, B1, B2 };

static void arc_hit(struct kvc_runs *c, uint32_t r)
{
    kvc_queue_take(c, r);
    kvc_queue_put(c, T2, r);
}

static uint32_t arc_source(const struct kvc_runs *c, bool in_b2)
{
    double t1 = (double)c->queue[T1].blocks;
    bool first = c->queue[T1].blocks && (t1 > c->target || (in_b2 && t1 == c->target));
    uint32_t from = first ? T1 : T2;
    return c->queue[from].blocks ? from : T1 + T2 - from;
}

static void arc_replace(struct kvc_runs *c, uint32_t from, uint32_t n)
{
    kvc_run_move(c, c->queue[from].oldest, n, from + B1, 0);
}

/* Where the target stands after one more block was remembered by the recent list, or the other. */
static double arc_aim(double target, bool recent, uint64_t b1, uint64_t b2, double capacity)
{
    double step = recent ? (double)b2 / (double)b1 : (double)b1 / (double)b2;
    step = step > 1 ? step : 1;
    target = recent ? target + step : target - step;
    return target > capacity ? capacity : target < 0 ? 0 : target;
}

/* Blocks that are remembered: the target moves towards the list they were in, with each of them.
 * As many at once as take their room from the same list. */
static uint32_t arc_ghost(struct kvc_runs *c, uint32_t ghost, uint32_t want)
{
    bool recent = c->run[ghost].queue == B1;
    uint64_t count[4];
    uint32_t n = 0, from = T1;
    for (uint32_t q = T1; q <= B2; q++)
        count[q] = c->queue[q].blocks;
    while (n < want) {
        double target = arc_aim(c->target, recent, count[B1], count[B2], (double)c->capacity);
        double t1 = (double)count[T1];
        bool first = count[T1] && (t1 > target || (!recent && t1 == target));
        uint32_t next = (first || !count[T2]) && count[T1] ? T1 : T2;
        if (n && next != from)
            break;
        from = next;
        c->target = target;
        count[from]--;
        count[from + B1]++;
        count[recent ? B1 : B2]--;
        count[T2]++;
        if (++n == kvc_run_blocks(c, c->queue[from].oldest))
            break;
    }
    kvc_run_move(c, ghost, n, T2, 0);
    /* The victims were the oldest before the newcomers came, and still are. */
    arc_replace(c, from, n);
    return n;
}

/* Steps in which T1 and T2 are asked alike. */
static uint32_t arc_steps(const struct kvc_runs *c, uint32_t from, uint32_t want)
{
    uint64_t t1 = c->queue[T1].blocks;
    uint64_t n = kvc_least(want, kvc_run_blocks(c, c->queue[from].oldest));
    if (from == T2) /* T1 grows towards the target; an empty T1 is its own case */
        n = t1 ? kvc_least(n, (uint64_t)c->target - t1 + 1) : 1;
    return (uint32_t)n;
}

static uint32_t arc_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                         uint32_t ghost)
{
    uint64_t t1 = c->queue[T1].blocks, recent = t1 + c->queue[B1].blocks;
    uint64_t all = recent + c->queue[T2].blocks + c->queue[B2].blocks;
    uint32_t n = hi - lo;
    if (ghost != KVC_RUN_NONE)
        return arc_ghost(c, ghost, n);
    if (recent == c->capacity && t1 == c->capacity) {
        n = kvc_least(n, kvc_run_blocks(c, c->queue[T1].oldest));
        kvc_run_drop(c, c->queue[T1].oldest, n);
    } else if (recent == c->capacity) {
        uint32_t from = arc_source(c, false);
        n = kvc_least(arc_steps(c, from, n), c->queue[B1].blocks);
        kvc_queue_trim(c, B1, c->queue[B1].blocks - n);
        arc_replace(c, from, n);
    } else if (all >= c->capacity) {
        uint32_t from = arc_source(c, false);
        bool full = all == 2 * c->capacity;
        n = kvc_least(arc_steps(c, from, n), c->capacity - recent);
        n = kvc_least(n, full ? c->queue[B2].blocks : 2 * c->capacity - all);
        if (full)
            kvc_queue_trim(c, B2, c->queue[B2].blocks - n);
        arc_replace(c, from, n);
    } else {
        n = kvc_least(n, c->capacity - (all > recent ? all : recent));
    }
    kvc_run_add(c, seg, hi - n, hi, T1, 0);
    return n;
}

/* In an engine's cache what is remembered teaches when it is asked for. */
static void arc_arrive(struct kvc_runs *c, uint32_t leaf)
{
    for (uint32_t seg = leaf; seg != KVC_RUN_NONE; seg = c->seg[seg].parent)
        for (uint32_t r = c->seg[seg].deepest; r != KVC_RUN_NONE; r = c->run[r].shallower)
            for (uint32_t n = kvc_run_resident(c, r) ? 0 : kvc_run_blocks(c, r); n-- > 0;)
                c->target = arc_aim(c->target, c->run[r].queue == B1, c->queue[B1].blocks,
                                    c->queue[B2].blocks, (double)c->capacity);
}

static void arc_forget(struct kvc_runs *c, uint32_t queue, uint64_t blocks, uint64_t most)
{
    uint64_t n = c->queue[queue].blocks, over = blocks > most ? blocks - most : 0;
    kvc_queue_trim(c, queue, n - (over < n ? over : n));
}

/* Newcomers that are not remembered push out what is. */
static void arc_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    if (ghost != KVC_RUN_NONE) {
        kvc_run_move(c, ghost, hi - lo, T2, 0);
        return;
    }
    arc_forget(c, B1, c->queue[T1].blocks + c->queue[B1].blocks + hi - lo, c->capacity);
    arc_forget(c, B2, c->size + c->queue[B1].blocks + c->queue[B2].blocks + hi - lo,
               2 * c->capacity);
    kvc_run_add(c, seg, lo, hi, T1, 0);
}

static bool newcomer_in(const struct kvc_runs *c, uint32_t queue)
{
    if (c->newcomer.seg == KVC_RUN_NONE)
        return false;
    uint32_t g = kvc_run_before(c, c->newcomer.seg, c->newcomer.hi);
    return g != KVC_RUN_NONE && c->run[g].hi >= c->newcomer.hi && c->run[g].queue == queue;
}

static uint32_t arc_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t from = arc_source(c, newcomer_in(c, B2)), r = kvc_order_oldest(c, from);
    if (r == KVC_RUN_NONE)
        r = kvc_order_oldest(c, T1 + T2 - from);
    if (r == KVC_RUN_NONE)
        return 0;
    uint32_t n = from == T2 ? kvc_least(want, kvc_run_blocks(c, r)) : 1;
    if (c->run[r].queue == T1)
        n = 1; /* its length says which one is asked */
    kvc_run_move(c, r, n, c->run[r].queue + B1, 0);
    return n;
}

static const struct kvc_order_ops arc_order = {.come = arc_come, .evict = arc_evict,
                                               .renew = kvc_order_requeue, .arrive = arc_arrive};
const struct kvc_runs_ops kvc_runs_arc = {.name = "arc", .resident_queues = 2, .hit = arc_hit,
                                          .miss = arc_miss, .order = &arc_order};
