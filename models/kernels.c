/* SPDX-License-Identifier: Apache-2.0 */
#include "models/kernels_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* From the user's shapes, beyond which others know more: a router's product is ten times narrower
 * than what kvcast bench measures. */
#define FAR_OCTAVES 3

/* Whose tables are asked first. The same kernel on a like GPU says more than another engine's on
 * this one. */
enum { ORDER = 5 };
static const int usual[ORDER] = {USERS, OWN, LIKE, OWN_FOREIGN, LIKE_FOREIGN};

/* ---- stores ---- */

/* Whose tables stand in where a backend lacks a family: TensorRT-LLM was measured the most. */
static const char *foreign_backend(const char *backend)
{
    return strcmp(backend, "trtllm") == 0 ? "vllm" : "trtllm";
}

static const char *twin_backend(const char *backend)
{
    return strcmp(backend, "vllm") == 0 ? "sglang" : "vllm";
}

const struct kvc_kernel_store *kvc_kernels_store(struct kvc_kernels *k, int i)
{
    if (i == USERS)
        return k->users;
    bool like = i == LIKE || i == LIKE_FOREIGN || i == LIKE_NCCL || i == LIKE_TWIN;
    const char *gpu = like ? k->gpu->kernels_like : k->gpu->id;
    const char *backend = i == OWN_NCCL || i == LIKE_NCCL       ? "nccl"
                          : i == OWN_FOREIGN || i == LIKE_FOREIGN ? foreign_backend(k->backend)
                          : i == OWN_TWIN || i == LIKE_TWIN       ? twin_backend(k->backend)
                                                                  : k->backend;

    if (!k->tried[i]) {
        enum kvc_status status =
            gpu ? kvc_kernel_store_borrow(&k->store[i], k->gpu, gpu, backend, NULL)
                : KVC_ERR_UNSUPPORTED;
        const struct kvc_gpu *named = like && !kvc_gpu_find(k->gpu->id) ? kvc_gpu_find(gpu) : NULL;
        if (status == KVC_ERR_UNSUPPORTED && named && named->kernels_like) /* of a user's device */
            status = kvc_kernel_store_borrow(&k->store[i], k->gpu, named->kernels_like, backend,
                                             NULL);
        k->tried[i] = true;
        k->there[i] = status == KVC_OK;
        if (status != KVC_OK && status != KVC_ERR_UNSUPPORTED)
            k->status = status;
    }
    return k->there[i] ? &k->store[i] : NULL;
}

enum kvc_status kvc_kernels_load(struct kvc_kernels **out, const struct kvc_gpu *gpu,
                                 const char *backend, struct kvc_error *err)
{
    struct kvc_kernels *k = kvc_calloc(1, sizeof *k);

    if (!k)
        return kvc_fail_nomem(err);
    k->gpu = gpu;
    snprintf(k->backend, sizeof k->backend, "%s", backend);
    if (!kvc_kernels_store(k, OWN) && !kvc_kernels_store(k, LIKE)) {
        enum kvc_status status = k->status;
        kvc_kernels_destroy(k);
        if (status != KVC_OK)
            return kvc_fail_nomem(err);
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "engine.backend",
                           "no kernel times of %s were measured on %s or a GPU like it; take "
                           "another backend or GPU", backend, gpu->id);
    }
    *out = k;
    return KVC_OK;
}

void kvc_kernels_put_first(struct kvc_kernels *kernels, const struct kvc_kernel_store *own)
{
    kernels->users = own;
}

double kvc_kernels_users_off(const struct kvc_kernels *kernels)
{
    return kernels->users_off;
}

void kvc_kernels_destroy(struct kvc_kernels *kernels)
{
    if (!kernels)
        return;
    for (int i = 0; i < STORES; i++)
        kvc_kernel_store_clear(&kernels->store[i]);
    kvc_free(kernels);
}

enum kvc_status kvc_kernels_status(const struct kvc_kernels *kernels, struct kvc_error *err)
{
    return kernels->status == KVC_OK ? KVC_OK : kvc_fail_nomem(err);
}

bool kvc_kernels_measured(const struct kvc_kernels *kernels)
{
    return kernels->there[OWN] && kernels->gpu->kernels_measured;
}

/* ---- answers ---- */

void kvc_kernels_note(struct kvc_kernels *k, const char *name, const struct kvc_kernel_answer *a)
{
    const struct kvc_kernel_table *t = a->curve.table;
    struct kvc_kernel_used u;

    if (a->users && t->shape.rows && t->shape.mape > k->users_off)
        k->users_off = t->shape.mape;
    memset(&u, 0, sizeof u);
    snprintf(u.name, sizeof u.name, "%s", name);
    if (t->shape.rows)
        snprintf(u.value, sizeof u.value, "%s %.40s, %.1f %% off on shapes kept aside",
                 t->family->name, t->key, t->shape.mape);
    else
        snprintf(u.value, sizeof u.value, "%s %.40s", t->family->name, t->key);
    u.kind = a->borrowed || a->foreign || a->narrowed || !a->exact ? "assumed" : t->kind;
    if (strcmp(u.kind, "fitted") != 0 && strcmp(u.kind, "assumed") != 0)
        u.kind = "measured";
    snprintf(u.source, sizeof u.source, "%s%s%s", t->source,
             a->borrowed  ? "; another GPU's, as shares of this one's peaks"
             : a->foreign ? "; another engine's"
                          : "",
             a->narrowed  ? "; bf16's times, with the bytes of narrower weights"
             : a->exact   ? ""
                          : "; the nearest measured head size or window");
    for (size_t i = 0; i < k->n_used; i++)
        if (strcmp(k->used[i].name, u.name) == 0 && strcmp(k->used[i].source, u.source) == 0)
            return;
    if (k->n_used < sizeof k->used / sizeof k->used[0])
        k->used[k->n_used++] = u;
}

void kvc_kernels_used(const struct kvc_kernels *kernels, kvc_figure_fn fn, void *user)
{
    for (size_t i = 0; i < kernels->n_used; i++) {
        const struct kvc_kernel_used *u = &kernels->used[i];
        fn(user, "kernels", u->name, u->value, u->kind, u->source);
    }
}

void kvc_kernels_answer(const struct kvc_kernel_store *s, int i, const struct kvc_kernel_table *t,
                        const double *site, struct kvc_kernel_answer *out)
{
    *out = (struct kvc_kernel_answer){.peaks = s->peaks, .exact = true, .borrowed = s->borrowed,
                                      .foreign = i == OWN_FOREIGN || i == LIKE_FOREIGN,
                                      .users = i == USERS};
    kvc_kernel_curve_at(t, site, &out->curve);
}

double kvc_kernel_answer_ns(const struct kvc_kernel_answer *a, double first, double second)
{
    const double axes[KVC_KERNEL_AXES] = {first, second};

    return kvc_kernel_curve_ns(&a->curve, &a->peaks, axes);
}

/* The first table of that very key, from the stores in order, or with foreign ones in front. */
static bool find_key(struct kvc_kernels *k, const char *family, const char *key,
                     bool foreign_first, const double *site, struct kvc_kernel_answer *out)
{
    static const int foreign[ORDER] = {USERS, OWN_FOREIGN, OWN, LIKE_FOREIGN, LIKE};
    const struct kvc_kernel_family *f = kvc_kernel_family_find(family);

    for (size_t i = 0; i <= ORDER; i++) { /* the user's once more where nobody else has any */
        int at = foreign_first ? foreign[i % ORDER] : usual[i % ORDER];
        const struct kvc_kernel_store *s = kvc_kernels_store(k, at);
        const struct kvc_kernel_table *t = s ? kvc_kernel_store_find(s, f, key) : NULL;
        if (!t)
            continue;
        kvc_kernels_answer(s, at, t, site, out);
        if (i > 0 || out->curve.octaves <= FAR_OCTAVES)
            return true;
    }
    return false;
}

/* ---- matrix products ---- */

static const char *gemm_key(enum kvc_dtype weights)
{
    switch (weights) {
    case KVC_FP8:
        return "fp8";
    case KVC_FP8_BLOCK:
        return "fp8_block";
    case KVC_NVFP4:
        return "nvfp4";
    case KVC_INT8: /* weights alone, widened for products in bf16: TensorRT-LLM's on A100 */
        return "int8_wo";
    case KVC_INT4:
        return "int4_wo";
    case KVC_BF16:
        return "bfloat16";
    default:
        return NULL;
    }
}

/* The separate quantise launch inside measured fp8 products: the gap between launches of fp8 and
 * bf16 tables of aiconfigurator @095f58a. */
static double quantise_ns(const char *backend, enum kvc_dtype dtype)
{
    bool block = dtype == KVC_FP8_BLOCK;

    if (dtype != KVC_FP8 && !block)
        return 0;
    if (strcmp(backend, "trtllm") == 0)
        return block ? 3500 : 9000;
    return block ? 0 : 4800;
}

/* int4 that this engine was not measured with is bf16's, with the bytes of its weights: kernels
 * differ much from engine to engine. */
static bool find_gemm(struct kvc_kernels *kernels, enum kvc_dtype dtype, bool foreign,
                      const double *site, struct kvc_kernel_answer *a)
{
    const char *key = gemm_key(dtype);

    if (dtype == KVC_NVFP4 && !(kernels->gpu->fp4_flops.value > 0))
        return false;
    if (key && find_key(kernels, "gemm", key, foreign, site, a) &&
        !(dtype == KVC_INT4 && (a->foreign || a->borrowed)))
        return true;
    if (dtype != KVC_INT4 || !find_key(kernels, "gemm", "bfloat16", foreign, site, a))
        return false;
    a->narrowed = true;
    a->curve.params[1] = kvc_dtype_bytes(dtype);
    return true;
}

/* No products of that format: which formats have some. */
static enum kvc_status no_gemm(struct kvc_kernels *kernels, enum kvc_dtype dtype, bool foreign,
                               const double site[KVC_KERNEL_SITE], struct kvc_error *err)
{
    static const enum kvc_dtype others[] = {KVC_BF16, KVC_FP8, KVC_FP8_BLOCK, KVC_NVFP4, KVC_INT8,
                                            KVC_INT4};
    struct kvc_kernel_answer a;
    char names[64] = "";
    size_t used = 0;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        memset(&a, 0, sizeof a);
        if (find_gemm(kernels, others[i], foreign, site, &a))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     kvc_dtype_name(others[i]));
    }
    return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "weights_dtype",
                       "no times of matrix products with %s weights on %s; it has %s",
                       kvc_dtype_name(dtype), kernels->gpu->id, names);
}

enum kvc_status kvc_kernels_gemm(struct kvc_kernels *kernels, enum kvc_dtype dtype, uint32_t n,
                                 uint32_t k, const struct kvc_engine_profile *engine,
                                 bool foreign, struct kvc_gemm *out, struct kvc_error *err)
{
    const double site[KVC_KERNEL_SITE] = {n, k};
    /* vLLM's block-scaled table carries a host launch floor that served runs do not show. */
    foreign |= dtype == KVC_FP8_BLOCK && strcmp(kernels->backend, "vllm") == 0;
    struct kvc_kernel_answer *a = &out->table;
    char name[48];

    memset(out, 0, sizeof *out);
    if (!find_gemm(kernels, dtype, foreign, site, a))
        return no_gemm(kernels, dtype, foreign, site, err);
    double bytes = dtype == KVC_INT8 ? 1 : a->curve.params[1]; /* its form has bf16's */
    double weights = (double)n * k * bytes, which = a->curve.params[2];
    double peak = which == 2 ? a->peaks.fp4_flops
                  : which == 1 ? a->peaks.fp8_flops : a->peaks.bf16_flops;
    out->flops_ns = 1e9 * 2.0 * n * k / peak;
    out->weight_ns = 1e9 * weights / a->peaks.bytes_per_s;
    out->minus_ns = engine->fuses_quantise && !a->users
                        ? quantise_ns(a->foreign ? foreign_backend(kernels->backend)
                                                 : kernels->backend, dtype)
                        : 0;
    if (out->minus_ns > 0)
        out->floor_ns = engine->fused_floor_ns.value + out->weight_ns / 0.95;
    snprintf(name, sizeof name, "matrix products, %s",
             a->narrowed ? kvc_dtype_name(dtype) : gemm_key(dtype));
    kvc_kernels_note(kernels, name, a);
    return KVC_OK;
}

double kvc_gemm_ns(const struct kvc_gemm *g, double m)
{
    double ns = kvc_kernel_answer_ns(&g->table, m, 0);

    if (g->minus_ns > 0) {
        ns -= g->minus_ns;
        if (ns < g->floor_ns)
            ns = g->floor_ns;
    }
    /* Small weights re-read by the benchmark come from L2; in a model they come from HBM. */
    double bound = m * g->flops_ns > g->weight_ns ? m * g->flops_ns : g->weight_ns;
    return ns > bound ? ns : bound;
}

/* ---- attention ---- */

/* How far a table is from what is asked for: head size in octaves, a window that differs counts
 * more, since the caller can cut the context. HUGE_VAL: other cache bytes. */
static double heads_distance(const struct kvc_kernel_table *t, const struct kvc_heads *h)
{
    bool narrow = t->params[0] < 2, window = t->params[2] > 0;

    if (narrow != (h->kv != KVC_BF16) || (window && t->params[2] != h->window))
        return HUGE_VAL;
    return fabs(log2(t->params[1] / h->dim)) + (!window && h->window ? 0.5 : 0);
}

static bool find_heads(struct kvc_kernels *k, const char *family, const struct kvc_heads *h,
                       struct kvc_kernel_answer *out)
{
    const struct kvc_kernel_family *f = kvc_kernel_family_find(family);
    const double site[KVC_KERNEL_SITE] = {h->heads, h->kv_heads};

    for (size_t i = 0; i < ORDER; i++) {
        const struct kvc_kernel_store *s = kvc_kernels_store(k, usual[i]);
        const struct kvc_kernel_table *best = NULL;
        double least = HUGE_VAL;
        for (size_t j = 0; s && j < s->tables.n; j++) {
            const struct kvc_kernel_table *t = &s->tables.table[j];
            double d = t->family == f ? heads_distance(t, h) : HUGE_VAL;
            if (d < least || (best && d == least && t->fitted.rows > best->fitted.rows)) {
                least = d;
                best = t;
            }
        }
        if (!best || (usual[i] == USERS && least > 0)) /* another size than the user measured */
            continue;
        kvc_kernels_answer(s, usual[i], best, site, out);
        out->curve.params[1] = h->dim;
        out->exact = least == 0;
        return true;
    }
    return false;
}

bool kvc_kernels_decode(struct kvc_kernels *kernels, const struct kvc_heads *heads,
                        struct kvc_kernel_answer *out)
{
    if (!find_heads(kernels, "generation_attention", heads, out))
        return false;
    kvc_kernels_note(kernels, heads->window ? "decode attention, window" : "decode attention", out);
    return true;
}

static bool is_fa3(const struct kvc_kernel_table *t)
{
    size_t n = strlen(t->key);

    return n > 3 && strcmp(t->key + n - 3, "fa3") == 0;
}

/* In bf16 both engines' rows agree within 2 % beyond the L2 cache, for 1, 2 and 4 KV heads; fp8's
 * differ by a quarter, whatever the shape: other builds. */
bool kvc_kernels_decode_twin(struct kvc_kernels *k, const struct kvc_kernel_answer *own,
                             struct kvc_kernel_answer *out)
{
    const struct kvc_kernel_table *t = own->curve.table;
    int at = own->borrowed ? LIKE_TWIN : OWN_TWIN;

    if (own->users || own->foreign || t->params[0] < 2 || !is_fa3(t))
        return false;
    const struct kvc_kernel_store *s = kvc_kernels_store(k, at);
    for (size_t i = 0; s && i < s->tables.n; i++) {
        const struct kvc_kernel_table *o = &s->tables.table[i];
        if (o->family != t->family || !is_fa3(o) ||
            memcmp(o->params, t->params, sizeof o->params) != 0)
            continue;
        kvc_kernels_answer(s, at, o, own->curve.x, out);
        memcpy(out->curve.params, own->curve.params, sizeof out->curve.params);
        kvc_kernels_note(k, "decode attention, the other engine's rows", out);
        return true;
    }
    return false;
}

bool kvc_kernels_prefill(struct kvc_kernels *kernels, const struct kvc_heads *heads,
                         struct kvc_kernel_answer *out)
{
    if (!find_heads(kernels, "context_attention", heads, out))
        return false;
    kvc_kernels_note(kernels, heads->window ? "prefill attention, window" : "prefill attention",
                     out);
    return true;
}

static bool find_mla(struct kvc_kernels *k, const char *family, enum kvc_dtype kv, uint32_t heads,
                     const char *name, struct kvc_kernel_answer *out)
{
    const char *key = kv == KVC_BF16 ? "bfloat16 bfloat16" : "bfloat16 fp8";
    const double site[KVC_KERNEL_SITE] = {heads};
    /* vLLM's latent tables carry a host launch floor (120 to 210 us) that served runs lack. */
    bool launch_floor = strcmp(k->backend, "vllm") == 0;

    if (!find_key(k, family, key, launch_floor, site, out))
        return false;
    kvc_kernels_note(k, name, out);
    return true;
}

bool kvc_kernels_mla_decode(struct kvc_kernels *kernels, enum kvc_dtype kv, uint32_t heads,
                            struct kvc_kernel_answer *out)
{
    return find_mla(kernels, "generation_mla", kv, heads, "latent attention, decode", out);
}

bool kvc_kernels_mla_prefill(struct kvc_kernels *kernels, enum kvc_dtype kv, uint32_t heads,
                             struct kvc_kernel_answer *out)
{
    return find_mla(kernels, "context_mla", kv, heads, "latent attention, prefill", out);
}

/* ---- linear attention ---- */

/* The table of that phase whose kernel's name holds a word, of several the one with most rows. */
static bool find_linear(struct kvc_kernels *k, const char *family, const char *phase,
                        const char *word, const double *site, struct kvc_kernel_answer *out)
{
    const struct kvc_kernel_family *f = kvc_kernel_family_find(family);

    for (size_t i = 0; f && i < ORDER; i++) {
        const struct kvc_kernel_store *s = kvc_kernels_store(k, usual[i]);
        const struct kvc_kernel_table *best = NULL;
        for (size_t j = 0; s && j < s->tables.n; j++) {
            const struct kvc_kernel_table *t = &s->tables.table[j];
            if (t->family == f && strncmp(t->key, phase, strlen(phase)) == 0 &&
                strstr(t->key, word) && (!best || t->fitted.rows > best->fitted.rows))
                best = t;
        }
        if (best) {
            kvc_kernels_answer(s, usual[i], best, site, out);
            return true;
        }
    }
    return false;
}

bool kvc_kernels_linear(struct kvc_kernels *kernels, const struct kvc_llm *llm, uint32_t tp,
                        bool prefill, struct kvc_linear *out)
{
    const char *phase = prefill ? "context " : "generation ", *family = llm->linear_kind;
    const double site[KVC_KERNEL_SITE] = {llm->hidden, (double)llm->linear_key_heads / tp,
                                          (double)llm->linear_value_heads / tp,
                                          llm->linear_head_dim};
    bool mamba = family && strcmp(family, "mamba2") == 0;
    const char *word = family && strcmp(family, "kda") == 0 ? "kda"
                       : mamba && !prefill                  ? "delta_rule_packed"
                                                            : "delta_rule";
    /* Of mamba2 only the convolution was measured; a delta net of as much state, in the heads that
     * those were measured with, stands for the recurrence; in decode by the kernels that keep the
     * state in floats. */
    double state = (double)llm->linear_value_width * llm->linear_head_dim;
    const double net[KVC_KERNEL_SITE] = {llm->hidden, 16.0 / tp, state / (128 * 128) / tp, 128};

    if (!family || !find_linear(kernels, family, phase, "conv1d", site, &out->convolution) ||
        !find_linear(kernels, mamba ? "gdn" : family, phase, word, mamba ? net : site,
                     &out->recurrence))
        return false;
    if (mamba) {
        out->recurrence.exact = false;
        kvc_kernels_note(kernels,
                         prefill ? "mamba2's convolution, prefill" : "mamba2's convolution, decode",
                         &out->convolution);
    }
    kvc_kernels_note(kernels, prefill ? "linear attention, prefill" : "linear attention, decode",
                     &out->recurrence);
    return true;
}
