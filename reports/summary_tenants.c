/* SPDX-License-Identifier: Apache-2.0
 * The summary's part on tenants: what each got, who pushed out whom, what each held when. */
#include "reports/reports.h"

#include <math.h>
#include <string.h>

#define SHOWN 12       /* tenants */
#define MATRIX_MOST 8  /* whose losses fit beside one another .. */
#define HELD_MOST 5    /* .. and what they held still on the screen */
#define NAME_COLUMNS 12

static double hit_rate(const struct kvc_result *r, uint64_t hit_tokens, uint64_t input_tokens)
{
    return r->has_prefix ? kvc_ratio(hit_tokens, input_tokens) : (double)NAN;
}

static void put_ttft(struct kvc_text *t, const struct kvc_dist *d)
{
    if (d->count)
        kvc_text_addf(t, "TTFT p50 %s, p99 %s", kvc_fmt_ms(d->p50).s, kvc_fmt_ms(d->p99).s);
    else
        kvc_text_add(t, "TTFT none");
}

static void put_each(struct kvc_text *t, const struct kvc_result *r)
{
    for (uint32_t i = 0; i < r->n_tenants && i < SHOWN; i++) {
        const struct kvc_tenant_result *k = &r->tenants[i];
        kvc_text_addf(t, "Tenant %-18.40s %9s request%s, %s hit, ", k->name,
                      kvc_fmt_count(k->requests).s, k->requests == 1 ? "" : "s",
                      kvc_fmt_percent(hit_rate(r, k->hit_tokens, k->input_tokens)).s);
        put_ttft(t, &k->ttft_ms);
        kvc_text_addf(t, ", %s held, %s\n", kvc_fmt_bytes(k->resident_bytes_mean).s,
                      kvc_fmt_usd(k->cost_usd).s);
    }
    if (r->n_tenants > SHOWN)
        kvc_text_addf(t, "  and %s more\n", kvc_fmt_count(r->n_tenants - SHOWN).s);
}

static void put_jain(struct kvc_text *t, const char *what, double index, const char *end)
{
    bool none = isnan(index);
    kvc_text_addf(t, "%s %s%s", what, none ? "none" : kvc_fmt_fixed(index, 2, false).s, end);
}

static bool any(const struct kvc_losses *l, uint32_t column)
{
    uint64_t sum = 0;
    for (uint32_t g = 0; g < l->n_groups; g++)
        sum += l->bytes[g * l->n_columns + column];
    return sum > 0;
}

/* Columns of nobody are left out. */
static void put_losses(struct kvc_text *t, const struct kvc_losses *l)
{
    uint32_t shown = 0;
    for (uint32_t c = 0; c < l->n_columns; c++)
        shown += any(l, c);
    if (!shown || shown > MATRIX_MOST)
        return;
    kvc_text_addf(t, "Left a tier: whose (rows), and for whose requests (columns)\n%*s",
                  NAME_COLUMNS, "");
    for (uint32_t c = 0; c < l->n_columns; c++)
        if (any(l, c))
            kvc_text_addf(t, " %10.10s", l->names[c]);
    for (uint32_t g = 0; g < l->n_groups; g++) {
        kvc_text_addf(t, "\n%-*.*s", NAME_COLUMNS, NAME_COLUMNS, l->names[g]);
        for (uint32_t c = 0; c < l->n_columns; c++)
            if (any(l, c))
                kvc_text_addf(t, " %10s",
                              kvc_fmt_bytes((double)l->bytes[g * l->n_columns + c]).s);
    }
    kvc_text_add(t, "\n");
}

static void put_held(struct kvc_text *t, const struct kvc_result *r)
{
    double held[KVC_HELD_PARTS];
    for (uint32_t g = 0; g < r->losses.n_groups && kvc_tenants_held(r, g, held); g++) {
        kvc_text_addf(t, "%s%-*.*s", g ? "" : "KV held on average in each eighth of the run\n",
                      NAME_COLUMNS, NAME_COLUMNS, r->losses.names[g]);
        for (uint32_t i = 0; i < KVC_HELD_PARTS; i++)
            kvc_text_addf(t, " %10s", kvc_fmt_bytes(held[i]).s);
        kvc_text_add(t, "\n");
    }
}

static void put_what_if(struct kvc_text *t, const struct kvc_result *r,
                        const struct kvc_what_if *w)
{
    for (uint32_t i = 0; i < w->n && i < SHOWN; i++) {
        if (!w->rows[i].requests)
            continue;
        kvc_text_addf(t, "%s %s: %s would hit %s, ", w->tenant[0] ? "Without" : "With all kept",
                      w->tenant[0] ? w->tenant : "apart", r->tenants[i].name,
                      kvc_fmt_percent(hit_rate(r, w->rows[i].hit_tokens,
                                               r->tenants[i].input_tokens)).s);
        put_ttft(t, &w->rows[i].ttft_ms);
        kvc_text_add(t, "\n");
    }
}

void kvc_text_tenants(struct kvc_text *t, const struct kvc_result *r)
{
    if (r->n_tenants > 1) {
        kvc_text_add(t, "\n");
        put_each(t, r);
        put_jain(t, "Jain's index of fairness, 1 when all fare alike: of hit rates",
                 r->jain_hit_rate, ", ");
        put_jain(t, "of KV held", r->jain_residency, "\n");
        if (r->n_tenants <= MATRIX_MOST && r->losses.n_groups)
            put_losses(t, &r->losses);
        if (r->n_tenants <= HELD_MOST)
            put_held(t, r);
    }
    for (const struct kvc_what_if *w = r->what_ifs; w && w < r->what_ifs + r->n_what_ifs; w++)
        put_what_if(t, r, w);
}
