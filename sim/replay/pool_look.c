/* SPDX-License-Identifier: Apache-2.0
 * What a pool holds of a path: looking changes nothing. */
#include "sim/replay/pool_internal.h"

#include "base/alloc.h"

uint64_t kvc_pool_pages(const struct kvc_pool *pool, uint64_t b)
{
    if (pool->pages_per_block)
        return b * pool->pages_per_block;
    return b * pool->trace->block_tokens / pool->page_tokens;
}

uint32_t kvc_pool_reach(const struct kvc_pool *pool, struct kvc_path path, uint32_t from,
                        uint32_t limit)
{
    uint32_t pos = from;
    for (uint32_t k = 0; k < path.n && pos < limit; k++) {
        uint32_t s = path.spans[k].seg, depth = path.spans[k].depth, lo, hi;
        if (!kvc_span_part(path.spans[k], pos, limit, &lo, &hi))
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

/* Pages of cached blocks [0, to) that have no holder; by class too, where asked for. */
static uint64_t unheld(const struct kvc_pool *pool, struct kvc_path path, uint32_t to,
                       uint64_t *by_class)
{
    uint64_t pages = 0;
    for (uint32_t k = 0; k < path.n; k++) {
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!kvc_span_part(path.spans[k], 0, to, &lo, &hi))
            break;
        for (uint32_t i = pool->first[s]; i != NONE; i = pool->runs[i].chain) {
            struct kvc_run r = pool->runs[i];
            if (r.copy || r.lo >= hi)
                break;
            if (r.holders)
                continue;
            if (r.hi > hi)
                r.hi = hi;
            uint64_t some = kvc_run_pages(pool, &r);
            pages += some;
            if (by_class)
                by_class[kvc_pool_class_of(pool, r.tenant)] += some;
        }
    }
    return pages;
}

bool kvc_pool_fits(struct kvc_pool *pool, struct kvc_path path, uint32_t to, uint64_t pages)
{
    if (!pool->rules)
        return pages + unheld(pool, path, to, NULL) <= pool->plain + pool->queued;
    uint32_t n = pool->rules->n_classes;
    uint64_t *held = kvc_calloc(n, sizeof(*held)), free = pool->plain;
    if (!held) {
        kvc_pool_out_of_memory(pool);
        return false;
    }
    unheld(pool, path, to, held);
    for (uint32_t c = 0; c < n; c++) {
        const struct kvc_pool_class *k = &pool->classes[c];
        uint64_t queued = k->queued - held[c], reserve = pool->rules->limits[c].reserve;
        uint64_t spare = k->used > reserve ? k->used - reserve : 0;
        free += c == kvc_pool_reserver(pool) || queued < spare ? queued : spare;
    }
    kvc_free(held);
    return pages <= free;
}

bool kvc_pool_gap(const struct kvc_pool *pool, struct kvc_path path, uint32_t *from, uint32_t *to,
                  uint32_t end)
{
    uint32_t start = NONE, stop = 0;
    for (uint32_t k = 0; k < path.n; k++) {
        uint32_t s = path.spans[k].seg, depth = path.spans[k].depth, lo, hi;
        if (!kvc_span_part(path.spans[k], *from, end, &lo, &hi))
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
