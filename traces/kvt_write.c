/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/kvt.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/outfile.h"

#include <string.h>
#include <zstd.h>

/* Higher levels save a few per cent of a small file and cost more than the import. */
#define LEVEL 1

struct writer {
    struct kvc_outfile *file;
    const char *path;
    struct kvc_error *err;
    enum kvc_status status;
    uint64_t offset;
    ZSTD_CCtx *zstd;
    unsigned char *packed;
    size_t packed_cap;
    unsigned char index[32][KVC_KVT_ENTRY];
    size_t n;
};

static void put(struct writer *w, const void *bytes, size_t n)
{
    kvc_outfile_write(w->file, bytes, n);
    w->offset += n;
}

static size_t type_size(enum kvc_kvt_type type)
{
    return type == KVC_KVT_U8 ? 1 : type == KVC_KVT_U32 ? 4 : 8;
}

/* raw is little-endian already. */
static void put_frame(struct writer *w, const char *name, enum kvc_kvt_type type, const void *raw,
                      uint64_t count)
{
    size_t bytes = (size_t)count * type_size(type), bound = ZSTD_compressBound(bytes);
    if (!kvc_grow((void **)&w->packed, &w->packed_cap, bound, 1)) {
        w->status = kvc_fail_nomem(w->err);
        return;
    }
    size_t n = ZSTD_compress2(w->zstd, w->packed, bound, raw, bytes);
    if (ZSTD_isError(n)) {
        w->status = kvc_fail_at(w->err, KVC_ERR_NOMEM, w->path, 0, NULL, "compressing: %s",
                                ZSTD_getErrorName(n));
        return;
    }
    unsigned char *e = w->index[w->n++];
    memset(e, 0, KVC_KVT_ENTRY);
    memcpy(e, name, strlen(name));
    kvc_put_u32(e + KVC_KVT_NAME, type);
    kvc_put_u64(e + 32, count);
    kvc_put_u64(e + 40, w->offset);
    kvc_put_u64(e + 48, n);
    kvc_put_u64(e + 56, bytes);
    put(w, w->packed, n);
}

/* A column in the machine's order; NULL is left out. */
static void put_column(struct writer *w, const char *name, enum kvc_kvt_type type,
                       const void *column, uint64_t count)
{
    if (w->status != KVC_OK || !column)
        return;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (type != KVC_KVT_U64_DELTA) {
        put_frame(w, name, type, column, count);
        return;
    }
#endif
    size_t size = type_size(type);
    unsigned char *raw = kvc_malloc((size_t)count, size);
    if (!raw) {
        w->status = kvc_fail_nomem(w->err);
        return;
    }
    uint64_t before = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (size == 1) {
            raw[i] = ((const uint8_t *)column)[i];
        } else if (size == 4) {
            kvc_put_u32(raw + 4 * i, ((const uint32_t *)column)[i]);
        } else {
            uint64_t v = ((const uint64_t *)column)[i];
            kvc_put_u64(raw + 8 * i, v - before);
            before = type == KVC_KVT_U64_DELTA ? v : 0;
        }
    }
    put_frame(w, name, type, raw, count);
    kvc_free(raw);
}

static void put_names(struct writer *w, const char *name, char **names, uint32_t n)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += strlen(names[i]) + 1;
    if (!bytes || w->status != KVC_OK)
        return;
    char *all = kvc_malloc(bytes, 1), *p = all;
    if (!all) {
        w->status = kvc_fail_nomem(w->err);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]) + 1;
        memcpy(p, names[i], len);
        p += len;
    }
    put_frame(w, name, KVC_KVT_U8, all, bytes);
    kvc_free(all);
}

static void put_columns(struct writer *w, const struct kvc_trace *t)
{
    uint64_t n = t->n_requests;
    uint64_t meta[6] = { t->block_tokens, n, t->n_segments, t->n_sessions, t->n_tenants,
                         t->n_models };
    put_column(w, "meta", KVC_KVT_U64, meta, 6);
    put_column(w, "request.arrival_ns", KVC_KVT_U64_DELTA, t->arrival_ns, n);
    put_column(w, "request.think_ns", KVC_KVT_U64, t->think_ns, n);
    put_column(w, "request.input_tokens", KVC_KVT_U32, t->input_tokens, n);
    put_column(w, "request.output_tokens", KVC_KVT_U32, t->output_tokens, n);
    put_column(w, "request.prompt_segment", KVC_KVT_U32, t->prompt_seg, n);
    put_column(w, "request.output_segment", KVC_KVT_U32, t->output_seg, n);
    put_column(w, "request.session", KVC_KVT_U32, t->session, n);
    put_column(w, "request.namespace", KVC_KVT_U32, t->tenant, n);
    put_column(w, "request.model", KVC_KVT_U32, t->model, n);
    put_column(w, "request.status", KVC_KVT_U8, t->row_status, n);
    put_column(w, "request.cached_tokens", KVC_KVT_U32, t->cached_tokens, n);
    put_column(w, "segment.parent", KVC_KVT_U32, t->seg_parent, t->n_segments);
    put_column(w, "segment.length", KVC_KVT_U32, t->seg_len, t->n_segments);
    put_names(w, "names.namespace", t->tenant_names, t->n_tenants);
    put_names(w, "names.model", t->model_names, t->n_models);
    put_column(w, "digest", KVC_KVT_U8, t->digest, strlen(t->digest));
}

static void put_file(struct writer *w, const struct kvc_trace *t)
{
    unsigned char header[KVC_KVT_HEADER] = { 0 }, footer[KVC_KVT_FOOTER];
    memcpy(header, KVC_KVT_MAGIC, 8);
    kvc_put_u32(header + 8, KVC_KVT_VERSION);
    put(w, header, sizeof(header));
    put_columns(w, t);

    struct kvc_digest d;
    kvc_digest_init(&d);
    kvc_digest_add(&d, header, sizeof(header));
    kvc_digest_add(&d, w->index, w->n * KVC_KVT_ENTRY);
    kvc_put_u64(footer, w->offset);
    kvc_put_u64(footer + 8, w->n);
    kvc_put_u64(footer + 16, d.a);
    memcpy(footer + 24, KVC_KVT_MAGIC, 8);
    put(w, w->index, w->n * KVC_KVT_ENTRY);
    put(w, footer, sizeof(footer));
}

enum kvc_status kvc_trace_save(const struct kvc_trace *t, const char *path, struct kvc_error *err)
{
    struct writer w = { .err = err, .path = path, .zstd = ZSTD_createCCtx() };
    if (!w.zstd)
        return kvc_fail_nomem(err);
    ZSTD_CCtx_setParameter(w.zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(w.zstd, ZSTD_c_checksumFlag, 1);
    w.status = kvc_outfile_open(&w.file, path, err);
    if (w.status == KVC_OK) {
        put_file(&w, t);
        if (w.status == KVC_OK)
            w.status = kvc_outfile_close(w.file, err);
        else
            kvc_outfile_abandon(w.file);
    }
    ZSTD_freeCCtx(w.zstd);
    kvc_free(w.packed);
    return w.status;
}
