/* SPDX-License-Identifier: Apache-2.0
 * What a result's figures must obey whatever the traffic: nothing leaves or goes unread that was
 * not written, nothing is busy for longer than there was time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/profiles.h"
#include "tests/replay_case.h"

#define YEAR_NS (365ull * 86400 * 1000000000)

static struct kvc_scenario *base_scenario(void)
{
    static const char *const keys[][2] = {{"model", "llama-3.1-8b"}, {"cluster.gpu", "h100-sxm"}};
    struct kvc_scenario *sc = NULL;

    assert_int_equal(kvc_scenario_create(&sc, NULL, NULL), KVC_OK);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(kvc_scenario_set(sc, keys[i][0], keys[i][1], NULL), KVC_OK);
    return sc;
}

static uint64_t kv_bytes(const struct kvc_scenario *sc)
{
    return kvc_llm_kv_bytes_per_token(kvc_llm_find(sc->model), KVC_BF16, sc->cluster.tp);
}

static struct kvc_result *run_case(const struct replay_case *c)
{
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    struct kvc_trace *t = tiny_trace(c->rows, c->n, c->block_tokens, true);
    struct kvc_result *r = NULL;

    assert_int_equal(replay_run_lent(&r, t, &c->sc, &options, NULL), KVC_OK);
    tiny_trace_free(t);
    return r;
}

static void check_figures(const struct kvc_result *r)
{
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        const struct kvc_tier_result *t = &r->tiers[i];

        assert_true(t->peak_bytes <= t->capacity_bytes);
        assert_true(t->evicted_bytes <= t->written_bytes);
        assert_true(t->never_read_bytes <= t->written_bytes);
    }
    for (uint32_t i = 0; i < r->n_links; i++) {
        assert_true(r->links[i].busy_fraction >= 0 && r->links[i].busy_fraction <= 1 + 1e-9);
        assert_true(r->links[i].mean_bytes_per_s <=
                    r->links[i].capacity_bytes_per_s * (1 + 1e-9) + 1);
    }
    for (uint32_t i = 0; i < r->n_replicas; i++)
        assert_true(r->replicas[i].busy_fraction >= 0 && r->replicas[i].busy_fraction <= 1 + 1e-9);
}

static void random_cases(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++) {
        replay_case_make(&c, seed, (enum case_level)(seed % 4), base, kv_bytes(base));
        struct kvc_result *r = run_case(&c);
        check_figures(r);
        kvc_result_destroy(r);
    }
    kvc_scenario_destroy(base);
}

static double integral_s(const struct kvc_result *r, const char *name)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->n_series; i++) {
        const struct kvc_series *s = &r->series[i];

        for (size_t k = 0; strcmp(s->name, name) == 0 && k < s->n; k++) {
            uint64_t end = k + 1 < s->n ? s->time_ns[k + 1] : r->makespan_ns;

            sum += s->value[k] * (double)(end - s->time_ns[k]) * 1e-9;
        }
    }
    return sum;
}

/* Little's law, L = lambda W: the number in the system, summed over time, is the time that all
 * requests spend in it. The one comes from the series, the other from the requests' own figures. */
static void littles_law(void **state)
{
    struct kvc_scenario *base = base_scenario();
    double front_s = kvc_engine_find("vllm")->front_end_ns.value * 1e-9;
    static struct replay_case c;
    uint32_t cases = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        double spent_s = 0;

        replay_case_make(&c, seed, (enum case_level)(seed % 4), base, kv_bytes(base));
        c.sc.request_timeout_ns = 0;
        struct kvc_result *r = run_case(&c);
        for (uint64_t i = 0; i < r->n_requests; i++)
            if (r->requests[i].outcome == KVC_COMPLETED)
                spent_s += (double)r->requests[i].e2e_ns * 1e-9 - front_s;
        double in_system = integral_s(r, "running") + integral_s(r, "waiting");
        /* up to 1,000 buckets and some hundred events, each rounded to a double */
        assert_true(fabs(in_system - spent_s) <= 1e-11 * (1 + spent_s));
        cases += spent_s > 0;
        kvc_result_destroy(r);
    }
    assert_true(cases > 300);
    kvc_scenario_destroy(base);
}

/* No run serves more than an infinite cache that nothing has to reach in time. */
static void content_bounds_every_run(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct kvc_replay_options options = {.struct_size = sizeof options};
        struct kvc_result *r = NULL;

        replay_case_make(&c, seed, (enum case_level)(seed % 4), base, kv_bytes(base));
        struct kvc_trace *t = tiny_trace(c.rows, c.n, c.block_tokens, true);
        assert_int_equal(replay_run_lent(&r, t, &c.sc, &options, NULL), KVC_OK);
        if (r->has_prefix)
            assert_true((double)r->hit_tokens <=
                        r->content_token_hit_rate * (double)r->input_tokens + 1e-6);
        kvc_result_destroy(r);
        tiny_trace_free(t);
    }
    kvc_scenario_destroy(base);
}

/* Where each node has one replica, a tier of a node and one of a replica are the same, also with
 * more nodes than a 64-bit mask has bits. */
static void many_nodes(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kvc_result *r[2];

        replay_case_make(&c, seed, CASE_DRAM, base, kv_bytes(base));
        c.sc.cluster.replicas = 20;
        c.sc.cluster.gpus_per_node = 1;
        c.sc.cluster.tp = 4; /* nodes 0, 4, 8 .. 76 */
        for (int i = 0; i < 2; i++) {
            c.sc.tiers[0].scope = i ? KVC_PER_NODE : KVC_PER_REPLICA;
            r[i] = run_case(&c);
        }
        assert_memory_equal(r[0]->missed_tokens, r[1]->missed_tokens,
                            sizeof r[0]->missed_tokens);
        for (uint32_t k = 0; k < c.n; k++)
            assert_memory_equal(&r[0]->requests[k], &r[1]->requests[k],
                                sizeof r[0]->requests[k]);
        kvc_result_destroy(r[0]);
        kvc_result_destroy(r[1]);
    }
    kvc_scenario_destroy(base);
}

/* Times that 64 bits can't add are refused with the cure, not with "out of memory". */
static void centuries(void **state)
{
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    struct kvc_scenario *sc = base_scenario();
    struct tiny_row rows[2] = {
        {.input_tokens = 4, .output_tokens = 2, .session = KVC_ID_NONE,
         .think_ns = KVC_TIME_NONE, .n_ids = 1, .ids = {1}},
        {.input_tokens = 4, .output_tokens = 2, .session = KVC_ID_NONE,
         .think_ns = KVC_TIME_NONE, .n_ids = 1, .ids = {1}, .time_ns = 200 * YEAR_NS}};
    struct kvc_trace *t = tiny_trace(rows, 2, 4, true);
    const double scale[] = {1, 1e-6, 2};

    (void)state;
    sc->tiers[0].present = true;
    sc->tiers[0].capacity_bytes = 1u << 30;
    for (int i = 0; i < 3; i++) {
        struct kvc_result *r = NULL;
        struct kvc_error err = {0};

        sc->arrivals.scale = scale[i];
        assert_int_equal(replay_run_lent(&r, t, sc, &options, &err),
                         i == 2 ? KVC_OK : KVC_ERR_LIMIT);
        if (i < 2)
            assert_non_null(strstr(err.text, "arrivals.scale"));
        kvc_result_destroy(r);
    }
    tiny_trace_free(t);
    kvc_scenario_destroy(sc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_cases),
        cmocka_unit_test(littles_law),
        cmocka_unit_test(content_bounds_every_run),
        cmocka_unit_test(many_nodes),
        cmocka_unit_test(centuries),
    };

    return cmocka_run_group_tests_name("replay_figures", tests, NULL, NULL);
}
