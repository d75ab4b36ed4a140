/* SPDX-License-Identifier: Apache-2.0
 * Text to token ids by a Hugging Face tokenizer.json with a BPE model, the same ids as the
 * tokenizers library gives. What a file asks for and this reader does not do exactly is refused
 * by name when it is opened (docs/tokenizers.md lists what is done). */
#ifndef KVC_TRACES_TOKENIZER_H
#define KVC_TRACES_TOKENIZER_H

#include <kvcast/kvcast.h>

struct kvc_tokenizer; /* immutable; shared freely between threads */
struct kvc_encoder;   /* a thread's own buffers and cache of words */

/* Reads the file (.zst and .gz too); errors name the line and the part that is wrong. */
enum kvc_status kvc_tokenizer_open(struct kvc_tokenizer **out, const char *path,
                                   struct kvc_error *err);
/* From memory; file names it in errors. */
enum kvc_status kvc_tokenizer_parse(struct kvc_tokenizer **out, const char *json, size_t n,
                                    const char *file, struct kvc_error *err);
void kvc_tokenizer_close(struct kvc_tokenizer *tok); /* NULL is fine; after its encoders */

/* What the file's post-processor puts around a text ("<s>" before, say), which kvc_encode does not
 * add: completions get them, chat templates bring their own. */
void kvc_tokenizer_around(const struct kvc_tokenizer *tok, const uint32_t **before,
                          size_t *n_before, const uint32_t **after, size_t *n_after);

enum kvc_status kvc_encoder_create(struct kvc_encoder **out, const struct kvc_tokenizer *tok,
                                   struct kvc_error *err);
void kvc_encoder_destroy(struct kvc_encoder *e); /* NULL is fine */

struct kvc_token_ids { /* all zero = empty; kvc_free(v) at the end */
    uint32_t *v;
    size_t n, cap;
};

/* Appends the ids of text, added tokens in it ("<|im_end|>") recognised. Bytes that are not UTF-8
 * count as U+FFFD, one for each maximal part, as Python's errors="replace" makes of them.
 * *stable (may be NULL): how many of the ids appended here stay the same whatever is appended to
 * text; the rest may still change. It never falls as text grows, and for the pre-tokenizers people
 * use it lags the end by a word or a run of blanks.
 * KVC_ERR_LIMIT: the file's pattern takes more than its share of steps on this text. On failure
 * ids->n is as before. */
enum kvc_status kvc_encode(struct kvc_encoder *e, const char *text, size_t n,
                           struct kvc_token_ids *ids, size_t *stable, struct kvc_error *err);

#endif
