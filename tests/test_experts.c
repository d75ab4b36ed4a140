/* SPDX-License-Identifier: Apache-2.0
 * Which kernels' times experts get: those that the engine runs, tuned, whatever the shape. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/kernels.h"

static struct kvc_kernels *load(const char *gpu, const char *backend)
{
    struct kvc_kernels *k = NULL;

    assert_int_equal(kvc_profiles_ready(NULL), KVC_OK);
    assert_int_equal(kvc_kernels_load(&k, kvc_gpu_find(gpu), backend, NULL), KVC_OK);
    return k;
}

/* A layer's experts dealt to ep groups of tp GPUs each. */
static double layer_ns(struct kvc_kernels *k, enum kvc_dtype dtype, const struct kvc_llm *llm,
                       uint32_t tp, uint32_t ep, double tokens)
{
    struct kvc_moe moe;

    assert_true(kvc_kernels_moe(k, dtype, false, NULL, llm, tp, ep, &moe));
    return kvc_moe_ns(&moe, tokens);
}

/* Weights that 64 tokens touch pass from memory at 0.4 of its bandwidth or more, 60 us for launches
 * and routing: left untuned the same kernels reach 0.05 to 0.13. */
static void test_tuned_kernels_stream_their_weights(void **state)
{
    static const struct {
        const char *backend;
        enum kvc_dtype dtype;
    } engines[] = {
        {"vllm", KVC_FP8}, {"vllm", KVC_BF16}, {"trtllm", KVC_BF16}, {"trtllm", KVC_FP8}};
    static const struct {
        const char *model;
        uint32_t tp;
    } runs[] = {{"Mixtral-8x22B", 8}, {"Mixtral-8x22B", 4}, {"Mixtral-8x7B", 8},
                {"Mixtral-8x7B", 2},  {"Llama-4-Scout-17B-16E", 2}, {"Llama-4-Scout-17B-16E", 4}};
    static const char *const gpus[] = {"h100_sxm", "h200_sxm"};

    (void)state;
    for (size_t g = 0; g < 2; g++)
        for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
            struct kvc_kernels *k = load(gpus[g], engines[e].backend);
            for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
                const struct kvc_llm *l = kvc_llm_find(runs[r].model);
                double rate = kvc_gpu_find(gpus[g])->hbm_bytes_per_s.value;
                double touched = 1 - pow(1 - (double)l->top_k / l->experts, 64);
                double bytes = touched * kvc_llm_expert_params(l) / runs[r].tp *
                               kvc_dtype_bytes(engines[e].dtype);
                double most = 6e4 + 1e9 * bytes / (0.4 * rate);
                double ns = layer_ns(k, engines[e].dtype, l, runs[r].tp, 1, 64);
                if (ns > most)
                    print_error("%s %s %s tp %u: %.0f us, at most %.0f\n", gpus[g],
                                engines[e].backend, l->name, runs[r].tp, ns / 1e3, most / 1e3);
                assert_true(ns <= most);
            }
            kvc_kernels_destroy(k);
        }
}

/* Experts of a rank alike in number and size, and as many rows for them: the same products. */
static void test_the_same_work_takes_the_same_time(void **state)
{
    static const char *const gpus[] = {"h100_sxm", "h200_sxm", "b200_sxm"};

    (void)state;
    for (size_t g = 0; g < 3; g++) {
        struct kvc_kernels *k = load(gpus[g], "trtllm");
        for (uint32_t tp = 1; tp <= 4; tp *= 2)
            for (uint32_t ep = 2; ep <= 4; ep *= 2) {
                struct kvc_llm a = *kvc_llm_find("Llama-4-Scout-17B-16E"), b = a;
                a.experts = 16;
                b.experts = 128; /* Maverick's */
                double one = layer_ns(k, KVC_BF16, &a, tp, ep, 32);
                double other = layer_ns(k, KVC_BF16, &b, tp, ep * 8, 256);
                assert_true(fabs(log(one / other)) < log(1.7));
            }
        kvc_kernels_destroy(k);
    }
}

/* More GPUs never make a layer of experts slower: one kernel serves all of them. */
static void test_more_gpus_are_not_slower(void **state)
{
    static const char *const gpus[] = {"b200_sxm", "gb200"},
                            *const models[] = {"GLM-4.5", "GLM-4.6", "Qwen3-235B-A22B",
                                               "DeepSeek-V3"};
    static const double tokens[] = {1, 16, 64, 2048};

    (void)state;
    for (size_t g = 0; g < 2; g++) {
        struct kvc_kernels *k = load(gpus[g], "trtllm");
        for (size_t m = 0; m < 4; m++)
            for (size_t t = 0; t < 4; t++) {
                double before = HUGE_VAL;
                for (uint32_t tp = 1; tp <= 8; tp *= 2) {
                    double ns = layer_ns(k, KVC_NVFP4, kvc_llm_find(models[m]), tp, 1, tokens[t]);
                    if (ns > 1.06 * before)
                        print_error("%s %s tp %u, %g tokens: %.1f after %.1f us\n", gpus[g],
                                    models[m], tp, tokens[t], ns / 1e3, before / 1e3);
                    assert_true(ns <= 1.06 * before);
                    before = ns;
                }
            }
        kvc_kernels_destroy(k);
    }
}

static void check_word(struct kvc_kernels *k, enum kvc_dtype dtype, const struct kvc_llm *llm,
                       const char *word, bool there)
{
    struct kvc_moe moe;

    for (uint32_t tp = 1; tp <= 8; tp *= 2) {
        assert_true(kvc_kernels_moe(k, dtype, false, NULL, llm, tp, 1, &moe));
        for (size_t i = 0; i < moe.n; i++)
            assert_true(!strstr(moe.kernel[i].curve.table->key, word) == !there);
    }
}

static void test_the_engines_kernel_is_taken(void **state)
{
    struct kvc_kernels *k = load("b200_sxm", "trtllm");
    struct kvc_llm gated = *kvc_llm_find("Nemotron-3-Nano-30B-A3B");

    (void)state;
    check_word(k, KVC_NVFP4, kvc_llm_find("GLM-4.5"), "min_latency", true);
    check_word(k, KVC_NVFP4, kvc_llm_find("Qwen3-30B-A3B"), "min_latency", true);
    /* not measured beyond 256 experts */
    check_word(k, KVC_NVFP4, kvc_llm_find("Kimi-K2.5"), "cutlass", true);
    check_word(k, KVC_BF16, kvc_llm_find("Nemotron-3-Nano-30B-A3B"), "nongated", true);
    gated.ungated = false;
    check_word(k, KVC_BF16, &gated, "nongated", false);
    kvc_kernels_destroy(k);
    k = load("h200_sxm", "vllm");
    check_word(k, KVC_FP8, kvc_llm_find("Qwen3-30B-A3B"), "vllm", false);
    check_word(k, KVC_FP8_BLOCK, kvc_llm_find("Qwen3-30B-A3B"), "vllm", true);
    kvc_kernels_destroy(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tuned_kernels_stream_their_weights),
        cmocka_unit_test(test_the_same_work_takes_the_same_time),
        cmocka_unit_test(test_more_gpus_are_not_slower),
        cmocka_unit_test(test_the_engines_kernel_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
