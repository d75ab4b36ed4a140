/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's tiers below HBM: one entry a stored block, searched by loops. Moves are
 * flows of sim/replay/links.h, which has a slow twin of its own. */
#include "tests/twins/twin_tiers.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/replay/links.h"

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
    if (host->both_bytes_per_s > 0 &&
        host->both_bytes_per_s < host->read_bytes_per_s + host->write_bytes_per_s) {
        ts->host_both = twin_alloc(tw->n_rep, sizeof *ts->host_both);
        for (uint32_t i = 0; i < tw->n_rep; i++)
            must(!kvc_links_add(ts->links, "", host->both_bytes_per_s, &ts->host_both[i], NULL));
    }
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
            inst->admission = twin_admission_create(tw, tw->sc->tiers[k].admission,
                                                    inst->capacity);
            inst->order = twin_order_create(tw, tw->sc->tiers[k].policy, inst->capacity);
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
        for (uint32_t i = 0; i < ts->n_of[k]; i++) {
            kvc_free(ts->of[k][i].at);
            twin_admission_destroy(ts->of[k][i].admission);
            twin_order_destroy(ts->of[k][i].order);
        }
        kvc_free(ts->of[k]);
        kvc_free(ts->own_read[k]);
        kvc_free(ts->own_write[k]);
    }
    for (uint32_t i = 0; i < ts->n_transfers; i++) {
        kvc_free(ts->transfers[i].nodes);
        kvc_free(ts->transfers[i].depths);
        kvc_free(ts->transfers[i].tenants);
    }
    kvc_links_destroy(ts->links);
    kvc_free(ts->transfers);
    kvc_free(ts->host_read);
    kvc_free(ts->host_write);
    kvc_free(ts->host_both);
    kvc_free(ts);
}

/* ---- what is stored ---- */

static void drop(struct instance *inst, uint32_t node)
{
    struct stored *s = find(inst, node);

    if (!s)
        return;
    *s = inst->at[--inst->n];
    if (inst->order)
        twin_order_forget(inst->order, node);
}

uint32_t twin_instance(const struct twin *tw, int k, uint32_t replica)
{
    return instance_of(tw, k, replica);
}

static void look(const struct twin *tw, const struct replica *rep, const struct req *r,
                 uint32_t n_tokens, int tiers, struct reach *out)
{
    uint32_t chunk = 0;
    uint64_t whole, at;

    memset(out, 0, sizeof *out);
    out->hbm_run = out->run = pool_run(tw, rep, r, n_tokens);
    out->usable = pool_usable(tw, out->hbm_run, n_tokens);
    for (int k = 0; k < tiers && tw->sc->engine.prefix_caching; k++) {
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

void tiers_reach(const struct twin *tw, const struct replica *rep, const struct req *r,
                 uint32_t n_tokens, struct reach *out)
{
    look(tw, rep, r, n_tokens, 3, out);
}

void tiers_reach_near(const struct twin *tw, const struct replica *rep, const struct req *r,
                      uint32_t n_tokens, struct reach *out)
{
    look(tw, rep, r, n_tokens, twin_fetches(tw) ? 1 : 3, out);
}

/* In order of insertion a block's time counts from then. */
static void touch(struct twin *tw, int k, struct stored *s, uint64_t stamp, uint32_t by)
{
    s->touched = stamp;
    if (twin_is_fifo(tw->sc->tiers[k].policy))
        return;
    s->touched_ns = tw->now;
    s->ttl = tenants_longer(tw, s->ttl, 1 + k, by);
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
        uint32_t n = 0;
        for (uint32_t b = 0; b < r->n_path && ((uint64_t)b + 1) * tw->B <= r->N; b++, n++) {
            s = find(inst, r->path[b]);
            if (!s || !s->readable)
                break;
            touch(tw, k, s, stamp, r->tenant);
        }
        twin_order_turn(inst->order);
        while (inst->order && n-- > 0)
            twin_order_use(inst->order, r->path[n], twin_named(tw, r->tenant), ORDER_USE);
    }
}

void tiers_ask(struct twin *tw, const struct replica *rep, const struct req *r)
{
    for (int k = 0; k < 3; k++)
        if (tw->sc->tiers[k].present && tw->sc->engine.prefix_caching)
            twin_admission_ask(tw->tiers->of[k][instance_of(tw, k, rep->index)].admission, tw, r);
}

/* ---- room ---- */

static void store(struct twin *tw, int k, uint32_t instance, struct batch *batch,
                  const struct replica *rep, struct req *r, bool at_once);

/* What left goes to a lower tier that is written on eviction. */
void twin_pass_down(struct twin *tw, int k, struct batch *gone, const struct replica *rep)
{
    int below = next_tier(tw, k);

    if (gone->n && below >= 0 && !written_through(tw, below))
        store(tw, below, instance_of(tw, below, rep->index), gone, rep, NULL, false);
    batch_free(gone);
}

void tiers_arrive(const struct twin *tw, const struct replica *rep, const struct req *r)
{
    for (int k = 0; k < 3 && tw->sc->engine.prefix_caching; k++)
        if (tw->sc->tiers[k].present)
            twin_learn(tw, &tw->tiers->of[k][instance_of(tw, k, rep->index)], r);
}

/* A transfer has let go of its blocks. */
static void rest(struct twin *tw, int k, struct instance *inst, uint32_t by,
                 const struct replica *rep)
{
    struct batch gone = batch_new(inst->n);

    twin_rest(tw, k, inst, by, &gone);
    twin_pass_down(tw, k, &gone, rep);
}

static struct transfer *new_transfer(struct twin_tiers *ts, int tier, uint32_t instance,
                                     const struct replica *rep, struct req *r, uint32_t n)
{
    struct transfer *t;

    if (ts->n_transfers == ts->cap_transfers) {
        ts->cap_transfers = 2 * ts->cap_transfers + 16;
        ts->transfers = kvc_realloc(ts->transfers, ts->cap_transfers, sizeof *t);
        must(ts->transfers);
    }
    t = &ts->transfers[ts->n_transfers++];
    *t = (struct transfer){.tier = (uint32_t)tier, .instance = instance, .replica = rep->index,
                           .request = r};
    t->nodes = twin_alloc(n, sizeof *t->nodes);
    t->depths = twin_alloc(n, sizeof *t->depths);
    t->tenants = twin_alloc(n, sizeof *t->tenants);
    return t;
}

static void insert(struct twin *tw, int k, struct instance *inst, const struct batch *b, uint32_t i,
                   uint64_t stamp, bool at_once)
{
    if (inst->n == inst->cap) {
        inst->cap = 2 * inst->cap + 16;
        inst->at = kvc_realloc(inst->at, inst->cap, sizeof *inst->at);
        must(inst->at);
    }
    inst->at[inst->n++] = (struct stored){
        b->nodes[i], b->depths[i], !at_once, b->tenants[i], stamp, stamp, tw->now,
        tenants_longer(tw, NULL, 1 + k, b->tenants[i]), at_once};
}

/* The end of a write, or an insertion: touches the blocks, the last one first, then the leading
 * stored run of the path up to each. */
static void came_in(struct twin *tw, int k, struct instance *inst, const struct batch *b)
{
    uint64_t stamp;

    for (uint32_t i = b->n; i-- > 0;) {
        touch(tw, k, find(inst, b->nodes[i]), ++tw->tiers->stamp, b->tenants[i]);
        if (inst->order)
            twin_order_use(inst->order, b->nodes[i], twin_named(tw, b->tenants[i]), ORDER_COME);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t *run = twin_alloc(tw->node_depth[b->nodes[i]] + 1, sizeof *run), n = 0;

        for (uint32_t node = b->nodes[i]; node != TWIN_NONE; node = tw->node_parent[node])
            run[n++] = node;
        uint32_t deepest = n;

        stamp = ++tw->tiers->stamp;
        while (n-- > 0) {
            struct stored *s = find(inst, run[n]);

            if (!s || !s->readable)
                break;
            touch(tw, k, s, stamp, b->tenants[i]);
        }
        for (uint32_t j = n + 1; inst->order && j < deepest; j++)
            twin_order_use(inst->order, run[j], twin_named(tw, b->tenants[i]), ORDER_AGAIN);
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
    struct batch lack = twin_lacking(tw, k, inst, batch, r);
    struct batch in = batch_new(batch->n), gone = batch_new(inst->n + batch->n);
    struct transfer *t;

    inst->promised = twin_alloc(tw->n_tenants, sizeof *inst->promised);
    for (uint32_t i = 0, n; i < lack.n; i += n) { /* what one tenant brings in a row */
        uint32_t tenant = lack.tenants[i];

        for (n = 1; i + n < lack.n && lack.tenants[i + n] == tenant;)
            n++;
        inst->newcomer = lack.nodes[i + n - 1];
        uint64_t room = twin_give_room(tw, k, inst, n, tenant, &gone);

        inst->promised[tenant] += room;
        for (uint32_t j = i; j < i + room; j++)
            batch_add(&in, lack.nodes[j], lack.depths[j], tenant);
    }
    batch_free(&lack);
    kvc_free(inst->promised);
    inst->promised = NULL;
    for (uint32_t i = in.n; i-- > 0;) /* the last one is the oldest */
        insert(tw, k, inst, &in, i, ++ts->stamp, at_once);
    if (at_once) {
        came_in(tw, k, inst, &in);
        if (in.n)
            twin_rest(tw, k, inst, in.tenants[in.n - 1], &gone);
    }
    twin_pass_down(tw, k, &gone, rep);
    if (at_once || !in.n) {
        batch_free(&in);
        return;
    }
    t = new_transfer(ts, k, instance, rep, r, in.n);
    t->n = in.n;
    memcpy(t->nodes, in.nodes, in.n * sizeof *t->nodes);
    memcpy(t->depths, in.depths, in.n * sizeof *t->depths);
    memcpy(t->tenants, in.tenants, in.n * sizeof *t->tenants);
    tw->out->tier_written_blocks[k] += in.n;
    twin_flow_start(tw, t, next_tier(tw, -1) == k, k > 0, in.n * block_bytes, 0);
    batch_free(&in);
}

/* ---- writes ---- */

void tiers_after_step(struct twin *tw, struct replica *rep, struct req *r)
{
    int k = next_tier(tw, -1);
    uint64_t chunk, tokens;
    uint32_t to, from;
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
    batch = batch_new(r->n_path);
    for (uint32_t b = from; b < to; b++)
        batch_add(&batch, r->path[b], b, r->tenant);
    store(tw, k, instance_of(tw, k, rep->index), &batch, rep, r, false);
    batch_free(&batch);
}

void tiers_after_evict(struct twin *tw, struct replica *rep)
{
    int k = next_tier(tw, -1);
    struct batch batch;

    if (k < 0 || written_through(tw, k))
        return;
    batch = batch_new(rep->n_evicted);
    for (uint32_t i = rep->n_evicted; i-- > 0;) {
        uint32_t node = rep->evicted[i], seen = 0;

        for (uint32_t j = 0; j < batch.n; j++)
            seen |= batch.nodes[j] == node;
        if (seen || (rep->nodes[node].oldest && !tw->setup->evict_any_copy))
            continue;
        batch_add(&batch, node, tw->node_depth[node], rep->evicted_of[i]);
    }
    store(tw, k, instance_of(tw, k, rep->index), &batch, rep, NULL, false);
    batch_free(&batch);
}

static void written(struct twin *tw, const struct transfer *t)
{
    struct instance *inst = &tw->tiers->of[t->tier][t->instance];
    int below = next_tier(tw, (int)t->tier);
    struct batch batch = batch_new(t->n), here = {t->nodes, t->depths, t->tenants, t->n};
    uint64_t chunk = below >= 0 ? chunk_of(tw, below) : 1;
    uint64_t tokens = t->n ? ((uint64_t)t->depths[t->n - 1] + 1) * tw->B / chunk * chunk : 0;

    for (uint32_t i = 0; i < t->n; i++) {
        struct stored *s = find(inst, t->nodes[i]);

        s->readable = true;
        s->holds--;
    }
    came_in(tw, (int)t->tier, inst, &here);
    rest(tw, (int)t->tier, inst, here.tenants[t->n - 1], &tw->rep[t->replica]);
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->request && ((uint64_t)t->depths[i] + 1) * tw->B > tokens)
            continue; /* "in the same way": whole chunks of that tier */
        if (below >= 0 && (tw->sc->tiers[below].write == KVC_WRITE_THROUGH ||
                           (t->request && t->depths[i] < t->request->shared)))
            batch_add(&batch, t->nodes[i], t->depths[i], t->tenants[i]);
    }
    if (below >= 0 && written_through(tw, below))
        store(tw, below, instance_of(tw, below, t->replica), &batch, &tw->rep[t->replica],
              t->request, false);
    batch_free(&batch);
}

/* ---- loads ---- */

void tiers_load(struct twin *tw, struct replica *rep, struct req *r, const struct reach *reach)
{
    struct twin_tiers *ts = tw->tiers;
    uint32_t last = (reach->T + tw->B - 1) / tw->B;
    uint64_t tokens = (uint64_t)reach->serves[0] + reach->serves[1] + reach->serves[2];
    uint64_t ahead = tw->sc->engine.kv_load_ns + tokens * tw->sc->engine.kv_load_token_ns;

    for (int k = 0; k < 3; k++) {
        if (reach->serves[k] == 0)
            continue;
        struct instance *inst = &ts->of[k][instance_of(tw, k, rep->index)];
        struct transfer *t = new_transfer(ts, k, instance_of(tw, k, rep->index), rep, r, r->n_path);
        t->load = true;
        for (uint32_t b = reach->from[k]; b < reach->to[k] && b < last; b++) {
            find(inst, r->path[b])->holds++;
            t->nodes[t->n] = r->path[b];
            t->depths[t->n++] = b;
        }
        r->loads_open++;
        tw->out->tier_read_blocks[k] += t->n;
        uint64_t bytes = reach->serves[k] * tw->setup->kv_bytes_per_token;

        t->rest = k > 0 && tw->sc->tiers[k].link_staged ? bytes : 0;
        twin_flow_start(tw, t, t->rest == 0, k > 0, bytes, ahead);
    }
}

struct transfer *twin_transfer(struct twin *tw, int tier, const struct replica *rep, struct req *r,
                               uint32_t n)
{
    uint32_t instance = tier < 3 ? instance_of(tw, tier, rep->index) : 0;

    return new_transfer(tw->tiers, tier, instance, rep, r, n);
}

void twin_let_go(struct twin *tw, int k, struct instance *inst, const uint32_t *nodes, uint32_t n,
                 struct req *r, struct replica *rep)
{
    uint64_t stamp = ++tw->tiers->stamp;

    for (uint32_t j = 0; j < n; j++) {
        struct stored *s = find(inst, nodes[j]);

        s->holds--;
        touch(tw, k, s, stamp, r->tenant);
    }
    rest(tw, k, inst, r->tenant, rep);
}

void twin_has_read(struct twin *tw, struct transfer *t, uint32_t n)
{
    struct req *r = t->request;
    struct instance *inst = &tw->tiers->of[t->tier][t->instance];
    uint64_t stamp = ++tw->tiers->stamp;

    for (uint32_t j = 0; j < t->n; j++) {
        struct stored *s = find(inst, t->nodes[j]);

        s->holds--;
        touch(tw, (int)t->tier, s, stamp, r->tenant);
        if (j < n && !tw->sc->tiers[t->tier].inclusive && s->holds == 0)
            drop(inst, t->nodes[j]);
    }
    t->n = 0;
    t->request = NULL;
    rest(tw, (int)t->tier, inst, r->tenant, &tw->rep[r->replica]);
}

void twin_goes_up(struct twin *tw, const struct batch *up, struct replica *rep, struct req *r)
{
    struct batch all = *up;

    if (up->n)
        store(tw, 0, instance_of(tw, 0, rep->index), &all, rep, r, true);
}

/* One transfer of a load has ended; the last one lets the request go on. */
static void load_ended(struct twin *tw, struct transfer *t)
{
    struct req *r = t->request;
    struct replica *rep = &tw->rep[r->replica];
    struct batch up = batch_new(t->n);
    uint32_t whole = 0, tier = t->tier;

    for (; whole < t->n && ((uint64_t)t->depths[whole] + 1) * tw->B <= r->load_T; whole++)
        batch_add(&up, t->nodes[whole], t->depths[whole], r->tenant);
    twin_has_read(tw, t, whole);
    if (tier > 0 && tw->sc->tiers[0].present && tw->sc->tiers[0].write == KVC_WRITE_THROUGH)
        twin_goes_up(tw, &up, rep, r);
    if (--r->loads_open == 0)
        step_load_done(tw, r);
    batch_free(&up);
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
    if (t.fetch) {
        fetch_ended(tw, (uint32_t)end.tag);
        return;
    }
    if (t.load && t.rest) { /* it rests in host memory */
        tw->tiers->transfers[end.tag].rest = 0;
        twin_flow_on(tw, &t, end.tag);
    } else if (t.load)
        load_ended(tw, &tw->tiers->transfers[end.tag]);
    else
        written(tw, &t);
}
