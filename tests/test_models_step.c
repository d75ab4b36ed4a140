/* SPDX-License-Identifier: Apache-2.0
 * Step times against bounds that need no table, against themselves in another form, and at their
 * edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "models/models.h"
#include "models/profiles.h"

static struct kvc_step_model *build(const char *llm, const char *gpu, enum kvc_dtype weights,
                                    enum kvc_dtype kv, uint32_t tp)
{
    struct kvc_step_config config = {
        kvc_llm_find(llm), kvc_gpu_find(gpu), "vllm", weights, kv, tp, 1, .ep = 1};
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};

    if (kvc_step_model_create(&m, &config, &err) != KVC_OK)
        fail_msg("%s on %s tp %u: %s", llm, gpu, tp, err.text);
    return m;
}

static double prefill_ns(const struct kvc_step_model *m, uint32_t tokens, uint32_t past)
{
    struct kvc_chunk c = {tokens, past};
    return (double)kvc_step_ns(m, &c, 1, 0, 0, 1, NULL);
}

static double decode_ns(const struct kvc_step_model *m, uint32_t n, uint64_t context)
{
    return (double)kvc_step_ns(m, NULL, 0, n, context, n, NULL);
}

static const struct combination {
    const char *llm, *gpu;
    enum kvc_dtype weights, kv;
    uint32_t tp;
} combinations[] = {
    {"Llama-3.1-70B", "h100_sxm", KVC_FP8, KVC_FP8, 8},
    {"Llama-3.1-70B", "h200_sxm", KVC_FP8, KVC_FP8, 8},
    {"Llama-3.1-70B", "b200_sxm", KVC_FP8, KVC_FP8, 8},
    {"Llama-3.1-70B", "b200_sxm", KVC_NVFP4, KVC_FP8, 4},
    {"Llama-3.1-70B", "h200_sxm", KVC_BF16, KVC_BF16, 2},
    {"Llama-3.1-8B", "h100_sxm", KVC_BF16, KVC_BF16, 1},
    {"Qwen3-32B", "gh200_144", KVC_FP8, KVC_BF16, 1},
    {"Llama-3.1-70B", "mi300x", KVC_FP8, KVC_FP8, 4},
    {"gpt-oss-120b", "h100_sxm", KVC_MXFP4, KVC_BF16, 2},
    {"Qwen3-235B-A22B", "h200_sxm", KVC_FP8, KVC_FP8, 4},
    {"DeepSeek-V3", "h200_sxm", KVC_FP8, KVC_BF16, 8},
    {"DeepSeek-R1", "l40s", KVC_BF16, KVC_BF16, 4}, /* 88 us a token from 64 tokens to 96 */
    {"Gemma-3-27B", "h100_sxm", KVC_BF16, KVC_BF16, 1},
    {"Qwen3.5-27B", "b200_sxm", KVC_FP8, KVC_FP8, 2},
    {"Nemotron-3-Nano-30B-A3B", "h100_sxm", KVC_BF16, KVC_BF16, 1},
    {"Nemotron-3-Nano-30B-A3B", "b200_sxm", KVC_BF16, KVC_FP8, 2},
};
#define COMBINATIONS (sizeof combinations / sizeof combinations[0])

static struct kvc_step_model *combination(size_t i)
{
    const struct combination *c = &combinations[i];
    return build(c->llm, c->gpu, c->weights, c->kv, c->tp);
}

/* A step reads every dense weight once and can't compute faster than the peak. */
static void no_step_beats_the_machine(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMBINATIONS; i++) {
        const struct combination *c = &combinations[i];
        const struct kvc_llm *l = kvc_llm_find(c->llm);
        const struct kvc_gpu *g = kvc_gpu_find(c->gpu);
        struct kvc_step_model *m = combination(i);
        double active = l->experts ? l->params_active_b : l->params_total_b;
        double touched = active * 1e9 - 2.0 * l->vocab * l->hidden; /* the embedding is a look-up */
        double peak = c->weights == KVC_NVFP4 ? g->fp4_flops.value
                      : c->weights == KVC_FP8 ? g->fp8_flops.value
                                              : g->bf16_flops.value;
        double stream =
            1e9 * touched * kvc_dtype_bytes(c->weights) / c->tp / g->hbm_bytes_per_s.value;
        double compute = 1e9 * 2.0 * touched * 8192 / c->tp / peak;
        double kv = 1e9 * (double)kvc_llm_kv_bytes_per_token(l, c->kv, c->tp) * 64 * 8192 / c->tp /
                    g->hbm_bytes_per_s.value;
        if (l->experts) /* MXFP4's other weights are larger, and one token may share experts */
            stream *= 0.9;
        assert_true(decode_ns(m, 1, 100) >= stream);
        assert_true(decode_ns(m, 64, 64 * 8192) >= stream + kv);
        assert_true(prefill_ns(m, 8192, 0) >= compute);
        /* nor is it absurdly slow: within 20 times of what the machine could do */
        if (g->kernels_measured && !l->experts)
            assert_true(prefill_ns(m, 8192, 0) < 20 * compute);
        kvc_step_model_destroy(m);
    }
}

static void more_work_is_never_faster(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMBINATIONS; i++) {
        struct kvc_step_model *m = combination(i);
        double last = 0;
        for (uint32_t tokens = 1; tokens <= 40000; tokens += tokens < 1100 ? 1 : 97) {
            double ns = prefill_ns(m, tokens, 0);
            assert_true(ns >= last);
            last = ns;
        }
        last = 0;
        for (uint32_t past = 0; past <= 200000; past += 777) {
            double ns = prefill_ns(m, 512, past);
            assert_true(ns >= last);
            last = ns;
        }
        last = 0;
        for (uint32_t n = 1; n <= 2048; n++) {
            double ns = decode_ns(m, n, 1000 * n);
            assert_true(ns >= 0.998 * last); /* within a cell lines may cross */
            last = ns;
        }
        last = 0;
        for (uint64_t context = 1; context < 100000000; context += 1 + context / 7) {
            double ns = decode_ns(m, 37, context);
            assert_true(ns >= last);
            last = ns;
        }
        kvc_step_model_destroy(m);
    }
}

static uint64_t cost_ns(const struct kvc_decode_cost *c, uint64_t context)
{
    __int128 q40 =
        (__int128)c->c0_q16 * ((__int128)1 << 24) + (__int128)c->c1_q40 * (__int128)context;
    return (uint64_t)((q40 + ((__int128)1 << 39)) >> 40);
}

/* The fixed-point stretch and the plain estimate are one function. */
static void stretch_agrees_with_the_step(void **state)
{
    (void)state;
    uint64_t rng = kvc_rng_stream(7, "models/stretch");
    for (size_t i = 0; i < COMBINATIONS; i++) {
        struct kvc_step_model *m = combination(i);
        for (int k = 0; k < 4000; k++) {
            uint32_t n = 1 + (uint32_t)kvc_rng_below(&rng, k % 4 == 0 ? 3 : k % 2 ? 64 : 3000);
            uint64_t context = kvc_rng_below(&rng, k % 4 == 0   ? 128
                                                   : k % 3 != 0 ? n * 2048ull
                                                                : 50000000);
            struct kvc_decode_cost c;
            uint64_t host, step = kvc_step_ns(m, NULL, 0, n, context, n, &host);
            kvc_step_decode(m, n, context, &c);
            uint64_t fixed = cost_ns(&c, context);
            assert_true(fixed + 1 >= step && fixed <= step + 1);
            assert_int_equal(c.host_ns, host);
            assert_true(context <= c.context_end);
            if (c.context_end != UINT64_MAX) { /* the last context it holds for */
                uint64_t at_end = kvc_step_ns(m, NULL, 0, n, c.context_end, n, NULL);
                fixed = cost_ns(&c, c.context_end);
                assert_true(fixed + 1 >= at_end && fixed <= at_end + 1);
            }
        }
        kvc_step_model_destroy(m);
    }
}

/* k steps from one stretch: the closed sum is exact, and within a nanosecond a step of the sum of
 * single estimates. */
static void stretch_sums_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMBINATIONS; i++) {
        struct kvc_step_model *m = combination(i);
        uint32_t n = 48;
        uint64_t context = 48 * 3000, k = 1000, plain = 0;
        struct kvc_decode_cost c;
        __int128 added = 0, closed;
        kvc_step_decode(m, n, context, &c);
        assert_true(context + n * k <= c.context_end);
        for (uint64_t j = 0; j < k; j++) {
            added += ((__int128)c.c0_q16 << 24) + (__int128)c.c1_q40 * (__int128)(context + n * j);
            plain += kvc_step_ns(m, NULL, 0, n, context + n * j, n, NULL);
        }
        closed = (((__int128)c.c0_q16 << 24) * (__int128)k) +
                 (__int128)c.c1_q40 * (__int128)(k * context + n * (k * (k - 1) / 2));
        assert_true(added == closed);
        int64_t sum = (int64_t)(closed >> 40), difference = sum - (int64_t)plain;
        assert_true(difference <= (int64_t)k && difference >= -(int64_t)k);
        kvc_step_model_destroy(m);
    }
}

/* Twice the GPUs: faster, but never more than twice as fast. */
static void tensor_parallelism_has_limits(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100_sxm", "h200_sxm", "b200_sxm"};
    for (size_t g = 0; g < 3; g++) {
        struct kvc_step_model *m2 = build("Llama-3.1-70B", gpus[g], KVC_FP8, KVC_FP8, 2);
        struct kvc_step_model *m4 = build("Llama-3.1-70B", gpus[g], KVC_FP8, KVC_FP8, 4);
        struct kvc_step_model *m8 = build("Llama-3.1-70B", gpus[g], KVC_FP8, KVC_FP8, 8);
        double a = prefill_ns(m2, 8192, 0), b = prefill_ns(m4, 8192, 0),
               c = prefill_ns(m8, 8192, 0);
        assert_true(a > b && b > c && b > a / 2 && c > b / 2);
        a = decode_ns(m2, 64, 64 * 4096);
        b = decode_ns(m4, 64, 64 * 4096);
        c = decode_ns(m8, 64, 64 * 4096);
        assert_true(a > b && b > c && b > a / 2 && c > b / 2);
        assert_true(kvc_step_kv_capacity_bytes(m8, 0.92, 8192) >
                    kvc_step_kv_capacity_bytes(m4, 0.92, 8192));
        kvc_step_model_destroy(m2);
        kvc_step_model_destroy(m4);
        kvc_step_model_destroy(m8);
    }
}

/* One chunk of 8192 tokens attends as much as four of 2048 one after the other; only launches,
 * padding and host time are added by cutting. */
static void chunks_add_up(void **state)
{
    (void)state;
    struct kvc_step_model *m = build("Llama-3.1-70B", "h200_sxm", KVC_FP8, KVC_FP8, 8);
    double whole = prefill_ns(m, 8192, 0), cut = 0;
    for (uint32_t past = 0; past < 8192; past += 2048)
        cut += prefill_ns(m, 2048, past);
    assert_true(cut > whole && cut < 1.35 * whole);
    kvc_step_model_destroy(m);
}

static void halving_kv_bytes_pays_at_long_context(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100_sxm", "h200_sxm", "b200_sxm"};
    for (size_t g = 0; g < 3; g++) {
        struct kvc_step_model *wide = build("Llama-3.1-70B", gpus[g], KVC_FP8, KVC_BF16, 8);
        struct kvc_step_model *narrow = build("Llama-3.1-70B", gpus[g], KVC_FP8, KVC_FP8, 8);
        assert_true(decode_ns(narrow, 64, 64 * 16384) < decode_ns(wide, 64, 64 * 16384));
        assert_true(decode_ns(narrow, 64, 64 * 16384) > 0.5 * decode_ns(wide, 64, 64 * 16384));
        kvc_step_model_destroy(wide);
        kvc_step_model_destroy(narrow);
    }
}

/* int4 weights of a dense model: read in a quarter of bf16's time, multiplied in bf16. A lone
 * decode reads little but weights, a long prefill multiplies; no step outruns its weights'
 * bytes. */
static void narrow_weights_pay_where_weights_are_read(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100_sxm", "b200_sxm", "a100_80"};
    for (size_t g = 0; g < 3; g++) {
        struct kvc_step_model *wide = build("Llama-3.1-70B", gpus[g], KVC_BF16, KVC_BF16, 4);
        struct kvc_step_model *narrow = build("Llama-3.1-70B", gpus[g], KVC_INT4, KVC_BF16, 4);
        double bytes = (double)kvc_llm_weight_bytes(kvc_llm_find("Llama-3.1-70B"), KVC_INT4) / 4;
        double floor_ns = bytes / kvc_gpu_find(gpus[g])->hbm_bytes_per_s.value * 1e9;
        double lone = decode_ns(narrow, 1, 1000), saved = decode_ns(wide, 1, 1000) - lone;
        double read = (140e9 - 4 * bytes) / 4 / kvc_gpu_find(gpus[g])->hbm_bytes_per_s.value * 1e9;
        assert_true(lone > floor_ns && saved > 0.8 * read && saved < 1.6 * read);
        assert_true(prefill_ns(narrow, 8192, 0) > 0.97 * prefill_ns(wide, 8192, 0));
        assert_true(prefill_ns(narrow, 8192, 0) <= 1.0001 * prefill_ns(wide, 8192, 0));
        assert_true(kvc_step_flags(narrow, NULL, 0, 1, 1000) & KVC_STEP_SHAPE);
        kvc_step_model_destroy(wide);
        kvc_step_model_destroy(narrow);
    }
}

static void expect_refusal(const struct kvc_step_config *config, enum kvc_status status,
                           const char *word)
{
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};
    enum kvc_status got = kvc_step_model_create(&m, config, &err);
    if (got != status || !strstr(err.text, word))
        fail_msg("status %d, '%s' where '%s' was expected", got, err.text, word);
    assert_null(m);
}

static void bad_shapes_are_refused_in_words(void **state)
{
    (void)state;
    struct kvc_step_config c = {
        kvc_llm_find("Llama-3.1-70B"), kvc_gpu_find("h200_sxm"), "vllm", KVC_FP8, KVC_FP8, 3, 1,
        .ep = 1};
    expect_refusal(&c, KVC_ERR_USAGE, "heads");
    c.tp = 0;
    expect_refusal(&c, KVC_ERR_USAGE, "0 does not divide");
    c.tp = 8;
    c.pp = 81;
    expect_refusal(&c, KVC_ERR_USAGE, "80 layers");
    c.pp = 1;
    c.ep = 8;
    expect_refusal(&c, KVC_ERR_USAGE, "no experts");
    c.ep = 1;
    c.backend = "vlm";
    expect_refusal(&c, KVC_ERR_UNSUPPORTED, "vllm");
    c.backend = "vllm";
    c.weights = KVC_NVFP4; /* Hopper has no fp4 */
    expect_refusal(&c, KVC_ERR_UNSUPPORTED, "h200_sxm");
    c.weights = KVC_INT8;
    expect_refusal(&c, KVC_ERR_UNSUPPORTED, "it has bf16, fp8");
    c.weights = KVC_FP8;
    struct kvc_gpu own = *kvc_gpu_find("mi300x");
    own.name = "my-gpu"; /* of a profile that names its device */
    c.gpu = &own;
    c.backend = "trtllm";
    expect_refusal(&c, KVC_ERR_UNSUPPORTED, "does not run on my-gpu");
    c.gpu = kvc_gpu_find("h200_sxm");
    c.backend = "vllm";
    c.kv = KVC_MXFP4;
    expect_refusal(&c, KVC_ERR_UNSUPPORTED, "show kv");
    c.kv = KVC_TQ_4;
    c.llm = kvc_llm_find("DeepSeek-V3");
    expect_refusal(&c, KVC_ERR_UNSUPPORTED, "latent");
    c.kv = KVC_FP8;
    c.llm = kvc_llm_find("Kimi-K3");
    expect_refusal(&c, KVC_ERR_UNSUPPORTED, "not known");
    c.llm = NULL;
    expect_refusal(&c, KVC_ERR_USAGE, "LLM");
}

/* Every format of KV builds; narrower ones than 8 bits cost more than bf16 until the table says
 * otherwise, and a share of the context is attended as fast as a context of that length. */
static void formats_of_kv_build(void **state)
{
    (void)state;
    struct kvc_step_config c = {.llm = kvc_llm_find("Llama-3.1-8B"),
                                .gpu = kvc_gpu_find("h100_sxm"),
                                .backend = "vllm", .weights = KVC_BF16, .tp = 1, .pp = 1, .ep = 1};
    struct kvc_step_model *bf16, *half, *m;
    double before = 0;

    assert_int_equal(kvc_step_model_create(&bf16, &c, NULL), KVC_OK);
    for (size_t i = 0; kvc_kv_format_at(i); i++) {
        const struct kvc_kv_format *f = kvc_kv_format_at(i);
        c.kv = f->dtype;
        assert_int_equal(kvc_step_model_create(&m, &c, NULL), KVC_OK);
        double attention = decode_ns(m, 64, 64 * 8192) - decode_ns(m, 64, 64);
        double plain = decode_ns(bf16, 64, 64 * 8192) - decode_ns(bf16, 64, 64);
        double plain_layers = f->plain_layers;
        double cost = (plain_layers + (32 - plain_layers) * f->decode_cost.value) / 32;
        if (f->kernel == KVC_BF16)
            assert_true(fabs(attention / plain - cost) < 0.02 * cost);
        else
            assert_true(attention < 0.8 * plain);
        assert_int_equal(kvc_step_flags(m, NULL, 0, 1, 1000),
                         f->kernel == f->dtype || f->dtype == KVC_FP8_E5M2 ? 0 : KVC_STEP_SHAPE);
        before += attention;
        kvc_step_model_destroy(m);
    }
    assert_true(before > 0);
    c.kv = KVC_BF16;
    c.kv_resident = 0.5;
    assert_int_equal(kvc_step_model_create(&half, &c, NULL), KVC_OK);
    for (uint64_t each = 1024; each <= 65536; each *= 4) {
        double a = decode_ns(half, 16, 16 * 2 * each), b = decode_ns(bf16, 16, 16 * each);
        assert_true(fabs(a / b - 1) < 1e-6);
    }
    kvc_step_model_destroy(half);
    kvc_step_model_destroy(bf16);
}

/* Every pair of profiles either gives sane times or says why not. */
static void all_profiles_build_or_say_why(void **state)
{
    (void)state;
    size_t built = 0, refused = 0;
    for (const char *const *l = kvc_llm_names(); *l; l++) {
        for (const char *const *g = kvc_gpu_names(); *g; g++) {
            struct kvc_step_config c = {
                kvc_llm_find(*l), kvc_gpu_find(*g), "vllm", KVC_FP8, KVC_FP8, 8, 1, .ep = 1};
            struct kvc_step_model *m = NULL;
            struct kvc_error err = {0};
            if (kvc_step_model_create(&m, &c, &err) != KVC_OK) {
                assert_true(strlen(err.text) > 10);
                refused++;
                continue;
            }
            double d = decode_ns(m, 8, 8 * 2000), p = prefill_ns(m, 4096, 0);
            if (!(d > 1e6 && d < 1e9 && p > 1e6 && p < 2e10))
                fail_msg("%s on %s: decode %g ns, prefill %g ns", *l, *g, d, p);
            struct kvc_time_band band;
            kvc_step_band(m, 0, &band);
            assert_true(band.tpot_low < 1 && band.tpot_high > 1 && strlen(band.source) > 10);
            kvc_step_model_destroy(m);
            built++;
        }
    }
    print_message("built %zu, refused %zu\n", built, refused);
    assert_true(built > 200);
}

/* Whole experts or slices of them: the same weights and products on a rank, so the times are near.
 */
static void expert_parallel_is_near_tensor_parallel(void **state)
{
    (void)state;
    struct kvc_step_config c = {kvc_llm_find("Qwen3-235B-A22B"),
                                kvc_gpu_find("h200_sxm"),
                                "vllm",
                                KVC_FP8_BLOCK,
                                KVC_FP8,
                                4,
                                1,
                                .ep = 1};
    struct kvc_step_model *slices, *whole;
    assert_int_equal(kvc_step_model_create(&slices, &c, NULL), KVC_OK);
    c.ep = 4;
    assert_int_equal(kvc_step_model_create(&whole, &c, NULL), KVC_OK);
    double ratio = prefill_ns(whole, 8192, 0) / prefill_ns(slices, 8192, 0);
    print_message("prefill of 8192, ep 4 over tp 4: %.2f\n", ratio);
    assert_true(ratio > 0.5 && ratio < 3); /* skewed routing loads one rank more */
    assert_int_equal(kvc_step_kv_capacity_bytes(whole, 0.9, 8192),
                     kvc_step_kv_capacity_bytes(slices, 0.9, 8192));
    kvc_step_model_destroy(slices);
    kvc_step_model_destroy(whole);
}

static void count_figure(void *user, const char *group, const char *name, const char *value,
                         const char *kind, const char *source)
{
    size_t *n = user;
    assert_true(strlen(group) && strlen(name) && strlen(value) && strlen(kind) && strlen(source));
    ++*n;
}

static void explanation_has_a_source_for_everything(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMBINATIONS; i++) {
        struct kvc_step_model *m = combination(i);
        size_t n = 0;
        kvc_step_explain(m, count_figure, &n);
        assert_true(n >= 15);
        kvc_step_model_destroy(m);
    }
}

static void empty_steps_and_hosts_share(void **state)
{
    (void)state;
    struct kvc_step_model *m = build("Llama-3.1-8B", "h100_sxm", KVC_BF16, KVC_BF16, 1);
    struct kvc_chunk c = {100, 0};
    const struct kvc_engine_profile *e = kvc_engine_find("vllm");
    uint64_t host = 1, with, step = (uint64_t)e->host_per_step_ns.value,
             sequence = (uint64_t)e->host_per_sequence_ns.value,
             prefill = (uint64_t)e->host_per_prefill_step_ns.value;
    assert_int_equal(kvc_step_ns(m, NULL, 0, 0, 0, 0, &host), 0);
    assert_int_equal(host, 0);
    /* h0 + h1 n, and hp with a prefill */
    kvc_step_ns(m, NULL, 0, 10, 1000, 10, &host);
    assert_int_equal(host, step + 10 * sequence);
    with = kvc_step_ns(m, &c, 1, 10, 1000, 11, &host);
    assert_int_equal(host, step + 11 * sequence + prefill);
    assert_true(with > host);
    assert_int_equal(kvc_step_front_ns(m), (uint64_t)e->front_end_ns.value);
    kvc_step_model_destroy(m);
}

static void running_out_of_memory_is_clean(void **state)
{
    (void)state;
    struct kvc_step_config config = {
        kvc_llm_find("Llama-3.1-8B"), kvc_gpu_find("mi300x"), "vllm", KVC_BF16, KVC_BF16, 1, 1,
        .ep = 1};
    struct kvc_error err = {0};
    for (uint64_t n = 1; n < 10000; n++) {
        struct kvc_step_model *m = NULL;
        kvc_alloc_fail_after(n);
        enum kvc_status status = kvc_step_model_create(&m, &config, &err);
        kvc_alloc_fail_after(0);
        if (status == KVC_OK) {
            kvc_step_model_destroy(m);
            return;
        }
        assert_int_equal(status, KVC_ERR_NOMEM);
        assert_null(m);
    }
    fail_msg("never succeeded");
}

/* A short prompt takes what its 8 x 32 launches take, one of a graph less, a long one its own time;
 * decode is in a graph. */
static void eager_prefill_takes_its_launches(void **state)
{
    struct kvc_step_config config = {kvc_llm_find("Llama-3.1-8B"), kvc_gpu_find("b200_sxm"),
                                     "trtllm", KVC_BF16, KVC_BF16, 1, 1, .ep = 1};
    const struct kvc_chunk tiny = {16, 0}, huge = {16384, 0};
    struct kvc_step_model *eager, *graphed;
    uint64_t host;

    (void)state;
    assert_int_equal(kvc_step_model_create(&eager, &config, NULL), KVC_OK);
    config.graphed_prefill = true;
    assert_int_equal(kvc_step_model_create(&graphed, &config, NULL), KVC_OK);
    uint64_t floor = (uint64_t)(8 * 32 * kvc_engine_find("trtllm")->eager_launch_ns.value);
    uint64_t ns = kvc_step_ns(eager, &tiny, 1, 0, 0, 1, &host);
    assert_in_range(ns - host, floor - 1, floor + 1);
    assert_true(kvc_step_ns(graphed, &tiny, 1, 0, 0, 1, &host) < ns);
    assert_int_equal(kvc_step_ns(eager, &huge, 1, 0, 0, 1, &host),
                     kvc_step_ns(graphed, &huge, 1, 0, 0, 1, &host));
    assert_int_equal(kvc_step_ns(eager, NULL, 0, 4, 4096, 4, &host),
                     kvc_step_ns(graphed, NULL, 0, 4, 4096, 4, &host));
    kvc_step_model_destroy(eager);
    kvc_step_model_destroy(graphed);
}

/* vLLM replays a graph of a step up to the captured tokens, decodes of the step among them. */
static void captured_steps_have_no_floor(void **state)
{
    struct kvc_step_config config = {kvc_llm_find("Llama-3.1-8B"), kvc_gpu_find("b200_sxm"),
                                     "vllm", KVC_BF16, KVC_BF16, 1, 1, .ep = 1};
    const struct kvc_engine_profile *e = kvc_engine_find("vllm");
    uint32_t most = (uint32_t)e->captured_tokens.value;
    const struct kvc_chunk chunk = {most - 3, 0};
    struct kvc_step_model *m;
    uint64_t host, ns, floor = (uint64_t)(8 * 32 * e->eager_launch_ns.value);

    (void)state;
    assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
    ns = kvc_step_ns(m, &chunk, 1, 3, 300, 4, &host);
    assert_true(ns - host < floor);
    ns = kvc_step_ns(m, &chunk, 1, 4, 400, 5, &host);
    assert_in_range(ns - host, floor - 1, floor + 1);
    kvc_step_model_destroy(m);
    config.captured_tokens = 2 * most;
    assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
    ns = kvc_step_ns(m, &chunk, 1, 4, 400, 5, &host);
    assert_true(ns - host < floor);
    kvc_step_model_destroy(m);
    config.captured_tokens = 0;
    config.max_seqs = most / 8; /* .. and by itself not above twice the most sequences */
    const struct kvc_chunk small[] = {{most / 4 - 3, 0}, {most / 4 - 2, 0}};
    assert_int_equal(kvc_step_model_create(&m, &config, NULL), KVC_OK);
    ns = kvc_step_ns(m, &small[0], 1, 3, 300, 4, &host);
    assert_true(ns - host < floor);
    ns = kvc_step_ns(m, &small[1], 1, 3, 300, 4, &host);
    assert_in_range(ns - host, floor - 1, floor + 1);
    kvc_step_model_destroy(m);
}

/* The kernels of a step of both take a share longer; of prompts or decodes alone, they don't. */
static void prompts_beside_decodes_take_longer(void **state)
{
    struct kvc_step_config config = {kvc_llm_find("Llama-3.1-8B"), kvc_gpu_find("h100_sxm"),
                                     "vllm", KVC_BF16, KVC_BF16, 1, 1, .ep = 1};
    struct kvc_engine_profile e = *kvc_engine_find("vllm");
    const struct kvc_chunk chunk = {8000, 0};
    double share = e.mixed_step_share.value;
    struct kvc_step_model *m, *sum;
    uint64_t host;

    (void)state;
    assert_int_equal(kvc_step_model_create_with(&m, &config, &e, NULL), KVC_OK);
    e.mixed_step_share.value = 0;
    assert_int_equal(kvc_step_model_create_with(&sum, &config, &e, NULL), KVC_OK);
    double with = (double)kvc_step_ns(m, &chunk, 1, 4, 4000, 5, &host) - (double)host;
    double without = (double)kvc_step_ns(sum, &chunk, 1, 4, 4000, 5, &host) - (double)host;
    assert_true(share > 0 && fabs(with - (1 + share) * without) < 3);
    assert_int_equal(kvc_step_ns(m, &chunk, 1, 0, 0, 1, NULL),
                     kvc_step_ns(sum, &chunk, 1, 0, 0, 1, NULL));
    assert_int_equal(kvc_step_ns(m, NULL, 0, 4, 4000, 4, NULL),
                     kvc_step_ns(sum, NULL, 0, 4, 4000, 4, NULL));
    kvc_step_model_destroy(m);
    kvc_step_model_destroy(sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_beats_the_machine),
        cmocka_unit_test(more_work_is_never_faster),
        cmocka_unit_test(stretch_agrees_with_the_step),
        cmocka_unit_test(stretch_sums_exactly),
        cmocka_unit_test(tensor_parallelism_has_limits),
        cmocka_unit_test(chunks_add_up),
        cmocka_unit_test(halving_kv_bytes_pays_at_long_context),
        cmocka_unit_test(narrow_weights_pay_where_weights_are_read),
        cmocka_unit_test(bad_shapes_are_refused_in_words),
        cmocka_unit_test(formats_of_kv_build),
        cmocka_unit_test(all_profiles_build_or_say_why),
        cmocka_unit_test(expert_parallel_is_near_tensor_parallel),
        cmocka_unit_test(explanation_has_a_source_for_everything),
        cmocka_unit_test(empty_steps_and_hosts_share),
        cmocka_unit_test(running_out_of_memory_is_clean),
        cmocka_unit_test(captured_steps_have_no_floor),
        cmocka_unit_test(prompts_beside_decodes_take_longer),
        cmocka_unit_test(eager_prefill_takes_its_launches),
    };
    return cmocka_run_group_tests_name("models_step", tests, NULL, NULL);
}
