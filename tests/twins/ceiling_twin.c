/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/twins/ceiling_twin.h"

#include "base/rng.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

static void *array(size_t n, size_t size)
{
    return need(calloc(n ? n : 1, size));
}

void twin_add(struct twin_rows *rows, const uint64_t *ids, uint32_t n, uint32_t tokens)
{
    if (rows->n == rows->room) {
        rows->room = rows->room ? 2 * rows->room : 16;
        rows->row = need(realloc(rows->row, rows->room * sizeof(*rows->row)));
    }
    struct twin_row *row = &rows->row[rows->n++];
    row->ids = array(n, sizeof(*ids));
    if (n)
        memcpy(row->ids, ids, n * sizeof(*ids));
    row->n = n;
    row->tokens = tokens;
}

void twin_clear(struct twin_rows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++)
        free(rows->row[i].ids);
    free(rows->row);
    memset(rows, 0, sizeof(*rows));
}

/* ---- random forests ---- */

void twin_draw(struct twin_rows *rows, uint64_t *rng, uint32_t max_rows, uint32_t max_blocks)
{
    uint64_t fresh = 1, ids[256];
    uint32_t n_rows = (uint32_t)kvc_rng_below(rng, max_rows + 1);
    uint32_t tails = (uint32_t)kvc_rng_below(rng, 3);
    memset(rows, 0, sizeof(*rows));
    rows->block_tokens = 1 + (uint32_t)kvc_rng_below(rng, 20);
    for (uint32_t r = 0; r < n_rows; r++) {
        uint32_t n = 0, more = (uint32_t)kvc_rng_below(rng, max_blocks / 2 + 1);
        uint64_t kind = kvc_rng_below(rng, 10);
        if (r > 0 && kind < 8) {
            const struct twin_row *old = &rows->row[kvc_rng_below(rng, r)];
            n = kind < 3 ? old->n : (uint32_t)kvc_rng_below(rng, old->n + 1);
            if (n)
                memcpy(ids, old->ids, n * sizeof(*ids));
            more = kind < 2 || kind == 7 ? 0 : more;
        }
        while (more-- > 0 && n < max_blocks)
            ids[n++] = fresh++;
        uint32_t tokens = n * rows->block_tokens;
        uint32_t part = (uint32_t)kvc_rng_below(rng, rows->block_tokens);
        if (tails == 1 && n > 0)
            tokens -= part;
        if (tails == 2 || kind == 9)
            tokens += part;
        if (kvc_rng_below(rng, 12) == 0) { /* reuse unknown */
            tokens += rows->block_tokens;
            n = 0;
        }
        twin_add(rows, ids, n, tokens);
    }
}

void twin_rows_of(struct twin_rows *rows, const struct kvc_trace *t)
{
    uint64_t *first = array(t->n_segments, sizeof(*first)), blocks = 1;
    memset(rows, 0, sizeof(*rows));
    rows->block_tokens = t->block_tokens;
    for (uint32_t s = 0; s < t->n_segments; blocks += t->seg_len[s++])
        first[s] = blocks;
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t n = kvc_trace_blocks(t, r);
        uint64_t *ids = array(n, sizeof(*ids));
        for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s])
            for (uint32_t i = 0; i < t->seg_len[s]; i++)
                ids[t->seg_depth[s] + i] = first[s] + i;
        twin_add(rows, ids, n, t->input_tokens[r]);
        free(ids);
    }
    free(first);
}

/* ---- caches ---- */

struct cache {
    uint64_t *ids; /* LRU: most recent first */
    uint64_t n, capacity;
};

static bool find(const struct cache *c, uint64_t id, uint64_t *at)
{
    for (uint64_t i = 0; i < c->n; i++)
        if (c->ids[i] == id) {
            *at = i;
            return true;
        }
    return false;
}

static void lru_touch(struct cache *c, uint64_t id)
{
    uint64_t at;
    if (c->capacity == 0)
        return;
    if (!find(c, id, &at)) {
        if (c->n == c->capacity)
            c->n--;
        at = c->n++;
    }
    memmove(c->ids + 1, c->ids, at * sizeof(*c->ids));
    c->ids[0] = id;
}

static uint32_t blocks_of(const struct twin_rows *rows, const struct twin_row *row, bool full_only)
{
    uint32_t full = row->tokens / rows->block_tokens;
    return full_only && full < row->n ? full : row->n;
}

/* When, counted in block accesses, the block is used after access (r, i); UINT64_MAX: never. */
static uint64_t next_access(const struct twin_rows *rows, bool full_only, uint32_t r, uint32_t i,
                            uint64_t id)
{
    uint64_t time = 0;
    for (i++; r < rows->n; r++, i = 0)
        for (; i < blocks_of(rows, &rows->row[r], full_only); i++, time++)
            if (rows->row[r].ids[i] == id)
                return time;
    return UINT64_MAX;
}

static void opt_touch(struct cache *c, const struct twin_rows *rows, bool full_only, uint32_t r,
                      uint32_t i)
{
    uint64_t id = rows->row[r].ids[i], at, farthest = 0, victim = 0;
    if (find(c, id, &at) || c->capacity == 0)
        return;
    if (c->n < c->capacity) {
        c->ids[c->n++] = id;
        return;
    }
    for (uint64_t k = 0; k < c->n; k++) {
        uint64_t t = next_access(rows, full_only, r, i, c->ids[k]);
        if (t >= farthest) {
            farthest = t;
            victim = k;
        }
    }
    if (next_access(rows, full_only, r, i, id) < farthest)
        c->ids[victim] = id;
}

static void count(const struct twin_rows *rows, const struct twin_row *row, uint32_t n,
                  uint32_t run, struct kvc_hits *h)
{
    uint64_t size = rows->block_tokens;
    h->requests++;
    h->tokens += row->tokens;
    h->blocks += n;
    for (uint32_t i = 0; i < n; i++) {
        bool full = (i + 1) * size <= row->tokens, hit = i < run;
        uint64_t tokens = full ? size : i * size < row->tokens ? row->tokens - i * size : 0;
        h->full_blocks += full;
        h->raw_hit_blocks += hit;
        h->raw_hit_tokens += hit ? tokens : 0;
        h->hit_blocks += hit && full;
        h->hit_tokens += hit && full ? size : 0;
    }
    h->raw_hit_requests += run > 0;
    h->hit_requests += run > 0 && size <= row->tokens;
}

void twin_run(const struct twin_rows *rows, enum twin_policy policy, uint64_t capacity,
              bool full_only, struct kvc_hits *hits, uint32_t *runs)
{
    uint64_t all = 0;
    for (uint32_t r = 0; r < rows->n; r++)
        all += rows->row[r].n;
    if (policy == TWIN_CONTENT || capacity > all)
        capacity = all;
    struct cache c = {array(capacity, sizeof(uint64_t)), 0, capacity};
    memset(hits, 0, sizeof(*hits));
    for (uint32_t r = 0; r < rows->n; r++) {
        const struct twin_row *row = &rows->row[r];
        uint32_t n = blocks_of(rows, row, full_only), run = 0, anywhere = 0;
        uint64_t at;
        while (run < n && find(&c, row->ids[run], &at))
            run++;
        for (uint32_t i = 0; i < n; i++)
            anywhere += find(&c, row->ids[i], &at);
        assert(policy != TWIN_OPT || anywhere == run); /* closed under prefixes */
        for (uint32_t i = 0; i < n; i++)
            if (policy == TWIN_OPT)
                opt_touch(&c, rows, full_only, r, i);
            else
                lru_touch(&c, row->ids[n - 1 - i]);
        count(rows, row, n, run, hits);
        runs[r] = run;
    }
    free(c.ids);
}

/* ---- a trace by hand ---- */

struct node {
    uint64_t id;
    uint32_t parent; /* node; UINT32_MAX = root */
    uint32_t users;  /* requests passing through */
    uint32_t seg;
};

struct nodes {
    struct node *node;
    uint32_t n;
    uint32_t *table; /* open addressing, UINT32_MAX = free */
    uint64_t mask;
};

static uint32_t node_of(struct nodes *ns, uint32_t parent, uint64_t id)
{
    uint64_t h = kvc_mix64(id * 0x9e3779b97f4a7c15u + parent) & ns->mask;
    for (; ns->table[h] != UINT32_MAX; h = (h + 1) & ns->mask) {
        const struct node *n = &ns->node[ns->table[h]];
        if (n->parent == parent && n->id == id)
            return ns->table[h];
    }
    ns->table[h] = ns->n;
    ns->node[ns->n] = (struct node){.id = id, .parent = parent};
    return ns->n++;
}

static void cut(struct kvc_trace *t, struct nodes *ns)
{
    t->seg_parent = array(ns->n, sizeof(uint32_t));
    t->seg_len = array(ns->n, sizeof(uint32_t));
    t->seg_depth = array(ns->n, sizeof(uint32_t));
    for (uint32_t i = 0; i < ns->n; i++) {
        struct node *n = &ns->node[i];
        if (n->parent != UINT32_MAX && ns->node[n->parent].users == n->users) {
            n->seg = ns->node[n->parent].seg;
            t->seg_len[n->seg]++;
            continue;
        }
        n->seg = t->n_segments++;
        uint32_t up = n->parent == UINT32_MAX ? KVC_SEG_NONE : ns->node[n->parent].seg;
        t->seg_parent[n->seg] = up;
        t->seg_len[n->seg] = 1;
        t->seg_depth[n->seg] = up == KVC_SEG_NONE ? 0 : t->seg_depth[up] + t->seg_len[up];
    }
}

struct kvc_trace *twin_trace(const struct twin_rows *rows)
{
    struct kvc_trace *t = array(1, sizeof(*t));
    uint64_t all = 0, size = 16;
    for (uint32_t r = 0; r < rows->n; r++)
        all += rows->row[r].n;
    while (size < 2 * all)
        size *= 2;
    struct nodes ns = {array(all, sizeof(struct node)), 0, array(size, sizeof(uint32_t)), size - 1};
    memset(ns.table, 0xff, size * sizeof(uint32_t));
    uint32_t *end = array(rows->n, sizeof(*end));
    t->n_requests = rows->n;
    t->block_tokens = all ? rows->block_tokens : 0;
    t->arrival_ns = array(rows->n, sizeof(uint64_t));
    t->input_tokens = array(rows->n, sizeof(uint32_t));
    t->output_tokens = array(rows->n, sizeof(uint32_t));
    t->prompt_seg = array(rows->n, sizeof(uint32_t));
    for (uint32_t r = 0; r < rows->n; r++) {
        const struct twin_row *row = &rows->row[r];
        uint32_t at = UINT32_MAX;
        for (uint32_t i = 0; i < row->n; i++) {
            at = node_of(&ns, at, row->ids[i]);
            ns.node[at].users++;
        }
        end[r] = at;
        t->arrival_ns[r] = (uint64_t)r * 1000000000u;
        t->input_tokens[r] = row->tokens;
        t->output_tokens[r] = 1;
    }
    cut(t, &ns);
    for (uint32_t r = 0; r < rows->n; r++)
        t->prompt_seg[r] = end[r] == UINT32_MAX ? KVC_SEG_NONE : ns.node[end[r]].seg;
    free(end);
    free(ns.node);
    free(ns.table);
    return t;
}

void twin_trace_free(struct kvc_trace *t)
{
    if (!t)
        return;
    free(t->arrival_ns);
    free(t->input_tokens);
    free(t->output_tokens);
    free(t->prompt_seg);
    free(t->seg_parent);
    free(t->seg_len);
    free(t->seg_depth);
    free(t);
}

uint64_t twin_blocks(const struct kvc_trace *t)
{
    uint64_t n = 0;
    for (uint32_t s = 0; s < t->n_segments; s++)
        n += t->seg_len[s];
    return n;
}
