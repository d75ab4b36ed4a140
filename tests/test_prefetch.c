/* SPDX-License-Identifier: Apache-2.0
 * KV below host memory that is fetched while its request waits, in closed form: it overlaps the
 * prefill before it, each rule ends it when it should, and the limit stops the next one.
 * tests/test_replay.c holds the rules to the slow replay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/replay_agree.h"
#include "traces/forest/forest.h"

#define SEC 1000000000ull
#define BLOCK 64ull
#define BYTES (BLOCK * 131072) /* Llama-3.1-8B, bf16 */
#define SHARED 64u             /* blocks that come back */
#define LONG 128u              /* blocks of the prompt before them: one step */
#define FILLERS 5u             /* as long, which push all else out of HBM and host memory */
#define HOST_RATE 10000000000ull
#define ALL (SHARED * BLOCK)

static void set(struct kvc_scenario *sc, const char *key, const char *value)
{
    assert_int_equal(kvc_scenario_set(sc, key, value, NULL), KVC_OK);
}

/* 16,384 tokens in HBM, twice as many in host memory, drives of so many bytes a second. */
static struct kvc_scenario *engine(const char *rule, const char *rate)
{
    static const char *const keys[][2] = {
        {"model", "llama-3.1-8b"},      {"cluster.gpu", "h100-sxm"},
        {"engine.page_tokens", "64"},   {"engine.kv_cache_memory", "2056MiB"}, /* 257 pages */
        {"engine.kv_load_time", "0s"},  {"engine.kv_load_token_time", "0s"},
        {"tiers.dram.capacity", "4GiB"},
        {"tiers.dram.link.bandwidth", "10GB/s"}, {"tiers.dram.link.latency", "0s"},
        {"tiers.dram.link.efficiency", "1"},     {"tiers.nvme.capacity", "1TB"},
        {"tiers.nvme.link.latency", "0s"},       {"tiers.nvme.link.efficiency", "1"}};
    struct kvc_scenario *sc = NULL;

    assert_int_equal(kvc_scenario_create(&sc, "sglang", NULL), KVC_OK);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        set(sc, keys[i][0], keys[i][1]);
    set(sc, "tiers.nvme.link.bandwidth", rate);
    if (rule)
        set(sc, "engine.prefetch", rule);
    return sc;
}

static void add(struct kvc_forest *f, uint64_t time_ns, uint32_t n, uint64_t base, bool tail)
{
    uint64_t id[LONG];
    struct kvc_row row = {.time_ns = time_ns, .input_tokens = (uint32_t)(n * BLOCK) + tail,
                          .output_tokens = 1, .ids = id, .n_ids = n, .session = KVC_ID_NONE,
                          .tenant = KVC_ID_NONE, .model = KVC_ID_NONE, .think_ns = KVC_TIME_NONE,
                          .status = KVC_ROW_OK};

    for (uint32_t i = 0; i < n; i++)
        id[i] = base + i;
    assert_int_equal(kvc_forest_add(f, &row, NULL), KVC_OK);
}

/* So many prompts, which fall to the drives alone; a long one; and 1 ms later all of them again. */
static struct kvc_result *run(struct kvc_scenario *sc, uint32_t prompts)
{
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_trace *t = NULL;

    for (uint32_t i = 0; i < prompts; i++)
        add(f, 10 * i * SEC, SHARED, 1000 * (i + 1), true);
    for (uint32_t i = 0; i < FILLERS; i++)
        add(f, (100 + 10 * i) * SEC, LONG, 100000 * (i + 1), false);
    add(f, 300 * SEC, LONG, 9000000, false);
    for (uint32_t i = 0; i < prompts; i++)
        add(f, 300 * SEC + 1000000, SHARED, 1000 * (i + 1), true);
    assert_int_equal(kvc_forest_finish(f, BLOCK, false, &t, NULL), KVC_OK);
    struct kvc_result *r = replay_run_engine(t, sc, false);
    assert_non_null(r);
    kvc_trace_destroy(t);
    kvc_scenario_destroy(sc);
    return r;
}

/* What one prompt found and waited for. */
struct outcome {
    uint32_t from_drives; /* tokens */
    uint64_t queue, load; /* ns */
    uint64_t step;        /* from its coming to the end of the long prompt */
};

static struct outcome one(const char *rule, const char *rate)
{
    struct kvc_result *r = run(engine(rule, rate), 1);
    const struct kvc_request_result *q = &r->requests[r->n_requests - 1];
    struct outcome out = {q->hit_tokens[2], q->queue_ns, q->load_ns, q->unheard_ns};

    assert_int_equal(q->hit_tokens[0] + q->hit_tokens[1], 0);
    kvc_result_destroy(r);
    return out;
}

static void a_fetch_overlaps_the_prefill_before_it(void **state)
{
    static const char *const rules[] = {"best_effort", "wait_complete", "timeout", NULL};
    uint64_t up = (SHARED * BYTES * SEC + HOST_RATE - 1) / HOST_RATE;
    struct outcome never = one("never", "8GB/s");

    (void)state;
    assert_true(never.step > SHARED * BYTES / 8); /* the case is worth something */
    assert_int_equal(never.load, (SHARED * BYTES + 7) / 8);
    assert_int_equal(never.from_drives, ALL);
    for (int i = 0; i < 4; i++) { /* the last is the preset's */
        struct outcome o = one(rules[i], "8GB/s");

        assert_int_equal(o.from_drives, ALL);
        assert_int_equal(o.queue, o.step);
        assert_int_equal(o.load, up);
    }
}

static void each_rule_ends_it(void **state)
{
    struct outcome all = one("wait_complete", "250MB/s"), some = one("best_effort", "250MB/s");
    struct outcome two = one("timeout", "250MB/s"); /* 1 s, and 0.25 s for 1,024 of 4,096 tokens */

    (void)state;
    assert_int_equal(all.from_drives, ALL);
    assert_int_equal(all.queue, SHARED * BYTES * 4);
    assert_int_equal(some.queue, some.step);
    assert_int_equal(some.from_drives, some.step / 4 / BYTES * BLOCK);
    assert_true(some.from_drives > 0 && some.from_drives < ALL);
    assert_int_equal(two.queue, 2 * SEC);
    assert_int_equal(two.from_drives, SEC / 2 / BYTES * BLOCK);
}

/* 16,384 tokens of host memory are beyond HBM's: a share of a quarter is one prompt. */
static void the_limit_stops_the_next(void **state)
{
    static const char *const share[] = {"0", "0.25", "0.2501", "0.5", "0.51", "0.8"};
    static const uint32_t fetched[] = {0, 1, 2, 2, 3, 4};

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct kvc_scenario *sc = engine("wait_complete", "250MB/s");

        set(sc, "engine.prefetch_limit", share[i]);
        struct kvc_result *r = run(sc, 4);
        for (uint32_t k = 0; k < 4; k++)
            assert_int_equal(r->requests[r->n_requests - 4 + k].hit_tokens[2],
                             k < fetched[i] ? ALL : 0);
        kvc_result_destroy(r);
    }
}

static void little_is_not_fetched(void **state)
{
    static const char *const least[] = {"4096", "4097"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct kvc_scenario *sc = engine("timeout", "8GB/s");

        set(sc, "engine.prefetch_threshold", least[i]);
        struct kvc_result *r = run(sc, 1);
        assert_int_equal(r->requests[r->n_requests - 1].hit_tokens[2], i ? 0 : ALL);
        kvc_result_destroy(r);
    }
}

static bool warns(struct kvc_scenario *sc, const char *code)
{
    struct kvc_result *r = run(sc, 1);
    bool found = false;

    for (size_t i = 0; i < r->n_warnings; i++)
        found |= strcmp(r->warnings[i].code, code) == 0;
    kvc_result_destroy(r);
    return found;
}

static void what_is_never_fetched_is_said(void **state)
{
    struct kvc_scenario *small = engine("timeout", "8GB/s");

    (void)state;
    set(small, "tiers.dram.capacity", "2GiB"); /* HBM's size */
    assert_true(warns(small, "nothing_fetched"));
    assert_false(warns(engine("timeout", "8GB/s"), "nothing_fetched"));
    assert_true(warns(engine(NULL, "8GB/s"), "best_effort"));
    assert_false(warns(engine("timeout", "8GB/s"), "best_effort"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fetch_overlaps_the_prefill_before_it),
        cmocka_unit_test(each_rule_ends_it), cmocka_unit_test(the_limit_stops_the_next),
        cmocka_unit_test(little_is_not_fetched), cmocka_unit_test(what_is_never_fetched_is_said)};

    return cmocka_run_group_tests_name("prefetch", tests, NULL, NULL);
}
