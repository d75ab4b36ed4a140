/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/report_sample.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)
#define PAGE 16u

static const char scenario[] =
    "{\n  \"trace\": \"rag-chat.jsonl\",\n  \"model\": \"Llama-3.1-70B\",\n"
    "  \"weights_dtype\": \"fp8\",\n  \"kv_dtype\": \"fp8_e5m2\",\n"
    "  \"engine\": { \"preset\": \"vllm-0.24\", \"max_batched_tokens\": 8192 },\n"
    "  \"cluster\": { \"gpu\": \"h200_sxm\", \"tp\": 8, \"pp\": 1, \"replicas\": 4 },\n"
    "  \"prices\": { \"gpu_hour_usd\": 3.5, \"dram_gb_month_usd\": 0.45 }\n}";

static double normal(uint64_t *rng)
{
    double u = kvc_rng_unit(rng), v = kvc_rng_unit(rng);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

/* One turn of a chat: a shared system prompt, a document, then the talk so far. */
static void draw_request(struct kvc_result *r, uint32_t i, uint64_t *rng)
{
    static const double bytes_per_s[KVC_MAX_TIERS] = {1e12, 40e9, 9e9, 5e9};
    struct kvc_request_result *q = &r->requests[i];
    uint32_t turn = (uint32_t)kvc_rng_below(rng, 6);
    q->arrival_ns = (uint64_t)((double)i * 3600e9 / (double)r->n_requests);
    q->input_tokens = 1500 + 8000 + 350 * turn + (uint32_t)kvc_rng_below(rng, 400);
    q->output_tokens = 40 + (uint32_t)kvc_rng_below(rng, 400);
    q->replica = (uint32_t)kvc_rng_below(rng, r->n_replicas);
    q->measured = true;
    uint64_t luck = kvc_rng_below(rng, 100);
    uint32_t at_most = luck < 8 ? 0 : turn ? 9500 + 350 * (turn - 1) : luck < 40 ? 9500 : 1500;
    uint32_t tier = luck < 50 ? 0 : (uint32_t)kvc_rng_below(rng, r->n_tiers);
    uint32_t hit = at_most / PAGE * PAGE, from_hbm = tier && hit > 1488 ? 1488 : hit;
    q->hit_tokens[0] = from_hbm;
    if (tier)
        q->hit_tokens[tier] = hit - from_hbm;
    double missed = (double)(q->input_tokens - hit), wave = sin((double)i * 6.28 / 3000);
    q->queue_ns = (uint64_t)(30e6 * exp(1.1 * normal(rng) + wave));
    q->route_ns = 200000;
    if (tier)
        q->load_ns = (uint64_t)((hit - from_hbm) * 163840.0 / bytes_per_s[tier] * 1e9) + 80000;
    q->prefill_ns = (uint64_t)(missed / 26000 * 1e9 * exp(0.15 * normal(rng))) + 12000000;
    q->host_ns = 4000000;
    q->ttft_ns = q->queue_ns + q->route_ns + q->load_ns + q->prefill_ns + q->host_ns;
    q->e2e_ns = q->ttft_ns + (uint64_t)(q->output_tokens * 21e6 * exp(0.1 * normal(rng)));
    q->outcome = KVC_COMPLETED;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rank(const double *v, uint64_t n, double p)
{
    uint64_t at = (uint64_t)ceil(p * (double)n - 1e-9);
    return v[at ? at - 1 : 0];
}

static struct kvc_dist dist_of(double *v, uint64_t n)
{
    struct kvc_dist d = {.count = n};
    double sum = 0;
    if (!n)
        return d;
    qsort(v, n, sizeof(*v), by_value);
    for (uint64_t i = 0; i < n; i++)
        sum += v[i];
    d.mean = sum / (double)n;
    d.p50 = rank(v, n, 0.5);
    d.p90 = rank(v, n, 0.9);
    d.p95 = rank(v, n, 0.95);
    d.p99 = rank(v, n, 0.99);
    d.max = v[n - 1];
    return d;
}

static void add_missed(struct kvc_result *r, uint64_t left, uint64_t *rng)
{
    static const uint8_t causes[] = {KVC_MISS_FIRST_SIGHT, KVC_MISS_FIRST_SIGHT,
                                     KVC_MISS_FIRST_SIGHT, KVC_MISS_OTHER_REPLICA,
                                     KVC_MISS_EVICTED, KVC_MISS_NOT_READY};
    uint64_t partial = left < 200 ? left : 200;
    uint64_t alignment = left - partial < 12 ? left - partial : 12;
    r->missed_tokens[KVC_MISS_PARTIAL_BLOCK] += partial;
    r->missed_tokens[KVC_MISS_ALIGNMENT] += alignment;
    r->missed_tokens[causes[kvc_rng_below(rng, 6)]] += left - partial - alignment;
}

static void add_counts(struct kvc_result *r, uint64_t *rng)
{
    for (uint64_t i = 0; i < r->n_requests; i++) {
        const struct kvc_request_result *q = &r->requests[i];
        uint64_t hit = 0;
        for (uint32_t t = 0; t < r->n_tiers; t++) {
            hit += q->hit_tokens[t];
            r->tiers[t].hit_tokens += q->hit_tokens[t];
        }
        r->hit_tokens += hit;
        r->input_tokens += q->input_tokens;
        r->output_tokens += q->output_tokens;
        r->hit_requests += hit > 0;
        r->full_blocks += q->input_tokens / 512;
        r->blocks += (q->input_tokens + 511) / 512;
        r->hit_blocks += hit / 512;
        r->raw_hit_blocks += (hit + 511) / 512;
        r->raw_hit_tokens += hit + (q->input_tokens - hit) / 50;
        struct kvc_replica_result *p = &r->replicas[q->replica];
        p->requests++;
        p->input_tokens += q->input_tokens;
        p->hit_tokens += hit;
        add_missed(r, q->input_tokens - hit, rng);
    }
}

static void add_parts(struct kvc_result *r)
{
    double share = 1e-6 / (double)r->n_requests;
    for (const struct kvc_request_result *q = r->requests; q < r->requests + r->n_requests; q++) {
        r->ttft_part_queue_ms += (double)q->queue_ns * share;
        r->ttft_part_route_ms += (double)q->route_ns * share;
        r->ttft_part_load_ms += (double)q->load_ns * share;
        r->ttft_part_prefill_ms += (double)q->prefill_ns * share;
        r->ttft_part_host_ms += (double)q->host_ns * share;
        if (r->makespan_ns < q->arrival_ns + q->e2e_ns)
            r->makespan_ns = q->arrival_ns + q->e2e_ns;
    }
}

static void add_times(struct kvc_result *r, double *v)
{
    uint64_t n = r->n_requests;
    const struct kvc_request_result *q = r->requests;
    for (uint64_t i = 0; i < n; i++)
        v[i] = (double)q[i].queue_ns / 1e6;
    r->queue_ms = dist_of(v, n);
    for (uint64_t i = 0; i < n; i++)
        v[i] = (double)q[i].e2e_ns / 1e6;
    r->e2e_ms = dist_of(v, n);
    for (uint64_t i = 0; i < n; i++)
        v[i] = (double)(q[i].e2e_ns - q[i].ttft_ns) / 1e6 / q[i].output_tokens;
    r->tpot_ms = dist_of(v, n);
    for (uint64_t i = 0; i < n; i++)
        v[i] = (double)q[i].ttft_ns / 1e6;
    r->ttft_ms = dist_of(v, n);
    add_parts(r);
    double s = (double)r->makespan_ns / 1e9;
    r->requests_per_s = n ? (double)n / s : 0;
    r->input_tokens_per_s = n ? (double)r->input_tokens / s : 0;
    r->output_tokens_per_s = n ? (double)r->output_tokens / s : 0;
}

static void add_tiers(struct kvc_result *r)
{
    static const struct kvc_tier_result tiers[4] = {
        {.name = "hbm", .scope = "per_replica", .policy = "lru", .link = ""},
        {.name = "dram", .scope = "per_node", .policy = "lru", .link = "pcie5-x16"},
        {.name = "nvme", .scope = "per_node", .policy = "lru", .link = "nvme-gen5-x4"},
        {.name = "remote", .scope = "cluster", .policy = "lru", .link = "rdma-400"}};
    static const double gib[4] = {3200, 1024, 8192, 20480};
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        struct kvc_tier_result *t = &r->tiers[i];
        uint64_t hits = t->hit_tokens;
        *t = tiers[i];
        t->hit_tokens = hits;
        t->capacity_bytes = (uint64_t)(gib[i] * GIB);
        t->instances = i < 3 ? 4 : 1;
        t->peak_bytes = (uint64_t)(gib[i] * GIB * (i < 2 ? 1 : 0.4));
        t->written_bytes = (r->input_tokens - r->hit_tokens) * 163840;
        t->read_bytes = hits * 163840;
        t->evicted_bytes = t->written_bytes > t->peak_bytes ? t->written_bytes - t->peak_bytes : 0;
        t->never_read_bytes = t->written_bytes / 10 * (3 + i);
        t->writes_per_day_of_capacity = (double)t->written_bytes * 24 / (gib[i] * GIB);
    }
    r->n_links = r->n_tiers - 1;
    for (uint32_t i = 0; i < r->n_links; i++) {
        struct kvc_link_result *l = &r->links[i];
        snprintf(l->name, sizeof(l->name), "%s", tiers[i + 1].link);
        l->bytes = r->tiers[i + 1].read_bytes + r->tiers[i + 1].written_bytes;
        l->busy_fraction = 0.07 + 0.1 * i;
        l->peak_flows = 3 + 4 * i;
        l->mean_bytes_per_s = (double)l->bytes / 3600;
        l->capacity_bytes_per_s = i == 0 ? 32 * 55e9 : i == 1 ? 4 * 13e9 : 32 * 45e9;
    }
}

static void add_curve(struct kvc_result *r)
{
    double top = r->input_tokens
                     ? 0.02 + 1.12 * (double)r->hit_tokens / (double)r->input_tokens : 0;
    top = top > 1 ? 1 : top;
    r->content_token_hit_rate = top;
    r->capacity_token_hit_rate = top * 0.985;
    r->lru_token_hit_rate = top * 0.96;
    r->n_curve = 60;
    for (uint32_t i = 0; i < r->n_curve; i++) {
        double gib = 4 * pow(2, i * 13.0 / 59);
        r->curve[i].capacity_bytes = (uint64_t)(gib * GIB);
        r->curve[i].lru_token_hit_rate = top * (1 - exp(-pow(gib / 900, 0.8)));
        r->curve[i].opt_token_hit_rate = top * (1 - exp(-pow(gib / 350, 0.7)));
    }
}

static void set_series(struct kvc_result *r, const char *name, const char *unit, double base,
                       double swing, uint64_t *rng)
{
    struct kvc_series *s = &r->series[r->n_series++];
    snprintf(s->name, sizeof(s->name), "%s", name);
    snprintf(s->unit, sizeof(s->unit), "%s", unit);
    s->n = 240;
    s->time_ns = kvc_malloc(s->n, sizeof(*s->time_ns));
    s->value = kvc_malloc(s->n, sizeof(*s->value));
    if (!s->time_ns || !s->value)
        s->n = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->time_ns[i] = i * 15000000000u;
        double v = base + swing * sin((double)i / 20) + 0.2 * swing * normal(rng);
        s->value[i] = v > 0 ? v : 0;
    }
}

static void add_all_series(struct kvc_result *r, uint64_t *rng)
{
    char name[48];
    set_series(r, "arrivals_per_s", "1/s", 1.7, 0.6, rng);
    set_series(r, "running", "requests", 14, 5, rng);
    set_series(r, "waiting", "requests", 0.5, 1.5, rng);
    set_series(r, "hbm_used_fraction", "fraction", 0.8, 0.1, rng);
    for (uint32_t i = 0; i < r->n_links; i++) {
        snprintf(name, sizeof(name), "link:%.32s", r->links[i].name);
        set_series(r, name, "fraction", 0.1 + 0.1 * i, 0.05, rng);
    }
}

static void add_assumptions(struct kvc_result *r)
{
    static const struct kvc_assumption list[] = {
        {"gpu", "H200 SXM memory", "141 GB", "datasheet", "NVIDIA H200 data sheet, 2024-11"},
        {"gpu", "HBM bandwidth", "4.8 TB/s", "datasheet", "NVIDIA H200 data sheet, 2024-11"},
        {"kernels", "fp8 GEMM efficiency", "0.74", "fitted", "aiconfigurator kernels, vLLM 0.24"},
        {"link", "nvme-gen5-x4 read", "13 GB/s", "assumed", "no measurement; drive data sheets"},
        {"price", "GPU hour", "USD 3.50", "scenario", "prices.gpu_hour_usd"},
        {"engine", "page", "16 tokens", "published", "vLLM documentation"}};
    r->n_assumptions = sizeof(list) / sizeof(list[0]);
    memcpy(r->assumptions, list, sizeof(list));
    r->n_warnings = 2;
    strcpy(r->warnings[0].code, "arrivals_batched");
    strcpy(r->warnings[0].text, "Arrivals come in batches 3 s apart; the first seconds of each "
                                "batch queue longer than real traffic would.");
    strcpy(r->warnings[1].code, "assumed_link");
    strcpy(r->warnings[1].text, "The NVMe figures are assumed; measure yours with fio.");
}

static void add_money(struct kvc_result *r)
{
    struct kvc_cost *c = &r->cost;
    c->part_gpu = 112;
    c->part_dram = r->n_tiers > 1 ? 0.69 : 0;
    c->part_nvme = r->n_tiers > 2 ? 0.36 : 0;
    c->part_network = 1.28;
    c->part_power = 2.9;
    c->usd_per_hour = c->part_gpu + c->part_dram + c->part_nvme + c->part_network + c->part_power;
    c->usd_total = c->usd_per_hour * (double)r->makespan_ns / 3.6e12;
    c->usd_per_million_input_tokens = 1.02;
    c->usd_per_million_cached_tokens = 0.11;
    c->usd_per_million_output_tokens = 9.4;
    c->saving_vs_hbm_only_usd_per_month = r->n_tiers > 1 ? 2480 : 0;
    r->gpu_seconds_per_million_missed_tokens = 308;
    r->n_bands = r->ttft_ms.count ? 2 : 0;
    strcpy(r->bands[0].name, "ttft_ms.p50");
    r->bands[0].low = r->ttft_ms.p50 * 0.82;
    r->bands[0].high = r->ttft_ms.p50 * 1.21;
    strcpy(r->bands[1].name, "ttft_ms.p99");
    r->bands[1].low = r->ttft_ms.p99 * 0.74;
    r->bands[1].high = r->ttft_ms.p99 * 1.36;
    strcpy(r->band_source, "122 rows of vLLM 0.24 on H200, dense models, fp8");
}

static bool allocate(struct kvc_result *r, uint32_t n_requests)
{
    r->requests = kvc_calloc(n_requests, sizeof(*r->requests));
    r->links = kvc_calloc(KVC_MAX_TIERS, sizeof(*r->links));
    r->replicas = kvc_calloc(4, sizeof(*r->replicas));
    r->tenants = kvc_calloc(4, sizeof(*r->tenants));
    r->curve = kvc_calloc(64, sizeof(*r->curve));
    r->warnings = kvc_calloc(4, sizeof(*r->warnings));
    r->assumptions = kvc_calloc(16, sizeof(*r->assumptions));
    r->series = kvc_calloc(16, sizeof(*r->series));
    r->scenario_json = kvc_strdup(scenario);
    return r->requests && r->links && r->replicas && r->tenants && r->curve && r->warnings &&
           r->assumptions && r->series && r->scenario_json;
}

struct kvc_result *report_sample(uint64_t seed, uint32_t n_requests, uint32_t n_tiers)
{
    struct kvc_result *r = kvc_calloc(1, sizeof(*r));
    double *scratch = kvc_malloc(n_requests, sizeof(*scratch));
    uint64_t rng = kvc_rng_stream(seed, "report sample");
    if (!r || !scratch || !allocate(r, n_requests)) {
        kvc_free(scratch);
        kvc_result_destroy(r);
        return NULL;
    }
    strcpy(r->trace_digest, "91ab04c2ffe01733");
    strcpy(r->profiles_digest, "07d1e6aa5b20c914");
    strcpy(r->title, "Llama-3.1-70B fp8 on 4 x (8 x H200 SXM), vLLM 0.24");
    r->has_prefix = true;
    r->n_requests = r->arrived = r->completed = r->measured = n_requests;
    r->n_tiers = n_tiers;
    r->n_replicas = 4;
    for (uint32_t i = 0; i < n_requests; i++)
        draw_request(r, i, &rng);
    for (uint32_t i = 0; i < r->n_replicas; i++)
        r->replicas[i] = (struct kvc_replica_result){.id = i, .busy_fraction = 0.5 + 0.05 * i,
                                                     .peak_running = 20 + i, .preemptions = i};
    add_counts(r, &rng);
    add_times(r, scratch);
    add_tiers(r);
    add_curve(r);
    add_all_series(r, &rng);
    add_assumptions(r);
    add_money(r);
    r->kv_bytes_per_token = 163840;
    r->block_bytes = 163840 * 512;
    r->recomputed_tokens = n_requests * 3;
    r->runtime.wall_s = 0.42;
    r->runtime.cpu_s = 0.41;
    r->runtime.events = n_requests * 9;
    r->runtime.threads = 1;
    strcpy(r->runtime.trace_path, "rag-chat.jsonl");
    kvc_free(scratch);
    return r;
}
