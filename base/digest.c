/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"

#include "base/rng.h"
#include "base/siphash.h"

#include <stdio.h>

#define LONG ((size_t)4096) /* bytes from which on lanes pay */

void kvc_digest_init(struct kvc_digest *d)
{
    d->a = 0x6b76636173740001u;
    d->b = 0;
}

static inline uint64_t chained(uint64_t chain, uint64_t word)
{
    return kvc_mix64(chain ^ word) + 0x9e3779b97f4a7c15u;
}

/* One chain would wait for its multiplications: four of them, each of every fourth word, become
 * words of the one. Returns the bytes taken. */
static size_t add_lanes(struct kvc_digest *d, const unsigned char *p, size_t n)
{
    uint64_t a = d->a, b = a + 1, c = a + 2, e = a + 3;
    size_t at = 0;
    for (; n - at >= 32; at += 32) {
        a = chained(a, kvc_sip_word(p + at));
        b = chained(b, kvc_sip_word(p + at + 8));
        c = chained(c, kvc_sip_word(p + at + 16));
        e = chained(e, kvc_sip_word(p + at + 24));
    }
    d->a = chained(chained(chained(chained(d->a, a), b), c), e);
    return at;
}

void kvc_digest_add(struct kvc_digest *d, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t at = n >= LONG ? add_lanes(d, p, n) : 0;
    d->b += n;
    for (; n - at >= 8; at += 8)
        d->a = chained(d->a, kvc_sip_word(p + at));
    if (at < n) {
        uint64_t word = 0;
        for (size_t i = 0; at + i < n; i++)
            word |= (uint64_t)p[at + i] << (8 * i);
        d->a = chained(d->a, word);
    }
}

void kvc_digest_hex(const struct kvc_digest *d, char out[24])
{
    snprintf(out, 24, "%016llx", (unsigned long long)kvc_mix64(d->a ^ kvc_mix64(d->b)));
}
