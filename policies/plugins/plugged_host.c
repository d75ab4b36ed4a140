/* SPDX-License-Identifier: Apache-2.0
 * The services of struct kvc_host. */
#include "policies/plugins/plugged.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

static struct kvc_plugged *of(const struct kvc_host *host)
{
    return (struct kvc_plugged *)(uintptr_t)host; /* it is that struct's first field */
}

/* The run of a handle that a service was given, resident where that is wanted. */
static uint32_t asked(struct kvc_plugged *p, kvc_piece piece, const char *service, bool resident)
{
    uint32_t r = kvc_plugged_run(p, piece);
    if (r == KVC_RUN_NONE)
        kvc_guest_breach(&p->guest, "%s was given a piece that is gone: a handle ends with its "
                                    "last block, and when put or rank return another one", service);
    else if (resident && !kvc_run_resident(p->c, r)) {
        kvc_guest_breach(&p->guest, "%s was given a ghost; only drop, info and memory take ghosts",
                           service);
        return KVC_RUN_NONE;
    }
    return r;
}

/* ---- pieces ---- */

static uint64_t resident(const struct kvc_host *host)
{
    return of(host)->c->size;
}

/* Fields that no flag asks for hold anything, so that a policy which reads them is found. */
static void add_noise(const struct kvc_plugged *p, struct kvc_piece_info *i)
{
    const struct kvc_plugged_trial *t = p->guest.trial;
    uint64_t flags = t->noise & ~p->evict->flags, word = p->c->request;
    word = kvc_mix64(kvc_mix64(word << 32 | i->segment) ^ i->lo);
    if (flags & KVC_EVICT_TOUCHES)
        i->touches = (uint32_t)(word & 7);
    if (!(flags & KVC_EVICT_HISTORY))
        return;
    i->tenant = (uint32_t)(word >> 8 & 3);
    i->stored_ns = i->touched_ns = word >> 16;
    i->stored_request = i->touched_request = word >> 40;
}

static const struct kvc_piece_info *info(const struct kvc_host *host, kvc_piece piece)
{
    struct kvc_plugged *p = of(host);
    const struct kvc_runs *c = p->c;
    uint32_t r = asked(p, piece, "info", false);
    struct kvc_piece_info *i = &p->info;
    memset(i, 0, sizeof(*i));
    if (r == KVC_RUN_NONE)
        return i;
    const struct kvc_run *run = &c->run[r];
    i->segment = run->seg;
    uint32_t at = kvc_plugged_place(p, &i->segment);
    i->lo = run->lo + at;
    i->hi = run->hi + at;
    i->depth = c->seg_depth[run->seg] + run->lo;
    i->touches = run->note;
    i->tenant = KVC_NO_ID;
    if (p->evict->flags & KVC_EVICT_HISTORY) {
        const struct kvc_plugged_history *h = &p->history[r];
        i->tenant = (uint32_t)h->tenant;
        i->stored_ns = h->stored_ns;
        i->touched_ns = h->touched_ns;
        i->stored_request = h->stored_request;
        i->touched_request = h->touched_request;
    }
    i->resident = kvc_run_resident(c, r);
    i->pinned = kvc_plugged_pinned(p, r);
    if (p->guest.trial && p->guest.trial->noise)
        add_noise(p, i);
    return i;
}

void kvc_plugged_look(struct kvc_plugged *p)
{
    uint64_t mark = 0;
    if (p->lent == KVC_RUN_NONE)
        return;
    memcpy(&mark, p->memory + (p->lent + 1u) * p->stride - sizeof(mark), sizeof(mark));
    p->lent = KVC_RUN_NONE;
    if (mark)
        kvc_guest_breach(&p->guest, "it wrote beyond the %u bytes of memory that each piece has: "
                                    "piece_bytes says how many", p->evict->piece_bytes);
}

static void *memory(const struct kvc_host *host, kvc_piece piece)
{
    struct kvc_plugged *p = of(host);
    uint32_t r = asked(p, piece, "memory", false);
    if (r == KVC_RUN_NONE || !p->stride)
        return p->spare;
    kvc_plugged_look(p);
    p->lent = r;
    return p->memory + r * p->stride;
}

/* ---- queues ---- */

static bool is_queue(struct kvc_plugged *p, uint32_t queue, uint32_t n, const char *service,
                     const char *field)
{
    if (queue >= n)
        kvc_guest_breach(&p->guest, "%s was given number %u, of %u: they count from 0, and .%s "
                                    "says how many there are", service, queue, n, field);
    return queue < n;
}

static kvc_piece put(const struct kvc_host *host, uint32_t queue, kvc_piece piece)
{
    struct kvc_plugged *p = of(host);
    uint32_t r = asked(p, piece, "put", true), at = KVC_PLUGGED_QUEUES + queue;
    if (r == KVC_RUN_NONE || !is_queue(p, queue, p->evict->queues, "put", "queues"))
        return piece;
    if (p->c->queue[at].newest == r)
        return piece;
    kvc_plugged_unlink(p, r);
    return kvc_plugged_handle(p, kvc_plugged_link(p, r, at));
}

static void take(const struct kvc_host *host, kvc_piece piece)
{
    struct kvc_plugged *p = of(host);
    uint32_t r = asked(p, piece, "take", true);
    if (r != KVC_RUN_NONE)
        kvc_plugged_unlink(p, r);
}

static kvc_piece cut(const struct kvc_host *host, kvc_piece piece, uint32_t blocks)
{
    struct kvc_plugged *p = of(host);
    uint32_t r = asked(p, piece, "cut", true);
    if (r == KVC_RUN_NONE)
        return piece;
    if (blocks == 0 || blocks >= kvc_run_blocks(p->c, r)) {
        kvc_guest_breach(&p->guest, "cut was asked for %u blocks of a piece that has %u: from 1 to "
                                    "one less can be cut off", blocks, kvc_run_blocks(p->c, r));
        return piece;
    }
    return kvc_plugged_handle(p, kvc_plugged_cut(p, r, blocks));
}

/* From r on, the first that is not pinned. */
static kvc_piece unpinned(const struct kvc_plugged *p, uint32_t r)
{
    while (r != KVC_RUN_NONE && kvc_plugged_pinned(p, r))
        r = p->c->run[r].newer;
    return kvc_plugged_handle(p, r);
}

static kvc_piece oldest(const struct kvc_host *host, uint32_t queue)
{
    struct kvc_plugged *p = of(host);
    return is_queue(p, queue, p->evict->queues, "oldest", "queues")
               ? unpinned(p, p->c->queue[KVC_PLUGGED_QUEUES + queue].oldest)
               : KVC_PIECE_NONE;
}

static kvc_piece newer(const struct kvc_host *host, kvc_piece piece)
{
    struct kvc_plugged *p = of(host);
    uint32_t r = asked(p, piece, "newer", true);
    if (r != KVC_RUN_NONE && p->c->run[r].queue < KVC_PLUGGED_QUEUES) {
        kvc_guest_breach(&p->guest, "newer was given a piece that is in no queue");
        r = KVC_RUN_NONE;
    }
    return r == KVC_RUN_NONE ? KVC_PIECE_NONE : unpinned(p, p->c->run[r].newer);
}

static uint64_t queued(const struct kvc_host *host, uint32_t queue)
{
    struct kvc_plugged *p = of(host);
    return is_queue(p, queue, p->evict->queues, "queued", "queues")
               ? p->c->queue[KVC_PLUGGED_QUEUES + queue].blocks
               : 0;
}

/* ---- the heap: key holds the rank's bits ---- */

static kvc_piece rank(const struct kvc_host *host, kvc_piece piece, double value)
{
    struct kvc_plugged *p = of(host);
    struct kvc_runs *c = p->c;
    uint32_t r = asked(p, piece, "rank", true);
    if (r == KVC_RUN_NONE)
        return piece;
    if (isnan(value)) {
        kvc_guest_breach(&p->guest, "rank was given NaN, which has no place in an order");
        return piece;
    }
    value += 0.0; /* -0 has the bits of 0 */
    struct kvc_run *run = &c->run[r];
    uint32_t n = kvc_run_at(c, run->seg, run->hi);
    bool there = run->queue == KVC_PLUGGED_HEAP;
    if (!there)
        kvc_plugged_unlink(p, r);
    memcpy(&run->key, &value, sizeof(value));
    if (p->leaving != r && n != KVC_RUN_NONE && c->run[n].queue == KVC_PLUGGED_HEAP &&
        c->run[n].key == run->key &&
        kvc_plugged_alike(p, n, r)) {
        c->run[n].lo = run->lo;
        if (there)
            kvc_heap_take(c, r);
        kvc_plugged_end(p, r);
        return kvc_plugged_handle(p, n);
    }
    run->queue = KVC_PLUGGED_HEAP;
    if (there)
        kvc_heap_sift(c, run->older);
    else
        kvc_heap_put(c, r);
    return piece;
}

static kvc_piece lowest(const struct kvc_host *host)
{
    struct kvc_plugged *p = of(host);
    const struct kvc_runs *c = p->c;
    uint32_t best = c->n_heap ? c->heap[0] : KVC_RUN_NONE;
    if (best == KVC_RUN_NONE || !kvc_plugged_pinned(p, best))
        return kvc_plugged_handle(p, best);
    best = KVC_RUN_NONE;
    for (size_t i = 1; i < c->n_heap; i++)
        if (!kvc_plugged_pinned(p, c->heap[i]) &&
            (best == KVC_RUN_NONE || c->ops->first(c, &c->run[c->heap[i]], &c->run[best])))
            best = c->heap[i];
    return kvc_plugged_handle(p, best);
}

/* ---- ghosts, and what leaves ---- */

static void remember(const struct kvc_host *host, uint32_t ghost)
{
    struct kvc_plugged *p = of(host);
    if (!is_queue(p, ghost, p->evict->ghost_queues, "remember", "ghost_queues"))
        return;
    if (p->leaving == KVC_RUN_NONE)
        kvc_guest_breach(&p->guest, "remember was called where nothing leaves: it belongs into "
                                    "removed");
    else
        p->remember = kvc_plugged_ghosts(p) + ghost;
}

static kvc_piece oldest_ghost(const struct kvc_host *host, uint32_t ghost)
{
    struct kvc_plugged *p = of(host);
    return is_queue(p, ghost, p->evict->ghost_queues, "oldest_ghost", "ghost_queues")
               ? kvc_plugged_handle(p, p->c->queue[kvc_plugged_ghosts(p) + ghost].oldest)
               : KVC_PIECE_NONE;
}

static uint64_t ghosts(const struct kvc_host *host, uint32_t ghost)
{
    struct kvc_plugged *p = of(host);
    return is_queue(p, ghost, p->evict->ghost_queues, "ghosts", "ghost_queues")
               ? p->c->queue[kvc_plugged_ghosts(p) + ghost].blocks
               : 0;
}

static void drop(const struct kvc_host *host, kvc_piece piece, uint32_t blocks)
{
    struct kvc_plugged *p = of(host);
    uint32_t r = asked(p, piece, "drop", false);
    if (r == KVC_RUN_NONE)
        return;
    if (kvc_run_resident(p->c, r) && p->leaving != KVC_RUN_NONE)
        kvc_guest_breach(&p->guest, "drop was called in removed for a resident piece");
    else if (blocks == 0 || blocks > kvc_run_blocks(p->c, r))
        kvc_guest_breach(&p->guest, "drop was asked for %u blocks of a piece that has %u", blocks,
                           kvc_run_blocks(p->c, r));
    else if (kvc_run_resident(p->c, r) && kvc_plugged_pinned(p, r))
        kvc_guest_breach(&p->guest, "drop was given a pinned piece, which a running request reads");
    else
        kvc_plugged_leave(p, r, blocks);
}

/* ---- the rest ---- */

static uint64_t next_use(const struct kvc_host *host, kvc_piece piece)
{
    struct kvc_plugged *p = of(host);
    uint32_t r = asked(p, piece, "next_use", false);
    if (!(p->evict->flags & KVC_EVICT_ORACLE))
        kvc_guest_breach(&p->guest, "next_use needs KVC_EVICT_ORACLE among the flags");
    if (r == KVC_RUN_NONE || !p->next_use)
        return KVC_NEVER;
    uint32_t next = p->next_use[kvc_runs_segment(p->c, p->c->run[r].seg)];
    return next == UINT32_MAX ? KVC_NEVER : next;
}

static uint64_t random_word(const struct kvc_host *host)
{
    return kvc_rng_next(&of(host)->guest.rng);
}

static void *alloc(const struct kvc_host *host, size_t n, size_t size)
{
    return kvc_guest_alloc(&of(host)->guest, n, size);
}

static void give_back(const struct kvc_host *host, void *memory_given)
{
    kvc_guest_free(&of(host)->guest, memory_given);
}

static void fail(const struct kvc_host *host, const char *why)
{
    kvc_guest_breach(&of(host)->guest, "%s", why ? why : "(no words)");
}

void kvc_plugged_services(struct kvc_host *h)
{
    h->resident = resident;
    h->info = info;
    h->memory = memory;
    h->put = put;
    h->take = take;
    h->cut = cut;
    h->oldest = oldest;
    h->newer = newer;
    h->queued = queued;
    h->rank = rank;
    h->lowest = lowest;
    h->remember = remember;
    h->oldest_ghost = oldest_ghost;
    h->ghosts = ghosts;
    h->drop = drop;
    h->next_use = next_use;
    h->random = random_word;
    h->alloc = alloc;
    h->free = give_back;
    h->fail = fail;
}
