/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/bounds.h"

#include "base/alloc.h"
#include "base/error.h"
#include "sim/ceiling/ceiling.h"

#include <string.h>

struct kvc_bounds {
    struct kvc_ceiling_view view; /* of the trace with extended paths, tails cut off */
    uint32_t *prompt_seg, *input_tokens;
    uint64_t block_bytes, tokens, unique_blocks;
    uint64_t reusable; /* tokens that hit in an infinite cache, by the view */
    double content;
};

static void extend_paths(struct kvc_bounds *b, const struct kvc_trace *t, const uint32_t *order)
{
    for (uint64_t k = 0; k < t->n_requests; k++) {
        uint32_t i = order[k], s = t->prompt_seg[i];
        b->input_tokens[k] = t->input_tokens[i];
        b->tokens += t->input_tokens[i];
        uint32_t out = t->output_seg ? t->output_seg[i] : KVC_SEG_NONE;
        if (out != KVC_SEG_NONE) {
            uint64_t tokens = (uint64_t)(t->seg_depth[out] + t->seg_len[out]) * t->block_tokens;
            if (tokens > b->input_tokens[k] && tokens <= UINT32_MAX) {
                s = out;
                b->input_tokens[k] = (uint32_t)tokens;
            }
        }
        b->prompt_seg[k] = s;
    }
}

/* Leading blocks of each prompt that an earlier prompt or known output had. */
static enum kvc_status count_content(struct kvc_bounds *b, const struct kvc_trace *t,
                                     const uint32_t *order, struct kvc_error *err)
{
    uint32_t *had = kvc_calloc(t->n_segments, sizeof(*had));
    if (!had)
        return kvc_fail_nomem(err);
    uint64_t hits = 0;
    for (uint64_t k = 0; k < t->n_requests; k++) {
        uint32_t i = order[k], full = kvc_trace_full_blocks(t, i), run = full;
        for (uint32_t s = t->prompt_seg[i]; s != KVC_SEG_NONE; s = t->seg_parent[s]) {
            uint32_t end = full > t->seg_depth[s] ? full - t->seg_depth[s] : 0;
            if (end > t->seg_len[s])
                end = t->seg_len[s];
            if (had[s] < end)
                run = t->seg_depth[s] + had[s];
            had[s] = had[s] > end ? had[s] : end;
        }
        uint32_t out = b->prompt_seg[k] != t->prompt_seg[i] ? b->prompt_seg[k] : KVC_SEG_NONE;
        for (uint32_t s = out; s != KVC_SEG_NONE && had[s] < t->seg_len[s]; s = t->seg_parent[s])
            had[s] = t->seg_len[s];
        hits += (uint64_t)run * t->block_tokens;
    }
    for (uint32_t s = 0; s < t->n_segments; s++)
        b->unique_blocks += had[s];
    b->content = b->tokens ? (double)hits / (double)b->tokens : 0;
    kvc_free(had);
    return KVC_OK;
}

static enum kvc_status view_extended(struct kvc_bounds *b, const struct kvc_trace *t,
                                     struct kvc_error *err)
{
    struct kvc_trace extended = *t;
    struct kvc_hits content;
    extended.prompt_seg = b->prompt_seg;
    extended.input_tokens = b->input_tokens;
    extended.output_seg = NULL;
    enum kvc_status st = kvc_ceiling_view_full(&b->view, &extended, err);
    if (st == KVC_OK)
        st = kvc_ceiling_content_of(&b->view, &content, NULL, err);
    if (st == KVC_OK)
        b->reusable = content.hit_tokens;
    return st;
}

enum kvc_status kvc_bounds_create(struct kvc_bounds **out, const struct kvc_trace *trace,
                                  const uint32_t *order, uint64_t block_bytes,
                                  struct kvc_error *err)
{
    struct kvc_bounds *b = kvc_calloc(1, sizeof(*b));
    if (!b)
        return kvc_fail_nomem(err);
    b->block_bytes = block_bytes;
    b->prompt_seg = kvc_malloc(trace->n_requests, sizeof(*b->prompt_seg));
    b->input_tokens = kvc_malloc(trace->n_requests, sizeof(*b->input_tokens));
    enum kvc_status st = b->prompt_seg && b->input_tokens ? KVC_OK : kvc_fail_nomem(err);
    if (st == KVC_OK) {
        extend_paths(b, trace, order);
        st = count_content(b, trace, order, err);
    }
    if (st == KVC_OK)
        st = view_extended(b, trace, err);
    if (st != KVC_OK) {
        kvc_bounds_destroy(b);
        return st;
    }
    *out = b;
    return KVC_OK;
}

void kvc_bounds_destroy(struct kvc_bounds *b)
{
    if (!b)
        return;
    kvc_ceiling_view_clear(&b->view);
    kvc_free(b->prompt_seg);
    kvc_free(b->input_tokens);
    kvc_free(b);
}

double kvc_bounds_content(const struct kvc_bounds *b)
{
    return b->content;
}

uint64_t kvc_bounds_unique_bytes(const struct kvc_bounds *b)
{
    return b->unique_blocks * b->block_bytes;
}

/* Capacities of one call that a pass of the optimum is spent on before looking whether it has
 * reached the content bound already. */
#define BATCH 6

static enum kvc_status hits_at(const struct kvc_bounds *b, bool optimum, const uint64_t *blocks,
                               size_t n, struct kvc_hits *hits, struct kvc_error *err)
{
    if (!optimum)
        return kvc_ceiling_lru_of(&b->view, blocks, n, hits, NULL, err);
    for (size_t i = 0; i < n; i += BATCH) {
        size_t m = n - i < BATCH ? n - i : BATCH;
        bool enough = i && blocks[i] >= blocks[i - 1] && hits[i - 1].hit_tokens >= b->reusable;
        if (enough) {
            for (size_t k = 0; k < m; k++)
                hits[i + k] = hits[i - 1];
            continue;
        }
        enum kvc_status st = kvc_ceiling_opt_of(&b->view, blocks + i, m, hits + i, NULL, err);
        if (st != KVC_OK)
            return st;
    }
    return KVC_OK;
}

enum kvc_status kvc_bounds_at(const struct kvc_bounds *b, bool optimum,
                              const uint64_t *capacity_bytes, size_t n, double *rate,
                              struct kvc_error *err)
{
    uint64_t *blocks = kvc_malloc(n, sizeof(*blocks));
    struct kvc_hits *hits = kvc_calloc(n, sizeof(*hits));
    enum kvc_status st = blocks && hits ? KVC_OK : kvc_fail_nomem(err);
    for (size_t i = 0; st == KVC_OK && i < n; i++)
        blocks[i] = b->block_bytes ? capacity_bytes[i] / b->block_bytes : KVC_CAPACITY_INF;
    if (st == KVC_OK)
        st = hits_at(b, optimum, blocks, n, hits, err);
    for (size_t i = 0; st == KVC_OK && i < n; i++) {
        /* Outputs that repeat an earlier one count as hits here though they are not input: cut at
         * the content bound. */
        rate[i] = b->tokens ? (double)hits[i].hit_tokens / (double)b->tokens : 0;
        if (rate[i] > b->content)
            rate[i] = b->content;
    }
    kvc_free(blocks);
    kvc_free(hits);
    return st;
}
