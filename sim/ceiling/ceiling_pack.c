/* SPDX-License-Identifier: Apache-2.0
 * A schedule that fits, from one that need not: what is kept from one touch to the next takes room
 * at all instants in between, kept in a tree of the most held over spans of instants. */
#include "base/alloc.h"
#include "base/error.h"
#include "sim/ceiling/ceiling_cost.h"

#include <string.h>

struct pack {
    const struct kvc_ceiling_view *v;
    uint64_t capacity;
    uint64_t leaves;        /* power of two, at least the requests */
    uint64_t *most, *added; /* by tree node: most held beneath; added to all beneath */
    uint32_t *touched;      /* by segment; UINT32_MAX */
    uint32_t *path;         /* segments, root first */
};

/* The most held at an instant of [from, to), beneath the node that spans [at, at + span). */
static uint64_t most_held(const struct pack *p, uint64_t node, uint64_t at, uint64_t span,
                          uint64_t from, uint64_t to)
{
    if (to <= at || at + span <= from)
        return 0;
    if (from <= at && at + span <= to)
        return p->most[node];
    uint64_t a = most_held(p, 2 * node, at, span / 2, from, to);
    uint64_t b = most_held(p, 2 * node + 1, at + span / 2, span / 2, from, to);
    return p->added[node] + (a > b ? a : b);
}

static void hold(struct pack *p, uint64_t node, uint64_t at, uint64_t span, uint64_t from,
                 uint64_t to, uint64_t blocks)
{
    if (to <= at || at + span <= from)
        return;
    if (from <= at && at + span <= to) {
        p->most[node] += blocks;
        p->added[node] += blocks;
        return;
    }
    hold(p, 2 * node, at, span / 2, from, to, blocks);
    hold(p, 2 * node + 1, at + span / 2, span / 2, from, to, blocks);
    uint64_t a = p->most[2 * node], b = p->most[2 * node + 1];
    p->most[node] = p->added[node] + (a > b ? a : b);
}

/* Blocks [*run, limit) of the request, for as long as they fit. */
static void extend(struct pack *p, uint32_t request, uint32_t limit, uint32_t *run)
{
    const struct kvc_ceiling_view *v = p->v;
    uint32_t n = 0;
    for (uint32_t s = v->prompt_seg[request]; s != KVC_SEG_NONE; s = v->seg_parent[s])
        p->path[n++] = s;
    while (n-- > 0) {
        uint32_t s = p->path[n], end = v->seg_depth[s] + v->seg_len[s], last = p->touched[s];
        end = end < limit ? end : limit;
        if (*run >= end)
            continue;
        if (last == UINT32_MAX || *run < v->seg_depth[s])
            return;
        uint64_t held = most_held(p, 1, 0, p->leaves, last, request), more = end - *run;
        uint64_t room = held < p->capacity ? p->capacity - held : 0;
        more = more < room ? more : room;
        if (more > 0)
            hold(p, 1, 0, p->leaves, last, request, more);
        *run += (uint32_t)more;
        if (*run < end)
            return;
    }
}

static void pass(struct pack *p, const uint32_t *wanted, uint32_t *runs)
{
    const struct kvc_ceiling_view *v = p->v;
    memset(p->touched, 0xff, v->n_segments * sizeof(*p->touched));
    for (uint32_t r = 0; r < v->n_requests; r++) {
        extend(p, r, wanted ? wanted[r] : UINT32_MAX, &runs[r]);
        for (uint32_t s = v->prompt_seg[r]; s != KVC_SEG_NONE; s = v->seg_parent[s])
            p->touched[s] = r;
    }
}

static uint32_t longest_path(const struct kvc_ceiling_view *v)
{
    uint32_t longest = 0; /* a segment has a block at least */
    for (uint32_t s = 0; s < v->n_segments; s++)
        if (v->seg_depth[s] + v->seg_len[s] > longest)
            longest = v->seg_depth[s] + v->seg_len[s];
    return longest < v->n_segments ? longest : v->n_segments;
}

enum kvc_status kvc_ceiling_pack(const struct kvc_ceiling_view *v, uint64_t capacity_blocks,
                                 const uint32_t *wanted, uint32_t *runs, struct kvc_error *err)
{
    struct pack p = {.v = v, .capacity = capacity_blocks, .leaves = 1};
    while (p.leaves < v->n_requests)
        p.leaves *= 2;
    p.most = kvc_calloc(2 * p.leaves, sizeof(*p.most));
    p.added = kvc_calloc(2 * p.leaves, sizeof(*p.added));
    p.touched = kvc_malloc(v->n_segments, sizeof(*p.touched));
    p.path = kvc_malloc(longest_path(v), sizeof(*p.path));
    bool ready = p.most && p.added && p.touched && p.path;
    if (ready) {
        memset(runs, 0, v->n_requests * sizeof(*runs));
        pass(&p, wanted, runs);
        pass(&p, NULL, runs);
    }
    kvc_free(p.path);
    kvc_free(p.touched);
    kvc_free(p.added);
    kvc_free(p.most);
    return ready ? KVC_OK : kvc_fail_nomem(err);
}
