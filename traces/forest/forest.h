/* SPDX-License-Identifier: Apache-2.0
 * Builds the prefix forest and the request columns while rows stream in.
 *
 * Memory: a hash table of 8 bytes a slot, 3/5 to 3/4 full when it is large, an entry for each node
 * that is not the first child of its parent; a child that continues its parent's chain costs no
 * hash. The rest is written in order and mostly read in order (8 bytes a node for its id, two bits
 * a node, 16 bytes a hashed node, the request columns) and may leave memory for a file, see
 * base/spill.h. */
#ifndef KVC_TRACES_FOREST_H
#define KVC_TRACES_FOREST_H

#include "base/spill.h"
#include "traces/trace.h"

#define KVC_NODE_NONE UINT64_MAX
#define KVC_ROOT_KEYS (((uint64_t)1 << 62) - 1)

struct kvc_forest;

struct kvc_row {
    uint64_t time_ns; /* any origin */
    uint32_t input_tokens, output_tokens;
    const uint64_t *ids; /* one per block, root first; n_ids 0 = unknown */
    size_t n_ids;
    uint64_t root_key; /* key space of the ids: model, adapter, session-local; 0 when shared; at
                          most KVC_ROOT_KEYS */
    uint32_t session, tenant, model; /* KVC_ID_NONE without */
    uint64_t think_ns;               /* KVC_TIME_NONE without */
    const uint64_t *output_ids; /* path of the full blocks of prompt + output from the root, in the
                                   same key space, when known; n 0 = unknown */
    size_t n_output_ids;
    uint8_t status;
    bool shown_stated, cached_stated;
    uint32_t shown_tokens;  /* up to where the prompt repeats what the session's row before
                               generated, 0 = it does not; unless stated lengths tell */
    uint32_t cached_tokens; /* meaningless unless stated */
};

struct kvc_forest_options {
    struct kvc_spill *spill; /* borrowed for the forest's life; NULL: one of its own */
    uint64_t forget_ns;      /* 0: never */
    bool infer_sessions;     /* see forest_sessions.c */
    bool draws;              /* the trace can be sampled by what its ids are */
    uint32_t sample_weight;  /* see forest_sample.c; 0: all rows are kept */
    uint64_t seed;
};

struct kvc_forest_counts {
    uint64_t rows, nodes, chains, hash_bytes; /* chains: nodes with a hash entry, ever made */
    uint64_t forgotten_blocks;
    uint64_t unjudged_rows, unjudged_input_tokens, unjudged_known_blocks; /* see forest_forget.c */
    uint64_t linked_turns, branches;  /* by inferring sessions */
    uint64_t sample, sample_linked; /* rows looked at, and how many inferring would link */
};

struct kvc_forest *kvc_forest_create(void); /* NULL: no memory */
struct kvc_forest *kvc_forest_create_with(const struct kvc_forest_options *options);
void kvc_forest_destroy(struct kvc_forest *forest);
/* The ids are copied. A failure may belong to one of the rows just before; give up then. */
enum kvc_status kvc_forest_add(struct kvc_forest *forest, const struct kvc_row *row,
                               struct kvc_error *err);
/* The same of a row without ids, names and the rest: quicker. */
enum kvc_status kvc_forest_add_lengths(struct kvc_forest *forest, uint64_t time_ns,
                                       uint32_t input_tokens, uint32_t output_tokens,
                                       struct kvc_error *err);
/* Makes n rows from the first on later by ns. */
enum kvc_status kvc_forest_delay(struct kvc_forest *forest, uint64_t first, uint64_t n,
                                 uint64_t ns, struct kvc_error *err);
/* Where prefixes are forgotten: no row to come shares a key space with those before, and its clock
 * is another. */
enum kvc_status kvc_forest_close_spaces(struct kvc_forest *forest, struct kvc_error *err);
/* The trace says nothing of what its ids are; not where rows are sampled. */
void kvc_forest_hide_ids(struct kvc_forest *forest);
uint64_t kvc_forest_rows(const struct kvc_forest *forest);
/* Times of all rows, until the next one is added. */
enum kvc_status kvc_forest_times(struct kvc_forest *forest, const uint64_t **time_ns,
                                 struct kvc_error *err);
/* So far; rows still on their way may be missing but for their number. */
void kvc_forest_count(const struct kvc_forest *forest, struct kvc_forest_counts *out);
/* Bytes that the latest rows take when packed, for a forecast; 0 when that can't be told. */
double kvc_forest_packed_row_bytes(const struct kvc_forest *forest);
/* Takes rows (ascending indexes) out again, with the blocks only they had. Rebuilds the forest:
 * for the rare log whose rows turn out wrong at its end. Not where prefixes are forgotten. */
enum kvc_status kvc_forest_remove(struct kvc_forest **forest, const uint64_t *rows, size_t n,
                                  struct kvc_error *err);
/* Cuts segments, sorts requests by time (stable), rebases time, and infers outputs from session
 * links when infer_outputs: of two consecutive turns the later one shows what the earlier one
 * generated if it is long enough and contains the earlier prompt's full blocks. The forest is
 * destroyed in any case. Session, tenant and model counts are the largest index + 1; names and
 * the digest are the caller's to set. */
enum kvc_status kvc_forest_finish(struct kvc_forest *forest, uint32_t block_tokens,
                                  bool infer_outputs, struct kvc_trace **out,
                                  struct kvc_error *err);
/* The same, with the final counts, and a callback that may cancel (NULL: none). */
enum kvc_status kvc_forest_finish_with(struct kvc_forest *forest, uint32_t block_tokens,
                                       bool infer_outputs, kvc_progress_fn progress, void *user,
                                       struct kvc_forest_counts *counts, struct kvc_trace **out,
                                       struct kvc_error *err);

#endif
