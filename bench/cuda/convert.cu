/* SPDX-License-Identifier: Apache-2.0
 * bf16 to fp8 (e4m3) with a scale and back, as KV is quantised when it is written and read. */
#include "bench/cuda/gpu_bench.h"

#include <cuda_bf16.h>
#include <cuda_fp8.h>

namespace kvc_gpu {

static __global__ void to_fp8(const __nv_bfloat162 *from, __nv_fp8x2_e4m3 *to, size_t pairs,
                              float scale)
{
    size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;

    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < pairs;
         i += step) {
        float2 f = __bfloat1622float2(from[i]);
        to[i] = __nv_fp8x2_e4m3(make_float2(f.x * scale, f.y * scale));
    }
}

static __global__ void from_fp8(const __nv_fp8x2_e4m3 *from, __nv_bfloat162 *to, size_t pairs,
                                float scale)
{
    size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;

    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < pairs;
         i += step) {
        float2 f = static_cast<float2>(from[i]);
        to[i] = __float22bfloat162_rn(make_float2(f.x * scale, f.y * scale));
    }
}

void measure_conversion(const bench &b)
{
    size_t values = static_cast<size_t>(b.o->quick ? 64 : 256) << 20;
    memory wide(2 * values, false), narrow(values, false);
    unsigned grid = static_cast<unsigned>(b.device.multiProcessorCount) * 8;
    double bytes = 3.0 * static_cast<double>(values);
    struct kvc_bench_row row = {};

    check(cudaMemset(wide.p, 0x38, 2 * values), "values");
    row.what = "fp8 conversion";
    b.tell(row, "bf16 to e4m3, bytes read and written", b.launches(5, [&] {
        to_fp8<<<grid, 256, 0, b.stream>>>(wide.as<__nv_bfloat162>(), narrow.as<__nv_fp8x2_e4m3>(),
                                           values / 2, 0.5f);
    }), bytes, 0);
    b.tell(row, "e4m3 to bf16, bytes read and written",
           b.launches(5,
                      [&] {
                          from_fp8<<<grid, 256, 0, b.stream>>>(narrow.as<__nv_fp8x2_e4m3>(),
                                                               wide.as<__nv_bfloat162>(),
                                                               values / 2, 2.0f);
                      }),
           bytes, 0);
}

}
