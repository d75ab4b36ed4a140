/* SPDX-License-Identifier: Apache-2.0
 * Policies of the slow replay that learn from what was asked for before. */
#include "tests/twins/twin_order_internal.h"

#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"

/* ---- lirs: 1 LIR, 2 HIR, 3 HIR that left; key is when a block was touched last ---- */

static void lirs_start(struct twin_order *o)
{
    o->small = order_at_least_one(order_part(o->capacity, order_option(o, "hir", 0.01)));
}

/* Touched later than some LIR block. */
static bool stacked(const struct twin_order *o, uint32_t n)
{
    uint32_t first = order_oldest(o, 1, 0, false);

    return first != TWIN_NONE && o->b[n].key > o->b[first].key;
}

static void to_lir_or_hir(struct twin_order *o, uint32_t n, bool lir, bool swap)
{
    if (swap)
        order_put(o, 2, order_oldest(o, 1, 0, false));
    order_put(o, lir || swap ? 1 : 2, n);
    o->b[n].key = ++o->clock;
}

static void lirs_come(struct twin_order *o, uint32_t n, uint8_t was)
{
    bool room = o->count[1] < o->capacity - o->small;

    to_lir_or_hir(o, n, room, !room && was && stacked(o, n));
}

static void lirs_use(struct twin_order *o, uint32_t n)
{
    bool lir = o->b[n].list == 1;

    to_lir_or_hir(o, n, lir, !lir && stacked(o, n));
}

static void lirs_again(struct twin_order *o, uint32_t n)
{
    to_lir_or_hir(o, n, o->b[n].list == 1, false);
}

static void lirs(struct twin_order *o)
{
    uint32_t n = order_oldest(o, 2, 0, true);

    if (n != TWIN_NONE)
        order_leave(o, n, stacked(o, n) ? 3 : 0);
    else
        order_leave(o, order_oldest(o, 1, 0, true), 0);
}

/* ---- lecar: 1 here, 2 gone by LRU, 3 gone by LFU with key touches at time born ---- */

static void lecar_start(struct twin_order *o)
{
    o->rng = kvc_rng_stream((uint64_t)order_option(o, "seed", 0), "lecar");
    o->target = 0.5;
}

static void lecar_ask(struct twin_order *o, uint32_t n)
{
    const struct order_block *b = &o->b[n];
    double age = (double)(o->counted + 1 - b->born);
    double fade = pow(order_option(o, "discount", 0.005), age / (double)o->capacity);
    double less = exp(-order_option(o, "learning", 0.45) * fade);
    double lru = o->target * (b->list == 2 ? less : 1);
    double lfu = (1 - o->target) * (b->list == 3 ? less : 1);

    if (b->list > 1)
        o->target = fmin(0.99, fmax(0.01, lru / (lru + lfu)));
}

static void lecar_come(struct twin_order *o, uint32_t n, uint8_t was)
{
    o->counted++;
    o->b[n].count = 1 + (was ? (uint32_t)o->b[n].key : 0);
    order_put(o, 1, n);
    order_trim(o, 2, o->capacity);
    order_trim(o, 3, o->capacity);
}

static void lecar_use(struct twin_order *o, uint32_t n)
{
    o->counted++;
    order_put(o, 1, n);
}

static bool fewest(const struct twin_order *o, uint32_t a, uint32_t b)
{
    return o->b[a].count != o->b[b].count ? o->b[a].count < o->b[b].count : order_by_put(o, a, b);
}

static void lecar(struct twin_order *o)
{
    uint32_t lru = order_oldest(o, 1, 0, true), lfu = order_least(o, fewest), n;

    if (lru == TWIN_NONE)
        return;
    n = kvc_rng_unit(&o->rng) < o->target ? lru : lfu;
    o->b[n].key = o->b[n].count;
    o->b[n].born = o->counted + 1;
    order_leave(o, n, lru == lfu ? 0 : n == lru ? 2 : 3);
    order_trim(o, 2, o->capacity + 1); /* one more than there are, until somebody comes */
    order_trim(o, 3, o->capacity + 1);
}

/* ---- thinktime: 1 what no session has, 2 what some has ---- */

static void thinktime_start(struct twin_order *o)
{
    const struct kvc_trace *t = o->tw->trace;
    uint32_t named = 0;

    for (uint32_t i = 0; t->session && i < t->n_requests; i++)
        if (t->session[i] != KVC_ID_NONE && t->session[i] >= named)
            named = t->session[i] + 1;
    o->n_sessions = named + (uint32_t)t->n_requests; /* the others are one for each request */
    o->session = twin_alloc(o->n_sessions, sizeof *o->session);
}

static bool has(const struct twin_order *o, uint32_t s, uint32_t n)
{
    return o->session[s].live && order_lies_below(o, o->session[s].leaf, n);
}

static bool had_by_another(const struct twin_order *o, uint32_t but, uint32_t n)
{
    for (uint32_t s = 0; s < o->n_sessions; s++)
        if (s != but && has(o, s, n))
            return true;
    return false;
}

static void thinktime_come(struct twin_order *o, uint32_t n, uint8_t was)
{
    (void)was;
    order_put(o, had_by_another(o, TWIN_NONE, n) ? 2 : 1, n);
}

/* Blocks up from one that some session has now, or none any more. */
static void sort(struct twin_order *o, uint32_t n)
{
    for (; n != TWIN_NONE; n = o->tw->node_parent[n]) {
        uint8_t list = had_by_another(o, TWIN_NONE, n) ? 2 : 1;

        if (o->b[n].known && o->b[n].list != list)
            order_put(o, list, n);
    }
}

static void thinktime_arrive(struct twin_order *o, const struct req *r)
{
    const struct kvc_trace *t = o->tw->trace;
    uint32_t seg = t->prompt_seg[r->index], id = t->session ? t->session[r->index] : KVC_ID_NONE;
    bool named = id != KVC_ID_NONE;
    struct order_session *s =
        &o->session[named ? id : o->n_sessions - t->n_requests + r->index];
    uint32_t old = s->live ? s->leaf : TWIN_NONE;

    o->awaits = o->in_use > o->size;
    if (seg == KVC_SEG_NONE)
        return;
    s->leaf = o->tw->seg_base[seg] + t->seg_len[seg] - 1;
    s->live = true;
    sort(o, s->leaf);
    sort(o, old);
    if (s->asked && named) {
        s->sum_ns += o->now_ns - s->last_ns;
        o->sum_ns += o->now_ns - s->last_ns;
        s->pauses++;
        o->pauses++;
    }
    s->back_ns = o->now_ns + (s->pauses   ? s->sum_ns / s->pauses
                              : o->pauses ? o->sum_ns / o->pauses
                                          : (uint64_t)order_option(o, "pause", 60000) * 1000000);
    s->last_ns = o->now_ns;
    s->asked = (uint32_t)o->request;
}

static uint64_t away(const struct twin_order *o, const struct order_session *s)
{
    return s->back_ns > o->now_ns ? s->back_ns - o->now_ns : o->now_ns - s->back_ns;
}

static uint32_t farthest(const struct twin_order *o, const bool *aside)
{
    uint32_t best = TWIN_NONE;

    for (uint32_t i = 0; i < o->n_sessions; i++) {
        const struct order_session *s = &o->session[i];
        const struct order_session *b = best == TWIN_NONE ? s : &o->session[best];

        if (s->live && !aside[i] &&
            (b == s || away(o, s) > away(o, b) ||
             (away(o, s) == away(o, b) && s->asked < b->asked)))
            best = i;
    }
    return best;
}

/* The deepest block here that only this session has. */
static uint32_t own(const struct twin_order *o, uint32_t s)
{
    for (uint32_t n = o->session[s].leaf; n != TWIN_NONE; n = o->tw->node_parent[n]) {
        if (had_by_another(o, s, n))
            return TWIN_NONE;
        if (o->b[n].known)
            return n;
    }
    return TWIN_NONE;
}

/* Whether a session without blocks here is kept in mind: they may be on their way. */
static bool expected(const struct twin_order *o, uint32_t s, bool patient)
{
    uint64_t since = o->request - o->session[s].asked;

    return since == 0 || (patient && since < 256 && o->awaits);
}

static uint32_t of_sessions(struct twin_order *o, bool patient)
{
    bool *aside = twin_alloc(o->n_sessions, sizeof *aside);
    uint32_t s, n = TWIN_NONE;

    while ((s = farthest(o, aside)) != TWIN_NONE) {
        n = own(o, s);
        if (n != TWIN_NONE && order_may(o, n))
            break;
        o->session[s].live = n != TWIN_NONE || expected(o, s, patient);
        aside[s] = true;
        n = TWIN_NONE;
    }
    kvc_free(aside);
    return n;
}

static void thinktime(struct twin_order *o)
{
    uint32_t n = order_oldest(o, 1, 0, true);

    for (int patient = 1; n == TWIN_NONE && patient >= 0; patient--)
        n = of_sessions(o, patient);
    order_leave(o, order_either(n, order_oldest(o, 2, 0, true)), 0);
}

const struct order_rule order_learned[] = {
    {.name = "lirs", .start = lirs_start, .come = lirs_come, .use = lirs_use,
     .again = lirs_again, .evict = lirs},
    {.name = "lecar", .start = lecar_start, .ask = lecar_ask, .come = lecar_come,
     .use = lecar_use, .evict = lecar},
    {.name = "thinktime", .start = thinktime_start, .arrive = thinktime_arrive,
     .come = thinktime_come, .use = order_stay, .again = order_stay, .evict = thinktime},
    {.name = NULL},
};
