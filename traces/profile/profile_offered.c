/* SPDX-License-Identifier: Apache-2.0
 * A log without prefix information leaves reuse unknown. What it would be under stated
 * assumptions: prompts of a model that begin alike, turns that carry over what was before. */
#include "traces/profile/profile_parts.h"

#include "base/alloc.h"

#include <string.h>

static const struct kvc_offered offers[KVC_PROFILE_OFFERED] = {
    {256, KVC_CARRY_NONE, 0, 0},   {1024, KVC_CARRY_NONE, 0, 0},
    {4096, KVC_CARRY_NONE, 0, 0},  {0, KVC_CARRY_PROMPT, 0, 0},
    {0, KVC_CARRY_ANSWER, 0, 0},   {1024, KVC_CARRY_PROMPT, 0, 0},
    {1024, KVC_CARRY_ANSWER, 0, 0}, {4096, KVC_CARRY_PROMPT, 0, 0},
    {4096, KVC_CARRY_ANSWER, 0, 0}};

struct memory {
    uint32_t *longest; /* prompt of each model so far; the last: of rows without one */
    uint64_t *turn;    /* last request of each session, UINT64_MAX */
};

/* Tokens that a turn has from the one before: none if it is too short to hold all of it, else the
 * earlier prompt, and the answer if answers come back unchanged. */
static uint64_t carried(const struct kvc_trace *t, const struct memory *m, uint64_t r,
                        enum kvc_carry carry)
{
    uint32_t session = t->session ? t->session[r] : KVC_ID_NONE;
    if (carry == KVC_CARRY_NONE || session == KVC_ID_NONE || m->turn[session] == UINT64_MAX)
        return 0;
    uint64_t before = m->turn[session], whole = t->input_tokens[before];
    whole += t->output_tokens[before];
    if (t->input_tokens[r] < whole ||
        (t->model && t->model[before] != t->model[r])) /* another model's KV is of no use */
        return 0;
    return carry == KVC_CARRY_ANSWER ? whole : t->input_tokens[before];
}

static void offer(const struct kvc_trace *t, struct memory *m, struct kvc_offered *o)
{
    memset(m->longest, 0, ((size_t)t->n_models + 1) * sizeof(*m->longest));
    memset(m->turn, 0xff, t->n_sessions * sizeof(*m->turn));
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t model = t->model && t->model[r] < t->n_models ? t->model[r] : t->n_models;
        uint32_t input = t->input_tokens[r], shared = o->shared_tokens;
        shared = shared < input ? shared : input;
        uint64_t had = shared < m->longest[model] ? shared : m->longest[model];
        uint64_t turn = carried(t, m, r, o->carry);
        o->seen_tokens += had > turn ? had : turn;
        o->covered += input <= o->shared_tokens;
        m->longest[model] = input > m->longest[model] ? input : m->longest[model];
        if (t->session && t->session[r] != KVC_ID_NONE)
            m->turn[t->session[r]] = r;
    }
}

bool kvc_profile_offered(const struct kvc_trace *t, struct kvc_profile *p)
{
    struct memory m = {0};
    if (t->n_segments || !t->n_requests)
        return true;
    m.longest = kvc_calloc((size_t)t->n_models + 1, sizeof(*m.longest));
    m.turn = kvc_malloc(t->n_sessions, sizeof(*m.turn));
    bool ok = m.longest && m.turn;
    bool turns = t->session && t->n_sessions;
    for (size_t i = 0; ok && i < KVC_PROFILE_OFFERED; i++) {
        if (offers[i].carry != KVC_CARRY_NONE && !turns)
            continue;
        struct kvc_offered *o = &p->offered[p->n_offered];
        *o = offers[i];
        offer(t, &m, o);
        p->n_offered += o->seen_tokens > 0;
        if (!o->shared_tokens && !o->seen_tokens) /* no turn can go on: nothing to assume of them */
            turns = false;
    }
    kvc_free(m.longest);
    kvc_free(m.turn);
    return ok;
}
