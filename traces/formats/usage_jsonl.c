/* SPDX-License-Identifier: Apache-2.0
 * Answers of APIs with their usage objects, or the usage objects alone, one a line: of OpenAI,
 * Anthropic and whoever speaks like them. When each came has to be written beside it. */
#include "base/error.h"
#include "traces/formats/usage.h"
#include "traces/import/sniff.h"
#include "traces/parse/records.h"
#include "traces/trace.h"

#include <string.h>

#define TIMES "timestamp|created|created_at|time"
#define NO_TIME                                                                                    \
    "no time: a usage object does not say when. Write \"timestamp\" (seconds since 1970 or a date "\
    "and time) into each line as it is logged, or have times drawn with --arrivals poisson:R"

struct answer {
    struct kvc_import *im;
    const struct kvc_place *at;
    const struct kvc_jval *root, *body, *usage; /* body: the API's answer in the row, or the row */
    const char *within;
    struct kvc_jval *parsed_tenant;
    struct kvc_usage counted;
    struct kvc_log_row row;
    char tenant[24], session[24], model[24];
};

static bool is_object(const struct kvc_jval *v)
{
    return v && kvc_jval_kind(v) == KVC_JOBJECT;
}

/* The usage object, and the answer it is of: the row, or a member "response" or "message" of it, or
 * the "body" of that as in files of OpenAI's batches. */
static void find_usage(struct answer *a)
{
    static const char *const members[] = { "response", "message", "body", "result" };
    a->body = a->root;
    for (unsigned depth = 0; depth < 3; depth++) {
        a->usage = kvc_field_member(a->body, "usage");
        if (is_object(a->usage)) {
            a->within = "usage";
            return;
        }
        const struct kvc_jval *inner = NULL;
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && !is_object(inner); i++)
            inner = kvc_field_member(a->body, members[i]);
        if (!is_object(inner))
            break;
        a->body = inner;
    }
    a->usage = kvc_field_member(a->root, "usageMetadata");
    a->within = "usageMetadata";
    if (is_object(a->usage))
        return;
    a->usage = a->body = a->root;
    a->within = NULL;
}

static const struct kvc_jval *either(const struct answer *a, const char *names, char field[64])
{
    const struct kvc_jval *v = kvc_record_any(a->root, names, field);
    return v ? v : kvc_record_any(a->body, names, field);
}

static enum kvc_status read_answer(struct answer *a, struct kvc_error *err)
{
    char field[64];
    const struct kvc_jval *time = either(a, TIMES, field);
    const struct kvc_jval *models = kvc_record_any(a->root, "model", NULL) ? a->root : a->body;
    bool drawn = kvc_import_options_of(a->im)->arrivals != NULL;
    enum kvc_status status = KVC_OK;
    a->row.think_ns = a->row.time_ns = KVC_TIME_NONE;
    if (!time && !drawn)
        return kvc_fail_at(err, KVC_ERR_INPUT, a->at->file, a->at->line, "timestamp", NO_TIME);
    if (time)
        status = kvc_record_when(a->im, a->at, field, time, &a->row.time_ns, err);
    if (status == KVC_OK)
        status = kvc_usage_read(a->usage, KVC_USAGE_API, a->within, a->at, &a->counted, err);
    if (status == KVC_OK && !a->counted.prompt_stated)
        status = kvc_field_missing(a->at, a->within ? "usage.prompt_tokens" : "prompt_tokens", err);
    if (status == KVC_OK)
        status = kvc_record_name(a->at, "model", models, a->model, &a->row.model, err);
    if (status == KVC_OK)
        status = kvc_record_name(a->at, "session_id|conversation_id", a->root, a->session,
                                 &a->row.session, err);
    if (status == KVC_OK)
        status = kvc_record_tenant(a->im, a->at, "user", a->root, a->tenant, &a->parsed_tenant,
                                   &a->row.tenant, err);
    if (status == KVC_OK)
        kvc_usage_into_row(&a->counted, &a->row);
    if (status == KVC_OK && !a->counted.output_stated)
        a->row.output_tokens = KVC_TOKENS_UNKNOWN;
    return status;
}

/* Parts of a streamed answer repeat what the last one sums up. */
static bool is_part(const struct answer *a)
{
    const struct kvc_jval *object = kvc_field_member(a->body, "object");
    const struct kvc_jval *choices = kvc_field_member(a->body, "choices");
    const char *kind = object ? kvc_jval_string(object) : NULL;
    bool chunk = kind && strstr(kind, ".chunk");
    return chunk && ((choices && kvc_jval_count(choices)) || a->usage == a->root);
}

static enum kvc_status one(struct kvc_records *r, void *user, const struct kvc_jval *root,
                           struct kvc_error *err)
{
    (void)user;
    struct answer a = { .im = r->im, .at = &r->at, .root = root };
    struct kvc_error bad;
    enum kvc_status status = KVC_OK;
    find_usage(&a);
    if (is_part(&a))
        kvc_import_tally(r->im, "parts of streamed answers; only the last, with the usage and no "
                                "choices, counts");
    else if (is_object(kvc_field_member(a.body, "error")) && a.usage == root)
        kvc_import_failed_unseen(r->im);
    else if (read_answer(&a, &bad) != KVC_OK)
        status = kvc_import_bad(r->im, &bad, err);
    else if (!a.row.input_tokens)
        kvc_import_tally(r->im, "no prompt token was counted; left out");
    else
        status = kvc_import_row(r->im, &a.row, false, err);
    kvc_json_free(a.parsed_tenant);
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    return kvc_records_each(im, one, NULL, err);
}

static bool sniff(const char *head, size_t n)
{
    static const char *const own[][3] = {
        { "usage.prompt_tokens", NULL }, { "usage.input_tokens", NULL },
        { "response.usage.prompt_tokens", NULL }, { "response.usage.input_tokens", NULL },
        { "response.body.usage.prompt_tokens", NULL }, { "message.usage.input_tokens", NULL },
        { "prompt_tokens", "completion_tokens", NULL }, { "input_tokens", "output_tokens", NULL },
        { "usageMetadata.promptTokenCount", NULL },
    };
    static const char *const messages[] = { "messages", NULL };
    static const char *const sglang[] = { "request_parameters", "completion_tokens", NULL };
    bool found = false;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && !found; i++)
        found = kvc_json_sniff(head, n, own[i]);
    return found && !kvc_json_sniff(head, n, messages) && !kvc_json_sniff(head, n, sglang);
}

const struct kvc_format kvc_format_usage_jsonl = {
    .name = "usage-jsonl",
    .summary = "answers of OpenAI, Anthropic and alike with usage, or usage alone, one a line",
    .sniff = sniff,
    .read = read_log,
};
