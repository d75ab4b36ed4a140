/* SPDX-License-Identifier: Apache-2.0
 * From nodes and rows to the immutable trace: order, outputs, segments, columns. */
#include "traces/forest/forest_nodes.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* What finishing works with, all of it given back or moved into the trace at the end. */
struct finish {
    struct kvc_forest *f;
    struct kvc_trace *t;
    uint64_t *order; /* NULL: rows are sorted */
    struct kvc_spill_array held_order;
    uint64_t *bits;  /* set = a segment starts at this node */
    uint32_t *before; /* starts in the words before */
    struct kvc_spill_array held_bits, held_before;
    size_t words;
    uint64_t n_segments;
    kvc_progress_fn progress;
    void *user;
    uint64_t steps;
    bool cancelled;
};

/* False: give up. Steps are of very different length, but tell that something goes on. */
static bool step(struct finish *w, const char *phase)
{
    if (w->progress && !w->progress(w->user, phase, ++w->steps, 0))
        w->cancelled = true;
    return !w->cancelled;
}

/* ---- outputs known from the next turn ---- */

/* The node that ends the full blocks of row a's prompt and output on the path of its session's
 * next row b, a's prompt node when that adds no full block, NONE when b doesn't continue a. */
static uint64_t continued(const struct kvc_forest *f, uint64_t a, uint64_t b, uint32_t block)
{
    uint64_t pa = kvc_forest_prompt(f, a), pb = kvc_forest_prompt(f, b);
    uint64_t whole = (uint64_t)f->input[a] + f->output[a];
    uint32_t shown = f->shown_tokens ? f->shown_tokens[b] : UINT32_MAX;
    if (pa == KVC_NODE_NONE || pb == KVC_NODE_NONE || !f->output[a] ||
        f->output[a] > INT32_MAX /* not known */ || !shown ||
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
    uint64_t *previous = NULL;
    struct kvc_spill_array held = { 0 };
    if (!sessions ||
        !kvc_spill_grow(f->spill, &previous, &held, sessions * sizeof(*previous), false))
        return !sessions;
    memset(previous, 0xff, sessions * sizeof(*previous));
    bool given = f->output_node != NULL;
    if (!given) {
        if (!kvc_spill_grow(f->spill, &f->output_node, &f->held[KVC_A_OUTPUT_NODE],
                            (size_t)f->n_rows * sizeof(*f->output_node), false)) {
            kvc_spill_free(f->spill, &previous, &held);
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
        uint64_t node = f->output_node[before];
        if (node == KVC_NODE_NONE)
            f->output_node[before] = node = continued(f, before, r, block);
        if (node != KVC_NODE_NONE)
            kvc_bit_set(f->cut_after, node);
        known += node != KVC_NODE_NONE;
    }
    kvc_spill_free(f->spill, &previous, &held);
    if (!known && !given)
        kvc_spill_free(f->spill, &f->output_node, &f->held[KVC_A_OUTPUT_NODE]);
    return true;
}

/* ---- segments ---- */

static bool rank_segments(struct finish *w)
{
    const struct kvc_forest *f = w->f;
    w->words = (size_t)f->n_nodes / 64 + 1;
    if (!kvc_spill_grow(f->spill, &w->bits, &w->held_bits, w->words * 8, false) ||
        !kvc_spill_grow(f->spill, &w->before, &w->held_before, w->words * 4, false))
        return false;
    uint64_t carry = 0, total = 0;
    for (size_t i = 0; i < w->words; i++) {
        bool there = i < f->node_cap / 64;
        uint64_t cut = there ? f->cut_after[i] : 0;
        uint64_t bits = (there ? f->is_start[i] : 0) | (cut << 1) | carry;
        carry = cut >> 63;
        if (i == w->words - 1)
            bits &= ((uint64_t)1 << (f->n_nodes & 63)) - 1;
        w->bits[i] = bits;
        w->before[i] = (uint32_t)total;
        total += (uint32_t)__builtin_popcountll(bits);
    }
    w->n_segments = total;
    return true;
}

static inline uint32_t segment_of(const struct finish *w, uint64_t node)
{
    uint64_t upto = w->bits[node >> 6] << (63 - (node & 63));
    return w->before[node >> 6] + (uint32_t)__builtin_popcountll(upto) - 1;
}

/* A column of the trace, made anew. */
static bool new_column(struct finish *w, uint32_t **column, uint64_t n)
{
    struct kvc_spill_array held = { 0 };
    size_t bytes = n ? (size_t)n * sizeof(**column) : sizeof(**column);
    if (!kvc_spill_grow(w->f->spill, column, &held, bytes, false))
        return false;
    kvc_trace_keep(w->t, *column, kvc_spill_detach(w->f->spill, &held));
    return true;
}

static bool build_segments(struct finish *w)
{
    const struct kvc_forest *f = w->f;
    struct kvc_trace *t = w->t;
    t->n_segments = (uint32_t)w->n_segments;
    if (!new_column(w, &t->seg_parent, w->n_segments) ||
        !new_column(w, &t->seg_len, w->n_segments) || !new_column(w, &t->seg_depth, w->n_segments))
        return false;
    uint32_t s = 0;
    uint64_t first = 0;
    size_t start = 0;
    for (size_t i = 0; i < w->words; i++) {
        for (uint64_t bits = w->bits[i]; bits; bits &= bits - 1, s++) {
            uint64_t node = i * 64 + (uint64_t)__builtin_ctzll(bits);
            if (s)
                t->seg_len[s - 1] = (uint32_t)(node - first);
            first = node;
            uint32_t parent = s - 1;
            if (start < f->n_starts && f->starts[start].node == node) {
                uint64_t p = kvc_forest_parent(f, &f->starts[start++]);
                parent = p >= KVC_ROOT_BASE ? KVC_SEG_NONE : segment_of(w, p);
            }
            t->seg_parent[s] = parent;
        }
    }
    if (s)
        t->seg_len[s - 1] = (uint32_t)(f->n_nodes - first);
    for (s = 0; s < t->n_segments; s++) {
        uint32_t p = t->seg_parent[s];
        t->seg_depth[s] = p == KVC_SEG_NONE ? 0 : t->seg_depth[p] + t->seg_len[p];
    }
    return true;
}

/* The root that each start hangs from, by number. */
static bool number_roots(const struct kvc_forest *f, uint32_t **root, struct kvc_spill_array *held)
{
    if (!kvc_spill_grow(f->spill, root, held, f->n_starts * sizeof(**root) + 4, false))
        return false;
    for (size_t i = 0; i < f->n_starts; i++)
        (*root)[i] = f->starts[i].depth ? (*root)[f->starts[i].parent] : f->starts[i].parent;
    return true;
}

/* What a sample draws segments by. */
static bool build_draws(struct finish *w)
{
    const struct kvc_forest *f = w->f;
    uint32_t *root = NULL, *draw, s = 0;
    struct kvc_spill_array held = { 0 };
    const struct kvc_start *at = NULL;
    size_t next = 0;
    if (!f->draws)
        return true;
    if (!new_column(w, &w->t->seg_draw, w->n_segments) || !number_roots(f, &root, &held))
        return false;
    draw = w->t->seg_draw;
    for (size_t i = 0; i < w->words; i++)
        for (uint64_t bits = w->bits[i]; bits; bits &= bits - 1, s++) {
            uint64_t node = i * 64 + (uint64_t)__builtin_ctzll(bits);
            uint32_t above = s ? draw[s - 1] : KVC_SAMPLE_TRUNK;
            if (kvc_bit(f->is_start, node)) {
                at = &f->starts[next++];
                above = at->depth ? draw[segment_of(w, kvc_forest_parent(f, at))]
                                  : KVC_SAMPLE_TRUNK;
            }
            uint64_t key = UINT64_MAX - 1 - f->roots[root[next - 1]];
            uint32_t depth = at->depth + (uint32_t)(node - at->node);
            draw[s] = kvc_forest_sample_draw(f, node, kvc_sample_hash(key, depth, f->id[node]),
                                             above);
        }
    kvc_spill_free(f->spill, &root, &held);
    return true;
}

/* ---- sessions by prefix growth ---- */

/* A trace of segments, ends and lengths in time order, as sessions are inferred from. */
static bool infer_sessions(struct finish *w)
{
    struct kvc_forest *f = w->f;
    struct kvc_trace *t = w->t;
    uint64_t n = f->n_rows;
    uint32_t *session = NULL;
    struct kvc_spill_array held = { 0 };
    bool ok = rank_segments(w) && build_segments(w) && new_column(w, &t->prompt_seg, n) &&
              new_column(w, &t->input_tokens, n) &&
              kvc_spill_grow(f->spill, &session, &held, (size_t)n * 4 + 4, false) &&
              kvc_spill_grow(f->spill, &f->session, &f->held[KVC_A_SESSION], (size_t)n * 4, false);
    t->n_requests = n;
    for (uint64_t i = 0; ok && i < n; i++) {
        uint64_t r = w->order ? w->order[i] : i, node = kvc_forest_prompt(f, r);
        t->prompt_seg[i] = node == KVC_NODE_NONE ? KVC_SEG_NONE : segment_of(w, node);
        t->input_tokens[i] = f->input[r];
    }
    ok = ok && kvc_sessions_infer(t, f->spill, n, session, &f->linked_turns, &f->branches_off);
    for (uint64_t i = 0; ok && i < n; i++)
        f->session[w->order ? w->order[i] : i] = session[i];
    kvc_spill_free(f->spill, &session, &held);
    kvc_trace_drop(t, &t->prompt_seg);
    kvc_trace_drop(t, &t->input_tokens);
    kvc_trace_drop(t, &t->seg_parent);
    kvc_trace_drop(t, &t->seg_len);
    kvc_trace_drop(t, &t->seg_depth);
    t->n_requests = 0;
    return ok;
}

/* ---- columns ---- */

/* Moves a column into the trace, in order; the trace's is NULL where there was none. */
static bool take(struct finish *w, void *from, enum kvc_forest_array array, size_t size, void *to)
{
    struct kvc_forest *f = w->f;
    void **old = from, *p = NULL;
    struct kvc_spill_array held = { 0 };
    if (!*old || !step(w, "sorting"))
        return !*old;
    if (w->order) {
        if (!kvc_spill_grow(f->spill, &p, &held, (size_t)f->n_rows * size + size, false))
            return false;
        for (uint64_t i = 0; i < f->n_rows; i++) {
            uint64_t r = w->order[i];
            if (size == 8)
                ((uint64_t *)p)[i] = ((uint64_t *)*old)[r];
            else if (size == 4)
                ((uint32_t *)p)[i] = ((uint32_t *)*old)[r];
            else
                ((uint8_t *)p)[i] = ((uint8_t *)*old)[r];
        }
        kvc_spill_free(f->spill, from, &f->held[array]);
    } else {
        p = *old;
        held = f->held[array];
        *old = NULL;
        f->held[array] = (struct kvc_spill_array){ 0 };
    }
    *(void **)to = p;
    kvc_trace_keep(w->t, p, kvc_spill_detach(f->spill, &held));
    return true;
}

/* Nodes where rows end become segments, in order. */
static bool take_ends(struct finish *w, uint64_t **nodes, enum kvc_forest_array array,
                      uint32_t **out)
{
    struct kvc_forest *f = w->f;
    if (!*nodes || !step(w, "sorting"))
        return !*nodes;
    if (!new_column(w, out, f->n_rows))
        return false;
    for (uint64_t i = 0; i < f->n_rows; i++) {
        uint64_t node = (*nodes)[w->order ? w->order[i] : i];
        (*out)[i] = node == KVC_NODE_NONE ? KVC_SEG_NONE : segment_of(w, node);
    }
    kvc_spill_free(f->spill, nodes, &f->held[array]);
    return true;
}

static bool no_ends(struct finish *w, uint32_t **out)
{
    if (!new_column(w, out, w->f->n_rows))
        return false;
    memset(*out, 0xff, (size_t)w->f->n_rows * sizeof(**out)); /* KVC_SEG_NONE */
    return true;
}

static uint32_t count_ids(const uint32_t *column, uint64_t n)
{
    uint32_t count = 0;
    for (uint64_t i = 0; column && i < n; i++)
        if (column[i] != KVC_ID_NONE && column[i] >= count)
            count = column[i] + 1;
    return count;
}

static bool build_columns(struct finish *w)
{
    struct kvc_forest *f = w->f;
    struct kvc_trace *t = w->t;
    uint64_t n = t->n_requests = f->n_rows;
    bool ok = (f->prompt_node ? take_ends(w, &f->prompt_node, KVC_A_PROMPT, &t->prompt_seg)
                              : no_ends(w, &t->prompt_seg)) &&
              take_ends(w, &f->output_node, KVC_A_OUTPUT_NODE, &t->output_seg) &&
              take(w, &f->time_ns, KVC_A_TIME, 8, &t->arrival_ns) &&
              take(w, &f->think_ns, KVC_A_THINK, 8, &t->think_ns) &&
              take(w, &f->input, KVC_A_INPUT, 4, &t->input_tokens) &&
              take(w, &f->output, KVC_A_OUTPUT, 4, &t->output_tokens) &&
              take(w, &f->session, KVC_A_SESSION, 4, &t->session) &&
              take(w, &f->tenant, KVC_A_TENANT, 4, &t->tenant) &&
              take(w, &f->model, KVC_A_MODEL, 4, &t->model) &&
              take(w, &f->cached_tokens, KVC_A_CACHED, 4, &t->cached_tokens) &&
              take(w, &f->status, KVC_A_STATUS, 1, &t->row_status);
    if (ok) {
        t->n_sessions = count_ids(t->session, n);
        t->n_tenants = count_ids(t->tenant, n);
        t->n_models = count_ids(t->model, n);
    }
    return ok;
}

static bool build(struct finish *w, uint32_t block_tokens, bool infer)
{
    struct kvc_forest *f = w->f;
    struct kvc_trace *t = w->t;
    t->block_tokens = block_tokens;
    f->draws = f->draws && !kvc_forget_lost_ids(f);
    if (!f->draws)
        kvc_spill_free(f->spill, &f->id, &f->held[KVC_A_ID]); /* the bulk, no longer needed */
    kvc_table_free(&f->table);
    if (!step(w, "sorting") || !kvc_forest_order(f, &w->order, &w->held_order) ||
        !step(w, "sorting"))
        return false;
    if (f->infer_sessions && !f->session && block_tokens && !infer_sessions(w))
        return false;
    if ((infer && !infer_outputs(f, w->order, block_tokens)) || !step(w, "cutting segments") ||
        !rank_segments(w) || w->n_segments >= KVC_SEG_NONE || !build_draws(w))
        return false;
    kvc_spill_free(f->spill, &f->id, &f->held[KVC_A_ID]);
    if (!build_segments(w))
        return false;
    return build_columns(w);
}

enum kvc_status kvc_forest_finish_with(struct kvc_forest *f, uint32_t block_tokens, bool infer,
                                       kvc_progress_fn progress, void *user,
                                       struct kvc_forest_counts *counts, struct kvc_trace **out,
                                       struct kvc_error *err)
{
    struct finish w = { .f = f, .progress = progress, .user = user };
    enum kvc_status status = f->sampler ? kvc_forest_sample_cut(f, err) : kvc_forest_settle(f, err);
    if (status == KVC_OK && f->sampler)
        kvc_forest_compact(f);
    if (status == KVC_OK && !(w.t = kvc_calloc(1, sizeof(*w.t))))
        status = kvc_fail_nomem(err);
    if (status == KVC_OK && !build(&w, block_tokens, infer))
        status = w.cancelled ? kvc_fail(err, KVC_ERR_CANCELLED, "cancelled")
                 : w.n_segments >= KVC_SEG_NONE
                     ? kvc_fail(err, KVC_ERR_LIMIT, "more than 4.2 billion segments; import a "
                                "shorter window")
                     : kvc_spill_fail(f->spill, err);
    if (status == KVC_OK && !w.t->session && block_tokens)
        kvc_sessions_sample(w.t, f->spill, &f->sample, &f->sample_linked);
    if (status == KVC_OK && f->sampler)
        kvc_forest_sample_tell(f, &w.t->sample);
    if (counts)
        kvc_forest_count(f, counts);
    kvc_spill_free(f->spill, &w.bits, &w.held_bits);
    kvc_spill_free(f->spill, &w.before, &w.held_before);
    kvc_spill_free(f->spill, &w.order, &w.held_order);
    kvc_forest_destroy(f);
    if (status == KVC_OK)
        *out = w.t;
    else
        kvc_trace_destroy(w.t);
    return status;
}

enum kvc_status kvc_forest_finish(struct kvc_forest *f, uint32_t block_tokens, bool infer,
                                  struct kvc_trace **out, struct kvc_error *err)
{
    return kvc_forest_finish_with(f, block_tokens, infer, NULL, NULL, NULL, out, err);
}
