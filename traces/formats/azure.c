/* SPDX-License-Identifier: Apache-2.0
 * Azure's public traces (Azure/AzurePublicDataset): TIMESTAMP,ContextTokens,GeneratedTokens, with
 * NumImages in that of 2025. Lengths and arrivals only. */
#include "base/error.h"
#include "traces/parse/csv_rows.h"
#include "traces/parse/scan.h"

#include <string.h>

/* ---- the fast reader: proves a row plain and right, or leaves it to the careful one ---- */

struct plain_row {
    struct kvc_length_row lengths; /* time since 1970 */
    uint32_t images;
};

/* "YYYY-MM-DD HH:MM:" of the last row, as the next is mostly of the same; all zero at first. */
struct minute {
    char text[17];
    uint64_t ns;
};

#define ROW_MOST 128 /* bytes from text on that may be read, whatever they hold */

/* Up to seven digits behind the point. */
static bool fraction(const char **pp, uint64_t *ns)
{
    static const uint32_t unit[] = { 0, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100 };
    uint64_t value;
    unsigned n = kvc_scan_eight(*pp, &value);
    if (n == 0 || n == 8)
        return false;
    *pp += n;
    *ns = value * unit[n];
    return true;
}

static bool new_minute(struct minute *minute, const char *text)
{
    char begin[19] = "....-..-.. ..:..:00";
    memcpy(begin, text, 17);
    if (!kvc_time_from_date(begin, sizeof(begin), &minute->ns))
        return false;
    memcpy(minute->text, text, sizeof(minute->text));
    return true;
}

/* Bytes of the row that text begins with, without its newline or carriage return; 0: not sure. */
static size_t scan(struct minute *minute, bool images, const char *text, struct plain_row *row)
{
    struct kvc_length_row *l = &row->lengths;
    const char *p = text + 19;
    unsigned tens = (unsigned)(unsigned char)text[17] - '0';
    unsigned ones = (unsigned)(unsigned char)text[18] - '0';
    uint64_t part = 0;
    if ((memcmp(text, minute->text, sizeof(minute->text)) != 0 && !new_minute(minute, text)) ||
        tens > 5 || ones > 9)
        return 0;
    if (*p == '.') {
        p++;
        if (!fraction(&p, &part))
            return 0;
    }
    if (memcmp(p, "+00:00", 6) == 0)
        p += 6;
    l->time_ns = minute->ns + (tens * 10 + ones) * (uint64_t)1000000000 + part;
    row->images = 0;
    if (*p++ != ',' || (images && (!kvc_scan_count(&p, &row->images) || *p++ != ',')) ||
        !kvc_scan_count(&p, &l->input_tokens) || !l->input_tokens || *p++ != ',' ||
        !kvc_scan_count(&p, &l->output_tokens))
        return 0;
    return *p == '\n' || (*p == '\r' && p[1] == '\n') ? (size_t)(p - text) : 0;
}

/* ---- the careful reader ---- */

struct reader {
    struct kvc_csv csv;
    size_t time, images, input, output; /* columns */
    bool plain; /* the header is one of the known ones */
    struct minute minute;
    uint64_t with_images;
};

static enum kvc_status find_columns(struct reader *r, struct kvc_error *err)
{
    const struct kvc_csv *c = &r->csv;
    enum kvc_status status = kvc_csv_column(c, "TIMESTAMP", true, &r->time, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "ContextTokens", true, &r->input, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "GeneratedTokens", true, &r->output, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "NumImages", false, &r->images, err);
    size_t shift = r->images != KVC_CSV_NONE;
    r->plain = c->delimiter == ',' && c->n_columns == 3 + shift && r->time == 0 &&
               r->input == 1 + shift && r->output == 2 + shift;
    return status;
}

static enum kvc_status read_row(struct reader *r, struct kvc_import *im, struct plain_row *row,
                                struct kvc_error *err)
{
    const struct kvc_csv *c = &r->csv;
    uint64_t images = 0;
    bool given;
    enum kvc_status status = kvc_csv_time(c, im, r->time, KVC_UNIT_S, &row->lengths.time_ns, err);
    if (status == KVC_OK && r->images != KVC_CSV_NONE)
        status = kvc_csv_u64(c, r->images, &given, &images, err);
    if (status == KVC_OK && images > KVC_TOKENS_MAX)
        status = kvc_csv_wrong(c, r->images, "a number of images below 2^31 is expected", err);
    row->images = (uint32_t)images;
    if (status == KVC_OK)
        status = kvc_csv_tokens(c, r->input, 0, &row->lengths.input_tokens, err);
    if (status == KVC_OK)
        status = kvc_csv_tokens(c, r->output, 0, &row->lengths.output_tokens, err);
    return status;
}

static enum kvc_status hand_on(struct reader *r, struct kvc_import *im, const struct plain_row *row,
                               bool odd, struct kvc_error *err)
{
    r->with_images += row->images > 0;
    if (!row->lengths.input_tokens) {
        kvc_import_tally(im, "no context token; left out");
        return KVC_OK;
    }
    return kvc_import_lengths(im, &row->lengths, odd, err);
}

static enum kvc_status compare(struct reader *r, struct kvc_import *im, const char *text, size_t n,
                               const struct plain_row *fast, struct kvc_error *err)
{
    struct plain_row row;
    r->csv.line = kvc_import_line_number(im);
    enum kvc_status status = kvc_csv_split(&r->csv, text, n, NULL, NULL, err);
    if (status == KVC_OK)
        status = read_row(r, im, &row, err);
    if (status != KVC_OK)
        return status;
    const struct kvc_length_row *a = &fast->lengths, *b = &row.lengths;
    const char *field = a->time_ns != b->time_ns               ? "TIMESTAMP"
                        : fast->images != row.images           ? "NumImages"
                        : a->input_tokens != b->input_tokens   ? "ContextTokens"
                        : a->output_tokens != b->output_tokens ? "GeneratedTokens"
                                                               : NULL;
    if (!field)
        return KVC_OK;
    return kvc_fail_at(err, KVC_ERR_INTERNAL, kvc_import_file(im), r->csv.line, field,
                       "the two readers of this format differ here; please report this row");
}

static enum kvc_status careful(struct reader *r, struct kvc_import *im, const char *text, size_t n,
                               struct kvc_error *err)
{
    struct plain_row row;
    struct kvc_error bad;
    bool taken;
    enum kvc_status status = kvc_csv_take(&r->csv, im, text, n, &taken, err);
    if (status != KVC_OK || !taken)
        return status;
    if (read_row(r, im, &row, &bad) != KVC_OK)
        return kvc_import_bad(im, &bad, err);
    return hand_on(r, im, &row, true, err);
}

static void say_what_is_missing(const struct reader *r, struct kvc_import *im)
{
    kvc_import_note(im, "azure logs hold no session, no prompt and no block id: reuse is unknown");
    if (r->images != KVC_CSV_NONE)
        kvc_import_tally_rows(im, "with images; ContextTokens is taken as it stands, the log does "
                              "not say whether it counts what the images cost", r->with_images);
}

/* The rows that lie in memory, as long as they are plain, some at a time: on its own each would
 * cost more in calls than in reading. */
static enum kvc_status read_plain(struct reader *r, struct kvc_import *im, struct kvc_error *err)
{
    struct kvc_length_row rows[64];
    const size_t most = sizeof(rows) / sizeof(rows[0]);
    bool images = r->images != KVC_CSV_NONE;
    enum kvc_status status = KVC_OK;
    size_t n;
    do {
        const char *text;
        size_t ahead = kvc_import_ahead(im, &text), at = 0, length;
        struct plain_row row;
        for (n = 0; n < most && ahead - at >= ROW_MOST &&
                    (length = scan(&r->minute, images, text + at, &row)) > 0; n++) {
            at += length + (text[at + length] == '\r' ? 2 : 1);
            rows[n] = row.lengths;
            r->with_images += row.images > 0;
        }
        status = kvc_import_lengths_ahead(im, rows, n, at, err);
    } while (status == KVC_OK && n == most);
    return status;
}

static enum kvc_status one_line(struct reader *r, struct kvc_import *im, const char *text,
                                size_t n, struct kvc_error *err)
{
    struct plain_row row;
    enum kvc_status status = KVC_OK;
    if (!r->plain || scan(&r->minute, r->images != KVC_CSV_NONE, text, &row) != n)
        return careful(r, im, text, n, err);
    if (kvc_import_compares(im))
        status = compare(r, im, text, n, &row, err);
    return status == KVC_OK ? hand_on(r, im, &row, false, err) : status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { 0 };
    const char *text = "";
    size_t n;
    enum kvc_status status = kvc_csv_open(&r.csv, im, err);
    if (status == KVC_OK)
        status = find_columns(&r, err);
    while (status == KVC_OK && text) {
        if (r.plain && !kvc_import_compares(im))
            status = read_plain(&r, im, err);
        if (status == KVC_OK && (status = kvc_import_line(im, &text, &n, err)) == KVC_OK && text)
            status = one_line(&r, im, text, n, err);
    }
    if (status == KVC_OK)
        say_what_is_missing(&r, im);
    kvc_csv_clear(&r.csv);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    static const char *const columns[] = { "TIMESTAMP", "ContextTokens", "GeneratedTokens", NULL };
    return kvc_csv_sniff(head, n, columns);
}

const struct kvc_format kvc_format_azure = {
    .name = "azure",
    .summary = "Azure LLM traces (CSV): TIMESTAMP, ContextTokens, GeneratedTokens, NumImages",
    .sniff = sniff,
    .read = read_log,
};
