/* SPDX-License-Identifier: Apache-2.0
 * How far a step's time can be trusted: bands and flags follow what was measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/step_model.h"

static struct kvc_step_model *build(const char *llm, const char *gpu, enum kvc_dtype weights,
                                    enum kvc_dtype kv, uint32_t tp)
{
    const struct kvc_step_config config = {kvc_llm_find(llm), kvc_gpu_find(gpu), "vllm",
                                           weights, kv, tp, 1, .ep = 1};
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};

    if (kvc_step_model_create(&m, &config, &err) != KVC_OK)
        fail_msg("%s on %s: %s", llm, gpu, err.text);
    return m;
}

/* Kernels of this GPU promise a narrower band than another's. */
static void bands_follow_the_evidence(void **state)
{
    (void)state;
    struct kvc_time_band known, assumed;
    struct kvc_step_model *a = build("Llama-3.1-70B", "h200_sxm", KVC_FP8, KVC_FP8, 8);
    struct kvc_step_model *b = build("Llama-3.1-70B", "gh200_144", KVC_FP8, KVC_FP8, 2);
    kvc_step_band(a, 0, &known);
    kvc_step_band(b, 0, &assumed);
    assert_true(known.tpot_high < assumed.tpot_high && known.tpot_low > assumed.tpot_low);
    assert_true(known.ttft_high < assumed.ttft_high && known.ttft_low > assumed.ttft_low);
    assert_non_null(strstr(assumed.widened, "another GPU"));
    assert_string_equal(known.widened, "");
    kvc_step_band(b, KVC_STEP_OUTSIDE | KVC_STEP_FAR, &assumed); /* for two reasons, both told */
    assert_non_null(strstr(assumed.widened, "another GPU"));
    assert_non_null(strstr(assumed.widened, "beyond the measured tables"));

    /* and what no table covers is said, and widens it */
    struct kvc_time_band wide;
    struct kvc_chunk fresh = {2048, 0}, behind = {2048, 4096}, large = {20000, 0};
    assert_int_equal(kvc_step_flags(a, &fresh, 1, 64, 64 * 4096), 0);
    assert_int_equal(kvc_step_flags(a, &behind, 1, 64, 64 * 4096), KVC_STEP_PAST);
    assert_int_equal(kvc_step_flags(a, &large, 1, 0, 0), KVC_STEP_OUTSIDE);
    assert_int_equal(kvc_step_flags(a, NULL, 0, 1, 200000), KVC_STEP_OUTSIDE);
    assert_true(kvc_step_flags(b, &fresh, 1, 0, 0) & KVC_STEP_BORROWED);
    assert_int_equal(kvc_step_flags(a, NULL, 0, 1, 300000), KVC_STEP_OUTSIDE | KVC_STEP_FAR);
    kvc_step_band(a, KVC_STEP_OUTSIDE | KVC_STEP_FAR, &wide);
    assert_true(wide.tpot_high > known.tpot_high && wide.tpot_low < known.tpot_low);
    kvc_step_model_destroy(a);
    kvc_step_model_destroy(b);
}

/* Of borrowed kernels that the rows behind a band carry nothing is widened a second time; ends of
 * tables that they carry widen it by less, far beyond always by as much. */
static void what_the_rows_lack_widens_most(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100_sxm", "b300_sxm", "gh200_144"};
    static const uint32_t flags[] = {KVC_STEP_PAST, KVC_STEP_OUTSIDE,
                                     KVC_STEP_OUTSIDE | KVC_STEP_FAR};

    size_t models = 0;

    for (size_t e = 0; kvc_engine_names()[e]; e++) {
        const struct kvc_engine_profile *engine = kvc_engine_find(kvc_engine_names()[e]);
        assert_true(strlen(engine->band.source) < 150); /* a result has room for reasons, too */
        for (size_t g = 0; g < 3; g++) {
            const struct kvc_step_config config = {
                kvc_llm_find("Llama-3.1-70B"), kvc_gpu_find(gpus[g]), engine->backend,
                KVC_FP8, KVC_FP8, 4, 1, .ep = 1};
            struct kvc_step_model *m = NULL;
            struct kvc_time_band plain, band;
            char name[64];
            if (kvc_step_model_create(&m, &config, NULL) != KVC_OK)
                continue; /* no kernels of that engine there */
            models++;
            snprintf(name, sizeof name, " %s ", gpus[g]);
            bool lacks = kvc_step_flags(m, NULL, 0, 1, 1000) & KVC_STEP_BORROWED &&
                         !strstr(engine->band_gpus, name);
            kvc_step_band(m, 0, &plain);
            assert_true(fabs(plain.tpot_high / engine->band.tpot_high - (lacks ? 1.25 : 1)) < 1e-9);
            for (size_t i = 0; i < 3; i++) {
                bool carried = flags[i] == KVC_STEP_OUTSIDE && engine->band_flags & flags[i];
                double ttft = carried ? 1.05 : flags[i] == KVC_STEP_PAST ? 1.1 : 1.25;
                kvc_step_band(m, flags[i], &band);
                assert_true(fabs(band.ttft_high / plain.ttft_high - ttft) < 1e-9);
                assert_true(strlen(band.widened) > strlen(plain.widened));
            }
            kvc_step_model_destroy(m);
        }
    }
    assert_true(models >= 6);
}

/* Rows behind a band have neither ranks of data nor stages. */
static void ranks_of_data_widen(void **state)
{
    struct kvc_step_config c = {.llm = kvc_llm_find("DeepSeek-V3"), .gpu = kvc_gpu_find("h200_sxm"),
                                .backend = "vllm", .weights = KVC_FP8_BLOCK, .kv = KVC_BF16,
                                .tp = 8, .pp = 1, .dp = 1, .ep = 8};
    struct kvc_time_band band[2];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kvc_step_model *m = NULL;
        struct kvc_error err = {0};
        if (kvc_step_model_create(&m, &c, &err) != KVC_OK)
            fail_msg("%s", err.text);
        kvc_step_band(m, 0, &band[i]);
        kvc_step_model_destroy(m);
        c.tp = 1;
        c.dp = 8;
    }
    assert_true(fabs(band[1].tpot_high / band[0].tpot_high - 1.25) < 1e-9);
    assert_true(fabs(band[1].ttft_low / band[0].ttft_low - 1 / 1.25) < 1e-9);
    assert_non_null(strstr(band[1].widened, "data-parallel"));
}

/* Each model's own tables end somewhere; products of another GPU or engine, and numbers of GPUs
 * that were not measured, are no measurements of this one. */
static void ranges_and_flags_are_those_of_the_tables(void **state)
{
    (void)state;
    struct kvc_time_band band;
    struct kvc_chunk chunk = {4096, 0};
    struct kvc_step_model *pro = build("Llama-3.1-8B", "rtx_pro_6000", KVC_BF16, KVC_BF16, 1);
    struct kvc_step_model *h100 = build("Llama-3.1-8B", "h100_sxm", KVC_BF16, KVC_BF16, 1);
    struct kvc_step_model *a100 = build("Llama-3.1-8B", "a100_80", KVC_FP8, KVC_BF16, 1);
    struct kvc_step_model *many = build("Llama-3.1-8B", "h100_sxm", KVC_BF16, KVC_BF16, 32);

    /* LLMServingSim @5daddb2: chunks to 2,048 tokens, 256 sequences, 16,384 tokens of context */
    assert_int_equal(kvc_step_range(pro)->chunk, 2048);
    assert_int_equal(kvc_step_range(pro)->sequences, 256);
    assert_int_equal(kvc_step_range(pro)->context, 16384);
    assert_int_equal(kvc_step_range(pro)->tokens, 2048);
    assert_int_equal(kvc_step_flags(h100, &chunk, 1, 300, 300 * 1700), 0);
    assert_int_equal(kvc_step_flags(pro, &chunk, 1, 0, 0), KVC_STEP_OUTSIDE);
    assert_int_equal(kvc_step_flags(pro, NULL, 0, 300, 300), KVC_STEP_OUTSIDE);
    assert_int_equal(kvc_step_flags(pro, NULL, 0, 1, 20000), KVC_STEP_OUTSIDE);
    assert_int_equal(kvc_step_flags(pro, NULL, 0, 256, 256 * 16384), 0);

    assert_true(kvc_step_flags(a100, NULL, 0, 1, 1000) & KVC_STEP_BORROWED);
    kvc_step_band(a100, 0, &band);
    assert_true(band.widened[0]);
    assert_int_equal(kvc_step_flags(many, NULL, 0, 1, 1000), KVC_STEP_SHAPE);
    kvc_step_model_destroy(pro);
    kvc_step_model_destroy(h100);
    kvc_step_model_destroy(a100);
    kvc_step_model_destroy(many);
}

static uint64_t decode_ns(const char *backend, enum kvc_dtype weights)
{
    const struct kvc_step_config config = {kvc_llm_find("Llama-3.1-8B"), kvc_gpu_find("a100_80"),
                                           backend, weights, KVC_BF16, 1, 1, .ep = 1};
    struct kvc_step_model *m = NULL;

    assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
    assert_true(weights == KVC_BF16 || kvc_step_flags(m, NULL, 0, 1, 1000) & KVC_STEP_SHAPE);
    uint64_t ns = kvc_step_ns(m, NULL, 0, 1, 1000, 1, NULL);
    kvc_step_model_destroy(m);
    return ns;
}

/* TensorRT-LLM's products with int8 and int4 weights were measured on A100: less to read, less
 * time, and never less than the weights take. */
static void fewer_bits_of_integers_are_read_faster(void **state)
{
    (void)state;
    const uint64_t bf16 = decode_ns("trtllm", KVC_BF16), int8 = decode_ns("trtllm", KVC_INT8);
    const uint64_t int4 = decode_ns("trtllm", KVC_INT4);
    const double rate = kvc_gpu_find("a100_80")->hbm_bytes_per_s.value;
    const struct kvc_llm *l = kvc_llm_find("Llama-3.1-8B");
    /* the embedding is not read */
    double eight = (double)kvc_llm_weight_bytes(l, KVC_INT8) - 2.0 * l->vocab * l->hidden;

    assert_true(int4 < int8 && int8 < bf16);
    assert_true((double)int8 > 1e9 * eight / rate && (double)int8 < 2e9 * eight / rate);
    assert_true(decode_ns("vllm", KVC_INT8) < decode_ns("vllm", KVC_BF16));
}

/* Each of n MI300X sends 1 / n of a message to each peer, twice, over a link of its own: of eight
 * RCCL's bus bandwidth of 1 to 8 GiB comes out (Azure AI-benchmarking-guide ND_MI300X_v5, fork
 * @3de0c294: 313.9 to 316.8 GB/s), of two no more than one link's. */
static void ranks_without_a_switch_share_their_links(void **state)
{
    (void)state;
    double rate[9];

    for (uint32_t n = 2; n <= 8; n *= 2) {
        struct kvc_step_model *m = build("Llama-3.1-70B", "mi300x", KVC_FP8, KVC_FP8, n);
        rate[n] = m->allreduce_bytes_per_s;
        assert_false(m->allreduce_measured);
        kvc_step_model_destroy(m);
    }
    assert_true(fabs(rate[8] * 2 * 7 / 8 / 315e9 - 1) < 0.02);
    assert_true(rate[2] < 64e9 && fabs(rate[8] / rate[2] - 4) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_follow_the_evidence),
        cmocka_unit_test(what_the_rows_lack_widens_most),
        cmocka_unit_test(ranks_of_data_widen),
        cmocka_unit_test(ranges_and_flags_are_those_of_the_tables),
        cmocka_unit_test(ranks_without_a_switch_share_their_links),
        cmocka_unit_test(fewer_bits_of_integers_are_read_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
