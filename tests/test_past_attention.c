/* SPDX-License-Identifier: Apache-2.0
 * Tokens behind a cached prefix: the cost of the prefix against vLLM's attention as measured on
 * RTX PRO 6000 (no table of the model was fitted to rows with a prefix), and laws it must keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "models/step_model.h"
#include "tests/models_csv.h"

#define GRID "../shared/kernels/llmservingsim/rtxpro6000_v1_%s_bf16_tp1_attention.csv.zst"

static struct kvc_step_model *build(const char *llm, const char *gpu)
{
    struct kvc_step_config config = {
        kvc_llm_find(llm), kvc_gpu_find(gpu), "vllm", KVC_BF16, KVC_BF16, 1, 1, .ep = 1,
        .captured_tokens = UINT32_MAX}; /* no step waits for its launches */
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};

    if (kvc_step_model_create(&m, &config, &err) != KVC_OK)
        fail_msg("%s on %s: %s", llm, gpu, err.text);
    return m;
}

static double step_ns(const struct kvc_step_model *m, const struct kvc_chunk *c, size_t n)
{
    return (double)kvc_step_ns(m, c, n, 0, 0, 1, NULL);
}

static double past_ns(const struct kvc_step_model *m, uint32_t q, uint32_t past)
{
    const struct kvc_chunk with = {q, past}, without = {q, 0};

    return step_ns(m, &with, 1) - step_ns(m, &without, 1);
}

/* Mean absolute error of (time with the past) - (time without), one layer. */
static double grid_error(const char *file, const char *llm)
{
    struct kvc_step_model *m = build(llm, "rtx_pro_6000");
    double base[4096] = {0}, sum = 0;
    struct test_csv csv;
    char path[256];
    size_t n = 0;

    snprintf(path, sizeof path, GRID, file);
    for (int pass = 0; pass < 2; pass++) { /* rows without a past first */
        assert_true(test_csv_open(&csv, path));
        while (test_csv_row(&csv)) {
            unsigned q = (unsigned)test_csv_number(&csv, "prefill_chunk");
            double past = test_csv_number(&csv, "kv_prefill");
            double ns = 1e3 * test_csv_number(&csv, "time_us");
            if (test_csv_number(&csv, "n_decode") > 0 || q == 0 || q >= 4096)
                continue;
            if (pass == 0 && past <= 0)
                base[q] = ns;
            if (pass == 1 && past >= 1024 && base[q] > 0) {
                double predicted = past_ns(m, q, (uint32_t)past) / kvc_llm_find(llm)->layers;
                sum += fabs(predicted / (ns - base[q]) - 1);
                n++;
            }
        }
        test_csv_close(&csv);
    }
    kvc_step_model_destroy(m);
    assert_true(n > 20);
    return 100 * sum / (double)n;
}

static void the_past_costs_what_was_measured(void **state)
{
    (void)state;
    static const char *const grid[][2] = {
        {"meta-llama_Llama-3.1-8B", "Llama-3.1-8B"},
        {"Qwen_Qwen3-32B", "Qwen3-32B"},
        {"Qwen_Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B"}};
    struct test_csv csv;
    char path[256];

    snprintf(path, sizeof path, GRID, grid[0][0]);
    if (!test_csv_open(&csv, path)) {
        print_message("no %s: skipped\n", path);
        skip();
    }
    test_csv_close(&csv);
    for (size_t i = 0; i < 3; i++) {
        double error = grid_error(grid[i][0], grid[i][1]);
        print_message("%s: %.1f %% off on the cost of a prefix\n", grid[i][1], error);
        assert_true(error < 30);
    }
}

/* Mean absolute error of attention of decodes beside a prompt, one layer; apart: by that of decodes
 * by themselves. */
static double joint_error(const char *file, const char *llm, double *apart)
{
    struct kvc_step_model *m = build(llm, "rtx_pro_6000");
    double alone[4096] = {0}, layers = kvc_llm_find(llm)->layers, sum = 0, other = 0;
    struct test_csv csv;
    char path[256];
    size_t n = 0;

    snprintf(path, sizeof path, GRID, file);
    for (int pass = 0; pass < 2; pass++) { /* prompts alone first */
        assert_true(test_csv_open(&csv, path));
        while (test_csv_row(&csv)) {
            const struct kvc_chunk c = {(uint32_t)test_csv_number(&csv, "prefill_chunk"), 0};
            uint32_t decodes = (uint32_t)test_csv_number(&csv, "n_decode");
            double context = test_csv_number(&csv, "kv_decode") * decodes;
            double ns = 1e3 * test_csv_number(&csv, "time_us") * layers;

            if (test_csv_number(&csv, "kv_prefill") > 0 || c.tokens < 64 || c.tokens > 1024)
                continue;
            if (pass == 0 && decodes == 0)
                alone[c.tokens] = ns;
            if (pass == 0 || decodes < 8 || context / decodes < 512 || context / decodes > 4096)
                continue;
            double prompt = kvc_step_attention(m, &c, 1, 0, 0);
            double decode = kvc_step_attention(m, NULL, 0, decodes, (uint64_t)context);
            double both = kvc_step_attention(m, &c, 1, decodes, (uint64_t)context);
            sum += fabs((both - prompt) / (ns - alone[c.tokens]) - 1);
            other += fabs(decode / (ns - alone[c.tokens]) - 1);
            n++;
        }
        test_csv_close(&csv);
    }
    kvc_step_model_destroy(m);
    assert_true(n > 20);
    *apart = 100 * other / (double)n;
    return 100 * sum / (double)n;
}

static void decodes_beside_a_prompt_cost_what_was_measured(void **state)
{
    static const char *const grid[][2] = {
        {"meta-llama_Llama-3.1-8B", "Llama-3.1-8B"},
        {"Qwen_Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B"}};
    struct test_csv csv;
    char path[256];

    (void)state;
    snprintf(path, sizeof path, GRID, grid[0][0]);
    if (!test_csv_open(&csv, path)) {
        print_message("no %s: skipped\n", path);
        skip();
    }
    test_csv_close(&csv);
    for (size_t i = 0; i < 2; i++) {
        double apart, error = joint_error(grid[i][0], grid[i][1], &apart);

        print_message("%s: %.1f %% off on decodes beside a prompt, %.1f if they took what they "
                      "take alone\n", grid[i][1], error, apart);
        assert_true(error < 25 && error < apart);
    }
}

/* A few queries leave most of the machine idle: a past costs them as much as a tile of 64. */
static void few_queries_pay_for_a_whole_tile(void **state)
{
    (void)state;
    struct kvc_step_model *m = build("Llama-3.1-8B", "h100_sxm");

    assert_true(fabs(past_ns(m, 1, 65536) / past_ns(m, 48, 65536) - 1) < 0.35);
    assert_true(past_ns(m, 2048, 65536) > 4 * past_ns(m, 16, 65536));
    kvc_step_model_destroy(m);
}

/* Chunks side by side share the machine: together no slower than one after the other, and never
 * faster than the longest of them. */
static void chunks_share_the_machine(void **state)
{
    (void)state;
    struct kvc_step_model *m = build("Llama-3.1-8B", "h100_sxm");
    const struct kvc_chunk two[] = {{16, 32768}, {16, 32768}}, mixed[] = {{16, 32768}, {512, 0}};
    double one = past_ns(m, 16, 32768);
    const struct kvc_chunk none[] = {{16, 0}, {16, 0}};
    double both = step_ns(m, two, 2) - step_ns(m, none, 2);
    const struct kvc_chunk apart[] = {{16, 0}, {512, 0}};

    assert_true(both >= 0.99 * one && both < 2.01 * one);
    assert_true(step_ns(m, mixed, 2) - step_ns(m, apart, 2) > 0.99 * one);
    kvc_step_model_destroy(m);
}

/* The sparse kernel serves a chunk behind as many tokens as it selects, however short it is: two
 * halves of it take no less than the whole, and of attention about as much. */
static void halves_are_no_faster_where_keys_are_selected(void **state)
{
    static const char *const llms[] = {"DeepSeek-V3.2", "GLM-5"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kvc_step_model *m = build(llms[i], "h200_sxm");
        for (uint32_t q = 128; q <= 8192; q *= 2) {
            const struct kvc_chunk whole = {q, 20000}, half = {q / 2, 20000};
            double one = kvc_step_attention(m, &whole, 1, 0, 0) - m->prefill_fixed;
            double two = 2 * (kvc_step_attention(m, &half, 1, 0, 0) - m->prefill_fixed);
            assert_true(2 * step_ns(m, &half, 1) >= step_ns(m, &whole, 1));
            if (!(fabs(two / one - 1) < 0.03))
                fail_msg("%s, %u tokens: two halves take %.2f of the whole", llms[i], q, two / one);
        }
        kvc_step_model_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_past_costs_what_was_measured),
        cmocka_unit_test(decodes_beside_a_prompt_cost_what_was_measured),
        cmocka_unit_test(few_queries_pay_for_a_whole_tile),
        cmocka_unit_test(chunks_share_the_machine),
        cmocka_unit_test(halves_are_no_faster_where_keys_are_selected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
