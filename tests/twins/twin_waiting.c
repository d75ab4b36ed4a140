/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's orders of requests: whoever waits is asked about each time somebody is looked
 * at. */
#include "tests/twins/twin_internal.h"

#include <stdio.h>
#include <string.h>

static bool goes_by(const struct twin *tw, const char *order)
{
    return strncmp(tw->sc->engine.order, order, strlen(order)) == 0;
}

/* What a request has to beat: lower goes first. */
static double rank_of(struct twin *tw, const struct replica *rep, const struct req *r)
{
    uint32_t most = 128;
    struct reach reach;

    if (goes_by(tw, "shortest"))
        return r->N;
    if (goes_by(tw, "fair"))
        return rep->served[r->tenant];
    if (!goes_by(tw, "lpm") && !goes_by(tw, "uncached"))
        return 0;
    tiers_reach(tw, rep, r, r->N, &reach);
    sscanf(tw->sc->engine.order, "lpm:most=%u", &most);
    if (goes_by(tw, "lpm"))
        return rep->ranked > most ? 0 : -(double)reach.usable;
    return (double)r->N - (reach.T > reach.usable ? reach.T : reach.usable);
}

struct req *waiting_front(struct twin *tw, struct replica *rep, bool first)
{
    struct req *best = rep->waiting.at[0];
    bool fixed = goes_by(tw, "lpm") || goes_by(tw, "uncached"); /* for a step */

    if (first)
        rep->ranked = rep->waiting.n;
    for (uint32_t i = 0; i < rep->waiting.n; i++) {
        struct req *r = rep->waiting.at[i];

        if (first || !fixed)
            r->rank = rank_of(tw, rep, r);
        if (tw->rules[r->tenant].priority == tw->rules[best->tenant].priority &&
            r->rank < best->rank)
            best = r;
    }
    return best;
}

/* The virtual token counter: who has nothing waiting is lifted as it comes. */
void waiting_joins(struct twin *tw, struct replica *rep, const struct req *r)
{
    double least = -1;

    for (uint32_t i = 0; i < rep->waiting.n; i++) {
        double there = rep->served[rep->waiting.at[i]->tenant];

        if (rep->waiting.at[i]->tenant == r->tenant)
            return;
        least = least < 0 || there < least ? there : least;
    }
    if (!rep->waiting.n && rep->left_queue)
        least = rep->served[rep->left_queue - 1];
    if (rep->served[r->tenant] < least)
        rep->served[r->tenant] = least;
    (void)tw;
}

void waiting_leaves(struct replica *rep, const struct req *r, bool admitted)
{
    rep->left_queue = r->tenant + 1;
    if (admitted)
        rep->served[r->tenant] += r->L;
}
