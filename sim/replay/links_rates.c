/* SPDX-License-Identifier: Apache-2.0
 * Max-min fair rates by progressive filling, and the order of what ends next. */
#include "sim/replay/links_internal.h"

#include <string.h>

/* A quotient may come out a rounding error above the whole number it stands for. */
#define CEIL_SLACK 0x1p-44
/* Rounding may leave a share of nothing where theory leaves a positive one. */
#define LEAST_SHARE 0x1p-50

static bool link_earlier(const struct kvc_links *l, uint32_t a, uint32_t b)
{
    return l->links[a].next_ns < l->links[b].next_ns;
}

static void link_place(struct kvc_links *l, uint32_t pos, uint32_t link)
{
    l->heap[pos] = link;
    l->links[link].heap_pos = pos;
}

void kvc_links_reorder(struct kvc_links *l, uint32_t link)
{
    uint32_t i = l->links[link].heap_pos, n = (uint32_t)l->n_links;
    while (i > 0 && link_earlier(l, link, l->heap[(i - 1) / 2])) {
        link_place(l, i, l->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && link_earlier(l, l->heap[child + 1], l->heap[child]))
            child++;
        if (!link_earlier(l, l->heap[child], link))
            break;
        link_place(l, i, l->heap[child]);
        i = child;
    }
    link_place(l, i, link);
}

/* Collects the links and flows that share a link with the given one, over any number of hops. */
static void collect_part(struct kvc_links *l, uint32_t link)
{
    l->n_part_links = l->n_part_flows = 0;
    l->links[link].mark = l->mark;
    l->part_links[l->n_part_links++] = link;
    for (size_t i = 0; i < l->n_part_links; i++) {
        const struct link *k = &l->links[l->part_links[i]];
        for (size_t j = 0; j < k->n_flows; j++) {
            struct flow *f = &l->flows[k->flows[j]];
            if (f->mark == l->mark)
                continue;
            f->mark = l->mark;
            l->part_flows[l->n_part_flows++] = k->flows[j];
            for (uint32_t p = 0; p < f->n_path; p++) {
                struct link *m = &l->links[f->path[p]];
                if (m->mark == l->mark)
                    continue;
                m->mark = l->mark;
                l->part_links[l->n_part_links++] = f->path[p];
            }
        }
    }
}

static void give(struct kvc_links *l, struct flow *f, double rate)
{
    f->fair = rate;
    for (uint32_t p = 0; p < f->n_path; p++) {
        l->links[f->path[p]].left -= rate;
        l->links[f->path[p]].open--;
    }
}

static bool crosses(const struct flow *f, uint32_t link)
{
    for (uint32_t p = 0; p < f->n_path; p++)
        if (f->path[p] == link)
            return true;
    return false;
}

/* The smallest equal share among the component's links, and the link that has it. */
static double bottleneck(const struct kvc_links *l, uint32_t *link)
{
    double level = 0;
    *link = LINK_NONE;
    for (size_t i = 0; i < l->n_part_links; i++) {
        const struct link *k = &l->links[l->part_links[i]];
        if (k->open == 0)
            continue;
        double share = k->left / (double)k->open;
        if (*link == LINK_NONE || share < level) {
            level = share;
            *link = l->part_links[i];
        }
    }
    double least = l->links[*link].capacity * LEAST_SHARE;
    return level > least ? level : least;
}

/* Progressive filling: flows whose cap lies below the lowest share get their cap; when there is
 * none, those on the link with the lowest share get that share. */
static void fill(struct kvc_links *l)
{
    size_t n = l->n_part_flows;
    memcpy(l->todo, l->part_flows, n * sizeof(*l->todo));
    for (size_t i = 0; i < l->n_part_links; i++) {
        struct link *k = &l->links[l->part_links[i]];
        k->left = k->capacity;
        k->open = (uint32_t)k->n_flows;
    }
    while (n > 0) {
        uint32_t full;
        double level = bottleneck(l, &full);
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            struct flow *f = &l->flows[l->todo[i]];
            if (f->cap <= level)
                give(l, f, f->cap);
            else
                l->todo[kept++] = l->todo[i];
        }
        if (kept == n) {
            kept = 0;
            for (size_t i = 0; i < n; i++) {
                struct flow *f = &l->flows[l->todo[i]];
                if (crosses(f, full))
                    give(l, f, level);
                else
                    l->todo[kept++] = l->todo[i];
            }
        }
        n = kept;
    }
}

static uint64_t end_ns(const struct flow *f, uint64_t now_ns)
{
    double need = f->remaining / f->rate;
    need -= need * CEIL_SLACK;
    if (!(need < 9e18) || now_ns > UINT64_MAX / 4)
        return KVC_TIME_NONE - 1;
    uint64_t whole = (uint64_t)need;
    return now_ns + whole + ((double)whole < need);
}

/* A flow whose rate stays keeps its completion as it was first rounded. */
static void settle(struct flow *f, double rate, uint64_t now_ns)
{
    f->fair = RATE_OPEN;
    if (rate == f->rate)
        return;
    f->remaining = remaining_at(f, now_ns);
    f->settled_ns = now_ns;
    f->rate = rate;
    f->event_ns = end_ns(f, now_ns);
}

static void set_next(struct kvc_links *l, uint32_t link, uint64_t next_ns)
{
    if (l->links[link].next_ns == next_ns)
        return;
    l->links[link].next_ns = next_ns;
    kvc_links_reorder(l, link);
}

/* The heap is put right one link at a time, so each link's new time waits until its turn. */
static void apply(struct kvc_links *l)
{
    for (size_t i = 0; i < l->n_part_links; i++)
        l->links[l->part_links[i]].new_next_ns = KVC_TIME_NONE;
    for (size_t i = 0; i < l->n_part_flows; i++) {
        struct flow *f = &l->flows[l->part_flows[i]];
        settle(f, f->fair, l->now_ns);
        struct link *home = &l->links[f->path[0]];
        if (f->event_ns < home->new_next_ns)
            home->new_next_ns = f->event_ns;
    }
    for (size_t i = 0; i < l->n_part_links; i++)
        set_next(l, l->part_links[i], l->links[l->part_links[i]].new_next_ns);
}

/* The same for a link whose flows cross no other: the common case. */
static void refresh_private(struct kvc_links *l, uint32_t link)
{
    struct link *k = &l->links[link];
    double left = k->capacity, level = left / (double)k->n_flows;
    size_t open = k->n_flows;
    for (bool again = true; again && open > 0;) {
        again = false;
        for (size_t i = 0; i < k->n_flows; i++) {
            struct flow *f = &l->flows[k->flows[i]];
            if (f->cap > level || f->fair != RATE_OPEN)
                continue;
            f->fair = f->cap;
            left -= f->cap;
            open--;
            again = true;
        }
        if (again && open > 0)
            level = left / (double)open;
        if (level < k->capacity * LEAST_SHARE)
            level = k->capacity * LEAST_SHARE;
    }
    uint64_t next_ns = KVC_TIME_NONE;
    for (size_t i = 0; i < k->n_flows; i++) {
        struct flow *f = &l->flows[k->flows[i]];
        settle(f, f->fair != RATE_OPEN ? f->fair : level, l->now_ns);
        if (f->event_ns < next_ns)
            next_ns = f->event_ns;
    }
    set_next(l, link, next_ns);
}

void kvc_links_refresh(struct kvc_links *l)
{
    if (l->n_dirty == 0)
        return;
    l->mark++;
    for (size_t i = 0; i < l->n_dirty; i++) {
        l->links[l->dirty[i]].dirty = false;
        if (l->links[l->dirty[i]].mark == l->mark)
            continue; /* part of a component already done */
        if (l->links[l->dirty[i]].n_wide == 0) {
            refresh_private(l, l->dirty[i]);
            continue;
        }
        collect_part(l, l->dirty[i]);
        fill(l);
        apply(l);
    }
    l->n_dirty = 0;
}
