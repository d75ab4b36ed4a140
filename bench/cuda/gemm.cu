/* SPDX-License-Identifier: Apache-2.0
 * Matrix products of layers by cuBLASLt, y[m, n] = x[m, k] W[n, k]^T, bf16 and fp8 (e4m3) into
 * bf16. Each launch takes other copies of the weights, so that they come from memory, as a model's
 * do, and not from the L2 cache that the launch before left them in. */
#include "bench/cuda/gpu_bench.h"

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

namespace kvc_gpu {

static void check_lt(cublasStatus_t status, const char *what)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        throw failed(std::string(what) + ": cuBLASLt status " +
                     std::to_string(static_cast<int>(status)));
}

struct product {
    int m, n, k;
    cudaDataType_t type;
};

struct library {
    cublasLtHandle_t handle = nullptr;
    memory workspace;
    size_t bytes;
    explicit library(size_t n) : workspace(n, false), bytes(n)
    {
        check_lt(cublasLtCreate(&handle), "cuBLASLt");
    }
    ~library() { cublasLtDestroy(handle); }
};

struct plan {
    cublasLtMatmulDesc_t op = nullptr;
    cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulHeuristicResult_t best = {};
    bool found = false;

    /* Column major: W is k x n and transposed, x k x m, y n x m; the only form that fp8 has. */
    plan(const library &lib, const product &p, const float *one)
    {
        cublasOperation_t transposed = CUBLAS_OP_T;
        int got = 0;

        check_lt(cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
        check_lt(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                                sizeof transposed), "a product");
        if (p.type == CUDA_R_8F_E4M3) {
            check_lt(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &one,
                                                    sizeof one), "a scale");
            check_lt(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &one,
                                                    sizeof one), "a scale");
        }
        check_lt(cublasLtMatrixLayoutCreate(&w, p.type, p.k, p.n, p.k), "a matrix");
        check_lt(cublasLtMatrixLayoutCreate(&x, p.type, p.k, p.m, p.k), "a matrix");
        check_lt(cublasLtMatrixLayoutCreate(&y, CUDA_R_16BF, p.n, p.m, p.n), "a matrix");
        check_lt(cublasLtMatmulPreferenceCreate(&preference), "a preference");
        check_lt(cublasLtMatmulPreferenceSetAttribute(
                     preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &lib.bytes,
                     sizeof lib.bytes), "a preference");
        found = cublasLtMatmulAlgoGetHeuristic(lib.handle, op, w, x, y, y, preference, 1, &best,
                                               &got) == CUBLAS_STATUS_SUCCESS && got > 0;
    }
    ~plan()
    {
        cublasLtMatmulPreferenceDestroy(preference);
        cublasLtMatrixLayoutDestroy(y);
        cublasLtMatrixLayoutDestroy(x);
        cublasLtMatrixLayoutDestroy(w);
        cublasLtMatmulDescDestroy(op);
    }
};

/* false: this GPU has no such product. */
static bool measure_one(const bench &b, const library &lib, const product &p, const float *one)
{
    size_t width = p.type == CUDA_R_16BF ? 2 : 1, bytes = width * p.n * p.k, turn = 0;
    size_t copies = 1 + 4 * static_cast<size_t>(b.device.l2CacheSize) / bytes;
    memory w(bytes * copies, false), x(width * p.m * p.k, false);
    memory y(sizeof(__nv_bfloat16) * p.n * p.m, false);
    plan q(lib, p, one);
    float alpha = 1, beta = 0;
    struct kvc_bench_row row = {};

    if (!q.found)
        return false;
    check(cudaMemset(w.p, 0x38, bytes * copies), "weights"); /* small numbers in either type */
    check(cudaMemset(x.p, 0x38, width * p.m * p.k), "tokens");
    double flops = 2.0 * p.m * p.n * p.k;
    auto seconds = b.launches(flops < 1e11 ? 50 : 10, [&] {
        const char *weights = w.as<char>() + bytes * (turn++ % copies);
        check_lt(cublasLtMatmul(lib.handle, q.op, &alpha, weights, q.w, x.p, q.x, &beta, y.p, q.y,
                                y.p, q.y, &q.best.algo, lib.workspace.p, lib.bytes, b.stream),
                 "a product");
    });
    row.what = "gemm";
    row.kernel.family = "gemm";
    row.kernel.dtype = width == 2 ? "bfloat16" : "fp8";
    row.kernel.name = "cublaslt";
    row.kernel.m = static_cast<uint32_t>(p.m);
    row.kernel.n = static_cast<uint32_t>(p.n);
    row.kernel.k = static_cast<uint32_t>(p.k);
    b.tell(row, std::string(width == 2 ? "bf16" : "fp8") + " m " + std::to_string(p.m) + ", n " +
           std::to_string(p.n) + ", k " + std::to_string(p.k), seconds, 0, flops);
    return true;
}

void measure_gemm(const bench &b)
{
    /* layers of Llama 8B, and of 70B cut in eight */
    static const int shapes[][2] = {{28672, 4096}, {4096, 14336}, {6144, 4096},
                                    {4096, 4096},  {8192, 8192},  {7168, 8192},
                                    {8192, 3584},  {1280, 8192},  {8192, 1024}};
    const int all = static_cast<int>(sizeof shapes / sizeof shapes[0]);
    const float one = 1;
    library lib(32u << 20);
    memory scale(sizeof one, false);

    check(cudaMemcpy(scale.p, &one, sizeof one, cudaMemcpyHostToDevice), "a scale");
    for (cudaDataType_t type : {CUDA_R_16BF, CUDA_R_8F_E4M3}) {
        bool has = true;
        for (int s = 0; s < (b.o->quick ? 2 : all) && has; s++)
            for (int m = 16; m <= 16384 && has; m *= b.o->quick ? 8 : 4)
                has = measure_one(b, lib, {m, shapes[s][0], shapes[s][1], type}, scale.as<float>());
        if (!has)
            b.note("this GPU has no fp8 products");
    }
}

}
