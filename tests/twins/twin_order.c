/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/twins/twin_order_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- options ---- */

double order_option(const struct twin_order *o, const char *name, double otherwise)
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

uint64_t order_part(uint64_t of, double share)
{
    return (uint64_t)((double)of * share + 1e-9);
}

/* ---- lists by the time of putting ---- */

void order_take(struct twin_order *o, uint32_t n)
{
    if (o->b[n].list)
        o->count[o->b[n].list]--;
    o->b[n].list = 0;
}

void order_put(struct twin_order *o, uint8_t list, uint32_t n)
{
    order_take(o, n);
    o->b[n].list = list;
    o->b[n].put = ++o->clock;
    o->count[list]++;
}

void order_stay(struct twin_order *o, uint32_t n)
{
    (void)o, (void)n;
}

bool order_may(const struct twin_order *o, uint32_t n)
{
    return o->b[n].known && o->may_go(o->user, n);
}

uint32_t order_oldest(const struct twin_order *o, uint8_t list, uint64_t after, bool free)
{
    uint32_t best = TWIN_NONE;

    for (uint32_t n = 0; n < o->tw->n_nodes; n++)
        if (o->b[n].list == list && o->b[n].put > after && (!free || order_may(o, n)) &&
            (best == TWIN_NONE || o->b[n].put < o->b[best].put))
            best = n;
    return best;
}

void order_trim(struct twin_order *o, uint8_t list, uint64_t most)
{
    while (o->count[list] > most)
        order_take(o, order_oldest(o, list, 0, false));
}

bool order_lies_below(const struct twin_order *o, uint32_t n, uint32_t top)
{
    while (n != TWIN_NONE && n != top)
        n = o->tw->node_parent[n];
    return n == top;
}

bool order_leaf(const struct twin_order *o, uint32_t n)
{
    if (!order_may(o, n))
        return false;
    for (uint32_t m = 0; m < o->tw->n_nodes; m++)
        if (m != n && o->b[m].known && order_lies_below(o, m, n))
            return false;
    return true;
}

/* ---- what leaves ---- */

static void lose(struct twin_order *o, uint32_t n)
{
    o->b[n].known = false;
    o->size--;
    if (o->rule->gone)
        o->rule->gone(o, n);
    order_take(o, n);
}

void order_leave(struct twin_order *o, uint32_t n, uint8_t ghosts)
{
    if (n == TWIN_NONE)
        return;
    o->gone[o->n_gone++] = n;
    lose(o, n);
    if (ghosts)
        order_put(o, ghosts, n);
}

uint32_t order_least(const struct twin_order *o,
                     bool (*before)(const struct twin_order *o, uint32_t a, uint32_t b))
{
    uint32_t best = TWIN_NONE;

    for (uint32_t n = 0; n < o->tw->n_nodes; n++)
        if (order_may(o, n) && (best == TWIN_NONE || before(o, n, best)))
            best = n;
    return best;
}

uint32_t twin_order_evict(struct twin_order *o, uint32_t newcomer, bool one,
                          order_may_go go, const void *user, const uint32_t **gone)
{
    o->may_go = go;
    o->user = user;
    o->newcomer = newcomer;
    o->one = one;
    o->n_gone = 0;
    if (o->rule->evict)
        o->rule->evict(o);
    else
        order_leave(o, order_least(o, o->rule->before), 0);
    *gone = o->gone;
    return o->n_gone;
}

void twin_order_forget(struct twin_order *o, uint32_t n)
{
    if (o->b[n].known)
        lose(o, n);
}

/* ---- a request ---- */

void twin_order_arrive(struct twin_order *o, const struct req *r, uint64_t in_use)
{
    const struct kvc_trace *t = o->tw->trace;

    o->in_use = in_use;
    o->request++;
    o->now_ns = o->tw->now;
    for (uint32_t s = t->prompt_seg[r->index]; s != KVC_SEG_NONE; s = t->seg_parent[s])
        for (uint32_t i = t->seg_len[s]; i-- > 0;) {
            struct order_block *b = &o->b[o->tw->seg_base[s] + i];

            b->asked++;
            b->when[1] = b->when[0];
            b->when[0] = o->request;
            if (o->rule->ask)
                o->rule->ask(o, o->tw->seg_base[s] + i);
        }
    if (o->rule->arrive)
        o->rule->arrive(o, r);
}

uint32_t twin_order_rest(struct twin_order *o, uint64_t in_use, order_may_go go, const void *user,
                         const uint32_t **gone)
{
    o->may_go = go;
    o->user = user;
    o->in_use = in_use;
    o->one = false;
    o->n_gone = 0;
    if (o->rule->rest)
        o->rule->rest(o);
    *gone = o->gone;
    return o->n_gone;
}

/* ---- uses ---- */

void twin_order_turn(struct twin_order *o)
{
    if (o)
        o->matched = false;
}

static void come(struct twin_order *o, uint32_t n)
{
    struct order_block *b = &o->b[n];

    b->known = true;
    b->visited = false;
    b->count = 1;
    b->born = o->request;
    o->size++;
    if (o->rule->come)
        o->rule->come(o, n, b->list);
    else
        order_put(o, 1, n);
}

void twin_order_use(struct twin_order *o, uint32_t n, uint32_t tenant, enum order_kind kind)
{
    struct order_block *b = &o->b[n];
    bool fresh = !b->known, use = kind == ORDER_USE;
    void (*touch)(struct twin_order *, uint32_t) = use ? o->rule->use : o->rule->again;

    o->tenant = tenant;
    if (!fresh && kind == ORDER_COME)
        return;
    if (!fresh && use) {
        b->visited = true;
        b->count++;
    }
    if (fresh)
        come(o, n);
    else if (touch)
        touch(o, n);
    else
        order_put(o, b->list, n);
    if (o->rule->told)
        o->rule->told(o, n, fresh || use);
}

/* ---- */

static const struct order_rule *rule_of(const char *spec)
{
    const struct order_rule *const rooms[] = {order_counts, order_queues, order_trees,
                                              order_learned};

    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
        for (const struct order_rule *rule = rooms[i]; rule->name; rule++)
            if (twin_is(spec, rule->name))
                return rule;
    return NULL;
}

struct twin_order *twin_order_create(const struct twin *tw, const char *spec, uint64_t capacity)
{
    struct twin_order *o;

    if (!spec[0] || twin_is(spec, "lru") || twin_is(spec, "fifo") || twin_is(spec, "ttl") ||
        twin_is(spec, "ttlfixed"))
        return NULL;
    o = twin_alloc(1, sizeof *o);
    o->tw = tw;
    o->spec = spec;
    o->rule = rule_of(spec);
    if (!o->rule)
        abort(); /* a policy that has no slow twin */
    o->capacity = capacity ? capacity : 1;
    o->b = twin_alloc(tw->n_nodes, sizeof *o->b);
    o->gone = twin_alloc(tw->n_nodes, sizeof *o->gone);
    o->hand = o->hole = o->last_come = TWIN_NONE;
    if (o->rule->start)
        o->rule->start(o);
    return o;
}

void twin_order_destroy(struct twin_order *o)
{
    if (!o)
        return;
    kvc_free(o->b);
    kvc_free(o->gone);
    kvc_free(o->table);
    kvc_free(o->session);
    kvc_free(o);
}
