/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/load.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- looking things up; absent is NULL, NAN, 0 or "" ---- */

static const struct kvc_jval *get(const struct kvc_jval *v, const char *key)
{
    return v && kvc_jval_kind(v) == KVC_JOBJECT ? kvc_jval_member(v, key) : NULL;
}

static double value_of(const struct kvc_jval *v)
{
    double d;
    return v && kvc_jval_number(v, &d) ? d : (double)NAN;
}

static double num(const struct kvc_jval *object, const char *key)
{
    return value_of(get(object, key));
}

static double zero_if_unknown(double d)
{
    return isnan(d) ? 0 : d;
}

static uint64_t whole_of(const struct kvc_jval *v)
{
    uint64_t n;
    return v && kvc_jval_u64(v, &n) ? n : 0;
}

static uint64_t whole(const struct kvc_jval *object, const char *key)
{
    return whole_of(get(object, key));
}

static uint32_t small(const struct kvc_jval *object, const char *key)
{
    uint64_t n = whole(object, key);
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void text(char *out, size_t size, const struct kvc_jval *object, const char *key)
{
    const struct kvc_jval *v = get(object, key);
    const char *s = v ? kvc_jval_string(v) : NULL;
    snprintf(out, size, "%s", s ? s : "");
}
#define TEXT(field, object, key) text(field, sizeof(field), object, key)

static const struct kvc_jval *first(const struct kvc_jval *object, const char *key)
{
    const struct kvc_jval *v = get(object, key);
    enum kvc_jkind kind = v ? kvc_jval_kind(v) : KVC_JNULL;
    return kind == KVC_JARRAY || kind == KVC_JOBJECT ? kvc_jval_first(v) : NULL;
}

/* Room for the elements of an array; *n is their count, at most 2^24 to stay an honest file. */
static bool reserve(void *array, uint32_t *n, size_t size, const struct kvc_jval *object,
                    const char *key)
{
    const struct kvc_jval *v = get(object, key);
    size_t count = v && kvc_jval_kind(v) == KVC_JARRAY ? kvc_jval_count(v) : 0;
    void *p = count < (1u << 24) ? kvc_calloc(count, size) : NULL;
    if (!p)
        return false;
    memcpy(array, &p, sizeof(p));
    *n = (uint32_t)count;
    return true;
}

/* ---- the parts ---- */

static void load_dist(struct kvc_dist *d, const struct kvc_jval *root, const char *key)
{
    const struct kvc_jval *o = get(root, key);
    d->count = whole(o, "count");
    d->mean = zero_if_unknown(num(o, "mean"));
    d->p50 = zero_if_unknown(num(o, "p50"));
    d->p90 = zero_if_unknown(num(o, "p90"));
    d->p95 = zero_if_unknown(num(o, "p95"));
    d->p99 = zero_if_unknown(num(o, "p99"));
    d->max = zero_if_unknown(num(o, "max"));
}

static void load_counts(struct kvc_result *r, const struct kvc_jval *root)
{
    const struct kvc_jval *requests = get(root, "requests"), *hits = get(root, "hits");
    const struct kvc_jval *speed = get(root, "throughput"), *parts = get(root, "ttft_parts_ms");
    r->arrived = whole(requests, "arrived");
    r->completed = whole(requests, "completed");
    r->failed = whole(requests, "failed");
    r->unservable = whole(requests, "unservable");
    r->measured = whole(requests, "measured");
    load_dist(&r->ttft_ms, root, "ttft_ms");
    load_dist(&r->tpot_ms, root, "tpot_ms");
    load_dist(&r->e2e_ms, root, "e2e_ms");
    load_dist(&r->queue_ms, root, "queue_ms");
    r->ttft_part_queue_ms = zero_if_unknown(num(parts, "queue"));
    r->ttft_part_route_ms = zero_if_unknown(num(parts, "route"));
    r->ttft_part_load_ms = zero_if_unknown(num(parts, "load"));
    r->ttft_part_prefill_ms = zero_if_unknown(num(parts, "prefill"));
    r->ttft_part_host_ms = zero_if_unknown(num(parts, "host"));
    r->input_tokens = whole(hits, "input_tokens");
    r->hit_tokens = whole(hits, "hit_tokens");
    r->recomputed_tokens = whole(hits, "recomputed_tokens");
    r->has_prefix = !isnan(num(hits, "token_hit_rate"));
    for (int i = 0; i < KVC_MISS_CAUSES; i++)
        r->missed_tokens[i] = whole(get(hits, "missed_tokens"),
                                    kvc_miss_cause_name((enum kvc_miss_cause)i));
    r->requests_per_s = zero_if_unknown(num(speed, "requests_per_s"));
    r->input_tokens_per_s = zero_if_unknown(num(speed, "input_tokens_per_s"));
    r->output_tokens_per_s = zero_if_unknown(num(speed, "output_tokens_per_s"));
    double makespan_s = num(speed, "makespan_s");
    r->makespan_ns = makespan_s > 0 && makespan_s < 1e10 ? (uint64_t)llround(makespan_s * 1e9) : 0;
    TEXT(r->trace_digest, get(root, "digests"), "trace");
    TEXT(r->profiles_digest, get(root, "digests"), "profiles");
}

static void load_tiers(struct kvc_result *r, const struct kvc_jval *root)
{
    const struct kvc_jval *by_tier = get(get(root, "hits"), "by_tier");
    for (const struct kvc_jval *v = first(root, "tiers"); v && r->n_tiers < KVC_MAX_TIERS;
         v = kvc_jval_next(v)) {
        struct kvc_tier_result *t = &r->tiers[r->n_tiers++];
        TEXT(t->name, v, "name");
        TEXT(t->scope, v, "scope");
        t->capacity_bytes = whole(v, "capacity_bytes");
        t->peak_bytes = whole(v, "peak_bytes");
        t->written_bytes = whole(v, "written_bytes");
        t->read_bytes = whole(v, "read_bytes");
        t->evicted_bytes = whole(v, "evicted_bytes");
        t->never_read_bytes = whole(v, "never_read_bytes");
        t->refused_bytes = whole(v, "refused_bytes");
        t->writes_per_day_of_capacity = num(v, "writes_per_day_of_capacity");
        t->hit_tokens = whole(get(by_tier, t->name), "hit_tokens");
    }
}

static bool load_sharers(struct kvc_result *r, const struct kvc_jval *root)
{
    uint32_t i = 0;
    if (!reserve(&r->links, &r->n_links, sizeof(*r->links), root, "links") ||
        !reserve(&r->replicas, &r->n_replicas, sizeof(*r->replicas), root, "replicas") ||
        !reserve(&r->tenants, &r->n_tenants, sizeof(*r->tenants), root, "tenants"))
        return false;
    for (const struct kvc_jval *v = first(root, "links"); v; v = kvc_jval_next(v)) {
        struct kvc_link_result *l = &r->links[i++];
        TEXT(l->name, v, "name");
        l->bytes = whole(v, "bytes");
        l->busy_fraction = num(v, "busy_fraction");
        l->peak_flows = small(v, "peak_flows");
        l->mean_bytes_per_s = num(v, "mean_bytes_per_s");
    }
    i = 0;
    for (const struct kvc_jval *v = first(root, "replicas"); v; v = kvc_jval_next(v)) {
        struct kvc_replica_result *p = &r->replicas[i++];
        p->id = small(v, "id");
        p->requests = whole(v, "requests");
        p->input_tokens = whole(v, "input_tokens");
        p->busy_fraction = num(v, "busy_fraction");
        p->hit_tokens = (uint64_t)llround(zero_if_unknown(num(v, "token_hit_rate")) *
                                          (double)p->input_tokens);
        p->peak_running = small(v, "peak_running");
        p->preemptions = whole(v, "preemptions");
    }
    i = 0;
    for (const struct kvc_jval *v = first(root, "tenants"); v; v = kvc_jval_next(v)) {
        struct kvc_tenant_result *t = &r->tenants[i++];
        TEXT(t->name, v, "name");
        t->requests = whole(v, "requests");
        load_dist(&t->ttft_ms, v, "ttft_ms");
        t->resident_bytes_mean = num(v, "resident_bytes_mean");
        t->cost_usd = num(v, "cost_usd");
        t->output_tokens = whole(v, "output_tokens");
        for (int c = 0; c < KVC_MISS_CAUSES; c++)
            t->missed_tokens[c] = whole(get(v, "missed_tokens"),
                                        kvc_miss_cause_name((enum kvc_miss_cause)c));
    }
    return true;
}

static void load_matrix(uint64_t *cells, uint32_t rows, uint32_t columns,
                        const struct kvc_jval *object, const char *key)
{
    uint32_t g = 0, c;
    for (const struct kvc_jval *row = first(object, key); row && g < rows;
         row = kvc_jval_next(row), g++) {
        c = 0;
        const struct kvc_jval *v = kvc_jval_kind(row) == KVC_JARRAY ? kvc_jval_first(row) : NULL;
        for (; v && c < columns; v = kvc_jval_next(v))
            cells[g * columns + c++] = whole_of(v);
    }
}

static bool load_losses(struct kvc_result *r, const struct kvc_jval *root)
{
    const struct kvc_jval *o = get(root, "losses"), *fair = get(root, "fairness");
    struct kvc_losses *l = &r->losses;
    uint32_t i = 0;
    r->jain_hit_rate = num(fair, "jain_hit_rate");
    r->jain_residency = num(fair, "jain_residency");
    if (!reserve(&l->names, &l->n_columns, sizeof(*l->names), o, "to"))
        return false;
    for (const struct kvc_jval *v = first(o, "to"); v; v = kvc_jval_next(v), i++)
        snprintf(l->names[i], sizeof(l->names[i]), "%s",
                 kvc_jval_string(v) ? kvc_jval_string(v) : "");
    const struct kvc_jval *of = get(o, "of");
    size_t n = of && kvc_jval_kind(of) == KVC_JARRAY ? kvc_jval_count(of) : 0;
    l->n_groups = n < l->n_columns ? (uint32_t)n : l->n_columns;
    l->bytes = kvc_calloc((size_t)l->n_groups * l->n_columns, sizeof(*l->bytes));
    l->missed_tokens = kvc_calloc((size_t)l->n_groups * l->n_columns, sizeof(*l->missed_tokens));
    if (!l->bytes || !l->missed_tokens)
        return false;
    load_matrix(l->bytes, l->n_groups, l->n_columns, o, "bytes");
    load_matrix(l->missed_tokens, l->n_groups, l->n_columns, o, "missed_tokens");
    for (uint32_t t = 0; t < r->n_tenants; t++) /* one without a group of its own is in the last */
        for (uint32_t g = 0; g < l->n_groups; g++)
            if (g + 1 == l->n_groups || strcmp(l->names[g], r->tenants[t].name) == 0) {
                r->tenants[t].group = g;
                break;
            }
    return true;
}

static bool load_what_ifs(struct kvc_result *r, const struct kvc_jval *root)
{
    struct kvc_what_if *w;
    if (!reserve(&r->what_ifs, &r->n_what_ifs, sizeof(*r->what_ifs), root, "what_if"))
        return false;
    w = r->what_ifs;
    for (const struct kvc_jval *v = first(root, "what_if"); v; v = kvc_jval_next(v), w++) {
        uint32_t i = 0;
        TEXT(w->kind, v, "kind");
        TEXT(w->tenant, v, "tenant");
        w->n = r->n_tenants;
        w->rows = kvc_calloc(w->n, sizeof(*w->rows));
        if (!w->rows)
            return false;
        for (const struct kvc_jval *t = first(v, "tenants"); t && i < w->n;
             t = kvc_jval_next(t), i++) {
            w->rows[i].requests = whole(t, "requests");
            w->rows[i].hit_tokens = whole(t, "hit_tokens");
            load_dist(&w->rows[i].ttft_ms, t, "ttft_ms");
        }
    }
    return true;
}

static void load_cost(struct kvc_cost *c, const struct kvc_jval *o)
{
    const struct kvc_jval *parts = get(o, "parts");
    c->usd_per_hour = num(o, "usd_per_hour");
    c->usd_per_million_input_tokens = num(o, "usd_per_million_input_tokens");
    c->usd_per_million_cached_tokens = num(o, "usd_per_million_cached_tokens");
    c->usd_per_million_output_tokens = num(o, "usd_per_million_output_tokens");
    c->usd_total = num(o, "usd_total");
    c->saving_vs_hbm_only_usd_per_month = num(o, "saving_vs_hbm_only_usd_per_month");
    c->part_gpu = num(parts, "gpu");
    c->part_dram = num(parts, "dram");
    c->part_nvme = num(parts, "nvme");
    c->part_network = num(parts, "network");
    c->part_power = num(parts, "power");
}

static bool load_trust(struct kvc_result *r, const struct kvc_jval *root)
{
    const struct kvc_jval *bounds = get(root, "bounds"), *run = get(root, "runtime");
    uint32_t i = 0, most = (uint32_t)(sizeof(r->bands) / sizeof(r->bands[0]));
    for (const struct kvc_jval *v = first(root, "bands"); v && r->n_bands < most;
         v = kvc_jval_next(v)) {
        if (kvc_jval_kind(v) != KVC_JARRAY || kvc_jval_count(v) != 2)
            continue;
        struct kvc_band *b = &r->bands[r->n_bands++];
        snprintf(b->name, sizeof(b->name), "%s", kvc_jval_key(v));
        b->low = value_of(kvc_jval_first(v));
        b->high = value_of(kvc_jval_next(kvc_jval_first(v)));
    }
    TEXT(r->band_source, get(root, "bands"), "source");
    r->content_token_hit_rate = num(bounds, "content_token_hit_rate");
    r->capacity_token_hit_rate = num(bounds, "capacity_token_hit_rate");
    r->lru_token_hit_rate = r->gpu_seconds_per_million_missed_tokens = (double)NAN;
    r->runtime.wall_s = zero_if_unknown(num(run, "wall_s"));
    r->runtime.cpu_s = zero_if_unknown(num(run, "cpu_s"));
    r->runtime.events = whole(run, "events");
    r->runtime.steps = whole(run, "steps");
    r->runtime.peak_rss_bytes = whole(run, "peak_rss_bytes");
    r->runtime.threads = small(run, "threads");
    TEXT(r->runtime.trace_path, get(run, "paths"), "trace");
    if (!reserve(&r->warnings, &r->n_warnings, sizeof(*r->warnings), root, "warnings"))
        return false;
    for (const struct kvc_jval *v = first(root, "warnings"); v; v = kvc_jval_next(v), i++) {
        TEXT(r->warnings[i].code, v, "code");
        TEXT(r->warnings[i].text, v, "text");
    }
    return true;
}

/* ---- what only the database keeps ---- */

static void load_detail_counts(struct kvc_result *r, const struct kvc_jval *d)
{
    bool flag = r->has_prefix;
    if (get(d, "has_prefix") && kvc_jval_bool(get(d, "has_prefix"), &flag))
        r->has_prefix = flag;
    TEXT(r->title, d, "title");
    r->makespan_ns = whole(d, "makespan_ns");
    r->output_tokens = whole(d, "output_tokens");
    r->hit_blocks = whole(d, "hit_blocks");
    r->full_blocks = whole(d, "full_blocks");
    r->hit_requests = whole(d, "hit_requests");
    r->raw_hit_tokens = whole(d, "raw_hit_tokens");
    r->raw_hit_blocks = whole(d, "raw_hit_blocks");
    r->blocks = whole(d, "blocks");
    r->kv_bytes_per_token = whole(d, "kv_bytes_per_token");
    r->block_bytes = whole(d, "block_bytes");
    r->gpu_seconds_per_million_missed_tokens = num(d, "gpu_seconds_per_million_missed_tokens");
    r->lru_token_hit_rate = num(d, "lru_token_hit_rate");
}

static void load_detail_parts(struct kvc_result *r, const struct kvc_jval *d)
{
    uint32_t i = 0;
    for (const struct kvc_jval *v = first(d, "tiers"); v && i < r->n_tiers;
         v = kvc_jval_next(v), i++) {
        TEXT(r->tiers[i].policy, v, "policy");
        TEXT(r->tiers[i].link, v, "link");
        r->tiers[i].instances = small(v, "instances");
    }
    i = 0;
    for (const struct kvc_jval *v = first(d, "links"); v && i < r->n_links; v = kvc_jval_next(v))
        r->links[i++].capacity_bytes_per_s = zero_if_unknown(value_of(v));
    i = 0;
    for (const struct kvc_jval *v = first(d, "replica_hit_tokens"); v && i < r->n_replicas;
         v = kvc_jval_next(v))
        r->replicas[i++].hit_tokens = whole_of(v);
    i = 0;
    for (const struct kvc_jval *v = first(d, "tenants"); v && i < r->n_tenants;
         v = kvc_jval_next(v), i++) {
        if (kvc_jval_kind(v) != KVC_JARRAY || kvc_jval_count(v) != 2)
            continue;
        r->tenants[i].input_tokens = whole_of(kvc_jval_first(v));
        r->tenants[i].hit_tokens = whole_of(kvc_jval_next(kvc_jval_first(v)));
    }
}

static bool load_detail_lists(struct kvc_result *r, const struct kvc_jval *d)
{
    uint32_t i = 0;
    if (!reserve(&r->curve, &r->n_curve, sizeof(*r->curve), d, "curve") ||
        !reserve(&r->assumptions, &r->n_assumptions, sizeof(*r->assumptions), d, "assumptions"))
        return false;
    for (const struct kvc_jval *v = first(d, "curve"); v; v = kvc_jval_next(v), i++) {
        if (kvc_jval_kind(v) != KVC_JARRAY || kvc_jval_count(v) != 3)
            continue;
        const struct kvc_jval *lru = kvc_jval_next(kvc_jval_first(v));
        r->curve[i].capacity_bytes = whole_of(kvc_jval_first(v));
        r->curve[i].lru_token_hit_rate = value_of(lru);
        r->curve[i].opt_token_hit_rate = value_of(kvc_jval_next(lru));
    }
    i = 0;
    for (const struct kvc_jval *v = first(d, "assumptions"); v; v = kvc_jval_next(v), i++) {
        struct kvc_assumption *a = &r->assumptions[i];
        TEXT(a->group, v, "group");
        TEXT(a->name, v, "name");
        TEXT(a->value, v, "value");
        TEXT(a->kind, v, "kind");
        TEXT(a->source, v, "source");
    }
    return true;
}

void kvc_load_ttft(struct kvc_findings *f, const struct kvc_jval *detail)
{
    size_t c = 0;
    for (const struct kvc_jval *v = first(detail, "ttft_by_hit"); v && c < KVC_TTFT_CLASSES;
         v = kvc_jval_next(v), c++) {
        size_t i = 0;
        f->ttft[c].count = whole(v, "count");
        for (const struct kvc_jval *q = first(v, "quantiles_ms"); q && i < KVC_TTFT_QUANTILES;
             q = kvc_jval_next(q))
            f->ttft[c].q_ms[i++] = zero_if_unknown(value_of(q));
        f->has_ttft |= f->ttft[c].count > 0;
    }
}

/* ---- JSON again, for the scenario ---- */

static char *json_of(const struct kvc_jval *v)
{
    struct kvc_json j;
    kvc_json_init(&j, true);
    if (v)
        kvc_json_value(&j, NULL, v);
    else
        kvc_json_null(&j, NULL);
    return kvc_json_take(&j);
}

enum kvc_status kvc_load_result(struct kvc_result *r, const struct kvc_jval *figures,
                                const struct kvc_jval *detail, struct kvc_error *err)
{
    r->scenario_json = json_of(get(figures, "scenario"));
    if (!r->scenario_json)
        return kvc_fail_nomem(err);
    load_counts(r, figures);
    load_tiers(r, figures);
    load_cost(&r->cost, get(figures, "cost"));
    if (!load_sharers(r, figures) || !load_losses(r, figures) || !load_what_ifs(r, figures) ||
        !load_trust(r, figures))
        return kvc_fail_nomem(err);
    if (detail) {
        load_detail_counts(r, detail);
        load_detail_parts(r, detail);
        if (!load_detail_lists(r, detail))
            return kvc_fail_nomem(err);
    }
    const struct kvc_jval *scenario = get(figures, "scenario");
    if (!r->title[0] && get(scenario, "model")) {
        char model[64], gpu[48];
        TEXT(model, scenario, "model");
        TEXT(gpu, get(scenario, "cluster"), "gpu");
        snprintf(r->title, sizeof(r->title), "%s on %s", model, gpu[0] ? gpu : "unknown GPUs");
    }
    return KVC_OK;
}
