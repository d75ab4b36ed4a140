/* SPDX-License-Identifier: Apache-2.0
 * Runs the readers' fuzz targets over their corpora, and over damaged copies of each file. */
#include "base/rng.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LLVMFuzzerTestOneInput fuzz_mooncake
#include "tests/fuzz/fuzz_mooncake.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_trace
#include "tests/fuzz/fuzz_trace.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_servegen
#include "tests/fuzz/fuzz_servegen.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_import
#include "tests/fuzz/fuzz_import.c"
#undef LLVMFuzzerTestOneInput

static unsigned run_file(const char *path, int (*target)(const uint8_t *, size_t), unsigned copies)
{
    uint8_t bytes[8192], copy[8192];
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    size_t n = fread(bytes, 1, sizeof(bytes), f);
    uint64_t rng = kvc_rng_stream(1, path);
    fclose(f);
    assert_int_equal(target(bytes, n), 0);
    for (unsigned i = 0; i < copies && n; i++) {
        memcpy(copy, bytes, n);
        for (uint64_t k = kvc_rng_below(&rng, 6); k < 6; k++)
            copy[kvc_rng_below(&rng, n)] = (uint8_t)kvc_rng_next(&rng);
        assert_int_equal(target(copy, kvc_rng_below(&rng, 4) ? n : kvc_rng_below(&rng, n)), 0);
    }
    return 1;
}

static void run_folder(const char *folder, int (*target)(const uint8_t *, size_t), unsigned copies)
{
    char path[512];
    unsigned files = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            files += run_file(path, target, copies);
    }
    closedir(d);
    assert_true(files >= 1);
}

static void mooncake_rows(void **state)
{
    (void)state;
    run_folder("tests/fuzz/corpus/mooncake", fuzz_mooncake, 3000);
}

static void whole_files(void **state)
{
    (void)state;
    run_folder("tests/fuzz/corpus/trace", fuzz_trace, 300);
}

static void servegen_models(void **state)
{
    (void)state;
    run_folder("tests/fuzz/corpus/servegen", fuzz_servegen, 1000);
}

/* Every format has a folder of small logs. */
static void logs_of_each_format(void **state)
{
    char folder[256];
    (void)state;
    for (const char *const *f = kvc_trace_formats(); *f; f++) {
        snprintf(folder, sizeof(folder), "tests/fuzz/corpus/%s", *f);
        fuzz_import_format = *f;
        run_folder(folder, fuzz_import, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mooncake_rows),
        cmocka_unit_test(whole_files),
        cmocka_unit_test(servegen_models),
        cmocka_unit_test(logs_of_each_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
