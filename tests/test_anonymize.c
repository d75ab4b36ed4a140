/* SPDX-License-Identifier: Apache-2.0
 * --anonymize: a secret planted in every text of a log is in nothing that comes out. */
#include "tests/trace_files.h"
#include "traces/trace.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECRET "Zebedee77"

/* Each with the secret as session, model, tenant, id and text, and with rows that can't be used
 * because of what the secret stands in for. */
static const struct {
    const char *name, *text;
} logs[] = {
    {"mooncake.jsonl",
     "{\"timestamp\":0,\"input_length\":600,\"output_length\":1,\"hash_ids\":[\"" SECRET "1\",\""
     SECRET "2\"],\"session_id\":\"" SECRET "\",\"model\":\"" SECRET "\",\"user\":\"" SECRET
     "\",\"" SECRET "\":1}\n"
     "{\"timestamp\":\"" SECRET "\",\"input_length\":600,\"output_length\":1}\n"
     "{\"timestamp\":1,\"input_length\":\"" SECRET "\",\"output_length\":1}\n"
     "{\"timestamp\":2,\"input_length\":5, " SECRET "\n"},
    {"litellm.jsonl",
     "{\"request_id\":\"" SECRET "\",\"call_type\":\"" SECRET "\",\"startTime\":"
     "\"2026-01-01T00:00:00Z\",\"endTime\":\"2026-01-01T00:00:02Z\",\"spend\":0.1,"
     "\"prompt_tokens\":100,\"completion_tokens\":5,\"total_tokens\":105,\"model\":\"" SECRET
     "\",\"api_key\":\"" SECRET "\",\"user\":\"" SECRET "\",\"team_id\":\"" SECRET
     "\",\"end_user\":\"" SECRET "\",\"session_id\":\"" SECRET "\",\"custom_llm_provider\":\""
     SECRET "\",\"status\":\"" SECRET "\",\"cache_hit\":\"False\",\"metadata\":{}}\n"},
    {"dynamo.jsonl",
     "{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"" SECRET "\"}\n"
     "{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"request_end\","
     "\"event_time_unix_ms\":5,\"agent_context\":{\"session_id\":\"" SECRET "\"},\"request\":{"
     "\"request_id\":\"" SECRET "\",\"model\":\"" SECRET "\",\"input_tokens\":64,"
     "\"output_tokens\":2,\"request_received_ms\":4,\"replay\":{\"trace_block_size\":64,"
     "\"input_length\":64,\"input_sequence_hashes\":[7]}}}\n"},
};

static void clean(const char *what, const char *text)
{
    if (text && strstr(text, SECRET))
        fail_msg("%s: %s", what, text);
}

static void check(const struct kvc_trace *t, const struct kvc_import_report *r)
{
    char text[1024];
    for (uint32_t i = 0; i < t->n_tenants; i++)
        clean("tenant", t->tenant_names[i]);
    for (uint32_t i = 0; i < t->n_models; i++)
        clean("model", t->model_names[i]);
    for (uint32_t i = 0; i < r->n_notes; i++)
        clean("note", r->notes[i]);
    for (uint32_t i = 0; i < r->n_tallies; i++)
        clean("tally", r->tallies[i].text);
    for (uint32_t i = 0; i < r->n_shown; i++) {
        kvc_error_format(&r->shown[i], text, sizeof(text));
        clean("bad row", text);
    }
}

static struct kvc_trace *import(size_t i, bool anonymize, const char *salt,
                                struct kvc_import_report *r)
{
    struct kvc_import_options o = {.struct_size = sizeof(o), .anonymize = anonymize,
                                   .salt_file = salt};
    const char *path = trace_text(logs[i].name, logs[i].text);
    struct kvc_trace *t = NULL;
    struct kvc_error err = {0};
    if (kvc_trace_import(&t, &path, 1, &o, r, &err) != KVC_OK)
        fail_msg("%s: %s", logs[i].name, err.text);
    return t;
}

static void a_planted_secret_stays_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        struct kvc_import_report r;
        struct kvc_trace *t = import(i, true, NULL, &r);
        assert_true(t->n_models > 0);
        check(t, &r);
        kvc_trace_destroy(t);
    }
}

static void what_it_hides_would_show_without(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        struct kvc_import_report r;
        struct kvc_trace *t = import(i, false, NULL, &r);
        assert_non_null(strstr(t->model_names[0], SECRET));
        kvc_trace_destroy(t);
    }
}

/* A file without the header that its format has begins with a row: errors don't quote it. */
static void what_stands_for_a_header_is_not_quoted(void **state)
{
    static const struct {
        const char *format, *text;
    } files[] = {
        {"azure", SECRET ",1,2\n"}, {"burstgpt", SECRET ",1,2\n"}, {"vidur", SECRET ",1,2\n"},
        {"libcachesim", SECRET "," SECRET "2," SECRET "3\n"}, {"kvcast-csv", SECRET ",1\n"},
        {"libcachesim", "# time, " SECRET ", size\n1,2,3\n"},
        {"blis-tracev2", "request_id,arrival_time_us," SECRET "\n0,0,1\n"},
        {"litellm", SECRET ",1,2\n1,2,3\n"}, {"langfuse", SECRET ",1,2\n1,2,3\n"},
        {NULL, "{\"" SECRET "\":1}\n"}, {NULL, SECRET "," SECRET "\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct kvc_import_options o = {.struct_size = sizeof(o), .anonymize = true,
                                       .format = files[i].format};
        clean(files[i].format ? files[i].format : "no format",
              trace_import_error(trace_text("log", files[i].text), &o));
    }
}

/* The same salt gives the same names, so that two imports can be laid side by side. */
static void names_follow_the_salt(void **state)
{
    struct kvc_import_report r;
    char salt[512];
    (void)state;
    snprintf(salt, sizeof(salt), "%s", trace_text("salt", "0123456789abcdef0123456789abcdef"));
    struct kvc_trace *a = import(0, true, salt, &r), *b = import(0, true, salt, &r);
    struct kvc_trace *c = import(0, true, NULL, &r), *plain = import(0, false, NULL, &r);
    assert_string_equal(a->model_names[0], b->model_names[0]);
    assert_string_not_equal(a->model_names[0], c->model_names[0]);
    assert_string_not_equal(a->model_names[0] + strlen("model"),
                            a->tenant_names[0] + strlen("tenant"));
    /* and nothing but names differs */
    assert_int_equal(a->n_segments, plain->n_segments);
    assert_memory_equal(a->prompt_seg, plain->prompt_seg, a->n_requests * 4);
    kvc_trace_destroy(a);
    kvc_trace_destroy(b);
    kvc_trace_destroy(c);
    kvc_trace_destroy(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planted_secret_stays_out),
        cmocka_unit_test(what_it_hides_would_show_without),
        cmocka_unit_test(what_stands_for_a_header_is_not_quoted),
        cmocka_unit_test(names_follow_the_salt),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
