/* SPDX-License-Identifier: Apache-2.0
 * A cache of segments under a policy, in runs: pieces of one segment whose blocks have the same
 * history. Every touch is of a request's whole path, leaf to root and deepest block first, as
 * engines free the tail first. So the blocks of a run stand side by side in any queue,
 * the deepest the oldest, and a policy handles a run where its definition handles a block; it
 * cuts one at the block where histories come to differ, and counts stay equal to those of the
 * definition block by block.
 *
 * Ghosts (blocks remembered after they left) are runs as well, in lists of their own. */
#ifndef KVC_POLICIES_RUNS_H
#define KVC_POLICIES_RUNS_H

#include <kvcast/kvcast.h>

struct kvc_runs;

/* The arrays are borrowed. 0 takes a default where one is named. */
struct kvc_runs_setup {
    const char *policy; /* one of kvc_runs_policies() */
    uint64_t capacity;  /* blocks */
    uint32_t n_segments;
    const uint32_t *seg_len, *seg_depth;
    const uint32_t *seg_parent; /* UINT32_MAX: a root */
    uint64_t ttl_ns;            /* of ttl and ttlfixed: KVC_RUNS_TTL_NS */
    uint64_t seed;              /* of random */
    uint64_t cost_blocks;       /* costaware: the place where a block costs twice the first */
    /* Or NULL: told of blocks [lo, hi) of a segment that leave; expired: because of their age. */
    void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired);
    void *left_user;
};

#define KVC_RUNS_TTL_NS 300000000000 /* 5 min */
#define KVC_RUNS_COST_BLOCKS 2048   /* 32,768 tokens in blocks of 16 */

/* NULL: no memory. */
struct kvc_runs *kvc_runs_create(const struct kvc_runs_setup *setup);
void kvc_runs_destroy(struct kvc_runs *cache); /* NULL is fine */
/* A request for the path to a segment arrives at a time, none earlier than those before: returns
 * how many blocks from the root on are resident. */
uint64_t kvc_runs_arrive(struct kvc_runs *cache, uint32_t seg, uint64_t now_ns);
/* The same asked from outside, which changes nothing; what has expired since the last request that
 * arrived here still counts. */
uint64_t kvc_runs_held(const struct kvc_runs *cache, uint32_t seg);
/* Touches the path of the request that has just arrived, the deepest block first; returns how many
 * blocks were found resident when their turn came. */
uint64_t kvc_runs_touch(struct kvc_runs *cache, uint32_t seg);
bool kvc_runs_failed(const struct kvc_runs *cache); /* out of memory; results are worthless */

const char *const *kvc_runs_policies(void); /* NULL-terminated, static */

#endif
