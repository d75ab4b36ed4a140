/* SPDX-License-Identifier: Apache-2.0
 * Samples of prefix trees: what they keep, that together they are the trace, and how often the band
 * holds the exact rate. */
#include "base/alloc.h"
#include "base/rng.h"
#include "sim/ceiling/ceiling_sample.h"
#include "tests/twins/ceiling_twin.h"
#include "traces/forest/forest.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED "../shared/traces/"
#define MOST_SEGMENTS 2048

/* Every subtree is in one sample and all of it, the top in each; drawn blocks are weight long. */
static void samples_cut_the_forest_into_whole_trees(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "sample");
        uint32_t weight = 8 + (uint32_t)kvc_rng_below(&rng, 5), times[MOST_SEGMENTS] = {0};
        struct twin_rows rows;
        struct kvc_ceiling_view v, w;
        struct kvc_sampler s;
        uint64_t touches, length = 0, want = 0;
        twin_draw(&rows, &rng, 60, 20);
        struct kvc_trace *t = twin_trace(&rows);
        assert_true(t->n_segments <= MOST_SEGMENTS);
        assert_int_equal(kvc_ceiling_view(&v, t, NULL), KVC_OK);
        assert_int_equal(kvc_sampler_init(&s, t, &v, weight, seed, NULL), KVC_OK);
        for (uint32_t k = 0; k < weight; k++) {
            assert_int_equal(kvc_sample_view(&s, k, &w, &touches, NULL), KVC_OK);
            for (uint32_t i = 0; i < t->n_segments; i++) {
                uint32_t up = v.seg_parent[i], at = s.kept[i];
                times[i] += at != KVC_SEG_NONE;
                if (at == KVC_SEG_NONE)
                    continue;
                length += w.seg_len[at];
                assert_int_equal(w.seg_parent[at], up == KVC_SEG_NONE ? up : s.kept[up]);
                assert_int_equal(w.seg_depth[at], up == KVC_SEG_NONE ? 0
                                 : w.seg_depth[s.kept[up]] + w.seg_len[s.kept[up]]);
            }
            kvc_sample_clear(&w);
        }
        for (uint32_t i = 0; i < t->n_segments; i++) {
            assert_int_equal(times[i], s.unit[i] == KVC_SEG_NONE ? weight : 1);
            want += (uint64_t)weight * v.seg_len[i];
        }
        assert_int_equal(length, want);
        kvc_sampler_clear(&s);
        twin_trace_free(t);
        twin_clear(&rows);
    }
}

/* Each subtree but those always kept holds little of a sample. */
static void no_subtree_dominates(void **state)
{
    (void)state;
    struct twin_rows rows = {.block_tokens = 4};
    uint64_t ids[40], fresh = 1;
    for (uint32_t i = 0; i < 20; i++) /* one family that all requests begin with */
        ids[i] = fresh++;
    for (uint32_t r = 0; r < 4000; r++) {
        for (uint32_t i = 20; i < 40; i++)
            ids[i] = (r % 400 + 1) * 100 + i;
        twin_add(&rows, ids, 40, 160);
    }
    struct kvc_trace *t = twin_trace(&rows);
    const uint64_t capacity = 4020;
    struct kvc_sampled out;
    struct kvc_sampling how;
    assert_int_equal(kvc_ceiling_sample(t, "lru", 8, 1, &capacity, 1, &out, &how, NULL), KVC_OK);
    assert_int_equal(how.subtrees, 400);
    assert_true(how.trunk_share > 0.49 && how.trunk_share < 0.51);
    assert_true(how.kept_share > 0.5 && how.kept_share < 0.6);
    twin_trace_free(t);
    twin_clear(&rows);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    struct twin_rows rows = {.block_tokens = 4};
    struct kvc_trace *t = twin_trace(&rows);
    const uint64_t capacity = 10;
    struct kvc_sampled out;
    struct kvc_error err;
    assert_int_equal(kvc_ceiling_sample(t, "lru", 7, 1, &capacity, 1, &out, NULL, &err),
                     KVC_ERR_USAGE);
    assert_int_equal(kvc_ceiling_sample(t, "lrx", 8, 1, &capacity, 1, &out, NULL, &err),
                     KVC_ERR_USAGE);
    assert_int_equal(kvc_ceiling_sample(t, "LRU", 8, 1, &capacity, 1, &out, NULL, &err), KVC_OK);
    assert_true(out.raw_block_hit_rate == 0);
    twin_trace_free(t);
}

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    uint64_t rng = 5;
    const uint64_t capacity = 10;
    struct twin_rows rows;
    twin_draw(&rows, &rng, 60, 16);
    struct kvc_trace *t = twin_trace(&rows);
    enum kvc_status status = KVC_ERR_NOMEM;
    for (uint64_t nth = 1; status != KVC_OK; nth++) {
        struct kvc_sampled out;
        kvc_alloc_fail_after(nth);
        status = kvc_ceiling_sample(t, "opt", 8, 1, &capacity, 1, &out, NULL, NULL);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
    }
    twin_trace_free(t);
    twin_clear(&rows);
}

/* Over policies, capacities, weights and seeds. */
static void bands_hold_the_exact_rates(void **state)
{
    (void)state;
    static const char *const policies[] = {"lru", "opt", "s3fifo"};
    const uint64_t capacity[] = {1000, 3000, 10000, 30000, 100000};
    enum { N = sizeof(capacity) / sizeof(capacity[0]) };
    const char *log = SHARED "mooncake/conversation_trace.jsonl.zst";
    unsigned held = 0, held_tokens = 0, all = 0;
    struct kvc_trace *t = NULL;
    if (access(log, R_OK)) {
        print_message("SKIPPED: %s is not here\n", log);
        skip();
    }
    assert_int_equal(kvc_trace_open(&t, log, NULL, NULL, NULL), KVC_OK);
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
        struct kvc_hits exact[N];
        assert_int_equal(kvc_ceiling_policy(t, policies[p], capacity, N, exact, NULL), KVC_OK);
        for (uint64_t seed = 1; seed <= 12; seed++) {
            struct kvc_sampled out[N];
            uint32_t weight = seed % 2 ? 10 : 40;
            assert_int_equal(kvc_ceiling_sample(t, policies[p], weight, seed, capacity, N, out,
                                                NULL, NULL), KVC_OK);
            for (size_t i = 0; i < N; i++, all++) {
                double rate = (double)exact[i].raw_hit_blocks / (double)exact[i].blocks;
                double token_rate = (double)exact[i].raw_hit_tokens / (double)exact[i].tokens;
                held += rate >= out[i].low && rate <= out[i].high;
                held_tokens += token_rate >= out[i].token_low && token_rate <= out[i].token_high;
                assert_true(out[i].low <= out[i].raw_block_hit_rate &&
                            out[i].raw_block_hit_rate <= out[i].high);
            }
        }
    }
    print_message("  %u of %u bands hold the exact rate, %u that of tokens\n", held, all,
                  held_tokens);
    assert_true(held >= all * 9 / 10 && held_tokens >= all * 9 / 10);
    kvc_trace_destroy(t);
}

/* ---- drawn while the log streams by ---- */

static void assert_same_estimates(const struct kvc_trace *a, const struct kvc_trace *b,
                                  uint32_t weight, uint64_t seed)
{
    static const char *const policies[] = {"lru", "opt", "s3fifo"};
    const uint64_t capacity[] = {300, 3000, 30000};
    enum { N = sizeof(capacity) / sizeof(capacity[0]) };
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
        struct kvc_sampled x[N], y[N];
        struct kvc_sampling how_x, how_y;
        assert_int_equal(kvc_ceiling_sample(a, policies[p], weight, seed, capacity, N, x, &how_x,
                                            NULL), KVC_OK);
        assert_int_equal(kvc_ceiling_sample(b, policies[p], 0, 0, capacity, N, y, &how_y, NULL),
                         KVC_OK);
        assert_memory_equal(x, y, sizeof(x));
        assert_true(how_x.kept_share == how_y.kept_share && x[N - 1].raw_token_hit_rate > 0 &&
                    how_x.trunk_share == how_y.trunk_share);
    }
}

/* A prompt that half of the rows begin with, sessions that grow below it, and strangers: more rows
 * than are looked at to find the trunk. Totals are what the import counts. */
static struct kvc_trace *stream_rows(uint32_t weight, uint64_t seed, uint64_t *nodes)
{
    enum { ROWS = 70000, LONGEST = 24, SYSTEM = 5, BLOCK = 16 };
    struct kvc_forest *f = kvc_forest_create_with(
        &(struct kvc_forest_options){.draws = true, .sample_weight = weight, .seed = seed});
    struct kvc_sample_totals all = {.weight = weight, .seed = seed};
    struct kvc_forest_counts counts;
    uint64_t rng = 7;
    assert_non_null(f);
    for (uint64_t r = 0; r < ROWS; r++) {
        uint64_t ids[LONGEST], session = kvc_rng_below(&rng, 2 + r / 4);
        uint32_t n = 1 + (uint32_t)kvc_rng_below(&rng, LONGEST - 1);
        for (uint32_t i = 0; i < n; i++)
            ids[i] = session % 2 && i < SYSTEM ? i : kvc_mix64(session * LONGEST + i);
        struct kvc_row row = {.time_ns = r, .input_tokens = n * BLOCK - (uint32_t)(r % BLOCK),
                              .ids = ids, .n_ids = n, .root_key = session % 3,
                              .session = KVC_ID_NONE, .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                              .think_ns = KVC_TIME_NONE};
        all.requests++;
        all.input_tokens += row.input_tokens;
        all.block_touches += n;
        all.block_tokens += row.input_tokens;
        assert_int_equal(kvc_forest_add(f, &row, NULL), KVC_OK);
    }
    struct kvc_trace *t = NULL;
    assert_int_equal(kvc_forest_finish_with(f, BLOCK, false, NULL, NULL, &counts, &t, NULL),
                     KVC_OK);
    *nodes = counts.nodes;
    all.own_blocks = t->sample.own_blocks;
    all.own_squares = t->sample.own_squares;
    if (weight)
        t->sample = all;
    for (uint64_t r = 0; weight && r < t->n_requests; r++)
        if (kvc_trace_blocks(t, r) < t->input_tokens[r] / BLOCK)
            t->input_tokens[r] = kvc_trace_blocks(t, r) * BLOCK;
    return t;
}

static void a_sample_drawn_on_the_way_is_the_sample(void **state)
{
    (void)state;
    uint64_t all, kept;
    struct kvc_trace *whole = stream_rows(0, 0, &all);
    struct kvc_trace *sample = stream_rows(100, 1, &kept);
    assert_same_estimates(whole, sample, 100, 1);
    assert_true(kept < all * 8 / 100 * 2); /* 8 of 100, and chance */
    assert_true(sample->n_requests < whole->n_requests);
    kvc_trace_destroy(sample);
    kvc_trace_destroy(whole);
}

/* From a log to a .kvt and back; what would be taken for the log is refused. */
static void an_imported_sample_stands_for_its_log(void **state)
{
    (void)state;
    const char *log = SHARED "mooncake/conversation_trace.jsonl.zst";
    struct kvc_import_options o = {.struct_size = sizeof(o), .sample_weight = 10, .seed = 3};
    struct kvc_trace *whole = NULL, *sample = NULL;
    struct kvc_trace_stats stats;
    struct kvc_hits hits;
    struct kvc_error err;
    char path[] = "/tmp/kvcast-sample-XXXXXX";
    if (access(log, R_OK)) {
        print_message("SKIPPED: %s is not here\n", log);
        skip();
    }
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(kvc_trace_import(&whole, &log, 1, NULL, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_trace_import(&sample, &log, 1, &o, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_trace_save(sample, path, NULL), KVC_OK);
    kvc_trace_destroy(sample);
    assert_int_equal(kvc_trace_open(&sample, path, NULL, NULL, NULL), KVC_OK);
    assert_same_estimates(whole, sample, 10, 3);
    kvc_trace_stats(whole, &stats);
    assert_int_equal(sample->sample.requests, stats.requests);
    assert_int_equal(sample->sample.input_tokens, stats.input_tokens);
    assert_int_equal(sample->sample.output_tokens, stats.output_tokens);
    assert_int_equal(sample->sample.block_touches, stats.block_touches);
    assert_int_equal(kvc_ceiling_content(sample, &hits, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "one in 10 subtrees"));
    assert_int_equal(kvc_trace_export(sample, path, "mooncake", NULL, &err), KVC_ERR_INPUT);
    o.forget_ns = 1000;
    assert_int_equal(kvc_trace_import(&sample, &log, 1, &o, NULL, &err), KVC_ERR_USAGE);
    unlink(path);
    kvc_trace_destroy(sample);
    kvc_trace_destroy(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_cut_the_forest_into_whole_trees),
        cmocka_unit_test(no_subtree_dominates),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(memory_that_runs_out_is_reported),
        cmocka_unit_test(bands_hold_the_exact_rates),
        cmocka_unit_test(a_sample_drawn_on_the_way_is_the_sample),
        cmocka_unit_test(an_imported_sample_stands_for_its_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
