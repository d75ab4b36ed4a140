/* SPDX-License-Identifier: Apache-2.0
 * A CSV file with a header (plain, .zst or .gz), read row by row, cells found by column name. */
#ifndef KVC_STUDIES_CSV_TABLE_H
#define KVC_STUDIES_CSV_TABLE_H

#include "traces/parse/csv_rows.h"
#include "traces/parse/stream.h"

#define KVC_CSV_CELL 256 /* longer ones are cut */

struct kvc_csv_table {
    const char *path;
    uint64_t line; /* on which the row begins */
    struct kvc_csv csv;
    struct kvc_stream *stream;
    struct kvc_lines lines;
    char (*name)[KVC_CSV_CELL], (*cell)[KVC_CSV_CELL]; /* NUL-terminated */
};

/* path is borrowed. Close it in any case. */
enum kvc_status kvc_csv_table_open(struct kvc_csv_table *t, const char *path,
                                   struct kvc_error *err);
/* The next row that is not blank; *more false at the end. */
enum kvc_status kvc_csv_table_next(struct kvc_csv_table *t, bool *more, struct kvc_error *err);
bool kvc_csv_table_has(const struct kvc_csv_table *t, const char *name);
/* A cell of the row; "" where there is no such column. table: a struct kvc_csv_table. */
const char *kvc_csv_table_cell(void *table, const char *name);
/* A cell as a number; NAN where it is empty, refused where anything is in it but a number. */
enum kvc_status kvc_csv_table_number(struct kvc_csv_table *t, const char *name, double *out,
                                     struct kvc_error *err);
void kvc_csv_table_close(struct kvc_csv_table *t);

#endif
