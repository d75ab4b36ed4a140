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

#include "policies/policies.h"

struct kvc_runs;
struct kvc_plugged_trial;

/* The arrays are borrowed. */
struct kvc_runs_setup {
    const char *policy; /* that kvc_runs_check finds fine */
    uint64_t capacity;  /* blocks */
    uint32_t n_segments;
    const uint32_t *seg_len, *seg_depth;
    const uint32_t *seg_parent; /* UINT32_MAX: a root */
    uint32_t block_tokens;      /* 0 counts as 1 */
    /* Or NULL: told of blocks [lo, hi) of a segment that leave; expired: because of their age. */
    void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired);
    void *left_user;
    bool engine; /* for an engine's cache: by order.h alone */
    struct kvc_plugged_trial *trial; /* of the conformance kit (policies/plugins/plugged.h), or
                                        NULL */
};

struct kvc_runs_request {
    uint32_t seg;             /* that its path ends with; UINT32_MAX: none */
    uint32_t session, tenant; /* KVC_ID_NONE without */
    uint64_t now_ns;          /* none earlier than those before */
    /* Where kvc_runs_wants_next: of the path's segments, leaf first, the number of the request that
     * touches them next, the first request being 0; UINT32_MAX: none. Else NULL. */
    const uint32_t *next;
    uint32_t input_tokens;
};

/* Whether this is a policy, or a plug-in's path, with options that it has: NAME[:k=v..], and
 * +ADMISSION[:k=v..]. */
enum kvc_status kvc_runs_check(const char *spec, struct kvc_error *err);
/* Of what that finds fine: whether an engine's cache can have it (order.h), and if not why. */
enum kvc_status kvc_runs_check_order(const char *spec, struct kvc_error *err);
bool kvc_runs_single(const char *policy); /* whether it takes blocks one by one in a replay */
/* A policy's options; n of them. NULL: there is no such policy. */
const struct kvc_policy_option *kvc_runs_options(const char *policy, uint32_t *n);
/* NULL: no memory. */
struct kvc_runs *kvc_runs_create(const struct kvc_runs_setup *setup);
void kvc_runs_destroy(struct kvc_runs *cache); /* NULL is fine */
/* A request arrives: returns how many blocks of its path, from the root on, are resident. */
/* A hint for speed: the segments that the KVC_RUNS_AHEAD + 1 requests from this one on end with. */
#define KVC_RUNS_AHEAD 8
void kvc_runs_expect(const struct kvc_runs *cache, const uint32_t *seg);
bool kvc_runs_wants_next(const struct kvc_runs *cache);
uint64_t kvc_runs_arrive(struct kvc_runs *cache, const struct kvc_runs_request *request);
/* The same asked from outside, which changes nothing; what has expired since the last request that
 * arrived here still counts. */
uint64_t kvc_runs_held(const struct kvc_runs *cache, uint32_t seg);
/* Touches the path of the request that has just arrived, the deepest block first; returns how many
 * blocks were found resident when their turn came. */
uint64_t kvc_runs_touch(struct kvc_runs *cache);
bool kvc_runs_failed(const struct kvc_runs *cache); /* results are worthless .. */
/* .. and why: out of memory, or a plug-in that broke the rules. KVC_OK: they are not. */
enum kvc_status kvc_runs_error(const struct kvc_runs *cache, struct kvc_error *err);

/* All but optforced, which must know the future. NULL-terminated, static. */
const char *const *kvc_runs_policies(void);

#endif
