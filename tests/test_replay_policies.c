/* SPDX-License-Identifier: Apache-2.0
 * Eviction policies in the replay's tiers: against the slow replay, and against the same policies
 * without time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sim/ceiling/ceiling.h"
#include "sim/replay/engine.h"
#include "tests/replay_agree.h"

/* Those that twin_order.c has; times in ms. */
static const char *const policies[] = {
    "lfu", "plfu", "sieve", "gdsf", "lruk", "lenaware", "hyperbolic", "fifo",
    "s3fifo:small=0.3:ghosts=0.5:uses=1", "s3fifo", "twoq:in=0.3:out=0.4", "arc",
    "wtinylfu:window=0.3:protected=0.5:sample=2", "random:seed=7", "watermark:high=0.6:batch=0.2",
    "priority:head=8:headlevel=50:level=20:tenant=1:tenantlevel=30:duration=40ms",
    "priority:head=12:headlevel=10:level=35", "ttl:ttl=120ms", "ttlfixed:ttl=150ms", "lru",
    "radix", "costaware:tokens=32", "lirs:hir=0.3", "lecar:discount=0.1", "thinktime:pause=200ms",
};
#define N_POLICIES (sizeof policies / sizeof policies[0])

/* Of HBM and the tiers; of NULL those that the seed draws. */
static void choose(struct replay_case *c, uint64_t seed, const char *const *these)
{
    const char *only = getenv("KVC_TEST_POLICY");
    uint64_t rng = kvc_rng_stream(seed, "policies");

    for (int k = 0; k < 4; k++) {
        char *policy = k ? c->sc.tiers[k - 1].policy : c->sc.hbm_policy;
        const char *drawn = policies[(k ? kvc_rng_below(&rng, N_POLICIES) : seed) % N_POLICIES];

        snprintf(policy, sizeof c->sc.hbm_policy, "%s", these ? these[k] : only ? only : drawn);
    }
}

static bool case_agrees(const struct kvc_scenario *base, enum case_level level, uint64_t seed,
                        const char *const *these)
{
    static struct replay_case c;
    char text[256];

    replay_case_make(&c, seed, level, base, replay_kv_bytes(base));
    choose(&c, seed, these);
    if (!replay_case_differs(&c, text, sizeof text))
        return true;
    replay_case_shrink(&c);
    replay_case_differs(&c, text, sizeof text);
    replay_case_print(&c);
    fflush(stdout);
    print_error("seed %llu level %d, policies %s %s %s %s: %s\n", (unsigned long long)seed, level,
                c.sc.hbm_policy, c.sc.tiers[0].policy, c.sc.tiers[1].policy, c.sc.tiers[2].policy,
                text);
    return false;
}

/* Of each level. KVC_TEST_CASES, KVC_TEST_SEED and KVC_TEST_LEVEL choose others. */
static void agrees(void **state)
{
    enum case_level level = *(const enum case_level *)*state;
    const char *from = getenv("KVC_TEST_SEED"), *many = getenv("KVC_TEST_CASES");
    const char *which = getenv("KVC_TEST_LEVEL");
    struct kvc_scenario *base = replay_base_scenario();
    uint64_t seed = from ? strtoull(from, NULL, 10) : 1, failed = 0;
    uint64_t n = many ? strtoull(many, NULL, 10) : N_POLICIES;

    if (which && strtoul(which, NULL, 10) != level)
        n = 0;
    for (uint64_t i = 0; i < n && failed < 3; i++)
        failed += !case_agrees(base, level, seed + i, NULL);
    kvc_scenario_destroy(base);
    assert_int_equal(failed, 0);
}

static void agrees_where_it_once_did_not(void **state)
{
    static const struct {
        enum case_level level;
        uint64_t seed;
        const char *policy[4];
    } cases[] = {
        {CASE_TIERS, 317, {"ttl:ttl=120ms", "sieve", "fifo", "fifo"}},
        {CASE_TENANTS, 607, {"fifo", "fifo", "wtinylfu:window=0.3:protected=0.5:sample=2", "lru"}},
        {CASE_REPLICAS, 1834, {"watermark:high=0.6:batch=0.2", "lru", "lru", "lru"}},
        {CASE_DRAM, 1834, {"watermark:high=0.6:batch=0.2", "hyperbolic", "lru", "lru"}},
        {CASE_TENANTS, 47, {"costaware:tokens=32", "costaware:tokens=32", "costaware:tokens=32",
                            "costaware:tokens=32"}},
        {CASE_TIERS, 1340, {"radix", "radix", "radix", "radix"}},
        {CASE_REPLICAS, 1117, {"thinktime:pause=300ms", "lru", "lru", "lru"}},
        /* the only one running gives way, and the next one computes again what that cost */
        {CASE_TIERS, 3297, {"watermark:high=0.6:batch=0.2", "watermark:high=0.6:batch=0.2",
                            "watermark:high=0.6:batch=0.2", "watermark:high=0.6:batch=0.2"}},
    };
    struct kvc_scenario *base = replay_base_scenario();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(case_agrees(base, cases[i].level, cases[i].seed, cases[i].policy));
    kvc_scenario_destroy(base);
}

/* ---- all policies ---- */

static const char *const all[] = {
    "lru", "fifo", "lfu", "plfu", "lenaware", "sieve", "s3fifo", "twoq", "arc", "ttl:ttl=750ms",
    "ttlfixed:ttl=750ms", "lruk", "gdsf", "hyperbolic", "wtinylfu:window=0.2", "watermark",
    "random",
    "radix", "costaware:tokens=16", "lirs:hir=0.3", "lecar", "priority:head=8",
    "thinktime:pause=300ms",
};
#define N_ALL (sizeof all / sizeof all[0])

/* Blocks of 16 tokens, pages of one, and room for so many blocks beside a request's last token. */
static struct kvc_scenario *room_for(uint32_t blocks, const char *policy)
{
    struct kvc_scenario *sc = replay_base_scenario();

    sc->engine.page_tokens = 1;
    sc->engine.kv_cache_memory_bytes = (16ull * blocks + 2) * replay_kv_bytes(sc);
    snprintf(sc->hbm_policy, sizeof sc->hbm_policy, "%s", policy);
    return sc;
}

/* What a prompt finds in GPU memory, and in a cache without time. */
static void same_hits(const struct tiny_row *rows, uint32_t n, uint32_t blocks, const char *policy)
{
    struct kvc_scenario *sc = room_for(blocks, policy);
    struct kvc_trace *t = tiny_trace(rows, n, 16, true);
    struct kvc_ceiling_view view;
    struct kvc_hits hits;
    uint32_t runs[256];
    uint64_t capacity = blocks;
    struct kvc_result *r = replay_run_engine(t, sc, false);

    assert_non_null(r);
    assert_int_equal(kvc_ceiling_view_full(&view, t, NULL), KVC_OK);
    assert_int_equal(kvc_ceiling_runs_of(&view, policy, &capacity, 1, &hits, runs, NULL), KVC_OK);
    for (uint32_t i = 0; i < n; i++)
        if (r->requests[i].hit_tokens[0] != 16 * runs[i])
            fail_msg("%s, %u blocks: request %u hits %u tokens in a replay, %u blocks without time",
                     policy, blocks, i, r->requests[i].hit_tokens[0], runs[i]);
    kvc_ceiling_view_clear(&view);
    kvc_result_destroy(r);
    tiny_trace_free(t);
    kvc_scenario_destroy(sc);
}

/* Prompts one after the other, of most blocks at most and a token. */
static uint32_t make_prompts(struct tiny_row *rows, uint64_t *rng, uint32_t most, uint32_t ids)
{
    uint32_t n = 40 + (uint32_t)kvc_rng_below(rng, 80);
    uint64_t now = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t blocks = 1 + (uint32_t)kvc_rng_below(rng, most);

        now += (2 + kvc_rng_below(rng, 3)) * 100000000; /* times to live end between these */
        rows[i] = (struct tiny_row){.time_ns = now - (i ? 0 : now), .output_tokens = 1,
                                    .session = KVC_ID_NONE, .think_ns = KVC_TIME_NONE,
                                    .input_tokens = 16 * blocks + 1, .n_ids = blocks};
        now = i ? now : 0;
        for (uint32_t b = 0; b < blocks; b++)
            rows[i].ids[b] = kvc_rng_below(rng, b ? 2 : ids);
    }
    return n;
}

static void one_block_hits_as_without_time(void **state)
{
    static struct tiny_row rows[128];
    uint64_t rng = kvc_rng_stream(3, "flat");

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t n = make_prompts(rows, &rng, 1, 3 + 2 * i);

        for (size_t p = 0; p < N_ALL; p++)
            same_hits(rows, n, 1 + (uint32_t)kvc_rng_below(&rng, 2 + i), all[p]);
    }
}

/* Where no policy without time takes a request's own blocks either. */
static void whole_prompts_hit_as_without_time(void **state)
{
    static const char *const whole[] = {"lru", "ttl:ttl=750ms", "radix", "priority:head=40",
                                        "thinktime:pause=300ms"};
    static struct tiny_row rows[128];
    uint64_t rng = kvc_rng_stream(4, "whole");

    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t n = make_prompts(rows, &rng, 6, 2 + i / 4);

        for (size_t p = 0; p < sizeof whole / sizeof whole[0]; p++)
            same_hits(rows, n, 6 + (uint32_t)kvc_rng_below(&rng, 20), whole[p]);
    }
}

/* Segments are only names of blocks, and steps may be jumped over; pools are in order at all
 * times. */
static void segments_and_jumps_change_nothing(void **state)
{
    struct kvc_scenario *base = replay_base_scenario();
    struct kvc_replay_options options = {.struct_size = sizeof options};

    (void)state;
    for (uint64_t seed = 5000; seed < 5000 + 2 * N_ALL; seed++) {
        static struct replay_case c;
        uint64_t rng = kvc_rng_stream(seed, "all");

        replay_case_make(&c, seed, (enum case_level)(CASE_REPLICAS + seed % 3), base,
                         replay_kv_bytes(base));
        snprintf(c.sc.hbm_policy, sizeof c.sc.hbm_policy, "%s", all[seed % N_ALL]);
        for (int k = 0; k < 3; k++)
            snprintf(c.sc.tiers[k].policy, sizeof c.sc.tiers[k].policy, "%s",
                     all[kvc_rng_below(&rng, N_ALL)]);
        struct kvc_trace *blocks = tiny_trace(c.rows, c.n, c.block_tokens, false);
        struct kvc_trace *whole = replay_case_trace(&c);
        struct kvc_result *a = replay_run_engine(blocks, &c.sc, true);
        struct kvc_result *b = replay_run_engine(whole, &c.sc, false);
        struct kvc_engine e = {.trace = whole, .sc = &c.sc, .options = &options};

        assert_non_null(a);
        assert_non_null(b);
        for (uint32_t i = 0; i < c.n; i++)
            if (a->requests[i].e2e_ns != b->requests[i].e2e_ns ||
                memcmp(a->requests[i].hit_tokens, b->requests[i].hit_tokens,
                       sizeof a->requests[i].hit_tokens) != 0)
                fail_msg("seed %llu, policies %s %s %s %s: request %u", (unsigned long long)seed,
                         c.sc.hbm_policy, c.sc.tiers[0].policy, c.sc.tiers[1].policy,
                         c.sc.tiers[2].policy, i);
        assert_int_equal(kvc_engine_open(&e, NULL), KVC_OK);
        while (kvc_engine_next(&e)) {
            for (uint32_t i = 0; i < e.n_replicas; i++)
                assert_null(kvc_pool_check(&e.replicas[i].pool));
            for (uint32_t k = e.first_tier; k < KVC_LOWER_TIERS; k++)
                for (uint32_t i = 0; i < e.tiers[k].instances; i++)
                    assert_null(kvc_pool_check(&e.tiers[k].pools[i]));
        }
        kvc_engine_close(&e);
        kvc_result_destroy(a);
        kvc_result_destroy(b);
        tiny_trace_free(blocks);
        tiny_trace_free(whole);
    }
    kvc_scenario_destroy(base);
}

/* ---- plug-ins of this build, which lie beside the test programs ---- */

static char folder[128];

static void plugins_do_what_built_ins_do(void **state)
{
    static const char *const names[] = {"lfu", "gdsf", "twoq"};
    struct kvc_scenario *base = replay_base_scenario();

    (void)state;
    for (uint64_t seed = 9000; seed < 9048; seed++) {
        static struct replay_case c;
        const char *name = names[seed % 3];
        struct kvc_result *r[2];

        replay_case_make(&c, seed, (enum case_level)(CASE_REPLICAS + seed % 4), base,
                         replay_kv_bytes(base));
        for (int i = 0; i < 2; i++) {
            struct kvc_trace *t = replay_case_trace(&c);
            char policy[sizeof c.sc.hbm_policy];

            snprintf(policy, sizeof policy, "%.100s/plugins/%s.so", folder, name);
            snprintf(c.sc.hbm_policy, sizeof policy, "%s", i ? policy : name);
            for (int k = 0; k < 3; k++)
                snprintf(c.sc.tiers[k].policy, sizeof policy, "%s", c.sc.hbm_policy);
            r[i] = replay_run_engine(t, &c.sc, false);
            assert_non_null(r[i]);
            tiny_trace_free(t);
        }
        for (uint32_t i = 0; i < c.n; i++)
            if (r[0]->requests[i].e2e_ns != r[1]->requests[i].e2e_ns ||
                memcmp(r[0]->requests[i].hit_tokens, r[1]->requests[i].hit_tokens,
                       sizeof r[0]->requests[i].hit_tokens) != 0)
                fail_msg("seed %llu: request %u under %s", (unsigned long long)seed, i, name);
        kvc_result_destroy(r[0]);
        kvc_result_destroy(r[1]);
    }
    kvc_scenario_destroy(base);
}

static void broken_plugins_end_the_run(void **state)
{
    static const struct {
        const char *plugin, *text;
    } cases[] = {
        {"bad_abi", "version 99 of the plug-in interface"}, {"bad_hook", "the hook victim is "
                                                                         "missing"},
        {"bad_pinned", "the victim it named is pinned"}, {"bad_lost", "has it lost track of "
                                                                      "pieces?"},
        {"bad_dead", "is not resident"}, {"bad_nan", "rank was given NaN"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int tier = 0; tier < (i == 2 ? 1 : 2); tier++) { /* a tier holds nothing then */
            static struct tiny_row rows[128];
            uint64_t rng = kvc_rng_stream(5, "broken");
            uint32_t n = make_prompts(rows, &rng, 6, 9);
            struct kvc_scenario *sc = room_for(8, "lru");
            struct kvc_trace *t = tiny_trace(rows, n, 16, true);
            struct kvc_result *r = NULL;
            struct kvc_error err = {0};
            char path[200];

            snprintf(path, sizeof path, "%s/plugins/%s.so", folder, cases[i].plugin);
            assert_int_equal(kvc_scenario_set(sc, "tiers.dram.capacity", "1GiB", &err), KVC_OK);
            sc->tiers[0].capacity_bytes = 10 * 16 * replay_kv_bytes(sc);
            assert_int_equal(kvc_scenario_set(sc, tier ? "tiers.dram.policy" : "policy", path,
                                              &err),
                             KVC_OK);
            sc->engine.kv_cache_memory_bytes = (16ull * 8 + 2) * replay_kv_bytes(sc);
            if (kvc_replay_run(&r, t, sc, NULL, &err) == KVC_OK)
                fail_msg("%s in tier %d went unnoticed", cases[i].plugin, tier);
            if (!strstr(err.text, cases[i].text))
                fail_msg("%s in tier %d: %s", cases[i].plugin, tier, err.text);
            assert_null(r);
            tiny_trace_free(t);
            kvc_scenario_destroy(sc);
        }
}

int main(int argc, char **argv)
{
    static enum case_level levels[] = {CASE_REPLICAS, CASE_DRAM, CASE_TIERS, CASE_TENANTS};
    const char *slash = argc ? strrchr(argv[0], '/') : NULL;
    const struct CMUnitTest tests[] = {
        {"agrees_on_replicas", agrees, NULL, NULL, &levels[0]},
        {"agrees_on_dram", agrees, NULL, NULL, &levels[1]},
        {"agrees_on_tiers", agrees, NULL, NULL, &levels[2]},
        {"agrees_on_tenants", agrees, NULL, NULL, &levels[3]},
        cmocka_unit_test(agrees_where_it_once_did_not),
        cmocka_unit_test(one_block_hits_as_without_time),
        cmocka_unit_test(whole_prompts_hit_as_without_time),
        cmocka_unit_test(segments_and_jumps_change_nothing),
        cmocka_unit_test(plugins_do_what_built_ins_do),
        cmocka_unit_test(broken_plugins_end_the_run)};

    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - argv[0]) : 1,
             slash ? argv[0] : ".");
    return cmocka_run_group_tests_name("replay_policies", tests, NULL, NULL);
}
