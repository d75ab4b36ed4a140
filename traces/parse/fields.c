/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/fields.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A full parse of a list of ids costs up to 85 times the text in memory. */
#define CAREFUL_MAX ((size_t)8 << 20)

enum kvc_status kvc_field_wrong(const struct kvc_place *at, const char *field,
                                const struct kvc_jval *v, const char *rule, struct kvc_error *err)
{
    static const char *const kinds[] = { "null", "true or false", "a number", "text", "a list",
                                         "an object" };
    size_t n;
    const char *text = kvc_jval_string(v), *digits = kvc_jval_digits(v, &n);
    if (digits)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field, "%.*s is wrong: %s",
                           (int)n, digits, rule);
    if (text)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field,
                           "the text \"%.40s\" is wrong: %s", text, rule);
    return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field, "%s is wrong: %s",
                       kinds[kvc_jval_kind(v)], rule);
}

enum kvc_status kvc_field_missing(const struct kvc_place *at, const char *field,
                                  struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, field, "missing");
}

const struct kvc_jval *kvc_field_member(const struct kvc_jval *root, const char *key)
{
    const struct kvc_jval *v = kvc_jval_member(root, key);
    return v && kvc_jval_kind(v) != KVC_JNULL ? v : NULL;
}

enum kvc_status kvc_field_tokens(const struct kvc_place *at, const char *field,
                                 const struct kvc_jval *root, uint64_t least, uint32_t *out,
                                 struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_jval_member(root, field);
    uint64_t n;
    if (!v)
        return kvc_field_missing(at, field, err);
    if (!kvc_jval_u64(v, &n) || n < least || n > KVC_TOKENS_MAX)
        return kvc_field_wrong(at, field, v,
                               least ? "a whole number of tokens from 1 to 2^31-1 is expected"
                                     : "a whole number of tokens from 0 to 2^31-1 is expected",
                               err);
    *out = (uint32_t)n;
    return KVC_OK;
}

enum kvc_status kvc_field_name(const struct kvc_place *at, const char *field,
                               const struct kvc_jval *root, char number[24], struct kvc_span *out,
                               struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_field_member(root, field);
    uint64_t u;
    int64_t i;
    if (!v)
        return KVC_OK;
    out->text = kvc_jval_string(v);
    if (!out->text) {
        if (kvc_jval_u64(v, &u))
            snprintf(number, 24, "%llu", (unsigned long long)u);
        else if (kvc_jval_i64(v, &i))
            snprintf(number, 24, "%lld", (long long)i);
        else
            return kvc_field_wrong(at, field, v, "text or a whole number is expected", err);
        out->text = number;
    }
    out->n = strlen(out->text);
    return KVC_OK;
}

enum kvc_status kvc_field_time(const struct kvc_place *at, const char *field,
                               const struct kvc_jval *v, enum kvc_time_unit unit, uint64_t *ns,
                               struct kvc_error *err)
{
    struct kvc_decimal number;
    char rule[96];
    size_t n;
    const char *text = kvc_jval_digits(v, &n);
    if (!text && (text = kvc_jval_string(v)))
        n = strlen(text);
    if (text && kvc_time_from_date(text, n, ns))
        return KVC_OK;
    if (text && n && kvc_decimal_parse(text, n, &number) == n &&
        kvc_time_from_number(&number, unit, ns))
        return KVC_OK;
    snprintf(rule, sizeof(rule), "a time is expected: %s from 0 on, or a date and time",
             kvc_time_unit_name(unit));
    return kvc_field_wrong(at, field, v, rule, err);
}

enum kvc_status kvc_field_when(struct kvc_import *im, const struct kvc_place *at,
                               const char *field, const struct kvc_jval *v,
                               enum kvc_time_unit usual, uint64_t *ns, struct kvc_error *err)
{
    char rule[128];
    size_t n;
    const char *text = kvc_jval_digits(v, &n);
    if (!text && (text = kvc_jval_string(v)))
        n = strlen(text);
    if (text && kvc_import_time_text(im, text, n, usual, ns))
        return KVC_OK;
    kvc_import_time_rule(im, usual, rule, sizeof(rule));
    return kvc_field_wrong(at, field, v, rule, err);
}

void kvc_field_instance(const struct kvc_jval *root, char number[24], struct kvc_span *out)
{
    static const char *const usual[] = { "instance", "instance_id", "worker_id" };
    static const struct kvc_place nowhere = { 0 };
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && !out->text; i++)
        if (kvc_field_name(&nowhere, usual[i], root, number, out, NULL) != KVC_OK)
            *out = (struct kvc_span){ 0 };
}

enum kvc_status kvc_field_chosen(struct kvc_import *im, const struct kvc_place *at,
                                 const struct kvc_jval *root, char number[2][24],
                                 struct kvc_log_row *row, struct kvc_error *err)
{
    const char *tenant = kvc_import_tenant_field(im, NULL);
    const char *key = kvc_import_options_of(im)->key_field;
    enum kvc_status status = KVC_OK;
    if (tenant && kvc_field_member(root, tenant))
        status = kvc_field_name(at, tenant, root, number[0], &row->tenant, err);
    if (status == KVC_OK && key && kvc_field_member(root, key)) {
        kvc_import_key_found(im);
        status = kvc_field_name(at, key, root, number[1], &row->instance, err);
    } else if (status == KVC_OK && !key) {
        kvc_field_instance(root, number[1], &row->instance);
    }
    return status;
}

/* The code of the \uXXXX at text[i]; -1: there is none. */
static long escaped(const char *text, size_t n, size_t i)
{
    char digits[5] = "";
    if (i > n || n - i < 6 || text[i] != '\\' || text[i + 1] != 'u')
        return -1;
    memcpy(digits, text + i + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

/* Puts U+FFFD for NUL and for halves of surrogate pairs; whether there were any. */
static bool mend_escapes(char *text, size_t n)
{
    bool mended = false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\\')
            continue;
        long code = escaped(text, n, i), next = escaped(text, n, i + 6);
        if (code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
            i += 11;
            continue;
        }
        if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
            memcpy(text + i + 2, "fffd", 4);
            mended = true;
        }
        i += code >= 0 ? 5 : 1;
    }
    return mended;
}

enum kvc_status kvc_log_json(struct kvc_jval **root, const char *text, size_t n, const char *file,
                             uint64_t line, struct kvc_error *err)
{
    enum kvc_status status = kvc_json_parse(root, text, n, false, file, line, err);
    if (status != KVC_ERR_INPUT || !memmem(text, n, "\\u", 2))
        return status;
    char *copy = kvc_malloc(n, 1);
    if (!copy)
        return kvc_fail_nomem(err);
    memcpy(copy, text, n);
    if (mend_escapes(copy, n))
        status = kvc_json_parse(root, copy, n, false, file, line, err);
    kvc_free(copy);
    return status;
}

enum kvc_status kvc_row_parse_any(struct kvc_jval **root, const char *text, size_t n,
                                  const struct kvc_place *at, struct kvc_error *err)
{
    if (n > CAREFUL_MAX)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, NULL,
                           "this row of %zu MiB has something unusual in it, and unusual rows are "
                           "read up to %zu MiB only", n >> 20, CAREFUL_MAX >> 20);
    return kvc_log_json(root, text, n, at->file, at->line, err);
}

enum kvc_status kvc_row_parse(struct kvc_jval **root, const char *text, size_t n,
                              const struct kvc_place *at, struct kvc_error *err)
{
    enum kvc_status status = kvc_row_parse_any(root, text, n, at, err);
    if (status != KVC_OK || kvc_jval_kind(*root) == KVC_JOBJECT)
        return status;
    status = kvc_field_wrong(at, "", *root, "each line must hold one JSON object", err);
    kvc_json_free(*root);
    *root = NULL;
    return status;
}

enum kvc_status kvc_field_ids(const struct kvc_place *at, const char *field,
                              const struct kvc_jval *list, struct kvc_import *im,
                              struct kvc_id_buffer *ids, size_t from, size_t *n, bool *text_ids,
                              struct kvc_error *err)
{
    static const char rule[] = "block ids are whole numbers below 2^64, or all of them text";
    char place[80];
    if (kvc_jval_kind(list) != KVC_JARRAY)
        return kvc_field_wrong(at, field, list, "a list of block ids is expected", err);
    size_t k = 0;
    *n = kvc_jval_count(list);
    if (!kvc_grow((void **)&ids->v, &ids->cap, from + *n, sizeof(*ids->v)))
        return kvc_fail_nomem(err);
    for (const struct kvc_jval *v = kvc_jval_first(list); v; v = kvc_jval_next(v), k++) {
        const char *text = kvc_jval_string(v);
        uint64_t *id = &ids->v[from + k];
        int64_t negative;
        if (from + k == 0)
            *text_ids = text != NULL;
        snprintf(place, sizeof(place), "%s[%zu]", field, k);
        if ((text != NULL) != *text_ids || (text && !im))
            return kvc_field_wrong(at, place, v, rule, err);
        if (text) {
            *id = kvc_import_text_id(text, strlen(text));
        } else if (kvc_jval_i64(v, &negative)) {
            *id = (uint64_t)negative; /* signed hashes keep their bits */
        } else if (!kvc_jval_u64(v, id)) {
            return kvc_field_wrong(at, place, v, rule, err);
        }
    }
    return KVC_OK;
}
