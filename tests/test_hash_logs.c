/* SPDX-License-Identifier: Apache-2.0
 * Qwen-Bailian, Dynamo, RAGPulse and Tair logs: what their ids mean, what they leave unknown, and
 * the published cases. */
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct kvc_hits content(const struct kvc_trace *t)
{
    struct kvc_hits h;
    assert_int_equal(kvc_ceiling_content(t, &h, NULL), KVC_OK);
    return h;
}

struct wrong {
    const char *row, *field, *says;
};

/* A good row, the wrong one, the good row again. */
static void check_wrong(const char *good, const struct wrong *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[2000];
        struct kvc_import_report r;
        snprintf(text, sizeof(text), "%s\n%s\n%s\n", good, cases[i].row, good);
        struct kvc_trace *t = trace_import(trace_text("wrong", text), 0, &r);
        assert_int_equal(r.accepted, 2);
        assert_int_equal(r.bad, 1);
        assert_int_equal(r.shown[0].line, 2);
        assert_string_equal(r.shown[0].field, cases[i].field);
        if (!strstr(r.shown[0].text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", r.shown[0].text, cases[i].says);
        kvc_trace_destroy(t);
    }
}
#define WRONG(good, cases) check_wrong(good, cases, sizeof(cases) / sizeof((cases)[0]))

/* ---- Qwen-Bailian ---- */

#define CHAT(id, parent, time, in, out, ids)                                                       \
    "{\"chat_id\": " #id ", \"parent_chat_id\": " #parent ", \"timestamp\": " time                 \
    ", \"input_length\": " #in ", \"output_length\": " #out ", \"type\": \"text\", \"turn\": 1, "  \
    "\"hash_ids\": [" ids "]}"

static void unchained_ids_become_prefixes(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("unchained", CHAT(1, -1, "0", 64, 9, "5,5,6,5") "\n" /* two equal blocks */
                                CHAT(2, -1, "1", 64, 9, "5,6,6,5") "\n"
                                CHAT(3, -1, "2.5", 50, 9, "5,5,6,7") "\n"
                                CHAT(4, -1, "2.5", 48, 9, "6,5,5") "\n"),
        0, &r);
    assert_int_equal(r.repeated_ids, 0);
    assert_int_equal(t->block_tokens, 16);
    assert_int_equal(log_common(t, 0, 1), 1);
    assert_int_equal(log_common(t, 0, 2), 3);
    assert_int_equal(log_common(t, 0, 3), 0);
    assert_int_equal(t->arrival_ns[2], 2500000000u);
    assert_int_equal(t->n_sessions, 4);
    assert_int_equal(t->n_tenants, 0);
    kvc_trace_destroy(t);
    const char *path = trace_text("type", CHAT(1, -1, "0", 16, 9, "5") "\n");
    struct kvc_import_options o = { .struct_size = sizeof(o), .tenant_field = "type" };
    t = log_import(&path, 1, &o, &r);
    assert_int_equal(t->n_tenants, 1);
    assert_string_equal(t->tenant_names[0], "text");
    kvc_trace_destroy(t);
    o = (struct kvc_import_options){ .struct_size = sizeof(o), .time_unit = "ms" };
    path = trace_text("ms", CHAT(1, -1, "0", 16, 9, "5") "\n" CHAT(2, -1, "7", 16, 9, "5") "\n");
    t = log_import(&path, 1, &o, &r);
    assert_int_equal(t->arrival_ns[1], 7000000);
    kvc_trace_destroy(t);
}

static void sessions_are_chat_trees(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("tree", CHAT(1, -1, "0", 16, 16, "1") "\n"
                           CHAT(2, 1, "1", 48, 16, "1,2,3") "\n" /* holds 16 + 16 */
                           CHAT(3, 1, "2", 48, 16, "1,2,4") "\n" /* a branch */
                           CHAT(4, 2, "3", 48, 16, "1,2,3") "\n" /* too short for 48 + 16 */
                           CHAT(5, 9, "4", 48, 16, "1,2,3") "\n" /* parent not there */
                           CHAT(6, 5, "5", 80, 16, "1,2,3,4,5") "\n"
                           CHAT(6, -1, "6", 16, 16, "1") "\n"),
        0, &r);
    assert_int_equal(t->n_sessions, 2);
    assert_int_equal(t->session[3], t->session[0]);
    assert_int_equal(t->session[5], t->session[4]);
    assert_int_not_equal(t->session[4], t->session[0]);
    assert_int_equal(t->session[6], t->session[5]);
    assert_int_equal(log_tally(&r, "a branch"), 1);
    assert_int_equal(log_tally(&r, "too short to hold"), 1);
    assert_int_equal(log_tally(&r, "long enough to hold"), 3);
    assert_int_equal(log_tally(&r, "parent is not among"), 1);
    assert_int_equal(log_tally(&r, "chat_id an earlier row has"), 1);
    assert_int_equal(log_output_blocks(t, 0), 1); /* 16 + 16 - 1 tokens: the prompt's own block */
    kvc_trace_destroy(t);
}

static void sessions_go_on_in_the_next_file(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *paths[2] = { trace_text("one", CHAT(1, -1, "0", 16, 16, "1") "\n"),
                             trace_text("two", CHAT(2, 1, "1", 48, 16, "1,2,3") "\n") };
    struct kvc_trace *t = log_import(paths, 2, NULL, &r);
    assert_int_equal(t->n_sessions, 1);
    assert_int_equal(log_tally(&r, "long enough"), 1);
    kvc_trace_destroy(t);
}

static void bailian_rows_are_checked(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        { CHAT(1, -1, "-1", 16, 9, "5"), "timestamp", "-1 is wrong" },
        { CHAT(1, -1, "null", 16, 9, "5"), "timestamp", "missing" },
        { CHAT(1, -1, "0", 0, 9, "5"), "input_length", "0 is wrong" },
        { CHAT(1, -1, "0", 16, 18446744073709551615, "5"), "output_length",
          "18446744073709551615 is wrong" },
        { CHAT(null, -1, "0", 16, 9, "5"), "chat_id", "missing" },
        { CHAT(1, -1, "0", 16, 9, "1.5"), "hash_ids[0]", "1.5" },
        { CHAT(1, -1, "0", 16, 9, "18446744073709551616"), "hash_ids[0]",
          "18446744073709551616 is wrong" },
    };
    WRONG(CHAT(1, -1, "0", 16, 9, "5"), cases);
    log_import_without_memory(trace_text("memory", CHAT(1, -1, "0", 16, 16, "1") "\n"
                                                   CHAT(2, 1, "1", 48, 16, "1,2,3") "\n"), NULL);
}

static void case_c09_thinking_stripped(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = SHARED_CASES "c09-think-stripped.bailian.jsonl";
    log_need(path);
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_int_equal(t->block_tokens, 16);
    assert_int_equal(t->n_sessions, 1);
    assert_int_equal(log_common(t, 0, 1), 4);
    assert_int_equal(log_common(t, 1, 2), 8);
    assert_int_equal(content(t).hit_blocks, 4 + 8);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(log_output_blocks(t, i), 0); /* no reuse of an answer is known */
    assert_int_equal(log_tally(&r, "not carried over"), 2);
    kvc_trace_destroy(t);
}

static void case_c11_whole_seconds(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = SHARED_CASES "c11-int-timestamp.bailian.jsonl";
    log_need(path);
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_int_equal(t->arrival_ns[0], 0);
    assert_int_equal(t->arrival_ns[1], 500000000);
    assert_int_equal(t->arrival_ns[2], 1000000000);
    kvc_trace_destroy(t);
}

/* ---- Dynamo ---- */

#define HEAD "{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"request_end\","
#define REPLAY(size, in, ids)                                                                      \
    "\"replay\":{\"trace_block_size\":" #size ",\"input_length\":" #in                             \
    ",\"input_sequence_hashes\":[" ids "]}"
#define PLAIN(received, in, ids)                                                                   \
    HEAD "\"event_time_unix_ms\":1777312801000,\"request\":{\"request_id\":\"r\","                 \
    "\"request_received_ms\":" #received ",\"output_tokens\":16," REPLAY(64, in, ids) "}}"
#define AGENT(who, received, total)                                                                \
    HEAD "\"event_time_unix_ms\":9,\"agent_context\":{\"trajectory_id\":\"" who "\"},"             \
    "\"request\":{\"model\":\"m\",\"input_tokens\":128,\"output_tokens\":16,"                      \
    "\"request_received_ms\":" #received ",\"total_time_ms\":" #total ",\"cached_tokens\":64,"     \
    REPLAY(64, 128, "1,2") "}}"

static void dynamo_hashes_are_exact(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("exact", PLAIN(1000, 128, "14879255164371896291,274632075616497421") "\n"
                            PLAIN(1005, 128, "14879255164371896292,274632075616497421") "\n"
                            "{\"timestamp\":7,\"event\":"
                            PLAIN(1010.25, 150, "14879255164371896291,274632075616497421") "}\n"
                            PLAIN(900, 128, "14879255164371896291,274632075616497422") "\n"),
        0, &r);
    assert_int_equal(r.accepted, 4);
    assert_int_equal(r.inversions, 1);
    assert_int_equal(t->block_tokens, 64);
    assert_int_equal(t->arrival_ns[3], 110250000);
    assert_int_equal(log_common(t, 1, 2), 0); /* order by time: 900, 1000, 1005, 1010.25 */
    assert_int_equal(log_common(t, 1, 3), 2);
    assert_int_equal(log_common(t, 0, 1), 1);
    assert_int_equal(r.floor_rows, 1);
    kvc_trace_destroy(t);
}

/* Digits of a duration that no double holds. */
static void dynamo_durations_are_exact(void **state)
{
    (void)state;
#define LASTS(total)                                                                             \
    HEAD "\"event_time_unix_ms\":1700000000000,\"request\":{\"input_tokens\":300,"               \
         "\"output_tokens\":2,\"total_time_ms\":" total "}}\n"
    struct kvc_import_report r;
    struct kvc_trace *t = trace_import(
        trace_text("exact", LASTS("9007199254.740993") LASTS("9007199254.740992")), 0, &r);
    assert_int_equal(r.accepted, 2);
    assert_int_equal(t->arrival_ns[1], 1);
    kvc_trace_destroy(t);
}

static void dynamo_tells_turns_and_caches(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    struct kvc_trace *t = trace_import(
        trace_text("turns",
                   AGENT("a", 1000, 500) "\n" AGENT("b", 1100, 200) "\n"
                   HEAD "\"event_time_unix_ms\":5000,\"request\":{\"input_tokens\":300,"
                   "\"output_tokens\":2,\"total_time_ms\":1000,\"finish_reason_metadata\":"
                   "{\"finish_reason\":\"cancelled\"}}}\n"
                   "{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"tool_end\"}\n"
                   AGENT("a", 1750, 100) "\n" AGENT("a", 1800, 100) "\n"),
        0, &r);
    assert_int_equal(r.accepted, 5);
    assert_int_equal(r.rows, 6);
    assert_int_equal(r.bad, 0);
    assert_int_equal(r.cancelled, 1);
    assert_int_equal(r.without_ids, 1);
    assert_int_equal(r.cached_rows, 4);
    assert_int_equal(r.cached_tokens, 256);
    assert_int_equal(log_tally(&r, "tool_end events"), 1);
    assert_int_equal(log_tally(&r, "without replay"), 1);
    assert_int_equal(log_tally(&r, "total_time_ms before their end"), 1);
    assert_int_equal(t->arrival_ns[4], 3000000000u); /* 5000 - 1000, from 1000 on */
    assert_int_equal(t->think_ns[0], KVC_TIME_NONE);
    assert_int_equal(t->think_ns[2], 250000000); /* 1750 - 1500 */
    assert_int_equal(t->think_ns[3], KVC_TIME_NONE); /* began before the one before ended */
    kvc_trace_stats(t, &s);
    assert_int_equal(s.sessions, 2);
    kvc_trace_destroy(t);
}

static void dynamo_rows_are_checked(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        { "{\"schema\":\"dynamo.request.trace.v2\",\"event_type\":\"request_end\"}", "schema",
          "dynamo.request.trace.v1" },
        { HEAD "\"request\":{}}", "request.request_received_ms", "missing" },
        { HEAD "\"x\":1}", "request", "missing" },
        { HEAD "\"request\":{\"request_received_ms\":1,\"output_tokens\":1}}", "input_tokens",
          "missing" },
        { HEAD "\"request\":{\"request_received_ms\":1,\"output_tokens\":1,\"input_tokens\":5,"
          REPLAY(64, 128, "1,2") "}}", "request.replay.input_length", "input_tokens says 5" },
        { HEAD "\"request\":{\"request_received_ms\":1,\"output_tokens\":1,\"cached_tokens\":129,"
          REPLAY(64, 128, "1,2") "}}", "request.cached_tokens", "129 of 128" },
        { HEAD "\"request\":{\"request_received_ms\":1,\"output_tokens\":1,"
          REPLAY(64, 128, "1,1.5") "}}", "request.replay.input_sequence_hashes[1]", "1.5" },
    };
    WRONG(PLAIN(1, 128, "1,2"), cases);
    const char *path = trace_text("sizes", PLAIN(1, 128, "1,2") "\n"
                                           HEAD "\"request\":{\"request_received_ms\":1,"
                                           "\"output_tokens\":1," REPLAY(32, 64, "1,2") "}}\n");
    assert_non_null(strstr(trace_import_error(path, NULL), ":2:block_size: blocks of 32 tokens"));
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = 16 };
    path = trace_text("other", PLAIN(1, 128, "1,2") "\n");
    assert_non_null(strstr(trace_import_error(path, &o), "blocks of 16 tokens give 8"));
    log_import_without_memory(trace_text("memory", AGENT("a", 1, 2) "\n" AGENT("a", 5, 2) "\n"),
                              NULL);
}

/* ---- RAGPulse ---- */

#define RAG(time, in, sys, passages, question)                                                     \
    "{\"timestamp\": \"" #time "\", \"input_length\": " #in ", \"output_length\": 3, "             \
    "\"session_id\": \"u\", \"hash_ids\": {\"sys_prompt\": [" sys "], \"passages_ids\": ["         \
    passages "], \"history\": [], \"web_search\": [], \"user_input\": [" question "]}}\n"

static void pieces_without_lengths_are_not_tokens(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    const char *path = trace_text("bare", RAG(0, 40, "1", "2,3", "4") RAG(5, 40, "1", "3,2", "4")
                                          RAG(9, 41, "1", "2,3", "5"));
    struct kvc_trace *t = trace_import(path, 0, &r);
    kvc_trace_stats(t, &s);
    assert_false(s.has_prefix);
    assert_true(log_note(&r, "4 of 12 pieces")); /* 1 again; 1 2 3 again */
    kvc_trace_destroy(t);
    t = trace_import(path, 10, &r); /* told that a piece is 10 tokens: 4 pieces are 41 at most */
    assert_int_equal(log_common(t, 0, 1), 1);
    assert_int_equal(log_common(t, 0, 2), 3);
    assert_true(log_note(&r, "each piece taken as one block of 10 tokens"));
    assert_int_equal(r.floor_rows, 1);
    kvc_trace_destroy(t);
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = 16 };
    assert_non_null(strstr(trace_import_error(path, &o), ":1:hash_ids: 4 ids for 40 input tokens"));
}

/* Lengths: sys 1 = 12, passage 2 = 5, passage 3 = 10, question 4 = 7 tokens. */
static void pieces_with_lengths_are_cut_exactly(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *paths[2] = {
        trace_text("lengths", "{\"sys_prompt_id\": 1, \"token_length\": 12}\n"
                              "{\"passage_id\": 2, \"token_length\": 5}\n"
                              "{\"passage_id\": 3, \"token_length\": 10}\n"
                              "{\"user_input_id\": 4, \"token_length\": 7}\n"),
        trace_text("requests", RAG(0, 34, "1", "2,3", "4") RAG(1, 34, "1", "3,2", "4")
                               RAG(2, 27, "1", "2,3", "") RAG(3, 40, "1", "2,3", "4")
                               RAG(4, 40, "1", "2,3", "4") RAG(5, 34, "1", "2,9", "4")
                               RAG(6, 33, "1", "2,3", "4")),
    };
    struct kvc_import_options o = { .struct_size = sizeof(o), .block_tokens = 4 };
    struct kvc_trace *t = log_import(paths, 2, &o, &r);
    assert_int_equal(t->block_tokens, 4);
    assert_int_equal(kvc_trace_blocks(t, 0), 9);
    assert_int_equal(log_common(t, 0, 1), 3); /* the system prompt's 12 tokens */
    assert_int_equal(log_common(t, 0, 2), 6); /* 27 tokens: 6 full blocks */
    assert_int_equal(log_common(t, 0, 3), 8); /* 34 tokens: 8 full blocks */
    assert_int_equal(log_common(t, 3, 4), 8); /* what is no piece's is nobody else's */
    assert_int_equal(log_common(t, 0, 5), 4); /* 17 tokens until a piece of unknown length */
    assert_int_equal(log_tally(&r, "longer than their pieces"), 3);
    assert_int_equal(log_tally(&r, "unknown length"), 1);
    assert_int_equal(r.bad, 1);
    assert_non_null(strstr(r.shown[0].text, "33 tokens, fewer than its pieces have: 34"));
    kvc_trace_destroy(t);
    const char *swapped[2] = { paths[1], paths[0] };
    struct kvc_error err;
    assert_int_equal(kvc_trace_import(&t, swapped, 2, NULL, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "before 0_trace.jsonl"));
}

static void ragpulse_rows_are_checked(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        { "{\"timestamp\":\"x\",\"input_length\":1,\"output_length\":1}", "timestamp",
          "the text \"x\" is wrong" },
        { "{\"timestamp\":\"1\",\"input_length\":1,\"output_length\":1,\"hash_ids\":[1]}",
          "hash_ids", "object of five lists" },
        { "{\"timestamp\":\"1\",\"input_length\":1,\"output_length\":1,\"hash_ids\":"
          "{\"history\":[1,\"2\"]}}", "hash_ids.history[1]", "text" },
    };
    WRONG("{\"timestamp\":\"1\",\"input_length\":1,\"output_length\":1,\"hash_ids\":"
          "{\"sys_prompt\":[1],\"user_input\":[2]}}", cases);
    log_import_without_memory(trace_text("memory", "{\"sys_prompt_id\": 1, \"token_length\": 12}\n"
                                                   RAG(0, 40, "1", "2,3", "4")
                                                   RAG(5, 40, "1", "3,2", "4")), NULL);
    log_import_without_memory(trace_text("memory", RAG(0, 40, "1", "2,3", "4")), NULL);
}

static void case_c44_ragpulse(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    const char *path = SHARED_CASES "c44-string-ts-object-ids.ragpulse.jsonl";
    log_need(path);
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_int_equal(r.accepted, 3);
    assert_int_equal(r.blank, 1);
    assert_int_equal(r.inversions, 1);
    assert_int_equal(t->arrival_ns[0], 0);
    assert_int_equal(t->arrival_ns[1], 11000000000u);
    assert_int_equal(t->arrival_ns[2], 12000000000u);
    kvc_trace_stats(t, &s);
    assert_int_equal(s.sessions, 2);
    assert_false(s.has_prefix);
    kvc_trace_destroy(t);
    t = trace_import(path, 150, &r);
    assert_int_equal(log_common(t, 0, 2), 1); /* 55 81 is not 81 55 */
    assert_int_equal(log_common(t, 0, 1), 1); /* nor is history behind other passages the same */
    kvc_trace_destroy(t);
}

/* ---- Tair ---- */

#define LOOKUP(time, keys, mask)                                                                   \
    "{\"source\":\"s\",\"component\":\"cache_manager\",\"type\":\"GetCacheLocation\","             \
    "\"trigger_time_us\":" #time ",\"query_type\":\"prefix_match\",\"keys\":[" keys                \
    "],\"tokens\":[],\"block_mask\":" mask "}\n"
#define WRITE(time, session, keys)                                                                 \
    "{\"source\":\"s\",\"component\":\"cache_manager\",\"type\":\"StartWriteCache\","              \
    "\"trigger_time_us\":" #time ",\"write_session_id\":\"" session "\",\"keys\":[" keys "]}\n"
#define FINISH(time, session, n)                                                                   \
    "{\"source\":\"s\",\"component\":\"cache_manager\",\"type\":\"FinishWriteCache\","             \
    "\"trigger_time_us\":" #time ",\"write_session_id\":\"" session "\",\"success_block\":" #n "}\n"

static void tair_lookups_are_requests_of_keys(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = trace_text(
        "events", LOOKUP(1000, "-9223372036854775808,9007199254740993,3", "1")
                  WRITE(1500, "w", "-9223372036854775808,9007199254740993")
                  FINISH(1700, "w", 2) FINISH(1800, "x", 1)
                  LOOKUP(2000, "-9223372036854775808,9007199254740993,4", "[true,true,false]")
                  LOOKUP(3000, "-9223372036854775808,9007199254740992", "[]"));
    struct kvc_trace *t = trace_import(path, 0, &r);
    assert_int_equal(r.accepted, 3);
    assert_int_equal(t->block_tokens, 1);
    assert_int_equal(t->input_tokens[0], 3);
    assert_int_equal(t->arrival_ns[1], 1000000);
    assert_int_equal(log_common(t, 0, 1), 2);
    assert_int_equal(log_common(t, 0, 2), 1); /* 2^53 and 2^53 + 1 are two keys */
    assert_true(log_note(&r, "each block counts as one token"));
    assert_true(log_note(&r, "3 of 8 keys looked up"));
    assert_true(log_note(&r, "1 writes started (2 keys), 2 finished (3 blocks"));
    assert_int_equal(log_tally(&r, "whose start is not in the log"), 1);
    assert_int_equal(r.cached_rows, 2);
    assert_int_equal(r.cached_tokens, 3);
    kvc_trace_destroy(t);
    t = trace_import(path, 32, &r);
    assert_int_equal(t->block_tokens, 32);
    assert_int_equal(t->input_tokens[0], 96);
    assert_int_equal(r.cached_tokens, 96);
    assert_false(log_note(&r, "one token"));
    kvc_trace_destroy(t);
    log_import_without_memory(path, NULL);
}

static void tair_optimizer_rows_have_lengths(void **state)
{
    (void)state;
    struct kvc_import_report r;
#define TURN(instance, time, in, out, keys, total)                                                 \
    "{\"instance_id\":\"" instance "\",\"trace_id\":\"t\"," time ",\"tokens\":[],\"keys\":["       \
    keys "],\"query_type\":\"prefix_match\",\"block_mask\":[],\"input_len\":" #in                  \
    ",\"output_len\":" #out ",\"total_keys\":[" total "]}\n"
    struct kvc_trace *t = trace_import(
        trace_text("opt", TURN("a", "\"timestamp_us\":5", 40, 30, "1,2", "1,2,3,4")
                          TURN("b", "\"timestamp_us\":6", 40, 30, "1,2", "1,2")
                          TURN("a", "\"timestamp_ns\":8000", 64, 0, "1,2,3,7", "")
                          "{\"type\":\"write\",\"instance_id\":\"a\",\"timestamp_us\":9,"
                          "\"keys\":[1]}\n"),
        0, &r);
    assert_int_equal(r.accepted, 3);
    assert_int_equal(t->block_tokens, 16);
    assert_int_equal(t->arrival_ns[2], 3000);
    assert_int_equal(log_common(t, 0, 1), 0); /* another instance's keys */
    assert_int_equal(log_common(t, 0, 2), 2);
    assert_int_equal(log_output_blocks(t, 0), 4);
    assert_int_equal(log_output_blocks(t, 1), 0);
    assert_int_equal(content(t).hit_blocks, 2);
    assert_int_equal(log_tally(&r, "write events"), 1);
    kvc_trace_destroy(t);
    static const char *const raw[] = {
        "{\"timestamp\":\"2024-01-01 10:00:00.0\",\"dialog\":{\"messages\":[]}}\n",
        "{\"time\":\"2024-01-01 12:00:00.0\",\"text\":\"x\"}\n",
        "{\"ts_str\":\"2024-01-01 12:00:00.0\",\"timestamp\":1.0,\"token_ids\":[1]}\n",
    };
    for (size_t i = 0; i < 3; i++)
        assert_non_null(strstr(trace_import_error(trace_text("raw", raw[i]), NULL),
                               "Tair's anonymiser"));
}

static void tair_rows_are_checked(void **state)
{
    (void)state;
    static const struct wrong cases[] = {
        { "{\"type\":\"GetCacheLocation\",\"trigger_time_us\":-1,\"keys\":[1]}", "trigger_time_us",
          "-1" },
        { "{\"type\":\"GetCacheLocation\",\"trigger_time_us\":1,\"keys\":[]}", "keys", "0 keys" },
        { "{\"type\":\"GetCacheLocation\",\"trigger_time_us\":1,\"keys\":[\"1\"]}", "keys[0]",
          "text" },
        { "{\"type\":\"GetCacheLocation\",\"trigger_time_us\":1,\"keys\":[1],\"block_mask\":2}",
          "block_mask", "2 blocks held of 1" },
        { "{\"type\":\"StartWriteCache\",\"trigger_time_us\":1,\"keys\":[1]}", "write_session_id",
          "missing" },
        { "{\"instance_id\":\"a\",\"timestamp_us\":1,\"keys\":[1]}", "input_len", "missing" },
    };
    WRONG("{\"type\":\"GetCacheLocation\",\"component\":\"c\",\"trigger_time_us\":1,\"keys\":[1]}",
          cases);
}

static void tair_event_log(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    const char *path = SHARED_TRACES "tair-kvcache/event_publisher.log.zst";
    log_need(path);
    struct kvc_trace *t = trace_import(path, 0, &r);
    kvc_trace_stats(t, &s);
    assert_int_equal(r.rows, 300);
    assert_int_equal(r.accepted, 102);
    assert_int_equal(log_tally(&r, "StartWriteCache"), 102);
    assert_int_equal(log_tally(&r, "FinishWriteCache"), 96);
    assert_int_equal(s.block_touches, 4246);
    assert_int_equal(s.blocks, 980);
    assert_int_equal(s.span_ns / 1000000000, 1168);
    assert_true(log_note(&r, "3265 of 4246 keys looked up (0.769)"));
    struct kvc_hits h = content(t);
    assert_true(h.hit_blocks >= 3265 && h.hit_blocks <= 3267); /* as writes, all but one */
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unchained_ids_become_prefixes),
        cmocka_unit_test(sessions_are_chat_trees),
        cmocka_unit_test(sessions_go_on_in_the_next_file),
        cmocka_unit_test(bailian_rows_are_checked),
        cmocka_unit_test(case_c09_thinking_stripped),
        cmocka_unit_test(case_c11_whole_seconds),
        cmocka_unit_test(dynamo_hashes_are_exact),
        cmocka_unit_test(dynamo_durations_are_exact),
        cmocka_unit_test(dynamo_tells_turns_and_caches),
        cmocka_unit_test(dynamo_rows_are_checked),
        cmocka_unit_test(pieces_without_lengths_are_not_tokens),
        cmocka_unit_test(pieces_with_lengths_are_cut_exactly),
        cmocka_unit_test(ragpulse_rows_are_checked),
        cmocka_unit_test(case_c44_ragpulse),
        cmocka_unit_test(tair_lookups_are_requests_of_keys),
        cmocka_unit_test(tair_optimizer_rows_have_lengths),
        cmocka_unit_test(tair_rows_are_checked),
        cmocka_unit_test(tair_event_log),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
