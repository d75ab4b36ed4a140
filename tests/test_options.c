/* SPDX-License-Identifier: Apache-2.0
 * Options: settings that make no sense are refused, and of a caller that was built with an older
 * release nothing is read that its struct did not have yet. */
#include "tests/trace_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void wrong_traffic_is_refused(void **state)
{
    (void)state;
    struct kvc_gen_config good, c;
    kvc_gen_defaults(&good, "agent");
    size_t before = trace_folder_count();
#define REFUSED(change)                                                                            \
    c = good;                                                                                      \
    change;                                                                                        \
    assert_int_not_equal(kvc_gen_write(&c, trace_path("no"), NULL), KVC_OK)
    REFUSED(c.kind = "chat");
    REFUSED(c.kind = NULL);
    REFUSED(c.turns = 0);
    REFUSED(c.turns = 100000);
    REFUSED(c.block_tokens = 0);
    REFUSED(c.sessions_per_s = 0);
    REFUSED(c.sessions_per_s = (double)NAN);
    REFUSED(c.sessions_per_s = -1);
    REFUSED(c.duration_ns = 0);
    REFUSED(c.duration_ns = UINT64_MAX);
    REFUSED(c.context_tokens = UINT32_MAX);
    REFUSED(c.burstiness = 0);
    REFUSED(c.burstiness = (double)NAN);
    REFUSED(c.diurnal = 1.1);
    REFUSED((c.diurnal = 0.5, c.day_ns = 5));
    REFUSED(c.length_cv = -1);
    REFUSED(c.length_cv = 4);
    REFUSED(c.zipf = -0.1);
    REFUSED(c.tool_calls = -1);
    REFUSED(c.models = "a=0");
    REFUSED(c.models = "=1");
    REFUSED(c.models = "a=b");
    REFUSED(c.models = "a\"b");
    REFUSED(c.models = ",");
    assert_int_equal(trace_folder_count(), before);
}

static const char log_text[] =
    "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 2, \"hash_ids\": [0, 1]}\n"
    "{\"timestamp\": 9, \"input_length\": 1024, \"output_length\": 2, \"hash_ids\": [0, 2]}\n";

/* where is newer than what the size covers. */
static void imports_take_an_older_struct(void **state)
{
    struct kvc_import_options o = { .struct_size = offsetof(struct kvc_import_options, where),
                                    .where = "nonsense" };
    struct kvc_trace *t = NULL;
    const char *path = trace_text("a.jsonl", log_text);
    (void)state;
    assert_int_equal(kvc_trace_import(&t, &path, 1, &o, NULL, NULL), KVC_OK);
    kvc_trace_destroy(t);
    assert_int_equal(kvc_trace_open(&t, path, &o, NULL, NULL), KVC_OK);
    kvc_trace_destroy(t);
    for (size_t i = 0; i < 2; i++) { /* 0: as large as the library's */
        o.struct_size = i ? sizeof(o) : 0;
        assert_int_equal(kvc_trace_import(&t, &path, 1, &o, NULL, NULL), KVC_ERR_USAGE);
        assert_int_equal(kvc_trace_open(&t, path, &o, NULL, NULL), KVC_ERR_USAGE);
    }
}

static void traffic_takes_an_older_struct(void **state)
{
    struct kvc_gen_config c;
    (void)state;
    kvc_gen_defaults(&c, "rag-chat");
    c.duration_ns = 60000000000u;
    c.models = "=";
    const char *path = trace_path("gen.jsonl");
    assert_int_equal(kvc_gen_write(&c, path, NULL), KVC_ERR_USAGE);
    c.struct_size = offsetof(struct kvc_gen_config, models);
    assert_int_equal(kvc_gen_write(&c, path, NULL), KVC_OK);
    c.struct_size = offsetof(struct kvc_gen_config, burstiness); /* the rest: the kind's defaults */
    assert_int_equal(kvc_gen_write(&c, path, NULL), KVC_OK);
    c.kind = NULL;
    assert_int_equal(kvc_gen_write(&c, path, NULL), KVC_ERR_USAGE);
}

static void runs_take_an_older_struct(void **state)
{
    struct kvc_trace *t = trace_import(trace_text("b.jsonl", log_text), 512, NULL);
    struct kvc_closeup_options look = {
        .struct_size = offsetof(struct kvc_closeup_options, isolate), .by = "session",
        .isolate = "nonsense",
    };
    struct kvc_replay_options run = { .struct_size = offsetof(struct kvc_replay_options, profile),
                                      .skip_bounds = true, .profile = "nonsense" };
    struct kvc_closeup *closeup = NULL;
    struct kvc_scenario *sc = NULL;
    struct kvc_result *result = NULL;
    (void)state;
    assert_int_equal(kvc_closeup_create(&closeup, t, &look, NULL), KVC_OK);
    kvc_closeup_destroy(closeup);
    look.struct_size = sizeof(look);
    assert_int_equal(kvc_closeup_create(&closeup, t, &look, NULL), KVC_ERR_USAGE);

    assert_int_equal(kvc_scenario_create(&sc, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "model", "llama-3.1-8b", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(sc, "gpu", "h100-sxm", NULL), KVC_OK);
    assert_int_equal(kvc_replay_run(&result, t, sc, &run, NULL), KVC_OK);
    kvc_result_destroy(result);
    run.struct_size = sizeof(run);
    assert_int_equal(kvc_replay_run(&result, t, sc, &run, NULL), KVC_ERR_INPUT);
    kvc_scenario_destroy(sc);
    kvc_trace_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_traffic_is_refused),
        cmocka_unit_test(imports_take_an_older_struct),
        cmocka_unit_test(traffic_takes_an_older_struct),
        cmocka_unit_test(runs_take_an_older_struct),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
