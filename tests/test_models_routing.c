/* SPDX-License-Identifier: Apache-2.0
 * How evenly tokens are taken to be dealt to experts: on vLLM's Triton kernel as in rows measured
 * with all experts alike, else as in those of a power law (docs/models.md), and up to how many
 * tokens their times hold. Skipped without ../shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/kernels.h"
#include "models/profiles.h"
#include "models/step_model.h"
#include "tests/models_csv.h"

#define AIC "../shared/kernels/aic/"
#define MOST 4096

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Whether a row is of the kernel, format and shape, its experts dealt to so many ranks. */
static bool is_of(const struct test_csv *csv, const char *kernel, const char *dtype,
                  const struct kvc_llm *llm, uint32_t ranks)
{
    return strstr(test_csv_get(csv, "kernel_source"), kernel) &&
           strcmp(test_csv_get(csv, "moe_dtype"), dtype) == 0 &&
           test_csv_number(csv, "hidden_size") == llm->hidden &&
           test_csv_number(csv, "inter_size") == llm->expert_intermediate &&
           test_csv_number(csv, "topk") == llm->top_k &&
           test_csv_number(csv, "num_experts") == llm->experts &&
           test_csv_number(csv, "moe_tp_size") == 1 && test_csv_number(csv, "moe_ep_size") == ranks;
}

/* Median of predicted over measured, less one, over rows routed so. */
static double bias(const struct kvc_moe *moe, const char *file, const char *kernel,
                   const char *dtype, const struct kvc_llm *llm, const char *routing)
{
    static double off[MOST];
    struct test_csv csv;
    size_t n = 0;

    assert_true(test_csv_open(&csv, file));
    while (test_csv_row(&csv))
        if (n < MOST && is_of(&csv, kernel, dtype, llm, 1) &&
            strcmp(test_csv_get(&csv, "distribution"), routing) == 0 &&
            test_csv_number(&csv, "num_tokens") >= 64)
            off[n++] = kvc_moe_ns(moe, test_csv_number(&csv, "num_tokens")) /
                           (test_csv_number(&csv, "latency") * 1e6) - 1;
    test_csv_close(&csv);
    assert_true(n >= 8);
    qsort(off, n, sizeof *off, by_value);
    return off[n / 2];
}

static void experts_are_routed_as_served(void **state)
{
    static const struct {
        const char *gpu, *backend, *file, *kernel, *llm, *as, *not_as;
    } c[] = {
        {"h100-sxm", "vllm", AIC "h100_sxm__moe__vllm__0.24.0.csv.zst", "triton_tritonexperts",
         "mixtral-8x22b", "balanced", "power_law_1.2"},
        {"h100-sxm", "sglang", AIC "h100_sxm__moe__sglang__0.5.14.csv.zst", "fused_moe_triton",
         "mixtral-8x22b", "balanced", "power_law_1.2"},
        {"h100-sxm", "trtllm", AIC "h100_sxm__moe__trtllm__1.3.0rc20.csv.zst", "cutlass",
         "mixtral-8x22b", "power_law_1.2", "balanced"},
    };
    (void)state;
    struct test_csv csv;
    if (!test_csv_open(&csv, c[0].file))
        skip();
    test_csv_close(&csv);
    assert_int_equal(kvc_profiles_ready(NULL), KVC_OK);
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        const struct kvc_llm *llm = kvc_llm_find(c[i].llm);
        struct kvc_kernels *k;
        struct kvc_moe moe;
        assert_int_equal(kvc_kernels_load(&k, kvc_gpu_find(c[i].gpu), c[i].backend, NULL), KVC_OK);
        assert_true(kvc_kernels_moe(k, KVC_BF16, false, c[i].kernel, llm, 1, 1, &moe));
        double as = bias(&moe, c[i].file, c[i].kernel, "bfloat16", llm, c[i].as);
        double other = bias(&moe, c[i].file, c[i].kernel, "bfloat16", llm, c[i].not_as);
        print_message("%s %s %s: %+.1f %% on %s, %+.1f %% on %s\n", c[i].gpu, c[i].backend,
                      llm->name, 100 * as, c[i].as, 100 * other, c[i].not_as);
        assert_true(fabs(as) < 0.05 && fabs(as) < fabs(other));
        kvc_kernels_destroy(k);
    }
}

/* Data-parallel ranks put their tokens together for the experts, so that a rank's end comes sooner.
 */
static void experts_end_where_their_rows_do(void **state)
{
    struct test_csv csv;
    struct kvc_step_model *m;
    const struct kvc_llm *llm = kvc_llm_find("mixtral-8x22b");
    (void)state;
    for (uint32_t ranks = 1; ranks <= 4; ranks *= 4) {
        const struct kvc_step_config c = {.llm = llm, .gpu = kvc_gpu_find("h100-sxm"),
                                          .backend = "vllm", .weights = KVC_BF16, .kv = KVC_BF16,
                                          .tp = 1, .pp = 1, .dp = ranks, .ep = ranks};
        double most = 0;
        if (!test_csv_open(&csv, AIC "h100_sxm__moe__vllm__0.24.0.csv.zst"))
            skip();
        while (test_csv_row(&csv))
            if (is_of(&csv, "triton_tritonexperts", "bfloat16", llm, ranks))
                most = fmax(most, test_csv_number(&csv, "num_tokens"));
        test_csv_close(&csv);
        assert_true(most >= 8192);
        assert_int_equal(kvc_step_model_create(&m, &c, NULL), KVC_OK);
        assert_int_equal(kvc_step_range(m)->tokens, (uint64_t)most / ranks);
        kvc_step_model_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_are_routed_as_served),
        cmocka_unit_test(experts_end_where_their_rows_do),
    };
    return cmocka_run_group_tests_name("models_routing", tests, NULL, NULL);
}
