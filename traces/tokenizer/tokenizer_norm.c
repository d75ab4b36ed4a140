/* SPDX-License-Identifier: Apache-2.0
 * The normalizer: each of its parts rewrites the text of a segment. */
#include "traces/tokenizer/tokenizer_internal.h"

#include <string.h>

/* Replaces pattern, which is not empty, from left to right. */
static void replace(struct kvc_text *out, const char *s, size_t n, const char *pattern,
                    const char *content, size_t *limit)
{
    size_t width = strlen(pattern), with = strlen(content), from = 0, certain = 0;
    while (from < n) {
        const char *hit = memmem(s + from, n - from, pattern, width);
        size_t to = hit ? (size_t)(hit - s) : n;
        /* a place is decided once as much as the pattern is known there */
        if (*limit != KVC_FINAL && from + width <= *limit + 1) {
            size_t decided = *limit + 1 - width;
            certain = out->len + (decided < to ? decided : to) - from;
        }
        kvc_text_addn(out, s + from, to - from);
        if (hit)
            kvc_text_addn(out, content, with);
        from = hit ? to + width : n;
        if (hit && *limit != KVC_FINAL && from <= *limit)
            certain = out->len;
    }
    if (*limit != KVC_FINAL)
        *limit = certain;
}

static bool changes(const struct kvc_tokenizer *tok, const struct kvc_norm *norm, const char *s,
                    size_t n, size_t limit)
{
    if (norm->kind == KVC_NORM_PREPEND)
        return n > 0;
    if (norm->kind == KVC_NORM_NFC)
        return limit != KVC_FINAL || !kvc_nfc_is(tok->nfc, s, n);
    return limit != KVC_FINAL || memmem(s, n, norm->pattern, strlen(norm->pattern));
}

enum kvc_status kvc_normalize(const struct kvc_tokenizer *tok, struct kvc_text buffers[2],
                              const char **s, size_t *n, size_t *limit)
{
    struct kvc_text *out = &buffers[0];
    for (size_t i = 0; i < tok->n_norms; i++) {
        const struct kvc_norm *norm = &tok->norms[i];
        if (!changes(tok, norm, *s, *n, *limit))
            continue;
        out->len = 0;
        if (norm->kind == KVC_NORM_NFC) {
            kvc_nfc_add(tok->nfc, out, *s, *n, limit);
        } else if (norm->kind == KVC_NORM_REPLACE) {
            replace(out, *s, *n, norm->pattern, norm->content, limit);
        } else {
            kvc_text_add(out, norm->content);
            kvc_text_addn(out, *s, *n);
            if (*limit != KVC_FINAL)
                *limit += *limit ? strlen(norm->content) : 0;
        }
        if (out->failed)
            return KVC_ERR_NOMEM;
        *s = out->buf ? out->buf : "";
        *n = out->len;
        out = out == &buffers[0] ? &buffers[1] : &buffers[0];
    }
    return KVC_OK;
}
