/* SPDX-License-Identifier: Apache-2.0
 * What forest.c builds and forest_finish.c turns into a trace.
 *
 * A node's parent is the node before it unless the node is a start; then it is in the start
 * table, which is in node order because starts are numbered as they appear. */
#ifndef KVC_TRACES_FOREST_NODES_H
#define KVC_TRACES_FOREST_NODES_H

#include "traces/forest.h"

/* Parents from here up stand for the roots of key space (UINT32_MAX - 1 - parent). */
#define KVC_ROOT_BASE (UINT32_MAX - (1u << 28))

struct kvc_start {
    uint32_t node, parent; /* parent >= KVC_ROOT_BASE: a root */
    uint32_t depth;        /* blocks above it */
};

struct kvc_branch {
    uint64_t id;
    uint32_t parent, node; /* node KVC_NODE_NONE: empty slot */
};

/* A row on its way in. Its path is looked up some rows ahead, a step at a time, so that the
 * memory each step needs is on its way while others are worked on. */
#define KVC_PENDING 8
struct kvc_pending {
    struct kvc_row row; /* ids point to the copies below */
    uint64_t *ids;
    size_t cap;
    uint32_t cur; /* node reached by the first i ids, or what stands for the root's parent */
    size_t i;
    enum { KVC_STEP_FIND, KVC_STEP_FOLLOW, KVC_STEP_WAIT } step;
};

struct kvc_forest {
    struct kvc_pending pending[KVC_PENDING]; /* rows n_rows .. n_taken - 1, by row modulo */
    uint64_t n_taken;
    uint64_t *id;        /* of each node */
    uint64_t *is_start;  /* bitmap */
    uint64_t *cut_after; /* bitmap: a request ends here or a branch leaves */
    uint32_t n_nodes;
    size_t node_cap; /* a multiple of 64 */
    struct kvc_start *starts;
    size_t n_starts, start_cap;
    struct kvc_branch *branches; /* open addressing, power of two */
    size_t branch_mask;

    /* Rows in the order they came. NULL: no row has one. */
    uint64_t n_rows;
    size_t row_cap;
    uint64_t *time_ns, *think_ns;
    uint32_t *input, *output, *prompt_node, *output_node, *session, *tenant, *model;
    uint32_t *cached_tokens, *shown_tokens;
    uint8_t *status;
};

static inline bool kvc_bit(const uint64_t *map, size_t i)
{
    return (map[i >> 6] >> (i & 63)) & 1;
}

static inline void kvc_bit_set(uint64_t *map, size_t i)
{
    map[i >> 6] |= (uint64_t)1 << (i & 63);
}

/* Takes in all rows that are on their way. */
enum kvc_status kvc_forest_settle(struct kvc_forest *f, struct kvc_error *err);

/* The start at or before node. */
const struct kvc_start *kvc_forest_start(const struct kvc_forest *f, uint32_t node);

static inline uint32_t kvc_forest_depth(const struct kvc_forest *f, uint32_t node)
{
    const struct kvc_start *s = kvc_forest_start(f, node);
    return s->depth + (node - s->node);
}

/* The stand-in parent of the root above node: equal for equal key spaces. */
uint32_t kvc_forest_root(const struct kvc_forest *f, uint32_t node);

/* The node on the path to node that has depth blocks above it; depth <= node's own. */
uint32_t kvc_forest_ancestor(const struct kvc_forest *f, uint32_t node, uint32_t depth);

#endif
