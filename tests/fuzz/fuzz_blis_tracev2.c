/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a file read as blis-tracev2. Build as fuzz_mooncake.c. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_import(data, size, "blis-tracev2", NULL);
    return 0;
}
