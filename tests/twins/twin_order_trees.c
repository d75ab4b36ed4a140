/* SPDX-License-Identifier: Apache-2.0
 * Policies of the slow replay that go by what lies below a block. */
#include "tests/twins/twin_order_internal.h"

/* ---- radix: key is the node of the tree ---- */

/* A block is of the node of the one below it when that came in just before. */
static void radix_come(struct twin_order *o, uint32_t n, uint8_t was)
{
    bool same = o->last_come != TWIN_NONE && o->tw->node_parent[o->last_come] == n;

    (void)was;
    o->b[n].key = same ? o->b[o->last_come].key : ++o->nodes;
    o->last_come = n;
    order_put(o, 1, n);
}

/* A node ends with the deepest block that was there, and where newcomers are cut in. */
static void radix_use(struct twin_order *o, uint32_t n)
{
    uint64_t node = o->b[n].key;

    if (!o->matched || o->last_come != TWIN_NONE) {
        o->nodes++;
        for (uint32_t m = 0; m < o->tw->n_nodes; m++)
            if (m != n && o->b[m].known && o->b[m].key == node && order_lies_below(o, m, n))
                o->b[m].key = o->nodes;
    }
    o->matched = true;
    o->last_come = TWIN_NONE;
    order_put(o, 1, n);
}

static void radix_again(struct twin_order *o, uint32_t n)
{
    o->last_come = TWIN_NONE;
    order_put(o, 1, n);
}

static uint32_t oldest_leaf(const struct twin_order *o)
{
    uint32_t best = TWIN_NONE;

    for (uint32_t n = 0; n < o->tw->n_nodes; n++)
        if (order_leaf(o, n) && (best == TWIN_NONE || o->b[n].put < o->b[best].put))
            best = n;
    return best;
}

static void radix(struct twin_order *o)
{
    uint32_t n = oldest_leaf(o), up;

    if (n == TWIN_NONE)
        order_leave(o, order_oldest(o, 1, 0, true), 0);
    for (; n != TWIN_NONE; n = up) {
        order_leave(o, n, 0);
        up = o->tw->node_parent[n];
        if (o->one || up == TWIN_NONE || o->b[up].key != o->b[n].key || !order_leaf(o, up))
            return;
    }
}

/* ---- costaware: key is the floor at the last use ---- */

static void costaware_told(struct twin_order *o, uint32_t n, bool counts)
{
    if (counts)
        o->b[n].key = o->floor;
}

static uint64_t value(const struct twin_order *o, uint32_t n)
{
    uint64_t twice = (uint64_t)order_option(o, "tokens", 32768) / o->tw->B;

    return o->b[n].key + o->b[n].count * (order_at_least_one(twice) + o->tw->node_depth[n]);
}

static bool by_value(const struct twin_order *o, uint32_t a, uint32_t b)
{
    uint64_t x = value(o, a), y = value(o, b);

    if (order_leaf(o, a) != order_leaf(o, b))
        return order_leaf(o, a);
    return x != y && order_leaf(o, a) ? x < y : o->b[a].put < o->b[b].put;
}

static void costaware(struct twin_order *o)
{
    uint32_t n = order_least(o, by_value);

    if (n != TWIN_NONE && order_leaf(o, n) && value(o, n) > o->floor)
        o->floor = value(o, n);
    order_leave(o, n, 0);
}

/* ---- priority: lists are levels + 1, key the order of releases ---- */

/* Levels that end, in the order of the releases. */
static void priority_arrive(struct twin_order *o, const struct req *r)
{
    uint64_t duration = (uint64_t)order_option(o, "duration", 0) * 1000000; /* tests write ms */

    (void)r;
    for (uint32_t due = 0; duration && due != TWIN_NONE;) {
        due = TWIN_NONE;
        for (uint32_t n = 0; n < o->tw->n_nodes; n++)
            if (o->b[n].known && o->b[n].list != 36 &&
                o->tw->now - o->b[n].at_ns >= duration &&
                (due == TWIN_NONE || o->b[n].key < o->b[due].key))
                due = n;
        if (due != TWIN_NONE)
            order_put(o, 36, due);
    }
}

static uint8_t level(const struct twin_order *o, uint32_t n)
{
    bool head = (double)o->tw->node_depth[n] * o->tw->B < order_option(o, "head", 1024);
    bool theirs = o->tenant == (uint32_t)order_option(o, "tenant", 4294967295.0) &&
                  o->tenant != KVC_ID_NONE;

    return (uint8_t)(1 + (head     ? order_option(o, "headlevel", 80)
                          : theirs ? order_option(o, "tenantlevel", 60)
                                   : order_option(o, "level", 35)));
}

static void priority_told(struct twin_order *o, uint32_t n, bool counts)
{
    if (counts)
        order_put(o, level(o, n), n);
    o->b[n].at_ns = o->tw->now;
    o->b[n].key = ++o->clock; /* of the release */
}

static bool all_below_may_go(const struct twin_order *o, uint32_t n)
{
    for (uint32_t m = 0; m < o->tw->n_nodes; m++)
        if (o->b[m].known && order_lies_below(o, m, n) && !order_may(o, m))
            return false;
    return true;
}

static void priority(struct twin_order *o)
{
    for (uint8_t list = 1; list <= ORDER_LISTS; list++)
        for (uint32_t n = order_oldest(o, list, 0, false), m; n != TWIN_NONE;
             n = order_oldest(o, list, o->b[n].put, false)) {
            if (!all_below_may_go(o, n))
                continue;
            do { /* released longest ago first, and it last */
                m = n;
                for (uint32_t other = 0; other < o->tw->n_nodes; other++)
                    if (other != n && o->b[other].known && order_lies_below(o, other, n) &&
                        (m == n || o->b[other].key < o->b[m].key))
                        m = other;
                order_leave(o, m, 0);
            } while (m != n && !o->one);
            return;
        }
    for (uint8_t list = 1; list <= ORDER_LISTS && !o->n_gone; list++)
        order_leave(o, order_oldest(o, list, 0, true), 0); /* alone: below each something is held */
}

const struct order_rule order_trees[] = {
    {.name = "radix", .come = radix_come, .use = radix_use, .again = radix_again, .evict = radix},
    {.name = "costaware", .told = costaware_told, .evict = costaware},
    {.name = "priority", .arrive = priority_arrive, .told = priority_told, .evict = priority},
    {.name = NULL},
};
