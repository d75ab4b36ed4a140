/* SPDX-License-Identifier: Apache-2.0
 * LLMServingSim logs: token ids become chained blocks, answers become known outputs, wrong rows are
 * named. Both readers see every row. */
#include "base/alloc.h"
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

/* ---- by hand ---- */

static void blocks_are_chained_and_tails_their_own(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("chain",
                   "{\"input_toks\":9,\"output_toks\":0,\"arrival_time_ns\":5,"
                   "\"input_tok_ids\":[1,2,3,4,5,6,7,8,9]}\n"
                   "{\"input_toks\":9,\"output_toks\":0,\"arrival_time_ns\":7,"
                   "\"input_tok_ids\":[1, 2, 3, 4, 5, 6, 7, 8, 9]}\n"
                   "{\"arrival_time_ns\":9,\"input_tok_ids\":[1,2,3,4,5,6,7,8],"
                   "\"output_toks\":0,\"input_toks\":8}\n"
                   "{\"input_toks\":4,\"output_toks\":0,\"arrival_time_ns\":10,"
                   "\"input_tok_ids\":[5,6,7,8]}\n" /* second block of the others, elsewhere */
                   "{\"input_toks\":3,\"output_toks\":0,\"arrival_time_ns\":11,"
                   "\"input_tok_ids\":[1,2,3]}\n"
                   "{\"input_toks\":8,\"output_toks\":0,\"arrival_time_ns\":12,"
                   "\"input_tok_ids\":[2,1,3,4,5,6,7,8]}\n"),
        4, &r);
    assert_int_equal(r.accepted, 6);
    assert_int_equal(r.odd, 0);
    assert_int_equal(r.ceil_rows, 3);
    assert_int_equal(r.repeated_ids, 0);
    assert_int_equal(t->block_tokens, 4);
    assert_int_equal(t->arrival_ns[1], 2);
    assert_int_equal(t->prompt_seg[0], t->prompt_seg[1]);
    assert_int_equal(kvc_trace_blocks(t, 0), 3);
    assert_int_equal(log_common_path(t, t->prompt_seg[0], t->prompt_seg[2]), 2);
    assert_int_equal(log_common_path(t, t->prompt_seg[0], t->prompt_seg[3]), 0);
    assert_int_equal(log_common_path(t, t->prompt_seg[0], t->prompt_seg[4]), 0);
    assert_int_equal(log_common_path(t, t->prompt_seg[0], t->prompt_seg[5]), 0);
    kvc_trace_destroy(t);
}

/* 9 + 4 tokens have KV of 12: the block 9 10 11 12 is known, and the next prompt has it. */
static void answers_are_known_outputs(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    struct kvc_trace *t = trace_import(
        trace_text("answers",
                   "{\"input_toks\":9,\"output_toks\":4,\"arrival_time_ns\":0,"
                   "\"input_tok_ids\":[1,2,3,4,5,6,7,8,9],\"output_tok_ids\":[10,11,12,13]}\n"
                   "{\"input_toks\":14,\"output_toks\":1,\"arrival_time_ns\":1,\"input_tok_ids\":"
                   "[1,2,3,4,5,6,7,8,9,10,11,12,13,14],\"output_tok_ids\":[1]}\n"
                   "{\"input_toks\":9,\"output_toks\":3,\"arrival_time_ns\":2,"
                   "\"input_tok_ids\":[1,2,3,4,5,6,7,8,9],\"output_tok_ids\":[10,11,12]}\n"
                   "{\"input_toks\":9,\"output_toks\":8,\"arrival_time_ns\":3,"
                   "\"input_tok_ids\":[1,2,3,4,5,6,7,8,9]}\n"
                   "{\"input_toks\":4,\"output_toks\":5,\"arrival_time_ns\":4,"
                   "\"input_tok_ids\":[7,7,7,7],\"output_tok_ids\":[8,8,8,8,8]}\n"),
        4, &r);
    assert_int_equal(log_output_blocks(t, 0), 3);
    assert_int_equal(log_common_path(t, t->output_seg[0], t->prompt_seg[1]), 3);
    assert_int_equal(log_output_blocks(t, 1), 0); /* 14 tokens: nothing beyond the prompt */
    assert_int_equal(log_output_blocks(t, 2), 0); /* 12 tokens, the last without KV */
    assert_int_equal(log_output_blocks(t, 3), 0); /* not in the log */
    assert_int_equal(log_output_blocks(t, 4), 2);
    kvc_trace_stats(t, &s);
    assert_int_equal(s.blocks, 2 + 1 + 2 + 1); /* the output's block of row 5 is no prompt's */
    kvc_trace_destroy(t);
}

static void without_token_ids_reuse_is_unknown(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    struct kvc_trace *t = trace_import(
        trace_text("none", "{\"input_toks\":1472,\"output_toks\":133,\"arrival_time_ns\":0}\n"
                           "{\"input_toks\":1472,\"output_toks\":133,\"arrival_time_ns\":1e9,"
                           "\"input_tok_ids\":null,\"output_tok_ids\":null}\n"),
        0, &r);
    kvc_trace_stats(t, &s);
    assert_false(s.has_prefix);
    assert_int_equal(r.without_ids, 2);
    assert_int_equal(r.odd, 1); /* 1e9 */
    assert_int_equal(t->arrival_ns[1], 1000000000);
    kvc_trace_destroy(t);
}

/* Rows of a measured run are the workload's requests, by the clock of the machine. */
static void measured_rows_arrive_in_seconds(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("measured",
                   "{\"request_id\":\"bench-0\",\"input_toks\":2358,\"output_toks\":531,"
                   "\"arrival_time\":1787267980.25,\"queued_ts\":27536.66}\n"
                   "{\"request_id\":\"bench-1\",\"input_toks\":1034,\"output_toks\":769,"
                   "\"arrival_time\":1787267981,\"queued_ts\":27537.04}\n"),
        0, &r);
    assert_int_equal(t->n_requests, 2);
    assert_int_equal(r.without_ids, 2);
    assert_int_equal(t->arrival_ns[1], 750000000);
    assert_int_equal(t->input_tokens[0], 2358);
    kvc_trace_destroy(t);
}

/* ---- wrong rows ---- */

static void wrong_rows_are_named(void **state)
{
    (void)state;
#define HEAD "{\"input_toks\":2,\"output_toks\":1,\"arrival_time_ns\":"
    static const struct {
        const char *row, *field, *says;
    } cases[] = {
        { HEAD "-5}", "arrival_time_ns", "-5" },
        { HEAD "1.5}", "arrival_time_ns", "whole nanoseconds" },
        { HEAD "9300000000000000000}", "arrival_time_ns", "9.2e18" },
        { HEAD "\"0\"}", "arrival_time_ns", "text" },
        { "{\"input_toks\":2,\"output_toks\":1}", "arrival_time_ns", "missing" },
        { "{\"arrival_time_ns\":0,\"output_toks\":1}", "input_toks", "missing" },
        { "{\"input_toks\":0,\"output_toks\":1,\"arrival_time_ns\":0}", "input_toks", "0" },
        { "{\"input_toks\":2,\"output_toks\":-1,\"arrival_time_ns\":0}", "output_toks", "-1" },
        { HEAD "0,\"input_tok_ids\":[1]}", "input_tok_ids", "1 token ids where input_toks says 2" },
        { HEAD "0,\"input_tok_ids\":[]}", "input_tok_ids", "0 token ids" },
        { HEAD "0,\"input_tok_ids\":[1,-1]}", "input_tok_ids[1]", "-1" },
        { HEAD "0,\"input_tok_ids\":[4294967296,1]}", "input_tok_ids[0]", "below 2^32" },
        { HEAD "0,\"input_tok_ids\":[1,\"2\"]}", "input_tok_ids[1]", "text" },
        { HEAD "0,\"input_tok_ids\":3}", "input_tok_ids", "list" },
        { HEAD "0,\"output_tok_ids\":[1,2]}", "output_tok_ids", "output_toks says 1" },
        { HEAD "-5,\"input_tok_ids\":[1]}", "arrival_time_ns", "input_tok_ids: 1 token ids" },
        { HEAD "0,\"input_toks\":2}", "", "" },
        { HEAD "0,\"sub_requests\":[]}", "sub_requests", "empty" },
        { HEAD "0,\"sub_requests\":3}", "sub_requests", "list" },
        { "{\"session_id\":\"e\",\"arrival_time_ns\":3,\"sub_requests\":[{\"input_toks\":1}]}",
          "sub_requests[0].output_toks", "missing" },
        { "{\"arrival_time_ns\":3,\"sub_requests\":[{\"input_toks\":1,\"output_toks\":1},"
          "{\"input_toks\":1,\"output_toks\":1,\"tool_duration_ns\":-1}]}",
          "sub_requests[1].tool_duration_ns", "-1" },
        { "{\"sub_requests\":[{\"input_toks\":1,\"output_toks\":1}]}", "arrival_time_ns",
          "missing" },
        { HEAD "0", "", "" },
        { "[1]", "", "object" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[600];
        struct kvc_import_report r;
        snprintf(text, sizeof(text), HEAD "0}\n%s\n" HEAD "1}\n", cases[i].row);
        struct kvc_trace *t = trace_import(trace_text("wrong", text), 0, &r);
        assert_int_equal(r.rows, 3);
        assert_int_equal(r.accepted, 2);
        assert_int_equal(r.bad, 1);
        assert_int_equal(r.shown[0].line, 2);
        if (cases[i].field[0])
            assert_string_equal(r.shown[0].field, cases[i].field);
        if (!strstr(r.shown[0].text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", r.shown[0].text, cases[i].says);
        kvc_trace_destroy(t);
        struct kvc_import_options strict = { .struct_size = sizeof(strict), .strict = true };
        assert_non_null(strstr(trace_import_error(trace_text("wrong", text), &strict), ":2:"));
    }
}

/* ---- sessions ---- */

static void sessions_are_rows_of_requests(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("sessions",
                   "{\"session_id\":\"a\",\"arrival_time_ns\":100,\"sub_requests\":["
                   "{\"input_toks\":4,\"output_toks\":3,\"input_tok_ids\":[1,2,3,4],"
                   "\"output_tok_ids\":[5,6,7],\"tool_duration_ns\":50},"
                   "{\"input_toks\":8,\"output_toks\":1,\"input_tok_ids\":[1,2,3,4,5,6,7,8]},"
                   "{\"input_toks\":2,\"output_toks\":1}]}\n"
                   "{\"session_id\":\"a\",\"arrival_time_ns\":130,\"sub_requests\":["
                   "{\"input_toks\":4,\"output_toks\":3}]}\n"
                   "{\"arrival_time_ns\":131,\"sub_requests\":[{\"input_toks\":4,"
                   "\"output_toks\":3}]}\n"),
        2, &r);
    assert_int_equal(r.accepted, 5);
    assert_int_equal(t->n_sessions, 3);
    assert_int_equal(log_tally(&r, "named like one before"), 1);
    assert_int_equal(t->arrival_ns[3], 50); /* the first's time plus the tool's */
    assert_int_equal(t->think_ns[0], KVC_TIME_NONE);
    assert_int_equal(t->think_ns[3], 50);
    assert_int_equal(t->think_ns[4], 0);
    assert_int_equal(t->input_tokens[3], 8);
    assert_int_equal(log_common_path(t, t->prompt_seg[0], t->prompt_seg[3]), 2);
    assert_int_equal(log_output_blocks(t, 0), 3); /* 4 + 2 tokens have KV */
    kvc_trace_destroy(t);
    log_import_without_memory(trace_text("memory",
                                         "{\"session_id\":\"a\",\"arrival_time_ns\":100,"
                                         "\"sub_requests\":[{\"input_toks\":4,\"output_toks\":3},"
                                         "{\"input_toks\":2,\"output_toks\":1}]}\n"),
                              NULL);
}

static void case_c45_silent_zero_hits(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = SHARED_CASES "c45-silent-zero-hits.llmservingsim.jsonl";
    log_need(path);
    struct kvc_trace *t = trace_import(path, 0, &r);
    struct kvc_trace_stats s;
    kvc_trace_stats(t, &s);
    assert_int_equal(r.rows, 6);
    assert_int_equal(r.accepted, 2 + 2 + 1);
    assert_false(s.has_prefix);
    assert_int_equal(r.without_ids, 5);
    assert_int_equal(r.bad, 2);
    assert_int_equal(r.shown[0].line, 3);
    assert_non_null(strstr(r.shown[0].text, "-5"));
    assert_non_null(strstr(r.shown[0].text, "3 token ids where input_toks says 32"));
    assert_int_equal(r.shown[1].line, 4);
    assert_non_null(strstr(r.shown[1].text, "empty"));
    assert_int_equal(log_tally(&r, "named like one before"), 1);
    assert_int_equal(s.sessions, 2);
    assert_int_equal(t->think_ns[3], 50000000);
    kvc_trace_destroy(t);
}

/* ---- against the tokens themselves ---- */

#define ROWS 40
#define MOST 40

struct token_row {
    uint32_t n_in, n_out, token[2 * MOST]; /* prompt, then answer */
};

static void some_space(FILE *f, uint64_t *rng)
{
    fputs((const char *const[]){ "", "", " ", "\t ", "\r" }[kvc_rng_below(rng, 5)], f);
}

static void write_ids(FILE *f, const uint32_t *v, uint32_t n, uint64_t *rng)
{
    fputc('[', f);
    for (uint32_t i = 0; i < n; i++) {
        some_space(f, rng);
        /* 7.0 is 7, and only the careful reader says so */
        fprintf(f, kvc_rng_below(rng, 200) ? "%u" : "%u.0", v[i]);
        some_space(f, rng);
        fputs(i + 1 < n ? "," : "", f);
    }
    fputc(']', f);
}

static void write_row(FILE *f, const struct token_row *row, uint64_t time, uint64_t *rng)
{
    uint32_t from = (uint32_t)kvc_rng_below(rng, 6);
    for (uint32_t k = 0; k < 6; k++) {
        fputs(k ? "," : "{", f);
        some_space(f, rng);
        switch ((from + k) % 6) {
        case 0:
            fprintf(f, "\"input_toks\":%u", row->n_in);
            break;
        case 1:
            fprintf(f, "\"output_toks\" :%u", row->n_out);
            break;
        case 2:
            fprintf(f, "\"arrival_time_ns\":%llu", (unsigned long long)time);
            break;
        case 3:
            fputs("\"input_tok_ids\": ", f);
            write_ids(f, row->token, row->n_in, rng);
            break;
        case 4:
            fputs("\"output_tok_ids\":", f);
            write_ids(f, row->token + row->n_in, row->n_out, rng);
            break;
        default:
            fputs("\"more\": {\"a\": [1, null]}", f);
        }
        some_space(f, rng);
    }
    fputs("}\n", f);
}

static uint32_t alike(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb)
{
    uint32_t n = 0;
    while (n < na && n < nb && a[n] == b[n])
        n++;
    return n;
}

static uint32_t known_tokens(const struct token_row *a)
{
    return a->n_in + (a->n_out ? a->n_out - 1 : 0);
}

static void check_pair(const struct kvc_trace *t, const struct token_row *row, uint32_t b, size_t i,
                       size_t j)
{
    const struct token_row *x = &row[i], *y = &row[j];
    uint32_t n = alike(x->token, x->n_in, y->token, y->n_in);
    uint32_t same = n / b + (n % b && n == x->n_in && n == y->n_in); /* equal tails too */
    assert_int_equal(log_common_path(t, t->prompt_seg[i], t->prompt_seg[j]), same);
    uint32_t known = known_tokens(x) / b;
    if (known <= x->n_in / b)
        known = 0;
    assert_int_equal(log_output_blocks(t, i), known);
    if (!known)
        return;
    n = alike(x->token, known_tokens(x), y->token, y->n_in);
    assert_int_equal(log_common_path(t, t->output_seg[i], t->prompt_seg[j]),
                     n / b < known ? n / b : known);
    if (log_output_blocks(t, j)) {
        n = alike(x->token, known_tokens(x), y->token, known_tokens(y));
        assert_int_equal(log_common_path(t, t->output_seg[i], t->output_seg[j]), n / b);
    }
}

static void sharing_is_that_of_the_tokens(void **state)
{
    (void)state;
    static struct token_row row[ROWS];
    uint64_t rng = 11;
    for (unsigned round = 0; round < 60; round++) {
        uint32_t block = 1 + (uint32_t)kvc_rng_below(&rng, 7);
        const char *path = trace_path("random");
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        for (size_t i = 0; i < ROWS; i++) {
            row[i].n_in = 1 + (uint32_t)kvc_rng_below(&rng, MOST);
            row[i].n_out = (uint32_t)kvc_rng_below(&rng, MOST);
            const struct token_row *like = i ? &row[kvc_rng_below(&rng, i)] : &row[0];
            uint32_t keep = (uint32_t)kvc_rng_below(&rng, 2 * MOST);
            for (uint32_t k = 0; k < row[i].n_in + row[i].n_out; k++)
                row[i].token[k] = i && k < keep && k < like->n_in + like->n_out
                                      ? like->token[k]
                                      : (uint32_t)kvc_rng_below(&rng, 3) * 2147483647u;
            write_row(f, &row[i], i, &rng);
        }
        assert_int_equal(fclose(f), 0);
        struct kvc_import_report r;
        struct kvc_trace *t = trace_import(path, block, &r);
        assert_int_equal(r.accepted, ROWS);
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < ROWS; j++)
                check_pair(t, row, block, i, j);
        kvc_trace_destroy(t);
    }
}

static void running_out_of_memory_is_reported(void **state)
{
    (void)state;
    const char *path = trace_text(
        "memory", "{\"input_toks\":3,\"output_toks\":6,\"arrival_time_ns\":0,"
                  "\"input_tok_ids\":[1,2,3],\"output_tok_ids\":[4,5,6,7,8,9]}\n"
                  "{\"input_toks\":3.0,\"output_toks\":2,\"arrival_time_ns\":1,"
                  "\"input_tok_ids\":[1,2,3],\"output_tok_ids\":[4,5]}\n");
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = 2 };
    enum kvc_status status = KVC_ERR_NOMEM;
    uint64_t k = 0;
    while (status != KVC_OK) {
        struct kvc_trace *t = NULL;
        kvc_alloc_fail_after(++k);
        status = kvc_trace_import(&t, &path, 1, &o, NULL, NULL);
        kvc_alloc_fail_after(0);
        if (status != KVC_OK)
            assert_int_equal(status, KVC_ERR_NOMEM);
        kvc_trace_destroy(t);
    }
    assert_true(k > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_chained_and_tails_their_own),
        cmocka_unit_test(answers_are_known_outputs),
        cmocka_unit_test(without_token_ids_reuse_is_unknown),
        cmocka_unit_test(measured_rows_arrive_in_seconds),
        cmocka_unit_test(wrong_rows_are_named),
        cmocka_unit_test(sessions_are_rows_of_requests),
        cmocka_unit_test(case_c45_silent_zero_hits),
        cmocka_unit_test(sharing_is_that_of_the_tokens),
        cmocka_unit_test(running_out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
