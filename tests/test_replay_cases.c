/* SPDX-License-Identifier: Apache-2.0
 * Replays with an answer known beforehand: traps that users of serving systems and simulators
 * reported in public (the issue is named at each), and the chunk example of LMCache. */
#include <kvcast/kvcast.h>

#include "models/models.h"
#include "sim/scenario/scenario.h"
#include "traces/forest/forest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* after the three above */
#include <cmocka.h>

#define B 512 /* trace block of most cases, tokens */
#define P 16

struct row {
    uint64_t time_ms;
    uint32_t input, output;
    uint64_t ids[12];
    uint32_t n;
};

static struct kvc_trace *trace_of(const struct row *rows, size_t n, uint32_t block)
{
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_trace *t = NULL;
    struct kvc_error err;
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        struct kvc_row r = {.time_ns = rows[i].time_ms * 1000000, .input_tokens = rows[i].input,
                            .output_tokens = rows[i].output, .ids = rows[i].ids,
                            .n_ids = rows[i].n, .session = KVC_ID_NONE, .tenant = KVC_ID_NONE,
                            .model = KVC_ID_NONE, .think_ns = KVC_TIME_NONE};
        assert_int_equal(kvc_forest_add(f, &r, &err), KVC_OK);
    }
    assert_int_equal(kvc_forest_finish(f, block, false, &t, &err), KVC_OK);
    return t;
}

/* One replica of Llama-3.1-8B on one H100 with room for tokens of KV, and dram_tokens below it. */
static struct kvc_scenario *scenario(uint64_t tokens, uint64_t dram_tokens)
{
    struct kvc_scenario *sc = NULL;
    struct kvc_error err;
    assert_int_equal(kvc_scenario_create(&sc, NULL, &err), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "model", "llama-3.1-8b", &err), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "cluster.gpu", "h100-sxm", &err), KVC_OK);
    if (dram_tokens)
        assert_int_equal(kvc_scenario_set(sc, "tiers.dram.capacity", "1GiB", &err), KVC_OK);
    uint64_t bytes = kvc_llm_kv_bytes_per_token(kvc_llm_find("llama-3.1-8b"), KVC_BF16, 1);
    sc->engine.kv_cache_memory_bytes = (tokens + P) * bytes; /* and vLLM's null block */
    sc->tiers[0].capacity_bytes = dram_tokens * bytes;
    return sc;
}

static struct kvc_result *replay(const struct row *rows, size_t n, uint32_t block,
                                 struct kvc_scenario *sc)
{
    struct kvc_trace *t = trace_of(rows, n, block);
    struct kvc_result *r = NULL;
    struct kvc_error err;
    if (kvc_replay_run(&r, t, sc, NULL, &err) != KVC_OK)
        fail_msg("%s", err.text);
    kvc_trace_destroy(t);
    kvc_scenario_destroy(sc);
    return r;
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* vllm#25780, sglang#2555: what was computed before a preemption is no hit. */
static void preempted_work_is_not_a_hit(void **state)
{
    (void)state;
    static const struct row rows[] = {{0, 1024, 512, {1, 2}, 2},
                                      {0, 1024, 512, {3, 4}, 2},
                                      {0, 1024, 512, {5, 6}, 2}};
    struct kvc_result *r = replay(rows, COUNT(rows), B, scenario(6 * B, 0));
    assert_int_equal(r->completed, 3);
    assert_true(r->replicas[0].preemptions > 0);
    assert_int_equal(r->hit_tokens, 0);
    assert_true(r->recomputed_tokens > 0);
    kvc_result_destroy(r);
}

/* inference-sim#1699: a tier moves latency, not only the hit rate. */
static void a_lower_tier_moves_latency(void **state)
{
    (void)state;
    static const struct row rows[] = {{0, 2048, 1, {1, 2, 3, 4}, 4},
                                      {10000, 2048, 1, {5, 6, 7, 8}, 4},
                                      {20000, 2048, 1, {1, 2, 3, 4}, 4},
                                      {30000, 2048, 1, {5, 6, 7, 8}, 4}};
    struct kvc_result *off = replay(rows, COUNT(rows), B, scenario(4 * B, 0));
    struct kvc_result *on = replay(rows, COUNT(rows), B, scenario(4 * B, 8 * B));
    struct kvc_result *tiny = replay(rows, COUNT(rows), B, scenario(4 * B, B));
    struct kvc_scenario *sc = scenario(4 * B, 8 * B);
    sc->tiers[0].link[0] = '\0'; /* ten times slower than any PCIe */
    sc->tiers[0].link_bytes_per_s = 3e9;
    sc->tiers[0].link_efficiency = 1;
    struct kvc_result *slow = replay(rows, COUNT(rows), B, sc);
    for (int i = 2; i < 4; i++) {
        assert_int_equal(off->requests[i].hit_tokens[1], 0);
        assert_int_equal(on->requests[i].hit_tokens[1], 2047);
        assert_true(on->requests[i].load_ns > 0);
        assert_true(on->requests[i].ttft_ns < off->requests[i].ttft_ns);
        assert_true(slow->requests[i].ttft_ns > on->requests[i].ttft_ns);
    }
    for (int i = 0; i < 4; i++) /* a tier of one block is as none here */
        assert_int_equal(tiny->requests[i].ttft_ns, off->requests[i].ttft_ns);
    kvc_result_destroy(off);
    kvc_result_destroy(on);
    kvc_result_destroy(tiny);
    kvc_result_destroy(slow);
}

/* inference-sim#1586: the tier is asked at every lookup, not only when HBM is full. */
static void the_tier_is_asked_every_time(void **state)
{
    (void)state;
    static const struct row rows[] = {{0, 1024, 1, {1, 2}, 2},
                                      {10000, 1024, 1, {3, 4}, 2},
                                      {20000, 1024, 1, {5, 6}, 2},
                                      {30000, 512, 1, {9}, 1},
                                      {40000, 1024, 1, {1, 2}, 2}};
    struct kvc_result *r = replay(rows, COUNT(rows), B, scenario(4 * B, 16 * B));
    assert_int_equal(r->requests[4].hit_tokens[0], 0);
    assert_int_equal(r->requests[4].hit_tokens[1], 1023); /* all but the last token */
    kvc_result_destroy(r);
}

/* inference-sim#1057: what can't ever fit ends, counted. */
static void oversized_requests_are_counted(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {0, 512, 10, {1}, 1},
        {100, 5120, 10, {10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, 10},
        {200, 512, 10, {1}, 1},
        {300, 2048, 2048, {30, 31, 32, 33}, 4}};
    struct kvc_result *r = replay(rows, COUNT(rows), B, scenario(8 * B, 0));
    assert_int_equal(r->completed, 3);
    assert_int_equal(r->unservable, 1);
    assert_int_equal(r->missed_tokens[KVC_MISS_FAILED], 5120);
    kvc_result_destroy(r);
}

/* llm-d-inference-sim#704, Mooncake#1772: of blocks released together the deepest goes first. */
static void the_deepest_block_goes_first(void **state)
{
    (void)state;
    static const struct row rows[] = {{0, 1536, 1, {1, 2, 3}, 3},
                                      {10000, 512, 1, {9}, 1},
                                      {20000, 1536, 1, {1, 2, 3}, 3}};
    struct kvc_result *r = replay(rows, COUNT(rows), B, scenario(3 * B, 0));
    assert_int_equal(r->requests[2].hit_tokens[0], 2 * B);
    kvc_result_destroy(r);
}

/* dynamo#3532, LMCache#2739: write-through stores what is never used again. */
static void second_touch_keeps_one_hit_wonders_out(void **state)
{
    (void)state;
    struct row rows[12];
    for (uint32_t i = 0; i < 12; i++)
        rows[i] = (struct row){i * 1000, 2048, 1, {1, 100 + 3 * i, 101 + 3 * i, 102 + 3 * i}, 4};
    static const struct {
        enum kvc_write_mode write;
        const char *admission;
        uint32_t written, refused; /* blocks; by second 4 of the first request, 3 of the others */
    } cases[] = {{KVC_WRITE_THROUGH, "always", 37, 0},
                 {KVC_WRITE_SELECTIVE, "always", 1, 0},
                 {KVC_WRITE_THROUGH, "second", 1, 4 + 11 * 3},
                 {KVC_WRITE_THROUGH, "second:times=3", 1, 2 * 4 + 10 * 3},
                 {KVC_WRITE_THROUGH, "depth:tokens=1024", 13, 12 * 2},
                 {KVC_WRITE_THROUGH, "size:tokens=2047", 0, 12 * 4}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kvc_scenario *sc = scenario(64 * B, 64 * B);
        sc->tiers[0].write = cases[i].write;
        snprintf(sc->tiers[0].admission, sizeof(sc->tiers[0].admission), "%s", cases[i].admission);
        struct kvc_result *r = replay(rows, 12, B, sc);
        assert_int_equal(r->tiers[1].written_bytes, cases[i].written * r->block_bytes);
        assert_int_equal(r->tiers[1].refused_bytes, cases[i].refused * r->block_bytes);
        kvc_result_destroy(r);
    }
}

/* LMCache: chunks of 256 tokens, a prompt of 1000. What leaves HBM comes back in whole chunks; a
 * prompt that is all there still computes its last token. */
static void chunks_come_back_whole(void **state)
{
    (void)state;
    struct { uint32_t prompt, other, hbm, loaded; } cases[] = {
        {1000, 1024, 0, 768},  /* HBM flushed by the other one: 3 chunks */
        {1000, 608, 400, 368}, /* 25 pages of 16 still there: 768 - 400 */
        {768, 1024, 0, 767},   /* fully stored: all but one token */
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        struct kvc_forest *f = kvc_forest_create();
        struct kvc_error err;
        struct kvc_trace *t = NULL;
        assert_non_null(f);
        for (uint32_t i = 0; i < 3; i++) {
            uint64_t ids[64];
            uint32_t tokens = i == 1 ? cases[k].other : cases[k].prompt;
            for (uint32_t b = 0; b < 64; b++)
                ids[b] = (i == 1 ? 1000 : 0) + b;
            struct kvc_row r = {.time_ns = i * 10000000000u, .input_tokens = tokens,
                                .output_tokens = 1, .ids = ids, .n_ids = (tokens + P - 1) / P,
                                .session = KVC_ID_NONE, .tenant = KVC_ID_NONE,
                                .model = KVC_ID_NONE, .think_ns = KVC_TIME_NONE};
            assert_int_equal(kvc_forest_add(f, &r, &err), KVC_OK);
        }
        assert_int_equal(kvc_forest_finish(f, P, false, &t, &err), KVC_OK);
        /* Room for 63 pages: 1008 tokens hold either prompt; the other one of 1024 is too long, so
         * it gets exactly the pool where all is to be flushed. */
        struct kvc_scenario *sc = scenario(cases[k].other == 1024 ? 1024 : 1008, 64 * 1024);
        sc->tiers[0].chunk_tokens = 256;
        struct kvc_result *r = NULL;
        assert_int_equal(kvc_replay_run(&r, t, sc, NULL, &err), KVC_OK);
        assert_int_equal(r->requests[2].hit_tokens[0], cases[k].hbm);
        assert_int_equal(r->requests[2].hit_tokens[1], cases[k].loaded);
        kvc_result_destroy(r);
        kvc_scenario_destroy(sc);
        kvc_trace_destroy(t);
    }
}

/* A tier with less room than a block keeps nothing, and the run says so. */
static void a_tier_without_room_is_named(void **state)
{
    (void)state;
    static const struct row rows[] = {{0, 1024, 1, {1, 2}, 2}};
    for (int fits = 0; fits < 2; fits++) {
        struct kvc_result *r = replay(rows, COUNT(rows), B, scenario(4 * B, fits ? B : B - 1));
        bool named = false;
        for (uint32_t i = 0; i < r->n_warnings; i++)
            named |= strcmp(r->warnings[i].code, "tier_too_small") == 0;
        assert_int_equal(named, !fits);
        kvc_result_destroy(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preempted_work_is_not_a_hit),
        cmocka_unit_test(a_lower_tier_moves_latency),
        cmocka_unit_test(the_tier_is_asked_every_time),
        cmocka_unit_test(oversized_requests_are_counted),
        cmocka_unit_test(the_deepest_block_goes_first),
        cmocka_unit_test(second_touch_keeps_one_hit_wonders_out),
        cmocka_unit_test(chunks_come_back_whole),
        cmocka_unit_test(a_tier_without_room_is_named),
    };
    return cmocka_run_group_tests_name("replay_cases", tests, NULL, NULL);
}
