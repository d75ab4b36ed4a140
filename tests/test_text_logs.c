/* SPDX-License-Identifier: Apache-2.0
 * lmcache-agent-trace and AIBrix workloads: rows by hand, and the published files with the reuse
 * their page states. Both readers see every row. */
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED "../shared/"

static struct kvc_import_report report;

static struct kvc_trace *import(const char *path, uint32_t block, const char *tokenizer)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = block,
                                    .tokenizer = tokenizer, .compare_readers = true };
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    if (kvc_trace_import(&t, &path, 1, &o, &report, &err) != KVC_OK)
        fail_msg("%s: %s %s", path, err.field, err.text);
    return t;
}

/* ---- by hand ---- */

static void agent_rows(void **state)
{
    (void)state;
    struct kvc_trace *t = import(trace_text("agent",
        "{\"timestamp\": 1761000000000000, \"input\": \"hello\", \"output\": \"1234\", "
        "\"session_id\": \"a\"}\n"
        "{\"timestamp\": 1761000001500000, \"input\": \"hello\\nbot: 1234\\nand\", \"output\": "
        "\"\", \"session_id\": \"a\"}\n"
        "{\"timestamp\": 1761000002000000, \"input\": \"h\\u00e9llo\", \"output\": \"x\", "
        "\"session_id\": \"b\"}\n"
        "{\"timestamp\": 1761000003000000, \"input\": \"\", \"output\": \"x\", \"session_id\": "
        "\"b\"}\n"
        "{\"timestamp\": 1761000003000000, \"output\": \"x\", \"session_id\": \"b\"}\n"
        "{\"timestamp\": 1761000003000000, \"input\": [1], \"output\": \"x\", \"session_id\": "
        "\"b\"}\n"), 1, "bytes:1");
    assert_int_equal(report.bad, 3);
    assert_int_equal(t->n_requests, 3);
    assert_true(t->arrival_ns[1] == 1500000000);
    assert_int_equal(t->input_tokens[1], 19);
    assert_int_equal(t->input_tokens[2], 6); /* the accent is two bytes */
    assert_int_equal(t->output_tokens[0], 4);
    /* "hello", then a label and the answer in the next input: 5 + 4 tokens, one without KV */
    assert_int_equal(log_output_blocks(t, 0), 8);
    assert_int_equal(t->session[0], t->session[1]);
    kvc_trace_destroy(t);
}

static void inputs_without_answers(void **state)
{
    (void)state;
    kvc_trace_destroy(import(trace_text("agent",
        "{\"timestamp\": 1, \"input\": \"hello\", \"output\": \"1234\", \"session_id\": \"a\"}\n"
        "{\"timestamp\": 2, \"input\": \"hello and more\", \"output\": \"5\", \"session_id\": "
        "\"a\"}\n"), 1, "bytes:1"));
    assert_true(log_note(&report, "1 inputs go on from the session's input before, none with the "
                                  "answer"));
}

static void aibrix_rows(void **state)
{
    (void)state;
    struct kvc_trace *t = import(trace_text("aibrix",
        "{\"timestamp\": 21, \"requests\": [{\"Prompt Length\": 4, \"Output Length\": 2, "
        "\"prompt\": \"12345678\"}, {\"Prompt Length\": 5, \"Output Length\": 3, \"prompt\": "
        "\"1234567890\"}]}\n"
        "{\"timestamp\": 30, \"requests\": []}\n"
        "{\"timestamp\": 40, \"requests\": [{\"Prompt Length\": 6, \"Output Length\": 1, "
        "\"prompt\": null}, 7]}\n"), 2, NULL);
    assert_int_equal(report.rows, 5);
    assert_int_equal(report.bad, 1);
    assert_int_equal(t->n_requests, 3);
    assert_true(t->arrival_ns[1] == 0 && t->arrival_ns[2] == 19000000);
    assert_int_equal(t->input_tokens[1], 5);
    assert_int_equal(t->output_tokens[1], 3);
    assert_int_equal(kvc_trace_blocks(t, 0), 2);
    assert_int_equal(kvc_trace_blocks(t, 1), 3);
    assert_int_equal(kvc_trace_blocks(t, 2), 0); /* no text: reuse unknown */
    assert_int_equal(report.without_ids, 1);
    assert_true(log_note(&report, "bytes a token: 2.000"));
    kvc_trace_destroy(t);
}

/* ---- what is published ---- */

static void microseconds(void **state)
{
    (void)state;
    const char *path = SHARED "cases/inputs/c44-microsecond-epoch.lmcache-agent.jsonl";
    log_need(path);
    struct kvc_trace *t = import(path, 0, NULL);
    assert_true(t->arrival_ns[1] == 14376544000);
    kvc_trace_destroy(t);
}

/* Members of an archive one by one: what they have in common with each other doesn't count. */
static void add_session(const char *bytes, size_t n, uint64_t *hits, uint64_t *tokens)
{
    struct kvc_hits h;
    struct kvc_trace *t = import(trace_file("session.jsonl", bytes, n), 1, "bytes:1");
    assert_int_equal(kvc_ceiling_content(t, &h, NULL), KVC_OK);
    *hits += h.raw_hit_tokens;
    *tokens += h.tokens;
    kvc_trace_destroy(t);
}

static void sessions_of(const char *archive, unsigned n, uint64_t *hits, uint64_t *tokens)
{
    char command[256];
    static char bytes[8 << 20];
    unsigned found = 0;
    snprintf(command, sizeof(command), "zstd -dc %s", archive);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char head[512];
    while (fread(head, 1, 512, f) == 512 && head[0]) {
        size_t size = strtoul(head + 124, NULL, 8), padded = (size + 511) / 512 * 512;
        assert_true(padded <= sizeof(bytes));
        assert_int_equal(fread(bytes, 1, padded, f), padded);
        if (head[156] == '0' || head[156] == '\0') {
            if (size) /* one file of taubench is empty */
                add_session(bytes, size, hits, tokens);
            found++;
        }
    }
    pclose(f);
    assert_int_equal(found, n);
}

static void published_reuse(void **state)
{
    (void)state;
    static const struct {
        const char *archive;
        unsigned sessions;
        uint64_t requests;
        double reuse;
    } of[] = { { SHARED "traces/lmcache-agent-trace/miniswe.tar.zst", 20, 402, 0.936 },
               { SHARED "traces/lmcache-agent-trace/taubench.tar.zst", 25, 471, 0.868 } };
    for (size_t i = 0; i < 2; i++) {
        uint64_t hits = 0, tokens = 0;
        log_need(of[i].archive);
        sessions_of(of[i].archive, of[i].sessions, &hits, &tokens);
        double reuse = (double)hits / (double)tokens;
        if (reuse < of[i].reuse - 0.0005 || reuse > of[i].reuse + 0.0005)
            fail_msg("%s: %.4f", of[i].archive, reuse);
        struct kvc_trace *t = import(of[i].archive, 16, NULL);
        assert_int_equal(t->n_requests, of[i].requests);
        assert_int_equal(t->n_sessions, of[i].sessions - i);
        kvc_trace_destroy(t);
    }
}

static void aibrix_files(void **state)
{
    (void)state;
    const char *path = SHARED "traces/aibrix/workload/5s.jsonl.zst";
    struct kvc_trace_stats s;
    log_need(path);
    struct kvc_trace *t = import(path, 0, NULL);
    kvc_trace_stats(t, &s);
    assert_int_equal(s.requests, 203);
    assert_true(s.span_ns > 4900000000 && s.span_ns < 5000000000);
    kvc_trace_destroy(t);
    t = import(SHARED "traces/aibrix/workload/ten_requests.jsonl", 0, NULL);
    assert_int_equal(t->n_requests, 10);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agent_rows),   cmocka_unit_test(inputs_without_answers),
        cmocka_unit_test(aibrix_rows),  cmocka_unit_test(microseconds),
        cmocka_unit_test(published_reuse), cmocka_unit_test(aibrix_files),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
