/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's clock: routing, and one event at a time. */
#include "tests/twins/twin_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

void *twin_alloc(size_t n, size_t size)
{
    void *p = kvc_calloc(n ? n : 1, size);

    if (!p)
        abort();
    return p;
}

void reqs_push(struct reqs *list, struct req *r)
{
    if (list->n == list->cap) {
        list->cap = 2 * list->cap + 8;
        list->at = kvc_realloc(list->at, list->cap, sizeof(struct req *));
        if (!list->at)
            abort();
    }
    list->at[list->n++] = r;
}

void reqs_push_front(struct reqs *list, struct req *r)
{
    reqs_push(list, r);
    for (uint32_t i = list->n - 1; i > 0; i--)
        list->at[i] = list->at[i - 1];
    list->at[0] = r;
}

void reqs_remove(struct reqs *list, const struct req *r)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < list->n; i++)
        if (list->at[i] != r)
            list->at[k++] = list->at[i];
    list->n = k;
}

/* ---- routing ---- */

static void view_add(struct kvc_route_view *view, const struct reqs *list, bool running)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct req *r = list->at[i];

        view->queued_tokens += r->L > r->c ? r->L - r->c : 0;
        if (running)
            view->context_tokens += r->c;
    }
    if (running)
        view->running += list->n;
    else
        view->waiting += list->n;
}

static uint32_t route(struct twin *tw, const struct req *r)
{
    struct kvc_route_view *views = twin_alloc(tw->n_rep, sizeof *views);
    struct kvc_route_request ask = {tw->arrivals, KVC_ID_NONE, r->L};
    const struct kvc_router_ops *ops = tw->setup->router;
    uint32_t pick;

    if (tw->trace->session)
        ask.session = tw->trace->session[r->index];
    for (uint32_t i = 0; i < tw->n_rep; i++) {
        const struct replica *rep = &tw->rep[i];

        view_add(&views[i], &rep->running, true);
        view_add(&views[i], &rep->waiting, false);
        view_add(&views[i], &rep->parked, false);
        view_add(&views[i], &rep->ready, false);
        view_add(&views[i], &rep->away, false);
        if (ops->wants_prefix) {
            struct reach reach;

            tiers_reach(tw, rep, r, r->L, &reach);
            views[i].hit_tokens = reach.usable;
            views[i].hit_tokens_any = reach.T > reach.usable ? reach.T : reach.usable;
        }
    }
    pick = ops->pick(NULL, &ask, views, tw->n_rep, tw->sc->router.load_weight, &tw->rng);
    kvc_free(views);
    return pick;
}

static bool servable(const struct twin *tw, const struct req *r)
{
    uint64_t tokens = (uint64_t)r->L + r->O, limit = tw->sc->engine.max_model_len;
    uint64_t reserved = 0;

    for (uint32_t t = 0; t < tw->n_tenants; t++)
        reserved += t == r->tenant ? 0 : tw->rules[t].reserve[0];
    return (tokens - 1 + tw->P - 1) / tw->P + tw->setup->sequence_pages + reserved <=
               tw->setup->pages &&
           (!limit || tokens <= limit);
}

/* By priority, and where fetches make some come late, by when each came first. */
static bool goes_before(const struct twin *tw, const struct req *a, const struct req *b)
{
    uint32_t pa = tw->rules[a->tenant].priority, pb = tw->rules[b->tenant].priority;
    bool fcfs = !tw->sc->engine.order[0] || strcmp(tw->sc->engine.order, "fcfs") == 0;

    return pa != pb ? pa < pb : twin_fetches(tw) && fcfs && a->place < b->place;
}

void twin_hear(struct twin *tw, struct replica *rep, struct req *r)
{
    reqs_remove(&rep->away, r);
    waiting_joins(tw, rep, r);
    reqs_push(&rep->waiting, r);
    for (uint32_t i = rep->waiting.n - 1;
         i > 0 && goes_before(tw, r, rep->waiting.at[i - 1]); i--) {
        rep->waiting.at[i] = rep->waiting.at[i - 1];
        rep->waiting.at[i - 1] = r;
    }
    r->state = REQ_WAITING;
}

static void join(struct twin *tw, struct req *r)
{
    struct replica *rep = &tw->rep[r->replica];
    uint64_t due = tw->rep[r->replica - r->replica % tw->sc->cluster.dp].due; /* of its group */

    r->result->unheard_ns = due == KVC_TIME_NONE ? 0 : due - tw->now;
    tw->pending[r->index].time = KVC_TIME_NONE;
    if (!fetch_begin(tw, rep, r))
        twin_come(tw, r);
}

void twin_come(struct twin *tw, struct req *r)
{
    struct replica *rep = &tw->rep[r->replica];

    if (rep->busy && tw->sc->engine.plan_ahead && tw->sc->cluster.pp == 1) {
        reqs_push(&rep->late, r); /* the step after the one under way is planned */
        return;
    }
    twin_hear(tw, rep, r);
    step_wake(tw, rep);
}

static void arrive(struct twin *tw, struct req *r)
{
    bool ok = servable(tw, r);

    r->arrival = r->result->arrival_ns = tw->now;
    r->result->measured = tw->now >= tw->sc->warmup_ns;
    tw->pending[r->index].time = KVC_TIME_NONE;
    if (tw->trace->row_status && tw->trace->row_status[r->index] == KVC_ROW_FAILED) {
        tw->arrivals++;
        tw->in_system++;
        twin_end(tw, r, KVC_FAILED);
        return;
    }
    while (r->asked < r->n_full && tw->asked[r->path[r->asked]])
        r->asked++;
    while (r->shared < r->n_path &&
           (tw->setup->selective_by_path ? tw->had : tw->asked)[r->path[r->shared]])
        r->shared++;
    if (ok || tw->setup->route_unservable)
        r->replica = route(tw, r);
    tw->arrivals++;
    for (uint32_t b = 0; b < r->n_full; b++)
        tw->asked[r->path[b]] = true;
    for (uint32_t b = 0; b < r->n_path; b++)
        tw->had[r->path[b]] = true;
    tw->in_system++;
    if (!ok) {
        twin_end(tw, r, KVC_UNSERVABLE);
        return;
    }
    r->result->replica = r->replica;
    reqs_push(&tw->rep[r->replica].away, r);
    tw->pending[r->index].join = true;
    tw->pending[r->index].time = tw->now + tw->sc->router.latency_ns;
    if (tw->sc->router.latency_ns == 0)
        join(tw, r);
}

/* ---- ends ---- */

static void fill_latencies(struct twin *tw, struct req *r)
{
    struct kvc_request_result *res = r->result;
    uint64_t front = tw->setup->clock.front_ns;

    res->ttft_ns = r->first_token - r->arrival + r->first_late + front;
    res->e2e_ns = r->last_token - r->arrival + r->late_ns + front;
    res->route_ns = tw->sc->router.latency_ns;
    res->queue_ns = r->first_start - r->arrival - res->route_ns - r->load_before_first;
    res->host_ns = r->host_ns + front;
    res->prefill_ns = res->ttft_ns - res->route_ns - res->load_ns - res->queue_ns - res->host_ns;
}

void twin_end(struct twin *tw, struct req *r, enum kvc_outcome outcome)
{
    uint64_t seen = tw->now;

    r->state = REQ_DONE;
    tw->in_system--;
    r->result->outcome = (uint8_t)outcome;
    if (outcome == KVC_COMPLETED) {
        fill_latencies(tw, r);
        seen += tw->setup->clock.front_ns;
    } else {
        tw->out->missed[KVC_MISS_FAILED] += r->L;
    }
    tw->ended++;
    tw->end_ns = seen > tw->end_ns ? seen : tw->end_ns;
    arrivals_client_sees_end(tw, r, seen);
}

/* ---- set-up and main loop ---- */

static void fill_path(struct twin *tw, struct req *r)
{
    const struct kvc_trace *t = tw->trace;
    uint32_t i = r->index, seg = t->prompt_seg[i], n, length;
    uint32_t *segs;

    r->n_full = r->n_path = kvc_trace_full_blocks(t, i);
    if (t->output_seg && t->output_seg[i] != KVC_SEG_NONE && t->output_seg[i] != seg) {
        seg = t->output_seg[i];
        r->n_path = t->seg_depth[seg] + t->seg_len[seg];
    }
    r->path = twin_alloc((size_t)r->n_path, sizeof *r->path);
    r->held = twin_alloc((size_t)r->n_path, sizeof(struct copy *));
    if (seg == KVC_SEG_NONE)
        return;
    length = 0;
    for (uint32_t s = seg; s != KVC_SEG_NONE; s = t->seg_parent[s])
        length++;
    segs = twin_alloc(length, sizeof *segs);
    n = length;
    for (uint32_t s = seg; s != KVC_SEG_NONE; s = t->seg_parent[s])
        segs[--n] = s;
    n = 0;
    for (uint32_t k = 0; k < length; k++)
        for (uint32_t off = 0; off < t->seg_len[segs[k]] && n < r->n_path; off++)
            r->path[n++] = tw->seg_base[segs[k]] + off;
    kvc_free(segs);
}

static void create_requests(struct twin *tw)
{
    const struct kvc_trace *t = tw->trace;

    tw->n_req = (uint32_t)t->n_requests;
    tw->req = twin_alloc(tw->n_req, sizeof *tw->req);
    tw->out->n = tw->n_req;
    tw->out->requests = twin_alloc(tw->n_req, sizeof *tw->out->requests);
    tw->pending = twin_alloc(tw->n_req, sizeof *tw->pending);
    tw->next_turn = twin_alloc(tw->n_req, sizeof *tw->next_turn);
    tw->own_time = twin_alloc(tw->n_req, sizeof *tw->own_time);
    tw->sent = twin_alloc(tw->n_req, sizeof *tw->sent);
    tw->first_of_session = twin_alloc(tw->n_req, sizeof *tw->first_of_session);
    for (uint32_t i = 0; i < tw->n_req; i++) {
        struct req *r = &tw->req[i];
        struct kvc_request_result *res = &tw->out->requests[i];

        r->index = i;
        r->result = res;
        r->L = r->N = res->input_tokens = t->input_tokens[i];
        r->O = t->output_tokens[i] ? t->output_tokens[i] : 1;
        res->output_tokens = t->output_tokens[i];
        res->arrival_ns = res->ttft_ns = res->e2e_ns = KVC_TIME_NONE;
        res->outcome = KVC_FAILED;
        res->replica = r->replica = KVC_ID_NONE;
        tw->pending[i].time = KVC_TIME_NONE;
        tw->next_turn[i] = TWIN_NONE;
        fill_path(tw, r);
    }
}

static void create(struct twin *tw)
{
    const struct kvc_trace *t = tw->trace;

    tw->B = t->block_tokens ? t->block_tokens : 1;
    tw->P = tw->sc->engine.page_tokens;
    tw->rng = kvc_rng_stream(tw->sc->seed, "router");
    tw->seg_base = twin_alloc(t->n_segments, sizeof *tw->seg_base);
    for (uint32_t s = 0; s < t->n_segments; s++) {
        tw->seg_base[s] = tw->n_nodes;
        tw->n_nodes += t->seg_len[s];
    }
    tw->ever_published = twin_alloc(tw->n_nodes, sizeof(bool));
    tw->asked = twin_alloc(tw->n_nodes, sizeof(bool));
    tw->had = twin_alloc(tw->n_nodes, sizeof(bool));
    tw->node_depth = twin_alloc(tw->n_nodes, sizeof *tw->node_depth);
    for (uint32_t s = 0; s < t->n_segments; s++)
        for (uint32_t off = 0; off < t->seg_len[s]; off++)
            tw->node_depth[tw->seg_base[s] + off] = t->seg_depth[s] + off;
    tw->node_parent = twin_alloc(tw->n_nodes, sizeof *tw->node_parent);
    for (uint32_t s = 0; s < t->n_segments; s++) {
        uint32_t parent = t->seg_parent[s], base = tw->seg_base[s];

        tw->node_parent[base] =
            parent == KVC_SEG_NONE ? TWIN_NONE : tw->seg_base[parent] + t->seg_len[parent] - 1;
        for (uint32_t off = 1; off < t->seg_len[s]; off++)
            tw->node_parent[base + off] = base + off - 1;
    }
    tw->n_rep = tw->sc->cluster.replicas * tw->sc->cluster.dp;
    tw->rep = twin_alloc(tw->n_rep, sizeof *tw->rep);
    for (uint32_t i = 0; i < tw->n_rep; i++) {
        tw->rep[i].index = i;
        tw->rep[i].nodes = twin_alloc(tw->n_nodes, sizeof *tw->rep[i].nodes);
        tw->rep[i].plain = tw->setup->pages;
        tw->rep[i].fifo = twin_is_fifo(tw->sc->hbm_policy);
        tw->rep[i].order =
            twin_order_create(tw, tw->sc->hbm_policy, tw->setup->pages * tw->P / tw->B);
        tw->rep[i].due = KVC_TIME_NONE;
        tw->rep[i].ratio = TWIN_RATIO;
        times_start(tw, &tw->rep[i]);
    }
    create_requests(tw);
    tenants_create(tw);
    for (uint32_t i = 0; i < tw->n_rep; i++)
        tw->rep[i].served = twin_alloc(tw->n_tenants, sizeof *tw->rep[i].served);
    for (uint32_t i = 0; i < tw->n_req; i++)
        tw->req[i].tenant = tenant_of(tw, i);
    arrivals_plan(tw);
    tiers_create(tw);
}

static void destroy(struct twin *tw)
{
    tiers_destroy(tw);
    tenants_destroy(tw);
    for (uint32_t i = 0; i < tw->n_rep; i++) {
        struct replica *rep = &tw->rep[i];

        kvc_free(rep->served);
        for (struct copy *c = rep->q_head, *next; c; c = next) {
            next = c->q_next;
            if (c->node == TWIN_NONE)
                kvc_free(c);
        }
        for (uint32_t k = 0; k < tw->n_nodes; k++)
            for (struct copy *c = rep->nodes[k].oldest, *next; c; c = next) {
                next = c->younger;
                kvc_free(c);
            }
        twin_order_destroy(rep->order);
        kvc_free(rep->nodes);
        kvc_free(rep->running.at);
        kvc_free(rep->waiting.at);
        kvc_free(rep->ready.at);
        kvc_free(rep->parked.at);
        kvc_free(rep->away.at);
        kvc_free(rep->late.at);
        kvc_free(rep->next.at);
        kvc_free(rep->members.at);
        kvc_free(rep->evicted);
        kvc_free(rep->evicted_of);
    }
    for (uint32_t i = 0; i < tw->n_req; i++) {
        kvc_free(tw->req[i].path);
        kvc_free(tw->req[i].held);
    }
    kvc_free(tw->rep);
    kvc_free(tw->req);
    kvc_free(tw->pending);
    kvc_free(tw->next_turn);
    kvc_free(tw->own_time);
    kvc_free(tw->sent);
    kvc_free(tw->first_of_session);
    kvc_free(tw->seg_base);
    kvc_free(tw->ever_published);
    kvc_free(tw->asked);
    kvc_free(tw->had);
    kvc_free(tw->node_depth);
    kvc_free(tw->node_parent);
}

static bool arrives_before(const struct twin *tw, uint32_t a, uint32_t b)
{
    if (tw->pending[a].time != tw->pending[b].time)
        return tw->pending[a].time < tw->pending[b].time;
    return a < b;
}

static uint64_t next_expiry(const struct twin *tw)
{
    uint64_t first = tiers_next_expiry(tw);

    for (uint32_t i = 0; i < tw->n_rep; i++) {
        uint64_t at = pool_next_expiry(&tw->rep[i]);

        first = at < first ? at : first;
    }
    return first;
}

static uint64_t next_round(const struct twin *tw)
{
    bool due = tiers_round_due(tw);

    for (uint32_t i = 0; i < tw->n_rep; i++)
        due |= pool_round_due(tw, &tw->rep[i]);
    return due ? (tw->now / TWIN_ROUND_NS + 1) * TWIN_ROUND_NS : KVC_TIME_NONE;
}

/* What is evicted while a replica schedules waits for its end; what expires does not. */
static void expire(struct twin *tw, bool round)
{
    for (uint32_t i = 0; i < tw->n_rep; i++) {
        struct replica *rep = &tw->rep[i];

        pool_expire(tw, rep);
        if (round)
            pool_round(tw, rep);
        if (rep->n_evicted)
            tiers_after_evict(tw, rep);
        rep->n_evicted = 0;
    }
    tiers_expire(tw, round);
}

/* The next event: earliest, then transfers, arrivals, replicas. Returns false when none is left. */
static bool advance(struct twin *tw)
{
    uint64_t transfer = tiers_next(tw), due;
    uint32_t first = TWIN_NONE, rep = 0, request;

    for (uint32_t i = 0; i < tw->n_req; i++)
        if (tw->pending[i].time != KVC_TIME_NONE &&
            (first == TWIN_NONE || arrives_before(tw, i, first)))
            first = i;
    for (uint32_t i = 1; i < tw->n_rep; i++)
        if (tw->rep[i].due < tw->rep[rep].due)
            rep = i;
    due = tw->rep[rep].due;
    request = first;
    uint64_t arrival = request == TWIN_NONE ? KVC_TIME_NONE : tw->pending[request].time;
    uint64_t next = transfer < arrival ? transfer : arrival;

    next = next < due ? next : due;
    if (next == KVC_TIME_NONE)
        return false;
    uint64_t expiry = tw->ruled ? next_expiry(tw) : KVC_TIME_NONE;
    uint64_t round = tw->ruled ? next_round(tw) : KVC_TIME_NONE;

    expiry = round < expiry ? round : expiry;
    bool expires = expiry <= next;

    if (expires) /* before all else of its time */
        next = expiry > tw->now ? expiry : tw->now;
    if (tw->ended == tw->n_req && next > tw->end_ns)
        return false; /* what is still written or expires concerns nobody */
    tw->out->request_ns += (double)tw->in_system * (double)(next - tw->now);
    bool rounds = next > tw->now && next % TWIN_ROUND_NS == 0;

    tw->now = next;
    if (expires)
        expire(tw, rounds);
    else if (transfer == next)
        tiers_advance(tw);
    else if (arrival == next && tw->pending[request].join)
        join(tw, &tw->req[request]);
    else if (arrival == next)
        arrive(tw, &tw->req[request]);
    else
        step_due(tw, &tw->rep[rep]);
    return true;
}

void replay_twin_run(const struct kvc_trace *trace, const struct kvc_scenario *scenario,
              const struct twin_setup *setup, struct twin_result *out)
{
    struct twin tw = {.trace = trace, .sc = scenario, .setup = setup, .out = out};
    uint64_t at_once = 0, last = 0;

    memset(out, 0, sizeof *out);
    create(&tw);
    while (advance(&tw)) {
        at_once = tw.now == last ? at_once + 1 : 0;
        last = tw.now;
        if (at_once > 1000000)
            break; /* the rules go round in circles */
    }
    out->makespan_ns = tw.now;
    out->stalled = tw.in_system > 0;
    destroy(&tw);
}

void replay_twin_clear(struct twin_result *result)
{
    kvc_free(result->requests);
    kvc_free(result->evicted_blocks);
    kvc_free(result->missed_to);
    memset(result, 0, sizeof *result);
}
