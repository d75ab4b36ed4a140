/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pool_impl.h"

#include "base/alloc.h"

#include <string.h>

bool kvc_pool_init(struct kvc_pool *pool, const struct kvc_trace *trace, uint32_t page_tokens,
                   uint64_t pages, bool touch_moves)
{
    memset(pool, 0, sizeof(*pool));
    pool->trace = trace;
    pool->page_tokens = page_tokens;
    if (trace->block_tokens && trace->block_tokens % page_tokens == 0)
        pool->pages_per_block = trace->block_tokens / page_tokens;
    pool->touch_moves = touch_moves;
    pool->pages = pool->plain = pages;
    pool->head = pool->tail = pool->free_run = NONE;
    pool->first = kvc_malloc(trace->n_segments, sizeof(*pool->first));
    if (!pool->first)
        return false;
    memset(pool->first, 0xff, trace->n_segments * sizeof(*pool->first));
    return true;
}

void kvc_pool_clear(struct kvc_pool *pool)
{
    kvc_free(pool->first);
    kvc_free(pool->runs);
    kvc_free(pool->scratch);
    memset(pool, 0, sizeof(*pool));
}

uint64_t kvc_pool_pages(const struct kvc_pool *pool, uint64_t b)
{
    if (pool->pages_per_block)
        return b * pool->pages_per_block;
    return b * pool->trace->block_tokens / pool->page_tokens;
}

/* ---- runs, chains, the queue ---- */

static uint32_t run_new(struct kvc_pool *pool, struct kvc_run value)
{
    uint32_t i = pool->free_run;
    if (i != NONE) {
        pool->free_run = pool->runs[i].chain;
    } else {
        if (!kvc_grow((void **)&pool->runs, &pool->cap_runs, pool->n_runs + 1,
                      sizeof(*pool->runs))) {
            pool->nomem = true;
            return NONE;
        }
        i = (uint32_t)pool->n_runs++;
    }
    pool->runs[i] = value;
    return i;
}

static void chain_remove(struct kvc_pool *pool, uint32_t i)
{
    uint32_t *link = &pool->first[pool->runs[i].seg];
    while (*link != i)
        link = &pool->runs[*link].chain;
    *link = pool->runs[i].chain;
    if (pool->where && pool->first[pool->runs[i].seg] == NONE)
        pool->where[pool->runs[i].seg] &= ~pool->bit;
}

static void chain_insert(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    uint32_t *link = &pool->first[r->seg];
    while (*link != NONE && (r->copy || (!pool->runs[*link].copy && pool->runs[*link].lo < r->lo)))
        link = &pool->runs[*link].chain;
    r->chain = *link;
    *link = i;
    if (pool->where)
        pool->where[r->seg] |= pool->bit;
}

static void run_free(struct kvc_pool *pool, uint32_t i)
{
    if (pool->runs[i].copy)
        pool->copies--;
    chain_remove(pool, i);
    pool->runs[i].seg = NONE;
    pool->runs[i].chain = pool->free_run;
    pool->free_run = i;
}

static void queue_remove(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    *(r->prev == NONE ? &pool->head : &pool->runs[r->prev].next) = r->next;
    *(r->next == NONE ? &pool->tail : &pool->runs[r->next].prev) = r->prev;
    r->queued = false;
}

static void queue_before(struct kvc_pool *pool, uint32_t i, uint32_t at)
{
    struct kvc_run *r = &pool->runs[i];
    r->next = at;
    r->prev = at == NONE ? pool->tail : pool->runs[at].prev;
    *(r->prev == NONE ? &pool->head : &pool->runs[r->prev].next) = i;
    *(at == NONE ? &pool->tail : &pool->runs[at].prev) = i;
    r->queued = true;
}

/* A run that continues, towards the root, the one queued just before it becomes part of it, so
 * that a segment released whole is one run again. */
static void queue_join(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    if (r->prev == NONE)
        return;
    struct kvc_run *deeper = &pool->runs[r->prev];
    if (deeper->seg != r->seg || deeper->lo != r->hi || deeper->copy != r->copy ||
        deeper->read != r->read || deeper->holders || r->holders || r->copy || r->pending ||
        deeper->pending)
        return;
    uint32_t gone = r->prev;
    r->hi = deeper->hi;
    queue_remove(pool, gone);
    run_free(pool, gone);
}

/* The run loses its last holder: it joins the young end, or stays where it was inserted. */
static void run_unhold(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    if (--r->holders)
        return;
    pool->queued += kvc_run_pages(pool, r);
    if (!r->queued)
        queue_before(pool, i, NONE);
    queue_join(pool, i);
}

static void run_hold(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    if (r->holders++)
        return;
    pool->queued -= kvc_run_pages(pool, r);
    /* In insertion order a held run keeps its place and eviction steps over it. */
    if (pool->touch_moves)
        queue_remove(pool, i);
}

/* Splits run i at block at; i keeps the part towards the root. The deeper part goes first in the
 * queue. Returns the deeper run. */
static uint32_t run_cut(struct kvc_pool *pool, uint32_t i, uint32_t at)
{
    struct kvc_run deeper = pool->runs[i];
    deeper.lo = at;
    uint32_t d = run_new(pool, deeper);
    if (d == NONE)
        return NONE;
    struct kvc_run *r = &pool->runs[i];
    r->hi = at;
    r->chain = d;
    pool->copies += deeper.copy;
    if (r->queued)
        queue_before(pool, d, i);
    return d;
}

/* ---- looking ---- */

/* The part of a span that lies in path blocks [from, to), counted inside the segment. */
static bool part_of(struct kvc_span span, uint32_t from, uint32_t to, uint32_t *lo, uint32_t *hi)
{
    if (to <= span.depth || from >= span.depth + span.len)
        return false;
    *lo = from > span.depth ? from - span.depth : 0;
    *hi = to - span.depth < span.len ? to - span.depth : span.len;
    return *lo < *hi;
}

uint32_t kvc_pool_reach(const struct kvc_pool *pool, struct kvc_path path, uint32_t from,
                        uint32_t limit)
{
    uint32_t pos = from;
    for (uint32_t k = 0; k < path.n && pos < limit; k++) {
        uint32_t s = path.spans[k].seg, depth = path.spans[k].depth, lo, hi;
        if (!part_of(path.spans[k], pos, limit, &lo, &hi))
            continue;
        for (uint32_t i = pool->first[s]; i != NONE && lo < hi; i = pool->runs[i].chain) {
            const struct kvc_run *r = &pool->runs[i];
            if (r->copy || r->lo > lo)
                break;
            if (r->hi <= lo)
                continue;
            if (r->pending)
                break;
            lo = r->hi;
        }
        if (lo < hi)
            return depth + lo > pos ? depth + lo : pos;
        pos = depth + hi;
    }
    return pos;
}

uint64_t kvc_pool_unheld(const struct kvc_pool *pool, struct kvc_path path, uint32_t to)
{
    uint64_t pages = 0;
    for (uint32_t k = 0; k < path.n; k++) {
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!part_of(path.spans[k], 0, to, &lo, &hi))
            break;
        for (uint32_t i = pool->first[s]; i != NONE; i = pool->runs[i].chain) {
            struct kvc_run r = pool->runs[i];
            if (r.copy || r.lo >= hi)
                break;
            if (r.holders)
                continue;
            if (r.hi > hi)
                r.hi = hi;
            pages += kvc_run_pages(pool, &r);
        }
    }
    return pages;
}

bool kvc_pool_gap(const struct kvc_pool *pool, struct kvc_path path, uint32_t *from, uint32_t *to,
                  uint32_t end)
{
    uint32_t start = NONE, stop = 0;
    for (uint32_t k = 0; k < path.n; k++) {
        uint32_t s = path.spans[k].seg, depth = path.spans[k].depth, lo, hi;
        if (!part_of(path.spans[k], *from, end, &lo, &hi))
            continue;
        uint32_t i = pool->first[s];
        while (lo < hi) {
            while (i != NONE && !pool->runs[i].copy && pool->runs[i].hi <= lo)
                i = pool->runs[i].chain;
            bool stored = i != NONE && !pool->runs[i].copy && pool->runs[i].lo < hi;
            uint32_t gap_end = stored ? pool->runs[i].lo : hi;
            if (gap_end > lo) { /* missing: [lo, gap_end) */
                if (start == NONE)
                    start = depth + lo;
                stop = depth + gap_end;
            }
            if (stored) {
                if (start != NONE)
                    goto found;
                lo = pool->runs[i].hi;
            } else {
                lo = hi;
            }
        }
    }
found:
    if (start == NONE)
        return false;
    *from = start;
    *to = stop;
    return true;
}

/* ---- taking and giving ---- */

void kvc_pool_hold(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to)
{
    for (uint32_t k = 0; k < path.n; k++) {
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!part_of(path.spans[k], from, to, &lo, &hi))
            continue;
        for (uint32_t i = pool->first[s]; i != NONE; i = pool->runs[i].chain) {
            if (pool->runs[i].copy || pool->runs[i].lo >= hi)
                break;
            if (pool->runs[i].hi <= lo)
                continue;
            if (pool->runs[i].lo < lo)
                i = run_cut(pool, i, lo);
            if (i != NONE && pool->runs[i].hi > hi && run_cut(pool, i, hi) == NONE)
                return;
            if (i == NONE)
                return;
            run_hold(pool, i);
            pool->runs[i].read = true;
        }
    }
}

/* The evicted part [lo, hi) of seg lives on in copies where there are some: the oldest becomes the
 * main run. Reports the rest as evicted. */
static void replace_by_copies(struct kvc_pool *pool, uint32_t seg, uint32_t lo, uint32_t hi,
                              bool read)
{
    uint32_t at = lo;
    while (at < hi) {
        uint32_t copy = NONE, stop = hi;
        for (uint32_t i = pool->copies ? pool->first[seg] : NONE; i != NONE;
             i = pool->runs[i].chain) {
            const struct kvc_run *r = &pool->runs[i];
            if (!r->copy || r->hi <= at)
                continue;
            if (r->lo > at) {
                stop = r->lo < stop ? r->lo : stop;
                continue;
            }
            copy = i;
            stop = r->hi < stop ? r->hi : stop;
            break;
        }
        if (copy == NONE) {
            pool->evicted_blocks += stop - at;
            pool->never_read_blocks += read ? 0 : stop - at;
            if (pool->evicted)
                pool->evicted(pool->evicted_user, seg, at, stop);
        } else {
            if (pool->runs[copy].lo < at)
                copy = run_cut(pool, copy, at);
            if (copy == NONE ||
                (pool->runs[copy].hi > stop && run_cut(pool, copy, stop) == NONE))
                return;
            chain_remove(pool, copy);
            pool->runs[copy].copy = false;
            pool->copies--;
            chain_insert(pool, copy);
        }
        at = stop;
    }
}

/* Evicts from the oldest run, deepest block first, until need plain pages are there or the run is
 * used up. */
static void evict_from(struct kvc_pool *pool, uint32_t i, uint64_t need)
{
    struct kvc_run was = pool->runs[i];
    uint32_t at = was.hi;
    uint64_t freed;
    if (pool->pages_per_block) {
        uint64_t blocks =
            (need - pool->plain + pool->pages_per_block - 1) / pool->pages_per_block;
        at = blocks < was.hi - was.lo ? was.hi - (uint32_t)blocks : was.lo;
        freed = (uint64_t)(was.hi - at) * pool->pages_per_block;
    } else {
        uint64_t depth = pool->trace->seg_depth[was.seg];
        uint64_t top = kvc_pool_pages(pool, depth + was.hi);
        while (at > was.lo && pool->plain + top - kvc_pool_pages(pool, depth + at) < need)
            at--;
        freed = top - kvc_pool_pages(pool, depth + at);
    }
    pool->plain += freed;
    pool->queued -= freed;
    pool->runs[i].hi = at;
    if (at == was.lo) {
        queue_remove(pool, i);
        run_free(pool, i);
    }
    if (!was.copy)
        replace_by_copies(pool, was.seg, at, was.hi, was.read);
}

void kvc_pool_take(struct kvc_pool *pool, uint64_t pages)
{
    while (pool->plain < pages && !pool->nomem) {
        uint32_t i = pool->head;
        while (i != NONE && pool->runs[i].holders)
            i = pool->runs[i].next;
        if (i == NONE)
            return; /* the caller's check was wrong; plain stays short and kvc_pool_check tells */
        evict_from(pool, i, pages);
    }
    pool->plain -= pages;
    uint64_t used = pool->pages - pool->plain;
    if (used > pool->peak_used)
        pool->peak_used = used;
}

/* Adds [lo, hi) of seg as one held run, or lengthens the run before it when only the caller can
 * be holding that. */
static void add_run(struct kvc_pool *pool, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t before,
                    struct kvc_run state, bool may_extend)
{
    if (may_extend && before != NONE) {
        struct kvc_run *r = &pool->runs[before];
        if (r->hi == lo && r->holders == 1 && !r->pending && !r->read && !r->queued) {
            r->hi = hi;
            return;
        }
    }
    state.seg = seg;
    state.lo = lo;
    state.hi = hi;
    uint32_t i = run_new(pool, state);
    if (i == NONE)
        return;
    pool->copies += state.copy;
    chain_insert(pool, i);
    /* A tier in insertion order queues a run when it comes in, held or not. */
    if (!pool->touch_moves)
        queue_before(pool, i, NONE);
}

bool kvc_pool_publish(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                      uint32_t owner, bool pending, bool has_copies)
{
    struct kvc_run state = {.holders = 1, .prev = NONE, .next = NONE, .owner = owner,
                            .pending = pending};
    bool made_copies = false;
    for (uint32_t k = path.n; k-- > 0;) { /* deepest first: the order of insertion */
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!part_of(path.spans[k], from, to, &lo, &hi))
            continue;
        while (lo < hi && !pool->nomem) {
            uint32_t before = NONE, i = pool->first[s];
            while (i != NONE && !pool->runs[i].copy && pool->runs[i].hi <= lo) {
                before = i;
                i = pool->runs[i].chain;
            }
            bool main_here = i != NONE && !pool->runs[i].copy;
            uint32_t end = hi;
            state.copy = main_here && pool->runs[i].lo <= lo;
            if (state.copy && pool->runs[i].hi < hi)
                end = pool->runs[i].hi;
            else if (main_here && !state.copy && pool->runs[i].lo < hi)
                end = pool->runs[i].lo;
            made_copies |= state.copy;
            add_run(pool, s, lo, end, before, state, !pending && !has_copies && !made_copies);
            lo = end;
        }
    }
    return made_copies;
}

/* Collects the runs of seg within [lo, hi) that owner gives up, in order of position: its copies
 * where it has some, else main runs. */
static size_t collect(struct kvc_pool *pool, uint32_t seg, uint32_t lo, uint32_t hi,
                      uint32_t owner, bool has_copies)
{
    size_t n = 0;
    while (lo < hi && !pool->nomem) {
        uint32_t found = NONE, end = hi;
        for (uint32_t i = pool->first[seg]; i != NONE; i = pool->runs[i].chain) {
            const struct kvc_run *r = &pool->runs[i];
            if (r->copy && (!has_copies || r->owner != owner || !r->holders))
                continue; /* without holder it is from an earlier life of that owner */
            if (r->hi <= lo)
                continue;
            if (r->lo > lo) {
                if (r->copy && r->lo < end)
                    end = r->lo;
                continue;
            }
            if (found == NONE || r->copy)
                found = i;
            if (!has_copies)
                break;
        }
        if (found == NONE || !kvc_grow((void **)&pool->scratch, &pool->cap_scratch, n + 1,
                                       sizeof(*pool->scratch))) {
            pool->nomem = pool->nomem || found != NONE;
            break;
        }
        if (pool->runs[found].lo < lo)
            found = run_cut(pool, found, lo);
        if (found == NONE)
            break;
        if (pool->runs[found].hi > end && run_cut(pool, found, end) == NONE)
            break;
        pool->scratch[n++] = found;
        lo = pool->runs[found].hi;
    }
    return n;
}

void kvc_pool_release(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                      uint32_t owner, bool has_copies)
{
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t lo, hi;
        if (!part_of(path.spans[k], from, to, &lo, &hi))
            continue;
        for (size_t n = collect(pool, path.spans[k].seg, lo, hi, owner, has_copies); n-- > 0;)
            run_unhold(pool, pool->scratch[n]);
    }
}

void kvc_pool_settle(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                     uint32_t owner)
{
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!part_of(path.spans[k], from, to, &lo, &hi))
            continue;
        size_t n = 0;
        for (uint32_t i = pool->first[s]; i != NONE; i = pool->runs[i].chain) {
            struct kvc_run *r = &pool->runs[i];
            if (!r->pending || r->owner != owner || r->lo < lo || r->hi > hi)
                continue;
            if (!kvc_grow((void **)&pool->scratch, &pool->cap_scratch, n + 1,
                          sizeof(*pool->scratch))) {
                pool->nomem = true;
                return;
            }
            pool->scratch[n++] = i;
        }
        while (n-- > 0) {
            pool->runs[pool->scratch[n]].pending = false;
            run_unhold(pool, pool->scratch[n]);
        }
    }
}

void kvc_pool_touch(struct kvc_pool *pool, struct kvc_path path, uint32_t to)
{
    if (!pool->touch_moves)
        return;
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t lo, hi;
        if (!part_of(path.spans[k], 0, to, &lo, &hi))
            continue;
        for (size_t n = collect(pool, path.spans[k].seg, lo, hi, NONE, false); n-- > 0;) {
            uint32_t i = pool->scratch[n];
            if (pool->runs[i].holders)
                continue;
            queue_remove(pool, i);
            queue_before(pool, i, NONE);
            queue_join(pool, i);
        }
    }
}

void kvc_pool_drop(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to)
{
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!part_of(path.spans[k], from, to, &lo, &hi))
            continue;
        for (size_t n = collect(pool, s, lo, hi, NONE, false); n-- > 0;) {
            uint32_t i = pool->scratch[n];
            if (pool->runs[i].holders)
                continue;
            uint64_t pages = kvc_run_pages(pool, &pool->runs[i]);
            pool->queued -= pages;
            pool->plain += pages;
            queue_remove(pool, i);
            run_free(pool, i);
        }
    }
}
