/* SPDX-License-Identifier: Apache-2.0
 * What a result rests on: every figure with its source. */
#include "sim/replay/collect.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "models/profiles.h"
#include "models/user_profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct notes {
    struct kvc_result *r;
    size_t cap;
    bool nomem;
};

static void assume(void *user, const char *group, const char *name, const char *value,
                   const char *kind, const char *source)
{
    struct notes *n = user;
    struct kvc_result *r = n->r;
    if (!kvc_grow((void **)&r->assumptions, &n->cap, r->n_assumptions + 1,
                  sizeof(*r->assumptions))) {
        n->nomem = true;
        return;
    }
    struct kvc_assumption *a = &r->assumptions[r->n_assumptions++];
    snprintf(a->group, sizeof(a->group), "%s", group);
    snprintf(a->name, sizeof(a->name), "%s", name);
    snprintf(a->value, sizeof(a->value), "%s", value);
    snprintf(a->kind, sizeof(a->kind), "%s", kind);
    snprintf(a->source, sizeof(a->source), "%s", source);
}

/* A figure of a profile, or the scenario's own value in its place. */
static void price(struct notes *n, const char *name, double given, struct kvc_figure profile,
                  const char *unit)
{
    char value[64];
    snprintf(value, sizeof(value), "%.4g %s", isnan(given) ? profile.value : given, unit);
    assume(n, "price", name, value, isnan(given) ? profile.kind : "scenario",
           isnan(given) ? profile.source : "given in the scenario");
}

static void explain_prices(struct notes *n, const struct kvc_engine *e)
{
    const struct kvc_scenario *sc = e->sc;
    const struct kvc_prices *p = kvc_prices_default();
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, sc->cluster.gpu);
    price(n, "GPU rental", sc->prices.gpu_hour_usd, gpu->usd_per_hour, "USD per GPU and hour");
    if (sc->tiers[0].present)
        price(n, "DRAM", sc->prices.dram_gb_month_usd, p->dram_gb_month_usd,
              "USD per GB and month");
    if (sc->tiers[1].present)
        price(n, "NVMe", sc->prices.nvme_gb_month_usd, p->nvme_gb_month_usd,
              "USD per GB and month");
    if (sc->tiers[2].present) {
        price(n, "remote store", sc->prices.remote_gb_month_usd, p->remote_gb_month_usd,
              "USD per GB and month");
        price(n, "network", NAN, p->network_usd_per_hour_per_gpu, "USD per GPU and hour");
    }
    if (isnan(sc->prices.power_usd_per_kwh)) {
        assume(n, "price", "power", "in the rental price", "assumed",
               "set prices.power_usd_per_kwh for hardware you own");
    } else {
        struct kvc_figure none = {0};
        price(n, "power", sc->prices.power_usd_per_kwh, none, "USD per kWh");
        price(n, "power usage effectiveness", NAN, p->pue, "");
    }
}

/* What operations of this size and number make of the figures. */
static void explain_use(struct notes *n, const struct kvc_engine *e, const char *tier,
                        const struct kvc_tier_config *c, const struct kvc_link_profile *l)
{
    double op = kvc_tier_op_bytes(e, c), devices = kvc_tier_devices(e, c);
    char label[96], value[160], size[32];
    struct kvc_link_use read, write;
    kvc_link_use_of(&read, l, false, op, devices);
    kvc_link_use_of(&write, l, true, op, devices);
    kvc_format_bytes((uint64_t)op, size, sizeof(size));
    snprintf(label, sizeof(label), "%s: %s as used", tier, l->name);
    snprintf(value, sizeof(value), "%.4g GB/s in, %.4g GB/s out by operations of %s on %g device%s",
             read.bytes_per_s * 1e-9, write.bytes_per_s * 1e-9, size, devices,
             devices == 1 ? "" : "s");
    assume(n, "link", label, value, "derived",
           "the link's figures at this size (docs/models.md): per operation, operations a second, "
           "those under way, all devices together");
}

static void explain_link(struct notes *n, const struct kvc_engine *e, const char *tier,
                         const char *name, const struct kvc_tier_config *c)
{
    struct kvc_link_profile l;
    if (!kvc_tier_link(e, name, c, &l))
        return;
    char label[64], value[64];
    const struct { const char *what; struct kvc_figure f; double scale; const char *unit; } v[] = {
        {"read", l.read_bytes_per_s, 1e-9, "GB/s per device"},
        {"write", l.write_bytes_per_s, 1e-9, "GB/s per device"},
        {"latency", l.latency_ns, 1e-3, "us"},
        {"per operation", l.per_op_ns, 1e-3, "us"},
        {"queue depth", l.queue_depth, 1, "operations"},
        {"both ways at once", l.both_bytes_per_s, 1e-9, "GB/s per device"},
        {"latency of an operation", l.op_latency_ns, 1e-3, "us"},
        {"operations a second", l.ops_per_s, 1, "per device"},
        {"one operation", l.stream_bytes_per_s, 1e-9, "GB/s"},
        {"read, all devices", l.all_read_bytes_per_s, 1e-9, "GB/s"},
        {"write, all devices", l.all_write_bytes_per_s, 1e-9, "GB/s"},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        if (!v[i].f.source || (i >= 4 && !(v[i].f.value > 0))) /* no limit */
            continue;
        snprintf(label, sizeof(label), "%s: %s %s", tier, l.name, v[i].what);
        snprintf(value, sizeof(value), "%.4g %s", v[i].f.value * v[i].scale, v[i].unit);
        assume(n, "link", label, value, v[i].f.kind, v[i].f.source);
    }
    explain_use(n, e, tier, c, &l);
}

/* The engine's figure, or the scenario's own in its place. */
static void explain_load(struct notes *n, const char *name, uint64_t ns,
                         const struct kvc_figure *figure)
{
    char value[32];
    bool own = ns != (uint64_t)(figure->value + 0.5);
    kvc_format_ns(ns, value, sizeof(value));
    assume(n, "engine", name, value, own ? "scenario" : figure->kind,
           own ? "given in the scenario" : figure->source);
}

static void explain_cold(struct notes *n, const struct kvc_engine *e)
{
    struct kvc_engine_profile engine;
    char value[32];
    if (!e->sc->engine.cold || !kvc_user_engine(e->user, e->sc->engine.backend, &engine))
        return;
    bool any = kvc_step_compiles(e->model);
    kvc_format_ns(any ? (uint64_t)(engine.compile_ns.value + 0.5) : 0, value, sizeof(value));
    assume(n, "engine", "cold: a step waits for kernels that it is the first to use", value,
           any ? engine.compile_ns.kind : "assumed",
           any ? engine.compile_ns.source
               : "known of vLLM's experts of bf16 weights only: this run is as if long started");
}

static void explain_tiers(struct notes *n, const struct kvc_engine *e)
{
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, e->sc->cluster.gpu);
    const struct kvc_engine_profile *engine = kvc_engine_find(e->sc->engine.backend);
    if (e->first_tier < KVC_LOWER_TIERS) {
        explain_load(n, "load from below HBM, beside its transfer", e->sc->engine.kv_load_ns,
                     &engine->kv_load_ns);
        explain_load(n, "the same for each token", e->sc->engine.kv_load_token_ns,
                     &engine->kv_load_token_ns);
    }
    if (e->first_tier < KVC_LOWER_TIERS && !e->sc->tiers[0].present)
        explain_link(n, e, "host link", gpu->host_link, NULL);
    for (uint32_t k = 0; k < KVC_LOWER_TIERS; k++) {
        const struct kvc_tier_config *c = &e->sc->tiers[k];
        if (!c->present)
            continue;
        if (!c->link[0]) {
            char value[64];
            snprintf(value, sizeof(value), "%.4g GB/s x %.3g", c->link_bytes_per_s * 1e-9,
                     c->link_efficiency);
            assume(n, "link", c->name, value, "scenario", "given in the scenario");
        }
        explain_link(n, e, c->name, c->link, c);
    }
}

/* What a running sequence takes of the room for KV beside its tokens. */
static void explain_sequences(struct notes *n, const struct kvc_engine *e)
{
    const struct kvc_kv_room *room = &e->room;
    char value[96];
    if (e->sequence_pages) {
        snprintf(value, sizeof(value), "%.4g MB", (double)(e->sequence_pages * e->page_tokens *
                                                           e->token_bytes) * 1e-6);
        bool given = e->sc->engine.sequence_memory_bytes > 0;
        assume(n, "engine", "KV beside a sequence's tokens", value,
               given ? "scenario" : "published", given ? "engine.sequence_memory" : room->source);
    }
    if (room->apart_bytes && !e->sc->engine.kv_cache_memory_bytes) {
        snprintf(value, sizeof(value), "%.3g of the room, %.4g MB a running sequence",
                 1 - room->token_share, (double)room->apart_bytes * 1e-6);
        assume(n, "engine", "pool of states", value, "published", room->source);
    }
}

static void explain_traffic(struct notes *n, const struct kvc_engine *e,
                            const struct kvc_trace_stats *s)
{
    const struct kvc_scenario *sc = e->sc;
    bool open = sc->arrivals.mode != KVC_ARRIVALS_CLOSED;
    bool paced = sc->arrivals.mode == KVC_ARRIVALS_PACED;
    char value[64];
    assume(n, "traffic", "arrivals", paced  ? "as logged, each turn after the last"
           : open ? "as logged (open loop)" : "closed loop", "scenario",
           open                  ? "timestamps of the trace"
           : sc->arrivals.rounds ? "a turn of all sessions at a time; a client sends when one ends"
                                 : "a client sends its next request when one ends");
    snprintf(value, sizeof(value), "%u tokens", s->block_tokens);
    assume(n, "traffic", "prefix identity", s->has_prefix ? value : "none in the log", "measured",
           "the trace's own block ids; nothing finer is invented");
    if (e->n_replicas > 1 && e->router.ops->assumed)
        assume(n, "router", e->sc->router.policy, e->router.ops->assumed, "assumed",
               "kvcast's own rule; 0 as router.load_weight follows the cache only");
    snprintf(value, sizeof(value), "%u tokens", e->page_tokens);
    assume(n, "engine", "page", value, "published", "vLLM CacheConfig, default block size");
    explain_sequences(n, e);
    snprintf(value, sizeof(value), "%llu bytes", (unsigned long long)e->token_bytes);
    assume(n, "model", "KV per token, one replica, all ranks", value, "published",
           "layers x KV heads (replicated where tp exceeds them) x head size x bytes, or the MLA "
           "latent; the model's public configuration");
}

enum kvc_status kvc_collect_explain(const struct kvc_engine *e, const struct kvc_trace_stats *stats,
                                    struct kvc_result *r, struct kvc_error *err)
{
    struct notes n = {.r = r};
    const struct kvc_llm *llm = kvc_llm_find(e->sc->model);
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, e->sc->cluster.gpu);
    uint32_t gpus = e->sc->cluster.tp * e->sc->cluster.pp;
    uint32_t replicas = e->sc->cluster.replicas, ranks = e->sc->cluster.dp;
    snprintf(r->title, sizeof(r->title), "%s %s, KV %s, on %u x %s (%u replica%s of %u%s)",
             llm->name, e->sc->weights_dtype, e->sc->kv_dtype, gpus * e->n_replicas, gpu->name,
             replicas, replicas == 1 ? "" : "s", gpus * ranks,
             ranks > 1 ? " data-parallel ranks" : "");
    explain_traffic(&n, e, stats);
    kvc_step_explain(e->model, assume, &n);
    explain_cold(&n, e);
    explain_tiers(&n, e);
    explain_prices(&n, e);
    return n.nomem ? kvc_fail_nomem(err) : KVC_OK;
}
