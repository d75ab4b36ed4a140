/* SPDX-License-Identifier: Apache-2.0 */
#include "models/own_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define SCALE 0.1          /* of residuals (logarithms): what kernels chosen by shape differ by */
#define TABLES_OFF 0.02    /* what a base's shapes may be off by */
#define FEW_ROWS 8         /* fewer leave the launch as it is, and are no table */
#define FOLDS 8            /* parts in which rows of one shape are left out */
#define SPAN_SHAPES 4      /* fewer shapes or values of an axis are no table */
#define SPAN_VALUES 4
#define SPAN_ROWS 20
#define MANY_SHAPES 16     /* from which on a table of their own needs no comparison */

/* Rows of one key, with the base's table for it. */
struct group {
    struct kvc_own_kernel *about;
    struct kvc_kernel_row *row; /* [n] */
    double *factor;             /* [n] of the base's form; base NULL: not used */
    size_t *fold;               /* [n] left out together: a shape, of one alone some rows */
    size_t n;
    bool bound;
    struct kvc_kernel_store store;
    struct kvc_kernel_table *base;
    const struct kvc_peaks *peaks;
};

void kvc_own_kernels_clear(struct kvc_own_kernels *own)
{
    kvc_kernel_tables_clear(&own->tables);
    kvc_free(own->kernel);
    memset(own, 0, sizeof *own);
}

/* ---- the base's constants by the rows ---- */

static const char *constant_name(const struct kvc_kernel_family *f, size_t i)
{
    static const char *const gemm[] = {"launch", "share of the peak's flops",
                                       "share of the memory's bandwidth"};
    static const char *const decode[] = {"launch", "share of the memory's bandwidth"};
    static const char *const other[] = {"first constant", "second constant", "third constant",
                                        "fourth constant"};

    return strcmp(f->name, "gemm") == 0                   ? gemm[i]
           : strcmp(f->name, "generation_attention") == 0 ? decode[i]
                                                          : other[i];
}

static bool residuals(void *user, const double *c, double *out)
{
    const struct group *g = user;

    for (size_t i = 0; i < g->n; i++)
        out[i] = log(g->factor[i] *
                     g->base->family->form(c, g->row[i].params, g->peaks, g->row[i].x) /
                     g->row[i].ns);
    return true;
}

static enum kvc_status fit_constants(struct group *g, struct kvc_measured_fit *f,
                                     struct kvc_error *err)
{
    *f = (struct kvc_measured_fit){.residuals = residuals, .user = g, .n = g->n, .scale = SCALE,
                                   .n_constants = g->base->family->n_constants,
                                   .least_scatter = TABLES_OFF};
    for (size_t i = 0; i < f->n_constants; i++)
        f->constant[i] = (struct kvc_fit_constant){.name = constant_name(g->base->family, i),
                                                   .start = g->base->constants[i],
                                                   .base = g->base->constants[i]};
    f->constant[0].kept = g->n < FEW_ROWS;
    f->constant[0].with = 1; /* they hardly depend on it */
    enum kvc_status status = kvc_measured_fit_run(f, err);
    f->user = NULL;
    return status;
}

/* What the base's table makes of its closed form at each row. */
static void find_factors(struct group *g)
{
    size_t n_site = g->base->family->n_site;
    struct kvc_kernel_curve curve;

    for (size_t i = 0; i < g->n; i++) {
        const struct kvc_kernel_row *r = &g->row[i];
        kvc_kernel_curve_at(g->base, r->x, &curve);
        memcpy(curve.params, r->params, sizeof curve.params);
        g->factor[i] = kvc_kernel_curve_ns(&curve, g->peaks, r->x + n_site) /
                       g->base->family->form(g->base->constants, r->params, g->peaks, r->x);
    }
}

static void constants_of(const struct kvc_measured_fit *f, double *out)
{
    for (size_t i = 0; i < f->n_constants; i++)
        out[i] = f->constant[i].value;
}

/* ---- shapes left out ---- */

static size_t folds_of(const struct group *g)
{
    return g->about->shapes > 1 ? g->about->shapes : g->n < FOLDS ? g->n : FOLDS;
}

/* Predicts the rows of a fold from the others. table: by one of their own. */
static enum kvc_status try_fold(const struct group *all, size_t fold, bool table,
                                struct kvc_kernel_errors *errors, struct kvc_error *err)
{
    struct group some = *all;
    struct kvc_kernel_tables own = {0};
    struct kvc_measured_fit fit;
    double c[KVC_ROBUST_MOST] = {0};
    enum kvc_status status = KVC_OK;

    some.row = kvc_malloc(all->n, sizeof *some.row);
    some.factor = kvc_malloc(all->n, sizeof *some.factor);
    some.n = 0;
    if (!some.row || !some.factor)
        status = kvc_fail_nomem(err);
    for (size_t i = 0; i < all->n && status == KVC_OK; i++)
        if (all->fold[i] != fold) {
            some.factor[some.n] = all->factor[i];
            some.row[some.n++] = all->row[i];
        }
    if (status == KVC_OK && table)
        status = kvc_kernel_fit(&own, all->about->family, some.row, some.n, all->peaks, "", err);
    else if (status == KVC_OK && (status = fit_constants(&some, &fit, err)) == KVC_OK)
        constants_of(&fit, c);
    for (size_t i = 0; i < all->n && status == KVC_OK && (!table || own.n); i++) {
        const struct kvc_kernel_row *r = &all->row[i];
        struct kvc_kernel_curve curve;
        double ns;
        if (all->fold[i] != fold)
            continue;
        if (table) {
            kvc_kernel_curve_at(&own.table[0], r->x, &curve);
            ns = kvc_kernel_curve_ns(&curve, all->peaks, r->x + all->about->family->n_site);
        } else {
            ns = all->factor[i] * all->about->family->form(c, r->params, all->peaks, r->x);
        }
        if (!kvc_kernel_errors_add(errors, ns, r->ns))
            status = kvc_fail_nomem(err);
    }
    kvc_kernel_tables_clear(&own);
    kvc_free(some.row);
    kvc_free(some.factor);
    return status;
}

static enum kvc_status cross_validate(const struct group *g, bool table,
                                      struct kvc_kernel_error *out, struct kvc_error *err)
{
    struct kvc_kernel_errors errors = {0};
    enum kvc_status status = KVC_OK;

    for (size_t fold = 0; fold < folds_of(g) && status == KVC_OK; fold++)
        status = try_fold(g, fold, table, &errors, err);
    *out = kvc_kernel_errors_sum(&errors);
    kvc_free(errors.error);
    return status;
}

/* ---- which way ---- */

/* Different values of a coordinate; more than are asked for need no count. */
static size_t values_of(const struct group *g, size_t x)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n && n < SPAN_VALUES; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = g->row[k].x[x] == g->row[i].x[x];
        n += !seen;
    }
    return n;
}

static bool spans(const struct group *g)
{
    const struct kvc_kernel_family *f = g->about->family;
    bool wide = g->n >= SPAN_ROWS && g->about->shapes >= SPAN_SHAPES;

    for (size_t a = 0; a < f->n_axes && wide; a++)
        wide = values_of(g, f->n_site + a) >= SPAN_VALUES;
    return wide && !g->bound;
}

static double median_residual(struct group *g, double *scratch, const double *constants)
{
    struct kvc_kernel_errors e = {.error = scratch, .n = g->n};

    residuals(g, constants, scratch);
    for (size_t i = 0; i < g->n; i++)
        scratch[i] = expm1(scratch[i]);
    return kvc_kernel_errors_sum(&e).bias / 100;
}

static enum kvc_status decide(struct group *g, bool can_table, struct kvc_kernel_error *off,
                              struct kvc_error *err)
{
    struct kvc_own_kernel *o = g->about;
    struct kvc_kernel_error table = {0, NAN, NAN, NAN}, rescaled = table;
    enum kvc_status status = KVC_OK;
    double *scratch = kvc_malloc(g->n, sizeof *scratch);

    if (!scratch)
        return kvc_fail_nomem(err);
    if (g->base)
        status = fit_constants(g, &o->fit, err);
    if (status == KVC_OK && g->base && o->shapes <= MANY_SHAPES)
        status = cross_validate(g, false, &rescaled, err);
    if (status == KVC_OK && can_table && o->shapes <= MANY_SHAPES)
        status = cross_validate(g, true, &table, err);
    o->table_off = table.mape;
    o->rescaled_off = rescaled.mape;
    o->way = !g->base ? (can_table ? KVC_OWN_TABLE : KVC_OWN_TOO_FEW)
             : can_table && (o->shapes > MANY_SHAPES || table.mape < rescaled.mape)
                 ? KVC_OWN_TABLE
                 : KVC_OWN_RESCALED;
    *off = o->way == KVC_OWN_TABLE ? table : rescaled;
    if (status == KVC_OK && g->base && g->bound) {
        o->slower = -median_residual(g, scratch, g->base->constants);
        o->slower /= 1 - o->slower; /* measured over predicted, less one */
        if (o->slower > 0)
            o->way = KVC_OWN_BOUND;
    }
    kvc_free(scratch);
    return status;
}

/* ---- one key ---- */

static enum kvc_status add_table(struct kvc_own_kernels *out, struct group *g, const char *source,
                                 const struct kvc_kernel_error *off, struct kvc_error *err)
{
    struct kvc_own_kernel *o = g->about;
    struct kvc_kernel_tables *t = &out->tables;
    bool rescaled = o->way == KVC_OWN_RESCALED;
    char text[320];

    snprintf(text, sizeof text, "%.150s, %zu rows%s%s%s", source, g->n,
             rescaled ? "; constants fitted to them, shapes as " : "", rescaled ? o->base : "",
             g->bound ? "; plain kernels, faster than those" : "");
    if (rescaled) {
        if (!kvc_grow((void **)&t->table, &t->cap, t->n + 1, sizeof *t->table))
            return kvc_fail_nomem(err);
        t->table[t->n++] = *g->base; /* out of the store, which forgets it */
        memset(g->base, 0, sizeof *g->base);
    } else {
        enum kvc_status status =
            kvc_kernel_fit(t, o->family, g->row, g->n, g->peaks, text, err);
        if (status != KVC_OK)
            return status;
    }
    struct kvc_kernel_table *to = &t->table[t->n - 1];
    char *own = kvc_strdup(text);
    if (!own)
        return kvc_fail_nomem(err);
    kvc_free(to->source);
    to->source = own;
    snprintf(to->key, sizeof to->key, "%s", o->key);
    strcpy(to->kind, "measured");
    memcpy(to->most, o->most, sizeof to->most);
    if (rescaled) {
        kvc_free(to->ends); /* the base's */
        to->ends = NULL;
        constants_of(&o->fit, to->constants);
        memcpy(to->params, g->row[0].params, sizeof to->params);
        to->fitted = (struct kvc_kernel_error){g->n, 100 * o->fit.median, 100 * o->fit.worst, 0};
        to->random = (struct kvc_kernel_error){0, 0, 0, 0};
        to->shape = *off;
    } else if (off->rows) {
        to->shape = *off;
    }
    return KVC_OK;
}

static enum kvc_status open_base(struct group *g, const struct kvc_gpu *gpu, const char *backend,
                                 struct kvc_error *err)
{
    enum kvc_status status = kvc_kernel_store_load(&g->store, gpu, backend, NULL);

    if (status == KVC_ERR_NOMEM)
        return kvc_fail_nomem(err);
    const struct kvc_kernel_table *t =
        status == KVC_OK ? kvc_kernel_store_find(&g->store, g->about->family, g->about->key)
                         : NULL;
    if (!t)
        return KVC_OK;
    g->base = &g->store.tables.table[t - g->store.tables.table];
    snprintf(g->about->base, sizeof g->about->base, "%.40s %.20s", g->store.from, backend);
    g->factor = kvc_malloc(g->n, sizeof *g->factor);
    if (!g->factor)
        return kvc_fail_nomem(err);
    find_factors(g);
    return KVC_OK;
}

static void describe(struct group *g)
{
    struct kvc_own_kernel *o = g->about;
    const struct kvc_kernel_family *f = o->family;

    o->rows = g->n;
    o->shapes = 1;
    g->fold[0] = 0;
    for (size_t i = 1; i < g->n; i++) {
        o->shapes += memcmp(g->row[i].x, g->row[i - 1].x, f->n_group * sizeof(double)) != 0;
        g->fold[i] = o->shapes - 1;
    }
    for (size_t i = 0; i < g->n && o->shapes == 1; i++)
        g->fold[i] = i % folds_of(g);
    for (size_t a = 0; a < f->n_axes; a++) {
        o->least[a] = o->most[a] = g->row[0].x[f->n_site + a];
        for (size_t i = 1; i < g->n; i++) {
            o->least[a] = fmin(o->least[a], g->row[i].x[f->n_site + a]);
            o->most[a] = fmax(o->most[a], g->row[i].x[f->n_site + a]);
        }
    }
}

/* ---- all of them ---- */

static int by_family_and_place(const void *a, const void *b)
{
    const struct kvc_own_row *x = a, *y = b;
    int order = strcmp(x->family->name, y->family->name);

    if (!order)
        order = strcmp(x->row.key, y->row.key);
    for (size_t i = 0; order == 0 && i < KVC_KERNEL_X; i++)
        order = (x->row.x[i] > y->row.x[i]) - (x->row.x[i] < y->row.x[i]);
    return order ? order : (x->row.ns > y->row.ns) - (x->row.ns < y->row.ns);
}

static bool same_table(const struct kvc_own_row *a, const struct kvc_own_row *b)
{
    return a->family == b->family && strcmp(a->row.key, b->row.key) == 0;
}

/* The same figure from two files is one measurement. */
static size_t drop_repeats(struct kvc_own_row *rows, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!kept || by_family_and_place(&rows[kept - 1], &rows[i]) != 0)
            rows[kept++] = rows[i];
    return kept;
}

static enum kvc_status open_group(struct group *g, struct kvc_own_kernel *about,
                                  const struct kvc_own_row *rows, size_t n,
                                  const struct kvc_peaks *peaks, const struct kvc_gpu *gpu,
                                  const char *backend, struct kvc_error *err)
{
    *g = (struct group){.about = about, .n = n, .peaks = peaks};
    about->family = rows[0].family;
    snprintf(about->key, sizeof about->key, "%s", rows[0].row.key);
    g->row = kvc_malloc(n, sizeof *g->row);
    g->fold = kvc_malloc(n, sizeof *g->fold);
    if (!g->row || !g->fold)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        g->row[i] = rows[i].row;
        g->bound |= rows[i].bound;
    }
    describe(g);
    return open_base(g, gpu, backend, err);
}

static void close_group(struct group *g)
{
    kvc_kernel_store_clear(&g->store);
    kvc_free(g->row);
    kvc_free(g->fold);
    kvc_free(g->factor);
}

/* The share of the peak that matrix products reach here over the one that they reach there. */
static enum kvc_status find_peaks(struct kvc_own_kernels *out, const struct kvc_own_row *rows,
                                  size_t n, const struct kvc_gpu *gpu, const char *backend,
                                  struct kvc_error *err)
{
    struct kvc_own_kernel about = {0};
    struct group g;
    enum kvc_status status = open_group(&g, &about, rows, n, &out->peaks, gpu, backend, err);
    bool narrow = strcmp(about.key, "fp8") == 0, wide = strcmp(about.key, "bfloat16") == 0;

    if (status == KVC_OK && g.base && (narrow || wide))
        status = fit_constants(&g, &about.fit, err);
    const struct kvc_fit_constant *c = about.fit.constant;
    if (status == KVC_OK && about.fit.n && c[1].told)
        *(narrow ? &out->told.fp8_flops : &out->told.bf16_flops) =
            (narrow ? g.peaks->fp8_flops : g.peaks->bf16_flops) * c[1].value /
            g.base->constants[1];
    if (status == KVC_OK && about.fit.n && c[2].told && (wide || out->told.bytes_per_s <= 0))
        out->told.bytes_per_s = g.peaks->bytes_per_s * c[2].value / g.base->constants[2];
    close_group(&g);
    return status;
}

static void set_peaks(struct kvc_own_kernels *out)
{
    double wider = out->told.bf16_flops > 0 ? out->told.bf16_flops / out->peaks.bf16_flops : 1;

    out->peaks.fp4_flops *= wider;
    out->peaks.fp8_flops = out->told.fp8_flops > 0 ? out->told.fp8_flops
                                                   : out->peaks.fp8_flops * wider;
    out->peaks.bf16_flops *= wider;
    if (out->told.bytes_per_s > 0)
        out->peaks.bytes_per_s = out->told.bytes_per_s;
}

static enum kvc_status fit_group(struct kvc_own_kernels *out, const struct kvc_own_row *rows,
                                 size_t n, const struct kvc_gpu *gpu, const char *backend,
                                 const char *source, struct kvc_error *err)
{
    struct kvc_kernel_error off = {0};
    struct group g;
    enum kvc_status status =
        open_group(&g, &out->kernel[out->n++], rows, n, &out->peaks, gpu, backend, err);

    if (status == KVC_OK)
        status = decide(&g, g.base ? spans(&g) : n >= FEW_ROWS, &off, err);
    if (status == KVC_OK && g.about->way <= KVC_OWN_RESCALED)
        status = add_table(out, &g, source, &off, err);
    close_group(&g);
    return status;
}

enum kvc_status kvc_own_kernels_fit(struct kvc_own_kernels *out, struct kvc_own_row *rows,
                                    size_t n, const struct kvc_gpu *gpu, const char *backend,
                                    bool stands_in, const char *source, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;

    memset(out, 0, sizeof *out);
    out->peaks = kvc_peaks_of(gpu);
    out->kernel = kvc_calloc(n + 1, sizeof *out->kernel);
    if (!out->kernel)
        return kvc_fail_nomem(err);
    qsort(rows, n, sizeof *rows, by_family_and_place);
    n = drop_repeats(rows, n);
    for (int pass = stands_in ? 0 : 1; pass < 2; pass++) {
        for (size_t i = 0, end; i < n && status == KVC_OK; i = end) {
            for (end = i + 1; end < n && same_table(&rows[i], &rows[end]);)
                end++;
            if (pass == 1)
                status = fit_group(out, rows + i, end - i, gpu, backend, source, err);
            else if (strcmp(rows[i].family->name, "gemm") == 0)
                status = find_peaks(out, rows + i, end - i, gpu, backend, err);
        }
        if (pass == 0)
            set_peaks(out);
    }
    if (status != KVC_OK)
        kvc_own_kernels_clear(out);
    return status;
}
