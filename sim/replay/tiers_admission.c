/* SPDX-License-Identifier: Apache-2.0
 * What a tier refuses of the blocks it is offered. Each instance knows the requests that were
 * admitted or parked where it is used, not those elsewhere. */
#include "sim/replay/replica.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "policies/policies.h"

enum kvc_status kvc_tier_admissions(const struct kvc_engine *e, struct kvc_tier *tier,
                                    struct kvc_error *err)
{
    const struct kvc_trace *t = e->trace;
    const char *spec = tier->config->admission;
    if (!spec[0] || kvc_name_equal(spec, "always"))
        return KVC_OK;
    tier->admissions = kvc_calloc(tier->instances, sizeof(struct kvc_admission *));
    if (!tier->admissions)
        return kvc_fail_nomem(err);
    enum kvc_status st = KVC_OK;
    for (uint32_t i = 0; i < tier->instances && st == KVC_OK; i++) {
        const struct kvc_admission_setup setup = {
            .spec = spec, .capacity = tier->pools[i].pages, .n_segments = t->n_segments,
            .seg_len = t->seg_len, .seg_depth = t->seg_depth, .seg_parent = t->seg_parent,
            .block_tokens = e->block_tokens,
        };
        st = kvc_admission_create(&tier->admissions[i], &setup, err);
    }
    return st;
}

void kvc_tier_admissions_clear(struct kvc_tier *tier)
{
    for (uint32_t i = 0; tier->admissions && i < tier->instances; i++)
        kvc_admission_destroy(tier->admissions[i]);
    kvc_free(tier->admissions);
}

enum kvc_status kvc_tiers_admission_error(const struct kvc_engine *e, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++) {
        const struct kvc_tier *tier = &e->tiers[t];
        for (uint32_t i = 0; tier->admissions && i < tier->instances && st == KVC_OK; i++)
            st = kvc_admission_error(tier->admissions[i], err);
    }
    return st;
}

static struct kvc_policy_request seen_of(const struct kvc_engine *e, uint32_t request)
{
    const struct kvc_trace *t = e->trace;
    uint32_t seg = t->prompt_seg[request];
    return (struct kvc_policy_request){
        .index = request, .time_ns = e->now, .segment = seg,
        .blocks = seg == KVC_SEG_NONE ? 0 : t->seg_depth[seg] + t->seg_len[seg],
        .input_tokens = t->input_tokens[request],
        .session = t->session ? t->session[request] : KVC_ID_NONE,
        .tenant = t->tenant ? t->tenant[request] : KVC_ID_NONE,
    };
}

void kvc_tiers_ask(struct kvc_engine *e, const struct kvc_replica *r, uint32_t request)
{
    const struct kvc_policy_request seen = seen_of(e, request);
    if (seen.segment == KVC_SEG_NONE || !e->sc->engine.prefix_caching)
        return;
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++) {
        struct kvc_tier *tier = &e->tiers[t];
        struct kvc_admission *a =
            tier->admissions ? tier->admissions[kvc_tier_instance(e, tier, r)] : NULL;
        if (a && !kvc_admission_ask(a, &seen))
            e->failed = a;
    }
}

struct holder {
    const struct kvc_trace *trace;
    const struct kvc_pool *pool;
};

/* Leading blocks of a segment that are stored or on their way in. */
static uint32_t held_of(const void *user, uint32_t seg)
{
    const struct holder *h = user;
    const struct kvc_span span = {seg, 0, h->trace->seg_len[seg]};
    uint32_t from = 0, to;
    return kvc_pool_gap(h->pool, (struct kvc_path){&span, 1}, &from, &to, span.len) ? from
                                                                                   : span.len;
}

uint32_t kvc_tier_admitted(struct kvc_engine *e, const struct kvc_transfer *what,
                           struct kvc_piece p, uint32_t row)
{
    struct kvc_tier *tier = &e->tiers[what->tier];
    const struct kvc_pool *pool = &tier->pools[what->instance];
    if (!tier->admissions || p.from >= p.to)
        return p.to;
    struct kvc_admission *a = tier->admissions[what->instance];
    uint64_t limit;
    if (what->request == KVC_NONE) {
        limit = kvc_admission_alone(a, p.leaf, e->now);
    } else {
        const struct kvc_policy_request seen = seen_of(e, what->request);
        const struct holder h = {e->trace, pool};
        limit = kvc_admission_limit(a, &seen, p.leaf, held_of, &h);
    }
    if (kvc_admission_failed(a))
        e->failed = a;
    if (limit >= p.to)
        return p.to;
    struct kvc_path path = kvc_engine_path(e, p.leaf, row);
    uint32_t end = (uint32_t)limit > p.from ? (uint32_t)limit : p.from;
    for (uint32_t from = end, to; from < p.to && kvc_pool_gap(pool, path, &from, &to, p.to);
         from = to)
        tier->refused_bytes += (uint64_t)(to - from) * e->block_tokens * e->token_bytes;
    return end;
}
