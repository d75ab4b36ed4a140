/* SPDX-License-Identifier: Apache-2.0
 * A tokenizer from its file, and the way of a text through it. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "traces/parse/stream.h"

#include <string.h>

#define FILE_BYTES_MAX ((size_t)512 << 20) /* published ones have tens of MB */
#define ADDED_ID_MAX ((uint64_t)1 << 24)
#define TEXT_BYTES_MAX ((size_t)INT32_MAX)

/* ---- added tokens ---- */

static enum kvc_status bad_added(const struct kvc_tokenizer *tok, const struct kvc_jval *v,
                                 struct kvc_error *err, enum kvc_status st, const char *text)
{
    return kvc_fail_at(err, st, tok->file, kvc_jval_line(v), "added_tokens", "%s", text);
}

static bool flag(const struct kvc_jval *v, const char *key, bool otherwise)
{
    const struct kvc_jval *m = kvc_jval_member(v, key);
    bool value;
    return m && kvc_jval_bool(m, &value) ? value : otherwise;
}

static enum kvc_status load_added(struct kvc_tokenizer *tok, const struct kvc_jval *v,
                                  struct kvc_error *err)
{
    const struct kvc_jval *member = kvc_jval_member(v, "content");
    const char *content = member ? kvc_jval_string(member) : NULL;
    uint64_t id;
    member = kvc_jval_member(v, "id");
    if (!content || !member || !kvc_jval_u64(member, &id) || id >= ADDED_ID_MAX)
        return bad_added(tok, v, err, KVC_ERR_INPUT,
                         "each needs \"content\" and an \"id\" below 2^24");
    if (strlen(content) > KVC_ADDED_MAX_BYTES)
        return bad_added(tok, v, err, KVC_ERR_LIMIT, "one has more than 1024 bytes");
    if (flag(v, "single_word", false))
        return bad_added(tok, v, err, KVC_ERR_UNSUPPORTED, "single_word is not supported");
    uint32_t known = kvc_strmap_get(&tok->vocab, content, strlen(content));
    if (known != KVC_ID_NONE && known != id)
        return kvc_fail_at(err, KVC_ERR_INPUT, tok->file, kvc_jval_line(v), "added_tokens",
                           "\"%.60s\" has id %llu here and %u in the vocabulary", content,
                           (unsigned long long)id, (unsigned)known);
    if (!*content)
        return KVC_OK;
    struct kvc_added a = {.id = (uint32_t)id, .lstrip = flag(v, "lstrip", false),
                          .rstrip = flag(v, "rstrip", false),
                          .special = flag(v, "special", false)};
    a.normalized = flag(v, "normalized", !a.special);
    if (!kvc_grow((void **)&tok->added, &tok->cap_added, tok->n_added + 1, sizeof(a)) ||
        !(a.content = kvc_strdup(content)))
        return kvc_fail_nomem(err);
    tok->added[tok->n_added++] = a;
    return KVC_OK;
}

/* Tokens marked normalized are looked for in normalized text, in their own normalized form. Of two
 * equal ones the first stays, special ones first. */
static enum kvc_status index_added(struct kvc_tokenizer *tok, struct kvc_error *err)
{
    struct kvc_text buffers[2] = {{0}, {0}};
    enum kvc_status st = KVC_OK;
    for (size_t i = 0; i < 2 * tok->n_added && st == KVC_OK; i++) {
        const struct kvc_added *a = &tok->added[i % tok->n_added];
        const char *key = a->content;
        size_t n = strlen(key), limit = KVC_FINAL;
        if (a->special != (i < tok->n_added))
            continue;
        if (a->normalized)
            st = kvc_normalize(tok, buffers, &key, &n, &limit);
        if (st == KVC_OK && n > 0 &&
            !kvc_trie_put(a->normalized ? &tok->normalized : &tok->raw, key,
                          (uint32_t)(i % tok->n_added), a->lstrip))
            st = KVC_ERR_NOMEM;
    }
    kvc_text_clear(&buffers[0]);
    kvc_text_clear(&buffers[1]);
    return st == KVC_OK ? KVC_OK : kvc_fail_nomem(err);
}

/* ---- opening ---- */

static enum kvc_status load(struct kvc_tokenizer *tok, const struct kvc_jval *root,
                            struct kvc_error *err)
{
    const struct kvc_jval *model = kvc_jval_kind(root) == KVC_JOBJECT
                                       ? kvc_jval_member(root, "model") : NULL;
    const struct kvc_jval *added = model ? kvc_jval_member(root, "added_tokens") : NULL;
    if (!model || kvc_jval_kind(model) != KVC_JOBJECT)
        return kvc_fail_at(err, KVC_ERR_INPUT, tok->file, kvc_jval_line(root), "model",
                           "missing: a tokenizer.json as the tokenizers library writes it is an "
                           "object with \"model\", \"pre_tokenizer\", \"added_tokens\"");
    enum kvc_status st = kvc_tokenizer_load_parts(tok, root, err);
    if (st == KVC_OK)
        st = kvc_bpe_load(&tok->bpe, &tok->vocab, model, tok->byte_level, tok->file, err);
    if (st == KVC_OK && added && kvc_jval_kind(added) == KVC_JARRAY) {
        for (const struct kvc_jval *v = kvc_jval_first(added); v && st == KVC_OK;
             v = kvc_jval_next(v))
            st = kvc_jval_kind(v) == KVC_JOBJECT
                     ? load_added(tok, v, err)
                     : bad_added(tok, v, err, KVC_ERR_INPUT, "each must be an object");
    } else if (st == KVC_OK && added && kvc_jval_kind(added) != KVC_JNULL) {
        st = bad_added(tok, added, err, KVC_ERR_INPUT, "must be a list");
    }
    return st == KVC_OK ? index_added(tok, err) : st;
}

enum kvc_status kvc_tokenizer_parse(struct kvc_tokenizer **out, const char *json, size_t n,
                                    const char *file, struct kvc_error *err)
{
    struct kvc_jval *root = NULL;
    struct kvc_tokenizer *tok;
    enum kvc_status st;
    if (!kvc_utf8_valid(json, n))
        return kvc_fail_at(err, KVC_ERR_INPUT, file, 0, NULL, "not UTF-8 text");
    tok = kvc_calloc(1, sizeof(*tok));
    if (!tok || !(tok->file = kvc_strdup(file))) {
        kvc_tokenizer_close(tok);
        return kvc_fail_nomem(err);
    }
    st = kvc_json_parse(&root, json, n, false, file, 1, err);
    if (st == KVC_OK)
        st = load(tok, root, err);
    kvc_json_free(root);
    if (st == KVC_OK)
        *out = tok;
    else
        kvc_tokenizer_close(tok);
    return st;
}

static enum kvc_status read_all(struct kvc_text *out, const char *path, struct kvc_error *err)
{
    struct kvc_stream *stream = NULL;
    size_t got = 1, cap = 0;
    enum kvc_status st = kvc_stream_open(&stream, path, err);
    while (st == KVC_OK && got) {
        void *p = out->buf;
        if (out->len > FILE_BYTES_MAX)
            st = kvc_fail_at(err, KVC_ERR_LIMIT, path, 0, NULL, "more than 512 MiB");
        else if (!kvc_grow(&p, &cap, out->len + (1 << 16), 1))
            st = kvc_fail_nomem(err);
        if (st != KVC_OK)
            break;
        out->buf = p;
        st = kvc_stream_read(stream, out->buf + out->len, cap - out->len, &got, err);
        if (st == KVC_OK)
            out->len += got;
    }
    kvc_stream_close(stream);
    return st;
}

enum kvc_status kvc_tokenizer_open(struct kvc_tokenizer **out, const char *path,
                                   struct kvc_error *err)
{
    struct kvc_text json = {0};
    enum kvc_status st = read_all(&json, path, err);
    if (st == KVC_OK)
        st = kvc_tokenizer_parse(out, json.buf, json.len, path, err);
    kvc_text_clear(&json);
    return st;
}

void kvc_tokenizer_close(struct kvc_tokenizer *tok)
{
    if (!tok)
        return;
    for (size_t i = 0; i < tok->n_added; i++)
        kvc_free(tok->added[i].content);
    for (size_t i = 0; i < tok->n_norms; i++) {
        kvc_free(tok->norms[i].pattern);
        kvc_free(tok->norms[i].content);
    }
    for (size_t i = 0; i < tok->n_steps; i++)
        kvc_pattern_free(tok->steps[i].pattern);
    kvc_trie_clear(&tok->raw);
    kvc_trie_clear(&tok->normalized);
    kvc_nfc_free(tok->nfc);
    kvc_strmap_clear(&tok->vocab);
    kvc_bpe_clear(&tok->bpe);
    kvc_free(tok->before.v);
    kvc_free(tok->after.v);
    kvc_free(tok->added);
    kvc_free(tok->norms);
    kvc_free(tok->file);
    kvc_free(tok);
}

void kvc_tokenizer_around(const struct kvc_tokenizer *tok, const uint32_t **before,
                          size_t *n_before, const uint32_t **after, size_t *n_after)
{
    *before = tok->before.v;
    *n_before = tok->before.n;
    *after = tok->after.v;
    *n_after = tok->after.n;
}
