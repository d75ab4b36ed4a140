/* SPDX-License-Identifier: Apache-2.0
 * A policy in a cache of an engine: blocks come in, are used, held and evicted at times of the
 * engine's own, where a cache of runs (runs.h) does all of it as a request arrives. docs/replay.md
 * says what the policy is told when.
 *
 * The engine's cache keeps what is where; this keeps the order in which it goes. Blocks are those
 * of a segment, [lo, hi), told of deepest first wherever several segments are. */
#ifndef KVC_POLICIES_ORDER_H
#define KVC_POLICIES_ORDER_H

#include "policies/eviction/runs.h"

struct kvc_order_use {
    uint32_t tenant; /* KVC_ID_NONE without */
    uint32_t whose;  /* for the choice of whose blocks go */
    uint64_t now_ns;
};

/* As kvc_runs_create and with its errors; left is called while blocks go. kvc_runs_destroy ends it,
 * kvc_runs_error tells what became of it. */
struct kvc_runs *kvc_order_create(const struct kvc_runs_setup *setup);

/* A request is admitted for the first time. in_use: blocks of the cache that are taken. */
void kvc_order_arrive(struct kvc_runs *order, const struct kvc_runs_request *request,
                      uint64_t in_use);
/* All is told of what came in, or may go again: blocks may leave. */
void kvc_order_rest(struct kvc_runs *order, uint64_t in_use);
/* What is told up to the next turn belongs together, and is deepest first. */
void kvc_order_turn(struct kvc_runs *order);
/* Blocks that it does not know come in; those it knows are touched, again: by a request that has
 * touched them before. */
enum kvc_order_kind { KVC_ORDER_USE, KVC_ORDER_COME, KVC_ORDER_AGAIN };
void kvc_order_use(struct kvc_runs *order, uint32_t seg, uint32_t lo, uint32_t hi,
                   enum kvc_order_kind kind, const struct kvc_order_use *use);
/* Blocks, as far as it knows them, may not go, or may again. */
void kvc_order_hold(struct kvc_runs *order, uint32_t seg, uint32_t lo, uint32_t hi, bool held);
/* Makes want blocks leave, fewer where the rule has to be asked again, more where it takes more at
 * once; of allowed tenants, unless all are, one. For a newcomer whose deepest block is given
 * (UINT32_MAX: none in particular). Returns how many left; 0: there is none, or it failed. */
uint64_t kvc_order_evict(struct kvc_runs *order, uint32_t want, const bool *allowed,
                         uint32_t newcomer_seg, uint32_t newcomer_hi);
/* Blocks left for another reason; left is not called. */
void kvc_order_forget(struct kvc_runs *order, uint32_t seg, uint32_t lo, uint32_t hi);
/* For checks: how many of them it knows, and how many of these may go. */
uint32_t kvc_order_known(const struct kvc_runs *order, uint32_t seg, uint32_t lo, uint32_t hi,
                         uint32_t *free);

#endif
