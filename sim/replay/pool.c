/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/pool_internal.h"

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
    pool->free_run = pool->decoders = NONE;
    pool->first = kvc_malloc(trace->n_segments, sizeof(*pool->first));
    pool->classes = kvc_malloc(1, sizeof(*pool->classes));
    if (!pool->first || !pool->classes)
        return false;
    pool->classes[0] = (struct kvc_pool_class){NONE, NONE, 0, 0};
    memset(pool->first, 0xff, trace->n_segments * sizeof(*pool->first));
    return true;
}

void kvc_pool_clear(struct kvc_pool *pool)
{
    kvc_runs_destroy(pool->policy);
    kvc_free(pool->whose);
    kvc_free(pool->first);
    kvc_free(pool->runs);
    kvc_free(pool->ages);
    kvc_free(pool->classes);
    kvc_free(pool->expiries);
    kvc_free(pool->scratch);
    memset(pool, 0, sizeof(*pool));
}

bool kvc_pool_set_rules(struct kvc_pool *pool, const struct kvc_pool_rules *rules)
{
    kvc_free(pool->classes);
    pool->rules = rules;
    pool->classes = kvc_malloc(rules->n_classes, sizeof(*pool->classes));
    pool->expiries = kvc_malloc(rules->n_ttls, sizeof(*pool->expiries));
    if (!pool->classes || !pool->expiries)
        return false;
    for (uint32_t i = 0; i < rules->n_classes; i++)
        pool->classes[i] = (struct kvc_pool_class){NONE, NONE, 0, 0};
    for (uint32_t i = 0; i < rules->n_ttls; i++)
        pool->expiries[i] = (struct kvc_expiry){NONE, NONE};
    return true;
}

/* ---- runs, chains, the queues ---- */

static uint32_t run_new(struct kvc_pool *pool, struct kvc_run value)
{
    uint32_t i = pool->free_run;
    if (i != NONE) {
        pool->free_run = pool->runs[i].chain;
    } else {
        if (!kvc_grow((void **)&pool->runs, &pool->cap_runs, pool->n_runs + 1,
                      sizeof(*pool->runs))) {
            kvc_pool_out_of_memory(pool);
            return NONE;
        }
        i = (uint32_t)pool->n_runs++;
    }
    pool->runs[i] = value;
    return pool->rules && !kvc_pool_age_new(pool, i) ? NONE : i;
}

void kvc_pool_run_unchain(struct kvc_pool *pool, uint32_t i)
{
    uint32_t *link = &pool->first[pool->runs[i].seg];
    while (*link != i)
        link = &pool->runs[*link].chain;
    *link = pool->runs[i].chain;
    if (pool->where && pool->first[pool->runs[i].seg] == NONE)
        pool->where[pool->runs[i].seg] &= ~pool->bit;
}

void kvc_pool_run_chain(struct kvc_pool *pool, uint32_t i)
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

void kvc_pool_run_free(struct kvc_pool *pool, uint32_t i)
{
    if (pool->runs[i].copy)
        pool->copies--;
    kvc_pool_run_unchain(pool, i);
    pool->runs[i].seg = NONE;
    pool->runs[i].chain = pool->free_run;
    pool->free_run = i;
}

static inline void queue_before(struct kvc_pool *pool, uint32_t i, uint32_t at)
{
    struct kvc_run *r = &pool->runs[i];
    struct kvc_pool_class *c = &pool->classes[kvc_pool_class_of(pool, r->tenant)];
    r->next = at;
    r->prev = at == NONE ? c->tail : pool->runs[at].prev;
    *(r->prev == NONE ? &c->head : &pool->runs[r->prev].next) = i;
    *(at == NONE ? &c->tail : &pool->runs[at].prev) = i;
    r->queued = true;
    if (pool->rules)
        kvc_pool_age_list(pool, i, at);
}

/* To the young end. */
static void queue_last(struct kvc_pool *pool, uint32_t i)
{
    if (pool->rules)
        kvc_pool_age_touched(pool, i);
    queue_before(pool, i, NONE);
}

/* Whether the run continues, towards the root, the one queued just before it, so that they may be
 * one. */
static inline bool continues(const struct kvc_pool *pool, uint32_t i)
{
    const struct kvc_run *r = &pool->runs[i];
    if (r->prev == NONE)
        return false;
    const struct kvc_run *deeper = &pool->runs[r->prev];
    return deeper->seg == r->seg && deeper->lo == r->hi && deeper->read == r->read &&
           !deeper->copy && !r->copy && !deeper->holders && !r->holders && !deeper->pending &&
           !r->pending && deeper->tenant == r->tenant &&
           (!pool->rules || kvc_pool_ages_join(pool, r->prev, i));
}

/* A segment released whole is one run again. */
static void queue_join(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    uint32_t gone = r->prev;
    r->hi = pool->runs[gone].hi;
    kvc_pool_run_dequeue(pool, gone);
    kvc_pool_run_free(pool, gone);
}

/* The run loses its last holder: it joins the young end, or stays where it was inserted. */
static void run_unhold(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    if (pool->rules && pool->touch_moves)
        kvc_pool_age_lengthen(pool, i);
    r->holders--;
    if ((pool->policy && !kvc_pool_policy_released(pool, i)) || r->holders)
        return;
    kvc_pool_count_queued(pool, r->tenant, kvc_run_pages(pool, r));
    pool->over |= pool->rules != NULL;
    if (!r->queued)
        queue_last(pool, i);
    if (continues(pool, i))
        queue_join(pool, i);
}

static void run_hold(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run *r = &pool->runs[i];
    if (r->holders++)
        return;
    kvc_pool_count_queued(pool, r->tenant, -kvc_run_pages(pool, r));
    if (pool->policy)
        kvc_pool_policy_held(pool, i);
    /* In insertion order a held run keeps its place and eviction steps over it. */
    if (pool->touch_moves)
        kvc_pool_run_dequeue(pool, i);
}

uint32_t kvc_pool_run_cut(struct kvc_pool *pool, uint32_t i, uint32_t at)
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
    if (pool->rules)
        pool->ages[d] = pool->ages[i];
    if (r->queued)
        queue_before(pool, d, i);
    return d;
}

/* ---- taking and giving ---- */

void kvc_pool_hold(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to)
{
    for (uint32_t k = 0; k < path.n; k++) {
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!kvc_span_part(path.spans[k], from, to, &lo, &hi))
            continue;
        for (uint32_t i = pool->first[s]; i != NONE; i = pool->runs[i].chain) {
            if (pool->runs[i].copy || pool->runs[i].lo >= hi)
                break;
            if (pool->runs[i].hi <= lo)
                continue;
            if (pool->runs[i].lo < lo)
                i = kvc_pool_run_cut(pool, i, lo);
            if (i != NONE && pool->runs[i].hi > hi && kvc_pool_run_cut(pool, i, hi) == NONE)
                return;
            if (i == NONE)
                return;
            run_hold(pool, i);
            pool->runs[i].read = true;
        }
    }
}

/* Adds [lo, hi) of seg as one held run, or lengthens the run before it when only the caller can
 * be holding that. */
static void add_run(struct kvc_pool *pool, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t before,
                    struct kvc_run state, bool may_extend)
{
    state.seg = seg;
    state.lo = lo;
    state.hi = hi;
    kvc_pool_run_charge(pool, &state, true);
    kvc_pool_changed(pool, seg, lo);
    if (may_extend && before != NONE) {
        struct kvc_run *r = &pool->runs[before];
        if (r->hi == lo && r->holders == 1 && !r->pending && !r->read && !r->queued &&
            r->tenant == state.tenant) {
            r->hi = hi;
            return;
        }
    }
    uint32_t i = run_new(pool, state);
    if (i == NONE)
        return;
    pool->copies += state.copy;
    kvc_pool_run_chain(pool, i);
    /* A tier in insertion order queues a run when it comes in, held or not. */
    if (!pool->touch_moves)
        queue_last(pool, i);
}

bool kvc_pool_publish(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                      uint32_t owner, bool pending, bool has_copies)
{
    struct kvc_run state = {.holders = 1, .prev = NONE, .next = NONE, .owner = owner,
                            .tenant = pool->by, .pending = pending};
    bool made_copies = false;
    for (uint32_t k = path.n; k-- > 0;) { /* deepest first: the order of insertion */
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!kvc_span_part(path.spans[k], from, to, &lo, &hi))
            continue;
        while (lo < hi && !pool->nomem) {
            uint32_t last = NONE; /* the main run that begins last before hi */
            for (uint32_t i = pool->first[s]; i != NONE && !pool->runs[i].copy &&
                                              pool->runs[i].lo < hi; i = pool->runs[i].chain)
                last = i;
            state.copy = last != NONE && pool->runs[last].hi >= hi;
            uint32_t at = last == NONE ? lo : pool->runs[last].hi;
            at = state.copy ? pool->runs[last].lo : at;
            at = at > lo ? at : lo;
            made_copies |= state.copy;
            /* The block before the first one is the caller's own, unless that is a copy. */
            add_run(pool, s, at, hi, last, state, at == lo && !pending && !has_copies);
            hi = at;
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
            if (found != NONE)
                kvc_pool_out_of_memory(pool);
            break;
        }
        if (pool->runs[found].lo < lo)
            found = kvc_pool_run_cut(pool, found, lo);
        if (found == NONE)
            break;
        if (pool->runs[found].hi > end && kvc_pool_run_cut(pool, found, end) == NONE)
            break;
        pool->scratch[n++] = found;
        lo = pool->runs[found].hi;
    }
    return n;
}

void kvc_pool_release(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                      uint32_t owner, bool has_copies)
{
    kvc_pool_turn(pool);
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t lo, hi;
        if (!kvc_span_part(path.spans[k], from, to, &lo, &hi))
            continue;
        for (size_t n = collect(pool, path.spans[k].seg, lo, hi, owner, has_copies); n-- > 0;)
            run_unhold(pool, pool->scratch[n]);
    }
}

void kvc_pool_settle(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                     uint32_t owner)
{
    kvc_pool_turn(pool);
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!kvc_span_part(path.spans[k], from, to, &lo, &hi))
            continue;
        size_t n = 0;
        for (uint32_t i = pool->first[s]; i != NONE; i = pool->runs[i].chain) {
            struct kvc_run *r = &pool->runs[i];
            if (!r->pending || r->owner != owner || r->lo < lo || r->hi > hi)
                continue;
            if (!kvc_grow((void **)&pool->scratch, &pool->cap_scratch, n + 1,
                          sizeof(*pool->scratch))) {
                kvc_pool_out_of_memory(pool);
                return;
            }
            pool->scratch[n++] = i;
        }
        while (n-- > 0) {
            pool->runs[pool->scratch[n]].pending = false;
            kvc_pool_changed(pool, s, pool->runs[pool->scratch[n]].lo);
            run_unhold(pool, pool->scratch[n]);
        }
    }
}

void kvc_pool_touch(struct kvc_pool *pool, struct kvc_path path, uint32_t to, bool again)
{
    if (!pool->touch_moves)
        return;
    kvc_pool_turn(pool);
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t lo, hi;
        if (!kvc_span_part(path.spans[k], 0, to, &lo, &hi))
            continue;
        for (size_t n = collect(pool, path.spans[k].seg, lo, hi, NONE, false); n-- > 0;) {
            uint32_t i = pool->scratch[n];
            if (pool->policy)
                kvc_pool_policy_touched(pool, i, again);
            if (pool->runs[i].holders) {
                if (pool->rules)
                    kvc_pool_age_lengthen(pool, i);
                continue;
            }
            kvc_pool_run_dequeue(pool, i);
            queue_last(pool, i);
            if (continues(pool, i))
                queue_join(pool, i);
        }
    }
}

void kvc_pool_drop(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to)
{
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t s = path.spans[k].seg, lo, hi;
        if (!kvc_span_part(path.spans[k], from, to, &lo, &hi))
            continue;
        for (size_t n = collect(pool, s, lo, hi, NONE, false); n-- > 0;) {
            uint32_t i = pool->scratch[n];
            struct kvc_run was = pool->runs[i];
            if (was.holders)
                continue;
            kvc_pool_run_leave(pool, i);
            if (pool->policy)
                kvc_pool_policy_forget(pool, &was);
        }
    }
}
