/* SPDX-License-Identifier: Apache-2.0
 * What other formats of the weights, and another kernel of the experts, would make of the steps of
 * a run. */
#include "sim/replay/collect.h"

#include "models/profiles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SLOWER 1.05 /* less is within the error of the tables */

/* Steps as the run had them: its fullest batch of decodes, its largest chunk. */
struct steps {
    uint32_t decodes, chunk;
    uint64_t context;
};

struct times {
    double decode, chunk;
    bool between; /* kernels that were not measured */
};

static struct steps steps_of(const struct kvc_engine *e, const struct kvc_result *r)
{
    struct steps s = {.decodes = 1};
    uint32_t budget = e->sc->engine.max_batched_tokens;
    uint64_t input = 0;
    for (uint32_t i = 0; i < e->n_replicas; i++)
        if (e->replicas[i].peak_running > s.decodes)
            s.decodes = e->replicas[i].peak_running;
    for (uint64_t i = 0; i < r->n_requests; i++) {
        input += r->requests[i].input_tokens;
        if (r->requests[i].input_tokens > s.chunk)
            s.chunk = r->requests[i].input_tokens;
    }
    s.chunk = s.chunk > budget ? budget : s.chunk;
    s.context = r->n_requests ? s.decodes * (input / r->n_requests + 1) : s.decodes;
    return s;
}

static void times_of(const struct kvc_step_model *m, const struct steps *s, struct times *out)
{
    const struct kvc_chunk chunk = {s->chunk, 0};
    out->decode = (double)kvc_step_ns(m, NULL, 0, s->decodes, s->context, s->decodes, NULL);
    out->chunk = s->chunk ? (double)kvc_step_ns(m, &chunk, 1, 0, 0, 1, NULL) : 0;
    out->between = kvc_step_flags(m, &chunk, s->chunk > 0, s->decodes, s->context) & KVC_STEP_SHAPE;
}

/* Times as shares of those in base; false: no kernels of that kind. */
static bool compare(const struct kvc_engine *e, const struct steps *s, enum kvc_dtype weights,
                    const char *experts, const struct times *base, struct times *out)
{
    struct kvc_step_config config;
    struct kvc_engine_profile engine;
    struct kvc_step_model *m = NULL;
    if (kvc_engine_step_config(e, &config, &engine, NULL) != KVC_OK)
        return false;
    config.weights = weights;
    config.experts_kernel = experts;
    if (kvc_step_model_create_with(&m, &config, &engine, NULL) != KVC_OK)
        return false;
    times_of(m, s, out);
    kvc_step_model_destroy(m);
    out->decode /= base->decode;
    out->chunk = base->chunk > 0 ? out->chunk / base->chunk : 1;
    return true;
}

/* The format that makes the run's steps shortest, of those as well measured as this one. */
static bool find_better(const struct kvc_engine *e, const struct steps *s, enum kvc_dtype weights,
                        const struct times *own, struct times *out, const char **name)
{
    static const enum kvc_dtype formats[] = {KVC_FP8, KVC_FP8_BLOCK, KVC_NVFP4};
    double least = HUGE_VAL;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        struct times t;
        if (formats[i] == weights || !compare(e, s, formats[i], NULL, own, &t) ||
            t.between > own->between || t.decode + t.chunk >= least)
            continue;
        least = t.decode + t.chunk;
        *out = t;
        *name = kvc_dtype_name(formats[i]);
    }
    return least < HUGE_VAL;
}

bool kvc_slower_weights(const struct kvc_engine *e, const struct kvc_result *r, char *text,
                        size_t size)
{
    struct times own, plain, better = {0};
    enum kvc_dtype weights;
    const char *name = "";
    if (e->model_is_lent || !kvc_dtype_parse(e->sc->weights_dtype, &weights) || weights == KVC_BF16)
        return false;
    struct steps s = steps_of(e, r);
    times_of(e->model, &s, &own);
    if (!compare(e, &s, KVC_BF16, NULL, &own, &plain) ||
        (plain.decode * SLOWER >= 1 && plain.chunk * SLOWER >= 1))
        return false;
    const char *which = plain.chunk * SLOWER >= 1    ? "steps that decode"
                        : plain.decode * SLOWER >= 1 ? "steps with prompts"
                                                     : "steps";
    int n = snprintf(text, size,
                     "By the kernels used, %s weights make %s longer than bf16 would: one that "
                     "decodes %u %.2f times as long, one of %u prompt tokens %.2f times.",
                     e->sc->weights_dtype, which, s.decodes, 1 / plain.decode, s.chunk,
                     1 / plain.chunk);
    if (n > 0 && (size_t)n < size && find_better(e, &s, weights, &own, &better, &name) &&
        better.decode < plain.decode * SLOWER && better.chunk < plain.chunk * SLOWER)
        snprintf(text + n, size - (size_t)n, " weights_dtype %s: %.2f and %.2f times bf16's.", name,
                 better.decode / plain.decode, better.chunk / plain.chunk);
    return true;
}

bool kvc_slower_experts(const struct kvc_engine *e, const struct kvc_result *r, char *text,
                        size_t size)
{
    struct times own, usual;
    enum kvc_dtype weights;
    if (e->model_is_lent || strcmp(e->sc->engine.backend, "trtllm") != 0 ||
        !kvc_dtype_parse(e->sc->weights_dtype, &weights) || weights != KVC_NVFP4 ||
        !kvc_llm_find(e->sc->model)->experts)
        return false;
    struct steps s = steps_of(e, r);
    times_of(e->model, &s, &own);
    if (!compare(e, &s, weights, "cutlass", &own, &usual) ||
        (usual.decode <= SLOWER && usual.chunk <= SLOWER))
        return false;
    snprintf(text, size,
             "nvfp4 experts are taken to run with moe_config.backend: TRTLLM, as TensorRT-LLM's "
             "guides have it. With its default, CUTLASS, a step that decodes %u takes %.2f times "
             "as long, one of %u prompt tokens %.2f times.",
             s.decodes, usual.decode, s.chunk, usual.chunk);
    return true;
}
