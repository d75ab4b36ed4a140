/* SPDX-License-Identifier: Apache-2.0
 * What is exported and imported again is the same trace, down to the digest; what libCacheSim is
 * given are the block references that a list and a loop find. */
#include "base/alloc.h"
#include "base/rng.h"
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

#define SHARED "../shared/traces/"

static struct kvc_trace *import(const char *path, uint32_t block, bool merge)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = block,
                                    .merge_models = merge };
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    if (kvc_trace_import(&t, &path, 1, &o, NULL, &err) != KVC_OK)
        fail_msg("%s:%llu:%s: %s", err.file, (unsigned long long)err.line, err.field, err.text);
    return t;
}

static void export(const struct kvc_trace *t, const char *path, const char *format,
                   struct kvc_export_report *r)
{
    struct kvc_error err = { 0 };
    if (kvc_trace_export(t, path, format, r, &err) != KVC_OK)
        fail_msg("%s", err.text);
}

/* Through every format that holds it and every packing. */
static void goes_round(const struct kvc_trace *t, bool mooncake, bool merge)
{
    static const char *const suffix[] = { "", ".zst", ".gz" };
    for (int f = mooncake ? 0 : 1; f < 2; f++) {
        for (int s = 0; s < 3; s++) {
            char name[32];
            struct kvc_export_report r;
            snprintf(name, sizeof(name), "round.%s%s", f ? "csv" : "jsonl", suffix[s]);
            export(t, trace_path(name), f ? "csv" : "mooncake", &r);
            assert_int_equal(r.rows, t->n_requests);
            assert_int_equal(r.left_out, 0);
            struct kvc_trace *u = import(trace_path(name), f ? 0 : t->block_tokens, merge);
            assert_int_equal(u->block_tokens, t->block_tokens);
            assert_string_equal(u->digest, t->digest);
            kvc_trace_destroy(u);
        }
    }
}

static void every_field_goes_round(void **state)
{
    (void)state;
    static const char log[] =
        "{\"timestamp\": 7000.25, \"input_length\": 1100, \"output_length\": 9, \"hash_ids\": "
        "[18446744073709551615, 5, 6], \"session_id\": \"b\", \"model\": \"x, \\\"y\\\"\"}\n"
        "{\"timestamp\": 1000.000001, \"input_length\": 1024, \"output_length\": 0, \"hash_ids\": "
        "[18446744073709551615, 5], \"model\": \"x, \\\"y\\\"\", \"tenant\": \"\\u00fc\\\\\"}\n"
        "{\"timestamp\": 1000, \"input_length\": 1024, \"output_length\": 3, \"hash_ids\": "
        "[18446744073709551615, 5], \"model\": \"z\", \"tenant\": 12, \"session_id\": 7}\n"
        "{\"timestamp\": 9000.5, \"input_length\": 2100, \"output_length\": 3, \"hash_ids\": "
        "[18446744073709551615, 5, 7, 8, 9], \"session_id\": \"b\", \"delay\": 1234.567891, "
        "\"model\": \"x, \\\"y\\\"\"}\n"
        "{\"timestamp\": 9000.5, \"input_length\": 77, \"output_length\": 1}\n"
        "{\"timestamp\": 9001, \"input_length\": 77, \"output_length\": 1, \"hash_ids\": []}\n"
        "{\"timestamp\": 9002, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [\"a\", "
        "\"b\"], \"tenant\": \"\"}\n";
    struct kvc_trace *t = import(trace_text("fields.jsonl", log), 512, false);
    assert_int_equal(t->n_requests, 7);
    assert_string_equal(t->model_names[0], "z"); /* by time, not by row */
    goes_round(t, true, false);
    kvc_trace_destroy(t);
    t = import(trace_text("fields.jsonl", log), 512, true);
    struct kvc_export_report r;
    export(t, trace_path("merged.jsonl"), "mooncake", &r);
    assert_int_equal(r.n_notes, 1);
    assert_non_null(strstr(r.notes[0], "--merge-models"));
    goes_round(t, true, true);
    kvc_trace_destroy(t);
}

/* Rows in any order of time give the same trace, so that the numbering is of the requests. */
static void the_order_of_rows_does_not_matter(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{\"timestamp\": 1, \"input_length\": 32, \"output_length\": 1, \"hash_ids\": [1, 2], "
        "\"session_id\": \"p\", \"model\": \"m\"}\n",
        "{\"timestamp\": 2, \"input_length\": 48, \"output_length\": 1, \"hash_ids\": [1, 2, 3], "
        "\"session_id\": \"q\", \"tenant\": \"t\"}\n",
        "{\"timestamp\": 3, \"input_length\": 16, \"output_length\": 1, \"hash_ids\": [9], "
        "\"session_id\": \"q\", \"model\": \"n\", \"tenant\": \"u\"}\n",
        "{\"timestamp\": 4, \"input_length\": 48, \"output_length\": 1, \"hash_ids\": [1, 2, 4], "
        "\"session_id\": \"p\", \"model\": \"m\"}\n",
    };
    char first[24] = "";
    for (unsigned p = 0; p < 256; p++) {
        unsigned at[4] = { p & 3, p >> 2 & 3, p >> 4 & 3, p >> 6 };
        char text[1024] = "";
        if ((1u << at[0] | 1u << at[1] | 1u << at[2] | 1u << at[3]) != 15)
            continue;
        for (unsigned i = 0; i < 4; i++)
            strcat(text, rows[at[i]]);
        struct kvc_trace *t = import(trace_text("order.jsonl", text), 16, false);
        if (!first[0])
            strcpy(first, t->digest);
        assert_string_equal(t->digest, first);
        kvc_trace_destroy(t);
    }
}

/* A log with a random forest: a row goes down known children or makes one. */
static const char *random_log(uint64_t seed, uint32_t *block)
{
    static char text[200000];
    uint64_t rng = kvc_rng_stream(seed, "export");
    uint32_t parent[2000], n_nodes = 0, rows = 1 + (uint32_t)kvc_rng_below(&rng, 40);
    uint32_t path[64];
    size_t n = 0;
    *block = 1 + (uint32_t)kvc_rng_below(&rng, 20);
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t at = UINT32_MAX, len = (uint32_t)kvc_rng_below(&rng, 12), k = 0;
        if (n_nodes && kvc_rng_below(&rng, 4))
            at = (uint32_t)kvc_rng_below(&rng, n_nodes);
        for (uint32_t s = at; s != UINT32_MAX; s = parent[s])
            k++;
        for (; k + len > 60; len--)
            if (!len)
                break;
        for (uint32_t j = 0; j < len && n_nodes < 1999; j++, k++) {
            parent[n_nodes] = at;
            at = n_nodes++;
        }
        for (uint32_t s = at, d = k; s != UINT32_MAX; s = parent[s])
            path[--d] = s;
        uint32_t tail = (uint32_t)kvc_rng_below(&rng, 2) * (uint32_t)kvc_rng_below(&rng, *block);
        uint32_t tokens = k * *block + tail;
        tokens = tokens ? tokens : 1;
        n += (size_t)sprintf(text + n, "{\"timestamp\": %llu.%03llu, \"input_length\": %u, "
                             "\"output_length\": %llu, \"hash_ids\": [",
                             (unsigned long long)kvc_rng_below(&rng, 20),
                             (unsigned long long)kvc_rng_below(&rng, 3), tokens,
                             (unsigned long long)kvc_rng_below(&rng, 40));
        for (uint32_t j = 0; j < k; j++)
            n += (size_t)sprintf(text + n, "%s%llu", j ? "," : "",
                                 (unsigned long long)(kvc_mix64(path[j] + 1) >> (seed & 63)));
        n += (size_t)sprintf(text + n, "]");
        if (kvc_rng_below(&rng, 3))
            n += (size_t)sprintf(text + n, ", \"session_id\": %llu",
                                 (unsigned long long)kvc_rng_below(&rng, 6));
        if (seed % 3 == 0 && kvc_rng_below(&rng, 3))
            n += (size_t)sprintf(text + n, ", \"model\": \"m%llu\"",
                                 (unsigned long long)kvc_rng_below(&rng, 3));
        if (!kvc_rng_below(&rng, 3))
            n += (size_t)sprintf(text + n, ", \"delay\": %llu",
                                 (unsigned long long)kvc_rng_below(&rng, 9000));
        n += (size_t)sprintf(text + n, "}\n");
    }
    return trace_text("random.jsonl", text);
}

static void random_forests_go_round(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint32_t block;
        const char *path = random_log(seed, &block);
        struct kvc_trace *t = import(path, block, false);
        goes_round(t, true, false);
        kvc_trace_destroy(t);
    }
}

/* ---- libCacheSim ---- */

static uint64_t little(const unsigned char *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static unsigned char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *p = malloc(*n + 1);
    assert_true(p && fread(p, 1, *n, f) == *n);
    fclose(f);
    return p;
}

/* Every reference by itself, the next one of the same block by looking. */
static void check_records(const struct kvc_trace *t)
{
    const char *path = trace_path("o.oracleGeneral");
    struct kvc_export_report r;
    size_t bytes, k = 0;
    export(t, path, "oraclegeneral", &r);
    unsigned char *p = read_file(path, &bytes);
    size_t n = bytes / 24;
    assert_int_equal(bytes % 24, 0);
    assert_int_equal(n, r.rows);
    uint64_t *last = calloc(n + 1, sizeof(*last)); /* by object: its last reference, from 1 */
    uint32_t path_of[4096];
    for (uint64_t q = 0; q < t->n_requests; q++) {
        uint32_t left = t->input_tokens[q], segs = 0;
        if (t->prompt_seg[q] != KVC_SEG_NONE)
            segs = kvc_trace_path(t, t->prompt_seg[q], path_of);
        for (uint32_t i = 0; i < segs; i++) {
            for (uint32_t b = 0; b < t->seg_len[path_of[i]]; b++, k++) {
                const unsigned char *rec = p + 24 * k;
                uint64_t id = little(rec + 4, 8);
                uint32_t size = left < t->block_tokens ? left : t->block_tokens;
                assert_true(k < n && id >= 1 && id <= n);
                assert_int_equal(little(rec, 4), t->arrival_ns[q] / 1000000000);
                assert_int_equal(little(rec + 12, 4), size);
                left -= size;
                if (last[id]) /* the reference before said that it would be this one */
                    assert_int_equal(little(p + 24 * (last[id] - 1) + 16, 8), k + 1);
                last[id] = k + 1;
            }
        }
    }
    assert_int_equal(k, n);
    for (uint64_t id = 1; id <= n; id++)
        if (last[id])
            assert_int_equal(little(p + 24 * (last[id] - 1) + 16, 8), UINT64_MAX);
    free(last);
    free(p);
}

static void oracle_records_are_the_references(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint32_t block;
        struct kvc_error err;
        const char *log = random_log(seed, &block);
        struct kvc_trace *t = import(log, block, false);
        if (t->n_segments)
            check_records(t);
        else
            assert_int_equal(kvc_trace_export(t, trace_path("none"), "oraclegeneral", NULL, &err),
                             KVC_ERR_INPUT);
        kvc_trace_destroy(t);
    }
}

/* ---- real logs ---- */

static void conversation_is_written_as_it_was(void **state)
{
    (void)state;
    const char *log = SHARED "mooncake/conversation_trace.jsonl.zst";
    if (access(log, R_OK)) {
        print_message("no %s\n", log);
        skip();
    }
    struct kvc_trace *t = import(log, 0, false);
    struct kvc_export_report r;
    size_t n;
    goes_round(t, true, false);
    check_records(t);
    /* Ids are dense by first appearance there already: Mooncake's own bytes come back. */
    export(t, trace_path("c.jsonl"), "mooncake", &r);
    assert_int_equal(r.n_notes, 0);
    unsigned char *p = read_file(trace_path("c.jsonl"), &n);
    struct kvc_stream *stream = NULL;
    static char original[1 << 16];
    size_t at = 0, got = 1;
    assert_int_equal(kvc_stream_open(&stream, log, NULL), KVC_OK);
    for (; got; at += got) {
        assert_int_equal(kvc_stream_read(stream, original, sizeof(original), &got, NULL), KVC_OK);
        assert_true(at + got <= n);
        assert_memory_equal(p + at, original, got);
    }
    assert_int_equal(at, n);
    kvc_stream_close(stream);
    free(p);
    kvc_trace_destroy(t);
}

static void known_answers_are_kept_or_said_lost(void **state)
{
    (void)state;
    const char *log = SHARED "llmservingsim/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl.zst";
    if (access(log, R_OK)) {
        print_message("no %s\n", log);
        skip();
    }
    struct kvc_trace *t = import(log, 0, false);
    struct kvc_export_report r;
    goes_round(t, false, false);
    export(t, trace_path("l.jsonl"), "mooncake", &r);
    uint64_t known = 0;
    char expected[64];
    for (uint64_t i = 0; i < t->n_requests; i++)
        known += t->output_seg[i] != KVC_SEG_NONE;
    snprintf(expected, sizeof(expected), "answers of %llu requests", (unsigned long long)known);
    assert_int_equal(r.n_notes, 2);
    assert_non_null(strstr(r.notes[1], expected));
    kvc_trace_destroy(t);
}

static void sessions_go_round(void **state)
{
    (void)state;
    static const char *const logs[] = { "0094.json", "0224.json.zst", "0687.json.zst" };
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof(path), SHARED "kv-cache-tester/single/trace_%s", logs[i]);
        if (access(path, R_OK)) {
            print_message("no %s\n", path);
            skip();
        }
        struct kvc_trace *t = import(path, 0, false);
        goes_round(t, true, false);
        kvc_trace_destroy(t);
    }
}

/* ---- what goes wrong ---- */

static void unservable_rows_are_left_out_and_counted(void **state)
{
    (void)state;
    static const char log[] =
        "arrival_ns,session,think_ns,tenant,model,status,input_tokens,output_tokens,cached_tokens,"
        "block_tokens,hash_ids,output_hash_ids\n"
        "0,,,,,ok,40,9,16,16,1 2 3,4\n5,,,,,failed,40,0,,16,,\n6,,,,,cancelled,40,1,,16,1 2 5,\n"
        "7,,,,,ok,0,1,,16,,\n"; /* no tokens: a bad row */
    struct kvc_trace *t = import(trace_text("mixed.csv", log), 0, false);
    struct kvc_export_report r;
    assert_int_equal(t->n_requests, 3);
    goes_round(t, false, false);
    export(t, trace_path("mixed.jsonl"), "mooncake", &r);
    assert_int_equal(r.rows, 2);
    assert_int_equal(r.left_out, 1);
    assert_int_equal(r.n_notes, 5); /* block size, failed, answers, cancelled, cached */
    kvc_trace_destroy(t);
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    uint32_t block;
    const char *log = random_log(9, &block);
    struct kvc_trace *t = import(log, block, false);
    for (const char *const *f = kvc_export_formats(); *f; f++) {
        enum kvc_status status = KVC_ERR_NOMEM;
        for (uint64_t k = 1; status != KVC_OK; k++) {
            size_t before = trace_folder_count();
            kvc_alloc_fail_after(k);
            status = kvc_trace_export(t, trace_path("nomem"), *f, NULL, NULL);
            kvc_alloc_fail_after(0);
            assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
            if (status != KVC_OK)
                assert_int_equal(trace_folder_count(), before);
            assert_true(k < 1000);
        }
        unlink(trace_path("nomem"));
    }
    kvc_trace_destroy(t);
}

static void wrong_rows_of_the_csv_are_refused(void **state)
{
    (void)state;
#define HEAD                                                                                       \
    "arrival_ns,session,think_ns,tenant,model,status,input_tokens,output_tokens,cached_tokens,"    \
    "block_tokens,hash_ids,output_hash_ids\n"
    static const struct {
        const char *text, *says;
    } bad[] = {
        { HEAD "x,,,,,ok,40,9,,16,1 2 3,\n", ":2:arrival_ns: a whole number" },
        { HEAD ",,,,,ok,40,9,,16,1 2 3,\n", "arrival_ns: missing" },
        { HEAD "0,,,,,fine,40,9,,16,1 2 3,\n", "status: ok, failed or cancelled" },
        { HEAD "0,,,,,ok,40,9,41,16,1 2 3,\n", "cached_tokens: a whole number from 0 to 40" },
        { HEAD "0,,,,,ok,40,9,,,1 2 3,\n", "block_tokens: missing" },
        { HEAD "0,,,,,ok,40,9,,0,1 2 3,\n", "block_tokens: blocks have" },
        { HEAD "0,,,,,ok,40,9,,16,1  2,\n", "hash_ids: block ids with one space" },
        { HEAD "0,,,,,ok,40,9,,16,1 2 3 ,\n", "hash_ids: block ids with one space" },
        { HEAD "0,,,,,ok,40,9,,16,1 2 3,4 5\n", "output_hash_ids: more full blocks" },
        { HEAD "0,,,,,ok,40,9,,16,1 2 3\n", "fewer than the 12 columns" },
        { HEAD "0,,,,,ok,40,9,,16,1 2 3,,\n", "more than the 12 columns" },
        { HEAD "0,,,\"a,,ok,40,9,,16,1 2 3,\n", "a quote is never closed" },
        { HEAD "0,,,\"a\"b,,ok,40,9,,16,1 2 3,\n", "text behind a closing quote" },
        { HEAD "0,,,,,ok,18446744073709551616,9,,16,1 2 3,\n", "input_tokens: a whole number" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *error = trace_import_error(trace_text("bad.csv", bad[i].text), NULL);
        if (!strstr(error, bad[i].says))
            fail_msg("\"%s\" lacks \"%s\"", error, bad[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_goes_round),
        cmocka_unit_test(the_order_of_rows_does_not_matter),
        cmocka_unit_test(random_forests_go_round),
        cmocka_unit_test(oracle_records_are_the_references),
        cmocka_unit_test(conversation_is_written_as_it_was),
        cmocka_unit_test(known_answers_are_kept_or_said_lost),
        cmocka_unit_test(sessions_go_round),
        cmocka_unit_test(unservable_rows_are_left_out_and_counted),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(wrong_rows_of_the_csv_are_refused),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
