/* SPDX-License-Identifier: Apache-2.0
 * Mean and nearest-rank percentiles of a sample: p is the ceil(p n)-th smallest value. */
#ifndef KVC_BASE_DISTRIBUTION_H
#define KVC_BASE_DISTRIBUTION_H

#include <kvcast/kvcast.h>

/* Of v[i] / unit: dividing once gives the double nearest to the exact value. Reorders v. */
void kvc_distribution(uint64_t *v, size_t n, double unit, struct kvc_dist *out);

/* For qsort. */
int kvc_order_u64(const void *a, const void *b);

#endif
