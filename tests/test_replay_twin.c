/* SPDX-License-Identifier: Apache-2.0
 * The slow replay alone against vLLM's executed examples (shared/systems/vllm.md, 6), so that
 * what the engine is compared with is itself known to be right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/replay_case.h"

#define SEC 1000000000ull
#define FRONT_NS 77u

static uint64_t toy_step(const void *user, const struct kvc_chunk *chunks, size_t n_chunks,
                         uint32_t n_decode, uint64_t context, uint32_t n_sampled, uint64_t *host)
{
    uint64_t ns = 5000000 + 10001 * n_decode + 101 * context + 5003 * n_sampled;

    (void)user;
    for (size_t i = 0; i < n_chunks; i++)
        ns += 100003 * chunks[i].tokens + 1009 * chunks[i].past;
    if (host)
        *host = 500;
    return ns;
}

static void toy_decode(const void *user, uint32_t n, uint64_t context, struct kvc_decode_cost *out)
{
    (void)user;
    out->c0_q16 = (5000000 + 15004 * (int64_t)n) * 65536 + 1;
    out->c1_q40 = ((int64_t)101 << 40) + 3;
    out->context_end = context | 63;
    out->host_ns = 500;
}

static uint32_t pick_first(void *state, const struct kvc_route_request *request,
                           const struct kvc_route_view *views, uint32_t n, double load_weight,
                           uint64_t *rng)
{
    (void)state;
    (void)request, (void)views, (void)n, (void)load_weight, (void)rng;
    return 0;
}

static uint32_t pick_shortest(void *state, const struct kvc_route_request *request,
                              const struct kvc_route_view *views, uint32_t n, double load_weight,
                              uint64_t *rng)
{
    (void)state;
    uint32_t best = 0;

    (void)load_weight, (void)rng;
    for (uint32_t i = 1; i < n; i++)
        if (views[i].queued_tokens + views[i].context_tokens + request->input_tokens -
                views[i].hit_tokens <
            views[best].queued_tokens + views[best].context_tokens + request->input_tokens -
                views[best].hit_tokens)
            best = i;
    return best;
}

static const struct kvc_router_ops shortest_router = {
    .struct_size = sizeof(struct kvc_router_ops), .wants_prefix = true, .pick = pick_shortest};
static const struct kvc_router_ops first_router = {.struct_size = sizeof(struct kvc_router_ops),
                                                 .pick = pick_first};

static void defaults(struct kvc_scenario *sc, struct twin_setup *setup, uint64_t pages)
{
    memset(sc, 0, sizeof *sc);
    sc->engine.page_tokens = 4;
    sc->engine.max_batched_tokens = 8192;
    sc->engine.max_seqs = 64;
    sc->engine.prefix_caching = sc->engine.chunked_prefill = true;
    sc->engine.reserve_full_prompt = sc->engine.unhashed_first = true;
    sc->cluster.replicas = sc->cluster.dp = sc->cluster.tp = sc->cluster.pp = 1;
    sc->arrivals.scale = 1.0;
    memset(setup, 0, sizeof *setup);
    setup->pages = pages;
    setup->kv_bytes_per_token = 1000;
    setup->clock = (struct twin_clock){NULL, toy_step, toy_decode, 0, NULL, NULL};
    setup->router = &first_router;
}

static void expect_hits(const struct tiny_row *rows, uint32_t n, uint64_t pages, bool unhashed,
                        const uint32_t *hits)
{
    struct kvc_scenario sc;
    struct twin_setup setup;
    struct twin_result out;

    defaults(&sc, &setup, pages);
    sc.engine.unhashed_first = unhashed;
    for (int whole = 0; whole < 2; whole++) {
        struct kvc_trace *t = tiny_trace(rows, n, 4, whole);

        replay_twin_run(t, &sc, &setup, &out);
        assert_false(out.stalled);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(out.requests[i].outcome, KVC_COMPLETED);
            assert_int_equal(out.requests[i].hit_tokens[0], hits[i]);
        }
        replay_twin_clear(&out);
        tiny_trace_free(t);
    }
}

static void v1(void **state)
{
    const struct tiny_row rows[] = {tiny_row(0, 12, "abc"),       tiny_row(1 * SEC, 12, "abc"),
                                    tiny_row(2 * SEC, 13, "abc"), tiny_row(3 * SEC, 12, "xyz"),
                                    tiny_row(4 * SEC, 13, "abc"), tiny_row(5 * SEC, 13, "xyz")};
    const uint32_t hits[] = {0, 8, 12, 0, 12, 8};

    (void)state;
    expect_hits(rows, 6, 6, true, hits);
    expect_hits(rows, 6, 6, false, hits);
}

static void v2(void **state)
{
    const char *seq[] = {"12", "13", "45", "12", "67", "13", "45", "12"};
    const uint32_t old_hits[] = {0, 4, 0, 8, 0, 4, 0, 4}, new_hits[] = {0, 4, 0, 8, 0, 4, 4, 4};
    struct tiny_row rows[8];

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        rows[i] = tiny_row((uint64_t)i * SEC, 9, seq[i]);
    expect_hits(rows, 8, 7, false, old_hits);
    expect_hits(rows, 8, 7, true, new_hits);
}

static void v3(void **state)
{
    struct tiny_row rows[] = {tiny_row(0, 9, "ab"), tiny_row(0, 9, "ab"), tiny_row(0, 11, "ab")};
    const uint32_t hits[] = {0, 8, 8};

    (void)state;
    rows[1].ids[2] = 2001;
    rows[2].ids[2] = 2002;
    expect_hits(rows, 3, 100, true, hits);
    expect_hits(rows, 3, 100, false, hits);
}

static void v4(void **state)
{
    struct tiny_row rows[] = {tiny_row(0, 10, "ab"), tiny_row(1 * SEC, 19, "abcd")};
    const uint32_t hits[] = {0, 12};

    (void)state;
    rows[0].output_tokens = 6;
    rows[0].n_out = 4;
    memcpy(rows[0].out, rows[1].ids, 4 * sizeof rows[0].out[0]);
    expect_hits(rows, 2, 100, true, hits);
    expect_hits(rows, 2, 100, false, hits);
}

/* Hits and causes are all input tokens; time in the system is what the requests say. */
static void check_laws(const struct replay_case *c, const struct twin_result *out)
{
    uint64_t input = 0, found = 0;
    double sojourn = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        const struct kvc_request_result *r = &out->requests[i];

        input += r->input_tokens;
        for (int k = 0; k < KVC_MAX_TIERS; k++)
            found += r->hit_tokens[k];
        if (r->outcome == KVC_COMPLETED) {
            sojourn += (double)(r->e2e_ns - FRONT_NS);
            assert_true(r->e2e_ns >= r->ttft_ns);
            assert_true(r->ttft_ns == r->queue_ns + r->route_ns + r->load_ns + r->prefill_ns +
                                          r->host_ns);
            assert_true(r->queue_ns <= r->ttft_ns);
        }
    }
    for (int k = 0; k < KVC_MISS_CAUSES; k++)
        found += out->missed[k];
    assert_int_equal(found, input);
    if (c->sc.request_timeout_ns == 0)
        assert_true(sojourn > out->request_ns - 1 && sojourn < out->request_ns + 1);
}

/* By blocks, or by the segments that the library's forest makes of them. */
static void run_case(const struct replay_case *c, const struct twin_setup *setup, bool forest,
                     struct twin_result *out)
{
    struct kvc_trace *t = forest ? replay_case_forest(c)
                                 : tiny_trace(c->rows, c->n, c->block_tokens, false);

    replay_twin_run(t, &c->sc, setup, out);
    if (forest)
        kvc_trace_destroy(t);
    else
        tiny_trace_free(t);
}

/* Laws that hold whatever the traffic; segments are only names of blocks. */
static void laws(void **state)
{
    static struct replay_case c;
    struct kvc_scenario base;
    struct twin_setup setup;
    uint64_t stalls = 0, preemptions = 0, hits[4] = {0};

    (void)state;
    defaults(&base, &setup, 1);
    setup.clock.front_ns = FRONT_NS;
    setup.router = &shortest_router;
    setup.links[0] = (struct twin_link){.read_bytes_per_s = 1e9, .write_bytes_per_s = 1e9};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct twin_result a, b;

        replay_case_make(&c, seed, (enum case_level)(seed % 4), &base, setup.kv_bytes_per_token);
        setup.pages = c.pages;
        for (int k = 0; k < 3; k++)
            setup.links[1 + k] =
                (struct twin_link){.read_bytes_per_s = c.sc.tiers[k].link_bytes_per_s,
                                   .write_bytes_per_s = c.sc.tiers[k].link_bytes_per_s,
                                   .latency_ns = c.sc.tiers[k].link_latency_ns};
        run_case(&c, &setup, true, &a);
        run_case(&c, &setup, false, &b);
        assert_memory_equal(a.requests, b.requests, c.n * sizeof a.requests[0]);
        stalls += a.stalled;
        if (!a.stalled)
            check_laws(&c, &a);
        preemptions += a.preemptions;
        for (uint32_t i = 0; i < c.n; i++)
            for (int k = 0; k < 4; k++)
                hits[k] += a.requests[i].hit_tokens[k];
        replay_twin_clear(&a);
        replay_twin_clear(&b);
    }
    assert_int_equal(stalls, 0);
    assert_true(preemptions > 500); /* the cases are worth something */
    for (int k = 0; k < 4; k++)
        assert_true(hits[k] > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v1), cmocka_unit_test(v2), cmocka_unit_test(v3), cmocka_unit_test(v4),
        cmocka_unit_test(laws)};

    return cmocka_run_group_tests_name("replay_twin", tests, NULL, NULL);
}
