/* SPDX-License-Identifier: Apache-2.0
 * Logs in CSV: Azure, BurstGPT, Vidur, BLIS TraceV2. The shared cases with their answers, the
 * public traces with their totals, and rows that are wrong. */
#include "base/rng.h"
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CASES "../shared/cases/inputs/"
#define TRACES "../shared/traces/"

static struct kvc_trace *import_shared(const char *path, struct kvc_import_report *r)
{
    log_need(path);
    return trace_import(path, 0, r);
}

static void assert_arrivals(const struct kvc_trace *t, const uint64_t *ns, size_t n)
{
    assert_int_equal(t->n_requests, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(t->arrival_ns[i], ns[i]);
}

static void assert_totals(const struct kvc_trace *t, uint64_t requests, uint64_t in, uint64_t out)
{
    struct kvc_trace_stats s;
    kvc_trace_stats(t, &s);
    assert_int_equal(s.requests, requests);
    assert_int_equal(s.input_tokens, in);
    assert_int_equal(s.output_tokens, out);
    assert_false(s.has_prefix);
}

/* ---- Azure ---- */

static void c13_fractions_of_seven_digits(void **state)
{
    static const uint64_t at[] = { 0, 1000000, 8000000, 10000000 };
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = import_shared(CASES "c13-fraction-digits.azure2023.csv", &r);
    assert_arrivals(t, at, 4);
    assert_totals(t, 4, 14310, 59);
    assert_int_equal(r.odd, 0);
    assert_true(log_note(&r, "reuse is unknown"));
    kvc_trace_destroy(t);
}

static void c14_offsets(void **state)
{
    static const uint64_t at[] = { 0, 7250000, 989750000, 1489750000 };
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = import_shared(CASES "c14-offset-suffix.azure2024.csv", &r);
    assert_arrivals(t, at, 4);
    assert_int_equal(r.odd, 1);
    kvc_trace_destroy(t);
}

static void azure_2023(void **state)
{
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    (void)state;
    struct kvc_trace *t = import_shared(TRACES "azure-llm-2023/AzureLLMInferenceTrace_conv.csv.zst",
                                        &r);
    assert_totals(t, 19366, 22361870, 4088665);
    kvc_trace_stats(t, &s);
    assert_int_equal(s.span_ns / 100000000, 35017);
    assert_int_equal(s.max_input_tokens, 14050);
    assert_int_equal(s.max_output_tokens, 1000);
    assert_int_equal(r.odd + r.bad + r.inversions, 0);

    /* Vidur's file holds the same requests. */
    struct kvc_trace *v = import_shared(TRACES "vidur/splitwise_conv.csv.zst", &r);
    assert_totals(v, 19366, 22361870, 4088665);
    for (uint64_t i = 0; i < t->n_requests; i++) {
        int64_t apart = (int64_t)(t->arrival_ns[i] - v->arrival_ns[i]);
        assert_int_equal(t->input_tokens[i], v->input_tokens[i]);
        assert_int_equal(t->output_tokens[i], v->output_tokens[i]);
        assert_in_range(apart + 1000, 0, 2000); /* it rounds to microseconds */
    }
    kvc_trace_destroy(t);
    kvc_trace_destroy(v);
}

static void azure_2025_images(void **state)
{
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = trace_import(
        trace_text("lmm.csv", "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
                              "2025-01-01 00:00:00.5,0,10,1\n"
                              "2025-01-01 00:00:00.75,3,20,0\n"
                              "\"2025-01-01 00:00:01\",1, 30 ,2\n"
                              "2025-01-01 00:00:02,1,0,2\n"
                              "2025-01-01 00:00:03,-1,5,2\n"
                              "2025-01-01 00:00:04,1,5\n"), 0, &r);
    static const uint64_t at[] = { 0, 250000000, 500000000 };
    assert_arrivals(t, at, 3);
    assert_int_equal(r.rows, 6);
    assert_int_equal(r.bad, 2);
    assert_int_equal(r.odd, 1);
    assert_int_equal(r.zero_output, 1);
    assert_int_equal(log_tally(&r, "with images"), 3);
    assert_int_equal(log_tally(&r, "no context token"), 1);
    assert_non_null(strstr(r.shown[0].text, "\"-1\" is wrong"));
    assert_string_equal(r.shown[0].field, "NumImages");
    assert_int_equal(r.shown[1].line, 7);
    kvc_trace_destroy(t);
}

/* What the scanner takes, the careful reader reads the same; and it takes all plain rows. */
static void azure_readers_agree(void **state)
{
    static const char header[] = "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n";
    static const char letters[] = "0123456789 -:.,+ZT\"\r";
    static char text[sizeof(header) + 300 * 80];
    uint64_t rng = kvc_rng_stream(5, "azure rows");
    struct kvc_import_report r;
    uint64_t accepted = 0;
    (void)state;
    for (int k = 0; k < 200; k++) {
        size_t n = (size_t)snprintf(text, sizeof(text), "%s", header);
        for (int i = 0; i < 300; i++) {
            uint64_t second = kvc_rng_below(&rng, 60), digits = kvc_rng_below(&rng, 10);
            size_t begin = n;
            n += (size_t)snprintf(text + n, sizeof(text) - n, "2024-0%u-%02u %02u:%02u:%02u",
                                  (unsigned)kvc_rng_below(&rng, 9) + 1,
                                  (unsigned)kvc_rng_below(&rng, 28) + 1,
                                  (unsigned)kvc_rng_below(&rng, 24),
                                  (unsigned)kvc_rng_below(&rng, 60), (unsigned)second);
            for (uint64_t d = 0; d < digits; d++)
                text[n++] = d ? (char)('0' + kvc_rng_below(&rng, 10)) : '.';
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s,%u,%u,%u\n",
                                  kvc_rng_below(&rng, 3) ? "" : "+00:00",
                                  (unsigned)kvc_rng_below(&rng, 3),
                                  (unsigned)kvc_rng_below(&rng, 1000000),
                                  (unsigned)kvc_rng_below(&rng, 20));
            while (kvc_rng_below(&rng, 4) == 0)
                text[begin + kvc_rng_below(&rng, n - begin - 1)] =
                    letters[kvc_rng_below(&rng, sizeof(letters) - 1)];
        }
        struct kvc_trace *t = trace_import(trace_file("azure.csv", text, n), 0, &r);
        accepted += r.accepted;
        kvc_trace_destroy(t);
    }
    assert_true(accepted > 200 * 150); /* most rows are right */
}

/* ---- BurstGPT ---- */

static void c15_failures_and_offset(void **state)
{
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = import_shared(CASES "c15-failures-and-offset.burstgpt.csv", &r);
    assert_int_equal(t->n_requests, 5);
    assert_int_equal(t->arrival_ns[0], 0);
    assert_int_equal(t->arrival_ns[4], (uint64_t)600 * 1000000000);
    assert_int_equal(r.failed, 1);
    assert_int_equal(t->row_status[1], KVC_ROW_FAILED);
    assert_int_equal(log_tally(&r, "no session ID"), 2);
    assert_int_equal(log_tally(&r, "too short to hold the turn before"), 1);
    assert_int_equal(log_tally(&r, "long enough to hold the turn before"), 1);
    assert_int_equal(t->n_sessions, 1);
    assert_int_equal(t->n_models, 2);
    assert_true(log_note(&r, "Elapsed time of 4 answers: 17.25 s on average"));
    assert_int_equal(t->n_segments, 0);
    kvc_trace_destroy(t);

    t = import_shared(CASES "c15-v1-header.burstgpt.csv", &r);
    assert_totals(t, 3, 1970, 520);
    assert_null(t->session);
    assert_int_equal(t->arrival_ns[2], (uint64_t)113 * 1000000000);
    kvc_trace_destroy(t);
}

static void burstgpt_odd_rows(void **state)
{
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = trace_import(
        trace_text("burst.csv", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log "
                                "Type\n"
                                "5,ChatGPT,470,20,490,Conversation log\n"
                                "6,ChatGPT,0,0,0,Conversation log\n"
                                "7,GPT-4,0,9,9,API log\n"
                                "8,GPT-4,12,0,12,API log\n"
                                "-9,GPT-4,12,5,17,API log\n"), 0, &r);
    assert_int_equal(t->n_requests, 2);
    assert_int_equal(r.failed, 2);
    assert_int_equal(log_tally(&r, "failed before any token"), 1);
    assert_int_equal(r.bad, 2);
    assert_int_equal(r.shown[0].line, 4);
    assert_string_equal(r.shown[0].field, "Request tokens");
    assert_int_equal(r.shown[1].line, 6);
    assert_non_null(strstr(r.shown[1].text, "\"-9\" is wrong: a time is expected: s from 0 on"));
    kvc_trace_destroy(t);
}

/* ---- Vidur ---- */

static void vidur_without_arrivals(void **state)
{
    static const char log[] = TRACES "vidur/arxiv_summarization_stats_llama2_tokenizer_filtered_v2"
                              ".csv.zst";
    const char *path = log;
    struct kvc_import_options o = { .struct_size = sizeof(o), .arrivals = "poisson:5", .seed = 1 };
    struct kvc_trace *t = NULL, *again = NULL, *other = NULL;
    struct kvc_trace_stats s;
    (void)state;
    log_need(log);
    assert_non_null(strstr(trace_import_error(log, NULL), "--arrivals poisson:R"));
    assert_int_equal(kvc_trace_import(&t, &path, 1, &o, NULL, NULL), KVC_OK);
    assert_totals(t, 28257, 73131321, 8234948);
    /* 28,257 gaps of mean 0.2 s: the sum is within five standard errors. */
    kvc_trace_stats(t, &s);
    double want = 28256 * 0.2, off = 5 * 0.2 * 168.1;
    assert_true((double)s.span_ns * 1e-9 > want - off && (double)s.span_ns * 1e-9 < want + off);
    assert_int_equal(kvc_trace_import(&again, &path, 1, &o, NULL, NULL), KVC_OK);
    assert_string_equal(t->digest, again->digest);
    o.seed = 2;
    assert_int_equal(kvc_trace_import(&other, &path, 1, &o, NULL, NULL), KVC_OK);
    assert_string_not_equal(t->digest, other->digest);
    kvc_trace_destroy(t);
    kvc_trace_destroy(again);
    kvc_trace_destroy(other);
}

/* ---- BLIS TraceV2 ---- */

static void c30_prefix_group(void **state)
{
    struct kvc_import_report r;
    struct kvc_hits hits;
    (void)state;
    struct kvc_trace *t = import_shared(CASES "c30-roundtrip.blis-tracev2.csv", &r);
    assert_int_equal(t->n_requests, 3);
    assert_int_equal(kvc_ceiling_content(t, &hits, NULL), KVC_OK);
    assert_int_equal(hits.hit_tokens, 1024);
    assert_int_equal(hits.hit_requests, 1);
    assert_int_equal(r.failed, 1);
    assert_int_equal(t->row_status[2], KVC_ROW_FAILED);
    assert_int_equal(t->n_tenants, 2);
    assert_true(log_note(&r, "measured TTFT (first chunk - send) of 2 answers: mean 80.0 ms, from "
                             "40.0 to 120.0"));
    assert_int_equal(t->prompt_seg[2], KVC_SEG_NONE); /* no group: unknown, not alone */
    kvc_trace_destroy(t);
}

/* Exported and read again, the trace gives the same hits. */
static void c30_round_trip(void **state)
{
    static const char *const formats[] = { "mooncake", "csv" };
    struct kvc_import_report r;
    struct kvc_hits want, got;
    (void)state;
    struct kvc_trace *t = import_shared(CASES "c30-roundtrip.blis-tracev2.csv", &r);
    assert_int_equal(kvc_ceiling_content(t, &want, NULL), KVC_OK);
    for (size_t i = 0; i < 2; i++) {
        const char *path = trace_path(formats[i]);
        assert_int_equal(kvc_trace_export(t, path, formats[i], NULL, NULL), KVC_OK);
        struct kvc_trace *back = trace_import(path, 16, &r);
        assert_int_equal(kvc_ceiling_content(back, &got, NULL), KVC_OK);
        assert_int_equal(got.hit_tokens, 1024);
        assert_int_equal(got.raw_hit_blocks, want.raw_hit_blocks);
        for (uint64_t k = 0; k < back->n_requests; k++) {
            assert_int_equal(back->arrival_ns[k], t->arrival_ns[k]);
            assert_int_equal(back->input_tokens[k], t->input_tokens[k]);
        }
        kvc_trace_destroy(back);
    }
    kvc_trace_destroy(t);
}

#define BLIS_COLUMNS                                                                               \
    "request_id,tenant_id,session_id,round_index,prefix_group,prefix_length,input_tokens,"        \
    "output_tokens,server_input_tokens,arrival_time_us,send_time_us,first_chunk_time_us,status,"  \
    "error_message,finish_reason,think_time_us\n"

static void blis_accumulated_sessions(void **state)
{
    struct kvc_import_report r;
    struct kvc_hits hits;
    (void)state;
    const char *paths[2] = {
        trace_text("header.yaml", "trace_version: 3\ntime_unit: microseconds # of all columns\n"
                                  "mode: \"real\"\nwarm_up_requests: 2\n"
                                  "session_context_growth: accumulate\n"
                                  "server:\n  type: vllm\n  block_size: 4\n"),
        trace_text("data.csv", BLIS_COLUMNS
                   "0,a,s1,0,g,8,4,5,0,0,0,50,ok,,stop,\n"        /* 12 in, 17 then */
                   "1,a,s1,1,g,8,3,4,0,1000,0,0,ok,,stop,700\n"   /* 20 in, 24 then */
                   "2,a,s2,0,g,8,8,4,0,2000,0,0,ok,,stop,0\n"     /* 16 in */
                   "3,a,s1,2,g,8,2,4,0,3000,4000,4500,ok,,stop,\n" /* 26 in */
                   "4,a,s3,1,,0,2,4,0,5000,0,0,ok,,stop,\n"       /* begins with round 1 */
                   "5,a,s2,2,g,8,2,4,0,6000,0,0,ok,,stop,\n"      /* round 1 is missing */
                   "6,b,,0,,0,9,4,11,7000,6000,6500,timeout,,,\n"
                   "7,b,,0,g,8,1,4,0,8000,8000,7000,ok,,stop,\n") };
    struct kvc_trace *t = NULL;
    assert_int_equal(kvc_trace_import(&t, paths, 2, NULL, &r, NULL), KVC_OK);
    assert_int_equal(t->block_tokens, 4);
    static const uint32_t in[] = { 12, 20, 16, 26, 11, 9 };
    static const uint64_t at[] = { 0, 1000000, 2000000, 4000000, 7000000, 8000000 };
    assert_arrivals(t, at, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(t->input_tokens[i], in[i]);
    /* Row 1 has the 3 blocks of row 0, row 2 the group's 2, row 3 the 5 of row 1, row 7 the
     * group's 2; answers are not in prompts, but the blocks that end in them are. */
    assert_int_equal(kvc_ceiling_content(t, &hits, NULL), KVC_OK);
    assert_int_equal(hits.hit_blocks, 3 + 2 + 5 + 2);
    assert_int_equal(t->think_ns[1], 700000);
    assert_int_equal(t->think_ns[2], KVC_TIME_NONE);
    assert_int_equal(r.bad, 2);
    assert_string_equal(r.shown[0].field, "round_index");
    assert_int_equal(r.shown[1].line, 7);
    assert_int_equal(r.cancelled, 1);
    assert_int_equal(log_tally(&r, "think_time_us of 0"), 1);
    assert_int_equal(log_tally(&r, "held back by the client"), 1);
    assert_int_equal(log_tally(&r, "sent before it arrived"), 1);
    assert_int_equal(log_tally(&r, "a first chunk before the request was sent"), 1);
    assert_int_equal(log_tally(&r, "no prefix_group"), 1);
    assert_true(log_note(&r, "first 2 requests warm-up"));
    kvc_trace_destroy(t);

    /* The other way round the rows would have been misread. */
    const char *wrong[2] = { paths[1], paths[0] };
    struct kvc_error err;
    assert_int_equal(kvc_trace_import(&t, wrong, 2, NULL, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "name its file before theirs"));
}

static void blis_contradictions(void **state)
{
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = trace_import(
        trace_text("blis.csv", "trace_version: 3\nmode: generated\n\n" BLIS_COLUMNS
                   "0,a,,0,g,64,4,5,100,0,0,50,ok,\"a \"\"b\"\",\nc\",stop,\n"
                   "1,a,,0,g,64,4,5,10,0,0,50,ok,,stop,\n"
                   "2,a,,0,g,64,x,5,0,0,0,50,ok,,stop,\n"
                   "3,a,,0,,0,32,5,0,10,0,0,ok,,stop,\n"
                   "4,a,,0,,0,32,5,0,20,0,0,what,,abort,\n"), 0, &r);
    assert_int_equal(t->n_requests, 3);
    assert_int_equal(t->input_tokens[0], 100); /* the server's count */
    assert_int_equal(kvc_trace_blocks(t, 1), 2); /* generated: its own prompt */
    assert_int_equal(r.bad, 2);
    assert_non_null(strstr(r.shown[0].text, "10 tokens, where prefix_length alone is 64"));
    assert_int_equal(r.shown[0].line, 7); /* the row before went over two lines */
    assert_int_equal(log_tally(&r, "a status other than ok, error and timeout"), 1);
    kvc_trace_destroy(t);
    assert_non_null(strstr(trace_import_error(trace_text("bad.yaml", "trace_version: 3\n"
                                                         "session_context_growth: some\n"), NULL),
                           "2:session_context_growth: \"some\" is wrong"));
    assert_non_null(strstr(trace_import_error(trace_text("only.yaml", "trace_version: 3\n"), NULL),
                           "no request in it"));
}

/* ---- columns ---- */

static void columns_in_any_order(void **state)
{
    struct kvc_import_report r;
    (void)state;
    struct kvc_trace *t = trace_import(
        trace_text("order.csv", "\xef\xbb\xbf" "generated_tokens;Context Tokens;x;timestamp\r\n"
                                "7;100;;2024-05-10T00:00:00Z\r\n"
                                "generated_tokens;Context Tokens;x;timestamp\r\n"
                                "8;200;y;2024-05-10T00:00:01Z"), 0, &r);
    assert_totals(t, 2, 300, 15);
    assert_int_equal(r.odd, 2);
    assert_int_equal(log_tally(&r, "a header that comes again"), 1);
    kvc_trace_destroy(t);
    struct kvc_import_options o = { .struct_size = sizeof(o), .format = "azure" };
    assert_non_null(strstr(trace_import_error(trace_text("less.csv", "TIMESTAMP,ContextTokens\n"),
                                              &o), "1: no column \"GeneratedTokens\""));
    assert_non_null(strstr(trace_import_error(trace_text("twice.csv", "TIMESTAMP,ContextTokens,"
                                              "GeneratedTokens,Timestamp\n"), &o),
                           "two columns are named \"TIMESTAMP\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c13_fractions_of_seven_digits),
        cmocka_unit_test(c14_offsets),
        cmocka_unit_test(azure_2023),
        cmocka_unit_test(azure_2025_images),
        cmocka_unit_test(azure_readers_agree),
        cmocka_unit_test(c15_failures_and_offset),
        cmocka_unit_test(burstgpt_odd_rows),
        cmocka_unit_test(vidur_without_arrivals),
        cmocka_unit_test(c30_prefix_group),
        cmocka_unit_test(c30_round_trip),
        cmocka_unit_test(blis_accumulated_sessions),
        cmocka_unit_test(blis_contradictions),
        cmocka_unit_test(columns_in_any_order),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
