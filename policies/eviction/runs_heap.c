/* SPDX-License-Identifier: Apache-2.0
 * A heap of runs in the order the policy gives (first), the victim on top. A run's older holds its
 * place. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"

static bool goes_first(const struct kvc_runs *c, uint32_t a, uint32_t b)
{
    return c->ops->first(c, &c->run[a], &c->run[b]);
}

static void place(struct kvc_runs *c, size_t i, uint32_t r)
{
    c->heap[i] = r;
    c->run[r].older = (uint32_t)i;
}

static void sift_down(struct kvc_runs *c, size_t i)
{
    uint32_t r = c->heap[i];
    size_t k;
    while ((k = 2 * i + 1) < c->n_heap) {
        k += k + 1 < c->n_heap && goes_first(c, c->heap[k + 1], c->heap[k]);
        if (!goes_first(c, c->heap[k], r))
            break;
        place(c, i, c->heap[k]);
        i = k;
    }
    place(c, i, r);
}

void kvc_heap_sift(struct kvc_runs *c, size_t i)
{
    uint32_t r = c->heap[i];
    for (; i && goes_first(c, r, c->heap[(i - 1) / 2]); i = (i - 1) / 2)
        place(c, i, c->heap[(i - 1) / 2]);
    place(c, i, r);
    sift_down(c, i);
}

void kvc_heap_take(struct kvc_runs *c, uint32_t r)
{
    size_t i = c->run[r].older;
    uint32_t last = c->heap[--c->n_heap];
    if (last == r)
        return;
    place(c, i, last);
    kvc_heap_sift(c, i);
}

void kvc_heap_put(struct kvc_runs *c, uint32_t r)
{
    if (!kvc_grow((void **)&c->heap, &c->heap_room, c->n_heap + 1, sizeof(*c->heap))) {
        c->failed = true;
        return;
    }
    place(c, c->n_heap++, r);
    kvc_heap_sift(c, c->n_heap - 1);
}

void kvc_heap_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t note,
                   uint64_t key)
{
    uint32_t r = kvc_run_new(c, seg, lo, hi);
    if (r == KVC_RUN_NONE)
        return;
    c->size += hi - lo;
    c->run[r].note = note;
    c->run[r].key = key;
    c->run[r].stamp = c->clock;
    kvc_heap_put(c, r);
}

void kvc_heap_again(struct kvc_runs *c)
{
    for (size_t i = c->n_heap / 2; i-- > 0;)
        sift_down(c, i);
}

void kvc_heap_shorten(struct kvc_runs *c, uint32_t r, uint32_t n)
{
    uint32_t hi = c->run[r].hi;
    kvc_run_left(c, c->run[r].seg, hi - n, hi);
    c->size -= n;
    if (n == kvc_run_blocks(c, r)) {
        kvc_heap_take(c, r);
        kvc_run_free(c, r);
        return;
    }
    c->run[r].hi -= n;
    kvc_heap_sift(c, c->run[r].older);
}

void kvc_heap_shorten_top(struct kvc_runs *c, uint32_t n)
{
    kvc_heap_shorten(c, c->heap[0], n);
}
