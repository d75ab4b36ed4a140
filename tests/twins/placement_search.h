/* SPDX-License-Identifier: Apache-2.0
 * The best placement of blocks in tiers by looking at every one: for tiny traces only. Between two
 * requests the blocks of the one that came last go to any tier; the others stay, go to a slower
 * one, or are dropped. */
#ifndef KVC_TESTS_PLACEMENT_SEARCH_H
#define KVC_TESTS_PLACEMENT_SEARCH_H

#include "tests/twins/ceiling_twin.h"

#define SEARCH_TIERS 3
#define SEARCH_BLOCKS 8 /* ids 1 to so many */

struct search {
    unsigned tiers;
    uint64_t capacity[SEARCH_TIERS];   /* blocks */
    double tier_worth[SEARCH_TIERS];   /* of a hit there .. */
    const double *depth_worth;         /* .. times this, by its place in the prompt; NULL: 1 */
};

/* The most that leading runs of resident blocks can be worth in all; rows without partial tails in
 * mind: every block is one. Negative: too many blocks to search. */
double search_best(const struct twin_rows *rows, const struct search *search);

#endif
