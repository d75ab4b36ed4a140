/* SPDX-License-Identifier: Apache-2.0
 * How a run is summed up: percentiles, time series, bounds. */
#include "base/alloc.h"
#include "base/distribution.h"
#include "base/rng.h"
#include "sim/replay/bounds.h"
#include "sim/replay/timeline.h"
#include "traces/forest/forest.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the three above */
#include <cmocka.h>

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Nearest rank by its definition: the smallest value that at least p of the sample do not
 * exceed. */
static double nearest_rank(const uint64_t *sorted, size_t n, unsigned percent)
{
    size_t k = 0;
    while ((k + 1) * 100 < percent * n)
        k++;
    return (double)sorted[k] / 1e6;
}

static void percentiles_are_nearest_rank(void **state)
{
    (void)state;
    uint64_t rng = kvc_rng_stream(1, "percentiles");
    for (int round = 0; round < 2000; round++) {
        size_t n = 1 + (size_t)kvc_rng_below(&rng, 150);
        uint64_t v[150], sorted[150], range = 1 + kvc_rng_below(&rng, round % 2 ? 5 : 1000000);
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            v[i] = sorted[i] = kvc_rng_below(&rng, range);
            sum += (double)v[i];
        }
        qsort(sorted, n, sizeof *sorted, ascending);
        struct kvc_dist d;
        kvc_distribution(v, n, 1e6, &d);
        assert_int_equal(d.count, n);
        assert_true(d.p50 == nearest_rank(sorted, n, 50) && d.p90 == nearest_rank(sorted, n, 90));
        assert_true(d.p95 == nearest_rank(sorted, n, 95) && d.p99 == nearest_rank(sorted, n, 99));
        assert_true(d.max == (double)sorted[n - 1] / 1e6);
        assert_true(fabs(d.mean - sum / (double)n * 1e-6) <= 1e-12 * sum);
    }
    struct kvc_dist none;
    kvc_distribution(NULL, 0, 1e6, &none);
    assert_int_equal(none.count, 0);
}

/* The integral of a level and the sum of counts do not depend on how buckets were merged. */
static void time_series_conserve_integrals(void **state)
{
    (void)state;
    uint64_t rng = kvc_rng_stream(2, "timeline");
    for (int round = 0; round < 200; round++) {
        struct kvc_timeline t;
        assert_true(kvc_timeline_init(&t, 3));
        uint64_t now = 0, step = 1 + kvc_rng_below(&rng, 4000000000u);
        double integral[2] = {0}, amount = 0;
        for (int i = 0; i < 500; i++) {
            double level[2] = {(double)kvc_rng_below(&rng, 10), (double)kvc_rng_below(&rng, 1000)};
            uint64_t next = now + kvc_rng_below(&rng, step);
            kvc_timeline_advance(&t, next, level, 2);
            for (int c = 0; c < 2; c++)
                integral[c] += level[c] * (double)(next - now) * 1e-9;
            now = next;
            kvc_timeline_add(&t, 2, level[0]);
            amount += level[0];
            assert_true(t.n <= KVC_TIMELINE_BUCKETS && now / t.width_ns + 1 == t.n);
        }
        for (uint32_t c = 0; c < 3; c++) {
            double sum = 0, want = c < 2 ? integral[c] : amount;
            for (size_t i = 0; i < t.n; i++)
                sum += t.sum[(size_t)c * KVC_TIMELINE_BUCKETS + i];
            assert_true(fabs(sum - want) <= 1e-9 * want + 1e-12);
        }
        kvc_timeline_clear(&t);
    }
}

/* ---- bounds ---- */

#define BLOCK 4

/* A random small log in which known outputs are asked for again; ids[i] are a request's blocks. */
struct tiny {
    uint64_t ids[40][12];
    uint32_t n, input[40], blocks[40], out_blocks[40];
};

static struct kvc_trace *tiny_trace(struct tiny *t, uint64_t *rng)
{
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_error err;
    struct kvc_trace *trace = NULL;
    uint64_t fresh = 100;
    assert_non_null(f);
    t->n = 2 + (uint32_t)kvc_rng_below(rng, 38);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t like = i ? (uint32_t)kvc_rng_below(rng, i) : 0;
        uint32_t have = i ? t->blocks[like] + t->out_blocks[like] : 0;
        uint32_t shared = i ? (uint32_t)kvc_rng_below(rng, have + 1) : 0;
        uint32_t full = 1 + (uint32_t)kvc_rng_below(rng, 6);
        for (uint32_t b = 0; b < 12; b++)
            t->ids[i][b] = b < shared ? t->ids[like][b] : fresh++;
        t->blocks[i] = full;
        t->out_blocks[i] = kvc_rng_below(rng, 2) ? (uint32_t)kvc_rng_below(rng, 5) : 0;
        uint32_t tail = (uint32_t)kvc_rng_below(rng, 2) ? 1 + (uint32_t)kvc_rng_below(rng, 3) : 0;
        t->input[i] = full * BLOCK + tail;
        uint64_t prompt[13];
        memcpy(prompt, t->ids[i], full * sizeof *prompt);
        prompt[full] = 1000000 + fresh++; /* a partial last block has an id of its own */
        struct kvc_row row = {.time_ns = i, .input_tokens = t->input[i], .output_tokens = 1,
                              .ids = prompt, .n_ids = full + (tail > 0), .session = KVC_ID_NONE,
                              .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                              .think_ns = KVC_TIME_NONE};
        if (t->out_blocks[i]) {
            row.output_ids = t->ids[i];
            row.n_output_ids = full + t->out_blocks[i];
        }
        assert_int_equal(kvc_forest_add(f, &row, &err), KVC_OK);
    }
    assert_int_equal(kvc_forest_finish(f, BLOCK, false, &trace, &err), KVC_OK);
    return trace;
}

/* Block by block: a block is there when an earlier request had it at the same place after the same
 * blocks, in its prompt or its known output. */
static double content_by_hand(const struct tiny *t, const uint32_t *order)
{
    double tokens = 0, hits = 0;
    for (uint32_t at = 0; at < t->n; at++) {
        uint32_t best = 0, i = order[at];
        for (uint32_t before = 0; before < at; before++) {
            uint32_t j = order[before], k = 0, have = t->blocks[j] + t->out_blocks[j];
            while (k < t->blocks[i] && k < have && t->ids[i][k] == t->ids[j][k])
                k++;
            best = k > best ? k : best;
        }
        tokens += t->input[i];
        hits += best * BLOCK;
    }
    return hits / tokens;
}

static void ladder_of_bounds_is_a_ladder(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "bounds");
        struct tiny tiny;
        struct kvc_error err;
        struct kvc_trace *trace = tiny_trace(&tiny, &rng);
        struct kvc_bounds *b = NULL;
        uint32_t order[sizeof(tiny.input) / sizeof(tiny.input[0])];
        for (uint32_t i = 0; i < tiny.n; i++) { /* of admission: any */
            uint32_t j = seed % 2 ? i : (uint32_t)kvc_rng_below(&rng, i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        assert_int_equal(kvc_bounds_create(&b, trace, order, 10, &err), KVC_OK);
        double content = kvc_bounds_content(b), lru[30], opt[30];
        if (fabs(content - content_by_hand(&tiny, order)) > 1e-12)
            fail_msg("seed %llu: content %g, by hand %g", (unsigned long long)seed, content,
                     content_by_hand(&tiny, order));
        uint64_t capacity[30];
        for (uint64_t i = 0; i < 30; i++)
            capacity[i] = i < 29 ? i * 10 : UINT64_MAX;
        assert_int_equal(kvc_bounds_at(b, false, capacity, 30, lru, &err), KVC_OK);
        assert_int_equal(kvc_bounds_at(b, true, capacity, 30, opt, &err), KVC_OK);
        for (int i = 0; i < 30; i++) {
            assert_true(content >= opt[i] && opt[i] >= lru[i]);
            assert_true(i == 0 || (lru[i] >= lru[i - 1] && opt[i] >= opt[i - 1]));
        }
        assert_true(lru[0] == 0 && opt[0] == 0 && lru[29] == content && opt[29] == content);
        kvc_bounds_destroy(b);
        kvc_trace_destroy(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_nearest_rank),
        cmocka_unit_test(time_series_conserve_integrals),
        cmocka_unit_test(ladder_of_bounds_is_a_ladder),
    };
    return cmocka_run_group_tests_name("results", tests, NULL, NULL);
}
