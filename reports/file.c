/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "reports/out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum kvc_status open_in_place(struct kvc_file *f, struct kvc_error *err)
{
    f->in_place = true;
    f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
    return f->fd < 0 ? kvc_fail_errno(err, f->path, "cannot open for writing") : KVC_OK;
}

/* Follows links, so that the file a link names is replaced and the link stays. */
static enum kvc_status resolve(struct kvc_file *f, const char *path, struct stat *st, bool *exists,
                               struct kvc_error *err)
{
    char full[PATH_MAX];
    *exists = stat(path, st) == 0;
    if (*exists && !realpath(path, full))
        return kvc_fail_errno(err, path, "cannot resolve");
    const char *name = *exists ? full : path;
    if (strlen(name) >= sizeof(f->path))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, NULL, "the file name is too long");
    strcpy(f->path, name);
    return KVC_OK;
}

enum kvc_status kvc_file_open(struct kvc_file *f, const char *path, struct kvc_error *err)
{
    memset(f, 0, sizeof(*f));
    f->fd = -1;
    if (strcmp(path, "-") == 0) {
        f->in_place = true;
        f->fd = dup(STDOUT_FILENO);
        strcpy(f->path, "standard output");
        return f->fd < 0 ? kvc_fail_errno(err, f->path, "cannot open for writing") : KVC_OK;
    }
    struct stat st;
    bool exists;
    enum kvc_status status = resolve(f, path, &st, &exists, err);
    if (status != KVC_OK)
        return status;
    if (exists && S_ISDIR(st.st_mode))
        return kvc_fail_at(err, KVC_ERR_IO, path, 0, NULL,
                           "is a folder; name a file to write into it");
    if (exists && !S_ISREG(st.st_mode))
        return open_in_place(f, err);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(f->temp, sizeof(f->temp), "%s.%ld-%u.tmp", f->path, (long)getpid(), i);
        f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0 || errno != EEXIST)
            break;
    }
    if (f->fd < 0)
        return kvc_fail_errno(err, path, "cannot create a file in its folder");
    if (exists && fchmod(f->fd, st.st_mode & 07777) != 0) {
        enum kvc_status failed = kvc_fail_errno(err, path, "cannot keep its permissions");
        kvc_file_abort(f);
        return failed;
    }
    return KVC_OK;
}

enum kvc_status kvc_file_write(struct kvc_file *f, const char *buf, size_t n,
                               struct kvc_error *err)
{
    while (n) {
        ssize_t k = write(f->fd, buf, n < (1u << 30) ? n : 1u << 30);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return kvc_fail_errno(err, f->path, "cannot write");
        buf += k;
        n -= (size_t)k;
    }
    return KVC_OK;
}

void kvc_file_abort(struct kvc_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    if (!f->in_place && f->temp[0])
        unlink(f->temp);
    f->temp[0] = '\0';
}

/* The rename itself must survive a crash too. Not every file system can sync a folder, and the
 * data is safe either way, so failures are not reported. */
static void sync_folder(const char *path)
{
    char folder[sizeof(((struct kvc_file *)0)->path)];
    strcpy(folder, path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

enum kvc_status kvc_file_commit(struct kvc_file *f, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    if (!f->in_place && fsync(f->fd) != 0)
        status = kvc_fail_errno(err, f->path, "cannot write");
    int fd = f->fd;
    f->fd = -1;
    if (close(fd) != 0 && status == KVC_OK)
        status = kvc_fail_errno(err, f->path, "cannot write");
    if (status == KVC_OK && !f->in_place && rename(f->temp, f->path) != 0)
        status = kvc_fail_errno(err, f->path, "cannot put the finished file in its place");
    if (status != KVC_OK) {
        kvc_file_abort(f);
        return status;
    }
    if (!f->in_place)
        sync_folder(f->path);
    return KVC_OK;
}

enum kvc_status kvc_file_put(const char *path, const char *buf, size_t n, struct kvc_error *err)
{
    struct kvc_file f;
    enum kvc_status status = kvc_file_open(&f, path, err);
    if (status != KVC_OK)
        return status;
    status = kvc_file_write(&f, buf, n, err);
    if (status != KVC_OK) {
        kvc_file_abort(&f);
        return status;
    }
    return kvc_file_commit(&f, err);
}

enum kvc_status kvc_file_put_text(const char *path, struct kvc_text *t, struct kvc_error *err)
{
    enum kvc_status status = t->failed ? kvc_fail_nomem(err)
                                       : kvc_file_put(path, t->buf ? t->buf : "", t->len, err);
    kvc_text_clear(t);
    return status;
}

enum kvc_status kvc_file_get(const char *path, size_t limit, char **out, size_t *n,
                             struct kvc_error *err)
{
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kvc_fail_errno(err, path, "cannot open");
    struct kvc_text t = {0};
    enum kvc_status status = KVC_OK;
    char chunk[65536];
    for (;;) {
        ssize_t k = read(fd, chunk, sizeof(chunk));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            status = kvc_fail_errno(err, path, "cannot read");
        if (k <= 0)
            break;
        kvc_text_addn(&t, chunk, (size_t)k);
        if (t.failed || t.len > limit)
            break;
    }
    close(fd);
    if (status == KVC_OK && t.failed)
        status = kvc_fail_nomem(err);
    else if (status == KVC_OK && t.len > limit)
        status = kvc_fail_at(err, KVC_ERR_LIMIT, path, 0, NULL, "is larger than %zu MiB",
                             limit >> 20);
    if (status == KVC_OK && !t.buf)
        kvc_text_add(&t, "");
    if (status != KVC_OK || t.failed) {
        kvc_text_clear(&t);
        return status != KVC_OK ? status : kvc_fail_nomem(err);
    }
    *out = t.buf;
    *n = t.len;
    return KVC_OK;
}
