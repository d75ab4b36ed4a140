/* SPDX-License-Identifier: Apache-2.0
 * Whole imports that forget: what an id or a name is made of makes no difference, what readers keep
 * by name stays small, and windows and documents go with it. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/trace_files.h"
#include "traces/import/recent.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S 1000000000u
#define NAMES 12

/* ---- the table of names, against a list of when each was last named ---- */

static void names_are_dropped_by_windows(void **state)
{
    uint64_t rng = 5, drops = 0;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct kvc_recent_clock clock = { .forget_ns = 1 + kvc_rng_below(&rng, 50) };
        struct kvc_recent r = { .clock = &clock, .size = sizeof(uint64_t) };
        uint64_t window[NAMES], value[NAMES], now = 0;
        memset(window, 0xff, sizeof(window));
        for (uint64_t i = 1; i < 300; i++) {
            size_t k = kvc_rng_below(&rng, NAMES);
            bool fresh;
            now += kvc_rng_below(&rng, 4) ? 0 : kvc_rng_below(&rng, 60);
            kvc_recent_tick(&clock, now);
            uint64_t current = now / clock.forget_ns;
            bool there = window[k] != UINT64_MAX && window[k] + 1 >= current;
            const uint64_t *found = kvc_recent_find(&r, &"abcdefghijkl"[k], 1);
            assert_int_equal(found != NULL, there);
            uint64_t *v = kvc_recent_get(&r, &"abcdefghijkl"[k], 1, &fresh);
            assert_non_null(v);
            assert_int_equal(fresh, !there);
            assert_int_equal(*v, there ? value[k] : 0);
            assert_true(!there || *found == value[k] || found != v);
            drops += window[k] != UINT64_MAX && !there;
            window[k] = current;
            *v = value[k] = i;
        }
        assert_true(kvc_recent_count(&r) <= 2 * NAMES && clock.bytes > 0);
        kvc_recent_clear(&r);
        assert_int_equal(clock.bytes, 0);
    }
    assert_true(drops > 1000);
}

/* ---- ids of text and ids of numbers ---- */

struct rows {
    char *text;
    size_t n, cap;
};

__attribute__((format(printf, 2, 3)))
static void add(struct rows *r, const char *fmt, ...)
{
    va_list args;
    assert_true(kvc_grow((void **)&r->text, &r->cap, r->n + 4096, 1));
    va_start(args, fmt);
    r->n += (size_t)vsnprintf(r->text + r->n, 4096, fmt, args);
    va_end(args);
}

static const char *written(struct rows *r, const char *name)
{
    const char *path = trace_file(name, r->text, r->n);
    kvc_free(r->text);
    *r = (struct rows){ 0 };
    return path;
}

/* Rows from first to last of a log in which prefixes come back after pauses, as Mooncake has them.
 * format: of an id. */
static const char *mooncake(const char *name, const char *format, uint64_t seed, int first,
                            int last, bool sessions)
{
    struct rows r = { 0 };
    uint64_t rng = seed, ms = 0;
    for (int i = 0; i < last; i++) {
        uint64_t family = kvc_rng_below(&rng, 6), n = 1 + kvc_rng_below(&rng, 6);
        uint64_t cut = kvc_rng_below(&rng, n + 1), own = kvc_rng_below(&rng, 3);
        ms += kvc_rng_below(&rng, 9) ? kvc_rng_below(&rng, 800) : kvc_rng_below(&rng, 30000);
        if (i < first)
            continue;
        add(&r, "{\"timestamp\":%llu,\"input_length\":%llu,\"output_length\":%d,",
            (unsigned long long)ms, (unsigned long long)n * 512, i);
        if (sessions)
            add(&r, "\"session_id\":\"s%llu\",", (unsigned long long)family);
        add(&r, "\"hash_ids\":[");
        for (uint64_t k = 0; k < n; k++) {
            uint64_t id = k < cut ? family * 100 + k : 1000 + family * 100 + own * 10 + k;
            add(&r, k ? "," : "");
            add(&r, format, (unsigned long long)id);
        }
        add(&r, "]}\n");
    }
    return written(&r, name);
}

static struct kvc_trace *forget_s(const char *path, double s, const char *window,
                                  struct kvc_import_report *report)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .forget_ns = (uint64_t)(s * S) };
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    if (window)
        sscanf(window, "%lu:%lu", &o.window_begin_ns, &o.window_end_ns);
    if (kvc_trace_import(&t, &path, 1, &o, report, &err) != KVC_OK)
        fail_msg("%s", err.text);
    return t;
}

static void assert_same(const struct kvc_trace *a, const struct kvc_import_report *ra,
                        const struct kvc_trace *b, const struct kvc_import_report *rb)
{
    assert_string_equal(a->digest, b->digest);
    assert_int_equal(ra->accepted, rb->accepted);
    assert_int_equal(ra->forgotten_blocks, rb->forgotten_blocks);
    assert_int_equal(ra->unjudged_rows, rb->unjudged_rows);
    assert_int_equal(ra->unjudged_tokens, rb->unjudged_tokens);
    assert_int_equal(ra->repeated_ids, rb->repeated_ids);
}

static void text_ids_are_forgotten_as_numbers_are(void **state)
{
    uint64_t forgotten = 0, unjudged = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct kvc_import_report ra, rb;
        double s = seed % 5 ? 2.0 * (double)(seed % 5) : 0; /* 0: nothing is forgotten */
        struct kvc_trace *a = forget_s(mooncake("n.jsonl", "%llu", seed, 0, 300, seed & 1), s,
                                       NULL, &ra);
        struct kvc_trace *b = forget_s(mooncake("t.jsonl", "\"sha-%llu-x\"", seed, 0, 300,
                                                seed & 1), s, NULL, &rb);
        assert_same(a, &ra, b, &rb);
        forgotten += ra.forgotten_blocks;
        unjudged += ra.unjudged_rows;
        kvc_trace_destroy(a);
        kvc_trace_destroy(b);
    }
    assert_true(forgotten > 1000 && unjudged > 1000);
}

/* ---- windows ---- */

/* Rows outside are as if they had never been in the log, forgotten or not. */
static void windows_cut_while_forgetting(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct kvc_import_report all, part, cut, ends;
        char window[64];
        struct kvc_trace *a = forget_s(mooncake("all.jsonl", "%llu", seed, 0, 300, false), 0, NULL,
                                       &all);
        uint64_t begin = a->arrival_ns[100], end = a->arrival_ns[250];
        int first = 100, last = 250;
        for (; first && a->arrival_ns[first - 1] >= begin; first--) {}
        for (; last && a->arrival_ns[last - 1] >= end; last--) {}
        snprintf(window, sizeof(window), "%llu:%llu", (unsigned long long)begin,
                 (unsigned long long)end);
        struct kvc_trace *b = forget_s(trace_path("all.jsonl"), 3, window, &part);
        struct kvc_trace *c = forget_s(mooncake("cut.jsonl", "%llu", seed, first, last, false), 3,
                                       NULL, &cut);
        assert_same(b, &part, c, &cut);
        kvc_trace_destroy(b);
        kvc_trace_destroy(c);
        /* with names of sessions, and never really forgetting: as the window without */
        mooncake("all.jsonl", "%llu", seed, 0, 300, true);
        b = forget_s(trace_path("all.jsonl"), 1e6, window, &part);
        c = forget_s(trace_path("all.jsonl"), 0, window, &ends);
        assert_same(b, &part, c, &ends);
        kvc_trace_destroy(a);
        kvc_trace_destroy(b);
        kvc_trace_destroy(c);
    }
}

static void a_window_counts_from_the_first_row_read(void **state)
{
    static const char log[] =
        "{\"timestamp\":5000,\"input_length\":512,\"output_length\":1,\"hash_ids\":[1]}\n"
        "{\"timestamp\":4000,\"input_length\":512,\"output_length\":1,\"hash_ids\":[1]}\n"
        "{\"timestamp\":6500,\"input_length\":512,\"output_length\":1,\"hash_ids\":[1]}\n";
    struct kvc_import_report r;
    (void)state;
    kvc_trace_destroy(forget_s(trace_text("e.jsonl", log), 100, "0:1500000000", &r));
    assert_int_equal(r.accepted, 2);
    bool said = false;
    for (uint32_t i = 0; i < r.n_notes; i++)
        said = said || strstr(r.notes[i], "1 rows are earlier, by 1.000 s at most");
    assert_true(said);
    struct kvc_import_options o = { .struct_size = sizeof(o), .forget_ns = S,
                                    .window_begin_ns = 20ull * S };
    assert_non_null(strstr(trace_import_error(trace_path("e.jsonl"), &o),
                           "the last comes 1.5 s after it"));
}

/* ---- documents ---- */

static const char *session(const char *name, double gap_s)
{
    struct rows r = { 0 };
    add(&r, "{\"id\":\"x\",\"models\":[\"m\"],\"block_size\":64,\"hash_id_scope\":\"local\","
            "\"requests\":[");
    for (int i = 0; i < 50; i++)
        add(&r, "%s{\"t\":%.1f,\"type\":\"s\",\"model\":\"m\",\"in\":192,\"out\":5,"
                "\"hash_ids\":[1,%d,%d]}", i ? "," : "", gap_s * i, 2 + i % 7, 100 + i);
    add(&r, "]}\n");
    return written(&r, name);
}

static struct kvc_trace *import_both(double forget, struct kvc_import_report *report)
{
    const char *paths[] = { trace_path("a.json"), trace_path("b.json") };
    struct kvc_import_options o = { .struct_size = sizeof(o),
                                    .forget_ns = (uint64_t)(forget * S) };
    struct kvc_trace *t = NULL;
    assert_int_equal(kvc_trace_import(&t, paths, 2, &o, report, NULL), KVC_OK);
    return t;
}

/* Each session has a clock and ids of its own. */
static void documents_are_forgotten_each_by_its_clock(void **state)
{
    struct kvc_import_report a, b, both, never;
    (void)state;
    session("a.json", 1);
    session("b.json", 0.5);
    kvc_trace_destroy(forget_s(trace_path("a.json"), 5, NULL, &a));
    kvc_trace_destroy(forget_s(trace_path("b.json"), 5, NULL, &b));
    kvc_trace_destroy(import_both(5, &both));
    assert_true(b.forgotten_blocks && a.unjudged_rows > b.unjudged_rows);
    assert_int_equal(both.forgotten_blocks, a.forgotten_blocks + b.forgotten_blocks);
    assert_int_equal(both.unjudged_tokens, a.unjudged_tokens + b.unjudged_tokens);
    struct kvc_trace *t = import_both(1000, &both), *u = import_both(0, &never);
    assert_same(t, &both, u, &never);
    kvc_trace_destroy(t);
    kvc_trace_destroy(u);
}

/* ---- memory ---- */

static void note_memory(void *user, const struct kvc_import_estimate *e)
{
    uint64_t *most = user;
    *most = e->memory_bytes > *most ? e->memory_bytes : *most;
}

static void one_request(struct rows *r, int kind, unsigned long long i)
{
    if (kind == 0)
        add(r, "{\"timestamp\":%llu,\"input_length\":1024,\"output_length\":1,\"session_id\":"
               "\"session-%llu\",\"hash_ids\":[\"block-of-system\",\"block-%llu\"]}\n", i, i, i);
    else if (kind == 1)
        add(r, "{\"chat_id\":%llu,\"parent_chat_id\":-1,\"timestamp\":%.3f,\"input_length\":32,"
               "\"output_length\":1,\"type\":\"text\",\"turn\":1,\"hash_ids\":[1,%llu]}\n", i,
            (double)i * 1e-3, i);
    else if (kind == 2)
        add(r, "{\"timestamp\":%llu,\"session_id\":\"conversation-%llu\",\"message_mode\":"
               "\"delta\",\"input_length\":40,\"output_length\":8,\"messages\":[{\"role\":"
               "\"user\",\"content\":\"tell me all about number %llu, with nothing left out, in "
               "words that are short\"}]}\n", i, i, i);
    else
        add(r, "{\"timestamp\":%llu,\"session_id\":\"agent-%llu\",\"cache_salt\":\"%llu\","
               "\"input\":\"a task of number %llu which nobody had before and nobody will have\","
               "\"output\":\"as you like it\"}\n", i * 1000, i, i, i);
}

/* Bytes of tables and names at most; rows themselves go to a file. */
static uint64_t peak(int kind, unsigned long long rows, uint64_t forget_ns)
{
    struct rows r = { 0 };
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    uint64_t most = 0;
    struct kvc_import_options o = { .struct_size = sizeof(o), .forget_ns = forget_ns,
                                    .spill_over_bytes = 1, .estimate = note_memory,
                                    .estimate_user = &most,
                                    .tokenizer = kind < 2 ? NULL : "bytes:4" };
    for (unsigned long long i = 0; i < rows; i++)
        one_request(&r, kind, i);
    const char *path = written(&r, "endless.jsonl");
    if (kvc_trace_import(&t, &path, 1, &o, NULL, &err) != KVC_OK)
        fail_msg("%d: %s", kind, err.text);
    kvc_trace_destroy(t);
    return most;
}

static void what_is_kept_by_name_stays_small(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        uint64_t forget = (uint64_t)S; /* a thousand rows */
        uint64_t less = peak(kind, 10000, forget), more = peak(kind, 40000, forget);
        uint64_t kept = peak(kind, 40000, 0), before = peak(kind, 10000, 0);
        assert_true(more <= less + (128 << 10));
        assert_true(kept >= before + (512 << 10)); /* what would have grown */
    }
}

/* ---- servers' logs ---- */

/* Requests that end in another order than they began; ids come again after so many. */
static struct kvc_trace *served(const char *name, int again, struct kvc_import_report *report)
{
    struct rows r = { 0 };
    struct kvc_trace *t = NULL;
    struct kvc_import_options o = { .struct_size = sizeof(o), .tokenizer = "bytes:4" };
    for (int i = 0; i < 20008; i++) {
        if (i < 20000)
            add(&r, "{\"timestamp\":%d,\"event\":\"request.received\",\"rid\":\"r%d\",\"obj\":"
                    "{\"text\":\"to be taken as number %d of all\"}}\n", i, i % again, i);
        int k = i ^ 3; /* within groups of four */
        if ((k -= 8) >= 0)
            add(&r, "{\"timestamp\":%d,\"event\":\"request.finished\",\"rid\":\"r%d\",\"out\":"
                    "{\"meta_info\":{\"prompt_tokens\":%d,\"completion_tokens\":3,"
                    "\"finish_reason\":{\"type\":\"stop\"}}}}\n", i, k % again, 8 + k % 50);
    }
    const char *path = written(&r, name);
    assert_int_equal(kvc_trace_import(&t, &path, 1, &o, report, NULL), KVC_OK);
    return t;
}

static void requests_handed_on_leave_memory(void **state)
{
    struct kvc_import_report ra, rb;
    (void)state;
    struct kvc_trace *a = served("a.jsonl", 1000000, &ra), *b = served("b.jsonl", 37, &rb);
    assert_same(a, &ra, b, &rb);
    assert_int_equal(ra.accepted, 20000);
    for (uint64_t i = 0; i < 20000; i++)
        assert_int_equal(a->input_tokens[i], 8 + i % 50);
    kvc_trace_destroy(a);
    kvc_trace_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_dropped_by_windows),
        cmocka_unit_test(text_ids_are_forgotten_as_numbers_are),
        cmocka_unit_test(windows_cut_while_forgetting),
        cmocka_unit_test(a_window_counts_from_the_first_row_read),
        cmocka_unit_test(documents_are_forgotten_each_by_its_clock),
        cmocka_unit_test(what_is_kept_by_name_stays_small),
        cmocka_unit_test(requests_handed_on_leave_memory),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
