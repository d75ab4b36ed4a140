/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/formats/usage.h"

#include "base/decimal.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

static const struct {
    const char *name;
    uint8_t slot;
} known[] = {
    /* OpenAI chat, vLLM, LiteLLM */
    { "prompt_tokens", KVC_USAGE_PROMPT },
    { "completion_tokens", KVC_USAGE_OUTPUT },
    { "total_tokens", KVC_USAGE_TOTAL },
    { "prompt_tokens_details.cached_tokens", KVC_USAGE_READ_INSIDE },
    { "prompt_tokens_details.cache_write_tokens", KVC_USAGE_WRITE_INSIDE },
    { "prompt_tokens_details.cache_creation_tokens", KVC_USAGE_WRITE_INSIDE },
    { "completion_tokens_details.reasoning_tokens", KVC_USAGE_REASONING },
    /* OpenAI Responses; input_tokens is Anthropic's and OpenTelemetry's as well */
    { "input_tokens", KVC_USAGE_INPUT },
    { "output_tokens", KVC_USAGE_OUTPUT },
    { "input_tokens_details.cached_tokens", KVC_USAGE_READ_INSIDE },
    { "output_tokens_details.reasoning_tokens", KVC_USAGE_REASONING },
    /* Anthropic */
    { "cache_read_input_tokens", KVC_USAGE_READ },
    { "cache_creation_input_tokens", KVC_USAGE_WRITE },
    { "cache_creation.ephemeral_5m_input_tokens", KVC_USAGE_WRITE_5M },
    { "cache_creation.ephemeral_1h_input_tokens", KVC_USAGE_WRITE_1H },
    /* SGLang, Moonshot, engines' own */
    { "cached_tokens", KVC_USAGE_READ_INSIDE },
    { "num_cached_tokens", KVC_USAGE_READ_INSIDE },
    /* DeepSeek */
    { "prompt_cache_hit_tokens", KVC_USAGE_READ_INSIDE },
    { "prompt_cache_miss_tokens", KVC_USAGE_MISS },
    /* Gemini */
    { "promptTokenCount", KVC_USAGE_PROMPT },
    { "cachedContentTokenCount", KVC_USAGE_READ_INSIDE },
    { "candidatesTokenCount", KVC_USAGE_OUTPUT },
    { "thoughtsTokenCount", KVC_USAGE_REASONING_BESIDE },
    { "totalTokenCount", KVC_USAGE_TOTAL },
    /* Bedrock */
    { "inputTokens", KVC_USAGE_INPUT },
    { "outputTokens", KVC_USAGE_OUTPUT },
    { "totalTokens", KVC_USAGE_TOTAL },
    { "cacheReadInputTokens", KVC_USAGE_READ },
    { "cacheWriteInputTokens", KVC_USAGE_WRITE },
    /* OpenTelemetry, without gen_ai.usage. or llm.usage. before it */
    { "cache_read.input_tokens", KVC_USAGE_READ },
    { "cache_creation.input_tokens", KVC_USAGE_WRITE },
    { "cache_write.input_tokens", KVC_USAGE_WRITE },
    { "reasoning.output_tokens", KVC_USAGE_REASONING },
    { "reasoning_tokens", KVC_USAGE_REASONING },
    { "details.cache_read_tokens", KVC_USAGE_READ },
    { "details.cache_write_tokens", KVC_USAGE_WRITE },
    /* OpenInference */
    { "llm.token_count.prompt", KVC_USAGE_PROMPT },
    { "llm.token_count.completion", KVC_USAGE_OUTPUT },
    { "llm.token_count.total", KVC_USAGE_TOTAL },
    { "llm.token_count.prompt_details.cache_read", KVC_USAGE_READ_INSIDE },
    { "llm.token_count.prompt_details.cache_write", KVC_USAGE_WRITE_INSIDE },
    { "llm.token_count.completion_details.reasoning", KVC_USAGE_REASONING },
    /* Langfuse */
    { "input", KVC_USAGE_INPUT },
    { "output", KVC_USAGE_OUTPUT },
    { "total", KVC_USAGE_TOTAL },
    { "input_cached_tokens", KVC_USAGE_READ },
    { "input_cache_read", KVC_USAGE_READ },
    { "input_cache_creation", KVC_USAGE_WRITE },
    { "input_cache_creation_5m", KVC_USAGE_WRITE_5M },
    { "input_cache_creation_1h", KVC_USAGE_WRITE_1H },
    { "input_audio_tokens", KVC_USAGE_INPUT_OTHER },
    { "output_reasoning_tokens", KVC_USAGE_REASONING_BESIDE },
};

static bool find(const char *name, size_t *index)
{
    static const char *const prefixes[] = { "gen_ai.usage.", "llm.usage.",
                                            "gen_ai.client.inference.usage." };
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            name += strlen(prefixes[i]);
            break;
        }
    for (*index = 0; *index < sizeof(known) / sizeof(known[0]); ++*index)
        if (strcmp(name, known[*index].name) == 0)
            return true;
    return false;
}

bool kvc_usage_known(const char *name)
{
    size_t i;
    return find(name, &i);
}

/* ---- taking counts in ---- */

KVC_PRINTF(5, 6)
static enum kvc_status contradiction(const struct kvc_place *at, const char *within,
                                     const char *name, struct kvc_error *err, const char *fmt, ...)
{
    char field[64], text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(field, sizeof(field), "%s%s%s", within ? within : "", within ? "." : "", name);
    return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field, "%s", text);
}

enum kvc_status kvc_usage_note_number(struct kvc_usage_counts *counts, const char *name, uint64_t n,
                                      const char *within, const struct kvc_place *at,
                                      struct kvc_error *err)
{
    size_t i;
    if (!find(name, &i))
        return KVC_OK;
    unsigned slot = known[i].slot;
    if (n > KVC_TOKENS_MAX)
        return contradiction(at, within, name, err, "%llu is no number of tokens",
                             (unsigned long long)n);
    uint32_t had = counts->v[slot];
    if (counts->name[slot] && had && n && had != n)
        return contradiction(at, within, name, err, "%llu, but %s says %u",
                             (unsigned long long)n, counts->name[slot], had);
    if (counts->name[slot] && !n)
        return KVC_OK;
    counts->v[slot] = (uint32_t)n;
    counts->name[slot] = known[i].name;
    return KVC_OK;
}

enum kvc_status kvc_usage_note(struct kvc_usage_counts *counts, const char *name,
                               const struct kvc_jval *v, const char *within,
                               const struct kvc_place *at, struct kvc_error *err)
{
    size_t i;
    uint64_t n;
    bool exact;
    struct kvc_decimal d;
    char field[64];
    const char *text = kvc_jval_string(v);
    if (!find(name, &i) || kvc_jval_kind(v) == KVC_JNULL || (text && !*text))
        return KVC_OK;
    if (kvc_jval_u64(v, &n) ||
        (text && kvc_decimal_parse(text, strlen(text), &d) == strlen(text) && !d.negative &&
         kvc_decimal_scale(&d, 1, &n, &exact) && exact))
        return kvc_usage_note_number(counts, name, n, within, at, err);
    snprintf(field, sizeof(field), "%s%s%s", within ? within : "", within ? "." : "", name);
    return kvc_field_wrong(at, field, v, "a whole number of tokens from 0 to 2^31-1 is expected",
                           err);
}

enum kvc_status kvc_usage_note_object(struct kvc_usage_counts *counts,
                                      const struct kvc_jval *object, const char *within,
                                      const struct kvc_place *at, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    char path[128];
    if (!object || kvc_jval_kind(object) != KVC_JOBJECT)
        return KVC_OK;
    const struct kvc_jval *v = kvc_jval_first(object);
    for (; v && status == KVC_OK; v = kvc_jval_next(v)) {
        if (kvc_jval_kind(v) != KVC_JOBJECT) {
            status = kvc_usage_note(counts, kvc_jval_key(v), v, within, at, err);
            continue;
        }
        for (const struct kvc_jval *in = kvc_jval_first(v); in && status == KVC_OK;
             in = kvc_jval_next(in))
            if (snprintf(path, sizeof(path), "%s.%s", kvc_jval_key(v), kvc_jval_key(in)) <
                (int)sizeof(path))
                status = kvc_usage_note(counts, path, in, within, at, err);
    }
    return status;
}

/* ---- what they mean ---- */

struct parts {
    uint64_t input, read, write, other, output, beside; /* beside: reasoning not in output */
    const char *read_name, *write_name;
    bool inside; /* the name of the cached tokens says that they are part of the input */
};

/* One count under one of two kinds of name: what is not 0, and never two answers. */
static enum kvc_status one_of(const struct kvc_usage_counts *c, enum kvc_usage_slot a,
                              enum kvc_usage_slot b, uint64_t *n, const char **name,
                              const char *within, const struct kvc_place *at,
                              struct kvc_error *err)
{
    if (c->v[a] && c->v[b] && c->v[a] != c->v[b])
        return contradiction(at, within, c->name[b], err, "%u, but %s says %u", c->v[b],
                             c->name[a], c->v[a]);
    enum kvc_usage_slot pick = c->name[a] && (c->v[a] || !c->v[b]) ? a : b;
    *n = c->v[pick];
    *name = c->name[pick];
    return KVC_OK;
}

static enum kvc_status written(const struct kvc_usage_counts *c, struct parts *p,
                               const char *within, const struct kvc_place *at,
                               struct kvc_error *err)
{
    uint64_t split = (uint64_t)c->v[KVC_USAGE_WRITE_5M] + c->v[KVC_USAGE_WRITE_1H];
    const char *name = c->name[KVC_USAGE_WRITE_5M] ? c->name[KVC_USAGE_WRITE_5M]
                                                   : c->name[KVC_USAGE_WRITE_1H];
    enum kvc_status status = one_of(c, KVC_USAGE_WRITE_INSIDE, KVC_USAGE_WRITE, &p->write,
                                    &p->write_name, within, at, err);
    if (status != KVC_OK || !name || !split)
        return status;
    if (p->write && split != p->write)
        return contradiction(at, within, name, err, "%llu written for 5 minutes and an hour "
                             "together, but %s says %llu", (unsigned long long)split,
                             p->write_name, (unsigned long long)p->write);
    p->write = split;
    p->write_name = name;
    return KVC_OK;
}

/* The input as stated; *whole: it counts the cached tokens, for there is a second that doesn't. */
static enum kvc_status input(const struct kvc_usage_counts *c, struct parts *p, bool *whole,
                             const char *within, const struct kvc_place *at, struct kvc_error *err)
{
    uint32_t prompt = c->v[KVC_USAGE_PROMPT], in = c->v[KVC_USAGE_INPUT];
    bool both = c->name[KVC_USAGE_PROMPT] && c->name[KVC_USAGE_INPUT];
    *whole = both && prompt != in && prompt == in + p->read + p->write;
    if (both && prompt && in && prompt != in && !*whole)
        return contradiction(at, within, c->name[KVC_USAGE_INPUT], err, "%u, but %s says %u", in,
                             c->name[KVC_USAGE_PROMPT], prompt);
    p->input = prompt ? prompt : in;
    if (!c->name[KVC_USAGE_PROMPT] && !c->name[KVC_USAGE_INPUT] && c->name[KVC_USAGE_MISS])
        p->input = (uint64_t)c->v[KVC_USAGE_MISS] + c->v[KVC_USAGE_READ_INSIDE];
    return KVC_OK;
}

/* Whether cached tokens stand beside the input, for APIs and OpenTelemetry. */
static enum kvc_status decide(const struct kvc_usage_counts *c, enum kvc_usage_dialect dialect,
                              const struct parts *p, bool whole, const char *within,
                              const struct kvc_place *at, struct kvc_usage *out,
                              struct kvc_error *err)
{
    bool more = p->read + p->write > p->input;
    bool flat = c->name[KVC_USAGE_READ] || c->name[KVC_USAGE_WRITE] ||
                c->name[KVC_USAGE_WRITE_5M] || c->name[KVC_USAGE_WRITE_1H];
    bool inside = c->v[KVC_USAGE_READ_INSIDE] || (c->name[KVC_USAGE_READ_INSIDE] && !flat);
    if (whole)
        return KVC_OK;
    if (more && inside && !flat && dialect == KVC_USAGE_API)
        return contradiction(at, within, p->read > p->input ? p->read_name : p->write_name, err,
                             "%llu tokens from or into the cache, of %llu in the prompt",
                             (unsigned long long)(p->read + p->write),
                             (unsigned long long)p->input);
    bool anthropic = dialect == KVC_USAGE_API && flat && !inside && !c->name[KVC_USAGE_PROMPT];
    out->exclusive = anthropic || more;
    out->against_custom = more && !anthropic;
    return KVC_OK;
}

/* Langfuse keeps parts that add up to the total. Whose own integration wrote them took the cached
 * tokens out of the input; whoever reported usage by hand may not have. */
static void decide_by_total(const struct kvc_usage_counts *c, struct parts *p,
                            struct kvc_usage *out)
{
    uint64_t in = p->input, apart = p->read + p->write + p->other;
    uint64_t thoughts = c->v[KVC_USAGE_REASONING];
    uint64_t total = c->v[KVC_USAGE_TOTAL];
    bool more = p->read + p->write > in;
    out->exclusive = true;
    if (!total)
        return;
    if (in + apart + p->output + p->beside == total)
        return;
    if (in + apart + p->output + thoughts == total && thoughts) {
        p->beside = thoughts;
    } else if (in + apart + p->output == total) {
        p->beside = 0;
    } else if (!more && in + p->output + p->beside == total) {
        out->exclusive = false;
    } else if (!more && in + p->output == total) {
        out->exclusive = false;
        p->beside = 0;
    } else {
        out->total_differs = true;
    }
}

static bool sums_differ(const struct kvc_usage_counts *c, const struct parts *p)
{
    uint64_t total = c->v[KVC_USAGE_TOTAL], out = p->output + p->beside;
    return c->name[KVC_USAGE_TOTAL] && total && total != p->input + out &&
           total != p->input + p->read + p->write + out && total != p->input + p->output;
}

static enum kvc_status fill(const struct kvc_usage_counts *c, const struct parts *p,
                            struct kvc_usage *out, const char *within, const struct kvc_place *at,
                            struct kvc_error *err)
{
    uint64_t prompt = p->input + (out->exclusive ? p->read + p->write + p->other : 0);
    uint64_t output = p->output + p->beside;
    const char *input_name = c->name[KVC_USAGE_PROMPT]  ? c->name[KVC_USAGE_PROMPT]
                             : c->name[KVC_USAGE_INPUT] ? c->name[KVC_USAGE_INPUT]
                                                        : c->name[KVC_USAGE_MISS];
    out->prompt_stated = input_name != NULL;
    out->cached_stated = p->read_name != NULL;
    out->write_stated = p->write_name != NULL;
    out->output_stated = c->name[KVC_USAGE_OUTPUT] != NULL;
    out->reasoning_stated = c->name[KVC_USAGE_REASONING] || c->name[KVC_USAGE_REASONING_BESIDE];
    if (!out->output_stated && c->name[KVC_USAGE_TOTAL] && c->v[KVC_USAGE_TOTAL] >= prompt &&
        out->prompt_stated && !out->exclusive) { /* as of embeddings, where the sum is all that is
                                                    said */
        output = c->v[KVC_USAGE_TOTAL] - prompt;
        out->output_stated = true;
    }
    if (prompt > KVC_TOKENS_MAX || output > KVC_TOKENS_MAX)
        return contradiction(at, within, prompt > KVC_TOKENS_MAX ? input_name : "output", err,
                             "the parts come to more than 2^31-1 tokens");
    out->prompt_tokens = (uint32_t)prompt;
    out->cached_tokens = (uint32_t)p->read;
    out->cache_write_tokens = (uint32_t)p->write;
    out->output_tokens = (uint32_t)output;
    out->reasoning_tokens = c->v[KVC_USAGE_REASONING] ? c->v[KVC_USAGE_REASONING]
                                                      : c->v[KVC_USAGE_REASONING_BESIDE];
    if (out->output_stated && out->reasoning_tokens > output)
        return contradiction(at, within,
                             c->name[c->v[KVC_USAGE_REASONING] ? KVC_USAGE_REASONING
                                                               : KVC_USAGE_REASONING_BESIDE],
                             err, "%u tokens of reasoning in an output of %llu",
                             out->reasoning_tokens, (unsigned long long)output);
    return KVC_OK;
}

enum kvc_status kvc_usage_settle(const struct kvc_usage_counts *c, enum kvc_usage_dialect dialect,
                                 const char *within, const struct kvc_place *at,
                                 struct kvc_usage *out, struct kvc_error *err)
{
    struct kvc_usage u = { 0 };
    struct parts p = { .other = c->v[KVC_USAGE_INPUT_OTHER], .output = c->v[KVC_USAGE_OUTPUT],
                       .beside = c->v[KVC_USAGE_REASONING_BESIDE] };
    bool whole = false;
    enum kvc_status status = one_of(c, KVC_USAGE_READ_INSIDE, KVC_USAGE_READ, &p.read,
                                    &p.read_name, within, at, err);
    if (status == KVC_OK)
        status = written(c, &p, within, at, err);
    if (status == KVC_OK)
        status = input(c, &p, &whole, within, at, err);
    if (status == KVC_OK && dialect == KVC_USAGE_LANGFUSE)
        decide_by_total(c, &p, &u);
    else if (status == KVC_OK)
        status = decide(c, dialect, &p, whole, within, at, &u, err);
    if (status == KVC_OK && dialect != KVC_USAGE_LANGFUSE)
        u.total_differs = sums_differ(c, &p);
    if (status == KVC_OK)
        status = fill(c, &p, &u, within, at, err);
    if (status == KVC_OK)
        *out = u;
    return status;
}

enum kvc_status kvc_usage_read(const struct kvc_jval *object, enum kvc_usage_dialect dialect,
                               const char *within, const struct kvc_place *at,
                               struct kvc_usage *out, struct kvc_error *err)
{
    struct kvc_usage_counts counts = { 0 };
    enum kvc_status status = kvc_usage_note_object(&counts, object, within, at, err);
    return status == KVC_OK ? kvc_usage_settle(&counts, dialect, within, at, out, err) : status;
}

void kvc_usage_into_row(const struct kvc_usage *u, struct kvc_log_row *row)
{
    row->input_tokens = u->prompt_stated ? u->prompt_tokens : 0;
    row->output_tokens = u->output_stated ? u->output_tokens : 0;
    row->cached_stated = u->cached_stated && u->prompt_stated;
    row->cached_tokens = row->cached_stated ? u->cached_tokens : 0;
    row->cache_write_tokens = u->prompt_stated ? u->cache_write_tokens : 0;
}
