/* SPDX-License-Identifier: Apache-2.0
 * A pool whose blocks go in the order of a policy (policies/eviction/order.h), which is told of
 * what happens to them. Runs keep their places in the queues: what has no holder is in one, as
 * ever, and times to live go by them. docs/replay.md states what a policy is told. */
#include "sim/replay/pool_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole.h"

#include <string.h>

/* Blocks of a segment leave at the policy's word. */
static void left(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired)
{
    (void)expired;
    kvc_pool_evict_blocks(user, seg, lo, hi);
}

static uint64_t blocks_of(const struct kvc_pool *pool, uint64_t pages)
{
    if (pool->pages_per_block)
        return pages / pool->pages_per_block;
    return pages * pool->page_tokens / pool->trace->block_tokens;
}

/* Whether it matters whose a block is. */
static bool limited(const struct kvc_pool *pool)
{
    const struct kvc_pool_rules *r = pool->rules;
    return r && (r->n_classes > 1 || r->limits[0].quota != KVC_CAPACITY_INF ||
                 r->limits[0].reserve);
}

enum kvc_status kvc_pool_set_policy(struct kvc_pool *pool, const char *policy,
                                    bool uses_are_touches, const uint64_t *clock,
                                    struct kvc_error *err)
{
    const struct kvc_trace *t = pool->trace;
    uint64_t capacity = blocks_of(pool, pool->pages);
    const struct kvc_runs_setup setup = {
        .policy = policy, .capacity = capacity ? capacity : 1, .n_segments = t->n_segments,
        .seg_len = t->seg_len, .seg_depth = t->seg_depth, .seg_parent = t->seg_parent,
        .block_tokens = t->block_tokens, .left = left, .left_user = pool};
    if (limited(pool) && !(pool->whose = kvc_calloc(pool->rules->n_classes, sizeof(*pool->whose))))
        return kvc_fail_nomem(err);
    pool->policy = kvc_order_create(&setup);
    pool->uses_are_touches = uses_are_touches;
    pool->clock = clock;
    pool->newcomer.seg = NONE;
    return pool->policy ? kvc_runs_error(pool->policy, err) : kvc_fail_nomem(err);
}

/* What the policy breaks ends the run as a lack of memory does; the caller asks it why. */
static void heed(struct kvc_pool *pool)
{
    if (kvc_runs_failed(pool->policy))
        kvc_pool_out_of_memory(pool);
}

void kvc_pool_newcomer(struct kvc_pool *pool, struct kvc_path path, uint32_t to)
{
    pool->newcomer.seg = NONE;
    for (uint32_t k = 0; k < path.n && to; k++)
        if (to > path.spans[k].depth) {
            uint32_t hi = to - path.spans[k].depth;
            pool->newcomer.seg = path.spans[k].seg;
            pool->newcomer.hi = hi < path.spans[k].len ? hi : path.spans[k].len;
        }
}

void kvc_pool_arrive(struct kvc_pool *pool, const struct kvc_runs_request *request)
{
    if (!pool->policy)
        return;
    kvc_order_arrive(pool->policy, request, blocks_of(pool, pool->pages - pool->plain));
    heed(pool);
}

bool kvc_pool_rest(struct kvc_pool *pool)
{
    uint64_t evicted = pool->evicted_blocks;
    if (!pool->policy || pool->whose)
        return false;
    kvc_order_rest(pool->policy, blocks_of(pool, pool->pages - pool->plain));
    heed(pool);
    return pool->evicted_blocks != evicted;
}

static void tell(struct kvc_pool *pool, const struct kvc_run *r, enum kvc_order_kind kind)
{
    const struct kvc_trace *t = pool->trace;
    bool named = t->tenant && pool->by < t->n_tenants;
    struct kvc_order_use use = {named ? pool->by : KVC_ID_NONE, kvc_pool_class_of(pool, r->tenant),
                                *pool->clock};
    kvc_order_use(pool->policy, r->seg, r->lo, r->hi, kind, &use);
    if (r->holders)
        kvc_order_hold(pool->policy, r->seg, r->lo, r->hi, true);
    heed(pool);
}

bool kvc_pool_policy_released(struct kvc_pool *pool, uint32_t i)
{
    struct kvc_run r = pool->runs[i];
    if (r.copy) { /* no policy keeps a block twice */
        pool->plain += kvc_run_pages(pool, &r);
        kvc_pool_run_charge(pool, &r, false);
        kvc_pool_run_free(pool, i);
        return false;
    }
    if (!r.holders)
        kvc_order_hold(pool->policy, r.seg, r.lo, r.hi, false);
    tell(pool, &r, pool->uses_are_touches ? KVC_ORDER_COME : KVC_ORDER_USE);
    return true;
}

void kvc_pool_policy_held(struct kvc_pool *pool, uint32_t i)
{
    const struct kvc_run *r = &pool->runs[i];
    kvc_order_hold(pool->policy, r->seg, r->lo, r->hi, true);
    heed(pool);
}

void kvc_pool_policy_touched(struct kvc_pool *pool, uint32_t i, bool again)
{
    struct kvc_run r = pool->runs[i];
    tell(pool, &r, again ? KVC_ORDER_AGAIN : KVC_ORDER_USE);
}

void kvc_pool_policy_forget(struct kvc_pool *pool, const struct kvc_run *was)
{
    if (!was->copy)
        kvc_order_forget(pool->policy, was->seg, was->lo, was->hi);
    heed(pool);
}

bool kvc_pool_policy_evict(struct kvc_pool *pool, uint32_t c, uint64_t pages)
{
    uint64_t block_pages = pool->pages_per_block;
    if (!block_pages) /* of the block that has most */
        block_pages = kvc_div_up(pool->trace->block_tokens, pool->page_tokens);
    uint64_t want = pool->pages_per_block ? kvc_div_up(pages, block_pages)
                                          : pages / block_pages;
    if (pool->whose || !want) /* whose blocks go is asked after each */
        want = 1;
    if (c != NONE && pool->whose)
        for (uint32_t k = 0; k < pool->rules->n_classes; k++)
            pool->whose[k] = k == c;
    uint64_t gone = kvc_order_evict(pool->policy, want < NONE ? (uint32_t)want : NONE,
                                    pool->whose, pool->newcomer.seg,
                                    pool->newcomer.hi);
    heed(pool);
    return gone > 0;
}

const char *kvc_pool_policy_check(const struct kvc_pool *pool)
{
    for (uint32_t s = 0; s < pool->trace->n_segments; s++) {
        uint64_t known = 0, unheld = 0;
        uint32_t free;
        for (uint32_t i = pool->first[s]; i != NONE; i = pool->runs[i].chain) {
            const struct kvc_run *r = &pool->runs[i];
            uint32_t blocks = r->hi - r->lo, here;
            if (r->copy)
                continue;
            here = kvc_order_known(pool->policy, s, r->lo, r->hi, &free);
            known += here;
            unheld += r->holders ? 0 : blocks;
            if (r->holders ? free : here != blocks || free != blocks)
                return "the policy does not know what is held";
        }
        if (kvc_order_known(pool->policy, s, 0, pool->trace->seg_len[s], &free) != known ||
            free != unheld)
            return "the policy knows blocks that are not there";
    }
    return NULL;
}
