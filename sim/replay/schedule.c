/* SPDX-License-Identifier: Apache-2.0
 * The scheduler: which requests the next step computes for, and the pages they get. One loop; where
 * engines differ it asks a rule of the scenario (enum kvc_prefill_rule and those beside it). */
#include "sim/replay/replica.h"

#include "base/alloc.h"

/* SGLang's defaults (srt/environ.py): SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION,
 * SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR and SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS. */
#define MOST_GUESSED 4096
#define RATIO_LEAST (KVC_OUTPUT_RATIO * 0.14)
#define RATIO_FALL ((KVC_OUTPUT_RATIO - RATIO_LEAST) / 600) /* a decode step */

struct step_plan {
    uint64_t budget;
    bool preempted, asked; /* asked: who waits in front */
};

void kvc_job_set_computed(struct kvc_engine *e, struct kvc_replica *r, uint32_t job,
                          uint32_t computed)
{
    struct kvc_job *j = &e->jobs[job];
    uint32_t was = j->computed;
    r->queued_tokens += was < j->input ? was : j->input;
    r->queued_tokens -= computed < j->input ? computed : j->input;
    if (j->running && !j->decoding)
        r->prefill_context += (uint64_t)computed - was;
    j->computed = computed;
}

static void note_published(struct kvc_engine *e, struct kvc_path path, uint32_t held)
{
    for (uint32_t k = path.n; k-- > 0;) {
        uint32_t depth = path.spans[k].depth, len = path.spans[k].len;
        uint32_t *ever = &e->segments[path.spans[k].seg].ever;
        if (held <= depth)
            continue;
        uint32_t n = held - depth < len ? held - depth : len;
        if (*ever >= n)
            return; /* what is above it was published before it */
        *ever = n;
    }
}

/* What others have inserted meanwhile is held instead of the job's own. */
static void drop_copies(struct kvc_replica *r, struct kvc_job *j, struct kvc_path path, uint32_t to)
{
    uint32_t there = kvc_pool_reach(&r->pool, path, j->held, to);
    if (there <= j->held)
        return;
    kvc_pool_hold(&r->pool, path, j->held, there);
    kvc_pool_give(&r->pool, kvc_pool_pages(&r->pool, there) - kvc_pool_pages(&r->pool, j->held));
    j->held = there;
}

void kvc_job_publish(struct kvc_engine *e, struct kvc_replica *r, uint32_t job, uint64_t tokens)
{
    struct kvc_job *j = &e->jobs[job];
    uint64_t full = e->block_tokens ? tokens / e->block_tokens : 0;
    uint32_t to = full < j->path_blocks ? (uint32_t)full : j->path_blocks;
    if (to <= j->held)
        return;
    struct kvc_path path = kvc_engine_path(e, j->leaf, 1);
    r->pool.by = j->tenant;
    if (e->sc->engine.publish == KVC_PUBLISH_INSERTED)
        drop_copies(r, j, path, to);
    j->has_copies |= kvc_pool_publish(&r->pool, path, j->held, to, job, false, j->has_copies);
    j->held = to;
    note_published(e, path, to);
    kvc_pool_trim(&r->pool);
}

void kvc_job_release(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    uint64_t cached = kvc_pool_pages(&r->pool, j->held) - kvc_pool_pages(&r->pool, j->hit_blocks);
    kvc_pool_give(&r->pool, j->alloc_pages - j->hit_pages - cached + e->sequence_pages);
    r->pool.by = j->tenant;
    if (j->held)
        kvc_pool_release(&r->pool, kvc_engine_path(e, j->leaf, 0), 0, j->held, job,
                         j->has_copies);
    kvc_pool_rest(&r->pool);
    kvc_pool_trim(&r->pool);
    j->held = j->hit_blocks = j->hit_pages = 0;
    j->alloc_pages = 0;
    j->has_copies = false;
}

static uint32_t generated(const struct kvc_replica *r, const struct kvc_job *j)
{
    return j->decoding ? (uint32_t)(j->base + (int64_t)r->steps + 1 - j->input) : j->generated;
}

/* Who gives way when pages are short: the last one admitted, or the one that has generated least,
 * of equals the longest prompt, of equals the last. */
static uint32_t victim(const struct kvc_engine *e, const struct kvc_replica *r)
{
    uint32_t best = r->running.tail;
    if (e->sc->engine.preempt == KVC_PREEMPT_LAST)
        return best;
    for (uint32_t at = e->jobs[best].prev; at != KVC_NONE; at = e->jobs[at].prev) {
        const struct kvc_job *a = &e->jobs[at], *b = &e->jobs[best];
        uint32_t less = generated(r, a), least = generated(r, b);
        if (less < least || (less == least && a->input > b->input))
            best = at;
    }
    return best;
}

static void preempt(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    if (j->decoding) {
        kvc_replica_leave_decode(e, r, job);
    } else {
        r->prefill_context -= j->computed;
    }
    if (j->peak < j->computed)
        j->peak = j->computed;
    kvc_job_release(e, r, job);
    kvc_queue_remove(e, &r->running, job);
    j->running = false;
    kvc_job_set_computed(e, r, job, 0);
    j->order = 0;
    kvc_replica_join_queue(e, r, job, true);
    r->preemptions++;
    r->batch_changed = true;
    e->running_now--;
    e->waiting_now++;
}

/* What is taken next is for those who decode: of one class, while they are, whose own reservation
 * then doesn't stand in its way. */
void kvc_replica_for_decoding(struct kvc_engine *e, struct kvc_replica *r)
{
    r->pool.by = KVC_BY_DECODING;
    r->pool.newcomer.seg = r->pool.decoders = KVC_NONE;
    if (!e->tenants.reserved_pages)
        return;
    const uint32_t *class_of = r->pool.rules->class_of;
    for (uint32_t at = r->running.head; at != KVC_NONE; at = e->jobs[at].next) {
        uint32_t class = class_of[e->jobs[at].tenant];
        if (!e->jobs[at].decoding || class == r->pool.decoders)
            continue;
        bool first = r->pool.decoders == KVC_NONE;
        r->pool.decoders = first ? class : KVC_NONE;
        if (!first)
            return;
    }
}

static uint64_t available(struct kvc_engine *e, struct kvc_replica *r, uint32_t by)
{
    if (by == KVC_BY_DECODING)
        kvc_replica_for_decoding(e, r);
    else
        r->pool.by = by;
    return kvc_pool_available(&r->pool);
}

/* Preempts until pages are available for by; false when job itself had to go. */
static bool make_room(struct kvc_engine *e, struct kvc_replica *r, uint32_t job, uint32_t by,
                      uint64_t pages, struct step_plan *plan)
{
    while (available(e, r, by) < pages) {
        uint32_t who = victim(e, r);
        preempt(e, r, who);
        plan->preempted = true;
        if (who == job)
            return false;
    }
    return true;
}

bool kvc_job_decodes(const struct kvc_engine *e, const struct kvc_job *j)
{
    return e->sc->engine.prefill == KVC_PREFILL_MIXED && j->generated &&
           j->computed + 1 == j->known;
}

/* The job computes tokens in the coming step. */
static void add_chunk(struct kvc_engine *e, struct kvc_replica *r, uint32_t job, uint32_t tokens,
                      struct step_plan *plan)
{
    struct kvc_job *j = &e->jobs[job];
    plan->budget -= tokens < plan->budget ? tokens : plan->budget; /* a whole prompt may be more */
    if (e->sc->engine.publish == KVC_PUBLISH_SCHEDULED)
        kvc_job_publish(e, r, job, (uint64_t)j->computed + tokens);
    if (j->computed < j->peak)
        e->results[j->request].recomputed_tokens +=
            tokens < j->peak - j->computed ? tokens : j->peak - j->computed;
    if (kvc_job_decodes(e, j)) {
        kvc_replica_join_decode(e, r, job);
        return;
    }
    if (!kvc_grow((void **)&r->chunk_jobs, &r->cap_chunks, r->n_chunks + 1,
                  sizeof(*r->chunk_jobs))) {
        e->nomem = true;
        return;
    }
    r->chunk_jobs[r->n_chunks++] = job;
    j->chunk = tokens;
}

/* Pages a job has to add to compute up to tokens. */
static uint64_t more_pages(const struct kvc_engine *e, const struct kvc_job *j, uint64_t tokens)
{
    uint64_t need = kvc_div_up(tokens, e->page_tokens);
    return need > j->alloc_pages ? need - j->alloc_pages : 0;
}

/* beside: pages for what is not of any token. */
static void take_for(struct kvc_engine *e, struct kvc_replica *r, struct kvc_job *j,
                     uint64_t tokens, uint64_t beside)
{
    uint64_t more = more_pages(e, j, tokens), full = e->block_tokens ? tokens / e->block_tokens : 0;
    r->pool.by = j->tenant;
    if (r->pool.policy) {
        uint32_t to = full < j->path_blocks ? (uint32_t)full : j->path_blocks;
        kvc_pool_newcomer(&r->pool, kvc_engine_path(e, j->leaf, 0), to > j->held ? to : 0);
    }
    kvc_pool_take(&r->pool, more + beside);
    j->alloc_pages += more;
}

/* Pages are short: running requests get theirs one by one, in order. */
static void grant_one_by_one(struct kvc_engine *e, struct kvc_replica *r, struct step_plan *plan)
{
    uint32_t next;
    for (uint32_t job = r->running.head; job != KVC_NONE; job = next) {
        struct kvc_job *j = &e->jobs[job];
        uint64_t c = (uint64_t)(j->base + (int64_t)r->steps);
        if (!j->decoding)
            break;
        if (c % e->page_tokens == 0) {
            if (!make_room(e, r, job, KVC_BY_DECODING, 1, plan))
                return;
            kvc_pool_take(&r->pool, 1);
        }
        next = j->next;
    }
}

/* Whether the step computes anything yet. */
static bool has_begun(const struct kvc_engine *e, const struct kvc_replica *r)
{
    return r->n_chunks || (r->n_decode && e->sc->engine.prefill == KVC_PREFILL_MIXED);
}

/* The same, but all at once: the shortest go until the others get theirs; how much room outputs
 * take is guessed anew from those (SGLang's retract_decode). */
static void retract(struct kvc_engine *e, struct kvc_replica *r, struct step_plan *plan)
{
    uint64_t done = 0, all = 1, n = 0;
    while (available(e, r, KVC_BY_DECODING) <
           kvc_replica_page_demand(e, r, r->steps, r->steps + 1)) {
        preempt(e, r, victim(e, r));
        plan->preempted = true;
    }
    kvc_pool_take(&r->pool, kvc_replica_page_demand(e, r, r->steps, r->steps + 1));
    for (uint32_t at = r->running.head; at != KVC_NONE; at = e->jobs[at].next, n++) {
        done += generated(r, &e->jobs[at]);
        all += e->jobs[at].output;
    }
    double ratio = (double)(done + 20 * n) / (double)all;
    r->output_ratio = ratio < 1 ? ratio : 1;
    r->ratio_step = r->steps + 1;
}

/* Decoding requests get a token each. */
static void schedule_decodes(struct kvc_engine *e, struct kvc_replica *r, struct step_plan *plan)
{
    uint64_t pages = kvc_replica_page_demand(e, r, r->steps, r->steps + 1);
    if (available(e, r, KVC_BY_DECODING) >= pages)
        kvc_pool_take(&r->pool, pages);
    else if (e->sc->engine.preempt == KVC_PREEMPT_LAST)
        grant_one_by_one(e, r, plan);
    else
        retract(e, r, plan);
    r->allocated = r->steps + 1;
    kvc_replica_catch_up_to(e, r, r->steps + 1); /* they publish before a prompt does */
    plan->budget -= r->n_decode < plan->budget ? r->n_decode : plan->budget;
}

/* The next chunk of the running request whose prompt is not done, if any; it is always the last,
 * since a chunk ends early only where the budget does. */
static void schedule_partial(struct kvc_engine *e, struct kvc_replica *r, struct step_plan *plan)
{
    uint32_t last = r->running.tail;
    if (last == KVC_NONE || e->jobs[last].decoding || !plan->budget)
        return;
    struct kvc_job *j = &e->jobs[last];
    uint64_t left = j->known - j->computed;
    uint32_t tokens = (uint32_t)(left < plan->budget ? left : plan->budget);
    uint64_t more = more_pages(e, j, (uint64_t)j->computed + tokens);
    if (make_room(e, r, last, j->tenant, more, plan)) {
        take_for(e, r, j, (uint64_t)j->computed + tokens, 0);
        add_chunk(e, r, last, tokens, plan);
    }
}

static void start_running(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    struct kvc_job *j = &e->jobs[job];
    kvc_queue_push_back(e, &r->running, job);
    j->running = true;
    r->prefill_context += j->computed;
    j->order = ++e->orders;
    if (r->running.n > r->peak_running)
        r->peak_running = r->running.n;
    e->running_now++;
    e->waiting_now--;
    if (j->first_scheduled_ns == KVC_TIME_NONE) {
        struct kvc_request_result *res = &e->results[j->request];
        j->first_scheduled_ns = e->now;
        res->queue_ns = e->now - j->queued_ns - res->load_ns;
    }
}

/* The hit and what there is to load become the job's, then pages for tokens in all. What is loaded
 * is held before pages are taken, so that it can't fall to what that evicts. */
static void hold_hit(struct kvc_engine *e, struct kvc_replica *r, uint32_t job,
                     struct kvc_path path, uint32_t limit, const struct kvc_reach *reach,
                     uint64_t tokens)
{
    struct kvc_job *j = &e->jobs[job];
    j->hit_blocks = e->block_tokens ? (uint32_t)kvc_div_up(reach->usable, e->block_tokens) : 0;
    j->hit_pages = (uint32_t)kvc_pool_pages(&r->pool, j->hit_blocks);
    j->held = j->hit_blocks;
    j->offered = 0;
    if (j->held)
        kvc_pool_hold(&r->pool, path, 0, j->held);
    j->alloc_pages = j->hit_pages;
    if (reach->tokens > reach->usable) {
        j->load_tokens = reach->tokens;
        kvc_tiers_load(e, job, reach);
    }
    if (!j->admitted) { /* before anything goes for it */
        j->admitted = true;
        e->admissions[e->n_admissions++] = j->request;
        kvc_tiers_ask(e, r, j->request);
        kvc_replica_account_hit(e, r, job, reach);
        kvc_fetch_forget(e, job);
        kvc_tiers_arrive(e, r, j->request);
    }
    kvc_tiers_touch(e, r, path, limit, j->tenant);
    take_for(e, r, j, tokens, e->sequence_pages);
    kvc_job_set_computed(e, r, job, reach->usable);
}

static bool timed_out(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    const struct kvc_job *j = &e->jobs[job];
    const struct kvc_request_result *res = &e->results[j->request];
    uint64_t timeout = e->sc->request_timeout_ns;
    if (!timeout || j->admitted || e->now - res->arrival_ns <= timeout)
        return false;
    if (r->order)
        kvc_replica_order_ended(e, r, job);
    kvc_queue_remove(e, &r->waiting, job);
    r->queued_tokens -= j->input;
    e->waiting_now--;
    kvc_fetch_forget(e, job);
    kvc_engine_ended(e, job, KVC_FAILED);
    return true;
}

void kvc_job_lookup(struct kvc_engine *e, const struct kvc_replica *r, const struct kvc_job *j,
                    struct kvc_reach *out)
{
    uint64_t full = e->block_tokens ? j->known / e->block_tokens : 0;
    uint32_t limit = full < j->path_blocks ? (uint32_t)full : j->path_blocks;
    kvc_tiers_lookup(e, r, kvc_engine_path(e, j->leaf, 0), limit, j->known, out);
}

/* Pages that all of the job's tokens take, its output's too; the last token has no KV. */
static uint64_t pages_to_end(const struct kvc_engine *e, const struct kvc_job *j)
{
    return kvc_div_up((uint64_t)j->input + j->output - 1, e->page_tokens);
}

/* Pages that those before the next one in the queue may still take until they end. */
static uint64_t promised_pages(const struct kvc_engine *e, const struct kvc_replica *r)
{
    uint64_t pages = r->promised;
    for (uint32_t at = r->running.head; at != KVC_NONE; at = e->jobs[at].next) {
        const struct kvc_job *j = &e->jobs[at];
        uint64_t now = j->decoding ? kvc_div_up((uint64_t)(j->base + (int64_t)r->allocated),
                                                e->page_tokens)
                                   : j->alloc_pages;
        pages += pages_to_end(e, j) - now;
    }
    return pages;
}

/* SGLang's guess, in tokens: a falling share of what decoding requests may still generate, and all
 * of those that the step lets begin (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION of each at most). */
static double guessed_tokens(const struct kvc_engine *e, const struct kvc_replica *r)
{
    uint64_t decoding = 0, beginning = 0;
    for (uint32_t at = r->running.head; at != KVC_NONE; at = e->jobs[at].next) {
        const struct kvc_job *j = &e->jobs[at];
        uint64_t left = j->output - generated(r, j);
        left = left < MOST_GUESSED ? left : MOST_GUESSED;
        if (j->decoding)
            decoding += left;
        else if (j->computed + j->chunk == j->known)
            beginning += left;
    }
    double ratio = r->output_ratio;
    if (r->steps > r->ratio_step) {
        ratio -= RATIO_FALL * (double)(r->steps - r->ratio_step);
        ratio = ratio > RATIO_LEAST ? ratio : RATIO_LEAST;
    }
    return ratio * (double)decoding + (double)beginning;
}

/* Pages that must be free beside those it hits, for the job to be admitted with now tokens. */
static uint64_t pages_to_admit(const struct kvc_engine *e, const struct kvc_replica *r,
                               const struct kvc_job *j, uint32_t usable, uint64_t hit_pages,
                               uint64_t now)
{
    uint64_t pages = kvc_div_up(now, e->page_tokens);
    uint64_t more = pages > hit_pages ? pages - hit_pages : 0;
    if (e->sc->engine.reserve_output == KVC_RESERVE_FULL)
        return pages_to_end(e, j) - hit_pages + promised_pages(e, r);
    if (e->sc->engine.reserve_output == KVC_RESERVE_NONE ||
        !(r->running.n || r->ready.n || r->parked)) /* nobody would make more room */
        return more;
    uint32_t left = j->output - j->generated;
    double tokens = (double)(j->known - usable) + (left < MOST_GUESSED ? left : MOST_GUESSED) +
                    guessed_tokens(e, r);
    uint64_t guess = (uint64_t)(tokens / e->page_tokens) + 2; /* less than is free, by a page */
    return guess > more ? guess : more;
}

/* Looks at the request in front of the waiting queue; false when it has to stay there. */
static bool admit_waiting(struct kvc_engine *e, struct kvc_replica *r, struct step_plan *plan)
{
    uint32_t job = r->order ? kvc_replica_next(e, r, !plan->asked) : r->waiting.head;
    struct kvc_job *j = &e->jobs[job];
    plan->asked = true;
    kvc_fetch_seen(e, r, job);
    if (timed_out(e, r, job))
        return true;
    struct kvc_path path = kvc_engine_path(e, j->leaf, 0);
    uint64_t full = e->block_tokens ? j->known / e->block_tokens : 0;
    uint32_t limit = full < j->path_blocks ? (uint32_t)full : j->path_blocks;
    struct kvc_reach reach;
    kvc_tiers_lookup_near(e, r, path, limit, j->known, &reach);
    bool load = reach.tokens > reach.usable;
    uint64_t left = j->known - reach.usable;
    uint32_t tokens = (uint32_t)(left < plan->budget ? left : plan->budget);
    r->blocked = r->looked = true; /* unless it is admitted */
    if (!load && !e->sc->engine.chunked_prefill && left > plan->budget) {
        if (has_begun(e, r))
            return false;
        tokens = (uint32_t)left;
    }
    uint64_t all = e->sc->engine.reserve_full_prompt || load ? j->known
                                                             : (uint64_t)reach.usable + tokens;
    uint32_t h = e->block_tokens ? (uint32_t)kvc_div_up(reach.usable, e->block_tokens) : 0;
    uint64_t need = e->sequence_pages +
                    pages_to_admit(e, r, j, reach.usable, kvc_pool_pages(&r->pool, h), all);
    r->pool.by = j->tenant;
    if (!kvc_pool_fits(&r->pool, path, h, need))
        return false;
    r->blocked = r->looked = false;
    kvc_queue_remove(e, &r->waiting, job);
    if (r->order)
        kvc_replica_order_admitted(e, r, job, &reach);
    hold_hit(e, r, job, path, limit, &reach, load ? j->known : (uint64_t)reach.usable + tokens);
    if (load) {
        j->parked_ns = e->now;
        j->order = ++e->orders;
        r->parked++;
        r->promised += pages_to_end(e, j) - j->alloc_pages;
        return true;
    }
    start_running(e, r, job);
    add_chunk(e, r, job, tokens, plan);
    return true;
}

static bool admit_ready(struct kvc_engine *e, struct kvc_replica *r, struct step_plan *plan)
{
    uint32_t job = r->ready.head;
    struct kvc_job *j = &e->jobs[job];
    uint64_t left = j->known - j->computed;
    uint32_t tokens = (uint32_t)(left < plan->budget ? left : plan->budget);
    if (!e->sc->engine.chunked_prefill && left > plan->budget) {
        if (has_begun(e, r)) {
            r->blocked = true;
            return false;
        }
        tokens = (uint32_t)left;
    }
    kvc_queue_remove(e, &r->ready, job);
    r->promised -= pages_to_end(e, j) - j->alloc_pages;
    start_running(e, r, job);
    add_chunk(e, r, job, tokens, plan);
    return true;
}

/* Prompts: the one that has begun, then, unless somebody had to give way, those that wait. */
static void schedule_prompts(struct kvc_engine *e, struct kvc_replica *r, struct step_plan *plan)
{
    schedule_partial(e, r, plan);
    r->blocked = r->looked = false;
    while (!plan->preempted && plan->budget && !e->nomem && (r->ready.n || r->waiting.n)) {
        if (r->running.n >= e->max_seqs) {
            r->blocked = true;
            return;
        }
        if (!(r->ready.n ? admit_ready(e, r, plan) : admit_waiting(e, r, plan)))
            return;
    }
}

void kvc_replica_schedule(struct kvc_engine *e, struct kvc_replica *r)
{
    bool first = e->sc->engine.prefill == KVC_PREFILL_FIRST;
    struct step_plan plan;
    do { /* again at once when the only running request had to go */
        plan = (struct step_plan){.budget = (uint64_t)e->sc->engine.max_batched_tokens *
                                            e->sc->cluster.pp}; /* a batch in each stage */
        if (first)
            schedule_prompts(e, r, &plan);
        r->alone = first && r->n_chunks;
        if (r->alone)
            r->allocated = r->steps;
        else
            schedule_decodes(e, r, &plan);
        if (!first)
            schedule_prompts(e, r, &plan);
    } while (plan.preempted && !r->running.n);
    r->retry = plan.preempted; /* nobody is admitted beside a preemption, but perhaps next time */
}
