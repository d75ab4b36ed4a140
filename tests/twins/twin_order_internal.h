/* SPDX-License-Identifier: Apache-2.0
 * What the rules of the slow replay's eviction policies are made of: blocks in lists by the time of
 * putting, of which the oldest is looked for. A rule gives what differs from that. */
#ifndef KVC_TESTS_TWIN_ORDER_INTERNAL_H
#define KVC_TESTS_TWIN_ORDER_INTERNAL_H

#include "tests/twins/twin_order.h"

#define ORDER_LISTS 101

struct order_block {
    bool known, visited;
    uint8_t list;           /* 0: in none; ghosts are in one, unknown */
    uint64_t put;           /* when, for the order of lists */
    uint32_t count;         /* touches since it came, or what the policy makes of them */
    uint64_t key, born, at_ns;
    uint64_t asked, when[2]; /* by how many requests, and the last two */
    uint32_t sketch;
};

struct order_session {
    bool live;
    uint32_t leaf, asked; /* leaf: of the last prompt; asked: by which request */
    uint64_t back_ns, last_ns, sum_ns, pauses;
};

struct order_rule {
    const char *name;
    void (*start)(struct twin_order *o);
    void (*ask)(struct twin_order *o, uint32_t n); /* of the prompt's blocks, the deepest first */
    void (*arrive)(struct twin_order *o, const struct req *r); /* after that */
    void (*rest)(struct twin_order *o); /* something came in or was let go of */
    void (*come)(struct twin_order *o, uint32_t n, uint8_t was); /* NULL: to list 1 */
    void (*use)(struct twin_order *o, uint32_t n);   /* NULL: to the end of its list */
    void (*again)(struct twin_order *o, uint32_t n); /* NULL: the same */
    void (*told)(struct twin_order *o, uint32_t n, bool counts); /* after each of these three */
    void (*gone)(struct twin_order *o, uint32_t n);
    void (*evict)(struct twin_order *o); /* or .. */
    bool (*before)(const struct twin_order *o, uint32_t a, uint32_t b); /* .. the first goes */
};

struct twin_order {
    const struct twin *tw;
    const struct order_rule *rule;
    const char *spec;
    uint64_t capacity, clock, request, size, in_use, count[ORDER_LISTS + 1];
    struct order_block *b;
    uint32_t *gone, n_gone;
    order_may_go may_go;
    const void *user;
    bool one; /* block by block, for tenants have limits */
    uint32_t hand, *table, hole, newcomer, tenant;
    uint64_t rng, floor, counted, small, ghosts, now_ns;
    double target;
    uint64_t nodes;      /* radix: given out so far */
    uint32_t last_come;  /* what was told last, if it came in */
    bool matched;        /* something of this turn was there */
    struct order_session *session;
    uint32_t n_sessions;
    uint64_t sum_ns, pauses;
    bool awaits; /* not all that was taken as the request arrived held known blocks */
};

extern const struct order_rule order_counts[], order_queues[], order_trees[], order_learned[];

double order_option(const struct twin_order *o, const char *name, double otherwise);
uint64_t order_part(uint64_t of, double share);
static inline uint64_t order_at_least_one(uint64_t n)
{
    return n ? n : 1;
}

void order_take(struct twin_order *o, uint32_t n);
void order_put(struct twin_order *o, uint8_t list, uint32_t n);
void order_stay(struct twin_order *o, uint32_t n); /* for use and again: nothing happens */
bool order_may(const struct twin_order *o, uint32_t n); /* known, and may go */
/* The oldest of a list after a time; of those that may go, if that is asked. */
uint32_t order_oldest(const struct twin_order *o, uint8_t list, uint64_t after, bool free);
void order_trim(struct twin_order *o, uint8_t list, uint64_t most);
static inline uint32_t order_either(uint32_t first, uint32_t second)
{
    return first != TWIN_NONE ? first : second;
}
/* Leaves, to a list of ghosts, 0: none. Nothing happens to TWIN_NONE. */
void order_leave(struct twin_order *o, uint32_t n, uint8_t ghosts);
uint32_t order_least(const struct twin_order *o,
                     bool (*before)(const struct twin_order *o, uint32_t a, uint32_t b));
static inline bool order_by_put(const struct twin_order *o, uint32_t a, uint32_t b)
{
    return o->b[a].put < o->b[b].put;
}
bool order_lies_below(const struct twin_order *o, uint32_t n, uint32_t top); /* or is it */
bool order_leaf(const struct twin_order *o, uint32_t n); /* may go, and nothing known is below */
#endif
