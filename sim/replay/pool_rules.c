/* SPDX-License-Identifier: Apache-2.0
 * What rules of tenants ask of a pool: ages of its runs, whose goes first, and when.
 * docs/tenants.md states the rules. */
#include "sim/replay/pool_internal.h"

#include "base/alloc.h"

#include <string.h>

/* ---- ages ---- */

bool kvc_pool_age_new(struct kvc_pool *pool, uint32_t i)
{
    if (!kvc_grow((void **)&pool->ages, &pool->cap_ages, pool->n_runs, sizeof(*pool->ages))) {
        kvc_pool_out_of_memory(pool);
        return false;
    }
    pool->ages[i] = (struct kvc_run_age){0, 0, NONE, NONE, 0};
    return true;
}

void kvc_pool_age_lengthen(struct kvc_pool *pool, uint32_t i)
{
    uint32_t ttl = pool->rules->ttl_of[pool->by];
    if (ttl > pool->ages[i].ttl)
        pool->ages[i].ttl = ttl;
}

void kvc_pool_age_touched(struct kvc_pool *pool, uint32_t i)
{
    kvc_pool_age_lengthen(pool, i);
    pool->ages[i].stamp = ++pool->stamps;
    pool->ages[i].touched_ns = *pool->rules->now;
}

bool kvc_pool_ages_join(const struct kvc_pool *pool, uint32_t i, uint32_t next)
{
    const struct kvc_run_age *a = &pool->ages[i], *b = &pool->ages[next];
    return a->stamp + 1 == b->stamp && a->ttl == b->ttl && a->touched_ns == b->touched_ns;
}

void kvc_pool_age_unlist(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run_age *a = &pool->ages[i];
    if (a->ttl >= pool->rules->n_ttls)
        return;
    struct kvc_expiry *x = &pool->expiries[a->ttl];
    *(a->prev == NONE ? &x->head : &pool->ages[a->prev].next) = a->next;
    *(a->next == NONE ? &x->tail : &pool->ages[a->next].prev) = a->prev;
}

void kvc_pool_age_list(struct kvc_pool *pool, uint32_t i, uint32_t at)
{
    struct kvc_run_age *a = &pool->ages[i];
    if (a->ttl >= pool->rules->n_ttls)
        return;
    struct kvc_expiry *x = &pool->expiries[a->ttl];
    a->next = at;
    a->prev = at == NONE ? x->tail : pool->ages[at].prev;
    *(a->prev == NONE ? &x->head : &pool->ages[a->prev].next) = i;
    *(at == NONE ? &x->tail : &pool->ages[at].prev) = i;
}

/* ---- whose goes ---- */

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
    bool keeps = l->mode == KVC_QUOTA_HYBRID || l->mode == KVC_QUOTA_HARD;
    return keeps && used > l->quota ? used - l->quota : 0;
}

static uint64_t above(uint64_t used, uint64_t limit)
{
    return used > limit ? used - limit : 0;
}

/* Whether others' requests may push out what the class has; one without reservation may have blocks
 * but no page (blocks smaller than pages). */
static bool beyond_reserve(const struct kvc_pool_limits *l, uint64_t used)
{
    return !l->reserve || used > l->reserve;
}

uint32_t kvc_pool_victim(const struct kvc_pool *pool, uint64_t pages, uint64_t *most)
{
    uint32_t own = own_class(pool), keeper = kvc_pool_reserver(pool);
    uint32_t best = NONE, best_class = NONE;
    uint64_t excess = own_excess(pool, pages);
    if (excess && (best = kvc_pool_oldest(pool, own)) != NONE) {
        *most = excess;
        return best;
    }
    bool best_over = false;
    for (uint32_t c = 0; c < pool->rules->n_classes; c++) {
        const struct kvc_pool_limits *l = &pool->rules->limits[c];
        const struct kvc_pool_class *k = &pool->classes[c];
        uint32_t i = kvc_pool_oldest(pool, c);
        if (i == NONE || (c != keeper && !beyond_reserve(l, k->used)))
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
    if (best_class != keeper && l->reserve)
        *most = above(used, l->reserve);
    if (best_over && above(used, l->quota) < *most)
        *most = above(used, l->quota);
    return best;
}

bool kvc_pool_whose(struct kvc_pool *pool, uint64_t pages)
{
    uint32_t n = pool->rules->n_classes, own = own_class(pool), best = NONE;
    uint32_t keeper = kvc_pool_reserver(pool);
    bool own_only = own_excess(pool, pages) && kvc_pool_oldest(pool, own) != NONE, over = false;
    uint32_t priority = 0;
    for (uint32_t c = 0; c < n; c++) {
        const struct kvc_pool_limits *l = &pool->rules->limits[c];
        uint64_t used = pool->classes[c].used;
        pool->whose[c] = false;
        if (kvc_pool_oldest(pool, c) == NONE || (own_only && c != own) ||
            (c != keeper && !beyond_reserve(l, used)))
            continue;
        bool beyond = !own_only && l->mode == KVC_QUOTA_SOFT && used > l->quota;
        if (best != NONE && (beyond < over || (beyond == over && l->priority < priority)))
            continue;
        if (best == NONE || beyond != over || l->priority != priority)
            memset(pool->whose, 0, c * sizeof(*pool->whose)); /* they come after it */
        pool->whose[best = c] = true;
        over = beyond;
        priority = l->priority;
    }
    return best != NONE;
}

uint64_t kvc_pool_available_by(const struct kvc_pool *pool)
{
    uint64_t pages = pool->plain;
    for (uint32_t c = 0; c < pool->rules->n_classes; c++) {
        const struct kvc_pool_class *k = &pool->classes[c];
        uint64_t free = above(k->used, pool->rules->limits[c].reserve);
        pages += c == kvc_pool_reserver(pool) || k->queued < free ? k->queued : free;
    }
    return pages;
}

/* A class makes way for itself; false when it has nothing that can go. */
static bool evict_own(struct kvc_pool *pool, uint32_t c, uint64_t excess)
{
    uint32_t i = kvc_pool_oldest(pool, c);
    if (i == NONE)
        return false;
    if (pool->policy)
        return kvc_pool_policy_evict(pool, c, excess);
    kvc_pool_evict_from(pool, i, excess);
    return true;
}

uint64_t kvc_pool_room_by(struct kvc_pool *pool, uint64_t pages)
{
    uint64_t room = kvc_pool_available_by(pool), excess;
    if (room > pages)
        room = pages;
    if (pool->rules->limits[own_class(pool)].mode != KVC_QUOTA_HARD)
        return room;
    while ((excess = own_excess(pool, room)) && evict_own(pool, own_class(pool), excess))
        ;
    return room > excess ? room - excess : 0;
}

/* Whether the class is beyond a hard quota. */
static uint64_t hard_excess(const struct kvc_pool *pool, uint32_t c)
{
    const struct kvc_pool_limits *l = &pool->rules->limits[c];
    return l->mode == KVC_QUOTA_HARD ? above(pool->classes[c].used, l->quota) : 0;
}

void kvc_pool_trim_classes(struct kvc_pool *pool)
{
    uint32_t i;
    uint64_t excess;
    for (uint32_t c = 0; c < pool->rules->n_classes; c++)
        while ((excess = hard_excess(pool, c)) && (i = kvc_pool_oldest(pool, c)) != NONE) {
            pool->by = pool->runs[i].tenant;
            if (!evict_own(pool, c, excess))
                break;
        }
    pool->over = false;
}

/* ---- rounds ---- */

/* Pages that a round takes of a class: a fifth of what it has from four fifths of an isolated quota
 * on, all of it where the quota is 0. */
static uint64_t round_share(const struct kvc_pool *pool, uint32_t c)
{
    const struct kvc_pool_limits *l = &pool->rules->limits[c];
    const struct kvc_pool_class *k = &pool->classes[c];
    if (l->mode != KVC_QUOTA_ISOLATED || !k->queued || k->used < l->quota - l->quota / 5)
        return 0;
    return !l->quota ? k->used : k->used / 5 ? k->used / 5 : 1;
}

bool kvc_pool_round_due(const struct kvc_pool *pool)
{
    uint32_t n = pool->rules && pool->rules->rounds ? pool->rules->n_classes : 0, c = 0;
    while (c < n && !round_share(pool, c))
        c++;
    return c < n;
}

void kvc_pool_round(struct kvc_pool *pool)
{
    for (uint32_t c = 0; c < pool->rules->n_classes; c++) {
        uint64_t used = pool->classes[c].used, share = round_share(pool, c), gone = 0;
        uint32_t i;
        while (gone < share && (i = kvc_pool_oldest(pool, c)) != NONE) {
            pool->by = pool->runs[i].tenant;
            pool->newcomer.seg = NONE;
            if (!evict_own(pool, c, share - gone))
                break;
            gone = used - pool->classes[c].used;
        }
    }
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
        uint64_t at = i == NONE ? first : pool->ages[i].touched_ns + pool->rules->ttls[k].ns;
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
            pool->expiring = k;
            kvc_pool_run_expire(pool, i);
        }
    }
}
