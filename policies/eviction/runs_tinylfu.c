/* SPDX-License-Identifier: Apache-2.0
 * wtinylfu (Einziger, Friedman and Manes, ACM TOS 2017): newcomers enter an LRU window of 1 %. What
 * falls out of it takes the place of the oldest block on probation only if it was asked for more
 * often lately. A use on probation protects a block; protected ones, at most 80 % of what the
 * window leaves, fall back to probation from the oldest on.
 *
 * The sketch that counts is as wide as the trace: a counter per block without collisions, which
 * blocks of a segment share because every request asks for all of them. It counts a request's
 * blocks before they are touched, up to 15, and halves all when 10 x capacity touches were
 * added. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"

enum { WINDOW, PROBATION, PROTECTED };

enum { OPT_WINDOW, OPT_PROTECTED, OPT_SAMPLE };

static const struct kvc_policy_option options[] = {
    {"window", KVC_OPTION_NUMBER, "0.01", 0, 1, "part of the cache that newcomers go through"},
    {"protected", KVC_OPTION_NUMBER, "0.8", 0, 1, "of the rest, the part for blocks used again"},
    {"sample", KVC_OPTION_COUNT, "10", 1, 1e9, 
     "counters are halved after so many capacities of touches"},
};

static bool start(struct kvc_runs *c)
{
    uint64_t window = kvc_share(c->capacity, c->option[OPT_WINDOW].number);
    uint64_t sample = c->option[OPT_SAMPLE].count;
    c->small = window ? window : 1;
    c->most = kvc_share(c->capacity - c->small, c->option[OPT_PROTECTED].number);
    c->sample = c->capacity < UINT64_MAX / sample ? sample * c->capacity : UINT64_MAX;
    c->sketch = kvc_calloc(c->n_segments, sizeof(*c->sketch));
    return c->sketch != NULL;
}

static void arrive(struct kvc_runs *c, uint32_t seg)
{
    for (; seg != KVC_RUN_NONE; seg = c->seg[seg].parent) {
        c->sketch[seg] = (uint8_t)(c->sketch[seg] + (c->sketch[seg] < 15));
        c->counted += c->seg[seg].len;
    }
    if (c->counted < c->sample)
        return;
    c->counted /= 2;
    for (uint32_t s = 0; s < c->n_segments; s++)
        c->sketch[s] /= 2;
}

static void hit(struct kvc_runs *c, uint32_t r)
{
    uint32_t to = c->run[r].queue == WINDOW ? WINDOW : PROTECTED;
    kvc_queue_take(c, r);
    kvc_queue_put(c, to, r);
    while (c->queue[PROTECTED].blocks > c->most) {
        r = c->queue[PROTECTED].oldest;
        kvc_run_move(c, r, kvc_least(c->queue[PROTECTED].blocks - c->most, kvc_run_blocks(c, r)),
                     PROBATION, 0);
    }
}

/* The oldest of the window leaves it: n blocks at most, and returns how many. */
static uint32_t leave_window(struct kvc_runs *c, uint32_t n)
{
    uint32_t r = c->queue[WINDOW].oldest, victim = c->queue[PROBATION].oldest;
    n = kvc_least(n, kvc_run_blocks(c, r));
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
        kvc_run_move(c, r, n, PROBATION, 0);
        return n;
    }
    if (victim == KVC_RUN_NONE) { /* the first to come in is the next victim */
        victim = c->queue[PROTECTED].oldest;
        n = victim == KVC_RUN_NONE ? n : 1;
    }
    if (victim == KVC_RUN_NONE || c->sketch[c->run[r].seg] <= c->sketch[c->run[victim].seg]) {
        kvc_run_drop(c, r, n);
        return n;
    }
    n = kvc_least(n, kvc_run_blocks(c, victim));
    kvc_run_drop(c, victim, n);
    kvc_run_move(c, r, n, PROBATION, 0);
    return n;
}

static uint32_t miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint64_t window = c->queue[WINDOW].blocks;
    uint32_t n = hi - lo;
    (void)ghost;
    n = window < c->small ? kvc_least(n, c->small - window) : leave_window(c, n);
    kvc_run_add(c, seg, hi - n, hi, WINDOW, 0);
    return n;
}

static void come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    (void)ghost;
    kvc_run_add(c, seg, lo, hi, WINDOW, 0);
    for (uint64_t window; (window = c->queue[WINDOW].blocks) > c->small;) {
        uint32_t r = c->queue[WINDOW].oldest;
        kvc_run_move(c, r, kvc_least(window - c->small, kvc_run_blocks(c, r)), PROBATION, 0);
    }
}

/* A full window sets its oldest against the oldest on probation; asked again after each block
 * where that changes who stands there. */
static uint32_t evict(struct kvc_runs *c, uint32_t want)
{
    uint64_t window = c->queue[WINDOW].blocks;
    uint32_t r = kvc_order_oldest(c, WINDOW), victim = kvc_order_oldest(c, PROBATION);
    if (victim == KVC_RUN_NONE)
        victim = kvc_order_oldest(c, PROTECTED);
    if (victim == KVC_RUN_NONE)
        return kvc_order_leave(c, r, want);
    if (r == KVC_RUN_NONE || window < c->small)
        return kvc_order_leave(c, victim, want);
    uint32_t n = kvc_least(window - c->small + 1, kvc_least(want, kvc_run_blocks(c, r)));
    if (c->sketch[c->run[r].seg] <= c->sketch[c->run[victim].seg])
        return kvc_order_leave(c, r, n);
    n = kvc_order_leave(c, victim, c->run[victim].queue == PROBATION ? n : 1);
    kvc_run_move(c, r, n, PROBATION, 0);
    return n;
}

static const struct kvc_order_ops order = {.come = come, .evict = evict,
                                           .renew = kvc_order_requeue};
const struct kvc_runs_ops kvc_runs_wtinylfu = {.name = "wtinylfu", KVC_OPTIONS(options),
                                               .start = start, .arrive = arrive, .hit = hit,
                                               .miss = miss, .order = &order};
