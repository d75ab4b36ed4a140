/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling/ceiling.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "policies/plugins/plugin.h"

#include <stdio.h>
#include <string.h>

/* ---- views ---- */

static enum kvc_status check_limits(const struct kvc_trace *t, struct kvc_error *err)
{
    uint64_t blocks = 0;
    for (uint32_t s = 0; s < t->n_segments; s++)
        blocks += t->seg_len[s];
    if (t->n_requests >= UINT32_MAX || blocks >= UINT32_MAX)
        return kvc_fail(err, KVC_ERR_LIMIT,
                        "%llu requests over %llu distinct blocks: ceilings take fewer than 2^32 of "
                        "each; import with larger blocks (--block-tokens) or a part (--window)",
                        (unsigned long long)t->n_requests, (unsigned long long)blocks);
    return KVC_OK;
}

enum kvc_status kvc_ceiling_view(struct kvc_ceiling_view *out, const struct kvc_trace *t,
                                 struct kvc_error *err)
{
    if (t->sample.weight)
        return kvc_fail(err, KVC_ERR_INPUT, "the trace holds samples of one in %u subtrees of "
                        "prompts, of which 'kvcast ceiling T.kvt --capacity LIST' tells rates with "
                        "bands; for anything else import all of the log", t->sample.weight);
    return kvc_ceiling_view_sampled(out, t, err);
}

enum kvc_status kvc_ceiling_view_sampled(struct kvc_ceiling_view *out, const struct kvc_trace *t,
                                         struct kvc_error *err)
{
    enum kvc_status status = check_limits(t, err);
    if (status)
        return status;
    *out = (struct kvc_ceiling_view){
        .n_requests = t->n_requests,
        .n_segments = t->n_segments,
        .block_tokens = t->block_tokens,
        .prompt_seg = t->prompt_seg,
        .input_tokens = t->input_tokens,
        .seg_parent = t->seg_parent,
        .seg_len = t->seg_len,
        .seg_depth = t->seg_depth,
        .arrival_ns = t->arrival_ns,
        .session = t->session,
        .tenant = t->tenant,
    };
    return KVC_OK;
}

static bool ends_partial(const struct kvc_trace *t, uint64_t request)
{
    return kvc_trace_full_blocks(t, request) < kvc_trace_blocks(t, request);
}

/* Cuts the segments marked with 1 in last_of before their last block. On return last_of[s] is the
 * piece that ends where s ended, body_of[s] the piece that ends a block earlier. */
static uint32_t cut_segments(const struct kvc_trace *t, uint32_t *last_of, uint32_t *body_of,
                             uint32_t *parent, uint32_t *len, uint32_t *depth)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < t->n_segments; s++) {
        bool cut = last_of[s] == 1;
        uint32_t up = t->seg_parent[s] == KVC_SEG_NONE ? KVC_SEG_NONE : last_of[t->seg_parent[s]];
        body_of[s] = up;
        if (cut && t->seg_len[s] > 1) {
            parent[n] = up;
            len[n] = t->seg_len[s] - 1;
            depth[n] = t->seg_depth[s];
            up = body_of[s] = n++;
        }
        parent[n] = up;
        len[n] = cut ? 1 : t->seg_len[s];
        depth[n] = t->seg_depth[s] + t->seg_len[s] - len[n];
        last_of[s] = n++;
    }
    return n;
}

enum kvc_status kvc_ceiling_view_full(struct kvc_ceiling_view *out, const struct kvc_trace *t,
                                      struct kvc_error *err)
{
    struct kvc_ceiling_view v;
    enum kvc_status status = kvc_ceiling_view(&v, t, err);
    if (status)
        return status;
    uint64_t cuts = 0, room = t->n_segments;
    uint32_t *body_of = NULL, *last_of = kvc_calloc(t->n_segments, sizeof(*last_of));
    if (!last_of)
        return kvc_fail_nomem(err);
    for (uint64_t r = 0; r < t->n_requests; r++)
        if (ends_partial(t, r)) {
            cuts += last_of[t->prompt_seg[r]] == 0;
            last_of[t->prompt_seg[r]] = 1;
        }
    room += cuts;
    body_of = kvc_malloc(t->n_segments, sizeof(*body_of));
    for (int i = 0; i < 4; i++)
        v.owned[i] = kvc_malloc(i ? room : t->n_requests, sizeof(uint32_t));
    if (!body_of || !v.owned[0] || !v.owned[1] || !v.owned[2] || !v.owned[3]) {
        kvc_ceiling_view_clear(&v);
        status = kvc_fail_nomem(err);
        goto done;
    }
    v.n_segments = cut_segments(t, last_of, body_of, v.owned[1], v.owned[2], v.owned[3]);
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t s = t->prompt_seg[r];
        v.owned[0][r] = s == KVC_SEG_NONE ? s : ends_partial(t, r) ? body_of[s] : last_of[s];
    }
    v.prompt_seg = v.owned[0];
    v.seg_parent = v.owned[1];
    v.seg_len = v.owned[2];
    v.seg_depth = v.owned[3];
    *out = v;
done:
    kvc_free(body_of);
    kvc_free(last_of);
    return status;
}

void kvc_ceiling_view_clear(struct kvc_ceiling_view *view)
{
    for (int i = 0; i < 4; i++) {
        kvc_free(view->owned[i]);
        view->owned[i] = NULL;
    }
}

/* ---- content ---- */

void kvc_hits_expect(const struct kvc_ceiling_view *v, uint64_t r, struct kvc_hits *hits)
{
    uint32_t s = v->prompt_seg[r];
    hits->requests++;
    hits->tokens += v->input_tokens[r];
    if (s == KVC_SEG_NONE)
        return;
    uint32_t blocks = v->seg_depth[s] + v->seg_len[s];
    uint32_t full = v->input_tokens[r] / v->block_tokens;
    hits->blocks += blocks;
    hits->full_blocks += blocks < full ? blocks : full;
}

void kvc_hits_begin(const struct kvc_ceiling_view *v, struct kvc_hits *out)
{
    memset(out, 0, sizeof(*out));
    for (uint64_t r = 0; r < v->n_requests; r++)
        kvc_hits_expect(v, r, out);
}

enum kvc_status kvc_ceiling_content_of(const struct kvc_ceiling_view *v, struct kvc_hits *out,
                                       uint32_t *runs, struct kvc_error *err)
{
    struct kvc_hits hits;
    uint8_t *seen = kvc_calloc(v->n_segments, 1);
    if (!seen)
        return kvc_fail_nomem(err);
    kvc_hits_begin(v, &hits);
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint32_t s = v->prompt_seg[r];
        /* what lies above a seen segment has been seen */
        for (; s != KVC_SEG_NONE && !seen[s]; s = v->seg_parent[s])
            seen[s] = 1;
        uint32_t run = s == KVC_SEG_NONE ? 0 : v->seg_depth[s] + v->seg_len[s];
        kvc_hits_count(v, r, run, &hits);
        if (runs)
            runs[r] = run;
    }
    kvc_free(seen);
    *out = hits;
    return KVC_OK;
}

enum kvc_status kvc_ceiling_content(const struct kvc_trace *trace, struct kvc_hits *out,
                                    struct kvc_error *err)
{
    struct kvc_ceiling_view v;
    enum kvc_status status = kvc_ceiling_view(&v, trace, err);
    return status ? status : kvc_ceiling_content_of(&v, out, NULL, err);
}

/* ---- policies by name ---- */

const char *const *kvc_ceiling_policies(void)
{
    static const char *const names[] = {
        "lru",      "fifo",     "lfu",       "plfu",   "lenaware", "sieve",     "s3fifo",
        "twoq",     "arc",      "ttl",       "ttlfixed", "lruk",   "gdsf",      "hyperbolic",
        "wtinylfu", "watermark", "random",   "radix",  "costaware", "lirs",     "lecar",
        "priority", "thinktime", "opt",      "optforced", NULL,
    };
    return names;
}

static enum kvc_status unknown_policy(const char *name, struct kvc_error *err)
{
    char known[512] = "";
    for (const char *const *p = kvc_ceiling_policies(); *p; p++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", *p);
    }
    const char *near = kvc_name_nearest(name, kvc_ceiling_policies());
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                       "there is no policy \"%s\"%s%s%s; known are %s, and plug-ins by their path",
                       name, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "",
                       known);
}

enum kvc_status kvc_ceiling_find_policy(const char **out, const char *spec, struct kvc_error *err)
{
    char name[32];
    const char *options, *const *known = kvc_ceiling_policies();
    if (kvc_plugin_is(spec)) {
        *out = spec;
        return kvc_runs_check(spec, err);
    }
    enum kvc_status status = kvc_policy_name(spec, name, sizeof(name), &options, err);
    while (!status && *known && !kvc_name_equal(*known, name))
        known++;
    if (status || !*known)
        return status ? status : unknown_policy(name, err);
    *out = strpbrk(spec, ":+") ? spec : *known;
    if (strcmp(*known, "opt") != 0)
        return kvc_runs_check(spec, err);
    return strchr(spec, '+') ? kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                                           "opt refuses what it likes; it takes no admission "
                                           "policy")
                             : kvc_policy_options(*known, options, NULL, 0, NULL, err);
}

enum kvc_status kvc_ceiling_policy(const struct kvc_trace *trace, const char *policy,
                                   const uint64_t *capacity_blocks, size_t n, struct kvc_hits *out,
                                   struct kvc_error *err)
{
    const char *name = NULL;
    struct kvc_ceiling_view v;
    enum kvc_status status = kvc_ceiling_find_policy(&name, policy, err);
    if (!status && n > 0)
        status = kvc_ceiling_view(&v, trace, err);
    if (status || n == 0)
        return status;
    if (strcmp(name, "lru") == 0)
        return kvc_ceiling_lru_of(&v, capacity_blocks, n, out, NULL, err);
    if (strcmp(name, "opt") == 0)
        return kvc_ceiling_opt_of(&v, capacity_blocks, n, out, NULL, err);
    return kvc_ceiling_runs_of(&v, name, capacity_blocks, n, out, NULL, err);
}

/* ---- curves ---- */

enum kvc_status kvc_ceiling_lru_curve(const struct kvc_trace *trace, struct kvc_curve *out,
                                      struct kvc_error *err)
{
    struct kvc_ceiling_view v;
    enum kvc_status status = kvc_ceiling_view(&v, trace, err);
    return status ? status : kvc_ceiling_curve_of(&v, out, err);
}

uint64_t kvc_curve_at(const struct kvc_curve *c, uint64_t capacity_blocks)
{
    if (c->n == 0)
        return 0;
    size_t low = 0, high = c->n; /* the last point at or below lies in [low, high) */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (c->capacity_blocks[middle] <= capacity_blocks)
            low = middle;
        else
            high = middle;
    }
    if (high == c->n)
        return c->raw_hit_blocks[low];
    uint64_t slope = (c->raw_hit_blocks[high] - c->raw_hit_blocks[low]) /
                     (c->capacity_blocks[high] - c->capacity_blocks[low]);
    return c->raw_hit_blocks[low] + slope * (capacity_blocks - c->capacity_blocks[low]);
}

/* Points that are each at least growth times the one before, and both ends; counts them, and
 * writes them where out is given. */
static size_t choose(const struct kvc_curve *c, double growth, struct kvc_curve *out)
{
    size_t n = 0;
    double at_least = 0;
    for (size_t i = 0; i < c->n; i++) {
        double at = (double)c->capacity_blocks[i];
        if (at < at_least && i + 1 < c->n)
            continue;
        at_least = at * growth;
        if (out) {
            out->capacity_blocks[n] = c->capacity_blocks[i];
            out->raw_hit_blocks[n] = c->raw_hit_blocks[i];
        }
        n++;
    }
    return n;
}

enum kvc_status kvc_curve_thin(const struct kvc_curve *curve, size_t most, struct kvc_curve *out,
                               struct kvc_error *err)
{
    if (most < 3)
        return kvc_fail(err, KVC_ERR_USAGE, "a thinned curve needs room for three points");
    double growth = 1, high = 2;
    if (curve->n > most) {
        while (choose(curve, high, NULL) > most)
            high *= high;
        for (int i = 0; i < 50; i++) {
            double middle = growth + (high - growth) / 2;
            if (choose(curve, middle, NULL) > most)
                growth = middle;
            else
                high = middle;
        }
        growth = high;
    }
    struct kvc_curve thin = {0};
    thin.capacity_blocks = kvc_malloc(curve->n, sizeof(*thin.capacity_blocks));
    thin.raw_hit_blocks = kvc_malloc(curve->n, sizeof(*thin.raw_hit_blocks));
    if (!thin.capacity_blocks || !thin.raw_hit_blocks) {
        kvc_curve_clear(&thin);
        return kvc_fail_nomem(err);
    }
    thin.n = choose(curve, growth, &thin);
    *out = thin;
    return KVC_OK;
}

void kvc_curve_clear(struct kvc_curve *curve)
{
    kvc_free(curve->capacity_blocks);
    kvc_free(curve->raw_hit_blocks);
    memset(curve, 0, sizeof(*curve));
}
