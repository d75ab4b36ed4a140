/* SPDX-License-Identifier: Apache-2.0
 * What the files of the GPU module share. Built by nvcc into kvcast-gpu.so; needs nothing of the
 * library, only its headers. */
#ifndef KVC_BENCH_CUDA_GPU_BENCH_H
#define KVC_BENCH_CUDA_GPU_BENCH_H

#include <cuda_runtime.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/gpu_module.h"

namespace kvc_gpu {

struct cancelled {};
struct failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* Throws on an error of the runtime, with what was being done. */
void check(cudaError_t status, const char *what);

struct memory { /* device memory, or page-locked host memory */
    void *p = nullptr;
    bool host = false;
    memory(size_t bytes, bool on_host);
    ~memory();
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;
    template <class T> T *as() const { return static_cast<T *>(p); }
};

struct bench {
    const struct kvc_bench_options *o;
    const struct kvc_bench_sink *sink;
    cudaStream_t stream, other;
    cudaDeviceProp device;

    int repeats() const { return o->quick ? 5 : 11; }
    size_t free_bytes() const;
    void note(const std::string &text) const;
    /* Seconds of each run of work, which ends with its streams empty; the first run is not counted.
     */
    std::vector<double> wall(const std::function<void()> &work) const;
    /* The same by the GPU's clock, for n launches in a row. */
    std::vector<double> launches(int n, const std::function<void()> &launch) const;
    /* seconds: what row's bytes (or flops; 0: neither) took. */
    void tell(struct kvc_bench_row row, const std::string &how, std::vector<double> seconds,
              double bytes, double flops) const;
};

void measure_copies(const bench &b);
void measure_gemm(const bench &b);
void measure_attention(const bench &b);
void measure_conversion(const bench &b);

}

#endif
