/* SPDX-License-Identifier: Apache-2.0
 * A served run beside its replay: percentiles of TTFT, TPOT and E2E over all requests. */
#ifndef KVC_STUDIES_REQUEST_STUDY_H
#define KVC_STUDIES_REQUEST_STUDY_H

#include "studies/calibrate/request_log.h"

#define KVC_REQUEST_TARGET 10 /* percent, of mean, median and P99 of TTFT and TPOT */

struct kvc_request_pair { /* of one figure, in ms */
    struct kvc_dist measured, predicted;
    double low, high;     /* factors of the 80 % band */
    double median_ape;    /* percent, request by request; NAN where they can't be told apart */
};

struct kvc_request_validation {
    uint64_t requests, replayed, preemptions;
    bool paired;          /* the log's requests are the trace's, one by one */
    double front_ms;      /* taken off the predictions: the log's clock is the engine's */
    struct kvc_request_pair ttft, tpot, e2e;
};

/* Replays the trace under the scenario. */
enum kvc_status kvc_request_validate(struct kvc_request_validation *out,
                                     const struct kvc_measured_log *log,
                                     const struct kvc_trace *trace,
                                     const struct kvc_scenario *scenario, struct kvc_error *err);

#endif
