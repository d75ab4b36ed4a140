/* SPDX-License-Identifier: Apache-2.0
 * What the policies block by block are made of: a cache, lists of blocks, a heap. */
#ifndef KVC_TESTS_BLOCK_INTERNAL_H
#define KVC_TESTS_BLOCK_INTERNAL_H

#include "tests/twins/block_policies.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define NEVER UINT64_MAX
#define LISTS 4

static inline void *array(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p)
        abort();
    return p;
}

struct item { /* of a heap; stale when the block's stamp has moved on */
    uint64_t first, second, stamp;
    uint32_t block;
};

struct block_session {
    bool live;
    uint32_t asked; /* its last request, from 1 */
    uint64_t back, last, sum, pauses;
};

struct block_cache {
    uint64_t capacity, size, clock, touches; /* touches: without those of refused blocks */
    uint32_t n_blocks;
    bool *resident;
    /* lists of blocks; head is the newest. which 0: in none */
    uint8_t *which;
    uint32_t *newer, *older, head[LISTS + 1], tail[LISTS + 1];
    uint64_t count[LISTS + 1];
    uint32_t *freq;
    bool *visited;
    uint32_t hand;
    uint64_t *last, *next_use, *stamp;
    struct item *heap;
    size_t n_heap, room;
    double p;
    /* of the request in hand */
    const uint32_t *path;
    uint32_t length, request, tokens, *left_by;
    bool expiring;
    const struct block_log *log;
    uint64_t now_ns, *since; /* by block: when it was stored, or touched */
    uint64_t *born;                  /* by block */
    uint64_t *touched;               /* by block, the last 16 touches */
    uint64_t floor, rng, counted, nodes, found, sum, pauses;
    uint32_t session, tenant, n_sessions;
    struct block_session *sessions;
    uint32_t *asks; /* of admission, by block */
    uint64_t *gap, *asked_at, asked_for;
    uint32_t limit; /* blocks of the path that may be stored */
    uint32_t *parent, *place; /* by block */
    uint8_t *asked; /* by block */
};

struct block_policy {
    const char *name;
    void (*touch)(struct block_cache *, uint32_t b, uint32_t at); /* at: index on the path */
    void (*arrive)(struct block_cache *); /* or NULL: before the lookup */
    void (*whole)(struct block_cache *);  /* instead of touches, for what takes paths as a whole */
    void (*refused)(struct block_cache *, uint32_t b); /* or NULL: instead of a touch */
};
/* Blocks of the path in hand that may be stored, from the root on. */
uint32_t block_admission(struct block_cache *c);
/* Its parts: the request in hand asks; whether block b, the at-th of a path, may be stored. */
void block_asks(struct block_cache *c);
bool block_admits(const struct block_cache *c, uint32_t b, uint32_t at);

extern const struct block_policy block_policies_more[]; /* end with a NULL name */
extern const struct block_policy block_policies_learned[];

/* ---- options ---- */

static inline double option(const struct block_cache *c, const char *name, double otherwise)
{
    for (uint32_t i = 0; i < c->log->n_options; i++)
        if (!strcmp(c->log->option[i].name, name))
            return c->log->option[i].value;
    return otherwise;
}

/* A part of a number, rounded down; no number of a test is so near the next that this can err. */
static inline uint64_t part(double of, double ratio)
{
    return (uint64_t)(of * ratio + 1e-9);
}

static inline uint64_t at_least_one(uint64_t n)
{
    return n ? n : 1;
}

/* ---- lists ---- */

static inline void push(struct block_cache *c, uint8_t list, uint32_t b)
{
    c->which[b] = list;
    c->newer[b] = NONE;
    c->older[b] = c->head[list];
    if (c->head[list] != NONE)
        c->newer[c->head[list]] = b;
    else
        c->tail[list] = b;
    c->head[list] = b;
    c->count[list]++;
}

static inline void take(struct block_cache *c, uint32_t b)
{
    uint8_t list = c->which[b];
    *(c->newer[b] != NONE ? &c->older[c->newer[b]] : &c->head[list]) = c->older[b];
    *(c->older[b] != NONE ? &c->newer[c->older[b]] : &c->tail[list]) = c->newer[b];
    c->which[b] = 0;
    c->count[list]--;
}

static inline void gone(struct block_cache *c, uint32_t b)
{
    c->resident[b] = false;
    c->size--;
    if (c->left_by)
        c->left_by[b] = c->request + (c->expiring ? BLOCK_EXPIRED : 0);
}

static inline void come(struct block_cache *c, uint32_t b)
{
    c->resident[b] = true;
    c->size++;
}

/* ---- the request in hand ---- */

static inline bool on_path(const struct block_cache *c, uint32_t b)
{
    return c->place[b] < c->length && c->path[c->place[b]] == b;
}

static inline uint32_t leading(const struct block_cache *c)
{
    uint32_t run = 0;
    while (run < c->length && c->resident[c->path[run]])
        run++;
    return run;
}

/* ---- smallest (first, second) ---- */

static inline bool before(const struct item *a, const struct item *b)
{
    return a->first != b->first ? a->first < b->first : a->second < b->second;
}

static inline void heap_put(struct block_cache *c, uint32_t b, uint64_t first, uint64_t second)
{
    if (c->n_heap == c->room) {
        c->room = c->room ? 2 * c->room : 64;
        if (!(c->heap = realloc(c->heap, c->room * sizeof(*c->heap))))
            abort();
    }
    struct item it = {first, second, ++c->stamp[b], b};
    size_t i = c->n_heap++;
    for (; i && before(&it, &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
        c->heap[i] = c->heap[(i - 1) / 2];
    c->heap[i] = it;
}

static inline uint32_t heap_pop(struct block_cache *c)
{
    for (;;) {
        struct item top = c->heap[0], last = c->heap[--c->n_heap];
        size_t i = 0, k;
        while ((k = 2 * i + 1) < c->n_heap) {
            k += k + 1 < c->n_heap && before(&c->heap[k + 1], &c->heap[k]);
            if (!before(&c->heap[k], &last))
                break;
            c->heap[i] = c->heap[k];
            i = k;
        }
        c->heap[i] = last;
        if (c->resident[top.block] && top.stamp == c->stamp[top.block])
            return top.block;
    }
}

#endif
