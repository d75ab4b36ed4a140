/* SPDX-License-Identifier: Apache-2.0
 * Policies that take a request as a whole and evict leaves only, so that what they hold is always
 * closed under prefixes. The request's own blocks are never victims; of a path that is longer
 * than the room there is, the far end stays outside.
 *
 * radix: SGLang's tree. Nodes are made by what a request adds and split where a later one leaves
 * or ends; whole nodes go, of those without children the one touched longest ago. A request longer
 * than the capacity adds nothing. Here nodes are chains of segments, for only ends of requests
 * and divergences cut either. The queue has a run a segment, leaf first, so its oldest is a leaf.
 *
 * costaware: the leaf block with the least touches x cost, above the last victims' figure when it
 * was touched (as gdsf). Cost is what computing the block again takes and grows with its place in
 * the prompt p as 1 + p / d, for attention: d is where it is twice the first block's. key:
 * the last victims' figure at the last touch; note: touches since stored;
 * stamp: request. In the heap are the deepest runs of segments with nothing below. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"

#include <string.h>

/* ---- radix ---- */

static bool radix_start(struct kvc_runs *c)
{
    c->below = kvc_malloc(c->n_segments, sizeof(*c->below));
    if (c->below)
        memset(c->below, 0xff, c->n_segments * sizeof(*c->below));
    return c->below != NULL;
}

/* The oldest node; below: the next segment of the same node. */
static void evict_node(struct kvc_runs *c)
{
    uint32_t seg = c->run[c->queue[0].oldest].seg, up;
    for (bool more = true; more; seg = up) {
        kvc_run_drop(c, c->seg[seg].deepest, c->seg[seg].len);
        up = c->seg[seg].parent;
        more = up != KVC_RUN_NONE && c->below[up] == seg;
        if (more)
            c->below[up] = KVC_RUN_NONE;
    }
}

static void renew(struct kvc_runs *c, uint32_t seg)
{
    for (; seg != KVC_RUN_NONE; seg = c->seg[seg].parent) {
        kvc_queue_take(c, c->seg[seg].deepest);
        kvc_queue_put(c, 0, c->seg[seg].deepest);
    }
}

static uint64_t radix_whole(struct kvc_runs *c, uint32_t leaf)
{
    uint64_t need = 0, found;
    while (leaf != KVC_RUN_NONE && c->seg[leaf].deepest == KVC_RUN_NONE && /* only whole segments */
           kvc_runs_may_store(c, leaf) < c->seg[leaf].len)
        leaf = c->seg[leaf].parent;
    uint32_t match = leaf, under = KVC_RUN_NONE;
    for (; match != KVC_RUN_NONE && c->seg[match].deepest == KVC_RUN_NONE;
         match = c->seg[match].parent)
        need += c->seg[match].len;
    if (match != KVC_RUN_NONE)
        c->below[match] = KVC_RUN_NONE; /* splits a node that goes on */
    found = match == KVC_RUN_NONE ? 0 : c->seg[match].depth + c->seg[match].len;
    renew(c, match); /* what is oldest now is of no concern to this request */
    if (found + need > c->capacity || need == 0)
        return found;
    while (c->size + need > c->capacity)
        evict_node(c);
    for (uint32_t seg = leaf; seg != match; under = seg, seg = c->seg[seg].parent) {
        kvc_run_add(c, seg, 0, c->seg[seg].len, 0, 0);
        c->below[seg] = under;
    }
    renew(c, match);
    return found;
}

/* In an engine's cache: blocks that come in right after those below them are of their node; the
 * deepest block of a turn that was there ends one. Nodes may begin and end inside a segment: note
 * tells those of one apart. */
static void radix_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t last = c->match, up = c->seg[seg].parent;
    bool next = last != KVC_RUN_NONE && c->match_lo == 0 && c->seg[last].parent == seg;
    (void)ghost;
    if (hi == c->seg[seg].len)
        c->below[seg] = next ? last : KVC_RUN_NONE;
    if (lo == 0 && up != KVC_RUN_NONE && c->below[up] == seg)
        c->below[up] = KVC_RUN_NONE; /* of a node that lost what it had here */
    if (!(next && hi == c->seg[seg].len) && !(last == seg && c->match_lo == hi))
        c->notes++;
    c->match = seg;
    c->match_lo = lo;
    kvc_run_add(c, seg, lo, hi, 0, c->notes);
}

/* The node of a run ends with it; what is deeper in its segment is another. */
static void end_node(struct kvc_runs *c, uint32_t r)
{
    uint32_t seg = c->run[r].seg, note = c->run[r].note, fresh = 0;
    if (c->run[r].hi == c->seg[seg].len)
        c->below[seg] = KVC_RUN_NONE;
    for (uint32_t d = c->seg[seg].deepest; d != r; d = c->run[d].shallower)
        if (c->run[d].note == note)
            c->run[d].note = fresh ? fresh : (fresh = ++c->notes);
}

static void radix_use(struct kvc_runs *c, uint32_t r)
{
    if (!c->matched || c->match != KVC_RUN_NONE)
        end_node(c, r);
    c->matched = true;
    c->match = KVC_RUN_NONE;
    kvc_order_requeue(c, r);
}

static void radix_renew(struct kvc_runs *c, uint32_t r)
{
    c->match = KVC_RUN_NONE;
    kvc_order_requeue(c, r);
}

static uint32_t radix_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = c->queue[0].oldest, gone = 0;
    (void)want; /* whole nodes */
    while (r != KVC_RUN_NONE && !kvc_order_leaf(c, r))
        r = c->run[r].newer;
    if (r == KVC_RUN_NONE) /* below all that may go something is held */
        return kvc_order_leave(c, kvc_order_oldest(c, 0), 1);
    while (r != KVC_RUN_NONE && kvc_order_leaf(c, r)) {
        uint32_t seg = c->run[r].seg, lo = c->run[r].lo, note = c->run[r].note;
        uint32_t up = c->seg[seg].parent;
        gone += kvc_order_leave(c, r, c->allowed ? 1 : kvc_run_blocks(c, r));
        if (c->allowed)
            break;
        r = c->seg[seg].deepest;
        if (lo == 0 && up != KVC_RUN_NONE && c->below[up] == seg) {
            c->below[up] = KVC_RUN_NONE;
            r = c->seg[up].deepest;
            if (r != KVC_RUN_NONE && c->run[r].hi != c->seg[up].len)
                r = KVC_RUN_NONE;
        } else if (r != KVC_RUN_NONE && (c->run[r].hi != lo || c->run[r].note != note)) {
            r = KVC_RUN_NONE;
        }
    }
    return gone;
}

static const struct kvc_order_ops radix_order = {.come = radix_come, .evict = radix_evict,
                                                 .use = radix_use, .renew = radix_renew,
                                                 .tree = true};
const struct kvc_runs_ops kvc_runs_radix = {.name = "radix", .start = radix_start,
                                            .whole = radix_whole, .order = &radix_order};

/* ---- costaware ---- */

/* Where attention takes as long as all else of a prefill: 2 x 8 G FLOP a token against 4 x 4096 x
 * 32 FLOP for each token before it, of an 8B model without sliding windows. Assumed. */
static const struct kvc_policy_option costaware_options[] = {
    {"tokens", KVC_OPTION_COUNT, "32768", 1, 1e12, "place where a token costs twice the first one"},
};

static bool costaware_start(struct kvc_runs *c)
{
    c->cost_blocks = c->option[0].count / c->block_tokens;
    c->cost_blocks += !c->cost_blocks;
    c->below = kvc_calloc(c->n_segments, sizeof(*c->below)); /* segments below with blocks */
    return c->below != NULL;
}

/* Of the deepest block of a run. */
static uint64_t value(const struct kvc_runs *c, const struct kvc_run *run)
{
    return run->key + run->note * (c->cost_blocks + c->seg[run->seg].depth + run->hi - 1);
}

static bool least_value(const struct kvc_runs *c, const struct kvc_run *a, const struct kvc_run *b)
{
    uint64_t x = value(c, a), y = value(c, b);
    return x != y ? x < y : a->stamp < b->stamp;
}

/* One more touch of all that the segment holds; neighbours that it makes equal join. */
static void touch_runs(struct kvc_runs *c, uint32_t seg)
{
    for (uint32_t r = c->seg[seg].deepest, deeper = KVC_RUN_NONE; r != KVC_RUN_NONE;) {
        struct kvc_run *run = &c->run[r];
        uint32_t next = run->shallower;
        run->note++;
        run->key = c->floor;
        run->stamp = c->request;
        if (deeper != KVC_RUN_NONE && c->run[deeper].note == run->note) {
            c->run[deeper].lo = run->lo;
            kvc_run_free(c, r);
        } else {
            deeper = r;
        }
        r = next;
    }
}

/* The least leaf makes room for n blocks at most; returns for how many, 0: there is none. */
static uint32_t evict_leaf(struct kvc_runs *c, uint64_t n)
{
    if (!c->n_heap)
        return 0;
    uint32_t r = c->heap[0], seg = c->run[r].seg, gone = kvc_least(n, kvc_run_blocks(c, r));
    uint64_t figure = value(c, &c->run[r]);
    bool all = gone == kvc_run_blocks(c, r);
    c->floor = figure > c->floor ? figure : c->floor;
    kvc_heap_shorten_top(c, gone);
    if (!all)
        return gone;
    uint32_t next = c->seg[seg].deepest;
    if (next == KVC_RUN_NONE && (seg = c->seg[seg].parent) != KVC_RUN_NONE && !--c->below[seg])
        next = c->seg[seg].deepest;
    if (next != KVC_RUN_NONE && c->run[next].stamp != c->request)
        kvc_heap_put(c, next);
    return gone;
}

/* Takes in the first blocks of the segment that are missing, as far as there is room. */
static bool fill(struct kvc_runs *c, uint32_t seg)
{
    uint32_t r = c->seg[seg].deepest, at = r == KVC_RUN_NONE ? 0 : c->run[r].hi;
    uint32_t end = kvc_runs_may_store(c, seg);
    while (at < end && !c->failed) {
        uint32_t n = end - at;
        n = c->size < c->capacity ? kvc_least(n, c->capacity - c->size) : evict_leaf(c, n);
        if (n == 0)
            return false;
        if (at == 0 && c->seg[seg].parent != KVC_RUN_NONE)
            c->below[c->seg[seg].parent]++;
        r = c->seg[seg].deepest;
        if (r != KVC_RUN_NONE && c->run[r].note == 1 && c->run[r].key == c->floor) {
            c->run[r].hi += n;
        } else if ((r = kvc_run_new(c, seg, at, at + n)) != KVC_RUN_NONE) {
            c->run[r].note = 1;
            c->run[r].key = c->floor;
            c->run[r].stamp = c->request;
        }
        c->size += n;
        at += n;
    }
    return true;
}

static uint64_t costaware_whole(struct kvc_runs *c, uint32_t leaf)
{
    uint64_t found = 0;
    uint32_t n = kvc_runs_path(c, leaf), i = 0;
    uint32_t last = leaf; /* the deepest segment of the path with blocks */
    while (last != KVC_RUN_NONE && c->seg[last].deepest == KVC_RUN_NONE)
        last = c->seg[last].parent;
    if (last != KVC_RUN_NONE) {
        found = c->seg[last].depth + c->run[c->seg[last].deepest].hi;
        if (!c->below[last])
            kvc_heap_take(c, c->seg[last].deepest);
    }
    for (uint32_t s = last; s != KVC_RUN_NONE; s = c->seg[s].parent)
        touch_runs(c, s);
    while (i < n && fill(c, c->path[i]))
        i++;
    last = leaf;
    while (last != KVC_RUN_NONE && c->seg[last].deepest == KVC_RUN_NONE)
        last = c->seg[last].parent;
    if (last != KVC_RUN_NONE && !c->below[last])
        kvc_heap_put(c, c->seg[last].deepest);
    return found;
}

/* ---- costaware in an engine's cache: all runs are in the heap, leaves leave it; stamp: clock */

static void costaware_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                           uint32_t ghost)
{
    (void)ghost;
    kvc_heap_come(c, seg, lo, hi, 1, c->floor);
}

static void costaware_use(struct kvc_runs *c, uint32_t r)
{
    c->run[r].note++;
    c->run[r].key = c->floor;
    kvc_order_restamp(c, r);
}

static uint32_t used_longest_ago(const struct kvc_runs *c)
{
    uint32_t oldest = KVC_RUN_NONE;
    for (size_t i = 0; i < c->n_heap; i++) {
        uint32_t r = c->heap[i];
        if (kvc_order_free(c, r) &&
            (oldest == KVC_RUN_NONE || c->run[r].stamp < c->run[oldest].stamp ||
             (c->run[r].stamp == c->run[oldest].stamp && c->run[r].lo > c->run[oldest].lo)))
            oldest = r; /* equals are of one segment */
    }
    return oldest;
}

static uint32_t costaware_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = kvc_order_first(c, kvc_order_leaf);
    if (r == KVC_RUN_NONE) /* below all that may go something is held */
        return kvc_order_leave(c, used_longest_ago(c), 1);
    uint64_t figure = value(c, &c->run[r]);
    c->floor = figure > c->floor ? figure : c->floor;
    return kvc_order_leave(c, r, want);
}

static const struct kvc_order_ops costaware_order = {.come = costaware_come,
                                                     .evict = costaware_evict,
                                                     .use = costaware_use,
                                                     .renew = kvc_order_restamp, .tree = true};
const struct kvc_runs_ops kvc_runs_costaware = {.name = "costaware",
                                                KVC_OPTIONS(costaware_options),
                                                .start = costaware_start,
                                                .first = least_value, .whole = costaware_whole,
                                                .order = &costaware_order};
