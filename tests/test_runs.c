/* SPDX-License-Identifier: Apache-2.0
 * Policies by runs against the same policies block by block. */
#include "policies/eviction/runs.h"
#include "tests/twins/block_policies.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SEGMENTS 24
#define REQUESTS 80

/* A random forest of segments and random requests, each the path to some segment. */
struct forest {
    uint32_t n, len[SEGMENTS], depth[SEGMENTS], first[SEGMENTS], parent[SEGMENTS];
    uint32_t n_requests, seg[REQUESTS], n_blocks;
    uint64_t now_ns[REQUESTS];
    uint32_t session[REQUESTS], tenant[REQUESTS], block_tokens, tokens[REQUESTS];
};

static void make(struct forest *f, uint64_t *rng)
{
    uint32_t longest = 1 + (uint32_t)kvc_rng_below(rng, kvc_rng_below(rng, 4) ? 12 : 60);
    f->n = 1 + (uint32_t)kvc_rng_below(rng, SEGMENTS);
    f->n_blocks = 0;
    for (uint32_t s = 0; s < f->n; s++) {
        f->parent[s] = kvc_rng_below(rng, 4) ? (uint32_t)kvc_rng_below(rng, s + 1) : s;
        f->len[s] = 1 + (uint32_t)kvc_rng_below(rng, longest);
        bool root = f->parent[s] == s;
        f->depth[s] = root ? 0 : f->depth[f->parent[s]] + f->len[f->parent[s]];
        if (root)
            f->parent[s] = UINT32_MAX;
        f->first[s] = f->n_blocks;
        f->n_blocks += f->len[s];
    }
    f->n_requests = 1 + (uint32_t)kvc_rng_below(rng, REQUESTS);
    f->block_tokens = (uint32_t[]){1, 16, 512}[kvc_rng_below(rng, 3)];
    for (uint32_t r = 0; r < f->n_requests; r++) {
        f->seg[r] = (uint32_t)kvc_rng_below(rng, f->n);
        f->now_ns[r] = (r ? f->now_ns[r - 1] : 5) + kvc_rng_below(rng, 4);
        f->session[r] = kvc_rng_below(rng, 4) ? (uint32_t)kvc_rng_below(rng, 8) : KVC_ID_NONE;
        f->tenant[r] = (uint32_t)kvc_rng_below(rng, 3);
        f->tokens[r] = (f->depth[f->seg[r]] + f->len[f->seg[r]]) * f->block_tokens -
                       (uint32_t)kvc_rng_below(rng, f->block_tokens);
    }
}

static void paths(const struct forest *f, uint32_t **path, uint32_t *length)
{
    for (uint32_t r = 0; r < f->n_requests; r++) {
        uint32_t s = f->seg[r];
        length[r] = f->depth[s] + f->len[s];
        path[r] = malloc(length[r] * sizeof(*path[r]));
        assert_non_null(path[r]);
        for (; s != UINT32_MAX; s = f->parent[s])
            for (uint32_t i = 0; i < f->len[s]; i++)
                path[r][f->depth[s] + i] = f->first[s] + i;
    }
}

struct leaving {
    const struct forest *f;
    uint32_t request, *by; /* by block, as block_log's left_by */
};

static void note_leaving(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired)
{
    struct leaving *l = user;
    for (uint32_t i = lo; i < hi; i++)
        l->by[l->f->first[seg] + i] = l->request + (expired ? BLOCK_EXPIRED : 0);
}

/* Of the segments of a request's path, leaf first. */
static void next_uses(const struct forest *f, uint32_t request, uint32_t *next)
{
    for (uint32_t s = f->seg[request]; s != UINT32_MAX; s = f->parent[s], next++) {
        uint32_t r = request + 1, on = UINT32_MAX;
        for (; r < f->n_requests; r++) {
            for (on = f->seg[r]; on != UINT32_MAX && on != s;)
                on = f->parent[on];
            if (on == s)
                break;
        }
        *next = r < f->n_requests ? r : UINT32_MAX;
    }
}

static uint64_t by_runs(const struct forest *f, const char *policy, uint64_t capacity,
                        uint32_t *runs, uint32_t *left_by)
{
    uint64_t access = 0;
    struct leaving leaving = {f, 0, left_by};
    const struct kvc_runs_setup setup = {
        .policy = policy, .capacity = capacity, .n_segments = f->n, .seg_len = f->len,
        .seg_depth = f->depth, .seg_parent = f->parent, .left = note_leaving, .left_user = &leaving,
        .block_tokens = f->block_tokens,
    };
    struct kvc_runs *c = kvc_runs_create(&setup);
    assert_non_null(c);
    for (uint32_t r = 0; r < f->n_requests; r++) {
        uint32_t next[SEGMENTS];
        next_uses(f, r, next);
        leaving.request = r + 1;
        const struct kvc_runs_request request = {f->seg[r], f->session[r], f->tenant[r],
                                                 f->now_ns[r], next, f->tokens[r]};
        runs[r] = (uint32_t)kvc_runs_arrive(c, &request);
        assert_int_equal(kvc_runs_held(c, f->seg[r]), runs[r]);
        access += kvc_runs_touch(c);
    }
    assert_false(kvc_runs_failed(c));
    kvc_runs_destroy(c);
    return access;
}

/* What the tests draw an option's value from; times are in ns. */
struct range {
    const char *name;
    double min, max, step;
};

static const struct range ranges[] = {
    {"ttl", 1, 60, 1},      {"k", 1, 5, 1},           {"small", 0, 1, 0.01},
    {"ghosts", 0, 2, 0.01}, {"uses", 1, 3, 1},        {"in", 0, 1, 0.01},
    {"out", 0, 2, 0.01},    {"window", 0, 1, 0.01},   {"protected", 0, 1, 0.01},
    {"sample", 1, 20, 1},   {"high", 0, 1, 0.01},     {"batch", 0.01, 1, 0.01},
    {"tokens", 1, 100, 1},  {"seed", 0, 1000000, 1},  {"hir", 0, 1, 0.01},
    {"learning", 0, 2, 0.01}, {"discount", 0.001, 1, 0.001}, {"head", 0, 60, 1},
    {"headlevel", 0, 100, 5}, {"level", 0, 100, 5},   {"tenant", 0, 3, 1},
    {"times", 1, 4, 1},     {"memory", 0, 4, 1},      {"tenantlevel", 0, 100, 5},
    {"duration", 0, 40, 1}, {"pause", 1, 40, 1},
};

static double draw(const char *option, uint64_t *rng)
{
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const struct range *r = &ranges[i];
        if (strcmp(r->name, option) == 0)
            return r->min + r->step * (double)kvc_rng_below(
                                         rng, (uint64_t)((r->max - r->min) / r->step + 1.5));
    }
    fail_msg("option %s has no range to draw from in this test", option);
    return 0;
}

/* A policy with some of its options, in words and for the blocks. */
struct choice {
    char spec[256];
    const char *admission;
    struct block_option option[KVC_POLICY_OPTIONS], admission_option[KVC_POLICY_OPTIONS];
    uint32_t n, n_admission, block_tokens;
};

/* Adds some options of a table to the words; returns how many. The block twins of evictions take
 * blocks for tokens, those of admission tokens. */
static uint32_t draw_options(struct choice *c, const struct kvc_policy_option *table, uint32_t n,
                             struct block_option *out, uint64_t *rng)
{
    uint32_t drawn = 0;
    size_t at = strlen(c->spec);
    for (uint32_t i = 0; i < n; i++) {
        bool tokens = strcmp(table[i].name, "tokens") == 0 || strcmp(table[i].name, "head") == 0;
        bool all = table[i].kind == KVC_OPTION_TIME || tokens;
        if (!all && kvc_rng_below(rng, 2))
            continue; /* its default, unless that is too much for the logs of a test */
        double value = draw(table[i].name, rng), in_blocks = value;
        if (tokens)
            value *= c->block_tokens;
        if (tokens && out == c->admission_option)
            in_blocks = value -= (double)kvc_rng_below(rng, c->block_tokens);
        out[drawn++] = (struct block_option){table[i].name, in_blocks};
        at += (size_t)snprintf(c->spec + at, sizeof(c->spec) - at, ":%s=%.9g%s", table[i].name,
                               value, table[i].kind == KVC_OPTION_TIME ? "ns" : "");
    }
    return drawn;
}

/* One time in six without an admission policy. */
static void choose(struct choice *c, const char *policy, uint64_t *rng)
{
    uint32_t n, admissions = 0;
    const struct kvc_policy_option *table = kvc_runs_options(policy, &n);
    snprintf(c->spec, sizeof(c->spec), "%s", policy);
    c->n = draw_options(c, table, n, c->option, rng);
    while (kvc_admission_names()[admissions])
        admissions++;
    c->admission = kvc_admission_names()[kvc_rng_below(rng, admissions)];
    table = kvc_policy_find(KVC_POLICY_ADMISSION, c->admission)->options;
    n = kvc_policy_find(KVC_POLICY_ADMISSION, c->admission)->n_options;
    if (strcmp(c->admission, "always") != 0) {
        size_t at = strlen(c->spec);
        snprintf(c->spec + at, sizeof(c->spec) - at, "+%s", c->admission);
    }
    c->n_admission = draw_options(c, table, n, c->admission_option, rng);
    assert_int_equal(kvc_runs_check(c->spec, NULL), KVC_OK);
}

/* Blocks seen resident behind an absent one, by policy. */
static uint64_t stray[64];

/* By number: those that know no future, then that which does; NULL at the end. */
static const char *policy(uint32_t number)
{
    const char *const *p = kvc_runs_policies();
    for (; *p && number; p++)
        number--;
    return *p ? *p : number ? NULL : "optforced";
}

static void check(const struct forest *f, struct block_log *log, const char *spec,
                  uint64_t capacity, uint64_t number, uint64_t *strays)
{
    static uint32_t want[REQUESTS], got[REQUESTS];
    static uint32_t want_left[SEGMENTS * 60], got_left[SEGMENTS * 60];
    char name[32], what[400];
    const char *options;
    assert_int_equal(kvc_policy_name(spec, name, sizeof(name), &options, NULL), KVC_OK);
    snprintf(what, sizeof(what), "case %llu, %s, %llu blocks", (unsigned long long)number, spec,
             (unsigned long long)capacity);
    memset(want_left, 0, sizeof(want_left));
    memset(got_left, 0, sizeof(got_left));
    log->left_by = want_left;
    bool oracle = strcmp(name, "optforced") == 0;
    struct block_counts counts = block_policy_run(log, name, !oracle, capacity, want);
    uint64_t access = by_runs(f, spec, capacity, got, got_left);
    *strays += counts.set;
    for (uint32_t r = 0; r < f->n_requests; r++) {
        *strays -= want[r];
        if (want[r] != got[r])
            fail_msg("%s: request %u: run %u, expected %u", what, r, got[r], want[r]);
    }
    for (uint32_t b = 0; b < f->n_blocks; b++)
        if (!oracle && want_left[b] != got_left[b]) /* any of those not used again may go */
            fail_msg("%s: block %u left for request %x, expected %x", what, b, got_left[b],
                     want_left[b]);
    if (access != counts.access)
        fail_msg("%s: %llu access hits, expected %llu", what, (unsigned long long)access,
                 (unsigned long long)counts.access);
}

static void runs_give_what_blocks_give(void **state)
{
    const char *given = getenv("KVC_TEST_CASES"), *only = getenv("KVC_TEST_POLICY");
    uint64_t rng = kvc_rng_stream(7, "runs"), cases = given ? strtoull(given, NULL, 10) : 2000;
    static uint32_t segment_end[SEGMENTS * 60];
    uint32_t length[REQUESTS], *path[REQUESTS];
    (void)state;
    for (uint64_t i = 0; i < cases; i++) {
        struct forest f;
        make(&f, &rng);
        paths(&f, path, length);
        struct block_log log = {.n_requests = f.n_requests, .n_blocks = f.n_blocks,
                                .path = (const uint32_t *const *)path, .length = length,
                                .now_ns = f.now_ns, .session = f.session, .tenant = f.tenant,
                                .segment_end = segment_end, .tokens = f.tokens,
                                .block_tokens = f.block_tokens};
        for (uint32_t s = 0; s < f.n; s++)
            for (uint32_t b = 0; b < f.len[s]; b++)
                segment_end[f.first[s] + b] = f.depth[s] + f.len[s];
        uint64_t capacity = kvc_rng_below(&rng, f.n_blocks + 2);
        for (uint32_t p = 0; policy(p); p++) {
            struct choice c = {.block_tokens = f.block_tokens};
            choose(&c, policy(p), &rng);
            log.option = c.option;
            log.n_options = c.n;
            log.admission = c.admission;
            log.admission_option = c.admission_option;
            log.n_admission_options = c.n_admission;
            if (!only || strcmp(only, policy(p)) == 0)
                check(&f, &log, c.spec, capacity, i, &stray[p]);
        }
        for (uint32_t r = 0; r < f.n_requests; r++)
            free(path[r]);
    }
}

/* Whatever allocation fails, a cache is not made or says so at its end. */
static void running_out_of_memory_is_told(void **state)
{
    uint64_t rng = kvc_rng_stream(8, "runs");
    (void)state;
    for (uint32_t p = 0; policy(p); p++) {
        struct forest f;
        struct choice choice = {.block_tokens = 1};
        make(&f, &rng);
        choose(&choice, policy(p), &rng);
        bool failed = true;
        for (uint64_t nth = 1; failed && nth < 200; nth++) {
            const struct kvc_runs_setup setup = {
                .policy = choice.spec, .capacity = f.n_blocks / 2 + 1, .n_segments = f.n,
                .seg_len = f.len, .seg_depth = f.depth, .seg_parent = f.parent,
            };
            kvc_alloc_fail_after(nth);
            struct kvc_runs *c = kvc_runs_create(&setup);
            for (uint32_t r = 0; c && r < f.n_requests && !kvc_runs_failed(c); r++) {
                uint32_t next[SEGMENTS];
                next_uses(&f, r, next);
                const struct kvc_runs_request request = {f.seg[r], f.session[r], f.tenant[r],
                                                         f.now_ns[r], next, 0};
                kvc_runs_arrive(c, &request);
                kvc_runs_touch(c);
            }
            kvc_alloc_fail_after(0);
            failed = !c || kvc_runs_failed(c);
            kvc_runs_destroy(c);
        }
        assert_false(failed);
    }
}

/* The row of docs/policies.md for a policy; its last cell into closed. */
static bool documented(const char *policy, char *closed)
{
    char line[1024], name[32], *bar;
    bool found = false;
    FILE *f = fopen("docs/policies.md", "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "| %31[a-z0-9] |", name) != 1 || strcmp(name, policy) != 0)
            continue;
        assert_false(found);
        found = true;
        bar = strrchr(line, '|');
        assert_non_null(bar);
        *bar = '\0';
        assert_int_equal(sscanf(strrchr(line, '|'), "| %7s", closed), 1);
    }
    fclose(f);
    return found;
}

static void the_table_has_all_policies_and_no_others(void **state)
{
    char line[1024], name[32], closed[8];
    unsigned rows = 0, policies = 0;
    (void)state;
    FILE *f = fopen("docs/policies.md", "r");
    if (!f) {
        print_message("SKIPPED: docs/policies.md is not here\n");
        skip();
    }
    while (fgets(line, sizeof(line), f))
        rows += sscanf(line, "| %31[a-z0-9] |", name) == 1 && strcmp(name, "policy") != 0;
    fclose(f);
    for (const char *const *p = kvc_ceiling_policies(); *p; p++, policies++)
        if (!documented(*p, closed))
            fail_msg("%s has no row in docs/policies.md", *p);
    assert_int_equal(rows, policies);
}

static bool line_in_docs(const char *begin, const char *end)
{
    char line[1024];
    bool found = false;
    FILE *f = fopen("docs/policies.md", "r");
    assert_non_null(f);
    while (!found && fgets(line, sizeof(line), f))
        found = !strncmp(line, begin, strlen(begin)) && strstr(line, end);
    fclose(f);
    return found;
}

static void options_are_in_docs(const char *name, const char *policy,
                                const struct kvc_policy_option *o, uint32_t n)
{
    assert_in_range(n, 0, KVC_POLICY_OPTIONS);
    for (uint32_t i = 0; i < n; i++) {
        char begin[128], end[128];
        snprintf(begin, sizeof(begin), "| `%s%s:%s` | %s |", name, policy, o[i].name,
                 o[i].default_text);
        snprintf(end, sizeof(end), "| %s |", o[i].help);
        if (!line_in_docs(begin, end))
            fail_msg("docs/policies.md lacks a row \"%s .. %s\"", begin, end);
    }
}

/* Every option with its default and its words. */
static void the_table_of_options_is_that_of_the_policies(void **state)
{
    (void)state;
    if (access("docs/policies.md", R_OK))
        skip();
    uint32_t n;
    for (const char *const *p = kvc_runs_policies(); *p; p++) {
        const struct kvc_policy_option *o = kvc_runs_options(*p, &n);
        options_are_in_docs("", *p, o, n);
    }
    for (const char *const *p = kvc_admission_names(); *p; p++) {
        char row[64];
        const struct kvc_policy_option *o = kvc_policy_find(KVC_POLICY_ADMISSION, *p)->options;
        n = kvc_policy_find(KVC_POLICY_ADMISSION, *p)->n_options;
        snprintf(row, sizeof(row), "| +%s |", *p);
        if (!line_in_docs(row, "|"))
            fail_msg("docs/policies.md lacks a row \"%s\"", row);
        options_are_in_docs("+", *p, o, n);
    }
}

static void options_that_make_no_sense_are_refused(void **state)
{
    static const char *const wrong[][2] = {
        {"lruk:k=0", "out of range: from 1 to 16, 2 by default"},
        {"lruk:k=17", "out of range"},
        {"lruk:q=2", "its options, with their defaults: k=2"},
        {"lruk:k", "has no value"},
        {"lruk:k=two", "two"},
        {"s3fifo:small=nan", "small"},
        {"ttl:ttl=300", "unit"},
        {"lru:k=2", "no options"},
        {"lrux", "no policy"},
        {"lru+secnd", "did you mean"},
        {"lru+second:times=0", "out of range"},
        {"a-name-much-longer-than-any-policy-has", "no policy has a name as long"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct kvc_error err = {0};
        char text[1024];
        assert_int_equal(kvc_runs_check(wrong[i][0], &err), KVC_ERR_USAGE);
        kvc_error_format(&err, text, sizeof(text));
        if (!strstr(text, wrong[i][1]))
            fail_msg("%s: \"%s\" does not say \"%s\"", wrong[i][0], text, wrong[i][1]);
    }
    assert_int_equal(kvc_runs_check("LRUK:K=3", NULL), KVC_OK);
    assert_int_equal(kvc_runs_check("s3fifo:small=0.2:uses=1:ghosts=0", NULL), KVC_OK);
    assert_int_equal(kvc_runs_check("s3fifo:small=0.2+ttl:ttl=1h", NULL), KVC_OK);
}

/* After runs_give_what_blocks_give. */
static void the_table_says_which_policies_leave_holes(void **state)
{
    (void)state;
    if (access("docs/policies.md", R_OK) || getenv("KVC_TEST_POLICY"))
        skip();
    for (uint32_t p = 0; policy(p); p++) {
        char closed[8] = "";
        assert_true(documented(policy(p), closed));
        bool holes = stray[p] > 0;
        if (strcmp(closed, holes ? "no" : "yes") != 0)
            fail_msg("%s: %s holes were seen, the table says closed: %s", policy(p),
                     holes ? "some" : "no", closed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_give_what_blocks_give),
        cmocka_unit_test(running_out_of_memory_is_told),
        cmocka_unit_test(the_table_has_all_policies_and_no_others),
        cmocka_unit_test(the_table_of_options_is_that_of_the_policies),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(the_table_says_which_policies_leave_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
