/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: one Mooncake row. Both readers see it; what the fast one takes, the careful one
 * must read the same. tools/fuzz.sh builds and runs it. */
#include "base/alloc.h"
#include "traces/formats/mooncake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kvc_log_row fast = { 0 }, careful;
    struct kvc_mooncake_doc doc;
    struct kvc_id_buffer ids = { 0 };
    const char *field;
    if (memchr(data, '\n', size))
        return 0;
    char *text = kvc_calloc(size + KVC_LINE_PAD, 1);
    uint64_t *fast_ids = kvc_malloc(size / 2 + 1, sizeof(*fast_ids));
    if (text && fast_ids) {
        if (size)
            memcpy(text, data, size);
        text[size] = '\n';
        bool taken = size && kvc_mooncake_scan(text, fast_ids, &fast) >= size;
        enum kvc_status status = kvc_mooncake_read(text, size, "fuzz", 1, NULL, &ids, &careful,
                                                   &doc, NULL);
        if (taken && (status != KVC_OK || !kvc_mooncake_same(&fast, &careful, &field)))
            abort();
        for (size_t i = 1; taken && fast.ascending && i < fast.n_ids; i++)
            if (fast.ids[i] <= fast.ids[i - 1])
                abort();
        kvc_json_free(doc.root);
    }
    kvc_free(ids.v);
    kvc_free(fast_ids);
    kvc_free(text);
    return 0;
}
