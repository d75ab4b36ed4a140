/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/kernels/rows.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "studies/csv_table.h"

struct rows {
    struct kvc_csv_table table;
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

static const char *column(struct rows *r, const char *name)
{
    return kvc_csv_table_cell(&r->table, name);
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

static enum kvc_status one_row(struct rows *r, kvc_kernel_row_fn fn, void *user,
                               struct kvc_error *err)
{
    struct kvc_kernel_row row;

    label_row(r);
    if (!r->family)
        return kvc_fail_at(err, KVC_ERR_INPUT, r->table.path, r->table.line, "family",
                           "'%s' is no family of kernels known here; name the file "
                           "system__family__backend__version.csv or give columns of these names",
                           r->label.family);
    bool fine = r->family->read(&r->table, kvc_csv_table_cell, &row);
    return fn(user, &r->label, r->family, fine ? &row : NULL, r->table.line, err);
}

enum kvc_status kvc_kernel_rows(const char *path, kvc_kernel_row_fn fn, void *user,
                                struct kvc_error *err)
{
    struct rows r = {.family = NULL};
    bool more = true;
    enum kvc_status status = kvc_csv_table_open(&r.table, path, err);

    label_from_name(path, &r.from_name);
    while (status == KVC_OK && more) {
        status = kvc_csv_table_next(&r.table, &more, err);
        if (status == KVC_OK && more)
            status = one_row(&r, fn, user, err);
    }
    kvc_csv_table_close(&r.table);
    return status;
}
