/* SPDX-License-Identifier: Apache-2.0
 * Host constants come back from scrapes that replays with known constants would have given: the
 * equations in means against a discrete-event run. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/outfile.h"
#include "base/rng.h"
#include "base/text.h"
#include "models/user_profile.h"
#include "studies/calibrate/host_fit.h"
#include "studies/calibrate/prometheus.h"
#include "traces/forest/forest.h"

#define SCRAPES 5

static const double truth[KVC_HOST_CONSTANTS] = {1.2e6, 60e3, 8e6, 25e6};

static struct kvc_trace *traffic(size_t n, double gap_s, uint64_t seed)
{
    struct kvc_forest *f = kvc_forest_create();
    struct kvc_trace *t = NULL;
    uint64_t rng = kvc_rng_stream(seed, "host fit");
    double at = 0;
    for (size_t i = 0; i < n; i++) {
        at += -log(1 - kvc_rng_unit(&rng)) * gap_s;
        assert_int_equal(kvc_forest_add_lengths(f, (uint64_t)(at * 1e9),
                                                400 + (uint32_t)kvc_rng_below(&rng, 800),
                                                60 + (uint32_t)kvc_rng_below(&rng, 120), NULL),
                         KVC_OK);
    }
    assert_int_equal(kvc_forest_finish(f, 0, false, &t, NULL), KVC_OK);
    return t;
}

static struct kvc_scenario *served(void)
{
    struct kvc_scenario *s = NULL;
    assert_int_equal(kvc_scenario_create(&s, NULL, NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(s, "model", "llama-3.1-8b", NULL), KVC_OK);
    assert_int_equal(kvc_scenario_set(s, "gpu", "h100-sxm", NULL), KVC_OK);
    return s;
}

static void profile(struct kvc_text *t)
{
    static const char *const keys[] = {"host_per_step_ns", "host_per_sequence_ns",
                                       "host_per_prefill_step_ns", "front_end_ns"};
    kvc_text_add(t, "{\"schema\":\"" KVC_PROFILE_SCHEMA "\",\"engines\":[{\"backend\":\"vllm\"");
    for (size_t i = 0; i < KVC_HOST_CONSTANTS; i++)
        kvc_text_addf(t, ",\"%s\":{\"value\":%g,\"kind\":\"measured\",\"source\":\"t\"}", keys[i],
                      truth[i]);
    kvc_text_add(t, "}]}");
}

struct counters {
    double ttft, queue, prefill, itl, requests, between, prompt, generated, steps;
};

/* An hour more of traffic at one request each gap_s. */
static void serve(struct counters *c, double gap_s, uint64_t seed)
{
    struct kvc_trace *t = traffic(300, gap_s, seed);
    struct kvc_scenario *s = served();
    struct kvc_text text = {0};
    struct kvc_result *r = NULL;
    profile(&text);
    struct kvc_replay_options o = {.struct_size = sizeof o, .skip_bounds = true,
                                   .profile = text.buf};
    assert_int_equal(kvc_replay_run(&r, t, s, &o, NULL), KVC_OK);
    for (size_t i = 0; i < r->n_requests; i++) {
        const struct kvc_request_result *q = &r->requests[i];
        c->ttft += (double)q->ttft_ns / 1e9;
        c->queue += (double)q->queue_ns / 1e9;
        c->prefill += ((double)(q->ttft_ns - q->queue_ns) - truth[KVC_HOST_FRONT]) / 1e9;
        c->itl += (double)(q->e2e_ns - q->ttft_ns) / 1e9;
        c->between += q->output_tokens - 1;
        c->prompt += q->input_tokens;
        c->generated += q->output_tokens;
        c->requests++;
    }
    c->steps += (double)r->runtime.steps;
    kvc_result_destroy(r);
    kvc_text_clear(&text);
    kvc_scenario_destroy(s);
    kvc_trace_destroy(t);
}

static void write_scrape(const char *path, const struct counters *c, bool all)
{
    struct kvc_text t = {0};
    const struct {
        const char *name;
        double value;
        bool optional;
    } lines[] = {{"time_to_first_token_seconds_sum", c->ttft, false},
                 {"time_to_first_token_seconds_count", c->requests, false},
                 {"request_queue_time_seconds_sum", c->queue, true},
                 {"request_queue_time_seconds_count", c->requests, true},
                 {"request_prefill_time_seconds_sum", c->prefill, true},
                 {"request_prefill_time_seconds_count", c->requests, true},
                 {"inter_token_latency_seconds_sum", c->itl, false},
                 {"inter_token_latency_seconds_count", c->between, false},
                 {"time_per_output_token_seconds_sum", 77, false}, /* the newer name wins */
                 {"time_per_output_token_seconds_count", 1, false},
                 {"iteration_tokens_total_count", c->steps, false},
                 {"prompt_tokens_total", c->prompt, false},
                 {"generation_tokens_total", c->generated, false}};
    kvc_text_add(&t, "# HELP vllm:x y\n# TYPE vllm:x counter\npython_info{a=\"b\"} 1.0\n");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (all || !lines[i].optional) /* two engines behind one port: sums count */
            kvc_text_addf(&t, "vllm:%s{engine=\"0\",model_name=\"a } b\"} %.17g\n"
                              "vllm:%s{engine=\"1\",model_name=\"a } b\"} %.17g 1700000000\n",
                          lines[i].name, lines[i].value * 0.25, lines[i].name,
                          lines[i].value * 0.75);
    assert_int_equal(kvc_outfile_put(path, t.buf, t.len, NULL), KVC_OK);
    kvc_text_clear(&t);
}

static void write_scrapes(char path[SCRAPES][64], bool all)
{
    static const double gaps[SCRAPES - 1] = {2.5, 0.25, 0.1, 0.06};
    struct counters c = {0};
    for (size_t i = 0; i < SCRAPES; i++) {
        snprintf(path[i], 64, "/tmp/kvcast-scrape-%d-%zu", (int)getpid(), i);
        if (i)
            serve(&c, gaps[i - 1], i);
        write_scrape(path[i], &c, all);
    }
}

static void fit(struct kvc_host_fit *f, char path[SCRAPES][64], size_t n)
{
    const char *paths[SCRAPES];
    struct kvc_scenario *s = served();
    struct kvc_error err = {0};
    for (size_t i = 0; i < SCRAPES; i++)
        paths[i] = path[i];
    if (kvc_host_fit_scrapes(f, paths, n, NULL, s, &err) != KVC_OK)
        fail_msg("%s", err.text);
    kvc_scenario_destroy(s);
}

/* Means at four loads: the equations are not exact, the errors stated say by how much. */
static void expect(const struct kvc_host_fit *f, size_t i, double share)
{
    const struct kvc_fit_constant *c = &f->fit.constant[i];
    if (!c->told || fabs(c->value - truth[i]) > 2 * c->error ||
        fabs(c->value / truth[i] - 1) > share)
        fail_msg("%s: %g (+- %g), run with %g", c->name, c->value, c->error, truth[i]);
}

static void several_loads_tell_the_constants(void **state)
{
    char path[SCRAPES][64];
    struct kvc_host_fit f;
    (void)state;
    write_scrapes(path, true);
    fit(&f, path, SCRAPES);
    expect(&f, KVC_HOST_STEP, 0.3);
    if (f.fit.constant[KVC_HOST_SEQUENCE].told)
        expect(&f, KVC_HOST_SEQUENCE, 1);
    expect(&f, KVC_HOST_PREFILL, 0.5); /* steps last no less than their launches: means hide that */
    expect(&f, KVC_HOST_FRONT, 0.05);
    /* what a step of five sequences takes is told much better than its parts */
    const struct kvc_fit_constant *c = f.fit.constant;
    double five = c[KVC_HOST_STEP].value + 5 * c[KVC_HOST_SEQUENCE].value;
    assert_true(fabs(five / (truth[KVC_HOST_STEP] + 5 * truth[KVC_HOST_SEQUENCE]) - 1) < 0.05);
    assert_true(f.requests == 1200 && f.fit.median < 0.05);
    kvc_host_fit_clear(&f);
    for (size_t i = 0; i < SCRAPES; i++)
        unlink(path[i]);
}

static void without_waiting_and_prefill_less_is_told(void **state)
{
    char path[SCRAPES][64];
    struct kvc_host_fit f;
    (void)state;
    write_scrapes(path, false);
    fit(&f, path, 2);
    assert_false(f.fit.constant[KVC_HOST_FRONT].told);
    assert_non_null(strstr(f.notes.buf, "TTFT is waiting, prefill and front end in one"));
    size_t told = 0;
    for (size_t i = 0; i < KVC_HOST_CONSTANTS; i++)
        told += f.fit.constant[i].told;
    assert_in_range(told, 0, 1); /* one equation */
    kvc_host_fit_clear(&f);
    for (size_t i = 0; i < SCRAPES; i++)
        unlink(path[i]);
}

static void names_of_sglang_and_of_versions(void **state)
{
    static const char text[] =
        "sglang:time_to_first_token_seconds_sum{model_name=\"m\",is_streaming=\"true\"} 1.5\n"
        "sglang:time_to_first_token_seconds_sum{model_name=\"m\",is_streaming=\"false\"} 0.5\n"
        "sglang:time_to_first_token_seconds_count{model_name=\"m\"} 4.0\n"
        "sglang:time_per_output_token_seconds_sum{model_name=\"m\"} 2.5e+00\n"
        "sglang:num_running_reqs{model_name=\"m\"} 7\n"
        "sglang:prompt_tokens_total{model_name=\"m\"} 1e3\n";
    struct kvc_scrape s;
    struct kvc_error err = {0};
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/kvcast-scrape-%d", (int)getpid());
    assert_int_equal(kvc_outfile_put(path, text, strlen(text), NULL), KVC_OK);
    assert_int_equal(kvc_scrape_read(&s, path, NULL, NULL), KVC_OK);
    assert_true(!strcmp(s.backend, "sglang") && !strcmp(s.model, "m"));
    assert_true(s.value[KVC_METRIC_TTFT_SUM] == 2 && s.value[KVC_METRIC_TTFT_COUNT] == 4);
    assert_true(s.value[KVC_METRIC_ITL_SUM] == 2.5 && isnan(s.value[KVC_METRIC_ITL_COUNT]));
    assert_true(s.value[KVC_METRIC_RUNNING] == 7 && s.value[KVC_METRIC_PROMPT] == 1000);
    static const char bad[] = "vllm:prompt_tokens_total{a=\"b\"} many\n";
    assert_int_equal(kvc_outfile_put(path, bad, strlen(bad), NULL), KVC_OK);
    assert_int_equal(kvc_scrape_read(&s, path, NULL, &err), KVC_ERR_INPUT);
    assert_int_equal(err.line, 1);
    assert_string_equal(err.field, "prompt_tokens");
    unlink(path);
}

/* ---- buckets ---- */

static struct kvc_histogram buckets(const double (*le_count)[2], size_t n)
{
    struct kvc_histogram h = {0};

    for (size_t i = 0; i < n; i++)
        assert_true(kvc_histogram_add(&h, le_count[i][0], le_count[i][1]));
    return h;
}

static enum kvc_status scrape(const char *text, const char *served, struct kvc_scrape *s,
                              struct kvc_error *err)
{
    char path[64];

    snprintf(path, sizeof path, "/tmp/kvcast-scrape-%d", (int)getpid());
    assert_int_equal(kvc_outfile_put(path, text, strlen(text), NULL), KVC_OK);
    enum kvc_status status = kvc_scrape_read(s, path, served, err);
    unlink(path);
    return status;
}

/* As vLLM, SGLang and trtllm-serve print them, with timestamps and exemplars where OpenMetrics has
 * some. */
static void scrapes_are_told_apart(void **state)
{
    static const char two[] =
        "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"a,}\"} 4 1700000000123\n"
        "vllm:time_to_first_token_seconds_count{engine=\"1\", model_name=\"a,}\"} 5\n"
        "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"b\"} 8\n"
        "vllm:time_to_first_token_seconds_bucket{le=\"0.1\",model_name=\"b\"} 3 # {trace_id=\"x\"} "
        "0.05 1.7e9\nvllm:time_to_first_token_seconds_created{model_name=\"b\"} 1.7e+09\n# EOF\n";
    static const char ranks[] =
        "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"0\",pp_rank=\"0\"} 7\n"
        "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"1\",pp_rank=\"0\"} 7\n"
        "sglang:cached_tokens_total{model_name=\"m\",cache_source=\"device\"} 5\n"
        "sglang:cached_tokens_total{model_name=\"m\",cache_source=\"host\"} 6\n";
    static const char attention[] =
        "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 7\n"
        "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"1\"} 9\n";
    static const char trt[] =
        "process_start_time_seconds 1.6e9\n"
        "trtllm_time_to_first_token_seconds_count{model_name=\"m\",engine_type=\"trtllm\"} 4\n"
        "trtllm_time_per_output_token_seconds_sum{model_name=\"m\"} 9\n"
        "trtllm_request_decode_time_seconds_sum{model_name=\"m\"} 2\n"
        "trtllm_generation_tokens_total{model_name=\"m\"} 104\n"
        "trtllm_prompt_cached_tokens_total{model_name=\"m\"} 30\n";
    struct kvc_scrape s;
    struct kvc_error err = {0};
    (void)state;
    assert_int_equal(scrape(two, NULL, &s, &err), KVC_ERR_INPUT);
    assert_true(err.line == 3 && strstr(err.text, "\"a,}\" and of \"b\": say with --served-model"));
    assert_int_equal(scrape(two, "a,}", &s, NULL), KVC_OK);
    assert_true(s.value[KVC_METRIC_TTFT_COUNT] == 9 && s.ttft.n == 0);
    assert_int_equal(scrape(two, "b", &s, NULL), KVC_OK);
    assert_true(s.value[KVC_METRIC_TTFT_COUNT] == 8 && s.ttft.n == 1 && s.ttft.count[0] == 3);
    assert_true(s.started == 1.7e9);
    assert_int_equal(scrape(two, "c", &s, &err), KVC_ERR_INPUT);
    assert_int_equal(scrape(ranks, NULL, &s, NULL), KVC_OK);
    assert_true(s.value[KVC_METRIC_RUNNING] == 7 && s.engines == 1);
    assert_true(s.value[KVC_METRIC_CACHED] == 11);
    assert_int_equal(scrape(attention, NULL, &s, NULL), KVC_OK);
    assert_true(s.value[KVC_METRIC_RUNNING] == 16 && s.engines == 2);
    assert_int_equal(scrape(trt, NULL, &s, NULL), KVC_OK);
    assert_string_equal(s.backend, "trtllm");
    assert_true(s.value[KVC_METRIC_ITL_SUM] == 2 && s.value[KVC_METRIC_ITL_COUNT] == 100);
    assert_true(s.value[KVC_METRIC_CACHED] == 30 && s.started == 1.6e9);
    assert_int_equal(scrape("vllm:prompt_tokens 1\ntrtllm_prompt_tokens 1\n", NULL, &s, &err),
                     KVC_ERR_INPUT);
}

/* More was served since than before, so that counters alone look fine. */
static void a_start_between_scrapes_is_refused(void **state)
{
    char path[SCRAPES][64];
    const char *paths[SCRAPES];
    struct kvc_host_fit f = {0};
    struct kvc_scenario *s = served();
    struct kvc_error err = {0};
    (void)state;
    write_scrapes(path, true);
    for (size_t i = 0; i < SCRAPES; i++) {
        FILE *file = fopen(path[i], "a");
        assert_non_null(file);
        fprintf(file, "process_start_time_seconds %g\n", i < 2 ? 1.7e9 : 1.70001e9);
        fclose(file);
        paths[i] = path[i];
    }
    assert_int_equal(kvc_host_fit_scrapes(&f, paths, SCRAPES, NULL, s, &err), KVC_ERR_INPUT);
    assert_string_equal(err.file, path[2]);
    assert_non_null(strstr(err.text, "started anew"));
    kvc_host_fit_clear(&f);
    for (size_t i = 0; i < SCRAPES; i++)
        unlink(path[i]);
    kvc_scenario_destroy(s);
}

static void expect_quantile(const struct kvc_histogram *h, double q, double value, double low,
                            double high)
{
    struct kvc_histogram_value v = kvc_histogram_quantile(h, q);

    assert_true(fabs(v.value - value) < 1e-12 && v.low == low && v.high == high);
}

/* histogram_quantile by hand: evenly within a bucket, from 0 in the first, the last bound beyond
 * them. */
static void quantiles_are_promql_s(void **state)
{
    static const double before[][2] = {{INFINITY, 50}, {1, 10}, {4, 40}, {2, 30}};
    static const double after[][2] = {{1, 12}, {2, 38}, {4, 50}, {INFINITY, 60}};
    struct kvc_histogram a = buckets(before, 4), b = buckets(after, 4), between;

    (void)state;
    expect_quantile(&a, 0.5, 1.75, 1, 2);       /* 25: 15 of the 20 between 1 and 2 */
    expect_quantile(&a, 0.1, 0.5, 0, 1);        /* 5 of the first 10 */
    expect_quantile(&a, 0.8, 4, 2, 4);
    expect_quantile(&a, 0.99, 4, 4, INFINITY);
    assert_true(kvc_histogram_between(&between, &a, &b));
    expect_quantile(&between, 0.5, 1.5, 1, 2);  /* 2, 6, 2 and 0 came */
    expect_quantile(&between, 0.9, 3, 2, 4);    /* rank 9: half of the 2 between 2 and 4 */
    assert_false(kvc_histogram_between(&between, &b, &a));
    b.n--;
    assert_false(kvc_histogram_between(&between, &a, &b));
    assert_true(isnan(kvc_histogram_quantile(&b, 0.5).value)); /* no +Inf */
    assert_true(kvc_histogram_between(&between, &a, &a));
    assert_true(isnan(kvc_histogram_quantile(&between, 0.5).value)); /* nothing came */
}

/* Values drawn evenly: where bounds are dense the quantile is the law's, and the value of that rank
 * always lies in the bucket that is named. */
static void quantiles_are_those_of_values(void **state)
{
    double value[1000];
    uint64_t rng = kvc_rng_stream(7, "buckets");
    struct kvc_histogram even = {0}, odd = {0};

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        value[i] = 8 * ((double)i + 0.5) / 1000;
        for (int le = 1; le <= 9; le++)
            kvc_histogram_add(&even, le < 9 ? (double)le : (double)INFINITY,
                              le == 9 || value[i] <= le);
    }
    for (double q = 0.05; q < 1; q += 0.05)
        assert_true(fabs(kvc_histogram_quantile(&even, q).value - 8 * q) < 1e-9);
    for (size_t b = 0; b < 12; b++) {
        double le = b < 11 ? 9 * (double)kvc_rng_below(&rng, 1000) / 1000 : INFINITY;
        double n = 0;
        for (size_t i = 0; i < 1000; i++)
            n += value[i] <= le;
        if (b == 11 || n > 0)
            kvc_histogram_add(&odd, le, n);
    }
    for (size_t rank = 1; rank <= 1000; rank++) {
        struct kvc_histogram_value v = kvc_histogram_quantile(&odd, (double)rank / 1000);
        assert_true(value[rank - 1] > v.low && value[rank - 1] <= v.high);
        assert_true(v.value >= v.low && v.value <= v.high);
    }
}

static void buckets_are_read(void **state)
{
    static const char text[] =
        "vllm:time_to_first_token_seconds_bucket{engine=\"a,le=\\\"9\",le=\"0.1\","
        "model_name=\"m\"} 1\n"
        "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 3\n"
        "vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.1\",model_name=\"m\"} 2\n"
        "vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"+Inf\",model_name=\"m\"} 2\n"
        "vllm:time_per_output_token_seconds_bucket{le=\"7\"} 5\n" /* the newer name wins */
        "vllm:inter_token_latency_seconds_bucket{le=\"0.01\"} 4\n"
        "vllm:inter_token_latency_seconds_bucket{le=\"+Inf\"} 8\n";
    static const char bad[] = "vllm:time_to_first_token_seconds_bucket{engine=\"0\"} 1\n";
    struct kvc_scrape s;
    struct kvc_error err = {0};
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "/tmp/kvcast-buckets-%d", (int)getpid());
    assert_int_equal(kvc_outfile_put(path, text, strlen(text), NULL), KVC_OK);
    assert_int_equal(kvc_scrape_read(&s, path, NULL, NULL), KVC_OK);
    assert_true(s.ttft.n == 2 && s.ttft.le[0] == 0.1 && s.ttft.count[0] == 3);
    assert_true(isinf(s.ttft.le[1]) && s.ttft.count[1] == 5);
    assert_true(s.itl.n == 2 && s.itl.le[0] == 0.01 && s.itl.count[1] == 8);
    assert_int_equal(kvc_outfile_put(path, bad, strlen(bad), NULL), KVC_OK);
    assert_int_equal(kvc_scrape_read(&s, path, NULL, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "no upper bound"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scrapes_are_told_apart),
        cmocka_unit_test(a_start_between_scrapes_is_refused),
        cmocka_unit_test(quantiles_are_promql_s),
        cmocka_unit_test(quantiles_are_those_of_values),
        cmocka_unit_test(buckets_are_read),
        cmocka_unit_test(several_loads_tell_the_constants),
        cmocka_unit_test(without_waiting_and_prefill_less_is_told),
        cmocka_unit_test(names_of_sglang_and_of_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
