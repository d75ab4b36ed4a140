/* SPDX-License-Identifier: Apache-2.0
 * What the profiles make of a scenario, for the slow replay. */
#include <math.h>
#include <string.h>

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

static void own_link(struct twin_link *out, const struct kvc_scenario *sc, int k,
                     uint64_t kv_bytes_per_token)
{
    const struct kvc_tier_config *t = &sc->tiers[k];
    const struct kvc_link_profile *named = t->link[0] ? kvc_link_find(t->link) : NULL;
    uint32_t devices = k == 1 ? 1 : sc->cluster.tp * sc->cluster.pp;
    uint32_t chunk = t->chunk_tokens ? t->chunk_tokens : sc->engine.page_tokens;

    devices = t->link_devices ? t->link_devices : devices;
    if (!named) {
        out->read_bytes_per_s = out->write_bytes_per_s =
            t->link_bytes_per_s * t->link_efficiency * devices;
        out->latency_ns = t->link_latency_ns;
        return;
    }
    out->read_bytes_per_s = named->read_bytes_per_s.value * devices;
    out->write_bytes_per_s = named->write_bytes_per_s.value * devices;
    out->both_bytes_per_s = named->both_bytes_per_s.value * devices;
    out->latency_ns = (uint64_t)(named->latency_ns.value + 0.5);
    out->per_op_ns = named->per_op_ns.value;
    out->op_bytes = chunk * kv_bytes_per_token;
}

bool twin_setup_from_scenario(struct twin_setup *out, const struct kvc_scenario *sc,
                              struct kvc_step_model **model)
{
    const struct kvc_llm *llm = kvc_llm_find(sc->model);
    const struct kvc_gpu *gpu = kvc_gpu_find(sc->cluster.gpu);
    struct kvc_step_config config = {.llm = llm, .gpu = gpu, .backend = sc->engine.backend,
                                     .tp = sc->cluster.tp, .pp = sc->cluster.pp,
                                     .ep = sc->cluster.ep};
    const struct kvc_link_profile *host = gpu ? kvc_link_find(gpu->host_link) : NULL;
    double devices = sc->cluster.tp * sc->cluster.pp;
    uint64_t page_bytes;

    memset(out, 0, sizeof *out);
    if (!llm || !gpu || !host || !kvc_dtype_parse(sc->weights_dtype, &config.weights) ||
        !kvc_dtype_parse(sc->kv_dtype, &config.kv) ||
        kvc_step_model_create(model, &config, NULL) != KVC_OK)
        return false;
    out->kv_bytes_per_token = kvc_llm_kv_bytes_per_token(llm, config.kv, sc->cluster.tp);
    page_bytes = out->kv_bytes_per_token * sc->engine.page_tokens;
    out->pages = sc->engine.kv_cache_memory_bytes / page_bytes - 1;
    out->clock = (struct twin_clock){*model, model_step, model_decode, kvc_step_front_ns(*model)};
    out->router = kvc_router_ops_of(kvc_router_find(sc->router.policy));
    out->links[0] = (struct twin_link){
        .read_bytes_per_s = host->read_bytes_per_s.value * devices,
        .write_bytes_per_s = host->write_bytes_per_s.value * devices,
        .both_bytes_per_s = host->both_bytes_per_s.value * devices,
        .latency_ns = (uint64_t)(host->latency_ns.value + 0.5)};
    for (int k = 0; k < 3; k++)
        if (sc->tiers[k].present)
            own_link(&out->links[1 + k], sc, k, out->kv_bytes_per_token);
    if (sc->tiers[0].present)
        out->links[0] = out->links[1];
    return out->router != NULL;
}
