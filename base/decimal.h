/* SPDX-License-Identifier: Apache-2.0
 * Decimal numbers in text, kept exact: digits * 10^exp10. Numbers of JSON and quantities with
 * units both start here, so that neither passes through a double. */
#ifndef KVC_BASE_DECIMAL_H
#define KVC_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kvc_decimal {
    uint64_t digits; /* no trailing decimal zeros unless 0 */
    int32_t exp10;
    bool negative;
    bool too_precise; /* more significant digits than 64 bits hold; digits is then useless */
};

/* Reads "-12.50e3" at text (n bytes; JSON's grammar, leading zeros refused) and returns the bytes
 * read, 0 when there is no number. */
size_t kvc_decimal_parse(const char *text, size_t n, struct kvc_decimal *out);
/* |value| * unit (below 2^60) as an integer. Returns false beyond 64 bits; *exact tells whether it
 * was one (else it is rounded to nearest). The sign is the caller's business. */
bool kvc_decimal_scale(const struct kvc_decimal *d, uint64_t unit, uint64_t *out, bool *exact);
/* Writes v, not terminated; returns how many digits it has. */
#define KVC_U64_DIGITS 20
size_t kvc_u64_digits(uint64_t v, char out[KVC_U64_DIGITS]);

#endif
