/* SPDX-License-Identifier: Apache-2.0
 * A trace's profile as a page, and as one section of the capacity report. */
#include "base/alloc.h"
#include "base/error.h"
#include "reports/html.h"
#include "reports/traffic.h"
#include "reports/traffic_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct view {
    struct kvc_text *t;
    const struct kvc_traffic *f;
    const struct kvc_traffic_plots *plots;
    bool page; /* parts are sections of a page of its own, else all is one section */
};

static void begin_part(const struct view *v, const char *title, const char *note)
{
    if (v->page) {
        kvc_html_section(v->t, title, note);
        return;
    }
    kvc_text_addf(v->t, "<h3>%s</h3>\n", title);
    if (note) {
        kvc_text_add(v->t, "<p class=\"note\">");
        kvc_text_html(v->t, note);
        kvc_text_add(v->t, "</p>\n");
    }
}

static void end_part(const struct view *v)
{
    if (v->page)
        kvc_html_end_section(v->t);
}

static bool picture(const struct view *v, enum kvc_traffic_plot plot, const char *label,
                    const char *caption)
{
    return kvc_html_picture(v->t, &v->plots->wide[plot], &v->plots->narrow[plot], label, caption);
}

static void put_row_name(struct kvc_text *t, const char *name)
{
    kvc_text_add(t, "<tr><td class=\"name\">");
    kvc_text_html(t, name);
    kvc_text_add(t, "</td>");
}

static void end_row(struct kvc_text *t)
{
    kvc_text_add(t, "</tr>\n");
}

/* ---- the head ---- */

static void put_tiles(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    const struct kvc_trace_stats *s = &v->f->stats;
    char more[160];
    kvc_text_add(t, "<ul class=\"tiles\">\n");
    kvc_html_tile(t, "Hit rate at most", kvc_fmt_percent(kvc_traffic_bound(v->f)),
                  s->has_prefix ? "of the input tokens, any cache" : "the log does not tell");
    snprintf(more, sizeof(more), "over %.40s; busiest minute %.40s/s",
             kvc_fmt_seconds((double)s->span_ns * 1e-9).s,
             kvc_fmt_general(p->peak_requests_per_s).s);
    kvc_html_tile(t, "Requests", kvc_fmt_count(s->requests), more);
    snprintf(more, sizeof(more), "p99 %.40s tokens",
             kvc_fmt_count((uint64_t)p->input_tokens.p99).s);
    kvc_html_tile(t, "Median prompt", kvc_fmt_tokens(p->input_tokens.p50), more);
    snprintf(more, sizeof(more), "p99 %.40s tokens",
             kvc_fmt_count((uint64_t)p->output_tokens.p99).s);
    kvc_html_tile(t, "Median answer", kvc_fmt_tokens(p->output_tokens.p50), more);
    if (p->cached_rows) {
        snprintf(more, sizeof(more), "stated in %.40s rows", kvc_fmt_count(p->cached_rows).s);
        kvc_html_tile(t, "Hit rate measured", kvc_fmt_percent(kvc_traffic_measured(v->f)), more);
    } else if (s->sessions) {
        snprintf(more, sizeof(more), "median of %.40s turns", kvc_fmt_general(p->turns.p50).s);
        kvc_html_tile(t, "Sessions", kvc_fmt_count(s->sessions), more);
    } else if (s->has_prefix) {
        kvc_html_tile(t, "Blocks used once",
                      kvc_fmt_percent(kvc_ratio(p->one_hit_blocks, p->touched_blocks)),
                      "of all distinct ones");
    }
    if (!s->has_prefix) {
        snprintf(more, sizeof(more), "of %.40s requests", kvc_fmt_count(s->requests).s);
        if (p->unknown_output < s->requests)
            kvc_html_tile(t, "Without an answer", kvc_fmt_count(p->zero_output), more);
    }
    if (s->has_prefix && p->seen_tokens && s->span_ns)
        kvc_html_tile(t, "TTL of 5 min",
                      kvc_fmt_percent(kvc_traffic_ttl_loss(v->f, kvc_traffic_age(v->f, 300))),
                      "of the reuse is lost by keeping KV no longer");
    kvc_text_add(t, "</ul>\n");
}

static void put_findings(const struct view *v, uint32_t from)
{
    for (uint32_t i = from; i < v->f->n_findings; i++) {
        kvc_text_add(v->t, "<p>");
        kvc_html_prose(v->t, v->f->findings[i]);
        kvc_text_add(v->t, "</p>\n");
    }
}

/* ---- arrivals and lengths ---- */

static void put_arrivals(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    if (!v->f->stats.span_ns)
        return;
    begin_part(v, "When requests come", NULL);
    picture(v, KVC_TRAFFIC_RATES, "Requests per second over time",
            "The dashed line is the mean. A piece of a window at the end is left out.");
    kvc_text_add(t, "<div class=\"slim\">");
    kvc_html_table(t, "Counts in windows of|#Variance over mean|#Whole windows");
    for (size_t i = 0; i < KVC_PROFILE_COUNTS; i++) {
        put_row_name(t, kvc_traffic_age_name(p->counts[i].window_ns).s);
        kvc_html_number(t, kvc_fmt_general(p->counts[i].dispersion));
        kvc_html_number(t, kvc_fmt_count(p->counts[i].windows));
        end_row(t);
    }
    kvc_html_end_table(t);
    kvc_text_addf(t, "</div><p class=\"note\">Random (Poisson) arrivals have 1; above it they come "
                     "in bursts. The standard deviation of the gaps between arrivals is %s "
                     "times their mean (random: 1). The busiest minute begins after %s and has "
                     "%s requests a second, %s on "
                     "average.</p>\n",
                  kvc_fmt_general(p->gap_cv).s, kvc_fmt_seconds(60.0 * (double)p->peak_minute).s,
                  kvc_fmt_general(p->peak_requests_per_s).s,
                  kvc_fmt_general(p->requests_per_s).s);
    end_part(v);
}

static void put_dist(struct kvc_text *t, const char *name, const struct kvc_dist *d, int decimals)
{
    const double values[] = {d->mean, d->p50, d->p90, d->p95, d->p99, d->max};
    if (!d->count)
        return;
    put_row_name(t, name);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        kvc_html_number(t, kvc_fmt_fixed(values[i], decimals, true));
    kvc_html_number(t, kvc_fmt_count(d->count));
    end_row(t);
}

static void put_lengths(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    begin_part(v, "How long they are", NULL);
    kvc_html_table(t, "|#mean|#p50|#p90|#p95|#p99|#max|#Count");
    put_dist(t, "Prompt tokens", &p->input_tokens, 0);
    put_dist(t, "Answer tokens", &p->output_tokens, 0);
    put_dist(t, "Turns of a session", &p->turns, 1);
    put_dist(t, "Think time, s", &p->think_s, 1);
    kvc_html_end_table(t);
    picture(v, KVC_TRAFFIC_LENGTHS, "Distribution of prompt and answer lengths",
            "Each bar counts the requests from its length to twice that.");
    kvc_text_addf(t, "<p class=\"note\">%s requests generate nothing",
                  kvc_fmt_count(p->zero_output).s);
    if (p->failed || p->cancelled)
        kvc_text_addf(t, ", %s failed, %s were cancelled.", kvc_fmt_count(p->failed).s,
                      kvc_fmt_count(p->cancelled).s);
    else
        kvc_text_add(t, "; of none the log says that it failed or was cancelled.");
    if (p->unknown_output)
        kvc_text_addf(t, " Of %s the log does not say how much they generated; they are not among "
                         "the answers here.", kvc_fmt_count(p->unknown_output).s);
    if (v->f->stats.has_prefix)
        kvc_text_addf(t, " What was generated is known for %s requests, unknown for %s.",
                      kvc_fmt_count(p->outputs_known).s,
                      kvc_fmt_count(v->f->stats.requests - p->outputs_known).s);
    if (v->f->stats.sessions)
        kvc_text_addf(t, " %s turns are too short to repeat the prompt and answer before them.",
                      kvc_fmt_count(p->shrunken_turns).s);
    kvc_text_add(t, "</p>\n");
    end_part(v);
}

/* ---- sharing ---- */

static const char *const colours[KVC_CONTENTS] = {"blue", "purple", "green",
                                                  "muted", "gold", "grid"};

static void put_kinds(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    double all = (double)v->f->stats.input_tokens;
    kvc_text_add(t, "<div class=\"stack\" role=\"img\" aria-label=\"what prompt tokens are\">");
    for (int k = 0; k < KVC_CONTENTS; k++)
        kvc_text_addf(t, "<i style=\"width:%s%%;background:var(--%s)\"></i>",
                      kvc_fmt_fixed(all > 0 ? 100 * (double)p->content_tokens[k] / all : 0, 3,
                                    false).s, colours[k]);
    kvc_text_add(t, "</div><ul class=\"legend\">");
    for (int k = 0; k < KVC_CONTENTS; k++) {
        const char *name = kvc_traffic_kind(v->f, (enum kvc_content)k);
        if (name && (k < KVC_CONTENT_PARTIAL || p->content_tokens[k]))
            kvc_text_addf(t, "<li><i style=\"background:var(--%s)\"></i>%s %s (%s)</li>",
                          colours[k], name, kvc_fmt_percent((double)p->content_tokens[k] / all).s,
                          kvc_fmt_tokens((double)p->content_tokens[k]).s);
    }
    kvc_text_add(t, "</ul>\n");
}

static void put_depth_table(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    kvc_html_table(t, "#From token|#System|#Document|#History|#New");
    for (uint32_t i = 0; i < p->n_depths; i++) {
        uint64_t from = i ? (uint64_t)1 << (i - 1) : 0;
        kvc_text_add(t, "<tr>");
        kvc_html_number(t, kvc_fmt_count(from * v->f->stats.block_tokens));
        for (int k = 0; k < KVC_CONTENT_PARTIAL; k++)
            kvc_html_number(t, kvc_fmt_tokens((double)p->depth_tokens[i][k]));
        end_row(t);
    }
    kvc_html_end_table(t);
}

static void put_offered(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    char text[200];
    begin_part(v, "What a cache could serve",
               "The log does not say which prompts share a prefix, so hit rates are unknown, not "
               "0. What a cache without limits would serve if one of these held:");
    kvc_html_table(t, "Assumption|#Hit rate||#Prompts no longer");
    for (uint32_t i = 0; i < p->n_offered; i++) {
        double rate = kvc_ratio(p->offered[i].seen_tokens, v->f->stats.input_tokens);
        kvc_traffic_assumption(&p->offered[i], text, sizeof(text));
        kvc_text_add(t, "<tr>");
        kvc_html_cell(t, text);
        kvc_html_number(t, kvc_fmt_percent(rate));
        kvc_html_bar(t, rate, kvc_traffic_believable(v->f, &p->offered[i]) ? "blue" : "grid");
        kvc_html_number(t, kvc_fmt_percent(kvc_ratio(p->offered[i].covered,
                                                     v->f->stats.requests)));
        end_row(t);
    }
    kvc_html_end_table(t);
    kvc_text_add(t, "<p class=\"note\">Prompts no longer than what all are assumed to share would "
                    "have nothing of their own; where that is nine in ten of them, the bar is "
                    "grey.</p>\n");
    kvc_text_add(t, v->f->stats.sessions
                        ? "<p class=\"note\">Prompts of one model. A turn shorter than the prompt "
                          "and answer before it carries nothing over, nor does one to another "
                          "model.</p>\n"
                        : "<p class=\"note\">Prompts of one model. The log names no sessions "
                          "either, so nothing can be offered for turns that carry over.</p>\n");
    end_part(v);
}

static void put_sharing(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    if (!v->f->stats.has_prefix) {
        put_offered(v);
        return;
    }
    begin_part(v, "What is reused",
               "Every prompt token is one of these. System prompts, documents and history were "
               "seen in an earlier request, in full blocks: a cache without limits serves them.");
    put_kinds(v);
    if (!p->by_session)
        kvc_text_add(t, "<p class=\"note\">The log names no sessions, so documents that several "
                        "share and the history of one can't be told apart.</p>\n");
    if (!picture(v, KVC_TRAFFIC_DEPTHS, "Prompt tokens by depth and kind",
                 "Tokens of all requests at that depth of their prompts, each bar to twice the "
                 "depth (k = 1,024)."))
        put_depth_table(v);
    kvc_text_addf(t, "<p>%s of %s distinct blocks (%s) are touched by one request only.</p>\n",
                  kvc_fmt_count(p->one_hit_blocks).s, kvc_fmt_count(p->touched_blocks).s,
                  kvc_fmt_percent(kvc_ratio(p->one_hit_blocks, p->touched_blocks)).s);
    end_part(v);
}

static void put_hot(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    if (!p->n_hot)
        return;
    begin_part(v, "Hottest prefixes", "The stretches of prompts that were reused most.");
    kvc_html_table(t, p->tenants
                          ? "#From token|#Tokens|What|#Requests|#Sessions|#Tenants|#Of all reuse|"
                          : "#From token|#Tokens|What|#Requests|#Sessions|#Of all reuse|");
    for (uint32_t i = 0; i < p->n_hot; i++) {
        const struct kvc_hot_prefix *h = &p->hot[i];
        const char *kind = kvc_traffic_kind(v->f, h->kind);
        double share = kvc_ratio(h->seen_tokens, p->seen_tokens);
        kvc_text_add(t, "<tr>");
        kvc_html_number(t, kvc_fmt_count((uint64_t)h->from_block * v->f->stats.block_tokens));
        kvc_html_number(t, kvc_fmt_count((uint64_t)h->blocks * v->f->stats.block_tokens));
        kvc_html_cell(t, kind ? kind : kvc_traffic_kind(v->f, KVC_CONTENT_DOCUMENT));
        kvc_html_number(t, kvc_fmt_count(h->requests));
        kvc_html_number(t, p->by_session ? kvc_fmt_count(h->sessions)
                                         : (struct kvc_str){"unknown"});
        if (p->tenants)
            kvc_html_number(t, kvc_fmt_count(h->tenants));
        kvc_html_number(t, kvc_fmt_percent(share));
        kvc_html_bar(t, share, "blue");
        end_row(t);
    }
    kvc_html_end_table(t);
    end_part(v);
}

/* ---- time ---- */

static void put_ttl_table(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    kvc_html_table(t, "#Time to live|#Lost of the reuse|#Hit rate left|#Held on average|"
                      "#Held at peak");
    for (size_t i = 0; i < KVC_PROFILE_AGES; i++) {
        double loss = kvc_traffic_ttl_loss(v->f, i);
        kvc_text_add(t, "<tr>");
        kvc_html_number(t, kvc_traffic_age_name(p->age_limit_ns[i]));
        kvc_html_number(t, kvc_fmt_percent(loss));
        kvc_html_number(t, kvc_fmt_percent(kvc_traffic_bound(v->f) * (1 - loss)));
        kvc_html_number(t, kvc_traffic_size(v->f, p->held_mean_blocks[i]));
        kvc_html_number(t, kvc_traffic_size(v->f, (double)p->held_peak_blocks[i]));
        end_row(t);
        if (loss == 0)
            break;
    }
    kvc_html_end_table(t);
}

static void put_working_set(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    kvc_text_add(t, "<div class=\"slim\">");
    kvc_html_table(t, "#Window|#Working set, mean|#At peak");
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        kvc_text_add(t, "<tr>");
        kvc_html_number(t, kvc_traffic_age_name(p->working_set[i].window_ns));
        kvc_html_number(t, kvc_traffic_size(v->f, p->working_set[i].mean_blocks));
        kvc_html_number(t, kvc_traffic_size(v->f, (double)p->working_set[i].peak_blocks));
        end_row(t);
        if (p->working_set[i].window_ns > v->f->stats.span_ns)
            break;
    }
    kvc_html_end_table(t);
    kvc_text_add(t, "</div>");
}

static void put_time(const struct view *v)
{
    struct kvc_text *t = v->t;
    if (!v->f->stats.has_prefix || !v->f->profile.seen_tokens || !v->f->stats.span_ns)
        return;
    begin_part(v, "What a time to live loses, and what it holds",
               "A cache without limits that forgets what nobody used for so long: the hit rate it "
               "keeps, and the prompt tokens it holds.");
    bool drawn = picture(v, KVC_TRAFFIC_TTL, "Hit rate and tokens held against time to live",
                         "Where the upper curve is flat, keeping KV for longer only costs memory. "
                         "Answers are not counted among what is held.");
    if (drawn)
        kvc_text_add(t, "<details><summary>The figures</summary>\n");
    put_ttl_table(v);
    if (drawn)
        kvc_text_add(t, "</details>\n");
    kvc_text_add(t, "<p class=\"note\">Distinct prompt tokens used within windows of a length, "
                    "side by side:</p>\n");
    put_working_set(v);
    end_part(v);
}

/* ---- groups ---- */

static const char *name_of(char **names, uint32_t i)
{
    return names && names[i][0] ? names[i] : "(no name)";
}

static void put_overlap(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_trace *trace = v->f->trace;
    const struct kvc_profile *p = &v->f->profile;
    uint32_t n = p->n_top;
    bool others = trace->n_tenants > n;
    if (!v->f->stats.has_prefix || n < 2)
        return;
    kvc_text_add(t, "<p class=\"note\">Of the hits of the row's tenant, those on what it never had "
                    "itself and the column's tenant had last:</p>\n"
                    "<div class=\"scroll\"><table><thead><tr><th></th>");
    for (uint32_t k = 0; k < n; k++) {
        kvc_text_add(t, "<th scope=\"col\" class=\"n\">");
        kvc_text_html(t, name_of(trace->tenant_names, p->top[k]));
        kvc_text_add(t, "</th>");
    }
    kvc_text_add(t, others ? "<th scope=\"col\" class=\"n\">others</th>" : "");
    kvc_text_add(t, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t hits = p->tenants[p->top[i]].seen_tokens;
        put_row_name(t, name_of(trace->tenant_names, p->top[i]));
        for (uint32_t k = 0; k < n + others; k++) {
            double share = kvc_ratio(p->from_tokens[i][k < n ? k : KVC_PROFILE_TENANTS], hits);
            kvc_html_number(t, k == i || isnan(share) ? (struct kvc_str){"-"}
                                                      : kvc_fmt_percent(share));
        }
        end_row(t);
    }
    kvc_html_end_table(t);
}

static void put_tenants(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_profile *p = &v->f->profile;
    if (!p->n_top)
        return;
    begin_part(v, "Tenants", "The largest by input tokens. Own only: what is left of the bound if "
                             "tenants share nothing.");
    kvc_html_table(t, "Tenant|#Requests|#Input tokens|#Hit rate at most|#Own only");
    for (uint32_t i = 0; i < p->n_top; i++) {
        const struct kvc_tenant_profile *one = &p->tenants[p->top[i]];
        double whole = kvc_traffic_judged(v->f, one);
        put_row_name(t, name_of(v->f->trace->tenant_names, p->top[i]));
        kvc_html_number(t, kvc_fmt_count(one->requests));
        kvc_html_number(t, kvc_fmt_tokens((double)one->input_tokens));
        kvc_html_number(t, kvc_fmt_percent((double)one->seen_tokens / whole));
        kvc_html_number(t, kvc_fmt_percent((double)one->own_seen_tokens / whole));
        end_row(t);
    }
    kvc_html_end_table(t);
    if (v->f->trace->n_tenants > p->n_top)
        kvc_text_addf(t, "<p class=\"note\">And %s smaller ones.</p>\n",
                      kvc_fmt_count(v->f->trace->n_tenants - p->n_top).s);
    put_overlap(v);
    end_part(v);
}

static void put_models(const struct view *v)
{
    struct kvc_text *t = v->t;
    const uint64_t *n = v->f->profile.model_requests;
    if (!n)
        return;
    begin_part(v, "Models", NULL);
    kvc_html_table(t, "Model|#Requests|");
    for (uint32_t i = 0; i < v->f->trace->n_models && i < 20; i++) {
        put_row_name(t, name_of(v->f->trace->model_names, i));
        kvc_html_number(t, kvc_fmt_count(n[i]));
        kvc_html_bar(t, kvc_ratio(n[i], v->f->stats.requests), "blue");
        end_row(t);
    }
    kvc_html_end_table(t);
    end_part(v);
}

static void put_breaks(const struct view *v)
{
    char summary[300];
    if (!kvc_traffic_has_breaks(v->f))
        return;
    kvc_traffic_breaks_summary(v->f, summary, sizeof(summary));
    begin_part(v, "What breaks caching", NULL);
    kvc_html_prose(v->t, summary);
    kvc_traffic_breaks_html(v->t, v->f);
    end_part(v);
}

/* ---- the whole ---- */

static void put_body(const struct view *v)
{
    put_sharing(v);
    put_time(v);
    put_hot(v);
    put_breaks(v);
    put_arrivals(v);
    put_lengths(v);
    put_tenants(v);
    put_models(v);
}

void kvc_html_traffic(const struct kvc_page *p)
{
    struct kvc_traffic_plots plots;
    const struct view v = {p->t, p->traffic, &plots, false};
    if (kvc_traffic_plots_draw(&plots, p->traffic, NULL) != KVC_OK) {
        p->t->failed = true; /* no memory */
        return;
    }
    kvc_html_section(p->t, "Your traffic", "What the log itself says, before anything is "
                                           "simulated.");
    put_findings(&v, 0);
    put_body(&v);
    kvc_html_end_section(p->t);
    kvc_traffic_plots_clear(&plots);
}

/* What a reader of the page alone would not know: assumptions, and rows that were not used. Values
 * of bad rows stay out. */
static void put_import(const struct view *v)
{
    struct kvc_text *t = v->t;
    const struct kvc_import_report *r = v->f->import;
    if (!r || !r->rows)
        return;
    begin_part(v, "How the log was read", NULL);
    kvc_text_addf(t, "<p>%s rows, %s used, %s that could not be.</p>\n<ul>",
                  kvc_fmt_count(r->rows).s, kvc_fmt_count(r->accepted).s,
                  kvc_fmt_count(r->bad).s);
    for (uint32_t i = 0; i < r->n_tallies; i++) {
        kvc_text_addf(t, "<li>%s: ", kvc_fmt_count(r->tallies[i].rows).s);
        kvc_text_html(t, r->tallies[i].text);
        kvc_text_add(t, "</li>\n");
    }
    for (uint32_t i = 0; i < r->n_notes; i++) {
        kvc_text_add(t, "<li>");
        kvc_text_html(t, r->notes[i]);
        kvc_text_add(t, "</li>\n");
    }
    kvc_text_add(t, "</ul>\n");
    end_part(v);
}

static void put_page(const struct view *v)
{
    struct kvc_text *t = v->t;
    char headline[200] = "Nothing in the log says which prompts share a prefix";
    if (v->f->stats.has_prefix)
        snprintf(headline, sizeof(headline), "%.40s of the input tokens can come from a cache",
                 kvc_fmt_percent(kvc_traffic_bound(v->f)).s);
    kvc_text_add(t, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                    "<title>KV-cache traffic report: ");
    kvc_text_html(t, v->f->title);
    kvc_text_add(t, "</title>\n");
    kvc_html_style(t);
    kvc_text_add(t, "</head><body><main>\n<header><h1>KV-cache traffic report: ");
    kvc_text_html(t, v->f->title);
    kvc_text_add(t, "</h1>\n<p class=\"verdict\">");
    kvc_text_html(t, headline);
    kvc_text_add(t, "</p>\n<div class=\"lead\">");
    put_findings(v, 0);
    kvc_text_add(t, "</div>\n");
    put_tiles(v);
    if (v->plots->why_not[0]) {
        kvc_text_add(t, "<p class=\"warn\">Pictures are missing (");
        kvc_text_html(t, v->plots->why_not);
        kvc_text_add(t, "); tables stand in their place.</p>\n");
    }
    kvc_text_add(t, "</header>\n");
    put_body(v);
    put_import(v);
    kvc_text_add(t, "<footer class=\"note\"><p>Made by kvcast ");
    kvc_text_html(t, kvc_version());
    kvc_text_add(t, ". Trace <code>");
    kvc_text_html(t, v->f->stats.digest);
    kvc_text_add(t, "</code>. Every figure is exact for the log as read; docs/inspect.md defines "
                    "them. GiB is 2<sup>30</sup> bytes.</p></footer>\n</main></body></html>\n");
}

enum kvc_status kvc_traffic_html(const struct kvc_traffic *f, const char *path,
                                 struct kvc_error *err)
{
    struct kvc_traffic_plots plots;
    struct kvc_text t = {0};
    const struct view v = {&t, f, &plots, true};
    enum kvc_status status = kvc_traffic_plots_draw(&plots, f, err);
    if (status != KVC_OK)
        return status;
    put_page(&v);
    kvc_traffic_plots_clear(&plots);
    status = kvc_file_put_text(path, &t, err);
    kvc_text_clear(&t);
    return status;
}
