/* SPDX-License-Identifier: Apache-2.0
 * What an import of texts knows so far, for the files that make blocks of them; readers see
 * text_blocks.h. */
#ifndef KVC_TRACES_TEXT_STATE_H
#define KVC_TRACES_TEXT_STATE_H

#include "traces/import/intern.h"
#include "traces/text/text_blocks.h"
#include "traces/text/text_chain.h"
#include "traces/tokenizer/tokenizer.h"

/* Text that is waited for to learn the rate: 2 M tokens settle it far better than rows differ among
 * themselves, and it is little memory. Rows: where texts are short. */
#define KVC_TEXT_HOLD ((size_t)8 << 20)
#define KVC_TEXT_HOLD_ROWS 65536
#define KVC_TEXT_DEFAULT_RATE 4.0 /* bytes; OpenAI's rule of thumb for English (help center, "What
                                     are tokens and how to count them?") */
#define KVC_TEXT_ERROR_STEPS 1000 /* of the histogram of errors, 0.1 % each */

struct kvc_text_rate { /* of one model */
    uint64_t bytes, tokens, rows; /* sums of the rows that tell */
    uint64_t weight;              /* 0 = not fixed */
    double bytes_per_token;
    bool calibrated;
};

struct kvc_text_held {
    struct kvc_log_row row; /* spans point into names */
    struct kvc_text_facts facts;
    struct kvc_prompt prompt;
    char *names;
    uint64_t line;
    size_t file;
    uint32_t place;
};

/* The ends of prompts seen, by what stands for their text: where a later prompt goes on from one,
 * it is known how many tokens the serving system counted up to there. Two generations, so that an
 * endless log doesn't fill the memory; which are forgotten depends on the log alone. */
#define KVC_TEXT_ENDS ((size_t)1 << 20) /* of a generation; 24 bytes each, the table half full */
struct kvc_text_end {
    uint64_t state;
    uint32_t tokens, output; /* output KVC_ID_NONE: not stated */
    bool exact;              /* tokens are the serving system's */
    bool used;
};
struct kvc_text_ends {
    struct kvc_text_end *young, *old; /* open addressing */
    size_t mask, old_mask, n;
};

struct kvc_text_import {
    struct kvc_text_hook hook;
    bool started;
    uint64_t key[2];
    struct kvc_tokenizer *tokenizer;
    struct kvc_encoder *encoder;
    struct kvc_token_ids tokens;
    double given_rate; /* by the user; 0 = none */
    bool fixed;        /* rates are; rows go straight on */
    struct kvc_intern models;
    struct kvc_text_rate *rates;
    size_t n_rates, rates_cap;
    struct kvc_text_rate pooled;
    struct kvc_text_held *held;
    size_t n_held, held_cap, held_bytes;
    size_t last_file;
    uint32_t last_place;
    struct kvc_text_chain chain, fine; /* fine: blocks of one token */
    struct kvc_text_ends ends;
    uint64_t *path; /* scratch: ids with a tail */
    size_t path_cap;

    uint64_t error[KVC_TEXT_ERROR_STEPS + 1]; /* rows by |stated - estimate| / stated */
    uint64_t stated_rows, estimated_rows, media_rows, chats, texts;
    uint64_t input_tokens; /* of stated rows with text */
    uint64_t padded_tokens, padded_rows, cut_tokens, cut_rows, short_rows;
    uint64_t answers_carried, answers_stripped, answers_shown;
};

void kvc_text_notes(struct kvc_import *im, const struct kvc_text_import *t);
/* Blocks of one prompt by a rate, handed on. */
enum kvc_status kvc_text_cut_row(struct kvc_import *im, struct kvc_text_import *t,
                                 const struct kvc_prompt *p, struct kvc_log_row *row,
                                 const struct kvc_text_facts *facts, uint64_t byte_weight,
                                 struct kvc_error *err);

#endif
