/* SPDX-License-Identifier: Apache-2.0
 * zstd on what KV looks like: bfloat16 and fp8 (e4m3) of normally distributed values. How well real
 * KV packs depends on model and layer; the rates depend on it little. */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#define BYTES ((size_t)32 << 20)
#define QUICK_BYTES ((size_t)8 << 20)

static float normal(uint64_t *rng)
{
    double u = kvc_rng_unit(rng), v = kvc_rng_unit(rng);

    return (float)(sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v));
}

/* The nearest e4m3 below: four bits of exponent from 2^-6 on, three of mantissa. */
static unsigned char e4m3(float x)
{
    int exponent;
    float m = frexpf(fabsf(x), &exponent); /* in [0.5, 1) */
    int e = exponent + 6;
    unsigned sign = x < 0 ? 0x80 : 0;

    if (e < 1)
        return (unsigned char)(sign | (unsigned)(fabsf(x) * 512));
    if (e > 15)
        return (unsigned char)(sign | 0x7e);
    return (unsigned char)(sign | (unsigned)e << 3 | (unsigned)(m * 16 - 8));
}

static void fill(unsigned char *to, size_t n, bool fp8)
{
    uint64_t rng = kvc_rng_stream(1, "zstd bench");

    for (size_t i = 0; i + 1 < n; i += fp8 ? 1 : 2) {
        float x = normal(&rng);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (fp8) {
            to[i] = e4m3(x);
        } else {
            to[i] = (unsigned char)(bits >> 16);
            to[i + 1] = (unsigned char)(bits >> 24);
        }
    }
}

struct job {
    unsigned char *plain, *packed, *back;
    size_t bytes, room, size;
    int level;
    uint32_t repeats;
};

static bool tell(const struct job *j, const char *what, const char *type, double *rate,
                 const struct kvc_bench_sink *sink)
{
    struct kvc_bench_row row = {.what = what, .ratio = (double)j->bytes / (double)j->size};

    snprintf(row.how, sizeof row.how, "%s, level %d, one thread", type, j->level);
    kvc_bench_settle(rate, j->repeats, &row.rate, &row);
    return sink->row(sink->user, &row);
}

static enum kvc_status measure(struct job *j, const char *type, const struct kvc_bench_sink *sink,
                               struct kvc_error *err)
{
    double in[KVC_BENCH_REPEATS], out[KVC_BENCH_REPEATS];

    for (uint32_t i = 0; i < j->repeats; i++) {
        double begin = kvc_bench_now_s();
        j->size = ZSTD_compress(j->packed, j->room, j->plain, j->bytes, j->level);
        double middle = kvc_bench_now_s();
        size_t n = ZSTD_isError(j->size)
                       ? 0 : ZSTD_decompress(j->back, j->bytes, j->packed, j->size);
        double end = kvc_bench_now_s();
        if (n != j->bytes || (i == 0 && memcmp(j->plain, j->back, n) != 0))
            return kvc_fail(err, KVC_ERR_INTERNAL, "zstd does not give back what it was given");
        in[i] = (double)j->bytes / (middle - begin);
        out[i] = (double)j->bytes / (end - middle);
    }
    return tell(j, "zstd compress", type, in, sink) && tell(j, "zstd decompress", type, out, sink)
               ? KVC_OK : kvc_fail(err, KVC_ERR_CANCELLED, "the measuring was cancelled");
}

enum kvc_status kvc_bench_zstd(const struct kvc_bench_options *o,
                               const struct kvc_bench_sink *sink, struct kvc_error *err)
{
    struct job j = {.bytes = o->quick ? QUICK_BYTES : BYTES, .repeats = o->quick ? 3 : 5};
    enum kvc_status status = KVC_OK;

    j.room = ZSTD_compressBound(j.bytes);
    j.plain = kvc_malloc(j.bytes, 1);
    j.packed = kvc_malloc(j.room, 1);
    j.back = kvc_malloc(j.bytes, 1);
    if (!j.plain || !j.packed || !j.back)
        status = kvc_fail_nomem(err);
    for (int fp8 = 0; fp8 < 2 && status == KVC_OK; fp8++) {
        fill(j.plain, j.bytes, fp8);
        for (j.level = 1; j.level <= (o->quick ? 1 : 3) && status == KVC_OK; j.level += 2)
            status = measure(&j, fp8 ? "fp8 normal values" : "bf16 normal values", sink, err);
    }
    kvc_free(j.plain);
    kvc_free(j.packed);
    kvc_free(j.back);
    return status;
}
