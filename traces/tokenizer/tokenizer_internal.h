/* SPDX-License-Identifier: Apache-2.0
 * The parts of a tokenizer, in the order text passes them: added tokens cut it into segments, the
 * normalizer rewrites each, pre-tokenizer steps split it into pieces, BPE turns pieces into ids.
 *
 * Stability: each part gets a limit, how many leading bytes of its input are certain whatever is
 * appended to the text (KVC_FINAL: all, and nothing follows), and passes one on. */
#ifndef KVC_TRACES_TOKENIZER_INTERNAL_H
#define KVC_TRACES_TOKENIZER_INTERNAL_H

#include "base/text.h"
#include "traces/tokenizer/tokenizer.h"

#define KVC_FINAL SIZE_MAX

struct kvc_jval;

/* ---- maps --------------------------------------------------------------------------- */

struct kvc_map64 { /* u64 to u64, all zero = empty; key UINT64_MAX is not allowed */
    struct kvc_map64_slot {
        uint64_t key, value;
    } *slots;
    size_t n, mask;
};

bool kvc_map64_put(struct kvc_map64 *m, uint64_t key, uint64_t value); /* the last one stays */
const uint64_t *kvc_map64_get(const struct kvc_map64 *m, uint64_t key);
void kvc_map64_clear(struct kvc_map64 *m);

struct kvc_strmap { /* bytes to id, keys copied */
    struct kvc_strmap_slot {
        uint64_t hash;
        size_t at;
        uint32_t len, id; /* id KVC_ID_NONE: free */
    } *slots;
    size_t n, mask;
    struct kvc_text keys;
};

uint64_t kvc_hash_bytes(const char *s, size_t n);
/* false: no memory. A key that is there keeps its id and sets *fresh to false. */
bool kvc_strmap_put(struct kvc_strmap *m, const char *s, size_t n, uint32_t id, bool *fresh);
uint32_t kvc_strmap_get(const struct kvc_strmap *m, const char *s, size_t n);
void kvc_strmap_clear(struct kvc_strmap *m);

/* ---- UTF-8 --------------------------------------------------------------------------- */

/* The character at s, which is valid UTF-8; its bytes in *len. */
uint32_t kvc_utf8_get(const char *s, size_t *len);
size_t kvc_utf8_put(uint32_t c, char out[4]);
bool kvc_utf8_valid(const char *s, size_t n);
/* Appends text with U+FFFD for what is not UTF-8. *sound: the bytes of out that stay the same when
 * more is appended to s (a character cut at the end is not among them). */
void kvc_utf8_mend(struct kvc_text *out, const char *s, size_t n, size_t *sound);
bool kvc_is_space(uint32_t c); /* White_Space */

/* ---- patterns: the wall around PCRE2 -------------------------------------------------- */

struct kvc_pattern; /* immutable */
struct kvc_matcher; /* one thread's */

enum kvc_match { KVC_MATCH_NONE, KVC_MATCH_FOUND, KVC_MATCH_PARTIAL, KVC_MATCH_LIMIT };

/* regex is in the dialect of Oniguruma, as the files are; only what means the same in PCRE2, or can
 * be said in it, is taken. why (of 256) gets the reason of a refusal; KVC_ERR_NOMEM has none. */
enum kvc_status kvc_pattern_compile(struct kvc_pattern **out, const char *regex, char *why);
enum kvc_status kvc_pattern_literal(struct kvc_pattern **out, const char *text, char *why);
void kvc_pattern_free(struct kvc_pattern *p);
/* The regex in PCRE2's dialect, for tests. */
bool kvc_pattern_translate(struct kvc_text *out, const char *regex, char *why);

struct kvc_matcher *kvc_matcher_create(void); /* NULL: no memory */
void kvc_matcher_free(struct kvc_matcher *m);
/* Steps allowed from here on, in bytes looked at again. */
void kvc_matcher_allow(struct kvc_matcher *m, uint64_t budget);
/* The first match in s[0..n) that begins at or after at. open: more text may follow n; PARTIAL with
 * *from then says that a match that may begin there depends on it, and that none begins before.
 * What is found or not found without PARTIAL never looked at the end. */
enum kvc_match kvc_pattern_next(const struct kvc_pattern *p, struct kvc_matcher *m, const char *s,
                                size_t n, size_t at, bool open, size_t *from, size_t *to);

/* ---- the normalizer ------------------------------------------------------------------- */

enum kvc_norm_kind { KVC_NORM_NFC, KVC_NORM_PREPEND, KVC_NORM_REPLACE };

struct kvc_norm {
    enum kvc_norm_kind kind;
    char *pattern, *content; /* PREPEND: content; REPLACE: both, pattern not empty */
};

struct kvc_nfc; /* tables made ready */

struct kvc_nfc *kvc_nfc_create(void); /* NULL: no memory */
void kvc_nfc_free(struct kvc_nfc *nfc);
/* Appends NFC(s); *limit becomes the one of what was appended. */
void kvc_nfc_add(const struct kvc_nfc *nfc, struct kvc_text *out, const char *s, size_t n,
                 size_t *limit);
/* Whether NFC(s) is s, found without work for text below U+0300. */
bool kvc_nfc_is(const struct kvc_nfc *nfc, const char *s, size_t n);

/* ---- added tokens ---------------------------------------------------------------------- */

struct kvc_added {
    char *content;
    uint32_t id;
    bool lstrip, rstrip, normalized, special;
};

#define KVC_ADDED_MAX_BYTES 1024

struct kvc_trie { /* all zero = empty */
    struct kvc_trie_node {
        uint32_t token;          /* index of the token that ends here, KVC_ID_NONE: none */
        uint32_t child, sibling; /* 0 = none */
        unsigned char byte;
    } *nodes;
    size_t n, cap;
    uint32_t first[256]; /* children of the root */
    bool any_lstrip;
};

/* false: no memory. The first of two equal keys stays. */
bool kvc_trie_put(struct kvc_trie *t, const char *key, uint32_t token, bool lstrip);
void kvc_trie_clear(struct kvc_trie *t);
/* Longest token at the first place that has one, from at on. *unsafe falls to the first place where
 * a look beyond limit was needed, that is, where the answer may change. */
bool kvc_trie_next(const struct kvc_trie *t, const char *s, size_t n, size_t at, size_t limit,
                   size_t *from, size_t *to, uint32_t *token, size_t *unsafe);

/* ---- pre-tokenizer steps ---------------------------------------------------------------- */

enum kvc_step_kind { KVC_STEP_SPLIT, KVC_STEP_SPACE, KVC_STEP_METASPACE };
enum kvc_split_behavior { KVC_ISOLATED, KVC_REMOVED, KVC_WITH_PREVIOUS, KVC_WITH_NEXT,
                          KVC_CONTIGUOUS };
enum kvc_prepend { KVC_PREPEND_ALWAYS, KVC_PREPEND_FIRST, KVC_PREPEND_NEVER };

struct kvc_step {
    enum kvc_step_kind kind;
    struct kvc_pattern *pattern;      /* SPLIT */
    enum kvc_split_behavior behavior; /* SPLIT */
    bool invert;                      /* SPLIT */
    char replacement[5];              /* METASPACE: for blanks */
    enum kvc_prepend prepend;         /* METASPACE */
};

#define KVC_STEPS_MAX 16

/* ---- BPE ----------------------------------------------------------------------------- */

struct kvc_bpe {
    bool bytes;             /* symbols are bytes, else characters */
    bool ignore_merges, byte_fallback, fuse_unk;
    bool cuts;              /* pieces may be cut between characters that no merge joins */
    uint32_t unk;           /* KVC_ID_NONE: what is unknown vanishes */
    uint32_t byte_id[256];  /* of a byte's symbol, or of "<0x..>"; KVC_ID_NONE: none */
    uint32_t ascii_id[128]; /* of a character */
    struct kvc_map64 chars; /* characters from 128 on */
    struct kvc_map64 merges; /* left id, right id: rank, new id */
    struct kvc_map64 joins;  /* pairs of characters that some merge joins, if cuts */
    uint8_t ascii_joins[128][16];
    struct kvc_strmap words; /* bytes of whole pieces, if ignore_merges */
};

enum kvc_status kvc_bpe_load(struct kvc_bpe *b, struct kvc_strmap *vocab,
                             const struct kvc_jval *model, bool bytes, const char *file,
                             struct kvc_error *err);
void kvc_bpe_clear(struct kvc_bpe *b);

struct kvc_bpe_work; /* one thread's buffers and cache */

struct kvc_bpe_work *kvc_bpe_work_create(void);
void kvc_bpe_work_free(struct kvc_bpe_work *w);
/* Appends a piece's ids, of which *certain are so by the limit. */
enum kvc_status kvc_bpe_encode(const struct kvc_bpe *b, struct kvc_bpe_work *w, const char *s,
                               size_t n, size_t limit, struct kvc_token_ids *ids, size_t *certain);

/* ---- all together ------------------------------------------------------------------------ */

struct kvc_tokenizer {
    char *file;
    struct kvc_added *added;
    size_t n_added, cap_added;
    struct kvc_trie raw, normalized;
    struct kvc_norm *norms;
    size_t n_norms, cap_norms;
    struct kvc_nfc *nfc;
    struct kvc_step steps[KVC_STEPS_MAX];
    size_t n_steps;
    bool byte_level;
    struct kvc_strmap vocab; /* as written in the file */
    struct kvc_bpe bpe;
    struct kvc_token_ids before, after;
};

struct kvc_encoder {
    const struct kvc_tokenizer *tok;
    struct kvc_matcher *matcher;
    struct kvc_bpe_work *work;
    struct kvc_text mended, norm[2], step[KVC_STEPS_MAX];
    struct kvc_token_ids *out;
    struct kvc_error *err;
    size_t stable;
    bool settled;  /* so far all ids are stable */
    bool at_start; /* what comes next is the beginning of the text */
};

/* Runs step k and those behind it over one piece, then BPE. */
enum kvc_status kvc_steps_run(struct kvc_encoder *e, size_t k, const char *s, size_t n,
                              size_t limit);
/* Appends ids, the first certain ones of which are so. */
bool kvc_token_ids_push(struct kvc_token_ids *ids, uint32_t id);

/* The parts of the file that come before the model. */
enum kvc_status kvc_tokenizer_load_parts(struct kvc_tokenizer *tok, const struct kvc_jval *root,
                                         struct kvc_error *err);
/* Runs the normalizer; the result is s itself or in one of the buffers. */
enum kvc_status kvc_normalize(const struct kvc_tokenizer *tok, struct kvc_text buffers[2],
                              const char **s, size_t *n, size_t *limit);

#endif
