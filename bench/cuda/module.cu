/* SPDX-License-Identifier: Apache-2.0
 * The module's entry, and how it measures: medians of repeats, the first run not counted. */
#include "bench/cuda/gpu_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>

namespace kvc_gpu {

void check(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        throw failed(std::string(what) + ": " + cudaGetErrorString(status));
}

memory::memory(size_t bytes, bool on_host) : host(on_host)
{
    check(host ? cudaHostAlloc(&p, bytes, cudaHostAllocPortable) : cudaMalloc(&p, bytes),
          host ? "page-locked memory" : "GPU memory");
}

memory::~memory()
{
    if (host)
        cudaFreeHost(p);
    else
        cudaFree(p);
}

size_t bench::free_bytes() const
{
    size_t left = 0, all = 0;

    check(cudaMemGetInfo(&left, &all), "free memory");
    return left;
}

void bench::note(const std::string &text) const
{
    sink->note(sink->user, text.c_str());
}

std::vector<double> bench::wall(const std::function<void()> &work) const
{
    using clock = std::chrono::steady_clock;
    std::vector<double> seconds;

    check(cudaDeviceSynchronize(), "earlier work");
    for (int i = 0; i <= repeats(); i++) {
        clock::time_point begin = clock::now();
        work();
        check(cudaStreamSynchronize(stream), "a copy");
        check(cudaStreamSynchronize(other), "a copy");
        if (i)
            seconds.push_back(std::chrono::duration<double>(clock::now() - begin).count());
    }
    return seconds;
}

std::vector<double> bench::launches(int n, const std::function<void()> &launch) const
{
    std::vector<double> seconds;
    cudaEvent_t begin, end;

    check(cudaEventCreate(&begin), "an event");
    check(cudaEventCreate(&end), "an event");
    for (int i = 0; i <= repeats(); i++) {
        float ms = 0;
        check(cudaEventRecord(begin, stream), "an event");
        for (int k = 0; k < n; k++)
            launch();
        check(cudaEventRecord(end, stream), "an event");
        check(cudaEventSynchronize(end), "a kernel");
        check(cudaGetLastError(), "a kernel");
        check(cudaEventElapsedTime(&ms, begin, end), "an event");
        if (i)
            seconds.push_back(ms * 1e-3 / n);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return seconds;
}

void bench::tell(struct kvc_bench_row row, const std::string &how, std::vector<double> seconds,
                 double bytes, double flops) const
{
    std::sort(seconds.begin(), seconds.end());
    double median = (seconds[(seconds.size() - 1) / 2] + seconds[seconds.size() / 2]) / 2;

    std::snprintf(row.how, sizeof row.how, "%s", how.c_str());
    row.repeats = static_cast<uint32_t>(seconds.size());
    row.spread = (seconds.back() - seconds.front()) / median;
    if (bytes > 0)
        row.rate = bytes / median;
    if (bytes <= 0 || row.kernel.family)
        row.ns = median * 1e9;
    if (flops > 0)
        row.rate = flops / median;
    if (!sink->row(sink->user, &row))
        throw cancelled();
}

static void run(bench &b)
{
    struct kvc_bench_device device = {};

    std::snprintf(device.name, sizeof device.name, "%s", b.device.name);
    device.memory_bytes = static_cast<double>(b.device.totalGlobalMem);
    device.multiprocessors = b.device.multiProcessorCount;
    b.sink->device(b.sink->user, &device);
    b.note(std::string("GPU: ") + b.device.name + ", " +
           std::to_string(b.device.multiProcessorCount) + " processors, " +
           std::to_string(b.device.totalGlobalMem >> 20) + " MiB");
    measure_copies(b);
    measure_conversion(b);
    measure_attention(b);
    measure_gemm(b);
}

}

extern "C" __attribute__((visibility("default"))) int
kvc_gpu_bench_run(uint32_t abi, const struct kvc_bench_options *o,
                  const struct kvc_bench_sink *sink, char *why, size_t size)
{
    kvc_gpu::bench b = {};
    int devices = 0, rc = KVC_GPU_BENCH_OK;
    cudaError_t status = abi == KVC_GPU_BENCH_ABI ? cudaGetDeviceCount(&devices) : cudaSuccess;

    if (abi != KVC_GPU_BENCH_ABI)
        return KVC_GPU_BENCH_OTHER_ABI;
    if (status != cudaSuccess || o->gpu >= static_cast<uint32_t>(devices)) {
        std::snprintf(why, size, "%s",
                      status == cudaErrorInsufficientDriver
                          ? "no NVIDIA driver, or one older than the CUDA this was built with"
                      : status != cudaSuccess ? cudaGetErrorString(status)
                      : devices               ? "there are fewer devices"
                                              : "there is none");
        return KVC_GPU_BENCH_NONE;
    }
    b.o = o;
    b.sink = sink;
    try {
        kvc_gpu::check(cudaSetDevice(static_cast<int>(o->gpu)), "the device");
        kvc_gpu::check(cudaGetDeviceProperties(&b.device, static_cast<int>(o->gpu)), "the device");
        kvc_gpu::check(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "a stream");
        kvc_gpu::check(cudaStreamCreateWithFlags(&b.other, cudaStreamNonBlocking), "a stream");
        kvc_gpu::run(b);
    } catch (const kvc_gpu::cancelled &) {
        rc = KVC_GPU_BENCH_CANCELLED;
    } catch (const std::exception &e) {
        std::snprintf(why, size, "%s", e.what());
        rc = KVC_GPU_BENCH_FAILED;
    }
    if (b.stream)
        cudaStreamDestroy(b.stream);
    if (b.other)
        cudaStreamDestroy(b.other);
    return rc;
}
