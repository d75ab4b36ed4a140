/* SPDX-License-Identifier: Apache-2.0
 * The result record of a finished replay. */
#include "sim/replay/collect.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/distribution.h"
#include "base/error.h"
#include "models/user_profile.h"
#include "sim/replay/bounds.h"
#include "sim/replay/result.h"

#include <stdio.h>
#include <string.h>

static const char *const scope_names[] = {"per_gpu", "per_replica", "per_node", "cluster"};
static const char *const cause_names[KVC_MISS_CAUSES] = {
    "first_sight", "partial_block", "alignment", "evicted",  "ttl",
    "other_replica", "salted",      "not_ready", "diverged", "failed"};

const char *kvc_miss_cause_name(enum kvc_miss_cause cause)
{
    return (unsigned)cause < KVC_MISS_CAUSES ? cause_names[cause] : "unknown";
}

void kvc_result_clear(struct kvc_result *r)
{
    for (uint32_t i = 0; r->series && i < r->n_series; i++) {
        kvc_free(r->series[i].time_ns);
        kvc_free(r->series[i].value);
    }
    for (uint32_t i = 0; r->what_ifs && i < r->n_what_ifs; i++)
        kvc_free(r->what_ifs[i].rows);
    void *all[] = {r->scenario_json, r->links, r->replicas, r->tenants, r->curve, r->warnings,
                   r->assumptions, r->series, r->requests, r->what_ifs, r->losses.names,
                   r->losses.bytes, r->losses.missed_tokens};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        kvc_free(all[i]);
    memset(r, 0, sizeof(*r));
}

void kvc_result_destroy(struct kvc_result *r)
{
    if (!r)
        return;
    kvc_result_clear(r);
    kvc_free(r);
}

/* ---- latencies ---- */

bool kvc_collect_counts(const struct kvc_request_result *q)
{
    return q->measured && q->outcome == KVC_COMPLETED;
}

/* One pass over the requests; v has room for four values of each. */
static void latencies(struct kvc_result *r, uint64_t *v)
{
    uint64_t n_all = r->n_requests, n = 0, n_tpot = 0;
    uint64_t *ttft = v, *tpot = v + n_all, *e2e = v + 2 * n_all, *queue = v + 3 * n_all;
    double queue_s = 0, route_s = 0, load_s = 0, prefill_s = 0, host_s = 0;
    for (uint64_t i = 0; i < n_all; i++) {
        const struct kvc_request_result *q = &r->requests[i];
        if (!kvc_collect_counts(q))
            continue;
        ttft[n] = q->ttft_ns;
        e2e[n] = q->e2e_ns;
        queue[n++] = q->queue_ns;
        if (q->output_tokens >= 2) {
            uint64_t decode_ns = q->e2e_ns - q->ttft_ns, steps = q->output_tokens - 1;
            tpot[n_tpot++] = (decode_ns + steps / 2) / steps;
        }
        queue_s += (double)q->queue_ns;
        route_s += (double)q->route_ns;
        load_s += (double)q->load_ns;
        prefill_s += (double)q->prefill_ns;
        host_s += (double)q->host_ns;
    }
    kvc_distribution(ttft, n, KVC_NS_PER_MS, &r->ttft_ms);
    kvc_distribution(tpot, n_tpot, KVC_NS_PER_MS, &r->tpot_ms);
    kvc_distribution(e2e, n, KVC_NS_PER_MS, &r->e2e_ms);
    kvc_distribution(queue, n, KVC_NS_PER_MS, &r->queue_ms);
    double to_ms = n ? 1e-6 / (double)n : 0;
    r->ttft_part_queue_ms = queue_s * to_ms;
    r->ttft_part_route_ms = route_s * to_ms;
    r->ttft_part_load_ms = load_s * to_ms;
    r->ttft_part_prefill_ms = prefill_s * to_ms;
    r->ttft_part_host_ms = host_s * to_ms;
}

/* ---- counts ---- */

/* Hits are kept by fixed tier slot; the record wants them in the order of its tiers. */
static void compact_hits(const struct kvc_engine *e, uint32_t *hit)
{
    uint32_t to = 1;
    for (uint32_t k = 0; k < KVC_LOWER_TIERS; k++) {
        uint32_t v = hit[1 + k];
        hit[1 + k] = 0;
        if (e->sc->tiers[k].present)
            hit[to++] = v;
    }
}

static void count_requests(const struct kvc_engine *e, struct kvc_result *r)
{
    uint64_t done_input = 0, done_output = 0, hbm_tokens = 0;
    for (uint64_t i = 0; i < r->n_requests; i++) {
        struct kvc_request_result *q = &r->requests[i];
        r->completed += q->outcome == KVC_COMPLETED;
        r->failed += q->outcome == KVC_FAILED;
        r->unservable += q->outcome == KVC_UNSERVABLE;
        r->measured += kvc_collect_counts(q);
        r->input_tokens += q->input_tokens;
        r->output_tokens += q->output_tokens;
        r->recomputed_tokens += q->recomputed_tokens;
        if (q->outcome == KVC_COMPLETED) {
            done_input += q->input_tokens;
            done_output += q->output_tokens;
        }
        hbm_tokens += q->hit_tokens[0];
        for (uint32_t t = 0; t <= KVC_LOWER_TIERS; t++)
            r->hit_tokens += q->hit_tokens[t];
        compact_hits(e, q->hit_tokens);
        r->full_blocks += kvc_trace_full_blocks(e->trace, i);
        r->blocks += kvc_trace_blocks(e->trace, i);
    }
    r->tiers[0].hit_tokens = hbm_tokens;
    r->arrived = r->n_requests;
    r->hit_blocks = e->hit_blocks;
    r->hit_requests = e->hit_requests;
    r->raw_hit_blocks = e->raw_hit_blocks;
    r->raw_hit_tokens = e->raw_hit_tokens;
    memcpy(r->missed_tokens, e->missed, sizeof(r->missed_tokens));
    r->makespan_ns = e->end_ns;
    double s = (double)e->end_ns * 1e-9;
    if (s > 0) {
        r->requests_per_s = (double)r->completed / s;
        r->input_tokens_per_s = (double)done_input / s;
        r->output_tokens_per_s = (double)done_output / s;
    }
}

static void collect_hbm(const struct kvc_engine *e, struct kvc_result *r)
{
    struct kvc_tier_result *t = &r->tiers[r->n_tiers++];
    uint64_t page_bytes = e->page_tokens * e->token_bytes;
    uint64_t block_bytes = e->block_tokens * e->token_bytes;
    strcpy(t->name, "hbm");
    strcpy(t->scope, "per_replica");
    snprintf(t->policy, sizeof(t->policy), "%s", e->sc->hbm_policy);
    t->instances = e->n_replicas;
    for (uint32_t i = 0; i < e->n_replicas; i++) {
        const struct kvc_pool *p = &e->replicas[i].pool;
        t->capacity_bytes += p->pages * page_bytes;
        t->peak_bytes += p->peak_used * page_bytes;
        t->evicted_bytes += p->evicted_blocks * block_bytes;
        t->never_read_bytes += (p->never_read_blocks + kvc_pool_never_read(p)) * block_bytes;
    }
    t->written_bytes = (e->computed_tokens + e->decoded_tokens) * e->token_bytes;
    for (uint32_t k = 0; k < KVC_LOWER_TIERS; k++)
        t->written_bytes += e->tiers[k].read_bytes;
    t->read_bytes = t->hit_tokens * e->token_bytes;
}

static void collect_tiers(const struct kvc_engine *e, struct kvc_result *r)
{
    uint64_t block_bytes = e->block_tokens * e->token_bytes;
    collect_hbm(e, r);
    for (uint32_t k = 0; k < KVC_LOWER_TIERS; k++) {
        const struct kvc_tier *tier = &e->tiers[k];
        if (!e->sc->tiers[k].present)
            continue;
        struct kvc_tier_result *t = &r->tiers[r->n_tiers++];
        snprintf(t->name, sizeof(t->name), "%s", tier->config->name);
        strcpy(t->scope, scope_names[tier->config->scope]);
        snprintf(t->policy, sizeof(t->policy), "%s", tier->config->policy);
        snprintf(t->link, sizeof(t->link), "%.31s",
                 tier->config->link[0] ? tier->config->link : "custom");
        t->instances = tier->instances;
        for (uint32_t i = 0; i < tier->instances; i++) {
            const struct kvc_pool *p = &tier->pools[i];
            t->capacity_bytes += p->pages * block_bytes;
            t->peak_bytes += p->peak_used * block_bytes;
            t->evicted_bytes += p->evicted_blocks * block_bytes;
            t->never_read_bytes += (p->never_read_blocks + kvc_pool_never_read(p)) * block_bytes;
        }
        t->written_bytes = tier->written_bytes;
        t->refused_bytes = tier->refused_bytes;
        t->read_bytes = tier->read_bytes;
        t->hit_tokens = tier->hit_tokens;
    }
    double days = (double)e->end_ns * 1e-9 / 86400;
    for (uint32_t i = 0; i < r->n_tiers; i++)
        if (days > 0 && r->tiers[i].capacity_bytes)
            r->tiers[i].writes_per_day_of_capacity = (double)r->tiers[i].written_bytes / days /
                                                     (double)r->tiers[i].capacity_bytes;
}

static enum kvc_status collect_links(const struct kvc_engine *e, struct kvc_result *r,
                                     struct kvc_error *err)
{
    r->links = kvc_calloc(e->n_link_classes, sizeof(*r->links));
    if (!r->links)
        return kvc_fail_nomem(err);
    r->n_links = e->n_link_classes;
    uint32_t members[KVC_MAX_LINK_CLASSES] = {0};
    double s = (double)e->end_ns * 1e-9;
    for (uint32_t i = 0; i < kvc_links_count(e->links); i++) {
        struct kvc_link_usage u;
        kvc_links_usage(e->links, e->now, i, &u);
        struct kvc_link_result *l = &r->links[e->link_class[i]];
        members[e->link_class[i]]++;
        snprintf(l->name, sizeof(l->name), "%.31s", u.name);
        l->bytes += u.bytes;
        l->capacity_bytes_per_s += u.capacity_bytes_per_s;
        l->busy_fraction += s > 0 ? (double)u.busy_ns * 1e-9 / s : 0;
        l->peak_flows = u.peak_flows > l->peak_flows ? u.peak_flows : l->peak_flows;
    }
    for (uint32_t c = 0; c < r->n_links; c++) {
        r->links[c].busy_fraction /= members[c];
        r->links[c].mean_bytes_per_s = s > 0 ? (double)r->links[c].bytes / s : 0;
    }
    return KVC_OK;
}

static enum kvc_status collect_replicas(const struct kvc_engine *e, struct kvc_result *r,
                                        struct kvc_error *err)
{
    r->replicas = kvc_calloc(e->n_replicas, sizeof(*r->replicas));
    if (!r->replicas)
        return kvc_fail_nomem(err);
    r->n_replicas = e->n_replicas;
    for (uint32_t i = 0; i < e->n_replicas; i++) {
        const struct kvc_replica *from = &e->replicas[i];
        double busy = e->end_ns ? (double)from->busy_ns / (double)e->end_ns : 0;
        r->replicas[i] = (struct kvc_replica_result){
            .id = i, .requests = from->requests, .input_tokens = from->input_tokens,
            .hit_tokens = from->hit_tokens, .busy_fraction = busy,
            .peak_running = from->peak_running, .preemptions = from->preemptions};
    }
    return KVC_OK;
}

/* ---- bounds ---- */

/* Capacities of the curve: factors of sqrt(2) around what the traffic holds in all. */
#define CURVE_POINTS 25

/* Ascending; *at is where all tiers together are. */
static uint32_t curve_capacities(const struct kvc_result *r, uint64_t unique_bytes,
                                 uint64_t *capacity, uint32_t *at)
{
    uint64_t total = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_tiers; i++)
        total += r->tiers[i].capacity_bytes;
    for (uint32_t i = 0; i < CURVE_POINTS; i++) {
        uint64_t whole = unique_bytes >> ((CURVE_POINTS - 1 - i) / 2);
        uint64_t bytes = (CURVE_POINTS - 1 - i) % 2 ? whole / 10 * 7 : whole;
        if (bytes >= r->block_bytes)
            capacity[n++] = bytes;
    }
    for (*at = n++; *at && capacity[*at - 1] > total; --*at)
        capacity[*at] = capacity[*at - 1];
    capacity[*at] = total;
    return n;
}

/* An optimum of another order than that of admission could be beaten. Those who were never admitted
 * come last, where they take nothing from the others. */
static enum kvc_status create_bounds(struct kvc_bounds **out, const struct kvc_engine *e,
                                     uint64_t block_bytes, struct kvc_error *err)
{
    uint64_t n = e->trace->n_requests, at = e->n_admissions;
    uint32_t *order = kvc_malloc(n, sizeof(*order));
    bool *admitted = kvc_calloc(n, sizeof(*admitted));
    enum kvc_status st = order && admitted ? KVC_OK : kvc_fail_nomem(err);
    for (uint64_t i = 0; st == KVC_OK && i < at; i++)
        admitted[order[i] = e->admissions[i]] = true;
    for (uint64_t i = 0; st == KVC_OK && i < n; i++)
        if (!admitted[i])
            order[at++] = (uint32_t)i;
    if (st == KVC_OK)
        st = kvc_bounds_create(out, e->trace, order, block_bytes, err);
    kvc_free(order);
    kvc_free(admitted);
    return st;
}

static enum kvc_status collect_bounds(const struct kvc_engine *e, struct kvc_result *r,
                                   struct kvc_error *err)
{
    if (e->options->skip_bounds || !r->has_prefix)
        return KVC_OK;
    struct kvc_bounds *b = NULL;
    enum kvc_status st = create_bounds(&b, e, r->block_bytes, err);
    if (st != KVC_OK)
        return st;
    uint64_t capacity[CURVE_POINTS + 1];
    uint32_t at, n = curve_capacities(r, kvc_bounds_unique_bytes(b), capacity, &at);
    double lru[CURVE_POINTS + 1], opt[CURVE_POINTS + 1];
    st = kvc_bounds_at(b, false, capacity, n, lru, err);
    if (st == KVC_OK)
        st = kvc_bounds_at(b, true, capacity, n, opt, err);
    if (st == KVC_OK) {
        r->content_token_hit_rate = kvc_bounds_content(b);
        r->capacity_token_hit_rate = opt[at];
        r->lru_token_hit_rate = lru[at];
        r->curve = kvc_calloc(n, sizeof(*r->curve));
        if (!r->curve)
            st = kvc_fail_nomem(err);
    }
    for (uint32_t i = 0; st == KVC_OK && i < n; i++)
        r->curve[r->n_curve++] = (struct kvc_capacity_point){capacity[i], lru[i], opt[i]};
    kvc_bounds_destroy(b);
    return st;
}

/* Of all figures the result rests on, the user's own ones too. */
static void digest_profiles(const struct kvc_engine *e, char out[24])
{
    const char *carried = kvc_profiles_digest();
    if (!e->user) {
        snprintf(out, 24, "%s", carried);
        return;
    }
    const char *own = kvc_user_profile_digest(e->user);
    struct kvc_digest d;
    kvc_digest_init(&d);
    kvc_digest_add(&d, carried, strlen(carried));
    kvc_digest_add(&d, own, strlen(own));
    kvc_digest_hex(&d, out);
}

enum kvc_status kvc_collect(struct kvc_engine *e, struct kvc_result **out, struct kvc_error *err)
{
    struct kvc_result *r = kvc_calloc(1, sizeof(*r));
    uint64_t *v = kvc_malloc(e->trace->n_requests, 4 * sizeof(*v));
    struct kvc_trace_stats stats;
    enum kvc_status st = r && v ? KVC_OK : kvc_fail_nomem(err);
    if (st == KVC_OK) {
        r->requests = e->results;
        r->n_requests = e->trace->n_requests;
        e->results = NULL;
        r->has_prefix = e->trace->block_tokens > 0;
        r->kv_bytes_per_token = e->token_bytes;
        r->block_bytes = e->token_bytes * e->block_tokens;
        memcpy(r->trace_digest, e->trace->digest, sizeof(r->trace_digest));
        digest_profiles(e, r->profiles_digest);
        count_requests(e, r);
        collect_tiers(e, r);
        latencies(r, v);
        r->runtime.events = e->events;
        r->runtime.steps = e->steps;
        st = kvc_scenario_json(e->sc, &r->scenario_json, err);
    }
    if (st == KVC_OK)
        st = collect_links(e, r, err);
    if (st == KVC_OK)
        st = collect_replicas(e, r, err);
    if (st == KVC_OK)
        st = kvc_collect_tenants(e, r, v, err);
    if (st == KVC_OK)
        st = kvc_collect_series(e, r, err);
    if (st == KVC_OK)
        st = collect_bounds(e, r, err);
    if (st == KVC_OK) {
        kvc_collect_cost(e, r);
        kvc_trace_stats(e->trace, &stats);
        st = kvc_collect_explain(e, &stats, r, err);
    }
    if (st == KVC_OK)
        st = kvc_collect_trust(e, &stats, r, err);
    kvc_free(v);
    if (st != KVC_OK) {
        kvc_result_destroy(r);
        return st;
    }
    *out = r;
    return KVC_OK;
}
