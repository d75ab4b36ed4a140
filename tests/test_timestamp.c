/* SPDX-License-Identifier: Apache-2.0
 * Times as logs write them, against the C library's calendar. */
#include "base/rng.h"
#include "traces/parse/timestamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LAST_S ((int64_t)9214646400) /* 2262-01-01 */

static bool date(const char *text, uint64_t *ns)
{
    return kvc_time_from_date(text, strlen(text), ns);
}

/* A random moment written in every form: 0 to 9 digits, with T or a space, and all zones. */
static void random_dates(void **state)
{
    static const char *const zone[] = { "", "Z", "z", " UTC", "+00:00", "-00:00", "+0000" };
    static const uint64_t unit[] = { 1000000000, 100000000, 10000000, 1000000, 100000,
                                     10000, 1000, 100, 10, 1 };
    uint64_t rng = kvc_rng_stream(7, "dates");
    (void)state;
    for (int k = 0; k < 200000; k++) {
        time_t s = (time_t)kvc_rng_below(&rng, (uint64_t)LAST_S);
        unsigned digits = (unsigned)kvc_rng_below(&rng, 10);
        uint64_t part = digits ? kvc_rng_below(&rng, 1000000000 / unit[digits]) : 0, ns = 0;
        struct tm tm, back = { 0 };
        char text[64];
        gmtime_r(&s, &tm);
        size_t n = strftime(text, sizeof(text), k % 2 ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S",
                            &tm);
        assert_non_null(strptime(text, k % 2 ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &back));
        assert_int_equal(timegm(&back), s);
        if (digits)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%0*llu", k % 7 ? '.' : ',',
                                  (int)digits, (unsigned long long)part);
        snprintf(text + n, sizeof(text) - n, "%s", zone[kvc_rng_below(&rng, 7)]);
        assert_true(date(text, &ns));
        assert_int_equal(ns, (uint64_t)s * 1000000000 + part * (digits ? unit[digits] : 0));
    }
}

/* Written in a zone, the moment stays the same. */
static void random_zones(void **state)
{
    uint64_t rng = kvc_rng_stream(8, "zones");
    (void)state;
    for (int k = 0; k < 100000; k++) {
        time_t s = (time_t)(86400 + kvc_rng_below(&rng, (uint64_t)LAST_S - 2 * 86400));
        int minutes = (int)kvc_rng_below(&rng, 2 * 1439 + 1) - 1439;
        time_t local = s + minutes * 60;
        int m = minutes < 0 ? -minutes : minutes;
        struct tm tm;
        char text[64];
        uint64_t ns = 0;
        gmtime_r(&local, &tm);
        size_t n = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
        if (m % 60 == 0 && k % 3 == 0)
            snprintf(text + n, sizeof(text) - n, "%c%02d", minutes < 0 ? '-' : '+', m / 60);
        else
            snprintf(text + n, sizeof(text) - n, "%s%c%02d%s%02d", k % 5 ? "" : " ",
                     minutes < 0 ? '-' : '+', m / 60, k % 2 ? ":" : "", m % 60);
        assert_true(date(text, &ns));
        assert_int_equal(ns, (uint64_t)s * 1000000000);
    }
}

static void each_day(void **state)
{
    (void)state;
    for (time_t s = 0; s < LAST_S; s += 86400) {
        struct tm tm;
        char text[64];
        uint64_t ns = 0;
        gmtime_r(&s, &tm);
        strftime(text, sizeof(text), "%Y-%m-%d 00:00:00", &tm);
        assert_true(date(text, &ns));
        assert_int_equal(ns, (uint64_t)s * 1000000000);
    }
}

static void refused_dates(void **state)
{
    static const char *const wrong[] = {
        "", "2024-05-10", "2024-05-10 ", "2024-05-10 00:00", "2024-05-10 00:00:00.",
        "2024-05-10 00:00:00.1234567890", "2024-05-10 24:00:00", "2024-05-10 00:60:00",
        "2024-05-10 00:00:61", "2023-02-29 00:00:00", "2100-02-29 00:00:00", "2024-04-31 00:00:00",
        "2024-13-01 00:00:00", "2024-00-10 00:00:00", "2024-05-00 00:00:00",
        "1969-12-31 23:59:59", "1970-01-01 00:00:00+00:01", "2262-01-01 00:00:00",
        "2024-05-10 00:00:00 CET", "2024-05-10 00:00:00+24:00", "2024-05-10 00:00:00+1",
        "2024-05-10 00:00:00Zx", "2024-05-10x00:00:00", "2024-5-10 00:00:00",
        "+2024-05-10 00:00:00",
        "2024-05-10 00:00:00 +", "2024-05-10  00:00:00",
    };
    uint64_t ns;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (date(wrong[i], &ns))
            fail_msg("\"%s\" was taken", wrong[i]);
    assert_true(date("2024-02-29 23:59:60", &ns)); /* a leap second is the next day's first */
    assert_int_equal(ns, (uint64_t)1709251200 * 1000000000);
}

static bool number(const char *text, enum kvc_time_unit unit, uint64_t *ns)
{
    struct kvc_decimal d;
    assert_int_equal(kvc_decimal_parse(text, strlen(text), &d), strlen(text));
    return kvc_time_from_number(&d, unit, ns);
}

static void numbers(void **state)
{
    uint64_t ns;
    (void)state;
    assert_true(number("1.5", KVC_UNIT_S, &ns) && ns == 1500000000);
    assert_true(number("1715299200.123456789", KVC_UNIT_S, &ns) &&
                ns == (uint64_t)1715299200123456789);
    assert_true(number("1715299200123.4567", KVC_UNIT_MS, &ns) &&
                ns == (uint64_t)1715299200123456700);
    assert_true(number("6.1e1", KVC_UNIT_MS, &ns) && ns == 61000000);
    assert_true(number("0.4", KVC_UNIT_NS, &ns) && ns == 0);
    assert_true(number("0.5", KVC_UNIT_NS, &ns) && ns == 1);
    assert_true(number("9223372036854775806", KVC_UNIT_NS, &ns));
    assert_false(number("9223372036854775807", KVC_UNIT_NS, &ns));
    assert_false(number("-1", KVC_UNIT_S, &ns));
    assert_false(number("9.3e9", KVC_UNIT_S, &ns));
    assert_false(number("1e300", KVC_UNIT_NS, &ns));
}

/* The unit of any moment from 2002 to 2095 is told by its size alone. */
static void units_by_size(void **state)
{
    static const enum kvc_time_unit all[] = { KVC_UNIT_S, KVC_UNIT_MS, KVC_UNIT_US, KVC_UNIT_NS };
    uint64_t rng = kvc_rng_stream(9, "units");
    (void)state;
    for (int k = 0; k < 100000; k++) {
        uint64_t ns = ((uint64_t)1009843200 + kvc_rng_below(&rng, 2934835200u)) * 1000000000 +
                      kvc_rng_below(&rng, 1000000000);
        for (size_t i = 0; i < 4; i++) {
            struct kvc_decimal d = { .digits = ns / (uint64_t)all[i] };
            enum kvc_time_unit unit;
            assert_true(kvc_time_epoch_unit(&d, &unit));
            assert_int_equal(unit, all[i]);
        }
        assert_true(kvc_time_is_epoch(ns));
    }
    struct kvc_decimal small = { .digits = 28943983 }; /* BurstGPT's seconds */
    enum kvc_time_unit unit;
    assert_false(kvc_time_epoch_unit(&small, &unit));
}

static void names(void **state)
{
    static const char *const name[] = { "s", "ms", "us", "ns" };
    enum kvc_time_unit unit;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_true(kvc_time_unit_named(name[i], &unit));
        assert_string_equal(kvc_time_unit_name(unit), name[i]);
    }
    assert_false(kvc_time_unit_named("min", &unit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_dates),  cmocka_unit_test(random_zones),
        cmocka_unit_test(each_day),      cmocka_unit_test(refused_dates),
        cmocka_unit_test(numbers),       cmocka_unit_test(units_by_size),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
