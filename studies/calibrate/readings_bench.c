/* SPDX-License-Identifier: Apache-2.0
 * The measurements that a profile of kvcast's own holds, so that profiles can be put together and
 * fitted again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "models/user_profile.h"
#include "studies/calibrate/readings.h"

static bool sniff(const struct kvc_readings_text *t)
{
    const char *schema = t->json ? kvc_profile_string(t->json, "schema") : NULL;

    return schema && strcmp(schema, KVC_PROFILE_SCHEMA) == 0;
}

static enum kvc_status read(struct kvc_readings *r, const struct kvc_readings_text *t,
                            struct kvc_error *err)
{
    const struct kvc_jval *list = kvc_jval_member(t->json, "measurements");
    enum kvc_status status = KVC_OK;

    for (const struct kvc_jval *v = list ? kvc_jval_first(list) : NULL; v && status == KVC_OK;
         v = kvc_jval_next(v)) {
        const char *link = kvc_profile_string(v, "link");
        const char *direction = kvc_profile_string(v, "direction");
        const struct kvc_jval *batch = kvc_jval_member(v, "batch");
        struct kvc_reading row = {.op_bytes = kvc_profile_number(v, "op_bytes", NAN),
                                  .depth = kvc_profile_number(v, "depth", INFINITY),
                                  .bytes_per_s = kvc_profile_number(v, "bytes_per_s", NAN),
                                  .spread = kvc_profile_number(v, "spread", NAN),
                                  .line = kvc_jval_line(v)};
        if (!link) {
            kvc_readings_note(r, "figures of no link (memory, zstd, kernels) are not fitted");
            continue;
        }
        if (batch)
            kvc_jval_bool(batch, &row.batch);
        if (kvc_jval_member(v, "both"))
            kvc_jval_bool(kvc_jval_member(v, "both"), &row.both);
        row.direction = direction && strcmp(direction, "write") == 0 ? KVC_FROM_GPU
                                                                     : KVC_TOWARDS_GPU;
        snprintf(row.link, sizeof row.link, "%s", link);
        status = kvc_readings_row(r, &row, err);
    }
    return status;
}

const struct kvc_reader kvc_reader_bench = {
    .name = "bench", .what = "a profile that kvcast bench or calibrate wrote", .link = NULL,
    .sniff = sniff, .read = read};
