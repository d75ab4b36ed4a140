/* SPDX-License-Identifier: Apache-2.0
 * A scrape of an engine's metrics (Prometheus text format), vLLM's, SGLang's and
 * TensorRT-LLM's names. */
#ifndef KVC_STUDIES_PROMETHEUS_H
#define KVC_STUDIES_PROMETHEUS_H

#include <kvcast/kvcast.h>

#include "studies/calibrate/histogram.h"

enum kvc_metric { /* sums over label sets; sum and count of histograms. TensorRT-LLM states a
                     request's decoding: between tokens is that over its tokens behind the first */
    KVC_METRIC_TTFT_SUM, KVC_METRIC_TTFT_COUNT, KVC_METRIC_ITL_SUM, KVC_METRIC_ITL_COUNT,
    KVC_METRIC_QUEUE_SUM, KVC_METRIC_QUEUE_COUNT, KVC_METRIC_PREFILL_SUM,
    KVC_METRIC_PREFILL_COUNT, KVC_METRIC_PROMPT, KVC_METRIC_GENERATED, KVC_METRIC_STEPS,
    KVC_METRIC_CACHED, KVC_METRIC_LOOKED_UP, KVC_METRIC_RUNNING,
    KVC_METRIC_TTFT_BUCKET, KVC_METRIC_ITL_BUCKET, KVC_METRICS /* of buckets: all their counts */
};

struct kvc_scrape {
    const char *path;      /* borrowed */
    const char *backend;   /* as engine profiles name it */
    uint32_t engines;      /* label sets of the running gauge */
    char model[128];       /* that they are of, "" = not stated */
    double started;        /* when the oldest of its series did, or its process; NAN: not stated */
    double value[KVC_METRICS]; /* NAN: not there */
    struct kvc_histogram ttft, itl; /* buckets, in seconds; empty: not there */
};

/* served (may be NULL): the model_name that counts where there are several, which are refused
 * without it. KVC_ERR_INPUT: no engine's metric is in it, two engines' are, or one is no number. */
enum kvc_status kvc_scrape_read(struct kvc_scrape *out, const char *path, const char *served,
                                struct kvc_error *err);

#endif
