/* SPDX-License-Identifier: Apache-2.0
 * Importing Mooncake logs: values keep, wrong rows are named, block sizes are told from lengths
 * and ids. */
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- values ---- */

static void numbers_keep_their_value(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("times", "{\"timestamp\":60.5,\"input_length\":1,\"output_length\":0}\n"
                            "{\"timestamp\":61,\"input_length\":1,\"output_length\":1}\n"
                            "{\"timestamp\":61.0,\"input_length\":1,\"output_length\":1}\r\n"
                            "\n  \r\n"
                            "{\"timestamp\":6.1e1,\"input_length\":1,\"output_length\":1}\n"
                            "{\"timestamp\":61.0000007,\"input_length\":1.0,\"output_length\":1}"),
        0, &r);
    assert_int_equal(t->n_requests, 5);
    for (uint64_t i = 1; i < 4; i++)
        assert_int_equal(t->arrival_ns[i], 500000);
    assert_int_equal(t->arrival_ns[4], 500001);
    assert_int_equal(r.rows, 5);
    assert_int_equal(r.blank, 2);
    assert_int_equal(r.odd, 1); /* 1.0 tokens */
    assert_int_equal(r.zero_output, 1);
    assert_int_equal(t->block_tokens, 0);
    struct kvc_trace_stats s;
    kvc_trace_stats(t, &s);
    assert_false(s.has_prefix);
    kvc_trace_destroy(t);
}

static void ids_are_exact_to_64_bits(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("big", "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,"
                          "\"hash_ids\":[18446744073709551615]}\n"
                          "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,"
                          "\"hash_ids\":[18446744073709551614]}\n"
                          "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,"
                          "\"hash_ids\":[9007199254740993]}\n"
                          "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,"
                          "\"hash_ids\":[9007199254740992]}\n"
                          "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,"
                          "\"hash_ids\":[9007199254740993.0]}\n"),
        0, &r);
    assert_int_equal(t->n_segments, 4);
    assert_int_equal(t->prompt_seg[4], t->prompt_seg[2]);
    kvc_trace_destroy(t);
}

static void text_ids_are_their_own_space(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("text", "{\"timestamp\":0,\"input_length\":1024,\"output_length\":1,"
                           "\"hash_ids\":[\"A\",\"0x1F\"]}\n"
                           "{\"timestamp\":1,\"input_length\":1024,\"output_length\":1,"
                           "\"hash_ids\":[\"A\",\"B\"]}\n"
                           "{\"timestamp\":2,\"input_length\":1024,\"output_length\":1,"
                           "\"hash_ids\":[0,1]}\n"
                           "{\"timestamp\":3,\"input_length\":1024,\"output_length\":1,"
                           "\"hash_ids\":[0,\"B\"]}\n"),
        0, &r);
    assert_int_equal(r.accepted, 3);
    assert_int_equal(r.bad, 1);
    assert_string_equal(r.shown[0].field, "hash_ids[1]");
    assert_int_equal(t->n_segments, 4); /* A; 0x1F; B; 0 1 */
    kvc_trace_destroy(t);
}

static void models_do_not_share(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("models", "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,"
                             "\"hash_ids\":[1],\"model\":\"m\",\"tenant\":\"x\"}\n"
                             "{\"timestamp\":1,\"input_length\":512,\"output_length\":1,"
                             "\"hash_ids\":[1],\"model\":\"n\",\"user\":\"y\"}\n"
                             "{\"timestamp\":2,\"input_length\":512,\"output_length\":1,"
                             "\"hash_ids\":[1],\"model\":\"m\",\"user\":\"x\"}\n"),
        0, &r);
    assert_int_equal(t->n_segments, 2);
    assert_int_equal(t->prompt_seg[0], t->prompt_seg[2]);
    assert_int_equal(t->n_models, 2);
    assert_string_equal(t->model_names[1], "n");
    assert_int_equal(t->n_tenants, 2);
    assert_string_equal(t->tenant_names[t->tenant[1]], "y");
    kvc_trace_destroy(t);
}

static void turns_without_a_time_follow_their_session(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("turns", "{\"timestamp\":1000,\"input_length\":9,\"output_length\":1,"
                            "\"session_id\":4}\n"
                            "{\"delay\":250,\"input_length\":9,\"output_length\":1,"
                            "\"session_id\":\"4\"}\n"
                            "{\"delay\":250,\"input_length\":9,\"output_length\":1,"
                            "\"session_id\":\"5\"}\n"),
        0, &r);
    assert_int_equal(r.accepted, 2);
    assert_int_equal(t->arrival_ns[1], 250000000);
    assert_int_equal(t->think_ns[1], 250000000);
    assert_int_equal(t->session[1], t->session[0]);
    assert_int_equal(r.shown[0].line, 3);
    assert_string_equal(r.shown[0].field, "timestamp");
    kvc_trace_destroy(t);
}

/* Rows of Dynamo's agentic replay: a tool's time is part of the pause, what else they say is
 * counted. */
static void agentic_rows_are_taken(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("agentic",
                   "{\"request_id\":\"a\",\"session_id\":\"s\",\"timestamp\":1000.0,"
                   "\"input_length\":9,\"output_length\":1,\"prefix_reset\":true,"
                   "\"branches\":[\"b\"],\"priority\":3,\"request_kind\":\"root\"}\n"
                   "{\"session_id\":\"s\",\"input_length\":9,\"output_length\":1,"
                   "\"wait_for\":[\"a\"],\"delay\":10.5,\"tool_wait_ms\":2500}\n"
                   "{\"session_id\":\"s\",\"input_length\":9,\"output_length\":1,"
                   "\"tool_wait_ms\":1,\"wait_for\":[],\"branches\":null,"
                   "\"prefix_reset\":false}\n"),
        0, &r);
    assert_int_equal(r.accepted, 3);
    assert_int_equal(t->think_ns[1], 2510500000u);
    assert_int_equal(t->think_ns[2], 1000000);
    assert_int_equal(t->arrival_ns[2], 2511500000u);
    assert_int_equal(log_tally(&r, "wait_for"), 1);
    assert_int_equal(log_tally(&r, "branches"), 1);
    assert_int_equal(log_tally(&r, "prefix_reset"), 1);
    assert_int_equal(log_tally(&r, "a priority"), 1);
    assert_int_equal(log_tally(&r, "request_kind root"), 1);
    kvc_trace_destroy(t);
}

static void seconds_are_noticed_and_can_be_named(void **state)
{
    (void)state;
    struct kvc_import_report r;
#define AT(time) "{\"timestamp\":" time ",\"input_length\":9,\"output_length\":1}\n"
    const char *path = trace_text("s", AT("0.0") AT("0.2") AT("0.4"));
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_int_equal(t->arrival_ns[2], 400000);
    assert_true(log_note(&r, "3 rows within 0.4 ms"));
    assert_true(log_note(&r, "--time-unit s"));
    kvc_trace_destroy(t);
    struct kvc_import_options o = { .struct_size = sizeof(o), .time_unit = "s" };
    t = log_import(&path, 1, &o, &r);
    assert_int_equal(t->arrival_ns[1], 200000000);
    assert_int_equal(t->arrival_ns[2], 400000000);
    assert_false(log_note(&r, "name --time-unit"));
    kvc_trace_destroy(t);
}

static void fields_can_be_chosen(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = trace_text(
        "fields", "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,\"hash_ids\":[1],"
                  "\"team\":\"x\",\"user\":\"u\"}\n"
                  "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,\"hash_ids\":[1],"
                  "\"team\":7,\"user\":\"u\"}\n");
    struct kvc_import_options o = { .struct_size = sizeof(o), .tenant_field = "team" };
    struct kvc_trace *t = log_import(&path, 1, &o, &r);
    assert_int_equal(t->n_tenants, 2);
    assert_string_equal(t->tenant_names[1], "7");
    assert_int_equal(t->n_segments, 1);
    kvc_trace_destroy(t);
    o = (struct kvc_import_options){ .struct_size = sizeof(o), .key_field = "team" };
    t = log_import(&path, 1, &o, &r);
    assert_int_equal(t->n_tenants, 1);
    assert_int_equal(t->n_segments, 2);
    kvc_trace_destroy(t);
}

/* Shared: 4 blocks hit; with ids of each instance its own: 2, and 4 blocks where there were 2. */
static void case_c36_salted_ids(void **state)
{
    (void)state;
    const char *path = SHARED_CASES "c36-salted-per-instance.mooncake.jsonl";
    struct kvc_import_report r;
    struct kvc_hits h;
    struct kvc_trace_stats s;
    log_need(path);
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_int_equal(kvc_ceiling_content(t, &h, NULL), KVC_OK);
    assert_int_equal(h.hit_blocks, 4);
    assert_int_equal(r.key_hit_blocks_shared, 4); /* told without being asked */
    assert_int_equal(r.key_hit_blocks_apart, 2);
    assert_int_equal(r.key_stored_blocks, 4);
    assert_int_equal(r.key_copied_blocks, 2);
    assert_true(log_note(&r, "2 of 4 stored blocks can't be read by the other"));
    kvc_trace_destroy(t);
    struct kvc_import_options o = { .struct_size = sizeof(o), .key_field = "instance" };
    t = log_import(&path, 1, &o, &r);
    assert_int_equal(kvc_ceiling_content(t, &h, NULL), KVC_OK);
    assert_int_equal(h.hit_blocks, 2);
    kvc_trace_stats(t, &s);
    assert_int_equal(s.blocks, 4);
    kvc_trace_destroy(t);
}

/* ---- wrong rows ---- */

#define GOOD "{\"timestamp\":0,\"input_length\":512,\"output_length\":1,\"hash_ids\":[1]}\n"

static void wrong_rows_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *row, *field, *says;
    } cases[] = {
        { "{\"timestamp\":-1,\"input_length\":5,\"output_length\":1}", "timestamp", "-1" },
        { "{\"timestamp\":1e300,\"input_length\":5,\"output_length\":1}", "timestamp", "9.2e12" },
        { "{\"timestamp\":18446744073709551616,\"input_length\":5,\"output_length\":1}",
          "timestamp", "18446744073709551616" },
        { "{\"timestamp\":\"5\",\"input_length\":5,\"output_length\":1}", "timestamp", "text" },
        { "{\"timestamp\":null,\"input_length\":5,\"output_length\":1}", "timestamp", "null" },
        { "{\"input_length\":5,\"output_length\":1}", "timestamp", "missing" },
        { "{\"timestamp\":0,\"output_length\":1}", "input_length", "missing" },
        { "{\"timestamp\":0,\"input_length\":5}", "output_length", "missing" },
        { "{\"timestamp\":0,\"input_length\":0,\"output_length\":1}", "input_length", "from 1" },
        { "{\"timestamp\":0,\"input_length\":1.5,\"output_length\":1}", "input_length", "1.5" },
        { "{\"timestamp\":0,\"input_length\":5000000000,\"output_length\":1}", "input_length",
          "2^31-1" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":-2}", "output_length", "-2" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":7}", "hash_ids",
          "a list" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,"
          "\"hash_ids\":[1,18446744073709551616]}", "hash_ids[1]", "below 2^64" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":[1,2.5]}",
          "hash_ids[1]", "2.5" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":[[1]]}",
          "hash_ids[0]", "a list" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"session_id\":[]}",
          "session_id", "a list" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"delay\":-3}", "delay", "-3" },
        { "{\"timestamp\":0,\"timestamp\":1,\"input_length\":5,\"output_length\":1}", "timestamp",
          "twice" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"a\":{\"b\":1,\"b\":2}}", "b",
          "twice" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1", "", "missing" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,}", "", "JSON" },
        { "{\"timestamp\":0,\"input_length\":5,\"output_length\":1}}", "", "not JSON" },
        { "{\"timestamp\":007,\"input_length\":5,\"output_length\":1}", "", "number" },
        { "[1,2]", "", "one JSON object" },
        { "nonsense", "", "not JSON" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1024];
        struct kvc_import_report r;
        snprintf(text, sizeof(text), GOOD "\n%s\n" GOOD, cases[i].row);
        struct kvc_trace *t = trace_import(trace_text("bad", text), 0, &r);
        assert_int_equal(r.accepted, 2);
        assert_int_equal(r.bad, 1);
        assert_int_equal(r.shown[0].line, 3);
        assert_string_equal(r.shown[0].field, cases[i].field);
        if (!strstr(r.shown[0].text, cases[i].says))
            fail_msg("%s: %s", cases[i].row, r.shown[0].text);
        kvc_trace_destroy(t);

        struct kvc_import_options strict = { .struct_size = sizeof(strict), .strict = true };
        assert_non_null(strstr(trace_import_error(trace_path("bad"), &strict), "/bad:3:"));
    }
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    char text[4096];
    struct kvc_import_report r;
    for (unsigned depth = 1; depth < 400; depth += 7) {
        size_t n = (size_t)snprintf(text, sizeof(text), GOOD "{\"timestamp\":0,\"input_length\":5,"
                                    "\"output_length\":1,\"x\":");
        memset(text + n, '[', depth);
        memset(text + n + depth, ']', depth);
        strcpy(text + n + 2 * depth, "}\n");
        struct kvc_trace *t = trace_import(trace_text("deep", text), 0, &r);
        assert_int_equal(r.accepted, depth < 64 ? 2 : 1);
        kvc_trace_destroy(t);
    }
}

static void no_usable_row_is_an_error(void **state)
{
    (void)state;
    assert_non_null(strstr(
        trace_import_error(trace_text("none", "{\"input_length\":5,\"output_length\":1}\n"), NULL),
        "/none:1:timestamp: missing"));
    assert_non_null(strstr(trace_import_error(trace_text("what", "a,b\n1,2\n"), NULL), "format"));
}

/* ---- block sizes: shared/cases c04 c05 c06 c33 c54, in rows of our own ---- */

static char *row_to(char *p, unsigned time, unsigned input, const char *id_list)
{
    return p + sprintf(p, "{\"timestamp\":%u,\"input_length\":%u,\"output_length\":5,"
                          "\"hash_ids\":[%s]}\n", time, input, id_list);
}

static void lengths_are_checked_against_ids(void **state) /* c04 */
{
    (void)state;
    char text[1024], *p = text;
    struct kvc_import_report r;
    p = row_to(p, 0, 10, "0");
    p = row_to(p, 1, 20, "0,1");
    p = row_to(p, 2, 1025, "0,1");
    p = row_to(p, 3, 1024, "0,1");
    row_to(p, 4, 600, "");
    const char *path = trace_text("c04", text);
    for (uint32_t given = 0; given <= 512; given += 512) {
        struct kvc_trace *t = trace_import(path, given, &r);
        assert_int_equal(t->block_tokens, 512);
        assert_int_equal(r.accepted, 4);
        assert_int_equal(r.bad, 1);
        assert_int_equal(r.shown[0].line, 2);
        assert_string_equal(r.shown[0].field, "hash_ids");
        assert_int_equal(r.without_ids, 1);
        assert_int_equal(r.floor_rows, 1);
        assert_int_equal(r.ceil_rows, 1);
        assert_int_equal(t->n_segments, 2); /* the bad row's path is gone: 0 | 1 */
        kvc_trace_destroy(t);
    }
}

static void block_size_is_told_from_rows(void **state) /* c05 */
{
    (void)state;
    char text[1024], *p = text;
    struct kvc_import_report r;
    struct kvc_import_options wrong = { .struct_size = sizeof(wrong), .block_tokens = 512 };
    p = row_to(p, 0, 200, "1,2,3,4");
    p = row_to(p, 1, 330, "1,2,3,5,6,7");
    row_to(p, 2, 129, "1,2,8");
    const char *path = trace_text("c05", text);
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_int_equal(t->block_tokens, 64);
    assert_int_equal(r.bad, 0);
    assert_int_equal(r.ceil_rows, 3);
    assert_non_null(strstr(r.notes[0], "55 to 64"));
    kvc_trace_destroy(t);
    assert_non_null(strstr(trace_import_error(path, &wrong), "/c05:1:hash_ids"));
    t = trace_import(path, 60, &r); /* fits as well, and the user says so */
    assert_int_equal(t->block_tokens, 60);
    kvc_trace_destroy(t);
}

static void a_size_that_could_be_many_is_asked_for(void **state)
{
    (void)state;
    char text[256];
    row_to(text, 0, 100, "1,2,3");
    assert_non_null(strstr(trace_import_error(trace_text("many", text), NULL), "from 34 to 49"));
}

static void tails_may_have_ids_or_not(void **state) /* c06 */
{
    (void)state;
    for (int tail = 0; tail < 2; tail++) {
        char text[1024], *p = text;
        struct kvc_import_report r;
        p = row_to(p, 0, 1100, tail ? "1,2,3" : "1,2");
        p = row_to(p, 1, 1100, tail ? "1,2,3" : "1,2");
        row_to(p, 2, 1300, tail ? "1,2,4" : "1,2");
        struct kvc_trace *t = trace_import(trace_text("c06", text), 0, &r);
        assert_int_equal(tail ? r.ceil_rows : r.floor_rows, 3);
        for (uint64_t i = 0; i < 3; i++) {
            assert_int_equal(kvc_trace_blocks(t, i), 2 + tail);
            assert_int_equal(kvc_trace_full_blocks(t, i), 2);
        }
        assert_int_equal(t->n_segments, tail ? 3 : 1);
        kvc_trace_destroy(t);
    }
}

static void order_duplicates_and_damage(void **state) /* c54 */
{
    (void)state;
    char text[2048], *p = text;
    struct kvc_import_report r;
    p = row_to(p, 3000, 512, "1");
    p = row_to(p, 1000, 1024, "1,2");
    p = row_to(p, 1000, 1024, "1,2");
    p += sprintf(p, "\n");
    p = row_to(p, 2000, 1536, "1,2,2");
    p += sprintf(p, "{\"timestamp\":2500,\"input_length\":512,\"output_length\":5,"
                    "\"hash_ids\":[7]\n"
                    "{\"timestamp\":-1,\"input_length\":512,\"output_length\":5,"
                    "\"hash_ids\":[3]}\n");
    struct kvc_trace *t = trace_import(trace_text("c54", text), 0, &r);
    assert_int_equal(r.rows, 6);
    assert_int_equal(r.accepted, 4);
    assert_int_equal(r.blank, 1);
    assert_int_equal(r.inversions, 1);
    assert_int_equal(r.repeated_ids, 1);
    assert_int_equal(r.shown[0].line, 6);
    assert_int_equal(r.shown[1].line, 7);
    assert_int_equal(t->arrival_ns[0], 0);
    assert_int_equal(t->prompt_seg[0], t->prompt_seg[1]);
    assert_int_equal(t->arrival_ns[2], 1000000000);
    assert_int_equal(t->arrival_ns[3], 2000000000);
    assert_int_equal(kvc_trace_blocks(t, 2), 3);
    kvc_trace_destroy(t);
}

static void hit_rate_case_has_its_blocks(void **state) /* c33: 28 touches, 15 blocks */
{
    (void)state;
    char text[2048], *p = text;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    p = row_to(p, 0, 1100, "1,2,3");
    p = row_to(p, 1, 1100, "1,2,3");
    p = row_to(p, 2, 600, "1,4");
    p = row_to(p, 3, 5000, "20,21,22,23,24,25,26,27,28,29");
    row_to(p, 4, 5120, "20,21,22,23,24,25,26,27,28,30");
    struct kvc_trace *t = trace_import(trace_text("c33", text), 0, &r);
    kvc_trace_stats(t, &s);
    assert_int_equal(s.block_touches, 28);
    assert_int_equal(s.full_block_touches, 24);
    assert_int_equal(s.input_tokens, 12920);
    assert_int_equal(s.blocks, 28 - 13);
    kvc_trace_destroy(t);
}

/* ---- several files; the real log ---- */

static void files_merge_in_time_order(void **state)
{
    (void)state;
    char a[512], b[512];
    struct kvc_import_report r;
    struct kvc_trace *t = NULL;
    row_to(row_to(a, 0, 512, "1"), 20, 513, "1");
    row_to(row_to(b, 10, 514, "1"), 20, 515, "2");
    char first[256];
    strcpy(first, trace_text("a", a));
    const char *paths[] = { first, trace_text("b", b) };
    assert_int_equal(kvc_trace_import(&t, paths, 2, NULL, &r, NULL), KVC_OK);
    assert_int_equal(r.inversions, 0);
    static const uint32_t merged[] = { 512, 514, 513, 515 };
    assert_memory_equal(t->input_tokens, merged, sizeof(merged));
    kvc_trace_destroy(t);
}

static void conversation_trace_has_its_published_counts(void **state)
{
    (void)state;
    const char *path = "../shared/traces/mooncake/conversation_trace.jsonl.zst";
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    log_need(path);
    struct kvc_trace *t = trace_import(path, 0, &r); /* each row by both readers */
    kvc_trace_stats(t, &s);
    assert_int_equal(s.requests, 12031);
    assert_int_equal(s.input_tokens, 144793823);
    assert_int_equal(s.output_tokens, 4122048);
    assert_int_equal(s.block_touches, 288500);
    assert_int_equal(s.blocks, 182790);
    assert_int_equal(s.segment_touches, 37454);
    assert_int_equal(s.segments, 15787);
    assert_int_equal(s.distinct_arrivals, 1180);
    assert_int_equal(s.max_input_tokens, 126195);
    assert_int_equal(s.batch_period_ns, 3000000000);
    assert_int_equal(r.ceil_rows, 12009);
    assert_int_equal(r.odd + r.bad + r.repeated_ids + r.inversions, 0);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_keep_their_value),
        cmocka_unit_test(ids_are_exact_to_64_bits),
        cmocka_unit_test(text_ids_are_their_own_space),
        cmocka_unit_test(models_do_not_share),
        cmocka_unit_test(turns_without_a_time_follow_their_session),
        cmocka_unit_test(agentic_rows_are_taken),
        cmocka_unit_test(seconds_are_noticed_and_can_be_named),
        cmocka_unit_test(fields_can_be_chosen),
        cmocka_unit_test(case_c36_salted_ids),
        cmocka_unit_test(wrong_rows_are_named),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(no_usable_row_is_an_error),
        cmocka_unit_test(lengths_are_checked_against_ids),
        cmocka_unit_test(block_size_is_told_from_rows),
        cmocka_unit_test(a_size_that_could_be_many_is_asked_for),
        cmocka_unit_test(tails_may_have_ids_or_not),
        cmocka_unit_test(order_duplicates_and_damage),
        cmocka_unit_test(hit_rate_case_has_its_blocks),
        cmocka_unit_test(files_merge_in_time_order),
        cmocka_unit_test(conversation_trace_has_its_published_counts),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
