/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/json_rows.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/import/import_state.h"
#include "traces/import/sniff.h"

#include <stdio.h>
#include <string.h>

#define VALUE_MAX ((size_t)256 << 20)
#define READ_AHEAD ((size_t)1 << 18)
#define SNIFFED ((size_t)1 << 16)

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_mark(const char *text, size_t n)
{
    return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* ---- where a value ends ---- */

struct brackets {
    size_t depth;
    bool in_string, escaped, any;
};

/* Goes on over text[from, n): the byte behind the value, or n when it ends later. *whole tells. */
static size_t value_end(struct brackets *b, const char *text, size_t from, size_t n, bool *whole)
{
    *whole = true;
    for (size_t i = from; i < n; i++) {
        char c = text[i];
        if (b->in_string) {
            if (b->escaped)
                b->escaped = false;
            else if (c == '\\')
                b->escaped = true;
            else if (c == '"')
                b->in_string = false;
            if (!b->in_string && !b->depth)
                return i + 1;
        } else if (c == '"') {
            b->in_string = true;
        } else if (c == '{' || c == '[') {
            b->depth++;
        } else if (b->depth && (c == '}' || c == ']')) {
            if (--b->depth == 0)
                return i + 1;
        } else if (!b->depth && (c == ',' || c == ']' || c == '}' || is_space(c)) && b->any) {
            return i; /* behind a number or a word */
        }
        b->any = true;
    }
    *whole = false;
    return n;
}

static enum kvc_json_layout layout_of(const char *head, size_t n)
{
    struct brackets b = { 0 };
    bool whole;
    size_t i = skip_mark(head, n);
    while (i < n && is_space(head[i]))
        i++;
    if (i < n && head[i] == '[')
        return KVC_JSON_LIST;
    const char *newline = i < n && head[i] == '{' ? memchr(head + i, '\n', n - i) : NULL;
    if (!newline)
        return KVC_JSON_LINES;
    value_end(&b, head, i, (size_t)(newline - head), &whole);
    if (whole)
        return KVC_JSON_LINES;
    /* A line that is cut short is followed by a row; a document goes on with a name, or with an
     * element of a list, which a comma or the list's end follows. */
    for (i = (size_t)(newline - head); i < n && is_space(head[i]);)
        i++;
    if (i == n || head[i] != '{')
        return KVC_JSON_DOCUMENTS;
    b = (struct brackets){ 0 };
    for (i = value_end(&b, head, i, n, &whole); i < n && is_space(head[i]);)
        i++;
    return i < n && (head[i] == ',' || head[i] == ']') ? KVC_JSON_DOCUMENTS : KVC_JSON_LINES;
}

bool kvc_json_sniff(const char *head, size_t n, const char *const *keys)
{
    char row[SNIFFED]; /* on one line */
    enum kvc_json_layout layout = layout_of(head, n);
    if (layout == KVC_JSON_LINES)
        return kvc_sniff_row(head, n, keys);
    size_t i = skip_mark(head, n), k = 0;
    while (i < n && (is_space(head[i]) || (layout == KVC_JSON_LIST && head[i] == '[')))
        i++;
    for (; i < n && k < sizeof(row); i++)
        row[k++] = is_space(head[i]) ? ' ' : head[i];
    return kvc_sniff_row(row, k, keys);
}

/* ---- lists and documents ---- */

void kvc_json_rows_open(struct kvc_json_rows *r, struct kvc_import *im)
{
    size_t n;
    const char *head = kvc_stream_head(im->lines.stream, &n);
    *r = (struct kvc_json_rows){ .im = im, .line = 1, .layout = layout_of(head, n) };
}

void kvc_json_rows_clear(struct kvc_json_rows *r)
{
    kvc_free(r->buf);
    r->buf = NULL;
}

static enum kvc_status refill(struct kvc_json_rows *r, struct kvc_error *err)
{
    size_t got = 0;
    if (r->begin > r->cap / 2) {
        memmove(r->buf, r->buf + r->begin, r->end - r->begin);
        r->end -= r->begin;
        r->begin = 0;
    }
    if (!kvc_grow((void **)&r->buf, &r->cap, r->end + READ_AHEAD + KVC_LINE_PAD, 1))
        return kvc_fail_nomem(err);
    enum kvc_status status = kvc_import_bytes(r->im, r->buf + r->end, READ_AHEAD, &got, err);
    if (status != KVC_OK)
        return status;
    if (r->end == 0 && !r->index && !r->opened && skip_mark(r->buf, got))
        r->begin = 3;
    r->end += got;
    r->eof = got == 0;
    memset(r->buf + r->end, 0, KVC_LINE_PAD);
    return KVC_OK;
}

/* The next byte that is not space, 0 at the end. */
static enum kvc_status peek(struct kvc_json_rows *r, char *c, struct kvc_error *err)
{
    for (;;) {
        for (; r->begin < r->end; r->begin++) {
            *c = r->buf[r->begin];
            if (!is_space(*c))
                return KVC_OK;
            r->line += *c == '\n';
        }
        *c = 0;
        if (r->eof)
            return KVC_OK;
        enum kvc_status status = refill(r, err);
        if (status != KVC_OK)
            return status;
    }
}

static enum kvc_status broken(struct kvc_json_rows *r, const char *what, struct kvc_error *err)
{
    struct kvc_error bad;
    r->done = true;
    kvc_import_begin_row(r->im, r->line, "");
    kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(r->im), r->line, NULL,
                "%s; the rest of the file is left out", what);
    return kvc_import_bad(r->im, &bad, err);
}

/* Punctuation up to the next value; *end: there is none. */
static enum kvc_status to_value(struct kvc_json_rows *r, bool *end, struct kvc_error *err)
{
    char c;
    enum kvc_status status = peek(r, &c, err);
    bool list = r->layout == KVC_JSON_LIST;
    *end = true;
    if (status != KVC_OK)
        return status;
    if (list && !r->opened && c == '[') {
        r->opened = true;
        r->begin++;
        status = peek(r, &c, err);
    } else if (list && r->index && c == ',') {
        r->begin++;
        status = peek(r, &c, err);
        if (status == KVC_OK && c == ']')
            return broken(r, "a comma with nothing behind it", err);
    } else if (list && r->index && c && c != ']') {
        return broken(r, "a comma is missing between two rows of the list", err);
    }
    if (status != KVC_OK)
        return status;
    if (list && c == ']') {
        r->begin++;
        r->done = true;
        status = peek(r, &c, err);
        return status == KVC_OK && c ? broken(r, "something stands behind the list", err) : status;
    }
    if (list && !c)
        return broken(r, "the list is cut short", err);
    *end = r->done = !c;
    return KVC_OK;
}

static enum kvc_status next_value(struct kvc_json_rows *r, const char **text, size_t *n,
                                  struct kvc_error *err)
{
    struct brackets b = { 0 };
    bool end, whole = false;
    char where[32];
    enum kvc_status status = to_value(r, &end, err);
    *text = NULL;
    if (status != KVC_OK || end || r->done)
        return status;
    size_t done = 0; /* bytes of the value seen */
    for (;;) {
        size_t at = value_end(&b, r->buf, r->begin + done, r->end, &whole);
        done = at - r->begin;
        if (whole || (r->eof && !b.depth && !b.in_string))
            break;
        if (r->eof)
            return broken(r, "the JSON is cut short", err);
        if (done > VALUE_MAX)
            return broken(r, "one value is longer than 256 MiB; write one a line", err);
        status = refill(r, err);
        if (status != KVC_OK)
            return status;
    }
    snprintf(where, sizeof(where), "[%llu]", (unsigned long long)r->index++);
    kvc_import_begin_row(r->im, r->line, r->layout == KVC_JSON_LIST ? where : "");
    *text = r->buf + r->begin;
    *n = done;
    for (size_t i = 0; i < done; i++)
        r->line += (*text)[i] == '\n';
    r->begin += done;
    return KVC_OK;
}

enum kvc_status kvc_json_rows_next(struct kvc_json_rows *r, const char **text, size_t *n,
                                   struct kvc_error *err)
{
    if (r->layout == KVC_JSON_LINES)
        return kvc_import_line(r->im, text, n, err);
    *text = NULL;
    return r->done ? KVC_OK : next_value(r, text, n, err);
}
