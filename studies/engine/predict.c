/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/engine/predict.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "studies/engine/closed_disagg.h"
#include "studies/engine/recipe.h"

bool kvc_engine_configure(const struct kvc_engine_row *r, struct kvc_step_config *c,
                          char text[256])
{
    const char *why = r->unusable;

    text[0] = '\0';
    *c = (struct kvc_step_config){kvc_engine_row_llm(r), kvc_gpu_find(r->system), r->backend,
                                  KVC_BF16, KVC_BF16, r->tp, r->pp, .ep = 1, .dp = r->dp};
    if (why)
        ;
    else if (r->disagg && (!r->prefill.workers || !r->decode.workers))
        why = "disaggregated: how many workers is not stated";
    else if (!c->gpu)
        snprintf(text, 256, "no hardware profile '%s'", r->system);
    else if (!c->llm)
        snprintf(text, 256, "no model profile '%s'", r->model);
    else if (!kvc_engine_find(r->backend))
        snprintf(text, 256, "no engine profile '%s'", r->backend);
    else if (!kvc_engine_row_dtypes(r, c->llm, c->gpu, &c->weights, &c->kv))
        snprintf(text, 256, "no weights' format '%s'", *r->gemm ? r->gemm : r->precision);
    else if (r->moe_tp > 1 && r->moe_ep > 1 && r->moe_tp * r->moe_ep != r->tp * r->dp)
        why = "the experts' parallel sizes are those of another number of GPUs";
    if (why)
        snprintf(text, 256, "%s", why);
    if (c->llm && c->llm->experts && r->moe_ep > 1)
        c->ep = r->moe_ep;
    struct kvc_engine_recipe how;
    kvc_engine_recipe_of(r, &how);
    if (how.experts_dealt)
        c->ep = r->tp;
    c->quantise_apart = how.quantise_apart;
    c->experts_kernel = how.experts_kernel;
    c->narrow_experts = how.narrow_experts;
    c->foreign_products = how.foreign_products;
    c->graphed_prefill = how.graphed_prefill;
    c->captured_tokens = how.captured_tokens;
    if (how.kv)
        kvc_dtype_parse(how.kv, &c->kv);
    return text[0] == '\0';
}

static bool same(const struct kvc_step_config *a, const struct kvc_step_config *b)
{
    return a->llm == b->llm && a->gpu == b->gpu && strcmp(a->backend, b->backend) == 0 &&
           a->weights == b->weights && a->kv == b->kv && a->tp == b->tp &&
           a->pp == b->pp && a->ep == b->ep &&
           a->dp == b->dp &&
           a->experts_kernel == b->experts_kernel &&
           a->foreign_products == b->foreign_products &&
           a->graphed_prefill == b->graphed_prefill && a->kernels_alone == b->kernels_alone &&
           a->captured_tokens == b->captured_tokens &&
           a->quantise_apart == b->quantise_apart && a->narrow_experts == b->narrow_experts;
}

enum kvc_status kvc_engine_model_find(struct kvc_engine_models *models,
                                      const struct kvc_step_config *config, size_t *index,
                                      struct kvc_error *err)
{
    struct kvc_error why = {0};

    for (*index = 0; *index < models->n; ++*index)
        if (same(&models->model[*index].config, config))
            return KVC_OK;
    if (!kvc_grow((void **)&models->model, &models->cap, models->n + 1, sizeof *models->model))
        return kvc_fail_nomem(err);
    struct kvc_engine_model *m = &models->model[models->n++];
    memset(m, 0, sizeof *m);
    m->config = *config;
    m->engine = kvc_engine_find(config->backend);
    if (kvc_step_model_create(&m->model, config, &why) == KVC_ERR_NOMEM)
        return kvc_fail_nomem(err);
    if (!m->model)
        snprintf(m->text, sizeof m->text, "%.*s", (int)sizeof m->text - 1, why.text);
    return KVC_OK;
}

void kvc_engine_models_clear(struct kvc_engine_models *models)
{
    for (size_t i = 0; i < models->n; i++)
        kvc_step_model_destroy(models->model[i].model);
    kvc_free(models->model);
    memset(models, 0, sizeof *models);
}

static double kv_tokens(const struct kvc_engine_model *m, const struct kvc_engine_row *r,
                        const struct kvc_engine_recipe *how)
{
    double bytes = (double)kvc_step_kv_capacity_bytes(m->model, how->kv_share,
                                                      how->batching.max_batched_tokens);
    double tokens = (double)r->isl + r->osl;
    struct kvc_kv_room room;

    kvc_step_kv_room(m->model, true, false, &room);
    return room.token_share * bytes /
           ((double)room.token_bytes + (double)room.sequence_bytes / tokens);
}

bool kvc_engine_fits(const struct kvc_engine_model *m, const struct kvc_engine_row *r)
{
    struct kvc_engine_recipe how;

    kvc_engine_recipe_of(r, &how);
    return kv_tokens(m, r, &how) >= (double)r->isl + r->osl;
}

struct kvc_host_costs kvc_engine_host(const struct kvc_engine_profile *e)
{
    return (struct kvc_host_costs){e->host_per_step_ns.value, e->host_per_sequence_ns.value,
                                   e->host_per_prefill_step_ns.value, e->front_end_ns.value,
                                   e->front_end_token_ns.value};
}

/* What the clients saw; the band is that of the model their answers come from. */
static void tell(const struct kvc_engine_model *m, const struct kvc_closed_loop_result *seen,
                 struct kvc_engine_prediction *p)
{
    p->ttft_ms = seen->ttft_ns / 1e6;
    p->tpot_ms = seen->tpot_ns / 1e6;
    p->flags = seen->flags;
    kvc_step_band(m->model, seen->flags, &p->band);
}

enum kvc_status kvc_engine_predict(const struct kvc_engine_model *m,
                                   const struct kvc_engine_row *r,
                                   const struct kvc_host_costs *host,
                                   struct kvc_engine_prediction *p, struct kvc_error *err)
{
    struct kvc_closed_loop_result result;
    struct kvc_engine_recipe how;

    kvc_engine_recipe_of(r, &how);
    uint32_t requests = how.requests * r->clients;
    struct kvc_request_length *length = kvc_malloc(requests, sizeof *length);

    if (!length)
        return kvc_fail_nomem(err);
    kvc_client_lengths(length, requests, r->isl, r->osl, how.shortest);
    double room = kv_tokens(m, r, &how);
    how.batching.max_batched_tokens *= m->config.pp; /* a batch in each stage */
    struct kvc_closed_loop loop = {m->model, *host, how.batching, r->clients, requests, length,
                                   room};
    enum kvc_status status = kvc_closed_loop_run(&loop, &result, err);

    kvc_free(length);
    tell(m, &result, p);
    return status;
}

/* ---- disaggregated ---- */

void kvc_engine_side(const struct kvc_engine_row *r, bool prefill, struct kvc_engine_row *out)
{
    const struct kvc_row_workers *w = prefill ? &r->prefill : &r->decode;

    *out = *r;
    out->disagg = false;
    out->tp = w->tp;
    out->pp = w->pp;
    out->dp = w->dp ? w->dp : 1;
    out->moe_tp = w->moe_tp;
    out->moe_ep = w->moe_ep ? w->moe_ep : 1;
}

/* Each rank sends its part: over the NVLink that all GPUs of a rack share, else over its NIC. */
static double copy_ns_per_token(const struct kvc_step_config *c)
{
    bool rack = strncmp(c->gpu->id, "gb", 2) == 0;
    double rate = rack ? c->gpu->gpu_link_bytes_per_s.value : c->gpu->nic_bytes_per_s.value;

    return 1e9 * (double)kvc_llm_kv_bytes_per_token(c->llm, c->kv, c->tp) / c->tp / rate;
}

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    return b ? greatest_divisor(b, a % b) : a;
}

/* As many engines of each kind as have the same share of the clients. */
static void share(struct kvc_closed_disagg *loop)
{
    uint32_t by = greatest_divisor(greatest_divisor(loop->prefill.engines, loop->decode.engines),
                                   loop->clients);

    loop->prefill.engines /= by;
    loop->decode.engines /= by;
    loop->clients /= by;
}

enum kvc_status kvc_engine_predict_disagg(const struct kvc_engine_model *prefill,
                                          const struct kvc_engine_model *decode,
                                          const struct kvc_engine_row *r,
                                          const struct kvc_host_costs *host,
                                          struct kvc_engine_prediction *p, struct kvc_error *err)
{
    const struct kvc_link_profile *rdma = kvc_link_find("rdma-400");
    struct kvc_closed_loop_result result;
    struct kvc_engine_recipe how;

    kvc_engine_recipe_of(r, &how);
    struct kvc_closed_disagg loop = {
        {prefill->model, r->prefill.workers * prefill->config.dp, r->isl > 8192 ? r->isl : 8192, 0},
        {decode->model, r->decode.workers * decode->config.dp, 0, kv_tokens(decode, r, &how)},
        *host, r->clients, 0, NULL, rdma ? rdma->latency_ns.value : 0,
        copy_ns_per_token(&prefill->config)};
    share(&loop);
    loop.requests = how.requests * loop.clients;
    struct kvc_request_length *length = kvc_malloc(loop.requests, sizeof *length);
    if (!length)
        return kvc_fail_nomem(err);
    kvc_client_lengths(length, loop.requests, r->isl, r->osl, how.shortest);
    loop.length = length;
    enum kvc_status status = kvc_closed_disagg_run(&loop, &result, err);
    kvc_free(length);
    tell(decode, &result, p);
    return status;
}

uint64_t kvc_engine_configuration(const struct kvc_engine_row *r, const struct kvc_step_config *c)
{
    char key[4 * KVC_ROW_NAME];

    snprintf(key, sizeof key, "%s|%s|%s|%d|%u|%u|%u", c->llm->name, r->system, r->backend,
             (int)c->weights, r->tp, r->isl, r->osl);
    return kvc_rng_stream(0, key);
}
