/* SPDX-License-Identifier: Apache-2.0
 * Constants from a user's measurements: robust least squares over those that the measurements
 * tell, the others kept at a base value; how sure each is, and how well rows left out are met. */
#ifndef KVC_MODELS_MEASURED_FIT_H
#define KVC_MODELS_MEASURED_FIT_H

#include "base/text.h"
#include "models/robust_fit.h"

struct kvc_fit_constant {
    const char *name;       /* for people: "latency" */
    double start, base;     /* above 0, and what it stays at when it can't be told */
    double value, error;    /* out: standard error, NAN where it is the base's */
    bool kept;              /* in: not fitted, with is the caller's */
    bool told;
    uint32_t with;          /* not told: bit per constant that only a mix of is seen, its own too;
                               0: the rows scatter too much */
};

struct kvc_measured_fit {
    kvc_residuals_fn residuals; /* logarithms, predicted against measured, of all rows */
    void *user;
    size_t n, n_constants;
    double scale;               /* beyond it a row counts less and less */
    double effect;              /* rows move in jumps smaller than that; 0: smoothly */
    double least_scatter;       /* what the model itself may be off by; 0: as good as
                                   measurements */
    size_t folds;               /* of the rows left out in turn; 0: each row by itself, at most
                                   20 */
    struct kvc_fit_constant constant[KVC_ROBUST_MOST];
    /* out */
    double scatter;             /* robust standard deviation of the residuals */
    double median, worst;       /* absolute errors on rows fitted, as shares */
    double held_out_median, held_out_worst; /* on rows left out; NAN: too few rows */
    size_t outliers;            /* rows further off than three scales */
};

enum kvc_status kvc_measured_fit_run(struct kvc_measured_fit *f, struct kvc_error *err);

/* What could not be told, in words, one line each behind indent. */
void kvc_measured_fit_words(const struct kvc_measured_fit *f, const char *indent,
                            struct kvc_text *out);

#endif
