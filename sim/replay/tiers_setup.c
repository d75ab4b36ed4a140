/* SPDX-License-Identifier: Apache-2.0
 * What a scenario makes of the tiers below HBM and of the links to them. */
#include "sim/replay/replica.h"

#include "base/alloc.h"
#include "base/error.h"
#include "models/user_profile.h"

#include <stdio.h>
#include <string.h>

struct link_figures {
    const char *name;
    double both; /* 0: each direction as if it were alone */
    struct kvc_link_use read, write;
};

const struct kvc_tier *kvc_tier_next(const struct kvc_engine *e, uint32_t tier)
{
    for (uint32_t t = tier + 1; t < KVC_LOWER_TIERS; t++)
        if (e->tiers[t].config->present)
            return &e->tiers[t];
    return NULL;
}

uint32_t kvc_tier_instance(const struct kvc_engine *e, const struct kvc_tier *tier,
                           const struct kvc_replica *r)
{
    (void)e;
    switch (tier->config->scope) {
    case KVC_PER_NODE:
        return r->node;
    case KVC_CLUSTER:
        return 0;
    case KVC_PER_GPU:
    case KVC_PER_REPLICA:
    default:
        return r->id;
    }
}

static uint32_t gpus_of(const struct kvc_engine *e)
{
    return e->sc->cluster.tp * e->sc->cluster.pp;
}

bool kvc_tier_link(const struct kvc_engine *e, const char *link, const struct kvc_tier_config *c,
                   struct kvc_link_profile *out)
{
    memset(out, 0, sizeof(*out));
    if (c && !c->link[0]) {
        out->name = c->name;
        out->read_bytes_per_s.value = out->write_bytes_per_s.value =
            c->link_bytes_per_s * c->link_efficiency;
        out->latency_ns.value = (double)c->link_latency_ns;
    } else if (!kvc_user_link(e->user, link, out)) {
        return false;
    }
    if (c)
        kvc_connector_limit(c->connector, out);
    if (c && c->link_queue_depth)
        out->queue_depth = (struct kvc_figure){c->link_queue_depth, "scenario",
                                               "given in the scenario"};
    return true;
}

/* Each GPU moves its own share of a chunk, in one operation or in several: of what size it is said,
 * or page by page and tensor by tensor. */
double kvc_tier_op_bytes(const struct kvc_engine *e, const struct kvc_tier_config *c)
{
    uint32_t chunk = c && c->chunk_tokens ? c->chunk_tokens : e->page_tokens;
    double share = (double)e->token_bytes * chunk / gpus_of(e), piece = share;

    if (c && c->link_io_bytes)
        piece = (double)c->link_io_bytes;
    else if (c && c->connector)
        piece = kvc_connector_piece_bytes((double)e->token_bytes, e->page_tokens, e->sc->cluster.tp,
                                          e->room.token_tensors);
    return piece < share ? piece : share;
}

uint32_t kvc_tier_devices(const struct kvc_engine *e, const struct kvc_tier_config *c)
{
    if (c && c->link_devices)
        return c->link_devices;
    return c == &e->sc->tiers[1] ? 1 : gpus_of(e);
}

static enum kvc_status figures_of(const struct kvc_engine *e, const char *link,
                                  const struct kvc_tier_config *c, struct link_figures *out,
                                  struct kvc_error *err)
{
    struct kvc_link_profile p;
    double devices = kvc_tier_devices(e, c), op = kvc_tier_op_bytes(e, c);
    if (!kvc_tier_link(e, link, c, &p))
        return kvc_fail(err, KVC_ERR_INPUT, "no link is called \"%s\"", link);
    if (!(p.read_bytes_per_s.value > 0) || !(p.write_bytes_per_s.value > 0))
        return kvc_fail(err, KVC_ERR_INPUT, "link \"%s\" has no bandwidth", p.name);
    out->name = p.name;
    out->both = p.both_bytes_per_s.value * devices;
    kvc_link_use_of(&out->read, &p, false, op, devices);
    kvc_link_use_of(&out->write, &p, true, op, devices);
    return KVC_OK;
}

static enum kvc_status add_link(struct kvc_engine *e, const char *link, const char *direction,
                                double rate, uint32_t *out, struct kvc_error *err)
{
    char name[96];
    snprintf(name, sizeof(name), "%s %s", link, direction);
    return kvc_links_add(e->links, name, rate, out, err);
}

/* The link between host memory and the GPUs of each replica: dram's where there is dram, else the
 * GPU's usual one. */
static enum kvc_status init_host_links(struct kvc_engine *e, const struct kvc_gpu *gpu,
                                       struct kvc_error *err)
{
    const struct kvc_tier_config *dram = &e->sc->tiers[0];
    struct link_figures f;
    enum kvc_status st = figures_of(e, dram->present ? dram->link : gpu->host_link,
                                    dram->present ? dram : NULL, &f, err);
    if (st != KVC_OK)
        return st;
    e->host_latency_ns = (uint64_t)(f.read.latency_ns + 0.5);
    for (uint32_t i = 0; i < e->n_replicas && st == KVC_OK; i++) {
        st = add_link(e, f.name, "to GPU", f.read.bytes_per_s, &e->replicas[i].h2d_link, err);
        if (st == KVC_OK)
            st = add_link(e, f.name, "from GPU", f.write.bytes_per_s, &e->replicas[i].d2h_link,
                          err);
        e->replicas[i].both_link = KVC_NONE;
        if (st == KVC_OK && f.both > 0 && f.both < f.read.bytes_per_s + f.write.bytes_per_s)
            st = add_link(e, f.name, "both ways", f.both, &e->replicas[i].both_link, err);
    }
    return st;
}

static enum kvc_status init_tier_links(struct kvc_engine *e, struct kvc_tier *tier, uint32_t t,
                                       struct kvc_error *err)
{
    const struct kvc_tier_config *c = tier->config;
    struct link_figures f;
    enum kvc_status st = figures_of(e, c->link, c, &f, err);
    if (st != KVC_OK)
        return st;
    tier->read_use = f.read;
    tier->write_use = f.write;
    if (t == 0)
        return KVC_OK; /* the host link itself */
    uint32_t n = c->scope == KVC_CLUSTER ? e->n_replicas : tier->instances;
    tier->read_link = kvc_calloc(n, sizeof(*tier->read_link));
    tier->write_link = kvc_calloc(n, sizeof(*tier->write_link));
    if (!tier->read_link || !tier->write_link)
        return kvc_fail_nomem(err);
    for (uint32_t i = 0; i < n && st == KVC_OK; i++) {
        st = add_link(e, f.name, "read", f.read.bytes_per_s, &tier->read_link[i], err);
        if (st == KVC_OK)
            st = add_link(e, f.name, "write", f.write.bytes_per_s, &tier->write_link[i], err);
    }
    return st;
}

uint64_t kvc_tier_instance_bytes(const struct kvc_scenario *sc, uint32_t tier)
{
    uint64_t gpus = (uint64_t)sc->cluster.tp * sc->cluster.pp;
    return sc->tiers[tier].capacity_bytes * (sc->tiers[tier].scope == KVC_PER_GPU ? gpus : 1);
}

enum kvc_status kvc_engine_set_policy(struct kvc_engine *e, struct kvc_pool *pool,
                                      const char *policy, bool touches, struct kvc_error *err)
{
    if (!e->block_tokens) /* no block is known, so none is kept */
        return KVC_OK;
    return kvc_pool_set_policy(pool, policy, touches, &e->now, err);
}

static enum kvc_status init_tier(struct kvc_engine *e, uint32_t t, struct kvc_error *err)
{
    struct kvc_tier *tier = &e->tiers[t];
    const struct kvc_tier_config *c = tier->config;
    struct kvc_eviction order;
    enum kvc_status st = kvc_eviction_of(c->policy, &order, err);
    if (st != KVC_OK)
        return st;
    uint32_t nodes = e->replicas[e->n_replicas - 1].node + 1;
    tier->instances = c->scope == KVC_CLUSTER ? 1 : c->scope == KVC_PER_NODE ? nodes
                                                                             : e->n_replicas;
    tier->chunk_tokens = c->chunk_tokens ? c->chunk_tokens : e->page_tokens;
    tier->on_evict = c->write == KVC_WRITE_ON_EVICT || c->write == KVC_WRITE_BACK;
    tier->selective = c->write == KVC_WRITE_SELECTIVE;
    tier->pools = kvc_calloc(tier->instances, sizeof(*tier->pools));
    tier->evictions = kvc_calloc(tier->instances, sizeof(*tier->evictions));
    if (!tier->pools || !tier->evictions)
        return kvc_fail_nomem(err);
    uint64_t bytes = kvc_tier_instance_bytes(e->sc, t);
    uint64_t block_bytes = e->token_bytes * e->block_tokens;
    for (uint32_t i = 0; i < tier->instances && st == KVC_OK; i++) {
        if (!kvc_pool_init(&tier->pools[i], e->trace, e->block_tokens ? e->block_tokens : 1,
                           block_bytes ? bytes / block_bytes : 0, order.touch_moves) ||
            !kvc_engine_watch(e, 1 + t, &tier->pools[i], i) ||
            !kvc_tenants_watch(&e->tenants, 1 + t, &tier->pools[i], block_bytes, block_bytes))
            return kvc_fail_nomem(err);
        if (!order.queue)
            st = kvc_engine_set_policy(e, &tier->pools[i], c->policy, true, err);
    }
    if (st == KVC_OK)
        st = kvc_tier_admissions(e, tier, err);
    return st == KVC_OK ? init_tier_links(e, tier, t, err) : st;
}

/* What a pool evicts goes to the tier below where that one is written so. */
static void connect_evictions(struct kvc_engine *e)
{
    const struct kvc_tier *first = &e->tiers[e->first_tier];
    for (uint32_t i = 0; i < e->n_replicas && first->on_evict; i++) {
        struct kvc_replica *r = &e->replicas[i];
        r->evictions = (struct kvc_evictions){e, i, e->first_tier, KVC_NONE};
        r->pool.evicted = kvc_tiers_note_evicted;
        r->pool.evicted_user = &r->evictions;
    }
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++) {
        const struct kvc_tier *next = kvc_tier_next(e, t);
        if (!e->tiers[t].config->present || !next || !next->on_evict)
            continue;
        for (uint32_t i = 0; i < e->tiers[t].instances; i++) {
            e->tiers[t].evictions[i] =
                (struct kvc_evictions){e, 0, (uint32_t)(next - e->tiers), KVC_NONE};
            e->tiers[t].pools[i].evicted = kvc_tiers_note_evicted;
            e->tiers[t].pools[i].evicted_user = &e->tiers[t].evictions[i];
        }
    }
}

enum kvc_status kvc_tiers_init(struct kvc_engine *e, struct kvc_error *err)
{
    e->scheduling = KVC_NONE;
    e->first_tier = KVC_LOWER_TIERS;
    e->free_transfer = e->free_piece = KVC_NONE;
    for (uint32_t t = KVC_LOWER_TIERS; t-- > 0;) {
        e->tiers[t].config = &e->sc->tiers[t];
        if (e->sc->tiers[t].present)
            e->first_tier = t;
    }
    if (e->first_tier == KVC_LOWER_TIERS)
        return KVC_OK;
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, e->sc->cluster.gpu);
    if (!gpu)
        return kvc_fail(err, KVC_ERR_INPUT, "no GPU is called \"%s\"", e->sc->cluster.gpu);
    enum kvc_status st = init_host_links(e, gpu, err);
    for (uint32_t t = 0; t < KVC_LOWER_TIERS && st == KVC_OK; t++)
        if (e->tiers[t].config->present)
            st = init_tier(e, t, err);
    if (st == KVC_OK)
        connect_evictions(e);
    return st;
}

void kvc_tiers_clear(struct kvc_engine *e)
{
    for (uint32_t t = 0; t < KVC_LOWER_TIERS; t++) {
        struct kvc_tier *tier = &e->tiers[t];
        for (uint32_t i = 0; tier->pools && i < tier->instances; i++)
            kvc_pool_clear(&tier->pools[i]);
        kvc_tier_admissions_clear(tier);
        kvc_free(tier->pools);
        kvc_free(tier->evictions);
        kvc_free(tier->read_link);
        kvc_free(tier->write_link);
    }
    kvc_free(e->transfers);
    kvc_free(e->pieces);
}
