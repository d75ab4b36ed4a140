/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/placement_search.h"

#include <stdlib.h>

#define UNREACHED (-1.0)

struct states {
    unsigned n, blocks;
    unsigned present[1 << 16]; /* by state: blocks resident anywhere, as bits */
    double best[1 << 16], by_present[1 << SEARCH_BLOCKS];
};

/* A state is a number in base tiers + 1, a digit a block: 0 absent, else the tier from 1. */
static unsigned tier_of(unsigned state, unsigned block, unsigned tiers)
{
    while (block-- > 0)
        state /= tiers + 1;
    return state % (tiers + 1);
}

static bool fits(const struct search *s, unsigned state, unsigned blocks)
{
    for (unsigned t = 1; t <= s->tiers; t++) {
        uint64_t held = 0;
        for (unsigned b = 0; b < blocks; b++)
            held += tier_of(state, b, s->tiers) == t;
        if (held > s->capacity[t - 1])
            return false;
    }
    return true;
}

static double worth(const struct search *s, unsigned state, const struct twin_row *row)
{
    double sum = 0;
    for (uint32_t i = 0; i < row->n; i++) {
        unsigned tier = tier_of(state, (unsigned)row->ids[i] - 1, s->tiers);
        if (tier == 0)
            break;
        sum += s->tier_worth[tier - 1] * (s->depth_worth ? s->depth_worth[i] : 1);
    }
    return sum;
}

static void serve(struct states *st, const struct search *s, const struct twin_row *row)
{
    unsigned path = 0;
    for (uint32_t i = 0; i < row->n; i++)
        path |= 1u << (row->ids[i] - 1);
    for (unsigned p = 0; p < 1u << st->blocks; p++)
        st->by_present[p] = UNREACHED;
    for (unsigned i = 0; i < st->n; i++) {
        if (st->best[i] < 0)
            continue;
        double total = st->best[i] + worth(s, i, row);
        unsigned may_hold = st->present[i] | path;
        if (total > st->by_present[may_hold])
            st->by_present[may_hold] = total;
    }
    for (unsigned i = 0; i < st->n; i++) {
        st->best[i] = UNREACHED;
        if (!fits(s, i, st->blocks))
            continue;
        for (unsigned p = 0; p < 1u << st->blocks; p++)
            if ((st->present[i] & ~p) == 0 && st->by_present[p] > st->best[i])
                st->best[i] = st->by_present[p];
    }
}

double search_best(const struct twin_rows *rows, const struct search *s)
{
    struct states *st = calloc(1, sizeof(*st));
    double best = UNREACHED;
    if (!st)
        abort();
    for (uint32_t r = 0; r < rows->n; r++)
        for (uint32_t i = 0; i < rows->row[r].n; i++)
            if (rows->row[r].ids[i] > st->blocks)
                st->blocks = (unsigned)rows->row[r].ids[i];
    st->n = 1;
    for (unsigned b = 0; b < st->blocks && st->n < 1 << 16; b++)
        st->n *= s->tiers + 1;
    if (st->blocks <= SEARCH_BLOCKS && st->n < 1 << 16) {
        for (unsigned i = 0; i < st->n; i++) {
            st->best[i] = i ? UNREACHED : 0;
            for (unsigned b = 0; b < st->blocks; b++)
                st->present[i] |= (unsigned)(tier_of(i, b, s->tiers) > 0) << b;
        }
        for (uint32_t r = 0; r < rows->n; r++)
            serve(st, s, &rows->row[r]);
        for (unsigned i = 0; i < st->n; i++)
            best = st->best[i] > best ? st->best[i] : best;
    }
    free(st);
    return best;
}
