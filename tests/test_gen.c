/* SPDX-License-Identifier: Apache-2.0
 * Synthetic traffic has the statistics it promises. Each tolerance is five standard errors of the
 * figure, from the laws the generator states: a wrong law fails, chance does once in a million. */
#include "base/alloc.h"
#include "tests/trace_files.h"
#include "traces/profile/profile.h"

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

/* ---- what the flags say, over several seeds ---- */

#define SEEDS 4

/* Exceeded with odds of about one in a million (Wilson and Hilferty 1931). */
static void chi_square_is_likely(const double *count, const double *share, unsigned n)
{
    double chi2 = 0, sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += count[i];
    for (unsigned i = 0; i < n; i++)
        chi2 += (count[i] - sum * share[i]) * (count[i] - sum * share[i]) / (sum * share[i]);
    double h = 2.0 / (9.0 * (n - 1)), z = (cbrt(chi2 / (n - 1)) - (1 - h)) / sqrt(h);
    if (!(z < 4.75))
        fail_msg("chi-square %g at %u degrees of freedom", chi2, n - 1);
}

/* u is uniform in [0, 1) if the law is right. */
static void add_to(double bins[20], double u)
{
    size_t k = (size_t)(u * 20);
    bins[k < 20 ? k : 19]++;
}

static void bins_are_uniform(const double bins[20])
{
    double share[20];
    for (size_t i = 0; i < 20; i++)
        share[i] = 0.05;
    chi_square_is_likely(bins, share, 20);
}

/* Where each session begins; requests come in order, so that these do. */
static double *starts(const struct kvc_trace *t, size_t *n)
{
    double *out = kvc_malloc(t->n_requests, sizeof(*out));
    bool *seen = kvc_calloc(t->n_sessions ? t->n_sessions : 1, sizeof(*seen));
    *n = 0;
    for (uint64_t i = 0; i < t->n_requests; i++) {
        if (t->session && seen[t->session[i]])
            continue;
        if (t->session)
            seen[t->session[i]] = true;
        out[(*n)++] = (double)t->arrival_ns[i] * 1e-9;
    }
    kvc_free(seen);
    return out;
}

/* Number of sessions and CV of their gaps. The standard error of a CV is that of gamma laws: CV^2 /
 * n ((kurtosis - 1) / 4 - skewness CV + CV^2), with skewness 2 CV and kurtosis 3 + 6 CV^2. */
static void bursts_have_their_cv(void **state)
{
    (void)state;
    static const double cvs[] = { 0.3, 1, 2 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (size_t k = 0; k < 3; k++) {
            struct kvc_gen_config c;
            struct kvc_import_report r;
            size_t n;
            double cv = cvs[k], sum = 0, square = 0;
            kvc_gen_defaults(&c, "shared-prompt");
            c.seed = seed;
            c.block_tokens = 512;
            c.burstiness = cv;
            c.sessions_per_s = 2;
            c.duration_ns *= 3;
            struct kvc_trace *t = generate(&c, &r);
            double *at = starts(t, &n), expected = 2 * 3 * 3600;
            /* A renewal process that begins with a whole gap: (CV^2 - 1) / 2 more on average. */
            near((double)n, expected + (cv * cv - 1) / 2, cv * sqrt(expected));
            for (size_t i = 1; i < n; i++) {
                sum += at[i] - at[i - 1];
                square += (at[i] - at[i - 1]) * (at[i] - at[i - 1]);
            }
            double m = (double)n - 1, mean = sum / m, sd = sqrt(square / m - mean * mean);
            double kurtosis = 3 + 6 * cv * cv;
            near(sd / mean, cv,
                 cv * sqrt(((kurtosis - 1) / 4 - 2 * cv * cv + cv * cv) / m));
            kvc_free(at);
            kvc_trace_destroy(t);
        }
    }
}

/* Sessions in each twelfth of a day, over three days, against the integral of the wave. */
static void days_have_their_wave(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kvc_gen_config c;
        struct kvc_import_report r;
        size_t n;
        double count[12] = { 0 }, share[12], pi = acos(-1);
        kvc_gen_defaults(&c, "shared-prompt");
        c.seed = seed;
        c.block_tokens = 512;
        c.diurnal = 0.8;
        c.day_ns = 1200000000000;
        c.sessions_per_s = 4;
        struct kvc_trace *t = generate(&c, &r);
        double *at = starts(t, &n);
        near((double)n, 4 * 3600, sqrt(4 * 3600));
        /* The first request is the log's zero: a fraction of a second late, which a bin of 100 s
         * does not feel. */
        for (size_t i = 0; i < n; i++)
            count[(size_t)(fmod(at[i], 1200) / 100)]++;
        for (size_t i = 0; i < 12; i++)
            share[i] = 1.0 / 12 + 0.8 / (2 * pi) * (cos(2 * pi * (double)i / 12) -
                                                    cos(2 * pi * (double)(i + 1) / 12));
        chi_square_is_likely(count, share, 12);
        kvc_free(at);
        kvc_trace_destroy(t);
    }
}

static void lengths_have_their_spread(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kvc_gen_config c;
        struct kvc_import_report r;
        double bins[20] = { 0 }, uniform[20] = { 0 }, sum = 0, text = 0, s2 = log1p(0.64);
        kvc_gen_defaults(&c, "shared-prompt");
        c.seed = seed;
        c.block_tokens = 512;
        c.length_cv = 0.8;
        c.turn_tokens = 2000;
        c.output_tokens = 1500;
        struct kvc_trace *t = generate(&c, &r);
        double n = (double)t->n_requests;
        for (uint64_t i = 0; i < t->n_requests; i++) {
            double x = t->output_tokens[i];
            sum += x;
            text += t->input_tokens[i] - c.system_tokens;
            add_to(bins, 0.5 * erfc(-(log(x / 1500) + s2 / 2) / sqrt(2 * s2)));
        }
        near(sum / n, 1500, 0.8 * 1500 / sqrt(n));
        near(text / n, 2000, 0.8 * 2000 / sqrt(n));
        bins_are_uniform(bins);
        kvc_trace_destroy(t);
        c.length_cv = 0; /* uniform: 750 .. 2250 */
        t = generate(&c, &r);
        for (uint64_t i = 0; i < t->n_requests; i++) {
            assert_true(t->output_tokens[i] >= 750 && t->output_tokens[i] <= 2250);
            add_to(uniform, (t->output_tokens[i] - 750) / 1501.0);
        }
        bins_are_uniform(uniform);
        kvc_trace_destroy(t);
    }
}

static void all_documents_follow_zipf(void **state)
{
    (void)state;
    static const double exponents[] = { 0, 1, 1.4 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (size_t e = 0; e < 3; e++) {
            struct kvc_gen_config c;
            struct kvc_import_report r;
            uint32_t path[16];
            double count[30] = { 0 }, share[30], sum = 0, sorted[30] = { 0 };
            kvc_gen_defaults(&c, "rag-chat");
            c.seed = seed;
            c.zipf = exponents[e];
            c.turns = 1;
            c.documents = 30;
            c.context_tokens = 64;
            c.system_tokens = 32;
            c.sessions_per_s = 10;
            struct kvc_trace *t = generate(&c, &r);
            /* Ranks are told from counts, which are far apart but for equal shares. */
            uint64_t *of = kvc_calloc(t->n_segments, sizeof(*of));
            for (uint64_t i = 0; i < t->n_requests; i++) {
                assert_int_equal(kvc_trace_path(t, t->prompt_seg[i], path), 3);
                of[path[1]]++;
            }
            size_t n = 0;
            for (uint32_t s = 0; s < t->n_segments; s++)
                if (t->seg_depth[s] == 2 && t->seg_len[s] == 4)
                    count[n++] = (double)of[s];
            assert_int_equal(n, 30);
            for (size_t i = 0; i < 30; i++) {
                size_t rank = 0;
                for (size_t k = 0; k < 30; k++)
                    rank += count[k] > count[i] || (count[k] == count[i] && k < i);
                sorted[rank] = count[i];
                sum += share[i] = pow((double)i + 1, -exponents[e]);
            }
            for (size_t i = 0; i < 30; i++)
                share[i] /= sum;
            chi_square_is_likely(exponents[e] == 0 ? count : sorted, share, 30);
            kvc_free(of);
            kvc_trace_destroy(t);
        }
    }
}

/* Gaps are a person's or a tool's, each exponential. */
static void tools_and_people_have_their_gaps(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kvc_gen_config c;
        struct kvc_import_report r;
        double bins[20] = { 0 }, sum = 0, n = 0, share = 4.0 / 5;
        kvc_gen_defaults(&c, "agent");
        c.seed = seed;
        c.block_tokens = 512;
        c.duration_ns *= 4;
        c.tool_calls = 4;
        c.tool_gap_mean_ns = 2000000000;
        c.think_mean_ns = 40000000000;
        c.sessions_per_s = 0.3;
        c.context_tokens = c.system_tokens = 64;
        struct kvc_trace *t = generate(&c, &r);
        uint32_t *turns = kvc_calloc(t->n_sessions, sizeof(*turns));
        for (uint64_t i = 0; i < t->n_requests; i++)
            turns[t->session[i]]++;
        uint32_t *seen = kvc_calloc(t->n_sessions, sizeof(*seen));
        for (uint64_t i = 0; i < t->n_requests; i++) {
            /* Sessions cut by the log's end have lost long gaps more often than short ones. */
            if (turns[t->session[i]] < c.turns || !seen[t->session[i]]++)
                continue;
            double gap = (double)t->think_ns[i] * 1e-9;
            sum += gap;
            n++;
            add_to(bins, 1 - share * exp(-gap / 2) - (1 - share) * exp(-gap / 40));
        }
        double mean = share * 2 + (1 - share) * 40;
        double variance = 2 * (share * 4 + (1 - share) * 1600) - mean * mean;
        /* Complete sessions are those that did not begin late, whatever their gaps, but for the
         * few that a long gap pushes over the end: less than 1 % of the mean. */
        if (fabs(sum / n - mean) > 5 * sqrt(variance / n) + 0.01 * mean)
            fail_msg("mean gap %g, expected %g", sum / n, mean);
        bins_are_uniform(bins);
        kvc_free(turns);
        kvc_free(seen);
        kvc_trace_destroy(t);
    }
}

static void tenants_and_models_are_drawn_by_session(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kvc_gen_config c;
        struct kvc_import_report r;
        static const char *const names[] = { "big", "mid", "small" };
        double model[3] = { 0 }, tenant[5] = { 0 }, both[15] = { 0 }, shares[15], h = 0;
        const double weight[3] = { 0.1, 0.3, 0.6 };
        double zipf[5];
        kvc_gen_defaults(&c, "rag-chat");
        c.seed = seed;
        c.block_tokens = 512;
        c.turns = 3;
        c.models = "big=1,mid=3,small=6";
        c.tenants = 5;
        c.sessions_per_s = 2;
        c.context_tokens = c.system_tokens = 64;
        struct kvc_trace *t = generate(&c, &r);
        uint32_t *of = kvc_malloc(t->n_sessions, sizeof(*of));
        memset(of, 0xff, t->n_sessions * sizeof(*of));
        assert_int_equal(t->n_models, 3);
        assert_int_equal(t->n_tenants, 5);
        for (uint64_t i = 0; i < t->n_requests; i++) {
            uint32_t m = 0, w = (uint32_t)(t->tenant_names[t->tenant[i]][1] - '0');
            while (strcmp(names[m], t->model_names[t->model[i]]) != 0)
                m++;
            uint32_t *s = &of[t->session[i]];
            assert_true(*s == UINT32_MAX || *s == w * 3 + m); /* the session keeps them */
            if (*s != UINT32_MAX)
                continue;
            *s = w * 3 + m;
            model[m]++;
            tenant[w]++;
            both[*s]++;
        }
        for (size_t i = 0; i < 5; i++)
            h += zipf[i] = 1.0 / (double)(i + 1);
        for (size_t i = 0; i < 5; i++)
            zipf[i] /= h;
        for (size_t i = 0; i < 15; i++)
            shares[i] = zipf[i / 3] * weight[i % 3];
        chi_square_is_likely(model, weight, 3);
        chi_square_is_likely(tenant, zipf, 5);
        chi_square_is_likely(both, shares, 15); /* independent */
        kvc_free(of);
        kvc_trace_destroy(t);
    }
}

/* What is shared follows from lengths alone: the system prompt by all, a document by its sessions,
 * a session's own blocks by its turns; a partial last block by none. */
static void sharing_is_what_the_lengths_say(void **state)
{
    (void)state;
    static const char *const kinds[] = { "rag-chat", "agent", "shared-prompt" };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (size_t k = 0; k < 3; k++) {
            struct kvc_gen_config c;
            struct kvc_import_report r;
            struct kvc_trace_stats s;
            struct kvc_hits h;
            kvc_gen_defaults(&c, kinds[k]);
            c.seed = seed;
            c.system_tokens += (uint32_t)seed * 5; /* not whole blocks */
            c.duration_ns /= k == 1 ? 20 : 3;
            struct kvc_trace *t = generate(&c, &r);
            kvc_trace_stats(t, &s);
            uint64_t b = c.block_tokens, system = c.system_tokens / b, distinct = system;
            uint64_t shared = c.documents ? (c.system_tokens + c.context_tokens) / b : system;
            uint64_t touches = 0, own = 0, documents = 0;
            uint64_t *longest = kvc_calloc(t->n_sessions ? t->n_sessions : t->n_requests,
                                           sizeof(*longest));
            for (uint64_t i = 0; i < t->n_requests; i++) {
                uint64_t full = t->input_tokens[i] / b, at = t->session ? t->session[i] : i;
                own += t->input_tokens[i] % b != 0;
                touches += full + (t->input_tokens[i] % b != 0);
                if (full > longest[at])
                    longest[at] = full;
            }
            for (uint64_t i = 0; i < (t->n_sessions ? t->n_sessions : t->n_requests); i++)
                own += longest[i] > shared ? longest[i] - shared : 0;
            for (uint32_t g = 0; c.documents && g < t->n_segments; g++)
                documents += t->seg_depth[g] == system;
            distinct += own + documents * (shared - system);
            assert_int_equal(s.block_touches, touches);
            assert_int_equal(s.blocks, distinct);
            assert_int_equal(kvc_ceiling_content(t, &h, NULL), KVC_OK);
            assert_int_equal(h.raw_hit_blocks, touches - distinct);
            if (c.documents) { /* those drawn at least once: sum of 1 - (1 - p)^n, to within sd */
                double harmonic = 0, expected = 0, variance = 0;
                for (uint32_t i = 1; i <= c.documents; i++)
                    harmonic += 1.0 / i;
                for (uint32_t i = 1; i <= c.documents; i++) {
                    double none = pow(1 - 1 / (i * harmonic), (double)t->n_sessions);
                    expected += 1 - none;
                    variance += none * (1 - none); /* an upper bound: they exclude each other */
                }
                near((double)documents, expected, sqrt(variance));
            }
            kvc_free(longest);
            kvc_trace_destroy(t);
        }
    }
}

static void thinking_is_exponential(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kvc_gen_config c;
        struct kvc_import_report r;
        double bins[20] = { 0 };
        kvc_gen_defaults(&c, "rag-chat");
        c.seed = seed;
        c.block_tokens = 512;
        c.duration_ns *= 2;
        c.context_tokens = c.system_tokens = 64;
        struct kvc_trace *t = generate(&c, &r);
        uint32_t *turns = kvc_calloc(t->n_sessions, sizeof(*turns));
        for (uint64_t i = 0; i < t->n_requests; i++)
            turns[t->session[i]]++;
        for (uint64_t i = 0; i < t->n_requests; i++)
            if (t->think_ns[i] != KVC_TIME_NONE && turns[t->session[i]] == c.turns)
                add_to(bins, -expm1(-(double)t->think_ns[i] / (double)c.think_mean_ns));
        bins_are_uniform(bins);
        kvc_free(turns);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rag_chat_has_its_means),
        cmocka_unit_test(documents_follow_zipf),
        cmocka_unit_test(turns_contain_what_came_before),
        cmocka_unit_test(bursts_have_their_cv),
        cmocka_unit_test(days_have_their_wave),
        cmocka_unit_test(lengths_have_their_spread),
        cmocka_unit_test(all_documents_follow_zipf),
        cmocka_unit_test(tools_and_people_have_their_gaps),
        cmocka_unit_test(tenants_and_models_are_drawn_by_session),
        cmocka_unit_test(sharing_is_what_the_lengths_say),
        cmocka_unit_test(thinking_is_exponential),
        cmocka_unit_test(equal_seeds_give_equal_logs),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
