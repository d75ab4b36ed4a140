/* SPDX-License-Identifier: Apache-2.0
 * A few constants from many residuals, of which some are far off. */
#ifndef KVC_MODELS_ROBUST_FIT_H
#define KVC_MODELS_ROBUST_FIT_H

#include <kvcast/kvcast.h>

#define KVC_ROBUST_MOST 8

/* The n residuals at constants x; false ends the fit. */
typedef bool (*kvc_residuals_fn)(void *user, const double *x, double *residual);

/* Least squares with Cauchy weights, 1 / (1 + (r / scale)^2), weighed anew a few times. worth: [n]
 * what each residual counts beside, 1 in the mean; NULL: all alike. Constants are at least 0; x
 * holds the start (above 0, it sets their size) and then the result, error their standard
 * errors. */
enum kvc_status kvc_robust_fit(kvc_residuals_fn fn, void *user, const double *worth, size_t n,
                               double scale, double *x, double *error, size_t n_x,
                               struct kvc_error *err);

#endif
