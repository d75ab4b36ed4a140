/* SPDX-License-Identifier: Apache-2.0
 * Each request's TTFT and TPOT beside its replay: schedules and queues are the replay's, so what is
 * left between the two is the host's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/user_profile.h"
#include "sim/scenario/scenario.h"
#include "studies/calibrate/host_fit.h"
#include "studies/calibrate/request_log.h"
#include "traces/trace.h"

#define SCALE 0.15       /* of residuals (logarithms): beyond it a request counts less and less */
#define TTFT_WEIGHT 0.5  /* against TPOT, which averages over many steps */
#define EFFECT 0.05      /* schedules move in jumps */
#define FOLDS 3
#define MOST_REQUESTS 20000

struct fit {
    const struct kvc_measured_log *log;
    const struct kvc_trace *trace;
    const struct kvc_scenario *scenario;
    const char *backend;
    struct kvc_user_profile *gpus; /* whose GPU and kernels these are; NULL: none is named */
    kvc_progress_fn progress;
    void *progress_user;
    uint64_t replays;
    struct kvc_error err; /* of the replay that failed */
};

/* NULL: no memory. */
static char *profile_text(const struct fit *f, const double *x)
{
    static const char *const keys[KVC_HOST_CONSTANTS] = {
        "host_per_step_ns", "host_per_sequence_ns", "host_per_prefill_step_ns", "front_end_ns"};
    struct kvc_json j;

    kvc_json_init(&j, false);
    kvc_json_open_object(&j, NULL);
    kvc_json_string(&j, "schema", KVC_PROFILE_SCHEMA);
    if (f->gpus)
        kvc_user_profile_put_gpus(f->gpus, &j);
    kvc_json_open_array(&j, "engines");
    kvc_json_open_object(&j, NULL);
    kvc_json_string(&j, "backend", f->backend);
    for (size_t i = 0; i < KVC_HOST_CONSTANTS; i++) {
        kvc_json_open_object(&j, keys[i]);
        kvc_json_double(&j, "value", fmin(x[i], 9e9));
        kvc_json_string(&j, "kind", "fitted");
        kvc_json_string(&j, "source", "-");
        kvc_json_close(&j);
    }
    kvc_json_close(&j);
    kvc_json_close(&j);
    kvc_json_close(&j);
    return kvc_json_take(&j);
}

static double log_ratio(double predicted, double measured)
{
    return predicted > 0 && measured > 0 ? log(predicted / measured) : 0;
}

static bool residuals(void *user, const double *x, double *out)
{
    struct fit *f = user;
    struct kvc_result *r = NULL;
    double front = f->log->engine_clock ? x[KVC_HOST_FRONT] : 0;

    f->replays++;
    if (f->progress && !f->progress(f->progress_user, "replays", f->replays, 0))
        return kvc_fail(&f->err, KVC_ERR_CANCELLED, "the fit was cancelled"), false;
    char *profile = profile_text(f, x);
    const struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true,
                                               .profile = profile};
    bool fine =
        profile && kvc_replay_run(&r, f->trace, f->scenario, &options, &f->err) == KVC_OK;
    for (size_t i = 0; fine && i < f->log->n; i++) {
        const struct kvc_measured_request *m = &f->log->request[i];
        const struct kvc_request_result *p = &r->requests[i];
        out[2 * i] = out[2 * i + 1] = 0;
        if (p->outcome != KVC_COMPLETED)
            continue;
        double unlogged = f->log->engine_clock ? front + (double)p->unheard_ns : 0;
        out[2 * i] = TTFT_WEIGHT * log_ratio((double)p->ttft_ns - unlogged, (double)m->ttft_ns);
        if (m->output > 1)
            out[2 * i + 1] = log_ratio((double)(p->e2e_ns - p->ttft_ns),
                                       (double)(m->e2e_ns - m->ttft_ns));
    }
    kvc_result_destroy(r);
    kvc_free(profile);
    return fine;
}

/* The rows must be the trace's requests, one by one. */
static enum kvc_status check(const struct fit *f, const char *path, struct kvc_error *err)
{
    bool same = f->log->n == f->trace->n_requests;

    for (size_t i = 0; same && i < f->log->n; i++)
        same = f->log->request[i].input == f->trace->input_tokens[i];
    if (!same)
        return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                           "%zu requests were measured and the trace holds %llu, or in another "
                           "order: both must be of one run, sorted by arrival", f->log->n,
                           (unsigned long long)f->trace->n_requests);
    for (size_t i = 0; i < f->log->n; i++)
        if (!f->log->request[i].ttft_ns)
            return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                               "request %zu of %zu had its first token after 0 ms, which no engine "
                               "does: take its row out", i + 1,
                               f->log->n);
    if (f->log->n > MOST_REQUESTS)
        return kvc_fail_at(
            err, KVC_ERR_LIMIT, path, 0, NULL,
            "%zu requests would be replayed hundreds of times: some thousand tell as much; "
            "cut the file to a busy hour",
            f->log->n);
    return KVC_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The replay's time between tokens (of answers of one token: to the first) as a multiple of the
 * measured one, median over the requests, with the constants that the program carries. */
static enum kvc_status first_look(struct fit *f, const struct kvc_host_fit *out, double *ratio,
                                  struct kvc_error *err)
{
    size_t n = f->log->n, kept = 0;
    double x[KVC_HOST_CONSTANTS], *r = kvc_malloc(2 * n, sizeof *r);

    if (!r)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < KVC_HOST_CONSTANTS; i++)
        x[i] = out->fit.constant[i].start;
    if (!residuals(f, x, r)) {
        kvc_free(r);
        return kvc_fail(err, KVC_ERR_INTERNAL, "the run can't be replayed");
    }
    for (size_t i = 0; i < n; i++)
        r[kept++] = r[2 * i + 1] != 0 ? r[2 * i + 1] : r[2 * i] / TTFT_WEIGHT;
    qsort(r, n, sizeof *r, by_value);
    *ratio = exp(r[n / 2]);
    kvc_free(r);
    return KVC_OK;
}

/* No host is a hundred times slower or faster than another. */
static enum kvc_status check_unit(struct fit *f, const struct kvc_host_fit *out, const char *path,
                                  struct kvc_error *err)
{
    double ratio = 1;
    enum kvc_status status = first_look(f, out, &ratio, err);

    if (status != KVC_OK || (ratio < 100 && ratio > 0.01))
        return status;
    return kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                       "its requests were %.3g times %s than the replay of %s on %s: %s, or it is "
                       "another model or GPU",
                       ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? "faster" : "slower",
                       f->scenario->model, f->scenario->cluster.gpu,
                       ratio > 1 ? "ttft_ms and e2e_ms are in milliseconds, all other times in "
                                   "seconds" : "times but ttft_ms and e2e_ms are in seconds");
}

enum kvc_status kvc_host_fit_requests(struct kvc_host_fit *out, const struct kvc_measured_log *log,
                                      const char *path, const struct kvc_trace *trace,
                                      const struct kvc_scenario *scenario, kvc_progress_fn progress,
                                      void *user, struct kvc_error *err)
{
    struct fit f = {.log = log,
                    .trace = trace,
                    .scenario = scenario,
                    .backend = scenario->engine.backend,
                    .progress = progress,
                    .progress_user = user};
    const struct kvc_engine_profile *engine = kvc_engine_find(f.backend);
    const char *slash = strrchr(path, '/');
    char odd[256];
    if (!engine)
        return kvc_fail(err, KVC_ERR_INPUT, "no engine '%s'", f.backend);
    kvc_host_fit_start(out, engine);
    enum kvc_status status = check(&f, path, err);
    if (status == KVC_OK)
        status = kvc_scenario_profile(&f.gpus, scenario, err);
    out->requests = log->n;
    kvc_text_addf(&out->sources, "times of %zu requests (%s) beside their replay, %s on %s",
                  log->n, slash ? slash + 1 : path, scenario->model, scenario->cluster.gpu);
    if (log->engine_clock) {
        out->fit.constant[KVC_HOST_FRONT].kept = true;
        kvc_text_addf(&out->notes, "%s: its clock is the engine's, so the front end and the client "
                      "are not in it\n", slash ? slash + 1 : path);
    }
    if (!kvc_measured_log_note(log, odd))
        status = status == KVC_OK ? kvc_fail_nomem(err) : status;
    if (*odd)
        kvc_text_addf(&out->notes, "%s: %s\n", slash ? slash + 1 : path, odd);
    out->fit.residuals = residuals;
    out->fit.user = &f;
    out->fit.n = 2 * log->n;
    out->fit.scale = SCALE;
    out->fit.effect = EFFECT;
    out->fit.folds = FOLDS;
    if (status == KVC_OK)
        status = check_unit(&f, out, path, err);
    if (status == KVC_OK)
        status = kvc_measured_fit_run(&out->fit, err);
    if (status != KVC_OK && f.err.status != KVC_OK) {
        status = f.err.status;
        if (err)
            *err = f.err;
    }
    out->fit.user = NULL;
    kvc_user_profile_destroy(f.gpus);
    return status;
}
