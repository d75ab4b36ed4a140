/* SPDX-License-Identifier: Apache-2.0 */
#include "models/measured_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define STEP 0.05
#define PRIOR 1e-3        /* pull towards the start, so that a fit of as many rows has an answer */
#define TOLD 0.5          /* largest error, as a share of the constant or its base */
#define LEAST_SCATTER 5e-3 /* nobody measures times better than that */
#define MIX 0.3           /* part in the direction least seen */

/* A fit of the constants that are told to the rows that are not left out. */
struct part {
    struct kvc_measured_fit *f;
    const bool *left_out; /* NULL: none is */
    double *all;          /* [f->n] */
    double x[KVC_ROBUST_MOST];
    size_t index[KVC_ROBUST_MOST], n_index, n_rows;
};

static bool part_residuals(void *user, const double *x, double *residual)
{
    struct part *p = user;
    size_t at = 0;

    for (size_t i = 0; i < p->n_index; i++)
        p->x[p->index[i]] = x[i];
    if (!p->f->residuals(p->f->user, p->x, p->all))
        return false;
    for (size_t i = 0; i < p->f->n; i++)
        if (!p->left_out || !p->left_out[i])
            residual[at++] = p->all[i];
    for (size_t i = 0; i < p->n_index; i++)
        residual[at++] = PRIOR * log((x[i] + 1e-12) / p->f->constant[p->index[i]].start);
    return true;
}

/* x: in and out, all constants. */
static enum kvc_status fit_part(struct part *p, double *x, struct kvc_error *err)
{
    double some[KVC_ROBUST_MOST], error[KVC_ROBUST_MOST];
    struct kvc_measured_fit *f = p->f;

    p->n_index = 0;
    for (size_t i = 0; i < f->n_constants; i++) {
        p->x[i] = x[i];
        if (f->constant[i].told) {
            some[p->n_index] = x[i] > 0 ? x[i] : f->constant[i].start;
            p->index[p->n_index++] = i;
        }
    }
    if (!p->n_index || !p->n_rows)
        return KVC_OK;
    enum kvc_status status = kvc_robust_fit(part_residuals, p, p->n_rows + p->n_index, f->scale,
                                            some, error, p->n_index, err);
    for (size_t i = 0; status == KVC_OK && i < p->n_index; i++)
        x[p->index[i]] = some[i];
    return status;
}

static double unit(const struct kvc_fit_constant *c, double x)
{
    return fmax(x, fmax(c->base, c->start * 1e-3));
}

/* Columns: what each row moves by when a constant moves by its unit. Rows below n are 0. */
static bool jacobian(struct part *p, const double *x, gsl_matrix *j)
{
    const struct kvc_measured_fit *f = p->f;
    double moved[KVC_ROBUST_MOST];

    gsl_matrix_set_zero(j);
    for (size_t c = 0; c < p->n_index; c++) {
        size_t k = p->index[c];
        double step = (f->step > 0 ? f->step : STEP) * unit(&f->constant[k], x[k]);
        double below = fmin(step, x[k]);
        for (int side = 0; side < 2; side++) {
            memcpy(moved, x, sizeof moved);
            moved[k] += side ? step : -below;
            if (!f->residuals(f->user, moved, p->all))
                return false;
            for (size_t i = 0; i < f->n; i++)
                *gsl_matrix_ptr(j, i, c) += (side ? 1 : -1) * p->all[i];
        }
        for (size_t i = 0; i < f->n; i++)
            *gsl_matrix_ptr(j, i, c) *= unit(&f->constant[k], x[k]) / (step + below);
    }
    return true;
}

static double median_of(double *v, size_t n)
{
    gsl_sort(v, 1, n);
    return n ? gsl_stats_median_from_sorted_data(v, 1, n) : NAN;
}

static void look_at(struct kvc_measured_fit *f, const double *residual, double *scratch)
{
    f->outliers = 0;
    f->worst = 0;
    for (size_t i = 0; i < f->n; i++) {
        scratch[i] = fabs(residual[i]);
        f->outliers += scratch[i] > 3 * f->scale;
        f->worst = fmax(f->worst, fabs(expm1(residual[i])));
    }
    f->scatter = fmax(1.4826 * median_of(scratch, f->n), LEAST_SCATTER);
    f->median = expm1(median_of(scratch, f->n));
}

/* Errors of the constants from the singular values of what the rows see; the one told least, and
 * what it is mixed with, where its error is too large. false: all are told. */
static bool told_least(struct part *p, const double *x, gsl_matrix *j, gsl_matrix *v,
                       gsl_vector *s, gsl_vector *work)
{
    struct kvc_measured_fit *f = p->f;
    size_t worst = 0, last = p->n_index - 1;
    double largest = 0;
    uint32_t with = 0;

    gsl_linalg_SV_decomp(j, v, s, work);
    for (size_t c = 0; c < p->n_index; c++) {
        double sum = 0;
        for (size_t k = 0; k < p->n_index; k++) {
            double part = gsl_matrix_get(v, c, k) / fmax(gsl_vector_get(s, k), 1e-12);
            sum += part * part;
        }
        double share = f->scatter * sqrt(sum);
        f->constant[p->index[c]].error = share * unit(&f->constant[p->index[c]], x[p->index[c]]);
        if (share > largest) {
            largest = share;
            worst = c;
        }
        if (fabs(gsl_matrix_get(v, c, last)) > MIX)
            with |= 1u << p->index[c];
    }
    if (largest <= TOLD)
        return false;
    struct kvc_fit_constant *c = &f->constant[p->index[worst]];
    c->told = false;
    c->error = NAN;
    c->with = with | 1u << p->index[worst];
    return true;
}

/* Fits, and leaves the constants one by one that the rows don't tell. */
static enum kvc_status fit_told(struct part *p, double *x, double *scratch, struct kvc_error *err)
{
    struct kvc_measured_fit *f = p->f;
    bool again = true;

    while (again) {
        enum kvc_status status = fit_part(p, x, err);
        if (status != KVC_OK)
            return status;
        if (!f->residuals(f->user, x, p->all))
            return kvc_fail(err, KVC_ERR_INPUT, "no prediction for the measurements");
        look_at(f, p->all, scratch);
        if (!p->n_index)
            return KVC_OK;
        size_t rows = f->n > p->n_index ? f->n : p->n_index;
        gsl_matrix *j = gsl_matrix_alloc(rows, p->n_index);
        gsl_matrix *v = gsl_matrix_alloc(p->n_index, p->n_index);
        gsl_vector *s = gsl_vector_alloc(p->n_index), *work = gsl_vector_alloc(p->n_index);
        if (!j || !v || !s || !work)
            status = kvc_fail_nomem(err);
        else if (!jacobian(p, x, j))
            status = kvc_fail(err, KVC_ERR_INPUT, "no prediction for the measurements");
        else
            again = told_least(p, x, j, v, s, work);
        gsl_matrix_free(j);
        gsl_matrix_free(v);
        gsl_vector_free(s);
        gsl_vector_free(work);
        if (status != KVC_OK)
            return status;
        for (size_t i = 0; i < f->n_constants; i++)
            if (!f->constant[i].told)
                x[i] = f->constant[i].base;
    }
    return KVC_OK;
}

/* Rows left out in turn, each predicted from the others. */
static enum kvc_status cross_validate(struct part *p, const double *x, double *error,
                                      bool *left_out, struct kvc_error *err)
{
    struct kvc_measured_fit *f = p->f;
    size_t folds = f->folds ? f->folds : f->n < 20 ? f->n : 20, tested = 0;
    enum kvc_status status = KVC_OK;

    f->held_out_median = f->held_out_worst = NAN;
    if (f->n <= p->n_index || folds < 2 || !p->n_index)
        return KVC_OK;
    p->left_out = left_out;
    for (size_t fold = 0; fold < folds && fold < f->n && status == KVC_OK; fold++) {
        double y[KVC_ROBUST_MOST];
        memcpy(y, x, sizeof y);
        p->n_rows = 0;
        for (size_t i = 0; i < f->n; i++) {
            left_out[i] = i % folds == fold;
            p->n_rows += !left_out[i];
        }
        status = fit_part(p, y, err);
        if (status == KVC_OK && !f->residuals(f->user, y, p->all))
            status = kvc_fail(err, KVC_ERR_INPUT, "no prediction for the measurements");
        for (size_t i = fold; i < f->n && status == KVC_OK; i += folds)
            error[tested++] = fabs(expm1(p->all[i]));
    }
    p->left_out = NULL;
    p->n_rows = f->n;
    if (status == KVC_OK) {
        f->held_out_median = median_of(error, tested);
        f->held_out_worst = error[tested - 1];
    }
    return status;
}

enum kvc_status kvc_measured_fit_run(struct kvc_measured_fit *f, struct kvc_error *err)
{
    struct part p = {.f = f, .n_rows = f->n};
    double x[KVC_ROBUST_MOST] = {0};
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    double *scratch = kvc_malloc(f->n + 1, sizeof *scratch);
    bool *left_out = kvc_calloc(f->n + 1, sizeof *left_out);
    enum kvc_status status = KVC_OK;

    p.all = kvc_malloc(f->n + 1, sizeof *p.all);
    if (!scratch || !left_out || !p.all)
        status = kvc_fail_nomem(err);
    else if (!f->n)
        status = kvc_fail(err, KVC_ERR_INPUT, "no measurement to fit to");
    for (size_t i = 0; i < f->n_constants; i++) {
        f->constant[i].told = true;
        f->constant[i].with = 0;
        f->constant[i].error = NAN;
        x[i] = f->constant[i].start;
    }
    if (status == KVC_OK)
        status = fit_told(&p, x, scratch, err);
    if (status == KVC_OK)
        status = cross_validate(&p, x, scratch, left_out, err);
    for (size_t i = 0; i < f->n_constants; i++)
        f->constant[i].value = x[i];
    kvc_free(p.all);
    kvc_free(scratch);
    kvc_free(left_out);
    gsl_set_error_handler(handler);
    return status;
}

void kvc_measured_fit_words(const struct kvc_measured_fit *f, const char *indent,
                            struct kvc_text *out)
{
    for (size_t i = 0; i < f->n_constants; i++) {
        const struct kvc_fit_constant *c = &f->constant[i];
        uint32_t others = c->with & ~(1u << i);
        if (c->told)
            continue;
        kvc_text_addf(out, "%s%s: not told by these measurements, the base's is kept", indent,
                      c->name);
        kvc_text_add(out, others ? "; they see only a mix of it and " : ": they hardly depend on it");
        for (size_t k = 0, listed = 0; k < f->n_constants; k++)
            if (others >> k & 1)
                kvc_text_addf(out, "%s%s", listed++ ? ", " : "", f->constant[k].name);
        kvc_text_add(out, "\n");
    }
}
