/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import.h"
#include "traces/kvt.h"

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
        status = kvc_kvt_read(out, stream, path, err);
    } else {
        status = kvc_import_streams(out, &path, 1, stream, options, report, err);
    }
    kvc_stream_close(stream);
    return status;
}
