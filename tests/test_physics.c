/* SPDX-License-Identifier: Apache-2.0
 * What hardware can't break: more bandwidth or arithmetic never makes a step longer, links carry
 * what tiers gave and took, and halving KV bytes pays from some context on, not before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/models.h"
#include "sim/scenario/scenario.h"
#include "tests/replay_case.h"
#include "traces/trace_write.h"

static void set(struct kvc_scenario *sc, const char *key, const char *value)
{
    struct kvc_error err;

    if (kvc_scenario_set(sc, key, value, &err) != KVC_OK)
        fail_msg("%s", err.text);
}

static struct kvc_scenario *scenario(const char *gpu)
{
    struct kvc_scenario *sc = NULL;

    assert_int_equal(kvc_scenario_create(&sc, NULL, NULL), KVC_OK);
    set(sc, "model", "llama-3.1-8b");
    set(sc, "cluster.gpu", gpu);
    return sc;
}

/* ---- faster hardware ---- */

static struct kvc_step_model *model_on(const struct kvc_gpu *gpu, const char *llm, uint32_t tp)
{
    struct kvc_step_config config = {kvc_llm_find(llm), gpu, "vllm",
                                     KVC_BF16, KVC_BF16, tp, 1, .ep = 1};
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};

    if (kvc_step_model_create(&m, &config, &err) != KVC_OK)
        fail_msg("%s on %s: %s", llm, gpu->id, err.text);
    return m;
}

static void never_slower(const struct kvc_step_model *slow, const struct kvc_step_model *fast)
{
    for (uint32_t tokens = 1; tokens <= 8192; tokens *= 4)
        for (uint32_t past = 0; past <= 65536; past = past ? past * 8 : 128)
            for (uint32_t n = 0; n <= 256; n = n ? n * 4 : 1) {
                const struct kvc_chunk chunk = {tokens, past};
                uint64_t context = (uint64_t)n * 1500;
                assert_true(kvc_step_ns(fast, &chunk, 1, n, context, n + 1, NULL) <=
                            kvc_step_ns(slow, &chunk, 1, n, context, n + 1, NULL));
                if (n)
                    assert_true(kvc_step_ns(fast, NULL, 0, n, context * 8, n, NULL) <=
                                kvc_step_ns(slow, NULL, 0, n, context * 8, n, NULL));
            }
}

static void faster_hardware_is_never_slower(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100_sxm", "b200_sxm", "l40s", "mi300x", "rtx_4090"};
    static const char *const llms[] = {"Llama-3.1-8B", "Qwen3-30B-A3B"};

    for (size_t g = 0; g < sizeof gpus / sizeof gpus[0]; g++)
        for (size_t l = 0; l < (strcmp(gpus[g], "mi300x") ? 2 : 1); l++) {
            struct kvc_gpu wide = *kvc_gpu_find(gpus[g]), quick = wide;
            wide.hbm_bytes_per_s.value *= 1.5;
            quick.bf16_flops.value *= 1.5;
            quick.fp8_flops.value *= 1.5;
            struct kvc_step_model *m = model_on(kvc_gpu_find(gpus[g]), llms[l], 1);
            struct kvc_step_model *w = model_on(&wide, llms[l], 1);
            struct kvc_step_model *q = model_on(&quick, llms[l], 1);
            never_slower(m, w);
            never_slower(m, q);
            kvc_step_model_destroy(m);
            kvc_step_model_destroy(w);
            kvc_step_model_destroy(q);
        }
}

/* Be collectives measured here, on the GPU this one is like, or in no table. */
static void nor_are_faster_links_between_gpus(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h200_sxm", "h20", "b300_sxm", "mi300x"};
    static const double rate[] = {0.5, 0.95, 1, 1.05, 2, 5};

    for (size_t g = 0; g < sizeof gpus / sizeof gpus[0]; g++) {
        struct kvc_step_model *last = NULL;
        for (size_t i = 0; i < sizeof rate / sizeof rate[0]; i++) {
            struct kvc_gpu gpu = *kvc_gpu_find(gpus[g]);
            gpu.gpu_link_bytes_per_s.value *= rate[i];
            struct kvc_step_model *m = model_on(&gpu, "Llama-3.1-8B", 8);
            if (last)
                never_slower(last, m);
            kvc_step_model_destroy(last);
            last = m;
        }
        kvc_step_model_destroy(last);
    }
}

static double stretch_ns(const struct kvc_step_model *m, uint32_t n, uint64_t context)
{
    struct kvc_decode_cost c;

    kvc_step_decode(m, n, context, &c);
    return (double)c.c0_q16 / 65536 + (double)c.c1_q40 / 1099511627776.0 * (double)context;
}

/* Steep where nothing else is: from 64 to 96 tokens of latent attention on L40S. */
static void nor_are_its_stretches_of_decode_steps(void **state)
{
    (void)state;
    struct kvc_step_model *last = NULL;

    for (double share = 0.6; share < 1.41; share += 0.2) {
        struct kvc_gpu gpu = *kvc_gpu_find("l40s");
        gpu.bf16_flops.value *= share;
        struct kvc_step_model *m = model_on(&gpu, "DeepSeek-R1", 4);
        for (uint32_t n = 1; last && n <= 64; n *= 2)
            for (uint64_t context = n; context < 200000; context += 1 + context / 5)
                assert_true(stretch_ns(m, n, context) <= stretch_ns(last, n, context) + 1);
        kvc_step_model_destroy(last);
        last = m;
    }
    kvc_step_model_destroy(last);
}

/* ---- bytes ---- */

static const struct kvc_tier_result *tier(const struct kvc_result *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_tiers; i++)
        if (strcmp(r->tiers[i].name, name) == 0)
            return &r->tiers[i];
    return NULL;
}

/* Of the links of one direction each, or of those that both directions cross as well. */
static uint64_t link_bytes(const struct kvc_result *r, bool both_ways)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < r->n_links; i++)
        if ((strstr(r->links[i].name, "both ways") != NULL) == both_ways)
            bytes += r->links[i].bytes;
    return bytes;
}

/* Requests so far apart that every write is over: what the host link moved is what DRAM gave and
 * took, and each request's hit there is read once. */
static void links_carry_what_tiers_gave_and_took(void **state)
{
    (void)state;
    struct kvc_scenario *base = scenario("h100_sxm");
    const uint64_t token = kvc_llm_kv_bytes_per_token(kvc_llm_find("Llama-3.1-8B"), KVC_BF16, 1);
    const struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    static struct replay_case c;
    uint64_t moved = 0, exact = 0;

    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kvc_result *r = NULL;
        uint64_t hits = 0;
        replay_case_make(&c, seed, CASE_DRAM, base, token);
        c.sc.arrivals.mode = KVC_ARRIVALS_OPEN;
        c.sc.arrivals.rounds = false;
        c.sc.arrivals.concurrency = 0;
        c.sc.arrivals.spread_ns = c.sc.request_timeout_ns = c.sc.warmup_ns = 0;
        for (uint32_t i = 0; i < c.n; i++)
            c.rows[i].time_ns = i * 1000000000000ull;
        struct kvc_trace *t = replay_case_forest(&c);
        assert_int_equal(kvc_replay_run(&r, t, &c.sc, &options, NULL), KVC_OK);
        const struct kvc_tier_result *dram = tier(r, "dram");
        for (uint64_t i = 0; i < r->n_requests; i++)
            for (int k = 1; k < KVC_MAX_TIERS; k++)
                hits += r->requests[i].hit_tokens[k];
        if (dram) {
            /* what the last one wrote may not be over when the run ends */
            const struct tiny_row *last = &c.rows[c.n - 1];
            uint64_t both = dram->read_bytes + dram->written_bytes;
            uint64_t open = ((uint64_t)last->input_tokens + last->output_tokens) * token;
            assert_int_equal(dram->read_bytes, hits * token);
            uint64_t crossed = link_bytes(r, false), shared = link_bytes(r, true);
            assert_true(crossed <= both && crossed + open >= both);
            assert_true(shared == 0 || shared == crossed);
            exact += crossed == both;
            moved += link_bytes(r, false);
        }
        kvc_result_destroy(r);
        kvc_trace_destroy(t);
    }
    assert_true(moved > 0 && exact > 0);
    kvc_scenario_destroy(base);
}

/* ---- fp8 KV ---- */

/* TPOT of one request by itself: 128 tokens behind a prompt. */
static double tpot_ms(const char *gpu, const char *kv, uint32_t prompt)
{
    struct kvc_scenario *sc = scenario(gpu);
    const struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    uint64_t arrival = 0;
    uint32_t output = 128, seg = KVC_SEG_NONE;
    struct kvc_trace t = {.n_requests = 1, .arrival_ns = &arrival, .input_tokens = &prompt,
                          .output_tokens = &output, .prompt_seg = &seg};
    struct kvc_result *r = NULL;

    set(sc, "kv_dtype", kv);
    kvc_trace_digest(&t, t.digest);
    assert_int_equal(kvc_replay_run(&r, &t, sc, &options, NULL), KVC_OK);
    double ms = r->tpot_ms.mean;
    kvc_result_destroy(r);
    kvc_scenario_destroy(sc);
    return ms;
}

/* By half a hundredth of a millisecond, as far as times stated in hundredths can be off: of B200's
 * kernels of up to 4,096 tokens, timed in steps of 2 us, neither is faster by more. */
static bool fp8_wins(const char *gpu, uint32_t prompt)
{
    return tpot_ms(gpu, "fp8", prompt) < tpot_ms(gpu, "bf16", prompt) - 0.005;
}

/* The prompt from which on fp8 wins; it loses at the first. */
static uint32_t break_even(const char *gpu)
{
    uint32_t loses = 1000, wins = 64000;

    assert_false(fp8_wins(gpu, loses));
    assert_true(fp8_wins(gpu, wins));
    while (wins - loses > 8) {
        uint32_t middle = (loses + wins) / 2;
        if (fp8_wins(gpu, middle))
            wins = middle;
        else
            loses = middle;
    }
    return wins;
}

/* It costs more at 128 tokens, and pays beyond. Published for Llama-3.1-8B, bf16 weights, a request
 * at a time: about 7,000 tokens on H100 and 4,000 on B200, +-40 %, as it divides by a gap of
 * 0.14 ms and less. Shown whether met or not. */
static void fp8_kv_loses_short_and_wins_long(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100_sxm", "b200_sxm"};
    static const double published[] = {7010, 4000};
    double tokens[2];

    for (size_t g = 0; g < 2; g++) {
        assert_true(tpot_ms(gpus[g], "fp8", 128) > tpot_ms(gpus[g], "bf16", 128));
        tokens[g] = break_even(gpus[g]);
        print_message("%s: fp8 KV breaks even at %.0f tokens, published about %.0f: %s\n", gpus[g],
                      tokens[g], published[g],
                      fabs(tokens[g] / published[g] - 1) <= 0.4 ? "met" : "missed");
    }
    assert_true(fabs(tokens[0] / published[0] - 1) <= 0.4);
    assert_true(tokens[1] < tokens[0]); /* the faster memory breaks even sooner */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faster_hardware_is_never_slower),
        cmocka_unit_test(nor_are_faster_links_between_gpus),
        cmocka_unit_test(nor_are_its_stretches_of_decode_steps),
        cmocka_unit_test(links_carry_what_tiers_gave_and_took),
        cmocka_unit_test(fp8_kv_loses_short_and_wins_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
