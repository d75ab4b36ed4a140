/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a file read as azure, by the fast reader where it is sure, and by both: they agree
 * on each row and on the trace. Build as fuzz_mooncake.c. */
#include "tests/fuzz/fuzz_import.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[] = "/tmp/kvcast-fuzz-XXXXXX";
    const char *path = name;
    struct kvc_import_options o = { .struct_size = sizeof(o), .format = "azure" };
    struct kvc_trace *fast = NULL, *both = NULL;
    int fd = mkstemp(name);
    if (fd < 0)
        return 0;
    bool written = write(fd, data, size) == (ssize_t)size;
    close(fd);
    if (written) {
        enum kvc_status one = kvc_trace_import(&fast, &path, 1, &o, NULL, NULL);
        o.compare_readers = true;
        enum kvc_status two = kvc_trace_import(&both, &path, 1, &o, NULL, NULL);
        if (one != two || (one == KVC_OK && strcmp(fast->digest, both->digest) != 0))
            abort();
    }
    kvc_trace_destroy(fast);
    kvc_trace_destroy(both);
    unlink(name);
    return 0;
}
