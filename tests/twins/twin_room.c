/* SPDX-License-Identifier: Apache-2.0
 * Whose block of a tier goes next in the slow replay, and how much room there is for a tenant. */
#include "tests/twins/twin_tiers.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

static struct twin_use *use_of(const struct twin *tw, const struct instance *inst)
{
    struct twin_use *use = twin_alloc(tw->n_tenants, sizeof *use);

    for (uint32_t i = 0; i < inst->n; i++) {
        use[inst->at[i].tenant].used++;
        use[inst->at[i].tenant].unheld += inst->at[i].holds == 0;
        use[inst->at[i].tenant].unheld_blocks += inst->at[i].holds == 0;
    }
    for (uint32_t t = 0; t < tw->n_tenants; t++)
        use[t].used += inst->promised ? inst->promised[t] : 0;
    return use;
}

/* only_own: for a hard quota, which gives way to itself whatever room there is. */
static uint32_t victim(struct twin *tw, int k, const struct instance *inst, uint32_t by,
                       uint64_t take, bool only_own)
{
    bool fifo = twin_is_fifo(tw->sc->tiers[k].policy);
    struct twin_use *use = use_of(tw, inst);
    uint32_t best = TWIN_NONE;
    uint64_t rank, best_rank = 0;

    for (uint32_t i = 0; i < inst->n; i++) {
        const struct stored *s = &inst->at[i], *v = best == TWIN_NONE ? NULL : &inst->at[best];
        uint64_t mine = fifo ? s->inserted : s->touched;
        uint64_t other = !v ? 0 : fifo ? v->inserted : v->touched;

        if (s->holds || !tenants_may_go(tw, 1 + k, use, s->tenant, by, take, &rank) ||
            (only_own && s->tenant != by))
            continue;
        if (!v || rank < best_rank ||
            (rank == best_rank && (mine < other || (mine == other && s->depth > v->depth)))) {
            best = i;
            best_rank = rank;
        }
    }
    if (best != TWIN_NONE && inst->at[best].tenant != by &&
        use[inst->at[best].tenant].used <= tw->rules[inst->at[best].tenant].reserve[1 + k])
        tw->out->wrong = "somebody's reserved block went to another";
    kvc_free(use);
    return best;
}

static void remember(struct batch *gone, const struct stored *s)
{
    for (uint32_t i = gone->n++; i > 0; i--) {
        gone->nodes[i] = gone->nodes[i - 1];
        gone->depths[i] = gone->depths[i - 1];
        gone->tenants[i] = gone->tenants[i - 1];
    }
    gone->nodes[0] = s->node;
    gone->depths[0] = s->depth;
    gone->tenants[0] = s->tenant;
}

void twin_evict(struct twin *tw, int k, struct instance *inst, uint32_t at, uint32_t by,
                  struct batch *gone)
{
    struct stored s = inst->at[at];

    inst->at[at] = inst->at[--inst->n];
    if (inst->order)
        twin_order_forget(inst->order, s.node);
    tenants_lost(tw, 1 + k, s.node, s.tenant, by);
    if (by != TWIN_TTL)
        tw->out->tier_evicted_blocks[k]++;
    if (by != TWIN_TTL || s.ttl->down)
        remember(gone, &s);
}

/* ---- with a policy ---- */

struct look {
    const struct twin *tw;
    const struct instance *inst;
    struct twin_use *use;
    int k;
    uint32_t by, only;
    uint64_t take, rank;
};

static bool rank_of(const struct look *l, const struct stored *s, uint64_t *rank)
{
    *rank = 0;
    if (s->holds || (l->only != TWIN_NONE && s->tenant != l->only))
        return false;
    return l->only != TWIN_NONE || !l->use ||
           tenants_may_go(l->tw, 1 + l->k, l->use, s->tenant, l->by, l->take, rank);
}

static bool may_go(const void *user, uint32_t node)
{
    const struct look *l = user;
    const struct stored *s = find(l->inst, node);
    uint64_t rank;

    return s && rank_of(l, s, &rank) && rank == l->rank;
}

static uint64_t taken_of(const struct twin *tw, const struct instance *inst)
{
    uint64_t n = inst->n;

    for (uint32_t t = 0; inst->promised && t < tw->n_tenants; t++)
        n += inst->promised[t];
    return n;
}

static void evict_nodes(struct twin *tw, int k, struct instance *inst, uint32_t by,
                        const uint32_t *nodes, uint32_t n, struct batch *gone)
{
    for (uint32_t i = 0; i < n; i++)
        twin_evict(tw, k, inst, (uint32_t)(find(inst, nodes[i]) - inst->at), by, gone);
}

static uint32_t evict_by_policy(struct twin *tw, int k, struct instance *inst, uint32_t by,
                                uint64_t take, uint32_t only, struct batch *gone)
{
    struct twin_use *use = tw->limited[1 + k] ? use_of(tw, inst) : NULL;
    struct look l = {tw, inst, use, k, by, only, take, UINT64_MAX};
    const uint32_t *nodes;
    uint64_t rank;
    uint32_t n;

    for (uint32_t i = 0; i < inst->n; i++)
        if (rank_of(&l, &inst->at[i], &rank) && rank < l.rank)
            l.rank = rank;
    n = twin_order_evict(inst->order, inst->newcomer, tw->limited[1 + k], may_go, &l, &nodes);
    kvc_free(use);
    evict_nodes(tw, k, inst, by, nodes, n, gone);
    return n;
}

void twin_learn(const struct twin *tw, const struct instance *inst, const struct req *r)
{
    if (inst->order)
        twin_order_arrive(inst->order, r, taken_of(tw, inst));
}

void twin_rest(struct twin *tw, int k, struct instance *inst, uint32_t by, struct batch *gone)
{
    struct look l = {.tw = tw, .inst = inst, .only = TWIN_NONE};
    const uint32_t *nodes;

    if (!inst->order || tw->limited[1 + k])
        return;
    uint32_t n = twin_order_rest(inst->order, taken_of(tw, inst), may_go, &l, &nodes);

    evict_nodes(tw, k, inst, by, nodes, n, gone);
}

static uint64_t excess(const struct twin *tw, int k, const struct instance *inst, uint32_t by,
                       uint64_t more)
{
    struct twin_use *use = use_of(tw, inst);
    uint64_t used = use[by].used + more, quota = tw->rules[by].quota[1 + k];

    kvc_free(use);
    return tw->rules[by].mode == KVC_QUOTA_HARD && used > quota ? used - quota : 0;
}

/* Makes way for as many of need blocks of a tenant's as can be. Returns how many. */
uint64_t twin_give_room(struct twin *tw, int k, struct instance *inst, uint64_t need,
                          uint32_t by, struct batch *gone)
{
    struct twin_use *use = use_of(tw, inst);
    uint64_t taken = inst->n, room, over;
    uint32_t v;

    for (uint32_t t = 0; t < tw->n_tenants; t++)
        taken += inst->promised[t];
    room = tenants_free(tw, 1 + k, use, inst->capacity - taken, by);
    kvc_free(use);
    room = room < need ? room : need;
    while ((over = excess(tw, k, inst, by, room)) &&
           (v = victim(tw, k, inst, by, room, true)) != TWIN_NONE) {
        if (inst->order) {
            taken -= evict_by_policy(tw, k, inst, by, room, by, gone);
            continue;
        }
        twin_evict(tw, k, inst, v, by, gone);
        taken--;
    }
    room = room > over ? room - over : 0;
    while (taken + room > inst->capacity) {
        v = victim(tw, k, inst, by, room, false);
        must(v != TWIN_NONE);
        if (inst->order) {
            taken -= evict_by_policy(tw, k, inst, by, room, TWIN_NONE, gone);
            continue;
        }
        twin_evict(tw, k, inst, v, by, gone);
        taken--;
    }
    return room;
}

static uint64_t round_of(const struct twin *tw, int k, const struct instance *inst, uint32_t t)
{
    struct twin_use *use = use_of(tw, inst);
    uint64_t share = tenants_round(tw, 1 + k, use, t);

    kvc_free(use);
    return share;
}

bool twin_round_due(const struct twin *tw, int k, const struct instance *inst)
{
    for (uint32_t t = 0; t < tw->n_tenants; t++)
        if (round_of(tw, k, inst, t))
            return true;
    return false;
}

void twin_round(struct twin *tw, int k, struct instance *inst, struct batch *gone)
{
    for (uint32_t t = 0; t < tw->n_tenants; t++) {
        uint64_t share = round_of(tw, k, inst, t), v;
        uint32_t before = inst->n;

        inst->newcomer = TWIN_NONE;
        while (before - inst->n < share &&
               (v = victim(tw, k, inst, t, 0, true)) != TWIN_NONE) {
            if (inst->order)
                evict_by_policy(tw, k, inst, t, 0, t, gone);
            else
                twin_evict(tw, k, inst, (uint32_t)v, t, gone);
        }
    }
}

struct batch batch_new(uint32_t n)
{
    return (struct batch){twin_alloc(n, sizeof(uint32_t)), twin_alloc(n, sizeof(uint32_t)),
                          twin_alloc(n, sizeof(uint32_t)), 0};
}

void batch_add(struct batch *b, uint32_t node, uint32_t depth, uint32_t tenant)
{
    b->nodes[b->n] = node;
    b->depths[b->n] = depth;
    b->tenants[b->n++] = tenant;
}

void batch_free(struct batch *b)
{
    kvc_free(b->nodes);
    kvc_free(b->depths);
    kvc_free(b->tenants);
}
