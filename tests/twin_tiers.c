/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's tiers below HBM: one entry a stored block, searched by loops. Moves are
 * flows of sim/links.h, which has a slow twin of its own. */
#include "tests/twin_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/links.h"

struct stored {
    uint32_t node, depth, holds; /* holds: loads reading it, and the write that brings it */
    uint64_t touched, inserted;
    bool readable;
};

struct instance {
    uint64_t capacity; /* blocks */
    struct stored *at;
    uint32_t n, cap;
};

struct transfer {
    bool load;
    uint32_t tier, instance;
    struct req *request; /* load: who waits; write: whose blocks, NULL for evicted ones */
    uint32_t replica;
    uint32_t *nodes, *depths, n;
};

struct twin_tiers {
    struct kvc_links *links;
    uint32_t *host_read, *host_write; /* per replica */
    struct instance *of[3];
    uint32_t n_of[3];
    uint32_t *own_read[3], *own_write[3]; /* per instance; of a cluster's tier, per replica */
    uint64_t stamp;
    struct transfer *transfers;
    uint32_t n_transfers, cap_transfers;
};

struct batch { /* blocks to be stored, shallow first */
    uint32_t *nodes, *depths, n;
};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static uint32_t instance_of(const struct twin *tw, int k, uint32_t replica)
{
    uint32_t gpus = tw->sc->cluster.tp * tw->sc->cluster.pp;

    switch (tw->sc->tiers[k].scope) {
    case KVC_CLUSTER:
        return 0;
    case KVC_PER_NODE:
        return (uint32_t)((uint64_t)replica * gpus / tw->sc->cluster.gpus_per_node);
    default:
        return replica;
    }
}

static uint32_t chunk_of(const struct twin *tw, int k)
{
    return tw->sc->tiers[k].chunk_tokens ? tw->sc->tiers[k].chunk_tokens : tw->P;
}

static int next_tier(const struct twin *tw, int k)
{
    for (k++; k < 3; k++)
        if (tw->sc->tiers[k].present)
            return k;
    return -1;
}

static bool written_through(const struct twin *tw, int k)
{
    return tw->sc->tiers[k].write == KVC_WRITE_THROUGH ||
           tw->sc->tiers[k].write == KVC_WRITE_SELECTIVE;
}

void tiers_create(struct twin *tw)
{
    struct twin_tiers *ts = twin_alloc(1, sizeof *ts);
    const struct twin_link *host = &tw->setup->links[0];

    tw->tiers = ts;
    must(kvc_links_create(&ts->links, NULL) == KVC_OK);
    ts->host_read = twin_alloc(tw->n_rep, sizeof *ts->host_read);
    ts->host_write = twin_alloc(tw->n_rep, sizeof *ts->host_write);
    for (uint32_t i = 0; i < tw->n_rep && host->read_bytes_per_s > 0; i++)
        must(!kvc_links_add(ts->links, "", host->read_bytes_per_s, &ts->host_read[i], NULL) &&
             !kvc_links_add(ts->links, "", host->write_bytes_per_s, &ts->host_write[i], NULL));
    for (int k = 0; k < 3; k++) {
        const struct twin_link *link = &tw->setup->links[1 + k];

        if (!tw->sc->tiers[k].present)
            continue;
        ts->n_of[k] = instance_of(tw, k, tw->n_rep - 1) + 1;
        ts->of[k] = twin_alloc(ts->n_of[k], sizeof *ts->of[k]);
        for (uint32_t i = 0; i < ts->n_of[k]; i++) {
            struct instance *inst = &ts->of[k][i];

            inst->capacity = tw->sc->tiers[k].capacity_bytes;
            if (tw->sc->tiers[k].scope == KVC_PER_GPU)
                inst->capacity *= (uint64_t)tw->sc->cluster.tp * tw->sc->cluster.pp;
            inst->capacity /= tw->B * tw->setup->kv_bytes_per_token;
        }
        uint32_t n = ts->n_of[k] > tw->n_rep ? ts->n_of[k] : tw->n_rep;

        ts->own_read[k] = twin_alloc(n, sizeof(uint32_t));
        ts->own_write[k] = twin_alloc(n, sizeof(uint32_t));
        for (uint32_t i = 0; i < n; i++)
            must(!kvc_links_add(ts->links, "", link->read_bytes_per_s, &ts->own_read[k][i],
                                NULL) &&
                 !kvc_links_add(ts->links, "", link->write_bytes_per_s, &ts->own_write[k][i],
                                NULL));
    }
}

void tiers_destroy(struct twin *tw)
{
    struct twin_tiers *ts = tw->tiers;

    for (int k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < ts->n_of[k]; i++)
            kvc_free(ts->of[k][i].at);
        kvc_free(ts->of[k]);
        kvc_free(ts->own_read[k]);
        kvc_free(ts->own_write[k]);
    }
    for (uint32_t i = 0; i < ts->n_transfers; i++) {
        kvc_free(ts->transfers[i].nodes);
        kvc_free(ts->transfers[i].depths);
    }
    kvc_links_destroy(ts->links);
    kvc_free(ts->transfers);
    kvc_free(ts->host_read);
    kvc_free(ts->host_write);
    kvc_free(ts);
}

/* ---- what is stored ---- */

static struct stored *find(const struct instance *inst, uint32_t node)
{
    for (uint32_t i = 0; i < inst->n; i++)
        if (inst->at[i].node == node)
            return &inst->at[i];
    return NULL;
}

static void drop(struct instance *inst, uint32_t node)
{
    struct stored *s = find(inst, node);

    if (s)
        *s = inst->at[--inst->n];
}

void tiers_reach(const struct twin *tw, const struct replica *rep, const struct req *r,
                 uint32_t n_tokens, struct reach *out)
{
    uint32_t chunk = 0;
    uint64_t whole, at;

    memset(out, 0, sizeof *out);
    out->hbm_run = out->run = pool_run(tw, rep, r, n_tokens);
    out->usable = pool_usable(tw, out->hbm_run, n_tokens);
    for (int k = 0; k < 3 && tw->sc->engine.prefix_caching; k++) {
        out->from[k] = out->run;
        if (tw->sc->tiers[k].present) {
            const struct instance *inst = &tw->tiers->of[k][instance_of(tw, k, rep->index)];

            while (out->run < r->n_path && ((uint64_t)out->run + 1) * tw->B <= n_tokens) {
                const struct stored *s = find(inst, r->path[out->run]);

                if (!s || !s->readable)
                    break;
                out->run++;
                chunk = chunk_of(tw, k);
            }
        }
        out->to[k] = out->run;
    }
    if (out->run == out->hbm_run)
        return;
    whole = (uint64_t)out->run * tw->B / chunk * chunk;
    out->T = (uint32_t)(whole < n_tokens - 1 ? whole : n_tokens - 1);
    at = out->usable;
    for (int k = 0; k < 3; k++) {
        uint64_t end = (uint64_t)out->to[k] * tw->B;

        end = end < out->T ? end : out->T;
        if (out->to[k] > out->from[k] && end > at) {
            out->serves[k] = (uint32_t)(end - at);
            at = end;
        }
    }
}

void tiers_touch(struct twin *tw, const struct replica *rep, const struct req *r)
{
    for (int k = 0; k < 3; k++) {
        uint64_t stamp = ++tw->tiers->stamp;
        struct instance *inst;
        struct stored *s;

        if (!tw->sc->tiers[k].present)
            continue;
        inst = &tw->tiers->of[k][instance_of(tw, k, rep->index)];
        for (uint32_t b = 0; b < r->n_path && ((uint64_t)b + 1) * tw->B <= r->N; b++) {
            s = find(inst, r->path[b]);
            if (!s || !s->readable)
                break;
            s->touched = stamp;
        }
    }
}

/* ---- room ---- */

static void store(struct twin *tw, int k, uint32_t instance, struct batch *batch,
                  const struct replica *rep, struct req *r, bool at_once);

static uint32_t victim(const struct twin *tw, int k, const struct instance *inst)
{
    bool fifo = strcmp(tw->sc->tiers[k].policy, "fifo") == 0;
    uint32_t best = TWIN_NONE;

    for (uint32_t i = 0; i < inst->n; i++) {
        const struct stored *s = &inst->at[i], *v = best == TWIN_NONE ? NULL : &inst->at[best];
        uint64_t mine = fifo ? s->inserted : s->touched;
        uint64_t other = !v ? 0 : fifo ? v->inserted : v->touched;

        if (s->holds == 0 && (!v || mine < other || (mine == other && s->depth > v->depth)))
            best = i;
    }
    return best;
}

/* Evicts until need more blocks fit or nothing unheld is left; what leaves goes to a lower tier
 * that is written on eviction. */
static void give_room(struct twin *tw, int k, uint32_t instance, uint64_t need,
                      const struct replica *rep)
{
    struct instance *inst = &tw->tiers->of[k][instance];
    struct batch gone = {twin_alloc(inst->n, sizeof(uint32_t)),
                         twin_alloc(inst->n, sizeof(uint32_t)), 0};
    uint32_t v;
    int below = next_tier(tw, k);

    while (inst->n + need > inst->capacity && (v = victim(tw, k, inst)) != TWIN_NONE) {
        for (uint32_t i = gone.n++; i > 0; i--) {
            gone.nodes[i] = gone.nodes[i - 1];
            gone.depths[i] = gone.depths[i - 1];
        }
        gone.nodes[0] = inst->at[v].node;
        gone.depths[0] = inst->at[v].depth;
        inst->at[v] = inst->at[--inst->n];
        tw->out->tier_evicted_blocks[k]++;
    }
    if (gone.n && below >= 0 && !written_through(tw, below))
        store(tw, below, instance_of(tw, below, rep->index), &gone, rep, NULL, false);
    kvc_free(gone.nodes);
    kvc_free(gone.depths);
}

static struct transfer *new_transfer(struct twin_tiers *ts, uint32_t n)
{
    struct transfer *t;

    if (ts->n_transfers == ts->cap_transfers) {
        ts->cap_transfers = 2 * ts->cap_transfers + 16;
        ts->transfers = kvc_realloc(ts->transfers, ts->cap_transfers, sizeof *t);
        must(ts->transfers);
    }
    t = &ts->transfers[ts->n_transfers++];
    memset(t, 0, sizeof *t);
    t->nodes = twin_alloc(n, sizeof *t->nodes);
    t->depths = twin_alloc(n, sizeof *t->depths);
    return t;
}

/* Over the replica's host link (index 0, which dram's own figures are of) and a tier's own. */
static void start(struct twin *tw, const struct transfer *t, bool host, bool own, uint64_t bytes)
{
    const struct twin_tiers *ts = tw->tiers;
    uint32_t at = tw->sc->tiers[t->tier].scope == KVC_CLUSTER ? t->replica : t->instance;
    struct kvc_flow_spec spec = {.bytes = bytes, .tag = (uint64_t)(t - ts->transfers)};
    const struct twin_link *crossed[2], *ops = &tw->setup->links[1 + t->tier];

    if (host) {
        crossed[spec.n_path] = &tw->setup->links[0];
        spec.path[spec.n_path++] = (t->load ? ts->host_read : ts->host_write)[t->replica];
    }
    if (own) {
        crossed[spec.n_path] = &tw->setup->links[1 + t->tier];
        spec.path[spec.n_path++] = (t->load ? ts->own_read : ts->own_write)[t->tier][at];
    }
    for (uint32_t i = 0; i < spec.n_path; i++)
        spec.latency_ns += crossed[i]->latency_ns;
    if (ops->op_bytes)
        spec.latency_ns += (uint64_t)((double)((bytes + ops->op_bytes - 1) / ops->op_bytes) *
                                          ops->per_op_ns + 0.5);
    must(kvc_links_start(tw->tiers->links, tw->now, &spec, NULL, NULL) == KVC_OK);
}

static void insert(struct twin *tw, struct instance *inst, uint32_t node, uint32_t depth,
                   uint64_t stamp, bool at_once)
{
    (void)tw;
    if (inst->n == inst->cap) {
        inst->cap = 2 * inst->cap + 16;
        inst->at = kvc_realloc(inst->at, inst->cap, sizeof *inst->at);
        must(inst->at);
    }
    inst->at[inst->n++] = (struct stored){node, depth, !at_once, stamp, stamp, at_once};
}

/* The end of a write, or an insertion: touches the blocks, the last one first, then the leading
 * stored run of the path up to each. */
static void came_in(struct twin *tw, struct instance *inst, const uint32_t *nodes, uint32_t n)
{
    uint64_t stamp;

    for (uint32_t i = n; i-- > 0;)
        find(inst, nodes[i])->touched = ++tw->tiers->stamp;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *run = twin_alloc(tw->node_depth[nodes[i]] + 1, sizeof *run), k = 0;

        for (uint32_t node = nodes[i]; node != TWIN_NONE; node = tw->node_parent[node])
            run[k++] = node;
        stamp = ++tw->tiers->stamp;
        while (k-- > 0) {
            struct stored *s = find(inst, run[k]);

            if (!s || !s->readable)
                break;
            s->touched = stamp;
        }
        kvc_free(run);
    }
}

/* Stores those of the batch that are not there yet, as many as get room, shallow ones first. */
static void store(struct twin *tw, int k, uint32_t instance, struct batch *batch,
                  const struct replica *rep, struct req *r, bool at_once)
{
    struct twin_tiers *ts = tw->tiers;
    struct instance *inst = &ts->of[k][instance];
    uint64_t block_bytes = tw->B * tw->setup->kv_bytes_per_token;
    struct transfer *t;
    uint32_t n = 0;

    for (uint32_t i = 0; i < batch->n; i++)
        if (!find(inst, batch->nodes[i])) {
            batch->nodes[n] = batch->nodes[i];
            batch->depths[n++] = batch->depths[i];
        }
    if (n == 0)
        return;
    give_room(tw, k, instance, n, rep);
    if (inst->n + n > inst->capacity)
        n = inst->capacity > inst->n ? (uint32_t)(inst->capacity - inst->n) : 0;
    if (n == 0)
        return;
    for (uint32_t i = n; i-- > 0;) /* the last one is the oldest */
        insert(tw, inst, batch->nodes[i], batch->depths[i], ++ts->stamp, at_once);
    if (at_once) {
        came_in(tw, inst, batch->nodes, n);
        return;
    }
    t = new_transfer(ts, n);
    t->tier = (uint32_t)k;
    t->instance = instance;
    t->request = r;
    t->replica = rep->index;
    t->n = n;
    memcpy(t->nodes, batch->nodes, n * sizeof *t->nodes);
    memcpy(t->depths, batch->depths, n * sizeof *t->depths);
    tw->out->tier_written_blocks[k] += n;
    start(tw, t, next_tier(tw, -1) == k, k > 0, n * block_bytes);
}

/* ---- writes ---- */

void tiers_after_step(struct twin *tw, struct replica *rep, struct req *r)
{
    int k = next_tier(tw, -1);
    uint64_t chunk, tokens;
    uint32_t to, from, at = 0;
    struct batch batch;

    if (k < 0 || !written_through(tw, k))
        return;
    chunk = chunk_of(tw, k);
    tokens = r->c / chunk * chunk;
    to = (uint32_t)(tokens / tw->B);
    to = to < r->pub ? to : r->pub;
    if (!tw->sc->tiers[k].store_output && to > r->n_full)
        to = r->n_full;
    if (to <= r->offered)
        return;
    from = r->offered;
    r->offered = to;
    if (tw->sc->tiers[k].write == KVC_WRITE_SELECTIVE && to > r->shared)
        to = r->shared;
    batch.nodes = twin_alloc(r->n_path, sizeof *batch.nodes);
    batch.depths = twin_alloc(r->n_path, sizeof *batch.depths);
    for (uint32_t b = from; b < to; b++) {
        batch.nodes[at] = r->path[b];
        batch.depths[at++] = b;
    }
    batch.n = at;
    store(tw, k, instance_of(tw, k, rep->index), &batch, rep, r, false);
    kvc_free(batch.nodes);
    kvc_free(batch.depths);
}

void tiers_after_evict(struct twin *tw, struct replica *rep)
{
    int k = next_tier(tw, -1);
    struct batch batch;

    if (k < 0 || written_through(tw, k))
        return;
    batch.n = 0;
    batch.nodes = twin_alloc(rep->n_evicted, sizeof *batch.nodes);
    batch.depths = twin_alloc(rep->n_evicted, sizeof *batch.depths);
    for (uint32_t i = rep->n_evicted; i-- > 0;) {
        uint32_t node = rep->evicted[i], seen = 0;

        for (uint32_t j = 0; j < batch.n; j++)
            seen |= batch.nodes[j] == node;
        if (seen || (rep->nodes[node].oldest && !tw->setup->evict_any_copy))
            continue;
        batch.nodes[batch.n] = node;
        batch.depths[batch.n++] = tw->node_depth[node];
    }
    store(tw, k, instance_of(tw, k, rep->index), &batch, rep, NULL, false);
    kvc_free(batch.nodes);
    kvc_free(batch.depths);
}

static void written(struct twin *tw, const struct transfer *t)
{
    struct instance *inst = &tw->tiers->of[t->tier][t->instance];
    int below = next_tier(tw, (int)t->tier);
    struct batch batch = {twin_alloc(t->n, sizeof(uint32_t)),
                          twin_alloc(t->n, sizeof(uint32_t)), 0};
    uint64_t chunk = below >= 0 ? chunk_of(tw, below) : 1;
    uint64_t tokens = t->n ? ((uint64_t)t->depths[t->n - 1] + 1) * tw->B / chunk * chunk : 0;

    for (uint32_t i = 0; i < t->n; i++) {
        struct stored *s = find(inst, t->nodes[i]);

        s->readable = true;
        s->holds--;
    }
    came_in(tw, inst, t->nodes, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->request && ((uint64_t)t->depths[i] + 1) * tw->B > tokens)
            continue; /* "in the same way": whole chunks of that tier */
        if (below >= 0 && (tw->sc->tiers[below].write == KVC_WRITE_THROUGH ||
                           (t->request && t->depths[i] < t->request->shared))) {
            batch.nodes[batch.n] = t->nodes[i];
            batch.depths[batch.n++] = t->depths[i];
        }
    }
    if (below >= 0 && written_through(tw, below))
        store(tw, below, instance_of(tw, below, t->replica), &batch, &tw->rep[t->replica],
              t->request, false);
    kvc_free(batch.nodes);
    kvc_free(batch.depths);
}

/* ---- loads ---- */

void tiers_load(struct twin *tw, struct replica *rep, struct req *r, const struct reach *reach)
{
    struct twin_tiers *ts = tw->tiers;
    uint32_t last = (reach->T + tw->B - 1) / tw->B;

    for (int k = 0; k < 3; k++) {
        struct instance *inst;
        struct transfer *t;

        if (reach->serves[k] == 0)
            continue;
        inst = &ts->of[k][instance_of(tw, k, rep->index)];
        t = new_transfer(ts, r->n_path);
        t->load = true;
        t->tier = (uint32_t)k;
        t->instance = instance_of(tw, k, rep->index);
        t->request = r;
        t->replica = rep->index;
        for (uint32_t b = reach->from[k]; b < reach->to[k] && b < last; b++) {
            find(inst, r->path[b])->holds++;
            t->nodes[t->n] = r->path[b];
            t->depths[t->n++] = b;
        }
        r->loads_open++;
        tw->out->tier_read_blocks[k] += t->n;
        start(tw, t, true, k > 0, reach->serves[k] * tw->setup->kv_bytes_per_token);
    }
}

/* One transfer of a load has ended; the last one lets the request go on. */
static void load_ended(struct twin *tw, struct transfer *t)
{
    struct req *r = t->request;
    struct replica *rep = &tw->rep[r->replica];
    struct instance *inst = &tw->tiers->of[t->tier][t->instance];
    struct batch up = {twin_alloc(t->n, sizeof(uint32_t)), twin_alloc(t->n, sizeof(uint32_t)), 0};
    uint64_t stamp = ++tw->tiers->stamp;

    for (uint32_t j = 0; j < t->n; j++) {
        struct stored *s = find(inst, t->nodes[j]);
        bool whole = ((uint64_t)t->depths[j] + 1) * tw->B <= r->load_T;

        s->holds--;
        s->touched = stamp;
        if (whole && t->tier > 0) {
            up.nodes[up.n] = t->nodes[j];
            up.depths[up.n++] = t->depths[j];
        }
        if (whole && !tw->sc->tiers[t->tier].inclusive && s->holds == 0)
            drop(inst, t->nodes[j]);
    }
    t->n = 0;
    t->request = NULL;
    if (up.n && tw->sc->tiers[0].present && tw->sc->tiers[0].write == KVC_WRITE_THROUGH)
        store(tw, 0, instance_of(tw, 0, rep->index), &up, rep, r, true);
    if (--r->loads_open == 0)
        step_load_done(tw, r);
    kvc_free(up.nodes);
    kvc_free(up.depths);
}

uint64_t tiers_next(const struct twin *tw)
{
    return kvc_links_next(tw->tiers->links);
}

void tiers_advance(struct twin *tw)
{
    struct kvc_flow_end end;
    struct transfer t;

    if (!kvc_links_pop(tw->tiers->links, tw->now, &end))
        return;
    t = tw->tiers->transfers[end.tag];
    if (t.load)
        load_ended(tw, &tw->tiers->transfers[end.tag]);
    else
        written(tw, &t);
}
