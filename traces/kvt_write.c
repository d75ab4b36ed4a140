/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/kvt.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/outfile.h"
#include "traces/break_column.h"
#include "traces/report_column.h"

#include <string.h>
#include <zstd.h>

/* Higher levels save a few per cent of a small file and cost more than the import. */
#define LEVEL 1
#define PIECE ((size_t)1 << 14) /* values packed at a time: of the second-level cache */

struct writer {
    struct kvc_outfile *file;
    const char *path;
    struct kvc_error *err;
    enum kvc_status status;
    uint64_t offset;
    ZSTD_CCtx *zstd;
    unsigned char *packed, *raw; /* a piece in the file's form, packed and not */
    size_t packed_cap;
    kvc_progress_fn progress;
    void *user;
    uint64_t done, total; /* bytes of columns */
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

static void packing_failed(struct writer *w, size_t code)
{
    w->status = kvc_fail_at(w->err, KVC_ERR_NOMEM, w->path, 0, NULL, "compressing: %s",
                            ZSTD_getErrorName(code));
}

/* Values [first, first + n) of a column in the file's order, which may be the
 * column itself. */
static const void *encode(struct writer *w, enum kvc_kvt_type type, const void *column,
                          uint64_t first, size_t n)
{
    size_t size = type_size(type);
    unsigned char *raw = w->raw;
    const uint64_t *v = type == KVC_KVT_U64_DELTA ? (const uint64_t *)column + first : NULL;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (!v)
        return (const char *)column + first * size;
#endif
    if (v) {
        uint64_t before = first ? v[-1] : 0;
        for (size_t i = 0; i < n; before = v[i++])
            kvc_put_u64(raw + 8 * i, v[i] - before);
        return raw;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t at = first + i;
        if (size == 1)
            raw[i] = ((const uint8_t *)column)[at];
        else if (size == 4)
            kvc_put_u32(raw + 4 * i, ((const uint32_t *)column)[at]);
        else
            kvc_put_u64(raw + 8 * i, ((const uint64_t *)column)[at]);
    }
    return raw;
}

static bool pack(struct writer *w, const void *raw, size_t bytes, bool last, uint64_t *stored)
{
    ZSTD_inBuffer in = { raw, bytes, 0 };
    for (;;) {
        ZSTD_outBuffer out = { w->packed, w->packed_cap, 0 };
        size_t left = ZSTD_compressStream2(w->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            packing_failed(w, left);
            return false;
        }
        put(w, w->packed, out.pos);
        *stored += out.pos;
        if (last ? left == 0 : in.pos == in.size)
            return true;
    }
}

static bool tell(struct writer *w, uint64_t bytes)
{
    w->done += bytes;
    if (w->progress && !w->progress(w->user, "writing", w->done, w->total))
        w->status = kvc_fail(w->err, KVC_ERR_CANCELLED, "cancelled");
    return w->status == KVC_OK && kvc_outfile_ok(w->file);
}

/* One frame, packed piece by piece: a column may be larger than memory. */
static void put_frame(struct writer *w, const char *name, enum kvc_kvt_type type,
                      const void *column, uint64_t count)
{
    size_t size = type_size(type);
    uint64_t offset = w->offset, stored = 0, i = 0;
    size_t r = ZSTD_CCtx_setPledgedSrcSize(w->zstd, count * size);
    if (ZSTD_isError(r)) {
        packing_failed(w, r);
        return;
    }
    do {
        size_t n = count - i < PIECE ? (size_t)(count - i) : PIECE;
        const void *raw = encode(w, type, column, i, n);
        i += n;
        if (!pack(w, raw, n * size, i == count, &stored) || !tell(w, n * size))
            return;
    } while (i < count);
    unsigned char *e = w->index[w->n++];
    memset(e, 0, KVC_KVT_ENTRY);
    memcpy(e, name, strlen(name));
    kvc_put_u32(e + KVC_KVT_NAME, type);
    kvc_put_u64(e + 32, count);
    kvc_put_u64(e + 40, offset);
    kvc_put_u64(e + 48, stored);
    kvc_put_u64(e + 56, count * size);
}

/* A column in the machine's order; NULL is left out. */
static void put_column(struct writer *w, const char *name, enum kvc_kvt_type type,
                       const void *column, uint64_t count)
{
    if (w->status == KVC_OK && column && kvc_outfile_ok(w->file))
        put_frame(w, name, type, column, count);
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

static void put_breaks(struct writer *w, const struct kvc_trace *t)
{
    size_t n;
    uint64_t *all = kvc_breaks_pack(t, &n);
    if (n && !all && w->status == KVC_OK)
        w->status = kvc_fail_nomem(w->err);
    put_column(w, "text.breaks", KVC_KVT_U64, all, n);
    kvc_free(all);
}

static void put_report(struct writer *w, const struct kvc_trace *t)
{
    struct kvc_packed_report p = { 0 };
    if (!t->report || w->status != KVC_OK)
        return;
    if (!kvc_report_pack(t->report, &p))
        w->status = kvc_fail_nomem(w->err);
    put_column(w, "import.numbers", KVC_KVT_U64, p.numbers, p.n_numbers);
    put_column(w, "import.texts", KVC_KVT_U8, p.n_texts ? p.texts : NULL, p.n_texts);
    kvc_free(p.numbers);
    kvc_free(p.texts);
}

static void put_columns(struct writer *w, const struct kvc_trace *t)
{
    uint64_t n = t->n_requests;
    uint64_t meta[7] = { t->block_tokens, n, t->n_segments, t->n_sessions, t->n_tenants,
                         t->n_models, t->objects };
    put_column(w, "meta", KVC_KVT_U64, meta, 7);
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
    put_column(w, "request.output_unknown", KVC_KVT_U8, t->output_unknown, n);
    put_column(w, "request.cached_tokens", KVC_KVT_U32, t->cached_tokens, n);
    put_column(w, "segment.parent", KVC_KVT_U32, t->seg_parent, t->n_segments);
    put_column(w, "segment.length", KVC_KVT_U32, t->seg_len, t->n_segments);
    put_column(w, "segment.draw", KVC_KVT_U32, t->seg_draw, t->n_segments);
    put_names(w, "names.namespace", t->tenant_names, t->n_tenants);
    put_names(w, "names.model", t->model_names, t->n_models);
    uint64_t forgotten[3] = { t->forget_ns, t->forgotten_blocks, t->unjudged_tokens };
    if (t->forgotten_blocks)
        put_column(w, "forgotten", KVC_KVT_U64, forgotten, 3);
    const struct kvc_sample_totals *s = &t->sample;
    uint64_t sample[9] = { s->weight, s->seed, s->requests, s->input_tokens, s->output_tokens,
                           s->block_touches, s->block_tokens, s->own_blocks, s->own_squares };
    if (s->weight)
        put_column(w, "sample", KVC_KVT_U64, sample, 9);
    put_breaks(w, t);
    put_report(w, t);
    put_column(w, "digest", KVC_KVT_U8, t->digest, strlen(t->digest));
}

static uint64_t column_bytes(const struct kvc_trace *t)
{
    uint64_t row = 20 + (t->think_ns ? 8u : 0u) + (t->row_status ? 1u : 0u) +
                   (t->output_unknown ? 1u : 0u);
    const uint32_t *const narrow[] = { t->output_seg, t->session, t->tenant, t->model,
                                       t->cached_tokens };
    for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
        row += narrow[i] ? 4 : 0;
    return row * t->n_requests + (t->seg_draw ? 12u : 8u) * (uint64_t)t->n_segments;
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

enum kvc_status kvc_trace_save_with(const struct kvc_trace *t, const char *path,
                                    kvc_progress_fn progress, void *user, struct kvc_error *err)
{
    struct writer w = { .err = err, .path = path, .progress = progress, .user = user,
                        .total = column_bytes(t), .packed_cap = ZSTD_CStreamOutSize() };
    w.zstd = ZSTD_createCCtx();
    w.packed = kvc_malloc(w.packed_cap, 1);
    w.raw = kvc_malloc(PIECE, 8);
    if (w.zstd && w.packed && w.raw) {
        ZSTD_CCtx_setParameter(w.zstd, ZSTD_c_compressionLevel, LEVEL);
        ZSTD_CCtx_setParameter(w.zstd, ZSTD_c_checksumFlag, 1);
        w.status = kvc_outfile_open(&w.file, path, err);
    } else {
        w.status = kvc_fail_nomem(err);
    }
    if (w.file) {
        put_file(&w, t);
        if (w.status == KVC_OK)
            w.status = kvc_outfile_close(w.file, err);
        else
            kvc_outfile_abandon(w.file);
    }
    ZSTD_freeCCtx(w.zstd);
    kvc_free(w.packed);
    kvc_free(w.raw);
    return w.status;
}

enum kvc_status kvc_trace_save(const struct kvc_trace *t, const char *path, struct kvc_error *err)
{
    return kvc_trace_save_with(t, path, NULL, NULL, err);
}
