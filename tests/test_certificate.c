/* SPDX-License-Identifier: Apache-2.0
 * Certificates of the optimum: checked block by block by code that knows only what a certificate
 * claims, against the best of all placements, and with lies put in. */
#include "base/alloc.h"
#include "base/rng.h"
#include "sim/ceiling/ceiling.h"
#include "tests/twins/ceiling_twin.h"
#include "tests/twins/placement_search.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED "../shared/traces/"

static bool an_instant_between(const struct kvc_certificate *c, int64_t from, int64_t to)
{
    size_t low = 0, high = c->n_instants; /* the first not before from */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->instants[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->n_instants && c->instants[low] < to;
}

/* The figures of a check, from single blocks. */
static struct kvc_certificate_check by_blocks(const struct twin_rows *rows,
                                              const struct kvc_certificate *c)
{
    struct kvc_certificate_check k = {.possible = true};
    uint64_t ids = 0;
    for (uint32_t r = 0; r < rows->n; r++)
        for (uint32_t i = 0; i < rows->row[r].n; i++)
            ids = rows->row[r].ids[i] > ids ? rows->row[r].ids[i] : ids;
    int64_t *touched = calloc(ids + 1, sizeof(*touched)); /* request + 1 */
    int64_t *enter = calloc(rows->n + 1, sizeof(*enter)), held = 0;
    for (uint32_t r = 0; r < rows->n; r++) {
        k.raw_hit_blocks += c->runs[r];
        k.possible &= c->runs[r] <= rows->row[r].n;
        for (uint32_t i = 0; i < rows->row[r].n; i++) {
            int64_t *last = &touched[rows->row[r].ids[i]], since = *last - 1;
            *last = r + 1;
            if (since < 0) {
                k.possible &= i >= c->runs[r];
                continue;
            }
            k.free_reuses += !an_instant_between(c, since, r);
            enter[since] += i < c->runs[r];
            enter[r] -= i < c->runs[r];
        }
    }
    for (uint32_t r = 0; r < rows->n; r++) {
        held += enter[r];
        k.most_held_blocks = (uint64_t)held > k.most_held_blocks ? (uint64_t)held
                                                                 : k.most_held_blocks;
    }
    k.bound_blocks = c->n_instants ? c->capacity_blocks * c->n_instants + k.free_reuses
                                   : k.free_reuses;
    k.optimal = k.possible && k.most_held_blocks <= c->capacity_blocks &&
                k.raw_hit_blocks == k.bound_blocks;
    free(touched);
    free(enter);
    return k;
}

static void same_check(const struct kvc_trace *t, const struct twin_rows *rows,
                       const struct kvc_certificate *c, uint64_t seed,
                       struct kvc_certificate_check *out)
{
    struct kvc_certificate_check want = by_blocks(rows, c), got;
    memset(&got, 0, sizeof(got));
    assert_int_equal(kvc_certificate_check(t, c, &got, NULL), KVC_OK);
    if (want.raw_hit_blocks != got.raw_hit_blocks || want.free_reuses != got.free_reuses ||
        want.bound_blocks != got.bound_blocks || want.possible != got.possible ||
        want.optimal != got.optimal ||
        (want.possible && want.most_held_blocks != got.most_held_blocks))
        fail_msg("the checks differ, seed %" PRIu64, seed);
    *out = got;
}

static void certify_rows(const struct twin_rows *rows, const struct kvc_trace *t,
                         uint64_t capacity, uint64_t seed)
{
    struct kvc_certificate c;
    struct kvc_certificate_check check;
    struct kvc_hits opt;
    assert_int_equal(kvc_ceiling_certify(t, capacity, &c, NULL), KVC_OK);
    assert_int_equal(kvc_ceiling_policy(t, "opt", &capacity, 1, &opt, NULL), KVC_OK);
    same_check(t, rows, &c, seed, &check);
    if (!check.optimal || check.raw_hit_blocks != opt.raw_hit_blocks)
        fail_msg("no proof at %" PRIu64 " blocks, seed %" PRIu64, capacity, seed);
    kvc_certificate_clear(&c);
}

static void every_optimum_has_its_proof(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "certificate");
        struct twin_rows rows;
        twin_draw(&rows, &rng, seed % 10 ? 14 : 60, seed % 10 ? 6 : 20);
        struct kvc_trace *t = twin_trace(&rows);
        for (uint64_t c = 0, most = twin_blocks(t); c <= most + 1; c += 1 + c / 8)
            certify_rows(&rows, t, c, seed);
        certify_rows(&rows, t, KVC_CAPACITY_INF, seed);
        twin_trace_free(t);
        twin_clear(&rows);
    }
}

static void no_placement_has_more_hits(void **state)
{
    (void)state;
    unsigned searched = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "search");
        struct twin_rows rows;
        twin_draw(&rows, &rng, 12, 5);
        struct kvc_trace *t = twin_trace(&rows);
        for (uint64_t c = 0; c <= 4; c++) {
            struct search all = {.tiers = 1, .capacity = {c}, .tier_worth = {1}};
            struct kvc_hits opt;
            double best = search_best(&rows, &all);
            if (best < 0)
                continue;
            searched++;
            assert_int_equal(kvc_ceiling_policy(t, "opt", &c, 1, &opt, NULL), KVC_OK);
            if (opt.raw_hit_blocks != (uint64_t)best)
                fail_msg("seed %" PRIu64 ", %" PRIu64 " blocks: %" PRIu64 " hits, possible are %g",
                         seed, c, opt.raw_hit_blocks, best);
        }
        twin_trace_free(t);
        twin_clear(&rows);
    }
    assert_true(searched > 1000);
}

/* Whatever the instants, no schedule passes for more than the optimum; what is taken as proof has
 * exactly its hits. */
static void lies_prove_nothing(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "lies"), capacity = kvc_rng_below(&rng, 8);
        struct twin_rows rows;
        struct kvc_certificate c;
        struct kvc_certificate_check true_one, check;
        twin_draw(&rows, &rng, 14, 6);
        struct kvc_trace *t = twin_trace(&rows);
        assert_int_equal(kvc_ceiling_certify(t, capacity, &c, NULL), KVC_OK);
        same_check(t, &rows, &c, seed, &true_one);
        for (int lie = 0; lie < 20 && rows.n > 0; lie++) {
            uint32_t r = (uint32_t)kvc_rng_below(&rng, rows.n), run = c.runs[r];
            size_t n = c.n_instants;
            switch (kvc_rng_below(&rng, 3)) {
            case 0: c.runs[r] += (uint32_t)kvc_rng_below(&rng, 3); break;
            case 1: c.runs[r] -= run > 0; break;
            default: c.n_instants = (size_t)kvc_rng_below(&rng, n + 1); break;
            }
            same_check(t, &rows, &c, seed, &check);
            assert_true(check.bound_blocks >= true_one.bound_blocks);
            assert_true(!check.optimal || check.raw_hit_blocks == true_one.raw_hit_blocks);
            refused += !check.optimal;
            c.runs[r] = run;
            c.n_instants = n;
        }
        kvc_certificate_clear(&c);
        twin_trace_free(t);
        twin_clear(&rows);
    }
    assert_true(refused > 5000);
}

static void certificates_of_something_else_are_refused(void **state)
{
    (void)state;
    struct twin_rows rows = {.block_tokens = 4};
    const uint64_t ids[] = {1, 2};
    twin_add(&rows, ids, 2, 8);
    twin_add(&rows, ids, 2, 8);
    struct kvc_trace *t = twin_trace(&rows);
    uint32_t runs[2] = {0, 2}, unsorted[2] = {1, 0}, behind[1] = {2};
    struct kvc_certificate c = {.capacity_blocks = 2, .n_requests = 3, .runs = runs};
    struct kvc_certificate_check check;
    struct kvc_error err;
    assert_int_equal(kvc_certificate_check(t, &c, &check, &err), KVC_ERR_USAGE);
    c.n_requests = 2;
    assert_int_equal(kvc_certificate_check(t, &c, &check, &err), KVC_OK);
    assert_true(check.optimal);
    c.instants = unsorted, c.n_instants = 2;
    assert_int_equal(kvc_certificate_check(t, &c, &check, &err), KVC_ERR_USAGE);
    c.instants = behind, c.n_instants = 1;
    assert_int_equal(kvc_certificate_check(t, &c, &check, &err), KVC_ERR_USAGE);
    twin_trace_free(t);
    twin_clear(&rows);
}

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    uint64_t rng = 5;
    struct twin_rows rows;
    twin_draw(&rows, &rng, 60, 16);
    struct kvc_trace *t = twin_trace(&rows);
    enum kvc_status status = KVC_ERR_NOMEM;
    for (uint64_t nth = 1; status != KVC_OK; nth++) {
        struct kvc_certificate c = {0};
        struct kvc_certificate_check check;
        kvc_alloc_fail_after(nth);
        status = kvc_ceiling_certify(t, 5, &c, NULL);
        if (status == KVC_OK)
            status = kvc_certificate_check(t, &c, &check, NULL);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
        kvc_certificate_clear(&c);
    }
    twin_trace_free(t);
    twin_clear(&rows);
}

static void optima_of_real_logs_are_proved(void **state)
{
    (void)state;
    static const char *const logs[] = {
        SHARED "mooncake/conversation_trace.jsonl.zst",
        SHARED "llmservingsim/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl.zst",
    };
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        struct kvc_trace *t = NULL;
        struct twin_rows rows;
        if (access(logs[i], R_OK)) {
            print_message("SKIPPED: %s is not here\n", logs[i]);
            skip();
        }
        assert_int_equal(kvc_trace_open(&t, logs[i], NULL, NULL, NULL), KVC_OK);
        twin_rows_of(&rows, t);
        for (uint64_t c = 100; c < 100000; c *= 10)
            certify_rows(&rows, t, c, 0);
        twin_clear(&rows);
        kvc_trace_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_optimum_has_its_proof),
        cmocka_unit_test(no_placement_has_more_hits),
        cmocka_unit_test(lies_prove_nothing),
        cmocka_unit_test(certificates_of_something_else_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_reported),
        cmocka_unit_test(optima_of_real_logs_are_proved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
