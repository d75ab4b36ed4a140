/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_ARRAY = 1, HAS_ELEMENT = 2, ONE_LINE = 4 };

static void append(struct kvc_json *j, const char *s, size_t n)
{
    void *p = j->buf;
    if (j->failed)
        return;
    if (!kvc_grow(&p, &j->cap, j->len + n + 1, 1)) {
        j->failed = true;
        return;
    }
    j->buf = p;
    memcpy(j->buf + j->len, s, n);
    j->len += n;
    j->buf[j->len] = '\0';
}

static void append_text(struct kvc_json *j, const char *s)
{
    append(j, s, strlen(s));
}

static void new_line(struct kvc_json *j)
{
    append(j, "\n", 1);
    for (unsigned i = 0; i < j->depth; i++)
        append(j, "  ", 2);
}

/* Bytes of the UTF-8 sequence at s, 0 when it is not one. */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5                 ? 4
                                                             : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    bool overlong = (s[0] == 0xe0 && n > 1 && s[1] < 0xa0) ||
                    (s[0] == 0xf0 && n > 1 && s[1] < 0x90);
    bool no_character = (s[0] == 0xed && n > 1 && s[1] > 0x9f) ||
                        (s[0] == 0xf4 && n > 1 && s[1] > 0x8f);
    return overlong || no_character ? 0 : n;
}

/* Bytes that are not UTF-8 (a log may hold anything) become U+FFFD, so that the output is JSON. */
static void append_quoted(struct kvc_json *j, const char *s)
{
    append(j, "\"", 1);
    for (const unsigned char *p = (const unsigned char *)s; *p && !j->failed;) {
        size_t n = utf8_length(p);
        char escape[8];
        if (n == 0) {
            append(j, "\xef\xbf\xbd", 3);
            n = 1;
        } else if (*p == '"' || *p == '\\') {
            escape[0] = '\\';
            escape[1] = (char)*p;
            append(j, escape, 2);
        } else if (*p == '\n') {
            append(j, "\\n", 2);
        } else if (*p < 0x20 || *p == 0x7f) {
            snprintf(escape, sizeof(escape), "\\u%04x", *p);
            append_text(j, escape);
        } else {
            append(j, (const char *)p, n);
        }
        p += n;
    }
    append(j, "\"", 1);
}

/* Comma, line break and key in front of a value. */
static void begin(struct kvc_json *j, const char *key, bool number)
{
    unsigned char *s = &j->state[j->depth < sizeof(j->state) ? j->depth : sizeof(j->state) - 1];
    bool first = !(*s & HAS_ELEMENT);
    if (j->depth && first && number && (*s & IN_ARRAY))
        *s |= ONE_LINE;
    if (!first)
        append(j, ",", 1);
    if (j->depth && j->pretty && !(*s & ONE_LINE))
        new_line(j);
    else if (!first && j->pretty)
        append(j, " ", 1);
    *s |= HAS_ELEMENT;
    if (key) {
        append_quoted(j, key);
        append_text(j, j->pretty ? ": " : ":");
    }
}

static void open(struct kvc_json *j, const char *key, const char *bracket, unsigned char state)
{
    begin(j, key, false);
    append_text(j, bracket);
    if (j->depth + 1 >= sizeof(j->state)) {
        j->failed = true;
        return;
    }
    j->state[++j->depth] = state;
}

void kvc_json_init(struct kvc_json *j, bool pretty)
{
    *j = (struct kvc_json){.pretty = pretty};
}

void kvc_json_clear(struct kvc_json *j)
{
    kvc_free(j->buf);
    kvc_json_init(j, j->pretty);
}

void kvc_json_open_object(struct kvc_json *j, const char *key)
{
    open(j, key, "{", 0);
}

void kvc_json_open_array(struct kvc_json *j, const char *key)
{
    open(j, key, "[", IN_ARRAY);
}

void kvc_json_close(struct kvc_json *j)
{
    if (!j->depth)
        return;
    unsigned char s = j->state[j->depth--];
    if (j->pretty && (s & HAS_ELEMENT) && !(s & ONE_LINE))
        new_line(j);
    append(j, s & IN_ARRAY ? "]" : "}", 1);
    if (j->pretty && j->depth == 0)
        append(j, "\n", 1);
}

void kvc_json_string(struct kvc_json *j, const char *key, const char *value)
{
    begin(j, key, false);
    if (value)
        append_quoted(j, value);
    else
        append_text(j, "null");
}

void kvc_json_u64(struct kvc_json *j, const char *key, uint64_t value)
{
    char text[32];
    begin(j, key, true);
    snprintf(text, sizeof(text), "%" PRIu64, value);
    append_text(j, text);
}

void kvc_json_i64(struct kvc_json *j, const char *key, int64_t value)
{
    char text[32];
    begin(j, key, true);
    snprintf(text, sizeof(text), "%" PRId64, value);
    append_text(j, text);
}

void kvc_json_double(struct kvc_json *j, const char *key, double value)
{
    char text[40] = "null";
    begin(j, key, true);
    if (isfinite(value)) {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, sizeof(text), "%.*g", digits, value);
            if (strtod(text, NULL) == value)
                break;
        }
        for (char *p = text; *p; p++) { /* the caller's locale may have another decimal point */
            if (!strchr("0123456789+-e", *p))
                *p = '.';
        }
    }
    append_text(j, text);
}

void kvc_json_bool(struct kvc_json *j, const char *key, bool value)
{
    begin(j, key, false);
    append_text(j, value ? "true" : "false");
}

void kvc_json_null(struct kvc_json *j, const char *key)
{
    begin(j, key, false);
    append_text(j, "null");
}

/* Whole numbers in full; a zero keeps its sign. */
static void put_number(struct kvc_json *j, const char *key, const struct kvc_jval *v)
{
    double number = NAN;
    uint64_t count;
    int64_t whole;

    kvc_jval_number(v, &number);
    if (!signbit(number) && kvc_jval_u64(v, &count))
        kvc_json_u64(j, key, count);
    else if (number != 0 && kvc_jval_i64(v, &whole))
        kvc_json_i64(j, key, whole);
    else
        kvc_json_double(j, key, number);
}

void kvc_json_value(struct kvc_json *j, const char *key, const struct kvc_jval *v)
{
    bool flag = false;

    switch (kvc_jval_kind(v)) {
    case KVC_JNULL:
        kvc_json_null(j, key);
        break;
    case KVC_JBOOL:
        kvc_jval_bool(v, &flag);
        kvc_json_bool(j, key, flag);
        break;
    case KVC_JNUMBER:
        put_number(j, key, v);
        break;
    case KVC_JSTRING:
        kvc_json_string(j, key, kvc_jval_string(v));
        break;
    case KVC_JARRAY:
    case KVC_JOBJECT:
        if (kvc_jval_kind(v) == KVC_JARRAY)
            kvc_json_open_array(j, key);
        else
            kvc_json_open_object(j, key);
        for (const struct kvc_jval *m = kvc_jval_first(v); m; m = kvc_jval_next(m))
            kvc_json_value(j, kvc_jval_key(m), m);
        kvc_json_close(j);
    }
}

void kvc_json_raw(struct kvc_json *j, const char *key, const char *json)
{
    begin(j, key, false);
    for (size_t n; *json; json += n) { /* a line break is never inside a string: indent anew */
        n = strcspn(json, "\n");
        append(j, json, n);
        if (json[n] == '\n' && json[++n] && j->pretty)
            new_line(j);
    }
}

char *kvc_json_take(struct kvc_json *j)
{
    char *text = j->failed ? NULL : j->buf;
    if (j->failed)
        kvc_free(j->buf);
    kvc_json_init(j, j->pretty);
    return text;
}
