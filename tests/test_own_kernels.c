/* SPDX-License-Identifier: Apache-2.0
 * Kernels measured on a user's own GPU: a law known in full comes back from few rows, and rows
 * drawn from a GPU with tables give step times near those of its tables. The latter is skipped
 * without ../shared. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "models/kernels.h"
#include "models/own_kernels.h"
#include "models/profiles.h"
#include "models/user_profile.h"
#include "studies/calibrate/profile_write.h"
#include "studies/kernels/rows.h"

#define AIC "../shared/kernels/aic/"
#define MOST 512

/* ---- rows to a profile to step times ---- */

static struct kvc_user_profile *profile_of(struct kvc_own_row *rows, size_t n, const char *gpu,
                                           const char *device, struct kvc_own_kernels *own)
{
    const struct kvc_gpu *g = kvc_gpu_find(gpu);
    struct kvc_readings r = {.device = {.memory_bytes = 1.5e11, .multiprocessors = 132}};
    const struct kvc_profile_parts parts = {.gpu = g->id, .readings = &r, .kernels = own};
    struct kvc_user_profile *p = NULL;
    struct kvc_error err = {0};
    char *text = NULL;

    snprintf(r.device.gpu, sizeof r.device.gpu, "%s", g->id);
    snprintf(r.device.name, sizeof r.device.name, "%s", device ? device : "");
    if (kvc_own_kernels_fit(own, rows, n, g, "vllm", device != NULL, "a test", &err) != KVC_OK ||
        kvc_profile_text(&text, &parts, &err) != KVC_OK ||
        kvc_user_profile_parse(&p, text, strlen(text), "p.json", &err) != KVC_OK)
        fail_msg("%s", err.text);
    kvc_free(text);
    return p;
}

static struct kvc_step_model *model_of(const char *llm, const char *gpu,
                                       const struct kvc_user_profile *user, enum kvc_dtype weights)
{
    const struct kvc_step_config c = {.llm = kvc_llm_find(llm), .gpu = kvc_user_gpu(user, gpu),
                                      .backend = "vllm", .weights = weights, .kv = KVC_BF16,
                                      .tp = 1, .pp = 1, .user = user, .kernels_alone = true};
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};

    if (kvc_step_model_create(&m, &c, &err) != KVC_OK)
        fail_msg("%s", err.text);
    return m;
}

static double step_ns(const struct kvc_step_model *m, uint32_t tokens, uint32_t decodes,
                      uint64_t context)
{
    const struct kvc_chunk chunk = {tokens, 0};
    uint64_t host, ns = kvc_step_ns(m, &chunk, tokens > 0, decodes, context * decodes,
                                    decodes + (tokens > 0), &host);

    return (double)(ns - host);
}

/* ---- a law that is known ---- */

#define FLOPS 4e14
#define BYTES 2e12

static double law_ns(double m, double n, double k)
{
    return 4000 + 1e9 * fmax(2 * m * n * k / (0.75 * FLOPS),
                             2 * (m * k + n * k + m * n) / (0.85 * BYTES));
}

static double decode_law_ns(double sequences, double context, double share)
{
    return 9000 + 1e9 * sequences * 128 * (2 * context * 8 * 2 + 4 * 32) / (share * BYTES);
}

/* Some of those that kvcast bench draws. */
static size_t bench_rows(struct kvc_own_row *rows, bool quick)
{
    static const double shapes[][2] = {
        {28672, 4096}, {4096, 14336}, {6144, 4096}, {4096, 4096}, {8192, 8192}};
    const struct kvc_kernel_family *f = kvc_kernel_family_find("gemm");
    size_t n = 0;

    for (size_t s = 0; s < (quick ? 2 : 5); s++)
        for (double m = 16; m <= 16384; m *= quick ? 8 : 4) {
            struct kvc_own_row *r = &rows[n++];
            *r = (struct kvc_own_row){.family = f};
            strcpy(r->row.key, "bfloat16");
            memcpy(r->row.x, (double[]){shapes[s][0], shapes[s][1], m}, 3 * sizeof(double));
            r->row.params[0] = r->row.params[1] = 2;
            r->row.ns = law_ns(m, shapes[s][0], shapes[s][1]);
        }
    return n;
}

static size_t bench_decodes(struct kvc_own_row *rows, double share, bool bound)
{
    const struct kvc_kernel_family *f = kvc_kernel_family_find("generation_attention");
    size_t n = 0;

    for (double s = 1; s <= 256; s *= 4)
        for (double c = 1024; c <= 16384; c *= 4) {
            struct kvc_own_row *r = &rows[n++];
            *r = (struct kvc_own_row){.family = f, .bound = bound};
            strcpy(r->row.key, "bfloat16 bfloat16 d128 w0");
            memcpy(r->row.x, (double[]){32, 8, s, c}, 4 * sizeof(double));
            memcpy(r->row.params, (double[]){2, 128, 0}, 3 * sizeof(double));
            r->row.ns = decode_law_ns(s, c, share);
        }
    return n;
}

/* Off the law at shapes and tokens that no row has, as a share, at the most. */
static double worst_off(const struct kvc_user_profile *p, const char *gpu)
{
    struct kvc_kernels *k;
    double worst = 0;

    assert_int_equal(kvc_kernels_load(&k, kvc_user_gpu(p, gpu), "vllm", NULL), KVC_OK);
    kvc_kernels_put_first(k, kvc_user_kernels(p, kvc_user_gpu(p, gpu), "vllm"));
    for (double n = 4608; n < 30000; n *= 1.5)
        for (double m = 24; m < 10000; m *= 3) {
            struct kvc_gemm g;
            assert_int_equal(kvc_kernels_gemm(k, KVC_BF16, (uint32_t)n, 4608,
                                              kvc_engine_find("vllm"), false, &g, NULL), KVC_OK);
            assert_true(g.table.users && !g.table.borrowed);
            worst = fmax(worst, fabs(kvc_gemm_ns(&g, m) / law_ns(m, (uint32_t)n, 4608) - 1));
        }
    kvc_kernels_destroy(k);
    return worst;
}

/* Whether a product of (n, 4096) is timed by the user's table. */
static bool by_the_users(const struct kvc_user_profile *p, const char *gpu, uint32_t n)
{
    struct kvc_kernels *k;
    struct kvc_gemm g;

    assert_int_equal(kvc_kernels_load(&k, kvc_user_gpu(p, gpu), "vllm", NULL), KVC_OK);
    kvc_kernels_put_first(k, kvc_user_kernels(p, kvc_user_gpu(p, gpu), "vllm"));
    assert_int_equal(kvc_kernels_gemm(k, KVC_BF16, n, 4096, kvc_engine_find("vllm"), false, &g,
                                      NULL), KVC_OK);
    /* bands widen by what theirs alone miss */
    assert_true(g.table.users || kvc_kernels_users_off(k) == 0);
    kvc_kernels_destroy(k);
    return g.table.users;
}

static void a_law_comes_back_from_few_rows(void **state)
{
    struct kvc_own_row rows[MOST];
    struct kvc_own_kernels own;
    (void)state;
    struct kvc_user_profile *p = profile_of(rows, bench_rows(rows, false), "l40s", "A GPU", &own);

    assert_int_equal(own.kernel[0].way, KVC_OWN_TABLE); /* its law is not the L40S's */
    assert_true(own.kernel[0].table_off < 1 && own.kernel[0].rescaled_off > 2);
    double off = worst_off(p, "l40s");
    print_message("%.2f %% off at the most\n", 100 * off);
    assert_true(off < 0.04); /* grids are linear between knots four times apart */
    assert_true(by_the_users(p, "l40s", 1024));
    assert_false(by_the_users(p, "l40s", 128)); /* a router's: others measured one */
    kvc_own_kernels_clear(&own);
    kvc_user_profile_destroy(p);
}

/* Two shapes and four sizes: the peaks still come out, and what lies between takes them. */
static void a_quick_look_moves_the_peaks(void **state)
{
    struct kvc_own_row rows[MOST];
    struct kvc_own_kernels own;
    (void)state;
    struct kvc_user_profile *p = profile_of(rows, bench_rows(rows, true), "l40s", "A GPU", &own);
    const struct kvc_gpu *g = kvc_user_gpu(p, "L40S");

    assert_int_equal(own.kernel[0].way, KVC_OWN_RESCALED);
    assert_string_equal(own.kernel[0].base, "l40s vllm");
    assert_string_equal(g->name, "A GPU");
    assert_string_equal(g->kernels_like, "l40s");
    assert_true(g->memory_bytes.value == 1.5e11 && g->multiprocessors.value == 132);
    assert_string_equal(g->usd_per_hour.kind, "assumed");
    assert_true(fabs(g->hbm_bytes_per_s.value / BYTES - 1) < 0.3);
    assert_true(worst_off(p, "l40s") < 0.3); /* an L40S's shapes: what its kernels do differs */
    assert_true(kvc_user_gpu(p, "h100-sxm") == kvc_gpu_find("h100-sxm"));
    assert_non_null(kvc_user_kernels(p, g, "trtllm"));
    assert_null(kvc_user_kernels(p, kvc_gpu_find("h100-sxm"), "vllm")); /* another GPU's */
    kvc_own_kernels_clear(&own);
    kvc_user_profile_destroy(p);
}

/* What was not measured keeps its share of what was: fp8's and fp4's peaks of bf16's. */
static void unmeasured_formats_move_with_bf16(void **state)
{
    struct kvc_own_row rows[MOST];
    struct kvc_own_kernels own;
    const struct kvc_gpu *g = kvc_gpu_find("b200-sxm");
    struct kvc_peaks was;
    (void)state;
    assert_non_null(g);
    was = kvc_peaks_of(g);
    assert_int_equal(kvc_own_kernels_fit(&own, rows, bench_rows(rows, true), g, "vllm", true,
                                         "a test", NULL), KVC_OK);
    double share = own.told.bf16_flops / was.bf16_flops;
    assert_true(share > 0.05 && share < 0.5); /* 4e14 of 2.25e15, at three quarters */
    assert_true(fabs(own.peaks.bf16_flops / was.bf16_flops / share - 1) < 1e-9);
    assert_true(fabs(own.peaks.fp8_flops / was.fp8_flops / share - 1) < 1e-9);
    assert_true(fabs(own.peaks.fp4_flops / was.fp4_flops / share - 1) < 1e-9);
    kvc_own_kernels_clear(&own);
}

/* An engine's fused products leave out the launch that quantises, which its tables hold; a bare
 * product of the user's never had it. */
static void a_bare_product_holds_no_quantising(void **state)
{
    struct kvc_own_row rows[MOST];
    struct kvc_own_kernels own;
    const struct kvc_engine_profile *engine = kvc_engine_find("vllm");
    size_t n = bench_rows(rows, false);
    (void)state;
    assert_true(engine->fuses_quantise);
    for (size_t i = 0; i < n; i++) {
        strcpy(rows[i].row.key, "fp8");
        memcpy(rows[i].row.params, (double[]){1, 1, 1}, 3 * sizeof(double));
    }
    struct kvc_user_profile *p = profile_of(rows, n, "l40s", NULL, &own);
    for (int users = 0; users < 2; users++) {
        struct kvc_kernels *k;
        struct kvc_gemm g;
        assert_int_equal(kvc_kernels_load(&k, kvc_gpu_find("l40s"), "vllm", NULL), KVC_OK);
        if (users)
            kvc_kernels_put_first(k, kvc_user_kernels(p, kvc_gpu_find("l40s"), "vllm"));
        assert_int_equal(kvc_kernels_gemm(k, KVC_FP8, 6144, 4096, engine, false, &g, NULL),
                         KVC_OK);
        assert_true(g.table.users == users);
        assert_true(users ? g.minus_ns == 0 : g.minus_ns > 0);
        if (users)
            assert_true(fabs(kvc_gemm_ns(&g, 16) / law_ns(16, 6144, 4096) - 1) < 0.05);
        kvc_kernels_destroy(k);
    }
    kvc_own_kernels_clear(&own);
    kvc_user_profile_destroy(p);
}

/* ---- bounds, limits, what is said ---- */

static void plain_kernels_are_a_bound(void **state)
{
    struct kvc_own_row rows[MOST];
    struct kvc_own_kernels own;
    (void)state;
    for (int fast = 0; fast < 2; fast++) {
        size_t n = bench_decodes(rows, fast ? 4 : 0.2, true);
        kvc_user_profile_destroy(profile_of(rows, n, "l40s", NULL, &own));
        assert_int_equal(own.kernel[0].way, fast ? KVC_OWN_RESCALED : KVC_OWN_BOUND);
        assert_int_equal(own.tables.n, fast);
        if (!fast)
            assert_true(own.kernel[0].slower > 0.5);
        kvc_own_kernels_clear(&own);
    }
    size_t n = bench_decodes(rows, 0.2, false); /* an engine's own may be as slow as they are */
    kvc_user_profile_destroy(profile_of(rows, n, "l40s", NULL, &own));
    assert_int_equal(own.tables.n, 1);
    kvc_own_kernels_clear(&own);
}

struct told {
    bool measured;
    char source[256];
};

static void hear(void *user, const char *group, const char *name, const char *value,
                 const char *kind, const char *source)
{
    struct told *t = user;

    (void)value;
    if (strcmp(group, "kernels") != 0 || strcmp(name, "matrix products, bfloat16") != 0)
        return;
    t->measured |= strcmp(kind, "measured") == 0;
    snprintf(t->source, sizeof t->source, "%s", source);
}

static void beyond_the_rows_is_flagged(void **state)
{
    struct kvc_own_row rows[MOST];
    struct kvc_own_kernels own;
    const struct kvc_chunk longest = {16000, 0}, longer = {16400, 0};
    struct told told = {0};
    struct kvc_time_band band;
    (void)state;
    size_t n = bench_rows(rows, false);
    n += bench_decodes(rows + n, 0.8, false);
    struct kvc_user_profile *p = profile_of(rows, n, "l40s", "A GPU", &own);
    struct kvc_step_model *m = model_of("Llama-3.1-8B", "l40s", p, KVC_BF16);

    assert_false(kvc_step_flags(m, &longest, 1, 256, 256 * 16384) & KVC_STEP_OUTSIDE);
    assert_true(kvc_step_flags(m, &longer, 1, 0, 0) & KVC_STEP_OUTSIDE);
    assert_true(kvc_step_flags(m, NULL, 0, 257, 257) & KVC_STEP_OUTSIDE);
    assert_true(kvc_step_flags(m, NULL, 0, 1, 16385) & KVC_STEP_OUTSIDE);
    assert_true(kvc_step_flags(m, NULL, 0, 1, 1) & KVC_STEP_BORROWED); /* prefill attention is */
    kvc_step_explain(m, hear, &told);
    assert_true(told.measured && strstr(told.source, "a test, 30 rows"));
    kvc_step_band(m, 0, &band);
    assert_true(band.tpot_high > 1.25);
    kvc_step_model_destroy(m);
    kvc_own_kernels_clear(&own);
    kvc_user_profile_destroy(p);
}

static double band_of(struct kvc_own_row *rows, size_t n, double *off)
{
    struct kvc_own_kernels own;
    struct kvc_time_band band;
    struct kvc_user_profile *p = profile_of(rows, n, "l40s", "A GPU", &own);
    struct kvc_step_model *m = model_of("Llama-3.1-8B", "l40s", p, KVC_BF16);

    kvc_step_band(m, 0, &band);
    *off = own.tables.table[0].shape.mape;
    kvc_step_model_destroy(m);
    kvc_own_kernels_clear(&own);
    kvc_user_profile_destroy(p);
    return band.tpot_high;
}

/* Of two shapes one is twice as slow as the law: each tells little of the other. */
static void what_tables_miss_widens_the_band(void **state)
{
    struct kvc_own_row rows[MOST];
    size_t n = bench_rows(rows, true);
    double off;
    (void)state;
    double plain = band_of(rows, n, &off);
    assert_true(off < 10);
    bench_rows(rows, true);
    for (size_t i = 0; i < n; i++)
        rows[i].row.ns *= rows[i].row.x[0] == 4096 ? 2 : 1;
    double wide = band_of(rows, n, &off);
    assert_true(off > 10);
    assert_true(fabs(wide / plain / (1 + off / 100) - 1) < 1e-3);
}

/* A name without tables of its own passes on those that it takes. */
static void a_stand_in_without_tables_is_not_asked_for_any(void **state)
{
    struct kvc_own_row rows[MOST];
    struct kvc_own_kernels own;
    (void)state;
    struct kvc_user_profile *p = profile_of(rows, bench_rows(rows, true), "h100-pcie", "A GPU",
                                            &own);

    assert_string_equal(kvc_user_gpu(p, "h100-pcie")->kernels_like, "h100_sxm");
    kvc_own_kernels_clear(&own);
    kvc_user_profile_destroy(p);
}

static void every_failed_allocation_is_clean(void **state)
{
    struct kvc_own_row rows[MOST];
    size_t n = bench_rows(rows, true), attention = bench_decodes(rows + n, 0.8, false);
    uint64_t fails = 1;
    (void)state;
    assert_int_equal(kvc_profiles_ready(NULL), KVC_OK); /* they stay */
    for (;; fails++) {
        struct kvc_own_kernels own;
        struct kvc_error err = {0};
        kvc_alloc_fail_after(fails);
        enum kvc_status status = kvc_own_kernels_fit(&own, rows, n + attention,
                                                     kvc_gpu_find("l40s"), "vllm", true, "a test",
                                                     &err);
        kvc_alloc_fail_after(0);
        if (status == KVC_OK) {
            assert_int_equal(own.tables.n, 2);
            kvc_own_kernels_clear(&own);
            break;
        }
        assert_int_equal(status, KVC_ERR_NOMEM);
        assert_true(own.n == 0 && own.tables.n == 0);
    }
    assert_true(fails > 10);
}

/* ---- rows of a GPU that has tables ---- */

struct draw {
    struct kvc_own_row *row;
    size_t n;
    const char *key;
    double site[2], axes[2][8]; /* nearest to these */
    double best[8][8];
    size_t at[8][8];
};

static enum kvc_status take(void *user, const struct kvc_kernel_label *label,
                            const struct kvc_kernel_family *family,
                            const struct kvc_kernel_row *row, uint64_t line, struct kvc_error *err)
{
    struct draw *d = user;

    (void)label;
    (void)line;
    (void)err;
    if (!row || row->excluded || strncmp(row->key, d->key, strlen(d->key)) != 0 ||
        row->key[strlen(d->key)] == '_' || strstr(row->key, "odd") ||
        fabs(log2(row->x[0] / d->site[0])) + fabs(log2(row->x[1] / d->site[1])) > 0.3)
        return KVC_OK;
    for (size_t a = 0; a < 8 && d->axes[0][a] > 0; a++)
        for (size_t b = 0; b < (family->n_axes > 1 ? 8 : 1); b++) {
            if (family->n_axes > 1 && !(d->axes[1][b] > 0))
                break;
            double off = fabs(log2(row->x[2] / d->axes[0][a])) +
                         (family->n_axes > 1 ? fabs(log2(row->x[3] / d->axes[1][b])) : 0) +
                         fabs(log2(row->x[0] / d->site[0])) + fabs(log2(row->x[1] / d->site[1]));
            if (d->best[a][b] > 0 && off >= d->best[a][b] - 1e-9)
                continue;
            if (!(d->best[a][b] > 0))
                d->at[a][b] = d->n++;
            d->best[a][b] = off + 1e-6;
            d->row[d->at[a][b]] = (struct kvc_own_row){.family = family, .row = *row};
        }
    return KVC_OK;
}

static size_t draw(struct kvc_own_row *rows, const char *file, struct draw d)
{
    struct kvc_error err = {0};

    d.row = rows;
    if (kvc_kernel_rows(file, take, &d, &err) != KVC_OK)
        fail_msg("%s", err.text);
    return d.n;
}

/* What kvcast bench would have measured, had it run vLLM's kernels; 0: the files are not here. */
static size_t draw_gpu(struct kvc_own_row *rows, const char *gpu)
{
    static const double shapes[][2] = {{28672, 4096}, {4096, 14336}, {6144, 4096},
                                       {4096, 4096},  {8192, 8192},  {7168, 8192},
                                       {8192, 3584},  {1280, 8192},  {8192, 1024}};
    char gemm[128], attention[128];
    size_t n = 0;

    snprintf(gemm, sizeof gemm, AIC "%s__gemm__vllm__0.24.0.csv.zst", gpu);
    snprintf(attention, sizeof attention, AIC "%s__generation_attention__vllm__0.24.0.csv.zst",
             gpu);
    if (access(gemm, R_OK) != 0)
        return 0;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        n += draw(rows + n, gemm,
                  (struct draw){.key = "bfloat16", .site = {shapes[s][0], shapes[s][1]},
                                .axes = {{16, 64, 256, 1024, 4096, 16384}}});
    if (access(attention, R_OK) != 0)
        return n;
    return n + draw(rows + n, attention,
                    (struct draw){.key = "bfloat16 bfloat16 d128 w0", .site = {32, 8},
                                  .axes = {{1, 4, 16, 64, 256}, {1024, 4096, 16384, 65536}}});
}

/* Errors of step times against those of the GPU's full tables, in the mean and at most. */
struct off {
    double mean, most, other; /* other: by the tables of the GPU that it was taken to be like */
};

static struct off steps_off(const char *gpu, const char *like, const struct kvc_user_profile *p)
{
    struct kvc_step_model *mine = model_of("Llama-3.1-8B", like, p, KVC_BF16);
    struct kvc_step_model *tables = model_of("Llama-3.1-8B", gpu, NULL, KVC_BF16);
    struct kvc_step_model *other = model_of("Llama-3.1-8B", like, NULL, KVC_BF16);
    struct off o = {0, 0, 0};

    for (uint32_t i = 0; i < 24; i++) {
        uint32_t tokens = i < 6 ? 256u << i : 0, decodes = i < 6 ? 0 : 1u << (i - 6) / 2;
        uint64_t context = i % 2 ? 8192 : 1024;
        double truth = step_ns(tables, tokens, decodes, context);
        double off = fabs(step_ns(mine, tokens, decodes, context) / truth - 1);
        o.mean += off / 24;
        o.most = fmax(o.most, off);
        o.other += fabs(step_ns(other, tokens, decodes, context) / truth - 1) / 24;
    }
    kvc_step_model_destroy(mine);
    kvc_step_model_destroy(tables);
    kvc_step_model_destroy(other);
    return o;
}

/* KVC_TEST_CASES: GPUs that are less alike, too. */
static void rows_of_a_gpu_with_tables_give_its_step_times(void **state)
{
    static const char *const pairs[][2] = {{"h200_sxm", "h100_sxm"}, {"b200_sxm", "h100_sxm"},
                                           {"l40s", "h100_sxm"}, {"h100_sxm", "l40s"}};
    struct kvc_own_row rows[MOST];
    struct kvc_own_kernels own;
    (void)state;
    for (size_t i = 0; i < (getenv("KVC_TEST_CASES") ? 4 : 1); i++) {
        size_t n = draw_gpu(rows, pairs[i][0]);
        if (!n)
            skip();
        struct kvc_user_profile *p = profile_of(rows, n, pairs[i][1], "A GPU", &own);
        struct off o = steps_off(pairs[i][0], pairs[i][1], p);
        print_message("%s taken for one like %s, %zu rows: %.1f %% off in the mean, %.1f %% at "
                      "most; by the latter's own tables %.0f %%\n", pairs[i][0], pairs[i][1], n,
                      100 * o.mean, 100 * o.most, 100 * o.other);
        assert_true(o.mean < (i ? 0.1 : 0.05) && o.most < (i ? 0.25 : 0.15));
        assert_true(o.mean < o.other / 4);
        kvc_own_kernels_clear(&own);
        kvc_user_profile_destroy(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_law_comes_back_from_few_rows),
        cmocka_unit_test(a_quick_look_moves_the_peaks),
        cmocka_unit_test(unmeasured_formats_move_with_bf16),
        cmocka_unit_test(a_bare_product_holds_no_quantising),
        cmocka_unit_test(plain_kernels_are_a_bound),
        cmocka_unit_test(beyond_the_rows_is_flagged),
        cmocka_unit_test(what_tables_miss_widens_the_band),
        cmocka_unit_test(a_stand_in_without_tables_is_not_asked_for_any),
        cmocka_unit_test(every_failed_allocation_is_clean),
        cmocka_unit_test(rows_of_a_gpu_with_tables_give_its_step_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
