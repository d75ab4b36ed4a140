/* SPDX-License-Identifier: Apache-2.0
 * The slow replay's ends of decode steps, and what an engine that has just started compiles, as
 * "How long a step takes" of docs/replay.md says: each use of kernels in a list. */
#include "tests/twins/twin_internal.h"

static struct twin_use_of_kernels use_of(const struct twin *tw, uint64_t tokens)
{
    static const uint32_t sizes[] = {4096, 3072, 2048, 1536, 1024, 512, 256, 128, 96,
                                     64,   48,   32,   24,   16,   8,   4,   2,   1};
    struct twin_use_of_kernels use = {0};
    uint64_t rows = tokens * tw->setup->compile.top_k, least = UINT64_MAX;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t away = sizes[i] > tokens ? sizes[i] - tokens : tokens - sizes[i];

        if (away <= least) { /* of two as near the smaller, which comes later */
            least = away;
            use.size = sizes[i];
        }
    }
    use.rows = rows % 16 == 0;
    use.padded = (rows + tw->setup->compile.experts * 15ull) % 16 == 0;
    return use;
}

static bool known(const struct replica *rep, struct twin_use_of_kernels use)
{
    for (uint32_t i = 0; i < rep->n_used; i++) {
        const struct twin_use_of_kernels *u = &rep->used[i];

        if (u->size == use.size && u->rows == use.rows && u->padded == use.padded)
            return true;
    }
    return false;
}

static bool remember(struct replica *rep, struct twin_use_of_kernels use)
{
    if (known(rep, use))
        return false;
    rep->used[rep->n_used++] = use;
    return true;
}

void times_start(struct twin *tw, struct replica *rep)
{
    uint32_t most = tw->setup->compile.captured;

    remember(rep, use_of(tw, tw->sc->engine.max_batched_tokens));
    for (uint32_t i = 0; i < 3; i++)
        if (1u << i <= most)
            remember(rep, use_of(tw, 1u << i));
    for (uint32_t n = 8; n <= most; n += n < 256 ? 8 : 16)
        remember(rep, use_of(tw, n));
}

uint64_t times_compile(struct twin *tw, struct replica *rep, uint64_t tokens)
{
    if (!tw->setup->compile.ns || tokens <= tw->setup->compile.captured)
        return 0;
    return remember(rep, use_of(tw, tokens)) ? tw->setup->compile.ns : 0;
}

static bool same_members(const struct replica *rep)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < rep->running.n; i++) {
        if (rep->running.at[i]->sched == 0)
            continue;
        if (k == rep->members.n || rep->members.at[k] != rep->running.at[i])
            return false;
        k++;
    }
    return k == rep->members.n;
}

uint64_t times_decode(struct twin *tw, struct replica *rep, uint32_t n, uint64_t context,
                      uint64_t *host)
{
    __extension__ typedef __int128 i128;

    if (!rep->stretch || !same_members(rep) || context > rep->cost.context_end) {
        rep->t0 = tw->now + times_compile(tw, rep, n);
        rep->sum = 0;
        tw->setup->clock.decode(tw->setup->clock.user, n, context, &rep->cost);
        rep->members.n = 0;
        for (uint32_t i = 0; i < rep->running.n; i++)
            if (rep->running.at[i]->sched)
                reqs_push(&rep->members, rep->running.at[i]);
    }
    rep->stretch = true;
    rep->sum += (i128)rep->cost.c0_q16 * ((i128)1 << 24) + (i128)rep->cost.c1_q40 * (i128)context;
    *host = rep->cost.host_ns;
    return rep->t0 + (uint64_t)((rep->sum + ((i128)1 << 39)) >> 40);
}
