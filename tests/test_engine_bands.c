/* SPDX-License-Identifier: Apache-2.0
 * Bands of engine times: what counts, what is left out, and what share of new rows they hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "studies/engine/bands.h"

#define MOST 4000

static struct kvc_band_row rows[MOST];

static struct kvc_band_row row(uint64_t configuration, double share)
{
    return (struct kvc_band_row){share, share, configuration, "h100_sxm", 0};
}

/* Of 0.91, 0.92 .. 1.10 eighteen lie at or above 0.93 and as many at or below 1.08, however many
 * rows one of them has. */
static void a_configuration_counts_once(void **state)
{
    struct kvc_engine_band b;

    (void)state;
    for (size_t many = 1; many <= 1000; many *= 1000) {
        size_t n = 0;
        for (uint64_t c = 0; c < 20; c++)
            for (size_t i = 0; i < (c == 13 ? many : 1); i++)
                rows[n++] = row(c, 0.91 + 0.01 * (double)c);
        assert_int_equal(kvc_engine_band_fit(&b, rows, n, NULL), KVC_OK);
        assert_true(fabs(b.band.tpot_low - 0.93) < 1e-9 && fabs(b.band.ttft_high - 1.08) < 1e-9);
        assert_int_equal(b.all.configurations, 20);
        assert_int_equal(b.all.rows, n);
    }
}

static double normal(uint64_t *rng)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += kvc_rng_unit(rng);
    return sum;
}

/* Configurations drawn alike, rows of one much alike: four fifths of new ones lie within, and
 * holding each against the others says so. */
static void new_configurations_lie_within(void **state)
{
    double within = 0, said = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "bands");
        struct kvc_engine_band b;
        size_t n = 0, hit = 0;
        for (uint64_t c = 0; c < 60; c++) {
            double of_all = 0.1 * normal(&rng);
            for (size_t i = 1 + kvc_rng_below(&rng, 8) * (c % 2); i-- > 0;)
                rows[n++] = row(c, exp(of_all + 0.02 * normal(&rng)));
        }
        assert_int_equal(kvc_engine_band_fit(&b, rows, n, NULL), KVC_OK);
        for (size_t i = 0; i < 1000; i++) {
            double share = exp(0.1 * normal(&rng) + 0.02 * normal(&rng));
            hit += share >= b.band.tpot_low && share <= b.band.tpot_high;
        }
        within += (double)hit / 1000 / 40;
        said += b.all.tpot / 40;
    }
    if (fabs(within - 0.8) > 0.025 || fabs(said - within) > 0.03)
        fail_msg("%.3f of new rows lie within, %.3f of rows held against the others", within, said);
}

/* Rows with a flag count where five configurations carry it, else they are left out; times that
 * lie far outside the tables never count. */
static void flags_of_few_are_left_out(void **state)
{
    struct kvc_engine_band b;

    (void)state;
    for (uint64_t carry = KVC_BAND_LEAST - 1; carry <= KVC_BAND_LEAST; carry++) {
        size_t n = 0;
        for (uint64_t c = 0; c < 20; c++)
            rows[n++] = row(c, 1 + 0.001 * (double)c);
        for (uint64_t c = 0; c < carry; c++) {
            rows[n] = row(c, 2);
            rows[n++].flags = KVC_STEP_OUTSIDE;
            rows[n] = row(c, 3);
            rows[n].gpu = "b300_sxm";
            rows[n++].flags = KVC_STEP_BORROWED;
            rows[n] = row(c, 9);
            rows[n++].flags = KVC_STEP_OUTSIDE | KVC_STEP_FAR;
        }
        assert_int_equal(kvc_engine_band_fit(&b, rows, n, NULL), KVC_OK);
        bool counts = carry >= KVC_BAND_LEAST;
        assert_int_equal(b.flags, counts ? KVC_STEP_OUTSIDE : 0);
        assert_int_equal(b.n_gpus, counts);
        assert_int_equal(b.flagged[1].rows, counts ? carry : 0);
        assert_true(counts ? b.band.tpot_high >= 2 && b.band.tpot_high <= 3
                           : b.band.tpot_high < 1.02);
    }
    assert_string_equal(b.gpu[0], "b300_sxm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_counts_once),
        cmocka_unit_test(new_configurations_lie_within),
        cmocka_unit_test(flags_of_few_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
