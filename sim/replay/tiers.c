/* SPDX-License-Identifier: Apache-2.0
 * Tiers below HBM: what a lookup finds there, loads towards the GPU, stores away from it. */
#include "sim/replay/replica.h"
#include "sim/replay/tiers_internal.h"

#include "base/alloc.h"

#include <string.h>

static struct kvc_pool *pool_of(const struct kvc_engine *e, const struct kvc_tier *tier,
                                const struct kvc_replica *r)
{
    return &tier->pools[kvc_tier_instance(e, tier, r)];
}

static void pass_down(struct kvc_engine *e, struct kvc_evictions *v);
static void changed(struct kvc_engine *e, const struct kvc_tier *tier, uint32_t instance);

/* ---- lookup ---- */

/* In HBM and in the tiers above tier number tiers. */
static void look_up(struct kvc_engine *e, const struct kvc_replica *r, struct kvc_path path,
                    uint32_t limit, uint32_t known, uint32_t tiers, struct kvc_reach *out)
{
    memset(out, 0, sizeof(*out));
    out->hbm = kvc_pool_reach(&r->pool, path, 0, limit);
    out->usable = kvc_replica_usable(e, out->hbm, known);
    out->total = out->hbm;
    uint32_t chunk = 0;
    for (uint32_t t = e->first_tier; t < tiers; t++) {
        const struct kvc_tier *tier = &e->tiers[t];
        out->start[t] = out->end[t] = out->total;
        if (!tier->config->present)
            continue;
        out->end[t] = kvc_pool_reach(pool_of(e, tier, r), path, out->total, limit);
        if (out->end[t] > out->total)
            chunk = tier->chunk_tokens;
        out->total = out->end[t];
    }
    if (!chunk)
        return;
    uint64_t tokens = (uint64_t)out->total * e->block_tokens / chunk * chunk;
    out->tokens = tokens < known ? (uint32_t)tokens : known - 1;
}

void kvc_tiers_lookup(struct kvc_engine *e, const struct kvc_replica *r, struct kvc_path path,
                      uint32_t limit, uint32_t known, struct kvc_reach *out)
{
    look_up(e, r, path, limit, known, KVC_LOWER_TIERS, out);
}

void kvc_tiers_lookup_near(struct kvc_engine *e, const struct kvc_replica *r, struct kvc_path path,
                           uint32_t limit, uint32_t known, struct kvc_reach *out)
{
    look_up(e, r, path, limit, known, e->fetches_early ? 1 : KVC_LOWER_TIERS, out);
}

void kvc_tiers_touch(struct kvc_engine *e, const struct kvc_replica *r, struct kvc_path path,
                     uint32_t limit, uint32_t tenant)
{
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++) {
        if (!e->tiers[t].config->present)
            continue;
        struct kvc_pool *pool = pool_of(e, &e->tiers[t], r);
        pool->by = tenant;
        kvc_pool_touch(pool, path, kvc_pool_reach(pool, path, 0, limit), false);
    }
}

void kvc_tiers_arrive(struct kvc_engine *e, struct kvc_replica *r, uint32_t request)
{
    const struct kvc_trace *t = e->trace;
    if (!e->sc->engine.prefix_caching)
        return;
    const struct kvc_runs_request asked = {
        .seg = t->prompt_seg[request], .now_ns = e->now,
        .session = t->session ? t->session[request] : KVC_ID_NONE,
        .tenant = t->tenant ? t->tenant[request] : KVC_ID_NONE,
        .input_tokens = t->input_tokens[request]};
    kvc_pool_arrive(&r->pool, &asked);
    for (uint32_t k = e->first_tier; k < KVC_LOWER_TIERS; k++)
        if (e->tiers[k].config->present)
            kvc_pool_arrive(pool_of(e, &e->tiers[k], r), &asked);
}

/* ---- transfers ---- */

uint32_t kvc_transfer_new(struct kvc_engine *e, struct kvc_transfer value)
{
    uint32_t i = e->free_transfer;
    if (i != KVC_NONE) {
        e->free_transfer = e->transfers[i].next_free;
    } else {
        if (!kvc_grow((void **)&e->transfers, &e->cap_transfers, e->n_transfers + 1,
                      sizeof(*e->transfers))) {
            e->nomem = true;
            return KVC_NONE;
        }
        i = (uint32_t)e->n_transfers++;
    }
    e->transfers[i] = value;
    return i;
}

uint32_t kvc_piece_new(struct kvc_engine *e, struct kvc_piece value)
{
    uint32_t i = e->free_piece;
    if (i != KVC_NONE) {
        e->free_piece = e->pieces[i].next;
    } else {
        if (!kvc_grow((void **)&e->pieces, &e->cap_pieces, e->n_pieces + 1, sizeof(*e->pieces))) {
            e->nomem = true;
            return KVC_NONE;
        }
        i = (uint32_t)e->n_pieces++;
    }
    e->pieces[i] = value;
    return i;
}

static void pieces_free(struct kvc_engine *e, uint32_t list)
{
    for (uint32_t i = list, next; i != KVC_NONE; i = next) {
        next = e->pieces[i].next;
        e->pieces[i].next = e->free_piece;
        e->free_piece = i;
    }
}

static uint32_t pieces_reverse(struct kvc_engine *e, uint32_t list)
{
    uint32_t reversed = KVC_NONE;
    for (uint32_t i = list, next; i != KVC_NONE; i = next) {
        next = e->pieces[i].next;
        e->pieces[i].next = reversed;
        reversed = i;
    }
    return reversed;
}

void kvc_transfer_free(struct kvc_engine *e, uint32_t transfer)
{
    pieces_free(e, e->transfers[transfer].pieces);
    e->transfers[transfer].next_free = e->free_transfer;
    e->free_transfer = transfer;
}

static void start_load(struct kvc_engine *e, uint32_t job, uint32_t t,
                       const struct kvc_reach *reach, uint64_t tokens, uint64_t ahead_ns)
{
    struct kvc_tier *tier = &e->tiers[t];
    struct kvc_job *j = &e->jobs[job];
    const struct kvc_replica *r = &e->replicas[j->replica];
    uint64_t last = reach->tokens < (uint64_t)reach->end[t] * e->block_tokens
                        ? kvc_div_up(reach->tokens, e->block_tokens)
                        : reach->end[t];
    uint32_t instance = kvc_tier_instance(e, tier, r);
    struct kvc_piece read = {j->leaf, reach->start[t], (uint32_t)last, j->tenant, KVC_NONE};
    struct kvc_transfer value = {.job = job, .tier = t, .instance = instance, .replica = r->id,
                                 .pieces = kvc_piece_new(e, read)};
    uint32_t i = value.pieces == KVC_NONE ? KVC_NONE : kvc_transfer_new(e, value);
    if (i == KVC_NONE)
        return;
    kvc_pool_hold(&tier->pools[instance], kvc_engine_path(e, j->leaf, 0), read.from, read.to);
    kvc_tiers_move_up(e, i, tokens * e->token_bytes, ahead_ns);
    j->loads++;
}

void kvc_tiers_load(struct kvc_engine *e, uint32_t job, const struct kvc_reach *reach)
{
    uint64_t at = reach->usable;
    uint64_t ahead_ns = e->sc->engine.kv_load_ns +
                        (reach->tokens - reach->usable) * e->sc->engine.kv_load_token_ns;
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++) {
        uint64_t end = (uint64_t)reach->end[t] * e->block_tokens;
        if (reach->end[t] == reach->start[t])
            continue;
        if (end > reach->tokens)
            end = reach->tokens;
        if (end <= at)
            continue;
        start_load(e, job, t, reach, end - at, ahead_ns);
        at = end;
    }
}

/* ---- stores ---- */

struct piece_list {
    uint32_t first, last;
    uint64_t blocks;
};

/* Appends what pool lacks of blocks [from, end) of leaf's path. */
static void add_gaps(struct kvc_engine *e, const struct kvc_pool *pool, struct kvc_piece p,
                     uint32_t row, struct piece_list *out)
{
    struct kvc_path path = kvc_engine_path(e, p.leaf, row);
    for (uint32_t from = p.from, to; from < p.to && kvc_pool_gap(pool, path, &from, &to, p.to);
         from = to) {
        uint32_t i = kvc_piece_new(e, (struct kvc_piece){p.leaf, from, to, p.tenant, KVC_NONE});
        if (i == KVC_NONE)
            return;
        *(out->last == KVC_NONE ? &out->first : &e->pieces[out->last].next) = i;
        out->last = i;
        out->blocks += to - from;
    }
}

/* What the tier lacks of a list of pieces, in the same order. */
static struct piece_list lacking(struct kvc_engine *e, uint32_t list,
                                 const struct kvc_transfer *what, bool from_above, uint32_t row)
{
    const struct kvc_tier *tier = &e->tiers[what->tier];
    struct piece_list out = {KVC_NONE, KVC_NONE, 0};
    uint32_t end = KVC_NONE;
    if (from_above && what->request != KVC_NONE) { /* whole chunks, up to the last block */
        for (uint32_t i = list; i != KVC_NONE; i = e->pieces[i].next)
            end = e->pieces[i].to;
        uint64_t chunk = tier->chunk_tokens;
        end = (uint32_t)((uint64_t)end * e->block_tokens / chunk * chunk / e->block_tokens);
    }
    if (tier->selective && what->again < end)
        end = what->again;
    for (; list != KVC_NONE; list = e->pieces[list].next) {
        struct kvc_piece p = e->pieces[list];
        if (p.to > end)
            p.to = end;
        p.to = kvc_tier_admitted(e, what, p, row);
        add_gaps(e, &tier->pools[what->instance], p, row, &out);
    }
    return out;
}

/* The last of the pieces from this one on that are of its tenant is the first to come. */
static void name_newcomer(struct kvc_engine *e, struct kvc_pool *pool, uint32_t piece, uint32_t row)
{
    uint32_t last = piece;
    for (uint32_t i = piece; i != KVC_NONE && e->pieces[i].tenant == e->pieces[piece].tenant;
         i = e->pieces[i].next)
        last = i;
    kvc_pool_newcomer(pool, kvc_engine_path(e, e->pieces[last].leaf, row), e->pieces[last].to);
}

/* Gives room to blocks of the pieces from *link on that one tenant is charged with, first ones
 * first, and cuts what gets none. Returns the link behind them; *room: how many got some. */
static uint32_t *room_for_tenant(struct kvc_engine *e, struct kvc_pool *pool, uint32_t *link,
                                 uint32_t row, uint64_t *room)
{
    uint32_t tenant = e->pieces[*link].tenant;
    uint64_t blocks = 0;
    for (uint32_t i = *link; i != KVC_NONE && e->pieces[i].tenant == tenant; i = e->pieces[i].next)
        blocks += e->pieces[i].to - e->pieces[i].from;
    pool->by = tenant;
    if (pool->policy)
        name_newcomer(e, pool, *link, row);
    uint64_t left = *room = kvc_pool_room(pool, blocks);
    kvc_pool_take(pool, left);
    kvc_pool_charge(pool, tenant, (int64_t)left);
    while (*link != KVC_NONE && e->pieces[*link].tenant == tenant) {
        uint32_t i = *link;
        struct kvc_piece *p = &e->pieces[i];
        if (p->to - p->from > left)
            p->to = p->from + (uint32_t)left;
        left -= p->to - p->from;
        if (p->to > p->from) {
            link = &p->next;
        } else {
            *link = p->next;
            p->next = KVC_NONE;
            pieces_free(e, i);
        }
    }
    return link;
}

/* Gives room to as many blocks of the transfer's pieces as there is and cuts the others. Returns
 * how many. */
static uint64_t make_room(struct kvc_engine *e, uint32_t transfer, uint32_t row)
{
    struct kvc_transfer *x = &e->transfers[transfer];
    struct kvc_pool *pool = &e->tiers[x->tier].pools[x->instance];
    uint64_t blocks = 0, room;
    e->tiers[x->tier].evictions[x->instance].replica = x->replica;
    for (uint32_t *link = &x->pieces; *link != KVC_NONE; blocks += room)
        link = room_for_tenant(e, pool, link, row, &room);
    uint32_t reversed = pieces_reverse(e, x->pieces); /* the last one is the oldest */
    for (uint32_t i = reversed; i != KVC_NONE; i = e->pieces[i].next) {
        struct kvc_piece p = e->pieces[i];
        pool->by = p.tenant;
        kvc_pool_charge(pool, p.tenant, -(int64_t)(p.to - p.from)); /* it charges itself */
        kvc_pool_publish(pool, kvc_engine_path(e, p.leaf, row), p.from, p.to, transfer, true,
                         false);
    }
    x->pieces = pieces_reverse(e, reversed);
    return blocks;
}

/* Lookups may find more or less in the instance than before. */
static void changed(struct kvc_engine *e, const struct kvc_tier *tier, uint32_t instance)
{
    for (uint32_t i = 0; i < e->n_replicas; i++)
        if (kvc_tier_instance(e, tier, &e->replicas[i]) == instance)
            kvc_replica_tier_changed(e, &e->replicas[i]);
}

/* Writes what a tier lacks of a list of pieces. from_above: the bytes come from the tier above, so
 * they don't cross the replica's host link. row: scratch path, one for each tier. */
static void store(struct kvc_engine *e, uint32_t t, const struct kvc_replica *r, uint32_t list,
                  struct kvc_transfer what, bool from_above)
{
    struct kvc_tier *tier = &e->tiers[t];
    uint32_t row = 2 + t;
    what.tier = t;
    what.instance = kvc_tier_instance(e, tier, r);
    what.replica = r->id;
    what.job = KVC_NONE;
    struct piece_list missing = lacking(e, list, &what, from_above, row);
    what.pieces = missing.first;
    uint32_t i = missing.blocks ? kvc_transfer_new(e, what) : KVC_NONE;
    if (i == KVC_NONE)
        return;
    uint64_t evicted = tier->pools[what.instance].evicted_blocks;
    uint64_t blocks = make_room(e, i, row);
    if (tier->pools[what.instance].evicted_blocks != evicted)
        changed(e, tier, what.instance);
    pass_down(e, &tier->evictions[what.instance]);
    if (blocks) {
        kvc_tiers_move_down(e, i, blocks * e->block_tokens * e->token_bytes, from_above);
    } else {
        kvc_transfer_free(e, i);
    }
}

void kvc_tiers_store(struct kvc_engine *e, struct kvc_replica *r, uint32_t job)
{
    if (e->first_tier == KVC_LOWER_TIERS || e->tiers[e->first_tier].on_evict || !e->block_tokens)
        return;
    struct kvc_job *j = &e->jobs[job];
    uint32_t chunk = e->tiers[e->first_tier].chunk_tokens;
    uint64_t to = (uint64_t)j->computed / chunk * chunk / e->block_tokens;
    if (to > j->held)
        to = j->held;
    uint32_t prompt = kvc_trace_full_blocks(e->trace, j->request);
    if (!e->tiers[e->first_tier].config->store_output && to > prompt)
        to = prompt;
    if (to <= j->offered)
        return;
    struct kvc_piece p = {j->leaf, j->offered, (uint32_t)to, j->tenant, KVC_NONE};
    uint32_t list = kvc_piece_new(e, p);
    j->offered = p.to;
    store(e, e->first_tier, r, list,
          (struct kvc_transfer){.again = j->again, .request = j->request}, false);
    pieces_free(e, list);
}

/* A pool lost blocks [lo, hi) of seg: noted until the pass that evicts is over. */
void kvc_tiers_note_evicted(void *user, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t tenant)
{
    struct kvc_evictions *v = user;
    uint32_t depth = v->engine->segments[seg].depth;
    struct kvc_piece lost = {seg, depth + lo, depth + hi, tenant, v->pieces};
    uint32_t i = kvc_piece_new(v->engine, lost);
    if (i != KVC_NONE)
        v->pieces = i;
}

/* Offers what a pool evicted to the tier below that takes it. */
static void pass_down(struct kvc_engine *e, struct kvc_evictions *v)
{
    uint32_t list = v->pieces;
    if (!v->engine || list == KVC_NONE)
        return;
    v->pieces = KVC_NONE;
    store(e, v->tier, &e->replicas[v->replica], list, (struct kvc_transfer){.request = KVC_NONE},
          v->tier != e->first_tier);
    pieces_free(e, list);
}

void kvc_tiers_store_evicted(struct kvc_engine *e, struct kvc_replica *r)
{
    struct kvc_evictions *v = &r->evictions;
    if (!v->engine)
        return;
    struct piece_list lost = {KVC_NONE, KVC_NONE, 0};
    for (uint32_t i = v->pieces; i != KVC_NONE; i = e->pieces[i].next)
        add_gaps(e, &r->pool, e->pieces[i], 1, &lost); /* less what was computed again since */
    pieces_free(e, v->pieces);
    v->pieces = lost.first;
    pass_down(e, v);
}

/* ---- time's up ---- */

/* Whichever is first, an expiry or the round that would evict. */
static uint64_t next_of(const struct kvc_pool *pool, uint64_t round)
{
    uint64_t at = kvc_pool_next_expiry(pool);
    return round < at && kvc_pool_round_due(pool) ? round : at;
}

uint64_t kvc_engine_next_expiry(const struct kvc_engine *e)
{
    uint64_t first = KVC_TIME_NONE, round = (e->now / KVC_ROUND_NS + 1) * KVC_ROUND_NS;
    for (uint32_t i = 0; i < e->n_replicas; i++) {
        uint64_t at = next_of(&e->replicas[i].pool, round);
        first = at < first ? at : first;
    }
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++)
        for (uint32_t i = 0; i < e->tiers[t].instances; i++) {
            uint64_t at = next_of(&e->tiers[t].pools[i], round);
            first = at < first ? at : first;
        }
    return first;
}

static bool is_due(const struct kvc_engine *e, const struct kvc_pool *pool, bool round)
{
    return kvc_pool_next_expiry(pool) <= e->now || (round && kvc_pool_round_due(pool));
}

static uint32_t first_user(const struct kvc_engine *e, const struct kvc_tier *tier,
                           uint32_t instance)
{
    uint32_t i = 0;
    while (kvc_tier_instance(e, tier, &e->replicas[i]) != instance)
        i++;
    return i;
}

void kvc_engine_expire(struct kvc_engine *e, bool round)
{
    for (uint32_t i = 0; i < e->n_replicas; i++) /* what left before has left before */
        kvc_replica_catch_up(e, &e->replicas[i]);
    for (uint32_t i = 0; i < e->n_replicas; i++) {
        struct kvc_replica *r = &e->replicas[i];
        if (!is_due(e, &r->pool, round))
            continue;
        kvc_pool_expire(&r->pool);
        if (round) /* goes by what is left then */
            kvc_pool_round(&r->pool);
        kvc_tiers_store_evicted(e, r);
        kvc_replica_tier_changed(e, r);
    }
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++)
        for (uint32_t i = 0; i < e->tiers[t].instances; i++) {
            struct kvc_tier *tier = &e->tiers[t];
            if (!is_due(e, &tier->pools[i], round))
                continue;
            tier->evictions[i].replica = first_user(e, tier, i);
            kvc_pool_expire(&tier->pools[i]);
            if (round)
                kvc_pool_round(&tier->pools[i]);
            changed(e, tier, i);
            pass_down(e, &tier->evictions[i]);
        }
}

/* ---- ends of transfers ---- */

/* Something of the replica's has let go of blocks of an instance. */
static bool rest(struct kvc_engine *e, uint32_t tier, uint32_t instance, uint32_t replica)
{
    struct kvc_evictions *v = &e->tiers[tier].evictions[instance];
    v->replica = replica;
    bool left = kvc_pool_rest(&e->tiers[tier].pools[instance]);
    pass_down(e, v);
    return left;
}

void kvc_tiers_let_go(struct kvc_engine *e, uint32_t tier, const struct kvc_replica *r,
                      struct kvc_piece p, uint32_t drop_to)
{
    struct kvc_tier *of = &e->tiers[tier];
    uint32_t instance = kvc_tier_instance(e, of, r);
    struct kvc_pool *pool = &of->pools[instance];
    struct kvc_path path = kvc_engine_path(e, p.leaf, 0);
    bool drops = drop_to > p.from && !of->config->inclusive;
    pool->by = p.tenant;
    kvc_pool_release(pool, path, p.from, p.to, KVC_NONE, false);
    if (drops)
        kvc_pool_drop(pool, path, p.from, drop_to);
    if (rest(e, tier, instance, r->id) || drops)
        changed(e, of, instance);
}

/* What a store brought becomes readable, the last block first, and then, with the stored run above
 * it, the youngest. */
static void settle_pieces(struct kvc_engine *e, const struct kvc_transfer *x, uint32_t list,
                          uint32_t owner)
{
    struct kvc_pool *pool = &e->tiers[x->tier].pools[x->instance];
    uint32_t reversed = pieces_reverse(e, list);
    for (uint32_t i = reversed; i != KVC_NONE; i = e->pieces[i].next) {
        struct kvc_piece p = e->pieces[i];
        pool->by = p.tenant;
        kvc_pool_settle(pool, kvc_engine_path(e, p.leaf, 0), p.from, p.to, owner);
    }
    for (uint32_t i = pieces_reverse(e, reversed); i != KVC_NONE; i = e->pieces[i].next) {
        struct kvc_piece p = e->pieces[i];
        struct kvc_path path = kvc_engine_path(e, p.leaf, 0);
        pool->by = p.tenant;
        kvc_pool_touch(pool, path, kvc_pool_reach(pool, path, 0, p.to), true);
    }
    rest(e, x->tier, x->instance, x->replica);
    changed(e, &e->tiers[x->tier], x->instance);
}

static void settle(struct kvc_engine *e, uint32_t transfer)
{
    struct kvc_transfer x = e->transfers[transfer]; /* more of them may begin */
    settle_pieces(e, &x, x.pieces, transfer);
    kvc_transfer_free(e, transfer);
}

/* Blocks that passed through host memory on their way up stay in dram, if there is room. */
void kvc_tiers_promote(struct kvc_engine *e, struct kvc_piece p, const struct kvc_replica *r,
                       uint32_t request)
{
    struct kvc_tier *dram = &e->tiers[0];
    struct kvc_transfer value = {.job = KVC_NONE, .replica = r->id, .request = request,
                                 .again = UINT32_MAX, /* whatever is written there */
                                 .instance = kvc_tier_instance(e, dram, r)};
    uint32_t list = kvc_piece_new(e, p);
    struct piece_list missing = lacking(e, list, &value, false, 2);
    pieces_free(e, list);
    value.pieces = missing.first;
    uint32_t i = missing.blocks ? kvc_transfer_new(e, value) : KVC_NONE;
    if (i == KVC_NONE)
        return;
    dram->written_bytes +=
        make_room(e, i, 2) * e->block_tokens * e->token_bytes;
    settle(e, i);
}

static void load_done(struct kvc_engine *e, uint32_t transfer)
{
    struct kvc_transfer x = e->transfers[transfer];
    struct kvc_piece p = e->pieces[x.pieces];
    const struct kvc_replica *r = &e->replicas[x.replica];
    uint64_t whole = e->jobs[x.job].load_tokens / e->block_tokens;
    uint32_t to = p.to > whole ? (uint32_t)whole : p.to; /* a last block was read in part */
    kvc_tiers_let_go(e, x.tier, r, p, to);
    kvc_transfer_free(e, transfer);
    p.to = to;
    if (x.tier > 0 && e->sc->tiers[0].present && e->sc->tiers[0].write == KVC_WRITE_THROUGH)
        kvc_tiers_promote(e, p, r, e->jobs[x.job].request);
    if (--e->jobs[x.job].loads == 0)
        kvc_replica_loaded(e, x.job);
}

void kvc_tiers_transfer_done(struct kvc_engine *e, uint32_t transfer)
{
    struct kvc_transfer x = e->transfers[transfer];
    if (x.fetch) {
        kvc_fetch_done(e, transfer);
        return;
    }
    if (x.tier == KVC_LOWER_TIERS) { /* the end in time of a fetch that ended before */
        kvc_transfer_free(e, transfer);
        return;
    }
    if (x.job != KVC_NONE) {
        if (!kvc_tiers_move_on(e, transfer))
            load_done(e, transfer);
        return;
    }
    const struct kvc_tier *next = kvc_tier_next(e, x.tier);
    if (next && !next->on_evict) {
        uint32_t list = x.pieces;
        e->transfers[transfer].pieces = KVC_NONE;
        settle_pieces(e, &x, list, transfer);
        kvc_transfer_free(e, transfer);
        store(e, (uint32_t)(next - e->tiers), &e->replicas[x.replica], list, x, true);
        pieces_free(e, list);
    } else {
        settle(e, transfer);
    }
}
