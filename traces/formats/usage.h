/* SPDX-License-Identifier: Apache-2.0
 * What an API billed, in one meaning whoever wrote it: usage objects of OpenAI (chat and
 * Responses), Anthropic, Gemini, Bedrock and DeepSeek, LiteLLM's mixture of them, the attributes
 * of OpenTelemetry and the usage map of Langfuse. Some count cached tokens inside the input, some
 * beside it. What is absent or null stays unknown. */
#ifndef KVC_TRACES_USAGE_H
#define KVC_TRACES_USAGE_H

#include "traces/parse/fields.h"

enum kvc_usage_dialect {
    KVC_USAGE_API,      /* field names tell: input_tokens with cache_read_input_tokens beside it is
                           Anthropic's, exclusive; prompt_tokens includes unless it can't */
    KVC_USAGE_OTEL,     /* inclusive, unless more is cached than there was */
    KVC_USAGE_LANGFUSE, /* parts of a total, which decides; without one exclusive */
};

enum kvc_usage_slot {
    KVC_USAGE_PROMPT,        /* prompt_tokens */
    KVC_USAGE_INPUT,         /* input_tokens, and the like */
    KVC_USAGE_OUTPUT,
    KVC_USAGE_TOTAL,
    KVC_USAGE_READ_INSIDE,   /* cached tokens under a name that says they are part of the input */
    KVC_USAGE_READ,          /* cached tokens under a name that does not */
    KVC_USAGE_MISS,          /* DeepSeek: the rest of the prompt */
    KVC_USAGE_WRITE_INSIDE,
    KVC_USAGE_WRITE,
    KVC_USAGE_WRITE_5M,
    KVC_USAGE_WRITE_1H,
    KVC_USAGE_INPUT_OTHER,   /* Langfuse: audio, images: parts of the input, beside it */
    KVC_USAGE_REASONING,     /* part of the output */
    KVC_USAGE_REASONING_BESIDE,
    KVC_USAGE_SLOTS
};

struct kvc_usage_counts { /* as stated; all zero = nothing */
    uint32_t v[KVC_USAGE_SLOTS];
    const char *name[KVC_USAGE_SLOTS]; /* NULL: not stated */
};

struct kvc_usage {
    bool prompt_stated, cached_stated, write_stated, output_stated, reasoning_stated;
    uint32_t prompt_tokens; /* all of them, cached or not */
    uint32_t cached_tokens, cache_write_tokens; /* of prompt_tokens */
    uint32_t output_tokens;                     /* reasoning included */
    uint32_t reasoning_tokens;
    bool exclusive;      /* the log counts cached tokens beside the input */
    bool against_custom; /* .. where its kind counts them inside: only that reading adds up */
    bool total_differs;  /* from any sum of the parts */
};

/* Notes one count under its name in the log ("prompt_tokens_details.cached_tokens",
 * "gen_ai.usage.input_tokens", "usage.cache_read_input_tokens"): a number, or one in text. Names
 * that mean nothing here and null are passed over. A count noted before under the same meaning
 * stays when this one is 0 or equal; two that differ are an error. within: what errors put before
 * the name, NULL for nothing. */
enum kvc_status kvc_usage_note(struct kvc_usage_counts *counts, const char *name,
                               const struct kvc_jval *v, const char *within,
                               const struct kvc_place *at, struct kvc_error *err);
/* Whether a name means something here. */
bool kvc_usage_known(const char *name);
/* The same for a number at hand. */
enum kvc_status kvc_usage_note_number(struct kvc_usage_counts *counts, const char *name, uint64_t n,
                                      const char *within, const struct kvc_place *at,
                                      struct kvc_error *err);
/* All members of a usage object, and of objects in it. object NULL or no object: nothing. */
enum kvc_status kvc_usage_note_object(struct kvc_usage_counts *counts,
                                      const struct kvc_jval *object, const char *within,
                                      const struct kvc_place *at, struct kvc_error *err);
/* What the counts mean. More cached than there was is an error that names the field. */
enum kvc_status kvc_usage_settle(const struct kvc_usage_counts *counts,
                                 enum kvc_usage_dialect dialect, const char *within,
                                 const struct kvc_place *at, struct kvc_usage *out,
                                 struct kvc_error *err);
/* The last two in one. */
enum kvc_status kvc_usage_read(const struct kvc_jval *object, enum kvc_usage_dialect dialect,
                               const char *within, const struct kvc_place *at,
                               struct kvc_usage *out, struct kvc_error *err);
/* Puts prompt, output, cached and written tokens into the row, where stated. */
void kvc_usage_into_row(const struct kvc_usage *usage, struct kvc_log_row *row);

#endif
