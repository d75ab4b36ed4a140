/* SPDX-License-Identifier: Apache-2.0
 * The optimum at a capacity: keep what is used again soonest (Belady 1966), with bypass.
 *
 * Order: next request that uses a block, then depth on that request's path. Blocks used next by
 * the same request lie on one path, so there are no ties, and since a parent is never used later
 * than its child the kept set is closed under prefixes: of each segment a first part h. The
 * resident blocks whose next user is request q are a connected stretch of q's path; deepest[q]
 * is its last segment, which is all that evicting from the far end needs, and the set of all q
 * with such a stretch is a bitmap in levels of 64.
 *
 * Touching block by block from the root gives the same set as adding all of a request's blocks
 * and then dropping the farthest: the hits, whose order changes, all come before the first miss,
 * and blocks of the request still to be touched are the nearest of all, so never victims. */
#include "base/alloc.h"
#include "base/error.h"
#include "sim/ceiling/ceiling.h"

#include <string.h>

#define NEVER UINT32_MAX
#define MAP_LEVELS 6

struct opt {
    const struct kvc_ceiling_view *v;
    uint32_t *next;     /* by touch: the next request that touches the segment; paths leaf first */
    uint32_t *level;    /* by segment: segments on its path */
    uint64_t n_touches;
    uint32_t *held;     /* by segment: resident blocks, from its first */
    uint32_t *due;      /* by segment: next request, valid while held */
    uint32_t *deepest;  /* by request; KVC_SEG_NONE */
    uint64_t *map[MAP_LEVELS];
    unsigned levels;
    uint64_t resident;
    uint32_t *dropped; /* by request; may be NULL */
    struct spares *spares; /* NULL: what is not used again is let go at once */
};

/* ---- the set of requests something is kept for ---- */

static size_t map_words(uint64_t n, unsigned level)
{
    for (unsigned l = 0; l <= level; l++)
        n = (n + 63) / 64;
    return n ? (size_t)n : 1;
}

static void map_set(struct opt *o, uint32_t q)
{
    for (unsigned l = 0; l < o->levels; l++, q >>= 6)
        o->map[l][q >> 6] |= (uint64_t)1 << (q & 63);
}

static void map_unset(struct opt *o, uint32_t q)
{
    for (unsigned l = 0; l < o->levels; l++, q >>= 6) {
        o->map[l][q >> 6] &= ~((uint64_t)1 << (q & 63));
        if (o->map[l][q >> 6])
            return;
    }
}

/* Not to be asked when empty. */
static uint32_t map_last(const struct opt *o)
{
    uint32_t q = 0;
    for (unsigned l = o->levels; l-- > 0;)
        q = q << 6 | (63u - (uint32_t)__builtin_clzll(o->map[l][q]));
    return q;
}

/* ---- set-up ---- */

static void opt_clear(struct opt *o)
{
    kvc_free(o->next);
    kvc_free(o->level);
    kvc_free(o->held);
    kvc_free(o->due);
    kvc_free(o->deepest);
    for (unsigned l = 0; l < MAP_LEVELS; l++)
        kvc_free(o->map[l]);
}

static bool opt_init(struct opt *o, const struct kvc_ceiling_view *v)
{
    memset(o, 0, sizeof(*o));
    o->v = v;
    o->level = kvc_malloc(v->n_segments, sizeof(*o->level));
    o->held = kvc_malloc(v->n_segments, sizeof(*o->held));
    o->due = kvc_malloc(v->n_segments, sizeof(*o->due));
    o->deepest = kvc_malloc(v->n_requests, sizeof(*o->deepest));
    if (!o->level || !o->held || !o->due || !o->deepest)
        return false;
    do {
        o->map[o->levels] = kvc_malloc(map_words(v->n_requests, o->levels), sizeof(uint64_t));
        if (!o->map[o->levels])
            return false;
    } while (map_words(v->n_requests, o->levels++) > 1);
    for (uint32_t s = 0; s < v->n_segments; s++)
        o->level[s] = v->seg_parent[s] == KVC_SEG_NONE ? 1 : o->level[v->seg_parent[s]] + 1;
    for (uint64_t r = 0; r < v->n_requests; r++)
        if (v->prompt_seg[r] != KVC_SEG_NONE)
            o->n_touches += o->level[v->prompt_seg[r]];
    o->next = kvc_malloc(o->n_touches, sizeof(*o->next));
    return o->next != NULL;
}

/* Backwards through the trace; due[] serves as the last user seen. */
static void find_next_uses(struct opt *o)
{
    const struct kvc_ceiling_view *v = o->v;
    memset(o->due, 0xff, v->n_segments * sizeof(*o->due));
    uint64_t first = o->n_touches;
    for (uint64_t r = v->n_requests; r-- > 0;) {
        uint32_t s = v->prompt_seg[r];
        if (s == KVC_SEG_NONE)
            continue;
        first -= o->level[s];
        for (uint64_t i = first; s != KVC_SEG_NONE; s = v->seg_parent[s]) {
            o->next[i++] = o->due[s];
            o->due[s] = (uint32_t)r;
        }
    }
}

enum kvc_status kvc_ceiling_next_uses(const struct kvc_ceiling_view *v, uint32_t **next,
                                      struct kvc_error *err)
{
    struct opt o;
    bool ready = opt_init(&o, v);
    if (ready) {
        find_next_uses(&o);
        *next = o.next;
        o.next = NULL;
    }
    opt_clear(&o);
    return ready ? KVC_OK : kvc_fail_nomem(err);
}

static void opt_reset(struct opt *o)
{
    const struct kvc_ceiling_view *v = o->v;
    memset(o->held, 0, v->n_segments * sizeof(*o->held));
    memset(o->deepest, 0xff, v->n_requests * sizeof(*o->deepest));
    for (unsigned l = 0; l < o->levels; l++)
        memset(o->map[l], 0, map_words(v->n_requests, l) * sizeof(uint64_t));
    o->resident = 0;
}

/* ---- what is not used again ---- */

/* Such blocks stay while there is room, and those touched longest ago go first: no hit of their
 * cache depends on it, but what other caches could have had of it. A segment comes here once,
 * whole. */
struct spares {
    uint32_t *queue; /* of segments, the oldest first; room for each once */
    uint32_t first, n;
    uint32_t *blocks;  /* by segment: those that are left of it */
    uint32_t *was;     /* by segment: blocks held before its last touch .. */
    uint64_t *touched; /* .. which was by this request + 1 */
    uint64_t sum;
    void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired);
    void *user;
};

static void note_touch(struct spares *p, uint32_t s, uint32_t held, uint64_t request)
{
    p->was[s] = held;
    p->touched[s] = request + 1;
}

static void spare(struct spares *p, uint32_t s, uint32_t blocks)
{
    p->queue[p->n++] = s;
    p->blocks[s] = blocks;
    p->sum += blocks;
}

/* ---- the run ---- */

/* Blocks of the path that are kept: its leading run, because the set is closed. */
static uint64_t look_up(const struct opt *o, uint32_t leaf)
{
    uint64_t run = 0;
    for (uint32_t s = leaf; s != KVC_SEG_NONE; s = o->v->seg_parent[s])
        run += o->held[s];
    return run;
}

/* Takes up the whole path for as long as it is used again; what is not, is dropped. */
static void take(struct opt *o, uint64_t request, const uint32_t *next)
{
    const struct kvc_ceiling_view *v = o->v;
    uint32_t s = v->prompt_seg[request];
    if (o->deepest[request] != KVC_SEG_NONE) { /* all that was kept for it is on its path */
        o->deepest[request] = KVC_SEG_NONE;
        map_unset(o, (uint32_t)request);
    }
    for (; s != KVC_SEG_NONE; s = v->seg_parent[s]) {
        uint32_t q = *next++;
        if (o->spares)
            note_touch(o->spares, s, o->held[s], request);
        o->resident -= o->held[s];
        o->held[s] = 0;
        if (q == NEVER) {
            if (o->spares)
                spare(o->spares, s, v->seg_len[s]);
            continue;
        }
        o->held[s] = v->seg_len[s];
        o->resident += v->seg_len[s];
        o->due[s] = q;
        /* leaf first, so a deeper segment kept for q has been entered already */
        uint32_t last = o->deepest[q];
        if (last == KVC_SEG_NONE)
            map_set(o, q);
        if (last == KVC_SEG_NONE || v->seg_depth[last] < v->seg_depth[s])
            o->deepest[q] = s;
    }
}

/* Blocks [lo, hi) go for that request; of its own path, what was not there is not stored. */
static void let_go(const struct spares *p, uint32_t s, uint32_t lo, uint32_t hi, uint64_t request)
{
    if (p->touched[s] == request + 1 && p->was[s] < hi)
        hi = p->was[s];
    if (p->left && lo < hi)
        p->left(p->user, s, lo, hi, false);
}

/* Returns the request that the last victim, hence the nearest, was kept for; NEVER: no victim. */
static uint32_t evict_farthest(struct opt *o, uint64_t capacity, uint64_t request)
{
    uint32_t nearest = NEVER;
    while (o->resident > capacity) {
        uint32_t q = map_last(o), s = o->deepest[q];
        uint64_t drop = o->resident - capacity;
        if (drop > o->held[s])
            drop = o->held[s];
        o->held[s] -= (uint32_t)drop;
        if (o->spares)
            let_go(o->spares, s, o->held[s], o->held[s] + (uint32_t)drop, request);
        o->resident -= drop;
        nearest = q;
        if (o->held[s])
            continue;
        uint32_t up = o->v->seg_parent[s];
        if (up != KVC_SEG_NONE && o->held[up] && o->due[up] == q) {
            o->deepest[q] = up;
        } else {
            o->deepest[q] = KVC_SEG_NONE;
            map_unset(o, q);
        }
    }
    return nearest;
}

static void run_at(struct opt *o, uint64_t capacity, struct kvc_hits *hits, uint32_t *runs)
{
    const struct kvc_ceiling_view *v = o->v;
    const uint32_t *next = o->next;
    opt_reset(o);
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint64_t run = look_up(o, v->prompt_seg[r]);
        kvc_hits_count(v, r, run, hits);
        if (runs)
            runs[r] = (uint32_t)run;
        uint32_t nearest = NEVER;
        if (v->prompt_seg[r] != KVC_SEG_NONE) {
            take(o, r, next);
            next += o->level[v->prompt_seg[r]];
            nearest = evict_farthest(o, capacity, r);
        }
        if (o->dropped)
            o->dropped[r] = nearest;
    }
}

enum kvc_status kvc_ceiling_opt_of(const struct kvc_ceiling_view *v,
                                   const uint64_t *capacity_blocks, size_t n, struct kvc_hits *out,
                                   uint32_t *runs, struct kvc_error *err)
{
    struct opt o;
    enum kvc_status status = KVC_OK;
    if (opt_init(&o, v)) {
        find_next_uses(&o);
        for (size_t c = 0; c < n; c++) {
            kvc_hits_begin(v, &out[c]);
            run_at(&o, capacity_blocks[c], &out[c], c == 0 ? runs : NULL);
        }
    } else {
        status = kvc_fail_nomem(err);
    }
    opt_clear(&o);
    return status;
}

enum kvc_status kvc_ceiling_opt_drops(const struct kvc_ceiling_view *v, uint64_t capacity_blocks,
                                      struct kvc_hits *out, uint32_t *runs, uint32_t *dropped,
                                      struct kvc_error *err)
{
    struct opt o;
    bool ready = opt_init(&o, v);
    if (ready) {
        o.dropped = dropped;
        find_next_uses(&o);
        kvc_hits_begin(v, out);
        run_at(&o, capacity_blocks, out, runs);
    }
    opt_clear(&o);
    return ready ? KVC_OK : kvc_fail_nomem(err);
}

/* ---- request by request ---- */

struct kvc_opt {
    struct opt o;
    struct spares spares;
    uint64_t capacity, request; /* the one that is next */
    const uint32_t *next;       /* its next uses */
};

void kvc_opt_destroy(struct kvc_opt *c)
{
    if (!c)
        return;
    opt_clear(&c->o);
    kvc_free(c->spares.queue);
    kvc_free(c->spares.blocks);
    kvc_free(c->spares.was);
    kvc_free(c->spares.touched);
    kvc_free(c);
}

struct kvc_opt *kvc_opt_create(const struct kvc_ceiling_view *v, uint64_t capacity_blocks,
                               void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi,
                                            bool expired), void *user)
{
    struct kvc_opt *c = kvc_calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    struct spares *p = &c->spares;
    p->queue = kvc_malloc(v->n_segments, sizeof(*p->queue));
    p->blocks = kvc_calloc(v->n_segments, sizeof(*p->blocks));
    p->was = kvc_calloc(v->n_segments, sizeof(*p->was));
    p->touched = kvc_calloc(v->n_segments, sizeof(*p->touched));
    if (!opt_init(&c->o, v) || !p->queue || !p->blocks || !p->was || !p->touched) {
        kvc_opt_destroy(c);
        return NULL;
    }
    p->left = left;
    p->user = user;
    find_next_uses(&c->o);
    opt_reset(&c->o);
    c->o.spares = p;
    c->next = c->o.next;
    c->capacity = capacity_blocks;
    return c;
}

uint64_t kvc_opt_held(const struct kvc_opt *c, uint32_t seg)
{
    uint64_t run = look_up(&c->o, seg);
    for (; seg != KVC_SEG_NONE; seg = c->o.v->seg_parent[seg])
        run += c->spares.blocks[seg];
    return run;
}

uint64_t kvc_opt_arrive(const struct kvc_opt *c)
{
    return look_up(&c->o, c->o.v->prompt_seg[c->request]);
}

void kvc_opt_touch(struct kvc_opt *c)
{
    struct spares *p = &c->spares;
    uint64_t request = c->request++;
    uint32_t leaf = c->o.v->prompt_seg[request];
    if (leaf == KVC_SEG_NONE)
        return;
    take(&c->o, request, c->next);
    c->next += c->o.level[leaf];
    evict_farthest(&c->o, c->capacity, request);
    while (p->sum > c->capacity - c->o.resident) {
        uint32_t s = p->queue[p->first];
        uint64_t drop = p->sum - (c->capacity - c->o.resident);
        drop = drop < p->blocks[s] ? drop : p->blocks[s];
        p->blocks[s] -= (uint32_t)drop;
        p->sum -= drop;
        let_go(p, s, p->blocks[s], p->blocks[s] + (uint32_t)drop, request);
        p->first += p->blocks[s] == 0;
    }
}
