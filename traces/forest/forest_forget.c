/* SPDX-License-Identifier: Apache-2.0
 * Forgetting: a block that no row touched for forget_ns is as if it had never been.
 *
 * The clock is the latest time stamp read so far; a row touches every block of its path with it. A
 * block whose latest touch is more than forget_ns before the clock is forgotten: a row that brings
 * it again begins a new block there. Touches of parents are never older than those of children,
 * so that what is forgotten of a chain is its end, and of a tree its leaves.
 *
 * Of a chain, stamps are kept where rows left it (touch_ns, at cut nodes only): the chain is live
 * up to the last node with a stamp that is young enough (live_end), and since no stamp is ever
 * renewed but by passing it, looking for that node goes back over each node once. All this happens
 * when a row comes by or when the hash table would have to grow; the result doesn't depend on
 * when.
 *
 * What can't be judged: a row's blocks from the first one on that is new now, if that one was
 * known and forgotten, or its parent is a block that came back (or descends from one): whoever
 * never forgot might have found them. Forgotten children of a live parent are kept in a Bloom
 * filter, so that the count is an upper bound. */
#include "traces/forest/forest_nodes.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <string.h>

#define DEAD UINT64_MAX
#define BLOOM_BITS ((uint64_t)1 << 29) /* 64 MiB: 50 million forgotten children, 1 % mistaken */
#define GRANULE ((uint64_t)1 << 14)    /* nodes whose ids are given back together */

struct kvc_forgetting {
    uint64_t forget_ns, clock_ns;
    uint64_t *touch_ns; /* of each node where a row left its chain */
    uint64_t *live_end; /* of each start */
    uint8_t *came_back; /* of each start */
    uint64_t closed;    /* nodes of key spaces that don't come again */
    uint16_t *dead;     /* nodes of each granule */
    struct kvc_spill_array held_touch, held_end, held_back, held_dead;
    uint64_t *bloom;
    uint64_t forgotten, unjudged_rows, unjudged_input, unjudged_known;
};

struct kvc_forgetting *kvc_forgetting_create(uint64_t forget_ns)
{
    struct kvc_forgetting *g = kvc_calloc(1, sizeof(*g));
    if (g)
        g->forget_ns = forget_ns;
    return g;
}

void kvc_forgetting_destroy(struct kvc_forest *f)
{
    struct kvc_forgetting *g = f->forgetting;
    if (!g)
        return;
    kvc_spill_free(f->spill, &g->touch_ns, &g->held_touch);
    kvc_spill_free(f->spill, &g->live_end, &g->held_end);
    kvc_spill_free(f->spill, &g->came_back, &g->held_back);
    kvc_spill_free(f->spill, &g->dead, &g->held_dead);
    kvc_free(g->bloom);
    kvc_free(g);
    f->forgetting = NULL;
}

void kvc_forget_clock(struct kvc_forest *f, uint64_t time_ns)
{
    if (time_ns > f->forgetting->clock_ns)
        f->forgetting->clock_ns = time_ns;
}

bool kvc_forget_lost_ids(const struct kvc_forest *f)
{
    return f->forgetting && (f->forgetting->forgotten || f->forgetting->closed);
}

void kvc_forget_count(const struct kvc_forest *f, struct kvc_forest_counts *out)
{
    const struct kvc_forgetting *g = f->forgetting;
    out->forgotten_blocks = g->forgotten;
    out->unjudged_rows = g->unjudged_rows;
    out->unjudged_input_tokens = g->unjudged_input;
    out->unjudged_known_blocks = g->unjudged_known;
    out->hash_bytes += g->bloom ? BLOOM_BITS / 8 : 0;
}

/* As long as the forest's own arrays; the dead are counted by whole granules. */
static bool reserve(struct kvc_forest *f)
{
    struct kvc_forgetting *g = f->forgetting;
    size_t nodes = f->node_cap;
    if (g->held_touch.bytes < nodes * 8 &&
        (!kvc_spill_grow(f->spill, &g->touch_ns, &g->held_touch, nodes * 8, false) ||
         !kvc_spill_grow(f->spill, &g->dead, &g->held_dead, (nodes / GRANULE + 1) * 2, true)))
        return false;
    /* Each by itself: what is in a file is longer than asked for, by up to a page. */
    if (f->n_starts < g->held_end.bytes / 8 && f->n_starts < g->held_back.bytes)
        return true;
    size_t starts = f->n_starts + 1024 + f->n_starts / 8;
    return kvc_spill_grow(f->spill, &g->came_back, &g->held_back, starts, true) &&
           kvc_spill_grow(f->spill, &g->live_end, &g->held_end, starts * 8, true);
}

static bool bloom(struct kvc_forgetting *g, uint64_t parent, uint64_t id, bool add)
{
    uint64_t h = kvc_mix64(kvc_mix64(parent + 0x9e3779b97f4a7c15u) ^ id);
    bool all = true;
    for (int i = 0; i < 3; i++, h = kvc_mix64(h + 0x9e3779b97f4a7c15u)) {
        uint64_t bit = h & (BLOOM_BITS - 1);
        all = all && kvc_bit(g->bloom, bit);
        if (add)
            kvc_bit_set(g->bloom, bit);
    }
    return all;
}

/* These nodes are forgotten. */
static void bury(struct kvc_forest *f, uint64_t first, uint64_t last)
{
    struct kvc_forgetting *g = f->forgetting;
    g->forgotten += last - first + 1;
    for (uint64_t i = first; i <= last;) {
        uint64_t end = (i | (GRANULE - 1)) < last ? i | (GRANULE - 1) : last;
        uint16_t *dead = &g->dead[i / GRANULE];
        *dead = (uint16_t)(*dead + (end - i + 1));
        if (*dead == GRANULE) {
            uint64_t from = i / GRANULE * GRANULE, to = from + GRANULE;
            kvc_spill_drop(&f->held[KVC_A_ID], f->id, from * 8, to * 8);
            kvc_spill_drop(&g->held_touch, g->touch_ns, from * 8, to * 8);
        }
        i = end + 1;
    }
}

/* The last cut node in [from, before), or DEAD. */
static uint64_t cut_before(const struct kvc_forest *f, uint64_t from, uint64_t before)
{
    while (before > from) {
        uint64_t word = (before - 1) >> 6;
        uint64_t bits = f->cut_after[word] << (63 - ((before - 1) & 63));
        if (bits) {
            uint64_t at = before - 1 - (uint64_t)__builtin_clzll(bits);
            return at >= from ? at : DEAD;
        }
        before = word << 6;
    }
    return DEAD;
}

bool kvc_forget_trim(struct kvc_forest *f, uint32_t start)
{
    struct kvc_forgetting *g = f->forgetting;
    const struct kvc_start *s = &f->starts[start];
    uint64_t had = g->live_end[start], end = had;
    while (end != DEAD && g->clock_ns - g->touch_ns[end] > g->forget_ns)
        end = cut_before(f, s->node, end);
    if (end == had)
        return end != DEAD;
    g->live_end[start] = end;
    if (end == DEAD)
        bloom(g, kvc_forest_parent(f, s), f->id[s->node], true);
    else
        bloom(g, end, f->id[end + 1], true);
    bury(f, end == DEAD ? s->node : end + 1, had);
    return end != DEAD;
}

struct forget_walk {
    struct kvc_spot at;
    size_t i;  /* ids that lead to it */
    bool back; /* it is in a chain that came back */
};

/* Goes down a live chain from its start, leaving a stamp; true when the rest was appended to it or
 * nothing is left. */
static bool pass_chain(struct kvc_forest *f, struct forget_walk *w, const uint64_t *ids, size_t n)
{
    struct kvc_forgetting *g = f->forgetting;
    uint64_t end = g->live_end[w->at.start];
    size_t k = kvc_forest_follow(f, w->at.node, ids + w->i, n - w->i);
    k = k < end - w->at.node ? k : (size_t)(end - w->at.node);
    w->at.node += k;
    w->i += k;
    w->back = g->came_back[w->at.start];
    g->touch_ns[w->at.node] = g->clock_ns;
    if (w->i == n)
        return true;
    if (w->at.node + 1 != f->n_nodes) /* else the newest node has no child yet, nor had one */
        return false;
    kvc_forest_append(f, ids + w->i, n - w->i);
    w->at.node = f->n_nodes - 1;
    g->live_end[w->at.start] = w->at.node;
    g->touch_ns[w->at.node] = g->clock_ns;
    return true;
}

static bool new_chain(struct kvc_forest *f, struct kvc_slot *slot, struct forget_walk *w,
                      const uint64_t *ids, size_t n, bool back)
{
    struct kvc_forgetting *g = f->forgetting;
    uint32_t index = (uint32_t)f->n_starts;
    if (!kvc_forest_new_start(f, slot, w->at, (uint32_t)w->i, ids[w->i]))
        return false;
    w->at.start = index;
    kvc_forest_append(f, ids + w->i + 1, n - w->i - 1);
    w->at.node = f->n_nodes - 1;
    g->live_end[index] = w->at.node;
    g->came_back[index] = back;
    g->touch_ns[w->at.node] = g->clock_ns;
    return true;
}

bool kvc_forget_walk(struct kvc_forest *f, struct kvc_spot root, const struct kvc_row *row,
                     bool prompt, uint64_t *end)
{
    struct kvc_forgetting *g = f->forgetting;
    const uint64_t *ids = prompt ? row->ids : row->output_ids;
    size_t n = prompt ? row->n_ids : row->n_output_ids, known;
    struct forget_walk w = { .at = root };
    bool back = false, done = false;
    if ((!g->bloom && !(g->bloom = kvc_calloc(BLOOM_BITS / 64, 8))) || !reserve(f))
        return false;
    while (!done) {
        struct kvc_slot *slot = kvc_forest_slot(f, w.at, (uint32_t)w.i, ids[w.i]);
        bool there = slot->start != 0;
        known = w.i;
        if (there && kvc_forget_trim(f, slot->start - 1)) {
            w.at.start = slot->start - 1;
            w.at.node = f->starts[w.at.start].node;
            w.i++;
            done = pass_chain(f, &w, ids, n);
            known = w.i;
            back = done && w.i < n && w.back;
            continue;
        }
        back = there || w.back || (g->forgotten && bloom(g, w.at.node, ids[w.i], false));
        if (!new_chain(f, slot, &w, ids, n, back))
            return false;
        done = true;
    }
    kvc_bit_set(f->cut_after, w.at.node);
    *end = w.at.node;
    if (back && prompt) {
        g->unjudged_rows++;
        g->unjudged_input += row->input_tokens;
        g->unjudged_known += known;
    }
    return true;
}

enum kvc_status kvc_forest_close_spaces(struct kvc_forest *f, struct kvc_error *err)
{
    struct kvc_forgetting *g = f->forgetting;
    enum kvc_status status = kvc_forest_settle(f, err);
    if (status != KVC_OK || !g)
        return status;
    if (f->table.slots)
        memset(f->table.slots, 0, f->table.n_slots * sizeof(*f->table.slots));
    f->table.used = 0;
    g->clock_ns = 0;
    kvc_spill_drop(&f->held[KVC_A_ID], f->id, g->closed * 8, f->n_nodes * 8);
    kvc_spill_drop(&g->held_touch, g->touch_ns, g->closed * 8, f->n_nodes * 8);
    g->closed = f->n_nodes;
    return KVC_OK;
}
