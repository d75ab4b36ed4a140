/* SPDX-License-Identifier: Apache-2.0
 * Every figure a step model rests on, for the assumptions table. */
#include <stdio.h>
#include <string.h>

#include "models/step_model.h"

struct teller {
    kvc_figure_fn fn;
    void *user;
};

static void tell(const struct teller *t, const char *group, const char *name,
                 const struct kvc_figure *f, double divide, const char *unit)
{
    char value[64];

    snprintf(value, sizeof value, "%.6g %s", f->value / divide, unit);
    t->fn(t->user, group, name, value, f->kind, f->source);
}

static void tell_kv(const struct teller *t, const struct kvc_step_model *m)
{
    const struct kvc_kv_format *f = kvc_kv_format(m->kv);
    char value[128];

    if (f->decode_cost.value != 1) {
        snprintf(value, sizeof value, "%g times that of %s KV", f->decode_cost.value,
                 kvc_dtype_name(f->kernel));
        t->fn(t->user, "kernels", "decode attention of this KV", value, f->decode_cost.kind,
              f->decode_cost.source);
    }
    if (m->kv_resident < 1) {
        snprintf(value, sizeof value, "%g of the context attended", m->kv_resident);
        t->fn(t->user, "kernels", "token eviction", value, "assumed",
              "engine.kv_resident; choosing the tokens costs nothing here");
    }
    for (const struct kvc_kv_quality *q = f->quality; q && q->model; q++) {
        snprintf(value, sizeof value, "%s: %g", q->measure, q->value);
        t->fn(t->user, "quality", q->model, value, "published", q->source);
    }
    if (!f->quality && m->kv != KVC_BF16)
        t->fn(t->user, "quality", f->name, "no published figure", "assumed", "none was found");
}

static void tell_kernels(const struct teller *t, const struct kvc_step_model *m)
{
    char value[64];

    kvc_kernels_used(m->kernels, t->fn, t->user);
    t->fn(t->user, "kernels", "prefill behind cached tokens", "time per query and key as without",
          "assumed", "no public kernel table has a prefix on this GPU; extrapolated");
    if (m->tp > 1 && !m->allreduce_measured) {
        snprintf(value, sizeof value, "%g us + bytes / %.4g GB/s", m->allreduce_latency_ns / 1e3,
                 m->allreduce_bytes_per_s / 1e9);
        t->fn(t->user, "kernels", "all-reduce", value, "assumed",
              "shares of the link as measured on others (docs/models.md), not for this GPU and "
              "count");
    }
    if (m->llm.experts && !m->moe_table)
        t->fn(t->user, "kernels", "experts", "closed form, 17-46 % off", "assumed",
              "H100's bf16 form (own fit of aiconfigurator tables @095f58a), 0.8 of the bandwidth; "
              "no table of this dtype");
    tell_kv(t, m);
    if (m->llm.linear_layers && !m->linear_measured)
        t->fn(t->user, "kernels", "linear attention", "products and state traffic only", "assumed",
              "no kernels measured");
    if (m->llm.sparse_tokens)
        t->fn(t->user, "kernels", "sparse attention", "closed form: selected keys, indexer",
              "assumed", "0.4 of peak, as tables of dsa_context_module (aiconfigurator @095f58a)");
}

static void tell_pipeline(const struct teller *t, const struct kvc_step_model *m)
{
    uint32_t layers = m->llm.layers, last = kvc_stage_layers(layers, m->stages, m->stages - 1);
    bool measured = strcmp(m->gpu.id, "h100_sxm") == 0;
    char value[96];

    snprintf(value, sizeof value, "%u, the last of %u layers, %g GB of weights", m->stages, last,
             kvc_step_weight_bytes(m, m->stages - 1) / 1e9);
    t->fn(t->user, "engine", "pipeline stages", value, "published",
          "vLLM get_pp_indices: what layers are left over go in front of the last stage");
    t->fn(t->user, "engine", "batches in flight", "as many as stages, of equal size", "assumed",
          "docs/models.md; vLLM keeps up to as many, of the sizes that arrivals leave");
    snprintf(value, sizeof value, "%.3g us for a batch of one token, %.3g us for one of %u",
             kvc_token_table_at(&m->hop, 1) / 1e3,
             kvc_token_table_at(&m->hop, m->batch_tokens) / 1e3, m->batch_tokens);
    t->fn(t->user, "kernels", "from stage to stage", value, measured ? "fitted" : "assumed",
          "own fit of vidur network_h100_dgx_send_recv.csv @7d475133, as shares of this GPU's "
          "links");
}

void kvc_step_explain(const struct kvc_step_model *model, kvc_figure_fn fn, void *user)
{
    const struct teller t = {fn, user};
    const struct kvc_gpu *g = &model->gpu;
    const struct kvc_engine_profile *e = &model->engine;
    char value[64];

    tell(&t, "gpu", "memory as drivers report it", &g->memory_bytes, 1e9, "GB");
    tell(&t, "gpu", "HBM bandwidth", &g->hbm_bytes_per_s, 1e9, "GB/s");
    tell(&t, "gpu", "bf16 peak", &g->bf16_flops, 1e12, "TFLOP/s");
    tell(&t, "gpu", "fp8 peak", &g->fp8_flops, 1e12, "TFLOP/s");
    tell(&t, "gpu", "power limit", &g->tdp_w, 1, "W");
    snprintf(value, sizeof value, "%u layers, hidden %u, %u/%u heads of %u", model->llm.layers,
             model->llm.hidden, model->llm.heads, model->llm.kv_heads, model->llm.head_dim);
    fn(user, "model", model->llm.name, value, "published", model->llm.source);
    snprintf(value, sizeof value, "%.1f GB on each of %u GPUs",
             kvc_step_weight_bytes(model, 0) / 1e9, model->tp);
    fn(user, "model", "weights", value, "assumed",
       "parameters x bytes; embeddings and head in bf16");
    tell_kernels(&t, model);
    if (model->stages > 1)
        tell_pipeline(&t, model);
    tell(&t, "engine", "host time of a step", &e->host_per_step_ns, 1e3, "us");
    tell(&t, "engine", "host time of a sequence", &e->host_per_sequence_ns, 1e3, "us");
    if (model->eager_ns > 0)
        tell(&t, "engine", "launch of a kernel in a step with prefill", &e->eager_launch_ns, 1e3,
             "us");
    if (e->mixed_step_share.value > 0)
        tell(&t, "engine", "prompts beside decodes take longer by", &e->mixed_step_share, 0.01,
             "%");
    tell(&t, "engine", "host time of a step with prefill", &e->host_per_prefill_step_ns, 1e6, "ms");
    tell(&t, "engine", "front end and client", &e->front_end_ns, 1e6, "ms");
    tell(&t, "engine", "small kernels of a layer", &e->elementwise_launch_ns, 1e3, "us");
    if (model->quantise_ns > 0) {
        snprintf(value, sizeof value, "%.6g us", model->quantise_ns / 1e3);
        fn(user, "engine", "quantise launch fused away", value, "fitted",
           "model form checked on public engine rows (aiconfigurator silicon_sample.csv @095f58a)");
    }
    tell(&t, "engine", "memory overhead of a rank", &e->memory_overhead_bytes, 1e9, "GB");
    fn(user, "engine", "activations of a step", "2 B x tokens x widths + logits", "assumed",
       "docs/models.md");
}
