/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's fetches into host memory while requests wait, as docs/replay.md says. */
#include "tests/twins/twin_tiers.h"

#include "sim/replay/links.h"

bool twin_fetches(const struct twin *tw)
{
    const struct kvc_tier_config *t = tw->sc->tiers;

    return tw->sc->engine.prefetch != KVC_PREFETCH_NEVER && t[0].present &&
           (t[1].present || t[2].present) && tw->trace->block_tokens;
}

static uint64_t most(const struct twin *tw)
{
    uint64_t host = tw->sc->tiers[0].capacity_bytes, hbm = tw->setup->pages * tw->P;

    if (tw->sc->tiers[0].scope == KVC_PER_GPU)
        host *= (uint64_t)tw->sc->cluster.tp * tw->sc->cluster.pp;
    host /= tw->setup->kv_bytes_per_token;
    return host > hbm ? (uint64_t)(tw->sc->engine.prefetch_limit * (double)(host - hbm)) : 0;
}

/* What host memory has of blocks [from, to), which tier k had, stays until the scheduler has
 * looked. */
static void keep(struct twin *tw, const struct replica *rep, struct req *r, uint32_t k,
                 uint32_t from, uint32_t to)
{
    struct instance *host = &tw->tiers->of[0][twin_instance(tw, 0, rep->index)];

    r->fetched_from[k] = r->fetched_to[k] = from;
    for (uint32_t b = from; b < to; b++) {
        struct stored *s = find(host, r->path[b]);

        if (!s || !s->readable)
            break;
        s->holds++;
        r->fetched_to[k]++;
    }
}

static void start(struct twin *tw, struct replica *rep, struct req *r, int k, uint32_t from,
                  uint32_t to)
{
    struct instance *inst = &tw->tiers->of[k][twin_instance(tw, k, rep->index)];
    struct transfer *t = twin_transfer(tw, k, rep, r, to - from);

    t->load = t->fetch = true;
    for (uint32_t b = from; b < to; b++) {
        find(inst, r->path[b])->holds++;
        t->nodes[t->n] = r->path[b];
        t->depths[t->n++] = b;
    }
    r->fetch_open++;
    r->fetch_transfer[k] = (uint32_t)(t - tw->tiers->transfers);
    tw->out->tier_read_blocks[k] += t->n;
    twin_flow_start(tw, t, false, true, (uint64_t)t->n * tw->B * tw->setup->kv_bytes_per_token, 0);
}

bool fetch_begin(struct twin *tw, struct replica *rep, struct req *r)
{
    struct reach reach;
    uint64_t rest, found;

    r->place = ++tw->comings;
    if (!twin_fetches(tw))
        return false;
    tiers_reach(tw, rep, r, r->N, &reach);
    tiers_touch(tw, rep, r);
    if (rep->fetching >= most(tw))
        return false;
    rest = (r->N - (uint64_t)reach.to[0] * tw->B) / tw->P * tw->P;
    found = (uint64_t)(reach.run - reach.to[0]) * tw->B;
    if (!found || rest < tw->sc->engine.prefetch_threshold ||
        found < tw->sc->engine.prefetch_threshold)
        return false;
    r->fetching = true;
    keep(tw, rep, r, 0, reach.from[0], reach.to[0]);
    r->fetch_tokens = rest;
    rep->fetching += rest;
    for (int k = 0; k < 3; k++)
        r->fetch_transfer[k] = TWIN_NONE;
    for (int k = 1; k < 3; k++)
        if (reach.to[k] > reach.from[k])
            start(tw, rep, r, k, reach.from[k], reach.to[k]);
    if (tw->sc->engine.prefetch == KVC_PREFETCH_TIMEOUT) {
        struct transfer *t = twin_transfer(tw, 3, rep, r, 0);

        t->fetch = true;
        r->fetch_transfer[0] = (uint32_t)(t - tw->tiers->transfers);
        twin_flow_wait(tw, t, 1000000000 + found * 250000000 / 1024);
    }
    return tw->sc->engine.prefetch != KVC_PREFETCH_BEST_EFFORT;
}

/* So many blocks have come: they are kept until the scheduler has looked. */
static void land(struct twin *tw, uint32_t transfer, uint32_t n)
{
    struct transfer *t = &tw->tiers->transfers[transfer];
    struct req *r = t->request;
    struct replica *rep = &tw->rep[r->replica];
    uint32_t k = t->tier, from = t->n ? t->depths[0] : 0;
    struct batch up = batch_new(n);

    for (uint32_t j = 0; j < n; j++)
        batch_add(&up, t->nodes[j], t->depths[j], r->tenant);
    twin_has_read(tw, t, n);
    r->fetch_transfer[k] = TWIN_NONE;
    r->fetch_open--;
    twin_goes_up(tw, &up, rep, r);
    keep(tw, rep, r, k, from, from + n);
    batch_free(&up);
}

static void stop(struct twin *tw, struct req *r)
{
    uint64_t block = tw->B * tw->setup->kv_bytes_per_token;

    for (int k = 0; k < 3; k++) {
        uint32_t i = r->fetch_transfer[k];
        struct transfer *t = &tw->tiers->transfers[i];

        if (i == TWIN_NONE)
            continue;
        uint64_t came = k ? kvc_links_moved(tw->tiers->links, tw->now, t->flow) : 0;

        kvc_links_cancel(tw->tiers->links, tw->now, t->flow);
        t->over = true;
        r->fetch_transfer[k] = TWIN_NONE;
        if (k) {
            tw->out->tier_read_blocks[k] -= t->n - (uint32_t)(came / block);
            land(tw, i, (uint32_t)(came / block));
        }
    }
}

void fetch_ended(struct twin *tw, uint32_t transfer)
{
    struct transfer t = tw->tiers->transfers[transfer];
    struct req *r = t.request;

    if (t.over)
        return;
    if (t.tier < 3)
        land(tw, transfer, t.n);
    else
        r->fetch_transfer[0] = TWIN_NONE;
    if (t.tier < 3 && r->fetch_open)
        return;
    stop(tw, r);
    if (tw->sc->engine.prefetch != KVC_PREFETCH_BEST_EFFORT)
        twin_come(tw, r);
}

void fetch_seen(struct twin *tw, struct replica *rep, struct req *r)
{
    struct instance *host;

    if (!r->fetching)
        return;
    host = &tw->tiers->of[0][twin_instance(tw, 0, rep->index)];
    r->fetching = false;
    rep->fetching -= r->fetch_tokens;
    stop(tw, r);
    for (int k = 0; k < 3; k++)
        if (r->fetched_to[k] > r->fetched_from[k])
            twin_let_go(tw, 0, host, r->path + r->fetched_from[k],
                        r->fetched_to[k] - r->fetched_from[k], r, rep);
}

uint64_t fetch_share(const struct twin *tw, const struct req *r, int k, uint64_t from, uint64_t to)
{
    uint64_t n = 0;

    for (uint64_t token = from; token < to; token++)
        n += token / tw->B >= r->fetched_from[k] && token / tw->B < r->fetched_to[k];
    return n;
}
