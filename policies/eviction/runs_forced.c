/* SPDX-License-Identifier: Apache-2.0
 * optforced: what is used again last goes (Belady 1966), but never the newcomer: the optimum of a
 * cache that must store all it is asked for. Requests are touched root to leaf. Which block is next
 * used when comes with the request. A segment's blocks all have one next request; of those with
 * the same, the deepest is used last. key: the next request that uses the run, UINT32_MAX none. */
#include "policies/eviction/runs_internal.h"

static uint32_t end_of(const struct kvc_runs *c, const struct kvc_run *run)
{
    return c->seg[run->seg].depth + run->hi;
}

static bool later(const struct kvc_runs *c, const struct kvc_run *a, const struct kvc_run *b)
{
    return a->key != b->key ? a->key > b->key : end_of(c, a) > end_of(c, b);
}

/* The shallowest run at or below a place. */
static uint32_t run_from(const struct kvc_runs *c, uint32_t seg, uint32_t at)
{
    uint32_t found = KVC_RUN_NONE;
    for (uint32_t r = c->seg[seg].deepest; r != KVC_RUN_NONE && c->run[r].lo >= at;
         r = c->run[r].shallower)
        found = r;
    return found;
}

/* The run that ends at a place; what this touch has passed is one with it. */
static uint32_t run_to(const struct kvc_runs *c, uint32_t seg, uint32_t at)
{
    uint32_t r = c->seg[seg].deepest;
    while (r != KVC_RUN_NONE && c->run[r].hi > at)
        r = c->run[r].shallower;
    return r != KVC_RUN_NONE && c->run[r].hi == at ? r : KVC_RUN_NONE;
}

/* Blocks [lo, hi) come in behind what this touch has passed. */
static void come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint64_t next)
{
    uint32_t r = run_to(c, seg, lo);
    c->size += hi - lo;
    if (r != KVC_RUN_NONE) {
        c->run[r].hi = hi;
        kvc_heap_sift(c, c->run[r].older);
    } else if ((r = kvc_run_new(c, seg, lo, hi)) != KVC_RUN_NONE) {
        c->run[r].key = next;
        kvc_heap_put(c, r);
    }
}

/* Takes in blocks from at on, all absent up to end; returns how many. */
static uint32_t take_in(struct kvc_runs *c, uint32_t seg, uint32_t at, uint32_t end, uint64_t next)
{
    const struct kvc_run first = {.seg = seg, .lo = at, .hi = at + 1, .key = next};
    uint32_t n = end - at;
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
        come(c, seg, at, at + n, next);
        return n;
    }
    if (later(c, &c->run[c->heap[0]], &first)) {
        n = kvc_least(n, kvc_run_blocks(c, c->heap[0]));
        kvc_heap_shorten_top(c, n);
        come(c, seg, at, at + n, next);
        return n;
    }
    kvc_heap_shorten_top(c, 1); /* after it each newcomer is the next one's victim */
    if (n > 1)
        kvc_run_left(c, seg, at, end - 1);
    come(c, seg, end - 1, end, next);
    return n;
}

static uint32_t touch(struct kvc_runs *c, uint32_t seg, uint64_t next)
{
    uint32_t at = 0, found = 0, stored = kvc_runs_may_store(c, seg);
    while (at < c->seg[seg].len && !c->failed) {
        uint32_t r = run_from(c, seg, at);
        if (r == KVC_RUN_NONE || c->run[r].lo > at) {
            uint32_t end = r == KVC_RUN_NONE ? c->seg[seg].len : c->run[r].lo;
            if (at >= stored)
                at = end; /* refused */
            else
                at += take_in(c, seg, at, end < stored ? end : stored, next);
            continue;
        }
        uint32_t before = run_to(c, seg, at);
        found += kvc_run_blocks(c, r);
        at = c->run[r].hi;
        if (before != KVC_RUN_NONE) {
            c->run[before].hi = at;
            kvc_heap_take(c, r);
            kvc_run_free(c, r);
            r = before;
        }
        c->run[r].key = next;
        kvc_heap_sift(c, c->run[r].older);
    }
    return found;
}

static uint64_t whole(struct kvc_runs *c, uint32_t leaf)
{
    uint64_t found = 0;
    uint32_t n = kvc_runs_path(c, leaf);
    for (uint32_t i = 0; i < n; i++)
        found += touch(c, c->path[i], c->next[n - 1 - i]);
    return found;
}

const struct kvc_runs_ops kvc_runs_optforced = {.name = "optforced", .wants_next = true,
                                                .first = later, .whole = whole};
