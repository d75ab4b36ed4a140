/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's blocks below HBM whose time is up. */
#include "tests/twins/twin_tiers.h"

static bool expires_before(const struct stored *a, const struct stored *b, bool fifo)
{
    uint64_t x = fifo ? a->inserted : a->touched, y = fifo ? b->inserted : b->touched;

    if (a->ttl->ns != b->ttl->ns)
        return a->ttl->ns < b->ttl->ns;
    if (a->ttl->down != b->ttl->down)
        return a->ttl->down < b->ttl->down;
    return x < y || (x == y && a->depth > b->depth);
}

static bool due(const struct stored *s, uint64_t now)
{
    return s->holds == 0 && s->ttl->ns != KVC_TIME_NONE && s->touched_ns + s->ttl->ns <= now;
}

uint64_t tiers_next_expiry(const struct twin *tw)
{
    uint64_t first = KVC_TIME_NONE;

    for (int k = 0; k < 3; k++)
        for (uint32_t i = 0; i < tw->tiers->n_of[k]; i++)
            for (uint32_t j = 0; j < tw->tiers->of[k][i].n; j++) {
                const struct stored *s = &tw->tiers->of[k][i].at[j];

                if (s->holds == 0 && s->ttl->ns != KVC_TIME_NONE &&
                    s->touched_ns + s->ttl->ns < first)
                    first = s->touched_ns + s->ttl->ns;
            }
    return first;
}

static void expire_instance(struct twin *tw, int k, uint32_t i, bool round)
{
    struct instance *inst = &tw->tiers->of[k][i];
    struct batch gone = batch_new(inst->n);
    bool fifo = twin_is_fifo(tw->sc->tiers[k].policy);
    uint32_t rep = 0;

    for (;;) {
        uint32_t best = TWIN_NONE;

        for (uint32_t j = 0; j < inst->n; j++)
            if (due(&inst->at[j], tw->now) &&
                (best == TWIN_NONE || expires_before(&inst->at[j], &inst->at[best], fifo)))
                best = j;
        if (best == TWIN_NONE)
            break;
        twin_evict(tw, k, inst, best, TWIN_TTL, &gone);
    }
    if (round)
        twin_round(tw, k, inst, &gone);
    while (gone.n && twin_instance(tw, k, rep) != i) /* the first replica that uses it */
        rep++;
    twin_pass_down(tw, k, &gone, &tw->rep[rep]);
}

void tiers_expire(struct twin *tw, bool round)
{
    for (int k = 0; k < 3; k++)
        for (uint32_t i = 0; i < tw->tiers->n_of[k]; i++)
            expire_instance(tw, k, i, round);
}

bool tiers_round_due(const struct twin *tw)
{
    for (int k = 0; k < 3; k++)
        for (uint32_t i = 0; i < tw->tiers->n_of[k]; i++)
            if (twin_round_due(tw, k, &tw->tiers->of[k][i]))
                return true;
    return false;
}
