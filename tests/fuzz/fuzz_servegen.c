/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a file of ServeGen's models, as rates and as lengths. */
#include "traces/synthetic/servegen.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "chunk-1-trace.csv", "chunk-1-dataset.json" };
    struct kvc_servegen m = { 0 };
    for (size_t i = 0; i < 2; i++)
        if (kvc_servegen_take(&m, names[i], (const char *)data, size, NULL) != KVC_OK)
            break;
    if (kvc_servegen_settle(&m, "x", NULL) == KVC_OK)
        for (size_t k = 0; k < m.client[0].n_windows; k++)
            if (!(m.client[0].window[k].per_s >= 0))
                abort();
    kvc_servegen_clear(&m);
    return 0;
}
