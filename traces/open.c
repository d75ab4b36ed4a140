/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "traces/import/import.h"
#include "traces/kvt.h"
#include "traces/trace.h"

#include <sys/stat.h>

static bool is_of_logs(const struct kvc_import_options *o)
{
    return o && (o->window_begin_ns || o->window_end_ns || o->arrivals || o->time_unit);
}

enum kvc_status kvc_trace_open(struct kvc_trace **out, const char *path,
                               const struct kvc_import_options *options,
                               struct kvc_import_report *report, struct kvc_error *err)
{
    struct kvc_stream *stream = NULL;
    enum kvc_status status = kvc_stream_open(&stream, path, err);
    if (status != KVC_OK)
        return status;
    if (kvc_stream_is_kvt(stream)) {
        if (report)
            *report = (struct kvc_import_report){ 0 };
        status = is_of_logs(options)
                     ? kvc_fail_at(err, KVC_ERR_USAGE, path, 0, NULL,
                                   "this is a .kvt, whose times are settled; give --window, "
                                   "--arrivals and --time-unit when importing the log")
                     : kvc_kvt_read(out, stream, path, err);
    } else {
        status = kvc_import_streams(out, &path, 1, stream, options, report, err);
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
