/* SPDX-License-Identifier: Apache-2.0
 * Requests with their text: what is one prompt and what two, lengths, answers, sessions. Both
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
#include <stdlib.h>
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

/* ---- what is one text ---- */

/* All rows but the last are one prompt, written in as many ways; a byte is a token, a block one. */
static void one_prompt(const char *const *rows, size_t n)
{
    char text[8192] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "{\"timestamp\":%zu,\"output_length\":1,%s}\n", i, rows[i]);
    struct kvc_trace *t = import(trace_text("ways", text), 1, "bytes:1");
    assert_int_equal(report.accepted, n);
    for (size_t i = 1; i + 1 < n; i++)
        if (t->prompt_seg[i] != t->prompt_seg[0])
            fail_msg("not the same prompt: %s", rows[i]);
    assert_int_not_equal(t->prompt_seg[n - 1], t->prompt_seg[0]);
    kvc_trace_destroy(t);
}

static void escapes_are_their_characters(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"messages\":[{\"role\":\"user\",\"content\":\"caf\xc3\xa9 \xf0\x9f\x98\x80 "
        "\\\"a/b\\\"\\n\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"caf\\u00e9 \\ud83d\\ude00 "
        "\\\"a\\/b\\u0022\\u000a\"}]",
        "\"messages\":[{\"content\":\"caf\\u00E9 \\uD83D\\uDE00 \\\"a/b\\\"\\n\","
        "\"role\":\"user\"}]",
        "\"messages\":[{\"role\":\"us\\u0065r\",\"content\":[{\"typ\\u0065\":\"te\\u0078t\","
        "\"text\":\"caf\xc3\xa9 \xf0\x9f\x98\x80 \\\"a/b\\\"\\n\"}]}]",
        "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"te\\u0078t\",\"text\":"
        "\"caf\xc3\xa9 \xf0\x9f\x98\x80 \\\"a/b\\\"\\n\"}]}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"cafe \xf0\x9f\x98\x80 \\\"a/b\\\"\\n\"}]",
    };
    one_prompt(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Halves of surrogate pairs, from texts cut within a character, and NUL, from binaries that tools
 * return: both are U+FFFD, as the byte of broken UTF-8 that a writer replaces is. */
static void what_is_no_character_is_one_mark(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"messages\":[{\"role\":\"user\",\"content\":\"a \xef\xbf\xbd \\\\ud83d "
        "\\ud83d\\ude00\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"a \\ud83d \\\\ud83d \\ud83d\\ude00\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"a \\uDE00 \\\\ud83d \\ud83d\\ude00\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"a \\u0000 \\\\ud83d \\ud83d\\ude00\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"a \\ud83d\\ud83d \\\\ud83d "
        "\\ud83d\\ude00\"}]",
    };
    one_prompt(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Tenant and session are the same long text with an escape, which takes room twice. */
static void one_field_may_be_two_names(void **state)
{
    (void)state;
    struct kvc_import_options o = { .struct_size = sizeof(o), .tenant_field = "session_id" };
    static char text[9000];
    struct kvc_trace *t = NULL;
    struct kvc_error err;
    size_t n = (size_t)snprintf(text, sizeof(text), "{\"timestamp\":0,\"prompt\":\"q\","
                                "\"model\":\"m\",\"session_id\":\"\\n");
    memset(text + n, 's', 8000);
    snprintf(text + n + 8000, sizeof(text) - n - 8000, "\"}\n");
    const char *path = trace_text("twice", text);
    assert_int_equal(kvc_trace_import(&t, &path, 1, &o, &report, &err), KVC_OK);
    assert_int_equal(report.accepted, 1);
    kvc_trace_destroy(t);
}

static void parts_and_places_make_no_difference(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"messages\":[{\"role\":\"system\",\"content\":\"be brief\"},{\"role\":\"user\","
        "\"content\":\"hello\"}]",
        "\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"be \","
        "\"cache_control\":{\"type\":\"ephemeral\"}},{\"type\":\"text\",\"text\":\"brief\"}]},"
        "{\"role\":\"user\",\"content\":\"hello\"}]",
        "\"system\":\"be brief\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}],"
        "\"system\":[{\"type\":\"text\",\"text\":\"be brief\","
        "\"cache_control\":{\"type\":\"ephemeral\"}}]",
        "\"instructions\":\"be brief\",\"input\":\"hello\"",
        "\"instructions\":\"be brief\",\"input\":[{\"role\":\"user\","
        "\"content\":[{\"type\":\"input_text\",\"text\":\"hello\"}]}]",
        "\"payload\":{\"messages\":[{\"role\":\"system\",\"content\":\"be brief\"},"
        "{\"role\":\"user\",\"content\":\"hello\"}],\"stream\":true}",
        "\"request\":{\"body\":{\"messages\":[{\"role\":\"system\",\"content\":\"be brief\"},"
        "{\"role\":\"user\",\"content\":\"hello\"}]}}",
        "\"messages\":[{\"role\":\"user\",\"content\":\"be brief\"},{\"role\":\"user\","
        "\"content\":\"hello\"}]",
    };
    one_prompt(rows, sizeof(rows) / sizeof(rows[0]));
}

static void tools_come_first_without_blanks(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"tools\":[{\"name\":\"f\",\"max\":1.50,\"d\":\"\xc3\xa9 \\\"\"}],"
        "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]",
        ("\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],\"tools\":[ { \"name\" : \"f\", "
         "\"max\" : 1.50 ,\"d\":\"\\u00e9 \\\"\", \"cache_control\":{\"type\":\"ephemeral\"} } ]"),
        "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],\"tools\":[{\"name\":\"f\","
        "\"max\":1.5,\"d\":\"\xc3\xa9 \\\"\"}]",
    };
    one_prompt(rows, 3);
}

/* Anthropic and OpenAI leave out the thinking of turns that are over. */
static void thinking_of_earlier_turns_is_left_out(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
        "\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
        "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"x\"},"
        "{\"type\":\"text\",\"text\":\"b\"}]},{\"role\":\"user\",\"content\":\"c\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
        "\"reasoning_content\":\"hm\",\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}]",
        "\"input\":[{\"role\":\"user\",\"content\":\"a\"},{\"type\":\"reasoning\","
        "\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}]},{\"role\":\"assistant\","
        "\"content\":[{\"type\":\"output_text\",\"text\":\"b\"}]},{\"role\":\"user\","
        "\"content\":\"c\"}]",
        "\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
        "\"content\":\"bb\"},{\"role\":\"user\",\"content\":\"c\"}]",
    };
    one_prompt(rows, 5);
    assert_true(noted("thinking of earlier turns"));
}

/* An image is told by its content, and never read as text. */
static void images_are_told_by_content(void **state)
{
    (void)state;
#define IMAGE(data, more)                                                                          \
    "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"see\"}," \
    "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64," data "\"" more "}}]}]"
    static const char *const rows[] = {
        IMAGE("iVBORw0KGgoAAAANSUhEUg", ""), IMAGE("iVBORw0KGgoAAAANSUhEUg", ",\"detail\":\"low\""),
        IMAGE("iVBORw0KGgo\\u0041AAANSUhEUg", ",\"detail\":\"low\""),
        IMAGE("iVBORw0KGgoAAAANSUhEUh", ",\"detail\":\"low\""),
    };
    char text[2048] = "";
    for (size_t i = 0; i < 4; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "{\"model\":\"gpt-4o\",\"timestamp\":%zu,\"output_length\":1,%s}\n", i, rows[i]);
    struct kvc_trace *t = import(trace_text("images", text), 1, "bytes:1");
    assert_int_equal(t->input_tokens[0], 3 + 3 + 3); /* frame, "see", frame of the answer */
    assert_int_equal(t->input_tokens[1], 3 + 3 + 85 + 3);
    assert_true(noted("images or files"));
    assert_int_equal(t->prompt_seg[1], t->prompt_seg[2]);
    assert_int_equal(log_common(t, 1, 3), 6);
    kvc_trace_destroy(t);
}

/* ---- lengths ---- */

/* 5 bytes a token is what the rows say, and the rate is their sums' ratio. */
static void rates_are_learned(void **state)
{
    (void)state;
    char text[16384] = "", a[501], b[501];
    memset(a, 'a', 500);
    memset(b, 'a', 333);
    memset(b + 333, 'b', 167);
    a[500] = b[500] = '\0';
    snprintf(text, sizeof(text),
             "{\"timestamp\":1,\"prompt\":\"%s\",\"usage\":{\"prompt_tokens\":90,"
             "\"completion_tokens\":7}}\n"
             "{\"timestamp\":2,\"prompt\":\"%s\",\"usage\":{\"prompt_tokens\":110,"
             "\"completion_tokens\":7}}\n"
             "{\"timestamp\":3,\"model\":\"m\",\"prompt\":\"%s\",\"usage\":{\"prompt_tokens\":50,"
             "\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n"
             "{\"timestamp\":4,\"prompt\":\"%s\"}\n", a, b, a, a);
    struct kvc_trace *t = import(trace_text("rates", text), 4, NULL);
    /* 333 bytes are 66.6 tokens: 16 blocks of 4 */
    assert_int_equal(log_common(t, 0, 1), 16);
    assert_int_equal(log_common(t, 0, 2), 0); /* another model */
    assert_int_equal(t->input_tokens[0], 90);
    assert_int_equal(t->input_tokens[3], 100);
    assert_int_equal(log_common(t, 0, 3), 22); /* 90 tokens: 22 blocks, then a tail of its own */
    assert_int_equal(report.cached_tokens, 16);
    assert_true(noted("bytes a token: 5.000, 10.000 for m"));
    assert_true(noted("10 stated tokens are not in the text"));
    assert_true(noted("10 tokens of text are beyond"));
    /* off by 1/9, 1/11 and nothing */
    assert_true(noted("off by 9.1 % (median), 11.2 % (p90)"));
    kvc_trace_destroy(t);
}

static void frames_weigh_three_tokens(void **state)
{
    (void)state;
    struct kvc_trace *t = import(
        trace_text("frames", "{\"timestamp\":1,\"output_length\":5,"
                             "\"messages\":[{\"role\":\"system\",\"content\":\"12345678\"},"
                             "{\"role\":\"user\",\"name\":\"Ann\","
                             "\"content\":\"1234\"}]}\n"), 1, NULL);
    /* 3 + 2, 3 + 1 + 3/4 + 1, and 3 for the answer, rounded down */
    assert_int_equal(t->input_tokens[0], 13);
    assert_int_equal(t->output_tokens[0], 5);
    assert_true(noted("4.0 bytes a token assumed"));
    kvc_trace_destroy(t);
}

static void same_text_and_count_same_tail(void **state)
{
    (void)state;
    struct kvc_trace *t = import(
        trace_text("pads", "{\"timestamp\":1,\"prompt\":\"12345678\","
                           "\"usage\":{\"prompt_tokens\":50}}\n"
                           "{\"timestamp\":2,\"prompt\":\"12345678\","
                           "\"usage\":{\"prompt_tokens\":50}}\n"
                           "{\"timestamp\":3,\"prompt\":\"12345679\","
                           "\"usage\":{\"prompt_tokens\":50}}\n"
                           "{\"timestamp\":4,\"prompt\":\"12345678\","
                           "\"usage\":{\"prompt_tokens\":7}}\n"), 4, "bytes:1");
    assert_int_equal(t->prompt_seg[0], t->prompt_seg[1]);
    assert_int_equal(log_common(t, 0, 2), 1);
    assert_int_equal(log_common(t, 0, 3), 1); /* and a tail of 3 tokens */
    assert_int_equal(kvc_trace_blocks(t, 0), 13);
    assert_int_equal(kvc_trace_blocks(t, 3), 2);
    assert_true(noted("126 stated tokens are not in the text"));
    assert_true(noted("3 rows show less than half"));
    kvc_trace_destroy(t);
}

/* With a tokenizer the blocks are those of its tokens: "Hello", " world", "'s". */
static void tokenizers_cut_exactly(void **state)
{
    (void)state;
    const char *tokenizer = trace_text("tokenizer.json",
        "{\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
        "\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"merges\":[],"
        "\"vocab\":{\"Hello\":0,\"\xc4\xa0\":1,\"\xc4\xa0world\":2,\"'s\":3,\"world\":4}}}");
    struct kvc_trace *t = import(trace_text("tokens",
        "{\"timestamp\":1,\"prompt\":\"Hello world\",\"response\":\"'s\"}\n"
        "{\"timestamp\":2,\"prompt\":\"Hello world's world\",\"usage\":{\"prompt_tokens\":4}}\n"
        "{\"timestamp\":3,\"prompt\":\"Hello's world\",\"usage\":{\"prompt_tokens\":3}}\n"
        "{\"timestamp\":4000,\"output_length\":1,\"messages\":[{\"role\":\"user\","
        "\"content\":\"Hello world\"}]}\n"),
        1, tokenizer);
    assert_int_equal(t->input_tokens[0], 2);
    assert_int_equal(t->output_tokens[0], 1);
    assert_int_equal(log_common(t, 0, 1), 2);
    assert_int_equal(log_common(t, 1, 2), 1);
    assert_int_equal(t->input_tokens[3], 3 + 2 + 3);
    assert_true(noted("off by 0.1 % (median), 0.1 % (p90)")); /* the finest step it is told in */
    assert_true(noted("cut by the tokenizer.json given"));
    kvc_trace_destroy(t);
}

/* ---- answers ---- */

/* The second turn repeats the first's answer; the stated length of the first turn, 30 where 17 are
 * in the text, holds in the second too, so that the answer is found where it was. */
static void answers_carried_over(void **state)
{
    (void)state;
    struct kvc_trace *t = import(
        trace_text("carried",
            "{\"session_id\":\"s\",\"timestamp\":1,\"messages\":[{\"role\":\"user\","
            "\"content\":\"hello there\"}],\"usage\":{\"prompt_tokens\":30,"
            "\"completion_tokens\":9}}\n"
            "{\"session_id\":\"s\",\"timestamp\":2,\"messages\":[{\"role\":\"user\","
            "\"content\":\"hello there\"},{\"role\":\"assistant\",\"content\":\"12345678\"},"
            "{\"role\":\"user\",\"content\":\"and\"}],\"usage\":{\"prompt_tokens\":50,"
            "\"completion_tokens\":3}}\n"), 4, "bytes:1");
    assert_int_equal(log_common(t, 0, 1), 7);
    assert_int_equal(log_output_blocks(t, 0), 9); /* 30 + 8 tokens are of the answer */
    assert_int_equal(log_common_path(t, t->output_seg[0], t->prompt_seg[1]), 9);
    assert_true(noted("1 later turns repeat the answer"));
    kvc_trace_destroy(t);
}

static void stripped_thinking_is_no_reuse(void **state)
{
    (void)state;
    struct kvc_trace *t = import(
        trace_text("stripped",
            "{\"session_id\":\"s\",\"timestamp\":1,\"messages\":[{\"role\":\"user\","
            "\"content\":\"hello there\"}],\"usage\":{\"prompt_tokens\":17,"
            "\"completion_tokens\":90}}\n"
            "{\"session_id\":\"s\",\"timestamp\":2,\"messages\":[{\"role\":\"user\","
            "\"content\":\"hello there\"},{\"role\":\"assistant\",\"content\":\"12345678\"},"
            "{\"role\":\"user\",\"content\":\"and more and more and more and more and more and "
            "more and more and more and more and more and more and more and\"}],"
            "\"usage\":{\"prompt_tokens\":130,\"completion_tokens\":3}}\n"
            "{\"session_id\":\"t\",\"timestamp\":3,\"messages\":[{\"role\":\"user\","
            "\"content\":\"hello you\"}],\"usage\":{\"prompt_tokens\":15,"
            "\"completion_tokens\":9}}\n"
            "{\"session_id\":\"t\",\"timestamp\":4,\"messages\":[{\"role\":\"user\","
            "\"content\":\"hello you\"},{\"role\":\"user\",\"content\":\"another question "
            "instead\"}],\"usage\":{\"prompt_tokens\":42,"
            "\"completion_tokens\":3}}\n"), 4, "bytes:1");
    assert_int_equal(log_output_blocks(t, 0), 0);
    assert_int_equal(log_output_blocks(t, 2), 0); /* the answer is left out of the next turn */
    assert_true(noted("1 show only a part"));
    kvc_trace_destroy(t);
}

/* The answer beside its request: known without a later turn. */
static void answers_in_the_row(void **state)
{
    (void)state;
    struct kvc_trace *t = import(
        trace_text("responses",
            "{\"timestamp\":1,\"request\":{\"messages\":[{\"role\":\"user\",\"content\":\"hello "
            "there\"}]},\"response\":{\"choices\":[{\"message\":{\"role\":\"assistant\","
            "\"content\":\"12345678\"}}],\"usage\":{\"prompt_tokens\":17,"
            "\"completion_tokens\":8}}}\n"
            "{\"timestamp\":2,\"request\":{\"messages\":[{\"role\":\"user\",\"content\":\"hello "
            "there\"},{\"role\":\"assistant\",\"content\":\"12345678\"},{\"role\":\"user\","
            "\"content\":\"more\"}]},\"response\":{\"content\":[{\"type\":\"thinking\","
            "\"thinking\":\"hm hm hm\"},{\"type\":\"text\",\"text\":\"yes\"}],"
            "\"usage\":{\"input_tokens\":35,\"output_tokens\":11}}}\n"), 4, "bytes:1");
    assert_int_equal(log_output_blocks(t, 0), 6); /* of 25 tokens 24 have KV */
    assert_int_equal(log_common_path(t, t->output_seg[0], t->prompt_seg[1]), 6);
    assert_int_equal(log_output_blocks(t, 1), 0); /* thinking comes first */
    assert_int_equal(t->output_tokens[1], 11);
    kvc_trace_destroy(t);
}

static void deltas_add_up(void **state)
{
    (void)state;
    struct kvc_trace *t = import(
        trace_text("delta",
            "{\"session_id\":\"s\",\"message_mode\":\"delta\",\"timestamp\":0,\"output_length\":10,"
            "\"messages\":[{\"role\":\"user\",\"content\":\"hello there\"}]}\n"
            "{\"session_id\":\"s\",\"message_mode\":\"delta\",\"delay\":5,\"output_length\":10,"
            "\"messages\":[{\"role\":\"user\",\"content\":\"and\"}]}\n"
            "{\"session_id\":\"s\",\"timestamp\":9,\"output_length\":10,\"messages\":"
            "[{\"role\":\"user\",\"content\":\"and\"}]}\n"
            "{\"session_id\":\"u\",\"message_mode\":\"delta\",\"timestamp\":9,\"output_length\":10,"
            "\"messages\":[{\"role\":\"user\",\"content\":\"hello there\"}]}\n"), 1, "bytes:1");
    assert_int_equal(report.bad, 1); /* both modes in one session */
    assert_string_equal(report.shown[0].field, "message_mode");
    assert_int_equal(t->input_tokens[0], 17);
    assert_int_equal(t->input_tokens[1], 17 + 10 + 3 + 3 + 3);
    assert_int_equal(log_output_blocks(t, 0), 26);
    assert_int_equal(log_common_path(t, t->output_seg[0], t->prompt_seg[1]), 26);
    assert_int_equal(log_common(t, 0, 2), 17);
    assert_int_equal(t->arrival_ns[1], 5000000);
    kvc_trace_destroy(t);
}

/* ---- keys ---- */

static void models_adapters_and_salts_are_keys(void **state)
{
    (void)state;
    struct kvc_trace *t = import(
        trace_text("keys",
            "{\"timestamp\":1,\"model\":\"m\",\"output_length\":1,\"messages\":[{\"role\":\"user\","
            "\"content\":\"hello\"}]}\n"
            "{\"timestamp\":2,\"model\":\"m\",\"output_length\":1,\"cache_salt\":\"x\","
            "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}\n"
            "{\"timestamp\":3,\"model\":\"m\",\"output_length\":1,\"lora_name\":\"x\","
            "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}\n"
            "{\"timestamp\":4,\"model\":\"n\",\"output_length\":1,\"messages\":[{\"role\":\"user\","
            "\"content\":\"hello\"}]}\n"
            "{\"timestamp\":5,\"payload\":{\"model\":\"m\",\"cache_salt\":\"x\","
            "\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]},\"output_length\":1}\n"),
        1, NULL);
    for (uint64_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < i; k++)
            assert_int_equal(log_common(t, i, k), 0);
    assert_int_equal(t->prompt_seg[4], t->prompt_seg[1]);
    kvc_trace_destroy(t);
}

static void read_all(const char *path, char **bytes, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *bytes = malloc(1 << 20);
    *n = fread(*bytes, 1, 1 << 20, f);
    fclose(f);
}

/* Whatever the key, the trace is the same to the byte. */
static void the_key_leaves_no_trace(void **state)
{
    (void)state;
    char text[40000] = "", *bytes[3];
    size_t n[3];
    uint64_t rng = 3;
    for (int i = 0; i < 150; i++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "{\"session_id\":\"s%d\",\"timestamp\":%d,\"output_length\":9,"
                 "\"messages\":[{\"role\":\"system\",\"content\":\"You are number %d of all\"},"
                 "{\"role\":\"user\",\"content\":\"%llx and so on\"}]}\n",
                 i % 7, i, i % 3, (unsigned long long)kvc_rng_next(&rng));
    }
    const char *log = trace_text("log", text);
    const char *out = trace_path("salted.kvt");
    const char *salts[3] = { NULL, trace_text("salt1", "0123456789abcdef"),
                             trace_text("salt2", "0123456789abcdeF0123456789abcdef") };
    for (int i = 0; i < 3; i++) {
        struct kvc_import_options o = { .struct_size = sizeof(o), .salt_file = salts[i],
                                        .block_tokens = 2 };
        struct kvc_trace *t = NULL;
        assert_int_equal(kvc_trace_import(&t, &log, 1, &o, NULL, NULL), KVC_OK);
        assert_int_equal(kvc_trace_save(t, out, NULL), KVC_OK);
        kvc_trace_destroy(t);
        read_all(out, &bytes[i], &n[i]);
    }
    for (int i = 1; i < 3; i++) {
        assert_int_equal(n[i], n[0]);
        assert_memory_equal(bytes[i], bytes[0], n[0]);
    }
    for (int i = 0; i < 3; i++)
        free(bytes[i]);
}

/* c38: 29 characters are common in s1, 187 in s2; a byte a token, a block one, and the frame of
 * the system message before. */
static void minute_in_the_system_prompt(void **state)
{
    (void)state;
    const char *path = "../shared/cases/inputs/c38-timestamp-in-system.aiperf-messages.jsonl";
    log_need(path);
    struct kvc_trace *t = import(path, 1, "bytes:1");
    assert_int_equal(log_common(t, 0, 1), 3 + 29);
    assert_int_equal(log_common(t, 2, 3), 3 + 187);
    assert_int_equal(t->arrival_ns[1], 65000000000);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_their_characters),
        cmocka_unit_test(what_is_no_character_is_one_mark),
        cmocka_unit_test(one_field_may_be_two_names),
        cmocka_unit_test(parts_and_places_make_no_difference),
        cmocka_unit_test(tools_come_first_without_blanks),
        cmocka_unit_test(thinking_of_earlier_turns_is_left_out),
        cmocka_unit_test(images_are_told_by_content),
        cmocka_unit_test(rates_are_learned),
        cmocka_unit_test(frames_weigh_three_tokens),
        cmocka_unit_test(same_text_and_count_same_tail),
        cmocka_unit_test(tokenizers_cut_exactly),
        cmocka_unit_test(answers_carried_over),
        cmocka_unit_test(stripped_thinking_is_no_reuse),
        cmocka_unit_test(answers_in_the_row),
        cmocka_unit_test(deltas_add_up),
        cmocka_unit_test(models_adapters_and_salts_are_keys),
        cmocka_unit_test(the_key_leaves_no_trace),
        cmocka_unit_test(minute_in_the_system_prompt),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
