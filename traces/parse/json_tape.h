/* SPDX-License-Identifier: Apache-2.0
 * A JSON row as a flat list of its values, in two ways: fast, straight from the line, where all in
 * it is plain and right; or from base/json.h's tree, which has the last word. Readers work on the
 * list, so that both ways mean the same. Texts stay where they are until someone wants them. */
#ifndef KVC_TRACES_JSON_TAPE_H
#define KVC_TRACES_JSON_TAPE_H

#include "base/json.h"
#include "traces/import/import.h"

struct kvc_tape_node {
    const char *text; /* of a string, without quotes; of a number, its digits */
    uint32_t n;
    uint32_t next; /* the value (or key) behind this one, or the end of what it is in */
    uint8_t kind;  /* enum kvc_jkind */
    bool escapes;  /* the text holds JSON escapes */
    bool truth;
};

/* v[0] is the row. In an object a key (a string) comes before each value. */
struct kvc_tape { /* all zero = empty; kvc_free(v) at the end */
    struct kvc_tape_node *v;
    size_t n, cap;
    bool failed; /* no memory */
};

/* text[n] ends the line, with KVC_LINE_PAD bytes of memory from there on; the tape points into
 * it. False: not sure, ask base/json.h; or no memory (failed). */
bool kvc_tape_scan(struct kvc_tape *t, const char *text, size_t n);
/* The tape points into the tree. False: no memory. */
bool kvc_tape_of(struct kvc_tape *t, const struct kvc_jval *root);

static inline enum kvc_jkind kvc_tape_kind(const struct kvc_tape *t, uint32_t at)
{
    return (enum kvc_jkind)t->v[at].kind;
}

/* First element or key in a container and the end of it, for
 * for (i = kvc_tape_first(at); i < kvc_tape_end(t, at); i = kvc_tape_next(t, i)); an object's value
 * is at i + 1, and behind it is i = kvc_tape_next(t, i + 1). */
static inline uint32_t kvc_tape_first(uint32_t at)
{
    return at + 1;
}

static inline uint32_t kvc_tape_next(const struct kvc_tape *t, uint32_t at)
{
    return t->v[at].next;
}

static inline uint32_t kvc_tape_end(const struct kvc_tape *t, uint32_t at)
{
    return t->v[at].next;
}

/* A member's value; 0: none, null, or at is no object. */
uint32_t kvc_tape_member(const struct kvc_tape *t, uint32_t at, const char *key);
#define KVC_TAPE_WORD 64 /* bytes of the longest text that is asked for by name */
#define KVC_TAPE_ROOM (6 * KVC_TAPE_WORD + 16)

/* A short text, without its escapes; in room when it has some. Of NULL: longer, no
 * text, or at is 0. */
struct kvc_span kvc_tape_word(const struct kvc_tape *t, uint32_t at, char room[KVC_TAPE_ROOM]);
/* Whether the value is this short text. */
bool kvc_tape_is(const struct kvc_tape *t, uint32_t at, const char *text);
/* The text of a string, n + 16 bytes of room at out; how many were written. */
size_t kvc_tape_decode(const struct kvc_tape *t, uint32_t at, char *out);
/* Whole numbers, exactly; 61, 61.0 and 6.1e1 are one. False: no such number. */
bool kvc_tape_u64(const struct kvc_tape *t, uint32_t at, uint64_t *out);

#endif
