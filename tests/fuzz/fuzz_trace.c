/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a whole file as kvc_trace_open sees it: log, packed log or .kvt. What opens must
 * survive a walk over all its paths. */
#include "traces/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/kvcast-fuzz-XXXXXX";
    struct kvc_trace *t = NULL;
    struct kvc_trace_stats s;
    int fd = mkstemp(path);
    if (fd < 0)
        return 0;
    bool written = write(fd, data, size) == (ssize_t)size;
    close(fd);
    if (written && kvc_trace_open(&t, path, NULL, NULL, NULL) == KVC_OK) {
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
