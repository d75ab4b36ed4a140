/* SPDX-License-Identifier: Apache-2.0
 * Laws of the engine that no other program is needed for: what it holds after every event, what
 * it reports, and what it does when memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sim/replay/engine.h"
#include "tests/replay_case.h"

#define TRACE "../shared/traces/mooncake/conversation_trace.jsonl.zst"

static void set(struct kvc_scenario *sc, const char *key, const char *value)
{
    struct kvc_error err;

    if (kvc_scenario_set(sc, key, value, &err) != KVC_OK) {
        print_error("%s\n", err.text);
        abort();
    }
}

static struct kvc_scenario *base_scenario(void)
{
    struct kvc_scenario *sc = NULL;

    if (kvc_scenario_create(&sc, NULL, NULL) != KVC_OK)
        abort();
    set(sc, "model", "llama-3.1-8b");
    set(sc, "cluster.gpu", "h100-sxm");
    return sc;
}

/* A case of the level on one GPU a replica, or two. */
static void make_case(struct replay_case *c, uint64_t seed, enum case_level level,
                      struct kvc_scenario *base)
{
    enum kvc_dtype kv = KVC_BF16;

    kvc_dtype_parse(base->kv_dtype, &kv);
    base->cluster.tp = seed % 3 == 2 ? 2 : 1;
    replay_case_make(c, seed, level, base,
                     kvc_llm_kv_bytes_per_token(kvc_llm_find(base->model), kv, base->cluster.tp));
}

static enum kvc_status replay(struct kvc_result **out, const struct kvc_trace *t,
                              const struct kvc_scenario *sc)
{
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};

    return replay_run_lent(out, t, sc, &options, NULL);
}

static uint64_t hits_and_causes(const struct kvc_result *r)
{
    uint64_t n = r->hit_tokens;

    for (int k = 0; k < KVC_MISS_CAUSES; k++)
        n += r->missed_tokens[k];
    return n;
}

/* ---- pools ---- */

static void check_pool(const struct kvc_pool *pool, uint64_t seed)
{
    const char *wrong = kvc_pool_check(pool);

    if (wrong)
        fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
    assert_true(kvc_pool_available(pool) <= pool->pages); /* nor below nothing */
}

static void check_pools(const struct kvc_engine *e, uint64_t seed)
{
    for (uint32_t i = 0; i < e->n_replicas; i++)
        check_pool(&e->replicas[i].pool, seed);
    for (uint32_t t = 0; t < KVC_LOWER_TIERS; t++)
        for (uint32_t i = 0; e->tiers[t].pools && i < e->tiers[t].instances; i++)
            check_pool(&e->tiers[t].pools[i], seed);
}

/* When all is done and written, nobody holds anything. */
static void check_nothing_held(const struct kvc_engine *e)
{
    for (uint32_t i = 0; i < e->n_replicas; i++)
        assert_int_equal(kvc_pool_available(&e->replicas[i].pool), e->replicas[i].pool.pages);
    for (uint32_t t = 0; t < KVC_LOWER_TIERS; t++)
        for (uint32_t i = 0; e->tiers[t].pools && i < e->tiers[t].instances; i++)
            assert_int_equal(kvc_pool_available(&e->tiers[t].pools[i]),
                             e->tiers[t].pools[i].pages);
}

static void pools_hold_together(void **state)
{
    struct kvc_scenario *base = base_scenario();
    struct kvc_replay_options options = {.struct_size = sizeof options};
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct kvc_trace *t;

        make_case(&c, seed, seed % 4 ? CASE_TIERS : CASE_REPLICAS, base);
        t = replay_case_forest(&c);
        options.step_by_step = seed % 2;
        struct kvc_engine e = {.trace = t, .sc = &c.sc, .options = &options};

        assert_int_equal(kvc_engine_open(&e, NULL), KVC_OK);
        while (kvc_engine_next(&e))
            check_pools(&e, seed);
        assert_int_equal(e.done, c.n);
        struct kvc_flow_end end; /* writes that nobody waited for */

        for (uint64_t at; (at = kvc_links_next(e.links)) != KVC_TIME_NONE;)
            for (e.now = at; kvc_links_pop(e.links, at, &end);)
                kvc_tiers_transfer_done(&e, (uint32_t)end.tag);
        check_pools(&e, seed);
        check_nothing_held(&e);
        kvc_engine_close(&e);
        kvc_trace_destroy(t);
    }
    kvc_scenario_destroy(base);
}

/* ---- Little's law ---- */

static double integral(const struct kvc_result *r, const char *name)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->n_series; i++) {
        const struct kvc_series *s = &r->series[i];

        for (size_t k = 0; k < s->n && strcmp(s->name, name) == 0; k++) {
            uint64_t end = k + 1 < s->n ? s->time_ns[k + 1] : r->makespan_ns;

            if (end > s->time_ns[k])
                sum += s->value[k] * (double)(end - s->time_ns[k]) * 1e-9;
        }
    }
    return sum;
}

/* Requests in the system over time are the times that requests spend in it. The front end's time
 * is outside. */
static void littles_law(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 1000; seed < 1200; seed++) {
        struct kvc_result *r = NULL;
        struct twin_setup setup;
        struct kvc_trace *t;
        double in_system, spent = 0;

        make_case(&c, seed, (enum case_level)(seed % 4), base);
        c.sc.request_timeout_ns = 0;
        t = replay_case_forest(&c);
        assert_int_equal(replay(&r, t, &c.sc), KVC_OK);
        assert_true(twin_setup_from_scenario(&setup, &c.sc));
        for (uint32_t i = 0; i < c.n; i++)
            if (r->requests[i].outcome == KVC_COMPLETED)
                spent += (double)(r->requests[i].e2e_ns - setup.clock.front_ns) * 1e-9;
        in_system = integral(r, "running") + integral(r, "waiting");
        if (fabs(in_system - spent) > 1e-6 * spent + 1e-9)
            fail_msg("seed %llu: %.9f s in the series, %.9f s in the requests",
                     (unsigned long long)seed, in_system, spent);
        kvc_result_destroy(r);
        kvc_trace_destroy(t);
    }
    kvc_scenario_destroy(base);
}

/* ---- more GPUs, other scopes, named links ---- */

/* A tier per GPU of half the size is a tier per replica of two GPUs. */
static void per_gpu_is_a_share(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;
    uint64_t hits = 0;

    (void)state;
    for (uint64_t seed = 2; seed < 302; seed += 3) { /* two GPUs a replica */
        struct kvc_result *whole = NULL, *shares = NULL;
        struct kvc_trace *t;

        make_case(&c, seed, CASE_TIERS, base);
        t = replay_case_forest(&c);
        for (int k = 0; k < 3; k++) {
            c.sc.tiers[k].scope = KVC_PER_REPLICA;
            c.sc.tiers[k].capacity_bytes &= ~(uint64_t)1;
        }
        assert_int_equal(replay(&whole, t, &c.sc), KVC_OK);
        for (int k = 0; k < 3; k++) {
            c.sc.tiers[k].scope = KVC_PER_GPU;
            c.sc.tiers[k].capacity_bytes /= 2;
        }
        assert_int_equal(replay(&shares, t, &c.sc), KVC_OK);
        assert_memory_equal(whole->requests, shares->requests, c.n * sizeof whole->requests[0]);
        hits += whole->hit_tokens - whole->tiers[0].hit_tokens;
        kvc_result_destroy(whole);
        kvc_result_destroy(shares);
        kvc_trace_destroy(t);
    }
    assert_true(hits > 100);
    kvc_scenario_destroy(base);
}

/* ---- no memory ---- */

/* Each stride-th allocation fails; how many of the runs said so. model NULL: built anew each
 * time. */
static uint64_t fail_each(const struct replay_case *c, struct kvc_step_model *model,
                          uint64_t stride)
{
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    struct kvc_trace *t = replay_case_forest(c);
    struct kvc_result *whole = NULL;
    uint64_t n, refused = 0, before = kvc_alloc_count();

    assert_int_equal(kvc_replay_run_with(&whole, t, &c->sc, &options, model, NULL), KVC_OK);
    n = kvc_alloc_count() - before;
    for (uint64_t k = 1; k <= n; k += stride) {
        struct kvc_result *r = NULL;

        kvc_alloc_fail_after(k);
        enum kvc_status st = kvc_replay_run_with(&r, t, &c->sc, &options, model, NULL);

        kvc_alloc_fail_after(0);
        if (st == KVC_OK) /* done without */
            assert_memory_equal(r->requests, whole->requests, c->n * sizeof whole->requests[0]);
        else
            assert_int_equal(st, KVC_ERR_NOMEM);
        assert_true(st == KVC_OK || r == NULL);
        refused += st != KVC_OK;
        kvc_result_destroy(r);
    }
    kvc_result_destroy(whole);
    kvc_trace_destroy(t);
    return refused;
}

static void no_memory_is_an_error(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;
    uint64_t refused = 0;

    (void)state;
    for (uint64_t seed = 0, cases = 0; cases < 4; seed++) {
        make_case(&c, seed, CASE_TIERS, base);
        if (!c.sc.tiers[0].present || !c.sc.tiers[1].present || c.n < 8)
            continue;
        cases++;
        refused += fail_each(&c, replay_step_times(&c.sc), 1);
        refused += fail_each(&c, NULL, 97);
    }
    assert_true(refused > 400);
    kvc_scenario_destroy(base);
}

/* ---- bounds ---- */

/* In what order ever requests were admitted, and on however many replicas. */
static void bounds_are_not_beaten(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;
    const char *cases = getenv("KVC_TEST_CASES"), *first = getenv("KVC_TEST_SEED");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0, gaps = 0;
    uint64_t n = cases ? strtoull(cases, NULL, 10) : 600;

    (void)state;
    for (uint64_t seed = from; seed < from + n; seed++) {
        struct kvc_result *r = NULL;

        make_case(&c, seed, (enum case_level)(seed % (CASE_RULES + 1)), base);
        struct kvc_trace *t = replay_case_forest(&c);
        assert_int_equal(replay_run_lent(&r, t, &c.sc, NULL, NULL), KVC_OK);
        double reached = (double)r->hit_tokens / (double)r->input_tokens;
        double optimum = r->capacity_token_hit_rate;
        if (reached > optimum + 1e-9 || optimum > r->content_token_hit_rate + 1e-9)
            fail_msg("seed %llu: content %g, optimum %g, reached %g", (unsigned long long)seed,
                     r->content_token_hit_rate, optimum, reached);
        gaps += optimum > reached + 1e-9;
        kvc_result_destroy(r);
        kvc_trace_destroy(t);
    }
    assert_true(gaps >= n / 2);
    kvc_scenario_destroy(base);
}

/* ---- traffic of real shape ---- */

/* Two replicas of two GPUs, small tiers, so that all of them evict. */
static struct kvc_scenario *pressed_scenario(void)
{
    static const char *const keys[][2] = {
        {"model", "llama-3.1-8b"}, {"cluster.gpu", "h100-sxm"}, {"cluster.tp", "2"},
        {"cluster.replicas", "2"}, {"arrivals.scale", "0.25"}, {"tiers.dram.capacity", "24GiB"},
        {"tiers.nvme.capacity", "48GiB"}, {"tiers.remote.capacity", "96GiB"}};
    struct kvc_scenario *sc = NULL;

    if (kvc_scenario_create(&sc, NULL, NULL) != KVC_OK)
        abort();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        set(sc, keys[i][0], keys[i][1]);
    return sc;
}

static void check_tiers(const struct kvc_engine *e, uint64_t *evicted)
{
    uint64_t block_bytes = e->token_bytes * e->block_tokens;

    for (uint32_t t = 0; t < KVC_LOWER_TIERS; t++)
        for (uint32_t i = 0; i < e->tiers[t].instances; i++) {
            const struct kvc_pool *pool = &e->tiers[t].pools[i];

            assert_true(pool->peak_used * block_bytes <= e->sc->tiers[t].capacity_bytes);
            assert_null(kvc_pool_check(pool));
            evicted[t] += pool->evicted_blocks;
        }
}

static void real_traffic_keeps_the_laws(void **state)
{
    struct kvc_scenario *sc;
    struct kvc_trace *t = NULL;
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};

    (void)state;
    if (access(TRACE, R_OK) != 0) {
        print_message("skipped: " TRACE " is not there\n");
        skip();
    }
    assert_int_equal(kvc_trace_open(&t, TRACE, NULL, NULL, NULL), KVC_OK);
    sc = pressed_scenario();
    uint64_t evicted[KVC_LOWER_TIERS] = {0};
    for (int run = 0; run < 8; run++) { /* each tier meets each mode, with both policies */
        uint64_t input = 0;
        struct kvc_result *r = NULL;

        for (int k = 0; k < 3; k++) {
            sc->tiers[k].write = (enum kvc_write_mode)((run + k * (1 + run / 4)) % 4);
            snprintf(sc->tiers[k].policy, sizeof sc->tiers[k].policy,
                     (run + k) % 3 ? "lru" : "fifo");
            sc->tiers[k].inclusive = (run + k) % 2 == 0;
        }
        struct kvc_engine e = {.trace = t, .sc = sc, .options = &options};

        assert_int_equal(kvc_engine_open(&e, NULL), KVC_OK);
        while (kvc_engine_next(&e))
            ;
        assert_int_equal(e.done, t->n_requests);
        check_tiers(&e, evicted);
        assert_int_equal(kvc_collect(&e, &r, NULL), KVC_OK);
        for (uint64_t i = 0; i < t->n_requests; i++)
            input += t->input_tokens[i];
        assert_int_equal(hits_and_causes(r), input);
        kvc_result_destroy(r);
        kvc_engine_close(&e);
    }
    for (int k = 0; k < KVC_LOWER_TIERS; k++)
        assert_true(evicted[k] > 10000);
    kvc_scenario_destroy(sc);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_hold_together),
        cmocka_unit_test(littles_law),
        cmocka_unit_test(per_gpu_is_a_share),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(bounds_are_not_beaten),
        cmocka_unit_test(real_traffic_keeps_the_laws),
    };

    return cmocka_run_group_tests_name("replay_laws", tests, NULL, NULL);
}
