/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_args.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"
#include "traces/where.h"

#include <stdio.h>
#include <string.h>

/* "10m:2h", ":2h" or "10m:". */
static int parse_window(struct kvc_cli *cli, const char *text, struct kvc_import_options *out)
{
    char begin[64] = "0s";
    const char *colon = strchr(text, ':');
    struct kvc_error err = {0};
    if (!colon || (size_t)(colon - text) >= sizeof(begin) || (colon == text && !colon[1]))
        return kvc_cli_usage(cli, "--window %s: A:B is expected, two times from the first request, "
                             "as in 10m:2h, :2h or 10m:", text);
    if (colon > text)
        snprintf(begin, sizeof(begin), "%.*s", (int)(colon - text), text);
    if (kvc_parse_ns(begin, "--window", &out->window_begin_ns, &err) != KVC_OK ||
        (colon[1] && kvc_parse_ns(colon + 1, "--window", &out->window_end_ns, &err) != KVC_OK))
        return kvc_cli_usage(cli, "--window %s: %s", text, err.text);
    if (colon[1] && out->window_end_ns <= out->window_begin_ns)
        return kvc_cli_usage(cli, "--window %s: the end must come after the beginning", text);
    return KVC_EXIT_OK;
}

static int parse_forget(struct kvc_cli *cli, struct kvc_import_options *out)
{
    const char *text = kvc_cli_value(cli, "forget");
    struct kvc_error err = {0};
    if (text && (kvc_parse_ns(text, "--forget", &out->forget_ns, &err) != KVC_OK ||
                 out->forget_ns == 0))
        return kvc_cli_usage(cli, "--forget %s: %s", text,
                             err.text[0] ? err.text : "a time above 0 is expected");
    return KVC_EXIT_OK;
}

int kvc_cli_import_options(struct kvc_cli *cli, struct kvc_import_options *out)
{
    const char *text = kvc_cli_value(cli, "block-tokens");
    uint64_t block = 0;
    *out = (struct kvc_import_options){.struct_size = sizeof(*out)};
    if (text && (kvc_parse_u64(text, "block-tokens", &block, NULL) != KVC_OK || block == 0 ||
                 block > INT32_MAX))
        return kvc_cli_usage(cli, "--block-tokens %s: a whole number from 1 to 2^31-1 is expected",
                             text);
    out->block_tokens = (uint32_t)block;
    out->format = kvc_cli_value(cli, "format");
    out->strict = kvc_cli_flag(cli, "strict");
    out->tenant_field = kvc_cli_value(cli, "tenant-field");
    out->key_field = kvc_cli_value(cli, "key-field");
    out->time_unit = kvc_cli_value(cli, "time-unit");
    if (out->time_unit && !kvc_name_equal(out->time_unit, "s") &&
        !kvc_name_equal(out->time_unit, "ms") && !kvc_name_equal(out->time_unit, "us") &&
        !kvc_name_equal(out->time_unit, "ns"))
        return kvc_cli_usage(cli, "--time-unit %s: s, ms, us or ns is expected", out->time_unit);
    out->tokenizer = kvc_cli_value(cli, "tokenizer");
    out->salt_file = kvc_cli_value(cli, "salt-file");
    out->arrivals = kvc_cli_value(cli, "arrivals");
    out->where = kvc_cli_value(cli, "where");
    struct kvc_error err = {0};
    if (out->where && kvc_where_check(out->where, &err) != KVC_OK)
        return kvc_cli_usage(cli, "--where %s: %s", out->where, err.text);
    if (out->where && kvc_cli_flag(cli, "anonymize"))
        return kvc_cli_usage(cli, "--where knows names, which --anonymize takes away: export the "
                                  "part, and import that anonymized");
    out->seed = kvc_cli_seed(cli);
    const char *window = kvc_cli_value(cli, "window");
    int rc = window ? parse_window(cli, window, out) : KVC_EXIT_OK;
    if (rc != KVC_EXIT_OK)
        return rc;
    rc = parse_forget(cli, out);
    if (rc != KVC_EXIT_OK)
        return rc;
    out->csv_columns = kvc_cli_value(cli, "csv-columns");
    out->merge_models = kvc_cli_flag(cli, "merge-models");
    out->anonymize = kvc_cli_flag(cli, "anonymize");
    out->infer_sessions = kvc_cli_flag(cli, "infer-sessions");
    out->progress = kvc_cli_progress(cli, &out->progress_user);
    return KVC_EXIT_OK;
}

enum kvc_status kvc_cli_sample(const struct kvc_cli *cli, uint32_t *weight, struct kvc_error *err)
{
    const char *text = kvc_cli_value(cli, "sample");
    double rate;
    *weight = 0;
    if (!text)
        return KVC_OK;
    if (kvc_parse_double(text, "--sample", &rate, err) != KVC_OK ||
        !(rate >= 1e-4 && rate <= 0.125))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--sample", "%.32s is not a share of the "
                           "trace from 0.0001 to 0.125", text);
    *weight = (uint32_t)(1 / rate + 0.5);
    return KVC_OK;
}

void kvc_cli_json_begin(struct kvc_json *j, const char *schema)
{
    kvc_json_init(j, true);
    kvc_json_open_object(j, NULL);
    kvc_json_string(j, "schema", schema);
    kvc_json_string(j, "version", kvc_version());
}

enum kvc_status kvc_cli_json_print(struct kvc_json *j, struct kvc_error *err)
{
    kvc_json_close(j);
    char *text = kvc_json_take(j);
    if (!text)
        return kvc_fail_nomem(err);
    puts(text);
    kvc_free(text);
    return KVC_OK;
}

void kvc_cli_json_trace(struct kvc_json *j, const struct kvc_trace_stats *s)
{
    kvc_json_open_object(j, "trace");
    kvc_json_u64(j, "requests", s->requests);
    kvc_json_double(j, "span_s", (double)s->span_ns * 1e-9);
    if (s->has_tokens) {
        kvc_json_u64(j, "input_tokens", s->input_tokens);
        if (s->unknown_outputs < s->requests)
            kvc_json_u64(j, "output_tokens", s->output_tokens);
        else
            kvc_json_null(j, "output_tokens");
    } else {
        kvc_json_null(j, "input_tokens");
        kvc_json_null(j, "output_tokens");
    }
    if (s->has_prefix && s->has_tokens)
        kvc_json_u64(j, "block_tokens", s->block_tokens);
    else
        kvc_json_null(j, "block_tokens");
    kvc_json_u64(j, "block_touches", s->block_touches);
    kvc_json_u64(j, "full_block_touches", s->full_block_touches);
    kvc_json_u64(j, "blocks", s->blocks);
    kvc_json_u64(j, "segment_touches", s->segment_touches);
    kvc_json_u64(j, "segments", s->segments);
    kvc_json_u64(j, "sessions", s->sessions);
    kvc_json_u64(j, "tenants", s->tenants);
    kvc_json_u64(j, "models", s->models);
    kvc_json_u64(j, "unknown_outputs", s->unknown_outputs);
    kvc_json_u64(j, "distinct_arrivals", s->distinct_arrivals);
    if (s->batch_period_ns)
        kvc_json_double(j, "batch_period_s", (double)s->batch_period_ns * 1e-9);
    else
        kvc_json_null(j, "batch_period_s");
    if (s->forgotten_blocks) {
        kvc_json_double(j, "forget_s", (double)s->forget_ns * 1e-9);
        kvc_json_u64(j, "forgotten_blocks", s->forgotten_blocks);
        kvc_json_u64(j, "unjudged_tokens", s->unjudged_tokens);
    }
    if (s->sample.weight) {
        kvc_json_open_object(j, "sample_of"); /* the whole log */
        kvc_json_u64(j, "one_in", s->sample.weight);
        kvc_json_u64(j, "requests", s->sample.requests);
        kvc_json_u64(j, "input_tokens", s->sample.input_tokens);
        kvc_json_u64(j, "output_tokens", s->sample.output_tokens);
        kvc_json_u64(j, "block_touches", s->sample.block_touches);
        kvc_json_close(j);
    }
    kvc_json_string(j, "digest", s->digest);
    kvc_json_close(j);
}

/* Whether engines could read what others of them store; null where the log can't tell. */
static void put_keys(struct kvc_json *j, const struct kvc_import_report *r)
{
    if (!r->key_instances) {
        kvc_json_null(j, "keys");
        return;
    }
    kvc_json_open_object(j, "keys");
    kvc_json_u64(j, "instances", r->key_instances);
    kvc_json_u64(j, "stored_blocks", r->key_stored_blocks);
    kvc_json_u64(j, "unreadable_if_salted_blocks", r->key_copied_blocks);
    if (r->key_hit_blocks_shared != UINT64_MAX) {
        kvc_json_u64(j, "hit_blocks_if_shared", r->key_hit_blocks_shared);
        kvc_json_u64(j, "hit_blocks_if_salted", r->key_hit_blocks_apart);
    } else {
        kvc_json_null(j, "hit_blocks_if_shared");
        kvc_json_null(j, "hit_blocks_if_salted");
    }
    kvc_json_close(j);
}

void kvc_cli_json_report(struct kvc_json *j, const struct kvc_import_report *r)
{
    char text[1024];
    kvc_json_open_object(j, "import");
    kvc_json_u64(j, "rows", r->rows);
    kvc_json_u64(j, "accepted", r->accepted);
    kvc_json_u64(j, "bad", r->bad);
    kvc_json_u64(j, "blank", r->blank);
    kvc_json_u64(j, "odd", r->odd);
    kvc_json_u64(j, "inversions", r->inversions);
    kvc_json_u64(j, "without_ids", r->without_ids);
    kvc_json_u64(j, "repeated_ids", r->repeated_ids);
    kvc_json_u64(j, "floor_rows", r->floor_rows);
    kvc_json_u64(j, "ceil_rows", r->ceil_rows);
    kvc_json_u64(j, "zero_output", r->zero_output);
    kvc_json_u64(j, "unknown_output", r->unknown_output);
    kvc_json_u64(j, "failed", r->failed);
    kvc_json_u64(j, "cancelled", r->cancelled);
    kvc_json_u64(j, "gateway_answered", r->gateway_answered);
    kvc_json_u64(j, "cached_rows", r->cached_rows);
    kvc_json_u64(j, "cached_of_tokens", r->cached_of_tokens);
    kvc_json_u64(j, "cached_tokens", r->cached_tokens);
    kvc_json_u64(j, "cache_write_tokens", r->cache_write_tokens);
    kvc_json_u64(j, "spend_rows", r->spend_rows);
    kvc_json_double(j, "spend_usd", r->spend_usd);
    kvc_json_u64(j, "bytes", r->bytes_in);
    kvc_json_u64(j, "forgotten_blocks", r->forgotten_blocks);
    kvc_json_u64(j, "unjudged_rows", r->unjudged_rows);
    kvc_json_u64(j, "unjudged_tokens", r->unjudged_tokens);
    put_keys(j, r);
    kvc_json_u64(j, "filtered", r->filtered);
    kvc_json_u64(j, "linked_turns", r->linked_turns);
    kvc_json_u64(j, "branches", r->branches);
    kvc_json_open_array(j, "bad_rows");
    for (uint32_t i = 0; i < r->n_shown; i++) {
        kvc_error_format(&r->shown[i], text, sizeof(text));
        kvc_json_string(j, NULL, text);
    }
    kvc_json_close(j);
    kvc_json_open_array(j, "notes");
    for (uint32_t i = 0; i < r->n_notes; i++)
        kvc_json_string(j, NULL, r->notes[i]);
    kvc_json_close(j);
    kvc_json_open_array(j, "tallies");
    for (uint32_t i = 0; i < r->n_tallies; i++) {
        kvc_json_open_object(j, NULL);
        kvc_json_string(j, "text", r->tallies[i].text);
        kvc_json_u64(j, "rows", r->tallies[i].rows);
        kvc_json_close(j);
    }
    kvc_json_close(j);
    kvc_json_close(j);
}
