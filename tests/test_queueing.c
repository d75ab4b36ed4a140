/* SPDX-License-Identifier: Apache-2.0
 * The engine as a queue: with steps of constant length and so many sequences at once it is M/D/1,
 * M/M/1 and M/M/k, whose mean waits are known. Means are held within the confidence interval that
 * the run's own batches give. And what must hold exactly: twice the rates make half the times.
 * Where room for KV is short, the closed loop of engine rows waits about as the replay does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "models/step_model.h"
#include "sim/replay/engine.h"
#include "studies/engine/closed_loop.h"
#include "tests/tiny_trace.h"
#include "traces/trace_write.h"

#define STEP_NS 1048576 /* of any step, whatever is in it */
#define REQUESTS 40000
#define BATCHES 30
#define T_999 3.659 /* two-sided 99.9 % of Student's t, 29 degrees of freedom */

static void set(struct kvc_scenario *sc, const char *key, const char *value)
{
    struct kvc_error err;

    if (kvc_scenario_set(sc, key, value, &err) != KVC_OK)
        fail_msg("%s", err.text);
}

static struct kvc_scenario *scenario(const char *max_seqs)
{
    struct kvc_scenario *sc = NULL;

    assert_int_equal(kvc_scenario_create(&sc, NULL, NULL), KVC_OK);
    set(sc, "model", "llama-3.1-8b");
    set(sc, "cluster.gpu", "h100-sxm");
    set(sc, "engine.max_seqs", max_seqs);
    return sc;
}

static void zero(struct kvc_token_table *t)
{
    memset(t->ns, 0, (17 + (t->max - 16) / 16) * sizeof *t->ns);
    t->slope = 0;
}

/* A step costs step_ns, and sequence_ns for each sequence in it. */
static struct kvc_step_model *constant_model(double step_ns, double sequence_ns)
{
    struct kvc_step_config config = {kvc_llm_find("Llama-3.1-8B"), kvc_gpu_find("h100_sxm"),
                                     "vllm", KVC_BF16, KVC_BF16, 1, 1, .ep = 1};
    struct kvc_step_model *m = NULL;

    assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
    zero(&m->layers);
    zero(&m->head);
    zero(&m->alone);
    zero(&m->eight);
    zero(&m->past);
    zero(&m->waves);
    zero(&m->capped);
    memset(m->decode.ns, 0, sizeof m->decode.ns);
    m->prefill_fixed = m->decode_per_sequence = m->host_prefill = 0;
    m->host_step = step_ns;
    m->host_sequence = sequence_ns;
    return m;
}

static struct kvc_result *replay(const struct kvc_trace *t, const struct kvc_scenario *sc,
                                 struct kvc_step_model *model)
{
    const struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    struct kvc_engine e = {.trace = t, .sc = sc, .options = &options, .model = model,
                           .model_is_lent = true};
    struct kvc_result *r = NULL;
    struct kvc_error err = {0};

    if (kvc_engine_open(&e, &err) != KVC_OK)
        fail_msg("%s", err.text);
    while (kvc_engine_next(&e))
        ;
    assert_int_equal(kvc_collect(&e, &r, &err), KVC_OK);
    kvc_engine_close(&e);
    return r;
}

/* ---- traffic ---- */

struct traffic {
    struct kvc_trace t;
    uint64_t arrival[REQUESTS];
    uint32_t input[REQUESTS], output[REQUESTS], seg[REQUESTS];
};
static struct traffic w;

/* Poisson arrivals; answers of mean steps, or geometric about it. Prompts fit a step, so a request
 * is served for as many steps as it has output tokens. */
static void draw(double per_ns, uint32_t mean, bool geometric)
{
    uint64_t gap = kvc_rng_stream(7, "arrivals"), length = kvc_rng_stream(7, "lengths");
    double now = 0;

    memset(&w, 0, sizeof w);
    for (size_t i = 0; i < REQUESTS; i++) {
        now -= log1p(-kvc_rng_unit(&gap)) / per_ns;
        w.arrival[i] = (uint64_t)now;
        w.input[i] = 16;
        double u = kvc_rng_unit(&length);
        w.output[i] = geometric ? 1 + (uint32_t)(log1p(-u) / log1p(-1.0 / mean)) : mean;
        w.seg[i] = KVC_SEG_NONE;
    }
    w.t.arrival_ns = w.arrival;
    w.t.input_tokens = w.input;
    w.t.output_tokens = w.output;
    w.t.prompt_seg = w.seg;
    w.t.n_requests = REQUESTS;
    kvc_trace_digest(&w.t, w.t.digest);
}

struct estimate {
    double mean, half; /* of the confidence interval */
};

/* Mean wait in steps, by means of batches; the first tenth is warm-up. */
static struct estimate wait_of(const struct kvc_result *r)
{
    size_t from = REQUESTS / 10, each = (REQUESTS - from) / BATCHES;
    double batch[BATCHES], sum = 0, squares = 0;

    for (size_t b = 0; b < BATCHES; b++) {
        batch[b] = 0;
        for (size_t i = from + b * each; i < from + (b + 1) * each; i++) {
            assert_int_equal(r->requests[i].outcome, KVC_COMPLETED);
            batch[b] += (double)r->requests[i].queue_ns / STEP_NS / (double)each;
        }
        sum += batch[b];
    }
    for (size_t b = 0; b < BATCHES; b++)
        squares += (batch[b] - sum / BATCHES) * (batch[b] - sum / BATCHES);
    return (struct estimate){sum / BATCHES, T_999 * sqrt(squares / (BATCHES - 1) / BATCHES)};
}

/* bias: what the discrete steps can add at most, in steps. */
static void expect_wait(const char *name, const char *servers, double load, uint32_t mean,
                        bool geometric, double known, double bias)
{
    struct kvc_step_model *m = constant_model(STEP_NS, 0);
    struct kvc_scenario *sc = scenario(servers);

    draw(load * atof(servers) / mean / STEP_NS, mean, geometric);
    struct kvc_result *r = replay(&w.t, sc, m);
    struct estimate e = wait_of(r);
    print_message("%s at load %.2f: wait %.1f +- %.1f steps, known %.1f\n", name, load, e.mean,
                  e.half, known);
    assert_true(e.half < 0.3 * known); /* else the test says nothing */
    assert_true(e.mean > known - e.half && e.mean < known + e.half + bias);
    kvc_result_destroy(r);
    kvc_scenario_destroy(sc);
    kvc_step_model_destroy(m);
}

/* ---- known queues ---- */

static void md1(void **state)
{
    (void)state;
    for (double load = 0.5; load < 0.8; load += 0.25)
        expect_wait("M/D/1", "1", load, 200, false, load * 200 / (2 * (1 - load)), 0);
}

/* Geometric answers of mean m have a second moment of 2 m^2 - m: all but exponential. */
static void mm1(void **state)
{
    (void)state;
    for (double load = 0.5; load < 0.8; load += 0.2) {
        double m = 200, second = 2 * m * m - m;
        expect_wait("M/M/1", "1", load, 200, true, load / m * second / (2 * (1 - load)), 0);
    }
}

/* Erlang's C: the probability that all k are busy. */
static double erlang_c(unsigned k, double offered)
{
    double term = 1, sum = 0;

    for (unsigned i = 0; i < k; i++) {
        sum += term;
        term *= offered / (i + 1);
    }
    term *= k / (k - offered);
    return term / (sum + term);
}

/* While others run, a request waits for the step under way: one at most. */
static void mmk(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned k;
    } servers[] = {{"2", 2}, {"8", 8}};

    for (size_t i = 0; i < 2; i++) {
        double load = 0.7, offered = load * servers[i].k, m = 200;
        double known = erlang_c(servers[i].k, offered) * m / (servers[i].k - offered);
        char name[16];
        snprintf(name, sizeof name, "M/M/%u", servers[i].k);
        expect_wait(name, servers[i].text, load, 200, true, known, 1);
    }
}

/* ---- Little's law ---- */

/* Area under a level over time, in ns, from its series. */
static double area(const struct kvc_result *r, const char *name, uint64_t end_ns)
{
    double sum = 0;

    for (uint32_t k = 0; k < r->n_series; k++) {
        const struct kvc_series *s = &r->series[k];
        for (size_t i = 0; strcmp(s->name, name) == 0 && i < s->n; i++)
            sum += s->value[i] * (double)((i + 1 < s->n ? s->time_ns[i + 1] : end_ns) -
                                          s->time_ns[i]);
    }
    return sum;
}

/* L = lambda W, for those who wait and those who run: how many there are is counted at each event,
 * how long each stays on its own clock. */
static void as_many_are_there_as_come_times_how_long_they_stay(void **state)
{
    (void)state;
    static const char *const replicas[] = {"1", "3"};
    struct kvc_step_model *m = constant_model(STEP_NS, 65536);

    for (size_t k = 0; k < 2; k++) {
        struct kvc_scenario *sc = scenario("4");
        set(sc, "cluster.replicas", replicas[k]);
        draw(0.6 * 4 * atof(replicas[k]) / 200 / STEP_NS, 200, true);
        struct kvc_result *r = replay(&w.t, sc, m);
        double waited = 0, ran = 0, front = (double)kvc_step_front_ns(m), last = 0;
        for (size_t i = 0; i < REQUESTS; i++) {
            const struct kvc_request_result *q = &r->requests[i];
            double served = (double)q->e2e_ns - (double)q->queue_ns - (double)q->route_ns - front;
            double end = (double)q->arrival_ns + (double)q->e2e_ns;
            waited += (double)q->queue_ns;
            ran += served;
            last = end > last ? end : last;
        }
        double waiting = area(r, "waiting", (uint64_t)last);
        double running = area(r, "running", (uint64_t)last);
        print_message("%s replicas: %.3f wait, %.3f run, off %g %g\n", replicas[k], waiting / last,
                      running / last, waiting / waited - 1, running / ran - 1);
        assert_true(waited > 0 && fabs(waiting / waited - 1) < 1e-9);
        assert_true(fabs(running / ran - 1) < 1e-9);
        kvc_result_destroy(r);
        kvc_scenario_destroy(sc);
    }
    kvc_step_model_destroy(m);
}

/* ---- load and speed ---- */

/* Lindley: the same work behind one server, closer together, makes nobody wait less. */
static void more_load_never_shortens_a_wait(void **state)
{
    (void)state;
    struct kvc_step_model *m = constant_model(STEP_NS, 0);
    struct kvc_scenario *sc = scenario("1");
    struct kvc_result *before = NULL;

    for (double scale = 1; scale < 1.6; scale *= 1.25) {
        draw(0.4 * scale / 200 / STEP_NS, 200, true);
        struct kvc_result *r = replay(&w.t, sc, m);
        for (size_t i = 0; before && i < REQUESTS; i++)
            assert_true(r->requests[i].queue_ns + 2 >= before->requests[i].queue_ns);
        kvc_result_destroy(before);
        before = r;
    }
    kvc_result_destroy(before);
    kvc_scenario_destroy(sc);
    kvc_step_model_destroy(m);
}

/* Arrivals, steps and routing at twice the speed: the same run in half the time, exactly. */
static void twice_the_rates_half_the_times(void **state)
{
    (void)state;
    static const char *const replicas[] = {"1", "3"};

    for (size_t k = 0; k < 2; k++) {
        struct kvc_step_model *slow = constant_model(STEP_NS, 65536);
        struct kvc_step_model *fast = constant_model(STEP_NS / 2, 32768);
        struct kvc_scenario *sc = scenario("8");
        set(sc, "cluster.replicas", replicas[k]);
        slow->engine.front_end_ns.value = 4e6;
        fast->engine.front_end_ns.value = 2e6;
        draw(0.02 / STEP_NS, 200, true);
        for (size_t i = 0; i < REQUESTS; i++)
            w.arrival[i] &= ~1ull; /* even, so that half of it is a time */
        sc->router.latency_ns = 20000;
        struct kvc_result *a = replay(&w.t, sc, slow);
        for (size_t i = 0; i < REQUESTS; i++)
            w.arrival[i] /= 2;
        sc->router.latency_ns = 10000;
        struct kvc_result *b = replay(&w.t, sc, fast);
        for (size_t i = 0; i < REQUESTS; i++) {
            assert_int_equal(a->requests[i].ttft_ns, 2 * b->requests[i].ttft_ns);
            assert_int_equal(a->requests[i].e2e_ns, 2 * b->requests[i].e2e_ns);
            assert_int_equal(a->requests[i].replica, b->requests[i].replica);
        }
        assert_int_equal(a->makespan_ns, 2 * b->makespan_ns);
        kvc_result_destroy(a);
        kvc_result_destroy(b);
        kvc_scenario_destroy(sc);
        kvc_step_model_destroy(slow);
        kvc_step_model_destroy(fast);
    }
}

/* Room for three quarters of what eight clients' requests come to: the replay takes page by page
 * and preempts now and then. The closed loop where requests are half way through on average is near
 * its times; the one that takes a whole output's room at the start makes requests wait. */
static void room_goes_page_by_page(void **state)
{
    enum { N = 80 };
    static struct tiny_row rows[N];
    static struct kvc_request_length length[N];
    struct kvc_scenario *sc = scenario("1024");
    struct kvc_step_model *m = constant_model(STEP_NS, 0);
    double step = STEP_NS, front = (double)kvc_step_front_ns(m);
    struct kvc_closed_loop l = {m, {step, 0, 0, 2 * front, 0}, {.max_batched_tokens = 8192,
                                .plan_ahead = true}, 8, N, length, 12160};
    struct kvc_closed_loop_result paged, whole;

    (void)state;
    set(sc, "arrivals.mode", "closed");
    set(sc, "arrivals.concurrency", "8");
    set(sc, "engine.kv_cache_memory", "1520MiB"); /* 12,160 tokens */
    for (uint32_t i = 0; i < N; i++) {
        length[i] = (struct kvc_request_length){500, 1000 + i * 7919 % 1001};
        rows[i] = (struct tiny_row){.input_tokens = 500, .output_tokens = length[i].output,
                                    .session = KVC_ID_NONE, .think_ns = KVC_TIME_NONE};
    }
    assert_int_equal(kvc_closed_loop_run(&l, &paged, NULL), KVC_OK);
    l.batching.reserves_output = true;
    assert_int_equal(kvc_closed_loop_run(&l, &whole, NULL), KVC_OK);
    struct kvc_trace *t = tiny_trace(rows, N, 16, true);
    struct kvc_result *r = replay(t, sc, m);
    double seen = r->ttft_ms.mean * 1e6 + front; /* the loop's clients wait for it twice */
    print_message("TTFT %.0f ms, paged %.0f, whole %.0f; TPOT %.3f ms, paged %.3f, whole %.3f\n",
                  seen / 1e6, paged.ttft_ns / 1e6, whole.ttft_ns / 1e6, r->tpot_ms.mean,
                  paged.tpot_ns / 1e6, whole.tpot_ns / 1e6);
    /* what is preempted is computed again */
    assert_true(r->tpot_ms.mean * 1e6 / paged.tpot_ns > 1);
    assert_true(r->tpot_ms.mean * 1e6 / paged.tpot_ns < 1.1);
    assert_true(fabs(seen - paged.ttft_ns) < fabs(seen - whole.ttft_ns) / 4);
    tiny_trace_free(t);
    kvc_result_destroy(r);
    kvc_scenario_destroy(sc);
    kvc_step_model_destroy(m);
}

/* Rounds by arithmetic: steps of one prompt each, two lanes, three sessions of two turns. */
static void rounds_wait_for_the_last_answer(void **state)
{
    enum { N = 6 };
    static const uint64_t pause[] = {0, 0, 0, 5 * STEP_NS, 5 * STEP_NS, 0};
    static const double steps[] = {1, 2, 1, 1, 2, 1}; /* the third finds an idle engine */
    struct tiny_row rows[N];
    struct kvc_scenario *sc = scenario("1");
    struct kvc_step_model *m = constant_model(STEP_NS, 0);

    (void)state;
    set(sc, "engine.max_batched_tokens", "512");
    set(sc, "arrivals.mode", "closed");
    set(sc, "arrivals.concurrency", "2");
    set(sc, "arrivals.rounds", "true");
    set(sc, "engine.plan_ahead", "false");
    for (uint32_t i = 0; i < N; i++)
        rows[i] = (struct tiny_row){.input_tokens = 512, .output_tokens = 1, .session = i % 3,
                                    .think_ns = pause[i]};
    struct kvc_trace *t = tiny_trace(rows, N, 16, false);
    struct kvc_result *r = replay(t, sc, m);
    double front = (double)kvc_step_front_ns(m), at[N];
    for (uint32_t i = 0; i < N; i++) {
        at[i] = (double)r->requests[i].arrival_ns;
        assert_true(fabs((double)r->requests[i].ttft_ns - steps[i] * STEP_NS - front) < 1);
    }
    assert_true(fabs(at[2] - STEP_NS - front) < 1);
    assert_true(front > STEP_NS);
    double second = at[2] + STEP_NS + front; /* the client has the round's last answer */
    assert_true(fabs(at[3] - second - 5 * STEP_NS) < 1);
    assert_true(at[4] == at[3]);
    tiny_trace_free(t);
    kvc_result_destroy(r);
    kvc_scenario_destroy(sc);
    kvc_step_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(md1),
        cmocka_unit_test(mm1),
        cmocka_unit_test(mmk),
        cmocka_unit_test(as_many_are_there_as_come_times_how_long_they_stay),
        cmocka_unit_test(more_load_never_shortens_a_wait),
        cmocka_unit_test(twice_the_rates_half_the_times),
        cmocka_unit_test(room_goes_page_by_page),
        cmocka_unit_test(rounds_wait_for_the_last_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
