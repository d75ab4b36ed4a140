/* SPDX-License-Identifier: Apache-2.0
 * Random streams (splitmix64, Steele, Lea and Flood 2014). One stream per consumer, derived from
 * the run's seed and a fixed name, so that a new consumer shifts no other. */
#ifndef KVC_BASE_RNG_H
#define KVC_BASE_RNG_H

#include <kvcast/policy.h> /* kvc_mix64, kvc_rng_next, kvc_rng_below */

static inline uint64_t kvc_rng_stream(uint64_t seed, const char *name)
{
    uint64_t h = seed;
    for (; *name; name++)
        h = kvc_mix64(h ^ (uint64_t)(unsigned char)*name) + 0x9e3779b97f4a7c15u;
    return h;
}

/* Uniform in [0, 1). */
static inline double kvc_rng_unit(uint64_t *state)
{
    return (double)(kvc_rng_next(state) >> 11) * 0x1p-53;
}

#endif
