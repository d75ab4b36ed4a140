/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/outfile.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define BUFFER ((size_t)1 << 18)

struct kvc_outfile {
    int fd;
    bool direct, unnamed; /* unnamed: has no name yet; else temp is its name */
    char *path, *temp, *folder;
    char *buf, *packed;
    size_t used;
    ZSTD_CCtx *zstd;
    enum kvc_status status;
    struct kvc_error first; /* failure */
};

static void destroy(struct kvc_outfile *o)
{
    if (o->fd >= 0 && o->fd != STDOUT_FILENO)
        close(o->fd);
    ZSTD_freeCCtx(o->zstd);
    kvc_free(o->path);
    kvc_free(o->temp);
    kvc_free(o->folder);
    kvc_free(o->buf);
    kvc_free(o->packed);
    kvc_free(o);
}

static void fail(struct kvc_outfile *o)
{
    if (o->status == KVC_OK)
        o->status = kvc_fail_errno(&o->first, o->path, "can't write");
}

/* Where the name leads, so that a link stays a link. */
static char *target_of(const char *path)
{
    struct stat st;
    char *real = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;
    char *copy = kvc_strdup(real ? real : path);
    free(real);
    return copy;
}

static bool name_places(struct kvc_outfile *o, const char *path)
{
    struct stat st;
    if (!(o->path = strcmp(path, "-") == 0 ? kvc_strdup("stdout") : target_of(path)))
        return false;
    o->direct = strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
    size_t n = strlen(o->path) + 16;
    o->temp = kvc_malloc(n, 1);
    o->folder = kvc_strdup(o->path);
    if (!o->temp || !o->folder)
        return false;
    snprintf(o->temp, n, "%s.tmp-XXXXXX", o->path);
    char *slash = strrchr(o->folder, '/');
    if (slash)
        slash[slash == o->folder] = '\0';
    else
        o->folder[0] = '\0';
    return true;
}

static void open_place(struct kvc_outfile *o, const char *path)
{
    if (o->direct) {
        o->fd = strcmp(path, "-") == 0 ? STDOUT_FILENO : open(path, O_WRONLY | O_CLOEXEC);
    } else {
        o->fd = open(o->folder[0] ? o->folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
        o->unnamed = o->fd >= 0;
        if (o->fd < 0 && (o->fd = mkstemp(o->temp)) >= 0) {
            mode_t mask = umask(0);
            umask(mask);
            (void)fchmod(o->fd, 0666 & ~mask);
        }
    }
    if (o->fd < 0)
        fail(o);
}

enum kvc_status kvc_outfile_open(struct kvc_outfile **out, const char *path, bool pack,
                                 struct kvc_error *err)
{
    struct kvc_outfile *o = kvc_calloc(1, sizeof(*o));
    if (!o)
        return kvc_fail_nomem(err);
    o->fd = -1;
    o->buf = kvc_malloc(BUFFER, 1);
    bool ok = o->buf && name_places(o, path);
    if (ok && pack) {
        o->zstd = ZSTD_createCCtx();
        o->packed = kvc_malloc(BUFFER, 1);
        ok = o->zstd && o->packed;
        if (ok)
            ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_checksumFlag, 1);
    }
    if (ok)
        open_place(o, path);
    if (!ok || o->status != KVC_OK) {
        enum kvc_status status = ok ? o->status : kvc_fail_nomem(err);
        if (ok && err)
            *err = o->first;
        destroy(o);
        return status;
    }
    *out = o;
    return KVC_OK;
}

static void put(struct kvc_outfile *o, const char *p, size_t n)
{
    while (n && o->status == KVC_OK) {
        ssize_t done = write(o->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            fail(o);
            return;
        }
        p += done;
        n -= (size_t)done;
    }
}

static void flush(struct kvc_outfile *o, bool end)
{
    if (!o->zstd) {
        put(o, o->buf, o->used);
        o->used = 0;
        return;
    }
    ZSTD_inBuffer in = { o->buf, o->used, 0 };
    size_t left = 1;
    while (o->status == KVC_OK && (in.pos < in.size || (end && left))) {
        ZSTD_outBuffer packed = { o->packed, BUFFER, 0 };
        left = ZSTD_compressStream2(o->zstd, &packed, &in, end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            o->status = kvc_fail_at(&o->first, KVC_ERR_NOMEM, o->path, 0, NULL, "compressing: %s",
                                    ZSTD_getErrorName(left));
        else
            put(o, o->packed, packed.pos);
    }
    o->used = 0;
}

void kvc_outfile_write(struct kvc_outfile *o, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n && o->status == KVC_OK) {
        size_t take = BUFFER - o->used < n ? BUFFER - o->used : n;
        memcpy(o->buf + o->used, p, take);
        o->used += take;
        p += take;
        n -= take;
        if (o->used == BUFFER)
            flush(o, false);
    }
}

/* A file without a name gets a temporary one first: a link can't replace, a rename can. */
static bool give_name(struct kvc_outfile *o)
{
    char fd_path[64];
    snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", o->fd);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(o->temp + strlen(o->path), 16, ".tmp-%06u", ((unsigned)getpid() + i) % 1000000);
        if (linkat(AT_FDCWD, fd_path, AT_FDCWD, o->temp, AT_SYMLINK_FOLLOW) == 0) {
            o->unnamed = false;
            return true;
        }
        if (errno != EEXIST)
            break;
    }
    return false;
}

static void sync_folder(const struct kvc_outfile *o)
{
    int fd = open(o->folder[0] ? o->folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* some filesystems can't; the file itself is safe */
        close(fd);
    }
}

void kvc_outfile_abandon(struct kvc_outfile *o)
{
    if (!o)
        return;
    if (!o->direct && !o->unnamed)
        unlink(o->temp);
    destroy(o);
}

enum kvc_status kvc_outfile_close(struct kvc_outfile *o, struct kvc_error *err)
{
    flush(o, true);
    if (o->status == KVC_OK && !o->direct) {
        if (fsync(o->fd) != 0 || (o->unnamed && !give_name(o)) || rename(o->temp, o->path) != 0)
            fail(o);
        else
            sync_folder(o);
    }
    enum kvc_status status = o->status;
    if (status != KVC_OK) {
        if (err)
            *err = o->first;
        kvc_outfile_abandon(o);
    } else {
        destroy(o);
    }
    return status;
}
