/* SPDX-License-Identifier: Apache-2.0
 * A trace in namespaces against the same rows with the namespace mixed into each block's id, and
 * requests in groups. */
#include "base/alloc.h"
#include "base/rng.h"
#include "sim/ceiling/ceiling.h"
#include "sim/groups.h"
#include "sim/namespaces.h"
#include "tests/twins/ceiling_twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_ROWS 64

static void salt(struct twin_rows *out, const struct twin_rows *rows, const uint32_t *space)
{
    uint64_t ids[256];
    memset(out, 0, sizeof(*out));
    out->block_tokens = rows->block_tokens;
    for (uint32_t r = 0; r < rows->n; r++) {
        for (uint32_t i = 0; i < rows->row[r].n; i++)
            ids[i] = rows->row[r].ids[i] | (uint64_t)(space[r] + 1) << 32;
        twin_add(out, ids, rows->row[r].n, rows->row[r].tokens);
    }
}

/* All that a view is asked gives what the salted rows give, block by block. */
static void check_salted(const struct kvc_trace *t, const struct twin_rows *salted, uint64_t seed)
{
    struct kvc_ceiling_view v;
    struct kvc_hits got, want;
    uint32_t runs[MOST_ROWS], want_runs[MOST_ROWS];
    uint64_t rng = seed;
    assert_int_equal(kvc_ceiling_view(&v, t, NULL), KVC_OK);
    for (enum twin_policy p = TWIN_CONTENT; p <= TWIN_OPT; p++) {
        uint64_t capacity = kvc_rng_below(&rng, 60);
        twin_run(salted, p, capacity, false, &want, want_runs);
        if (p == TWIN_CONTENT)
            assert_int_equal(kvc_ceiling_content_of(&v, &got, runs, NULL), KVC_OK);
        else if (p == TWIN_LRU)
            assert_int_equal(kvc_ceiling_lru_of(&v, &capacity, 1, &got, runs, NULL), KVC_OK);
        else
            assert_int_equal(kvc_ceiling_opt_of(&v, &capacity, 1, &got, runs, NULL), KVC_OK);
        assert_memory_equal(&got, &want, sizeof(got));
        assert_memory_equal(runs, want_runs, salted->n * sizeof(*runs));
    }
}

static void check_maps(const struct kvc_namespaces *n, const struct kvc_trace *t,
                       const uint32_t *space)
{
    for (uint32_t s = 0; s < n->trace.n_segments; s++) {
        uint32_t from = n->seg_from[s], up = n->trace.seg_parent[s];
        assert_int_equal(n->trace.seg_len[s], t->seg_len[from]);
        assert_int_equal(n->trace.seg_depth[s], t->seg_depth[from]);
        assert_true(up == KVC_SEG_NONE || up < s);
        assert_int_equal(up == KVC_SEG_NONE ? up : n->seg_from[up], t->seg_parent[from]);
        assert_true(up == KVC_SEG_NONE || n->seg_space[up] == n->seg_space[s]);
    }
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t s = n->trace.prompt_seg[r];
        assert_int_equal(s == KVC_SEG_NONE ? s : n->seg_from[s], t->prompt_seg[r]);
        assert_true(s == KVC_SEG_NONE || n->seg_space[s] == space[r]);
    }
}

static void namespaces_are_salted_ids(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "namespaces");
        uint32_t space[MOST_ROWS], n_spaces = 1 + (uint32_t)kvc_rng_below(&rng, 5);
        struct twin_rows rows, salted;
        struct kvc_namespaces n;
        twin_draw(&rows, &rng, 30, 12);
        for (uint32_t r = 0; r < rows.n; r++)
            space[r] = (uint32_t)kvc_rng_below(&rng, n_spaces);
        salt(&salted, &rows, space);
        struct kvc_trace *t = twin_trace(&rows);
        assert_int_equal(kvc_namespaces_create(&n, t, space, NULL), KVC_OK);
        check_maps(&n, t, space);
        check_salted(&n.trace, &salted, seed);
        kvc_namespaces_clear(&n);
        twin_trace_free(t);
        twin_clear(&salted);
        twin_clear(&rows);
    }
}

static void outputs_stay_in_their_namespace(void **state)
{
    (void)state;
    struct twin_rows rows = {.block_tokens = 4};
    twin_add(&rows, (const uint64_t[]){1, 2}, 2, 8);
    twin_add(&rows, (const uint64_t[]){1, 2, 3}, 3, 12);
    struct kvc_trace *t = twin_trace(&rows);
    uint32_t output[] = {t->prompt_seg[1], KVC_SEG_NONE}, space[] = {1, 0};
    struct kvc_namespaces n;
    t->output_seg = output;
    assert_int_equal(kvc_namespaces_create(&n, t, space, NULL), KVC_OK);
    assert_int_equal(n.trace.n_segments, 4);
    assert_int_equal(n.seg_from[n.trace.output_seg[0]], t->prompt_seg[1]);
    assert_int_equal(n.seg_space[n.trace.output_seg[0]], 1);
    assert_int_equal(n.trace.seg_parent[n.trace.output_seg[0]], n.trace.prompt_seg[0]);
    assert_int_equal(n.trace.output_seg[1], KVC_SEG_NONE);
    kvc_namespaces_clear(&n);
    t->output_seg = NULL;
    twin_trace_free(t);
    twin_clear(&rows);
}

/* ---- groups ---- */

/* What the rule says, block by block: the common first blocks up to where fewer than 9 of 10 rows
 * with ids go on alike, and the segment after it. */
static bool same_family(const struct twin_rows *rows, uint32_t a, uint32_t b)
{
    uint32_t at[2] = {a, b}, end[2];
    uint64_t all = 0;
    for (uint32_t r = 0; r < rows->n; r++)
        all += rows->row[r].n > 0;
    for (int k = 0; k < 2; k++) {
        const struct twin_row *row = &rows->row[at[k]];
        end[k] = 0;
        for (uint32_t i = 0; i < row->n && end[k] == 0; i++) {
            uint64_t pass = 0;
            for (uint32_t r = 0; r < rows->n; r++)
                pass += rows->row[r].n > i &&
                        memcmp(rows->row[r].ids, row->ids, (i + 1) * sizeof(*row->ids)) == 0;
            if (pass < all - all / 10)
                end[k] = i + 1;
        }
        if (row->n == 0 || end[k] == 0)
            end[k] = 1000 + (row->n == 0); /* no ids; no more than all share */
    }
    return end[0] == end[1] &&
           (end[0] >= 1000 || memcmp(rows->row[a].ids, rows->row[b].ids,
                                     end[0] * sizeof(*rows->row[a].ids)) == 0);
}

static void families_part_where_the_rule_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "families");
        struct twin_rows rows;
        struct kvc_groups g;
        twin_draw(&rows, &rng, 20, 8);
        struct kvc_trace *t = twin_trace(&rows);
        assert_int_equal(kvc_groups_create(&g, t, KVC_BY_PREFIX, NULL), KVC_OK);
        for (uint32_t a = 0; a < rows.n; a++) {
            assert_true(g.of[a] < g.n);
            for (uint32_t b = 0; b < a; b++)
                if ((g.of[a] == g.of[b]) != same_family(&rows, a, b))
                    fail_msg("rows %u and %u, seed %d", a, b, (int)seed);
        }
        kvc_groups_clear(&g);
        twin_trace_free(t);
        twin_clear(&rows);
    }
}

static void columns_make_groups_and_what_is_not_stated_one_more(void **state)
{
    (void)state;
    uint32_t tenant[] = {1, KVC_ID_NONE, 0}, prompt[] = {KVC_SEG_NONE, KVC_SEG_NONE, KVC_SEG_NONE};
    char gold[] = "gold", free_[] = "free", *names[] = {gold, free_}, name[64];
    const struct kvc_trace t = {.n_requests = 3, .prompt_seg = prompt, .tenant = tenant,
                                .n_tenants = 2, .tenant_names = names};
    struct kvc_groups g;
    enum kvc_grouping by;
    struct kvc_error err;
    assert_int_equal(kvc_groups_create(&g, &t, KVC_BY_TENANT, NULL), KVC_OK);
    assert_int_equal(g.n, 3);
    assert_int_equal(g.of[0], 1);
    assert_int_equal(g.of[1], 2);
    kvc_groups_name(&g, 0, name, sizeof(name));
    assert_string_equal(name, "gold");
    kvc_groups_name(&g, 2, name, sizeof(name));
    assert_string_equal(name, "none stated");
    kvc_groups_clear(&g);
    assert_int_equal(kvc_groups_create(&g, &t, KVC_BY_SESSION, NULL), KVC_OK);
    assert_int_equal(g.n, 1);
    kvc_groups_clear(&g);
    assert_int_equal(kvc_grouping_parse(&by, "Tenant", "--by", &err), KVC_OK);
    assert_int_equal(kvc_grouping_parse(&by, "users", "--by", &err), KVC_ERR_USAGE);
    assert_non_null(strstr(err.text, "tenant, session, model and prefix"));
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    uint64_t rng = 5;
    struct twin_rows rows = {0};
    uint32_t space[MOST_ROWS];
    while (rows.n < 30) {
        twin_clear(&rows);
        twin_draw(&rows, &rng, 60, 16);
    }
    for (uint32_t r = 0; r < rows.n; r++)
        space[r] = r % 3;
    struct kvc_trace *t = twin_trace(&rows);
    for (int what = 0; what < 2; what++) {
        enum kvc_status status = KVC_ERR_NOMEM;
        int nth = 0;
        while (status != KVC_OK) {
            struct kvc_namespaces n = {0};
            struct kvc_groups g = {0};
            kvc_alloc_fail_after((uint64_t)++nth);
            status = what ? kvc_namespaces_create(&n, t, space, NULL)
                          : kvc_groups_create(&g, t, KVC_BY_PREFIX, NULL);
            kvc_alloc_fail_after(0);
            assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
            kvc_namespaces_clear(&n);
            kvc_groups_clear(&g);
        }
        assert_true(nth > 3);
    }
    twin_trace_free(t);
    twin_clear(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(namespaces_are_salted_ids),
        cmocka_unit_test(outputs_stay_in_their_namespace),
        cmocka_unit_test(families_part_where_the_rule_says),
        cmocka_unit_test(columns_make_groups_and_what_is_not_stated_one_more),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
