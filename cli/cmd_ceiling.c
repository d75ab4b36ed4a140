/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/trace_args.h"
#include "reports/out.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CURVE_POINTS 2000
#define DEFAULT_CAPACITIES 8

static const struct kvc_cli_option options[] = {
    {"capacity", "LIST", "from all that LRU can use, halving",
     "cache sizes, by commas: blocks (10000), sizes (512GiB, with --model), or inf"},
    {"policy", "LIST", "lru,opt", "policies, by commas, or all: lru, fifo, lfu, plfu, lenaware,\n"
     "sieve, s3fifo, twoq, arc, ttl, ttlfixed, lruk, gdsf, hyperbolic,\n"
     "wtinylfu, watermark, random, radix, costaware, opt (docs/policies.md)"},
    {"curve", "[all]", NULL,
     "the exact LRU curve, at 2,000 capacities at most; all = every change of slope"},
    {"model", "NAME", NULL, "model whose KV the blocks hold, for sizes in bytes"},
    {"kv-dtype", "DTYPE", "bf16", "of the KV cache"},
    {"format", "NAME", "auto", "format of the log"},
    {"block-tokens", "N", "the format's", "tokens of a block id in the log"},
    {"strict", NULL, NULL, "stop at the first bad row of the log"},
    KVC_CLI_TEXT_OPTIONS,
    KVC_CLI_TIME_OPTIONS,
    {"by", "WHAT", NULL, "not in this release"},
    {"replicas", "N", NULL, "not in this release"},
    {"router", "NAME", NULL, "not in this release"},
    {NULL, NULL, NULL, NULL},
};

struct point {
    uint64_t blocks, bytes; /* bytes 0: no model */
};

struct ceiling {
    struct kvc_cli *cli;
    const char *path;
    struct kvc_import_options import;
    struct kvc_trace *trace;
    struct kvc_trace_stats stats;
    struct kvc_hits content;
    struct kvc_curve curve; /* whole */
    uint64_t bytes_per_token; /* 0: no model */
    struct point *point;
    size_t n_points;
    const char **policy;
    size_t n_policies;
    struct kvc_hits *hits; /* by policy, then by point */
};

/* ---- lists on the command line ---- */

/* Calls take for each word between commas, which it may keep until the command ends. */
static enum kvc_status each(struct ceiling *c, char *list, const char *option,
                            enum kvc_status (*take)(struct ceiling *, const char *, struct kvc_error *),
                            struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    for (char *word = list, *comma; word && st == KVC_OK; word = comma) {
        comma = strchr(word, ',');
        if (comma)
            *comma++ = '\0';
        while (isspace((unsigned char)*word))
            word++;
        for (size_t n = strlen(word); n > 0 && isspace((unsigned char)word[n - 1]); n--)
            word[n - 1] = '\0';
        st = *word ? take(c, word, err)
                   : kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, option,
                                 "an empty word in the list; separate values by one comma");
    }
    return st;
}

static enum kvc_status each_of(struct ceiling *c, const char *option, const char *fallback,
                               enum kvc_status (*take)(struct ceiling *, const char *,
                                                       struct kvc_error *),
                               struct kvc_error *err)
{
    const char *list = kvc_cli_value(c->cli, option + 2);
    char *copy = kvc_strdup(list ? list : fallback);
    enum kvc_status st = copy ? each(c, copy, option, take, err) : kvc_fail_nomem(err);
    kvc_free(copy);
    return st;
}

static enum kvc_status take_policy(struct ceiling *c, const char *word, struct kvc_error *err)
{
    if (kvc_name_equal(word, "all")) {
        enum kvc_status all = KVC_OK;
        for (const char *const *p = kvc_ceiling_policies(); *p && all == KVC_OK; p++)
            all = take_policy(c, *p, err);
        return all;
    }
    enum kvc_status st = kvc_ceiling_policy(NULL, word, NULL, 0, NULL, err);
    const char *const *name = kvc_ceiling_policies();
    if (st != KVC_OK)
        return st;
    while (!kvc_name_equal(*name, word))
        name++;
    for (size_t i = 0; i < c->n_policies; i++)
        if (c->policy[i] == *name)
            return KVC_OK;
    const char **grown = kvc_realloc(c->policy, c->n_policies + 1, sizeof(*grown));
    if (!grown)
        return kvc_fail_nomem(err);
    c->policy = grown;
    c->policy[c->n_policies++] = *name;
    return KVC_OK;
}

static uint64_t block_bytes(const struct ceiling *c)
{
    return c->bytes_per_token * c->stats.block_tokens;
}

static enum kvc_status add_point(struct ceiling *c, uint64_t blocks, uint64_t bytes,
                                 struct kvc_error *err)
{
    struct point *grown = kvc_realloc(c->point, c->n_points + 1, sizeof(*grown));
    if (!grown)
        return kvc_fail_nomem(err);
    c->point = grown;
    if (!bytes && blocks != KVC_CAPACITY_INF && block_bytes(c) &&
        blocks <= UINT64_MAX / block_bytes(c))
        bytes = blocks * block_bytes(c);
    c->point[c->n_points++] = (struct point){blocks, bytes};
    return KVC_OK;
}

static enum kvc_status take_capacity(struct ceiling *c, const char *word, struct kvc_error *err)
{
    uint64_t value;
    enum kvc_status st;
    if (kvc_name_equal(word, "inf"))
        return add_point(c, KVC_CAPACITY_INF, 0, err);
    if (strspn(word, "0123456789") == strlen(word)) {
        st = kvc_parse_u64(word, "--capacity", &value, err);
        return st != KVC_OK ? st : add_point(c, value, 0, err);
    }
    if (strspn(word, "0123456789.eE+-") == strlen(word))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--capacity",
                           "%.64s is not a whole number of blocks; give one, a size like 80GiB, or "
                           "inf", word);
    st = kvc_parse_bytes(word, "--capacity", &value, err);
    if (st != KVC_OK)
        return err->status = KVC_ERR_USAGE;
    if (!c->bytes_per_token)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--capacity",
                           "%s is a size in bytes, which needs --model (and --kv-dtype) to become "
                           "blocks; or give a number of blocks", word);
    return add_point(c, block_bytes(c) ? value / block_bytes(c) : 0, value, err);
}

/* Without --capacity: from where LRU has all reuse, halving. */
static enum kvc_status default_points(struct ceiling *c, struct kvc_error *err)
{
    uint64_t end = c->curve.n ? c->curve.capacity_blocks[c->curve.n - 1] : 0;
    enum kvc_status st = KVC_OK;
    for (unsigned i = DEFAULT_CAPACITIES; i-- > 0 && st == KVC_OK;)
        if (end >> i > 0)
            st = add_point(c, end >> i, 0, err);
    return st;
}

/* ---- the work ---- */

static enum kvc_status open_trace(struct ceiling *c, struct kvc_error *err)
{
    struct kvc_import_report report = {0};
    enum kvc_status st = kvc_trace_open(&c->trace, c->path, &c->import, &report, err);
    kvc_cli_import_report(c->cli, &report);
    if (st == KVC_OK)
        kvc_trace_stats(c->trace, &c->stats);
    if (st == KVC_OK)
        kvc_cli_forgotten(c->cli, &c->stats);
    return st;
}

static enum kvc_status compute(struct ceiling *c, struct kvc_error *err)
{
    enum kvc_status st = kvc_ceiling_content(c->trace, &c->content, err);
    bool curve = kvc_cli_flag(c->cli, "curve") || !kvc_cli_value(c->cli, "capacity");
    if (st == KVC_OK && curve)
        st = kvc_ceiling_lru_curve(c->trace, &c->curve, err);
    if (st == KVC_OK)
        st = kvc_cli_value(c->cli, "capacity")
                 ? each_of(c, "--capacity", NULL, take_capacity, err)
                 : default_points(c, err);
    if (st != KVC_OK)
        return st;
    uint64_t *capacity = kvc_malloc(c->n_points, sizeof(*capacity));
    c->hits = kvc_calloc(c->n_points * c->n_policies, sizeof(*c->hits));
    if (!capacity || !c->hits) {
        kvc_free(capacity);
        return kvc_fail_nomem(err);
    }
    for (size_t i = 0; i < c->n_points; i++)
        capacity[i] = c->point[i].blocks;
    st = kvc_ceiling_grid(c->trace, c->policy, c->n_policies, capacity, c->n_points,
                          kvc_cli_threads(c->cli), c->hits, err);
    kvc_free(capacity);
    return st;
}

/* The curve to show; the caller clears it. */
static enum kvc_status shown_curve(const struct ceiling *c, struct kvc_curve *out,
                                   struct kvc_error *err)
{
    const char *all = kvc_cli_value(c->cli, "curve");
    size_t most = all ? c->curve.n + 3 : CURVE_POINTS;
    if (!c->stats.has_prefix || !kvc_cli_flag(c->cli, "curve"))
        return KVC_OK;
    return kvc_curve_thin(&c->curve, most, out, err);
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : (double)NAN;
}

/* ---- JSON ---- */

static void json_count(struct kvc_json *j, const char *key, uint64_t n, bool known)
{
    if (known)
        kvc_json_u64(j, key, n);
    else
        kvc_json_null(j, key);
}

static void json_hits(struct kvc_json *j, const struct kvc_hits *h, const struct kvc_trace_stats *s)
{
    bool known = s->has_prefix, tokens = known && s->has_tokens;
    json_count(j, "raw_hit_blocks", h->raw_hit_blocks, known);
    kvc_json_double(j, "raw_block_hit_rate", known ? ratio(h->raw_hit_blocks, h->blocks) : (double)NAN);
    json_count(j, "raw_hit_tokens", h->raw_hit_tokens, tokens);
    kvc_json_double(j, "raw_token_hit_rate",
                    tokens ? ratio(h->raw_hit_tokens, h->tokens) : (double)NAN);
    json_count(j, "hit_blocks", h->hit_blocks, known);
    kvc_json_double(j, "block_hit_rate", known ? ratio(h->hit_blocks, h->full_blocks) : (double)NAN);
    json_count(j, "hit_tokens", h->hit_tokens, tokens);
    kvc_json_double(j, "token_hit_rate", tokens ? ratio(h->hit_tokens, h->tokens) : (double)NAN);
    kvc_json_double(j, "request_hit_rate", known ? ratio(h->hit_requests, h->requests) : (double)NAN);
}

static void json_point(struct kvc_json *j, const struct ceiling *c, size_t policy, size_t point)
{
    const struct point *p = &c->point[point];
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "policy", c->policy[policy]);
    if (p->blocks == KVC_CAPACITY_INF)
        kvc_json_string(j, "capacity_blocks", "inf");
    else
        kvc_json_u64(j, "capacity_blocks", p->blocks);
    if (p->blocks == KVC_CAPACITY_INF && c->bytes_per_token)
        kvc_json_string(j, "capacity_bytes", "inf");
    else
        json_count(j, "capacity_bytes", p->bytes, c->bytes_per_token > 0);
    json_hits(j, &c->hits[policy * c->n_points + point], &c->stats);
    kvc_json_close(j);
}

static enum kvc_status print_json(const struct ceiling *c, struct kvc_error *err)
{
    struct kvc_curve curve = {0};
    struct kvc_json j;
    enum kvc_status st = shown_curve(c, &curve, err);
    if (st != KVC_OK)
        return st;
    kvc_cli_json_begin(&j, "kvcast.ceiling.v1");
    kvc_cli_json_trace(&j, &c->stats);
    kvc_json_open_object(&j, "content");
    json_hits(&j, &c->content, &c->stats);
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
    printf("  %-10s", name);
    print_rate(h->hit_tokens, h->tokens, tokens);
    print_rate(h->hit_blocks, h->full_blocks, known);
    print_rate(h->hit_requests, h->requests, known);
    print_rate(h->raw_hit_tokens, h->tokens, tokens);
    print_rate(h->raw_hit_blocks, h->blocks, known);
    putchar('\n');
}

static void print_head(const struct ceiling *c)
{
    const struct kvc_trace_stats *s = &c->stats;
    if (!s->has_tokens) {
        printf("%s: %s references to %s objects over %.1f min; an object is a block here, of tokens "
               "nothing is known\n", c->path, kvc_fmt_count(s->requests).s,
               kvc_fmt_count(s->blocks).s, (double)s->span_ns / 60e9);
        return;
    }
    printf("%s: %s requests over %.1f min, %s input tokens\n", c->path,
           kvc_fmt_count(s->requests).s, (double)s->span_ns / 60e9,
           kvc_fmt_count(s->input_tokens).s);
    if (!s->has_prefix) {
        printf("which prompts share a prefix is not in the log: hit rates are unknown, not 0\n");
        return;
    }
    printf("%s touches of %s blocks of %u tokens (%s touches of %s segments)\n",
           kvc_fmt_count(s->block_touches).s, kvc_fmt_count(s->blocks).s,
           s->block_tokens, kvc_fmt_count(s->segment_touches).s,
           kvc_fmt_count(s->segments).s);
    if (s->without_ids)
        printf("%s requests bring no block ids and count as misses\n",
               kvc_fmt_count(s->without_ids).s);
    if (c->bytes_per_token)
        printf("%s bytes of KV per token, %s per block\n", kvc_fmt_count(c->bytes_per_token).s,
               kvc_fmt_count(block_bytes(c)).s);
}

static enum kvc_status print_curve(const struct ceiling *c, struct kvc_error *err)
{
    struct kvc_curve curve = {0};
    enum kvc_status st = shown_curve(c, &curve, err);
    if (st == KVC_OK && curve.n)
        printf("\nLRU, raw (partial last blocks count): %zu of %zu changes of slope, straight lines "
               "between all\n%12s %14s %10s\n", curve.n, c->curve.n,
               "blocks", "hit blocks", "hit rate");
    for (size_t i = 0; i < curve.n; i++)
        printf("%12" PRIu64 " %14" PRIu64 " %9.4f%%\n", curve.capacity_blocks[i],
               curve.raw_hit_blocks[i], 100 * ratio(curve.raw_hit_blocks[i], c->content.blocks));
    kvc_curve_clear(&curve);
    return st;
}

static enum kvc_status print_text(const struct ceiling *c, struct kvc_error *err)
{
    print_head(c);
    printf("\n%12s", "capacity");
    if (c->bytes_per_token)
        printf(" %11s", "");
    printf("  %-10s %29s %19s\n", "", "usable hit rate, full blocks", "with partial tails");
    printf("%12s", "blocks");
    if (c->bytes_per_token)
        printf(" %11s", "size");
    printf("  %-10s %9s %9s %9s %9s %9s\n", "policy", "tokens", "blocks", "requests", "tokens",
           "blocks");
    print_row(c, "inf", "inf", "content", &c->content);
    for (size_t i = 0; i < c->n_points; i++) {
        const struct point *p = &c->point[i];
        bool inf = p->blocks == KVC_CAPACITY_INF;
        for (size_t k = 0; k < c->n_policies; k++)
            print_row(c, inf ? "inf" : kvc_fmt_count(p->blocks).s,
                      inf ? "inf" : kvc_fmt_bytes((double)p->bytes).s, c->policy[k],
                      &c->hits[k * c->n_points + i]);
    }
    return print_curve(c, err);
}

/* ---- the command ---- */

static int refuse(const struct kvc_cli *cli)
{
    static const char *const later[] = {"by", "replicas", "router"};
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        if (kvc_cli_flag(cli, later[i]))
            return kvc_cli_usage(cli, "--%s is not in this release (%s) yet", later[i],
                                 kvc_version());
    if (kvc_cli_count(cli) != 1)
        return kvc_cli_count(cli)
                   ? kvc_cli_usage(cli, "one trace at a time; '%s' is one too many",
                                   kvc_cli_argument(cli, 1))
                   : kvc_cli_usage(cli, "no trace: give a log or a .kvt");
    if (kvc_cli_flag(cli, "kv-dtype") && !kvc_cli_flag(cli, "model"))
        return kvc_cli_usage(cli, "--kv-dtype says nothing without --model");
    return KVC_EXIT_OK;
}

/* All that can be wrong with the words is found before the trace is read. */
static enum kvc_status check_words(struct ceiling *c, struct kvc_error *err)
{
    const char *model = kvc_cli_value(c->cli, "model");
    enum kvc_status st = KVC_OK;
    if (model)
        st = kvc_model_kv_bytes_per_token(model, kvc_cli_value(c->cli, "kv-dtype"),
                                          &c->bytes_per_token, err);
    if (st == KVC_OK)
        st = each_of(c, "--policy", "lru,opt", take_policy, err);
    if (st == KVC_OK && kvc_cli_value(c->cli, "capacity"))
        st = each_of(c, "--capacity", NULL, take_capacity, err);
    c->n_points = 0; /* bytes become blocks when the trace is known */
    if (st == KVC_ERR_INPUT || st == KVC_ERR_UNSUPPORTED)
        st = err->status = KVC_ERR_USAGE;
    return st;
}

static int ceiling_main(struct kvc_cli *cli)
{
    struct ceiling c = {.cli = cli, .path = kvc_cli_argument(cli, 0)};
    struct kvc_error err = {0};
    int rc = refuse(cli);
    if (rc == KVC_EXIT_OK)
        rc = kvc_cli_import_options(cli, &c.import);
    if (rc != KVC_EXIT_OK)
        return rc;
    enum kvc_status st = check_words(&c, &err);
    if (st == KVC_OK)
        st = open_trace(&c, &err);
    if (st == KVC_OK)
        st = compute(&c, &err);
    if (st == KVC_OK)
        st = kvc_cli_json(cli) ? print_json(&c, &err) : print_text(&c, &err);
    if (st != KVC_OK)
        rc = kvc_cli_fail(cli, &err);
    kvc_free(c.hits);
    kvc_free(c.point);
    kvc_free(c.policy);
    kvc_curve_clear(&c.curve);
    kvc_trace_destroy(c.trace);
    return rc;
}

const struct kvc_cli_command kvc_cmd_ceiling = {
    .name = "ceiling",
    .arguments = "TRACE",
    .summary = "hit-rate bounds and policies without time",
    .description =
        "What a prefix cache could hit if time, pages and transfers did not matter: with endless "
        "room (content), with the best possible choice of what to keep at each capacity (opt), and "
        "with LRU. All counts are exact.\n\n"
        "Usable rates count full blocks only; the others also count partial last blocks, as trace "
        "papers do. Both are of all input tokens or blocks; no last-token rule is applied.",
    .options = options,
    .run = ceiling_main,
};
