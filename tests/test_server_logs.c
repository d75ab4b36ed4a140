/* SPDX-License-Identifier: Apache-2.0
 * Logs of inference servers: requests whose life is spread over lines, and what engines state of
 * themselves, which is no request. */
#include "base/text.h"
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/parse/py_repr.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED "../shared/cases/inputs/"

/* Expects that no request is made of it. */
static void facts_only(const char *path, struct kvc_import_report *r, struct kvc_error *err)
{
    struct kvc_trace *t = NULL;
    log_need(path);
    assert_int_equal(kvc_trace_import(&t, &path, 1, NULL, r, err), KVC_ERR_INPUT);
    assert_null(t);
}

/* ---- vLLM ---- */

static void engines_are_not_merged(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_error err;
    facts_only(SHARED "c03-derived-kv-size.vllm.log", &r, &err);
    assert_non_null(strstr(err.text, "3 lines of statistics"));
    assert_non_null(strstr(err.text, "1 sizes"));
    assert_non_null(strstr(err.text, "--enable-log-requests"));
    assert_int_equal(r.n_engines, 2);
    const struct kvc_engine_facts *a = &r.engines[0], *b = &r.engines[1];
    assert_string_equal(a->name, "engine 0");
    assert_int_equal(a->kv_cache_tokens, 87381);
    assert_int_equal(a->kv_cache_bytes, (uint64_t)6 << 30);
    assert_int_equal(a->kv_cache_bytes / a->kv_cache_tokens, 73728);
    assert_int_equal(a->concurrency_tokens, 131072);
    assert_float_equal(a->concurrency, 0.67, 1e-9);
    /* The size is a statement derived from these two. */
    double derived = a->concurrency * (double)a->concurrency_tokens;
    assert_true(derived > 87381 * 0.99 && derived < 87381 * 1.01);
    assert_int_equal(a->lines, 2);
    assert_float_equal(a->kv_used_peak, 0.413, 1e-9);
    assert_float_equal(a->hit_rate_last, 0.415, 1e-9);
    assert_float_equal(a->external_hit_rate_last, 0, 1e-9);
    assert_int_equal(a->preemptions, 2);
    assert_int_equal(a->running_peak, 6);
    assert_float_equal(a->prompt_tokens_per_s_peak, 812.4, 1e-9);
    assert_string_equal(b->name, "engine 1");
    assert_int_equal(b->kv_cache_tokens, 0);
    assert_float_equal(b->kv_used_peak, 0.979, 1e-9);
    assert_float_equal(b->hit_rate_last, 0.032, 1e-9);
    assert_true(b->external_hit_rate_last < 0);
    assert_int_equal(b->waiting_peak, 2);
}

#define AT(time) "INFO 12-31 " time " [logger.py:42] "

static void requests_of_old_versions_bring_their_tokens(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("old.log",
                   AT("23:59:59") "Received request cmpl-1: prompt: 'it\\'s \"a, b: c]\" \\u00e9', "
                   "params: SamplingParams(n=1, stop=[], max_tokens=16), prompt_token_ids: "
                   "[1, 2, 3, 4, 5], prompt_embeds shape: None, lora_request: None.\n"
                   "INFO 01-01 00:00:01 [logger.py:42] Received request cmpl-2: prompt: None, "
                   "params: SamplingParams(n=1), prompt_token_ids: [1, 2, 3, 4, 9, 8, 7, 6], "
                   "lora_request: LoRARequest(lora_name='sql', lora_int_id=1).\n"
                   "INFO 01-01 00:00:02 [logger.py:99] Generated response cmpl-1: output: 'x y', "
                   "output_token_ids: [7, 8, 9], finish_reason: stop\n"
                   "INFO 01-01 00:00:03 [async_llm.py:1] Aborted request cmpl-2.\n"
                   "INFO 01-01 00:00:04 [logger.py:42] Received request cmpl-3: prompt: "
                   "'abcdefgh', params: SamplingParams(n=1), prompt_token_ids: "
                   "[1, 2, 3, 4, 5, 6, 7, 8], lora_request: None.\n"
                   "INFO 01-01 00:00:05 [logger.py:42] Received request cmpl-4: prompt: None, "
                   "params: SamplingParams(n=1), prompt_token_ids: [1, 2, 3, 4], "
                   "lora_request: None.\n"
                   "INFO 01-01 00:00:05 [api.py:1] something else\n"),
        4, &r);
    assert_int_equal(t->n_requests, 3);
    assert_int_equal(t->input_tokens[0], 5);
    assert_int_equal(t->output_tokens[0], 3);
    assert_int_equal(t->input_tokens[1], 8);
    assert_int_equal(t->row_status[1], KVC_ROW_CANCELLED);
    assert_int_equal(t->arrival_ns[1], 2000000000); /* over the end of a year that has no name */
    /* The first block is the third request's too, but not of the one with an adapter. */
    uint32_t path[8];
    assert_int_equal(kvc_trace_blocks(t, 0), 2);
    kvc_trace_path(t, t->prompt_seg[0], path);
    assert_int_equal(path[0], t->prompt_seg[2]);
    assert_int_not_equal(path[0], t->prompt_seg[1]);
    assert_int_equal(log_tally(&r, "cuts short"), 1); /* as many characters as tokens:
                                                         max_log_len */
    assert_int_equal(r.unknown_output, 2); /* of an answer that is not logged: unknown, not 0 */
    assert_int_equal(r.zero_output, 0);
    assert_false(kvc_trace_output_known(t, 1) || kvc_trace_output_known(t, 2));
    assert_true(kvc_trace_output_known(t, 0));
    assert_int_equal(log_tally(&r, "other things"), 1);
    assert_int_equal(r.inversions, 0);
    kvc_trace_destroy(t);
}

static void requests_of_new_versions_are_pieced_together(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("new.log",
                   "(APIServer pid=7) DEBUG 03-02 08:00:00 [logger.py:1] Request chatcmpl-1 "
                   "details: prompt: 'some words', prompt_token_ids: [5, 6, 7], "
                   "prompt_embeds shape: None.\n"
                   "(APIServer pid=7) INFO 03-02 08:00:00 [logger.py:2] Received request "
                   "chatcmpl-1: params: SamplingParams(n=1), lora_request: None.\n"
                   "(APIServer pid=7) INFO 03-02 08:00:01 [logger.py:2] Received request "
                   "chatcmpl-2: params: SamplingParams(n=1), lora_request: None.\n"
                   "[2026-03-02 08:00:01,250] LMCache INFO: Reqid: chatcmpl-3, Total tokens 100, "
                   "LMCache hit tokens: 64, need to load: -16 (adapter.py:1:lmcache)\n"
                   "(APIServer pid=7) INFO 03-02 08:00:02 [logger.py:3] Generated response "
                   "chatcmpl-1 (streaming delta): output: 'a', output_token_ids: [1, 2], "
                   "finish_reason: None\n"
                   "(APIServer pid=7) INFO 03-02 08:00:02 [logger.py:3] Generated response "
                   "chatcmpl-1 (streaming delta): output: 'b', output_token_ids: [3], "
                   "finish_reason: stop\n"
                   "(APIServer pid=7) INFO 03-02 08:00:02 [logger.py:3] Generated response "
                   "chatcmpl-1 (streaming complete): output: 'ab', output_token_ids: None, "
                   "finish_reason: stop\n"),
        0, &r);
    assert_int_equal(t->n_requests, 2);
    assert_int_equal(t->input_tokens[0], 3);
    assert_int_equal(t->output_tokens[0], 3);
    assert_int_equal(log_tally(&r, "without the length"), 1);
    assert_int_equal(t->input_tokens[1], 100);
    assert_int_equal(t->cached_tokens[1], 80); /* the engine had 16 more than LMCache */
    kvc_trace_destroy(t);
}

/* 0.5309 gb of 3,866 tokens are 36 layers of 8 heads of 128 at 2 bytes, keys and values. */
static void what_lmcache_moves_is_in_powers_of_two(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_error err;
    facts_only(trace_text("lm.log",
                          "[2026-03-02 08:00:01,250] LMCache INFO: Stored 3866 out of total 3866 "
                          "tokens. size: 0.5309 gb, cost 30.1 ms, throughput: 17.6 GB/s; offload\n"
                          "[2026-03-02 08:00:02,250] LMCache INFO: Retrieved 256 out of 256 "
                          "required tokens (from 300 total tokens). size: 0.0352 gb, cost 1 ms\n"
                          "INFO 03-02 08:00:03 [x.py:1] GPU KV cache size: 1,000 tokens\n"),
               &r, &err);
    double per_token = (double)r.engines[0].stored_bytes / (double)r.engines[0].stored_tokens;
    assert_true(per_token > 147456 - 14 && per_token < 147456 + 14); /* 4 digits were given */
    assert_int_equal(r.engines[0].retrieved_tokens, 256);
    assert_int_equal(r.engines[0].kv_cache_tokens, 1000);
}

/* ---- SGLang ---- */

static void ranks_print_the_same_batch(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_error err;
    uint64_t fresh = 0, cached = 0;
    facts_only(SHARED "c53-sglang-batches.sglang.log", &r, &err);
    for (uint32_t i = 0; i < r.n_engines; i++) {
        fresh += r.engines[i].new_tokens;
        cached += r.engines[i].cached_tokens;
    }
    assert_int_equal(fresh, 8256);
    assert_int_equal(cached, 128);
    assert_int_equal(r.n_engines, 2);
    assert_int_equal(r.engines[0].kv_cache_tokens, 500000);
    assert_int_equal(r.engines[0].kv_cache_bytes / 500000, 48060);
    assert_float_equal(r.engines[0].kv_used_peak, 0, 1e-9);
    assert_float_equal(r.engines[1].kv_used_peak, 0.1, 1e-9);
    assert_int_equal(log_tally(&r, "another rank"), 1);
}

static void requests_in_json_and_in_text_agree(void **state)
{
    (void)state;
    struct kvc_import_report r;
    char digest[24] = "";
    static const char *const texts[] = {
        "{\"timestamp\":\"2026-03-02T08:00:00\",\"event\":\"request.received\",\"rid\":\"a\","
        "\"obj\":{\"input_ids\":[1,2,3,4,5],\"text\":null}}\n"
        "{\"timestamp\":\"2026-03-02T08:00:03\",\"event\":\"request.finished\",\"rid\":\"b\","
        "\"obj\":{\"input_ids\":[1,2,3,4]},\"out\":{\"meta_info\":{\"prompt_tokens\":4,"
        "\"completion_tokens\":9,\"cached_tokens\":3,\"e2e_latency\":1.5,\"finish_reason\":"
        "{\"type\":\"abort\"}}}}\n"
        "{\"timestamp\":\"2026-03-02T08:00:04\",\"event\":\"request.finished\",\"rid\":\"a\","
        "\"obj\":{\"input_ids\":[1,2,3,4,5]},\"out\":{\"meta_info\":{\"prompt_tokens\":5,"
        "\"completion_tokens\":7,\"cached_tokens\":0,\"e2e_latency\":4.0,\"finish_reason\":"
        "{\"type\":\"stop\",\"matched\":2}}}}\n",
        "[2026-03-02 08:00:00] Receive: obj=GenerateReqInput(rid='a', text=None, input_ids="
        "[1, 2, 3, 4, 5], sampling_params={'stop': [\"'meta_info': {'\"]}, stream=False)\n"
        "[2026-03-02 08:00:03] Finish: obj=GenerateReqInput(text=None, input_ids=[1, 2, 3, 4], "
        "rid='b'), out={'text': \"it's\", 'meta_info': {'id': 'b', 'finish_reason': {'type': "
        "'abort'}, 'prompt_tokens': 4, 'completion_tokens': 9, 'cached_tokens': 3, "
        "'e2e_latency': 1.5}}\n"
        "[2026-03-02 08:00:04] Finish: obj=GenerateReqInput(text=None, input_ids=[1, 2, 3, 4, 5], "
        "rid='a'), out={'text': 'x', 'meta_info': {'id': 'a', 'finish_reason': {'type': 'stop', "
        "'matched': 2}, 'prompt_tokens': 5, 'completion_tokens': 7, 'cached_tokens': 0, "
        "'e2e_latency': 4.0}}\n",
        /* --export-metrics-to-file, in the order of ends; without an arrival, the end less the
         * latency */
        "{\"request_parameters\":\"{\\\"rid\\\":\\\"b\\\",\\\"input_ids\\\":[1,2,3,4]}\","
        "\"id\":\"b\",\"finish_reason\":{\"type\":\"abort\"},\"prompt_tokens\":4,"
        "\"completion_tokens\":9,\"cached_tokens\":3,\"e2e_latency\":1.5,"
        "\"request_finished_ts\":1772438403.0}\n"
        "{\"request_parameters\":\"{\\\"rid\\\":\\\"a\\\",\\\"input_ids\\\":[1,2,3,4,5],"
        "\\\"sampling_params\\\":{\\\"stop\\\":null}}\",\"id\":\"a\",\"finish_reason\":"
        "{\"type\":\"stop\",\"matched\":2},\"prompt_tokens\":5,\"completion_tokens\":7,"
        "\"cached_tokens\":0,\"e2e_latency\":4.0,\"request_received_ts\":1772438400.0,"
        "\"request_finished_ts\":1772438404.0}\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct kvc_trace *t = trace_import(trace_text("form.log", texts[i]), 4, &r);
        assert_int_equal(t->n_requests, 2);
        assert_int_equal(t->arrival_ns[1], 1500000000);
        assert_int_equal(t->input_tokens[0], 5);
        assert_int_equal(t->output_tokens[0], 7);
        assert_int_equal(t->cached_tokens[0], 0);
        assert_int_equal(t->cached_tokens[1], 3);
        assert_int_equal(t->row_status[1], KVC_ROW_CANCELLED);
        assert_int_equal(kvc_trace_blocks(t, 0), 2);
        assert_int_equal(kvc_trace_full_blocks(t, 1), 1);
        if (digest[0])
            assert_string_equal(t->digest, digest);
        memcpy(digest, t->digest, sizeof(digest));
        kvc_trace_destroy(t);
    }
}

static void ids_cut_by_the_log_level_are_unknown_prefixes(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    struct kvc_trace *t = trace_import(
        trace_text("cut.log", "[2026-03-02 08:00:03] Finish: obj=GenerateReqInput(rid='b', "
                              "input_ids=[1, 2] ... [3, 4]), out={'meta_info': {'prompt_tokens': "
                              "4000, 'completion_tokens': 9, 'e2e_latency': 1.5}}\n"
                              "[2026-03-02 08:00:03] Finish: obj=GenerateReqInput(rid='c', "
                              "input_ids=[1, 2]), out={'meta_info': {'prompt_tokens': "
                              "4000, 'completion_tokens': 9, 'e2e_latency': 1.5}}\n"),
        0, &r);
    assert_int_equal(t->n_requests, 2);
    kvc_trace_stats(t, &s);
    assert_false(s.has_prefix);
    assert_int_equal(s.input_tokens, 8000);
    assert_int_equal(log_tally(&r, "prefixes are unknown"), 1);
    assert_int_equal(r.cached_rows, 0);
    kvc_trace_destroy(t);
}

/* Levels 0 and 1 leave text and ids out; texts are whole even where " ... " is part of them. */
static void exported_metrics_say_what_they_can(void **state)
{
    (void)state;
    char log[8192], words[2200];
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    memset(words, 'w', sizeof(words));
    memcpy(words + 1000, " ... ", 5);
    snprintf(log, sizeof(log),
             "{\"request_parameters\":\"{\\\"rid\\\":\\\"a\\\"}\",\"id\":\"a\","
             "\"prompt_tokens\":50,\"completion_tokens\":7,\"request_received_ts\":1772438400.25}\n"
             "{\"request_parameters\":\"{\\\"text\\\":\\\"%.2200s\\\"}\",\"id\":\"b\","
             "\"prompt_tokens\":550,\"completion_tokens\":7,\"request_received_ts\":1772438401.5}\n"
             "{\"request_parameters\":\"{}\",\"id\":\"c\",\"prompt_tokens\":5,"
             "\"completion_tokens\":7,\"e2e_latency\":1.5}\n"
             "{\"request_parameters\":\"{}\",\"prompt_tokens\":5,\"completion_tokens\":7,"
             "\"request_received_ts\":1772438402.5}\n", words);
    struct kvc_trace *t = trace_import(trace_text("metrics.log", log), 0, &r);
    kvc_trace_stats(t, &s);
    assert_int_equal(t->n_requests, 2);
    assert_int_equal(r.bad, 2);
    assert_string_equal(r.shown[0].field, "request_received_ts");
    assert_int_equal(r.shown[1].line, 4);
    assert_string_equal(r.shown[1].field, "id");
    assert_int_equal(t->arrival_ns[1], 1250000000);
    assert_int_equal(r.without_ids, 1);
    assert_int_equal(kvc_trace_blocks(t, 0), 0);
    assert_int_equal(kvc_trace_full_blocks(t, 1), 34); /* 550 tokens */
    kvc_trace_destroy(t);
}

/* Found by fuzzing: a text of less than a token is a prompt of one, with an id of its own. */
static void a_text_of_less_than_a_token_has_one(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("short.log", "{\"timestamp\": \"2026-03-02T08:00:00\", \"event\": "
                                "\"request.received\", \"rid\": \"r1\", \"obj\": "
                                "{\"text\": \"h\"}}\n"),
        1, &r);
    assert_int_equal(t->input_tokens[0], 1);
    assert_int_equal(kvc_trace_blocks(t, 0), 1);
    kvc_trace_destroy(t);
}

/* ---- Python's repr ---- */

static void strings_read_as_python_wrote_them(void **state)
{
    (void)state;
    static const struct {
        const char *repr, *text;
        size_t characters;
    } cases[] = {
        { "'abc'", "abc", 3 },
        { "\"it's\"", "it's", 4 },
        { "'a\\'b\"c\\\\'", "a'b\"c\\", 6 },
        { "'\\n\\t\\x1b\\u20ac\\U0001f600'", "\n\t\x1b\xe2\x82\xac\xf0\x9f\x98\x80", 5 },
        { "'\xc3\xa9'", "\xc3\xa9", 1 },
        { "''", "", 0 },
        { "'abc' ... 'xyz'", NULL, 0 },
        { "'abc", NULL, 0 },
        { "'abc\\'", NULL, 0 },
        { "None", NULL, 0 },
        { "'", NULL, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kvc_span span = { cases[i].repr, strlen(cases[i].repr) };
        struct kvc_text out = { 0 };
        size_t n = 99;
        kvc_text_add(&out, "");
        bool ok = kvc_py_string(&span, &out, &n);
        assert_int_equal(ok, cases[i].text != NULL);
        if (ok) {
            assert_string_equal(out.buf, cases[i].text);
            assert_int_equal(n, cases[i].characters);
        }
        kvc_text_clear(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_are_not_merged),
        cmocka_unit_test(requests_of_old_versions_bring_their_tokens),
        cmocka_unit_test(requests_of_new_versions_are_pieced_together),
        cmocka_unit_test(what_lmcache_moves_is_in_powers_of_two),
        cmocka_unit_test(ranks_print_the_same_batch),
        cmocka_unit_test(requests_in_json_and_in_text_agree),
        cmocka_unit_test(ids_cut_by_the_log_level_are_unknown_prefixes),
        cmocka_unit_test(exported_metrics_say_what_they_can),
        cmocka_unit_test(a_text_of_less_than_a_token_has_one),
        cmocka_unit_test(strings_read_as_python_wrote_them),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
