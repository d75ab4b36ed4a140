/* SPDX-License-Identifier: Apache-2.0
 * Proofs that the optimum is one.
 *
 * A block touched by request s and next by e is hit at e only if it was kept through all instants
 * s, s + 1 .. e - 1, an instant being the moment right after that request. At an instant no more
 * than C blocks are kept. So for any set T of instants every cache has at most C |T| hits whose
 * interval [s, e) holds an instant of T, plus as many as there are intervals that hold none. This
 * is the dual of the linear program of packing intervals, whose matrix is totally unimodular, so
 * that some T makes the bound tight.
 *
 * Which T: let the optimum let go of blocks at instant i, the nearest next use among them being
 * e(i). Backwards, with Q(n) = 0:  Q(i) = max(Q(i + 1), 1 + Q(e(i))),  T = the i where it grows.
 *   Every block let go crosses T: dropped at i with next use e >= e(i), Q(i) > Q(e).
 *   At i of T exactly C blocks are kept, and none is let go later: all are used again by e(i),
 *     for the farthest went first; one let go at j > i would have Q(j) > Q(e(i)), so that Q had
 *     not grown at i.
 *   No block crosses T twice on its way to a hit: in [i, e) with e <= e(i) it would need
 *     Q(i) >= Q(e) + 2, but Q(i) = Q(e(i)) + 1 <= Q(e) + 1.
 * So hits = C |T| + intervals without an instant of T. The check below knows nothing of this. */
#include "base/alloc.h"
#include "base/error.h"
#include "sim/ceiling/ceiling.h"

#include <string.h>

static enum kvc_status choose_instants(struct kvc_certificate *c, const uint32_t *dropped,
                                       struct kvc_error *err)
{
    uint64_t n = c->n_requests;
    uint32_t *after = kvc_calloc(n + 1, sizeof(*after)); /* Q */
    if (!after)
        return kvc_fail_nomem(err);
    for (uint64_t i = n; i-- > 0;) {
        after[i] = after[i + 1];
        if (dropped[i] != UINT32_MAX && after[dropped[i]] == after[i])
            after[i]++;
    }
    c->n_instants = 0;
    c->instants = kvc_malloc(after[0], sizeof(*c->instants));
    for (uint64_t i = 0; c->instants && i < n; i++)
        if (after[i] > after[i + 1])
            c->instants[c->n_instants++] = (uint32_t)i;
    kvc_free(after);
    return c->instants ? KVC_OK : kvc_fail_nomem(err);
}

enum kvc_status kvc_ceiling_certify(const struct kvc_trace *trace, uint64_t capacity_blocks,
                                    struct kvc_certificate *out, struct kvc_error *err)
{
    struct kvc_ceiling_view v;
    struct kvc_hits hits;
    struct kvc_certificate c = {.capacity_blocks = capacity_blocks,
                                .n_requests = trace->n_requests};
    enum kvc_status status = kvc_ceiling_view(&v, trace, err);
    if (status)
        return status;
    uint32_t *dropped = kvc_malloc(c.n_requests, sizeof(*dropped));
    c.runs = kvc_malloc(c.n_requests, sizeof(*c.runs));
    status = dropped && c.runs
                 ? kvc_ceiling_opt_drops(&v, capacity_blocks, &hits, c.runs, dropped, err)
                 : kvc_fail_nomem(err);
    if (!status)
        status = choose_instants(&c, dropped, err);
    kvc_free(dropped);
    if (status)
        kvc_certificate_clear(&c);
    else
        *out = c;
    return status;
}

void kvc_certificate_clear(struct kvc_certificate *c)
{
    kvc_free(c->runs);
    kvc_free(c->instants);
    memset(c, 0, sizeof(*c));
}

/* ---- the check ---- */

struct check {
    const struct kvc_ceiling_view *v;
    const struct kvc_certificate *c;
    uint32_t *before;  /* by request: instants before it */
    uint32_t *touched; /* by segment: by the last request; UINT32_MAX */
    int64_t *change;   /* by instant: of the blocks kept */
};

/* False unless they ascend and are the trace's. */
static bool count_instants(struct check *k)
{
    size_t at = 0;
    for (uint64_t r = 0; r < k->v->n_requests; r++) {
        k->before[r] = (uint32_t)at;
        at += at < k->c->n_instants && k->c->instants[at] == r;
    }
    return at == k->c->n_instants;
}

static void check_request(struct check *k, uint32_t r, struct kvc_certificate_check *out)
{
    const struct kvc_ceiling_view *v = k->v;
    uint32_t s = v->prompt_seg[r], run = k->c->runs[r];
    out->raw_hit_blocks += run;
    if (run > (s == KVC_SEG_NONE ? 0 : v->seg_depth[s] + v->seg_len[s]))
        out->possible = false;
    for (; s != KVC_SEG_NONE; s = v->seg_parent[s]) {
        uint32_t last = k->touched[s], hit = run > v->seg_depth[s] ? run - v->seg_depth[s] : 0;
        hit = hit < v->seg_len[s] ? hit : v->seg_len[s];
        k->touched[s] = r;
        if (last == UINT32_MAX) {
            out->possible &= hit == 0;
            continue;
        }
        k->change[last] += hit;
        k->change[r] -= hit;
        if (k->before[last] == k->before[r])
            out->free_reuses += v->seg_len[s];
    }
}

static void conclude(const struct check *k, struct kvc_certificate_check *out)
{
    int64_t held = 0, most = 0;
    for (uint64_t r = 0; r < k->v->n_requests; r++) {
        held += k->change[r];
        most = held > most ? held : most;
    }
    out->most_held_blocks = (uint64_t)most;
    uint64_t bound = 0;
    if (__builtin_mul_overflow(k->c->capacity_blocks, (uint64_t)k->c->n_instants, &bound) ||
        __builtin_add_overflow(bound, out->free_reuses, &bound))
        bound = UINT64_MAX;
    out->bound_blocks = bound;
    out->optimal = out->possible && out->most_held_blocks <= k->c->capacity_blocks &&
                   out->raw_hit_blocks == bound;
}

enum kvc_status kvc_certificate_check(const struct kvc_trace *trace,
                                      const struct kvc_certificate *certificate,
                                      struct kvc_certificate_check *out, struct kvc_error *err)
{
    struct kvc_ceiling_view v;
    struct kvc_certificate_check found = {.possible = true};
    enum kvc_status status = kvc_ceiling_view(&v, trace, err);
    if (status)
        return status;
    if (certificate->n_requests != v.n_requests)
        return kvc_fail(err, KVC_ERR_USAGE,
                        "the certificate is of %llu requests, the trace has %llu",
                        (unsigned long long)certificate->n_requests,
                        (unsigned long long)v.n_requests);
    struct check k = {.v = &v, .c = certificate};
    k.before = kvc_malloc(v.n_requests, sizeof(*k.before));
    k.touched = kvc_malloc(v.n_segments, sizeof(*k.touched));
    k.change = kvc_calloc(v.n_requests, sizeof(*k.change));
    if (!k.before || !k.touched || !k.change) {
        status = kvc_fail_nomem(err);
    } else if (!count_instants(&k)) {
        status = kvc_fail(err, KVC_ERR_USAGE, "the instants of the certificate do not ascend, or "
                          "lie behind the trace's last request");
    } else {
        memset(k.touched, 0xff, v.n_segments * sizeof(*k.touched));
        for (uint32_t r = 0; r < v.n_requests; r++)
            check_request(&k, r, &found);
        conclude(&k, &found);
        *out = found;
    }
    kvc_free(k.change);
    kvc_free(k.touched);
    kvc_free(k.before);
    return status;
}
