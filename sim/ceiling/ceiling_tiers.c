/* SPDX-License-Identifier: Apache-2.0
 * The optimum of a chain of tiers. A hit belongs to the slowest tier that held the block since its
 * last touch, so hits of the first k tiers are hits of one cache of their summed capacity, whose
 * optimum bounds them. The optimum ranks blocks by their next use alone, in an order without ties,
 * so what it keeps at a capacity it keeps at every larger one too (a stack algorithm, Mattson et
 * al. 1970): let tier k hold what the sum up to k keeps and the sum up to k - 1 does not. Between
 * two touches a block leaves the smaller sets first and enters none, so it only ever moves down,
 * and that placement reaches all bounds at once. */
#include "base/alloc.h"
#include "base/error.h"
#include "sim/ceiling/ceiling.h"

enum kvc_status kvc_ceiling_tiers(const struct kvc_trace *trace, const uint64_t *tier_blocks,
                                  size_t n, struct kvc_hits *out, struct kvc_error *err)
{
    uint64_t *sum = kvc_malloc(n, sizeof(*sum));
    if (!sum)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(i ? sum[i - 1] : 0, tier_blocks[i], &sum[i]))
            sum[i] = KVC_CAPACITY_INF;
    enum kvc_status status = kvc_ceiling_policy(trace, "opt", sum, n, out, err);
    kvc_free(sum);
    return status;
}
