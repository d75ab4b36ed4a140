/* SPDX-License-Identifier: Apache-2.0
 * Built-in policies: lookup, the routing rules, balance on a toy cluster, determinism. */
#include "base/rng.h"
#include "policies/policies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MAX_REPLICAS 16

static uint32_t route(const char *name, uint64_t index, uint32_t session,
                      const struct kvc_route_view *views, uint32_t n, double load_weight)
{
    uint64_t rng = 1;
    struct kvc_route_request r = {.index = index, .session = session, .input_tokens = 1000};
    return kvc_router_named(name)->pick(NULL, &r, views, n, load_weight, &rng);
}

static void policies_are_found_by_any_spelling_of_their_name(void **state)
{
    (void)state;
    struct kvc_eviction order;
    for (const char *const *n = kvc_eviction_names(); *n; n++)
        assert_int_equal(kvc_eviction_of(*n, &order, NULL), KVC_OK);
    for (const char *const *n = kvc_router_names(); *n; n++) {
        assert_string_equal(kvc_policy_find(KVC_POLICY_ROUTING, *n)->name, *n);
        assert_non_null(kvc_router_named(*n)->pick);
        assert_non_null(kvc_policy_find(KVC_POLICY_ROUTING, *n)->summary);
    }
    assert_ptr_equal(kvc_policy_find(KVC_POLICY_ROUTING, "Round_Robin"),
                     kvc_policy_find(KVC_POLICY_ROUTING, "round-robin"));
    assert_null(kvc_policy_find(KVC_POLICY_ROUTING, "magic"));
    assert_int_equal(kvc_eviction_of("magic", &order, NULL), KVC_ERR_USAGE);
    assert_int_equal(kvc_eviction_of("lru", &order, NULL), KVC_OK);
    assert_true(order.queue && order.touch_moves && !order.ttl_ns);
    assert_int_equal(kvc_eviction_of("TTLfixed:ttl=2m", &order, NULL), KVC_OK);
    assert_true(order.queue && !order.touch_moves && order.ttl_ns == 120000000000);
    assert_int_equal(kvc_eviction_of("s3fifo:small=0.2", &order, NULL), KVC_OK);
    assert_false(order.queue);
    assert_int_equal(kvc_eviction_of("optforced", &order, NULL), KVC_ERR_USAGE);
    assert_int_equal(kvc_eviction_of("lfu+second", &order, NULL), KVC_ERR_USAGE);
    assert_int_equal(kvc_eviction_of("lru+second", &order, NULL), KVC_ERR_USAGE);
    assert_true(kvc_router_named("prefix")->wants_prefix);
    assert_false(kvc_router_named("least-loaded")->wants_prefix);
}

static void one_replica_takes_everything(void **state)
{
    (void)state;
    struct kvc_route_view one = {.running = 5, .waiting = 9, .queued_tokens = 1u << 30};
    for (const char *const *n = kvc_router_names(); *n; n++)
        for (uint64_t i = 0; i < 5; i++)
            assert_int_equal(route(*n, i, (uint32_t)i, &one, 1, 1.0), 0);
}

static void round_robin_is_the_index_modulo_the_replicas(void **state)
{
    (void)state;
    struct kvc_route_view v[3] = {{.waiting = 100}, {.running = 0}, {.running = 1}};
    for (uint64_t i = 0; i < 12; i++)
        assert_int_equal(route("round-robin", i, KVC_ID_NONE, v, 3, 1.0), i % 3);
}

static void least_loaded_counts_requests_then_tokens_then_takes_turns(void **state)
{
    (void)state;
    struct kvc_route_view v[3] = {
        {.running = 3, .waiting = 1}, {.running = 1, .waiting = 2}, {.running = 4, .waiting = 0}};
    assert_int_equal(route("least-loaded", 0, KVC_ID_NONE, v, 3, 1.0), 1);
    v[2].running = 3;
    v[1].queued_tokens = 10;
    assert_int_equal(route("least-loaded", 0, KVC_ID_NONE, v, 3, 1.0), 2);
    v[2].queued_tokens = 10;
    v[2].context_tokens = 7;
    assert_int_equal(route("least-loaded", 0, KVC_ID_NONE, v, 3, 1.0), 1);
    struct kvc_route_view idle[4] = {{0}};
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(route("least-loaded", i, KVC_ID_NONE, idle, 4, 1.0), i % 4);
}

/* The rule written out: the smallest of queue + own prefill, at weight 1. */
static void prefix_minimises_queue_plus_own_prefill_at_weight_one(void **state)
{
    (void)state;
    uint64_t rng = 11;
    for (int round = 0; round < 3000; round++) {
        struct kvc_route_view v[MAX_REPLICAS] = {{0}};
        uint32_t n = 1 + (uint32_t)kvc_rng_below(&rng, MAX_REPLICAS);
        int64_t best = INT64_MAX;
        for (uint32_t i = 0; i < n; i++) {
            v[i].queued_tokens = kvc_rng_below(&rng, 4) * 512;
            v[i].hit_tokens = (uint32_t)kvc_rng_below(&rng, 4) * 512;
            v[i].hit_tokens_any = v[i].hit_tokens + (uint32_t)kvc_rng_below(&rng, 2) * 512;
            int64_t cost = (int64_t)v[i].queued_tokens - (int64_t)v[i].hit_tokens_any;
            best = cost < best ? cost : best;
        }
        uint32_t p = route("prefix", (uint64_t)round, KVC_ID_NONE, v, n, 1.0);
        assert_true(p < n);
        assert_int_equal((int64_t)v[p].queued_tokens - (int64_t)v[p].hit_tokens_any, best);
    }
}

static void prefix_weight_moves_it_between_cache_and_queue(void **state)
{
    (void)state;
    struct kvc_route_view v[2] =
        {{.queued_tokens = 5000, .hit_tokens = 2000, .hit_tokens_any = 2000},
                                  {.queued_tokens = 1000}};
    assert_int_equal(route("prefix", 0, KVC_ID_NONE, v, 2, 0.0), 0);
    assert_int_equal(route("prefix", 0, KVC_ID_NONE, v, 2, 0.4), 0);
    assert_int_equal(route("prefix", 0, KVC_ID_NONE, v, 2, 0.6), 1);
    assert_int_equal(route("prefix", 0, KVC_ID_NONE, v, 2, 1e9), 1);
    /* equal scores: HBM before lower tiers, then the lighter one */
    struct kvc_route_view w[3] = {{.hit_tokens = 100, .hit_tokens_any = 900},
                                  {.hit_tokens = 500, .hit_tokens_any = 900, .running = 2},
                                  {.hit_tokens = 500, .hit_tokens_any = 900, .running = 1}};
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(route("prefix", i, KVC_ID_NONE, w, 3, 1.0), 2);
}

static void sticky_keeps_a_session_on_its_replica_and_spreads_sessions(void **state)
{
    (void)state;
    struct kvc_route_view v[8] = {{0}};
    uint32_t count[8] = {0};
    for (uint32_t s = 0; s < 8000; s++) {
        uint32_t r = route("sticky", s, s, v, 8, 1.0);
        assert_int_equal(route("sticky", s + 17, s, v, 8, 1.0), r);
        count[r]++;
    }
    for (int i = 0; i < 8; i++) /* binomial: 1000 +- 29.6; five sigma */
        assert_in_range(count[i], 850, 1150);
    assert_int_equal(route("sticky", 13, KVC_ID_NONE, v, 8, 1.0), 13 % 8);
}

/* ---- a toy cluster: each replica computes so many tokens between two arrivals, and every
 * request decodes for the time of DECODING arrivals ---- */

#define DECODING 24

struct toy {
    uint32_t n;
    struct kvc_route_view view[MAX_REPLICAS];
    uint64_t assigned[MAX_REPLICAS];
    bool holds_shared[MAX_REPLICAS];
    struct {
        uint32_t replica, tokens;
    } decoding[DECODING];
    uint64_t rng;
};

/* All prompts share the first 512 tokens; the rest is their own. */
static void serve(struct toy *t, const char *router, uint64_t index, uint32_t tokens,
                  uint64_t drained)
{
    struct kvc_route_request r = {.index = index, .session = (uint32_t)(index % 50),
                                  .input_tokens = tokens};
    const struct kvc_router_ops *ops = kvc_router_named(router);
    for (uint32_t i = 0; i < t->n; i++) {
        struct kvc_route_view *v = &t->view[i];
        v->queued_tokens -= v->queued_tokens < drained ? v->queued_tokens : drained;
        v->waiting = (uint32_t)((v->queued_tokens + 3999) / 4000);
        v->hit_tokens = v->hit_tokens_any = t->holds_shared[i] ? 512 : 0;
    }
    uint32_t p = ops->pick(NULL, &r, t->view, t->n, 1.0, &t->rng);
    uint32_t slot = (uint32_t)(index % DECODING);
    assert_true(p < t->n);
    if (t->decoding[slot].tokens) {
        t->view[t->decoding[slot].replica].context_tokens -= t->decoding[slot].tokens;
        t->view[t->decoding[slot].replica].running--;
    }
    t->decoding[slot].replica = p;
    t->decoding[slot].tokens = tokens;
    t->view[p].context_tokens += tokens;
    t->view[p].running++;
    t->view[p].queued_tokens += tokens - t->view[p].hit_tokens;
    t->holds_shared[p] = true;
    t->assigned[p] += tokens;
}

static double imbalance(const char *router, uint64_t drained, struct toy *t)
{
    memset(t, 0, sizeof(*t));
    t->n = 8;
    t->rng = kvc_rng_stream(1, "router");
    uint64_t draw = kvc_rng_stream(1, "toy"), total = 0, most = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        uint32_t tokens = 600 + (uint32_t)kvc_rng_below(&draw, 8000);
        total += tokens;
        serve(t, router, i, tokens, drained);
    }
    for (uint32_t i = 0; i < t->n; i++)
        most = t->assigned[i] > most ? t->assigned[i] : most;
    return (double)most * t->n / (double)total;
}

static void a_prefix_that_all_prompts_share_does_not_fill_one_replica(void **state)
{
    (void)state;
    struct toy t;
    /* a mean prompt of 4,600 tokens for 8 replicas: 575 drained between arrivals is full load */
    const uint64_t drained[] = {200, 600, 2000, 5000, 20000};
    for (size_t i = 0; i < sizeof(drained) / sizeof(drained[0]); i++) {
        assert_true(imbalance("least-loaded", drained[i], &t) < 1.25);
        assert_true(imbalance("prefix", drained[i], &t) < 1.25);
        assert_true(imbalance("round-robin", drained[i], &t) < 1.1);
    }
    assert_true(imbalance("power-of-two", 600, &t) < 1.25);
}

static void equal_inputs_give_equal_choices(void **state)
{
    (void)state;
    for (const char *const *n = kvc_router_names(); *n; n++) {
        struct toy a, b;
        imbalance(*n, 600, &a);
        imbalance(*n, 600, &b);
        assert_memory_equal(a.assigned, b.assigned, sizeof(a.assigned));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_are_found_by_any_spelling_of_their_name),
        cmocka_unit_test(one_replica_takes_everything),
        cmocka_unit_test(round_robin_is_the_index_modulo_the_replicas),
        cmocka_unit_test(least_loaded_counts_requests_then_tokens_then_takes_turns),
        cmocka_unit_test(prefix_minimises_queue_plus_own_prefill_at_weight_one),
        cmocka_unit_test(prefix_weight_moves_it_between_cache_and_queue),
        cmocka_unit_test(sticky_keeps_a_session_on_its_replica_and_spreads_sessions),
        cmocka_unit_test(a_prefix_that_all_prompts_share_does_not_fill_one_replica),
        cmocka_unit_test(equal_inputs_give_equal_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
