/* SPDX-License-Identifier: Apache-2.0
 * Hit rates from samples, with bands.
 *
 * Two errors. Which subtrees are drawn: the spread of the disjoint samples, by Student's t. And
 * that a drawn prompt stands for weight of them at once: a touched block meets its own prompt,
 * weight times as long, where the trace has others that come when they like. Its own part is seen
 * at its true length in a cache larger by (weight - 1) times what of it lies above; that is between
 * nothing and all of it, so a rate is taken at half, and the band reaches from none to all. */
#include "sim/ceiling/ceiling_sample.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

#define T_95 2.365 /* two-sided, KVC_SAMPLES - 1 degrees of freedom */

/* policy as the table of policies spells it. */
static enum kvc_status rates_of(const struct kvc_ceiling_view *v, const char *policy,
                                const uint64_t *capacity, size_t n, double *rate,
                                double *token_rate, struct kvc_error *err)
{
    struct kvc_hits *hits = kvc_calloc(n, sizeof(*hits));
    if (!hits)
        return kvc_fail_nomem(err);
    enum kvc_status status = strcmp(policy, "lru") == 0
                                 ? kvc_ceiling_lru_of(v, capacity, n, hits, NULL, err)
                             : strcmp(policy, "opt") == 0
                                 ? kvc_ceiling_opt_of(v, capacity, n, hits, NULL, err)
                                 : kvc_ceiling_runs_of(v, policy, capacity, n, hits, NULL, err);
    for (size_t i = 0; i < n && !status; i++) {
        const struct kvc_hits *h = &hits[i];
        rate[i] = h->blocks ? (double)h->raw_hit_blocks / (double)h->blocks : 0;
        token_rate[i] = h->tokens ? (double)h->raw_hit_tokens / (double)h->tokens : 0;
    }
    kvc_free(hits);
    return status;
}

/* Of all samples at one of the three capacities looked at: the mean, and half of its band. */
static double mean_of(const double *rate, size_t stride, double *half)
{
    double mean = 0, squares = 0;
    for (unsigned k = 0; k < KVC_SAMPLES; k++)
        mean += rate[k * stride] / KVC_SAMPLES;
    for (unsigned k = 0; k < KVC_SAMPLES; k++)
        squares += (rate[k * stride] - mean) * (rate[k * stride] - mean);
    *half = T_95 * sqrt(squares / (KVC_SAMPLES - 1) / KVC_SAMPLES);
    return mean;
}

/* Of point i, from the rates of all samples at its three capacities. */
static double conclude(const double *rate, size_t i, size_t n, double *low, double *high)
{
    double half[3], mean[3];
    for (size_t k = 0; k < 3; k++)
        mean[k] = mean_of(rate + 3 * i + k, 3 * n, &half[k]);
    double wide = fmax(half[0], fmax(half[1], half[2]));
    *low = fmax(0, fmin(fmin(mean[0], mean[2]), mean[1]) - wide);
    *high = fmin(1, fmax(fmax(mean[0], mean[2]), mean[1]) + wide);
    return mean[1];
}

/* Tokens beyond the blocks of their prompts are never hit. */
static void conclude_all(const double *rate, const double *token_rate, size_t n, double share,
                         struct kvc_sampled *out)
{
    for (size_t i = 0; i < n; i++) {
        struct kvc_sampled *o = &out[i];
        o->raw_block_hit_rate = conclude(rate, i, n, &o->low, &o->high);
        o->raw_token_hit_rate = conclude(token_rate, i, n, &o->token_low, &o->token_high);
        o->raw_token_hit_rate *= share;
        o->token_low *= share;
        o->token_high *= share;
    }
}

static enum kvc_status run_samples(struct kvc_sampler *s, const char *policy,
                                   const uint64_t *capacity, size_t n, double *rate,
                                   double *token_rate, struct kvc_sampling *how,
                                   struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    for (uint32_t k = 0; k < KVC_SAMPLES && !status; k++) {
        struct kvc_ceiling_view w;
        uint64_t touches = 0;
        status = kvc_sample_view(s, k, &w, &touches, err);
        if (status)
            break;
        how->kept_share += s->touches
                               ? (double)touches / (double)s->touches / KVC_SAMPLES : 0;
        status = rates_of(&w, policy, capacity, 3 * n, rate + k * 3 * n,
                          token_rate + k * 3 * n, err);
        kvc_sample_clear(&w);
    }
    return status;
}

enum kvc_status kvc_ceiling_sample(const struct kvc_trace *trace, const char *policy,
                                   uint32_t weight, uint64_t seed, const uint64_t *capacity_blocks,
                                   size_t n, struct kvc_sampled *out, struct kvc_sampling *how,
                                   struct kvc_error *err)
{
    struct kvc_ceiling_view v;
    struct kvc_sampler s;
    struct kvc_sampling found = {0};
    const char *name;
    enum kvc_status status = kvc_ceiling_find_policy(&name, policy, err);
    if (!status)
        status = kvc_ceiling_view_sampled(&v, trace, err);
    if (!status && !trace->sample.weight && weight < KVC_SAMPLES)
        status = kvc_fail(err, KVC_ERR_USAGE, "a sample is one in %d or less", KVC_SAMPLES);
    if (!status)
        status = kvc_sampler_init(&s, trace, &v, weight, seed, err);
    if (status)
        return status;
    uint64_t *capacity = kvc_malloc(3 * n, sizeof(*capacity));
    double *rate = kvc_calloc(2 * 3 * n * KVC_SAMPLES, sizeof(*rate)); /* of blocks, of tokens */
    double *token_rate = rate ? rate + 3 * n * KVC_SAMPLES : NULL;
    status = capacity && rate ? KVC_OK : kvc_fail_nomem(err);
    for (size_t i = 0; i < 3 * n && !status; i++) {
        uint64_t own = (uint64_t)((double)(s.weight - 1) * s.own_blocks * (double)(i % 3) / 2);
        uint64_t c = capacity_blocks[i / 3];
        capacity[i] = c < UINT64_MAX - own ? c + own : UINT64_MAX;
    }
    if (!status)
        status = run_samples(&s, name, capacity, n, rate, token_rate, &found, err);
    if (!status) {
        conclude_all(rate, token_rate, n, s.token_share, out);
        found.subtrees = s.units;
        found.trunk_share = s.touches ? (double)s.trunk_touches / (double)s.touches : 0;
        if (how)
            *how = found;
    }
    kvc_free(rate);
    kvc_free(capacity);
    kvc_sampler_clear(&s);
    return status;
}
