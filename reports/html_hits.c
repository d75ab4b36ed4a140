/* SPDX-License-Identifier: Apache-2.0
 * The page's first half: the verdict, the bounds, and what became of every prompt token. */
#include "reports/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void kvc_html_tile(struct kvc_text *t, const char *label, struct kvc_str value, const char *more)
{
    kvc_text_add(t, "<li><span>");
    kvc_text_html(t, label);
    kvc_text_add(t, "</span><b>");
    kvc_text_html(t, value.s);
    kvc_text_add(t, "</b><small>");
    kvc_text_html(t, more);
    kvc_text_add(t, "</small></li>\n");
}

static void put_tiles(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    const struct kvc_result *r = p->r;
    const struct kvc_band *band = kvc_band_find(r, "ttft_ms.p99");
    char more[160];
    kvc_text_add(t, "<ul class=\"tiles\">\n");
    snprintf(more, sizeof(more), "of %.40s input tokens",
             kvc_fmt_tokens((double)r->input_tokens).s);
    kvc_html_tile(t, "Hit rate", kvc_fmt_percent(p->f->hit_rate), more);
    snprintf(more, sizeof(more), "p50 %.40s", kvc_fmt_ms(r->ttft_ms.p50).s);
    if (band)
        snprintf(more, sizeof(more), "80 %% band %.40s to %.40s", kvc_fmt_ms(band->low).s,
                 kvc_fmt_ms(band->high).s);
    kvc_html_tile(t, "TTFT p99", kvc_fmt_ms(r->ttft_ms.count ? r->ttft_ms.p99 : (double)NAN),
                  r->ttft_ms.count ? more : "no request got that far");
    snprintf(more, sizeof(more), "p50 %.40s", kvc_fmt_ms(r->tpot_ms.p50).s);
    kvc_html_tile(t, "TPOT p99", kvc_fmt_ms(r->tpot_ms.count ? r->tpot_ms.p99 : (double)NAN),
                  r->tpot_ms.count ? more : "no request got that far");
    snprintf(more, sizeof(more), "%.40s requests/s", kvc_fmt_general(r->requests_per_s).s);
    kvc_html_tile(t, "Cost per hour", kvc_fmt_usd(r->cost.usd_per_hour), more);
    snprintf(more, sizeof(more), "served from a cache %.40s",
             kvc_fmt_usd(r->cost.usd_per_million_cached_tokens).s);
    kvc_html_tile(t, "Million input tokens computed",
                  kvc_fmt_usd(r->cost.usd_per_million_input_tokens), more);
    if (r->n_tiers > 1)
        kvc_html_tile(t, "Saving against HBM only",
                      kvc_fmt_usd(r->has_prefix && r->arrived
                                      ? r->cost.saving_vs_hbm_only_usd_per_month
                                      : (double)NAN),
                      "a month, if the freed GPU time is used");
    kvc_text_add(t, "</ul>\n");
}

void kvc_html_head(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    const struct kvc_result *r = p->r;
    kvc_text_add(t, "<header><h1>KV-cache capacity report: ");
    kvc_text_html(t, r->title[0] ? r->title : "untitled run");
    kvc_text_add(t, "</h1>\n<p class=\"verdict\">");
    kvc_text_html(t, p->f->headline);
    kvc_text_add(t, "</p>\n<div class=\"lead\">");
    for (size_t i = 0; i < 3; i++) {
        if (!p->f->verdict[i][0])
            continue;
        kvc_text_add(t, "<p>");
        kvc_html_prose(t, p->f->verdict[i]);
        kvc_text_add(t, "</p>\n");
    }
    kvc_text_add(t, "</div>\n");
    put_tiles(p);
    char line[400];
    snprintf(line, sizeof(line),
             "%s requests arrived, %s completed, %s failed, %s could not be served; %s measured, "
             "over %s.",
             kvc_fmt_count(r->arrived).s, kvc_fmt_count(r->completed).s,
             kvc_fmt_count(r->failed).s, kvc_fmt_count(r->unservable).s,
             kvc_fmt_count(r->measured).s, kvc_fmt_seconds((double)r->makespan_ns / 1e9).s);
    kvc_text_add(t, "<p class=\"note\">");
    kvc_html_prose(t, line);
    kvc_text_add(t, "</p>\n");
    if (!p->plots->drawn && p->plots->why_not[0]) {
        kvc_text_add(t, "<p class=\"warn\">Pictures are missing (");
        kvc_text_html(t, p->plots->why_not);
        kvc_text_add(t, "); tables stand in their place.</p>\n");
    }
    kvc_text_add(t, "</header>\n");
}

void kvc_html_warnings(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    if (!p->r->n_warnings)
        return;
    kvc_html_section(t, "Read this before you use the figures", NULL);
    for (uint32_t i = 0; i < p->r->n_warnings; i++) {
        kvc_text_add(t, "<p class=\"warn\">");
        kvc_text_html(t, p->r->warnings[i].text);
        kvc_text_add(t, " <code>");
        kvc_text_html(t, p->r->warnings[i].code);
        kvc_text_add(t, "</code></p>\n");
    }
    kvc_html_end_section(t);
}

/* ---- bounds ---- */

static void put_rung(const struct kvc_page *p, uint32_t i)
{
    struct kvc_text *t = p->t;
    const struct kvc_rung *rung = &p->f->rungs[i];
    bool last = i + 1 == p->f->n_rungs;
    kvc_text_add(t, "<tr><td class=\"name rung\">");
    kvc_text_html(t, rung->name);
    if (!last) {
        kvc_text_add(t, "<small>down to the next: ");
        kvc_text_html(t, rung->gap_means);
        kvc_text_add(t, "</small>");
    }
    kvc_text_add(t, "</td>");
    kvc_html_number(t, kvc_fmt_percent(rung->rate));
    kvc_html_bar(t, rung->rate, last ? "blue" : "muted");
    if (last) {
        kvc_text_add(t, "<td></td><td></td><td></td></tr>\n");
        return;
    }
    kvc_html_number(t, kvc_fmt_points(rung->gap));
    kvc_html_number(t, kvc_fmt_general(rung->gpu_s_per_hour));
    kvc_html_number(t, kvc_fmt_usd(rung->usd_per_hour));
    kvc_text_add(t, "</tr>\n");
}

void kvc_html_ladder(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    kvc_html_section(t, "How far from the best possible",
                     "Share of input tokens served from a cache. No policy of that kind gets above "
                     "its bound; each gap is what is lost from one rung to the next, and to what, "
                     "as prefill work and money at this load.");
    if (isnan(p->f->hit_rate)) {
        kvc_text_add(t, p->r->arrived ? "<p>Unknown, not 0: the trace carries no prefix "
                                        "information.</p>\n"
                                      : "<p>Unknown: no requests.</p>\n");
        kvc_html_end_section(t);
        return;
    }
    kvc_html_table(t, "Bound|#Hit rate||#Gap to the next|#GPU-seconds/h|#USD/h");
    for (uint32_t i = 0; i < p->f->n_rungs; i++)
        put_rung(p, i);
    kvc_html_end_table(t);
    if (!p->f->bounds)
        kvc_text_add(t, "<p class=\"note\">The bounds were not computed for this run.</p>\n");
    if (p->f->point_gpu_s_per_hour > 0)
        kvc_text_addf(t, "<p class=\"note\">One point of hit rate is %s GPU-seconds an hour (%s "
                         "GPUs), %s an hour; it is money only if the freed GPU time is put to "
                         "use.</p>\n",
                      kvc_fmt_general(p->f->point_gpu_s_per_hour).s,
                      kvc_fmt_general(p->f->point_gpu_s_per_hour / 3600).s,
                      kvc_fmt_usd(p->f->point_usd_per_hour).s);
    kvc_html_end_section(t);
}

static void put_curve_table(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    const struct kvc_result *r = p->r;
    uint32_t step = r->n_curve > 14 ? (r->n_curve + 13) / 14 : 1;
    kvc_html_table(t, "#Capacity|#LRU||#Optimum|");
    for (uint32_t i = 0; i < r->n_curve; i += step) {
        const struct kvc_capacity_point *c = &r->curve[i];
        kvc_text_add(t, "<tr>");
        kvc_html_number(t, kvc_fmt_bytes((double)c->capacity_bytes));
        kvc_html_number(t, kvc_fmt_percent(c->lru_token_hit_rate));
        kvc_html_bar(t, c->lru_token_hit_rate, "blue");
        kvc_html_number(t, kvc_fmt_percent(c->opt_token_hit_rate));
        kvc_html_bar(t, c->opt_token_hit_rate, "green");
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
}

/* How much is enough: the sizes that matter on a curve that flattens. */
static void put_enough(const struct kvc_page *p)
{
    static const double parts[] = {0.5, 0.9, 0.95, 0.99};
    const struct kvc_result *r = p->r;
    double best = r->curve[r->n_curve - 1].lru_token_hit_rate;
    if (!(best > 0))
        return;
    kvc_text_add(p->t, "<p>LRU gets ");
    for (size_t i = 0, k = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        while (k + 1 < r->n_curve && !(r->curve[k].lru_token_hit_rate >= parts[i] * best))
            k++;
        char text[160];
        snprintf(text, sizeof(text), "%s%.40s %% %s%.40s", i ? ", " : "",
                 kvc_fmt_fixed(100 * parts[i], 0, false).s,
                 i ? "with " : "of what it can reach at any size with ",
                 kvc_fmt_bytes((double)r->curve[k].capacity_bytes).s);
        kvc_html_prose(p->t, text);
    }
    kvc_text_add(p->t, " (one shared pool, to the next size computed).</p>\n");
}

void kvc_html_capacity(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    if (!p->r->has_prefix || !p->r->n_curve || !p->r->input_tokens)
        return;
    kvc_html_section(t, "Hit rate against capacity",
                     "What one shared pool of that size would serve without regard to time; where "
                     "the curves are flat, more memory buys nothing.");
    if (!kvc_html_figure(p, KVC_PLOT_CAPACITY, "Hit rate against capacity, with the tier sizes",
                         "Marks: sizes of the tiers of this run, each added to those above it "
                         "(all instances together; copies held twice count twice). Replicas that "
                         "do not share a pool stay below the curve."))
        put_curve_table(p);
    put_enough(p);
    kvc_html_end_section(t);
}

void kvc_html_missed(const struct kvc_page *p)
{
    struct kvc_text *t = p->t;
    const struct kvc_result *r = p->r;
    if (!r->has_prefix || !r->input_tokens)
        return;
    kvc_html_section(t, "Where the prompt tokens went",
                     "Every input token was served by one tier or missed for one cause; the rows "
                     "add up to all of them.");
    kvc_html_table(t, "|#Share||#Tokens");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        kvc_text_add(t, "<tr><td class=\"name\">hit in ");
        kvc_text_html(t, kvc_tier_title(r->tiers[i].name));
        kvc_text_add(t, "</td>");
        kvc_html_number(t, kvc_fmt_percent(p->f->worth[i].hit_rate));
        kvc_html_bar(t, p->f->worth[i].hit_rate, "blue");
        kvc_html_number(t, kvc_fmt_tokens((double)r->tiers[i].hit_tokens));
        kvc_text_add(t, "</tr>\n");
    }
    for (int i = 0; i < KVC_MISS_CAUSES; i++) {
        double share = kvc_ratio(r->missed_tokens[i], r->input_tokens);
        if (!r->missed_tokens[i])
            continue;
        kvc_text_add(t, "<tr><td class=\"name\">");
        kvc_text_html(t, kvc_miss_cause_name((enum kvc_miss_cause)i));
        kvc_text_add(t, "<small>");
        kvc_text_html(t, kvc_cause_text((enum kvc_miss_cause)i));
        kvc_text_add(t, "</small></td>");
        kvc_html_number(t, kvc_fmt_percent(share));
        kvc_html_bar(t, share, i == KVC_MISS_FIRST_SIGHT ? "muted" : "orange");
        kvc_html_number(t, kvc_fmt_tokens((double)r->missed_tokens[i]));
        kvc_text_add(t, "</tr>\n");
    }
    kvc_html_end_table(t);
    kvc_text_addf(t, "<p class=\"note\">Beside these, %s tokens were computed again after "
                     "preemption.</p>\n",
                  kvc_fmt_tokens((double)r->recomputed_tokens).s);
    kvc_html_end_section(t);
}
