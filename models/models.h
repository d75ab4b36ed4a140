/* SPDX-License-Identifier: Apache-2.0
 * What sim/ asks of the models: geometry and bytes of an LLM, a GPU, links, prices, and the
 * time of an engine step. Every figure can be traced to its source (struct kvc_figure). */
#ifndef KVC_MODELS_MODELS_H
#define KVC_MODELS_MODELS_H

#include <kvcast/kvcast.h>

enum kvc_dtype {
    KVC_BF16, KVC_FP8, KVC_FP8_BLOCK, KVC_NVFP4, KVC_MXFP4, KVC_INT8, KVC_INT4,
    /* of KV only */
    KVC_FP8_E5M2, KVC_TQ_K8V4, KVC_TQ_4, KVC_TQ_K3V4, KVC_TQ_3, KVC_KIVI_4, KVC_KIVI_2
};

/* A number and where it comes from. kind: datasheet, measured, fitted, assumed, published. */
struct kvc_figure {
    double value;
    const char *kind;
    const char *source;
};

struct kvc_llm {
    const char *name, *source;
    uint32_t layers, hidden, heads, kv_heads, head_dim, vocab, intermediate, max_position;
    /* MoE: experts 0 = dense */
    uint32_t experts, top_k, expert_intermediate, shared_intermediate;
    /* MLA: kv_lora_rank 0 = plain attention */
    uint32_t kv_lora_rank, q_lora_rank, qk_rope_dim, qk_nope_dim, v_head_dim;
    uint32_t window_layers, window_tokens;      /* sliding-window layers */
    uint32_t window_kv_heads, window_head_dim;  /* of those layers; as the others where 0 */
    uint32_t linear_layers;                     /* linear-attention layers: no KV per token */
    uint32_t linear_width, linear_value_width;  /* their projections in and out */
    const char *linear_kind;                    /* gdn, kda or mamba2: the family of its kernels */
    /* of mamba2: groups, heads and size of the state */
    uint32_t linear_key_heads, linear_value_heads, linear_head_dim;
    uint64_t linear_state_bytes;                /* per sequence, all such layers, fp32 */
    uint64_t linear_conv_bytes;                 /* and of their convolutions, bf16 */
    uint32_t dense_layers;                      /* MoE models: layers with a dense FFN */
    /* sparse attention: keys kept, the heads that choose by them, tokens attended */
    uint32_t indexer_dim, index_heads, sparse_tokens;
    bool compressed_kv;                         /* KV only as kv_bytes_per_token_bf16 states it */
    double params_total_b, params_active_b;     /* 1e9; 0 = not known */
    uint64_t kv_bytes_per_token_bf16;           /* stated: layers that grow, all ranks */
    const char *weights_dtype;                  /* as published */
    uint32_t joint_qk_norm; /* 1: queries and keys are normalised over all heads of all ranks */
    uint32_t ungated; /* 1: feed-forward parts and experts have two matrices, no gate */
    uint32_t int4_group;                        /* int4 weights that share a scale; 128 where 0 */
    const char *no_step_model;                  /* why step times are refused, or NULL */
};

struct kvc_gpu {
    const char *id, *name;
    struct kvc_figure memory_bytes;   /* what the driver reports as total */
    struct kvc_figure hbm_bytes_per_s, bf16_flops, fp8_flops, fp4_flops, tdp_w, usd_per_hour;
    struct kvc_figure h2d_bytes_per_s, d2h_bytes_per_s; /* host link, each direction, per GPU */
    struct kvc_figure nic_bytes_per_s;                  /* per GPU */
    struct kvc_figure gpu_link_bytes_per_s;             /* between GPUs, each direction */
    struct kvc_figure peer_links; /* that it is divided into, one to each peer; 0: a switch */
    struct kvc_figure multiprocessors;                  /* 0: not known */
    struct kvc_figure l2_bytes; /* the last cache before HBM; 0: not known */
    const char *host_link;                              /* name of its link profile */
    const char *also;         /* another name of it in kernel tables; may be NULL */
    const char *kernels_like; /* GPU whose kernel tables serve where it has none; may be NULL */
    const char *no_backend;   /* engine backend that does not run on it; may be NULL */
    bool joint_attention;  /* vLLM has prompts and decodes in one call of FlashAttention 2 */
    bool kernels_measured; /* false: step times are roofline with assumed efficiencies */
};

/* One direction of a link, or both where read and write differ. */
struct kvc_link_profile {
    const char *name;
    struct kvc_figure read_bytes_per_s;  /* towards the GPU, per device (GPU, drive, NIC) */
    struct kvc_figure write_bytes_per_s; /* away from the GPU */
    struct kvc_figure latency_ns;        /* once per transfer */
    struct kvc_figure per_op_ns;         /* once per operation, beside its bytes; serial */
    struct kvc_figure both_bytes_per_s;  /* both ways at once, in sum; value 0: no less than each */
    struct kvc_figure queue_depth;       /* operations under way at once; value 0: enough of them */
    struct kvc_figure op_latency_ns;     /* of one operation; value 0: the transfer's */
    struct kvc_figure ops_per_s;         /* operations a device begins; value 0: no limit */
    struct kvc_figure stream_bytes_per_s;   /* one operation under way; value 0: the device's */
    struct kvc_figure all_read_bytes_per_s; /* all devices together; value 0: no limit */
    struct kvc_figure all_write_bytes_per_s;
};

struct kvc_prices {
    struct kvc_figure dram_gb_month_usd, nvme_gb_month_usd, remote_gb_month_usd;
    struct kvc_figure power_usd_per_kwh, pue, network_usd_per_hour_per_gpu;
};

/* The profiles carried in the program are parsed once, at the first question, under a lock, and
 * never change after; that immutable store is the one thing the library keeps between calls.
 * Lookups compare without case, '-' and '_' equal; NULL when unknown (or when memory for the store
 * ran out, which kvc_profiles_ready tells). Pointers are static. */
enum kvc_status kvc_profiles_ready(struct kvc_error *err);
const struct kvc_llm *kvc_llm_find(const char *name);
const struct kvc_gpu *kvc_gpu_find(const char *name);
const struct kvc_link_profile *kvc_link_find(const char *name);
const struct kvc_prices *kvc_prices_default(void);
/* Names, NULL-terminated, for lists and for "nearest known name" hints. */
const char *const *kvc_llm_names(void);
const char *const *kvc_gpu_names(void);
const char *const *kvc_link_names(void);
const char *kvc_profiles_digest(void); /* of all profiles carried in the program, hex */

bool kvc_dtype_parse(const char *name, enum kvc_dtype *out); /* fp8_e4m3 is KVC_FP8 */
const char *kvc_dtype_name(enum kvc_dtype dtype);
double kvc_dtype_bytes(enum kvc_dtype dtype);

struct kvc_kv_quality { /* as published, nothing derived */
    const char *model, *measure;
    double value;
    const char *source;
};
struct kvc_kv_format {
    const char *name;
    enum kvc_dtype dtype, kernel; /* kernel: whose attention tables read it, KVC_BF16 or KVC_FP8 */
    double key_bits, value_bits, key_scale_bytes, value_scale_bytes;
    uint32_t group;        /* elements that share a scale; 0: a head's vector */
    uint32_t plain_layers; /* the first and last ones, left in bf16 */
    struct kvc_figure decode_cost;        /* times its kernel's decode attention */
    const struct kvc_kv_quality *quality; /* ends with a NULL model; NULL: none published */
};
const struct kvc_kv_format *kvc_kv_format(enum kvc_dtype kv); /* NULL: no format of KV */
const struct kvc_kv_format *kvc_kv_format_at(size_t i);       /* NULL behind the last one */
/* Bytes of one element, scales included, keys and values in the mean. */
double kvc_kv_element_bytes(enum kvc_dtype kv, uint32_t dim);

/* KV bytes of one token of one replica, all ranks: sharded heads, replicated ones counted as
 * often as they are stored. */
uint64_t kvc_llm_kv_bytes_per_token(const struct kvc_llm *llm, enum kvc_dtype kv, uint32_t tp);
/* KV bytes that sliding-window layers hold for one sequence of that many tokens, all ranks. */
/* For one token: what an engine without a pool of their own for such layers keeps of each. */
uint64_t kvc_llm_window_kv_bytes(const struct kvc_llm *llm, enum kvc_dtype kv, uint32_t tp,
                                 uint64_t tokens);
/* Of one layer's routed experts. */
double kvc_llm_expert_params(const struct kvc_llm *llm);
uint64_t kvc_llm_weight_bytes(const struct kvc_llm *llm, enum kvc_dtype weights);
/* The dtype of all weights but the experts': mxfp4, and int4 in models with experts, are theirs
 * alone; the rest stays bf16. */
enum kvc_dtype kvc_llm_plain_dtype(const struct kvc_llm *llm, enum kvc_dtype weights);

/* ---- time of a step ---- */

struct kvc_user_profile;
struct kvc_step_config {
    const struct kvc_llm *llm;
    const struct kvc_gpu *gpu;
    const char *backend; /* "vllm" */
    enum kvc_dtype weights, kv;
    uint32_t tp, pp, ep;
    bool quantise_apart; /* the engine's version launches fp8 quantisation by itself */
    uint32_t dp; /* attention data parallelism: so many ranks hold whole attention (tp 1) and share
                  * the experts; the model is of one of them. 0, 1: none */
    bool graphed_prefill;  /* steps with prefill replay graphs piece by piece */
    bool kernels_alone; /* nothing fitted to whole runs: no launches, no mixed share */
    uint32_t captured_tokens; /* .. those of at most so many tokens; 0: as the engine does by
                                 itself */
    uint32_t max_seqs; /* most sequences of a step: vLLM by itself captures no more than twice as
                          many tokens; 0: not stated */
    bool foreign_products; /* matrix products by another engine's kernels, whose tables go first */
    const char *experts_kernel; /* a word in the name of the experts' kernel, whose tables go first;
                                 * NULL: the fastest of the backend's own */
    bool narrow_experts; /* experts of 4-bit weights get 8-bit activations, whose tables go first */
    double kv_resident;  /* share of the tokens that eviction of tokens keeps; 0: all */
    uint32_t batch_tokens;  /* pp > 1: most tokens of a batch; 0: 8192 */
    uint32_t gpus_per_node; /* pp > 1: what stages share without a network; 0: all GPUs */
    const struct kvc_user_profile *user; /* whose kernels go first; NULL: none. Outlives the
                                          * model */
};

struct kvc_step_model;

enum kvc_status kvc_step_model_create(struct kvc_step_model **out,
                                      const struct kvc_step_config *config, struct kvc_error *err);
/* The same with an engine's constants that are not those of its profile (models/profiles.h). */
struct kvc_engine_profile;
enum kvc_status kvc_step_model_create_with(struct kvc_step_model **out,
                                           const struct kvc_step_config *config,
                                           const struct kvc_engine_profile *engine,
                                           struct kvc_error *err);
void kvc_step_model_destroy(struct kvc_step_model *model);

struct kvc_chunk { /* prefill of tokens new tokens after past tokens of one sequence */
    uint32_t tokens, past;
};

/* Nanoseconds of one step of n_chunks prefill chunks and n_decode decoding sequences with
 * decode_context tokens of KV in all; n_sampled sequences get a token. Rounded to nearest. The
 * host's share of it goes to *host_ns (may be NULL). With data parallelism all ranks are busy
 * alike. */
uint64_t kvc_step_ns(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                     size_t n_chunks, uint32_t n_decode, uint64_t decode_context,
                     uint32_t n_sampled, uint64_t *host_ns);

/* Tokens that the experts see in a step of data-parallel ranks, of which the busiest computes most
 * and all together sum: ranks that replay a graph are padded to that of the busiest. */
uint64_t kvc_step_tokens_of_all(const struct kvc_step_model *model, uint64_t sum, uint64_t most);

/* The same of one data-parallel rank, where the experts see so many tokens of all ranks in this
 * step. Ranks wait for each other, so that all end with the slowest. */
uint64_t kvc_step_rank_ns(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                          size_t n_chunks, uint32_t n_decode, uint64_t decode_context,
                          uint32_t n_sampled, uint64_t tokens_of_all, uint64_t *host_ns);

/* With pipeline stages a step is a round of all batches in flight, each batch seen once by every
 * stage (docs/models.md). Its prefill fills up to pp of the batches, in order, *batch tokens each:
 * full ones go through the last stage so many ns one behind the other, the first when the step
 * ends, and the last, which has what is left, so much sooner as it is less full. */
uint64_t kvc_step_spacing_ns(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                             size_t n_chunks, uint32_t n_decode, uint64_t decode_context,
                             uint32_t n_sampled, uint32_t *batch);

/* A stretch of pure decode steps of n sequences: while the total context stays at or below
 * context_end, a step at context c costs c0 + c1 * c. Fixed point, so that sums are exact:
 * c0 in 2^-16 ns, c1 in 2^-40 ns per token (up to 8 ms). host_ns as above, of each step. */
struct kvc_decode_cost {
    int64_t c0_q16, c1_q40;
    uint64_t context_end;
    uint64_t host_ns;
};
void kvc_step_decode(const struct kvc_step_model *model, uint32_t n_decode, uint64_t context,
                     struct kvc_decode_cost *out);

/* Kernels that an engine compiles when a step first needs them (vLLM's experts in Triton, bf16).
 * Bits of tuned sizes, by which numbers 16 divides. */
struct kvc_compiled {
    uint32_t sizes[4];
};
/* Whether the model has any such kernel. */
bool kvc_step_compiles(const struct kvc_step_model *model);
/* What an engine has compiled that serves for long, or, cold, that has just started: the sizes that
 * it captures graphs of and a full step, which it computes to see how much memory that takes. */
void kvc_step_compiled(const struct kvc_step_model *model, bool cold, uint32_t max_batched_tokens,
                       struct kvc_compiled *out);
/* How long a step of so many tokens waits for what it is the first to use; notes that in seen. */
uint64_t kvc_step_compile_ns(const struct kvc_step_model *model, uint64_t tokens,
                             struct kvc_compiled *seen);

/* Front-end time in front of the engine's queue and client time behind it, per request. */
uint64_t kvc_step_front_ns(const struct kvc_step_model *model);
/* Weights on a GPU of that stage. */
double kvc_step_weight_bytes(const struct kvc_step_model *model, uint32_t stage);
/* HBM bytes left for KV in one replica (all ranks): memory * utilization - weights - activations
 * of a step of max_batched_tokens - the engine's own overhead (TensorRT-LLM: that share of what is
 * free beside these); 0 when the weights do not fit. */
uint64_t kvc_step_kv_capacity_bytes(const struct kvc_step_model *model,
                                    double gpu_memory_utilization, uint32_t max_batched_tokens);

/* How the engine shares out room for KV between tokens and what running sequences hold beside
 * them: the state of linear layers, sliding windows. All ranks. */
struct kvc_kv_room {
    uint64_t token_bytes;    /* of each token */
    uint32_t token_tensors;  /* that they lie in: keys and values, or a latent, of each layer */
    uint64_t sequence_bytes; /* of each running sequence, from the same room as tokens */
    double token_share;      /* of the room; what is left of it holds states alone (SGLang) .. */
    uint64_t apart_bytes;    /* .. so much for each running sequence; 0: no such part */
    uint32_t resume_tokens;  /* a prefix can be resumed at multiples of it; 0: anywhere */
    const char *source;
};
/* caching: prefixes are kept; unified: layers with a window keep the whole context. */
void kvc_step_kv_room(const struct kvc_step_model *model, bool caching, bool unified,
                      struct kvc_kv_room *out);

/* What of an estimate lies beyond the measurements that it rests on; 0: nothing. */
enum {
    KVC_STEP_PAST = 1,     /* prefill behind cached tokens: in no table of these GPUs */
    KVC_STEP_OUTSIDE = 2,  /* more tokens, sequences or context than were measured */
    KVC_STEP_BORROWED = 4, /* another GPU's kernels, as shares of this one's peaks */
    /* a head size, window, format, kind of layer, expert shape or number of GPUs that was not
     * measured with this engine and GPU */
    KVC_STEP_SHAPE = 8,
    KVC_STEP_FAR = 16, /* OUTSIDE by more than twice */
};
uint32_t kvc_step_flags(const struct kvc_step_model *model, const struct kvc_chunk *chunks,
                        size_t n_chunks, uint32_t n_decode, uint64_t decode_context);
/* The same of a figure alone, of which the measurements end at most. */
uint32_t kvc_step_beyond(uint64_t x, uint64_t most);
/* Where the measurements of the kernels in use end, in their own shapes or those they are blended
 * from: tokens of a step, sequences that decode, the context of one of them, new tokens of one
 * sequence in a step, contexts of all that decode together. */
struct kvc_step_range {
    uint64_t tokens, sequences, context, chunk, contexts;
};
const struct kvc_step_range *kvc_step_range(const struct kvc_step_model *model);
/* Whether times between its GPUs are measured ones, which no link's rate changes. */
bool kvc_step_collectives_measured(const struct kvc_step_model *model);

/* Factors of the engine's 80 % band and what they rest on. Flags of the estimates widen it that
 * the rows behind it did not carry. */
struct kvc_time_band {
    double ttft_low, ttft_high, tpot_low, tpot_high; /* factors: 0.8, 1.25 .. */
    const char *source;
    char widened[256]; /* why it is wider than its source says, all reasons; "": it isn't */
};
void kvc_step_band(const struct kvc_step_model *model, uint32_t flags, struct kvc_time_band *out);

/* Hands every figure the model rests on to fn, for the assumptions table and warnings. */
typedef void (*kvc_figure_fn)(void *user, const char *group, const char *name, const char *value,
                              const char *kind, const char *source);
void kvc_step_explain(const struct kvc_step_model *model, kvc_figure_fn fn, void *user);

#endif
