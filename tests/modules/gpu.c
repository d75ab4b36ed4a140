/* SPDX-License-Identifier: Apache-2.0
 * In place of kvcast-gpu.so: a GPU that is not there, whose kernels follow a law. */
#include <stdio.h>

#include "bench/gpu_module.h"

#define FLOPS 4e14
#define BYTES 2e12

static struct kvc_bench_row row_of(const char *what, double ns)
{
    return (struct kvc_bench_row){.what = what, .ns = ns, .repeats = 5, .spread = 0.01};
}

static bool product(const struct kvc_bench_sink *sink, double m, double n, double k)
{
    double flops = 2 * m * n * k, bytes = 2 * (m * k + n * k + m * n);
    double compute = flops / (0.7 * FLOPS), memory = bytes / (0.85 * BYTES);
    struct kvc_bench_row row =
        row_of("gemm", 4000 + 1e9 * (compute > memory ? compute : memory));

    snprintf(row.how, sizeof row.how, "bf16 m %.0f, n %.0f, k %.0f", m, n, k);
    row.rate = flops / row.ns * 1e9;
    row.kernel = (struct kvc_bench_kernel){.family = "gemm", .dtype = "bfloat16", .name = "law",
                                           .m = (uint32_t)m, .n = (uint32_t)n, .k = (uint32_t)k};
    return sink->row(sink->user, &row);
}

static bool attention(const struct kvc_bench_sink *sink, double sequences, double context)
{
    double bytes = sequences * context * 4096;
    struct kvc_bench_row row = row_of("attention", 9000 + 1e9 * bytes / (0.4 * BYTES));

    snprintf(row.how, sizeof row.how, "%.0f sequences of %.0f tokens", sequences, context);
    row.rate = bytes / row.ns * 1e9;
    row.kernel = (struct kvc_bench_kernel){.family = "generation_attention", .dtype = "bfloat16",
                                           .name = "law", .bound = true,
                                           .sequences = (uint32_t)sequences,
                                           .context = (uint32_t)context, .heads = 32,
                                           .kv_heads = 8, .head_dim = 128};
    return sink->row(sink->user, &row);
}

__attribute__((visibility("default"))) int kvc_gpu_bench_run(uint32_t abi,
                                                             const struct kvc_bench_options *o,
                                                             const struct kvc_bench_sink *sink,
                                                             char *why, size_t size);

int kvc_gpu_bench_run(uint32_t abi, const struct kvc_bench_options *o,
                      const struct kvc_bench_sink *sink, char *why, size_t size)
{
    static const double shapes[][2] = {
        {28672, 4096}, {4096, 14336}, {6144, 4096}, {4096, 4096}, {8192, 8192}};
    const struct kvc_bench_device device = {"A New GPU", 9.6e10, 170};

    (void)o;
    (void)why;
    (void)size;
    if (abi != KVC_GPU_BENCH_ABI)
        return KVC_GPU_BENCH_OTHER_ABI;
    sink->device(sink->user, &device);
    for (int s = 0; s < 5; s++)
        for (double m = 16; m <= 16384; m *= 4)
            if (!product(sink, m, shapes[s][0], shapes[s][1]))
                return KVC_GPU_BENCH_CANCELLED;
    for (double n = 1; n <= 256; n *= 16)
        for (double c = 1024; c <= 16384; c *= 4)
            if (!attention(sink, n, c))
                return KVC_GPU_BENCH_CANCELLED;
    return KVC_GPU_BENCH_OK;
}
