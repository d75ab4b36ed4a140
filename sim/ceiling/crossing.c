/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling/crossing.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* By segment: tokens of its last block, which is partial where prompts end in it. */
static void last_tokens(const struct kvc_trace *t, uint32_t *tokens)
{
    for (uint32_t s = 0; s < t->n_segments; s++)
        if (t->seg_parent[s] != KVC_SEG_NONE)
            tokens[t->seg_parent[s]] = t->block_tokens;
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t s = t->prompt_seg[r];
        if (s == KVC_SEG_NONE)
            continue;
        uint64_t before = ((uint64_t)t->seg_depth[s] + t->seg_len[s] - 1) * t->block_tokens;
        uint64_t own = t->input_tokens[r] > before ? t->input_tokens[r] - before : 0;
        own = own < t->block_tokens ? own : t->block_tokens;
        tokens[s] = own > tokens[s] ? (uint32_t)own : tokens[s];
    }
}

static void add_segment(struct kvc_crossing *c, uint32_t len, uint64_t tokens, uint32_t users,
                        uint16_t largest)
{
    c->blocks += len;
    c->tokens += tokens;
    if (users > 1) {
        c->crossing_blocks += len;
        c->crossing_tokens += tokens;
    }
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t j = 0; largest >> i & 1 && j < c->n; j++)
            c->common_blocks[i][j] += largest >> j & 1 ? len : 0;
}

enum kvc_status kvc_crossing_of(struct kvc_crossing *out, const struct kvc_trace *t,
                                const struct kvc_namespaces *spaces,
                                const struct kvc_groups *groups, struct kvc_error *err)
{
    struct kvc_crossing c = {0};
    enum kvc_status status = KVC_OK;
    uint32_t order[KVC_CROSSING], *rank = kvc_malloc(groups->n, sizeof(*rank));
    uint64_t *of_group = kvc_malloc(groups->n, sizeof(*of_group));
    uint32_t *users = kvc_calloc(t->n_segments, sizeof(*users));
    uint32_t *last = kvc_calloc(t->n_segments, sizeof(*last));
    uint16_t *largest = kvc_calloc(t->n_segments, sizeof(*largest)); /* bits of ranks */
    if (!rank || !of_group || !users || !last || !largest) {
        status = kvc_fail_nomem(err);
        goto done;
    }
    c.n = kvc_groups_largest(groups, KVC_CROSSING, order, rank, of_group);
    for (uint32_t i = 0; i < c.n; i++)
        kvc_groups_name(groups, order[i], c.name[i], sizeof(c.name[i]));
    for (uint32_t i = 0; i < groups->n; i++)
        c.namespaces += of_group[i] > 0;
    last_tokens(t, last);
    for (uint32_t s = 0; s < spaces->trace.n_segments; s++) {
        uint32_t from = spaces->seg_from[s], at = rank[spaces->seg_space[s]];
        users[from]++;
        if (at != KVC_ID_NONE)
            largest[from] = (uint16_t)(largest[from] | 1u << at);
    }
    for (uint32_t s = 0; s < t->n_segments; s++)
        if (users[s]) /* others are of outputs only */
            add_segment(&c, t->seg_len[s],
                        (uint64_t)(t->seg_len[s] - 1) * t->block_tokens + last[s], users[s],
                        largest[s]);
    *out = c;
done:
    kvc_free(largest);
    kvc_free(last);
    kvc_free(users);
    kvc_free(of_group);
    kvc_free(rank);
    return status;
}
