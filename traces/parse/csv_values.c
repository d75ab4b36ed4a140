/* SPDX-License-Identifier: Apache-2.0
 * Values in the fields of a CSV row. */
#include "traces/parse/csv_rows.h"

#include "base/decimal.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Without the spaces around it. */
static struct kvc_span trimmed(const struct kvc_csv *csv, size_t column)
{
    struct kvc_span s = kvc_csv_get(csv, column);
    while (s.n && (*s.text == ' ' || *s.text == '\t')) {
        s.text++;
        s.n--;
    }
    while (s.n && (s.text[s.n - 1] == ' ' || s.text[s.n - 1] == '\t'))
        s.n--;
    return s;
}

bool kvc_csv_absent(const struct kvc_csv *csv, size_t column)
{
    static const char *const words[] = { "null", "none", "nan", "\\n" };
    struct kvc_span s = trimmed(csv, column);
    bool absent = s.n == 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        absent = absent || (s.n == strlen(words[i]) && strncasecmp(s.text, words[i], s.n) == 0);
    return absent;
}

static const char *column_name(const struct kvc_csv *csv, size_t column, char name[64])
{
    const struct kvc_span *s = &csv->name[column];
    snprintf(name, 64, "%.*s", (int)(s->n < 63 ? s->n : 63), s->text);
    return name;
}

enum kvc_status kvc_csv_wrong(const struct kvc_csv *csv, size_t column, const char *rule,
                              struct kvc_error *err)
{
    char name[64];
    const struct kvc_span *s = &csv->field[column];
    if (kvc_csv_absent(csv, column))
        return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line,
                           column_name(csv, column, name), "empty: %s", rule);
    return kvc_fail_at(err, KVC_ERR_INPUT, csv->file, csv->line, column_name(csv, column, name),
                       "\"%.*s\" is wrong: %s", (int)(s->n < 40 ? s->n : 40), s->text, rule);
}

/* A whole number however it is written; pandas makes 128.0 of 128 when a column has gaps. */
static bool whole(struct kvc_span s, uint64_t *out)
{
    struct kvc_decimal d;
    bool exact;
    return s.n && kvc_decimal_parse(s.text, s.n, &d) == s.n && (!d.negative || !d.digits) &&
           kvc_decimal_scale(&d, 1, out, &exact) && exact;
}

enum kvc_status kvc_csv_tokens(const struct kvc_csv *csv, size_t column, uint64_t least,
                               uint32_t *out, struct kvc_error *err)
{
    uint64_t n;
    if (!whole(trimmed(csv, column), &n) || n < least || n > KVC_TOKENS_MAX)
        return kvc_csv_wrong(csv, column,
                             least ? "a whole number of tokens from 1 to 2^31-1 is expected"
                                   : "a whole number of tokens from 0 to 2^31-1 is expected", err);
    *out = (uint32_t)n;
    return KVC_OK;
}

enum kvc_status kvc_csv_u64(const struct kvc_csv *csv, size_t column, bool *given, uint64_t *out,
                            struct kvc_error *err)
{
    *out = 0;
    *given = !kvc_csv_absent(csv, column);
    if (!*given || whole(trimmed(csv, column), out))
        return KVC_OK;
    return kvc_csv_wrong(csv, column, "a whole number, 0 or more, is expected", err);
}

enum kvc_status kvc_csv_double(const struct kvc_csv *csv, size_t column, bool *given, double *out,
                               struct kvc_error *err)
{
    struct kvc_span s = trimmed(csv, column);
    struct kvc_decimal d;
    char text[64];
    *out = 0;
    *given = !kvc_csv_absent(csv, column);
    if (!*given)
        return KVC_OK;
    if (s.n < sizeof(text) && kvc_decimal_parse(s.text, s.n, &d) == s.n) {
        memcpy(text, s.text, s.n);
        text[s.n] = '\0';
        *out = strtod(text, NULL);
        if (isfinite(*out))
            return KVC_OK;
        *out = 0;
    }
    return kvc_csv_wrong(csv, column, "a number is expected", err);
}

enum kvc_status kvc_csv_time(const struct kvc_csv *csv, struct kvc_import *im, size_t column,
                             enum kvc_time_unit usual, uint64_t *ns, struct kvc_error *err)
{
    struct kvc_span s = trimmed(csv, column);
    char rule[128];
    if (s.n && kvc_import_time_text(im, s.text, s.n, usual, ns))
        return KVC_OK;
    kvc_import_time_rule(im, usual, rule, sizeof(rule));
    return kvc_csv_wrong(csv, column, rule, err);
}
