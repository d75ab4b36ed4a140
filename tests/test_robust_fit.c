/* SPDX-License-Identifier: Apache-2.0
 * A known law is found although every tenth measurement is far off. */
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
    assert_int_equal(kvc_robust_fit(line, y, N, 0.15, x, error, 3, NULL), KVC_OK);
    assert_true(fabs(x[0] - 3) < 0.1);
    assert_true(fabs(x[1] - 0.5) < 0.02);
    assert_true(x[2] >= 0 && x[2] < 2e-4);
    assert_true(error[0] > 0 && error[1] > 0);
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
    assert_int_equal(kvc_robust_fit(line, x, 3, 0.15, x, error, 3, NULL), KVC_ERR_INPUT);
    assert_int_equal(kvc_robust_fit(refuses, NULL, 10, 0.15, x, error, 3, NULL), KVC_ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_law_is_found_among_outliers),
        cmocka_unit_test(what_cannot_be_fitted_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
