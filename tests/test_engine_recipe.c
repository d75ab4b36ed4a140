/* SPDX-License-Identifier: Apache-2.0
 * How published runs are taken to have run, against the scripts that they were started with; laws
 * of steps with attention data parallelism. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "studies/engine/recipe.h"

static struct kvc_engine_row row_of(const char *model, const char *system, const char *backend,
                                    const char *precision)
{
    struct kvc_engine_row r = {.harvested = true, .isl = 1024, .osl = 1024, .clients = 8, .tp = 8,
                               .pp = 1, .dp = 1, .moe_tp = 1, .moe_ep = 1, .measured = 20251102};

    snprintf(r.model, sizeof r.model, "%s", model);
    snprintf(r.system, sizeof r.system, "%s", system);
    snprintf(r.backend, sizeof r.backend, "%s", backend);
    snprintf(r.precision, sizeof r.precision, "%s", precision);
    return r;
}

static void tensorrt_holds_short_prompts_back(void **state)
{
    struct kvc_engine_row r = row_of("Llama-3.1-70B", "b200_sxm", "trtllm", "fp8");
    struct kvc_engine_recipe how;

    (void)state;
    kvc_engine_recipe_of(&r, &how);
    assert_true(how.published && how.shortest == 0.8 && how.batching.whole_prompts);
    assert_string_equal(how.kv, "fp8");
    assert_int_equal(how.batching.max_batched_tokens, 16384);
    assert_int_equal(how.batching.wait_steps, 0);
    r.tp = 4;
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.batching.wait_steps, 20);
    assert_int_equal(how.batching.wait_tokens, 14745); /* 0.9 of 16384 */
    r.osl = 8192;
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.batching.wait_steps, 0);
    strcpy(r.system, "h200_sxm");
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.batching.max_batched_tokens, 1024 + 8192 + 200);
}

/* The least budget came with a later version of the script. */
static void scripts_change_with_the_day(void **state)
{
    struct kvc_engine_row r = row_of("DeepSeek-R1", "h200_sxm", "trtllm", "fp8");
    struct kvc_engine_recipe how;

    (void)state;
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.batching.max_batched_tokens, 1152); /* 8 + 1024 + 64, to 64 */
    r.measured = 20260114;
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.batching.max_batched_tokens, 8192);
    r.isl = 8192;
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.batching.max_batched_tokens, 8320);
}

static void kernels_are_those_that_scripts_name(void **state)
{
    struct kvc_engine_row r = row_of("DeepSeek-R1", "b200_sxm", "trtllm", "fp8");
    struct kvc_engine_recipe how;

    (void)state;
    kvc_engine_recipe_of(&r, &how);
    assert_null(how.experts_kernel); /* DEEPGEMM, the only table there is */
    r.measured = 20260129;           /* TRTLLM */
    kvc_engine_recipe_of(&r, &how);
    assert_string_equal(how.experts_kernel, "flashinfer_trtllm");
    assert_false(how.graphed_prefill);
    r.clients = 64;
    kvc_engine_recipe_of(&r, &how);
    assert_true(how.graphed_prefill); /* enable_piecewise_cuda_graph */
    r.osl = 8192;
    kvc_engine_recipe_of(&r, &how);
    assert_false(how.graphed_prefill);
    r.clients = 256; /* DEEPGEMM */
    kvc_engine_recipe_of(&r, &how);
    assert_null(how.experts_kernel);
    assert_false(how.foreign_products);
    strcpy(r.backend, "sglang");
    kvc_engine_recipe_of(&r, &how);
    assert_true(how.foreign_products); /* SGLANG_ENABLE_FLASHINFER_GEMM=true */
    strcpy(r.model, "Qwen3.5-397B-A17B");
    kvc_engine_recipe_of(&r, &how);
    assert_false(how.foreign_products);
    assert_int_equal(how.requests, 10);
    r = row_of("GLM-5", "h200_sxm", "sglang", "fp8");
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.requests, 5);
    assert_false(how.experts_dealt);
    r = row_of("MiniMax-M2.5", "b200_sxm", "vllm", "fp8");
    r.measured = 20260311; /* --enable-expert-parallel whatever EP_SIZE */
    kvc_engine_recipe_of(&r, &how);
    assert_true(how.experts_dealt);
    r.measured = 20260403;
    kvc_engine_recipe_of(&r, &how);
    assert_false(how.experts_dealt);
}

static void sglang_listens_less_often_to_many(void **state)
{
    struct kvc_engine_row r = row_of("DeepSeek-R1", "b200_sxm", "sglang", "fp4");
    struct kvc_engine_recipe how;

    (void)state;
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.batching.receive_steps, 10);
    assert_true(how.batching.prefill_first && !how.batching.whole_prompts);
    r.clients = 16;
    kvc_engine_recipe_of(&r, &how);
    assert_int_equal(how.batching.receive_steps, 30);
}

static void other_sources_have_other_rules(void **state)
{
    struct kvc_engine_row r = row_of("Qwen3-32B", "h100_sxm", "trtllm", "fp8");
    struct kvc_engine_recipe how;

    (void)state;
    r.harvested = false;
    strcpy(r.version, "1.0.0rc3");
    kvc_engine_recipe_of(&r, &how);
    assert_true(how.published && how.shortest == 1 && how.quantise_apart);
    assert_int_equal(how.batching.slots, 8);
    assert_int_equal(how.batching.max_batched_tokens, 2560); /* 8 + 1024 + 1500, to 32 */
    strcpy(r.version, "1.2.0");
    kvc_engine_recipe_of(&r, &how);
    assert_false(how.quantise_apart);
    r.alike = true; /* nothing is known of any row */
    kvc_engine_recipe_of(&r, &how);
    assert_true(!how.published && how.shortest == 0.9 && !how.batching.whole_prompts);
    assert_int_equal(how.batching.max_batched_tokens, 8192);
    r = row_of("Some-Model", "h200_sxm", "vllm", "fp8");
    kvc_engine_recipe_of(&r, &how);
    assert_true(!how.published && how.shortest == 0.8 && !how.kv); /* the client is the same */
}

/* ---- attention data parallelism ---- */

static struct kvc_step_model *build(uint32_t tp, uint32_t dp, uint32_t ep)
{
    const struct kvc_step_config c = {.llm = kvc_llm_find("DeepSeek-R1"),
                                      .gpu = kvc_gpu_find("h200_sxm"), .backend = "trtllm",
                                      .weights = KVC_FP8_BLOCK, .kv = KVC_FP8, .tp = tp, .pp = 1,
                                      .ep = ep, .dp = dp};
    struct kvc_step_model *m = NULL;

    kvc_step_model_create(&m, &c, NULL);
    return m;
}

static double decode_ns(const struct kvc_step_model *m, uint32_t n)
{
    return (double)kvc_step_ns(m, NULL, 0, n, 4096ull * n, n, NULL);
}

static void replicas_share_the_experts(void **state)
{
    struct kvc_step_model *tensor = build(8, 0, 8), *data = build(1, 8, 8), *one = build(8, 1, 8);

    (void)state;
    assert_true(tensor && data && one);
    assert_true(decode_ns(tensor, 8) == decode_ns(one, 8)); /* 1 is none */
    for (uint32_t n = 1; n <= 64; n *= 2)
        assert_true(decode_ns(data, 2 * n) >= decode_ns(data, n));
    /* a replica decodes an eighth of the sequences but holds all heads and unsliced products: no
     * free lunch, and no worse than doing everything alone */
    assert_true(decode_ns(data, 16) > 0.5 * decode_ns(tensor, 128));
    assert_true(decode_ns(data, 16) < 8 * decode_ns(tensor, 128));
    /* experts are dealt, the rest is on every rank: less room for KV than with all sliced, but all
     * of a replica's is its own */
    /* dealt to four and cut in two, a rank holds as many bytes of them as dealt to eight */
    struct kvc_step_model *both = build(1, 8, 4);
    assert_true(both != NULL);
    assert_true(fabs(kvc_step_weight_bytes(both, 0) / kvc_step_weight_bytes(data, 0) - 1) < 1e-12);
    kvc_step_model_destroy(both);
    uint64_t room = kvc_step_kv_capacity_bytes(data, 0.9, 8192);
    assert_true(room > 0 && room < kvc_step_kv_capacity_bytes(tensor, 0.9, 8192) / 8);
    kvc_step_model_destroy(tensor);
    kvc_step_model_destroy(data);
    kvc_step_model_destroy(one);
    assert_null(build(2, 4, 1)); /* slices of attention in replicas */
    assert_null(build(1, 8, 3)); /* experts over a part of the GPUs that does not divide them */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensorrt_holds_short_prompts_back),
        cmocka_unit_test(scripts_change_with_the_day),
        cmocka_unit_test(kernels_are_those_that_scripts_name),
        cmocka_unit_test(sglang_listens_less_often_to_many),
        cmocka_unit_test(other_sources_have_other_rules),
        cmocka_unit_test(replicas_share_the_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
