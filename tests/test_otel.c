/* SPDX-License-Identifier: Apache-2.0
 * OpenTelemetry GenAI spans: calls become rows, what encloses a call does not, and OTLP and flat
 * JSON mean the same. */
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED "../shared/traces/inference-perf-otel/"

/* ---- real files ---- */

static void examples_read_whole(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        uint64_t spans, span_ms;
    } files[] = {
        { "code_review_workflow.json", 15, 27000 }, { "parallel_requests.json", 5, 8500 },
        { "prefix_sharing_example.json", 7, 12000 }, { "simple_chain.json", 3, 6000 },
        { "software_architecture_review.json", 15, 37000 },
    };
    log_need(SHARED "simple_chain.json");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[128];
        struct kvc_import_report r;
        struct kvc_trace_stats s;
        snprintf(path, sizeof(path), SHARED "%s", files[i].file);
        struct kvc_trace *t = trace_import(path, 0, &r);
        kvc_trace_stats(t, &s);
        assert_int_equal(s.requests, files[i].spans);
        assert_int_equal(r.rows, files[i].spans);
        assert_int_equal(s.span_ns, files[i].span_ms * 1000000);
        assert_true(s.has_prefix);
        /* Five sessions by attribute, none in the one that has no session ids. */
        assert_int_equal(s.sessions, strstr(path, "prefix_sharing") ? 0 : 1);
        kvc_trace_destroy(t);
    }
}

static void stated_counts_are_kept_and_a_turn_is_no_part_of_its_parent(void **state)
{
    (void)state;
    struct kvc_import_report r;
    static const uint32_t prompt[] = { 50, 45, 100, 180 };
    const char *path = SHARED "prefix_sharing_example.json";
    log_need(path);
    struct kvc_trace *t = trace_import(path, 0, &r);
    for (int i = 0; i < 4; i++)
        assert_int_equal(t->input_tokens[i], prompt[i]);
    assert_int_equal(t->output_tokens[3], 60);
    assert_int_equal(log_tally(&r, "enclose"), 0); /* parents that ended before their children
                                                      began */
    kvc_trace_destroy(t);
}

/* ---- by hand ---- */

#define OTLP(spans)                                                                                \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":" \
    "{\"stringValue\":\"shop\"}}]},\"scopeSpans\":[{\"scope\":{},\"spans\":[" spans "]}]}]}\n"
#define SPAN(id, parent, start, end, attributes)                                                   \
    "{\"traceId\":\"t1\",\"spanId\":\"" id "\",\"parentSpanId\":\"" parent "\",\"name\":\"x\"," \
    "\"startTimeUnixNano\":\"17724384" start "000000000\",\"endTimeUnixNano\":\"17724384" end \
    "000000000\",\"attributes\":[" attributes "]}"
#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define INT(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"

static void only_the_innermost_call_counts(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *texts[] = {
        OTLP(SPAN("a", "", "00", "09", TEXT("gen_ai.operation.name", "invoke_agent") ","
                  TEXT("gen_ai.conversation.id", "c-1") ","
                  INT("gen_ai.usage.input_tokens", "1000")) ","
             SPAN("b", "a", "01", "04", TEXT("gen_ai.operation.name", "chat") ","
                  INT("gen_ai.usage.input_tokens", "1000")) ","
             SPAN("h", "b", "01", "04", TEXT("http.method", "POST")) ","
             SPAN("c", "h", "02", "03", TEXT("gen_ai.operation.name", "chat") ","
                  TEXT("gen_ai.request.model", "gpt-x") ","
                  INT("gen_ai.usage.input_tokens", "1000") ","
                  INT("gen_ai.usage.cache_read.input_tokens", "600") ","
                  INT("gen_ai.usage.output_tokens", "7"))),
        /* As exporters write it: who ends first comes first, a span a line. */
        OTLP(SPAN("c", "h", "02", "03", TEXT("gen_ai.operation.name", "chat") ","
                  TEXT("gen_ai.request.model", "gpt-x") ","
                  INT("gen_ai.usage.input_tokens", "1000") ","
                  INT("gen_ai.usage.cache_read.input_tokens", "600") ","
                  INT("gen_ai.usage.output_tokens", "7")))
        OTLP(SPAN("h", "b", "01", "04", TEXT("http.method", "POST")))
        OTLP(SPAN("b", "a", "01", "04", TEXT("gen_ai.operation.name", "chat") ","
                  INT("gen_ai.usage.input_tokens", "1000")))
        OTLP(SPAN("a", "", "00", "09", TEXT("gen_ai.operation.name", "invoke_agent") ","
                  TEXT("gen_ai.conversation.id", "c-1"))),
        /* One document, whose first line ends within a list of spans. */
        OTLP("\n" SPAN("c", "h", "02", "03", TEXT("gen_ai.operation.name", "chat") ","
                  TEXT("gen_ai.request.model", "gpt-x") ","
                  INT("gen_ai.usage.input_tokens", "1000") ","
                  INT("gen_ai.usage.cache_read.input_tokens", "600") ","
                  INT("gen_ai.usage.output_tokens", "7")) ",\n"
             SPAN("h", "b", "01", "04", TEXT("http.method", "POST")) ",\n"
             SPAN("b", "a", "01", "04", TEXT("gen_ai.operation.name", "chat") ","
                  INT("gen_ai.usage.input_tokens", "1000")) ",\n"
             SPAN("a", "", "00", "09", TEXT("gen_ai.operation.name", "invoke_agent") ","
                  TEXT("gen_ai.conversation.id", "c-1")) "\n"),
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct kvc_trace_stats s;
        struct kvc_import_options o = { .struct_size = sizeof(o), .tenant_field = "service.name" };
        struct kvc_trace *t = NULL;
        const char *path = trace_text("otlp", texts[i]);
        assert_int_equal(kvc_trace_import(&t, &path, 1, &o, &r, NULL), KVC_OK);
        kvc_trace_stats(t, &s);
        assert_int_equal(s.requests, 1);
        assert_int_equal(r.rows, 4);
        assert_int_equal(t->input_tokens[0], 1000);
        assert_int_equal(t->cached_tokens[0], 600);
        assert_int_equal(t->output_tokens[0], 7);
        assert_int_equal(s.sessions, 1); /* the agent's, two levels up */
        assert_string_equal(t->tenant_names[0], "shop");
        assert_string_equal(t->model_names[0], "gpt-x");
        assert_int_equal(log_tally(&r, "enclose"), 1);
        assert_int_equal(log_tally(&r, "other work"), 2);
        kvc_trace_destroy(t);
    }
}

static void old_and_new_names_are_one(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("flat",
                   "[{\"trace_id\":\"t\",\"span_id\":\"1\",\"start_time\":\"2026-03-02T08:00:00Z\","
                   "\"end_time\":\"2026-03-02T08:00:01Z\",\"attributes\":{"
                   "\"gen_ai.usage.prompt_tokens\":\"900\","
                   "\"gen_ai.usage.completion_tokens\":\"3\","
                   "\"gen_ai.usage.cached_tokens\":100,\"gen_ai.request.model\":\"m\"}},\n"
                   "{\"context\":{\"trace_id\":\"0x1\",\"span_id\":\"0x2\"},\"parent_id\":null,"
                   "\"start_time\":\"2026-03-02T08:00:02.5Z\",\"end_time\":null,"
                   "\"status\":{\"status_code\":\"OK\"},"
                   "\"attributes\":{\"llm.request.type\":\"chat\","
                   "\"llm.usage.prompt_tokens\":4,\"gen_ai.usage.cache_read_input_tokens\":2480,"
                   "\"gen_ai.usage.completion_tokens\":3}},\n"
                   "{\"trace_id\":\"t\",\"span_id\":\"3\",\"start_time\":\"2026-03-02T08:00:03Z\","
                   "\"status\":{\"code\":2},\"attributes\":{\"gen_ai.operation.name\":\"chat\"}},\n"
                   "{\"trace_id\":\"t\",\"span_id\":\"1\",\"start_time\":\"2026-03-02T08:00:00Z\","
                   "\"attributes\":{\"gen_ai.operation.name\":\"chat\"}},\n"
                   "{\"trace_id\":\"t\",\"span_id\":\"4\",\"start_time\":\"2026-03-02T08:00:04Z\","
                   "\"attributes\":{\"gen_ai.operation.name\":\"chat\","
                   "\"gen_ai.usage.input_tokens\":-5}},\n"
                   "{\"trace_id\":\"t\",\"span_id\":\"5\",\"attributes\":{}}]"),
        0, &r);
    assert_int_equal(t->n_requests, 2);
    assert_int_equal(t->input_tokens[0], 900);
    assert_int_equal(t->cached_tokens[0], 100);
    assert_int_equal(t->input_tokens[1], 2484);
    assert_int_equal(t->arrival_ns[1], 2500000000);
    assert_int_equal(r.failed, 1);
    assert_int_equal(log_tally(&r, "same id"), 1);
    assert_int_equal(log_tally(&r, "only that adds up"), 1);
    assert_int_equal(r.bad, 2);
    assert_string_equal(r.shown[0].field, "start_time");
    assert_string_equal(r.shown[1].field, "gen_ai.usage.input_tokens");
    kvc_trace_destroy(t);
}

#define KEY(name) "{\"key\":\"" name "\",\"value\":"
#define STRING(text) "{\"stringValue\":\"" text "\"}"
#define LIST(values) "{\"arrayValue\":{\"values\":[" values "]}}"
#define KVLIST(pairs) "{\"kvlistValue\":{\"values\":[" pairs "]}}"

/* An answer that is a value of OTLP is counted like its text; null and empty values are nothing. */
static void answers_as_values_are_read(void **state)
{
    (void)state;
    static const char *const answers[] = {
        STRING("[{\\\"role\\\":\\\"assistant\\\",\\\"content\\\":\\\"It ends in the lake, "
               "some say\\\"}]"),
        LIST(KVLIST(KEY("role") STRING("assistant") "},"
                    KEY("content") STRING("It ends in the lake, some say") "}")),
    };
    uint32_t tokens[2];
    for (size_t i = 0; i < 2; i++) {
        char text[2048];
        struct kvc_import_report r;
        snprintf(text, sizeof(text),
                 "{\"traceId\":\"t\",\"spanId\":\"1\",\"startTimeUnixNano\":"
                 "\"1772438400000000000\",\"attributes\":["
                 KEY("gen_ai.operation.name") STRING("chat") "},"
                 KEY("gen_ai.tool.definitions") "{\"arrayValue\":{}}},"
                 KEY("gen_ai.usage.input_tokens") "{\"intValue\":\"9\"}},"
                 KEY("gen_ai.input.messages")
                     LIST(KVLIST(KEY("role") STRING("user") "}," KEY("content") "{}}")) "},"
                 KEY("gen_ai.output.messages") "%s}]}\n", answers[i]);
        struct kvc_import_options o = { .struct_size = sizeof(o), .tokenizer = "bytes:4",
                                        .format = "otel-genai" };
        struct kvc_trace *t = NULL;
        const char *path = trace_text("answer", text);
        assert_int_equal(kvc_trace_import(&t, &path, 1, &o, &r, NULL), KVC_OK);
        tokens[i] = t->output_tokens[0];
        kvc_trace_destroy(t);
    }
    assert_true(tokens[0] >= 7);
    assert_int_equal(tokens[0], tokens[1]);
}

/* Five spellings of one prompt make the same blocks. */
static void texts_in_all_conventions_agree(void **state)
{
    (void)state;
    struct kvc_import_report r;
#define HEAD                                                                                       \
    "{\"trace_id\":\"t\",\"span_id\":\"1\",\"start_time\":\"2026-03-02T08:00:00Z\","       \
    "\"attributes\":{"                                                                             \
    "\"gen_ai.operation.name\":\"chat\",\"gen_ai.usage.input_tokens\":40," \
    "\"gen_ai.usage.output_tokens\":4,"
#define SYSTEM "You are a careful assistant who answers in short sentences and never guesses."
#define ASKED "Where does the river \\\\\\\"Rur\\\\\\\" end?"
    static const char *const texts[] = {
        HEAD "\"gen_ai.input.messages\":\"["
             "{\\\"role\\\":\\\"system\\\",\\\"content\\\":\\\"" SYSTEM "\\\"},"
             "{\\\"role\\\":\\\"user\\\",\\\"content\\\":\\\"" ASKED "\\\"}]\"}}\n",
        HEAD "\"gen_ai.system_instructions\":\"["
             "{\\\"type\\\":\\\"text\\\",\\\"content\\\":\\\"" SYSTEM "\\\"}]\","
             "\"gen_ai.input.messages\":\"[{\\\"role\\\":\\\"user\\\","
             "\\\"parts\\\":[{\\\"type\\\":\\\"text\\\","
             "\\\"content\\\":\\\"" ASKED "\\\"}]}]\"}}\n",
        HEAD "\"gen_ai.prompt.0.role\":\"system\",\"gen_ai.prompt.0.content\":\"" SYSTEM "\","
             "\"gen_ai.prompt.1.role\":\"user\","
             "\"gen_ai.prompt.1.content\":\"Where does the river \\\"Rur\\\" end?\"}}\n",
        /* values that are no text: as JSON, and as OTLP wraps them */
        HEAD "\"gen_ai.system_instructions\":[{\"type\":\"text\",\"content\":\"" SYSTEM "\"}],"
             "\"gen_ai.input.messages\":[{\"role\":\"user\",\"parts\":[{\"type\":\"text\","
             "\"content\":\"Where does the river \\\"Rur\\\" end?\"}]}]}}\n",
        "{\"traceId\":\"t\",\"spanId\":\"1\",\"startTimeUnixNano\":\"1772438400000000000\","
        "\"attributes\":["
        KEY("gen_ai.operation.name") STRING("chat") "},"
        KEY("gen_ai.usage.input_tokens") "{\"intValue\":\"40\"}},"
        KEY("gen_ai.usage.output_tokens") "{\"intValue\":4}},"
        KEY("gen_ai.system_instructions")
            LIST(KVLIST(KEY("type") STRING("text") "}," KEY("content") STRING(SYSTEM) "}")) "},"
        KEY("gen_ai.input.messages")
            LIST(KVLIST(KEY("role") STRING("user") "},"
                        KEY("parts") LIST(KVLIST(
                            KEY("type") STRING("text") "},"
                            KEY("content") STRING("Where does the river \\\"Rur\\\" end?") "}"))
                        "}")) "}"
        "]}\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = 8,
                                        .tokenizer = "bytes:4", .format = "otel-genai" };
        struct kvc_trace *t = NULL;
        struct kvc_error err = { 0 };
        const char *path = trace_text("text", texts[i]);
        if (kvc_trace_import(&t, &path, 1, &o, &r, &err) != KVC_OK)
            fail_msg("%s", err.text);
        assert_int_equal(kvc_trace_blocks(t, 0), 5);
        /* Together with the first, their prompts are one path. */
        const char *both[] = { trace_text("one", texts[0]), path };
        kvc_trace_destroy(t);
        t = NULL;
        assert_int_equal(kvc_trace_import(&t, both, 2, &o, &r, &err), KVC_OK);
        assert_int_equal(t->prompt_seg[0], t->prompt_seg[1]);
        kvc_trace_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_read_whole),
        cmocka_unit_test(stated_counts_are_kept_and_a_turn_is_no_part_of_its_parent),
        cmocka_unit_test(only_the_innermost_call_counts),
        cmocka_unit_test(old_and_new_names_are_one),
        cmocka_unit_test(texts_in_all_conventions_agree),
        cmocka_unit_test(answers_as_values_are_read),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
