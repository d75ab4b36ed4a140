/* SPDX-License-Identifier: Apache-2.0 */
#include "models/robust_fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define ROUNDS 2     /* of weighing */
#define ITERATIONS 4 /* in each */
#define WIDEST 0.2   /* share of a constant that a search moves it by at first .. */
#define NARROWEST 0.03 /* .. and at last */
#define LEAST 0.05   /* of its start: constants below move as if they were as large */

struct fit {
    kvc_residuals_fn fn;
    void *user;
    const double *worth; /* [n] or NULL */
    const double *start;
    double *residual; /* [n]: GSL also hands out columns of a matrix */
    size_t n, n_x;
};

/* x = start z^2 keeps constants from falling below 0. */
static double constant(const struct fit *f, const gsl_vector *z, size_t i)
{
    double v = gsl_vector_get(z, i);

    return f->start[i] * v * v;
}

static int residuals(const gsl_vector *z, void *user, gsl_vector *out)
{
    const struct fit *f = user;
    double x[KVC_ROBUST_MOST];

    for (size_t i = 0; i < f->n_x; i++)
        x[i] = constant(f, z, i);
    if (!f->fn(f->user, x, f->residual))
        return GSL_EFAILED;
    for (size_t i = 0; i < f->n; i++)
        gsl_vector_set(out, i, f->residual[i]);
    return GSL_SUCCESS;
}

static double worth_of(const struct fit *f, size_t i)
{
    return f->worth ? f->worth[i] : 1;
}

/* Weights from the residuals at z. */
static int weigh(const gsl_vector *z, struct fit *f, double scale, gsl_vector *weight)
{
    int status = residuals(z, f, weight);

    for (size_t i = 0; i < f->n; i++) {
        double r = gsl_vector_get(weight, i) / scale;
        gsl_vector_set(weight, i, worth_of(f, i) / (1 + r * r));
    }
    return status;
}

/* Cauchy's, which the weights stand for. */
static double cost_of(struct fit *f, const double *x, double scale)
{
    double sum = 0;

    if (!f->fn(f->user, x, f->residual))
        return INFINITY;
    for (size_t i = 0; i < f->n; i++)
        sum += worth_of(f, i) * log1p(f->residual[i] / scale * (f->residual[i] / scale));
    return sum;
}

/* Takes constant i by so much of itself to where it costs less. */
static bool takes(struct fit *f, double *x, size_t i, double share, double scale, double *cost)
{
    double old = x[i], c;

    x[i] = fmax(0, old + share * fmax(old, LEAST * f->start[i]));
    c = x[i] != old ? cost_of(f, x, scale) : INFINITY;
    if (c < *cost) {
        *cost = c;
        return true;
    }
    x[i] = old;
    return false;
}

/* Residuals that move in jumps lead slopes astray: what they end at is searched around, constant by
 * constant and along what has helped, in ever smaller steps. */
static void polish(struct fit *f, double *x, double scale)
{
    double cost = cost_of(f, x, scale), from[KVC_ROBUST_MOST], on[KVC_ROBUST_MOST];

    for (double share = WIDEST; share > NARROWEST;) {
        bool better = false;
        memcpy(from, x, f->n_x * sizeof *x);
        for (size_t i = 0; i < f->n_x; i++)
            better |= takes(f, x, i, share, scale, &cost) || takes(f, x, i, -share, scale, &cost);
        if (!better) {
            share /= 2;
            continue;
        }
        for (size_t i = 0; i < f->n_x; i++)
            on[i] = fmax(0, 2 * x[i] - from[i]);
        double c = cost_of(f, on, scale);
        if (c < cost) {
            cost = c;
            memcpy(x, on, f->n_x * sizeof *x);
        }
    }
}

static void errors_of(const struct fit *f, gsl_multifit_nlinear_workspace *w, const gsl_vector *z,
                      gsl_matrix *covariance, double *error)
{
    double chi2;
    gsl_vector *r = gsl_multifit_nlinear_residual(w);

    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(w), 0, covariance);
    gsl_blas_ddot(r, r, &chi2);
    for (size_t i = 0; i < f->n_x; i++)
        error[i] = 2 * f->start[i] * fabs(gsl_vector_get(z, i)) *
                   sqrt(gsl_matrix_get(covariance, i, i) * chi2 / (double)(f->n - f->n_x));
}

static int run(struct fit *f, double scale, gsl_multifit_nlinear_workspace *w, gsl_vector *z,
               gsl_vector *weight)
{
    gsl_multifit_nlinear_fdf fdf = {.f = residuals, .n = f->n, .p = f->n_x, .params = f};
    int info, status = GSL_SUCCESS;

    gsl_vector_set_all(z, 1);
    for (size_t round = 0; round < ROUNDS && status == GSL_SUCCESS; round++) {
        status = weigh(z, f, scale, weight);
        if (status == GSL_SUCCESS)
            status = gsl_multifit_nlinear_winit(z, weight, &fdf, w);
        if (status != GSL_SUCCESS)
            break;
        int end = gsl_multifit_nlinear_driver(ITERATIONS, 1e-3, 1e-6, 1e-6, NULL, NULL, &info, w);
        gsl_vector_memcpy(z, gsl_multifit_nlinear_position(w));
        /* out of iterations, or no step makes it better: near enough */
        status = end == GSL_EMAXITER || end == GSL_ENOPROG ? GSL_SUCCESS : end;
    }
    return status;
}

enum kvc_status kvc_robust_fit(kvc_residuals_fn fn, void *user, const double *worth, size_t n,
                               double scale, double *x, double *error, size_t n_x,
                               struct kvc_error *err)
{
    double start[KVC_ROBUST_MOST];

    if (n_x > KVC_ROBUST_MOST || n <= n_x)
        return kvc_fail(err, KVC_ERR_INPUT, "%zu measurements can't tell %zu constants", n, n_x);
    struct fit f = {fn, user, worth, start, kvc_malloc(n, sizeof(double)), n, n_x};
    gsl_multifit_nlinear_parameters p = gsl_multifit_nlinear_default_parameters();

    for (size_t i = 0; i < n_x; i++)
        start[i] = x[i] > 0 ? x[i] : 1;
    p.h_df = 1e-1; /* the closed loop's schedule moves in steps */
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &p, n, n_x);
    gsl_vector *z = gsl_vector_alloc(n_x), *weight = gsl_vector_alloc(n);
    gsl_matrix *covariance = gsl_matrix_alloc(n_x, n_x);
    int status = GSL_ENOMEM;
    if (w && z && weight && covariance && f.residual)
        status = run(&f, scale, w, z, weight);
    if (status == GSL_SUCCESS) {
        for (size_t i = 0; i < n_x; i++)
            x[i] = constant(&f, z, i);
        errors_of(&f, w, z, covariance, error);
        polish(&f, x, scale);
    }
    gsl_multifit_nlinear_free(w);
    gsl_vector_free(z);
    gsl_vector_free(weight);
    gsl_matrix_free(covariance);
    kvc_free(f.residual);
    gsl_set_error_handler(handler);
    return status == GSL_SUCCESS  ? KVC_OK
           : status == GSL_ENOMEM ? kvc_fail_nomem(err)
                                  : kvc_fail(err, KVC_ERR_INPUT, "the fit of %zu constants to %zu "
                                             "measurements failed: %s", n_x, n,
                                             gsl_strerror(status));
}
