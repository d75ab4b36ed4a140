/* SPDX-License-Identifier: Apache-2.0
 * Kernel times of one GPU and engine backend as a step model asks for them, in nanoseconds. Used
 * while a step model is built; nothing here runs per step. Each answer is noted with its source. */
#ifndef KVC_MODELS_KERNELS_H
#define KVC_MODELS_KERNELS_H

#include "models/kernel_store.h"
#include "models/profiles.h"

struct kvc_kernels; /* tables are loaded when first asked for */

/* The user's tables come first, then own ones, then those of the GPU like it, then another
 * backend's.
 * KVC_ERR_UNSUPPORTED: none of them exists. */
enum kvc_status kvc_kernels_load(struct kvc_kernels **out, const struct kvc_gpu *gpu,
                                 const char *backend, struct kvc_error *err);
void kvc_kernels_destroy(struct kvc_kernels *kernels);
/* Tables of the user's own, which then come before all others; they outlive kernels. */
void kvc_kernels_put_first(struct kvc_kernels *kernels, const struct kvc_kernel_store *own);
/* Of their tables asked for so far, how far off the worst is on shapes left out, in the mean,
 * percent; 0: none was. */
double kvc_kernels_users_off(const struct kvc_kernels *kernels);
/* Whether everything asked for so far could be loaded: when memory ran out, answers fell back. */
enum kvc_status kvc_kernels_status(const struct kvc_kernels *kernels, struct kvc_error *err);
/* Whether this GPU was measured with this backend. */
bool kvc_kernels_measured(const struct kvc_kernels *kernels);

struct kvc_kernel_answer {
    struct kvc_kernel_curve curve;
    struct kvc_peaks peaks;
    bool exact;    /* head size, window, dtype as asked for */
    bool borrowed; /* another GPU's table */
    bool foreign;  /* another backend's */
    bool users;    /* a table of the user's own */
    bool narrowed; /* another dtype's, with the bytes of these weights */
};
double kvc_kernel_answer_ns(const struct kvc_kernel_answer *a, double first, double second);

/* A matrix product of fixed (n, k), any m. */
struct kvc_gemm {
    struct kvc_kernel_answer table;
    double minus_ns, floor_ns;  /* the fused quantise launch taken out; 0 where none */
    double flops_ns, weight_ns; /* per m at peak; all weights at full bandwidth */
};
/* dtype of the weights. KVC_ERR_UNSUPPORTED when no table has such. */
enum kvc_status kvc_kernels_gemm(struct kvc_kernels *kernels, enum kvc_dtype dtype, uint32_t n,
                                 uint32_t k, const struct kvc_engine_profile *engine,
                                 bool foreign, struct kvc_gemm *out, struct kvc_error *err);
double kvc_gemm_ns(const struct kvc_gemm *gemm, double m);

/* One rank's attention; kv is bf16 or fp8, window 0 means none. answer: (sequences, tokens), the
 * tokens being the context in decode and the new ones in prefill. A window that was not measured
 * takes the table without one: the caller cuts the context. false: no table at all. */
struct kvc_heads {
    uint32_t dim, heads, kv_heads, window;
    enum kvc_dtype kv;
};
bool kvc_kernels_decode(struct kvc_kernels *kernels, const struct kvc_heads *heads,
                        struct kvc_kernel_answer *out);
/* The same kernel as another engine's rows have it. false: none. */
bool kvc_kernels_decode_twin(struct kvc_kernels *kernels, const struct kvc_kernel_answer *own,
                             struct kvc_kernel_answer *out);
bool kvc_kernels_prefill(struct kvc_kernels *kernels, const struct kvc_heads *heads,
                         struct kvc_kernel_answer *out);
bool kvc_kernels_mla_decode(struct kvc_kernels *kernels, enum kvc_dtype kv, uint32_t heads,
                            struct kvc_kernel_answer *out);
bool kvc_kernels_mla_prefill(struct kvc_kernels *kernels, enum kvc_dtype kv, uint32_t heads,
                             struct kvc_kernel_answer *out);

/* A linear-attention layer on one rank of tp: its convolution and its recurrence, of sequences of
 * new tokens. prefill false: one token a sequence. false: no such kernels were measured. */
struct kvc_linear {
    struct kvc_kernel_answer convolution, recurrence;
};
bool kvc_kernels_linear(struct kvc_kernels *kernels, const struct kvc_llm *llm, uint32_t tp,
                        bool prefill, struct kvc_linear *out);

/* Time of a collective as a function of its bytes, never falling. */
struct kvc_messages {
    size_t n;
    double bytes[64], ns[64];
};
/* An all-reduce. false: this number of GPUs is not measured; then the generic form over the GPU
 * link holds. */
bool kvc_kernels_allreduce(struct kvc_kernels *kernels, uint32_t gpus, double custom_max_bytes,
                           struct kvc_messages *out);
/* NCCL's gather of what each GPU has, to all of them, and its scatter of sums back, by the bytes of
 * all together. false: not measured between so many of this GPU. */
bool kvc_kernels_exchange(struct kvc_kernels *kernels, uint32_t gpus, struct kvc_messages *out);
double kvc_messages_ns(const struct kvc_messages *m, double bytes);

/* Fused MoE block of one layer over tokens: the fastest of the kernels measured for its shape. */
struct kvc_moe {
    size_t n;
    struct kvc_kernel_answer kernel[4];
    /* its tokens for one of the layer's: another shape's rows, a rank's work alike */
    double per[4];
    double octaves; /* to the nearest measured shape */
};
/* Experts cut into tp slices, or dealt whole to ep ranks. narrow: 4-bit experts get 8-bit
 * activations, were it by another backend's kernel. false: no table of this dtype. */
bool kvc_kernels_moe(struct kvc_kernels *kernels, enum kvc_dtype dtype, bool narrow,
                     const char *kernel, const struct kvc_llm *llm, uint32_t tp, uint32_t ep,
                     struct kvc_moe *out);
double kvc_moe_ns(const struct kvc_moe *moe, double tokens);

/* What was asked for, in order: name, what it is, kind and source. */
void kvc_kernels_used(const struct kvc_kernels *kernels, kvc_figure_fn fn, void *user);

#endif
