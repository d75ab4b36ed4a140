/* SPDX-License-Identifier: Apache-2.0
 * Kernels that an engine compiles when they are first used: vLLM's experts in Triton
 * (vllm/model_executor/layers/fused_moe/fused_moe.py, moe_align_block_size.py, v0.15). */
#include "models/step_model.h"

#include <string.h>

/* Tokens that a tuned file has a configuration for; a step takes the nearest, of two the lower
 * (benchmarks/kernels/benchmark_moe.py, the sizes it tunes by itself). */
static const uint32_t tuned[] = {1,  2,  4,   8,   16,  24,   32,   48,   64,
                                 96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096};

static size_t nearest(uint64_t tokens)
{
    size_t i = 0;

    while (i + 1 < sizeof tuned / sizeof tuned[0] && tokens > (tuned[i] + tuned[i + 1]) / 2)
        i++;
    return i;
}

/* Triton compiles a kernel for integers that 16 divides apart from those that it does not: of these
 * two change from step to step, the rows of all chosen experts and the rows with each expert's
 * padding, top_k x tokens + experts x (block of rows - 1), blocks being multiples of 16. */
static uint32_t divided(const struct kvc_step_model *m, uint64_t tokens)
{
    uint64_t rows = m->llm.top_k * tokens, padded = rows + 15ull * m->llm.experts;

    return (rows % 16 == 0) | (uint32_t)(padded % 16 == 0) << 1;
}

static bool first_use(const struct kvc_step_model *m, uint64_t tokens, struct kvc_compiled *seen)
{
    uint32_t *sizes = &seen->sizes[divided(m, tokens)], bit = UINT32_C(1) << nearest(tokens);
    bool first = !(*sizes & bit);

    *sizes |= bit;
    return first;
}

bool kvc_step_compiles(const struct kvc_step_model *m)
{
    return m->engine.compile_ns.value > 0 && m->llm.experts && m->weights == KVC_BF16;
}

void kvc_step_compiled(const struct kvc_step_model *m, bool cold, uint32_t max_batched_tokens,
                       struct kvc_compiled *out)
{
    memset(out, 0xff, sizeof *out);
    if (!cold || !kvc_step_compiles(m))
        return;
    memset(out, 0, sizeof *out);
    for (uint64_t tokens = 1; tokens <= m->captured_tokens; tokens++)
        if (kvc_step_graph_tokens(tokens) == tokens)
            first_use(m, tokens, out);
    first_use(m, max_batched_tokens, out);
}

uint64_t kvc_step_compile_ns(const struct kvc_step_model *m, uint64_t tokens,
                             struct kvc_compiled *seen)
{
    if (tokens <= m->captured_tokens || !first_use(m, tokens, seen))
        return 0;
    return (uint64_t)(m->engine.compile_ns.value + 0.5);
}
