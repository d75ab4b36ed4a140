/* SPDX-License-Identifier: Apache-2.0
 * LRU at every capacity from one pass (touch order leaf to root, as engines free the tail first).
 *
 * A touch makes a path the most recent part of the stack, root on top, so a segment's blocks lie
 * together and ranks grow along a path. The blocks of a path that a cache of C blocks holds are
 * then its leading run, and a segment with D blocks above it adds min(max(C - D, 0), len) to it
 * (Mattson et al., 1970, by runs instead of by block). All lookups of a request come before its
 * touches: walking leaf to root, the request's deeper segments have moved up already, all of them
 * above the one in hand, and are taken off its count. */
#include "base/alloc.h"
#include "base/error.h"
#include "sim/ceiling/ceiling.h"
#include "sim/ceiling/ceiling_stack.h"

#include <string.h>

static enum kvc_status start_stack(struct kvc_stack *stack, const struct kvc_ceiling_view *v,
                                   struct kvc_error *err)
{
    return kvc_stack_init(stack, v->n_segments, v->seg_len) ? KVC_OK : kvc_fail_nomem(err);
}

enum kvc_status kvc_ceiling_lru_of(const struct kvc_ceiling_view *v,
                                   const uint64_t *capacity_blocks, size_t n, struct kvc_hits *out,
                                   uint32_t *runs, struct kvc_error *err)
{
    if (n == 0)
        return KVC_OK;
    struct kvc_stack stack;
    enum kvc_status status = start_stack(&stack, v, err);
    if (status)
        return status;
    uint64_t *run = kvc_malloc(n, sizeof(*run));
    struct kvc_hits *hits = kvc_malloc(n, sizeof(*hits));
    if (!run || !hits)
        goto nomem;
    kvc_hits_begin(v, &hits[0]);
    for (size_t c = 1; c < n; c++)
        hits[c] = hits[0];
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint32_t moved = 0;
        memset(run, 0, n * sizeof(*run));
        for (uint32_t s = v->prompt_seg[r]; s != KVC_SEG_NONE; s = v->seg_parent[s]) {
            uint32_t above = 0, len = v->seg_len[s];
            bool seen = kvc_stack_touch(&stack, s, &above);
            uint64_t depth = above - moved;
            moved += len;
            for (size_t c = 0; seen && c < n; c++)
                if (capacity_blocks[c] > depth)
                    run[c] += capacity_blocks[c] - depth < len ? capacity_blocks[c] - depth : len;
        }
        for (size_t c = 0; c < n; c++)
            kvc_hits_count(v, r, run[c], &hits[c]);
        if (runs)
            runs[r] = (uint32_t)run[0];
    }
    memcpy(out, hits, n * sizeof(*out));
    goto done;
nomem:
    status = kvc_fail_nomem(err);
done:
    kvc_free(hits);
    kvc_free(run);
    kvc_stack_clear(&stack);
    return status;
}

/* ---- all capacities ---- */

/* Changes of slope: the curve rises by one more from a capacity on, or by one less. They are
 * gathered as keys (capacity * 2 + falls), sorted and merged when the room is full, so memory
 * follows the number of distinct changes and not that of touches. */
struct bend {
    uint64_t at;
    int64_t change;
};

struct bends {
    uint64_t *key, *spare;
    size_t n, room;
    struct bend *bend, *merged;
    size_t n_bends, room_bends, room_merged;
};

#define FIRST_ROOM 65536u
#define RADIX_BITS 11u
#define RADIX (1u << RADIX_BITS)

static bool bends_init(struct bends *b)
{
    memset(b, 0, sizeof(*b));
    b->room = FIRST_ROOM;
    b->key = kvc_malloc(b->room, sizeof(*b->key));
    b->spare = kvc_malloc(b->room, sizeof(*b->spare));
    return b->key && b->spare;
}

static void bends_clear(struct bends *b)
{
    kvc_free(b->key);
    kvc_free(b->spare);
    kvc_free(b->bend);
    kvc_free(b->merged);
}

static void sort_keys(struct bends *b)
{
    uint64_t all = 0;
    for (size_t i = 0; i < b->n; i++)
        all |= b->key[i];
    for (unsigned shift = 0; shift < 64 && all >> shift; shift += RADIX_BITS) {
        uint32_t count[RADIX] = {0}, sum = 0;
        for (size_t i = 0; i < b->n; i++)
            count[b->key[i] >> shift & (RADIX - 1)]++;
        for (size_t i = 0; i < RADIX; i++) {
            uint32_t own = count[i];
            count[i] = sum;
            sum += own;
        }
        for (size_t i = 0; i < b->n; i++)
            b->spare[count[b->key[i] >> shift & (RADIX - 1)]++] = b->key[i];
        uint64_t *swap = b->key;
        b->key = b->spare;
        b->spare = swap;
    }
}

/* Merges the sorted keys into the bends; changes that cancel out vanish. */
static bool bends_flush(struct bends *b)
{
    size_t i = 0, j = 0, n = 0, need = b->n_bends + b->n;
    if (need > b->room_merged &&
        !kvc_grow((void **)&b->merged, &b->room_merged, need, sizeof(*b->merged)))
        return false;
    sort_keys(b);
    while (i < b->n || j < b->n_bends) {
        struct bend next = {UINT64_MAX, 0};
        if (i < b->n)
            next.at = b->key[i] >> 1;
        if (j < b->n_bends && b->bend[j].at < next.at)
            next.at = b->bend[j].at;
        if (j < b->n_bends && b->bend[j].at == next.at)
            next.change += b->bend[j++].change;
        for (; i < b->n && b->key[i] >> 1 == next.at; i++)
            next.change += b->key[i] & 1 ? -1 : 1;
        if (next.change)
            b->merged[n++] = next;
    }
    struct bend *swap = b->bend;
    size_t room = b->room_bends;
    b->bend = b->merged;
    b->room_bends = b->room_merged;
    b->merged = swap;
    b->room_merged = room;
    b->n_bends = n;
    b->n = 0;
    return true;
}

/* A flush costs the bends so far, so the room for keys keeps up with them. */
static bool bends_make_room(struct bends *b)
{
    if (!bends_flush(b))
        return false;
    size_t room = b->room;
    while (room < b->n_bends)
        room *= 2;
    if (room == b->room)
        return true;
    uint64_t *key = kvc_realloc(b->key, room, sizeof(*key));
    if (key)
        b->key = key;
    uint64_t *spare = key ? kvc_realloc(b->spare, room, sizeof(*spare)) : NULL;
    if (!spare)
        return false;
    b->spare = spare;
    b->room = room;
    return true;
}

/* One hit each at the capacities in (low, high]. */
static inline bool bends_add(struct bends *b, uint64_t low, uint64_t high)
{
    if (b->n + 2 > b->room && !bends_make_room(b))
        return false;
    b->key[b->n++] = low << 1;
    b->key[b->n++] = high << 1 | 1;
    return true;
}

static bool gather(const struct kvc_ceiling_view *v, struct kvc_stack *stack, struct bends *b)
{
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint32_t moved = 0;
        uint64_t low = 0, high = 0; /* a stretch not handed on yet: neighbours join */
        for (uint32_t s = v->prompt_seg[r]; s != KVC_SEG_NONE; s = v->seg_parent[s]) {
            uint32_t above = 0, len = v->seg_len[s];
            bool seen = kvc_stack_touch(stack, s, &above);
            uint64_t depth = above - moved;
            moved += len;
            if (!seen)
                continue;
            if (depth + len != low) {
                if (high > low && !bends_add(b, low, high))
                    return false;
                high = depth + len;
            }
            low = depth;
        }
        if (high > low && !bends_add(b, low, high))
            return false;
    }
    return bends_flush(b);
}

static enum kvc_status draw(const struct bends *b, struct kvc_curve *out, struct kvc_error *err)
{
    uint64_t *capacity = kvc_malloc(b->n_bends + 1, sizeof(*capacity));
    uint64_t *hits = kvc_malloc(b->n_bends + 1, sizeof(*hits));
    if (!capacity || !hits) {
        kvc_free(capacity);
        kvc_free(hits);
        return kvc_fail_nomem(err);
    }
    size_t n = 0;
    uint64_t slope = 0;
    capacity[n] = hits[n] = 0;
    n++;
    for (size_t i = 0; i < b->n_bends; i++) {
        uint64_t at = b->bend[i].at;
        if (at > 0) {
            capacity[n] = at;
            hits[n] = hits[n - 1] + slope * (at - capacity[n - 1]);
            n++;
        }
        slope += (uint64_t)b->bend[i].change;
    }
    out->n = n;
    out->capacity_blocks = capacity;
    out->raw_hit_blocks = hits;
    return KVC_OK;
}

enum kvc_status kvc_ceiling_curve_of(const struct kvc_ceiling_view *v, struct kvc_curve *out,
                                     struct kvc_error *err)
{
    struct kvc_stack stack;
    struct bends bends;
    enum kvc_status status = start_stack(&stack, v, err);
    if (status)
        return status;
    if (!bends_init(&bends) || !gather(v, &stack, &bends))
        status = kvc_fail_nomem(err);
    else
        status = draw(&bends, out, err);
    bends_clear(&bends);
    kvc_stack_clear(&stack);
    return status;
}
