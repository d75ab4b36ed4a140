/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's HBM: one object a block copy, one list of copies without holder. */
#include "tests/twin_internal.h"

#include "base/alloc.h"

uint64_t pool_free(const struct replica *rep)
{
    return rep->plain + rep->queue_pages;
}

static uint64_t pages_below(const struct twin *tw, uint64_t block)
{
    return block * tw->B / tw->P;
}

uint32_t block_pages(const struct twin *tw, uint32_t block)
{
    return (uint32_t)(pages_below(tw, (uint64_t)block + 1) - pages_below(tw, block));
}

static void queue_push(struct replica *rep, struct copy *copy)
{
    copy->queued = true;
    copy->q_prev = rep->q_tail;
    copy->q_next = NULL;
    if (rep->q_tail)
        rep->q_tail->q_next = copy;
    else
        rep->q_head = copy;
    rep->q_tail = copy;
    rep->queue_pages += copy->pages;
}

static void queue_remove(struct replica *rep, struct copy *copy)
{
    copy->queued = false;
    if (copy->q_prev)
        copy->q_prev->q_next = copy->q_next;
    else
        rep->q_head = copy->q_next;
    if (copy->q_next)
        copy->q_next->q_prev = copy->q_prev;
    else
        rep->q_tail = copy->q_prev;
    rep->queue_pages -= copy->pages;
}

static void forget(struct replica *rep, struct copy *copy)
{
    struct copy_list *list = &rep->nodes[copy->node];

    if (copy->older)
        copy->older->younger = copy->younger;
    else
        list->oldest = copy->younger;
    if (copy->younger)
        copy->younger->older = copy->older;
    else
        list->youngest = copy->older;
}

static void evict_head(struct replica *rep)
{
    struct copy *copy = rep->q_head;

    queue_remove(rep, copy);
    rep->plain += copy->pages;
    if (copy->node != TWIN_NONE) {
        forget(rep, copy);
        if (rep->n_evicted == rep->cap_evicted) {
            rep->cap_evicted = 2 * rep->cap_evicted + 16;
            rep->evicted = kvc_realloc(rep->evicted, rep->cap_evicted, sizeof *rep->evicted);
        }
        rep->evicted[rep->n_evicted++] = copy->node;
    }
    kvc_free(copy);
}

uint32_t pool_run(const struct twin *tw, const struct replica *rep, const struct req *r,
                  uint32_t n_tokens)
{
    uint32_t b = 0;

    if (!tw->sc->engine.prefix_caching)
        return 0;
    while (b < r->n_path && ((uint64_t)b + 1) * tw->B <= n_tokens && rep->nodes[r->path[b]].oldest)
        b++;
    return b;
}

uint32_t pool_usable(const struct twin *tw, uint32_t run, uint32_t n_tokens)
{
    uint64_t whole = (uint64_t)run * tw->B / tw->P * tw->P;
    uint64_t cap = n_tokens ? (uint64_t)(n_tokens - 1) / tw->P * tw->P : 0;

    return (uint32_t)(whole < cap ? whole : cap);
}

uint64_t pool_unheld_pages(const struct replica *rep, const struct req *r, uint32_t h)
{
    uint64_t pages = 0;

    for (uint32_t b = 0; b < h; b++)
        if (rep->nodes[r->path[b]].oldest->queued)
            pages += rep->nodes[r->path[b]].oldest->pages;
    return pages;
}

void pool_hold_hit(struct replica *rep, struct req *r, uint32_t h)
{
    r->h = r->pub = h;
    r->offered = 0;
    r->new_pages = r->anon = 0;
    for (uint32_t b = 0; b < h; b++) {
        struct copy *copy = rep->nodes[r->path[b]].oldest;

        if (copy->queued)
            queue_remove(rep, copy);
        copy->holders++;
        r->held[b] = copy;
    }
}

void pool_alloc(struct replica *rep, struct req *r, uint64_t pages)
{
    while (rep->plain < pages)
        evict_head(rep);
    rep->plain -= pages;
    r->new_pages += pages;
    r->anon += pages;
}

void pool_publish(struct twin *tw, struct replica *rep, struct req *r, uint32_t c)
{
    if (!tw->sc->engine.prefix_caching)
        return;
    for (; r->pub < r->n_path && ((uint64_t)r->pub + 1) * tw->B <= c; r->pub++) {
        struct copy *copy = twin_alloc(1, sizeof *copy);
        struct copy_list *list;

        copy->node = r->path[r->pub];
        copy->pages = block_pages(tw, r->pub);
        copy->holders = 1;
        list = &rep->nodes[copy->node];
        copy->older = list->youngest;
        if (list->youngest)
            list->youngest->younger = copy;
        else
            list->oldest = copy;
        list->youngest = copy;
        r->anon -= copy->pages;
        r->held[r->pub] = copy;
        tw->ever_published[copy->node] = true;
    }
}

void pool_release(struct twin *tw, struct replica *rep, struct req *r)
{
    /* 0.24 reuses anonymous pages first; before, they queued like the others, tail first. */
    if (tw->sc->engine.unhashed_first || !tw->sc->engine.prefix_caching) {
        rep->plain += r->anon;
    } else {
        for (uint64_t i = 0; i < r->anon; i++) {
            struct copy *page = twin_alloc(1, sizeof *page);

            page->node = TWIN_NONE;
            page->pages = 1;
            queue_push(rep, page);
        }
    }
    for (uint32_t b = r->pub; b-- > 0;)
        if (--r->held[b]->holders == 0)
            queue_push(rep, r->held[b]);
    r->anon = r->new_pages = 0;
    r->pub = r->h = r->usable = 0;
}
