/* SPDX-License-Identifier: Apache-2.0
 * Gateways' spend logs: what was billed, what a cache held, what never reached a GPU. */
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED "../shared/cases/inputs/"

static struct kvc_trace *import_shared(const char *path, struct kvc_import_report *r)
{
    log_need(path);
    return trace_import(path, 0, r);
}

/* ---- LiteLLM ---- */

/* Answers end and the next turn comes; turns that overlap have no pause between them. */
static void pauses_lie_between_an_answer_and_the_next_turn(void **state)
{
    static const struct {
        const char *start, *end;
        uint64_t think_ns;
    } turns[] = {
        { "00.0", "02.0", KVC_TIME_NONE }, { "05.0", "06.0", 3000000000 },
        { "05.5", "05.8", KVC_TIME_NONE }, { "09.0", "09.5", 3000000000 },
    };
    char log[2048];
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < 4; i++)
        n += (size_t)snprintf(log + n, sizeof(log) - n,
                              "{\"request_id\":\"%zu\",\"startTime\":\"2026-03-02T09:00:%sZ\","
                              "\"endTime\":\"2026-03-02T09:00:%sZ\",\"prompt_tokens\":9,"
                              "\"completion_tokens\":1,\"total_tokens\":10,\"spend\":0,"
                              "\"model\":\"m\",\"session_id\":\"s\"}\n",
                              i, turns[i].start, turns[i].end);
    struct kvc_trace *t = trace_import(trace_text("think.jsonl", log), 0, NULL);
    assert_int_equal(t->n_requests, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(t->think_ns[i], turns[i].think_ns);
    kvc_trace_destroy(t);
}

static void prompts_are_counted_whole_whoever_billed_them(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    struct kvc_trace *t = import_shared(SHARED "c17-inclusive-vs-exclusive.litellm-spendlogs.jsonl",
                                        &r);
    static const uint32_t prompt[] = { 6000, 2500, 2484 }, cached[] = { 3400, 2480, 2480 };
    assert_int_equal(t->n_requests, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(t->input_tokens[i], prompt[i]);
        assert_int_equal(t->cached_tokens[i], cached[i]);
    }
    assert_int_equal(t->arrival_ns[1], 59880000000);
    assert_int_equal(r.rows, 5);
    assert_int_equal(r.bad, 0);
    assert_int_equal(r.gateway_answered, 1);
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.cached_rows, 3);
    assert_int_equal(r.cached_of_tokens, 10984);
    assert_int_equal(r.cached_tokens, 8360);
    assert_int_equal(r.spend_rows, 3);
    assert_float_equal(r.spend_usd, 0.0181, 1e-12);
    assert_int_equal(log_tally(&r, "streamed"), 2);
    kvc_trace_stats(t, &s);
    assert_false(s.has_prefix); /* nothing is known of shared prefixes, however much was cached */
    assert_int_equal(s.sessions, 1);
    assert_string_equal(t->tenant_names[0], "team-a");
    assert_int_equal(s.models, 2);
    kvc_trace_destroy(t);
}

static void a_double_billed_row_keeps_what_it_says(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = import_shared(SHARED "c18-double-billed-cache.litellm-spendlogs.jsonl",
                                        &r);
    assert_int_equal(t->input_tokens[0], 200000);
    assert_int_equal(t->cached_tokens[0], 190000);
    assert_int_equal(t->output_tokens[0], 1000);
    assert_float_equal(r.spend_usd, 0.28375, 1e-12);
    kvc_trace_destroy(t);
}

#define CALL(id, more)                                                                             \
    "{\"request_id\":\"" id "\",\"call_type\":\"acompletion\",\"startTime\":\"2026-03-02 "         \
    "08:00:0" id "Z\",\"completion_tokens\":5," more "}\n"

static void rows_of_every_outcome_are_told_apart(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("outcomes",
                   CALL("1", "\"prompt_tokens\":10,\"status\":\"success\",\"cache_hit\":\"None\"")
                   CALL("2", "\"prompt_tokens\":10,\"status\":\"failure\"")
                   CALL("3", "\"prompt_tokens\":10,\"status\":\"failure\",\"metadata\":"
                             "{\"error_information\":{\"error_code\":\"499\"}}")
                   CALL("4", "\"prompt_tokens\":0,\"status\":\"failure\"")
                   CALL("5", "\"prompt_tokens\":0,\"status\":\"success\"")
                   CALL("6", "\"prompt_tokens\":10,\"cache_hit\":true")
                   CALL("7", "\"prompt_tokens\":10,\"endTime\":\"2026-03-02 08:00:00Z\"")
                   "{\"call_type\":\"aembedding\",\"startTime\":\"2026-03-02\","
                   "\"prompt_tokens\":9}\n"
                   CALL("8", "\"prompt_tokens\":10,\"metadata\":{\"usage_object\":"
                             "{\"prompt_tokens\":10,\"prompt_tokens_details\":"
                             "{\"cached_tokens\":11}}}")
                   CALL("9", "\"prompt_tokens\":\"10\",\"metadata\":"
                             "\"{\\\"additional_usage_values\\\":"
                             "{\\\"cache_read_input_tokens\\\":4}}\"")),
        0, &r);
    assert_int_equal(t->n_requests, 5);
    assert_int_equal(r.rows, 10);
    assert_int_equal(r.bad, 1);
    assert_string_equal(r.shown[0].field,
                        "metadata.usage_object.prompt_tokens_details.cached_tokens");
    assert_int_equal(r.shown[0].line, 9);
    assert_int_equal(r.failed, 2);
    assert_int_equal(r.cancelled, 1);
    assert_int_equal(r.gateway_answered, 1);
    assert_int_equal(log_tally(&r, "no prompt token"), 1);
    assert_int_equal(log_tally(&r, "before any token"), 1);
    assert_int_equal(log_tally(&r, "no text generation"), 1);
    assert_int_equal(log_tally(&r, "endTime"), 1);
    assert_int_equal(t->row_status[1], KVC_ROW_FAILED);
    assert_int_equal(t->row_status[2], KVC_ROW_CANCELLED);
    assert_int_equal(t->cached_tokens[3], KVC_ID_NONE);
    assert_int_equal(t->cached_tokens[4], 4);
    kvc_trace_destroy(t);
}

static void csv_list_and_lines_agree(void **state)
{
    (void)state;
    struct kvc_import_report r;
    char digests[4][24];
    const char *const texts[] = {
        "{\"request_id\":\"a\",\"call_type\":\"x\",\"startTime\":\"2026-03-02T08:00:00.5Z\","
        "\"prompt_tokens\":100,\"completion_tokens\":7,\"spend\":0.5,\"model\":\"m\","
        "\"team_id\":\"t,1\",\"metadata\":{\"usage_object\":{\"prompt_tokens\":100,"
        "\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":64}}}}\n"
        "{\"request_id\":\"b\",\"call_type\":\"x\",\"startTime\":\"2026-03-02T08:00:01+00:00\","
        "\"prompt_tokens\":9,\"completion_tokens\":1,\"spend\":0,\"model\":\"m\","
        "\"team_id\":\"\"}\n",
        "request_id,call_type,startTime,prompt_tokens,completion_tokens,spend,model,team_id,"
        "metadata\n"
        "a,x,2026-03-02 08:00:00.5,100,7,0.5,m,\"t,1\",\"{\"\"usage_object\"\":{\"\"prompt_tokens"
        "\"\":100,\n\"\"completion_tokens\"\":7,\"\"prompt_tokens_details\"\":{\"\"cached_tokens"
        "\"\":64}}}\"\n"
        "b,x,2026-03-02 10:00:01+02:00,9,1,0,m,\"\",{}\n",
        "\xef\xbb\xbf[\n  {\"request_id\":\"a\",\"call_type\":\"x\",\n   \"startTime\":"
        "1772438400.5, \"prompt_tokens\":100,\"completion_tokens\":7,\"spend\":0.5,\"model\":\"m\","
        "\"team_id\":\"t,1\",\"metadata\":{\"usage_object\":{\"prompt_tokens\":100,"
        "\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":64}}}}\n,"
        "{\"request_id\":\"b\",\"call_type\":\"x\",\"startTime\":1772438401,"
        "\"prompt_tokens\":9,\"completion_tokens\":1,\"spend\":0,\"model\":\"m\"}]\n",
    };
    for (int i = 0; i < 3; i++) {
        struct kvc_trace *t = trace_import(trace_text("form", texts[i]), 0, &r);
        assert_int_equal(t->n_requests, 2);
        assert_int_equal(r.rows, 2);
        assert_int_equal(t->arrival_ns[1], 500000000);
        assert_int_equal(t->cached_tokens[0], 64);
        assert_int_equal(t->tenant[1], KVC_ID_NONE);
        memcpy(digests[i], t->digest, 24);
        assert_string_equal(digests[i], digests[0]);
        kvc_trace_destroy(t);
    }
}

static void the_tenant_is_the_users_choice(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = NULL;
    struct kvc_error err;
    static const char *const fields[] = { "end_user", "metadata.user_api_key_alias", NULL };
    static const char *const names[] = { "eve", "key-1", "team" };
    const char *path = trace_text("tenant", CALL("1", "\"prompt_tokens\":10,\"team_id\":\"team\","
                                                      "\"end_user\":\"eve\",\"metadata\":"
                                                      "{\"user_api_key_alias\":\"key-1\"}"));
    for (int i = 0; i < 3; i++) {
        struct kvc_import_options o = { .struct_size = sizeof(o), .tenant_field = fields[i] };
        assert_int_equal(kvc_trace_import(&t, &path, 1, &o, &r, &err), KVC_OK);
        assert_string_equal(t->tenant_names[0], names[i]);
        kvc_trace_destroy(t);
        t = NULL;
    }
}

static void a_list_that_breaks_off_is_said_to(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("cut", "[{\"startTime\":5,\"spend\":1,\"prompt_tokens\":3},\n"
                          "{\"startTime\":6,\"spend\":1,\"prompt_tokens\":3},\n"
                          "{\"startTime\":7,\"spe"),
        0, &r);
    assert_int_equal(t->n_requests, 2);
    assert_int_equal(r.bad, 1);
    assert_int_equal(r.shown[0].line, 3);
    kvc_trace_destroy(t);
    t = trace_import(trace_text("comma", "[{\"startTime\":5,\"spend\":1,\"prompt_tokens\":3}\n"
                                         "{\"startTime\":6,\"spend\":1,\"prompt_tokens\":3}]"),
                     0, &r);
    assert_int_equal(t->n_requests, 1);
    assert_int_equal(r.bad, 1);
    assert_int_equal(r.shown[0].line, 2);
    kvc_trace_destroy(t);
    t = trace_import(trace_text("behind", "[{\"startTime\":5,\"spend\":1,\"prompt_tokens\":3}, 7]\n"
                                          "x"),
                     0, &r);
    assert_int_equal(t->n_requests, 1);
    assert_int_equal(r.bad, 2);
    kvc_trace_destroy(t);
}

/* ---- Langfuse ---- */

#define SPEND "\"cost_details\":{\"input\":0.1,\"total\":0.25}"
#define SEEN(id, type, more)                                                                       \
    "{\"id\":\"" id "\",\"trace_id\":\"t\",\"type\":\"" type "\",\"start_time\":"    \
    "\"2026-03-02 08:00:00.12345" id "\",\"provided_model_name\":\"gpt-x\"," more "}\n"

static void only_generations_are_calls(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("observations",
                   SEEN("1", "GENERATION", "\"end_time\":\"2026-03-02 08:00:01.000000\","
                        "\"completion_start_time\":\"2026-03-02 08:00:00.500000\","
                        "\"usage_details\":{\"input\":400,\"input_cached_tokens\":600,"
                        "\"output\":30,\"total\":1030},\"user_id\":\"u\","
                        "\"session_id\":\"s\"," SPEND)
                   SEEN("2", "SPAN", "\"end_time\":null")
                   SEEN("3", "TOOL", "\"end_time\":null")
                   SEEN("4", "GENERATION", "\"end_time\":null,\"level\":\"ERROR\","
                        "\"usage_details\":{}")
                   SEEN("5", "GENERATION", "\"end_time\":null,\"usage_details\":"
                        "\"{\\\"input\\\":1000,\\\"input_cached_tokens\\\":600,"
                        "\\\"output\\\":30,\\\"total\\\":1030}\"")
                   SEEN("6", "GENERATION", "\"usage\":{\"input\":9,\"unit\":\"CHARACTERS\"}")
                   SEEN("7", "GENERATION", "\"usage_details\":{\"input\":50,\"input_image\":20,"
                        "\"input_audio_tokens\":30,\"output\":1,\"total\":101}")),
        0, &r);
    assert_int_equal(r.rows, 7);
    assert_int_equal(t->n_requests, 3);
    assert_int_equal(log_tally(&r, "GENERATION"), 2);
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.bad, 1);
    assert_string_equal(r.shown[0].field, "unit");
    assert_int_equal(t->input_tokens[0], 1000);
    assert_int_equal(t->cached_tokens[0], 600);
    assert_int_equal(t->input_tokens[1], 1000);
    assert_int_equal(t->cached_tokens[1], 600);
    assert_int_equal(t->arrival_ns[1], 4000);
    assert_int_equal(t->input_tokens[2], 100);
    assert_int_equal(log_tally(&r, "inside the input"), 1);
    assert_int_equal(log_tally(&r, "streamed"), 1);
    assert_float_equal(r.spend_usd, 0.25, 1e-12);
    assert_string_equal(t->tenant_names[0], "u");
    kvc_trace_destroy(t);
}

static void exports_in_other_forms_read_the_same(void **state)
{
    (void)state;
    struct kvc_import_report r;
    static const char *const texts[] = {
        "[{\"traceId\":\"t\",\"type\":\"GENERATION\",\"startTime\":\"2026-03-02T08:00:00.5Z\","
        "\"model\":\"m\",\"promptTokens\":100,\"completionTokens\":7,\"totalTokens\":107}]",
        "id,trace_id,type,start_time,end_time,provided_model_name,usage_details,input\n"
        "1,t,GENERATION,2026-03-02 08:00:00.500000,,m,\"{\"\"input\"\":40,\"\"output\"\":7,"
        "\"\"cache_read_input_tokens\"\":60}\",\"[{\"\"role\"\":\"\"user\"\"}]\"\n",
    };
    for (int i = 0; i < 2; i++) {
        struct kvc_trace *t = trace_import(trace_text("form", texts[i]), 0, &r);
        assert_int_equal(t->n_requests, 1);
        assert_int_equal(t->input_tokens[0], 100);
        assert_int_equal(t->output_tokens[0], 7);
        assert_string_equal(t->model_names[0], "m");
        assert_int_equal(r.cached_rows, i);
        kvc_trace_destroy(t);
    }
}

/* ---- stored text ---- */

#define LONG "You are a careful assistant of a large shop. Answer in short sentences, name the " \
             "order you speak of, and never promise a date. "

static uint32_t shared_blocks(const struct kvc_trace *t, uint64_t a, uint64_t b)
{
    uint32_t pa[64], pb[64], n = 0;
    uint32_t na = kvc_trace_path(t, t->prompt_seg[a], pa), nb = kvc_trace_path(t,
            t->prompt_seg[b], pb);
    for (uint32_t i = 0; i < na && i < nb && pa[i] == pb[i]; i++)
        n += t->seg_len[pa[i]];
    return n;
}

static void stored_prompts_share_what_they_share(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    static const char *const texts[] = {
        CALL("1", "\"prompt_tokens\":60,\"model\":\"m\",\"messages\":[{\"role\":\"system\","
                  "\"content\":\"" LONG LONG "\"},{\"role\":\"user\","
                  "\"content\":\"Where is it?\"}]")
        CALL("2", "\"prompt_tokens\":62,\"model\":\"m\","
        "\"messages\":\"[{\\\"role\\\":\\\"system\\\","
                  "\\\"content\\\":\\\"" LONG LONG "\\\"},{\\\"role\\\":\\\"user\\\","
                  "\\\"content\\\":\\\"Something else.\\\"}]\"")
        CALL("3", "\"prompt_tokens\":60,\"model\":\"m\",\"messages\":[]"),
        SEEN("1", "GENERATION", "\"usage_details\":{\"input\":60,\"output\":5},"
        "\"input\":{\"messages\":"
             "[{\"role\":\"system\",\"content\":\"" LONG LONG "\"},{\"role\":\"user\","
             "\"content\":\"Where is it?\"}]},\"output\":{\"role\":\"assistant\","
             "\"content\":\"Here.\"}")
        SEEN("2", "GENERATION", "\"usage_details\":{\"input\":62,\"output\":5},\"input\":"
             "\"[{\\\"role\\\":\\\"system\\\",\\\"content\\\":\\\"" LONG LONG "\\\"},"
             "{\\\"role\\\":\\\"user\\\",\\\"content\\\":\\\"Something else.\\\"}]\"")
        SEEN("3", "GENERATION", "\"usage_details\":{\"input\":60,\"output\":5},\"input\":null"),
    };
    for (int i = 0; i < 2; i++) {
        struct kvc_trace *t = trace_import(trace_text("stored", texts[i]), 8, &r);
        assert_int_equal(t->n_requests, 3);
        kvc_trace_stats(t, &s);
        assert_true(s.has_prefix);
        /* 52 tokens or so of the system prompt, in blocks of 8, and not the question. */
        assert_in_range(shared_blocks(t, 0, 1), 5, 6);
        assert_int_equal(kvc_trace_blocks(t, 0), 8);
        assert_int_equal(t->prompt_seg[2], KVC_SEG_NONE);
        assert_int_equal(t->input_tokens[1], 62);
        kvc_trace_destroy(t);
    }
}

/* ---- usage objects ---- */

static void usage_objects_need_a_time(void **state)
{
    (void)state;
    const char *error = trace_import_error(
        trace_text("bare", "{\"input_tokens\":50,\"cache_creation_input_tokens\":950,"
                           "\"cache_read_input_tokens\":0,\"output_tokens\":3}\n"),
        NULL);
    assert_non_null(strstr(error, "bare:1:timestamp: no time"));
    assert_non_null(strstr(error, "\"timestamp\""));
}

static void answers_with_usage_become_rows(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("answers",
                   "{\"id\":\"a\",\"object\":\"chat.completion\",\"created\":1772438400,\"model\":"
                   "\"gpt-x\",\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":5,"
                   "\"prompt_tokens_details\":{\"cached_tokens\":600}}}\n"
                   "{\"timestamp\":\"2026-03-02T08:00:01Z\",\"response\":{\"type\":\"message\","
                   "\"model\":\"claude-y\",\"usage\":{\"input_tokens\":400,"
                   "\"cache_read_input_tokens\":600,\"output_tokens\":5}}}\n"
                   "{\"timestamp\":1772438402,\"input_tokens\":50,"
                   "\"cache_creation_input_tokens\":950,\"output_tokens\":3}\n"
                   "{\"object\":\"chat.completion.chunk\",\"created\":1772438403,\"choices\":[{}],"
                   "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n"
                   "{\"object\":\"chat.completion.chunk\",\"created\":1772438403,\"choices\":[],"
                   "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n"
                   "{\"custom_id\":\"b\",\"response\":{\"status_code\":200,\"body\":{\"created\":"
                   "1772438404,\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":2}}}}\n"
                   "{\"created\":1772438405,\"error\":{\"code\":429}}\n"
                   "{\"created\":1772438405,\"usage\":{\"completion_tokens\":2}}\n"),
        0, &r);
    static const uint32_t prompts[] = { 1000, 1000, 1000, 7, 8 };
    assert_int_equal(t->n_requests, 5);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(t->input_tokens[i], prompts[i]);
        assert_int_equal(t->arrival_ns[i], i * 1000000000);
    }
    assert_int_equal(t->cached_tokens[0], 600);
    assert_int_equal(t->cached_tokens[1], 600);
    assert_int_equal(t->cached_tokens[2], KVC_ID_NONE);
    assert_int_equal(r.cache_write_tokens, 950);
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.bad, 1);
    assert_int_equal(log_tally(&r, "parts of streamed"), 1);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_are_counted_whole_whoever_billed_them),
        cmocka_unit_test(a_double_billed_row_keeps_what_it_says),
        cmocka_unit_test(rows_of_every_outcome_are_told_apart),
        cmocka_unit_test(csv_list_and_lines_agree),
        cmocka_unit_test(the_tenant_is_the_users_choice),
        cmocka_unit_test(a_list_that_breaks_off_is_said_to),
        cmocka_unit_test(only_generations_are_calls),
        cmocka_unit_test(exports_in_other_forms_read_the_same),
        cmocka_unit_test(stored_prompts_share_what_they_share),
        cmocka_unit_test(pauses_lie_between_an_answer_and_the_next_turn),
        cmocka_unit_test(usage_objects_need_a_time),
        cmocka_unit_test(answers_with_usage_become_rows),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
