/* SPDX-License-Identifier: Apache-2.0
 * Bytes: KV per token, windows, weights. */
#include <string.h>

#include "base/units.h"
#include "base/whole.h"
#include "models/models.h"

/* A rank never holds less than one head, so beyond kv_heads ranks heads are stored again. */
static uint64_t heads_stored(uint32_t kv_heads, uint32_t tp)
{
    uint64_t per_rank = kvc_div_up(kv_heads, tp);

    return (per_rank ? per_rank : 1) * tp;
}

uint64_t kvc_llm_kv_bytes_per_token(const struct kvc_llm *llm, enum kvc_dtype kv, uint32_t tp)
{
    const struct kvc_kv_format *f = kvc_kv_format(kv);
    double bytes = kvc_kv_element_bytes(kv, llm->head_dim);

    if (tp == 0)
        tp = 1;
    if (llm->compressed_kv) /* the latent is on every rank */
        return (uint64_t)((double)(llm->kv_bytes_per_token_bf16 / 2 * tp) * bytes + 0.5);
    uint64_t growing = llm->layers - llm->window_layers - llm->linear_layers;
    uint64_t per_layer =
        llm->kv_lora_rank
            ? (uint64_t)(llm->kv_lora_rank + llm->qk_rope_dim + llm->indexer_dim) * tp
            : 2 * heads_stored(llm->kv_heads, tp) * llm->head_dim;
    uint64_t plain = f ? f->plain_layers : 0;

    if (plain > growing)
        plain = growing;
    double layers_bytes = (double)(growing - plain) * bytes + 2.0 * (double)plain;
    return (uint64_t)((double)per_layer * layers_bytes + 0.5);
}

uint64_t kvc_llm_window_kv_bytes(const struct kvc_llm *llm, enum kvc_dtype kv, uint32_t tp,
                                 uint64_t tokens)
{
    uint64_t kept = tokens < llm->window_tokens ? tokens : llm->window_tokens;
    uint64_t elements;

    if (tp == 0)
        tp = 1;
    elements = 2 * (uint64_t)llm->window_layers * heads_stored(llm->window_kv_heads, tp) *
               llm->window_head_dim * kept;
    if (!elements) /* no windows: no head size to spread scales over */
        return 0;
    return (uint64_t)((double)elements * kvc_kv_element_bytes(kv, llm->window_head_dim) + 0.5);
}

enum kvc_dtype kvc_llm_plain_dtype(const struct kvc_llm *llm, enum kvc_dtype weights)
{
    bool experts_only = weights == KVC_MXFP4 ||
                        ((weights == KVC_INT4 || weights == KVC_NVFP4) && llm->experts);

    return experts_only ? KVC_BF16 : weights;
}

double kvc_llm_expert_params(const struct kvc_llm *llm)
{
    return (llm->ungated ? 2.0 : 3.0) * llm->experts * llm->hidden * llm->expert_intermediate;
}

/* Embeddings and head stay bf16. */
uint64_t kvc_llm_weight_bytes(const struct kvc_llm *llm, enum kvc_dtype weights)
{
    double params = llm->params_total_b * 1e9;
    double small = kvc_dtype_bytes(weights);
    double kept = 2.0 * llm->vocab * llm->hidden;

    if (weights == KVC_INT4 && llm->int4_group)
        small = 0.5 + 2.0 / llm->int4_group;
    if (kvc_llm_plain_dtype(llm, weights) != weights) {
        kept = params - (llm->layers - llm->dense_layers) * kvc_llm_expert_params(llm);
    }
    if (kept > params)
        kept = params;
    return (uint64_t)((params - kept) * small + kept * 2.0 + 0.5);
}
