/* SPDX-License-Identifier: Apache-2.0
 * Measured TTFTs of one prefix by length and the tier that serves it, beside their replays. */
#ifndef KVC_STUDIES_PREFIX_STUDY_H
#define KVC_STUDIES_PREFIX_STUDY_H

#include "studies/calibrate/probe.h"

#define KVC_PREFIX_TARGET 15 /* percent, of each row */

struct kvc_prefix_row {
    uint32_t tokens;
    char tier[32]; /* as the table says */
    enum kvc_probe_tier which;
    double measured_ms, predicted_ms;
    bool calibrated; /* set what it is predicted by, so not scored */
};

/* What rows of a tier below HBM say of a load beside its copy; rows 0: fewer than two lengths. */
struct kvc_prefix_load {
    size_t rows;
    double ms, us_per_token;
};

struct kvc_prefix_study { /* all zero = empty; in the file's order */
    struct kvc_prefix_row *row;
    size_t n, cap;
    bool host;       /* the first row set front end and host */
    double shift_ms; /* what that added to every prediction */
    struct kvc_prefix_load dram, remote;
};

enum { KVC_PREFIX_HOST = 1, KVC_PREFIX_LOADS = 2 };

/* Columns tokens, tier and ttft_ms or ttft_p50_s. calibrate: with HOST the first row sets what is
 * the same for every request of that engine, front end and host; with LOADS a tier's shortest and
 * longest rows set what a load of it costs once and for each token beside its copy, and beside a
 * hit in HBM of that length where the table has one, in place of engine.kv_load_time and
 * engine.kv_load_token_time. */
enum kvc_status kvc_prefix_study_run(struct kvc_prefix_study *out, const char *path,
                                     const struct kvc_scenario *scenario, unsigned calibrate,
                                     struct kvc_error *err);
void kvc_prefix_study_clear(struct kvc_prefix_study *study);

#endif
