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

/* Decode attention of all layers over sequences and total context: knots at 1, 2, 3, 4, 6, 8, 12 ..
 * sequences and at 0, 64, 96, 128, 192 .. tokens, linear between and beyond; never falls. */
#define KVC_GRID_N 24
#define KVC_GRID_C 50
struct kvc_decode_grid {
    double ns[KVC_GRID_N][KVC_GRID_C];
};
uint64_t kvc_grid_sequences(size_t knot);
uint64_t kvc_grid_context(size_t knot);

#define KVC_MAX_STEP_TOKENS 32768
#define KVC_MAX_SAMPLED 4096

struct kvc_step_model {
    struct kvc_llm llm;
    struct kvc_gpu gpu;
    struct kvc_engine_profile engine;
    enum kvc_dtype weights, kv;
    enum kvc_dtype plain; /* of all weights but the experts' */
    bool foreign_products; /* as in struct kvc_step_config */
    uint32_t tp, ep;
    uint32_t dp, ranks; /* attention's replicas; GPUs that the experts lie on */
    double kv_resident; /* share of the context that is left to attend */

    struct kvc_token_table
        layers; /* matrix products, elementwise, experts, all-reduce of all layers */
    struct kvc_token_table shared; /* dp > 1: experts and exchange, by the tokens of all ranks */
    struct kvc_token_table head; /* lm_head and the gather of its logits, over sampled sequences */
    /* pipeline stages: the slowest's and the last one's share of the layers; a batch of so many
     * tokens handed on, by the slowest of the hops and by all of them (step_pipeline.c) */
    uint32_t stages, batch_tokens, gpus_per_node;
    double most_share, last_share;
    struct kvc_token_table hop, hops;

    struct kvc_decode_grid decode;
    double decode_per_sequence; /* state of linear layers */
    /* prefill attention: fixed once a step + per chunk of q tokens after p, all layers:
     * base(q) + past(q) p + capped(q) min(p, cap). alone: one sequence by itself; eight: one of
     * eight alike, which share the machine better. The pasts of a step take together no less than
     * waves(q) p of any chunk, whose few tiles leave most of the machine idle. */
    struct kvc_token_table alone, eight, past, waves, capped;
    double prefill_fixed;
    uint64_t cap_tokens;

    /* no step with prefill of more tokens is faster: its kernels are launched one by one */
    double eager_ns;
    uint32_t captured_tokens;
    double mixed_factor; /* of the kernels of a step that holds prompts and decodes */
    double host_step, host_sequence, host_prefill;
    double weight_bytes_per_rank; /* of all stages together */
    double quantise_ns; /* taken out of each product of the weights' dtype */

    /* what the parts rest on, for bands and kvc_step_explain */
    bool linear_measured;
    bool products_exact; /* every product's own dtype, engine and GPU, and a shape near measured ones */
    bool borrowed;       /* some kernel's time is another GPU's, as shares of this one's peaks */
    struct kvc_step_range range;
    bool measured, attention_exact, moe_table, moe_measured, allreduce_measured;
    struct kvc_kernels *kernels;
};

/* step_build.c and step_attention.c */
/* Where the answer's table ends on that axis, if it does before *most. */
void kvc_step_ends(const struct kvc_kernel_answer *a, size_t axis, uint64_t *most);
bool kvc_token_table_init(struct kvc_token_table *t, uint32_t max);
bool kvc_token_table_finish(struct kvc_token_table *t, size_t from);
uint32_t kvc_token_table_knot(size_t i);
bool kvc_make_monotone(double *v, size_t n);
enum kvc_status kvc_step_build_attention(struct kvc_step_model *m, struct kvc_error *err);

double kvc_token_table_at(const struct kvc_token_table *t, uint64_t tokens);
/* Attention of a step; decode attention as c0 + c1 context, up to *end, and what is fixed in c0. */
double kvc_step_attention(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                          size_t n_chunks, uint32_t n_decode, uint64_t decode_context);
void kvc_step_line(const struct kvc_step_model *m, uint32_t n, uint64_t context, double *c0,
                   double *c1, uint64_t *end);
struct kvc_decode_cost kvc_decode_cost_of(double c0, double c1, uint64_t context_end, double host);

/* step_pipeline.c */
/* As vLLM deals layers to stages: what is left over goes to the stages in front of the last. */
uint32_t kvc_stage_layers(uint32_t layers, uint32_t stages, uint32_t stage);
/* Whether a batch leaves the node on its way from that stage to the next. */
bool kvc_stage_leaves_node(uint32_t tp, uint32_t gpus_per_node, uint32_t stage);
uint64_t kvc_pipeline_step_ns(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                              size_t n_chunks, uint32_t n_decode, uint64_t context,
                              uint32_t n_sampled, uint64_t *host_ns);
void kvc_pipeline_decode(const struct kvc_step_model *m, uint32_t n, uint64_t context,
                         struct kvc_decode_cost *out);

#endif
