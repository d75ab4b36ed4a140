/* SPDX-License-Identifier: Apache-2.0
 * Estimates beside published end-to-end measurements, with the misses. No constant of the model was
 * chosen on these rows except the host constants, which the gated figures leave out. Skipped where
 * ../shared is absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/models.h"
#include "models/profiles.h"
#include "tests/models_csv.h"

#define ROWS "../shared/validation/aiconfigurator_silicon/silicon_sample.csv.zst"
#define MOST 400

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(double *v, size_t n, double q)
{
    qsort(v, n, sizeof *v, ascending);
    return n ? v[(size_t)(q * (double)(n - 1) + 0.5)] : NAN;
}

static const char *llm_of(const char *path)
{
    if (strcmp(path, "meta-llama/Llama-3.1-70B") == 0)
        return "Llama-3.1-70B";
    if (strcmp(path, "openai/gpt-oss-120b") == 0)
        return "gpt-oss-120b";
    if (strcmp(path, "MiniMaxAI/MiniMax-M2.5") == 0)
        return "MiniMax-M2.5";
    return NULL;
}

/* Where one engine step of c sequences stands for TPOT: c clients in a closed loop, half of the
 * output written. Prefill of others is left out, so rows with short outputs read low. */
struct group {
    const char *llm, *gpu, *gemm;
    enum kvc_dtype weights, kv;
    double max_concurrency, min_osl;
    size_t n;
    double zero[MOST], pooled[MOST], bias[MOST];
};

static void take_row(const struct test_csv *csv, struct group *g)
{
    const char *llm = llm_of(test_csv_get(csv, "model_path"));
    double c = test_csv_number(csv, "batch_size"), osl = test_csv_number(csv, "osl");
    double isl = test_csv_number(csv, "isl"), tpot = test_csv_number(csv, "silicon_tpot_ms");
    uint32_t tp = (uint32_t)test_csv_number(csv, "tp_size");
    struct kvc_step_model *m;
    uint64_t host;

    if (!llm || strcmp(llm, g->llm) != 0 || strcmp(test_csv_get(csv, "system"), g->gpu) != 0 ||
        strcmp(test_csv_get(csv, "backend"), "vllm") != 0 ||
        strcmp(test_csv_get(csv, "mode"), "agg") != 0 ||
        strcmp(test_csv_get(csv, "gemm_quant_mode"), g->gemm) != 0 || c > g->max_concurrency ||
        osl < g->min_osl || test_csv_number(csv, "attention_dp_size") > 1 ||
        test_csv_number(csv, "moe_ep_size") > 1 || test_csv_number(csv, "pp_size") > 1 ||
        tpot <= 0 || g->n == MOST)
        return;
    struct kvc_step_config config = {
        kvc_llm_find(llm), kvc_gpu_find(g->gpu), "vllm", g->weights, g->kv, tp, 1, .ep = 1};
    if (kvc_step_model_create(&m, &config, NULL) != KVC_OK)
        return;
    double ns = (double)kvc_step_ns(m, NULL, 0, (uint32_t)c, (uint64_t)(c * (isl + osl / 2)),
                                    (uint32_t)c, &host);
    g->bias[g->n] = (ns - (double)host) / 1e6 / tpot - 1;
    g->zero[g->n] = fabs(g->bias[g->n]);
    g->pooled[g->n++] = fabs(ns / 1e6 / tpot - 1);
    kvc_step_model_destroy(m);
}

static void run_group(struct group *g)
{
    struct test_csv csv;

    if (!test_csv_open(&csv, ROWS)) {
        print_message("skipped: no %s\n", ROWS);
        skip();
    }
    g->n = 0;
    while (test_csv_row(&csv))
        take_row(&csv, g);
    test_csv_close(&csv);
    double bias = quantile(g->bias, g->n, 0.5);
    print_message("%s %s on %s, c <= %.0f, osl >= %.0f: %zu rows, TPOT without host constants: "
                  "median %.1f %%, "
                  "P90 %.1f %%, bias %+.1f %%; with: median %.1f %%, P90 %.1f %%\n",
                  g->llm, g->gemm, g->gpu, g->max_concurrency, g->min_osl, g->n,
                  100 * quantile(g->zero, g->n, 0.5), 100 * quantile(g->zero, g->n, 0.9),
                  100 * bias, 100 * quantile(g->pooled, g->n, 0.5),
                  100 * quantile(g->pooled, g->n, 0.9));
}

/* Long outputs at small concurrency: TPOT is a decode step. The limits are the medians that a
 * prototype with fitted host constants reached on all rows of these groups, rounded up; here no
 * constant is fitted. */
static void decode_steps_meet_measured_tpot(void **state)
{
    (void)state;
    static struct group fp8 = {
        "Llama-3.1-70B", "b200_sxm", "fp8", KVC_FP8, KVC_FP8, 16, 8192, 0, {0}, {0}, {0}};
    static struct group fp4 = {
        "Llama-3.1-70B", "b200_sxm", "nvfp4", KVC_NVFP4, KVC_FP8, 16, 8192, 0, {0}, {0}, {0}};
    run_group(&fp8);
    assert_true(fp8.n >= 8);
    assert_true(quantile(fp8.zero, fp8.n, 0.5) < 0.10);
    run_group(&fp4);
    assert_true(fp4.n >= 8);
    assert_true(quantile(fp4.zero, fp4.n, 0.5) < 0.12);
}

/* Printed only: other regimes and models, as they come out. */
static void other_rows_are_reported(void **state)
{
    (void)state;
    static struct group groups[] = {
        {"Llama-3.1-70B", "b200_sxm", "fp8", KVC_FP8, KVC_FP8, 64, 8192, 0, {0}, {0}, {0}},
        {"Llama-3.1-70B", "b200_sxm", "fp8", KVC_FP8, KVC_FP8, 64, 1024, 0, {0}, {0}, {0}},
        {"gpt-oss-120b", "h100_sxm", "nvfp4", KVC_MXFP4, KVC_BF16, 64, 8192, 0, {0}, {0}, {0}},
        {"gpt-oss-120b", "b200_sxm", "nvfp4", KVC_MXFP4, KVC_FP8, 64, 8192, 0, {0}, {0}, {0}},
        {"MiniMax-M2.5", "b200_sxm", "fp8", KVC_FP8_BLOCK, KVC_FP8, 64, 1024, 0, {0}, {0}, {0}},
    };
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        run_group(&groups[i]);
}

/* One request in an idle engine: TTFT is the prefill step and the front end. Closed-loop rows at
 * c = 4 still queue behind each other, so this is printed, not gated. */
static void lone_prefill_beside_measured_ttft(void **state)
{
    (void)state;
    struct test_csv csv;
    double ape[MOST];
    size_t n = 0;

    if (!test_csv_open(&csv, ROWS)) {
        print_message("no " ROWS "\n");
        skip();
    }
    while (test_csv_row(&csv)) {
        struct kvc_step_model *m;
        struct kvc_chunk chunk = {(uint32_t)test_csv_number(&csv, "isl"), 0};
        struct kvc_step_config config = {kvc_llm_find("Llama-3.1-70B"),
                                         kvc_gpu_find("b200_sxm"),
                                         "vllm",
                                         KVC_FP8,
                                         KVC_FP8,
                                         (uint32_t)test_csv_number(&csv, "tp_size"),
                                         1,
                                         .ep = 1};
        if (strcmp(test_csv_get(&csv, "model_path"), "meta-llama/Llama-3.1-70B") != 0 ||
            strcmp(test_csv_get(&csv, "gemm_quant_mode"), "fp8") != 0 ||
            strcmp(test_csv_get(&csv, "backend"), "vllm") != 0 ||
            test_csv_number(&csv, "batch_size") > 4 ||
            kvc_step_model_create(&m, &config, NULL) != KVC_OK)
            continue;
        double ms =
            (double)(kvc_step_ns(m, &chunk, 1, 3, 3 * 4000, 1, NULL) + kvc_step_front_ns(m)) / 1e6;
        double measured = test_csv_number(&csv, "silicon_ttft_ms");
        print_message("  isl %5u tp %u: TTFT %6.1f ms, measured %6.1f ms\n", chunk.tokens,
                      config.tp, ms, measured);
        if (n < MOST)
            ape[n++] = fabs(ms / measured - 1);
        kvc_step_model_destroy(m);
    }
    test_csv_close(&csv);
    print_message("Llama-3.1-70B fp8 on b200_sxm, c = 4: %zu rows, TTFT median %.1f %%\n", n,
                  100 * quantile(ape, n, 0.5));
    assert_true(n > 0);
}

/* One stream on H100 and vLLM 0.15.1, milliseconds between its tokens, as published:
 * inference-sim/tektonc-data-collection tektoncsample/calibration/RESULTS.md @00596a6, some 500
 * tokens in and 250 out. No constant rests on them. */
static void one_stream_meets_published_steps(void **state)
{
    static const struct {
        const char *llm;
        uint32_t tp;
        double ms;
    } run[] = {{"Llama-2-7B", 1, 5.841},   {"Llama-3.1-8B", 1, 6.257}, {"Llama-3.1-8B", 2, 4.138},
               {"Qwen3-14B", 1, 10.916},   {"CodeLlama-34B", 2, 13.566},
               {"Mixtral-8x7B", 2, 6.606}, {"Mixtral-8x7B", 4, 4.424}, {"Mixtral-8x22B", 8, 7.340},
               {"Llama-2-70B", 4, 18.252}};
    double off[sizeof run / sizeof run[0]];
    size_t n = sizeof run / sizeof run[0];

    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct kvc_step_config config = {kvc_llm_find(run[i].llm), kvc_gpu_find("h100_sxm"),
                                         "vllm", KVC_BF16, KVC_BF16, run[i].tp, 1, .ep = 1};
        struct kvc_step_model *m;
        assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
        double ms = (double)kvc_step_ns(m, NULL, 0, 1, 625, 1, NULL) / 1e6;
        kvc_step_model_destroy(m);
        printf("%s tp %u: %.2f ms, published %.2f, %+.1f %%\n", run[i].llm, run[i].tp, ms,
               run[i].ms, (ms / run[i].ms - 1) * 100);
        off[i] = fabs(ms / run[i].ms - 1);
    }
    assert_true(quantile(off, n, 0.5) < 0.05);
    assert_true(quantile(off, n, 0.8) < 0.1); /* Llama-2-70B is 16 % off, its served runs 2 */
}

/* KV room that engines printed, beside the formula; it was not tuned to any of them. Its least
 * certain part is the assumed overhead of a rank, so it may be off by that much. */
static void kv_room_beside_engine_statements(void **state)
{
    (void)state;
    struct kvc_gpu rtx4090 = *kvc_gpu_find("l40s");
    struct kvc_step_model *m;
    struct kvc_error err = {0};

    /* llmservingsim_bench RTX4090: vLLM 0.19 printed 2588 blocks of 16 tokens at 0.9, 2048 tokens a
     * step */
    rtx4090.memory_bytes.value = 25250627584.0;
    struct kvc_step_config config = {
        kvc_llm_find("Llama-3.1-8B"), &rtx4090, "vllm", KVC_BF16, KVC_BF16, 1, 1, .ep = 1};
    assert_int_equal(kvc_step_model_create(&m, &config, &err), KVC_OK);
    double slack = kvc_engine_find("vllm")->memory_overhead_bytes.value;
    double tokens = (double)kvc_step_kv_capacity_bytes(m, 0.9, 2048) / 131072;
    print_message(
        "Llama-3.1-8B on an RTX 4090: %.0f blocks of 16, the engine had 2588 (%+.1f %%)\n",
        tokens / 16, 100 * (tokens / 16 / 2588 - 1));
    assert_true(fabs(tokens - 2588 * 16) * 131072 <= slack);
    kvc_step_model_destroy(m);

    /* llmd_routing: 307,328 tokens a pod, Qwen3-32B; GPUs a pod not stated, two H100 fit */
    config = (struct kvc_step_config){
        kvc_llm_find("Qwen3-32B"), kvc_gpu_find("h100_sxm"), "vllm", KVC_BF16, KVC_BF16, 2, 1,
        .ep = 1};
    assert_int_equal(kvc_step_model_create(&m, &config, &err), KVC_OK);
    tokens = (double)kvc_step_kv_capacity_bytes(m, 0.9, 8192) / 262144;
    print_message("Qwen3-32B on 2 x H100 (assumed): %.0f tokens, the pods had 307328 (%+.1f %%)\n",
                  tokens, 100 * (tokens / 307328 - 1));
    assert_true(fabs(tokens - 307328) * 262144 <= 2 * slack);
    kvc_step_model_destroy(m);

    /* vllm-project/vllm issue 21348: SGLang allocated 367,404 tokens on four H100 at 0.93. Its
     * share leaves activations out, so that the tokens of a step don't matter. */
    config = (struct kvc_step_config){
        kvc_llm_find("Qwen3-235B-A22B"), kvc_gpu_find("h100_sxm"), "sglang", KVC_FP8_BLOCK,
        KVC_BF16, 4, 1, .ep = 1};
    assert_int_equal(kvc_step_model_create(&m, &config, &err), KVC_OK);
    uint64_t bytes = kvc_step_kv_capacity_bytes(m, 0.93, 8192);
    tokens = (double)bytes / (double)kvc_llm_kv_bytes_per_token(config.llm, KVC_BF16, 4);
    print_message("Qwen3-235B-A22B on 4 x H100, SGLang: %.0f tokens, stated 367404 (%+.1f %%)\n",
                  tokens, 100 * (tokens / 367404 - 1));
    assert_true(fabs(tokens / 367404 - 1) < 0.05);
    assert_int_equal(kvc_step_kv_capacity_bytes(m, 0.93, 32768), bytes);
    kvc_step_model_destroy(m);
}

/* GLM-5's attention block alone: one rank's eight heads, a sliver of dense layers, no experts and
 * nobody to reduce with. Modules were measured with projections and indexer. */
static double sparse_block_off(const char *gpu, const char *backend, enum kvc_dtype kv,
                               const char *kv_name, const char *file)
{
    struct kvc_llm block = *kvc_llm_find("GLM-5");
    struct test_csv csv;
    struct kvc_step_model *m;
    double off[MOST];
    size_t n = 0;
    block.heads = 8;
    block.experts = 0;
    block.intermediate = 16;
    const struct kvc_step_config config = {&block, kvc_gpu_find(gpu), backend, KVC_FP8_BLOCK, kv, 1,
                                           1, .ep = 1};
    assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
    assert_true(test_csv_open(&csv, file));
    while (test_csv_row(&csv)) {
        const struct kvc_chunk chunk = {(uint32_t)test_csv_number(&csv, "isl"), 0};
        uint64_t host;
        if (chunk.tokens <= block.sparse_tokens || chunk.tokens > 12288 || n == MOST ||
            test_csv_number(&csv, "num_heads") != 8 || test_csv_number(&csv, "batch_size") != 1 ||
            test_csv_number(&csv, "step") != 0 ||
            strcmp(test_csv_get(&csv, "model"), "zai-org/GLM-5") != 0 ||
            strcmp(test_csv_get(&csv, "gemm_type"), "fp8_block") != 0 ||
            strcmp(test_csv_get(&csv, "kv_cache_dtype"), kv_name) != 0)
            continue;
        double ns = (double)kvc_step_ns(m, &chunk, 1, 0, 0, 0, &host) - (double)host;
        off[n] = fabs(ns / block.layers / 1e6 / test_csv_number(&csv, "latency") - 1);
        n++;
    }
    assert_true(n >= 3);
    printf("    %s, %s: median %.0f %%, most %.0f %% of %zu\n", gpu, backend,
           100 * quantile(off, n, 0.5), 100 * quantile(off, n, 1), n);
    test_csv_close(&csv);
    kvc_step_model_destroy(m);
    return quantile(off, n, 1);
}

#define MODULES "../shared/kernels/aic/"

static void sparse_prefill_beside_measured_modules(void **state)
{
    (void)state;
    struct test_csv csv;
    if (!test_csv_open(&csv, MODULES "_manifest.csv")) {
        print_message("SKIPPED: " MODULES " is not there\n");
        skip();
    }
    test_csv_close(&csv);
    const char *vllm = MODULES "h200_sxm__dsa_context_module__vllm__0.24.0.csv.zst";
    const char *trtllm = MODULES "b200_sxm__dsa_context_module__trtllm__1.3.0rc20.csv.zst";
    assert_true(sparse_block_off("h200_sxm", "vllm", KVC_BF16, "bfloat16", vllm) < 0.25);
    assert_true(sparse_block_off("b200_sxm", "trtllm", KVC_FP8, "fp8", trtllm) < 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_prefill_beside_measured_modules),
        cmocka_unit_test(decode_steps_meet_measured_tpot),
        cmocka_unit_test(other_rows_are_reported),
        cmocka_unit_test(lone_prefill_beside_measured_ttft),
        cmocka_unit_test(one_stream_meets_published_steps),
        cmocka_unit_test(kv_room_beside_engine_statements),
    };
    return cmocka_run_group_tests_name("models_silicon", tests, NULL, NULL);
}
