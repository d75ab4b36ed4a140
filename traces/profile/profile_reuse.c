/* SPDX-License-Identifier: Apache-2.0
 * One walk over all segment touches in time order: what was seen before and how long ago, what a
 * sliding TTL holds, distinct blocks by window. Ages are few per request, since a path falls into
 * few stretches last touched together, so work is done by stretch where it can be. */
#include "traces/profile/profile_parts.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

#define S KVC_NS_PER_S
#define NEVER UINT64_MAX

static const uint64_t ages[KVC_PROFILE_AGES] = {
    S,        2 * S,    5 * S,    10 * S,    20 * S,    30 * S,    60 * S,
    120 * S,  300 * S,  600 * S,  1200 * S,  1800 * S,  3600 * S,  7200 * S,
    14400 * S, 21600 * S, 43200 * S, 86400 * S, 172800 * S, 604800 * S};
static const uint64_t windows[KVC_PROFILE_WINDOWS] = {60 * S,   300 * S,   600 * S,
                                                      3600 * S, 21600 * S, 86400 * S};

struct walk {
    const struct kvc_trace *t;
    struct kvc_segment_use *use;
    struct kvc_profile *p;
    uint64_t *last; /* request that touched each segment last, NEVER */
    uint64_t expired[KVC_PROFILE_AGES]; /* requests before this one are past that TTL */
    uint64_t held[KVC_PROFILE_AGES];
    double held_ns[KVC_PROFILE_AGES + 1]; /* block times by class of their gap .. */
    uint64_t gaps[KVC_PROFILE_AGES + 1];  /* .. and blocks */
    uint64_t index[KVC_PROFILE_WINDOWS], in_window[KVC_PROFILE_WINDOWS];
    uint64_t window_sum[KVC_PROFILE_WINDOWS];
};

/* Class of an age: the first limit that is not shorter. */
static size_t age_class(uint64_t age)
{
    size_t lo = 0, hi = KVC_PROFILE_AGES;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (ages[mid] < age)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Takes out of each TTL what expired before now: what nobody touched after request e. */
static void expire(struct walk *w, uint64_t now)
{
    const struct kvc_trace *t = w->t;
    for (size_t i = 0; i < KVC_PROFILE_AGES; i++) {
        uint64_t e = w->expired[i];
        for (; now - t->arrival_ns[e] > ages[i]; e++)
            for (uint32_t s = t->prompt_seg[e]; s != KVC_SEG_NONE && w->last[s] == e;
                 s = t->seg_parent[s])
                w->held[i] -= t->seg_len[s];
        w->expired[i] = e;
    }
}

/* A stretch of a path that was last touched by one request (NEVER: by none): blocks in all, and
 * full ones. */
static void add_stretch(struct walk *w, uint64_t last, uint64_t now, uint64_t blocks,
                        uint64_t full)
{
    struct kvc_profile *p = w->p;
    uint64_t before = last == NEVER ? 0 : w->t->arrival_ns[last];
    size_t class = last == NEVER ? KVC_PROFILE_AGES : age_class(now - before);
    if (last != NEVER) {
        if (class < KVC_PROFILE_AGES) {
            p->age_touches[class] += blocks;
            p->age_tokens[class] += full * w->t->block_tokens;
        }
        w->held_ns[class] += (double)blocks * (double)(now - before);
        w->gaps[class] += blocks;
    }
    for (size_t i = 0; i < class; i++)
        w->held[i] += blocks;
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        if (last != NEVER && before >= w->index[i] * windows[i])
            break; /* and before the start of every longer window */
        w->in_window[i] += blocks;
    }
}

static void begin_request(struct walk *w, uint64_t now)
{
    expire(w, now);
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        uint64_t index = now / windows[i];
        if (index != w->index[i]) {
            w->window_sum[i] += w->in_window[i];
            w->index[i] = index;
            w->in_window[i] = 0;
        }
    }
}

static void end_request(struct walk *w)
{
    struct kvc_profile *p = w->p;
    for (size_t i = 0; i < KVC_PROFILE_AGES; i++)
        if (w->held[i] > p->held_peak_blocks[i])
            p->held_peak_blocks[i] = w->held[i];
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++)
        if (w->in_window[i] > p->working_set[i].peak_blocks)
            p->working_set[i].peak_blocks = w->in_window[i];
}

/* Tokens of blocks [from, to) of a path, of that kind, by depth. */
static void add_kind(struct kvc_profile *p, enum kvc_content kind, uint32_t from, uint32_t to,
                     uint32_t block_tokens)
{
    if (to <= from)
        return;
    p->content_tokens[kind] += (uint64_t)(to - from) * block_tokens;
    for (uint32_t i = 0; i < KVC_PROFILE_DEPTHS && from < to; i++) {
        uint64_t end = (uint64_t)1 << i;
        if (from >= end && i < KVC_PROFILE_DEPTHS - 1)
            continue;
        uint32_t stop = i < KVC_PROFILE_DEPTHS - 1 && end < to ? (uint32_t)end : to;
        p->depth_tokens[i][kind] += (uint64_t)(stop - from) * block_tokens;
        from = stop;
    }
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* seen: leading blocks that an earlier request had. */
static void add_content(struct walk *w, uint64_t r, uint32_t seen)
{
    const struct kvc_trace *t = w->t;
    struct kvc_profile *p = w->p;
    uint32_t leaf = t->prompt_seg[r], full = kvc_trace_full_blocks(t, r), b = t->block_tokens;
    seen = least(seen, full);
    uint32_t system = least(w->use->system_end[leaf], seen);
    uint32_t shared = least(w->use->shared_end[leaf], seen);
    shared = shared > system ? shared : system;
    add_kind(p, KVC_CONTENT_SYSTEM, 0, system, b);
    add_kind(p, KVC_CONTENT_DOCUMENT, system, shared, b);
    add_kind(p, KVC_CONTENT_HISTORY, shared, seen, b);
    add_kind(p, KVC_CONTENT_NEW, seen, full, b);
    p->seen_tokens += (uint64_t)seen * b;
    p->content_tokens[KVC_CONTENT_PARTIAL] += t->input_tokens[r] - (uint64_t)full * b;
}

/* Full blocks of a segment that the request has. */
static uint32_t full_in(const struct kvc_trace *t, uint32_t s, uint32_t full)
{
    uint32_t depth = t->seg_depth[s];
    return full <= depth ? 0 : least(full - depth, t->seg_len[s]);
}

static void touch_path(struct walk *w, uint64_t r, uint64_t now)
{
    const struct kvc_trace *t = w->t;
    uint32_t full = kvc_trace_full_blocks(t, r), seen = 0;
    uint64_t stretch = NEVER, blocks = 0, full_blocks = 0;
    for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s]) {
        uint64_t last = w->last[s];
        uint32_t mine = full_in(t, s, full);
        if (last != stretch) {
            if (blocks)
                add_stretch(w, stretch, now, blocks, full_blocks);
            if (stretch == NEVER)
                seen = t->seg_depth[s] + t->seg_len[s];
            stretch = last;
            blocks = full_blocks = 0;
        }
        blocks += t->seg_len[s];
        full_blocks += mine;
        if (last != NEVER)
            w->use->seen_blocks[s] += mine;
        w->last[s] = r;
    }
    add_stretch(w, stretch, now, blocks, full_blocks);
    add_content(w, r, seen);
}

static void finish(struct walk *w)
{
    const struct kvc_trace *t = w->t;
    struct kvc_profile *p = w->p;
    uint64_t end = t->n_requests ? t->arrival_ns[t->n_requests - 1] : 0;
    for (uint32_t s = 0; s < t->n_segments; s++) {
        if (w->last[s] == NEVER)
            continue;
        uint64_t rest = end - t->arrival_ns[w->last[s]];
        size_t class = age_class(rest);
        w->held_ns[class] += (double)t->seg_len[s] * (double)rest;
        w->gaps[class] += t->seg_len[s];
    }
    double within = 0, all = 0, shorter = 0;
    for (size_t i = 0; i <= KVC_PROFILE_AGES; i++)
        all += (double)w->gaps[i];
    for (size_t i = 0; i < KVC_PROFILE_AGES; i++) {
        shorter += (double)w->gaps[i];
        within += w->held_ns[i];
        p->held_mean_blocks[i] =
            end ? (within + (all - shorter) * (double)ages[i]) / (double)end : (double)NAN;
        p->age_limit_ns[i] = ages[i];
        if (i) {
            p->age_touches[i] += p->age_touches[i - 1];
            p->age_tokens[i] += p->age_tokens[i - 1];
        }
    }
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        p->working_set[i].window_ns = windows[i];
        p->working_set[i].mean_blocks =
            (double)(w->window_sum[i] + w->in_window[i]) / (double)(end / windows[i] + 1);
    }
}

bool kvc_profile_reuse(const struct kvc_trace *t, struct kvc_segment_use *use,
                       struct kvc_profile *p)
{
    struct walk w = {.t = t, .use = use, .p = p};
    w.last = kvc_malloc(t->n_segments, sizeof(*w.last));
    if (!w.last)
        return false;
    memset(w.last, 0xff, t->n_segments * sizeof(*w.last));
    for (uint64_t r = 0; r < t->n_requests; r++) {
        if (t->prompt_seg[r] == KVC_SEG_NONE) {
            p->content_tokens[KVC_CONTENT_UNKNOWN] += t->input_tokens[r];
            continue;
        }
        begin_request(&w, t->arrival_ns[r]);
        touch_path(&w, r, t->arrival_ns[r]);
        end_request(&w);
    }
    finish(&w);
    kvc_free(w.last);
    return true;
}
