/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a whole log read as one format, which KVC_FUZZ_FORMAT names. Options are drawn from
 * the bytes themselves. What is imported must hold together, and come back from a .kvt the same.
 * tools/fuzz.sh builds and runs it for every format. */
#include "traces/trace.h"

#include "base/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *fuzz_import_format; /* NULL: from the environment */

static void import_must_hold(const struct kvc_trace *t)
{
    uint64_t before = 0;
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t s = t->prompt_seg[r];
        if (t->arrival_ns[r] < before || (s != KVC_SEG_NONE && s >= t->n_segments) ||
            kvc_trace_full_blocks(t, r) > kvc_trace_blocks(t, r) ||
            kvc_trace_path_length(t, s) > t->n_segments)
            abort();
        before = t->arrival_ns[r];
    }
}

static void import_must_come_back(const struct kvc_trace *t)
{
    char path[64];
    struct kvc_trace *back = NULL;
    snprintf(path, sizeof(path), "/tmp/kvcast-fuzz-%ld.kvt", (long)getpid());
    if (kvc_trace_save(t, path, NULL) == KVC_OK &&
        (kvc_trace_open(&back, path, NULL, NULL, NULL) != KVC_OK ||
         strcmp(back->digest, t->digest) != 0))
        abort();
    kvc_trace_destroy(back);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const units[] = {NULL, NULL, "s", "ms", "us", "ns"};
    static const char *const tokenizers[] = {NULL, NULL, "bytes:4"};
    struct kvc_digest d;
    struct kvc_trace *t = NULL;
    struct kvc_import_report report;
    struct kvc_error err = {0};
    char path[32];
    kvc_digest_init(&d);
    kvc_digest_add(&d, data, size);
    uint64_t bits = d.a ^ d.b;
    struct kvc_import_options o = {
        .struct_size = sizeof(o),
        .format = fuzz_import_format ? fuzz_import_format : getenv("KVC_FUZZ_FORMAT"),
        .block_tokens = bits & 1 ? 0 : 1 + (uint32_t)(bits >> 8 & 63),
        .strict = (bits >> 1 & 7) == 0, .compare_readers = (bits >> 4 & 1) != 0,
        .merge_models = (bits >> 5 & 1) != 0, .anonymize = (bits >> 6 & 3) == 0,
        .time_unit = units[(bits >> 16 & 0xff) % 6],
        .tokenizer = tokenizers[(bits >> 24 & 0xff) % 3],
        .infer_sessions = (bits >> 32 & 3) == 0,
        .forget_ns = (bits >> 34 & 7) == 0 ? 1000000000 : 0,
        .window_begin_ns = (bits >> 37 & 7) == 0 ? 500000000 : 0,
        .window_end_ns = (bits >> 38 & 7) == 0 ? 4000000000 : 0,
    };
    int fd = memfd_create("log", 0);
    if (fd < 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const char *paths[] = {path};
    if (write(fd, data, size) == (ssize_t)size) {
        enum kvc_status status = kvc_trace_import(&t, paths, 1, &o, &report, &err);
        if (status == KVC_ERR_INTERNAL)
            abort();
        if (status == KVC_OK) {
            import_must_hold(t);
            if ((bits >> 40 & 7) == 0)
                import_must_come_back(t);
        }
    }
    kvc_trace_destroy(t);
    close(fd);
    return 0;
}
