/* SPDX-License-Identifier: Apache-2.0
 * The page's part on tenants: what each got, who pushed out whom, what if. */
#include "reports/html.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 12 /* tenants, the largest ones */

struct view {
    const struct kvc_page *p;
    uint32_t n, at[SHOWN]; /* the largest tenants, by input tokens */
};

static struct view look(const struct kvc_page *p)
{
    struct view v = {.p = p};
    const struct kvc_result *r = p->r;
    while (v.n < SHOWN && v.n < r->n_tenants) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < r->n_tenants; i++) {
            bool taken = false;
            for (uint32_t k = 0; k < v.n; k++)
                taken |= v.at[k] == i;
            if (!taken && (best == UINT32_MAX ||
                           r->tenants[i].input_tokens > r->tenants[best].input_tokens))
                best = i;
        }
        v.at[v.n++] = best;
    }
    return v;
}

static double hit_rate(const struct kvc_result *r, const struct kvc_tenant_result *k)
{
    return r->has_prefix ? kvc_ratio(k->hit_tokens, k->input_tokens) : (double)NAN;
}

static double known(const struct kvc_dist *d, double v)
{
    return d->count ? v : (double)NAN;
}

static struct kvc_str jain(double index)
{
    return isnan(index) ? (struct kvc_str){"none"} : kvc_fmt_fixed(index, 2, false);
}

static void put_figures(const struct view *v)
{
    struct kvc_text *t = v->p->t;
    const struct kvc_result *r = v->p->r;
    kvc_html_table(t, "Tenant|#Requests|#Input tokens|#Hit rate||#TTFT p50|#TTFT p99|#Mean KV held|"
                      "#Cost");
    for (uint32_t i = 0; i < v->n; i++) {
        const struct kvc_tenant_result *k = &r->tenants[v->at[i]];
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, k->name);
        kvc_html_number(t, kvc_fmt_count(k->requests));
        kvc_html_number(t, kvc_fmt_tokens((double)k->input_tokens));
        kvc_html_number(t, kvc_fmt_percent(hit_rate(r, k)));
        kvc_html_bar(t, hit_rate(r, k), "blue");
        kvc_html_number(t, kvc_fmt_ms(known(&k->ttft_ms, k->ttft_ms.p50)));
        kvc_html_number(t, kvc_fmt_ms(known(&k->ttft_ms, k->ttft_ms.p99)));
        kvc_html_number(t, kvc_fmt_bytes(k->resident_bytes_mean));
        kvc_html_number(t, kvc_fmt_usd(k->cost_usd));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
    if (r->n_tenants > v->n)
        kvc_text_addf(t, "<p class=\"note\">And %s smaller ones.</p>\n",
                      kvc_fmt_count(r->n_tenants - v->n).s);
    if (r->losses.n_groups)
        kvc_text_addf(t, "<p class=\"note\">KV counts for the tenant whose request stored it. "
                         "Jain's index of fairness, 1 when all fare alike and 1/%s when one has "
                         "all: hit rates %s, KV held per input token %s.</p>\n",
                      kvc_fmt_count(r->n_tenants).s, jain(r->jain_hit_rate).s,
                      jain(r->jain_residency).s);
}

/* ---- what was missed for what ---- */

static void put_causes(const struct view *v)
{
    struct kvc_text *t = v->p->t;
    const struct kvc_result *r = v->p->r;
    char headings[400] = "Tenant|#hit";
    if (!r->has_prefix)
        return;
    for (int c = 0; c < KVC_MISS_CAUSES; c++)
        if (r->missed_tokens[c])
            snprintf(headings + strlen(headings), sizeof(headings) - strlen(headings), "|#%s",
                     kvc_miss_cause_name((enum kvc_miss_cause)c));
    kvc_text_add(t, "<h3>Where each tenant's prompt tokens went</h3>\n");
    kvc_html_table(t, headings);
    for (uint32_t i = 0; i < v->n; i++) {
        const struct kvc_tenant_result *k = &r->tenants[v->at[i]];
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, k->name);
        kvc_html_number(t, kvc_fmt_percent(hit_rate(r, k)));
        for (int c = 0; c < KVC_MISS_CAUSES; c++)
            if (r->missed_tokens[c])
                kvc_html_number(t, kvc_fmt_percent(kvc_ratio(k->missed_tokens[c],
                                                             k->input_tokens)));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
}

/* ---- who pushed out whom ---- */

static uint64_t sum_of(const struct kvc_losses *l, uint32_t from, uint32_t step, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += l->bytes[from + i * step];
    return sum;
}

static void put_losses(const struct view *v)
{
    struct kvc_text *t = v->p->t;
    const struct kvc_losses *l = &v->p->r->losses;
    uint32_t groups = l->n_groups < SHOWN ? l->n_groups : SHOWN;
    if (!l->n_groups || !sum_of(l, 0, 1, l->n_groups * l->n_columns))
        return;
    kvc_text_add(t, "<h3>Who pushed out whom</h3>\n<p class=\"note\">Rows: whose cached KV left a "
                    "tier. Columns: for whose request room was made; what decoding takes is "
                    "nobody's single request, and (ttl) is time that was up.</p>\n<div "
                    "class=\"scroll\"><table><thead><tr><th>Lost by</th>");
    for (uint32_t c = 0; c < l->n_columns; c++) {
        if ((c >= groups && c < l->n_groups) || !sum_of(l, c, l->n_columns, l->n_groups))
            continue;
        kvc_text_add(t, "<th class=\"n\">");
        kvc_text_html(t, l->names[c]);
        kvc_text_add(t, "</th>");
    }
    kvc_text_add(t, "<th class=\"n\">all</th></tr></thead><tbody>\n");
    for (uint32_t g = 0; g < groups; g++) {
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, l->names[g]);
        for (uint32_t c = 0; c < l->n_columns; c++)
            if ((c < groups || c >= l->n_groups) && sum_of(l, c, l->n_columns, l->n_groups))
                kvc_html_number(t, kvc_fmt_bytes((double)l->bytes[g * l->n_columns + c]));
        kvc_html_number(t, kvc_fmt_bytes((double)sum_of(l, g * l->n_columns, 1, l->n_columns)));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_text_add(t, "</tbody></table></div>\n");
}

/* ---- what if ---- */

static void put_what_if(const struct view *v, const struct kvc_what_if *w)
{
    struct kvc_text *t = v->p->t;
    const struct kvc_result *r = v->p->r;
    bool noisy = w->tenant[0] != '\0';
    uint64_t hits = 0, then = 0;
    kvc_text_add(t, noisy ? "<h3>Without the requests of " : "<h3>With each tenant kept apart");
    kvc_text_html(t, w->tenant);
    kvc_text_add(t, "</h3>\n");
    kvc_html_table(t, noisy ? "Tenant|#Hit rate|#without it|#TTFT p50|#without it|#TTFT p99|"
                              "#without it"
                            : "Tenant|#Hit rate|#apart|#TTFT p50|#apart|#TTFT p99|#apart");
    for (uint32_t i = 0; i < w->n; i++) {
        hits += w->rows[i].requests ? r->tenants[i].hit_tokens : 0;
        then += w->rows[i].hit_tokens;
    }
    for (uint32_t i = 0; i < v->n; i++) {
        const struct kvc_tenant_result *k = &r->tenants[v->at[i]];
        const struct kvc_what_if_row *row = &w->rows[v->at[i]];
        if (!row->requests)
            continue;
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, k->name);
        kvc_html_number(t, kvc_fmt_percent(hit_rate(r, k)));
        kvc_html_number(t, kvc_fmt_percent(kvc_ratio(row->hit_tokens, k->input_tokens)));
        kvc_html_number(t, kvc_fmt_ms(known(&k->ttft_ms, k->ttft_ms.p50)));
        kvc_html_number(t, kvc_fmt_ms(known(&row->ttft_ms, row->ttft_ms.p50)));
        kvc_html_number(t, kvc_fmt_ms(known(&k->ttft_ms, k->ttft_ms.p99)));
        kvc_html_number(t, kvc_fmt_ms(known(&row->ttft_ms, row->ttft_ms.p99)));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
    kvc_text_addf(t, noisy ? "<p class=\"note\">The others hit %s tokens beside it, %s without "
                             "it.</p>\n"
                           : "<p class=\"note\">All hit %s tokens together, %s apart: the "
                             "difference is the price of isolation.</p>\n",
                  kvc_fmt_tokens((double)hits).s, kvc_fmt_tokens((double)then).s);
}

void kvc_html_tenants(const struct kvc_page *p)
{
    if (p->r->n_tenants < 2)
        return;
    struct view v = look(p);
    kvc_html_section(p->t, "Tenants", "What each tenant got out of the shared cache, and what it "
                                      "cost the others.");
    put_figures(&v);
    kvc_html_figure(p, KVC_PLOT_TENANTS, "KV held and hit rate over time, by tenant",
                    "Of the largest tenants: the KV that rests in all tiers together, and the "
                    "share of input tokens that hit, each over equal stretches of time.");
    put_causes(&v);
    put_losses(&v);
    for (uint32_t i = 0; i < p->r->n_what_ifs; i++)
        put_what_if(&v, &p->r->what_ifs[i]);
    kvc_html_end_section(p->t);
}
