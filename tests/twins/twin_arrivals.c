/* SPDX-License-Identifier: Apache-2.0
 * When the slow replay's requests arrive, by the trace's times and by what clients have seen. */
#include "tests/twins/twin_internal.h"

#include "base/alloc.h"

static void plan_open(struct twin *tw)
{
    const uint64_t *at = tw->trace->arrival_ns;

    for (uint32_t i = 0; i < tw->n_req;) {
        uint32_t m = 1;
        uint64_t t = (uint64_t)((double)at[i] / tw->sc->arrivals.scale + 0.5);

        while (i + m < tw->n_req && at[i + m] == at[i])
            m++;
        for (uint32_t k = 0; k < m; k++)
            tw->pending[i + k].time = t + tw->sc->arrivals.spread_ns * k / m;
        i += m;
    }
}

static uint64_t think_of(const struct twin *tw, uint32_t i)
{
    return tw->trace->think_ns && tw->trace->think_ns[i] != KVC_TIME_NONE ? tw->trace->think_ns[i]
                                                                         : 0;
}

/* Chains the turns of each session; a request without session is one of its own. */
static void chain_turns(struct twin *tw)
{
    const struct kvc_trace *t = tw->trace;
    uint32_t *last = twin_alloc((size_t)t->n_sessions, sizeof *last);

    for (uint32_t s = 0; s < t->n_sessions; s++)
        last[s] = TWIN_NONE;
    for (uint32_t i = 0; i < tw->n_req; i++) {
        uint32_t s = t->session ? t->session[i] : KVC_ID_NONE;

        if (s != KVC_ID_NONE && last[s] != TWIN_NONE)
            tw->next_turn[last[s]] = i;
        else
            tw->first_of_session[tw->n_sessions++] = i;
        if (s != KVC_ID_NONE)
            last[s] = i;
    }
    kvc_free(last);
}

/* Whose turn it is in rounds: the least turn not asked for, of equals the first request. */
static uint32_t next_in_rounds(const struct twin *tw, uint32_t *turn)
{
    uint32_t best = TWIN_NONE;

    for (uint32_t i = 0; i < tw->n_req; i++) {
        uint32_t k = 0;

        for (uint32_t j = 0; j < i; j++)
            if (tw->trace->session && tw->trace->session[i] != KVC_ID_NONE)
                k += tw->trace->session[j] == tw->trace->session[i];
        if (!tw->sent[i] && (best == TWIN_NONE || k < *turn)) {
            best = i;
            *turn = k;
        }
    }
    return best;
}

static void ask_in_rounds(struct twin *tw, uint64_t at)
{
    for (;;) {
        uint32_t turn = 0, i = next_in_rounds(tw, &turn);

        if (i == TWIN_NONE || tw->under_way == tw->sc->arrivals.concurrency ||
            (turn != tw->round && tw->under_way))
            return;
        if (turn != tw->round)
            tw->round_began = at;
        tw->round = turn;
        tw->sent[i] = true;
        tw->under_way++;
        tw->pending[i].time = tw->round_began + think_of(tw, i);
        if (tw->pending[i].time < at)
            tw->pending[i].time = at;
    }
}

static void plan_closed(struct twin *tw)
{
    if (tw->sc->arrivals.rounds) {
        ask_in_rounds(tw, 0);
        return;
    }
    chain_turns(tw);
    for (uint32_t lane = 0; lane < tw->sc->arrivals.concurrency; lane++)
        if (tw->next_session < tw->n_sessions)
            tw->pending[tw->first_of_session[tw->next_session++]].time = 0;
}

/* Later turns wait until the one before them has ended. */
static void plan_paced(struct twin *tw)
{
    plan_open(tw);
    chain_turns(tw);
    for (uint32_t i = 0; i < tw->n_req; i++)
        tw->own_time[i] = tw->pending[i].time;
    for (uint32_t i = 0; i < tw->n_req; i++)
        if (tw->next_turn[i] != TWIN_NONE)
            tw->pending[tw->next_turn[i]].time = KVC_TIME_NONE;
}

void arrivals_plan(struct twin *tw)
{
    if (tw->sc->arrivals.mode == KVC_ARRIVALS_CLOSED)
        plan_closed(tw);
    else if (tw->sc->arrivals.mode == KVC_ARRIVALS_PACED)
        plan_paced(tw);
    else
        plan_open(tw);
}

void arrivals_client_sees_end(struct twin *tw, const struct req *r, uint64_t at)
{
    uint32_t next = tw->next_turn[r->index];

    if (tw->sc->arrivals.mode == KVC_ARRIVALS_PACED && next != TWIN_NONE)
        tw->pending[next].time = tw->own_time[next] > at ? tw->own_time[next] : at;
    if (tw->sc->arrivals.mode != KVC_ARRIVALS_CLOSED)
        return;
    if (tw->sc->arrivals.rounds) {
        tw->under_way--;
        ask_in_rounds(tw, at);
        return;
    }
    if (next == TWIN_NONE) {
        if (tw->next_session < tw->n_sessions)
            tw->pending[tw->first_of_session[tw->next_session++]].time = at;
        return;
    }
    tw->pending[next].time = at + think_of(tw, next);
}
