/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ceiling/ceiling.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cli/trace_args.h"
#include "reports/closeup.h"
#include "reports/ladder.h"
#include "reports/out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The curve to show; the caller clears it. */
static enum kvc_status shown_curve(const struct ceiling *c, struct kvc_curve *out,
                                   struct kvc_error *err)
{
    const char *all = kvc_cli_value(c->cli, "curve");
    size_t most = all ? c->curve.n + 3 : KVC_CEILING_CURVE_POINTS;
    if (!c->stats.has_prefix || !kvc_cli_flag(c->cli, "curve"))
        return KVC_OK;
    return kvc_curve_thin(&c->curve, most, out, err);
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : (double)NAN;
}

static struct kvc_ladder ladder_of(const struct ceiling *c, size_t policy, size_t point)
{
    struct kvc_ladder l = {.policy = c->policy[policy], .content = &c->content,
                           .capacity_blocks = c->point[point].blocks};
    if (c->optimum)
        l.below[KVC_GAP_CAPACITY] = &c->optimum[point];
    for (size_t p = 0; p < c->n_policies; p++)
        if (p == policy || strcmp(c->policy[p], "opt") == 0)
            l.below[strcmp(c->policy[p], "opt") ? KVC_GAP_POLICY : KVC_GAP_CAPACITY] =
                &c->hits[p * c->n_points + point];
    kvc_ceiling_closeup_ladder(c, policy, point, &l);
    return l;
}

/* ---- JSON ---- */

static void json_point(struct kvc_json *j, const struct ceiling *c, size_t policy, size_t point)
{
    const struct ceiling_point *p = &c->point[point];
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "policy", c->policy[policy]);
    kvc_ceiling_json_capacity(j, c, p);
    kvc_ceiling_json_hits(j, &c->hits[policy * c->n_points + point], &c->stats);
    if (c->stats.has_prefix) {
        const struct kvc_ladder l = ladder_of(c, policy, point);
        kvc_ladder_json(j, &l, c->stats.has_tokens);
    }
    kvc_ceiling_closeup_json_point(j, c, policy, point);
    kvc_json_close(j);
}

enum kvc_status kvc_ceiling_print_json(const struct ceiling *c, struct kvc_error *err)
{
    struct kvc_curve curve = {0};
    struct kvc_json j;
    enum kvc_status st = shown_curve(c, &curve, err);
    if (st != KVC_OK)
        return st;
    kvc_cli_json_begin(&j, "kvcast.ceiling.v1");
    kvc_cli_json_trace(&j, &c->stats);
    kvc_json_open_object(&j, "content");
    kvc_ceiling_json_hits(&j, &c->content, &c->stats);
    kvc_ceiling_closeup_json_content(&j, c);
    kvc_json_close(&j);
    kvc_json_open_array(&j, "points");
    for (size_t i = 0; i < c->n_points; i++)
        for (size_t p = 0; p < c->n_policies; p++)
            json_point(&j, c, p, i);
    kvc_json_close(&j);
    kvc_json_open_array(&j, "curve");
    for (size_t i = 0; i < curve.n; i++) {
        kvc_json_open_array(&j, NULL);
        kvc_json_u64(&j, NULL, curve.capacity_blocks[i]);
        kvc_json_u64(&j, NULL, curve.raw_hit_blocks[i]);
        kvc_json_close(&j);
    }
    kvc_json_close(&j);
    kvc_ceiling_proof_json(&j, c);
    kvc_ceiling_tiers_json(&j, c);
    kvc_ceiling_closeup_json(&j, c);
    kvc_ceiling_cost_json(&j, c);
    kvc_curve_clear(&curve);
    return kvc_cli_json_print(&j, err);
}

/* ---- text ---- */

static void print_rate(uint64_t part, uint64_t whole, bool known)
{
    if (known && whole)
        printf(" %8.3f%%", 100 * ratio(part, whole));
    else
        printf(" %9s", "unknown");
}

static void print_row(const struct ceiling *c, const char *capacity, const char *bytes,
                      const char *name, const struct kvc_hits *h)
{
    bool known = c->stats.has_prefix, tokens = known && c->stats.has_tokens;
    printf("%12s", capacity);
    if (c->bytes_per_token)
        printf(" %11s", bytes);
    printf("  %-*s", kvc_ceiling_name_width(c), name);
    print_rate(h->hit_tokens, h->tokens, tokens);
    print_rate(h->hit_blocks, h->full_blocks, known);
    print_rate(h->hit_requests, h->requests, known);
    print_rate(h->raw_hit_tokens, h->tokens, tokens);
    print_rate(h->raw_hit_blocks, h->blocks, known);
    putchar('\n');
}

void kvc_ceiling_print_head(const struct ceiling *c)
{
    const struct kvc_trace_stats *s = &c->stats;
    if (!s->has_tokens) {
        printf("%s: %s references to %s objects over %.1f min; an object is a block here, of "
               "tokens nothing is known\n", c->path, kvc_fmt_count(s->requests).s,
               kvc_fmt_count(s->blocks).s, (double)s->span_ns / 60e9);
        return;
    }
    printf("%s: %s over %.1f min, %s input tokens\n", c->path,
           kvc_fmt_some(s->requests, "request").s, (double)s->span_ns / 60e9,
           kvc_fmt_count(s->input_tokens).s);
    if (!s->has_prefix) {
        printf("which prompts share a prefix is not in the log: hit rates are unknown, not 0\n");
        return;
    }
    printf("%s of %s of %u tokens (%s of %s)\n", kvc_fmt_some(s->block_touches, "touch").s,
           kvc_fmt_some(s->blocks, "block").s, s->block_tokens,
           kvc_fmt_some(s->segment_touches, "touch").s, kvc_fmt_some(s->segments, "segment").s);
    if (s->without_ids)
        printf("without block ids, so that they count as misses: %s\n",
               kvc_fmt_some(s->without_ids, "request").s);
    if (c->bytes_per_token)
        printf("%s bytes of KV per token, %s per block\n", kvc_fmt_count(c->bytes_per_token).s,
               kvc_fmt_count(ceiling_block_bytes(c)).s);
}

static enum kvc_status print_curve(const struct ceiling *c, struct kvc_error *err)
{
    struct kvc_curve curve = {0};
    enum kvc_status st = shown_curve(c, &curve, err);
    if (st == KVC_OK && curve.n)
        printf("\nLRU, raw (partial last blocks count): %zu of %zu changes of slope, straight "
               "lines between all\n%12s %14s %10s\n", curve.n, c->curve.n,
               "blocks", "hit blocks", "hit rate");
    for (size_t i = 0; i < curve.n; i++)
        printf("%12" PRIu64 " %14" PRIu64 " %9.4f%%\n", curve.capacity_blocks[i],
               curve.raw_hit_blocks[i], 100 * ratio(curve.raw_hit_blocks[i], c->content.blocks));
    kvc_curve_clear(&curve);
    return st;
}

static enum kvc_status print_gaps(const struct ceiling *c, struct kvc_error *err)
{
    struct kvc_text t = {0};
    struct kvc_ladder *l = kvc_malloc(c->n_points * c->n_policies, sizeof(*l));
    size_t n = 0;
    if (!l)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < c->n_points; i++)
        for (size_t p = 0; p < c->n_policies; p++)
            if (c->n_policies == 1 || strcmp(c->policy[p], "opt") != 0)
                l[n++] = ladder_of(c, p, i);
    kvc_ladder_text(&t, l, n, c->stats.has_tokens);
    enum kvc_status st = t.failed ? kvc_fail_nomem(err) : KVC_OK;
    if (st == KVC_OK)
        fputs(t.buf, stdout);
    kvc_text_clear(&t);
    kvc_free(l);
    return st;
}

enum kvc_status kvc_ceiling_print_text(const struct ceiling *c, struct kvc_error *err)
{
    int name = kvc_ceiling_name_width(c);
    kvc_ceiling_print_head(c);
    printf("\n%12s", "capacity");
    if (c->bytes_per_token)
        printf(" %11s", "");
    printf("  %-*s %29s %19s\n", name, "", "usable hit rate, full blocks", "with partial tails");
    printf("%12s", "blocks");
    if (c->bytes_per_token)
        printf(" %11s", "size");
    printf("  %-*s %9s %9s %9s %9s %9s\n", name, "policy", "tokens", "blocks", "requests", "tokens",
           "blocks");
    print_row(c, "inf", "inf", "content", &c->content);
    for (size_t i = 0; i < c->n_points; i++) {
        const struct ceiling_point *p = &c->point[i];
        bool inf = p->blocks == KVC_CAPACITY_INF;
        for (size_t k = 0; k < c->n_policies; k++)
            print_row(c, ceiling_blocks_text(p->blocks).s,
                      inf ? "inf" : kvc_fmt_bytes((double)p->bytes).s, kvc_ceiling_label(c, k),
                      &c->hits[k * c->n_points + i]);
    }
    enum kvc_status st = c->stats.has_prefix && c->n_points ? print_gaps(c, err) : KVC_OK;
    if (st == KVC_OK) {
        kvc_ceiling_proof_text(c);
        kvc_ceiling_tiers_text(c);
        kvc_ceiling_cost_text(c);
    }
    if (st == KVC_OK)
        st = kvc_ceiling_closeup_text(c, err);
    return st == KVC_OK ? print_curve(c, err) : st;
}
