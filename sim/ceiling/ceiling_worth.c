/* SPDX-License-Identifier: Apache-2.0
 * What a block costs to compute again, by its place in a prompt.
 *
 * In seconds: the rate of a prefill chunk at that depth on one GPU, alone in its step, by the step
 * model; never less than a block's before it. Else in costs of a first block: attention to all
 * before it makes a block COST_TOKENS into a prompt twice as dear, as costaware has it. */
#include "sim/ceiling/ceiling_cost.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "models/models.h"

#define CHUNK_TOKENS 8192

struct worth {
    double *upto;
    uint32_t n; /* blocks of the longest path */
    uint32_t block_tokens;
};

static void by_formula(struct worth *w)
{
    double first_dearer = (double)w->block_tokens / KVC_COST_TOKENS;
    for (uint32_t k = 0; k < w->n; k++)
        w->upto[k + 1] = w->upto[k] + 1 + (double)k * first_dearer;
}

static void by_model(struct worth *w, const struct kvc_step_model *model)
{
    uint32_t size = w->block_tokens, tokens = size > CHUNK_TOKENS ? size : CHUNK_TOKENS;
    double dearest = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        uint64_t past = (uint64_t)k * size;
        struct kvc_chunk chunk = {tokens, past < UINT32_MAX ? (uint32_t)past : UINT32_MAX};
        double chunk_s = (double)kvc_step_ns(model, &chunk, 1, 0, 0, 0, NULL) * 1e-9;
        double block_s = chunk_s * size / tokens;
        dearest = block_s > dearest ? block_s : dearest;
        w->upto[k + 1] = w->upto[k] + dearest;
    }
}

static enum kvc_status step_model(struct kvc_step_model **out, const char *model,
                                  const char *kv_dtype, const char *gpu, struct kvc_error *err)
{
    struct kvc_step_config config = {.backend = "vllm", .tp = 1, .pp = 1, .ep = 1};
    uint64_t kv_bytes;
    enum kvc_status status = kvc_model_kv_bytes_per_token(model, kv_dtype, &kv_bytes, err);
    if (status)
        return status;
    config.llm = kvc_llm_find(model);
    config.gpu = kvc_gpu_find(gpu);
    if (!config.gpu) {
        const char *near = kvc_name_nearest(gpu, kvc_gpu_names());
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "gpu",
                           "there is no GPU \"%s\"%s%s%s; 'kvcast show hardware' lists them", gpu,
                           near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    }
    if (kv_dtype)
        kvc_dtype_parse(kv_dtype, &config.kv);
    kvc_dtype_parse(config.llm->weights_dtype, &config.weights);
    return kvc_step_model_create(out, &config, err);
}

enum kvc_status kvc_ceiling_worth(double **out, const struct kvc_trace *trace, const char *model,
                                  const char *kv_dtype, const char *gpu, struct kvc_error *err)
{
    struct kvc_step_model *steps = NULL;
    struct worth w = {0};
    enum kvc_status status = gpu ? step_model(&steps, model, kv_dtype, gpu, err) : KVC_OK;
    if (status || !trace)
        goto done;
    w.block_tokens = trace->block_tokens;
    for (uint32_t s = 0; s < trace->n_segments; s++)
        if (trace->seg_depth[s] + trace->seg_len[s] > w.n)
            w.n = trace->seg_depth[s] + trace->seg_len[s];
    w.upto = kvc_calloc((size_t)w.n + 1, sizeof(*w.upto));
    if (!w.upto)
        status = kvc_fail_nomem(err);
    else if (steps)
        by_model(&w, steps);
    else
        by_formula(&w);
    if (!status)
        *out = w.upto;
done:
    kvc_step_model_destroy(steps);
    return status;
}
