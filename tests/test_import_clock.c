/* SPDX-License-Identifier: Apache-2.0
 * The clock of a log: units told by size, clocks that start over or go wrong, rows out of order,
 * windows, and arrivals of logs that have none. */
#include "base/rng.h"
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S ((uint64_t)1000000000)

static char text[1 << 16];

/* A BurstGPT log of these times, its first request of 1 token, the next of 2, .. */
static const char *log_of(const char *name, const char *const *times, size_t n)
{
    size_t used = (size_t)snprintf(text, sizeof(text), "Timestamp,Model,Request tokens,Response "
                                   "tokens,Total tokens,Log Type\n");
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s,m,%zu,1,%zu,x\n", times[i],
                                 i + 1, i + 2);
    return trace_file(name, text, used);
}

static struct kvc_trace *open_log(const char *path, const struct kvc_import_options *o,
                                  struct kvc_import_report *r)
{
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    if (kvc_trace_import(&t, &path, 1, o, r, &err) != KVC_OK)
        fail_msg("%s", err.text);
    return t;
}

static uint64_t tallied(const struct kvc_import_report *r, const char *words)
{
    for (uint32_t i = 0; i < r->n_tallies; i++)
        if (strstr(r->tallies[i].text, words))
            return r->tallies[i].rows;
    return 0;
}

static void assert_row(const struct kvc_trace *t, uint64_t i, uint64_t ns, uint32_t tokens)
{
    assert_int_equal(t->arrival_ns[i], ns);
    assert_int_equal(t->input_tokens[i], tokens);
}

/* ---- units ---- */

static void epoch_units(void **state)
{
    static const char *const same[4][3] = {
        { "1715299200", "1715299201.5", "1715299202" },
        { "1715299200000", "1715299201500", "1715299202e3" },
        { "1715299200000000", "1715299201500000", "1715299202000000" },
        { "1715299200000000000", "1715299201500000000", "1715299202000000000" } };
    static const char *const unit[] = { "s", "ms", "us", "ns" };
    char words[80];
    struct kvc_import_report r;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct kvc_trace *t = open_log(log_of("epoch.csv", same[i], 3), NULL, &r);
        assert_row(t, 0, 0, 1);
        assert_row(t, 1, S + S / 2, 2);
        assert_row(t, 2, 2 * S, 3);
        snprintf(words, sizeof(words), "times are taken as %s since 1970", unit[i]);
        assert_int_equal(log_note(&r, words), i != 0); /* s is what the format has */
        kvc_trace_destroy(t);
    }
}

static void mixed_units(void **state)
{
    static const char *const times[] = { "1715299200", "1715299201500", "1715299202",
                                         "2024-05-10 00:00:03Z", "1715299204000000000" };
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = open_log(log_of("mixed.csv", times, 5), NULL, &r);
    static const uint64_t at[] = { 0, S + S / 2, 2 * S, 3 * S, 4 * S };
    for (uint64_t i = 0; i < 5; i++)
        assert_row(t, i, at[i], (uint32_t)i + 1);
    assert_int_equal(tallied(&r, "times in ms since 1970"), 1);
    assert_int_equal(tallied(&r, "times in ns since 1970"), 1);
    kvc_trace_destroy(t);
}

/* A clock with an origin of its own keeps its unit, however large its numbers grow. */
static void stated_and_usual_units(void **state)
{
    static const char *const times[] = { "0", "0.25", "1500000000" };
    struct kvc_import_options o = { .struct_size = sizeof(o), .time_unit = "us" };
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = open_log(log_of("us.csv", times, 3), &o, &r);
    assert_row(t, 1, 250, 2);
    assert_row(t, 2, 1500 * S, 3);
    assert_true(log_note(&r, "in us, as --time-unit says"));
    kvc_trace_destroy(t);
    static const char *const epoch[] = { "1715299200", "1715299201" };
    o.time_unit = "ms"; /* the user knows better than the size */
    t = open_log(log_of("ms.csv", epoch, 2), &o, &r);
    assert_row(t, 1, S / 1000, 2);
    kvc_trace_destroy(t);
}

/* ---- order ---- */

static void sorted_stably(void **state)
{
    uint64_t rng = kvc_rng_stream(11, "order");
    char word[400][24];
    const char *times[400];
    uint64_t want_inversions = 0, last = 0;
    struct kvc_import_report r;
    (void)state;
    for (size_t i = 0; i < 400; i++) {
        uint64_t s = kvc_rng_below(&rng, 50);
        snprintf(word[i], sizeof(word[i]), "%u", (unsigned)s);
        times[i] = word[i];
        want_inversions += i && s < last;
        last = s;
    }
    struct kvc_trace *t = open_log(log_of("shuffled.csv", times, 400), NULL, &r);
    assert_int_equal(r.inversions, want_inversions);
    for (uint64_t i = 1; i < 400; i++) {
        assert_true(t->arrival_ns[i] >= t->arrival_ns[i - 1]);
        if (t->arrival_ns[i] == t->arrival_ns[i - 1])
            assert_true(t->input_tokens[i] > t->input_tokens[i - 1]);
    }
    kvc_trace_destroy(t);
}

static void clock_starts_over(void **state)
{
    static const char *const times[] = { "10", "100", "500", "1000", "12", "50", "300",
                                         "0",  "1",   "2" };
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = open_log(log_of("restart.csv", times, 10), NULL, &r);
    /* 1000 and what was 12 are one moment; so are what were 300 and 0. */
    static const uint64_t at[] = { 0, 90, 490, 990, 990, 1028, 1278, 1278, 1279, 1280 };
    for (uint64_t i = 0; i < 10; i++)
        assert_row(t, i, at[i] * S, (uint32_t)i + 1);
    assert_int_equal(r.inversions, 2);
    assert_int_equal(tallied(&r, "the clock starts over here"), 2);
    assert_true(log_note(&r,
                         "starts over 2 times, first in line 6 (from 1000.0 s back to 12.0 s)"));
    kvc_trace_destroy(t);
}

static void no_clock_that_starts_over(void **state)
{
    static const char *const shuffled[] = { "10", "100", "500", "1000", "400", "450", "460" };
    static const char *const few[] = { "0", "1000", "0", "1000" };
    static const char *const dates[] = { "1715299200", "1715299300", "1715299400", "1715299200",
                                         "1715299300", "1715299400" };
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = open_log(log_of("a.csv", shuffled, 7), NULL, &r);
    assert_row(t, 6, 990 * S, 4);
    assert_int_equal(tallied(&r, "more than a minute earlier"), 1);
    kvc_trace_destroy(t);
    t = open_log(log_of("b.csv", few, 4), NULL, &r);
    assert_row(t, 1, 0, 3);
    kvc_trace_destroy(t);
    t = open_log(log_of("c.csv", dates, 6), NULL, &r);
    assert_row(t, 1, 0, 4); /* a clock since 1970 does not start over */
    assert_int_equal(tallied(&r, "more than a minute earlier"), 1);
    kvc_trace_destroy(t);
}

static void times_that_cannot_be(void **state)
{
    static const char *const times[] = { "1715299200", "-5", "1715299201", "0", "soon",
                                         "3999999999", "1715299203", "1e18" };
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = open_log(log_of("wrong.csv", times, 8), NULL, &r);
    assert_int_equal(t->n_requests, 3);
    assert_row(t, 2, 3 * S, 7);
    assert_int_equal(r.bad, 5);
    static const uint64_t line[] = { 3, 5, 6, 7, 9 };
    static const char *const words[] = {
        "a time is expected", "54 years before the file's first request (line 2)",
        "a time is expected", "72 years after", "years before" };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(r.shown[i].line, line[i]);
        if (!strstr(r.shown[i].text, words[i]) && i != 4)
            fail_msg("%s", r.shown[i].text);
    }
    kvc_trace_destroy(t);
}

/* ---- windows ---- */

static void windows(void **state)
{
    static const char *const times[] = { "100", "90", "130", "110", "95", "91", "189", "190" };
    struct kvc_import_report r, whole;
    (void)state;
    const char *path = log_of("window.csv", times, 8);
    struct kvc_trace *all = open_log(path, NULL, &whole);
    for (uint64_t begin = 0; begin < 102; begin += 7) {
        for (uint64_t end = begin + 5; end <= 110; end += 11) {
            struct kvc_import_options o = { .struct_size = sizeof(o),
                                            .window_begin_ns = begin * S,
                                            .window_end_ns = end == 106 ? 0 : end * S };
            struct kvc_trace *t = NULL;
            uint64_t n = 0, first = 0;
            for (uint64_t i = 0; i < all->n_requests; i++) {
                bool in = all->arrival_ns[i] >= o.window_begin_ns &&
                          (!o.window_end_ns || all->arrival_ns[i] < o.window_end_ns);
                first = in && !n ? i : first;
                n += in;
            }
            if (kvc_trace_import(&t, &path, 1, &o, &r, NULL) != KVC_OK) {
                assert_int_equal(n, 0);
                continue;
            }
            assert_int_equal(t->n_requests, n);
            assert_int_equal(r.accepted, n);
            assert_int_equal(tallied(&r, "outside the window"), 8 - n);
            for (uint64_t i = 0; i < n; i++)
                assert_row(t, i, all->arrival_ns[first + i] - all->arrival_ns[first],
                           all->input_tokens[first + i]);
            kvc_trace_destroy(t);
        }
    }
    kvc_trace_destroy(all);
    struct kvc_import_options o = { .struct_size = sizeof(o), .window_begin_ns = 200 * S };
    assert_non_null(strstr(trace_import_error(path, &o), "the last comes 100.0 s after it"));
}

/* Blocks that only requests outside touch are gone, as if those rows had never been there. */
static void window_of_blocks(void **state)
{
    static const char head[] = "{\"timestamp\":0,\"input_length\":1024,\"output_length\":1,"
                               "\"hash_ids\":[1,2]}\n";
    static const char tail[] =
        "{\"timestamp\":5000,\"input_length\":1024,\"output_length\":1,\"hash_ids\":[1,3]}\n"
        "{\"timestamp\":6000,\"input_length\":1536,\"output_length\":1,\"hash_ids\":[1,3,4]}\n";
    struct kvc_import_options o = { .struct_size = sizeof(o), .window_begin_ns = S };
    struct kvc_import_report r;
    (void)state;
    snprintf(text, sizeof(text), "%s%s", head, tail);
    struct kvc_trace *part = open_log(trace_text("part.jsonl", text), &o, &r);
    struct kvc_trace *alone = open_log(trace_text("alone.jsonl", tail), NULL, &r);
    assert_string_equal(part->digest, alone->digest);
    kvc_trace_destroy(part);
    kvc_trace_destroy(alone);
}

/* ---- arrivals ---- */

static void arrivals(void **state)
{
    static const char *const wrong[] = { "", "poisson", "poisson:", "poisson:0", "poisson:-1",
                                         "poisson:x", "gamma:2", "poisson:2/h", "poisson:1e10" };
    const char *path = trace_text("lengths.csv", "num_prefill_tokens,num_decode_tokens\n"
                                                 "1,2\n3,4\n5,6\n");
    struct kvc_import_options o = { .struct_size = sizeof(o), .arrivals = "poisson:2.5/s" };
    struct kvc_trace *t = NULL;
    struct kvc_import_report r;
    (void)state;
    assert_int_equal(kvc_trace_import(&t, &path, 1, &o, &r, NULL), KVC_OK);
    assert_int_equal(t->n_requests, 3);
    assert_row(t, 0, 0, 1);
    assert_true(t->arrival_ns[2] > 0);
    assert_int_equal(r.inversions, 0);
    kvc_trace_destroy(t);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        o.arrivals = wrong[i];
        assert_int_equal(kvc_trace_import(&t, &path, 1, &o, &r, NULL), KVC_ERR_USAGE);
    }
    /* A log that states times keeps them. */
    const char *timed = trace_text("timed.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n"
                                                "0,1,2\n7,3,4\n");
    o.arrivals = "poisson:1";
    assert_int_equal(kvc_trace_import(&t, &timed, 1, &o, &r, NULL), KVC_OK);
    assert_row(t, 1, 7 * S, 3);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epoch_units),
        cmocka_unit_test(mixed_units),
        cmocka_unit_test(stated_and_usual_units),
        cmocka_unit_test(sorted_stably),
        cmocka_unit_test(clock_starts_over),
        cmocka_unit_test(no_clock_that_starts_over),
        cmocka_unit_test(times_that_cannot_be),
        cmocka_unit_test(windows),
        cmocka_unit_test(window_of_blocks),
        cmocka_unit_test(arrivals),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
