/* SPDX-License-Identifier: Apache-2.0
 * What inference engines' logs state of the engines. */
#include "reports/billing.h"

#include "reports/out.h"

#include <stdio.h>

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
    if (e->kv_cache_tokens)
        kvc_text_addf(t, "    KV cache of %s tokens", kvc_fmt_count(e->kv_cache_tokens).s);
    if (e->kv_cache_bytes)
        kvc_text_addf(t, "%s %s on each GPU", e->kv_cache_tokens ? "," : "    KV cache of",
                      kvc_fmt_bytes((double)e->kv_cache_bytes).s);
    if (bytes_per_token(e))
        kvc_text_addf(t, ":\n    %s bytes a token if all layers keep all tokens",
                      kvc_fmt_count(bytes_per_token(e)).s);
    if (e->kv_cache_tokens || e->kv_cache_bytes)
        kvc_text_add(t, "\n");
    if (e->concurrency_tokens)
        kvc_text_addf(t, "    that size is derived: requests of %s tokens fit %s times\n",
                      kvc_fmt_count(e->concurrency_tokens).s,
                      kvc_fmt_fixed(e->concurrency, 2, true).s);
}

static void text_engine(struct kvc_text *t, const struct kvc_engine_facts *e)
{
    kvc_text_addf(t, "  %s\n", e->name[0] ? e->name : "(unnamed)");
    text_sizes(t, e);
    if (e->lines)
        kvc_text_addf(t, "    lines of statistics or batches: %s; at most %s running, %s "
                      "waiting; preemptions: %s\n", kvc_fmt_count(e->lines).s,
                      kvc_fmt_count(e->running_peak).s, kvc_fmt_count(e->waiting_peak).s,
                      kvc_fmt_count(e->preemptions).s);
    if (e->new_tokens + e->cached_tokens)
        kvc_text_addf(t, "    prompts: %s tokens computed, %s cached (%s)\n",
                      kvc_fmt_count(e->new_tokens).s, kvc_fmt_count(e->cached_tokens).s,
                      kvc_fmt_percent((double)e->cached_tokens /
                                      (double)(e->new_tokens + e->cached_tokens)).s);
    if (e->prompt_tokens_per_s_peak >= 0)
        kvc_text_addf(t, "    at most %s prompt tokens/s",
                      kvc_fmt_fixed(e->prompt_tokens_per_s_peak, 1, true).s);
    if (e->output_tokens_per_s_peak >= 0)
        kvc_text_addf(t, "%s %s generated/s", e->prompt_tokens_per_s_peak >= 0 ? "," :
                      "    at most", kvc_fmt_fixed(e->output_tokens_per_s_peak, 1, true).s);
    if (e->prompt_tokens_per_s_peak >= 0 || e->output_tokens_per_s_peak >= 0)
        kvc_text_add(t, "\n");
    if (e->kv_used_peak >= 0)
        kvc_text_addf(t, "    KV cache at most %s full\n", kvc_fmt_percent(e->kv_used_peak).s);
    if (e->hit_rate_last >= 0)
        kvc_text_addf(t, "    prefix hit rate %s at last (by tokens, recent requests)\n",
                      kvc_fmt_percent(e->hit_rate_last).s);
    if (e->external_hit_rate_last >= 0)
        kvc_text_addf(t, "    external prefix hit rate %s at last\n",
                      kvc_fmt_percent(e->external_hit_rate_last).s);
    if (e->stored_tokens || e->retrieved_tokens)
        kvc_text_addf(t, "    offloading: %s tokens stored, %s retrieved\n",
                      kvc_fmt_count(e->stored_tokens).s, kvc_fmt_count(e->retrieved_tokens).s);
}

void kvc_engines_text(struct kvc_text *t, const struct kvc_import_report *r)
{
    if (!r->n_engines)
        return;
    kvc_text_add(t, "\nEngines, as they state themselves\n");
    for (uint32_t i = 0; i < r->n_engines; i++)
        text_engine(t, &r->engines[i]);
}
