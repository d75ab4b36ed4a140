/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/forest/forest_nodes.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <string.h>

struct kvc_forest *kvc_forest_create_with(const struct kvc_forest_options *options)
{
    struct kvc_forest *f = kvc_calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->spill = options->spill;
    f->infer_sessions = options->infer_sessions;
    f->draws = options->draws;
    if (!f->spill && !kvc_spill_init(f->spill = &f->own_spill, NULL, 0))
        goto fail;
    if (options->forget_ns && !(f->forgetting = kvc_forgetting_create(options->forget_ns)))
        goto fail;
    if (options->sample_weight &&
        !kvc_forest_sampler_create(f, options->sample_weight, options->seed))
        goto fail;
    return f;
fail:
    kvc_forest_destroy(f);
    return NULL;
}

struct kvc_forest *kvc_forest_create(void)
{
    return kvc_forest_create_with(&(struct kvc_forest_options){ 0 });
}

void kvc_forest_destroy(struct kvc_forest *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < KVC_PENDING; i++)
        kvc_free(f->pending[i].ids);
    kvc_forgetting_destroy(f);
    kvc_forest_sampler_destroy(f->sampler);
    kvc_spill_free(f->spill, &f->id, &f->held[KVC_A_ID]);
    kvc_spill_free(f->spill, &f->is_start, &f->held[KVC_A_IS_START]);
    kvc_spill_free(f->spill, &f->cut_after, &f->held[KVC_A_CUT_AFTER]);
    kvc_spill_free(f->spill, &f->starts, &f->held[KVC_A_STARTS]);
    kvc_spill_free(f->spill, &f->roots, &f->held[KVC_A_ROOTS]);
    kvc_table_free(&f->table);
    kvc_forest_free_rows(f);
    kvc_spill_clear(&f->own_spill);
    kvc_free(f);
}

/* Doubles while small; a file grows by an eighth, as its space is taken at once. */
static size_t larger(size_t cap, size_t need, size_t unit)
{
    size_t next = cap < ((size_t)1 << 22) ? cap * 2 : cap + cap / 8;
    next = next < need ? need : next;
    return (next + unit - 1) / unit * unit;
}

static bool reserve_nodes(struct kvc_forest *f, size_t more)
{
    size_t need = (size_t)f->n_nodes + more;
    if (need <= f->node_cap)
        return true;
    size_t cap = larger(f->node_cap, need, 1024);
    /* A failure leaves larger arrays beside the old capacity, which is harmless. */
    if (!kvc_spill_grow(f->spill, &f->id, &f->held[KVC_A_ID], cap * 8, false) ||
        !kvc_spill_grow(f->spill, &f->is_start, &f->held[KVC_A_IS_START], cap / 8, true) ||
        !kvc_spill_grow(f->spill, &f->cut_after, &f->held[KVC_A_CUT_AFTER], cap / 8, true))
        return false;
    f->node_cap = cap;
    return true;
}

/* The number of the root that parent stands for; a log mostly has few, or one after the other. */
static bool number_root(struct kvc_forest *f, uint64_t parent, uint32_t *number)
{
    if (!f->n_roots || f->roots[f->n_roots - 1] != parent) {
        if ((f->n_roots + 1) * sizeof(*f->roots) > f->held[KVC_A_ROOTS].bytes &&
            !kvc_spill_grow(f->spill, &f->roots, &f->held[KVC_A_ROOTS],
                            larger(f->n_roots, f->n_roots + 1, 256) * sizeof(*f->roots), false))
            return false;
        f->roots[f->n_roots++] = parent;
    }
    *number = (uint32_t)f->n_roots - 1;
    return true;
}

bool kvc_forest_new_start(struct kvc_forest *f, struct kvc_slot *slot, struct kvc_spot parent,
                          uint32_t depth, uint64_t id)
{
    if (f->n_starts == f->start_cap) {
        size_t cap = larger(f->start_cap, f->n_starts + 1, 256);
        if (!kvc_spill_grow(f->spill, &f->starts, &f->held[KVC_A_STARTS],
                            cap * sizeof(*f->starts), false))
            return false;
        f->start_cap = cap;
    }
    uint32_t up = parent.start;
    if (!depth && !number_root(f, parent.node, &up))
        return false;
    uint64_t node = f->n_nodes++;
    f->id[node] = id;
    kvc_bit_set(f->is_start, node);
    f->starts[f->n_starts++] = (struct kvc_start){ node, up, depth };
    f->table.used += slot->start == 0;
    slot->start = (uint32_t)f->n_starts;
    if (depth)
        kvc_bit_set(f->cut_after, parent.node);
    return true;
}

void kvc_forest_append(struct kvc_forest *f, const uint64_t *ids, size_t n)
{
    if (n)
        memcpy(f->id + f->n_nodes, ids, n * sizeof(*ids));
    f->n_nodes += n;
}

/* Goes to the child by id among the starts, or makes it. Room for the node is there. */
static bool branch_child(struct kvc_forest *f, struct kvc_spot *at, uint32_t depth, uint64_t id)
{
    if (!kvc_table_grow(f))
        return false;
    struct kvc_slot *slot = kvc_forest_slot(f, *at, depth, id);
    if (!slot->start && !kvc_forest_new_start(f, slot, *at, depth, id))
        return false;
    at->start = slot->start - 1;
    at->node = f->starts[at->start].node;
    return true;
}

/* How many of the n ids the chain below node goes through. */
static inline size_t follow(const struct kvc_forest *f, uint64_t node, const uint64_t *ids,
                            size_t n)
{
    const uint64_t *chain = f->id + node + 1;
    size_t most = f->n_nodes - node - 1, k = 0;
    if (most > n)
        most = n;
    while (k + 4 <= most && !((chain[k] ^ ids[k]) | (chain[k + 1] ^ ids[k + 1]) |
                              (chain[k + 2] ^ ids[k + 2]) | (chain[k + 3] ^ ids[k + 3])))
        k += 4;
    while (k < most && chain[k] == ids[k])
        k++;
    /* The chain ends where another node starts, whatever its id. */
    for (size_t i = node + 1; i <= node + k;) {
        uint64_t bits = f->is_start[i >> 6] >> (i & 63);
        if (bits) {
            size_t at = i + (size_t)__builtin_ctzll(bits) - node - 1;
            return at < k ? at : k;
        }
        i = (i | 63) + 1;
    }
    return k;
}

size_t kvc_forest_follow(const struct kvc_forest *f, uint64_t node, const uint64_t *ids, size_t n)
{
    return follow(f, node, ids, n);
}

/* Walks on from a spot, which the first i ids lead to, making what is new, and cuts at the end. */
static bool walk(struct kvc_forest *f, struct kvc_spot at, size_t i, const uint64_t *ids, size_t n,
                 uint64_t *end)
{
    if (i == 0 && !branch_child(f, &at, 0, ids[i++]))
        return false;
    for (;;) {
        size_t k = follow(f, at.node, ids + i, n - i);
        at.node += k;
        i += k;
        if (i == n)
            break;
        if (at.node + 1 == f->n_nodes) { /* the newest node has no child yet: the rest is new */
            kvc_forest_append(f, ids + i, n - i);
            at.node = f->n_nodes - 1;
            break;
        }
        if (!branch_child(f, &at, (uint32_t)i, ids[i]))
            return false;
        i++;
    }
    kvc_bit_set(f->cut_after, at.node);
    *end = at.node;
    return true;
}

/* ---- rows on their way in ---- */

/* In a cache line. A chain is compared at about 6 bytes a cycle and memory takes hundreds of cycles
 * to answer, so the first lines are asked for at once. */
#define LINE_IDS 8
#define NEAR_STARTS ((size_t)1 << 12) /* 64 KiB: so few stay near, whatever else goes by */

static void prefetch_chain(const struct kvc_forest *f, uint64_t node, size_t n)
{
    for (size_t k = 0; k < n && k < 4 * LINE_IDS; k += LINE_IDS)
        __builtin_prefetch(&f->id[node + k]);
    __builtin_prefetch(&f->is_start[node >> 6]);
}

/* What turns out otherwise than supposed is left to the walk: another start of the same hash, or
 * none yet, perhaps to come from a row just ahead. */
static void look_ahead(struct kvc_forest *f, unsigned slot)
{
    struct kvc_pending *p = &f->pending[slot];
    size_t n = p->row.n_ids;
    if (p->step == KVC_STEP_FIND) {
        p->next = kvc_table_probe(&f->table, p->hash)->start;
        p->step = p->next-- ? KVC_STEP_CHECK : KVC_STEP_WAIT;
        if (p->step == KVC_STEP_CHECK && f->n_starts >= NEAR_STARTS) {
            __builtin_prefetch(&f->starts[p->next]);
            return;
        }
    }
    if (p->step == KVC_STEP_CHECK) {
        const struct kvc_start *s = &f->starts[p->next];
        p->step = KVC_STEP_WAIT;
        if (kvc_forest_is_child(f, s, p->at, (uint32_t)p->i)) {
            p->step = KVC_STEP_FOLLOW;
            prefetch_chain(f, s->node, n - p->i);
        }
    } else if (p->step == KVC_STEP_FOLLOW) {
        uint64_t node = f->starts[p->next].node;
        p->step = KVC_STEP_WAIT;
        if (f->id[node] == p->ids[p->i]) {
            size_t k = follow(f, node, p->ids + p->i + 1, n - p->i - 1);
            p->at = (struct kvc_spot){ node + k, p->next };
            p->i += k + 1;
            if (p->i < n) {
                p->step = KVC_STEP_FIND;
                p->hash = kvc_forest_hash(p->at, (uint32_t)p->i, p->ids[p->i]);
                __builtin_prefetch(kvc_table_home(&f->table, p->hash));
            }
        }
    }
    if (p->step == KVC_STEP_WAIT)
        f->looking &= ~(1u << slot);
}

static bool walk_row(struct kvc_forest *f, struct kvc_pending *p, uint64_t *prompt,
                     uint64_t *output)
{
    const struct kvc_row *row = &p->row;
    struct kvc_spot root = { UINT64_MAX - 1 - row->root_key, 0 };
    if (f->forgetting) { /* what was looked up ahead may be forgotten by now */
        kvc_forget_clock(f, row->time_ns);
        return (!row->n_ids ||
                (kvc_table_grow(f) && kvc_forget_walk(f, root, row, true, prompt))) &&
               (!row->n_output_ids ||
                (kvc_table_grow(f) && kvc_forget_walk(f, root, row, false, output)));
    }
    return (!row->n_ids || walk(f, p->at, p->i, row->ids, row->n_ids, prompt)) &&
           (!row->n_output_ids || walk(f, root, 0, row->output_ids, row->n_output_ids, output));
}

static enum kvc_status settle(struct kvc_forest *f, struct kvc_error *err)
{
    struct kvc_pending *p = &f->pending[f->n_rows % KVC_PENDING];
    size_t more = p->row.n_ids + p->row.n_output_ids;
    f->looking &= ~(1u << f->n_rows % KVC_PENDING);
    uint64_t prompt = KVC_NODE_NONE, output = KVC_NODE_NONE;
    if (f->n_starts >= UINT32_MAX / 4)
        return kvc_fail(err, KVC_ERR_LIMIT, "more than a billion distinct prefixes; import a "
                        "shorter window");
    if (!reserve_nodes(f, more))
        return kvc_spill_fail(f->spill, err);
    if (!walk_row(f, p, &prompt, &output) || !kvc_forest_put_row(f, &p->row, prompt, output))
        return kvc_spill_fail(f->spill, err);
    f->n_rows++;
    return KVC_OK;
}

enum kvc_status kvc_forest_settle(struct kvc_forest *f, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    while (status == KVC_OK && f->n_rows < f->n_taken)
        status = settle(f, err);
    return status;
}

static enum kvc_status add(struct kvc_forest *f, const struct kvc_row *row, struct kvc_error *err)
{
    struct kvc_pending *p = &f->pending[f->n_taken % KVC_PENDING];
    size_t n = row->n_ids + row->n_output_ids;
    if (n == 0 && f->n_rows == f->n_taken) { /* nothing to look up, and no row to stay behind */
        if (f->forgetting)
            kvc_forget_clock(f, row->time_ns);
        if (!kvc_forest_put_row(f, row, KVC_NODE_NONE, KVC_NODE_NONE))
            return kvc_spill_fail(f->spill, err);
        f->n_taken++;
        f->n_rows++;
        return KVC_OK;
    }
    if (f->n_taken - f->n_rows == KVC_PENDING) {
        enum kvc_status status = settle(f, err);
        if (status != KVC_OK)
            return status;
    }
    if (!kvc_table_grow(f) || !kvc_grow((void **)&p->ids, &p->cap, n, sizeof(*p->ids)))
        return kvc_fail_nomem(err);
    p->row = *row;
    p->row.ids = p->ids;
    p->row.output_ids = row->n_output_ids ? p->ids + row->n_ids : NULL;
    if (row->n_ids)
        memcpy(p->ids, row->ids, row->n_ids * sizeof(*p->ids));
    if (row->n_output_ids)
        memcpy(p->ids + row->n_ids, row->output_ids, row->n_output_ids * sizeof(*p->ids));
    p->at = (struct kvc_spot){ UINT64_MAX - 1 - row->root_key, 0 };
    p->i = 0;
    p->step = row->n_ids ? KVC_STEP_FIND : KVC_STEP_WAIT;
    p->hash = row->n_ids ? kvc_forest_hash(p->at, 0, row->ids[0]) : 0;
    f->looking |= 1u << f->n_taken % KVC_PENDING;
    f->n_taken++;
    for (unsigned rest = f->looking; rest; rest &= rest - 1)
        look_ahead(f, (unsigned)__builtin_ctz(rest));
    return KVC_OK;
}

enum kvc_status kvc_forest_add(struct kvc_forest *f, const struct kvc_row *row,
                               struct kvc_error *err)
{
    struct kvc_row kept;
    if (!f->sampler)
        return add(f, row, err);
    kept = *row;
    enum kvc_status status = kvc_forest_sample_row(f, &kept, err);
    return status == KVC_OK && kept.n_ids ? add(f, &kept, err) : status;
}

enum kvc_status kvc_forest_add_lengths(struct kvc_forest *f, uint64_t time_ns,
                                       uint32_t input_tokens, uint32_t output_tokens,
                                       struct kvc_error *err)
{
    if (f->sampler)
        return KVC_OK;
    if (f->said_more || f->forgetting || f->n_rows != f->n_taken || f->n_rows == f->row_cap) {
        const struct kvc_row row = { .time_ns = time_ns, .input_tokens = input_tokens,
                                     .output_tokens = output_tokens, .session = KVC_ID_NONE,
                                     .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                                     .think_ns = KVC_TIME_NONE };
        return kvc_forest_add(f, &row, err);
    }
    f->time_ns[f->n_rows] = time_ns;
    f->input[f->n_rows] = input_tokens;
    f->output[f->n_rows] = output_tokens;
    f->n_taken++;
    f->n_rows++;
    return KVC_OK;
}

void kvc_forest_hide_ids(struct kvc_forest *f)
{
    f->draws = false;
}

uint64_t kvc_forest_rows(const struct kvc_forest *f)
{
    return f->n_taken;
}

void kvc_forest_count(const struct kvc_forest *f, struct kvc_forest_counts *out)
{
    *out = (struct kvc_forest_counts){
        .rows = f->n_rows, .nodes = f->n_nodes, .chains = f->n_starts,
        .hash_bytes = f->table.n_slots * sizeof(*f->table.slots),
        .linked_turns = f->linked_turns, .branches = f->branches_off,
        .sample = f->sample, .sample_linked = f->sample_linked };
    if (f->forgetting)
        kvc_forget_count(f, out);
}

const struct kvc_start *kvc_forest_start(const struct kvc_forest *f, uint64_t node)
{
    size_t lo = 0, hi = f->n_starts; /* starts[0].node is 0 */
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (f->starts[mid].node <= node)
            lo = mid;
        else
            hi = mid;
    }
    return &f->starts[lo];
}

uint64_t kvc_forest_ancestor(const struct kvc_forest *f, uint64_t node, uint32_t depth)
{
    const struct kvc_start *s = kvc_forest_start(f, node);
    while (s->depth > depth)
        s = &f->starts[s->parent];
    return s->node + (depth - s->depth);
}

uint64_t kvc_forest_root(const struct kvc_forest *f, uint64_t node)
{
    const struct kvc_start *s = kvc_forest_start(f, node);
    while (s->depth)
        s = &f->starts[s->parent];
    return f->roots[s->parent];
}
