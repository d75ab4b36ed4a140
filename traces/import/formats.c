/* SPDX-License-Identifier: Apache-2.0
 * The formats kvcast reads; the first that recognises a file's beginning takes it. */
#include "traces/import/import.h"

#define FORMATS(F)                                                                                 \
    F(mooncake, "mooncake")                                                                        \
    F(llmservingsim, "llmservingsim")                                                              \
    F(kv_cache_tester, "kv-cache-tester")                                                          \
    F(langfuse, "langfuse")                                                                        \
    F(litellm, "litellm")                                                                          \
    F(otel_genai, "otel-genai")                                                                    \
    F(aibrix, "aibrix")                                                                            \
    F(lmcache_agent, "lmcache-agent")                                                              \
    F(openai_messages, "openai-messages")                                                          \
    F(usage_jsonl, "usage-jsonl")                                                                  \
    F(sglang_log, "sglang-log")                                                                    \
    F(vllm_log, "vllm-log")                                                                        \
    F(kvcast_csv, "kvcast-csv")                                                                    \
    F(azure, "azure")                                                                              \
    F(burstgpt, "burstgpt")                                                                        \
    F(vidur, "vidur")                                                                              \
    F(blis_tracev2, "blis-tracev2")                                                                \
    F(dynamo, "dynamo")                                                                            \
    F(kv_events, "kv-events")                                                                      \
    F(qwen_bailian, "qwen-bailian")                                                                \
    F(ragpulse, "ragpulse")                                                                        \
    F(tair, "tair")                                                                                \
    F(libcachesim, "libcachesim")                                                                  \
    F(oraclegeneral, "oraclegeneral")                                                              \
    /* end */

#define ADDRESS(symbol, text) &kvc_format_##symbol,
#define NAME(symbol, text) text,

const struct kvc_format *const kvc_format_table[] = { FORMATS(ADDRESS) &kvc_format_servegen,
                                                     NULL };

const char *const *kvc_trace_formats(void)
{
    static const char *const names[] = { FORMATS(NAME) NULL };
    return names;
}
