/* SPDX-License-Identifier: Apache-2.0
 * Tenants in JSON: their figures, who pushed out whom, what if. Written and read back. */
#include "reports/reports.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double rate_or_unknown(const struct kvc_result *r, uint64_t part, uint64_t whole)
{
    return r->has_prefix ? kvc_ratio(part, whole) : (double)NAN;
}

bool kvc_tenant_own_group(const struct kvc_result *r, const struct kvc_tenant_result *t)
{
    return r->losses.n_groups && strcmp(r->losses.names[t->group], t->name) == 0;
}

bool kvc_tenants_held(const struct kvc_result *r, uint32_t group, double held[KVC_HELD_PARTS])
{
    static const char prefix[] = "resident_bytes:";
    const struct kvc_series *s = r->series, *end = s ? s + r->n_series : s;
    for (; s < end; s++)
        if (strncmp(s->name, prefix, sizeof(prefix) - 1) == 0 && group-- == 0)
            break;
    if (s == end || !s->n || !r->makespan_ns)
        return false;
    double part = (double)r->makespan_ns / KVC_HELD_PARTS;
    double width = s->n > 1 ? (double)(s->time_ns[1] - s->time_ns[0]) : (double)r->makespan_ns;
    for (uint32_t i = 0; i < KVC_HELD_PARTS; i++) {
        double from = part * i, to = part * (i + 1);
        held[i] = 0;
        for (size_t k = 0; k < s->n; k++) {
            double start = fmax((double)s->time_ns[k], from);
            double stop = fmin((double)s->time_ns[k] + width, to);
            held[i] += stop > start ? s->value[k] * (stop - start) / part : 0;
        }
    }
    return true;
}

static void put_held(struct kvc_json *j, const struct kvc_result *r,
                     const struct kvc_tenant_result *t)
{
    double held[KVC_HELD_PARTS];
    bool known = kvc_tenant_own_group(r, t) && kvc_tenants_held(r, t->group, held);
    kvc_json_open_array(j, "resident_bytes_over_time");
    for (uint32_t i = 0; known && i < KVC_HELD_PARTS; i++)
        kvc_json_double(j, NULL, held[i]);
    kvc_json_close(j);
}

/* Its row, without what is 0. */
static void put_row(struct kvc_json *j, const char *key, const struct kvc_result *r,
                    const struct kvc_tenant_result *t, const uint64_t *cells)
{
    const struct kvc_losses *l = &r->losses;
    kvc_json_open_object(j, key);
    for (uint32_t c = 0; kvc_tenant_own_group(r, t) && c < l->n_columns; c++)
        if (cells[t->group * l->n_columns + c])
            kvc_json_u64(j, l->names[c], cells[t->group * l->n_columns + c]);
    kvc_json_close(j);
}

void kvc_tenants_to_json(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_array(j, "tenants");
    for (uint32_t i = 0; i < r->n_tenants; i++) {
        const struct kvc_tenant_result *t = &r->tenants[i];
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "name", t->name);
        kvc_json_u64(j, "requests", t->requests);
        kvc_json_double(j, "token_hit_rate", rate_or_unknown(r, t->hit_tokens, t->input_tokens));
        kvc_json_dist(j, "ttft_ms", &t->ttft_ms);
        kvc_json_double(j, "resident_bytes_mean", t->resident_bytes_mean);
        put_row(j, "evicted_by", r, t, r->losses.bytes);
        kvc_json_double(j, "cost_usd", t->cost_usd);
        kvc_json_u64(j, "input_tokens", t->input_tokens);
        kvc_json_u64(j, "hit_tokens", t->hit_tokens);
        kvc_json_u64(j, "output_tokens", t->output_tokens);
        kvc_json_open_object(j, "missed_tokens");
        for (int c = 0; c < KVC_MISS_CAUSES; c++)
            kvc_json_u64(j, kvc_miss_cause_name((enum kvc_miss_cause)c), t->missed_tokens[c]);
        kvc_json_close(j);
        put_row(j, "missed_tokens_by", r, t, r->losses.missed_tokens);
        put_held(j, r, t);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_matrix(struct kvc_json *j, const char *key, const struct kvc_losses *l,
                       const uint64_t *cells)
{
    kvc_json_open_array(j, key);
    for (uint32_t g = 0; g < l->n_groups; g++) {
        kvc_json_open_array(j, NULL);
        for (uint32_t c = 0; c < l->n_columns; c++)
            kvc_json_u64(j, NULL, cells[g * l->n_columns + c]);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

static void put_what_ifs(struct kvc_json *j, const struct kvc_result *r)
{
    kvc_json_open_array(j, "what_if");
    for (const struct kvc_what_if *w = r->what_ifs; w && w < r->what_ifs + r->n_what_ifs; w++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "kind", w->kind);
        kvc_json_string(j, "tenant", w->tenant[0] ? w->tenant : NULL);
        kvc_json_open_array(j, "tenants");
        for (uint32_t i = 0; i < w->n && i < r->n_tenants; i++) {
            kvc_json_open_object(j, NULL);
            kvc_json_string(j, "name", r->tenants[i].name);
            kvc_json_u64(j, "requests", w->rows[i].requests);
            kvc_json_u64(j, "hit_tokens", w->rows[i].hit_tokens);
            kvc_json_double(j, "token_hit_rate",
                            w->rows[i].requests ? rate_or_unknown(r, w->rows[i].hit_tokens,
                                                                  r->tenants[i].input_tokens)
                                                : (double)NAN);
            kvc_json_dist(j, "ttft_ms", &w->rows[i].ttft_ms);
            kvc_json_close(j);
        }
        kvc_json_close(j);
        kvc_json_close(j);
    }
    kvc_json_close(j);
}

void kvc_losses_to_json(struct kvc_json *j, const struct kvc_result *r)
{
    const struct kvc_losses *l = &r->losses;
    kvc_json_open_object(j, "fairness");
    kvc_json_double(j, "jain_hit_rate", r->jain_hit_rate);
    kvc_json_double(j, "jain_residency", r->jain_residency);
    kvc_json_close(j);
    kvc_json_open_object(j, "losses");
    kvc_json_open_array(j, "of");
    for (uint32_t g = 0; g < l->n_groups; g++)
        kvc_json_string(j, NULL, l->names[g]);
    kvc_json_close(j);
    kvc_json_open_array(j, "to");
    for (uint32_t c = 0; c < l->n_columns; c++)
        kvc_json_string(j, NULL, l->names[c]);
    kvc_json_close(j);
    put_matrix(j, "bytes", l, l->bytes);
    put_matrix(j, "missed_tokens", l, l->missed_tokens);
    kvc_json_close(j);
    put_what_ifs(j, r);
}
