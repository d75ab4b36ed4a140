/* SPDX-License-Identifier: Apache-2.0
 * A cache of segments under a policy, in runs: pieces of one segment whose blocks have the same
 * history. Every touch is of a whole segment, leaf to root on a request's path and deepest block
 * first, as engines free the tail first. So the blocks of a run stand side by side in any queue,
 * the deepest the oldest, and a policy handles a run where its definition handles a block; it
 * cuts one at the block where histories come to differ, and counts stay equal to those of the
 * definition block by block.
 *
 * Ghosts (blocks remembered after they left) are runs as well, in lists of their own. */
#ifndef KVC_POLICIES_RUNS_H
#define KVC_POLICIES_RUNS_H

#include <kvcast/kvcast.h>

struct kvc_runs;

/* capacity in blocks; seg_len and seg_depth are borrowed. NULL: no memory. The policy is one of
 * kvc_runs_policies(). */
struct kvc_runs *kvc_runs_create(const char *policy, uint64_t capacity, uint32_t n_segments,
                                 const uint32_t *seg_len, const uint32_t *seg_depth);
void kvc_runs_destroy(struct kvc_runs *cache); /* NULL is fine */
/* Leading blocks of the segment that are resident. */
uint32_t kvc_runs_lead(const struct kvc_runs *cache, uint32_t seg);
/* Touches all blocks of the segment, deepest first; returns how many were found resident when
 * their turn came. */
uint32_t kvc_runs_touch(struct kvc_runs *cache, uint32_t seg);
bool kvc_runs_failed(const struct kvc_runs *cache); /* out of memory; results are worthless */

const char *const *kvc_runs_policies(void); /* NULL-terminated, static */

#endif
