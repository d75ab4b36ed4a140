/* SPDX-License-Identifier: Apache-2.0
 * From the text of a prompt to the ids of its blocks (docs/text.md).
 *
 * A reader builds a struct kvc_prompt from what a row shows (messages, tool definitions, images,
 * the answer) and hands it on with kvc_text_row in place of kvc_import_row. The first rows are
 * held back until they tell how many bytes a token has; then that is fixed for the import. */
#ifndef KVC_TRACES_TEXT_BLOCKS_H
#define KVC_TRACES_TEXT_BLOCKS_H

#include "traces/import/import.h"

enum kvc_role {
    KVC_ROLE_NONE, /* text without messages: a completion's prompt */
    KVC_ROLE_SYSTEM,
    KVC_ROLE_DEVELOPER,
    KVC_ROLE_USER,
    KVC_ROLE_ASSISTANT,
    KVC_ROLE_TOOL,
    KVC_ROLE_OTHER
};
const char *kvc_role_name(enum kvc_role role);
enum kvc_role kvc_role_named(const char *text, size_t n);

enum kvc_piece_kind {
    KVC_PIECE_FRAME,       /* where a message begins: its role and the tokens around it; no text */
    KVC_PIECE_TEXT,
    KVC_PIECE_NAME,        /* of the participant */
    KVC_PIECE_TOOLS,       /* tool definitions */
    KVC_PIECE_TOOL_CALL,
    KVC_PIECE_TOOL_RESULT,
    KVC_PIECE_THINKING,    /* generated before an answer */
    KVC_PIECE_MEDIA,       /* an image, audio, a file: text holds a digest of its content */
    KVC_PIECE_UNKNOWN      /* tokens that were there but are not in the log, told apart by text */
};

struct kvc_piece {
    size_t at, n;     /* its bytes in the prompt's text */
    uint32_t message; /* number from 0; tool definitions and a system prompt beside the messages
                         count as one each */
    uint32_t tokens;  /* beside those of its bytes; a media piece's bytes weigh nothing */
    uint8_t role, kind;
};

#define KVC_FRAME_TOKENS 3 /* around each message and before the answer, and .. */
#define KVC_NAME_TOKENS 1  /* .. for a name: OpenAI's cookbook, "How to count tokens with
                              tiktoken", for gpt-3.5-turbo-0613, gpt-4 and gpt-4o */

struct kvc_prompt { /* all zero = empty; reused for row after row */
    char *text;
    size_t n, cap;
    struct kvc_piece *pieces;
    size_t n_pieces, pieces_cap;
    size_t n_input;         /* pieces of the prompt; those behind it were generated */
    uint32_t messages;
    bool chat;              /* has messages */
    bool answered;
    bool media_unknown;     /* holds media whose tokens nobody told: no estimate is possible */
    bool failed;            /* no memory; kvc_text_row reports it */
};

void kvc_prompt_begin(struct kvc_prompt *p);
void kvc_prompt_clear(struct kvc_prompt *p); /* frees */
/* A message begins. */
void kvc_prompt_message(struct kvc_prompt *p, enum kvc_role role);
/* Text of the current message (or of a prompt without messages); copied. Neighbours of one kind
 * are one piece. */
void kvc_prompt_add(struct kvc_prompt *p, enum kvc_piece_kind kind, const char *text, size_t n);
/* The same without the copy: room for most bytes, and how many of them were written. NULL: no
 * memory. */
char *kvc_prompt_room(struct kvc_prompt *p, size_t most);
void kvc_prompt_wrote(struct kvc_prompt *p, enum kvc_piece_kind kind, size_t n);
/* An image or the like; content is its bytes, base64 or address, of which only a digest is kept.
 * tokens KVC_ID_NONE: not known. */
void kvc_prompt_media(struct kvc_prompt *p, const char *content, size_t n, uint32_t tokens);
/* Tokens that the log doesn't show; key tells them apart from others. */
void kvc_prompt_unknown(struct kvc_prompt *p, const char *key, size_t n, uint32_t tokens);
/* Pieces from .. to - 1 of another prompt; messages are numbered on. */
void kvc_prompt_append(struct kvc_prompt *p, const struct kvc_prompt *other, size_t from,
                       size_t to);
/* What is added from here on was generated. In a chat this is the frame of an assistant's
 * message. Readers call it for each row, with an answer to add or without. */
void kvc_prompt_answer(struct kvc_prompt *p);

/* What the log says of a row beside the fields of struct kvc_log_row. */
struct kvc_text_facts {
    bool input_stated;  /* row.input_tokens is the serving system's count */
    bool output_stated; /* .. output_tokens */
    bool output_limit;  /* row.output_tokens is what was asked for, not what came */
    uint32_t thinking_tokens; /* of the output, not shown; KVC_ID_NONE: not said */
    size_t shown_bytes; /* of a prompt without messages: how far it repeats what the session's
                           turn before was and generated; 0 = it doesn't */
    bool odd;           /* as for kvc_import_row */
};

/* Cuts the prompt into blocks and hands the row on, now or once the rate is known. row->ids must
 * be empty; spans are copied when the row is held back. Lengths that aren't stated are estimated
 * and counted so. A prompt without pieces has no ids: its reuse is unknown. */
enum kvc_status kvc_text_row(struct kvc_import *im, const struct kvc_prompt *p,
                             const struct kvc_log_row *row, const struct kvc_text_facts *facts,
                             struct kvc_error *err);

/* Sees each prompt before it becomes blocks, in the order of the log: for reports on text. Set
 * before the import's first row. Nothing of the prompt may be kept but copies. */
struct kvc_text_hook {
    void *user;
    bool (*prompt)(void *user, const struct kvc_prompt *p, const struct kvc_log_row *row,
                   const struct kvc_text_facts *facts); /* false: no memory */
};
/* False: no memory. */
bool kvc_text_set_hook(struct kvc_import *im, const struct kvc_text_hook *hook);


/* For the import's driver: whether the options for texts make sense .. */
enum kvc_status kvc_text_check(const struct kvc_import_options *options, struct kvc_error *err);
/* .. hands on the rows held back, and says what was assumed; frees. */
enum kvc_status kvc_text_finish(struct kvc_import *im, struct kvc_error *err);
void kvc_text_destroy(struct kvc_import *im);
/* Bytes a token over all models; 0: the log held no texts. */
double kvc_text_rate(const struct kvc_import *im);

#endif
