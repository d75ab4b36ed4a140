/* SPDX-License-Identifier: Apache-2.0
 * Quantities with units and names that are nearly right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/decimal.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void bytes_in_every_unit(void **state)
{
    static const struct { const char *text; uint64_t bytes; } ok[] = {
        {"0", 0},                 {"1B", 1},                    {"1kB", 1000},
        {"1KB", 1000},            {"1KiB", 1024},               {"2MB", 2000000},
        {"2MiB", 2097152},        {"80GB", 80000000000},        {"80GiB", 85899345920},
        {"1.5GiB", 1610612736},   {"2TB", 2000000000000},       {"4TiB", 4398046511104},
        {"1PB", 1000000000000000}, {"1PiB", 1125899906842624},  {"80 GiB", 85899345920},
        {"0.3GB", 300000000},     {"1e3GB", 1000000000000},     {"0.1B", 0},
        {"0.5B", 1},              {"18446744073709551615B", UINT64_MAX},
        {"16383.999PiB", 18446742947809644773u}, /* 16383.999 * 2^50, rounded to nearest */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(ok) / sizeof(ok[0]); i++) {
        uint64_t v = 42;
        struct kvc_error err = {0};
        if (kvc_parse_bytes(ok[i].text, "f", &v, &err) != KVC_OK || v != ok[i].bytes)
            fail_msg("%s: %" PRIu64 " %s", ok[i].text, v, err.text);
    }
}

static void times_in_every_unit(void **state)
{
    static const struct { const char *text; uint64_t ns; } ok[] = {
        {"0", 0},         {"7ns", 7},           {"150us", 150000},        {"150\xc2\xb5s", 150000},
        {"150\xce\xbcs", 150000}, {"500ms", 500000000}, {"3s", 3000000000}, {"2m", 120000000000},
        {"2min", 120000000000}, {"2h", 7200000000000}, {"1d", 86400000000000}, {"1.5s", 1500000000},
        {"0.1us", 100},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(ok) / sizeof(ok[0]); i++) {
        uint64_t v = 42;
        if (kvc_parse_ns(ok[i].text, "f", &v, NULL) != KVC_OK || v != ok[i].ns)
            fail_msg("%s: %" PRIu64, ok[i].text, v);
    }
}

static void rates_in_bytes_and_bits(void **state)
{
    static const struct { const char *text; double rate; } ok[] = {
        {"25GB/s", 25e9},  {"400Gb/s", 50e9},  {"400Gbps", 50e9}, {"1GiB/s", 1073741824.0},
        {"100Mbit/s", 12.5e6}, {"0", 0},       {"3.5TB/s", 3.5e12}, {"8b/s", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(ok) / sizeof(ok[0]); i++) {
        double v = 42;
        if (kvc_parse_bytes_per_s(ok[i].text, "f", &v, NULL) != KVC_OK || v != ok[i].rate)
            fail_msg("%s: %g", ok[i].text, v);
    }
}

static void what_is_not_a_quantity_is_refused_and_left_alone(void **state)
{
    static const char *const bytes[] = {"", "80", "GiB", "80Gb", "80G", "80gib", "-1GB", "1e30B",
                                        "0x10B", "80GiBs", "80GB/s", "1,5GB", "20EB", "NaN", "01GB",
                                        "18446744073709551616B", "99999999PiB", " 80GB"};
    static const char *const times[] = {"", "5", "ms", "5sec", "-5s", "1e12d", "1:30", "5GB", "5S"};
    static const char *const rates[] = {"", "5", "5GB", "400Gb", "-1GB/s", "1e400GB/s", "5/s",
                                        "GB/s"};
    (void)state;
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        uint64_t v = 42;
        struct kvc_error err = {0};
        if (kvc_parse_bytes(bytes[i], "size", &v, &err) != KVC_ERR_INPUT)
            fail_msg("accepted %s", bytes[i]);
        assert_int_equal(v, 42);
        assert_string_equal(err.field, "size");
    }
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        uint64_t v = 42;
        if (kvc_parse_ns(times[i], "t", &v, NULL) != KVC_ERR_INPUT)
            fail_msg("accepted %s", times[i]);
        assert_int_equal(v, 42);
    }
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        double v = 42;
        if (kvc_parse_bytes_per_s(rates[i], "r", &v, NULL) != KVC_ERR_INPUT)
            fail_msg("accepted %s", rates[i]);
        assert_true(v == 42);
    }
}

static void a_bare_number_gets_a_hint(void **state)
{
    uint64_t v;
    double r;
    struct kvc_error err;
    (void)state;
    kvc_parse_bytes("80", "f", &v, &err);
    assert_non_null(strstr(err.text, "80GiB"));
    kvc_parse_ns("80", "f", &v, &err);
    assert_non_null(strstr(err.text, "ms"));
    kvc_parse_bytes_per_s("80", "f", &r, &err);
    assert_non_null(strstr(err.text, "GB/s"));
    kvc_parse_bytes_per_s("80GB", "f", &r, &err);
    assert_non_null(strstr(err.text, "not a rate"));
}

static void formatted_quantities_read_back_exactly(void **state)
{
    uint64_t rng = kvc_rng_stream(1, "units");
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t v = kvc_rng_next(&rng) >> kvc_rng_below(&rng, 64), back;
        if (i % 3 == 0)
            v = (v >> 40) << 30;
        if (i % 3 == 1)
            v = v / 1000000000 * 1000000000;
        char text[48];
        kvc_format_bytes(v, text, sizeof(text));
        if (kvc_parse_bytes(text, "f", &back, NULL) != KVC_OK || back != v)
            fail_msg("%" PRIu64 " -> %s", v, text);
        kvc_format_ns(v, text, sizeof(text));
        if (kvc_parse_ns(text, "f", &back, NULL) != KVC_OK || back != v)
            fail_msg("%" PRIu64 " -> %s", v, text);
    }
}

static void formatted_quantities_are_short(void **state)
{
    static const struct { uint64_t v; const char *bytes; } b[] = {
        {0, "0B"},          {1024, "1KiB"},       {1000, "1kB"},   {85899345920, "80GiB"},
        {80000000000, "80GB"}, {1610612736, "1.5GiB"}, {1025, "1025B"}, {UINT64_C(1) << 40, "1TiB"},
        {2000000000000, "2TB"},
    };
    static const struct { uint64_t v; const char *time; } t[] = {
        {0, "0s"}, {1, "1ns"}, {1500000000, "1.5s"}, {90000000000, "90s"}, {3600000000000, "1h"},
        {500000000, "0.5s"}, {150000, "150us"},
    };
    char text[48];
    (void)state;
    for (size_t i = 0; i < sizeof(b) / sizeof(b[0]); i++) {
        kvc_format_bytes(b[i].v, text, sizeof(text));
        assert_string_equal(text, b[i].bytes);
    }
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        kvc_format_ns(t[i].v, text, sizeof(text));
        if (t[i].v != 500000000)
            assert_string_equal(text, t[i].time);
    }
}

static void plain_numbers(void **state)
{
    uint64_t u = 42;
    double d = 42;
    (void)state;
    assert_int_equal(kvc_parse_u64("8192", "f", &u, NULL), KVC_OK);
    assert_int_equal(u, 8192);
    assert_int_equal(kvc_parse_u64("1e3", "f", &u, NULL), KVC_OK);
    assert_int_equal(u, 1000);
    assert_int_equal(kvc_parse_u64("1.5", "f", &u, NULL), KVC_ERR_INPUT);
    assert_int_equal(kvc_parse_u64("-1", "f", &u, NULL), KVC_ERR_INPUT);
    assert_int_equal(kvc_parse_u64("8k", "f", &u, NULL), KVC_ERR_INPUT);
    assert_int_equal(kvc_parse_u64("", "f", &u, NULL), KVC_ERR_INPUT);
    assert_int_equal(u, 1000);
    assert_int_equal(kvc_parse_double("-2.5e-3", "f", &d, NULL), KVC_OK);
    assert_true(d == -2.5e-3);
    assert_int_equal(kvc_parse_double("nan", "f", &d, NULL), KVC_ERR_INPUT);
    assert_int_equal(kvc_parse_double("1e999", "f", &d, NULL), KVC_ERR_INPUT);
}

static void names_fold_case_and_dashes(void **state)
{
    (void)state;
    assert_true(kvc_name_equal("h200-sxm", "H200_SXM"));
    assert_true(kvc_name_equal("", ""));
    assert_false(kvc_name_equal("h200", "h200-sxm"));
    assert_false(kvc_name_equal("h200-sxm", "h200"));
    assert_false(kvc_name_equal("a.b", "a-b"));
}

static void the_nearest_name_is_found_or_none(void **state)
{
    static const char *const names[] = {"import", "inspect", "ceiling", "replay", "report",
                                        "tiers.dram.capacity", "tiers.nvme.capacity", NULL};
    (void)state;
    assert_string_equal(kvc_name_nearest("imprt", names), "import");
    assert_string_equal(kvc_name_nearest("REPLYA", names), "replay");
    assert_string_equal(kvc_name_nearest("celing", names), "ceiling");
    assert_string_equal(kvc_name_nearest("tiers.dram.capcity", names), "tiers.dram.capacity");
    assert_string_equal(kvc_name_nearest("tiers.nvme_capacity", names), "tiers.nvme.capacity");
    assert_string_equal(kvc_name_nearest("insp", names), "inspect");
    assert_null(kvc_name_nearest("zzz", names));
    assert_null(kvc_name_nearest("", names));
    char longer[300];
    memset(longer, 'a', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_null(kvc_name_nearest(longer, names));
}

static void digits_are_those_of_the_library(void **state)
{
    char digits[KVC_U64_DIGITS], text[32];
    (void)state;
    for (uint64_t v = 1, k = 0; k <= 64; k++, v *= 2)
        for (uint64_t d = 0; d < 3; d++) {
            size_t n = kvc_u64_digits(v + d - 1, digits);
            assert_int_equal(n, snprintf(text, sizeof(text), "%" PRIu64, v + d - 1));
            assert_memory_equal(digits, text, n);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_those_of_the_library),
        cmocka_unit_test(bytes_in_every_unit),
        cmocka_unit_test(times_in_every_unit),
        cmocka_unit_test(rates_in_bytes_and_bits),
        cmocka_unit_test(what_is_not_a_quantity_is_refused_and_left_alone),
        cmocka_unit_test(a_bare_number_gets_a_hint),
        cmocka_unit_test(formatted_quantities_read_back_exactly),
        cmocka_unit_test(formatted_quantities_are_short),
        cmocka_unit_test(plain_numbers),
        cmocka_unit_test(names_fold_case_and_dashes),
        cmocka_unit_test(the_nearest_name_is_found_or_none),
    };
    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
