/* SPDX-License-Identifier: Apache-2.0
 * Work dealt to threads: all of it once, and the error that one thread would have met first. */
#include "base/error.h"
#include "base/parallel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define PIECES 500

struct pieces {
    atomic_uint done[PIECES];
    size_t bad[2]; /* fail */
};

static enum kvc_status piece(void *user, size_t i, struct kvc_error *err)
{
    struct pieces *p = user;
    atomic_fetch_add(&p->done[i], 1);
    return i == p->bad[0] || i == p->bad[1]
               ? kvc_fail(err, KVC_ERR_INPUT, "piece %zu", i) : KVC_OK;
}

static void all_are_done_once(void **state)
{
    (void)state;
    for (uint32_t threads = 0; threads <= 9; threads++)
        for (size_t n = 0; n <= PIECES; n = 2 * n + 1) {
            struct pieces p = {.bad = {PIECES, PIECES}};
            assert_int_equal(kvc_parallel(threads, n, piece, &p, NULL), KVC_OK);
            for (size_t i = 0; i < PIECES; i++)
                assert_int_equal(p.done[i], i < n);
        }
}

static void the_first_error_is_told(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 9; threads++)
        for (size_t at = 0; at + 1 < PIECES; at += 7) {
            struct pieces p = {.bad = {at + 1, at}};
            struct kvc_error err = {0};
            char text[32];
            assert_int_equal(kvc_parallel(threads, PIECES, piece, &p, &err), KVC_ERR_INPUT);
            snprintf(text, sizeof(text), "piece %zu", at);
            assert_string_equal(err.text, text);
            assert_true(threads > 1 || p.done[at + 1] == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_done_once),
        cmocka_unit_test(the_first_error_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
