/* SPDX-License-Identifier: Apache-2.0
 * Mean and nearest-rank percentiles of a sample: p is the ceil(p n)-th smallest value. */
#ifndef KVC_SIM_DISTRIBUTION_H
#define KVC_SIM_DISTRIBUTION_H

#include <kvcast/kvcast.h>

/* Reorders v. Exact integer nanoseconds in, milliseconds out. */
void kvc_distribution_ms(uint64_t *v_ns, size_t n, struct kvc_dist *out);

#endif
