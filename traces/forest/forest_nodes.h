/* SPDX-License-Identifier: Apache-2.0
 * What forest.c builds and forest_finish.c turns into a trace.
 *
 * A node's parent is the node before it unless the node is a start; then it is in the start
 * table, which is in node order because starts are numbered as they appear. A start and the nodes
 * up to the next one are a chain. */
#ifndef KVC_TRACES_FOREST_NODES_H
#define KVC_TRACES_FOREST_NODES_H

#include "base/rng.h"
#include "traces/forest/forest.h"

/* Nodes from here up stand for the roots of key spaces (UINT64_MAX - 1 - key). */
#define KVC_ROOT_BASE ((uint64_t)1 << 63)

struct kvc_start {
    uint64_t node;
    uint32_t parent; /* the start of its parent's chain, by number; of a root, its number in
                        roots */
    uint32_t depth;  /* blocks above it; 0: a root */
};

struct kvc_spot { /* where a walk has come to */
    uint64_t node;
    uint32_t start; /* of its chain; nothing where node stands for a root */
};

struct kvc_slot {
    uint32_t hash, start; /* number of the start + 1; 0: empty */
};

struct kvc_table {
    struct kvc_slot *slots;
    size_t n_slots, used;
};

/* A row on its way in. Its path is looked up some rows ahead, a step at a time, so that the
 * memory each step needs is on its way while others are worked on. */
#define KVC_PENDING 16
struct kvc_pending {
    struct kvc_row row; /* ids point to the copies below */
    uint64_t *ids;
    size_t cap;
    struct kvc_spot at; /* reached by the first i ids */
    size_t i;
    uint32_t hash; /* of the block to find, */
    uint32_t next; /* and the start that it probably is */
    enum { KVC_STEP_FIND, KVC_STEP_CHECK, KVC_STEP_FOLLOW, KVC_STEP_WAIT } step;
};

enum kvc_forest_array {
    KVC_A_ID,
    KVC_A_IS_START,
    KVC_A_CUT_AFTER,
    KVC_A_STARTS,
    KVC_A_ROOTS,
    KVC_A_TIME,
    KVC_A_THINK,
    KVC_A_INPUT,
    KVC_A_OUTPUT,
    KVC_A_PROMPT,
    KVC_A_OUTPUT_NODE,
    KVC_A_SESSION,
    KVC_A_TENANT,
    KVC_A_MODEL,
    KVC_A_CACHED,
    KVC_A_SHOWN,
    KVC_A_STATUS,
    KVC_A_COUNT
};

struct kvc_forgetting; /* forest_forget.c */
struct kvc_forest_sampler; /* forest_sample.c */

struct kvc_forest {
    struct kvc_pending pending[KVC_PENDING]; /* rows n_rows .. n_taken - 1, by row modulo */
    uint64_t n_taken;
    unsigned looking; /* bitmap of pending[]: those whose step is not KVC_STEP_WAIT */
    uint64_t *id;        /* of each node */
    uint64_t *is_start;  /* bitmap */
    uint64_t *cut_after; /* bitmap: a request ends here or a branch leaves */
    uint64_t n_nodes;
    size_t node_cap; /* a multiple of 64 */
    struct kvc_start *starts;
    size_t n_starts, start_cap;
    uint64_t *roots; /* what stands for them; one may occur again */
    size_t n_roots;
    struct kvc_table table;

    /* Rows in the order they came. NULL: no row has one. */
    uint64_t n_rows;
    bool said_more; /* some column there is not among those that every row has */
    size_t row_cap;
    uint64_t *time_ns, *think_ns, *prompt_node, *output_node;
    uint32_t *input, *output, *session, *tenant, *model;
    uint32_t *cached_tokens, *shown_tokens;
    uint8_t *status;

    struct kvc_spill *spill, own_spill;
    struct kvc_spill_array held[KVC_A_COUNT];
    struct kvc_forgetting *forgetting; /* NULL: nothing is forgotten */
    struct kvc_forest_sampler *sampler; /* NULL: all is kept */
    bool infer_sessions, draws;
    uint64_t linked_turns, branches_off, sample, sample_linked;
};

static inline bool kvc_bit(const uint64_t *map, size_t i)
{
    return (map[i >> 6] >> (i & 63)) & 1;
}

static inline void kvc_bit_set(uint64_t *map, size_t i)
{
    map[i >> 6] |= (uint64_t)1 << (i & 63);
}

/* Where the row's prompt ends. */
static inline uint64_t kvc_forest_prompt(const struct kvc_forest *f, uint64_t row)
{
    return f->prompt_node ? f->prompt_node[row] : KVC_NODE_NONE;
}

/* Takes in all rows that are on their way. */
enum kvc_status kvc_forest_settle(struct kvc_forest *f, struct kvc_error *err);

/* The start at or before node. */
const struct kvc_start *kvc_forest_start(const struct kvc_forest *f, uint64_t node);

/* The node above a start, or what stands for its root. */
static inline uint64_t kvc_forest_parent(const struct kvc_forest *f, const struct kvc_start *s)
{
    const struct kvc_start *up = &f->starts[s->parent];
    return s->depth ? up->node + (s->depth - 1 - up->depth) : f->roots[s->parent];
}

static inline uint32_t kvc_forest_depth(const struct kvc_forest *f, uint64_t node)
{
    const struct kvc_start *s = kvc_forest_start(f, node);
    return s->depth + (uint32_t)(node - s->node);
}

/* The stand-in parent of the root above node: equal for equal key spaces. */
uint64_t kvc_forest_root(const struct kvc_forest *f, uint64_t node);

/* The node on the path to node that has depth blocks above it; depth <= node's own. */
uint64_t kvc_forest_ancestor(const struct kvc_forest *f, uint64_t node, uint32_t depth);

/* ---- between the files of the forest ---- */

/* How many of the n ids the chain below node goes through. */
size_t kvc_forest_follow(const struct kvc_forest *f, uint64_t node, const uint64_t *ids, size_t n);
/* Makes node n_nodes a start below parent and fills the slot, which is empty or a dead entry of the
 * same key. Room for the node is there. */
bool kvc_forest_new_start(struct kvc_forest *f, struct kvc_slot *slot, struct kvc_spot parent,
                          uint32_t depth, uint64_t id);
/* Appends ids to the newest chain. */
void kvc_forest_append(struct kvc_forest *f, const uint64_t *ids, size_t n);

/* ---- forest_table.c ---- */

static inline struct kvc_slot *kvc_table_home(const struct kvc_table *t, uint32_t hash)
{
    return t->slots + ((uint64_t)hash * t->n_slots >> 32);
}

static inline bool kvc_forest_is_child(const struct kvc_forest *f, const struct kvc_start *s,
                                       struct kvc_spot parent, uint32_t depth)
{
    return s->depth == depth &&
           (depth ? s->parent == parent.start : f->roots[s->parent] == parent.node);
}

/* Of the block id below parent, which depth blocks lead to. */
static inline uint32_t kvc_forest_hash(struct kvc_spot parent, uint32_t depth, uint64_t id)
{
    uint64_t from = depth ? (uint64_t)parent.start << 32 | depth : parent.node;
    return (uint32_t)(kvc_mix64(id ^ (from * 0x9e3779b97f4a7c15u)) >> 32);
}

/* The first slot of that hash, most often the only one, or an empty one. */
struct kvc_slot *kvc_table_probe(const struct kvc_table *t, uint32_t hash);
/* The slot of the block: its entry, or an empty one with its hash. */
struct kvc_slot *kvc_forest_slot(const struct kvc_forest *f, struct kvc_spot parent,
                                 uint32_t depth, uint64_t id);
/* Makes room; false: no memory. */
bool kvc_table_enlarge(struct kvc_forest *f);
static inline bool kvc_table_grow(struct kvc_forest *f)
{
    return (f->table.used + 1) * 4 <= f->table.n_slots * 3 || kvc_table_enlarge(f);
}
void kvc_table_free(struct kvc_table *t);

/* The row's columns at index n_rows. */
bool kvc_forest_put_row(struct kvc_forest *f, const struct kvc_row *row, uint64_t prompt,
                        uint64_t output);
void kvc_forest_free_rows(struct kvc_forest *f);

/* Row numbers by time, order kept among equals; *order NULL when they are sorted already (else to
 * be freed with kvc_spill_free). Times become relative to the first. */
bool kvc_forest_order(struct kvc_forest *f, uint64_t **order, struct kvc_spill_array *held);

/* Row r as it was added; its ids are in *scratch. */
enum kvc_status kvc_forest_row(const struct kvc_forest *f, uint64_t r, struct kvc_row *row,
                               uint64_t **scratch, size_t *cap, struct kvc_error *err);
/* Takes out the rows without ids. */
void kvc_forest_compact(struct kvc_forest *f);
/* An empty one with the same spill; it neither forgets nor samples. NULL: no memory. */
struct kvc_forest *kvc_forest_create_like(struct kvc_forest *f);

/* ---- sampling ---- */

bool kvc_forest_sampler_create(struct kvc_forest *f, uint32_t weight, uint64_t seed);
void kvc_forest_sampler_destroy(struct kvc_forest_sampler *s);
/* Shortens a row about to be added to what is kept of it. */
enum kvc_status kvc_forest_sample_row(struct kvc_forest *f, struct kvc_row *row,
                                      struct kvc_error *err);
/* At the end at the latest: leaves out what is not drawn of the first rows. */
enum kvc_status kvc_forest_sample_cut(struct kvc_forest *f, struct kvc_error *err);
void kvc_forest_sample_tell(const struct kvc_forest *f, struct kvc_sample_totals *out);
/* What seg_draw is of a segment that begins at node, below one with above. */
uint32_t kvc_forest_sample_draw(const struct kvc_forest *f, uint64_t node, uint32_t hash,
                                uint32_t above);

/* ---- forgetting ---- */

struct kvc_forgetting *kvc_forgetting_create(uint64_t forget_ns);
void kvc_forgetting_destroy(struct kvc_forest *f);
/* As the forest's walk, for a row at time_ns; judged: of a prompt, so that what can't be judged is
 * counted. */
bool kvc_forget_walk(struct kvc_forest *f, struct kvc_spot root, const struct kvc_row *row,
                     bool prompt, uint64_t *end);
void kvc_forget_clock(struct kvc_forest *f, uint64_t time_ns);
/* Drops what is too old from the chain of that start; false when nothing of it is left. */
bool kvc_forget_trim(struct kvc_forest *f, uint32_t start);
/* Whether ids of some blocks may be gone. */
bool kvc_forget_lost_ids(const struct kvc_forest *f);
void kvc_forget_count(const struct kvc_forest *f, struct kvc_forest_counts *out);

/* ---- sessions ---- */

/* Which session each of the first n rows of t (in time order, of which input_tokens, prompt_seg and
 * the segments are read) belongs to by prefix growth, by the rule in docs/import.md. false: no
 * memory. */
bool kvc_sessions_infer(const struct kvc_trace *t, struct kvc_spill *spill, uint64_t n,
                        uint32_t *session, uint64_t *linked, uint64_t *branches);
/* Of the first rows with ids, how many that would link to an earlier one; both 0 without memory. */
void kvc_sessions_sample(const struct kvc_trace *t, struct kvc_spill *spill, uint64_t *rows,
                         uint64_t *linked);

#endif
