/* SPDX-License-Identifier: Apache-2.0
 * Dynamo request traces (ai-dynamo/dynamo, schema dynamo.request.trace.v1): JSON lines of events,
 * of which request_end is a request with its chained 64-bit block hashes. */
#include "base/alloc.h"
#include "base/error.h"
#include "traces/import/anonymize.h"
#include "traces/import/sniff.h"
#include "traces/parse/fields.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

#define SCHEMA "dynamo.request.trace.v1"

struct reader {
    struct kvc_id_buffer ids;
};

struct event { /* what a row's spans point into */
    struct kvc_jval *doc;
    const struct kvc_jval *root, *request, *context;
    char session[24], model[24], chosen[2][24];
    uint64_t total_ns; /* from arrival to the answer's end; KVC_TIME_NONE: not stated */
    uint32_t block_tokens;
};

static enum kvc_status read_time(const struct kvc_place *at, struct kvc_import *im,
                                 struct event *e, struct kvc_log_row *row, struct kvc_error *err)
{
    enum kvc_time_unit ms = kvc_import_time_unit(im, KVC_UNIT_MS);
    const struct kvc_jval *received = kvc_field_member(e->request, "request_received_ms");
    const struct kvc_jval *total = kvc_field_member(e->request, "total_time_ms");
    const struct kvc_jval *end = kvc_field_member(e->root, "event_time_unix_ms");
    enum kvc_status status = KVC_OK;
    e->total_ns = KVC_TIME_NONE;
    if (total)
        status = kvc_field_time(at, "request.total_time_ms", total, ms, &e->total_ns, err);
    if (status != KVC_OK)
        return status;
    if (received)
        return kvc_field_when(im, at, "request.request_received_ms", received, KVC_UNIT_MS,
                              &row->time_ns, err);
    if (!end)
        return kvc_field_missing(at, "request.request_received_ms", err);
    status = kvc_field_when(im, at, "event_time_unix_ms", end, KVC_UNIT_MS, &row->time_ns, err);
    if (status == KVC_OK && total && e->total_ns <= row->time_ns)
        row->time_ns -= e->total_ns;
    if (status == KVC_OK)
        kvc_import_tally(im, total ? "requests without request_received_ms: taken to arrive "
                                     "total_time_ms before their end"
                                   : "requests without request_received_ms and total_time_ms: "
                                     "taken to arrive at their end");
    return status;
}

static enum kvc_status read_replay(const struct kvc_place *at, struct kvc_import *im,
                                   struct reader *r, struct event *e, struct kvc_log_row *row,
                                   struct kvc_error *err)
{
    const struct kvc_jval *replay = kvc_field_member(e->request, "replay"), *hashes;
    uint32_t stated = row->input_tokens;
    if (!replay) {
        kvc_import_tally(im, "requests without replay, whose reuse is unknown");
        return KVC_OK;
    }
    hashes = kvc_field_member(replay, "input_sequence_hashes");
    enum kvc_status status = kvc_field_tokens(at, "input_length", replay, 1, &row->input_tokens,
                                              err);
    if (status == KVC_OK && stated && stated != row->input_tokens)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, "request.replay.input_length",
                           "%u tokens, where request.input_tokens says %u", row->input_tokens,
                           stated);
    if (status != KVC_OK || !hashes)
        return status;
    status = kvc_field_tokens(at, "trace_block_size", replay, 1, &e->block_tokens, err);
    if (status == KVC_OK)
        status = kvc_field_ids(at, "request.replay.input_sequence_hashes", hashes, im, &r->ids, 0,
                               &row->n_ids, &row->text_ids, err);
    row->ids = r->ids.v;
    return status;
}

static enum kvc_status read_cached(const struct kvc_place *at, const struct event *e,
                                   struct kvc_log_row *row, struct kvc_error *err)
{
    if (!kvc_field_member(e->request, "cached_tokens"))
        return KVC_OK;
    enum kvc_status status = kvc_field_tokens(at, "cached_tokens", e->request, 0,
                                              &row->cached_tokens, err);
    if (status == KVC_OK && row->cached_tokens > row->input_tokens)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, "request.cached_tokens",
                           "%u of %u input tokens", row->cached_tokens, row->input_tokens);
    row->cached_stated = status == KVC_OK;
    return status;
}

static void read_outcome(const struct event *e, struct kvc_log_row *row)
{
    const struct kvc_jval *finish = kvc_field_member(e->request, "finish_reason_metadata");
    const struct kvc_jval *reason = finish ? kvc_field_member(finish, "finish_reason") : NULL;
    const char *word = reason ? kvc_jval_string(reason) : NULL;
    if (word && (strcmp(word, "cancelled") == 0 || strcmp(word, "canceled") == 0))
        row->status = KVC_ROW_CANCELLED;
    else if (word && strcmp(word, "error") == 0)
        row->status = KVC_ROW_FAILED;
}

static enum kvc_status read_names(const struct kvc_place *at, struct kvc_import *im,
                                  struct event *e, struct kvc_log_row *row, struct kvc_error *err)
{
    const struct kvc_jval *in[] = { e->root, e->context, e->request };
    enum kvc_status status = kvc_field_name(at, "model", e->request, e->model, &row->model, err);
    if (status == KVC_OK && e->context)
        status = kvc_field_name(at, "trajectory_id", e->context, e->session, &row->session, err);
    if (status == KVC_OK && e->context && !row->session.text)
        status = kvc_field_name(at, "session_id", e->context, e->session, &row->session, err);
    if (status == KVC_OK && e->context &&
        (kvc_field_member(e->context, "parent_trajectory_id") ||
         kvc_field_member(e->context, "parent_session_id")))
        kvc_import_tally(im, "requests of a sub-agent (a trajectory with a parent): a session of "
                             "their own");
    for (size_t i = 0; i < 3 && status == KVC_OK; i++)
        if (in[i]) /* the request's own come last, and win */
            status = kvc_field_chosen(im, at, in[i], e->chosen, row, err);
    return status;
}

static enum kvc_status read_request(const struct kvc_place *at, struct kvc_import *im,
                                    struct reader *r, struct event *e, struct kvc_log_row *row,
                                    struct kvc_error *err)
{
    e->request = kvc_field_member(e->root, "request");
    e->context = kvc_field_member(e->root, "agent_context");
    if (!e->request)
        return kvc_field_missing(at, "request", err);
    enum kvc_status status = read_time(at, im, e, row, err);
    if (status == KVC_OK && (kvc_field_member(e->request, "input_tokens") ||
                             !kvc_field_member(e->request, "replay")))
        status = kvc_field_tokens(at, "input_tokens", e->request, 1, &row->input_tokens, err);
    if (status == KVC_OK)
        status = kvc_field_tokens(at, "output_tokens", e->request, 0, &row->output_tokens, err);
    if (status == KVC_OK)
        status = read_names(at, im, e, row, err);
    if (status == KVC_OK)
        status = read_replay(at, im, r, e, row, err);
    if (status == KVC_OK)
        status = read_cached(at, e, row, err);
    if (status == KVC_OK)
        read_outcome(e, row);
    return status;
}

/* The event, out of its wrapper, with its schema and type checked; *is_request false: an event of
 * another type, counted. */
static enum kvc_status read_event(const struct kvc_place *at, struct kvc_import *im,
                                  struct event *e, bool *is_request, struct kvc_error *err)
{
    const struct kvc_jval *inner = kvc_field_member(e->doc, "event");
    e->root = inner && kvc_jval_kind(inner) == KVC_JOBJECT ? inner : e->doc;
    const struct kvc_jval *schema = kvc_field_member(e->root, "schema");
    const struct kvc_jval *type = kvc_field_member(e->root, "event_type");
    const char *word = type ? kvc_jval_string(type) : NULL;
    char text[96], kind[KVC_SHOWN_NAME];
    if (!schema)
        return kvc_field_missing(at, "schema", err);
    if (!kvc_jval_string(schema) || strcmp(kvc_jval_string(schema), SCHEMA) != 0)
        return kvc_field_wrong(at, "schema", schema, "only " SCHEMA " is known", err);
    if (!word)
        return kvc_field_missing(at, "event_type", err);
    *is_request = strcmp(word, "request_end") == 0;
    if (*is_request)
        return KVC_OK;
    kvc_import_shown_name(im, "kind", word, strlen(word), kind);
    snprintf(text, sizeof(text), "%s events, which are no requests", kind);
    kvc_import_tally(im, text);
    return KVC_OK;
}

static enum kvc_status one_row(struct kvc_import *im, void *user, const char *text, size_t n,
                               struct kvc_error *err)
{
    struct reader *r = user;
    struct kvc_place at = { kvc_import_file(im), kvc_import_line_number(im) };
    struct event e = { 0 };
    struct kvc_log_row row = { .think_ns = KVC_TIME_NONE };
    struct kvc_error bad;
    bool is_request = false;
    enum kvc_status status = kvc_row_parse(&e.doc, text, n, &at, &bad);
    if (status == KVC_OK)
        status = read_event(&at, im, &e, &is_request, &bad);
    if (status == KVC_OK && is_request)
        status = read_request(&at, im, r, &e, &row, &bad);
    if (status != KVC_OK) {
        status = kvc_import_bad(im, &bad, err);
    } else if (is_request) {
        status = e.block_tokens ? kvc_import_block_size(im, e.block_tokens, err) : KVC_OK;
        if (e.total_ns != KVC_TIME_NONE)
            row.end_ns = row.time_ns + e.total_ns;
        if (status == KVC_OK)
            status = kvc_import_row(im, &row, false, err);
    }
    kvc_json_free(e.doc);
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { 0 };
    enum kvc_status status = kvc_import_each_line(im, one_row, &r, err);
    kvc_free(r.ids.v);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    static const char family[] = "dynamo.request.trace.";
    return memmem(head, n, family, sizeof(family) - 1) &&
           (kvc_sniff_row(head, n, (const char *const[]){ "schema", "event_type", NULL }) ||
            kvc_sniff_row(head, n, (const char *const[]){ "event.schema", "event.event_type",
                                                          NULL }));
}

const struct kvc_format kvc_format_dynamo = {
    .name = "dynamo",
    .summary = "Dynamo request traces (" SCHEMA "): request_end events with "
               "input_sequence_hashes",
    .block_tokens = 64,
    .sniff = sniff,
    .read = read_log,
};
