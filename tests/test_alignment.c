/* SPDX-License-Identifier: Apache-2.0
 * Prompts that share less than a block: hit rates fall to 0, and the import says why. */
#include "tests/log_checks.h"
#include "tests/trace_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void import_with(const char *path, const char *format, uint32_t block,
                        struct kvc_import_report *r)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = block,
                                    .format = format, .tokenizer = "bytes:1" };
    kvc_trace_destroy(log_import(&path, 1, &o, r));
}

#define NONE_SHARED                                                                                \
    "no block of %u tokens is shared, but prompts do share their first tokens, up to %u:"

static void assert_short(const struct kvc_import_report *r, unsigned block, unsigned longest)
{
    char words[160];
    snprintf(words, sizeof(words), NONE_SHARED, block, longest);
    assert_true(log_note(r, words));
}

static void test_case_c01(void **state)
{
    const char *path = SHARED_CASES "c01-prefix-shorter-than-block.llmservingsim.jsonl";
    struct kvc_import_report r;
    (void)state;
    log_need(path);
    import_with(path, NULL, 0, &r);
    assert_short(&r, 16, 5);
    import_with(path, NULL, 8, &r);
    assert_short(&r, 8, 5);
    import_with(path, NULL, 4, &r); /* three of the four prompts find a block, and a token behind */
    assert_true(log_note(&r, "alignment: of 64 prompt tokens, 12 are shared in whole blocks of 4 "
                             "and 3 "));
}

static void test_case_c07(void **state)
{
    const char *path = SHARED_CASES "c07-unaligned-prefix.llmservingsim.jsonl";
    struct kvc_import_report r;
    (void)state;
    log_need(path);
    import_with(path, NULL, 64, &r);
    assert_short(&r, 64, 20);
    import_with(path, NULL, 16, &r);
    assert_true(log_note(&r, "of 96 prompt tokens, 32 are shared in whole blocks of 16 and 8 "));
    import_with(path, NULL, 20, &r); /* nothing is lost */
    assert_false(log_note(&r, "alignment"));
}

static void test_token_ids(void **state)
{
    const char *path = trace_text("ids.jsonl",
        "{\"arrival_time_ns\":0,\"input_toks\":3,\"output_toks\":2,\"input_tok_ids\":[1,2,3],"
        "\"output_tok_ids\":[4,9]}\n"
        /* the answer, of which the last token has no KV, makes up the first block */
        "{\"arrival_time_ns\":1,\"input_toks\":5,\"output_toks\":0,\"input_tok_ids\":[1,2,3,4,5]}\n"
        "{\"arrival_time_ns\":2,\"input_toks\":2,\"output_toks\":0,\"input_tok_ids\":[7,8]}\n");
    struct kvc_import_report r;
    (void)state;
    import_with(path, NULL, 4, &r);
    assert_false(log_note(&r, "alignment"));
    import_with(path, NULL, 5, &r);
    assert_short(&r, 5, 4);
    import_with(path, NULL, 3, &r);
    assert_true(log_note(&r, "of 10 prompt tokens, 3 are shared in whole blocks of 3 and 1 "));
}

static void test_text(void **state)
{
    const char *path = trace_text("text.jsonl",
        "{\"timestamp\":1761000000000000,\"input\":\"abcdefX\",\"output\":\"\","
        "\"session_id\":\"a\"}\n"
        "{\"timestamp\":1761000001000000,\"input\":\"abcdefY\",\"output\":\"\","
        "\"session_id\":\"b\"}\n");
    struct kvc_import_report r;
    (void)state;
    import_with(path, "lmcache-agent", 0, &r);
    assert_short(&r, 16, 6);
    import_with(path, "lmcache-agent", 6, &r);
    assert_false(log_note(&r, "alignment"));
}

/* What one model has is no use to another, unless they are taken for one. */
static void test_models(void **state)
{
    const char *path = trace_text("models.jsonl",
        "{\"timestamp\":0,\"model\":\"a\",\"prompt\":\"one two\",\"output_length\":1}\n"
        "{\"timestamp\":1,\"model\":\"b\",\"prompt\":\"one three\",\"output_length\":1}\n");
    struct kvc_import_options o = { .struct_size = sizeof(o), .format = "openai-messages" };
    struct kvc_import_report r;
    (void)state;
    o.tokenizer = "bytes:1";
    kvc_trace_destroy(log_import(&path, 1, &o, &r));
    assert_false(log_note(&r, "alignment"));
    o.merge_models = true;
    kvc_trace_destroy(log_import(&path, 1, &o, &r));
    assert_short(&r, 16, 5);
}

static void test_without_memory(void **state)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .tokenizer = "bytes:1" };
    (void)state;
    log_import_without_memory(trace_text("memory.jsonl",
        "{\"arrival_time_ns\":0,\"input_toks\":2,\"output_toks\":0,\"input_tok_ids\":[1,2]}\n"
        "{\"arrival_time_ns\":0,\"input_toks\":2,\"output_toks\":0,\"input_tok_ids\":[1,3]}\n"),
        &o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_c01),
        cmocka_unit_test(test_case_c07),
        cmocka_unit_test(test_token_ids),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
