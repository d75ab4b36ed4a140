/* SPDX-License-Identifier: Apache-2.0
 * Runs the tokenizer's fuzz target over its corpus and over damaged copies of each file. */
#include "base/rng.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fuzz/fuzz_tokenizer.c"

static void run_file(const char *path)
{
    uint8_t bytes[4096], copy[4096];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    uint64_t rng = kvc_rng_stream(1, path);
    fclose(f);
    assert_true(n > 0);
    assert_int_equal(LLVMFuzzerTestOneInput(bytes, n), 0);
    for (unsigned i = 0; i < 400; i++) {
        memcpy(copy, bytes, n);
        /* mostly in the text behind the NUL, so that the file still opens */
        const uint8_t *nul = memchr(bytes, 0, n);
        size_t from = nul && kvc_rng_below(&rng, 2) ? (size_t)(nul - bytes) + 1 : 0;
        for (uint64_t k = kvc_rng_below(&rng, 6); k < 6 && from < n; k++)
            copy[from + kvc_rng_below(&rng, n - from)] = (uint8_t)kvc_rng_next(&rng);
        assert_int_equal(LLVMFuzzerTestOneInput(copy, n), 0);
    }
}

static void tokenizers(void **state)
{
    char path[512];
    unsigned files = 0;
    DIR *d = opendir("tests/fuzz/corpus/tokenizer");
    (void)state;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof(path), "tests/fuzz/corpus/tokenizer/%s", e->d_name);
        if (e->d_name[0] == '.')
            continue;
        run_file(path);
        files++;
    }
    closedir(d);
    assert_true(files >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokenizers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
