/* SPDX-License-Identifier: Apache-2.0
 * A row of requests as APIs take them, read from a tape. */
#ifndef KVC_TRACES_MESSAGE_ROW_H
#define KVC_TRACES_MESSAGE_ROW_H

#include "traces/parse/tape_rows.h"
#include "traces/text/chat.h"

struct kvc_message_doc { /* one row; spans are good until the next */
    struct kvc_log_row row;
    struct kvc_text_facts facts;
    struct kvc_chat chat;
    struct kvc_prompt prompt;
    bool delta;   /* the prompt is what this turn adds to the session's */
    size_t n_new; /* pieces of the prompt without the answer's frame */
};

/* t is the current one of rows. */
enum kvc_status kvc_message_read(struct kvc_import *im, struct kvc_tape_rows *rows,
                                 const struct kvc_tape *t, struct kvc_message_doc *d,
                                 struct kvc_error *err);

#endif
