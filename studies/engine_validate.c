/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/engine_study.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "models/profiles.h"

/* How the benchmarks ran, as far as they don't say: ten requests a client, lengths uniform in 90 to
 * 100 % of those named (docs/accuracy.md). */
#define REQUESTS_PER_CLIENT 10
#define MOST_REQUESTS 2560 /* or four a client */
#define SHORTEST 0.9
#define BATCHED_TOKENS 8192
#define KV_SHARE 0.9

struct models { /* built once per configuration */
    struct kvc_step_config config;
    const struct kvc_engine_profile *engine;
    struct kvc_step_model *model; /* NULL: text says why */
    char text[256];
};

struct study {
    struct kvc_engine_validation *out;
    struct models *models;
    size_t n_models, cap_models;
};

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

static bool same(const struct kvc_step_config *a, const struct kvc_step_config *b)
{
    return a->llm == b->llm && a->gpu == b->gpu && strcmp(a->backend, b->backend) == 0 &&
           a->weights == b->weights && a->kv == b->kv && a->tp == b->tp && a->ep == b->ep;
}

static struct models *model_of(struct study *s, const struct kvc_step_config *config,
                               struct kvc_error *err)
{
    struct kvc_error why = {0};

    for (size_t i = 0; i < s->n_models; i++)
        if (same(&s->models[i].config, config))
            return &s->models[i];
    if (!kvc_grow((void **)&s->models, &s->cap_models, s->n_models + 1, sizeof *s->models)) {
        kvc_fail_nomem(err);
        return NULL;
    }
    struct models *m = &s->models[s->n_models++];
    memset(m, 0, sizeof *m);
    m->config = *config;
    m->engine = kvc_engine_find(config->backend);
    if (kvc_step_model_create(&m->model, config, &why) == KVC_ERR_NOMEM) {
        kvc_fail_nomem(err);
        return NULL;
    }
    if (!m->model)
        snprintf(m->text, sizeof m->text, "%.*s", (int)sizeof m->text - 1, why.text);
    return m;
}

/* Its rows' common names; text is set where none of it can be predicted. */
static bool configure(const struct kvc_engine_row *r, struct kvc_step_config *c, char text[256])
{
    const char *why = r->unusable;

    text[0] = '\0';
    *c = (struct kvc_step_config){kvc_engine_row_llm(r), kvc_gpu_find(r->system), r->backend,
                                  KVC_BF16, KVC_BF16, r->tp, r->pp, 1};
    if (why)
        ;
    else if (r->disagg)
        why = "disaggregated serving: not predicted yet";
    else if (!c->gpu)
        snprintf(text, 256, "no hardware profile '%s'", r->system);
    else if (!c->llm)
        snprintf(text, 256, "no model profile '%s'", r->model);
    else if (!kvc_engine_find(r->backend))
        snprintf(text, 256, "no engine profile '%s'", r->backend);
    else if (!kvc_engine_row_dtypes(r, c->llm, c->gpu, &c->weights, &c->kv))
        snprintf(text, 256, "no weights' format '%s'", *r->gemm ? r->gemm : r->precision);
    else if (r->dp > 1)
        why = "attention data parallelism: not predicted yet";
    else if (r->moe_tp > 1 && r->moe_ep > 1)
        why = "experts both cut and dealt to ranks: not predicted yet";
    if (why)
        snprintf(text, 256, "%s", why);
    if (c->llm && c->llm->experts && r->moe_ep > 1)
        c->ep = r->moe_ep;
    return text[0] == '\0';
}

static double kv_tokens(const struct models *m, const struct kvc_engine_row *r)
{
    const struct kvc_step_config *c = &m->config;
    bool trtllm = strcmp(c->backend, "trtllm") == 0; /* a share of what is free, not of all */
    double bytes = (double)kvc_step_kv_capacity_bytes(m->model, trtllm ? 1 : KV_SHARE,
                                                      BATCHED_TOKENS) * (trtllm ? KV_SHARE : 1);
    uint64_t tokens = (uint64_t)r->isl + r->osl;
    double window = (double)kvc_llm_window_kv_bytes(c->llm, c->kv, c->tp, tokens);
    double a_token = (double)kvc_llm_kv_bytes_per_token(c->llm, c->kv, c->tp) +
                     (window + (double)c->llm->linear_state_bytes) / (double)tokens;

    return bytes / a_token;
}

static enum kvc_status predict(const struct models *m, const struct kvc_engine_row *r,
                               struct kvc_engine_prediction *p, struct kvc_error *err)
{
    const struct kvc_engine_profile *e = m->engine;
    struct kvc_closed_loop_result result;
    uint64_t requests = (uint64_t)REQUESTS_PER_CLIENT * r->clients;
    uint64_t most = 4ull * r->clients > MOST_REQUESTS ? 4ull * r->clients : MOST_REQUESTS;
    struct kvc_closed_loop loop = {
        m->model,
        {e->host_per_step_ns.value, e->host_per_sequence_ns.value,
         e->host_per_prefill_step_ns.value, e->front_end_ns.value},
        r->clients, (uint32_t)(requests < most ? requests : most), r->isl, r->osl, SHORTEST, 0,
        BATCHED_TOKENS, strcmp(r->backend, "sglang") == 0, kv_tokens(m, r)};
    enum kvc_status status = kvc_closed_loop_run(&loop, &result, err);

    p->ttft_ms = result.ttft_ns / 1e6;
    p->tpot_ms = result.tpot_ns / 1e6;
    p->flags = result.flags;
    kvc_step_band(m->model, result.flags, &p->band);
    return status;
}

/* Which half, its configuration decides; concurrency and parallel sizes of experts don't. */
static bool kept_aside(const struct kvc_engine_row *r, const struct kvc_step_config *c)
{
    char key[4 * KVC_ROW_NAME];

    snprintf(key, sizeof key, "%s|%s|%s|%d|%u|%u|%u", c->llm->name, r->system, r->backend,
             (int)c->weights, r->tp, r->isl, r->osl);
    return kvc_rng_stream(0, key) & 1;
}

static enum kvc_status one(struct study *s, size_t i, struct kvc_error *err)
{
    const struct kvc_engine_row *r = &s->out->rows.row[i];
    struct kvc_engine_prediction *p = &s->out->prediction[i];
    struct kvc_step_config config;
    char text[256];

    p->group = SIZE_MAX;
    if (!configure(r, &config, text))
        return skip(s->out, i, text, err);
    struct models *m = model_of(s, &config, err);
    if (!m)
        return KVC_ERR_NOMEM;
    if (!m->model)
        return skip(s->out, i, m->text, err);
    if (kv_tokens(m, r) < r->isl + r->osl)
        return skip(s->out, i, "no request fits beside the weights", err);
    p->tp = config.tp;
    p->ep = config.ep;
    p->weights = config.weights;
    p->kv = config.kv;
    p->aside = kept_aside(r, &config);
    return predict(m, r, p, err);
}

enum kvc_status kvc_engine_validate(struct kvc_engine_validation *out, const char *path,
                                    const char *mode, kvc_progress_fn progress, void *user,
                                    struct kvc_error *err)
{
    struct study s = {.out = out};
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
        status = one(&s, i, err);
        if (progress && status == KVC_OK && !progress(user, "predict", i + 1, out->rows.n))
            status = kvc_fail(err, KVC_ERR_CANCELLED, "cancelled");
    }
    for (size_t i = 0; i < s.n_models; i++)
        kvc_step_model_destroy(s.models[i].model);
    kvc_free(s.models);
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
