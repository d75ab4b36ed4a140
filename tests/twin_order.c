/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/twin_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

#define LISTS 101

struct block {
    bool known, visited;
    uint8_t list;           /* 0: in none; ghosts are in one, unknown */
    uint64_t put;           /* when, for the order of lists */
    uint32_t count;         /* touches since it came, or what the policy makes of them */
    uint64_t key, born, at_ns;
    uint64_t asked, when[2]; /* by how many requests, and the last two */
    uint32_t sketch;
};

struct twin_order {
    const struct twin *tw;
    char name[16];
    const char *spec;
    uint64_t capacity, clock, request, size, in_use, count[LISTS + 1];
    struct block *b;
    uint32_t *gone, n_gone;
    order_may_go may_go;
    const void *user;
    bool one; /* block by block, for tenants have limits */
    uint32_t hand, *table, hole, newcomer, tenant;
    uint64_t rng, floor, counted, small, ghosts, now_ns;
    double target;
};

/* ---- options ---- */

static double option(const struct twin_order *o, const char *name, double otherwise)
{
    const char *at = strchr(o->spec, ':');

    for (size_t n = strlen(name); at; at = strchr(at + 1, ':'))
        if (strncmp(at + 1, name, n) == 0 && at[1 + n] == '=')
            return strtod(at + 2 + n, NULL);
    return otherwise;
}

bool twin_is(const char *spec, const char *name)
{
    size_t n = strcspn(spec, ":");

    return n == strlen(name) && strncmp(spec, name, n) == 0;
}

uint64_t twin_policy_ttl(const char *spec) /* tests write ms */
{
    const char *ms = strstr(spec, "ttl=");

    if (!twin_is(spec, "ttl") && !twin_is(spec, "ttlfixed"))
        return 0;
    return ms ? strtoull(ms + 4, NULL, 10) * 1000000 : 300ull * 1000000000;
}

static uint64_t part(uint64_t of, double share)
{
    return (uint64_t)((double)of * share + 1e-9);
}

/* ---- lists by the time of putting ---- */

static void take(struct twin_order *o, uint32_t n)
{
    if (o->b[n].list)
        o->count[o->b[n].list]--;
    o->b[n].list = 0;
}

static void put(struct twin_order *o, uint8_t list, uint32_t n)
{
    take(o, n);
    o->b[n].list = list;
    o->b[n].put = ++o->clock;
    o->count[list]++;
}

static bool may_go(const struct twin_order *o, uint32_t n)
{
    return o->b[n].known && o->may_go(o->user, n);
}

/* The oldest of a list after a time; of those that may go, if that is asked. */
static uint32_t oldest(const struct twin_order *o, uint8_t list, uint64_t after, bool free)
{
    uint32_t best = TWIN_NONE;

    for (uint32_t n = 0; n < o->tw->n_nodes; n++)
        if (o->b[n].list == list && o->b[n].put > after && (!free || may_go(o, n)) &&
            (best == TWIN_NONE || o->b[n].put < o->b[best].put))
            best = n;
    return best;
}

static void trim(struct twin_order *o, uint8_t list, uint64_t most)
{
    while (o->count[list] > most)
        take(o, oldest(o, list, 0, false));
}

static uint32_t either(uint32_t first, uint32_t second)
{
    return first != TWIN_NONE ? first : second;
}

/* ---- what leaves ---- */

static void lose(struct twin_order *o, uint32_t n)
{
    o->b[n].known = false;
    o->size--;
    if (o->table) { /* the last takes its place */
        uint32_t at = (uint32_t)o->b[n].key;

        o->hole = at;
        o->table[at] = o->table[o->size];
        o->b[o->table[at]].key = at;
    }
    if (o->hand == n)
        o->hand = oldest(o, o->b[n].list, o->b[n].put, false);
}

static void leave(struct twin_order *o, uint32_t n, uint8_t ghosts)
{
    o->gone[o->n_gone++] = n;
    lose(o, n);
    take(o, n);
    if (ghosts)
        put(o, ghosts, n);
}

/* The least (first, second) of those that may go. */
static uint32_t least(struct twin_order *o, bool (*before)(const struct twin_order *o, uint32_t a,
                                                           uint32_t b))
{
    uint32_t best = TWIN_NONE;

    for (uint32_t n = 0; n < o->tw->n_nodes; n++)
        if (may_go(o, n) && (best == TWIN_NONE || before(o, n, best)))
            best = n;
    return best;
}

static bool by_count(const struct twin_order *o, uint32_t a, uint32_t b)
{
    const struct block *x = &o->b[a], *y = &o->b[b];

    return x->count != y->count ? x->count < y->count : x->put < y->put;
}

static bool by_key(const struct twin_order *o, uint32_t a, uint32_t b)
{
    const struct block *x = &o->b[a], *y = &o->b[b];

    return x->key != y->key ? x->key < y->key : x->put < y->put;
}

static bool by_depth(const struct twin_order *o, uint32_t a, uint32_t b)
{
    uint32_t x = o->tw->node_depth[a], y = o->tw->node_depth[b];

    return x != y ? x > y : o->b[a].put < o->b[b].put;
}

static bool by_rate(const struct twin_order *o, uint32_t a, uint32_t b)
{
    uint64_t x = o->b[a].count * (o->request - o->b[b].born + 1);
    uint64_t y = o->b[b].count * (o->request - o->b[a].born + 1);

    return x != y ? x < y : o->b[a].put < o->b[b].put;
}

static void sieve(struct twin_order *o)
{
    uint32_t n = o->hand;

    for (int rounds = 0;;) {
        if (n == TWIN_NONE && (rounds++ == 3 || (n = oldest(o, 1, 0, false)) == TWIN_NONE))
            return;
        if (may_go(o, n) && !o->b[n].visited)
            break;
        if (may_go(o, n))
            o->b[n].visited = false;
        n = oldest(o, 1, o->b[n].put, false);
    }
    o->hand = n;
    leave(o, n, 0);
}

/* 1 small, 2 main, 3 ghosts. */
static void s3fifo(struct twin_order *o)
{
    uint32_t n = TWIN_NONE;

    if (o->count[1] >= o->small || !o->count[2])
        while ((n = oldest(o, 1, 0, true)) != TWIN_NONE && o->b[n].count >= option(o, "uses", 2)) {
            o->b[n].count = 0;
            put(o, 2, n);
        }
    if (n == TWIN_NONE) {
        while ((n = oldest(o, 2, 0, true)) != TWIN_NONE && o->b[n].count) {
            o->b[n].count--;
            put(o, 2, n);
        }
        n = either(n, oldest(o, 1, 0, true));
    }
    if (n == TWIN_NONE)
        return;
    leave(o, n, o->b[n].list == 1 ? 3 : 0);
    trim(o, 3, o->ghosts);
}

static void twoq(struct twin_order *o)
{
    bool shrink = o->count[1] > o->small || !o->count[2];
    uint32_t n = either(oldest(o, shrink ? 1 : 2, 0, true), oldest(o, shrink ? 2 : 1, 0, true));

    if (n == TWIN_NONE)
        return;
    leave(o, n, o->b[n].list == 1 ? 3 : 0);
    trim(o, 3, o->ghosts + 1); /* one more than there are, until somebody comes */
}

/* 1 and 2 recent and frequent, 3 and 4 what left them. */
static void arc(struct twin_order *o)
{
    bool b2 = o->newcomer != TWIN_NONE && o->b[o->newcomer].list == 4;
    double t1 = (double)o->count[1];
    bool recent = o->count[1] && (t1 > o->target || (b2 && t1 == o->target) || !o->count[2]);
    uint32_t n = either(oldest(o, recent ? 1 : 2, 0, true), oldest(o, recent ? 2 : 1, 0, true));

    if (n != TWIN_NONE)
        leave(o, n, (uint8_t)(o->b[n].list + 2));
}

/* 1 window, 2 probation, 3 protected. */
static void wtinylfu(struct twin_order *o)
{
    uint32_t mine = oldest(o, 1, 0, true);
    uint32_t other = either(oldest(o, 2, 0, true), oldest(o, 3, 0, true));

    if (other == TWIN_NONE || mine == TWIN_NONE || o->count[1] < o->small) {
        if (either(other, mine) != TWIN_NONE)
            leave(o, either(other, mine), 0);
    } else if (o->b[mine].sketch <= o->b[other].sketch) {
        leave(o, mine, 0);
    } else {
        leave(o, other, 0);
        put(o, 2, mine);
    }
}

static void draw(struct twin_order *o)
{
    uint64_t at = o->size ? kvc_rng_below(&o->rng, o->size) : 0;

    for (uint64_t i = 0; i < o->size; i++, at = (at + 1) % o->size)
        if (may_go(o, o->table[at])) {
            leave(o, o->table[at], 0);
            return;
        }
}

static void watermark(struct twin_order *o, uint64_t in_use)
{
    double over = (double)in_use - option(o, "high", 0.9) * (double)o->capacity;
    double t = option(o, "batch", 0.05) * (double)o->capacity + (over > 0 ? over : 0);
    double exact = (double)o->size * t / (double)o->capacity;
    uint64_t due = (uint64_t)exact, n = o->size;

    due += exact > (double)due + 1e-9;
    due = o->one ? 1 : due < n ? due : n;
    for (uint32_t v; due-- > 0 && (v = oldest(o, 1, 0, true)) != TWIN_NONE;)
        leave(o, v, 0);
}

/* Lists are levels + 1. */
static bool lies_below(const struct twin_order *o, uint32_t n, uint32_t top)
{
    while (n != TWIN_NONE && n != top)
        n = o->tw->node_parent[n];
    return n == top;
}

static void priority(struct twin_order *o)
{
    for (uint8_t list = 1; list <= LISTS; list++)
        for (uint32_t n = oldest(o, list, 0, false); n != TWIN_NONE;
             n = oldest(o, list, o->b[n].put, false)) {
            bool free = true;

            for (uint32_t m = 0; m < o->tw->n_nodes; m++)
                free &= !o->b[m].known || !lies_below(o, m, n) || may_go(o, m);
            if (!free)
                continue;
            uint32_t m;

            do { /* released longest ago first, and it last */
                m = n;
                for (uint32_t other = 0; other < o->tw->n_nodes; other++)
                    if (other != n && o->b[other].known && lies_below(o, other, n) &&
                        (m == n || o->b[other].key < o->b[m].key))
                        m = other;
                leave(o, m, 0);
            } while (m != n && !o->one);
            return;
        }
    for (uint8_t list = 1; list <= LISTS; list++) {
        uint32_t n = oldest(o, list, 0, true);

        if (n == TWIN_NONE)
            continue;
        leave(o, n, 0); /* alone: below each of them something is held */
        return;
    }
}

/* Where room is short, what is left of it goes to the newcomer. */
static void short_of_room(struct twin_order *o)
{
    watermark(o, o->capacity);
}

static void evict(struct twin_order *o)
{
    bool (*before)(const struct twin_order *, uint32_t, uint32_t) =
        strcmp(o->name, "lfu") == 0 || strcmp(o->name, "plfu") == 0 ? by_count
        : strcmp(o->name, "gdsf") == 0 || strcmp(o->name, "lruk") == 0 ? by_key
        : strcmp(o->name, "lenaware") == 0                            ? by_depth
        : strcmp(o->name, "hyperbolic") == 0                          ? by_rate
                                                                      : NULL;
    static const struct {
        const char *name;
        void (*evict)(struct twin_order *);
    } others[] = {{"sieve", sieve}, {"s3fifo", s3fifo}, {"twoq", twoq}, {"arc", arc},
                  {"wtinylfu", wtinylfu}, {"random", draw}, {"watermark", short_of_room},
                  {"priority", priority}};
    uint32_t n = before ? least(o, before) : TWIN_NONE;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(o->name, others[i].name) == 0)
            others[i].evict(o);
    if (n != TWIN_NONE) {
        o->floor = o->b[n].key > o->floor ? o->b[n].key : o->floor;
        leave(o, n, 0);
    }
}

uint32_t twin_order_evict(struct twin_order *o, uint32_t newcomer, uint64_t in_use, bool one,
                          order_may_go go, const void *user, const uint32_t **gone)
{
    o->may_go = go;
    o->user = user;
    o->in_use = in_use;
    o->newcomer = newcomer;
    o->one = one;
    o->n_gone = 0;
    evict(o);
    *gone = o->gone;
    return o->n_gone;
}

void twin_order_forget(struct twin_order *o, uint32_t n)
{
    if (!o->b[n].known)
        return;
    lose(o, n);
    take(o, n);
}

/* ---- a request ---- */

static void teach_arc(struct twin_order *o, uint32_t n)
{
    double b1 = (double)o->count[3], b2 = (double)o->count[4], step;
    bool recent = o->b[n].list == 3;

    if (o->b[n].list < 3)
        return;
    step = recent ? b2 / b1 : b1 / b2;
    step = step > 1 ? step : 1;
    o->target += recent ? step : -step;
    o->target = o->target < 0 ? 0 : o->target > (double)o->capacity ? (double)o->capacity : o->target;
}

/* A block of the prompt is asked for. */
static void ask(struct twin_order *o, uint32_t n)
{
    struct block *b = &o->b[n];

    b->asked++;
    b->when[1] = b->when[0];
    b->when[0] = o->request;
    b->sketch += b->sketch < 15;
    o->counted++;
    if (strcmp(o->name, "arc") == 0)
        teach_arc(o, n);
}

/* Levels that end, in the order of the releases. */
static void end_levels(struct twin_order *o)
{
    uint64_t duration = (uint64_t)option(o, "duration", 0) * 1000000; /* tests write ms */

    for (uint32_t due = 0; duration && due != TWIN_NONE;) {
        due = TWIN_NONE;
        for (uint32_t n = 0; n < o->tw->n_nodes; n++)
            if (o->b[n].known && o->b[n].list != 36 &&
                o->tw->now - o->b[n].at_ns >= duration &&
                (due == TWIN_NONE || o->b[n].key < o->b[due].key))
                due = n;
        if (due != TWIN_NONE)
            put(o, 36, due);
    }
}

uint32_t twin_order_arrive(struct twin_order *o, const struct req *r, uint64_t in_use, bool one,
                           order_may_go go, const void *user, const uint32_t **gone)
{
    const struct kvc_trace *t = o->tw->trace;

    o->may_go = go;
    o->user = user;
    o->in_use = in_use;
    o->one = one;
    o->n_gone = 0;
    o->request++;
    for (uint32_t s = t->prompt_seg[r->index]; s != KVC_SEG_NONE; s = t->seg_parent[s])
        for (uint32_t i = t->seg_len[s]; i-- > 0;)
            ask(o, o->tw->seg_base[s] + i);
    if (strcmp(o->name, "wtinylfu") == 0 &&
        (double)o->counted >= option(o, "sample", 10) * (double)o->capacity) {
        o->counted /= 2;
        for (uint32_t n = 0; n < o->tw->n_nodes; n++)
            o->b[n].sketch /= 2;
    }
    if (strcmp(o->name, "priority") == 0)
        end_levels(o);
    if (strcmp(o->name, "watermark") == 0 && !one &&
        (double)in_use > option(o, "high", 0.9) * (double)o->capacity + 1e-9)
        watermark(o, in_use);
    *gone = o->gone;
    return o->n_gone;
}

/* ---- uses ---- */

static void come(struct twin_order *o, uint32_t n)
{
    struct block *b = &o->b[n];
    uint8_t was = b->list;

    b->known = true;
    b->visited = false;
    b->count = 1;
    b->born = o->request;
    if (o->table) {
        uint32_t at = o->hole < o->size ? o->hole : (uint32_t)o->size;

        o->hole = TWIN_NONE;
        if (at < o->size) {
            o->table[o->size] = o->table[at];
            o->b[o->table[at]].key = o->size;
        }
        o->table[at] = n;
        b->key = at;
    }
    o->size++;
    if (strcmp(o->name, "s3fifo") == 0) {
        b->count = 0;
        put(o, was ? 2 : 1, n);
    } else if (strcmp(o->name, "twoq") == 0) {
        put(o, was ? 2 : 1, n);
        trim(o, 3, o->ghosts);
    } else if (strcmp(o->name, "arc") == 0) {
        put(o, was ? 2 : 1, n);
        while (!was && o->count[3] && o->count[1] + o->count[3] > o->capacity)
            trim(o, 3, o->count[3] - 1);
        while (!was && o->count[4] && o->size + o->count[3] + o->count[4] > 2 * o->capacity)
            trim(o, 4, o->count[4] - 1);
    } else {
        put(o, 1, n);
    }
}

/* Whose priority a block gets. */
static uint8_t level(const struct twin_order *o, uint32_t n)
{
    bool head = (double)o->tw->node_depth[n] * o->tw->B < option(o, "head", 1024);
    bool theirs = o->tenant == (uint32_t)option(o, "tenant", 4294967295.0) && o->tenant != KVC_ID_NONE;

    return (uint8_t)(1 + (head     ? option(o, "headlevel", 80)
                          : theirs ? option(o, "tenantlevel", 60)
                                   : option(o, "level", 35)));
}

static void touched(struct twin_order *o, uint32_t n)
{
    struct block *b = &o->b[n];

    b->visited = true;
    b->count++;
    if (strcmp(o->name, "s3fifo") == 0)
        b->count = b->count > 3 ? 3 : b->count;
    else if (strcmp(o->name, "arc") == 0)
        put(o, 2, n);
    else if (strcmp(o->name, "wtinylfu") == 0)
        put(o, b->list == 1 ? 1 : 3, n);
    else if (strcmp(o->name, "sieve") != 0 && strcmp(o->name, "random") != 0 &&
             (strcmp(o->name, "twoq") != 0 || b->list == 2))
        put(o, b->list, n);
}

static void moves(struct twin_order *o)
{
    if (strcmp(o->name, "wtinylfu") != 0)
        return;
    while (o->count[1] > o->small)
        put(o, 2, oldest(o, 1, 0, false));
    while (o->count[3] > part(o->capacity - o->small, option(o, "protected", 0.8)))
        put(o, 2, oldest(o, 3, 0, false));
}

void twin_order_use(struct twin_order *o, uint32_t n, uint32_t tenant, enum order_kind kind)
{
    struct block *b = &o->b[n];
    bool fresh = !b->known;

    o->tenant = tenant;
    if (!fresh && kind == ORDER_COME)
        return;
    if (fresh) {
        come(o, n);
    } else if (kind == ORDER_USE) {
        touched(o, n);
    } else if (strcmp(o->name, "sieve") != 0 && strcmp(o->name, "s3fifo") != 0 &&
               strcmp(o->name, "random") != 0 && (strcmp(o->name, "twoq") != 0 || b->list == 2)) {
        put(o, b->list, n);
    }
    if (strcmp(o->name, "priority") == 0) {
        if (fresh || kind == ORDER_USE)
            put(o, level(o, n), n);
        b->at_ns = o->tw->now;
        b->key = ++o->clock; /* of the release */
    }
    if (fresh || kind == ORDER_USE) {
        if (strcmp(o->name, "plfu") == 0)
            b->count = (uint32_t)b->asked;
        if (strcmp(o->name, "gdsf") == 0)
            b->key = o->floor + b->count;
        if (strcmp(o->name, "lruk") == 0)
            b->key = b->when[1];
    }
    moves(o);
}

/* ---- */

struct twin_order *twin_order_create(const struct twin *tw, const char *spec, uint64_t capacity)
{
    struct twin_order *o;

    if (!spec[0] || twin_is(spec, "lru") || twin_is(spec, "fifo") || twin_is(spec, "ttl") ||
        twin_is(spec, "ttlfixed"))
        return NULL;
    o = twin_alloc(1, sizeof *o);
    o->tw = tw;
    o->spec = spec;
    snprintf(o->name, sizeof o->name, "%.*s", (int)strcspn(spec, ":"), spec);
    o->capacity = capacity = capacity ? capacity : 1;
    o->b = twin_alloc(tw->n_nodes, sizeof *o->b);
    o->gone = twin_alloc(tw->n_nodes, sizeof *o->gone);
    o->hand = o->hole = TWIN_NONE;
    if (strcmp(o->name, "random") == 0)
        o->table = twin_alloc(tw->n_nodes, sizeof *o->table);
    o->rng = kvc_rng_stream((uint64_t)option(o, "seed", 0), "random");
    o->small = part(capacity, strcmp(o->name, "s3fifo") == 0 ? option(o, "small", 0.1)
                              : strcmp(o->name, "twoq") == 0 ? option(o, "in", 0.25)
                                                             : option(o, "window", 0.01));
    o->small = o->small ? o->small : 1;
    o->ghosts = part(capacity, option(o, "out", 0.5));
    o->ghosts = o->ghosts ? o->ghosts : 1;
    if (strcmp(o->name, "s3fifo") == 0)
        o->ghosts = part(capacity - o->small, option(o, "ghosts", 1));
    return o;
}

void twin_order_destroy(struct twin_order *o)
{
    if (!o)
        return;
    kvc_free(o->b);
    kvc_free(o->gone);
    kvc_free(o->table);
    kvc_free(o);
}
