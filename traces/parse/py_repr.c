/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/py_repr.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void spaces(struct kvc_py *w)
{
    while (w->p < w->end && (*w->p == ' ' || *w->p == '\t'))
        w->p++;
}

/* Behind the string that begins at p; NULL when it does not close. */
static const char *closed_end(const char *p, const char *end)
{
    char quote = *p++;
    for (; p < end && *p != quote; p++)
        if (*p == '\\')
            p++;
    return p < end ? p + 1 : NULL;
}

static const char *string_end(const char *p, const char *end)
{
    const char *behind = closed_end(p, end);
    return behind ? behind : end;
}

bool kvc_py_value(struct kvc_py *w, struct kvc_span *value)
{
    size_t depth = 0;
    spaces(w);
    const char *from = w->p;
    while (w->p < w->end) {
        char c = *w->p;
        if (c == '\'' || c == '"') {
            w->p = string_end(w->p, w->end);
            continue;
        }
        if (!depth && (c == ',' || c == ')' || c == ']' || c == '}'))
            break;
        if (c == '(' || c == '[' || c == '{')
            depth++;
        else if (c == ')' || c == ']' || c == '}')
            depth--;
        w->p++;
    }
    const char *to = w->p;
    while (to > from && to[-1] == ' ')
        to--;
    *value = (struct kvc_span){ from, (size_t)(to - from) };
    return to > from;
}

bool kvc_py_member(struct kvc_py *w, char separator, struct kvc_span *key, struct kvc_span *value)
{
    spaces(w);
    const char *from = w->p;
    if (from < w->end && (*from == '\'' || *from == '"'))
        w->p = string_end(w->p, w->end);
    while (w->p < w->end && *w->p != separator && *w->p != ')' && *w->p != '}')
        w->p++;
    if (w->p >= w->end || *w->p != separator)
        return false;
    const char *to = w->p++;
    if (to > from + 1 && (*from == '\'' || *from == '"')) {
        from++;
        to--;
    }
    *key = (struct kvc_span){ from, (size_t)(to - from) };
    if (!kvc_py_value(w, value))
        return false;
    if (w->p < w->end && *w->p == ',')
        w->p++;
    return true;
}

bool kvc_py_inside(const struct kvc_span *value, struct kvc_py *w)
{
    const char *p = value->text, *end = p ? p + value->n : p;
    while (p < end && *p != '(' && *p != '{' && *p != '[' && *p != '\'' && *p != '"')
        p++;
    if (p >= end || *p == '\'' || *p == '"')
        return false;
    *w = (struct kvc_py){ p + 1, end };
    return true;
}

bool kvc_py_is(const struct kvc_span *span, const char *word)
{
    return span->text && span->n == strlen(word) && memcmp(span->text, word, span->n) == 0;
}

/* ---- strings ---- */

static void add_code(struct kvc_text *out, uint32_t c)
{
    char b[4];
    size_t n = 0;
    if (c < 0x80) {
        b[n++] = (char)c;
    } else if (c < 0x800) {
        b[n++] = (char)(0xc0 | c >> 6);
        b[n++] = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        b[n++] = (char)(0xe0 | c >> 12);
        b[n++] = (char)(0x80 | (c >> 6 & 63));
        b[n++] = (char)(0x80 | (c & 63));
    } else {
        b[n++] = (char)(0xf0 | (c >> 18 & 7));
        b[n++] = (char)(0x80 | (c >> 12 & 63));
        b[n++] = (char)(0x80 | (c >> 6 & 63));
        b[n++] = (char)(0x80 | (c & 63));
    }
    kvc_text_addn(out, b, n);
}

/* An escape at p, which is on its backslash; the byte behind it. */
static const char *escape(const char *p, const char *end, struct kvc_text *out)
{
    static const struct {
        char letter, digits, means;
    } known[] = { { 'n', 0, '\n' }, { 't', 0, '\t' }, { 'r', 0, '\r' }, { 'x', 2, 0 },
                  { 'u', 4, 0 },    { 'U', 8, 0 } };
    char hex[9] = "";
    if (++p >= end)
        return end;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t n = (size_t)known[i].digits;
        if (*p != known[i].letter)
            continue;
        if (!n) {
            kvc_text_addn(out, &known[i].means, 1);
            return p + 1;
        }
        if ((size_t)(end - p) <= n)
            return end;
        memcpy(hex, p + 1, n);
        add_code(out, (uint32_t)strtoul(hex, NULL, 16));
        return p + 1 + n;
    }
    kvc_text_addn(out, p, 1);
    return p + 1;
}

bool kvc_py_string(const struct kvc_span *value, struct kvc_text *out, size_t *characters)
{
    const char *p = value->text, *end = p ? p + value->n : p;
    if (value->n < 2 || (*p != '\'' && *p != '"') || closed_end(p, end) != end)
        return false;
    *characters = 0;
    for (p++, end--; p < end; ++*characters) {
        if (*p == '\\') {
            p = escape(p, end, out);
            continue;
        }
        const char *from = p++;
        while (p < end && ((unsigned char)*p & 0xc0) == 0x80)
            p++;
        kvc_text_addn(out, from, (size_t)(p - from));
    }
    return true;
}

/* ---- numbers ---- */

bool kvc_py_ids(const struct kvc_span *value, struct kvc_id_buffer *ids, size_t *n)
{
    const char *p = value->text, *end = p ? p + value->n : p;
    *n = 0;
    if (value->n < 2 || *p != '[' || end[-1] != ']')
        return false;
    for (p++, end--;;) {
        uint64_t id = 0;
        while (p < end && *p == ' ')
            p++;
        if (p == end)
            return true;
        const char *digits = p;
        for (; p < end && *p >= '0' && *p <= '9' && p - digits < 10; p++)
            id = id * 10 + (uint64_t)(*p - '0');
        if (p == digits)
            return false;
        if (!kvc_grow((void **)&ids->v, &ids->cap, *n + 1, sizeof(*ids->v))) {
            *n = KVC_ID_NONE;
            return false;
        }
        ids->v[(*n)++] = id;
        while (p < end && *p == ' ')
            p++;
        if (p < end && *p++ != ',')
            return false;
    }
}

bool kvc_py_double(const struct kvc_span *value, double *out)
{
    char text[40], *behind;
    if (!value->text || !value->n || value->n >= sizeof(text))
        return false;
    memcpy(text, value->text, value->n);
    text[value->n] = '\0';
    *out = strtod(text, &behind);
    return !*behind && *out == *out;
}

bool kvc_py_u64(const struct kvc_span *value, uint64_t *out)
{
    uint64_t n = 0;
    if (!value->text || !value->n || value->n > 18)
        return false;
    for (size_t i = 0; i < value->n; i++) {
        if (value->text[i] < '0' || value->text[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(value->text[i] - '0');
    }
    *out = n;
    return true;
}
