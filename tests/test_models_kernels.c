/* SPDX-License-Identifier: Apache-2.0
 * Kernel tables: known laws come back from rows made of them, files survive a round trip, and the
 * checked-in profiles still say what their rows say. What needs ../shared is skipped without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "models/kernels.h"
#include "models/step_model.h"
#include "studies/kernels/study.h"
#include "tests/models_csv.h"

#define AIC "../shared/kernels/aic/"

static const struct kvc_peaks peaks = {1e15, 2e15, 4e15, 3e12};

/* ---- a law that is known ---- */

/* A form with its own constants, times a factor that is one function of the shape times another of
 * m: rank one. Noise 0: exact. */
static double law_ns(const struct kvc_kernel_family *f, const double *x, const double *params)
{
    const double constants[] = {4e3, 0.7, 0.8, 0};

    return f->form(constants, params, &peaks, x) *
           exp(0.1 * sin(log(x[0]) + 2 * log(x[1])) * cos(log(x[2])));
}

static size_t law_rows(const struct kvc_kernel_family *f, struct kvc_kernel_row *rows, double noise,
                       uint64_t *rng)
{
    size_t n = 0;

    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 12; j++)
            for (int m = 0; m < 14; m++) {
                struct kvc_kernel_row *r = &rows[n++];
                memset(r, 0, sizeof *r);
                strcpy(r->key, "law");
                r->x[0] = 512 * exp2(i / 2.0);
                r->x[1] = 512 * exp2(j / 2.0);
                r->x[2] = exp2(m);
                r->params[0] = r->params[1] = 2;
                r->ns = law_ns(f, r->x, r->params) * (1 + noise * (kvc_rng_unit(rng) - 0.5));
            }
    return n;
}

static void known_laws_come_back(void **state)
{
    (void)state;
    static struct kvc_kernel_row rows[12 * 12 * 14];
    const struct kvc_kernel_family *f = kvc_kernel_family_find("gemm");
    uint64_t rng = kvc_rng_stream(1, "models/kernels");
    struct kvc_kernel_tables t = {0};
    struct kvc_error err = {0};
    size_t n = law_rows(f, rows, 0, &rng);

    assert_int_equal(kvc_kernel_fit(&t, f, rows, n, &peaks, "a law", &err), KVC_OK);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.table[0].fitted.rows, n);
    assert_true(t.table[0].fitted.mape < 2); /* no component is added below that */
    assert_true(t.table[0].random.mape < 3 && t.table[0].random.rows > n / 5);
    assert_true(t.table[0].shape.mape < 6 && t.table[0].shape.rows > n / 8);
    assert_true(fabs(t.table[0].fitted.bias) < 1);
    kvc_kernel_tables_clear(&t);

    /* noise of +-10 % is not learned: rows aside are missed by about its mean, 2.5 % */
    memset(&t, 0, sizeof t);
    n = law_rows(f, rows, 0.2, &rng);
    assert_int_equal(kvc_kernel_fit(&t, f, rows, n, &peaks, "a law", &err), KVC_OK);
    assert_true(t.table[0].random.mape > 4 && t.table[0].random.mape < 8);
    kvc_kernel_tables_clear(&t);
}

/* A row that takes ten times as long as those around it says nothing about the kernel; where all
 * that is larger is as slow, it does. */
static void a_stumble_is_not_learned(void **state)
{
    (void)state;
    static struct kvc_kernel_row rows[8 * 8 * 10];
    const struct kvc_kernel_family *f = kvc_kernel_family_find("generation_mla");
    const double heads = 16, at[] = {8, 1024};

    for (int slow = 0; slow < 2; slow++) {
        struct kvc_kernel_tables t = {0};
        struct kvc_kernel_curve curve;
        size_t n = 0;
        double law = 0;
        memset(rows, 0, sizeof rows);
        for (int i = 0; i < 8 * 8 * 10; i++) {
            struct kvc_kernel_row *r = &rows[n++];
            strcpy(r->key, "law");
            r->x[0] = exp2(i / 80);
            r->x[1] = exp2(i / 10 % 8);
            r->x[2] = 16 * exp2(i % 10);
            r->params[0] = r->params[1] = 1;
            r->ns = f->form(f->start, r->params, &peaks, r->x);
            if (r->x[0] == heads && r->x[1] == at[0] && r->x[2] == at[1])
                law = r->ns;
            if (r->x[0] == heads && (slow ? r->x[1] >= at[0] && r->x[2] >= at[1]
                                          : r->x[1] == at[0] && r->x[2] == at[1]))
                r->ns *= 10;
        }
        assert_int_equal(kvc_kernel_fit(&t, f, rows, n, &peaks, "a law", NULL), KVC_OK);
        kvc_kernel_curve_at(&t.table[0], &heads, &curve);
        double ns = kvc_kernel_curve_ns(&curve, &peaks, at);
        print_message("%s: %.2f of the law\n", slow ? "slow from there on" : "a stumble", ns / law);
        assert_true(slow ? ns > 7 * law : ns > 0.9 * law && ns < 1.1 * law);
        kvc_kernel_tables_clear(&t);
    }
}

/* Products are tuned one count of tokens by one, and may be slow at one of them. */
static void a_slow_count_of_tokens_is_learned(void **state)
{
    (void)state;
    static struct kvc_kernel_row rows[16 * 10];
    const struct kvc_kernel_family *f = kvc_kernel_family_find("gemm");
    const double site[] = {2048, 2048}, slow = 128;
    struct kvc_kernel_tables t = {0};
    struct kvc_kernel_curve curve;
    double law = 0;

    for (int i = 0; i < 16 * 10; i++) {
        struct kvc_kernel_row *r = &rows[i];
        strcpy(r->key, "law");
        r->x[0] = 1024 * exp2(i / 40);
        r->x[1] = 1024 * exp2(i / 10 % 4);
        r->x[2] = 16 * exp2(i % 10);
        r->params[0] = r->params[1] = 1;
        r->ns = f->form(f->start, r->params, &peaks, r->x);
        if (r->x[0] == site[0] && r->x[1] == site[1] && r->x[2] == slow)
            law = r->ns;
        if (r->x[2] == slow)
            r->ns *= 10;
    }
    assert_int_equal(kvc_kernel_fit(&t, f, rows, 16 * 10, &peaks, "a law", NULL), KVC_OK);
    kvc_kernel_curve_at(&t.table[0], site, &curve);
    assert_true(kvc_kernel_curve_ns(&curve, &peaks, &slow) > 7 * law);
    kvc_kernel_tables_clear(&t);
}

/* Between shapes and half an octave beyond them a trend is followed, and one shape that ran another
 * kernel does not pull its neighbours along. */
static void shapes_between_follow_the_trend(void **state)
{
    (void)state;
    static struct kvc_kernel_row rows[12 * 12 * 14];
    const struct kvc_kernel_family *f = kvc_kernel_family_find("gemm");
    uint64_t rng = kvc_rng_stream(3, "models/kernels");
    struct kvc_kernel_store s = {.peaks = peaks};
    size_t n = law_rows(f, rows, 0, &rng);
    double worst = 0;

    for (size_t i = 0; i < n; i++) {
        const double constants[] = {4e3, 0.7, 0.8, 0}, *x = rows[i].x;
        bool strange = i / 14 == 6 * 12 + 6;
        rows[i].ns = f->form(constants, rows[i].params, &peaks, x) * pow(x[0] / x[1], 0.2) *
                     (strange ? 4 : 1);
    }
    assert_int_equal(kvc_kernel_fit(&s.tables, f, rows, n, &peaks, "a law", NULL), KVC_OK);
    for (int i = 0; i < 24; i++)
        for (int j = 0; j < 24; j++) {
            struct kvc_kernel_row r = rows[0];
            double ns;
            r.x[0] = 512 * exp2(i / 4.0 + 0.125);
            r.x[1] = 512 * exp2(j / 4.0 + 0.125);
            r.x[2] = 64;
            const double constants[] = {4e3, 0.7, 0.8, 0};
            double truth = f->form(constants, r.params, &peaks, r.x) * pow(r.x[0] / r.x[1], 0.2);
            assert_true(kvc_kernel_store_predict(&s, f, &r, &ns, NULL));
            bool near_strange = abs(i - 12) < 4 && abs(j - 12) < 4;
            double off = fabs(ns / truth - 1);
            if (near_strange && off > 0.25)
                fail_msg("beside the strange shape: %g off", off);
            worst = !near_strange && off > worst ? off : worst;
        }
    print_message("worst off the trend: %.1f %%\n", 100 * worst);
    assert_true(worst < 0.08);
    kvc_kernel_store_clear(&s);
}

/* ---- files ---- */

static struct kvc_kernel_store parsed(const char *text)
{
    struct kvc_kernel_store s;
    struct kvc_error err = {0};

    if (kvc_kernel_store_parse(&s, text, strlen(text), "x.json", &err) != KVC_OK)
        fail_msg("%s", err.text);
    s.peaks = peaks;
    return s;
}

static void files_survive_a_round_trip(void **state)
{
    (void)state;
    static struct kvc_kernel_row rows[12 * 12 * 14];
    const struct kvc_kernel_family *f = kvc_kernel_family_find("gemm");
    const struct kvc_kernel_profile profile = {"h100_sxm", "vllm", "1"};
    uint64_t rng = kvc_rng_stream(2, "models/kernels");
    struct kvc_kernel_store a = {.peaks = peaks}, b;
    size_t n = law_rows(f, rows, 0.1, &rng);

    assert_int_equal(kvc_kernel_fit(&a.tables, f, rows, n, &peaks, "a law", NULL), KVC_OK);
    char *text = kvc_kernel_store_text(&a.tables, &profile);
    b = parsed(text);
    for (size_t i = 0; i < 5000; i++) {
        struct kvc_kernel_row r = rows[kvc_rng_below(&rng, n)];
        double x, y;
        bool outside;
        for (int k = 0; k < 3; k++)
            r.x[k] *= exp2(kvc_rng_unit(&rng) - 0.5);
        assert_true(kvc_kernel_store_predict(&a, f, &r, &x, NULL));
        assert_true(kvc_kernel_store_predict(&b, f, &r, &y, &outside));
        assert_true(fabs(x / y - 1) < 0.02); /* one of 45 steps of each number */
    }
    struct kvc_kernel_row far = rows[0];
    double ns;
    bool outside = false;
    far.x[2] = 1e7;
    assert_true(kvc_kernel_store_predict(&b, f, &far, &ns, &outside) && outside);
    far = rows[0];
    far.x[0] = 1;
    assert_true(kvc_kernel_store_predict(&b, f, &far, &ns, &outside) && outside);
    assert_true(kvc_kernel_store_predict(&b, f, &rows[0], &ns, &outside) && !outside);

    /* cut anywhere, or with a byte changed, it is an error or still a profile, never a crash */
    size_t length = strlen(text);
    for (size_t i = 0; i < 400; i++) {
        struct kvc_kernel_store c;
        char *bad = kvc_strdup(text);
        size_t at = kvc_rng_below(&rng, length);
        bad[at] = (char)(32 + kvc_rng_below(&rng, 90));
        if (kvc_kernel_store_parse(&c, bad, i % 2 ? length : at, "x.json", NULL) == KVC_OK)
            kvc_kernel_store_clear(&c);
        kvc_free(bad);
    }
    kvc_free(text);
    kvc_kernel_store_clear(&a);
    kvc_kernel_store_clear(&b);
}

static void keys_find_the_nearest_table(void **state)
{
    (void)state;
    struct kvc_kernel_store s = parsed(
        "{\"schema\":\"kvcast.kernels.v2\",\"version\":\"1\",\"tables\":["
        "{\"family\":\"gemm\",\"key\":\"fp8_block\",\"kind\":\"assumed\",\"source\":\"-\","
        "\"constants\":[1,1,1],\"params\":[1,1,1,0]},"
        "{\"family\":\"moe\",\"key\":\"fp8 a\",\"kind\":\"assumed\",\"source\":\"-\","
        "\"constants\":[1,1,1,1],\"params\":[1,1,0,0]}]}");
    const struct kvc_kernel_family *gemm = kvc_kernel_family_find("gemm");
    const struct kvc_kernel_family *moe = kvc_kernel_family_find("moe");

    assert_null(kvc_kernel_store_find(&s, gemm, "fp8")); /* fp8_block is another word */
    assert_ptr_equal(kvc_kernel_store_find(&s, gemm, "fp8_block odd"), &s.tables.table[0]);
    assert_ptr_equal(kvc_kernel_store_find(&s, moe, "fp8 b"), &s.tables.table[1]);
    assert_null(kvc_kernel_store_find(&s, moe, "bfloat16 a"));
    kvc_kernel_store_clear(&s);
}

/* ---- the checked-in profiles ---- */

static bool there(const char *path)
{
    if (access(path, R_OK) == 0)
        return true;
    print_message("skipped: no %s\n", path);
    return false;
}

struct said {
    const char *gpu, *backend, *family;
    double rows, sum;
};

static void add_said(void *user, const struct kvc_kernel_stated *s)
{
    struct said *w = user;

    if (strcmp(s->gpu->id, w->gpu) != 0 || strcmp(s->backend, w->backend) != 0 ||
        strcmp(s->family->name, w->family) != 0)
        return;
    w->rows += (double)s->rows;
    w->sum += (double)s->rows * s->fitted;
}

/* The program's tables predict the rows they were fitted to as well as they say, and as well as
 * they have to. */
static void profiles_match_their_rows(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        struct said said;
        double most;
    } files[] = {
        {"h100_sxm__gemm__vllm__0.24.0.csv.zst", {"h100_sxm", "vllm", "gemm", 0, 0}, 6},
        {"b200_sxm__gemm__vllm__0.24.0.csv.zst", {"b200_sxm", "vllm", "gemm", 0, 0}, 6},
        {"h200_sxm__generation_attention__vllm__0.24.0.csv.zst",
         {"h200_sxm", "vllm", "generation_attention", 0, 0}, 5},
        {"gb200__context_attention__sglang__0.5.14.csv.zst",
         {"gb200", "sglang", "context_attention", 0, 0}, 5},
        {"h100_sxm__moe__trtllm__1.3.0rc20.csv.zst", {"h100_sxm", "trtllm", "moe", 0, 0}, 6},
        {"h100_sxm__custom_allreduce__vllm__0.24.0.csv",
         {"h100_sxm", "vllm", "custom_allreduce", 0, 0}, 5},
    };
    const struct kvc_kernel_validate_options options = {NULL, NULL, false};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[256];
        const char *paths[] = {path};
        struct kvc_kernel_validation v;
        struct said said = files[i].said;
        struct kvc_error err = {0};
        snprintf(path, sizeof path, AIC "%s", files[i].file);
        if (!there(path))
            skip();
        if (kvc_kernel_validate(&v, paths, 1, &options, &err) != KVC_OK)
            fail_msg("%s", err.text);
        assert_int_equal(kvc_kernel_stated(add_said, &said, NULL), KVC_OK);
        double stated = said.sum / said.rows;
        print_message("%s: %zu rows, MAPE %.2f %% (tables say %.2f)\n", files[i].file, v.rows,
                      v.sum.mape, stated);
        assert_int_equal(v.rows, said.rows);
        assert_true(v.sum.mape < files[i].most);
        assert_true(fabs(v.sum.mape - stated) < 0.5); /* numbers in files are rounded to steps */
        kvc_kernel_validation_clear(&v);
    }
}

/* Fitting the rows again gives the checked-in tables. When this fails after a change of the fit,
 * run 'make profiles'. */
static void a_refit_gives_the_checked_in_tables(void **state)
{
    (void)state;
    static const char *const paths[] = {AIC "h100_sxm__generation_mla__vllm__0.14.0.csv.zst",
                                        AIC "h100_sxm__custom_allreduce__vllm__0.24.0.csv",
                                        AIC "h100_sxm__generation_attention__vllm__0.24.0.csv.zst"};
    struct kvc_kernel_calibration c;
    struct kvc_kernel_store now = {0}, checked_in;
    size_t compared = 0;
    double worst = 0, sum = 0;

    if (!there(paths[0]))
        skip();
    assert_int_equal(kvc_kernel_calibrate(&c, paths, 3, NULL, NULL), KVC_OK);
    now.tables = c.tables;
    now.peaks = kvc_peaks_of(c.gpu);
    assert_int_equal(kvc_kernel_store_load(&checked_in, c.gpu, "vllm", NULL), KVC_OK);
    for (size_t i = 0; i < now.tables.n; i++) {
        const struct kvc_kernel_table *a = &now.tables.table[i];
        const struct kvc_kernel_table *b =
            kvc_kernel_store_find(&checked_in, a->family, a->key);
        assert_non_null(b);
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->n_sites, b->n_sites);
        assert_int_equal(a->n_cells, b->n_cells);
        for (size_t s = 0; s < a->n_sites; s++) {
            double site[KVC_KERNEL_SITE] = {0};
            struct kvc_kernel_curve x, y;
            for (size_t d = 0; d < a->family->n_site; d++)
                site[d] = exp2(a->site[s * KVC_KERNEL_PLACE + d]);
            kvc_kernel_curve_at(a, site, &x);
            kvc_kernel_curve_at(b, site, &y);
            for (size_t k = 0; k < a->n_cells; k++, compared++) {
                const double axes[] = {exp(a->knot[0][k / a->n_knots[1]]),
                                       exp(a->knot[1][k % a->n_knots[1]])};
                double off = fabs(kvc_kernel_curve_ns(&x, &now.peaks, axes) /
                                      kvc_kernel_curve_ns(&y, &now.peaks, axes) - 1);
                worst = off > worst ? off : worst;
                sum += off;
            }
        }
    }
    double mean = sum / (double)compared;
    print_message("%zu knots compared, %.2f %% apart, worst %.2f %%\n", compared, 100 * mean,
                  100 * worst);
    /* numbers in files are rounded: up to eight components, each within a step */
    assert_true(compared > 10000 && mean < 0.01 && worst < 0.15);
    kvc_kernel_store_clear(&checked_in);
    kvc_kernel_calibration_clear(&c);
}

/* A system whose backend was never measured: predictions from the GPU like it stay within 20 %. */
static void borrowed_tables_hold(void **state)
{
    (void)state;
    static const char *const files[] = {"h200_sxm__gemm__trtllm__1.3.0rc20.csv.zst",
                                        "h200_sxm__context_attention__vllm__0.24.0.csv.zst",
                                        "h200_sxm__generation_attention__vllm__0.24.0.csv.zst"};
    const struct kvc_kernel_validate_options options = {NULL, "h100_sxm", false};

    for (size_t i = 0; i < 3; i++) {
        char path[256];
        const char *paths[] = {path};
        struct kvc_kernel_validation v;
        snprintf(path, sizeof path, AIC "%s", files[i]);
        if (!there(path))
            skip();
        assert_int_equal(kvc_kernel_validate(&v, paths, 1, &options, NULL), KVC_OK);
        print_message("%s from H100's tables: MAPE %.2f %%\n", files[i], v.sum.mape);
        assert_true(v.n > 0 && v.check[0].borrowed && v.sum.mape < 20);
        kvc_kernel_validation_clear(&v);
    }
}

/* A step of the recurrence reads and writes each sequence's float state: no less, and where the
 * heads were measured at most half more. */
static void linear_attention_moves_its_state(void **state)
{
    (void)state;
    static const char *const gpus[] = {"h100_sxm", "h200_sxm", "b200_sxm", "gb200", "l40s"};
    const struct kvc_llm *m = kvc_llm_find("Qwen3.5-397B-A17B");
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++)
        for (uint32_t tp = 2; tp <= 8; tp *= 2) {
            const struct kvc_gpu *g = kvc_gpu_find(gpus[i]);
            struct kvc_linear decode, prefill;
            struct kvc_kernels *k;
            assert_int_equal(kvc_kernels_load(&k, g, "vllm", NULL), KVC_OK);
            assert_true(kvc_kernels_linear(k, m, tp, false, &decode));
            assert_true(kvc_kernels_linear(k, m, tp, true, &prefill));
            double bytes = 2.0 * 256 * m->linear_value_heads * 128 * 128 * 4 / tp;
            double least = 1e9 * bytes / g->hbm_bytes_per_s.value;
            double ns = kvc_kernel_answer_ns(&decode.recurrence, 256, 1);
            if (decode.recurrence.curve.octaves <= 1 && !(ns > least && ns < 1.5 * least))
                fail_msg("%s tp %u: %g ns, the state alone %g", gpus[i], tp, ns, least);
            assert_true(kvc_kernel_answer_ns(&prefill.recurrence, 1, 8192) >
                        1.5 * kvc_kernel_answer_ns(&prefill.recurrence, 1, 4096));
            kvc_kernels_destroy(k);
        }
}

/* Mamba2: the convolution as TensorRT-LLM's rows have it, by no other engine; the recurrence, which
 * nobody measured, moves the state as a delta net does and is never called exact. */
static void mamba2_convolves_as_measured(void **state)
{
    const struct kvc_llm *m = kvc_llm_find("Nemotron-3-Nano-30B-A3B");
    const struct kvc_gpu *g = kvc_gpu_find("h100_sxm");
    static const char *const backends[] = {"trtllm", "vllm"};
    struct kvc_linear part[2][2];
    struct kvc_kernels *k[2];
    struct test_csv csv;
    double sum = 0, n = 0;

    (void)state;
    for (int b = 0; b < 2; b++) {
        assert_int_equal(kvc_kernels_load(&k[b], g, backends[b], NULL), KVC_OK);
        for (int prefill = 0; prefill < 2; prefill++) {
            assert_true(kvc_kernels_linear(k[b], m, 1, prefill, &part[b][prefill]));
            assert_int_equal(part[b][prefill].convolution.foreign, b);
            assert_false(part[b][prefill].recurrence.exact);
        }
        double least = 1e9 * 2 * 256.0 * 4096 * 128 * 4 / g->hbm_bytes_per_s.value;
        double ns = kvc_kernel_answer_ns(&part[b][0].recurrence, 256, 1);
        assert_true(ns > least && ns < 1.5 * least);
    }
    if (test_csv_open(&csv, AIC "h100_sxm__mamba2__trtllm__1.3.0rc20.csv")) {
        while (test_csv_row(&csv)) {
            bool prefill = strcmp(test_csv_get(&csv, "phase"), "context") == 0;
            if (!strstr(test_csv_get(&csv, "model_name"), "Nemotron-3-Nano"))
                continue;
            double got = kvc_kernel_answer_ns(&part[0][prefill].convolution,
                                              test_csv_number(&csv, "batch_size"),
                                              test_csv_number(&csv, "seq_len"));
            sum += fabs(got / 1e6 / test_csv_number(&csv, "latency") - 1);
            n++;
        }
        test_csv_close(&csv);
        assert_true(n > 50 && sum / n < 0.05);
    }
    kvc_kernels_destroy(k[0]);
    kvc_kernels_destroy(k[1]);
}

/* What a step takes for decode attention is what its kernel's table says of that many sequences
 * with as much context each, one by itself and many alike. */
static void steps_decode_as_their_tables(void **state)
{
    static const struct {
        const char *gpu, *backend;
        enum kvc_dtype kv;
    } cases[] = {{"h100_sxm", "vllm", KVC_BF16}, {"h100_sxm", "vllm", KVC_FP8},
                 {"b200_sxm", "vllm", KVC_BF16}, {"h200_sxm", "trtllm", KVC_FP8},
                 {"b200_sxm", "sglang", KVC_BF16}};
    static const uint32_t sequences[] = {1, 2, 5, 16, 50, 200}, each[] = {300, 1500, 7000, 40000};
    const struct kvc_llm *l = kvc_llm_find("Llama-3.1-8B");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kvc_gpu gpu = *kvc_gpu_find(cases[i].gpu);
        struct kvc_step_config c = {.llm = l, .gpu = &gpu, .tp = 1, .pp = 1, .ep = 1,
                                    .backend = cases[i].backend, .weights = KVC_BF16,
                                    .kv = cases[i].kv};
        const struct kvc_heads heads = {l->head_dim, l->heads, l->kv_heads, 0, cases[i].kv};
        gpu.l2_bytes.value = 0; /* rows as they are, read from the cache or not */
        struct kvc_step_model *m;
        struct kvc_kernel_answer table;
        double off[6] = {0};
        assert_int_equal(kvc_step_model_create(&m, &c, NULL), KVC_OK);
        assert_true(kvc_kernels_decode(m->kernels, &heads, &table));
        for (size_t s = 0; s < 6; s++)
            for (size_t k = 0; k < 4; k++) {
                uint32_t n = sequences[s];
                double ns = kvc_step_attention(m, NULL, 0, n, (uint64_t)n * each[k]);
                off[s] += ns / (l->layers * kvc_kernel_answer_ns(&table, n, each[k])) / 4 - 0.25;
            }
        for (size_t s = 0; s < 6; s++) {
            if (!(fabs(off[s]) < 0.06))
                fail_msg("%s %s, %u sequences: %+.1f %% off in the mean", cases[i].gpu,
                         cases[i].backend, sequences[s], 100 * off[s]);
        }
        kvc_step_model_destroy(m);
    }
}

static void allreduce_never_falls(void **state)
{
    (void)state;
    for (const char *const *g = kvc_gpu_names(); *g; g++) {
        struct kvc_kernels *k;
        struct kvc_messages a;
        if (kvc_kernels_load(&k, kvc_gpu_find(*g), "vllm", NULL) != KVC_OK)
            continue;
        for (uint32_t gpus = 2; gpus <= 8; gpus *= 2) {
            if (!kvc_kernels_allreduce(k, gpus, 8388608, &a))
                continue;
            for (size_t i = 1; i < a.n; i++)
                assert_true(a.ns[i] >= a.ns[i - 1] && a.bytes[i] > a.bytes[i - 1]);
        }
        kvc_kernels_destroy(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_laws_come_back),
        cmocka_unit_test(a_stumble_is_not_learned),
        cmocka_unit_test(a_slow_count_of_tokens_is_learned),
        cmocka_unit_test(shapes_between_follow_the_trend),
        cmocka_unit_test(files_survive_a_round_trip),
        cmocka_unit_test(keys_find_the_nearest_table),
        cmocka_unit_test(profiles_match_their_rows),
        cmocka_unit_test(a_refit_gives_the_checked_in_tables),
        cmocka_unit_test(borrowed_tables_hold),
        cmocka_unit_test(linear_attention_moves_its_state),
        cmocka_unit_test(mamba2_convolves_as_measured),
        cmocka_unit_test(steps_decode_as_their_tables),
        cmocka_unit_test(allreduce_never_falls),
    };
    return cmocka_run_group_tests_name("models_kernels", tests, NULL, NULL);
}
