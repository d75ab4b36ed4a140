/* SPDX-License-Identifier: Apache-2.0
 * Tokenizers on small files made by hand, with ids derived by hand from the rules of each part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <string.h>

/* A byte-level vocabulary in which whole pieces are tokens (ignore_merges), so that ids show where
 * text was split. Bytes that do not print are written as ByteLevel does: blank Ġ, newline Ċ. */
#define PIECES(pre, added) \
    "{\"added_tokens\":[" added "],\"pre_tokenizer\":" pre ",\n\"model\":{\"type\":\"BPE\"," \
    "\"ignore_merges\":true,\"merges\":[],\"vocab\":{\"Hello\":0,\"\xc4\xa0\":1," \
    "\"\xc4\xa0world\":2,\"'s\":3,\"\xc4\xa0" "12\":4,\"\xc4\x8a\":5,\"world\":6,\"12\":7," \
    "\"1\":8,\"2\":9,\"\xc4\xa0Hello\":10,\"a\":11,\"b\":12,\"ab\":13,\"aba\":14,\"ba\":15," \
    "\"\xc4\xa0\xc4\xa0\":16,\"bab\":17,\"aa\":18,\"\xc4\xa0" "a\":19,\"bb\":20}}}"
#define BYTE_LEVEL(space, regex) \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" space ",\"use_regex\":" regex "}"
#define SPLIT(pattern, behavior, invert) \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":" pattern \
    ",\"behavior\":\"" behavior "\",\"invert\":" invert "}," BYTE_LEVEL("false", "false") "]}"
#define TOKEN(id, content, more) \
    "{\"id\":" id ",\"content\":\"" content "\",\"single_word\":false,\"special\":true" more "}"

/* Characters of "▁abné" with merges, Llama's way. */
#define CHARS(norm, pre, options, added) \
    "{\"added_tokens\":[" added "],\"normalizer\":" norm ",\"pre_tokenizer\":" pre ",\n" \
    "\"model\":{\"type\":\"BPE\"," options ",\n\"merges\":[\"a b\",[\"\xe2\x96\x81\",\"ab\"]," \
    "\"b a\",\"\xe2\x96\x81 a\"],\"vocab\":{\"<unk>\":0,\"\xe2\x96\x81\":1,\"a\":2,\"b\":3," \
    "\"n\":4,\"\xc3\xa9\":5,\"ab\":6,\"\xe2\x96\x81" "ab\":7,\"ba\":8,\"\xe2\x96\x81" "a\":9," \
    "\"<0xE4>\":10,\"<0xB8>\":11,\"<0x80>\":12}}}"
#define LLAMA \
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"}," \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]}"
#define METASPACE(scheme, split) \
    "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"" scheme \
    "\",\"split\":" split "}"

static struct kvc_tokenizer *open_text(const char *json)
{
    struct kvc_tokenizer *tok = NULL;
    struct kvc_error err = {0};
    if (kvc_tokenizer_parse(&tok, json, strlen(json), "t.json", &err) != KVC_OK)
        fail_msg("%s: %s", err.field, err.text);
    return tok;
}

/* The ids as text, "0 1 2"; the same for every prefix as far as it is stable. */
static void expect_n(const char *json, const char *text, size_t n, const char *ids)
{
    struct kvc_tokenizer *tok = open_text(json);
    struct kvc_encoder *e = NULL;
    struct kvc_token_ids all = {0}, some = {0};
    char got[512] = "";
    size_t stable = 0, before = 0;
    assert_int_equal(kvc_encoder_create(&e, tok, NULL), KVC_OK);
    assert_int_equal(kvc_encode(e, text, n, &all, NULL, NULL), KVC_OK);
    for (size_t i = 0; i < all.n; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), i ? " %u" : "%u", all.v[i]);
    if (strcmp(got, ids) != 0)
        fail_msg("\"%.*s\": %s, not %s", (int)n, text, got, ids);
    for (size_t k = 0; k <= n; k++) {
        some.n = 0;
        assert_int_equal(kvc_encode(e, text, k, &some, &stable, NULL), KVC_OK);
        assert_true(stable >= before && stable <= some.n && stable <= all.n);
        for (size_t i = 0; i < stable; i++)
            assert_int_equal(some.v[i], all.v[i]);
        before = stable;
    }
    kvc_free(all.v);
    kvc_free(some.v);
    kvc_encoder_destroy(e);
    kvc_tokenizer_close(tok);
}

static void expect(const char *json, const char *text, const char *ids)
{
    expect_n(json, text, strlen(text), ids);
}

static void byte_level_splits_like_gpt2(void **state)
{
    (void)state;
    /* the last blank of a run goes to the word behind it */
    expect(PIECES(BYTE_LEVEL("false", "true"), ""), "Hello  world's 12\n", "0 1 2 3 4 5");
    expect(PIECES(BYTE_LEVEL("true", "true"), ""), "Hello world", "10 2");
    expect(PIECES(BYTE_LEVEL("true", "true"), ""), " Hello", "10");
    expect(PIECES(BYTE_LEVEL("false", "false"), ""), " Hello", "10");
    expect(PIECES(BYTE_LEVEL("false", "true"), ""), "", "");
    /* no byte of "x" has a token, and there is no unknown one: it vanishes, as in the library */
    expect(PIECES(BYTE_LEVEL("false", "true"), ""), "Hello x", "0 1");
}

static void splits_behave_as_named(void **state)
{
    (void)state;
#define B "{\"String\":\"b\"}"
    expect(PIECES(SPLIT(B, "Isolated", "false"), ""), "abab", "11 12 11 12");
    expect(PIECES(SPLIT(B, "Removed", "false"), ""), "abab", "11 11");
    expect(PIECES(SPLIT(B, "Removed", "true"), ""), "abab", "12 12");
    expect(PIECES(SPLIT(B, "MergedWithPrevious", "false"), ""), "ababba", "13 13 12 11");
    expect(PIECES(SPLIT(B, "MergedWithNext", "false"), ""), "ababba", "11 15 12 15");
    expect(PIECES(SPLIT(B, "MergedWithNext", "true"), ""), "abab", "13 13");
    expect(PIECES(SPLIT(B, "Contiguous", "false"), ""), "aabba", "18 20 11");
    expect(PIECES(SPLIT("{\"Regex\":\"a(?=b)|b\"}", "Isolated", "false"), ""), "abaa",
           "11 12 18");
    expect(PIECES("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
                  "\"individual_digits\":true}," BYTE_LEVEL("false", "false") "]}", ""),
           "12ab", "8 9 13");
    expect(PIECES("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},"
                  BYTE_LEVEL("false", "false") "]}", ""), "12ab", "7 13");
}

static void added_tokens_come_first(void **state)
{
    (void)state;
#define LEVEL BYTE_LEVEL("false", "true")
    const char *json = PIECES(LEVEL, TOKEN("50", "<a>", "") "," TOKEN("51", "<a>b", "") ","
                              TOKEN("52", "<l>", ",\"lstrip\":true") ","
                              TOKEN("53", "<r>", ",\"rstrip\":true"));
    expect(json, "a<a>a", "11 50 11");
    expect(json, "a<a>ba", "11 51 11"); /* the longer one */
    expect(json, "Hello  <l>a", "0 52 11");
    expect(json, "Hello<r> \n a", "0 53 11");
    expect(json, "a<l><r>", "11 52 53");
}

static void llama_prepends_and_replaces(void **state)
{
    const char *options = "\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true";
    char json[2048];
    (void)state;
    snprintf(json, sizeof(json), CHARS(LLAMA, "null", "%s", ""), options);
    expect(json, "ab aba", "7 7 2");            /* "a b" has a lower rank than "b a" */
    expect(json, "ba", "1 8");                  /* "b a" before "▁ a": nothing left to join */
    expect(json, "n\xe4\xb8\x80", "1 4 10 11 12"); /* 一 as its bytes */
    expect(json, "n\xe4\xb8\x81\xe4\xb8\x81n", "1 4 0 4"); /* <0x81> is missing: fused unknowns */
    snprintf(json, sizeof(json), CHARS(LLAMA, "null", "\"unk_token\":\"<unk>\"", ""));
    expect(json, "n\xe4\xb8\x81\xe4\xb8\x81n", "1 4 0 0 4");
    snprintf(json, sizeof(json), CHARS(LLAMA, "null", "\"unk_token\":null", ""));
    expect(json, "a\xe4\xb8\x81" "b", "7"); /* what is unknown vanishes, then "▁ a b" join */
    /* each text between added tokens gets its own ▁ */
    snprintf(json, sizeof(json), CHARS(LLAMA, "null", "%s",
             TOKEN("20", "<s>", "") "," TOKEN("21", " n", ",\"normalized\":true")), options);
    expect(json, "ab<s>ab", "7 20 7");
    expect(json, "a n", "9 1 4");
    expect(json, "a  n", "9 21"); /* " n" is looked for as "▁▁n" */
}

static void metaspace_prepends_as_told(void **state)
{
    char json[2048];
    (void)state;
    snprintf(json, sizeof(json), CHARS("null", METASPACE("always", "true"), "\"unk_token\":null",
                                       TOKEN("20", "<s>", "")));
    expect(json, "ab ab<s>ab", "7 7 20 7");
    expect(json, "ab  ab", "7 1 7");
    snprintf(json, sizeof(json), CHARS("null", METASPACE("first", "true"), "\"unk_token\":null",
                                       TOKEN("20", "<s>", "")));
    expect(json, "ab ab<s>ab", "7 7 20 6");
    expect(json, "<s>ab", "20 6");
    snprintf(json, sizeof(json), CHARS("null", METASPACE("never", "false"), "\"unk_token\":null",
                                       TOKEN("20", "<s>", "")));
    expect(json, "ab ab", "6 7");
    expect(json, " ab", "7");
}

static void nfc_composes(void **state)
{
    char json[2048];
    (void)state;
    snprintf(json, sizeof(json), CHARS("{\"type\":\"NFC\"}", "null", "\"unk_token\":\"<unk>\"",
                                       TOKEN("20", "<s>", "")));
    expect(json, "ne\xcc\x81n", "4 5 4");
    expect(json, "ne<s>\xcc\x81n", "4 0 20 0 4"); /* not across an added token */
}

static void not_utf8_counts_as_replacement(void **state)
{
    /* The Unicode standard, section 3.9, table 3-11: each maximal part gives one U+FFFD. */
    static const char text[] = "\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64";
    struct kvc_text out = {0};
    size_t sound = 0;
    (void)state;
#define F "\xef\xbf\xbd"
    kvc_utf8_mend(&out, text, sizeof(text) - 1, &sound);
    assert_string_equal(out.buf, "a" F F F "b" F "c" F F "d");
    assert_int_equal(sound, out.len);
    kvc_text_clear(&out);
    kvc_utf8_mend(&out, "a\xe4\xb8", 3, &sound);
    assert_string_equal(out.buf, "a" F);
    assert_int_equal(sound, 1); /* the character may still be completed */
    kvc_text_clear(&out);
    kvc_utf8_mend(&out, "\xed\xa0\x80\xc0\xaf", 5, &sound); /* a surrogate, an overlong form */
    assert_string_equal(out.buf, F F F F F);
    kvc_text_clear(&out);
    assert_true(kvc_utf8_valid("\xf4\x8f\xbf\xbf", 4));
    assert_false(kvc_utf8_valid("\xf4\x90\x80\x80", 4));
    expect_n(PIECES(BYTE_LEVEL("false", "true"), ""), "Hello\xff world", 12, "0 2");
}

static void templates_are_told(void **state)
{
    const uint32_t *before, *after;
    size_t n_before, n_after;
    (void)state;
    struct kvc_tokenizer *tok = open_text(
        "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[]},\"post_processor\":{\"type\":"
        "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"<e>\"}}],"
        "\"special_tokens\":{\"<s>\":{\"ids\":[7,8]},\"<e>\":{\"ids\":[9]}}}}");
    kvc_tokenizer_around(tok, &before, &n_before, &after, &n_after);
    assert_int_equal(n_before, 2);
    assert_int_equal(before[1], 8);
    assert_int_equal(n_after, 1);
    assert_int_equal(after[0], 9);
    kvc_tokenizer_close(tok);
}

/* ---- refusals ---- */

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}"

static void bad_files_are_refused_by_name(void **state)
{
    static const struct { const char *json, *field, *says; } cases[] = {
        {"[]", "model", "tokenizer.json"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "model", "Unigram"},
        {"{\"model\":{\"vocab\":{},\"merges\":[],\"dropout\":0.1}}", "model", "dropout"},
        {"{\"model\":{\"vocab\":{},\"merges\":[],\"end_of_word_suffix\":\"</w>\"}}", "model",
         "end_of_word_suffix"},
        {"{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", "model.vocab", "\"a\""},
        {"{\"model\":{\"vocab\":{\"a\":99999999},\"merges\":[]}}", "model.vocab", "2^24"},
        {"{\"model\":{\"vocab\":{\"a\":0}}}", "model.merges", "list"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}", "model.merges", "\"aa\""},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"b a\"]}}", "model.merges", "\"b\""},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}", "model.merges", "merge 1"},
        {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"u\"}}",
         "model.unk_token", "vocabulary"},
        {"{" MODEL ",\"normalizer\":{\"type\":\"Lowercase\"}}", "normalizer", "Lowercase"},
        {"{" MODEL ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
         "{\"type\":\"NFKC\"}]}}", "normalizer.normalizers[1]", "NFKC"},
        {"{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x\"},"
         "\"content\":\"y\"}}", "normalizer", "String pattern"},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Whitespace\"}}", "pre_tokenizer",
         "Whitespace"},
        {"{" MODEL ",\"pre_tokenizer\":" SPLIT("{\"Regex\":\"\\\\w+\"}", "Isolated", "false") "}",
         "pre_tokenizer.pretokenizers[0]", "escape"},
        {"{" MODEL ",\"pre_tokenizer\":" SPLIT("{\"Regex\":\"a*\"}", "Isolated", "false") "}",
         "pre_tokenizer.pretokenizers[0]", "empty"},
        {"{" MODEL ",\"pre_tokenizer\":" SPLIT("{\"String\":\"a\"}", "Sideways", "false") "}",
         "pre_tokenizer.pretokenizers[0]", "Sideways"},
        {"{" MODEL ",\"post_processor\":{\"type\":\"Odd\"}}", "post_processor", "Odd"},
        {"{" MODEL ",\"added_tokens\":[{\"id\":5}]}", "added_tokens", "content"},
        {"{" MODEL ",\"added_tokens\":[{\"id\":5,\"content\":\"a\"}]}", "added_tokens",
         "id 5 here and 0"},
        {"{" MODEL ",\"added_tokens\":[{\"id\":5,\"content\":\"x\",\"single_word\":true}]}",
         "added_tokens", "single_word"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kvc_tokenizer *tok = NULL;
        struct kvc_error err = {0};
        if (kvc_tokenizer_parse(&tok, cases[i].json, strlen(cases[i].json), "t.json", &err) ==
            KVC_OK)
            fail_msg("accepted: %s", cases[i].json);
        assert_null(tok);
        assert_string_equal(err.file, "t.json");
        assert_int_equal(err.line, 1);
        if (strcmp(err.field, cases[i].field) != 0 || !strstr(err.text, cases[i].says))
            fail_msg("%s: %s: %s", cases[i].json, err.field, err.text);
    }
}

static void missing_files_are_named(void **state)
{
    struct kvc_tokenizer *tok = NULL;
    struct kvc_error err = {0};
    (void)state;
    assert_int_equal(kvc_tokenizer_open(&tok, "/nowhere/tokenizer.json", &err), KVC_ERR_INPUT);
    assert_string_equal(err.file, "/nowhere/tokenizer.json");
}

/* ---- patterns ---- */

static void patterns_are_translated(void **state)
{
#define BLANKS "\\p{Z}\\x{9}-\\x{d}\\x{85}"
    static const char *const same[][2] = {
        {"\\s+(?!\\S)", "[" BLANKS "]+(?![^" BLANKS "])"},
        {"(?i:'s|ll)", "(?i:\\x{27}s|ll)"},
        {"[^\\r\\n\\p{L}]?\\p{N}{1,3}", "[^\\x{d}\\x{a}\\p{L}]?\\p{N}{1,3}"},
        {"(a|\\P{Lu})", "(?:a|\\P{Lu})"},
        {"[ab[c-e]\\-]", "[abc-e\\x{2d}]"},
        {"[a-]\\p{Han}\\p{^L}", "[a\\-]\\p{sc:Han}\\P{L}"},
        {"\\u4e00[\xe4\xb8\x80-\xe9\xbe\xa5]", "\\x{4e00}[\\x{4e00}-\\x{9fa5}]"},
        {"\\v\\d", "\\x{b}\\p{Nd}"},
    };
    static const char *const refused[] = {
        "\\w", "\\bx", "^a", "a$", "(?<=a)b", "(?<n>a)", "(?i)a", "[[:alpha:]]", "[a&&b]",
        "[^[^a]]", "\\p{Alpha}", "\\pL", "a{1,3}+", "a{,3}", "a{2}?", "(a", "a)", "[a", "\\",
        "\\h", "\\R", "[\\S]", "(?i:\xc3\xa9)", "(?i:straSse)", "(?i:\\p{Lu})", "[\\s-x]",
        "\\xff", "\\x{110000}", "(*VERB)a", "[]a]", "a{b",
    };
    char why[256] = "";
    (void)state;
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        struct kvc_text out = {0};
        if (!kvc_pattern_translate(&out, same[i][0], why))
            fail_msg("%s", why);
        assert_string_equal(out.buf, same[i][1]);
        kvc_text_clear(&out);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct kvc_text out = {0};
        if (kvc_pattern_translate(&out, refused[i], why))
            fail_msg("taken: %s", refused[i]);
        kvc_text_clear(&out);
    }
}

/* U+180E is no blank (any more), U+0085 is one. */
static void blanks_are_those_of_unicode(void **state)
{
    struct kvc_pattern *p = NULL;
    struct kvc_matcher *m = kvc_matcher_create();
    char why[256];
    (void)state;
    assert_int_equal(kvc_pattern_compile(&p, "\\s", why), KVC_OK);
    kvc_matcher_allow(m, 1 << 20);
    for (uint32_t c = 1; c < 0x10ffff; c = c == 0xd7ff ? 0xe000 : c + 1) {
        char text[4];
        size_t from, to, n = kvc_utf8_put(c, text);
        bool found = kvc_pattern_next(p, m, text, n, 0, false, &from, &to) == KVC_MATCH_FOUND;
        if (found != kvc_is_space(c))
            fail_msg("U+%04X", (unsigned)c);
    }
    kvc_matcher_free(m);
    kvc_pattern_free(p);
}

static void no_pattern_runs_away(void **state)
{
    static const char *const patterns[] = {"a+b", "a*a*a*a*b", "(?:a+)+b", "(?:a|aa)+b",
                                           "[^X]*X|a", "a(?=a*b)|a"};
    size_t n = 300000;
    char *text = kvc_malloc(n, 1);
    char json[1024];
    (void)state;
    memset(text, 'a', n);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct kvc_encoder *e = NULL;
        struct kvc_token_ids ids = {0};
        struct kvc_error err = {0};
        snprintf(json, sizeof(json), "{" MODEL ",\"pre_tokenizer\":"
                 SPLIT("{\"Regex\":\"%s\"}", "Isolated", "false") "}", patterns[i]);
        struct kvc_tokenizer *tok = open_text(json);
        assert_int_equal(kvc_encoder_create(&e, tok, NULL), KVC_OK);
        assert_int_equal(kvc_encode(e, text, n, &ids, NULL, &err), KVC_ERR_LIMIT);
        assert_non_null(strstr(err.text, "step 1"));
        assert_int_equal(ids.n, 0);
        kvc_free(ids.v);
        kvc_encoder_destroy(e);
        kvc_tokenizer_close(tok);
    }
    kvc_free(text);
}

/* ---- memory ---- */

static enum kvc_status open_and_encode(const char *json, const char *text, struct kvc_error *err)
{
    struct kvc_tokenizer *tok = NULL;
    struct kvc_encoder *e = NULL;
    struct kvc_token_ids ids = {0};
    size_t stable;
    enum kvc_status st = kvc_tokenizer_parse(&tok, json, strlen(json), "t.json", err);
    if (st == KVC_OK)
        st = kvc_encoder_create(&e, tok, err);
    if (st == KVC_OK)
        st = kvc_encode(e, text, strlen(text), &ids, &stable, err);
    kvc_free(ids.v);
    kvc_encoder_destroy(e);
    kvc_tokenizer_close(tok);
    return st;
}

static void running_out_of_memory_is_reported(void **state)
{
    static const char text[] = "ab ab\xff e\xcc\x81 <s>ababababababababababababababababababababab";
    char json[4096];
    struct kvc_error err;
    (void)state;
    snprintf(json, sizeof(json), CHARS("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
             LLAMA "]}", METASPACE("always", "true"), "\"unk_token\":\"<unk>\"",
             TOKEN("20", "<s>", ",\"normalized\":true")));
    uint64_t before = kvc_alloc_count(), failed = 0;
    assert_int_equal(open_and_encode(json, text, &err), KVC_OK);
    uint64_t n = kvc_alloc_count() - before;
    assert_true(n > 30);
    for (uint64_t i = 1; i <= n; i++) {
        kvc_alloc_fail_after(i);
        enum kvc_status st = open_and_encode(json, text, &err);
        kvc_alloc_fail_after(0);
        if (st != KVC_OK && st != KVC_ERR_NOMEM)
            fail_msg("allocation %u: %s", (unsigned)i, err.text);
        failed += st != KVC_OK;
    }
    assert_true(failed > n / 2); /* PCRE2 does without its JIT when it must */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_splits_like_gpt2),
        cmocka_unit_test(splits_behave_as_named),
        cmocka_unit_test(added_tokens_come_first),
        cmocka_unit_test(llama_prepends_and_replaces),
        cmocka_unit_test(metaspace_prepends_as_told),
        cmocka_unit_test(nfc_composes),
        cmocka_unit_test(not_utf8_counts_as_replacement),
        cmocka_unit_test(templates_are_told),
        cmocka_unit_test(bad_files_are_refused_by_name),
        cmocka_unit_test(missing_files_are_named),
        cmocka_unit_test(patterns_are_translated),
        cmocka_unit_test(blanks_are_those_of_unicode),
        cmocka_unit_test(no_pattern_runs_away),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
