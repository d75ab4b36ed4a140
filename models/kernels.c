/* SPDX-License-Identifier: Apache-2.0 */
#include "models/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

struct kvc_kernels {
    struct kvc_jval *doc;
    const struct kvc_gpu *gpu;
    bool measured;
};

enum kvc_status kvc_kernels_load(struct kvc_kernels **out, const struct kvc_gpu *gpu,
                                 const char *backend, struct kvc_error *err)
{
    char name[128];
    struct kvc_kernels *k = kvc_calloc(1, sizeof *k);

    if (!k)
        return kvc_fail_nomem(err);
    k->gpu = gpu;
    k->measured = true;
    snprintf(name, sizeof name, "kernels_%s_%s.json", gpu->id, backend);
    const struct kvc_blob *blob = kvc_blob_find(name);
    if (!blob) {
        k->measured = false;
        snprintf(name, sizeof name, "kernels_generic_%s.json", backend);
        blob = kvc_blob_find(name);
    }
    enum kvc_status status =
        blob ? kvc_json_parse(&k->doc, (const char *)blob->data, blob->size, false, name, 1, err)
             : kvc_fail(err, KVC_ERR_UNSUPPORTED, "no kernel times for engine backend '%s'",
                        backend);
    if (status != KVC_OK) {
        kvc_kernels_destroy(k);
        return status;
    }
    const struct kvc_jval *measured = kvc_jval_member(k->doc, "measured");
    if (measured)
        kvc_jval_bool(measured, &k->measured);
    *out = k;
    return KVC_OK;
}

void kvc_kernels_destroy(struct kvc_kernels *kernels)
{
    if (!kernels)
        return;
    kvc_json_free(kernels->doc);
    kvc_free(kernels);
}

bool kvc_kernels_measured(const struct kvc_kernels *kernels)
{
    return kernels->measured;
}

static const struct kvc_jval *member2(const struct kvc_jval *v, const char *a, const char *b)
{
    v = v ? kvc_jval_member(v, a) : NULL;
    return v && b ? kvc_jval_member(v, b) : v;
}

/* Numbers in text separated by blanks; returns how many were read. */
static size_t numbers(const char *text, double *out, size_t max)
{
    size_t n = 0;

    while (n < max) {
        char *end;
        double v = strtod(text, &end);
        if (end == text)
            break;
        out[n++] = v;
        text = end;
    }
    return n;
}

const char *kvc_kernels_dtype(enum kvc_dtype weights)
{
    switch (weights) {
    case KVC_FP8:
        return "fp8";
    case KVC_FP8_BLOCK:
        return "fp8_block";
    case KVC_NVFP4:
        return "nvfp4";
    case KVC_BF16:
    case KVC_MXFP4: /* only the experts are 4-bit */
        return "bf16";
    default:
        return NULL;
    }
}

static double peak_of(const struct kvc_gpu *gpu, const char *dtype)
{
    if (strncmp(dtype, "fp8", 3) == 0)
        return gpu->fp8_flops.value;
    if (strcmp(dtype, "nvfp4") == 0)
        return gpu->fp4_flops.value;
    return gpu->bf16_flops.value;
}

struct near {
    double distance;
    const char *ratios;
};

static void near_insert(struct near best[4], double distance, const char *ratios)
{
    for (int i = 0; i < 4; i++) {
        if (distance < best[i].distance) {
            memmove(best + i + 1, best + i, (size_t)(3 - i) * sizeof *best);
            best[i] = (struct near){distance, ratios};
            return;
        }
    }
}

/* Reads the knots (their logarithms) and blends the rows "a b: percent .." of table: the
 * inverse-distance mean of the nearest four (a, b), distance in log2. Returns the knots. */
static uint32_t blend(const struct kvc_jval *object, const char *knots_key, const char *table_key,
                      double a, double b, double *log_knots, double *ratio)
{
    struct near best[4] = {{HUGE_VAL, NULL}, {HUGE_VAL, NULL}, {HUGE_VAL, NULL}, {HUGE_VAL, NULL}};
    const struct kvc_jval *table = kvc_jval_member(object, table_key);
    const char *knots = kvc_profile_string(object, knots_key);
    double weight = 0, row[KVC_M_KNOTS], la = log2(a), lb = log2(b);

    if (!table || !knots)
        return 0;
    uint32_t n = (uint32_t)numbers(knots, log_knots, KVC_M_KNOTS);
    for (const struct kvc_jval *v = kvc_jval_first(table); v; v = kvc_jval_next(v)) {
        const char *text = kvc_jval_string(v);
        const char *colon = text ? strchr(text, ':') : NULL;
        double at[2];
        if (!colon || numbers(text, at, 2) != 2)
            continue;
        double da = log2(at[0]) - la, db = log2(at[1]) - lb;
        near_insert(best, sqrt(da * da + db * db), colon + 1);
    }
    for (uint32_t j = 0; j < n; j++) {
        log_knots[j] = log(log_knots[j]);
        ratio[j] = 0;
    }
    bool exact = best[0].distance < 1e-9;
    for (int i = 0; i < (exact ? 1 : 4) && best[i].ratios; i++) {
        double w = exact ? 1.0 : 1.0 / best[i].distance;
        if (numbers(best[i].ratios, row, n) != n)
            continue;
        for (uint32_t j = 0; j < n; j++)
            ratio[j] += w * row[j] / 100;
        weight += w;
    }
    for (uint32_t j = 0; j < n; j++)
        ratio[j] = weight > 0 ? ratio[j] / weight : 1.0;
    return n;
}

enum kvc_status kvc_kernels_gemm(const struct kvc_kernels *kernels, enum kvc_dtype dtype,
                                 uint32_t n, uint32_t k, const struct kvc_engine_profile *engine,
                                 struct kvc_gemm *out, struct kvc_error *err)
{
    const char *name = kvc_kernels_dtype(dtype);
    const struct kvc_jval *table = name ? member2(kernels->doc, "gemm", name) : NULL;

    if (!table || peak_of(kernels->gpu, name) <= 0)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "weights_dtype",
                           "no times of matrix products with such weights on %s; use bf16 or fp8",
                           kernels->gpu->id);
    double peak = peak_of(kernels->gpu, name), bandwidth = kernels->gpu->hbm_bytes_per_s.value;
    *out = (struct kvc_gemm){
        .n = n,
        .k = k,
        .overhead_ns = 1e3 * kvc_profile_number(table, "overhead_us", 0),
        .flops = kvc_profile_number(table, "compute_efficiency", 1) * peak,
        .peak_flops = peak,
        .bytes_per_s = kvc_profile_number(table, "bandwidth_efficiency", 1) * bandwidth,
        .peak_bytes_per_s = bandwidth,
        .activation_bytes = kvc_profile_number(table, "activation_bytes", 2),
        .weight_bytes = kvc_profile_number(table, "weight_bytes", 2),
    };
    out->minus_ns = kvc_profile_number(table, "quantise_ns", 0);
    if (!engine->fuses_quantise)
        out->minus_ns = 0;
    if (out->minus_ns > 0) {
        out->floor_ns = engine->fused_floor_ns.value +
                        1e9 * (double)n * k * out->weight_bytes / (0.95 * bandwidth);
    }
    out->knots = blend(table, "m", "percent_of_roofline", n, k, out->log_m, out->ratio);
    return KVC_OK;
}

/* y at x between ascending knots, held constant outside them. */
static double between(const double *xs, const double *ys, size_t n, double x)
{
    if (n == 0)
        return 1.0;
    if (x <= xs[0])
        return ys[0];
    for (size_t i = 1; i < n; i++)
        if (x <= xs[i])
            return ys[i - 1] + (x - xs[i - 1]) / (xs[i] - xs[i - 1]) * (ys[i] - ys[i - 1]);
    return ys[n - 1];
}

double kvc_gemm_ns(const struct kvc_gemm *g, double m)
{
    double flops = 2.0 * m * g->n * g->k, weights = g->n * g->k * g->weight_bytes;
    double bytes = m * g->k * g->activation_bytes + weights + 2.0 * m * g->n;
    double compute = flops / g->flops, memory = bytes / g->bytes_per_s;
    double ns = g->overhead_ns + 1e9 * (compute > memory ? compute : memory);

    ns *= between(g->log_m, g->ratio, g->knots, log(m));
    if (g->minus_ns > 0) {
        ns -= g->minus_ns;
        if (ns < g->floor_ns)
            ns = g->floor_ns;
    }
    /* Small weights re-read by the benchmark come from L2; in a model they come from HBM. */
    double bound = 1e9 * (flops / g->peak_flops), stream = 1e9 * (weights / g->peak_bytes_per_s);
    if (bound < stream)
        bound = stream;
    return ns > bound ? ns : bound;
}

/* The entry of object (keyed by head size) nearest to head_dim. */
static const struct kvc_jval *nearest_dim(const struct kvc_jval *object, uint32_t head_dim,
                                          bool *exact)
{
    const struct kvc_jval *best = NULL;
    double best_distance = HUGE_VAL;

    for (const struct kvc_jval *v = object ? kvc_jval_first(object) : NULL; v;
         v = kvc_jval_next(v)) {
        double distance = fabs(log((double)atoi(kvc_jval_key(v)) / head_dim));
        if (distance < best_distance) {
            best = v;
            best_distance = distance;
        }
    }
    if (exact)
        *exact = best_distance == 0.0;
    return best;
}

static const char *kv_name(enum kvc_dtype kv)
{
    return kv == KVC_BF16 ? "bf16" : "fp8";
}

bool kvc_kernels_decode(const struct kvc_kernels *kernels, enum kvc_dtype kv, uint32_t head_dim,
                        struct kvc_decode_form *out, bool *exact)
{
    const struct kvc_jval *v =
        nearest_dim(member2(kernels->doc, "decode_attention", kv_name(kv)), head_dim, exact);

    if (!v)
        return false;
    *out = (struct kvc_decode_form){kvc_profile_number(v, "overhead_ns", 0),
                                    kvc_profile_number(v, "bandwidth_efficiency", 0)};
    return out->bandwidth_efficiency > 0;
}

bool kvc_kernels_prefill(const struct kvc_kernels *kernels, enum kvc_dtype kv, uint32_t head_dim,
                         uint32_t heads, uint32_t kv_heads, struct kvc_prefill_form *out,
                         bool *exact)
{
    const struct kvc_jval *v =
        nearest_dim(member2(kernels->doc, "prefill_attention", kv_name(kv)), head_dim, exact);
    double flops;

    if (!v)
        return false;
    /* The generic file states a share of the GPU's own peak instead of a rate. */
    flops = kvc_profile_number(v, "flops", 0);
    if (flops <= 0)
        flops = kvc_profile_number(v, "compute_efficiency", 0) * kernels->gpu->bf16_flops.value;
    *out = (struct kvc_prefill_form){.launch_ns = kvc_profile_number(v, "launch_ns", 0),
                                     .flops = flops,
                                     .q0 = kvc_profile_number(v, "q0", 0),
                                     .p0 = kvc_profile_number(v, "p0", 0)};
    out->knots =
        blend(v, "tokens", "percent_of_form", heads, kv_heads, out->log_tokens, out->ratio);
    return flops > 0;
}

double kvc_prefill_ratio(const struct kvc_prefill_form *form, double tokens)
{
    return between(form->log_tokens, form->ratio, form->knots, log(tokens));
}

bool kvc_kernels_mla(const struct kvc_kernels *kernels, enum kvc_dtype kv, struct kvc_mla_form *out)
{
    const struct kvc_jval *v = member2(kernels->doc, "mla", kv_name(kv));

    if (!v)
        return false;
    *out = (struct kvc_mla_form){kvc_profile_number(v, "decode_overhead_ns", 0),
                                 kvc_profile_number(v, "decode_bandwidth", 0),
                                 kvc_profile_number(v, "decode_compute", 0),
                                 kvc_profile_number(v, "prefill_overhead_ns", 0),
                                 kvc_profile_number(v, "prefill_compute", 0),
                                 kvc_profile_number(v, "prefill_c", 0)};
    return out->decode_bandwidth > 0 && out->decode_compute > 0 && out->prefill_compute > 0;
}

/* "gpus: bytes ns bytes ns .." of one implementation, the part with lo < bytes <= hi. */
static void allreduce_rows(const struct kvc_jval *impl, uint32_t gpus, double lo, double hi,
                           struct kvc_allreduce *out)
{
    const struct kvc_jval *list = impl ? kvc_jval_member(impl, "bytes_ns") : NULL;

    for (const struct kvc_jval *v = list ? kvc_jval_first(list) : NULL; v; v = kvc_jval_next(v)) {
        const char *text = kvc_jval_string(v);
        const char *colon = text ? strchr(text, ':') : NULL;
        double pairs[128];
        if (!colon || (uint32_t)strtoul(text, NULL, 10) != gpus)
            continue;
        size_t n = numbers(colon + 1, pairs, 128) / 2;
        for (size_t i = 0; i < n && out->n < 64; i++) {
            if (pairs[2 * i] <= lo || pairs[2 * i] > hi)
                continue;
            out->bytes[out->n] = pairs[2 * i];
            out->ns[out->n++] = pairs[2 * i + 1];
        }
    }
}

bool kvc_kernels_allreduce(const struct kvc_kernels *kernels, uint32_t gpus,
                           double custom_max_bytes, struct kvc_allreduce *out)
{
    out->n = 0;
    allreduce_rows(member2(kernels->doc, "allreduce", "graph"), gpus, 0, custom_max_bytes, out);
    allreduce_rows(member2(kernels->doc, "allreduce", "nccl"), gpus, custom_max_bytes, HUGE_VAL,
                   out);
    /* A message can always be padded to a larger one, so the table must not fall. B200's 8-GPU
     * table has such a hump below 1 MB that served runs do not show. */
    for (size_t i = out->n; i-- > 1;)
        if (out->ns[i - 1] > out->ns[i])
            out->ns[i - 1] = out->ns[i];
    return out->n >= 4;
}

double kvc_allreduce_ns(const struct kvc_allreduce *a, double bytes)
{
    if (a->n == 0)
        return 0;
    if (bytes <= a->bytes[0])
        return a->ns[0];
    for (size_t i = 1; i < a->n; i++)
        if (bytes <= a->bytes[i])
            return a->ns[i - 1] + (bytes - a->bytes[i - 1]) / (a->bytes[i] - a->bytes[i - 1]) *
                                      (a->ns[i] - a->ns[i - 1]);
    return a->ns[a->n - 1] * (bytes / a->bytes[a->n - 1]);
}

bool kvc_kernels_moe(const struct kvc_kernels *kernels, enum kvc_dtype dtype,
                     const struct kvc_llm *llm, uint32_t tp, uint32_t ep, struct kvc_moe *out)
{
    static const char *const names[] = {"bf16",  "fp8",  "fp8_block", "nvfp4",
                                        "mxfp4", "int8", "int4"};
    const struct kvc_jval *table = member2(kernels->doc, "moe", names[dtype]);
    const struct kvc_jval *list = table ? kvc_jval_member(table, "tokens_us") : NULL;

    out->n = 0;
    for (const struct kvc_jval *v = list ? kvc_jval_first(list) : NULL; v; v = kvc_jval_next(v)) {
        const char *text = kvc_jval_string(v);
        const char *colon = text ? strchr(text, ':') : NULL;
        double shape[6], pairs[64];
        if (!colon || numbers(text, shape, 6) != 6 || shape[0] != llm->hidden ||
            shape[1] != llm->expert_intermediate || shape[2] != llm->top_k ||
            shape[3] != llm->experts || shape[4] != tp || shape[5] != ep)
            continue;
        out->n = numbers(colon + 1, pairs, 64) / 2;
        for (size_t i = 0; i < out->n; i++) {
            out->tokens[i] = pairs[2 * i];
            out->ns[i] = 1e3 * pairs[2 * i + 1];
        }
        return out->n >= 4;
    }
    return false;
}

double kvc_moe_ns(const struct kvc_moe *moe, double tokens)
{
    if (tokens <= moe->tokens[0])
        return moe->ns[0];
    for (size_t i = 1; i < moe->n; i++) {
        if (tokens > moe->tokens[i])
            continue;
        double f = log(tokens / moe->tokens[i - 1]) / log(moe->tokens[i] / moe->tokens[i - 1]);
        return exp(log(moe->ns[i - 1]) + f * (log(moe->ns[i]) - log(moe->ns[i - 1])));
    }
    return moe->ns[moe->n - 1] * (tokens / moe->tokens[moe->n - 1]);
}

void kvc_kernels_source(const struct kvc_kernels *kernels, const char *part, const char **kind,
                        const char **source)
{
    char key[32];
    const struct kvc_jval *v = kernels->doc;

    while (v && *part) {
        size_t n = strcspn(part, ".");
        if (n >= sizeof key)
            break;
        memcpy(key, part, n);
        key[n] = '\0';
        v = kvc_jval_member(v, key);
        part += n + (part[n] == '.');
    }
    *kind = v ? kvc_profile_string(v, "kind") : NULL;
    *source = v ? kvc_profile_string(v, "source") : NULL;
    if (!*kind)
        *kind = "assumed";
    if (!*source)
        *source = "not measured";
}

/* Entries are objects with a source, at depth two or three. */
static void tell_parts(const struct kvc_jval *object, const char *prefix, int depth,
                       kvc_kernel_part_fn fn, void *user)
{
    for (const struct kvc_jval *v = kvc_jval_first(object); v; v = kvc_jval_next(v)) {
        char part[96];
        if (kvc_jval_kind(v) != KVC_JOBJECT)
            continue;
        snprintf(part, sizeof part, "%s%s%s", prefix, *prefix ? "." : "", kvc_jval_key(v));
        const char *kind = kvc_profile_string(v, "kind"), *source = kvc_profile_string(v, "source");
        const struct kvc_jval *residual = kvc_jval_member(v, "residual");
        if (kind && source)
            fn(user, part, kind, source,
               residual ? kvc_profile_number(residual, "mape_percent", NAN) : NAN);
        else if (depth < 3)
            tell_parts(v, part, depth + 1, fn, user);
    }
}

void kvc_kernels_parts(const struct kvc_kernels *kernels, kvc_kernel_part_fn fn, void *user)
{
    tell_parts(kernels->doc, "", 1, fn, user);
}
