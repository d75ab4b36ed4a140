/* SPDX-License-Identifier: Apache-2.0
 * The report as Markdown (tables as GitHub knows them), for tickets and wikis. */
#include "reports/reports.h"

#include <math.h>
#include <string.h>

/* Names and sources may hold anything; what Markdown would read as markup is escaped. */
static void put_md(struct kvc_text *t, const char *s)
{
    for (; *s; s++) {
        if (strchr("\\`*_|<>[]#~", *s))
            kvc_text_add(t, "\\");
        kvc_text_addn(t, (unsigned char)*s < 0x20 ? " " : s, 1);
    }
}

static void put_cell(struct kvc_text *t, const char *s)
{
    kvc_text_add(t, " ");
    put_md(t, s);
    kvc_text_add(t, " |");
}

static void put_number(struct kvc_text *t, struct kvc_str s)
{
    put_cell(t, s.s);
}

/* Headings apart by '|'; '#' marks a column of numbers. */
static void put_heading(struct kvc_text *t, const char *title, const char *headings)
{
    kvc_text_addf(t, "\n## %s\n\n|", title);
    for (const char *h = headings; *h;) {
        size_t n = strcspn(h, "|"), skip = *h == '#';
        kvc_text_add(t, " ");
        kvc_text_addn(t, h + skip, n - skip);
        kvc_text_add(t, " |");
        h += n + (h[n] == '|');
    }
    kvc_text_add(t, "\n|");
    for (const char *h = headings; *h;) {
        size_t n = strcspn(h, "|");
        kvc_text_add(t, *h == '#' ? "---:|" : "---|");
        h += n + (h[n] == '|');
    }
    kvc_text_add(t, "\n");
}

static void put_ladder(struct kvc_text *t, const struct kvc_findings *f)
{
    put_heading(t, "How far from the best possible",
                "Bound|#Hit rate|#Gap to the next|What closes it|#GPU-seconds/h|#USD/h");
    for (uint32_t i = 0; i < f->n_rungs; i++) {
        const struct kvc_rung *rung = &f->rungs[i];
        bool last = i + 1 == f->n_rungs;
        kvc_text_add(t, "|");
        put_cell(t, rung->name);
        put_number(t, kvc_fmt_percent(rung->rate));
        put_cell(t, last ? "" : kvc_fmt_points(rung->gap).s);
        put_cell(t, rung->gap_means);
        put_cell(t, last ? "" : kvc_fmt_general(rung->gpu_s_per_hour).s);
        put_cell(t, last ? "" : kvc_fmt_usd(rung->usd_per_hour).s);
        kvc_text_add(t, "\n");
    }
}

static void put_times(struct kvc_text *t, const struct kvc_result *r)
{
    const struct kvc_dist *dists[] = {&r->ttft_ms, &r->tpot_ms, &r->e2e_ms, &r->queue_ms};
    static const char *const names[] = {"TTFT", "TPOT", "Whole request", "Queue"};
    put_heading(t, "Latency (percentiles by nearest rank)",
                "|#mean|#p50|#p90|#p95|#p99|#max|#Requests");
    for (size_t i = 0; i < 4; i++) {
        const struct kvc_dist *d = dists[i];
        const double v[] = {d->mean, d->p50, d->p90, d->p95, d->p99, d->max};
        kvc_text_addf(t, "| %s |", names[i]);
        for (size_t k = 0; k < 6; k++)
            put_number(t, kvc_fmt_ms(d->count ? v[k] : (double)NAN));
        put_number(t, kvc_fmt_count(d->count));
        kvc_text_add(t, "\n");
    }
    for (uint32_t i = 0; i < r->n_bands; i++) {
        kvc_text_add(t, i ? "; " : "\n80 % bands: ");
        put_md(t, kvc_band_title(r->bands[i].name).s);
        kvc_text_addf(t, " %s to %s", kvc_fmt_ms(r->bands[i].low).s,
                      kvc_fmt_ms(r->bands[i].high).s);
    }
    if (r->n_bands) {
        kvc_text_add(t, " (");
        put_md(t, r->band_source);
        kvc_text_add(t, ").\n");
    }
}

static void put_tokens(struct kvc_text *t, const struct kvc_result *r,
                       const struct kvc_findings *f)
{
    if (!r->has_prefix)
        return;
    put_heading(t, "Where the prompt tokens went", "|#Share|#Tokens|Meaning");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        kvc_text_add(t, "| hit in ");
        put_md(t, kvc_tier_title(r->tiers[i].name));
        kvc_text_add(t, " |");
        put_number(t, kvc_fmt_percent(f->worth[i].hit_rate));
        put_number(t, kvc_fmt_tokens((double)r->tiers[i].hit_tokens));
        put_cell(t, "served from a cache");
        kvc_text_add(t, "\n");
    }
    for (int i = 0; i < KVC_MISS_CAUSES; i++) {
        if (!r->missed_tokens[i])
            continue;
        kvc_text_add(t, "|");
        put_cell(t, kvc_miss_cause_name((enum kvc_miss_cause)i));
        put_number(t, kvc_fmt_percent(kvc_ratio(r->missed_tokens[i], r->input_tokens)));
        put_number(t, kvc_fmt_tokens((double)r->missed_tokens[i]));
        put_cell(t, kvc_cause_text((enum kvc_miss_cause)i));
        kvc_text_add(t, "\n");
    }
}

static void put_tiers(struct kvc_text *t, const struct kvc_result *r, const struct kvc_findings *f)
{
    put_heading(t, "Tiers",
                "Tier|Scope|#Capacity|#Peak|#Hits|#Read|#Written|#Never read|#Hits worth/h|"
                "#Costs/h");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        const struct kvc_tier_result *tier = &r->tiers[i];
        kvc_text_add(t, "|");
        put_cell(t, kvc_tier_title(tier->name));
        put_cell(t, tier->scope);
        put_number(t, kvc_fmt_bytes((double)tier->capacity_bytes));
        put_number(t, kvc_fmt_bytes((double)tier->peak_bytes));
        put_number(t, kvc_fmt_percent(f->worth[i].hit_rate));
        put_number(t, kvc_fmt_bytes((double)tier->read_bytes));
        put_number(t, kvc_fmt_bytes((double)tier->written_bytes));
        put_number(t, kvc_fmt_bytes((double)tier->never_read_bytes));
        put_number(t, kvc_fmt_usd(f->worth[i].usd_saved_per_hour));
        put_cell(t, isnan(f->worth[i].usd_cost_per_hour)
                        ? "" : kvc_fmt_usd(f->worth[i].usd_cost_per_hour).s);
        kvc_text_add(t, "\n");
    }
    if (!r->n_links)
        return;
    put_heading(t, "Links", "Link|#Busy|#Mean rate|#Moved|#Most transfers at once");
    for (uint32_t i = 0; i < r->n_links; i++) {
        kvc_text_add(t, "|");
        put_cell(t, r->links[i].name);
        put_number(t, kvc_fmt_percent(r->links[i].busy_fraction));
        put_number(t, kvc_fmt_bandwidth(r->links[i].mean_bytes_per_s));
        put_number(t, kvc_fmt_bytes((double)r->links[i].bytes));
        put_number(t, kvc_fmt_count(r->links[i].peak_flows));
        kvc_text_add(t, "\n");
    }
}

static void put_cost(struct kvc_text *t, const struct kvc_cost *c)
{
    const double v[] = {c->part_gpu,   c->part_dram,    c->part_nvme, c->part_network,
                        c->part_power, c->usd_per_hour, c->usd_per_million_input_tokens,
                        c->usd_per_million_cached_tokens, c->usd_per_million_output_tokens};
    static const char *const names[] = {"GPUs an hour", "DRAM an hour", "NVMe an hour",
                                        "Network an hour", "Power an hour", "All, an hour",
                                        "Per million input tokens computed",
                                        "Per million input tokens served from a cache",
                                        "Per million output tokens"};
    put_heading(t, "Cost", "|#USD");
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        kvc_text_addf(t, "| %s |", names[i]);
        put_number(t, kvc_fmt_usd(v[i]));
        kvc_text_add(t, "\n");
    }
}

static void put_sources(struct kvc_text *t, const struct kvc_result *r)
{
    if (!r->n_assumptions)
        return;
    put_heading(t, "What this rests on", "About|Figure|Value|Kind|Source");
    for (const struct kvc_assumption *a = r->assumptions; a < r->assumptions + r->n_assumptions;
         a++) {
        bool assumed = strcmp(a->kind, "assumed") == 0;
        kvc_text_add(t, "|");
        put_cell(t, a->group);
        put_cell(t, a->name);
        put_cell(t, a->value);
        kvc_text_add(t, assumed ? " **" : " ");
        put_md(t, a->kind);
        kvc_text_add(t, assumed ? "** |" : " |");
        put_cell(t, a->source);
        kvc_text_add(t, "\n");
    }
}

void kvc_markdown(struct kvc_text *t, const struct kvc_result *r, const struct kvc_findings *f)
{
    kvc_text_add(t, "# KV-cache capacity report: ");
    put_md(t, r->title[0] ? r->title : "untitled run");
    kvc_text_addf(t, "\n\n**%s.**\n", f->headline);
    for (size_t i = 0; i < 3; i++) {
        if (f->verdict[i][0]) {
            kvc_text_add(t, "\n");
            put_md(t, f->verdict[i]);
            kvc_text_add(t, "\n");
        }
    }
    for (uint32_t i = 0; i < r->n_warnings; i++) {
        kvc_text_add(t, i ? "- " : "\nRead this before you use the figures:\n\n- ");
        put_md(t, r->warnings[i].text);
        kvc_text_add(t, " (");
        put_md(t, r->warnings[i].code);
        kvc_text_add(t, ")\n");
    }
    put_ladder(t, f);
    put_tokens(t, r, f);
    put_times(t, r);
    put_tiers(t, r, f);
    put_cost(t, &r->cost);
    put_sources(t, r);
    kvc_text_addf(t, "\nMade by kvcast %s; trace %s, profiles %s.\n", kvc_version(),
                  r->trace_digest[0] ? r->trace_digest : "unknown",
                  r->profiles_digest[0] ? r->profiles_digest : "unknown");
}
