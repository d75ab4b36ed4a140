/* SPDX-License-Identifier: Apache-2.0
 * thinktime: what is expected back last goes. A session is expected back after the mean of its own
 * pauses so far, without any after the mean of all sessions' pauses; a request without a session is
 * taken for a session of one request. The session whose expected return is farthest from now, to
 * come or gone by (of equals the one that asked longest ago), loses the deepest blocks of its last
 * prompt that no other session's last prompt has. When it has none it is forgotten until it asks
 * again. Blocks that no session has any more, because it went on with another prompt, go before
 * all others, those left longest ago first, the deepest first.
 *
 * A request's own blocks are never victims, and what has no room stays outside. A segment's blocks
 * are one run from its first on; the queue holds those that no session has. below: by segment, how
 * many sessions have it. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"

#include <string.h>

static const struct kvc_policy_option options[] = {
    {"pause", KVC_OPTION_TIME, "1m", 1, 1e18, "pause that is expected before any is known"},
};

struct kvc_runs_session {
    uint64_t back_ns, last_ns, sum_ns; /* sum of pauses */
    uint32_t pauses, request, leaf; /* leaf: of the last prompt; also links free ones */
    bool named;
    uint32_t place[2]; /* in the heaps: soonest back, latest back; KVC_RUN_NONE: forgotten */
};

static bool start(struct kvc_runs *c)
{
    c->below = kvc_calloc(c->n_segments, sizeof(*c->below));
    return c->below != NULL;
}

/* ---- sessions in two heaps ---- */

static bool goes_first(const struct kvc_runs *c, int heap, uint32_t a, uint32_t b)
{
    const struct kvc_runs_session *x = &c->sessions[a], *y = &c->sessions[b];
    if (x->back_ns == y->back_ns)
        return x->request < y->request;
    return (x->back_ns < y->back_ns) == (heap == 0);
}

static void put_at(struct kvc_runs *c, int heap, uint32_t at, uint32_t s)
{
    c->by_return[heap][at] = s;
    c->sessions[s].place[heap] = at;
}

static void sift(struct kvc_runs *c, int heap, uint32_t at)
{
    uint32_t *h = c->by_return[heap], s = h[at], k;
    for (; at && goes_first(c, heap, s, h[(at - 1) / 2]); at = (at - 1) / 2)
        put_at(c, heap, at, h[(at - 1) / 2]);
    while ((k = 2 * at + 1) < c->n_live) {
        k += k + 1 < c->n_live && goes_first(c, heap, h[k + 1], h[k]);
        if (!goes_first(c, heap, h[k], s))
            break;
        put_at(c, heap, at, h[k]);
        at = k;
    }
    put_at(c, heap, at, s);
}

static void enter(struct kvc_runs *c, uint32_t s)
{
    for (int heap = 0; heap < 2; heap++)
        if (!kvc_grow((void **)&c->by_return[heap], &c->return_room[heap], c->n_live + 1,
                      sizeof(**c->by_return))) {
            c->failed = true;
            return;
        }
    c->n_live++;
    for (int heap = 0; heap < 2; heap++) {
        put_at(c, heap, c->n_live - 1, s);
        sift(c, heap, c->n_live - 1);
    }
}

static void leave(struct kvc_runs *c, uint32_t s)
{
    c->n_live--;
    for (int heap = 0; heap < 2; heap++) {
        uint32_t at = c->sessions[s].place[heap], last = c->by_return[heap][c->n_live];
        c->sessions[s].place[heap] = KVC_RUN_NONE;
        if (last == s)
            continue;
        put_at(c, heap, at, last);
        sift(c, heap, at);
    }
}

static uint64_t distance(const struct kvc_runs *c, uint32_t s)
{
    uint64_t back = c->sessions[s].back_ns;
    return back > c->now_ns ? back - c->now_ns : c->now_ns - back;
}

/* The session farthest from its expected return, or KVC_RUN_NONE. */
static uint32_t farthest(const struct kvc_runs *c)
{
    if (!c->n_live)
        return KVC_RUN_NONE;
    uint32_t a = c->by_return[0][0], b = c->by_return[1][0];
    uint64_t x = distance(c, a), y = distance(c, b);
    if (x == y)
        return c->sessions[a].request < c->sessions[b].request ? a : b;
    return x > y ? a : b;
}

/* ---- sessions by name ---- */

static uint32_t new_session(struct kvc_runs *c)
{
    uint32_t s = c->free_session;
    if (s) {
        c->free_session = c->sessions[s - 1].leaf;
        return s - 1;
    }
    if (!kvc_grow((void **)&c->sessions, &c->session_room, c->n_sessions + 1,
                  sizeof(*c->sessions))) {
        c->failed = true;
        return KVC_RUN_NONE;
    }
    return (uint32_t)c->n_sessions++;
}

/* Of the request in hand. */
static uint32_t session_of(struct kvc_runs *c)
{
    uint32_t id = c->session, s;
    if (id != KVC_ID_NONE && id < c->n_ids && c->session_of[id] != KVC_RUN_NONE)
        return c->session_of[id];
    if (id != KVC_ID_NONE && id >= c->n_ids) {
        if (!kvc_grow((void **)&c->session_of, &c->id_room, (size_t)id + 1,
                      sizeof(*c->session_of))) {
            c->failed = true;
            return KVC_RUN_NONE;
        }
        while (c->n_ids <= id)
            c->session_of[c->n_ids++] = KVC_RUN_NONE;
    }
    s = new_session(c);
    if (s == KVC_RUN_NONE)
        return s;
    c->sessions[s] = (struct kvc_runs_session){.named = id != KVC_ID_NONE, .leaf = KVC_RUN_NONE,
                                               .place = {KVC_RUN_NONE, KVC_RUN_NONE}};
    if (id != KVC_ID_NONE)
        c->session_of[id] = s;
    return s;
}

/* ---- victims ---- */

static void forget(struct kvc_runs *c, uint32_t s)
{
    struct kvc_runs_session *x = &c->sessions[s];
    leave(c, s);
    for (uint32_t seg = x->leaf; seg != KVC_RUN_NONE; seg = c->seg[seg].parent)
        c->below[seg]--;
    x->leaf = KVC_RUN_NONE;
    if (!x->named) {
        x->leaf = c->free_session;
        c->free_session = s + 1;
    }
}

/* Makes room for n blocks at most; returns for how many, 0: nothing can go. */
static uint32_t evict(struct kvc_runs *c, uint32_t n)
{
    uint32_t r = c->queue[0].oldest, s;
    if (r != KVC_RUN_NONE) {
        n = kvc_least(n, kvc_run_blocks(c, r));
        kvc_run_drop(c, r, n);
        return n;
    }
    while ((s = farthest(c)) != KVC_RUN_NONE) {
        uint32_t seg = c->sessions[s].leaf;
        while (seg != KVC_RUN_NONE && c->below[seg] == 1 && c->seg[seg].deepest == KVC_RUN_NONE)
            seg = c->seg[seg].parent;
        if (seg != KVC_RUN_NONE && c->below[seg] == 1) {
            r = c->seg[seg].deepest;
            n = kvc_least(n, kvc_run_blocks(c, r));
            kvc_run_left(c, seg, c->run[r].hi - n, c->run[r].hi);
            c->size -= n;
            c->run[r].hi -= n;
            if (!c->run[r].hi)
                kvc_run_free(c, r);
            return n;
        }
        forget(c, s);
    }
    return 0;
}

/* ---- a request ---- */

/* The session goes from its last prompt to this one. */
static void move_on(struct kvc_runs *c, uint32_t s, uint32_t leaf)
{
    uint32_t old = c->sessions[s].leaf;
    for (uint32_t seg = leaf; seg != KVC_RUN_NONE; seg = c->seg[seg].parent)
        if (c->below[seg]++ == 0 && c->seg[seg].deepest != KVC_RUN_NONE)
            kvc_queue_take(c, c->seg[seg].deepest);
    for (uint32_t seg = old; seg != KVC_RUN_NONE; seg = c->seg[seg].parent)
        if (--c->below[seg] == 0 && c->seg[seg].deepest != KVC_RUN_NONE)
            kvc_queue_put(c, 0, c->seg[seg].deepest);
    c->sessions[s].leaf = leaf;
}

static void expect(struct kvc_runs *c, uint32_t s)
{
    struct kvc_runs_session *x = &c->sessions[s];
    if (x->request && x->named) {
        uint64_t pause = c->now_ns - x->last_ns;
        x->sum_ns += pause;
        x->pauses++;
        c->sum_ns += pause;
        c->pauses++;
    }
    x->back_ns = c->now_ns + (x->pauses   ? x->sum_ns / x->pauses
                              : c->pauses ? c->sum_ns / c->pauses
                                          : c->option[0].time_ns);
    x->last_ns = c->now_ns;
    x->request = c->request;
}

/* Stores what a segment lacks, as far as there is room. */
static bool fill(struct kvc_runs *c, uint32_t seg)
{
    uint32_t r = c->seg[seg].deepest, at = r == KVC_RUN_NONE ? 0 : c->run[r].hi;
    uint32_t end = kvc_runs_may_store(c, seg);
    while (at < end && !c->failed) {
        uint32_t n = end - at;
        n = c->size < c->capacity ? kvc_least(n, c->capacity - c->size) : evict(c, n);
        if (!n)
            return false;
        if (at)
            c->run[c->seg[seg].deepest].hi += n;
        else
            kvc_run_new(c, seg, 0, n);
        c->size += n;
        at += n;
    }
    return !c->failed;
}

static uint64_t whole(struct kvc_runs *c, uint32_t leaf)
{
    uint64_t found = kvc_runs_held(c, leaf);
    uint32_t s = session_of(c), n = kvc_runs_path(c, leaf), i = 0;
    if (s == KVC_RUN_NONE || c->failed)
        return found;
    if (c->sessions[s].place[0] != KVC_RUN_NONE)
        leave(c, s);
    move_on(c, s, leaf);
    while (i < n && fill(c, c->path[i]))
        i++;
    expect(c, s);
    enter(c, s);
    return found;
}

/* ---- in an engine's cache: queue 0 as above, other runs in queue 1; runs are of any part ---- */

/* Runs of a segment that some session has now, or none any more. */
static void order_put(struct kvc_runs *c, uint32_t seg)
{
    uint32_t queue = c->below[seg] > 0;
    for (uint32_t r = c->seg[seg].deepest, next; r != KVC_RUN_NONE; r = next) {
        next = c->run[r].shallower;
        if (c->run[r].queue == queue)
            continue;
        kvc_queue_take(c, r);
        kvc_queue_put(c, queue, r);
    }
}

static void order_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    (void)ghost;
    kvc_run_add(c, seg, lo, hi, c->below[seg] > 0, 0);
}

static void order_use(struct kvc_runs *c, uint32_t r)
{
    (void)c, (void)r;
}

static void order_arrive(struct kvc_runs *c, uint32_t leaf)
{
    uint32_t s = leaf == KVC_RUN_NONE ? KVC_RUN_NONE : session_of(c);
    c->awaits = c->in_use > c->size;
    if (s == KVC_RUN_NONE || c->failed)
        return;
    if (c->sessions[s].place[0] != KVC_RUN_NONE)
        leave(c, s);
    uint32_t old = c->sessions[s].leaf;
    for (uint32_t seg = leaf; seg != KVC_RUN_NONE; seg = c->seg[seg].parent)
        if (c->below[seg]++ == 0)
            order_put(c, seg);
    for (uint32_t seg = old; seg != KVC_RUN_NONE; seg = c->seg[seg].parent)
        if (--c->below[seg] == 0)
            order_put(c, seg);
    c->sessions[s].leaf = leaf;
    expect(c, s);
    enter(c, s);
}

/* The deepest run that only this session has; KVC_RUN_NONE: it has none. */
static uint32_t own_run(const struct kvc_runs *c, uint32_t s)
{
    uint32_t seg = c->sessions[s].leaf;
    while (seg != KVC_RUN_NONE && c->below[seg] == 1 && c->seg[seg].deepest == KVC_RUN_NONE)
        seg = c->seg[seg].parent;
    return seg != KVC_RUN_NONE && c->below[seg] == 1 ? c->seg[seg].deepest : KVC_RUN_NONE;
}

/* The run of the session farthest from its return whose deepest blocks may go. A session that has
 * none is forgotten, but not, with patience, one of the last to ask: as the request arrived some
 * were on their way. */
#define RECENT 256

static bool expected(const struct kvc_runs *c, uint32_t s, bool patient)
{
    uint32_t since = c->request - c->sessions[s].request;
    return since == 0 || (patient && since < RECENT && c->awaits);
}

static uint32_t next_to_go(struct kvc_runs *c, bool patient, uint32_t *want)
{
    uint32_t found = KVC_RUN_NONE, aside = KVC_RUN_NONE, s;
    while (found == KVC_RUN_NONE && (s = farthest(c)) != KVC_RUN_NONE) {
        uint32_t r = own_run(c, s);
        if (r != KVC_RUN_NONE && kvc_order_free(c, r)) {
            found = r;
        } else if (r == KVC_RUN_NONE && !expected(c, s, patient)) {
            forget(c, s);
            *want = 1; /* what it shared may be one's alone now that was put aside */
        } else {
            leave(c, s);
            c->sessions[s].place[1] = aside; /* free while it is in no heap */
            aside = s;
        }
    }
    for (; aside != KVC_RUN_NONE; aside = s) {
        s = c->sessions[aside].place[1];
        enter(c, aside);
    }
    return found;
}

static uint32_t order_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t r = kvc_order_oldest(c, 0);
    if (r == KVC_RUN_NONE)
        r = next_to_go(c, true, &want);
    if (r == KVC_RUN_NONE)
        r = next_to_go(c, false, &want);
    if (r == KVC_RUN_NONE)
        r = kvc_order_oldest(c, 1); /* not the deepest of anybody's: what is below is held */
    return kvc_order_leave(c, r, want);
}

static const struct kvc_order_ops order = {.come = order_come, .evict = order_evict,
                                           .use = order_use, .arrive = order_arrive};
const struct kvc_runs_ops kvc_runs_thinktime = {.name = "thinktime", KVC_OPTIONS(options),
                                                .start = start, .whole = whole,
                                                .order = &order};
