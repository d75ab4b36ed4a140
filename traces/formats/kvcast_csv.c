/* SPDX-License-Identifier: Apache-2.0
 * Reads kvcast's own CSV, as export writes it. */
#include "traces/formats/kvcast_csv.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/import/import.h"

#include <stdio.h>
#include <string.h>

enum column { ARRIVAL, SESSION, THINK, TENANT, MODEL, STATUS, INPUT, OUTPUT, CACHED, BLOCK, IDS,
              OUTPUT_IDS };

static const char *const columns[KVC_CSV_COLUMNS] = {
    "arrival_ns", "session", "think_ns", "tenant", "model", "status", "input_tokens",
    "output_tokens", "cached_tokens", "block_tokens", "hash_ids", "output_hash_ids"
};

struct reader {
    struct kvc_import *im;
    char *line; /* a copy, in which quotes are undone */
    size_t cap;
    struct kvc_span field[KVC_CSV_COLUMNS]; /* text NULL: empty */
    struct kvc_id_buffer ids, out;
    struct kvc_error bad;
};

static bool wrong(struct reader *r, const char *column, const char *rule)
{
    kvc_fail_at(&r->bad, KVC_ERR_INPUT, kvc_import_file(r->im), kvc_import_line_number(r->im),
                column, "%s", rule);
    return false;
}

/* A quoted field from its opening quote; the text moves to the left as quotes fall away. */
static char *unquote(char *p, struct kvc_span *out)
{
    char *to = ++p;
    out->text = to;
    for (; *p && !(*p == '"' && p[1] != '"'); p++) {
        p += *p == '"';
        *to++ = *p;
    }
    out->n = (size_t)(to - out->text);
    return *p ? p + 1 : NULL;
}

static bool split(struct reader *r, const char *text, size_t n)
{
    size_t k = 0;
    if (!kvc_grow((void **)&r->line, &r->cap, n + 1, 1)) {
        kvc_fail_nomem(&r->bad);
        return false;
    }
    memcpy(r->line, text, n);
    r->line[n] = '\0';
    if (strlen(r->line) != n)
        return wrong(r, NULL, "a NUL byte within the row");
    for (char *p = r->line;; p++) {
        struct kvc_span f = { p, 0 };
        if (k == KVC_CSV_COLUMNS)
            return wrong(r, NULL, "more than the 12 columns of the header");
        if (*p == '"') {
            if (!(p = unquote(p, &f)))
                return wrong(r, columns[k], "a quote is never closed");
            if (*p && *p != ',')
                return wrong(r, columns[k], "text behind a closing quote");
        } else {
            p += strcspn(p, ",");
            f.n = (size_t)(p - f.text);
            f.text = f.n ? f.text : NULL;
        }
        r->field[k++] = f;
        if (!*p)
            break;
    }
    return k == KVC_CSV_COLUMNS || wrong(r, NULL, "fewer than the 12 columns of the header");
}

/* Digits from *pp on, below 2^64. */
static bool digits(const char **pp, const char *end, uint64_t *out)
{
    const char *p = *pp;
    uint64_t v = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        uint64_t d = (uint64_t)(*p - '0');
        if (v > (UINT64_MAX - d) / 10)
            return false;
        v = v * 10 + d;
    }
    bool any = p > *pp;
    *pp = p;
    *out = v;
    return any;
}

static bool number(struct reader *r, enum column c, uint64_t most, bool needed, uint64_t *out)
{
    const struct kvc_span *f = &r->field[c];
    const char *p = f->text;
    if (!p)
        return !needed || wrong(r, columns[c], "missing");
    if (digits(&p, f->text + f->n, out) && p == f->text + f->n && *out <= most)
        return true;
    char rule[96];
    snprintf(rule, sizeof(rule), "a whole number from 0 to %llu is expected",
             (unsigned long long)most);
    return wrong(r, columns[c], rule);
}

static bool ids(struct reader *r, enum column c, struct kvc_id_buffer *buffer, size_t from,
                size_t *n)
{
    const struct kvc_span *f = &r->field[c];
    *n = from;
    if (!f->text)
        return true;
    if (!kvc_grow((void **)&buffer->v, &buffer->cap, from + f->n / 2 + 1, sizeof(*buffer->v))) {
        kvc_fail_nomem(&r->bad);
        return false;
    }
    for (const char *p = f->text, *end = p + f->n; p < end; p++)
        if (!digits(&p, end, &buffer->v[(*n)++]) || (p < end && (*p != ' ' || p + 1 == end)))
            return wrong(r, columns[c], "block ids with one space between are expected");
    return true;
}

static bool status(struct reader *r, struct kvc_log_row *row)
{
    static const char *const names[] = { "ok", "failed", "cancelled" };
    const struct kvc_span *f = &r->field[STATUS];
    for (uint8_t i = 0; i < 3; i++) {
        if (f->n == strlen(names[i]) && memcmp(f->text, names[i], f->n) == 0) {
            row->status = i;
            return true;
        }
    }
    return wrong(r, columns[STATUS], "ok, failed or cancelled is expected");
}

static bool convert(struct reader *r, struct kvc_log_row *row, uint64_t *block)
{
    uint64_t in = 0, out = KVC_TOKENS_UNKNOWN, cached = UINT64_MAX, time = 0, think = KVC_TIME_NONE;
    size_t n;
    *row = (struct kvc_log_row){ .session = r->field[SESSION], .tenant = r->field[TENANT],
                                 .model = r->field[MODEL] };
    *block = 0;
    if (!number(r, ARRIVAL, KVC_LOG_TIME_MAX - 1, true, &time) ||
        !number(r, THINK, KVC_LOG_TIME_MAX - 1, false, &think) || !status(r, row) ||
        !number(r, INPUT, KVC_TOKENS_MAX, true, &in) ||
        !number(r, OUTPUT, KVC_TOKENS_MAX, false, &out) ||
        !number(r, CACHED, in, false, &cached) ||
        !number(r, BLOCK, KVC_TOKENS_MAX, r->field[IDS].n > 0, block) ||
        !ids(r, IDS, &r->ids, 0, &row->n_ids))
        return false;
    if (row->n_ids && !*block)
        return wrong(r, columns[BLOCK], "blocks have at least one token");
    row->time_ns = time;
    row->think_ns = think;
    row->input_tokens = (uint32_t)in;
    row->output_tokens = (uint32_t)out;
    row->cached_stated = cached != UINT64_MAX;
    row->cached_tokens = row->cached_stated ? (uint32_t)cached : 0;
    row->ids = r->ids.v;
    if (!r->field[OUTPUT_IDS].n)
        return true;
    size_t full = *block ? (size_t)(in / *block) : 0;
    full = full < row->n_ids ? full : row->n_ids;
    if (!*block || !ids(r, OUTPUT_IDS, &r->out, full, &n))
        return *block || wrong(r, columns[BLOCK], "missing");
    if (out == KVC_TOKENS_UNKNOWN || n > (in + out) / *block)
        return wrong(r, columns[OUTPUT_IDS], "more full blocks than prompt and answer have");
    if (full)
        memcpy(r->out.v, r->ids.v, full * sizeof(*r->ids.v));
    row->output_ids = r->out.v;
    row->n_output_ids = n;
    return true;
}

static enum kvc_status one_row(struct reader *r, const char *text, size_t n, struct kvc_error *err)
{
    struct kvc_log_row row;
    uint64_t block;
    if (!split(r, text, n) || !convert(r, &row, &block))
        return kvc_import_bad(r->im, &r->bad, err);
    enum kvc_status done = KVC_OK;
    if (block)
        done = kvc_import_block_size(r->im, (uint32_t)block, err);
    return done == KVC_OK ? kvc_import_row(r->im, &row, false, err) : done;
}

static bool is_header(const char *text, size_t n)
{
    return n == sizeof(KVC_CSV_HEADER) - 1 && memcmp(text, KVC_CSV_HEADER, n) == 0;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .im = im };
    const char *text;
    size_t n;
    enum kvc_status done = kvc_import_line_within(im, &text, &n, err);
    if (done == KVC_OK && !(text && is_header(text, n)))
        done = kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), kvc_import_line_number(im),
                           NULL, "the header of kvcast's CSV is expected: %s", KVC_CSV_HEADER);
    while (done == KVC_OK && (done = kvc_import_line(im, &text, &n, err)) == KVC_OK && text)
        done = one_row(&r, text, n, err);
    kvc_free(r.line);
    kvc_free(r.ids.v);
    kvc_free(r.out.v);
    return done;
}

static bool sniff(const char *head, size_t n)
{
    size_t len = sizeof(KVC_CSV_HEADER) - 1;
    return n >= len && memcmp(head, KVC_CSV_HEADER, len) == 0;
}

const struct kvc_format kvc_format_kvcast_csv = {
    .name = "kvcast-csv",
    .summary = "kvcast's own CSV, as export writes it",
    .block_tokens = 512,
    .sniff = sniff,
    .read = read_log,
};
