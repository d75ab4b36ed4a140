/* SPDX-License-Identifier: Apache-2.0
 * One engine instance: accounts the step that ended, schedules the next (schedule.c decides what
 * runs), and jumps over stretches of pure decode. */
#include "sim/replay/replica.h"

#include "base/alloc.h"

#include <string.h>

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

/* ---- heaps of things that happen at a step ---- */

static bool before(const struct kvc_step_entry *a, const struct kvc_step_entry *b)
{
    return a->step != b->step ? a->step < b->step : a->order < b->order;
}

static bool heap_push(struct kvc_step_heap *h, struct kvc_step_entry entry)
{
    if (!kvc_grow((void **)&h->v, &h->cap, h->n + 1, sizeof(*h->v)))
        return false;
    size_t i = h->n++;
    for (; i && before(&entry, &h->v[(i - 1) / 2]); i = (i - 1) / 2)
        h->v[i] = h->v[(i - 1) / 2];
    h->v[i] = entry;
    return true;
}

static void heap_pop(struct kvc_step_heap *h)
{
    struct kvc_step_entry last = h->v[--h->n];
    size_t i = 0;
    for (size_t c = 1; c < h->n; c = 2 * i + 1) {
        if (c + 1 < h->n && before(&h->v[c + 1], &h->v[c]))
            c++;
        if (!before(&h->v[c], &last))
            break;
        h->v[i] = h->v[c];
        i = c;
    }
    h->v[i] = last;
}

/* The first entry that still stands: a job that was preempted or ended has another order. */
static const struct kvc_step_entry *heap_top(struct kvc_engine *e, struct kvc_step_heap *h)
{
    while (h->n && e->jobs[h->v[0].job].order != h->v[0].order)
        heap_pop(h);
    return h->n ? &h->v[0] : NULL;
}

/* ---- the decode batch ---- */

static uint32_t phase_of(const struct kvc_engine *e, int64_t base)
{
    int64_t p = base % (int64_t)e->page_tokens;
    return (uint32_t)(p < 0 ? p + e->page_tokens : p);
}

void kvc_replica_join_decode(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    j->decoding = true;
    r->prefill_context -= j->computed;
    j->base = (int64_t)j->computed - (int64_t)r->steps;
    r->base_sum += j->base;
    r->n_decode++;
    r->phase[phase_of(e, j->base)]++;
    r->batch_changed = true;
    struct kvc_step_entry finish = {r->steps + (j->output - j->generated), j->order, job};
    e->nomem |= !heap_push(&r->finishes, finish);
    if (j->held < j->path_blocks && e->sc->engine.publish == KVC_PUBLISH_SCHEDULED) {
        int64_t step = (int64_t)(j->held + 1) * e->block_tokens - j->base;
        e->nomem |= !heap_push(&r->publishes,
                               (struct kvc_step_entry){(uint64_t)step, j->order, job});
    }
}

void kvc_replica_leave_decode(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    j->decoding = false;
    j->computed = (uint32_t)(j->base + (int64_t)r->steps);
    j->known = j->computed + 1; /* the last sampled token is not computed yet */
    j->generated = j->known - j->input;
    j->alloc_pages = kvc_div_up((uint64_t)(j->base + (int64_t)r->allocated), e->page_tokens);
    r->base_sum -= j->base;
    r->n_decode--;
    r->phase[phase_of(e, j->base)]--;
    r->batch_changed = true;
}

uint64_t kvc_replica_page_demand(const struct kvc_engine *e, const struct kvc_replica *r,
                                 uint64_t from, uint64_t to)
{
    uint64_t p = e->page_tokens, cycles = (to - from) / p;
    uint64_t pages = cycles * r->n_decode;
    for (uint64_t finished = from + cycles * p; finished < to; finished++)
        pages += r->phase[(p - finished % p) % p];
    return pages;
}

static uint64_t decode_context(const struct kvc_replica *r, uint64_t finished)
{
    return (uint64_t)(r->base_sum + (int64_t)r->n_decode * ((int64_t)finished + 1));
}

/* ---- when steps end ---- */

/* End of the step that makes s finished steps; exact sum from the anchor, rounded once, half up. */
static uint64_t step_end(const struct kvc_replica *r, uint64_t s)
{
    uint64_t i = s - r->anchor_step;
    i128 tokens = (i128)i * (i128)r->anchor_context +
                  (i128)r->anchor_n * ((i128)i * (i128)(i - 1) / 2);
    i128 sum = ((i128)r->cost.c0_q16 * (i128)i) * ((i128)1 << 24) + (i128)r->cost.c1_q40 * tokens;
    return r->anchor_ns + (uint64_t)((sum + ((i128)1 << 39)) >> 40);
}

/* The step under way at time t, counted as finished steps at its end: the first that ends at t or
 * later. Between two ends the others lie nearly evenly, as a step is hardly longer than the one
 * before it: a line through both leads to a neighbour. */
static uint64_t step_at(const struct kvc_replica *r, uint64_t t)
{
    uint64_t lo = r->steps, hi = r->target, lo_ns = r->started_ns, hi_ns = r->due_ns;
    if (r->mixed || t > hi_ns)
        return hi;
    while (hi - lo > 1 && t > lo_ns) {
        double part = (double)(t - lo_ns) / (double)(hi_ns - lo_ns);
        uint64_t mid = lo + (uint64_t)((double)(hi - lo) * part);
        mid = mid <= lo ? lo + 1 : mid >= hi ? hi - 1 : mid;
        uint64_t end_ns = step_end(r, mid);
        if (end_ns >= t)
            hi = mid, hi_ns = end_ns;
        else
            lo = mid, lo_ns = end_ns;
    }
    return lo + 1;
}

/* No longer jumps over the end of the step under way at time t. */
static void look_again(struct kvc_replica *r, uint64_t t)
{
    r->target = step_at(r, t);
    r->due_ns = step_end(r, r->target);
}

/* Pages and published blocks as of the start of step s. */
void kvc_replica_catch_up_to(struct kvc_engine *e, struct kvc_replica *r, uint64_t s)
{
    if (s > r->allocated) {
        kvc_replica_for_decoding(e, r);
        kvc_pool_take(&r->pool, kvc_replica_page_demand(e, r, r->allocated, s));
        r->allocated = s;
    }
    const struct kvc_step_entry *top;
    while ((top = heap_top(e, &r->publishes)) && top->step <= s) {
        struct kvc_step_entry entry = *top;
        struct kvc_job *j = &e->jobs[entry.job];
        heap_pop(&r->publishes);
        kvc_job_publish(e, r, entry.job, (uint64_t)(j->base + (int64_t)entry.step));
        if (j->held < j->path_blocks) {
            entry.step = (uint64_t)((int64_t)(j->held + 1) * e->block_tokens - j->base);
            e->nomem |= !heap_push(&r->publishes, entry);
        }
    }
}

void kvc_replica_catch_up(struct kvc_engine *e, struct kvc_replica *r)
{
    if (!r->busy)
        return;
    uint64_t s = step_at(r, e->now);
    /* Replicas that are due at one time go by index: seen from a later one, a step of this one that
     * ends now has ended and the next has begun. */
    if (e->looking != KVC_NONE && r->id < e->looking && s < r->target && step_end(r, s) == e->now)
        s++;
    kvc_replica_catch_up_to(e, r, s);
}

uint64_t kvc_replica_finished(const struct kvc_engine *e, const struct kvc_replica *r)
{
    return r->busy && !r->mixed ? step_at(r, e->now) - 1 : r->steps;
}

void kvc_replica_view(struct kvc_engine *e, struct kvc_replica *r, struct kvc_route_view *view)
{
    uint64_t finished = kvc_replica_finished(e, r);
    view->running = r->running.n;
    view->waiting = r->waiting.n + r->ready.n + r->parked + r->on_the_way;
    view->queued_tokens = r->queued_tokens;
    view->context_tokens =
        r->prefill_context + (uint64_t)(r->base_sum + (int64_t)r->n_decode * (int64_t)finished);
    view->hit_tokens = view->hit_tokens_any = 0;
}

/* ---- the end of a step ---- */

static void record_first_token(struct kvc_engine *e, struct kvc_job *j)
{
    struct kvc_request_result *res = &e->results[j->request];
    res->ttft_ns = e->now - res->arrival_ns + j->late_ns + e->front_ns;
    res->host_ns = j->host_ns + e->front_ns;
    res->prefill_ns =
        res->ttft_ns - res->route_ns - res->queue_ns - res->load_ns - res->host_ns;
}

static void finish_job(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    struct kvc_request_result *res = &e->results[j->request];
    if (j->decoding)
        kvc_replica_leave_decode(e, r, job);
    else
        r->prefill_context -= j->computed;
    if (e->sc->engine.publish != KVC_PUBLISH_SCHEDULED)
        kvc_job_publish(e, r, job, j->computed);
    kvc_tiers_store(e, r, job);
    if (r->order)
        kvc_replica_order_ended(e, r, job);
    kvc_job_release(e, r, job);
    kvc_queue_remove(e, &r->running, job);
    e->running_now--;
    res->e2e_ns = e->now - res->arrival_ns + j->late_ns + e->front_ns;
    r->batch_changed = true;
    kvc_engine_ended(e, job, KVC_COMPLETED);
}

/* It was preempted, and has caught up. Who was parked may have the page of the last token already:
 * those that decode take theirs as their step begins. */
static void rejoin_decode(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    uint64_t used = kvc_div_up(j->computed, e->page_tokens);
    kvc_pool_give(&r->pool, j->alloc_pages - used);
    j->alloc_pages = used;
    kvc_replica_join_decode(e, r, job);
}

static void end_chunk(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    kvc_job_set_computed(e, r, job, j->computed + j->chunk);
    j->chunk = 0;
    j->host_ns += r->mixed_host_ns;
    if (e->sc->engine.publish != KVC_PUBLISH_SCHEDULED)
        kvc_job_publish(e, r, job, j->computed);
    if (j->computed < j->known) {
        kvc_tiers_store(e, r, job);
        if (kvc_job_decodes(e, j))
            rejoin_decode(e, r, job);
        return;
    }
    j->known++;
    if (j->generated++ == 0)
        record_first_token(e, j);
    if (j->generated == j->output) {
        finish_job(e, r, job);
        return;
    }
    kvc_tiers_store(e, r, job);
    kvc_replica_join_decode(e, r, job);
}

static uint32_t decodes_in_step(const struct kvc_replica *r)
{
    return r->alone ? 0 : r->n_decode;
}

/* Tokens that the step computes. */
static uint64_t step_tokens(const struct kvc_engine *e, const struct kvc_replica *r)
{
    uint64_t tokens = decodes_in_step(r);
    for (size_t i = 0; i < r->n_chunks; i++)
        tokens += e->jobs[r->chunk_jobs[i]].chunk;
    return tokens;
}

/* Splits a step's time between prefill and decode by tokens. */
static void account_busy(struct kvc_engine *e, const struct kvc_replica *r, uint64_t took_ns)
{
    uint64_t all = step_tokens(e, r), tokens = all - decodes_in_step(r);
    /* whole ns, so that sums do not depend on how steps were gathered */
    uint64_t prefill_ns = tokens ? (uint64_t)((u128)took_ns * tokens / all) : 0;
    e->computed_tokens += tokens;
    if (tokens && all > e->most_step_tokens)
        e->most_step_tokens = all;
    e->prefill_ns += prefill_ns;
    e->decode_ns += took_ns - prefill_ns;
}

static void end_step(struct kvc_engine *e, struct kvc_replica *r)
{
    uint64_t took = r->due_ns - r->started_ns;
    kvc_replica_catch_up_to(e, r, r->target);
    r->busy_ns += took;
    account_busy(e, r, took);
    uint64_t contexts = r->n_decode ? decode_context(r, r->target - 1) : 0;
    e->most_contexts = contexts > e->most_contexts ? contexts : e->most_contexts;
    e->steps += r->target - r->steps + r->alone;
    e->decoded_tokens += (r->target - r->steps) * r->n_decode;
    r->steps = r->target;
    r->busy = false;
    const struct kvc_step_entry *top;
    while ((top = heap_top(e, &r->finishes)) && top->step <= r->steps) {
        uint32_t job = top->job;
        heap_pop(&r->finishes);
        finish_job(e, r, job);
    }
    size_t n = r->n_chunks;
    r->n_chunks = 0;
    for (size_t i = 0; i < n; i++)
        end_chunk(e, r, r->chunk_jobs[i]);
}

/* ---- planning ahead ---- */

/* Nobody who comes now is admitted before something else changes. */
static bool all_queue(const struct kvc_engine *e, const struct kvc_replica *r)
{
    return r->blocked && r->waiting.n && !r->order && !e->tenants.priority && !e->fetches_early;
}

/* How many of the unheard came before the step that ends began. */
static uint32_t heard_by_step(const struct kvc_engine *e, const struct kvc_replica *r)
{
    uint32_t n = 0;
    if (r->mixed || r->target == r->steps + 1)
        return r->unheard_before;
    uint64_t began = step_end(r, r->target - 1);
    for (uint32_t job = r->unheard.head; job != KVC_NONE && e->jobs[job].came_ns <= began;
         job = e->jobs[job].next)
        n++;
    return n;
}

/* ---- the start of a step ---- */

/* A step by itself; tokens_of_all: what experts see of all ranks that step together. */
static void start_mixed(struct kvc_engine *e, struct kvc_replica *r, uint64_t tokens_of_all)
{
    uint32_t n_decode = decodes_in_step(r), sampled = n_decode;
    if (!kvc_grow((void **)&e->chunks, &e->cap_chunks, r->n_chunks, sizeof(*e->chunks))) {
        e->nomem = true;
        return;
    }
    for (size_t i = 0; i < r->n_chunks; i++) {
        const struct kvc_job *j = &e->jobs[r->chunk_jobs[i]];
        e->chunks[i] = (struct kvc_chunk){j->chunk, j->computed};
        sampled += j->computed + j->chunk == j->known;
    }
    r->mixed = true;
    r->anchored = false;
    r->target = r->steps + !r->alone;
    uint64_t context = n_decode ? decode_context(r, r->steps) : 0;
    uint64_t compile = kvc_step_compile_ns(e->model, tokens_of_all, &r->compiled);
    r->due_ns = e->now + compile +
                kvc_step_rank_ns(e->model, e->chunks, r->n_chunks, n_decode, context, sampled,
                                 tokens_of_all, &r->mixed_host_ns);
    r->mixed_host_ns += compile;
    if (e->sc->cluster.pp > 1)
        kvc_replica_note_late(e, r, n_decode, context, sampled);
}

/* Steps until the decode batch has to be looked at again: a finish, a knot of the cost table, no
 * page left. */
static uint64_t stretch_end(struct kvc_engine *e, struct kvc_replica *r)
{
    if (r->looked && e->sc->engine.reserve_output == KVC_RESERVE_ESTIMATED)
        return r->steps + 1; /* the guess falls with each step */
    uint64_t end = heap_top(e, &r->finishes)->step;
    uint64_t same_cost = (r->cost.context_end - r->anchor_context) / r->anchor_n + 1;
    if (same_cost < end - r->anchor_step)
        end = r->anchor_step + same_cost;
    bool writes_evicted = e->first_tier < KVC_LOWER_TIERS && e->tiers[e->first_tier].on_evict;
    /* A block published by a running request may be what the one in front lacks. */
    bool ruled = r->pool.rules != NULL; /* who has how much may decide who goes next */
    const struct kvc_step_entry *publish = r->looked || ruled ? heap_top(e, &r->publishes) : NULL;
    if (publish && publish->step - 1 > r->steps && publish->step - 1 < end)
        end = publish->step - 1;
    /* The one who waits may fit, or load from below, once part of its hit is evicted; or when a
     * copy that somebody holds takes the place of what it hit. */
    bool may_fit = r->looked && !(e->sc->engine.reserve_full_prompt &&
                                  e->sc->engine.chunked_prefill && !r->pool.copies);
    may_fit |= ruled && r->looked;
    kvc_replica_for_decoding(e, r);
    uint64_t room = writes_evicted || may_fit ? r->pool.plain : kvc_pool_available(&r->pool);
    if (kvc_replica_page_demand(e, r, r->allocated, end) > room) {
        uint64_t cycles = room / r->n_decode;
        uint64_t s = r->allocated + cycles * e->page_tokens;
        room -= cycles * r->n_decode;
        for (uint64_t more; (more = kvc_replica_page_demand(e, r, s, s + 1)) <= room; s++)
            room -= more;
        if (s < end)
            end = s;
    }
    return end > r->steps ? end : r->steps + 1;
}

static void start_decode(struct kvc_engine *e, struct kvc_replica *r)
{
    uint64_t context = decode_context(r, r->steps);
    if (!r->anchored || r->batch_changed || context > r->cost.context_end) {
        r->anchored = true;
        r->anchor_ns = e->now + kvc_step_compile_ns(e->model, r->n_decode, &r->compiled);
        r->anchor_step = r->steps;
        r->anchor_context = context;
        r->anchor_n = r->n_decode;
        kvc_step_decode(e->model, r->n_decode, context, &r->cost);
    }
    r->mixed = false;
    bool one = e->options->step_by_step || r->retry ||
               (r->looked && r->ranks_change) || /* another may be in front then */
               (r->unheard.n && !all_queue(e, r));
    r->target = one ? r->steps + 1 : stretch_end(e, r);
    r->due_ns = step_end(r, r->target);
    uint64_t timeout = e->sc->request_timeout_ns;
    if (timeout && r->waiting.n) /* wake when the request in front has waited too long */
        look_again(r, e->results[e->jobs[r->waiting.head].request].arrival_ns + timeout + 1);
}

/* What is known of when the step that ends began decides the next one; with nothing to do in it the
 * engine looks again. */
static void plan(struct kvc_engine *e, struct kvc_replica *r)
{
    uint32_t known = r->busy ? heard_by_step(e, r) : 0;
    if (r->busy)
        end_step(e, r);
    kvc_replica_hear_unheard(e, r, known);
    kvc_replica_schedule(e, r);
    if (r->unheard.n && !r->n_chunks && !r->n_decode) {
        kvc_replica_hear_unheard(e, r, r->unheard.n);
        kvc_replica_schedule(e, r);
    }
    r->unheard_before = r->unheard.n;
}

/* Ends the step under way and schedules the next; false when there is none, or no memory: then the
 * heaps may lack what follows counts on. */
static bool next_step(struct kvc_engine *e, struct kvc_replica *r)
{
    e->scheduling = r->id;
    plan(e, r);
    kvc_tiers_store_evicted(e, r);
    e->scheduling = KVC_NONE;
    r->started_ns = e->now;
    if (r->n_chunks || r->n_decode)
        return !e->nomem;
    r->anchored = false;
    r->output_ratio = KVC_OUTPUT_RATIO;
    r->ratio_step = r->steps;
    return false;
}

/* Data-parallel ranks: what one computes, the experts of all wait for, so that each step is one of
 * all and lasts as long as the slowest. The first of them stands for all where they are due. */
static void run_group(struct kvc_engine *e, struct kvc_replica *first)
{
    uint64_t sum = 0, most = 0, end = KVC_TIME_NONE;
    struct kvc_replica *last = first + e->sc->cluster.dp - 1;
    for (struct kvc_replica *r = first; r <= last; r++) {
        uint64_t own = next_step(e, r) ? step_tokens(e, r) : 0;
        sum += own;
        most = own > most ? own : most;
    }
    for (struct kvc_replica *r = first; r <= last && !e->nomem; r++) {
        r->busy = r->n_chunks || r->n_decode;
        if (!r->busy)
            continue;
        start_mixed(e, r, kvc_step_tokens_of_all(e->model, sum, most));
        end = end == KVC_TIME_NONE || r->due_ns > end ? r->due_ns : end;
    }
    for (struct kvc_replica *r = first; r <= last; r++)
        r->due_ns = end;
    kvc_engine_due(e, first, end);
}

void kvc_replica_run_due(struct kvc_engine *e, struct kvc_replica *r)
{
    if (e->sc->cluster.dp > 1) {
        run_group(e, r);
        return;
    }
    if (!next_step(e, r)) {
        kvc_engine_due(e, r, KVC_TIME_NONE);
        return;
    }
    if (r->n_chunks)
        start_mixed(e, r, step_tokens(e, r));
    else
        start_decode(e, r);
    r->batch_changed = false;
    r->busy = true;
    kvc_engine_due(e, r, r->due_ns);
}

/* Something became runnable now: an idle replica is due at once, a decoding one when its step
 * ends, unless it would have to queue behind a request that waits for pages or a slot. */
static void wake(struct kvc_engine *e, struct kvc_replica *r, bool queues)
{
    uint32_t ranks = e->sc->cluster.dp;
    if (ranks > 1) { /* what is idle of a group steps with the others when they do */
        struct kvc_replica *first = r - r->id % ranks;
        if (first->heap_pos == KVC_NONE)
            kvc_engine_due(e, first, e->now);
    } else if (!r->busy) {
        kvc_engine_due(e, r, e->now);
    } else if (!r->mixed && !(queues && r->blocked)) {
        look_again(r, e->now);
        kvc_engine_due(e, r, r->due_ns);
    }
}

void kvc_replica_tier_changed(struct kvc_engine *e, struct kvc_replica *r)
{
    if (!r->looked)
        return;
    if (r->id == e->scheduling) {
        r->retry = true;
    } else if (r->busy && !r->mixed) { /* at equal times, lower replicas had their turn before */
        look_again(r, e->now + (e->scheduling != KVC_NONE && r->id < e->scheduling));
        kvc_engine_due(e, r, r->due_ns);
    }
}

/* Until the step under way ends, before which an engine does not look for requests. */
static uint64_t rest_of_step(const struct kvc_engine *e, const struct kvc_replica *r)
{
    const struct kvc_replica *first = r - r->id % e->sc->cluster.dp;
    if (e->sc->cluster.dp > 1)
        return first->heap_pos == KVC_NONE ? 0 : first->due_ns - e->now;
    return !r->busy ? 0 : (r->mixed ? r->due_ns : step_end(r, step_at(r, e->now))) - e->now;
}

void kvc_replica_enqueue(struct kvc_engine *e, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    struct kvc_replica *r = &e->replicas[j->replica];
    j->queued_ns = e->now;
    e->results[j->request].unheard_ns = rest_of_step(e, r);
    if (e->fetches_early && !r->order) /* one whose fetch ends later keeps its place */
        j->place = (double)++e->comings;
    if (!kvc_fetch_begin(e, r, job))
        kvc_replica_come(e, job);
}

void kvc_replica_come(struct kvc_engine *e, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    struct kvc_replica *r = &e->replicas[j->replica];
    j->came_ns = e->now;
    if (!r->busy || !e->sc->engine.plan_ahead || e->sc->cluster.pp > 1) {
        wake(e, r, kvc_replica_hear(e, r, job));
        return;
    }
    kvc_queue_push_back(e, &r->unheard, job);
    if (!r->mixed && !all_queue(e, r)) {
        uint64_t then = step_at(r, e->now) + 1; /* the step under way and the planned one end */
        r->target = then < r->target ? then : r->target;
        r->due_ns = step_end(r, r->target);
        kvc_engine_due(e, r, r->due_ns);
    }
}

void kvc_replica_loaded(struct kvc_engine *e, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    struct kvc_replica *r = &e->replicas[j->replica];
    if (!j->generated)
        e->results[j->request].load_ns += e->now - j->parked_ns;
    kvc_job_publish(e, r, job, j->load_tokens);
    kvc_job_set_computed(e, r, job, j->load_tokens);
    r->parked--;
    uint32_t at = r->ready.tail; /* in the order they were parked */
    while (at != KVC_NONE && e->jobs[at].order > j->order)
        at = e->jobs[at].prev;
    kvc_queue_insert(e, &r->ready, at, job);
    wake(e, r, false);
}
