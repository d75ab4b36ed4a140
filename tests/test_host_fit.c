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
    if (kvc_host_fit_scrapes(f, paths, n, s, &err) != KVC_OK)
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
    expect(&f, KVC_HOST_SEQUENCE, 1);
    expect(&f, KVC_HOST_PREFILL, 0.2);
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
    assert_int_equal(kvc_scrape_read(&s, path, NULL), KVC_OK);
    assert_true(s.sglang && !strcmp(s.model, "m"));
    assert_true(s.value[KVC_METRIC_TTFT_SUM] == 2 && s.value[KVC_METRIC_TTFT_COUNT] == 4);
    assert_true(s.value[KVC_METRIC_ITL_SUM] == 2.5 && isnan(s.value[KVC_METRIC_ITL_COUNT]));
    assert_true(s.value[KVC_METRIC_RUNNING] == 7 && s.value[KVC_METRIC_PROMPT] == 1000);
    static const char bad[] = "vllm:prompt_tokens_total{a=\"b\"} many\n";
    assert_int_equal(kvc_outfile_put(path, bad, strlen(bad), NULL), KVC_OK);
    assert_int_equal(kvc_scrape_read(&s, path, &err), KVC_ERR_INPUT);
    assert_int_equal(err.line, 1);
    assert_string_equal(err.field, "prompt_tokens");
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_loads_tell_the_constants),
        cmocka_unit_test(without_waiting_and_prefill_less_is_told),
        cmocka_unit_test(names_of_sglang_and_of_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
