/* SPDX-License-Identifier: Apache-2.0
 * Rows of CSV logs, their columns found by header name. Fields may be quoted, hold delimiters,
 * doubled quotes and line ends; a row without quotes is split where it lies. */
#ifndef KVC_TRACES_CSV_ROWS_H
#define KVC_TRACES_CSV_ROWS_H

#include "traces/import/import.h"

#define KVC_CSV_NONE SIZE_MAX /* no such column */

struct kvc_csv {
    struct kvc_span *field; /* [n_columns] of the current row, until the next one. text NULL: empty
                               and not quoted, which stands for no value; n 0 alone: "" */
    struct kvc_span *name;  /* [n_columns] as the header spells them */
    size_t n_columns;
    char delimiter;         /* comma, semicolon or tab, whichever the header has most of */
    uint64_t line;          /* physical line on which the row begins */
    const char *file;       /* for messages; borrowed */
    char *header, *buf;     /* buf: the row unquoted, when it has quotes */
    size_t *at;
    size_t cap;
    bool ready;
    bool hide; /* errors name no columns, which may be a row of a file without a header */
};

/* Reads the header, the next line that is not blank. Clear it in any case. */
enum kvc_status kvc_csv_open(struct kvc_csv *csv, struct kvc_import *im, struct kvc_error *err);
/* The same of a header in memory (n bytes, no line end), for a file of that name (borrowed). */
enum kvc_status kvc_csv_header(struct kvc_csv *csv, const char *text, size_t n, const char *file,
                               struct kvc_error *err);
void kvc_csv_clear(struct kvc_csv *csv);
/* Finds a column by any of several names, "startTime|start_time": case, spaces and the signs
 * _ - . count for nothing, and of two names that are there the one named first is taken. An error
 * when a needed one is missing or a name stands for two columns. */
enum kvc_status kvc_csv_column(const struct kvc_csv *csv, const char *names, bool needed,
                               size_t *column, struct kvc_error *err);
/* The tenant's column: the user's, which must be there, else any of the usual names. */
enum kvc_status kvc_csv_tenant(const struct kvc_csv *csv, const struct kvc_import *im,
                               const char *usual, size_t *column, struct kvc_error *err);
/* Whether text begins with a CSV header that has a column for each of these (NULL-terminated,
 * each with alternatives as above). For sniffing; a byte order mark and blank lines may precede. */
bool kvc_csv_sniff(const char *head, size_t n, const char *const *columns);

/* The next row into field[]; *more false at the end. Rows that are not right CSV, or have another
 * number of fields than the header, become bad rows; a header that comes again is tallied. */
enum kvc_status kvc_csv_next(struct kvc_csv *csv, struct kvc_import *im, bool *more,
                             struct kvc_error *err);
/* The same for a row whose first line the caller took with kvc_import_line, to look at it itself;
 * *taken false: it was a bad row, or a header. */
enum kvc_status kvc_csv_take(struct kvc_csv *csv, struct kvc_import *im, const char *text,
                             size_t n, bool *taken, struct kvc_error *err);
/* What kvc_csv_take rests on: splits a row that begins with this line, asking more() for the lines
 * that quotes carry it over to (*text NULL: there is none; text[n] shows whether a carriage
 * return was taken off). KVC_ERR_INPUT with the reason when the row is not right. */
typedef enum kvc_status (*kvc_csv_more)(void *user, const char **text, size_t *n,
                                        struct kvc_error *err);
enum kvc_status kvc_csv_split(struct kvc_csv *csv, const char *text, size_t n, kvc_csv_more more,
                              void *user, struct kvc_error *err);

/* ---- values; errors name the column and show what is in it ---- */

static inline struct kvc_span kvc_csv_get(const struct kvc_csv *csv, size_t column)
{
    return column == KVC_CSV_NONE ? (struct kvc_span){ 0 } : csv->field[column];
}

/* Nothing there, or a word that says so: null, none, nan, \N. */
bool kvc_csv_absent(const struct kvc_csv *csv, size_t column);
enum kvc_status kvc_csv_wrong(const struct kvc_csv *csv, size_t column, const char *rule,
                              struct kvc_error *err);
/* A count of tokens, least 0 or 1, "128" or "128.0"; absent is an error. */
enum kvc_status kvc_csv_tokens(const struct kvc_csv *csv, size_t column, uint64_t least,
                               uint32_t *out, struct kvc_error *err);
/* A whole number from 0 on; *given false (and *out 0) when absent. */
enum kvc_status kvc_csv_u64(const struct kvc_csv *csv, size_t column, bool *given, uint64_t *out,
                            struct kvc_error *err);
enum kvc_status kvc_csv_double(const struct kvc_csv *csv, size_t column, bool *given, double *out,
                               struct kvc_error *err);
/* A point of time, as kvc_import_time; absent is an error. */
enum kvc_status kvc_csv_time(const struct kvc_csv *csv, struct kvc_import *im, size_t column,
                             enum kvc_time_unit usual, uint64_t *ns, struct kvc_error *err);

#endif
