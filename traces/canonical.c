/* SPDX-License-Identifier: Apache-2.0
 * A log sorted by time gets its canonical numbers as it is read, and nothing is moved here. */
#include "traces/canonical.h"

#include "base/alloc.h"

#include <string.h>

struct renumber {
    uint32_t *number; /* of each old index; KVC_SEG_NONE: not met yet */
    uint32_t next;
    bool moved;
};

static bool start(struct renumber *r, uint32_t n)
{
    r->number = kvc_malloc(n, sizeof(*r->number));
    r->next = 0;
    r->moved = false;
    if (r->number)
        memset(r->number, 0xff, (size_t)n * sizeof(*r->number));
    return r->number != NULL;
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

static bool permute(uint32_t **column, uint32_t n, const uint32_t *number)
{
    uint32_t *fresh = kvc_malloc(n, sizeof(*fresh));
    if (!fresh)
        return false;
    for (uint32_t i = 0; i < n; i++)
        fresh[number[i]] = (*column)[i];
    kvc_free(*column);
    *column = fresh;
    return true;
}

static bool order_segments(struct kvc_trace *t)
{
    uint32_t n = t->n_segments;
    struct renumber r = { 0 };
    uint32_t *stack = kvc_malloc(n, sizeof(*stack));
    bool ok = stack && start(&r, n);
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
        ok = permute(&t->seg_parent, n, r.number) && permute(&t->seg_len, n, r.number) &&
             permute(&t->seg_depth, n, r.number);
    }
    kvc_free(stack);
    kvc_free(r.number);
    return ok;
}

/* ---- sessions and names ---- */

static bool order_names(uint32_t *column, uint64_t rows, uint32_t *n, char **names)
{
    struct renumber r;
    if (!column || !*n)
        return true;
    if (!start(&r, *n))
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
    kvc_free(r.number);
    return ok;
}

bool kvc_trace_canonical(struct kvc_trace *t)
{
    return order_segments(t) && order_names(t->session, t->n_requests, &t->n_sessions, NULL) &&
           order_names(t->tenant, t->n_requests, &t->n_tenants, t->tenant_names) &&
           order_names(t->model, t->n_requests, &t->n_models, t->model_names);
}
