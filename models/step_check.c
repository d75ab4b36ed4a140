/* SPDX-License-Identifier: Apache-2.0
 * Which models, formats and ways to share them out have step times; others are refused in words. */
#include <string.h>

#include "base/error.h"
#include "models/step_model.h"

/* Experts go whole to ep ranks, or in as many slices as there are more ranks than that. */
static enum kvc_status check_experts(const struct kvc_step_config *c, struct kvc_error *err)
{
    const struct kvc_llm *l = c->llm;
    uint32_t ranks = c->dp > 1 ? c->dp : c->tp, ep = c->ep > 1 ? c->ep : 1;

    if (ep > 1 && !l->experts)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "cluster.ep",
                           "expert parallel size %u: %s has no experts", ep, l->name);
    if (ep > 1 && (ranks % ep != 0 || l->experts % ep != 0))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "cluster.ep",
                           "%u does not divide the %u GPUs of a stage and the %u experts of %s: "
                           "experts are dealt to that many groups of GPUs, and cut within a group",
                           ep, ranks, l->experts, l->name);
    if (l->expert_intermediate % (ranks / ep) != 0)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "cluster.tp",
                           "%u slices do not divide the experts' width of %s", ranks / ep, l->name);
    return KVC_OK;
}

enum kvc_status kvc_step_check(const struct kvc_step_config *c, struct kvc_error *err)
{
    const struct kvc_llm *l = c->llm;
    uint32_t tp = c->tp;

    if (c->pp == 0 || c->pp > l->layers)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "cluster.pp",
                           "%u stages for the %u layers of %s; use 1 to as many as there are "
                           "layers", c->pp, l->layers, l->name);
    if (c->dp > 1 && (tp != 1 || !l->experts))
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "cluster.dp",
                           "%u data-parallel ranks of %s at tp %u: step times exist at tp 1, for "
                           "models with experts; copies of an engine are cluster.replicas", c->dp,
                           l->name, tp);
    if (c->dp > 1 && c->pp > 1)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "cluster.dp",
                           "%u data-parallel ranks with %u pipeline stages: step times exist for "
                           "one of them; leave one at 1", c->dp, c->pp);
    if (tp == 0 || l->heads % tp != 0)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "cluster.tp",
                           "%u does not divide the %u attention heads of %s; use a divisor", tp,
                           l->heads, l->name);
    if (!l->kv_lora_rank && l->kv_heads % tp != 0 && tp % l->kv_heads != 0)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "cluster.tp",
                           "%u neither divides nor is a multiple of the %u KV heads of %s", tp,
                           l->kv_heads, l->name);
    if (l->intermediate % tp != 0)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "cluster.tp",
                           "%u does not divide the feed-forward width of %s", tp, l->name);
    if (c->backend && c->gpu->no_backend && strcmp(c->backend, c->gpu->no_backend) == 0)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "engine.backend",
                           "%s does not run on %s; take another engine", c->backend, c->gpu->name);
    if (l->no_step_model)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "model",
                           "no step times for %s: %s; take a model that 'kvcast show model' lists "
                           "without this remark", l->name, l->no_step_model);
    if (c->weights == KVC_MXFP4 && !l->experts)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "weights_dtype",
                           "mxfp4 is for models with experts; %s has none", l->name);
    if (!kvc_kv_format(c->kv))
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "kv_dtype",
                           "KV is not stored as %s; 'kvcast show kv' lists formats",
                           kvc_dtype_name(c->kv));
    if ((l->kv_lora_rank || l->compressed_kv) && kvc_kv_format(c->kv)->value_bits < 8)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "kv_dtype",
                           "no kernels read a latent of fewer than 8 bits; use bf16 or fp8 with %s",
                           l->name);
    return check_experts(c, err);
}
