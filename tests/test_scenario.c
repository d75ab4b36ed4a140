/* SPDX-License-Identifier: Apache-2.0
 * Scenarios: the effective one reads back as itself, order does not matter, and what is wrong is
 * refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/rng.h"
#include "sim/scenario/scenario.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char temp_dir[] = "/tmp/kvcast-scenario-XXXXXX";
static char temp_file[64];

static int make_temp(void **state)
{
    (void)state;
    if (!mkdtemp(temp_dir))
        return -1;
    snprintf(temp_file, sizeof(temp_file), "%s/s.json", temp_dir);
    return 0;
}

static int drop_temp(void **state)
{
    (void)state;
    unlink(temp_file);
    return rmdir(temp_dir);
}

static void write_file(const char *text)
{
    FILE *f = fopen(temp_file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static char *json_of(const struct kvc_scenario *s)
{
    char *text = NULL;
    assert_int_equal(kvc_scenario_json(s, &text, NULL), KVC_OK);
    return text;
}

static struct kvc_scenario *create(const char *preset)
{
    struct kvc_scenario *s = NULL;
    assert_int_equal(kvc_scenario_create(&s, preset, NULL), KVC_OK);
    return s;
}

static struct kvc_scenario *load_text(const char *text)
{
    struct kvc_scenario *s = NULL;
    struct kvc_error err = {0};
    write_file(text);
    if (kvc_scenario_load(&s, temp_file, &err) != KVC_OK)
        fail_msg("line %" PRIu64 " %s: %s\n%s", err.line, err.field, err.text, text);
    return s;
}

/* ---- random values for any key ---- */

static void random_value(const struct kvc_scenario_key *key, uint64_t *rng, char *buf, size_t size)
{
    static const char *const bytes[] = {"1GiB", "5GB", "1.5TiB", "123456789B", "2TB"};
    static const char *const times[] = {"0s", "5us", "1.5s", "2h", "123ns"};
    static const char *const rates[] = {"25GB/s", "400Gb/s", "1234567B/s", "3.3GiB/s"};
    const char *const *list = key->choices ? key->choices : key->names ? key->names() : NULL;
    size_t n = 0;
    double u = kvc_rng_unit(rng);
    switch (key->kind) {
    case KVC_KEY_TEXT:
        snprintf(buf, size, "dir/log %u \"q\".jsonl", (unsigned)kvc_rng_below(rng, 9));
        break;
    case KVC_KEY_NAME:
    case KVC_KEY_ENUM:
        while (list[n])
            n++;
        snprintf(buf, size, "%s", list[kvc_rng_below(rng, n)]);
        if (!strcmp(key->name, "engine.preset")) /* the others are refused */
            snprintf(buf, size, "%s", kvc_rng_below(rng, 2) ? "lmcache" : "vllm-0.24");
        break;
    case KVC_KEY_BOOL:
        snprintf(buf, size, "%s", u < 0.5 ? "true" : "false");
        break;
    case KVC_KEY_BYTES:
        snprintf(buf, size, "%s", bytes[kvc_rng_below(rng, 5)]);
        break;
    case KVC_KEY_NS:
        snprintf(buf, size, "%s", times[kvc_rng_below(rng, 5)]);
        break;
    case KVC_KEY_RATE:
        snprintf(buf, size, "%s", rates[kvc_rng_below(rng, 4)]);
        break;
    case KVC_KEY_DOUBLE:
        snprintf(buf, size, "%.17g", key->min + (key->max - key->min) * u * u * u);
        break;
    case KVC_KEY_U32:
        snprintf(buf, size, "%.0f", key->min + floor((key->max - key->min) * u * u * u));
        break;
    default:
        snprintf(buf, size, "%" PRIu64, kvc_rng_next(rng));
    }
}

static void set(struct kvc_scenario *s, const char *key, const char *value)
{
    struct kvc_error err = {0};
    enum kvc_status st = kvc_scenario_set(s, key, value, &err);
    if (st == KVC_OK)
        return;
    /* times stop at the largest sensible one: the only refusal a random value may meet */
    if (!strstr(err.text, "is not between"))
        fail_msg("%s %s: %s", key, value, err.text);
}

static void the_effective_scenario_reads_back_as_itself(void **state)
{
    size_t n;
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct kvc_scenario *s = create(seed % 4 ? NULL : "kga-rag"), *back;
        uint64_t rng = kvc_rng_stream(seed, "scenario");
        char value[128];
        for (size_t i = 0; i < n; i++) {
            if (kvc_rng_below(&rng, 4) > seed % 4)
                continue;
            random_value(&keys[i], &rng, value, sizeof(value));
            set(s, keys[i].name, value);
        }
        char *first = json_of(s);
        back = load_text(first);
        char *second = json_of(back);
        if (strcmp(first, second) != 0)
            fail_msg("seed %" PRIu64 "\n%s\n%s", seed, first, second);
        kvc_free(first);
        kvc_free(second);
        kvc_scenario_destroy(s);
        kvc_scenario_destroy(back);
    }
}

static void the_order_of_keys_does_not_matter(void **state)
{
    static const char *const sets[][2] = {
        {"preset", "kga-rag"},         {"engine.preset", "vllm-0.24"},
        {"gpu", "h100-sxm"},           {"tiers.dram.capacity", "1TiB"},
        {"engine.max_seqs", "77"},     {"tiers.nvme", "null"},
        {"tiers.dram.chunk_tokens", "0"}, {"tp", "8"},
    };
    size_t n = sizeof(sets) / sizeof(sets[0]);
    char *first = NULL;
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct kvc_scenario *s = create(NULL);
        size_t order[8];
        uint64_t rng = kvc_rng_stream(seed, "order");
        for (size_t i = 0; i < n; i++) {
            size_t at = kvc_rng_below(&rng, i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        for (size_t i = 0; i < n; i++)
            set(s, sets[order[i]][0], sets[order[i]][1]);
        char *text = json_of(s);
        if (first)
            assert_string_equal(text, first);
        else
            first = kvc_strdup(text);
        kvc_free(text);
        kvc_scenario_destroy(s);
    }
    assert_non_null(strstr(first, "\"max_seqs\": 77"));
    assert_non_null(strstr(first, "\"nvme\": null"));
    assert_non_null(strstr(first, "\"preset\": \"vllm-0.24\""));
    kvc_free(first);
}

static void a_file_and_flags_say_the_same(void **state)
{
    (void)state;
    struct kvc_scenario *a = load_text("{ // a comment\n"
        "\"model\": \"llama-3.1-70b\", \"weights_dtype\": \"fp8\",\n"
        "\"cluster\": { \"gpu\": \"H200-SXM\", \"tp\": 8 },\n"
        "\"tiers\": { \"dram\": { \"capacity\": \"512GiB\",\n"
        "  \"link\": { \"bandwidth\": \"400Gb/s\", \"latency\": \"5us\", \"efficiency\": 0.8 } } },"
        "\n"
        "\"tenants\": null, \"disaggregation\": null, \"slo\": { \"ttft_p99\": \"500ms\" } }");
    struct kvc_scenario *b = create(NULL);
    set(b, "model", "Llama_3.1_70B");
    set(b, "weights_dtype", "FP8");
    set(b, "gpu", "h200_sxm");
    set(b, "tp", "8");
    set(b, "dram", "512GiB");
    set(b, "tiers.dram.link", "{\"bandwidth\": \"50GB/s\", \"latency\": \"5us\"}");
    set(b, "tiers.dram.link.efficiency", "0.8");
    set(b, "slo.ttft_p99", "0.5s");
    char *x = json_of(a), *y = json_of(b);
    assert_string_equal(x, y);
    assert_true(a->tiers[0].present && !a->tiers[1].present);
    assert_string_equal(a->tiers[0].link, "");
    assert_true(a->tiers[0].link_bytes_per_s == 50e9);
    assert_int_equal(kvc_scenario_check(a, NULL), KVC_OK);
    kvc_free(x);
    kvc_free(y);
    kvc_scenario_destroy(a);
    kvc_scenario_destroy(b);
}

/* Rules come out as they went in, from JSON and by dotted names, and back. */
static void rules_of_tenants_are_kept(void **state)
{
    (void)state;
    struct kvc_scenario *a = load_text("{ \"tenants\": {\n"
        "\"default\": { \"quota\": 0.5, \"quota_mode\": \"hard\" },\n"
        "\"a.b\": { \"reserve\": \"20GiB\", \"ttl\": \"30m\", \"priority\": 2,\n"
        "  \"quota\": { \"dram\": \"1GiB\", \"hbm\": null }, \"salt\": \"red\" },\n"
        "\"c\": { \"quota_mode\": \"hybrid\", \"shared\": true, \"allow\": [\"a.b\", \"d\"] } } }");
    struct kvc_scenario *b = create(NULL), *c = NULL;
    set(b, "tenants.default.quota", "50%");
    set(b, "tenants.default.quota_mode", "HARD");
    set(b, "tenants.a.b.reserve", "20GiB");
    set(b, "tenants.a.b.ttl", "1800s");
    set(b, "tenants.a.b.priority", "2");
    set(b, "tenants.a.b.quota.dram", "1GiB");
    set(b, "tenants.a.b.quota.hbm", "none");
    set(b, "tenants.a.b.salt", "red");
    set(b, "tenants", "{\"c\": {\"quota_mode\": \"hybrid\", \"salt\": false}}");
    set(b, "tenants.c.allow", "a.b,d");
    char *x = json_of(a), *y = json_of(b);
    assert_string_equal(x, y);
    c = load_text(x);
    char *z = json_of(c);
    assert_string_equal(x, z);
    assert_int_equal(a->n_tenants, 3);
    assert_int_equal(a->tenants[0].quota[3].kind, KVC_AMOUNT_SHARE);
    assert_int_equal(a->tenants[1].reserve[0].bytes, UINT64_C(20) << 30);
    assert_int_equal(a->tenants[1].reserve[1].kind, KVC_AMOUNT_UNSET);
    assert_true(a->tenants[2].quota[1].share == 0.5); /* hybrid's usual cap */
    set(b, "tenants", "null");
    assert_int_equal(b->n_tenants, 0);
    struct kvc_error err = {0};
    assert_int_equal(kvc_scenario_set(b, "tenants.a.b.quta", "0.1", &err), KVC_ERR_INPUT);
    assert_int_equal(kvc_scenario_set(b, "tenants.quota", "0.1", &err), KVC_ERR_INPUT);
    kvc_free(x);
    kvc_free(y);
    kvc_free(z);
    kvc_scenario_destroy(a);
    kvc_scenario_destroy(b);
    kvc_scenario_destroy(c);
}

static void the_host_link_follows_the_gpu(void **state)
{
    struct kvc_scenario *s = create(NULL);
    (void)state;
    set(s, "gpu", "gh200-96");
    set(s, "dram", "480GB");
    assert_string_equal(s->tiers[0].link, "nvlink-c2c");
    set(s, "gpu", "h100-sxm");
    assert_string_equal(s->tiers[0].link, "pcie5-x16");
    set(s, "tiers.dram.link.bandwidth", "1GB/s");
    assert_string_equal(s->tiers[0].link, "");
    set(s, "tiers.dram.link", "pcie4-x16");
    assert_string_equal(s->tiers[0].link, "pcie4-x16");
    assert_true(isnan(s->tiers[0].link_bytes_per_s));
    kvc_scenario_destroy(s);
}

/* vLLM: 8192 tokens and 1024 sequences from 70 GiB up and not on A100, else 2048 and 256. */
static void batch_limits_follow_the_gpu(void **state)
{
    static const struct { const char *gpu; uint32_t tokens, seqs; } cases[] = {
        {"h100-sxm", 8192, 1024}, {"b200-sxm", 8192, 1024}, {"a100-80", 2048, 256},
        {"l40s", 2048, 256}, {"h200-sxm", 8192, 1024}};
    struct kvc_scenario *s = create(NULL);
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set(s, "gpu", cases[i].gpu);
        assert_int_equal(s->engine.max_batched_tokens, cases[i].tokens);
        assert_int_equal(s->engine.max_seqs, cases[i].seqs);
    }
    set(s, "engine.max_seqs", "77");
    set(s, "gpu", "l40s");
    assert_int_equal(s->engine.max_seqs, 77);
    kvc_scenario_destroy(s);
}

static void weights_are_as_published_unless_set(void **state)
{
    struct kvc_scenario *s = create(NULL);
    (void)state;
    set(s, "model", "llama-3.1-8b");
    assert_string_equal(s->weights_dtype, "bf16");
    set(s, "model", "deepseek-v3");
    assert_string_equal(s->weights_dtype, "fp8_block");
    set(s, "weights_dtype", "fp8");
    set(s, "model", "llama-3.1-8b");
    assert_string_equal(s->weights_dtype, "fp8");
    kvc_scenario_destroy(s);
}

static void engine_defaults_are_those_of_the_version(void **state)
{
    struct kvc_scenario *s = create(NULL);
    (void)state;
    assert_string_equal(s->engine.preset, "vllm-0.24");
    assert_int_equal(s->engine.page_tokens, 16);
    assert_int_equal(s->engine.max_batched_tokens, 8192);
    assert_int_equal(s->engine.max_seqs, 1024);
    assert_true(s->engine.gpu_memory_utilization == 0.92);
    assert_true(s->engine.chunked_prefill && s->engine.prefix_caching);
    assert_true(s->engine.reserve_full_prompt && s->engine.unhashed_first);
    assert_string_equal(s->router.policy, "round-robin");
    struct kvc_error err = {0};
    assert_int_equal(kvc_scenario_set(s, "engine", "vllm-0.23", &err), KVC_ERR_UNSUPPORTED);
    assert_string_equal(s->engine.preset, "vllm-0.24");
    kvc_scenario_destroy(s);
}

static const struct {
    const char *text;
    int line;
    const char *field, *says;
    enum kvc_status st;
} wrong[] = {
    {"{\n\"modle\": \"x\"}", 2, "modle", "model", KVC_ERR_INPUT},
    {"{\n\n\"tiers\": {\n \"dram\": { \"capcity\": \"1GiB\" } } }", 4, "tiers.dram.capcity",
     "tiers.dram.capacity", KVC_ERR_INPUT},
    {"{\"tiers\": {\"ssd\": {\"capacity\": \"1GiB\"}}}", 1, "tiers.ssd", "unknown",
     KVC_ERR_INPUT},
    {"{\"tiers\": {\"dram\": {\"capacity\": 5}}}", 1, "tiers.dram.capacity", "no unit",
     KVC_ERR_INPUT},
    {"{\"tiers\": {\"dram\": \"5GiB\"}}", 1, "tiers.dram", "group", KVC_ERR_INPUT},
    {"{\"tiers\": {\"hbm\": null}}", 1, "tiers.hbm", "group", KVC_ERR_INPUT},
    {"{\"cluster\": {\"tp\": 0}}", 1, "cluster.tp", "between 1 and", KVC_ERR_INPUT},
    {"{\"cluster\": {\"tp\": 1.5}}", 1, "cluster.tp", "whole number", KVC_ERR_INPUT},
    {"{\"cluster\": {\"tp\": null}}", 1, "cluster.tp", "null", KVC_ERR_INPUT},
    {"{\"cluster\": {\"tp\": [1, 2]}}", 1, "cluster.tp", "list", KVC_ERR_INPUT},
    {"{\"cluster\": {\"tp\": {\"x\": 1}}}", 1, "cluster.tp", "not an object", KVC_ERR_INPUT},
    {"{\"cluster\": {\"gpu\": \"h200-smx\"}}", 1, "cluster.gpu", "h200_sxm", KVC_ERR_INPUT},
    {"{\"engine\": {\"gpu_memory_utilization\": 1.2}}", 1, "engine.gpu_memory_utilization",
     "between", KVC_ERR_INPUT},
    {"{\"engine\": {\"preset\": \"mooncake\"}}", 1, "engine.preset", "not modelled",
     KVC_ERR_UNSUPPORTED},
    {"{\"disaggregation\": {\"prefill\": 1}}", 1, "disaggregation", "not yet",
     KVC_ERR_UNSUPPORTED},
    {"{\"tenants\": {\n\"gold\": {\"qota\": 0.5}}}", 2, "tenants.gold.qota", "quota",
     KVC_ERR_INPUT},
    {"{\"tenants\": {\"gold\": {\"quota\": 1.5}}}", 1, "tenants.gold.quota", "share",
     KVC_ERR_INPUT},
    {"{\"tenants\": {\"gold\": {\"quota\": \"5 apples\"}}}", 1, "tenants.gold.quota", "apples",
     KVC_ERR_INPUT},
    {"{\"tenants\": {\"gold\": {\"reserve\": {\"ram\": 0.5}}}}", 1, "tenants.gold.reserve.ram",
     "dram", KVC_ERR_INPUT},
    {"{\"tenants\": {\"gold\": {\"quota_mode\": \"firm\"}}}", 1, "tenants.gold.quota_mode",
     "hard", KVC_ERR_INPUT},
    {"{\"tenants\": {\"gold\": {\"quota\": {\"nvme\": 1.5}}}}", 1, "tenants.gold.quota.nvme",
     "share", KVC_ERR_INPUT},
    {"{\"tenants\": {\"gold\": {\"ttl\": \"0s\"}}}", 1, "tenants.gold.ttl", "null",
     KVC_ERR_INPUT},
    {"{\"tenants\": {\"gold\": {\"ttl\": 30}}}", 1, "tenants.gold.ttl", "unit", KVC_ERR_INPUT},
    {"{\"tenants\": {\"gold\": 7}}", 1, "tenants.gold", "object", KVC_ERR_INPUT},
    {"{\"tenants\": [1]}", 1, "tenants", "object", KVC_ERR_INPUT},
    {"{\"models\": {\"a\": \"b\"}}", 1, "models", "not yet", KVC_ERR_UNSUPPORTED},
    {"{\"plan\": {\"search\": []}}", 1, "plan", "not yet", KVC_ERR_UNSUPPORTED},
    {"{\"warmup\": \"-5s\"}", 1, "warmup", "negative", KVC_ERR_INPUT},
    {"{\"dram\": \"5GiB\"}", 1, "dram", "unknown", KVC_ERR_INPUT},
    {"[1]", 1, "", "object", KVC_ERR_INPUT},
    {"{\"model\": \"a\",\n\"model\": \"b\"}", 2, "model", "twice", KVC_ERR_INPUT},
    {"", 0, "", "empty", KVC_ERR_INPUT},
    {"{\"tiers\": {\"dram\": {\"link\": \"pcie9\"}}}", 1, "tiers.dram.link", "not known",
     KVC_ERR_INPUT},
};

static void wrong_files_are_refused_with_line_and_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct kvc_scenario *s = NULL;
        struct kvc_error err = {0};
        write_file(wrong[i].text);
        enum kvc_status st = kvc_scenario_load(&s, temp_file, &err);
        if (st != wrong[i].st || err.line != (uint64_t)wrong[i].line ||
            strcmp(err.field, wrong[i].field) ||
            !strstr(err.text, wrong[i].says) || strcmp(err.file, temp_file) || s)
            fail_msg("%s\n-> %d %s:%" PRIu64 ":%s: %s", wrong[i].text, st, err.file, err.line,
                     err.field, err.text);
    }
}

static void a_failed_set_changes_nothing(void **state)
{
    struct kvc_scenario *s = create("kga-rag");
    (void)state;
    char *before = json_of(s);
    assert_int_not_equal(kvc_scenario_set(s, "engine.preset", "dynamo", NULL), KVC_OK);
    assert_int_not_equal(kvc_scenario_set(s, "tiers.dram.capacity", "5", NULL), KVC_OK);
    assert_int_not_equal(kvc_scenario_set(s, "no.such.key", "5", NULL), KVC_OK);
    assert_int_not_equal(kvc_scenario_set(s, "tiers.dram", "{\"capacity\": ", NULL), KVC_OK);
    char *after = json_of(s);
    assert_string_equal(before, after);
    kvc_free(before);
    kvc_free(after);
    kvc_scenario_destroy(s);
}

static void what_does_not_go_together_is_named(void **state)
{
    static const char *const bad[][3] = {
        {"tiers.nvme.policy", "lru", "tiers.nvme.policy"},
        {"arrivals.mode", "closed", "arrivals.concurrency"},
        {"arrivals.concurrency", "4", "arrivals.concurrency"},
        {"arrivals.rounds", "true", "arrivals.rounds"},
        {"engine.unhashed_first", "false", "engine.unhashed_first"},
        {"engine.prefill", "first", "engine.publish"},
        {"model", "null", "model"},
        {"gpu", "null", "cluster.gpu"},
        {"tiers.remote.connector", "nixl", "tiers.remote.connector"},
        {"tiers.dram.link.latency", "5us", "tiers.dram.link.latency"},
        {"tenants.gold.quota.nvme", "0.2", "tenants.gold.quota.nvme"},
        {"tenants.gold.reserve.dram", "1GiB", "tenants.gold.reserve.dram"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct kvc_scenario *s = create(NULL);
        struct kvc_error err = {0};
        set(s, "model", "llama-3.1-8b");
        set(s, "gpu", "h100-sxm");
        assert_int_equal(kvc_scenario_check(s, NULL), KVC_OK);
        set(s, bad[i][0], bad[i][1]);
        assert_int_not_equal(kvc_scenario_check(s, &err), KVC_OK);
        assert_string_equal(err.field, bad[i][2]);
        kvc_scenario_destroy(s);
    }
}

static void admission_is_checked(void **state)
{
    static const char *const bad[][2] = {{"dpth", "did you mean depth"},
                                         {"second+ttl", "not known"},
                                         {"depth:most=64", "tokens=32768"},
                                         {"second:times=0", "from 1 to 255"},
                                         {"ttl:ttl", "ttl"}};
    (void)state;
    struct kvc_scenario *s = create(NULL);
    struct kvc_error err = {0};
    set(s, "model", "llama-3.1-8b");
    set(s, "gpu", "h100-sxm");
    set(s, "dram", "1GiB");
    assert_string_equal(s->tiers[0].admission, "always");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_not_equal(kvc_scenario_set(s, "tiers.dram.admission", bad[i][0], &err), KVC_OK);
        assert_non_null(strstr(err.text, bad[i][1]));
    }
    set(s, "tiers.dram.admission", "Size:tokens=4096");
    assert_int_equal(kvc_scenario_check(s, NULL), KVC_OK);
    set(s, "tiers.dram.write", "on-evict"); /* what was evicted is of no prompt */
    assert_int_not_equal(kvc_scenario_check(s, &err), KVC_OK);
    assert_string_equal(err.field, "tiers.dram");
    set(s, "tiers.dram.admission", "depth:tokens=4096");
    assert_int_equal(kvc_scenario_check(s, NULL), KVC_OK);
    kvc_scenario_destroy(s);
}

static void the_trace_is_seen_from_the_file(void **state)
{
    char expected[128];
    (void)state;
    struct kvc_scenario *s = load_text("{\"trace\": \"logs/a.jsonl\"}");
    snprintf(expected, sizeof(expected), "%s/logs/a.jsonl", temp_dir);
    assert_string_equal(kvc_scenario_trace(s), expected);
    char *text = json_of(s); /* the result must not depend on where the folder lies */
    assert_non_null(strstr(text, "\"trace\": \"logs/a.jsonl\""));
    kvc_free(text);
    kvc_scenario_destroy(s);
    s = load_text("{\"trace\": \"/abs/a.jsonl\"}");
    assert_string_equal(kvc_scenario_trace(s), "/abs/a.jsonl");
    kvc_scenario_destroy(s);
    s = load_text("{}");
    assert_null(kvc_scenario_trace(s));
    kvc_scenario_destroy(s);
}

static void scenarios_and_logs_are_told_apart(void **state)
{
    static const struct { const char *text; bool scenario; } c[] = {
        {"{\"model\": \"x\"}", true},
        {"{\n  \"trace\": \"x\"\n}", true},
        {"// mine\n{\"model\": \"x\"}", true},
        {"{ // mine\n\"model\": \"x\"}", true},
        {"{\"tiers\": {}}", true},
        {"{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 1, \"hash_ids\": [0]}\n",
         false},
        {"{\"timestamp\": 0, \"input_length\": 5}\n{\"timestamp\": 1}\n", false},
        {"{\"modell\": 1}", true}, /* the rest by the name, which ends in .json */
        /* rows of logs with keys that scenarios have, too */
        {"{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 1, \"model\": \"m\"}\n",
         false},
        {"{\"startTime\":\"2026-01-01T00:00:00Z\",\"prompt_tokens\":1,\"completion_tokens\":1,"
         "\"spend\":0,\"api_key\":\"k\",\"call_type\":\"c\",\"model\":\"m\"}\n", false},
        {"{\"id\":\"s\",\"models\":[\"m\"],\"block_size\":64,\"requests\":[{\"t\":0,\"type\":\"n\","
         "\"model\":\"m\",\"in\":1,\"out\":1,\"hash_ids\":[]}]}", false},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n", false},
        {"timestamp,a,b\n", true},
        {"", true},
        {"[1]", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        write_file(c[i].text);
        if (kvc_scenario_sniff(temp_file) != c[i].scenario)
            fail_msg("%s", c[i].text);
    }
    assert_false(kvc_scenario_sniff("/nonexistent"));
    assert_true(kvc_scenario_sniff("/nonexistent.json.gz"));
    assert_false(kvc_scenario_sniff("/tmp"));
    assert_false(kvc_scenario_sniff("-"));
}

static void every_key_is_in_the_effective_scenario_or_stands_for_none(void **state)
{
    size_t n;
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    struct kvc_scenario *s = create("kga-rag");
    (void)state;
    set(s, "remote", "1TB");
    set(s, "trace", "x");
    set(s, "profile", "y");
    char *text = json_of(s);
    for (size_t i = 0; i < n; i++) {
        char name[96];
        const char *last = strrchr(keys[i].name, '.');
        if (strstr(keys[i].name, ".link."))
            continue;
        snprintf(name, sizeof(name), "\"%s\":", last ? last + 1 : keys[i].name);
        if (!strstr(text, name))
            fail_msg("%s is missing", keys[i].name);
        assert_true(keys[i].help && keys[i].help[0]);
        assert_ptr_equal(kvc_scenario_key_find(keys[i].name), &keys[i]);
    }
    kvc_free(text);
    kvc_scenario_destroy(s);
}

static void every_failed_allocation_is_clean(void **state)
{
    (void)state;
    write_file("{\"model\": \"llama-3.1-8b\", \"tiers\": {\"dram\": {\"capacity\": \"1GiB\"}}}");
    for (uint64_t n = 1; n < 100; n++) {
        struct kvc_scenario *s = NULL;
        kvc_alloc_fail_after(n);
        enum kvc_status st = kvc_scenario_load(&s, temp_file, NULL);
        kvc_alloc_fail_after(0);
        if (st == KVC_OK) {
            kvc_scenario_destroy(s);
            return;
        }
        assert_int_equal(st, KVC_ERR_NOMEM);
        assert_null(s);
    }
    fail_msg("never succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_effective_scenario_reads_back_as_itself),
        cmocka_unit_test(the_order_of_keys_does_not_matter),
        cmocka_unit_test(a_file_and_flags_say_the_same),
        cmocka_unit_test(rules_of_tenants_are_kept),
        cmocka_unit_test(the_host_link_follows_the_gpu),
        cmocka_unit_test(batch_limits_follow_the_gpu),
        cmocka_unit_test(weights_are_as_published_unless_set),
        cmocka_unit_test(engine_defaults_are_those_of_the_version),
        cmocka_unit_test(wrong_files_are_refused_with_line_and_key),
        cmocka_unit_test(a_failed_set_changes_nothing),
        cmocka_unit_test(what_does_not_go_together_is_named),
        cmocka_unit_test(admission_is_checked),
        cmocka_unit_test(the_trace_is_seen_from_the_file),
        cmocka_unit_test(scenarios_and_logs_are_told_apart),
        cmocka_unit_test(every_key_is_in_the_effective_scenario_or_stands_for_none),
        cmocka_unit_test(every_failed_allocation_is_clean),
    };
    return cmocka_run_group_tests_name("scenario", tests, make_temp, drop_temp);
}
