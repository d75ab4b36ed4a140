/* SPDX-License-Identifier: Apache-2.0 */
#include "base/distribution.h"

#include <string.h>

/* Hoare's quickselect with the middle as pivot; v[lo..hi] ends up with its k-th smallest at k. */
static uint64_t select_kth(uint64_t *v, size_t lo, size_t hi, size_t k)
{
    while (lo < hi) {
        uint64_t pivot = v[lo + (hi - lo) / 2];
        size_t i = lo, j = hi;
        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            uint64_t x = v[i];
            v[i++] = v[j];
            v[j--] = x;
        }
        size_t left_end = v[j] > pivot ? j - 1 : j;
        if (k <= left_end)
            hi = left_end;
        else
            lo = left_end + 1;
    }
    return v[k];
}

int kvc_order_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void kvc_distribution(uint64_t *v, size_t n, double unit, struct kvc_dist *out)
{
    static const double p[] = {0.5, 0.9, 0.95, 0.99, 1.0};
    double *to[] = {&out->p50, &out->p90, &out->p95, &out->p99, &out->max};
    memset(out, 0, sizeof(*out));
    out->count = n;
    if (!n)
        return;
    __extension__ typedef unsigned __int128 u128;
    u128 sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    out->mean = (double)sum / (double)n / unit;
    size_t from = 0;
    for (int i = 0; i < 5; i++) {
        size_t rank = (size_t)(p[i] * (double)n);
        rank += (double)rank < p[i] * (double)n;
        size_t k = rank ? rank - 1 : 0;
        *to[i] = (double)select_kth(v, from, n - 1, k) / unit;
        from = k;
    }
}
