/* SPDX-License-Identifier: Apache-2.0
 * Samples of a trace that keep prefix trees whole: a view in which each block of a drawn subtree
 * stands for as many as were not drawn. */
#ifndef KVC_SIM_CEILING_SAMPLE_H
#define KVC_SIM_CEILING_SAMPLE_H

#include "sim/ceiling/ceiling.h"

struct kvc_sampler {
    const struct kvc_trace *trace;
    const struct kvc_ceiling_view *v;
    uint32_t weight;     /* one in so many subtrees is drawn */
    uint64_t seed;
    uint32_t *unit;      /* by segment: root of its subtree; KVC_SEG_NONE: above all, always kept */
    uint32_t *kept;      /* by segment: number in the sample at hand */
    uint64_t units, touches, trunk_touches; /* of blocks */
    double token_share;  /* of the tokens of prompts: those of their blocks */
    double own_blocks;   /* of a touch's own prompt within its subtree, seen from a touched block */
};

/* view: of trace. No subtree holds more than KVC_SAMPLE_UNIT_SHARE of a sample, by the first
 * KVC_SAMPLE_ROWS prompts; the deeper the cuts, the more is kept always. Of a trace that is a
 * sample weight and seed are its own. */
enum kvc_status kvc_sampler_init(struct kvc_sampler *s, const struct kvc_trace *trace,
                                 const struct kvc_ceiling_view *view, uint32_t weight,
                                 uint64_t seed, struct kvc_error *err);
void kvc_sampler_clear(struct kvc_sampler *s);
/* Sample number of weight; freed with kvc_sample_clear. *touches: of blocks in it, each once. */
enum kvc_status kvc_sample_view(struct kvc_sampler *s, uint32_t number,
                                struct kvc_ceiling_view *out, uint64_t *touches,
                                struct kvc_error *err);
void kvc_sample_clear(struct kvc_ceiling_view *view);

#endif
