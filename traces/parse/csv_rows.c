/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/csv_rows.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#define NAMES_SHOWN 12

/* ---- the header ---- */

static bool counts_for_nothing(char c)
{
    return c == ' ' || c == '_' || c == '-' || c == '.' || c == '\t';
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* Whether two names of columns are the same: without regard to case, blanks, _ and the like. */
static bool same_name(const char *a, size_t na, const char *b, size_t nb)
{
    size_t i = 0, k = 0;
    for (;;) {
        while (i < na && counts_for_nothing(a[i]))
            i++;
        while (k < nb && counts_for_nothing(b[k]))
            k++;
        if (i == na || k == nb)
            return i == na && k == nb;
        if (lower(a[i++]) != lower(b[k++]))
            return false;
    }
}

static char find_delimiter(const char *text, size_t n)
{
    static const char all[] = { ',', ';', '\t' };
    size_t most = 0;
    char best = ',';
    for (size_t k = 0; k < sizeof(all); k++) {
        size_t count = 0;
        bool quoted = false;
        for (size_t i = 0; i < n; i++) {
            quoted ^= text[i] == '"';
            count += !quoted && text[i] == all[k];
        }
        if (count > most) {
            most = count;
            best = all[k];
        }
    }
    return best;
}

/* An upper bound. */
static size_t count_fields(const char *text, size_t n, char delimiter)
{
    size_t count = 1;
    for (size_t i = 0; i < n; i++)
        count += text[i] == delimiter;
    return count;
}

static size_t byte_order_mark(const char *text, size_t n)
{
    return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

struct splitter {
    size_t n, max; /* fields so far, and those there is room for: more are counted, not kept */
    struct kvc_span *field;
    size_t *at; /* offsets in the unquoted text; SIZE_MAX: no value */
};

enum kvc_status kvc_csv_header(struct kvc_csv *csv, const char *text, size_t n, const char *file,
                               struct kvc_error *err)
{
    size_t mark = byte_order_mark(text, n);
    memset(csv, 0, sizeof(*csv));
    text += mark;
    n -= mark;
    csv->file = file;
    csv->delimiter = find_delimiter(text, n);
    csv->n_columns = count_fields(text, n, csv->delimiter);
    csv->header = kvc_malloc(n + 1, 1);
    csv->name = kvc_calloc(csv->n_columns, sizeof(*csv->name));
    csv->field = kvc_calloc(csv->n_columns, sizeof(*csv->field));
    csv->at = kvc_calloc(csv->n_columns, sizeof(*csv->at));
    if (!csv->header || !csv->name || !csv->field || !csv->at)
        return kvc_fail_nomem(err);
    enum kvc_status status = kvc_csv_split(csv, text, n, NULL, NULL, err);
    if (status != KVC_OK)
        return status;
    size_t used = 0;
    for (size_t i = 0; i < csv->n_columns; i++) {
        if (csv->field[i].n)
            memcpy(csv->header + used, csv->field[i].text, csv->field[i].n);
        csv->name[i] = (struct kvc_span){ csv->header + used, csv->field[i].n };
        used += csv->field[i].n;
    }
    csv->ready = true;
    return KVC_OK;
}

enum kvc_status kvc_csv_open(struct kvc_csv *csv, struct kvc_import *im, struct kvc_error *err)
{
    const char *text;
    size_t n;
    memset(csv, 0, sizeof(*csv));
    do {
        enum kvc_status status = kvc_import_line_within(im, &text, &n, err);
        if (status != KVC_OK)
            return status;
        if (!text)
            return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                               "no header line with the names of columns in it");
    } while (n == byte_order_mark(text, n));
    enum kvc_status status = kvc_csv_header(csv, text, n, kvc_import_file(im), err);
    csv->line = kvc_import_line_number(im);
    csv->hide = kvc_import_options_of(im)->anonymize;
    return status;
}

void kvc_csv_clear(struct kvc_csv *csv)
{
    kvc_free(csv->header);
    kvc_free(csv->name);
    kvc_free(csv->field);
    kvc_free(csv->at);
    kvc_free(csv->buf);
    memset(csv, 0, sizeof(*csv));
}

static enum kvc_status missing_column(const struct kvc_csv *csv, const char *names,
                                      struct kvc_error *err)
{
    char have[200];
    size_t used = 0;
    if (csv->hide)
        return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line, NULL,
                           "no column \"%.*s\" among the %zu of the header",
                           (int)strcspn(names, "|"), names, csv->n_columns);
    for (size_t i = 0; i < csv->n_columns && i < NAMES_SHOWN && used < sizeof(have) - 1; i++)
        used += (size_t)snprintf(have + used, sizeof(have) - used, "%s%.*s", i ? ", " : "",
                                 (int)(csv->name[i].n < 40 ? csv->name[i].n : 40),
                                 csv->name[i].text);
    return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line, NULL,
                       "no column \"%.*s\" in the header; there are: %s%s",
                       (int)strcspn(names, "|"), names, have,
                       csv->n_columns > NAMES_SHOWN ? ", .." : "");
}

enum kvc_status kvc_csv_column(const struct kvc_csv *csv, const char *names, bool needed,
                               size_t *column, struct kvc_error *err)
{
    *column = KVC_CSV_NONE;
    for (const char *name = names; *column == KVC_CSV_NONE; name++) {
        size_t n = strcspn(name, "|");
        for (size_t i = 0; i < csv->n_columns; i++) {
            if (!same_name(csv->name[i].text, csv->name[i].n, name, n))
                continue;
            if (*column != KVC_CSV_NONE)
                return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line, NULL,
                                   "two columns are named \"%.*s\" (number %zu and %zu); take one "
                                   "of them out, or name it otherwise", (int)n, name, *column + 1,
                                   i + 1);
            *column = i;
        }
        name += n;
        if (!*name)
            break;
    }
    return needed && *column == KVC_CSV_NONE ? missing_column(csv, names, err) : KVC_OK;
}

enum kvc_status kvc_csv_tenant(const struct kvc_csv *csv, const struct kvc_import *im,
                               const char *usual, size_t *column, struct kvc_error *err)
{
    const char *names = kvc_import_tenant_field(im, usual);
    if (!names) {
        *column = KVC_CSV_NONE;
        return KVC_OK;
    }
    return kvc_csv_column(csv, names, names != usual, column, err);
}

/* ---- one row ---- */

static void set_field(struct splitter *s, const char *text, size_t n)
{
    if (s->n < s->max)
        s->field[s->n] = (struct kvc_span){ n ? text : NULL, n };
    s->n++;
}

/* A row without a quote, where it lies; false: there is one. */
static bool split_plain(struct splitter *s, const char *text, size_t n, char delimiter)
{
    const char *end = text + n, *first = text;
    for (const char *p = text; p < end; p++) {
        if (*p == delimiter) {
            set_field(s, first, (size_t)(p - first));
            first = p + 1;
        } else if (*p == '"') {
            return false;
        }
    }
    set_field(s, first, (size_t)(end - first));
    return true;
}

static bool append(struct kvc_csv *csv, size_t *n, const char *text, size_t add)
{
    if (!kvc_grow((void **)&csv->buf, &csv->cap, *n + add + 1, 1))
        return false;
    memcpy(csv->buf + *n, text, add);
    *n += add;
    return true;
}

/* The line that follows one in the midst of a quoted field. The carriage return that was taken
 * off at its end belongs to the field, so it comes back from the memory it is still in. */
static enum kvc_status continue_row(struct kvc_csv *csv, size_t *n, bool *carriage,
                                    kvc_csv_more more, void *user, struct kvc_error *err)
{
    const char *text = NULL;
    size_t add = 0;
    struct kvc_error e = { 0 };
    if (*n > KVC_LINE_MAX)
        return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line, NULL,
                           "the quote that opens in this row is not closed within %zu MiB, all "
                           "taken as one field; is a quote missing, or not doubled?",
                           KVC_LINE_MAX >> 20);
    enum kvc_status status = more ? more(user, &text, &add, &e) : KVC_OK;
    if (status != KVC_OK) {
        if (err)
            *err = e;
        return status;
    }
    if (!text)
        return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line, NULL,
                           "the quote that opens in this row is not closed by the end; is a quote "
                           "missing, or not doubled?");
    if ((*carriage && !append(csv, n, "\r", 1)) || !append(csv, n, "\n", 1) ||
        !append(csv, n, text, add))
        return kvc_fail_nomem(err);
    *carriage = text[add] == '\r';
    return KVC_OK;
}

/* The quoted field whose text begins at *r, moved down to *w; *r ends behind its closing quote. */
static enum kvc_status unquote(struct kvc_csv *csv, size_t *n, size_t *r, size_t *w,
                               bool *carriage, kvc_csv_more more, void *user,
                               struct kvc_error *err)
{
    for (;;) {
        const char *from = csv->buf + *r;
        const char *quote = memchr(from, '"', *n - *r);
        size_t len = quote ? (size_t)(quote - from) : *n - *r;
        memmove(csv->buf + *w, from, len);
        *w += len;
        *r += len;
        if (!quote) {
            enum kvc_status status = continue_row(csv, n, carriage, more, user, err);
            if (status != KVC_OK)
                return status;
        } else if (*r + 1 < *n && csv->buf[*r + 1] == '"') {
            csv->buf[(*w)++] = '"';
            *r += 2;
        } else {
            ++*r;
            return KVC_OK;
        }
    }
}

static enum kvc_status split_quoted(struct kvc_csv *csv, struct splitter *s, const char *text,
                                    size_t n, kvc_csv_more more, void *user,
                                    struct kvc_error *err)
{
    size_t filled = 0, r = 0, w = 0;
    bool carriage = more && text[n] == '\r';
    if (!append(csv, &filled, text, n))
        return kvc_fail_nomem(err);
    for (;; r++) {
        size_t first = w;
        bool quoted = r < filled && csv->buf[r] == '"';
        enum kvc_status status = KVC_OK;
        if (quoted) {
            r++;
            status = unquote(csv, &filled, &r, &w, &carriage, more, user, err);
        } else {
            while (r < filled && csv->buf[r] != csv->delimiter)
                csv->buf[w++] = csv->buf[r++];
        }
        if (status != KVC_OK)
            return status;
        if (r < filled && csv->buf[r] != csv->delimiter)
            return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line, NULL,
                               "text behind the closing quote of field %zu; a quote within a "
                               "quoted field must be doubled", s->n + 1);
        if (s->n < s->max) {
            s->at[s->n] = quoted || w > first ? first : SIZE_MAX;
            s->field[s->n].n = w - first;
        }
        s->n++;
        if (r == filled)
            break;
    }
    for (size_t i = 0; i < s->n && i < s->max; i++)
        s->field[i].text = s->at[i] == SIZE_MAX ? NULL : csv->buf + s->at[i];
    return KVC_OK;
}

enum kvc_status kvc_csv_split(struct kvc_csv *csv, const char *text, size_t n, kvc_csv_more more,
                              void *user, struct kvc_error *err)
{
    struct splitter s = { .max = csv->n_columns, .field = csv->field, .at = csv->at };
    enum kvc_status status = KVC_OK;
    if (!split_plain(&s, text, n, csv->delimiter)) {
        s.n = 0;
        status = split_quoted(csv, &s, text, n, more, user, err);
    }
    if (status != KVC_OK)
        return status;
    if (!csv->ready) {
        csv->n_columns = s.n;
        return KVC_OK;
    }
    if (s.n == csv->n_columns)
        return KVC_OK;
    return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line, NULL,
                       "%zu field%s, where the header names %zu columns", s.n,
                       s.n == 1 ? "" : "s", csv->n_columns);
}

/* ---- rows of a file ---- */

static enum kvc_status more_of_file(void *user, const char **text, size_t *n,
                                    struct kvc_error *err)
{
    return kvc_import_line_within(user, text, n, err);
}

static bool is_header(const struct kvc_csv *csv)
{
    for (size_t i = 0; i < csv->n_columns; i++)
        if (csv->field[i].n != csv->name[i].n ||
            (csv->field[i].n && memcmp(csv->field[i].text, csv->name[i].text, csv->name[i].n)))
            return false;
    return true;
}

enum kvc_status kvc_csv_take(struct kvc_csv *csv, struct kvc_import *im, const char *text,
                             size_t n, bool *taken, struct kvc_error *err)
{
    struct kvc_error bad;
    *taken = false;
    csv->line = kvc_import_line_number(im);
    enum kvc_status status = kvc_csv_split(csv, text, n, more_of_file, im, &bad);
    if (status == KVC_ERR_INPUT)
        return kvc_import_bad(im, &bad, err);
    if (status != KVC_OK) {
        if (err)
            *err = bad;
        return status;
    }
    if (is_header(csv)) {
        kvc_import_tally(im, "a header that comes again, not a request");
        return KVC_OK;
    }
    *taken = true;
    return KVC_OK;
}

enum kvc_status kvc_csv_next(struct kvc_csv *csv, struct kvc_import *im, bool *more,
                             struct kvc_error *err)
{
    *more = false;
    for (;;) {
        const char *text;
        size_t n;
        enum kvc_status status = kvc_import_line(im, &text, &n, err);
        if (status != KVC_OK || !text)
            return status;
        status = kvc_csv_take(csv, im, text, n, more, err);
        if (status != KVC_OK || *more)
            return status;
    }
}

bool kvc_csv_sniff(const char *head, size_t n, const char *const *columns)
{
    struct kvc_csv csv = { 0 };
    size_t column, i = byte_order_mark(head, n);
    while (i < n && (head[i] == ' ' || head[i] == '\r' || head[i] == '\n'))
        i++;
    const char *newline = memchr(head + i, '\n', n - i);
    size_t length = newline ? (size_t)(newline - head) - i : n - i;
    if (length && head[i + length - 1] == '\r')
        length--;
    bool found = length && head[i] != '{' && head[i] != '[' &&
                 kvc_csv_header(&csv, head + i, length, "", NULL) == KVC_OK;
    for (; found && *columns; columns++)
        found = kvc_csv_column(&csv, *columns, true, &column, NULL) == KVC_OK;
    kvc_csv_clear(&csv);
    return found;
}
