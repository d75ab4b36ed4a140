/* SPDX-License-Identifier: Apache-2.0
 * A part of a trace, by hand, and when memory runs out; tests/cli_where.sh holds parts against
 * logs. */
#include "base/alloc.h"
#include "tests/trace_files.h"
#include "traces/where.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char log_text[] =
    "{\"timestamp\": 1000, \"input_length\": 30, \"output_length\": 1, \"hash_ids\": [1, 2, 3], "
    "\"tenant\": \"a\"}\n"
    "{\"timestamp\": 2000, \"input_length\": 30, \"output_length\": 1, \"hash_ids\": [1, 4, 5], "
    "\"tenant\": \"b\"}\n"
    "{\"timestamp\": 3000, \"input_length\": 30, \"output_length\": 1, \"hash_ids\": [6, 7, 8], "
    "\"tenant\": \"b\"}\n"
    "{\"timestamp\": 4000, \"input_length\": 30, \"output_length\": 1, \"hash_ids\": [1, 2, 9], "
    "\"tenant\": \"c\"}\n"
    "{\"timestamp\": 6000, \"input_length\": 20, \"output_length\": 1, \"hash_ids\": [1, 2]}\n";

static void what_is_left_is_whole(void **state)
{
    struct kvc_trace *t = trace_import(trace_text("log.jsonl", log_text), 10, NULL);
    uint64_t left_out = 0;
    (void)state;
    assert_int_equal(t->n_segments, 6);
    assert_int_equal(kvc_trace_where(t, "tenant=a,tenant=c", &left_out, NULL), KVC_OK);
    assert_int_equal(left_out, 3);
    assert_int_equal(t->n_requests, 2);
    assert_int_equal(t->arrival_ns[0], 0);
    assert_int_equal(t->arrival_ns[1], 3000000000u);
    assert_int_equal(t->n_tenants, 2);
    assert_string_equal(t->tenant_names[t->tenant[1]], "c");
    assert_int_equal(t->n_segments, 3); /* 1 2 are one piece again */
    assert_int_equal(t->seg_len[0], 2);
    assert_int_equal(t->seg_parent[t->prompt_seg[1]], 0);
    assert_int_equal(kvc_trace_where(t, "tenant=b", &left_out, NULL), KVC_ERR_USAGE);
    assert_int_equal(t->n_requests, 2);
    kvc_trace_destroy(t);
}

static void every_failed_allocation_is_reported(void **state)
{
    enum kvc_status status = KVC_ERR_NOMEM;
    uint64_t nth = 0, left_out;
    (void)state;
    while (status != KVC_OK) {
        struct kvc_trace *t = trace_import(trace_text("log.jsonl", log_text), 10, NULL);
        kvc_alloc_fail_after(++nth);
        status = kvc_trace_where(t, "tenant=a,tenant=b", &left_out, NULL);
        kvc_alloc_fail_after(0);
        assert_true(status == KVC_OK || status == KVC_ERR_NOMEM);
        kvc_trace_destroy(t);
    }
    assert_true(nth > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_whole),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, trace_files_setup, trace_files_teardown);
}
