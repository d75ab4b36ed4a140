/* SPDX-License-Identifier: Apache-2.0
 * What prompts share, when they reuse it and with whom: against a slow twin, the ceilings, and
 * figures stated for real logs. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/twins/profile_twin.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S 1000000000ull
#define SHARED "../shared/"

static struct kvc_profile profile_of(const struct kvc_trace *t)
{
    struct kvc_profile p;
    struct kvc_error err;
    assert_int_equal(kvc_profile_trace(t, &p, &err), KVC_OK);
    return p;
}

/* ---- random traces ---- */

static void draw(struct tiny_row *rows, uint32_t n, uint32_t block, uint64_t *rng)
{
    uint64_t now = 0, step = 1 + kvc_rng_below(rng, 30);
    uint32_t alphabet = 1 + (uint32_t)kvc_rng_below(rng, 4);
    bool sessions = kvc_rng_below(rng, 3) > 0;
    memset(rows, 0, n * sizeof(*rows));
    for (uint32_t i = 0; i < n; i++) {
        struct tiny_row *r = &rows[i];
        now += i ? kvc_rng_below(rng, step) * S : 0;
        r->time_ns = now;
        r->session = sessions && kvc_rng_below(rng, 4) ? (uint32_t)kvc_rng_below(rng, 9)
                                                       : KVC_ID_NONE;
        r->think_ns = KVC_TIME_NONE;
        r->n_ids = (uint32_t)kvc_rng_below(rng, TWIN_DEPTH + 1);
        for (uint32_t k = 0; k < r->n_ids; k++)
            r->ids[k] = kvc_rng_below(rng, 3) ? 7 : kvc_rng_below(rng, alphabet);
        uint32_t tail = (uint32_t)kvc_rng_below(rng, block); /* with or without an id */
        bool has_id = r->n_ids && tail && kvc_rng_below(rng, 2);
        r->input_tokens = (r->n_ids - has_id) * block + tail;
    }
}

static void same_sharing(const struct kvc_profile *a, const struct kvc_profile *b)
{
    assert_int_equal(a->by_session, b->by_session);
    assert_int_equal(a->seen_tokens, b->seen_tokens);
    assert_int_equal(a->system_roots, b->system_roots);
    assert_int_equal(a->one_hit_blocks, b->one_hit_blocks);
    assert_int_equal(a->touched_blocks, b->touched_blocks);
    assert_int_equal(a->reused_touches, b->reused_touches);
    for (int k = 0; k < KVC_CONTENTS; k++)
        assert_int_equal(a->content_tokens[k], b->content_tokens[k]);
    for (int d = 0; d < KVC_PROFILE_DEPTHS; d++) {
        assert_int_equal(a->depth_touches[d], b->depth_touches[d]);
        assert_int_equal(a->depth_reused[d], b->depth_reused[d]);
        for (int k = 0; k < KVC_CONTENT_PARTIAL; k++)
            assert_int_equal(a->depth_tokens[d][k], b->depth_tokens[d][k]);
    }
}

static void same_time(const struct kvc_profile *a, const struct kvc_profile *b)
{
    for (int i = 0; i < KVC_PROFILE_AGES; i++) {
        assert_int_equal(a->age_touches[i], b->age_touches[i]);
        assert_int_equal(a->age_tokens[i], b->age_tokens[i]);
        assert_int_equal(a->held_peak_blocks[i], b->held_peak_blocks[i]);
        assert_int_equal(isnan(a->held_mean_blocks[i]), isnan(b->held_mean_blocks[i]));
        if (!isnan(a->held_mean_blocks[i]))
            assert_true(fabs(a->held_mean_blocks[i] - b->held_mean_blocks[i]) < 1e-6);
    }
    for (int i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        assert_int_equal(a->working_set[i].peak_blocks, b->working_set[i].peak_blocks);
        assert_true(fabs(a->working_set[i].mean_blocks - b->working_set[i].mean_blocks) < 1e-9);
    }
}

static void same_tenants(const struct kvc_profile *a, const struct kvc_profile *b, uint32_t n)
{
    assert_int_equal(a->n_top, b->n_top);
    for (uint32_t i = 0; i < n; i++)
        assert_memory_equal(&a->tenants[i], &b->tenants[i], sizeof(a->tenants[i]));
    for (uint32_t i = 0; i < a->n_top; i++)
        assert_int_equal(a->top[i], b->top[i]);
    assert_memory_equal(a->both_blocks, b->both_blocks, sizeof(a->both_blocks));
    assert_memory_equal(a->from_tokens, b->from_tokens, sizeof(a->from_tokens));
}

static void same_hot(const struct kvc_profile *a, const struct kvc_profile *b)
{
    assert_int_equal(a->n_hot, b->n_hot);
    for (uint32_t i = 0; i < a->n_hot; i++) {
        assert_int_equal(a->hot[i].from_block, b->hot[i].from_block);
        assert_int_equal(a->hot[i].blocks, b->hot[i].blocks);
        assert_int_equal(a->hot[i].requests, b->hot[i].requests);
        assert_int_equal(a->hot[i].sessions, b->hot[i].sessions);
        assert_int_equal(a->hot[i].tenants, b->hot[i].tenants);
        assert_int_equal(a->hot[i].seen_tokens, b->hot[i].seen_tokens);
        assert_int_equal(a->hot[i].kind, b->hot[i].kind);
    }
}

/* What must hold whatever the trace. */
static void laws(const struct kvc_trace *t, const struct kvc_profile *p)
{
    struct kvc_trace_stats s;
    struct kvc_hits hits;
    uint64_t sum = 0, tenants = 0;
    kvc_trace_stats(t, &s);
    assert_int_equal(kvc_ceiling_content(t, &hits, NULL), KVC_OK);
    for (int k = 0; k < KVC_CONTENTS; k++)
        sum += p->content_tokens[k];
    assert_int_equal(sum, s.input_tokens);
    assert_int_equal(p->seen_tokens, hits.hit_tokens);
    assert_int_equal(p->reused_touches, hits.raw_hit_blocks);
    assert_int_equal(p->touched_blocks, s.blocks);
    sum = 0;
    for (uint32_t i = 0; i < p->n_rates; i++)
        sum += p->requests_in[i];
    assert_true(p->n_rates == 0 || sum == s.requests);
    for (uint32_t i = 0; p->tenants && i < t->n_tenants; i++)
        tenants += p->tenants[i].seen_tokens;
    assert_true(!p->tenants || tenants == p->seen_tokens);
    for (uint32_t i = 0; i < p->n_top; i++) {
        const struct kvc_tenant_profile *one = &p->tenants[p->top[i]];
        sum = 0;
        for (int k = 0; k <= KVC_PROFILE_TENANTS; k++)
            sum += p->from_tokens[i][k];
        assert_int_equal(one->own_seen_tokens + sum, one->seen_tokens);
    }
}

static uint64_t at_seed; /* 0 when all went well */

static int tell_seed(void **state)
{
    (void)state;
    if (at_seed)
        print_message("random traces failed at seed %llu\n", (unsigned long long)at_seed);
    return 0;
}

static void test_random(void **state)
{
    (void)state;
    static struct kvc_profile twin;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "profile");
        at_seed = seed;
        struct tiny_row rows[TWIN_ROWS];
        uint32_t tenant[TWIN_ROWS], n = 1 + (uint32_t)kvc_rng_below(&rng, TWIN_ROWS);
        uint32_t block = 1 + (uint32_t)kvc_rng_below(&rng, 5);
        uint32_t tenants = 1 + (uint32_t)kvc_rng_below(&rng, TWIN_TENANTS);
        draw(rows, n, block, &rng);
        for (uint32_t i = 0; i < n; i++)
            tenant[i] = i < tenants ? i : (uint32_t)kvc_rng_below(&rng, tenants);
        struct kvc_tenant_profile of_twin[TWIN_TENANTS] = {{0}};
        bool by_tenant = tenants > 2 && tenants <= n;
        for (int whole = 0; whole < 2; whole++) {
            struct kvc_trace *t = tiny_trace(rows, n, block, whole);
            if (by_tenant) {
                t->tenant = tenant;
                t->n_tenants = tenants;
            }
            if (!t->n_sessions) { /* as importers leave it */
                free(t->session);
                t->session = NULL;
            }
            struct kvc_profile p = profile_of(t);
            if (!whole) {
                memset(&twin, 0, sizeof(twin));
                memset(of_twin, 0, sizeof(of_twin));
                twin.tenants = of_twin;
                profile_twin(rows, n, block, by_tenant ? tenant : NULL, &p, &twin);
                same_hot(&p, &twin);
            }
            same_sharing(&p, &twin);
            same_time(&p, &twin);
            if (by_tenant)
                same_tenants(&p, &twin, tenants);
            laws(t, &p);
            kvc_profile_clear(&p);
            t->tenant = NULL;
            tiny_trace_free(t);
        }
    }
    at_seed = 0;
}

static void test_no_memory(void **state)
{
    (void)state;
    uint64_t rng = kvc_rng_stream(3, "memory");
    struct tiny_row rows[TWIN_ROWS];
    uint32_t tenant[TWIN_ROWS];
    struct kvc_profile p;
    draw(rows, TWIN_ROWS, 4, &rng);
    rows[0].session = 0;
    for (uint32_t i = 0; i < TWIN_ROWS; i++)
        tenant[i] = i % 3;
    struct kvc_trace *t = tiny_trace(rows, TWIN_ROWS, 4, true);
    t->tenant = tenant;
    t->n_tenants = 3;
    enum kvc_status status = KVC_ERR_NOMEM;
    for (uint64_t i = 1; status != KVC_OK; i++) {
        kvc_alloc_fail_after(i);
        status = kvc_profile_trace(t, &p, NULL);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
        assert_true(i < 100);
    }
    kvc_profile_clear(&p);
    t->tenant = NULL;
    tiny_trace_free(t);
}

/* ---- kinds, by hand ---- */

/* Four sessions with a system prompt of a block; two of them ask of document 2; each then has
 * turns of its own. */
static void test_kinds(void **state)
{
    (void)state;
    const struct tiny_row rows[] = {
        {.time_ns = 0, .input_tokens = 30, .session = 0, .n_ids = 3, .ids = {1, 2, 3}},
        {.time_ns = S, .input_tokens = 40, .session = 0, .n_ids = 4, .ids = {1, 2, 3, 4}},
        {.time_ns = 2 * S, .input_tokens = 35, .session = 1, .n_ids = 4, .ids = {1, 2, 5, 6}},
        {.time_ns = 3 * S, .input_tokens = 20, .session = 2, .n_ids = 2, .ids = {1, 7}},
        {.time_ns = 4 * S, .input_tokens = 20, .session = 3, .n_ids = 2, .ids = {1, 8}},
    };
    struct kvc_trace *t = tiny_trace(rows, 5, 10, true);
    struct kvc_profile p = profile_of(t);
    assert_int_equal(p.content_tokens[KVC_CONTENT_SYSTEM], 40);
    assert_int_equal(p.content_tokens[KVC_CONTENT_DOCUMENT], 20);
    assert_int_equal(p.content_tokens[KVC_CONTENT_HISTORY], 10);
    assert_int_equal(p.content_tokens[KVC_CONTENT_NEW], 70);
    assert_int_equal(p.content_tokens[KVC_CONTENT_PARTIAL], 5);
    assert_int_equal(p.system_roots, 1);
    assert_int_equal(p.hot[0].requests, 5);
    assert_int_equal(p.hot[0].sessions, 4);
    assert_int_equal(p.hot[0].seen_tokens, 40);
    laws(t, &p);
    kvc_profile_clear(&p);
    free(t->session); /* too few requests to tell a system prompt from a long conversation */
    t->session = NULL;
    t->n_sessions = 0;
    p = profile_of(t);
    assert_false(p.by_session);
    assert_int_equal(p.content_tokens[KVC_CONTENT_SYSTEM], 0);
    assert_int_equal(p.content_tokens[KVC_CONTENT_DOCUMENT], 70);
    assert_int_equal(p.content_tokens[KVC_CONTENT_HISTORY], 0);
    kvc_profile_clear(&p);
    tiny_trace_free(t);
}

/* Three of 30 sessions are a tenth, of 31 they are not. */
static void test_a_tenth(void **state)
{
    (void)state;
    struct tiny_row rows[31];
    memset(rows, 0, sizeof(rows));
    for (uint32_t i = 0; i < 31; i++) {
        rows[i] = (struct tiny_row){.time_ns = i * S, .input_tokens = 2, .session = i, .n_ids = 2};
        rows[i].ids[1] = i < 3 ? 100 : i;
    }
    for (uint32_t n = 30; n <= 31; n++) {
        struct kvc_trace *t = tiny_trace(rows, n, 1, true);
        struct kvc_profile p = profile_of(t);
        assert_int_equal(p.content_tokens[KVC_CONTENT_SYSTEM], n - 1 + (n == 30 ? 2 : 0));
        assert_int_equal(p.content_tokens[KVC_CONTENT_DOCUMENT], n == 30 ? 0 : 2);
        kvc_profile_clear(&p);
        tiny_trace_free(t);
    }
}

/* ---- real logs, and figures stated for them ---- */

static struct kvc_trace *shared(const char *path)
{
    char name[256];
    struct kvc_trace *t = NULL;
    struct kvc_error err;
    snprintf(name, sizeof(name), SHARED "%s", path);
    FILE *f = fopen(name, "rb");
    if (!f) {
        print_message("SKIPPED: %s is not here\n", name);
        skip();
        return NULL;
    }
    fclose(f);
    const char *names[] = {name};
    if (kvc_trace_import(&t, names, 1, NULL, NULL, &err) != KVC_OK)
        fail_msg("%s: %s", name, err.text);
    return t;
}

/* 37 distinct blocks are written; only one is ever touched again. */
static void test_one_hit_case(void **state)
{
    (void)state;
    struct kvc_trace *t = shared("cases/inputs/c48-one-hit-wonders.mooncake.jsonl");
    struct kvc_profile p = profile_of(t);
    assert_int_equal(p.touched_blocks, 37);
    assert_int_equal(p.one_hit_blocks, 36);
    assert_int_equal(p.n_hot, 1);
    assert_int_equal(p.hot[0].blocks, 1);
    laws(t, &p);
    kvc_profile_clear(&p);
    kvc_trace_destroy(t);
}

static uint64_t within(const struct kvc_profile *p, uint64_t seconds)
{
    for (int i = 0; i < KVC_PROFILE_AGES; i++)
        if (p->age_limit_ns[i] == seconds * S)
            return p->age_tokens[i];
    fail();
    return 0;
}

/* A sliding TTL of 300 s: miss, hit, hit, miss; of 3600 s: miss and three hits. */
static void test_ttl_case(void **state)
{
    (void)state;
    struct kvc_trace *t = shared("cases/inputs/c49-ttl-gaps.mooncake.jsonl");
    struct kvc_profile p = profile_of(t);
    assert_int_equal(p.seen_tokens, 3 * 1024);
    assert_int_equal(within(&p, 300), 2 * 1024);
    assert_int_equal(within(&p, 3600), 3 * 1024);
    assert_int_equal(within(&p, 120), 0);
    kvc_profile_clear(&p);
    kvc_trace_destroy(t);
}

static void test_tails_case(void **state)
{
    (void)state;
    static const char *const files[] = {"cases/inputs/c06-tail-ceil.mooncake.jsonl",
                                        "cases/inputs/c06-tail-floor.mooncake.jsonl"};
    for (int i = 0; i < 2; i++) {
        struct kvc_trace *t = shared(files[i]);
        struct kvc_profile p = profile_of(t);
        assert_int_equal(p.seen_tokens, 2048);
        laws(t, &p);
        kvc_profile_clear(&p);
        kvc_trace_destroy(t);
    }
}

static void test_conversation(void **state)
{
    (void)state;
    struct kvc_trace *t = shared("traces/mooncake/conversation_trace.jsonl.zst");
    struct kvc_profile p = profile_of(t);
    laws(t, &p);
    /* id 0 starts all 12,031 rows: a system prompt of one block of 512 tokens */
    assert_int_equal(p.content_tokens[KVC_CONTENT_SYSTEM], 12030ull * 512);
    assert_int_equal(p.system_roots, 1);
    kvc_profile_clear(&p);
    kvc_trace_destroy(t);
}

/* 61,299,564 leading-run hits of 64-token blocks, ids without partial tails. */
static void test_agents(void **state)
{
    (void)state;
    struct kvc_trace *t = shared("traces/kv-cache-tester/traces.tar.zst");
    struct kvc_profile p = profile_of(t);
    assert_int_equal(p.seen_tokens, 61299564ull * 64);
    laws(t, &p);
    kvc_profile_clear(&p);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_random, tell_seed),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_a_tenth),
        cmocka_unit_test(test_one_hit_case),
        cmocka_unit_test(test_ttl_case),
        cmocka_unit_test(test_tails_case),
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_agents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
