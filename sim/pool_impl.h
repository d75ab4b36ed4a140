/* SPDX-License-Identifier: Apache-2.0
 * The inside of a pool, shared by pool.c and pool_check.c. */
#ifndef KVC_SIM_POOL_IMPL_H
#define KVC_SIM_POOL_IMPL_H

#include "sim/pool.h"

#define NONE UINT32_MAX

/* A chain holds the main runs of a segment in order of lo, then its copies, oldest first. */
struct kvc_run {
    uint32_t seg, lo, hi; /* blocks inside the segment */
    uint32_t holders;
    uint32_t prev, next;  /* queue, while queued */
    uint32_t chain;
    uint32_t owner;       /* who published a copy or a pending run */
    bool queued, copy, pending, read;
};

static inline uint64_t kvc_run_pages(const struct kvc_pool *pool, const struct kvc_run *r)
{
    if (pool->pages_per_block)
        return (uint64_t)(r->hi - r->lo) * pool->pages_per_block;
    uint64_t depth = pool->trace->seg_depth[r->seg];
    return kvc_pool_pages(pool, depth + r->hi) - kvc_pool_pages(pool, depth + r->lo);
}

#endif
