/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling/ceiling_why.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

enum kvc_status kvc_why_init(struct kvc_why *w, const struct kvc_ceiling_view *view,
                             const struct kvc_trace *trace, const struct kvc_namespaces *spaces,
                             const uint32_t *who_of, struct kvc_error *err)
{
    memset(w, 0, sizeof(*w));
    w->view = view;
    w->trace = trace;
    w->spaces = spaces;
    w->who_of = who_of;
    w->seen = kvc_calloc(view->n_segments, 1);
    w->seen_by_any = kvc_calloc(trace->n_segments, 1);
    if (w->seen && w->seen_by_any && kvc_marks_init(&w->marks, view->n_segments))
        return KVC_OK;
    kvc_why_clear(w);
    return kvc_fail_nomem(err);
}

void kvc_why_clear(struct kvc_why *w)
{
    kvc_free(w->seen);
    kvc_free(w->seen_by_any);
    kvc_marks_clear(&w->marks);
    memset(w, 0, sizeof(*w));
}

void kvc_why_left(void *why, uint32_t seg, uint32_t lo, uint32_t hi, bool expired)
{
    struct kvc_why *w = why;
    kvc_marks_set(&w->marks, seg, lo, hi, expired ? KVC_WHY_EXPIRED : w->who_of[w->request]);
}

/* Leading blocks of the path to a segment that earlier requests had; now all of it is seen. */
static uint64_t see(uint8_t *seen, uint32_t seg, const uint32_t *parent, const uint32_t *depth,
                    const uint32_t *len)
{
    for (; seg != KVC_SEG_NONE && !seen[seg]; seg = parent[seg])
        seen[seg] = 1;
    return seg == KVC_SEG_NONE ? 0 : depth[seg] + len[seg];
}

struct sink {
    struct kvc_why_missed *missed;
    void (*evicted)(void *user, uint32_t who, uint64_t tokens);
    void *user;
};

static void blame(const struct kvc_why *w, const struct sink *k, uint32_t who, uint64_t blocks)
{
    uint64_t tokens = blocks * w->view->block_tokens;
    k->missed->tokens[who == KVC_WHY_EXPIRED ? KVC_MISS_TTL : KVC_MISS_EVICTED] += tokens;
    if (who != KVC_WHY_EXPIRED && k->evicted)
        k->evicted(k->user, who, tokens);
}

/* Blocks [from, to) of the path were there once; block by block, who made them leave last. */
static void blame_leaving(const struct kvc_why *w, uint32_t seg, uint64_t from, uint64_t to,
                          const struct sink *k)
{
    const struct kvc_ceiling_view *v = w->view;
    for (; seg != KVC_SEG_NONE && v->seg_depth[seg] + (uint64_t)v->seg_len[seg] > from;
         seg = v->seg_parent[seg]) {
        uint64_t depth = v->seg_depth[seg];
        uint32_t lo = from > depth ? (uint32_t)(from - depth) : 0, hi = v->seg_len[seg], end;
        hi = to - depth < hi ? (uint32_t)(to - depth) : hi;
        for (; to > depth && lo < hi; lo = end) {
            uint32_t who = kvc_marks_at(&w->marks, seg, lo, hi, &end);
            blame(w, k, who, end - lo);
        }
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Blocks [*at, end) go to one cause. */
static void give(const struct kvc_why *w, struct kvc_why_missed *missed, enum kvc_miss_cause cause,
                 uint64_t *at, uint64_t end)
{
    if (end <= *at)
        return;
    missed->tokens[cause] += (end - *at) * w->view->block_tokens;
    *at = end;
}

void kvc_why_request(struct kvc_why *w, uint64_t r, uint64_t run, uint64_t elsewhere,
                     struct kvc_why_missed *missed,
                     void (*evicted)(void *user, uint32_t who, uint64_t tokens), void *user)
{
    const struct kvc_ceiling_view *v = w->view;
    const struct sink sink = {missed, evicted, user};
    uint32_t seg = v->prompt_seg[r];
    uint64_t tokens = v->input_tokens[r], full = 0;
    memset(missed, 0, sizeof(*missed));
    if (seg != KVC_SEG_NONE)
        full = least(v->seg_depth[seg] + (uint64_t)v->seg_len[seg], tokens / v->block_tokens);
    uint64_t own = see(w->seen, seg, v->seg_parent, v->seg_depth, v->seg_len), any = own;
    if (w->spaces)
        any = see(w->seen_by_any, w->trace->prompt_seg[r], w->trace->seg_parent,
                  w->trace->seg_depth, w->trace->seg_len);
    uint64_t at = least(run, full), had = least(own, full);
    give(w, missed, KVC_MISS_OTHER_REPLICA, &at, least(elsewhere, full));
    if (at < had) {
        blame_leaving(w, seg, at, had, &sink);
        at = had;
    }
    give(w, missed, KVC_MISS_SALTED, &at, least(any, full));
    give(w, missed, KVC_MISS_FIRST_SIGHT, &at, full);
    missed->tokens[full && any >= full ? KVC_MISS_PARTIAL_BLOCK : KVC_MISS_FIRST_SIGHT] +=
        tokens - full * v->block_tokens;
}
