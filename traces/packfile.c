/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/packfile.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"

#include <zstd.h>

#define BUFFER ((size_t)1 << 18)

struct kvc_packfile {
    struct kvc_outfile *file;
    ZSTD_CCtx *zstd; /* NULL: as it is */
    char *packed;
    size_t failed; /* zstd's code of the first failure */
};

static void destroy(struct kvc_packfile *p)
{
    ZSTD_freeCCtx(p->zstd);
    kvc_free(p->packed);
    kvc_free(p);
}

enum kvc_status kvc_packfile_open(struct kvc_packfile **out, const char *path, bool pack,
                                  struct kvc_error *err)
{
    struct kvc_packfile *p = kvc_calloc(1, sizeof(*p));
    bool ok = p != NULL;
    if (ok && pack) {
        p->zstd = ZSTD_createCCtx();
        p->packed = kvc_malloc(BUFFER, 1);
        ok = p->zstd && p->packed;
    }
    if (ok && pack)
        ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
    enum kvc_status status = ok ? kvc_outfile_open(&p->file, path, err) : kvc_fail_nomem(err);
    if (status == KVC_OK)
        *out = p;
    else if (p)
        destroy(p);
    return status;
}

static void pack(struct kvc_packfile *p, const void *bytes, size_t n, ZSTD_EndDirective end)
{
    ZSTD_inBuffer in = { bytes, n, 0 };
    size_t left = 1;
    while (!p->failed && kvc_outfile_ok(p->file) &&
           (in.pos < in.size || (end == ZSTD_e_end && left))) {
        ZSTD_outBuffer packed = { p->packed, BUFFER, 0 };
        left = ZSTD_compressStream2(p->zstd, &packed, &in, end);
        if (ZSTD_isError(left))
            p->failed = left;
        else
            kvc_outfile_write(p->file, p->packed, packed.pos);
    }
}

void kvc_packfile_write(struct kvc_packfile *p, const void *bytes, size_t n)
{
    if (p->zstd)
        pack(p, bytes, n, ZSTD_e_continue);
    else
        kvc_outfile_write(p->file, bytes, n);
}

void kvc_packfile_abandon(struct kvc_packfile *p)
{
    if (!p)
        return;
    kvc_outfile_abandon(p->file);
    destroy(p);
}

enum kvc_status kvc_packfile_close(struct kvc_packfile *p, struct kvc_error *err)
{
    enum kvc_status status;
    if (p->zstd)
        pack(p, NULL, 0, ZSTD_e_end);
    if (p->failed) {
        status = kvc_fail(err, KVC_ERR_NOMEM, "compressing: %s", ZSTD_getErrorName(p->failed));
        kvc_outfile_abandon(p->file);
    } else {
        status = kvc_outfile_close(p->file, err);
    }
    destroy(p);
    return status;
}
