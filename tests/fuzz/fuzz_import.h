/* SPDX-License-Identifier: Apache-2.0
 * For fuzz targets of one format: imports the bytes as that format, and as a strict import does. */
#ifndef KVC_TESTS_FUZZ_IMPORT_H
#define KVC_TESTS_FUZZ_IMPORT_H

#include "traces/trace.h"

#include <stdlib.h>
#include <unistd.h>

static inline void fuzz_import(const uint8_t *data, size_t size, const char *format,
                               const char *csv_columns)
{
    char name[] = "/tmp/kvcast-fuzz-XXXXXX";
    const char *path = name;
    struct kvc_import_options o = { .struct_size = sizeof(o), .format = format,
                                    .csv_columns = csv_columns };
    struct kvc_trace *t = NULL, *again = NULL;
    struct kvc_trace_stats s;
    int fd = mkstemp(name);
    if (fd < 0)
        return;
    bool written = write(fd, data, size) == (ssize_t)size;
    close(fd);
    if (written && kvc_trace_import(&t, &path, 1, &o, NULL, NULL) == KVC_OK) {
        kvc_trace_stats(t, &s);
        for (uint64_t r = 0; r < t->n_requests; r++)
            if (kvc_trace_full_blocks(t, r) > kvc_trace_blocks(t, r) ||
                kvc_trace_path_length(t, t->prompt_seg[r]) > s.segments)
                abort();
        o.strict = true;
        if (kvc_trace_import(&again, &path, 1, &o, NULL, NULL) == KVC_OK &&
            again->n_requests != t->n_requests)
            abort();
    }
    kvc_trace_destroy(t);
    kvc_trace_destroy(again);
    unlink(name);
}

#endif
