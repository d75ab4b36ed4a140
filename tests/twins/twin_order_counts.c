/* SPDX-License-Identifier: Apache-2.0
 * Policies of the slow replay that take the least of all blocks by some figure. */
#include "tests/twins/twin_order_internal.h"

static bool by_count(const struct twin_order *o, uint32_t a, uint32_t b)
{
    const struct order_block *x = &o->b[a], *y = &o->b[b];

    return x->count != y->count ? x->count < y->count : x->put < y->put;
}

static bool by_key(const struct twin_order *o, uint32_t a, uint32_t b)
{
    const struct order_block *x = &o->b[a], *y = &o->b[b];

    return x->key != y->key ? x->key < y->key : x->put < y->put;
}

static bool by_depth(const struct twin_order *o, uint32_t a, uint32_t b)
{
    uint32_t x = o->tw->node_depth[a], y = o->tw->node_depth[b];

    return x != y ? x > y : o->b[a].put < o->b[b].put;
}

static bool by_rate(const struct twin_order *o, uint32_t a, uint32_t b)
{
    uint64_t x = o->b[a].count * (o->request - o->b[b].born + 1);
    uint64_t y = o->b[b].count * (o->request - o->b[a].born + 1);

    return x != y ? x < y : o->b[a].put < o->b[b].put;
}

static void plfu_told(struct twin_order *o, uint32_t n, bool counts)
{
    if (counts)
        o->b[n].count = (uint32_t)o->b[n].asked;
}

static void lruk_told(struct twin_order *o, uint32_t n, bool counts)
{
    if (counts)
        o->b[n].key = o->b[n].when[1];
}

static void gdsf_told(struct twin_order *o, uint32_t n, bool counts)
{
    if (counts)
        o->b[n].key = o->floor + o->b[n].count;
}

static void gdsf(struct twin_order *o)
{
    uint32_t n = order_least(o, by_key);

    if (n != TWIN_NONE && o->b[n].key > o->floor)
        o->floor = o->b[n].key;
    order_leave(o, n, 0);
}

const struct order_rule order_counts[] = {
    {.name = "lfu", .before = by_count},
    {.name = "plfu", .before = by_count, .told = plfu_told},
    {.name = "lruk", .before = by_key, .told = lruk_told},
    {.name = "gdsf", .evict = gdsf, .told = gdsf_told},
    {.name = "lenaware", .before = by_depth},
    {.name = "hyperbolic", .before = by_rate},
    {.name = NULL},
};
