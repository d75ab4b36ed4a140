/* SPDX-License-Identifier: Apache-2.0
 * Azure's public traces (Azure/AzurePublicDataset): TIMESTAMP,ContextTokens,GeneratedTokens, with
 * NumImages in that of 2025. Lengths and arrivals only. */
#include "base/error.h"
#include "traces/parse/csv_rows.h"
#include "traces/parse/scan.h"

#include <string.h>

/* ---- the fast reader: proves that a row is plain and right, or leaves it to the careful one ---- */

struct plain_row {
    uint64_t time_ns; /* since 1970 */
    uint32_t input_tokens, output_tokens, images;
};

struct day { /* of the last row, as the next is mostly of the same; all zero at first */
    char text[11];
    uint64_t ns;
};

#define ROW_MOST 128 /* bytes from text on that may be read, whatever they hold */

/* "HH:MM:SS" in nanoseconds. */
static bool clock_of_day(const char *p, uint64_t *ns)
{
    uint64_t h, m, s;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static const char zero[8] = { '0', '0', ':', '0', '0', ':', '0', '0' };
    uint64_t t, z;
    memcpy(&t, p, 8);
    memcpy(&z, zero, 8);
    t ^= z;
    /* Digits are 0 to 9 now, colons 0; anything else has a high bit in one of the sums. */
    if ((((t + 0x7676767676767676u) | t) & 0x8080808080808080u) || (t & 0x0000ff0000ff0000u))
        return false;
    t = t * 10 + (t >> 8);
    h = t & 0xff;
    m = (t >> 24) & 0xff;
    s = (t >> 48) & 0xff;
#else
    for (int i = 0; i < 8; i++)
        if (i % 3 == 2 ? p[i] != ':' : p[i] < '0' || p[i] > '9')
            return false;
    h = (uint64_t)((p[0] - '0') * 10 + p[1] - '0');
    m = (uint64_t)((p[3] - '0') * 10 + p[4] - '0');
    s = (uint64_t)((p[6] - '0') * 10 + p[7] - '0');
#endif
    *ns = (h * 3600 + m * 60 + s) * 1000000000;
    return h < 24 && m < 60 && s < 60;
}

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

static bool new_day(struct day *day, const char *text)
{
    char midnight[19] = "....-..-.. 00:00:00";
    memcpy(midnight, text, 11);
    if (!kvc_time_from_date(midnight, sizeof(midnight), &day->ns))
        return false;
    memcpy(day->text, text, sizeof(day->text));
    return true;
}

/* Bytes of the row that text begins with, without its newline or carriage return; 0: not sure. */
static size_t scan(struct day *day, bool images, const char *text, struct plain_row *row)
{
    const char *p = text + 19;
    uint64_t clock, part = 0;
    if ((memcmp(text, day->text, sizeof(day->text)) != 0 && !new_day(day, text)) ||
        !clock_of_day(text + 11, &clock))
        return 0;
    if (*p == '.') {
        p++;
        if (!fraction(&p, &part))
            return 0;
    }
    if (memcmp(p, "+00:00", 6) == 0)
        p += 6;
    row->time_ns = day->ns + clock + part;
    row->images = 0;
    if (*p++ != ',' || (images && (!kvc_scan_count(&p, &row->images) || *p++ != ',')) ||
        !kvc_scan_count(&p, &row->input_tokens) || !row->input_tokens || *p++ != ',' ||
        !kvc_scan_count(&p, &row->output_tokens))
        return 0;
    return *p == '\n' || (*p == '\r' && p[1] == '\n') ? (size_t)(p - text) : 0;
}

/* ---- the careful reader ---- */

struct reader {
    struct kvc_csv csv;
    size_t time, images, input, output; /* columns */
    bool plain; /* the header is one of the known ones */
    struct day day;
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
    enum kvc_status status = kvc_csv_time(c, im, r->time, KVC_UNIT_S, &row->time_ns, err);
    if (status == KVC_OK && r->images != KVC_CSV_NONE)
        status = kvc_csv_u64(c, r->images, &given, &images, err);
    if (status == KVC_OK && images > KVC_TOKENS_MAX)
        status = kvc_csv_wrong(c, r->images, "a number of images below 2^31 is expected", err);
    row->images = (uint32_t)images;
    if (status == KVC_OK)
        status = kvc_csv_tokens(c, r->input, 0, &row->input_tokens, err);
    if (status == KVC_OK)
        status = kvc_csv_tokens(c, r->output, 0, &row->output_tokens, err);
    return status;
}

static enum kvc_status hand_on(struct reader *r, struct kvc_import *im,
                               const struct plain_row *a, bool odd, struct kvc_error *err)
{
    r->with_images += a->images > 0;
    if (!a->input_tokens) {
        kvc_import_tally(im, "no context token; left out");
        return KVC_OK;
    }
    return kvc_import_lengths(im, a->time_ns, a->input_tokens, a->output_tokens, odd, err);
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
    const char *field = fast->time_ns != row.time_ns               ? "TIMESTAMP"
                        : fast->images != row.images               ? "NumImages"
                        : fast->input_tokens != row.input_tokens   ? "ContextTokens"
                        : fast->output_tokens != row.output_tokens ? "GeneratedTokens"
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

/* The rows that lie in memory, as long as they are plain. */
static enum kvc_status read_plain(struct reader *r, struct kvc_import *im, struct kvc_error *err)
{
    const char *text;
    struct plain_row row;
    size_t n = kvc_import_ahead(im, &text), at = 0, length;
    enum kvc_status status = KVC_OK;
    bool images = r->images != KVC_CSV_NONE;
    while (status == KVC_OK && n - at >= ROW_MOST &&
           (length = scan(&r->day, images, text + at, &row)) > 0) {
        length += text[at + length] == '\r' ? 2 : 1;
        at += length;
        kvc_import_took_line(im, length);
        status = hand_on(r, im, &row, false, err);
    }
    return status;
}

static enum kvc_status one_line(struct reader *r, struct kvc_import *im, const char *text,
                                size_t n, struct kvc_error *err)
{
    struct plain_row row;
    enum kvc_status status = KVC_OK;
    if (!r->plain || scan(&r->day, r->images != KVC_CSV_NONE, text, &row) != n)
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
