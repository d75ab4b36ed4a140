/* SPDX-License-Identifier: Apache-2.0
 * What a report shows beyond the JSON of a run; the database keeps it beside the figures. */
#include "reports/reports.h"

static void put_counts(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_string(j, "title", r->title);
    kvc_json_bool(j, "has_prefix", r->has_prefix);
    kvc_json_u64(j, "makespan_ns", r->makespan_ns);
    kvc_json_u64(j, "output_tokens", r->output_tokens);
    kvc_json_u64(j, "hit_blocks", r->hit_blocks);
    kvc_json_u64(j, "full_blocks", r->full_blocks);
    kvc_json_u64(j, "hit_requests", r->hit_requests);
    kvc_json_u64(j, "raw_hit_tokens", r->raw_hit_tokens);
    kvc_json_u64(j, "raw_hit_blocks", r->raw_hit_blocks);
    kvc_json_u64(j, "blocks", r->blocks);
    kvc_json_u64(j, "kv_bytes_per_token", r->kv_bytes_per_token);
    kvc_json_u64(j, "block_bytes", r->block_bytes);
    kvc_json_double(j, "gpu_seconds_per_million_missed_tokens",
                    r->gpu_seconds_per_million_missed_tokens);
    kvc_json_double(j, "lru_token_hit_rate", r->lru_token_hit_rate);
}

/* In the order of the same arrays in the figures. */
static void put_parts(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_array(j, "tiers");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "policy", r->tiers[i].policy);
        kvc_json_string(j, "link", r->tiers[i].link);
        kvc_json_u64(j, "instances", r->tiers[i].instances);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_open_array(j, "links");
    for (uint32_t i = 0; i < r->n_links; i++)
        kvc_json_double(j, NULL, r->links[i].capacity_bytes_per_s);
    kvc_json_close(j);
    kvc_json_open_array(j, "replica_hit_tokens");
    for (uint32_t i = 0; i < r->n_replicas; i++)
        kvc_json_u64(j, NULL, r->replicas[i].hit_tokens);
    kvc_json_close(j);
    kvc_json_open_array(j, "tenants");
    for (uint32_t i = 0; i < r->n_tenants; i++) {
        kvc_json_open_array(j, NULL);
        kvc_json_u64(j, NULL, r->tenants[i].input_tokens);
        kvc_json_u64(j, NULL, r->tenants[i].hit_tokens);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_curve(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_array(j, "curve");
    for (uint32_t i = 0; i < r->n_curve; i++) {
        kvc_json_open_array(j, NULL);
        kvc_json_u64(j, NULL, r->curve[i].capacity_bytes);
        kvc_json_double(j, NULL, r->curve[i].lru_token_hit_rate);
        kvc_json_double(j, NULL, r->curve[i].opt_token_hit_rate);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_sources(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_array(j, "assumptions");
    for (const struct kvc_assumption *a = r->assumptions; a < r->assumptions + r->n_assumptions;
         a++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "group", a->group);
        kvc_json_string(j, "name", a->name);
        kvc_json_string(j, "value", a->value);
        kvc_json_string(j, "kind", a->kind);
        kvc_json_string(j, "source", a->source);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_open_array(j, "series_units");
    for (uint32_t i = 0; i < r->n_series; i++) {
        kvc_json_open_array(j, NULL);
        kvc_json_string(j, NULL, r->series[i].name);
        kvc_json_string(j, NULL, r->series[i].unit);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_ttft(struct kvc_json *j, const struct kvc_findings *f)
{
    kvc_json_open_array(j, "ttft_by_hit");
    for (size_t c = 0; f->has_ttft && c < KVC_TTFT_CLASSES; c++) {
        kvc_json_open_object(j, NULL);
        kvc_json_u64(j, "count", f->ttft[c].count);
        kvc_json_open_array(j, "quantiles_ms");
        for (size_t i = 0; i < KVC_TTFT_QUANTILES; i++)
            kvc_json_double(j, NULL, f->ttft[c].q_ms[i]);
        kvc_json_close(j);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

void kvc_detail_to_json(struct kvc_json *j, const struct kvc_result *r,
                        const struct kvc_findings *f)
{
    kvc_json_open_object(j, NULL);
    put_counts(j, r);
    put_parts(j, r);
    put_curve(j, r);
    put_sources(j, r);
    put_ttft(j, f);
    kvc_json_close(j);
}
