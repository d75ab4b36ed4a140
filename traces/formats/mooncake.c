/* SPDX-License-Identifier: Apache-2.0
 * Mooncake JSON lines (kvcache-ai/Mooncake, FAST25-release), with the session_id and delay of
 * aiperf's trace replay, and the careful reader of its rows. */
#include "traces/formats/mooncake.h"

#include "base/alloc.h"
#include "base/error.h"
#include "traces/import/anonymize.h"
#include "traces/import/sniff.h"
#include "traces/parse/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static enum kvc_status read_ms(const struct kvc_place *at, const char *field,
                               const struct kvc_jval *v, uint64_t *ns, struct kvc_error *err)
{
    uint64_t whole;
    double ms;
    if (kvc_jval_u64(v, &whole)) {
        if (whole >= KVC_LOG_TIME_MAX / 1000000)
            return kvc_field_wrong(at, field, v, "milliseconds below 9.2e12 are expected", err);
        *ns = whole * 1000000;
        return KVC_OK;
    }
    if (!kvc_jval_number(v, &ms) || ms < 0)
        return kvc_field_wrong(at, field, v, "milliseconds, 0 or more, are expected", err);
    if (!kvc_ms_to_ns(ms, ns))
        return kvc_field_wrong(at, field, v, "milliseconds below 9.2e12 are expected", err);
    return KVC_OK;
}

static enum kvc_status read_ids(const struct kvc_place *at, const struct kvc_jval *root,
                                struct kvc_import *im, struct kvc_id_buffer *ids,
                                struct kvc_log_row *row, struct kvc_error *err)
{
    const struct kvc_jval *list = kvc_field_member(root, "hash_ids");
    if (!list)
        return KVC_OK;
    enum kvc_status status = kvc_field_ids(at, "hash_ids", list, im, ids, 0, &row->n_ids,
                                           &row->text_ids, err);
    row->ids = ids->v;
    return status;
}

/* Milliseconds, unless the user says otherwise of the log. */
static enum kvc_status read_span(const struct kvc_place *at, struct kvc_import *im,
                                 const char *field, const struct kvc_jval *v, uint64_t *ns,
                                 struct kvc_error *err)
{
    if (!im || !kvc_import_options_of(im)->time_unit)
        return read_ms(at, field, v, ns, err);
    return kvc_field_time(at, field, v, kvc_import_time_unit(im, KVC_UNIT_MS), ns, err);
}

/* The pause before a turn: delay and, where a tool ran, tool_wait_ms, which are waited one after
 * the other. */
static enum kvc_status read_pause(const struct kvc_place *at, struct kvc_import *im,
                                  const struct kvc_jval *root, uint64_t *ns, struct kvc_error *err)
{
    const struct kvc_jval *delay = kvc_field_member(root, "delay");
    const struct kvc_jval *tool = kvc_field_member(root, "tool_wait_ms");
    uint64_t wait = 0;
    enum kvc_status status = KVC_OK;
    if (delay)
        status = read_span(at, im, "delay", delay, ns, err);
    if (status == KVC_OK && tool)
        status = read_ms(at, "tool_wait_ms", tool, &wait, err);
    if (status == KVC_OK && tool)
        *ns = delay ? *ns + wait : wait;
    return status;
}

static enum kvc_status read_times(const struct kvc_place *at, struct kvc_import *im,
                                  const struct kvc_jval *root, struct kvc_log_row *row,
                                  struct kvc_error *err)
{
    const struct kvc_jval *time = kvc_jval_member(root, "timestamp");
    enum kvc_status status = read_pause(at, im, root, &row->think_ns, err);
    if (status != KVC_OK)
        return status;
    if (time && im && kvc_import_options_of(im)->time_unit)
        return kvc_field_when(im, at, "timestamp", time, KVC_UNIT_MS, &row->time_ns, err);
    if (time)
        return read_ms(at, "timestamp", time, &row->time_ns, err);
    if (row->think_ns == KVC_TIME_NONE || !row->session.text)
        return kvc_field_missing(at, "timestamp", err);
    row->time_ns = KVC_TIME_NONE;
    return KVC_OK;
}

/* Fields of Dynamo's agentic rows that change what a row means and have no place in a trace. */
static void tell_agentic(struct kvc_import *im, const struct kvc_jval *root)
{
    const struct kvc_jval *v = kvc_field_member(root, "request_kind");
    const char *kind = v ? kvc_jval_string(v) : NULL;
    bool reset;
    char text[KVC_SHOWN_NAME + 32], name[KVC_SHOWN_NAME];
    if ((v = kvc_field_member(root, "wait_for")) && kvc_jval_first(v))
        kvc_import_tally(im, "rows that wait for other requests to end (wait_for): they come at "
                             "their own time, or after their session's turn before");
    if ((v = kvc_field_member(root, "branches")) && kvc_jval_first(v))
        kvc_import_tally(im, "rows that start others (branches)");
    if ((v = kvc_field_member(root, "prefix_reset")) && kvc_jval_bool(v, &reset) && reset)
        kvc_import_tally(im, "rows that begin a new prefix in their session (prefix_reset)");
    if ((v = kvc_field_member(root, "priority")) || (v = kvc_field_member(root, "strict_priority")))
        kvc_import_tally(im, "rows with a priority, which replay does not use");
    if (!kind)
        return;
    kvc_import_shown_name(im, "kind", kind, strlen(kind), name);
    snprintf(text, sizeof(text), "rows of request_kind %s", name);
    kvc_import_tally(im, text);
}

static enum kvc_status read_members(const struct kvc_place *at, struct kvc_mooncake_doc *doc,
                                    struct kvc_import *im, struct kvc_id_buffer *ids,
                                    struct kvc_log_row *row, struct kvc_error *err)
{
    const struct kvc_jval *root = doc->root;
    enum kvc_status status = kvc_field_name(at, "session_id", root, doc->session, &row->session,
                                            err);
    if (status == KVC_OK)
        status = read_times(at, im, root, row, err);
    if (status == KVC_OK)
        status = kvc_field_tokens(at, "input_length", root, 1, &row->input_tokens, err);
    if (status == KVC_OK)
        status = kvc_field_tokens(at, "output_length", root, 0, &row->output_tokens, err);
    if (status == KVC_OK)
        status = kvc_field_name(at, "model", root, doc->model, &row->model, err);
    if (status == KVC_OK && im)
        status = kvc_field_chosen(im, at, root, doc->chosen, row, err);
    else if (status == KVC_OK)
        kvc_field_instance(root, doc->chosen[1], &row->instance);
    if (status == KVC_OK && !(im && kvc_import_tenant_field(im, NULL)))
        status = kvc_field_name(at, "tenant", root, doc->tenant, &row->tenant, err);
    if (status == KVC_OK && !(im && kvc_import_tenant_field(im, NULL)) && !row->tenant.text)
        status = kvc_field_name(at, "user", root, doc->tenant, &row->tenant, err);
    if (status == KVC_OK)
        status = read_ids(at, root, im, ids, row, err);
    if (status == KVC_OK && im)
        tell_agentic(im, root);
    return status;
}

enum kvc_status kvc_mooncake_read(const char *text, size_t n, const char *file, uint64_t line,
                                  struct kvc_import *im, struct kvc_id_buffer *ids,
                                  struct kvc_log_row *row, struct kvc_mooncake_doc *doc,
                                  struct kvc_error *err)
{
    struct kvc_place at = { file, line };
    doc->root = NULL;
    *row = (struct kvc_log_row){ .think_ns = KVC_TIME_NONE };
    enum kvc_status status = kvc_row_parse(&doc->root, text, n, &at, err);
    if (status != KVC_OK)
        return status;
    status = read_members(&at, doc, im, ids, row, err);
    if (status != KVC_OK) {
        kvc_json_free(doc->root);
        doc->root = NULL;
    }
    return status;
}

static bool same_span(const struct kvc_span *a, const struct kvc_span *b)
{
    return !a->text == !b->text && a->n == b->n && (!a->n || memcmp(a->text, b->text, a->n) == 0);
}

bool kvc_mooncake_same(const struct kvc_log_row *a, const struct kvc_log_row *b,
                       const char **field)
{
    *field = a->time_ns != b->time_ns               ? "timestamp"
             : a->think_ns != b->think_ns           ? "delay"
             : a->input_tokens != b->input_tokens   ? "input_length"
             : a->output_tokens != b->output_tokens ? "output_length"
             : !same_span(&a->session, &b->session) ? "session_id"
             : !same_span(&a->model, &b->model)     ? "model"
             : !same_span(&a->tenant, &b->tenant)   ? "tenant"
             : !same_span(&a->instance, &b->instance) ? "instance"
             : a->text_ids != b->text_ids || a->n_ids != b->n_ids ||
                     (a->n_ids && memcmp(a->ids, b->ids, a->n_ids * sizeof(*a->ids)) != 0)
                 ? "hash_ids"
                 : NULL;
    return !*field;
}

/* ---- the reader ---- */

struct times { /* of the rows, to tell seconds from milliseconds; kept over the files */
    uint64_t rows, first_ns, last_ns;
    bool fractions; /* of a millisecond */
};

struct reader {
    struct kvc_id_buffer scan_ids, read_ids;
    struct times *times;
    const char *text;
    size_t n;
    bool plain; /* fields and units are the format's, which is what the scanner knows */
};

static inline void note_time(struct times *t, uint64_t ns)
{
    if (ns == KVC_TIME_NONE)
        return;
    t->rows++;
    t->first_ns = ns < t->first_ns || t->rows == 1 ? ns : t->first_ns;
    t->last_ns = ns > t->last_ns ? ns : t->last_ns;
    t->fractions |= ns % 1000000 != 0;
}

static enum kvc_status compare(struct kvc_import *im, struct reader *r,
                               const struct kvc_log_row *scanned, struct kvc_error *err)
{
    struct kvc_mooncake_doc doc;
    struct kvc_log_row row;
    const char *field = NULL;
    const char *file = kvc_import_file(im);
    uint64_t line = kvc_import_line_number(im);
    enum kvc_status status = kvc_mooncake_read(r->text, r->n, file, line, im, &r->read_ids, &row,
                                               &doc, err);
    if (status == KVC_OK && !kvc_mooncake_same(scanned, &row, &field))
        status = kvc_fail_at(err, KVC_ERR_INTERNAL, file, line, field,
                             "the two readers of this format differ here; please report this row");
    kvc_json_free(doc.root);
    return status;
}

static enum kvc_status careful(struct kvc_import *im, struct reader *r, struct kvc_error *err)
{
    struct kvc_mooncake_doc doc;
    struct kvc_log_row row;
    struct kvc_error bad;
    enum kvc_status status = kvc_mooncake_read(r->text, r->n, kvc_import_file(im),
                                               kvc_import_line_number(im), im, &r->read_ids, &row,
                                               &doc, &bad);
    if (status != KVC_OK)
        return kvc_import_bad(im, &bad, err);
    note_time(r->times, row.time_ns);
    status = kvc_import_row(im, &row, true, err);
    kvc_json_free(doc.root);
    return status;
}

static enum kvc_status sure(struct kvc_import *im, struct reader *r, const struct kvc_log_row *row,
                            struct kvc_error *err)
{
    note_time(r->times, row->time_ns);
    enum kvc_status status = kvc_import_compares(im) ? compare(im, r, row, err) : KVC_OK;
    return status == KVC_OK ? kvc_import_row(im, row, false, err) : status;
}

static bool id_room(struct reader *r, size_t bytes)
{
    return kvc_grow((void **)&r->scan_ids.v, &r->scan_ids.cap, bytes / 2 + 1, sizeof(uint64_t));
}

/* The rows that lie in memory, as long as they are plain: to look for the ends of their lines first
 * would be to read them twice. */
static enum kvc_status read_plain(struct kvc_import *im, struct reader *r, struct kvc_error *err)
{
    struct kvc_log_row row = { 0 };
    enum kvc_status status = KVC_OK;
    while (status == KVC_OK) {
        size_t ahead = kvc_import_ahead(im, &r->text);
        if (!id_room(r, ahead))
            return kvc_fail_nomem(err);
        r->n = kvc_mooncake_scan(r->text, r->scan_ids.v, &row);
        if (!r->n || r->n >= ahead)
            break;
        kvc_import_line_ahead(im, r->n + 1);
        status = sure(im, r, &row, err);
    }
    return status;
}

static enum kvc_status one_line(struct kvc_import *im, struct reader *r, struct kvc_error *err)
{
    struct kvc_log_row row = { 0 };
    if (!id_room(r, r->n))
        return kvc_fail_nomem(err);
    if (r->plain && kvc_mooncake_scan(r->text, r->scan_ids.v, &row) >= r->n)
        return sure(im, r, &row, err);
    return careful(im, r, err);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    const struct kvc_import_options *o = kvc_import_options_of(im);
    struct reader r = { .times = kvc_import_keep(im, sizeof(*r.times), NULL),
                        .plain = !o->time_unit && !o->tenant_field && !o->key_field };
    enum kvc_status status = r.times ? KVC_OK : kvc_fail_nomem(err);
    for (r.text = ""; status == KVC_OK && r.text;) {
        if (r.plain)
            status = read_plain(im, &r, err);
        if (status == KVC_OK)
            status = kvc_import_line(im, &r.text, &r.n, err);
        if (status == KVC_OK && r.text)
            status = one_line(im, &r, err);
    }
    kvc_free(r.scan_ids.v);
    kvc_free(r.read_ids.v);
    return status;
}

/* Some write seconds under the same name: 0.0, 0.2, 0.4. */
static enum kvc_status end_log(struct kvc_import *im, struct kvc_error *err)
{
    const struct times *t = kvc_import_kept(im);
    (void)err;
    if (kvc_import_options_of(im)->time_unit || !t->fractions || t->rows < 3)
        return KVC_OK;
    double span_ms = (double)(t->last_ns - t->first_ns) / 1e6;
    if (span_ms < (double)t->rows) /* over 1000 a second */
        kvc_import_note(im, "%llu rows within %.6g ms, with fractions of one: if the timestamps "
                        "are seconds, as some tools write them, name --time-unit s",
                        (unsigned long long)t->rows, span_ms);
    return KVC_OK;
}

static bool holds(const char *text, size_t n, const char *word)
{
    return memmem(text, n, word, strlen(word)) != NULL;
}

/* Any of the first lines names both lengths, which relatives of the format do as well. */
static bool sniff(const char *head, size_t n)
{
    if (kvc_sniff_row(head, n, (const char *const[]){ "parent_chat_id", NULL }) ||
        kvc_sniff_row(head, n, (const char *const[]){ "hash_ids.sys_prompt", NULL }))
        return false;
    size_t i = 0;
    while (i < n && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n'))
        i++;
    return i < n && head[i] == '{' && holds(head + i, n - i, "\"input_length\"") &&
           holds(head + i, n - i, "\"output_length\"");
}

const struct kvc_format kvc_format_mooncake = {
    .name = "mooncake",
    .summary = "Mooncake JSON lines: timestamp (ms), input_length, output_length, hash_ids",
    .block_tokens = 512,
    .sniff = sniff,
    .read = read_log,
    .end = end_log,
};
