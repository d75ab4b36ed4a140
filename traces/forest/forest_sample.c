/* SPDX-License-Identifier: Apache-2.0
 * Samples while rows stream in: subtrees of prompts are kept or left out as a whole, by a hash, so
 * that memory is bounded by the sample. sim/ceiling/ceiling_sample.c draws the same ones from a
 * trace that is all there.
 *
 * Where the trees are cut is told from the first KVC_SAMPLE_ROWS rows with ids, which are held
 * until then: a node is of the trunk, which is always kept, when the prompts that pass it come to
 * more blocks than a subtree may have. From then on a row goes down the trunk, and the block where
 * it leaves it says whether the row is kept, whole, or ends there. */
#include "traces/forest/forest_nodes.h"

#include "base/alloc.h"

#include <string.h>

struct kvc_forest_sampler {
    uint32_t weight;
    uint64_t seed;
    bool cut;             /* the trunk is known: */
    uint64_t *trunk;      /* bitmap of nodes */
    uint64_t trunk_nodes; /* none from there on is of it */
    uint64_t rows;        /* with ids, before */
    uint64_t own_blocks, own_squares;
};

bool kvc_forest_sampler_create(struct kvc_forest *f, uint32_t weight, uint64_t seed)
{
    f->sampler = kvc_calloc(1, sizeof(*f->sampler));
    if (f->sampler)
        *f->sampler = (struct kvc_forest_sampler){ .weight = weight, .seed = seed };
    return f->sampler != NULL;
}

void kvc_forest_sampler_destroy(struct kvc_forest_sampler *s)
{
    if (s)
        kvc_free(s->trunk);
    kvc_free(s);
}

static bool in_trunk(const struct kvc_forest_sampler *s, uint64_t node)
{
    return node < s->trunk_nodes && kvc_bit(s->trunk, node);
}

/* Marks the nodes of which all rows passing have more than most blocks together. */
static bool find_trunk(struct kvc_forest *f, const uint32_t *blocks, double most)
{
    struct kvc_forest_sampler *s = f->sampler;
    struct kvc_spill_array held = { 0 };
    uint64_t *passing = NULL;
    kvc_free(s->trunk);
    s->trunk = kvc_calloc((size_t)f->n_nodes / 64 + 1, sizeof(*s->trunk));
    if (!s->trunk ||
        !kvc_spill_grow(f->spill, &passing, &held, (size_t)f->n_nodes * 8 + 8, false))
        return false;
    memset(passing, 0, (size_t)f->n_nodes * 8);
    for (uint64_t r = 0; r < f->n_rows; r++)
        if (kvc_forest_prompt(f, r) != KVC_NODE_NONE)
            passing[kvc_forest_prompt(f, r)] += blocks[r];
    size_t start = f->n_starts;
    for (uint64_t node = f->n_nodes; node-- > 0;) {
        bool starts = kvc_bit(f->is_start, node);
        const struct kvc_start *at = starts ? &f->starts[--start] : NULL;
        if ((double)passing[node] > most)
            kvc_bit_set(s->trunk, node);
        if (!starts || at->depth)
            passing[starts ? kvc_forest_parent(f, at) : node - 1] += passing[node];
    }
    s->trunk_nodes = f->n_nodes;
    for (uint64_t node = 1; node < f->n_nodes; node++) /* a segment is of the trunk or not */
        if (in_trunk(s, node - 1) && !in_trunk(s, node) && !kvc_bit(f->is_start, node))
            kvc_bit_set(f->cut_after, node - 1);
    kvc_spill_free(f->spill, &passing, &held);
    return true;
}

/* Blocks of the row that lie in the trunk, and the last of them. */
static size_t trunk_part(const struct kvc_forest *f, const struct kvc_row *row, uint64_t *last)
{
    const struct kvc_forest_sampler *s = f->sampler;
    struct kvc_spot at = { UINT64_MAX - 1 - row->root_key, 0 };
    size_t i = 0;
    while (i < row->n_ids) {
        const struct kvc_slot *slot = kvc_forest_slot(f, at, (uint32_t)i, row->ids[i]);
        if (!slot->start || !in_trunk(s, f->starts[slot->start - 1].node))
            break;
        at = (struct kvc_spot){ f->starts[slot->start - 1].node, slot->start - 1 };
        for (i++; i < row->n_ids && in_trunk(s, at.node + 1) &&
                  !kvc_bit(f->is_start, at.node + 1) && f->id[at.node + 1] == row->ids[i]; i++)
            at.node++;
    }
    *last = at.node;
    return i;
}

/* What is kept of a row of which i blocks lie in the trunk. */
static void shorten(struct kvc_forest_sampler *s, struct kvc_row *row, size_t i)
{
    uint64_t own = row->n_ids - i;
    s->own_blocks += own;
    s->own_squares += own * own;
    if (!own)
        return;
    uint32_t hash = kvc_sample_hash(row->root_key, (uint32_t)i, row->ids[i]);
    if (kvc_sample_number(s->seed, hash, s->weight) < KVC_SAMPLES)
        return;
    row->n_ids = i;
    row->n_output_ids = 0;
}

/* The rows so far again, into a forest of what is kept of them; those left out stay without ids. */
static enum kvc_status copy_kept(struct kvc_forest *from, struct kvc_forest *to,
                                 struct kvc_error *err)
{
    uint64_t *scratch = NULL, last;
    size_t cap = 0;
    struct kvc_row row;
    enum kvc_status status = KVC_OK;
    for (uint64_t r = 0; r < from->n_rows && status == KVC_OK; r++) {
        status = kvc_forest_row(from, r, &row, &scratch, &cap, err);
        if (status != KVC_OK)
            break;
        shorten(from->sampler, &row, trunk_part(from, &row, &last));
        status = kvc_forest_add(to, &row, err);
    }
    kvc_free(scratch);
    return status == KVC_OK ? kvc_forest_settle(to, err) : status;
}

/* *a and *b change places, but for what an own spill is and the sampler. */
static void swap(struct kvc_forest *a, struct kvc_forest *b)
{
    struct kvc_forest t = *a;
    bool own_a = a->spill == &a->own_spill, own_b = b->spill == &b->own_spill;
    *a = *b;
    *b = t;
    b->sampler = a->sampler;
    a->sampler = t.sampler;
    if (own_b)
        a->spill = &a->own_spill;
    if (own_a)
        b->spill = &b->own_spill;
}

/* Finds the trunk and leaves out what is not drawn. */
enum kvc_status kvc_forest_sample_cut(struct kvc_forest *f, struct kvc_error *err)
{
    struct kvc_forest_sampler *s = f->sampler;
    enum kvc_status status = kvc_forest_settle(f, err);
    if (s->cut || status != KVC_OK)
        return status;
    uint32_t *blocks = kvc_calloc((size_t)f->n_rows, sizeof(*blocks));
    struct kvc_forest *kept = kvc_forest_create_like(f);
    uint64_t touches = 0;
    for (uint64_t r = 0; blocks && r < f->n_rows; r++) {
        uint64_t node = kvc_forest_prompt(f, r);
        blocks[r] = node == KVC_NODE_NONE ? 0 : kvc_forest_depth(f, node) + 1;
        touches += blocks[r];
    }
    double most = KVC_SAMPLE_UNIT_SHARE * (double)touches / s->weight;
    bool ok = blocks && kept && find_trunk(f, blocks, most);
    status = !ok ? kvc_spill_fail(f->spill, err)
                 : f->n_rows ? copy_kept(f, kept, err) : KVC_OK;
    if (status == KVC_OK) {
        swap(f, kept);
        if (!find_trunk(f, blocks, most)) /* the same blocks, by their new numbers */
            status = kvc_spill_fail(f->spill, err);
        s->cut = true;
    }
    kvc_forest_destroy(kept);
    kvc_free(blocks);
    return status;
}

enum kvc_status kvc_forest_sample_row(struct kvc_forest *f, struct kvc_row *row,
                                      struct kvc_error *err)
{
    struct kvc_forest_sampler *s = f->sampler;
    uint64_t last;
    if (s->rows < KVC_SAMPLE_ROWS) {
        s->rows += row->n_ids > 0;
        return KVC_OK;
    }
    enum kvc_status status = s->cut ? KVC_OK : kvc_forest_sample_cut(f, err);
    if (status != KVC_OK || !row->n_ids)
        return status;
    if (!kvc_table_grow(f))
        return kvc_spill_fail(f->spill, err);
    size_t i = trunk_part(f, row, &last);
    if (i)
        kvc_bit_set(f->cut_after, last);
    shorten(s, row, i);
    return KVC_OK;
}

void kvc_forest_sample_tell(const struct kvc_forest *f, struct kvc_sample_totals *out)
{
    const struct kvc_forest_sampler *s = f->sampler;
    out->weight = s->weight;
    out->seed = s->seed;
    out->own_blocks = s->own_blocks;
    out->own_squares = s->own_squares;
}

uint32_t kvc_forest_sample_draw(const struct kvc_forest *f, uint64_t node, uint32_t hash,
                                uint32_t above)
{
    const struct kvc_forest_sampler *s = f->sampler;
    if (!s)
        return hash;
    return in_trunk(s, node)           ? KVC_SAMPLE_TRUNK
           : above != KVC_SAMPLE_TRUNK ? above
                                       : kvc_sample_number(s->seed, hash, s->weight);
}
