/* SPDX-License-Identifier: Apache-2.0
 * Ceilings from close up against the same block by block: groups, namespaces, causes of misses;
 * and the laws that bind them. */
#include "base/alloc.h"
#include "base/rng.h"
#include "policies/eviction/runs.h"
#include "tests/twins/closeup_twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_cause_is_the_one_seen_block_by_block(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 250; seed++) {
        struct closeup_log l;
        uint64_t rng = kvc_rng_stream(seed, "capacity");
        closeup_log_draw(&l, seed);
        for (int isolated = 0; isolated < 2; isolated++) {
            struct kvc_closeup *c = closeup_open(&l, isolated ? "tenant" : NULL, 1, NULL);
            for (const char *const *p = kvc_runs_policies(); *p; p++) {
                if (closeup_drawn(*p))
                    continue;
                struct kvc_closeup_result *res;
                struct causes want;
                uint32_t runs[MOST_ROWS];
                uint64_t capacity = kvc_rng_below(&rng, l.n_blocks + 2);
                closeup_watch(&l, *p, isolated, capacity, &want, runs);
                assert_int_equal(kvc_closeup_run(c, *p, capacity, &res, NULL), KVC_OK);
                closeup_expect(res, &want, *p, seed);
                kvc_closeup_result_destroy(res);
            }
            kvc_closeup_destroy(c);
        }
        closeup_log_clear(&l);
    }
}

/* ---- groups and the price of isolation ---- */

/* The session's part, or NULL. */
static const struct kvc_part *part_of(const struct kvc_closeup_result *res, uint32_t session)
{
    char name[64];
    snprintf(name, sizeof(name), session == KVC_ID_NONE ? "none stated" : "session %u", session);
    for (uint32_t i = 0; i < res->n_groups; i++)
        if (strcmp(res->groups[i].name, name) == 0)
            return &res->groups[i];
    return NULL;
}

static void check_price(const struct closeup_log *l, const struct kvc_closeup_result *res,
                        const uint32_t *own, const uint32_t *shared)
{
    uint64_t by_session[7] = {0}, shared_by_session[7] = {0}, depth[2][KVC_DEPTHS] = {{0}};
    uint64_t size = l->rows.block_tokens;
    for (uint32_t r = 0; r < l->rows.n; r++) {
        uint32_t s = l->session[r] == KVC_ID_NONE ? 6 : l->session[r];
        by_session[s] += closeup_usable(l, r, own[r]);
        shared_by_session[s] += closeup_usable(l, r, shared[r]);
        for (int k = 0; k < 2; k++)
            for (uint32_t i = 0; i < closeup_usable(l, r, k ? shared[r] : own[r]) / size; i++) {
                unsigned at = 0;
                while (i * size >= (uint64_t)1024 << at)
                    at++;
                depth[k][at] += size;
            }
    }
    for (uint32_t s = 0; s < 7; s++) {
        const struct kvc_part *part = part_of(res, s == 6 ? KVC_ID_NONE : s);
        assert_int_equal(part ? part->hits.hit_tokens : 0, by_session[s]);
        assert_int_equal(part ? part->shared_hit_tokens : 0, shared_by_session[s]);
    }
    for (unsigned i = 0; i < KVC_DEPTHS; i++) {
        assert_int_equal(res->depths[i].hit_tokens, depth[0][i]);
        assert_int_equal(res->depths[i].shared_hit_tokens, depth[1][i]);
    }
}

static void isolation_costs_what_blocks_say(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct closeup_log l;
        uint64_t rng = kvc_rng_stream(seed, "price");
        closeup_log_draw(&l, seed);
        const uint32_t larger = seed % 3 ? 1 : 700; /* deep prompts */
        l.rows.block_tokens *= larger;
        l.t->block_tokens *= larger;
        for (uint32_t r = 0; r < l.rows.n; r++)
            l.rows.row[r].tokens = l.t->input_tokens[r] *= larger;
        struct kvc_closeup *c = closeup_open(&l, "tenant", 1, NULL);
        for (const char *const *p = kvc_runs_policies(); *p; p++) {
            if (closeup_drawn(*p))
                continue;
            struct kvc_closeup_result *res;
            struct causes causes;
            uint32_t own[MOST_ROWS], shared[MOST_ROWS];
            uint64_t capacity = kvc_rng_below(&rng, l.n_blocks + 2);
            closeup_watch(&l, *p, true, capacity, &causes, own);
            closeup_watch(&l, *p, false, capacity, &causes, shared);
            assert_int_equal(kvc_closeup_run(c, *p, capacity, &res, NULL), KVC_OK);
            check_price(&l, res, own, shared);
            assert_int_equal(res->shared.hit_tokens, causes.hit);
            kvc_closeup_result_destroy(res);
        }
        kvc_closeup_destroy(c);
        closeup_log_clear(&l);
    }
}

static void check_crossing(const struct closeup_log *l, const struct kvc_crossing *x)
{
    static bool by[MOST_BLOCKS][MOST_TENANTS];
    static uint32_t tokens[MOST_BLOCKS];
    uint64_t blocks = 0, all = 0, crossing = 0, crossing_tokens = 0, size = l->rows.block_tokens;
    memset(by, 0, sizeof(by));
    memset(tokens, 0, sizeof(tokens));
    for (uint32_t r = 0; r < l->rows.n; r++)
        for (uint32_t i = 0; i < l->rows.row[r].n; i++) {
            uint64_t id = l->rows.row[r].ids[i], left = l->rows.row[r].tokens - i * size;
            by[id][l->tenant[r]] = true;
            left = left < size ? left : size;
            tokens[id] = left > tokens[id] ? (uint32_t)left : tokens[id];
        }
    for (uint32_t b = 0; b < l->n_blocks; b++) {
        uint32_t users = 0;
        for (uint32_t i = 0; i < MOST_TENANTS; i++)
            users += by[b][i];
        blocks += users > 0;
        all += tokens[b];
        crossing += users > 1;
        crossing_tokens += users > 1 ? tokens[b] : 0;
    }
    assert_int_equal(x->blocks, blocks);
    assert_int_equal(x->tokens, all);
    assert_int_equal(x->crossing_blocks, crossing);
    assert_int_equal(x->crossing_tokens, crossing_tokens);
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = 0; k < x->n; k++) {
            uint64_t common = 0;
            for (uint32_t b = 0; b < l->n_blocks; b++)
                common += by[b][closeup_tenant(x->name[i])] && by[b][closeup_tenant(x->name[k])];
            assert_int_equal(x->common_blocks[i][k], common);
        }
}

static void crossing_is_what_two_ask_for(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct closeup_log l;
        closeup_log_draw(&l, seed);
        struct kvc_closeup *c = closeup_open(&l, "tenant", 1, NULL);
        struct kvc_closeup_result *res;
        check_crossing(&l, kvc_closeup_crossing(c));
        /* what isolation takes from content is seen as salted, or as tails of such */
        assert_int_equal(kvc_closeup_run(c, "content", KVC_CAPACITY_INF, &res, NULL), KVC_OK);
        assert_int_equal(res->shared.hit_tokens - res->all.hits.hit_tokens,
                         res->all.missed_tokens[KVC_MISS_SALTED]);
        assert_int_equal(res->all.missed_tokens[KVC_MISS_EVICTED], 0);
        kvc_closeup_result_destroy(res);
        kvc_closeup_destroy(c);
        closeup_log_clear(&l);
    }
}

static void every_failed_allocation_is_reported(void **state)
{
    struct closeup_log l = {.rows = {0}};
    (void)state;
    for (uint64_t seed = 1; l.rows.n < 20; seed++) {
        if (l.t)
            closeup_log_clear(&l);
        closeup_log_draw(&l, seed);
    }
    const struct kvc_closeup_options o = {
        .struct_size = sizeof(o), .by = "prefix", .isolate = "tenant", .replicas = 2,
        .router = "prefix", .why = true,
    };
    enum kvc_status status = KVC_ERR_NOMEM;
    int nth = 0;
    while (status != KVC_OK) {
        struct kvc_closeup *c = NULL;
        struct kvc_closeup_result *res = NULL;
        kvc_alloc_fail_after((uint64_t)++nth);
        status = kvc_closeup_create(&c, l.t, &o, NULL);
        if (status == KVC_OK)
            status = kvc_closeup_run(c, "ttl", 5, &res, NULL);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
        kvc_closeup_result_destroy(res);
        kvc_closeup_destroy(c);
    }
    assert_true(nth > 30);
    closeup_log_clear(&l);
}

static void wrong_words_are_named(void **state)
{
    struct kvc_closeup_options o = {.struct_size = sizeof(o), .by = "user"};
    struct kvc_closeup *c;
    struct kvc_error err;
    struct closeup_log l;
    (void)state;
    closeup_log_draw(&l, 1);
    assert_int_equal(kvc_closeup_create(&c, l.t, &o, &err), KVC_ERR_USAGE);
    assert_string_equal(err.field, "by");
    o = (struct kvc_closeup_options){.struct_size = sizeof(o), .router = "stick"};
    assert_int_equal(kvc_closeup_create(&c, l.t, &o, &err), KVC_ERR_USAGE);
    assert_non_null(strstr(err.text, "\"sticky\""));
    closeup_log_clear(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cause_is_the_one_seen_block_by_block),
        cmocka_unit_test(isolation_costs_what_blocks_say),
        cmocka_unit_test(crossing_is_what_two_ask_for),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(wrong_words_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
