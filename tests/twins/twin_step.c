/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's scheduler: one step at a time, as "A step" of docs/replay.md says. */
#include "tests/twins/twin_internal.h"

#include "base/alloc.h"

static void finish(struct twin *tw, struct replica *rep, struct req *r)
{
    tiers_after_step(tw, rep, r);
    reqs_remove(&rep->running, r);
    pool_release(tw, rep, r);
    twin_end(tw, r, KVC_COMPLETED);
}

static void account_one(struct twin *tw, struct replica *rep, struct req *r)
{
    bool prefill = r->generated == 0 || r->c + 1 < r->N || rep->alone;
    bool late = tw->sc->engine.publish != KVC_PUBLISH_SCHEDULED;

    if (r->generated == 0)
        r->host_ns += rep->host_ns;
    r->c += r->sched;
    r->sched = 0;
    if (r->c > r->c_peak)
        r->c_peak = r->c;
    if (late && (prefill || r->generated + 1 == r->O))
        pool_publish(tw, rep, r, r->c);
    if (r->c == r->N) {
        r->N++;
        r->generated++;
        rep->served[r->tenant] += 2;
        r->behind = false;
        r->last_token = tw->now;
        if (r->generated == 1) {
            r->first_token = tw->now;
            r->first_late = r->late_ns;
            r->result->load_ns = r->load_ns;
        }
    }
    if (r->generated == r->O)
        finish(tw, rep, r);
    else if (prefill)
        tiers_after_step(tw, rep, r);
}

/* The step that ends now. */
static void account(struct twin *tw, struct replica *rep)
{
    struct reqs scheduled = {0};

    for (uint32_t i = 0; i < rep->running.n; i++)
        if (rep->running.at[i]->sched)
            reqs_push(&scheduled, rep->running.at[i]);
    for (uint32_t i = 0; i < scheduled.n; i++)
        account_one(tw, rep, scheduled.at[i]);
    kvc_free(scheduled.at);
}

static void schedule_tokens(struct twin *tw, struct replica *rep, struct req *r, uint32_t tokens,
                            uint32_t *budget)
{
    uint64_t need = pages_for(tw, r, (uint64_t)r->c + tokens), have = r->new_pages;

    if (need > have || r->beside < tw->setup->sequence_pages)
        pool_alloc(tw, rep, r, r->tenant, need > have ? need - have : 0, r->c + tokens);
    r->sched = tokens;
    *budget -= tokens < *budget ? tokens : *budget;
    if (tw->sc->engine.publish == KVC_PUBLISH_SCHEDULED)
        pool_publish(tw, rep, r, r->c + tokens);
    if (!r->computed_once) {
        r->computed_once = true;
        r->first_start = tw->now;
        r->load_before_first = r->load_ns;
    }
    if (r->c < r->c_peak)
        r->result->recomputed_tokens +=
            (r->c + tokens < r->c_peak ? r->c + tokens : r->c_peak) - r->c;
}

static void preempt(struct twin *tw, struct replica *rep, struct req *r)
{
    bool back = tw->sc->engine.preempt == KVC_PREEMPT_SHORTEST;

    reqs_remove(&rep->running, r);
    pool_release(tw, rep, r);
    r->c = 0;
    r->place = back ? ++tw->comings : 0;
    r->behind = true;
    r->state = REQ_WAITING;
    waiting_joins(tw, rep, r);
    reqs_push_front(&rep->waiting, r);
    for (uint32_t i = 1; i < rep->waiting.n && tw->rules[rep->waiting.at[i]->tenant].priority <
                                                   tw->rules[r->tenant].priority + back; i++) {
        rep->waiting.at[i - 1] = rep->waiting.at[i];
        rep->waiting.at[i] = r;
    }
    tw->out->preemptions++;
}

static uint64_t decoding_pages(const struct twin *tw, const struct replica *rep)
{
    uint64_t pages = 0;

    for (uint32_t i = 0; i < rep->running.n; i++) {
        const struct req *r = rep->running.at[i];
        uint64_t need = pages_for(tw, r, (uint64_t)r->c + 1);

        if (twin_decodes(tw, r) && need > r->new_pages)
            pages += need - r->new_pages;
    }
    return pages;
}

/* Room for those who decode, which what their one tenant has reserved does not lessen. */
static uint64_t decoding_free(struct twin *tw, const struct replica *rep)
{
    bool any = false;

    tw->decoders = TWIN_NONE;
    for (uint32_t i = 0; i < rep->running.n; i++) {
        const struct req *r = rep->running.at[i];

        if (!twin_decodes(tw, r))
            continue;
        tw->decoders = any && tw->decoders != r->tenant ? TWIN_NONE : r->tenant;
        if (any && tw->decoders == TWIN_NONE)
            break;
        any = true;
    }
    return pool_free(tw, rep, TWIN_DECODING);
}

/* Whether the shortest ones had to go for the others. */
static bool retract(struct twin *tw, struct replica *rep)
{
    if (tw->sc->engine.preempt == KVC_PREEMPT_LAST ||
        decoding_pages(tw, rep) <= decoding_free(tw, rep))
        return false;
    while (decoding_pages(tw, rep) > decoding_free(tw, rep))
        preempt(tw, rep, rules_victim(tw, rep));
    rules_guess_again(rep);
    return true;
}

/* Pages that decoding takes are nobody's wish: they come first, then all is published. */
static bool alloc_decoding(struct twin *tw, struct replica *rep)
{
    bool preempted = retract(tw, rep);

    for (uint32_t i = 0; i < rep->running.n; i++) {
        struct req *r = rep->running.at[i];
        uint64_t need = pages_for(tw, r, (uint64_t)r->c + 1);

        if (!twin_decodes(tw, r))
            continue;
        while (r->state == REQ_RUNNING && need > r->new_pages + decoding_free(tw, rep)) {
            preempt(tw, rep, rules_victim(tw, rep));
            preempted = true;
        }
        if (r->state != REQ_RUNNING)
            break;
        if (need > r->new_pages)
            pool_alloc(tw, rep, r, TWIN_DECODING, need - r->new_pages, 0);
    }
    return preempted;
}

/* Decoding ones, those with prompts to compute, or both. Returns whether anything was preempted. */
static bool schedule_running(struct twin *tw, struct replica *rep, uint32_t *budget, bool decoding,
                             bool prompts)
{
    bool preempted = decoding && alloc_decoding(tw, rep);

    for (uint32_t i = 0; i < rep->running.n && *budget > 0; i++) {
        struct req *r = rep->running.at[i];
        uint32_t left = r->N - r->c, tokens = left < *budget ? left : *budget;

        if (twin_decodes(tw, r) ? !decoding : !prompts)
            continue;
        while (r->state == REQ_RUNNING && pages_for(tw, r, (uint64_t)r->c + tokens) >
                                              r->new_pages + pool_free(tw, rep, r->tenant)) {
            preempt(tw, rep, rules_victim(tw, rep));
            preempted = true;
        }
        if (r->state != REQ_RUNNING)
            break;
        schedule_tokens(tw, rep, r, tokens, budget);
    }
    return preempted;
}

static uint64_t above(uint64_t to, uint64_t *from)
{
    uint64_t more = to > *from ? to - *from : 0;

    *from += more;
    return more;
}

/* Splits the prompt tokens behind the hit by what they were missed for. */
static void count_misses(struct twin *tw, const struct replica *rep, struct req *r,
                         const struct reach *here)
{
    uint64_t at = here->T > here->usable ? here->T : here->usable, B = tw->B;
    uint64_t full = r->n_full * B, *missed = tw->out->missed;
    uint32_t other = 0, ever = 0, run = here->run < r->n_full ? here->run : r->n_full;

    for (uint32_t i = 0; i < tw->n_rep; i++) {
        struct reach there;

        if (i == rep->index)
            continue;
        tiers_reach(tw, &tw->rep[i], r, r->L, &there);
        other = there.run > other ? there.run : other;
    }
    while (ever < r->n_full && tw->ever_published[r->path[ever]])
        ever++;
    other = other < r->n_full ? other : r->n_full;
    missed[KVC_MISS_ALIGNMENT] += above(run * B, &at);
    if (twin_fetches(tw)) { /* what the scheduler can't load */
        struct reach all;

        tiers_reach(tw, rep, r, r->N, &all);
        missed[KVC_MISS_NOT_READY] += above((all.run < r->n_full ? all.run : r->n_full) * B, &at);
    }
    missed[KVC_MISS_OTHER_REPLICA] += above(other * B, &at);
    for (; at < ever * B; ) {
        uint32_t to = tw->lost_to[r->path[at / B]];
        uint64_t lost = above((at / B + 1) * B, &at);

        missed[to == tw->n_tenants + 1 ? KVC_MISS_TTL : KVC_MISS_EVICTED] += lost;
        tw->out->missed_to[r->tenant * (tw->n_tenants + TWIN_WHYS) + to] += lost;
    }
    missed[KVC_MISS_NOT_READY] += above(r->asked * B, &at);
    missed[KVC_MISS_FIRST_SIGHT] += above(full, &at);
    missed[r->n_full && r->asked == r->n_full ? KVC_MISS_PARTIAL_BLOCK : KVC_MISS_FIRST_SIGHT] +=
        above(r->L, &at);
}

static bool count_once(struct twin *tw, const struct replica *rep, struct req *r,
                       const struct reach *here)
{
    if (r->counted)
        return false;
    r->counted = true;
    tiers_ask(tw, rep, r);
    r->result->hit_tokens[0] = here->usable;
    uint64_t at = here->usable;
    for (int k = 0; k < 3; k++) {
        r->result->hit_tokens[1 + k] += here->serves[k];
        for (int from = k + 1; from < 3 && here->serves[k]; from++) {
            uint32_t n = (uint32_t)fetch_share(tw, r, from, at, at + here->serves[k]);

            r->result->hit_tokens[1 + k] -= n;
            r->result->hit_tokens[1 + from] += n;
        }
        at += here->serves[k];
    }
    count_misses(tw, rep, r, here);
    return true;
}

enum admit { ADMIT_STOP, ADMIT_NEXT };

static enum admit admit_ready(struct twin *tw, struct replica *rep, uint32_t *budget, bool *any)
{
    struct req *r = rep->ready.at[0];
    uint32_t left = r->N - r->c, tokens = left < *budget ? left : *budget;

    if (!tw->sc->engine.chunked_prefill && left > *budget) {
        if (*any)
            return ADMIT_STOP;
        tokens = left;
    }
    reqs_remove(&rep->ready, r);
    reqs_push(&rep->running, r);
    r->state = REQ_RUNNING;
    schedule_tokens(tw, rep, r, tokens, budget);
    *any = true;
    return ADMIT_NEXT;
}

static void policies_learn(struct twin *tw, struct replica *rep, const struct req *r)
{
    pool_arrive(tw, rep, r);
    tiers_arrive(tw, rep, r);
}

static enum admit park(struct twin *tw, struct replica *rep, struct req *r,
                       const struct reach *reach)
{
    uint32_t h = (reach->usable + tw->B - 1) / tw->B;
    bool first;

    r->usable = reach->usable;
    if (!pool_fits(tw, rep, r, h, rules_need(tw, rep, r, r->N))) {
        r->usable = 0;
        return ADMIT_STOP;
    }
    first = count_once(tw, rep, r, reach);
    waiting_leaves(rep, r, first);
    pool_hold_hit(rep, r, h);
    tiers_load(tw, rep, r, reach); /* first: what it reads must not fall to its own evictions */
    if (first)
        policies_learn(tw, rep, r);
    tiers_touch(tw, rep, r);
    pool_alloc(tw, rep, r, r->tenant, pages_for(tw, r, r->N), r->N);
    reqs_remove(&rep->waiting, r);
    reqs_push(&rep->parked, r);
    r->state = REQ_PARKED;
    r->parked_at = tw->now;
    r->park_order = tw->parks++;
    r->c = tw->setup->parked_has_no_hit ? 0 : reach->usable;
    r->load_T = reach->T;
    return ADMIT_NEXT;
}

static enum admit admit_waiting(struct twin *tw, struct replica *rep, uint32_t *budget, bool *any,
                                bool *asked)
{
    struct req *r = waiting_front(tw, rep, !*asked);
    uint64_t timeout = tw->sc->request_timeout_ns;
    struct reach reach;
    uint32_t h, left, tokens;
    bool first;

    *asked = true;
    fetch_seen(tw, rep, r);
    if (timeout && !r->counted && tw->now - r->arrival > timeout) {
        waiting_leaves(rep, r, false);
        reqs_remove(&rep->waiting, r);
        twin_end(tw, r, KVC_FAILED);
        return ADMIT_NEXT;
    }
    tiers_reach_near(tw, rep, r, r->N, &reach);
    if (reach.T > reach.usable)
        return park(tw, rep, r, &reach);
    h = (reach.usable + tw->B - 1) / tw->B;
    left = r->N - reach.usable;
    tokens = left < *budget ? left : *budget;
    if (!tw->sc->engine.chunked_prefill && left > *budget) {
        if (*any)
            return ADMIT_STOP;
        tokens = left;
    }
    r->usable = reach.usable;
    if (!pool_fits(tw, rep, r, h,
                   rules_need(tw, rep, r, tw->sc->engine.reserve_full_prompt
                                              ? r->N : reach.usable + tokens))) {
        r->usable = 0;
        return ADMIT_STOP;
    }
    first = count_once(tw, rep, r, &reach);
    waiting_leaves(rep, r, first);
    pool_hold_hit(rep, r, h);
    if (first)
        policies_learn(tw, rep, r);
    tiers_touch(tw, rep, r);
    r->c = reach.usable;
    reqs_remove(&rep->waiting, r);
    reqs_push(&rep->running, r);
    r->state = REQ_RUNNING;
    schedule_tokens(tw, rep, r, tokens, budget);
    *any = true;
    return ADMIT_NEXT;
}

/* Whether what the step computes for r is prefill. */
static bool is_chunk(const struct replica *rep, const struct req *r)
{
    return r->sched && (r->c + 1 < r->N || r->generated == 0 || rep->alone);
}

/* Batches fill up with prefill in order, the last as far as it goes, and come out of the last stage
 * one behind the other: in which one the last token of each chunk is. */
static void late(struct replica *rep, const struct kvc_chunk *chunks, size_t n,
                 uint64_t spacing, uint32_t batch)
{
    uint64_t all = 0, token = 0, through = rep->through;
    size_t at = 0;

    for (size_t i = 0; i < n; i++)
        all += chunks[i].tokens;
    for (uint32_t i = 0; i < rep->running.n; i++) {
        struct req *r = rep->running.at[i];

        if (!is_chunk(rep, r))
            continue;
        token += chunks[at++].tokens;
        uint64_t end = batch;
        while (end < token)
            end += batch;
        if (end > all) /* the last: for so many tokens beyond the first batch */
            end = all;
        r->late_ns = end > batch ? spacing * (end - batch) / batch : 0;
        if (rep->due + r->late_ns < rep->through + spacing * end / batch)
            r->late_ns = rep->through + spacing * end / batch - rep->due; /* behind earlier ones */
        if (rep->due + r->late_ns > through)
            through = rep->due + r->late_ns;
    }
    rep->through = through;
}

/* One of a group of data-parallel ranks that compute so many tokens, the busiest most: 0, alone. */
static void start_step(struct twin *tw, struct replica *rep, uint64_t sum, uint64_t most)
{
    struct kvc_chunk *chunks = twin_alloc(rep->running.n, sizeof *chunks);
    size_t n_chunks = 0;
    uint32_t n_decode = 0, n_sampled = 0;
    uint64_t context = 0, host = 0, tokens = 0;

    for (uint32_t i = 0; i < rep->running.n; i++) {
        const struct req *r = rep->running.at[i];

        if (r->sched == 0)
            continue;
        tokens += r->sched;
        if (is_chunk(rep, r)) {
            chunks[n_chunks++] = (struct kvc_chunk){r->sched, r->c};
        } else {
            n_decode++;
            context += (uint64_t)r->c + 1;
        }
        n_sampled += r->c + r->sched == r->N;
    }
    if (sum) {
        rep->due = tw->now + tw->setup->clock.rank(tw->setup->clock.user, chunks, n_chunks,
                                                   n_decode, context, n_sampled, sum, most,
                                                   &host);
    } else if (n_chunks) {
        rep->due = tw->now + tw->setup->clock.step(tw->setup->clock.user, chunks, n_chunks,
                                                   n_decode, context, n_sampled, &host);
        rep->stretch = false;
        uint64_t compile = times_compile(tw, rep, tokens);
        rep->due += compile;
        host += compile;
        if (tw->sc->cluster.pp > 1) {
            uint32_t batch;
            uint64_t spacing = tw->setup->clock.spacing(tw->setup->clock.user, chunks, n_chunks,
                                                        n_decode, context, n_sampled, &batch);
            late(rep, chunks, n_chunks, spacing, batch);
        }
    } else {
        rep->due = times_decode(tw, rep, n_decode, context, &host);
    }
    rep->host_ns = host;
    rep->busy = true;
    tw->out->steps++;
    kvc_free(chunks);
}

static uint64_t scheduled(const struct replica *rep)
{
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < rep->running.n; i++)
        tokens += rep->running.at[i]->sched;
    return tokens;
}

static void admit(struct twin *tw, struct replica *rep, uint32_t *budget)
{
    bool any = scheduled(rep), asked = false;
    enum admit go = ADMIT_NEXT;

    while (go == ADMIT_NEXT && *budget > 0 && rep->running.n < tw->sc->engine.max_seqs &&
           rep->ready.n + rep->waiting.n > 0)
        go = rep->ready.n ? admit_ready(tw, rep, budget, &any)
                          : admit_waiting(tw, rep, budget, &any, &asked);
}

/* Returns whether anything was preempted. */
static bool schedule(struct twin *tw, struct replica *rep)
{
    uint32_t budget = tw->sc->engine.max_batched_tokens * tw->sc->cluster.pp;
    bool first = tw->sc->engine.prefill == KVC_PREFILL_FIRST;
    bool preempted = schedule_running(tw, rep, &budget, !first, true);

    if (!preempted)
        admit(tw, rep, &budget);
    rep->alone = first && scheduled(rep);
    budget = first ? rep->running.n : budget; /* no limit to decodes */
    if (first && !rep->alone)
        preempted |= schedule_running(tw, rep, &budget, true, false);
    return preempted;
}

static void hear(struct twin *tw, struct replica *rep, struct reqs *list)
{
    while (list->n) {
        struct req *r = list->at[0];

        reqs_remove(list, r);
        twin_hear(tw, rep, r);
    }
}

/* Over again at once where somebody had to go, for whoever else can run now. */
static bool schedule_until_settled(struct twin *tw, struct replica *rep)
{
    while (schedule(tw, rep))
        if (scheduled(rep))
            return true;
    return scheduled(rep);
}

/* Whether there is something to compute next. */
static bool next_step(struct twin *tw, struct replica *rep)
{
    bool any;

    if (rep->busy)
        account(tw, rep);
    rep->falls += rep->busy && !rep->alone;
    rep->busy = false;
    rep->due = KVC_TIME_NONE;
    hear(tw, rep, &rep->next);
    any = schedule_until_settled(tw, rep);
    if (!any && rep->late.n) { /* nothing was planned: it looks again */
        hear(tw, rep, &rep->late);
        any = schedule_until_settled(tw, rep);
    }
    while (rep->late.n) {
        reqs_push(&rep->next, rep->late.at[0]);
        reqs_remove(&rep->late, rep->late.at[0]);
    }
    if (rep->n_evicted)
        tiers_after_evict(tw, rep);
    rep->n_evicted = 0;
    if (rep->running.n > tw->out->peak_running)
        tw->out->peak_running = rep->running.n;
    if (!any) {
        rep->ratio = TWIN_RATIO;
        rep->falls = 0;
    }
    return any;
}

/* All ranks schedule in turn, those with work begin at once, and the slowest ends the step of all;
 * the first one is due for them. */
static void step_group(struct twin *tw, struct replica *first, uint32_t ranks)
{
    uint64_t all = 0, most = 0, end = KVC_TIME_NONE;

    for (struct replica *rep = first; rep < first + ranks; rep++) {
        uint64_t own = next_step(tw, rep) ? scheduled(rep) : 0;
        all += own;
        most = own > most ? own : most;
    }
    for (struct replica *rep = first; rep < first + ranks; rep++) {
        if (!scheduled(rep))
            continue;
        start_step(tw, rep, all, most);
        end = end == KVC_TIME_NONE || rep->due > end ? rep->due : end;
        rep->due = KVC_TIME_NONE;
    }
    first->due = end;
}

void step_due(struct twin *tw, struct replica *rep)
{
    if (tw->sc->cluster.dp > 1)
        step_group(tw, rep, tw->sc->cluster.dp);
    else if (next_step(tw, rep))
        start_step(tw, rep, 0, 0);
}

void step_wake(struct twin *tw, struct replica *rep)
{
    uint32_t ranks = tw->sc->cluster.dp;
    struct replica *first = &tw->rep[rep->index / ranks * ranks];

    if (ranks > 1 ? first->due == KVC_TIME_NONE : !rep->busy)
        first->due = tw->now;
}

/* All transfers of a parked request have ended. */
void step_load_done(struct twin *tw, struct req *r)
{
    struct replica *rep = &tw->rep[r->replica];

    pool_publish(tw, rep, r, r->load_T);
    r->c = r->load_T;
    r->load_ns += tw->now - r->parked_at;
    reqs_remove(&rep->parked, r);
    /* "in the order they were parked" */
    uint32_t i = rep->ready.n;
    reqs_push(&rep->ready, r);
    for (; i > 0 && rep->ready.at[i - 1]->park_order > r->park_order; i--)
        rep->ready.at[i] = rep->ready.at[i - 1];
    rep->ready.at[i] = r;
    r->state = REQ_READY;
    step_wake(tw, rep);
}
