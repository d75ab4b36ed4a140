/* SPDX-License-Identifier: Apache-2.0
 * What a request hit where, and one cause for each prompt token that it did not. */
#include "sim/replay/replica.h"

uint32_t kvc_replica_usable(const struct kvc_engine *e, uint32_t reach, uint32_t known)
{
    uint64_t p = e->sc->engine.partial_reuse ? 1 : e->page_tokens;
    uint64_t cached = (uint64_t)reach * e->block_tokens / p * p;
    uint64_t cap = (uint64_t)(known - 1) / p * p;
    return (uint32_t)(cached < cap ? cached : cap);
}

/* Leading blocks of the path that were ever published anywhere. */
static uint32_t ever_published(const struct kvc_engine *e, struct kvc_path path)
{
    uint32_t blocks = 0;
    for (uint32_t k = 0; k < path.n; k++) {
        uint32_t ever = e->segments[path.spans[k].seg].ever;
        blocks += ever;
        if (ever < path.spans[k].len)
            break;
    }
    return blocks;
}

/* Whether replica i may hold some of seg, in HBM or a tier it uses. */
static bool may_hold(const struct kvc_engine *e, const struct kvc_replica *r, uint32_t seg)
{
    if (!e->where[0] || e->where[0][seg] >> r->id & 1)
        return true;
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++)
        if (e->tiers[t].instances &&
            (!e->where[1 + t] ||
             e->where[1 + t][seg] >> kvc_tier_instance(e, &e->tiers[t], r) & 1))
            return true;
    return false;
}

/* How far another replica would reach; here it is had blocks. */
static uint32_t best_elsewhere(struct kvc_engine *e, const struct kvc_replica *r,
                               struct kvc_path path, uint32_t had, uint32_t limit, uint32_t known)
{
    uint32_t best = had, seg = KVC_SEG_NONE;
    for (uint32_t k = 0; k < path.n && seg == KVC_SEG_NONE; k++)
        if (had < path.spans[k].depth + path.spans[k].len)
            seg = path.spans[k].seg;
    for (uint32_t i = 0; i < e->n_replicas && seg != KVC_SEG_NONE; i++) {
        if (i == r->id || !may_hold(e, &e->replicas[i], seg))
            continue;
        struct kvc_reach there;
        kvc_replica_catch_up(e, &e->replicas[i]);
        kvc_tiers_lookup(e, &e->replicas[i], path, limit, known, &there);
        if (there.total > best)
            best = there.total;
    }
    return best;
}

/* Gives the tokens from *at to block end of the prompt to cause, if there are any. */
static void blame(struct kvc_engine *e, const struct kvc_job *j, enum kvc_miss_cause cause,
                  uint64_t *at, uint64_t end)
{
    if (end <= *at)
        return;
    kvc_engine_missed(e, j->request, cause, end - *at);
    *at = end;
}

/* What was there once is gone: block by block to whoever's it last fell to, or to time. */
static void blame_lost(struct kvc_engine *e, const struct kvc_job *j, struct kvc_path path,
                       uint64_t *at, uint64_t end)
{
    struct kvc_meter *m = &e->tenants.meter;
    uint64_t b = e->block_tokens, *row;
    if (!e->tenants.metered) {
        blame(e, j, KVC_MISS_EVICTED, at, end);
        return;
    }
    row = m->missed_tokens + m->group_of[j->tenant] * kvc_meter_columns(m);
    for (uint32_t k = 0; k < path.n && *at < end; k++) {
        const struct kvc_span *s = &path.spans[k];
        while (*at < end && *at / b < s->depth + s->len) {
            uint32_t why = m->gone[m->seg_base[s->seg] + *at / b - s->depth];
            uint64_t next = (*at / b + 1) * b < end ? (*at / b + 1) * b : end;
            row[why] += next - *at;
            blame(e, j, why == m->n_groups + KVC_WHY_TTL ? KVC_MISS_TTL : KVC_MISS_EVICTED, at,
                  next);
        }
    }
}

/* Tokens [from, to) were found in the tier; what a fetch brought there is due to where it was. */
static void count_tier_hits(struct kvc_engine *e, uint32_t job, uint32_t tier, uint64_t from,
                            uint64_t to)
{
    uint64_t left = to - from;
    for (uint32_t t = tier + 1; t < KVC_LOWER_TIERS; t++) {
        uint64_t n = kvc_fetch_tokens(e, job, t, from, to);
        e->results[e->jobs[job].request].hit_tokens[1 + t] += (uint32_t)n;
        e->tiers[t].hit_tokens += n;
        left -= n;
    }
    e->results[e->jobs[job].request].hit_tokens[1 + tier] += (uint32_t)left;
    e->tiers[tier].hit_tokens += left;
}

/* Up to what block lower tiers have more than the scheduler could load. */
static uint32_t best_below(struct kvc_engine *e, const struct kvc_replica *r, uint32_t job,
                           uint32_t had, uint32_t full)
{
    struct kvc_reach reach;
    if (!e->fetches_early)
        return had;
    kvc_job_lookup(e, r, &e->jobs[job], &reach);
    return reach.total < full ? reach.total : full;
}

void kvc_replica_account_hit(struct kvc_engine *e, struct kvc_replica *r, uint32_t job,
                             const struct kvc_reach *reach)
{
    const struct kvc_job *j = &e->jobs[job];
    struct kvc_request_result *res = &e->results[j->request];
    uint64_t b = e->block_tokens, at = reach->usable;
    res->hit_tokens[0] = reach->usable;
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++) {
        uint64_t end = reach->end[t] * b;
        if (end > reach->tokens)
            end = reach->tokens;
        if (reach->end[t] == reach->start[t] || end <= at)
            continue;
        count_tier_hits(e, job, t, at, end);
        at = end;
    }
    uint32_t full = kvc_trace_full_blocks(e->trace, j->request);
    for (uint32_t i = 0; e->trace->output_seg && i < e->n_replicas; i++)
        kvc_replica_catch_up(e, &e->replicas[i]); /* outputs are published as they are decoded */
    e->hit_blocks += reach->total;
    e->raw_hit_blocks += reach->total;
    e->raw_hit_tokens += reach->total * b;
    e->hit_requests += at > 0;
    r->hit_tokens += at;
    kvc_timeline_add(&e->timeline, KVC_CHANNEL_HIT_TOKENS, (double)at);
    if (e->tenants.metered) { /* both now: hits follow arrivals by as long as a queue is */
        uint32_t n = e->tenants.meter.n_groups, group = e->tenants.meter.group_of[j->tenant];
        kvc_timeline_add(&e->tenant_timeline, n + group, (double)j->input);
        kvc_timeline_add(&e->tenant_timeline, 2 * n + group, (double)at);
    }

    struct kvc_path path = kvc_engine_path(e, j->leaf, 0);
    uint32_t ever = ever_published(e, path);
    if (ever > full)
        ever = full;
    blame(e, j, KVC_MISS_ALIGNMENT, &at, reach->total * b);
    blame(e, j, KVC_MISS_NOT_READY, &at, best_below(e, r, job, reach->total, full) * b);
    if (reach->total < ever)
        blame(e, j, KVC_MISS_OTHER_REPLICA, &at,
              best_elsewhere(e, r, path, reach->total, full, j->known) * b);
    blame_lost(e, j, path, &at, ever * b);
    blame(e, j, KVC_MISS_NOT_READY, &at, j->arrived_before * b);
    blame(e, j, KVC_MISS_SALTED, &at, j->known_before * b);
    blame(e, j, KVC_MISS_FIRST_SIGHT, &at, full * b);
    blame(e, j, j->known_before >= full && full ? KVC_MISS_PARTIAL_BLOCK : KVC_MISS_FIRST_SIGHT,
          &at, j->input);
}
