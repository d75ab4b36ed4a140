/* SPDX-License-Identifier: Apache-2.0
 * Copies between page-locked host memory and the GPU: in one piece, both directions at once, and as
 * blocks that lie apart on the GPU as KV pages do: one DMA each, one call for all, a gather kernel.
 */
#include "bench/cuda/gpu_bench.h"

#include <algorithm>

namespace kvc_gpu {

static const size_t MiB = 1 << 20;

static std::string size_text(size_t bytes)
{
    return bytes >= MiB ? std::to_string(bytes / MiB) + "MiB"
                        : std::to_string(bytes / 1024) + "KiB";
}

static struct kvc_bench_row row_of(bool to_gpu, size_t bytes, size_t count, bool is_links)
{
    struct kvc_bench_row row = {};

    row.what = to_gpu ? "host to GPU" : "GPU to host";
    row.link = is_links ? "host" : nullptr;
    row.write = !to_gpu;
    row.batch = true;
    row.op_bytes = static_cast<double>(bytes);
    row.depth = static_cast<double>(count);
    return row;
}

static void in_one_piece(const bench &b, char *host, char *gpu, size_t most)
{
    for (size_t bytes = 64 * 1024; bytes <= most; bytes *= 8)
        for (int to_gpu = 1; to_gpu >= 0; to_gpu--) {
            auto seconds = b.wall([&] {
                check(cudaMemcpyAsync(to_gpu ? gpu : host, to_gpu ? host : gpu, bytes,
                                      cudaMemcpyDefault, b.stream), "a copy");
            });
            b.tell(row_of(to_gpu, bytes, 1, true), size_text(bytes) + " in one piece", seconds,
                   static_cast<double>(bytes), 0);
        }
}

static void both_at_once(const bench &b, char *host, char *gpu, size_t most)
{
    size_t half = most / 2;
    struct kvc_bench_row row = {};
    auto seconds = b.wall([&] {
        check(cudaMemcpyAsync(gpu, host, half, cudaMemcpyDefault, b.stream), "a copy");
        check(cudaMemcpyAsync(host + half, gpu + half, half, cudaMemcpyDefault, b.other), "a copy");
    });

    row.what = "both directions at once";
    row.link = "host";
    row.both = row.batch = true;
    row.op_bytes = static_cast<double>(half);
    row.depth = 1;
    b.tell(row, size_text(half) + " each way, in sum", seconds, static_cast<double>(most), 0);
}

/* Block i of the dense side is block order[i] of the scattered one. 16 bytes a thread and turn. */
static __global__ void gather(int4 *dense, int4 *scattered, const unsigned *order, unsigned count,
                              unsigned words, bool to_scattered)
{
    unsigned long long all = static_cast<unsigned long long>(count) * words;
    unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;

    for (unsigned long long i =
             blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
         i < all; i += step) {
        unsigned long long at =
            static_cast<unsigned long long>(order[i / words]) * words + i % words;
        if (to_scattered)
            scattered[at] = dense[i];
        else
            dense[i] = scattered[at];
    }
}

struct blocks {
    char *host, *gpu;
    size_t bytes, count;
    std::vector<unsigned> order;
    const unsigned *gpu_order;
};

static void by_dma(const bench &b, const blocks &k, bool to_gpu)
{
    for (size_t i = 0; i < k.count; i++) {
        char *host = k.host + i * k.bytes, *gpu = k.gpu + k.order[i] * k.bytes;
        check(cudaMemcpyAsync(to_gpu ? gpu : host, to_gpu ? host : gpu, k.bytes, cudaMemcpyDefault,
                              b.stream), "a copy");
    }
}

static void by_kernel(const bench &b, const blocks &k, bool to_gpu)
{
    unsigned grid = static_cast<unsigned>(b.device.multiProcessorCount) * 2;

    gather<<<grid, 512, 0, b.stream>>>(reinterpret_cast<int4 *>(k.host),
                                       reinterpret_cast<int4 *>(k.gpu), k.gpu_order,
                                       static_cast<unsigned>(k.count),
                                       static_cast<unsigned>(k.bytes / sizeof(int4)), to_gpu);
    check(cudaGetLastError(), "the gather kernel");
}

#if CUDART_VERSION >= 13000
static void in_one_call(const bench &b, const blocks &k, bool to_gpu)
{
    std::vector<void *> to(k.count);
    std::vector<const void *> from(k.count);
    std::vector<size_t> sizes(k.count, k.bytes);
    cudaMemcpyAttributes attributes = {};
    size_t first = 0;

    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    for (size_t i = 0; i < k.count; i++) {
        char *host = k.host + i * k.bytes, *gpu = k.gpu + k.order[i] * k.bytes;
        to[i] = to_gpu ? gpu : host;
        from[i] = to_gpu ? host : gpu;
    }
    check(cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), k.count, &attributes, &first,
                               1, b.stream),
          "copies in one call");
}
#endif

static void as_blocks(const bench &b, const blocks &k)
{
    struct method {
        const char *name;
        void (*run)(const bench &, const blocks &, bool);
        bool is_links;
    } methods[] = {
        {"one DMA each", by_dma, b.o->dma},
        {"gather kernel", by_kernel, !b.o->dma},
#if CUDART_VERSION >= 13000
        {"one call for all", in_one_call, false},
#endif
    };

    for (const method &m : methods)
        for (int to_gpu = 1; to_gpu >= 0; to_gpu--) {
            auto seconds = b.wall([&] { m.run(b, k, to_gpu); });
            b.tell(row_of(to_gpu, k.bytes, k.count, m.is_links),
                   std::to_string(k.count) + " blocks of " + size_text(k.bytes) + ", " + m.name,
                   seconds, static_cast<double>(k.bytes * k.count), 0);
        }
}

void measure_copies(const bench &b)
{
    size_t most = (b.o->quick ? 64 : 256) * MiB;
    memory host(most, true), gpu(most, false), order(sizeof(unsigned) * (most / 4096), false);

    check(cudaMemset(gpu.p, 1, most), "GPU memory");
    std::fill_n(host.as<char>(), most, 1);
    in_one_piece(b, host.as<char>(), gpu.as<char>(), most);
    both_at_once(b, host.as<char>(), gpu.as<char>(), most);
    for (size_t bytes = 4096; bytes <= 2 * MiB; bytes *= b.o->quick ? 16 : 4) {
        blocks k = {
            host.as<char>(),     gpu.as<char>(), bytes, std::min<size_t>(1000, most / bytes), {},
            order.as<unsigned>()};
        size_t slots = most / bytes,
               stride = slots / 2 * 2 + 1; /* odd: visits slots of a power of two */
        for (size_t i = 0; i < k.count; i++)
            k.order.push_back(static_cast<unsigned>(i * (stride / 3 * 2 + 1) % slots));
        std::sort(k.order.begin(), k.order.end());
        k.order.erase(std::unique(k.order.begin(), k.order.end()), k.order.end());
        k.count = k.order.size();
        for (size_t i = 0; i < k.count; i++) /* apart and out of order, as pages come to lie */
            std::swap(k.order[i], k.order[i * 7919 % k.count]);
        check(
            cudaMemcpy(order.p, k.order.data(), k.count * sizeof(unsigned), cudaMemcpyHostToDevice),
            "the order of blocks");
        as_blocks(b, k);
    }
}

}
