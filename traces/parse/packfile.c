/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/packfile.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/outfile.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define BUFFER ((size_t)1 << 18)

struct kvc_packfile {
    struct kvc_outfile *file;
    ZSTD_CCtx *zstd; /* NULL: not that */
    z_stream gzip;
    bool gzip_live;
    char *packed;
    size_t failed; /* zstd's code of the first failure */
};

static void destroy(struct kvc_packfile *p)
{
    ZSTD_freeCCtx(p->zstd);
    if (p->gzip_live)
        deflateEnd(&p->gzip);
    kvc_free(p->packed);
    kvc_free(p);
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

static bool start_codec(struct kvc_packfile *p, const char *path)
{
    bool zst = ends_in(path, ".zst"), gz = ends_in(path, ".gz");
    if (!zst && !gz)
        return true;
    p->packed = kvc_malloc(BUFFER, 1);
    if (zst && (p->zstd = ZSTD_createCCtx()))
        ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
    if (gz)
        p->gzip_live = deflateInit2(&p->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                                    Z_DEFAULT_STRATEGY) == Z_OK;
    return p->packed && (p->zstd || p->gzip_live);
}

enum kvc_status kvc_packfile_open(struct kvc_packfile **out, const char *path,
                                  struct kvc_error *err)
{
    struct kvc_packfile *p = kvc_calloc(1, sizeof(*p));
    if (!p)
        return kvc_fail_nomem(err);
    enum kvc_status status = start_codec(p, path) ? kvc_outfile_open(&p->file, path, err)
                                                  : kvc_fail_nomem(err);
    if (status == KVC_OK)
        *out = p;
    else
        destroy(p);
    return status;
}

static void pack_zstd(struct kvc_packfile *p, const void *bytes, size_t n, bool end)
{
    ZSTD_inBuffer in = { bytes, n, 0 };
    size_t left = 1;
    while (!p->failed && kvc_outfile_ok(p->file) && (in.pos < in.size || (end && left))) {
        ZSTD_outBuffer packed = { p->packed, BUFFER, 0 };
        left = ZSTD_compressStream2(p->zstd, &packed, &in, end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            p->failed = left;
        else
            kvc_outfile_write(p->file, p->packed, packed.pos);
    }
}

/* At most BUFFER bytes at a time, so that they fit zlib's count. */
static void pack_gzip(struct kvc_packfile *p, const unsigned char *bytes, size_t n, bool end)
{
    do {
        size_t part = n < BUFFER ? n : BUFFER;
        unsigned char nothing = 0;
        p->gzip.next_in = part ? (unsigned char *)(uintptr_t)bytes : &nothing; /* not written to */
        p->gzip.avail_in = (uInt)part;
        do {
            p->gzip.next_out = (unsigned char *)p->packed;
            p->gzip.avail_out = (uInt)BUFFER;
            deflate(&p->gzip, end && part == n ? Z_FINISH : Z_NO_FLUSH);
            kvc_outfile_write(p->file, p->packed, BUFFER - p->gzip.avail_out);
        } while (p->gzip.avail_out == 0 && kvc_outfile_ok(p->file));
        bytes += part;
        n -= part;
    } while (n && kvc_outfile_ok(p->file));
}

static void pack(struct kvc_packfile *p, const void *bytes, size_t n, bool end)
{
    if (p->zstd)
        pack_zstd(p, bytes, n, end);
    else if (p->gzip_live)
        pack_gzip(p, bytes, n, end);
    else
        kvc_outfile_write(p->file, bytes, n);
}

void kvc_packfile_write(struct kvc_packfile *p, const void *bytes, size_t n)
{
    if (n)
        pack(p, bytes, n, false);
}

bool kvc_packfile_ok(const struct kvc_packfile *p)
{
    return !p->failed && kvc_outfile_ok(p->file);
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
    if (p->zstd || p->gzip_live)
        pack(p, NULL, 0, true);
    if (p->failed) {
        status = kvc_fail(err, KVC_ERR_NOMEM, "compressing: %s", ZSTD_getErrorName(p->failed));
        kvc_outfile_abandon(p->file);
    } else {
        status = kvc_outfile_close(p->file, err);
    }
    destroy(p);
    return status;
}
