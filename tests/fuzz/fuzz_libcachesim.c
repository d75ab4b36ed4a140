/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a file read as libcachesim. Build as fuzz_mooncake.c. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(data, size, "libcachesim", NULL);
    fuzz_import(data, size, "libcachesim", "time=1,id=2,size=3");
    return 0;
}
