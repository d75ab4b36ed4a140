/* SPDX-License-Identifier: Apache-2.0
 * Policies of one queue: lru, fifo, sieve (Zhang et al., NSDI 2024), and watermark: lru in batches
 * as Mooncake's store does it. When a request finds more than high (90 %) in use, and when a block
 * finds no room, the oldest ceil(n t) of the n blocks go at once, t = used - high + batch (5 %),
 * and batch at least. (The store refuses a block that finds no room and evicts within 10 ms; here
 * it waits.) */
#include "policies/eviction/runs_internal.h"

uint32_t kvc_make_room(struct kvc_runs *c, uint32_t want)
{
    if (c->size < c->capacity)
        return kvc_least(want, c->capacity - c->size);
    uint32_t victim = c->queue[0].oldest, n = kvc_least(want, kvc_run_blocks(c, victim));
    kvc_run_drop(c, victim, n);
    return n;
}

static uint32_t miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t n = kvc_make_room(c, hi - lo);
    (void)ghost;
    kvc_run_add(c, seg, hi - n, hi, 0, 0);
    return n;
}

static void lru_hit(struct kvc_runs *c, uint32_t r)
{
    if (c->queue[0].newest == r)
        return;
    kvc_queue_take(c, r);
    kvc_queue_put(c, 0, r);
}

static void fifo_hit(struct kvc_runs *c, uint32_t r)
{
    (void)c, (void)r;
}

static void come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    (void)ghost;
    kvc_run_add(c, seg, lo, hi, 0, 0);
}

static uint32_t evict(struct kvc_runs *c, uint32_t want)
{
    return kvc_order_leave(c, kvc_order_oldest(c, 0), want);
}

static const struct kvc_order_ops lru_order = {.come = come, .evict = evict, .renew = lru_hit};
static const struct kvc_order_ops fifo_order = {.come = come, .evict = evict};
const struct kvc_runs_ops kvc_runs_lru = {.name = "lru", .hit = lru_hit, .miss = miss,
                                          .order = &lru_order};
const struct kvc_runs_ops kvc_runs_fifo = {.name = "fifo", .hit = fifo_hit, .miss = miss,
                                           .order = &fifo_order};

/* ---- sieve: note 1 = visited ---- */

static void sieve_hit(struct kvc_runs *c, uint32_t r)
{
    c->run[r].note = 1;
}

/* The run that the hand stops at, the deepest block of which is the victim. */
static uint32_t sieve_victim(struct kvc_runs *c)
{
    uint32_t r = c->hand != KVC_RUN_NONE ? c->hand : c->queue[0].oldest;
    while (c->run[r].note) {
        c->run[r].note = 0;
        r = c->run[r].newer != KVC_RUN_NONE ? c->run[r].newer : c->queue[0].oldest;
    }
    return r;
}

static uint32_t sieve_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                           uint32_t ghost)
{
    uint32_t n = hi - lo;
    (void)ghost;
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
    } else {
        uint32_t r = sieve_victim(c), blocks = kvc_run_blocks(c, r);
        bool newest = c->queue[0].newest == r;
        if (newest && blocks > 1 && c->run[r].seg == seg && c->run[r].lo == hi) {
            c->hand = r; /* each newcomer pushes out the deepest of those before it */
            kvc_run_slide(c, r, n);
            return n;
        }
        /* Of the newest run the hand passes on to the first newcomer, not to the end. */
        n = newest ? 1 : kvc_least(n, blocks);
        c->hand = n == blocks ? c->run[r].newer : r;
        kvc_run_drop(c, r, n);
    }
    kvc_run_add(c, seg, hi - n, hi, 0, 0);
    return n;
}

/* The hand passes over what may not go and leaves it as it is. */
static uint32_t sieve_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = c->hand;
    for (int round = 0;; r = c->run[r].newer) {
        if (r == KVC_RUN_NONE) {
            r = c->queue[0].oldest;
            if (r == KVC_RUN_NONE || round++ == 3)
                return 0;
        }
        if (!kvc_order_free(c, r))
            continue;
        if (!c->run[r].note)
            break;
        c->run[r].note = 0;
    }
    c->hand = r;
    return kvc_order_leave(c, r, want);
}

static void sieve_cut(struct kvc_runs *c, uint32_t r, uint32_t deeper)
{
    kvc_queue_put_behind(c, r, deeper);
    c->hand = c->hand == r ? deeper : c->hand;
}

static void sieve_gone(struct kvc_runs *c, uint32_t r)
{
    c->hand = c->hand == r ? c->run[r].newer : c->hand;
}

static const struct kvc_order_ops sieve_order = {.come = come, .evict = sieve_evict,
                                                 .cut = sieve_cut, .gone = sieve_gone};
const struct kvc_runs_ops kvc_runs_sieve = {.name = "sieve", .hit = sieve_hit, .miss = sieve_miss,
                                            .order = &sieve_order};

/* ---- watermark ---- */

enum { OPT_HIGH, OPT_BATCH };

static const struct kvc_policy_option watermark_options[] = {
    {"high", KVC_OPTION_NUMBER, "0.9", 0, 1,
     "part in use above which a request finds a batch gone"},
    {"batch", KVC_OPTION_NUMBER, "0.05", 1e-6, 1,
     "the least that goes at once, of the blocks in use"},
};

#define MILLION 1000000
__extension__ typedef unsigned __int128 u128;

static u128 millionths(const struct kvc_runs *c, unsigned option)
{
    return (u128)(c->option[option].number * MILLION + 0.5);
}

/* Of how many blocks due leave, n in use. */
static uint64_t due_of(const struct kvc_runs *c, uint64_t n, uint64_t in_use)
{
    u128 whole = MILLION * (u128)c->capacity, least = millionths(c, OPT_BATCH) * (u128)c->capacity;
    u128 used = MILLION * (u128)in_use, high = millionths(c, OPT_HIGH) * (u128)c->capacity;
    u128 t = least + (used > high ? used - high : 0); /* of whole */
    u128 due = (n * t + whole - 1) / whole;
    return due < n ? (uint64_t)due : n;
}

static void batch(struct kvc_runs *c)
{
    for (uint64_t n = due_of(c, c->size, c->size); n;) {
        uint32_t r = c->queue[0].oldest, part = kvc_least(n, kvc_run_blocks(c, r));
        kvc_run_drop(c, r, part);
        n -= part;
    }
}

static void watermark_arrive(struct kvc_runs *c, uint32_t seg)
{
    (void)seg;
    if (MILLION * (u128)c->size > millionths(c, OPT_HIGH) * (u128)c->capacity)
        batch(c);
}

static uint32_t watermark_miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi,
                               uint32_t ghost)
{
    if (c->size == c->capacity)
        batch(c);
    return miss(c, seg, lo, hi, ghost);
}

static uint32_t leave(struct kvc_runs *c, uint64_t due)
{
    uint32_t gone = 0, part = 1;
    for (uint64_t n = c->allowed ? 1 : due; n && part; n -= part) {
        part = kvc_order_leave(c, kvc_order_oldest(c, 0), kvc_least(n, UINT32_MAX));
        gone += part;
    }
    return gone;
}

/* What room is left goes to the newcomer, which is why there is not enough: all is in use. */
static uint32_t watermark_evict(struct kvc_runs *c, uint32_t want)
{
    (void)want;
    return leave(c, due_of(c, c->size, c->capacity));
}

static void watermark_rest(struct kvc_runs *c)
{
    if (MILLION * (u128)c->in_use > millionths(c, OPT_HIGH) * (u128)c->capacity)
        leave(c, due_of(c, c->size, c->in_use));
}

static const struct kvc_order_ops watermark_order = {.come = come, .evict = watermark_evict,
                                                     .renew = lru_hit,
                                                     .rest = watermark_rest};
const struct kvc_runs_ops kvc_runs_watermark = {.name = "watermark",
                                                KVC_OPTIONS(watermark_options),
                                                .arrive = watermark_arrive, .hit = lru_hit,
                                                .miss = watermark_miss,
                                                .order = &watermark_order};
