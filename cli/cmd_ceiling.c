/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ceiling/ceiling.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/trace_args.h"
#include "policies/plugins/plugin.h"
#include "sim/ceiling/ceiling.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CAPACITIES 8

static const struct kvc_cli_option options[] = {
    {"capacity", "LIST", "from all that LRU can use, halving",
     "cache sizes, by commas: blocks (10000, 10k, 1M), sizes (512GiB, with --model), or inf"},
    {"policy", "LIST", "lru,opt",
     "policies, by commas, or all: lru, fifo, lfu, plfu, lenaware, sieve, s3fifo, twoq, arc, ttl, "
     "ttlfixed, lruk, gdsf, hyperbolic, wtinylfu, watermark, random, radix, costaware, lirs, lecar,"
     " priority, thinktime, opt, optforced; with options as in lruk:k=3 or "
     "s3fifo:small=0.2:ghosts=2 (docs/policies.md); or a plug-in's path, ./mine.so "
     "(docs/plugins.md)"},
    {"admission", "NAME", NULL,
     "what every policy but opt stores: always, second, depth, size, tinylfu or ttl, with options "
     "as above, or a plug-in's path; or of one policy: lru+second, lru+./mine.so"},
    {"curve", "[all]", NULL,
     "the exact LRU curve, at 2,000 capacities at most; all = every change of slope"},
    {"certify", NULL, NULL, "prove the optimum at each capacity and check the proof"},
    {"tiers", "LIST", NULL,
     "what no placement in a chain of tiers can beat, fastest first: hbm=20000,dram=512GiB"},
    {"sample", "SHARE", NULL,
     "estimates with bands, from samples of that share of the prefix trees (0.05)"},
    {"cost", NULL, NULL, "bound what hits save, where deeper blocks cost more to compute again"},
    {"gpu", "NAME", NULL, "the same in seconds of that GPU, with --model"},
    {"model", "NAME", NULL, "model whose KV the blocks hold, for sizes in bytes"},
    {"kv-dtype", "DTYPE", "bf16", "of the KV cache"},
    {"format", "NAME", "auto", "format of the log"},
    KVC_CLI_LOG_OPTIONS,
    {"by", "WHAT", NULL, "hits of each tenant, session, model or prefix (family of prompts)"},
    {"replicas", "N", "1", "caches, with --capacity of each, behind a router"},
    {"router", "LIST", "round-robin",
     "who chooses the replica: round-robin, least-loaded, prefix, sticky, power-of-two, or a "
     "plug-in's path"},
    {"isolate", "WHAT", NULL,
     "what one tenant, session or model stored, no other finds, as with a cache_salt; or a "
     "field of the log. With what that costs"},
    {"why", NULL, NULL, "why tokens missed: one cause for each, by tenant and over time"},
    {NULL, NULL, NULL, NULL},
};

/* ---- lists on the command line ---- */

/* Calls take for each word between commas, which it may keep until the command ends. */
static enum kvc_status each(struct ceiling *c, char *list, const char *option,
                            enum kvc_status (*take)(struct ceiling *, const char *,
                                                    struct kvc_error *),
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

/* NULL: no memory. The caller frees it. */
static char *with_admission(const char *policy, const char *admission)
{
    size_t n = strlen(policy) + 1, more = admission ? strlen(admission) + 1 : 0;
    char *spec = kvc_malloc(n + more, 1);
    if (spec)
        snprintf(spec, n + more, "%s%s%s", policy, more ? "+" : "", more ? admission : "");
    return spec;
}

static bool is_bound(const char *name)
{
    return kvc_name_equal(name, "opt") || kvc_name_equal(name, "optforced");
}

/* The policy, behind it what it stores unless it says so itself or is a bound. */
static enum kvc_status add_policy(struct ceiling *c, const char *word, const char *admission,
                                  struct kvc_error *err)
{
    const char *name;
    enum kvc_status st = kvc_ceiling_find_policy(&name, word, err);
    if (st != KVC_OK)
        return st;
    bool bare = !admission || is_bound(name) || kvc_policy_admission(name);
    const char **grown = kvc_realloc(c->policy, c->n_policies + 1, sizeof(*grown));
    char *spec = with_admission(name, bare ? NULL : admission);
    if (grown)
        c->policy = grown;
    if (!grown || !spec) {
        kvc_free(spec);
        return kvc_fail_nomem(err);
    }
    for (size_t i = 0; i < c->n_policies; i++)
        if (strcmp(c->policy[i], spec) == 0) {
            kvc_free(spec);
            return KVC_OK;
        }
    c->policy[c->n_policies++] = spec;
    return KVC_OK;
}

/* All that can run: optforced must know the future of one cache, which a router parts. */
static enum kvc_status add_all(struct ceiling *c, const char *admission, struct kvc_error *err)
{
    const char *replicas = kvc_cli_value(c->cli, "replicas");
    enum kvc_status st = admission ? kvc_admission_check(admission, NULL, err) : KVC_OK;
    for (const char *const *p = kvc_ceiling_policies(); *p && st == KVC_OK; p++)
        if (!replicas || strcmp(replicas, "1") == 0 || strcmp(*p, "optforced") != 0)
            st = add_policy(c, *p, admission, err);
        else
            kvc_cli_note(c->cli, "all is without optforced, which can't run behind a router");
    return st;
}

static enum kvc_status take_policy(struct ceiling *c, const char *word, struct kvc_error *err)
{
    const char *admission = kvc_cli_value(c->cli, "admission");
    if (kvc_name_equal(word, "all"))
        return add_all(c, admission, err);
    if (strncmp(word, "all:", 4) == 0)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--policy",
                           "all takes no options; give them to one policy, as in lruk:k=3");
    if (strncmp(word, "all+", 4) == 0)
        return add_all(c, word + 4, err);
    return add_policy(c, word, admission, err);
}

static struct ceiling_point point_of(const struct ceiling *c, uint64_t blocks)
{
    uint64_t size = ceiling_block_bytes(c);
    bool known = blocks != KVC_CAPACITY_INF && size && blocks <= UINT64_MAX / size;
    return (struct ceiling_point){blocks, known ? blocks * size : 0};
}

static enum kvc_status add_point(struct ceiling *c, struct ceiling_point point,
                                 struct kvc_error *err)
{
    struct ceiling_point *grown = kvc_realloc(c->point, c->n_points + 1, sizeof(*grown));
    if (!grown)
        return kvc_fail_nomem(err);
    c->point = grown;
    c->point[c->n_points++] = point;
    return KVC_OK;
}

static enum kvc_status parse_capacity(const struct ceiling *c, const char *word, const char *option,
                                      struct ceiling_point *out, struct kvc_error *err)
{
    uint64_t value = KVC_CAPACITY_INF;
    size_t digits = strspn(word, "0123456789"), n = strlen(word);
    const char *thousands = strchr("kMG", word[n ? n - 1 : 0]); /* of blocks; bytes end in B */
    enum kvc_status st = KVC_OK;
    if (kvc_name_equal(word, "inf") || (n && digits == n)) {
        if (digits)
            st = kvc_parse_u64(word, option, &value, err);
        *out = point_of(c, value);
        return st;
    }
    if (digits && digits == n - 1 && thousands && *thousands) {
        char count[32];
        static const char *const exponent[] = {"e3", "e6", "e9"};
        snprintf(count, sizeof(count), "%.*s%s", (int)(digits < 24 ? digits : 24), word,
                 exponent[*thousands == 'k' ? 0 : *thousands == 'M' ? 1 : 2]);
        st = kvc_parse_u64(count, option, &value, err);
        *out = point_of(c, value);
        return st;
    }
    if (strspn(word, "0123456789.eE+-") == n)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, option,
                           "\"%.64s\" is not a whole number of blocks; give one (20000, 20k, 1M), "
                           "a size like 80GiB, or inf", word);
    st = kvc_parse_bytes(word, option, &value, err);
    if (st != KVC_OK)
        return err->status = KVC_ERR_USAGE;
    if (!c->bytes_per_token)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, option,
                           "%s is a size in bytes, which needs --model (and --kv-dtype) to become "
                           "blocks; or give a number of blocks", word);
    *out = (struct ceiling_point){ceiling_block_bytes(c) ? value / ceiling_block_bytes(c) : 0,
                                  value};
    return KVC_OK;
}

static enum kvc_status take_capacity(struct ceiling *c, const char *word, struct kvc_error *err)
{
    struct ceiling_point point;
    enum kvc_status st = parse_capacity(c, word, "--capacity", &point, err);
    return st == KVC_OK ? add_point(c, point, err) : st;
}

static enum kvc_status take_tier(struct ceiling *c, const char *word, struct kvc_error *err)
{
    const char *equal = strchr(word, '=');
    struct ceiling_tier *t = &c->tier[c->n_tiers];
    if (!equal || equal == word || (size_t)(equal - word) >= sizeof(t->name))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--tiers",
                           "\"%.64s\" is not NAME=CAPACITY, as in hbm=20000,dram=100000", word);
    for (size_t i = 0; i < c->n_tiers; i++)
        if (strlen(c->tier[i].name) == (size_t)(equal - word) &&
            memcmp(c->tier[i].name, word, (size_t)(equal - word)) == 0)
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--tiers",
                               "there are two tiers called %s; give each its own name",
                               c->tier[i].name);
    if (c->n_tiers == KVC_MAX_TIERS)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--tiers", "more than %d tiers",
                           KVC_MAX_TIERS);
    memcpy(t->name, word, (size_t)(equal - word));
    t->name[equal - word] = '\0';
    enum kvc_status st = parse_capacity(c, equal + 1, "--tiers", &t->capacity, err);
    c->n_tiers += st == KVC_OK;
    return st;
}

/* Without --capacity: from where LRU has all reuse, halving. */
static enum kvc_status default_points(struct ceiling *c, struct kvc_error *err)
{
    uint64_t end = c->curve.n ? c->curve.capacity_blocks[c->curve.n - 1] : 0;
    enum kvc_status st = KVC_OK;
    for (unsigned i = DEFAULT_CAPACITIES; i-- > 0 && st == KVC_OK;)
        if (end >> i > 0)
            st = add_point(c, point_of(c, end >> i), err);
    return st;
}

/* ---- the work ---- */

static bool has_policy(const struct ceiling *c, const char *name)
{
    size_t n = strlen(name);
    for (size_t p = 0; p < c->n_policies; p++)
        if (strncmp(c->policy[p], name, n) == 0 && strchr(":+", c->policy[p][n])) /* or its end */
            return true;
    return false;
}

/* What a log has to name for a policy to be more than another one. */
static void note_what_is_missing(const struct ceiling *c)
{
    if (!c->stats.sessions && has_policy(c, "thinktime"))
        kvc_cli_note(c->cli, "no request names a session, so thinktime expects nobody back: each "
                             "request is one to it (--infer-sessions may find some)");
}

/* priority knows tenants by their numbers: those of the log, or nobody has that level. */
static enum kvc_status check_tenants(const struct ceiling *c, struct kvc_error *err)
{
    const uint32_t n = c->trace->n_tenants;
    for (size_t p = 0; p < c->n_policies; p++) {
        const char *given = strstr(c->policy[p], ":tenant="), *end;
        if (!given || strncmp(c->policy[p], "priority:", 9) != 0)
            continue;
        given += strlen(":tenant=");
        end = given + strcspn(given, ":+");
        uint64_t tenant = strtoull(given, NULL, 10);
        if (n && tenant >= n)
            return kvc_fail_at(err, KVC_ERR_USAGE, c->path, 0, "--policy",
                               "priority:tenant=%.*s: tenants are numbered from 0, and there are "
                               "%u: 0 is %.64s, %u is %.64s", (int)(end - given), given, n,
                               c->trace->tenant_names[0], n - 1, c->trace->tenant_names[n - 1]);
        if (!n)
            kvc_cli_note(c->cli, "no request names a tenant, so priority's tenant is nobody");
    }
    return KVC_OK;
}

static enum kvc_status open_trace(struct ceiling *c, struct kvc_error *err)
{
    struct kvc_import_report report = {0};
    enum kvc_status st = kvc_trace_open(&c->trace, c->path, &c->import, &report, err);
    const char *field = kvc_cli_value(c->cli, "isolate");
    if (st == KVC_ERR_USAGE && field && field == c->import.tenant_field &&
        strstr(err->text, "--tenant-field"))
        return kvc_fail_at(err, KVC_ERR_USAGE, c->path, 0, "--isolate",
                           "a .kvt keeps tenant, session and model of its requests, and no field "
                           "%.64s; give one of these, or import the log with --tenant-field %.64s "
                           "and --isolate tenant here", field, field);
    kvc_cli_import_report(c->cli, &report);
    if (st == KVC_OK)
        kvc_trace_stats(c->trace, &c->stats);
    if (st == KVC_OK)
        kvc_cli_forgotten(c->cli, &c->stats);
    if (st == KVC_OK)
        st = kvc_ceiling_sample_opened(c, err);
    if (st == KVC_OK)
        note_what_is_missing(c);
    if (st == KVC_OK)
        st = check_tenants(c, err);
    if (st == KVC_OK && field && field == c->import.tenant_field && !c->trace->n_tenants)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--isolate",
                           "no row names anything in a field %.64s; give another, or tenant, "
                           "session, model or prefix", field);
    return st;
}

/* The ladder tells what the room costs from what the policy does, whatever policies are shown. */
static enum kvc_status fill_optimum(struct ceiling *c, const uint64_t *capacity,
                                    struct kvc_error *err)
{
    static const char *const opt[] = {"opt"};
    bool there = !c->stats.has_prefix || kvc_ceiling_replicas(c) > 1;
    for (size_t p = 0; p < c->n_policies; p++)
        there = there || strcmp(c->policy[p], opt[0]) == 0;
    if (there)
        return KVC_OK;
    c->optimum = kvc_calloc(c->n_points, sizeof(*c->optimum));
    return c->optimum ? kvc_ceiling_grid(c->seen, opt, 1, capacity, c->n_points,
                                         kvc_cli_threads(c->cli), c->optimum, err)
                      : kvc_fail_nomem(err);
}

static enum kvc_status compute(struct ceiling *c, struct kvc_error *err)
{
    c->seen = c->trace;
    enum kvc_status st = kvc_ceiling_closeup_start(c, err);
    if (st == KVC_OK)
        st = kvc_ceiling_content(c->seen, &c->content, err);
    bool curve = kvc_cli_flag(c->cli, "curve") || !kvc_cli_value(c->cli, "capacity");
    if (st == KVC_OK && curve)
        st = kvc_ceiling_lru_curve(c->seen, &c->curve, err);
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
    st = c->closeups ? kvc_ceiling_closeup_run(c, err)
                     : kvc_ceiling_grid(c->trace, c->policy, c->n_policies, capacity, c->n_points,
                                        kvc_cli_threads(c->cli), c->hits, err);
    if (st == KVC_OK)
        st = fill_optimum(c, capacity, err);
    kvc_free(capacity);
    if (st == KVC_OK)
        st = kvc_ceiling_prove(c, err);
    if (st == KVC_OK && kvc_cli_value(c->cli, "tiers"))
        st = each_of(c, "--tiers", NULL, take_tier, err);
    if (st == KVC_OK)
        st = kvc_ceiling_fill_tiers(c, err);
    return st == KVC_OK ? kvc_ceiling_fill_cost(c, err) : st;
}

/* ---- the command ---- */

static int refuse(const struct kvc_cli *cli)
{
    if (kvc_cli_count(cli) != 1)
        return kvc_cli_count(cli)
                   ? kvc_cli_usage(cli, "one trace at a time; '%s' is one too many",
                                   kvc_cli_argument(cli, 1))
                   : kvc_cli_usage(cli, "no trace: give a log or a .kvt");
    if (kvc_cli_flag(cli, "kv-dtype") && !kvc_cli_flag(cli, "model"))
        return kvc_cli_usage(cli, "--kv-dtype says nothing without --model");
    if (kvc_cli_flag(cli, "gpu") && !kvc_cli_flag(cli, "model"))
        return kvc_cli_usage(cli, "--gpu needs --model: what a prefill costs depends on both");
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
        st = kvc_ceiling_worth(NULL, NULL, model, kvc_cli_value(c->cli, "kv-dtype"),
                               kvc_cli_value(c->cli, "gpu"), err);
    if (st == KVC_OK && kvc_cli_value(c->cli, "admission"))
        st = kvc_admission_check(kvc_cli_value(c->cli, "admission"), NULL, err);
    if (st == KVC_OK)
        st = each_of(c, "--policy", "lru,opt", take_policy, err);
    if (st == KVC_OK && kvc_cli_value(c->cli, "capacity"))
        st = each_of(c, "--capacity", NULL, take_capacity, err);
    if (st == KVC_OK && kvc_cli_value(c->cli, "tiers"))
        st = each_of(c, "--tiers", NULL, take_tier, err);
    if (st == KVC_OK)
        st = kvc_ceiling_sample_words(c, err);
    if (st == KVC_OK)
        st = kvc_ceiling_closeup_words(c, err);
    if (st == KVC_OK && c->closeups)
        st = each_of(c, "--router", "round-robin", kvc_ceiling_take_router, err);
    c->n_points = c->n_tiers = 0; /* bytes become blocks when the trace is known */
    if ((st == KVC_ERR_INPUT && !err->file[0]) || st == KVC_ERR_UNSUPPORTED) /* a plug-in is a
                                                                                file */
        st = err->status = KVC_ERR_USAGE;
    return st;
}

static enum kvc_status show(struct ceiling *c, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    if (c->sample_weight) {
        st = each_of(c, "--capacity", NULL, take_capacity, err);
        return st == KVC_OK ? kvc_ceiling_sample_run(c, err) : st;
    }
    int ours = kvc_cli_keep_stdout();
    st = compute(c, err);
    kvc_cli_take_stdout(ours);
    if (st != KVC_OK)
        return st;
    return (kvc_cli_json(c->cli) ? kvc_ceiling_print_json : kvc_ceiling_print_text)(c, err);
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
        st = show(&c, &err);
    if (st != KVC_OK)
        rc = kvc_cli_fail(cli, &err);
    kvc_ceiling_proof_clear(&c);
    kvc_ceiling_closeup_clear(&c);
    kvc_free(c.cost);
    kvc_free(c.saved);
    kvc_free(c.optimum);
    kvc_free(c.hits);
    kvc_free(c.point);
    for (size_t i = 0; i < c.n_policies; i++)
        kvc_free((void *)(uintptr_t)c.policy[i]);
    kvc_free(c.policy);
    kvc_curve_clear(&c.curve);
    kvc_trace_destroy(c.trace);
    return rc;
}

const struct kvc_cli_command kvc_cmd_ceiling = {
    .name = "ceiling",
    .arguments = "TRACE",
    .summary = "show what no cache can beat and what policies hit, without time",
    .description =
        "What a prefix cache could hit if time, pages and transfers did not matter: with endless "
        "room (content), with the best possible choice of what to keep at each capacity (opt), and "
        "with LRU. All counts are exact.\n\n"
        "Usable rates count full blocks only; the others also count partial last blocks, as trace "
        "papers do. Both are of all input tokens or blocks; no last-token rule is applied.\n\n"
        "From close up: by group, behind routers, in namespaces, and why tokens missed "
        "(docs/tenants.md). With one --capacity, tables by tenant and over time as well.",
    .options = options,
    .run = ceiling_main,
};
