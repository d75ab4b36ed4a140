/* SPDX-License-Identifier: Apache-2.0 */
#include "base/outfile.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER ((size_t)1 << 18)
#define SUFFIX 16 /* ".tmp-" and six digits */

struct kvc_outfile {
    int fd;
    bool direct, unnamed; /* unnamed: has no name yet; else temp is its name */
    char *path, *temp, *folder;
    char *buf;
    size_t used;
    enum kvc_status status;
    struct kvc_error first; /* failure */
};

static void destroy(struct kvc_outfile *o)
{
    if (o->fd >= 0 && o->fd != STDOUT_FILENO)
        close(o->fd);
    kvc_free(o->path);
    kvc_free(o->temp);
    kvc_free(o->folder);
    kvc_free(o->buf);
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
    if (!(o->path = strcmp(path, "-") == 0 ? kvc_strdup("stdout") : target_of(path)))
        return false;
    size_t n = strlen(o->path) + SUFFIX;
    o->temp = kvc_malloc(n, 1);
    o->folder = kvc_strdup(o->path);
    o->buf = kvc_malloc(BUFFER, 1);
    if (!o->temp || !o->folder || !o->buf)
        return false;
    strcpy(o->temp, o->path);
    char *slash = strrchr(o->folder, '/');
    if (slash)
        slash[slash == o->folder] = '\0';
    else
        o->folder[0] = '\0';
    return true;
}

/* Under the first temporary name that is free: the open file that has no name yet, or a new one. */
static bool take_temp_name(struct kvc_outfile *o)
{
    char fd_path[64];
    snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", o->fd);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(o->temp + strlen(o->path), SUFFIX, ".tmp-%06u",
                 ((unsigned)getpid() + i) % 1000000);
        if (o->unnamed) {
            if (linkat(AT_FDCWD, fd_path, AT_FDCWD, o->temp, AT_SYMLINK_FOLLOW) == 0)
                return true;
        } else if ((o->fd = open(o->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0) {
            return true;
        }
        if (errno != EEXIST)
            break;
    }
    return false;
}

static void open_place(struct kvc_outfile *o, const char *path)
{
    struct stat st;
    bool standard = strcmp(path, "-") == 0, exists = !standard && stat(path, &st) == 0;
    o->direct = standard || (exists && !S_ISREG(st.st_mode));
    if (exists && S_ISDIR(st.st_mode)) {
        o->status = kvc_fail_at(&o->first, KVC_ERR_IO, path, 0, NULL,
                                "is a folder; name a file to write into it");
        return;
    }
    if (o->direct) {
        o->fd = standard ? STDOUT_FILENO : open(path, O_WRONLY | O_CLOEXEC);
    } else {
        if (access("/proc/self/fd", X_OK) == 0) /* needed to give it a name later */
            o->fd = open(o->folder[0] ? o->folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
        o->unnamed = o->fd >= 0;
        if (o->fd < 0)
            take_temp_name(o);
    }
    if (o->fd < 0 || (exists && !o->direct && fchmod(o->fd, st.st_mode & 07777) != 0))
        fail(o);
}

enum kvc_status kvc_outfile_open(struct kvc_outfile **out, const char *path, struct kvc_error *err)
{
    struct kvc_outfile *o = kvc_calloc(1, sizeof(*o));
    if (!o)
        return kvc_fail_nomem(err);
    o->fd = -1;
    if (!name_places(o, path)) {
        destroy(o);
        return kvc_fail_nomem(err);
    }
    open_place(o, path);
    if (o->status != KVC_OK) {
        enum kvc_status status = o->status;
        if (err)
            *err = o->first;
        kvc_outfile_abandon(o);
        return status;
    }
    *out = o;
    return KVC_OK;
}

enum kvc_status kvc_outfile_try(const char *path, struct kvc_error *err)
{
    struct stat st;
    struct kvc_outfile *o;
    if (strcmp(path, "-") == 0 ||
        (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return KVC_OK;
    enum kvc_status status = kvc_outfile_open(&o, path, err);
    if (status == KVC_OK)
        kvc_outfile_abandon(o);
    return status;
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

static void flush(struct kvc_outfile *o)
{
    put(o, o->buf, o->used);
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
            flush(o);
    }
}

bool kvc_outfile_ok(const struct kvc_outfile *o)
{
    return o->status == KVC_OK;
}

/* A file without a name gets a temporary one first: a link can't replace, a rename can. */
static bool move_into_place(struct kvc_outfile *o)
{
    if (o->unnamed && !take_temp_name(o))
        return false;
    o->unnamed = false;
    return rename(o->temp, o->path) == 0;
}

/* The rename itself must survive a crash too. */
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
    if (o->fd >= 0 && !o->direct && !o->unnamed)
        unlink(o->temp);
    destroy(o);
}

enum kvc_status kvc_outfile_close(struct kvc_outfile *o, struct kvc_error *err)
{
    flush(o);
    if (o->status == KVC_OK && !o->direct) {
        if (fsync(o->fd) != 0 || !move_into_place(o))
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

enum kvc_status kvc_outfile_put(const char *path, const void *bytes, size_t n,
                                struct kvc_error *err)
{
    struct kvc_outfile *o = NULL;
    enum kvc_status status = kvc_outfile_open(&o, path, err);
    if (status != KVC_OK)
        return status;
    kvc_outfile_write(o, bytes, n);
    return kvc_outfile_close(o, err);
}
