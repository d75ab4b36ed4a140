/* SPDX-License-Identifier: Apache-2.0
 * Builds the prefix forest and the request columns while rows stream in.
 *
 * Memory: 8 bytes a node (its id), two bits a node, and a hash entry for each node that is not
 * the first child of its parent; a child that continues its parent's chain costs no hash. */
#ifndef KVC_TRACES_FOREST_H
#define KVC_TRACES_FOREST_H

#include "traces/trace.h"

#define KVC_NODE_NONE UINT32_MAX

struct kvc_forest;

struct kvc_row {
    uint64_t time_ns; /* any origin */
    uint32_t input_tokens, output_tokens;
    const uint64_t *ids; /* one per block, root first; n_ids 0 = unknown */
    size_t n_ids;
    uint32_t root_key; /* key space of the ids: model, adapter, session-local; 0 when shared */
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

struct kvc_forest *kvc_forest_create(void); /* NULL: no memory */
void kvc_forest_destroy(struct kvc_forest *forest);
/* The ids are copied. A failure may belong to one of the rows just before; give up then. */
enum kvc_status kvc_forest_add(struct kvc_forest *forest, const struct kvc_row *row,
                               struct kvc_error *err);
/* Makes n rows from the first on later by ns. */
enum kvc_status kvc_forest_delay(struct kvc_forest *forest, uint64_t first, uint64_t n,
                                 uint64_t ns, struct kvc_error *err);
uint64_t kvc_forest_rows(const struct kvc_forest *forest);
/* Times of all rows, until the next one is added. */
enum kvc_status kvc_forest_times(struct kvc_forest *forest, const uint64_t **time_ns,
                                 struct kvc_error *err);
/* Takes rows (ascending indexes) out again, with the blocks only they had. Rebuilds the forest:
 * for the rare log whose rows turn out wrong at its end. */
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

#endif
