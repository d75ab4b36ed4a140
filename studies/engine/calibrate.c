/* SPDX-License-Identifier: Apache-2.0
 * Host constants of a backend from engine rows: one set for all models and GPUs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/robust_fit.h"
#include "studies/engine/predict.h"

#define LEAST_ROWS 3       /* two figures each, four constants */
#define A_GROUP 8          /* rows of each group that a fit looks at */
#define SCALE 0.15         /* of residuals (logarithms): beyond it a row counts less and less */
#define TTFT_WEIGHT 0.5    /* against TPOT */
#define CONSTANTS 5        /* of struct kvc_host_costs */
#define MOST_TTFT_MS 20000 /* longer ones tell of queues, not of the host */

struct fit {
    const struct kvc_engine_validation *v;
    struct kvc_engine_models models;
    size_t *row, *model; /* [n] */
    size_t n;
};

static struct kvc_host_costs costs(const double *x)
{
    return (struct kvc_host_costs){x[0], x[1], x[2], x[3], x[4]};
}

static bool residuals(void *user, const double *x, double *out)
{
    const struct fit *f = user;
    const struct kvc_host_costs host = costs(x);

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

/* Evenly from each group, so that none outweighs the others by its many rows. */
static enum kvc_status choose(struct fit *f, const char *backend, struct kvc_error *err)
{
    const struct kvc_engine_validation *v = f->v;
    enum kvc_status status = KVC_OK;

    for (size_t g = 0; g < v->n_groups; g++) {
        size_t rows = 0, at = 0;
        if (strcmp(v->group[g].backend, backend) != 0 || v->group[g].kind != KVC_ROW_PLAIN)
            continue;
        for (size_t i = 0; i < v->rows.n; i++)
            rows += is_fitted(v, i, g);
        size_t stride = (rows + A_GROUP - 1) / A_GROUP;
        for (size_t i = 0; i < v->rows.n && status == KVC_OK; i++) {
            struct kvc_step_config config;
            char text[256];
            if (!is_fitted(v, i, g) || at++ % stride)
                continue;
            kvc_engine_configure(&v->rows.row[i], &config, text);
            f->row[f->n] = i;
            status = kvc_engine_model_find(&f->models, &config, &f->model[f->n++], err);
        }
    }
    return status;
}

/* ---- bands: what was measured as a share of what is predicted, with the fitted constants ---- */

struct shares {
    double *ttft, *tpot; /* [rows] */
    size_t n;
};

static enum kvc_status gather(struct fit *f, const char *backend, const struct kvc_host_costs *host,
                              const char *regime, struct shares *out, struct kvc_error *err)
{
    const struct kvc_engine_validation *v = f->v;
    enum kvc_status status = KVC_OK;

    out->n = 0;
    for (size_t i = 0; i < v->rows.n && status == KVC_OK; i++) {
        const struct kvc_engine_row *r = &v->rows.row[i];
        struct kvc_engine_prediction p = v->prediction[i];
        struct kvc_step_config config;
        char text[256];
        size_t at;
        if (p.group == SIZE_MAX || p.aside || r->kind != KVC_ROW_PLAIN ||
            strcmp(r->backend, backend) != 0 || (regime && strcmp(p.band.regime, regime) != 0))
            continue;
        kvc_engine_configure(r, &config, text);
        status = kvc_engine_model_find(&f->models, &config, &at, err);
        if (status == KVC_OK)
            status = kvc_engine_predict(&f->models.model[at], r, host, &p, err);
        out->ttft[out->n] = r->ttft_ms / p.ttft_ms;
        out->tpot[out->n++] = r->tpot_ms / p.tpot_ms;
    }
    return status;
}

/* What a front end takes does not depend on the kernels' regime: TTFT has one band. */
static enum kvc_status fit_bands(struct kvc_engine_constants *out, struct fit *f,
                                 const char *backend, struct kvc_error *err)
{
    static const char *const regimes[] = {"dense", "moe", "assumed"};
    struct shares s = {kvc_malloc(f->v->rows.n, sizeof *s.ttft),
                       kvc_malloc(f->v->rows.n, sizeof *s.tpot), 0};
    enum kvc_status status = s.ttft && s.tpot ? KVC_OK : kvc_fail_nomem(err);
    double low = 0, high = 0;

    if (status == KVC_OK)
        status = gather(f, backend, &out->host, NULL, &s, err);
    if (status == KVC_OK && s.n) {
        low = kvc_engine_quantile(s.ttft, s.n, 0.1);
        high = kvc_engine_quantile(s.ttft, s.n, 0.9);
    }
    for (size_t i = 0; i < 3 && status == KVC_OK; i++) {
        out->band[i].regime = regimes[i];
        status = gather(f, backend, &out->host, regimes[i], &s, err);
        out->band[i].rows = s.n;
        if (s.n)
            out->band[i].band = (struct kvc_time_band){
                low, high, kvc_engine_quantile(s.tpot, s.n, 0.1),
                kvc_engine_quantile(s.tpot, s.n, 0.9), NULL, NULL, regimes[i]};
    }
    kvc_free(s.ttft);
    kvc_free(s.tpot);
    return status;
}

enum kvc_status kvc_engine_calibrate(struct kvc_engine_constants *out,
                                     const struct kvc_engine_validation *v, const char *backend,
                                     struct kvc_error *err)
{
    struct fit f = {.v = v};
    double x[CONSTANTS] = {1e5, 1e4, 3e6, 4e7, 3e3}, error[CONSTANTS]; /* what they are, roughly */
    enum kvc_status status = KVC_OK;

    memset(out, 0, sizeof *out);
    f.row = kvc_malloc(v->rows.n, sizeof *f.row);
    f.model = kvc_malloc(v->rows.n, sizeof *f.model);
    if (!f.row || !f.model)
        status = kvc_fail_nomem(err);
    if (status == KVC_OK)
        status = choose(&f, backend, err);
    if (status == KVC_OK && f.n < LEAST_ROWS)
        status = kvc_fail(err, KVC_ERR_INPUT, "%zu of its rows of %s are of the half of the "
                          "configurations that constants are fitted to, and %d are needed at least: "
                          "give more, of several models or batch sizes", f.n, backend, LEAST_ROWS);
    if (status == KVC_OK)
        status = kvc_robust_fit(residuals, &f, 2 * f.n, SCALE, x, error, CONSTANTS, err);
    if (status == KVC_OK) {
        out->host = costs(x);
        out->error = costs(error);
        out->rows = f.n;
        status = fit_bands(out, &f, backend, err);
    }
    kvc_engine_models_clear(&f.models);
    kvc_free(f.row);
    kvc_free(f.model);
    return status;
}
