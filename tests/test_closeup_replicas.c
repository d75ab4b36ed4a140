/* SPDX-License-Identifier: Apache-2.0
 * Closeups behind routers against replicas block by block, and the laws of the ladder. */
#include "base/rng.h"
#include "policies/policies.h"
#include "policies/eviction/runs.h"
#include "tests/twins/closeup_twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- replicas: LRU block by block, loads counted anew for each request ---- */

#define MOST_REPLICAS 4

struct replica {
    uint32_t list[MOST_BLOCKS], n; /* most recent first */
};

static uint32_t place_of(const struct replica *p, uint32_t b)
{
    uint32_t i = 0;
    while (i < p->n && p->list[i] != b)
        i++;
    return i;
}

static void use(struct replica *p, uint32_t b, uint64_t capacity, uint32_t *left_by, uint32_t by)
{
    uint32_t i = place_of(p, b);
    if (capacity == 0)
        return;
    if (i == p->n) {
        if (p->n == capacity)
            left_by[p->list[--p->n]] = by;
        i = p->n++;
    }
    memmove(p->list + 1, p->list, i * sizeof(*p->list));
    p->list[0] = b;
}

static uint32_t lead(const struct closeup_log *l, const struct replica *p, uint32_t r)
{
    uint32_t run = 0;
    while (run < l->rows.row[r].n && place_of(p, (uint32_t)l->rows.row[r].ids[run]) < p->n)
        run++;
    return run;
}

static uint32_t choose(const struct closeup_log *l, const struct kvc_router_ops *router, uint32_t n,
                       const struct replica *replica, uint32_t r, const uint32_t *to,
                       const uint32_t *runs, uint64_t *rng)
{
    struct kvc_route_view view[MOST_REPLICAS] = {{0}};
    const struct kvc_route_request request = {r, l->session[r], l->rows.row[r].tokens};
    for (uint32_t i = r > 4 * n ? r - 4 * n : 0; i < r; i++) {
        view[to[i]].running++;
        view[to[i]].context_tokens += l->rows.row[i].tokens;
        view[to[i]].queued_tokens += l->rows.row[i].tokens - closeup_usable(l, i, runs[i]);
    }
    for (uint32_t i = 0; router->wants_prefix && i < n; i++)
        view[i].hit_tokens = view[i].hit_tokens_any = closeup_usable(l, r, lead(l, &replica[i], r));
    return router->pick(NULL, &request, view, n, 1.0, rng);
}

/* ---- the optimum of each replica, block by block ---- */

struct farsighted {
    uint32_t used[MOST_BLOCKS]; /* the last request that did + 1; 0: it is not here */
};

/* The next row that goes there and has the block, MOST_ROWS for none. */
static uint32_t next_use(const struct closeup_log *l, const uint32_t *to, uint32_t at, uint32_t r,
                         uint32_t b)
{
    for (r++; r < l->rows.n; r++)
        for (uint32_t i = 0; to[r] == at && i < l->rows.row[r].n; i++)
            if (l->rows.row[r].ids[i] == b)
                return r;
    return MOST_ROWS;
}

static uint32_t depth_of(const struct closeup_log *l, uint32_t b)
{
    for (uint32_t r = 0; r < l->rows.n; r++)
        for (uint32_t i = 0; i < l->rows.row[r].n; i++)
            if (l->rows.row[r].ids[i] == b)
                return i;
    return 0;
}

/* Lets go of what is used again last; of what is never used again, of the one used longest ago; of
 * equals, of the deepest. */
static void keep_nearest(const struct closeup_log *l, struct farsighted *f, const uint32_t *to,
                         uint32_t r, uint64_t capacity, const bool *was, uint32_t *left_by)
{
    for (;;) {
        uint32_t n = 0, worst = 0, worst_next = 0;
        for (uint32_t b = 0; b < l->n_blocks; b++) {
            if (!f->used[b])
                continue;
            uint32_t next = next_use(l, to, to[r], r, b);
            bool older = next < MOST_ROWS || f->used[b] <= f->used[worst];
            if (n++ == 0 || next > worst_next ||
                (next == worst_next && older &&
                 (f->used[b] < f->used[worst] || depth_of(l, b) > depth_of(l, worst)))) {
                worst = b;
                worst_next = next;
            }
        }
        if (n <= capacity)
            return;
        f->used[worst] = 0;
        if (was[worst])
            left_by[worst] = r + 1;
    }
}

static uint32_t lead_of(const struct closeup_log *l, const struct farsighted *f, uint32_t r)
{
    uint32_t run = 0;
    while (run < l->rows.row[r].n && f->used[l->rows.row[r].ids[run]])
        run++;
    return run;
}

static void watch_optimum(const struct closeup_log *l, uint32_t n, uint64_t capacity,
                          const uint32_t *to, struct causes *out)
{
    static struct watching w;
    static struct farsighted replica[MOST_REPLICAS];
    memset(&w, 0, sizeof(w));
    memset(out, 0, sizeof(*out));
    memset(replica, 0, sizeof(replica));
    w.l = l;
    w.causes = out;
    for (uint32_t r = 0; r < l->rows.n; r++) {
        struct farsighted *f = &replica[to[r]];
        const struct twin_row *row = &l->rows.row[r];
        bool was[MOST_BLOCKS];
        uint32_t best = 0;
        for (uint32_t i = 0; i < n; i++)
            if (i != to[r] && lead_of(l, &replica[i], r) > best)
                best = lead_of(l, &replica[i], r);
        /* what it finds is what it keeps for a use: nothing else is used again */
        closeup_judge(&w, r, lead_of(l, f, r), best);
        for (uint32_t b = 0; b < l->n_blocks; b++)
            was[b] = f->used[b] > 0;
        for (uint32_t i = 0; i < row->n; i++)
            f->used[row->ids[i]] = r + 1;
        keep_nearest(l, f, to, r, capacity, was, w.left_by);
    }
}

static void watch_replicas(const struct closeup_log *l, const char *router, uint32_t n,
                           uint64_t capacity, struct causes *out, uint32_t *to, uint32_t *runs)
{
    static struct watching w;
    static struct replica replica[MOST_REPLICAS];
    uint64_t rng = kvc_rng_stream(0, "router");
    memset(&w, 0, sizeof(w));
    memset(out, 0, sizeof(*out));
    memset(replica, 0, sizeof(replica));
    w.l = l;
    w.causes = out;
    for (uint32_t r = 0; r < l->rows.n; r++) {
        uint32_t best = 0;
        to[r] = n == 1 ? 0 : choose(l, kvc_router_named(router), n, replica, r,
                                     to, runs, &rng);
        runs[r] = lead(l, &replica[to[r]], r);
        for (uint32_t i = 0; i < n; i++)
            if (i != to[r] && lead(l, &replica[i], r) > best)
                best = lead(l, &replica[i], r);
        closeup_judge(&w, r, runs[r], best);
        for (uint32_t i = l->rows.row[r].n; i-- > 0;)
            use(&replica[to[r]], (uint32_t)l->rows.row[r].ids[i], capacity, w.left_by, r + 1);
    }
}

/* Hits of the rows that go to each replica, as if they were alone. */
static void twin_assigned(const struct closeup_log *l, const uint32_t *to, uint32_t n,
                          enum twin_policy policy, uint64_t capacity, struct kvc_hits *sum)
{
    uint64_t *into = (uint64_t *)sum;
    memset(sum, 0, sizeof(*sum));
    for (uint32_t i = 0; i < n; i++) {
        struct twin_rows part = {.block_tokens = l->rows.block_tokens};
        struct kvc_hits hits;
        uint32_t runs[MOST_ROWS];
        for (uint32_t r = 0; r < l->rows.n; r++)
            if (to[r] == i)
                twin_add(&part, l->rows.row[r].ids, l->rows.row[r].n, l->rows.row[r].tokens);
        twin_run(&part, policy, capacity, false, &hits, runs);
        for (size_t k = 0; k < sizeof(hits) / sizeof(*into); k++)
            into[k] += ((const uint64_t *)&hits)[k];
        twin_clear(&part);
    }
}

static void check_replicas(const struct closeup_log *l, const char *router, uint32_t n,
                           uint64_t capacity, uint64_t seed)
{
    struct kvc_closeup *c = closeup_open(l, NULL, n, router);
    struct kvc_closeup_result *res, *opt;
    struct causes want;
    struct kvc_hits hits;
    uint32_t to[MOST_ROWS], runs[MOST_ROWS], got[MOST_REPLICAS] = {0};
    watch_replicas(l, router, n, capacity, &want, to, runs);
    assert_int_equal(kvc_closeup_run(c, "lru", capacity, &res, NULL), KVC_OK);
    closeup_expect(res, &want, router, seed);
    assert_int_equal(kvc_closeup_run(c, "opt", capacity, &opt, NULL), KVC_OK);
    watch_optimum(l, n, capacity, to, &want);
    closeup_expect(opt, &want, "opt", seed);
    if (n > 1) {
        for (uint32_t r = 0; r < l->rows.n; r++)
            got[to[r]]++;
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(res->replicas[i].hits.requests, got[i]);
        twin_assigned(l, to, n, TWIN_CONTENT, 0, &hits);
        assert_memory_equal(&res->assigned_content, &hits, sizeof(hits));
        twin_assigned(l, to, n, TWIN_OPT, capacity, &hits);
        assert_memory_equal(&res->assigned_optimum, &hits, sizeof(hits));
        twin_run(&l->rows, TWIN_OPT, n * capacity, false, &hits, runs);
        assert_memory_equal(&res->optimum_pool, &hits, sizeof(hits));
        twin_run(&l->rows, TWIN_LRU, n * capacity, false, &hits, runs);
        assert_memory_equal(&res->pool, &hits, sizeof(hits));
        assert_memory_equal(&opt->all.hits, &res->assigned_optimum, sizeof(hits));
        /* the ladder; of one pool, content and optimum know no better than all separate ones */
        assert_true(res->optimum_pool.raw_hit_blocks >= res->assigned_optimum.raw_hit_blocks);
        assert_true(res->assigned_optimum.raw_hit_blocks >= res->all.hits.raw_hit_blocks);
        assert_true(res->assigned_content.raw_hit_blocks >= res->assigned_optimum.raw_hit_blocks);
        assert_true(res->optimum_pool.raw_hit_blocks >= res->pool.raw_hit_blocks);
    }
    kvc_closeup_result_destroy(opt);
    kvc_closeup_result_destroy(res);
    kvc_closeup_destroy(c);
}

static void replicas_do_what_blocks_behind_a_router_do(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 250; seed++) {
        struct closeup_log l;
        uint64_t rng = kvc_rng_stream(seed, "replicas");
        closeup_log_draw(&l, seed);
        for (const char *const *router = kvc_router_names(); *router; router++)
            check_replicas(&l, *router, 1 + (uint32_t)kvc_rng_below(&rng, MOST_REPLICAS),
                           kvc_rng_below(&rng, l.n_blocks + 2), seed);
        closeup_log_clear(&l);
    }
}

/* Any policy behind round-robin: each replica's rows by themselves, block by block. */
static void every_policy_runs_on_replicas(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct closeup_log l;
        uint64_t rng = kvc_rng_stream(seed, "any");
        closeup_log_draw(&l, seed);
        struct kvc_closeup *c = closeup_open(&l, NULL, 2, "round-robin");
        for (const char *const *p = kvc_runs_policies(); *p; p++) {
            if (closeup_drawn(*p))
                continue;
            struct kvc_closeup_result *res;
            uint64_t capacity = kvc_rng_below(&rng, l.n_blocks / 2 + 2), want = 0;
            assert_int_equal(kvc_closeup_run(c, *p, capacity, &res, NULL), KVC_OK);
            for (uint32_t k = 0; k < 2; k++) {
                struct closeup_log part = l;
                struct kvc_trace t = *l.t;
                uint64_t arrival[MOST_ROWS];
                struct causes causes;
                uint32_t runs[MOST_ROWS];
                part.rows = (struct twin_rows){.block_tokens = l.rows.block_tokens};
                for (uint32_t r = k; r < l.rows.n; r += 2) {
                    arrival[part.rows.n] = l.t->arrival_ns[r];
                    part.session[part.rows.n] = l.session[r];
                    part.tenant[part.rows.n] = l.tenant[r];
                    twin_add(&part.rows, l.rows.row[r].ids, l.rows.row[r].n, l.rows.row[r].tokens);
                }
                t.arrival_ns = arrival;
                part.t = &t;
                closeup_watch(&part, *p, false, capacity, &causes, runs);
                want += causes.hit;
                twin_clear(&part.rows);
            }
            assert_int_equal(res->all.hits.hit_tokens, want);
            kvc_closeup_result_destroy(res);
        }
        kvc_closeup_destroy(c);
        closeup_log_clear(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_do_what_blocks_behind_a_router_do),
        cmocka_unit_test(every_policy_runs_on_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
