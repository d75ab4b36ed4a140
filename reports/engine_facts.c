/* SPDX-License-Identifier: Apache-2.0
 * What inference engines' logs state of the engines. */
#include "reports/billing.h"

#include "base/units.h"

#include <stdio.h>

typedef unsigned long long ull;

static void number(struct kvc_json *j, const char *key, double v, bool stated)
{
    if (stated)
        kvc_json_double(j, key, v);
    else
        kvc_json_null(j, key);
}

static void count(struct kvc_json *j, const char *key, uint64_t v)
{
    if (v)
        kvc_json_u64(j, key, v);
    else
        kvc_json_null(j, key);
}

/* Of memory and tokens as stated; 0 when one is not. */
static uint64_t bytes_per_token(const struct kvc_engine_facts *e)
{
    return e->kv_cache_tokens ? e->kv_cache_bytes / e->kv_cache_tokens : 0;
}

static void json_engine(struct kvc_json *j, const struct kvc_engine_facts *e)
{
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "name", e->name);
    count(j, "kv_cache_tokens", e->kv_cache_tokens);
    count(j, "kv_cache_bytes_per_gpu", e->kv_cache_bytes);
    count(j, "kv_bytes_per_token_if_all_layers_alike", bytes_per_token(e));
    count(j, "max_concurrency_of_tokens", e->concurrency_tokens);
    number(j, "max_concurrency", e->concurrency, e->concurrency_tokens != 0);
    kvc_json_u64(j, "lines", e->lines);
    kvc_json_u64(j, "new_tokens", e->new_tokens);
    kvc_json_u64(j, "cached_tokens", e->cached_tokens);
    number(j, "prompt_tokens_per_s_peak", e->prompt_tokens_per_s_peak,
           e->prompt_tokens_per_s_peak >= 0);
    number(j, "output_tokens_per_s_peak", e->output_tokens_per_s_peak,
           e->output_tokens_per_s_peak >= 0);
    kvc_json_u64(j, "running_peak", e->running_peak);
    kvc_json_u64(j, "waiting_peak", e->waiting_peak);
    kvc_json_u64(j, "preemptions", e->preemptions);
    number(j, "kv_used_peak", e->kv_used_peak, e->kv_used_peak >= 0);
    number(j, "prefix_hit_rate_last", e->hit_rate_last, e->hit_rate_last >= 0);
    number(j, "external_hit_rate_last", e->external_hit_rate_last, e->external_hit_rate_last >= 0);
    kvc_json_u64(j, "stored_tokens", e->stored_tokens);
    kvc_json_u64(j, "stored_bytes", e->stored_bytes);
    kvc_json_u64(j, "retrieved_tokens", e->retrieved_tokens);
    kvc_json_u64(j, "retrieved_bytes", e->retrieved_bytes);
    kvc_json_close(j);
}

void kvc_engines_json(struct kvc_json *j, const struct kvc_import_report *r)
{
    uint64_t fresh = 0, cached = 0;
    if (!r->n_engines) {
        kvc_json_null(j, "engine");
        return;
    }
    kvc_json_open_object(j, "engine");
    for (uint32_t i = 0; i < r->n_engines; i++) {
        fresh += r->engines[i].new_tokens;
        cached += r->engines[i].cached_tokens;
    }
    kvc_json_u64(j, "new_tokens", fresh);
    kvc_json_u64(j, "cached_tokens", cached);
    number(j, "cached_share", (double)cached / (double)(fresh + cached), fresh + cached != 0);
    kvc_json_open_array(j, "engines");
    for (uint32_t i = 0; i < r->n_engines; i++)
        json_engine(j, &r->engines[i]);
    kvc_json_close(j);
    kvc_json_close(j);
}

static void text_sizes(struct kvc_text *t, const struct kvc_engine_facts *e)
{
    char bytes[32];
    if (e->kv_cache_tokens)
        kvc_text_addf(t, "    KV cache of %llu tokens", (ull)e->kv_cache_tokens);
    if (e->kv_cache_bytes) {
        kvc_format_bytes(e->kv_cache_bytes, bytes, sizeof(bytes));
        kvc_text_addf(t, "%s %s on each GPU", e->kv_cache_tokens ? "," : "    KV cache of", bytes);
    }
    if (bytes_per_token(e))
        kvc_text_addf(t, ": %llu bytes a token if all layers keep all tokens",
                      (ull)bytes_per_token(e));
    if (e->kv_cache_tokens || e->kv_cache_bytes)
        kvc_text_add(t, "\n");
    if (e->concurrency_tokens)
        kvc_text_addf(t, "    that size is derived: requests of %llu tokens fit %.2f times\n",
                      (ull)e->concurrency_tokens, e->concurrency);
}

static void text_engine(struct kvc_text *t, const struct kvc_engine_facts *e)
{
    kvc_text_addf(t, "  %s\n", e->name[0] ? e->name : "(unnamed)");
    text_sizes(t, e);
    if (e->lines)
        kvc_text_addf(t, "    %llu lines of statistics or batches: at most %llu running, %llu "
                      "waiting, %llu preemptions\n", (ull)e->lines, (ull)e->running_peak,
                      (ull)e->waiting_peak, (ull)e->preemptions);
    if (e->new_tokens + e->cached_tokens)
        kvc_text_addf(t, "    prompts: %llu tokens computed, %llu cached (%.1f %%)\n",
                      (ull)e->new_tokens, (ull)e->cached_tokens,
                      100 * (double)e->cached_tokens / (double)(e->new_tokens + e->cached_tokens));
    if (e->prompt_tokens_per_s_peak >= 0)
        kvc_text_addf(t, "    at most %.1f prompt tokens/s", e->prompt_tokens_per_s_peak);
    if (e->output_tokens_per_s_peak >= 0)
        kvc_text_addf(t, "%s %.1f generated/s", e->prompt_tokens_per_s_peak >= 0 ? "," :
                      "    at most", e->output_tokens_per_s_peak);
    if (e->prompt_tokens_per_s_peak >= 0 || e->output_tokens_per_s_peak >= 0)
        kvc_text_add(t, "\n");
    if (e->kv_used_peak >= 0)
        kvc_text_addf(t, "    KV cache at most %.1f %% full\n", 100 * e->kv_used_peak);
    if (e->hit_rate_last >= 0)
        kvc_text_addf(t, "    prefix hit rate %.1f %% at last (by tokens, recent requests)\n",
                      100 * e->hit_rate_last);
    if (e->external_hit_rate_last >= 0)
        kvc_text_addf(t, "    external prefix hit rate %.1f %% at last\n",
                      100 * e->external_hit_rate_last);
    if (e->stored_tokens || e->retrieved_tokens)
        kvc_text_addf(t, "    offloading: %llu tokens stored, %llu retrieved\n",
                      (ull)e->stored_tokens, (ull)e->retrieved_tokens);
}

void kvc_engines_text(struct kvc_text *t, const struct kvc_import_report *r)
{
    if (!r->n_engines)
        return;
    kvc_text_add(t, "\nEngines, as they state themselves\n");
    for (uint32_t i = 0; i < r->n_engines; i++)
        text_engine(t, &r->engines[i]);
}
