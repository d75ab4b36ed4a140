/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/sized.h"
#include "traces/import/import.h"
#include "traces/kvt.h"
#include "traces/trace.h"
#include "traces/where.h"

#include <sys/stat.h>

/* The option, if any, that says how to read a log: a .kvt has been read. */
static const char *option_of_logs(const struct kvc_import_options *o)
{
    const struct {
        bool given;
        const char *name;
    } all[] = {
        { o->window_begin_ns || o->window_end_ns, "--window" },
        { o->arrivals, "--arrivals" },
        { o->time_unit, "--time-unit" },
        { o->key_field, "--key-field" },
        { o->merge_models, "--merge-models" },
        { o->tenant_field, "--tenant-field" },
        { o->infer_sessions, "--infer-sessions" },
        { o->tokenizer, "--tokenizer" },
        { o->csv_columns, "--csv-columns" },
        { o->forget_ns, "--forget" },
        { o->sample_weight, "--sample" },
        { o->anonymize, "--anonymize" },
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].given)
            return all[i].name;
    return NULL;
}

static enum kvc_status open_kvt(struct kvc_trace **out, struct kvc_stream *stream,
                                const char *path, const struct kvc_import_options *options,
                                struct kvc_error *err)
{
    const char *idle = option_of_logs(options);
    struct kvc_trace *t = NULL;
    if (idle)
        return kvc_fail_at(err, KVC_ERR_USAGE, path, 0, NULL,
                           "this is a .kvt, in which all that %s could change is settled; give it "
                           "when importing the log", idle);
    enum kvc_status status = kvc_kvt_read(&t, stream, path, err);
    if (status == KVC_OK && options->block_tokens && t->block_tokens &&
        options->block_tokens != t->block_tokens) {
        status = kvc_fail_at(err, KVC_ERR_USAGE, path, 0, NULL,
                             "this .kvt has blocks of %u tokens, where --block-tokens says %u",
                             t->block_tokens, options->block_tokens);
        kvc_trace_destroy(t);
    }
    uint64_t left_out = 0;
    if (status == KVC_OK && options->where) {
        status = kvc_trace_where(t, options->where, &left_out, err);
        if (status != KVC_OK)
            kvc_trace_destroy(t);
        else if (t->report)
            kvc_where_tell(t->report, options->where, left_out);
    }
    if (status == KVC_OK)
        *out = t;
    return status;
}

enum kvc_status kvc_trace_open(struct kvc_trace **out, const char *path,
                               const struct kvc_import_options *options,
                               struct kvc_import_report *report, struct kvc_error *err)
{
    struct kvc_stream *stream = NULL;
    struct kvc_import_options own = { 0 };
    enum kvc_status status = kvc_stream_open(&stream, path, err);
    if (status != KVC_OK)
        return status;
    if (options)
        kvc_sized_copy(&own, sizeof(own), options);
    if (kvc_stream_is_kvt(stream)) {
        status = open_kvt(out, stream, path, &own, err);
        if (report)
            *report = status == KVC_OK && (*out)->report ? *(*out)->report
                                                         : (struct kvc_import_report){ 0 };
    } else {
        status = kvc_import_streams(out, &path, 1, stream, &own, report, err);
    }
    kvc_stream_close(stream);
    return status;
}

bool kvc_trace_recognised(const char *path)
{
    struct kvc_stream *stream = NULL;
    struct stat info;
    size_t n;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) ||
        kvc_stream_open(&stream, path, NULL) != KVC_OK)
        return false;
    const char *head = kvc_stream_head(stream, &n);
    bool known = kvc_stream_is_kvt(stream) || kvc_stream_is_tar(stream);
    for (const struct kvc_format *const *f = kvc_format_table; *f && !known; f++)
        known = (*f)->sniff(head, n);
    kvc_stream_close(stream);
    return known;
}
