/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spill.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_LIMIT ((uint64_t)512 << 20)
#define SMALL ((size_t)1 << 16) /* never worth a file */
#define LARGE ((size_t)4 << 20) /* worth pages of its own */

/* Where files can't be made without a name, it is taken away at once; nothing ends the program in
 * between. */
static int open_named(const char *folder)
{
    char path[4096];
    sigset_t before;
    if (snprintf(path, sizeof(path), "%s/kvcast-XXXXXX", folder) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    kvc_signals_hold(&before);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    kvc_signals_release(&before);
    return fd;
}

static int open_in(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : open_named(folder);
}

static const char *usual_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    return tmp && tmp[0] ? tmp : "/tmp";
}

static int open_file(const char *folder)
{
    int fd = open_in(folder);
    return fd >= 0 ? fd : open_in(usual_folder());
}

bool kvc_spill_init(struct kvc_spill *s, const char *folder, uint64_t limit)
{
    *s = (struct kvc_spill){ .limit = limit ? limit : DEFAULT_LIMIT };
    s->folder = kvc_strdup(folder ? folder : usual_folder());
    return s->folder != NULL;
}

void kvc_spill_clear(struct kvc_spill *s)
{
    kvc_free(s->folder);
    s->folder = NULL;
}

static size_t whole(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static size_t whole_pages(size_t bytes)
{
    return whole(bytes, (size_t)sysconf(_SC_PAGESIZE));
}

/* Space is taken now: a write to a mapped hole of a full disk would kill the process. */
static bool extend(struct kvc_spill *s, int fd, size_t from, size_t to)
{
    int error;
    do
        error = posix_fallocate(fd, (off_t)from, (off_t)(to - from));
    while (error == EINTR);
    if (error)
        s->error = error;
    return error == 0;
}

static bool move_to_file(struct kvc_spill *s, void **p, struct kvc_spill_array *a, size_t bytes)
{
    int fd = open_file(s->folder);
    if (fd < 0) {
        s->error = errno;
        return false;
    }
    void *fresh = MAP_FAILED;
    if (extend(s, fd, 0, bytes)) {
        fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (fresh == MAP_FAILED)
            s->error = errno;
    }
    if (fresh == MAP_FAILED) {
        close(fd);
        return false;
    }
    for (size_t at = 0, n; at < a->bytes; at += n) { /* never whole in both places */
        n = a->paged ? KVC_PAGES : a->bytes;
        memcpy((char *)fresh + at, (char *)*p + at, n);
        if (a->paged)
            kvc_pages_free((char *)*p + at, n);
    }
    if (!a->paged)
        kvc_free(*p);
    s->held -= a->bytes;
    *p = fresh;
    s->on_disk += bytes;
    *a = (struct kvc_spill_array){ .bytes = bytes, .file = fd + 1 };
    return true;
}

static bool grow_file(struct kvc_spill *s, void **p, struct kvc_spill_array *a, size_t bytes)
{
    if (!extend(s, a->file - 1, a->bytes, bytes))
        return false;
    void *fresh = mremap(*p, a->bytes, bytes, MREMAP_MAYMOVE);
    if (fresh == MAP_FAILED) {
        s->error = errno;
        return false;
    }
    s->on_disk += bytes - a->bytes;
    *p = fresh;
    a->bytes = bytes;
    return true;
}

static bool grow_memory(struct kvc_spill *s, void **p, struct kvc_spill_array *a, size_t bytes,
                        bool zero)
{
    bool paged = bytes >= LARGE;
    bytes = paged ? whole(bytes, KVC_PAGES) : bytes;
    void *fresh = !paged     ? kvc_realloc(*p, bytes, 1)
                  : a->paged ? kvc_pages_grow(*p, a->bytes, bytes)
                             : kvc_pages_grow(NULL, 0, bytes);
    if (!fresh)
        return false;
    if (zero && !paged)
        memset((char *)fresh + a->bytes, 0, bytes - a->bytes);
    if (paged && !a->paged && a->bytes) {
        memcpy(fresh, *p, a->bytes);
        kvc_free(*p);
    }
    s->held += bytes - a->bytes;
    *p = fresh;
    *a = (struct kvc_spill_array){ .bytes = bytes, .paged = paged };
    return true;
}

bool kvc_spill_grow(struct kvc_spill *s, void *array, struct kvc_spill_array *a, size_t bytes,
                    bool zero)
{
    void **p = array;
    if (bytes <= a->bytes)
        return true;
    s->error = 0;
    if (bytes > PTRDIFF_MAX / 2)
        return false;
    if (a->file)
        return grow_file(s, p, a, whole_pages(bytes));
    if (bytes > SMALL && s->held - a->bytes + bytes > s->limit)
        return move_to_file(s, p, a, whole_pages(bytes));
    return grow_memory(s, p, a, bytes, zero);
}

void kvc_spill_free(struct kvc_spill *s, void *array, struct kvc_spill_array *a)
{
    void **p = array, *old = *p;
    size_t mapped = kvc_spill_detach(s, a);
    if (mapped)
        kvc_spill_unmap(old, mapped);
    else
        kvc_free(old);
    *p = NULL;
}

size_t kvc_spill_detach(struct kvc_spill *s, struct kvc_spill_array *a)
{
    size_t mapped = a->file || a->paged ? a->bytes : 0;
    if (a->file) {
        close(a->file - 1);
        s->on_disk -= a->bytes;
    } else {
        s->held -= a->bytes;
    }
    *a = (struct kvc_spill_array){ 0 };
    return mapped;
}

void kvc_spill_unmap(void *p, size_t bytes)
{
    kvc_pages_free(p, bytes);
}

void kvc_spill_drop(const struct kvc_spill_array *a, void *p, size_t begin, size_t end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = (begin + page - 1) / page * page, last = end / page * page;
    if (a->file && first < last) /* a filesystem without holes keeps the space: no harm */
        (void)madvise((char *)p + first, last - first, MADV_REMOVE);
}

enum kvc_status kvc_spill_fail(const struct kvc_spill *s, struct kvc_error *err)
{
    char what[128];
    if (!s->error)
        return kvc_fail_nomem(err);
    snprintf(what, sizeof(what), "can't keep %llu MiB of rows in a temporary file here (name "
             "another folder with TMPDIR)", (unsigned long long)(s->on_disk >> 20));
    errno = s->error;
    return kvc_fail_errno(err, s->folder, what);
}
