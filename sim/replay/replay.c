/* SPDX-License-Identifier: Apache-2.0
 * The replay: one event loop over arrivals, transfers and replicas that are due. */
#include "sim/replay/collect.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/sized.h"
#include "models/user_profile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define YEARS 146
#define LATEST_NS (YEARS * 366ull * 86400 * 1000000000) /* sums of two times must fit 64 bits */

struct kvc_path kvc_engine_path(struct kvc_engine *e, uint32_t leaf, uint32_t row)
{
    if (leaf == KVC_SEG_NONE)
        return (struct kvc_path){NULL, 0};
    struct kvc_span *spans = e->paths + (size_t)row * e->longest_path;
    uint32_t *n = &e->path_segments[row], k = e->longest_path; /* filled from the back */
    if (!*n || spans[k - 1].seg != leaf) { /* often it is there from the call before */
        for (uint32_t s = leaf; s != KVC_SEG_NONE; s = e->segments[s].parent)
            spans[--k] = (struct kvc_span){s, e->segments[s].depth, e->segments[s].len};
        *n = e->longest_path - k;
    }
    return (struct kvc_path){spans + e->longest_path - *n, *n};
}

/* ---- replicas that are due: a heap by (time, id) ---- */

static bool due_before(const struct kvc_engine *e, uint32_t a, uint32_t b)
{
    uint64_t ta = e->replicas[a].due_ns, tb = e->replicas[b].due_ns;
    return ta != tb ? ta < tb : a < b;
}

static void heap_set(struct kvc_engine *e, uint32_t i, uint32_t id)
{
    e->due_heap[i] = id;
    e->replicas[id].heap_pos = i;
}

static void heap_sift(struct kvc_engine *e, uint32_t i)
{
    uint32_t id = e->due_heap[i];
    while (i && due_before(e, id, e->due_heap[(i - 1) / 2])) {
        heap_set(e, i, e->due_heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (uint32_t c = 2 * i + 1; c < e->n_due; c = 2 * i + 1) {
        if (c + 1 < e->n_due && due_before(e, e->due_heap[c + 1], e->due_heap[c]))
            c++;
        if (!due_before(e, e->due_heap[c], id))
            break;
        heap_set(e, i, e->due_heap[c]);
        i = c;
    }
    heap_set(e, i, id);
}

void kvc_engine_due(struct kvc_engine *e, struct kvc_replica *r, uint64_t time_ns)
{
    r->due_ns = time_ns;
    if (time_ns == KVC_TIME_NONE) {
        if (r->heap_pos == KVC_NONE)
            return;
        uint32_t at = r->heap_pos, last = e->due_heap[--e->n_due];
        r->heap_pos = KVC_NONE;
        if (last != r->id) {
            heap_set(e, at, last);
            heap_sift(e, at);
        }
        return;
    }
    if (r->heap_pos == KVC_NONE)
        heap_set(e, e->n_due++, r->id);
    heap_sift(e, r->heap_pos);
}

/* ---- jobs ---- */

uint32_t kvc_engine_job_new(struct kvc_engine *e)
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

static void end_request(struct kvc_engine *e, uint32_t request, enum kvc_outcome outcome)
{
    struct kvc_request_result *res = &e->results[request];
    res->outcome = (uint8_t)outcome;
    uint64_t client_ns = e->now;
    if (outcome == KVC_COMPLETED)
        client_ns += e->front_ns;
    else
        kvc_engine_missed(e, request, KVC_MISS_FAILED, res->input_tokens);
    kvc_arrivals_ended(e->arrivals, request, client_ns);
    if (client_ns > e->end_ns)
        e->end_ns = client_ns;
    e->done++;
}

void kvc_engine_ended(struct kvc_engine *e, uint32_t job, enum kvc_outcome outcome)
{
    uint32_t request = e->jobs[job].request;
    e->jobs[job].order = 0;
    e->jobs[job].next = e->free_job;
    e->free_job = job;
    end_request(e, request, outcome);
}

/* ---- arrivals and routing ---- */

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
    uint64_t pages = (most + e->page_tokens - 1) / e->page_tokens + e->sequence_pages;
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

static void arrive(struct kvc_engine *e, uint32_t request)
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
    uint32_t job = kvc_engine_job_new(e);
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

/* ---- the loop ---- */

static void note_link_bytes(struct kvc_engine *e)
{
    if (!e->n_link_classes)
        return;
    uint64_t total[KVC_MAX_LINK_CLASSES] = {0};
    for (uint32_t i = 0; i < kvc_links_count(e->links); i++) {
        struct kvc_link_usage u;
        kvc_links_usage(e->links, e->now, i, &u);
        total[e->link_class[i]] += u.bytes;
    }
    for (uint32_t c = 0; c < e->n_link_classes; c++) {
        kvc_timeline_add(&e->timeline, KVC_CHANNEL_LINKS + c,
                         (double)(total[c] - e->class_bytes[c]));
        e->class_bytes[c] = total[c];
    }
}

static void move_time(struct kvc_engine *e, uint64_t t)
{
    uint64_t used = 0, pages = 0;
    for (uint32_t i = 0; i < e->n_replicas; i++) {
        used += e->replicas[i].pool.pages - e->replicas[i].pool.plain;
        pages += e->replicas[i].pool.pages;
    }
    double level[KVC_CHANNEL_LEVELS] = {(double)e->running_now, (double)e->waiting_now,
                                        pages ? (double)used / (double)pages : 0};
    bool completed = kvc_timeline_advance(&e->timeline, t, level, KVC_CHANNEL_LEVELS);
    if (e->tenants.metered) {
        double held[KVC_METER_GROUPS];
        for (uint32_t g = 0; g < e->tenants.meter.n_groups; g++)
            held[g] = (double)kvc_meter_held(&e->tenants.meter, g);
        kvc_timeline_advance(&e->tenant_timeline, t, held, e->tenants.meter.n_groups);
    }
    e->now = t;
    if (completed)
        note_link_bytes(e);
}

/* What lower tiers still write when the last client has its answer is not waited for: it serves
 * nobody, and would count as the time the traffic took. */
bool kvc_engine_next(struct kvc_engine *e)
{
    uint64_t links = kvc_links_next(e->links);
    uint64_t way = e->way_n ? e->way[e->way_head].time_ns : KVC_TIME_NONE;
    uint64_t arrival = kvc_arrivals_next_ns(e->arrivals);
    uint64_t due = e->n_due ? e->replicas[e->due_heap[0]].due_ns : KVC_TIME_NONE;
    uint64_t t = links < way ? links : way;
    t = arrival < t ? arrival : t;
    t = due < t ? due : t;
    uint64_t expiry = e->tenants.expire ? kvc_engine_next_expiry(e) : KVC_TIME_NONE;
    if (t != KVC_TIME_NONE && expiry < t)
        t = expiry;
    e->late = t > LATEST_NS && t != KVC_TIME_NONE;
    if (t == KVC_TIME_NONE || e->late || (e->done == e->trace->n_requests && t > e->end_ns))
        return false;
    bool round = t > e->now && t % KVC_ROUND_NS == 0;
    if (t > e->now)
        move_time(e, t);
    e->events++;
    if (expiry <= t) {
        kvc_engine_expire(e, round);
    } else if (links == t) {
        struct kvc_flow_end end;
        while (kvc_links_pop(e->links, t, &end))
            kvc_tiers_transfer_done(e, (uint32_t)end.tag);
    } else if (way == t) {
        uint32_t job = e->way[e->way_head].job;
        e->way_head = (e->way_head + 1) % e->way_cap;
        e->way_n--;
        kvc_replica_enqueue(e, job);
    } else if (arrival == t) {
        arrive(e, kvc_arrivals_pop(e->arrivals));
    } else {
        e->looking = e->due_heap[0];
        kvc_replica_run_due(e, &e->replicas[e->looking]);
        e->looking = KVC_NONE;
    }
    return true;
}

/* Whether policies kept to their rules, and to the memory they were given. */
static enum kvc_status look_at_policies(const struct kvc_engine *e, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    for (uint32_t i = 0; i < e->n_replicas && st == KVC_OK; i++) {
        const struct kvc_replica *r = &e->replicas[i];
        if (r->pool.policy)
            st = kvc_runs_error(r->pool.policy, err);
        if (st == KVC_OK && r->order)
            st = kvc_hosted_error(&r->order->hosted, err);
    }
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++)
        for (uint32_t i = 0; i < e->tiers[t].instances && st == KVC_OK; i++)
            if (e->tiers[t].pools[i].policy)
                st = kvc_runs_error(e->tiers[t].pools[i].policy, err);
    return st;
}

enum kvc_status kvc_engine_error(const struct kvc_engine *e, struct kvc_error *err)
{
    enum kvc_status st = look_at_policies(e, err);
    return st == KVC_OK ? kvc_fail_nomem(err) : st;
}

static enum kvc_status run(struct kvc_engine *e, struct kvc_error *err)
{
    uint64_t reported = 0, n = e->trace->n_requests;
    while (kvc_engine_next(e)) {
        if (e->nomem)
            return kvc_engine_error(e, err);
        if (e->failed)
            return kvc_admission_error(e->failed, err);
        if (e->routing.stray)
            return kvc_routing_error(&e->routing, err);
        if (e->options->progress && e->done - reported >= 1024) {
            reported = e->done;
            if (!e->options->progress(e->options->progress_user, "replay", e->done, n))
                return kvc_fail(err, KVC_ERR_CANCELLED, "the replay was cancelled");
        }
    }
    if (e->done != n && e->late)
        return kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, "arrivals",
                           "the replay would pass %d years: check the unit of the log's time "
                           "stamps and pauses and the rates of the links, or raise arrivals.scale",
                           YEARS);
    if (e->done != n)
        return kvc_fail(err, KVC_ERR_INTERNAL, "%llu of %llu requests never ended",
                        (unsigned long long)(n - e->done), (unsigned long long)n);
    if (e->now < e->end_ns)
        move_time(e, e->end_ns);
    note_link_bytes(e);
    enum kvc_status st = kvc_tiers_admission_error(e, err);
    return st == KVC_OK ? look_at_policies(e, err) : st;
}

static double clock_s(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* What prefill takes for the same requests when there is nothing below HBM. */
static enum kvc_status run_hbm_only(struct kvc_engine *e, struct kvc_error *err)
{
    struct kvc_scenario bare = *e->sc;
    struct kvc_replay_options options = *e->options;
    struct kvc_engine other = {.trace = e->trace, .sc = &bare, .options = &options,
                               .user = e->user, .model = e->model, .model_is_lent = true};
    for (uint32_t t = 0; t < KVC_LOWER_TIERS; t++)
        bare.tiers[t].present = false;
    options.progress = NULL;
    enum kvc_status st = kvc_engine_open(&other, err);
    if (st == KVC_OK)
        st = run(&other, err);
    if (st == KVC_OK)
        e->hbm_only_prefill_ns = other.prefill_ns;
    kvc_engine_close(&other);
    return st;
}

/* The run is on the trace as the tenants' salts divide it. */
static enum kvc_status enter_spaces(struct kvc_engine *e, struct kvc_namespaces *spaces,
                                    bool isolate, struct kvc_error *err)
{
    uint32_t *of = NULL;
    const struct kvc_trace *whole = e->trace;
    enum kvc_status st = kvc_tenants_spaces(&of, whole, e->sc, isolate, err);
    if (st == KVC_OK && of)
        st = kvc_namespaces_create(spaces, whole, of, err);
    if (st == KVC_OK && of) {
        e->spaces = spaces;
        e->trace = &spaces->trace;
        e->seen_anywhere = kvc_calloc(whole->n_segments, sizeof(*e->seen_anywhere));
        if (!e->seen_anywhere)
            st = kvc_fail_nomem(err);
    }
    kvc_free(of);
    return st;
}

/* "noisy=TENANT": its requests end as if the log had no answer for them, so that all others keep
 * their times and their turns; "isolation": each tenant is a namespace of its own. */
static enum kvc_status run_what_if(struct kvc_engine *e, const struct kvc_trace *trace,
                                   const char *what, struct kvc_result *result,
                                   struct kvc_error *err)
{
    struct kvc_replay_options options = *e->options;
    struct kvc_trace without = *trace;
    struct kvc_namespaces spaces = {0};
    struct kvc_engine other = {.trace = trace, .sc = e->sc, .options = &options,
                               .user = e->user, .model = e->model, .model_is_lent = true};
    const char *noisy = strncmp(what, "noisy=", 6) == 0 ? what + 6 : NULL;
    bool isolate = strcmp(what, "isolation") == 0;
    enum kvc_status st = KVC_OK;
    without.row_status = NULL;
    options.progress = NULL;
    if (!noisy && !isolate)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "what-if",
                           "\"%.64s\" is not known; there are noisy=TENANT and isolation", what);
    if (noisy) {
        st = kvc_tenants_without(&without.row_status, trace, noisy, err);
        other.trace = &without;
    }
    if (st == KVC_OK)
        st = enter_spaces(&other, &spaces, isolate, err);
    if (st == KVC_OK)
        st = kvc_engine_open(&other, err);
    if (st == KVC_OK)
        st = run(&other, err);
    if (st == KVC_OK)
        st = kvc_collect_what_if(&other, noisy, result, err);
    kvc_engine_close(&other);
    kvc_namespaces_clear(&spaces);
    kvc_free(without.row_status);
    return st;
}

enum kvc_status kvc_replay_run_with(struct kvc_result **out, const struct kvc_trace *trace,
                                    const struct kvc_scenario *scenario,
                                    const struct kvc_replay_options *options,
                                    struct kvc_step_model *model, struct kvc_error *err)
{
    struct kvc_replay_options own = {0};
    struct kvc_engine e = {.trace = trace, .sc = scenario, .options = &own, .model = model,
                           .model_is_lent = model != NULL};
    struct kvc_namespaces spaces = {0};
    double wall = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_THREAD_CPUTIME_ID);
    struct kvc_result *result = NULL;
    if (options)
        kvc_sized_copy(&own, sizeof(own), options);
    enum kvc_status st = kvc_scenario_check(scenario, err);
    if (st == KVC_OK && trace->objects)
        st = kvc_fail(err, KVC_ERR_INPUT, "the trace is a cache's references to objects: there are "
                      "no prompts to serve; ceiling gives what caches of any size can hit");
    if (st == KVC_OK && trace->sample.weight)
        st = kvc_fail(err, KVC_ERR_INPUT,
                      "the trace holds samples of one in %u subtrees of prompts (import --sample): "
                      "their load is not the log's, so that no replay of it would be true; import "
                      "all of the log, or a --window of it", trace->sample.weight);
    if (st == KVC_OK && e.options->profile)
        st = kvc_user_profile_parse(&e.user, e.options->profile, strlen(e.options->profile),
                                    "profile", err);
    else if (st == KVC_OK)
        st = kvc_scenario_profile(&e.user, scenario, err);
    if (st == KVC_OK)
        st = enter_spaces(&e, &spaces, false, err);
    if (st == KVC_OK)
        st = kvc_engine_open(&e, err);
    if (st == KVC_OK)
        st = run(&e, err);
    e.hbm_only_prefill_ns = KVC_TIME_NONE;
    if (st == KVC_OK && e.first_tier < KVC_LOWER_TIERS && !e.options->skip_bounds)
        st = run_hbm_only(&e, err);
    if (st == KVC_OK)
        st = kvc_collect(&e, &result, err);
    for (size_t i = 0; st == KVC_OK && i < e.options->n_what_ifs; i++)
        st = run_what_if(&e, trace, e.options->what_ifs[i], result, err);
    kvc_engine_close(&e);
    kvc_user_profile_destroy(e.user);
    kvc_namespaces_clear(&spaces);
    if (st != KVC_OK) {
        kvc_result_destroy(result);
        return st;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    result->runtime.wall_s = clock_s(CLOCK_MONOTONIC) - wall;
    result->runtime.cpu_s = clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu;
    result->runtime.peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    result->runtime.threads = 1;
    if (e.options->trace_path)
        strncpy(result->runtime.trace_path, e.options->trace_path,
                sizeof(result->runtime.trace_path) - 1);
    *out = result;
    return KVC_OK;
}

enum kvc_status kvc_replay_run(struct kvc_result **out, const struct kvc_trace *trace,
                               const struct kvc_scenario *scenario,
                               const struct kvc_replay_options *options, struct kvc_error *err)
{
    return kvc_replay_run_with(out, trace, scenario, options, NULL, err);
}
