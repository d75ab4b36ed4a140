/* SPDX-License-Identifier: Apache-2.0
 * MT19937 (Matsumoto and Nishimura, 1998) as NumPy's RandomState seeds it, and its bounded draws by
 * mask and rejection. */
#include "studies/engine/client_lengths.h"

#define WORDS 624
#define AHEAD 397

struct twister {
    uint32_t word[WORDS];
    size_t at;
};

static void seed(struct twister *t, uint32_t x)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        t->word[i] = x;
        x = 1812433253u * (x ^ x >> 30) + i + 1;
    }
    t->at = WORDS;
}

static void twist(struct twister *t)
{
    for (size_t i = 0; i < WORDS; i++) {
        uint32_t y = (t->word[i] & 0x80000000u) | (t->word[(i + 1) % WORDS] & 0x7fffffffu);
        t->word[i] = t->word[(i + AHEAD) % WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->at = 0;
}

static uint32_t draw(struct twister *t)
{
    if (t->at == WORDS)
        twist(t);
    uint32_t y = t->word[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Uniform in low..high. */
static uint32_t between(struct twister *t, uint32_t low, uint32_t high)
{
    uint32_t mask = high - low, v;

    for (uint32_t shift = 1; shift < 32; shift *= 2)
        mask |= mask >> shift;
    if (mask == 0)
        return low;
    do
        v = draw(t) & mask;
    while (v > high - low);
    return low + v;
}

static uint32_t length(struct twister *t, uint32_t longest, double shortest)
{
    uint32_t n = between(t, (uint32_t)(longest * shortest), longest);

    return n ? n : 1;
}

void kvc_client_lengths(struct kvc_request_length *out, uint32_t n, uint32_t input,
                        uint32_t output, double shortest)
{
    struct twister t;

    seed(&t, 0);
    for (uint32_t i = 0; i < n; i++)
        out[i].input = length(&t, input, shortest);
    for (uint32_t i = 0; i < n; i++)
        out[i].output = length(&t, output, shortest);
}
