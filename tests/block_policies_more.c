/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/block_internal.h"

/* ---- time ---- */

static void expire(struct block_cache *c)
{
    for (uint32_t b = 0; b < c->n_blocks; b++)
        if (c->resident[b] && c->since[b] + c->ttl_ns <= c->now_ns) {
            take(c, b);
            gone(c, b);
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

static void lruk(struct block_cache *c, uint32_t b, uint32_t at)
{
    (void)at;
    if (!c->resident[b]) {
        if (c->size == c->capacity)
            gone(c, heap_pop(c));
        come(c, b);
    }
    c->before_last[b] = c->last[b];
    c->last[b] = c->clock;
    heap_put(c, b, c->before_last[b], c->clock);
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

const struct block_policy block_policies_more[] = {
    {"ttl", ttl, expire, NULL},
    {"ttlfixed", ttlfixed, expire, NULL},
    {"lruk", lruk, NULL, NULL},
    {"gdsf", gdsf, NULL, NULL},
    {"hyperbolic", hyperbolic, NULL, NULL},
    {NULL, NULL, NULL, NULL},
};
