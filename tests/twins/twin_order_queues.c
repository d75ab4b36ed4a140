/* SPDX-License-Identifier: Apache-2.0
 * Policies of the slow replay that are made of queues, and random. */
#include "tests/twins/twin_order_internal.h"

#include "base/rng.h"

/* ---- sieve ---- */

static void sieve(struct twin_order *o)
{
    uint32_t n = o->hand;

    for (int rounds = 0;;) {
        if (n == TWIN_NONE &&
            (rounds++ == 3 || (n = order_oldest(o, 1, 0, false)) == TWIN_NONE))
            return;
        if (order_may(o, n) && !o->b[n].visited)
            break;
        if (order_may(o, n))
            o->b[n].visited = false;
        n = order_oldest(o, 1, o->b[n].put, false);
    }
    o->hand = n;
    order_leave(o, n, 0);
}

static void sieve_gone(struct twin_order *o, uint32_t n)
{
    if (o->hand == n)
        o->hand = order_oldest(o, o->b[n].list, o->b[n].put, false);
}

/* ---- s3fifo: 1 small, 2 main, 3 ghosts ---- */

static void s3fifo_start(struct twin_order *o)
{
    o->small = order_at_least_one(order_part(o->capacity, order_option(o, "small", 0.1)));
    o->ghosts = order_part(o->capacity - o->small, order_option(o, "ghosts", 1));
}

static void s3fifo_come(struct twin_order *o, uint32_t n, uint8_t was)
{
    o->b[n].count = 0;
    order_put(o, was ? 2 : 1, n);
}

static void s3fifo_use(struct twin_order *o, uint32_t n)
{
    o->b[n].count = o->b[n].count > 3 ? 3 : o->b[n].count;
}

static void s3fifo(struct twin_order *o)
{
    uint32_t n = TWIN_NONE;

    if (o->count[1] >= o->small || !o->count[2])
        while ((n = order_oldest(o, 1, 0, true)) != TWIN_NONE &&
               o->b[n].count >= order_option(o, "uses", 2)) {
            o->b[n].count = 0;
            order_put(o, 2, n);
        }
    if (n == TWIN_NONE) {
        while ((n = order_oldest(o, 2, 0, true)) != TWIN_NONE && o->b[n].count) {
            o->b[n].count--;
            order_put(o, 2, n);
        }
        n = order_either(n, order_oldest(o, 1, 0, true));
    }
    if (n == TWIN_NONE)
        return;
    order_leave(o, n, o->b[n].list == 1 ? 3 : 0);
    order_trim(o, 3, o->ghosts);
}

/* ---- twoq: 1 in, 2 main, 3 ghosts ---- */

static void twoq_start(struct twin_order *o)
{
    o->small = order_at_least_one(order_part(o->capacity, order_option(o, "in", 0.25)));
    o->ghosts = order_at_least_one(order_part(o->capacity, order_option(o, "out", 0.5)));
}

static void twoq_come(struct twin_order *o, uint32_t n, uint8_t was)
{
    order_put(o, was ? 2 : 1, n);
    order_trim(o, 3, o->ghosts);
}

static void twoq_use(struct twin_order *o, uint32_t n)
{
    if (o->b[n].list == 2)
        order_put(o, 2, n);
}

static void twoq(struct twin_order *o)
{
    bool shrink = o->count[1] > o->small || !o->count[2];
    uint32_t n = order_either(order_oldest(o, shrink ? 1 : 2, 0, true),
                              order_oldest(o, shrink ? 2 : 1, 0, true));

    if (n == TWIN_NONE)
        return;
    order_leave(o, n, o->b[n].list == 1 ? 3 : 0);
    order_trim(o, 3, o->ghosts + 1); /* one more than there are, until somebody comes */
}

/* ---- arc: 1 and 2 recent and frequent, 3 and 4 what left them ---- */

static void arc_ask(struct twin_order *o, uint32_t n)
{
    double b1 = (double)o->count[3], b2 = (double)o->count[4], step;
    bool recent = o->b[n].list == 3;

    if (o->b[n].list < 3)
        return;
    step = recent ? b2 / b1 : b1 / b2;
    step = step > 1 ? step : 1;
    o->target += recent ? step : -step;
    o->target = o->target < 0 ? 0
                : o->target > (double)o->capacity ? (double)o->capacity : o->target;
}

static void arc_come(struct twin_order *o, uint32_t n, uint8_t was)
{
    order_put(o, was ? 2 : 1, n);
    while (!was && o->count[3] && o->count[1] + o->count[3] > o->capacity)
        order_trim(o, 3, o->count[3] - 1);
    while (!was && o->count[4] && o->size + o->count[3] + o->count[4] > 2 * o->capacity)
        order_trim(o, 4, o->count[4] - 1);
}

static void arc_use(struct twin_order *o, uint32_t n)
{
    order_put(o, 2, n);
}

static void arc(struct twin_order *o)
{
    bool b2 = o->newcomer != TWIN_NONE && o->b[o->newcomer].list == 4;
    double t1 = (double)o->count[1];
    bool recent = o->count[1] && (t1 > o->target || (b2 && t1 == o->target) || !o->count[2]);
    uint32_t n = order_either(order_oldest(o, recent ? 1 : 2, 0, true),
                              order_oldest(o, recent ? 2 : 1, 0, true));

    if (n != TWIN_NONE)
        order_leave(o, n, (uint8_t)(o->b[n].list + 2));
}

/* ---- wtinylfu: 1 window, 2 probation, 3 protected ---- */

static void wtinylfu_start(struct twin_order *o)
{
    o->small = order_at_least_one(order_part(o->capacity, order_option(o, "window", 0.01)));
}

static void wtinylfu_ask(struct twin_order *o, uint32_t n)
{
    o->b[n].sketch += o->b[n].sketch < 15;
    o->counted++;
}

static void wtinylfu_arrive(struct twin_order *o, const struct req *r)
{
    (void)r;
    if ((double)o->counted < order_option(o, "sample", 10) * (double)o->capacity)
        return;
    o->counted /= 2;
    for (uint32_t n = 0; n < o->tw->n_nodes; n++)
        o->b[n].sketch /= 2;
}

static void wtinylfu_use(struct twin_order *o, uint32_t n)
{
    order_put(o, o->b[n].list == 1 ? 1 : 3, n);
}

static void wtinylfu_told(struct twin_order *o, uint32_t n, bool counts)
{
    (void)n, (void)counts;
    while (o->count[1] > o->small)
        order_put(o, 2, order_oldest(o, 1, 0, false));
    while (o->count[3] > order_part(o->capacity - o->small, order_option(o, "protected", 0.8)))
        order_put(o, 2, order_oldest(o, 3, 0, false));
}

static void wtinylfu(struct twin_order *o)
{
    uint32_t mine = order_oldest(o, 1, 0, true);
    uint32_t other = order_either(order_oldest(o, 2, 0, true), order_oldest(o, 3, 0, true));

    if (other == TWIN_NONE || mine == TWIN_NONE || o->count[1] < o->small) {
        order_leave(o, order_either(other, mine), 0);
    } else if (o->b[mine].sketch <= o->b[other].sketch) {
        order_leave(o, mine, 0);
    } else {
        order_leave(o, other, 0);
        order_put(o, 2, mine);
    }
}

/* ---- random: key is the place in the table of all blocks ---- */

static void random_start(struct twin_order *o)
{
    o->table = twin_alloc(o->tw->n_nodes, sizeof *o->table);
    o->rng = kvc_rng_stream((uint64_t)order_option(o, "seed", 0), "random");
}

/* It takes the place of the block that left last. */
static void random_come(struct twin_order *o, uint32_t n, uint8_t was)
{
    uint32_t last = (uint32_t)o->size - 1, at = o->hole < last ? o->hole : last;

    (void)was;
    o->hole = TWIN_NONE;
    if (at < last) {
        o->table[last] = o->table[at];
        o->b[o->table[at]].key = last;
    }
    o->table[at] = n;
    o->b[n].key = at;
    order_put(o, 1, n);
}

static void random_gone(struct twin_order *o, uint32_t n) /* the last takes its place */
{
    uint32_t at = (uint32_t)o->b[n].key;

    o->hole = at;
    o->table[at] = o->table[o->size];
    o->b[o->table[at]].key = at;
}

static void random_one(struct twin_order *o)
{
    uint64_t at = o->size ? kvc_rng_below(&o->rng, o->size) : 0;

    for (uint64_t i = 0; i < o->size; i++, at = (at + 1) % o->size)
        if (order_may(o, o->table[at])) {
            order_leave(o, o->table[at], 0);
            return;
        }
}

/* ---- watermark ---- */

static void batch(struct twin_order *o, uint64_t in_use)
{
    double over = (double)in_use - order_option(o, "high", 0.9) * (double)o->capacity;
    double t = order_option(o, "batch", 0.05) * (double)o->capacity + (over > 0 ? over : 0);
    double exact = (double)o->size * t / (double)o->capacity;
    uint64_t due = (uint64_t)exact, n = o->size;

    due += exact > (double)due + 1e-9;
    due = o->one ? 1 : due < n ? due : n;
    for (uint32_t v; due-- > 0 && (v = order_oldest(o, 1, 0, true)) != TWIN_NONE;)
        order_leave(o, v, 0);
}

static void watermark_rest(struct twin_order *o)
{
    if ((double)o->in_use > order_option(o, "high", 0.9) * (double)o->capacity + 1e-9)
        batch(o, o->in_use);
}

static void watermark(struct twin_order *o)
{
    batch(o, o->capacity); /* where room is short, what is left of it goes to the newcomer */
}

const struct order_rule order_queues[] = {
    {.name = "sieve", .use = order_stay, .again = order_stay, .gone = sieve_gone, .evict = sieve},
    {.name = "s3fifo", .start = s3fifo_start, .come = s3fifo_come, .use = s3fifo_use,
     .again = order_stay, .evict = s3fifo},
    {.name = "twoq", .start = twoq_start, .come = twoq_come, .use = twoq_use, .again = twoq_use,
     .evict = twoq},
    {.name = "arc", .ask = arc_ask, .come = arc_come, .use = arc_use, .evict = arc},
    {.name = "wtinylfu", .start = wtinylfu_start, .ask = wtinylfu_ask, .arrive = wtinylfu_arrive,
     .use = wtinylfu_use, .told = wtinylfu_told, .evict = wtinylfu},
    {.name = "random", .start = random_start, .come = random_come, .use = order_stay,
     .again = order_stay, .gone = random_gone, .evict = random_one},
    {.name = "watermark", .rest = watermark_rest, .evict = watermark},
    {.name = NULL},
};
