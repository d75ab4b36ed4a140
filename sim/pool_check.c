/* SPDX-License-Identifier: Apache-2.0
 * Walks over all of a pool: what was never read, and whether its invariants hold. */
#include "sim/pool_impl.h"

uint64_t kvc_pool_never_read(const struct kvc_pool *pool)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < pool->n_runs; i++)
        if (pool->runs[i].seg != NONE && !pool->runs[i].read)
            blocks += pool->runs[i].hi - pool->runs[i].lo;
    return blocks;
}

const char *kvc_pool_check(const struct kvc_pool *pool)
{
    uint64_t queued = 0, cached = 0, copies = 0;
    for (uint32_t s = 0; s < pool->trace->n_segments; s++) {
        uint32_t end = 0;
        bool seen_copy = false;
        for (uint32_t i = pool->first[s]; i != NONE; i = pool->runs[i].chain) {
            const struct kvc_run *r = &pool->runs[i];
            if (r->seg != s || r->lo >= r->hi || r->hi > pool->trace->seg_len[s])
                return "a run lies outside its segment";
            if (!r->copy && (seen_copy || r->lo < end))
                return "main runs overlap or follow copies";
            end = r->copy ? end : r->hi;
            seen_copy |= r->copy;
            copies += r->copy;
            cached += kvc_run_pages(pool, r);
            queued += r->holders ? 0 : kvc_run_pages(pool, r);
            if (!r->holders && !r->queued)
                return "a run without holder is not queued";
        }
    }
    uint32_t last = NONE;
    for (uint32_t i = pool->head; i != NONE; last = i, i = pool->runs[i].next)
        if (pool->runs[i].prev != last)
            return "the queue is broken";
    if (last != pool->tail)
        return "the queue has no end";
    if (queued != pool->queued || copies != pool->copies)
        return "counts disagree with the runs";
    if (cached + pool->plain > pool->pages)
        return "more is cached than fits";
    return NULL;
}
