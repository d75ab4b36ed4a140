/* SPDX-License-Identifier: Apache-2.0
 * SGLang's and TensorRT-LLM's rules: the worked examples of shared/systems (sglang.md S5 and 1,
 * trtllm.md T2 to T4) with the presets' settings, what the presets set, and that a reservation to
 * the end preempts nobody. tests/test_replay.c holds the rules to the slow replay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/replay_agree.h"
#include "traces/forest/forest.h"

#define SEC 1000000000ull
#define MOST 128

static struct kvc_scenario *engine(const char *preset, const char *key, const char *value)
{
    struct kvc_scenario *sc = NULL;

    assert_int_equal(kvc_scenario_create(&sc, preset, NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "model", "llama-3.1-8b", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "cluster.gpu", "h100-sxm", NULL), KVC_OK);
    if (key)
        assert_int_equal(kvc_scenario_set(sc, key, value, NULL), KVC_OK);
    return sc;
}

/* A prompt of n tokens, each a block: 1, 2 .. and from own on another's; then its known output. */
static void add(struct kvc_forest *f, uint64_t time_ns, uint32_t n, uint32_t own, uint64_t base,
                uint32_t output)
{
    uint64_t id[MOST];
    struct kvc_row row = {.time_ns = time_ns, .input_tokens = n, .output_tokens = output,
                          .ids = id, .n_ids = n, .session = KVC_ID_NONE, .tenant = KVC_ID_NONE,
                          .model = KVC_ID_NONE, .think_ns = KVC_TIME_NONE, .output_ids = id,
                          .n_output_ids = output > 1 ? n + output : 0, .status = KVC_ROW_OK};

    assert_true(n + output <= MOST);
    for (uint32_t i = 0; i < n + output; i++)
        id[i] = i < own ? i + 1 : base + i;
    assert_int_equal(kvc_forest_add(f, &row, NULL), KVC_OK);
}

static void expect_hits(struct kvc_forest *f, struct kvc_scenario *sc, const uint32_t *hits,
                        uint32_t n)
{
    struct kvc_trace *t = NULL;

    assert_int_equal(kvc_forest_finish(f, 1, false, &t, NULL), KVC_OK);
    struct kvc_result *r = replay_run_engine(t, sc, false);
    assert_non_null(r);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(r->requests[i].hit_tokens[0], hits[i]);
    kvc_result_destroy(r);
    kvc_trace_destroy(t);
    kvc_scenario_destroy(sc);
}

/* 50 tokens and 21 of answer; the same and 10 more; the first 50 again. */
static void turns(struct kvc_scenario *sc, uint32_t second, uint32_t third)
{
    const uint32_t hits[] = {0, second, third};
    struct kvc_forest *f = kvc_forest_create();

    add(f, 0, 50, MOST, 0, 21);
    add(f, 10 * SEC, 81, 71, 1000, 1);
    add(f, 20 * SEC, 50, 50, 2000, 1);
    expect_hits(f, sc, hits, 3);
}

static void sglang_turns(void **state)
{
    (void)state;
    turns(engine("sglang", NULL, NULL), 70, 49);
    turns(engine("sglang", "engine.page_tokens", "16"), 64, 48);
}

/* Equal prompts of one batch both compute; what was inserted later hits. */
static void same_batch(void **state)
{
    const char *const preset[] = {"sglang", "trtllm", "vllm-0.24"};
    const uint32_t hits[][3] = {{0, 0, 39}, {0, 0, 39}, {0, 32, 32}};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct kvc_forest *f = kvc_forest_create();

        add(f, 0, 40, 40, 0, 1);
        add(f, 0, 40, 40, 0, 1);
        add(f, 5 * SEC, 40, 40, 0, 1);
        expect_hits(f, engine(preset[i], NULL, NULL), hits[i], 3);
    }
}

/* A of 9 tokens; the same; its first 8; its first 6 and 6 others. Blocks of 4. */
static void blocks_of_four(struct kvc_scenario *sc, const uint32_t *hits)
{
    struct kvc_forest *f = kvc_forest_create();

    add(f, 0, 9, 9, 0, 1);
    add(f, 1 * SEC, 9, 9, 0, 1);
    add(f, 2 * SEC, 8, 8, 0, 1);
    add(f, 3 * SEC, 12, 6, 500, 1);
    expect_hits(f, sc, hits, 4);
}

static void trtllm_reuse(void **state)
{
    const uint32_t trtllm[] = {0, 8, 7, 6}, vllm[] = {0, 8, 4, 4}, sglang[] = {0, 8, 7, 6};

    (void)state;
    blocks_of_four(engine("trtllm", "engine.page_tokens", "4"), trtllm);
    blocks_of_four(engine("vllm-0.24", "engine.page_tokens", "4"), vllm);
    blocks_of_four(engine("sglang", NULL, NULL), sglang);
}

static void presets_follow_the_gpu(void **state)
{
    struct kvc_scenario *sc = engine("sglang", NULL, NULL); /* 80 GB */

    (void)state;
    assert_int_equal(sc->engine.max_batched_tokens, 8192);
    assert_true(sc->engine.gpu_memory_utilization > 0.8 && sc->engine.gpu_memory_utilization < 0.9);
    assert_int_equal(kvc_scenario_set(sc, "cluster.gpu", "b200-sxm", NULL), KVC_OK);
    assert_int_equal(sc->engine.max_batched_tokens, 16384);
    assert_int_equal(kvc_scenario_set(sc, "cluster.gpu", "l40s", NULL), KVC_OK);
    assert_int_equal(sc->engine.max_batched_tokens, 4096);
    assert_string_equal(sc->engine.backend, "sglang");
    kvc_scenario_destroy(sc);
}

static uint64_t preemptions_of(const struct replay_case *c)
{
    struct kvc_trace *t = replay_case_forest(c);
    struct kvc_result *r = replay_run_engine(t, &c->sc, false);
    uint64_t n = 0;

    assert_non_null(r);
    for (uint32_t i = 0; i < r->n_replicas; i++)
        n += r->replicas[i].preemptions;
    kvc_result_destroy(r);
    kvc_trace_destroy(t);
    return n;
}

static void full_reservation_preempts_nobody(void **state)
{
    struct kvc_scenario *base = replay_base_scenario();
    uint64_t without = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        static struct replay_case c;

        replay_case_make(&c, seed, seed % 2 ? CASE_DRAM : CASE_ONE_REPLICA, base,
                         replay_kv_bytes(base));
        without += preemptions_of(&c);
        c.sc.engine.reserve_output = KVC_RESERVE_FULL;
        assert_int_equal(preemptions_of(&c), 0);
    }
    assert_true(without > 20); /* the cases are worth something */
    kvc_scenario_destroy(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sglang_turns), cmocka_unit_test(same_batch),
        cmocka_unit_test(trtllm_reuse), cmocka_unit_test(presets_follow_the_gpu),
        cmocka_unit_test(full_reservation_preempts_nobody)};

    return cmocka_run_group_tests_name("replay_rules", tests, NULL, NULL);
}
