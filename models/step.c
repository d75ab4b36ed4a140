/* SPDX-License-Identifier: Apache-2.0
 * The time of one engine step: table look-ups and a few multiplications, no libm. */
#include "models/step_model.h"

#include "base/alloc.h"

#define Q16 65536.0
#define Q48 281474976710656.0

double kvc_token_table_at(const struct kvc_token_table *t, uint32_t tokens)
{
    if (tokens <= 16)
        return t->ns[tokens];
    if (tokens >= t->max)
        return t->ns[16 + (t->max - 16) / 16] + t->slope * (double)(tokens - t->max);
    uint32_t i = 16 + ((tokens - 16) >> 4), f = (tokens - 16) & 15;
    return t->ns[i] + (t->ns[i + 1] - t->ns[i]) * ((double)f / 16);
}

static double decode_attention(const struct kvc_step_model *m, uint32_t n, uint64_t context)
{
    uint64_t cap = n * m->cap_tokens;
    uint64_t capped = context < cap ? context : cap;

    return m->decode_fixed + m->decode_per_sequence * n + m->decode_per_token * (double)context +
           m->decode_per_capped * (double)capped;
}

static double prefill_attention(const struct kvc_step_model *m, const struct kvc_chunk *c)
{
    double keys = c->past + 0.5 * c->tokens;
    double capped = keys < (double)m->cap_tokens ? keys : (double)m->cap_tokens;

    return kvc_token_table_at(&m->prefill, c->tokens) * (keys + m->p0) +
           m->prefill_capped * (c->tokens + m->q0) * (capped + m->p0);
}

uint64_t kvc_step_ns(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                     size_t n_chunks, uint32_t n_decode, uint64_t decode_context,
                     uint32_t n_sampled, uint64_t *host_ns)
{
    uint32_t tokens = n_decode;
    double ns, host;

    if (host_ns)
        *host_ns = 0;
    if (n_chunks == 0 && n_decode == 0)
        return 0;
    host = model->host_step + model->host_sequence * ((double)n_decode + (double)n_chunks);
    ns = 0;
    if (n_chunks) {
        host += model->host_prefill;
        ns += model->prefill_fixed;
        for (size_t i = 0; i < n_chunks; i++) {
            tokens += chunks[i].tokens;
            ns += prefill_attention(model, &chunks[i]);
        }
    }
    if (n_decode)
        ns += decode_attention(model, n_decode, decode_context);
    ns += kvc_token_table_at(&model->layers, tokens) + kvc_token_table_at(&model->head, n_sampled);
    if (host_ns)
        *host_ns = (uint64_t)(host + 0.5);
    return (uint64_t)(ns + host + 0.5);
}

void kvc_step_decode(const struct kvc_step_model *model, uint32_t n_decode, uint64_t context,
                     struct kvc_decode_cost *out)
{
    uint64_t cap = n_decode * model->cap_tokens;
    double host = model->host_step + model->host_sequence * (double)n_decode;
    double c0 = kvc_token_table_at(&model->layers, n_decode) +
                kvc_token_table_at(&model->head, n_decode) + model->decode_fixed +
                model->decode_per_sequence * (double)n_decode + host;
    double c1 = model->decode_per_token;

    out->context_end = UINT64_MAX;
    if (model->decode_per_capped > 0 && context < cap) {
        c1 += model->decode_per_capped;
        out->context_end = cap;
    } else {
        c0 += model->decode_per_capped * (double)cap;
    }
    out->c0_q16 = (int64_t)(c0 * Q16 + 0.5);
    out->c1_q48 = (int64_t)(c1 * Q48 + 0.5);
    out->host_ns = (uint64_t)(host + 0.5);
}

uint64_t kvc_step_front_ns(const struct kvc_step_model *model)
{
    return (uint64_t)(model->engine.front_end_ns.value + 0.5);
}

/* Activations of the largest step, as the engine's profiling run would meet them: the residual
 * stream and its copies, the widest feed-forward tensors, queries, keys and values in bf16, and the
 * logits of a full batch with two float copies for sampling. */
static double activation_bytes(const struct kvc_step_model *m, uint32_t max_batched_tokens)
{
    const struct kvc_llm *l = &m->llm;
    double feed = 3.0 * l->intermediate / m->tp;
    double experts = 3.0 * l->top_k * l->expert_intermediate / m->tp;
    double attention = (double)(l->heads + 2 * l->kv_heads) * l->head_dim / m->tp;
    double batch = m->gpu.memory_bytes.value >= 70e9 ? 1024 : 256; /* vLLM's default max_num_seqs */

    if (feed < experts)
        feed = experts;
    return 2.0 * max_batched_tokens * (6.0 * l->hidden + feed + attention) +
           12.0 * batch * l->vocab;
}

uint64_t kvc_step_kv_capacity_bytes(const struct kvc_step_model *model,
                                    double gpu_memory_utilization, uint32_t max_batched_tokens)
{
    double free_bytes = model->gpu.memory_bytes.value * gpu_memory_utilization -
                        model->weight_bytes_per_rank - activation_bytes(model, max_batched_tokens) -
                        model->engine.memory_overhead_bytes.value;

    return free_bytes > 0 ? (uint64_t)free_bytes * model->tp : 0;
}

void kvc_step_band(const struct kvc_step_model *model, struct kvc_time_band *out)
{
    bool known = model->measured && model->attention_exact && model->allreduce_measured &&
                 model->weights != KVC_FP8_BLOCK && /* its table is another backend's */
                 !model->llm.kv_lora_rank && !model->llm.linear_layers;

    if (model->llm.experts)
        *out = known && model->moe_measured ? model->engine.moe : model->engine.assumed;
    else
        *out = known ? model->engine.dense : model->engine.assumed;
}

void kvc_step_model_destroy(struct kvc_step_model *model)
{
    if (!model)
        return;
    kvc_free(model->layers.ns);
    kvc_free(model->head.ns);
    kvc_free(model->prefill.ns);
    kvc_kernels_destroy(model->kernels);
    kvc_free(model);
}
