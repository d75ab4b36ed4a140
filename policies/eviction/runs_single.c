/* SPDX-License-Identifier: Apache-2.0
 * A forest cut into segments of one block, for policies whose blocks differ within a run: outside,
 * segments keep their numbers. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"

/* A cache told about blocks tells about segments. */
static void left(void *user, uint32_t block, uint32_t lo, uint32_t hi, bool expired)
{
    const struct kvc_runs *c = user;
    const struct kvc_runs_cut *cut = &c->cut;
    uint32_t seg = cut->seg[block], at = block + lo + cut->seg_len[seg] - cut->end[seg];
    cut->left(cut->left_user, seg, at, at + (hi - lo), expired);
}

bool kvc_runs_cut(struct kvc_runs *c)
{
    struct kvc_runs_cut *cut = &c->cut;
    uint64_t blocks = 0;
    for (uint32_t s = 0; s < c->n_segments; s++)
        blocks += c->seg_len[s];
    if (blocks >= UINT32_MAX)
        return false;
    uint32_t n = (uint32_t)blocks, at = 0;
    cut->seg_len = c->seg_len;
    cut->end = kvc_malloc(c->n_segments, sizeof(*cut->end));
    cut->seg = kvc_malloc(n, sizeof(*cut->seg));
    cut->len = kvc_malloc(n, sizeof(*cut->len));
    cut->depth = kvc_malloc(n, sizeof(*cut->depth));
    cut->parent = kvc_malloc(n, sizeof(*cut->parent));
    if (!cut->end || !cut->seg || !cut->len || !cut->depth || !cut->parent)
        return false;
    for (uint32_t s = 0; s < c->n_segments; s++) {
        uint32_t up = c->seg_parent[s];
        for (uint32_t i = 0; i < c->seg_len[s]; i++, at++) {
            cut->seg[at] = s;
            cut->len[at] = 1;
            cut->depth[at] = c->seg_depth[s] + i;
            cut->parent[at] = i ? at - 1 : up == KVC_RUN_NONE ? up : cut->end[up] - 1;
        }
        cut->end[s] = at;
    }
    if (c->left) {
        cut->left = c->left;
        cut->left_user = c->left_user;
        c->left = left;
        c->left_user = c;
    }
    c->n_segments = n;
    c->seg_len = cut->len;
    c->seg_depth = cut->depth;
    c->seg_parent = cut->parent;
    return true;
}

void kvc_runs_cut_clear(struct kvc_runs_cut *cut)
{
    kvc_free(cut->end);
    kvc_free(cut->seg);
    kvc_free(cut->len);
    kvc_free(cut->depth);
    kvc_free(cut->parent);
}
