/* SPDX-License-Identifier: Apache-2.0 */
#include "models/kernel_family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kvc_peaks kvc_peaks_of(const struct kvc_gpu *gpu)
{
    struct kvc_peaks p = {gpu->bf16_flops.value, gpu->fp8_flops.value, gpu->fp4_flops.value,
                          gpu->hbm_bytes_per_s.value};

    /* A GPU without the narrow units runs such weights on the next wider ones. */
    if (!(p.fp8_flops > 0))
        p.fp8_flops = p.bf16_flops;
    if (!(p.fp4_flops > 0))
        p.fp4_flops = p.fp8_flops;
    return p;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* ---- reading ---- */

struct reader {
    void *user;
    kvc_column_fn get;
    struct kvc_kernel_row *row;
    size_t x, p;
    bool ok;
};

static double number(struct reader *r, const char *column)
{
    const char *text = r->get(r->user, column);
    char *end;
    double v = strtod(text, &end);

    if (end == text || *end || !(v >= 0) || !(v < 1e18))
        r->ok = false;
    return v;
}

static void put(struct reader *r, double x)
{
    if (!(x > 0))
        r->ok = false;
    r->row->x[r->x++] = x;
}

static void param(struct reader *r, double value)
{
    r->row->params[r->p++] = value;
}

static void key(struct reader *r, const char *text)
{
    size_t n = strlen(r->row->key);

    snprintf(r->row->key + n, KVC_KERNEL_KEY - n, "%s%s", n ? " " : "", text);
}

static void key_column(struct reader *r, const char *column)
{
    const char *text = r->get(r->user, column);

    if (*text)
        key(r, text);
}

static struct reader begin(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = {user, get, row, 0, 0, true};

    memset(row, 0, sizeof *row);
    row->ns = 1e6 * number(&r, "latency");
    if (!(row->ns > 0))
        r.ok = false;
    return r;
}

static double dtype_bytes(const char *name)
{
    static const struct {
        const char *name;
        double bytes;
    } known[] = {{"bfloat16", 2},     {"half", 2},           {"fp8", 1},          {"fp8_block", 1},
                 {"nvfp4", 0.5625},   {"w4a16_mxfp4", 0.53}, {"int4_wo", 0.516},  {"int8", 1},
                 {"w4a8_mxfp4_mxfp8", 0.53}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].bytes;
    return 2;
}

enum { PEAK_BF16, PEAK_FP8, PEAK_FP4 };

/* Which units multiply: 4-bit weights beside wide activations are widened first. */
static double dtype_peak(const char *name)
{
    if (strcmp(name, "nvfp4") == 0)
        return PEAK_FP4;
    return strstr(name, "fp8") || strcmp(name, "int8") == 0 ? PEAK_FP8 : PEAK_BF16;
}

static double peak_flops(const struct kvc_peaks *peaks, double which)
{
    return which == PEAK_FP4   ? peaks->fp4_flops
           : which == PEAK_FP8 ? peaks->fp8_flops
                               : peaks->bf16_flops;
}

/* ---- matrix products ---- */

static bool read_gemm(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = begin(user, get, row);
    const char *dtype = get(user, "gemm_dtype");
    double m = number(&r, "m");

    put(&r, number(&r, "n"));
    put(&r, number(&r, "k"));
    put(&r, m);
    key(&r, dtype);
    if (m > 16 && fmod(m, 16) != 0) /* kernels fall back or pad: a table of its own */
        key(&r, "odd");
    param(&r, strcmp(dtype, "nvfp4") == 0 ? 0.5625 : dtype_bytes(dtype) < 2 ? 1 : 2);
    param(&r, dtype_bytes(dtype));
    param(&r, dtype_peak(dtype));
    if (row->x[0] < 512 || row->x[1] < 512)
        row->excluded = "n or k below 512";
    return r.ok;
}

static double gemm_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                        const double *x)
{
    double n = x[0], k = x[1], m = x[2];
    double compute = 2 * m * n * k / (c[1] * peak_flops(peaks, p[2]));
    double bytes = m * k * p[0] + n * k * p[1] + 2 * m * n;

    return c[0] + 1e9 * larger(compute, bytes / (c[2] * peaks->bytes_per_s));
}

/* ---- attention ---- */

static struct reader read_attention(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = begin(user, get, row);
    double window = *get(user, "window_size") ? number(&r, "window_size") : 0;
    double dim = number(&r, "head_dim");
    char text[64];

    snprintf(text, sizeof text, "%s %s d%g w%g", get(user, "attn_dtype"),
             get(user, "kv_cache_dtype"), dim, window);
    key(&r, text);
    key_column(&r, "kernel_source");
    put(&r, number(&r, "num_heads"));
    put(&r, number(&r, "num_key_value_heads"));
    put(&r, number(&r, "batch_size"));
    param(&r, dtype_bytes(get(user, "kv_cache_dtype")));
    param(&r, dim);
    param(&r, window);
    return r;
}

static bool read_generation(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = read_attention(user, get, row);
    double context = number(&r, "isl") + number(&r, "step");

    put(&r, context);
    if (context < 256)
        row->excluded = "context below 256 tokens";
    else if (row->x[2] > 512)
        row->excluded = "more than 512 sequences";
    return r.ok;
}

static double generation_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                              const double *x)
{
    double keys = p[2] > 0 ? smaller(x[3], p[2]) : x[3];
    double bytes = x[2] * p[1] * (2 * keys * x[1] * p[0] + 4 * x[0]);

    return c[0] + 1e9 * bytes / (c[1] * peaks->bytes_per_s);
}

static bool read_context(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = read_attention(user, get, row);

    put(&r, number(&r, "isl"));
    if (number(&r, "step") > 0)
        row->excluded = "a prefix before the new tokens";
    else if (row->x[3] < 64)
        row->excluded = "fewer than 64 new tokens";
    else if (row->params[1] != 128)
        row->excluded = "head size other than 128";
    return r.ok;
}

/* Launch, and the products of query tiles with their keys on at most so many tiles at once. */
static double tiled(const double *c, double flops, double tiles, double slots, double peak)
{
    return c[0] + 1e9 * flops / (c[1] * peak) * larger(1, slots / tiles);
}

static double context_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                           const double *x)
{
    double s = x[3], window = p[2] > 0 && p[2] < s ? p[2] : s;
    double pairs = s * (window + 64) - window * window / 2; /* a tile's corner is wasted */
    double tiles = x[2] * x[0] * ceil(s / 128);
    double io = x[2] * s * p[1] * (4 * x[0] + 2 * x[1] * p[0]);

    /* Bytes in and out pass through the multiprocessors: their rate follows the products', at an
     * H100's 295 flops a byte, not the memory's (an H200 is no faster there). */
    return tiled(c, 4 * x[2] * x[0] * p[1] * pairs, tiles, c[3], peaks->bf16_flops) +
           1e9 * io / (c[2] * peaks->bf16_flops / 295);
}

/* ---- latent attention ---- */

static bool read_mla(void *user, kvc_column_fn get, struct kvc_kernel_row *row, bool context)
{
    struct reader r = begin(user, get, row);
    double new_tokens = number(&r, "isl"), past = number(&r, "step");

    key_column(&r, "mla_dtype");
    key_column(&r, "kv_cache_dtype");
    key_column(&r, "gemm_type");
    key_column(&r, "kernel_source");
    put(&r, number(&r, "num_heads"));
    put(&r, number(&r, "batch_size"));
    put(&r, context ? new_tokens : new_tokens + past);
    param(&r, dtype_bytes(get(user, "kv_cache_dtype")));
    if (context && past > 0)
        row->excluded = "a prefix before the new tokens";
    else if (context && new_tokens < 64)
        row->excluded = "fewer than 64 new tokens";
    else if (!context && new_tokens + past < 256)
        row->excluded = "context below 256 tokens";
    else if (!context && row->x[1] > 512)
        row->excluded = "more than 512 sequences";
    return r.ok;
}

static bool read_generation_mla(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    return read_mla(user, get, row, false);
}

static bool read_context_mla(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    return read_mla(user, get, row, true);
}

static double generation_mla_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                                  const double *x)
{
    double memory = x[1] * x[2] * 576 * p[0] / (c[1] * peaks->bytes_per_s);
    double compute = 2 * x[1] * x[0] * x[2] * 1088 / (c[2] * peaks->bf16_flops);

    return c[0] + 1e9 * larger(memory, compute);
}

static double context_mla_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                               const double *x)
{
    double tiles = x[1] * x[0] * ceil(x[2] / 128);

    (void)p;
    return tiled(c, 640 * x[1] * x[0] * x[2] * (x[2] / 2 + 64), tiles, c[2], peaks->bf16_flops);
}

/* A whole block: launches, projections of each token, attention. */
static double context_block_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                                 const double *x)
{
    double tokens = x[1] * x[2];

    (void)p;
    return c[0] + 1e9 * tokens * 1e6 * ((64 + x[0]) / (c[1] * peaks->bf16_flops) +
                                        x[0] * x[2] * 3e-4 / (c[2] * peaks->bf16_flops));
}

static double generation_block_form(const double *c, const double *p,
                                    const struct kvc_peaks *peaks, const double *x)
{
    return c[0] + 1e9 * x[1] * (1e6 * (64 + x[0]) / (c[1] * peaks->bf16_flops) +
                                x[2] * 576 * p[0] / (c[2] * peaks->bytes_per_s));
}

static bool read_bmm(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = begin(user, get, row);

    key_column(&r, "op_name");
    key_column(&r, "bmm_dtype");
    key_column(&r, "kernel_source");
    put(&r, number(&r, "num_heads"));
    put(&r, number(&r, "num_tokens"));
    return r.ok;
}

static double bmm_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                       const double *x)
{
    (void)p;
    return c[0] + 1e9 * x[0] * (131072 / (c[1] * peaks->bytes_per_s) +
                                x[1] * 131072 / (c[2] * peaks->bf16_flops));
}

/* ---- experts ---- */

static bool read_moe(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = begin(user, get, row);
    const char *dtype = get(user, "moe_dtype"), *routing = get(user, "distribution");
    const char *power = strrchr(routing, '_');
    double tp = number(&r, "moe_tp_size"), ep = larger(1, number(&r, "moe_ep_size"));

    key(&r, dtype);
    key_column(&r, "kernel_source");
    put(&r, number(&r, "hidden_size"));
    put(&r, number(&r, "inter_size") / larger(1, tp));
    put(&r, number(&r, "topk"));
    put(&r, number(&r, "num_experts"));
    put(&r, ep);
    put(&r, 1 + (power ? strtod(power + 1, NULL) / 2 : 0)); /* how uneven the routing is */
    put(&r, number(&r, "num_tokens"));
    param(&r, dtype_bytes(dtype));
    param(&r, strcmp(dtype, "w4a8_mxfp4_mxfp8") == 0 ? PEAK_FP8 : dtype_peak(dtype));
    return r.ok;
}

static double moe_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                       const double *x)
{
    double hidden = x[0], inter = x[1], top = x[2], experts = x[3], ep = x[4], tokens = x[6];
    double touched = experts / ep * (1 - pow(1 - smaller(1, top / experts), tokens));
    double memory = touched * 3 * hidden * inter * p[0] / (c[2] * peaks->bytes_per_s);
    double rows = tokens * top / ep;
    double compute = 6 * hidden * inter * rows / (c[1] * peak_flops(peaks, p[1]));
    double io = rows * (4 * hidden + 6 * inter) + 4 * tokens * hidden;

    return c[0] + 1e9 * (larger(memory, compute) + io / (c[3] * peaks->bytes_per_s));
}

/* How often a width halves, up to 128: tiles that do not fit are another kernel or wasted. And the
 * experts of a rank. */
static void moe_derive(const double *site, double *out)
{
    unsigned long width = (unsigned long)(site[1] + 0.5);

    for (out[0] = 0; out[0] < 7 && width % 2 == 0; width /= 2)
        out[0]++;
    out[1] = log2(site[3] / site[4]);
}

/* ---- collectives ---- */

static bool read_collective(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = begin(user, get, row);
    const char *dtype = *get(user, "nccl_dtype") ? get(user, "nccl_dtype")
                                                 : get(user, "allreduce_dtype");
    const char *how = *get(user, "implementation") ? get(user, "implementation")
                                                   : get(user, "kernel_source");

    key_column(&r, "op_name");
    key(&r, dtype);
    key(&r, how);
    put(&r, number(&r, "num_gpus"));
    put(&r, dtype_bytes(dtype) * number(&r, "message_size"));
    if (strstr(how, "eager"))
        row->excluded = "not captured in a graph";
    return r.ok;
}

static double collective_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                              const double *x)
{
    (void)p;
    (void)peaks;
    return c[0] + x[1] / c[1];
}

/* ---- linear attention ---- */

static bool read_linear(void *user, kvc_column_fn get, struct kvc_kernel_row *row)
{
    struct reader r = begin(user, get, row);
    bool mamba = *get(user, "nheads") != '\0';

    key_column(&r, "phase");
    key_column(&r, "kernel_source");
    put(&r, number(&r, "d_model"));
    put(&r, number(&r, mamba ? "n_groups" : "num_k_heads"));
    put(&r, number(&r, mamba ? "nheads" : "num_v_heads"));
    put(&r, number(&r, mamba ? "d_state" : "head_v_dim"));
    put(&r, number(&r, "batch_size"));
    put(&r, number(&r, "seq_len"));
    return r.ok;
}

static double linear_form(const double *c, const double *p, const struct kvc_peaks *peaks,
                          const double *x)
{
    (void)p;
    /* the state of each value head, and channels of keys, queries and values for each token */
    double bytes = 100 * x[2] + c[2] * x[5] * (2 * x[1] + x[2]);

    return c[0] + 1e9 * x[4] * x[3] * bytes / (c[1] * peaks->bytes_per_s);
}

static const struct kvc_kernel_family families[] = {
    {.name = "gemm", .x = "n, k; tokens m", .claim = "n and k from 512",
     .rough = 1.5, .n_site = 2, .n_axes = 1, .n_group = 2, .n_dtype = 1, .n_constants = 3,
     .start = {5e3, 0.6, 0.8},
     .form = gemm_form, .read = read_gemm},
    {.name = "generation_attention", .x = "heads, KV heads; sequences, context",
     .claim = "context from 256 tokens, up to 512 sequences",
     .rough = 1, .n_site = 2, .n_axes = 2, .n_group = 2, .n_dtype = 2, .least = {0, 64},
     .n_constants = 2, .start = {1e4, 0.8},
     .form = generation_form, .read = read_generation},
    {.name = "context_attention", .x = "heads, KV heads; sequences, new tokens",
     .claim = "from 64 new tokens without a prefix, heads of 128",
     .rough = 1, .n_site = 2, .n_axes = 2, .n_group = 2, .n_dtype = 2, .least = {0, 16},
     .n_constants = 4, .start = {1e4, 0.6, 0.5, 132},
     .form = context_form, .read = read_context},
    {.name = "generation_mla", .x = "heads; sequences, context",
     .claim = "context from 256 tokens, up to 512 sequences",
     .rough = 1, .n_site = 1, .n_axes = 2, .n_group = 1, .n_dtype = 2, .least = {0, 64},
     .n_constants = 3, .start = {1.5e4, 0.8, 0.5},
     .form = generation_mla_form, .read = read_generation_mla},
    {.name = "context_mla", .x = "heads; sequences, new tokens",
     .claim = "from 64 new tokens without a prefix",
     .rough = 1, .n_site = 1, .n_axes = 2, .n_group = 1, .n_dtype = 2, .least = {0, 16},
     .n_constants = 3, .start = {2e4, 0.5, 132},
     .form = context_mla_form, .read = read_context_mla},
    {.name = "mla_generation_module", .x = "heads; sequences, context",
     .claim = "context from 256 tokens, up to 512 sequences",
     .rough = 1, .n_site = 1, .n_axes = 2, .n_group = 1, .n_dtype = 3, .least = {0, 64},
     .n_constants = 3, .start = {6e4, 0.5, 0.5},
     .form = generation_block_form, .read = read_generation_mla},
    {.name = "mla_context_module", .x = "heads; sequences, new tokens",
     .claim = "from 64 new tokens without a prefix",
     .rough = 1, .n_site = 1, .n_axes = 2, .n_group = 1, .n_dtype = 3, .least = {0, 16},
     .n_constants = 3, .start = {6e4, 0.5, 0.5},
     .form = context_block_form, .read = read_context_mla},
    {.name = "mla_bmm", .x = "heads; tokens", .claim = "as measured",
     .rough = 1, .n_site = 1, .n_axes = 1, .n_group = 1, .n_dtype = 2, .n_constants = 3,
     .start = {5e3, 0.7, 0.5},
     .form = bmm_form, .read = read_bmm},
    {.name = "moe", .x = "hidden, width, top-k, experts, ranks, skew; tokens",
     .claim = "as measured",
     .rough = 1.5, .n_site = 6, .n_axes = 1, .n_group = 5, .n_dtype = 1, .n_constants = 4,
     .start = {5e4, 0.3, 0.8, 0.5},
     .n_derived = 2, .derive = moe_derive, .form = moe_form, .read = read_moe},
    {.name = "custom_allreduce", .x = "GPUs; bytes", .claim = "captured in a graph",
     .rough = 1.5, .n_site = 1, .n_axes = 1, .n_group = 1, .n_dtype = 2, .n_constants = 2,
     .start = {5e3, 200},
     .form = collective_form, .read = read_collective},
    {.name = "nccl", .x = "GPUs; bytes", .claim = "as measured",
     .rough = 1.5, .n_site = 1, .n_axes = 1, .n_group = 1, .n_dtype = 2, .n_constants = 2,
     .start = {1e4, 200},
     .form = collective_form, .read = read_collective},
    {.name = "gdn", .x = "width, key heads, value heads, head size; sequences, tokens",
     .claim = "as measured",
     .rough = 1.5, .n_site = 4, .n_axes = 2, .n_group = 4, .n_dtype = 2, .n_constants = 3,
     .start = {2e4, 0.5, 5},
     .form = linear_form, .read = read_linear},
    {.name = "kda", .x = "width, key heads, value heads, head size; sequences, tokens",
     .claim = "as measured",
     .rough = 1.5, .n_site = 4, .n_axes = 2, .n_group = 4, .n_dtype = 2, .n_constants = 3,
     .start = {2e4, 0.5, 5},
     .form = linear_form, .read = read_linear},
    {.name = "mamba2", .x = "width, groups, heads, state; sequences, tokens",
     .claim = "as measured",
     .rough = 1.5, .n_site = 4, .n_axes = 2, .n_group = 4, .n_dtype = 2, .n_constants = 3,
     .start = {2e4, 0.5, 5},
     .form = linear_form, .read = read_linear},
};

const struct kvc_kernel_family *kvc_kernel_families(size_t *n)
{
    *n = sizeof families / sizeof families[0];
    return families;
}

const struct kvc_kernel_family *kvc_kernel_family_find(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    return NULL;
}

void kvc_kernel_dtype(const struct kvc_kernel_family *family, const char *key, char *out)
{
    size_t n = 0, words = 0;

    while (key[n] && words < family->n_dtype)
        if (key[n++] == ' ')
            words++;
    if (n && key[n - 1] == ' ')
        n--;
    memcpy(out, key, n);
    out[n] = '\0';
}

double kvc_kernel_target(const struct kvc_kernel_family *family, const char *key)
{
    const char *name = family->name;

    if (strcmp(name, "gemm") == 0)
        return strncmp(key, "bfloat16", 8) == 0    ? 6
               : strncmp(key, "fp8_block", 9) == 0 ? 12
               : strncmp(key, "fp8", 3) == 0       ? 8
                                                   : NAN;
    if (strcmp(name, "generation_attention") == 0)
        return 9;
    if (strcmp(name, "context_attention") == 0)
        return 8;
    if (strcmp(name, "custom_allreduce") == 0)
        return strstr(key, "eager") ? NAN : 8;
    return strcmp(name, "moe") == 0 ? 10 : NAN;
}
