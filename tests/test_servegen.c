/* SPDX-License-Identifier: Apache-2.0
 * Requests drawn from ServeGen's models have the models' counts exactly, and their gaps' and
 * lengths' laws within five standard errors, or the chi-square that chance gives once in a
 * million. */
#include "base/json.h"
#include "tests/trace_files.h"
#include "traces/synthetic/servegen.h"
#include "traces/synthetic/variates.h"
#include "traces/trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED "../shared/traces/servegen/"

static void near(double value, double mean, double standard_error, const char *what)
{
    if (!(fabs(value - mean) <= 5 * standard_error))
        fail_msg("%s: %g is more than 5 x %g from %g", what, value, standard_error, mean);
}

/* Exceeded with odds of about one in a million (Wilson and Hilferty 1931). */
static void chi_square_is_likely(double chi2, unsigned freedom, const char *what)
{
    double h = 2.0 / (9.0 * freedom), z = (cbrt(chi2 / freedom) - (1 - h)) / sqrt(h);
    if (!(z < 4.75))
        fail_msg("%s: chi-square %g at %u degrees of freedom", what, chi2, freedom);
}

/* ---- the variates ---- */

/* Shares of k equally likely bins, u in [0, 1) being uniform if the law is right. */
struct bins {
    uint64_t count[20], n;
};

static void add(struct bins *b, double u)
{
    size_t k = (size_t)(u * 20);
    b->count[k < 20 ? k : 19]++;
    b->n++;
}

static void uniform(const struct bins *b, const char *what)
{
    double chi2 = 0, e = (double)b->n / 20;
    for (size_t i = 0; i < 20; i++)
        chi2 += ((double)b->count[i] - e) * ((double)b->count[i] - e) / e;
    chi_square_is_likely(chi2, 19, what);
}

static double gamma_cdf(double shape, double x) /* in closed form at 1/2, 1 and 2 */
{
    return shape == 0.5 ? erf(sqrt(x)) : shape == 1 ? -expm1(-x) : 1 - exp(-x) * (1 + x);
}

static void variates_have_their_laws(void **state)
{
    (void)state;
    static const double shapes[] = { 0.5, 1, 2 };
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t rng = kvc_rng_stream(seed, "variates");
        struct bins normal = { 0 }, weibull = { 0 };
        for (size_t s = 0; s < 3; s++) {
            struct bins b = { 0 };
            for (int i = 0; i < 20000; i++)
                add(&b, gamma_cdf(shapes[s], kvc_draw_gamma(&rng, shapes[s])));
            uniform(&b, "gamma");
        }
        for (int i = 0; i < 20000; i++) {
            add(&normal, 0.5 * erfc(-kvc_draw_normal(&rng) / sqrt(2)));
            add(&weibull, -expm1(-pow(kvc_draw_weibull(&rng, 0.3), 0.3)));
        }
        uniform(&normal, "normal");
        uniform(&weibull, "weibull");
        double sum = 0;
        for (int i = 0; i < 20000; i++)
            sum += (double)kvc_draw_round(&rng, 3.3);
        near(sum / 20000, 3.3, sqrt(0.21 / 20000), "rounding");
    }
}

/* ---- hand-made models ---- */

struct row {
    double s;
    uint32_t input, output, client;
};

struct rows {
    struct row *v;
    size_t n, cap;
};

/* Reads the JSON lines as a user of another tool would. */
static void parse(struct rows *out, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[400];
    double before = 0;
    assert_non_null(f);
    out->n = 0;
    while (fgets(line, sizeof(line), f)) {
        struct row r;
        double ms;
        assert_int_equal(sscanf(line, "{\"timestamp\": %lf, \"input_length\": %u, "
                                      "\"output_length\": %u, \"tenant\": "
                                      "\"client-%u\"}", &ms, &r.input, &r.output,
                                &r.client), 4);
        r.s = ms / 1000;
        assert_true(r.s >= before);
        before = r.s;
        if (out->n == out->cap) {
            out->cap = out->cap ? 2 * out->cap : 1024;
            out->v = realloc(out->v, out->cap * sizeof(*out->v));
            assert_non_null(out->v);
        }
        out->v[out->n++] = r;
    }
    fclose(f);
}

static void draw(struct rows *out, const char *models, uint64_t seed, uint64_t from_s,
                 uint64_t duration_s, double rate, struct kvc_servegen_report *r)
{
    struct kvc_servegen_config c = { .struct_size = sizeof(c), .seed = seed,
                                     .from_ns = from_s * 1000000000,
                                     .duration_ns = duration_s * 1000000000,
                                     .requests_per_s = rate };
    struct kvc_error err = { 0 };
    if (kvc_servegen_write(&c, models, trace_path("drawn.jsonl"), r, &err) != KVC_OK)
        fail_msg("%s:%llu:%s: %s", err.file, (unsigned long long)err.line, err.field, err.text);
    parse(out, trace_path("drawn.jsonl"));
    assert_int_equal(out->n, r->requests);
}

static void model_file(const char *name, const char *text)
{
    trace_text(name, text);
}

static const char *hand_made(void)
{
    model_file("chunk-0-trace.csv", "0,100,1.41,Gamma,0.5,0.02\r\n600,0,0,,0,0\r\n"
                                    "1200,50,0.7,Gamma,2,0.01\r\n");
    model_file("chunk-0-dataset.json",
               "{\"0\": {\"input_tokens\": \"{10: 0.5, 20: 0.3, 1000: 0.2}\", \"output_tokens\": "
               "\"{1: 0.25, 400: 0.75}\"}, \"1200\": {\"input_tokens\": \"{7: 1.0}\", "
               "\"output_tokens\": \"{0: 1.0}\"}}");
    model_file("chunk-7-trace.csv",
               "0,80,3,Weibull,0.6,9\n600,10,1,Weibull,1.5,9\n1200,0,0,,0,0\n");
    model_file("chunk-7-dataset.json",
               "{\"0\": {\"text_tokens\": \"{100: 1.0}\", \"image_count\": \"{0: 0.5, 2: 0.5}\", "
               "\"image_tokens\": \"{500: 0.5, 700: 0.5}\", \"output_tokens\": \"{5: 1.0}\"}}");
    model_file("chunk-9-trace.csv", "0,30,1,Gamma,1,1\n600,30,1,Gamma,1,1\n1200,0,0,,0,0\n");
    static char folder[256];
    snprintf(folder, sizeof(folder), "%s", trace_path(""));
    folder[strlen(folder) - 1] = '\0';
    return folder;
}

/* Gaps of one client's window, the one before the first and the one behind the last included. */
static size_t gaps_of(const struct rows *rows, uint32_t client, double from, double to, double *gap)
{
    double last = from;
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->v[i];
        if (r->client != client || r->s < from || r->s >= to)
            continue;
        gap[n++] = r->s - last;
        last = r->s;
    }
    gap[n] = to - last;
    return n;
}

static double weibull_moment(double shape, int k)
{
    return tgamma(1 + k / shape);
}

/* Gaps in each window of the hand-made models, by the CDF of their law. */
static void gaps_are_the_models(const struct rows *rows)
{
    static double gap[70000];
    static const struct {
        uint32_t client;
        double from, shape;
        size_t n;
        bool gamma;
    } w[] = { { 0, 0, 0.5, 60000, true }, { 0, 1200, 2, 30000, true },
              { 7, 0, 0.6, 48000, false }, { 7, 600, 1.5, 6000, false },
              { 0, 600, 1, 0, true } };
    for (size_t i = 0; i < 5; i++) {
        struct bins b = { 0 };
        size_t n = gaps_of(rows, w[i].client, w[i].from, w[i].from + 600, gap);
        assert_int_equal(n, w[i].n);
        double mean = 600 / ((double)n + 1);
        for (size_t k = 0; n && k <= n; k++)
            add(&b, w[i].gamma
                        ? gamma_cdf(w[i].shape, gap[k] / mean * w[i].shape)
                        : -expm1(-pow(gap[k] / mean * weibull_moment(w[i].shape, 1), w[i].shape)));
        if (n)
            uniform(&b, "gaps");
    }
}

/* Shares of the lengths in the hand-made models; inputs and outputs are independent. */
static void lengths_are_the_models(const struct rows *rows)
{
    double cell[3][2] = { { 0 } }, images[4] = { 0 }, chi2 = 0;
    static const double p[3] = { 0.5, 0.3, 0.2 }, q[2] = { 0.25, 0.75 };
    static const double share[4] = { 0.5, 0.125, 0.25, 0.125 };
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *x = &rows->v[i];
        if (x->client == 0 && x->s < 600) {
            assert_true(x->input == 10 || x->input == 20 || x->input == 1000);
            assert_true(x->output == 1 || x->output == 400);
            cell[x->input == 10 ? 0 : x->input == 20 ? 1 : 2][x->output == 400]++;
        } else if (x->client == 0) {
            assert_true(x->input == 7 && x->output == 0);
        } else {
            assert_int_equal(x->client, 7);
            assert_int_equal(x->output, 5);
            assert_true(x->input == 100 || x->input == 1100 || x->input == 1300 ||
                        x->input == 1500);
            images[x->input == 100 ? 0 : x->input / 200 - 4]++;
        }
    }
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 2; b++) {
            double e = 60000 * p[a] * q[b];
            chi2 += (cell[a][b] - e) * (cell[a][b] - e) / e;
        }
    chi_square_is_likely(chi2, 5, "lengths");
    chi2 = 0;
    for (size_t a = 0; a < 4; a++)
        chi2 += (images[a] - 54000 * share[a]) * (images[a] - 54000 * share[a]) /
                (54000 * share[a]);
    chi_square_is_likely(chi2, 3, "image tokens");
}

static void counts_gaps_and_lengths_are_the_models(void **state)
{
    (void)state;
    const char *folder = hand_made();
    struct rows rows = { 0 };
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct kvc_servegen_report r;
        draw(&rows, folder, seed, 0, 0, 0, &r);
        assert_int_equal(r.clients, 3);
        assert_int_equal(r.clients_without_lengths, 1);
        assert_int_equal(r.without_lengths, 2 * 30 * 600);
        near(r.model_requests_per_s, (150 + 90 + 60) / 3.0, 1e-9, "the models' rate");
        near(r.requests_per_s_without_lengths, 20, 1e-9, "without lengths");
        gaps_are_the_models(&rows);
        lengths_are_the_models(&rows);
    }
    free(rows.v);
}

static void seeds_spans_and_rates(void **state)
{
    (void)state;
    const char *folder = hand_made();
    struct rows a = { 0 }, b = { 0 };
    struct kvc_servegen_report r;
    draw(&a, folder, 5, 0, 0, 0, &r);
    draw(&b, folder, 5, 0, 0, 0, &r);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.v, b.v, a.n * sizeof(*a.v));
    draw(&b, folder, 6, 0, 0, 0, &r);
    assert_int_equal(a.n, b.n);
    assert_memory_not_equal(a.v, b.v, a.n * sizeof(*a.v));
    /* What is drawn for a window does not depend on where one begins. */
    draw(&b, folder, 5, 600, 600, 0, &r);
    size_t k = 0;
    for (size_t i = 0; i < a.n; i++) {
        if (a.v[i].s < 600 || a.v[i].s >= 1200)
            continue;
        assert_true(k < b.n && fabs(a.v[i].s - 600 - b.v[k].s) < 1e-6);
        assert_int_equal(a.v[i].input, b.v[k].input);
        k++;
    }
    assert_int_equal(k, b.n);
    /* Scaled: mean of the span, shares of clients kept, counts within one. */
    draw(&b, folder, 5, 0, 1800, 0.7, &r);
    near((double)b.n, 0.7 * 1800, 1, "scaled rate");
    draw(&b, folder, 5, 0, 300, 0, &r);
    near((double)b.n, 180 * 300, 5 * sqrt(54000), "half a window"); /* CV below 3 */
    free(a.v);
    free(b.v);
}

static void wrong_models_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } bad[] = {
        { "chunk-1-trace.csv", "0,1,1,Gamma,1\n", "6 columns are expected" },
        { "chunk-1-trace.csv", "0,1,1,Gamma,1,1,1\n", "more than 6 columns" },
        { "chunk-1-trace.csv", "0.5,1,1,Gamma,1,1\n", "start of a window" },
        { "chunk-1-trace.csv", "0,-1,1,Gamma,1,1\n", "requests per second" },
        { "chunk-1-trace.csv", "0,nan,1,Gamma,1,1\n", "requests per second" },
        { "chunk-1-trace.csv", "0,1,1,Pareto,1,1\n", "Gamma or Weibull" },
        { "chunk-1-trace.csv", "0,1,1,Gamma,0,1\n", "a shape from" },
        { "chunk-1-trace.csv", "600,1,1,Gamma,1,1\n0,1,1,Gamma,1,1\n", "ascending" },
        { "chunk-1-dataset.json", "[]", "an object with windows" },
        { "chunk-1-dataset.json", "{\"x\": {}}", "start of its window" },
        { "chunk-1-dataset.json", "{\"0\": {\"input_tokens\": \"{1: 0.5}\"}}", "adding up to 1" },
        { "chunk-1-dataset.json", "{\"0\": {\"input_tokens\": \"{1: 2}\"}}", "adding up to 1" },
        { "chunk-1-dataset.json", "{\"0\": {\"input_tokens\": \"{-1: 1}\"}}", "adding up to 1" },
        { "chunk-1-dataset.json", "{\"0\": {\"input_tokens\": {}}}", "a text" },
        { "chunk-1-dataset.json", "{\"0\": ", "" },
    };
    struct kvc_error err;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct kvc_servegen m = { 0 };
        assert_int_equal(kvc_servegen_take(&m, bad[i].name, bad[i].text, strlen(bad[i].text), &err),
                         KVC_ERR_INPUT);
        if (!strstr(err.text, bad[i].says))
            fail_msg("\"%s\" lacks \"%s\"", err.text, bad[i].says);
        assert_string_equal(err.file, bad[i].name);
        kvc_servegen_clear(&m);
    }
    struct kvc_servegen m = { 0 };
    const char *row = "0,1,1,Gamma,1,1\n";
    assert_int_equal(kvc_servegen_take(&m, "a/chunk-1-trace.csv", row, 16, &err), KVC_OK);
    assert_int_equal(kvc_servegen_take(&m, "b/chunk-1-trace.csv", row, 16, &err), KVC_ERR_INPUT);
    assert_non_null(strstr(err.text, "twice"));
    assert_int_equal(kvc_servegen_take(&m, "b/README.md", "x", 1, &err), KVC_OK);
    kvc_servegen_clear(&m);
    struct kvc_servegen_config c = { .struct_size = sizeof(c), .from_ns = 1000000000 };
    assert_int_equal(kvc_servegen_write(&c, hand_made(), trace_path("no"), NULL, &err),
                     KVC_ERR_USAGE);
    c.from_ns = 1800000000000;
    assert_int_equal(kvc_servegen_write(&c, hand_made(), trace_path("no"), NULL, &err),
                     KVC_ERR_USAGE);
    assert_int_equal(kvc_servegen_write(&c, "Makefile", trace_path("no"), NULL, &err),
                     KVC_ERR_INPUT);
    assert_int_equal(kvc_servegen_write(&c, "nowhere", trace_path("no"), NULL, &err),
                     KVC_ERR_INPUT);
    assert_non_null(strstr(trace_import_error(trace_text("chunk-3-trace.csv", row), NULL),
                           "kvcast gen servegen"));
    unlink(trace_path("chunk-3-trace.csv"));
}

/* ---- the real ones ---- */

static void moments(const struct kvc_servegen_pmf *p, double *mean, double *square)
{
    double before = 0, sum = p->n ? p->cumulative[p->n - 1] : 1;
    *mean = *square = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        double share = (p->cumulative[i] - before) / sum;
        before = p->cumulative[i];
        *mean += share * p->value[i];
        *square += share * p->value[i] * p->value[i];
    }
}

/* Sums of tokens over requests, and what they are expected to be. */
struct sums {
    double in, in_mean, in_var, out, out_mean, out_var;
};

static void expect_lengths(struct sums *s, const struct kvc_servegen_lengths *l, double n)
{
    double mean, square, one, sq;
    moments(&l->field[KVC_SG_OUTPUT], &mean, &square);
    s->out_mean += n * mean;
    s->out_var += n * (square - mean * mean);
    moments(&l->field[l->field[KVC_SG_INPUT].n ? KVC_SG_INPUT : KVC_SG_TEXT], &mean, &square);
    s->in_mean += n * mean;
    s->in_var += n * (square - mean * mean);
    moments(&l->field[KVC_SG_IMAGE_COUNT], &mean, &square);
    moments(&l->field[KVC_SG_IMAGE], &one, &sq);
    s->in_mean += n * mean * one; /* a sum of a random number of terms */
    s->in_var += n * (mean * (sq - one * one) + (square - mean * mean) * one * one);
}

/* The CV of n + 1 gaps against its law, where that has the moments for a standard error that a
 * sample shows. */
static bool check_cv(const struct kvc_servegen_window *w, const double *gap, size_t n)
{
    double k1 = w->shape, s1 = 0, s2 = 0, c = (double)n + 1;
    if (w->law != KVC_GAPS_GAMMA || k1 < 0.25 || n < 400)
        return false;
    double cv = 1 / sqrt(k1), skew = 2 * cv, kurt = 3 + 6 / k1;
    for (size_t g = 0; g <= n; g++) {
        s1 += gap[g];
        s2 += gap[g] * gap[g];
    }
    double sample = sqrt(s2 / c - s1 / c * s1 / c) / (s1 / c);
    near(sample, cv, cv * sqrt(((kurt - 1) / 4 - skew * cv + cv * cv) / c), "CV of gaps");
    return true;
}

/* Counts of each client and window, means of lengths, and the gaps' CV against its law. */
static void check_real(const char *path, uint64_t from_s, uint64_t duration_s, size_t least_cvs)
{
    struct kvc_servegen m;
    struct rows rows = { 0 };
    struct kvc_servegen_report r;
    struct sums s = { 0 };
    if (access(path, R_OK)) {
        print_message("no %s\n", path);
        skip();
    }
    assert_int_equal(kvc_servegen_load(&m, path, NULL), KVC_OK);
    draw(&rows, path, 11, from_s, duration_s, 0, &r);
    size_t seen = 0, cvs = 0;
    double *gap = malloc((rows.n + 1) * sizeof(*gap));
    assert_non_null(gap);
    for (size_t i = 0; i < rows.n; i++) {
        s.in += rows.v[i].input;
        s.out += rows.v[i].output;
    }
    for (size_t i = 0; i < m.n; i++) {
        const struct kvc_servegen_client *c = &m.client[i];
        for (size_t k = 0; k < c->n_windows; k++) {
            const struct kvc_servegen_window *w = &c->window[k];
            double start = (double)w->start_s - (double)from_s;
            if (start < 0 || start >= (double)duration_s)
                continue;
            const struct kvc_servegen_lengths *l = kvc_servegen_lengths_at(c, w->start_s);
            size_t n = gaps_of(&rows, c->number, start, start + 600, gap);
            assert_int_equal(n, l ? (size_t)(w->per_s * 600 + 0.5) : 0);
            seen += n;
            if (!n)
                continue;
            expect_lengths(&s, l, (double)n);
            cvs += check_cv(w, gap, n);
        }
    }
    assert_int_equal(seen, rows.n);
    assert_true(cvs >= least_cvs);
    near(s.in, s.in_mean, sqrt(s.in_var), "input tokens");
    near(s.out, s.out_mean, sqrt(s.out_var), "output tokens");
    free(gap);
    free(rows.v);
    kvc_servegen_clear(&m);
}

static void real_image_models(void **state)
{
    (void)state;
    check_real(SHARED "mm-image.tar.zst", 36000, 7200, 10);
}

static void real_language_models(void **state)
{
    (void)state;
    check_real(SHARED "m-small.tar.zst", 0, 600, 4);
}

static void drawn_requests_are_imported_without_ids(void **state)
{
    (void)state;
    struct rows rows = { 0 };
    struct kvc_servegen_report r;
    struct kvc_import_report in;
    struct kvc_trace_stats s;
    draw(&rows, hand_made(), 3, 0, 600, 2, &r);
    struct kvc_trace *t = trace_import(trace_path("drawn.jsonl"), 0, &in);
    kvc_trace_stats(t, &s);
    assert_int_equal(s.requests, rows.n);
    assert_false(s.has_prefix);
    assert_int_equal(s.tenants, 2);
    assert_int_equal(in.bad, 0);
    kvc_trace_destroy(t);
    free(rows.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variates_have_their_laws),
        cmocka_unit_test(counts_gaps_and_lengths_are_the_models),
        cmocka_unit_test(seeds_spans_and_rates),
        cmocka_unit_test(wrong_models_are_refused),
        cmocka_unit_test(real_image_models),
        cmocka_unit_test(real_language_models),
        cmocka_unit_test(drawn_requests_are_imported_without_ids),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
