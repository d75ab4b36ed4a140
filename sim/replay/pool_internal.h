/* SPDX-License-Identifier: Apache-2.0
 * The inside of a pool, shared by pool.c (runs, holding), pool_evict.c, pool_rules.c,
 * pool_look.c and pool_check.c. */
#ifndef KVC_SIM_POOL_INTERNAL_H
#define KVC_SIM_POOL_INTERNAL_H

#include "sim/replay/pool.h"

#define NONE UINT32_MAX

/* A chain holds the main runs of a segment in order of lo, then its copies, oldest first. */
struct kvc_run {
    uint32_t seg, lo, hi; /* blocks inside the segment */
    uint32_t holders;
    uint32_t prev, next;  /* queue, while queued */
    uint32_t chain;
    uint32_t owner;       /* who published a copy or a pending run */
    uint32_t tenant;      /* who is charged: whose request stored it */
    bool queued, copy, pending, read;
};

struct kvc_run_age {
    uint64_t stamp;      /* order of the queues among one another */
    uint64_t touched_ns; /* or stored, in insertion order */
    uint32_t prev, next; /* of those with its TTL, while queued */
    uint32_t ttl;        /* the longest of those who touched it */
};

static inline void kvc_pool_changed(struct kvc_pool *pool, uint32_t seg, uint32_t lo)
{
    struct kvc_pool_changes *c = &pool->changes;
    uint64_t i = c->n++ % KVC_POOL_CHANGES;
    c->at[i].seg = seg;
    c->at[i].lo = lo;
}

static inline void kvc_pool_out_of_memory(struct kvc_pool *pool)
{
    pool->nomem = true;
    if (pool->tell_nomem)
        *pool->tell_nomem = true;
}

static inline uint64_t kvc_run_pages(const struct kvc_pool *pool, const struct kvc_run *r)
{
    if (pool->pages_per_block)
        return (uint64_t)(r->hi - r->lo) * pool->pages_per_block;
    uint64_t depth = pool->trace->seg_depth[r->seg];
    return kvc_pool_pages(pool, depth + r->hi) - kvc_pool_pages(pool, depth + r->lo);
}

/* The part of a span that lies in path blocks [from, to), counted inside the segment. */
static inline bool kvc_span_part(struct kvc_span span, uint32_t from, uint32_t to, uint32_t *lo,
                                 uint32_t *hi)
{
    if (to <= span.depth || from >= span.depth + span.len)
        return false;
    *lo = from > span.depth ? from - span.depth : 0;
    *hi = to - span.depth < span.len ? to - span.depth : span.len;
    return *lo < *hi;
}

static inline uint32_t kvc_pool_class_of(const struct kvc_pool *pool, uint32_t tenant)
{
    return pool->rules ? pool->rules->class_of[tenant] : 0;
}

/* With rules: the class whose own reservation does not hold against what is taken now. */
static inline uint32_t kvc_pool_reserver(const struct kvc_pool *pool)
{
    return pool->by == KVC_BY_DECODING ? pool->decoders : pool->rules->class_of[pool->by];
}

/* With rules: a new run gets an age; who acts holds a run that is not queued now; touches it;
 * whether two runs that lie side by side in the queue may become one; and a queued run's place in
 * the list of its TTL, before at, NONE: last. */
bool kvc_pool_age_new(struct kvc_pool *pool, uint32_t i);
void kvc_pool_age_lengthen(struct kvc_pool *pool, uint32_t i);
void kvc_pool_age_touched(struct kvc_pool *pool, uint32_t i);
bool kvc_pool_ages_join(const struct kvc_pool *pool, uint32_t i, uint32_t next);
void kvc_pool_age_list(struct kvc_pool *pool, uint32_t i, uint32_t at);
void kvc_pool_age_unlist(struct kvc_pool *pool, uint32_t i);

void kvc_pool_run_free(struct kvc_pool *pool, uint32_t i);
void kvc_pool_run_chain(struct kvc_pool *pool, uint32_t i);
void kvc_pool_run_unchain(struct kvc_pool *pool, uint32_t i);
static inline void kvc_pool_run_dequeue(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    struct kvc_pool_class *c = &pool->classes[kvc_pool_class_of(pool, r->tenant)];
    *(r->prev == NONE ? &c->head : &pool->runs[r->prev].next) = r->next;
    *(r->next == NONE ? &c->tail : &pool->runs[r->next].prev) = r->prev;
    r->queued = false;
    if (pool->rules)
        kvc_pool_age_unlist(pool, i);
}
/* Splits run i at block at; i keeps the part towards the root. The deeper part goes first in the
 * queue. Returns the deeper run, NONE without memory. */
uint32_t kvc_pool_run_cut(struct kvc_pool *pool, uint32_t i, uint32_t at);
/* The class's oldest run that nobody holds. */
static inline uint32_t kvc_pool_oldest(const struct kvc_pool *pool, uint32_t class)
{
    uint32_t i = pool->classes[class].head;
    while (i != NONE && pool->runs[i].holders) /* in insertion order they keep their place */
        i = pool->runs[i].next;
    return i;
}
/* With rules: the run whose blocks go next when by takes so many pages, and how many of its pages
 * at most before that has to be asked again. */
uint32_t kvc_pool_victim(const struct kvc_pool *pool, uint64_t pages, uint64_t *most);
/* ---- with a policy ---- */

/* Run i lost a holder, and may have lost the last; got its first; was touched; has left. */
bool kvc_pool_policy_released(struct kvc_pool *pool, uint32_t i); /* false: it is gone */
void kvc_pool_policy_held(struct kvc_pool *pool, uint32_t i);
void kvc_pool_policy_touched(struct kvc_pool *pool, uint32_t i, bool again);
void kvc_pool_policy_forget(struct kvc_pool *pool, const struct kvc_run *was);
static inline void kvc_pool_turn(struct kvc_pool *pool)
{
    if (pool->policy)
        kvc_order_turn(pool->policy);
}
/* Blocks leave, of class c only (NONE: of those that whose names; without rules all), no more than
 * it takes to free so many pages where the policy goes by blocks. False: none is left. */
bool kvc_pool_policy_evict(struct kvc_pool *pool, uint32_t c, uint64_t pages);
/* Those whose blocks go next when by takes so many pages: sets whose, returns false for nobody. */
bool kvc_pool_whose(struct kvc_pool *pool, uint64_t pages);
/* Unheld main blocks [lo, hi) leave for by. */
void kvc_pool_evict_blocks(struct kvc_pool *pool, uint32_t seg, uint32_t lo, uint32_t hi);
const char *kvc_pool_policy_check(const struct kvc_pool *pool);

/* Evicts from run i, deepest block first, until so many pages are free or it is used up. */
void kvc_pool_evict_from(struct kvc_pool *pool, uint32_t i, uint64_t pages);
/* A run without holder leaves; nobody is told. */
void kvc_pool_run_leave(struct kvc_pool *pool, uint32_t i);
/* It leaves since its time is up. */
void kvc_pool_run_expire(struct kvc_pool *pool, uint32_t i);
/* Charges, or takes off the charge of, what the run holds; nobody asks where tenants are one. */
void kvc_pool_run_charge_tenant(struct kvc_pool *pool, const struct kvc_run *r, bool more);
static inline void kvc_pool_run_charge(struct kvc_pool *pool, const struct kvc_run *r, bool more)
{
    if (pool->rules || pool->meter)
        kvc_pool_run_charge_tenant(pool, r, more);
}
/* So many pages of a tenant's runs lost their last holder or, taken off, got one or left. */
static inline void kvc_pool_count_queued(struct kvc_pool *pool, uint32_t tenant, uint64_t pages)
{
    pool->queued += pages;
    if (pool->rules)
        pool->classes[pool->rules->class_of[tenant]].queued += pages;
}

#endif
