/* SPDX-License-Identifier: Apache-2.0
 * The fitted kernel profiles against the measured rows they were fitted from, so that neither the
 * files nor the code that reads them can drift. Skipped where ../shared is absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/kernels.h"
#include "tests/models_csv.h"

#define AIC "../shared/kernels/aic/"

static const char *const gpus[] = {"h100_sxm", "h200_sxm", "b200_sxm"};

struct errors {
    double sum, squares;
    size_t n, worse_than_20;
};

static void add_error(struct errors *e, double predicted, double measured)
{
    double a = fabs(predicted / measured - 1);

    e->sum += a;
    e->squares += a * a;
    e->n++;
    e->worse_than_20 += a > 0.2;
}

static double mape(const struct errors *e)
{
    return e->n ? 100 * e->sum / (double)e->n : NAN;
}

/* Of the mean over these rows as an estimate of the mean over all. */
static double standard_error(const struct errors *e)
{
    double mean = e->sum / (double)e->n;

    return 100 * sqrt((e->squares / (double)e->n - mean * mean) / (double)e->n);
}

static bool open_rows(struct test_csv *csv, const char *gpu, const char *family, const char *ext)
{
    char path[256];

    snprintf(path, sizeof path, AIC "%s__%s__%s.csv%s", gpu, family,
             strcmp(ext, ".zst trtllm") ? "vllm__0.24.0" : "trtllm__1.3.0rc20",
             ext[0] ? ".zst" : "");
    if (test_csv_open(csv, path))
        return true;
    print_message("skipped: no %s\n", path);
    return false;
}

static struct kvc_kernels *load(const char *gpu)
{
    struct kvc_kernels *k = NULL;
    struct kvc_error err = {0};

    if (kvc_kernels_load(&k, kvc_gpu_find(gpu), "vllm", &err) != KVC_OK)
        fail_msg("%s", err.text);
    assert_true(kvc_kernels_measured(k));
    return k;
}

/* A residual the profile states of itself. */
static double stated(const char *gpu, const char *a, const char *b, const char *c)
{
    char name[64];
    struct kvc_jval *doc = NULL;
    snprintf(name, sizeof name, "kernels_%s_vllm.json", gpu);
    const struct kvc_blob *blob = kvc_blob_find(name);
    assert_int_equal(kvc_json_parse(&doc, (const char *)blob->data, blob->size, false, name, 1,
                                    NULL),
                     KVC_OK);
    const struct kvc_jval *v = kvc_jval_member(kvc_jval_member(doc, a), b);
    if (c)
        v = kvc_jval_member(v, c);
    double x = kvc_profile_number(kvc_jval_member(v, "residual"), "mape_percent", NAN);
    kvc_json_free(doc);
    return x;
}

/* Aligned rows only: serving engines pad m. The engine's fused quantise is switched off, since the
 * rows hold the separate launch. */
static void gemm_rows(const char *gpu, const char *csv_dtype, enum kvc_dtype dtype, double limit)
{
    struct test_csv csv;
    struct kvc_engine_profile engine = *kvc_engine_find("vllm");
    struct errors e = {0};
    size_t row = 0;

    if (!open_rows(&csv, gpu, "gemm", dtype == KVC_FP8_BLOCK ? ".zst trtllm" : ".zst"))
        skip();
    struct kvc_kernels *k = load(gpu);
    engine.fuses_quantise = false;
    while (test_csv_row(&csv)) {
        double m = test_csv_number(&csv, "m"), n = test_csv_number(&csv, "n");
        double depth = test_csv_number(&csv, "k");
        struct kvc_gemm g;
        if (strcmp(test_csv_get(&csv, "gemm_dtype"), csv_dtype) != 0 || n < 256 || depth < 256 ||
            (m > 16 && fmod(m, 16) != 0) || row++ % 5)
            continue;
        assert_int_equal(kvc_kernels_gemm(k, dtype, (uint32_t)n, (uint32_t)depth, &engine, &g,
                                          NULL),
                         KVC_OK);
        add_error(&e, kvc_gemm_ns(&g, m), 1e6 * test_csv_number(&csv, "latency"));
    }
    kvc_kernels_destroy(k);
    test_csv_close(&csv);
    double said = stated(gpu, "gemm", kvc_kernels_dtype(dtype), NULL);
    print_message("%s gemm %s: %zu rows, MAPE %.2f %% (profile says %.2f), over 20 %%: %zu\n", gpu,
                  csv_dtype, e.n, mape(&e), said, e.worse_than_20);
    assert_true(e.n > 1000);
    assert_true(mape(&e) < limit);
    assert_true(fabs(mape(&e) - said) < 5 * standard_error(&e)); /* every fifth row was taken */
}

static void gemm_tables_match_their_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        gemm_rows(gpus[i], "bfloat16", KVC_BF16, 9);
        gemm_rows(gpus[i], "fp8", KVC_FP8, 9);
    }
    gemm_rows("b200_sxm", "nvfp4", KVC_NVFP4, 9);
    gemm_rows("h100_sxm", "fp8_block", KVC_FP8_BLOCK, 9);
    gemm_rows("b200_sxm", "fp8_block", KVC_FP8_BLOCK, 9);
}

static void attention_rows(const char *gpu, const char *family, const char *kv_name,
                           enum kvc_dtype kv, double limit)
{
    struct test_csv csv;
    struct errors e = {0};
    bool decode = strcmp(family, "generation_attention") == 0, exact;
    struct kvc_decode_form d;
    struct kvc_prefill_form p;

    if (!open_rows(&csv, gpu, family, ".zst"))
        skip();
    struct kvc_kernels *k = load(gpu);
    assert_true(kvc_kernels_decode(k, kv, 128, &d, &exact) && exact);
    double rate = d.bandwidth_efficiency * kvc_gpu_find(gpu)->hbm_bytes_per_s.value;
    while (test_csv_row(&csv)) {
        double batch = test_csv_number(&csv, "batch_size"),
               heads = test_csv_number(&csv, "num_heads");
        double kv_heads = test_csv_number(&csv, "num_key_value_heads"),
               isl = test_csv_number(&csv, "isl");
        double context = isl + test_csv_number(&csv, "step"), size = kvc_dtype_bytes(kv), ns;
        if (strcmp(test_csv_get(&csv, "kv_cache_dtype"), kv_name) != 0 ||
            test_csv_number(&csv, "head_dim") != 128 || test_csv_number(&csv, "window_size") != 0)
            continue;
        if (decode ? context < 256 || batch > 512 : isl < 64 || isl * batch > 32768)
            continue;
        if (decode)
            ns = d.overhead_ns +
                 1e9 * (2 * batch * context * kv_heads * 128 * size + 4 * batch * heads * 128) /
                     rate;
        else {
            assert_true(
                kvc_kernels_prefill(k, kv, 128, (uint32_t)heads, (uint32_t)kv_heads, &p, &exact) &&
                exact);
            ns = p.launch_ns +
                 1e9 * batch * 4 * heads * 128 * (isl + p.q0) * (isl / 2 + p.p0) / p.flops;
            ns *= kvc_prefill_ratio(&p, isl);
        }
        add_error(&e, ns, 1e6 * test_csv_number(&csv, "latency"));
    }
    kvc_kernels_destroy(k);
    test_csv_close(&csv);
    double said = stated(gpu, decode ? "decode_attention" : "prefill_attention",
                         kv == KVC_BF16 ? "bf16" : "fp8", "128");
    print_message("%s %s %s: %zu rows, MAPE %.2f %% (profile says %.2f)\n", gpu, family, kv_name,
                  e.n, mape(&e), said);
    assert_true(e.n > 1000);
    assert_true(mape(&e) < limit);
    assert_true(fabs(mape(&e) - said) < 0.02); /* all rows; constants and residual are rounded */
}

static void attention_forms_match_their_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        attention_rows(gpus[i], "generation_attention", "bfloat16", KVC_BF16, 13);
        attention_rows(gpus[i], "generation_attention", "fp8", KVC_FP8, 13);
        attention_rows(gpus[i], "context_attention", "bfloat16", KVC_BF16, 13);
        attention_rows(gpus[i], "context_attention", "fp8", KVC_FP8, 14);
    }
}

/* At and below 8 MB the graph-captured rows, lifted or lowered only where they fall. */
static void allreduce_table_matches_its_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct test_csv csv;
        struct kvc_allreduce a[3];
        struct errors e = {0};
        if (!open_rows(&csv, gpus[i], "custom_allreduce", ""))
            skip();
        struct kvc_kernels *k = load(gpus[i]);
        for (uint32_t g = 0; g < 3; g++) {
            assert_true(kvc_kernels_allreduce(k, 2u << g, 8388608, &a[g]));
            for (size_t j = 1; j < a[g].n; j++)
                assert_true(a[g].ns[j] >= a[g].ns[j - 1] && a[g].bytes[j] > a[g].bytes[j - 1]);
        }
        while (test_csv_row(&csv)) {
            double bytes = 2 * test_csv_number(&csv, "message_size"),
                   n = test_csv_number(&csv, "num_gpus");
            if (strcmp(test_csv_get(&csv, "backend"), "vllm_graph") != 0 || bytes > 8388608)
                continue;
            double ns = kvc_allreduce_ns(&a[n == 2 ? 0 : n == 4 ? 1 : 2], bytes);
            assert_true(ns <= 1e6 * test_csv_number(&csv, "latency") + 1);
            add_error(&e, ns, 1e6 * test_csv_number(&csv, "latency"));
        }
        kvc_kernels_destroy(k);
        test_csv_close(&csv);
        print_message("%s all-reduce: %zu rows, MAPE %.2f %%\n", gpus[i], e.n, mape(&e));
        assert_true(e.n >= 30 && mape(&e) < 8);
    }
}

static void moe_rows(const char *gpu, const char *llm_name, enum kvc_dtype dtype,
                     const char *csv_dtype)
{
    struct test_csv csv;
    struct errors e = {0};
    const struct kvc_llm *l = kvc_llm_find(llm_name);

    if (!open_rows(&csv, gpu, "moe", ".zst"))
        skip();
    struct kvc_kernels *k = load(gpu);
    while (test_csv_row(&csv)) {
        double tp = test_csv_number(&csv, "moe_tp_size");
        double ep = test_csv_number(&csv, "moe_ep_size");
        struct kvc_moe m;
        if (strcmp(test_csv_get(&csv, "moe_dtype"), csv_dtype) != 0 || tp > 8 ||
            strcmp(test_csv_get(&csv, "distribution"), "power_law_1.2") != 0 || ep > 8 ||
            (tp > 1 && ep > 1) || test_csv_number(&csv, "hidden_size") != l->hidden ||
            test_csv_number(&csv, "inter_size") != l->expert_intermediate ||
            test_csv_number(&csv, "num_experts") != l->experts ||
            test_csv_number(&csv, "topk") != l->top_k)
            continue;
        if (!kvc_kernels_moe(k, dtype, l, (uint32_t)tp, (uint32_t)ep, &m))
            continue;
        add_error(&e, kvc_moe_ns(&m, test_csv_number(&csv, "num_tokens")),
                  1e6 * test_csv_number(&csv, "latency"));
    }
    kvc_kernels_destroy(k);
    test_csv_close(&csv);
    print_message("%s experts of %s %s: %zu rows, MAPE %.2f %%\n", gpu, llm_name, csv_dtype, e.n,
                  mape(&e));
    assert_true(e.n >= 20 && mape(&e) < 10);
}

static void moe_tables_match_their_rows(void **state)
{
    (void)state;
    moe_rows("h100_sxm", "Qwen3-235B-A22B", KVC_FP8, "fp8");
    moe_rows("h100_sxm", "gpt-oss-120b", KVC_MXFP4, "w4a16_mxfp4");
    moe_rows("b200_sxm", "Qwen3-30B-A3B", KVC_BF16, "bfloat16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_tables_match_their_rows),
        cmocka_unit_test(attention_forms_match_their_rows),
        cmocka_unit_test(allreduce_table_matches_its_rows),
        cmocka_unit_test(moe_tables_match_their_rows),
    };
    return cmocka_run_group_tests_name("models_kernels", tests, NULL, NULL);
}
