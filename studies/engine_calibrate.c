/* SPDX-License-Identifier: Apache-2.0
 * Host constants of a backend from engine rows: one set for all models and GPUs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/robust_fit.h"
#include "studies/engine_predict.h"

#define A_GROUP 8          /* rows of each group that a fit looks at */
#define SCALE 0.15         /* of residuals (logarithms): beyond it a row counts less and less */
#define TTFT_WEIGHT 0.5    /* against TPOT */
#define MOST_TTFT_MS 20000 /* longer ones tell of queues, not of the host */

struct fit {
    const struct kvc_engine_validation *v;
    struct kvc_engine_models models;
    size_t *row, *model; /* [n] */
    size_t n;
};

static bool residuals(void *user, const double *x, double *out)
{
    const struct fit *f = user;
    const struct kvc_host_costs host = {x[0], x[1], x[2], x[3]};

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

static bool is_fitted(const struct kvc_engine_validation *v, size_t row, size_t group)
{
    return v->prediction[row].group == group && !v->prediction[row].aside &&
           v->rows.row[row].ttft_ms < MOST_TTFT_MS;
}

/* Evenly from each group, so that none outweighs the others by its many rows. */
static enum kvc_status choose(struct fit *f, const char *backend, struct kvc_error *err)
{
    const struct kvc_engine_validation *v = f->v;
    enum kvc_status status = KVC_OK;

    for (size_t g = 0; g < v->n_groups; g++) {
        size_t rows = 0, at = 0;
        if (strcmp(v->group[g].backend, backend) != 0)
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

enum kvc_status kvc_engine_calibrate(struct kvc_engine_constants *out,
                                     const struct kvc_engine_validation *v, const char *backend,
                                     struct kvc_error *err)
{
    struct fit f = {.v = v};
    const struct kvc_host_costs from = kvc_engine_host(kvc_engine_find(backend));
    double x[4] = {from.step_ns, from.sequence_ns, from.prefill_ns, from.front_ns}, error[4];
    enum kvc_status status = KVC_OK;

    memset(out, 0, sizeof *out);
    f.row = kvc_malloc(v->rows.n, sizeof *f.row);
    f.model = kvc_malloc(v->rows.n, sizeof *f.model);
    if (!f.row || !f.model)
        status = kvc_fail_nomem(err);
    if (status == KVC_OK)
        status = choose(&f, backend, err);
    if (status == KVC_OK)
        status = kvc_robust_fit(residuals, &f, 2 * f.n, SCALE, x, error, 4, err);
    if (status == KVC_OK) {
        out->host = (struct kvc_host_costs){x[0], x[1], x[2], x[3]};
        out->error = (struct kvc_host_costs){error[0], error[1], error[2], error[3]};
        out->rows = f.n;
    }
    kvc_engine_models_clear(&f.models);
    kvc_free(f.row);
    kvc_free(f.model);
    return status;
}
