/* SPDX-License-Identifier: Apache-2.0
 * The intervals of fitting block sizes against trying every size. */
#include "base/rng.h"
#include "traces/import/block_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MOST 600

static bool fits(uint32_t b, uint32_t tokens, size_t ids, int how)
{
    size_t full = tokens / b, up = full + (tokens % b != 0);
    return how == 0 ? ids == up : how == 1 ? ids == full : ids == up || ids == full;
}

static void intervals_hold_what_fits_every_row(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        uint64_t rng = seed;
        uint32_t tokens[4], b = 1 + (uint32_t)kvc_rng_below(&rng, 200);
        size_t ids[4], n = 1 + (size_t)kvc_rng_below(&rng, 4);
        struct kvc_block_fit fit;
        kvc_block_fit_init(&fit);
        for (size_t i = 0; i < n; i++) {
            tokens[i] = 1 + (uint32_t)kvc_rng_below(&rng, 500);
            ids[i] = tokens[i] / b + (tokens[i] % b && kvc_rng_below(&rng, 2));
            if (!ids[i] || !kvc_rng_below(&rng, 20))
                ids[i] = 1 + (size_t)kvc_rng_below(&rng, 40);
            kvc_block_fit_add(&fit, tokens[i], ids[i]);
        }
        const struct kvc_block_range *range[] = { &fit.ceil, &fit.floor, &fit.either };
        for (uint32_t x = 1; x <= MOST; x++) {
            for (int how = 0; how < 3; how++) {
                bool all = true;
                for (size_t i = 0; i < n; i++)
                    all = all && fits(x, tokens[i], ids[i], how);
                assert_int_equal(all, range[how]->low <= x && x <= range[how]->high);
            }
            for (size_t i = 0; i < n; i++)
                assert_int_equal(kvc_block_fits_row(x, tokens[i], ids[i]),
                                 fits(x, tokens[i], ids[i], 2));
        }
    }
}

static void one_size_is_chosen_only_when_it_stands_out(void **state)
{
    (void)state;
    static const struct {
        uint64_t low, high;
        uint32_t chosen;
    } cases[] = { { 55, 64, 64 }, { 48, 48, 48 }, { 33, 63, 0 }, { 16, 64, 0 }, { 9, 31, 16 },
                  { 500, 1000, 512 }, { 513, 513, 513 }, { 1, 1, 1 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kvc_block_fit fit = { .ceil = { cases[i].low, cases[i].high } };
        struct kvc_block_range range;
        assert_int_equal(kvc_block_fit_choose(&fit, &range), cases[i].chosen);
        assert_int_equal(range.low, cases[i].low);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_what_fits_every_row),
        cmocka_unit_test(one_size_is_chosen_only_when_it_stands_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
