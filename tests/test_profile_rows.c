/* SPDX-License-Identifier: Apache-2.0
 * What a profile tells of rows alone, times and lengths: closed forms, a twin, and what is offered
 * where a log knows no prefixes. */
#include "base/rng.h"
#include "traces/profile/profile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S 1000000000ull

static struct kvc_profile profile_of(const struct kvc_trace *t)
{
    struct kvc_profile p;
    struct kvc_error err;
    assert_int_equal(kvc_profile_trace(t, &p, &err), KVC_OK);
    return p;
}

/* A trace of lengths and times only, as of a log without ids. */
struct plain {
    struct kvc_trace t;
    uint64_t arrival[1000];
    uint32_t input[1000], output[1000], seg[1000], session[1000], model[1000], cached[1000];
    uint8_t status[1000];
};

static struct kvc_trace *plain(struct plain *p, uint64_t n)
{
    memset(p, 0, sizeof(*p));
    memset(p->seg, 0xff, sizeof(p->seg));
    p->t = (struct kvc_trace){.n_requests = n, .arrival_ns = p->arrival, .input_tokens = p->input,
                              .output_tokens = p->output, .prompt_seg = p->seg};
    for (uint64_t i = 0; i < n; i++)
        p->input[i] = p->output[i] = 1;
    return &p->t;
}

static void test_regular_arrivals(void **state)
{
    (void)state;
    static struct plain a;
    struct kvc_trace *t = plain(&a, 601); /* one a second, 10 minutes */
    for (uint64_t i = 0; i < 601; i++)
        a.arrival[i] = i * S;
    struct kvc_profile p = profile_of(t);
    assert_true(p.gap_cv == 0);
    assert_true(p.counts[0].dispersion == 0 && p.counts[1].dispersion == 0);
    assert_int_equal(p.counts[0].windows, 600);
    assert_int_equal(p.counts[2].windows, 10);
    assert_true(p.counts[2].dispersion == 0 && p.peak_requests_per_s == 1);
    assert_int_equal(p.rate_window_ns, 10 * S); /* 5 s would make 121 of them */
    assert_int_equal(p.n_rates, 61);
    assert_int_equal(p.requests_in[59], 10);
    assert_int_equal(p.requests_in[60], 1);
    assert_true(p.start_per_s == 1 && p.steady_per_s == 1);
    kvc_profile_clear(&p);
}

/* k at once every k seconds: in 1 s, counts are k with probability 1/k, else 0: mean 1,
 * variance k - 1. In k seconds, always k. */
static void test_batches(void **state)
{
    (void)state;
    static struct plain a;
    struct kvc_trace_stats s;
    struct kvc_trace *t = plain(&a, 1000);
    for (uint64_t i = 0; i < 1000; i++)
        a.arrival[i] = i / 10 * 10 * S;
    struct kvc_profile p = profile_of(t);
    kvc_trace_stats(t, &s);
    assert_int_equal(s.batch_period_ns, 10 * S);
    assert_true(fabs(p.counts[0].dispersion - 9) < 1e-9);
    assert_true(fabs(p.counts[1].dispersion) < 1e-9);
    /* gaps: 99 of 10 s, 900 of 0 */
    double mean = 990.0 / 999, square = (99 * 100.0) / 999 - mean * mean;
    assert_true(fabs(p.gap_cv - sqrt(square) / mean) < 1e-9);
    kvc_profile_clear(&p);
}

/* A start at 1/92 of the rate of the rest, as BurstGPT's is. */
static void test_ramp(void **state)
{
    (void)state;
    static struct plain a;
    struct kvc_trace *t = plain(&a, 1000);
    uint64_t at = 0;
    for (uint64_t i = 1; i < 1000; i++) {
        at += at < 92 * S ? 92 * S : S;
        a.arrival[i] = at;
    }
    struct kvc_profile p = profile_of(t); /* 10 windows of 10 s are the first tenth */
    assert_int_equal(p.rate_window_ns, 10 * S);
    assert_true(p.steady_per_s == 1);
    double in_tenth = 0;
    for (uint64_t i = 0; i < 1000; i++)
        in_tenth += a.arrival[i] < 100 * S;
    assert_true(fabs(p.start_per_s - in_tenth / 100) < 1e-12 && p.start_per_s < 0.1);
    kvc_profile_clear(&p);
    plain(&a, 1); /* one moment has no rate */
    p = profile_of(t);
    assert_true(isnan(p.start_per_s) && p.n_rates == 0 && p.requests_per_s == 0);
    assert_true(isnan(p.counts[0].dispersion));
    kvc_profile_clear(&p);
    plain(&a, 0);
    p = profile_of(t);
    assert_int_equal(p.input_tokens.count, 0);
    kvc_profile_clear(&p);
}

static void test_dispersion_twin(void **state)
{
    (void)state;
    static struct plain a;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "dispersion"), at = 0;
        uint64_t n = 2 + kvc_rng_below(&rng, 998), scale = 1 + kvc_rng_below(&rng, 40);
        struct kvc_trace *t = plain(&a, n);
        for (uint64_t i = 1; i < n; i++) {
            at += kvc_rng_below(&rng, 5) ? 0 : kvc_rng_below(&rng, scale * S);
            a.arrival[i] = at;
        }
        struct kvc_profile p = profile_of(t);
        for (int k = 0; k < KVC_PROFILE_COUNTS; k++) {
            uint64_t w = p.counts[k].window_ns, windows = at / w;
            double sum = 0, square = 0;
            for (uint64_t i = 0; i < windows; i++) {
                double count = 0;
                for (uint64_t r = 0; r < n; r++)
                    count += a.arrival[r] >= i * w && a.arrival[r] < (i + 1) * w;
                sum += count;
                square += count * count;
            }
            double mean = sum / (double)windows, var = square / (double)windows - mean * mean;
            assert_int_equal(isnan(p.counts[k].dispersion), windows < 10);
            if (windows >= 10)
                assert_true(fabs(p.counts[k].dispersion - var / mean) < 1e-9 * var / mean + 1e-12);
        }
        kvc_profile_clear(&p);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    static struct plain a;
    struct kvc_trace *t = plain(&a, 6);
    const uint32_t input[] = {0, 1, 2, 3, 4, UINT32_MAX}, output[] = {0, 0, 5, 8, 9, 1};
    memcpy(a.input, input, sizeof(input));
    memcpy(a.output, output, sizeof(output));
    a.status[1] = KVC_ROW_FAILED;
    a.status[2] = KVC_ROW_CANCELLED;
    t->row_status = a.status;
    memset(a.cached, 0xff, sizeof(a.cached));
    a.cached[3] = 2;
    a.cached[4] = 0;
    t->cached_tokens = a.cached;
    struct kvc_profile p = profile_of(t);
    uint64_t told = p.output_tokens.count;
    uint8_t unknown[16] = { [0] = 1 };
    assert_true(t->n_requests <= sizeof(unknown));
    t->output_unknown = unknown; /* one more of which nobody knows what it generated */
    struct kvc_profile q = profile_of(t);
    t->output_unknown = NULL;
    assert_int_equal(q.output_tokens.count, told - 1);
    assert_int_equal(q.unknown_output, 1);
    assert_int_equal(q.input_tokens.count, told);
    kvc_profile_clear(&q);
    assert_int_equal(p.input_requests[0], 1);
    assert_int_equal(p.input_requests[1], 1);
    assert_int_equal(p.input_requests[2], 2);
    assert_int_equal(p.input_requests[3], 1);
    assert_int_equal(p.input_requests[KVC_PROFILE_LENGTHS - 1], 1);
    assert_int_equal(p.input_sum[2], 5);
    assert_int_equal(p.output_requests[0], 2);
    assert_int_equal(p.output_requests[4], 2);
    assert_int_equal(p.zero_output, 2);
    assert_int_equal(p.failed, 1);
    assert_int_equal(p.cancelled, 1);
    assert_int_equal(p.cached_rows, 2);
    assert_int_equal(p.cached_of_tokens, 7);
    assert_int_equal(p.cached_tokens, 2);
    kvc_profile_clear(&p);
}

/* ---- logs without prefix information ---- */

static uint64_t offered(const struct kvc_profile *p, uint32_t shared, enum kvc_carry carry)
{
    for (uint32_t i = 0; i < p->n_offered; i++)
        if (p->offered[i].shared_tokens == shared && p->offered[i].carry == carry)
            return p->offered[i].seen_tokens;
    fail_msg("no offer of %u tokens and %d", shared, (int)carry);
    return 0;
}

/* The rows of case c15: the third turn shrank, so nothing is carried over. */
static void test_offered(void **state)
{
    (void)state;
    static struct plain a;
    struct kvc_trace *t = plain(&a, 5);
    const uint32_t input[] = {900, 36, 1350, 512, 30}, output[] = {440, 0, 90, 128, 15};
    memcpy(a.input, input, sizeof(input));
    memcpy(a.output, output, sizeof(output));
    struct kvc_profile p = profile_of(t);
    assert_int_equal(p.n_offered, 3); /* without sessions no turns */
    assert_int_equal(offered(&p, 256, KVC_CARRY_NONE), 36 + 256 + 256 + 30);
    assert_int_equal(offered(&p, 1024, KVC_CARRY_NONE), 36 + 900 + 512 + 30);
    assert_int_equal(offered(&p, 4096, KVC_CARRY_NONE), 36 + 900 + 512 + 30);
    assert_int_equal(p.offered[0].covered, 2);
    assert_int_equal(p.offered[1].covered, 4);
    assert_int_equal(p.offered[2].covered, 5);
    kvc_profile_clear(&p);
    memset(a.session, 0xff, sizeof(a.session));
    a.session[0] = a.session[2] = a.session[4] = 0;
    t->session = a.session;
    t->n_sessions = 1;
    p = profile_of(t);
    assert_int_equal(p.n_offered, KVC_PROFILE_OFFERED);
    assert_int_equal(p.shrunken_turns, 1);
    assert_int_equal(p.in_sessions, 3);
    assert_int_equal(offered(&p, 0, KVC_CARRY_PROMPT), 900);
    assert_int_equal(offered(&p, 0, KVC_CARRY_ANSWER), 1340);
    assert_int_equal(offered(&p, 1024, KVC_CARRY_ANSWER), 36 + 1340 + 512 + 30);
    kvc_profile_clear(&p);
    const uint32_t model[] = {0, 1, 0, 1, 0}; /* KV of one model is nothing to another */
    memcpy(a.model, model, sizeof(model));
    t->model = a.model;
    t->n_models = 2;
    p = profile_of(t);
    assert_int_equal(offered(&p, 256, KVC_CARRY_NONE), 256 + 36 + 30);
    kvc_profile_clear(&p);
}

/* Where no turn can hold the one before, nothing is assumed of turns; where nothing can be had at
 * all, nothing is offered. */
static void test_nothing_to_offer(void **state)
{
    (void)state;
    static struct plain a;
    struct kvc_trace *t = plain(&a, 2);
    a.input[0] = 100;
    a.input[1] = 90;
    t->session = a.session;
    t->n_sessions = 1;
    struct kvc_profile p = profile_of(t);
    assert_int_equal(p.n_offered, 3);
    assert_int_equal(p.shrunken_turns, 1);
    assert_int_equal(offered(&p, 256, KVC_CARRY_NONE), 90);
    kvc_profile_clear(&p);
    t->n_requests = 1;
    p = profile_of(t);
    assert_int_equal(p.n_offered, 0);
    kvc_profile_clear(&p);
}

/* The rows of cases c13 and c15 themselves. */
static void test_cases(void **state)
{
    (void)state;
    static const char *const paths[] = {"../shared/cases/inputs/c13-fraction-digits.azure2023.csv",
                                        "../shared/cases/inputs/"
                                        "c15-failures-and-offset.burstgpt.csv"};
    for (int i = 0; i < 2; i++) {
        struct kvc_trace *t = NULL;
        struct kvc_error err;
        FILE *f = fopen(paths[i], "rb");
        if (!f) {
            print_message("SKIPPED: %s is not here\n", paths[i]);
            skip();
            return;
        }
        fclose(f);
        if (kvc_trace_import(&t, &paths[i], 1, NULL, NULL, &err) != KVC_OK)
            fail_msg("%s: %s", paths[i], err.text);
        struct kvc_profile p = profile_of(t);
        assert_int_equal(t->n_segments, 0);
        assert_true(p.n_offered >= 3);
        if (i) { /* one failure; a third turn that shrank */
            assert_int_equal(p.failed, 1);
            assert_int_equal(p.shrunken_turns, 1);
            assert_int_equal(p.in_sessions, 3);
            assert_int_equal(offered(&p, 0, KVC_CARRY_ANSWER), 1340);
        }
        kvc_profile_clear(&p);
        kvc_trace_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regular_arrivals), cmocka_unit_test(test_batches),
        cmocka_unit_test(test_ramp),             cmocka_unit_test(test_dispersion_twin),
        cmocka_unit_test(test_lengths),          cmocka_unit_test(test_offered),
        cmocka_unit_test(test_nothing_to_offer), cmocka_unit_test(test_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
