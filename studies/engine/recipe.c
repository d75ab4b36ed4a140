/* SPDX-License-Identifier: Apache-2.0
 * InferenceX (github.com/SemiAnalysisAI/InferenceX): launch scripts under benchmarks/ at commits
 * 8eec0d4 (2026; experts and products: 0a919c5, 16ffb65, 0c82808), 2e46dba, a267b4b, bb4c7f9 (2025)
 * and the client utils/bench_serving; runs are ten requests a client, lengths in [0.8, 1]
 * (RANDOM_RANGE_RATIO). NVIDIA's own runs
 * (github.com/ai-dynamo/aiconfigurator, eval/benchmarks/genai_perf_runner.py @5e16187 and
 * generator/rule_plugin/benchmark/ @581e459): ten requests a client, lengths all alike. */
#include "studies/engine/recipe.h"

#include <string.h>

enum budget { FIXED, TWICE_INPUT, MODEL_LENGTH, BATCH_AND_INPUT };
enum { ANY = 0, CLIENTS = UINT32_MAX };

/* NULL, "" and 0 fit anything; a prefix of a system's name fits all of its kind. */
struct recipe {
    const char *model, *system, *backend, *precision;
    uint32_t tp, until; /* until: measured before that day, yyyymmdd */
    enum budget budget;
    uint32_t tokens, slots;
    double kv_share;
    const char *kv;
    uint32_t receive, receive_many; /* SGLang's scheduler-recv-interval, from 16 clients on */
};

static const struct recipe recipes[] = {
    {"Llama-3.1-70B", "h200", "trtllm", "", 0, 0, MODEL_LENGTH, 0, 0, 0.9, "fp8", 0, 0},
    {"Llama-3.1-70B", "b200", "trtllm", "", 0, 0, FIXED, 16384, 0, 0.9, "fp8", 0, 0},
    {"Llama-3.1-70B", "b200", "vllm", "", 0, 0, FIXED, 8192, 512, 0.9, "fp8", 0, 0},
    {"gpt-oss-120b", "h200", "trtllm", "", 0, 0, FIXED, 20000, CLIENTS, 0.85, "bf16", 0, 0},
    {"gpt-oss-120b", "b200", "trtllm", "", 0, 0, FIXED, 20000, 512, 0.85, "fp8", 0, 0},
    {"gpt-oss-120b", "h100", "vllm", "", 0, 0, FIXED, 8192, CLIENTS, 0.9, "bf16", 0, 0},
    {"gpt-oss-120b", "b200", "vllm", "", 0, 0, FIXED, 8192, 512, 0.9, "fp8", 0, 0},
    {"DeepSeek", "h200", "trtllm", "", 0, 20251201, BATCH_AND_INPUT, 0, 0, 0.75, "fp8", 0, 0},
    {"DeepSeek", "h200", "trtllm", "", 0, 0, BATCH_AND_INPUT, 8192, 0, 0.75, "fp8", 0, 0},
    {"DeepSeek", "", "trtllm", "", 0, 20251201, BATCH_AND_INPUT, 0, 0, 0.8, "fp8", 0, 0},
    {"DeepSeek", "", "trtllm", "", 0, 0, BATCH_AND_INPUT, 8192, 0, 0.8, "fp8", 0, 0},
    {"DeepSeek", "h200", "sglang", "", 0, 0, FIXED, 32768, 256, 0.82, "bf16", 0, 0},
    {"DeepSeek", "", "sglang", "fp8", 4, 0, FIXED, 8192, 32, 0.95, "fp8", 10, 10},
    {"DeepSeek", "", "sglang", "fp8", 0, 0, FIXED, 32768, 0, 0.82, "fp8", 10, 30},
    {"DeepSeek", "", "sglang", "fp4", 0, 0, FIXED, 16384, 256, 0.85, "fp8", 10, 30},
    {"MiniMax-M2.5", "h100", "vllm", "", 0, 0, FIXED, 8192, 256, 0.9, "bf16", 0, 0},
    {"MiniMax-M2.5", "", "vllm", "fp8", 0, 20260328, FIXED, 8192, 0, 0.95, "bf16", 0, 0},
    {"MiniMax-M2.5", "", "vllm", "", 0, 0, TWICE_INPUT, 0, 0, 0.9, "fp8", 0, 0},
    {"Qwen3.5-397B-A17B", "h200", "sglang", "", 0, 0, FIXED, 16384, 128, 0.8, "fp8", 0, 0},
    {"Qwen3.5-397B-A17B", "b200", "sglang", "bf16", 0, 0, FIXED, 32768, 128, 0.82, "bf16", 10, 30},
    {"Qwen3.5-397B-A17B", "b200", "sglang", "", 0, 0, FIXED, 32768, 128, 0.82, "fp8", 10, 30},
    {"Qwen3.5-397B-A17B", "b300", "sglang", "bf16", 0, 0, FIXED, 16384, CLIENTS, 0.8, "bf16", 10,
     10},
    {"Qwen3.5-397B-A17B", "b300", "sglang", "", 0, 0, FIXED, 16384, CLIENTS, 0.8, "fp8", 10, 10},
    {"GLM-5", "h200", "sglang", "", 0, 0, FIXED, 8192, 0, 0.85, "bf16", 0, 0},
    {"GLM-5", "", "sglang", "fp4", 0, 0, FIXED, 32768, 0, 0.9, "fp8", 10, 10},
    {"GLM-5", "", "sglang", "", 0, 0, FIXED, 32768, CLIENTS, 0.85, "fp8", 0, 0},
    {"Kimi-K2.5", "", "vllm", "int4", 0, 0, FIXED, 8192, CLIENTS, 0.95, "bf16", 0, 0},
    {"Kimi-K2.5", "", "vllm", "", 0, 0, TWICE_INPUT, 0, CLIENTS, 0.9, "fp8", 0, 0},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static const struct recipe *find(const struct kvc_engine_row *r)
{
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        const struct recipe *x = &recipes[i];
        if (begins(r->model, x->model) && begins(r->system, x->system) &&
            is(r->backend, x->backend) && (!*x->precision || is(r->precision, x->precision)) &&
            (!x->tp || r->tp == x->tp) && (!x->until || (r->measured && r->measured < x->until)))
            return x;
    }
    return NULL;
}

static uint32_t up_to(uint32_t n, uint32_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static uint32_t budget(const struct recipe *x, const struct kvc_engine_row *r)
{
    uint32_t tokens = x->tokens, batch = up_to(r->clients + r->isl + 64, 64);

    switch (x->budget) {
    case TWICE_INPUT:
        return 2 * r->isl;
    case MODEL_LENGTH:
        return r->isl + r->osl + 200;
    case BATCH_AND_INPUT:
        return batch > tokens ? batch : tokens;
    default:
        return tokens;
    }
}

/* batch_wait_timeout_iters and batch_wait_max_tokens_ratio, of 1024 tokens in and out only. */
static void delayed_batching(const struct kvc_engine_row *r, struct kvc_batching *b)
{
    double ratio = 0;

    if (r->dp > 1 && is(r->backend, "trtllm")) {
        /* attention_dp_config.enable_balance: until every rank has a prompt, or timeout_iters. The
         * others' ends are not seen from one rank, so it waits for the time-out. */
        b->wait_steps = begins(r->model, "DeepSeek") ? 60 : 50;
        b->wait_tokens = UINT32_MAX;
        return;
    }
    if (r->isl != 1024 || r->osl != 1024 || !is(r->backend, "trtllm"))
        return;
    if (is(r->model, "Llama-3.1-70B") && r->tp < 8) {
        b->wait_steps = 20;
        ratio = 0.9;
    } else if (begins(r->model, "DeepSeek") && begins(r->system, "b200") &&
               is(r->precision, "fp8") && r->clients >= 64 && r->measured >= 20251201) {
        b->wait_steps = 40;
        ratio = 0.8;
    }
    b->wait_tokens = (uint32_t)(ratio * b->max_batched_tokens);
}

/* DeepSeek in fp8 with TensorRT-LLM on B200 (dsr1_fp8_b200_trt.sh). */
static bool scripts_of_2026(const struct kvc_engine_row *r)
{
    return begins(r->model, "DeepSeek") && begins(r->system, "b200") && is(r->backend, "trtllm") &&
           is(r->precision, "fp8") && r->measured >= 20260101;
}

/* moe_config.backend: DeepGEMM in 2025 and from 256 clients on, else TensorRT-LLM's own kernels,
 * which only other engines' tables have. */
static const char *experts_kernel(const struct kvc_engine_row *r)
{
    return scripts_of_2026(r) && r->clients < 256 ? "flashinfer_trtllm" : NULL;
}

/* enable_piecewise_cuda_graph, with some clients or more by lengths */
static bool graphed_prefill(const struct kvc_engine_row *r)
{
    uint32_t from = r->osl > 1024 ? 128 : 64, below = r->isl > 1024 ? UINT32_MAX : 256;

    return scripts_of_2026(r) && r->clients >= from && r->clients < below;
}

static void inferencex(const struct kvc_engine_row *r, struct kvc_engine_recipe *out)
{
    const struct recipe *x = find(r);
    struct kvc_batching *b = &out->batching;

    out->shortest = 0.8;
    if (!x)
        return;
    out->published = true;
    out->kv_share = x->kv_share;
    out->kv = x->kv;
    b->max_batched_tokens = budget(x, r);
    b->slots = x->slots == CLIENTS ? r->clients : x->slots;
    b->receive_steps = r->clients >= 16 ? x->receive_many : x->receive;
    /* VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8=1 */
    out->narrow_experts = is(r->backend, "vllm") && is(r->model, "gpt-oss-120b") &&
                          begins(r->system, "b200");
    /* minimaxm2.5_fp8_b200.sh @07e171a: --enable-expert-parallel from an EP_SIZE of 1 on */
    out->experts_dealt = begins(r->model, "MiniMax-M2.5") && is(r->backend, "vllm") &&
                         begins(r->system, "b200") && is(r->precision, "fp8") && r->measured &&
                         r->measured < 20260328;
    if (begins(r->model, "GLM-5") && begins(r->system, "h200"))
        out->requests = 5; /* num_prompts=$((CONC * 5)) */
    out->experts_kernel = experts_kernel(r);
    out->graphed_prefill = graphed_prefill(r);
    if (is(r->backend, "vllm") && is(r->model, "gpt-oss-120b"))
        out->captured_tokens = 2048; /* max-cudagraph-capture-size */
    /* SGLANG_ENABLE_FLASHINFER_GEMM=true: TensorRT-LLM's products, not DeepGEMM's */
    out->foreign_products = begins(r->model, "DeepSeek") && is(r->backend, "sglang") &&
                            begins(r->system, "b") && is(r->precision, "fp8");
    delayed_batching(r, b);
}

/* Asynchronous scheduling is vLLM's default from 0.14 on (vllm-project/vllm pull request 27614);
 * InferenceX's scripts ask for it before (async-scheduling: true). NVIDIA's own runs are of
 * 0.12. */
static bool plans_ahead(const struct kvc_engine_row *r)
{
    return is(r->backend, "vllm") && (r->harvested || r->alike);
}

/* aiconfigurator's generator for benchmarks: the batch named, and room for one prompt more. With
 * Llama-3.1-8B one client always waits, a whole generation / clients each (docs/accuracy.md). */
static void aiconfigurator(const struct kvc_engine_row *r, struct kvc_engine_recipe *out)
{
    struct kvc_batching *b = &out->batching;
    bool trtllm = is(r->backend, "trtllm"), sglang = is(r->backend, "sglang");

    out->published = trtllm || sglang;
    b->slots = r->clients;
    if (trtllm)
        b->max_batched_tokens = up_to(r->clients + r->isl + 1500, 32);
    if (sglang) {
        b->max_batched_tokens = r->isl + 1500;
        b->prefill_first = false; /* enable_mixed_chunk */
    }
    if (trtllm && begins(r->model, "Llama-3.1-8B") && r->clients > 1)
        b->slots--;
}

void kvc_engine_recipe_of(const struct kvc_engine_row *r, struct kvc_engine_recipe *out)
{
    memset(out, 0, sizeof *out);
    out->requests = 10;
    out->shortest = r->alike ? 0.9 : 1;
    out->kv_share = 0.9;
    out->batching.max_batched_tokens = 8192;
    out->batching.prefill_first = is(r->backend, "sglang");
    out->batching.reserves_output = is(r->backend, "trtllm"); /* GUARANTEED_NO_EVICT */
    out->batching.plan_ahead = plans_ahead(r);
    if (r->alike)
        return;
    out->batching.whole_prompts = is(r->backend, "trtllm");
    /* The first PyTorch releases of TensorRT-LLM launch fp8 quantisation by itself. */
    out->quantise_apart = is(r->backend, "trtllm") && begins(r->version, "1.0.0");
    if (r->harvested)
        inferencex(r, out);
    else
        aiconfigurator(r, out);
}
