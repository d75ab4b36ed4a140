/* SPDX-License-Identifier: Apache-2.0
 * A believable hand-made replay result, for working on reports without running a replay. */
#ifndef KVC_TESTS_REPORT_SAMPLE_H
#define KVC_TESTS_REPORT_SAMPLE_H

#include <kvcast/kvcast.h>

/* Drawn from the seed; its counts obey the laws that a replay's obey. n_tiers 1 to 4. NULL when
 * memory runs out; for kvc_result_destroy. */
struct kvc_result *report_sample(uint64_t seed, uint32_t n_requests, uint32_t n_tiers);

#endif
