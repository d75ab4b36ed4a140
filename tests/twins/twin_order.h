/* SPDX-License-Identifier: Apache-2.0
 * Eviction policies of the slow replay, from docs/replay.md: told block by block, and each choice a
 * look at all blocks there are. Blocks are nodes. */
#ifndef KVC_TESTS_TWIN_ORDER_H
#define KVC_TESTS_TWIN_ORDER_H

#include "tests/twins/twin_internal.h"

struct twin_order;

enum order_kind { ORDER_USE, ORDER_COME, ORDER_AGAIN };

/* NULL for what the replay's own queues do: lru, fifo, ttl, ttlfixed. */
struct twin_order *twin_order_create(const struct twin *tw, const char *spec, uint64_t capacity);
void twin_order_destroy(struct twin_order *o);
/* It is admitted for the first time. */
void twin_order_arrive(struct twin_order *o, const struct req *r, uint64_t in_use);
/* What is told up to the next turn belongs together. NULL is fine. */
void twin_order_turn(struct twin_order *o);
/* Blocks came in or were let go of, and tenants have no limits: those that leave are in what
 * follows, in order; returns how many. may_go: whether a node may leave. */
typedef bool (*order_may_go)(const void *user, uint32_t node);
uint32_t twin_order_rest(struct twin_order *o, uint64_t in_use, order_may_go may_go,
                         const void *user, const uint32_t **gone);
void twin_order_use(struct twin_order *o, uint32_t node, uint32_t tenant, enum order_kind kind);
void twin_order_forget(struct twin_order *o, uint32_t node);
/* The blocks that leave now, one where tenants have limits. newcomer: for whom, TWIN_NONE: nobody
 * in particular. */
uint32_t twin_order_evict(struct twin_order *o, uint32_t newcomer, bool one,
                          order_may_go may_go, const void *user, const uint32_t **gone);
bool twin_is(const char *spec, const char *name); /* a policy, whatever its options */
static inline bool twin_is_fifo(const char *spec)
{
    return twin_is(spec, "fifo") || twin_is(spec, "ttlfixed");
}
static inline uint32_t twin_named(const struct twin *tw, uint32_t tenant)
{
    return tw->trace->tenant && tenant < tw->trace->n_tenants ? tenant : KVC_ID_NONE;
}
uint64_t twin_policy_ttl(const char *spec); /* of ttl and ttlfixed; 0: none */
#endif
