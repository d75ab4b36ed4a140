/* SPDX-License-Identifier: Apache-2.0
 * Arrays that move from small memory to pages of their own and to a file. */
#include "base/alloc.h"
#include "base/spill.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* From small memory to pages of its own, to a file: what is in stays, what comes is zero. */
static void arrays_keep_what_is_in_them(void **state)
{
    static const size_t sizes[] = { 100, 5000, (size_t)5 << 20, (size_t)9 << 20, (size_t)40 << 20 };
    struct kvc_spill s;
    struct kvc_spill_array held = { 0 };
    unsigned char *p = NULL;
    size_t had = 0;
    (void)state;
    assert_true(kvc_spill_init(&s, NULL, (uint64_t)32 << 20));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        kvc_alloc_fail_after(1);
        assert_false(i < 4 && kvc_spill_grow(&s, &p, &held, sizes[i], true));
        kvc_alloc_fail_after(0);
        assert_true(kvc_spill_grow(&s, &p, &held, sizes[i], true));
        assert_true(held.bytes >= sizes[i] && s.held + s.on_disk == held.bytes);
        for (size_t k = 0; k < held.bytes; k++)
            assert_int_equal(p[k], k < had ? (unsigned char)(k * 7) : 0);
        had = held.bytes;
        for (size_t k = 0; k < had; k++)
            p[k] = (unsigned char)(k * 7);
        assert_int_equal(held.file != 0, i == 4);
    }
    kvc_spill_free(&s, &p, &held);
    assert_true(s.held == 0 && s.on_disk == 0);
    kvc_spill_clear(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_keep_what_is_in_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
