/* SPDX-License-Identifier: Apache-2.0
 * KV that lies below host memory is fetched into it while a request waits: SGLang's HiCache
 * (_prefetch_kvcache, prefetch_from_storage, check_prefetch_progress). docs/replay.md has the
 * rules. */
#include "sim/replay/replica.h"
#include "sim/replay/tiers_internal.h"

#include "base/alloc.h"

/* prefetch_timeout_base and prefetch_timeout_per_ki_token. */
#define TIMEOUT_NS UINT64_C(1000000000)
#define TIMEOUT_KI_NS UINT64_C(250000000)

void kvc_fetch_init(struct kvc_engine *e)
{
    const struct kvc_tier *dram = &e->tiers[0];
    e->fetches_early = e->sc->engine.prefetch != KVC_PREFETCH_NEVER && e->block_tokens &&
                       dram->config->present && kvc_tier_next(e, 0);
    if (!e->fetches_early)
        return;
    uint64_t host = kvc_tier_instance_bytes(e->sc, 0) / e->token_bytes;
    uint64_t hbm = e->replicas[0].pool.pages * e->page_tokens;
    if (host > hbm)
        e->prefetch_limit = (uint64_t)(e->sc->engine.prefetch_limit * (double)(host - hbm));
}

static uint32_t fetch_new(struct kvc_engine *e, uint32_t job)
{
    uint32_t i = e->free_fetch;
    if (i != KVC_NONE) {
        e->free_fetch = e->fetches[i].next_free;
    } else {
        if (!kvc_grow((void **)&e->fetches, &e->cap_fetches, e->n_fetches + 1,
                      sizeof(*e->fetches))) {
            e->nomem = true;
            return KVC_NONE;
        }
        i = (uint32_t)e->n_fetches++;
    }
    e->fetches[i] = (struct kvc_fetch){.job = job, .transfer = {KVC_NONE, KVC_NONE, KVC_NONE}};
    e->jobs[job].fetch = i + 1;
    return i;
}

/* What host memory has of blocks [from, to), which the tier had, stays until the scheduler has
 * looked. */
static void keep(struct kvc_engine *e, uint32_t fetch, uint32_t tier, uint32_t from, uint32_t to)
{
    struct kvc_fetch *f = &e->fetches[fetch];
    const struct kvc_job *j = &e->jobs[f->job];
    const struct kvc_replica *r = &e->replicas[j->replica];
    struct kvc_pool *host = &e->tiers[0].pools[kvc_tier_instance(e, &e->tiers[0], r)];
    struct kvc_path path = kvc_engine_path(e, j->leaf, 0);
    f->from[tier] = from;
    f->to[tier] = kvc_pool_reach(host, path, from, to);
    if (f->to[tier] > from)
        kvc_pool_hold(host, path, from, f->to[tier]);
}

static void read_from(struct kvc_engine *e, uint32_t fetch, uint32_t t,
                      const struct kvc_reach *reach)
{
    struct kvc_fetch *f = &e->fetches[fetch];
    const struct kvc_job *j = &e->jobs[f->job];
    struct kvc_tier *tier = &e->tiers[t];
    uint32_t instance = kvc_tier_instance(e, tier, &e->replicas[j->replica]);
    struct kvc_piece read = {j->leaf, reach->start[t], reach->end[t], j->tenant, KVC_NONE};
    struct kvc_transfer value = {.job = f->job, .tier = t, .instance = instance,
                                 .replica = j->replica, .fetch = fetch + 1,
                                 .pieces = kvc_piece_new(e, read)};
    uint32_t i = value.pieces == KVC_NONE ? KVC_NONE : kvc_transfer_new(e, value);
    if (i == KVC_NONE)
        return;
    kvc_pool_hold(&tier->pools[instance], kvc_engine_path(e, j->leaf, 0), read.from, read.to);
    f->transfer[t] = i;
    f->open++;
    kvc_tiers_move_up(e, i, (uint64_t)(read.to - read.from) * e->block_tokens * e->token_bytes, 0);
}

static void end_after(struct kvc_engine *e, uint32_t fetch, uint64_t ns)
{
    struct kvc_fetch *f = &e->fetches[fetch];
    struct kvc_transfer value = {.job = f->job, .tier = KVC_LOWER_TIERS, .pieces = KVC_NONE,
                                 .replica = e->jobs[f->job].replica, .fetch = fetch + 1};
    f->transfer[0] = kvc_transfer_new(e, value);
    if (f->transfer[0] != KVC_NONE)
        kvc_tiers_wake_after(e, f->transfer[0], ns);
}

bool kvc_fetch_begin(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    const struct kvc_job *j = &e->jobs[job];
    struct kvc_reach reach;
    if (!e->fetches_early)
        return false;
    kvc_replica_catch_up(e, r);
    kvc_job_lookup(e, r, j, &reach);
    kvc_tiers_touch(e, r, kvc_engine_path(e, j->leaf, 0), j->known / e->block_tokens, j->tenant);
    if (r->fetching_tokens >= e->prefetch_limit)
        return false;
    uint64_t there = (uint64_t)reach.end[0] * e->block_tokens;
    uint64_t rest = (j->known - there) / e->page_tokens * e->page_tokens;
    uint64_t found = (uint64_t)reach.total * e->block_tokens - there;
    uint32_t least = e->sc->engine.prefetch_threshold;
    uint32_t i = found && rest >= least && found >= least ? fetch_new(e, job) : KVC_NONE;
    if (i == KVC_NONE)
        return false;
    keep(e, i, 0, reach.start[0], reach.end[0]); /* what it has there already must not go */
    e->fetches[i].tokens = rest;
    r->fetching_tokens += rest;
    for (uint32_t t = 1; t < KVC_LOWER_TIERS; t++)
        if (reach.end[t] > reach.start[t])
            read_from(e, i, t, &reach);
    if (e->sc->engine.prefetch == KVC_PREFETCH_TIMEOUT) /* last: reads that end then have ended */
        end_after(e, i, TIMEOUT_NS + found * TIMEOUT_KI_NS / 1024);
    return e->sc->engine.prefetch != KVC_PREFETCH_BEST_EFFORT;
}

/* The first blocks that a transfer was to bring are in host memory, where they stay until the
 * scheduler has looked. */
static void land(struct kvc_engine *e, uint32_t transfer, uint64_t blocks)
{
    struct kvc_transfer x = e->transfers[transfer];
    struct kvc_fetch *f = &e->fetches[x.fetch - 1];
    const struct kvc_replica *r = &e->replicas[x.replica];
    struct kvc_piece p = e->pieces[x.pieces];
    kvc_tiers_let_go(e, x.tier, r, p, p.from + (uint32_t)blocks);
    kvc_transfer_free(e, transfer);
    f->transfer[x.tier] = KVC_NONE;
    f->open--;
    p.to = p.from + (uint32_t)blocks;
    if (!blocks)
        return;
    kvc_tiers_promote(e, p, r, e->jobs[x.job].request);
    keep(e, x.fetch - 1, x.tier, p.from, p.to);
}

/* Its end in time no longer matters; one that is about to be told of is told of to nobody. */
static void drop_end(struct kvc_engine *e, struct kvc_fetch *f)
{
    uint32_t i = f->transfer[0];
    f->transfer[0] = KVC_NONE;
    if (kvc_links_cancel(e->links, e->now, e->transfers[i].flow))
        kvc_transfer_free(e, i);
    else
        e->transfers[i].fetch = 0;
}

/* What has come of it in whole blocks stays. */
static void stop(struct kvc_engine *e, struct kvc_fetch *f)
{
    uint64_t block_bytes = e->block_tokens * e->token_bytes;
    for (uint32_t t = 0; t < KVC_LOWER_TIERS; t++) {
        uint32_t i = f->transfer[t];
        if (i == KVC_NONE)
            continue;
        if (t == 0) {
            drop_end(e, f);
            continue;
        }
        uint64_t came = kvc_tiers_cut(e, i);
        struct kvc_piece p = e->pieces[e->transfers[i].pieces];
        e->tiers[t].read_bytes -= (p.to - p.from) * block_bytes - came;
        land(e, i, came / block_bytes);
    }
}

void kvc_fetch_done(struct kvc_engine *e, uint32_t transfer)
{
    struct kvc_transfer x = e->transfers[transfer];
    struct kvc_fetch *f = &e->fetches[x.fetch - 1];
    if (x.tier == KVC_LOWER_TIERS) {
        kvc_transfer_free(e, transfer);
        f->transfer[0] = KVC_NONE;
        stop(e, f);
    } else {
        struct kvc_piece p = e->pieces[x.pieces];
        land(e, transfer, p.to - p.from);
        if (f->open)
            return;
        stop(e, f); /* its time */
    }
    if (e->sc->engine.prefetch != KVC_PREFETCH_BEST_EFFORT)
        kvc_replica_come(e, x.job);
}

void kvc_fetch_seen(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    const struct kvc_job *j = &e->jobs[job];
    struct kvc_fetch *f = j->fetch ? &e->fetches[j->fetch - 1] : NULL;
    if (!f || f->seen)
        return;
    f->seen = true;
    stop(e, f);
    r->fetching_tokens -= f->tokens;
    for (uint32_t t = 0; t < KVC_LOWER_TIERS; t++) {
        struct kvc_piece p = {j->leaf, f->from[t], f->to[t], j->tenant, KVC_NONE};
        if (p.to > p.from)
            kvc_tiers_let_go(e, 0, r, p, 0);
    }
}

uint64_t kvc_fetch_tokens(const struct kvc_engine *e, uint32_t job, uint32_t tier, uint64_t from,
                          uint64_t to)
{
    if (!e->jobs[job].fetch)
        return 0;
    const struct kvc_fetch *f = &e->fetches[e->jobs[job].fetch - 1];
    uint64_t lo = (uint64_t)f->from[tier] * e->block_tokens;
    uint64_t hi = (uint64_t)f->to[tier] * e->block_tokens;
    lo = lo > from ? lo : from;
    hi = hi < to ? hi : to;
    return hi > lo ? hi - lo : 0;
}

void kvc_fetch_forget(struct kvc_engine *e, uint32_t job)
{
    uint32_t i = e->jobs[job].fetch;
    if (!i)
        return;
    e->jobs[job].fetch = 0;
    e->fetches[i - 1].next_free = e->free_fetch;
    e->free_fetch = i - 1;
}
