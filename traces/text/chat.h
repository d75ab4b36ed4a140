/* SPDX-License-Identifier: Apache-2.0
 * Request and answer bodies of the usual APIs as a struct kvc_prompt: OpenAI chat completions,
 * completions and Responses, Anthropic Messages, and the messages of OpenTelemetry. docs/text.md
 * says what of a body is part of the prompt and in which order. */
#ifndef KVC_TRACES_CHAT_H
#define KVC_TRACES_CHAT_H

#include "traces/parse/json_tape.h"
#include "traces/text/text_blocks.h"

struct kvc_chat { /* what bodies hold beside the prompt's text; reset by kvc_chat_begin */
    struct kvc_span model;  /* for rules of images; the caller sets it */
    bool continues;         /* names a conversation kept elsewhere: the prompt isn't all here */
    bool token_ids, several; /* a prompt of token ids; of several prompts, or several answers */
    uint32_t images, unknown_images; /* .. whose tokens no rule tells */
    uint32_t odd_parts;     /* of types not known here; their JSON counts as text */
    uint32_t thinking_left_out; /* of earlier turns, as the APIs do */
    uint32_t cache_marks;   /* cache_control */
};

void kvc_chat_begin(struct kvc_chat *c, struct kvc_prompt *p);
/* A request's body, a list of messages or a text. False: nothing in it that is a prompt. Memory
 * running out shows in p->failed, here and below. */
bool kvc_chat_request(struct kvc_chat *c, struct kvc_prompt *p, const struct kvc_tape *t,
                      uint32_t body);
/* A response's body, a message or a text; call kvc_prompt_answer before. False: no answer in it. */
bool kvc_chat_answer(struct kvc_chat *c, struct kvc_prompt *p, const struct kvc_tape *t,
                     uint32_t body);

/* Tokens of an image by the rule its model's provider publishes, KVC_ID_NONE when there is none or
 * its size isn't known. content: a data: URL or base64; detail may be NULL. */
uint32_t kvc_image_tokens(const struct kvc_span *model, const char *content, size_t n,
                          const char *detail);

#endif
