/* SPDX-License-Identifier: Apache-2.0
 * Sessions from prefix growth, for logs that name none; the rule is in docs/import.md.
 *
 * A request is open at the end of its full blocks until another continues it. All requests that
 * pass through a segment pass through all of it, so that those open within a segment on r's path
 * are all prefixes of r, but for those at the end of r's own last segment, which are not proper
 * ones. So each segment has two stacks, for ends at its own end and for ends before it, the
 * latest request on top. */
#include "traces/forest/forest_nodes.h"

#define SAMPLE 50000
#define MOST_SEGMENTS ((size_t)1 << 24) /* of a log whose first rows come last, say */
#define NONE UINT64_MAX

struct open_ends {
    uint64_t *top[2]; /* by segment: [0] at its end, [1] within: request + 1, 0 = none */
    uint64_t *below;  /* by request: the next of its stack */
    uint8_t *had;     /* by segment: bit k = stack k ever held a request */
    struct kvc_spill_array held[4];
};

static bool create(struct open_ends *o, struct kvc_spill *spill, size_t segments, uint64_t n)
{
    return kvc_spill_grow(spill, &o->top[0], &o->held[0], segments * sizeof(**o->top), true) &&
           kvc_spill_grow(spill, &o->top[1], &o->held[1], segments * sizeof(**o->top), true) &&
           kvc_spill_grow(spill, &o->below, &o->held[2], (size_t)n * sizeof(*o->below), false) &&
           kvc_spill_grow(spill, &o->had, &o->held[3], segments, true);
}

static void clear(struct open_ends *o, struct kvc_spill *spill)
{
    kvc_spill_free(spill, &o->top[0], &o->held[0]);
    kvc_spill_free(spill, &o->top[1], &o->held[1]);
    kvc_spill_free(spill, &o->below, &o->held[2]);
    kvc_spill_free(spill, &o->had, &o->held[3]);
}

/* The segment in which r's full blocks end, and whether before the segment's end; SEG_NONE: it has
 * none. */
static uint32_t full_end(const struct kvc_trace *t, uint64_t r, int *within)
{
    uint32_t s = t->prompt_seg[r];
    uint32_t full = kvc_trace_full_blocks(t, r);
    *within = 0;
    if (!full)
        return KVC_SEG_NONE;
    if (full == kvc_trace_blocks(t, r))
        return s;
    if (full == t->seg_depth[s]) /* the partial block is a segment of its own */
        return t->seg_parent[s];
    *within = 1;
    return s;
}

/* The latest open request that r continues, and where it is; *any: some request, open or not, is
 * a proper prefix of r. */
static uint64_t find(const struct kvc_trace *t, const struct open_ends *o, uint64_t r, bool *any,
                     uint64_t **stack)
{
    uint64_t best = NONE;
    *any = false;
    for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s])
        for (int k = s == t->prompt_seg[r]; k < 2; k++) {
            uint64_t top = o->top[k][s];
            *any = *any || (o->had[s] >> k & 1);
            if (top && (best == NONE || top - 1 > best)) {
                best = top - 1;
                *stack = &o->top[k][s];
            }
        }
    return best;
}

static void open_end(const struct kvc_trace *t, struct open_ends *o, uint64_t r)
{
    int k;
    uint32_t s = full_end(t, r, &k);
    if (s == KVC_SEG_NONE)
        return;
    o->below[r] = o->top[k][s];
    o->top[k][s] = r + 1;
    o->had[s] |= (uint8_t)(1 << k);
}

bool kvc_sessions_infer(const struct kvc_trace *t, struct kvc_spill *spill, uint64_t n,
                        uint32_t *session, uint64_t *linked, uint64_t *branches)
{
    struct open_ends o = { 0 };
    uint32_t sessions = 0;
    bool ok = create(&o, spill, t->n_segments, n);
    *linked = *branches = 0;
    for (uint64_t r = 0; ok && r < n; r++) {
        bool any = false;
        uint64_t *stack = NULL, q = NONE;
        session[r] = KVC_ID_NONE;
        if (t->prompt_seg[r] == KVC_SEG_NONE)
            continue;
        q = find(t, &o, r, &any, &stack);
        if (q != NONE) {
            *stack = o.below[q];
            session[r] = session[q];
            ++*linked;
        } else {
            session[r] = sessions++;
            *branches += any;
        }
        open_end(t, &o, r);
    }
    clear(&o, spill);
    return ok;
}

void kvc_sessions_sample(const struct kvc_trace *t, struct kvc_spill *spill, uint64_t *rows,
                         uint64_t *linked)
{
    struct open_ends o = { 0 };
    uint64_t n = t->n_requests < SAMPLE ? t->n_requests : SAMPLE, *stack;
    size_t segments = 0;
    *rows = *linked = 0;
    for (uint64_t r = 0; r < n; r++)
        if (t->prompt_seg[r] != KVC_SEG_NONE && t->prompt_seg[r] >= segments)
            segments = (size_t)t->prompt_seg[r] + 1;
    if (segments < MOST_SEGMENTS && create(&o, spill, segments, n))
        for (uint64_t r = 0; r < n; r++) {
            bool any;
            if (t->prompt_seg[r] == KVC_SEG_NONE)
                continue;
            uint64_t q = find(t, &o, r, &any, &stack);
            if (q != NONE)
                *stack = o.below[q];
            open_end(t, &o, r);
            *rows += 1;
            *linked += q != NONE;
        }
    clear(&o, spill);
}
