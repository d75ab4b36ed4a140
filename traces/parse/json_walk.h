/* SPDX-License-Identifier: Apache-2.0
 * Walks through one JSON document in memory, value by value, strict about its form and without a
 * tree: for documents of many MB. */
#ifndef KVC_TRACES_JSON_WALK_H
#define KVC_TRACES_JSON_WALK_H

#include "base/decimal.h"

#include <kvcast/kvcast.h>

struct kvc_walk {
    const char *file;
    struct kvc_error *err;
    enum kvc_status status; /* not KVC_OK: give up */
    const char *text, *p, *end;
    const char *line_at; /* a line begins here, and its number */
    uint64_t line;
};

struct kvc_walk_text { /* between its quotes, escapes as they are */
    const char *text;
    size_t n;
    bool escapes;
};

enum kvc_walk_kind {
    KVC_WALK_NUMBER, KVC_WALK_STRING, KVC_WALK_LIST, KVC_WALK_OBJECT, KVC_WALK_LITERAL, KVC_WALK_NIL
};

struct kvc_walk_value {
    enum kvc_walk_kind kind;
    const char *at;
    struct kvc_decimal number;
    struct kvc_walk_text string;
};

/* text[n] is 0, with some bytes behind it. */
void kvc_walk_start(struct kvc_walk *w, const char *file, const char *text, size_t n);
/* Positions are best asked for in ascending order. */
uint64_t kvc_walk_line(struct kvc_walk *w, const char *at);
/* Sets status to an error at p; always false, as the functions below are after an error. */
bool kvc_walk_broken(struct kvc_walk *w, const char *what);
void kvc_walk_space(struct kvc_walk *w);
/* The next key of an object or element of a list, which p is in; *more false behind its closing
 * bracket. key NULL in a list. *first is true at the beginning. */
bool kvc_walk_member(struct kvc_walk *w, char close, bool *first, bool *more,
                     struct kvc_walk_text *key);
/* Reads a scalar, passes over a list or an object. */
bool kvc_walk_value(struct kvc_walk *w, unsigned depth, struct kvc_walk_value *out);
bool kvc_walk_is(const struct kvc_walk_text *s, const char *word);

#endif
