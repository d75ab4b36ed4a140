/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/csv_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"

static void copy(char to[KVC_CSV_CELL], const struct kvc_span *from)
{
    size_t n = !from->text ? 0 : from->n < KVC_CSV_CELL ? from->n : KVC_CSV_CELL - 1;

    if (n)
        memcpy(to, from->text, n);
    to[n] = '\0';
}

static size_t column(const struct kvc_csv_table *t, const char *name)
{
    size_t i = 0;

    while (i < t->csv.n_columns && strcmp(t->name[i], name) != 0)
        i++;
    return i;
}

bool kvc_csv_table_has(const struct kvc_csv_table *t, const char *name)
{
    return column(t, name) < t->csv.n_columns;
}

const char *kvc_csv_table_cell(void *table, const char *name)
{
    const struct kvc_csv_table *t = table;
    size_t i = column(t, name);

    return i < t->csv.n_columns ? t->cell[i] : "";
}

static enum kvc_status next_line(void *user, const char **text, size_t *n, struct kvc_error *err)
{
    struct kvc_lines *lines = user;
    enum kvc_line_kind kind;
    enum kvc_status status = kvc_lines_next(lines, &kind, text, n, err);

    if (status == KVC_OK && kind != KVC_LINE_TEXT)
        *text = NULL;
    return status;
}

enum kvc_status kvc_csv_table_open(struct kvc_csv_table *t, const char *path,
                                   struct kvc_error *err)
{
    const char *text;
    size_t n;

    memset(t, 0, sizeof *t);
    t->path = path;
    enum kvc_status status = kvc_stream_open(&t->stream, path, err);
    if (status != KVC_OK)
        return status;
    if (!kvc_lines_init(&t->lines, t->stream))
        return kvc_fail_nomem(err);
    status = next_line(&t->lines, &text, &n, err);
    if (status == KVC_OK && !text)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 1, NULL, "no header line");
    if (status == KVC_OK)
        status = kvc_csv_header(&t->csv, text, n, path, err);
    if (status != KVC_OK)
        return status;
    t->name = kvc_calloc(t->csv.n_columns, KVC_CSV_CELL);
    t->cell = kvc_calloc(t->csv.n_columns, KVC_CSV_CELL);
    if (!t->name || !t->cell)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < t->csv.n_columns; i++)
        copy(t->name[i], &t->csv.name[i]);
    return KVC_OK;
}

enum kvc_status kvc_csv_table_next(struct kvc_csv_table *t, bool *more, struct kvc_error *err)
{
    const char *text;
    size_t n = 0;
    enum kvc_status status;

    do
        status = next_line(&t->lines, &text, &n, err);
    while (status == KVC_OK && text && n == 0);
    *more = status == KVC_OK && text;
    if (!*more)
        return status;
    t->line = t->lines.line;
    status = kvc_csv_split(&t->csv, text, n, next_line, &t->lines, err);
    if (status != KVC_OK) {
        if (err)
            err->line = t->line;
        return status;
    }
    for (size_t i = 0; i < t->csv.n_columns; i++)
        copy(t->cell[i], &t->csv.field[i]);
    return KVC_OK;
}

enum kvc_status kvc_csv_table_number(struct kvc_csv_table *t, const char *name, double *out,
                                     struct kvc_error *err)
{
    const char *cell = kvc_csv_table_cell(t, name);
    char text[KVC_CSV_CELL];
    size_t n;

    cell += strspn(cell, " \t");
    for (n = strlen(cell); n && strchr(" \t", cell[n - 1]);)
        n--;
    snprintf(text, sizeof text, "%.*s", (int)n, cell);
    if (n && kvc_parse_double(text, name, out, NULL) != KVC_OK)
        return kvc_fail_at(err, KVC_ERR_INPUT, t->path, t->line, name,
                           "\"%.40s\" is not a number: write it with a point before decimals, "
                           "without a unit", text);
    if (!n)
        *out = NAN;
    return KVC_OK;
}

void kvc_csv_table_close(struct kvc_csv_table *t)
{
    kvc_free(t->name);
    kvc_free(t->cell);
    kvc_csv_clear(&t->csv);
    kvc_lines_clear(&t->lines);
    kvc_stream_close(t->stream);
}
