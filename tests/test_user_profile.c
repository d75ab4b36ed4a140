/* SPDX-License-Identifier: Apache-2.0
 * A profile of measured figures: what is refused, what replaces what, and what a replay makes of
 * it: a load takes as long as the closed form says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "models/profiles.h"
#include "models/user_profile.h"
#include "sim/scenario/scenario.h"
#include "traces/forest/forest.h"

#define FIGURE(v) "{\"value\": " v ", \"kind\": \"measured\", \"source\": \"a test\"}"

static enum kvc_status parse(const char *text, struct kvc_user_profile **out,
                             struct kvc_error *err)
{
    return kvc_user_profile_parse(out, text, strlen(text), "p.json", err);
}

static const struct {
    const char *text, *field, *words;
} wrong[] = {
    {"{", "", ""},
    {"{}", "schema", "kvcast calibrate"},
    {"{\"schema\": \"kvcast.replay.v1\"}", "schema", "but kvcast.replay.v1"},
    {"{\"schema\": \"kvcast.kernels.v2\", \"gpu\": \"l40s\"}", "tables",
     "calibrate --kernels"},
    {"{\"schema\": \"kvcast.profile.v1\", \"gpus\": [{\"name\": \"l40s\", "
     "\"device\": 1}]}", "device", "in quotes"},
    {"{\"schema\": \"kvcast.profile.v1\", \"gpus\": [{\"name\": \"l40z\"}]}",
     "name", "did you mean"},
    {"{\"schema\": \"kvcast.profile.v1\", \"kernels\": {\"tables\": [{}]}}",
     "tables", "kernel table"},
    {"{\"schema\": \"kvcast.profile.v1\", \"kernels\": {\"tables\": [{\"family\": \"gemm\", "
     "\"key\": \"fp8\", \"kind\": \"measured\", \"source\": \"-\", "
     "\"constants\": [1, 1, 1], \"params\": [1, 1, 1, 0]}]}}", "gpu", "a GPU's"},
    {"{\"schema\": \"kvcast.profile.v1\", \"gpu\": \"h100\"}", "gpu", "'h100'"},
    {"{\"schema\": \"kvcast.profile.v1\", \"gpu\": 100}", "gpu", "in quotes"},
    {"{\"schema\": \"kvcast.profile.v1\", \"link\": []}", "link", "did you mean links"},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"gds\", \"latency_ns\": "
     "{\"value\": 1, \"kind\": \"guess\", \"source\": \"-\"}}]}", "latency_ns",
     "kind \"guess\""},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": 1}", "links", "a list"},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": [1]}", "name", "object"},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"pcie5x16\"}]}", "name",
     "did you mean pcie5-x16"},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"pcie5-x16\", \"speed\": "
     "1}]}",
     "speed", "no figure"},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"gds\", \"latency_ns\": 1}]}",
     "latency_ns", "value"},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"gds\", "
     "\"read_bytes_per_s\": " FIGURE("0") "}]}",
     "read_bytes_per_s", "between"},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"gds\", \"queue_depth\": "
     FIGURE("0.3") "}]}",
     "queue_depth", "0.3 is not between 1"},
    {"{\"schema\": \"kvcast.profile.v1\", \"gpu\": \"h20\", \"kernels\": {\"backend\": "
     "\"vlm\", \"tables\": []}}",
     "backend", "no such engine"},
    {"{\"schema\": \"kvcast.profile.v1\", \"engines\": [{\"backend\": \"vlm\"}]}", "backend",
     "did you mean vllm"},
    {"{\"schema\": \"kvcast.profile.v1\", \"engines\": [{\"backend\": \"vllm\", "
     "\"front_end_ns\": " FIGURE("-1") "}]}",
     "front_end_ns", "between"},
    {"{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"gds\"},\n"
     "{\"name\": \"pcie5-x16\"}, {\"name\": \"GDS\"}]}",
     "name", "'GDS' stands here a second time, after line 1"},
    {"{\"schema\": \"kvcast.profile.v1\", \"engines\": [{\"backend\": \"vllm\"}, "
     "{\"backend\": \"vllm\"}]}",
     "backend", "a second time"},
    {"{\"schema\": \"kvcast.profile.v1\", \"gpus\": [{\"name\": \"h20\"}, "
     "{\"name\": \"h20\", \"device\": \"X\"}]}",
     "name", "a second time"},
};

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct kvc_user_profile *p = NULL;
        struct kvc_error err = {0};
        assert_int_equal(parse(wrong[i].text, &p, &err), KVC_ERR_INPUT);
        assert_null(p);
        assert_string_equal(err.file, "p.json");
        assert_string_equal(err.field, wrong[i].field);
        if (!strstr(err.text, wrong[i].words))
            fail_msg("%s: %s", wrong[i].text, err.text);
    }
}

static void figures_replace_the_carried_ones_and_no_others(void **state)
{
    static const char text[] =
        "{\"schema\": \"kvcast.profile.v1\", // a note\n \"gpu\": \"h100-sxm\", \"links\": "
        "[{\"name\": \"PCIE5_X16\", \"latency_ns\": " FIGURE("8000") "}],"
        "\"engines\": [{\"backend\": \"vllm\", \"front_end_ns\": " FIGURE("3e6") "}]}";
    struct kvc_user_profile *p = NULL;
    struct kvc_link_profile l;
    struct kvc_engine_profile e;
    (void)state;
    assert_int_equal(parse(text, &p, NULL), KVC_OK);
    assert_string_equal(kvc_user_profile_gpu(p), "h100-sxm");
    assert_true(kvc_user_link(p, "pcie5_x16", &l));
    assert_true(l.latency_ns.value == 8000 && !strcmp(l.latency_ns.source, "a test"));
    assert_true(l.per_op_ns.value == kvc_link_find("pcie5-x16")->per_op_ns.value);
    assert_true(kvc_user_link(p, "gds", &l));
    assert_memory_equal(&l, kvc_link_find("gds"), sizeof l);
    assert_false(kvc_user_link(p, "none", &l));
    assert_true(kvc_user_engine(p, "vllm", &e));
    assert_true(e.front_end_ns.value == 3e6);
    assert_true(kvc_user_engine(p, "sglang", &e));
    assert_memory_equal(&e, kvc_engine_find("sglang"), sizeof e);
    assert_int_equal(strlen(kvc_user_profile_digest(p)), 16);
    kvc_user_profile_destroy(p);
}

/* Three prompts that share nothing, then the first again: HBM holds one of them. */
static struct kvc_trace *trace_of(uint64_t blocks)
{
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_trace *t = NULL;
    uint64_t ids[64];
    for (uint64_t i = 0; i < 4; i++) {
        for (uint64_t b = 0; b < blocks; b++)
            ids[b] = (i % 3 + 1) * 1000 + b;
        struct kvc_row row = {.time_ns = i * 100000000000u, .input_tokens = (uint32_t)blocks * 16,
                              .output_tokens = 1, .ids = ids, .n_ids = blocks,
                              .session = KVC_ID_NONE, .tenant = KVC_ID_NONE, .model = KVC_ID_NONE,
                              .think_ns = KVC_TIME_NONE};
        assert_int_equal(kvc_forest_add(f, &row, NULL), KVC_OK);
    }
    assert_int_equal(kvc_forest_finish(f, 16, false, &t, NULL), KVC_OK);
    return t;
}

static void set(struct kvc_scenario *s, const char *key, const char *value)
{
    struct kvc_error err = {0};
    if (kvc_scenario_set(s, key, value, &err) != KVC_OK)
        fail_msg("%s: %s", key, err.text);
}

/* What crosses both ways at once crosses the link they share: its bytes are theirs together. */
static void check_shared(const struct kvc_result *r)
{
    uint64_t to = 0, from = 0, both = 0;
    for (uint32_t i = 0; i < r->n_links; i++) {
        const char *name = r->links[i].name;
        if (strstr(name, "both ways"))
            both = r->links[i].bytes;
        else if (strstr(name, "GPU"))
            *(strstr(name, "from GPU") ? &from : &to) = r->links[i].bytes;
    }
    assert_true(both == 0 || (to > 0 && from > 0 && both == to + from));
}

/* STAGED: nvme, through host memory; SERVED: dram, with what the engine takes beside the copy. */
enum from { DRAM, NVME, STAGED, SERVED };

/* Load time of the last request in ns, and the bytes it loads. */
static double load_ns(const char *profile, enum from from, double *bytes)
{
    struct kvc_trace *t = trace_of(64);
    struct kvc_scenario *s = NULL;
    struct kvc_result *r = NULL;
    struct kvc_error err = {0};
    struct kvc_replay_options o = {.struct_size = sizeof o, .skip_bounds = true,
                                   .profile = profile};
    assert_int_equal(kvc_scenario_create(&s, NULL, NULL), KVC_OK);
    set(s, "model", "llama-3.1-8b");
    set(s, "gpu", "h100-sxm");
    set(s, from == NVME || from == STAGED ? "nvme" : "dram", "64GiB");
    if (from == STAGED)
        set(s, "tiers.nvme.staged", "true");
    if (from != SERVED) {
        set(s, "engine.kv_load_time", "0s");
        set(s, "engine.kv_load_token_time", "0s");
    }
    set(s, "engine.kv_cache_memory", "220MiB"); /* 109 pages: one prompt and a half */
    if (kvc_replay_run(&r, t, s, &o, &err) != KVC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(r->n_requests, 4);
    double ns = (double)r->requests[3].load_ns;
    uint32_t tokens = 0;
    for (size_t i = 1; i < KVC_MAX_TIERS; i++)
        tokens += r->requests[3].hit_tokens[i];
    *bytes = tokens * 131072.0;
    check_shared(r);
    kvc_result_destroy(r);
    kvc_scenario_destroy(s);
    kvc_trace_destroy(t);
    return ns;
}

static void loads_take_what_the_closed_form_says(void **state)
{
    static const char dram[] =
        "{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"pcie5-x16\", "
        "\"read_bytes_per_s\": " FIGURE("8e9") ", \"latency_ns\": " FIGURE(
            "30000") ", \"per_op_ns\": " FIGURE("5000") "}]}";
    static const char depth[] =
        "{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"pcie5-x16\", "
        "\"read_bytes_per_s\": " FIGURE("8e9") ", \"latency_ns\": " FIGURE(
            "2e6") ", \"per_op_ns\": " FIGURE("5000") ", \"queue_depth\": " FIGURE("4") "}]}";
    double bytes, page = 16 * 131072, ns = load_ns(NULL, DRAM, &bytes);
    const struct kvc_link_profile *l = kvc_link_find("pcie5-x16");
    (void)state;
    assert_true(bytes > 20 * page);
    double ops = bytes / page; /* the last one is read in part */
    assert_true(fabs(ns - (l->latency_ns.value + ops * l->per_op_ns.value +
                           bytes / l->read_bytes_per_s.value * 1e9)) <= 2);
    ns = load_ns(dram, DRAM, &bytes);
    assert_true(fabs(ns - (30000 + ops * 5000 + bytes / 8)) <= 2);
    /* four under way at once: so many rounds, each as long as one takes */
    ns = load_ns(depth, DRAM, &bytes);
    double busy = 5000 + page / 8, each = 2e6 + busy;
    assert_true(each / 4 > busy);
    assert_true(fabs(ns - ceil(ceil(ops) / 4) * each) <= 2);
}

static void a_load_costs_its_engine_time_beside_the_copy(void **state)
{
    const struct kvc_engine_profile *e = kvc_engine_find("vllm");
    double bytes, copy = load_ns(NULL, DRAM, &bytes), served = load_ns(NULL, SERVED, &bytes);
    (void)state;
    assert_true(e->kv_load_ns.value > 0);
    assert_true(served - copy ==
                e->kv_load_ns.value + bytes / 131072 * e->kv_load_token_ns.value);
}

static void a_staged_load_takes_one_link_after_the_other(void **state)
{
    const struct kvc_link_profile *drive = kvc_link_find("nvme-gen5-x4");
    const struct kvc_link_profile *host = kvc_link_find("pcie5-x16");
    double bytes, page = 16 * 131072, fixed = drive->latency_ns.value + host->latency_ns.value;
    double ns = load_ns(NULL, NVME, &bytes), own = bytes / drive->read_bytes_per_s.value * 1e9;
    (void)state;
    assert_true(fabs(ns - (fixed + own)) <= 2); /* the drive is the slower one */
    ns = load_ns(NULL, STAGED, &bytes);
    assert_true(fabs(ns - (fixed + own + bytes / host->read_bytes_per_s.value * 1e9 +
                           bytes / page * host->per_op_ns.value)) <= 3);
}

static void a_measured_operation_replaces_operations_a_second(void **state)
{
    static const char text[] =
        "{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"nvme-gen5-x4\", "
        "\"per_op_ns\": " FIGURE("90") "}, {\"name\": \"gds\", \"latency_ns\": " FIGURE("9") "}]}";
    struct kvc_user_profile *p = NULL;
    struct kvc_link_profile l;
    (void)state;
    assert_int_equal(kvc_user_profile_parse(&p, text, strlen(text), "p.json", NULL), KVC_OK);
    assert_true(kvc_user_link(p, "nvme-gen5-x4", &l));
    assert_true(l.per_op_ns.value == 90 && l.ops_per_s.value == 0);
    assert_true(kvc_user_link(p, "gds", &l));
    assert_true(l.ops_per_s.value == kvc_link_find("gds")->ops_per_s.value);
    kvc_user_profile_destroy(p);
}

static void both_ways_share_what_the_profile_says(void **state)
{
    static const char narrow[] =
        "{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"pcie5-x16\", "
        "\"read_bytes_per_s\": " FIGURE("8e9") ", \"both_bytes_per_s\": " FIGURE("2e9") "}]}";
    static const char wide[] =
        "{\"schema\": \"kvcast.profile.v1\", \"links\": [{\"name\": \"pcie5-x16\", "
        "\"read_bytes_per_s\": " FIGURE("8e9") ", \"both_bytes_per_s\": " FIGURE("60e9") "}]}";
    const struct kvc_link_profile *l = kvc_link_find("pcie5-x16");
    double bytes, ns = load_ns(narrow, DRAM, &bytes);
    double fixed = l->latency_ns.value, ops = bytes / (16 * 131072);
    (void)state;
    assert_true(fabs(ns - (fixed + bytes / 2)) <= 2); /* even alone no faster than both */
    ns = load_ns(wide, DRAM, &bytes);
    assert_true(fabs(ns - (fixed + ops * l->per_op_ns.value + bytes / 8)) <= 2);
}

static void a_scenario_names_its_file(void **state)
{
    struct kvc_scenario *s = NULL;
    struct kvc_error err = {0};
    (void)state;
    assert_int_equal(kvc_scenario_create(&s, "kga-rag", NULL), KVC_OK);
    set(s, "profile", "/nonexistent/p.json");
    assert_int_not_equal(kvc_scenario_check(s, &err), KVC_OK);
    assert_non_null(strstr(err.file, "/nonexistent/p.json"));
    set(s, "profile", "/dev/null");
    assert_int_equal(kvc_scenario_check(s, &err), KVC_ERR_INPUT);
    kvc_scenario_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(figures_replace_the_carried_ones_and_no_others),
        cmocka_unit_test(loads_take_what_the_closed_form_says),
        cmocka_unit_test(a_load_costs_its_engine_time_beside_the_copy),
        cmocka_unit_test(a_staged_load_takes_one_link_after_the_other),
        cmocka_unit_test(a_measured_operation_replaces_operations_a_second),
        cmocka_unit_test(both_ways_share_what_the_profile_says),
        cmocka_unit_test(a_scenario_names_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
