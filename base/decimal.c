/* SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"

#include <string.h>

__extension__ typedef unsigned __int128 u128;

#define EXP_LIMIT 100000

static bool is_digit(const char *s, size_t n, size_t i)
{
    return i < n && s[i] >= '0' && s[i] <= '9';
}

/* Zeros wait in *zeros until a later digit shows that they are not trailing. */
static void add_digit(struct kvc_decimal *d, unsigned digit, uint64_t *zeros)
{
    if (!digit) {
        ++*zeros;
        return;
    }
    for (uint64_t k = 0; k <= *zeros && !d->too_precise; k++) {
        unsigned add = k == *zeros ? digit : 0;
        d->too_precise = d->digits > (UINT64_MAX - add) / 10;
        if (!d->too_precise)
            d->digits = d->digits * 10 + add;
    }
    *zeros = 0;
}

static int32_t clamp_exp(int64_t e)
{
    return (int32_t)(e > EXP_LIMIT ? EXP_LIMIT : e < -EXP_LIMIT ? -EXP_LIMIT : e);
}

/* Reads "e+12" at i; returns the index behind it, or i when there is none. */
static size_t parse_exponent(const char *s, size_t n, size_t i, int64_t *exp10)
{
    if (i >= n || (s[i] != 'e' && s[i] != 'E'))
        return i;
    size_t k = i + 1;
    bool negative = k < n && s[k] == '-';
    if (k < n && (s[k] == '-' || s[k] == '+'))
        k++;
    if (!is_digit(s, n, k))
        return i;
    int64_t e = 0;
    for (; is_digit(s, n, k); k++)
        e = e < EXP_LIMIT ? e * 10 + (s[k] - '0') : e;
    *exp10 += negative ? -e : e;
    return k;
}

size_t kvc_decimal_parse(const char *s, size_t n, struct kvc_decimal *out)
{
    struct kvc_decimal d = {0};
    size_t i = 0;
    uint64_t zeros = 0;
    int64_t exp10 = 0;
    d.negative = n && s[0] == '-';
    i += d.negative;
    if (!is_digit(s, n, i) || (s[i] == '0' && is_digit(s, n, i + 1)))
        return 0;
    for (; is_digit(s, n, i); i++)
        add_digit(&d, (unsigned)(s[i] - '0'), &zeros);
    if (i < n && s[i] == '.' && is_digit(s, n, i + 1)) {
        for (i++; is_digit(s, n, i); i++) {
            add_digit(&d, (unsigned)(s[i] - '0'), &zeros);
            exp10--;
        }
    }
    i = parse_exponent(s, n, i, &exp10);
    exp10 += (int64_t)zeros;
    d.exp10 = d.digits ? clamp_exp(exp10) : 0;
    *out = d;
    return i;
}

bool kvc_decimal_scale(const struct kvc_decimal *d, uint64_t unit, uint64_t *out, bool *exact)
{
    if (d->too_precise || unit >> 60)
        return false;
    u128 v = (u128)d->digits * unit;
    bool whole = true;
    for (int32_t e = d->exp10; e > 0 && v; e--) {
        if (v > UINT64_MAX)
            return false;
        v *= 10;
    }
    if (d->exp10 < 0) {
        u128 div = 1;
        /* v < 2^124, so neither side overflows; beyond 2 v the quotient rounds to 0 anyway */
        for (int32_t e = d->exp10; e < 0 && div <= v * 2; e++)
            div *= 10;
        u128 rest = v % div;
        whole = rest == 0;
        v = v / div + (rest * 2 >= div && rest ? 1 : 0);
    }
    if (v > UINT64_MAX)
        return false;
    *out = (uint64_t)v;
    *exact = whole;
    return true;
}

size_t kvc_u64_digits(uint64_t v, char out[KVC_U64_DIGITS])
{
    char digits[KVC_U64_DIGITS];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    memcpy(out, digits + at, sizeof(digits) - at);
    return sizeof(digits) - at;
}
