/* SPDX-License-Identifier: Apache-2.0
 * Draws from distributions, each from one random stream; mean 1 unless said otherwise. */
#ifndef KVC_TRACES_VARIATES_H
#define KVC_TRACES_VARIATES_H

#include "base/rng.h"

#include <math.h>

static inline double kvc_draw_exponential(uint64_t *stream)
{
    return -log(1.0 - kvc_rng_unit(stream));
}

/* Mean 0, variance 1; polar method (Marsaglia and Bray 1964), its second value is let go. */
static inline double kvc_draw_normal(uint64_t *stream)
{
    for (;;) {
        double x = 2 * kvc_rng_unit(stream) - 1, y = 2 * kvc_rng_unit(stream) - 1;
        double s = x * x + y * y;
        if (s > 0 && s < 1)
            return x * sqrt(-2 * log(s) / s);
    }
}

/* Mean shape, scale 1; Marsaglia and Tsang 2000, with their power of a uniform below shape 1. */
static inline double kvc_draw_gamma(uint64_t *stream, double shape)
{
    double boost = shape < 1 ? pow(1.0 - kvc_rng_unit(stream), 1 / shape) : 1;
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = kvc_draw_normal(stream), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(1.0 - kvc_rng_unit(stream)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v * boost;
    }
}

/* Scale 1, so of mean gamma(1 + 1 / shape). */
static inline double kvc_draw_weibull(uint64_t *stream, double shape)
{
    return pow(kvc_draw_exponential(stream), 1 / shape);
}

/* A whole number whose expected value is x >= 0. */
static inline uint64_t kvc_draw_round(uint64_t *stream, double x)
{
    double whole = floor(x);
    return (uint64_t)whole + (kvc_rng_unit(stream) < x - whole);
}

#endif
