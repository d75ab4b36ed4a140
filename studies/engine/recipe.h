/* SPDX-License-Identifier: Apache-2.0
 * How the client and the engine of a benchmark row were run, as its publisher states it: facts of
 * the run, chosen by source, model, system, backend and date, never by what was measured. */
#ifndef KVC_STUDIES_ENGINE_RECIPE_H
#define KVC_STUDIES_ENGINE_RECIPE_H

#include "studies/engine/client_lengths.h"
#include "studies/engine/rows.h"

struct kvc_engine_recipe {
    bool published;  /* false: nothing is known of the engine's options, defaults are taken */
    uint32_t requests; /* a client */
    double shortest; /* lengths are uniform in [shortest, 1] of those named */
    double kv_share; /* of memory, or of what is free of it: the engine's own option */
    const char *kv;  /* "fp8", "bf16"; NULL: not stated */
    /* as in struct kvc_step_config; experts_kernel is static or NULL */
    const char *experts_kernel;
    bool quantise_apart, narrow_experts, foreign_products, graphed_prefill;
    bool experts_dealt; /* whole to the GPUs, whatever the row's label says */
    uint32_t captured_tokens;
    struct kvc_batching batching;
};

void kvc_engine_recipe_of(const struct kvc_engine_row *row, struct kvc_engine_recipe *out);

#endif
