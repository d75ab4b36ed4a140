/* SPDX-License-Identifier: Apache-2.0
 * Langfuse observations, as the blob export (snake_case; JSON lines, a JSON list, CSV) and the API
 * (camelCase) give them. Calls of models are those of type GENERATION. */
#include "base/error.h"
#include "traces/formats/usage.h"
#include "traces/parse/records.h"
#include "traces/text/stored_text.h"
#include "traces/trace.h"

#include <string.h>
#include <strings.h>

struct observation { /* one record on its way to a row */
    struct kvc_import *im;
    const struct kvc_place *at;
    const struct kvc_jval *root;
    struct kvc_jval *parsed_usage, *parsed_cost, *parsed_tenant;
    struct kvc_stored *stored;
    struct kvc_usage usage;
    struct kvc_log_row row;
    char tenant[24], session[24], model[24];
};

/* ---- usage ---- */

/* Parts of the input that have no name of their own here: images, audio, video. */
static enum kvc_status note_other_parts(struct kvc_usage_counts *counts,
                                        const struct kvc_jval *usage, const char *field,
                                        const struct kvc_place *at, struct kvc_error *err)
{
    uint64_t sum = 0, n;
    for (const struct kvc_jval *v = kvc_jval_first(usage); v; v = kvc_jval_next(v)) {
        const char *key = kvc_jval_key(v);
        if (strncmp(key, "input_", 6) == 0 && !kvc_usage_known(key) && kvc_jval_u64(v, &n) &&
            n <= KVC_TOKENS_MAX)
            sum += n;
    }
    if (!sum)
        return KVC_OK;
    sum += counts->v[KVC_USAGE_INPUT_OTHER];
    counts->v[KVC_USAGE_INPUT_OTHER] = 0;
    return kvc_usage_note_number(counts, "input_audio_tokens", sum, field, at, err);
}

/* Before there were maps: columns of their own. */
static enum kvc_status note_columns(struct observation *o, struct kvc_usage_counts *counts,
                                    struct kvc_error *err)
{
    static const char *const columns[][2] = { { "promptTokens|prompt_tokens", "input" },
                                              { "completionTokens|completion_tokens", "output" },
                                              { "totalTokens|total_tokens", "total" } };
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < 3 && status == KVC_OK; i++) {
        const struct kvc_jval *v = kvc_record_any(o->root, columns[i][0], NULL);
        status = v ? kvc_usage_note(counts, columns[i][1], v, NULL, o->at, err) : KVC_OK;
    }
    return status;
}

static enum kvc_status read_usage(struct observation *o, struct kvc_error *err)
{
    struct kvc_usage_counts counts = { 0 };
    char field[64];
    const struct kvc_jval *v = kvc_record_any(o->root, "usage_details|usageDetails|usage", field);
    const struct kvc_jval *map = kvc_record_json(v, &o->parsed_usage);
    if (v && (!map || kvc_jval_kind(map) != KVC_JOBJECT))
        return kvc_field_wrong(o->at, field, v, "an object of token counts is expected", err);
    const struct kvc_jval *unit = kvc_record_any(map ? map : o->root, "unit", NULL);
    if (unit && kvc_jval_string(unit) && strcasecmp(kvc_jval_string(unit), "TOKENS") != 0)
        return kvc_field_wrong(o->at, "unit", unit, "only usage counted in TOKENS is of use here",
                               err);
    enum kvc_status status = kvc_usage_note_object(&counts, map, field, o->at, err);
    if (status == KVC_OK && map)
        status = note_other_parts(&counts, map, field, o->at, err);
    if (status == KVC_OK && !counts.name[KVC_USAGE_INPUT] && !counts.name[KVC_USAGE_PROMPT])
        status = note_columns(o, &counts, err);
    if (status == KVC_OK)
        status = kvc_usage_settle(&counts, KVC_USAGE_LANGFUSE, field, o->at, &o->usage, err);
    if (status != KVC_OK)
        return status;
    if (o->usage.total_differs)
        kvc_import_tally(o->im, "the total of usage_details is no sum of its parts; the parts are "
                                "used, cached tokens beside the input");
    else if (o->usage.cached_tokens && !o->usage.exclusive)
        kvc_import_tally(o->im, "count cached tokens inside the input, by their total; the others "
                                "beside it");
    return KVC_OK;
}

/* ---- the rest ---- */

static enum kvc_status read_times(struct observation *o, struct kvc_error *err)
{
    char field[64];
    uint64_t end_ns, first_ns;
    const struct kvc_jval *v = kvc_record_any(o->root, "start_time|startTime", field);
    if (!v)
        return kvc_field_missing(o->at, field, err);
    enum kvc_status status = kvc_record_when(o->im, o->at, field, v, &o->row.time_ns, err);
    if (status != KVC_OK)
        return status;
    v = kvc_record_any(o->root, "end_time|endTime", field);
    if (!v) {
        kvc_import_tally(o->im, "no end_time: they never ended, or not before the export");
    } else if (kvc_record_when(o->im, o->at, field, v, &end_ns, NULL) == KVC_OK) {
        if (end_ns < o->row.time_ns)
            kvc_import_tally(o->im, "ended before they started, by end_time; start_time is used");
        else
            o->row.end_ns = end_ns;
    }
    v = kvc_record_any(o->root, "completion_start_time|completionStartTime", field);
    if (v && kvc_record_when(o->im, o->at, field, v, &first_ns, NULL) == KVC_OK)
        kvc_import_tally(o->im, "streamed (a time of the first token is given)");
    return KVC_OK;
}

static enum kvc_status read_names(struct observation *o, struct kvc_error *err)
{
    enum kvc_status status = kvc_record_name(o->at, "provided_model_name|providedModelName|model",
                                             o->root, o->model, &o->row.model, err);
    if (status == KVC_OK)
        status = kvc_record_name(o->at, "session_id|sessionId", o->root, o->session,
                                 &o->row.session, err);
    if (status == KVC_OK)
        status = kvc_record_tenant(o->im, o->at,
                                   kvc_field_member(o->root, "userId") ? "userId" : "user_id",
                                   o->root, o->tenant, &o->parsed_tenant, &o->row.tenant, err);
    return status;
}

static void read_spend(struct observation *o)
{
    const struct kvc_jval *v = kvc_record_any(o->root, "total_cost|totalCost|calculatedTotalCost",
                                              NULL);
    const struct kvc_jval *map = v ? NULL
                                   : kvc_record_json(kvc_record_any(o->root,
                                                                    "cost_details|costDetails",
                                                                    NULL),
                                                     &o->parsed_cost);
    if (map)
        v = kvc_field_member(map, "total");
    o->row.spend_stated = kvc_record_double(v, &o->row.spend_usd) && o->row.spend_usd >= 0;
}

static enum kvc_status read_observation(struct observation *o, struct kvc_error *err)
{
    const struct kvc_jval *level = kvc_field_member(o->root, "level");
    bool failed = level && kvc_jval_string(level) &&
                  strcasecmp(kvc_jval_string(level), "ERROR") == 0;
    o->row.think_ns = KVC_TIME_NONE;
    o->row.status = failed ? KVC_ROW_FAILED : KVC_ROW_OK;
    enum kvc_status status = read_times(o, err);
    if (status == KVC_OK)
        status = read_usage(o, err);
    if (status == KVC_OK)
        status = read_names(o, err);
    if (status != KVC_OK)
        return status;
    read_spend(o);
    kvc_usage_into_row(&o->usage, &o->row);
    return KVC_OK;
}

static enum kvc_status hand_on(struct observation *o, struct kvc_error *err)
{
    kvc_stored_begin(o->stored, &o->row.model);
    if (!kvc_stored_request(o->stored, kvc_field_member(o->root, "input")))
        kvc_stored_begin(o->stored, &o->row.model);
    kvc_stored_answer(o->stored, kvc_field_member(o->root, "output"));
    return kvc_stored_hand_on(o->stored, o->im, &o->row, o->usage.prompt_stated,
                              o->usage.output_stated,
                              o->usage.reasoning_stated ? o->usage.reasoning_tokens : KVC_ID_NONE,
                              err);
}

static bool is_generation(const struct kvc_jval *root)
{
    const struct kvc_jval *v = kvc_field_member(root, "type");
    const char *type = v ? kvc_jval_string(v) : NULL;
    return !type || strcasecmp(type, "GENERATION") == 0;
}

static enum kvc_status one(struct kvc_records *r, void *stored, const struct kvc_jval *root,
                           struct kvc_error *err)
{
    struct observation o = { .im = r->im, .at = &r->at, .root = root, .stored = stored };
    struct kvc_error bad;
    enum kvc_status status = KVC_OK;
    if (!is_generation(root))
        kvc_import_tally(r->im, "not of type GENERATION (spans, tools, events); left out");
    else if (read_observation(&o, &bad) == KVC_OK)
        status = hand_on(&o, err);
    else
        status = kvc_import_bad(r->im, &bad, err);
    kvc_json_free(o.parsed_usage);
    kvc_json_free(o.parsed_cost);
    kvc_json_free(o.parsed_tenant);
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
    static const char *const own[][4] = {
        { "trace_id", "type", "start_time", NULL },
        { "traceId", "type", "startTime", NULL },
        { "start_time", "usage_details", NULL, NULL },
        { "startTime", "usageDetails", NULL, NULL },
    };
    static const char *const columns[] = { "trace_id", "type", "start_time", NULL };
    static const char *const usage[] = { "start_time", "usage_details", NULL };
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (kvc_json_sniff(head, n, own[i]))
            return true;
    return kvc_csv_sniff(head, n, columns) || kvc_csv_sniff(head, n, usage);
}

const struct kvc_format kvc_format_langfuse = {
    .name = "langfuse",
    .summary = "Langfuse observations: JSON lines, a JSON list or CSV",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
};
