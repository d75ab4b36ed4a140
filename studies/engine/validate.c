/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "studies/engine/predict.h"

static enum kvc_status skip(struct kvc_engine_validation *v, size_t row, const char *text,
                            struct kvc_error *err)
{
    size_t i = 0;

    while (i < v->n_reasons && strcmp(v->reason[i].text, text) != 0)
        i++;
    if (i == v->n_reasons) {
        if (!kvc_grow((void **)&v->reason, &v->cap_reasons, i + 1, sizeof *v->reason))
            return kvc_fail_nomem(err);
        v->n_reasons++;
        v->reason[i].rows = 0;
        snprintf(v->reason[i].text, sizeof v->reason[i].text, "%s", text);
    }
    v->reason[i].rows++;
    v->prediction[row].skipped = i + 1;
    v->skipped++;
    return KVC_OK;
}

/* The model of a row, or why there is none. */
static enum kvc_status find(struct kvc_engine_models *models, const struct kvc_engine_row *r,
                            size_t *at, char text[256], struct kvc_error *err)
{
    struct kvc_step_config config;
    enum kvc_status status = KVC_OK;

    if (!kvc_engine_configure(r, &config, text))
        return KVC_OK;
    status = kvc_engine_model_find(models, &config, at, err);
    if (status == KVC_OK && !models->model[*at].model)
        snprintf(text, 256, "%s", models->model[*at].text);
    else if (status == KVC_OK && !kvc_engine_fits(&models->model[*at], r))
        snprintf(text, 256, "no request fits beside the weights");
    return status;
}

/* The same closed loop where the host costs nothing and steps never wait for their launches: all
 * constants that are fitted to whole runs are left out. */
static enum kvc_status predict_unfitted(struct kvc_engine_models *models,
                                        const struct kvc_engine_row *r, size_t at,
                                        struct kvc_engine_prediction *p, struct kvc_error *err)
{
    struct kvc_step_config config = models->model[at].config;
    const struct kvc_host_costs none = {0};
    struct kvc_engine_prediction found = {0};

    config.kernels_alone = true;
    enum kvc_status status = kvc_engine_model_find(models, &config, &at, err);
    if (status == KVC_OK)
        status = kvc_engine_predict(&models->model[at], r, &none, &found, err);
    p->unfitted_ttft_ms = found.ttft_ms;
    p->unfitted_tpot_ms = found.tpot_ms;
    return status;
}

static enum kvc_status one(struct kvc_engine_validation *out, struct kvc_engine_models *models,
                           size_t i, struct kvc_error *err)
{
    const struct kvc_engine_row *r = &out->rows.row[i];
    struct kvc_engine_prediction *p = &out->prediction[i];
    struct kvc_engine_row side;
    char text[256];
    size_t at = 0, prefill = 0;
    enum kvc_status status = find(models, r, &at, text, err);

    p->group = SIZE_MAX;
    if (status == KVC_OK && !*text && r->disagg) {
        kvc_engine_side(r, true, &side);
        status = find(models, &side, &prefill, text, err);
    }
    if (status != KVC_OK)
        return status;
    if (*text)
        return skip(out, i, text, err);
    const struct kvc_engine_model *m = &models->model[at];
    struct kvc_host_costs host = kvc_engine_host(m->engine);
    p->tp = m->config.tp;
    p->ep = m->config.ep;
    p->weights = m->config.weights;
    p->kv = m->config.kv;
    p->aside = kvc_engine_configuration(r, &m->config) & 1;
    if (r->disagg)
        return kvc_engine_predict_disagg(&models->model[prefill], m, r, &host, p, err);
    status = kvc_engine_predict(m, r, &host, p, err);
    return status == KVC_OK ? predict_unfitted(models, r, at, p, err) : status;
}

enum kvc_status kvc_engine_validate(struct kvc_engine_validation *out, const char *path,
                                    const char *mode, bool alike, kvc_progress_fn progress,
                                    void *user, struct kvc_error *err)
{
    struct kvc_engine_models models = {0};
    enum kvc_status status = kvc_profiles_ready(err);

    memset(out, 0, sizeof *out);
    if (status == KVC_OK)
        status = kvc_engine_rows_read(&out->rows, path, mode, err);
    if (status == KVC_OK) {
        out->prediction = kvc_calloc(out->rows.n ? out->rows.n : 1, sizeof *out->prediction);
        if (!out->prediction)
            status = kvc_fail_nomem(err);
    }
    for (size_t i = 0; i < out->rows.n && status == KVC_OK; i++) {
        out->rows.row[i].alike = alike;
        status = one(out, &models, i, err);
        if (progress && status == KVC_OK && !progress(user, "predict", i + 1, out->rows.n))
            status = kvc_fail(err, KVC_ERR_CANCELLED, "cancelled");
    }
    kvc_engine_models_clear(&models);
    if (status == KVC_OK)
        status = kvc_engine_score(out, err);
    if (status != KVC_OK)
        kvc_engine_validation_clear(out);
    return status;
}

void kvc_engine_validation_clear(struct kvc_engine_validation *v)
{
    kvc_engine_rows_clear(&v->rows);
    kvc_free(v->prediction);
    kvc_free(v->group);
    kvc_free(v->reason);
    memset(v, 0, sizeof *v);
}
