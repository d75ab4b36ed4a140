/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes of a file of one's own, by size and by how many are under way, past the page
 * cache (O_DIRECT). The file has no name, so it is gone however this process ends. */
#include "bench/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "bench/uring.h"

#define ALIGN 4096
#define PIECE ((size_t)4 << 20)
#define MOST_DEPTH 64

struct files {
    const struct kvc_bench_options *o;
    const struct kvc_bench_sink *sink;
    const char *folder;
    int fd;
    bool direct, uring;
    uint64_t bytes;
    char *buffer, *aligned;
};

static int open_unnamed(const char *folder)
{
    char name[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    if ((size_t)snprintf(name, sizeof name, "%s/kvcast-bench-XXXXXX", folder) >= sizeof name)
        return -1;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

static enum kvc_status check_room(const struct files *f, struct kvc_error *err)
{
    struct statvfs s;
    char need[32];

    kvc_format_bytes(f->bytes, need, sizeof need);
    if (statvfs(f->folder, &s) == 0 &&
        (double)s.f_bavail * (double)s.f_frsize < 1.1 * (double)f->bytes)
        return kvc_fail_at(err, KVC_ERR_IO, f->folder, 0, NULL,
                           "no room for a file of %s: name another folder with --dir, or a smaller "
                           "one with --file-size", need);
    return KVC_OK;
}

/* Random bytes: drives that compress or drop zeros would else look faster than they are. */
static enum kvc_status write_file(struct files *f, struct kvc_error *err)
{
    uint64_t rng = kvc_rng_stream(f->bytes, "bench file");

    for (uint64_t at = 0; at < f->bytes;) {
        size_t n = f->bytes - at < PIECE ? (size_t)(f->bytes - at) : PIECE;
        for (size_t i = 0; i + 8 <= n; i += 8) {
            uint64_t v = kvc_rng_next(&rng);
            memcpy(f->aligned + i, &v, sizeof v);
        }
        ssize_t done = pwrite(f->fd, f->aligned, n, (off_t)at);
        if (done <= 0)
            return kvc_fail_errno(err, f->folder, "can't write the file to be read");
        at += (uint64_t)done;
    }
    if (fsync(f->fd) != 0)
        return kvc_fail_errno(err, f->folder, "can't write the file to be read");
    return KVC_OK;
}

static enum kvc_status open_file(struct files *f, struct kvc_error *err)
{
    f->buffer = kvc_malloc(PIECE * MOST_DEPTH + ALIGN, 1);
    if (!f->buffer)
        return kvc_fail_nomem(err);
    f->aligned = f->buffer + (ALIGN - (uintptr_t)f->buffer % ALIGN) % ALIGN;
    enum kvc_status status = check_room(f, err);
    if (status != KVC_OK)
        return status;
    f->fd = open_unnamed(f->folder);
    if (f->fd < 0)
        return kvc_fail_errno(err, f->folder, "can't make a file here");
    status = write_file(f, err);
    int flags = fcntl(f->fd, F_GETFL);
    struct statfs info;
    bool memory =
        fstatfs(f->fd, &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
    f->direct = status == KVC_OK && !memory && fcntl(f->fd, F_SETFL, flags | O_DIRECT) == 0;
    if (status == KVC_OK && !f->direct)
        kvc_bench_note(
            f->sink,
            "%s has no direct I/O (a file system in memory, or a layer of a "
            "container): what is measured is memory and the page cache, not a drive; name "
            "a folder on the drive with --dir",
            f->folder);
    return status;
}

static enum kvc_status measure(struct files *f, size_t op_bytes, uint32_t depth, bool write,
                               struct kvc_error *err)
{
    struct kvc_uring_job job = {.fd = f->fd, .write = write, .op_bytes = op_bytes,
                                .file_bytes = f->bytes, .depth = depth, .buffer = f->aligned,
                                .seconds = f->o->quick ? 0.08 : 0.25};
    struct kvc_bench_row row = {.what = write ? "file write" : "file read", .write = write,
                                .op_bytes = (double)op_bytes, .depth = depth};
    double rate[KVC_BENCH_REPEATS];
    uint32_t repeats = f->o->quick ? 3 : 5;
    char size[32];

    for (uint32_t i = 0; i < repeats; i++) {
        struct kvc_uring_result r;
        job.seed = i;
        if (!f->uring || !kvc_uring_run(&job, &r)) {
            if (f->uring)
                kvc_bench_note(f->sink, "no io_uring here (an old kernel, or forbidden): as many "
                               "threads as there are reads under way, which costs more CPU");
            f->uring = false;
            kvc_uring_run_threads(&job, &r);
        }
        if (r.error) {
            errno = r.error;
            return kvc_fail_errno(err, f->folder, "the file can't be read or written");
        }
        rate[i] = (double)r.ops * (double)op_bytes / r.seconds;
    }
    kvc_bench_settle(rate, repeats, &row.rate, &row);
    row.link = f->direct ? "storage" : NULL; /* no drive's figure */
    kvc_format_bytes(op_bytes, size, sizeof size);
    snprintf(row.how, sizeof row.how, "%s, %u under way, %s%s", size, depth,
             f->uring ? "io_uring" : "threads", f->direct ? "" : ", page cache");
    return f->sink->row(f->sink->user, &row)
               ? KVC_OK : kvc_fail(err, KVC_ERR_CANCELLED, "the measuring was cancelled");
}

static enum kvc_status measure_all(struct files *f, struct kvc_error *err)
{
    static const uint32_t depths[] = {1, 4, 16, 64};
    enum kvc_status status = KVC_OK;

    for (size_t bytes = 4096; bytes <= PIECE && status == KVC_OK; bytes *= f->o->quick ? 32 : 4)
        for (size_t d = 0; d < 4 && status == KVC_OK; d += f->o->quick ? 2 : 1)
            status = measure(f, bytes, depths[d], false, err);
    for (size_t bytes = (size_t)64 << 10; bytes <= PIECE && status == KVC_OK; bytes *= 8)
        status = measure(f, bytes, 16, true, err);
    return status;
}

enum kvc_status kvc_bench_files(const struct kvc_bench_options *o,
                                const struct kvc_bench_sink *sink, struct kvc_error *err)
{
    const char *temporary = getenv("TMPDIR");
    struct files f = {.o = o, .sink = sink, .fd = -1, .uring = true};

    f.folder = o->folder ? o->folder : temporary && *temporary ? temporary : "/tmp";
    f.bytes =
        (o->file_bytes ? o->file_bytes : (uint64_t)(o->quick ? 256 : 1024) << 20) / PIECE * PIECE;
    enum kvc_status status = open_file(&f, err);
    if (status == KVC_OK)
        status = measure_all(&f, err);
    if (f.fd >= 0)
        close(f.fd);
    kvc_free(f.buffer);
    return status;
}
