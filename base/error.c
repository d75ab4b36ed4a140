/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *kvc_version(void)
{
    return KVC_VERSION_STRING;
}

static void copy_text(char *dst, size_t size, const char *src)
{
    size_t n = src ? strlen(src) : 0;
    if (n >= size)
        n = size - 1;
    if (n)
        memcpy(dst, src, n);
    dst[n] = '\0';
}

KVC_PRINTF(6, 0)
static enum kvc_status fill(struct kvc_error *err, enum kvc_status status, const char *file,
                            uint64_t line, const char *field, const char *fmt, va_list args)
{
    if (!err)
        return status;
    memset(err, 0, sizeof(*err));
    err->status = status;
    err->line = line;
    copy_text(err->file, sizeof(err->file), file);
    copy_text(err->field, sizeof(err->field), field);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    return status;
}

enum kvc_status kvc_fail(struct kvc_error *err, enum kvc_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fill(err, status, NULL, 0, NULL, fmt, args);
    va_end(args);
    return status;
}

enum kvc_status kvc_fail_at(struct kvc_error *err, enum kvc_status status, const char *file,
                            uint64_t line, const char *field, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fill(err, status, file, line, field, fmt, args);
    va_end(args);
    return status;
}

enum kvc_status kvc_fail_nomem(struct kvc_error *err)
{
    return kvc_fail(err, KVC_ERR_NOMEM, "out of memory");
}

enum kvc_status kvc_fail_errno(struct kvc_error *err, const char *file, const char *what)
{
    int saved = errno;
    const char *hint = saved == ENOSPC ? "; the disk is full, free some space or write elsewhere"
                       : saved == ENOENT ? "; check the name, and that its folder exists"
                       : saved == EACCES ? "; ask for the right to it, or name another file"
                                         : "";
    return kvc_fail_at(err, KVC_ERR_IO, file, 0, NULL, "%s: %s%s", what, strerror(saved), hint);
}

void kvc_error_format(const struct kvc_error *err, char *buf, size_t size)
{
    char line[32] = "";
    if (err->line)
        snprintf(line, sizeof(line), "%llu:", (unsigned long long)err->line);
    snprintf(buf, size, "%s%s%s%s%s%s%s", err->file, err->file[0] ? ":" : "", line, err->field,
             err->field[0] ? ":" : "", err->file[0] || line[0] || err->field[0] ? " " : "",
             err->text);
}
