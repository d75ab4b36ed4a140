/* SPDX-License-Identifier: Apache-2.0
 * CSV traces as libCacheSim reads them: one reference to an object a row. Columns are found by the
 * names of a header, which may stand behind a '#', or are told by number. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "traces/import/recent.h"
#include "traces/parse/csv_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_NAMES "time|timestamp|clocktime|realtime|ts"
#define ID_NAMES "objid|objectid|obj|object|key|id|cachekey"
#define SIZE_NAMES "objsize|objectsize|size|bytes"

struct kept { /* from file to file */
    struct kvc_recent sizes; /* by object: uint64_t, its bytes when last seen */
    uint64_t least, most;
    bool any;
};

struct reader {
    struct kvc_import *im;
    struct kvc_csv csv;
    size_t time, id, size;
    enum kvc_time_unit unit;
    char *header; /* as the file has it, without the '#' */
    struct kept *kept;
};

/* ---- columns ---- */

struct pair { /* of --csv-columns */
    char key[24], value[64];
};

static bool next_pair(const char **spec, struct pair *out)
{
    const char *p = *spec;
    int n = (int)strcspn(p, ","), k = (int)strcspn(p, "=");
    k = k < n ? k : n;
    snprintf(out->key, sizeof(out->key), "%.*s", k, p);
    snprintf(out->value, sizeof(out->value), "%.*s", k < n ? n - k - 1 : 0, p + k + (k < n));
    *spec = p + n + (p[n] == ',');
    return n > 0;
}

static bool is_number(const char *text)
{
    return text[0] && !text[strspn(text, "0123456789")];
}

static enum kvc_status told(struct reader *r, const char *value, size_t *column,
                            struct kvc_error *err)
{
    if (!is_number(value))
        return kvc_csv_column(&r->csv, value, true, column, err);
    unsigned long number = strtoul(value, NULL, 10);
    if (number < 1 || number > r->csv.n_columns)
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "csv-columns", "there is no column %s: the "
                           "rows have %zu, counted from 1", value, r->csv.n_columns);
    *column = number - 1;
    return KVC_OK;
}

/* "time=1,id=2,size=3", or libCacheSim's own time-col, obj-id-col, obj-size-col. */
static enum kvc_status told_columns(struct reader *r, const char *spec, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    struct pair p;
    while (status == KVC_OK && next_pair(&spec, &p)) {
        size_t *column = kvc_name_equal(p.key, "time") || kvc_name_equal(p.key, "time-col")
                             ? &r->time
                         : kvc_name_equal(p.key, "id") || kvc_name_equal(p.key, "obj-id-col")
                             ? &r->id
                         : kvc_name_equal(p.key, "size") || kvc_name_equal(p.key, "obj-size-col")
                             ? &r->size
                             : NULL;
        bool passed = kvc_name_equal(p.key, "obj-id-is-num") ||
                      kvc_name_equal(p.key, "has-header");
        if (!p.value[0] || (!column && !passed))
            return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "csv-columns", "\"%s\": time=, id= and "
                               "size= with a column's number or name are expected", p.key);
        if (column)
            status = told(r, p.value, column, err);
    }
    if (status == KVC_OK && r->id == KVC_CSV_NONE)
        status = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "csv-columns",
                             "which column has the object's id? say id=NUMBER");
    return status;
}

/* The unit in brackets behind the time column's name. */
static bool stated_unit(const struct reader *r, enum kvc_time_unit *unit)
{
    const char *p = r->header;
    for (size_t i = 0; i < r->time && p; i++)
        p = strchr(p, r->csv.delimiter) ? strchr(p, r->csv.delimiter) + 1 : NULL;
    if (!p)
        return false;
    size_t n = 0;
    while (p[n] && p[n] != r->csv.delimiter)
        n++;
    const char *open = memchr(p, '(', n);
    if (!open)
        return false;
    char word[8] = "";
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(open + 1, ")"), open + 1);
    if (kvc_name_equal(word, "sec") || kvc_name_equal(word, "second"))
        strcpy(word, "s");
    return kvc_time_unit_named(word, unit);
}

static void find_unit(struct reader *r)
{
    bool given = kvc_import_options_of(r->im)->time_unit != NULL;
    enum kvc_time_unit stated = KVC_UNIT_S;
    bool known = r->time != KVC_CSV_NONE && stated_unit(r, &stated);
    r->unit = kvc_import_time_unit(r->im, stated);
    if (r->time == KVC_CSV_NONE)
        kvc_import_note(r->im, "no column of times: references are taken as one second apart");
    else if (!given && !known)
        kvc_import_note(r->im, "times taken as seconds, as libCacheSim does; --time-unit says "
                        "otherwise");
}

/* ---- the header ---- */

/* The header without what stands in brackets, for finding columns. */
static void drop_brackets(const char *from, char *to)
{
    for (int depth = 0; *from; from++) {
        depth += *from == '(';
        if (!depth)
            *to++ = *from;
        depth -= *from == ')' && depth;
    }
    *to = '\0';
}

static bool names_objects(const char *head, size_t n)
{
    static const char *const needed[] = { ID_NAMES, NULL };
    static const char *const beside[] = { TIME_NAMES "|" SIZE_NAMES, NULL };
    return kvc_csv_sniff(head, n, needed) && kvc_csv_sniff(head, n, beside);
}

/* Columns told by name, or has-header, tell that there is one. */
static bool header_told(const char *spec)
{
    struct pair p;
    while (spec && next_pair(&spec, &p)) {
        bool names = kvc_name_equal(p.key, "has-header") || kvc_name_equal(p.key, "obj-id-is-num");
        if (names ? kvc_name_equal(p.key, "has-header") && (kvc_name_equal(p.value, "true") ||
                                                            kvc_name_equal(p.value, "1"))
                  : !is_number(p.value))
            return true;
    }
    return false;
}

/* A header line of its own, behind a '#' or not, as text to be freed; NULL: no header. */
static bool take_header(const char *text, size_t n, bool told, char **out)
{
    size_t i = 0;
    *out = NULL;
    while (i < n && (text[i] == ' ' || text[i] == '\t'))
        i++;
    bool hash = i < n && text[i] == '#';
    char *whole = kvc_malloc(n + 2, 1), *bare = kvc_malloc(n + 2, 1);
    if (whole && bare) {
        i += hash;
        memcpy(whole, text + i, n - i);
        whole[n - i] = '\0';
        drop_brackets(whole, bare);
        strcat(bare, "\n");
        if (hash || told || names_objects(bare, strlen(bare)))
            *out = whole;
    }
    bool ok = whole && bare;
    kvc_free(bare);
    if (!*out)
        kvc_free(whole);
    return ok;
}

/* Names of columns by number, for rows that have no header. */
static char *numbers(const char *text, size_t n, const char *delimiters)
{
    size_t count = 1;
    char delimiter = ',';
    for (const char *d = delimiters; *d; d++) {
        size_t k = 1;
        for (size_t i = 0; i < n; i++)
            k += text[i] == *d;
        if (k > count) {
            count = k;
            delimiter = *d;
        }
    }
    char *out = kvc_malloc(count, 12), *p = out;
    for (size_t i = 1; out && i <= count; i++)
        p += sprintf(p, "%zu%c", i, i < count ? delimiter : '\0');
    return out;
}

static enum kvc_status find_columns(struct reader *r, const char *names, struct kvc_error *err)
{
    const char *spec = kvc_import_options_of(r->im)->csv_columns;
    enum kvc_status status = kvc_csv_header(&r->csv, names, strlen(names), kvc_import_file(r->im),
                                            err);
    r->csv.hide = kvc_import_options_of(r->im)->anonymize;
    r->time = r->id = r->size = KVC_CSV_NONE;
    if (status != KVC_OK)
        return status;
    if (spec)
        return told_columns(r, spec, err);
    status = kvc_csv_column(&r->csv, ID_NAMES, true, &r->id, err);
    if (status == KVC_OK)
        status = kvc_csv_column(&r->csv, TIME_NAMES, false, &r->time, err);
    if (status == KVC_OK)
        status = kvc_csv_column(&r->csv, SIZE_NAMES, false, &r->size, err);
    return status;
}

/* ---- rows ---- */

static enum kvc_status note_size(struct reader *r, const struct kvc_span *name, uint64_t bytes,
                                 struct kvc_error *err)
{
    struct kept *k = r->kept;
    bool fresh;
    uint64_t *before = kvc_recent_get(&k->sizes, name->text, name->n, &fresh);
    if (!before)
        return kvc_fail_nomem(err);
    if (!fresh && *before != bytes)
        kvc_import_tally(r->im, "the object has another size than before");
    *before = bytes;
    k->least = !k->any || bytes < k->least ? bytes : k->least;
    k->most = bytes > k->most ? bytes : k->most;
    k->any = true;
    return KVC_OK;
}

static enum kvc_status one_row(struct reader *r, uint64_t number, struct kvc_error *err)
{
    struct kvc_error bad;
    struct kvc_span name = kvc_csv_get(&r->csv, r->id);
    uint64_t id, bytes = 0;
    bool sized = false;
    struct kvc_log_row row = { .time_ns = number * KVC_UNIT_S, .think_ns = KVC_TIME_NONE,
                               .input_tokens = 1, .ids = &id, .n_ids = 1, .text_ids = true };
    enum kvc_status status = KVC_OK;
    if (!name.n)
        status = kvc_csv_wrong(&r->csv, r->id, "an object's id is expected", &bad);
    if (status == KVC_OK && r->time != KVC_CSV_NONE)
        status = kvc_csv_time(&r->csv, r->im, r->time, r->unit, &row.time_ns, &bad);
    if (status == KVC_OK && r->size != KVC_CSV_NONE)
        status = kvc_csv_u64(&r->csv, r->size, &sized, &bytes, &bad);
    if (status != KVC_OK)
        return kvc_import_bad(r->im, &bad, err);
    id = kvc_import_text_id(name.text, name.n);
    if (sized)
        status = note_size(r, &name, bytes, err);
    return status == KVC_OK ? kvc_import_row(r->im, &row, false, err) : status;
}

static enum kvc_status read_rows(struct reader *r, const char *first, size_t n,
                                 struct kvc_error *err)
{
    bool taken = first != NULL, more = true;
    uint64_t number = 0;
    enum kvc_status status = KVC_OK;
    if (first) {
        kvc_import_begin_row(r->im, kvc_import_line_number(r->im), "");
        status = kvc_csv_take(&r->csv, r->im, first, n, &taken, err);
    }
    while (status == KVC_OK && more) {
        if (taken)
            status = one_row(r, number++, err);
        if (status == KVC_OK)
            status = kvc_csv_next(&r->csv, r->im, &more, err);
        taken = more;
    }
    return status;
}

static bool blank(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r'))
        i++;
    return i == n;
}

static enum kvc_status read_file(struct reader *r, struct kvc_error *err)
{
    const char *text;
    size_t n;
    enum kvc_status status;
    do
        status = kvc_import_line_within(r->im, &text, &n, err);
    while (status == KVC_OK && text && blank(text, n));
    if (status != KVC_OK || !text)
        return status;
    if (!take_header(text, n, header_told(kvc_import_options_of(r->im)->csv_columns), &r->header))
        return kvc_fail_nomem(err);
    bool header = r->header != NULL;
    if (!header && !kvc_import_options_of(r->im)->csv_columns)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(r->im),
                           kvc_import_line_number(r->im), NULL, "no header with the names of "
                           "columns (such as time, obj_id, obj_size); tell them with "
                           "--csv-columns time=1,id=2,size=3");
    char *names = header ? kvc_malloc(strlen(r->header) + 1, 1) : numbers(text, n, ",;\t");
    if (!names)
        return kvc_fail_nomem(err);
    if (header)
        drop_brackets(r->header, names);
    status = find_columns(r, names, err);
    kvc_free(names);
    if (status == KVC_OK) {
        find_unit(r);
        status = read_rows(r, header ? NULL : text, n, err);
    }
    return status;
}

static void clear_kept(void *kept)
{
    kvc_recent_clear(&((struct kept *)kept)->sizes);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .im = im, .kept = kvc_import_keep(im, sizeof(*r.kept), clear_kept) };
    if (!r.kept)
        return kvc_fail_nomem(err);
    if (!r.kept->sizes.clock)
        kvc_import_recent(im, &r.kept->sizes, sizeof(uint64_t));
    if (kvc_import_options_of(im)->block_tokens > 1)
        return kvc_fail(err, KVC_ERR_USAGE, "the log's objects have no tokens: leave out "
                        "--block-tokens");
    enum kvc_status status = kvc_import_block_size(im, 1, err);
    if (status == KVC_OK)
        status = read_file(&r, err);
    kvc_csv_clear(&r.csv);
    kvc_free(r.header);
    return status;
}

static enum kvc_status end(struct kvc_import *im, struct kvc_error *err)
{
    const struct kept *k = kvc_import_kept(im);
    (void)err;
    kvc_import_note(im, "an object counts as one block, whatever its size, and a reference as a "
                    "request for it: hit rates of objects are known, of tokens not");
    if (k && k->any && k->least < k->most)
        kvc_import_note(im, "object sizes from %llu to %llu bytes are not used",
                        (unsigned long long)k->least, (unsigned long long)k->most);
    return KVC_OK;
}

static bool sniff(const char *head, size_t n)
{
    const char *line = memchr(head, '\n', n);
    char *header = NULL;
    size_t len = line ? (size_t)(line - head) : n;
    if (len > 4096 || !take_header(head, len, false, &header) || !header)
        return false;
    char bare[4200];
    drop_brackets(header, bare);
    strcat(bare, "\n");
    kvc_free(header);
    /* "id" alone is anyone's; the other names of objects are this format's own. */
    static const char *const own[] = { "objid|objectid|cachekey", NULL };
    return names_objects(bare, strlen(bare)) && kvc_csv_sniff(bare, strlen(bare), own);
}

const struct kvc_format kvc_format_libcachesim = {
    .name = "libcachesim",
    .summary = "CSV of references to objects, as libCacheSim reads it: time, id, size",
    .block_tokens = 1,
    .objects = true,
    .sniff = sniff,
    .read = read_log,
    .end = end,
};
