/* SPDX-License-Identifier: Apache-2.0
 * The optimum of a chain of tiers against all placements of tiny traces, whatever a hit is worth in
 * each tier; and that its sets lie within one another on larger ones. */
#include "base/alloc.h"
#include "base/rng.h"
#include "sim/ceiling/ceiling.h"
#include "tests/twins/ceiling_twin.h"
#include "tests/twins/placement_search.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Faster tiers are worth as much or more; sums of eighths, so exact. */
static struct search draw_tiers(uint64_t *rng, unsigned tiers)
{
    struct search s = {.tiers = tiers};
    double worth = 0;
    for (unsigned t = tiers; t-- > 0;) {
        worth += (double)kvc_rng_below(rng, 16) / 8;
        s.tier_worth[t] = worth;
        s.capacity[t] = kvc_rng_below(rng, 4);
    }
    return s;
}

static void no_placement_in_tiers_is_worth_more(void **state)
{
    (void)state;
    unsigned searched[SEARCH_TIERS + 1] = {0};
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "tiers");
        struct twin_rows rows;
        twin_draw(&rows, &rng, 12, 4);
        struct kvc_trace *t = twin_trace(&rows);
        struct search s = draw_tiers(&rng, 1 + (unsigned)kvc_rng_below(&rng, SEARCH_TIERS));
        double best = search_best(&rows, &s), bound = 0;
        struct kvc_hits hits[SEARCH_TIERS];
        assert_int_equal(kvc_ceiling_tiers(t, s.capacity, s.tiers, hits, NULL), KVC_OK);
        for (unsigned k = 0; k < s.tiers; k++) {
            uint64_t faster = k ? hits[k - 1].raw_hit_blocks : 0;
            bound += s.tier_worth[k] * (double)(hits[k].raw_hit_blocks - faster);
        }
        if (best >= 0 && fabs(best - bound) > 1e-9)
            fail_msg("seed %" PRIu64 ": %g, possible are %g", seed, bound, best);
        searched[s.tiers] += best >= 0;
        twin_trace_free(t);
        twin_clear(&rows);
    }
    for (unsigned k = 1; k <= SEARCH_TIERS; k++)
        assert_true(searched[k] > 40);
}

/* What is kept at a capacity is kept at every larger one: no request's leading run is shorter. */
static void optima_lie_within_one_another(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "nested");
        struct twin_rows rows;
        struct kvc_ceiling_view v;
        struct kvc_hits h;
        uint32_t runs[128], before[128] = {0};
        twin_draw(&rows, &rng, 60, 20);
        struct kvc_trace *t = twin_trace(&rows);
        assert_int_equal(kvc_ceiling_view(&v, t, NULL), KVC_OK);
        for (uint64_t c = 0; c < twin_blocks(t) + 2; c++) {
            kvc_ceiling_opt_of(&v, &c, 1, &h, runs, NULL);
            for (uint32_t r = 0; r < rows.n; r++) {
                assert_true(runs[r] >= before[r]);
                before[r] = runs[r];
            }
        }
        twin_trace_free(t);
        twin_clear(&rows);
    }
}

static void endless_tiers_add_up_without_overflow(void **state)
{
    (void)state;
    uint64_t rng = 5;
    const uint64_t blocks[] = {3, KVC_CAPACITY_INF, 9};
    struct twin_rows rows;
    struct kvc_hits hits[3], content;
    twin_draw(&rows, &rng, 60, 16);
    struct kvc_trace *t = twin_trace(&rows);
    kvc_ceiling_content(t, &content, NULL);
    assert_int_equal(kvc_ceiling_tiers(t, blocks, 3, hits, NULL), KVC_OK);
    assert_int_equal(hits[1].raw_hit_blocks, content.raw_hit_blocks);
    assert_int_equal(hits[2].raw_hit_blocks, content.raw_hit_blocks);
    kvc_alloc_fail_after(1);
    assert_int_equal(kvc_ceiling_tiers(t, blocks, 3, hits, NULL), KVC_ERR_NOMEM);
    kvc_alloc_fail_after(0);
    twin_trace_free(t);
    twin_clear(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_placement_in_tiers_is_worth_more),
        cmocka_unit_test(optima_lie_within_one_another),
        cmocka_unit_test(endless_tiers_add_up_without_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
