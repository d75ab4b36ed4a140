/* SPDX-License-Identifier: Apache-2.0
 * JSON in and out: what is refused and where, exact integers, and random documents that survive
 * a round trip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static enum kvc_status parse(const char *text, bool comments, struct kvc_jval **out,
                             struct kvc_error *err)
{
    return kvc_json_parse(out, text, strlen(text), comments, "f.json", 1, err);
}

static void refused(const char *text, uint64_t line)
{
    struct kvc_jval *v = NULL;
    struct kvc_error err = {0};
    if (parse(text, true, &v, &err) == KVC_OK)
        fail_msg("accepted: %s", text);
    assert_null(v);
    assert_int_equal(err.status, KVC_ERR_INPUT);
    assert_string_equal(err.file, "f.json");
    if (err.line != line)
        fail_msg("%s: line %" PRIu64 ", not %" PRIu64, text, err.line, line);
}

static void bad_documents_are_refused_with_their_line(void **state)
{
    static const struct { const char *text; uint64_t line; } cases[] = {
        {"", 1},          {" \n ", 2},       {"{", 1},          {"[1,\n2", 2},
        {"[1,]", 1},      {"{\"a\":1,}", 1}, {"{\"a\"}", 1},    {"{\"a\":}", 1},
        {"[1 2]", 1},     {"[1] x", 1},      {"[1]\n[2]", 2},   {"[01]", 1},
        {"[1.]", 1},      {"[.5]", 1},       {"[+1]", 1},       {"[1e]", 1},
        {"[-]", 1},       {"[0x10]", 1},     {"[NaN]", 1},      {"[Infinity]", 1},
        {"[tru]", 1},     {"[nulll]", 1},    {"{a:1}", 1},      {"{'a':1}", 1},
        {"[\"a\nb\"]", 1}, {"[\"a\tb\"]", 1}, {"[\"a]", 1},      {"[\"\\x\"]", 1},
        {"[\"\\u12\"]", 1}, {"[\"\\ud800\"]", 1}, {"[\"\\u0000\"]", 1}, {"[1}", 1},
        {"{\"a\":1]", 1}, {"\n\n[80GiB]", 3}, {"[1] /* c */", 1}, {"/", 1},
        {"{\"a\":1,\n\"b\":2,\n\"a\":3}", 3}, {"{\"x\":{\"k\":1,\n\"k\":1}}", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refused(cases[i].text, cases[i].line);
}

static void nul_bytes_are_refused(void **state)
{
    struct kvc_jval *v = NULL;
    struct kvc_error err = {0};
    (void)state;
    assert_int_equal(kvc_json_parse(&v, "[1,\0 2]", 7, false, "f", 1, &err), KVC_ERR_INPUT);
    assert_int_equal(kvc_json_parse(&v, "[1]\0", 4, false, "f", 1, &err), KVC_ERR_INPUT);
    assert_int_equal(kvc_json_parse(&v, "\"a\0b\"", 5, false, "f", 1, &err), KVC_ERR_INPUT);
    assert_null(v);
}

static void nesting_ends_at_64(void **state)
{
    char text[256];
    struct kvc_jval *v = NULL;
    (void)state;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    text[128] = '\0';
    assert_int_equal(parse(text, false, &v, NULL), KVC_OK);
    kvc_json_free(v);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    text[130] = '\0';
    refused(text, 1);
}

static void comments_only_where_allowed(void **state)
{
    static const char text[] = "// head\n{ \"a\" // why\n : 1, // x \"y\n \"u\": \"http://h\" } // "
                               "end";
    struct kvc_jval *v = NULL;
    uint64_t one = 0;
    (void)state;
    assert_int_equal(parse(text, true, &v, NULL), KVC_OK);
    assert_true(kvc_jval_u64(kvc_jval_member(v, "a"), &one));
    assert_int_equal(one, 1);
    assert_string_equal(kvc_jval_string(kvc_jval_member(v, "u")), "http://h");
    assert_int_equal(kvc_jval_line(kvc_jval_member(v, "u")), 4);
    kvc_json_free(v);
    assert_int_equal(parse(text, false, &v, NULL), KVC_ERR_INPUT);
}

static void integers_are_exact(void **state)
{
    static const struct {
        const char *text;
        bool u, i;
        uint64_t value;
        int64_t signed_value;
    } c[] = {
        {"18446744073709551615", true, false, UINT64_MAX, 0},
        {"18446744073709551616", false, false, 0, 0},
        {"9007199254740993", true, true, 9007199254740993u, 9007199254740993},
        {"61.0", true, true, 61, 61},
        {"6.1e1", true, true, 61, 61},
        {"6100E-2", true, true, 61, 61},
        {"61.5", false, false, 0, 0},
        {"-0", true, true, 0, 0},
        {"-9223372036854775808", false, true, 0, INT64_MIN},
        {"-9223372036854775809", false, false, 0, 0},
        {"1e19", true, false, 10000000000000000000u, 0},
        {"1e20", false, false, 0, 0},
        {"1e-400", false, false, 0, 0},
        {"0e999999999999", true, true, 0, 0},
        {"0.00000000000000000000000000000000000000000000000000e60", true, true, 0, 0},
        {"1e999999999999", false, false, 0, 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof(c) / sizeof(c[0]); k++) {
        struct kvc_jval *v = NULL;
        uint64_t u = 7;
        int64_t i = 7;
        assert_int_equal(parse(c[k].text, false, &v, NULL), KVC_OK);
        if (kvc_jval_u64(v, &u) != c[k].u || kvc_jval_i64(v, &i) != c[k].i)
            fail_msg("%s", c[k].text);
        assert_true(u == (c[k].u ? c[k].value : 7));
        assert_true(i == (c[k].i ? c[k].signed_value : 7));
        kvc_json_free(v);
    }
}

/* ---- random documents ---- */

static void put_random(struct kvc_json *j, const char *key, uint64_t *rng, unsigned depth)
{
    static const char *const strings[] = {"", "a\"b\\c/\n\t\x01",
                                          "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                                          "// no comment", "plain"};
    static const double reals[] = {0.1, -1e300, 5e-324, 1.0 / 3.0, 1e21, 123456789.125, -0.0};
    char name[16];
    unsigned kinds = depth < 6 ? 8 : 6;
    switch (kvc_rng_below(rng, kinds)) {
    case 0:
        kvc_json_u64(j, key, kvc_rng_next(rng) >> kvc_rng_below(rng, 64));
        break;
    case 1:
        kvc_json_i64(j, key, (int64_t)kvc_rng_next(rng));
        break;
    case 2:
        kvc_json_double(j, key, reals[kvc_rng_below(rng, 7)]);
        break;
    case 3:
        kvc_json_string(j, key, strings[kvc_rng_below(rng, 5)]);
        break;
    case 4:
        kvc_json_bool(j, key, kvc_rng_below(rng, 2));
        break;
    case 5:
        kvc_json_null(j, key);
        break;
    case 6:
        kvc_json_open_array(j, key);
        for (uint64_t n = kvc_rng_below(rng, 4); n > 0; n--)
            put_random(j, NULL, rng, depth + 1);
        kvc_json_close(j);
        break;
    default:
        kvc_json_open_object(j, key);
        for (uint64_t n = kvc_rng_below(rng, 20); n > 0; n--) {
            snprintf(name, sizeof(name), "k%u\n", (unsigned)n);
            put_random(j, name, rng, depth + 1);
        }
        kvc_json_close(j);
    }
}

static void random_documents_survive_a_round_trip(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct kvc_json a, b;
        struct kvc_jval *v = NULL;
        struct kvc_error err = {0};
        uint64_t rng = kvc_rng_stream(seed, "json");
        kvc_json_init(&a, seed % 2);
        kvc_json_init(&b, seed % 2);
        kvc_json_open_array(&a, NULL);
        put_random(&a, NULL, &rng, 0);
        kvc_json_close(&a);
        if (parse(a.buf, false, &v, &err) != KVC_OK)
            fail_msg("seed %" PRIu64 ": %s\n%s", seed, err.text, a.buf);
        kvc_json_value(&b, NULL, v);
        if (strcmp(a.buf, b.buf) != 0)
            fail_msg("seed %" PRIu64 ":\n%s\n%s", seed, a.buf, b.buf);
        kvc_json_free(v);
        kvc_json_clear(&a);
        kvc_json_clear(&b);
    }
}

static void any_cut_or_changed_byte_is_survived(void **state)
{
    static const char text[] = "{\"a\": [1, -2.5e3, true, \"\\u00e9\\n\"], // c\n \"b\": {\"c\": "
                               "null}}";
    char buf[sizeof(text)];
    (void)state;
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        struct kvc_jval *v = NULL;
        assert_int_not_equal(kvc_json_parse(&v, text, n, true, "f", 1, NULL), KVC_OK);
        for (unsigned c = 0; c < 256; c++) {
            memcpy(buf, text, sizeof(text));
            buf[n] = (char)c;
            if (kvc_json_parse(&v, buf, sizeof(text) - 1, true, "f", 1, NULL) == KVC_OK)
                kvc_json_free(v);
        }
    }
}

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
    struct kvc_json j;
    (void)state;
    kvc_json_init(&j, false);
    kvc_json_string(&j, NULL, "a\xff" "b\xc0\x80" "\xed\xa0\x80" "\xe2\x82");
    assert_string_equal(j.buf, "\"a\xef\xbf\xbd" "b\xef\xbf\xbd\xef\xbf\xbd"
                               "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    kvc_json_clear(&j);
    kvc_json_double(&j, NULL, (double)NAN);
    assert_string_equal(j.buf, "null");
    kvc_json_clear(&j);
}

static void raw_text_takes_the_indent_of_its_place(void **state)
{
    struct kvc_json inner, outer;
    (void)state;
    kvc_json_init(&inner, true);
    kvc_json_open_object(&inner, NULL);
    kvc_json_string(&inner, "s", "a\nb");
    kvc_json_close(&inner);
    kvc_json_init(&outer, true);
    kvc_json_open_object(&outer, NULL);
    kvc_json_raw(&outer, "in", inner.buf);
    kvc_json_close(&outer);
    assert_string_equal(outer.buf, "{\n  \"in\": {\n    \"s\": \"a\\nb\"\n  }\n}\n");
    kvc_json_clear(&inner);
    kvc_json_clear(&outer);
}

static void every_failed_allocation_is_clean(void **state)
{
    static const char text[] = "{\"a\": [1, 2, {\"b\": \"c\"}], \"d\": {\"e\": 1, \"f\": 2}}";
    (void)state;
    for (uint64_t n = 1; n < 50; n++) {
        struct kvc_jval *v = NULL;
        struct kvc_error err = {0};
        kvc_alloc_fail_after(n);
        enum kvc_status st = parse(text, true, &v, &err);
        kvc_alloc_fail_after(0);
        if (st == KVC_OK) {
            assert_true(n > 2);
            kvc_json_free(v);
            return;
        }
        assert_int_equal(st, KVC_ERR_NOMEM);
        assert_null(v);
    }
    fail_msg("never succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_documents_are_refused_with_their_line),
        cmocka_unit_test(nul_bytes_are_refused),
        cmocka_unit_test(nesting_ends_at_64),
        cmocka_unit_test(comments_only_where_allowed),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(random_documents_survive_a_round_trip),
        cmocka_unit_test(any_cut_or_changed_byte_is_survived),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(raw_text_takes_the_indent_of_its_place),
        cmocka_unit_test(every_failed_allocation_is_clean),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
