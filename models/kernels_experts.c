/* SPDX-License-Identifier: Apache-2.0
 * Experts: whose tables, and which of several kernels' an engine runs. */
#include "models/kernels_internal.h"

#include <math.h>
#include <string.h>

/* Names of a dtype's expert kernels, the one with activations as narrow as served first. */
static const char *const *moe_keys(enum kvc_dtype dtype)
{
    static const char *const keys[][3] = {
        [KVC_BF16] = {"bfloat16"},   [KVC_FP8] = {"fp8"},      [KVC_FP8_BLOCK] = {"fp8_block"},
        [KVC_NVFP4] = {"nvfp4"},     [KVC_INT8] = {"int8_wo"}, [KVC_INT4] = {"int4_wo"},
        [KVC_MXFP4] = {"w4a8_mxfp4_mxfp8", "w4a16_mxfp4"},
    };

    return keys[dtype];
}

/* Routing as in power_law_1.2, which served runs fit best; those on the Triton kernel that SGLang
 * took from vLLM, of four models, fit even routing (docs/models.md). */
#define SKEW 1.6
#define EVEN 1.0

static double skew_of(const char *key)
{
    return strstr(key, "fused_moe_triton") || strstr(key, "triton_tritonexperts") ? EVEN : SKEW;
}

/* What an engine's options choose, whatever the shape. TensorRT-LLM: moe_config.backend TRTLLM for
 * nvfp4 on Blackwell, as guides and published runs have it; these rows are called min_latency, and
 * measured up to 256 experts (aiconfigurator, collector/trtllm/collect_moe.py @006afd7). Its
 * default is CUTLASS (tensorrt_llm/_torch/model_config.py, resolve_moe_backend). */
static const char *chosen(const struct kvc_kernels *k, enum kvc_dtype dtype,
                          const struct kvc_llm *llm)
{
    if (strcmp(k->backend, "trtllm") != 0)
        return NULL;
    if (llm->ungated)
        return "nongated";
    return dtype == KVC_NVFP4 && llm->experts <= 256 ? "min_latency" : NULL;
}

/* FlashInfer's fp8 kernels of CUTLASS, measured by vLLM on Hopper without the tuning that it does
 * when it starts: 4 to 6 times as long as TensorRT-LLM's rows of the same kernels, which are tuned;
 * on Blackwell 1.0 to 1.3 times (docs/models.md). */
static bool untuned(const struct kvc_kernel_store *s, const char *key)
{
    return (strcmp(s->from, "h100_sxm") == 0 || strcmp(s->from, "h200_sxm") == 0) &&
           strncmp(key, "fp8 vllm_", 9) == 0 && strstr(key, "flashinfer_cutlass");
}

struct search {
    const char *dtype, *word; /* word: only kernels that are called so */
    bool ungated;
    const double *site;
};

static bool fits(const struct kvc_kernel_store *s, const struct kvc_kernel_table *t,
                 const struct search *q)
{
    size_t n = strlen(q->dtype);

    return strcmp(t->family->name, "moe") == 0 && strncmp(t->key, q->dtype, n) == 0 &&
           (!t->key[n] || t->key[n] == ' ') && strstr(t->key, q->word) && !untuned(s, t->key) &&
           (q->ungated || !strstr(t->key, "nongated"));
}

/* TensorRT-LLM's rows were measured with the tuning kept in a file named after hidden size, width
 * and experts of a rank (collect_moe.py): shapes of two models, and routings of one, that share a
 * name took each other's and ran kernels not tuned for them, up to 7 times as long for the same
 * work of a rank. The engine tunes its own when it starts, so the fastest tells
 * (docs/models.md). */
#define UNTUNED 1.5

/* How much longer, over a few batches, a takes than b for so many times the tokens. */
static double slower(const struct kvc_kernel_answer *a, const struct kvc_kernel_answer *b,
                     double per)
{
    double sum = 0;

    for (double tokens = 16; tokens <= 256; tokens *= 4)
        sum += log(kvc_kernel_answer_ns(a, tokens, 0) / kvc_kernel_answer_ns(b, tokens * per, 0));
    return exp(sum / 3);
}

/* Takes the answer of another measured shape whose experts of a rank are as many and as large,
 * asked evenly or not, if it is that much faster for as many rows; its tokens for one of this shape
 * go to *per. */
static void take_tuned(const struct kvc_kernel_store *s, int at, const struct kvc_kernel_table *t,
                       const double *site, bool even, struct kvc_kernel_answer *a, double *per)
{
    const struct kvc_kernel_answer own = *a;
    double most = UNTUNED, rows = *per;

    for (size_t i = 0; i < t->n_sites; i++) {
        const double *place = t->site + i * KVC_KERNEL_PLACE;
        double other[KVC_KERNEL_SITE] = {site[0],
                                         site[1],
                                         round(exp2(place[2])),
                                         round(exp2(place[3])),
                                         round(exp2(place[4])),
                                         exp2(place[5])};
        double tokens = site[2] / site[4] / (other[2] / other[4]);
        struct kvc_kernel_answer b;
        if ((other[5] < 1.01) != even ||
            fabs(other[3] / other[4] - site[3] / site[4]) > 1e-9 ||
            fabs(place[0] - log2(site[0])) > 1e-3 || fabs(place[1] - log2(site[1])) > 1e-3)
            continue;
        kvc_kernels_answer(s, at, t, other, &b);
        double by = slower(&own, &b, tokens / rows);
        if (b.curve.octaves > 0 || by <= most)
            continue;
        most = by;
        *a = b;
        *per = tokens;
    }
}

/* All tables of a store that fit and have a shape as near as the nearest one. */
static void gather(struct kvc_kernels *k, int at, const struct search *q, struct kvc_moe *out)
{
    const struct kvc_kernel_store *s = kvc_kernels_store(k, at);

    for (size_t i = 0; s && i < s->tables.n; i++) {
        const struct kvc_kernel_table *t = &s->tables.table[i];
        double routed[KVC_KERNEL_SITE];
        struct kvc_kernel_answer a;
        if (!fits(s, t, q))
            continue;
        memcpy(routed, q->site, sizeof routed);
        routed[5] = skew_of(t->key);
        kvc_kernels_answer(s, at, t, routed, &a);
        if (out->n == 0 || a.curve.octaves < out->octaves) {
            out->n = 0;
            out->octaves = a.curve.octaves;
        }
        if (a.curve.octaves > out->octaves || out->n == sizeof out->kernel / sizeof *out->kernel)
            continue;
        out->per[out->n] = 1;
        if (strstr(t->key, "moe_torch_flow")) {
            take_tuned(s, at, t, routed, false, &a, &out->per[out->n]);
            take_tuned(s, at, t, routed, true, &a, &out->per[out->n]);
        }
        out->kernel[out->n++] = a;
    }
}

/* The first store that has such a kernel. */
static void gather_named(struct kvc_kernels *k, const int *order, size_t n, struct search q,
                         struct kvc_moe *out)
{
    for (size_t i = 0; q.word && i < n && out->n == 0; i++)
        gather(k, order[i], &q, out);
}

bool kvc_kernels_moe(struct kvc_kernels *kernels, enum kvc_dtype dtype, bool narrow,
                     const char *kernel, const struct kvc_llm *llm, uint32_t tp, uint32_t ep,
                     struct kvc_moe *out)
{
    static const int all[] = {USERS, OWN, OWN_FOREIGN, LIKE, LIKE_FOREIGN};
    static const int own[] = {USERS, OWN, LIKE}, foreign[] = {OWN_FOREIGN, LIKE_FOREIGN};
    const double site[KVC_KERNEL_SITE] = {llm->hidden, (double)llm->expert_intermediate / tp,
                                          llm->top_k,  llm->experts, ep};
    const char *const *name = moe_keys(dtype);
    struct search q = {name[0], kernel ? kernel : narrow ? "" : NULL, llm->ungated, site};

    memset(out, 0, sizeof *out);
    gather_named(kernels, all, 5, q, out);
    q.word = chosen(kernels, dtype, llm);
    gather_named(kernels, own, 3, q, out);
    q.word = "";
    for (size_t i = 0; i < 3 && out->n == 0; i++)
        for (size_t j = 0; j < 2 && name[j]; j++) {
            q.dtype = name[j];
            if (out->n == 0 || out->octaves > 0)
                gather(kernels, own[i], &q, out);
        }
    q.dtype = name[0];
    if (dtype == KVC_FP8 && strcmp(kernels->backend, "vllm") == 0)
        gather_named(kernels, foreign, 2, q, out);
    for (size_t i = 0; i < out->n; i++)
        kvc_kernels_note(kernels, "experts", &out->kernel[i]);
    return out->n > 0;
}

double kvc_moe_ns(const struct kvc_moe *moe, double tokens)
{
    double least = HUGE_VAL;

    for (size_t i = 0; i < moe->n; i++) {
        double ns = kvc_kernel_answer_ns(&moe->kernel[i], tokens * moe->per[i], 0);
        if (ns < least)
            least = ns;
    }
    return least;
}
