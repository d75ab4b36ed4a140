/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's HBM: one object a block copy, one list of copies without holder. */
#include "tests/twins/twin_order.h"

#include "base/alloc.h"

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
    struct copy *after = rep->q_tail;

    while (rep->fifo && after && after->inserted > copy->inserted)
        after = after->q_prev;
    copy->queued = true;
    copy->q_prev = after;
    copy->q_next = after ? after->q_next : rep->q_head;
    *(after ? &after->q_next : &rep->q_head) = copy;
    *(copy->q_next ? &copy->q_next->q_prev : &rep->q_tail) = copy;
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

/* Pages of each tenant's copies. */
static struct twin_use *use_of(const struct twin *tw, const struct replica *rep)
{
    struct twin_use *use = twin_alloc(tw->n_tenants, sizeof *use);

    for (uint32_t i = 0; i < tw->n_nodes; i++)
        for (const struct copy *c = rep->nodes[i].oldest; c; c = c->younger) {
            use[c->tenant].used += c->pages;
            use[c->tenant].unheld += c->queued ? c->pages : 0;
            use[c->tenant].unheld_blocks += c->queued;
        }
    return use;
}

uint64_t pool_free(const struct twin *tw, const struct replica *rep, uint32_t by)
{
    if (!tw->ruled)
        return rep->plain + rep->queue_pages;

    struct twin_use *use = use_of(tw, rep);
    uint64_t free = tenants_free(tw, 0, use, rep->plain, by);

    kvc_free(use);
    return free;
}

bool pool_fits(const struct twin *tw, const struct replica *rep, const struct req *r, uint32_t h,
               uint64_t pages)
{
    struct twin_use *use = use_of(tw, rep);
    uint64_t hit = 0, free = rep->plain + rep->queue_pages;

    for (uint32_t b = 0; b < h; b++) {
        const struct copy *c = rep->nodes[r->path[b]].oldest;

        hit += c->queued ? c->pages : 0;
        use[c->tenant].unheld -= c->queued ? c->pages : 0;
    }
    free = tw->ruled ? tenants_free(tw, 0, use, rep->plain, r->tenant) : free - hit;
    kvc_free(use);
    return pages <= free;
}

static void note_evicted(struct replica *rep, const struct copy *copy)
{
    if (rep->n_evicted == rep->cap_evicted) {
        rep->cap_evicted = 2 * rep->cap_evicted + 16;
        rep->evicted = kvc_realloc(rep->evicted, rep->cap_evicted, sizeof *rep->evicted);
        rep->evicted_of = kvc_realloc(rep->evicted_of, rep->cap_evicted, sizeof *rep->evicted_of);
    }
    rep->evicted_of[rep->n_evicted] = copy->tenant;
    rep->evicted[rep->n_evicted++] = copy->node;
}

static void evict(struct twin *tw, struct replica *rep, struct copy *copy, uint32_t by)
{
    queue_remove(rep, copy);
    rep->plain += copy->pages;
    if (rep->order && copy->node != TWIN_NONE)
        twin_order_forget(rep->order, copy->node);
    if (copy->node != TWIN_NONE) {
        forget(rep, copy);
        if (!rep->nodes[copy->node].oldest)
            tenants_lost(tw, 0, copy->node, copy->tenant, by);
        if (by != TWIN_TTL || (copy->ttl->down && !rep->nodes[copy->node].oldest))
            note_evicted(rep, copy);
    }
    kvc_free(copy);
}

static struct copy *victim(struct twin *tw, const struct replica *rep, uint32_t by, uint64_t take)
{
    struct twin_use *use;
    struct copy *best = NULL;
    uint64_t best_rank = 0, rank;

    if (!tw->ruled)
        return rep->q_head;
    use = use_of(tw, rep);
    for (struct copy *c = rep->q_head; c; c = c->q_next)
        if (tenants_may_go(tw, 0, use, c->tenant, by, take, &rank) &&
            (!best || rank < best_rank)) {
            best = c;
            best_rank = rank;
        }
    uint64_t reserve = best ? tw->rules[best->tenant].reserve[0] : 0;
    if (reserve && !tenants_own(tw, best->tenant, by) && use[best->tenant].used <= reserve)
        tw->out->wrong = "somebody's reserved block went to another";
    kvc_free(use);
    return best;
}

/* ---- with a policy ---- */

struct look {
    const struct twin *tw;
    const struct replica *rep;
    struct twin_use *use;
    uint32_t by, only;
    uint64_t take, rank;
};

static bool rank_of(const struct look *l, const struct copy *c, uint64_t *rank)
{
    *rank = 0;
    if (l->only != TWIN_NONE)
        return c->tenant == l->only;
    return !l->tw->limited[0] || tenants_may_go(l->tw, 0, l->use, c->tenant, l->by, l->take, rank);
}

static bool may_go(const void *user, uint32_t node)
{
    const struct look *l = user;
    const struct copy *c = l->rep->nodes[node].oldest;
    uint64_t rank;

    return c && !c->holders && rank_of(l, c, &rank) && rank == l->rank;
}

static uint64_t in_use(const struct twin *tw, const struct replica *rep)
{
    return (tw->setup->pages - rep->plain) * tw->P / tw->B;
}

static void evict_nodes(struct twin *tw, struct replica *rep, uint32_t by, const uint32_t *gone,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        evict(tw, rep, rep->nodes[gone[i]].oldest, by);
}

static void evict_by_policy(struct twin *tw, struct replica *rep, uint32_t by, uint64_t take,
                            uint32_t newcomer, uint32_t only)
{
    struct look l = {tw, rep, use_of(tw, rep), by, only, take, UINT64_MAX};
    const uint32_t *gone;
    uint64_t rank;
    uint32_t n;

    for (struct copy *c = rep->q_head; c; c = c->q_next)
        if (rank_of(&l, c, &rank) && rank < l.rank)
            l.rank = rank;
    n = twin_order_evict(rep->order, newcomer, tw->limited[0], may_go, &l, &gone);
    kvc_free(l.use);
    evict_nodes(tw, rep, by, gone, n);
}

void pool_arrive(const struct twin *tw, struct replica *rep, const struct req *r)
{
    if (rep->order && tw->sc->engine.prefix_caching)
        twin_order_arrive(rep->order, r, in_use(tw, rep));
}

/* Something was let go of. */
static void rest(struct twin *tw, struct replica *rep, uint32_t by)
{
    struct look l = {.tw = tw, .rep = rep, .by = by, .only = TWIN_NONE};
    const uint32_t *gone = NULL;
    uint32_t n = 0;

    if (rep->order && !tw->limited[0])
        n = twin_order_rest(rep->order, in_use(tw, rep), may_go, &l, &gone);
    evict_nodes(tw, rep, by, gone, n);
}

/* A hard quota keeps nothing beyond it that nobody holds. */
static void trim(struct twin *tw, struct replica *rep)
{
    for (uint32_t t = 0; tw->ruled && t < tw->n_tenants;) {
        struct twin_use *use = use_of(tw, rep);
        struct copy *c = rep->q_head;
        bool over = tw->rules[t].mode == KVC_QUOTA_HARD && use[t].used > tw->rules[t].quota[0];

        kvc_free(use);
        while (c && c->tenant != t)
            c = c->q_next;
        if (over && c && rep->order)
            evict_by_policy(tw, rep, t, 0, TWIN_NONE, t);
        else if (over && c)
            evict(tw, rep, c, t);
        else
            t++;
    }
}

static uint64_t round_of(const struct twin *tw, const struct replica *rep, uint32_t t)
{
    struct twin_use *use = use_of(tw, rep);
    uint64_t share = tenants_round(tw, 0, use, t);

    kvc_free(use);
    return share;
}

bool pool_round_due(const struct twin *tw, const struct replica *rep)
{
    for (uint32_t t = 0; t < tw->n_tenants; t++)
        if (round_of(tw, rep, t))
            return true;
    return false;
}

void pool_round(struct twin *tw, struct replica *rep)
{
    for (uint32_t t = 0; t < tw->n_tenants; t++) {
        uint64_t share = round_of(tw, rep, t), plain = rep->plain;

        while (rep->plain - plain < share) {
            struct copy *c = rep->q_head;

            while (c && c->tenant != t)
                c = c->q_next;
            if (!c)
                break;
            if (rep->order)
                evict_by_policy(tw, rep, t, 0, TWIN_NONE, t);
            else
                evict(tw, rep, c, t);
        }
    }
}

uint64_t pool_next_expiry(const struct replica *rep)
{
    uint64_t first = KVC_TIME_NONE;

    for (const struct copy *c = rep->q_head; c; c = c->q_next)
        if (c->ttl && c->ttl->ns != KVC_TIME_NONE && c->touched_ns + c->ttl->ns < first)
            first = c->touched_ns + c->ttl->ns;
    return first;
}

/* The shortest TTL first, and of one the oldest. */
void pool_expire(struct twin *tw, struct replica *rep)
{
    struct copy *due;

    do {
        due = NULL;
        for (struct copy *c = rep->q_head; c; c = c->q_next)
            if (c->ttl && c->ttl->ns != KVC_TIME_NONE && c->touched_ns + c->ttl->ns <= tw->now &&
                (!due || c->ttl->ns < due->ttl->ns ||
                 (c->ttl->ns == due->ttl->ns && c->ttl->down < due->ttl->down)))
                due = c;
        if (due)
            evict(tw, rep, due, TWIN_TTL);
    } while (due);
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
    uint64_t unit = tw->sc->engine.partial_reuse ? 1 : tw->P;
    uint64_t whole = (uint64_t)run * tw->B / unit * unit;
    uint64_t cap = n_tokens ? (uint64_t)(n_tokens - 1) / unit * unit : 0;

    return (uint32_t)(whole < cap ? whole : cap);
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

void pool_alloc(struct twin *tw, struct replica *rep, struct req *r, uint32_t by, uint64_t pages,
                uint32_t tokens)
{
    uint32_t to = tokens / tw->B < r->n_path ? tokens / tw->B : r->n_path;
    uint32_t newcomer = to > r->pub ? r->path[to - 1] : TWIN_NONE;

    r->new_pages += pages;
    pages += tw->setup->sequence_pages - r->beside; /* with the first ones */
    r->beside = tw->setup->sequence_pages;
    while (rep->plain < pages && rep->order)
        evict_by_policy(tw, rep, by, pages, newcomer, TWIN_NONE);
    while (rep->plain < pages)
        evict(tw, rep, victim(tw, rep, by, pages), by);
    rep->plain -= pages;
    r->anon += pages;
}

/* What is cached already is held, and the request's own pages are free again. */
static uint32_t drop_copies(struct replica *rep, struct req *r, uint32_t to)
{
    for (; r->pub < r->n_path && r->pub < to && rep->nodes[r->path[r->pub]].oldest; r->pub++) {
        struct copy *copy = rep->nodes[r->path[r->pub]].oldest;

        if (copy->queued)
            queue_remove(rep, copy);
        copy->holders++;
        r->held[r->pub] = copy;
        r->anon -= copy->pages;
        rep->plain += copy->pages;
    }
    return r->pub;
}

void pool_publish(struct twin *tw, struct replica *rep, struct req *r, uint32_t c)
{
    uint32_t first = r->pub;

    if (!tw->sc->engine.prefix_caching)
        return;
    if (tw->sc->engine.publish == KVC_PUBLISH_INSERTED)
        first = drop_copies(rep, r, c / tw->B);
    for (; r->pub < r->n_path && ((uint64_t)r->pub + 1) * tw->B <= c; r->pub++) {
        struct copy *copy = twin_alloc(1, sizeof *copy);
        struct copy_list *list;

        copy->node = r->path[r->pub];
        copy->pages = block_pages(tw, r->pub);
        copy->holders = 1;
        copy->tenant = r->tenant;
        copy->inserted = rep->inserted + r->n_path - r->pub; /* the deepest first */
        copy->touched_ns = tw->now;
        copy->ttl = rep->fifo ? tenants_longer(tw, NULL, 0, r->tenant) : NULL;
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
    rep->inserted += r->pub > first ? r->n_path + 1 : 0;
    trim(tw, rep);
}

/* Each release is a use of the block's oldest copy; of others none stays that nobody holds. */
static void release_by_policy(struct twin *tw, struct replica *rep, struct copy *copy, uint32_t by)
{
    if (rep->nodes[copy->node].oldest == copy) {
        twin_order_use(rep->order, copy->node, twin_named(tw, by), ORDER_USE);
        if (!copy->holders)
            queue_push(rep, copy);
        return;
    }
    forget(rep, copy);
    rep->plain += copy->pages;
    kvc_free(copy);
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
    twin_order_turn(rep->order);
    for (uint32_t b = r->pub; b-- > 0;) {
        struct copy *copy = r->held[b];

        if (!rep->fifo) {
            copy->ttl = tenants_longer(tw, copy->ttl, 0, r->tenant);
            copy->touched_ns = tw->now;
        }
        copy->holders--;
        if (rep->order)
            release_by_policy(tw, rep, copy, r->tenant);
        else if (copy->holders == 0)
            queue_push(rep, copy);
    }
    r->anon = r->new_pages = r->beside = 0;
    r->pub = r->h = r->usable = 0;
    rest(tw, rep, r->tenant);
    trim(tw, rep);
}
