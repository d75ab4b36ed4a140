/* SPDX-License-Identifier: Apache-2.0
 * How far a result can be trusted: warnings, error bands. */
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
    size_t cap;
    bool nomem;
};

KVC_PRINTF(3, 4)
static void warn(struct notes *n, const char *code, const char *fmt, ...)
{
    struct kvc_result *r = n->r;
    if (!kvc_grow((void **)&r->warnings, &n->cap, r->n_warnings + 1,
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

/* Positions that the model has none for; a scenario that states a limit has had its say. */
static void warn_length(struct notes *n, const struct kvc_engine *e)
{
    const struct kvc_llm *llm = kvc_llm_find(e->sc->model);
    uint64_t beyond = 0, longest = 0;
    if (!llm->max_position || e->sc->engine.max_model_len)
        return;
    for (uint64_t i = 0; i < e->trace->n_requests; i++) {
        const struct kvc_request_result *q = &n->r->requests[i];
        uint64_t tokens = (uint64_t)q->input_tokens + q->output_tokens;
        if (q->outcome != KVC_COMPLETED || tokens <= llm->max_position)
            continue;
        beyond++;
        longest = tokens > longest ? tokens : longest;
    }
    if (beyond)
        warn(n, "beyond_model_length",
             "%" PRIu64 " requests of up to %" PRIu64 " tokens exceed %s's %u "
             "(max_position_embeddings): engines refuse them unless rope scaling or "
             "--max-model-len raises it. engine.max_model_len refuses them here or states the "
             "raised limit.", beyond, longest, llm->name, llm->max_position);
}

/* What the shortest and the longest request, the largest chunk and step and the fullest batch of
 * the run ask of the kernels. */
struct asked {
    uint64_t shortest, longest, chunk, tokens, sequences, contexts;
};

static struct asked asked_of(const struct kvc_engine *e, const struct kvc_result *r)
{
    uint64_t budget = e->sc->engine.max_batched_tokens;
    struct asked a = {.shortest = UINT32_MAX, .sequences = 1, .tokens = e->most_step_tokens,
                      .contexts = e->most_contexts};
    for (uint64_t i = 0; i < e->trace->n_requests; i++) {
        const struct kvc_request_result *q = &r->requests[i];
        uint64_t tokens = (uint64_t)q->input_tokens + q->output_tokens;
        a.longest = tokens > a.longest ? tokens : a.longest;
        a.shortest = q->input_tokens < a.shortest ? q->input_tokens : a.shortest;
        a.chunk = q->input_tokens > a.chunk ? q->input_tokens : a.chunk;
    }
    a.chunk = a.chunk < budget ? a.chunk : budget;
    for (uint32_t i = 0; i < e->n_replicas; i++)
        if (e->replicas[i].peak_running > a.sequences)
            a.sequences = e->replicas[i].peak_running;
    return a;
}

static uint32_t estimate_flags(const struct kvc_engine *e, const struct asked *a, bool hits)
{
    const struct kvc_step_range *most = kvc_step_range(e->model);
    uint64_t stages = e->sc->cluster.pp, budget = e->sc->engine.max_batched_tokens;
    struct kvc_chunk chunk = {(uint32_t)a->chunk, hits};
    struct kvc_chunk least = {(uint32_t)(a->shortest < budget ? a->shortest : budget), 0};
    return kvc_step_flags(e->model, &chunk, 1, 0, 0) | kvc_step_flags(e->model, &least, 1, 0, 0) |
           kvc_step_flags(e->model, NULL, 0, 1, a->longest) |
           kvc_step_flags(e->model, NULL, 0, 1, a->shortest) |
           kvc_step_flags(e->model, NULL, 0, (uint32_t)a->sequences, 0) |
           kvc_step_beyond(a->tokens, most->tokens * stages) |
           kvc_step_beyond(a->contexts / stages, most->contexts);
}

/* The figure of the run that lies farthest beyond the rows; where none does, short prompts do. */
static void warn_outside(struct notes *n, const struct kvc_engine *e, const struct asked *a)
{
    const struct kvc_step_range *most = kvc_step_range(e->model);
    uint64_t stages = e->sc->cluster.pp;
    const struct {
        uint64_t asked, most;
        const char *what;
    } v[] = {
        {a->longest, most->context, "tokens of context of a request"},
        {a->contexts, most->contexts * stages, "tokens of context of all that decode"},
        {a->chunk, most->chunk * stages, "new tokens of a prompt in a step"},
        {a->tokens, most->tokens * stages, "tokens in a step"},
        {a->sequences, most->sequences * stages, "decoding sequences in a step"},
    };
    size_t worst = 0, beyond = 0;
    double farthest = 0;
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        double times = (double)v[i].asked / (double)v[i].most;
        beyond += times > 1;
        if (times > farthest) {
            farthest = times;
            worst = i;
        }
    }
    char text[128];
    if (beyond)
        snprintf(text, sizeof(text), "%" PRIu64 " %s, measured up to %" PRIu64 "%s", v[worst].asked,
                 v[worst].what, v[worst].most, beyond > 1 ? ", and others less far" : "");
    else
        snprintf(text, sizeof(text), "prompts of %" PRIu64 " tokens, shorter than any measured",
                 a->shortest);
    warn(n, "kernels_outside", "This run goes beyond what the kernels were measured for: %s. Such "
         "times are extrapolated, and the bands wider.", text);
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

/* vLLM's own connectors send pieces of a page where nobody has stored it whole. */
static void warn_whole_pages(struct notes *n, const struct kvc_engine *e)
{
    const struct kvc_tier_config *c = &e->sc->tiers[2];
    if (c->present && !c->connector && !c->link_staged && !c->link_io_bytes && !c->chunk_tokens &&
        !strncmp(c->link, "rdma", 4) && !strcmp(e->sc->engine.backend, "vllm"))
        warn(n, "whole_pages", "Pulls from the remote tier move whole pages at once. If another "
             "engine's GPU holds them, vLLM's connectors send a piece for each layer and K or V, "
             "several times slower: set tiers.remote.connector to nixl or mooncake.");
}

/* What is held beside tokens, and what of it is not. */
static void warn_sequences(struct notes *n, const struct kvc_engine *e)
{
    const struct kvc_llm *llm = kvc_llm_find(e->sc->model);
    if (llm->window_layers && e->room.sequence_bytes)
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
    if (e->room.resume_tokens > e->page_tokens)
        warn(n, "resume_tokens",
             "vLLM lets prefixes of this model resume at multiples of %u tokens only; "
             "engine.page_tokens %u replays that.", e->room.resume_tokens, e->room.resume_tokens);
}

/* Bytes that the scenario states are not derived from the GPU's memory, so they may exceed it. */
static void warn_room(struct notes *n, const struct kvc_engine *e)
{
    uint64_t given = e->sc->engine.kv_cache_memory_bytes;
    uint64_t most = kvc_step_kv_capacity_bytes(e->model, 1, e->sc->engine.max_batched_tokens);
    if (given > most)
        warn(n, "kv_beyond_memory",
             "engine.kv_cache_memory is %.4g GB a replica, and beside the weights its GPUs have "
             "room for %.4g: no engine would start so. It is what more memory would bring.",
             (double)given * 1e-9, (double)most * 1e-9);
}

/* Fetches that never begin, or that an engine at leisure gives up at once. */
static void warn_prefetch(struct notes *n, const struct kvc_engine *e)
{
    if (!e->fetches_early)
        return;
    if (!e->prefetch_limit)
        warn(n, "nothing_fetched",
             "Host memory holds no more than GPU memory (or engine.prefetch_limit is 0), so "
             "nothing is ever fetched from below it. Raise tiers.dram.capacity, or set "
             "engine.prefetch to never.");
    else if (e->sc->engine.prefetch == KVC_PREFETCH_BEST_EFFORT)
        warn(n, "best_effort",
             "A fetch from below host memory ends when the scheduler wants its request, at once "
             "where no other waits (SGLang's default). engine.prefetch timeout or wait_complete "
             "waits for it, as --hicache-storage-prefetch-policy does.");
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
    warn_room(n, e);
    warn_prefetch(n, e);
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

static bool is_link_of_profile(const struct kvc_engine *e, const char *name)
{
    struct kvc_link_profile link;
    const struct kvc_link_profile *base = kvc_link_find(name);
    return base && kvc_user_link(e->user, name, &link) && memcmp(&link, base, sizeof(link)) != 0;
}

/* Whether something of the profile stands in place of what is carried. */
static bool is_profile_used(const struct kvc_engine *e)
{
    const struct kvc_scenario *sc = e->sc;
    const struct kvc_gpu *carried = kvc_gpu_find(sc->cluster.gpu);
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, sc->cluster.gpu);
    const struct kvc_engine_profile *base = kvc_engine_find(sc->engine.backend);
    struct kvc_engine_profile engine;
    bool used = gpu != carried || kvc_user_kernels(e->user, gpu, sc->engine.backend);
    bool tiers = false;
    used |= base && kvc_user_engine(e->user, base->backend, &engine) &&
            memcmp(&engine, base, sizeof(engine)) != 0;
    for (size_t i = 0; i < KVC_LOWER_TIERS; i++) {
        tiers |= sc->tiers[i].present;
        used |= sc->tiers[i].present && sc->tiers[i].link[0] &&
                is_link_of_profile(e, sc->tiers[i].link);
    }
    return used || (tiers && is_link_of_profile(e, gpu->host_link));
}

/* A link's rate has no part in times that were measured. */
static void warn_link(struct notes *n, const struct kvc_engine *e)
{
    double stated = kvc_user_gpu(e->user, e->sc->cluster.gpu)->gpu_link_bytes_per_s.value;
    double carried = kvc_gpu_find(e->sc->cluster.gpu)->gpu_link_bytes_per_s.value;
    if (stated != carried && kvc_step_collectives_measured(e->model))
        warn(n, "profile_link_unused",
             "The profile's gpu_link_bytes_per_s, %.4g GB/s in place of %.4g, enters no time of a "
             "collective: those between so many of these GPUs were measured, and measured times go "
             "first. Rows of your own (calibrate --kernels) would count.",
             stated * 1e-9, carried * 1e-9);
}

/* How far the times can be trusted. */
static void warn_kernels(struct notes *n, const struct kvc_engine *e, uint32_t flags)
{
    const struct kvc_gpu *gpu = kvc_user_gpu(e->user, e->sc->cluster.gpu);
    warn_link(n, e);
    if (!gpu->kernels_measured && kvc_user_kernels(e->user, gpu, e->sc->engine.backend))
        warn(n, "kernels_of_profile",
             "Of this GPU (%s) only what the profile measured is known: all other kernels are "
             "those of %s, as shares of the peaks that the profile states, and the band is wide.",
             gpu->name, gpu->kernels_like);
    else if (!gpu->kernels_measured)
        warn(n, "kernels_assumed", "Few or no kernels were measured on this GPU: times are another "
                                   "GPU's, as shares of this one's peaks, or closed forms, and the "
                                   "band is wide.");
    if (e->user && !is_profile_used(e))
        warn(n, "profile_unused",
             "No figure of the profile %s is of anything that this run uses: its links, engines, "
             "GPUs and kernels are others. Times are as without it.", e->sc->profile);
    const char *beside = e->user ? kvc_user_profile_gpu(e->user) : "";
    if (beside[0] && kvc_gpu_find(beside) != kvc_gpu_find(e->sc->cluster.gpu))
        warn(n, "profile_gpu",
             "The figures of the profile were measured beside %s, not %s; kernels among them are "
             "not used.", beside, e->sc->cluster.gpu);
    if (flags & KVC_STEP_SHAPE)
        warn(n, "kernels_between",
             "A head size, window, format, kind of layer, expert shape or number of GPUs of this "
             "run was not measured with this engine and GPU: times are taken from the nearest or a "
             "closed form.");
    char text[256];
    if (kvc_slower_weights(e, n->r, text, sizeof(text)))
        warn(n, "slower_weights", "%s", text);
    if (kvc_slower_experts(e, n->r, text, sizeof(text)))
        warn(n, "experts_backend", "%s", text);
    if (flags & KVC_STEP_PAST)
        warn(n, "prefill_past",
             "Prefill behind cached tokens is in no public kernel table of these GPUs: its "
             "attention is extrapolated, and the band of TTFT wider.");
}

static void bands(const struct kvc_engine *e, uint32_t flags, struct kvc_result *r)
{
    struct kvc_time_band b;
    kvc_step_band(e->model, flags, &b);
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
             b.widened[0] ? "; wider for " : "", b.widened);
}

enum kvc_status kvc_collect_trust(const struct kvc_engine *e, const struct kvc_trace_stats *stats,
                                  struct kvc_result *r, struct kvc_error *err)
{
    struct notes n = {.r = r};
    struct asked asked = asked_of(e, r);
    uint32_t flags = estimate_flags(e, &asked, r->hit_tokens > 0);
    warn_traffic(&n, e, stats);
    warn_length(&n, e);
    warn_tiers(&n, e);
    warn_whole_pages(&n, e);
    warn_load(&n, e);
    if (flags & KVC_STEP_OUTSIDE)
        warn_outside(&n, e, &asked);
    warn_kernels(&n, e, flags);
    bands(e, flags, r);
    return n.nomem ? kvc_fail_nomem(err) : KVC_OK;
}
