/* SPDX-License-Identifier: Apache-2.0
 * LiteLLM spend logs (BerriAI/litellm, table LiteLLM_SpendLogs), as JSON lines, a JSON list or CSV:
 * what a gateway saw of each call, and what it was billed. */
#include "base/error.h"
#include "traces/formats/usage.h"
#include "traces/import/sniff.h"
#include "traces/parse/records.h"
#include "traces/text/stored_text.h"
#include "traces/trace.h"

#include <string.h>
#include <strings.h>

struct call { /* one record on its way to a row */
    struct kvc_import *im;
    const struct kvc_place *at;
    const struct kvc_jval *root, *metadata;
    struct kvc_jval *parsed_metadata, *parsed_response, *parsed_tenant;
    struct kvc_stored *stored;
    struct kvc_usage usage;
    struct kvc_log_row row;
    char tenant[24], session[24], model[24];
};

/* Calls that generate no text, and so fill no KV cache that matters here. */
static bool other_work(const struct kvc_jval *root)
{
    static const char *const words[] = { "embedding", "image", "speech", "transcription", "rerank",
                                         "moderation", "video", "_file", "_batch", "vector_store",
                                         "search", "ocr" };
    const struct kvc_jval *v = kvc_field_member(root, "call_type");
    const char *type = v ? kvc_jval_string(v) : NULL;
    for (size_t i = 0; type && i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(type, words[i]))
            return true;
    return false;
}

static bool has_input(const struct kvc_usage_counts *counts)
{
    return counts->name[KVC_USAGE_PROMPT] || counts->name[KVC_USAGE_INPUT];
}

/* What the provider said, kept in metadata or with the whole answer. *within: where it stands. */
static enum kvc_status note_objects(struct call *c, struct kvc_usage_counts *counts,
                                    const char **within, struct kvc_error *err)
{
    static const char *const places[] = { "metadata.usage_object",
                                          "metadata.additional_usage_values", "metadata.usage" };
    enum kvc_status status = KVC_OK;
    *within = NULL;
    for (size_t i = 0; i < 3 && c->metadata && status == KVC_OK; i++) {
        const struct kvc_jval *v = kvc_field_member(c->metadata,
                                                    places[i] + strlen("metadata."));
        status = kvc_usage_note_object(counts, v, places[i], c->at, err);
        if (v && !*within)
            *within = places[i];
    }
    if (status != KVC_OK || has_input(counts))
        return status;
    const struct kvc_jval *response = kvc_record_json(kvc_field_member(c->root, "response"),
                                                      &c->parsed_response);
    const struct kvc_jval *usage = response ? kvc_field_member(response, "usage") : NULL;
    if (usage)
        *within = "response.usage";
    return kvc_usage_note_object(counts, usage, "response.usage", c->at, err);
}

/* The columns are the gateway's own sums: for what the provider's object does not say. */
static enum kvc_status read_usage(struct call *c, struct kvc_error *err)
{
    static const char *const columns[] = { "prompt_tokens", "completion_tokens", "total_tokens",
                                           "cache_read_input_tokens",
                                           "cache_creation_input_tokens" };
    struct kvc_usage_counts own = { 0 }, counts = { 0 };
    const char *within;
    enum kvc_status status = note_objects(c, &counts, &within, err);
    bool input = has_input(&counts);
    for (size_t i = 0; i < 5 && status == KVC_OK; i++) {
        const struct kvc_jval *v = kvc_field_member(c->root, columns[i]);
        status = v ? kvc_usage_note(&own, columns[i], v, NULL, c->at, err) : KVC_OK;
    }
    for (unsigned s = 0; s < KVC_USAGE_SLOTS; s++)
        if (!counts.name[s] && own.name[s] && (s != KVC_USAGE_PROMPT || !input)) {
            counts.name[s] = own.name[s];
            counts.v[s] = own.v[s];
        }
    if (status == KVC_OK)
        status = kvc_usage_settle(&counts, KVC_USAGE_API, within, c->at, &c->usage, err);
    return status;
}

static enum kvc_status read_times(struct call *c, struct kvc_error *err)
{
    const struct kvc_jval *start = kvc_field_member(c->root, "startTime");
    const struct kvc_jval *end = kvc_field_member(c->root, "endTime");
    const struct kvc_jval *first = kvc_field_member(c->root, "completionStartTime");
    uint64_t end_ns, first_ns;
    if (!start)
        return kvc_field_missing(c->at, "startTime", err);
    enum kvc_status status = kvc_record_when(c->im, c->at, "startTime", start, &c->row.time_ns,
                                             err);
    if (status != KVC_OK || !end ||
        kvc_record_when(c->im, c->at, "endTime", end, &end_ns, NULL) != KVC_OK)
        return status;
    if (end_ns < c->row.time_ns)
        kvc_import_tally(c->im, "ended before they started, by endTime; startTime is used");
    else
        c->row.end_ns = end_ns;
    if (first && kvc_record_when(c->im, c->at, "completionStartTime", first, &first_ns, NULL) ==
                     KVC_OK && first_ns < end_ns)
        kvc_import_tally(c->im, "streamed (the first token came before the end)");
    return KVC_OK;
}

static uint8_t outcome(const struct call *c)
{
    struct kvc_jval *none = NULL;
    const struct kvc_jval *v = kvc_field_member(c->root, "status");
    if ((!v || !kvc_jval_string(v) || !*kvc_jval_string(v)) && c->metadata)
        v = kvc_field_member(c->metadata, "status");
    const char *status = v ? kvc_jval_string(v) : NULL;
    if (!status || strcasecmp(status, "success") == 0 || !*status)
        return KVC_ROW_OK;
    v = c->metadata ? kvc_record_at(c->metadata, "error_information.error_code", &none) : NULL;
    const char *code = v ? kvc_jval_string(v) : NULL;
    kvc_json_free(none);
    bool left = strcasecmp(status, "cancelled") == 0 || strcasecmp(status, "canceled") == 0 ||
                (code && strcmp(code, "499") == 0);
    return left ? KVC_ROW_CANCELLED : KVC_ROW_FAILED;
}

static enum kvc_status read_names(struct call *c, struct kvc_error *err)
{
    enum kvc_status status = kvc_record_name(c->at, "model|model_group", c->root, c->model,
                                             &c->row.model, err);
    if (status == KVC_OK)
        status = kvc_record_name(c->at, "session_id", c->root, c->session, &c->row.session, err);
    if (status == KVC_OK)
        status = kvc_record_tenant(c->im, c->at, "team_id", c->root, c->tenant,
                                   &c->parsed_tenant, &c->row.tenant, err);
    return status;
}

static void read_spend(struct call *c)
{
    const struct kvc_jval *v = kvc_record_any(c->root, "spend|response_cost", NULL);
    c->row.spend_stated = kvc_record_double(v, &c->row.spend_usd) && c->row.spend_usd >= 0;
}

static enum kvc_status read_call(struct call *c, struct kvc_error *err)
{
    c->row.think_ns = KVC_TIME_NONE;
    c->row.status = outcome(c);
    enum kvc_status status = read_times(c, err);
    if (status == KVC_OK)
        status = read_usage(c, err);
    if (status == KVC_OK)
        status = read_names(c, err);
    if (status != KVC_OK)
        return status;
    read_spend(c);
    kvc_usage_into_row(&c->usage, &c->row);
    if (c->usage.against_custom)
        kvc_import_tally(c->im, "count cached tokens beside the prompt, as only that adds up; the "
                                "others inside it");
    if (c->usage.total_differs)
        kvc_import_tally(c->im, "total_tokens is no sum of the parts; the parts are used");
    return KVC_OK;
}

/* The request as it came (with tools) where the gateway kept it, else the messages. */
static enum kvc_status hand_on(struct call *c, struct kvc_error *err)
{
    kvc_stored_begin(c->stored, &c->row.model);
    if (!kvc_stored_request(c->stored, kvc_field_member(c->root, "proxy_server_request")) &&
        !kvc_stored_request(c->stored, kvc_field_member(c->root, "messages")))
        kvc_stored_begin(c->stored, &c->row.model);
    kvc_stored_answer(c->stored, kvc_field_member(c->root, "response"));
    return kvc_stored_hand_on(c->stored, c->im, &c->row, c->usage.prompt_stated,
                              c->usage.output_stated,
                              c->usage.reasoning_stated ? c->usage.reasoning_tokens : KVC_ID_NONE,
                              err);
}

static enum kvc_status one(struct kvc_records *r, void *stored, const struct kvc_jval *root,
                           struct kvc_error *err)
{
    struct call c = { .im = r->im, .at = &r->at, .root = root, .stored = stored };
    struct kvc_error bad;
    enum kvc_status status = KVC_OK;
    c.metadata = kvc_record_json(kvc_field_member(root, "metadata"), &c.parsed_metadata);
    if (kvc_record_yes(kvc_field_member(root, "cache_hit")))
        kvc_import_gateway_answered(r->im);
    else if (other_work(root))
        kvc_import_tally(r->im, "no text generation, by call_type; left out");
    else if (read_call(&c, &bad) == KVC_OK)
        status = hand_on(&c, err);
    else
        status = kvc_import_bad(r->im, &bad, err);
    kvc_json_free(c.parsed_metadata);
    kvc_json_free(c.parsed_response);
    kvc_json_free(c.parsed_tenant);
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct kvc_stored stored = { 0 };
    enum kvc_status status = kvc_records_each(im, one, &stored, err);
    kvc_stored_clear(&stored);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    static const char *const own[] = { "startTime", "call_type", NULL };
    static const char *const spend[] = { "startTime", "spend", NULL };
    static const char *const columns[] = { "request_id", "call_type", "startTime", NULL };
    static const char *const few[] = { "startTime", "spend", "prompt_tokens", NULL };
    return kvc_json_sniff(head, n, own) || kvc_json_sniff(head, n, spend) ||
           kvc_csv_sniff(head, n, columns) || kvc_csv_sniff(head, n, few);
}

const struct kvc_format kvc_format_litellm = {
    .name = "litellm",
    .summary = "LiteLLM spend logs: JSON lines, a JSON list or CSV",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
};
