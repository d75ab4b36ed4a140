/* SPDX-License-Identifier: Apache-2.0
 * A text cut at its added tokens: first those looked for as they stand, then, in normalized text,
 * those looked for there. */
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

#define TEXT_BYTES_MAX ((size_t)INT32_MAX)

static void clear_texts(struct kvc_encoder *e)
{
    kvc_text_clear(&e->mended);
    kvc_text_clear(&e->norm[0]);
    kvc_text_clear(&e->norm[1]);
    for (size_t i = 0; i < KVC_STEPS_MAX; i++)
        kvc_text_clear(&e->step[i]);
}

enum kvc_status kvc_encoder_create(struct kvc_encoder **out, const struct kvc_tokenizer *tok,
                                   struct kvc_error *err)
{
    struct kvc_encoder *e = kvc_calloc(1, sizeof(*e));
    if (e) {
        e->tok = tok;
        e->matcher = kvc_matcher_create();
        e->work = kvc_bpe_work_create();
    }
    if (!e || !e->matcher || !e->work) {
        kvc_encoder_destroy(e);
        return kvc_fail_nomem(err);
    }
    *out = e;
    return KVC_OK;
}

void kvc_encoder_destroy(struct kvc_encoder *e)
{
    if (!e)
        return;
    clear_texts(e);
    kvc_matcher_free(e->matcher);
    kvc_bpe_work_free(e->work);
    kvc_free(e);
}

/* ---- cutting ---- */

typedef enum kvc_status (*segment_fn)(struct kvc_encoder *e, const char *s, size_t n,
                                      size_t limit);

static size_t blanks_before(const char *s, size_t at)
{
    size_t len;
    while (at > 0) {
        size_t i = at - 1;
        while (i && (s[i] & 0xc0) == 0x80)
            i--;
        if (!kvc_is_space(kvc_utf8_get(s + i, &len)))
            break;
        at = i;
    }
    return at;
}

static size_t blanks_after(const char *s, size_t n, size_t at)
{
    size_t len;
    while (at < n && kvc_is_space(kvc_utf8_get(s + at, &len)))
        at += len;
    return at;
}

static enum kvc_status emit(struct kvc_encoder *e, uint32_t id, bool certain)
{
    if (!kvc_token_ids_push(e->out, id))
        return kvc_fail_nomem(e->err);
    e->settled = e->settled && certain;
    e->stable += e->settled;
    e->at_start = false;
    return KVC_OK;
}

/* What lies between tokens. It is final if what ends it is certain. */
static enum kvc_status between(struct kvc_encoder *e, segment_fn run, const char *s, size_t from,
                               size_t to, size_t limit)
{
    if (from >= to)
        return KVC_OK;
    if (from > 0)
        e->at_start = false;
    if (limit != KVC_FINAL)
        limit = limit > from ? (limit < to ? limit : to) - from : 0;
    return run(e, s + from, to - from, limit);
}

/* Where text that is appended may begin to change what was found: at a token that is begun, or at
 * blanks that a token behind them would swallow. */
static size_t safe_limit(const struct kvc_trie *t, const char *s, size_t n, size_t limit,
                         size_t unsafe)
{
    size_t safe = limit < unsafe ? limit : unsafe;
    if (t->any_lstrip && safe != KVC_FINAL) {
        size_t a = blanks_before(s, safe < n ? safe : n);
        size_t b = blanks_before(s, limit < n ? limit : n);
        safe = a < b ? a : b;
    }
    return safe;
}

/* The places of tokens depend on nothing behind them but what unsafe tells, so the last segment,
 * which is not final, is run when all of them are known. */
static enum kvc_status cut(struct kvc_encoder *e, const struct kvc_trie *t, const char *s,
                           size_t n, size_t limit, segment_fn run)
{
    size_t at = 0, from, to, look = 0, unsafe = KVC_FINAL;
    uint32_t token;
    enum kvc_status st = KVC_OK;
    while (st == KVC_OK && kvc_trie_next(t, s, n, look, limit, &from, &to, &token, &unsafe)) {
        const struct kvc_added *a = &e->tok->added[token];
        size_t safe = safe_limit(t, s, n, limit, unsafe);
        look = to;
        if (a->lstrip) {
            size_t first = blanks_before(s, from);
            from = first > at ? first : at;
        }
        if (a->rstrip)
            to = blanks_after(s, n, to);
        bool certain = limit == KVC_FINAL || (look <= safe && (!a->rstrip || to < limit));
        st = between(e, run, s, at, from, certain ? KVC_FINAL : safe);
        if (st == KVC_OK)
            st = emit(e, a->id, certain);
        at = to;
    }
    return st == KVC_OK ? between(e, run, s, at, n, safe_limit(t, s, n, limit, unsafe)) : st;
}

/* ---- the three layers ---- */

static enum kvc_status run_steps(struct kvc_encoder *e, const char *s, size_t n, size_t limit)
{
    return kvc_steps_run(e, 0, s, n, limit);
}

static enum kvc_status run_normalized(struct kvc_encoder *e, const char *s, size_t n, size_t limit)
{
    if (kvc_normalize(e->tok, e->norm, &s, &n, &limit) != KVC_OK)
        return kvc_fail_nomem(e->err);
    return cut(e, &e->tok->normalized, s, n, limit, run_steps);
}

enum kvc_status kvc_encode(struct kvc_encoder *e, const char *text, size_t n,
                           struct kvc_token_ids *ids, size_t *stable, struct kvc_error *err)
{
    size_t before = ids->n, limit = n;
    if (n > TEXT_BYTES_MAX)
        return kvc_fail(err, KVC_ERR_LIMIT, "a text of more than 2 GiB");
    if (!kvc_utf8_valid(text, n)) {
        e->mended.len = 0;
        kvc_utf8_mend(&e->mended, text, n, &limit);
        if (e->mended.failed) {
            clear_texts(e);
            return kvc_fail_nomem(err);
        }
        text = e->mended.buf;
        n = e->mended.len;
    }
    if (!stable)
        limit = KVC_FINAL;
    e->out = ids;
    e->err = err;
    e->stable = 0;
    e->settled = e->at_start = true;
    kvc_matcher_allow(e->matcher, (uint64_t)64 * n + ((uint64_t)16 << 20));
    enum kvc_status st = n ? cut(e, &e->tok->raw, text, n, limit, run_normalized) : KVC_OK;
    if (st == KVC_ERR_NOMEM)
        clear_texts(e); /* one that failed would go on failing */
    if (st != KVC_OK)
        ids->n = before;
    else if (stable)
        *stable = e->stable;
    return st;
}
