/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/kernel_rows.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/error.h"
#include "traces/parse/csv_rows.h"
#include "traces/parse/stream.h"

#define CELL 128

struct rows {
    const char *path;
    struct kvc_csv csv;
    struct kvc_lines lines;
    char (*name)[CELL], (*cell)[CELL]; /* NUL-terminated */
    struct kvc_kernel_label from_name, label;
    const struct kvc_kernel_family *family;
};

static void copy(char *to, size_t size, const char *text, size_t n)
{
    n = n < size ? n : size - 1;
    if (n)
        memcpy(to, text, n);
    to[n] = '\0';
}

static const char *column(void *user, const char *name)
{
    const struct rows *r = user;

    for (size_t i = 0; i < r->csv.n_columns; i++)
        if (strcmp(r->name[i], name) == 0)
            return r->cell[i];
    return "";
}

/* ---- whose rows ---- */

/* "h100_sxm__gemm__vllm__0.24.0.csv.zst"; fields stay empty where the name is another. */
static void label_from_name(const char *path, struct kvc_kernel_label *l)
{
    const char *base = strrchr(path, '/'), *at = base ? base + 1 : path;
    char *const part[] = {l->system, l->family, l->backend, l->version};
    const char *end = strstr(at, ".csv");

    end = end ? end : at + strlen(at);
    for (size_t i = 0; i < 4; i++) {
        const char *next = strstr(at, "__");
        if (!next || next > end || i == 3)
            next = end;
        copy(part[i], KVC_KERNEL_LABEL, at, (size_t)(next - at));
        if (next == end) {
            if (i == 0) /* no parts at all */
                l->system[0] = '\0';
            return;
        }
        at = next + 2;
    }
}

static const char *system_of(const char *device)
{
    static const char *const known[][2] = {
        {"GB200", "gb200"},    {"B200", "b200_sxm"}, {"H200", "h200_sxm"},
        {"H100", "h100_sxm"}, {"A100", "a100_sxm"}, {"L40S", "l40s"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strstr(device, known[i][0]))
            return known[i][1];
    return "";
}

static const char *either(const char *a, const char *b)
{
    return *a ? a : b;
}

static void label_row(struct rows *r)
{
    struct kvc_kernel_label *l = &r->label;
    bool columns = *column(r, "system") != '\0'; /* "backend" alone is a way to all-reduce */
    const char *system = column(r, "system");
    const char *family = either(column(r, "family"), column(r, "table"));
    const char *backend = columns ? column(r, "backend") : "";

    system = either(either(system, r->from_name.system), system_of(column(r, "device")));
    family = either(either(family, r->from_name.family), column(r, "op_name"));
    backend = either(either(backend, r->from_name.backend), column(r, "framework"));
    copy(l->system, sizeof l->system, system, strlen(system));
    copy(l->backend, sizeof l->backend, backend, strcspn(backend, "_"));
    for (char *c = l->backend; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    const char *version = either(column(r, "version"), r->from_name.version);
    copy(l->version, sizeof l->version, version, strlen(version));
    if (strcmp(l->family, family) != 0) {
        copy(l->family, sizeof l->family, family, strlen(family));
        r->family = kvc_kernel_family_find(l->family);
    }
}

/* ---- rows ---- */

static enum kvc_status next_line(void *user, const char **text, size_t *n, struct kvc_error *err)
{
    struct kvc_lines *lines = user;
    enum kvc_line_kind kind;
    enum kvc_status status = kvc_lines_next(lines, &kind, text, n, err);

    if (status == KVC_OK && kind != KVC_LINE_TEXT)
        *text = NULL;
    return status;
}

static enum kvc_status open_header(struct rows *r, struct kvc_error *err)
{
    const char *text;
    size_t n;
    enum kvc_status status = next_line(&r->lines, &text, &n, err);

    if (status == KVC_OK && !text)
        return kvc_fail_at(err, KVC_ERR_INPUT, r->path, 1, NULL, "no header line");
    if (status == KVC_OK)
        status = kvc_csv_header(&r->csv, text, n, r->path, err);
    if (status != KVC_OK)
        return status;
    r->name = kvc_calloc(r->csv.n_columns, CELL);
    r->cell = kvc_calloc(r->csv.n_columns, CELL);
    if (!r->name || !r->cell)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < r->csv.n_columns; i++)
        copy(r->name[i], CELL, r->csv.name[i].text, r->csv.name[i].n);
    return KVC_OK;
}

static enum kvc_status one_row(struct rows *r, const char *text, size_t n, kvc_kernel_row_fn fn,
                               void *user, struct kvc_error *err)
{
    struct kvc_kernel_row row;
    uint64_t line = r->lines.line;
    enum kvc_status status = kvc_csv_split(&r->csv, text, n, next_line, &r->lines, err);

    if (status != KVC_OK) {
        if (err)
            err->line = line;
        return status;
    }
    for (size_t i = 0; i < r->csv.n_columns; i++)
        copy(r->cell[i], CELL, r->csv.field[i].text, r->csv.field[i].text ? r->csv.field[i].n : 0);
    label_row(r);
    if (!r->family)
        return kvc_fail_at(err, KVC_ERR_INPUT, r->path, line, "family",
                           "'%s' is no family of kernels known here; name the file "
                           "system__family__backend__version.csv or give columns of these names",
                           r->label.family);
    bool fine = r->family->read(r, column, &row);
    return fn(user, &r->label, r->family, fine ? &row : NULL, line, err);
}

enum kvc_status kvc_kernel_rows(const char *path, kvc_kernel_row_fn fn, void *user,
                                struct kvc_error *err)
{
    struct rows r = {.path = path};
    struct kvc_stream *stream;
    enum kvc_status status = kvc_stream_open(&stream, path, err);

    if (status != KVC_OK)
        return status;
    label_from_name(path, &r.from_name);
    if (!kvc_lines_init(&r.lines, stream))
        status = kvc_fail_nomem(err);
    else
        status = open_header(&r, err);
    while (status == KVC_OK) {
        const char *text;
        size_t n;
        status = next_line(&r.lines, &text, &n, err);
        if (status != KVC_OK || !text)
            break;
        if (n > 0)
            status = one_row(&r, text, n, fn, user, err);
    }
    kvc_free(r.name);
    kvc_free(r.cell);
    kvc_csv_clear(&r.csv);
    kvc_lines_clear(&r.lines);
    kvc_stream_close(stream);
    return status;
}
