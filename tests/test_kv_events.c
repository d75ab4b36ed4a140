/* SPDX-License-Identifier: Apache-2.0
 * KV events: residency is counted as by hand, chains are what was stored, and all ways to write an
 * event down mean the same. */
#include "base/rng.h"
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void residency_is_counted(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("one",
                   "[100.5, [[\"BlockStored\", [11,12,13], null, [1,2,3,4,5,6], 2,null,\"GPU\"]]]\n"
                   "[101.5, [[\"BlockStored\", [14], 13, [7,8], 2]], 0]\n" /* medium not stated */
                   "[102.0, [[\"BlockStored\", [21], 12, [9,9], 2, null, \"GPU\"],"
                   "[\"BlockRemoved\", [13], \"GPU\"]], 0]\n"
                   "[104.0, [[\"BlockStored\", [13], 12, [5,6], 2, null, \"gpu\"],"
                   "[\"BlockRemoved\", [99], \"GPU\"]], 0]\n"
                   "[105.0, [[\"BlockStored\", [11], null, [1,2], 2, null, \"GPU\"],"
                   "[\"BlockStored\", [11], null, [], 8, null, \"CPU\"]], 0]\n"
                   "[106.0, [[\"AllBlocksCleared\"]], 0]\n"
                   "[107.0, [[\"BlockRemoved\", [11], \"CPU\"]], 0]\n"),
        0, &r);
    assert_int_equal(r.rows, 7);
    assert_int_equal(r.bad, 0);
    assert_int_equal(t->block_tokens, 2);
    assert_true(log_note(&r, "never a hit"));
    assert_true(log_note(&r, "GPU: 6 blocks stored (1 of them again), 1 removed, 5 cleared, at "
                             "most 5 resident, 0 at the end; not counted: 1 stored while there, 1 "
                             "removed unseen"));
    assert_true(log_note(&r, "GPU: the 1 removed blocks had been there 1.5 s"));
    assert_true(log_note(&r, "CPU: 1 blocks stored (0 of them again), 1 removed, 0 cleared"));
    assert_int_equal(log_tally(&r, "BlockStored"), 6);
    assert_int_equal(log_tally(&r, "AllBlocksCleared"), 1);
    kvc_trace_destroy(t);
}

/* A prompt of 3 blocks, of which decoding makes 5; a branch behind 2; 4 and 5 removed and stored
 * again. */
static void chains_are_what_was_stored(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("chains",
                   "{\"ts\":1.0,\"events\":[{\"type\":\"BlockStored\",\"block_hashes\":[1,2,3],"
                   "\"parent_block_hash\":null,\"token_ids\":[],\"block_size\":16}]}\n"
                   "{\"ts\":1.5,\"events\":[{\"type\":\"BlockStored\",\"block_hashes\":[4],"
                   "\"parent_block_hash\":3,\"block_size\":16},"
                   "{\"type\":\"BlockStored\",\"block_hashes\":[5],\"parent_block_hash\":4,"
                   "\"block_size\":16,\"medium\":null}]}\n"
                   "{\"ts\":2,\"events\":[{\"type\":\"BlockStored\",\"block_hashes\":[6,7],"
                   "\"parent_block_hash\":2,\"block_size\":16}]}\n"
                   "{\"ts\":3,\"events\":[{\"type\":\"BlockRemoved\",\"block_hashes\":[5,4]}]}\n"
                   "{\"ts\":4,\"events\":[{\"type\":\"BlockStored\",\"block_hashes\":[4,5],"
                   "\"parent_block_hash\":3,\"block_size\":16}]}\n"
                   "{\"ts\":5,\"events\":[{\"type\":\"BlockStored\",\"block_hashes\":[8],"
                   "\"parent_block_hash\":77,\"block_size\":16}]}\n"),
        0, &r);
    assert_int_equal(t->n_requests, 4);
    assert_int_equal(kvc_trace_blocks(t, 0), 5);
    assert_int_equal(t->input_tokens[0], 80);
    assert_int_equal(kvc_trace_blocks(t, 1), 4);
    assert_int_equal(kvc_trace_blocks(t, 2), 5);
    assert_int_equal(kvc_trace_blocks(t, 3), 1);
    assert_int_equal(t->arrival_ns[2], 3000000000u);
    assert_int_equal(log_common(t, 0, 1), 2);
    assert_int_equal(log_common(t, 0, 2), 5);
    assert_int_equal(log_tally(&r, "beginning was stored before the dump"), 1);
    assert_true(log_note(&r, "engine: 10 blocks stored (2 of them again)"));
    kvc_trace_destroy(t);
}

/* The same events in other words give the same trace. */
static void forms_mean_the_same(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "[1.25,[[\"BlockStored\",[-1,18446744073709551614],null,[],4,null,\"GPU\",null,null,0,"
        "\"full_attention\",null,\"later\"]],0]\n[2.25,[[\"BlockStored\",[7],-2,[],4]],0]\n",
        "{\"ts\":1.25,\"events\":[[\"BlockStored\",[18446744073709551615,-2],null,[],4]]}\n"
        "{\"timestamp\":2.25,\"events\":[{\"type\":\"BlockStored\",\"block_hashes\":[7],"
        "\"parent_block_hash\":18446744073709551614,\"block_size\":4}]}\n",
        "{\"topic\":\"kv\",\"seq\":1,\"payload\":[1.25,[[\"BlockStored\",[-1,-2],null,[],4]],0]}\n"
        "{\"topic\":\"kv\",\"seq\":2,\"payload\":[2.25,[[\"BlockStored\",[7],-2,[],4]],0]}\n",
        "{\"type\":\"BlockStored\",\"ts\":1.25,\"block_hashes\":[-1,-2],\"block_size\":4}\n"
        "{\"type\":\"BlockStored\",\"ts\":2.25,\"block_hashes\":[7],\"parent_block_hash\":-2,"
        "\"block_size\":4}\n",
        "{\"timestamp\":1250,\"event\":{\"worker_id\":5,\"storage_tier\":\"Device\",\"event\":"
        "{\"event_id\":8,\"data\":{\"stored\":{\"parent_hash\":null,\"blocks\":[{\"block_hash\":"
        "18446744073709551615,\"tokens_hash\":1},{\"block_hash\":18446744073709551614}]}}}}}\n"
        "{\"timestamp\":2250,\"event\":{\"worker_id\":5,\"event\":{\"event_id\":9,\"dp_rank\":0,"
        "\"data\":{\"stored\":{\"parent_hash\":18446744073709551614,\"blocks\":[{\"block_hash\":7}]"
        "}}}}}\n",
        "{\"timestamp\":1250,\"worker_id\":5,\"event\":{\"event_id\":1,\"data\":{\"stored\":"
        "{\"blocks\":[{\"block_hash\":-1},{\"block_hash\":-2}]}}}}\n"
        "{\"timestamp\":2250,\"worker_id\":5,\"event\":{\"event_id\":1,\"data\":{\"stored\":"
        "{\"parent_hash\":-2,\"blocks\":[{\"block_hash\":7}]}}}}\n",
    };
    char digest[24] = "";
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct kvc_import_report r;
        struct kvc_trace *t = trace_import(trace_text("form", forms[i]), 4, &r);
        assert_int_equal(r.bad, 0);
        assert_int_equal(t->n_requests, 1);
        assert_int_equal(kvc_trace_blocks(t, 0), 3);
        if (i)
            assert_string_equal(t->digest, digest);
        strcpy(digest, t->digest);
        kvc_trace_destroy(t);
    }
}

static void hashes_of_32_bytes_are_text(void **state)
{
    (void)state;
    struct kvc_import_report r;
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeef"
    struct kvc_trace *t = trace_import(
        trace_text("text", "[1,[[\"BlockStored\",[\"" HEX "1\",\"" HEX "2\"],null,[],4]],0]\n"
                           "[2,[[\"BlockStored\",[\"" HEX "3\"],\"" HEX "1\",[],4]],0]\n"
                           "[3,[[\"BlockStored\",[0],null,[],4]],0]\n"),
        0, &r);
    assert_int_equal(t->n_requests, 3);
    assert_int_equal(log_common(t, 0, 1), 1);
    assert_int_equal(log_common(t, 0, 2), 0);
    kvc_trace_destroy(t);
}

static void instances_and_losses_are_told(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = trace_text(
        "two", "{\"topic\":\"a\",\"seq\":1,\"payload\":[1,[[\"BlockStored\",[1,2],null,[],4]],0]}\n"
               "{\"topic\":\"b\",\"seq\":7,\"payload\":[2,[[\"BlockStored\",[3,4],null,[],4]],0]}\n"
               "{\"topic\":\"a\",\"seq\":5,\"payload\":[3,[[\"BlockRemoved\",[3]]],0]}\n");
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_true(log_note(&r, "no hash of one instance occurs in another (2 instances)"));
    assert_true(log_note(&r, "3 messages are missing in 1 places"));
    assert_true(log_note(&r, "0 removed, 0 cleared, at most 4 resident"));
    kvc_trace_destroy(t);
    log_import_without_memory(path, NULL);
    t = trace_import(trace_text("shared", "[1,[[\"BlockStored\",[1,2],null,[],4]],0]\n"
                                          "[1,[[\"BlockStored\",[1],null,[],4]],1]\n"
                                          "[1,[[\"BlockStored\",[9],2,[],4],"
                                          "[\"BlockStored\",[5],null,[],4,null,\"GPU\",null,null,1,"
                                          "\"sliding_window\"]],1]\n"),
                     0, &r);
    assert_false(log_note(&r, "no hash of one instance"));
    assert_int_equal(t->n_requests, 3); /* rank 1 does not have block 2 */
    assert_int_equal(log_tally(&r, "further cache"), 1);
    kvc_trace_destroy(t);
}

static void wrong_messages_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *row, *field, *says;
    } cases[] = {
        { "[]", "ts", "missing" },
        { "[1]", "events", "list of events" },
        { "[-1,[]]", "ts", "-1 is wrong" },
        { "[1,[[]]]", "events", "begins with its type" },
        { "[1,[[\"BlockStored\"]]]", "block_hashes", "missing" },
        { "[1,[[\"BlockStored\",[1],null,[]]]]", "block_size", "missing" },
        { "[1,[[\"BlockStored\",[1],null,[],0]]]", "block_size", "0 is wrong" },
        { "[1,[[\"BlockStored\",[1],null,[],8]]]", "block_size", "blocks of 8 tokens here, of 4" },
        { "[1,[[\"BlockStored\",[1],null,[1,2,3],4]]]", "token_ids", "3 tokens for 1 blocks of 4" },
        { "[1,[[\"BlockStored\",[1],1.5,[],4]]]", "parent_block_hash", "1.5" },
        { "[1,[[\"BlockStored\",[18446744073709551616],null,[],4]]]", "block_hashes[0]",
          "18446744073709551616 is wrong" },
        { "[1,[[\"BlockRemoved\",7]]]", "block_hashes", "list" },
        { "[1,[],\"x\"]", "dp_rank", "whole number" },
        { "{\"type\":\"BlockRemoved\",\"block_hashes\":[1]}", "ts", "missing" },
        { "{\"worker_id\":1,\"event\":{\"data\":{\"stored\":{}}}}", "timestamp", "missing" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[400];
        struct kvc_import_report r;
        snprintf(text, sizeof(text), "[1,[[\"BlockStored\",[1],null,[],4]]]\n%s\n", cases[i].row);
        struct kvc_trace *t = trace_import(trace_text("wrong", text), 0, &r);
        assert_int_equal(r.bad, 1);
        assert_int_equal(r.shown[0].line, 2);
        assert_string_equal(r.shown[0].field, cases[i].field);
        if (!strstr(r.shown[0].text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", r.shown[0].text, cases[i].says);
        kvc_trace_destroy(t);
    }
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = 16 };
    assert_non_null(strstr(trace_import_error(trace_text("size",
                                              "[1,[[\"BlockStored\",[1],null,[],4]]]\n"), &o),
                           "blocks of 4 tokens, where --block-tokens says 16"));
}

static void packed_events_are_refused_by_name(void **state)
{
    (void)state;
    static const char packed[] = "\x93\xcb\x41\xd9\x00\x00\x00\x00\x00\x00\x91\x95\xab"
                                 "BlockStored"
                                 "\x91\x01\xc0\x90\x10";
    const char *says = trace_import_error(trace_file("packed", packed, sizeof(packed) - 1), NULL);
    assert_non_null(strstr(says, "MessagePack"));
    assert_non_null(strstr(says, "json.dumps"));
}

/* ---- against a list and a loop ---- */

#define BLOCKS 40

static void residency_equals_a_list_and_a_loop(void **state)
{
    (void)state;
    uint64_t rng = 5;
    for (unsigned round = 0; round < 200; round++) {
        uint64_t since[BLOCKS] = { 0 }; /* 0: not there */
        bool before[BLOCKS] = { false };
        unsigned stored = 0, again = 0, removed = 0, cleared = 0, peak = 0, here = 0, already = 0;
        unsigned unknown = 0;
        double longest = 0;
        FILE *f = fopen(trace_path("random"), "w");
        assert_non_null(f);
        for (uint64_t now = 1; now < 120; now++) {
            uint64_t b = kvc_rng_below(&rng, BLOCKS), what = kvc_rng_below(&rng, 60);
            if (what == 0) {
                fprintf(f, "[%llu,[[\"AllBlocksCleared\"]]]\n", (unsigned long long)now);
                for (size_t i = 0; i < BLOCKS; i++) {
                    cleared += since[i] != 0;
                    since[i] = 0;
                }
                here = 0;
            } else if (what < 35) {
                fprintf(f, "[%llu,[[\"BlockStored\",[%llu],", (unsigned long long)now,
                        (unsigned long long)b);
                if (what < 10)
                    fprintf(f, "null,[],4]]]\n");
                else
                    fprintf(f, "%llu,[],4]]]\n", (unsigned long long)kvc_rng_below(&rng, BLOCKS));
                already += since[b] != 0;
                stored += since[b] == 0;
                again += since[b] == 0 && before[b];
                here += since[b] == 0;
                peak = here > peak ? here : peak;
                since[b] = since[b] ? since[b] : now;
                before[b] = true;
            } else {
                fprintf(f, "[%llu,[[\"BlockRemoved\",[%llu]]]]\n", (unsigned long long)now,
                        (unsigned long long)b);
                unknown += since[b] == 0;
                removed += since[b] != 0;
                here -= since[b] != 0;
                if (since[b] && (double)(now - since[b]) > longest)
                    longest = (double)(now - since[b]);
                since[b] = 0;
            }
        }
        fclose(f);
        char text[256];
        struct kvc_import_report r;
        struct kvc_trace *t = trace_import(trace_path("random"), 0, &r);
        snprintf(text, sizeof(text), "engine: %u blocks stored (%u of them again), %u removed, %u "
                 "cleared, at most %u resident, %u at the end; not counted: %u stored while there, "
                 "%u removed unseen", stored, again, removed, cleared, peak, here, already,
                 unknown);
        if (!log_note(&r, text))
            fail_msg("round %u: no note \"%s\"", round, text);
        snprintf(text, sizeof(text), "%.3g s at most", longest);
        assert_true(!removed || log_note(&r, text));
        kvc_trace_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residency_is_counted),
        cmocka_unit_test(chains_are_what_was_stored),
        cmocka_unit_test(forms_mean_the_same),
        cmocka_unit_test(hashes_of_32_bytes_are_text),
        cmocka_unit_test(instances_and_losses_are_told),
        cmocka_unit_test(wrong_messages_are_named),
        cmocka_unit_test(packed_events_are_refused_by_name),
        cmocka_unit_test(residency_equals_a_list_and_a_loop),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
