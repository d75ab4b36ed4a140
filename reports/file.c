/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"
#include "reports/out.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum kvc_status kvc_file_put_text(const char *path, struct kvc_text *t, struct kvc_error *err)
{
    enum kvc_status status = t->failed ? kvc_fail_nomem(err)
                                       : kvc_outfile_put(path, t->buf ? t->buf : "", t->len, err);
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
