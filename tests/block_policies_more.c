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

const struct block_policy block_policies_more[] = {
    {"ttl", ttl, expire, NULL},
    {"ttlfixed", ttlfixed, expire, NULL},
    {NULL, NULL, NULL, NULL},
};
