/* SPDX-License-Identifier: Apache-2.0
 * The engine against vLLM's executed examples, against its slow twin, and against laws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/profiles.h"
#include "tests/replay_agree.h"

#define SEC 1000000000ull

/* ---- vLLM's executed examples ---- */

static void expect_hits(const struct tiny_row *rows, uint32_t n, uint64_t pages,
                        const uint32_t *hits)
{
    struct kvc_scenario *sc = replay_base_scenario();
    struct kvc_trace *t = tiny_trace(rows, n, 4, true);
    struct kvc_result *result;

    sc->engine.page_tokens = 4;
    sc->engine.kv_cache_memory_bytes = (pages + 1) * 4 * replay_kv_bytes(sc);
    result = replay_run_engine(t, sc, false);
    assert_non_null(result);
    assert_int_equal(result->n_requests, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(result->requests[i].outcome, KVC_COMPLETED);
        assert_int_equal(result->requests[i].hit_tokens[0], hits[i]);
    }
    kvc_result_destroy(result);
    tiny_trace_free(t);
    kvc_scenario_destroy(sc);
}

static void v1_duplicates_and_order(void **state)
{
    const struct tiny_row rows[] = {tiny_row(0, 12, "abc"),       tiny_row(1 * SEC, 12, "abc"),
                                    tiny_row(2 * SEC, 13, "abc"), tiny_row(3 * SEC, 12, "xyz"),
                                    tiny_row(4 * SEC, 13, "abc"), tiny_row(5 * SEC, 13, "xyz")};
    const uint32_t hits[] = {0, 8, 12, 0, 12, 8};

    (void)state;
    expect_hits(rows, 6, 6, hits);
}

static void v2_free_order(void **state)
{
    const char *seq[] = {"12", "13", "45", "12", "67", "13", "45", "12"};
    const uint32_t hits[] = {0, 4, 0, 8, 0, 4, 4, 4};
    struct tiny_row rows[8];

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        rows[i] = tiny_row(i * SEC, 9, seq[i]);
    expect_hits(rows, 8, 7, hits);
}

static void v3_same_step(void **state)
{
    struct tiny_row rows[] = {tiny_row(0, 9, "ab"), tiny_row(0, 9, "ab"), tiny_row(0, 11, "ab")};
    const uint32_t hits[] = {0, 8, 8};

    (void)state;
    rows[1].ids[2] = 2001;
    rows[2].ids[2] = 2002;
    expect_hits(rows, 3, 100, hits);
}

static void v4_multi_turn(void **state)
{
    struct tiny_row rows[] = {tiny_row(0, 10, "ab"), tiny_row(1 * SEC, 19, "abcd")};
    const uint32_t hits[] = {0, 12};

    (void)state;
    rows[0].output_tokens = 6;
    rows[0].n_out = 4;
    memcpy(rows[0].out, rows[1].ids, 4 * sizeof rows[0].out[0]);
    expect_hits(rows, 2, 100, hits);
}

/* ---- the twin ---- */

/* Of each level. KVC_TEST_CASES, KVC_TEST_SEED and KVC_TEST_LEVEL choose others. */
#define CASES 200
#define GROUP_CASES 8
#define COLD_CASES 40

static bool wanted(enum case_level level)
{
    const char *only = getenv("KVC_TEST_LEVEL");

    return !only || strtoul(only, NULL, 10) == level;
}

/* One GPU a replica, or one of each stage; or groups of so many data-parallel ranks. */
static void set_gpus(struct kvc_scenario *base, uint64_t seed, uint32_t ranks)
{
    bool staged = seed % 5 == 4 && ranks == 1 && !base->engine.cold;

    base->cluster.tp = seed % 4 == 3 && ranks == 1 ? 2 : 1;
    base->cluster.pp = staged ? 2 + (uint32_t)seed % 3 : 1;
    base->cluster.dp = ranks;
    base->cluster.ep = ranks % 2 || seed % 2 ? 1 : ranks; /* experts cut or dealt */
}

static bool case_agrees(const struct kvc_scenario *of, uint32_t ranks, enum case_level level,
                        uint64_t seed)
{
    static struct replay_case c;
    struct kvc_scenario base = *of;
    char text[256];

    set_gpus(&base, seed, ranks);
    replay_case_make(&c, seed, level, &base, replay_kv_bytes(&base));
    if (!replay_case_differs(&c, text, sizeof text))
        return true;
    replay_case_shrink(&c);
    replay_case_differs(&c, text, sizeof text);
    replay_case_print(&c);
    fflush(stdout);
    print_error("seed %llu level %d: %s\n", (unsigned long long)seed, level, text);
    return false;
}

static void agree_from(struct kvc_scenario *base, uint32_t ranks, enum case_level level, uint64_t n)
{
    const char *from = getenv("KVC_TEST_SEED"), *many = getenv("KVC_TEST_CASES");
    uint64_t seed = from ? strtoull(from, NULL, 10) : 1, failed = 0;

    n = many ? strtoull(many, NULL, 10) : n;
    for (uint64_t i = 0; i < n && failed < 3; i++)
        failed += !case_agrees(base, ranks, level, seed + i);
    kvc_scenario_destroy(base);
    assert_int_equal(failed, 0);
}

static void agree_of(uint32_t ranks, enum case_level level, uint64_t n)
{
    struct kvc_scenario *base = replay_base_scenario();

    if (ranks > 1)
        assert_int_equal(kvc_scenario_set(base, "model", "qwen3-30b-a3b", NULL), KVC_OK);
    agree_from(base, ranks, level, n);
}

/* Of an engine that has just started, with experts in eights or in sixteens. */
static void agrees_when_cold(void **state)
{
    static const char *const models[] = {"mixtral-8x7b", "qwen3-30b-a3b"};

    (void)state;
    for (int level = CASE_ONE_REPLICA; level <= CASE_RULES; level++) {
        struct kvc_scenario *base;

        if (!wanted((enum case_level)level))
            continue;
        base = replay_base_scenario();
        assert_int_equal(kvc_scenario_set(base, "model", models[level % 2], NULL), KVC_OK);
        assert_int_equal(kvc_scenario_set(base, "weights_dtype", "bf16", NULL), KVC_OK);
        assert_int_equal(kvc_scenario_set(base, "engine.cold", "true", NULL), KVC_OK);
        agree_from(base, 1, (enum case_level)level, COLD_CASES);
    }
}

static void agrees(void **state)
{
    enum case_level level = *(const enum case_level *)*state;

    if (!wanted(level))
        skip();
    agree_of(1, level, CASES);
}

static void agrees_on_groups(void **state)
{
    (void)state;
    for (int level = CASE_ONE_REPLICA; level <= CASE_RULES; level++)
        if (wanted((enum case_level)level))
            agree_of(2 + (uint32_t)level % 3, (enum case_level)level, GROUP_CASES);
}

static void agrees_where_it_once_did_not(void **state)
{
    static const struct { enum case_level level; uint64_t seed; } cases[] = {
        {CASE_TENANTS, 1340}, /* preempted, caught up: its last sampled token is decoding's */
        {CASE_TENANTS, 355},  /* blocks smaller than a page, of somebody who has no page */
        {CASE_RULES, 30074},  /* in a pipeline a preempted one's last token comes with prefill */
    };
    struct kvc_scenario *base = replay_base_scenario();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(case_agrees(base, 1, cases[i].level, cases[i].seed));
    kvc_scenario_destroy(base);
}

/* ---- laws ---- */

static struct kvc_result *run_case(const struct replay_case *c)
{
    struct kvc_trace *t = replay_case_trace(c);
    struct kvc_result *result = replay_run_engine(t, &c->sc, false);

    assert_non_null(result);
    tiny_trace_free(t);
    return result;
}

static void hits_and_causes_are_all_input(void **state)
{
    struct kvc_scenario *base = replay_base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct kvc_result *r;
        uint64_t found = 0, input = 0, hits = 0;

        replay_case_make(&c, seed, (enum case_level)(seed % 4), base, replay_kv_bytes(base));
        r = run_case(&c);
        for (int k = 0; k < KVC_MISS_CAUSES; k++)
            found += r->missed_tokens[k];
        for (uint32_t i = 0; i < c.n; i++) {
            input += c.rows[i].input_tokens;
            for (int k = 0; k < KVC_MAX_TIERS; k++)
                hits += r->requests[i].hit_tokens[k];
        }
        assert_int_equal(r->input_tokens, input);
        assert_int_equal(r->hit_tokens, hits);
        assert_int_equal(r->hit_tokens + found, input);
        assert_int_equal(r->completed + r->failed + r->unservable, c.n);
        kvc_result_destroy(r);
    }
    kvc_scenario_destroy(base);
}

static void same_rows(const struct kvc_result *a, const struct kvc_result *b, bool but_measured)
{
    assert_int_equal(a->n_requests, b->n_requests);
    for (uint64_t i = 0; i < a->n_requests; i++) {
        struct kvc_request_result one = a->requests[i], two = b->requests[i];

        if (but_measured)
            one.measured = two.measured = true;
        assert_memory_equal(&one, &two, sizeof one);
    }
}

static void equal_runs_are_equal(void **state)
{
    struct kvc_scenario *base = replay_base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct kvc_result *a, *b, *warm;

        replay_case_make(&c, seed, (enum case_level)(seed % 4), base, replay_kv_bytes(base));
        c.sc.warmup_ns = 0;
        a = run_case(&c);
        b = run_case(&c);
        same_rows(a, b, false);
        c.sc.warmup_ns = SEC / 10;
        warm = run_case(&c);
        same_rows(a, warm, true);
        assert_memory_equal(a->missed_tokens, warm->missed_tokens, sizeof a->missed_tokens);
        for (uint32_t i = 0; i < c.n; i++)
            assert_int_equal(warm->requests[i].measured,
                             warm->requests[i].arrival_ns >= SEC / 10);
        kvc_result_destroy(a);
        kvc_result_destroy(b);
        kvc_result_destroy(warm);
    }
    kvc_scenario_destroy(base);
}

/* A tier that holds nothing is no tier. */
static void empty_tier_is_none(void **state)
{
    struct kvc_scenario *base = replay_base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct kvc_result *with, *without;

        replay_case_make(&c, seed, CASE_DRAM, base, replay_kv_bytes(base));
        c.sc.tiers[0].capacity_bytes = seed % 2 ? 1 : 0;
        with = run_case(&c);
        c.sc.tiers[0].present = false;
        c.sc.tiers[0].capacity_bytes = 0;
        without = run_case(&c);
        same_rows(with, without, false);
        kvc_result_destroy(with);
        kvc_result_destroy(without);
    }
    kvc_scenario_destroy(base);
}

/* One request at a time, every write over before the next one comes: then the same is hit, and a
 * faster link can only shorten the load. */
static void faster_link_never_hurts(void **state)
{
    struct kvc_scenario *base = replay_base_scenario();
    static struct replay_case c;
    uint64_t shorter = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct kvc_result *slow, *fast;

        replay_case_make(&c, seed, seed % 2 ? CASE_DRAM : CASE_TIERS, base, replay_kv_bytes(base));
        c.sc.arrivals.mode = KVC_ARRIVALS_OPEN;
        c.sc.arrivals.rounds = false;
        c.sc.arrivals.concurrency = 0;
        c.sc.arrivals.spread_ns = 0;
        c.sc.request_timeout_ns = 0;
        for (uint32_t i = 0; i < c.n; i++)
            c.rows[i].time_ns = i * 1000 * SEC;
        slow = run_case(&c);
        for (int k = 0; k < 3; k++)
            c.sc.tiers[k].link_bytes_per_s *= 4;
        fast = run_case(&c);
        for (uint32_t i = 0; i < c.n; i++) {
            assert_memory_equal(slow->requests[i].hit_tokens, fast->requests[i].hit_tokens,
                                sizeof slow->requests[i].hit_tokens);
            assert_true(fast->requests[i].ttft_ns <= slow->requests[i].ttft_ns);
            shorter += fast->requests[i].ttft_ns < slow->requests[i].ttft_ns;
        }
        kvc_result_destroy(slow);
        kvc_result_destroy(fast);
    }
    assert_true(shorter > 20);
    kvc_scenario_destroy(base);
}

/* Two ranks with a prompt each: both have their token when the slower one's attention and
 * products, and the experts for the tokens of both, are done. Alike ones take what a step of
 * such ranks is. */
/* More requests than vLLM captures graphs of decode, all at once: their prompts wait for one
 * kernel, the first step that only decodes for another, and no step for any after that. */
static void cold_steps_compile_once(void **state)
{
    enum { N = 521 }; /* an odd number, other than the graphs */
    static struct tiny_row rows[N];
    struct kvc_scenario *sc = replay_base_scenario();
    struct kvc_result *r[2][2];

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        rows[i] = tiny_row(0, 3, "");
        rows[i].output_tokens = 5;
    }
    struct kvc_trace *t = tiny_trace(rows, N, 4, true);
    assert_int_equal(kvc_scenario_set(sc, "model", "mixtral-8x7b", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "engine.kv_cache_memory", "4GiB", NULL), KVC_OK);
    for (int cold = 0; cold < 2; cold++) {
        sc->engine.cold = cold;
        for (int one = 0; one < 2; one++)
            assert_non_null(r[cold][one] = replay_run_engine(t, sc, one));
        for (uint32_t i = 0; i < N; i++) {
            assert_int_equal(r[cold][0]->requests[i].ttft_ns, r[cold][1]->requests[i].ttft_ns);
            assert_int_equal(r[cold][0]->requests[i].e2e_ns, r[cold][1]->requests[i].e2e_ns);
        }
    }
    uint64_t ns = (uint64_t)kvc_engine_find("vllm")->compile_ns.value;
    assert_true(ns > 0);
    for (uint32_t i = 0; i < N; i++) {
        const struct kvc_request_result *warm = &r[0][0]->requests[i], *now = &r[1][0]->requests[i];
        assert_int_equal(now->ttft_ns, warm->ttft_ns + ns);
        assert_int_equal(now->host_ns, warm->host_ns + ns);
        assert_int_equal(now->e2e_ns, warm->e2e_ns + 2 * ns);
    }
    for (int i = 0; i < 4; i++)
        kvc_result_destroy(r[i / 2][i % 2]);
    tiny_trace_free(t);
    kvc_scenario_destroy(sc);
}

static void ranks_end_with_the_slowest(void **state)
{
    struct kvc_scenario *sc = replay_base_scenario();

    (void)state;
    assert_int_equal(kvc_scenario_set(sc, "model", "qwen3-30b-a3b", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "cluster.dp", "2", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "engine.kv_cache_memory", "1GiB", NULL), KVC_OK);
    for (uint32_t longer = 0; longer <= 1000; longer += 1000) {
        struct tiny_row rows[2] = {tiny_row(0, 1000 - longer / 2, ""),
                                   tiny_row(0, 1000 + longer / 2, "")};
        struct kvc_trace *t = tiny_trace(rows, 2, 4, true);
        struct kvc_result *r = replay_run_engine(t, sc, false);
        struct kvc_step_model *model = replay_step_times(sc);
        uint64_t most = 0;

        assert_non_null(r);
        assert_non_null(model);
        for (int i = 0; i < 2; i++) {
            const struct kvc_chunk chunk = {rows[i].input_tokens, 0};
            uint64_t own = kvc_step_rank_ns(model, &chunk, 1, 0, 0, 1, 2000, NULL);

            if (!longer)
                assert_int_equal(own, kvc_step_ns(model, &chunk, 1, 0, 0, 1, NULL));
            most = own > most ? own : most;
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(r->requests[i].replica, i);
            assert_int_equal(r->requests[i].ttft_ns, most + kvc_step_front_ns(model));
        }
        kvc_result_destroy(r);
        tiny_trace_free(t);
    }
    kvc_scenario_destroy(sc);
}

static void oversized_requests_end(void **state)
{
    struct kvc_scenario *sc = replay_base_scenario();
    struct tiny_row rows[3] = {tiny_row(0, 4, "a"), tiny_row(1, 4, "a"), tiny_row(2, 8, "ab")};
    struct kvc_trace *t;
    struct kvc_result *r;

    (void)state;
    rows[0].input_tokens = 4000000000u;
    rows[1].output_tokens = 4000000000u;
    t = tiny_trace(rows, 3, 4, true);
    sc->engine.page_tokens = 4;
    sc->engine.kv_cache_memory_bytes = 4 * 4 * replay_kv_bytes(sc);
    r = replay_run_engine(t, sc, false);
    assert_non_null(r);
    assert_int_equal(r->unservable, 2);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->missed_tokens[KVC_MISS_FAILED], 4000000004u);
    kvc_result_destroy(r);
    tiny_trace_free(t);
    kvc_scenario_destroy(sc);
}

int main(void)
{
    static enum case_level levels[] = {CASE_ONE_REPLICA, CASE_REPLICAS, CASE_DRAM, CASE_TIERS,
                                       CASE_TENANTS, CASE_RULES};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v1_duplicates_and_order),
        cmocka_unit_test(v2_free_order),
        cmocka_unit_test(v3_same_step),
        cmocka_unit_test(v4_multi_turn),
        {"agrees_on_one_replica", agrees, NULL, NULL, &levels[CASE_ONE_REPLICA]},
        {"agrees_on_replicas", agrees, NULL, NULL, &levels[CASE_REPLICAS]},
        {"agrees_on_dram", agrees, NULL, NULL, &levels[CASE_DRAM]},
        {"agrees_on_tiers", agrees, NULL, NULL, &levels[CASE_TIERS]},
        {"agrees_on_tenants", agrees, NULL, NULL, &levels[CASE_TENANTS]},
        {"agrees_on_rules", agrees, NULL, NULL, &levels[CASE_RULES]},
        cmocka_unit_test(agrees_on_groups),
        cmocka_unit_test(agrees_when_cold),
        cmocka_unit_test(agrees_where_it_once_did_not),
        cmocka_unit_test(hits_and_causes_are_all_input),
        cmocka_unit_test(equal_runs_are_equal),
        cmocka_unit_test(empty_tier_is_none),
        cmocka_unit_test(faster_link_never_hurts),
        cmocka_unit_test(cold_steps_compile_once),
        cmocka_unit_test(ranks_end_with_the_slowest),
        cmocka_unit_test(oversized_requests_end),
    };

    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
