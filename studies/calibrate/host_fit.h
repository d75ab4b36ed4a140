/* SPDX-License-Identifier: Apache-2.0
 * What an engine's host takes per step, per sequence, per step with prefill and per request, fitted
 * to what a served run measured: per-request times, or two scrapes of its metrics. */
#ifndef KVC_STUDIES_HOST_FIT_H
#define KVC_STUDIES_HOST_FIT_H

#include "models/measured_fit.h"
#include "models/profiles.h"
#include "studies/calibrate/request_log.h"

enum { KVC_HOST_STEP, KVC_HOST_SEQUENCE, KVC_HOST_PREFILL, KVC_HOST_FRONT, KVC_HOST_CONSTANTS };

struct kvc_host_fit {
    const char *backend;
    struct kvc_measured_fit fit; /* constants as numbered above, ns */
    uint64_t requests;
    struct kvc_text sources, notes; /* notes: lines on what was assumed or left out */
};
void kvc_host_fit_clear(struct kvc_host_fit *f);
/* Constants with the backend's own as start and base. */
void kvc_host_fit_start(struct kvc_host_fit *f, const struct kvc_engine_profile *engine);

/* host_requests.c: replays the run's own trace under the scenario. The log is of file path. */
enum kvc_status kvc_host_fit_requests(struct kvc_host_fit *out, const struct kvc_measured_log *log,
                                      const char *path, const struct kvc_trace *trace,
                                      const struct kvc_scenario *scenario, kvc_progress_fn progress,
                                      void *user, struct kvc_error *err);
/* host_scrapes.c: n scrapes of one engine's Prometheus metrics in order of time; what lies between
 * two is a measurement. served: as kvc_scrape_read. */
enum kvc_status kvc_host_fit_scrapes(struct kvc_host_fit *out, const char *const *paths, size_t n,
                                     const char *served, const struct kvc_scenario *scenario,
                                     struct kvc_error *err);

#endif
