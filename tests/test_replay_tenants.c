/* SPDX-License-Identifier: Apache-2.0
 * Laws of tenants in the replay: sums close, quotas and reservations hold at every event, a salt is
 * a namespace of its own, a tenant that is gone was never there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/replay/engine.h"
#include "tests/replay_case.h"

static struct kvc_scenario *base_scenario(void)
{
    struct kvc_scenario *sc = NULL;

    if (kvc_scenario_create(&sc, NULL, NULL) != KVC_OK ||
        kvc_scenario_set(sc, "model", "llama-3.1-8b", NULL) != KVC_OK ||
        kvc_scenario_set(sc, "cluster.gpu", "h100-sxm", NULL) != KVC_OK)
        abort();
    return sc;
}

static void make_case(struct replay_case *c, uint64_t seed, struct kvc_scenario *base)
{
    enum kvc_dtype kv = KVC_BF16;

    kvc_dtype_parse(base->kv_dtype, &kv);
    replay_case_make(c, seed, CASE_TENANTS, base,
                     kvc_llm_kv_bytes_per_token(kvc_llm_find(base->model), kv, base->cluster.tp));
}

static struct kvc_trace *trace_of(const struct replay_case *c)
{
    struct kvc_trace *t = tiny_trace(c->rows, c->n, c->block_tokens, true);

    tiny_trace_tenants(t, c->rows, c->n);
    return t;
}

static struct kvc_result *replay(const struct kvc_trace *t, const struct kvc_scenario *sc,
                                 const char *what_if)
{
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true,
                                         .what_ifs = &what_if, .n_what_ifs = what_if != NULL};
    struct kvc_result *r = NULL;
    struct kvc_error err = {0};

    if (replay_run_lent(&r, t, sc, &options, &err) != KVC_OK)
        fail_msg("%s: %s", err.field, err.text);
    return r;
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-12))
        fail_msg("%.12g is not %.12g", a, b);
}

/* Tenants are parts of the whole, and what left the tiers is what they lost. */
static void check_sums(const struct kvc_result *r)
{
    struct kvc_tenant_result sum = {0};
    uint64_t lost = 0, missed = 0, left = 0;

    for (uint32_t t = 0; t < r->n_tenants; t++) {
        const struct kvc_tenant_result *k = &r->tenants[t];
        uint64_t tokens = k->hit_tokens;

        sum.requests += k->requests;
        sum.input_tokens += k->input_tokens;
        sum.hit_tokens += k->hit_tokens;
        sum.cost_usd += k->cost_usd;
        sum.resident_bytes_mean += k->resident_bytes_mean;
        for (int c = 0; c < KVC_MISS_CAUSES; c++) {
            tokens += k->missed_tokens[c];
            sum.missed_tokens[c] += k->missed_tokens[c];
        }
        assert_int_equal(tokens, k->input_tokens);
    }
    assert_int_equal(sum.requests, r->arrived);
    assert_int_equal(sum.input_tokens, r->input_tokens);
    assert_int_equal(sum.hit_tokens, r->hit_tokens);
    assert_memory_equal(sum.missed_tokens, r->missed_tokens, sizeof sum.missed_tokens);
    near(sum.cost_usd, r->cost.usd_total);
    for (uint32_t i = 0; i < r->losses.n_groups; i++)
        for (uint32_t c = 0; c < r->losses.n_columns; c++) {
            bool ttl = c == r->losses.n_groups + KVC_WHY_TTL;

            lost += ttl ? 0 : r->losses.bytes[i * r->losses.n_columns + c];
            missed += r->losses.missed_tokens[i * r->losses.n_columns + c];
        }
    for (uint32_t k = 0; k < r->n_tiers; k++)
        left += r->tiers[k].evicted_bytes;
    assert_int_equal(lost, left);
    assert_int_equal(missed, r->missed_tokens[KVC_MISS_EVICTED] + r->missed_tokens[KVC_MISS_TTL]);
    assert_true(isnan(r->jain_hit_rate) == !r->hit_tokens);
    assert_false(r->jain_hit_rate <= 0 || r->jain_hit_rate > 1 + 1e-12);
    assert_false(r->jain_residency <= 0 || r->jain_residency > 1 + 1e-12);
}

static double integral(const struct kvc_result *r, const char *start)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->n_series; i++)
        for (size_t k = 0; !strncmp(r->series[i].name, start, strlen(start)) && k < r->series[i].n;
             k++) {
            const struct kvc_series *s = &r->series[i];
            uint64_t end = k + 1 < s->n ? s->time_ns[k + 1] : r->makespan_ns;

            if (end <= s->time_ns[k]) /* what happened just then counts over a whole stretch */
                end = s->time_ns[k] + (s->n > 1 ? s->time_ns[1] : 1000000);
            sum += s->value[k] * (double)(end - s->time_ns[k]) * 1e-9;
        }
    return sum;
}

static void tenants_are_parts_of_the_whole(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        make_case(&c, seed, base);
        if (seed % 4 == 0) /* tenants, and no rule */
            c.sc.n_tenants = 0;
        struct kvc_trace *t = trace_of(&c);
        struct kvc_result *r = replay(t, &c.sc, NULL);

        check_sums(r);
        near(integral(r, "missed:"), (double)(r->input_tokens - r->hit_tokens));
        near(integral(r, "hit_tokens_per_s:"), (double)r->hit_tokens);
        kvc_result_destroy(r);
        tiny_trace_free(t);
    }
    kvc_scenario_destroy(base);
}

/* ---- at every event ---- */

static void check_pool(const struct kvc_pool *pool, bool tier)
{
    assert_null(kvc_pool_check(pool));
    for (uint32_t c = 0; pool->rules && c < pool->rules->n_classes; c++) {
        const struct kvc_pool_limits *l = &pool->rules->limits[c];
        const struct kvc_pool_class *k = &pool->classes[c];

        if (l->mode != KVC_QUOTA_HARD)
            continue;
        if (tier)
            assert_true(k->used <= l->quota); /* whatever is held or on its way */
        else
            assert_true(k->used <= l->quota || k->queued == 0);
    }
}

static void hard_quotas_hold_at_every_event(void **state)
{
    struct kvc_scenario *base = base_scenario();
    struct kvc_replay_options options = {.struct_size = sizeof options};
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 1000; seed < 1200; seed++) {
        make_case(&c, seed, base);
        struct kvc_trace *t = trace_of(&c);
        struct kvc_engine e = {.trace = t, .sc = &c.sc, .options = &options};

        assert_int_equal(kvc_engine_open(&e, NULL), KVC_OK);
        while (kvc_engine_next(&e)) {
            for (uint32_t i = 0; i < e.n_replicas; i++)
                check_pool(&e.replicas[i].pool, false);
            for (uint32_t k = e.first_tier; k < KVC_LOWER_TIERS; k++)
                for (uint32_t i = 0; i < e.tiers[k].instances; i++)
                    check_pool(&e.tiers[k].pools[i], true);
        }
        assert_int_equal(e.done, c.n);
        kvc_engine_close(&e);
        tiny_trace_free(t);
    }
    kvc_scenario_destroy(base);
}

/* ---- salts ---- */

static void salt_ids(struct tiny_row *row)
{
    for (uint32_t b = 0; b < TINY_BLOCKS; b++) {
        row->ids[b] |= (uint64_t)(row->tenant + 1) << 40;
        row->out[b] |= (uint64_t)(row->tenant + 1) << 40;
    }
}

/* Salted tenants are those whose blocks have names of their own; what was first sight there may
 * be salted here. */
static void a_salt_is_a_namespace(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;
    uint64_t salted = 0;

    (void)state;
    for (uint64_t seed = 2000; seed < 2200; seed++) {
        make_case(&c, seed, base);
        if (strcmp(c.sc.router.policy, "prefix") == 0) /* ties are broken alike */
            assert_true(c.sc.cluster.replicas >= 1);
        struct kvc_trace *t = trace_of(&c);
        struct kvc_result *plain = replay(t, &c.sc, "isolation");

        assert_int_equal(kvc_scenario_set(&c.sc, "tenants.default.salt", "true", NULL), KVC_OK);
        for (int i = 0; i < TINY_TENANTS; i++) {
            char key[32];

            snprintf(key, sizeof key, "tenants.t%d.salt", i);
            assert_int_equal(kvc_scenario_set(&c.sc, key, "true", NULL), KVC_OK);
        }
        struct kvc_result *here = replay(t, &c.sc, NULL);

        tiny_trace_free(t);
        for (uint32_t i = 0; i < c.n; i++)
            salt_ids(&c.rows[i]);
        for (uint32_t i = 0; i < c.sc.n_tenants; i++)
            c.sc.tenants[i].salt[0] = '\0';
        t = trace_of(&c);
        struct kvc_result *there = replay(t, &c.sc, NULL);

        for (uint32_t i = 0; i < c.n; i++)
            assert_memory_equal(&here->requests[i], &there->requests[i], sizeof here->requests[i]);
        for (int k = 0; k < KVC_MISS_CAUSES; k++)
            if (k != KVC_MISS_FIRST_SIGHT && k != KVC_MISS_SALTED && k != KVC_MISS_PARTIAL_BLOCK)
                assert_int_equal(here->missed_tokens[k], there->missed_tokens[k]);
        for (uint32_t i = 0; i < here->n_tenants; i++)
            assert_int_equal(plain->what_ifs[0].rows[i].hit_tokens, here->tenants[i].hit_tokens);
        assert_int_equal(there->missed_tokens[KVC_MISS_SALTED], 0);
        salted += here->missed_tokens[KVC_MISS_SALTED];
        check_sums(here);
        kvc_result_destroy(plain);
        kvc_result_destroy(here);
        kvc_result_destroy(there);
        tiny_trace_free(t);
    }
    assert_true(salted > 1000);
    kvc_scenario_destroy(base);
}

/* ---- without a tenant ---- */

/* The others fare as if its requests had got no answer in the log. */
static void a_tenant_that_is_gone_was_never_there(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 3000; seed < 3200; seed++) {
        make_case(&c, seed, base);
        struct kvc_trace *t = trace_of(&c);
        struct kvc_result *with = replay(t, &c.sc, "noisy=t1");

        tiny_trace_free(t);
        for (uint32_t i = 0; i < c.n; i++)
            c.rows[i].failed |= c.rows[i].tenant == 1;
        t = trace_of(&c);
        struct kvc_result *without = replay(t, &c.sc, NULL);

        assert_int_equal(with->n_what_ifs, 1);
        assert_string_equal(with->what_ifs[0].tenant, "t1");
        for (uint32_t i = 0; i < with->n_tenants; i++) {
            const struct kvc_what_if_row *row = &with->what_ifs[0].rows[i];

            assert_int_equal(row->hit_tokens, without->tenants[i].hit_tokens);
            assert_int_equal(row->requests, i == 1 ? 0 : without->tenants[i].requests);
            assert_memory_equal(&row->ttft_ms, &without->tenants[i].ttft_ms, sizeof row->ttft_ms);
        }
        kvc_result_destroy(with);
        kvc_result_destroy(without);
        tiny_trace_free(t);
    }
    kvc_scenario_destroy(base);
}

/* ---- names ---- */

static void refused(struct kvc_scenario *sc, const struct kvc_trace *t, const char *field,
                    const char *says)
{
    struct kvc_result *r = NULL;
    struct kvc_error err = {0};

    assert_int_not_equal(replay_run_lent(&r, t, sc, NULL, &err), KVC_OK);
    assert_null(r);
    if (strcmp(err.field, field) || !strstr(err.text, says))
        fail_msg("%s: %s", err.field, err.text);
}

static void names_must_be_the_traces(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    make_case(&c, 1, base);
    struct kvc_trace *t = trace_of(&c);

    assert_int_equal(kvc_scenario_set(base, "tenants.tt1.quota", "0.5", NULL), KVC_OK);
    refused(base, t, "tenants.tt1", "did you mean t1?");
    assert_int_equal(kvc_scenario_set(base, "tenants", "null", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(base, "tenants.t1.allow", "t2", NULL), KVC_OK);
    refused(base, t, "tenants.t1.allow", "one way only");
    assert_int_equal(kvc_scenario_set(base, "tenants.t2.allow", "t1", NULL), KVC_OK);
    struct kvc_result *r = replay(t, base, NULL);

    kvc_result_destroy(r);
    assert_int_equal(kvc_scenario_set(base, "tenants.default.salt", "true", NULL), KVC_OK);
    r = replay(t, base, NULL); /* the list stands in its place */
    kvc_result_destroy(r);
    assert_int_equal(kvc_scenario_set(base, "tenants.t2.salt", "true", NULL), KVC_OK);
    refused(base, t, "tenants.t2.allow", "both say with whom");
    assert_int_equal(kvc_scenario_set(base, "tenants", "null", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(base, "tenants.default.allow", "t1", NULL), KVC_OK);
    refused(base, t, "tenants.default.allow", "give each tenant its list");
    assert_int_equal(kvc_scenario_set(base, "tenants", "null", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(base, "tenants.default.reserve", "0.4", NULL), KVC_OK);
    refused(base, t, "tenants", "reservations in hbm");
    tiny_trace_free(t);
    kvc_scenario_destroy(base);
}

/* ---- no memory ---- */

static void no_memory_is_an_error(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;
    const char *what_if = "isolation";
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true,
                                         .what_ifs = &what_if, .n_what_ifs = 1};
    uint64_t refused = 0, cases = 0;

    (void)state;
    for (uint64_t seed = 4000; cases < 2; seed++) {
        struct kvc_result *whole = NULL;

        make_case(&c, seed, base);
        if (!c.sc.tiers[0].present || c.sc.n_tenants < 3 || c.n < 8)
            continue;
        cases++;
        struct kvc_trace *t = trace_of(&c);
        uint64_t before, n;

        assert_int_equal(kvc_scenario_set(&c.sc, "tenants.t1.salt", "true", NULL), KVC_OK);
        struct kvc_step_model *model = replay_step_times(&c.sc);

        before = kvc_alloc_count();
        assert_int_equal(kvc_replay_run_with(&whole, t, &c.sc, &options, model, NULL), KVC_OK);
        n = kvc_alloc_count() - before;
        for (uint64_t k = 1; k <= n; k++) {
            struct kvc_result *r = NULL;

            kvc_alloc_fail_after(k);
            enum kvc_status st = kvc_replay_run_with(&r, t, &c.sc, &options, model, NULL);

            kvc_alloc_fail_after(0);
            if (st == KVC_OK)
                assert_memory_equal(r->requests, whole->requests, c.n * sizeof whole->requests[0]);
            else
                assert_int_equal(st, KVC_ERR_NOMEM);
            assert_true(st == KVC_OK || r == NULL);
            refused += st != KVC_OK;
            kvc_result_destroy(r);
        }
        kvc_result_destroy(whole);
        tiny_trace_free(t);
    }
    assert_true(refused > 400);
    kvc_scenario_destroy(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenants_are_parts_of_the_whole),
        cmocka_unit_test(hard_quotas_hold_at_every_event),
        cmocka_unit_test(a_salt_is_a_namespace),
        cmocka_unit_test(a_tenant_that_is_gone_was_never_there),
        cmocka_unit_test(names_must_be_the_traces),
        cmocka_unit_test(no_memory_is_an_error),
    };

    return cmocka_run_group_tests_name("replay_tenants", tests, NULL, NULL);
}
