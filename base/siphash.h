/* SPDX-License-Identifier: Apache-2.0
 * SipHash (Aumasson and Bernstein 2012), a keyed hash of byte strings: who doesn't know the key
 * can't make two texts collide nor test a guess. SipHash-1-3 here: the variant hash tables use
 * against hostile input. Inline, as most of what is hashed is some dozens of bytes long. */
#ifndef KVC_BASE_SIPHASH_H
#define KVC_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kvc_sip {
    uint64_t v0, v1, v2, v3;
    uint64_t tail; /* bytes that don't fill a word yet, lowest first */
    uint64_t n;    /* bytes taken in */
};

static inline uint64_t kvc_sip_rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t kvc_sip_word(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

static inline void kvc_sip_round(struct kvc_sip *s)
{
    s->v0 += s->v1;
    s->v1 = kvc_sip_rotate(s->v1, 13) ^ s->v0;
    s->v0 = kvc_sip_rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = kvc_sip_rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = kvc_sip_rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = kvc_sip_rotate(s->v1, 17) ^ s->v2;
    s->v2 = kvc_sip_rotate(s->v2, 32);
}

static inline void kvc_sip_start(struct kvc_sip *s, uint64_t k0, uint64_t k1)
{
    *s = (struct kvc_sip){ k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                           k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u, 0, 0 };
}

static inline void kvc_sip_absorb(struct kvc_sip *s, uint64_t word)
{
    s->v3 ^= word;
    kvc_sip_round(s);
    s->v0 ^= word;
}

static inline void kvc_sip_bytes(struct kvc_sip *s, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    unsigned held = (unsigned)(s->n & 7) * 8;
    struct kvc_sip v = *s; /* in registers */
    v.n += n;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t w = kvc_sip_word(p);
        if (!held) {
            kvc_sip_absorb(&v, w);
        } else {
            kvc_sip_absorb(&v, v.tail | w << held);
            v.tail = w >> (64 - held);
        }
    }
    for (; n; n--, p++) {
        v.tail |= (uint64_t)*p << held;
        held += 8;
        if (held == 64) {
            kvc_sip_absorb(&v, v.tail);
            v.tail = 0;
            held = 0;
        }
    }
    *s = v;
}

static inline uint64_t kvc_sip_end(const struct kvc_sip *s)
{
    struct kvc_sip v = *s;
    kvc_sip_absorb(&v, v.tail | v.n << 56);
    v.v2 ^= 0xff;
    kvc_sip_round(&v);
    kvc_sip_round(&v);
    kvc_sip_round(&v);
    return v.v0 ^ v.v1 ^ v.v2 ^ v.v3;
}

#endif
