/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/json_walk.h"

#include "base/error.h"

#include <string.h>

#define DEEPEST 64

void kvc_walk_start(struct kvc_walk *w, const char *file, const char *text, size_t n)
{
    w->file = file;
    w->text = w->p = w->line_at = text;
    w->end = text + n;
    w->line = 1;
}

uint64_t kvc_walk_line(struct kvc_walk *w, const char *at)
{
    if (at < w->line_at) {
        w->line_at = w->text;
        w->line = 1;
    }
    for (const char *p; (p = memchr(w->line_at, '\n', (size_t)(at - w->line_at))); w->line++)
        w->line_at = p + 1;
    return w->line;
}

bool kvc_walk_broken(struct kvc_walk *w, const char *what)
{
    uint64_t line = kvc_walk_line(w, w->p);
    w->status = kvc_fail_at(w->err, KVC_ERR_INPUT, w->file, line, NULL,
                            "%s, at byte %llu of the document",
                            w->p >= w->end ? "the JSON is cut short" : what,
                            (unsigned long long)(w->p - w->text));
    return false;
}

void kvc_walk_space(struct kvc_walk *w)
{
    while (*w->p == ' ' || *w->p == '\n' || *w->p == '\r' || *w->p == '\t')
        w->p++;
}

static bool expect(struct kvc_walk *w, char c, const char *what)
{
    kvc_walk_space(w);
    if (*w->p != c)
        return kvc_walk_broken(w, what);
    w->p++;
    return true;
}

static bool string(struct kvc_walk *w, struct kvc_walk_text *out)
{
    const char *p = ++w->p;
    out->escapes = false;
    for (; *p != '"'; p++) {
        if ((unsigned char)*p < ' ' || (*p == '\\' && (unsigned char)p[1] < ' ')) {
            w->p = p;
            return kvc_walk_broken(w, "a control character in a text");
        }
        if (*p == '\\') {
            out->escapes = true;
            p++;
        }
    }
    out->text = w->p;
    out->n = (size_t)(p - w->p);
    w->p = p + 1;
    return true;
}

bool kvc_walk_member(struct kvc_walk *w, char close, bool *first, bool *more,
                     struct kvc_walk_text *key)
{
    kvc_walk_space(w);
    *more = true;
    if (*w->p == close) {
        w->p++;
        *more = false;
        return true;
    }
    if (!*first && !expect(w, ',', "a comma or closing bracket is missing"))
        return false;
    *first = false;
    kvc_walk_space(w);
    if (!key)
        return *w->p != close || kvc_walk_broken(w, "a comma with nothing behind it");
    if (*w->p != '"')
        return kvc_walk_broken(w, "a name in quotes is expected");
    return string(w, key) && expect(w, ':', "a colon is missing");
}

/* Passes over a list or an object. */
static bool pass_over(struct kvc_walk *w, unsigned depth)
{
    char close = *w->p == '[' ? ']' : '}';
    bool first = true, more;
    struct kvc_walk_value v;
    struct kvc_walk_text key;
    if (depth > DEEPEST)
        return kvc_walk_broken(w, "nested too deeply");
    w->p++;
    for (;;) {
        if (!kvc_walk_member(w, close, &first, &more, close == '}' ? &key : NULL))
            return false;
        if (!more)
            return true;
        if (!kvc_walk_value(w, depth + 1, &v))
            return false;
    }
}

static bool literal(struct kvc_walk *w, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(w->p, word, n) != 0)
        return kvc_walk_broken(w, "not JSON");
    w->p += n;
    return true;
}

bool kvc_walk_value(struct kvc_walk *w, unsigned depth, struct kvc_walk_value *out)
{
    size_t n;
    kvc_walk_space(w);
    out->at = w->p;
    switch (*w->p) {
    case '"':
        out->kind = KVC_WALK_STRING;
        return string(w, &out->string);
    case '{':
        out->kind = KVC_WALK_OBJECT;
        return pass_over(w, depth);
    case '[':
        out->kind = KVC_WALK_LIST;
        return pass_over(w, depth);
    case 'n':
        out->kind = KVC_WALK_NIL;
        return literal(w, "null");
    case 't':
    case 'f':
        out->kind = KVC_WALK_LITERAL;
        return literal(w, *w->p == 't' ? "true" : "false");
    default:
        out->kind = KVC_WALK_NUMBER;
        n = kvc_decimal_parse(w->p, (size_t)(w->end - w->p), &out->number);
        w->p += n;
        return n || kvc_walk_broken(w, "not JSON");
    }
}

bool kvc_walk_is(const struct kvc_walk_text *s, const char *word)
{
    return s->n == strlen(word) && memcmp(s->text, word, s->n) == 0;
}
