/* SPDX-License-Identifier: Apache-2.0
 * A log sorted by time gets its canonical numbers as it is read, and nothing is moved here. */
#include "traces/canonical.h"

#include "base/alloc.h"

#include <string.h>

struct renumber {
    struct kvc_spill *spill;
    uint32_t *number; /* of each old index; KVC_SEG_NONE: not met yet */
    struct kvc_spill_array held;
    uint32_t next;
    bool moved;
};

static bool start(struct renumber *r, struct kvc_spill *spill, uint32_t n)
{
    *r = (struct renumber){ .spill = spill };
    if (!n)
        return true;
    if (!kvc_spill_grow(spill, &r->number, &r->held, (size_t)n * sizeof(*r->number), false))
        return false;
    memset(r->number, 0xff, (size_t)n * sizeof(*r->number));
    return true;
}

static void end(struct renumber *r)
{
    if (r->spill)
        kvc_spill_free(r->spill, &r->number, &r->held);
}

static inline void meet(struct renumber *r, uint32_t old)
{
    r->moved = r->moved || old != r->next;
    r->number[old] = r->next++;
}

/* ---- segments ---- */

/* Numbers those on the path to seg that are new, root first. */
static void meet_path(struct renumber *r, const struct kvc_trace *t, uint32_t seg, uint32_t *stack)
{
    uint32_t n = 0;
    for (; seg != KVC_SEG_NONE && r->number[seg] == KVC_SEG_NONE; seg = t->seg_parent[seg])
        stack[n++] = seg;
    while (n)
        meet(r, stack[--n]);
}

static void meet_column(struct renumber *r, const struct kvc_trace *t, const uint32_t *column,
                        uint32_t *stack)
{
    for (uint64_t i = 0; column && i < t->n_requests; i++)
        meet_path(r, t, column[i], stack);
}

static void remap(uint32_t *column, uint64_t n, const uint32_t *number)
{
    for (uint64_t i = 0; column && i < n; i++)
        if (column[i] != UINT32_MAX)
            column[i] = number[column[i]];
}

static bool permute(struct kvc_trace *t, uint32_t **column, const struct renumber *r)
{
    uint32_t n = t->n_segments, *fresh = NULL;
    struct kvc_spill_array held = { 0 };
    if (!kvc_spill_grow(r->spill, &fresh, &held, (size_t)n * sizeof(*fresh), false))
        return false;
    for (uint32_t i = 0; i < n; i++)
        fresh[r->number[i]] = (*column)[i];
    kvc_trace_drop(t, column);
    *column = fresh;
    kvc_trace_keep(t, fresh, kvc_spill_detach(r->spill, &held));
    return true;
}

static bool order_segments(struct kvc_trace *t, struct kvc_spill *spill)
{
    uint32_t n = t->n_segments;
    struct renumber r = { 0 };
    if (!n)
        return true;
    uint32_t *stack = kvc_malloc(n, sizeof(*stack));
    bool ok = stack && start(&r, spill, n);
    if (ok) {
        meet_column(&r, t, t->prompt_seg, stack);
        meet_column(&r, t, t->output_seg, stack);
        for (uint32_t s = 0; s < n; s++)
            meet_path(&r, t, s, stack);
    }
    if (ok && r.moved) {
        remap(t->prompt_seg, t->n_requests, r.number);
        remap(t->output_seg, t->n_requests, r.number);
        remap(t->seg_parent, n, r.number);
        ok = permute(t, &t->seg_parent, &r) && permute(t, &t->seg_len, &r) &&
             permute(t, &t->seg_depth, &r) &&
             (!t->seg_draw || permute(t, &t->seg_draw, &r));
    }
    kvc_free(stack);
    end(&r);
    return ok;
}

/* ---- sessions and names ---- */

static bool order_names(struct kvc_spill *spill, uint32_t *column, uint64_t rows, uint32_t *n,
                        char **names)
{
    struct renumber r;
    if (!column || !*n)
        return true;
    if (!start(&r, spill, *n))
        return false;
    for (uint64_t i = 0; i < rows; i++)
        if (column[i] != KVC_ID_NONE && r.number[column[i]] == KVC_ID_NONE)
            meet(&r, column[i]);
    char **fresh = names && (r.moved || r.next < *n) ? kvc_calloc(*n, sizeof(*fresh)) : NULL;
    bool ok = fresh || !names || !(r.moved || r.next < *n);
    if (ok && r.moved)
        remap(column, rows, r.number);
    for (uint32_t i = 0; fresh && i < *n; i++) {
        if (r.number[i] == KVC_ID_NONE)
            kvc_free(names[i]);
        else
            fresh[r.number[i]] = names[i];
    }
    if (fresh)
        memcpy(names, fresh, *n * sizeof(*fresh));
    if (ok)
        *n = r.next;
    kvc_free(fresh);
    end(&r);
    return ok;
}

bool kvc_trace_canonical(struct kvc_trace *t, struct kvc_spill *spill)
{
    uint64_t n = t->n_requests;
    return order_segments(t, spill) && order_names(spill, t->session, n, &t->n_sessions, NULL) &&
           order_names(spill, t->tenant, n, &t->n_tenants, t->tenant_names) &&
           order_names(spill, t->model, n, &t->n_models, t->model_names);
}
