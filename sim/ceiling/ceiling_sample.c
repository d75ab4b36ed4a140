/* SPDX-License-Identifier: Apache-2.0
 * Spatial sampling (SHARDS, Waldspurger et al., FAST 2015) of prefix trees: what hashes alike is
 * kept or left out as a whole, so that every reuse within the sample is a reuse of the trace.
 *
 * Drawn are subtrees, not blocks, so that leading runs stay leading runs. Where one family holds
 * much of the trace its top is kept always and what hangs from it is drawn: cuts lie as high as
 * they can without a subtree of more than KVC_SAMPLE_UNIT_SHARE of a sample. In the view a drawn
 * block is as long as weight blocks, one that is kept always as long as itself, so capacities and
 * algorithms stay what they are.
 *
 * A trace may be the samples already, drawn while its log streamed by: forest_sample.c cuts and
 * draws alike. */
#include "sim/ceiling/ceiling_sample.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <string.h>

/* What the first prompts that pass each segment come to in blocks; returns those of all of them. */
static uint64_t add_up(const struct kvc_ceiling_view *v, uint64_t *passing)
{
    uint64_t rows = 0, all = 0;
    for (uint64_t r = 0; r < v->n_requests && rows < KVC_SAMPLE_ROWS; r++) {
        uint32_t p = v->prompt_seg[r];
        if (p == KVC_SEG_NONE)
            continue;
        rows++;
        passing[p] += v->seg_depth[p] + v->seg_len[p];
        all += v->seg_depth[p] + v->seg_len[p];
    }
    for (uint32_t s = v->n_segments; s-- > 0;)
        if (v->seg_parent[s] != KVC_SEG_NONE)
            passing[v->seg_parent[s]] += passing[s];
    return all;
}

/* passing NULL: the trace is a sample, cut when it was drawn. */
static void cut(struct kvc_sampler *s, const uint64_t *passing, uint64_t all)
{
    const struct kvc_ceiling_view *v = s->v;
    double most = KVC_SAMPLE_UNIT_SHARE * (double)all / s->weight;
    for (uint32_t i = 0; i < v->n_segments; i++) {
        uint32_t up = v->seg_parent[i], above = up == KVC_SEG_NONE ? up : s->unit[up];
        bool trunk = passing ? (double)passing[i] > most
                             : s->trace->seg_draw[i] == KVC_SAMPLE_TRUNK;
        s->unit[i] = above != KVC_SEG_NONE ? above : trunk ? KVC_SEG_NONE : i;
        s->units += s->unit[i] == i;
    }
}

/* Blocks of the path to a segment that lie above the cuts. */
static uint32_t trunk_blocks(const struct kvc_sampler *s, uint32_t segment)
{
    const struct kvc_ceiling_view *v = s->v;
    uint32_t unit = s->unit[segment];
    return unit == KVC_SEG_NONE ? v->seg_depth[segment] + v->seg_len[segment] : v->seg_depth[unit];
}

/* Half of a touched block's own prompt lies above it in a recency stack, on average. */
static void add_totals(struct kvc_sampler *s)
{
    const struct kvc_ceiling_view *v = s->v;
    const struct kvc_sample_totals *of = &s->trace->sample;
    uint64_t own = 0, squares = 0, tokens = 0, in_blocks = 0;
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint32_t p = v->prompt_seg[r];
        tokens += v->input_tokens[r];
        if (p == KVC_SEG_NONE)
            continue;
        uint64_t n = v->seg_depth[p] + v->seg_len[p], top = trunk_blocks(s, p);
        uint64_t whole = n * v->block_tokens;
        in_blocks += whole < v->input_tokens[r] ? whole : v->input_tokens[r];
        s->touches += n;
        s->trunk_touches += top;
        own += n - top;
        squares += (n - top) * (n - top);
    }
    if (of->weight) {
        s->touches = of->block_touches;
        s->units = s->units * of->weight / KVC_SAMPLES; /* about */
        own = of->own_blocks;
        squares = of->own_squares;
        tokens = of->input_tokens;
        in_blocks = of->block_tokens;
    }
    s->own_blocks = own ? (double)squares / (double)own : 0;
    s->token_share = tokens ? (double)in_blocks / (double)tokens : 0;
}

enum kvc_status kvc_sampler_init(struct kvc_sampler *s, const struct kvc_trace *trace,
                                 const struct kvc_ceiling_view *v, uint32_t weight,
                                 uint64_t seed, struct kvc_error *err)
{
    const struct kvc_sample_totals *of = &trace->sample;
    *s = (struct kvc_sampler){.trace = trace, .v = v, .weight = of->weight ? of->weight : weight,
                              .seed = of->weight ? of->seed : seed};
    uint64_t *passing = kvc_calloc(v->n_segments, sizeof(*passing));
    s->unit = kvc_malloc(v->n_segments, sizeof(*s->unit));
    s->kept = kvc_malloc(v->n_segments, sizeof(*s->kept));
    bool ready = passing && s->unit && s->kept;
    if (ready) {
        uint64_t all = of->weight ? 0 : add_up(v, passing);
        cut(s, of->weight ? NULL : passing, all);
        add_totals(s);
    } else {
        kvc_sampler_clear(s);
    }
    kvc_free(passing);
    return ready ? KVC_OK : kvc_fail_nomem(err);
}

void kvc_sampler_clear(struct kvc_sampler *s)
{
    kvc_free(s->unit);
    kvc_free(s->kept);
    s->unit = s->kept = NULL;
}

static bool drawn(const struct kvc_sampler *s, uint32_t unit, uint32_t number)
{
    const uint32_t *draw = s->trace->seg_draw;
    if (s->trace->sample.weight)
        return draw[unit] == number;
    return kvc_sample_number(s->seed, draw ? draw[unit] : unit, s->weight) == number;
}

/* Numbers the segments of the sample. */
static uint32_t number_segments(struct kvc_sampler *s, uint32_t number)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->v->n_segments; i++)
        s->kept[i] = s->unit[i] == KVC_SEG_NONE || drawn(s, s->unit[i], number) ? n++
                                                                                : KVC_SEG_NONE;
    return n;
}

static bool copy_segments(const struct kvc_sampler *s, struct kvc_ceiling_view *out)
{
    const struct kvc_ceiling_view *v = s->v;
    uint64_t all = 0;
    for (uint32_t i = 0; i < v->n_segments; i++) {
        uint32_t k = s->kept[i], up = v->seg_parent[i];
        if (k == KVC_SEG_NONE)
            continue;
        uint32_t above = up == KVC_SEG_NONE ? up : s->kept[up];
        uint64_t len = v->seg_len[i] * (uint64_t)(s->unit[i] == KVC_SEG_NONE ? 1 : s->weight);
        all += len;
        if (all >= UINT32_MAX)
            return false;
        out->owned[1][k] = above;
        out->owned[2][k] = (uint32_t)len;
        out->owned[3][k] = above == KVC_SEG_NONE ? 0 : out->owned[3][above] + out->owned[2][above];
    }
    return true;
}

/* The last segment of a prompt that is in the sample. */
static uint32_t last_kept(const struct kvc_sampler *s, uint32_t segment)
{
    if (segment == KVC_SEG_NONE || s->kept[segment] != KVC_SEG_NONE)
        return segment;
    return s->v->seg_parent[s->unit[segment]];
}

/* Tokens of the n blocks of a prompt that are in the sample, as many times as they count there. */
static uint64_t weighted_tokens(const struct kvc_sampler *s, uint64_t r, uint32_t last)
{
    const struct kvc_ceiling_view *v = s->v;
    uint64_t top = trunk_blocks(s, last), n = v->seg_depth[last] + v->seg_len[last];
    uint64_t whole = n * v->block_tokens, times = n > top ? s->weight : 1;
    uint64_t lacking = whole > v->input_tokens[r] ? whole - v->input_tokens[r] : 0;
    return (top + s->weight * (n - top)) * v->block_tokens - times * lacking;
}

static bool copy_requests(const struct kvc_sampler *s, struct kvc_ceiling_view *out,
                          uint64_t *arrival_ns, uint32_t *tokens, uint64_t *touches)
{
    const struct kvc_ceiling_view *v = s->v;
    uint64_t n = 0;
    *touches = 0;
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint32_t last = last_kept(s, v->prompt_seg[r]);
        if (last == KVC_SEG_NONE)
            continue;
        *touches += v->seg_depth[last] + v->seg_len[last];
        uint64_t weighted = weighted_tokens(s, r, last);
        if (weighted > UINT32_MAX)
            return false;
        tokens[n] = (uint32_t)weighted;
        out->owned[0][n] = s->kept[last];
        if (arrival_ns)
            arrival_ns[n] = v->arrival_ns[r];
        n++;
    }
    return true;
}

enum kvc_status kvc_sample_view(struct kvc_sampler *s, uint32_t number,
                                struct kvc_ceiling_view *out, uint64_t *touches,
                                struct kvc_error *err)
{
    const struct kvc_ceiling_view *v = s->v;
    struct kvc_ceiling_view w = {.block_tokens = v->block_tokens};
    uint64_t *arrival_ns = NULL;
    w.n_segments = number_segments(s, number);
    for (uint64_t r = 0; r < v->n_requests; r++)
        w.n_requests += last_kept(s, v->prompt_seg[r]) != KVC_SEG_NONE;
    uint32_t *tokens = kvc_calloc(w.n_requests, sizeof(*tokens));
    for (int i = 0; i < 4; i++)
        w.owned[i] = kvc_malloc(i ? w.n_segments : w.n_requests, sizeof(uint32_t));
    if (v->arrival_ns)
        arrival_ns = kvc_malloc(w.n_requests, sizeof(*arrival_ns));
    w.input_tokens = tokens;
    w.arrival_ns = arrival_ns;
    enum kvc_status status = KVC_OK;
    if (!tokens || !w.owned[0] || !w.owned[1] || !w.owned[2] || !w.owned[3] ||
        (v->arrival_ns && !arrival_ns))
        status = kvc_fail_nomem(err);
    else if (!copy_segments(s, &w) || !copy_requests(s, &w, arrival_ns, tokens, touches))
        status = kvc_fail(err, KVC_ERR_LIMIT, "the sample stands for 2^32 blocks or more, or a "
                          "prompt in it for so many tokens: take a larger share");
    if (status) {
        kvc_sample_clear(&w);
        return status;
    }
    w.prompt_seg = w.owned[0];
    w.seg_parent = w.owned[1];
    w.seg_len = w.owned[2];
    w.seg_depth = w.owned[3];
    *out = w;
    return KVC_OK;
}

void kvc_sample_clear(struct kvc_ceiling_view *view)
{
    kvc_free((void *)(uintptr_t)view->input_tokens);
    kvc_free((void *)(uintptr_t)view->arrival_ns);
    kvc_ceiling_view_clear(view);
}
