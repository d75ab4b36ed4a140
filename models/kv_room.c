/* SPDX-License-Identifier: Apache-2.0
 * What a running sequence takes beside its tokens, as engines share out their room for KV. */
#include <math.h>
#include <string.h>

#include "models/step_model.h"

/* vLLM keeps states as pages of the pool that tokens come from: one, or with prefix caching two,
 * that of the last boundary and the one under way (MambaSpec.max_memory_usage_bytes, cache mode
 * align). A page of attention is made as long as one of state, in multiples of 16 tokens, and
 * prefixes resume at its boundaries: 784 tokens with Qwen3.5-27B and bf16 KV. */
#define VLLM                                                                                       \
    "vLLM's pool: each running sequence's windows, and two states of its linear layers with "     \
    "prefix caching, else one"

/* SGLang gives states 0.9 of what it gives tokens (mamba_full_memory_ratio), and lets a third as
 * many sequences run as there are states (MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO); windowed
 * layers have room for 0.8 of the tokens that the others have (swa_full_tokens_ratio). */
#define SGLANG                                                                                     \
    "SGLang's defaults: mamba_full_memory_ratio 0.9, three states a running sequence, "            \
    "swa_full_tokens_ratio 0.8"
#define STATES_TO_TOKENS 0.9
#define STATES_A_SEQUENCE 3
#define WINDOWS_TO_TOKENS 0.8

static uint32_t resume_tokens(const struct kvc_step_model *m, uint64_t state)
{
    const struct kvc_llm *l = &m->llm;
    uint32_t layers = l->layers - l->window_layers - l->linear_layers;
    double a_token = (double)kvc_llm_kv_bytes_per_token(l, m->kv, m->tp) / layers;

    return 16 * (uint32_t)ceil((double)state / l->linear_layers / a_token / 16);
}

/* Keys and values of a layer lie apart; of MLA there is one latent, and an indexer's keys. */
static uint32_t tensors(const struct kvc_llm *l, bool unified)
{
    uint32_t layers = l->layers - l->linear_layers - (unified ? 0 : l->window_layers);

    if (l->kv_lora_rank || l->compressed_kv)
        return layers * (l->indexer_dim ? 2 : 1);
    return 2 * layers;
}

void kvc_step_kv_room(const struct kvc_step_model *m, bool caching, bool unified,
                      struct kvc_kv_room *out)
{
    const struct kvc_llm *l = &m->llm;
    bool sglang = strcmp(m->engine.backend, "sglang") == 0;
    bool vllm = strcmp(m->engine.backend, "vllm") == 0;
    uint64_t state = l->linear_state_bytes + l->linear_conv_bytes;
    uint64_t wide = kvc_llm_window_kv_bytes(l, m->kv, m->tp, 1);

    *out = (struct kvc_kv_room){.token_bytes = kvc_llm_kv_bytes_per_token(l, m->kv, m->tp),
                                .token_tensors = tensors(l, unified),
                                .token_share = 1};
    if (unified)
        out->token_bytes += wide;
    else if (sglang)
        out->token_bytes += (uint64_t)(WINDOWS_TO_TOKENS * (double)wide + 0.5);
    else
        out->sequence_bytes = kvc_llm_window_kv_bytes(l, m->kv, m->tp, l->window_tokens);
    if (state && sglang) {
        out->token_share = 1 / (1 + STATES_TO_TOKENS);
        out->apart_bytes = STATES_A_SEQUENCE * state;
    } else {
        out->sequence_bytes += vllm && caching ? 2 * state : state;
    }
    if (state && vllm && caching && l->layers > l->window_layers + l->linear_layers)
        out->resume_tokens = resume_tokens(m, state);
    out->source = sglang ? SGLANG
                  : vllm ? VLLM
                         : "each running sequence's windows and one state, assumed";
}
