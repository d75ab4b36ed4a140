/* SPDX-License-Identifier: Apache-2.0
 * How well the step model and a closed loop predict published engine rows. */
#ifndef KVC_STUDIES_ENGINE_STUDY_H
#define KVC_STUDIES_ENGINE_STUDY_H

#include "models/measured_fit.h"
#include "studies/engine/bands.h"
#include "studies/engine/closed_loop.h"
#include "studies/engine/rows.h"

struct kvc_engine_prediction {
    double ttft_ms, tpot_ms;
    double unfitted_ttft_ms, unfitted_tpot_ms; /* by no constant that is fitted to whole runs */
    struct kvc_time_band band;
    uint32_t flags;  /* enum KVC_STEP_* */
    uint32_t tp, ep;
    enum kvc_dtype weights, kv;
    size_t group;    /* SIZE_MAX: not scored */
    size_t skipped;  /* 1 + index of its reason; 0: predicted */
    bool aside;      /* of the half of the configurations that no constant is fitted to */
};

struct kvc_engine_errors { /* percent of what was measured; NAN without rows */
    size_t rows;
    double median, mean, p90; /* of absolute errors */
    double bias;              /* signed median */
    double within_20, within_50; /* percent: share of rows, 0..1 */
    double coverage;          /* share of rows within the band, 0..1 */
};

struct kvc_engine_bars { /* NAN: none is set */
    double tpot_median, tpot_p90, ttft_median, tpot_within_20, ttft_within_20, ttft_within_50;
    uint32_t ttft_clients; /* aside_ttft is of rows with at most so many; 0: of all */
};

#define KVC_ENGINE_UNFITTED 2 /* groups whose predictions are those without fitted constants */

/* Rows of one model, system, backend, format of the weights and kind; or all plain ones of a
 * backend, or all plain ones, or those of a name. */
struct kvc_engine_group {
    const char *unfitted;      /* its name, if it is of predictions without fitted constants */
    const struct kvc_llm *llm; /* NULL: all of them */
    enum kvc_row_kind kind;
    const char *system, *backend;
    char format[16];
    struct kvc_engine_bars bars;
    struct kvc_engine_errors ttft, tpot;             /* all rows */
    struct kvc_engine_errors aside_ttft, aside_tpot; /* of the half kept aside */
};

struct kvc_engine_reason {
    char text[256];
    size_t rows;
};

struct kvc_engine_validation { /* all zero = empty */
    struct kvc_engine_rows rows;
    struct kvc_engine_prediction *prediction; /* [rows.n] */
    struct kvc_engine_group *group; /* n_groups, one a backend, all rows, those unfitted */
    size_t n_groups, n_backends;
    struct kvc_engine_reason *reason;
    size_t n_reasons, cap_reasons;
    size_t scored, skipped, doubtful;
};

/* mode: "agg", "disagg" or NULL for both. alike: whatever is published of how a row ran is left
 * aside, all are predicted by the same rules. */
enum kvc_status kvc_engine_validate(struct kvc_engine_validation *out, const char *path,
                                    const char *mode, bool alike, kvc_progress_fn progress,
                                    void *user, struct kvc_error *err);
void kvc_engine_validation_clear(struct kvc_engine_validation *v);
/* "met", "missed" or "-" where there is no bar. */
const char *kvc_engine_verdict(double value, double bar);

#define KVC_ENGINE_CONSTANTS 5 /* of struct kvc_host_costs, in its order */

/* Host constants of a backend, fitted to rows of v that are not of the half kept aside; those that
 * they don't tell are the engine profile's. */
struct kvc_engine_constants {
    struct kvc_fit_constant constant[KVC_ENGINE_CONSTANTS]; /* ns */
    size_t rows; /* fitted to */
    /* of all plain rows of that half, with these constants and with those of the profile */
    struct kvc_engine_band band, carried;
};
enum kvc_status kvc_engine_calibrate(struct kvc_engine_constants *out,
                                     const struct kvc_engine_validation *v, const char *backend,
                                     struct kvc_error *err);

/* engine_score.c */
double kvc_engine_quantile(double *values, size_t n, double q); /* sorts them */
enum kvc_status kvc_engine_score(struct kvc_engine_validation *v, struct kvc_error *err);

#endif
