/* SPDX-License-Identifier: Apache-2.0
 * What breaks caching: planted changes are found where they were planted, with what they cost. */
#include "tests/trace_files.h"
#include "traces/text/break_spans.h"
#include "traces/text/text_blocks.h"
#include "traces/trace.h"

#include "base/rng.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASE "../shared/cases/inputs/c38-timestamp-in-system.aiperf-messages.jsonl"
#define BYTES_A_TOKEN 4

static struct kvc_trace *import_file(const char *path)
{
    struct kvc_import_options o = {.struct_size = sizeof(o), .tokenizer = "bytes:4"};
    struct kvc_trace *t = NULL;
    struct kvc_error err = {0};
    if (kvc_trace_import(&t, &path, 1, &o, NULL, &err) != KVC_OK)
        fail_msg("%s", err.text);
    return t;
}

static struct kvc_trace *import_text(struct kvc_text *text)
{
    struct kvc_trace *t = import_file(trace_text("log.jsonl", text->buf));
    kvc_text_clear(text);
    return t;
}

static void add_row(struct kvc_text *t, unsigned ms, const char *session, const char *system,
                    const char *user)
{
    kvc_text_addf(t, "{\"timestamp\":%u,\"output_length\":1,", ms);
    if (session)
        kvc_text_addf(t, "\"session_id\":\"%s\",", session);
    kvc_text_addf(t, "\"messages\":[{\"role\":\"system\",\"content\":\"%s\"},"
                     "{\"role\":\"user\",\"content\":\"%s\"}]}\n", system, user);
}

static void the_public_case_is_found(void **state)
{
    FILE *f = fopen(CASE, "r");
    (void)state;
    if (!f) {
        print_message("SKIPPED: %s is not here\n", CASE);
        skip();
    }
    fclose(f);
    struct kvc_trace *t = import_file(CASE);
    assert_int_equal(t->compared_prompts, 3);
    assert_int_equal(t->n_breaks, 3);
    for (int i = 0; i < 3; i++) {
        uint32_t offset = t->breaks[i].offset;
        /* s1: the minute stands in front; s2: behind; between them it was moved */
        assert_true(offset == 29 || offset == 187 || offset == 0);
        assert_int_equal(t->breaks[i].kind, KVC_BREAK_CLOCK);
        assert_int_equal(t->breaks[i].role, KVC_ROLE_SYSTEM);
        assert_int_equal(t->breaks[i].message, 0);
        assert_int_equal(t->breaks[i].prompts, 1);
    }
    kvc_trace_destroy(t);
}

/* A planted word in a text of random words; all that stands behind it is alike, over and over. */
static void a_planted_change_is_found_with_its_cost(void **state)
{
    static const enum kvc_break_kind kinds[] = {KVC_BREAK_CLOCK, KVC_BREAK_ID, KVC_BREAK_COUNTER};
    uint64_t rng = kvc_rng_stream(38, "breaks");
    (void)state;
    for (int i = 0; i < 200; i++) {
        enum kvc_break_kind kind = kinds[i % 3];
        unsigned words = 2 + (unsigned)kvc_rng_below(&rng, 40), rows = 12;
        unsigned front = (unsigned)kvc_rng_below(&rng, words - 1), behind = 0;
        struct kvc_text log = {0}, head = {0}, tail = {0};
        for (unsigned w = 0; w < words; w++) {
            char word[16];
            unsigned n = 3 + (unsigned)kvc_rng_below(&rng, 9);
            for (unsigned k = 0; k < n; k++)
                word[k] = (char)('q' + kvc_rng_below(&rng, 10));
            word[n] = 0;
            kvc_text_addf(w <= front ? &head : &tail, w <= front ? "%s " : " %s", word);
        }
        kvc_text_add(&tail, " and so on, to the end of it"); /* long enough to be told alike */
        behind = (unsigned)tail.len + 1 + 5 + 1; /* with what stands for the ends of pieces */
        for (unsigned r = 0; r < rows; r++) {
            char value[32], system[1024];
            if (kind == KVC_BREAK_CLOCK)
                snprintf(value, sizeof(value), "%02u:%02u:00", 8 + r / 60, 10 + r);
            else if (kind == KVC_BREAK_ID)
                snprintf(value, sizeof(value), "x%08xf3%02x",
                         (unsigned)kvc_rng_below(&rng, UINT32_MAX), r);
            else
                snprintf(value, sizeof(value), "%u", 4100 + 7 * r);
            snprintf(system, sizeof(system), "%s%s%s", head.buf, value, tail.buf);
            add_row(&log, r * 1000, "s", system, "Hello");
        }
        size_t at = head.len;
        kvc_text_clear(&head);
        kvc_text_clear(&tail);
        struct kvc_trace *t = import_text(&log);
        uint64_t prompts = 0, lost = 0;
        for (uint32_t b = 0; b < t->n_breaks; b++) { /* values may begin alike by chance */
            if (t->breaks[b].kind != kind)
                fail_msg("case %d: kind %d at %u, planted %d at %zu; %u prompts, %u values", i,
                         t->breaks[b].kind, t->breaks[b].offset, (int)kind, at,
                         (unsigned)t->breaks[b].prompts, (unsigned)t->breaks[b].values);
            assert_int_equal(t->breaks[b].role, KVC_ROLE_SYSTEM);
            assert_in_range(t->breaks[b].offset, at, at + 10);
            prompts += t->breaks[b].prompts;
            lost += t->breaks[b].lost_tokens;
        }
        assert_int_equal(prompts, rows - 1);
        assert_in_range(lost + t->n_breaks, (uint64_t)behind * (rows - 1) / BYTES_A_TOKEN,
                        (uint64_t)behind * (rows - 1) / BYTES_A_TOKEN + 2 * t->n_breaks);
        kvc_trace_destroy(t);
    }
}

/* Either text of a switch has been seen once both were, so it costs its second text only. */
static void a_switch_costs_once(void **state)
{
    struct kvc_text log = {0};
    (void)state;
    for (unsigned r = 0; r < 20; r++) {
        char system[128];
        snprintf(system, sizeof(system), "You are a helpful assistant, search is %s. Be brief.",
                 r % 2 ? "on" : "off");
        add_row(&log, r, NULL, system, "Hello");
    }
    struct kvc_trace *t = import_text(&log);
    assert_int_equal(t->n_breaks, 1);
    assert_int_equal(t->breaks[0].prompts, 1);
    assert_int_equal(t->breaks[0].values, 2);
    assert_int_equal(t->breaks[0].kind, KVC_BREAK_WORD);
    kvc_trace_destroy(t);
}

static void growth_breaks_nothing(void **state)
{
    struct kvc_text log = {0};
    (void)state;
    kvc_text_add(&log, "{\"timestamp\":0,\"session_id\":\"a\",\"output_length\":1,\"messages\":["
                       "{\"role\":\"user\",\"content\":\"one two three\"}]}\n"
                       "{\"timestamp\":1,\"session_id\":\"a\",\"output_length\":1,\"messages\":["
                       "{\"role\":\"user\",\"content\":\"one two three\"},"
                       "{\"role\":\"assistant\",\"content\":\"four\"},"
                       "{\"role\":\"user\",\"content\":\"five\"}]}\n");
    struct kvc_trace *t = import_text(&log);
    assert_int_equal(t->compared_prompts, 1);
    assert_int_equal(t->n_breaks, 0);
    kvc_trace_destroy(t);
}

/* Sessions that ask different things after the same instructions lose nothing. */
static void different_questions_are_content(void **state)
{
    struct kvc_text log = {0};
    (void)state;
    add_row(&log, 0, "a", "You are a helpful assistant, and brief.", "Where is the station?");
    add_row(&log, 1, "b", "You are a helpful assistant, and brief.", "My order never arrived");
    struct kvc_trace *t = import_text(&log);
    assert_int_equal(t->n_breaks, 1);
    assert_int_equal(t->breaks[0].kind, KVC_BREAK_CONTENT);
    assert_int_equal(t->breaks[0].role, KVC_ROLE_USER);
    assert_int_equal(t->breaks[0].message, 1);
    assert_int_equal(t->breaks[0].offset, 0);
    assert_int_equal(t->breaks[0].lost_tokens, 0);
    kvc_trace_destroy(t);
}

static void a_kvt_keeps_them(void **state)
{
    struct kvc_text log = {0};
    char path[512];
    struct kvc_trace *back = NULL;
    (void)state;
    for (unsigned r = 0; r < 5; r++) {
        char system[128];
        snprintf(system, sizeof(system), "Request %u of the day. Be brief, be kind, be right.", r);
        add_row(&log, r, NULL, system, "Hello");
    }
    struct kvc_trace *t = import_text(&log);
    assert_int_equal(t->n_breaks, 1);
    assert_int_equal(t->breaks[0].kind, KVC_BREAK_COUNTER);
    snprintf(path, sizeof(path), "%s", trace_path("breaks.kvt"));
    assert_int_equal(kvc_trace_save(t, path, NULL), KVC_OK);
    assert_int_equal(kvc_trace_open(&back, path, NULL, NULL, NULL), KVC_OK);
    assert_int_equal(back->compared_prompts, t->compared_prompts);
    assert_int_equal(back->n_breaks, t->n_breaks);
    assert_int_equal(back->breaks[0].kind, t->breaks[0].kind);
    assert_int_equal(back->breaks[0].role, t->breaks[0].role);
    assert_int_equal(back->breaks[0].part, t->breaks[0].part);
    assert_int_equal(back->breaks[0].message, t->breaks[0].message);
    assert_int_equal(back->breaks[0].offset, t->breaks[0].offset);
    assert_int_equal(back->breaks[0].prompts, t->breaks[0].prompts);
    assert_int_equal(back->breaks[0].values, t->breaks[0].values);
    assert_int_equal(back->breaks[0].lost_tokens, t->breaks[0].lost_tokens);
    kvc_trace_destroy(back);
    kvc_trace_destroy(t);
}

static void words_are_told_by_their_looks(void **state)
{
    static const struct {
        const char *text;
        enum kvc_break_kind kind;
    } cases[] = {
        {"08:14", KVC_BREAK_CLOCK}, {"2026-03-02", KVC_BREAK_CLOCK},
        {"2026-03-02T08:14:55.123Z", KVC_BREAK_CLOCK}, {"1772439299", KVC_BREAK_CLOCK},
        {"1772439299.5", KVC_BREAK_CLOCK}, {"Monday", KVC_BREAK_CLOCK},
        {"3 March", KVC_BREAK_CLOCK}, {"08:14.", KVC_BREAK_CLOCK},
        {"550e8400-e29b-41d4-a716-446655440000", KVC_BREAK_ID}, {"req_8f3a1b2c9d", KVC_BREAK_ID},
        {"5f2b9c0d11aa22bb", KVC_BREAK_ID}, {"41", KVC_BREAK_COUNTER}, {"3.5", KVC_BREAK_COUNTER},
        {"true", KVC_BREAK_WORD}, {"Berlin", KVC_BREAK_WORD}, {"gpt-4o", KVC_BREAK_WORD},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (kvc_break_classify(cases[i].text, strlen(cases[i].text)) != cases[i].kind)
            fail_msg("%s is told as %d", cases[i].text,
                     (int)kvc_break_classify(cases[i].text, strlen(cases[i].text)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_public_case_is_found),
        cmocka_unit_test(a_planted_change_is_found_with_its_cost),
        cmocka_unit_test(a_switch_costs_once),
        cmocka_unit_test(growth_breaks_nothing),
        cmocka_unit_test(different_questions_are_content),
        cmocka_unit_test(a_kvt_keeps_them),
        cmocka_unit_test(words_are_told_by_their_looks),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
