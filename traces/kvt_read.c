/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/kvt.h"

#include "base/alloc.h"
#include "base/error.h"

enum kvc_status kvc_kvt_read(struct kvc_trace **out, struct kvc_stream *stream, const char *path,
                             struct kvc_error *err)
{
    (void)out;
    (void)stream;
    return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, path, 0, NULL, "reading .kvt");
}
