/* SPDX-License-Identifier: Apache-2.0
 * Who passes through each segment, and what it therefore is: a system prompt, a document, one
 * session's history. The number of requests, and of sessions, never grows on the way down, so the
 * kinds follow one another on every path. */
#include "traces/profile/profile_parts.h"

#include "base/alloc.h"

#include <string.h>

/* ---- segments ---- */

static void count_passes(const struct kvc_trace *t, uint64_t *passes)
{
    for (uint64_t r = 0; r < t->n_requests; r++)
        if (t->prompt_seg[r] != KVC_SEG_NONE)
            passes[t->prompt_seg[r]]++;
    for (uint32_t s = t->n_segments; s-- > 0;)
        if (t->seg_parent[s] != KVC_SEG_NONE)
            passes[t->seg_parent[s]] += passes[s];
}

uint64_t *kvc_profile_group(const uint32_t *column, uint32_t n_groups, uint64_t n_requests,
                            uint64_t *n_grouped)
{
    uint64_t *next = kvc_calloc((size_t)n_groups + 2, sizeof(*next));
    uint64_t *order = kvc_malloc((size_t)n_requests, sizeof(*order));
    if (!next || !order) {
        kvc_free(next);
        kvc_free(order);
        return NULL;
    }
    for (uint64_t r = 0; r < n_requests; r++)
        next[(column[r] < n_groups ? column[r] : n_groups) + 1]++;
    for (uint32_t g = 0; g <= n_groups; g++)
        next[g + 1] += next[g];
    *n_grouped = next[n_groups];
    for (uint64_t r = 0; r < n_requests; r++)
        order[next[column[r] < n_groups ? column[r] : n_groups]++] = r;
    kvc_free(next);
    return order;
}

/* Distinct groups of the column that pass through each segment; a request without one is a group
 * of its own. A segment that the group at hand has marked has marked parents. */
static uint32_t *count_distinct(const struct kvc_trace *t, const uint32_t *column, uint32_t n)
{
    uint64_t grouped = 0;
    uint32_t *count = kvc_calloc(t->n_segments, sizeof(*count));
    uint64_t *mark = kvc_calloc(t->n_segments, sizeof(*mark));
    uint64_t *order = kvc_profile_group(column, n, t->n_requests, &grouped);
    for (uint64_t i = 0; count && mark && order && i < t->n_requests; i++) {
        uint64_t r = order[i], me = i < grouped ? column[r] + 1ull : n + 1ull + r;
        for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE && mark[s] != me;
             s = t->seg_parent[s]) {
            mark[s] = me;
            count[s]++;
        }
    }
    bool ok = mark && order;
    kvc_free(mark);
    kvc_free(order);
    if (ok)
        return count;
    kvc_free(count);
    return NULL;
}

/* Where a line between a system prompt and a document must be drawn, for want of roles in the log;
 * no measurement draws it. Two sessions may be one client that tried again, so 3; a session may be
 * many turns, so 10 requests where sessions aren't known. docs/inspect.md says what this misses. */
#define SYSTEM_SESSIONS 3
#define SYSTEM_REQUESTS 10
#define SYSTEM_SHARE 10 /* one in so many of those that begin with the same block */

static bool is_system(const struct kvc_segment_use *use, uint32_t seg, uint32_t root)
{
    uint64_t n = use->sessions ? use->sessions[seg] : use->passes[seg];
    uint64_t all = use->sessions ? use->sessions[root] : use->passes[root];
    return n >= (use->sessions ? SYSTEM_SESSIONS : SYSTEM_REQUESTS) &&
           n >= (all + SYSTEM_SHARE - 1) / SYSTEM_SHARE;
}

static bool find_ends(struct kvc_segment_use *use, const struct kvc_trace *t)
{
    uint32_t *root = kvc_malloc(t->n_segments, sizeof(*root));
    for (uint32_t s = 0; root && s < t->n_segments; s++) {
        uint32_t up = t->seg_parent[s], end = t->seg_depth[s] + t->seg_len[s];
        bool several = use->sessions ? use->sessions[s] > 1 : use->passes[s] > 1;
        root[s] = up == KVC_SEG_NONE ? s : root[up];
        use->system_end[s] = is_system(use, s, root[s]) ? end
                             : up == KVC_SEG_NONE       ? 0
                                                        : use->system_end[up];
        use->shared_end[s] = several ? end : up == KVC_SEG_NONE ? 0 : use->shared_end[up];
    }
    bool ok = root != NULL;
    kvc_free(root);
    return ok;
}

bool kvc_segment_use_make(struct kvc_segment_use *use, const struct kvc_trace *t)
{
    uint32_t n = t->n_segments;
    use->passes = kvc_calloc(n, sizeof(*use->passes));
    use->system_end = kvc_calloc(n, sizeof(*use->system_end));
    use->shared_end = kvc_calloc(n, sizeof(*use->shared_end));
    use->seen_blocks = kvc_calloc(n, sizeof(*use->seen_blocks));
    if (!use->passes || !use->system_end || !use->shared_end || !use->seen_blocks)
        return false;
    count_passes(t, use->passes);
    if (t->session && t->n_sessions &&
        !(use->sessions = count_distinct(t, t->session, t->n_sessions)))
        return false;
    if (t->tenant && t->n_tenants > 1 &&
        !(use->tenants = count_distinct(t, t->tenant, t->n_tenants)))
        return false;
    return find_ends(use, t);
}

void kvc_segment_use_clear(struct kvc_segment_use *use)
{
    kvc_free(use->passes);
    kvc_free(use->sessions);
    kvc_free(use->tenants);
    kvc_free(use->system_end);
    kvc_free(use->shared_end);
    kvc_free(use->seen_blocks);
    memset(use, 0, sizeof(*use));
}

/* ---- block touches ---- */

static void add_depths(struct kvc_profile *p, uint32_t depth, uint32_t len, uint64_t touches)
{
    for (uint32_t i = 0; i < KVC_PROFILE_DEPTHS && len; i++) {
        uint64_t end = (uint64_t)1 << i; /* of this class of depths */
        if (depth >= end && i < KVC_PROFILE_DEPTHS - 1)
            continue;
        uint32_t take = i < KVC_PROFILE_DEPTHS - 1 && end - depth < len ? (uint32_t)(end - depth)
                                                                        : len;
        p->depth_touches[i] += take * touches;
        p->depth_reused[i] += take * (touches - 1);
        p->n_depths = i + 1 > p->n_depths ? i + 1 : p->n_depths;
        depth += take;
        len -= take;
    }
}

bool kvc_profile_sharing(const struct kvc_trace *t, struct kvc_segment_use *use,
                         struct kvc_profile *p)
{
    for (uint32_t s = 0; s < t->n_segments; s++) {
        uint64_t n = use->passes[s];
        if (!n) /* known from an output only */
            continue;
        p->touched_blocks += t->seg_len[s];
        p->one_hit_blocks += n == 1 ? t->seg_len[s] : 0;
        p->reused_touches += (n - 1) * t->seg_len[s];
        p->system_roots += t->seg_parent[s] == KVC_SEG_NONE && use->system_end[s] > 0;
        add_depths(p, t->seg_depth[s], t->seg_len[s], n);
    }
    return true;
}

/* ---- the hottest ---- */

static bool hotter(const struct kvc_trace *t, const struct kvc_segment_use *use, uint32_t a,
                   uint32_t b)
{
    if (use->seen_blocks[a] != use->seen_blocks[b])
        return use->seen_blocks[a] > use->seen_blocks[b];
    if (t->seg_depth[a] != t->seg_depth[b])
        return t->seg_depth[a] < t->seg_depth[b];
    return a < b;
}

void kvc_profile_hot(const struct kvc_trace *t, const struct kvc_segment_use *use,
                     struct kvc_profile *p)
{
    uint32_t hot[KVC_PROFILE_HOT], n = 0;
    for (uint32_t s = 0; s < t->n_segments; s++) {
        if (!use->seen_blocks[s] || (n == KVC_PROFILE_HOT && !hotter(t, use, s, hot[n - 1])))
            continue;
        uint32_t i = n < KVC_PROFILE_HOT ? n++ : n - 1;
        for (; i && hotter(t, use, s, hot[i - 1]); i--)
            hot[i] = hot[i - 1];
        hot[i] = s;
    }
    p->n_hot = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = hot[i], end = t->seg_depth[s] + t->seg_len[s];
        p->hot[i] = (struct kvc_hot_prefix){
            .from_block = t->seg_depth[s],
            .blocks = t->seg_len[s],
            .requests = use->passes[s],
            .sessions = use->sessions ? use->sessions[s] : 0,
            .tenants = use->tenants ? use->tenants[s] : 1,
            .seen_tokens = use->seen_blocks[s] * t->block_tokens,
            .kind = use->system_end[s] == end   ? KVC_CONTENT_SYSTEM
                    : use->shared_end[s] == end ? KVC_CONTENT_DOCUMENT
                                                : KVC_CONTENT_HISTORY,
        };
    }
}
