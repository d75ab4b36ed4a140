/* SPDX-License-Identifier: Apache-2.0
 * Usage objects of every API come to the same counts, and contradictions are named. */
#include "base/rng.h"
#include "traces/formats/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct kvc_place here = { "log", 7 };

static struct kvc_usage read_as(enum kvc_usage_dialect dialect, const char *text)
{
    struct kvc_jval *root = NULL;
    struct kvc_usage u = { 0 };
    struct kvc_error err = { 0 };
    assert_int_equal(kvc_json_parse(&root, text, strlen(text), false, "log", 7, &err), KVC_OK);
    if (kvc_usage_read(root, dialect, "usage", &here, &u, &err) != KVC_OK)
        fail_msg("%s: %s", text, err.text);
    kvc_json_free(root);
    return u;
}

static void refuses(enum kvc_usage_dialect dialect, const char *text, const char *field)
{
    struct kvc_jval *root = NULL;
    struct kvc_usage u = { .prompt_tokens = 77 };
    struct kvc_error err = { 0 };
    assert_int_equal(kvc_json_parse(&root, text, strlen(text), false, "log", 7, &err), KVC_OK);
    assert_int_equal(kvc_usage_read(root, dialect, "usage", &here, &u, &err), KVC_ERR_INPUT);
    assert_string_equal(err.field, field);
    assert_int_equal(err.line, 7);
    assert_int_equal(u.prompt_tokens, 77);
    kvc_json_free(root);
}

static void is(struct kvc_usage u, uint32_t prompt, uint32_t cached, uint32_t written)
{
    assert_true(u.prompt_stated);
    assert_int_equal(u.prompt_tokens, prompt);
    assert_int_equal(u.cached_tokens, cached);
    assert_int_equal(u.cache_write_tokens, written);
}

/* One request, 1000 prompt tokens of which 600 cached, as three interfaces report it. */
static void one_request_in_three_languages(void **state)
{
    (void)state;
    is(read_as(KVC_USAGE_API, "{\"prompt_tokens\":1000,\"completion_tokens\":5,"
                              "\"prompt_tokens_details\":{\"cached_tokens\":600}}"),
       1000, 600, 0);
    is(read_as(KVC_USAGE_API, "{\"input_tokens\":400,\"cache_read_input_tokens\":600,"
                              "\"output_tokens\":5}"),
       1000, 600, 0);
    is(read_as(KVC_USAGE_OTEL, "{\"gen_ai.usage.input_tokens\":1000,"
                               "\"gen_ai.usage.cache_read.input_tokens\":600}"),
       1000, 600, 0);
}

/* An embedding generates nothing; where neither answer nor sum is stated, nobody knows. */
static void a_sum_tells_the_answer(void **state)
{
    (void)state;
    struct kvc_usage u = read_as(KVC_USAGE_API, "{\"prompt_tokens\":8,\"total_tokens\":8}");
    assert_true(u.output_stated && u.output_tokens == 0);
    u = read_as(KVC_USAGE_API, "{\"prompt_tokens\":8,\"total_tokens\":20}");
    assert_true(u.output_stated && u.output_tokens == 12);
    u = read_as(KVC_USAGE_API, "{\"prompt_tokens\":8}");
    assert_false(u.output_stated);
}

static void a_first_write_is_part_of_the_prompt(void **state)
{
    (void)state;
    struct kvc_usage u = read_as(KVC_USAGE_API,
                                 "{\"input_tokens\":50,\"cache_creation_input_tokens\":950,"
                                 "\"cache_read_input_tokens\":0,\"output_tokens\":1}");
    is(u, 1000, 0, 950);
    assert_true(u.exclusive && u.cached_stated && u.write_stated && !u.against_custom);
    is(read_as(KVC_USAGE_API, "{\"input_tokens\":50,\"cache_creation\":{"
                              "\"ephemeral_5m_input_tokens\":900,"
                              "\"ephemeral_1h_input_tokens\":50},\"output_tokens\":1}"),
       1000, 0, 950);
    is(read_as(KVC_USAGE_API, "{\"input_tokens\":50,\"cache_creation_input_tokens\":950,"
                              "\"cache_creation\":{\"ephemeral_5m_input_tokens\":900,"
                              "\"ephemeral_1h_input_tokens\":50}}"),
       1000, 0, 950);
}

/* The rows of case c17: a gateway's prompt_tokens includes cached tokens, or it can't. */
static void a_gateway_mixes_both(void **state)
{
    (void)state;
    is(read_as(KVC_USAGE_API, "{\"prompt_tokens\":6000,\"completion_tokens\":280,"
                              "\"total_tokens\":6280,"
                              "\"prompt_tokens_details\":{\"cached_tokens\":3400}}"),
       6000, 3400, 0);
    is(read_as(KVC_USAGE_API, "{\"prompt_tokens\":2500,\"completion_tokens\":20,"
                              "\"total_tokens\":2520,"
                              "\"prompt_tokens_details\":{\"cached_tokens\":0},"
                              "\"cache_read_input_tokens\":2480,"
                              "\"cache_creation_input_tokens\":0}"),
       2500, 2480, 0);
    struct kvc_usage u = read_as(KVC_USAGE_API,
                                 "{\"prompt_tokens\":4,\"completion_tokens\":30,"
                                 "\"total_tokens\":34,\"cache_read_input_tokens\":2480,"
                                 "\"cache_creation_input_tokens\":0}");
    is(u, 2484, 2480, 0);
    assert_true(u.exclusive && u.against_custom);
}

static void absent_and_null_are_not_0(void **state)
{
    (void)state;
    struct kvc_usage u = read_as(KVC_USAGE_API, "{\"prompt_tokens\":10,\"completion_tokens\":null,"
                                                "\"prompt_tokens_details\":null}");
    assert_true(u.prompt_stated && !u.cached_stated && !u.output_stated && !u.write_stated);
    u = read_as(KVC_USAGE_API, "{\"prompt_tokens\":10,"
                               "\"prompt_tokens_details\":{\"cached_tokens\":0}}");
    assert_true(u.cached_stated && u.cached_tokens == 0);
    u = read_as(KVC_USAGE_API, "{\"prompt_tokens\":10,"
                               "\"prompt_tokens_details\":{\"cached_tokens\":null}}");
    assert_false(u.cached_stated);
    assert_false(read_as(KVC_USAGE_API, "{}").prompt_stated);
    u = read_as(KVC_USAGE_OTEL, "{\"gen_ai.usage.cache_read.input_tokens\":5}");
    assert_false(u.prompt_stated);
    struct kvc_log_row row = { 0 };
    kvc_usage_into_row(&u, &row);
    assert_false(row.cached_stated);
}

static void contradictions_name_the_field(void **state)
{
    (void)state;
    refuses(KVC_USAGE_API, "{\"prompt_tokens\":10,\"prompt_tokens_details\":"
                           "{\"cached_tokens\":11}}",
            "usage.prompt_tokens_details.cached_tokens");
    refuses(KVC_USAGE_API, "{\"input_tokens\":10,\"input_tokens_details\":"
                           "{\"cached_tokens\":11}}",
            "usage.input_tokens_details.cached_tokens");
    refuses(KVC_USAGE_API, "{\"prompt_tokens\":100,\"cache_read_input_tokens\":11,"
                           "\"prompt_tokens_details\":{\"cached_tokens\":12}}",
            "usage.cache_read_input_tokens");
    refuses(KVC_USAGE_API, "{\"input_tokens\":1,\"cache_creation_input_tokens\":9,"
                           "\"cache_creation\":{\"ephemeral_5m_input_tokens\":8}}",
            "usage.cache_creation.ephemeral_5m_input_tokens");
    refuses(KVC_USAGE_API, "{\"prompt_tokens\":5,\"input_tokens\":4}", "usage.input_tokens");
    refuses(KVC_USAGE_API, "{\"prompt_tokens\":-1}", "usage.prompt_tokens");
    refuses(KVC_USAGE_API, "{\"prompt_tokens\":1.5}", "usage.prompt_tokens");
    refuses(KVC_USAGE_API, "{\"prompt_tokens\":\"many\"}", "usage.prompt_tokens");
    refuses(KVC_USAGE_API, "{\"prompt_tokens\":3000000000}", "usage.prompt_tokens");
    refuses(KVC_USAGE_API, "{\"input_tokens\":2000000000,\"cache_read_input_tokens\":2000000000}",
            "usage.input_tokens");
    refuses(KVC_USAGE_API, "{\"prompt_tokens\":5,\"completion_tokens\":3,"
                           "\"completion_tokens_details\":{\"reasoning_tokens\":4}}",
            "usage.completion_tokens_details.reasoning_tokens");
}

static void other_names_in_use(void **state)
{
    (void)state;
    is(read_as(KVC_USAGE_API, "{\"input_tokens\":1000,\"input_tokens_details\":"
                              "{\"cached_tokens\":600},\"output_tokens\":9,"
                              "\"output_tokens_details\":{\"reasoning_tokens\":4}}"),
       1000, 600, 0);
    is(read_as(KVC_USAGE_API, "{\"inputTokens\":400,\"cacheReadInputTokens\":500,"
                              "\"cacheWriteInputTokens\":100,\"outputTokens\":9}"),
       1000, 500, 100);
    is(read_as(KVC_USAGE_API, "{\"prompt_cache_hit_tokens\":600,"
                              "\"prompt_cache_miss_tokens\":400,\"completion_tokens\":1}"),
       1000, 600, 0);
    struct kvc_usage u = read_as(KVC_USAGE_API,
                                 "{\"promptTokenCount\":1000,\"cachedContentTokenCount\":600,"
                                 "\"candidatesTokenCount\":10,\"thoughtsTokenCount\":20,"
                                 "\"totalTokenCount\":1030}");
    is(u, 1000, 600, 0);
    assert_int_equal(u.output_tokens, 30);
    assert_int_equal(u.reasoning_tokens, 20);
    assert_false(u.total_differs);
    /* The gateway gives both inputs. */
    is(read_as(KVC_USAGE_API, "{\"prompt_tokens\":1000,\"input_tokens\":400,"
                              "\"cache_read_input_tokens\":600}"),
       1000, 600, 0);
    is(read_as(KVC_USAGE_OTEL, "{\"gen_ai.usage.prompt_tokens\":\"1000\","
                               "\"gen_ai.usage.cached_tokens\":\"600\"}"),
       1000, 600, 0);
    is(read_as(KVC_USAGE_OTEL, "{\"llm.token_count.prompt\":1000,"
                               "\"llm.token_count.prompt_details.cache_read\":600}"),
       1000, 600, 0);
    /* Against the convention, and only this adds up. */
    u = read_as(KVC_USAGE_OTEL, "{\"gen_ai.usage.input_tokens\":4,"
                                "\"gen_ai.usage.cache_read_input_tokens\":2480}");
    is(u, 2484, 2480, 0);
    assert_true(u.against_custom);
}

static void langfuse_parts_add_up_to_the_total(void **state)
{
    (void)state;
    struct kvc_usage u = read_as(KVC_USAGE_LANGFUSE,
                                 "{\"input\":400,\"input_cached_tokens\":600,\"output\":10,"
                                 "\"output_reasoning_tokens\":20,\"total\":1030}");
    is(u, 1000, 600, 0);
    assert_int_equal(u.output_tokens, 30);
    u = read_as(KVC_USAGE_LANGFUSE, "{\"input\":1000,\"input_cached_tokens\":600,\"output\":30,"
                                    "\"reasoning_tokens\":20,\"total\":1030}");
    is(u, 1000, 600, 0);
    assert_int_equal(u.output_tokens, 30);
    u = read_as(KVC_USAGE_LANGFUSE, "{\"input\":400,\"input_cached_tokens\":600,\"output\":10,"
                                    "\"reasoning_tokens\":20,\"total\":1030}");
    is(u, 1000, 600, 0);
    assert_int_equal(u.output_tokens, 30);
    is(read_as(KVC_USAGE_LANGFUSE, "{\"input\":50,\"cache_creation_input_tokens\":950,"
                                   "\"cache_read_input_tokens\":0,\"output\":5}"),
       1000, 0, 950);
    u = read_as(KVC_USAGE_LANGFUSE, "{\"input\":400,\"input_cached_tokens\":600,\"output\":10,"
                                    "\"total\":5}");
    assert_true(u.total_differs);
}

/* Law: however a request is written down, it reads back the same. */
static void every_style_reads_back(void **state)
{
    (void)state;
    static const char *const styles[] = {
        "{\"prompt_tokens\":%1$u,\"prompt_tokens_details\":{\"cached_tokens\":%2$u,"
        "\"cache_write_tokens\":%3$u},\"completion_tokens\":%4$u}",
        "{\"input_tokens\":%5$u,\"cache_read_input_tokens\":%2$u,"
        "\"cache_creation_input_tokens\":%3$u,\"output_tokens\":%4$u}",
        "{\"gen_ai.usage.input_tokens\":%1$u,\"gen_ai.usage.cache_read.input_tokens\":\"%2$u\","
        "\"gen_ai.usage.cache_creation.input_tokens\":%3$u,\"gen_ai.usage.output_tokens\":%4$u}",
        "{\"input\":%5$u,\"input_cached_tokens\":%2$u,\"input_cache_creation\":%3$u,"
        "\"output\":%4$u,\"total\":%6$u}",
        "{\"prompt_tokens\":%1$u,\"cache_read_input_tokens\":%2$u,"
        "\"cache_creation_input_tokens\":%3$u,\"completion_tokens\":%4$u,\"total_tokens\":%6$u}",
    };
    static const enum kvc_usage_dialect dialects[] = { KVC_USAGE_API, KVC_USAGE_API, KVC_USAGE_OTEL,
                                                       KVC_USAGE_LANGFUSE, KVC_USAGE_API };
    uint64_t rng = kvc_rng_stream(3, "usage");
    char text[400];
    for (unsigned i = 0; i < 2000; i++) {
        uint32_t prompt = 1 + (uint32_t)kvc_rng_below(&rng, 100000);
        uint32_t read = (uint32_t)kvc_rng_below(&rng, prompt + 1);
        uint32_t wrote = (uint32_t)kvc_rng_below(&rng, prompt - read + 1);
        uint32_t out = (uint32_t)kvc_rng_below(&rng, 5000);
        unsigned style = i % 5;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), styles[style], prompt, read, wrote, out,
                 prompt - read - wrote, prompt + out);
#pragma GCC diagnostic pop
        struct kvc_usage u = read_as(dialects[style], text);
        is(u, prompt, read, wrote);
        assert_int_equal(u.output_tokens, out);
        assert_false(u.total_differs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_request_in_three_languages),
        cmocka_unit_test(a_sum_tells_the_answer),
        cmocka_unit_test(a_first_write_is_part_of_the_prompt),
        cmocka_unit_test(a_gateway_mixes_both),
        cmocka_unit_test(absent_and_null_are_not_0),
        cmocka_unit_test(contradictions_name_the_field),
        cmocka_unit_test(other_names_in_use),
        cmocka_unit_test(langfuse_parts_add_up_to_the_total),
        cmocka_unit_test(every_style_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
