/* SPDX-License-Identifier: Apache-2.0
 * Bounds of what hits save: never below the best of all placements of tiny traces and never above
 * it from below, and how close they come; what is said to fit does. */
#include "base/alloc.h"
#include "base/rng.h"
#include "sim/ceiling/ceiling_cost.h"
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

#define CONVERSATION "../shared/traces/mooncake/conversation_trace.jsonl.zst"
#define DEEPEST 64

/* Rows without partial tails. */
static void draw_full(struct twin_rows *rows, uint64_t *rng, uint32_t max_rows, uint32_t max_blocks)
{
    twin_draw(rows, rng, max_rows, max_blocks);
    for (uint32_t r = 0; r < rows->n; r++) {
        uint32_t full = rows->row[r].tokens / rows->block_tokens;
        rows->row[r].n = full < rows->row[r].n ? full : rows->row[r].n;
    }
}

/* Costs that grow with depth, some steeply, some not at all. */
static void draw_worth(double *each, double *upto, uint64_t *rng)
{
    double worth = 1, steep = kvc_rng_unit(rng) * (double)kvc_rng_below(rng, 5);
    upto[0] = 0;
    for (int k = 0; k < DEEPEST; k++) {
        each[k] = worth;
        upto[k + 1] = upto[k] + worth;
        worth += steep * kvc_rng_unit(rng);
    }
}

static void no_placement_saves_more_than_the_bound(void **state)
{
    (void)state;
    double loose = 0, short_of = 0;
    unsigned searched = 0, exact = 0;
    for (uint64_t seed = 1; seed <= 1200; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "cost");
        struct twin_rows rows;
        double each[DEEPEST], upto[DEEPEST + 1];
        draw_full(&rows, &rng, 14, 5);
        draw_worth(each, upto, &rng);
        struct kvc_trace *t = twin_trace(&rows);
        struct search all = {.tiers = 1, .tier_worth = {1}, .depth_worth = each,
                             .capacity = {kvc_rng_below(&rng, 5)}};
        struct kvc_cost_bound b;
        double best = search_best(&rows, &all);
        assert_int_equal(kvc_ceiling_cost(t, upto, all.capacity[0], &b, NULL), KVC_OK);
        if (best >= 0) {
            if (b.upper < best - 1e-9 || b.reached > best + 1e-9 || b.content < best - 1e-9)
                fail_msg("seed %" PRIu64 ": [%g, %g] of %g, possible are %g", seed, b.reached,
                         b.upper, b.content, best);
            searched += best > 0;
            loose += best > 0 ? b.upper / best - 1 : 0;
            short_of += best > 0 ? 1 - b.reached / best : 0;
            exact += best > 0 && b.upper < best * (1 + 1e-4) && b.reached > best * (1 - 1e-4);
        }
        twin_trace_free(t);
        twin_clear(&rows);
    }
    print_message("  %u traces: bound above the best by %.3f %% on average, schedule below it by "
                  "%.3f %%, both exact in %u\n", searched, 100 * loose / searched,
                  100 * short_of / searched, exact);
    assert_true(searched > 300);
    assert_true(loose / searched < 0.03 && short_of / searched < 0.05);
}

static void policies_save_their_hits(const struct kvc_trace *t, const double *upto, uint64_t c)
{
    static const char *const policies[] = {"lru", "sieve", "lru+second", "opt"};
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        struct kvc_hits hits;
        double saved;
        assert_int_equal(kvc_ceiling_policy(t, policies[i], &c, 1, &hits, NULL), KVC_OK);
        assert_int_equal(kvc_ceiling_saved(t, upto, policies[i], c, &saved, NULL), KVC_OK);
        assert_true(saved == (double)hits.raw_hit_blocks);
    }
}

/* With blocks all worth the same it is the optimum of hits. */
static void equal_blocks_give_the_optimum_of_hits(void **state)
{
    (void)state;
    double upto[DEEPEST + 1];
    for (int k = 0; k <= DEEPEST; k++)
        upto[k] = k;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "equal"), c = kvc_rng_below(&rng, 30);
        struct twin_rows rows;
        struct kvc_hits opt;
        struct kvc_cost_bound b;
        draw_full(&rows, &rng, 60, 20);
        struct kvc_trace *t = twin_trace(&rows);
        assert_int_equal(kvc_ceiling_policy(t, "opt", &c, 1, &opt, NULL), KVC_OK);
        assert_int_equal(kvc_ceiling_cost(t, upto, c, &b, NULL), KVC_OK);
        assert_true(b.reached == (double)opt.raw_hit_blocks);
        assert_true(b.upper >= b.reached * (1 - 1e-9) && b.upper <= b.reached * 1.05 + 0.5);
        policies_save_their_hits(t, upto, c);
        twin_trace_free(t);
        twin_clear(&rows);
    }
}

static void what_is_packed_fits(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "pack"), c = kvc_rng_below(&rng, 30);
        struct twin_rows rows;
        struct kvc_ceiling_view v;
        struct kvc_certificate_check check;
        uint32_t wanted[128], runs[128];
        twin_draw(&rows, &rng, 60, 20);
        struct kvc_trace *t = twin_trace(&rows);
        for (uint32_t r = 0; r < rows.n; r++)
            wanted[r] = (uint32_t)kvc_rng_below(&rng, rows.row[r].n + 1);
        assert_int_equal(kvc_ceiling_view(&v, t, NULL), KVC_OK);
        assert_int_equal(kvc_ceiling_pack(&v, c, wanted, runs, NULL), KVC_OK);
        struct kvc_certificate schedule = {.capacity_blocks = c, .n_requests = rows.n,
                                           .runs = runs};
        assert_int_equal(kvc_certificate_check(t, &schedule, &check, NULL), KVC_OK);
        assert_true(check.possible && check.most_held_blocks <= c);
        twin_trace_free(t);
        twin_clear(&rows);
    }
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
        double *upto = NULL;
        struct kvc_cost_bound b;
        kvc_alloc_fail_after(nth);
        status = kvc_ceiling_worth(&upto, t, NULL, NULL, NULL, NULL);
        if (status == KVC_OK)
            status = kvc_ceiling_cost(t, upto, 5, &b, NULL);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
        kvc_free(upto);
    }
    twin_trace_free(t);
    twin_clear(&rows);
}

static void a_real_log_is_bounded_closely(void **state)
{
    (void)state;
    struct kvc_trace *t = NULL;
    double *upto = NULL;
    struct kvc_error err;
    if (access(CONVERSATION, R_OK)) {
        print_message("SKIPPED: %s is not here\n", CONVERSATION);
        skip();
    }
    assert_int_equal(kvc_trace_open(&t, CONVERSATION, NULL, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_ceiling_worth(&upto, t, "llama-3.1-8b", NULL, "h100-sxm", &err), KVC_OK);
    for (uint64_t c = 300; c < 20000; c *= 3) {
        struct kvc_cost_bound b;
        assert_int_equal(kvc_ceiling_cost(t, upto, c, &b, NULL), KVC_OK);
        print_message("  %" PRIu64 " blocks: %.1f to %.1f of %.1f GPU seconds, by %s\n", c,
                      b.reached, b.upper, b.content, b.reached_by);
        assert_true(b.reached <= b.upper * (1 + 1e-9) && b.upper <= b.content * (1 + 1e-9));
        assert_true(b.reached > 0.9 * b.upper);
    }
    assert_int_equal(kvc_ceiling_worth(&upto, t, "llama-3.1-8b", NULL, "h101", &err),
                     KVC_ERR_USAGE);
    kvc_free(upto);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_placement_saves_more_than_the_bound),
        cmocka_unit_test(equal_blocks_give_the_optimum_of_hits),
        cmocka_unit_test(what_is_packed_fits),
        cmocka_unit_test(memory_that_runs_out_is_reported),
        cmocka_unit_test(a_real_log_is_bounded_closely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
