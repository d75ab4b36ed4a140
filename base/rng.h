/* SPDX-License-Identifier: Apache-2.0
 * Random streams (splitmix64, Steele, Lea and Flood 2014). One stream per consumer, derived from
 * the run's seed and a fixed name, so that a new consumer shifts no other. */
#ifndef KVC_BASE_RNG_H
#define KVC_BASE_RNG_H

#include <stdint.h>

static inline uint64_t kvc_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t kvc_rng_next(uint64_t *state)
{
    return kvc_mix64(*state += 0x9e3779b97f4a7c15u);
}

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

/* Uniform in [0, n), n > 0, by multiplication (bias below n / 2^64). */
static inline uint64_t kvc_rng_below(uint64_t *state, uint64_t n)
{
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)(((u128)kvc_rng_next(state) * n) >> 64);
}

#endif
