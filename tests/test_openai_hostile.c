/* SPDX-License-Identifier: Apache-2.0
 * Requests with their text that are random, long, wrong or damaged, and when memory runs out. Both
 * readers see every row. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/parse/stream.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct kvc_import_report report;

static struct kvc_trace *import(const char *path, uint32_t block, const char *tokenizer)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = block,
                                    .tokenizer = tokenizer, .compare_readers = true,
                                    .format = "openai-messages" };
    return log_import(&path, 1, &o, &report);
}

static bool noted(const char *words)
{
    return log_note(&report, words) || log_tally(&report, words);
}

static void random_prefixes_are_shared(void **state)
{
    (void)state;
    static char text[1 << 20];
    static char body[64][800];
    size_t shared[64], from[64], used = 0;
    uint64_t rng = 77;
    for (size_t i = 0; i < 64; i++) {
        size_t n = 100 + (size_t)kvc_rng_below(&rng, 600);
        from[i] = i ? (size_t)kvc_rng_below(&rng, i) : 0;
        size_t most = i ? strlen(body[from[i]]) : 0;
        shared[i] = i ? (size_t)kvc_rng_below(&rng, most < n ? most : n) : 0;
        memcpy(body[i], body[from[i]], shared[i]);
        for (size_t k = shared[i]; k < n; k++)
            body[i][k] = (char)('a' + kvc_rng_below(&rng, 26));
        while (i && shared[i] < n && shared[i] < most &&
               body[i][shared[i]] == body[from[i]][shared[i]])
            shared[i]++;
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "{\"timestamp\":%zu,\"text_input\":\"%s\",\"output_length\":1}\n",
                                 i, body[i]);
    }
    struct kvc_trace *t = import(trace_text("prefixes", text), 3, "bytes:3.7");
    for (size_t i = 1; i < 64; i++) {
        /* a block ends with the first byte at or beyond its last token's end */
        uint32_t blocks = 0;
        while (3.7 * 3 * (blocks + 1) <= (double)shared[i])
            blocks++;
        uint32_t got = log_common(t, i, from[i]);
        assert_in_range(got, blocks ? blocks - 1 : 0, blocks);
    }
    kvc_trace_destroy(t);
}

static void long_rows(void **state)
{
    (void)state;
    const size_t sizes[] = { KVC_LINE_MAX - 200, KVC_LINE_MAX + 200 };
    for (size_t s = 0; s < 2; s++) {
        const char *path = trace_path("long");
        FILE *f = fopen(path, "w");
        fprintf(f, "{\"timestamp\":1,\"output_length\":1,\"messages\":[{\"role\":\"user\","
                   "\"content\":\"");
        for (size_t i = 0; i + 8 < sizes[s]; i += 8)
            fputs("caf\xc3\xa9\\n ", f);
        fprintf(f, "\"}]}\n{\"timestamp\":2,\"output_length\":1,\"messages\":[{\"role\":\"user\","
                   "\"content\":\"x\"}]}\n");
        fclose(f);
        struct kvc_import_options o = { .struct_size = sizeof(o), .format = "openai-messages" };
        struct kvc_trace *t = NULL;
        assert_int_equal(kvc_trace_import(&t, &path, 1, &o, &report, NULL), KVC_OK);
        assert_int_equal(report.bad, s);
        assert_int_equal(t->n_requests, 2 - s);
        if (!s)
            assert_in_range(t->input_tokens[0], (KVC_LINE_MAX - 200) / 8 * 7 / 4 - 10,
                            (KVC_LINE_MAX - 200) / 8 * 7 / 4 + 10);
        kvc_trace_destroy(t);
        unlink(path);
    }
}

static void hostile_rows_are_bad_rows(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud83\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\tb\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\x\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"messages\":[]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}", "{\"messages\":", "[]", "7", "{}",
        "{\"messages\":[]}", "{\"messages\":5}", "{\"prompt\":[\"a\",\"b\"]}", "{\"prompt\":[1,2]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
        "\"usage\":{\"prompt_tokens\":99999999999}}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
        "\"usage\":{\"prompt_tokens\":2000000000}}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"output_length\":-1}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"session_id\":[1]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"timestamp\":2,\"session_id\":1.5}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"timestamp\":\"soon\"}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"delay\":\"x\"}",
    };
    size_t n = sizeof(rows) / sizeof(rows[0]);
    char text[8192] = "{\"timestamp\":1,\"messages\":[{\"role\":\"user\",\"content\":\"fine\"}]}\n";
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\n", rows[i]);
    struct kvc_trace *t = import(trace_text("hostile", text), 1, NULL);
    assert_int_equal(t->n_requests, 1);
    assert_int_equal(report.bad, n);
    kvc_trace_destroy(t);
    /* odd but right */
    t = import(trace_text("odd",
        "{\"timestamp\":1,\"messages\":[{\"role\":\"user\",\"content\":null},{\"role\":\"tool\","
        "\"content\":{\"a\":[1,{}]}},\"text\",{\"content\":7},{},{\"role\":\"assistant\","
        "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},{}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"sparkle\",\"x\":1},\"a\",5,"
        "[]]}]}\n"), 1, NULL);
    assert_int_equal(report.bad, 0);
    assert_true(noted("parts of a kind not known"));
    kvc_trace_destroy(t);
}

/* Rows cut at every length, and with every byte changed: never a crash, and both readers agree. */
static void damaged_rows(void **state)
{
    (void)state;
    static const char row[] =
        "{\"session_id\":\"s\\u00e9\",\"timestamp\":1760428436,\"model\":\"gpt-4o\","
        "\"tools\":[{\"a\":[1.5,true]}],\"messages\":[{\"role\":\"system\","
        "\"content\":\"x\\n\\ud83d\\ude00\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
        "\"text\":\"y\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:,A\"}}]}],"
        "\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":3},"
        "\"response\":{\"choices\":[{\"message\":{\"content\":\"z\"}}]}}";
    static char text[sizeof(row) * 1400];
    uint64_t rng = 11;
    size_t used = 0;
    for (size_t i = 0; i < 1200; i++) {
        char copy[sizeof(row)];
        memcpy(copy, row, sizeof(row));
        size_t n = i < sizeof(row) ? i : sizeof(row) - 1;
        if (i >= sizeof(row))
            for (int k = 0; k < 2; k++)
                copy[kvc_rng_below(&rng, n)] = (char)(kvc_rng_below(&rng, 255) + 1);
        for (size_t k = 0; k < n; k++)
            copy[k] = copy[k] == '\n' ? ' ' : copy[k];
        memcpy(text + used, copy, n);
        text[used + n] = '\n';
        used += n + 1;
    }
    memcpy(text + used, row, sizeof(row));
    struct kvc_trace *t = import(trace_text("damaged", text), 4, NULL);
    assert_true(report.accepted > 100 && report.bad > 400);
    kvc_trace_destroy(t);
}

static void memory_runs_out(void **state)
{
    (void)state;
    const char *path = trace_text("memory",
        "{\"session_id\":\"s\",\"timestamp\":1,\"model\":\"m\",\"messages\":[{\"role\":\"user\","
        "\"content\":\"hello there\"}],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":9}}\n"
        "{\"session_id\":\"s\",\"timestamp\":2,\"model\":\"m\",\"messages\":[{\"role\":\"user\","
        "\"content\":\"hello\\u00e9\"},{\"role\":\"assistant\",\"content\":\"12345678\"},"
        "{\"role\":\"user\",\"content\":\"and\"}]}\n"
        "{\"session_id\":\"d\",\"message_mode\":\"delta\",\"timestamp\":0,\"output_length\":10,"
        "\"messages\":[{\"role\":\"user\",\"content\":\"hello there\"}]}\n");
    enum kvc_status status = KVC_ERR_NOMEM;
    for (uint64_t k = 1; status != KVC_OK && k < 3000; k++) {
        struct kvc_import_options o = { .struct_size = sizeof(o), .compare_readers = k % 2 };
        struct kvc_trace *t = NULL;
        kvc_alloc_fail_after(k);
        status = kvc_trace_import(&t, &path, 1, &o, NULL, NULL);
        kvc_alloc_fail_after(0);
        if (status != KVC_OK)
            assert_int_equal(status, KVC_ERR_NOMEM);
        kvc_trace_destroy(t);
    }
    assert_int_equal(status, KVC_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_prefixes_are_shared),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(hostile_rows_are_bad_rows),
        cmocka_unit_test(damaged_rows),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
