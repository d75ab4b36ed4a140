/* SPDX-License-Identifier: Apache-2.0
 * What the program and kvcast-gpu.so agree on. */
#ifndef KVC_BENCH_GPU_MODULE_H
#define KVC_BENCH_GPU_MODULE_H

#include "bench/measure.h"

#define KVC_GPU_BENCH_ABI 3u
#define KVC_GPU_BENCH_ENTRY "kvc_gpu_bench_run"

enum {
    KVC_GPU_BENCH_OK,
    KVC_GPU_BENCH_NONE,      /* no device, or no driver */
    KVC_GPU_BENCH_FAILED,
    KVC_GPU_BENCH_CANCELLED, /* by the sink */
    KVC_GPU_BENCH_OTHER_ABI
};

/* why: in words, where it is not OK. */
typedef int (*kvc_gpu_bench_fn)(uint32_t abi, const struct kvc_bench_options *o,
                                const struct kvc_bench_sink *sink, char *why, size_t size);

#endif
