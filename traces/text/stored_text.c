/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/text/stored_text.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/parse/fields.h"
#include "traces/trace.h"

#include <string.h>

void kvc_stored_begin(struct kvc_stored *s, const struct kvc_span *model)
{
    s->chat.model = *model;
    s->no_memory = s->has_prompt = false;
    kvc_chat_begin(&s->chat, &s->prompt);
}

void kvc_stored_clear(struct kvc_stored *s)
{
    kvc_prompt_clear(&s->prompt);
    kvc_free(s->tape.v);
    s->tape = (struct kvc_tape){ 0 };
}

/* The JSON that a text is, for the caller to free; NULL: it is none. */
static struct kvc_jval *json_in(const char *text, size_t n)
{
    struct kvc_jval *root = NULL;
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t'))
        i++;
    if (i < n && (text[i] == '{' || text[i] == '['))
        kvc_log_json(&root, text, n, "", 0, NULL);
    return root;
}

static bool request_tree(struct kvc_stored *s, const struct kvc_jval *v)
{
    if (!kvc_tape_of(&s->tape, v)) {
        s->no_memory = true;
        return false;
    }
    s->has_prompt = kvc_chat_request(&s->chat, &s->prompt, &s->tape, 0);
    return s->has_prompt;
}

bool kvc_stored_request_text(struct kvc_stored *s, const char *text, size_t n)
{
    struct kvc_jval *root = json_in(text, n);
    if (root)
        request_tree(s, root);
    else if (n)
        kvc_prompt_add(&s->prompt, KVC_PIECE_TEXT, text, n);
    s->has_prompt = s->has_prompt || (!root && n);
    kvc_json_free(root);
    return s->has_prompt;
}

bool kvc_stored_request(struct kvc_stored *s, const struct kvc_jval *v)
{
    const char *text = v ? kvc_jval_string(v) : NULL;
    if (text)
        return kvc_stored_request_text(s, text, strlen(text));
    bool empty = !v || (kvc_jval_kind(v) != KVC_JARRAY && kvc_jval_kind(v) != KVC_JOBJECT) ||
                 !kvc_jval_count(v);
    return !empty && request_tree(s, v);
}

void kvc_stored_answer(struct kvc_stored *s, const struct kvc_jval *v)
{
    const char *text = v ? kvc_jval_string(v) : NULL;
    struct kvc_jval *root = text ? json_in(text, strlen(text)) : NULL;
    if (!s->has_prompt || s->prompt.answered)
        return;
    kvc_prompt_answer(&s->prompt);
    if (text && !root)
        kvc_prompt_add(&s->prompt, KVC_PIECE_TEXT, text, strlen(text));
    else if (v && (root || kvc_jval_kind(v) == KVC_JOBJECT || kvc_jval_kind(v) == KVC_JARRAY) &&
             kvc_tape_of(&s->tape, root ? root : v))
        kvc_chat_answer(&s->chat, &s->prompt, &s->tape, 0);
    kvc_json_free(root);
}

enum kvc_status kvc_stored_hand_on(struct kvc_stored *s, struct kvc_import *im,
                                   const struct kvc_log_row *row, bool input_stated,
                                   bool output_stated, uint32_t thinking_tokens,
                                   struct kvc_error *err)
{
    struct kvc_text_facts facts = { .input_stated = input_stated, .output_stated = output_stated,
                                    .thinking_tokens = thinking_tokens };
    if (s->no_memory || s->tape.failed || s->prompt.failed)
        return kvc_fail_nomem(err);
    if (s->chat.continues) {
        kvc_import_tally(im, "go on from a conversation kept by the provider; reuse unknown");
        kvc_prompt_begin(&s->prompt);
        s->has_prompt = false;
    }
    if (!row->input_tokens && (input_stated || !s->has_prompt)) {
        if (row->status == KVC_ROW_FAILED)
            kvc_import_failed_unseen(im);
        else
            kvc_import_tally(im, "no prompt token was counted, and no text is there to count; left "
                                 "out");
        return KVC_OK;
    }
    if (!s->prompt.answered)
        kvc_prompt_answer(&s->prompt);
    return kvc_text_row(im, &s->prompt, row, &facts, err);
}
