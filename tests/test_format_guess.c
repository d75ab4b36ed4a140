/* SPDX-License-Identifier: Apache-2.0
 * No file is taken for a format that it isn't of: of all formats at most one recognises it, and the
 * right one where its name says which. */
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/import/import.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const struct {
    const char *in_path, *format; /* NULL: none of them */
} known[] = {
    { ".mooncake.jsonl", "mooncake" },
    { "/mooncake/", "mooncake" },
    { ".bailian.jsonl", "qwen-bailian" },
    { ".ragpulse.jsonl", "ragpulse" },
    { ".llmservingsim.jsonl", "llmservingsim" },
    { "/llmservingsim/workloads/", "llmservingsim" },
    { "/kv-cache-tester/single/", "kv-cache-tester" },
    { "/tair-kvcache/", "tair" },
    { ".configs.jsonl", NULL },
    { ".hf-configs.jsonl", NULL },
    { "c39-scale-recipe.txt", NULL },
};

/* For what no other format knows; listed behind the others, it gets nothing that is theirs. */
static bool last_resort(const struct kvc_format *f)
{
    return strcmp(f->name, "usage-jsonl") == 0;
}

static unsigned check_file(const char *path)
{
    struct kvc_stream *stream = NULL;
    const char *taken = NULL;
    size_t n;
    if (kvc_stream_open(&stream, path, NULL) != KVC_OK)
        return 0; /* not text */
    const char *head = kvc_stream_head(stream, &n);
    for (const struct kvc_format *const *f = kvc_format_table; *f; f++) {
        if (kvc_stream_is_tar(stream) || !(*f)->sniff(head, n) || (taken && last_resort(*f)))
            continue;
        if (taken)
            fail_msg("%s: %s or %s?", path, taken, (*f)->name);
        taken = (*f)->name;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(path, known[i].in_path) &&
            (!taken != !known[i].format || (taken && strcmp(taken, known[i].format) != 0)))
            fail_msg("%s is taken for %s", path, taken ? taken : "nothing");
    kvc_stream_close(stream);
    return 1;
}

static unsigned check_folder(const char *folder)
{
    char path[512];
    unsigned files = 0;
    struct stat st;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &st) != 0)
            continue;
        files += S_ISDIR(st.st_mode) ? check_folder(path) : check_file(path);
    }
    if (d)
        closedir(d);
    return files;
}

static void shared_files_are_of_one_format_each(void **state)
{
    (void)state;
    log_need(SHARED_CASES);
    assert_true(check_folder(SHARED_CASES) > 30);
    assert_true(check_folder(SHARED_TRACES) > 30);
}

static const char *guess(const char *text)
{
    const char *found = "none";
    for (const struct kvc_format *const *f = kvc_format_table; *f; f++)
        if ((*f)->sniff(text, strlen(text)))
            found = strcmp(found, "none") == 0 ? (*f)->name : "several";
    return found;
}

static void relatives_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text, *format;
    } cases[] = {
        { "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"hash_ids\":[1]}", "mooncake" },
        { "\n\n{\"input_length\":1,\"x\":{\"chat_id\":1},\"output_length\":1}", "mooncake" },
        { "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":0,\"input_length\":1,"
          "\"output_length\":1}", "qwen-bailian" },
        { "not a row\n{\"timestamp\":0,\"parent_chat_id\":-1,\"chat_id\":1", "qwen-bailian" },
        { "{\"timestamp\":\"0\",\"input_length\":1,\"output_length\":1,\"hash_ids\":"
          "{\"sys_prompt\":[],\"user_input\":[1]}}", "ragpulse" },
        { "{\"passage_id\":1,\"token_length\":3}", "ragpulse" },
        { "{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"tool_end\"}", "dynamo" },
        { "{\"timestamp\":1,\"event\":{\"event_type\":\"x\",\"schema\":\"dynamo.request.trace.v9\"",
          "dynamo" },
        { "{\"schema\":\"other\",\"event_type\":\"dynamo.request.trace.\"}", "dynamo" },
        { "{\"time\":1,\"text\":\"a\",\"level\":\"info\"}", "none" },
        { "{\"keys\":[1],\"timestamp_us\":1}", "none" },
        { "{\"a\":\"\\\"chat_id\\\":\",\"parent_chat_id\":1,\"timestamp\":3}", "none" },
        { "{\"a", "none" },
        { "[", "none" },
        { " ", "none" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(guess(cases[i].text), cases[i].format) != 0)
            fail_msg("%s: %s", cases[i].text, guess(cases[i].text));
}

static void strangers_are_described(void **state)
{
    (void)state;
    char deep[400] = "{\"x\":";
    memset(deep + 5, '[', 100);
    strcpy(deep + 105, "\n");
    assert_non_null(strstr(trace_import_error(trace_text("deep", deep), NULL),
                           "deep:1: nested deeper than 64 levels"));
    const char *odd = trace_text("odd", "{\"when\":1,\"what\":{\"n\":2}}\n");
    assert_non_null(strstr(trace_import_error(odd, NULL), "first row has the fields when, what"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_files_are_of_one_format_each),
        cmocka_unit_test(relatives_are_told_apart),
        cmocka_unit_test(strangers_are_described),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
