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

#define STEP 0.05         /* of a unit, to see what a constant moves */
#define MOST_UNITS 100    /* a constant that shows nothing by then shows nothing */
#define MOST_STEPS 30
#define JUMPY_STEPS 20
#define CLOSE 1e-4       /* moves, in units, that end a fit */
#define PRIOR 1e-3        /* pull towards the start, so that a fit of as many rows has an answer */
#define TOLD 0.5          /* largest error, as a share of the constant or its base */
#define LEAST_SCATTER 5e-3 /* nobody measures times better than that */
#define MIX 0.3           /* part in the direction least seen */

/* A fit of the constants that are told to the rows that are not left out. */
struct part {
    struct kvc_measured_fit *f;
    const bool *left_out; /* NULL: none is */
    double *all, *scratch, *next; /* [f->n] */
    size_t index[KVC_ROBUST_MOST], n_index, n_rows;
    double step[KVC_ROBUST_MOST]; /* that shows what a constant does; 0: not known yet */
};

static double median_of(double *v, size_t n)
{
    gsl_sort(v, 1, n);
    return n ? gsl_stats_median_from_sorted_data(v, 1, n) : NAN;
}

static double unit(const struct kvc_fit_constant *c, double x)
{
    return fmax(x, fmax(c->base, c->start * 1e-3));
}

static bool counts(const struct part *p, size_t row)
{
    return !p->left_out || !p->left_out[row];
}

/* How far a constant must move to be seen above what jumps: until the rows move by f->effect. */
static bool find_step(struct part *p, const double *x, size_t k)
{
    const struct kvc_measured_fit *f = p->f;
    double moved[KVC_ROBUST_MOST], most = MOST_UNITS * unit(&f->constant[k], x[k]);

    memcpy(moved, x, sizeof moved);
    if (!(p->step[k] > 0))
        p->step[k] = STEP * unit(&f->constant[k], x[k]);
    for (;;) {
        moved[k] = x[k] + p->step[k];
        if (!f->residuals(f->user, moved, p->next))
            return false;
        for (size_t i = 0; i < f->n; i++)
            p->scratch[i] = fabs(p->next[i] - p->all[i]);
        double effect = median_of(p->scratch, f->n);
        if (effect >= f->effect || p->step[k] >= most)
            return true;
        p->step[k] *= effect > 0 ? fmin(2 * f->effect / effect, 8) : 8;
    }
}

/* Columns: what each row moves by when a constant moves by its unit, from p->all at x. Rows below n
 * are 0. */
static bool jacobian(struct part *p, const double *x, gsl_matrix *j)
{
    const struct kvc_measured_fit *f = p->f;

    gsl_matrix_set_zero(j);
    for (size_t c = 0; c < p->n_index; c++) {
        size_t k = p->index[c];
        if (f->effect <= 0)
            p->step[k] = STEP * unit(&f->constant[k], x[k]);
        if (!find_step(p, x, k))
            return false;
        double units = p->step[k] / unit(&f->constant[k], x[k]);
        for (size_t i = 0; i < f->n; i++)
            gsl_matrix_set(j, i, c, (p->next[i] - p->all[i]) / units);
    }
    return true;
}

/* Cauchy's: far rows cost little more than near ones. */
static double cost_of(const struct part *p, const double *residual, const double *x, double scale)
{
    double sum = 0;

    for (size_t i = 0; i < p->f->n; i++)
        if (counts(p, i))
            sum += log1p(residual[i] / scale * (residual[i] / scale));
    for (size_t i = 0; i < p->n_index; i++) {
        const struct kvc_fit_constant *c = &p->f->constant[p->index[i]];
        double off = (x[p->index[i]] - c->start) / unit(c, c->start);
        sum += PRIOR * PRIOR * off * off;
    }
    return sum;
}

/* What the nearer half of the rows lies within: rows far beyond it count little. */
static double scale_at(struct part *p, const double *residual)
{
    size_t n = 0;

    for (size_t i = 0; i < p->f->n; i++)
        if (counts(p, i))
            p->scratch[n++] = fabs(residual[i]);
    double sigma = 1.4826 * median_of(p->scratch, n);
    return p->f->effect > 0 ? fmax(LEAST_SCATTER, 2 * sigma) : fmax(p->f->scale, sigma);
}

/* Solves the normal equations of the weighted rows: moves, in units. */
static bool solve(struct part *p, const gsl_matrix *j, const double *x, double scale, double *move)
{
    double a_data[KVC_ROBUST_MOST * KVC_ROBUST_MOST] = {0}, b_data[KVC_ROBUST_MOST] = {0};
    size_t m = p->n_index;

    for (size_t i = 0; i < p->f->n; i++) {
        double r = p->all[i], w = counts(p, i) ? 1 / (scale * scale + r * r) : 0;
        for (size_t c = 0; c < m && w > 0; c++) {
            b_data[c] -= w * gsl_matrix_get(j, i, c) * r;
            for (size_t k = 0; k < m; k++)
                a_data[c * m + k] += w * gsl_matrix_get(j, i, c) * gsl_matrix_get(j, i, k);
        }
    }
    for (size_t c = 0; c < m; c++) {
        const struct kvc_fit_constant *k = &p->f->constant[p->index[c]];
        a_data[c * m + c] += PRIOR * PRIOR;
        b_data[c] -= PRIOR * PRIOR * (x[p->index[c]] - k->start) / unit(k, k->start);
    }
    gsl_matrix_view a = gsl_matrix_view_array(a_data, m, m);
    gsl_vector_view b = gsl_vector_view_array(b_data, m), d = gsl_vector_view_array(move, m);
    return gsl_linalg_cholesky_decomp1(&a.matrix) == GSL_SUCCESS &&
           gsl_linalg_cholesky_solve(&a.matrix, &b.vector, &d.vector) == GSL_SUCCESS;
}

static bool moved_by(struct part *p, const double *x, const double *move, double share, double *y)
{
    memcpy(y, x, KVC_ROBUST_MOST * sizeof *y);
    for (size_t c = 0; c < p->n_index; c++) {
        size_t k = p->index[c];
        double d = fmin(fmax(share * move[c], -1), 2) * unit(&p->f->constant[k], x[k]);
        y[k] = fmax(y[k] + d, 0.1 * y[k]);
    }
    return p->f->residuals(p->f->user, y, p->next);
}

/* Takes as much of the move as makes it better. Where rows move in jumps, a move that no part of
 * makes it better is taken all the same: a few more from there may. *ended: it leads nowhere. */
static bool take(struct part *p, double *x, const double *move, double scale, bool *ended)
{
    double cost = cost_of(p, p->all, x, scale), y[KVC_ROBUST_MOST];
    bool better = false;

    for (double share = 1; share > 1.0 / 64 && !better; share /= 2) {
        if (!moved_by(p, x, move, share, y))
            return false;
        better = cost_of(p, p->next, y, scale) < cost;
    }
    *ended = !better && p->f->effect <= 0;
    if (!better && !*ended && !moved_by(p, x, move, 1, y))
        return false;
    if (!*ended) {
        memcpy(x, y, sizeof y);
        memcpy(p->all, p->next, p->f->n * sizeof *p->all);
    }
    return true;
}

static bool is_small(const struct part *p, const double *move)
{
    double most = 0;

    for (size_t c = 0; c < p->n_index; c++)
        most = fmax(most, fabs(move[c]));
    return most < CLOSE;
}

/* One step; *ended: there is no better one. */
static bool step_on(struct part *p, double *x, gsl_matrix *j, bool *ended)
{
    double move[KVC_ROBUST_MOST] = {0}, scale = scale_at(p, p->all);

    if (!jacobian(p, x, j))
        return false;
    if (!solve(p, j, x, scale, move)) {
        *ended = true;
        return true;
    }
    return take(p, x, move, scale, ended) && ((*ended |= is_small(p, move)), true);
}

/* Gauss-Newton steps with rows weighed anew at each. x: in and out, all constants. */
static enum kvc_status fit_part(struct part *p, double *x, struct kvc_error *err)
{
    struct kvc_measured_fit *f = p->f;
    double best[KVC_ROBUST_MOST], best_scale;
    bool ended = false, fine;

    p->n_index = 0;
    for (size_t i = 0; i < f->n_constants; i++)
        if (f->constant[i].told)
            p->index[p->n_index++] = i;
    if (!p->n_index || !p->n_rows)
        return KVC_OK;
    gsl_matrix *j = gsl_matrix_alloc(f->n, p->n_index);
    if (!j)
        return kvc_fail_nomem(err);
    fine = f->residuals(f->user, x, p->all);
    best_scale = fine ? scale_at(p, p->all) : INFINITY;
    memcpy(best, x, sizeof best);
    for (size_t i = 0; i < (f->effect > 0 ? JUMPY_STEPS : MOST_STEPS) && fine && !ended; i++) {
        fine = step_on(p, x, j, &ended);
        double scale = scale_at(p, p->all);
        if (scale <= best_scale) {
            best_scale = scale;
            memcpy(best, x, sizeof best);
        }
    }
    memcpy(x, best, sizeof best);
    gsl_matrix_free(j);
    return fine ? KVC_OK : kvc_fail(err, KVC_ERR_INPUT, "no prediction for the measurements");
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
    f->scatter = fmax(1.4826 * median_of(scratch, f->n), fmax(f->least_scatter, LEAST_SCATTER));
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

/* Rows left out in turn, each predicted from the others, and what that does to the constants. */
static enum kvc_status cross_validate(struct part *p, const double *x, double *error,
                                      bool *left_out, struct kvc_error *err)
{
    struct kvc_measured_fit *f = p->f;
    size_t folds = f->folds ? f->folds : f->n < 20 ? f->n : 20, tested = 0;
    enum kvc_status status = KVC_OK;

    double spread[KVC_ROBUST_MOST] = {0};
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
        for (size_t i = 0; i < f->n_constants; i++)
            spread[i] += (y[i] - x[i]) * (y[i] - x[i]);
    }
    p->left_out = NULL;
    p->n_rows = f->n;
    if (status != KVC_OK)
        return status;
    f->held_out_median = median_of(error, tested);
    f->held_out_worst = error[tested - 1];
    if (folds > f->n)
        folds = f->n;
    for (size_t i = 0; i < f->n_constants; i++) /* the jackknife's, where it is the larger one */
        if (f->constant[i].told)
            f->constant[i].error = fmax(f->constant[i].error,
                                        sqrt(spread[i] * (double)(folds - 1) / (double)folds));
    return KVC_OK;
}

/* A constant that depends on which rows are in is not told either. */
static bool leave_unsteady(struct kvc_measured_fit *f, double *x)
{
    size_t worst = f->n_constants;
    double largest = TOLD;

    for (size_t i = 0; i < f->n_constants; i++) {
        struct kvc_fit_constant *c = &f->constant[i];
        if (c->told && c->error / unit(c, x[i]) > largest) {
            largest = c->error / unit(c, x[i]);
            worst = i;
        }
    }
    if (worst == f->n_constants)
        return false;
    f->constant[worst].told = false;
    f->constant[worst].with = 0;
    f->constant[worst].error = NAN;
    x[worst] = f->constant[worst].base;
    return true;
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
    p.next = kvc_malloc(f->n + 1, sizeof *p.next);
    p.scratch = kvc_malloc(f->n + 1, sizeof *p.scratch);
    if (!scratch || !left_out || !p.all || !p.next || !p.scratch)
        status = kvc_fail_nomem(err);
    else if (!f->n)
        status = kvc_fail(err, KVC_ERR_INPUT, "no measurement to fit to");
    for (size_t i = 0; i < f->n_constants; i++) {
        struct kvc_fit_constant *c = &f->constant[i];
        c->told = !c->kept;
        c->with = c->kept ? c->with : 0;
        c->error = NAN;
        x[i] = c->kept ? c->base : c->start;
    }
    do {
        if (status == KVC_OK)
            status = fit_told(&p, x, scratch, err);
        if (status == KVC_OK)
            status = cross_validate(&p, x, scratch, left_out, err);
    } while (status == KVC_OK && leave_unsteady(f, x));
    for (size_t i = 0; i < f->n_constants; i++)
        f->constant[i].value = x[i] > 1e-6 * f->constant[i].start ? x[i] : 0;
    kvc_free(p.all);
    kvc_free(p.next);
    kvc_free(p.scratch);
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
        kvc_text_addf(out, "%s%s: not told by these measurements", indent,
                      c->name);
        kvc_text_add(out, others    ? "; they see only a mix of it and "
                          : c->with ? ": they hardly depend on it"
                                    : ": they scatter too much for it");
        for (size_t k = 0, listed = 0; k < f->n_constants; k++)
            if (others >> k & 1)
                kvc_text_addf(out, "%s%s", listed++ ? ", " : "", f->constant[k].name);
        kvc_text_add(out, "\n");
    }
}
