/* SPDX-License-Identifier: Apache-2.0
 * lirs (Jiang and Zhang, SIGMETRICS 2002): blocks whose last two uses were close to one another
 * (LIR) fill all of the cache but 1 %; the others (HIR) pass through the rest in the order they
 * came. A HIR block used again while it was touched later than some LIR block takes that block's
 * place, resident or not; the LIR block touched longest ago becomes the newest HIR.
 *
 * The paper's stack is the order of last touches down to the oldest LIR block, so whether a block
 * is on it follows from when it was touched. note: the turn (the request) of the last touch; within
 * one the deepest block is the oldest. */
#include "policies/eviction/runs_internal.h"

enum { LIR, HIR, OUT };

static const struct kvc_policy_option options[] = {
    {"hir", KVC_OPTION_NUMBER, "0.01", 0, 1, "part of the cache for blocks not close in use"},
};

static bool start(struct kvc_runs *c)
{
    uint64_t hir = kvc_share(c->capacity, c->option[0].number);
    c->most = c->capacity - (hir || !c->capacity ? hir : 1);
    return true;
}

static bool stacked(const struct kvc_runs *c, uint32_t r)
{
    uint32_t oldest = c->queue[LIR].oldest;
    if (oldest == KVC_RUN_NONE)
        return false;
    const struct kvc_run *a = &c->run[r], *b = &c->run[oldest];
    return a->note != b->note ? a->note > b->note
                              : c->seg[a->seg].depth + a->hi < c->seg[b->seg].depth + b->hi;
}

static void forget(struct kvc_runs *c)
{
    for (uint32_t r; (r = c->queue[OUT].oldest) != KVC_RUN_NONE && !stacked(c, r);)
        kvc_run_drop(c, r, kvc_run_blocks(c, r));
}

/* The deepest n blocks of a run on the stack become LIR, in the place of as many. */
static void promote(struct kvc_runs *c, uint32_t r, uint32_t n)
{
    kvc_run_move(c, r, n, LIR, c->turn);
    kvc_run_move(c, c->queue[LIR].oldest, n, HIR, c->run[c->queue[LIR].oldest].note);
}

static void hit(struct kvc_runs *c, uint32_t r)
{
    uint32_t left = kvc_run_blocks(c, r);
    if (c->run[r].queue == LIR) {
        kvc_run_move(c, r, left, LIR, c->turn);
        left = 0;
    }
    while (left) {
        uint32_t n = left;
        if (stacked(c, r)) {
            n = kvc_least(n, kvc_run_blocks(c, c->queue[LIR].oldest));
            promote(c, r, n);
        } else {
            kvc_run_move(c, r, n, HIR, c->turn);
        }
        left -= n;
    }
    forget(c);
}

static uint32_t miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t n = hi - lo;
    if (c->size < c->capacity) { /* nothing has left yet */
        uint64_t lir = c->queue[LIR].blocks;
        n = kvc_least(n, lir < c->most ? c->most - lir : c->capacity - c->size);
        kvc_run_add(c, seg, hi - n, hi, lir < c->most ? LIR : HIR, c->turn);
        return n;
    }
    uint32_t victim = c->queue[HIR].oldest;
    bool again = ghost != KVC_RUN_NONE && stacked(c, ghost);
    n = kvc_least(n, kvc_run_blocks(c, victim));
    if (again)
        n = kvc_least(n, kvc_run_blocks(c, c->queue[LIR].oldest));
    if (stacked(c, victim))
        kvc_run_move(c, victim, n, OUT, c->run[victim].note);
    else
        kvc_run_drop(c, victim, n);
    if (again)
        promote(c, ghost, n);
    else if (ghost != KVC_RUN_NONE)
        kvc_run_move(c, ghost, n, HIR, c->turn);
    else
        kvc_run_add(c, seg, hi - n, hi, HIR, c->turn);
    forget(c);
    return n;
}

static void come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    while (hi > lo && !c->failed) {
        uint64_t lir = c->queue[LIR].blocks;
        uint32_t n = hi - lo, to = lir < c->most ? LIR : HIR;
        bool again = to == HIR && ghost != KVC_RUN_NONE && stacked(c, ghost);
        if (to == LIR)
            n = kvc_least(n, c->most - lir);
        if (again)
            n = kvc_least(n, kvc_run_blocks(c, c->queue[LIR].oldest));
        if (again)
            promote(c, ghost, n);
        else if (ghost != KVC_RUN_NONE)
            kvc_run_move(c, ghost, n, to, c->turn);
        else
            kvc_run_add(c, seg, hi - n, hi, to, c->turn);
        hi -= n;
    }
    forget(c);
}

static uint32_t evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = kvc_order_oldest(c, HIR), n;
    if (r == KVC_RUN_NONE) {
        n = kvc_order_leave(c, kvc_order_oldest(c, LIR), want);
        forget(c);
        return n;
    }
    if (!stacked(c, r))
        return kvc_order_leave(c, r, want);
    n = kvc_least(want, kvc_run_blocks(c, r));
    kvc_run_move(c, r, n, OUT, c->run[r].note);
    return n;
}

static void renew(struct kvc_runs *c, uint32_t r)
{
    kvc_run_move(c, r, kvc_run_blocks(c, r), c->run[r].queue, c->turn);
    forget(c);
}

static const struct kvc_order_ops order = {.come = come, .evict = evict, .renew = renew};
const struct kvc_runs_ops kvc_runs_lirs = {.name = "lirs", KVC_OPTIONS(options),
                                           .resident_queues = 2, .start = start, .hit = hit,
                                           .miss = miss, .order = &order};
