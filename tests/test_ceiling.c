/* SPDX-License-Identifier: Apache-2.0
 * Ceilings against their block-by-block twin on random forests, and the laws that bind them. */
#include "base/alloc.h"
#include "base/rng.h"
#include "sim/ceiling/ceiling.h"
#include "tests/twins/ceiling_twin.h"
#include "traces/forest/forest.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_hits(const struct kvc_hits *got, const struct kvc_hits *want, const char *what,
                        uint64_t capacity, uint64_t seed)
{
    if (memcmp(got, want, sizeof(*got)) == 0)
        return;
    const uint64_t *a = (const uint64_t *)got, *b = (const uint64_t *)want;
    for (size_t i = 0; i < sizeof(*got) / sizeof(uint64_t); i++)
        if (a[i] != b[i])
            print_message("  figure %zu: %" PRIu64 ", twin %" PRIu64 "\n", i, a[i], b[i]);
    fail_msg("%s at %" PRIu64 " blocks differs, seed %" PRIu64, what, capacity, seed);
}

#define MOST_CAPACITIES 64

static void check_policy(const struct kvc_ceiling_view *v, const struct twin_rows *rows,
                         enum twin_policy policy, bool full_only, uint64_t most, uint64_t seed)
{
    uint64_t capacity[MOST_CAPACITIES];
    struct kvc_hits hits[MOST_CAPACITIES], want, one;
    uint32_t runs[128], want_runs[128];
    size_t n = 0;
    for (uint64_t c = 0; c <= most + 1 && n < MOST_CAPACITIES - 1; c++)
        capacity[n++] = c;
    capacity[n++] = KVC_CAPACITY_INF;
    if (policy == TWIN_LRU)
        assert_int_equal(kvc_ceiling_lru_of(v, capacity, n, hits, NULL, NULL), KVC_OK);
    else
        assert_int_equal(kvc_ceiling_opt_of(v, capacity, n, hits, NULL, NULL), KVC_OK);
    for (size_t i = 0; i < n; i++) {
        twin_run(rows, policy, capacity[i], full_only, &want, want_runs);
        const char *name = policy == TWIN_LRU ? "lru" : "opt";
        expect_hits(&hits[i], &want, name, capacity[i], seed);
        if (i % 5)
            continue;
        if (policy == TWIN_LRU)
            kvc_ceiling_lru_of(v, &capacity[i], 1, &one, runs, NULL);
        else
            kvc_ceiling_opt_of(v, &capacity[i], 1, &one, runs, NULL);
        expect_hits(&one, &want, name, capacity[i], seed);
        assert_memory_equal(runs, want_runs, rows->n * sizeof(*runs));
    }
}

/* Both policies and the curve at every capacity, and what must hold between them. */
static void check_laws(const struct kvc_ceiling_view *v, uint64_t most)
{
    struct kvc_curve curve = {0};
    struct kvc_hits content, lru, opt, before = {0}, opt_before = {0};
    assert_int_equal(kvc_ceiling_content_of(v, &content, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_ceiling_curve_of(v, &curve, NULL), KVC_OK);
    assert_true(curve.n >= 1);
    assert_int_equal(curve.capacity_blocks[0], 0);
    assert_int_equal(curve.raw_hit_blocks[0], 0);
    assert_int_equal(curve.raw_hit_blocks[curve.n - 1], content.raw_hit_blocks);
    for (size_t i = 1; i + 1 < curve.n; i++) { /* every point is a change of slope */
        uint64_t dx0 = curve.capacity_blocks[i] - curve.capacity_blocks[i - 1];
        uint64_t dx1 = curve.capacity_blocks[i + 1] - curve.capacity_blocks[i];
        uint64_t dy0 = curve.raw_hit_blocks[i] - curve.raw_hit_blocks[i - 1];
        uint64_t dy1 = curve.raw_hit_blocks[i + 1] - curve.raw_hit_blocks[i];
        assert_true(dx0 > 0 && dx1 > 0);
        assert_true(dy0 * dx1 != dy1 * dx0);
    }
    for (uint64_t c = 0; c <= most + 1; c++) {
        kvc_ceiling_lru_of(v, &c, 1, &lru, NULL, NULL);
        kvc_ceiling_opt_of(v, &c, 1, &opt, NULL, NULL);
        assert_int_equal(kvc_curve_at(&curve, c), lru.raw_hit_blocks);
        assert_true(lru.raw_hit_blocks >= before.raw_hit_blocks);
        assert_true(lru.hit_tokens >= before.hit_tokens);
        assert_true(opt.raw_hit_blocks >= opt_before.raw_hit_blocks);
        assert_true(opt.raw_hit_blocks >= lru.raw_hit_blocks);
        assert_true(content.raw_hit_blocks >= opt.raw_hit_blocks);
        if (curve.n > 1 && c < curve.capacity_blocks[curve.n - 1])
            assert_true(lru.raw_hit_blocks < content.raw_hit_blocks);
        before = lru;
        opt_before = opt;
    }
    assert_int_equal(kvc_curve_at(&curve, KVC_CAPACITY_INF), content.raw_hit_blocks);
    kvc_curve_clear(&curve);
}

static void check_forest(uint64_t seed, uint32_t max_rows, uint32_t max_blocks)
{
    uint64_t rng = kvc_rng_stream(seed, "ceiling");
    struct twin_rows rows;
    twin_draw(&rows, &rng, max_rows, max_blocks);
    struct kvc_trace *t = twin_trace(&rows);
    uint64_t most = twin_blocks(t);
    for (int full_only = 0; full_only < 2; full_only++) {
        struct kvc_ceiling_view v;
        struct kvc_hits hits, want;
        uint32_t runs[128], want_runs[128];
        assert_int_equal(full_only ? kvc_ceiling_view_full(&v, t, NULL)
                                   : kvc_ceiling_view(&v, t, NULL), KVC_OK);
        assert_int_equal(kvc_ceiling_content_of(&v, &hits, runs, NULL), KVC_OK);
        twin_run(&rows, TWIN_CONTENT, 0, full_only, &want, want_runs);
        expect_hits(&hits, &want, "content", KVC_CAPACITY_INF, seed);
        assert_memory_equal(runs, want_runs, rows.n * sizeof(*runs));
        check_policy(&v, &rows, TWIN_LRU, full_only, most, seed);
        check_policy(&v, &rows, TWIN_OPT, full_only, most, seed);
        check_laws(&v, most);
        kvc_ceiling_view_clear(&v);
    }
    twin_trace_free(t);
    twin_clear(&rows);
}

/* The real builder cuts the same rows into the same segments as the slow one. */
static void both_builders_give_the_same_forest(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "forest");
        struct twin_rows rows;
        twin_draw(&rows, &rng, 60, 20);
        struct kvc_trace *slow = twin_trace(&rows), *fast = NULL;
        struct kvc_forest *forest = kvc_forest_create();
        for (uint32_t r = 0; r < rows.n; r++) {
            struct kvc_row row = {.time_ns = r, .input_tokens = rows.row[r].tokens,
                                  .output_tokens = 1, .ids = rows.row[r].ids,
                                  .n_ids = rows.row[r].n, .session = KVC_ID_NONE,
                                  .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                                  .think_ns = KVC_TIME_NONE};
            assert_int_equal(kvc_forest_add(forest, &row, NULL), KVC_OK);
        }
        assert_int_equal(kvc_forest_finish(forest, rows.block_tokens, false, &fast, NULL), KVC_OK);
        assert_int_equal(fast->n_requests, slow->n_requests);
        assert_int_equal(fast->n_segments, slow->n_segments);
        assert_memory_equal(fast->prompt_seg, slow->prompt_seg, rows.n * sizeof(uint32_t));
        size_t size = slow->n_segments * sizeof(uint32_t);
        assert_memory_equal(fast->seg_parent, slow->seg_parent, size);
        assert_memory_equal(fast->seg_len, slow->seg_len, size);
        assert_memory_equal(fast->seg_depth, slow->seg_depth, size);
        kvc_trace_destroy(fast);
        twin_trace_free(slow);
        twin_clear(&rows);
    }
}

static void the_twin_agrees_on_small_forests(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++)
        check_forest(seed, 12, 6);
}

static void the_twin_agrees_on_larger_forests(void **state)
{
    (void)state;
    for (uint64_t seed = 100001; seed <= 100060; seed++)
        check_forest(seed, 40, 16);
}

static void add_long_run(struct twin_rows *rows)
{
    uint64_t rng = kvc_rng_stream(7, "long");
    rows->block_tokens = 4;
    uint64_t ids[64], fresh = 1;
    for (uint32_t r = 0; r < 12000; r++) {
        uint32_t n = 0;
        if (r > 10) {
            uint64_t back = kvc_rng_below(&rng, kvc_rng_below(&rng, 4) ? 10 : r);
            const struct twin_row *old = &rows->row[r - 1 - (back < r ? back : 0)];
            n = (uint32_t)kvc_rng_below(&rng, old->n + 1);
            if (n)
                memcpy(ids, old->ids, n * sizeof(*ids));
        }
        for (uint32_t more = 1 + (uint32_t)kvc_rng_below(&rng, 6); more > 0 && n < 60; more--)
            ids[n++] = fresh++;
        twin_add(rows, ids, n, n * 4);
    }
}

/* LRU hits at two capacities by a list of segments, newest first; a touch costs a walk. */
static void hits_by_list(const struct kvc_trace *t, const uint64_t capacity[2], uint64_t hits[2])
{
    uint32_t *list = calloc(t->n_segments, sizeof(*list)), n_list = 0;
    assert_non_null(list);
    hits[0] = hits[1] = 0;
    for (uint64_t r = 0; r < t->n_requests; r++) {
        for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s]) {
            uint64_t above = 0;
            uint32_t i = 0;
            for (; i < n_list && list[i] != s; i++)
                above += t->seg_len[list[i]];
            for (uint32_t b = 0; i < n_list && b < t->seg_len[s]; b++) {
                hits[0] += above + b < capacity[0];
                hits[1] += above + b < capacity[1];
            }
        }
        for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s]) {
            uint32_t i = 0;
            while (i < n_list && list[i] != s)
                i++;
            n_list += i == n_list;
            memmove(list + 1, list, i * sizeof(*list));
            list[0] = s;
        }
    }
    free(list);
}

/* Enough segments and requests to pack and double the recency slots and the bends many times. */
static void a_long_run_agrees_with_a_list_of_segments(void **state)
{
    (void)state;
    struct twin_rows rows = {0};
    add_long_run(&rows);
    struct kvc_trace *t = twin_trace(&rows);
    assert_true(t->n_segments > 4096);
    struct kvc_ceiling_view v;
    struct kvc_curve curve;
    struct kvc_hits h, content;
    assert_int_equal(kvc_ceiling_view(&v, t, NULL), KVC_OK);
    assert_int_equal(kvc_ceiling_curve_of(&v, &curve, NULL), KVC_OK);
    kvc_ceiling_content_of(&v, &content, NULL, NULL);
    assert_int_equal(kvc_curve_at(&curve, KVC_CAPACITY_INF), content.raw_hit_blocks);
    const uint64_t capacity[] = {300, 5000};
    uint64_t at[2];
    hits_by_list(t, capacity, at);
    assert_int_equal(kvc_curve_at(&curve, 300), at[0]);
    assert_int_equal(kvc_curve_at(&curve, 5000), at[1]);
    struct kvc_hits two[2];
    kvc_ceiling_lru_of(&v, capacity, 2, two, NULL, NULL);
    assert_int_equal(two[0].raw_hit_blocks, at[0]);
    assert_int_equal(two[1].raw_hit_blocks, at[1]);
    kvc_ceiling_opt_of(&v, capacity, 1, &h, NULL, NULL);
    assert_true(h.raw_hit_blocks >= at[0]);
    kvc_curve_clear(&curve);
    twin_trace_free(t);
    twin_clear(&rows);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    uint64_t rng = 5;
    struct twin_rows rows = {0};
    while (rows.n < 40) {
        twin_clear(&rows);
        twin_draw(&rows, &rng, 60, 16);
    }
    struct kvc_trace *t = twin_trace(&rows);
    const uint64_t capacity = 10;
    struct kvc_hits h;
    for (int what = 0; what < 5; what++) {
        enum kvc_status status = KVC_ERR_NOMEM;
        int nth = 0;
        while (status != KVC_OK) {
            struct kvc_curve curve = {0};
            struct kvc_ceiling_view view = {0};
            kvc_alloc_fail_after((uint64_t)++nth);
            status = what == 0   ? kvc_ceiling_content(t, &h, NULL)
                     : what == 1 ? kvc_ceiling_policy(t, "lru", &capacity, 1, &h, NULL)
                     : what == 2 ? kvc_ceiling_policy(t, "opt", &capacity, 1, &h, NULL)
                     : what == 3 ? kvc_ceiling_view_full(&view, t, NULL)
                                 : kvc_ceiling_lru_curve(t, &curve, NULL);
            kvc_alloc_fail_after(0);
            assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
            kvc_curve_clear(&curve);
            kvc_ceiling_view_clear(&view);
        }
        assert_true(nth > 1);
    }
    twin_trace_free(t);
    twin_clear(&rows);
}

static void unknown_policies_are_named(void **state)
{
    (void)state;
    struct twin_rows rows = {.block_tokens = 4};
    struct kvc_trace *t = twin_trace(&rows);
    struct kvc_error err;
    const uint64_t capacity = 10;
    struct kvc_hits h;
    assert_int_equal(kvc_ceiling_policy(t, "LRU", &capacity, 1, &h, &err), KVC_OK);
    assert_int_equal(h.requests, 0);
    assert_int_equal(kvc_ceiling_policy(t, "s3-fifo", &capacity, 1, &h, &err), KVC_ERR_USAGE);
    assert_non_null(strstr(err.text, "\"s3fifo\""));
    assert_int_equal(kvc_ceiling_policy(t, "optt", &capacity, 1, &h, &err), KVC_ERR_USAGE);
    assert_non_null(strstr(err.text, "\"opt\""));
    twin_trace_free(t);
}

static void a_thinned_curve_keeps_its_ends_and_its_values(void **state)
{
    (void)state;
    enum { N = 5000 };
    static uint64_t capacity[N], hits[N];
    for (uint64_t i = 0; i < N; i++) {
        capacity[i] = i * i;
        hits[i] = i;
    }
    for (size_t n = 1; n <= N; n = n * 3 + 1)
        for (size_t most = 3; most < 3000; most = most * 2 + 1) {
            struct kvc_curve whole = {n, capacity, hits}, thin;
            assert_int_equal(kvc_curve_thin(&whole, most, &thin, NULL), KVC_OK);
            assert_true(thin.n <= most && (n > most || thin.n == n));
            assert_true(n <= most || thin.n >= most / 3);
            assert_int_equal(thin.capacity_blocks[0], 0);
            assert_int_equal(thin.capacity_blocks[thin.n - 1], capacity[n - 1]);
            for (size_t i = 0; i < thin.n; i++) {
                assert_int_equal(thin.raw_hit_blocks[i],
                                 kvc_curve_at(&whole, thin.capacity_blocks[i]));
                assert_true(i == 0 || thin.capacity_blocks[i] > thin.capacity_blocks[i - 1]);
            }
            kvc_curve_clear(&thin);
        }
    struct kvc_curve whole = {N, capacity, hits}, thin;
    assert_int_equal(kvc_curve_thin(&whole, 2, &thin, NULL), KVC_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_builders_give_the_same_forest),
        cmocka_unit_test(the_twin_agrees_on_small_forests),
        cmocka_unit_test(the_twin_agrees_on_larger_forests),
        cmocka_unit_test(a_long_run_agrees_with_a_list_of_segments),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(unknown_policies_are_named),
        cmocka_unit_test(a_thinned_curve_keeps_its_ends_and_its_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
