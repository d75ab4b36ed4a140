/* SPDX-License-Identifier: Apache-2.0
 * Published figures: the table is the collected facts, closed forms are computed here again, and
 * every verdict follows its rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "studies/headlines/headlines.h"

#define FACTS "../shared/headlines.json"

static bool near(double a, double b, double within)
{
    return fabs(a - b) <= within;
}

static enum kvc_status keep(void *user, const struct kvc_headline_result *r)
{
    *(struct kvc_headline_result *)user = *r;
    return KVC_OK;
}

static struct kvc_headline_result one(const char *id)
{
    struct kvc_headline_result r = {.headline = NULL};
    struct kvc_error err = {0};

    if (kvc_headlines_run(&id, 1, keep, &r, &err) != KVC_OK)
        fail_msg("%s: %s", id, err.text);
    assert_non_null(r.headline);
    assert_string_equal(r.headline->id, id);
    return r;
}

static void closed_forms_are_exact(void **state)
{
    (void)state;
    /* 80 layers, 8 heads, 128 values of key and of value, 2 bytes */
    double token = 80.0 * 8 * 128 * 2 * 2;

    assert_true(near(one("A01").predicted[0], token * 131072 * 256 / 1e12, 1e-9));
    assert_true(near(one("A02").predicted[0], token * 131072 / 1073741824, 1e-9));
    assert_true(near(one("A03").predicted[0], 0.5, 1e-12));
    assert_true(near(one("A06").predicted[0], token / 2 * 131072 / 40e9 * 1e3, 1e-6));
    assert_true(near(one("D09").predicted[0], 360448.0 * 140000 / 12.5e9, 1e-9));
    assert_true(near(one("F12").predicted[0], 87072, 1e-9));
    assert_true(near(one("F14").predicted[0], 0.5625, 1e-9));
    assert_true(fabs(one("F13").predicted[0] - 562100) < 1);
}

/* The break-even is published with 40 %: it divides by a gap of 0.14 ms. */
static void fp8_pays_above_some_context(void **state)
{
    (void)state;
    struct kvc_headline_result r = one("C01");

    print_message("fp8 KV breaks even at %.0f tokens on H100, published %.0f\n", r.predicted[0],
                  r.headline->published[0]);
    assert_true(fabs(r.ratio - 1) <= 0.4);
    assert_int_equal(r.verdict, KVC_HEADLINE_MET);
}

static enum kvc_status check_rule(void *user, const struct kvc_headline_result *r)
{
    size_t *n = user;

    ++*n;
    assert_true(r->headline->reason[0] && r->headline->source[0] && r->headline->claim[0]);
    assert_int_equal(r->predictions == 0, r->verdict == KVC_HEADLINE_UNKNOWN);
    if (r->headline->rule == KVC_HEADLINE_EACH) {
        double worst = 1;
        for (size_t i = 0; i < r->headline->values; i++) {
            double ratio = r->predicted[i] / r->headline->published[i];
            worst = fabs(log(ratio)) > fabs(log(worst)) ? ratio : worst;
        }
        assert_true(near(r->ratio, worst, 1e-12));
    }
    return KVC_OK;
}

static void verdicts_follow_their_rules(void **state)
{
    (void)state;
    struct kvc_error err = {0};
    size_t rows, seen = 0;
    const struct kvc_headline *table = kvc_headline_table(&rows);

    for (size_t i = 1; i < rows; i++)
        assert_true(strcmp(table[i - 1].id, table[i].id) < 0);
    assert_int_equal(kvc_headlines_run(NULL, 0, check_rule, &seen, &err), KVC_OK);
    assert_int_equal(seen, rows);
}

static void an_unknown_id_is_refused(void **state)
{
    (void)state;
    const char *ids[] = {"A01", "Z99"};
    struct kvc_headline_result r;
    struct kvc_error err = {0};

    assert_int_equal(kvc_headlines_run(ids, 2, keep, &r, &err), KVC_ERR_USAGE);
    assert_non_null(strstr(err.text, "Z99"));
}

/* Numbers of a value or a list of them; texts like ">=2000" by their digits. */
static double published(const struct kvc_jval *v, size_t i)
{
    double x = NAN;

    if (kvc_jval_kind(v) == KVC_JARRAY) {
        for (v = kvc_jval_first(v); v && i; i--)
            v = kvc_jval_next(v);
    }
    if (v && kvc_jval_string(v))
        x = strtod(kvc_jval_string(v) + strspn(kvc_jval_string(v), ">="), NULL);
    else if (v)
        kvc_jval_number(v, &x);
    return x;
}

/* Ours may state a part of what a row holds, or a difference (D09). */
static void the_table_is_the_collected_facts(void **state)
{
    (void)state;
    static char text[1 << 20];
    FILE *f = fopen(FACTS, "rb");
    struct kvc_jval *root;
    struct kvc_error err = {0};
    size_t rows, known = 0;
    const struct kvc_headline *table = kvc_headline_table(&rows);

    if (!f) {
        print_message("no " FACTS ": skipped\n");
        skip();
    }
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    assert_int_equal(kvc_json_parse(&root, text, n, false, FACTS, 1, &err), KVC_OK);
    for (const struct kvc_jval *h = kvc_jval_first(root); h; h = kvc_jval_next(h)) {
        const char *id = kvc_jval_string(kvc_jval_member(h, "id"));
        size_t i = 0;
        while (i < rows && strcmp(table[i].id, id) != 0)
            i++;
        if (i == rows)
            fail_msg("%s is not in the table", id);
        known++;
        double value = published(kvc_jval_member(h, "value"), 0);
        if (!isnan(value) && strcmp(id, "D09") != 0)
            assert_true(near(table[i].published[0], value, 1e-9 * fabs(value)));
    }
    assert_int_equal(known + 1, rows); /* C01b is of the same page as C01 */
    kvc_json_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms_are_exact),
        cmocka_unit_test(fp8_pays_above_some_context),
        cmocka_unit_test(verdicts_follow_their_rules),
        cmocka_unit_test(an_unknown_id_is_refused),
        cmocka_unit_test(the_table_is_the_collected_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
