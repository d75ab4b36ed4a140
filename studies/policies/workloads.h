/* SPDX-License-Identifier: Apache-2.0
 * Traffic that policies are judged on, made from a seed: what serving looks like, what breaks
 * simple policies, and small random forests that find what neither does. */
#ifndef KVC_STUDIES_WORKLOADS_H
#define KVC_STUDIES_WORKLOADS_H

#include "sim/ceiling/ceiling.h"

struct kvc_workload {
    char name[24];
    const char *what; /* in a line; static */
    struct kvc_ceiling_view view;
    uint64_t blocks;  /* distinct */
    struct kvc_trace *trace; /* whose arrays the view borrows, or NULL: */
    uint32_t *seg_parent, *seg_len, *seg_depth, *prompt_seg, *input_tokens;
    uint64_t *arrival_ns;
    size_t seg_room, request_room;
};

/* How many named ones there are, and the i-th of them. */
size_t kvc_workloads(void);
enum kvc_status kvc_workload_make(struct kvc_workload *out, size_t i, struct kvc_error *err);
/* A random forest of at most 24 segments under at most 80 requests; rng moves on. */
enum kvc_status kvc_workload_random(struct kvc_workload *out, uint64_t *rng, struct kvc_error *err);
void kvc_workload_clear(struct kvc_workload *workload); /* all zero is fine */

#endif
