/* SPDX-License-Identifier: Apache-2.0
 * Ceilings from close up against the same block by block: groups, namespaces, causes of misses,
 * replicas behind routers; and the laws that bind them. */
#include "base/alloc.h"
#include "base/rng.h"
#include "policies/policies.h"
#include "policies/runs.h"
#include "sim/ceiling_cluster.h"
#include "tests/block_policies.h"
#include "tests/ceiling_twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_ROWS 48
#define MOST_BLOCKS 512 /* distinct */
#define MOST_TENANTS 3

/* A random log with tenants and sessions. */
struct log {
    struct twin_rows rows;
    struct kvc_trace *t;
    uint32_t tenant[MOST_ROWS], session[MOST_ROWS], n_tenants, n_blocks;
    char names[MOST_TENANTS][16], *name[MOST_TENANTS];
};

static void make(struct log *l, uint64_t seed)
{
    uint64_t rng = kvc_rng_stream(seed, "closeup");
    memset(l, 0, sizeof(*l));
    twin_draw(&l->rows, &rng, 36, 12);
    l->t = twin_trace(&l->rows);
    l->n_tenants = 1 + (uint32_t)kvc_rng_below(&rng, MOST_TENANTS);
    for (uint32_t i = 0; i < l->n_tenants; i++) {
        snprintf(l->names[i], sizeof(l->names[i]), "t%u", i);
        l->name[i] = l->names[i];
    }
    for (uint32_t r = 0; r < l->rows.n; r++) {
        l->tenant[r] = (uint32_t)kvc_rng_below(&rng, l->n_tenants);
        l->session[r] = kvc_rng_below(&rng, 5) ? (uint32_t)kvc_rng_below(&rng, 6) : KVC_ID_NONE;
        l->t->arrival_ns[r] = r * (uint64_t)60000000000; /* the TTL is five of them */
        for (uint32_t i = 0; i < l->rows.row[r].n; i++)
            if (l->rows.row[r].ids[i] >= l->n_blocks)
                l->n_blocks = (uint32_t)l->rows.row[r].ids[i] + 1;
    }
    assert_true(l->n_blocks <= MOST_BLOCKS);
    l->t->tenant = l->tenant;
    l->t->session = l->session;
    l->t->tenant_names = l->name;
    l->t->n_tenants = l->n_tenants;
    l->t->n_sessions = 6;
}

static void unmake(struct log *l)
{
    twin_trace_free(l->t);
    twin_clear(&l->rows);
}

/* ---- causes of misses, block by block ---- */

struct causes {
    uint64_t hit, tokens, missed[KVC_MISS_CAUSES];
    uint64_t by_tenant[MOST_TENANTS][KVC_MISS_CAUSES];
    uint64_t evicted[MOST_TENANTS][MOST_TENANTS + 1]; /* the last: nobody's */
};

struct watching {
    const struct log *l;
    bool isolated;
    uint32_t left_by[MOST_BLOCKS * MOST_TENANTS];
    bool seen[MOST_BLOCKS * MOST_TENANTS], seen_by_any[MOST_BLOCKS];
    struct causes *causes;
};

static uint32_t block_of(const struct log *l, bool isolated, uint32_t r, uint32_t i)
{
    uint32_t b = (uint32_t)l->rows.row[r].ids[i];
    return isolated ? b * MOST_TENANTS + l->tenant[r] : b;
}

static void miss(struct causes *c, uint32_t tenant, enum kvc_miss_cause cause, uint64_t tokens)
{
    c->missed[cause] += tokens;
    c->by_tenant[tenant][cause] += tokens;
}

static void judge(struct watching *w, uint32_t r, uint32_t run, uint32_t elsewhere)
{
    const struct log *l = w->l;
    const struct twin_row *row = &l->rows.row[r];
    uint32_t size = l->rows.block_tokens, full = row->tokens / size, who = l->tenant[r];
    bool known = true;
    full = full < row->n ? full : row->n;
    for (uint32_t i = 0; i < full; i++) {
        uint32_t b = block_of(l, w->isolated, r, i), left = w->left_by[b];
        known = known && w->seen_by_any[row->ids[i]];
        if (i < run)
            w->causes->hit += size;
        else if (i < elsewhere)
            miss(w->causes, who, KVC_MISS_OTHER_REPLICA, size);
        else if (w->seen[b] && left & BLOCK_EXPIRED)
            miss(w->causes, who, KVC_MISS_TTL, size);
        else if (w->seen[b]) {
            miss(w->causes, who, KVC_MISS_EVICTED, size);
            w->causes->evicted[who][left ? l->tenant[left - 1] : MOST_TENANTS] += size;
        } else
            miss(w->causes, who, w->seen_by_any[row->ids[i]] ? KVC_MISS_SALTED
                                                             : KVC_MISS_FIRST_SIGHT, size);
    }
    miss(w->causes, who, known && full ? KVC_MISS_PARTIAL_BLOCK : KVC_MISS_FIRST_SIGHT,
         row->tokens - full * size);
    w->causes->tokens += row->tokens;
    for (uint32_t i = 0; i < row->n; i++)
        w->seen[block_of(l, w->isolated, r, i)] = w->seen_by_any[row->ids[i]] = true;
}

static void judge_alone(void *user, uint32_t r, uint32_t run)
{
    judge(user, r, run, 0);
}

static void watch(const struct log *l, const char *policy, bool isolated, uint64_t capacity,
                  struct causes *out, uint32_t *runs)
{
    static struct watching w;
    uint32_t *path[MOST_ROWS], length[MOST_ROWS];
    memset(&w, 0, sizeof(w));
    memset(out, 0, sizeof(*out));
    w.l = l;
    w.isolated = isolated;
    w.causes = out;
    for (uint32_t r = 0; r < l->rows.n; r++) {
        length[r] = l->rows.row[r].n;
        path[r] = calloc(length[r] + 1u, sizeof(*path[r]));
        assert_non_null(path[r]);
        for (uint32_t i = 0; i < length[r]; i++)
            path[r][i] = block_of(l, isolated, r, i);
    }
    const struct block_option tokens[] = { /* in blocks */
        {"tokens", 32768 / l->rows.block_tokens},
        {"head", (1024 + l->rows.block_tokens - 1) / l->rows.block_tokens},
    };
    const struct block_log log = {
        .n_requests = l->rows.n, .n_blocks = MOST_BLOCKS * MOST_TENANTS,
        .path = (const uint32_t *const *)path, .length = length, .now_ns = l->t->arrival_ns,
        .session = l->session, .tenant = l->tenant, .option = tokens, .n_options = 2, .left_by = w.left_by, .looked = judge_alone, .user = &w,
    };
    block_policy_run(&log, policy, true, capacity, runs);
    for (uint32_t r = 0; r < l->rows.n; r++)
        free(path[r]);
}

static uint32_t index_of(const char *name)
{
    assert_true(name[0] == 't' && name[1] >= '0' && name[1] < '0' + MOST_TENANTS);
    return (uint32_t)(name[1] - '0');
}

static void expect_causes(const struct kvc_closeup_result *got, const struct causes *want,
                          const char *policy, uint64_t seed)
{
    bool same = got->all.hits.hit_tokens == want->hit && got->all.hits.tokens == want->tokens &&
                memcmp(got->all.missed_tokens, want->missed, sizeof(want->missed)) == 0;
    for (uint32_t i = 0; i < got->n_tenants; i++)
        same = same && memcmp(got->tenants[i].missed_tokens,
                              want->by_tenant[index_of(got->tenants[i].name)],
                              sizeof(want->by_tenant[0])) == 0;
    for (uint32_t i = 0; i < got->n_evictors; i++)
        for (uint32_t k = 0; k <= got->n_evictors; k++)
            same = same && got->evicted_tokens[i][k] ==
                               want->evicted[index_of(got->evictor[i])]
                                            [k < got->n_evictors ? index_of(got->evictor[k])
                                                                 : MOST_TENANTS];
    if (same)
        return;
    for (unsigned i = 0; i < KVC_MISS_CAUSES; i++)
        print_message("  %s: %llu, twin %llu\n", kvc_miss_cause_name(i),
                      (unsigned long long)got->all.missed_tokens[i],
                      (unsigned long long)want->missed[i]);
    fail_msg("%s, seed %llu", policy, (unsigned long long)seed);
}

static struct kvc_closeup *closeup(const struct log *l, const char *isolate, uint32_t replicas,
                                   const char *router)
{
    const struct kvc_closeup_options o = {
        .struct_size = sizeof(o), .by = "session", .isolate = isolate, .replicas = replicas,
        .router = router, .why = true,
    };
    struct kvc_closeup *c;
    assert_int_equal(kvc_closeup_create(&c, l->t, &o, NULL), KVC_OK);
    return c;
}

/* Victims of random depend on the order of segments, which blocks here don't know. */
static bool drawn(const char *policy)
{
    return strcmp(policy, "random") == 0;
}

static void every_cause_is_the_one_seen_block_by_block(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 250; seed++) {
        struct log l;
        uint64_t rng = kvc_rng_stream(seed, "capacity");
        make(&l, seed);
        for (int isolated = 0; isolated < 2; isolated++) {
            struct kvc_closeup *c = closeup(&l, isolated ? "tenant" : NULL, 1, NULL);
            for (const char *const *p = kvc_runs_policies(); *p; p++) {
                if (drawn(*p))
                    continue;
                struct kvc_closeup_result *res;
                struct causes want;
                uint32_t runs[MOST_ROWS];
                uint64_t capacity = kvc_rng_below(&rng, l.n_blocks + 2);
                watch(&l, *p, isolated, capacity, &want, runs);
                assert_int_equal(kvc_closeup_run(c, *p, capacity, &res, NULL), KVC_OK);
                expect_causes(res, &want, *p, seed);
                kvc_closeup_result_destroy(res);
            }
            kvc_closeup_destroy(c);
        }
        unmake(&l);
    }
}

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

static uint32_t lead(const struct log *l, const struct replica *p, uint32_t r)
{
    uint32_t run = 0;
    while (run < l->rows.row[r].n && place_of(p, (uint32_t)l->rows.row[r].ids[run]) < p->n)
        run++;
    return run;
}

static uint32_t usable(const struct log *l, uint32_t r, uint32_t run)
{
    uint32_t full = l->rows.row[r].tokens / l->rows.block_tokens;
    return (run < full ? run : full) * l->rows.block_tokens;
}

static uint32_t choose(const struct log *l, const struct kvc_router_ops *router, uint32_t n,
                       const struct replica *replica, uint32_t r, const uint32_t *to,
                       const uint32_t *runs, uint64_t *rng)
{
    struct kvc_route_view view[MOST_REPLICAS] = {{0}};
    const struct kvc_route_request request = {r, l->session[r], l->rows.row[r].tokens};
    for (uint32_t i = r > 4 * n ? r - 4 * n : 0; i < r; i++) {
        view[to[i]].running++;
        view[to[i]].context_tokens += l->rows.row[i].tokens;
        view[to[i]].queued_tokens += l->rows.row[i].tokens - usable(l, i, runs[i]);
    }
    for (uint32_t i = 0; router->wants_prefix && i < n; i++)
        view[i].hit_tokens = view[i].hit_tokens_any = usable(l, r, lead(l, &replica[i], r));
    return router->pick(NULL, &request, view, n, 1.0, rng);
}

static void watch_replicas(const struct log *l, const char *router, uint32_t n, uint64_t capacity,
                           struct causes *out, uint32_t *to, uint32_t *runs)
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
        to[r] = n == 1 ? 0 : choose(l, kvc_router_ops_of(kvc_router_find(router)), n, replica, r, to, runs, &rng);
        runs[r] = lead(l, &replica[to[r]], r);
        for (uint32_t i = 0; i < n; i++)
            if (i != to[r] && lead(l, &replica[i], r) > best)
                best = lead(l, &replica[i], r);
        judge(&w, r, runs[r], best);
        for (uint32_t i = l->rows.row[r].n; i-- > 0;)
            use(&replica[to[r]], (uint32_t)l->rows.row[r].ids[i], capacity, w.left_by, r + 1);
    }
}

/* Hits of the rows that go to each replica, as if they were alone. */
static void twin_assigned(const struct log *l, const uint32_t *to, uint32_t n,
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

static void check_replicas(const struct log *l, const char *router, uint32_t n, uint64_t capacity,
                           uint64_t seed)
{
    struct kvc_closeup *c = closeup(l, NULL, n, router);
    struct kvc_closeup_result *res, *opt;
    struct causes want;
    struct kvc_hits hits;
    uint32_t to[MOST_ROWS], runs[MOST_ROWS], got[MOST_REPLICAS] = {0};
    watch_replicas(l, router, n, capacity, &want, to, runs);
    assert_int_equal(kvc_closeup_run(c, "lru", capacity, &res, NULL), KVC_OK);
    expect_causes(res, &want, router, seed);
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
        assert_int_equal(kvc_closeup_run(c, "opt", capacity, &opt, NULL), KVC_OK);
        assert_memory_equal(&opt->all.hits, &res->assigned_optimum, sizeof(hits));
        /* the ladder; of one pool, content and optimum know no better than all separate ones */
        assert_true(res->optimum_pool.raw_hit_blocks >= res->assigned_optimum.raw_hit_blocks);
        assert_true(res->assigned_optimum.raw_hit_blocks >= res->all.hits.raw_hit_blocks);
        assert_true(res->assigned_content.raw_hit_blocks >= res->assigned_optimum.raw_hit_blocks);
        assert_true(res->optimum_pool.raw_hit_blocks >= res->pool.raw_hit_blocks);
        kvc_closeup_result_destroy(opt);
    }
    kvc_closeup_result_destroy(res);
    kvc_closeup_destroy(c);
}

static void replicas_do_what_blocks_behind_a_router_do(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 250; seed++) {
        struct log l;
        uint64_t rng = kvc_rng_stream(seed, "replicas");
        make(&l, seed);
        for (const char *const *router = kvc_router_names(); *router; router++)
            check_replicas(&l, *router, 1 + (uint32_t)kvc_rng_below(&rng, MOST_REPLICAS),
                           kvc_rng_below(&rng, l.n_blocks + 2), seed);
        unmake(&l);
    }
}

/* Any policy behind round-robin: each replica's rows by themselves, block by block. */
static void every_policy_runs_on_replicas(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct log l;
        uint64_t rng = kvc_rng_stream(seed, "any");
        make(&l, seed);
        struct kvc_closeup *c = closeup(&l, NULL, 2, "round-robin");
        for (const char *const *p = kvc_runs_policies(); *p; p++) {
            if (drawn(*p))
                continue;
            struct kvc_closeup_result *res;
            uint64_t capacity = kvc_rng_below(&rng, l.n_blocks / 2 + 2), want = 0;
            assert_int_equal(kvc_closeup_run(c, *p, capacity, &res, NULL), KVC_OK);
            for (uint32_t k = 0; k < 2; k++) {
                struct log part = l;
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
                watch(&part, *p, false, capacity, &causes, runs);
                want += causes.hit;
                twin_clear(&part.rows);
            }
            assert_int_equal(res->all.hits.hit_tokens, want);
            kvc_closeup_result_destroy(res);
        }
        kvc_closeup_destroy(c);
        unmake(&l);
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

static void check_price(const struct log *l, const struct kvc_closeup_result *res,
                        const uint32_t *own, const uint32_t *shared)
{
    uint64_t by_session[7] = {0}, shared_by_session[7] = {0}, depth[2][KVC_DEPTHS] = {{0}};
    uint64_t size = l->rows.block_tokens;
    for (uint32_t r = 0; r < l->rows.n; r++) {
        uint32_t s = l->session[r] == KVC_ID_NONE ? 6 : l->session[r];
        by_session[s] += usable(l, r, own[r]);
        shared_by_session[s] += usable(l, r, shared[r]);
        for (int k = 0; k < 2; k++)
            for (uint32_t i = 0; i < usable(l, r, k ? shared[r] : own[r]) / size; i++) {
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
        struct log l;
        uint64_t rng = kvc_rng_stream(seed, "price");
        make(&l, seed);
        const uint32_t larger = seed % 3 ? 1 : 700; /* deep prompts */
        l.rows.block_tokens *= larger;
        l.t->block_tokens *= larger;
        for (uint32_t r = 0; r < l.rows.n; r++)
            l.rows.row[r].tokens = l.t->input_tokens[r] *= larger;
        struct kvc_closeup *c = closeup(&l, "tenant", 1, NULL);
        for (const char *const *p = kvc_runs_policies(); *p; p++) {
            if (drawn(*p))
                continue;
            struct kvc_closeup_result *res;
            struct causes causes;
            uint32_t own[MOST_ROWS], shared[MOST_ROWS];
            uint64_t capacity = kvc_rng_below(&rng, l.n_blocks + 2);
            watch(&l, *p, true, capacity, &causes, own);
            watch(&l, *p, false, capacity, &causes, shared);
            assert_int_equal(kvc_closeup_run(c, *p, capacity, &res, NULL), KVC_OK);
            check_price(&l, res, own, shared);
            assert_int_equal(res->shared.hit_tokens, causes.hit);
            kvc_closeup_result_destroy(res);
        }
        kvc_closeup_destroy(c);
        unmake(&l);
    }
}

static void check_crossing(const struct log *l, const struct kvc_crossing *x)
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
                common += by[b][index_of(x->name[i])] && by[b][index_of(x->name[k])];
            assert_int_equal(x->common_blocks[i][k], common);
        }
}

static void crossing_is_what_two_ask_for(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct log l;
        make(&l, seed);
        struct kvc_closeup *c = closeup(&l, "tenant", 1, NULL);
        struct kvc_closeup_result *res;
        check_crossing(&l, kvc_closeup_crossing(c));
        /* what isolation takes from content is seen as salted, or as tails of such */
        assert_int_equal(kvc_closeup_run(c, "content", KVC_CAPACITY_INF, &res, NULL), KVC_OK);
        assert_int_equal(res->shared.hit_tokens - res->all.hits.hit_tokens,
                         res->all.missed_tokens[KVC_MISS_SALTED]);
        assert_int_equal(res->all.missed_tokens[KVC_MISS_EVICTED], 0);
        kvc_closeup_result_destroy(res);
        kvc_closeup_destroy(c);
        unmake(&l);
    }
}

static void every_failed_allocation_is_reported(void **state)
{
    struct log l = {.rows = {0}};
    (void)state;
    for (uint64_t seed = 1; l.rows.n < 20; seed++) {
        if (l.t)
            unmake(&l);
        make(&l, seed);
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
    unmake(&l);
}

static void wrong_words_are_named(void **state)
{
    struct kvc_closeup_options o = {.struct_size = sizeof(o), .by = "user"};
    struct kvc_closeup *c;
    struct kvc_error err;
    struct log l;
    (void)state;
    make(&l, 1);
    assert_int_equal(kvc_closeup_create(&c, l.t, &o, &err), KVC_ERR_USAGE);
    assert_string_equal(err.field, "by");
    o = (struct kvc_closeup_options){.struct_size = sizeof(o), .router = "stick"};
    assert_int_equal(kvc_closeup_create(&c, l.t, &o, &err), KVC_ERR_USAGE);
    assert_non_null(strstr(err.text, "\"sticky\""));
    unmake(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cause_is_the_one_seen_block_by_block),
        cmocka_unit_test(replicas_do_what_blocks_behind_a_router_do),
        cmocka_unit_test(every_policy_runs_on_replicas),
        cmocka_unit_test(isolation_costs_what_blocks_say),
        cmocka_unit_test(crossing_is_what_two_ask_for),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(wrong_words_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
