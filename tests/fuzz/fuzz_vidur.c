/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a file read as vidur. Build as fuzz_mooncake.c. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(data, size, "vidur", NULL);
    return 0;
}
