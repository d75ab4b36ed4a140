/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/served/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/distribution.h"
#include "base/error.h"
#include "models/profiles.h"
#include "sim/scenario/scenario.h"

/* Columns of a side, and which of its requests have them. */
struct side {
    uint64_t *ttft, *e2e, *tpot; /* ns */
    size_t n, n_tpot;
};

static bool side_init(struct side *s, size_t n)
{
    size_t room = n ? n : 1;

    s->ttft = kvc_malloc(room, sizeof *s->ttft);
    s->e2e = kvc_malloc(room, sizeof *s->e2e);
    s->tpot = kvc_malloc(room, sizeof *s->tpot);
    return s->ttft && s->e2e && s->tpot;
}

static void side_clear(struct side *s)
{
    kvc_free(s->ttft);
    kvc_free(s->e2e);
    kvc_free(s->tpot);
}

static void side_add(struct side *s, uint64_t ttft, uint64_t e2e, uint32_t output)
{
    s->ttft[s->n] = ttft;
    s->e2e[s->n++] = e2e;
    if (output >= 2)
        s->tpot[s->n_tpot++] = (e2e - ttft) / (output - 1);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static bool same_requests(const struct kvc_measured_log *log, const struct kvc_result *r)
{
    if (log->n != r->n_requests)
        return false;
    for (size_t i = 0; i < log->n; i++)
        if (log->request[i].input != r->requests[i].input_tokens ||
            log->request[i].output != r->requests[i].output_tokens ||
            r->requests[i].outcome != KVC_COMPLETED)
            return false;
    return true;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Over pairs in order; error: room for n values. */
static double median_ape(const uint64_t *measured, const uint64_t *predicted, size_t n,
                         double *error)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (measured[i])
            error[k++] = fabs((double)predicted[i] / (double)measured[i] - 1) * 100;
    qsort(error, k, sizeof *error, ascending);
    return k ? error[(k - 1) / 2] : NAN;
}

static enum kvc_status compare(struct kvc_request_validation *v, struct side *m, struct side *p,
                               struct kvc_error *err)
{
    struct {
        struct kvc_request_pair *pair;
        uint64_t *m, *p;
        size_t n_m, n_p;
    } c[] = {{&v->ttft, m->ttft, p->ttft, m->n, p->n},
             {&v->tpot, m->tpot, p->tpot, m->n_tpot, p->n_tpot},
             {&v->e2e, m->e2e, p->e2e, m->n, p->n}};
    double *error = kvc_malloc(m->n ? m->n : 1, sizeof *error);

    if (!error)
        return kvc_fail_nomem(err);
    for (size_t i = 0; i < 3; i++) {
        c[i].pair->median_ape = v->paired ? median_ape(c[i].m, c[i].p, c[i].n_m, error) : NAN;
        kvc_distribution(c[i].m, c[i].n_m, 1e6, &c[i].pair->measured);
        kvc_distribution(c[i].p, c[i].n_p, 1e6, &c[i].pair->predicted);
    }
    kvc_free(error);
    return KVC_OK;
}

static void take_band(struct kvc_request_pair *pair, const struct kvc_result *r, const char *name,
                      double centre)
{
    pair->low = pair->high = NAN;
    for (uint32_t i = 0; i < r->n_bands; i++)
        if (strcmp(r->bands[i].name, name) == 0 && centre > 0) {
            pair->low = r->bands[i].low / centre;
            pair->high = r->bands[i].high / centre;
        }
}

/* What an engine's log counts from: it hears of a request when the step under way has ended. */
static uint64_t unlogged(const struct kvc_measured_log *log, const struct kvc_request_result *r)
{
    return log->engine_clock ? r->unheard_ns : 0;
}

static enum kvc_status judge(struct kvc_request_validation *v, const struct kvc_measured_log *log,
                             const struct kvc_result *r, uint64_t front_ns, struct kvc_error *err)
{
    struct side m = {0}, p = {0};
    enum kvc_status status = KVC_OK;

    if (!side_init(&m, log->n) || !side_init(&p, (size_t)r->n_requests))
        status = kvc_fail_nomem(err);
    for (size_t i = 0; i < log->n && status == KVC_OK; i++)
        side_add(&m, log->request[i].ttft_ns, log->request[i].e2e_ns, log->request[i].output);
    for (uint64_t i = 0; i < r->n_requests && status == KVC_OK; i++)
        if (r->requests[i].outcome == KVC_COMPLETED && r->requests[i].measured)
            side_add(&p, less(r->requests[i].ttft_ns, front_ns + unlogged(log, &r->requests[i])),
                     less(r->requests[i].e2e_ns, front_ns + unlogged(log, &r->requests[i])),
                     r->requests[i].output_tokens);
    v->requests = log->n;
    v->replayed = p.n;
    v->paired = same_requests(log, r) && p.n == log->n;
    if (status == KVC_OK)
        status = compare(v, &m, &p, err);
    take_band(&v->ttft, r, "ttft_ms.mean", r->ttft_ms.mean);
    take_band(&v->tpot, r, "tpot_ms.mean", r->tpot_ms.mean);
    v->e2e.low = v->e2e.high = NAN;
    side_clear(&m);
    side_clear(&p);
    return status;
}

enum kvc_status kvc_request_validate(struct kvc_request_validation *out,
                                     const struct kvc_measured_log *log,
                                     const struct kvc_trace *trace,
                                     const struct kvc_scenario *scenario, struct kvc_error *err)
{
    const struct kvc_replay_options options = {.struct_size = sizeof options, .skip_bounds = true};
    const struct kvc_engine_profile *engine = kvc_engine_find(scenario->engine.backend);
    double front = log->engine_clock && engine ? engine->front_end_ns.value : 0;
    struct kvc_result *r = NULL;
    enum kvc_status status = kvc_replay_run(&r, trace, scenario, &options, err);

    memset(out, 0, sizeof *out);
    if (status == KVC_OK)
        status = judge(out, log, r, (uint64_t)(front + 0.5), err);
    for (uint32_t i = 0; status == KVC_OK && i < r->n_replicas; i++)
        out->preemptions += r->replicas[i].preemptions;
    out->front_ms = front / 1e6;
    kvc_result_destroy(r);
    return status;
}
