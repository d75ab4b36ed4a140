/* SPDX-License-Identifier: Apache-2.0
 * Runs the fuzz target of logs with text over its corpus, and over damaged copies of each file. */
#include "base/rng.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fuzz/fuzz_text.c"

static void run_file(const char *path, unsigned copies)
{
    uint8_t bytes[8192], copy[8192];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    uint64_t rng = kvc_rng_stream(1, path);
    fclose(f);
    assert_int_equal(LLVMFuzzerTestOneInput(bytes, n), 0);
    for (unsigned i = 0; i < copies && n; i++) {
        memcpy(copy, bytes, n);
        for (uint64_t k = kvc_rng_below(&rng, 6); k < 6; k++)
            copy[kvc_rng_below(&rng, n)] = (uint8_t)kvc_rng_next(&rng);
        assert_int_equal(
            LLVMFuzzerTestOneInput(copy, kvc_rng_below(&rng, 4) ? n : kvc_rng_below(&rng, n)), 0);
    }
}

static void logs_with_text(void **state)
{
    (void)state;
    char path[512];
    unsigned files = 0;
    DIR *d = opendir("tests/fuzz/corpus/text");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "tests/fuzz/corpus/text/%s", e->d_name);
        run_file(path, 1000);
        files++;
    }
    closedir(d);
    assert_true(files >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(logs_with_text) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
