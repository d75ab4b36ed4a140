/* SPDX-License-Identifier: Apache-2.0
 * What leaves a pool, and whose goes first. docs/tenants.md states the rules. */
#include "sim/pool_impl.h"

#include "sim/meter.h"

void kvc_pool_charge(struct kvc_pool *pool, uint32_t tenant, int64_t pages)
{
    pool->classes[kvc_pool_class_of(pool, tenant)].used += (uint64_t)pages;
}

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
static void left(struct kvc_pool *pool, const struct kvc_run *was, uint32_t lo, uint32_t hi,
                 uint32_t why)
{
    bool expired = why == KVC_BY_TTL, down = true;
    *(expired ? &pool->expired_blocks : &pool->evicted_blocks) += hi - lo;
    pool->never_read_blocks += was->read ? 0 : hi - lo;
    if (pool->meter)
        kvc_meter_left(pool->meter, was->seg, lo, hi, was->tenant, why,
                       (hi - lo) * pool->block_bytes);
    if (expired)
        down = pool->rules->ttls[pool->expiring].passes_down;
    if (pool->evicted && down)
        pool->evicted(pool->evicted_user, was->seg, lo, hi, was->tenant);
}

/* The evicted part [lo, hi) of seg lives on in copies where there are some: the oldest becomes the
 * main run. Reports the rest as evicted. */
static void replace_by_copies(struct kvc_pool *pool, const struct kvc_run *was, uint32_t lo,
                              uint32_t why)
{
    uint32_t seg = was->seg, hi = was->hi;
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

void kvc_pool_run_leave(struct kvc_pool *pool, uint32_t i)
{
    uint64_t pages = kvc_run_pages(pool, &pool->runs[i]);
    kvc_pool_count_queued(pool, pool->runs[i].tenant, -pages);
    pool->plain += pages;
    kvc_pool_run_charge(pool, &pool->runs[i], false);
    kvc_pool_run_dequeue(pool, i);
    kvc_pool_run_free(pool, i);
}

/* Evicts from run i, deepest block first, until so many pages are free or it is used up. */
static void evict_from(struct kvc_pool *pool, uint32_t i, uint64_t pages)
{
    struct kvc_run was = pool->runs[i], gone = was;
    uint32_t at = was.hi;
    if (pool->pages_per_block) {
        uint64_t blocks = (pages + pool->pages_per_block - 1) / pool->pages_per_block;
        at = blocks < was.hi - was.lo ? was.hi - (uint32_t)blocks : was.lo;
    } else {
        uint64_t depth = pool->trace->seg_depth[was.seg];
        uint64_t top = kvc_pool_pages(pool, depth + was.hi);
        while (at > was.lo && top - kvc_pool_pages(pool, depth + at) < pages)
            at--;
    }
    gone.lo = at;
    if (at == was.lo) {
        kvc_pool_run_leave(pool, i);
    } else {
        uint64_t freed = kvc_run_pages(pool, &gone);
        pool->plain += freed;
        kvc_pool_count_queued(pool, was.tenant, -freed);
        pool->runs[i].hi = at;
        kvc_pool_run_charge(pool, &gone, false);
    }
    if (!was.copy)
        replace_by_copies(pool, &was, at, pool->by);
}

/* ---- whose goes ---- */

/* The class's oldest run that nobody holds. */
static uint32_t oldest(const struct kvc_pool *pool, uint32_t c)
{
    uint32_t i = pool->classes[c].head;
    while (i != NONE && pool->runs[i].holders) /* in insertion order they keep their place */
        i = pool->runs[i].next;
    return i;
}

static uint32_t own_class(const struct kvc_pool *pool)
{
    return pool->by == KVC_BY_DECODING ? NONE : pool->rules->class_of[pool->by];
}

/* How far with so many pages more the class of by exceeds a quota that it must keep to. */
static uint64_t own_excess(const struct kvc_pool *pool, uint64_t pages)
{
    uint32_t c = own_class(pool);
    if (c == NONE)
        return 0;
    const struct kvc_pool_limits *l = &pool->rules->limits[c];
    uint64_t used = pool->classes[c].used + pages;
    return l->mode != KVC_QUOTA_SOFT && used > l->quota ? used - l->quota : 0;
}

static uint64_t above(uint64_t used, uint64_t limit)
{
    return used > limit ? used - limit : 0;
}

/* The run whose blocks go next when by takes so many pages, and how many of its pages at most
 * before that has to be asked again. */
static uint32_t victim(const struct kvc_pool *pool, uint64_t pages, uint64_t *most)
{
    uint32_t own = own_class(pool), best = NONE, best_class = NONE;
    uint64_t excess = own_excess(pool, pages);
    if (excess && (best = oldest(pool, own)) != NONE) {
        *most = excess;
        return best;
    }
    bool best_over = false;
    for (uint32_t c = 0; c < pool->rules->n_classes; c++) {
        const struct kvc_pool_limits *l = &pool->rules->limits[c];
        const struct kvc_pool_class *k = &pool->classes[c];
        uint32_t i = oldest(pool, c);
        if (i == NONE || (c != own && k->used <= l->reserve))
            continue;
        bool over = l->mode == KVC_QUOTA_SOFT && k->used > l->quota;
        const struct kvc_pool_limits *b = &pool->rules->limits[best == NONE ? c : best_class];
        if (best == NONE || over > best_over ||
            (over == best_over &&
             (l->priority > b->priority || (l->priority == b->priority &&
                                            pool->ages[i].stamp < pool->ages[best].stamp)))) {
            best = i;
            best_class = c;
            best_over = over;
        }
    }
    if (best == NONE)
        return NONE;
    const struct kvc_pool_limits *l = &pool->rules->limits[best_class];
    uint64_t used = pool->classes[best_class].used;
    if (best_class != own && l->reserve)
        *most = above(used, l->reserve);
    if (best_over && above(used, l->quota) < *most)
        *most = above(used, l->quota);
    return best;
}

uint64_t kvc_pool_available_by(const struct kvc_pool *pool)
{
    uint64_t pages = pool->plain;
    for (uint32_t c = 0; c < pool->rules->n_classes; c++) {
        const struct kvc_pool_class *k = &pool->classes[c];
        uint64_t free = above(k->used, pool->rules->limits[c].reserve);
        pages += c == own_class(pool) || k->queued < free ? k->queued : free;
    }
    return pages;
}

void kvc_pool_take(struct kvc_pool *pool, uint64_t pages)
{
    while (pool->plain < pages && !pool->nomem) {
        uint64_t most = KVC_CAPACITY_INF, lack = pages - pool->plain;
        uint32_t i = pool->rules ? victim(pool, pages, &most) : oldest(pool, 0);
        if (i == NONE)
            return; /* the caller's check was wrong; plain stays short and kvc_pool_check tells */
        evict_from(pool, i, lack < most ? lack : most);
    }
    pool->plain -= pages;
    uint64_t used = pool->pages - pool->plain;
    if (used > pool->peak_used)
        pool->peak_used = used;
}

uint64_t kvc_pool_room(struct kvc_pool *pool, uint64_t pages)
{
    uint64_t room = kvc_pool_available(pool), excess;
    uint32_t i;
    if (room > pages)
        room = pages;
    if (!pool->rules || pool->rules->limits[own_class(pool)].mode != KVC_QUOTA_HARD)
        return room;
    while ((excess = own_excess(pool, room)) && (i = oldest(pool, own_class(pool))) != NONE)
        evict_from(pool, i, excess);
    return room > excess ? room - excess : 0;
}

/* Whether the class is beyond a hard quota. */
static uint64_t hard_excess(const struct kvc_pool *pool, uint32_t c)
{
    const struct kvc_pool_limits *l = &pool->rules->limits[c];
    return l->mode == KVC_QUOTA_HARD ? above(pool->classes[c].used, l->quota) : 0;
}

void kvc_pool_trim(struct kvc_pool *pool)
{
    uint32_t i;
    uint64_t excess;
    for (uint32_t c = 0; pool->over && c < pool->rules->n_classes; c++)
        while ((excess = hard_excess(pool, c)) && (i = oldest(pool, c)) != NONE) {
            pool->by = pool->runs[i].tenant; /* it makes way for itself */
            evict_from(pool, i, excess);
        }
    pool->over = false;
}

/* ---- time ---- */

static uint32_t next_to_expire(const struct kvc_pool *pool, uint32_t ttl)
{
    uint32_t i = pool->expiries[ttl].head;
    while (i != NONE && pool->runs[i].holders)
        i = pool->ages[i].next;
    return i;
}

uint64_t kvc_pool_next_expiry(const struct kvc_pool *pool)
{
    uint64_t first = KVC_TIME_NONE;
    for (uint32_t k = 0; pool->rules && k < pool->rules->n_ttls; k++) {
        uint32_t i = next_to_expire(pool, k);
        uint64_t at = i == NONE ? KVC_TIME_NONE : pool->ages[i].touched_ns + pool->rules->ttls[k].ns;
        first = at < first ? at : first;
    }
    return first;
}

void kvc_pool_expire(struct kvc_pool *pool)
{
    for (uint32_t k = 0; k < pool->rules->n_ttls; k++) {
        uint32_t i;
        while ((i = next_to_expire(pool, k)) != NONE &&
               pool->ages[i].touched_ns + pool->rules->ttls[k].ns <= *pool->rules->now) {
            struct kvc_run was = pool->runs[i];
            kvc_pool_run_leave(pool, i);
            pool->expiring = k;
            if (!was.copy)
                replace_by_copies(pool, &was, was.lo, KVC_BY_TTL);
        }
    }
}
