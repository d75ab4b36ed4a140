/* SPDX-License-Identifier: Apache-2.0
 * The formats kvcast reads; the first that recognises a file's beginning takes it. */
#include "traces/import.h"

const struct kvc_format *const kvc_format_table[] = { &kvc_format_mooncake,
                                                     &kvc_format_llmservingsim,
                                                     &kvc_format_kv_cache_tester,
                                                     &kvc_format_kvcast_csv, NULL };

const char *const *kvc_trace_formats(void)
{
    static const char *const names[] = { "mooncake", "llmservingsim", "kv-cache-tester", "kvcast-csv",
                                          NULL };
    return names;
}
