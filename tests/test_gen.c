/* SPDX-License-Identifier: Apache-2.0
 * Synthetic traffic has the statistics it promises. Each tolerance is five standard errors of the
 * figure, from the laws the generator states: a wrong law fails, chance does once in a million. */
#include "base/alloc.h"
#include "tests/trace_files.h"
#include "traces/profile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct kvc_trace *generate(const struct kvc_gen_config *c, struct kvc_import_report *r)
{
    const char *path = trace_path("gen.jsonl.zst");
    struct kvc_error err = { 0 };
    if (kvc_gen_write(c, path, &err) != KVC_OK)
        fail_msg("%s", err.text);
    struct kvc_trace *t = NULL;
    assert_int_equal(kvc_trace_open(&t, path, NULL, r, &err), KVC_OK);
    assert_int_equal(r->bad + r->odd + r->inversions + r->without_ids, 0);
    return t;
}

static void near(double value, double mean, double standard_error)
{
    if (fabs(value - mean) > 5 * standard_error)
        fail_msg("%g is more than 5 x %g from %g", value, standard_error, mean);
}

/* Standard deviation of an integer uniform over m - h .. m + h, h = floor(m / 2). */
static double uniform_sd(uint32_t m)
{
    double h = m / 2;
    return sqrt(h * (h + 1) / 3);
}

static void rag_chat_has_its_means(void **state)
{
    (void)state;
    struct kvc_gen_config c;
    struct kvc_import_report r;
    struct kvc_trace_stats s;
    struct kvc_profile p;
    kvc_gen_defaults(&c, "rag-chat");
    c.seed = 42;
    c.duration_ns *= 2;
    struct kvc_trace *t = generate(&c, &r);
    kvc_trace_stats(t, &s);
    assert_int_equal(kvc_profile_trace(t, &p, NULL), KVC_OK);
    double n = (double)s.requests, seconds = (double)c.duration_ns * 1e-9;
    double sessions = seconds * c.sessions_per_s;
    assert_int_equal(s.block_tokens, c.block_tokens);
    near((double)s.sessions, sessions, sqrt(sessions)); /* Poisson */
    near(p.output_tokens.mean, c.output_tokens, uniform_sd(c.output_tokens) / sqrt(n));
    assert_true(p.output_tokens.max <= c.output_tokens * 1.5);
    double think = (double)c.think_mean_ns * 1e-9;
    near(p.think_s.mean, think, think / sqrt((double)p.think_s.count)); /* exponential */
    near(p.think_s.p50, think * log(2), think / sqrt((double)p.think_s.count)); /* its median */

    /* First turns: system + context + one text, of a uniform law; all turns of a session that
     * ended within the time are there. */
    double first = 0, firsts = 0, full = 0;
    uint32_t *turns = kvc_calloc(t->n_sessions, sizeof(*turns));
    for (uint64_t i = 0; i < t->n_requests; i++) {
        if (turns[t->session[i]]++ == 0) {
            first += t->input_tokens[i];
            firsts++;
        }
        assert_true((t->think_ns[i] == KVC_TIME_NONE) == (turns[t->session[i]] == 1));
    }
    for (uint32_t i = 0; i < t->n_sessions; i++) {
        assert_true(turns[i] <= c.turns);
        full += turns[i] == c.turns;
    }
    near(first / firsts, c.system_tokens + c.context_tokens + c.turn_tokens,
         uniform_sd(c.turn_tokens) / sqrt(firsts));
    assert_true(full > 0.9 * firsts);
    kvc_free(turns);

    /* Every answer with a next turn inside the time is known. */
    assert_int_equal(p.outputs_known, t->n_requests - t->n_sessions);
    kvc_profile_clear(&p);
    kvc_trace_destroy(t);
}

/* The most popular document of D under Zipf's law is drawn with probability 1 / H(D). */
static void documents_follow_zipf(void **state)
{
    (void)state;
    struct kvc_gen_config c;
    struct kvc_import_report r;
    kvc_gen_defaults(&c, "rag-chat");
    c.seed = 7;
    c.turns = 1;
    c.documents = 50;
    c.context_tokens = 64;
    c.system_tokens = 32;
    c.turn_tokens = 100;
    c.sessions_per_s = 10;
    struct kvc_trace *t = generate(&c, &r);
    double harmonic = 0, n = (double)t->n_requests;
    uint64_t *count = kvc_calloc(t->n_segments, sizeof(*count)), most = 0;
    uint32_t path[16], distinct = 0;
    for (uint32_t i = 1; i <= c.documents; i++)
        harmonic += 1.0 / i;
    for (uint64_t i = 0; i < t->n_requests; i++) {
        assert_int_equal(kvc_trace_path(t, t->prompt_seg[i], path), 3); /* system, document, own */
        assert_int_equal(t->seg_len[path[0]], 2);
        assert_int_equal(t->seg_len[path[1]], 4);
        if (++count[path[1]] > most)
            most = count[path[1]];
        distinct += count[path[1]] == 1;
    }
    double share = 1 / harmonic;
    near((double)most, n * share, sqrt(n * share * (1 - share))); /* binomial */
    assert_int_equal(distinct, c.documents);
    assert_null(t->session);
    kvc_free(count);
    kvc_trace_destroy(t);
}

/* Turn k + 1 holds turn k's full blocks and its answer's. */
static void turns_contain_what_came_before(void **state)
{
    (void)state;
    static const char *const kinds[] = { "rag-chat", "agent" };
    for (size_t k = 0; k < 2; k++) {
        struct kvc_gen_config c;
        struct kvc_import_report r;
        kvc_gen_defaults(&c, kinds[k]);
        c.duration_ns = 300000000000;
        c.system_tokens = 777; /* ends within a block */
        struct kvc_trace *t = generate(&c, &r);
        uint32_t before[4096], now[4096];
        uint64_t *last = kvc_malloc(t->n_sessions, sizeof(*last));
        memset(last, 0xff, t->n_sessions * sizeof(*last));
        for (uint64_t i = 0; i < t->n_requests; i++) {
            uint64_t j = last[t->session[i]];
            last[t->session[i]] = i;
            if (j == UINT64_MAX)
                continue;
            assert_true(t->input_tokens[i] > t->input_tokens[j] + t->output_tokens[j]);
            uint32_t n = kvc_trace_path(t, t->output_seg[j], before);
            assert_true(kvc_trace_path(t, t->prompt_seg[i], now) >= n);
            assert_memory_equal(before, now, n * sizeof(now[0]));
            uint32_t end = before[n - 1];
            assert_int_equal(t->seg_depth[end] + t->seg_len[end],
                             (t->input_tokens[j] + t->output_tokens[j] - 1) / c.block_tokens);
        }
        kvc_free(last);
        kvc_trace_destroy(t);
    }
}

static void equal_seeds_give_equal_logs(void **state)
{
    (void)state;
    char digest[3][24];
    for (uint64_t i = 0; i < 3; i++) {
        struct kvc_gen_config c;
        struct kvc_import_report r;
        kvc_gen_defaults(&c, "shared-prompt");
        c.seed = i / 2 + 9;
        struct kvc_trace *t = generate(&c, &r);
        memcpy(digest[i], t->digest, sizeof(digest[i]));
        kvc_trace_destroy(t);
    }
    assert_string_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
}

static void wrong_settings_are_refused(void **state)
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
    assert_int_equal(trace_folder_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rag_chat_has_its_means),
        cmocka_unit_test(documents_follow_zipf),
        cmocka_unit_test(turns_contain_what_came_before),
        cmocka_unit_test(equal_seeds_give_equal_logs),
        cmocka_unit_test(wrong_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
