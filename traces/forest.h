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
    const uint64_t *output_ids; /* ids of the full blocks of prompt + output, when known: replaces
                                   ids from the prompt's last full block on; n 0 = unknown */
    size_t n_output_ids;
    uint8_t status;
};

struct kvc_forest *kvc_forest_create(void); /* NULL: no memory */
void kvc_forest_destroy(struct kvc_forest *forest);
enum kvc_status kvc_forest_add(struct kvc_forest *forest, const struct kvc_row *row,
                               struct kvc_error *err);
/* Cuts segments, sorts requests by time (stable), rebases time, infers outputs from session links
 * when infer_outputs. Names are moved in. The forest is destroyed in any case. */
enum kvc_status kvc_forest_finish(struct kvc_forest *forest, uint32_t block_tokens,
                                  bool infer_outputs, struct kvc_trace **out,
                                  struct kvc_error *err);

#endif
