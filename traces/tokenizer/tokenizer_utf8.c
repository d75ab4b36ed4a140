/* SPDX-License-Identifier: Apache-2.0
 * Characters in and out of bytes. */
#include "traces/tokenizer/tokenizer_internal.h"

#include <string.h>

uint32_t kvc_utf8_get(const char *s, size_t *len)
{
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) {
        *len = 1;
        return u[0];
    }
    if (u[0] < 0xe0) {
        *len = 2;
        return (uint32_t)(u[0] & 0x1f) << 6 | (u[1] & 0x3f);
    }
    if (u[0] < 0xf0) {
        *len = 3;
        return (uint32_t)(u[0] & 0xf) << 12 | (uint32_t)(u[1] & 0x3f) << 6 | (u[2] & 0x3f);
    }
    *len = 4;
    return (uint32_t)(u[0] & 7) << 18 | (uint32_t)(u[1] & 0x3f) << 12 |
           (uint32_t)(u[2] & 0x3f) << 6 | (u[3] & 0x3f);
}

size_t kvc_utf8_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Bytes of the longest beginning of a character at u (of n > 0 bytes), at least 1; *whole tells
 * whether it is one. The ranges of second bytes are table 3-7 of the Unicode standard. */
static size_t take(const unsigned char *u, size_t n, bool *whole)
{
    unsigned char low = 0x80, high = 0xbf;
    size_t need = u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : u[0] < 0xf5 ? 4 : 0;
    *whole = u[0] < 0x80;
    if (need == 0)
        return 1;
    if (u[0] == 0xe0)
        low = 0xa0;
    else if (u[0] == 0xed)
        high = 0x9f;
    else if (u[0] == 0xf0)
        low = 0x90;
    else if (u[0] == 0xf4)
        high = 0x8f;
    size_t i = 1;
    for (; i < need && i < n && u[i] >= low && u[i] <= high; i++) {
        low = 0x80;
        high = 0xbf;
    }
    *whole = i == need;
    return i;
}

static size_t skip_ascii(const char *s, size_t n, size_t i)
{
    uint64_t word;
    for (; n - i >= 8; i += 8) {
        memcpy(&word, s + i, 8);
        if (word & 0x8080808080808080u)
            break;
    }
    while (i < n && (unsigned char)s[i] < 0x80)
        i++;
    return i;
}

bool kvc_utf8_valid(const char *s, size_t n)
{
    bool whole = true;
    for (size_t i = skip_ascii(s, n, 0); i < n; i = skip_ascii(s, n, i)) {
        i += take((const unsigned char *)s + i, n - i, &whole);
        if (!whole)
            return false;
    }
    return true;
}

void kvc_utf8_mend(struct kvc_text *out, const char *s, size_t n, size_t *sound)
{
    size_t from = 0;
    bool open = false;
    for (size_t i = skip_ascii(s, n, 0); i < n; i = skip_ascii(s, n, i)) {
        bool whole;
        size_t len = take((const unsigned char *)s + i, n - i, &whole);
        if (!whole) {
            kvc_text_addn(out, s + from, i - from);
            *sound = out->len;
            kvc_text_addn(out, "\xef\xbf\xbd", 3);
            from = i + len;
            /* at the end of the text, a lead byte may wait for the rest of its character */
            open = from == n && (unsigned char)s[i] >= 0xc2 && (unsigned char)s[i] < 0xf5;
        }
        i += len;
    }
    kvc_text_addn(out, s + from, n - from);
    if (!open)
        *sound = out->len;
}

bool kvc_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}
