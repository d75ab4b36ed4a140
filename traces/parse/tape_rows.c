/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/parse/tape_rows.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* ---- rows ---- */

static bool same_node(struct kvc_tape_rows *r, uint32_t i)
{
    const struct kvc_tape_node *a = &r->fast.v[i], *b = &r->slow.v[i];
    if (a->kind != b->kind || a->next != b->next || a->truth != b->truth)
        return false;
    if (a->kind != KVC_JSTRING)
        return a->n == b->n && (!a->n || memcmp(a->text, b->text, a->n) == 0);
    size_t n = kvc_tape_decode(&r->fast, i, r->text);
    return n == b->n && memcmp(r->text, b->text, n) == 0;
}

static enum kvc_status compare(struct kvc_tape_rows *r, const struct kvc_place *at,
                               struct kvc_error *err)
{
    bool same = r->fast.n == r->slow.n;
    for (uint32_t i = 0; i < r->fast.n && same; i++)
        same = same_node(r, i);
    return same ? KVC_OK
                : kvc_fail_at(err, KVC_ERR_INTERNAL, at->file, at->line, NULL,
                              "the two readers of this format differ here; please report this row");
}

static enum kvc_status careful(struct kvc_tape_rows *r, const char *text, size_t n,
                               const struct kvc_place *at, struct kvc_error *err)
{
    enum kvc_status status = kvc_row_parse(&r->root, text, n, at, err);
    if (status == KVC_OK && !kvc_tape_of(&r->slow, r->root))
        status = kvc_fail_nomem(err);
    return status;
}

enum kvc_status kvc_tape_row(struct kvc_tape_rows *r, struct kvc_import *im, const char *text,
                             size_t n, const struct kvc_tape **tape, bool *odd,
                             struct kvc_error *err)
{
    struct kvc_place at = { kvc_import_file(im), kvc_import_line_number(im) };
    kvc_json_free(r->root);
    r->root = NULL;
    r->n_text = 0;
    /* Two names may be of one member, as with --tenant-field session_id. */
    if (!kvc_grow((void **)&r->text, &r->text_cap, 2 * n + 64, 1))
        return kvc_fail_nomem(err);
    bool sure = kvc_tape_scan(&r->fast, text, n) && kvc_tape_kind(&r->fast, 0) == KVC_JOBJECT;
    if (r->fast.failed)
        return kvc_fail_nomem(err);
    enum kvc_status status = KVC_OK;
    if (!sure || kvc_import_compares(im))
        status = careful(r, text, n, &at, err);
    if (status == KVC_OK && sure && kvc_import_compares(im))
        status = compare(r, &at, err);
    *tape = sure ? &r->fast : &r->slow;
    *odd = !sure;
    return status;
}

void kvc_tape_rows_clear(struct kvc_tape_rows *r)
{
    kvc_json_free(r->root);
    kvc_free(r->fast.v);
    kvc_free(r->slow.v);
    kvc_free(r->text);
    memset(r, 0, sizeof(*r));
}

/* ---- values ---- */

static bool whole(const char *number, size_t n)
{
    size_t i = 0;
    while (i < n && ((number[i] >= '0' && number[i] <= '9') || (number[i] == '-' && !i)))
        i++;
    return i == n;
}

enum kvc_status kvc_tape_name(struct kvc_tape_rows *r, const struct kvc_tape *t, uint32_t v,
                              const char *field, const struct kvc_place *place,
                              struct kvc_span *out, struct kvc_error *err)
{
    if (!v)
        return KVC_OK;
    bool number = kvc_tape_kind(t, v) == KVC_JNUMBER;
    if (number ? !whole(t->v[v].text, t->v[v].n) : kvc_tape_kind(t, v) != KVC_JSTRING)
        return kvc_fail_at(err, KVC_ERR_INPUT, place->file, place->line, field,
                           "text or a whole number is expected");
    *out = (struct kvc_span){ t->v[v].text, t->v[v].n };
    if (t->v[v].escapes) {
        *out = (struct kvc_span){ r->text + r->n_text, kvc_tape_decode(t, v, r->text + r->n_text) };
        r->n_text += out->n;
    }
    return KVC_OK;
}

enum kvc_status kvc_tape_tokens(const struct kvc_tape *t, uint32_t v, const char *field,
                                const struct kvc_place *place, uint32_t *out, bool *stated,
                                struct kvc_error *err)
{
    uint64_t n;
    if (!v)
        return KVC_OK;
    if (!kvc_tape_u64(t, v, &n) || n > KVC_TOKENS_MAX)
        return kvc_fail_at(err, KVC_ERR_INPUT, place->file, place->line, field,
                           "a whole number of tokens from 0 to 2^31-1 is expected");
    *out = (uint32_t)n;
    *stated = true;
    return KVC_OK;
}

enum kvc_status kvc_tape_when(struct kvc_import *im, const struct kvc_tape *t, uint32_t v,
                              const char *field, enum kvc_time_unit usual,
                              const struct kvc_place *place, uint64_t *ns, struct kvc_error *err)
{
    struct kvc_decimal number;
    char rule[96];
    if (!v)
        return KVC_OK;
    const struct kvc_tape_node *node = &t->v[v];
    if (node->kind == KVC_JSTRING && kvc_import_time_text(im, node->text, node->n, usual, ns))
        return KVC_OK;
    if (node->kind == KVC_JNUMBER &&
        kvc_decimal_parse(node->text, node->n, &number) == node->n &&
        kvc_import_time(im, &number, usual, ns))
        return KVC_OK;
    kvc_import_time_rule(im, usual, rule, sizeof(rule));
    return kvc_fail_at(err, KVC_ERR_INPUT, place->file, place->line, field, "%.*s is wrong: %s",
                       node->n > 40 ? 40 : (int)node->n, node->text ? node->text : "this", rule);
}

uint32_t kvc_tape_text(const struct kvc_tape *t, uint32_t at, const char *key,
                       const struct kvc_place *place, struct kvc_error *err)
{
    uint32_t v = kvc_tape_member(t, at, key);
    if (v && kvc_tape_kind(t, v) == KVC_JSTRING)
        return v;
    kvc_fail_at(err, KVC_ERR_INPUT, place->file, place->line, key,
                v ? "a text is expected" : "missing");
    return 0;
}
