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
 * sequences and at 0, 64, 96, 128, 192 .. tokens, linear between and beyond; never falls with
 * context, nor (at the knots) with sequences of as much context each. */
#define KVC_GRID_N 24
#define KVC_GRID_C 50
struct kvc_grid_knot {
    int64_t at;
    double per; /* 1 over the distance to the next, exactly: that is a power of two */
};
struct kvc_decode_grid {
    struct kvc_grid_knot sequences[KVC_GRID_N], context[KVC_GRID_C];
    double ns[KVC_GRID_N][KVC_GRID_C];
};

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
    bool joint_attention; /* of decodes beside prefill, with it */
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
    bool products_exact; /* every product's own dtype, engine and GPU, a shape near measured ones */
    bool borrowed;       /* some kernel's time is another GPU's, as shares of this one's peaks */
    struct kvc_step_range least, range; /* where rows begin, and where they end */
    double allreduce_latency_ns, allreduce_bytes_per_s; /* where it is not measured */
    bool measured, attention_exact, moe_table, moe_measured, allreduce_measured;
    bool exchange_measured;
    struct kvc_kernels *kernels;
};

/* step.c: tokens of the smallest graph that vLLM captures for so many. */
uint64_t kvc_step_graph_tokens(uint64_t tokens);

/* step_check.c: KVC_OK where such a model can be built, else why not. */
enum kvc_status kvc_step_check(const struct kvc_step_config *config, struct kvc_error *err);

/* step_build.c and step_attention.c */
/* Narrows *least and *most (NULL: no such) to where a kernel's rows begin and end on that axis. */
void kvc_step_ends(const struct kvc_kernel_curve *curve, size_t axis, uint64_t *least,
                   uint64_t *most);
bool kvc_token_table_init(struct kvc_token_table *t, uint32_t max);
bool kvc_token_table_finish(struct kvc_token_table *t, size_t from);
uint32_t kvc_token_table_knot(size_t i);
bool kvc_make_monotone(double *v, size_t n);
enum kvc_status kvc_step_build_attention(struct kvc_step_model *m, struct kvc_error *err);

/* These are inline, so that a count's place is found once for all tables that are asked for it. */
static inline double kvc_token_table_at(const struct kvc_token_table *t, uint64_t tokens)
{
    uint64_t i = tokens < 16 ? tokens : 15 + (tokens >> 4), beyond = tokens < 16 ? 0 : tokens & 15;

    if (tokens >= t->max)
        return t->ns[15 + (t->max >> 4)] + t->slope * (double)(tokens - t->max);
    return t->ns[i] + (t->ns[i + 1] - t->ns[i]) * ((double)(int)beyond / 16);
}

/* Floor of log2, and whether half an octave more is reached: x >= 1.5 2^log. */
static inline size_t kvc_half_octaves(uint64_t x)
{
    unsigned log = 63u - (unsigned)__builtin_clzll(x);

    return 2 * log + (log > 0 && x >> (log - 1) == 3);
}

/* Decode attention as c0 + c1 context; up to which context. decode_per_sequence comes on top. */
static inline uint64_t kvc_decode_line(const struct kvc_decode_grid *g, uint32_t n,
                                       uint64_t context, double *c0, double *c1)
{
    size_t i = n < 2 ? 0 : kvc_half_octaves(n) - 1;
    size_t j = context < 64 ? 0 : kvc_half_octaves(context) - 11;

    i = i > KVC_GRID_N - 2 ? KVC_GRID_N - 2 : i;
    j = j > KVC_GRID_C - 2 ? KVC_GRID_C - 2 : j;
    const double *a = g->ns[i] + j, *b = g->ns[i + 1] + j;
    double share = (double)(n - g->sequences[i].at) * g->sequences[i].per;
    double from = a[0] + share * (b[0] - a[0]), to = a[1] + share * (b[1] - a[1]);

    *c1 = (to - from) * g->context[j].per;
    *c0 = from - *c1 * (double)g->context[j].at;
    return j == KVC_GRID_C - 2 ? UINT64_MAX : (uint64_t)g->context[j + 1].at;
}

double kvc_step_attention(const struct kvc_step_model *m, const struct kvc_chunk *chunks,
                          size_t n_chunks, uint32_t n_decode, uint64_t decode_context);
void kvc_decode_cost_set(struct kvc_decode_cost *out, double c0, double c1, uint64_t context_end,
                         double host);

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
