/* SPDX-License-Identifier: Apache-2.0
 * BPE against a slow twin that does what the rule says: join the leftmost pair of lowest rank,
 * again and again. Random vocabularies, short and long words; and NFC by its laws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <string.h>

#define MAX_TOKENS 120
#define MAX_TEXT 4000

static const char *const letters[] = {"a", "b", "c", "\xc3\xa9", "\xe2\x96\x81", "\xe4\xb8\x80"};

struct world {
    char token[MAX_TOKENS][64];
    unsigned n_tokens;
    unsigned left[MAX_TOKENS], right[MAX_TOKENS], whole[MAX_TOKENS];
    unsigned n_merges;
    bool unk, fuse, fallback;
};

static unsigned token_of(const struct world *w, const char *s, size_t n)
{
    for (unsigned i = 0; i < w->n_tokens; i++) {
        if (strlen(w->token[i]) == n && !memcmp(w->token[i], s, n))
            return i;
    }
    return UINT32_MAX;
}

/* Token 0 is the unknown one; the last letters may have no token, only bytes, or some of them. */
static void make_world(struct world *w, uint64_t *rng)
{
    memset(w, 0, sizeof(*w));
    snprintf(w->token[w->n_tokens++], 64, "<unk>");
    for (unsigned i = 0; i < 4 + kvc_rng_below(rng, 3); i++)
        snprintf(w->token[w->n_tokens++], 64, "%s", letters[i]);
    w->unk = kvc_rng_below(rng, 3);
    w->fuse = kvc_rng_below(rng, 2);
    w->fallback = kvc_rng_below(rng, 2);
    static const char *const bytes[] = {"<0xE2>", "<0x96>", "<0x81>", "<0xE4>", "<0xB8>", "<0x80>"};
    for (unsigned i = 0; i < kvc_rng_below(rng, 7); i++)
        snprintf(w->token[w->n_tokens++], 64, "%s", bytes[i]);
    unsigned want = (unsigned)kvc_rng_below(rng, 60);
    for (unsigned tries = 0; tries < 400 && w->n_merges < want; tries++) {
        unsigned a = 1 + (unsigned)kvc_rng_below(rng, w->n_tokens - 1);
        unsigned b = 1 + (unsigned)kvc_rng_below(rng, w->n_tokens - 1);
        char whole[128];
        size_t n = (size_t)snprintf(whole, sizeof(whole), "%s%s", w->token[a], w->token[b]);
        bool known = n > 20 || w->token[a][0] == '<' || w->token[b][0] == '<';
        for (unsigned i = 0; i < w->n_merges; i++)
            known = known || (w->left[i] == a && w->right[i] == b);
        if (known || (w->n_tokens == MAX_TOKENS && token_of(w, whole, n) == UINT32_MAX))
            continue;
        unsigned t = token_of(w, whole, n);
        if (t == UINT32_MAX)
            snprintf(w->token[t = w->n_tokens++], 64, "%.60s", whole);
        w->left[w->n_merges] = a;
        w->right[w->n_merges] = b;
        w->whole[w->n_merges++] = t;
    }
}

static void to_json(const struct world *w, struct kvc_text *out)
{
    kvc_text_addf(out, "{\"model\":{\"type\":\"BPE\",\"unk_token\":%s,\"fuse_unk\":%s,"
                       "\"byte_fallback\":%s,\"vocab\":{", w->unk ? "\"<unk>\"" : "null",
                  w->fuse ? "true" : "false", w->fallback ? "true" : "false");
    for (unsigned i = 0; i < w->n_tokens; i++)
        kvc_text_addf(out, "%s\"%s\":%u", i ? "," : "", w->token[i], i);
    kvc_text_add(out, "},\"merges\":[");
    for (unsigned i = 0; i < w->n_merges; i++)
        kvc_text_addf(out, i % 2 ? "%s\"%s %s\"" : "%s[\"%s\",\"%s\"]", i ? "," : "",
                      w->token[w->left[i]], w->token[w->right[i]]);
    kvc_text_add(out, "]}}");
}

static size_t twin_symbols(const struct world *w, const char *s, size_t n, unsigned *out)
{
    size_t k = 0, waiting = 0, len;
    for (size_t i = 0; i < n; i += len) {
        kvc_utf8_get(s + i, &len);
        unsigned t = token_of(w, s + i, len), byte[4];
        bool all = w->fallback;
        for (size_t j = 0; j < len && t == UINT32_MAX; j++) {
            char name[8];
            snprintf(name, sizeof(name), "<0x%02X>", (unsigned)(unsigned char)s[i + j]);
            byte[j] = token_of(w, name, 6);
            all = all && byte[j] != UINT32_MAX;
        }
        if (t != UINT32_MAX) {
            for (; waiting; waiting--)
                out[k++] = 0;
            out[k++] = t;
        } else if (all) {
            for (size_t j = 0; j < len; j++)
                out[k++] = byte[j];
        } else if (w->unk && waiting && w->fuse) {
            waiting = 1;
        } else if (w->unk) {
            for (; waiting; waiting--)
                out[k++] = 0;
            waiting = 1;
        }
    }
    for (; waiting; waiting--)
        out[k++] = 0;
    return k;
}

static size_t twin(const struct world *w, const char *s, size_t n, unsigned *v)
{
    size_t k = twin_symbols(w, s, n, v);
    for (;;) {
        unsigned best = w->n_merges;
        size_t at = 0;
        for (size_t i = 0; i + 1 < k; i++) {
            for (unsigned m = 0; m < best; m++) {
                if (w->left[m] == v[i] && w->right[m] == v[i + 1]) {
                    best = m;
                    at = i;
                }
            }
        }
        if (best == w->n_merges)
            return k;
        v[at] = w->whole[best];
        memmove(v + at + 1, v + at + 2, (k - at - 2) * sizeof(*v));
        k--;
    }
}

static void compare(const struct world *w, struct kvc_encoder *e, const char *s, size_t n,
                    uint64_t seed)
{
    static unsigned want[MAX_TEXT];
    struct kvc_token_ids ids = {0}, part = {0};
    size_t stable, k = twin(w, s, n, want);
    assert_int_equal(kvc_encode(e, s, n, &ids, NULL, NULL), KVC_OK);
    if (ids.n != k || (k && memcmp(ids.v, want, k * sizeof(*want)) != 0))
        fail_msg("seed %llu: \"%.*s\"", (unsigned long long)seed, (int)n, s);
    size_t cut = n / 2;
    while (cut && (s[cut] & 0xc0) == 0x80)
        cut--;
    assert_int_equal(kvc_encode(e, s, cut, &part, &stable, NULL), KVC_OK);
    assert_true(stable <= part.n && stable <= ids.n);
    assert_true(!stable || !memcmp(part.v, ids.v, stable * sizeof(*ids.v)));
    kvc_free(ids.v);
    kvc_free(part.v);
}

static void bpe_is_its_twin(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "bpe");
        struct world w;
        struct kvc_text json = {0};
        struct kvc_tokenizer *tok = NULL;
        struct kvc_encoder *e = NULL;
        struct kvc_error err = {0};
        make_world(&w, &rng);
        to_json(&w, &json);
        if (kvc_tokenizer_parse(&tok, json.buf, json.len, "t", &err) != KVC_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
        assert_int_equal(kvc_encoder_create(&e, tok, NULL), KVC_OK);
        for (unsigned i = 0; i < 12; i++) {
            char text[MAX_TEXT];
            size_t n = 0, most = i < 11 ? 1 + kvc_rng_below(&rng, 120) : 900;
            while (n < most) {
                const char *c = letters[kvc_rng_below(&rng, 6)];
                memcpy(text + n, c, strlen(c));
                n += strlen(c);
            }
            compare(&w, e, text, n, seed);
        }
        kvc_encoder_destroy(e);
        kvc_tokenizer_close(tok);
        kvc_text_clear(&json);
    }
}

/* A word of a million bytes joins in halves: 20 ranks, "a" "aa" "aaaa" .. */
static void long_words_are_quick(void **state)
{
    struct kvc_text json = {0};
    struct kvc_tokenizer *tok = NULL;
    struct kvc_encoder *e = NULL;
    struct kvc_token_ids ids = {0};
    size_t n = ((size_t)1 << 20) + 5; /* 64 * 16384 + 4 + 1 */
    char *text = kvc_malloc(n, 1), a[65];
    (void)state;
    memset(a, 'a', 64);
    a[64] = '\0';
    kvc_text_add(&json, "{\"model\":{\"vocab\":{\"a\":0");
    for (int i = 1; i <= 6; i++)
        kvc_text_addf(&json, ",\"%.*s\":%d", 1 << i, a, i);
    kvc_text_add(&json, "},\"merges\":[");
    for (int i = 0; i < 6; i++)
        kvc_text_addf(&json, "%s\"%.*s %.*s\"", i ? "," : "", 1 << i, a, 1 << i, a);
    kvc_text_add(&json, "]}}");
    memset(text, 'a', n);
    assert_int_equal(kvc_tokenizer_parse(&tok, json.buf, json.len, "t", NULL), KVC_OK);
    assert_int_equal(kvc_encoder_create(&e, tok, NULL), KVC_OK);
    assert_int_equal(kvc_encode(e, text, n, &ids, NULL, NULL), KVC_OK);
    assert_int_equal(ids.n, 16384 + 2);
    assert_int_equal(ids.v[16383], 6);
    assert_int_equal(ids.v[16384], 2);
    assert_int_equal(ids.v[16385], 0);
    kvc_free(ids.v);
    kvc_free(text);
    kvc_encoder_destroy(e);
    kvc_tokenizer_close(tok);
    kvc_text_clear(&json);
}

/* ---- NFC ---- */

static void nfc_of(const struct kvc_nfc *nfc, const char *s, const char *want)
{
    struct kvc_text out = {0};
    size_t limit = KVC_FINAL;
    kvc_nfc_add(nfc, &out, s, strlen(s), &limit);
    assert_string_equal(out.buf, want);
    assert_true(!kvc_nfc_is(nfc, s, strlen(s)) || strcmp(s, want) == 0);
    kvc_text_clear(&out);
}

/* From UAX #15: its figures and the arithmetic of Hangul. */
static void nfc_follows_the_annex(void **state)
{
    struct kvc_nfc *nfc = kvc_nfc_create();
    (void)state;
    nfc_of(nfc, "A\xcc\x8a", "\xc3\x85");             /* A + ring */
    nfc_of(nfc, "\xe2\x84\xab", "\xc3\x85");          /* the angstrom sign */
    nfc_of(nfc, "\xe2\x84\xa6", "\xce\xa9");          /* the ohm sign */
    nfc_of(nfc, "s\xcc\xa3\xcc\x87", "\xe1\xb9\xa9"); /* dot below, above */
    nfc_of(nfc, "s\xcc\x87\xcc\xa3", "\xe1\xb9\xa9"); /* in either order */
    nfc_of(nfc, "\xe1\xb8\x8b\xcc\xa3", "\xe1\xb8\x8d\xcc\x87"); /* ḋ + dot below */
    nfc_of(nfc, "a\xcc\x81\xcc\x81", "\xc3\xa1\xcc\x81");        /* the second one is blocked */
    nfc_of(nfc, "\xef\xac\x81", "\xef\xac\x81");      /* a ligature is no canonical equivalent */
    nfc_of(nfc, "\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"); /* an exclusion comes apart */
    nfc_of(nfc, "\xcc\x81" "e", "\xcc\x81" "e");
    for (uint32_t s = 0; s < 11172; s++) {
        char apart[16], whole[8];
        uint32_t t = s % 28;
        size_t n = kvc_utf8_put(0x1100 + s / 588, apart);
        n += kvc_utf8_put(0x1161 + s % 588 / 28, apart + n);
        n += t ? kvc_utf8_put(0x11a7 + t, apart + n) : 0;
        apart[n] = '\0';
        whole[kvc_utf8_put(0xac00 + s, whole)] = '\0';
        nfc_of(nfc, apart, whole);
    }
    kvc_nfc_free(nfc);
}

/* Twice is once; what the limit promises holds for every way to go on. */
static void nfc_keeps_its_laws(void **state)
{
    static const uint32_t some[] = {'a', 'e', 0x301, 0x323, 0x307, 0xe9, 0x1100, 0x1161, 0x11a8,
                                    0xac00, 0x915, 0x93c, 0x958, 0x9c7, 0x9be, 0x4e00, 0xf900,
                                    0x344, 0xf73, 0x1d15e, 0x3099, 0x304b, 0x2f800, 0x345};
    struct kvc_nfc *nfc = kvc_nfc_create();
    uint64_t rng = kvc_rng_stream(1, "nfc");
    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        char text[64];
        struct kvc_text whole = {0}, part = {0}, again = {0};
        size_t n = 0, cut = 0, limit = KVC_FINAL;
        for (uint64_t i = 0, k = kvc_rng_below(&rng, 12); i < k; i++) {
            n += kvc_utf8_put(some[kvc_rng_below(&rng, sizeof(some) / sizeof(some[0]))], text + n);
            cut = kvc_rng_below(&rng, 2) ? n : cut;
        }
        kvc_text_add(&whole, "");
        kvc_text_add(&again, "");
        kvc_nfc_add(nfc, &whole, text, n, &limit);
        kvc_nfc_add(nfc, &again, whole.buf, whole.len, &limit);
        assert_string_equal(whole.buf, again.buf);
        limit = cut;
        kvc_nfc_add(nfc, &part, text, n, &limit);
        assert_true(limit <= part.len && part.len == whole.len);
        part.len = 0;
        size_t end = cut;
        kvc_nfc_add(nfc, &part, text, cut, &end);
        assert_true(end <= part.len && end <= whole.len && end == limit);
        assert_true(!end || !memcmp(part.buf, whole.buf, end));
        kvc_text_clear(&whole);
        kvc_text_clear(&part);
        kvc_text_clear(&again);
    }
    kvc_nfc_free(nfc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bpe_is_its_twin),
        cmocka_unit_test(long_words_are_quick),
        cmocka_unit_test(nfc_follows_the_annex),
        cmocka_unit_test(nfc_keeps_its_laws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
