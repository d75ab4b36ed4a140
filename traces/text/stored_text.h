/* SPDX-License-Identifier: Apache-2.0
 * Prompts and answers that gateways and telemetry stored with a call: bodies, messages or text, as
 * JSON or as text that holds JSON. */
#ifndef KVC_TRACES_STORED_TEXT_H
#define KVC_TRACES_STORED_TEXT_H

#include "traces/text/chat.h"

struct kvc_stored { /* all zero = empty; reused for call after call */
    struct kvc_prompt prompt;
    struct kvc_chat chat;
    struct kvc_tape tape;
    bool no_memory, has_prompt;
};

void kvc_stored_begin(struct kvc_stored *s, const struct kvc_span *model);
/* What was asked. False: nothing in it that is a prompt; v NULL: nothing. */
bool kvc_stored_request(struct kvc_stored *s, const struct kvc_jval *v);
/* The same of JSON text; what is no JSON is a prompt as it stands. */
bool kvc_stored_request_text(struct kvc_stored *s, const char *text, size_t n);
/* What came back, once, behind the request. */
void kvc_stored_answer(struct kvc_stored *s, const struct kvc_jval *v);
/* Hands the row on with the prompt there is; without one its reuse is unknown. Lengths that aren't
 * stated are estimated from the text; a row without either is tallied and left out. */
enum kvc_status kvc_stored_hand_on(struct kvc_stored *s, struct kvc_import *im,
                                   const struct kvc_log_row *row, bool input_stated,
                                   bool output_stated, uint32_t thinking_tokens,
                                   struct kvc_error *err);
void kvc_stored_clear(struct kvc_stored *s);

#endif
