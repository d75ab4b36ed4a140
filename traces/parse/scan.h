/* SPDX-License-Identifier: Apache-2.0
 * Parts of the fast readers of JSON lines: each proves that a piece of a row is plain and right
 * and moves *pp past it, or says no. One pass, no allocation, eight digits at a time. A row ends in
 * a newline with KVC_LINE_PAD bytes of memory from there on. Inline, as calls would cost more than
 * most of the work. */
#ifndef KVC_TRACES_SCAN_H
#define KVC_TRACES_SCAN_H

#include "traces/import/import.h"

#include <string.h>

#define KVC_SCAN_DEEPEST 16 /* of values under unknown keys */
#define KVC_SCAN_KEYS 24

struct kvc_scan_key {
    const char *text;
    size_t n;
};

static inline const char *kvc_scan_space(const char *p)
{
    while ((unsigned char)*p <= ' ' && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* Past c and the space around it, of which programs write none or one behind it. */
static inline bool kvc_scan_mark(const char **pp, char c)
{
    const char *p = *pp;
    if (*p != c && *(p = kvc_scan_space(p)) != c)
        return false;
    p++;
    p += *p == ' ';
    *pp = (unsigned char)*p <= ' ' ? kvc_scan_space(p) : p;
    return true;
}

/* How many digits begin at p, 8 at most, and their value. Reads 8 bytes. */
static inline unsigned kvc_scan_eight(const char *p, uint64_t *out)
{
    uint64_t w = 0;
    unsigned n;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&w, p, 8);
    w ^= 0x3030303030303030u;
    /* High bit of each byte that is no digit; exact up to the first such byte. */
    uint64_t other = ((w + 0x7676767676767676u) | w) & 0x8080808080808080u;
    n = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
    if (n == 0)
        return 0;
    w <<= (8 - n) * 8;
    w = w * 10 + (w >> 8); /* pairs in every other byte */
    w = ((w & 0x000000ff000000ffu) * 0x000f424000000064u +
         ((w >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >> 32;
#else
    for (n = 0; n < 8 && p[n] >= '0' && p[n] <= '9'; n++)
        w = w * 10 + (uint64_t)(p[n] - '0');
#endif
    *out = w;
    return n;
}

/* Value of the digits at *pp, at least one, no needless zero in front, below 2^64. */
static inline bool kvc_scan_digits(const char **pp, uint64_t *out)
{
    const char *p = *pp;
    uint64_t w;
    unsigned n = kvc_scan_eight(p, &w);
    if (n == 0 || (*p == '0' && n > 1))
        return false;
    p += n;
    if (n == 8) {
        for (; *p >= '0' && *p <= '9'; p++) {
            uint64_t d = (uint64_t)(*p - '0');
            if (w > (UINT64_MAX - d) / 10)
                return false;
            w = w * 10 + d;
        }
    }
    *out = w;
    *pp = p;
    return true;
}

/* Text of a string after its opening quote, without escapes and beyond-ASCII bytes. */
static inline bool kvc_scan_plain_string(const char **pp, struct kvc_scan_key *out)
{
    const char *p = *pp;
    while ((unsigned char)(*p - 0x20) < 0x5f && *p != '"' && *p != '\\')
        p++;
    if (*p != '"')
        return false;
    out->text = *pp;
    out->n = (size_t)(p - *pp);
    *pp = p + 1;
    return true;
}

/* A number that is not negative and has few enough digits for one exact division or product of
 * doubles, which then is the nearest double (Clinger 1990). */
static inline bool kvc_scan_decimal(const char **pp, double *out)
{
    static const double ten[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
                                  1e22 };
    const char *p = *pp, *first = p;
    uint64_t mantissa;
    int exponent = 0;
    if (!kvc_scan_digits(&p, &mantissa))
        return false;
    if (*p == '.') {
        const char *point = p++;
        while (*p >= '0' && *p <= '9' && p - first <= 16)
            mantissa = mantissa * 10 + (uint64_t)(*p++ - '0');
        exponent = (int)(point + 1 - p);
        if (!exponent)
            return false;
    }
    if (p - first > 16 || mantissa > (uint64_t)1 << 53)
        return false;
    if (*p == 'e' || *p == 'E') {
        bool minus = *++p == '-';
        int e = 0;
        if (*p == '-' || *p == '+')
            p++;
        const char *from = p;
        while (*p >= '0' && *p <= '9' && p - from < 3)
            e = e * 10 + (*p++ - '0');
        if (p == from)
            return false;
        exponent += minus ? -e : e;
    }
    if (exponent < -22 || exponent > 22)
        return false;
    *out = exponent < 0 ? (double)mantissa / ten[-exponent] : (double)mantissa * ten[exponent];
    *pp = p;
    return true;
}

static inline bool kvc_scan_count(const char **pp, uint32_t *out)
{
    uint64_t v;
    *out = 0;
    if (!kvc_scan_digits(pp, &v) || v > KVC_TOKENS_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}

static inline bool kvc_scan_null(const char **pp)
{
    if (memcmp(*pp, "null", 4) != 0)
        return false;
    *pp += 4;
    return true;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Adds one to the number that the low bytes of the word are the digits of; false when it has
 * another digit then. */
static inline bool kvc_scan_carry(uint64_t *word, size_t low)
{
    for (size_t shift = 8 * low; shift > 0;) {
        shift -= 8;
        if ((*word >> shift & 0xff) != '9') {
            *word += (uint64_t)1 << shift;
            return true;
        }
        *word -= (uint64_t)9 << shift;
    }
    return false;
}
#endif

/* Ids numbered at first appearance stand in a row along a chain: the text of the next is that of
 * this one, plus one. first is the text of the id v, *pp is behind the separator after it, gap
 * bytes long. Takes ids while that holds and the last digits, as many as fit a word with the
 * separator, are enough to tell. */
static inline size_t kvc_scan_counted_ids(const char **pp, const char *first, size_t gap,
                                          uint64_t v, uint64_t *ids)
{
    uint64_t *next = ids;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const char *p = *pp;
    size_t pitch = (size_t)(p - first), len = pitch - gap, low = len < 8 - gap ? len : 8 - gap;
    size_t high = len - low; /* leading digits, which stay, and those in the window, which count */
    if (high > 8)
        return 0;
    uint64_t window_mask = low + gap == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * (low + gap))) - 1;
    uint64_t high_mask = high == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * high)) - 1;
    uint64_t step = (uint64_t)1 << (8 * (low - 1)), lead, window, a, b;
    memcpy(&lead, first, 8);
    memcpy(&window, first + high, 8);
    window &= window_mask;
    for (const char *nine = p + pitch * (size_t)('9' - first[len - 1]);; p += pitch) {
        if (p != nine)
            window += step;
        else if (kvc_scan_carry(&window, low))
            nine += 10 * pitch;
        else
            break;
        memcpy(&b, p + high, 8);
        if ((b & window_mask) != window)
            break;
        if (high) {
            memcpy(&a, p, 8);
            if ((a ^ lead) & high_mask)
                break;
        }
        *next++ = ++v;
    }
    *pp = p;
#else
    (void)pp, (void)first, (void)gap, (void)v;
#endif
    return (size_t)(next - ids);
}

/* *ascending: each id is above the one before. An empty list and null set nothing. */
static inline bool kvc_scan_id_list(const char **pp, uint64_t *ids, size_t *n_ids, bool *ascending)
{
    const char *p = *pp;
    size_t n = 0;
    uint64_t last = 0;
    bool up = true;
    if (*p == 'n')
        return kvc_scan_null(pp);
    if (*p != '[')
        return false;
    p = kvc_scan_space(p + 1);
    if (*p == ']') {
        *pp = p + 1;
        return true;
    }
    for (;;) {
        const char *first = p;
        if (!kvc_scan_digits(&p, &ids[n]))
            return false;
        up &= (ids[n] > last) | (n == 0);
        n++;
        if (*p == ',') {
            size_t gap = p[1] == ' ' ? 2 : 1;
            p += gap;
            n += kvc_scan_counted_ids(&p, first, gap, ids[n - 1], ids + n);
        } else if (*(p = kvc_scan_space(p)) == ']') {
            break;
        } else if (*p++ != ',') {
            return false;
        }
        last = ids[n - 1];
        p = kvc_scan_space(p);
    }
    *n_ids = n;
    *ascending = up;
    *pp = p + 1;
    return true;
}

static inline bool kvc_scan_new_key(struct kvc_scan_key *keys, unsigned *n,
                                    const struct kvc_scan_key *k)
{
    if (*n == KVC_SCAN_KEYS)
        return false;
    for (unsigned i = 0; i < *n; i++)
        if (keys[i].n == k->n && memcmp(keys[i].text, k->text, k->n) == 0)
            return false;
    keys[(*n)++] = *k;
    return true;
}

static inline bool kvc_scan_pass_value(const char **pp, unsigned depth);

static inline bool kvc_scan_pass_number(const char **pp)
{
    double ignored;
    *pp += **pp == '-';
    return kvc_scan_decimal(pp, &ignored);
}

static inline bool kvc_scan_pass_object(const char **pp, unsigned depth)
{
    struct kvc_scan_key keys[KVC_SCAN_KEYS];
    unsigned n = 0;
    const char *p = kvc_scan_space(*pp + 1);
    for (;;) {
        struct kvc_scan_key k;
        if (*p == '}' && n == 0)
            break;
        if (*p++ != '"' || !kvc_scan_plain_string(&p, &k) || !kvc_scan_new_key(keys, &n, &k))
            return false;
        p = kvc_scan_space(p);
        if (*p++ != ':' || !kvc_scan_pass_value(&p, depth + 1))
            return false;
        if (*p == '}')
            break;
        if (*p != ',')
            return false;
        p = kvc_scan_space(p + 1);
    }
    *pp = p + 1;
    return true;
}

static inline bool kvc_scan_pass_array(const char **pp, unsigned depth)
{
    const char *p = kvc_scan_space(*pp + 1);
    bool first = true;
    for (; !(*p == ']' && first); first = false) {
        if (!kvc_scan_pass_value(&p, depth + 1))
            return false;
        if (*p == ']')
            break;
        if (*p != ',')
            return false;
        p = kvc_scan_space(p + 1);
    }
    *pp = p + 1;
    return true;
}

/* Passes over one value under an unknown key and the space around it, proving it right. */
static inline bool kvc_scan_pass_value(const char **pp, unsigned depth)
{
    const char *p = kvc_scan_space(*pp);
    struct kvc_scan_key s;
    bool ok = depth <= KVC_SCAN_DEEPEST;
    switch (*p) {
    case '"':
        p++;
        ok = kvc_scan_plain_string(&p, &s);
        break;
    case '{':
        ok = ok && kvc_scan_pass_object(&p, depth);
        break;
    case '[':
        ok = ok && kvc_scan_pass_array(&p, depth);
        break;
    case 't':
        ok = memcmp(p, "true", 4) == 0;
        p += 4;
        break;
    case 'f':
        ok = memcmp(p, "false", 5) == 0;
        p += 5;
        break;
    case 'n':
        ok = kvc_scan_null(&p);
        break;
    default:
        ok = kvc_scan_pass_number(&p);
    }
    if (ok)
        *pp = kvc_scan_space(p);
    return ok;
}

#endif
