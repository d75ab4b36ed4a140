/* SPDX-License-Identifier: Apache-2.0
 * What replica.c (steps) and schedule.c (who runs) share. */
#ifndef KVC_SIM_REPLICA_H
#define KVC_SIM_REPLICA_H

#include "base/whole.h"
#include "sim/replay/engine.h"

/* SGLang's share of an output that room is kept for, before it falls with each decode step
 * (SGLANG_INIT_NEW_TOKEN_RATIO). */
#define KVC_OUTPUT_RATIO 0.7

void kvc_queue_push_back(struct kvc_engine *e, struct kvc_queue *q, uint32_t job);
void kvc_queue_push_front(struct kvc_engine *e, struct kvc_queue *q, uint32_t job);
/* behind KVC_NONE: in front. */
void kvc_queue_insert(struct kvc_engine *e, struct kvc_queue *q, uint32_t behind, uint32_t job);
void kvc_queue_remove(struct kvc_engine *e, struct kvc_queue *q, uint32_t job);

/* New pages that decoding takes at the starts of the steps after from finished steps, up to the
 * one that makes to finished steps. */
uint64_t kvc_replica_page_demand(const struct kvc_engine *e, const struct kvc_replica *r,
                                 uint64_t from, uint64_t to);
/* The pool acts for those who decode. */
void kvc_replica_for_decoding(struct kvc_engine *e, struct kvc_replica *r);
/* Steps that have ended before now. */
uint64_t kvc_replica_finished(const struct kvc_engine *e, const struct kvc_replica *r);
/* Pages taken and blocks published as of the start of step s. */
void kvc_replica_catch_up_to(struct kvc_engine *e, struct kvc_replica *r, uint64_t s);
/* The job decodes from the step after r->steps on. */
void kvc_replica_join_decode(struct kvc_engine *e, struct kvc_replica *r, uint32_t job);
/* Ends a job's part in the decode batch; its c, known and generated become current. */
void kvc_replica_leave_decode(struct kvc_engine *e, struct kvc_replica *r, uint32_t job);

/* misses.c: the request's hits, and a cause for every token that missed, counted once. */
void kvc_replica_account_hit(struct kvc_engine *e, struct kvc_replica *r, uint32_t job,
                             const struct kvc_reach *reach);

/* waiting.c */
enum kvc_status kvc_replica_set_order(struct kvc_engine *e, struct kvc_replica *r,
                                      struct kvc_error *err);
/* Into the waiting queue, where its priority and rank put it, behind its equals, or, when it comes
 * back preempted, where the scenario's rule says; true: somebody is before it. */
bool kvc_replica_join_queue(struct kvc_engine *e, struct kvc_replica *r, uint32_t job, bool back);
/* A request that was on the way is in the queue, as above; the first n of the unheard are. */
bool kvc_replica_hear(struct kvc_engine *e, struct kvc_replica *r, uint32_t job);
void kvc_replica_hear_unheard(struct kvc_engine *e, struct kvc_replica *r, uint32_t n);
/* Who is looked at next, of a queue that is not empty; first: in this step. */
uint32_t kvc_replica_next(struct kvc_engine *e, struct kvc_replica *r, bool first);
/* Where there is an order, it learns that the job left the queue, or ended. */
void kvc_replica_order_admitted(struct kvc_engine *e, struct kvc_replica *r, uint32_t job,
                                const struct kvc_reach *reach);
void kvc_replica_order_ended(struct kvc_engine *e, struct kvc_replica *r, uint32_t job);

/* pipeline.c: how long after the end of the mixed step that starts each of its jobs is through. */
void kvc_replica_note_late(struct kvc_engine *e, struct kvc_replica *r, uint32_t n_decode,
                           uint64_t context, uint32_t sampled);

/* schedule.c */
void kvc_replica_schedule(struct kvc_engine *e, struct kvc_replica *r);
/* Whether a request that came back after a preemption lacks no more than its last sampled token: it
 * decodes like the others; all else that a running one lacks is a prefill chunk. */
bool kvc_job_decodes(const struct kvc_engine *e, const struct kvc_job *j);
/* Publishes the job's blocks that tokens computed or scheduled tokens fill. */
void kvc_job_publish(struct kvc_engine *e, struct kvc_replica *r, uint32_t job, uint64_t tokens);
void kvc_job_release(struct kvc_engine *e, struct kvc_replica *r, uint32_t job);
void kvc_job_set_computed(struct kvc_engine *e, struct kvc_replica *r, uint32_t job,
                          uint32_t computed);

#endif
