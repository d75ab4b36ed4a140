/* SPDX-License-Identifier: Apache-2.0
 * The sentences that sum a run up say what its figures say. */
#include "tests/report_sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "reports/reports.h"

static void says_when_tiers_do_not_pay(void **state)
{
    (void)state;
    static const struct {
        double saving;
        uint32_t tiers;
        const char *says;
    } cases[] = {{5000, 4, "save USD 5,000 a month"},
                 {-900, 4, "do not pay for this traffic"},
                 {0, 4, "do not pay for this traffic"},
                 {0, 1, "There is no tier below HBM"},
                 {NAN, 3, "Whether the tiers below HBM pay is unknown"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kvc_result *r = report_sample(5, 400, cases[i].tiers);
        struct kvc_findings f;
        struct kvc_error err;
        r->cost.saving_vs_hbm_only_usd_per_month = cases[i].saving;
        assert_int_equal(kvc_findings_make(&f, r, &err), KVC_OK);
        if (!strstr(f.verdict[1], cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", f.verdict[1], cases[i].says);
        kvc_result_destroy(r);
    }
}

/* The sample's own p99 has a band of -26 % and +36 %. */
static void says_whether_aims_hold(void **state)
{
    (void)state;
    static const struct {
        double of_p99;
        const char *says;
    } cases[] = {{2, "is held."},
                 {1.1, "is held, but not over the whole band."},
                 {0.9, "is missed, but not over the whole band."},
                 {0.5, "is missed."}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kvc_result *r = report_sample(5, 400, 3);
        struct kvc_findings f;
        struct kvc_error err;
        char json[128];
        snprintf(json, sizeof(json), "{\"slo\": {\"ttft_p99\": \"%.0fus\"}}",
                 r->ttft_ms.p99 * 1e3 * cases[i].of_p99);
        kvc_free(r->scenario_json);
        r->scenario_json = kvc_strdup(json);
        assert_non_null(r->scenario_json);
        assert_int_equal(kvc_findings_make(&f, r, &err), KVC_OK);
        if (!strstr(f.verdict[0], cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", f.verdict[0], cases[i].says);
        assert_null(strstr(f.verdict[0], "TPOT"));
        kvc_result_destroy(r);
    }
}

static void names_the_part_that_is_most_of_ttft(void **state)
{
    (void)state;
    static const char *const says[] = {"waiting for an engine", "own prefill",
                                       "loading from lower tiers", "the host's", NULL};
    for (size_t i = 0; i < 5; i++) {
        struct kvc_result *r = report_sample(5, 400, 3);
        struct kvc_findings f;
        struct kvc_error err;
        double *parts[] = {&r->ttft_part_queue_ms, &r->ttft_part_prefill_ms, &r->ttft_part_load_ms,
                           &r->ttft_part_host_ms};
        for (size_t k = 0; k < 4; k++)
            *parts[k] = r->ttft_ms.mean * (i == 4 ? 0.25 : k == i ? 0.7 : 0.1);
        assert_int_equal(kvc_findings_make(&f, r, &err), KVC_OK);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(strstr(f.verdict[0], says[k]) != NULL, k == i);
        kvc_result_destroy(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_when_tiers_do_not_pay),
        cmocka_unit_test(says_whether_aims_hold),
        cmocka_unit_test(names_the_part_that_is_most_of_ttft),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
