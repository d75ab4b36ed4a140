/* SPDX-License-Identifier: Apache-2.0
 * Published figures that a replay of their conditions gives. */
#include "studies/headlines/headlines.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/profiles.h"
#include "studies/calibrate/probe.h"
#include "traces/trace_write.h"

#define BLOCK 16

typedef const char *setting[2];

static enum kvc_status scenario_of(struct kvc_scenario **out, const setting *set, size_t n,
                                   struct kvc_error *err)
{
    enum kvc_status status = kvc_scenario_create(out, NULL, err);

    for (size_t i = 0; i < n && status == KVC_OK; i++)
        status = kvc_scenario_set(*out, set[i][0], set[i][1], err);
    return status;
}

#define SCENARIO(out, set, err) scenario_of(out, set, sizeof(set) / sizeof((set)[0]), err)

/* TTFT less the front end, in ms. The engine alone: loads of served ones cost more than their copy
 * (engine.kv_load_time), those of 0.14 without a server did not. */
static enum kvc_status engine_ms(double *out, const struct kvc_scenario *s, enum kvc_probe_tier t,
                                 uint32_t tokens, struct kvc_error *err)
{
    struct kvc_request_result r;
    enum kvc_status status = kvc_probe(&r, s, t, tokens, err);

    if (status == KVC_OK)
        *out = ((double)r.ttft_ns - kvc_engine_find("vllm")->front_end_ns.value) / 1e6;
    return status;
}

static enum kvc_status gain(double *out, const struct kvc_scenario *s, enum kvc_probe_tier tier,
                            uint32_t tokens, struct kvc_error *err)
{
    double recompute, load;
    enum kvc_status status = engine_ms(&recompute, s, KVC_PROBE_RECOMPUTE, tokens, err);

    if (status == KVC_OK)
        status = engine_ms(&load, s, tier, tokens, err);
    if (status == KVC_OK)
        *out = recompute / load;
    return status;
}

static const setting llama8b[] = {{"model", "Llama-3.1-8B"},
                                  {"cluster.gpu", "h100_sxm"},
                                  {"tiers.remote.capacity", "1TiB"},
                                  {"tiers.remote.link", "tcp-25"},
                                  {"engine.kv_load_time", "0s"},
                                  {"engine.kv_load_token_time", "0s"}};
static const setting llama70b[] = {{"model", "Llama-3.1-70B"},
                                   {"cluster.gpu", "h100_sxm"},
                                   {"cluster.tp", "4"},
                                   {"engine.kv_load_time", "0s"},
                                   {"engine.kv_load_token_time", "0s"}};

enum kvc_status kvc_headline_offload(double *values, struct kvc_error *err)
{
    struct kvc_scenario *s = NULL;
    enum kvc_status status = SCENARIO(&s, llama8b, err);

    if (status == KVC_OK)
        status = gain(&values[0], s, KVC_PROBE_DRAM, 1024, err);
    if (status == KVC_OK)
        status = gain(&values[1], s, KVC_PROBE_DRAM, 100000, err);
    kvc_scenario_destroy(s);
    return status;
}

enum kvc_status kvc_headline_signs(double *values, struct kvc_error *err)
{
    struct kvc_scenario *large = NULL, *small = NULL;
    double wins, loses;
    enum kvc_status status = SCENARIO(&large, llama70b, err);

    if (status == KVC_OK)
        status = SCENARIO(&small, llama8b, err);
    if (status == KVC_OK)
        status = gain(&wins, large, KVC_PROBE_DRAM, 10000, err);
    if (status == KVC_OK)
        status = gain(&loses, small, KVC_PROBE_REMOTE, 1024, err);
    if (status == KVC_OK)
        values[0] = wins > 1 && loses < 1;
    kvc_scenario_destroy(large);
    kvc_scenario_destroy(small);
    return status;
}

/* ---- many requests ---- */

static bool room(struct kvc_trace *t, size_t segments, size_t requests)
{
    memset(t, 0, sizeof *t);
    t->block_tokens = BLOCK;
    t->arrival_ns = kvc_calloc(requests, sizeof *t->arrival_ns);
    t->input_tokens = kvc_calloc(requests, sizeof *t->input_tokens);
    t->output_tokens = kvc_calloc(requests, sizeof *t->output_tokens);
    t->prompt_seg = kvc_calloc(requests, sizeof *t->prompt_seg);
    t->seg_parent = kvc_calloc(segments, sizeof *t->seg_parent);
    t->seg_len = kvc_calloc(segments, sizeof *t->seg_len);
    t->seg_depth = kvc_calloc(segments, sizeof *t->seg_depth);
    return t->arrival_ns && t->input_tokens && t->output_tokens && t->prompt_seg && t->seg_parent &&
           t->seg_len && t->seg_depth;
}

static void trace_clear(struct kvc_trace *t)
{
    kvc_free(t->arrival_ns);
    kvc_free(t->input_tokens);
    kvc_free(t->output_tokens);
    kvc_free(t->prompt_seg);
    kvc_free(t->seg_parent);
    kvc_free(t->seg_len);
    kvc_free(t->seg_depth);
}

/* A prompt that nothing else shares. */
static uint32_t segment(struct kvc_trace *t, uint32_t tokens)
{
    uint32_t s = t->n_segments++;

    t->seg_parent[s] = KVC_SEG_NONE;
    t->seg_len[s] = tokens / BLOCK;
    return s;
}

static void request(struct kvc_trace *t, uint64_t at, uint32_t seg, uint32_t input, uint32_t output)
{
    uint64_t r = t->n_requests++;

    t->arrival_ns[r] = at;
    t->prompt_seg[r] = seg;
    t->input_tokens[r] = input;
    t->output_tokens[r] = output;
}

static enum kvc_status run(struct kvc_result **out, struct kvc_trace *t,
                           const struct kvc_scenario *s, struct kvc_error *err)
{
    const struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};

    kvc_trace_digest(t, t->digest);
    return kvc_replay_run(out, t, s, &options, err);
}

/* Output tokens a second of 200 prompts sent at once. */
static enum kvc_status batch_rate(double *out, const struct kvc_scenario *s, uint32_t input,
                                  uint32_t output, struct kvc_error *err)
{
    struct kvc_trace w;
    struct kvc_result *r = NULL;
    enum kvc_status status = room(&w, 200, 200) ? KVC_OK : kvc_fail_nomem(err);

    for (uint32_t i = 0; i < 200 && status == KVC_OK; i++)
        request(&w, 0, segment(&w, input), input, output);
    if (status == KVC_OK)
        status = run(&r, &w, s, err);
    if (status == KVC_OK)
        *out = r->output_tokens_per_s;
    kvc_result_destroy(r);
    trace_clear(&w);
    return status;
}

/* Of bf16's rate, the mean of three shapes; added to *sum. */
static enum kvc_status add_share(double *sum, const char *kv, const char *llm, const char *tp,
                                 struct kvc_error *err)
{
    static const uint32_t shape[][2] = {{256, 256}, {1024, 512}, {4096, 256}};
    const setting set[] = {{"model", llm}, {"cluster.gpu", "h100_sxm"}, {"cluster.tp", tp}};
    struct kvc_scenario *s = NULL;
    double rate[2];
    enum kvc_status status = SCENARIO(&s, set, err);

    for (size_t i = 0; i < 3 && status == KVC_OK; i++) {
        for (size_t k = 0; k < 2 && status == KVC_OK; k++) {
            status = kvc_scenario_set(s, "kv_dtype", k ? kv : "bf16", err);
            if (status == KVC_OK)
                status = batch_rate(&rate[k], s, shape[i][0], shape[i][1], err);
        }
        *sum += status == KVC_OK ? rate[1] / rate[0] / 3 : 0;
    }
    kvc_scenario_destroy(s);
    return status;
}

enum kvc_status kvc_headline_offline(double *values, struct kvc_error *err)
{
    double sum = 0;
    enum kvc_status status = add_share(&sum, "fp8", "Qwen3-30B-A3B", "2", err);

    if (status == KVC_OK)
        status = add_share(&sum, "fp8", "Llama-3.3-70B", "4", err);
    if (status == KVC_OK) {
        const struct kvc_llm *llm = kvc_llm_find("Llama-3.3-70B");
        values[0] = sum / 2;
        values[1] = (double)kvc_llm_kv_bytes_per_token(llm, KVC_BF16, 4) /
                    (double)kvc_llm_kv_bytes_per_token(llm, KVC_FP8, 4);
    }
    return status;
}

enum kvc_status kvc_headline_turboquant(double *values, struct kvc_error *err)
{
    enum kvc_status status;

    values[0] = values[1] = 0;
    status = add_share(&values[0], "turboquant_4bit_nc", "Llama-3.3-70B", "4", err);
    return status == KVC_OK ? add_share(&values[1], "turboquant_4bit_nc", "Qwen3-30B-A3B", "2", err)
                            : status;
}

/* Requests a second of prompts that another replica left in DRAM, or that nobody did. They go to
 * two replicas in turn: every other request is small and only there to fill the other's turn. */
static enum kvc_status served(double *out, const struct kvc_scenario *s, bool stored,
                              struct kvc_error *err)
{
    enum { PROMPTS = 64, TOKENS = 512 };
    struct kvc_trace w;
    struct kvc_result *r = NULL;
    enum kvc_status status = room(&w, 2 * PROMPTS, 4 * PROMPTS) ? KVC_OK : kvc_fail_nomem(err);
    uint64_t last = 0, hour = 3600000000000ull;

    for (uint32_t i = 0; i < PROMPTS && status == KVC_OK; i++) {
        request(&w, 0, segment(&w, TOKENS), TOKENS + 16, 1);
        request(&w, 0, KVC_SEG_NONE, 16, 1);
    }
    for (uint32_t i = 0; i < PROMPTS && status == KVC_OK; i++) {
        uint32_t seg = stored ? i : segment(&w, TOKENS);
        request(&w, hour, KVC_SEG_NONE, 16, 1);
        request(&w, hour, seg, TOKENS + 16, 1);
    }
    if (status == KVC_OK)
        status = run(&r, &w, s, err);
    for (uint64_t i = 2 * PROMPTS + 1; status == KVC_OK && i < 4 * PROMPTS; i += 2)
        last = r->requests[i].e2e_ns > last ? r->requests[i].e2e_ns : last;
    if (status == KVC_OK)
        *out = PROMPTS * 1e9 / ((double)last - kvc_engine_find("vllm")->front_end_ns.value);
    kvc_result_destroy(r);
    trace_clear(&w);
    return status;
}

enum kvc_status kvc_headline_throughput(double *values, struct kvc_error *err)
{
    static const setting set[] = {{"model", "Llama-3.1-8B"},   {"cluster.gpu", "h100_sxm"},
                                  {"cluster.replicas", "2"},   {"router.policy", "round-robin"},
                                  {"tiers.dram.capacity", "16TiB"},
                                  {"tiers.dram.scope", "cluster"},
                                  {"engine.kv_load_time", "0s"},
                                  {"engine.kv_load_token_time", "0s"}};
    struct kvc_scenario *s = NULL;
    double rate[2];
    enum kvc_status status = SCENARIO(&s, set, err);

    for (size_t i = 0; i < 2 && status == KVC_OK; i++)
        status = served(&rate[i], s, i == 1, err);
    if (status == KVC_OK)
        status = gain(&values[1], s, KVC_PROBE_DRAM, 512, err);
    if (status == KVC_OK)
        values[0] = rate[1] / rate[0];
    kvc_scenario_destroy(s);
    return status;
}
