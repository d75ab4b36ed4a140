/* SPDX-License-Identifier: Apache-2.0
 * How KV can be stored: bits, scales, whose kernels read it, and its published quality. */
#include <math.h>

#include "base/units.h"
#include "models/models.h"

#define BLOG_FP8                                                                                   \
    "vLLM blog, The State of FP8 KV-Cache and Attention Quantization in vLLM (2026-04-22)"
#define BLOG_TQ "vLLM blog, A First Comprehensive Study of TurboQuant (2026-05-11)"
#define KGA "KGA blog, KV Cache Management 2026 (2026-04-22)"
#define THINKING "Qwen3-30B-A3B-Thinking-2507, MiniMax-M2.7"

static const struct kvc_kv_quality e4m3[] = {
    {"Qwen3.5-27B", "AIME25, share of bf16's accuracy", 0.99, BLOG_FP8},
    {"Llama-3.3-70B", "MRCR at 128K, share of bf16's accuracy", 0.97, BLOG_FP8},
    {NULL, NULL, 0, NULL},
};
static const struct kvc_kv_quality e5m2[] = {
    {"Llama-3.3-70B", "MT-Bench, HumanEval, JMMLU and RAG sets, share of fp16's score", 0.997, KGA},
    {"Qwen3-72B", "MT-Bench, HumanEval, JMMLU and RAG sets, share of fp16's score", 0.994, KGA},
    {NULL, NULL, 0, NULL},
};
static const struct kvc_kv_quality k8v4[] = {
    {THINKING, "reasoning, share of bf16's accuracy, at least", 0.98, BLOG_TQ},
    {NULL, NULL, 0, NULL},
};
static const struct kvc_kv_quality tq4[] = {
    {THINKING, "reasoning, share of bf16's accuracy", 0.96, BLOG_TQ},
    {NULL, NULL, 0, NULL},
};
static const struct kvc_kv_quality tq3[] = {
    {THINKING, "AIME25 and LiveCodeBench, points lost, about", -20, BLOG_TQ},
    {NULL, NULL, 0, NULL},
};

#define AS_MEASURED {1, "measured", "tables of its own (docs/models.md)"}
#define AS_FP8 {1, "assumed", "as long as fp8's: as many bytes or fewer, converted on the way"}
/* Fitted where 4 bits serve Qwen3-30B-A3B (2 x H100) at 0.79 of bf16's throughput; predicts 0.86 of
 * Llama-3.3-70B (4 x H100), stated 0.75. */
#define TQ_COST                                                                                    \
    {2.75, "fitted",                                                                               \
     "Qwen3-30B-A3B at 0.79 of bf16's throughput; Llama-3.3-70B comes out 0.86, stated 0.75 "      \
     "(" BLOG_TQ ")"}
#define AS_TQ {2.75, "assumed", "as TurboQuant's; no figure published for a serving engine"}

static const struct kvc_kv_format formats[] = {
    {"bf16", KVC_BF16, KVC_BF16, 16, 16, 0, 0, 0, 0, AS_MEASURED, NULL},
    {"fp8_e4m3", KVC_FP8, KVC_FP8, 8, 8, 0, 0, 0, 0, AS_MEASURED, e4m3},
    {"fp8_e5m2", KVC_FP8_E5M2, KVC_FP8, 8, 8, 0, 0, 0, 0,
     {1, "measured", "fp8_e4m3's tables: the same bytes"}, e5m2},
    {"int8", KVC_INT8, KVC_FP8, 8, 8, 0, 0, 0, 0, AS_FP8, NULL},
    {"nvfp4", KVC_NVFP4, KVC_FP8, 4, 4, 1, 1, 16, 0, AS_FP8, NULL},
    {"turboquant_k8v4", KVC_TQ_K8V4, KVC_BF16, 8, 4, 0, 2, 0, 4, TQ_COST, k8v4},
    {"turboquant_4bit_nc", KVC_TQ_4, KVC_BF16, 4, 4, 2, 2, 0, 4, TQ_COST, tq4},
    {"turboquant_k3v4_nc", KVC_TQ_K3V4, KVC_BF16, 3, 4, 2, 2, 0, 4, TQ_COST, NULL},
    {"turboquant_3bit_nc", KVC_TQ_3, KVC_BF16, 3, 3, 2, 2, 0, 4, TQ_COST, tq3},
    {"kivi_4", KVC_KIVI_4, KVC_BF16, 4, 4, 4, 4, 32, 0, AS_TQ, NULL},
    {"kivi_2", KVC_KIVI_2, KVC_BF16, 2, 2, 4, 4, 32, 0, AS_TQ, NULL},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

const struct kvc_kv_format *kvc_kv_format(enum kvc_dtype kv)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].dtype == kv)
            return &formats[i];
    return NULL;
}

const struct kvc_kv_format *kvc_kv_format_at(size_t i)
{
    return i < FORMATS ? &formats[i] : NULL;
}

/* Of one element, with its part of the scale; dim: elements of a head's vector. */
static double part_bytes(double bits, double scale_bytes, uint32_t group, uint32_t dim)
{
    return bits / 8 + (scale_bytes > 0 ? scale_bytes / (group ? group : dim) : 0);
}

double kvc_kv_element_bytes(enum kvc_dtype kv, uint32_t dim)
{
    const struct kvc_kv_format *f = kvc_kv_format(kv);

    if (!f)
        return kvc_dtype_bytes(kv);
    return (part_bytes(f->key_bits, f->key_scale_bytes, f->group, dim) +
            part_bytes(f->value_bits, f->value_scale_bytes, f->group, dim)) / 2;
}
