/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/closeup.h"

#include <math.h>

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : (double)NAN;
}

static void count(struct kvc_json *j, const char *key, uint64_t n, bool known)
{
    if (known)
        kvc_json_u64(j, key, n);
    else
        kvc_json_null(j, key);
}

static void rate(struct kvc_json *j, const char *key, uint64_t part, uint64_t whole, bool known)
{
    kvc_json_double(j, key, known ? ratio(part, whole) : (double)NAN);
}

void kvc_hits_json(struct kvc_json *j, const struct kvc_hits *h, bool has_prefix, bool has_tokens)
{
    bool tokens = has_prefix && has_tokens;
    count(j, "raw_hit_blocks", h->raw_hit_blocks, has_prefix);
    rate(j, "raw_block_hit_rate", h->raw_hit_blocks, h->blocks, has_prefix);
    count(j, "raw_hit_tokens", h->raw_hit_tokens, tokens);
    rate(j, "raw_token_hit_rate", h->raw_hit_tokens, h->tokens, tokens);
    count(j, "hit_blocks", h->hit_blocks, has_prefix);
    rate(j, "block_hit_rate", h->hit_blocks, h->full_blocks, has_prefix);
    count(j, "hit_tokens", h->hit_tokens, tokens);
    rate(j, "token_hit_rate", h->hit_tokens, h->tokens, tokens);
    rate(j, "request_hit_rate", h->hit_requests, h->requests, has_prefix);
}

static void hits_object(struct kvc_json *j, const char *key, const struct kvc_hits *h,
                        const struct kvc_closeup_asked *a)
{
    kvc_json_open_object(j, key);
    kvc_hits_json(j, h, a->has_prefix, a->has_tokens);
    kvc_json_close(j);
}

static void causes(struct kvc_json *j, const struct kvc_part *p)
{
    kvc_json_open_object(j, "missed_tokens");
    for (unsigned i = 0; i < KVC_MISS_CAUSES; i++)
        kvc_json_u64(j, kvc_miss_cause_name(i), p->missed_tokens[i]);
    kvc_json_close(j);
}

static void part_list(struct kvc_json *j, const char *key, const struct kvc_part *parts, uint32_t n,
                      const struct kvc_closeup_asked *a)
{
    bool known = a->has_prefix && a->has_tokens;
    kvc_json_open_array(j, key);
    for (uint32_t i = 0; i < n; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", parts[i].name);
        kvc_json_u64(j, "requests", parts[i].hits.requests);
        count(j, "input_tokens", parts[i].hits.tokens, a->has_tokens);
        kvc_hits_json(j, &parts[i].hits, a->has_prefix, a->has_tokens);
        if (a->isolate)
            count(j, "shared_hit_tokens", parts[i].shared_hit_tokens, known);
        if (a->why && known)
            causes(j, &parts[i]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void evictors(struct kvc_json *j, const struct kvc_closeup_result *r)
{
    if (!r->has_evictors) {
        kvc_json_null(j, "evicted_by");
        return;
    }
    kvc_json_open_object(j, "evicted_by");
    kvc_json_open_array(j, "names");
    for (uint32_t i = 0; i < r->n_evictors; i++)
        kvc_json_string(j, NULL, r->evictor[i]);
    kvc_json_close(j);
    kvc_json_open_array(j, "tokens"); /* a row for each whose blocks left; the last column:
                                         nobody */
    for (uint32_t i = 0; i < r->n_evictors; i++) {
        kvc_json_open_array(j, NULL);
        for (uint32_t k = 0; k <= r->n_evictors; k++)
            kvc_json_u64(j, NULL, r->evicted_tokens[i][k]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}

static void isolation(struct kvc_json *j, const struct kvc_closeup_result *r,
                      const struct kvc_closeup_asked *a)
{
    kvc_json_open_object(j, "isolation");
    hits_object(j, "shared", &r->shared, a);
    count(j, "shared_hit_tokens", r->all.shared_hit_tokens, a->has_prefix && a->has_tokens);
    kvc_json_open_array(j, "by_depth");
    for (uint32_t i = 0; i < r->n_depths; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_u64(j, "from_tokens", r->depths[i].from_tokens);
        kvc_json_u64(j, "hit_tokens", r->depths[i].hit_tokens);
        kvc_json_u64(j, "shared_hit_tokens", r->depths[i].shared_hit_tokens);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}

void kvc_closeup_json(struct kvc_json *j, const struct kvc_closeup_result *r,
                      const struct kvc_closeup_asked *a)
{
    if (a->why && a->has_prefix && a->has_tokens)
        causes(j, &r->all);
    if (r->n_replicas) {
        hits_object(j, "pool", &r->pool, a);
        hits_object(j, "optimum_pool", &r->optimum_pool, a);
        hits_object(j, "assigned_content", &r->assigned_content, a);
        hits_object(j, "assigned_optimum", &r->assigned_optimum, a);
        part_list(j, "replicas", r->replicas, r->n_replicas, a);
    }
    if (a->by)
        part_list(j, "by", r->groups, r->n_groups, a);
    if (a->why || a->isolate)
        part_list(j, "tenants", r->tenants, r->n_tenants, a);
    if (a->isolate)
        isolation(j, r, a);
    if (a->why && a->has_prefix && a->has_tokens) {
        part_list(j, "over_time", r->buckets, r->n_buckets, a);
        evictors(j, r);
    }
}

void kvc_crossing_json(struct kvc_json *j, const struct kvc_crossing *c, const char *isolate)
{
    kvc_json_open_object(j, "crossing");
    kvc_json_string(j, "isolate", isolate);
    kvc_json_u64(j, "namespaces", c->namespaces);
    kvc_json_u64(j, "blocks", c->blocks);
    kvc_json_u64(j, "tokens", c->tokens);
    kvc_json_u64(j, "crossing_blocks", c->crossing_blocks);
    kvc_json_u64(j, "crossing_tokens", c->crossing_tokens);
    kvc_json_open_array(j, "names");
    for (uint32_t i = 0; i < c->n; i++)
        kvc_json_string(j, NULL, c->name[i]);
    kvc_json_close(j);
    kvc_json_open_array(j, "common_blocks");
    for (uint32_t i = 0; i < c->n; i++) {
        kvc_json_open_array(j, NULL);
        for (uint32_t k = 0; k < c->n; k++)
            kvc_json_u64(j, NULL, c->common_blocks[i][k]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}
