/* SPDX-License-Identifier: Apache-2.0 */
#include "reports/closeup.h"

#include "reports/out.h"

#include <stdio.h>
#include <string.h>

#define SHOWN 12 /* rows of a table; the rest is in the JSON */
#define NAME 28

static void name_cell(struct kvc_text *t, const char *name)
{
    kvc_text_addf(t, "%-*.*s", NAME, NAME, kvc_fmt_name(name).s);
}

static void percent(struct kvc_text *t, uint64_t part, uint64_t whole)
{
    if (whole)
        kvc_text_addf(t, " %11s%%",
                      kvc_fmt_fixed(100 * (double)part / (double)whole, 3, false).s);
    else
        kvc_text_addf(t, " %12s", "-");
}

static void points(struct kvc_text *t, uint64_t more, uint64_t less, uint64_t whole)
{
    double lost = whole ? 100 * ((double)more - (double)less) / (double)whole : 0;
    kvc_text_addf(t, " %12s", whole ? kvc_fmt_fixed(lost, 3, false).s : "-");
}

static void capacities(struct kvc_text *t, const struct kvc_closeup_rows *r)
{
    kvc_text_addf(t, " %12s", "content");
    for (size_t i = 0; i < r->n; i++)
        kvc_text_addf(t, " %12s", r->capacity_blocks[i] == KVC_CAPACITY_INF
                                      ? "inf" : kvc_fmt_count(r->capacity_blocks[i]).s);
    kvc_text_add(t, "\n");
}

/* ---- by group ---- */

static void hit_rate(struct kvc_text *t, const struct kvc_hits *h, bool tokens)
{
    percent(t, tokens ? h->hit_tokens : h->hit_blocks, tokens ? h->tokens : h->full_blocks);
}

static void group_row(struct kvc_text *t, const struct kvc_closeup_rows *r, const char *name,
                      const struct kvc_part *content, const struct kvc_part *const *part,
                      bool tokens)
{
    name_cell(t, name);
    kvc_text_addf(t, " %9s %14s", kvc_fmt_count(content->hits.requests).s,
                  tokens ? kvc_fmt_count(content->hits.tokens).s : "-");
    hit_rate(t, &content->hits, tokens);
    for (size_t i = 0; i < r->n; i++)
        hit_rate(t, &part[i]->hits, tokens);
    kvc_text_add(t, "\n");
}

static bool is_optimum(const struct kvc_closeup_rows *r)
{
    return strncmp(r->policy, "opt", 3) == 0; /* opt, optforced, opt/ROUTER; no other begins so */
}

static void groups(struct kvc_text *t, const struct kvc_closeup_rows *r,
                   const struct kvc_closeup_asked *a)
{
    const struct kvc_part *part[64];
    struct kvc_closeup_rows shown = *r;
    shown.n = r->n < 64 ? r->n : 64;
    kvc_text_addf(t, "\nby %s: usable %s hit rate under %s, at each capacity in blocks%s\n%-*s %9s "
                  "%14s", a->by, a->has_tokens ? "token" : "block", r->policy,
                  is_optimum(r) ? "; of each its share of the optimum of all, no bound of its own"
                                : "",
                  NAME, "", "requests", "input tokens");
    capacities(t, &shown);
    for (uint32_t g = 0; g < r->content->n_groups && g < SHOWN; g++) {
        for (size_t i = 0; i < shown.n; i++)
            part[i] = &r->result[i]->groups[g];
        group_row(t, &shown, r->content->groups[g].name, &r->content->groups[g], part,
                  a->has_tokens);
    }
    if (r->content->n_groups > SHOWN)
        kvc_text_addf(t, "and %u more (--json)\n", r->content->n_groups - SHOWN);
    for (size_t i = 0; i < shown.n; i++)
        part[i] = &r->result[i]->all;
    group_row(t, &shown, "all", &r->content->all, part, a->has_tokens);
}

/* ---- why ---- */

static void cause_row(struct kvc_text *t, const struct kvc_closeup_rows *r, const char *name,
                      int cause)
{
    name_cell(t, name);
    for (size_t i = 0; i <= r->n; i++) {
        const struct kvc_part *p = i == 0 ? &r->content->all : &r->result[i - 1]->all;
        percent(t, cause < 0 ? p->hits.hit_tokens : p->missed_tokens[cause], p->hits.tokens);
    }
    kvc_text_add(t, "\n");
}

static uint64_t of_cause(const struct kvc_closeup_rows *r, unsigned cause)
{
    uint64_t sum = r->content->all.missed_tokens[cause];
    for (size_t i = 0; i < r->n; i++)
        sum += r->result[i]->all.missed_tokens[cause];
    return sum;
}

static void parts_by_cause(struct kvc_text *t, const char *what, const struct kvc_part *parts,
                           uint32_t n, const struct kvc_part *all)
{
    kvc_text_addf(t, "\n%-*s %14s %12s", NAME, what, "input tokens", "hit");
    for (unsigned c = 0; c < KVC_MISS_CAUSES; c++)
        if (all->missed_tokens[c])
            kvc_text_addf(t, " %14s", kvc_miss_cause_name(c));
    kvc_text_add(t, "\n");
    for (uint32_t i = 0; i < n; i++) {
        if (!parts[i].hits.requests)
            continue;
        name_cell(t, parts[i].name);
        kvc_text_addf(t, " %14s", kvc_fmt_count(parts[i].hits.tokens).s);
        percent(t, parts[i].hits.hit_tokens, parts[i].hits.tokens);
        for (unsigned c = 0; c < KVC_MISS_CAUSES; c++)
            if (all->missed_tokens[c]) {
                kvc_text_add(t, "  ");
                percent(t, parts[i].missed_tokens[c], parts[i].hits.tokens);
            }
        kvc_text_add(t, "\n");
    }
}

static void evictors(struct kvc_text *t, const struct kvc_closeup_result *r)
{
    uint32_t n = r->n_evictors < SHOWN ? r->n_evictors : SHOWN;
    if (!r->has_evictors || !r->all.missed_tokens[KVC_MISS_EVICTED])
        return;
    kvc_text_addf(t, "\ntokens missed because evicted: whose they are, and for whose requests\n"
                     "%-*s",
                  NAME, "");
    for (uint32_t k = 0; k < n; k++)
        kvc_text_addf(t, " %12.12s", kvc_fmt_name(r->evictor[k]).s);
    kvc_text_addf(t, " %12s\n", "nobody");
    for (uint32_t i = 0; i < n; i++) {
        name_cell(t, r->evictor[i]);
        for (uint32_t k = 0; k < n; k++)
            kvc_text_addf(t, " %12s", kvc_fmt_count(r->evicted_tokens[i][k]).s);
        kvc_text_addf(t, " %12s\n", kvc_fmt_count(r->evicted_tokens[i][r->n_evictors]).s);
    }
}

static void why(struct kvc_text *t, const struct kvc_closeup_rows *r)
{
    const struct kvc_closeup_result *one = r->result[0];
    kvc_text_addf(t, "\nwhy input tokens missed under %s, of all, at each capacity in blocks\n%-*s",
                  r->policy, NAME, "");
    capacities(t, r);
    cause_row(t, r, "hit", -1);
    for (unsigned c = 0; c < KVC_MISS_CAUSES; c++)
        if (of_cause(r, c))
            cause_row(t, r, kvc_miss_cause_name(c), (int)c);
    if (r->n != 1) {
        kvc_text_add(t, "by tenant, over time and by whom: with one --capacity, or --json\n");
        return;
    }
    parts_by_cause(t, "by tenant", one->tenants, one->n_tenants < SHOWN ? one->n_tenants : SHOWN,
                   &one->all);
    parts_by_cause(t, "over time, from", one->buckets, one->n_buckets, &one->all);
    evictors(t, one);
}

/* ---- isolation ---- */

static void price_row(struct kvc_text *t, const char *name, uint64_t shared, uint64_t own,
                      uint64_t whole)
{
    name_cell(t, name);
    percent(t, shared, whole);
    percent(t, own, whole);
    points(t, shared, own, whole);
    kvc_text_addf(t, " %15s%s\n", kvc_fmt_count(shared > own ? shared - own : own - shared).s,
                  own > shared ? " more" : "");
}

static void price_head(struct kvc_text *t, const char *what)
{
    kvc_text_addf(t, "%-*s %12s %12s %12s %15s\n", NAME, what, "shared", "isolated", "points",
                  "tokens lost");
}

static void price_details(struct kvc_text *t, const struct kvc_closeup_result *r)
{
    price_head(t, "  by tenant");
    for (uint32_t i = 0; i < r->n_tenants && i < SHOWN; i++)
        price_row(t, r->tenants[i].name, r->tenants[i].shared_hit_tokens,
                  r->tenants[i].hits.hit_tokens, r->tenants[i].hits.tokens);
    price_head(t, "  by depth in the prompt");
    for (uint32_t i = 0; i < r->n_depths; i++) {
        char name[64];
        snprintf(name, sizeof(name), "from token %s", kvc_fmt_count(r->depths[i].from_tokens).s);
        price_row(t, name, r->depths[i].shared_hit_tokens, r->depths[i].hit_tokens,
                  r->all.hits.tokens);
    }
}

static void price(struct kvc_text *t, const struct kvc_closeup_rows *r)
{
    kvc_text_addf(t, "\nprice of isolation under %s: usable hits, of all input tokens\n",
                  r->policy);
    price_head(t, "blocks");
    price_row(t, "content", r->content->all.shared_hit_tokens, r->content->all.hits.hit_tokens,
              r->content->all.hits.tokens);
    for (size_t i = 0; i < r->n; i++) {
        const struct kvc_part *all = &r->result[i]->all;
        price_row(t, r->capacity_blocks[i] == KVC_CAPACITY_INF
                         ? "inf" : kvc_fmt_count(r->capacity_blocks[i]).s,
                  all->shared_hit_tokens, all->hits.hit_tokens, all->hits.tokens);
    }
    price_details(t, r->n == 1 ? r->result[0] : r->content);
}

void kvc_crossing_text(struct kvc_text *t, const struct kvc_crossing *c, const char *isolate)
{
    double blocks = c->blocks ? (double)c->crossing_blocks / (double)c->blocks : 0;
    kvc_text_addf(t, "\n%s by %s; %s of %s (%s), %s tokens, are asked for "
                  "by two or more\n", kvc_fmt_some(c->namespaces, "namespace").s, isolate,
                  kvc_fmt_count(c->crossing_blocks).s, kvc_fmt_some(c->blocks, "distinct block").s,
                  kvc_fmt_percent(blocks).s, kvc_fmt_count(c->crossing_tokens).s);
    if (c->n < 2)
        return;
    kvc_text_addf(t, "%-*s", NAME, "blocks in common");
    for (uint32_t k = 0; k < c->n; k++)
        kvc_text_addf(t, " %12.12s", kvc_fmt_name(c->name[k]).s);
    kvc_text_add(t, "\n");
    for (uint32_t i = 0; i < c->n; i++) {
        name_cell(t, c->name[i]);
        for (uint32_t k = 0; k < c->n; k++)
            kvc_text_addf(t, " %12s", kvc_fmt_count(c->common_blocks[i][k]).s);
        kvc_text_add(t, "\n");
    }
}

/* ---- replicas ---- */

static void replicas(struct kvc_text *t, const struct kvc_closeup_rows *r,
                     const struct kvc_closeup_asked *a)
{
    kvc_text_addf(t, "\n%u replicas under %s: usable %s hit rate, and the most input that one got\n"
                  "%-*s %38s %25s\n%-*s %12s %12s %12s %12s %12s %12s\n", a->replicas, r->policy,
                  a->has_tokens ? "token" : "block", NAME, "", "each by itself",
                  "one pool of all", NAME, "blocks of each", "content", "optimum", "reached",
                  "reached", "optimum", "most loaded");
    for (size_t i = 0; i < r->n; i++) {
        const struct kvc_closeup_result *one = r->result[i];
        uint64_t most = 0;
        for (uint32_t k = 0; k < one->n_replicas; k++)
            most = one->replicas[k].hits.tokens > most ? one->replicas[k].hits.tokens : most;
        name_cell(t, r->capacity_blocks[i] == KVC_CAPACITY_INF
                         ? "inf" : kvc_fmt_count(r->capacity_blocks[i]).s);
        hit_rate(t, &one->assigned_content, a->has_tokens);
        hit_rate(t, &one->assigned_optimum, a->has_tokens);
        hit_rate(t, &one->all.hits, a->has_tokens);
        hit_rate(t, &one->pool, a->has_tokens);
        hit_rate(t, &one->optimum_pool, a->has_tokens);
        percent(t, most, one->all.hits.tokens);
        kvc_text_add(t, "\n");
    }
}

void kvc_closeup_text(struct kvc_text *t, const struct kvc_closeup_rows *r,
                      const struct kvc_closeup_asked *a)
{
    if (!a->has_prefix || r->n == 0)
        return;
    if (r->result[0]->n_replicas)
        replicas(t, r, a);
    if (a->by)
        groups(t, r, a);
    if (a->isolate)
        price(t, r);
    if (a->why && a->has_tokens)
        why(t, r);
}
