/* SPDX-License-Identifier: Apache-2.0
 * Pipeline stages against closed forms and against a flow of batches through stages; experts dealt
 * and cut at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "models/models.h"
#include "models/step_model.h"
#include "sim/scenario/scenario.h"
#include "tests/replay_agree.h"

static struct kvc_step_config config_of(const char *llm, const char *gpu, uint32_t tp, uint32_t pp)
{
    return (struct kvc_step_config){.llm = kvc_llm_find(llm), .gpu = kvc_gpu_find(gpu),
                                    .backend = "vllm", .weights = KVC_FP8, .kv = KVC_FP8, .tp = tp,
                                    .pp = pp, .ep = 1};
}

static struct kvc_step_model *build(const struct kvc_step_config *c)
{
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};

    if (kvc_step_model_create(&m, c, &err) != KVC_OK)
        fail_msg("%s", err.text);
    return m;
}

static struct kvc_step_model *build_plain(const char *llm, uint32_t tp, uint32_t pp)
{
    struct kvc_step_config c = config_of(llm, "h100_sxm", tp, pp);

    return build(&c);
}

static void near(double a, double b, double share)
{
    if (fabs(a - b) > share * fabs(b))
        fail_msg("%.9g is not within %g of %.9g", a, share, b);
}

static double step_ns(const struct kvc_step_model *m, uint32_t n, uint64_t context)
{
    return (double)kvc_step_ns(m, NULL, 0, n, context, n, NULL);
}

static double head_ns(const struct kvc_step_model *m, uint32_t n, uint64_t context)
{
    return step_ns(m, n, context) - (double)kvc_step_ns(m, NULL, 0, n, context, 0, NULL);
}

/* What vLLM 0.24 deals out (get_pp_indices), worked by hand. */
static void layers_are_dealt_as_vllm_does(void **state)
{
    static const struct {
        uint32_t layers, stages, dealt[4];
    } known[] = {{80, 4, {20, 20, 20, 20}}, {61, 4, {15, 15, 16, 15}}, {61, 2, {31, 30}},
                 {62, 4, {15, 16, 16, 15}}, {63, 4, {16, 16, 16, 15}}, {5, 1, {5}}};

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (uint32_t s = 0; s < known[i].stages; s++)
            assert_int_equal(kvc_stage_layers(known[i].layers, known[i].stages, s),
                             known[i].dealt[s]);
    for (uint32_t stages = 1; stages <= 61; stages++) {
        uint32_t sum = 0;
        for (uint32_t s = 0; s < stages; s++)
            sum += kvc_stage_layers(61, stages, s);
        assert_int_equal(sum, 61);
    }
    assert_false(kvc_stage_leaves_node(4, 8, 0));
    assert_true(kvc_stage_leaves_node(4, 8, 1));
    assert_false(kvc_stage_leaves_node(4, 0, 1));
}

/* No byte of weights is lost or stored twice, and KV that fills the fullest stage is what the room
 * of all of them is counted from. */
static void bytes_are_conserved(void **state)
{
    static const char *const llms[] = {"Llama-3.1-70B", "DeepSeek-V3", "Qwen3-235B-A22B",
                                       "gpt-oss-120b"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t pp = 2; pp <= 8; pp += 3) {
            struct kvc_step_config c = config_of(llms[i], "h200_sxm", 4, pp);
            c.weights = i == 3 ? KVC_MXFP4 : KVC_FP8;
            struct kvc_step_model *m = build(&c);
            double all = 0, most = 0, layers = c.llm->layers;
            for (uint32_t s = 0; s < pp; s++) {
                double of = kvc_step_weight_bytes(m, s);
                all += of;
                most = fmax(most, of);
            }
            near(4 * all, (double)kvc_llm_weight_bytes(c.llm, c.weights), 1e-9);
            double room = (double)kvc_step_kv_capacity_bytes(m, 0.9, 8192) / 4, least = HUGE_VAL;
            struct kvc_step_config one = c;
            one.pp = 1;
            struct kvc_step_model *whole = build(&one);
            /* a stage's memory: what is free beside all weights, and the weights it does without */
            double free_bytes = (double)kvc_step_kv_capacity_bytes(whole, 4, 8192) / 4 -
                                3.1 * c.gpu->memory_bytes.value;
            for (uint32_t s = 0; s < pp; s++)
                least = fmin(least, (free_bytes + kvc_step_weight_bytes(whole, 0) -
                                     kvc_step_weight_bytes(m, s)) * layers /
                                        kvc_stage_layers(c.llm->layers, pp, s));
            near(room, least, 1e-6);
            kvc_step_model_destroy(whole);
            kvc_step_model_destroy(m);
        }
    }
}

/* One sequence: no stage is spared, and between them its activations travel. */
static void one_stream_takes_the_sum_of_the_stages(void **state)
{
    struct kvc_step_model *whole = build_plain("Llama-3.1-70B", 1, 1);
    struct kvc_chunk chunk = {1000, 0};

    (void)state;
    for (uint32_t pp = 2; pp <= 8; pp *= 2) {
        struct kvc_step_model *m = build_plain("Llama-3.1-70B", 1, pp);
        double hop = 2 * (7500 + 8192 * 2.0 / (0.8 * 450e9) * 1e9);
        near(step_ns(m, 1, 5000), step_ns(whole, 1, 5000) + (pp - 1) * hop, 1e-6);
        hop = 2 * (7500 + 1000 * 8192 * 2.0 / (0.8 * 450e9) * 1e9);
        near((double)kvc_step_ns(m, &chunk, 1, 0, 0, 1, NULL),
             (double)kvc_step_ns(whole, &chunk, 1, 0, 0, 1, NULL) + (pp - 1) * hop, 1e-3);
        kvc_step_model_destroy(m);
    }
    struct kvc_step_config c = config_of("Llama-3.1-70B", "h100_sxm", 1, 4);
    struct kvc_step_model *near_by = build(&c);
    c.gpus_per_node = 2; /* one of the three hops leaves the node */
    struct kvc_step_model *apart = build(&c);
    near(step_ns(apart, 1, 5000) - step_ns(near_by, 1, 5000),
         2 * (10500 + 8192 * 2.0 * (1 / 36.0 - 1 / 360.0)), 1e-3);
    kvc_step_model_destroy(apart);
    kvc_step_model_destroy(near_by);
    kvc_step_model_destroy(whole);
}

/* Batches through stages, each at its time: when the last of many rounds ends, over the rounds. */
static double flow_ns(double stage, double extra_last, double hop, double host, uint32_t batches)
{
    double out[4] = {0}, free_at[4] = {0}, host_free = 0, half = 0;
    const int rounds = 400;

    for (int k = 0; k < rounds; k++) {
        for (uint32_t b = 0; b < batches; b++) {
            double t = fmax(out[b], host_free) + host;
            host_free = t;
            for (int s = 0; s < 4; s++) {
                t = fmax(t, free_at[s]) + stage + (s == 3 ? extra_last : 0);
                if (s < 3)
                    t += hop;
                free_at[s] = t;
            }
            out[b] = t;
        }
        if (k == rounds / 2 - 1)
            half = out[0];
    }
    return (out[0] - half) / (rounds / 2);
}

/* A round of the model is a round of that flow: few sequences and many, equal batches and not. */
static void rounds_are_those_of_a_flow_of_batches(void **state)
{
    struct kvc_step_model *whole = build_plain("Llama-3.1-70B", 1, 1);
    struct kvc_step_model *m = build_plain("Llama-3.1-70B", 1, 4);

    (void)state;
    for (uint32_t n = 1; n <= 512; n = n < 8 ? n + 1 : 2 * n) {
        uint32_t batches = n < 4 ? n : 4, size = (n + batches - 1) / batches;
        uint64_t host, context = 1000ull * size;
        kvc_step_ns(whole, NULL, 0, size, context, size, &host);
        double one = step_ns(whole, size, context), head = head_ns(whole, size, context);
        double layers = (one - head - (double)host) / 4;
        double hop = 2 * (7500 + size * 8192 * 2.0 / 360.0);
        double flow = flow_ns(layers, head, hop, (double)host, batches);
        near(step_ns(m, n, 1000ull * n), flow, n % batches ? 0.02 : 2e-3);
        /* saturated: the last stage, which has the head, is never idle */
        if (n == 512)
            near(flow, 4 * (layers + head), 2e-3);
    }
    kvc_step_model_destroy(m);
    kvc_step_model_destroy(whole);
}

/* A stretch's line is the step at its context, up to where it says that it holds. */
static void stretches_follow_the_step(void **state)
{
    struct kvc_step_model *m = build_plain("Llama-3.1-70B", 2, 3);

    (void)state;
    for (uint32_t n = 1; n < 700; n = n * 3 / 2 + 1)
        for (uint64_t each = 1; each < 200000; each = each * 7 / 3 + 5) {
            struct kvc_decode_cost cost;
            uint64_t context = n * each;
            kvc_step_decode(m, n, context, &cost);
            assert_true(cost.context_end >= context);
            uint64_t end = cost.context_end < 2 * context ? cost.context_end : 2 * context;
            for (int i = 0; i < 2; i++) {
                uint64_t at = i ? end : context;
                double line = (double)cost.c0_q16 / 65536 +
                              (double)cost.c1_q40 / 1099511627776.0 * (double)at;
                assert_true(fabs(line - step_ns(m, n, at)) < 2 + 1e-6 * line);
            }
        }
    kvc_step_model_destroy(m);
}

#define STAGES 4
#define BATCH 2048

/* When the last of so many tokens leaves the last stage, batch by batch. */
static double lone_flow_ns(const struct kvc_step_model *whole, uint32_t tokens)
{
    double out[STAGES] = {0}, host_free = 0;

    for (uint32_t done = 0; done < tokens; done += BATCH) {
        struct kvc_chunk chunk = {tokens - done < BATCH ? tokens - done : BATCH, done};
        uint64_t host;
        double one = (double)kvc_step_ns(whole, &chunk, 1, 0, 0, 0, &host);
        double stage = (one - (double)host) / STAGES, at = host_free += (double)host;
        double hop = 2 * (7500 + chunk.tokens * 4096 * 2.0 / 360.0);
        for (int s = 0; s < STAGES; s++) {
            at = fmax(at, out[s]) + stage + (s + 1 < STAGES ? hop : 0);
            out[s] = at;
        }
    }
    return out[STAGES - 1];
}

static double lone_ttft_ns(const struct kvc_scenario *sc, uint32_t tokens)
{
    struct tiny_row row = {.input_tokens = tokens, .output_tokens = 2, .session = KVC_ID_NONE,
                           .think_ns = KVC_TIME_NONE};
    struct kvc_trace *t = tiny_trace(&row, 1, 16, true);
    struct kvc_result *r = replay_run_engine(t, sc, false);

    assert_non_null(r);
    double ttft = (double)r->requests[0].ttft_ns;
    assert_true(r->requests[0].e2e_ns > r->requests[0].ttft_ns);
    kvc_result_destroy(r);
    tiny_trace_free(t);
    return ttft;
}

/* One long prompt in k full batches: the last is through after k + pp - 1 of the slowest stage's
 * turns (Narayanan et al., PipeDream-2BW; GPipe's bubble), through the whole replay; the batch of
 * a few tokens more goes behind them. */
static void a_long_prompt_flows_through_the_stages(void **state)
{
    static const uint32_t batches[] = {1, 2, 3, 4, 5, 7, 8}, more[] = {1, 17, 1000};
    struct kvc_scenario *sc = replay_base_scenario();
    struct kvc_step_config c = {.backend = "vllm", .weights = KVC_BF16, .kv = KVC_BF16, .tp = 1,
                                .pp = 1, .ep = 1};
    (void)state;
    c.llm = kvc_llm_find("llama-3.1-8b");
    c.gpu = kvc_gpu_find("h100-sxm");
    struct kvc_step_model *whole = build(&c);
    sc->cluster.pp = STAGES;
    sc->engine.max_batched_tokens = BATCH;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        double front = (double)kvc_step_front_ns(whole), full;
        full = lone_ttft_ns(sc, BATCH * batches[i]);
        near(full - front, lone_flow_ns(whole, BATCH * batches[i]), 0.08);
        for (size_t k = 0; k < sizeof more / sizeof more[0]; k++) {
            double longer = lone_ttft_ns(sc, BATCH * batches[i] + more[k]);
            assert_true(longer > 0.999 * full);
            near(longer - front, lone_flow_ns(whole, BATCH * batches[i] + more[k]), 0.12);
        }
    }
    kvc_step_model_destroy(whole);
    kvc_scenario_destroy(sc);
}

/* More stages never make a busy replica slower, and never a lone sequence faster. */
static void stages_help_only_the_busy(void **state)
{
    struct kvc_step_model *m[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        m[i] = build_plain("Llama-3.1-70B", 4, 1u << i);
    for (uint32_t i = 1; i < 3; i++) {
        assert_true(step_ns(m[i], 1, 4000) > step_ns(m[i - 1], 1, 4000));
        assert_true(step_ns(m[i], 1024, 1024 * 4000) < step_ns(m[i - 1], 1024, 1024 * 4000));
        assert_true(step_ns(m[i], 1024, 1024 * 4000) > 0.4 * step_ns(m[i - 1], 1024, 1024 * 4000));
        assert_true(kvc_step_kv_capacity_bytes(m[i], 0.9, 8192) >
                    2 * kvc_step_kv_capacity_bytes(m[i - 1], 0.9, 8192));
    }
    struct kvc_time_band one, two;
    kvc_step_band(m[0], 0, &one);
    kvc_step_band(m[1], 0, &two);
    assert_true(two.tpot_high > one.tpot_high && two.tpot_low < one.tpot_low);
    for (uint32_t i = 0; i < 3; i++)
        kvc_step_model_destroy(m[i]);
}

/* Experts dealt to two groups and cut in two within each lie between all cut and all dealt, and
 * hold the same bytes. */
static void experts_are_dealt_and_cut(void **state)
{
    struct kvc_step_model *m[3];
    struct kvc_step_config c = config_of("Qwen3-235B-A22B", "h100_sxm", 4, 1);
    struct kvc_error err = {0};

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        c.ep = 1u << i;
        m[i] = build(&c);
        near(kvc_step_weight_bytes(m[i], 0), kvc_step_weight_bytes(m[0], 0), 1e-12);
    }
    for (uint32_t n = 1; n <= 4096; n *= 4) {
        double cut = step_ns(m[0], n, n), both = step_ns(m[1], n, n), dealt = step_ns(m[2], n, n);
        assert_true(both > 0.85 * fmin(cut, dealt) && both < 1.15 * fmax(cut, dealt));
    }
    for (uint32_t i = 0; i < 3; i++)
        kvc_step_model_destroy(m[i]);
    c.ep = 3;
    assert_int_equal(kvc_step_model_create(&m[0], &c, &err), KVC_ERR_USAGE);
    assert_string_equal(err.field, "cluster.ep");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_dealt_as_vllm_does),
        cmocka_unit_test(bytes_are_conserved),
        cmocka_unit_test(one_stream_takes_the_sum_of_the_stages),
        cmocka_unit_test(rounds_are_those_of_a_flow_of_batches),
        cmocka_unit_test(stretches_follow_the_step),
        cmocka_unit_test(a_long_prompt_flows_through_the_stages),
        cmocka_unit_test(stages_help_only_the_busy),
        cmocka_unit_test(experts_are_dealt_and_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
