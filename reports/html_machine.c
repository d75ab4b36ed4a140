/* SPDX-License-Identifier: Apache-2.0
 * The page's second half: time, tiers, links, money, replicas, tenants and sources. */
#include "reports/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- latency ---- */

/* A figure, and below it the band in which it lies four times in five. */
static void put_banded(const struct kvc_page *p, double ms, bool known, const char *key,
                       const char *column)
{
    char name[64];
    snprintf(name, sizeof(name), "%s.%s", key, column);
    const struct kvc_band *band = kvc_band_find(p->r, name);
    kvc_text_addf(p->t, "<td class=\"n\">%s", kvc_fmt_ms(known ? ms : (double)NAN).s);
    if (band && known)
        kvc_text_addf(p->t, "<small>%s to %s</small>", kvc_fmt_ms(band->low).s,
                      kvc_fmt_ms(band->high).s);
    kvc_text_add(p->t, "</td>");
}

static void put_dist(const struct kvc_page *p, const char *title, const char *key,
                     const struct kvc_dist *d)
{
    static const char *const columns[] = {"mean", "p50", "p90", "p95", "p99", "max"};
    const double v[] = {d->mean, d->p50, d->p90, d->p95, d->p99, d->max};
    kvc_text_addf(p->t, "<tr><td class=\"name\">%s</td>", title);
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
        put_banded(p, v[i], d->count > 0, key, columns[i]);
    kvc_html_number(p->t, kvc_fmt_count(d->count));
    kvc_text_add(p->t, "</tr>\n");
}

static void put_parts(struct kvc_text *t, const struct kvc_result *r)
{
    static const char *const names[] = {"queue", "route", "load from tiers", "prefill", "host"};
    static const char *const colours[] = {"orange", "purple", "green", "blue", "muted"};
    const double ms[] = {r->ttft_part_queue_ms, r->ttft_part_route_ms, r->ttft_part_load_ms,
                         r->ttft_part_prefill_ms, r->ttft_part_host_ms};
    double sum = 0;
    for (size_t i = 0; i < 5; i++)
        sum += ms[i];
    if (!r->ttft_ms.count || !(sum > 0))
        return;
    kvc_text_add(t, "<h3>What the mean TTFT is made of</h3><div class=\"stack\" role=\"img\" "
                    "aria-label=\"parts of the mean TTFT\">");
    for (size_t i = 0; i < 5; i++)
        kvc_text_addf(t, "<i style=\"width:%s%%;background:var(--%s)\"></i>",
                      kvc_fmt_fixed(100 * ms[i] / sum, 3, false).s, colours[i]);
    kvc_text_add(t, "</div><ul class=\"legend\">");
    for (size_t i = 0; i < 5; i++)
        kvc_text_addf(t, "<li><i style=\"background:var(--%s)\"></i>%s %s (%s)</li>", colours[i],
                      names[i], kvc_fmt_ms(ms[i]).s, kvc_fmt_percent(ms[i] / sum).s);
    kvc_text_add(t, "</ul>\n");
}

static void put_ttft_table(const struct kvc_page *p)
{
    static const size_t at[] = {0, 50, 90, 95, 99, KVC_TTFT_QUANTILES - 1};
    struct kvc_text *t = p->t;
    if (!p->f->has_ttft)
        return;
    kvc_html_table(t, "TTFT by what served the prompt|#min|#p50|#p90|#p95|#p99|#max|#Requests");
    for (size_t c = 0; c < KVC_TTFT_CLASSES; c++) {
        const struct kvc_ttft_class *k = &p->f->ttft[c];
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, k->name);
        for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
            kvc_html_number(t, kvc_fmt_ms(k->count ? k->q_ms[at[i]] : (double)NAN));
        kvc_html_number(t, kvc_fmt_count(k->count));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
}

void kvc_html_latency(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    const struct kvc_result *r = p->r;
    kvc_html_section(t, "Latency",
                     "Time to first token (TTFT), time per further token (TPOT), whole request, "
                     "and waiting. Percentiles by nearest rank over the measured requests that "
                     "got so far.");
    kvc_html_table(t, "|#mean|#p50|#p90|#p95|#p99|#max|#Requests");
    put_dist(p, "TTFT", "ttft_ms", &r->ttft_ms);
    put_dist(p, "TPOT", "tpot_ms", &r->tpot_ms);
    put_dist(p, "Whole request", "e2e_ms", &r->e2e_ms);
    put_dist(p, "Queue", "queue_ms", &r->queue_ms);
    kvc_html_end_table(t);
    if (r->n_bands) {
        kvc_text_add(t, "<p class=\"note\">Small figures: the band in which the true value lies "
                        "four times in five, resting on ");
        kvc_html_prose(t, r->band_source);
        kvc_text_add(t, ".</p>\n");
    }
    put_parts(t, r);
    if (!kvc_html_figure(p, KVC_PLOT_TTFT, "Cumulative distribution of TTFT",
                         "Share of requests that had their first token within this time, by what "
                         "served their prompt: no cache, HBM only, or also a lower tier."))
        put_ttft_table(p);
    kvc_html_end_section(t);
}

/* ---- load ---- */

static void put_series_table(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    kvc_html_table(t, "Series|#mean|#max|Unit|#Samples");
    for (uint32_t i = 0; i < p->r->n_series; i++) {
        const struct kvc_series *s = &p->r->series[i];
        double sum = 0, max = (double)NAN;
        for (size_t k = 0; k < s->n; k++) {
            sum += s->value[k];
            max = isnan(max) || s->value[k] > max ? s->value[k] : max;
        }
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, s->name);
        kvc_html_number(t, kvc_fmt_general(s->n ? sum / (double)s->n : (double)NAN));
        kvc_html_number(t, kvc_fmt_general(max));
        kvc_html_cell(t, s->unit);
        kvc_html_number(t, kvc_fmt_count(s->n));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
}

void kvc_html_load(const struct kvc_page *p)
{
    if (!p->r->n_series)
        return;
    kvc_html_section(p->t, "Load over time", NULL);
    if (!kvc_html_figure(p, KVC_PLOT_LOAD, "Requests running and waiting, and arrivals, over time",
                         "All replicas together. A waiting line that stays up means the engines, "
                         "not the caches, are the limit. Long runs are drawn as means of equal "
                         "stretches."))
        put_series_table(p);
    kvc_html_end_section(p->t);
}

/* ---- tiers and links ---- */

static void put_tier(const struct kvc_page *p, uint32_t i)
{
    struct kvc_text *t = p->t;
    const struct kvc_tier_result *tier = &p->r->tiers[i];
    char scope[64];
    double unread = kvc_ratio(tier->never_read_bytes, tier->written_bytes);
    snprintf(scope, sizeof(scope), tier->instances ? "%s, %u" : "%s", tier->scope,
             (unsigned)tier->instances);
    for (char *c = scope; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    kvc_text_add(t, "<tr><td class=\"name\">");
    kvc_text_html(t, kvc_tier_title(tier->name));
    kvc_text_add(t, "</td>");
    kvc_html_cell(t, scope);
    kvc_html_number(t, kvc_fmt_bytes((double)tier->capacity_bytes));
    kvc_html_number(t, kvc_fmt_percent(kvc_ratio(tier->peak_bytes, tier->capacity_bytes)));
    kvc_html_number(t, kvc_fmt_percent(p->f->worth[i].hit_rate));
    kvc_html_number(t, kvc_fmt_bytes((double)tier->read_bytes));
    kvc_html_number(t, kvc_fmt_bytes((double)tier->written_bytes));
    kvc_html_number(t, kvc_fmt_percent(unread));
    kvc_html_number(t, kvc_fmt_general(tier->writes_per_day_of_capacity));
    kvc_html_number(t, kvc_fmt_usd(p->f->worth[i].usd_saved_per_hour));
    if (i && !isnan(p->f->worth[i].usd_cost_per_hour))
        kvc_html_number(t, kvc_fmt_usd(p->f->worth[i].usd_cost_per_hour));
    else
        kvc_html_number(t, (struct kvc_str){"\xe2\x80\x93"});
    kvc_text_add(t, "</tr>\n");
}

void kvc_html_tiers(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    if (!p->r->n_tiers)
        return;
    kvc_html_section(t, "Tiers",
                     "Scope tells whose a capacity is, and how many there are; the capacity is of "
                     "all together. Never read: share of what was "
                     "written that no request ever hit. Writes a day: how often the capacity is "
                     "written over, which wears out NVMe. Hits worth: prefill work that they "
                     "stand for.");
    kvc_html_table(t, "Tier|Scope|#Capacity|#Peak|#Hits|#Read|#Written|#Never read|#Writes a day|"
                      "#Hits worth/h|#Costs/h");
    for (uint32_t i = 0; i < p->r->n_tiers; i++)
        put_tier(p, i);
    kvc_html_end_table(t);
    kvc_html_end_section(t);
}

/* Whether a link holds the run up. */
static void put_busiest(struct kvc_text *t, const struct kvc_result *r)
{
    const struct kvc_link_result *most = &r->links[0];
    for (uint32_t i = 1; i < r->n_links; i++) {
        if (r->links[i].busy_fraction > most->busy_fraction)
            most = &r->links[i];
    }
    kvc_text_add(t, "<p>The busiest link is ");
    kvc_text_html(t, most->name);
    kvc_text_addf(t, ", in use for %s of the time", kvc_fmt_percent(most->busy_fraction).s);
    if (r->ttft_ms.count && r->ttft_ms.mean > 0)
        kvc_text_addf(t, "; loading over links is %s of the mean TTFT",
                      kvc_fmt_percent(r->ttft_part_load_ms / r->ttft_ms.mean).s);
    kvc_text_add(t, ".</p>\n");
}

void kvc_html_links(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    if (!p->r->n_links)
        return;
    kvc_html_section(t, "Links",
                     "What moves KV between the tiers, all devices of a kind together.");
    kvc_html_table(t, "Link|#Busy||#Mean rate|#Capacity|#Moved|#Most transfers at once");
    for (uint32_t i = 0; i < p->r->n_links; i++) {
        const struct kvc_link_result *l = &p->r->links[i];
        kvc_text_add(t, "<tr><td class=\"name\">");
        kvc_text_html(t, l->name);
        kvc_text_add(t, "</td>");
        kvc_html_number(t, kvc_fmt_percent(l->busy_fraction));
        kvc_html_bar(t, l->busy_fraction, "blue");
        kvc_html_number(t, kvc_fmt_bandwidth(l->mean_bytes_per_s));
        kvc_html_number(t, kvc_fmt_bandwidth(l->capacity_bytes_per_s > 0 ? l->capacity_bytes_per_s
                                                                         : (double)NAN));
        kvc_html_number(t, kvc_fmt_bytes((double)l->bytes));
        kvc_html_number(t, kvc_fmt_count(l->peak_flows));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
    put_busiest(t, p->r);
    kvc_html_figure(p, KVC_PLOT_LINKS, "Use of the links over time", "Use of the links over time.");
    kvc_html_end_section(t);
}

/* ---- money ---- */

void kvc_html_cost(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    const struct kvc_cost *c = &p->r->cost;
    const double parts[] = {c->part_gpu, c->part_dram, c->part_nvme, c->part_network,
                            c->part_power};
    static const char *const names[] = {"GPUs", "DRAM", "NVMe", "Network", "Power"};
    kvc_html_section(t, "Cost", NULL);
    kvc_text_add(t, "<div class=\"slim\">");
    kvc_html_table(t, "Part|#USD an hour||#Share");
    for (size_t i = 0; i < 5; i++) {
        double share = c->usd_per_hour > 0 ? parts[i] / c->usd_per_hour : (double)NAN;
        kvc_text_addf(t, "<tr><td class=\"name\">%s</td>", names[i]);
        kvc_html_number(t, kvc_fmt_usd(parts[i]));
        kvc_html_bar(t, share, "blue");
        kvc_html_number(t, kvc_fmt_percent(share));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_text_add(t, "<tr><td class=\"name\">All</td>");
    kvc_html_number(t, kvc_fmt_usd(c->usd_per_hour));
    kvc_text_add(t, "<td></td><td></td></tr>\n");
    kvc_html_end_table(t);
    kvc_html_table(t, "USD per million tokens|#");
    const double per[] = {c->usd_per_million_input_tokens, c->usd_per_million_cached_tokens,
                          c->usd_per_million_output_tokens};
    static const char *const kinds[] = {"input, computed", "input, served from a cache", "output"};
    for (size_t i = 0; i < 3; i++) {
        kvc_text_addf(t, "<tr><td class=\"name\">%s</td>", kinds[i]);
        kvc_html_number(t, kvc_fmt_usd(per[i]));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
    kvc_text_addf(t, "</div><p class=\"note\">The run as a whole: %s.</p>\n",
                  kvc_fmt_usd(c->usd_total).s);
    kvc_html_end_section(t);
}

/* ---- replicas and tenants ---- */

void kvc_html_replicas(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    const struct kvc_result *r = p->r;
    if (!r->n_replicas)
        return;
    kvc_html_section(t, "Replicas", NULL);
    kvc_html_table(t, "#Replica|#Busy||#Hit rate|#Requests|#Input tokens|#Peak running|"
                      "#Preemptions");
    for (uint32_t i = 0; i < r->n_replicas; i++) {
        const struct kvc_replica_result *k = &r->replicas[i];
        kvc_text_add(t, "<tr>");
        kvc_html_number(t, kvc_fmt_count(k->id));
        kvc_html_number(t, kvc_fmt_percent(k->busy_fraction));
        kvc_html_bar(t, k->busy_fraction, "blue");
        kvc_html_number(t, kvc_fmt_percent(
                               r->has_prefix ? kvc_ratio(k->hit_tokens, k->input_tokens)
                                             : (double)NAN));
        kvc_html_number(t, kvc_fmt_count(k->requests));
        kvc_html_number(t, kvc_fmt_tokens((double)k->input_tokens));
        kvc_html_number(t, kvc_fmt_count(k->peak_running));
        kvc_html_number(t, kvc_fmt_count(k->preemptions));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
    kvc_html_end_section(t);
}

/* ---- sources ---- */

void kvc_html_assumptions(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    unsigned assumed = 0;
    char note[200];
    for (uint32_t i = 0; i < p->r->n_assumptions; i++)
        assumed += strcmp(p->r->assumptions[i].kind, "assumed") == 0;
    if (!p->r->n_assumptions)
        return;
    snprintf(note, sizeof(note),
             "Every figure the result rests on. %u of %u are assumed, that is, neither measured "
             "nor published: replace those first.",
             assumed, (unsigned)p->r->n_assumptions);
    kvc_html_section(t, "What this rests on", note);
    kvc_html_table(t, "About|Figure|Value|Kind|Source");
    for (uint32_t i = 0; i < p->r->n_assumptions; i++) {
        const struct kvc_assumption *a = &p->r->assumptions[i];
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, a->group);
        kvc_html_cell(t, a->name);
        kvc_html_cell(t, a->value);
        kvc_text_addf(t, "<td><span class=\"kind%s\">",
                      strcmp(a->kind, "assumed") == 0 ? " assumed" : "");
        kvc_text_html(t, a->kind);
        kvc_text_add(t, "</span></td>");
        kvc_html_cell(t, a->source);
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
    kvc_html_end_section(t);
}

/* JSON with one element a line, whatever its own spacing was. */
static void put_lines(struct kvc_text *t, const char *json)
{
    struct kvc_text out = {0};
    unsigned depth = 0;
    bool quoted = false, fresh = false; /* fresh: right behind an opening bracket */
    for (const char *s = json; *s; s++) {
        if (!quoted && strchr(" \t\r\n", *s))
            continue;
        bool closes = !quoted && (*s == '}' || *s == ']');
        depth -= closes && depth;
        if (closes ? !fresh : fresh)
            kvc_text_addf(&out, "\n%*s", (int)(2 * depth), "");
        fresh = !quoted && (*s == '{' || *s == '[');
        depth += fresh;
        kvc_text_addn(&out, s, 1);
        if (quoted && *s == '\\' && s[1])
            kvc_text_addn(&out, ++s, 1);
        else if (*s == '"')
            quoted = !quoted;
        else if (!quoted && *s == ',')
            kvc_text_addf(&out, "\n%*s", (int)(2 * depth), "");
        else if (!quoted && *s == ':')
            kvc_text_add(&out, " ");
    }
    t->failed |= out.failed;
    kvc_text_html(t, out.buf ? out.buf : "");
    kvc_text_clear(&out);
}

void kvc_html_scenario(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    kvc_html_section(t, "The scenario", NULL);
    kvc_text_add(t, "<details><summary>Everything that changes the result, as JSON</summary><pre>");
    put_lines(t, p->r->scenario_json ? p->r->scenario_json : "null");
    kvc_text_add(t, "</pre></details>\n");
    kvc_html_end_section(t);
}
