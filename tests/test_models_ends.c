/* SPDX-License-Identifier: Apache-2.0
 * Where the rows of each shape begin and end: told by the tables as a plain reading of the rows
 * tells it, kept in files, flagged beyond, and what stands beyond taken from shapes that go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "models/step_model.h"
#include "studies/csv_table.h"
#include "studies/kernels/rows.h"

#define AIC "../shared/kernels/aic/h100_sxm__"

/* ---- a second reading of the rows ---- */

struct shape {
    double x[2], first[2], last[2], product;
};

static double cell(struct kvc_csv_table *t, const char *name)
{
    double v = NAN;

    assert_int_equal(kvc_csv_table_number(t, name, &v, NULL), KVC_OK);
    return v;
}

static void widen(struct shape *shapes, size_t *n, const double *x, const double *axes)
{
    size_t i = 0;

    while (i < *n && memcmp(shapes[i].x, x, sizeof shapes[i].x) != 0)
        i++;
    struct shape *s = &shapes[i];
    if (i == *n) {
        *s = (struct shape){{x[0], x[1]}, {axes[0], axes[1]}, {axes[0], axes[1]}, 0};
        (*n)++;
    }
    for (size_t a = 0; a < 2; a++) {
        s->first[a] = fmin(s->first[a], axes[a]);
        s->last[a] = fmax(s->last[a], axes[a]);
    }
    s->product = fmax(s->product, axes[0] * axes[1]);
}

static void tables_agree(const char *family, const char *key, const struct shape *shapes, size_t n)
{
    struct kvc_kernel_store s;
    const struct kvc_kernel_family *f = kvc_kernel_family_find(family);

    assert_int_equal(kvc_kernel_store_load(&s, kvc_gpu_find("h100_sxm"), "vllm", NULL), KVC_OK);
    const struct kvc_kernel_table *t = kvc_kernel_store_find(&s, f, key);
    assert_non_null(t);
    assert_int_equal(t->n_sites, n);
    for (size_t i = 0; i < n; i++) {
        const double site[KVC_KERNEL_SITE] = {shapes[i].x[0], shapes[i].x[1]};
        struct kvc_kernel_curve c;
        kvc_kernel_curve_at(t, site, &c);
        assert_true(c.octaves == 0);
        for (size_t a = 0; a < f->n_axes; a++)
            if (fabs(c.first[a] - shapes[i].first[a]) > 0.5 ||
                fabs(c.last[a] - shapes[i].last[a]) > 0.5)
                fail_msg("%s %g %g: %g to %g, rows %g to %g", key, site[0], site[1], c.first[a],
                         c.last[a], shapes[i].first[a], shapes[i].last[a]);
        if (f->n_axes == 2)
            assert_true(fabs(c.product / shapes[i].product - 1) < 1e-6);
    }
    kvc_kernel_store_clear(&s);
}

static void attention_ends_where_its_rows_do(void **state)
{
    (void)state;
    static struct shape shapes[2][200];
    struct kvc_csv_table t;
    size_t n[2] = {0, 0};
    bool more = true;

    if (access(AIC "generation_attention__vllm__0.24.0.csv.zst", R_OK) != 0)
        skip();
    assert_int_equal(kvc_csv_table_open(&t, AIC "generation_attention__vllm__0.24.0.csv.zst", NULL),
                     KVC_OK);
    while (kvc_csv_table_next(&t, &more, NULL) == KVC_OK && more) {
        const double x[] = {cell(&t, "num_heads"), cell(&t, "num_key_value_heads")};
        const double axes[] = {cell(&t, "batch_size"), cell(&t, "step") + 1};
        if (axes[1] >= 64 && cell(&t, "head_dim") == 128 && cell(&t, "window_size") == 0) {
            size_t k = strcmp(kvc_csv_table_cell(&t, "kv_cache_dtype"), "fp8") == 0;
            widen(shapes[k], &n[k], x, axes);
        }
    }
    kvc_csv_table_close(&t);
    assert_true(n[0] > 20 && n[1] > 20);
    tables_agree("generation_attention", "bfloat16 bfloat16 d128 w0 vllm_flash_attn_fa3",
                 shapes[0], n[0]);
    tables_agree("generation_attention", "bfloat16 fp8 d128 w0 vllm_flash_attn_fa3", shapes[1],
                 n[1]);
}

static void products_end_where_their_rows_do(void **state)
{
    (void)state;
    static struct shape shapes[2000];
    struct kvc_csv_table t;
    size_t n = 0;
    bool more = true;

    if (access(AIC "gemm__vllm__0.24.0.csv.zst", R_OK) != 0)
        skip();
    assert_int_equal(kvc_csv_table_open(&t, AIC "gemm__vllm__0.24.0.csv.zst", NULL), KVC_OK);
    while (kvc_csv_table_next(&t, &more, NULL) == KVC_OK && more) {
        const double x[] = {cell(&t, "n"), cell(&t, "k")}, axes[] = {cell(&t, "m"), 1};
        if (strcmp(kvc_csv_table_cell(&t, "gemm_dtype"), "bfloat16") == 0 &&
            (axes[0] <= 16 || fmod(axes[0], 16) == 0))
            widen(shapes, &n, x, axes);
    }
    kvc_csv_table_close(&t);
    assert_true(n > 200);
    tables_agree("gemm", "bfloat16", shapes, n);
}

/* ---- flags ---- */

static struct kvc_step_model *build(const char *gpu, const char *llm, enum kvc_dtype kv,
                                    uint32_t tp)
{
    const struct kvc_step_config config = {kvc_llm_find(llm), kvc_gpu_find(gpu), "vllm",
                                           KVC_BF16, kv, tp, 1, .ep = 1};
    struct kvc_step_model *m = NULL;
    struct kvc_error err = {0};

    if (kvc_step_model_create(&m, &config, &err) != KVC_OK)
        fail_msg("%s", err.text);
    return m;
}

static bool decode_outside(const struct kvc_step_model *m, uint32_t n, uint64_t each)
{
    return (kvc_step_flags(m, NULL, 0, n, n * each) & KVC_STEP_OUTSIDE) != 0;
}

/* H100, vLLM: attention of 32 heads over 8 was measured to 65,536 tokens, and to 524,288 of all
 * sequences together; that of 16 over 4, two ranks' share, to 131,072. */
static void flags_follow_the_shape(void **state)
{
    (void)state;

    for (size_t k = 0; k < 2; k++) {
        struct kvc_step_model *one = build("h100_sxm", "Llama-3.1-8B", k ? KVC_FP8 : KVC_BF16, 1);
        struct kvc_step_model *two = build("h100_sxm", "Llama-3.1-8B", k ? KVC_FP8 : KVC_BF16, 2);
        assert_false(decode_outside(one, 1, 60000));
        assert_false(decode_outside(one, 1, 65536));
        assert_true(decode_outside(one, 1, 65537));
        assert_true(decode_outside(one, 1, 110000));
        assert_false(decode_outside(one, 64, 8192));
        assert_true(decode_outside(one, 64, 16384));
        assert_false(decode_outside(two, 1, 110000));
        struct kvc_time_band in, out;
        kvc_step_band(one, kvc_step_flags(one, NULL, 0, 1, 60000), &in);
        /* more than twice beyond, as no row behind a band is */
        kvc_step_band(one, kvc_step_flags(one, NULL, 0, 1, 140000), &out);
        assert_true(out.tpot_high > in.tpot_high && out.tpot_low < in.tpot_low);
        kvc_step_model_destroy(one);
        kvc_step_model_destroy(two);
    }
    /* products of RTX PRO 6000 were measured to 2,048 tokens, that of the head to 256 */
    struct kvc_chunk whole = {2048, 0}, more = {2049, 0};
    struct kvc_step_model *pro = build("rtx_pro_6000", "Llama-3.1-8B", KVC_BF16, 1);
    assert_int_equal(kvc_step_flags(pro, &whole, 1, 0, 0), 0);
    assert_int_equal(kvc_step_flags(pro, &more, 1, 0, 0), KVC_STEP_OUTSIDE);
    kvc_step_model_destroy(pro);
}

/* A model whose kernels begin at 64 tokens, say: half of them is near enough, an eighth is not. */
static void flags_tell_the_small_end(void **state)
{
    (void)state;
    struct kvc_step_model *m = build("h100_sxm", "Llama-3.1-8B", KVC_BF16, 1);
    struct kvc_chunk half = {32, 0}, eighth = {8, 0};

    assert_int_equal(kvc_step_flags(m, &eighth, 1, 1, 64), 0);
    m->least.tokens = 64;
    assert_int_equal(kvc_step_flags(m, &half, 1, 0, 0), 0);
    assert_int_equal(kvc_step_flags(m, &eighth, 1, 0, 0), KVC_STEP_OUTSIDE);
    m->least.tokens = 0;
    m->least.context = 4096;
    assert_true(decode_outside(m, 8, 1000));
    assert_false(decode_outside(m, 8, 1024));
    kvc_step_model_destroy(m);
}

/* ---- beyond the end ---- */

static const struct kvc_peaks peaks = {1e15, 2e15, 4e15, 3e12};

/* Kernels of one step in the context, each shape slower than the form by its own factor. */
static double law_ns(const struct kvc_kernel_family *f, const struct kvc_kernel_row *r)
{
    const double constants[] = {1e4, 0.8, 0, 0};
    bool slow = fmod(log2(r->x[0]), 2) > 0.5; /* every second number of heads */

    return f->form(constants, r->params, &peaks, r->x) * (slow ? 1.6 : 1) *
           (r->x[3] > 8192 ? 1.5 : 1);
}

/* Shapes that go on are all slow ones: their mean is no measure of a quick one, their step is. And
 * what was told of ends before is told after a round trip. */
static void beyond_the_end_others_say_how_it_goes_on(void **state)
{
    (void)state;
    static struct kvc_kernel_row rows[8 * 4 * 10];
    const struct kvc_kernel_family *f = kvc_kernel_family_find("generation_attention");
    const struct kvc_kernel_profile profile = {"h100_sxm", "vllm", "1"};
    struct kvc_kernel_store s = {.peaks = peaks}, again;
    size_t n = 0;

    for (int h = 0; h < 8; h++)
        for (int b = 0; b < 4; b++)
            for (int c = 0; c < (h % 2 ? 10 : 8); c++) {
                struct kvc_kernel_row *r = &rows[n++];
                memset(r, 0, sizeof *r);
                strcpy(r->key, "law law");
                r->x[0] = exp2(h);
                r->x[1] = 1;
                r->x[2] = exp2(b);
                r->x[3] = 128 * exp2(c);
                r->params[0] = 2;
                r->params[1] = 128;
                r->ns = law_ns(f, r);
            }
    assert_int_equal(kvc_kernel_fit(&s.tables, f, rows, n, &peaks, "a law", NULL), KVC_OK);
    char *text = kvc_kernel_store_text(&s.tables, &profile);
    assert_int_equal(kvc_kernel_store_parse(&again, text, strlen(text), "x.json", NULL), KVC_OK);
    again.peaks = peaks;
    for (int h = 0; h < 8; h++) {
        struct kvc_kernel_row r = rows[0];
        double ns, after;
        bool outside, outside_after;
        r.x[0] = exp2(h);
        r.x[3] = 128 * 512;
        assert_true(kvc_kernel_store_predict(&s, f, &r, &ns, &outside));
        assert_true(kvc_kernel_store_predict(&again, f, &r, &after, &outside_after));
        assert_true(outside == (h % 2 == 0) && outside_after == outside);
        if (fabs(ns / law_ns(f, &r) - 1) > 0.05 || fabs(after / ns - 1) > 0.03)
            fail_msg("%g heads: %g ns, %g from the file, %g by the law", r.x[0], ns, after,
                     law_ns(f, &r));
        r.x[3] = 128 * 128;
        assert_true(kvc_kernel_store_predict(&again, f, &r, &ns, &outside) && !outside);
    }
    kvc_free(text);
    kvc_kernel_store_clear(&s);
    kvc_kernel_store_clear(&again);
}

struct gathered {
    struct kvc_kernel_row seen[8000], hidden[400];
    size_t n_seen, n_hidden;
};

static enum kvc_status gather(void *user, const struct kvc_kernel_label *label,
                              const struct kvc_kernel_family *family,
                              const struct kvc_kernel_row *row, uint64_t line,
                              struct kvc_error *err)
{
    struct gathered *g = user;

    (void)label, (void)family, (void)line, (void)err;
    if (row && g->n_seen < 8000 &&
        strcmp(row->key, "bfloat16 fp8 d128 w0 vllm_flash_attn_fa3") == 0)
        g->seen[g->n_seen++] = *row;
    return KVC_OK;
}

/* The last contexts of one batch of a quarter of the shapes, where accuracy is claimed. */
static void hide_ends(struct gathered *g)
{
    size_t kept = 0;

    for (size_t i = 0; i < g->n_seen; i++) {
        const struct kvc_kernel_row *r = &g->seen[i];
        bool last = !r->excluded && ((unsigned)r->x[0] + (unsigned)r->x[1]) % 4 == 0;
        for (size_t j = 0; last && j < g->n_seen; j++)
            last = memcmp(g->seen[j].x, r->x, 3 * sizeof r->x[0]) != 0 ||
                   g->seen[j].x[3] <= r->x[3];
        if (last && g->n_hidden < 400)
            g->hidden[g->n_hidden++] = *r;
    }
    for (size_t i = 0, h = 0; i < g->n_seen; i++)
        if (h < g->n_hidden && memcmp(&g->seen[i], &g->hidden[h], sizeof g->hidden[h]) == 0)
            h++;
        else
            g->seen[kept++] = g->seen[i];
    g->n_seen = kept;
}

/* A little worse than rows between others; the shape's own slope would be 10 % off. */
static void ends_left_out_are_told_by_others(void **state)
{
    (void)state;
    static struct gathered g;
    const struct kvc_kernel_family *f = kvc_kernel_family_find("generation_attention");
    struct kvc_kernel_store s = {.peaks = kvc_peaks_of(kvc_gpu_find("h100_sxm"))};
    double sum = 0;

    if (access(AIC "generation_attention__vllm__0.24.0.csv.zst", R_OK) != 0)
        skip();
    assert_int_equal(kvc_kernel_rows(AIC "generation_attention__vllm__0.24.0.csv.zst", gather, &g,
                                     NULL), KVC_OK);
    hide_ends(&g);
    assert_int_equal(kvc_kernel_fit(&s.tables, f, g.seen, g.n_seen, &s.peaks, "-", NULL), KVC_OK);
    for (size_t i = 0; i < g.n_hidden; i++) {
        double ns;
        bool outside;
        assert_true(kvc_kernel_store_predict(&s, f, &g.hidden[i], &ns, &outside));
        sum += fabs(ns / g.hidden[i].ns - 1);
    }
    double off = 100 * sum / (double)g.n_hidden, between = s.tables.table[0].random.mape;
    print_message("%zu last rows left out: %.1f %% off, rows at random %.1f %%\n", g.n_hidden, off,
                  between);
    assert_true(g.n_hidden > 50 && off < 1.6 * between);
    kvc_kernel_store_clear(&s);
}

static int ready(void **state)
{
    (void)state;
    return kvc_profiles_ready(NULL) != KVC_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_ends_where_its_rows_do),
        cmocka_unit_test(products_end_where_their_rows_do),
        cmocka_unit_test(flags_follow_the_shape),
        cmocka_unit_test(flags_tell_the_small_end),
        cmocka_unit_test(beyond_the_end_others_say_how_it_goes_on),
        cmocka_unit_test(ends_left_out_are_told_by_others),
    };
    return cmocka_run_group_tests(tests, ready, NULL);
}
