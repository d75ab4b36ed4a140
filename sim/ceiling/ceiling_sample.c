/* SPDX-License-Identifier: Apache-2.0
 * Spatial sampling (SHARDS, Waldspurger et al., FAST 2015) of prefix trees: what hashes alike is
 * kept or left out as a whole, so that every reuse within the sample is a reuse of the trace.
 *
 * Drawn are subtrees, not blocks, so that leading runs stay leading runs. Where one family holds
 * much of the trace its top is kept always and what hangs from it is drawn: cuts lie as high as
 * they can without a subtree of more than KVC_SAMPLE_UNIT_SHARE of a sample. In the view a drawn
 * block is as long as weight blocks, one that is kept always as long as itself, so capacities and
 * algorithms stay what they are. */
#include "sim/ceiling/ceiling_sample.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <string.h>

/* Block touches of every subtree, by its root; requests by their last segment come in count. */
static void add_up(const struct kvc_ceiling_view *v, uint64_t *count, uint64_t *touches)
{
    for (uint64_t r = 0; r < v->n_requests; r++)
        if (v->prompt_seg[r] != KVC_SEG_NONE)
            count[v->prompt_seg[r]]++;
    for (uint32_t s = v->n_segments; s-- > 0;) {
        uint32_t up = v->seg_parent[s];
        touches[s] += count[s] * v->seg_len[s];
        if (up == KVC_SEG_NONE)
            continue;
        count[up] += count[s];
        touches[up] += touches[s];
    }
}

static void cut(struct kvc_sampler *s, const uint64_t *count, const uint64_t *touches)
{
    const struct kvc_ceiling_view *v = s->v;
    for (uint32_t i = 0; i < v->n_segments; i++)
        s->touches += v->seg_parent[i] == KVC_SEG_NONE ? touches[i] : 0;
    double most = KVC_SAMPLE_UNIT_SHARE * (double)s->touches / s->weight;
    for (uint32_t i = 0; i < v->n_segments; i++) {
        uint32_t up = v->seg_parent[i], above = up == KVC_SEG_NONE ? up : s->unit[up];
        bool trunk = above == KVC_SEG_NONE && (double)touches[i] > most;
        s->unit[i] = trunk ? KVC_SEG_NONE : above == KVC_SEG_NONE ? i : above;
        s->units += s->unit[i] == i;
        s->trunk_touches += trunk ? count[i] * v->seg_len[i] : 0;
    }
}

/* Half of a touched block's own prompt lies above it in a recency stack, on average. */
static void weigh_prompts(struct kvc_sampler *s)
{
    const struct kvc_ceiling_view *v = s->v;
    double blocks = 0, squares = 0;
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint32_t p = v->prompt_seg[r], unit = p == KVC_SEG_NONE ? p : s->unit[p];
        if (unit == KVC_SEG_NONE)
            continue;
        double n = v->seg_depth[p] + v->seg_len[p] - v->seg_depth[unit];
        blocks += n;
        squares += n * n;
    }
    s->own_blocks = blocks > 0 ? squares / blocks : 0;
}

enum kvc_status kvc_sampler_init(struct kvc_sampler *s, const struct kvc_ceiling_view *v,
                                 uint32_t weight, uint64_t seed, struct kvc_error *err)
{
    *s = (struct kvc_sampler){.v = v, .weight = weight, .seed = seed};
    uint64_t *count = kvc_calloc(v->n_segments, sizeof(*count));
    uint64_t *touches = kvc_calloc(v->n_segments, sizeof(*touches));
    s->unit = kvc_malloc(v->n_segments, sizeof(*s->unit));
    s->kept = kvc_malloc(v->n_segments, sizeof(*s->kept));
    bool ready = count && touches && s->unit && s->kept;
    if (ready) {
        add_up(v, count, touches);
        cut(s, count, touches);
        weigh_prompts(s);
    } else {
        kvc_sampler_clear(s);
    }
    kvc_free(count);
    kvc_free(touches);
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
    return kvc_mix64(kvc_mix64(s->seed + 1) ^ unit) % s->weight == number;
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

static void copy_requests(const struct kvc_sampler *s, struct kvc_ceiling_view *out,
                          uint64_t *arrival_ns, uint64_t *touches)
{
    const struct kvc_ceiling_view *v = s->v;
    uint64_t n = 0;
    *touches = 0;
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint32_t last = last_kept(s, v->prompt_seg[r]);
        if (last == KVC_SEG_NONE)
            continue;
        *touches += v->seg_depth[last] + v->seg_len[last];
        out->owned[0][n] = s->kept[last];
        if (arrival_ns)
            arrival_ns[n] = v->arrival_ns[r];
        n++;
    }
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
    uint32_t *tokens = kvc_calloc(w.n_requests, sizeof(*tokens)); /* not known of a sample */
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
    else if (!copy_segments(s, &w))
        status = kvc_fail(err, KVC_ERR_LIMIT, "the sample stands for 2^32 blocks or more");
    if (status) {
        kvc_sample_clear(&w);
        return status;
    }
    copy_requests(s, &w, arrival_ns, touches);
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
