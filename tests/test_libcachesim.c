/* SPDX-License-Identifier: Apache-2.0
 * libCacheSim's traces: what is read, what is unknown, what is refused, and hits counted by a
 * list of objects against those of the exported and imported trace. */
#include "base/rng.h"
#include "tests/log_checks.h"
#include "tests/trace_files.h"
#include "traces/formats/oraclegeneral.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct kvc_trace *read_csv(const char *path, const char *format, const char *columns,
                                  struct kvc_import_report *r)
{
    struct kvc_import_options o = { .struct_size = sizeof(o), .format = format,
                                    .csv_columns = columns };
    struct kvc_trace *t = NULL;
    struct kvc_error err = { 0 };
    if (kvc_trace_import(&t, &path, 1, &o, r, &err) != KVC_OK)
        fail_msg("%s:%llu:%s: %s", err.file, (unsigned long long)err.line, err.field, err.text);
    struct kvc_trace_stats s;
    kvc_trace_stats(t, &s);
    assert_false(s.has_tokens);
    assert_true(s.has_prefix);
    return t;
}

/* Case c41: ids that are words and numbers of base 16, one object of two sizes. */
static void shared_case_of_string_ids(void **state)
{
    (void)state;
    const char *path = "../shared/cases/inputs/c41-nonnumeric-ids.libcachesim.csv";
    if (access(path, R_OK)) {
        print_message("no %s\n", path);
        skip();
    }
    struct kvc_import_report r;
    struct kvc_trace *t = read_csv(path, NULL, NULL, &r);
    assert_int_equal(t->n_requests, 8);
    assert_int_equal(t->n_segments, 6); /* A B C D F 0x1F */
    assert_int_equal(t->prompt_seg[0], t->prompt_seg[4]);
    assert_int_equal(t->prompt_seg[0], t->prompt_seg[6]);
    assert_int_equal(t->arrival_ns[7], 956000000); /* ms, says the header */
    assert_int_equal(r.n_tallies, 1);
    assert_string_equal(r.tallies[0].text, "the object has another size than before");
    assert_int_equal(r.tallies[0].rows, 1);
    assert_true(log_note(&r, "sizes from 31 to 104330 bytes are not used"));
    struct kvc_hits h;
    uint64_t capacity = 2; /* A B C D A F A X: by hand */
    assert_int_equal(kvc_ceiling_policy(t, "lru", &capacity, 1, &h, NULL), KVC_OK);
    assert_int_equal(h.hit_blocks, 1);
    assert_int_equal(kvc_ceiling_policy(t, "opt", &capacity, 1, &h, NULL), KVC_OK);
    assert_int_equal(h.hit_blocks, 2);
    kvc_trace_destroy(t);
}

static void columns_by_number_and_by_name(void **state)
{
    (void)state;
    struct kvc_import_report r;
    static const char bare[] = "5;x 1;10;get\n6;007;20;get\n8;7;20;get\n9;x 1;10;get\n";
    struct kvc_trace *t = read_csv(trace_text("bare.csv", bare), "libcachesim",
                                   "time-col=1,obj-id-col=2,obj-size-col=3,obj-id-is-num=0", &r);
    assert_int_equal(r.rows, 4);
    assert_int_equal(t->n_requests, 4);
    assert_int_equal(t->n_segments, 3); /* 007 is not 7 */
    assert_int_equal(t->arrival_ns[3], 4000000000);
    assert_true(log_note(&r, "taken as seconds"));
    kvc_trace_destroy(t);
    static const char named[] = "when,what,ttl\n1,a,0\n2,b,0\n";
    t = read_csv(trace_text("named.csv", named), "libcachesim", "id=what", &r);
    assert_int_equal(t->n_requests, 2);
    assert_true(log_note(&r, "one second apart"));
    kvc_trace_destroy(t);
    static const char usual[] = "timestamp(us),obj_id,obj_size\n1000,18446744073709551615,1\n"
                                "2000,\"a,b\",1\n3000,18446744073709551615,1\n";
    t = read_csv(trace_text("usual.csv", usual), NULL, NULL, &r);
    assert_int_equal(t->n_segments, 2);
    assert_int_equal(t->arrival_ns[2], 2000000);
    kvc_trace_destroy(t);
}

static void wrong_rows_and_columns_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *columns, *says;
    } bad[] = {
        { "1,a\n2,b\n", NULL, "--csv-columns time=1,id=2,size=3" },
        { "time,obj_id\nx,a\n", NULL, ":2:time:" },
        { "time,obj_id\n1,\n", NULL, ":2:obj_id: " },
        { "time,obj_id,obj_size\n1,a,big\n", NULL, ":2:obj_size: " },
        { "time,obj_id\n", NULL, "no request in it" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct kvc_import_options o = { .struct_size = sizeof(o), .format = "libcachesim",
                                        .csv_columns = bad[i].columns };
        const char *error = trace_import_error(trace_text("bad.csv", bad[i].text), &o);
        if (!strstr(error, bad[i].says))
            fail_msg("\"%s\" lacks \"%s\"", error, bad[i].says);
    }
    static const char *const specs[] = { "time=1", "id=3", "id=0", "id=99999999999999999999",
                                         "id", "colour=2", "id=nothing" };
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct kvc_import_options o = { .struct_size = sizeof(o), .format = "libcachesim",
                                        .csv_columns = specs[i] };
        const char *path = trace_text("bad.csv", "1,a\n2,b\n");
        struct kvc_trace *t = NULL;
        assert_int_not_equal(kvc_trace_import(&t, &path, 1, &o, NULL, NULL), KVC_OK);
    }
}

/* ---- oracleGeneral ---- */

static void put(unsigned char *p, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

struct ref {
    uint32_t s;
    uint64_t id;
    int64_t next;
};

static const char *records(const struct ref *refs, size_t n, size_t cut)
{
    static unsigned char bytes[24 * 4000];
    for (size_t i = 0; i < n; i++) {
        put(bytes + 24 * i, refs[i].s, 4);
        put(bytes + 24 * i + 4, refs[i].id, 8);
        put(bytes + 24 * i + 12, 4096, 4);
        put(bytes + 24 * i + 16, (uint64_t)refs[i].next, 8);
    }
    return trace_file("t.oracleGeneral", bytes, 24 * n - cut);
}

static void oracle_records_are_read(void **state)
{
    (void)state;
    struct kvc_import_report r;
    const struct ref refs[] = { { 7, 10, 3 }, { 7, UINT64_MAX, 4 }, { 8, 10, -1 },
                                { 9, UINT64_MAX, INT64_MAX }, { 9, 0, -1 } };
    struct kvc_trace *t = read_csv(records(refs, 5, 0), NULL, NULL, &r);
    assert_int_equal(t->n_requests, 5);
    assert_int_equal(r.rows, 5);
    assert_int_equal(t->n_segments, 3);
    assert_int_equal(t->arrival_ns[4], 2000000000);
    assert_false(log_note(&r, "contradicts"));
    kvc_trace_destroy(t);
    const struct ref from_0[] = { { 7, 10, 2 }, { 7, 11, 3 }, { 8, 10, -1 }, { 9, 11, 77 } };
    t = read_csv(records(from_0, 4, 0), NULL, NULL, &r); /* cut from a longer one, counted from 0 */
    assert_false(log_note(&r, "contradicts"));
    kvc_trace_destroy(t);
}

static void broken_promises_are_counted_and_refused(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct ref refs[] = { { 1, 5, 2 }, { 1, 5, 3 }, { 2, 5, 4 }, { 3, 5, 6 }, { 4, 5, -1 } };
    struct kvc_trace *t = read_csv(records(refs, 5, 0), NULL, NULL, &r);
    assert_true(log_note(&r, "contradicts the references 1 times of 4, first at record 5"));
    kvc_trace_destroy(t);
    struct kvc_import_options o = { .struct_size = sizeof(o), .strict = true };
    assert_non_null(strstr(trace_import_error(records(refs, 5, 0), &o), ":5:next_access_vtime: "));
    refs[1].next = refs[2].next = -1;
    assert_non_null(strstr(trace_import_error(records(refs, 5, 0), NULL), ":3:next_access_vtime: "
                           "the object's reference before said that it was the last"));
    struct ref never[] = { { 1, 5, 3 }, { 1, 6, 4 }, { 2, 5, -1 }, { 3, 7, -1 }, { 4, 8, -1 } };
    t = read_csv(records(never, 5, 0), NULL, NULL, &r);
    assert_true(log_note(&r, "1 times of 2, first at record 4"));
    kvc_trace_destroy(t);
    assert_non_null(strstr(trace_import_error(records(never, 5, 3), NULL), ":5: 21 bytes behind"));
    assert_false(kvc_oraclegeneral_sniff("{\"timestamp\": 0, \"input_length\": 1}", 35));
    unsigned char zero[48] = { 0 };
    assert_false(kvc_oraclegeneral_sniff((const char *)zero, sizeof(zero)));
}

/* ---- the same hits ---- */

static uint64_t lru_hits(const uint64_t *id, size_t n, size_t capacity)
{
    uint64_t list[64], hits = 0;
    size_t held = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < held && list[k] != id[i])
            k++;
        hits += k < held;
        if (k == held && held < capacity)
            held++;
        for (k = k < held ? k : held - 1; k > 0; k--)
            list[k] = list[k - 1];
        list[0] = id[i];
    }
    return hits;
}

static void hits_are_those_of_a_list(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "objects"), ids[300];
        struct ref refs[300];
        size_t n = 1 + (size_t)kvc_rng_below(&rng, 300);
        for (size_t i = 0; i < n; i++)
            ids[i] = kvc_mix64(kvc_rng_below(&rng, 1 + kvc_rng_below(&rng, 40)));
        for (size_t i = 0; i < n; i++) {
            size_t k = i + 1;
            while (k < n && ids[k] != ids[i])
                k++;
            refs[i] = (struct ref){ (uint32_t)i / 3, ids[i], k < n ? (int64_t)k + 1 : -1 };
        }
        struct kvc_import_report r;
        struct kvc_trace *t = read_csv(records(refs, n, 0), "oraclegeneral", NULL, &r);
        assert_false(log_note(&r, "contradicts"));
        for (uint64_t capacity = 1; capacity < 40; capacity += 3) {
            struct kvc_hits h;
            assert_int_equal(kvc_ceiling_policy(t, "lru", &capacity, 1, &h, NULL), KVC_OK);
            assert_int_equal(h.raw_hit_blocks, lru_hits(ids, n, (size_t)capacity));
        }
        /* Out again: the same file but for names of objects. */
        assert_int_equal(kvc_trace_export(t, trace_path("again"), "oraclegeneral", NULL, NULL),
                         KVC_OK);
        struct kvc_trace *u = read_csv(trace_path("again"), NULL, NULL, &r);
        assert_false(log_note(&r, "contradicts"));
        assert_string_equal(u->digest, t->digest);
        kvc_trace_destroy(u);
        kvc_trace_destroy(t);
    }
}

static void objects_are_not_replayed(void **state)
{
    (void)state;
    struct kvc_import_report r;
    struct kvc_scenario *s = NULL;
    struct kvc_result *result = NULL;
    struct kvc_error err = { 0 };
    struct kvc_trace *t = read_csv(trace_text("o.csv", "time,obj_id\n1,a\n2,a\n"), NULL, NULL, &r);
    assert_int_equal(kvc_scenario_create(&s, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(s, "model", "llama-3.1-8b", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(s, "cluster.gpu", "h100-sxm", NULL), KVC_OK);
    assert_int_equal(kvc_replay_run(&result, t, s, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "no prompts to serve"));
    kvc_scenario_destroy(s);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_case_of_string_ids),
        cmocka_unit_test(columns_by_number_and_by_name),
        cmocka_unit_test(wrong_rows_and_columns_are_refused),
        cmocka_unit_test(oracle_records_are_read),
        cmocka_unit_test(broken_promises_are_counted_and_refused),
        cmocka_unit_test(hits_are_those_of_a_list),
        cmocka_unit_test(objects_are_not_replayed),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
