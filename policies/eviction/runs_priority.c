/* SPDX-License-Identifier: Apache-2.0
 * Policies that give each block a number and evict the least, of equals the one touched longest
 * ago; by runs, for blocks of one history have one number.
 *
 * lruk: touch number K from the last back, fewer touches before any (LRU-K of O'Neil, O'Neil and
 * Weikum, SIGMOD 1993, with no correlated references, and a history that is never lost).
 * gdsf: touches since stored, each block of size and cost 1, above what was evicted last when it
 * was touched (Greedy-Dual-Size-Frequency of Cherkasova, HP 1998; LFU with dynamic aging).
 * hyperbolic: touches since stored by requests since stored, this one counted (Blankstein, Sen and
 * Freedman, USENIX ATC 2017), the least of all blocks where the paper samples 64.
 *
 * note: touches since stored; key: the number, of hyperbolic the request that stored the run. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"

static bool older(const struct kvc_run *a, const struct kvc_run *b)
{
    return a->stamp != b->stamp ? a->stamp < b->stamp : a->lo > b->lo;
}

static bool least_key(const struct kvc_runs *c, const struct kvc_run *a, const struct kvc_run *b)
{
    (void)c;
    return a->key != b->key ? a->key < b->key : older(a, b);
}

/* The next deeper run, if this touch made it the same as this one. */
static uint32_t twin(const struct kvc_runs *c, const struct kvc_run *run)
{
    uint32_t n = kvc_run_at(c, run->seg, run->hi);
    return n != KVC_RUN_NONE && c->run[n].stamp == c->clock && c->run[n].key == run->key &&
                   c->run[n].note == run->note
               ? n
               : KVC_RUN_NONE;
}

static void hit(struct kvc_runs *c, uint32_t r, uint32_t note, uint64_t key)
{
    struct kvc_run *run = &c->run[r];
    run->note = note;
    run->key = key;
    run->stamp = c->clock;
    uint32_t n = twin(c, run);
    if (n == KVC_RUN_NONE || !kvc_runs_tags_alike(c, n, r)) {
        kvc_heap_sift(c, run->older);
        return;
    }
    c->run[n].lo = run->lo;
    kvc_heap_take(c, r);
    kvc_run_free(c, r);
}

static uint32_t miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t note,
                     uint64_t key)
{
    struct kvc_run fresh = {.seg = seg, .lo = lo, .hi = hi, .note = note, .key = key,
                            .stamp = c->clock};
    uint32_t n = hi - lo, own = twin(c, &fresh);
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
    } else {
        uint32_t top = c->heap[0];
        if (top == own) { /* each newcomer pushes out the deepest of those before */
            kvc_run_slide(c, own, n);
            return n;
        }
        /* one that goes before the rest of the victim's run is the next victim */
        n = c->ops->first(c, &fresh, &c->run[top]) ? 1 : kvc_least(n, kvc_run_blocks(c, top));
        kvc_heap_shorten_top(c, n);
    }
    if (own != KVC_RUN_NONE) {
        c->run[own].lo -= n;
        c->size += n;
    } else {
        kvc_heap_come(c, seg, hi - n, hi, note, key);
    }
    return n;
}

static uint32_t evict(struct kvc_runs *c, uint32_t want)
{
    return kvc_order_leave(c, kvc_order_first(c, kvc_order_free), want);
}

/* ---- lruk ---- */

#define MOST_K 16

static const struct kvc_policy_option lruk_options[] = {
    {"k", KVC_OPTION_COUNT, "2", 1, MOST_K, "the touch that counts, from the last one back"},
};

static bool lruk_start(struct kvc_runs *c)
{
    c->history = kvc_calloc(c->n_segments, c->option[0].count * sizeof(*c->history));
    return c->history != NULL;
}

static uint64_t *history(const struct kvc_runs *c, uint32_t seg)
{
    return c->history + seg * c->option[0].count;
}

void kvc_lruk_note(struct kvc_runs *c, uint32_t seg)
{
    uint64_t *at = history(c, seg);
    for (uint64_t i = c->option[0].count; --i > 0;)
        at[i] = at[i - 1];
    at[0] = c->clock;
}

/* Touch number k, the one in hand counted. */
static uint64_t kth(const struct kvc_runs *c, uint32_t seg)
{
    return history(c, seg)[c->option[0].count - 1];
}

static void lruk_hit(struct kvc_runs *c, uint32_t r)
{
    hit(c, r, 0, kth(c, c->run[r].seg));
}

static uint32_t lruk_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                          uint32_t ghost)
{
    (void)ghost;
    return miss(c, seg, lo, hi, 0, kth(c, seg));
}

static void lruk_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    (void)ghost;
    kvc_heap_come(c, seg, lo, hi, 0, kth(c, seg));
}

static const struct kvc_order_ops lruk_order = {.come = lruk_come, .evict = evict,
                                                .renew = kvc_order_restamp};
const struct kvc_runs_ops kvc_runs_lruk = {.name = "lruk", KVC_OPTIONS(lruk_options),
                                           .start = lruk_start, .first = least_key,
                                           .hit = lruk_hit, .miss = lruk_miss,
                                           .order = &lruk_order};

/* ---- gdsf ---- */

static void gdsf_hit(struct kvc_runs *c, uint32_t r)
{
    hit(c, r, c->run[r].note + 1, c->floor + c->run[r].note + 1);
}

static uint32_t gdsf_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                          uint32_t ghost)
{
    (void)ghost;
    if (c->size == c->capacity)
        c->floor = c->run[c->heap[0]].key;
    return miss(c, seg, lo, hi, 1, c->floor + 1);
}

static void gdsf_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    (void)ghost;
    kvc_heap_come(c, seg, lo, hi, 1, c->floor + 1);
}

static uint32_t gdsf_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = kvc_order_first(c, kvc_order_free);
    if (r != KVC_RUN_NONE)
        c->floor = c->run[r].key > c->floor ? c->run[r].key : c->floor;
    return kvc_order_leave(c, r, want);
}

static const struct kvc_order_ops gdsf_order = {.come = gdsf_come, .evict = gdsf_evict,
                                                .renew = kvc_order_restamp};
const struct kvc_runs_ops kvc_runs_gdsf = {.name = "gdsf", .first = least_key, .hit = gdsf_hit,
                                           .miss = gdsf_miss, .order = &gdsf_order};

/* ---- hyperbolic ---- */

static bool least_rate(const struct kvc_runs *c, const struct kvc_run *a, const struct kvc_run *b)
{
    uint64_t x = (uint64_t)a->note * (c->request - b->key + 1);
    uint64_t y = (uint64_t)b->note * (c->request - a->key + 1);
    return x != y ? x < y : older(a, b);
}

static void hyperbolic_hit(struct kvc_runs *c, uint32_t r)
{
    hit(c, r, c->run[r].note + 1, c->run[r].key);
}

/* Every request changes the order, which is made anew for the first victim of each. */
static uint32_t hyperbolic_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                                uint32_t ghost)
{
    (void)ghost;
    if (c->size == c->capacity && c->ordered_for != c->request) {
        c->ordered_for = c->request;
        kvc_heap_again(c);
    }
    return miss(c, seg, lo, hi, 1, c->request);
}

static void hyperbolic_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                            uint32_t ghost)
{
    (void)ghost;
    kvc_heap_come(c, seg, lo, hi, 1, c->request);
}

static uint32_t hyperbolic_evict(struct kvc_runs *c, uint32_t want)
{
    if (c->ordered_for != c->request) {
        c->ordered_for = c->request;
        kvc_heap_again(c);
    }
    return evict(c, want);
}

static const struct kvc_order_ops hyperbolic_order = {.come = hyperbolic_come,
                                                      .evict = hyperbolic_evict,
                                                      .renew = kvc_order_restamp};
const struct kvc_runs_ops kvc_runs_hyperbolic = {.name = "hyperbolic", .first = least_rate,
                                                 .hit = hyperbolic_hit, .miss = hyperbolic_miss,
                                                 .order = &hyperbolic_order};
