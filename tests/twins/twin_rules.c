/* SPDX-License-Identifier: Apache-2.0
 * The rules by which the slow replay's scheduler follows SGLang or TensorRT-LLM, as "Other engines'
 * rules" of docs/replay.md says. */
#include "tests/twins/twin_internal.h"

static uint64_t ceil_pages(const struct twin *tw, uint64_t tokens)
{
    return (tokens + tw->P - 1) / tw->P;
}

static uint64_t hit_pages(const struct twin *tw, const struct req *r)
{
    uint32_t h = (r->usable + tw->B - 1) / tw->B;

    return (uint64_t)h * tw->B / tw->P;
}

uint64_t pages_for(const struct twin *tw, const struct req *r, uint64_t c)
{
    uint64_t need = ceil_pages(tw, c), held = hit_pages(tw, r);

    return need > held ? need - held : 0;
}

bool twin_decodes(const struct twin *tw, const struct req *r)
{
    bool chunk = tw->sc->engine.prefill == KVC_PREFILL_FIRST && r->behind;

    return r->generated && r->c + 1 == r->N && !chunk;
}

static uint64_t promised(const struct twin *tw, const struct reqs *list)
{
    uint64_t pages = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        const struct req *r = list->at[i];

        pages += ceil_pages(tw, (uint64_t)r->L + r->O - 1) - hit_pages(tw, r) - r->new_pages;
    }
    return pages;
}

static uint64_t clipped(const struct req *r)
{
    return r->O - r->generated < 4096 ? r->O - r->generated : 4096;
}

static double ratio_now(const struct replica *rep)
{
    double least = TWIN_RATIO * 0.14, ratio;

    if (rep->falls <= 0)
        return rep->ratio;
    ratio = rep->ratio - (TWIN_RATIO - least) / 600 * (double)rep->falls;
    return ratio > least ? ratio : least;
}

uint64_t rules_need(const struct twin *tw, const struct replica *rep, const struct req *r,
                    uint64_t now)
{
    uint64_t decoding = 0, beginning = 0, guess, beside = tw->setup->sequence_pages;
    uint64_t more = pages_for(tw, r, now) + beside;

    if (tw->sc->engine.reserve_output == KVC_RESERVE_FULL)
        return beside + ceil_pages(tw, (uint64_t)r->L + r->O - 1) - hit_pages(tw, r) +
               promised(tw, &rep->running) + promised(tw, &rep->parked) + promised(tw, &rep->ready);
    if (tw->sc->engine.reserve_output == KVC_RESERVE_NONE ||
        rep->running.n + rep->ready.n + rep->parked.n == 0)
        return more;
    for (uint32_t i = 0; i < rep->running.n; i++) {
        const struct req *q = rep->running.at[i];

        if (twin_decodes(tw, q))
            decoding += clipped(q);
        else if (q->c + q->sched == q->N)
            beginning += clipped(q);
    }
    double tokens = (double)(r->N - r->usable) + (double)clipped(r) +
                    (ratio_now(rep) * (double)decoding + (double)beginning);
    guess = (uint64_t)(tokens / tw->P) + 2 + beside;
    return guess > more ? guess : more;
}

struct req *rules_victim(const struct twin *tw, const struct replica *rep)
{
    struct req *best = rep->running.at[rep->running.n - 1];

    if (tw->sc->engine.preempt == KVC_PREEMPT_LAST)
        return best;
    best = rep->running.at[0];
    for (uint32_t i = 1; i < rep->running.n; i++) {
        struct req *r = rep->running.at[i];

        if (r->generated < best->generated || (r->generated == best->generated && r->L >= best->L))
            best = r;
    }
    return best;
}

void rules_guess_again(struct replica *rep)
{
    uint64_t done = 0, all = 1;

    for (uint32_t i = 0; i < rep->running.n; i++) {
        done += rep->running.at[i]->generated + 20;
        all += rep->running.at[i]->O;
    }
    rep->ratio = (double)done / (double)all;
    if (rep->ratio > 1)
        rep->ratio = 1;
    rep->falls = -1;
}
