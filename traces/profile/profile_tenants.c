/* SPDX-License-Identifier: Apache-2.0
 * What tenants reuse of their own, and of one another. */
#include "traces/profile/profile_parts.h"

#include "base/alloc.h"

#include <string.h>

#define OTHERS KVC_PROFILE_TENANTS

static uint32_t end_of(const struct kvc_trace *t, uint32_t s)
{
    return t->seg_depth[s] + t->seg_len[s];
}

static uint64_t clip(const struct kvc_trace *t, uint64_t r, uint32_t blocks)
{
    uint32_t full = kvc_trace_full_blocks(t, r);
    return (uint64_t)(blocks < full ? blocks : full) * t->block_tokens;
}

/* Tenants one after the other, so that one mark a segment tells what each has had. */
static bool own_reuse(const struct kvc_trace *t, struct kvc_profile *p)
{
    uint64_t grouped = 0;
    uint32_t *mark = kvc_calloc(t->n_segments, sizeof(*mark));
    uint64_t *order = kvc_profile_group(t->tenant, t->n_tenants, t->n_requests, &grouped);
    bool ok = mark && order;
    for (uint64_t i = 0; ok && i < grouped; i++) {
        uint64_t r = order[i];
        uint32_t me = t->tenant[r], s = t->prompt_seg[r];
        for (; s != KVC_SEG_NONE && mark[s] != me + 1; s = t->seg_parent[s])
            mark[s] = me + 1;
        p->tenants[me].requests++;
        p->tenants[me].input_tokens += t->input_tokens[r];
        if (!kvc_trace_blocks(t, r) && t->input_tokens[r] >= t->block_tokens)
            p->tenants[me].unknown_tokens += t->input_tokens[r];
        p->tenants[me].own_seen_tokens += s == KVC_SEG_NONE ? 0 : clip(t, r, end_of(t, s));
    }
    kvc_free(mark);
    kvc_free(order);
    return ok;
}

static void choose_top(const struct kvc_trace *t, struct kvc_profile *p)
{
    for (uint32_t i = 0; i < t->n_tenants; i++) {
        uint64_t tokens = p->tenants[i].input_tokens;
        uint32_t n = p->n_top;
        if (n == KVC_PROFILE_TENANTS && tokens <= p->tenants[p->top[n - 1]].input_tokens)
            continue;
        uint32_t k = n < KVC_PROFILE_TENANTS ? p->n_top++ : n - 1;
        for (; k && tokens > p->tenants[p->top[k - 1]].input_tokens; k--)
            p->top[k] = p->top[k - 1];
        p->top[k] = i;
    }
}

struct overlap {
    const struct kvc_trace *t;
    struct kvc_profile *p;
    uint8_t *group;  /* of each tenant */
    uint16_t *had;   /* groups that touched each segment, a bit each; 0 = not seen */
    uint8_t *last;   /* the last of them */
};

static void overlap_touch(struct overlap *o, uint64_t r)
{
    const struct kvc_trace *t = o->t;
    uint32_t who = t->tenant[r], full = kvc_trace_full_blocks(t, r), seen = 0;
    uint8_t g = who < t->n_tenants ? o->group[who] : OTHERS;
    for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s]) {
        if (o->had[s]) {
            uint32_t depth = t->seg_depth[s], end = end_of(t, s) < full ? end_of(t, s) : full;
            seen = end > seen ? end : seen;
            if (g != OTHERS && !(o->had[s] >> g & 1) && end > depth)
                o->p->from_tokens[g][o->last[s]] += (uint64_t)(end - depth) * t->block_tokens;
        }
        o->had[s] = (uint16_t)(o->had[s] | 1u << g);
        o->last[s] = g;
    }
    if (who < t->n_tenants)
        o->p->tenants[who].seen_tokens += (uint64_t)seen * t->block_tokens;
}

static void count_both(struct overlap *o)
{
    for (uint32_t s = 0; s < o->t->n_segments; s++)
        for (uint32_t i = 0; o->had[s] >> i; i++)
            for (uint32_t k = 0; (o->had[s] >> i & 1) && o->had[s] >> k; k++)
                if (o->had[s] >> k & 1)
                    o->p->both_blocks[i][k] += o->t->seg_len[s];
}

bool kvc_profile_tenants(const struct kvc_trace *t, struct kvc_profile *p)
{
    struct overlap o = {.t = t, .p = p};
    if (!t->tenant || !t->n_tenants)
        return true;
    p->tenants = kvc_calloc(t->n_tenants, sizeof(*p->tenants));
    o.group = kvc_malloc(t->n_tenants, sizeof(*o.group));
    o.had = kvc_calloc(t->n_segments, sizeof(*o.had));
    o.last = kvc_calloc(t->n_segments, sizeof(*o.last));
    bool ok = p->tenants && o.group && o.had && o.last && own_reuse(t, p);
    if (ok) {
        choose_top(t, p);
        memset(o.group, OTHERS, t->n_tenants);
        for (uint32_t i = 0; i < p->n_top; i++)
            o.group[p->top[i]] = (uint8_t)i;
        for (uint64_t r = 0; r < t->n_requests; r++)
            overlap_touch(&o, r);
        count_both(&o);
    }
    kvc_free(o.group);
    kvc_free(o.had);
    kvc_free(o.last);
    return ok;
}
