/* SPDX-License-Identifier: Apache-2.0
 * random: any of the resident blocks goes, each as likely. Victims are single blocks and would
 * leave segments in hundreds of runs, so this policy goes by blocks: a bit for each says whether it
 * is resident, and a table holds the resident ones, a newcomer taking its victim's place. What a
 * request finds is read 64 blocks at a time. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"
#include "base/rng.h"

static const struct kvc_policy_option options[] = {
    {"seed", KVC_OPTION_COUNT, "0", 0, 0x1p53, "of the draws"},
};

static bool start(struct kvc_runs *c)
{
    uint64_t n = 0;
    c->rng = kvc_rng_stream(c->option[0].count, "random");
    c->first_block = kvc_malloc((size_t)c->n_segments + 1, sizeof(*c->first_block));
    if (!c->first_block)
        return false;
    for (uint32_t s = 0; s < c->n_segments; s++) {
        c->first_block[s] = (uint32_t)n;
        n += c->seg[s].len;
    }
    c->first_block[c->n_segments] = (uint32_t)n;
    c->bits = kvc_calloc((size_t)(n / 64 + 1), sizeof(*c->bits));
    return n < UINT32_MAX && c->bits;
}

static uint64_t bit(uint32_t block)
{
    return (uint64_t)1 << (block & 63);
}

/* The last block of [from, to) that is absent, or to. */
static uint32_t last_absent(const struct kvc_runs *c, uint32_t from, uint32_t to)
{
    for (uint32_t at = to; at > from;) {
        uint32_t word = (at - 1) >> 6, begin = word << 6;
        uint64_t absent = ~c->bits[word];
        if (at - begin < 64)
            absent &= bit(at) - 1;
        if (begin < from)
            absent &= ~(bit(from) - 1);
        if (absent)
            return begin + 63 - (uint32_t)__builtin_clzll(absent);
        at = begin;
    }
    return to;
}

static uint32_t lead(const struct kvc_runs *c, uint32_t seg)
{
    uint32_t from = c->first_block[seg], to = c->first_block[seg + 1], at = from;
    while (at < to) {
        uint64_t absent = ~c->bits[at >> 6] & ~(bit(at) - 1);
        if (absent) {
            at = (at & ~63u) + (uint32_t)__builtin_ctzll(absent);
            break;
        }
        at = (at | 63) + 1;
    }
    return (at < to ? at : to) - from;
}

static void say_left(const struct kvc_runs *c, uint32_t block)
{
    uint32_t low = 0, high = c->n_segments;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(c->first_block[middle] <= block ? &low : &high) = middle;
    }
    kvc_run_left(c, low, block - c->first_block[low], block - c->first_block[low] + 1);
}

static void store(struct kvc_runs *c, uint32_t block)
{
    if (c->size < c->capacity) {
        if (!kvc_grow((void **)&c->table, &c->table_room, c->size + 1, sizeof(*c->table))) {
            c->failed = true;
            return;
        }
        c->table[c->size++] = block;
    } else {
        uint32_t *place = &c->table[kvc_rng_below(&c->rng, c->size)];
        c->bits[*place >> 6] &= ~bit(*place);
        if (c->left)
            say_left(c, *place);
        *place = block;
    }
    c->bits[block >> 6] |= bit(block);
}

static uint64_t whole(struct kvc_runs *c, uint32_t seg)
{
    uint64_t found = 0;
    for (; seg != KVC_RUN_NONE && !c->failed; seg = c->seg[seg].parent) {
        uint32_t from = c->first_block[seg], to = c->first_block[seg + 1], block;
        uint32_t end = from + kvc_runs_may_store(c, seg);
        while ((block = last_absent(c, from, to)) != to) {
            found += to - block - 1;
            if (block < end)
                store(c, block);
            to = block;
        }
        found += to - from;
    }
    return found;
}

/* ---- in an engine's cache: runs of one block; key: its place in the table ---- */

static void order_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t n = (uint32_t)c->size, r;
    (void)ghost;
    if (!kvc_grow((void **)&c->table, &c->table_room, (size_t)n + 1, sizeof(*c->table))) {
        c->failed = true;
        return;
    }
    if ((r = kvc_run_add(c, seg, lo, hi, 0, 0)) == KVC_RUN_NONE)
        return;
    /* The newcomer takes the place of the last that left; who had moved there goes back to the
     * end. */
    uint32_t at = c->hand < n ? c->hand : n;
    c->hand = KVC_RUN_NONE;
    c->table[n] = r;
    c->table[n] = c->table[at];
    c->table[at] = r;
    c->run[c->table[n]].key = n;
    c->run[r].key = at;
}

static void order_hit(struct kvc_runs *c, uint32_t r)
{
    (void)c, (void)r;
}

/* The last of the table moves to its place. */
static void order_gone(struct kvc_runs *c, uint32_t r)
{
    c->hand = (uint32_t)c->run[r].key;
    c->table[c->hand] = c->table[c->size - 1];
    c->run[c->table[c->hand]].key = c->hand;
}

/* The block that is drawn, or the next in the table that may go. */
static uint32_t order_evict(struct kvc_runs *c, uint32_t want)
{
    uint64_t at = c->size ? kvc_rng_below(&c->rng, c->size) : 0;
    for (uint64_t i = 0; i < c->size; i++, at = at + 1 < c->size ? at + 1 : 0)
        if (kvc_order_free(c, c->table[at]))
            return kvc_order_leave(c, c->table[at], want);
    return 0;
}

static const struct kvc_order_ops order = {.come = order_come, .evict = order_evict,
                                           .use = order_hit, .gone = order_gone,
                                           .single = true};
const struct kvc_runs_ops kvc_runs_random = {.name = "random", KVC_OPTIONS(options),
                                             .start = start, .lead = lead, .whole = whole,
                                             .order = &order};
