/* SPDX-License-Identifier: Apache-2.0
 * A row of requests as APIs take them, read from a tape. */
#ifndef KVC_TRACES_MESSAGE_ROW_H
#define KVC_TRACES_MESSAGE_ROW_H

#include "traces/text/chat.h"

struct kvc_message_doc { /* one row; spans point into the tape and names */
    struct kvc_log_row row;
    struct kvc_text_facts facts;
    struct kvc_chat chat;
    struct kvc_prompt prompt;
    bool delta;    /* the prompt is what this turn adds to the session's */
    size_t n_new;  /* pieces of the prompt without the answer's frame */
    char *names;   /* room for all of the row's text */
    size_t n_names, names_cap;
};

enum kvc_status kvc_message_read(struct kvc_import *im, const struct kvc_tape *t,
                                 struct kvc_message_doc *d, struct kvc_error *err);

#endif
