/* SPDX-License-Identifier: Apache-2.0
 * A known law is found although every tenth measurement is far off, or in steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "models/robust_fit.h"

#define N 100

/* y = 3 + 0.5 i + 0 i^2 */
static bool line(void *user, const double *x, double *residual)
{
    const double *y = user;

    for (size_t i = 0; i < N; i++)
        residual[i] = log((x[0] + x[1] * (double)i + x[2] * (double)(i * i)) / y[i]);
    return true;
}

static void a_law_is_found_among_outliers(void **state)
{
    double y[N], x[3] = {1, 1, 1e-2}, error[3];

    (void)state;
    for (size_t i = 0; i < N; i++)
        y[i] = (3 + 0.5 * (double)i) * (i % 10 == 9 ? 20 : 1);
    assert_int_equal(kvc_robust_fit(line, y, NULL, N, 0.15, x, error, 3, NULL), KVC_OK);
    assert_true(fabs(x[0] - 3) < 0.1);
    assert_true(fabs(x[1] - 0.5) < 0.02);
    assert_true(x[2] >= 0 && x[2] < 2e-4);
    assert_true(error[0] > 0 && error[1] > 0);
}

#define STEP 2.0

/* y = 3 + 0.5 i, rounded up to steps: nearly everywhere it has no slope. */
static bool stairs(void *user, const double *x, double *residual)
{
    const double *y = user;

    for (size_t i = 0; i < N; i++)
        residual[i] = log(STEP * ceil((x[0] + x[1] * (double)i) / STEP) / y[i]);
    return true;
}

static double stairs_cost(double *y, const double *x, double scale)
{
    double r[N], sum = 0;

    stairs(y, x, r);
    for (size_t i = 0; i < N; i++)
        sum += log1p(r[i] / scale * (r[i] / scale));
    return sum;
}

/* By slopes alone these starts end at 1.3 to 1.4 times the cost of the law itself. */
static void a_law_in_steps_is_found(void **state)
{
    static const double start[][2] = {{10, 2}, {6, 0.25}, {1, 0.1}, {30, 0.3}}, law[] = {3, 0.5};
    double y[N];

    (void)state;
    for (size_t i = 0; i < N; i++)
        y[i] = STEP * ceil((3 + 0.5 * (double)i) / STEP) * (i % 10 == 9 ? 20 : 1);
    for (size_t s = 0; s < 4; s++) {
        double x[] = {start[s][0], start[s][1]}, error[2];
        assert_int_equal(kvc_robust_fit(stairs, y, NULL, N, 0.15, x, error, 2, NULL), KVC_OK);
        assert_true(stairs_cost(y, x, 0.15) < 1.1 * stairs_cost(y, law, 0.15));
        assert_true(fabs(x[1] - 0.5) < 0.02);
    }
}

/* Half say 1, half say 2, and what they are worth decides between them. */
static bool levels(void *user, const double *x, double *residual)
{
    (void)user;
    for (size_t i = 0; i < N; i++)
        residual[i] = (i % 2 ? 2.0 : 1.0) - x[0];
    return true;
}

/* Of residuals far within the scale the weighted mean costs least: a closed form. */
static void what_counts_more_wins(void **state)
{
    double worth[N], error;

    (void)state;
    for (int share = 1; share <= 3; share++) {
        double x = 1.2;
        for (size_t i = 0; i < N; i++)
            worth[i] = i % 2 ? 0.5 * share : 2 - 0.5 * share;
        assert_int_equal(kvc_robust_fit(levels, NULL, worth, N, 100, &x, &error, 1, NULL), KVC_OK);
        assert_true(fabs(x - (1 + 0.25 * share)) < 0.01);
    }
}

static bool refuses(void *user, const double *x, double *residual)
{
    (void)user;
    (void)x;
    (void)residual;
    return false;
}

static void what_cannot_be_fitted_is_refused(void **state)
{
    double x[3] = {1, 1, 1}, error[3];

    (void)state;
    assert_int_equal(kvc_robust_fit(line, x, NULL, 3, 0.15, x, error, 3, NULL), KVC_ERR_INPUT);
    assert_int_equal(kvc_robust_fit(refuses, NULL, NULL, 10, 0.15, x, error, 3, NULL),
                     KVC_ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_law_is_found_among_outliers),
        cmocka_unit_test(a_law_in_steps_is_found),
        cmocka_unit_test(what_counts_more_wins),
        cmocka_unit_test(what_cannot_be_fitted_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
