/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a log with text, its format told by the first byte. Both readers see each row and
 * must not differ; what is imported must survive a walk over all its paths. Build as
 * fuzz_mooncake.c. */
#include "traces/trace.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "openai-messages", "lmcache-agent", "aibrix" };
    char path[] = "/tmp/kvcast-fuzz-XXXXXX";
    const char *paths = path;
    struct kvc_import_options o = { .struct_size = sizeof(o), .compare_readers = true };
    struct kvc_trace *t = NULL;
    struct kvc_trace_stats s;
    int fd = size ? mkstemp(path) : -1;
    if (fd < 0)
        return 0;
    o.format = formats[data[0] % 3];
    bool written = write(fd, data + 1, size - 1) == (ssize_t)size - 1;
    close(fd);
    enum kvc_status status = written ? kvc_trace_import(&t, &paths, 1, &o, NULL, NULL) : KVC_OK;
    if (status == KVC_ERR_INTERNAL)
        abort();
    if (t) {
        kvc_trace_stats(t, &s);
        for (uint64_t r = 0; r < t->n_requests; r++)
            if (kvc_trace_full_blocks(t, r) > kvc_trace_blocks(t, r) ||
                kvc_trace_path_length(t, t->prompt_seg[r]) > s.segments)
                abort();
    }
    kvc_trace_destroy(t);
    unlink(path);
    return 0;
}
