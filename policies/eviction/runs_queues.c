/* SPDX-License-Identifier: Apache-2.0
 * Policies of one queue: lru, fifo, sieve (Zhang et al., NSDI 2024), and watermark: lru in batches
 * as Mooncake's store does it. When a request finds more than high (90 %) in use, and when a block
 * finds no room, the oldest ceil(n t) of the n blocks go at once, t = used - high + batch (5 %), and
 * batch at least.
 * (The store refuses a block that finds no room and evicts within 10 ms; here it waits.) */
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

const struct kvc_runs_ops kvc_runs_lru = {.name = "lru", .hit = lru_hit, .miss = miss};
const struct kvc_runs_ops kvc_runs_fifo = {.name = "fifo", .hit = fifo_hit, .miss = miss};

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

const struct kvc_runs_ops kvc_runs_sieve = {.name = "sieve", .hit = sieve_hit, .miss = sieve_miss};

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

static void batch(struct kvc_runs *c)
{
    u128 whole = MILLION * (u128)c->capacity, least = millionths(c, OPT_BATCH) * (u128)c->capacity;
    u128 used = MILLION * (u128)c->size, high = millionths(c, OPT_HIGH) * (u128)c->capacity;
    u128 t = least + (used > high ? used - high : 0); /* of whole */
    u128 due = (c->size * t + whole - 1) / whole;
    for (uint64_t n = due < c->size ? (uint64_t)due : c->size; n;) {
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

const struct kvc_runs_ops kvc_runs_watermark = {.name = "watermark",
                                                KVC_OPTIONS(watermark_options),
                                                .arrive = watermark_arrive, .hit = lru_hit,
                                                .miss = watermark_miss};
