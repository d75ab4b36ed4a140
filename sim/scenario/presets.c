/* SPDX-License-Identifier: Apache-2.0
 * Presets: settings under a name, applied below what the user sets. */
#include "sim/scenario/scenario_internal.h"

#include "base/units.h"

#define LATER "is not modelled in this release yet; vllm-0.24, lmcache, sglang and trtllm are"

#define VLLM                                                                                       \
    {"engine.backend", "vllm"}, {"engine.page_tokens", "16"},                                      \
    {"engine.max_batched_tokens", "8192"}, {"engine.max_seqs", "1024"},                            \
    {"engine.gpu_memory_utilization", "0.92"}, {"engine.prefix_caching", "true"},                  \
    {"engine.chunked_prefill", "true"}, {"engine.reserve_full_prompt", "true"},                    \
    {"engine.plan_ahead", "true"}

static const struct kvc_setting vllm_0_24[] = {
    VLLM,
    {"engine.unhashed_first", "true"},
    {NULL, NULL},
};

/* Before 0.24 every released page went to the tail of the free queue, hashed or not. */
static const struct kvc_setting vllm_0_23[] = {
    VLLM,
    {"engine.unhashed_first", "false"},
    {NULL, NULL},
};

/* vLLM 0.24 with LMCache's in-process defaults: 5 GB of host memory a worker, chunks of 256
 * tokens, write-through, LRU, prompts only (save_decode_cache is off). What comes from disk or a
 * peer is in host memory as a whole before it goes to the GPU. */
static const struct kvc_setting lmcache[] = {
    VLLM,
    {"engine.unhashed_first", "true"},
    {"tiers.dram.capacity", "5GB"},
    {"tiers.dram.scope", "per_gpu"},
    {"tiers.dram.write", "through"},
    {"tiers.dram.chunk_tokens", "256"},
    {"tiers.dram.store_output", "false"},
    {"tiers.nvme.store_output", "false"},
    {"tiers.remote.store_output", "false"},
    {"tiers.nvme.chunk_tokens", "256"},
    {"tiers.nvme.staged", "true"},
    {"tiers.remote.staged", "true"},
    {"tiers.remote.chunk_tokens", "256"},
    {NULL, NULL},
};

/* max_total_tokens / context x 512, between 2048 and 4096: its lower end. The static share of GPU
 * memory and the chunk follow from the GPU (scenario.c). */
static const struct kvc_setting sglang[] = {
    {"engine.backend", "sglang"},
    {"engine.page_tokens", "1"},
    {"engine.max_batched_tokens", "8192"},
    {"engine.max_seqs", "2048"},
    {"engine.prefill", "first"},
    {"engine.reserve_output", "estimated"},
    {"engine.publish", "inserted"},
    {"engine.preempt", "shortest"},
    {"engine.prefetch", "best_effort"},
    {NULL, NULL},
};

/* GUARANTEED_NO_EVICT, chunked context off, partial reuse on. */
static const struct kvc_setting trtllm[] = {
    {"engine.backend", "trtllm"},
    {"engine.page_tokens", "32"},
    {"engine.max_batched_tokens", "8192"},
    {"engine.max_seqs", "2048"},
    {"engine.gpu_memory_utilization", "0.9"},
    {"engine.chunked_prefill", "false"},
    {"engine.reserve_output", "full"},
    {"engine.publish", "computed"},
    {"engine.partial_reuse", "true"},
    {NULL, NULL},
};

/* RAG chat on one node of 8 x H200. Two replicas of four GPUs: fp8 weights (70 GB) would fit one
 * GPU, but a prompt of some 10,000 tokens is then computed four times slower, and eight GPUs in
 * one replica spend more of a step on all-reduces; two replicas also make routing matter. DRAM and
 * NVMe belong to the node, as with LMCache's server, so a replica finds what the other stored. */
static const struct kvc_setting kga_rag[] = {
    {"model", "llama-3.1-70b"},
    {"weights_dtype", "fp8"},
    {"kv_dtype", "fp8_e5m2"},
    {"engine.preset", "lmcache"},
    {"engine.max_batched_tokens", "8192"},
    {"cluster.gpu", "h200-sxm"},
    {"cluster.tp", "4"},
    {"cluster.replicas", "2"},
    {"cluster.gpus_per_node", "8"},
    {"tiers.dram.capacity", "256GB"},
    {"tiers.dram.scope", "per_node"},
    {"tiers.nvme.capacity", "2TB"},
    {"tiers.nvme.scope", "per_node"},
    {"tiers.nvme.link", "nvme-gen5-x4"},
    {"router.policy", "prefix"},
    {NULL, NULL},
};

static const struct kvc_preset presets[] = {
    {"vllm-0.24", "vLLM from 0.24 on: freed pages without a hash are reused first",
     "vLLM's sources, v1/core and config defaults", false, NULL, vllm_0_24},
    {"vllm-0.23", "vLLM up to 0.23: freed pages are reused in the order of release",
     "vLLM's sources, v1/core and config defaults", false, LATER, vllm_0_23},
    {"lmcache", "vLLM 0.24 with LMCache's defaults: 5 GB of DRAM a GPU, chunks of 256 tokens",
     "LMCache's sources, v1 defaults", false, NULL, lmcache},
    {"sglang", "SGLang: prompts before decodes, prefixes inserted per chunk, output room estimated",
     "SGLang's sources, srt/managers and mem_cache defaults", false, NULL, sglang},
    {"sglang-hicache", "SGLang with hierarchical cache", "", false, LATER, NULL},
    {"trtllm", "TensorRT-LLM: whole prompts, room to the end reserved, reuse to the token",
     "TensorRT-LLM's sources, batch_manager, and KvCacheConfig defaults", false, NULL, trtllm},
    {"mooncake", "vLLM with Mooncake's store", "", false, LATER, NULL},
    {"dynamo", "Dynamo", "", false, LATER, NULL},
    {"llmd", "llm-d", "", false, LATER, NULL},
    {"aibrix", "AIBrix", "", false, LATER, NULL},
    {"kga-rag", "RAG chat on 8 x H200: Llama-3.1-70B fp8, vLLM and LMCache, 256 GB DRAM and 2 TB "
                "NVMe a node",
     "the quickstart's scenario", true, NULL, kga_rag},
    {NULL, NULL, NULL, false, NULL, NULL},
};

const struct kvc_preset *kvc_presets(void)
{
    return presets;
}

const struct kvc_preset *kvc_preset_find(const char *name)
{
    for (const struct kvc_preset *p = presets; p->name; p++) {
        if (kvc_name_equal(p->name, name))
            return p;
    }
    return NULL;
}

const char *const *kvc_preset_engine_names(void)
{
    static const char *const names[] = {"vllm-0.24", "vllm-0.23", "lmcache",  "sglang",
                                        "sglang-hicache", "trtllm", "mooncake", "dynamo",
                                        "llmd",      "aibrix",    NULL};
    return names;
}

const char *const *kvc_preset_scenario_names(void)
{
    static const char *const names[] = {"kga-rag", NULL};
    return names;
}
