/* SPDX-License-Identifier: Apache-2.0
 * The closed loop against sums of step times, against a slow twin that goes request by request, and
 * against the replay; the clients' lengths against NumPy's published draws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "models/profiles.h"
#include "studies/engine/client_lengths.h"
#include "studies/engine/closed_disagg.h"
#include "tests/tiny_trace.h"

static struct kvc_step_model *build(void)
{
    struct kvc_step_config config = {kvc_llm_find("Llama-3.1-8B"), kvc_gpu_find("h100_sxm"),
                                     "vllm", KVC_BF16, KVC_BF16, 1, 1, .ep = 1};
    struct kvc_step_model *m = NULL;

    assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
    return m;
}

#define MOST 256

static struct kvc_request_length lengths[MOST];

static const struct kvc_request_length *alike(uint32_t input, uint32_t output)
{
    for (size_t i = 0; i < MOST; i++)
        lengths[i] = (struct kvc_request_length){input, output};
    return lengths;
}

static struct kvc_closed_loop loop_of(const struct kvc_step_model *m, uint32_t clients)
{
    const struct kvc_engine_profile *e = kvc_engine_find("vllm");

    return (struct kvc_closed_loop){
        m, {e->host_per_step_ns.value, e->host_per_sequence_ns.value,
            e->host_per_prefill_step_ns.value, e->front_end_ns.value, 0},
        {.max_batched_tokens = 8192, .plan_ahead = true}, clients, clients, alike(1000, 100), 1e9};
}

static double sum_of_decodes(const struct kvc_step_model *m, uint32_t n, uint32_t input,
                             uint32_t output)
{
    double sum = 0;

    for (uint32_t g = 1; g < output; g++)
        sum += (double)kvc_step_ns(m, NULL, 0, n, (uint64_t)n * (input + g), n, NULL);
    return sum;
}

static void alike_clients_take_the_sum_of_steps(void **state)
{
    struct kvc_step_model *m = build();

    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        struct kvc_closed_loop l = loop_of(m, n);
        struct kvc_chunk chunks[4] = {{1000, 0}, {1000, 0}, {1000, 0}, {1000, 0}};
        struct kvc_closed_loop_result r;
        double first = (double)kvc_step_ns(m, chunks, n, 0, 0, n, NULL) + l.host.front_ns;
        double token = sum_of_decodes(m, n, 1000, 100) / 99;
        l.requests = 3 * n; /* cohorts in lock-step */
        assert_int_equal(kvc_closed_loop_run(&l, &r, NULL), KVC_OK);
        assert_true(fabs(r.ttft_ns - first) < 10);
        assert_true(fabs(r.tpot_ns - token) < 10);
        assert_int_equal(r.peak_running, n);
        assert_int_equal(r.steps, 3 * 100);
    }
    kvc_step_model_destroy(m);
}

static void a_long_prompt_goes_in_chunks(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_closed_loop l = loop_of(m, 1);
    struct kvc_closed_loop_result r;
    struct kvc_chunk a = {600, 0}, b = {400, 600};

    (void)state;
    l.batching.max_batched_tokens = 600;
    assert_int_equal(kvc_closed_loop_run(&l, &r, NULL), KVC_OK);
    double steps = (double)kvc_step_ns(m, &a, 1, 0, 0, 0, NULL) +
                   (double)kvc_step_ns(m, &b, 1, 0, 0, 1, NULL);
    assert_true(fabs(r.ttft_ns - steps - l.host.front_ns) < 10);
    assert_true(r.flags & KVC_STEP_PAST);
    kvc_step_model_destroy(m);
}

/* Room for one request: the second waits for the whole of the first. */
static void full_memory_makes_a_queue(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_closed_loop l = loop_of(m, 2);
    struct kvc_closed_loop_result r;
    struct kvc_chunk c = {1000, 0};

    (void)state;
    l.kv_tokens = 1500;
    assert_int_equal(kvc_closed_loop_run(&l, &r, NULL), KVC_OK);
    double first = (double)kvc_step_ns(m, &c, 1, 0, 0, 1, NULL);
    double whole = first + sum_of_decodes(m, 1, 1000, 100);
    assert_int_equal(r.peak_running, 1);
    assert_true(fabs(r.ttft_ns - (first + l.host.front_ns + whole / 2)) < 10);
    kvc_step_model_destroy(m);
}

/* The replay schedules the same requests by code of its own. */
static void the_replay_agrees(void **state)
{
    static struct tiny_row rows[80];
    struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    static const char *const keys[][2] = {
        {"model", "llama-3.1-8b"}, {"cluster.gpu", "h100-sxm"}, {"arrivals.mode", "closed"},
        {"arrivals.concurrency", "8"}, {"engine.max_batched_tokens", "8192"}};
    struct kvc_step_model *m = build();
    struct kvc_closed_loop l = loop_of(m, 8);
    struct kvc_closed_loop_result r;
    struct kvc_scenario *sc = NULL;
    struct kvc_result *twin = NULL;

    (void)state;
    for (size_t i = 0; i < 80; i++)
        rows[i] = (struct tiny_row){.input_tokens = 3000, .output_tokens = 60,
                                    .session = KVC_ID_NONE, .think_ns = KVC_TIME_NONE};
    double front = l.host.front_ns;
    l.requests = 80;
    l.host.front_ns *= 2; /* a replay's clients wait for all of it before they ask again */
    l.length = alike(3000, 60); /* three prompts a step: cohorts spread out */
    assert_int_equal(kvc_closed_loop_run(&l, &r, NULL), KVC_OK);
    assert_int_equal(kvc_scenario_create(&sc, NULL, NULL), KVC_OK);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(kvc_scenario_set(sc, keys[i][0], keys[i][1], NULL), KVC_OK);
    struct kvc_trace *t = tiny_trace(rows, 80, 16, true);
    assert_int_equal(kvc_replay_run(&twin, t, sc, &options, NULL), KVC_OK);
    r.ttft_ns -= front;
    if (fabs(twin->ttft_ms.mean * 1e6 / r.ttft_ns - 1) > 0.02 ||
        fabs(twin->tpot_ms.mean * 1e6 / r.tpot_ns - 1) > 0.02)
        fail_msg("TTFT %g ms, the replay's %g; TPOT %g ms, the replay's %g", r.ttft_ns / 1e6,
                 twin->ttft_ms.mean, r.tpot_ns / 1e6, twin->tpot_ms.mean);
    tiny_trace_free(t);
    kvc_result_destroy(twin);
    kvc_scenario_destroy(sc);
    kvc_step_model_destroy(m);
}

/* ---- rules of engines, by hand ---- */

/* Sent when the second ends, a moment into the first's next step: the one after that is planned
 * by then, so the third begins one decode later than where steps are planned as they begin. */
static void who_comes_in_a_step_waits_for_the_planned_one(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_closed_loop l = loop_of(m, 2);
    struct kvc_request_length two[3] = {{1000, 50}, {1000, 10}, {1000, 10}};
    struct kvc_closed_loop_result at_once, ahead;
    struct kvc_chunk c = {1000, 0};

    (void)state;
    l.length = two;
    l.requests = 3;
    l.host.front_ns = 1;
    assert_int_equal(kvc_closed_loop_run(&l, &ahead, NULL), KVC_OK);
    l.batching.plan_ahead = false;
    assert_int_equal(kvc_closed_loop_run(&l, &at_once, NULL), KVC_OK);
    double later = (double)kvc_step_ns(m, NULL, 0, 1, 1011, 1, NULL) +
                   (double)kvc_step_ns(m, &c, 1, 1, 1012, 2, NULL) -
                   (double)kvc_step_ns(m, &c, 1, 1, 1011, 2, NULL);
    assert_true(fabs(3 * (ahead.ttft_ns - at_once.ttft_ns) - later) < 100);
    kvc_step_model_destroy(m);
}

/* The second prompt waits for the tokens of a whole budget or for so many steps. */
static void prompts_wait_for_company(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_closed_loop l = loop_of(m, 2);
    struct kvc_request_length two[3] = {{1000, 50}, {1000, 10}, {1000, 10}};
    struct kvc_closed_loop_result plain, waited;

    (void)state;
    l.length = two;
    l.requests = 3; /* the third is sent when the second ends, beside the first */
    l.host.front_ns = 0;
    l.batching.plan_ahead = false;
    assert_int_equal(kvc_closed_loop_run(&l, &plain, NULL), KVC_OK);
    l.batching.wait_steps = 20;
    l.batching.wait_tokens = 8000;
    assert_int_equal(kvc_closed_loop_run(&l, &waited, NULL), KVC_OK);
    struct kvc_chunk c = {1000, 0};
    double twenty = (double)kvc_step_ns(m, &c, 1, 1, 1030, 2, NULL) -
                    (double)kvc_step_ns(m, &c, 1, 1, 1010, 2, NULL);
    for (uint32_t g = 10; g < 30; g++)
        twenty += (double)kvc_step_ns(m, NULL, 0, 1, 1000 + g, 1, NULL);
    assert_true(fabs(3 * (waited.ttft_ns - plain.ttft_ns) - twenty) < 100);
    l.batching.wait_tokens = 1001; /* one prompt and one decode are enough */
    assert_int_equal(kvc_closed_loop_run(&l, &waited, NULL), KVC_OK);
    assert_true(waited.ttft_ns == plain.ttft_ns);
    kvc_step_model_destroy(m);
}

/* Fewer slots than clients: the one that waits does so for a generation over the slots. */
static void a_missing_slot_costs_a_generation(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_closed_loop l = loop_of(m, 2);
    struct kvc_closed_loop_result r;
    struct kvc_chunk c = {1000, 0};

    (void)state;
    l.requests = 40;
    l.batching.slots = 1;
    l.host.front_ns = 0;
    assert_int_equal(kvc_closed_loop_run(&l, &r, NULL), KVC_OK);
    double first = (double)kvc_step_ns(m, &c, 1, 0, 0, 1, NULL);
    double whole = first + sum_of_decodes(m, 1, 1000, 100);
    assert_int_equal(r.peak_running, 1);
    /* all but the first wait */
    assert_true(fabs(r.ttft_ns - (first + whole * 39 / 40)) < 1e-7 * r.ttft_ns);
    kvc_step_model_destroy(m);
}

/* A prompt that the rest of the budget can't hold waits for the next step. */
static void whole_prompts_are_not_cut(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_closed_loop l = loop_of(m, 3);
    struct kvc_closed_loop_result r;
    struct kvc_chunk c[2] = {{1000, 0}, {1000, 0}};

    (void)state;
    l.length = alike(1000, 1);
    l.batching.max_batched_tokens = 2500;
    l.batching.whole_prompts = true;
    assert_int_equal(kvc_closed_loop_run(&l, &r, NULL), KVC_OK);
    double two = (double)kvc_step_ns(m, c, 2, 0, 0, 2, NULL);
    double one = (double)kvc_step_ns(m, c, 1, 0, 0, 1, NULL);
    assert_int_equal(r.steps, 2);
    assert_true(fabs(3 * (r.ttft_ns - l.host.front_ns) - (2 * two + two + one)) < 10);
    assert_false(r.flags & KVC_STEP_PAST);
    kvc_step_model_destroy(m);
}

/* ---- a twin: every request looked at in every step ---- */

enum stage { UNSENT, SENT, HEARD, FILLING, DECODING, ENDED };

struct one {
    enum stage stage;
    uint32_t done, made;
    double sent, first, last;
};

struct twin {
    const struct kvc_closed_loop *l;
    struct one r[MOST];
    double now, began; /* began: the last step */
    uint32_t unheard, waited;
    bool filled; /* the last step held prefill */
};

static uint32_t count(const struct twin *t, enum stage stage)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->l->requests; i++)
        n += t->r[i].stage == stage;
    return n;
}

static bool room_for(const struct twin *t, uint32_t i)
{
    uint32_t beside = count(t, FILLING) + count(t, DECODING), slots = t->l->batching.slots;
    double kv = 0, held = t->l->batching.reserves_output ? 1 : 0.5;

    for (uint32_t j = 0; j < t->l->requests; j++)
        if (j == i || t->r[j].stage == FILLING || t->r[j].stage == DECODING)
            kv += t->l->length[j].input + held * t->l->length[j].output;
    return (!slots || beside < slots) && (beside == 0 || kv <= t->l->kv_tokens);
}

/* Prompts pass the front end in the order that they were sent in. */
static double arrives(const struct twin *t, uint32_t i)
{
    const struct kvc_host_costs *h = &t->l->host;

    return t->r[i].sent + h->front_ns / 2 + h->front_token_ns * t->l->length[i].input;
}

static void hear(struct twin *t, double by)
{
    if (count(t, DECODING) && !t->filled && ++t->unheard < t->l->batching.receive_steps)
        return;
    t->unheard = 0;
    for (uint32_t i = 0; i < t->l->requests; i++) {
        if (t->r[i].stage == SENT && arrives(t, i) > by)
            return;
        if (t->r[i].stage == SENT)
            t->r[i].stage = HEARD;
    }
}

/* Requests of the next step's prefill with the tokens each gets. */
static uint32_t plan(struct twin *t, uint32_t budget, uint32_t tokens[MOST], bool commit)
{
    const struct kvc_batching *b = &t->l->batching;
    struct twin copy = *t;
    uint32_t sum = 0;

    memset(tokens, 0, MOST * sizeof *tokens);
    for (uint32_t i = 0; i < t->l->requests && budget; i++) {
        struct one *r = &copy.r[i];
        uint32_t input = t->l->length[i].input;
        if (r->stage != HEARD && r->stage != FILLING)
            continue;
        bool never = input > b->max_batched_tokens;
        bool alone = count(&copy, FILLING) + count(&copy, DECODING) == 0;
        if (r->stage == HEARD && !room_for(&copy, i))
            break;
        if (r->stage == HEARD && b->whole_prompts && input > budget && !never && !alone)
            break;
        r->stage = FILLING;
        tokens[i] = input - r->done < budget ? input - r->done : budget;
        budget -= tokens[i];
        sum += tokens[i];
    }
    if (commit)
        *t = copy;
    return sum;
}

static bool waits(struct twin *t, uint32_t budget)
{
    const struct kvc_batching *b = &t->l->batching;
    uint32_t tokens[MOST], decodes = count(t, DECODING), ready = plan(t, budget, tokens, false);

    if (!b->wait_steps || !decodes || count(t, FILLING) || !ready)
        return false;
    if (t->waited < b->wait_steps && ready + decodes < b->wait_tokens) {
        t->waited++;
        return true;
    }
    t->waited = 0;
    return false;
}

static void finish(struct twin *t, uint32_t i)
{
    t->r[i].stage = ENDED;
    t->r[i].last = t->now;
    for (uint32_t j = 0; j < t->l->requests; j++)
        if (t->r[j].stage == UNSENT) {
            t->r[j].stage = SENT;
            t->r[j].sent = t->now;
            return;
        }
}

/* The step, and what it makes of each request. */
static void advance(struct twin *t, const uint32_t tokens[MOST], bool decode)
{
    const struct kvc_closed_loop *l = t->l;
    struct kvc_chunk chunk[MOST];
    uint32_t n_chunks = 0, n_decode = 0, n_first = 0;
    uint64_t context = 0, host, ns;

    for (uint32_t i = 0; i < l->requests; i++) {
        if (tokens[i]) {
            chunk[n_chunks++] = (struct kvc_chunk){tokens[i], t->r[i].done};
            n_first += t->r[i].done + tokens[i] == l->length[i].input;
        }
        if (decode && t->r[i].stage == DECODING) {
            n_decode++;
            context += l->length[i].input + t->r[i].made;
        }
    }
    ns = kvc_step_ns(l->model, chunk, n_chunks, n_decode, context, n_decode + n_first, &host);
    t->now += (double)(ns - host) + l->host.step_ns +
              l->host.sequence_ns * ((double)n_decode + n_chunks) +
              (n_chunks ? l->host.prefill_ns : 0);
    t->filled = n_chunks > 0;
    for (uint32_t i = 0; i < l->requests; i++)
        if (decode && t->r[i].stage == DECODING && ++t->r[i].made == l->length[i].output)
            finish(t, i);
    for (uint32_t i = 0; i < l->requests; i++) {
        t->r[i].done += tokens[i];
        if (tokens[i] && t->r[i].done == l->length[i].input) {
            t->r[i].stage = DECODING;
            t->r[i].made = 1;
            t->r[i].first = t->now;
            if (l->length[i].output == 1)
                finish(t, i);
        }
    }
}

static void twin_run(struct twin *t, const struct kvc_closed_loop *l, double *ttft, double *tpot)
{
    uint32_t tokens[MOST];

    memset(t, 0, sizeof *t);
    t->l = l;
    for (uint32_t i = 0; i < l->clients && i < l->requests; i++)
        t->r[i].stage = SENT;
    while (count(t, ENDED) < l->requests) {
        double next = INFINITY;
        for (uint32_t i = l->requests; i-- > 0;)
            if (t->r[i].stage == SENT)
                next = arrives(t, i);
        bool idle = count(t, HEARD) + count(t, FILLING) + count(t, DECODING) == 0;
        if (idle && t->now < next)
            t->now = next;
        hear(t, l->batching.plan_ahead && !idle ? t->began : t->now);
        t->began = t->now;
        uint32_t most = l->batching.max_batched_tokens, decodes = count(t, DECODING);
        bool alone = l->batching.prefill_first && plan(t, most, tokens, false) > 0;
        uint32_t budget = alone ? most : most > decodes ? most - decodes : 0;
        memset(tokens, 0, sizeof tokens);
        if (!waits(t, budget))
            plan(t, budget, tokens, true);
        advance(t, tokens, !alone);
    }
    *ttft = *tpot = 0;
    for (uint32_t i = 0; i < l->requests; i++) {
        *ttft += (t->r[i].first - t->r[i].sent + l->host.front_ns / 2) / l->requests;
        if (l->length[i].output > 1)
            *tpot += (t->r[i].last - t->r[i].first) / (l->length[i].output - 1) / l->requests;
    }
}

static void a_slow_twin_agrees(void **state)
{
    static struct kvc_request_length length[MOST];
    struct kvc_step_model *m = build();
    struct twin *t = malloc(sizeof *t);

    (void)state;
    assert_non_null(t);
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "closed loop twin");
        uint32_t clients = 1 + (uint32_t)kvc_rng_below(&rng, 12);
        struct kvc_closed_loop l = loop_of(m, clients);
        struct kvc_closed_loop_result r;
        double ttft, tpot;
        l.requests = clients * 4;
        l.length = length;
        l.host.front_token_ns = (double)kvc_rng_below(&rng, 3) * 1e4;
        for (uint32_t i = 0; i < l.requests; i++)
            length[i] = (struct kvc_request_length){1 + (uint32_t)kvc_rng_below(&rng, 1500),
                                                    1 + (uint32_t)kvc_rng_below(&rng, 30)};
        l.batching = (struct kvc_batching){
            .max_batched_tokens = 500 + (uint32_t)kvc_rng_below(&rng, 3000),
            .slots = (uint32_t)kvc_rng_below(&rng, 3) ? 0 : 1 + clients / 2,
            .prefill_first = kvc_rng_below(&rng, 2), .whole_prompts = kvc_rng_below(&rng, 2),
            .receive_steps = (uint32_t)kvc_rng_below(&rng, 12), .plan_ahead = seed % 2,
            .reserves_output = seed / 2 % 2};
        if (!l.batching.prefill_first && l.batching.whole_prompts && kvc_rng_below(&rng, 2)) {
            l.batching.wait_steps = (uint32_t)kvc_rng_below(&rng, 10);
            l.batching.wait_tokens = (uint32_t)kvc_rng_below(&rng, 3000);
            l.batching.max_batched_tokens += 1500; /* no prompt in parts beside those that wait */
        }
        l.kv_tokens = kvc_rng_below(&rng, 2) ? 1e9 : 4000;
        assert_int_equal(kvc_closed_loop_run(&l, &r, NULL), KVC_OK);
        twin_run(t, &l, &ttft, &tpot);
        if (fabs(r.ttft_ns / ttft - 1) > 1e-7 || fabs(r.tpot_ns - tpot) > 1e-7 * tpot)
            fail_msg("seed %u: TTFT %.3f ns, the twin's %.3f; TPOT %.3f, %.3f", (unsigned)seed,
                     r.ttft_ns, ttft, r.tpot_ns, tpot);
    }
    free(t);
    kvc_step_model_destroy(m);
}

/* ---- disaggregated ---- */

static struct kvc_closed_disagg disagg_of(const struct kvc_step_model *m, uint32_t clients,
                                          uint32_t prefill, uint32_t decode)
{
    const struct kvc_closed_loop l = loop_of(m, clients);

    return (struct kvc_closed_disagg){{m, prefill, 8192, 0}, {m, decode, 0, 1e9}, l.host, clients,
                                      clients, l.length, 5e5, 1000};
}

/* Nobody waits: prefill, copy, the decode step that brings the first token, the others. */
static void enough_engines_add_up(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_chunk c = {1000, 0};

    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        struct kvc_closed_disagg l = disagg_of(m, n, 1, n);
        struct kvc_closed_loop_result r;
        double first = (double)kvc_step_ns(m, NULL, 0, 1, 1001, 1, NULL);
        double prefill = (double)kvc_step_ns(m, &c, 1, 0, 0, 1, NULL);
        l.prefill.engines = n;
        l.prefill.most = 1000; /* one prompt each */
        l.requests = 3 * n;
        assert_int_equal(kvc_closed_disagg_run(&l, &r, NULL), KVC_OK);
        assert_true(fabs(r.ttft_ns - (l.host.front_ns + prefill + 5e5 + 1e6 + first)) < 10);
        assert_true(fabs(r.tpot_ns - (sum_of_decodes(m, 1, 1000, 100) - first) / 99) < 10);
        assert_int_equal(r.peak_running, 1);
    }
    kvc_step_model_destroy(m);
}

/* One prefill engine, prompts one by one: the k-th of a burst waits for those before it. */
static void prompts_queue_for_prefill(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_closed_disagg l = disagg_of(m, 4, 1, 4);
    struct kvc_closed_loop_result r;
    struct kvc_chunk c = {1000, 0};

    (void)state;
    l.prefill.most = 1000;
    assert_int_equal(kvc_closed_disagg_run(&l, &r, NULL), KVC_OK);
    double first = (double)kvc_step_ns(m, NULL, 0, 1, 1001, 1, NULL);
    double prefill = (double)kvc_step_ns(m, &c, 1, 0, 0, 1, NULL);
    assert_true(fabs(r.ttft_ns - (l.host.front_ns + 2.5 * prefill + 5e5 + 1e6 + first)) < 10);
    kvc_step_model_destroy(m);
}

/* A decode engine with room for one: the second waits for a generation. */
static void decode_engines_hold_what_fits(void **state)
{
    struct kvc_step_model *m = build();
    struct kvc_closed_disagg l = disagg_of(m, 2, 1, 1), alone = disagg_of(m, 1, 1, 1);
    struct kvc_closed_loop_result r, one;

    (void)state;
    l.decode.kv_tokens = 1500;
    assert_int_equal(kvc_closed_disagg_run(&l, &r, NULL), KVC_OK);
    assert_int_equal(kvc_closed_disagg_run(&alone, &one, NULL), KVC_OK);
    assert_int_equal(r.peak_running, 1);
    assert_true(fabs(r.tpot_ns - one.tpot_ns) < 10);
    assert_true(r.ttft_ns > one.ttft_ns + sum_of_decodes(m, 1, 1000, 100) / 2 - 10);
    kvc_step_model_destroy(m);
}

/* ---- lengths ---- */

/* numpy.random.seed(0); numpy.random.randint(0, 100, 10), of which the generator's first words are
 * a published vector; here lengths of 800 to 1000 draw from a range of 201. */
static void lengths_are_numpys(void **state)
{
    struct kvc_request_length l[4000];
    uint32_t low = 1000, high = 0;
    double sum = 0;

    (void)state;
    kvc_client_lengths(l, 10, 99, 99, 0); /* 0..99 */
    const uint32_t first[10] = {44, 47, 64, 67, 67, 9, 83, 21, 36, 87};
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(l[i].input, first[i]);
    kvc_client_lengths(l, 4000, 1000, 500, 0.8);
    for (size_t i = 0; i < 4000; i++) {
        low = l[i].input < low ? l[i].input : low;
        high = l[i].input > high ? l[i].input : high;
        sum += l[i].output;
    }
    assert_int_equal(low, 800);
    assert_int_equal(high, 1000);
    /* mean of 400..500, its standard deviation 101 / sqrt(12) / sqrt(4000) */
    assert_true(fabs(sum / 4000 - 450) < 5 * 101 / sqrt(12 * 4000.0));
    kvc_client_lengths(l, 3, 1000, 500, 1);
    assert_true(l[0].input == 1000 && l[2].input == 1000 && l[1].output == 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alike_clients_take_the_sum_of_steps),
        cmocka_unit_test(a_long_prompt_goes_in_chunks),
        cmocka_unit_test(full_memory_makes_a_queue),
        cmocka_unit_test(who_comes_in_a_step_waits_for_the_planned_one),
        cmocka_unit_test(prompts_wait_for_company),
        cmocka_unit_test(a_missing_slot_costs_a_generation),
        cmocka_unit_test(whole_prompts_are_not_cut),
        cmocka_unit_test(a_slow_twin_agrees),
        cmocka_unit_test(the_replay_agrees),
        cmocka_unit_test(enough_engines_add_up),
        cmocka_unit_test(prompts_queue_for_prefill),
        cmocka_unit_test(decode_engines_hold_what_fits),
        cmocka_unit_test(lengths_are_numpys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
