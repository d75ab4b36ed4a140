/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/twins/block_internal.h"

#include <math.h>

/* ---- time ---- */

static void expire(struct block_cache *c)
{
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->resident[b] && c->since[b] + (uint64_t)option(c, "ttl", 300e9) <= c->now_ns) {
            take(c, b);
            c->expiring = true;
            gone(c, b);
            c->expiring = false;
        }
}

/* The oldest of list 1 makes room; keep: a resident block stays where it is. */
static void queued(struct block_cache *c, uint32_t b, bool keep)
{
    if (c->resident[b] && keep)
        return;
    if (c->resident[b]) {
        take(c, b);
    } else {
        if (c->size == c->capacity) {
            uint32_t v = c->tail[1];
            take(c, v);
            gone(c, v);
        }
        come(c, b);
    }
    c->since[b] = c->now_ns;
    push(c, 1, b);
}

static void ttl(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    queued(c, b, false);
}

static void ttlfixed(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    queued(c, b, true);
}

/* ---- priorities ---- */

static void lruk_refused(struct block_cache *c, uint32_t b)
{
    uint64_t *touched = c->touched + 16 * b;
    memmove(touched + 1, touched, 15 * sizeof(*touched));
    touched[0] = c->clock;
}

static void lruk(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    if (!c->resident[b]) {
        if (c->size == c->capacity)
            gone(c, heap_pop(c));
        come(c, b);
    }
    lruk_refused(c, b);
    uint64_t *touched = c->touched + 16 * b;
    heap_put(c, b, touched[(int)option(c, "k", 2) - 1], c->clock);
}

static void gdsf(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    if (!c->resident[b]) {
        if (c->size == c->capacity) {
            uint32_t v = heap_pop(c);
            c->floor = c->last[v];
            gone(c, v);
        }
        c->freq[b] = 0;
        come(c, b);
    }
    c->last[b] = c->floor + ++c->freq[b];
    heap_put(c, b, c->last[b], c->clock);
}

static void hyperbolic(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    if (!c->resident[b]) {
        uint32_t v = NONE;
        for (uint32_t i = 0; c->size == c->capacity && i < c->n_blocks; i++) {
            if (!c->resident[i])
                continue;
            if (v == NONE) {
                v = i;
                continue;
            }
            /* counts and ages of a test are small enough for these to be told apart exactly */
            double x = c->freq[i] / (double)(c->request + 1 - c->born[i]);
            double y = c->freq[v] / (double)(c->request + 1 - c->born[v]);
            if (x < y || (x == y && c->last[i] < c->last[v]))
                v = i;
        }
        if (v != NONE)
            gone(c, v);
        c->freq[b] = 0;
        c->born[b] = c->request;
        come(c, b);
    }
    c->freq[b]++;
    c->last[b] = c->clock;
}

/* ---- watermark: batches of list 1 ---- */

static void evict_batch(struct block_cache *c)
{
    double used = (double)c->size / (double)c->capacity;
    double high = option(c, "high", 0.9), batch = option(c, "batch", 0.05);
    /* no count of a test is so near a whole number that rounding could matter */
    double n = ceil((double)c->size * (batch + fmax(0, used - high)) - 1e-9);
    for (; n > 0 && c->size; n--) {
        uint32_t v = c->tail[1];
        take(c, v);
        gone(c, v);
    }
}

static void watermark_arrive(struct block_cache *c)
{
    if ((double)c->size > option(c, "high", 0.9) * (double)c->capacity + 1e-9)
        evict_batch(c);
}

static void watermark(struct block_cache *c, uint32_t b, uint32_t at)
{
    if (!c->resident[b] && c->size == c->capacity)
        evict_batch(c);
    ttl(c, b, at);
}

/* ---- wtinylfu: 1 window, 2 probation, 3 protected ---- */

static void wtinylfu_arrive(struct block_cache *c)
{
    for (uint32_t i = 0; i < c->length; i++) {
        uint8_t *asked = &c->asked[c->path[i]];
        if (*asked < 15)
            ++*asked;
        c->counted++;
    }
    if ((double)c->counted < option(c, "sample", 10) * (double)c->capacity)
        return;
    c->counted /= 2;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        c->asked[b] >>= 1;
}

static void wtinylfu(struct block_cache *c, uint32_t b, uint32_t at)
{
    uint64_t window = at_least_one(part((double)c->capacity, option(c, "window", 0.01)));
    uint64_t safe = part((double)(c->capacity - window), option(c, "protected", 0.8));
    (void)at;
    if (c->resident[b]) {
        uint8_t list = c->which[b];
        take(c, b);
        push(c, list == 1 ? 1 : 3, b);
        if (c->count[3] > safe) {
            uint32_t back = c->tail[3];
            take(c, back);
            push(c, 2, back);
        }
        return;
    }
    come(c, b);
    push(c, 1, b);
    if (c->count[1] <= window)
        return;
    uint32_t out = c->tail[1], v = c->count[2] ? c->tail[2] : c->tail[3];
    take(c, out);
    if (c->size <= c->capacity) {
        push(c, 2, out);
    } else if (v != NONE && c->asked[out] > c->asked[v]) {
        take(c, v);
        gone(c, v);
        push(c, 2, out);
    } else {
        gone(c, out);
    }
}

/* ---- whole paths: born is a block's node, since its last touch ---- */

/* Of the nodes that no block hangs on and the request doesn't pass, the one untouched for
 * longest. */
static uint64_t oldest_node(const struct block_cache *c)
{
    uint64_t node = 0, when = NEVER;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        bool leaf = c->resident[b] && c->since[b] < when;
        for (uint32_t i = 0; leaf && i < c->n_blocks; i++) {
            if (!c->resident[i])
                continue;
            bool same = c->born[i] == c->born[b];
            leaf = same ? !on_path(c, i)
                        : c->parent[i] == NONE || c->born[c->parent[i]] != c->born[b];
        }
        if (leaf) {
            node = c->born[b];
            when = c->since[b];
        }
    }
    return node;
}

static void radix(struct block_cache *c)
{
    uint32_t run = leading(c);
    for (uint32_t i = 0; i < run; i++)
        c->since[c->path[i]] = c->request;
    uint64_t cut = run ? c->born[c->path[run - 1]] : 0, rest = ++c->nodes;
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->resident[b] && c->born[b] == cut && c->place[b] >= run)
            c->born[b] = rest;
    uint32_t end = c->limit;
    while (end > run && end < c->length && c->log->segment_end[c->path[end - 1]] != end)
        end--; /* segments are stored as a whole */
    if (end > c->capacity || end <= run)
        return;
    while (c->size + end - run > c->capacity) {
        uint64_t node = oldest_node(c);
        for (uint32_t b = 0; b < c->n_blocks; b++)
            if (c->resident[b] && c->born[b] == node)
                gone(c, b);
    }
    c->nodes++;
    for (uint32_t i = run; i < end; i++) {
        come(c, c->path[i]);
        c->born[c->path[i]] = c->nodes;
        c->since[c->path[i]] = c->request;
    }
}

static uint64_t worth(const struct block_cache *c, uint32_t b)
{
    return c->last[b] + c->freq[b] * ((uint64_t)option(c, "tokens", 32768) + c->place[b]);
}

static uint32_t least_leaf(const struct block_cache *c)
{
    uint32_t v = NONE;
    for (uint32_t b = 0; b < c->n_blocks; b++) {
        bool leaf = c->resident[b] && !on_path(c, b);
        for (uint32_t i = 0; leaf && i < c->n_blocks; i++)
            leaf = !c->resident[i] || c->parent[i] != b;
        if (leaf && (v == NONE || worth(c, b) < worth(c, v) ||
                     (worth(c, b) == worth(c, v) && c->since[b] < c->since[v])))
            v = b;
    }
    return v;
}

static void costaware(struct block_cache *c)
{
    uint32_t run = leading(c);
    for (uint32_t i = 0; i < c->length; i++) {
        uint32_t b = c->path[i];
        if (i >= run) {
            if (i >= c->limit)
                return;
            if (c->size == c->capacity) {
                uint32_t v = least_leaf(c);
                if (v == NONE)
                    return;
                if (worth(c, v) > c->floor)
                    c->floor = worth(c, v);
                gone(c, v);
            }
            come(c, b);
            c->freq[b] = 0;
        }
        c->freq[b]++;
        c->last[b] = c->floor;
        c->since[b] = c->request;
    }
}

const struct block_policy block_policies_more[] = {
    {"ttl", ttl, expire, NULL, NULL},
    {"ttlfixed", ttlfixed, expire, NULL, NULL},
    {"lruk", lruk, NULL, NULL, lruk_refused},
    {"gdsf", gdsf, NULL, NULL, NULL},
    {"hyperbolic", hyperbolic, NULL, NULL, NULL},
    {"wtinylfu", wtinylfu, wtinylfu_arrive, NULL, NULL},
    {"watermark", watermark, watermark_arrive, NULL, NULL},
    {"radix", NULL, NULL, radix, NULL},
    {"costaware", NULL, NULL, costaware, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
