/* SPDX-License-Identifier: Apache-2.0
 * What the profiles make of a scenario, for the slow replay. */
#include <math.h>
#include <string.h>

#include "models/profiles.h"
#include "tests/replay_case.h"

static uint64_t model_step(const void *user, const struct kvc_chunk *chunks, size_t n_chunks,
                           uint32_t n_decode, uint64_t context, uint32_t n_sampled,
                           uint64_t *host_ns)
{
    return kvc_step_ns(user, chunks, n_chunks, n_decode, context, n_sampled, host_ns);
}

static void model_decode(const void *user, uint32_t n_decode, uint64_t context,
                         struct kvc_decode_cost *out)
{
    kvc_step_decode(user, n_decode, context, out);
}

static uint64_t model_spacing(const void *user, const struct kvc_chunk *chunks, size_t n_chunks,
                              uint32_t n_decode, uint64_t context, uint32_t n_sampled,
                              uint32_t *batch)
{
    return kvc_step_spacing_ns(user, chunks, n_chunks, n_decode, context, n_sampled, batch);
}

static uint64_t model_rank(const void *user, const struct kvc_chunk *chunks, size_t n_chunks,
                           uint32_t n_decode, uint64_t context, uint32_t n_sampled,
                           uint64_t sum, uint64_t most, uint64_t *host_ns)
{
    return kvc_step_rank_ns(user, chunks, n_chunks, n_decode, context, n_sampled,
                            kvc_step_tokens_of_all(user, sum, most), host_ns);
}

/* A link whose devices move operations of op bytes, depth of them under way on each (0: enough). */
static void figures(struct twin_link *out, const struct kvc_link_profile *l, double op,
                    double depth, double devices)
{
    const double rate[2] = {l->read_bytes_per_s.value, l->write_bytes_per_s.value};
    const double all[2] = {l->all_read_bytes_per_s.value, l->all_write_bytes_per_s.value};
    double used[2], answer = l->latency_ns.value;

    if (l->op_latency_ns.value > 0 && l->op_latency_ns.value < answer)
        answer = l->op_latency_ns.value;
    out->setup_ns = l->latency_ns.value - answer;
    out->slots = depth * devices;
    out->op_bytes = op;
    for (int d = 0; d < 2; d++) {
        double wire = op / rate[d] * 1e9, busy = wire + l->per_op_ns.value, alone = rate[d];

        if (l->ops_per_s.value > 0 && 1e9 / l->ops_per_s.value > busy)
            busy = 1e9 / l->ops_per_s.value;
        out->wide[d] = rate[d] * devices * (wire / busy);
        if (all[d] > 0 && out->wide[d] > (all[d] > rate[d] ? all[d] : rate[d]))
            out->wide[d] = all[d] > rate[d] ? all[d] : rate[d];
        if (l->stream_bytes_per_s.value > 0 && l->stream_bytes_per_s.value < alone)
            alone = l->stream_bytes_per_s.value;
        out->each_ns[d] = answer + l->per_op_ns.value + op / alone * 1e9;
        used[d] = out->wide[d];
        if (depth > 0 && out->slots * op / out->each_ns[d] * 1e9 < used[d])
            used[d] = out->slots * op / out->each_ns[d] * 1e9;
    }
    out->read_bytes_per_s = used[0];
    out->write_bytes_per_s = used[1];
    out->both_bytes_per_s = l->both_bytes_per_s.value * devices;
    out->latency_ns = (uint64_t)(l->latency_ns.value + 0.5);
}

static void own_link(struct twin_link *out, const struct kvc_scenario *sc, int k,
                     uint64_t kv_bytes_per_token)
{
    const struct kvc_tier_config *t = &sc->tiers[k];
    double gpus = sc->cluster.tp * sc->cluster.pp;
    double devices = t->link_devices ? t->link_devices : k == 1 ? 1 : gpus;
    double chunk = t->chunk_tokens ? t->chunk_tokens : sc->engine.page_tokens;
    double op = chunk * (double)kv_bytes_per_token / gpus, depth = t->link_queue_depth;
    struct kvc_link_profile own = {
        .read_bytes_per_s.value = t->link_bytes_per_s * t->link_efficiency,
        .write_bytes_per_s.value = t->link_bytes_per_s * t->link_efficiency,
        .latency_ns.value = (double)t->link_latency_ns};
    const struct kvc_link_profile *l = t->link[0] ? kvc_link_find(t->link) : &own;

    if (t->link_io_bytes)
        op = fmin(op, (double)t->link_io_bytes);
    else if (t->connector) /* Llama: keys and values of every layer, each stage its own layers */
        op = fmin(op, sc->engine.page_tokens * (double)kv_bytes_per_token / sc->cluster.tp / 2 /
                          kvc_llm_find(sc->model)->layers);
    struct kvc_link_profile slower = *l;
    if (t->connector) { /* as both are published */
        double pieces = t->connector == KVC_CONNECTOR_NIXL ? 700e3 : 550e3;
        if (l->ops_per_s.value <= 0 || l->ops_per_s.value > pieces)
            slower.ops_per_s.value = pieces;
        l = &slower;
    }
    if (depth == 0)
        depth = l->queue_depth.value;
    figures(out, l, op, depth, devices);
}

bool twin_setup_from_scenario(struct twin_setup *out, const struct kvc_scenario *sc)
{
    const struct kvc_llm *llm = kvc_llm_find(sc->model);
    const struct kvc_gpu *gpu = kvc_gpu_find(sc->cluster.gpu);
    const struct kvc_step_model *model = replay_step_times(sc);
    enum kvc_dtype kv;
    const struct kvc_link_profile *host = gpu ? kvc_link_find(gpu->host_link) : NULL;
    double devices = sc->cluster.tp * sc->cluster.pp;
    uint64_t page_bytes;

    memset(out, 0, sizeof *out);
    if (!llm || !gpu || !host || !model || !kvc_dtype_parse(sc->kv_dtype, &kv))
        return false;
    out->kv_bytes_per_token = kvc_llm_kv_bytes_per_token(llm, kv, sc->cluster.tp);
    page_bytes = out->kv_bytes_per_token * sc->engine.page_tokens;
    out->pages = sc->engine.kv_cache_memory_bytes / page_bytes - 1;
    while (out->sequence_pages * page_bytes < sc->engine.sequence_memory_bytes)
        out->sequence_pages++;
    out->clock = (struct twin_clock){model, model_step, model_decode, kvc_step_front_ns(model),
                                     model_spacing, model_rank};
    if (sc->engine.cold && llm->experts && strcmp(sc->weights_dtype, "bf16") == 0 &&
        strcmp(sc->engine.backend, "vllm") == 0) {
        out->compile.ns = (uint64_t)kvc_engine_find("vllm")->compile_ns.value;
        out->compile.captured = sc->engine.max_seqs < 256 ? 2 * sc->engine.max_seqs : 512;
        out->compile.top_k = llm->top_k;
        out->compile.experts = llm->experts;
    }
    out->router = kvc_router_named(sc->router.policy);
    figures(&out->links[0], host, (double)page_bytes / devices, 0, devices);
    for (int k = 0; k < 3; k++)
        if (sc->tiers[k].present)
            own_link(&out->links[1 + k], sc, k, out->kv_bytes_per_token);
    if (sc->tiers[0].present)
        out->links[0] = out->links[1];
    return out->router != NULL;
}
