/* SPDX-License-Identifier: Apache-2.0
 * Who of those that wait at a replica is admitted next, where an order of requests says it
 * (policies/ordering); without one it is the front of the queue. docs/replay.md has the rules. */
#include "sim/replay/replica.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "policies/ordering/rules.h"

/* In the order of a walk over the forest; parents come before children. */
static bool number_segments(struct kvc_engine *e)
{
    const struct kvc_trace *t = e->trace;
    uint32_t *number = e->seg_number, *end = e->seg_end, roots = 0;
    if (number)
        return true;
    e->seg_number = number = kvc_malloc(t->n_segments, sizeof(*number));
    e->seg_end = end = kvc_calloc(t->n_segments, sizeof(*end));
    if (!number || !end)
        return false;
    for (uint32_t s = t->n_segments; s-- > 0;) { /* end: how many are below, and itself */
        end[s]++;
        if (t->seg_parent[s] != KVC_SEG_NONE)
            end[t->seg_parent[s]] += end[s];
    }
    for (uint32_t s = 0; s < t->n_segments; s++) { /* then the next child's number */
        uint32_t *next = t->seg_parent[s] == KVC_SEG_NONE ? &roots : &end[t->seg_parent[s]];
        uint32_t size = end[s];
        number[s] = *next;
        *next += size;
        end[s] = number[s] + 1;
    }
    return true; /* the last child's end is its parent's */
}

enum kvc_status kvc_replica_set_order(struct kvc_engine *e, struct kvc_replica *r,
                                      struct kvc_error *err)
{
    const struct kvc_trace *t = e->trace;
    const char *spec = e->sc->engine.order;
    if (!spec[0] || kvc_name_equal(spec, "fcfs"))
        return KVC_OK;
    const struct kvc_hosted_setup setup = {
        .spec = spec, .n_tenants = e->tenants.n, .n_segments = t->n_segments,
        .block_tokens = e->block_tokens, .seg_len = t->seg_len, .seg_depth = t->seg_depth,
        .seg_parent = t->seg_parent,
        .capacity = e->block_tokens ? r->pool.pages * e->page_tokens / e->block_tokens : 0,
    };
    enum kvc_status st = kvc_ordering_create(&r->order, setup, err);
    if (st == KVC_OK)
        r->ranks_change = !(r->order->ops->flags & KVC_ORDERING_ONCE);
    if (st == KVC_OK && r->order->ops->flags & KVC_ORDERING_PREFIX && !number_segments(e))
        st = kvc_fail_nomem(err);
    return st;
}

static uint32_t generated(const struct kvc_engine *e, const struct kvc_replica *r,
                          const struct kvc_job *j)
{
    return j->decoding ? (uint32_t)(j->base + (int64_t)kvc_replica_finished(e, r)) + 1 - j->input
                       : j->generated;
}

static struct kvc_waiting seen(const struct kvc_engine *e, const struct kvc_replica *r,
                               const struct kvc_job *j, const struct kvc_reach *reach)
{
    const struct kvc_trace *t = e->trace;
    struct kvc_waiting w = {
        .index = j->request, .arrived_ns = e->results[j->request].arrival_ns,
        .session = t->session ? t->session[j->request] : KVC_NO_ID, .tenant = j->tenant,
        .priority = j->priority, .segment = t->prompt_seg[j->request], .input_tokens = j->input,
        .generated_tokens = generated(e, r, j), .waiting = r->waiting.n, .again = j->admitted,
        .waits = j->waits,
    };
    if (r->order->ops->flags & KVC_ORDERING_ORACLE)
        w.output_tokens = j->output;
    if (reach && r->order->ops->flags & KVC_ORDERING_PREFIX) {
        w.hit_tokens = reach->usable;
        w.hit_tokens_any = reach->tokens > reach->usable ? reach->tokens : reach->usable;
    }
    return w;
}

static void heed(struct kvc_engine *e, const struct kvc_replica *r)
{
    e->nomem |= r->order->hosted.failed; /* engine.c asks it why */
}

static void tell(struct kvc_engine *e, struct kvc_replica *r, const struct kvc_job *j,
                 uint32_t hook, const struct kvc_reach *reach, uint32_t tokens)
{
    const struct kvc_waiting w = seen(e, r, j, reach);
    kvc_ordering_tell(r->order, hook, e->now, &w, tokens);
    heed(e, r);
}

static void tell_served(struct kvc_engine *e, struct kvc_replica *r, struct kvc_job *j)
{
    uint32_t now = generated(e, r, j);
    if (now > j->told)
        tell(e, r, j, KVC_HOOK_SERVED, NULL, now - j->told);
    j->told = now;
}

/* Of all that run, up to the last step that has ended. */
static void tell_all_served(struct kvc_engine *e, struct kvc_replica *r)
{
    for (uint32_t job = r->running.head; r->order->ops->served && job != KVC_NONE;
         job = e->jobs[job].next)
        tell_served(e, r, &e->jobs[job]);
}

/* ---- what they would find ---- */

/* Those for whom a pool, looked up from block from on, changed on their path no longer know. */
static void forget_changed(struct kvc_engine *e, struct kvc_replica *r,
                           const struct kvc_pool_changes *c, uint64_t *heeded, bool hbm)
{
    const struct kvc_trace *t = e->trace;
    struct { uint32_t number, end, depth; } at[KVC_POOL_CHANGES];
    uint64_t n = c->n - *heeded;
    bool all = n > KVC_POOL_CHANGES;
    for (uint64_t i = 0; !all && i < n; i++) {
        uint32_t s = c->at[(*heeded + i) % KVC_POOL_CHANGES].seg;
        at[i].number = e->seg_number[s];
        at[i].end = e->seg_end[s];
        at[i].depth = t->seg_depth[s] + c->at[(*heeded + i) % KVC_POOL_CHANGES].lo;
    }
    *heeded = c->n;
    for (uint32_t job = n ? r->waiting.head : KVC_NONE; job != KVC_NONE; job = e->jobs[job].next) {
        struct kvc_job *j = &e->jobs[job];
        if (!j->found.known || j->leaf == KVC_SEG_NONE)
            continue;
        uint32_t leaf = e->seg_number[j->leaf], to = hbm ? j->found.hbm : j->found.total;
        for (uint64_t i = 0; !all && i < n && j->found.known; i++)
            j->found.known = leaf < at[i].number || leaf >= at[i].end || at[i].depth > to;
        j->found.known &= !all;
        r->unranked |= !j->found.known;
    }
}

static void heed_changes(struct kvc_engine *e, struct kvc_replica *r)
{
    if (!(r->order->ops->flags & KVC_ORDERING_PREFIX))
        return;
    forget_changed(e, r, &r->pool.changes, &r->heeded[0], true);
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++)
        if (e->tiers[t].config->present)
            forget_changed(e, r, &e->tiers[t].pools[kvc_tier_instance(e, &e->tiers[t], r)].changes,
                           &r->heeded[1 + t], false);
}

static struct kvc_reach find(struct kvc_engine *e, struct kvc_replica *r, struct kvc_job *j)
{
    if (!j->found.known) {
        struct kvc_reach reach;
        kvc_job_lookup(e, r, j, &reach);
        j->found.known = true;
        j->found.hbm = reach.hbm;
        j->found.total = reach.total;
        j->found.usable = reach.usable;
        j->found.any = reach.tokens;
    }
    return (struct kvc_reach){.usable = j->found.usable, .tokens = j->found.any};
}

static double rank_of(struct kvc_engine *e, struct kvc_replica *r, struct kvc_job *j)
{
    struct kvc_reach reach = {0};
    if (r->order->ops->flags & KVC_ORDERING_PREFIX)
        reach = find(e, r, j);
    const struct kvc_waiting w = seen(e, r, j, &reach);
    double rank = kvc_ordering_rank(r->order, e->now, &w);
    heed(e, r);
    return rank;
}

/* ---- queues ---- */

void kvc_queue_push_back(struct kvc_engine *e, struct kvc_queue *q, uint32_t job)
{
    e->jobs[job].prev = q->tail;
    e->jobs[job].next = KVC_NONE;
    *(q->tail == KVC_NONE ? &q->head : &e->jobs[q->tail].next) = job;
    q->tail = job;
    q->n++;
}

void kvc_queue_push_front(struct kvc_engine *e, struct kvc_queue *q, uint32_t job)
{
    e->jobs[job].next = q->head;
    e->jobs[job].prev = KVC_NONE;
    *(q->head == KVC_NONE ? &q->tail : &e->jobs[q->head].prev) = job;
    q->head = job;
    q->n++;
}

void kvc_queue_insert(struct kvc_engine *e, struct kvc_queue *q, uint32_t behind, uint32_t job)
{
    if (behind == q->tail) {
        kvc_queue_push_back(e, q, job);
    } else if (behind == KVC_NONE) {
        kvc_queue_push_front(e, q, job);
    } else {
        e->jobs[job].prev = behind;
        e->jobs[job].next = e->jobs[behind].next;
        e->jobs[e->jobs[job].next].prev = job;
        e->jobs[behind].next = job;
        q->n++;
    }
}

void kvc_queue_remove(struct kvc_engine *e, struct kvc_queue *q, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    *(j->prev == KVC_NONE ? &q->head : &e->jobs[j->prev].next) = j->next;
    *(j->next == KVC_NONE ? &q->tail : &e->jobs[j->next].prev) = j->prev;
    q->n--;
}

/* ---- the queue ---- */

static bool goes_before(const struct kvc_job *a, const struct kvc_job *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->place < b->place;
}

bool kvc_replica_join_queue(struct kvc_engine *e, struct kvc_replica *r, uint32_t job, bool back)
{
    struct kvc_job *j = &e->jobs[job];
    uint32_t at;
    if (r->order) {
        j->waits = true;
        j->found.known = false;
        r->unranked = true;
        if (back)
            tell_served(e, r, j);
        tell_all_served(e, r);
        tell(e, r, j, KVC_HOOK_ARRIVED, NULL, 0);
        j->place = r->ranks_change ? 0 : rank_of(e, r, j);
    }
    bool first = back && e->sc->engine.preempt == KVC_PREEMPT_LAST;
    if (back && e->fetches_early && !r->order)
        j->place = first ? 0 : (double)++e->comings;
    if (first) { /* before its equals */
        uint32_t next = r->waiting.head;
        for (at = KVC_NONE; next != KVC_NONE && goes_before(&e->jobs[next], j);
             next = e->jobs[next].next)
            at = next;
    } else {
        at = r->waiting.tail;
        while (at != KVC_NONE && goes_before(j, &e->jobs[at]))
            at = e->jobs[at].prev;
    }
    kvc_queue_insert(e, &r->waiting, at, job);
    return at != KVC_NONE && !r->ranks_change;
}

bool kvc_replica_hear(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    r->on_the_way--;
    return kvc_replica_join_queue(e, r, job, false);
}

void kvc_replica_hear_unheard(struct kvc_engine *e, struct kvc_replica *r, uint32_t n)
{
    while (n--) {
        uint32_t job = r->unheard.head;
        kvc_queue_remove(e, &r->unheard, job);
        kvc_replica_hear(e, r, job);
    }
}

uint32_t kvc_replica_next(struct kvc_engine *e, struct kvc_replica *r, bool first)
{
    uint32_t best = r->waiting.head, priority = e->jobs[best].priority;
    if (!r->ranks_change)
        return best;
    bool ask = first || r->order->ops->flags & KVC_ORDERING_EACH;
    bool all = !(r->order->ops->flags & KVC_ORDERING_STEADY) || r->ranked != r->waiting.n;
    if (first)
        tell_all_served(e, r);
    if (ask) {
        heed_changes(e, r);
        r->ranked = r->waiting.n;
        if (!all && !r->unranked)
            return r->front;
        r->unranked = false;
    }
    for (uint32_t job = best; job != KVC_NONE && !e->nomem; job = e->jobs[job].next) {
        struct kvc_job *j = &e->jobs[job];
        if (ask && (all || !j->found.known))
            j->rank = rank_of(e, r, j);
        if (j->priority == priority && j->rank < e->jobs[best].rank)
            best = job;
    }
    return r->front = best;
}

void kvc_replica_order_admitted(struct kvc_engine *e, struct kvc_replica *r, uint32_t job,
                                const struct kvc_reach *reach)
{
    e->jobs[job].waits = false;
    tell(e, r, &e->jobs[job], KVC_HOOK_ADMITTED, reach, 0);
}

void kvc_replica_order_ended(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    tell_served(e, r, &e->jobs[job]);
    tell(e, r, &e->jobs[job], KVC_HOOK_ENDED, NULL, 0);
}
