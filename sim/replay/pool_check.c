/* SPDX-License-Identifier: Apache-2.0
 * Walks over all of a pool: what was never read, and whether its invariants hold. */
#include "sim/replay/pool_internal.h"

uint64_t kvc_pool_never_read(const struct kvc_pool *pool)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < pool->n_runs; i++)
        if (pool->runs[i].seg != NONE && !pool->runs[i].read)
            blocks += pool->runs[i].hi - pool->runs[i].lo;
    return blocks;
}

/* Queues are whole and in order, and hold what is charged. */
static const char *check_classes(const struct kvc_pool *pool, const uint64_t *used)
{
    for (uint32_t c = 0; c < (pool->rules ? pool->rules->n_classes : 1); c++) {
        uint32_t last = NONE;
        uint64_t queued = 0;
        for (uint32_t i = pool->classes[c].head; i != NONE; last = i, i = pool->runs[i].next) {
            if (pool->runs[i].prev != last)
                return "a queue is broken";
            if (kvc_pool_class_of(pool, pool->runs[i].tenant) != c)
                return "a run is in another class's queue";
            if (pool->rules && last != NONE && pool->ages[last].stamp > pool->ages[i].stamp)
                return "a queue is not in order";
            queued += pool->runs[i].holders ? 0 : kvc_run_pages(pool, &pool->runs[i]);
        }
        if (last != pool->classes[c].tail)
            return "a queue has no end";
        if (pool->rules &&
            (queued != pool->classes[c].queued || used[c] != pool->classes[c].used))
            return "charges disagree with the runs";
    }
    return NULL;
}

static const char *check_expiries(const struct kvc_pool *pool)
{
    uint64_t listed = 0, queued = 0;
    for (uint32_t k = 0; pool->rules && k < pool->rules->n_ttls; k++) {
        uint32_t last = NONE;
        for (uint32_t i = pool->expiries[k].head; i != NONE; last = i, i = pool->ages[i].next) {
            if (pool->ages[i].prev != last || pool->ages[i].ttl != k || !pool->runs[i].queued)
                return "a list of expiries is broken";
            if (last != NONE && pool->ages[last].touched_ns > pool->ages[i].touched_ns)
                return "a list of expiries is not in order";
            listed++;
        }
    }
    for (size_t i = 0; pool->rules && i < pool->n_runs; i++)
        queued += pool->runs[i].seg != NONE && pool->runs[i].queued &&
                  pool->ages[i].ttl < pool->rules->n_ttls;
    return listed != queued ? "a run that expires is not listed" : NULL;
}

#define CHECKED_CLASSES 256

const char *kvc_pool_check(const struct kvc_pool *pool)
{
    uint64_t queued = 0, cached = 0, copies = 0, used[CHECKED_CLASSES] = {0};
    if (pool->rules && pool->rules->n_classes > CHECKED_CLASSES)
        return "more classes than can be checked";
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
            used[kvc_pool_class_of(pool, r->tenant)] += kvc_run_pages(pool, r);
            queued += r->holders ? 0 : kvc_run_pages(pool, r);
            if (!r->holders && !r->queued)
                return "a run without holder is not queued";
        }
    }
    const char *wrong = check_classes(pool, used);
    if (!wrong)
        wrong = check_expiries(pool);
    if (!wrong && pool->policy)
        wrong = kvc_pool_policy_check(pool);
    if (wrong)
        return wrong;
    if (queued != pool->queued || copies != pool->copies)
        return "counts disagree with the runs";
    if (cached + pool->plain > pool->pages)
        return "more is cached than fits";
    return NULL;
}
