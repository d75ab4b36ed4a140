/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/json_tape.h"

#include "base/alloc.h"
#include "base/decimal.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define DEEPEST 48      /* of what the fast way takes; the tree takes some more */
#define KEYS 48         /* of one object, likewise */
#define NUMBER_LONGEST 40

/* ---- strings ---- */

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)p[i], low = c | 0x20;
        if (c >= '0' && c <= '9')
            v = v * 16 + (c - '0');
        else if (low >= 'a' && low <= 'f')
            v = v * 16 + (low - 'a' + 10);
        else
            return -1;
    }
    return v;
}

/* Length of the escape at p, which is at a backslash; 0: wrong, or an odd one. */
static size_t escape_length(const char *p)
{
    if (p[1] != 'u')
        return p[1] && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
    int high = hex4(p + 2);
    if (high <= 0)
        return 0;
    if (high < 0xd800 || high > 0xdfff)
        return 6;
    if (high > 0xdbff || p[6] != '\\' || p[7] != 'u')
        return 0;
    int low = hex4(p + 8);
    return low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
}

/* The first byte from p on that a string doesn't hold as it is: quote, backslash, control. */
static inline const char *plain_end(const char *p)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'),
                  control = _mm_set1_epi8(0x1f);
    for (;; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                                   _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask)
            return p + __builtin_ctz(mask);
    }
#else
    while ((unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
#endif
}

/* ---- the fast way ---- */

struct scanner {
    struct kvc_tape *t;
    const char *p, *end;
};

static struct kvc_tape_node *push(struct kvc_tape *t, enum kvc_jkind kind)
{
    if (t->n == t->cap &&
        !kvc_grow((void **)&t->v, &t->cap, t->n < 62 ? 64 : t->n + 1, sizeof(*t->v))) {
        t->failed = true;
        return NULL;
    }
    struct kvc_tape_node *node = &t->v[t->n++];
    *node = (struct kvc_tape_node){ .kind = (uint8_t)kind, .next = (uint32_t)t->n };
    return node;
}

static bool scan_string(struct scanner *s)
{
    const char *first = ++s->p, *p = first;
    bool escapes = false;
    while (*(p = plain_end(p)) == '\\') {
        size_t n = escape_length(p);
        if (!n)
            return false;
        escapes = true;
        p += n;
    }
    if (*p != '"')
        return false;
    struct kvc_tape_node *node = push(s->t, KVC_JSTRING);
    if (!node)
        return false;
    node->text = first;
    node->n = (uint32_t)(p - first);
    node->escapes = escapes;
    s->p = p + 1;
    return true;
}

static inline void skip_space(struct scanner *s)
{
    while ((unsigned char)*s->p <= ' ' && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r'))
        s->p++;
}

static bool scan_number(struct scanner *s)
{
    struct kvc_decimal d;
    size_t n = kvc_decimal_parse(s->p, (size_t)(s->end - s->p), &d);
    if (!n || n > NUMBER_LONGEST || !strchr(" \t\r,]}", s->p[n]) || !s->p[n])
        return false;
    struct kvc_tape_node *node = push(s->t, KVC_JNUMBER);
    if (!node)
        return false;
    node->text = s->p;
    node->n = (uint32_t)n;
    s->p += n;
    return true;
}

static bool scan_word(struct scanner *s, const char *word, enum kvc_jkind kind, bool truth)
{
    size_t n = strlen(word);
    if (memcmp(s->p, word, n) != 0 || !strchr(" \t\r,]}", s->p[n]) || !s->p[n])
        return false;
    struct kvc_tape_node *node = push(s->t, kind);
    if (!node)
        return false;
    node->truth = truth;
    s->p += n;
    return true;
}

static bool scan_value(struct scanner *s, unsigned depth);

static bool new_key(const struct scanner *s, const uint32_t *keys, unsigned n, uint32_t key)
{
    const struct kvc_tape_node *k = &s->t->v[key];
    if (k->escapes || n == KEYS)
        return false;
    for (unsigned i = 0; i < n; i++) {
        const struct kvc_tape_node *o = &s->t->v[keys[i]];
        if (o->n == k->n && memcmp(o->text, k->text, k->n) == 0)
            return false;
    }
    return true;
}

static bool scan_object(struct scanner *s, unsigned depth)
{
    uint32_t keys[KEYS];
    unsigned n = 0;
    for (skip_space(s); !(*s->p == '}' && n == 0); n++) {
        uint32_t key = (uint32_t)s->t->n;
        if (*s->p != '"' || !scan_string(s) || !new_key(s, keys, n, key))
            return false;
        keys[n] = key;
        skip_space(s);
        if (*s->p++ != ':' || !scan_value(s, depth + 1))
            return false;
        if (*s->p == '}')
            break;
        if (*s->p++ != ',')
            return false;
        skip_space(s);
    }
    return true;
}

static bool scan_array(struct scanner *s, unsigned depth)
{
    bool first = true;
    for (skip_space(s); !(*s->p == ']' && first); first = false) {
        if (!scan_value(s, depth + 1))
            return false;
        if (*s->p == ']')
            break;
        if (*s->p++ != ',')
            return false;
    }
    return true;
}

static bool scan_container(struct scanner *s, unsigned depth)
{
    bool object = *s->p++ == '{';
    size_t at = s->t->n;
    if (depth >= DEEPEST || !push(s->t, object ? KVC_JOBJECT : KVC_JARRAY) ||
        !(object ? scan_object(s, depth) : scan_array(s, depth)))
        return false;
    s->p++;
    s->t->v[at].next = (uint32_t)s->t->n;
    return true;
}

/* One value and the blanks around it. */
static bool scan_value(struct scanner *s, unsigned depth)
{
    bool ok;
    skip_space(s);
    switch (*s->p) {
    case '"':
        ok = scan_string(s);
        break;
    case '{':
    case '[':
        ok = scan_container(s, depth);
        break;
    case 't':
        ok = scan_word(s, "true", KVC_JBOOL, true);
        break;
    case 'f':
        ok = scan_word(s, "false", KVC_JBOOL, false);
        break;
    case 'n':
        ok = scan_word(s, "null", KVC_JNULL, false);
        break;
    default:
        ok = scan_number(s);
    }
    if (ok)
        skip_space(s);
    return ok;
}

bool kvc_tape_scan(struct kvc_tape *t, const char *text, size_t n)
{
    struct scanner s = { t, text, text + n };
    t->n = 0;
    t->failed = false;
    return n < UINT32_MAX && scan_value(&s, 0) && s.p >= s.end;
}

/* ---- from the tree ---- */

static bool add(struct kvc_tape *t, const struct kvc_jval *v)
{
    size_t at = t->n, n;
    enum kvc_jkind kind = kvc_jval_kind(v);
    struct kvc_tape_node *node = push(t, kind);
    if (!node)
        return false;
    if (kind == KVC_JSTRING) {
        node->text = kvc_jval_string(v);
        node->n = (uint32_t)strlen(node->text);
    } else if (kind == KVC_JNUMBER) {
        node->text = kvc_jval_digits(v, &n);
        node->n = (uint32_t)n;
    } else if (kind == KVC_JBOOL) {
        kvc_jval_bool(v, &node->truth);
    }
    for (v = kvc_jval_first(v); v; v = kvc_jval_next(v)) {
        if (kind == KVC_JOBJECT) {
            struct kvc_tape_node *key = push(t, KVC_JSTRING);
            if (!key)
                return false;
            key->text = kvc_jval_key(v);
            key->n = (uint32_t)strlen(key->text);
        }
        if (!add(t, v))
            return false;
    }
    t->v[at].next = (uint32_t)t->n;
    return true;
}

bool kvc_tape_of(struct kvc_tape *t, const struct kvc_jval *root)
{
    t->n = 0;
    t->failed = false;
    return add(t, root);
}

/* ---- what is on it ---- */

static bool same_text(const struct kvc_tape_node *node, const char *text, size_t n)
{
    return node->n == n && memcmp(node->text, text, n) == 0 && !node->escapes;
}

uint32_t kvc_tape_member(const struct kvc_tape *t, uint32_t at, const char *key)
{
    size_t n = strlen(key);
    if (kvc_tape_kind(t, at) != KVC_JOBJECT)
        return 0;
    for (uint32_t i = at + 1; i < kvc_tape_end(t, at); i = kvc_tape_next(t, i + 1))
        if (same_text(&t->v[i], key, n))
            return kvc_tape_kind(t, i + 1) == KVC_JNULL ? 0 : i + 1;
    return 0;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf0u << (4 - n) & 0xff) | c);
    return n;
}

/* Decodes the escape at *p. */
static size_t unescape(const char **p, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *s = *p;
    if (s[1] != 'u') {
        *p = s + 2;
        *out = to[strchr(from, s[1]) - from];
        return 1;
    }
    uint32_t c = (uint32_t)hex4(s + 2);
    *p = s + 6;
    if (c >= 0xd800 && c <= 0xdbff) {
        c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)hex4(s + 8) - 0xdc00);
        *p = s + 12;
    }
    return put_utf8(out, c);
}

size_t kvc_tape_decode(const struct kvc_tape *t, uint32_t at, char *out)
{
    const struct kvc_tape_node *node = &t->v[at];
    const char *p = node->text, *end = p + node->n;
    char *to = out;
    if (!node->escapes) {
        if (node->n)
            memcpy(out, p, node->n);
        return node->n;
    }
    while (p < end) {
#if defined(__SSE2__)
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        unsigned mask = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        size_t n = mask ? (size_t)__builtin_ctz(mask) : 16;
        _mm_storeu_si128((__m128i *)(void *)to, v);
        n = (size_t)(end - p) < n ? (size_t)(end - p) : n;
        p += n;
        to += n;
        if (!mask || p >= end)
            continue;
#else
        while (p < end && *p != '\\')
            *to++ = *p++;
        if (p >= end)
            break;
#endif
        to += unescape(&p, to);
    }
    return (size_t)(to - out);
}

struct kvc_span kvc_tape_word(const struct kvc_tape *t, uint32_t at, char room[KVC_TAPE_ROOM])
{
    const struct kvc_tape_node *node = &t->v[at];
    struct kvc_span word = { node->text, node->n };
    if (!at || node->kind != KVC_JSTRING || node->n > 6 * KVC_TAPE_WORD) /* \uXXXX */
        return (struct kvc_span){ NULL, 0 };
    if (node->escapes)
        word = (struct kvc_span){ room, kvc_tape_decode(t, at, room) };
    return word.n <= KVC_TAPE_WORD ? word : (struct kvc_span){ NULL, 0 };
}

bool kvc_tape_is(const struct kvc_tape *t, uint32_t at, const char *text)
{
    char room[KVC_TAPE_ROOM];
    struct kvc_span word = kvc_tape_word(t, at, room);
    return word.text && word.n == strlen(text) && memcmp(word.text, text, word.n) == 0;
}

bool kvc_tape_u64(const struct kvc_tape *t, uint32_t at, uint64_t *out)
{
    const struct kvc_tape_node *node = &t->v[at];
    struct kvc_decimal d;
    bool exact;
    return node->kind == KVC_JNUMBER && kvc_decimal_parse(node->text, node->n, &d) == node->n &&
           !d.too_precise && kvc_decimal_scale(&d, 1, out, &exact) && exact &&
           (!d.negative || *out == 0);
}
