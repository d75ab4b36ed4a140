/* SPDX-License-Identifier: Apache-2.0
 * The request columns of a forest in the making. */
#include "traces/forest/forest_nodes.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>
#include <zstd.h>

struct column {
    enum kvc_forest_array array;
    size_t size, offset; /* of the pointer in struct kvc_forest */
};

#define COLUMN(array, field) { array, sizeof(*((struct kvc_forest *)0)->field), \
                               offsetof(struct kvc_forest, field) }

static const struct column columns[] = {
    COLUMN(KVC_A_TIME, time_ns),
    COLUMN(KVC_A_INPUT, input),
    COLUMN(KVC_A_OUTPUT, output),
    COLUMN(KVC_A_PROMPT, prompt_node), /* from here on: only where a row has something to say */
    COLUMN(KVC_A_THINK, think_ns),
    COLUMN(KVC_A_OUTPUT_NODE, output_node),
    COLUMN(KVC_A_SESSION, session),
    COLUMN(KVC_A_TENANT, tenant),
    COLUMN(KVC_A_MODEL, model),
    COLUMN(KVC_A_CACHED, cached_tokens),
    COLUMN(KVC_A_SHOWN, shown_tokens),
    COLUMN(KVC_A_STATUS, status),
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define ALWAYS 3

static void **pointer(struct kvc_forest *f, const struct column *c)
{
    return (void **)(void *)((char *)f + c->offset);
}

void kvc_forest_free_rows(struct kvc_forest *f)
{
    for (size_t i = 0; i < N_COLUMNS; i++)
        kvc_spill_free(f->spill, pointer(f, &columns[i]), &f->held[columns[i].array]);
}

static bool reserve_row(struct kvc_forest *f)
{
    if (f->n_rows < f->row_cap)
        return true;
    size_t cap = f->row_cap < ((size_t)1 << 20) ? f->row_cap * 2 : f->row_cap + f->row_cap / 8;
    cap = cap < 1024 ? 1024 : cap;
    for (size_t i = 0; i < N_COLUMNS; i++) {
        void **p = pointer(f, &columns[i]);
        if ((i < ALWAYS || *p) &&
            !kvc_spill_grow(f->spill, p, &f->held[columns[i].array], cap * columns[i].size, false))
            return false;
    }
    f->row_cap = cap;
    return true;
}

/* A column appears with the first row that has something to say; all before it said fill. */
static bool appear(struct kvc_forest *f, void *column, enum kvc_forest_array array, size_t size,
                   int fill)
{
    if (!kvc_spill_grow(f->spill, column, &f->held[array], f->row_cap * size, false))
        return false;
    memset(*(void **)column, fill, (size_t)f->n_rows * size);
    f->said_more = true;
    return true;
}

static inline bool put_u32(struct kvc_forest *f, uint32_t **column, enum kvc_forest_array array,
                           uint32_t value)
{
    if (!*column && (value == UINT32_MAX || !appear(f, column, array, 4, 0xff)))
        return value == UINT32_MAX;
    (*column)[f->n_rows] = value;
    return true;
}

static inline bool put_u64(struct kvc_forest *f, uint64_t **column, enum kvc_forest_array array,
                           uint64_t value)
{
    if (!*column && (value == UINT64_MAX || !appear(f, column, array, 8, 0xff)))
        return value == UINT64_MAX;
    (*column)[f->n_rows] = value;
    return true;
}

bool kvc_forest_put_row(struct kvc_forest *f, const struct kvc_row *row, uint64_t prompt,
                        uint64_t output)
{
    uint32_t cached = row->cached_stated ? row->cached_tokens : UINT32_MAX;
    uint32_t shown = row->shown_stated ? row->shown_tokens : UINT32_MAX;
    if (!reserve_row(f) || !put_u64(f, &f->prompt_node, KVC_A_PROMPT, prompt) ||
        !put_u64(f, &f->output_node, KVC_A_OUTPUT_NODE, output) ||
        !put_u64(f, &f->think_ns, KVC_A_THINK, row->think_ns) ||
        !put_u32(f, &f->session, KVC_A_SESSION, row->session) ||
        !put_u32(f, &f->tenant, KVC_A_TENANT, row->tenant) ||
        !put_u32(f, &f->model, KVC_A_MODEL, row->model) ||
        !put_u32(f, &f->cached_tokens, KVC_A_CACHED, cached) ||
        !put_u32(f, &f->shown_tokens, KVC_A_SHOWN, shown))
        return false;
    if (!f->status && row->status != KVC_ROW_OK &&
        !appear(f, &f->status, KVC_A_STATUS, 1, KVC_ROW_OK))
        return false;
    if (f->status)
        f->status[f->n_rows] = row->status;
    f->time_ns[f->n_rows] = row->time_ns;
    f->input[f->n_rows] = row->input_tokens;
    f->output[f->n_rows] = row->output_tokens;
    return true;
}

#define SAMPLE ((uint64_t)1 << 14)

double kvc_forest_packed_row_bytes(const struct kvc_forest *forest)
{
    struct kvc_forest *f = (struct kvc_forest *)(uintptr_t)forest; /* for pointer(); not changed */
    uint64_t n = f->n_rows < SAMPLE ? f->n_rows : SAMPLE, first = f->n_rows - n;
    size_t bound = ZSTD_compressBound(SAMPLE * 8), sum = 0;
    uint64_t *v = kvc_malloc(SAMPLE, 8);
    char *packed = kvc_malloc(bound, 1);
    for (size_t i = 0; i < N_COLUMNS && v && packed && n; i++) {
        const char *p = *pointer(f, &columns[i]);
        if (!p)
            continue;
        const void *from = p + first * columns[i].size;
        size_t size = columns[i].size;
        if (columns[i].array == KVC_A_TIME) {
            for (uint64_t k = 0; k < n; k++)
                v[k] = f->time_ns[first + k] - (k ? f->time_ns[first + k - 1] : 0);
            from = v;
        } else if (columns[i].array == KVC_A_PROMPT || columns[i].array == KVC_A_OUTPUT_NODE) {
            for (uint64_t k = 0; k < n; k++) /* segments are 32 bits wide */
                ((uint32_t *)v)[k] = (uint32_t)((const uint64_t *)from)[k];
            from = v;
            size = 4;
        }
        size_t got = ZSTD_compress(packed, bound, from, n * size, 1);
        sum += ZSTD_isError(got) ? 0 : got;
    }
    kvc_free(v);
    kvc_free(packed);
    return n ? (double)sum / (double)n : 0;
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

static size_t path_blocks(const struct kvc_forest *f, uint64_t node)
{
    return node == KVC_NODE_NONE ? 0 : (size_t)kvc_forest_depth(f, node) + 1;
}

/* Ids of the path to node, root first, into *ids; returns the key space of its root. */
static uint64_t path_ids(const struct kvc_forest *f, uint64_t node, uint64_t *ids)
{
    for (;;) {
        const struct kvc_start *s = kvc_forest_start(f, node);
        memcpy(ids + s->depth, f->id + s->node, ((size_t)(node - s->node) + 1) * sizeof(*ids));
        node = kvc_forest_parent(f, s);
        if (!s->depth)
            return UINT64_MAX - 1 - node;
    }
}

enum kvc_status kvc_forest_row(const struct kvc_forest *from, uint64_t r, struct kvc_row *out,
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
    uint64_t prompt = kvc_forest_prompt(from, r);
    uint64_t output = from->output_node ? from->output_node[r] : KVC_NODE_NONE;
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
    *out = row;
    return KVC_OK;
}

struct kvc_forest *kvc_forest_create_like(struct kvc_forest *f)
{
    return kvc_forest_create_with(&(struct kvc_forest_options){
        .infer_sessions = f->infer_sessions, .draws = f->draws,
        .spill = f->spill == &f->own_spill ? NULL : f->spill });
}

void kvc_forest_compact(struct kvc_forest *f)
{
    uint64_t n = 0;
    for (uint64_t r = 0; r < f->n_rows; r++) {
        if (kvc_forest_prompt(f, r) == KVC_NODE_NONE)
            continue;
        for (size_t i = 0; i < N_COLUMNS && n < r; i++) {
            char *p = *pointer(f, &columns[i]);
            size_t size = columns[i].size;
            if (p && columns[i].array != KVC_A_PROMPT)
                memcpy(p + n * size, p + r * size, size);
        }
        f->prompt_node[n++] = f->prompt_node[r];
    }
    f->n_taken = f->n_rows = n;
}

enum kvc_status kvc_forest_remove(struct kvc_forest **forest, const uint64_t *rows, size_t n,
                                  struct kvc_error *err)
{
    struct kvc_forest *from = *forest, *to;
    if (from->forgetting || from->sampler)
        return kvc_fail(err, KVC_ERR_INTERNAL, "rows are taken out of a forest that forgets");
    to = kvc_forest_create_like(from);
    struct kvc_row row;
    uint64_t *scratch = NULL;
    size_t cap = 0, k = 0;
    enum kvc_status status = to ? kvc_forest_settle(from, err) : kvc_fail_nomem(err);
    for (uint64_t r = 0; r < from->n_rows && status == KVC_OK; r++) {
        bool left_out = k < n && rows[k] == r;
        if (left_out)
            k++;
        else
            status = kvc_forest_row(from, r, &row, &scratch, &cap, err);
        if (status == KVC_OK && !left_out)
            status = kvc_forest_add(to, &row, err);
    }
    kvc_free(scratch);
    if (status == KVC_OK) {
        *forest = to;
        to = from;
    }
    kvc_forest_destroy(to);
    return status;
}
