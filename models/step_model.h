/* SPDX-License-Identifier: Apache-2.0
 * Inside of a step model: small tables and a few coefficients, filled once by step_build.c and only
 * read by step.c. All times in nanoseconds. */
#ifndef KVC_MODELS_STEP_MODEL_H
#define KVC_MODELS_STEP_MODEL_H

#include "models/kernels.h"

/* Values at 0..16 and at the multiples of 16 above; engines run padded sizes, so linear between. */
struct kvc_token_table {
    double *ns;
    uint32_t max; /* largest tabled count, a multiple of 16 */
    double slope; /* per token beyond it */
};

#define KVC_MAX_STEP_TOKENS 32768
#define KVC_MAX_SAMPLED 4096

struct kvc_step_model {
    struct kvc_llm llm;
    struct kvc_gpu gpu;
    struct kvc_engine_profile engine;
    enum kvc_dtype weights, kv;
    uint32_t tp, ep;

    struct kvc_token_table
        layers; /* matrix products, elementwise, experts, all-reduce of all layers */
    struct kvc_token_table head; /* lm_head and the gather of its logits, over sampled sequences */

    /* decode attention: fixed + per_sequence n + per_token c + per_capped min(c, n cap) */
    double decode_fixed, decode_per_sequence, decode_per_token, decode_per_capped;
    uint64_t cap_tokens;
    /* prefill attention: fixed + sum over chunks of prefill(q) (p + q/2 + p0)
     *                  + capped (q + q0)(min(p + q/2, cap) + p0) */
    struct kvc_token_table prefill; /* per key, all layers, over the new tokens */
    double prefill_fixed, prefill_capped, q0, p0;

    double host_step, host_sequence, host_prefill;
    double weight_bytes_per_rank;
    double quantise_ns; /* taken out of each product of the weights' dtype */

    /* what the parts rest on, for bands and kvc_step_explain */
    bool measured, attention_exact, moe_measured, allreduce_measured;
    struct kvc_kernels *kernels;
};

double kvc_token_table_at(const struct kvc_token_table *t, uint32_t tokens);

#endif
