/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/reports.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

void kvc_json_dist(struct kvc_json *j, const char *key, const struct kvc_dist *d)
{
    bool known = d->count > 0;
    kvc_json_open_object(j, key);
    kvc_json_double(j, "mean", known ? d->mean : NAN);
    kvc_json_double(j, "p50", known ? d->p50 : NAN);
    kvc_json_double(j, "p90", known ? d->p90 : NAN);
    kvc_json_double(j, "p95", known ? d->p95 : NAN);
    kvc_json_double(j, "p99", known ? d->p99 : NAN);
    kvc_json_double(j, "max", known ? d->max : NAN);
    kvc_json_u64(j, "count", d->count);
    kvc_json_close(j);
}

/* A hit rate: null without prefix information. */
static void put_rate(struct kvc_json *j, const char *key, const struct kvc_result *r, uint64_t part,
                     uint64_t whole)
{
    kvc_json_double(j, key, r->has_prefix ? kvc_ratio(part, whole) : NAN);
}

static void put_head(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_string(j, "schema", "kvcast.replay.v1");
    kvc_json_string(j, "version", kvc_version());
    kvc_json_raw(j, "scenario",
                 r->scenario_json && r->scenario_json[0] ? r->scenario_json : "null");
    kvc_json_open_object(j, "digests");
    kvc_json_string(j, "trace", r->trace_digest);
    kvc_json_string(j, "profiles", r->profiles_digest);
    kvc_json_close(j);
    kvc_json_open_object(j, "requests");
    kvc_json_u64(j, "arrived", r->arrived);
    kvc_json_u64(j, "completed", r->completed);
    kvc_json_u64(j, "failed", r->failed);
    kvc_json_u64(j, "unservable", r->unservable);
    kvc_json_u64(j, "measured", r->measured);
    kvc_json_close(j);
}

static void put_times(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_dist(j, "ttft_ms", &r->ttft_ms);
    kvc_json_dist(j, "tpot_ms", &r->tpot_ms);
    kvc_json_dist(j, "e2e_ms", &r->e2e_ms);
    kvc_json_dist(j, "queue_ms", &r->queue_ms);
    bool known = r->ttft_ms.count > 0;
    kvc_json_open_object(j, "ttft_parts_ms");
    kvc_json_double(j, "queue", known ? r->ttft_part_queue_ms : NAN);
    kvc_json_double(j, "route", known ? r->ttft_part_route_ms : NAN);
    kvc_json_double(j, "load", known ? r->ttft_part_load_ms : NAN);
    kvc_json_double(j, "prefill", known ? r->ttft_part_prefill_ms : NAN);
    kvc_json_double(j, "host", known ? r->ttft_part_host_ms : NAN);
    kvc_json_close(j);
}

static void put_hits(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_object(j, "hits");
    kvc_json_u64(j, "input_tokens", r->input_tokens);
    kvc_json_u64(j, "hit_tokens", r->hit_tokens);
    put_rate(j, "token_hit_rate", r, r->hit_tokens, r->input_tokens);
    put_rate(j, "block_hit_rate", r, r->hit_blocks, r->full_blocks);
    put_rate(j, "request_hit_rate", r, r->hit_requests, r->arrived);
    put_rate(j, "raw_token_hit_rate", r, r->raw_hit_tokens, r->input_tokens);
    put_rate(j, "raw_block_hit_rate", r, r->raw_hit_blocks, r->blocks);
    kvc_json_open_object(j, "by_tier");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        kvc_json_open_object(j, r->tiers[i].name);
        kvc_json_u64(j, "hit_tokens", r->tiers[i].hit_tokens);
        put_rate(j, "token_hit_rate", r, r->tiers[i].hit_tokens, r->input_tokens);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_u64(j, "recomputed_tokens", r->recomputed_tokens);
    kvc_json_open_object(j, "missed_tokens");
    for (int i = 0; i < KVC_MISS_CAUSES; i++)
        kvc_json_u64(j, kvc_miss_cause_name((enum kvc_miss_cause)i), r->missed_tokens[i]);
    kvc_json_close(j);
    kvc_json_close(j);
}

static void put_machine(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_object(j, "throughput");
    kvc_json_double(j, "requests_per_s", r->requests_per_s);
    kvc_json_double(j, "input_tokens_per_s", r->input_tokens_per_s);
    kvc_json_double(j, "output_tokens_per_s", r->output_tokens_per_s);
    kvc_json_double(j, "makespan_s", (double)r->makespan_ns / 1e9);
    kvc_json_close(j);
    kvc_json_open_array(j, "tiers");
    for (const struct kvc_tier_result *t = r->tiers; t < r->tiers + r->n_tiers; t++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", t->name);
        kvc_json_string(j, "scope", t->scope);
        kvc_json_u64(j, "capacity_bytes", t->capacity_bytes);
        kvc_json_u64(j, "peak_bytes", t->peak_bytes);
        kvc_json_u64(j, "written_bytes", t->written_bytes);
        kvc_json_u64(j, "read_bytes", t->read_bytes);
        kvc_json_u64(j, "evicted_bytes", t->evicted_bytes);
        kvc_json_u64(j, "never_read_bytes", t->never_read_bytes);
        kvc_json_u64(j, "refused_bytes", t->refused_bytes);
        kvc_json_double(j, "writes_per_day_of_capacity", t->writes_per_day_of_capacity);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_open_array(j, "links");
    for (uint32_t i = 0; i < r->n_links; i++) {
        const struct kvc_link_result *l = &r->links[i];
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", l->name);
        kvc_json_u64(j, "bytes", l->bytes);
        kvc_json_double(j, "busy_fraction", l->busy_fraction);
        kvc_json_u64(j, "peak_flows", l->peak_flows);
        kvc_json_double(j, "mean_bytes_per_s", l->mean_bytes_per_s);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_sharers(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_array(j, "replicas");
    for (uint32_t i = 0; i < r->n_replicas; i++) {
        const struct kvc_replica_result *p = &r->replicas[i];
        kvc_json_open_object(j, NULL);
        kvc_json_u64(j, "id", p->id);
        kvc_json_u64(j, "requests", p->requests);
        kvc_json_u64(j, "input_tokens", p->input_tokens);
        kvc_json_double(j, "busy_fraction", p->busy_fraction);
        put_rate(j, "token_hit_rate", r, p->hit_tokens, p->input_tokens);
        kvc_json_u64(j, "peak_running", p->peak_running);
        kvc_json_u64(j, "preemptions", p->preemptions);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_tenants_to_json(j, r);
}

static void put_cost(struct kvc_json *j, const struct kvc_cost *c)
{
    kvc_json_open_object(j, "cost");
    kvc_json_double(j, "usd_per_hour", c->usd_per_hour);
    kvc_json_double(j, "usd_per_million_input_tokens", c->usd_per_million_input_tokens);
    kvc_json_double(j, "usd_per_million_cached_tokens", c->usd_per_million_cached_tokens);
    kvc_json_double(j, "usd_per_million_output_tokens", c->usd_per_million_output_tokens);
    kvc_json_double(j, "usd_total", c->usd_total);
    kvc_json_double(j, "saving_vs_hbm_only_usd_per_month", c->saving_vs_hbm_only_usd_per_month);
    kvc_json_open_object(j, "parts");
    kvc_json_double(j, "gpu", c->part_gpu);
    kvc_json_double(j, "dram", c->part_dram);
    kvc_json_double(j, "nvme", c->part_nvme);
    kvc_json_double(j, "network", c->part_network);
    kvc_json_double(j, "power", c->part_power);
    kvc_json_close(j);
    kvc_json_close(j);
}

static void put_trust(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_object(j, "bands");
    for (uint32_t i = 0; i < r->n_bands; i++) {
        kvc_json_open_array(j, r->bands[i].name);
        kvc_json_double(j, NULL, r->bands[i].low);
        kvc_json_double(j, NULL, r->bands[i].high);
        kvc_json_close(j);
    }
    kvc_json_string(j, "source", r->band_source);
    kvc_json_close(j);
    bool known = kvc_bounds_known(r);
    kvc_json_open_object(j, "bounds");
    kvc_json_double(j, "content_token_hit_rate", known ? r->content_token_hit_rate : NAN);
    kvc_json_double(j, "capacity_token_hit_rate", known ? r->capacity_token_hit_rate : NAN);
    kvc_json_close(j);
    kvc_json_open_array(j, "warnings");
    for (uint32_t i = 0; i < r->n_warnings; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "code", r->warnings[i].code);
        kvc_json_string(j, "text", r->warnings[i].text);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_runtime(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_object(j, "runtime");
    kvc_json_double(j, "wall_s", r->runtime.wall_s);
    kvc_json_double(j, "cpu_s", r->runtime.cpu_s);
    kvc_json_u64(j, "events", r->runtime.events);
    kvc_json_u64(j, "steps", r->runtime.steps);
    kvc_json_u64(j, "peak_rss_bytes", r->runtime.peak_rss_bytes);
    kvc_json_u64(j, "threads", r->runtime.threads);
    kvc_json_open_object(j, "paths");
    kvc_json_string(j, "trace", r->runtime.trace_path);
    kvc_json_close(j);
    kvc_json_close(j);
}

void kvc_result_to_json(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_object(j, NULL);
    put_head(j, r);
    put_times(j, r);
    put_hits(j, r);
    put_machine(j, r);
    put_sharers(j, r);
    put_cost(j, &r->cost);
    put_trust(j, r);
    kvc_losses_to_json(j, r);
    put_runtime(j, r);
    kvc_json_close(j);
}

enum kvc_status kvc_report_json(const struct kvc_result *result, const char *path,
                                struct kvc_error *err)
{
    struct kvc_json j;
    kvc_json_init(&j, true);
    kvc_result_to_json(&j, result);
    char *json = kvc_json_take(&j);
    if (!json)
        return kvc_fail_nomem(err);
    struct kvc_text t = {0};
    kvc_text_add(&t, json);
    kvc_free(json);
    if (t.len && t.buf[t.len - 1] != '\n')
        kvc_text_add(&t, "\n");
    return kvc_file_put_text(path, &t, err);
}
