/* SPDX-License-Identifier: Apache-2.0 */
#include "models/kernel_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "models/kernel_grid.h"

void kvc_kernel_tables_clear(struct kvc_kernel_tables *tables)
{
    for (size_t i = 0; i < tables->n; i++)
        kvc_kernel_table_clear(&tables->table[i]);
    kvc_free(tables->table);
    memset(tables, 0, sizeof *tables);
}

/* ---- errors ---- */

bool kvc_kernel_errors_add(struct kvc_kernel_errors *e, double predicted, double measured)
{
    if (!kvc_grow((void **)&e->error, &e->cap, e->n + 1, sizeof *e->error))
        return false;
    e->error[e->n++] = predicted / measured - 1;
    return true;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct kvc_kernel_error kvc_kernel_errors_sum(struct kvc_kernel_errors *e)
{
    struct kvc_kernel_error out = {e->n, NAN, NAN, NAN};
    double sum = 0;

    if (e->n == 0)
        return out;
    qsort(e->error, e->n, sizeof *e->error, ascending);
    out.bias = 100 * e->error[e->n / 2];
    for (size_t i = 0; i < e->n; i++)
        sum += e->error[i] = fabs(e->error[i]);
    qsort(e->error, e->n, sizeof *e->error, ascending);
    out.mape = 100 * sum / (double)e->n;
    out.p90 = 100 * e->error[(size_t)(0.9 * (double)(e->n - 1) + 0.5)];
    return out;
}

/* ---- the closed form's constants ---- */

#define SAMPLE 1500 /* rows a search looks at */
#define FAR 4.0     /* log of how far a constant may move from its start */

struct search {
    const struct kvc_kernel_row *rows;
    size_t n, stride;
    const struct kvc_kernel_family *family;
    const struct kvc_peaks *peaks;
    bool claimed; /* rows where accuracy is claimed, or all where there are too few */
};

/* Mean absolute log error of the form, at constants exp(v). */
static double form_error(const gsl_vector *v, void *user)
{
    const struct search *s = user;
    double c[KVC_KERNEL_CONSTANTS], sum = 0;
    size_t seen = 0;

    for (size_t i = 0; i < s->family->n_constants; i++) {
        c[i] = exp(gsl_vector_get(v, i));
        if (fabs(log(c[i] / s->family->start[i])) > FAR)
            return 1e3;
    }
    for (size_t i = 0; i < s->n; i += s->stride) {
        const struct kvc_kernel_row *r = &s->rows[i];
        if (s->claimed && r->excluded)
            continue;
        sum += fabs(log(r->ns / s->family->form(c, r->params, s->peaks, r->x)));
        seen++;
    }
    return seen ? sum / (double)seen : 0;
}

static bool minimise(const struct search *s, double *constants)
{
    size_t n = s->family->n_constants;
    gsl_multimin_function f = {form_error, n, (void *)(uintptr_t)s};
    gsl_multimin_fminimizer *m =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, n);
    gsl_vector *at = gsl_vector_alloc(n), *step = gsl_vector_alloc(n);
    bool ok = m && at && step;

    if (ok) {
        for (size_t i = 0; i < n; i++)
            gsl_vector_set(at, i, log(constants[i]));
        gsl_vector_set_all(step, 0.5);
        gsl_multimin_fminimizer_set(m, &f, at, step);
        for (int i = 0; i < 400 && gsl_multimin_fminimizer_iterate(m) == GSL_SUCCESS; i++)
            if (gsl_multimin_fminimizer_size(m) < 1e-3)
                break;
        for (size_t i = 0; i < n; i++)
            constants[i] = exp(gsl_vector_get(gsl_multimin_fminimizer_x(m), i));
    }
    gsl_vector_free(step);
    gsl_vector_free(at);
    if (m)
        gsl_multimin_fminimizer_free(m);
    return ok;
}

static bool fit_constants(struct kvc_kernel_table *t, const struct kvc_kernel_row *rows, size_t n,
                          const struct kvc_peaks *peaks)
{
    size_t claimed = 0;

    for (size_t i = 0; i < n; i++)
        claimed += rows[i].excluded == NULL;
    struct search s = {rows, n, 1 + n / SAMPLE, t->family, peaks, claimed * 10 > n};
    memcpy(t->constants, t->family->start, sizeof t->constants);
    return minimise(&s, t->constants) && minimise(&s, t->constants);
}

/* ---- one table, from some of its rows ---- */

enum part { ALL, NOT_ROWS, NOT_SHAPES };

static uint64_t mix(const double *x, size_t n)
{
    uint64_t h = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        h = kvc_mix64(h + bits + 1);
    }
    return h;
}

/* A quarter of the rows, or all rows of a quarter of the shapes; decided by their values alone. */
static bool kept_aside(const struct kvc_kernel_row *r, const struct kvc_kernel_family *f,
                       enum part part)
{
    return part == NOT_ROWS     ? mix(r->x, f->n_site + f->n_axes) % 4 == 0
           : part == NOT_SHAPES ? mix(r->x, f->n_group) % 4 == 0
                                : false;
}

static enum kvc_status fit_rows(struct kvc_kernel_table *t, const struct kvc_kernel_family *family,
                                const struct kvc_kernel_row *rows, size_t n,
                                const struct kvc_peaks *peaks, struct kvc_error *err)
{
    memset(t, 0, sizeof *t);
    t->family = family;
    memcpy(t->key, rows[0].key, sizeof t->key);
    strcpy(t->kind, "fitted");
    memcpy(t->params, rows[0].params, sizeof t->params);
    if (!fit_constants(t, rows, n, peaks))
        return kvc_fail_nomem(err);
    enum kvc_status status = kvc_kernel_grid_fit(t, rows, n, peaks, err);
    if (status != KVC_OK)
        kvc_kernel_table_clear(t);
    return status;
}

static enum kvc_status score(const struct kvc_kernel_table *t, const struct kvc_kernel_row *rows,
                             size_t n, const struct kvc_peaks *peaks, enum part part,
                             struct kvc_kernel_error *out, struct kvc_error *err)
{
    struct kvc_kernel_errors errors = {0};
    struct kvc_kernel_curve curve;
    const double *site = NULL;
    size_t n_site = t->family->n_site;
    bool ok = true;

    for (size_t i = 0; i < n && ok; i++) {
        const struct kvc_kernel_row *r = &rows[i];
        if (r->excluded || (part != ALL && !kept_aside(r, t->family, part)))
            continue;
        if (!site || memcmp(site, r->x, n_site * sizeof *site) != 0)
            kvc_kernel_curve_at(t, site = r->x, &curve);
        ok = kvc_kernel_errors_add(&errors, kvc_kernel_curve_ns(&curve, peaks, r->x + n_site),
                                   r->ns);
    }
    *out = kvc_kernel_errors_sum(&errors);
    kvc_free(errors.error);
    return ok ? KVC_OK : kvc_fail_nomem(err);
}

/* Fits to what is not kept aside and scores on what is. Too little of either leaves no figure. */
static enum kvc_status cross_validate(const struct kvc_kernel_family *family,
                                      const struct kvc_kernel_row *rows, size_t n,
                                      const struct kvc_peaks *peaks, enum part part,
                                      struct kvc_kernel_error *out, struct kvc_error *err)
{
    struct kvc_kernel_row *seen = kvc_malloc(n, sizeof *seen);
    struct kvc_kernel_table t;
    size_t n_seen = 0;
    enum kvc_status status = KVC_OK;

    if (!seen)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (!kept_aside(&rows[i], family, part))
            seen[n_seen++] = rows[i];
    if (n_seen >= 8 && n_seen < n &&
        (status = fit_rows(&t, family, seen, n_seen, peaks, err)) == KVC_OK) {
        status = score(&t, rows, n, peaks, part, out, err);
        kvc_kernel_table_clear(&t);
    }
    kvc_free(seen);
    return status;
}

static enum kvc_status fit_table(struct kvc_kernel_table *t, const struct kvc_kernel_family *family,
                                 const struct kvc_kernel_row *rows, size_t n,
                                 const struct kvc_peaks *peaks, struct kvc_error *err)
{
    struct kvc_kernel_error random = {0}, shape = {0};
    enum kvc_status status = cross_validate(family, rows, n, peaks, NOT_ROWS, &random, err);

    if (status == KVC_OK)
        status = cross_validate(family, rows, n, peaks, NOT_SHAPES, &shape, err);
    if (status == KVC_OK)
        status = fit_rows(t, family, rows, n, peaks, err);
    if (status != KVC_OK)
        return status;
    status = score(t, rows, n, peaks, ALL, &t->fitted, err);
    t->random = random;
    t->shape = shape;
    if (status != KVC_OK)
        kvc_kernel_table_clear(t);
    return status;
}

static int by_key_and_place(const void *a, const void *b)
{
    const struct kvc_kernel_row *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    for (size_t i = 0; order == 0 && i < KVC_KERNEL_X; i++)
        order = (x->x[i] > y->x[i]) - (x->x[i] < y->x[i]);
    return order ? order : (x->ns > y->ns) - (x->ns < y->ns);
}

/* Drops rows below the least value of an axis; returns how many are left. */
static size_t drop_small(const struct kvc_kernel_family *family, struct kvc_kernel_row *rows,
                         size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        bool small = false;
        for (size_t a = 0; a < family->n_axes; a++)
            small |= rows[i].x[family->n_site + a] < family->least[a];
        if (!small)
            rows[kept++] = rows[i];
    }
    return kept;
}

enum kvc_status kvc_kernel_fit(struct kvc_kernel_tables *out,
                               const struct kvc_kernel_family *family,
                               struct kvc_kernel_row *rows, size_t n,
                               const struct kvc_peaks *peaks, const char *source,
                               struct kvc_error *err)
{
    n = drop_small(family, rows, n);
    qsort(rows, n, sizeof *rows, by_key_and_place);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && strcmp(rows[end].key, rows[i].key) == 0;)
            end++;
        if (end - i < 8)
            continue;
        if (!kvc_grow((void **)&out->table, &out->cap, out->n + 1, sizeof *out->table))
            return kvc_fail_nomem(err);
        struct kvc_kernel_table *t = &out->table[out->n];
        enum kvc_status status = fit_table(t, family, rows + i, end - i, peaks, err);
        if (status != KVC_OK)
            return status;
        out->n++;
        if (!(t->source = kvc_strdup(source)))
            return kvc_fail_nomem(err);
    }
    return KVC_OK;
}
