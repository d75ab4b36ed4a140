/* SPDX-License-Identifier: Apache-2.0
 * Host constants of a backend from engine rows: one set for all models and GPUs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/robust_fit.h"
#include "studies/engine/predict.h"

#define PREFILL_STEP 2     /* of the constants */
#define LEAST_ROWS 3       /* two figures each, five constants */
#define SCALE 0.15         /* of residuals (logarithms): beyond it a row counts less and less */
#define TTFT_WEIGHT 0.5    /* against TPOT */
#define TOLD 0.5           /* largest error, as a share of the constant or the profile's */
#define MOST_TTFT_MS 20000 /* longer ones tell of queues, not of the host */

struct fit {
    const struct kvc_engine_validation *v;
    struct kvc_engine_models models;
    size_t *row, *model; /* [n] */
    double *worth;       /* [2 n] of TPOT's and TTFT's residuals */
    size_t n;
    struct kvc_fit_constant *constant; /* [KVC_ENGINE_CONSTANTS] */
};

static struct kvc_host_costs costs(const double *x)
{
    return (struct kvc_host_costs){x[0], x[1], x[2], x[3], x[4]};
}

/* x: of the constants that are told. */
static bool residuals(void *user, const double *x, double *out)
{
    const struct fit *f = user;
    double all[KVC_ENGINE_CONSTANTS];

    for (size_t i = 0; i < KVC_ENGINE_CONSTANTS; i++)
        all[i] = f->constant[i].told ? *x++ : f->constant[i].base;
    const struct kvc_host_costs host = costs(all);
    for (size_t i = 0; i < f->n; i++) {
        const struct kvc_engine_row *r = &f->v->rows.row[f->row[i]];
        struct kvc_engine_prediction p = {0};
        if (kvc_engine_predict(&f->models.model[f->model[i]], r, &host, &p, NULL) != KVC_OK)
            return false;
        out[2 * i] = r->osl > 1 ? log(p.tpot_ms / r->tpot_ms) : 0;
        out[2 * i + 1] = TTFT_WEIGHT * log(p.ttft_ms / r->ttft_ms);
    }
    return true;
}

/* Models whose attention rests on assumed forms would have the host pay for them. */
static bool is_fitted(const struct kvc_engine_validation *v, size_t row, size_t group)
{
    const struct kvc_llm *l = v->group[group].llm;

    return l->sparse_tokens == 0 && l->linear_layers == 0 &&
           v->prediction[row].group == group && !v->prediction[row].aside &&
           v->rows.row[row].ttft_ms < MOST_TTFT_MS;
}

/* Each group counts alike, whatever its rows. */
static enum kvc_status choose(struct fit *f, const char *backend, struct kvc_error *err)
{
    const struct kvc_engine_validation *v = f->v;
    enum kvc_status status = KVC_OK;
    size_t groups = 0;

    for (size_t g = 0; g < v->n_groups; g++) {
        size_t first = f->n;
        if (strcmp(v->group[g].backend, backend) != 0 || v->group[g].kind != KVC_ROW_PLAIN)
            continue;
        for (size_t i = 0; i < v->rows.n && status == KVC_OK; i++) {
            struct kvc_step_config config;
            char text[256];
            if (!is_fitted(v, i, g))
                continue;
            kvc_engine_configure(&v->rows.row[i], &config, text);
            f->row[f->n] = i;
            status = kvc_engine_model_find(&f->models, &config, &f->model[f->n++], err);
        }
        for (size_t i = first; i < f->n; i++)
            f->worth[2 * i] = f->worth[2 * i + 1] = 1 / (double)(f->n - first);
        groups += f->n > first;
    }
    for (size_t i = 0; i < 2 * f->n; i++) /* 1 in the mean */
        f->worth[i] *= (double)f->n / (double)groups;
    return status;
}

/* ---- constants ---- */

static void begin(struct fit *f, const struct kvc_engine_profile *e)
{
    /* what they are, roughly */
    static const struct kvc_fit_constant start[KVC_ENGINE_CONSTANTS] = {
        {.name = "host time per step", .start = 1e5},
        {.name = "host time per sequence", .start = 1e4},
        {.name = "host time per step with prefill", .start = 3e6},
        {.name = "front end", .start = 4e7},
        {.name = "front end, per token of text", .start = 3e3}};
    const struct kvc_host_costs host = kvc_engine_host(e);
    const double base[KVC_ENGINE_CONSTANTS] = {host.step_ns, host.sequence_ns, host.prefill_ns,
                                               host.front_ns, host.front_token_ns};

    for (size_t i = 0; i < KVC_ENGINE_CONSTANTS; i++) {
        f->constant[i] = start[i];
        f->constant[i].base = base[i];
        f->constant[i].value = start[i].start;
        f->constant[i].told = true;
    }
    if (e->mixed_step_share.value > 0) { /* says what steps with prefill take more already */
        f->constant[PREFILL_STEP].told = false;
        f->constant[PREFILL_STEP].value = f->constant[PREFILL_STEP].base;
    }
}

/* The one told least stays as the profile has it; false: all are told. */
static bool leave_untold(struct fit *f)
{
    struct kvc_fit_constant *worst = NULL;
    double largest = TOLD;

    for (size_t i = 0; i < KVC_ENGINE_CONSTANTS; i++) {
        struct kvc_fit_constant *c = &f->constant[i];
        double share = c->error / fmax(c->value, c->base);
        if (c->told && !(share <= largest)) {
            largest = share;
            worst = c;
        }
    }
    if (!worst)
        return false;
    worst->told = false;
    worst->value = worst->base;
    return true;
}

/* Fits, and leaves the constants one by one that the rows don't tell. */
static enum kvc_status fit_constants(struct fit *f, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;

    do {
        double x[KVC_ENGINE_CONSTANTS], error[KVC_ENGINE_CONSTANTS];
        struct kvc_fit_constant *of[KVC_ENGINE_CONSTANTS];
        size_t n = 0;
        for (size_t i = 0; i < KVC_ENGINE_CONSTANTS; i++)
            if (f->constant[i].told) {
                of[n] = &f->constant[i];
                x[n] = fmax(of[n]->value, 1e-2 * of[n]->start);
                n++;
            }
        if (n == 0)
            return KVC_OK;
        status = kvc_robust_fit(residuals, f, f->worth, 2 * f->n, SCALE, x, error, n,
                                err);
        for (size_t i = 0; i < n && status == KVC_OK; i++) {
            of[i]->value = x[i];
            of[i]->error = error[i];
        }
    } while (status == KVC_OK && leave_untold(f));
    return status;
}

static struct kvc_host_costs fitted_costs(const struct fit *f)
{
    double x[KVC_ENGINE_CONSTANTS];

    for (size_t i = 0; i < KVC_ENGINE_CONSTANTS; i++)
        x[i] = f->constant[i].value;
    return costs(x);
}

/* ---- the band: what was measured as a share of what is predicted with these constants ---- */

static enum kvc_status hold(struct fit *f, size_t i, const struct kvc_host_costs *host,
                            struct kvc_band_row *out, struct kvc_error *err)
{
    const struct kvc_engine_row *r = &f->v->rows.row[i];
    struct kvc_engine_prediction p = {0};
    struct kvc_step_config config;
    char text[256];
    size_t at;

    kvc_engine_configure(r, &config, text);
    enum kvc_status status = kvc_engine_model_find(&f->models, &config, &at, err);
    if (status == KVC_OK)
        status = kvc_engine_predict(&f->models.model[at], r, host, &p, err);
    *out = (struct kvc_band_row){r->ttft_ms / p.ttft_ms,
                                 r->osl > 1 ? r->tpot_ms / p.tpot_ms : 1,
                                 kvc_engine_configuration(r, &config), r->system, p.flags};
    return status;
}

static enum kvc_status fit_band(struct kvc_engine_band *out, struct fit *f,
                                const struct kvc_host_costs *host, const char *backend,
                                struct kvc_error *err)
{
    const struct kvc_engine_validation *v = f->v;
    struct kvc_band_row *row = kvc_malloc(v->rows.n, sizeof *row);
    enum kvc_status status = row ? KVC_OK : kvc_fail_nomem(err);
    size_t n = 0;

    for (size_t i = 0; i < v->rows.n && status == KVC_OK; i++) {
        const struct kvc_engine_row *r = &v->rows.row[i];
        const struct kvc_engine_prediction *p = &v->prediction[i];
        if (p->group != SIZE_MAX && !p->aside && r->kind == KVC_ROW_PLAIN &&
            strcmp(r->backend, backend) == 0)
            status = hold(f, i, host, &row[n++], err);
    }
    if (status == KVC_OK)
        status = kvc_engine_band_fit(out, row, n, err);
    kvc_free(row);
    return status;
}

enum kvc_status kvc_engine_calibrate(struct kvc_engine_constants *out,
                                     const struct kvc_engine_validation *v, const char *backend,
                                     struct kvc_error *err)
{
    const struct kvc_engine_profile *engine = kvc_engine_find(backend);
    struct fit f = {.v = v, .constant = out->constant};
    enum kvc_status status = KVC_OK;

    memset(out, 0, sizeof *out);
    f.row = kvc_malloc(v->rows.n, sizeof *f.row);
    f.model = kvc_malloc(v->rows.n, sizeof *f.model);
    f.worth = kvc_malloc(2 * v->rows.n, sizeof *f.worth);
    if (!f.row || !f.model || !f.worth)
        status = kvc_fail_nomem(err);
    if (status == KVC_OK)
        status = choose(&f, backend, err);
    if (status == KVC_OK && f.n < LEAST_ROWS)
        status = kvc_fail(err, KVC_ERR_INPUT,
                          "%zu of its rows of %s are of the half of the configurations that "
                          "constants are fitted to, and %d are needed at least: give more, of "
                          "several models or batch sizes", f.n, backend, LEAST_ROWS);
    if (status == KVC_OK) {
        begin(&f, engine);
        out->rows = f.n;
        status = fit_constants(&f, err);
    }
    const struct kvc_host_costs fitted = fitted_costs(&f), carried = kvc_engine_host(engine);
    if (status == KVC_OK)
        status = fit_band(&out->band, &f, &fitted, backend, err);
    if (status == KVC_OK)
        status = fit_band(&out->carried, &f, &carried, backend, err);
    kvc_engine_models_clear(&f.models);
    kvc_free(f.row);
    kvc_free(f.model);
    kvc_free(f.worth);
    return status;
}
