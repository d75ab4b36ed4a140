/* SPDX-License-Identifier: Apache-2.0
 * Measured TTFTs of one prefix by length and the tier that serves it, beside their replays. */
#ifndef KVC_STUDIES_PREFIX_STUDY_H
#define KVC_STUDIES_PREFIX_STUDY_H

#include "studies/probe.h"

#define KVC_PREFIX_TARGET 15 /* percent, of each row */

struct kvc_prefix_row {
    uint32_t tokens;
    char tier[32]; /* as the table says */
    double measured_ms, predicted_ms;
};

struct kvc_prefix_study { /* all zero = empty; in the file's order */
    struct kvc_prefix_row *row;
    size_t n, cap;
    size_t calibrated; /* the row that host and front end were set by, not scored; SIZE_MAX: none */
    double shift_ms;   /* what that added to every prediction */
};

/* Columns tokens, tier and ttft_ms or ttft_p50_s. calibrate: the first row sets what is the same
 * for every request of that engine, front end and host. */
enum kvc_status kvc_prefix_study_run(struct kvc_prefix_study *out, const char *path,
                                     const struct kvc_scenario *scenario, bool calibrate,
                                     struct kvc_error *err);
void kvc_prefix_study_clear(struct kvc_prefix_study *study);

#endif
