/* SPDX-License-Identifier: Apache-2.0
 * A run's own requests as its traffic. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "studies/calibrate/request_log.h"
#include "traces/forest/forest.h"

#define LATEST_S 4e9 /* what passes for seconds since some beginning */

static int by_arrival(const void *a, const void *b)
{
    const struct kvc_measured_request *x = a, *y = b;

    return (x->arrival_s > y->arrival_s) - (x->arrival_s < y->arrival_s);
}

enum kvc_status kvc_measured_log_trace(struct kvc_measured_log *log, struct kvc_trace **out,
                                       struct kvc_error *err)
{
    for (size_t i = 0; i < log->n; i++)
        if (!(log->request[i].arrival_s >= 0 && log->request[i].arrival_s < LATEST_S))
            return kvc_fail(err, KVC_ERR_UNSUPPORTED, "requests without an arrival in seconds");
    /* those of one instant are replayed in either order alike */
    qsort(log->request, log->n, sizeof *log->request, by_arrival);
    struct kvc_forest *forest = kvc_forest_create();
    if (!forest)
        return kvc_fail_nomem(err);
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < log->n && status == KVC_OK; i++) {
        const struct kvc_measured_request *r = &log->request[i];
        double since = r->arrival_s - log->request[0].arrival_s;
        status = kvc_forest_add_lengths(forest, (uint64_t)(since * 1e9 + 0.5), r->input, r->output,
                                        err);
    }
    if (status == KVC_OK)
        return kvc_forest_finish(forest, 0, false, out, err);
    kvc_forest_destroy(forest);
    return status;
}
