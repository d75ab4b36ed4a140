/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/plugins/plugged.h"

#include "base/alloc.h"
#include "base/error.h"

bool kvc_runs_wants_next(const struct kvc_runs *c)
{
    return !c->failed && c->ops->wants_next;
}

/* ---- a segment's runs, deepest first ---- */

uint32_t kvc_run_at(const struct kvc_runs *c, uint32_t seg, uint32_t lo)
{
    uint32_t r = c->seg[seg].deepest;
    while (r != KVC_RUN_NONE && c->run[r].lo > lo)
        r = c->run[r].shallower;
    return r != KVC_RUN_NONE && c->run[r].lo == lo ? r : KVC_RUN_NONE;
}

static uint32_t *link_before(struct kvc_runs *c, uint32_t seg, uint32_t lo)
{
    uint32_t *link = &c->seg[seg].deepest;
    while (*link != KVC_RUN_NONE && c->run[*link].lo > lo)
        link = &c->run[*link].shallower;
    return link;
}

uint32_t kvc_run_new(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi)
{
    uint32_t r = c->free;
    if (r != KVC_RUN_NONE) {
        c->free = c->run[r].shallower;
    } else {
        if (c->n_runs >= UINT32_MAX - 1 ||
            !kvc_grow((void **)&c->run, &c->room, c->n_runs + 1, sizeof(*c->run))) {
            c->failed = true;
            return KVC_RUN_NONE;
        }
        r = (uint32_t)c->n_runs++;
    }
    uint32_t *link = link_before(c, seg, lo);
    c->run[r] = (struct kvc_run){.seg = seg, .lo = lo, .hi = hi, .shallower = *link,
                                 .newer = KVC_RUN_NONE, .older = KVC_RUN_NONE};
    *link = r;
    return c->tag && !kvc_order_tag(c, r) ? KVC_RUN_NONE : r;
}

void kvc_run_free(struct kvc_runs *c, uint32_t r)
{
    uint32_t *link = &c->seg[c->run[r].seg].deepest;
    while (*link != r)
        link = &c->run[*link].shallower;
    *link = c->run[r].shallower;
    c->run[r].shallower = c->free;
    c->free = r;
}

/* ---- queues ---- */

bool kvc_queues_grow(struct kvc_runs *c, size_t n)
{
    size_t had = c->n_queues;
    if (n <= had)
        return true;
    n = n < 2 * had ? 2 * had : n;
    struct kvc_run_queue *queue = kvc_realloc(c->queue, n, sizeof(*queue));
    if (queue)
        c->queue = queue;
    if (!queue) {
        c->failed = true;
        return false;
    }
    for (size_t i = had; i < n; i++)
        queue[i] = (struct kvc_run_queue){KVC_RUN_NONE, KVC_RUN_NONE, 0};
    c->n_queues = n;
    return true;
}

void kvc_queue_take(struct kvc_runs *c, uint32_t r)
{
    const struct kvc_run *run = &c->run[r];
    struct kvc_run_queue *q = &c->queue[run->queue];
    *(run->newer != KVC_RUN_NONE ? &c->run[run->newer].older : &q->newest) = run->older;
    *(run->older != KVC_RUN_NONE ? &c->run[run->older].newer : &q->oldest) = run->newer;
    q->blocks -= run->hi - run->lo;
}

static inline bool same_note(const void *user, uint32_t n, uint32_t r)
{
    const struct kvc_runs *c = user;
    return c->run[n].note == c->run[r].note && kvc_runs_tags_alike(c, n, r);
}

uint32_t kvc_queue_put(struct kvc_runs *c, uint32_t queue, uint32_t r)
{
    uint32_t now = kvc_queue_join(c, queue, r, same_note, c);
    if (now != r)
        kvc_run_free(c, r);
    return now;
}

uint32_t kvc_run_add(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t queue,
                     uint32_t note)
{
    struct kvc_run_queue *q = &c->queue[queue];
    uint32_t n = q->newest;
    c->size += hi - lo;
    if (n != KVC_RUN_NONE && c->run[n].seg == seg && c->run[n].lo == hi &&
        c->run[n].note == note && (!c->tag || c->tag[n] == c->tag_new)) {
        c->run[n].lo = lo;
        q->blocks += hi - lo;
        return n;
    }
    uint32_t r = kvc_run_new(c, seg, lo, hi);
    if (r == KVC_RUN_NONE)
        return r;
    c->run[r].note = note;
    return kvc_queue_put(c, queue, r);
}

#define SCOUTED 6

/* The next victim is most likely next, its newer neighbour the one after that, and so on: all far
 * away in memory. The scout goes ahead of them, a step with each, and asks for what the next step
 * needs. Runs that are touched meanwhile leave the way; when it follows one it starts anew. */
static void scout(struct kvc_runs *c, uint32_t next)
{
    uint32_t s = c->scout;
    unsigned steps = 1;
    if (s == KVC_RUN_NONE) {
        s = next;
        steps = SCOUTED;
    }
    for (; steps && s != KVC_RUN_NONE; steps--) {
        __builtin_prefetch(&c->seg[c->run[s].seg]);
        s = c->run[s].newer;
        if (s != KVC_RUN_NONE) {
            __builtin_prefetch(&c->run[s]); /* a record may lie in two lines */
            __builtin_prefetch(&c->run[s].key);
        }
    }
    c->scout = s;
}

void kvc_run_drop(struct kvc_runs *c, uint32_t r, uint32_t n)
{
    struct kvc_run *run = &c->run[r];
    if (kvc_run_resident(c, r)) {
        kvc_run_left(c, run->seg, run->hi - n, run->hi);
        c->size -= n;
    }
    if (n == run->hi - run->lo) {
        uint32_t next = run->newer;
        kvc_queue_take(c, r);
        kvc_run_free(c, r);
        scout(c, next);
        return;
    }
    c->queue[run->queue].blocks -= n;
    run->hi -= n;
}

void kvc_queue_trim(struct kvc_runs *c, uint32_t queue, uint64_t most)
{
    while (c->queue[queue].blocks > most) {
        uint32_t r = c->queue[queue].oldest;
        kvc_run_drop(c, r, kvc_least(c->queue[queue].blocks - most, kvc_run_blocks(c, r)));
    }
}

void kvc_run_move(struct kvc_runs *c, uint32_t r, uint32_t n, uint32_t queue, uint32_t note)
{
    bool was = kvc_run_resident(c, r);
    uint32_t moved = r, seg = c->run[r].seg, hi = c->run[r].hi;
    if (n == kvc_run_blocks(c, r)) {
        kvc_queue_take(c, r);
    } else {
        c->queue[c->run[r].queue].blocks -= n;
        c->run[r].hi -= n;
        moved = kvc_run_new(c, seg, hi - n, hi);
        if (moved == KVC_RUN_NONE)
            return;
        if (c->tag)
            c->tag[moved] = c->tag[r];
    }
    c->run[moved].note = note;
    moved = kvc_queue_put(c, queue, moved);
    if (was && !kvc_run_resident(c, moved)) {
        kvc_run_left(c, seg, hi - n, hi);
        c->size -= n;
    } else if (!was && kvc_run_resident(c, moved)) {
        c->size += n;
    }
}

/* ---- the cache ---- */

void kvc_runs_destroy(struct kvc_runs *c)
{
    if (!c)
        return;
    kvc_free(c->seg);
    kvc_free(c->run);
    kvc_free(c->queue);
    kvc_free(c->touches);
    kvc_free(c->used);
    kvc_free(c->history);
    kvc_admission_destroy(c->admission);
    kvc_free(c->bits);
    kvc_free(c->first_block);
    kvc_free(c->table);
    kvc_free(c->order);
    kvc_free(c->child);
    kvc_free(c->sibling);
    kvc_free(c->sessions);
    kvc_free(c->session_of);
    kvc_free(c->by_return[0]);
    kvc_free(c->by_return[1]);
    kvc_free(c->below);
    kvc_free(c->path);
    kvc_free(c->sketch);
    kvc_free(c->heap);
    kvc_free(c->tag);
    kvc_free(c->kids);
    kvc_plugged_stop(c->plugged);
    kvc_runs_cut_clear(&c->cut);
    kvc_free(c);
}

/* The kit tries a plug-in of one kind or the other. */
static struct kvc_plugged_trial *trial_of(const struct kvc_runs_setup *setup, uint32_t kind)
{
    return setup->trial && setup->trial->plugin->policy.kind == kind ? setup->trial : NULL;
}

/* Finds the policy, and takes the forest as it wants it. */
static bool choose(struct kvc_runs *c, const struct kvc_runs_setup *setup)
{
    const struct kvc_plugged_trial *other = trial_of(setup, KVC_POLICY_ADMISSION);
    if (trial_of(setup, KVC_POLICY_EVICTION) || kvc_plugin_is(setup->policy))
        return kvc_plugged_open(c, setup) && (!kvc_plugged_single(c->plugged) || kvc_runs_cut(c));
    return kvc_runs_parse(setup->policy, &c->ops, c->option, NULL) == KVC_OK &&
           (!setup->engine || !c->ops->order->single || kvc_runs_cut(c)) &&
           (!other || !other->single || kvc_runs_cut(c));
}

static bool admit(struct kvc_runs *c, const struct kvc_runs_setup *setup)
{
    const struct kvc_admission_setup admission = {
        .spec = kvc_policy_admission(setup->policy), .capacity = c->capacity,
        .n_segments = c->n_segments, .seg_len = c->seg_len, .seg_depth = c->seg_depth,
        .seg_parent = c->seg_parent, .block_tokens = c->block_tokens,
        .trial = trial_of(setup, KVC_POLICY_ADMISSION),
    };
    return !admission.spec ||
           kvc_admission_create(&c->admission, &admission, &c->why) == KVC_OK;
}

static bool start_engine(struct kvc_runs *c)
{
    c->tag = kvc_calloc(1, sizeof(*c->tag));
    if (c->ops->order->tree)
        c->kids = kvc_calloc(c->n_segments, sizeof(*c->kids));
    return c->tag && (!c->ops->order->tree || c->kids);
}

static bool start(struct kvc_runs *c, bool engine)
{
    c->seg = kvc_malloc(c->n_segments, sizeof(*c->seg));
    if (!c->seg || !kvc_queues_grow(c, 8))
        return false;
    for (uint32_t s = 0; s < c->n_segments; s++)
        c->seg[s] = (struct kvc_run_segment){c->seg_parent[s], c->seg_len[s], c->seg_depth[s],
                                             KVC_RUN_NONE};
    if (engine && !start_engine(c))
        return false;
    return c->plugged ? kvc_plugged_start(c) : !c->ops->start || c->ops->start(c);
}

struct kvc_runs *kvc_runs_create(const struct kvc_runs_setup *setup)
{
    struct kvc_runs *c = kvc_calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->capacity = setup->capacity;
    c->n_segments = setup->n_segments;
    c->seg_len = setup->seg_len;
    c->seg_depth = setup->seg_depth;
    c->seg_parent = setup->seg_parent;
    c->block_tokens = setup->block_tokens ? setup->block_tokens : 1;
    c->left = setup->left;
    c->left_user = setup->left_user;
    c->free = c->hand = c->scout = c->match = KVC_RUN_NONE;
    c->failed = !choose(c, setup) || !admit(c, setup) || !start(c, setup->engine);
    if (!c->failed || kvc_runs_error(c, NULL) != KVC_ERR_NOMEM)
        return c; /* or to be told why */
    kvc_runs_destroy(c);
    return NULL;
}

enum kvc_status kvc_runs_error(const struct kvc_runs *c, struct kvc_error *err)
{
    if (c->plugged)
        kvc_guest_look(&c->plugged->guest); /* which may make it fail */
    if (c->admission && kvc_admission_error(c->admission, NULL) != KVC_OK)
        return kvc_admission_error(c->admission, err);
    const struct kvc_error *why = c->plugged && c->plugged->guest.error.status != KVC_OK
                                      ? &c->plugged->guest.error : &c->why;
    if (!c->failed)
        return KVC_OK;
    if (why->status == KVC_OK)
        return kvc_fail_nomem(err);
    if (err)
        *err = *why;
    return why->status;
}

bool kvc_runs_failed(const struct kvc_runs *c)
{
    return c->failed;
}

/* Leading blocks of the segment that are resident. */
static uint32_t lead_of(const struct kvc_runs *c, uint32_t seg)
{
    uint32_t lead = 0, from = UINT32_MAX; /* of the stretch of resident runs in hand */
    for (uint32_t r = c->seg[seg].deepest; r != KVC_RUN_NONE; r = c->run[r].shallower) {
        const struct kvc_run *run = &c->run[r];
        if (!kvc_run_resident(c, r)) {
            from = UINT32_MAX;
            continue;
        }
        if (run->hi != from)
            lead = run->hi;
        from = run->lo;
    }
    return from == 0 ? lead : 0;
}

static uint32_t held_of(const void *cache, uint32_t seg)
{
    const struct kvc_runs *c = cache;
    return c->ops->lead ? c->ops->lead(c, seg) : lead_of(c, seg);
}

/* How much of the request's path may be stored. */
static uint64_t limit_of(struct kvc_runs *c)
{
    uint64_t limit = 0;
    if (!c->admission || c->leaf == KVC_RUN_NONE)
        return UINT64_MAX;
    const struct kvc_policy_request request = kvc_runs_said(c);
    if (kvc_admission_ask(c->admission, &request))
        limit = kvc_admission_limit(c->admission, &request, c->leaf, held_of, c);
    c->failed = c->failed || kvc_admission_failed(c->admission);
    return limit;
}

/* Leading blocks of a path that are resident. */
static uint64_t leading(const struct kvc_runs *c, uint32_t seg)
{
    uint64_t run = 0;
    for (; seg != KVC_RUN_NONE; seg = c->seg[seg].parent) {
        uint32_t lead = held_of(c, seg);
        run = lead < c->seg[seg].len ? lead : run + lead;
    }
    return run;
}

uint64_t kvc_runs_arrive(struct kvc_runs *c, const struct kvc_runs_request *request)
{
    if (c->failed)
        return 0;
    c->turn = ++c->request;
    c->now_ns = request->now_ns;
    c->session = request->session;
    c->tenant = request->tenant;
    c->input_tokens = request->input_tokens;
    c->leaf = kvc_runs_leaf(c, request->seg);
    c->next = request->next;
    if (c->ops->arrive && c->capacity)
        c->ops->arrive(c, c->leaf);
    c->limit = limit_of(c);
    return leading(c, c->leaf);
}

static void expect_run(const struct kvc_runs *c, uint32_t r)
{
    if (r == KVC_RUN_NONE)
        return;
    __builtin_prefetch(&c->run[r]); /* a record may lie in two lines */
    __builtin_prefetch(&c->run[r].key);
}

/* In steps, each of what the one before has brought near. */
void kvc_runs_expect(const struct kvc_runs *c, const uint32_t *seg)
{
    if (seg[8] < c->n_segments)
        __builtin_prefetch(&c->seg[seg[8]]);
    if (seg[4] < c->n_segments) {
        const struct kvc_run_segment *s = &c->seg[seg[4]];
        expect_run(c, s->deepest);
        if (s->parent != KVC_RUN_NONE)
            __builtin_prefetch(&c->seg[s->parent]);
    }
    if (seg[2] < c->n_segments) {
        const struct kvc_run_segment *s = &c->seg[seg[2]];
        if (s->deepest != KVC_RUN_NONE) {
            expect_run(c, c->run[s->deepest].newer);
            expect_run(c, c->run[s->deepest].older);
        }
        if (s->parent != KVC_RUN_NONE) {
            expect_run(c, c->seg[s->parent].deepest);
            if (c->seg[s->parent].parent != KVC_RUN_NONE)
                __builtin_prefetch(&c->seg[c->seg[s->parent].parent]);
        }
    }
}

uint64_t kvc_runs_held(const struct kvc_runs *c, uint32_t seg)
{
    return c->failed ? 0 : leading(c, kvc_runs_leaf(c, seg));
}

uint32_t kvc_run_before(const struct kvc_runs *c, uint32_t seg, uint32_t at)
{
    uint32_t r = c->seg[seg].deepest;
    while (r != KVC_RUN_NONE && c->run[r].lo >= at)
        r = c->run[r].shallower;
    return r;
}

void kvc_queue_put_behind(struct kvc_runs *c, uint32_t r, uint32_t part)
{
    uint32_t older = c->run[r].older;
    c->run[part].newer = r;
    c->run[part].older = older;
    *(older != KVC_RUN_NONE ? &c->run[older].newer : &c->queue[c->run[r].queue].oldest) = part;
    c->run[r].older = part;
}

uint32_t kvc_run_cut(struct kvc_runs *c, uint32_t r, uint32_t at)
{
    struct kvc_run whole = c->run[r];
    if (c->plugged)
        return kvc_plugged_cut(c->plugged, r, whole.hi - at);
    c->run[r].hi = at;
    uint32_t deeper = kvc_run_new(c, whole.seg, at, whole.hi);
    if (deeper == KVC_RUN_NONE)
        return deeper;
    uint32_t shallower = c->run[deeper].shallower;
    c->run[deeper] = whole;
    c->run[deeper].lo = at;
    c->run[deeper].shallower = shallower;
    if (c->tag)
        c->tag[deeper] = c->tag[r];
    if (c->ops->first) {
        kvc_heap_sift(c, c->run[r].older);
        kvc_heap_put(c, deeper);
    } else if (c->tag && c->ops->order->cut) {
        c->ops->order->cut(c, r, deeper);
    } else {
        kvc_queue_put_behind(c, r, deeper);
    }
    return deeper;
}

static uint32_t touch_segment(struct kvc_runs *c, uint32_t seg)
{
    uint32_t found = 0, at = c->seg[seg].len, stored = kvc_runs_may_store(c, seg);
    c->clock++;
    if (c->touches)
        c->touches[seg]++;
    if (c->history)
        kvc_lruk_note(c, seg);
    while (at > 0 && !c->failed) {
        uint32_t r = kvc_run_before(c, seg, at), lo = 0;
        bool inside = r != KVC_RUN_NONE && c->run[r].hi >= at;
        if (inside && kvc_run_resident(c, r)) {
            found += kvc_run_blocks(c, r);
            at = c->run[r].lo;
            c->ops->hit(c, r);
            continue;
        }
        if (r != KVC_RUN_NONE)
            lo = inside ? c->run[r].lo : c->run[r].hi;
        if (at > stored) { /* refused */
            at = lo > stored ? lo : stored;
            if (inside && lo < at)
                kvc_run_cut(c, r, at);
        } else {
            at -= c->ops->miss(c, seg, lo, at, inside ? r : KVC_RUN_NONE);
        }
    }
    return found;
}

uint32_t kvc_runs_path(struct kvc_runs *c, uint32_t leaf)
{
    uint32_t n = 0;
    for (uint32_t s = leaf; s != KVC_RUN_NONE; s = c->seg[s].parent)
        n++;
    if (!kvc_grow((void **)&c->path, &c->path_room, n, sizeof(*c->path))) {
        c->failed = true;
        return 0;
    }
    for (uint32_t s = leaf, i = n; s != KVC_RUN_NONE; s = c->seg[s].parent)
        c->path[--i] = s;
    return n;
}

uint64_t kvc_runs_touch(struct kvc_runs *c)
{
    uint64_t found = 0;
    if (!c->capacity || c->leaf == KVC_RUN_NONE || c->failed)
        return 0;
    if (c->ops->whole)
        return c->ops->whole(c, c->leaf);
    for (uint32_t seg = c->leaf; seg != KVC_RUN_NONE; seg = c->seg[seg].parent)
        found += touch_segment(c, seg);
    return found;
}
