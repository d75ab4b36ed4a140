/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/profile.h"

#include "base/alloc.h"
#include "base/distribution.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

#define S 1000000000u

static const uint64_t ages[KVC_PROFILE_AGES] = { S, 10ull * S, 60ull * S, 300ull * S,
                                                 1800ull * S, 3600ull * S, 86400ull * S };
static const uint64_t windows[KVC_PROFILE_WINDOWS] = { 60ull * S, 600ull * S, 3600ull * S };

static bool lengths(const struct kvc_trace *t, struct kvc_profile *p)
{
    uint64_t n = t->n_requests, k = 0;
    size_t room = n > t->n_sessions ? (size_t)n : t->n_sessions;
    uint64_t *v = kvc_malloc(room, sizeof(*v));
    if (!v)
        return false;
    for (uint64_t r = 0; r < n; r++)
        v[r] = t->input_tokens[r];
    kvc_distribution(v, n, 1, &p->input_tokens);
    for (uint64_t r = 0; r < n; r++)
        v[r] = t->output_tokens[r];
    kvc_distribution(v, n, 1, &p->output_tokens);
    for (uint64_t r = 0; t->think_ns && r < n; r++)
        if (t->think_ns[r] != KVC_TIME_NONE)
            v[k++] = t->think_ns[r];
    kvc_distribution(v, k, 1e9, &p->think_s);
    if (t->session) {
        memset(v, 0, room * sizeof(*v));
        for (uint64_t r = 0; r < n; r++)
            if (t->session[r] != KVC_ID_NONE)
                v[t->session[r]]++;
        kvc_distribution(v, t->n_sessions, 1, &p->turns);
    }
    kvc_free(v);
    return true;
}

static void arrivals(const struct kvc_trace *t, struct kvc_profile *p)
{
    uint64_t n = t->n_requests, peak = 0, in_minute = 0, minute = 0;
    if (n < 2 || t->arrival_ns[n - 1] == 0)
        return;
    double span = (double)t->arrival_ns[n - 1] * 1e-9;
    double mean = span / (double)(n - 1), square = 0;
    for (uint64_t r = 0; r < n; r++) {
        uint64_t m = t->arrival_ns[r] / (60ull * S);
        in_minute = m == minute ? in_minute + 1 : 1;
        minute = m;
        peak = in_minute > peak ? in_minute : peak;
        if (r) {
            double gap = (double)(t->arrival_ns[r] - t->arrival_ns[r - 1]) * 1e-9 - mean;
            square += gap * gap;
        }
    }
    p->requests_per_s = (double)n / span;
    p->peak_requests_per_s = (double)peak / (span < 60 ? span : 60);
    p->gap_cv = sqrt(square / (double)(n - 1)) / mean;
}

/* Requests that pass through each segment: those that end there, and its children's. */
static uint64_t *passes(const struct kvc_trace *t)
{
    uint64_t *count = kvc_calloc(t->n_segments, sizeof(*count));
    if (!count)
        return NULL;
    for (uint64_t r = 0; r < t->n_requests; r++)
        if (t->prompt_seg[r] != KVC_SEG_NONE)
            count[t->prompt_seg[r]]++;
    for (uint32_t s = t->n_segments; s-- > 0;)
        if (t->seg_parent[s] != KVC_SEG_NONE)
            count[t->seg_parent[s]] += count[s];
    return count;
}

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

static bool sharing(const struct kvc_trace *t, struct kvc_profile *p)
{
    uint64_t *count = passes(t);
    if (!count)
        return false;
    for (uint32_t s = 0; s < t->n_segments; s++) {
        if (!count[s]) /* known from an output only */
            continue;
        p->touched_blocks += t->seg_len[s];
        p->one_hit_blocks += count[s] == 1 ? t->seg_len[s] : 0;
        p->reused_touches += (count[s] - 1) * t->seg_len[s];
        add_depths(p, t->seg_depth[s], t->seg_len[s], count[s]);
    }
    for (uint64_t r = 0; t->output_seg && r < t->n_requests; r++)
        p->outputs_known += t->output_seg[r] != KVC_SEG_NONE;
    kvc_free(count);
    return true;
}

struct window { /* state of one working-set measure */
    uint32_t *last; /* window + 1 in which each segment was last counted */
    uint64_t index, blocks, peak, total;
};

static void touch(struct kvc_profile *p, struct window *w, uint32_t s, uint32_t len,
                  uint64_t now, uint64_t *last)
{
    if (last[s] != KVC_TIME_NONE)
        for (size_t i = 0; i < KVC_PROFILE_AGES; i++)
            p->age_touches[i] += now - last[s] <= ages[i] ? len : 0;
    last[s] = now;
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
        uint64_t index = now / windows[i];
        if (index != w[i].index) {
            w[i].index = index;
            w[i].blocks = 0;
        }
        if (w[i].last[s] != (uint32_t)index + 1) {
            w[i].last[s] = (uint32_t)index + 1;
            w[i].total += len;
            w[i].blocks += len;
            w[i].peak = w[i].blocks > w[i].peak ? w[i].blocks : w[i].peak;
        }
    }
}

static bool reuse(const struct kvc_trace *t, struct kvc_profile *p)
{
    struct window w[KVC_PROFILE_WINDOWS] = { 0 };
    uint64_t *last = kvc_malloc(t->n_segments, sizeof(*last));
    bool ok = last != NULL;
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS && ok; i++)
        ok = (w[i].last = kvc_calloc(t->n_segments, sizeof(*w[i].last))) != NULL;
    if (ok) {
        memset(last, 0xff, t->n_segments * sizeof(*last));
        for (uint64_t r = 0; r < t->n_requests; r++)
            for (uint32_t s = t->prompt_seg[r]; s != KVC_SEG_NONE; s = t->seg_parent[s])
                touch(p, w, s, t->seg_len[s], t->arrival_ns[r], last);
        uint64_t end = t->n_requests ? t->arrival_ns[t->n_requests - 1] : 0;
        for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++) {
            p->working_set[i].window_ns = windows[i];
            p->working_set[i].mean_blocks = (double)w[i].total / (double)(end / windows[i] + 1);
            p->working_set[i].peak_blocks = w[i].peak;
        }
    }
    memcpy(p->age_limit_ns, ages, sizeof(ages));
    kvc_free(last);
    for (size_t i = 0; i < KVC_PROFILE_WINDOWS; i++)
        kvc_free(w[i].last);
    return ok;
}

static bool group(const uint32_t *column, uint32_t n, uint64_t requests, uint64_t **out)
{
    if (!n)
        return true;
    if (!(*out = kvc_calloc(n, sizeof(**out))))
        return false;
    for (uint64_t r = 0; column && r < requests; r++)
        if (column[r] < n)
            (*out)[column[r]]++;
    return true;
}

enum kvc_status kvc_profile_trace(const struct kvc_trace *t, struct kvc_profile *out,
                                  struct kvc_error *err)
{
    struct kvc_profile p = { 0 };
    arrivals(t, &p);
    if (!lengths(t, &p) || !sharing(t, &p) || !reuse(t, &p) ||
        !group(t->tenant, t->n_tenants, t->n_requests, &p.tenant_requests) ||
        !group(t->model, t->n_models, t->n_requests, &p.model_requests)) {
        kvc_profile_clear(&p);
        return kvc_fail_nomem(err);
    }
    *out = p;
    return KVC_OK;
}

void kvc_profile_clear(struct kvc_profile *p)
{
    kvc_free(p->tenant_requests);
    kvc_free(p->model_requests);
    p->tenant_requests = p->model_requests = NULL;
}
