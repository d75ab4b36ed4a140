/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"

#include "base/rng.h"

#include <stdio.h>
#include <string.h>

void kvc_digest_init(struct kvc_digest *d)
{
    d->a = 0x6b76636173740001u;
    d->b = 0;
}

void kvc_digest_add(struct kvc_digest *d, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    d->b += n;
    while (n) {
        uint64_t word = 0;
        size_t take = n < 8 ? n : 8;
        if (take == 8) {
            memcpy(&word, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
            word = __builtin_bswap64(word);
#endif
        } else {
            for (size_t i = 0; i < take; i++)
                word |= (uint64_t)p[i] << (8 * i);
        }
        d->a = kvc_mix64(d->a ^ word) + 0x9e3779b97f4a7c15u;
        p += take;
        n -= take;
    }
}

void kvc_digest_hex(const struct kvc_digest *d, char out[24])
{
    snprintf(out, 24, "%016llx", (unsigned long long)kvc_mix64(d->a ^ kvc_mix64(d->b)));
}
