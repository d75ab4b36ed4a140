/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/twins/placement_search.h"

#include <stdlib.h>

#define UNREACHED (-1.0)

struct states {
    unsigned n, blocks;
    double best[1 << 16]; /* by state: worth of the hits so far */
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

/* Lets one block go to another tier: any if just touched, else a slower one, or nowhere. */
static void move(struct states *st, const struct search *s, unsigned block, bool touched)
{
    unsigned digit = 1, base = s->tiers + 1;
    while (block-- > 0)
        digit *= base;
    for (unsigned i = 0; i < st->n; i++) {
        if (i / digit % base != 0)
            continue;
        double slower = UNREACHED, any = UNREACHED, *at = &st->best[i];
        for (unsigned t = 0; t < base; t++)
            any = at[t * digit] > any ? at[t * digit] : any;
        for (unsigned t = 1; t < base; t++) {
            slower = at[t * digit] > slower ? at[t * digit] : slower;
            at[t * digit] = touched ? any : slower;
        }
        at[0] = any;
    }
}

static void serve(struct states *st, const struct search *s, const struct twin_row *row)
{
    for (unsigned i = 0; i < st->n; i++)
        if (st->best[i] >= 0)
            st->best[i] += worth(s, i, row);
    for (unsigned b = 0; b < st->blocks; b++) {
        bool touched = false;
        for (uint32_t i = 0; i < row->n; i++)
            touched |= row->ids[i] == b + 1;
        move(st, s, b, touched);
    }
    for (unsigned i = 0; i < st->n; i++)
        if (!fits(s, i, st->blocks))
            st->best[i] = UNREACHED;
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
        for (unsigned i = 0; i < st->n; i++)
            st->best[i] = i ? UNREACHED : 0;
        for (uint32_t r = 0; r < rows->n; r++)
            serve(st, s, &rows->row[r]);
        for (unsigned i = 0; i < st->n; i++)
            best = st->best[i] > best ? st->best[i] : best;
    }
    free(st);
    return best;
}
