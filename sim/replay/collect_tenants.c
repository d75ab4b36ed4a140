/* SPDX-License-Identifier: Apache-2.0
 * What became of each tenant, and who pushed out whom. */
#include "sim/replay/collect.h"

#include "base/alloc.h"
#include "base/distribution.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- by tenant ---- */

static void add_request(struct kvc_tenant_result *to, const struct kvc_request_result *q)
{
    to->requests++;
    to->input_tokens += q->input_tokens;
    to->output_tokens += q->output_tokens;
    for (uint32_t x = 0; x < KVC_MAX_TIERS; x++)
        to->hit_tokens += q->hit_tokens[x];
}

/* Of each tenant those that count, in one pass: v is cut into a piece for each. */
static enum kvc_status by_tenant(const struct kvc_engine *e, const struct kvc_request_result *q,
                                 struct kvc_tenant_result *to, uint64_t *v, struct kvc_error *err)
{
    uint64_t n_requests = e->trace->n_requests;
    uint32_t n = e->tenants.n;
    uint64_t *at = kvc_calloc((size_t)n + 1, sizeof(*at));
    if (!at)
        return kvc_fail_nomem(err);
    for (uint64_t i = 0; i < n_requests; i++) {
        uint32_t t = kvc_tenant_of(&e->tenants, i);
        add_request(&to[t], &q[i]);
        at[t] += kvc_collect_counts(&q[i]);
    }
    for (uint64_t sum = 0, t = 0, m; t <= n; t++, sum += m) {
        m = at[t];
        at[t] = sum;
    }
    for (uint64_t i = 0; i < n_requests; i++)
        if (kvc_collect_counts(&q[i]))
            v[at[kvc_tenant_of(&e->tenants, i)]++] = q[i].ttft_ns;
    for (uint32_t t = 0; t < n; t++) {
        uint64_t from = t ? at[t - 1] : 0;
        kvc_distribution(v + from, at[t] - from, KVC_NS_PER_MS, &to[t].ttft_ms);
    }
    kvc_free(at);
    return KVC_OK;
}

static void measure(struct kvc_engine *e, struct kvc_result *r)
{
    struct kvc_meter *m = &e->tenants.meter;
    for (uint32_t t = 0; t < e->tenants.n; t++) {
        kvc_meter_charge(m, t, 0); /* up to now */
        double s = (double)e->now * 1e-9;
        r->tenants[t].resident_bytes_mean = s > 0 ? m->rows[t].byte_s / s : 0;
        r->tenants[t].group = m->group_of[t];
    }
}

/* Jain's index of x over n: 1 when all are equal, 1 / n when one has all; of nothing shared it is
 * 0 / 0, not known. */
static double jain(const double *x, uint32_t n)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return squares > 0 ? sum * sum / (n * squares) : (double)NAN;
}

static enum kvc_status fairness(struct kvc_result *r, struct kvc_error *err)
{
    double *hit = kvc_malloc(r->n_tenants, 2 * sizeof(*hit)), *held = hit + r->n_tenants;
    uint32_t n = 0;
    if (!hit)
        return kvc_fail_nomem(err);
    for (uint32_t t = 0; t < r->n_tenants; t++) {
        const struct kvc_tenant_result *k = &r->tenants[t];
        if (!k->input_tokens)
            continue;
        hit[n] = (double)k->hit_tokens / (double)k->input_tokens;
        held[n++] = k->resident_bytes_mean / (double)k->input_tokens;
    }
    r->jain_hit_rate = jain(hit, n);
    r->jain_residency = jain(held, n);
    kvc_free(hit);
    return KVC_OK;
}

/* Hits and causes of each tenant are its input tokens. */
static enum kvc_status check_sums(const struct kvc_result *r, struct kvc_error *err)
{
    for (uint32_t t = 0; t < r->n_tenants; t++) {
        const struct kvc_tenant_result *k = &r->tenants[t];
        uint64_t sum = k->hit_tokens;
        for (int c = 0; c < KVC_MISS_CAUSES; c++)
            sum += k->missed_tokens[c];
        if (sum != k->input_tokens)
            return kvc_fail(err, KVC_ERR_INTERNAL,
                            "of tenant %.64s's %llu input tokens %llu are hits or have a cause",
                            k->name, (unsigned long long)k->input_tokens, (unsigned long long)sum);
    }
    return KVC_OK;
}

/* ---- who lost what to whom ---- */

static enum kvc_status losses(struct kvc_engine *e, struct kvc_result *r, struct kvc_error *err)
{
    static const char *const why[KVC_WHYS] = {"(decoding)", "(ttl)", "(other)"};
    struct kvc_meter *m = &e->tenants.meter;
    struct kvc_losses *l = &r->losses;
    uint32_t columns = kvc_meter_columns(m);
    l->names = kvc_calloc(columns, sizeof(*l->names));
    if (!l->names)
        return kvc_fail_nomem(err);
    l->n_groups = m->n_groups;
    l->n_columns = columns;
    for (uint32_t c = 0; c < columns; c++) {
        const char *name = c >= m->n_groups                     ? why[c - m->n_groups]
                           : m->tenant_of[c] == KVC_ID_NONE ? "(others)"
                                                                : r->tenants[m->tenant_of[c]].name;
        snprintf(l->names[c], sizeof(l->names[c]), "%s", name);
    }
    l->bytes = m->evicted_bytes; /* handed over */
    l->missed_tokens = m->missed_tokens;
    m->evicted_bytes = m->missed_tokens = NULL;
    return KVC_OK;
}

/* Rows of kvcast's own begin with a parenthesis; a tenant that is called so stands in quotes. */
static void set_name(struct kvc_tenant_result *to, const struct kvc_tenants *tenants, uint32_t t)
{
    const char *name = kvc_tenant_name(tenants, t);
    bool own = tenants->unnamed && t == tenants->n - 1;
    const char *quote = !own && (name[0] == '(' || name[0] == '"') ? "\"" : "";
    snprintf(to->name, sizeof(to->name), "%s%s%s", quote, name, quote);
}

enum kvc_status kvc_collect_tenants(struct kvc_engine *e, struct kvc_result *r, uint64_t *v,
                                    struct kvc_error *err)
{
    uint32_t n = e->tenants.n;
    r->tenants = kvc_calloc(n, sizeof(*r->tenants));
    if (!r->tenants)
        return kvc_fail_nomem(err);
    r->n_tenants = n;
    for (uint32_t t = 0; t < n; t++) {
        set_name(&r->tenants[t], &e->tenants, t);
        const uint64_t *missed = e->tenant_missed ? e->tenant_missed[t] : e->missed;
        memcpy(r->tenants[t].missed_tokens, missed, sizeof(r->tenants[t].missed_tokens));
    }
    enum kvc_status st = by_tenant(e, r->requests, r->tenants, v, err);
    if (st == KVC_OK)
        st = check_sums(r, err);
    if (st == KVC_OK && e->tenants.metered) {
        measure(e, r);
        st = losses(e, r, err);
    }
    return st == KVC_OK ? fairness(r, err) : st;
}

/* ---- what if ---- */

enum kvc_status kvc_collect_what_if(struct kvc_engine *e, const char *noisy,
                                    struct kvc_result *result, struct kvc_error *err)
{
    uint32_t n = e->tenants.n;
    struct kvc_tenant_result *t = kvc_calloc(n, sizeof(*t));
    uint64_t *v = kvc_malloc(e->trace->n_requests, sizeof(*v));
    struct kvc_what_if *all = kvc_realloc(result->what_ifs, result->n_what_ifs + 1, sizeof(*all));
    struct kvc_what_if_row *rows = kvc_calloc(n, sizeof(*rows));
    if (all)
        result->what_ifs = all;
    enum kvc_status st = t && v && all && rows ? by_tenant(e, e->results, t, v, err)
                                               : kvc_fail_nomem(err);
    if (st == KVC_OK) {
        struct kvc_what_if *w = &all[result->n_what_ifs++];
        *w = (struct kvc_what_if){.n = n, .rows = rows};
        snprintf(w->kind, sizeof(w->kind), "%s", noisy ? "noisy" : "isolation");
        snprintf(w->tenant, sizeof(w->tenant), "%s", noisy ? noisy : "");
        for (uint32_t i = 0; i < n; i++) {
            bool gone = noisy && strcmp(noisy, kvc_tenant_name(&e->tenants, i)) == 0;
            rows[i] = (struct kvc_what_if_row){gone ? 0 : t[i].requests, t[i].hit_tokens,
                                               t[i].ttft_ms};
        }
    } else {
        kvc_free(rows);
    }
    kvc_free(t);
    kvc_free(v);
    return st;
}
