/* SPDX-License-Identifier: Apache-2.0
 * The 80 % band of an engine's times: what was measured as a share of what is predicted. */
#ifndef KVC_STUDIES_ENGINE_BANDS_H
#define KVC_STUDIES_ENGINE_BANDS_H

#include "models/models.h"

#define KVC_BAND_LEAST 5 /* configurations that carry a flag: then it is in the band */
#define KVC_BAND_GPUS 16

struct kvc_band_row {
    double ttft, tpot;        /* measured / predicted */
    uint64_t configuration;   /* rows of one are alike */
    const char *gpu;
    uint32_t flags;           /* enum KVC_STEP_* */
};

struct kvc_band_cover { /* each configuration held against the band of the others */
    size_t rows, configurations;
    double ttft, tpot; /* share of the rows within; NAN without rows */
};

/* Rows with a flag, or of a GPU with borrowed kernels, that few configurations carry are left out:
 * where such times are estimated the band is widened instead. */
struct kvc_engine_band {
    struct kvc_time_band band; /* factors only */
    uint32_t flags;            /* that the rows carry: kvc_step_band widens by less for some */
    const char *gpu[KVC_BAND_GPUS]; /* whose borrowed kernels the rows carry */
    size_t n_gpus;
    struct kvc_band_cover all, plain; /* plain: without a flag */
    struct kvc_band_cover flagged[4]; /* with PAST, OUTSIDE, BORROWED, SHAPE */
};

/* Each configuration counts once, whatever its rows: the nine tenths of them that lie above, and
 * below. Sorts rows. */
enum kvc_status kvc_engine_band_fit(struct kvc_engine_band *out, struct kvc_band_row *rows,
                                    size_t n, struct kvc_error *err);

#endif
