/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/records.h"

#include "base/error.h"
#include "traces/import/import_state.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum kvc_status kvc_records_open(struct kvc_records *r, struct kvc_import *im,
                                 struct kvc_error *err)
{
    size_t n, i = 0;
    const char *head = kvc_stream_head(im->lines.stream, &n);
    *r = (struct kvc_records){ .im = im };
    i += n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < n && strchr(" \t\r\n", head[i]) && head[i])
        i++;
    r->is_csv = i < n && head[i] != '{' && head[i] != '[';
    if (r->is_csv)
        return kvc_csv_open(&r->csv, im, err);
    kvc_json_rows_open(&r->json, im);
    return KVC_OK;
}

void kvc_records_clear(struct kvc_records *r)
{
    if (r->is_csv)
        kvc_csv_clear(&r->csv);
    kvc_json_rows_clear(&r->json);
    kvc_text_clear(&r->text);
}

static void add_string(struct kvc_text *t, const struct kvc_span *s)
{
    kvc_text_addn(t, "\"", 1);
    for (size_t i = 0, plain = 0; i <= s->n; i++) {
        unsigned char c = i < s->n ? (unsigned char)s->text[i] : '"';
        if (c >= ' ' && c != '"' && c != '\\')
            continue;
        kvc_text_addn(t, s->text + plain, i - plain);
        plain = i + 1;
        if (i < s->n && c) /* JSON texts know no NUL here */
            kvc_text_addf(t, c == '"' || c == '\\' ? "\\%c" : "\\u%04x", c);
    }
    kvc_text_addn(t, "\"", 1);
}

static bool named_before(const struct kvc_csv *csv, size_t column)
{
    for (size_t i = 0; i < column; i++)
        if (csv->name[i].n == csv->name[column].n &&
            memcmp(csv->name[i].text, csv->name[column].text, csv->name[i].n) == 0)
            return true;
    return false;
}

/* The row as JSON text. Of two columns of one name the first is kept. */
static enum kvc_status make_json(struct kvc_records *r, struct kvc_error *err)
{
    bool first = true;
    r->text.len = 0;
    kvc_text_add(&r->text, "{");
    for (size_t i = 0; i < r->csv.n_columns; i++) {
        if (!r->csv.field[i].text || !r->csv.field[i].n || named_before(&r->csv, i))
            continue;
        kvc_text_add(&r->text, first ? "" : ",");
        add_string(&r->text, &r->csv.name[i]);
        kvc_text_add(&r->text, ":");
        add_string(&r->text, &r->csv.field[i]);
        first = false;
    }
    kvc_text_add(&r->text, "}");
    return r->text.failed ? kvc_fail_nomem(err) : KVC_OK;
}

static enum kvc_status parse(struct kvc_records *r, const char *text, size_t n,
                             struct kvc_jval **root, struct kvc_error *err)
{
    struct kvc_error bad;
    enum kvc_status status = kvc_log_json(root, text, n, r->at.file, r->at.line, &bad);
    if (status == KVC_OK && kvc_jval_kind(*root) == KVC_JOBJECT)
        return KVC_OK;
    if (status == KVC_OK) {
        kvc_field_wrong(&r->at, "", *root, "a row is one JSON object", &bad);
        kvc_json_free(*root);
    }
    *root = NULL;
    return kvc_import_bad(r->im, &bad, err);
}

enum kvc_status kvc_records_next(struct kvc_records *r, struct kvc_jval **root,
                                 struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    for (*root = NULL; status == KVC_OK && !*root;) {
        const char *text = NULL;
        size_t n = 0;
        bool more = false;
        if (r->is_csv)
            status = kvc_csv_next(&r->csv, r->im, &more, err);
        else
            status = kvc_json_rows_next(&r->json, &text, &n, err);
        if (status != KVC_OK || (!more && !text))
            return status;
        if (more && (status = make_json(r, err)) != KVC_OK)
            return status;
        if (more) {
            text = r->text.buf;
            n = r->text.len;
        }
        r->at = (struct kvc_place){ kvc_import_file(r->im),
                                    more ? r->csv.line : kvc_import_line_number(r->im) };
        status = parse(r, text, n, root, err);
    }
    return status;
}

enum kvc_status kvc_records_each(struct kvc_import *im,
                                 enum kvc_status (*one)(struct kvc_records *r, void *user,
                                                        const struct kvc_jval *root,
                                                        struct kvc_error *err),
                                 void *user, struct kvc_error *err)
{
    struct kvc_records r;
    struct kvc_jval *root = NULL;
    enum kvc_status status = kvc_records_open(&r, im, err);
    while (status == KVC_OK && (status = kvc_records_next(&r, &root, err)) == KVC_OK && root) {
        status = one(&r, user, root, err);
        kvc_json_free(root);
    }
    kvc_records_clear(&r);
    return status;
}

/* ---- what is in one ---- */

static bool is_blank(const struct kvc_jval *v)
{
    const char *text = kvc_jval_string(v);
    return text && !*text;
}

const struct kvc_jval *kvc_record_any(const struct kvc_jval *root, const char *names,
                                      char field[64])
{
    char name[64];
    const struct kvc_jval *found = NULL;
    for (const char *p = names; *p && !found;) {
        size_t n = strcspn(p, "|");
        snprintf(name, sizeof(name), "%.*s", (int)n, p);
        found = kvc_field_member(root, name);
        if (found && is_blank(found))
            found = NULL;
        if (field && (found || p == names))
            memcpy(field, name, sizeof(name));
        p += n + (p[n] == '|');
    }
    return found;
}

const struct kvc_jval *kvc_record_json(const struct kvc_jval *v, struct kvc_jval **parsed)
{
    const char *text = v ? kvc_jval_string(v) : NULL;
    if (!v || (!text && kvc_jval_kind(v) != KVC_JOBJECT && kvc_jval_kind(v) != KVC_JARRAY))
        return NULL;
    if (!text)
        return v;
    text += strspn(text, " \t\r\n");
    if ((*text != '{' && *text != '[') ||
        kvc_log_json(parsed, text, strlen(text), "", 0, NULL) != KVC_OK)
        return NULL;
    return *parsed;
}

const struct kvc_jval *kvc_record_at(const struct kvc_jval *root, const char *path,
                                     struct kvc_jval **parsed)
{
    const struct kvc_jval *v = kvc_field_member(root, path);
    const char *dot = strchr(path, '.');
    char head[64];
    if (v || !dot)
        return v && !is_blank(v) ? v : NULL;
    if ((size_t)(dot - path) >= sizeof(head))
        return NULL;
    snprintf(head, sizeof(head), "%.*s", (int)(dot - path), path);
    v = kvc_field_member(root, head);
    if (v && kvc_jval_kind(v) == KVC_JSTRING && !*parsed)
        v = kvc_record_json(v, parsed);
    return v && kvc_jval_kind(v) == KVC_JOBJECT ? kvc_record_at(v, dot + 1, parsed) : NULL;
}

enum kvc_status kvc_record_name(const struct kvc_place *at, const char *names,
                                const struct kvc_jval *root, char number[24],
                                struct kvc_span *out, struct kvc_error *err)
{
    char field[64];
    return kvc_record_any(root, names, field) ? kvc_field_name(at, field, root, number, out, err)
                                              : KVC_OK;
}

enum kvc_status kvc_record_tenant(struct kvc_import *im, const struct kvc_place *at,
                                  const char *usual, const struct kvc_jval *root, char number[24],
                                  struct kvc_jval **parsed, struct kvc_span *out,
                                  struct kvc_error *err)
{
    const char *field = kvc_import_tenant_field(im, usual);
    const struct kvc_jval *v = kvc_record_at(root, field, parsed);
    uint64_t u;
    if (!v)
        return KVC_OK;
    out->text = kvc_jval_string(v);
    if (!out->text) {
        if (!kvc_jval_u64(v, &u))
            return kvc_field_wrong(at, field, v, "text or a whole number is expected", err);
        snprintf(number, 24, "%llu", (unsigned long long)u);
        out->text = number;
    }
    out->n = strlen(out->text);
    return KVC_OK;
}

bool kvc_record_yes(const struct kvc_jval *v)
{
    bool yes;
    double number;
    const char *text = v ? kvc_jval_string(v) : NULL;
    if (!v)
        return false;
    if (text)
        return strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0 ||
               strcmp(text, "t") == 0 || strcmp(text, "1") == 0;
    return (kvc_jval_bool(v, &yes) && yes) || (kvc_jval_number(v, &number) && number == 1);
}

bool kvc_record_double(const struct kvc_jval *v, double *out)
{
    struct kvc_jval *parsed = NULL;
    const char *text = v ? kvc_jval_string(v) : NULL;
    if (!v || !text)
        return v && kvc_jval_number(v, out);
    bool ok = kvc_json_parse(&parsed, text, strlen(text), false, "", 0, NULL) == KVC_OK &&
              kvc_jval_number(parsed, out);
    kvc_json_free(parsed);
    return ok;
}
