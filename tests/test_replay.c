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

#include "tests/replay_case.h"

#define SEC 1000000000ull

static struct kvc_scenario *base_scenario(void)
{
    struct kvc_scenario *sc = NULL;
    struct kvc_error err;

    if (kvc_scenario_create(&sc, NULL, &err) != KVC_OK ||
        kvc_scenario_set(sc, "model", "llama-3.1-8b", &err) != KVC_OK ||
        kvc_scenario_set(sc, "cluster.gpu", "h100-sxm", &err) != KVC_OK ||
        kvc_scenario_set(sc, "engine.max_batched_tokens", "8192", &err) != KVC_OK) {
        print_error("%s\n", err.text);
        abort();
    }
    return sc;
}

static uint64_t kv_bytes(const struct kvc_scenario *sc)
{
    enum kvc_dtype kv = KVC_BF16;

    kvc_dtype_parse(sc->kv_dtype, &kv);
    return kvc_llm_kv_bytes_per_token(kvc_llm_find(sc->model), kv, sc->cluster.tp);
}

static struct kvc_result *run_engine(const struct kvc_trace *t, const struct kvc_scenario *sc,
                                     bool step_by_step)
{
    struct kvc_replay_options options = {.struct_size = sizeof options,
                                         .step_by_step = step_by_step, .skip_bounds = true};
    struct kvc_result *result = NULL;
    struct kvc_error err = {0};

    if (kvc_replay_run(&result, t, sc, &options, &err) != KVC_OK) {
        print_error("replay: %s: %s\n", err.field, err.text);
        return NULL;
    }
    return result;
}

/* ---- vLLM's executed examples ---- */

static struct tiny_row row(uint64_t time_ns, uint32_t tokens, const char *blocks)
{
    struct tiny_row r = {.time_ns = time_ns, .input_tokens = tokens, .output_tokens = 1,
                         .session = KVC_ID_NONE, .think_ns = KVC_TIME_NONE};

    for (; *blocks; blocks++)
        r.ids[r.n_ids++] = (uint64_t)(unsigned char)*blocks;
    if (r.n_ids * 4 < tokens)
        r.ids[r.n_ids++] = 1000 + time_ns;
    return r;
}

static void expect_hits(const struct tiny_row *rows, uint32_t n, uint64_t pages,
                        const uint32_t *hits)
{
    struct kvc_scenario *sc = base_scenario();
    struct kvc_trace *t = tiny_trace(rows, n, 4, true);
    struct kvc_result *result;

    sc->engine.page_tokens = 4;
    sc->engine.kv_cache_memory_bytes = (pages + 1) * 4 * kv_bytes(sc);
    result = run_engine(t, sc, false);
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
    const struct tiny_row rows[] = {row(0, 12, "abc"),       row(1 * SEC, 12, "abc"),
                                    row(2 * SEC, 13, "abc"), row(3 * SEC, 12, "xyz"),
                                    row(4 * SEC, 13, "abc"), row(5 * SEC, 13, "xyz")};
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
        rows[i] = row(i * SEC, 9, seq[i]);
    expect_hits(rows, 8, 7, hits);
}

static void v3_same_step(void **state)
{
    struct tiny_row rows[] = {row(0, 9, "ab"), row(0, 9, "ab"), row(0, 11, "ab")};
    const uint32_t hits[] = {0, 8, 8};

    (void)state;
    rows[1].ids[2] = 2001;
    rows[2].ids[2] = 2002;
    expect_hits(rows, 3, 100, hits);
}

static void v4_multi_turn(void **state)
{
    struct tiny_row rows[] = {row(0, 10, "ab"), row(1 * SEC, 19, "abcd")};
    const uint32_t hits[] = {0, 12};

    (void)state;
    rows[0].output_tokens = 6;
    rows[0].n_out = 4;
    memcpy(rows[0].out, rows[1].ids, 4 * sizeof rows[0].out[0]);
    expect_hits(rows, 2, 100, hits);
}

/* ---- the twin ---- */

#define DIFF(what, mine, its)                                                                     \
    if ((uint64_t)(mine) != (uint64_t)(its)) {                                                    \
        snprintf(text, size, "%s of request %u: twin %lld, engine %lld", what, i,                 \
                 (long long)(mine), (long long)(its));                                            \
        return true;                                                                              \
    }

static bool rows_differ(const struct kvc_request_result *a, const struct kvc_request_result *b,
                        uint32_t n, char *text, size_t size)
{
    for (uint32_t i = 0; i < n; i++) {
        DIFF("outcome", a[i].outcome, b[i].outcome)
        DIFF("arrival", a[i].arrival_ns, b[i].arrival_ns)
        if (a[i].outcome != KVC_UNSERVABLE)
            DIFF("replica", a[i].replica, b[i].replica)
        for (int k = 0; k < 4; k++)
            DIFF("hits", a[i].hit_tokens[k], b[i].hit_tokens[k])
        DIFF("ttft", a[i].ttft_ns, b[i].ttft_ns)
        DIFF("e2e", a[i].e2e_ns, b[i].e2e_ns)
        DIFF("recomputed", a[i].recomputed_tokens, b[i].recomputed_tokens)
        DIFF("measured", a[i].measured, b[i].measured)
        if (a[i].outcome != KVC_COMPLETED)
            continue;
        DIFF("queue part", a[i].queue_ns, b[i].queue_ns)
        DIFF("route part", a[i].route_ns, b[i].route_ns)
        DIFF("load part", a[i].load_ns, b[i].load_ns)
        DIFF("host part", a[i].host_ns, b[i].host_ns)
        DIFF("prefill part", a[i].prefill_ns, b[i].prefill_ns)
    }
    return false;
}

/* Who lost what to whom. (A block smaller than a page may have none, and then no place in what goes
 * next.) */
static bool losses_differ(const struct twin_result *a, const struct kvc_result *b, char *text,
                          size_t size)
{
    uint32_t columns = a->n_tenants + TWIN_WHYS;

    for (uint32_t i = 0; b->losses.n_groups && i < a->n_tenants; i++) {
        uint32_t row = b->tenants[i].group * b->losses.n_columns;

        for (uint32_t j = 0; j < columns; j++) {
            uint32_t at = row + (j < a->n_tenants ? b->tenants[j].group : j);

            DIFF("bytes lost", a->evicted_blocks[i * columns + j] * b->block_bytes,
                 b->losses.bytes[at])
            DIFF("tokens missed for a loss", a->missed_to[i * columns + j],
                 b->losses.missed_tokens[at])
        }
    }
    return false;
}

static const char *const names[] = {"hbm", "dram", "nvme", "remote"};

static bool refused_differ(const struct twin_result *a, const struct kvc_result *b, char *text,
                           size_t size)
{
    for (uint32_t i = 1; i < b->n_tiers; i++)
        for (uint32_t j = 0; j < 3; j++)
            if (strcmp(names[1 + j], b->tiers[i].name) == 0)
                DIFF("bytes refused", a->tier_refused_blocks[j] * b->block_bytes,
                     b->tiers[i].refused_bytes)
    return false;
}

static bool totals_differ(const struct twin_result *a, const struct kvc_result *b, char *text,
                          size_t size)
{
    uint64_t preemptions = 0, peak = 0;

    for (uint32_t i = 0; i < KVC_MISS_CAUSES; i++)
        DIFF("missed tokens by cause", a->missed[i], b->missed_tokens[i])
    for (uint32_t i = 0; i < b->n_replicas; i++) {
        preemptions += b->replicas[i].preemptions;
        peak = b->replicas[i].peak_running > peak ? b->replicas[i].peak_running : peak;
    }
    for (uint32_t i = 0; i < 1; i++) {
        DIFF("a law of the twin's", a->wrong != NULL, 0)
        DIFF("preemptions", a->preemptions, preemptions)
        DIFF("peak running", a->peak_running, peak)
    }
    return refused_differ(a, b, text, size);
}

/* The engine lists the tiers that are there; the twin counts by kind. */
static void spread_hits(struct kvc_result *r)
{

    for (uint64_t i = 0; i < r->n_requests; i++) {
        uint32_t hits[4] = {0};

        for (uint32_t k = 0; k < r->n_tiers; k++)
            for (int j = 0; j < 4; j++)
                if (strcmp(names[j], r->tiers[k].name) == 0)
                    hits[j] = r->requests[i].hit_tokens[k];
        memcpy(r->requests[i].hit_tokens, hits, sizeof hits);
    }
}

static struct kvc_trace *case_trace(const struct replay_case *c)
{
    struct kvc_trace *t = tiny_trace(c->rows, c->n, c->block_tokens, true);

    if (c->level == CASE_TENANTS)
        tiny_trace_tenants(t, c->rows, c->n);
    return t;
}

/* Runs both engines and the twin; false when all agree, else says where not. */
static bool case_differs(const struct replay_case *c, char *text, size_t size)
{
    struct kvc_trace *t = case_trace(c);
    struct kvc_trace *f = c->seed % 2 ? replay_case_forest(c) : NULL;
    struct kvc_step_model *model = NULL;
    struct twin_setup setup;
    struct twin_result twin;
    struct kvc_result *jump, *step;
    bool differs = false;

    if (!twin_setup_from_scenario(&setup, &c->sc, &model))
        abort();
    replay_twin_run(t, &c->sc, &setup, &twin);
    if (!twin.stalled) {
        jump = run_engine(f ? f : t, &c->sc, false);
        step = run_engine(t, &c->sc, true);
        if (!jump || !step) {
            snprintf(text, size, "the engine failed");
            differs = true;
        } else {
            spread_hits(jump);
            spread_hits(step);
            differs = rows_differ(twin.requests, step->requests, c->n, text, size) ||
                      totals_differ(&twin, step, text, size) ||
                      (c->sc.engine.page_tokens <= c->block_tokens &&
                       losses_differ(&twin, step, text, size));
            if (!differs && (rows_differ(twin.requests, jump->requests, c->n, text, size) ||
                             totals_differ(&twin, jump, text, size))) {
                strncat(text, " (jumping)", size - strlen(text) - 1);
                differs = true;
            }
        }
        kvc_result_destroy(jump);
        kvc_result_destroy(step);
    }
    replay_twin_clear(&twin);
    kvc_step_model_destroy(model);
    tiny_trace_free(t);
    kvc_trace_destroy(f);
    return differs;
}

static void drop_row(struct replay_case *c, uint32_t at)
{
    uint64_t first;

    memmove(&c->rows[at], &c->rows[at + 1], (c->n - at - 1) * sizeof c->rows[0]);
    memmove(&c->origin[at], &c->origin[at + 1], (c->n - at - 1) * sizeof c->origin[0]);
    c->n--;
    first = c->rows[0].time_ns;
    for (uint32_t i = 0; i < c->n; i++)
        c->rows[i].time_ns -= first;
    for (uint32_t i = 0, next = 0; i < c->n; i++) { /* sessions stay dense */
        uint32_t old = c->rows[i].session;

        if (old == KVC_ID_NONE || old < next)
            continue;
        for (uint32_t j = i; j < c->n; j++)
            if (c->rows[j].session == old)
                c->rows[j].session = next;
            else if (c->rows[j].session == next)
                c->rows[j].session = old;
        next++;
    }
}

static void shrink(struct replay_case *c)
{
    char text[256];
    bool smaller = true;

    while (smaller) {
        smaller = false;
        for (uint32_t i = c->n; i-- > 0 && c->n > 1;) {
            struct replay_case less = *c;

            drop_row(&less, i);
            if (case_differs(&less, text, sizeof text)) {
                *c = less;
                smaller = true;
            }
        }
    }
}

/* Of each level. KVC_TEST_CASES, KVC_TEST_SEED and KVC_TEST_LEVEL choose others. */
#define CASES 200

static void agree(enum case_level level, uint64_t n)
{
    struct kvc_scenario *base = base_scenario();
    const char *from = getenv("KVC_TEST_SEED"), *many = getenv("KVC_TEST_CASES");
    const char *only = getenv("KVC_TEST_LEVEL");
    uint64_t seed = from ? strtoull(from, NULL, 10) : 1, failed = 0;
    char text[256];

    if (only && strtoul(only, NULL, 10) != level) {
        kvc_scenario_destroy(base);
        skip();
    }
    n = many ? strtoull(many, NULL, 10) : n;
    for (uint64_t i = 0; i < n && failed < 3; i++) {
        struct replay_case c;

        base->cluster.tp = (seed + i) % 4 == 3 ? 2 : 1;
        replay_case_make(&c, seed + i, level, base, kv_bytes(base));
        if (!case_differs(&c, text, sizeof text))
            continue;
        shrink(&c);
        case_differs(&c, text, sizeof text);
        replay_case_print(&c);
        fflush(stdout);
        print_error("seed %llu level %d: %s\n", (unsigned long long)(seed + i), level, text);
        failed++;
    }
    kvc_scenario_destroy(base);
    assert_int_equal(failed, 0);
}

static void agrees_on_one_replica(void **state)
{
    (void)state;
    agree(CASE_ONE_REPLICA, CASES);
}

static void agrees_on_replicas(void **state)
{
    (void)state;
    agree(CASE_REPLICAS, CASES);
}

static void agrees_on_dram(void **state)
{
    (void)state;
    agree(CASE_DRAM, CASES);
}

static void agrees_on_tiers(void **state)
{
    (void)state;
    agree(CASE_TIERS, CASES);
}

static void agrees_on_tenants(void **state)
{
    (void)state;
    agree(CASE_TENANTS, CASES);
}

/* ---- laws ---- */

static struct kvc_result *run_case(const struct replay_case *c)
{
    struct kvc_trace *t = case_trace(c);
    struct kvc_result *result = run_engine(t, &c->sc, false);

    assert_non_null(result);
    tiny_trace_free(t);
    return result;
}

static void hits_and_causes_are_all_input(void **state)
{
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct kvc_result *r;
        uint64_t found = 0, input = 0, hits = 0;

        replay_case_make(&c, seed, (enum case_level)(seed % 4), base, kv_bytes(base));
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
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct kvc_result *a, *b, *warm;

        replay_case_make(&c, seed, (enum case_level)(seed % 4), base, kv_bytes(base));
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
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct kvc_result *with, *without;

        replay_case_make(&c, seed, CASE_DRAM, base, kv_bytes(base));
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
    struct kvc_scenario *base = base_scenario();
    static struct replay_case c;
    uint64_t shorter = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct kvc_result *slow, *fast;

        replay_case_make(&c, seed, seed % 2 ? CASE_DRAM : CASE_TIERS, base, kv_bytes(base));
        c.sc.arrivals.mode = KVC_ARRIVALS_OPEN;
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

static void oversized_requests_end(void **state)
{
    struct kvc_scenario *sc = base_scenario();
    struct tiny_row rows[3] = {row(0, 4, "a"), row(1, 4, "a"), row(2, 8, "ab")};
    struct kvc_trace *t;
    struct kvc_result *r;

    (void)state;
    rows[0].input_tokens = 4000000000u;
    rows[1].output_tokens = 4000000000u;
    t = tiny_trace(rows, 3, 4, true);
    sc->engine.page_tokens = 4;
    sc->engine.kv_cache_memory_bytes = 4 * 4 * kv_bytes(sc);
    r = run_engine(t, sc, false);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v1_duplicates_and_order),
        cmocka_unit_test(v2_free_order),
        cmocka_unit_test(v3_same_step),
        cmocka_unit_test(v4_multi_turn),
        cmocka_unit_test(agrees_on_one_replica),
        cmocka_unit_test(agrees_on_replicas),
        cmocka_unit_test(agrees_on_dram),
        cmocka_unit_test(agrees_on_tiers),
        cmocka_unit_test(agrees_on_tenants),
        cmocka_unit_test(hits_and_causes_are_all_input),
        cmocka_unit_test(equal_runs_are_equal),
        cmocka_unit_test(empty_tier_is_none),
        cmocka_unit_test(faster_link_never_hurts),
        cmocka_unit_test(oversized_requests_end),
    };

    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
