/* SPDX-License-Identifier: Apache-2.0
 * A plug-in's hooks, called as the cache of runs calls its own policies. */
#include "policies/plugins/plugged.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* ---- handles, runs and queues ---- */

uint32_t kvc_plugged_run(const struct kvc_plugged *p, kvc_piece piece)
{
    uint32_t r = (uint32_t)piece - 1;
    return (uint32_t)piece && r < p->c->n_runs && p->birth[r] == piece >> 32 ? r : KVC_RUN_NONE;
}

kvc_piece kvc_plugged_handle(const struct kvc_plugged *p, uint32_t r)
{
    return r == KVC_RUN_NONE ? KVC_PIECE_NONE : (kvc_piece)p->birth[r] << 32 | (r + 1);
}

bool kvc_plugged_pinned(const struct kvc_plugged *p, uint32_t r)
{
    const struct kvc_plugged_trial *t = p->guest.trial;
    if (p->c->tag)
        return kvc_run_resident(p->c, r) && !kvc_order_free(p->c, r);
    return t && t->held_back && t->held_back[kvc_runs_segment(p->c, p->c->run[r].seg)];
}

void kvc_plugged_end(struct kvc_plugged *p, uint32_t r)
{
    p->birth[r]++;
    kvc_run_free(p->c, r);
}

bool kvc_plugged_alike(const struct kvc_plugged *p, uint32_t a, uint32_t b)
{
    size_t bytes = p->evict->piece_bytes;
    /* of different touches only while one goes on: it must find what it has not reached as it
     * was */
    if (p->c->run[a].note != p->c->run[b].note || p->c->run[a].stamp != p->c->run[b].stamp)
        return false;
    if (!kvc_runs_tags_alike(p->c, a, b))
        return false;
    if (bytes && memcmp(p->memory + a * p->stride, p->memory + b * p->stride, bytes) != 0)
        return false;
    return !(p->evict->flags & KVC_EVICT_HISTORY) ||
           memcmp(&p->history[a], &p->history[b], sizeof(*p->history)) == 0;
}

void kvc_plugged_unlink(struct kvc_plugged *p, uint32_t r)
{
    struct kvc_run *run = &p->c->run[r];
    if (run->queue == KVC_PLUGGED_HEAP)
        kvc_heap_take(p->c, r);
    else if (run->queue >= KVC_PLUGGED_QUEUES)
        kvc_queue_take(p->c, r);
    run->queue = KVC_PLUGGED_LOOSE;
}

static bool joins(const void *user, uint32_t n, uint32_t r)
{
    const struct kvc_plugged *p = user;
    return p->leaving != r && kvc_plugged_alike(p, n, r);
}

uint32_t kvc_plugged_link(struct kvc_plugged *p, uint32_t r, uint32_t queue)
{
    uint32_t now = kvc_queue_join(p->c, queue, r, joins, p);
    if (now != r)
        kvc_plugged_end(p, r);
    return now;
}

/* A new run, a copy of what another is where one is given. */
static uint32_t begin(struct kvc_plugged *p, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t like)
{
    struct kvc_runs *c = p->c;
    size_t bytes = p->evict->piece_bytes, had = p->birth_room;
    uint32_t r = kvc_run_new(c, seg, lo, hi);
    if (r == KVC_RUN_NONE)
        return r;
    bool room = kvc_grow((void **)&p->birth, &p->birth_room, c->n_runs, sizeof(*p->birth));
    if (room)
        memset(p->birth + had, 0, (p->birth_room - had) * sizeof(*p->birth));
    /* with room behind the last one for the most that a piece may have: it may write beyond */
    room = room && (!bytes || kvc_grow((void **)&p->memory, &p->memory_room,
                                       c->n_runs + KVC_PIECE_BYTES_MOST / p->stride + 1,
                                       p->stride));
    room = room && (!(p->evict->flags & KVC_EVICT_HISTORY) ||
                    kvc_grow((void **)&p->history, &p->history_room, c->n_runs,
                             sizeof(*p->history)));
    if (!room) {
        kvc_run_free(c, r);
        c->failed = true;
        return KVC_RUN_NONE;
    }
    if (like != KVC_RUN_NONE) {
        if (c->tag)
            c->tag[r] = c->tag[like];
        c->run[r].note = c->run[like].note;
        c->run[r].stamp = c->run[like].stamp;
        if (p->history)
            p->history[r] = p->history[like];
        if (bytes)
            memcpy(p->memory + r * p->stride, p->memory + like * p->stride, p->stride);
    } else if (bytes) {
        memset(p->memory + r * p->stride, 0, p->stride);
    }
    return r;
}

uint32_t kvc_plugged_cut(struct kvc_plugged *p, uint32_t r, uint32_t n)
{
    struct kvc_runs *c = p->c;
    uint32_t hi = c->run[r].hi, queue = c->run[r].queue;
    c->run[r].hi -= n;
    uint32_t part = begin(p, c->run[r].seg, hi - n, hi, r);
    if (part == KVC_RUN_NONE)
        return part;
    struct kvc_run *run = &c->run[r], *other = &c->run[part];
    other->queue = queue;
    if (queue == KVC_PLUGGED_HEAP) {
        other->key = run->key;
        kvc_heap_put(c, part);
    } else if (queue != KVC_PLUGGED_LOOSE) {
        other->newer = r;
        other->older = run->older;
        *(run->older != KVC_RUN_NONE ? &c->run[run->older].newer : &c->queue[queue].oldest) = part;
        run->older = part;
    }
    return part;
}

/* ---- hooks ---- */

static void leave(struct kvc_plugged *p, uint32_t before)
{
    kvc_plugged_look(p);
    kvc_guest_leave(&p->guest, before);
}

void kvc_plugged_leave(struct kvc_plugged *p, uint32_t r, uint32_t n)
{
    struct kvc_runs *c = p->c;
    uint32_t seg = c->run[r].seg, hi = c->run[r].hi, ghost = KVC_RUN_NONE;
    if (kvc_run_resident(c, r)) {
        p->leaving = r;
        p->remember = KVC_RUN_NONE;
        if (p->evict->removed) {
            uint32_t before = kvc_guest_enter(&p->guest, KVC_HOOK_REMOVED);
            p->evict->removed(&p->host, p->state, kvc_plugged_handle(p, r), n);
            leave(p, before);
        }
        p->leaving = KVC_RUN_NONE;
        ghost = p->remember;
        c->size -= n;
        kvc_run_left(c, seg, hi - n, hi);
    }
    if (n == kvc_run_blocks(c, r)) {
        kvc_plugged_unlink(p, r);
        if (ghost == KVC_RUN_NONE) {
            kvc_plugged_end(p, r);
            return;
        }
        p->birth[r]++;
    } else {
        if (c->run[r].queue >= KVC_PLUGGED_QUEUES)
            c->queue[c->run[r].queue].blocks -= n;
        c->run[r].hi -= n;
        r = ghost == KVC_RUN_NONE ? r : begin(p, seg, hi - n, hi, r);
    }
    if (ghost != KVC_RUN_NONE && r != KVC_RUN_NONE)
        kvc_plugged_link(p, r, ghost);
}

static struct kvc_plugged_history history_now(const struct kvc_runs *c)
{
    return (struct kvc_plugged_history){c->now_ns, c->now_ns, c->request - 1, c->request - 1,
                                        c->tenant};
}

static void hit(struct kvc_runs *c, uint32_t r)
{
    struct kvc_plugged *p = c->plugged;
    c->run[r].stamp = c->clock;
    if (p->evict->flags & KVC_EVICT_TOUCHES)
        c->run[r].note++;
    if (p->history) {
        p->history[r].touched_ns = c->now_ns;
        p->history[r].touched_request = c->request - 1;
    }
    if (p->evict->touched) {
        uint32_t before = kvc_guest_enter(&p->guest, KVC_HOOK_TOUCHED);
        p->evict->touched(&p->host, p->state, kvc_plugged_handle(p, r));
        leave(p, before);
    }
}

static void store(struct kvc_plugged *p, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    struct kvc_runs *c = p->c;
    uint32_t r = begin(p, seg, lo, hi, KVC_RUN_NONE);
    if (r == KVC_RUN_NONE)
        return;
    c->size += hi - lo;
    c->run[r].stamp = c->clock;
    c->run[r].note = p->evict->flags & KVC_EVICT_TOUCHES ? 1 : 0;
    if (p->history)
        p->history[r] = history_now(c);
    uint32_t before = kvc_guest_enter(&p->guest, KVC_HOOK_STORED);
    p->evict->stored(&p->host, p->state, kvc_plugged_handle(p, r), ghost);
    leave(p, before);
}

/* Stores blocks [hi - n, hi), those that are still remembered apart from the others. */
static void store_all(struct kvc_plugged *p, uint32_t seg, uint32_t hi, uint32_t n)
{
    struct kvc_runs *c = p->c;
    uint32_t end = hi - n;
    while (hi > end && !c->failed) {
        uint32_t r = kvc_run_before(c, seg, hi), ghost = KVC_GHOST_NONE, lo = end;
        if (r != KVC_RUN_NONE && c->run[r].hi >= hi) {
            ghost = c->run[r].queue - kvc_plugged_ghosts(p);
            lo = c->run[r].lo > end ? c->run[r].lo : end;
            kvc_plugged_leave(p, r, hi - lo);
        } else if (r != KVC_RUN_NONE && c->run[r].hi > end) {
            lo = c->run[r].hi;
        }
        store(p, seg, lo, hi, ghost);
        hi = lo;
    }
}

static bool all_pinned(const struct kvc_plugged *p)
{
    const struct kvc_runs *c = p->c;
    if (!c->tag && (!p->guest.trial || !p->guest.trial->held_back))
        return false;
    for (uint32_t s = 0; s < c->n_segments; s++)
        for (uint32_t r = c->seg[s].deepest; r != KVC_RUN_NONE; r = c->run[r].shallower)
            if (kvc_run_resident(c, r) && !kvc_plugged_pinned(p, r))
                return false;
    return true;
}

/* The plug-in names a victim, which leaves; returns how many blocks that made room for. */
static uint32_t make_room(struct kvc_plugged *p, struct kvc_newcomer *newcomer)
{
    uint32_t n = 1, want = newcomer->hi - newcomer->lo;
    uint32_t at = kvc_plugged_place(p, &newcomer->segment);
    newcomer->lo += at;
    newcomer->hi += at;
    uint32_t before = kvc_guest_enter(&p->guest, KVC_HOOK_VICTIM);
    kvc_piece piece = p->evict->victim(&p->host, p->state, newcomer, &n);
    uint32_t r = kvc_plugged_run(p, piece);
    if (p->c->failed)
        n = 0;
    else if (piece == KVC_PIECE_NONE && all_pinned(p))
        n = 0;
    else if (piece == KVC_PIECE_NONE)
        kvc_guest_breach(&p->guest, "it named no victim, with the cache full and blocks in it that "
                                    "could go: has it lost track of pieces?");
    else if (r == KVC_RUN_NONE || !kvc_run_resident(p->c, r))
        kvc_guest_breach(&p->guest, "the victim it named is not resident: a handle ends with its "
                                    "last block, and when put or rank return another one");
    else if (kvc_plugged_pinned(p, r))
        kvc_guest_breach(&p->guest, "the victim it named is pinned, a running request reads it: "
                                    "oldest, newer and lowest pass over such pieces, and info "
                                    "tells them");
    else if (n == 0 || n > want)
        kvc_guest_breach(&p->guest, "it set *blocks to %u, where 1 to %u newcomers need room", n,
                         want);
    leave(p, before);
    if (n == 0 || p->c->failed)
        return 0;
    n = kvc_least(n, kvc_run_blocks(p->c, r));
    kvc_plugged_leave(p, r, n);
    return n;
}

static uint32_t miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    struct kvc_plugged *p = c->plugged;
    uint32_t n = hi - lo;
    if (c->size < c->capacity) {
        n = kvc_least(n, c->capacity - c->size);
    } else {
        struct kvc_newcomer newcomer = {
            seg, lo, hi,
            ghost == KVC_RUN_NONE ? KVC_GHOST_NONE : c->run[ghost].queue - kvc_plugged_ghosts(p)};
        n = make_room(p, &newcomer);
        if (n == 0) /* all are pinned: newcomers stay outside */
            return hi - lo;
    }
    store_all(p, seg, hi, n);
    return n;
}

/* ---- in an engine's cache ---- */

static void order_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    (void)ghost;
    store_all(c->plugged, seg, hi, hi - lo);
}

static uint32_t order_evict(struct kvc_runs *c, uint32_t want)
{
    struct kvc_plugged *p = c->plugged;
    uint32_t seg = c->newcomer.seg, hi = c->newcomer.hi;
    struct kvc_newcomer newcomer = {seg, hi > want ? hi - want : 0, hi, KVC_GHOST_NONE};
    if (seg == KVC_RUN_NONE)
        newcomer = (struct kvc_newcomer){KVC_NO_ID, 0, want, KVC_GHOST_NONE};
    uint32_t g = seg == KVC_RUN_NONE ? KVC_RUN_NONE : kvc_run_before(c, seg, hi);
    if (g != KVC_RUN_NONE && c->run[g].hi >= hi && !kvc_run_resident(c, g)) {
        newcomer.ghost = c->run[g].queue - kvc_plugged_ghosts(p);
        newcomer.lo = newcomer.lo > c->run[g].lo ? newcomer.lo : c->run[g].lo;
    } else if (g != KVC_RUN_NONE && c->run[g].hi < hi && c->run[g].hi > newcomer.lo) {
        newcomer.lo = c->run[g].hi;
    }
    return make_room(p, &newcomer);
}

/* Told of as any touch, but not counted again. */
static void order_renew(struct kvc_runs *c, uint32_t r)
{
    struct kvc_plugged *p = c->plugged;
    c->run[r].note -= p->evict->flags & KVC_EVICT_TOUCHES ? 1 : 0;
    hit(c, r);
}

static const struct kvc_order_ops order = {.come = order_come, .evict = order_evict,
                                           .renew = order_renew};

/* Remembers when the path's segments are touched next. */
static void look_ahead(struct kvc_plugged *p)
{
    const struct kvc_runs *c = p->c;
    uint32_t i = 0;
    if (c->leaf == KVC_RUN_NONE)
        return;
    if (!c->next) {
        kvc_guest_breach(&p->guest, "it asks for the next use of blocks, which only a bound "
                                    "without time can tell: use it with kvcast ceiling, without "
                                    "--by and --replicas");
        return;
    }
    for (uint32_t s = kvc_runs_segment(c, c->leaf); s != KVC_RUN_NONE; s = p->seg_parent[s])
        p->next_use[s] = c->next[i++];
}

static void arrive(struct kvc_runs *c, uint32_t leaf)
{
    struct kvc_plugged *p = c->plugged;
    (void)leaf;
    p->guest.place->request = c->request - 1;
    if (p->next_use)
        look_ahead(p);
    if (!p->evict->request || c->failed)
        return;
    struct kvc_policy_request request = kvc_runs_said(c);
    kvc_plugged_place(p, &request.segment);
    uint32_t before = kvc_guest_enter(&p->guest, KVC_HOOK_REQUEST);
    p->evict->request(&p->host, p->state, &request);
    leave(p, before);
}

static bool lower(const struct kvc_runs *c, const struct kvc_run *a, const struct kvc_run *b)
{
    double x, y;
    (void)c;
    memcpy(&x, &a->key, sizeof(x));
    memcpy(&y, &b->key, sizeof(y));
    if (x != y)
        return x < y;
    return a->stamp != b->stamp ? a->stamp < b->stamp : a->lo > b->lo;
}

/* ---- a run begins and ends ---- */

static bool make_host(struct kvc_plugged *p)
{
    const struct kvc_runs *c = p->c;
    p->host.struct_size = sizeof(p->host);
    p->host.block_tokens = c->block_tokens;
    p->host.capacity_blocks = c->capacity;
    kvc_plugged_services(&p->host);
    return kvc_guest_lend(&p->guest, p->host.n_segments, &p->host.seg_blocks, &p->host.seg_depth,
                          &p->host.seg_parent);
}

static void create(struct kvc_plugged *p)
{
    if (!p->evict->create)
        return;
    uint32_t before = kvc_guest_enter(&p->guest, KVC_HOOK_CREATE);
    bool defaults = p->guest.trial && p->guest.trial->null_options;
    p->state = p->evict->create(&p->host, defaults ? NULL : p->choice.option);
    kvc_guest_leave(&p->guest, before);
    p->created = p->state != NULL;
    if (!p->state)
        p->c->failed = true;
}

static enum kvc_status load(struct kvc_plugged *p, const struct kvc_runs_setup *setup,
                            struct kvc_error *err)
{
    enum kvc_status st =
        setup->trial ? kvc_guest_choose(&p->choice, setup->trial, setup->policy, err)
                     : kvc_policy_choose(&p->choice, setup->policy, KVC_POLICY_EVICTION, err);
    if (st != KVC_OK)
        return st;
    p->evict = p->choice.ops;
    kvc_guest_begin(&p->guest, &p->choice, setup->trial, &p->c->failed);
    p->stride = p->evict->piece_bytes ? (p->evict->piece_bytes + 15) / 8 * 8 : 0;
    if (p->evict->flags & KVC_EVICT_ORACLE) {
        p->next_use = kvc_malloc(setup->n_segments, sizeof(*p->next_use));
        if (!p->next_use)
            return kvc_fail_nomem(err);
    }
    return st;
}

bool kvc_plugged_open(struct kvc_runs *c, const struct kvc_runs_setup *setup)
{
    struct kvc_plugged *p = kvc_calloc(1, sizeof(*p));
    if (!p)
        return false;
    c->plugged = p;
    p->c = c;
    p->leaving = p->remember = p->lent = KVC_RUN_NONE;
    p->host.n_segments = setup->n_segments; /* as given, also where blocks are single */
    p->host.seg_blocks = setup->seg_len;
    p->host.seg_depth = setup->seg_depth;
    p->host.seg_parent = p->seg_parent = setup->seg_parent;
    if (load(p, setup, &p->guest.error) != KVC_OK)
        return false;
    p->ops = (struct kvc_runs_ops){.name = p->choice.policy->name,
                                   .resident_queues = kvc_plugged_ghosts(p), .arrive = arrive,
                                   .first = lower, .hit = hit, .miss = miss,
                                   .wants_next = p->next_use != NULL, .order = &order};
    c->ops = &p->ops;
    return true;
}

bool kvc_plugged_single(const struct kvc_plugged *p)
{
    return (p->evict->flags & KVC_EVICT_SINGLE) || (p->guest.trial && p->guest.trial->single);
}

bool kvc_plugged_start(struct kvc_runs *c)
{
    struct kvc_plugged *p = c->plugged;
    if (!kvc_queues_grow(c, (size_t)kvc_plugged_ghosts(p) + p->evict->ghost_queues))
        return false;
    if (!make_host(p))
        return false;
    create(p);
    return !c->failed;
}

void kvc_plugged_stop(struct kvc_plugged *p)
{
    if (!p)
        return;
    if (p->created) {
        kvc_guest_enter(&p->guest, KVC_HOOK_DESTROY);
        p->evict->destroy(&p->host, p->state);
        kvc_guest_leave(&p->guest, KVC_HOOK_NONE);
    }
    kvc_guest_end(&p->guest);
    kvc_free(p->next_use);
    kvc_free(p->birth);
    kvc_free(p->history);
    kvc_free(p->memory);
    kvc_policy_drop(&p->choice);
    kvc_free(p);
}
