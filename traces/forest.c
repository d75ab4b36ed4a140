/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/forest_nodes.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <string.h>

struct kvc_forest *kvc_forest_create(void)
{
    return kvc_calloc(1, sizeof(struct kvc_forest));
}

void kvc_forest_destroy(struct kvc_forest *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < KVC_PENDING; i++)
        kvc_free(f->pending[i].ids);
    kvc_free(f->id);
    kvc_free(f->is_start);
    kvc_free(f->cut_after);
    kvc_free(f->starts);
    kvc_free(f->branches);
    kvc_free(f->time_ns);
    kvc_free(f->think_ns);
    kvc_free(f->input);
    kvc_free(f->output);
    kvc_free(f->prompt_node);
    kvc_free(f->output_node);
    kvc_free(f->session);
    kvc_free(f->tenant);
    kvc_free(f->model);
    kvc_free(f->status);
    kvc_free(f->cached_tokens);
    kvc_free(f->shown_tokens);
    kvc_free(f);
}

static bool grow_bitmap(uint64_t **map, size_t old_bits, size_t bits)
{
    uint64_t *p = kvc_realloc(*map, bits / 64, sizeof(*p));
    if (!p)
        return false;
    memset(p + old_bits / 64, 0, (bits - old_bits) / 8);
    *map = p;
    return true;
}

static bool reserve_nodes(struct kvc_forest *f, size_t more)
{
    size_t need = (size_t)f->n_nodes + more;
    if (need <= f->node_cap)
        return true;
    size_t cap = f->node_cap ? f->node_cap : 1024;
    while (cap < need)
        cap *= 2;
    uint64_t *id = kvc_realloc(f->id, cap, sizeof(*id));
    if (!id)
        return false;
    f->id = id;
    /* A failure leaves larger arrays beside the old capacity, which is harmless. */
    if (!grow_bitmap(&f->is_start, f->node_cap, cap) ||
        !grow_bitmap(&f->cut_after, f->node_cap, cap))
        return false;
    f->node_cap = cap;
    return true;
}

static inline size_t branch_slot(const struct kvc_forest *f, uint32_t parent, uint64_t id)
{
    return (size_t)kvc_mix64(id ^ ((uint64_t)parent * 0x9e3779b97f4a7c15u)) & f->branch_mask;
}

static bool rehash_branches(struct kvc_forest *f)
{
    size_t old_size = f->branches ? f->branch_mask + 1 : 0;
    size_t size = old_size ? old_size * 2 : 1024;
    struct kvc_branch *old = f->branches;
    struct kvc_branch *fresh = kvc_malloc(size, sizeof(*fresh));
    if (!fresh)
        return false;
    memset(fresh, 0xff, size * sizeof(*fresh));
    f->branches = fresh;
    f->branch_mask = size - 1;
    for (size_t i = 0; i < old_size; i++) {
        if (old[i].node == KVC_NODE_NONE)
            continue;
        size_t slot = branch_slot(f, old[i].parent, old[i].id);
        while (fresh[slot].node != KVC_NODE_NONE)
            slot = (slot + 1) & f->branch_mask;
        fresh[slot] = old[i];
    }
    kvc_free(old);
    return true;
}

static inline bool grow_branches(struct kvc_forest *f)
{
    return (f->branches && (f->n_starts + 1) * 2 <= f->branch_mask + 1) || rehash_branches(f);
}

/* Finds the child of parent by id among the starts, or makes it. Room for the node is there. */
static bool branch_child(struct kvc_forest *f, uint32_t parent, uint32_t depth, uint64_t id,
                         uint32_t *child)
{
    if (!grow_branches(f))
        return false;
    size_t slot = branch_slot(f, parent, id);
    for (; f->branches[slot].node != KVC_NODE_NONE; slot = (slot + 1) & f->branch_mask) {
        const struct kvc_branch *b = &f->branches[slot];
        if (b->id == id && b->parent == parent) {
            *child = b->node;
            return true;
        }
    }
    if (!kvc_grow((void **)&f->starts, &f->start_cap, f->n_starts + 1, sizeof(*f->starts)))
        return false;
    uint32_t node = f->n_nodes++;
    f->id[node] = id;
    kvc_bit_set(f->is_start, node);
    f->starts[f->n_starts++] = (struct kvc_start){ node, parent, depth };
    f->branches[slot] = (struct kvc_branch){ id, parent, node };
    if (parent < KVC_ROOT_BASE)
        kvc_bit_set(f->cut_after, parent);
    *child = node;
    return true;
}

/* How many of the n ids the chain below node goes through. */
static size_t follow(const struct kvc_forest *f, uint32_t node, const uint64_t *ids, size_t n)
{
    const uint64_t *chain = f->id + node + 1;
    size_t most = f->n_nodes - node - 1, k = 0;
    if (most > n)
        most = n;
    while (k < most && chain[k] == ids[k])
        k++;
    /* The chain ends where another node starts, whatever its id. */
    for (size_t i = (size_t)node + 1; i <= (size_t)node + k;) {
        uint64_t bits = f->is_start[i >> 6] >> (i & 63);
        if (bits) {
            size_t at = i + (size_t)__builtin_ctzll(bits) - node - 1;
            return at < k ? at : k;
        }
        i = (i | 63) + 1;
    }
    return k;
}

/* Walks on from cur, which the first i ids lead to, making what is new, and cuts at the end. */
static bool walk(struct kvc_forest *f, uint32_t cur, size_t i, const uint64_t *ids, size_t n,
                 uint32_t *end)
{
    if (i == 0 && !branch_child(f, cur, 0, ids[i++], &cur))
        return false;
    for (;;) {
        size_t k = follow(f, cur, ids + i, n - i);
        cur += (uint32_t)k;
        i += k;
        if (i == n)
            break;
        if (cur + 1 == f->n_nodes) { /* the newest node has no child yet: the rest is new */
            memcpy(f->id + cur + 1, ids + i, (n - i) * sizeof(*ids));
            f->n_nodes += (uint32_t)(n - i);
            cur = f->n_nodes - 1;
            break;
        }
        if (!branch_child(f, cur, (uint32_t)i, ids[i], &cur))
            return false;
        i++;
    }
    kvc_bit_set(f->cut_after, cur);
    *end = cur;
    return true;
}

static bool grow_column(void *column, size_t cap, size_t size)
{
    void **p = column;
    void *fresh = kvc_realloc(*p, cap, size);
    if (fresh)
        *p = fresh;
    return fresh != NULL;
}

static bool reserve_row(struct kvc_forest *f)
{
    if (f->n_rows < f->row_cap)
        return true;
    size_t cap = f->row_cap ? f->row_cap * 2 : 1024;
    bool ok = grow_column(&f->time_ns, cap, 8) && grow_column(&f->input, cap, 4) &&
              grow_column(&f->output, cap, 4) && grow_column(&f->prompt_node, cap, 4);
    ok = ok && (!f->think_ns || grow_column(&f->think_ns, cap, 8));
    ok = ok && (!f->output_node || grow_column(&f->output_node, cap, 4));
    ok = ok && (!f->session || grow_column(&f->session, cap, 4));
    ok = ok && (!f->tenant || grow_column(&f->tenant, cap, 4));
    ok = ok && (!f->model || grow_column(&f->model, cap, 4));
    ok = ok && (!f->status || grow_column(&f->status, cap, 1));
    ok = ok && (!f->cached_tokens || grow_column(&f->cached_tokens, cap, 4));
    ok = ok && (!f->shown_tokens || grow_column(&f->shown_tokens, cap, 4));
    if (ok)
        f->row_cap = cap;
    return ok;
}

/* A column appears with the first row that has something to say; all before it said 0xff.. . */
static inline bool put_u32(struct kvc_forest *f, uint32_t **column, uint32_t value)
{
    if (!*column) {
        if (value == UINT32_MAX)
            return true;
        if (!(*column = kvc_malloc(f->row_cap, sizeof(**column))))
            return false;
        memset(*column, 0xff, (size_t)f->n_rows * sizeof(**column));
    }
    (*column)[f->n_rows] = value;
    return true;
}

static bool put_rare(struct kvc_forest *f, const struct kvc_row *row)
{
    if (!put_u32(f, &f->session, row->session) || !put_u32(f, &f->tenant, row->tenant) ||
        !put_u32(f, &f->model, row->model) ||
        !put_u32(f, &f->cached_tokens, row->cached_stated ? row->cached_tokens : UINT32_MAX) ||
        !put_u32(f, &f->shown_tokens, row->shown_stated ? row->shown_tokens : UINT32_MAX))
        return false;
    if (!f->think_ns && row->think_ns != KVC_TIME_NONE) {
        if (!(f->think_ns = kvc_malloc(f->row_cap, sizeof(*f->think_ns))))
            return false;
        memset(f->think_ns, 0xff, (size_t)f->n_rows * sizeof(*f->think_ns));
    }
    if (f->think_ns)
        f->think_ns[f->n_rows] = row->think_ns;
    if (!f->status && row->status != KVC_ROW_OK) {
        if (!(f->status = kvc_malloc(f->row_cap, 1)))
            return false;
        memset(f->status, KVC_ROW_OK, (size_t)f->n_rows);
    }
    if (f->status)
        f->status[f->n_rows] = row->status;
    return true;
}

static bool put_row(struct kvc_forest *f, const struct kvc_row *row, uint32_t prompt,
                    uint32_t output)
{
    if (!reserve_row(f) || !put_u32(f, &f->output_node, output) || !put_rare(f, row))
        return false;
    f->time_ns[f->n_rows] = row->time_ns;
    f->input[f->n_rows] = row->input_tokens;
    f->output[f->n_rows] = row->output_tokens;
    f->prompt_node[f->n_rows] = prompt;
    f->n_rows++;
    return true;
}

/* ---- rows on their way in ---- */

static void look_ahead(const struct kvc_forest *f, struct kvc_pending *p)
{
    size_t n = p->row.n_ids;
    if (p->step == KVC_STEP_FIND) {
        size_t slot = branch_slot(f, p->cur, p->ids[p->i]);
        const struct kvc_branch *b = &f->branches[slot];
        while (b->node != KVC_NODE_NONE && (b->id != p->ids[p->i] || b->parent != p->cur))
            b = &f->branches[slot = (slot + 1) & f->branch_mask];
        p->step = KVC_STEP_WAIT; /* not there: yet to come, perhaps from a row just ahead */
        if (b->node != KVC_NODE_NONE) {
            p->cur = b->node;
            p->i++;
            p->step = p->i < n ? KVC_STEP_FOLLOW : KVC_STEP_WAIT;
            __builtin_prefetch(&f->id[p->cur + 1]);
            __builtin_prefetch(&f->is_start[(p->cur + 1) >> 6]);
        }
    } else if (p->step == KVC_STEP_FOLLOW) {
        size_t k = follow(f, p->cur, p->ids + p->i, n - p->i);
        p->cur += (uint32_t)k;
        p->i += k;
        p->step = p->i < n ? KVC_STEP_FIND : KVC_STEP_WAIT;
        if (p->i < n)
            __builtin_prefetch(&f->branches[branch_slot(f, p->cur, p->ids[p->i])]);
    }
}

static enum kvc_status settle(struct kvc_forest *f, struct kvc_error *err)
{
    struct kvc_pending *p = &f->pending[f->n_rows % KVC_PENDING];
    const struct kvc_row *row = &p->row;
    size_t more = row->n_ids + row->n_output_ids;
    uint32_t prompt = KVC_NODE_NONE, output = KVC_NODE_NONE, root = UINT32_MAX - 1 - row->root_key;
    if (more > KVC_ROOT_BASE - f->n_nodes)
        return kvc_fail(err, KVC_ERR_LIMIT,
                        "more than 4.0 billion distinct blocks; import a shorter window");
    if (!reserve_nodes(f, more) ||
        (row->n_ids && !walk(f, p->cur, p->i, row->ids, row->n_ids, &prompt)) ||
        (row->n_output_ids &&
         !walk(f, root, 0, row->output_ids, row->n_output_ids, &output)) ||
        !put_row(f, row, prompt, output))
        return kvc_fail_nomem(err);
    return KVC_OK;
}

enum kvc_status kvc_forest_settle(struct kvc_forest *f, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    while (status == KVC_OK && f->n_rows < f->n_taken)
        status = settle(f, err);
    return status;
}

enum kvc_status kvc_forest_add(struct kvc_forest *f, const struct kvc_row *row,
                               struct kvc_error *err)
{
    struct kvc_pending *p = &f->pending[f->n_taken % KVC_PENDING];
    size_t n = row->n_ids + row->n_output_ids;
    if (row->root_key >= UINT32_MAX - 1 - KVC_ROOT_BASE)
        return kvc_fail(err, KVC_ERR_LIMIT, "more than 268 million separate id spaces");
    if (n == 0 && f->n_rows == f->n_taken) { /* nothing to look up, and no row to stay behind */
        f->n_taken++;
        return put_row(f, row, KVC_NODE_NONE, KVC_NODE_NONE) ? KVC_OK : kvc_fail_nomem(err);
    }
    if (f->n_taken - f->n_rows == KVC_PENDING) {
        enum kvc_status status = settle(f, err);
        if (status != KVC_OK)
            return status;
    }
    if (!grow_branches(f) || !kvc_grow((void **)&p->ids, &p->cap, n, sizeof(*p->ids)))
        return kvc_fail_nomem(err);
    p->row = *row;
    p->row.ids = p->ids;
    p->row.output_ids = p->ids + row->n_ids;
    if (row->n_ids)
        memcpy(p->ids, row->ids, row->n_ids * sizeof(*p->ids));
    if (row->n_output_ids)
        memcpy(p->ids + row->n_ids, row->output_ids, row->n_output_ids * sizeof(*p->ids));
    p->cur = UINT32_MAX - 1 - row->root_key;
    p->i = 0;
    p->step = row->n_ids ? KVC_STEP_FIND : KVC_STEP_WAIT;
    f->n_taken++;
    for (uint64_t r = f->n_rows; r < f->n_taken; r++)
        look_ahead(f, &f->pending[r % KVC_PENDING]);
    return KVC_OK;
}

enum kvc_status kvc_forest_delay(struct kvc_forest *f, uint64_t first, uint64_t n, uint64_t ns,
                                 struct kvc_error *err)
{
    enum kvc_status status = kvc_forest_settle(f, err);
    for (uint64_t r = first; r < first + n && status == KVC_OK; r++) {
        if (ns > INT64_MAX || f->time_ns[r] > INT64_MAX - ns)
            status = kvc_fail(err, KVC_ERR_INPUT, "a session lasts beyond the range of times "
                              "(292 years)");
        else
            f->time_ns[r] += ns;
    }
    return status;
}

enum kvc_status kvc_forest_times(struct kvc_forest *f, const uint64_t **time_ns,
                                 struct kvc_error *err)
{
    enum kvc_status status = kvc_forest_settle(f, err);
    *time_ns = f->time_ns;
    return status;
}

uint64_t kvc_forest_rows(const struct kvc_forest *f)
{
    return f->n_taken;
}

const struct kvc_start *kvc_forest_start(const struct kvc_forest *f, uint32_t node)
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

uint32_t kvc_forest_ancestor(const struct kvc_forest *f, uint32_t node, uint32_t depth)
{
    const struct kvc_start *s = kvc_forest_start(f, node);
    while (s->depth > depth)
        s = kvc_forest_start(f, node = s->parent);
    return s->node + (depth - s->depth);
}

uint32_t kvc_forest_root(const struct kvc_forest *f, uint32_t node)
{
    while (node < KVC_ROOT_BASE)
        node = kvc_forest_start(f, node)->parent;
    return node;
}

static size_t path_blocks(const struct kvc_forest *f, uint32_t node)
{
    return node == KVC_NODE_NONE ? 0 : (size_t)kvc_forest_depth(f, node) + 1;
}

/* Ids of the path to node, root first, into *ids; returns the key space of its root. */
static uint32_t path_ids(const struct kvc_forest *f, uint32_t node, uint64_t *ids)
{
    for (;;) {
        const struct kvc_start *s = kvc_forest_start(f, node);
        memcpy(ids + s->depth, f->id + s->node, ((size_t)(node - s->node) + 1) * sizeof(*ids));
        if (s->parent >= KVC_ROOT_BASE)
            return UINT32_MAX - 1 - s->parent;
        node = s->parent;
    }
}

static enum kvc_status copy_row(const struct kvc_forest *from, uint64_t r, struct kvc_forest *to,
                                uint64_t **scratch, size_t *cap, struct kvc_error *err)
{
    struct kvc_row row = { .time_ns = from->time_ns[r], .input_tokens = from->input[r],
                           .output_tokens = from->output[r],
                           .session = from->session ? from->session[r] : KVC_ID_NONE,
                           .tenant = from->tenant ? from->tenant[r] : KVC_ID_NONE,
                           .model = from->model ? from->model[r] : KVC_ID_NONE,
                           .think_ns = from->think_ns ? from->think_ns[r] : KVC_TIME_NONE,
                           .status = from->status ? from->status[r] : (uint8_t)KVC_ROW_OK };
    row.cached_tokens = from->cached_tokens ? from->cached_tokens[r] : UINT32_MAX;
    row.cached_stated = row.cached_tokens != UINT32_MAX;
    row.shown_tokens = from->shown_tokens ? from->shown_tokens[r] : UINT32_MAX;
    row.shown_stated = row.shown_tokens != UINT32_MAX;
    uint32_t prompt = from->prompt_node[r];
    uint32_t output = from->output_node ? from->output_node[r] : KVC_NODE_NONE;
    row.n_ids = path_blocks(from, prompt);
    row.n_output_ids = path_blocks(from, output);
    if (!kvc_grow((void **)scratch, cap, row.n_ids + row.n_output_ids, sizeof(**scratch)))
        return kvc_fail_nomem(err);
    row.ids = *scratch;
    if (row.n_ids)
        row.root_key = path_ids(from, prompt, *scratch);
    if (row.n_output_ids) {
        row.output_ids = *scratch + row.n_ids;
        row.root_key = path_ids(from, output, *scratch + row.n_ids);
    }
    return kvc_forest_add(to, &row, err);
}

enum kvc_status kvc_forest_remove(struct kvc_forest **forest, const uint64_t *rows, size_t n,
                                  struct kvc_error *err)
{
    struct kvc_forest *from = *forest, *to = kvc_forest_create();
    uint64_t *scratch = NULL;
    size_t cap = 0, k = 0;
    enum kvc_status status = to ? kvc_forest_settle(from, err) : kvc_fail_nomem(err);
    for (uint64_t r = 0; r < from->n_rows && status == KVC_OK; r++) {
        if (k < n && rows[k] == r)
            k++;
        else
            status = copy_row(from, r, to, &scratch, &cap, err);
    }
    kvc_free(scratch);
    if (status == KVC_OK) {
        *forest = to;
        to = from;
    }
    kvc_forest_destroy(to);
    return status;
}
