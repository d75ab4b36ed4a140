/* SPDX-License-Identifier: Apache-2.0
 * From nodes and rows to the immutable trace: order, outputs, segments, columns. */
#include "traces/forest_nodes.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* ---- order by time ---- */

#define RADIX_BITS 11
#define RADIX (1u << RADIX_BITS)

/* One pass of a stable radix sort of n items of width words by bits of their first word. */
static inline void radix_pass(const uint64_t *from, uint64_t *to, uint64_t n, size_t width,
                              unsigned shift)
{
    uint64_t at[RADIX] = { 0 }, sum = 0;
    for (uint64_t i = 0; i < n; i++)
        at[(from[i * width] >> shift) & (RADIX - 1)]++;
    for (unsigned b = 0; b < RADIX; b++) {
        uint64_t count = at[b];
        at[b] = sum;
        sum += count;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t *slot = to + at[(from[i * width] >> shift) & (RADIX - 1)]++ * width;
        slot[0] = from[i * width];
        if (width > 1)
            slot[1] = from[i * width + 1];
    }
}

/* Sorts by the first word from bit low on, where it is at most largest; the result is in *a. */
static void radix_sort(uint64_t **a, uint64_t **b, uint64_t n, size_t width, unsigned low,
                       uint64_t largest)
{
    for (unsigned shift = low; shift < 64 && largest >> (shift - low); shift += RADIX_BITS) {
        if (width == 1)
            radix_pass(*a, *b, n, 1, shift);
        else
            radix_pass(*a, *b, n, 2, shift);
        uint64_t *t = *a;
        *a = *b;
        *b = t;
    }
}

/* The coarsest of 1 ms, 1 us, 1 ns that all times are multiples of. */
static uint64_t clock_unit(const struct kvc_forest *f)
{
    uint64_t unit = 1000000;
    for (uint64_t i = 0; i < f->n_rows && unit > 1; i++)
        while (f->time_ns[i] % unit)
            unit /= 1000;
    return unit;
}

/* Row numbers by time, order kept among equals. Times of logs are mostly whole milliseconds of a
 * short span; then time and row fit one word. */
static uint64_t *order_rows(const struct kvc_forest *f, uint64_t span)
{
    uint64_t n = f->n_rows, unit = clock_unit(f), largest = span / unit;
    bool narrow = largest <= UINT32_MAX && n <= UINT32_MAX;
    size_t width = narrow ? 1 : 2;
    uint64_t *a = kvc_malloc((size_t)n, width * sizeof(*a));
    uint64_t *b = kvc_malloc((size_t)n, width * sizeof(*b));
    if (a && b) {
        for (uint64_t i = 0; i < n; i++) {
            a[i * width] = narrow ? f->time_ns[i] / unit << 32 | i : f->time_ns[i];
            if (!narrow)
                a[i * width + 1] = i;
        }
        radix_sort(&a, &b, n, width, narrow ? 32 : 0, narrow ? largest : span);
        for (uint64_t i = 0; i < n; i++)
            a[i] = narrow ? a[i] & UINT32_MAX : a[i * width + 1];
    } else {
        kvc_free(a);
        a = NULL;
    }
    kvc_free(b);
    return a;
}

/* Rows by time; NULL in *order when they are sorted already. Times become relative to the
 * first. */
static bool sort_rows(struct kvc_forest *f, uint64_t **order)
{
    uint64_t n = f->n_rows, first = UINT64_MAX, last = 0;
    bool sorted = true;
    for (uint64_t i = 0; i < n; i++) {
        sorted = sorted && (i == 0 || f->time_ns[i] >= f->time_ns[i - 1]);
        first = f->time_ns[i] < first ? f->time_ns[i] : first;
        last = f->time_ns[i] > last ? f->time_ns[i] : last;
    }
    for (uint64_t i = 0; i < n; i++)
        f->time_ns[i] -= first;
    *order = sorted ? NULL : order_rows(f, last - first);
    return sorted || *order;
}

/* ---- outputs known from the next turn ---- */

/* The node that ends the full blocks of row a's prompt and output on the path of its session's
 * next row b, a's prompt node when that adds no full block, NONE when b doesn't continue a. */
static uint32_t continued(const struct kvc_forest *f, uint64_t a, uint64_t b, uint32_t block)
{
    uint32_t pa = f->prompt_node[a], pb = f->prompt_node[b];
    uint64_t whole = (uint64_t)f->input[a] + f->output[a];
    uint32_t shown = f->shown_tokens ? f->shown_tokens[b] : UINT32_MAX;
    if (pa == KVC_NODE_NONE || pb == KVC_NODE_NONE || !f->output[a] || !shown ||
        (shown == UINT32_MAX && f->input[b] < whole))
        return KVC_NODE_NONE;
    if (f->status && (f->status[a] != KVC_ROW_OK))
        return KVC_NODE_NONE;
    if (kvc_forest_root(f, pa) != kvc_forest_root(f, pb)) /* another model, say */
        return KVC_NODE_NONE;
    uint32_t full = f->input[a] / block, blocks_b = kvc_forest_depth(f, pb) + 1;
    if (full > blocks_b)
        return KVC_NODE_NONE;
    if (full && kvc_forest_ancestor(f, pa, full - 1) != kvc_forest_ancestor(f, pb, full - 1))
        return KVC_NODE_NONE;
    /* The last sampled token is returned to the user but never fed back, so it has no KV. */
    uint64_t known = (shown < whole ? shown : whole - 1) / block;
    if (known > blocks_b)
        known = blocks_b;
    return known > full ? kvc_forest_ancestor(f, pb, (uint32_t)known - 1) : pa;
}

static bool infer_outputs(struct kvc_forest *f, const uint64_t *order, uint32_t block)
{
    if (!f->session || !block)
        return true;
    uint32_t sessions = 0;
    for (uint64_t r = 0; r < f->n_rows; r++)
        if (f->session[r] != KVC_ID_NONE && f->session[r] >= sessions)
            sessions = f->session[r] + 1;
    uint64_t *previous = kvc_malloc(sessions, sizeof(*previous));
    if (!previous)
        return false;
    memset(previous, 0xff, sessions * sizeof(*previous));
    bool given = f->output_node != NULL;
    if (!given) {
        f->output_node = kvc_malloc((size_t)f->n_rows, sizeof(*f->output_node));
        if (!f->output_node) {
            kvc_free(previous);
            return false;
        }
        memset(f->output_node, 0xff, (size_t)f->n_rows * sizeof(*f->output_node));
    }
    uint64_t known = 0;
    for (uint64_t i = 0; i < f->n_rows; i++) {
        uint64_t r = order ? order[i] : i;
        uint32_t s = f->session[r];
        if (s == KVC_ID_NONE)
            continue;
        uint64_t before = previous[s];
        previous[s] = r;
        if (before == UINT64_MAX)
            continue;
        uint32_t node = f->output_node[before];
        if (node == KVC_NODE_NONE)
            f->output_node[before] = node = continued(f, before, r, block);
        if (node != KVC_NODE_NONE)
            kvc_bit_set(f->cut_after, node);
        known += node != KVC_NODE_NONE;
    }
    kvc_free(previous);
    if (!known && !given) {
        kvc_free(f->output_node);
        f->output_node = NULL;
    }
    return true;
}

/* ---- segments ---- */

struct ranks { /* bit set = a segment starts at this node */
    uint64_t *bits;
    uint32_t *before; /* starts in the words before */
    size_t words;
    uint32_t total;
};

static bool rank_segments(const struct kvc_forest *f, struct ranks *r)
{
    r->words = (size_t)f->n_nodes / 64 + 1;
    r->bits = kvc_malloc(r->words, sizeof(*r->bits));
    r->before = kvc_malloc(r->words, sizeof(*r->before));
    if (!r->bits || !r->before)
        return false;
    uint64_t carry = 0;
    uint32_t total = 0;
    for (size_t w = 0; w < r->words; w++) {
        bool there = w < f->node_cap / 64;
        uint64_t cut = there ? f->cut_after[w] : 0;
        uint64_t bits = (there ? f->is_start[w] : 0) | (cut << 1) | carry;
        carry = cut >> 63;
        if (w == r->words - 1)
            bits &= ((uint64_t)1 << (f->n_nodes & 63)) - 1;
        r->bits[w] = bits;
        r->before[w] = total;
        total += (uint32_t)__builtin_popcountll(bits);
    }
    r->total = total;
    return true;
}

static inline uint32_t segment_of(const struct ranks *r, uint32_t node)
{
    uint64_t upto = r->bits[node >> 6] << (63 - (node & 63));
    return r->before[node >> 6] + (uint32_t)__builtin_popcountll(upto) - 1;
}

static bool build_segments(const struct kvc_forest *f, const struct ranks *r, struct kvc_trace *t)
{
    t->n_segments = r->total;
    t->seg_parent = kvc_malloc(r->total, sizeof(*t->seg_parent));
    t->seg_len = kvc_malloc(r->total, sizeof(*t->seg_len));
    t->seg_depth = kvc_malloc(r->total, sizeof(*t->seg_depth));
    if (!t->seg_parent || !t->seg_len || !t->seg_depth)
        return false;
    uint32_t s = 0, first = 0;
    size_t start = 0;
    for (size_t w = 0; w < r->words; w++) {
        for (uint64_t bits = r->bits[w]; bits; bits &= bits - 1, s++) {
            uint32_t node = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
            if (s)
                t->seg_len[s - 1] = node - first;
            first = node;
            uint32_t parent = s - 1;
            if (start < f->n_starts && f->starts[start].node == node) {
                uint32_t p = f->starts[start++].parent;
                parent = p >= KVC_ROOT_BASE ? KVC_SEG_NONE : segment_of(r, p);
            }
            t->seg_parent[s] = parent;
        }
    }
    if (s)
        t->seg_len[s - 1] = f->n_nodes - first;
    for (s = 0; s < r->total; s++) {
        uint32_t p = t->seg_parent[s];
        t->seg_depth[s] = p == KVC_SEG_NONE ? 0 : t->seg_depth[p] + t->seg_len[p];
    }
    return true;
}

/* ---- columns ---- */

/* Each moves a column into the trace, in order, and frees the old one; the trace's is NULL where
 * there was none. */
static bool take_u32(uint32_t **from, uint32_t **to, const uint64_t *order, uint64_t n)
{
    if (*from && order) {
        uint32_t *p = kvc_malloc((size_t)n, sizeof(*p));
        if (!p)
            return false;
        for (uint64_t i = 0; i < n; i++)
            p[i] = (*from)[order[i]];
        kvc_free(*from);
        *from = p;
    }
    *to = *from;
    *from = NULL;
    return true;
}

static bool take_u64(uint64_t **from, uint64_t **to, const uint64_t *order, uint64_t n)
{
    if (*from && order) {
        uint64_t *p = kvc_malloc((size_t)n, sizeof(*p));
        if (!p)
            return false;
        for (uint64_t i = 0; i < n; i++)
            p[i] = (*from)[order[i]];
        kvc_free(*from);
        *from = p;
    }
    *to = *from;
    *from = NULL;
    return true;
}

static bool take_u8(uint8_t **from, uint8_t **to, const uint64_t *order, uint64_t n)
{
    if (*from && order) {
        uint8_t *p = kvc_malloc((size_t)n, 1);
        if (!p)
            return false;
        for (uint64_t i = 0; i < n; i++)
            p[i] = (*from)[order[i]];
        kvc_free(*from);
        *from = p;
    }
    *to = *from;
    *from = NULL;
    return true;
}

static void to_segments(uint32_t *node, uint64_t n, const struct ranks *r)
{
    for (uint64_t i = 0; node && i < n; i++)
        if (node[i] != KVC_NODE_NONE)
            node[i] = segment_of(r, node[i]);
}

static uint32_t count_ids(const uint32_t *column, uint64_t n)
{
    uint32_t count = 0;
    for (uint64_t i = 0; column && i < n; i++)
        if (column[i] != KVC_ID_NONE && column[i] >= count)
            count = column[i] + 1;
    return count;
}

static bool build_columns(struct kvc_forest *f, const uint64_t *order, struct kvc_trace *t)
{
    uint64_t n = t->n_requests = f->n_rows;
    bool ok = take_u64(&f->time_ns, &t->arrival_ns, order, n) &&
              take_u64(&f->think_ns, &t->think_ns, order, n) &&
              take_u32(&f->input, &t->input_tokens, order, n) &&
              take_u32(&f->output, &t->output_tokens, order, n) &&
              take_u32(&f->prompt_node, &t->prompt_seg, order, n) &&
              take_u32(&f->output_node, &t->output_seg, order, n) &&
              take_u32(&f->session, &t->session, order, n) &&
              take_u32(&f->tenant, &t->tenant, order, n) &&
              take_u32(&f->model, &t->model, order, n) &&
              take_u32(&f->cached_tokens, &t->cached_tokens, order, n) &&
              take_u8(&f->status, &t->row_status, order, n);
    if (ok) {
        t->n_sessions = count_ids(t->session, n);
        t->n_tenants = count_ids(t->tenant, n);
        t->n_models = count_ids(t->model, n);
    }
    return ok;
}

enum kvc_status kvc_forest_finish(struct kvc_forest *f, uint32_t block_tokens,
                                  bool infer, struct kvc_trace **out, struct kvc_error *err)
{
    struct ranks ranks = { 0 };
    uint64_t *order = NULL;
    enum kvc_status status = kvc_forest_settle(f, err);
    if (status != KVC_OK) {
        kvc_forest_destroy(f);
        return status;
    }
    struct kvc_trace *t = kvc_calloc(1, sizeof(*t));
    bool ok = t && sort_rows(f, &order) && (!infer || infer_outputs(f, order, block_tokens)) &&
              rank_segments(f, &ranks) && build_segments(f, &ranks, t);
    if (ok) {
        t->block_tokens = block_tokens;
        kvc_free(f->id); /* the bulk, no longer needed; the columns follow */
        f->id = NULL;
        to_segments(f->prompt_node, f->n_rows, &ranks);
        to_segments(f->output_node, f->n_rows, &ranks);
        ok = build_columns(f, order, t);
    }
    kvc_free(ranks.bits);
    kvc_free(ranks.before);
    kvc_free(order);
    kvc_forest_destroy(f);
    if (!ok) {
        kvc_trace_destroy(t);
        return kvc_fail_nomem(err);
    }
    *out = t;
    return KVC_OK;
}
