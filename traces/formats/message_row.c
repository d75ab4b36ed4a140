/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/formats/message_row.h"

#include "base/error.h"
#include "traces/formats/usage.h"
#include "traces/parse/fields.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

/* ---- members ---- */

struct row { /* where a row's parts are on the tape */
    struct kvc_import *im;
    struct kvc_place at;
    struct kvc_message_doc *d;
    struct kvc_tape_rows *rows;
    const struct kvc_tape *t;
    uint32_t body, response, metadata;
    bool aiperf;
};

static uint32_t object_member(const struct kvc_tape *t, uint32_t at, const char *key)
{
    uint32_t v = kvc_tape_member(t, at, key);
    return v && kvc_tape_kind(t, v) == KVC_JOBJECT ? v : 0;
}

static uint32_t first_object(const struct kvc_tape *t, const char *const *keys)
{
    uint32_t v = 0;
    for (; *keys && !v; keys++)
        v = object_member(t, 0, *keys);
    return v;
}

static void find_parts(struct row *r)
{
    static const char *const requests[] = { "request", "body", "payload", "request_body", "req",
                                            NULL };
    static const char *const responses[] = { "response", "response_body", "completion", "resp",
                                             NULL };
    r->body = first_object(r->t, requests);
    r->response = first_object(r->t, responses);
    if (r->body && object_member(r->t, r->body, "body"))
        r->body = object_member(r->t, r->body, "body");
    if (r->response && object_member(r->t, r->response, "body"))
        r->response = object_member(r->t, r->response, "body");
    r->metadata = object_member(r->t, r->body, "metadata");
    r->aiperf = kvc_tape_member(r->t, 0, "output_length") || kvc_tape_member(r->t, 0, "delay") ||
                kvc_tape_member(r->t, 0, "message_mode") || kvc_tape_member(r->t, 0, "text_input");
}

/* A member of the row, else of the request, else of its metadata. */
static uint32_t anywhere(const struct row *r, const char *key)
{
    uint32_t v = kvc_tape_member(r->t, 0, key);
    if (!v && r->body)
        v = kvc_tape_member(r->t, r->body, key);
    if (!v && r->metadata)
        v = kvc_tape_member(r->t, r->metadata, key);
    return v;
}

static enum kvc_status name(struct row *r, uint32_t v, const char *field, struct kvc_span *out,
                            struct kvc_error *err)
{
    return kvc_tape_name(r->rows, r->t, v, field, &r->at, out, err);
}

static enum kvc_status name_of(struct row *r, const char *const *keys, struct kvc_span *out,
                               struct kvc_error *err)
{
    uint32_t v = 0;
    for (; *keys && !v; keys++)
        if ((v = anywhere(r, *keys)) != 0)
            return name(r, v, *keys, out, err);
    return KVC_OK;
}

/* ---- times ---- */

static enum kvc_status read_times(struct row *r, struct kvc_log_row *row, struct kvc_error *err)
{
    static const char *const keys[] = { "timestamp", "created_at", "start_time", "startTime",
                                        "request_time", "time", "ts", "created", NULL };
    uint32_t v = 0, delay = kvc_tape_member(r->t, 0, "delay");
    struct kvc_decimal number;
    size_t k = 0;
    if (delay && (kvc_tape_kind(r->t, delay) != KVC_JNUMBER ||
                  !kvc_decimal_parse(r->t->v[delay].text, r->t->v[delay].n, &number) ||
                  !kvc_time_from_number(&number, KVC_UNIT_MS, &row->think_ns)))
        return kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, "delay",
                           "milliseconds, 0 or more, are expected");
    for (k = 0; keys[k] && !v; k++)
        v = kvc_tape_member(r->t, 0, keys[k]);
    if (v)
        return kvc_tape_when(r->im, r->t, v, keys[k - 1], r->aiperf ? KVC_UNIT_MS : KVC_UNIT_S,
                             &r->at, &row->time_ns, err);
    static const char *const answered[] = { "created", "created_at" };
    for (k = 0; k < 2 && r->response && !v; k++)
        v = kvc_tape_member(r->t, r->response, answered[k]);
    if (v)
        return kvc_tape_when(r->im, r->t, v, answered[k - 1], KVC_UNIT_S, &r->at, &row->time_ns,
                             err);
    return KVC_OK; /* without one: the driver has a rule for that */
}

/* ---- counts ---- */

static enum kvc_status note_count(struct row *r, struct kvc_usage_counts *counts, uint32_t key,
                                  const char *prefix, struct kvc_error *err)
{
    char path[128];
    uint64_t n;
    const struct kvc_tape_node *k = &r->t->v[key];
    if (!kvc_tape_u64(r->t, key + 1, &n) ||
        snprintf(path, sizeof(path), "%s%s%.*s", prefix, *prefix ? "." : "", (int)k->n,
                 k->text) >= (int)sizeof(path))
        return KVC_OK;
    return kvc_usage_note_number(counts, path, n, "usage", &r->at, err);
}

static enum kvc_status note_usage(struct row *r, uint32_t usage, struct kvc_usage_counts *counts,
                                  struct kvc_error *err)
{
    const struct kvc_tape *t = r->t;
    enum kvc_status status = KVC_OK;
    char prefix[64];
    for (uint32_t i = usage + 1; i < kvc_tape_end(t, usage) && status == KVC_OK;
         i = kvc_tape_next(t, i + 1)) {
        if (kvc_tape_kind(t, i + 1) != KVC_JOBJECT) {
            status = note_count(r, counts, i, "", err);
            continue;
        }
        if (t->v[i].n >= sizeof(prefix))
            continue;
        memcpy(prefix, t->v[i].text, t->v[i].n);
        prefix[t->v[i].n] = '\0';
        for (uint32_t k = i + 2; k < kvc_tape_end(t, i + 1) && status == KVC_OK;
             k = kvc_tape_next(t, k + 1))
            status = note_count(r, counts, k, prefix, err);
    }
    return status;
}

static enum kvc_status read_usage(struct row *r, struct kvc_log_row *row,
                                  struct kvc_text_facts *facts, struct kvc_error *err)
{
    struct kvc_usage_counts counts = { 0 };
    struct kvc_usage usage = { 0 };
    uint32_t v = object_member(r->t, 0, "usage");
    if (!v && r->response)
        v = object_member(r->t, r->response, "usage");
    if (!v && r->body)
        v = object_member(r->t, r->body, "usage");
    enum kvc_status status = KVC_OK;
    if (v)
        status = note_usage(r, v, &counts, err);
    if (status == KVC_OK && v)
        status = kvc_usage_settle(&counts, KVC_USAGE_API, "usage", &r->at, &usage, err);
    if (status != KVC_OK || !v)
        return status;
    kvc_usage_into_row(&usage, row);
    facts->input_stated = usage.prompt_stated && usage.prompt_tokens;
    facts->output_stated = usage.output_stated;
    if (usage.reasoning_stated)
        facts->thinking_tokens = usage.reasoning_tokens;
    return KVC_OK;
}

static enum kvc_status read_count(struct row *r, const char *key, uint32_t *out, bool *stated,
                                  struct kvc_error *err)
{
    return kvc_tape_tokens(r->t, kvc_tape_member(r->t, 0, key), key, &r->at, out, stated, err);
}

/* ---- the row ---- */

static enum kvc_status read_names(struct row *r, struct kvc_log_row *row, struct kvc_error *err)
{
    static const char *const sessions[] = { "session_id", "conversation_id", "chat_id",
                                            "x_session_id", NULL };
    static const char *const models[] = { "model", NULL };
    static const char *const salts[] = { "cache_salt", NULL };
    static const char *const adapters[] = { "lora", "lora_name", "adapter", "lora_request", NULL };
    const char *own[] = { kvc_import_tenant_field(r->im, "tenant"), "user", NULL };
    if (kvc_import_options_of(r->im)->tenant_field)
        own[1] = NULL;
    enum kvc_status status = name_of(r, sessions, &row->session, err);
    if (status == KVC_OK)
        status = name_of(r, models, &row->model, err);
    if (status == KVC_OK && !row->model.text && r->response)
        status = name(r, kvc_tape_member(r->t, r->response, "model"), "model", &row->model, err);
    if (status == KVC_OK)
        status = name_of(r, salts, &row->salt, err);
    uint32_t lora = anywhere(r, "lora_request");
    if (status == KVC_OK && lora && kvc_tape_kind(r->t, lora) == KVC_JOBJECT)
        status = name(r, kvc_tape_member(r->t, lora, "lora_name"), "lora_name", &row->adapter, err);
    else if (status == KVC_OK)
        status = name_of(r, adapters, &row->adapter, err);
    return status == KVC_OK ? name_of(r, own, &row->tenant, err) : status;
}

static bool failed(const struct row *r)
{
    uint64_t code;
    uint32_t status = kvc_tape_member(r->t, 0, "status_code");
    if (!status)
        status = kvc_tape_member(r->t, 0, "status");
    return kvc_tape_member(r->t, 0, "error") ||
           (r->response && kvc_tape_member(r->t, r->response, "error")) ||
           (status && kvc_tape_u64(r->t, status, &code) && code >= 400);
}

static enum kvc_status read_prompt(struct row *r, struct kvc_error *err)
{
    struct kvc_message_doc *d = r->d;
    d->chat.model = d->row.model;
    kvc_chat_begin(&d->chat, &d->prompt);
    if (!kvc_chat_request(&d->chat, &d->prompt, r->t, r->body)) {
        const char *what = d->chat.token_ids ? "a prompt of token ids; texts are expected"
                           : d->chat.several ? "several prompts in one row; give each its own"
                                             : "no prompt here: messages, input, prompt or "
                                               "text_input is expected";
        if (!d->prompt.failed && (!d->facts.input_stated || d->chat.token_ids || d->chat.several))
            return kvc_fail_at(err, KVC_ERR_INPUT, r->at.file, r->at.line, "messages", "%s", what);
    }
    if (d->chat.continues) /* only its end is here */
        kvc_prompt_begin(&d->prompt);
    d->delta = kvc_tape_member(r->t, 0, "message_mode") &&
               kvc_tape_is(r->t, kvc_tape_member(r->t, 0, "message_mode"), "delta");
    d->n_new = d->prompt.n_pieces;
    if (d->delta)
        return KVC_OK;
    kvc_prompt_answer(&d->prompt);
    uint32_t text = kvc_tape_member(r->t, 0, "response");
    if (!r->response && text && kvc_tape_kind(r->t, text) == KVC_JSTRING)
        r->response = text;
    if (r->response && d->prompt.n_pieces > 0 && d->row.status == KVC_ROW_OK &&
        kvc_chat_answer(&d->chat, &d->prompt, r->t, r->response) && d->chat.several)
        d->prompt.n_pieces = d->prompt.n_input; /* which of them goes on is not known */
    return d->prompt.failed ? kvc_fail_nomem(err) : KVC_OK;
}

enum kvc_status kvc_message_read(struct kvc_import *im, struct kvc_tape_rows *rows,
                                 const struct kvc_tape *t, struct kvc_message_doc *d,
                                 struct kvc_error *err)
{
    struct row r = { .im = im, .d = d, .rows = rows, .t = t,
                     .at = { kvc_import_file(im), kvc_import_line_number(im) } };
    bool output = false;
    d->row = (struct kvc_log_row){ .time_ns = KVC_TIME_NONE, .think_ns = KVC_TIME_NONE };
    d->facts = (struct kvc_text_facts){ .thinking_tokens = KVC_ID_NONE };
    find_parts(&r);
    enum kvc_status status = read_names(&r, &d->row, err);
    if (status == KVC_OK)
        status = read_times(&r, &d->row, err);
    if (status == KVC_OK)
        status = read_usage(&r, &d->row, &d->facts, err);
    if (status == KVC_OK && !d->facts.output_stated)
        status = read_count(&r, "output_length", &d->row.output_tokens, &output, err);
    if (status == KVC_OK && !d->facts.input_stated)
        status = read_count(&r, "input_length", &d->row.input_tokens, &d->facts.input_stated, err);
    d->facts.input_stated = d->facts.input_stated && d->row.input_tokens;
    d->facts.output_limit = output;
    d->row.status = failed(&r) ? KVC_ROW_FAILED : KVC_ROW_OK;
    return status == KVC_OK ? read_prompt(&r, err) : status;
}
