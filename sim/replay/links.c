/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/links_internal.h"

#include "base/alloc.h"
#include "base/error.h"

#include <assert.h>
#include <string.h>

/* ---- heaps ---- */

static bool wait_earlier(const struct kvc_links *l, uint32_t a, uint32_t b)
{
    const struct flow *x = &l->flows[a], *y = &l->flows[b];
    return x->event_ns != y->event_ns ? x->event_ns < y->event_ns : x->seq < y->seq;
}

/* A waiting flow's place in the heap is kept in pos[0], which it has no other use for yet. */
static void wait_place(struct kvc_links *l, size_t pos, uint32_t flow)
{
    l->waiting[pos] = flow;
    l->flows[flow].pos[0] = (uint32_t)pos;
}

static void wait_up(struct kvc_links *l, size_t i, uint32_t flow)
{
    while (i > 0 && wait_earlier(l, flow, l->waiting[(i - 1) / 2])) {
        wait_place(l, i, l->waiting[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    wait_place(l, i, flow);
}

static void wait_remove(struct kvc_links *l, size_t i)
{
    uint32_t last = l->waiting[--l->n_waiting];
    if (i == l->n_waiting)
        return;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= l->n_waiting)
            break;
        if (child + 1 < l->n_waiting && wait_earlier(l, l->waiting[child + 1], l->waiting[child]))
            child++;
        if (!wait_earlier(l, l->waiting[child], last))
            break;
        wait_place(l, i, l->waiting[child]);
        i = child;
    }
    wait_up(l, i, last);
}

/* ---- flows on links ---- */

static void mark_dirty(struct kvc_links *l, uint32_t link)
{
    if (!l->links[link].dirty) {
        l->links[link].dirty = true;
        l->dirty[l->n_dirty++] = link;
    }
}

static void attach(struct kvc_links *l, uint32_t id)
{
    struct flow *f = &l->flows[id];
    f->state = MOVING;
    f->rate = 0;
    f->fair = RATE_OPEN;
    f->settled_ns = l->now_ns;
    f->event_ns = KVC_TIME_NONE;
    for (uint32_t i = 0; i < f->n_path; i++) {
        struct link *k = &l->links[f->path[i]];
        if (k->n_flows == 0)
            k->busy_since_ns = l->now_ns;
        f->pos[i] = (uint32_t)k->n_flows;
        k->flows[k->n_flows++] = id;
        k->n_wide += f->n_path > 1;
        if (k->n_flows > k->peak_flows)
            k->peak_flows = (uint32_t)k->n_flows;
        mark_dirty(l, f->path[i]);
    }
}

/* moved: of the flow's bytes, for the links' books. */
static void detach(struct kvc_links *l, uint32_t id, uint64_t moved)
{
    struct flow *f = &l->flows[id];
    for (uint32_t i = 0; i < f->n_path; i++) {
        struct link *k = &l->links[f->path[i]];
        uint32_t last = k->flows[--k->n_flows];
        struct flow *g = &l->flows[last];
        k->flows[f->pos[i]] = last;
        for (uint32_t j = 0; j < g->n_path; j++)
            if (g->path[j] == f->path[i])
                g->pos[j] = f->pos[i];
        k->n_wide -= f->n_path > 1;
        k->ended_bytes += moved;
        if (k->n_flows == 0)
            k->busy_ns += l->now_ns - k->busy_since_ns;
        mark_dirty(l, f->path[i]);
    }
}

static void release(struct kvc_links *l, uint32_t id)
{
    struct flow *f = &l->flows[id];
    f->state = FREE;
    f->generation++;
    f->next_free = l->free_flow;
    l->free_flow = id;
    l->live--;
}

/* Room in done[] was made when the flow started. */
static void finish(struct kvc_links *l, uint32_t id)
{
    const struct flow *f = &l->flows[id];
    size_t i = l->n_done++;
    for (; i > l->done_first; i--) {
        const struct done *d = &l->done[i - 1];
        if (d->end.time_ns < l->now_ns || (d->end.time_ns == l->now_ns && d->seq < f->seq))
            break;
        l->done[i] = *d;
    }
    l->done[i].end.time_ns = l->now_ns;
    l->done[i].end.tag = f->tag;
    l->done[i].end.flow = (uint64_t)f->generation << 32 | id;
    l->done[i].seq = f->seq;
    release(l, id);
}

/* ---- time ---- */

static void end_flows(struct kvc_links *l, uint32_t link)
{
    struct link *k = &l->links[link];
    for (size_t i = 0; i < k->n_flows;) {
        uint32_t id = k->flows[i];
        const struct flow *f = &l->flows[id];
        if (f->path[0] != link || f->event_ns != l->now_ns) {
            i++;
            continue;
        }
        detach(l, id, f->bytes);
        finish(l, id);
    }
    k->next_ns = KVC_TIME_NONE;
    kvc_links_reorder(l, link);
}

static uint64_t next_event(const struct kvc_links *l)
{
    uint64_t t = l->n_links ? l->links[l->heap[0]].next_ns : KVC_TIME_NONE;
    if (l->n_waiting && l->flows[l->waiting[0]].event_ns < t)
        t = l->flows[l->waiting[0]].event_ns;
    return t;
}

static void advance(struct kvc_links *l, uint64_t now_ns)
{
    assert(now_ns >= l->now_ns);
    kvc_links_refresh(l);
    for (uint64_t t; (t = next_event(l)) <= now_ns && t != KVC_TIME_NONE;) {
        l->now_ns = t;
        while (l->links[l->heap[0]].next_ns == t)
            end_flows(l, l->heap[0]);
        while (l->n_waiting && l->flows[l->waiting[0]].event_ns == t) {
            uint32_t id = l->waiting[0];
            wait_remove(l, 0);
            if (l->flows[id].bytes == 0)
                finish(l, id);
            else
                attach(l, id);
        }
        kvc_links_refresh(l);
    }
    if (now_ns > l->now_ns && now_ns != KVC_TIME_NONE) /* NONE: to the last event */
        l->now_ns = now_ns;
}

uint64_t kvc_links_next(struct kvc_links *l)
{
    if (l->done_first < l->n_done)
        return l->done[l->done_first].end.time_ns;
    kvc_links_refresh(l);
    return next_event(l);
}

bool kvc_links_pop(struct kvc_links *l, uint64_t now_ns, struct kvc_flow_end *end)
{
    advance(l, now_ns);
    if (l->done_first == l->n_done)
        return false;
    *end = l->done[l->done_first++].end;
    if (l->done_first == l->n_done)
        l->done_first = l->n_done = 0;
    return true;
}

/* ---- from outside ---- */

enum kvc_status kvc_links_create(struct kvc_links **out, struct kvc_error *err)
{
    struct kvc_links *l = kvc_calloc(1, sizeof(*l));
    if (!l)
        return kvc_fail_nomem(err);
    l->free_flow = LINK_NONE;
    *out = l;
    return KVC_OK;
}

void kvc_links_destroy(struct kvc_links *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n_links; i++) {
        kvc_free(l->links[i].name);
        kvc_free(l->links[i].flows);
    }
    kvc_free(l->links);
    kvc_free(l->heap);
    kvc_free(l->flows);
    kvc_free(l->waiting);
    kvc_free(l->dirty);
    kvc_free(l->part_links);
    kvc_free(l->part_flows);
    kvc_free(l->todo);
    kvc_free(l->done);
    kvc_free(l);
}

/* kvc_grow for an array of any element type. */
#define GROW(array, cap, need) grow_array((void **)&(array), &(cap), need, sizeof(*(array)))

static bool grow_array(void **array, size_t *cap, size_t need, size_t size)
{
    return need <= *cap || kvc_grow(array, cap, need, size);
}

enum kvc_status kvc_links_add(struct kvc_links *l, const char *name, double capacity_bytes_per_s,
                              uint32_t *link, struct kvc_error *err)
{
    if (!(capacity_bytes_per_s > 0 && capacity_bytes_per_s < 1e18))
        return kvc_fail(err, KVC_ERR_USAGE,
                        "link %s: a capacity of %g bytes per second makes no sense; give one above "
                        "0 and below 10^18",
                        name, capacity_bytes_per_s);
    size_t n = l->n_links + 1;
    if (!GROW(l->links, l->cap_links, n) || !GROW(l->heap, l->cap_heap, n) ||
        !GROW(l->dirty, l->cap_dirty, n) || !GROW(l->part_links, l->cap_part_links, n))
        return kvc_fail_nomem(err);
    struct link *k = &l->links[l->n_links];
    memset(k, 0, sizeof(*k));
    k->name = kvc_strdup(name);
    if (!k->name)
        return kvc_fail_nomem(err);
    k->capacity = capacity_bytes_per_s / NS_PER_S;
    k->next_ns = KVC_TIME_NONE;
    uint32_t id = (uint32_t)l->n_links++;
    k->heap_pos = id;
    l->heap[id] = id;
    *link = id;
    return KVC_OK;
}

uint32_t kvc_links_count(const struct kvc_links *l)
{
    return (uint32_t)l->n_links;
}

static bool spec_is_sound(const struct kvc_links *l, const struct kvc_flow_spec *s)
{
    if (s->n_path < 1 || s->n_path > KVC_LINKS_PATH_MAX || s->latency_ns > UINT64_MAX / 4)
        return false;
    for (uint32_t i = 0; i < s->n_path; i++) {
        if (s->path[i] >= l->n_links)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (s->path[i] == s->path[j])
                return false;
    }
    return true;
}

/* All the memory the flow may need until it is handed out, so that nothing fails later. */
static bool reserve(struct kvc_links *l, const struct kvc_flow_spec *s)
{
    size_t live = (size_t)l->live + 1;
    if (l->done_first > 0 && l->n_done + live > l->cap_done) { /* reclaim what was handed out */
        l->n_done -= l->done_first;
        memmove(l->done, l->done + l->done_first, l->n_done * sizeof(*l->done));
        l->done_first = 0;
    }
    if (!GROW(l->waiting, l->cap_waiting, live) || !GROW(l->part_flows, l->cap_part_flows, live) ||
        !GROW(l->todo, l->cap_todo, live) || !GROW(l->done, l->cap_done, l->n_done + live))
        return false;
    for (uint32_t i = 0; i < s->n_path; i++) {
        struct link *k = &l->links[s->path[i]];
        if (!GROW(k->flows, k->cap_flows, live))
            return false;
    }
    if (l->free_flow != LINK_NONE)
        return true;
    if (l->n_flows >= LINK_NONE || !GROW(l->flows, l->cap_flows, l->n_flows + 1))
        return false;
    memset(&l->flows[l->n_flows], 0, sizeof(*l->flows));
    l->flows[l->n_flows].next_free = LINK_NONE;
    l->free_flow = (uint32_t)l->n_flows++;
    return true;
}

enum kvc_status kvc_links_start(struct kvc_links *l, uint64_t now_ns,
                                const struct kvc_flow_spec *spec, uint64_t *flow,
                                struct kvc_error *err)
{
    if (!spec_is_sound(l, spec) || now_ns < l->now_ns || now_ns > UINT64_MAX / 4)
        return kvc_fail(err, KVC_ERR_USAGE,
                        "a transfer needs 1 to %d distinct links, and a start that is not in the "
                        "past",
                        KVC_LINKS_PATH_MAX);
    advance(l, now_ns);
    if (!reserve(l, spec))
        return kvc_fail_nomem(err);
    uint32_t id = l->free_flow;
    struct flow *f = &l->flows[id];
    l->free_flow = f->next_free;
    l->live++;
    f->seq = l->seq++;
    f->bytes = spec->bytes;
    f->remaining = (double)spec->bytes;
    f->rate = 0;
    f->cap = spec->max_bytes_per_s > 0 ? spec->max_bytes_per_s / NS_PER_S : 1e9;
    f->tag = spec->tag;
    f->n_path = spec->n_path;
    memcpy(f->path, spec->path, sizeof(f->path));
    if (flow)
        *flow = (uint64_t)f->generation << 32 | id;
    if (spec->latency_ns > 0) {
        f->state = WAITING;
        f->event_ns = now_ns + spec->latency_ns;
        wait_up(l, l->n_waiting++, id);
    } else if (spec->bytes == 0) {
        finish(l, id);
    } else {
        attach(l, id);
    }
    return KVC_OK;
}

static struct flow *find_flow(struct kvc_links *l, uint64_t flow)
{
    uint32_t id = (uint32_t)flow;
    if (id >= l->n_flows || l->flows[id].state == FREE ||
        l->flows[id].generation != (uint32_t)(flow >> 32))
        return NULL;
    return &l->flows[id];
}

uint64_t kvc_links_moved(struct kvc_links *l, uint64_t now_ns, uint64_t flow)
{
    advance(l, now_ns);
    kvc_links_refresh(l);
    const struct flow *f = find_flow(l, flow);
    return f && f->state == MOVING ? moved_at(f, now_ns) : 0;
}

bool kvc_links_cancel(struct kvc_links *l, uint64_t now_ns, uint64_t flow)
{
    advance(l, now_ns);
    struct flow *f = find_flow(l, flow);
    if (!f)
        return false;
    if (f->state == WAITING)
        wait_remove(l, f->pos[0]);
    else
        detach(l, (uint32_t)flow, moved_at(f, now_ns));
    release(l, (uint32_t)flow);
    return true;
}

void kvc_links_usage(struct kvc_links *l, uint64_t now_ns, uint32_t link,
                     struct kvc_link_usage *out)
{
    advance(l, now_ns);
    kvc_links_refresh(l);
    const struct link *k = &l->links[link];
    out->name = k->name;
    out->capacity_bytes_per_s = k->capacity * NS_PER_S;
    out->bytes = k->ended_bytes;
    for (size_t i = 0; i < k->n_flows; i++)
        out->bytes += moved_at(&l->flows[k->flows[i]], now_ns);
    out->busy_ns = k->busy_ns + (k->n_flows ? now_ns - k->busy_since_ns : 0);
    out->flows = (uint32_t)k->n_flows;
    out->peak_flows = k->peak_flows;
}

double kvc_links_rate(struct kvc_links *l, uint64_t flow)
{
    kvc_links_refresh(l);
    const struct flow *f = find_flow(l, flow);
    return f && f->state == MOVING ? f->rate * NS_PER_S : 0;
}
