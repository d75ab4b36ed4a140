/* SPDX-License-Identifier: Apache-2.0
 * Block ids of texts against a twin that goes byte by byte and compares whole prefixes: two ids are
 * equal exactly where all before the block's end is. And SipHash against a plain one and
 * CPython's. */
#include "base/alloc.h"
#include "base/rng.h"
#include "traces/import/intern.h"
#include "traces/text/text_chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* SipHash-1-3 a second time, straight from the paper: bytes to words, one round a word, three at
 * the end. */
static uint64_t paper(const unsigned char *m, size_t n, uint64_t k0, uint64_t k1)
{
    uint64_t v[4] = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                      k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u };
    for (size_t w = 0; w <= n / 8 + 3; w++) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8; i++) {
            size_t at = w * 8 + i;
            word |= (uint64_t)(at < n ? m[at] : i == 7 && w == n / 8 ? n & 0xff : 0) << (8 * i);
        }
        if (w > n / 8)
            word = 0;
        if (w == n / 8 + 1)
            v[2] ^= 0xff;
        v[3] ^= word;
        v[0] += v[1], v[1] = v[1] << 13 | v[1] >> 51, v[1] ^= v[0], v[0] = v[0] << 32 | v[0] >> 32;
        v[2] += v[3], v[3] = v[3] << 16 | v[3] >> 48, v[3] ^= v[2];
        v[0] += v[3], v[3] = v[3] << 21 | v[3] >> 43, v[3] ^= v[0];
        v[2] += v[1], v[1] = v[1] << 17 | v[1] >> 47, v[1] ^= v[2], v[2] = v[2] << 32 | v[2] >> 32;
        v[0] ^= word;
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t of_text(const char *text)
{
    struct kvc_sip s;
    kvc_sip_start(&s, 0, 0);
    kvc_sip_bytes(&s, text, strlen(text));
    return kvc_sip_end(&s);
}

static void siphash_is_that_of_the_paper(void **state)
{
    (void)state;
    /* PYTHONHASHSEED=0 python3.11 -c 'print(hex(hash(b"a") % 2**64))', and so on */
    assert_true(of_text("a") == 0x407448d2b89b1813);
    assert_true(of_text("abcdefgh") == 0x3f7b849c0b8e35ea);
    assert_true(of_text("hello world, this is kvcast") == 0x13fe26ba60d8cd46);
    unsigned char m[200];
    uint64_t rng = 5;
    for (size_t i = 0; i < sizeof(m); i++)
        m[i] = (unsigned char)kvc_rng_next(&rng);
    for (size_t n = 0; n <= sizeof(m); n++) {
        struct kvc_sip s;
        kvc_sip_start(&s, 0x0706050403020100, 0x0f0e0d0c0b0a0908);
        for (size_t at = 0; at < n;) {
            size_t some = (size_t)kvc_rng_below(&rng, n - at) + 1;
            kvc_sip_bytes(&s, m + at, some);
            at += some;
        }
        assert_true(kvc_sip_end(&s) == paper(m, n, 0x0706050403020100, 0x0f0e0d0c0b0a0908));
    }
}

/* ---- the twin ---- */

struct item { /* a run of text, or a mark */
    const char *text;
    size_t n;
    uint64_t tag, value, units;
};

struct twin {
    char *prefix; /* all so far, marks written out */
    size_t n, cap;
    uint64_t at, end, block;
    struct kvc_intern *names;
    uint32_t *number;
    size_t blocks, blocks_cap;
};

static void note(struct twin *t, const void *bytes, size_t n)
{
    assert_true(kvc_grow((void **)&t->prefix, &t->cap, t->n + n, 1));
    memcpy(t->prefix + t->n, bytes, n);
    t->n += n;
}

static void close_blocks(struct twin *t)
{
    for (; t->at >= t->end; t->end += t->block) {
        size_t n = t->n;
        note(t, &t->blocks, sizeof(t->blocks));
        assert_true(kvc_grow((void **)&t->number, &t->blocks_cap, t->blocks + 1, 4));
        assert_true(kvc_intern_get(t->names, t->prefix, t->n, &t->number[t->blocks]));
        t->n = n;
        t->blocks++;
    }
}

static void twin_item(struct twin *t, const struct item *i, uint64_t weight)
{
    char mark[64];
    if (i->text) {
        for (size_t k = 0; k < i->n; k++) {
            note(t, "t", 1);
            note(t, i->text + k, 1);
            t->at += weight;
            close_blocks(t);
        }
        return;
    }
    int n = snprintf(mark, sizeof(mark), "m%llu,%llu.", (unsigned long long)i->tag,
                     (unsigned long long)i->value);
    note(t, mark, (size_t)n);
    t->at += i->units;
    close_blocks(t);
}

/* Prompts that share beginnings: each takes some items of an earlier one. */
#define ITEMS 12
#define PROMPTS 60

static void make_prompts(struct item p[PROMPTS][ITEMS], uint64_t *rng)
{
    static const char words[] = "the quick brown fox jumps over the lazy dog \xc3\xa9\xe2\x82\xac"
                                "and again the quick brown fox jumps";
    for (size_t i = 0; i < PROMPTS; i++) {
        size_t from = (size_t)kvc_rng_below(rng, i + 1), shared = (size_t)kvc_rng_below(rng, ITEMS);
        for (size_t k = 0; k < ITEMS; k++) {
            if (k < shared && from < i) {
                p[i][k] = p[from][k];
                continue;
            }
            size_t at = (size_t)kvc_rng_below(rng, 40);
            uint64_t mark = kvc_rng_below(rng, 8); /* what a mark weighs hangs on what it is */
            bool text = kvc_rng_below(rng, 4) != 0;
            p[i][k] = text ? (struct item){ words + at, (size_t)kvc_rng_below(rng, 40), 0, 0, 0 }
                           : (struct item){ NULL, 0, mark & 1, mark >> 1, mark * 5 << 30 };
        }
    }
}

static void chain_item(struct kvc_text_chain *c, const struct item *i, uint64_t *rng)
{
    if (!i->text) {
        kvc_chain_mark(c, i->tag, i->value, i->units);
        return;
    }
    for (size_t at = 0; at < i->n;) { /* in any portions */
        size_t some = (size_t)kvc_rng_below(rng, i->n - at) + 1;
        kvc_chain_bytes(c, i->text + at, some);
        at += some;
    }
}

static void check_prompts(uint64_t seed)
{
    static const double rates[] = { 0.4, 1, 2.5, 4, 4.3, 17 };
    struct item p[PROMPTS][ITEMS];
    uint64_t rng = seed;
    struct kvc_intern by_text = { 0 }, by_id = { 0 };
    struct kvc_text_chain c = { 0 };
    double rate = rates[kvc_rng_below(&rng, 6)];
    struct kvc_text_cut cut = { kvc_rng_next(&rng), kvc_rng_next(&rng), kvc_text_byte_weight(rate),
                                (uint32_t)kvc_rng_below(&rng, 9) + 1 };
    make_prompts(p, &rng);
    for (size_t i = 0; i < PROMPTS; i++) {
        struct twin t = { .block = cut.block_tokens * KVC_TOKEN_UNIT, .names = &by_text };
        t.end = t.block;
        kvc_chain_start(&c, &cut);
        for (size_t k = 0; k < ITEMS; k++) {
            twin_item(&t, &p[i][k], cut.byte_weight);
            chain_item(&c, &p[i][k], &rng);
        }
        assert_false(c.failed);
        assert_true(c.at == t.at);
        assert_int_equal(c.n_ids, t.blocks);
        for (size_t b = 0; b < t.blocks; b++) {
            uint32_t number;
            assert_true(kvc_intern_get(&by_id, (const char *)&c.ids[b], 8, &number));
            if (number != t.number[b])
                fail_msg("seed %llu: prompt %zu block %zu", (unsigned long long)seed, i, b);
        }
        kvc_free(t.prefix);
        kvc_free(t.number);
    }
    assert_true(by_text.n > PROMPTS && by_text.n == by_id.n);
    kvc_intern_clear(&by_text);
    kvc_intern_clear(&by_id);
    kvc_free(c.ids);
}

static void ids_are_those_of_whole_prefixes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++)
        check_prompts(seed);
}

/* Asking for the state changes nothing, and a mark is no text. */
static void states_and_marks(void **state)
{
    (void)state;
    struct kvc_text_cut cut = { 1, 2, KVC_TOKEN_UNIT, 4 };
    struct kvc_text_chain a = { 0 }, b = { 0 };
    kvc_chain_start(&a, &cut);
    kvc_chain_start(&b, &cut);
    assert_true(kvc_chain_state(&a) == kvc_chain_state(&b));
    kvc_chain_bytes(&a, "abcdef", 6);
    kvc_chain_bytes(&b, "abc", 3);
    assert_true(kvc_chain_state(&a) != kvc_chain_state(&b));
    kvc_chain_bytes(&b, "def", 3);
    assert_true(kvc_chain_state(&a) == kvc_chain_state(&b));
    kvc_chain_mark(&a, 1, 1, 0);
    kvc_chain_mark(&b, 1, 2, 0);
    assert_true(kvc_chain_state(&a) != kvc_chain_state(&b));
    assert_true(kvc_chain_tail(&cut, 7, 1) != kvc_chain_tail(&cut, 7, 2));
    kvc_free(a.ids);
    kvc_free(b.ids);
}

static struct kvc_text_chain chain_with_memory(uint64_t allocations) /* 0: all it wants */
{
    struct kvc_text_cut cut = { 1, 2, KVC_TOKEN_UNIT, 1 };
    struct kvc_text_chain c = { 0 };
    kvc_chain_start(&c, &cut);
    kvc_alloc_fail_after(allocations);
    for (int i = 0; i < 100; i++)
        kvc_chain_bytes(&c, "abcdefgh", 8);
    kvc_chain_mark(&c, 1, 1, 1000 * KVC_TOKEN_UNIT);
    kvc_alloc_fail_after(0);
    return c;
}

/* It either fails or has the ids it always has. */
static void memory_runs_out(void **state)
{
    (void)state;
    struct kvc_text_chain whole = chain_with_memory(0);
    unsigned failed = 0;
    assert_false(whole.failed);
    assert_int_equal(whole.n_ids, 1800);
    for (uint64_t k = 1; k < 6; k++) {
        struct kvc_text_chain c = chain_with_memory(k);
        failed += c.failed;
        if (!c.failed) {
            assert_int_equal(c.n_ids, whole.n_ids);
            assert_memory_equal(c.ids, whole.ids, c.n_ids * sizeof(*c.ids));
        }
        kvc_free(c.ids);
    }
    assert_true(failed > 0);
    kvc_free(whole.ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_is_that_of_the_paper),
        cmocka_unit_test(ids_are_those_of_whole_prefixes),
        cmocka_unit_test(states_and_marks),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
