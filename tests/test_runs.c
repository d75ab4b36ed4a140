/* SPDX-License-Identifier: Apache-2.0
 * Policies by runs against the same policies block by block. */
#include "policies/runs.h"
#include "tests/block_policies.h"

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
    uint64_t now_ns[REQUESTS], ttl_ns, seed, cost_blocks;
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
    f->cost_blocks = 1 + kvc_rng_below(rng, 100);
    f->seed = kvc_rng_next(rng);
    f->ttl_ns = 1 + kvc_rng_below(rng, 60);
    for (uint32_t r = 0; r < f->n_requests; r++) {
        f->seg[r] = (uint32_t)kvc_rng_below(rng, f->n);
        f->now_ns[r] = (r ? f->now_ns[r - 1] : 5) + kvc_rng_below(rng, 4);
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

static uint64_t by_runs(const struct forest *f, const char *policy, uint64_t capacity,
                        uint32_t *runs, uint32_t *left_by)
{
    uint64_t access = 0;
    struct leaving leaving = {f, 0, left_by};
    const struct kvc_runs_setup setup = {
        .policy = policy, .capacity = capacity, .n_segments = f->n, .seg_len = f->len,
        .seg_depth = f->depth, .seg_parent = f->parent, .ttl_ns = f->ttl_ns, .seed = f->seed,
        .cost_blocks = f->cost_blocks, .left = note_leaving, .left_user = &leaving,
    };
    struct kvc_runs *c = kvc_runs_create(&setup);
    assert_non_null(c);
    for (uint32_t r = 0; r < f->n_requests; r++) {
        leaving.request = r + 1;
        runs[r] = (uint32_t)kvc_runs_arrive(c, f->seg[r], f->now_ns[r]);
        assert_int_equal(kvc_runs_held(c, f->seg[r]), runs[r]);
        access += kvc_runs_touch(c, f->seg[r]);
    }
    assert_false(kvc_runs_failed(c));
    kvc_runs_destroy(c);
    return access;
}

/* Blocks seen resident behind an absent one, by policy. */
static uint64_t stray[64];

static void runs_give_what_blocks_give(void **state)
{
    const char *given = getenv("KVC_TEST_CASES"), *only = getenv("KVC_TEST_POLICY");
    uint64_t rng = kvc_rng_stream(7, "runs"), cases = given ? strtoull(given, NULL, 10) : 2000;
    uint32_t want[REQUESTS], got[REQUESTS], length[REQUESTS], *path[REQUESTS];
    static uint32_t want_left[SEGMENTS * 60], got_left[SEGMENTS * 60];
    (void)state;
    for (uint64_t i = 0; i < cases; i++) {
        struct forest f;
        make(&f, &rng);
        paths(&f, path, length);
        struct block_log log = {f.n_requests, f.n_blocks, (const uint32_t *const *)path, length,
                                f.now_ns, f.ttl_ns, f.seed, f.cost_blocks,
                                want_left, NULL, NULL};
        uint64_t capacity = kvc_rng_below(&rng, f.n_blocks + 2);
        for (const char *const *p = kvc_runs_policies(); *p; p++) {
            if (only && strcmp(only, *p) != 0)
                continue;
            memset(want_left, 0, sizeof(want_left));
            memset(got_left, 0, sizeof(got_left));
            struct block_counts counts = block_policy_run(&log, *p, true, capacity, want);
            uint64_t access = by_runs(&f, *p, capacity, got, got_left);
            stray[p - kvc_runs_policies()] += counts.set;
            for (uint32_t r = 0; r < f.n_requests; r++)
                stray[p - kvc_runs_policies()] -= want[r];
            for (uint32_t r = 0; r < f.n_requests; r++)
                if (want[r] != got[r])
                    fail_msg("case %llu, %s, %llu blocks: request %u: run %u, expected %u",
                             (unsigned long long)i, *p, (unsigned long long)capacity, r, got[r],
                             want[r]);
            for (uint32_t b = 0; b < f.n_blocks; b++)
                if (want_left[b] != got_left[b])
                    fail_msg("case %llu, %s, %llu blocks: block %u left for request %x, expected %x",
                             (unsigned long long)i, *p, (unsigned long long)capacity, b,
                             got_left[b], want_left[b]);
            if (access != counts.access)
                fail_msg("case %llu, %s, %llu blocks: %llu access hits, expected %llu",
                         (unsigned long long)i, *p, (unsigned long long)capacity,
                         (unsigned long long)access, (unsigned long long)counts.access);
        }
        for (uint32_t r = 0; r < f.n_requests; r++)
            free(path[r]);
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

/* After runs_give_what_blocks_give. */
static void the_table_says_which_policies_leave_holes(void **state)
{
    (void)state;
    if (access("docs/policies.md", R_OK) || getenv("KVC_TEST_POLICY"))
        skip();
    for (const char *const *p = kvc_runs_policies(); *p; p++) {
        char closed[8] = "";
        assert_true(documented(*p, closed));
        bool holes = stray[p - kvc_runs_policies()] > 0;
        if (strcmp(closed, holes ? "no" : "yes") != 0)
            fail_msg("%s: %s holes were seen, the table says closed: %s", *p,
                     holes ? "some" : "no", closed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_give_what_blocks_give),
        cmocka_unit_test(the_table_has_all_policies_and_no_others),
        cmocka_unit_test(the_table_says_which_policies_leave_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
