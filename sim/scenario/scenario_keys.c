/* SPDX-License-Identifier: Apache-2.0
 * The keys of a scenario, in the order of the effective scenario and of the help. */
#include "sim/scenario/scenario_internal.h"

#include "base/units.h"
#include "models/models.h"
#include "policies/policies.h"

#include <math.h>
#include <string.h>

#define AT(field) offsetof(struct kvc_scenario, field), sizeof(((struct kvc_scenario *)0)->field)
#define U32_MAX 4294967295.0
#define DAY_NS 86400e9

static const char *const scopes[] = {"per_gpu", "per_replica", "per_node", "cluster", NULL};
static const char *const writes[] = {"through", "selective", "back", "on-evict", NULL};
static const char *const modes[] = {"open", "closed", "paced", NULL};
static const char *const backends[] = {"vllm", "sglang", "trtllm", NULL};
static const char *const prefills[] = {"mixed", "first", NULL};
static const char *const reserves[] = {"never", "estimated", "full", NULL};
static const char *const publishes[] = {"scheduled", "computed", "inserted", NULL};
static const char *const connectors[] = {"whole", "nixl", "mooncake", NULL};
static const char *const preempts[] = {"last", "shortest", NULL};
static const char *const prefetches[] = {"never", "best_effort", "wait_complete", "timeout", NULL};
static const char *const dtypes[] = {"bf16",     "fp8",      "fp8_e4m3", "fp8_e5m2", "fp8_block",
                                     "nvfp4",    "mxfp4",    "int8",     "int4",     NULL};
static const char *const kv_dtypes[] = {
    "bf16",            "fp8",                "fp8_e4m3",           "fp8_e5m2",
    "nvfp4",           "int8",               "turboquant_k8v4",    "turboquant_4bit_nc",
    "turboquant_k3v4_nc", "turboquant_3bit_nc", "kivi_4",          "kivi_2", NULL};

#define TEXT(n, f, a, field, d, h) {n, f, a, KVC_KEY_TEXT, AT(field), 0, 0, NULL, NULL, d, h}
#define CHOICE(n, f, a, field, list, d, h) \
    {n, f, a, KVC_KEY_NAME, AT(field), 0, 0, list, NULL, d, h}
#define NAMED(n, f, a, field, fn, d, h) {n, f, a, KVC_KEY_NAME, AT(field), 0, 0, NULL, fn, d, h}
#define ENUM(n, f, a, field, list, d, h) {n, f, a, KVC_KEY_ENUM, AT(field), 0, 0, list, NULL, d, h}
#define U32(n, f, field, lo, hi, d, h) {n, f, "N", KVC_KEY_U32, AT(field), lo, hi, NULL, NULL, d, h}
#define REAL(n, f, a, field, lo, hi, d, h) \
    {n, f, a, KVC_KEY_DOUBLE, AT(field), lo, hi, NULL, NULL, d, h}
#define FLAG(n, field, d, h) {n, NULL, "BOOL", KVC_KEY_BOOL, AT(field), 0, 0, NULL, NULL, d, h}
#define SIZE(n, f, field, lo, hi, d, h) \
    {n, f, "SIZE", KVC_KEY_BYTES, AT(field), lo, hi, NULL, NULL, d, h}
#define TIME(n, field, hi, d, h) {n, NULL, "TIME", KVC_KEY_NS, AT(field), 0, hi, NULL, NULL, d, h}

#define TIER(i, t, size, scope_default, link_default, what)                                        \
    SIZE("tiers." t ".capacity", t, tiers[i].capacity_bytes, 0, size, "",                          \
         "size of " what "; 0 = no such tier"),                                                    \
    ENUM("tiers." t ".scope", NULL, "SCOPE", tiers[i].scope, scopes, scope_default,                \
         "whose the capacity is"),                      \
    NAMED("tiers." t ".policy", NULL, "NAME[:OPTION=VALUE]", tiers[i].policy, kvc_eviction_names,  \
          "lru", "what goes first: as of 'kvcast policy list', or a plug-in's path"),              \
    NAMED("tiers." t ".link", NULL, "NAME", tiers[i].link, kvc_link_names, link_default,           \
          "what its bytes cross; or give bandwidth, latency, efficiency"),                         \
    {"tiers." t ".link.bandwidth", NULL, "RATE", KVC_KEY_RATE, AT(tiers[i].link_bytes_per_s), 1e3, \
     1e15, NULL, NULL, "", "own link: rate of one device, each direction"},                        \
    TIME("tiers." t ".link.latency", tiers[i].link_latency_ns, 60e9, "",                           \
         "own link: once per transfer"),                                                           \
    REAL("tiers." t ".link.efficiency", NULL, "F", tiers[i].link_efficiency, 0.001, 1, "",         \
         "own link: share of the bandwidth that payload gets"),                                    \
    U32("tiers." t ".queue_depth", NULL, tiers[i].link_queue_depth, 0, 1048576, "0",               \
        "reads or writes of a device under way at once, or connections; 0 = as the link's "        \
        "profile says, else enough"),                                                              \
    SIZE("tiers." t ".io_size", NULL, tiers[i].link_io_bytes, 0, size, "0",                        \
         "bytes of one read, write or message; 0 = a chunk's share of a GPU"),                     \
    FLAG("tiers." t ".staged", tiers[i].link_staged, "false",                                      \
         "a load rests in host memory before it goes to the GPU; of nvme and remote"),             \
    U32("tiers." t ".devices", NULL, tiers[i].link_devices, 0, 65536, "0",                         \
        "drives, NICs or host links behind one instance; 0 = one per GPU (nvme: 1)"),              \
    ENUM("tiers." t ".write", NULL, "MODE", tiers[i].write, writes, "through",                     \
         "when blocks are written"),                         \
    NAMED("tiers." t ".admission", NULL, "NAME[:OPTION=VALUE]", tiers[i].admission,                \
          kvc_admission_names, "always",                                                           \
          "what of the blocks offered to it is stored; a plug-in's path or one of"),               \
    FLAG("tiers." t ".inclusive", tiers[i].inclusive, "true",                                      \
         "a block that was loaded also stays in the tier"),                                        \
    FLAG("tiers." t ".store_output", tiers[i].store_output, "true",                                \
         "known outputs are written too; in the first tier below HBM it counts"),                  \
    U32("tiers." t ".chunk_tokens", NULL, tiers[i].chunk_tokens, 0, 1048576, "0",                  \
        "unit of storage; 0 = the engine's page"),                                                 \
    TIME("tiers." t ".ttl", tiers[i].ttl_ns, 1e18, "",                                             \
         "blocks leave so long after their last use; unset = when room is needed"),                \
    REAL("tiers." t ".gb_month_usd", NULL, "USD", tiers[i].gb_month_usd, 0, 1e6, "",               \
         "price of a GB for a month; unset = from prices")

static const struct kvc_scenario_key keys[] = {
    TEXT("trace", NULL, "FILE", trace, "", "log or .kvt, seen from the scenario file's folder"),
    TEXT("profile", NULL, "FILE", profile, "",
         "own measured figures, written by 'kvcast calibrate' or 'kvcast bench'"),
    NAMED("preset", NULL, "NAME", preset, kvc_preset_scenario_names, "",
          "whole scenario to start from; keys that are set win"),
    NAMED("model", "model", "NAME", model, kvc_llm_names, "", "LLM ('kvcast show model' lists)"),
    CHOICE("weights_dtype", NULL, "DTYPE", weights_dtype, dtypes, "(as the model was published)",
           "of the weights"),
    CHOICE("kv_dtype", "kv-dtype", "DTYPE", kv_dtype, kv_dtypes, "bf16",
           "of the KV cache ('kvcast show kv' tells bytes, cost and published quality)"),

    NAMED("engine.preset", "engine", "NAME", engine.preset, kvc_preset_engine_names, "vllm-0.24",
          "engine whose rules and defaults hold"),
    CHOICE("engine.backend", NULL, "NAME", engine.backend, backends, "vllm",
           "whose kernel times are used"),
    U32("engine.page_tokens", NULL, engine.page_tokens, 1, 4096, "16", "tokens of a KV page"),
    U32("engine.max_batched_tokens", NULL, engine.max_batched_tokens, 1, 16777216, "8192",
        "token budget of a step; 2048 on A100 and below 70 GiB"),
    U32("engine.max_seqs", NULL, engine.max_seqs, 1, 1048576, "1024",
        "requests running at once; 256 on A100 and below 70 GiB"),
    U32("engine.max_model_len", NULL, engine.max_model_len, 1, U32_MAX, "",
        "longest prompt and output together; unset = no limit"),
    REAL("engine.gpu_memory_utilization", NULL, "F", engine.gpu_memory_utilization, 0.01, 1, "0.92",
         "share of GPU memory the engine may use"),
    FLAG("engine.prefix_caching", engine.prefix_caching, "true", "reuse KV of equal prefixes"),
    FLAG("engine.chunked_prefill", engine.chunked_prefill, "true", "long prompts in pieces"),
    FLAG("engine.reserve_full_prompt", engine.reserve_full_prompt, "true",
         "admit a request only when its whole prompt fits"),
    FLAG("engine.plan_ahead", engine.plan_ahead, "true",
         "a step is planned when the one before it begins (vLLM from 0.14 on), so that a request "
         "that comes during a step waits for the next one too"),
    FLAG("engine.cold", engine.cold, "false",
         "it has just started: the first step that needs a kernel compiles it (vLLM's experts of "
         "bf16 weights)"),
    FLAG("engine.unhashed_first", engine.unhashed_first, "true",
         "freed pages without a hash are reused before cached ones"),
    NAMED("engine.order", "order", "NAME[:OPTION=VALUE]", engine.order, kvc_ordering_names, "fcfs",
          "who of those that wait is admitted next: as of 'kvcast policy list', or a plug-in's "
          "path"),
    ENUM("engine.prefill", NULL, "RULE", engine.prefill, prefills, "mixed",
         "mixed: chunks of prompts beside decodes (vLLM, TensorRT-LLM); first: decodes wait while "
         "there are prompts to compute (SGLang)"),
    ENUM("engine.reserve_output", NULL, "RULE", engine.reserve_output, reserves, "never",
         "KV room for outputs, without which a request is not admitted: never kept (vLLM), "
         "estimated (SGLang's guess, outputs being as long as the trace's) or full (TensorRT-LLM)"),
    ENUM("engine.publish", NULL, "RULE", engine.publish, publishes, "scheduled",
         "when others find a prompt's KV: scheduled (vLLM), computed (TensorRT-LLM: outputs at "
         "their end), or inserted (SGLang: the same, and second copies are dropped)"),
    ENUM("engine.preempt", NULL, "RULE", engine.preempt, preempts, "last",
         "who gives way when KV room runs out: last admitted (vLLM) or shortest output (SGLang)"),
    ENUM("engine.prefetch", NULL, "RULE", engine.prefetch, prefetches, "never",
         "KV that lies below host memory is fetched into it from when a request comes (SGLang's "
         "HiCache): best_effort until the scheduler wants the request, wait_complete to the end, "
         "timeout for 1 s and 0.25 s per 1,024 tokens at most; never: loaded when the scheduler "
         "looks (vLLM, LMCache)"),
    U32("engine.prefetch_threshold", NULL, engine.prefetch_threshold, 0, 1048576, "256",
        "tokens below which nothing is fetched"),
    REAL("engine.prefetch_limit", NULL, "F", engine.prefetch_limit, 0, 1000, "0.8",
         "no fetch begins while those under way fill this share of what host memory holds beyond "
         "GPU memory"),
    FLAG("engine.partial_reuse", engine.partial_reuse, "false",
         "hits end at any token, not at pages (TensorRT-LLM)"),
    SIZE("engine.kv_cache_memory", NULL, engine.kv_cache_memory_bytes, 1, 1e18, "",
         "KV bytes of a replica, all ranks; unset = derived from GPU memory"),
    SIZE("engine.sequence_memory", NULL, engine.sequence_memory_bytes, 1, 1e18, "",
         "KV bytes, all ranks, that a running sequence takes beside its tokens: state of linear "
         "layers, sliding windows; unset = derived from model and engine"),
    FLAG("engine.unified_kv", engine.unified_kv, "false",
         "layers with a sliding window keep the whole context, as without a hybrid KV manager"),
    TIME("engine.kv_load_time", engine.kv_load_ns, 60e9, "(the backend's)",
         "what a load from below GPU memory costs its request beside the transfer"),
    TIME("engine.kv_load_token_time", engine.kv_load_token_ns, 1e9, "(the backend's)",
         "the same for each of its tokens"),
    REAL("engine.kv_resident", NULL, "F", engine.kv_resident, 0.01, 1, "1",
         "share of the tokens kept by token eviction (H2O 0.2, StreamingLLM); 1 = none evicted"),
    REAL("engine.output_inflation", NULL, "F", engine.output_inflation, 1, 100, "1",
         "outputs are so many times longer: what lossy KV does to reasoning"),

    NAMED("cluster.gpu", "gpu", "NAME", cluster.gpu, kvc_gpu_names, "",
          "GPU ('kvcast show hardware' lists)"),
    U32("cluster.tp", "tp", cluster.tp, 1, 1024, "1", "tensor-parallel GPUs of a replica"),
    U32("cluster.pp", NULL, cluster.pp, 1, 1024, "1", "pipeline stages of a replica"),
    U32("cluster.ep", NULL, cluster.ep, 1, 1024, "1", "expert-parallel GPUs of a replica"),
    U32("cluster.dp", NULL, cluster.dp, 1, 1024, "1",
        "data-parallel ranks of a replica: each schedules its own requests, all step together and "
        "share the experts"),
    U32("cluster.replicas", "replicas", cluster.replicas, 1, 65536, "1", "engine instances"),
    U32("cluster.gpus_per_node", NULL, cluster.gpus_per_node, 1, 1024, "8", "GPUs of a node"),

    NAMED("tiers.hbm.policy", "policy", "NAME[:OPTION=VALUE]", hbm_policy, kvc_eviction_names,
          "lru", "what goes first in GPU memory: as of 'kvcast policy list', or a plug-in's path"),
    TIME("tiers.hbm.ttl", hbm_ttl_ns, 1e18, "",
         "cached blocks leave so long after their last use; unset = when room is needed"),
    TIER(0, "dram", 1e18, "per_replica", "(the GPU's host link)", "the host memory tier"),
    TIER(1, "nvme", 1e19, "per_node", "nvme-gen5-x4", "the local flash tier"),
    TIER(2, "remote", 1e19, "cluster", "rdma-400", "the shared remote tier"),
    ENUM("tiers.remote.connector", NULL, "NAME", tiers[2].connector, connectors, "whole",
         "how another engine's KV is pulled: whole pages, or by nixl or mooncake, which send "
         "(vLLM) a piece for each page, layer and K or V; io_size states other pieces, as of "
         "joined pages"),

    NAMED("router.policy", "router", "NAME", router.policy, kvc_router_names, "round-robin",
          "how requests are spread over replicas; a plug-in's path or one of"),
    REAL("router.load_weight", NULL, "F", router.load_weight, 0, 1e6, "1",
         "weight of load against prefix hits"),
    TIME("router.latency", router.latency_ns, 60e9, "0s", "between arrival and the engine's queue"),

    ENUM("arrivals.mode", NULL, "MODE", arrivals.mode, modes, "open",
         "open: at the trace's times; closed: a fixed number at once; paced: at the trace's times, "
         "but no turn of a session before the one before it has ended"),
    REAL("arrivals.scale", "scale", "F", arrivals.scale, 1e-6, 1e6, "1",
         "rate against the trace's: 2 = twice as fast"),
    TIME("arrivals.spread", arrivals.spread_ns, DAY_NS, "0s",
         "requests that share a time stamp are spread evenly over this"),
    U32("arrivals.concurrency", NULL, arrivals.concurrency, 1, 1e6, "",
        "sessions at once in closed mode"),
    FLAG("arrivals.rounds", arrivals.rounds, "false",
         "closed mode: turn k of any session waits until turn k - 1 of all has ended"),

    TIME("warmup", warmup_ns, 1e18, "0s", "requests that arrive before this are not measured"),
    TIME("request_timeout", request_timeout_ns, 1e18, "",
         "a request that waits longer fails; unset = never"),
    TIME("slo.ttft_p99", slo.ttft_p99_ns, 1e18, "", "aim for the 99th percentile of TTFT"),
    TIME("slo.tpot_p99", slo.tpot_p99_ns, 1e18, "", "aim for the 99th percentile of TPOT"),

    REAL("prices.gpu_hour_usd", NULL, "USD", prices.gpu_hour_usd, 0, 1e6, "",
         "of one GPU; unset = the profile's"),
    REAL("prices.dram_gb_month_usd", NULL, "USD", prices.dram_gb_month_usd, 0, 1e6, "",
         "unset = the profile's"),
    REAL("prices.nvme_gb_month_usd", NULL, "USD", prices.nvme_gb_month_usd, 0, 1e6, "",
         "unset = the profile's"),
    REAL("prices.remote_gb_month_usd", NULL, "USD", prices.remote_gb_month_usd, 0, 1e6, "",
         "unset = the profile's"),
    REAL("prices.power_usd_per_kwh", NULL, "USD", prices.power_usd_per_kwh, 0, 1e6, "",
         "unset = power is part of the GPU's rent"),
    {"seed", NULL, "N", KVC_KEY_U64, AT(seed), 0, 0, NULL, NULL, "0", "of all random choices"},
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))
_Static_assert(N_KEYS <= 128, "kvc_scenario.given has a bit per key");

const struct kvc_scenario_key *kvc_scenario_keys(size_t *n)
{
    *n = N_KEYS;
    return keys;
}

const struct kvc_scenario_key *kvc_scenario_key_find(const char *name)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (kvc_name_equal(keys[i].name, name) ||
            (keys[i].flag && kvc_name_equal(keys[i].flag, name)))
            return &keys[i];
    }
    return NULL;
}
