/* SPDX-License-Identifier: Apache-2.0
 * What a result rests on: every figure with its source, warnings, error bands. */
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

#define SLOW_GPU_LINK 150e9 /* bytes/s: PCIe and networks lie below, NVLink and the like above */

struct notes {
    struct kvc_result *r;
    size_t cap_assumptions, cap_warnings;
    bool nomem;
};

static void assume(void *user, const char *group, const char *name, const char *value,
                   const char *kind, const char *source)
{
    struct notes *n = user;
    struct kvc_result *r = n->r;
    if (!kvc_grow((void **)&r->assumptions, &n->cap_assumptions, r->n_assumptions + 1,
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

KVC_PRINTF(3, 4)
static void warn(struct notes *n, const char *code, const char *fmt, ...)
{
    struct kvc_result *r = n->r;
    if (!kvc_grow((void **)&r->warnings, &n->cap_warnings, r->n_warnings + 1,
                  sizeof(*r->warnings))) {
        n->nomem = true;
        return;
    }
    struct kvc_warning *w = &r->warnings[r->n_warnings++];
    va_list args;
    va_start(args, fmt);
    snprintf(w->code, sizeof(w->code), "%s", code);
    vsnprintf(w->text, sizeof(w->text), fmt, args);
    va_end(args);
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
    struct kvc_kv_room room;
    char value[96];
    kvc_step_kv_room(e->model, e->sc->engine.prefix_caching, e->sc->engine.unified_kv, &room);
    if (e->sequence_pages) {
        snprintf(value, sizeof(value), "%.4g MB", (double)(e->sequence_pages * e->page_tokens *
                                                           e->token_bytes) * 1e-6);
        bool given = e->sc->engine.sequence_memory_bytes > 0;
        assume(n, "engine", "KV beside a sequence's tokens", value,
               given ? "scenario" : "published", given ? "engine.sequence_memory" : room.source);
    }
    if (room.apart_bytes && !e->sc->engine.kv_cache_memory_bytes) {
        snprintf(value, sizeof(value), "%.3g of the room, %.4g MB a running sequence",
                 1 - room.token_share, (double)room.apart_bytes * 1e-6);
        assume(n, "engine", "pool of states", value, "published", room.source);
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
           open ? "timestamps of the trace" : "a client sends its next request when one ends");
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

static uint64_t failed_in_log(const struct kvc_trace *t)
{
    uint64_t n = 0;
    for (uint64_t r = 0; t->row_status && r < t->n_requests; r++)
        n += t->row_status[r] == KVC_ROW_FAILED;
    return n;
}

static void warn_traffic(struct notes *n, const struct kvc_engine *e,
                         const struct kvc_trace_stats *s)
{
    const struct kvc_scenario *sc = e->sc;
    char period[32];
    uint64_t failed = failed_in_log(e->trace);
    kvc_format_ns(s->batch_period_ns, period, sizeof(period));
    if (!s->has_prefix)
        warn(n, "no_prefix", "The log says nothing about shared prefixes: hit rates are unknown, "
                             "and every prompt is computed in full here.");
    else if (s->without_ids)
        warn(n, "rows_without_ids", "%llu requests carry no block ids; what they could reuse is "
                                    "unknown and counted as first sight.",
             (unsigned long long)s->without_ids);
    if (e->trace->report && e->trace->report->filtered)
        warn(n, "part_of_the_log",
             "%llu requests of the log were left out (--where): the load is that of the other %llu "
             "alone, so that queues, latencies and evictions are less than where all are served.",
             (unsigned long long)e->trace->report->filtered, (unsigned long long)s->requests);
    if (s->unknown_outputs)
        warn(n, "unknown_outputs", "Of %llu requests the log doesn't say how much they generated: "
                                   "they are served up to their first token, so load, TPOT and "
                                   "cost per output token are too low.",
             (unsigned long long)s->unknown_outputs);
    if (s->batch_period_ns && sc->arrivals.mode != KVC_ARRIVALS_CLOSED && !sc->arrivals.spread_ns)
        warn(n, "arrivals_batched", "Arrivals come in batches about %s apart, probably because the "
                                    "log was rounded; TTFT then shows queues that may not have "
                                    "been there. Consider arrivals.spread=%s.", period, period);
    if (e->crowded_out)
        warn(n, "crowded_out", "%llu requests don't fit beside what other tenants have reserved in "
                               "HBM (tenants.*.reserve); they were not served.",
             (unsigned long long)e->crowded_out);
    if (n->r->unservable > e->crowded_out)
        warn(n, "unservable", "%llu requests need more KV pages than one replica has (%llu tokens) "
                              "or exceed engine.max_model_len; they were not served.",
             (unsigned long long)(n->r->unservable - e->crowded_out),
             (unsigned long long)(e->replicas[0].pool.pages * e->page_tokens));
    if (failed)
        warn(n, "failed_in_log", "%llu requests got no answer in the log; they were not served "
                                 "here, and their tokens count as missed (failed).",
             (unsigned long long)failed);
    if (n->r->failed > failed)
        warn(n, "timed_out", "%llu requests waited longer than request_timeout.",
             (unsigned long long)(n->r->failed - failed));
    if (sc->arrivals.mode == KVC_ARRIVALS_CLOSED &&
        (sc->arrivals.scale != 1 || sc->arrivals.spread_ns))
        warn(n, "times_ignored", "Closed arrivals do not follow the log's times: arrivals.scale "
                                 "and arrivals.spread had no effect.");
    if (sc->arrivals.mode == KVC_ARRIVALS_CLOSED && e->trace->session && !e->trace->think_ns)
        warn(n, "no_think_time", "Sessions have no think times in this log; each turn follows the "
                                 "previous one at once.");
}

/* What the longest request, the largest chunk and step and the fullest batch of the run ask of the
 * kernels. */
static uint32_t estimate_flags(const struct kvc_engine *e, const struct kvc_result *r)
{
    uint64_t longest = 0, input = 0, budget = e->sc->engine.max_batched_tokens;
    uint32_t most = 1;
    for (uint64_t i = 0; i < e->trace->n_requests; i++) {
        const struct kvc_request_result *q = &r->requests[i];
        uint64_t tokens = (uint64_t)q->input_tokens + q->output_tokens;
        longest = tokens > longest ? tokens : longest;
        input = q->input_tokens > input ? q->input_tokens : input;
    }
    for (uint32_t i = 0; i < e->n_replicas; i++)
        if (e->replicas[i].peak_running > most)
            most = (uint32_t)e->replicas[i].peak_running;
    struct kvc_chunk chunk = {(uint32_t)(input < budget ? input : budget), r->hit_tokens > 0};
    bool wide = e->most_step_tokens > kvc_step_range(e->model)->tokens * e->sc->cluster.pp;
    return kvc_step_flags(e->model, &chunk, 1, 1, longest) |
           kvc_step_flags(e->model, NULL, 0, most, 0) | (wide ? KVC_STEP_OUTSIDE : 0);
}

static void warn_tiers(struct notes *n, const struct kvc_engine *e)
{
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++) {
        const struct kvc_tier *tier = &e->tiers[t];
        char has[32], needs[32];
        if (!tier->config->present || !e->block_tokens || tier->pools[0].pages)
            continue;
        kvc_format_bytes(kvc_tier_instance_bytes(e->sc, t), has, sizeof(has));
        kvc_format_bytes(e->block_tokens * e->token_bytes, needs, sizeof(needs));
        warn(n, "tier_too_small", "tiers.%s keeps nothing: its %s are less than one block of the "
             "trace takes (%s).", tier->config->name, has, needs);
    }
}

/* What is held beside tokens, and what of it is not. */
static void warn_sequences(struct notes *n, const struct kvc_engine *e)
{
    const struct kvc_llm *llm = kvc_llm_find(e->sc->model);
    struct kvc_kv_room room;
    kvc_step_kv_room(e->model, e->sc->engine.prefix_caching, e->sc->engine.unified_kv, &room);
    if (llm->window_layers && room.sequence_bytes)
        warn(n, "window_kv",
             "Each running sequence holds its whole window in the sliding-window layers; windows "
             "kept for cached prefixes take no room here, as they do there.");
    if (!llm->linear_layers || !e->sc->engine.prefix_caching)
        return;
    warn(n, "linear_state",
         "A prefix of this model is resumed from a state of its linear layers (%.0f MB), kept "
         "where a step of prefill ended: here hits end at any page, and states of cached prefixes "
         "take no room.",
         (double)(llm->linear_state_bytes + llm->linear_conv_bytes) * 1e-6);
    if (room.resume_tokens > e->page_tokens)
        warn(n, "resume_tokens",
             "vLLM lets prefixes of this model resume at multiples of %u tokens only; "
             "engine.page_tokens %u replays that.", room.resume_tokens, room.resume_tokens);
}

static void warn_load(struct notes *n, const struct kvc_engine *e)
{
    uint64_t span = e->trace->n_requests ? e->trace->arrival_ns[e->trace->n_requests - 1] : 0;
    double scaled = (double)span / (e->sc->arrivals.scale > 0 ? e->sc->arrivals.scale : 1);
    /* a tenth of the log and a minute: more than what the last answers take to come */
    if (e->sc->arrivals.mode != KVC_ARRIVALS_CLOSED && span &&
        (double)e->end_ns > 1.1 * scaled + 60e9)
        warn(n, "overloaded", "Serving took %.0f s for %.0f s of arrivals: the cluster is "
                              "overloaded, and latencies grow with the length of the log.",
             (double)e->end_ns * 1e-9, scaled * 1e-9);
    uint64_t preempted = 0;
    for (uint32_t i = 0; i < e->n_replicas; i++)
        preempted += e->replicas[i].preemptions;
    if (preempted)
        warn(n, "preemptions", "%llu preemptions for want of KV pages; %llu tokens were computed "
                               "again.", (unsigned long long)preempted,
             (unsigned long long)n->r->recomputed_tokens);
    warn_sequences(n, e);
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, e->sc->cluster.gpu);
    const struct kvc_figure *between = &gpu->gpu_link_bytes_per_s;
    if (e->sc->cluster.tp > 1 && between->value < SLOW_GPU_LINK)
        warn(n, "slow_gpu_link", "Tensor parallelism over %.0f GB/s between GPUs (%s): all-reduces "
                                 "take much of each step. Fewer GPUs a replica may serve more.",
             between->value * 1e-9, between->kind);
    if (e->sc->cluster.pp > 1)
        warn(n, "pipeline",
             "Pipeline stages were held against closed forms only, no served run: batches in "
             "flight are taken to be of equal size, and the bands are wider.");
    if (e->sc->cluster.dp > 1)
        warn(n, "data_parallel",
             "Data-parallel ranks were held against one served run, over PCIe. Experts are taken "
             "to be chosen evenly between ranks, and the bands are wider.");
}

/* How far the times can be trusted. */
static void warn_kernels(struct notes *n, const struct kvc_engine *e)
{
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, e->sc->cluster.gpu);
    if (!gpu->kernels_measured && kvc_user_kernels(e->user, gpu, e->sc->engine.backend))
        warn(n, "kernels_of_profile",
             "Of this GPU (%s) only what the profile measured is known: all other kernels are "
             "those of %s, as shares of the peaks that the profile states, and the band is wide.",
             gpu->name, gpu->kernels_like);
    else if (!gpu->kernels_measured)
        warn(n, "kernels_assumed", "Few or no kernels were measured on this GPU: times are another "
                                   "GPU's, as shares of this one's peaks, or closed forms, and the "
                                   "band is wide.");
    const char *beside = e->user ? kvc_user_profile_gpu(e->user) : "";
    if (beside[0] && kvc_gpu_find(beside) != kvc_gpu_find(e->sc->cluster.gpu))
        warn(n, "profile_gpu",
             "The figures of the profile were measured beside %s, not %s; kernels among them are "
             "not used.", beside, e->sc->cluster.gpu);
    const struct kvc_step_range *range = kvc_step_range(e->model);
    uint32_t flags = estimate_flags(e, n->r);
    if (flags & KVC_STEP_OUTSIDE)
        warn(n, "kernels_outside",
             "Requests or steps of this run are beyond what the kernels were measured for (%" PRIu64
             " tokens of context, %" PRIu64 " new ones of a prompt in a step, %" PRIu64 " tokens "
             "and %" PRIu64 " decoding sequences a step): times are extrapolated, and the bands "
             "wider.",
             range->context, range->chunk, range->tokens, range->sequences);
    if (flags & KVC_STEP_SHAPE)
        warn(n, "kernels_between",
             "A head size, window, format, kind of layer, expert shape or number of GPUs of this "
             "run was not measured with this engine and GPU: times are taken from the nearest or a "
             "closed form, and the bands are those of assumed times.");
    if (flags & KVC_STEP_PAST)
        warn(n, "prefill_past", "Prefill behind cached tokens is in no public kernel table of "
                                "these GPUs: its attention is extrapolated, and the band of TTFT wider.");
}

static void bands(const struct kvc_engine *e, struct kvc_result *r)
{
    struct kvc_time_band b;
    kvc_step_band(e->model, estimate_flags(e, r), &b);
    const struct { const char *name; double value, low, high; } v[] = { /* TTFT's first */
        {"ttft_ms.mean", r->ttft_ms.mean, b.ttft_low, b.ttft_high},
        {"ttft_ms.p50", r->ttft_ms.p50, b.ttft_low, b.ttft_high},
        {"ttft_ms.p90", r->ttft_ms.p90, b.ttft_low, b.ttft_high},
        {"ttft_ms.p99", r->ttft_ms.p99, b.ttft_low, b.ttft_high},
        {"tpot_ms.mean", r->tpot_ms.mean, b.tpot_low, b.tpot_high},
        {"tpot_ms.p50", r->tpot_ms.p50, b.tpot_low, b.tpot_high},
        {"tpot_ms.p99", r->tpot_ms.p99, b.tpot_low, b.tpot_high},
    };
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        if (!(i < 4 ? &r->ttft_ms : &r->tpot_ms)->count)
            continue;
        struct kvc_band *to = &r->bands[r->n_bands++];
        snprintf(to->name, sizeof(to->name), "%s", v[i].name);
        to->low = v[i].value * v[i].low;
        to->high = v[i].value * v[i].high;
    }
    snprintf(r->band_source, sizeof(r->band_source), "%s%s%s", b.source ? b.source : "",
             b.widened ? "; wider for " : "", b.widened ? b.widened : "");
}

enum kvc_status kvc_collect_explain(const struct kvc_engine *e, struct kvc_result *r,
                                    struct kvc_error *err)
{
    struct notes n = {.r = r};
    struct kvc_trace_stats stats;
    kvc_trace_stats(e->trace, &stats);
    const struct kvc_llm *llm = kvc_llm_find(e->sc->model);
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, e->sc->cluster.gpu);
    uint32_t gpus = e->sc->cluster.tp * e->sc->cluster.pp;
    uint32_t replicas = e->sc->cluster.replicas, ranks = e->sc->cluster.dp;
    snprintf(r->title, sizeof(r->title), "%s %s, KV %s, on %u x %s (%u replica%s of %u%s)",
             llm->name, e->sc->weights_dtype, e->sc->kv_dtype, gpus * e->n_replicas, gpu->name,
             replicas, replicas == 1 ? "" : "s", gpus * ranks,
             ranks > 1 ? " data-parallel ranks" : "");
    explain_traffic(&n, e, &stats);
    kvc_step_explain(e->model, assume, &n);
    explain_cold(&n, e);
    explain_tiers(&n, e);
    explain_prices(&n, e);
    warn_traffic(&n, e, &stats);
    warn_tiers(&n, e);
    warn_load(&n, e);
    warn_kernels(&n, e);
    bands(e, r);
    return n.nomem ? kvc_fail_nomem(err) : KVC_OK;
}
