/* SPDX-License-Identifier: Apache-2.0
 * Importing kv-cache-tester sessions: values, key spaces, sub-agents and starts of hand-made ones,
 * archives whole and damaged, and what is wrong in a session told with its place. */
#include "tests/trace_files.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "{\"id\":\"s\",\"block_size\":64,\"hash_id_scope\":\"local\",\"requests\":["
#define TAIL "]}"
#define S ((uint64_t)1000000000)

static const char *row(const char *t, const char *model, unsigned in, const char *ids)
{
    static char texts[8][300];
    static unsigned next;
    char *text = texts[next++ % 8];
    snprintf(text, sizeof(texts[0]),
             "{\"t\":%s,\"type\":\"n\",\"model\":\"%s\",\"in\":%u,\"out\":7,\"hash_ids\":[%s],"
             "\"api_time\":1.5,\"stop\":\"end\"}", t, model, in, ids);
    return text;
}

static const char *joined(const char *first, ...)
{
    static char texts[8][4000];
    static unsigned next;
    char *text = texts[next++ % 8];
    va_list args;
    snprintf(text, sizeof(texts[0]), "%s", first);
    va_start(args, first);
    for (const char *more; (more = va_arg(args, const char *));)
        strncat(text, more, sizeof(texts[0]) - strlen(text) - 1);
    va_end(args);
    return text;
}

static struct kvc_trace *import_all(const char *const *paths, size_t n, bool merge_models,
                                    struct kvc_import_report *report)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .merge_models = merge_models,
                                    .strict = true };
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    char text[900];
    if (kvc_trace_import(&t, paths, n, &o, report, &err) != KVC_OK) {
        kvc_error_format(&err, text, sizeof(text));
        fail_msg("import: %s", text);
    }
    return t;
}

static uint64_t hits(const struct kvc_trace *t)
{
    struct kvc_hits h;
    assert_int_equal(kvc_ceiling_content(t, &h, NULL), KVC_OK);
    return h.raw_hit_blocks;
}

/* ---- values ---- */

static void values_keep(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = trace_text("one.json", joined(HEAD,
        "{\"think_time\":0,\"hash_ids\":[1,2],\"out\":0,\"in\":150,\"model\":null,\"t\":0.001},\n",
        "{\"t\":1.0000000005e1, \"type\":\"s\", \"model\":\"m\\u0061\", \"in\":200, \"out\":5,\n"
        "  \"hash_ids\":[\n 1,\n 2 ,\r\n\t3 ], \"think_time\":2.25, \"x\":{\"y\":[1,{}],\"z\":[]}}",
        TAIL "\n", NULL));
    struct kvc_trace *t = import_all(&path, 1, false, &r);
    assert_int_equal(t->n_requests, 2);
    assert_int_equal(r.rows, 2);
    assert_int_equal(r.floor_rows, 2);
    assert_int_equal(r.zero_output, 1);
    assert_int_equal(t->block_tokens, 64);
    assert_int_equal(t->arrival_ns[1], 10 * S + 5 - S / 1000);
    assert_int_equal(t->input_tokens[0], 150);
    assert_int_equal(t->output_tokens[1], 5);
    assert_int_equal(t->think_ns[0], 0);
    assert_int_equal(t->think_ns[1], 9 * S / 4);
    assert_int_equal(t->n_models, 1);
    assert_string_equal(t->model_names[0], "ma");
    assert_int_equal(t->model[0], KVC_ID_NONE);
    assert_int_equal(kvc_trace_blocks(t, 1), 3);
    assert_int_equal(hits(t), 0); /* of another model */
    kvc_trace_destroy(t);
}

static void a_model_is_part_of_the_key(void **state)
{
    (void)state;
    const char *path = trace_text("models.json", joined(HEAD, row("0", "a", 192, "1,2,3"), ",",
        row("1", "b", 192, "1,2,3"), ",", row("2", "a", 192, "1,2,4"), TAIL, NULL));
    struct kvc_trace *t = import_all(&path, 1, false, NULL);
    assert_int_equal(hits(t), 2);
    kvc_trace_destroy(t);
    t = import_all(&path, 1, true, NULL);
    assert_int_equal(hits(t), 3 + 2);
    kvc_trace_destroy(t);
}

/* Equal numbers in two sessions are different blocks, unless the sessions say otherwise. */
static void ids_are_a_sessions_own(void **state)
{
    (void)state;
    const char *body = joined(row("0", "a", 192, "1,2,3"), ",", row("1", "a", 192, "1,2,3"), TAIL,
                              NULL);
    const char *local[] = { trace_text("l0.json", joined(HEAD, body, NULL)),
                            trace_text("l1.json", joined(HEAD, body, NULL)) };
    struct kvc_trace *t = import_all(local, 2, false, NULL);
    assert_int_equal(hits(t), 6);
    assert_int_equal(t->n_sessions, 2);
    kvc_trace_destroy(t);
    const char *global_head = "{\"block_size\":64,\"hash_id_scope\":\"global\",\"requests\":[";
    const char *global[] = { trace_text("g0.json", joined(global_head, body, NULL)),
                             trace_text("g1.json", joined(global_head, body, NULL)) };
    t = import_all(global, 2, false, NULL);
    assert_int_equal(hits(t), 9);
    kvc_trace_destroy(t);
    /* twice the same file: two sessions */
    const char *twice[] = { local[0], local[0] };
    t = import_all(twice, 2, false, NULL);
    assert_int_equal(hits(t), 6);
    kvc_trace_destroy(t);
}

/* The second by name starts a minute after the first, in whatever order they are given. */
static void sessions_start_a_minute_apart_by_name(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *paths[] = {
        trace_text("b.json", joined(HEAD, row("0", "m", 64, "1"), TAIL, NULL)),
        trace_text("c.json", joined(HEAD, row("3.5", "m", 65, "1"), TAIL, NULL)),
        trace_text("a.json", joined(HEAD, row("0", "m", 66, "1"), ",", row("90", "m", 67, "1"),
                                    TAIL, NULL)),
    };
    struct kvc_trace *t = import_all(paths, 3, false, &r);
    static const unsigned tokens[] = { 66, 64, 67, 65 };
    const uint64_t at[] = { 0, 60 * S, 90 * S, 123 * S + S / 2 };
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(t->input_tokens[i], tokens[i]);
        assert_int_equal(t->arrival_ns[i], at[i]);
    }
    bool said = false;
    for (uint32_t i = 0; i < r.n_notes; i++)
        said |= strstr(r.notes[i], "starts at k x 60 s") != NULL;
    assert_true(said);
    kvc_trace_destroy(t);
}

/* t counts from the entry, ids are those of the session, turns are not the parent's. */
static void sub_agents_start_at_their_entry(void **state)
{
    (void)state;
    const char *inner = joined("\"requests\":[", row("0.0", "h", 128, "1,9"), ",{\"t\":1,\"type\":"
        "\"subagent\",\"requests\":[", row("0.25", "h", 128, "1,9"), "]}],", NULL);
    /* the list comes before its t, and before what tells how to read it */
    const char *path = trace_text("agent.json", joined("{\"requests\":[", row("0", "m", 64, "1"),
        ",{\"type\":\"subagent\",", inner, "\"agent_id\":\"x\",\"t\":100.5,\"models\":[\"h\"]},",
        row("101", "h", 128, "1,8"), "],\"hash_id_scope\":\"local\",\"block_size\":64}", NULL));
    struct kvc_trace *t = import_all(&path, 1, false, NULL);
    const uint64_t at[] = { 0, 100 * S + S / 2, 101 * S, 101 * S + 3 * S / 4 };
    assert_int_equal(t->n_requests, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(t->arrival_ns[i], at[i]);
    assert_int_equal(t->session[0], t->session[2]);
    assert_int_not_equal(t->session[0], t->session[1]);
    assert_int_equal(t->n_sessions, 3);
    assert_int_equal(hits(t), 0 + 0 + 1 + 2);
    kvc_trace_destroy(t);
}

static void a_stated_block_size_holds(void **state)
{
    (void)state;
    const char *head = "{\"block_size\":16,\"hash_id_scope\":\"local\",\"requests\":[";
    const char *paths[] = {
        trace_text("b16.json", joined(head, row("0", "m", 40, "1,2"), TAIL, NULL)),
        trace_text("b64.json", joined(HEAD, row("0", "m", 64, "1"), TAIL, NULL)),
    };
    struct kvc_trace *t = import_all(paths, 1, false, NULL), *none = NULL;
    struct kvc_error err;
    assert_int_equal(t->block_tokens, 16);
    kvc_trace_destroy(t);
    assert_int_equal(kvc_trace_import(&none, paths, 2, NULL, NULL, &err), KVC_ERR_INPUT);
    assert_string_equal(err.field, "block_size");
    assert_non_null(strstr(err.file, "b64.json"));
}

/* ---- what is wrong ---- */

static void wrong_rows_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "{\"t\":-1,\"in\":1,\"out\":1}", "2:requests[1].t: -1 is wrong" },
        { "{\"t\":\"x\",\"in\":1,\"out\":1}", "requests[1].t: \"x\" is wrong" },
        { "{\"t\":1e10,\"in\":1,\"out\":1}", "requests[1].t: 1e10 is wrong" },
        { "{\"in\":1,\"out\":1}", "requests[1].t: missing" },
        { "{\"t\":1,\"out\":1}", "requests[1].in: missing" },
        { "{\"t\":1,\"in\":1}", "requests[1].out: missing" },
        { "{\"t\":1,\"in\":0,\"out\":1}", "requests[1].in: 0 is wrong" },
        { "{\"t\":1,\"in\":1.5,\"out\":1}", "requests[1].in: 1.5 is wrong" },
        { "{\"t\":1,\"in\":99999999999999999999,\"out\":1}", "requests[1].in: 9999" },
        { "{\"t\":1,\"in\":1,\"out\":-2}", "requests[1].out: -2 is wrong" },
        { "{\"t\":1,\"in\":64,\"out\":1,\"hash_ids\":\"1\"}", "requests[1].hash_ids: \"1\"" },
        { "{\"t\":1,\"in\":64,\"out\":1,\"hash_ids\":[-1]}", "requests[1].hash_ids[0]: -1" },
        { "{\"t\":1,\"in\":128,\"out\":1,\"hash_ids\":[1,\"2\"]}", "requests[1].hash_ids[1]" },
        { "{\"t\":1,\"in\":64,\"out\":1,\"hash_ids\":[18446744073709551616]}", "hash_ids[0]" },
        { "{\"t\":1,\"in\":64,\"out\":1,\"hash_ids\":[[1]]}", "requests[1].hash_ids[0]: a list" },
        { "{\"t\":1,\"in\":1,\"out\":1,\"model\":3}", "requests[1].model: 3 is wrong" },
        { "{\"t\":1,\"in\":1,\"out\":1,\"type\":3}", "requests[1].type: 3 is wrong" },
        { "{\"t\":1,\"in\":1,\"out\":1,\"think_time\":-0.5}", "requests[1].think_time: -0.5" },
        { "{\"t\":1,\"t\":1,\"in\":1,\"out\":1}", "requests[1].t: given twice" },
        { "{\"t\":1,\"type\":\"subagent\"}", "requests[1].requests: missing" },
        { "{\"t\":1,\"type\":\"subagent\",\"requests\":{}}", "requests[1].requests: an object" },
        { "{\"t\":1,\"requests\":[{\"t\":0,\"in\":0,\"out\":1}]}", "requests[1].requests[0].in" },
        { "{\"t\":1,\"in\":64,\"out\":1,\"hash_ids\":[1,2,3]}", "requests[1].hash_ids: 3 ids" },
        { "17", "2:requests[1]: 17 is wrong: an object" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kvc_import_report r;
        char text[900];
        const char *path = trace_text("wrong.json", joined(HEAD, row("0", "m", 64, "1"), ",\n",
            cases[i].text, ",\n", row("5", "m", 64, "1"), ",", row("6", "m", 64, "1"), TAIL, NULL));
        struct kvc_trace *t = trace_import(path, 0, &r);
        assert_int_equal(t->n_requests, 3);
        assert_int_equal(r.bad, 1);
        assert_int_equal(r.rows, 4);
        assert_int_equal(hits(t), 2);
        kvc_error_format(&r.shown[0], text, sizeof(text));
        if (!strstr(text, cases[i].says) || !strstr(text, "wrong.json:"))
            fail_msg("%s: %s", cases[i].text, text);
        kvc_trace_destroy(t);
    }
}

static void ids_may_repeat(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const char *path = trace_text("twice.json", joined(HEAD, row("0", "m", 256, "1,2,1,2"), TAIL,
                                                       NULL));
    struct kvc_trace *t = import_all(&path, 1, false, &r);
    assert_int_equal(r.repeated_ids, 1);
    assert_int_equal(kvc_trace_blocks(t, 0), 4);
    kvc_trace_destroy(t);
}

static void broken_json_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "[]", "one JSON object" },
        { HEAD "{\"t\":1", "cut short" },
        { HEAD "{\"t\":1,\"in\":1,\"out\":1,\"hash_ids\":[1,2", "cut short" },
        { HEAD "{\"t\":1,\"model\":\"abc", "" },
        { HEAD TAIL "x", "behind the session" },
        { HEAD "1,]}", "comma" },
        { HEAD "{\"t\":1,}" TAIL, "name in quotes" },
        { HEAD "{\"t\" 1}" TAIL, "colon" },
        { HEAD "{\"t\":tru}" TAIL, "not JSON" },
        { HEAD "{\"t\":1 \"in\":2}" TAIL, "comma" },
        { "{\"block_size\":64,\"block_size\":64,\"requests\":[]}", "twice" },
        { "{\"block_size\":0,\"requests\":[]}", "block_size: 0 is wrong" },
        { "{\"block_size\":64,\"hash_id_scope\":1,\"requests\":[]}", "hash_id_scope: 1 is wrong" },
        { "{\"block_size\":64,\"requests\":3}", "requests: 3 is wrong" },
        { "{\"block_size\":64}", "requests: missing" },
        { HEAD TAIL, "no request in it" },
    };
    struct kvc_import_options o = { .struct_size = sizeof(o), .format = "kv-cache-tester" };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = trace_import_error(trace_text("broken.json", cases[i][0]), &o);
        if (!strstr(text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], text);
    }
    char *deep = calloc(1, 20001);
    memset(deep, '[', 20000);
    const char *half = trace_text("deep.json", joined(HEAD, "{\"x\":", NULL));
    assert_non_null(strstr(trace_import_error(half, &o), "cut short"));
    memcpy(deep, "{\"x\":", 5);
    assert_non_null(strstr(trace_import_error(trace_text("deep.json", deep), &o), "deeply"));
    free(deep);
}

/* Every beginning of a session is refused, or (from its last bracket on) taken. */
static void no_cut_goes_unnoticed(void **state)
{
    (void)state;
    struct kvc_import_options o = { .struct_size = sizeof(o), .format = "kv-cache-tester" };
    const char *whole = joined(HEAD, row("0", "m\\n", 192, "1,2,3"), ",{\"t\":1,\"requests\":[",
        row("1.5", "m", 64, "1"), "]}", "],\"totals\":{\"a\":[true,null]}}", NULL);
    for (size_t n = 1; n < strlen(whole); n++)
        trace_import_error(trace_file("cut.json", whole, n), &o);
}

/* ---- archives ---- */

struct tar {
    char bytes[32768];
    size_t n;
};

static void tar_block(struct tar *tar, const char *name, const char *prefix, char type, size_t size)
{
    char *h = tar->bytes + tar->n;
    unsigned sum = 0;
    snprintf(h, 100, "%s", name);
    snprintf(h + 124, 12, "%011o", (unsigned)size);
    memset(h + 148, ' ', 8);
    h[156] = type;
    memcpy(h + 257, "ustar\0" "00", 8);
    snprintf(h + 345, 155, "%s", prefix);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    tar->n += 512;
}

static void tar_add(struct tar *tar, const char *name, const char *prefix, char type,
                    const char *text)
{
    tar_block(tar, name, prefix, type, strlen(text));
    memcpy(tar->bytes + tar->n, text, strlen(text));
    tar->n += (strlen(text) + 511) / 512 * 512;
}

static struct tar *sample_tar(void)
{
    struct tar *tar = calloc(1, sizeof(*tar));
    tar_add(tar, "traces/", "", '5', "");
    tar_add(tar, "README", "traces", '0', "not a session");
    tar_add(tar, "._b.json", "traces", '0', "rubbish");
    tar_add(tar, "b.json", "traces", '0', joined(HEAD, row("0", "m", 64, "1"), TAIL, NULL));
    tar_add(tar, "link.json", "traces", '2', "");
    tar_add(tar, "PaxHeader", "", 'x', "22 path=traces/a.json\n17 mtime=1.23456\n");
    tar_add(tar, "short", "", '0', joined(HEAD, row("0", "m", 65, "1"), ",", row("1", "m", 66, "1"),
                                          TAIL, NULL));
    tar_add(tar, "././@LongLink", "", 'L', "traces/c.json");
    tar_add(tar, "short", "", '0', joined(HEAD, row("0", "m", 67, "1"), TAIL, NULL));
    tar->n += 1024;
    return tar;
}

static void members_of_an_archive_are_sessions(void **state)
{
    (void)state;
    struct tar *tar = sample_tar();
    const char *path = trace_file("s.tar", tar->bytes, tar->n);
    struct kvc_trace *t = import_all(&path, 1, false, NULL);
    static const unsigned tokens[] = { 65, 66, 64, 67 };
    const uint64_t at[] = { 0, S, 60 * S, 120 * S };
    assert_int_equal(t->n_requests, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(t->input_tokens[i], tokens[i]);
        assert_int_equal(t->arrival_ns[i], at[i]);
    }
    assert_int_equal(hits(t), 1);
    kvc_trace_destroy(t);
    free(tar);
}

static void damaged_archives_are_refused(void **state)
{
    (void)state;
    struct tar *tar = sample_tar();
    struct kvc_import_options o = { .struct_size = sizeof(o), .format = "kv-cache-tester" };
    for (size_t n = 512; n <= tar->n - 1024; n += 128)
        assert_non_null(strstr(trace_import_error(trace_file("cut.tar", tar->bytes, n), &o),
                               "the tar archive is cut short at byte"));
    tar->bytes[512 + 3] ^= 1;
    assert_non_null(strstr(trace_import_error(trace_file("bad.tar", tar->bytes, tar->n), &o),
                           "damaged header at byte 1024"));
    free(tar);
}

static void errors_name_the_member(void **state)
{
    (void)state;
    struct tar *tar = calloc(1, sizeof(*tar));
    struct kvc_import_options o = { .struct_size = sizeof(o), .strict = true };
    tar_add(tar, "x.json", "d", '0', joined(HEAD, row("0", "m", 64, "1"), TAIL, NULL));
    tar_add(tar, "y.json", "d", '0', joined(HEAD, "{\"t\":true}", TAIL, NULL));
    tar->n += 1024;
    assert_non_null(strstr(trace_import_error(trace_file("m.tar", tar->bytes, tar->n), &o),
                           "m.tar:d/y.json:1:requests[0].t: true or false is wrong"));
    free(tar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_keep),
        cmocka_unit_test(a_model_is_part_of_the_key),
        cmocka_unit_test(ids_are_a_sessions_own),
        cmocka_unit_test(sessions_start_a_minute_apart_by_name),
        cmocka_unit_test(sub_agents_start_at_their_entry),
        cmocka_unit_test(a_stated_block_size_holds),
        cmocka_unit_test(wrong_rows_are_named),
        cmocka_unit_test(ids_may_repeat),
        cmocka_unit_test(broken_json_is_refused),
        cmocka_unit_test(no_cut_goes_unnoticed),
        cmocka_unit_test(members_of_an_archive_are_sessions),
        cmocka_unit_test(damaged_archives_are_refused),
        cmocka_unit_test(errors_name_the_member),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
