/* SPDX-License-Identifier: Apache-2.0
 * Published engine benchmark rows (columns as aiconfigurator's silicon_sample.csv): one closed-loop
 * run each, with the labels repaired, repeats of a measurement marked and doubtful ones named. */
#ifndef KVC_STUDIES_ENGINE_ROWS_H
#define KVC_STUDIES_ENGINE_ROWS_H

#include "models/models.h"

#define KVC_ROW_NAME 64

/* What sets a run apart from plain aggregated serving; such rows are scored by themselves. */
enum kvc_row_kind { KVC_ROW_PLAIN, KVC_ROW_DATA_PARALLEL, KVC_ROW_SPECULATIVE, KVC_ROW_DISAGG };

struct kvc_row_workers { /* disaggregated rows: one kind of workers */
    uint32_t workers, batch, tp, pp, dp, moe_tp, moe_ep; /* workers 0: not stated */
};

struct kvc_engine_row {
    enum kvc_row_kind kind;
    char id[128], model[KVC_ROW_NAME], system[KVC_ROW_NAME], backend[KVC_ROW_NAME],
        version[KVC_ROW_NAME], precision[16], gemm[KVC_ROW_NAME], moe[KVC_ROW_NAME];
    uint32_t measured;       /* day, yyyymmdd; 0: not stated */
    bool disagg, harvested; /* harvested: from InferenceX's dumps, whose labels need repair */
    bool alike;             /* predicted as if nothing were published of how it ran */
    uint32_t isl, osl, clients, tp, pp, dp, moe_tp, moe_ep; /* disaggregated: of decode workers */
    struct kvc_row_workers prefill, decode;
    double ttft_ms, tpot_ms;
    /* static texts, or NULL */
    const char *unusable; /* no prediction is tried */
    const char *doubtful; /* predicted, but not scored */
    const char *repaired;
    const char *speculative; /* why it is taken to be predicted ahead, though no label says so */
};

struct kvc_engine_rows { /* all zero = empty */
    struct kvc_engine_row *row;
    size_t n, cap;
};

/* Rows of a mode only ("agg", "disagg") or all (NULL), in the file's order. */
enum kvc_status kvc_engine_rows_read(struct kvc_engine_rows *out, const char *path,
                                     const char *mode, struct kvc_error *err);
void kvc_engine_rows_clear(struct kvc_engine_rows *rows);

/* The LLM's profile by the published name, whatever its owner and format; NULL: unknown. */
const struct kvc_llm *kvc_engine_row_llm(const struct kvc_engine_row *row);
/* Format of weights and KV. The rows do not name the KV's: the weights' format decides. */
bool kvc_engine_row_dtypes(const struct kvc_engine_row *row, const struct kvc_llm *llm,
                           const struct kvc_gpu *gpu, enum kvc_dtype *weights,
                           enum kvc_dtype *kv);

#endif
