/* SPDX-License-Identifier: Apache-2.0
 * Requests come and go: their arrival, the replica that each is sent to, their end. */
#include "sim/replay/engine.h"

#include "base/alloc.h"
#include "base/whole.h"

#include <string.h>

static uint32_t new_job(struct kvc_engine *e)
{
    uint32_t i = e->free_job;
    if (i != KVC_NONE) {
        e->free_job = e->jobs[i].next;
    } else {
        if (!kvc_grow((void **)&e->jobs, &e->cap_jobs, e->n_jobs + 1, sizeof(*e->jobs))) {
            e->nomem = true;
            return KVC_NONE;
        }
        i = (uint32_t)e->n_jobs++;
    }
    memset(&e->jobs[i], 0, sizeof(e->jobs[i]));
    return i;
}

void kvc_engine_missed(struct kvc_engine *e, uint32_t request, enum kvc_miss_cause cause,
                       uint64_t tokens)
{
    e->missed[cause] += tokens;
    if (e->tenant_missed)
        e->tenant_missed[kvc_tenant_of(&e->tenants, request)][cause] += tokens;
    kvc_timeline_add(&e->timeline, KVC_CHANNEL_MISSED + (uint32_t)cause, (double)tokens);
}

void kvc_engine_ended(struct kvc_engine *e, uint32_t job, enum kvc_outcome outcome)
{
    uint32_t request = e->jobs[job].request;
    struct kvc_request_result *res = &e->results[request];
    uint64_t client_ns = e->now;
    e->jobs[job].order = 0;
    e->jobs[job].next = e->free_job;
    e->free_job = job;
    res->outcome = (uint8_t)outcome;
    if (outcome == KVC_COMPLETED)
        client_ns += e->front_ns;
    else
        kvc_engine_missed(e, request, KVC_MISS_FAILED, res->input_tokens);
    kvc_arrivals_ended(e->arrivals, request, client_ns);
    if (client_ns > e->end_ns)
        e->end_ns = client_ns;
    e->done++;
}

/* Leading blocks of the path that earlier arrivals asked for; from now on the full ones of this
 * prompt are too. */
static uint32_t mark_seen(struct kvc_engine *e, struct kvc_path path, uint32_t full, bool anywhere)
{
    uint32_t before = 0;
    bool leading = true;
    for (uint32_t k = 0; k < path.n; k++) {
        uint32_t depth = path.spans[k].depth, len = path.spans[k].len;
        uint32_t s = path.spans[k].seg;
        uint32_t *seen = anywhere ? &e->seen_anywhere[e->spaces->seg_from[s]]
                                  : &e->segments[s].seen;
        if (full <= depth && !leading)
            break;
        uint32_t n = full <= depth ? 0 : full - depth < len ? full - depth : len;
        if (leading)
            before = depth + *seen;
        leading &= *seen >= len;
        if (*seen < n)
            *seen = n;
    }
    return before;
}

/* A request must fit beside all that others have reserved, so that it can't wait for ever. */
static bool servable(struct kvc_engine *e, const struct kvc_job *j)
{
    uint64_t most = (uint64_t)j->input + j->output - 1;
    uint64_t pages = kvc_div_up(most, e->page_tokens) + e->sequence_pages;
    uint64_t all = e->replicas[0].pool.pages;
    uint32_t limit = e->sc->engine.max_model_len;
    if (limit && most >= limit)
        return false;
    bool beside = pages + kvc_tenants_reserved(&e->tenants, j->tenant) <= all;
    e->crowded_out += !beside && pages <= all;
    return beside;
}

static uint32_t route(struct kvc_engine *e, const struct kvc_job *j, uint64_t index)
{
    if (e->n_replicas == 1)
        return 0;
    for (uint32_t i = 0; i < e->n_replicas; i++) {
        struct kvc_replica *r = &e->replicas[i];
        if (e->router.ops->wants_load)
            kvc_replica_view(e, r, &e->views[i]);
        if (!e->router.ops->wants_prefix || !j->path_blocks)
            continue;
        kvc_replica_catch_up(e, r);
        struct kvc_reach reach;
        struct kvc_path path = kvc_engine_path(e, j->leaf, 0);
        uint32_t full = j->input / e->block_tokens;
        kvc_tiers_lookup(e, r, path, full < j->path_blocks ? full : j->path_blocks, j->known,
                         &reach);
        e->views[i].hit_tokens = reach.usable;
        e->views[i].hit_tokens_any = reach.tokens > reach.usable ? reach.tokens : reach.usable;
    }
    uint32_t session = e->trace->session ? e->trace->session[j->request] : KVC_ID_NONE;
    struct kvc_route_request request = {index, session, j->input};
    return kvc_routing_pick(&e->routing, &request, e->views, e->sc->router.load_weight,
                            &e->router_rng);
}

static void put_on_the_way(struct kvc_engine *e, uint32_t job, uint64_t time_ns)
{
    if (e->way_n == e->way_cap) {
        size_t cap = e->way_cap ? 2 * e->way_cap : 64;
        struct kvc_on_the_way *way = kvc_malloc(cap, sizeof(*way));
        if (!way) {
            e->nomem = true;
            return;
        }
        for (size_t i = 0; i < e->way_n; i++)
            way[i] = e->way[(e->way_head + i) % e->way_cap];
        kvc_free(e->way);
        e->way = way;
        e->way_cap = cap;
        e->way_head = 0;
    }
    e->way[(e->way_head + e->way_n++) % e->way_cap] = (struct kvc_on_the_way){time_ns, job};
}

void kvc_engine_routed(struct kvc_engine *e)
{
    uint32_t job = e->way[e->way_head].job;
    e->way_head = (e->way_head + 1) % e->way_cap;
    e->way_n--;
    kvc_replica_enqueue(e, job);
}

static uint32_t output_of(const struct kvc_engine *e, uint32_t request)
{
    double tokens = e->trace->output_tokens[request] * e->sc->engine.output_inflation;

    return tokens < UINT32_MAX - 1 ? (uint32_t)(tokens + 0.5) : UINT32_MAX - 1;
}

static void fill_job(struct kvc_engine *e, struct kvc_job *j, uint32_t request)
{
    const struct kvc_trace *t = e->trace;
    j->request = request;
    j->tenant = kvc_tenant_of(&e->tenants, request);
    j->priority = e->tenants.priority ? e->tenants.priority[j->tenant] : 0;
    j->input = j->known = t->input_tokens[request];
    j->output = output_of(e, request) ? output_of(e, request) : 1;
    j->first_scheduled_ns = KVC_TIME_NONE;
    j->leaf = KVC_SEG_NONE;
    if (!e->sc->engine.prefix_caching)
        return;
    j->leaf = t->prompt_seg[request];
    j->path_blocks = kvc_trace_full_blocks(t, request);
    uint32_t out = t->output_seg ? t->output_seg[request] : KVC_SEG_NONE;
    if (out != KVC_SEG_NONE && t->seg_depth[out] + t->seg_len[out] >= j->path_blocks) {
        j->leaf = out;
        j->path_blocks = t->seg_depth[out] + t->seg_len[out];
    }
}

void kvc_engine_arrive(struct kvc_engine *e, uint32_t request)
{
    struct kvc_request_result *res = &e->results[request];
    uint64_t index = e->arrived++;
    res->arrival_ns = e->now;
    res->input_tokens = e->trace->input_tokens[request];
    res->output_tokens = output_of(e, request);
    res->measured = e->now >= e->sc->warmup_ns;
    res->replica = KVC_NONE;
    kvc_timeline_add(&e->timeline, KVC_CHANNEL_ARRIVALS, 1);
    kvc_timeline_add(&e->timeline, KVC_CHANNEL_INPUT_TOKENS, (double)res->input_tokens);
    uint32_t job = new_job(e);
    if (job == KVC_NONE)
        return;
    struct kvc_job *j = &e->jobs[job];
    fill_job(e, j, request);
    if (e->trace->row_status && e->trace->row_status[request] == KVC_ROW_FAILED) {
        kvc_engine_ended(e, job, KVC_FAILED);
        return;
    }
    uint32_t full = kvc_trace_full_blocks(e->trace, request);
    uint32_t leaf = j->leaf == KVC_SEG_NONE ? e->trace->prompt_seg[request] : j->leaf;
    struct kvc_path path = kvc_engine_path(e, leaf, 0);
    j->again = mark_seen(e, path, full, false);
    j->arrived_before = j->again < full ? j->again : full;
    uint32_t known = e->spaces ? mark_seen(e, path, full, true) : j->again;
    j->known_before = known < full ? known : full;
    if (!servable(e, j)) {
        kvc_engine_ended(e, job, KVC_UNSERVABLE);
        return;
    }
    j->replica = res->replica = route(e, j, index);
    res->route_ns = e->sc->router.latency_ns;
    struct kvc_replica *r = &e->replicas[j->replica];
    r->on_the_way++;
    r->queued_tokens += j->input;
    r->requests++;
    r->input_tokens += j->input;
    e->waiting_now++;
    if (e->sc->router.latency_ns)
        put_on_the_way(e, job, e->now + e->sc->router.latency_ns);
    else
        kvc_replica_enqueue(e, job);
}
