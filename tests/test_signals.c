/* SPDX-License-Identifier: Apache-2.0
 * Signals that ask the program to end wait while they are held back, and come when it is over. */
#include "base/signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static volatile sig_atomic_t came;

static void note(int signal)
{
    came = signal;
}

static void each_waits_and_comes(void **state)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
    (void)state;
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
        struct sigaction act = { .sa_handler = note }, usual;
        sigset_t before;
        came = 0;
        assert_int_equal(sigaction(ending[i], &act, &usual), 0);
        kvc_signals_hold(&before);
        assert_false(kvc_signals_waiting());
        assert_int_equal(raise(ending[i]), 0);
        assert_true(kvc_signals_waiting());
        assert_int_equal(came, 0);
        kvc_signals_release(&before);
        assert_int_equal(came, ending[i]);
        assert_false(kvc_signals_waiting());
        assert_int_equal(sigaction(ending[i], &usual, NULL), 0);
    }
}

/* Held twice, once within the other: they come at the end of the outer one. */
static void holds_nest(void **state)
{
    struct sigaction act = { .sa_handler = note }, usual;
    sigset_t outer, inner;
    (void)state;
    came = 0;
    assert_int_equal(sigaction(SIGTERM, &act, &usual), 0);
    kvc_signals_hold(&outer);
    kvc_signals_hold(&inner);
    assert_int_equal(raise(SIGTERM), 0);
    kvc_signals_release(&inner);
    assert_int_equal(came, 0);
    kvc_signals_release(&outer);
    assert_int_equal(came, SIGTERM);
    assert_int_equal(sigaction(SIGTERM, &usual, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_waits_and_comes),
        cmocka_unit_test(holds_nest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
