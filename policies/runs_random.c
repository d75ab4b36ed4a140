/* SPDX-License-Identifier: Apache-2.0
 * random: any of the resident blocks goes, each as likely. They are counted segment by segment and
 * root to leaf, which makes a draw of the seeded stream one block; a Fenwick tree over the segments
 * finds it. Victims are single blocks, so segments fall into many runs. */
#include "policies/runs_internal.h"

#include "base/alloc.h"
#include "base/rng.h"

static const struct kvc_policy_option options[] = {
    {"seed", KVC_OPTION_COUNT, "0", 0, 0x1p53, "of the draws"},
};

static bool start(struct kvc_runs *c)
{
    c->rng = kvc_rng_stream(c->option[0].count, "random");
    c->tree = kvc_calloc((size_t)c->n_segments + 1, sizeof(*c->tree));
    return c->tree != NULL;
}

static void count(struct kvc_runs *c, uint32_t seg, uint64_t n)
{
    for (uint64_t i = (uint64_t)seg + 1; i <= c->n_segments; i += i & -i)
        c->tree[i] += n;
}

/* Forgets the block with so many resident ones before it. */
static void forget(struct kvc_runs *c, uint64_t before)
{
    uint64_t at = 0, step = 1, behind = 0;
    while (2 * step <= c->n_segments)
        step *= 2;
    for (; step; step /= 2)
        if (at + step <= c->n_segments && c->tree[at + step] <= before) {
            at += step;
            before -= c->tree[at];
        }
    uint32_t seg = (uint32_t)at, r = c->deepest[seg];
    for (uint32_t i = r; i != KVC_RUN_NONE; i = c->run[i].shallower)
        behind += kvc_run_blocks(c, i);
    for (behind -= before + 1; behind >= kvc_run_blocks(c, r); r = c->run[r].shallower)
        behind -= kvc_run_blocks(c, r);
    uint32_t lo = c->run[r].lo, block = c->run[r].hi - 1 - (uint32_t)behind;
    kvc_run_left(c, seg, block, block + 1);
    if (kvc_run_blocks(c, r) == 1)
        kvc_run_free(c, r);
    else if (block == lo)
        c->run[r].lo++;
    else if (behind == 0)
        c->run[r].hi--;
    else {
        c->run[r].lo = block + 1;
        kvc_run_new(c, seg, lo, block);
    }
    count(c, seg, UINT64_MAX);
    c->size--;
}

/* Joins the next deeper run. */
static void hit(struct kvc_runs *c, uint32_t r)
{
    uint32_t n = kvc_run_at(c, c->run[r].seg, c->run[r].hi);
    if (n == KVC_RUN_NONE)
        return;
    c->run[n].lo = c->run[r].lo;
    kvc_run_free(c, r);
}

static uint32_t miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t n = 1, deeper;
    (void)ghost;
    if (c->size < c->capacity)
        n = kvc_least(hi - lo, c->capacity - c->size);
    else
        forget(c, kvc_rng_below(&c->rng, c->size));
    c->size += n;
    count(c, seg, n);
    deeper = kvc_run_at(c, seg, hi);
    if (deeper != KVC_RUN_NONE)
        c->run[deeper].lo -= n;
    else
        kvc_run_new(c, seg, hi - n, hi);
    return n;
}

const struct kvc_runs_ops kvc_runs_random = {.name = "random", KVC_OPTIONS(options), .start = start, .hit = hit,
                                             .miss = miss};
