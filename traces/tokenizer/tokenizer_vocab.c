/* SPDX-License-Identifier: Apache-2.0
 * The BPE model of a tokenizer.json: vocabulary and merges. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#define ID_MAX ((uint64_t)1 << 24)

struct loader {
    struct kvc_bpe *b;
    struct kvc_strmap *vocab;
    const char *file;
    struct kvc_error *err;
    bool byte_operands; /* a merge takes a byte's or the unknown token */
};

#define BAD(ld, v, field, ...) \
    kvc_fail_at((ld)->err, KVC_ERR_INPUT, (ld)->file, kvc_jval_line(v), field, __VA_ARGS__)

/* ---- the alphabet of ByteLevel ---- */

/* Bytes that print stand for themselves, the others for U+0100 and on, in order. */
static void byte_alphabet(uint32_t of_byte[256])
{
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        of_byte[b] = prints ? b : next++;
    }
}

/* The bytes a token of a byte-level vocabulary stands for; false: some character is none. */
static bool to_bytes(const int16_t of_char[324], const char *token, struct kvc_text *out)
{
    size_t len;
    out->len = 0;
    for (const char *s = token; *s; s += len) {
        uint32_t c = kvc_utf8_get(s, &len);
        if (c >= 324 || of_char[c] < 0)
            return false;
        char byte = (char)of_char[c];
        kvc_text_addn(out, &byte, 1);
    }
    return !out->failed;
}

/* ---- vocabulary ---- */

static enum kvc_status load_vocab(struct loader *ld, const struct kvc_jval *vocab)
{
    uint64_t id;
    bool fresh;
    for (const struct kvc_jval *v = kvc_jval_first(vocab); v; v = kvc_jval_next(v)) {
        const char *token = kvc_jval_key(v);
        if (!kvc_jval_u64(v, &id) || id >= ID_MAX)
            return BAD(ld, v, "model.vocab", "the id of \"%.60s\" must be a number below 2^24",
                       token);
        if (!kvc_strmap_put(ld->vocab, token, strlen(token), (uint32_t)id, &fresh))
            return kvc_fail_nomem(ld->err);
    }
    return KVC_OK;
}

static bool index_chars(struct loader *ld, const struct kvc_jval *vocab)
{
    struct kvc_bpe *b = ld->b;
    memset(b->ascii_id, 0xff, sizeof(b->ascii_id));
    for (const struct kvc_jval *v = kvc_jval_first(vocab); v; v = kvc_jval_next(v)) {
        const char *token = kvc_jval_key(v);
        uint64_t id = 0;
        size_t len = 0;
        if (!*token)
            continue;
        uint32_t c = kvc_utf8_get(token, &len);
        kvc_jval_u64(v, &id);
        if (token[len])
            continue;
        if (c < 128)
            b->ascii_id[c] = (uint32_t)id;
        else if (!kvc_map64_put(&b->chars, c, id))
            return false;
    }
    return true;
}

/* Returns whether every byte has a token. */
static bool index_bytes(struct loader *ld)
{
    bool all = true;
    uint32_t of_byte[256];
    char text[8];
    byte_alphabet(of_byte);
    for (uint32_t i = 0; i < 256; i++) {
        size_t n = ld->b->bytes ? kvc_utf8_put(of_byte[i], text)
                                : (size_t)snprintf(text, sizeof(text), "<0x%02X>", (unsigned)i);
        ld->b->byte_id[i] = kvc_strmap_get(ld->vocab, text, n);
        all = all && ld->b->byte_id[i] != KVC_ID_NONE;
    }
    return all;
}

/* For ignore_merges: tokens by the text they stand for. */
static enum kvc_status index_words(struct loader *ld, const struct kvc_jval *vocab)
{
    int16_t of_char[324];
    uint32_t of_byte[256];
    struct kvc_text bytes = {0};
    bool ok = true, fresh;
    byte_alphabet(of_byte);
    memset(of_char, 0xff, sizeof(of_char));
    for (int16_t i = 0; i < 256; i++)
        of_char[of_byte[i]] = i;
    for (const struct kvc_jval *v = kvc_jval_first(vocab); v && ok; v = kvc_jval_next(v)) {
        const char *token = kvc_jval_key(v);
        uint64_t id = 0;
        kvc_jval_u64(v, &id);
        if (!ld->b->bytes)
            ok = kvc_strmap_put(&ld->b->words, token, strlen(token), (uint32_t)id, &fresh);
        else if (to_bytes(of_char, token, &bytes))
            ok = !bytes.len || kvc_strmap_put(&ld->b->words, bytes.buf, bytes.len, (uint32_t)id,
                                              &fresh);
        ok = ok && !bytes.failed;
    }
    kvc_text_clear(&bytes);
    return ok ? KVC_OK : kvc_fail_nomem(ld->err);
}

/* ---- merges ---- */

/* "a b", or ["a", "b"]. */
static bool two_parts(const struct kvc_jval *v, struct kvc_text *line, const char **left,
                      size_t *n_left, const char **right)
{
    const char *text = kvc_jval_string(v);
    line->len = 0;
    if (text) {
        const char *blank = strchr(text, ' ');
        if (!blank || strchr(blank + 1, ' '))
            return false;
        kvc_text_addn(line, text, (size_t)(blank - text));
        *n_left = line->len;
        kvc_text_add(line, blank + 1);
    } else {
        const struct kvc_jval *a = kvc_jval_kind(v) == KVC_JARRAY ? kvc_jval_first(v) : NULL;
        const struct kvc_jval *b = a ? kvc_jval_next(a) : NULL;
        if (!b || kvc_jval_next(b) || !kvc_jval_string(a) || !kvc_jval_string(b))
            return false;
        kvc_text_add(line, kvc_jval_string(a));
        *n_left = line->len;
        kvc_text_add(line, kvc_jval_string(b));
    }
    *left = line->buf;
    *right = line->buf ? line->buf + *n_left : NULL;
    return !line->failed;
}

/* Which characters the merge joins: its left part's last, its right part's first. */
static bool note_join(struct loader *ld, const char *left, size_t n_left, const char *right)
{
    struct kvc_bpe *b = ld->b;
    size_t len, at = n_left;
    if (!n_left || !*right)
        return true;
    while (at && (left[--at] & 0xc0) == 0x80)
        ;
    uint32_t x = kvc_utf8_get(left + at, &len), y = kvc_utf8_get(right, &len);
    if ((x | y) < 128)
        b->ascii_joins[x][y / 8] |= (uint8_t)(1u << y % 8);
    return kvc_map64_put(&b->joins, (uint64_t)x << 32 | y, 1);
}

static void note_operand(struct loader *ld, uint32_t id, const char *text, size_t n)
{
    bool byte = n == 6 && !memcmp(text, "<0x", 3) && text[5] == '>';
    ld->byte_operands |= byte || id == ld->b->unk;
}

static enum kvc_status load_merge(struct loader *ld, const struct kvc_jval *v, size_t rank,
                                  struct kvc_text *line)
{
    const char *left = NULL, *right = NULL;
    size_t n_left = 0;
    if (!two_parts(v, line, &left, &n_left, &right)) {
        if (line->failed)
            return kvc_fail_nomem(ld->err);
        return BAD(ld, v, "model.merges", "merge %zu must be two tokens, \"a b\" or [\"a\", \"b\"]",
                   rank + 1);
    }
    size_t n_right = line->len - n_left;
    uint32_t a = kvc_strmap_get(ld->vocab, left, n_left);
    uint32_t b = kvc_strmap_get(ld->vocab, right, n_right);
    uint32_t whole = kvc_strmap_get(ld->vocab, left, line->len);
    if (a == KVC_ID_NONE || b == KVC_ID_NONE || whole == KVC_ID_NONE) {
        const char *what = a == KVC_ID_NONE ? left : b == KVC_ID_NONE ? right : left;
        int n = a == KVC_ID_NONE ? (int)n_left : (int)strlen(what);
        return BAD(ld, v, "model.merges", "merge %zu needs the token \"%.*s\", which the "
                   "vocabulary lacks", rank + 1, n > 60 ? 60 : n, what);
    }
    note_operand(ld, a, left, n_left);
    note_operand(ld, b, right, n_right);
    if (!kvc_map64_put(&ld->b->merges, (uint64_t)a << 32 | b, (uint64_t)rank << 32 | whole) ||
        !note_join(ld, left, n_left, right))
        return kvc_fail_nomem(ld->err);
    return KVC_OK;
}

static enum kvc_status load_merges(struct loader *ld, const struct kvc_jval *merges)
{
    struct kvc_text line = {0};
    size_t rank = 0;
    enum kvc_status st = KVC_OK;
    for (const struct kvc_jval *v = kvc_jval_first(merges); v && st == KVC_OK;
         v = kvc_jval_next(v)) {
        const char *text = kvc_jval_string(v);
        if (text && strncmp(text, "#version", 8) == 0)
            continue;
        st = load_merge(ld, v, rank++, &line);
    }
    kvc_text_clear(&line);
    return st;
}

/* ---- options ---- */

static enum kvc_status get_flag(struct loader *ld, const struct kvc_jval *model, const char *key,
                                bool *out)
{
    const struct kvc_jval *v = kvc_jval_member(model, key);
    *out = false;
    if (v && kvc_jval_kind(v) != KVC_JNULL && !kvc_jval_bool(v, out))
        return BAD(ld, v, "model", "\"%s\" must be true or false", key);
    return KVC_OK;
}

static enum kvc_status refuse_options(struct loader *ld, const struct kvc_jval *model)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const struct kvc_jval *v = kvc_jval_member(model, "type");
    const char *text = v ? kvc_jval_string(v) : "BPE";
    double dropout;
    if (!text || strcmp(text, "BPE") != 0)
        return kvc_fail_at(ld->err, KVC_ERR_UNSUPPORTED, ld->file, kvc_jval_line(model), "model",
                           "a model of type \"%.40s\" is not supported: BPE is",
                           text ? text : "?");
    for (int i = 0; i < 2; i++) {
        v = kvc_jval_member(model, affixes[i]);
        text = v ? kvc_jval_string(v) : NULL;
        if (text && *text)
            return kvc_fail_at(ld->err, KVC_ERR_UNSUPPORTED, ld->file, kvc_jval_line(v), "model",
                               "%s \"%.20s\" is not supported", affixes[i], text);
    }
    v = kvc_jval_member(model, "dropout");
    if (v && kvc_jval_number(v, &dropout) && dropout > 0)
        return kvc_fail_at(ld->err, KVC_ERR_UNSUPPORTED, ld->file, kvc_jval_line(v), "model",
                           "dropout is not supported: ids would be random");
    return KVC_OK;
}

static enum kvc_status load_options(struct loader *ld, const struct kvc_jval *model)
{
    struct kvc_bpe *b = ld->b;
    const struct kvc_jval *v = kvc_jval_member(model, "unk_token");
    enum kvc_status st = get_flag(ld, model, "ignore_merges", &b->ignore_merges);
    if (st == KVC_OK)
        st = get_flag(ld, model, "byte_fallback", &b->byte_fallback);
    if (st == KVC_OK)
        st = get_flag(ld, model, "fuse_unk", &b->fuse_unk);
    b->unk = KVC_ID_NONE;
    if (st != KVC_OK || !v || kvc_jval_kind(v) == KVC_JNULL)
        return st;
    const char *unk = kvc_jval_string(v);
    b->unk = unk ? kvc_strmap_get(ld->vocab, unk, strlen(unk)) : KVC_ID_NONE;
    if (b->unk == KVC_ID_NONE)
        return BAD(ld, v, "model.unk_token", "must be a token of the vocabulary");
    return KVC_OK;
}

enum kvc_status kvc_bpe_load(struct kvc_bpe *b, struct kvc_strmap *vocab,
                             const struct kvc_jval *model, bool bytes, const char *file,
                             struct kvc_error *err)
{
    struct loader ld = {.b = b, .vocab = vocab, .file = file, .err = err};
    bool stays = false;
    b->bytes = bytes;
    enum kvc_status st = refuse_options(&ld, model);
    if (st != KVC_OK)
        return st;
    const struct kvc_jval *words = kvc_jval_member(model, "vocab");
    const struct kvc_jval *merges = kvc_jval_member(model, "merges");
    if (!words || kvc_jval_kind(words) != KVC_JOBJECT)
        return BAD(&ld, words ? words : model, "model.vocab", "must be an object of tokens");
    if (!merges || kvc_jval_kind(merges) != KVC_JARRAY)
        return BAD(&ld, merges ? merges : model, "model.merges", "must be a list");
    st = load_vocab(&ld, words);
    if (st == KVC_OK)
        st = load_options(&ld, model);
    if (st == KVC_OK && !index_chars(&ld, words))
        st = kvc_fail_nomem(err);
    if (st == KVC_OK) {
        /* unknown characters that vanish make neighbours of others */
        stays = index_bytes(&ld) && b->byte_fallback;
        st = load_merges(&ld, merges);
    }
    if (st == KVC_OK && b->ignore_merges)
        st = index_words(&ld, words);
    stays = stays || b->unk != KVC_ID_NONE;
    b->cuts = !bytes && !b->ignore_merges && !ld.byte_operands && stays;
    return st;
}

void kvc_bpe_clear(struct kvc_bpe *b)
{
    kvc_map64_clear(&b->chars);
    kvc_map64_clear(&b->merges);
    kvc_map64_clear(&b->joins);
    kvc_strmap_clear(&b->words);
}
