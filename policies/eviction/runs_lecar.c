/* SPDX-License-Identifier: Apache-2.0
 * lecar (Vietri et al., HotStorage 2018): each victim is drawn to be that of LRU or that of LFU, by
 * weights that are learned. Two lists remember what each of them evicted, with its touches, as many
 * blocks as the cache holds; a block that both would evict is not remembered. When a remembered
 * block is asked for again, the one that evicted it loses weight, the more the sooner:
 * w x e^(-learning d^age), d^capacity = discount. Ages are in touches of blocks. As in the authors'
 * program, weights sum to 1 and stay within 0.01 and 0.99.
 *
 * Queues: what LRU evicted, what LFU evicted, then one for each number of touches, by last touch.
 * Resident runs are in a list by last touch as well. note: of resident runs the turn (the request)
 * of the last touch; stamp, key: of remembered runs the time of leaving of a block + its place in
 * the segment, which blocks that left one after the other share, and their touches. */
#include "policies/eviction/runs_internal.h"

#include "base/alloc.h"
#include "base/rng.h"

enum { BY_LRU, BY_LFU, TOUCHED_0, LEARNING = 0, DISCOUNT, SEED };

static const struct kvc_policy_option options[] = {
    {"learning", KVC_OPTION_NUMBER, "0.45", 0, 10, "how fast weights follow what is regretted"},
    {"discount", KVC_OPTION_NUMBER, "0.005", 1e-12, 1,
     "what a regret is worth after a cache's fill"},
    {"seed", KVC_OPTION_COUNT, "0", 0, 0x1p53, "of the draws"},
};

/* e^x for x <= 0, the same on every machine: (e^(x / 1024))^1024 by its series. */
static double exp_of(double x)
{
    if (x < -700)
        return 0;
    x /= 1024;
    double e = 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6)))));
    for (int i = 0; i < 10; i++)
        e *= e;
    return e;
}

/* ln x for 0 < x <= 1, by Newton's method on exp_of. */
static double ln_of(double x)
{
    double y = x - 1;
    for (int i = 0; i < 200; i++)
        y += x / exp_of(y) - 1 < 1 ? x / exp_of(y) - 1 : 1;
    return y;
}

static bool start(struct kvc_runs *c)
{
    c->rng = kvc_rng_stream(c->option[SEED].count, "lecar");
    c->target = 0.5; /* the weight of LRU */
    c->decay = c->capacity ? ln_of(c->option[DISCOUNT].number) / (double)c->capacity : 0;
    c->hand = TOUCHED_0 + 1;
    c->order_newest = c->order_oldest = KVC_RUN_NONE;
    return true;
}

/* ---- the list by last touch ---- */

static void order_take(struct kvc_runs *c, uint32_t r)
{
    uint32_t newer = c->order[r].newer, older = c->order[r].older;
    *(newer != KVC_RUN_NONE ? &c->order[newer].older : &c->order_newest) = older;
    *(older != KVC_RUN_NONE ? &c->order[older].newer : &c->order_oldest) = newer;
}

/* Into a queue, as the newest of all. */
static void renew(struct kvc_runs *c, uint32_t r, uint32_t queue)
{
    if (!kvc_queues_grow(c, (size_t)queue + 1) ||
        !kvc_grow((void **)&c->order, &c->order_room, c->n_runs, sizeof(*c->order))) {
        c->failed = true;
        return;
    }
    c->run[r].note = c->turn;
    uint32_t now = kvc_queue_put(c, queue, r);
    if (now != r) /* the newest run, touched just before, has taken it up */
        return;
    c->order[r] = (struct kvc_run_order){KVC_RUN_NONE, c->order_newest};
    *(c->order_newest != KVC_RUN_NONE ? &c->order[c->order_newest].newer : &c->order_oldest) = r;
    c->order_newest = r;
    c->hand = queue < c->hand ? queue : c->hand;
}

static void hit(struct kvc_runs *c, uint32_t r)
{
    c->counted += kvc_run_blocks(c, r);
    order_take(c, r);
    kvc_queue_take(c, r);
    renew(c, r, c->run[r].queue + 1);
}

/* ---- learning ---- */

/* LRU's weight after what one of them evicted is asked for again: its own weight is x less. */
static double learn(double lru, bool by_lru, double x)
{
    double a = by_lru ? lru * x : lru, b = by_lru ? 1 - lru : (1 - lru) * x;
    a /= a + b;
    return a >= 0.99 ? 0.99 : a <= 0.01 ? 0.01 : a;
}

/* ---- misses ---- */

static uint32_t fewest(struct kvc_runs *c)
{
    while (!c->queue[c->hand].blocks)
        c->hand++;
    return c->queue[c->hand].oldest;
}

/* Newcomers in a row that learn and draw as the first does, n at most: makes their draws. lru, lfu:
 * the victims; ghost: as in miss. */
static uint32_t draws(struct kvc_runs *c, uint32_t n, uint32_t ghost, double x, bool *by_lru)
{
    bool full = c->size == c->capacity;
    for (uint32_t i = 0; i < n; i++) {
        double weight = c->target;
        uint64_t rng = c->rng;
        if (ghost != KVC_RUN_NONE)
            weight = learn(weight, c->run[ghost].queue == BY_LRU, x);
        bool lru = full && kvc_rng_unit(&rng) < weight;
        if (i && lru != *by_lru)
            return i;
        *by_lru = lru;
        c->target = weight;
        c->rng = full ? rng : c->rng;
    }
    return n;
}

/* The deepest n blocks of a victim leave; queue: where they are remembered, or KVC_RUN_NONE. The
 * first of them leaves at a time, each other one touch later. */
static void leave(struct kvc_runs *c, uint32_t r, uint32_t n, uint32_t queue, uint64_t time)
{
    uint64_t key = c->run[r].queue - TOUCHED_0, stamp = time + c->run[r].hi - 1;
    uint32_t seg = c->run[r].seg, hi = c->run[r].hi;
    if (n == kvc_run_blocks(c, r))
        order_take(c, r);
    if (queue == KVC_RUN_NONE) {
        kvc_run_drop(c, r, n);
        return;
    }
    uint32_t last = c->queue[queue].newest;
    bool same = last != KVC_RUN_NONE && c->run[last].key == key && c->run[last].stamp == stamp;
    kvc_run_move(c, r, n, queue, same ? c->run[last].note : ++c->notes);
    r = c->queue[queue].newest;
    if (!c->failed && c->run[r].seg == seg && c->run[r].hi == hi) { /* not joined to another */
        c->run[r].key = key;
        c->run[r].stamp = stamp;
    }
}

static void forget(struct kvc_runs *c, uint64_t but)
{
    kvc_queue_trim(c, BY_LRU, but);
    kvc_queue_trim(c, BY_LFU, but);
}

static void come(struct kvc_runs *c, uint32_t seg, uint32_t hi, uint32_t n, uint32_t ghost,
                 uint32_t queue)
{
    if (ghost != KVC_RUN_NONE)
        kvc_run_drop(c, ghost, n);
    uint32_t r = kvc_run_new(c, seg, hi - n, hi);
    c->size += n;
    if (r != KVC_RUN_NONE)
        renew(c, r, queue);
}

static uint32_t miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t n = hi - lo, queue = TOUCHED_0 + 1, lru = KVC_RUN_NONE, lfu = KVC_RUN_NONE;
    bool full = c->size == c->capacity, by_lru = false;
    uint64_t time = c->counted + 1;
    double x = 1;
    if (ghost != KVC_RUN_NONE) {
        const struct kvc_run *g = &c->run[ghost];
        queue += (uint32_t)g->key;
        double age = (double)(time + hi - 1 - g->stamp);
        x = exp_of(-c->option[LEARNING].number * exp_of(c->decay * age));
    }
    if (full) {
        lru = c->order_oldest;
        lfu = fewest(c);
        n = kvc_least(n, kvc_run_blocks(c, lru));
        n = kvc_least(n, kvc_run_blocks(c, lfu));
        if (queue < c->hand) /* the first newcomer is the next victim of LFU */
            n = 1;
    } else {
        n = kvc_least(n, c->capacity - c->size);
    }
    n = draws(c, n, ghost, x, &by_lru);
    c->counted += n;
    come(c, seg, hi, n, ghost, queue);
    if (full && !c->failed)
        leave(c, by_lru ? lru : lfu, n, lru == lfu ? KVC_RUN_NONE : by_lru ? BY_LRU : BY_LFU, time);
    forget(c, c->capacity);
    return n;
}

/* ---- in an engine's cache: what is remembered teaches when it is asked for ---- */

static void teach(struct kvc_runs *c, const struct kvc_run *g)
{
    for (uint32_t b = g->hi; b-- > g->lo;) {
        double age = (double)(c->counted + 1 + b - g->stamp);
        c->target = learn(c->target, g->queue == BY_LRU,
                          exp_of(-c->option[LEARNING].number * exp_of(c->decay * age)));
    }
}

static void order_arrive(struct kvc_runs *c, uint32_t leaf)
{
    for (uint32_t seg = leaf; seg != KVC_RUN_NONE; seg = c->seg[seg].parent)
        for (uint32_t r = c->seg[seg].deepest; r != KVC_RUN_NONE; r = c->run[r].shallower)
            if (!kvc_run_resident(c, r))
                teach(c, &c->run[r]);
}

static void order_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t touches = ghost == KVC_RUN_NONE ? 0 : (uint32_t)c->run[ghost].key;
    c->counted += hi - lo;
    come(c, seg, hi, hi - lo, ghost, TOUCHED_0 + 1 + touches);
    forget(c, c->capacity);
}

static uint32_t order_evict(struct kvc_runs *c, uint32_t want)
{
    uint32_t lru = c->order_oldest, lfu = KVC_RUN_NONE;
    (void)want; /* each block is drawn */
    while (lru != KVC_RUN_NONE && !kvc_order_free(c, lru))
        lru = c->order[lru].newer;
    if (lru == KVC_RUN_NONE)
        return 0;
    for (uint32_t q = c->hand; lfu == KVC_RUN_NONE; q++)
        lfu = kvc_order_oldest(c, q);
    bool by_lru = kvc_rng_unit(&c->rng) < c->target;
    leave(c, by_lru ? lru : lfu, 1, lru == lfu ? KVC_RUN_NONE : by_lru ? BY_LRU : BY_LFU,
          c->counted + 1);
    forget(c, c->capacity + 1); /* one more until somebody comes in: it may be who comes */
    return 1;
}

static void order_renew(struct kvc_runs *c, uint32_t r)
{
    uint32_t queue = c->run[r].queue;
    order_take(c, r);
    kvc_queue_take(c, r);
    renew(c, r, queue);
}

/* The deeper part is the next older by last touch too. */
static void order_cut(struct kvc_runs *c, uint32_t r, uint32_t deeper)
{
    kvc_queue_put_behind(c, r, deeper);
    if (!kvc_run_resident(c, r))
        return;
    if (!kvc_grow((void **)&c->order, &c->order_room, c->n_runs, sizeof(*c->order))) {
        c->failed = true;
        return;
    }
    uint32_t older = c->order[r].older;
    c->order[deeper] = (struct kvc_run_order){r, older};
    *(older != KVC_RUN_NONE ? &c->order[older].newer : &c->order_oldest) = deeper;
    c->order[r].older = deeper;
}

static void order_gone(struct kvc_runs *c, uint32_t r)
{
    order_take(c, r);
}

static const struct kvc_order_ops order = {.come = order_come, .evict = order_evict,
                                           .renew = order_renew, .arrive = order_arrive,
                                           .cut = order_cut, .gone = order_gone};
const struct kvc_runs_ops kvc_runs_lecar = {.name = "lecar", KVC_OPTIONS(options),
                                            .ghost_queues = 2, .start = start, .hit = hit,
                                            .miss = miss, .order = &order};
