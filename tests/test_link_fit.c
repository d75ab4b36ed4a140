/* SPDX-License-Identifier: Apache-2.0
 * Constants of links come back from measurements made of them: exact ones, noisy ones with some far
 * off, and the ones that the measurements can't tell are named as such. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "studies/calibrate/profile_write.h"
#include "tests/models_csv.h"

static const struct kvc_reader test_reader = {.name = "test", .what = "a test"};

struct law {
    double rate, latency, per_op;
};

static void add(struct kvc_readings *r, const struct law *law, double bytes, double depth,
                bool batch, double factor)
{
    const double c[] = {law->rate, law->latency, law->per_op};
    struct kvc_reading row = {.op_bytes = bytes, .depth = depth, .batch = batch, .spread = NAN};
    row.bytes_per_s = kvc_link_predict(c, &row) * factor;
    if (!r->n_files) {
        assert_true(kvc_grow((void **)&r->file, &r->cap_files, 1, sizeof *r->file));
        r->file[r->n_files++] = (struct kvc_readings_file){
            .path = "t", .name = "t", .reader = &test_reader, .link = "nvme-gen5-x4"};
    }
    assert_int_equal(kvc_readings_row(r, &row, NULL), KVC_OK);
}

static void grid(struct kvc_readings *r, const struct law *law, double noise, uint64_t seed)
{
    static const double depths[] = {1, 4, 16, 64, 256};
    uint64_t rng = kvc_rng_stream(seed, "link");
    size_t i = 0;
    for (double bytes = 4096; bytes <= 4194304; bytes *= 4)
        for (size_t d = 0; d < 5; d++, i++) {
            double f = exp(noise * (2 * kvc_rng_unit(&rng) - 1));
            if (noise > 0 && i % 10 == 3)
                f *= 0.4; /* somebody else used the drive */
            add(r, law, bytes, depths[d], false, f);
        }
}

static void expect(const struct kvc_link_fit *f, size_t i, double truth, double share)
{
    const struct kvc_fit_constant *c = &f->fit.constant[i];
    if (!c->told || fabs(c->value / truth - 1) > share)
        fail_msg("%s: %g (+- %g), made of %g", c->name, c->value, c->error, truth);
}

static void run(struct kvc_link_fits *fits, struct kvc_readings *r)
{
    struct kvc_error err = {0};
    if (kvc_link_fits_run(fits, r, NULL, &err) != KVC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(fits->n, 1);
}

static void exact_measurements_give_their_constants_back(void **state)
{
    static const struct law laws[] = {{14e9, 60e3, 400}, {3e9, 150e3, 4000}, {50e9, 8e3, 3360}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct kvc_readings r = {0};
        struct kvc_link_fits fits;
        grid(&r, &laws[i], 0, 1);
        run(&fits, &r);
        expect(&fits.fit[0], KVC_LINK_RATE, laws[i].rate, 0.005);
        expect(&fits.fit[0], KVC_LINK_LATENCY, laws[i].latency, 0.01);
        expect(&fits.fit[0], KVC_LINK_PER_OP, laws[i].per_op, 0.03);
        assert_true(fits.fit[0].fit.held_out_median < 0.01);
        assert_int_equal(fits.fit[0].fit.outliers, 0);
        kvc_link_fits_clear(&fits);
        kvc_readings_clear(&r);
    }
}

static void noise_and_outliers_stay_within_the_stated_errors(void **state)
{
    static const struct law law = {7e9, 80e3, 1500};
    const double truth[] = {law.rate, law.latency, law.per_op};
    size_t within = 0, all = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct kvc_readings r = {0};
        struct kvc_link_fits fits;
        grid(&r, &law, 0.08, seed);
        run(&fits, &r);
        for (size_t i = 0; i < KVC_LINK_CONSTANTS; i++, all++) {
            const struct kvc_fit_constant *c = &fits.fit[0].fit.constant[i];
            assert_true(c->told);
            expect(&fits.fit[0], i, truth[i], 0.2);
            within += fabs(c->value - truth[i]) <= 2 * c->error;
        }
        assert_in_range(fits.fit[0].fit.outliers, 2, 6);
        assert_true(fits.fit[0].fit.held_out_median < 0.1);
        kvc_link_fits_clear(&fits);
        kvc_readings_clear(&r);
    }
    if (within * 10 < all * 8)
        fail_msg("%zu of %zu constants within two standard errors", within, all);
}

static void told_is_what_the_rows_tell(struct kvc_readings *r, const bool told[3],
                                       const char *words)
{
    struct kvc_link_fits fits;
    struct kvc_text t = {0};
    run(&fits, r);
    for (size_t i = 0; i < KVC_LINK_CONSTANTS; i++) {
        const struct kvc_fit_constant *c = &fits.fit[0].fit.constant[i];
        if (c->told != told[i])
            fail_msg("%s (%g, %g) is %stold: %s", c->name, c->value, c->error,
                     c->told ? "" : "not ", words);
        if (!told[i])
            assert_true(c->value == c->base && isnan(c->error));
    }
    kvc_measured_fit_words(&fits.fit[0].fit, "", &t);
    if (words && (!t.buf || !strstr(t.buf, words)))
        fail_msg("%s", t.buf ? t.buf : "(nothing)");
    kvc_text_clear(&t);
    kvc_link_fits_clear(&fits);
    kvc_readings_clear(r);
}

static void what_can_not_be_told_is_said(void **state)
{
    static const struct law law = {10e9, 70e3, 900};
    struct kvc_readings r = {0};
    (void)state;
    add(&r, &law, 512 << 20, INFINITY, false, 1); /* one big copy */
    told_is_what_the_rows_tell(&r, (const bool[]){true, false, false},
                               "latency: not told by these measurements");
    for (double bytes = 4096; bytes <= 1 << 24; bytes *= 4)
        add(&r, &law, bytes, 256, false, 1); /* deep queues only */
    told_is_what_the_rows_tell(&r, (const bool[]){true, false, true}, "latency: not told");
    for (double bytes = 4096; bytes <= 1 << 24; bytes *= 4)
        add(&r, &law, bytes, 1, false, 1); /* one at a time: latency and operation are one */
    told_is_what_the_rows_tell(&r, (const bool[]){true, true, false},
                               "time per operation: not told");
    for (int i = 0; i < 8; i++)
        add(&r, &law, 4096, 1 << i, false, 1); /* one size */
    told_is_what_the_rows_tell(&r, (const bool[]){false, true, true},
                               "only a mix of it and time per operation");
}

static void batches_tell_all_three(void **state)
{
    static const struct law law = {48e9, 12e3, 250};
    struct kvc_readings r = {0};
    struct kvc_link_fits fits;
    (void)state;
    for (double n = 1; n <= 1024; n *= 8)
        for (double bytes = 4096; bytes <= 1 << 22; bytes *= 8)
            add(&r, &law, bytes, n, true, 1);
    run(&fits, &r);
    expect(&fits.fit[0], KVC_LINK_RATE, law.rate, 0.005);
    expect(&fits.fit[0], KVC_LINK_LATENCY, law.latency, 0.01);
    expect(&fits.fit[0], KVC_LINK_PER_OP, law.per_op, 0.03);
    kvc_link_fits_clear(&fits);
    kvc_readings_clear(&r);
}

/* Blocks copied between an H100 and its host, read off a plot, against the figures that links.json
 * states of the same plot, fitted elsewhere by another program. */
static void a_published_plot_gives_the_carried_figures(void **state)
{
    static const struct {
        const char *direction, *method, *link;
    } c[] = {{"cpu_to_gpu", "kernel", "pcie5-x16"}, {"gpu_to_cpu", "kernel", "pcie5-x16"},
             {"cpu_to_gpu", "dma", "pcie5-x16-dma"}, {"gpu_to_cpu", "dma", "pcie5-x16-dma"}};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct kvc_link_profile *l = kvc_link_find(c[i].link);
        struct law law = {1e9, 0, 0};
        struct kvc_readings r = {0};
        struct kvc_link_fits fits;
        struct test_csv csv;
        if (!test_csv_open(&csv, "../shared/kernels/links/gpu_host_copy_vs_block.csv") || !l) {
            print_message("SKIPPED: no ../shared/kernels, or no such link\n");
            skip();
        }
        while (test_csv_row(&csv))
            if (!strcmp(test_csv_get(&csv, "direction"), c[i].direction) &&
                !strcmp(test_csv_get(&csv, "method"), c[i].method)) {
                double bytes = test_csv_number(&csv, "block_kb") * 1024;
                law.rate = test_csv_number(&csv, "throughput_gb_s") * 1e9;
                add(&r, &law, bytes, INFINITY, false, 1);
            }
        test_csv_close(&csv);
        assert_int_equal(r.n, 13);
        run(&fits, &r);
        expect(&fits.fit[0], KVC_LINK_RATE,
               i % 2 ? l->write_bytes_per_s.value : l->read_bytes_per_s.value, 0.03);
        double per_op = fits.fit[0].fit.constant[KVC_LINK_PER_OP].value;
        if (fabs(per_op / l->per_op_ns.value - 1) > 0.35) /* one figure stands for both ways */
            fail_msg("%s %s: %g ns a block, %g carried", c[i].direction, c[i].method, per_op,
                     l->per_op_ns.value);
        assert_false(fits.fit[0].fit.constant[KVC_LINK_LATENCY].told);
        kvc_link_fits_clear(&fits);
        kvc_readings_clear(&r);
    }
}

/* Each allocation of ours fails once: no memory is said, nothing is lost. */
static void memory_may_run_out_at_any_time(void **state)
{
    static const struct law law = {7e9, 80e3, 1500};
    struct kvc_readings r = {0};
    uint64_t last = 0;
    (void)state;
    grid(&r, &law, 0, 1);
    for (uint64_t n = 1; n < 4000 && !last; n++) {
        struct kvc_link_fits fits;
        char *text = NULL;
        struct kvc_error err = {0};
        kvc_alloc_fail_after(n);
        enum kvc_status status = kvc_link_fits_run(&fits, &r, NULL, &err);
        const struct kvc_profile_parts parts = {.readings = &r, .links = &fits};
        if (status == KVC_OK)
            status = kvc_profile_text(&text, &parts, &err);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
        last = status == KVC_OK ? n : 0;
        kvc_free(text);
        kvc_link_fits_clear(&fits);
    }
    assert_true(last > 5);
    kvc_readings_clear(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_measurements_give_their_constants_back),
        cmocka_unit_test(noise_and_outliers_stay_within_the_stated_errors),
        cmocka_unit_test(what_can_not_be_told_is_said),
        cmocka_unit_test(batches_tell_all_three),
        cmocka_unit_test(a_published_plot_gives_the_carried_figures),
        cmocka_unit_test(memory_may_run_out_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
