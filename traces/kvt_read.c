/* SPDX-License-Identifier: Apache-2.0
 * Reads a .kvt, trusting nothing in it: checksums find damage, the checks find what a wrong or
 * hostile writer may have put under right checksums. */
#include "traces/kvt.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/error.h"
#include "traces/break_column.h"
#include "traces/report_column.h"
#include "traces/trace_write.h"

#include <string.h>
#include <zstd.h>

/* zstd packs at best some 32,768 bytes into 4; a larger claim is a lie that costs memory. */
#define MOST_PACKED 40000

struct reader {
    const char *path;
    struct kvc_error *err;
    unsigned char *file;
    size_t size;
    const unsigned char *index;
    uint64_t columns, index_offset;
    ZSTD_DCtx *zstd;
};

static enum kvc_status damaged(const struct reader *r, const char *field, const char *what)
{
    return kvc_fail_at(r->err, KVC_ERR_INPUT, r->path, 0, field,
                       "the .kvt is damaged (%s); import the log again", what);
}

static enum kvc_status load(struct reader *r, struct kvc_stream *stream)
{
    size_t cap = 0, got = 0;
    void *file = NULL;
    uint64_t hint = kvc_stream_size(stream);
    enum kvc_status status = KVC_OK;
    do {
        size_t need = r->size + ((size_t)1 << 16);
        if (r->size == 0 && hint < SIZE_MAX / 2)
            need += (size_t)hint;
        if (!kvc_grow(&file, &cap, need, 1))
            status = kvc_fail_nomem(r->err);
        else
            status = kvc_stream_read(stream, (char *)file + r->size, cap - r->size, &got, r->err);
        r->size += status == KVC_OK ? got : 0;
    } while (status == KVC_OK && got);
    r->file = file;
    return status;
}

static enum kvc_status open_index(struct reader *r)
{
    struct kvc_digest d;
    if (r->size < KVC_KVT_HEADER + KVC_KVT_FOOTER)
        return damaged(r, NULL, "cut short");
    uint32_t version = kvc_get_u32(r->file + 8);
    if (version != KVC_KVT_VERSION)
        return kvc_fail_at(r->err, KVC_ERR_UNSUPPORTED, r->path, 0, NULL,
                           ".kvt version %u; this kvcast (%s) reads version %d: import the log "
                           "again or use a newer kvcast", version, kvc_version(), KVC_KVT_VERSION);
    const unsigned char *footer = r->file + r->size - KVC_KVT_FOOTER;
    if (memcmp(footer + 24, KVC_KVT_MAGIC, 8) != 0)
        return damaged(r, NULL, "cut short");
    r->index_offset = kvc_get_u64(footer);
    r->columns = kvc_get_u64(footer + 8);
    uint64_t room = r->size - KVC_KVT_FOOTER;
    if (r->index_offset < KVC_KVT_HEADER || r->index_offset > room ||
        (room - r->index_offset) % KVC_KVT_ENTRY ||
        (room - r->index_offset) / KVC_KVT_ENTRY != r->columns)
        return damaged(r, NULL, "its index is not where it should be");
    r->index = r->file + r->index_offset;
    kvc_digest_init(&d);
    kvc_digest_add(&d, r->file, KVC_KVT_HEADER);
    kvc_digest_add(&d, r->index, (size_t)(room - r->index_offset));
    return d.a == kvc_get_u64(footer + 16) ? KVC_OK : damaged(r, NULL, "its index changed");
}

static const unsigned char *find(const struct reader *r, const char *name)
{
    for (uint64_t i = 0; i < r->columns; i++) {
        const unsigned char *e = r->index + i * KVC_KVT_ENTRY;
        if (strncmp((const char *)e, name, KVC_KVT_NAME) == 0)
            return e;
    }
    return NULL;
}

static size_t type_size(enum kvc_kvt_type type)
{
    return type == KVC_KVT_U8 ? 1 : type == KVC_KVT_U32 ? 4 : 8;
}

/* Undoes what the file's form differs from memory in. */
static void decode(void *column, uint64_t n, enum kvc_kvt_type type)
{
    uint64_t before = 0;
    size_t size = type_size(type);
    for (uint64_t i = 0; i < n && size > 1; i++) {
        if (size == 4) {
            uint32_t *v = (uint32_t *)column + i;
            *v = kvc_get_u32((const unsigned char *)v);
        } else {
            uint64_t *v = (uint64_t *)column + i;
            *v = kvc_get_u64((const unsigned char *)v);
            if (type == KVC_KVT_U64_DELTA)
                before = *v += before;
        }
    }
}

/* A column of n values (UINT64_MAX: of any number, told in *count). Absent: *out stays NULL. */
static enum kvc_status column(struct reader *r, const char *name, enum kvc_kvt_type type,
                              uint64_t n, uint64_t *count, void *out)
{
    const unsigned char *e = find(r, name);
    if (!e)
        return KVC_OK;
    uint64_t have = kvc_get_u64(e + 32), at = kvc_get_u64(e + 40), stored = kvc_get_u64(e + 48),
             bytes = kvc_get_u64(e + 56);
    size_t size = type_size(type);
    if (kvc_get_u32(e + KVC_KVT_NAME) != (uint32_t)type || (n != UINT64_MAX && have != n))
        return damaged(r, name, "a column of another type or length than expected");
    if (at < KVC_KVT_HEADER || at > r->index_offset || stored > r->index_offset - at ||
        have > UINT64_MAX / size || have * size != bytes || bytes / MOST_PACKED > stored ||
        ZSTD_getFrameContentSize(r->file + at, (size_t)stored) != bytes)
        return damaged(r, name, "a column with impossible sizes");
    void *p = kvc_malloc((size_t)bytes, 1);
    if (!p)
        return kvc_fail_nomem(r->err);
    size_t got = ZSTD_decompressDCtx(r->zstd, p, (size_t)bytes, r->file + at, (size_t)stored);
    if (ZSTD_isError(got) || got != bytes) {
        kvc_free(p);
        return damaged(r, name, ZSTD_isError(got) ? ZSTD_getErrorName(got) : "a short column");
    }
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (type == KVC_KVT_U64_DELTA)
#endif
        decode(p, have, type);
    if (count)
        *count = have;
    *(void **)out = p;
    return KVC_OK;
}

static enum kvc_status names(struct reader *r, const char *name, uint32_t n, char ***out)
{
    char *all = NULL, *p;
    uint64_t bytes = 0;
    enum kvc_status status = column(r, name, KVC_KVT_U8, UINT64_MAX, &bytes, &all);
    if (status != KVC_OK)
        return status;
    char **list = n && bytes >= n ? kvc_calloc(n, sizeof(*list)) : NULL;
    uint64_t found = 0;
    for (uint64_t i = 0; i < bytes; i++)
        found += all[i] == '\0';
    if (found != n || (bytes && all[bytes - 1] != '\0')) {
        status = damaged(r, name, "not as many names as announced");
    } else if (n && !list) {
        status = kvc_fail_nomem(r->err);
    } else {
        p = all;
        for (uint32_t i = 0; i < n && status == KVC_OK; i++, p += strlen(p) + 1)
            if (!(list[i] = kvc_strdup(p)))
                status = kvc_fail_nomem(r->err);
    }
    kvc_free(all);
    *out = list;
    return status;
}

static enum kvc_status read_meta(struct reader *r, struct kvc_trace *t)
{
    uint64_t *meta = NULL, n = 0;
    enum kvc_status status = column(r, "meta", KVC_KVT_U64, UINT64_MAX, &n, &meta);
    if (status != KVC_OK)
        return status;
    if (!meta || n < 6 || meta[0] > UINT32_MAX || meta[2] >= UINT32_MAX ||
        meta[3] >= UINT32_MAX || meta[4] >= UINT32_MAX || meta[5] >= UINT32_MAX) {
        status = damaged(r, "meta", "impossible counts");
    } else {
        t->block_tokens = (uint32_t)meta[0];
        t->n_requests = meta[1];
        t->n_segments = (uint32_t)meta[2];
        t->n_sessions = (uint32_t)meta[3];
        t->objects = n > 6 && meta[6]; /* older files have no such logs */
    }
    uint32_t tenants = status == KVC_OK ? (uint32_t)meta[4] : 0;
    uint32_t models = status == KVC_OK ? (uint32_t)meta[5] : 0;
    kvc_free(meta);
    if (status == KVC_OK)
        status = names(r, "names.namespace", tenants, &t->tenant_names);
    t->n_tenants = t->tenant_names ? tenants : 0;
    if (status == KVC_OK)
        status = names(r, "names.model", models, &t->model_names);
    t->n_models = t->model_names ? models : 0;
    return status;
}

static enum kvc_status read_forgotten(struct reader *r, struct kvc_trace *t)
{
    uint64_t *v = NULL, n = 0;
    enum kvc_status status = column(r, "forgotten", KVC_KVT_U64, UINT64_MAX, &n, &v);
    if (status == KVC_OK && v && n < 3)
        status = damaged(r, "forgotten", "a short column");
    if (status == KVC_OK && v) {
        t->forget_ns = v[0];
        t->forgotten_blocks = v[1];
        t->unjudged_tokens = v[2];
    }
    kvc_free(v);
    return status;
}

static enum kvc_status read_sample(struct reader *r, struct kvc_trace *t)
{
    uint64_t *v = NULL, n = 0;
    enum kvc_status status = column(r, "sample", KVC_KVT_U64, UINT64_MAX, &n, &v);
    if (status == KVC_OK && v &&
        (n < 9 || v[0] < KVC_SAMPLES || v[0] > UINT32_MAX || v[2] < t->n_requests || v[6] > v[3]))
        status = damaged(r, "sample", "an impossible sample");
    if (status == KVC_OK && v)
        t->sample = (struct kvc_sample_totals){
            .weight = (uint32_t)v[0], .seed = v[1], .requests = v[2], .input_tokens = v[3],
            .output_tokens = v[4], .block_touches = v[5], .block_tokens = v[6],
            .own_blocks = v[7], .own_squares = v[8] };
    kvc_free(v);
    return status;
}

static enum kvc_status read_columns(struct reader *r, struct kvc_trace *t)
{
    enum kvc_status status = read_meta(r, t);
    if (status == KVC_OK)
        status = read_forgotten(r, t);
    if (status == KVC_OK)
        status = read_sample(r, t);
    const struct {
        const char *name;
        enum kvc_kvt_type type;
        void *out;
        bool segments, required;
    } wanted[] = {
        { "request.arrival_ns", KVC_KVT_U64_DELTA, &t->arrival_ns, false, true },
        { "request.input_tokens", KVC_KVT_U32, &t->input_tokens, false, true },
        { "request.output_tokens", KVC_KVT_U32, &t->output_tokens, false, true },
        { "request.prompt_segment", KVC_KVT_U32, &t->prompt_seg, false, true },
        { "request.think_ns", KVC_KVT_U64, &t->think_ns, false, false },
        { "request.output_segment", KVC_KVT_U32, &t->output_seg, false, false },
        { "request.session", KVC_KVT_U32, &t->session, false, false },
        { "request.namespace", KVC_KVT_U32, &t->tenant, false, false },
        { "request.model", KVC_KVT_U32, &t->model, false, false },
        { "request.status", KVC_KVT_U8, &t->row_status, false, false },
        { "request.output_unknown", KVC_KVT_U8, &t->output_unknown, false, false },
        { "request.cached_tokens", KVC_KVT_U32, &t->cached_tokens, false, false },
        { "segment.parent", KVC_KVT_U32, &t->seg_parent, true, true },
        { "segment.length", KVC_KVT_U32, &t->seg_len, true, true },
        { "segment.draw", KVC_KVT_U32, &t->seg_draw, true, t->sample.weight != 0 },
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && status == KVC_OK; i++) {
        status = column(r, wanted[i].name, wanted[i].type,
                        wanted[i].segments ? t->n_segments : t->n_requests, NULL, wanted[i].out);
        if (status == KVC_OK && wanted[i].required && !*(void **)wanted[i].out)
            status = damaged(r, wanted[i].name, "a column is missing");
    }
    return status;
}

/* ---- does it make sense? ---- */

static bool segments_right(struct kvc_trace *t)
{
    if (t->n_segments && !t->block_tokens)
        return false;
    for (uint32_t s = 0; s < t->n_segments; s++) {
        uint32_t p = t->seg_parent[s];
        if ((p != KVC_SEG_NONE && p >= s) || !t->seg_len[s])
            return false;
        uint64_t depth = p == KVC_SEG_NONE ? 0 : (uint64_t)t->seg_depth[p] + t->seg_len[p];
        if (depth + t->seg_len[s] >= UINT32_MAX) /* no path is so long */
            return false;
        t->seg_depth[s] = (uint32_t)depth;
    }
    return true;
}

/* A prompt's path is as long as its tokens say, its last partial block with or without. */
static bool prompt_right(const struct kvc_trace *t, uint64_t r)
{
    uint32_t s = t->prompt_seg[r];
    if (s == KVC_SEG_NONE)
        return true;
    if (s >= t->n_segments)
        return false;
    uint32_t n = t->seg_depth[s] + t->seg_len[s], full = t->input_tokens[r] / t->block_tokens;
    return n == full || (n == full + 1 && t->input_tokens[r] % t->block_tokens);
}

static bool within(const uint32_t *column, uint64_t r, uint32_t n)
{
    return !column || column[r] == UINT32_MAX || column[r] < n;
}

static bool requests_right(const struct kvc_trace *t)
{
    for (uint64_t r = 0; r < t->n_requests; r++) {
        if (r ? t->arrival_ns[r] < t->arrival_ns[r - 1] : t->arrival_ns[r] != 0)
            return false;
        if (!t->input_tokens[r] || t->input_tokens[r] > INT32_MAX ||
            t->output_tokens[r] > INT32_MAX || t->arrival_ns[r] > INT64_MAX)
            return false;
        if (!prompt_right(t, r) || !within(t->output_seg, r, t->n_segments) ||
            !within(t->session, r, t->n_sessions) || !within(t->tenant, r, t->n_tenants) ||
            !within(t->model, r, t->n_models) || (t->row_status && t->row_status[r] > 2) ||
            !within(t->cached_tokens, r, t->input_tokens[r] + 1) ||
            (!kvc_trace_output_known(t, r) && t->output_tokens[r]))
            return false;
    }
    return true;
}

static enum kvc_status read_breaks(struct reader *r, struct kvc_trace *t)
{
    uint64_t *all = NULL, n = 0;
    enum kvc_status status = column(r, "text.breaks", KVC_KVT_U64, UINT64_MAX, &n, &all);
    if (status == KVC_OK && all && !kvc_breaks_unpack(all, n, t))
        status = damaged(r, "text.breaks", "impossible places in prompts");
    kvc_free(all);
    return status;
}

static enum kvc_status read_report(struct reader *r, struct kvc_trace *t)
{
    struct kvc_packed_report p = { 0 };
    uint64_t numbers = 0, texts = 0;
    enum kvc_status status = column(r, "import.numbers", KVC_KVT_U64, UINT64_MAX, &numbers,
                                    &p.numbers);
    if (status == KVC_OK)
        status = column(r, "import.texts", KVC_KVT_U8, UINT64_MAX, &texts, &p.texts);
    p.n_numbers = (size_t)numbers;
    p.n_texts = (size_t)texts;
    if (status == KVC_OK && p.numbers) {
        t->report = kvc_malloc(1, sizeof(*t->report));
        status = !t->report                           ? kvc_fail_nomem(r->err)
                 : kvc_report_unpack(&p, t->report) ? KVC_OK
                                                      : damaged(r, "import.numbers",
                                                                "an impossible report");
    }
    kvc_free(p.numbers);
    kvc_free(p.texts);
    return status;
}

static enum kvc_status check(struct reader *r, struct kvc_trace *t)
{
    char *stored = NULL, digest[24];
    uint64_t n = 0;
    t->seg_depth = kvc_malloc(t->n_segments, sizeof(*t->seg_depth));
    if (!t->seg_depth)
        return kvc_fail_nomem(r->err);
    if (!segments_right(t) || !requests_right(t))
        return damaged(r, NULL, "its columns contradict one another");
    enum kvc_status status = column(r, "digest", KVC_KVT_U8, UINT64_MAX, &n, &stored);
    kvc_trace_digest(t, digest);
    if (status == KVC_OK &&
        (!stored || n != strlen(digest) || memcmp(stored, digest, (size_t)n) != 0))
        status = damaged(r, "digest", "its contents differ from the digest");
    kvc_free(stored);
    memcpy(t->digest, digest, sizeof(digest));
    return status;
}

enum kvc_status kvc_kvt_read(struct kvc_trace **out, struct kvc_stream *stream, const char *path,
                             struct kvc_error *err)
{
    struct reader r = { .path = path, .err = err, .zstd = ZSTD_createDCtx() };
    struct kvc_trace *t = kvc_calloc(1, sizeof(*t));
    enum kvc_status status = t && r.zstd ? load(&r, stream) : kvc_fail_nomem(err);
    if (status == KVC_OK)
        status = open_index(&r);
    if (status == KVC_OK)
        status = read_columns(&r, t);
    if (status == KVC_OK)
        status = read_breaks(&r, t);
    if (status == KVC_OK)
        status = read_report(&r, t);
    if (status == KVC_OK)
        status = check(&r, t);
    if (status == KVC_OK)
        *out = t;
    else
        kvc_trace_destroy(t);
    ZSTD_freeDCtx(r.zstd);
    kvc_free(r.file);
    return status;
}
