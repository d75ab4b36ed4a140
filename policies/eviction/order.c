/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/eviction/order.h"

#include "base/alloc.h"
#include "base/error.h"
#include "policies/plugins/plugged.h"

#include <string.h>

/* ---- tags ---- */

bool kvc_order_tag(struct kvc_runs *c, uint32_t r)
{
    if (!kvc_grow((void **)&c->tag, &c->tag_room, (size_t)r + 1, sizeof(*c->tag))) {
        c->failed = true;
        return false;
    }
    c->tag[r] = c->tag_new;
    return true;
}

/* ---- whose turn it is to go ---- */

uint32_t kvc_order_oldest(const struct kvc_runs *c, uint32_t queue)
{
    uint32_t r = c->queue[queue].oldest;
    while (r != KVC_RUN_NONE && !kvc_order_free(c, r))
        r = c->run[r].newer;
    return r;
}

/* At or below a place of the heap. Nothing below what may go goes before it. */
static uint32_t first_from(const struct kvc_runs *c, size_t place,
                           bool (*may_go)(const struct kvc_runs *c, uint32_t r))
{
    if (place >= c->n_heap)
        return KVC_RUN_NONE;
    if (may_go(c, c->heap[place]))
        return c->heap[place];
    uint32_t a = first_from(c, 2 * place + 1, may_go), b = first_from(c, 2 * place + 2, may_go);
    if (a == KVC_RUN_NONE || b == KVC_RUN_NONE)
        return a == KVC_RUN_NONE ? b : a;
    return c->ops->first(c, &c->run[b], &c->run[a]) ? b : a;
}

uint32_t kvc_order_first(const struct kvc_runs *c,
                         bool (*may_go)(const struct kvc_runs *c, uint32_t r))
{
    return first_from(c, 0, may_go);
}

/* A segment has got something, or has nothing any more. */
static void count_below(struct kvc_runs *c, uint32_t seg, bool more)
{
    while (c->kids && (seg = c->seg[seg].parent) != KVC_RUN_NONE)
        c->kids[seg] += more ? 1 : -1u;
}

uint32_t kvc_order_leave(struct kvc_runs *c, uint32_t r, uint32_t want)
{
    if (r == KVC_RUN_NONE)
        return 0;
    uint32_t seg = c->run[r].seg, n = kvc_least(want, kvc_run_blocks(c, r));
    if (n == kvc_run_blocks(c, r) && c->ops->order->gone)
        c->ops->order->gone(c, r);
    if (c->ops->first)
        kvc_heap_shorten(c, r, n);
    else
        kvc_run_drop(c, r, n);
    if (c->seg[seg].deepest == KVC_RUN_NONE)
        count_below(c, seg, false);
    return n;
}

void kvc_order_requeue(struct kvc_runs *c, uint32_t r)
{
    uint32_t queue = c->run[r].queue;
    kvc_queue_take(c, r);
    kvc_queue_put(c, queue, r);
}

void kvc_order_restamp(struct kvc_runs *c, uint32_t r)
{
    c->run[r].stamp = c->clock;
    kvc_heap_sift(c, c->run[r].older);
}

/* ---- what it is told ---- */

struct kvc_runs *kvc_order_create(const struct kvc_runs_setup *setup)
{
    struct kvc_runs_setup engine = *setup;
    engine.engine = true;
    return kvc_runs_create(&engine);
}

/* What counts requests by segment counts this one. */
static void count_request(struct kvc_runs *c)
{
    c->clock++;
    for (uint32_t s = c->leaf; s != KVC_RUN_NONE && (c->touches || c->history);
         s = c->seg[s].parent) {
        if (c->touches)
            c->touches[s]++;
        if (c->history)
            kvc_lruk_note(c, s);
    }
}

void kvc_order_arrive(struct kvc_runs *c, const struct kvc_runs_request *request,
                      uint64_t in_use)
{
    if (c->failed || !c->capacity)
        return;
    c->request++;
    c->now_ns = request->now_ns;
    c->session = request->session;
    c->tenant = request->tenant;
    c->input_tokens = request->input_tokens;
    c->leaf = kvc_runs_leaf(c, request->seg);
    c->in_use = in_use;
    count_request(c);
    const struct kvc_order_ops *o = c->ops->order;
    void (*arrive)(struct kvc_runs *, uint32_t) = o->arrive ? o->arrive
                                                  : o->rest ? NULL
                                                            : c->ops->arrive;
    if (arrive)
        arrive(c, c->leaf);
}

void kvc_order_rest(struct kvc_runs *c, uint64_t in_use)
{
    c->in_use = in_use;
    if (!c->failed && c->capacity && c->ops->order->rest)
        c->ops->order->rest(c);
}

void kvc_order_turn(struct kvc_runs *c)
{
    c->turn++;
    c->matched = false;
}

static void touch(struct kvc_runs *c, uint32_t r, enum kvc_order_kind kind)
{
    const struct kvc_order_ops *o = c->ops->order;
    if (kind == KVC_ORDER_USE)
        (o->use ? o->use : c->ops->hit)(c, r);
    else if (kind == KVC_ORDER_AGAIN && o->renew)
        o->renew(c, r);
}

static void come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    bool first = c->seg[seg].deepest == KVC_RUN_NONE;
    if (ghost != KVC_RUN_NONE)
        c->tag[ghost] = c->tag_new;
    c->ops->order->come(c, seg, lo, hi, ghost);
    if (first)
        count_below(c, seg, true);
}

/* The run of [.., at) is made to end there and not to begin before lo. */
static uint32_t part_of(struct kvc_runs *c, uint32_t r, uint32_t lo, uint32_t at)
{
    if (c->run[r].hi > at && kvc_run_cut(c, r, at) == KVC_RUN_NONE)
        return KVC_RUN_NONE;
    return c->run[r].lo < lo ? kvc_run_cut(c, r, lo) : r;
}

static void use_of_segment(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t at,
                           enum kvc_order_kind kind)
{
    c->clock++;
    while (at > lo && !c->failed) {
        uint32_t r = kvc_run_before(c, seg, at), end = lo;
        if (r != KVC_RUN_NONE && c->run[r].hi >= at) {
            if ((r = part_of(c, r, lo, at)) == KVC_RUN_NONE)
                return;
            end = c->run[r].lo;
            if (kvc_run_resident(c, r))
                touch(c, r, kind);
            else
                come(c, seg, end, at, r);
        } else {
            if (r != KVC_RUN_NONE && c->run[r].hi > lo)
                end = c->run[r].hi;
            come(c, seg, end, at, KVC_RUN_NONE);
        }
        at = end;
    }
}

/* Calls take for the blocks, one by one where the policy wants them so. */
static inline uint32_t first_block(const struct kvc_runs *c, uint32_t seg)
{
    return c->cut.end[seg] - c->cut.seg_len[seg];
}

void kvc_order_use(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                   enum kvc_order_kind kind, const struct kvc_order_use *use)
{
    uint64_t arrived_ns = c->now_ns;
    if (c->failed)
        return;
    c->tag_new = use->whose << 1;
    c->tenant = use->tenant;
    c->now_ns = use->now_ns;
    if (c->cut.end)
        for (uint32_t b = hi; b-- > lo;)
            use_of_segment(c, first_block(c, seg) + b, 0, 1, kind);
    else
        use_of_segment(c, seg, lo, hi, kind);
    c->now_ns = arrived_ns; /* who goes next is judged as of the last arrival */
}

static void hold_of_segment(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t at, bool held)
{
    while (at > lo && !c->failed) {
        uint32_t r = kvc_run_before(c, seg, at);
        if (r == KVC_RUN_NONE || c->run[r].hi <= lo)
            return;
        at = at < c->run[r].hi ? at : c->run[r].hi;
        if (kvc_run_resident(c, r)) {
            if ((r = part_of(c, r, lo, at)) == KVC_RUN_NONE)
                return;
            c->tag[r] = (c->tag[r] & ~1u) | held;
        }
        at = c->run[r].lo;
    }
}

void kvc_order_hold(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, bool held)
{
    if (c->failed)
        return;
    if (!c->cut.end) {
        hold_of_segment(c, seg, lo, hi, held);
        return;
    }
    for (uint32_t b = hi; b-- > lo;)
        hold_of_segment(c, first_block(c, seg) + b, 0, 1, held);
}

/* ---- what leaves ---- */

uint64_t kvc_order_evict(struct kvc_runs *c, uint32_t want, const bool *allowed,
                         uint32_t newcomer_seg, uint32_t newcomer_hi)
{
    uint64_t before = c->size;
    if (c->failed)
        return 0;
    c->allowed = allowed;
    c->newcomer.seg = newcomer_seg;
    c->newcomer.hi = newcomer_hi;
    if (c->cut.end && newcomer_seg != KVC_RUN_NONE) {
        c->newcomer.seg = first_block(c, newcomer_seg) + newcomer_hi - 1;
        c->newcomer.hi = 1;
    }
    c->ops->order->evict(c, want);
    c->allowed = NULL;
    return before - c->size;
}

static void forget_of_segment(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t at)
{
    while (at > lo && !c->failed) {
        uint32_t r = kvc_run_before(c, seg, at);
        if (r == KVC_RUN_NONE || c->run[r].hi <= lo)
            return;
        at = at < c->run[r].hi ? at : c->run[r].hi;
        uint32_t end = c->run[r].lo > lo ? c->run[r].lo : lo;
        if (kvc_run_resident(c, r)) {
            if ((r = part_of(c, r, lo, at)) == KVC_RUN_NONE)
                return;
            if (c->plugged)
                kvc_plugged_leave(c->plugged, r, kvc_run_blocks(c, r));
            else
                kvc_order_leave(c, r, kvc_run_blocks(c, r));
        }
        at = end;
    }
}

void kvc_order_forget(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi)
{
    void (*left)(void *, uint32_t, uint32_t, uint32_t, bool) = c->left;
    if (c->failed)
        return;
    c->left = NULL;
    if (c->cut.end)
        for (uint32_t b = hi; b-- > lo;)
            forget_of_segment(c, first_block(c, seg) + b, 0, 1);
    else
        forget_of_segment(c, seg, lo, hi);
    c->left = left;
}

/* ---- for checks ---- */

uint32_t kvc_order_known(const struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                         uint32_t *free)
{
    uint32_t known = 0, first = c->cut.end ? first_block(c, seg) : 0;
    *free = 0;
    for (uint32_t b = lo; b < hi; b++) {
        uint32_t s = c->cut.end ? first + b : seg, at = c->cut.end ? 1 : b + 1;
        uint32_t r = kvc_run_before(c, s, at);
        if (r == KVC_RUN_NONE || c->run[r].hi < at || !kvc_run_resident(c, r))
            continue;
        known++;
        *free += kvc_order_free(c, r);
    }
    return known;
}
