/* SPDX-License-Identifier: Apache-2.0
 * The published figures, as their sources state them; no predicted one. */
#include "studies/headlines/headlines.h"

#include <stddef.h>

#define KGA "KGA blog, \"KV Cache Management 2026\" (2026-04-22)"
#define FP8_STUDY \
    "vLLM blog, \"The State of FP8 KV-Cache and Attention Quantization in vLLM\" (2026-04-22)"
#define TURBOQUANT "vLLM blog, \"A First Comprehensive Study of TurboQuant\" (2026-05-11)"
#define OFFLOADING "vLLM blog, \"Inside vLLM's New KV Offloading Connector\" (2026-01-08)"
#define AGENTIC \
    "vLLM blog, \"Serving Agentic Workloads at Scale with vLLM x Mooncake\" (2026-05-06)"
#define LMCACHE \
    "LMCache blog, \"Benchmarking LMCache for Multi-Turn Agentic Workloads\" (2026-04-20)"
#define HICACHE "LMSYS blog, \"SGLang HiCache: Fast Hierarchical KV Caching\" (2025-09-10)"
#define FAST25 "Mooncake, FAST'25 paper"
#define DEEPSEEK "DeepSeek open-infra-index, Open Source Week day 6 (2025-03)"

#define EACH KVC_HEADLINE_EACH
#define NOT_TRIED KVC_HEADLINE_NOT_TRIED, 0, NULL

static const struct kvc_headline table[] = {
    {"A01", "A 70B-class dense model at 128K context with 256 parallel sequences needs "
     "TB-scale HBM for KV alone",
     "TB", KGA,
     "a lower bound: bf16, 80 layers, 8 KV heads",
     {1}, 1, KVC_HEADLINE_AT_LEAST, 0, kvc_headline_sessions},
    {"A02", "One 128K request on a 70B model holds 40 GB of KV",
     "GiB", FAST25,
     "128K tokens at bf16",
     {40}, 1, EACH, 0.01, kvc_headline_request},
    {"A03", "FP8 KV halves the HBM taken by KV against FP16",
     "ratio", KGA,
     "scales of a tensor take no room",
     {0.5}, 1, EACH, 0.01, kvc_headline_fp8_share},
    {"A04", "FP8 KV lets the same GPUs hold 1.8x the concurrent sessions",
     "x", KGA,
     "GPU memory, context and what counts as a session are not stated; fp8 gives 2.0 less "
     "what is not KV",
     {1.8}, 1, NOT_TRIED},
    {"A06", "Over PCIe at about 40 GB/s the KV of a 128K sequence of a 70B model returns to "
     "the GPU within hundreds of ms",
     "ms", KGA,
     "at fp8; at bf16 one such link takes 1074 ms",
     {200, 999}, 2, KVC_HEADLINE_RANGE, 0, kvc_headline_reload},
    {"A08", "Tier heuristic: KV used in the last 30 s stays in HBM, 30 s to 10 min in CPU "
     "memory, older than 10 min on NVMe",
     "s", KGA,
     "a policy's input, not a result",
     {30, 600}, 2, NOT_TRIED},
    {"A09", "PagedAttention manages KV in pages of 16 tokens",
     "tokens", KGA,
     "vLLM's default page",
     {16}, 1, EACH, 0, kvc_headline_page},
    {"A10", "CPU tier sized at 256 GB and NVMe tier at 2 TB per node, with a namespace per "
     "tenant",
     "GB", KGA,
     "capacities of an example, an input",
     {256, 2000}, 2, NOT_TRIED},
    {"A11", "Tenants get quotas; above quota plain LRU applies, with a normal cap of 50% of "
     "the KV pool per tenant",
     "fraction", KGA,
     "which victims a tenant above its quota gives is not stated; docs/tenants.md shows the "
     "effect",
     {0.5}, 1, NOT_TRIED},
    {"B01", "vLLM prefix caching only: 2,100 tok/s, TTFT p50 210 ms, p99 720 ms, 38% of "
     "prefill recomputed",
     "tok/s, ms, ms, fraction", KGA,
     "arrivals, sessions, answers and how documents repeat are not stated",
     {2100, 210, 720, 0.38}, 4, NOT_TRIED},
    {"B02", "SGLang RadixAttention: 2,650 tok/s, TTFT p50 140 ms, p99 510 ms, 17% recomputed",
     "tok/s, ms, ms, fraction", KGA,
     "arrivals, sessions, answers and how documents repeat are not stated",
     {2650, 140, 510, 0.17}, 4, NOT_TRIED},
    {"B05", "With all six layers in place a node sustains thousands of tok/s and a p99 TTFT "
     "SLO of 500 ms",
     "tok/s, ms", KGA,
     "everything that B01 leaves open",
     {2000, 500}, 2, NOT_TRIED},
    {"B06", "Quality loss of FP8 E5M2 KV: -0.3% on Llama-3.3-70B, -0.6% on \"Qwen3-72B\"; "
     "general bound 0.5%",
     "%", KGA,
     "quality is no output of a simulator",
     {-0.3, -0.6}, 2, NOT_TRIED},
    {"C01", "FP8 KV pays for itself above roughly 7K tokens on H100",
     "tokens", FP8_STUDY,
     "one request, bf16 weights: the prompt from which on ITL is lower, by the half of 0.01 ms "
     "that times so stated may be off",
     {7010}, 1, EACH, 0.4, kvc_headline_break_even},
    {"C01b", "FP8 KV pays for itself above roughly 4K tokens on B200",
     "tokens", FP8_STUDY,
     "as C01; up to some 10,000 tokens the measured kernels differ by less than the steps of 2 us "
     "that they were timed in, so a prompt is hardly told: by 0.01 ms it would be 6,300",
     {4000}, 1, EACH, 0.4, kvc_headline_break_even_b200},
    {"C02", "FP8 decode slope falls to 54% of BF16 on H100",
     "ratio", FP8_STUDY,
     "of lines through ITL over 256 to 125,000 tokens; 5 points are allowed",
     {0.54}, 1, EACH, 0.093, kvc_headline_slopes},
    {"C06", "FP8 KV costs no throughput and doubles KV capacity",
     "ratio", TURBOQUANT,
     "200 prompts at once, three shapes, TP as GPUs",
     {1, 2}, 2, EACH, 0.05, kvc_headline_offline},
    {"C07", "Accuracy recovery with FP8 KV: Qwen3.5-27B AIME25 99%, Llama-3.3-70B MRCR at "
     "128K 97-98%",
     "fraction", FP8_STUDY,
     "quality is no output of a simulator",
     {0.99, 0.97, 0.98}, 3, NOT_TRIED},
    {"C08", "Hopper FP8 accumulation bug: 128K needle accuracy 91% fell to 13%, two-level "
     "accumulation restored 89%",
     "fraction", FP8_STUDY,
     "quality is no output of a simulator",
     {0.91, 0.13, 0.89}, 3, NOT_TRIED},
    {"C09", "TurboQuant 4-bit runs at 75-80% of BF16 throughput",
     "ratio", TURBOQUANT,
     "200 prompts at once, three shapes; the format's decode cost was fitted to the second, "
     "Qwen3-30B, so the first is the forecast",
     {0.75, 0.79}, 2, EACH, 0.067, kvc_headline_turboquant},
    {"C12", "KV capacity against BF16: FP8 2.0x, k8v4 2.4x, 4bit-nc 3.4x, k3v4-nc 3.7x, "
     "3bit-nc 4.2x (Llama-70B)",
     "x", TURBOQUANT,
     "the bytes of each format on Llama-3.3-70B, scales and layers left in bf16 included",
     {2, 2.4, 3.4, 3.7, 4.2}, 5, EACH, 0.03, kvc_headline_quantised},
    {"C13", "4-bit keeps 98% of reasoning accuracy; 3-bit loses 20 points on AIME/GPQA",
     "fraction, points", TURBOQUANT,
     "quality is no output of a simulator",
     {0.98, -20}, 2, NOT_TRIED},
    {"C14", "KIVI 2-bit allows 4x larger batch",
     "x", "KIVI, ICML 2024, arXiv 2402.02750",
     "GPU and lengths are not stated; the ratio of bytes alone is 16 / 2 bits and more",
     {4}, 1, NOT_TRIED},
    {"C15", "H2O keeps 20% of tokens and gains up to 29x throughput",
     "x", "H2O, NeurIPS 2023, arXiv 2306.14048",
     "the baselines offload weights; prompts and answers are not stated",
     {29}, 1, NOT_TRIED},
    {"C17", "Low-budget token eviction lengthens reasoning traces and gives the saving back",
     "qualitative", "\"Hold Onto That Thought\", arXiv 2512.12008 (2025-12-12)",
     "an input: answers grow, by how much is not stated",
     {0}, 0, NOT_TRIED},
    {"D01", "vLLM KV offloading: single-request TTFT 2-22x lower from CPU than recomputing",
     "x", OFFLOADING,
     "one request of 1,024 and of 100,000 tokens, engine time without front end and without what "
     "served loads cost beside the copy",
     {2, 22}, 2, EACH, 0.15, kvc_headline_offload},
    {"D03", "Offload gains more in throughput than in latency",
     "x", OFFLOADING,
     "throughput gains more than TTFT; 64 requests of 512 tokens, as D01",
     {9, 2}, 2, KVC_HEADLINE_DIRECTION, 0, kvc_headline_throughput},
    {"D04", "LMCache on MI300X with 64 GB of DRAM: TTFT 3.0x lower, 2.3x requests completed",
     "s, requests", LMCACHE,
     "trace set and share of the 64 GB are not stated; 12 and 28 requests are too few for a "
     "ratio",
     {34.59, 28}, 2, NOT_TRIED},
    {"D06", "Without PYTHONHASHSEED=0 LMCache has a 0% hit rate",
     "fraction", LMCACHE,
     "hash seeds are no part of a replay; --key-field shows what a log of salted ids loses",
     {0}, 1, NOT_TRIED},
    {"D07", "TRT-LLM host offload reuse: TTFT 14x on H100 with x86",
     "x", "NVIDIA developer blog (2024-11)",
     "lengths, batch, GPUs and precision are not stated",
     {14}, 1, NOT_TRIED},
    {"D09", "Lablup x VAST: first turn rises from 22.3 to 26.3 s with offload",
     "s more", "Lablup and VAST Data joint blog (2026-06-16)",
     "22.3 s to 26.3 s: the KV of 140,000 tokens over 12.5 GB/s, stored before the turn ends",
     {4}, 1, EACH, 0.1, kvc_headline_store},
    {"D12", "Rule of thumb: offload wins for models of 70B and more, contexts of 10K and "
     "more and heavily shared prefixes; loses for single-turn chat and TCP NFS",
     "signs", "a Korean Backend.AI explainer, original not found",
     "70B at 10K from DRAM wins, 8B at 1K over 25 Gb/s TCP loses",
     {1}, 1, EACH, 0, kvc_headline_signs},
    {"E01", "SGLang HiCache: up to 6x throughput",
     "x", HICACHE,
     "an upper end over set-ups that are not stated",
     {6}, 1, NOT_TRIED},
    {"E02", "HiCache: TTFT down by up to 80%",
     "fraction", HICACHE,
     "the GPU's KV pool and the dtype of KV are not stated",
     {0.8}, 1, NOT_TRIED},
    {"E06", "Ant Group: DeepSeek-R1-671B, TTFT -84% on cache hits",
     "fraction", HICACHE,
     "lengths are not stated",
     {0.84}, 1, NOT_TRIED},
    {"F01", "Mooncake lets Kimi serve 75% more requests",
     "fraction", "Mooncake technical report, arXiv 2407.00079 (2024-06)",
     "production; what was compared is not stated",
     {0.75}, 1, NOT_TRIED},
    {"F02", "FAST'25 version: 115% more requests on A800 (107% on H800); thousands of nodes, "
     "over 100 billion tokens a day",
     "fraction", FAST25,
     "production; what was compared is not stated",
     {1.15}, 1, NOT_TRIED},
    {"F03", "Effective request capacity on the conversation trace: +59% to +498% depending "
     "on the TBT threshold",
     "fraction", FAST25,
     "needs prefill apart from decode, which a replay does not have yet",
     {0.59, 1.57, 4.98}, 3, NOT_TRIED},
    {"F05", "Theoretical hit rate against capacity: 3M tokens reaches 41% / 75% / 46% of the "
     "maximum 0.40 / 0.59 / 0.66; 50M tokens nearly reaches it",
     "share of maximum", FAST25,
     "the public traces are not in the program: kvcast ceiling TRACE --capacity 5860 "
     "--policy lru holds them against 3M tokens",
     {0.41, 0.75, 0.46}, 3, NOT_TRIED},
    {"F07", "Codex / SWE-bench Pro traces: 610 traces, median 33 turns, 94.2% of prompt "
     "tokens reusable",
     "fraction", AGENTIC,
     "from the stated medians: 33 turns from 12,000 tokens on, 2,242 more each",
     {0.942}, 1, EACH, 0.011, kvc_headline_agent_reuse},
    {"F08", "Local cache hit rate 1.7%, with Mooncake Store 92.2%",
     "fraction", AGENTIC,
     "what the baseline keeps, and the KV pool left beside disaggregated prefill, are not "
     "stated",
     {0.017, 0.922}, 2, NOT_TRIED},
    {"F09", "Throughput 3.8x",
     "tok/s/GPU", AGENTIC,
     "needs disaggregated prefill; conditions of F08",
     {7669}, 1, NOT_TRIED},
    {"F10", "P50 TTFT 46x lower",
     "s", AGENTIC,
     "needs disaggregated prefill; conditions of F08",
     {1.8, 82.93}, 2, NOT_TRIED},
    {"F12", "DeepSeek averages 226.75 H800 nodes and $87,072 a day",
     "USD", DEEPSEEK,
     "226.75 nodes of 8 GPUs at 2 USD",
     {87072}, 1, EACH, 0, kvc_headline_deepseek_cost},
    {"F13", "Theoretical revenue $562,027 a day, margin 545%",
     "USD, ratio", DEEPSEEK,
     "from rounded token counts",
     {562027, 5.45}, 2, EACH, 0.0015, kvc_headline_deepseek_revenue},
    {"F14", "56.3% of 608B input tokens hit the disk KV cache",
     "fraction", DEEPSEEK,
     "342 of 608 billion",
     {0.563}, 1, EACH, 0.0036, kvc_headline_deepseek_hits},
    {"F17", "llm-d routing alone gives 57x lower P90 TTFT",
     "s", "llm-d blog, \"KV-Cache Wins You Can See\" (2025-09-24)",
     "answers are not the 1,000 tokens configured (10,497 tok/s over 59 requests/s are 177), "
     "and how requests cycle through the 750 prompts is not stated",
     {0.542, 31.083}, 2, NOT_TRIED},
    {"F20", "AIBrix: P99 TTFT 384.6 s to 0.22 s",
     "s", "AIBrix v0.3.0 release post (2025-05-21)",
     "hardware and load are not stated",
     {384.6, 0.22}, 2, NOT_TRIED},
    {"F22", "NIXL offers backends from RDMA to S3",
     "qualitative", "NIXL plugin documentation",
     "kinds of links, an input",
     {0}, 0, NOT_TRIED},
    {"F23", "TrendForce: server DRAM contract prices +13-18% in Q3 2026; HBM several times "
     "dearer in 2027",
     "fraction", "TrendForce, not found for the stated quarter",
     "a price forecast, an input",
     {0.13, 0.18}, 2, NOT_TRIED},
    {"F24", "Order of adoption: measure, FP8 KV above 7K tokens, prompt alignment and "
     "routing, CPU DRAM, then shared store",
     "qualitative", "an article on caching for LLM serving",
     "an order of steps: kvcast advise is to say it",
     {0}, 0, NOT_TRIED},
};

const struct kvc_headline *kvc_headline_table(size_t *n)
{
    *n = sizeof table / sizeof table[0];
    return table;
}
