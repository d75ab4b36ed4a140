/* SPDX-License-Identifier: Apache-2.0
 * Ceilings block by block with lists and loops, and a trace cut into segments the slow way: what
 * the real ones are held against. Rows are lists of block ids; an id stands for its whole
 * prefix. */
#ifndef KVC_TESTS_CEILING_TWIN_H
#define KVC_TESTS_CEILING_TWIN_H

#include "traces/trace.h"

struct twin_row {
    uint64_t *ids; /* one per block */
    uint32_t n, tokens;
};

struct twin_rows {
    struct twin_row *row;
    uint32_t n, room, block_tokens;
};

/* ids are copied. */
void twin_add(struct twin_rows *rows, const uint64_t *ids, uint32_t n, uint32_t tokens);
void twin_clear(struct twin_rows *rows);
/* Rows (256 blocks at most) that repeat, prolong or branch off an earlier one, or start anew, or
 * have no ids; with partial tails that have an id (ceil) or have none (floor). */
void twin_draw(struct twin_rows *rows, uint64_t *rng, uint32_t max_rows, uint32_t max_blocks);
/* A trace's prompts block by block; blocks are numbered from 1. */
void twin_rows_of(struct twin_rows *rows, const struct kvc_trace *trace);

enum twin_policy { TWIN_CONTENT, TWIN_LRU, TWIN_OPT };

/* Lookup, then touch: LRU leaf to root, OPT root to leaf with bypass. full_only: as if partial
 * last blocks were not there. runs[n] gets the leading runs. */
void twin_run(const struct twin_rows *rows, enum twin_policy policy, uint64_t capacity,
              bool full_only, struct kvc_hits *hits, uint32_t *runs);

/* A trace of these rows: blocks numbered at first appearance, chains cut where the number of
 * requests passing through changes. Freed with twin_trace_free. */
struct kvc_trace *twin_trace(const struct twin_rows *rows);
void twin_trace_free(struct kvc_trace *trace);
uint64_t twin_blocks(const struct kvc_trace *trace); /* distinct ones */

#endif
