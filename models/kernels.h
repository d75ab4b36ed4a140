/* SPDX-License-Identifier: Apache-2.0
 * Fitted kernel times of one GPU and engine backend, in nanoseconds. Used while a step model is
 * built; nothing here runs per step. */
#ifndef KVC_MODELS_KERNELS_H
#define KVC_MODELS_KERNELS_H

#include "models/profiles.h"

#define KVC_M_KNOTS 40

struct kvc_kernels; /* owns the parsed file; strings it hands out live as long */

/* Loads kernels_GPU_BACKEND.json, or kernels_generic_BACKEND.json where that GPU has none. */
enum kvc_status kvc_kernels_load(struct kvc_kernels **out, const struct kvc_gpu *gpu,
                                 const char *backend, struct kvc_error *err);
void kvc_kernels_destroy(struct kvc_kernels *kernels);
bool kvc_kernels_measured(const struct kvc_kernels *kernels); /* false: the generic file */

/* A matrix product of fixed (n, k), any m, with its ratios to the roofline already blended. */
struct kvc_gemm {
    double n, k;
    double overhead_ns, flops, peak_flops, bytes_per_s,
        peak_bytes_per_s; /* flops = efficiency * peak */
    double activation_bytes, weight_bytes;
    double minus_ns, floor_ns; /* the fused quantise launch taken out; 0 where none */
    uint32_t knots;
    double log_m[KVC_M_KNOTS], ratio[KVC_M_KNOTS];
};

/* dtype of the weights. KVC_ERR_UNSUPPORTED when this backend has no such table. */
enum kvc_status kvc_kernels_gemm(const struct kvc_kernels *kernels, enum kvc_dtype dtype,
                                 uint32_t n, uint32_t k, const struct kvc_engine_profile *engine,
                                 struct kvc_gemm *out, struct kvc_error *err);
double kvc_gemm_ns(const struct kvc_gemm *gemm, double m);

struct kvc_decode_form { /* overhead + bytes / (efficiency * bandwidth) */
    double overhead_ns, bandwidth_efficiency;
};
/* launch + 4 H D (q + q0)(past + q/2 + p0) / flops; without a past, times a ratio measured for one
 * sequence of q tokens at these heads. */
struct kvc_prefill_form {
    double launch_ns, flops, q0, p0;
    uint32_t knots;
    double log_tokens[KVC_M_KNOTS], ratio[KVC_M_KNOTS];
};
struct kvc_mla_form { /* docs/models.md, latent attention */
    double decode_overhead_ns, decode_bandwidth, decode_compute;
    double prefill_overhead_ns, prefill_compute, prefill_c;
};
/* kv is bf16 or fp8; the nearest measured head size is taken, *exact tells whether it is head_dim.
 * heads and kv_heads are those of one rank. */
bool kvc_kernels_decode(const struct kvc_kernels *kernels, enum kvc_dtype kv, uint32_t head_dim,
                        struct kvc_decode_form *out, bool *exact);
bool kvc_kernels_prefill(const struct kvc_kernels *kernels, enum kvc_dtype kv, uint32_t head_dim,
                         uint32_t heads, uint32_t kv_heads, struct kvc_prefill_form *out,
                         bool *exact);
double kvc_prefill_ratio(const struct kvc_prefill_form *form,
                         double tokens); /* 1 where not measured */
bool kvc_kernels_mla(const struct kvc_kernels *kernels, enum kvc_dtype kv,
                     struct kvc_mla_form *out);

/* Time of one all-reduce as a function of its bytes, never falling. */
struct kvc_allreduce {
    size_t n;
    double bytes[64], ns[64];
};
/* false: this number of GPUs is not measured; then the generic form over the GPU link holds. */
bool kvc_kernels_allreduce(const struct kvc_kernels *kernels, uint32_t gpus,
                           double custom_max_bytes, struct kvc_allreduce *out);
double kvc_allreduce_ns(const struct kvc_allreduce *a, double bytes);

/* Fused MoE block of one layer over tokens. */
struct kvc_moe {
    size_t n;
    double tokens[32], ns[32];
};
/* Experts cut into tp slices, or dealt whole to ep ranks. false: this shape is not measured. */
bool kvc_kernels_moe(const struct kvc_kernels *kernels, enum kvc_dtype dtype,
                     const struct kvc_llm *llm, uint32_t tp, uint32_t ep, struct kvc_moe *out);
double kvc_moe_ns(const struct kvc_moe *moe, double tokens);

/* kind and source of a part: "gemm.fp8", "decode_attention.bf16.128", "allreduce.graph", .. */
void kvc_kernels_source(const struct kvc_kernels *kernels, const char *part, const char **kind,
                        const char **source);
/* Every part of the file: its name as above, kind, source, and the mean absolute error in percent
 * on the rows it was fitted from (NAN where none is stated). */
typedef void (*kvc_kernel_part_fn)(void *user, const char *part, const char *kind,
                                   const char *source, double mape_percent);
void kvc_kernels_parts(const struct kvc_kernels *kernels, kvc_kernel_part_fn fn, void *user);
const char *kvc_kernels_dtype(enum kvc_dtype weights); /* name of the gemm table it uses */

#endif
