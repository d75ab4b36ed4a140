/* SPDX-License-Identifier: Apache-2.0
 * Decode attention over paged bf16 KV, grouped queries, head size 128. A plain kernel: what engines
 * run (FlashAttention, FlashInfer, TensorRT-LLM) is faster, so its times are upper bounds and say
 * what pages cost rather than what an engine reaches. Contexts are cut in parts that are put
 * together again by a second kernel. */
#include "bench/cuda/gpu_bench.h"

#include <cuda_bf16.h>

#include <algorithm>

namespace kvc_gpu {

constexpr int DIM = 128, PAGE = 16, KV_HEADS = 8, GROUP = 4, PART = 512, WARPS = 4;
constexpr int PER_LANE = DIM / 32;

struct layer {
    const __nv_bfloat16 *query; /* [sequence][KV_HEADS * GROUP][DIM] */
    const __nv_bfloat16 *k, *v; /* [page][KV_HEADS][PAGE][DIM] */
    const unsigned *table;      /* [sequence][pages] */
    float *part; /* [sequence][head][parts][DIM + 2]: sums, largest, sum of weights */
    __nv_bfloat16 *out;
    int context, pages, parts;
};

struct tally {
    float largest = -1e30f, weight = 0, sum[PER_LANE] = {};
};

static __device__ void merge(tally &t, float largest, float weight, const float *sum)
{
    float top = fmaxf(t.largest, largest), a = __expf(t.largest - top), b = __expf(largest - top);

    t.largest = top;
    t.weight = t.weight * a + weight * b;
    for (int d = 0; d < PER_LANE; d++)
        t.sum[d] = t.sum[d] * a + sum[d] * b;
}

/* A warp takes every WARPS-th token of the part; a lane, four of the 128 dimensions. */
static __global__ void attend(layer l)
{
    int sequence = blockIdx.x, kv = blockIdx.y, part = blockIdx.z;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int begin = part * PART, end = min(begin + PART, l.context);
    float q[GROUP][PER_LANE];
    tally t[GROUP];
    __shared__ float shared[WARPS][GROUP][DIM + 2];

    for (int g = 0; g < GROUP; g++)
        for (int d = 0; d < PER_LANE; d++)
            q[g][d] = __bfloat162float(l.query[(static_cast<size_t>(sequence) * KV_HEADS * GROUP +
                                                kv * GROUP + g) * DIM + lane * PER_LANE + d]);
    for (int token = begin + warp; token < end; token += WARPS) {
        size_t page = l.table[static_cast<size_t>(sequence) * l.pages + token / PAGE];
        size_t at = ((page * KV_HEADS + kv) * PAGE + token % PAGE) * DIM + lane * PER_LANE;
        float key[PER_LANE], value[PER_LANE];
        for (int d = 0; d < PER_LANE; d++) {
            key[d] = __bfloat162float(l.k[at + d]);
            value[d] = __bfloat162float(l.v[at + d]);
        }
        for (int g = 0; g < GROUP; g++) {
            float score = 0;
            for (int d = 0; d < PER_LANE; d++)
                score += q[g][d] * key[d];
            for (int offset = 16; offset; offset /= 2)
                score += __shfl_xor_sync(0xffffffffu, score, offset);
            merge(t[g], score * 0.08838834764f, 1, value); /* 1 / sqrt(128) */
        }
    }
    for (int g = 0; g < GROUP; g++) {
        for (int d = 0; d < PER_LANE; d++)
            shared[warp][g][lane * PER_LANE + d] = t[g].sum[d];
        if (lane == 0) {
            shared[warp][g][DIM] = t[g].largest;
            shared[warp][g][DIM + 1] = t[g].weight;
        }
    }
    __syncthreads();
    if (warp >= GROUP)
        return;
    tally all; /* warp g puts head g together */
    for (int w = 0; w < WARPS; w++)
        merge(all, shared[w][warp][DIM], shared[w][warp][DIM + 1],
              &shared[w][warp][lane * PER_LANE]);
    float *out = l.part + ((static_cast<size_t>(sequence) * KV_HEADS * GROUP + kv * GROUP + warp) *
                           l.parts + part) * (DIM + 2);
    for (int d = 0; d < PER_LANE; d++)
        out[lane * PER_LANE + d] = all.sum[d];
    if (lane == 0) {
        out[DIM] = all.largest;
        out[DIM + 1] = all.weight;
    }
}

static_assert(WARPS == GROUP, "a warp puts each head together");

static __global__ void combine(layer l)
{
    size_t head = static_cast<size_t>(blockIdx.x) * KV_HEADS * GROUP + blockIdx.y;
    int lane = threadIdx.x;
    tally t;

    for (int p = 0; p < l.parts; p++) {
        const float *in = l.part + (head * l.parts + p) * (DIM + 2);
        merge(t, in[DIM], in[DIM + 1], in + lane * PER_LANE);
    }
    for (int d = 0; d < PER_LANE; d++)
        l.out[head * DIM + lane * PER_LANE + d] = __float2bfloat16(t.sum[d] / t.weight);
}

static void measure_one(const bench &b, int sequences, int context)
{
    int pages = (context + PAGE - 1) / PAGE, heads = KV_HEADS * GROUP;
    size_t all = static_cast<size_t>(sequences) * pages, elements = all * KV_HEADS * PAGE * DIM;
    size_t queries = static_cast<size_t>(sequences) * heads * DIM;
    layer l = {};

    l.context = context;
    l.pages = pages;
    l.parts = (context + PART - 1) / PART;
    size_t parts = static_cast<size_t>(sequences) * heads * l.parts * (DIM + 2) * sizeof(float);
    if (4 * elements + parts + 4 * queries + 4 * all + (64u << 20) > b.free_bytes()) {
        b.note("too little GPU memory for " + std::to_string(sequences) + " sequences of " +
               std::to_string(context) + " tokens");
        return;
    }
    memory k(2 * elements, false), v(2 * elements, false), query(2 * queries, false);
    memory out(2 * queries, false), part(parts, false), table(sizeof(unsigned) * all, false);
    std::vector<unsigned> order(all);
    for (size_t i = 0; i < all; i++)
        order[i] = static_cast<unsigned>(i);
    for (size_t i = 0; i < all; i++)
        std::swap(order[i], order[i * 7919 % all]);
    check(cudaMemset(k.p, 0x38, 2 * elements), "keys");
    check(cudaMemset(v.p, 0x38, 2 * elements), "values");
    check(cudaMemset(query.p, 0x38, 2 * queries), "queries");
    check(cudaMemcpy(table.p, order.data(), sizeof(unsigned) * all, cudaMemcpyHostToDevice),
          "pages");
    l.query = query.as<__nv_bfloat16>();
    l.k = k.as<__nv_bfloat16>();
    l.v = v.as<__nv_bfloat16>();
    l.table = table.as<unsigned>();
    l.part = part.as<float>();
    l.out = out.as<__nv_bfloat16>();
    auto seconds = b.launches(10, [&] {
        attend<<<dim3(sequences, KV_HEADS, l.parts), 32 * WARPS, 0, b.stream>>>(l);
        combine<<<dim3(sequences, heads), 32, 0, b.stream>>>(l);
    });
    struct kvc_bench_row row = {};
    row.what = "paged decode attention (plain kernel, bf16 KV, 32 heads, 8 KV heads)";
    row.kernel.family = "generation_attention";
    row.kernel.dtype = "bfloat16";
    row.kernel.name = "plain";
    row.kernel.bound = true;
    row.kernel.sequences = static_cast<uint32_t>(sequences);
    row.kernel.context = static_cast<uint32_t>(context);
    row.kernel.heads = static_cast<uint32_t>(heads);
    row.kernel.kv_heads = KV_HEADS;
    row.kernel.head_dim = DIM;
    b.tell(row, std::to_string(sequences) + " sequences of " + std::to_string(context) + " tokens",
           seconds, 4.0 * static_cast<double>(elements), 0);
}

void measure_attention(const bench &b)
{
    for (int sequences = 1; sequences <= 256; sequences *= b.o->quick ? 16 : 4)
        for (int context = 1024; context <= 65536; context *= b.o->quick ? 16 : 4)
            measure_one(b, sequences, context);
}

}
