/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/sniff.h"

#include <stdio.h>
#include <string.h>

#define ROWS 8   /* looked at */
#define DEPTH 16 /* to which keys are told */

struct walk {
    const char *p, *end;
    size_t depth;
    struct {
        const char *key; /* under which this level stands, in the level above; NULL: in a list */
        size_t n;
    } level[DEPTH];
};

static bool space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A string's bytes; p is on its opening quote. False: cut. */
static bool string(struct walk *w, const char **text, size_t *n)
{
    const char *q = w->p + 1;
    *text = q;
    for (; q < w->end && *q != '"' && *q != '\n'; q++)
        q += *q == '\\';
    if (q >= w->end || *q != '"')
        return false;
    *n = (size_t)(q - *text);
    w->p = q + 1;
    return true;
}

/* The next key in the row; false at the row's end. */
static bool next_key(struct walk *w, const char **key, size_t *n)
{
    while (w->p < w->end && *w->p != '\n') {
        if (*w->p == '"') {
            if (!string(w, key, n))
                return false;
            while (w->p < w->end && space(*w->p) && *w->p != '\n')
                w->p++;
            if (w->p >= w->end || *w->p != ':')
                continue;
            w->p++;
            if (w->depth && w->depth < DEPTH) {
                w->level[w->depth].key = *key;
                w->level[w->depth].n = *n;
            }
            return true;
        }
        if (*w->p == '{' || *w->p == '[') {
            w->depth++;
            if (w->depth < DEPTH)
                w->level[w->depth].key = NULL;
        } else if ((*w->p == '}' || *w->p == ']') && w->depth) {
            w->depth--;
        }
        w->p++;
    }
    return false;
}

/* Whether the path of keys down to the current one is path. */
static bool at_path(const struct walk *w, const char *path)
{
    if (w->depth >= DEPTH)
        return false;
    for (size_t d = 1; d <= w->depth; d++) {
        size_t n = w->level[d].n;
        if (!w->level[d].key || strncmp(path, w->level[d].key, n) != 0 ||
            path[n] != (d < w->depth ? '.' : '\0'))
            return false;
        path += n + 1;
    }
    return w->depth > 0;
}

static bool row_has(struct walk w, const char *path)
{
    const char *key;
    size_t n;
    while (next_key(&w, &key, &n))
        if (at_path(&w, path))
            return true;
    return false;
}

/* Puts w at the k-th row that is not blank. */
static bool find_row(const char *head, size_t n, size_t k, struct walk *w)
{
    const char *p = head, *end = head + n;
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    for (;; k--) {
        while (p < end && space(*p))
            p++;
        if (p == end)
            return false;
        if (k == 0)
            break;
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p)
            return false;
    }
    *w = (struct walk){ .p = p, .end = end };
    return true;
}

bool kvc_sniff_row(const char *head, size_t n, const char *const *keys)
{
    struct walk w;
    for (size_t k = 0; k < ROWS && find_row(head, n, k, &w); k++) {
        const char *const *key = keys;
        while (*key && *w.p == '{' && row_has(w, *key))
            key++;
        if (!*key)
            return true;
    }
    return false;
}

bool kvc_sniff_batch(const char *head, size_t n)
{
    struct walk w;
    for (size_t k = 0; k < ROWS && find_row(head, n, k, &w); k++) {
        const char *p = w.p;
        if (*p != '[')
            continue;
        for (p++; p < w.end && space(*p); p++)
            ;
        if (p >= w.end || *p < '0' || *p > '9')
            continue;
        while (p < w.end && memchr("0123456789.eE+-", *p, 15))
            p++;
        while (p < w.end && space(*p))
            p++;
        if (p >= w.end || *p != ',')
            continue;
        for (p++; p < w.end && space(*p); p++)
            ;
        if (p < w.end && *p == '[')
            return true;
    }
    return false;
}

void kvc_sniff_keys(const char *head, size_t n, char *out, size_t size)
{
    struct walk w;
    const char *key;
    size_t len, used = 0;
    out[0] = '\0';
    if (!find_row(head, n, 0, &w) || *w.p != '{')
        return;
    while (next_key(&w, &key, &len)) {
        if (w.depth != 1)
            continue;
        if (used + len + 6 > size) {
            snprintf(out + used, size - used, "%s", used + 6 < size ? ", .." : "");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? ", " : "", (int)len,
                                 key);
    }
}

size_t kvc_sniff_depth(const char *head, size_t n)
{
    struct walk w;
    size_t depth = 0, most = 0;
    if (!find_row(head, n, 0, &w))
        return 0;
    while (w.p < w.end && *w.p != '\n') {
        const char *text;
        size_t len;
        if (*w.p == '"') {
            if (!string(&w, &text, &len))
                break;
            continue;
        }
        if (*w.p == '{' || *w.p == '[')
            most = ++depth > most ? depth : most;
        else if (*w.p == '}' || *w.p == ']')
            depth -= depth > 0;
        w.p++;
    }
    return most;
}
