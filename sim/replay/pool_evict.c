/* SPDX-License-Identifier: Apache-2.0
 * What leaves a pool. docs/tenants.md states the rules. */
#include "sim/replay/pool_internal.h"

#include "base/whole.h"
#include "sim/replay/meter.h"

void kvc_pool_run_charge_tenant(struct kvc_pool *pool, const struct kvc_run *r, bool more)
{
    uint64_t pages = kvc_run_pages(pool, r);
    if (!more)
        pages = -pages;
    pool->classes[kvc_pool_class_of(pool, r->tenant)].used += pages;
    pool->over |= pool->rules && more;
    if (pool->meter)
        kvc_meter_charge(pool->meter, r->tenant, pages * pool->page_bytes);
}

/* ---- leaving ---- */

/* Of what run was, blocks [lo, hi) are no longer there: why says for whom, or that their time was
 * up. */
static inline void left(struct kvc_pool *pool, const struct kvc_run *was, uint32_t lo, uint32_t hi,
                        uint32_t why)
{
    bool expired = why == KVC_BY_TTL;
    *(expired ? &pool->expired_blocks : &pool->evicted_blocks) += hi - lo;
    pool->never_read_blocks += was->read ? 0 : hi - lo;
    if (pool->meter)
        kvc_meter_left(pool->meter, was->seg, lo, hi, was->tenant, why,
                       (hi - lo) * pool->block_bytes);
    if (pool->evicted && !(expired && !pool->rules->ttls[pool->expiring].passes_down))
        pool->evicted(pool->evicted_user, was->seg, lo, hi, was->tenant);
}

/* What went lives on in copies where there are some: the oldest becomes the main run. Reports the
 * rest as evicted. */
static void replace_by_copies(struct kvc_pool *pool, const struct kvc_run *was, uint32_t why)
{
    uint32_t seg = was->seg, at = was->lo, hi = was->hi;
    while (at < hi) {
        uint32_t copy = NONE, stop = hi;
        for (uint32_t i = pool->first[seg]; i != NONE; i = pool->runs[i].chain) {
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
            left(pool, was, at, stop, why);
        } else {
            if (pool->runs[copy].lo < at)
                copy = kvc_pool_run_cut(pool, copy, at);
            if (copy == NONE ||
                (pool->runs[copy].hi > stop && kvc_pool_run_cut(pool, copy, stop) == NONE))
                return;
            kvc_pool_run_unchain(pool, copy);
            pool->runs[copy].copy = false;
            pool->copies--;
            kvc_pool_run_chain(pool, copy);
        }
        at = stop;
    }
}

static inline void gone(struct kvc_pool *pool, const struct kvc_run *was, uint32_t why)
{
    if (was->copy)
        return;
    if (pool->copies)
        replace_by_copies(pool, was, why);
    else
        left(pool, was, was->lo, was->hi, why);
}

void kvc_pool_run_leave(struct kvc_pool *pool, uint32_t i)
{
    uint64_t pages = kvc_run_pages(pool, &pool->runs[i]);
    kvc_pool_changed(pool, pool->runs[i].seg, pool->runs[i].lo);
    kvc_pool_count_queued(pool, pool->runs[i].tenant, -pages);
    pool->plain += pages;
    kvc_pool_run_charge(pool, &pool->runs[i], false);
    kvc_pool_run_dequeue(pool, i);
    kvc_pool_run_free(pool, i);
}

void kvc_pool_run_expire(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run was = pool->runs[i];
    kvc_pool_run_leave(pool, i);
    if (pool->policy)
        kvc_pool_policy_forget(pool, &was);
    gone(pool, &was, KVC_BY_TTL);
}

void kvc_pool_evict_from(struct kvc_pool *pool, uint32_t i, uint64_t pages)
{
    struct kvc_run was = pool->runs[i];
    uint32_t at = was.hi;
    if (pool->pages_per_block) {
        uint64_t blocks = kvc_div_up(pages, pool->pages_per_block);
        at = blocks < was.hi - was.lo ? was.hi - (uint32_t)blocks : was.lo;
    } else {
        uint64_t depth = pool->trace->seg_depth[was.seg];
        uint64_t top = kvc_pool_pages(pool, depth + was.hi);
        while (at > was.lo && top - kvc_pool_pages(pool, depth + at) < pages)
            at--;
    }
    bool whole = at == was.lo;
    was.lo = at;
    if (whole) {
        kvc_pool_run_leave(pool, i);
    } else {
        uint64_t freed = kvc_run_pages(pool, &was);
        pool->plain += freed;
        kvc_pool_count_queued(pool, was.tenant, -freed);
        pool->runs[i].hi = at;
        kvc_pool_changed(pool, was.seg, at);
        kvc_pool_run_charge(pool, &was, false);
    }
    gone(pool, &was, pool->by);
}

void kvc_pool_evict_blocks(struct kvc_pool *pool, uint32_t seg, uint32_t lo, uint32_t hi)
{
    while (lo < hi && !pool->nomem) {
        uint32_t i = pool->first[seg];
        while (i != NONE && pool->runs[i].hi < hi)
            i = pool->runs[i].chain;
        if (i == NONE || pool->runs[i].copy || pool->runs[i].holders)
            return; /* kvc_pool_check tells */
        if (pool->runs[i].hi > hi && kvc_pool_run_cut(pool, i, hi) == NONE)
            return;
        if (pool->runs[i].lo < lo && (i = kvc_pool_run_cut(pool, i, lo)) == NONE)
            return;
        struct kvc_run was = pool->runs[i];
        kvc_pool_run_leave(pool, i);
        gone(pool, &was, pool->by);
        hi = was.lo;
    }
}

void kvc_pool_take(struct kvc_pool *pool, uint64_t pages)
{
    while (pool->plain < pages && !pool->nomem) {
        if (pool->policy) {
            bool whose = !pool->whose || kvc_pool_whose(pool, pages);
            if (!whose || !kvc_pool_policy_evict(pool, NONE, pages - pool->plain))
                return;
            continue;
        }
        uint64_t most = KVC_CAPACITY_INF, lack = pages - pool->plain;
        uint32_t i = pool->rules ? kvc_pool_victim(pool, pages, &most) : kvc_pool_oldest(pool, 0);
        if (i == NONE)
            return; /* the caller's check was wrong; plain stays short and kvc_pool_check tells */
        kvc_pool_evict_from(pool, i, lack < most ? lack : most);
    }
    pool->plain -= pages;
    uint64_t used = pool->pages - pool->plain;
    if (used > pool->peak_used)
        pool->peak_used = used;
}
