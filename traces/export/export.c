/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/export/export.h"

#include "base/alloc.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct kvc_exporter *const exporters[] = { &kvc_exporter_mooncake,
                                                        &kvc_exporter_oraclegeneral,
                                                        &kvc_exporter_csv };

const char *const *kvc_export_formats(void)
{
    static const char *const names[] = { "mooncake", "oraclegeneral", "csv", NULL };
    return names;
}

/* ---- for writers ---- */

static void flush(struct kvc_export *x)
{
    kvc_packfile_write(x->file, x->buf, x->n);
    x->n = 0;
}

void kvc_export_put(struct kvc_export *x, const char *text, size_t n)
{
    if (x->n + n > KVC_EXPORT_BUFFER)
        flush(x);
    if (n > KVC_EXPORT_BUFFER) {
        kvc_packfile_write(x->file, text, n);
        return;
    }
    memcpy(x->buf + x->n, text, n);
    x->n += n;
}

void kvc_export_text(struct kvc_export *x, const char *text)
{
    kvc_export_put(x, text, strlen(text));
}

void kvc_export_number(struct kvc_export *x, uint64_t v)
{
    char digits[KVC_U64_DIGITS];
    kvc_export_put(x, digits, kvc_u64_digits(v, digits));
}

void kvc_export_blocks(struct kvc_export *x, uint32_t seg, uint64_t skip, const char *separator)
{
    const struct kvc_trace *t = x->t;
    uint32_t n = seg == KVC_SEG_NONE ? 0 : kvc_trace_path(t, seg, x->path);
    size_t gap = strlen(separator);
    bool first = true;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = x->path[i], depth = t->seg_depth[s], len = t->seg_len[s];
        for (uint32_t b = depth < skip ? (uint32_t)(skip - depth) : 0; b < len; b++) {
            if (!first)
                kvc_export_put(x, separator, gap);
            first = false;
            kvc_export_number(x, x->first_block[s] + b);
        }
    }
}

void kvc_export_note(struct kvc_export *x, const char *fmt, ...)
{
    struct kvc_export_report *r = x->report;
    va_list args;
    if (r->n_notes == KVC_REPORT_SHOWN)
        return;
    va_start(args, fmt);
    vsnprintf(r->notes[r->n_notes++], sizeof(r->notes[0]), fmt, args);
    va_end(args);
}

/* The segment that ends depth blocks down the path to seg, NONE when none does. */
static uint32_t ending_at(const struct kvc_trace *t, uint32_t seg, uint64_t depth)
{
    while (seg != KVC_SEG_NONE && t->seg_depth[seg] + (uint64_t)t->seg_len[seg] > depth)
        seg = t->seg_parent[seg];
    return seg != KVC_SEG_NONE && t->seg_depth[seg] + (uint64_t)t->seg_len[seg] == depth
               ? seg : KVC_SEG_NONE;
}

/* The segment in which block depth of the path to seg lies, and its place there. */
static uint64_t block_at(const struct kvc_trace *t, uint32_t seg, uint32_t depth)
{
    while (t->seg_depth[seg] > depth)
        seg = t->seg_parent[seg];
    return (uint64_t)seg << 32 | (depth - t->seg_depth[seg]);
}

static uint32_t root_of(const struct kvc_trace *t, uint32_t seg)
{
    while (t->seg_parent[seg] != KVC_SEG_NONE)
        seg = t->seg_parent[seg];
    return seg;
}

/* As continued() of forest_finish.c, on segments. */
static uint32_t continued(const struct kvc_trace *t, uint64_t a, uint64_t b)
{
    uint32_t pa = t->prompt_seg[a], pb = t->prompt_seg[b], block = t->block_tokens;
    uint64_t whole = (uint64_t)t->input_tokens[a] + t->output_tokens[a];
    if (pa == KVC_SEG_NONE || pb == KVC_SEG_NONE || !t->output_tokens[a] ||
        t->input_tokens[b] < whole || (t->row_status && t->row_status[a] != KVC_ROW_OK))
        return KVC_SEG_NONE;
    uint32_t full = t->input_tokens[a] / block, blocks = kvc_trace_blocks(t, b);
    if (full > blocks || full > kvc_trace_blocks(t, a))
        return KVC_SEG_NONE;
    if (full ? block_at(t, pa, full - 1) != block_at(t, pb, full - 1)
             : t->model && t->model[a] != t->model[b] && root_of(t, pa) != root_of(t, pb))
        return KVC_SEG_NONE;
    uint64_t known = (whole - 1) / block;
    if (known > blocks)
        known = blocks;
    return known > full ? ending_at(t, pb, known) : pa;
}

uint32_t *kvc_export_inferred(const struct kvc_trace *t)
{
    uint32_t *out = kvc_malloc((size_t)t->n_requests, sizeof(*out));
    uint64_t *previous = kvc_malloc(t->n_sessions, sizeof(*previous));
    if (out && previous) {
        memset(out, 0xff, (size_t)t->n_requests * sizeof(*out));
        memset(previous, 0xff, t->n_sessions * sizeof(*previous));
        for (uint64_t r = 0; t->session && t->block_tokens && r < t->n_requests; r++) {
            uint32_t s = t->session[r];
            if (s == KVC_ID_NONE)
                continue;
            if (previous[s] != UINT64_MAX)
                out[previous[s]] = continued(t, previous[s], r);
            previous[s] = r;
        }
    } else {
        kvc_free(out);
        out = NULL;
    }
    kvc_free(previous);
    return out;
}

bool kvc_export_models_share(const struct kvc_trace *t, bool *share)
{
    uint32_t *model = NULL;
    *share = false;
    if (!t->model || t->n_models < 1)
        return true;
    if (!(model = kvc_malloc(t->n_segments, sizeof(*model))))
        return false;
    memset(model, 0xff, t->n_segments * sizeof(*model));
    for (uint64_t r = 0; r < t->n_requests && !*share; r++) {
        if (t->prompt_seg[r] == KVC_SEG_NONE)
            continue;
        uint32_t root = root_of(t, t->prompt_seg[r]), m = t->model[r] + 1; /* 0: none stated */
        *share = model[root] != UINT32_MAX && model[root] != m;
        model[root] = m;
    }
    kvc_free(model);
    return true;
}

/* ---- the driver ---- */

static bool number_blocks(struct kvc_export *x)
{
    const struct kvc_trace *t = x->t;
    uint32_t longest = 0;
    uint64_t next = 0;
    x->first_block = kvc_malloc(t->n_segments, sizeof(*x->first_block));
    x->path = kvc_malloc(t->n_segments, sizeof(*x->path)); /* first as levels */
    if (!x->first_block || !x->path)
        return false;
    for (uint32_t s = 0; s < t->n_segments; s++) {
        uint32_t p = t->seg_parent[s];
        x->path[s] = p == KVC_SEG_NONE ? 1 : x->path[p] + 1;
        longest = x->path[s] > longest ? x->path[s] : longest;
        x->first_block[s] = next;
        next += t->seg_len[s];
    }
    kvc_free(x->path);
    x->path = kvc_malloc(longest, sizeof(*x->path));
    return x->path != NULL;
}

enum kvc_status kvc_trace_export(const struct kvc_trace *trace, const char *path,
                                 const char *format, struct kvc_export_report *report,
                                 struct kvc_error *err)
{
    struct kvc_export_report own;
    struct kvc_export x = { .t = trace, .report = report ? report : &own };
    size_t i = 0, n = sizeof(exporters) / sizeof(exporters[0]);
    *x.report = (struct kvc_export_report){ 0 };
    while (i < n && !(format && kvc_name_equal(exporters[i]->name, format)))
        i++;
    if (i == n)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "format", "\"%s\" can't be written; there "
                           "are mooncake, oraclegeneral and csv", format ? format : "");
    if (trace->sample.weight)
        return kvc_fail(err, KVC_ERR_INPUT, "the trace holds samples of one in %u subtrees of "
                        "prompts, which would be taken for a log", trace->sample.weight);
    x.buf = kvc_malloc(KVC_EXPORT_BUFFER, 1);
    enum kvc_status status = x.buf && number_blocks(&x) ? kvc_packfile_open(&x.file, path, err)
                                                        : kvc_fail_nomem(err);
    if (status == KVC_OK) {
        status = exporters[i]->write(&x, err);
        if (status == KVC_OK) {
            flush(&x);
            status = kvc_packfile_close(x.file, err);
        } else {
            kvc_packfile_abandon(x.file);
        }
    }
    kvc_free(x.first_block);
    kvc_free(x.path);
    kvc_free(x.buf);
    return status;
}
