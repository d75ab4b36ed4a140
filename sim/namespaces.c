/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/namespaces.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"

#include <string.h>

struct building {
    struct kvc_namespaces *out;
    const struct kvc_trace *trace;
    size_t room_from, room_space, room_parent, room_len, room_depth;
    uint32_t *table; /* of pairs by (namespace, segment), open addressing */
    uint64_t mask;
    uint32_t *stack; /* segments of a path that the namespace lacks, deepest first */
    size_t stack_room;
};

static uint32_t *slot_of(const struct building *b, uint32_t space, uint32_t seg)
{
    const struct kvc_namespaces *o = b->out;
    uint64_t h = kvc_mix64((uint64_t)space << 32 | seg) & b->mask;
    while (b->table[h] != KVC_SEG_NONE &&
           (o->seg_from[b->table[h]] != seg || o->seg_space[b->table[h]] != space))
        h = (h + 1) & b->mask;
    return &b->table[h];
}

static bool widen(struct building *b)
{
    const struct kvc_namespaces *o = b->out;
    uint64_t size = b->table ? 2 * (b->mask + 1) : 1024;
    uint32_t *table = kvc_malloc(size, sizeof(*table));
    if (!table)
        return false;
    memset(table, 0xff, size * sizeof(*table));
    kvc_free(b->table);
    b->table = table;
    b->mask = size - 1;
    for (uint32_t i = 0; i < o->trace.n_segments; i++)
        *slot_of(b, o->seg_space[i], o->seg_from[i]) = i;
    return true;
}

static bool make_room(struct building *b)
{
    struct kvc_namespaces *o = b->out;
    size_t need = (size_t)o->trace.n_segments + 1, size = sizeof(uint32_t);
    if (2 * need > b->mask && !widen(b))
        return false;
    return kvc_grow((void **)&o->seg_from, &b->room_from, need, size) &&
           kvc_grow((void **)&o->seg_space, &b->room_space, need, size) &&
           kvc_grow((void **)&o->trace.seg_parent, &b->room_parent, need, size) &&
           kvc_grow((void **)&o->trace.seg_len, &b->room_len, need, size) &&
           kvc_grow((void **)&o->trace.seg_depth, &b->room_depth, need, size);
}

/* The namespace's segment for the path down to seg; what is missing of it is added, root first. */
static enum kvc_status path_of(struct building *b, uint32_t space, uint32_t seg, uint32_t *end,
                               struct kvc_error *err)
{
    struct kvc_trace *t = &b->out->trace;
    uint32_t at = KVC_SEG_NONE;
    size_t n = 0;
    for (; seg != KVC_SEG_NONE; seg = b->trace->seg_parent[seg]) {
        at = *slot_of(b, space, seg);
        if (at != KVC_SEG_NONE)
            break;
        if (!kvc_grow((void **)&b->stack, &b->stack_room, n + 1, sizeof(*b->stack)))
            return kvc_fail_nomem(err);
        b->stack[n++] = seg;
    }
    while (n > 0) {
        seg = b->stack[--n];
        if (t->n_segments == KVC_SEG_NONE - 1)
            return kvc_fail(err, KVC_ERR_LIMIT,
                            "more than 2^32 - 2 segments in all namespaces; choose fewer "
                            "namespaces or a part of the trace (--window)");
        if (!make_room(b))
            return kvc_fail_nomem(err);
        b->out->seg_from[t->n_segments] = seg;
        b->out->seg_space[t->n_segments] = space;
        t->seg_parent[t->n_segments] = at;
        t->seg_len[t->n_segments] = b->trace->seg_len[seg];
        t->seg_depth[t->n_segments] = b->trace->seg_depth[seg];
        *slot_of(b, space, seg) = at = t->n_segments++;
    }
    *end = at;
    return KVC_OK;
}

static enum kvc_status map_requests(struct building *b, const uint32_t *space_of,
                                    struct kvc_error *err)
{
    struct kvc_trace *t = &b->out->trace;
    enum kvc_status status = KVC_OK;
    for (uint64_t r = 0; r < t->n_requests && status == KVC_OK; r++) {
        status = path_of(b, space_of[r], b->trace->prompt_seg[r], &t->prompt_seg[r], err);
        if (status == KVC_OK && t->output_seg)
            status = path_of(b, space_of[r], b->trace->output_seg[r], &t->output_seg[r], err);
    }
    return status;
}

enum kvc_status kvc_namespaces_create(struct kvc_namespaces *out, const struct kvc_trace *trace,
                                      const uint32_t *space_of, struct kvc_error *err)
{
    struct kvc_namespaces o = {.trace = *trace};
    struct building b = {.out = &o, .trace = trace};
    enum kvc_status status;
    o.trace.n_segments = 0;
    o.trace.seg_parent = o.trace.seg_len = o.trace.seg_depth = NULL;
    o.trace.prompt_seg = kvc_malloc(trace->n_requests, sizeof(uint32_t));
    o.trace.output_seg = NULL;
    if (trace->output_seg)
        o.trace.output_seg = kvc_malloc(trace->n_requests, sizeof(uint32_t));
    if (!o.trace.prompt_seg || (trace->output_seg && !o.trace.output_seg) || !make_room(&b))
        status = kvc_fail_nomem(err);
    else
        status = map_requests(&b, space_of, err);
    kvc_free(b.table);
    kvc_free(b.stack);
    if (status)
        kvc_namespaces_clear(&o);
    else
        *out = o;
    return status;
}

void kvc_namespaces_clear(struct kvc_namespaces *o)
{
    kvc_free(o->seg_from);
    kvc_free(o->seg_space);
    kvc_free(o->trace.prompt_seg);
    kvc_free(o->trace.output_seg);
    kvc_free(o->trace.seg_parent);
    kvc_free(o->trace.seg_len);
    kvc_free(o->trace.seg_depth);
    memset(o, 0, sizeof(*o));
}
