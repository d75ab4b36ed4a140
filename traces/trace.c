/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/trace.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/distribution.h"
#include "base/spill.h"
#include "traces/trace_write.h"

#include <stdlib.h>
#include <string.h>

static void free_names(char **names, uint32_t n)
{
    for (uint32_t i = 0; names && i < n; i++)
        kvc_free(names[i]);
    kvc_free(names);
}

void kvc_trace_keep(struct kvc_trace *t, void *column, size_t mapped)
{
    if (mapped)
        t->mapped[t->n_mapped++] = (struct kvc_mapped_column){ column, mapped };
}

void kvc_trace_drop(struct kvc_trace *t, void *column)
{
    void **p = column;
    for (uint32_t i = 0; *p && i < t->n_mapped; i++)
        if (t->mapped[i].p == *p) {
            kvc_spill_unmap(*p, t->mapped[i].bytes);
            t->mapped[i] = t->mapped[--t->n_mapped];
            *p = NULL;
        }
    kvc_free(*p);
    *p = NULL;
}

void kvc_trace_destroy(struct kvc_trace *t)
{
    if (!t)
        return;
    kvc_trace_drop(t, &t->arrival_ns);
    kvc_trace_drop(t, &t->input_tokens);
    kvc_trace_drop(t, &t->output_tokens);
    kvc_trace_drop(t, &t->prompt_seg);
    kvc_trace_drop(t, &t->output_seg);
    kvc_trace_drop(t, &t->session);
    kvc_trace_drop(t, &t->think_ns);
    kvc_trace_drop(t, &t->tenant);
    kvc_trace_drop(t, &t->model);
    kvc_free(t->output_unknown);
    kvc_trace_drop(t, &t->row_status);
    kvc_trace_drop(t, &t->cached_tokens);
    kvc_free(t->breaks);
    kvc_free(t->report);
    kvc_trace_drop(t, &t->seg_parent);
    kvc_trace_drop(t, &t->seg_len);
    kvc_trace_drop(t, &t->seg_depth);
    kvc_trace_drop(t, &t->seg_draw);
    free_names(t->tenant_names, t->n_tenants);
    free_names(t->model_names, t->n_models);
    kvc_free(t);
}

uint32_t kvc_trace_path_length(const struct kvc_trace *t, uint32_t seg)
{
    uint32_t n = 0;
    for (; seg != KVC_SEG_NONE; seg = t->seg_parent[seg])
        n++;
    return n;
}

uint32_t kvc_trace_path(const struct kvc_trace *t, uint32_t seg, uint32_t *path)
{
    uint32_t n = kvc_trace_path_length(t, seg);
    for (uint32_t i = n; i-- > 0; seg = t->seg_parent[seg])
        path[i] = seg;
    return n;
}

/* ---- digest ---- */

static void add_column(struct kvc_digest *d, const char *name, const void *column, uint64_t n,
                       size_t size)
{
    if (!column) /* absent and present-but-empty columns read the same */
        return;
    kvc_digest_add(d, name, strlen(name));
    kvc_digest_add(d, column, (size_t)n * size);
}

static void add_names(struct kvc_digest *d, const char *what, char **names, uint32_t n)
{
    for (uint32_t i = 0; names && i < n; i++) {
        kvc_digest_add(d, what, strlen(what));
        kvc_digest_add(d, names[i], strlen(names[i]) + 1);
    }
}

void kvc_trace_digest(const struct kvc_trace *t, char out[24])
{
    struct kvc_digest d;
    uint64_t head[3] = { t->block_tokens, t->n_requests, t->n_segments };
    kvc_digest_init(&d);
    kvc_digest_add(&d, head, sizeof(head));
    add_column(&d, "arrival_ns", t->arrival_ns, t->n_requests, 8);
    add_column(&d, "input_tokens", t->input_tokens, t->n_requests, 4);
    add_column(&d, "output_tokens", t->output_tokens, t->n_requests, 4);
    add_column(&d, "prompt_seg", t->prompt_seg, t->n_requests, 4);
    add_column(&d, "output_seg", t->output_seg, t->n_requests, 4);
    add_column(&d, "session", t->session, t->n_requests, 4);
    add_column(&d, "think_ns", t->think_ns, t->n_requests, 8);
    add_column(&d, "tenant", t->tenant, t->n_requests, 4);
    add_column(&d, "model", t->model, t->n_requests, 4);
    add_column(&d, "row_status", t->row_status, t->n_requests, 1);
    add_column(&d, "seg_parent", t->seg_parent, t->n_segments, 4);
    add_column(&d, "seg_len", t->seg_len, t->n_segments, 4);
    add_names(&d, "tenant_name", t->tenant_names, t->n_tenants);
    add_names(&d, "model_name", t->model_names, t->n_models);
    kvc_digest_hex(&d, out);
}

/* ---- statistics ---- */

/* Arrivals count as batched when, over at least 16 distinct times, each stands for 2 requests or
 * more on average and the middle half of the gaps between them differ by at most one part in ten:
 * a clock that ticks, not a crowd. The answer is the median gap. */
uint64_t kvc_trace_batch_period(const struct kvc_trace *t, uint64_t distinct)
{
    if (distinct < 16 || t->n_requests < 2 * distinct)
        return 0;
    uint64_t *gap = kvc_malloc((size_t)distinct, sizeof(*gap));
    if (!gap) /* a hint only */
        return 0;
    size_t n = 0;
    for (uint64_t i = 1; i < t->n_requests; i++)
        if (t->arrival_ns[i] != t->arrival_ns[i - 1])
            gap[n++] = t->arrival_ns[i] - t->arrival_ns[i - 1];
    qsort(gap, n, sizeof(*gap), kvc_order_u64);
    uint64_t low = gap[n / 4], median = gap[n / 2], high = gap[n * 3 / 4];
    kvc_free(gap);
    return high - low <= median / 10 ? median : 0;
}

/* Counts the segments that prompts pass through, and their blocks: known outputs alone don't count.
 * No memory: all of them. */
static void count_touched(const struct kvc_trace *t, struct kvc_trace_stats *s)
{
    bool *touched = kvc_calloc(t->n_segments, sizeof(*touched));
    for (uint64_t r = 0; touched && r < t->n_requests; r++)
        if (t->prompt_seg[r] != KVC_SEG_NONE)
            touched[t->prompt_seg[r]] = true;
    for (uint32_t g = t->n_segments; g-- > 0;) {
        if (touched && !touched[g])
            continue;
        s->segments++;
        s->blocks += t->seg_len[g];
        if (touched && t->seg_parent[g] != KVC_SEG_NONE)
            touched[t->seg_parent[g]] = true;
    }
    kvc_free(touched);
}

/* Segments above and including each one; NULL when there is no memory. */
static uint32_t *segment_levels(const struct kvc_trace *t)
{
    uint32_t *level = kvc_malloc(t->n_segments, sizeof(*level));
    for (uint32_t s = 0; level && s < t->n_segments; s++)
        level[s] = t->seg_parent[s] == KVC_SEG_NONE ? 1 : level[t->seg_parent[s]] + 1;
    return level;
}

void kvc_trace_stats(const struct kvc_trace *t, struct kvc_trace_stats *out)
{
    struct kvc_trace_stats s = { .requests = t->n_requests, .block_tokens = t->block_tokens,
                                 .sessions = t->n_sessions,
                                 .tenants = t->n_tenants ? t->n_tenants : 1,
                                 .models = t->n_models, .forget_ns = t->forget_ns,
                                 .forgotten_blocks = t->forgotten_blocks,
                                 .unjudged_tokens = t->unjudged_tokens, .sample = t->sample,
                                 .has_prefix = t->n_segments > 0 };
    uint32_t *level = segment_levels(t);
    count_touched(t, &s);
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t seg = t->prompt_seg[r], blocks = kvc_trace_blocks(t, r);
        s.input_tokens += t->input_tokens[r];
        s.output_tokens += t->output_tokens[r];
        s.unknown_outputs += !kvc_trace_output_known(t, r);
        s.distinct_arrivals += r == 0 || t->arrival_ns[r] != t->arrival_ns[r - 1];
        s.block_touches += blocks;
        s.full_block_touches += kvc_trace_full_blocks(t, r);
        s.without_ids += seg == KVC_SEG_NONE;
        if (seg != KVC_SEG_NONE)
            s.segment_touches += level ? level[seg] : kvc_trace_path_length(t, seg);
        if (t->input_tokens[r] > s.max_input_tokens)
            s.max_input_tokens = t->input_tokens[r];
        if (t->output_tokens[r] > s.max_output_tokens)
            s.max_output_tokens = t->output_tokens[r];
        if (blocks > s.longest_request_blocks)
            s.longest_request_blocks = blocks;
    }
    kvc_free(level);
    s.has_tokens = !t->objects;
    if (t->n_requests)
        s.span_ns = t->arrival_ns[t->n_requests - 1] - t->arrival_ns[0];
    s.batch_period_ns = kvc_trace_batch_period(t, s.distinct_arrivals);
    memcpy(s.digest, t->digest, sizeof(s.digest));
    *out = s;
}
