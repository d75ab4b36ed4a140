/* SPDX-License-Identifier: Apache-2.0
 * What an engine's counters moved by between two scrapes: means of TTFT, of waiting, of prefill and
 * between tokens, at a mean batch and mean lengths. Each is an equation in the host's constants. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/models.h"
#include "models/user_profile.h"
#include "sim/scenario/scenario.h"
#include "studies/calibrate/host_fit.h"
#include "studies/calibrate/prometheus.h"

#define SCALE 0.15
#define MOST_PROMPTS 64
#define MODEL_OFF 0.05 /* a step's kernels are not known better: docs/accuracy.md */

struct interval { /* means; times in ns, NAN: not measured */
    double ttft, queue, prefill, itl;
    double requests, prompt, computed, output, batch, steps;
    double plain, share; /* kernels of a step without prompts, and how many steps hold some */
    struct kvc_histogram ttft_buckets, itl_buckets;
    const char *path;
};

enum { ROW_ITL, ROW_PREFILL, ROW_TTFT };

struct row {
    const struct interval *at;
    int kind;
    double kernels_ns;             /* what is the GPU's of it */
    double of[KVC_HOST_CONSTANTS]; /* how often each constant is in it */
    double fixed_ns, measured_ns;
};

struct fit {
    struct interval *interval;
    struct row *row;
    size_t n_intervals, n_rows;
};

/* A counter shows when it first counts. */
static double moved(const struct kvc_scrape *a, const struct kvc_scrape *b, enum kvc_metric m)
{
    return b->value[m] - (isnan(a->value[m]) ? 0 : a->value[m]);
}

static double mean_ns(const struct kvc_scrape *a, const struct kvc_scrape *b, enum kvc_metric sum,
                      enum kvc_metric count)
{
    double n = moved(a, b, count);

    return n > 0 ? moved(a, b, sum) / n * 1e9 : NAN;
}

static enum kvc_status check_pair(struct interval *i, const struct kvc_scrape *a,
                                  const struct kvc_scrape *b, struct kvc_error *err)
{
    bool fell = false;

    if (a->backend != b->backend)
        return kvc_fail_at(err, KVC_ERR_INPUT, b->path, 0, NULL, "another engine than %s's",
                           a->path);
    if (fabs(b->started - a->started) > 1) /* seconds; a clock that was set is no start */
        return kvc_fail_at(err, KVC_ERR_INPUT, b->path, 0, NULL,
                           "the engine was started anew since %s, so its counters began at 0 "
                           "again: name scrapes of one run", a->path);
    for (int m = 0; m < KVC_METRIC_RUNNING; m++)
        fell |= moved(a, b, (enum kvc_metric)m) < 0;
    fell |= !kvc_histogram_between(&i->ttft_buckets, &a->ttft, &b->ttft);
    fell |= !kvc_histogram_between(&i->itl_buckets, &a->itl, &b->itl);
    if (fell)
        return kvc_fail_at(err, KVC_ERR_INPUT, b->path, 0, NULL,
                           "its counters lie below those of %s, or have other buckets: name the "
                           "scrapes in order of time, none before a restart", a->path);
    if (!(moved(a, b, KVC_METRIC_TTFT_COUNT) >= 1) || !(moved(a, b, KVC_METRIC_ITL_COUNT) >= 1))
        return kvc_fail_at(err, KVC_ERR_INPUT, b->path, 0, NULL,
                           "no request had its first token, or none its second, since %s, or that "
                           "isn't counted%s: scrape further apart, under load", a->path,
                           strcmp(b->backend, "trtllm") == 0
                               ? " (serve with return_perf_metrics: true)" : "");
    return KVC_OK;
}

/* Decoding sequences of a step: from counted steps, else from the gauge at both ends. */
static enum kvc_status find_batch(struct interval *i, const struct kvc_scrape *a,
                                  const struct kvc_scrape *b, struct kvc_text *notes,
                                  struct kvc_error *err)
{
    double tokens = moved(a, b, KVC_METRIC_ITL_COUNT);
    double engines = b->engines ? b->engines : 1;

    i->steps = moved(a, b, KVC_METRIC_STEPS);
    if (i->steps > 0) {
        i->batch = tokens / i->steps;
    } else if (isnan(b->value[KVC_METRIC_RUNNING]) || isnan(a->value[KVC_METRIC_RUNNING])) {
        return kvc_fail_at(err, KVC_ERR_INPUT, b->path, 0, NULL,
                           "neither steps nor running requests are in it or in %s, so the batch "
                           "isn't known%s", a->path,
                           strcmp(b->backend, "trtllm") == 0
                               ? ": serve with enable_iter_perf_stats: true" : "");
    } else {
        i->batch = (a->value[KVC_METRIC_RUNNING] + b->value[KVC_METRIC_RUNNING]) / 2 / engines;
        i->steps = tokens / fmax(i->batch, 1);
        kvc_text_addf(notes,
                      "%s: steps are not counted in it (iteration_tokens_total), so the batch "
                      "is the mean of the two gauges of running requests, %.3g\n",
                      b->path, i->batch);
    }
    i->batch = fmax(i->batch, 1);
    return KVC_OK;
}

static enum kvc_status measure(struct interval *i, const struct kvc_scrape *a,
                               const struct kvc_scrape *b, struct kvc_text *notes,
                               struct kvc_error *err)
{
    enum kvc_status status = check_pair(i, a, b, err);

    if (status != KVC_OK)
        return status;
    i->ttft = mean_ns(a, b, KVC_METRIC_TTFT_SUM, KVC_METRIC_TTFT_COUNT);
    i->queue = mean_ns(a, b, KVC_METRIC_QUEUE_SUM, KVC_METRIC_QUEUE_COUNT);
    i->prefill = mean_ns(a, b, KVC_METRIC_PREFILL_SUM, KVC_METRIC_PREFILL_COUNT);
    i->itl = mean_ns(a, b, KVC_METRIC_ITL_SUM, KVC_METRIC_ITL_COUNT);
    i->requests = moved(a, b, KVC_METRIC_TTFT_COUNT);
    i->prompt = moved(a, b, KVC_METRIC_PROMPT) / i->requests;
    i->output = moved(a, b, KVC_METRIC_GENERATED) / i->requests;
    double looked = moved(a, b, KVC_METRIC_LOOKED_UP);
    double hit = looked > 0 ? moved(a, b, KVC_METRIC_CACHED) / looked : 0;
    i->computed = i->prompt * (1 - (hit > 0 ? fmin(hit, 1) : 0));
    if (!(i->prompt >= 1) || !(i->output >= 1))
        return kvc_fail_at(err, KVC_ERR_INPUT, b->path, 0, NULL,
                           "counters of prompt and generated tokens are missing or stood still");
    return find_batch(i, a, b, notes, err);
}

/* ---- equations ---- */

/* Of a step with so many prompts of so many tokens each; between whole numbers of them, in
 * proportion. */
static double kernels_ns(const struct kvc_step_model *m, double prompts, double chunk, double past,
                         double batch, double context)
{
    struct kvc_chunk c[MOST_PROMPTS];
    uint32_t n = (uint32_t)(batch + 0.5), low = (uint32_t)fmin(prompts, MOST_PROMPTS - 1);
    double ns[2];

    for (size_t i = 0; i < MOST_PROMPTS; i++)
        c[i] = (struct kvc_chunk){(uint32_t)(chunk + 0.5), (uint32_t)(past + 0.5)};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t host,
            all = kvc_step_ns(m, c, low + i, n, (uint64_t)(context * n), n + low + i, &host);
        ns[i] = (double)(all - host);
    }
    return ns[0] + (ns[1] - ns[0]) * (fmin(prompts, MOST_PROMPTS) - low);
}

static void add_row(struct fit *f, const struct row *r)
{
    if (r->measured_ns > 0 && isfinite(r->fixed_ns))
        f->row[f->n_rows++] = *r;
}

/* Mean context of a sequence that decodes: its prompt and half of its answer. A prompt is computed
 * in chunks of the budget; each such step holds the decodes too. Prompts come at random, so a step
 * holds none with probability exp(-mean number), and what came in one step is computed together. */
static void add_rows(struct fit *f, struct interval *i, const struct kvc_step_model *m,
                     double budget)
{
    double context = i->prompt + i->output / 2, past = i->prompt - i->computed;
    double room = fmax(budget - i->batch, 1), chunks = fmax(ceil(i->computed / room), 1);
    double chunk = i->computed / chunks, a_step = i->requests * chunks / i->steps;
    double share = -expm1(-a_step), prompts = fmin(a_step / share, fmax(room / chunk, 1));
    double plain = kernels_ns(m, 0, 0, 0, i->batch, context);
    double mixed =
        kernels_ns(m, prompts, chunk, past + (i->computed - chunk) / 2, i->batch, context);
    struct row itl = {.at = i, .kind = ROW_ITL, .measured_ns = i->itl,
                      .kernels_ns = plain + share * (mixed - plain),
                      .of = {1, i->batch + share * prompts, share, 0}};
    struct row prefill = {.at = i, .kind = ROW_PREFILL, .measured_ns = i->prefill,
                          .kernels_ns = chunks * mixed,
                          .of = {chunks, chunks * (i->batch + prompts), chunks, 0}};
    struct row ttft = prefill;

    i->plain = plain;
    i->share = share;
    ttft.kind = ROW_TTFT;
    ttft.of[KVC_HOST_FRONT] = 1;
    ttft.fixed_ns = i->queue;
    ttft.measured_ns = i->ttft;
    add_row(f, &itl);
    add_row(f, &prefill);
    add_row(f, &ttft);
}

static bool residuals(void *user, const double *x, double *out)
{
    const struct fit *f = user;

    for (size_t r = 0; r < f->n_rows; r++) {
        const struct row *row = &f->row[r];
        double ns = row->kernels_ns + row->fixed_ns;
        for (size_t i = 0; i < KVC_HOST_CONSTANTS; i++)
            ns += row->of[i] * x[i];
        out[r] = log(ns / row->measured_ns);
    }
    return true;
}

/* No host is a hundred times slower or faster than another, as with requests. */
static enum kvc_status check_size(const struct fit *f, const struct kvc_host_fit *out,
                                  const struct interval *i, struct kvc_error *err)
{
    static const char *const names[] = {"time between tokens", "prefill", "TTFT"};

    for (size_t r = 0; r < f->n_rows; r++) {
        const struct row *row = &f->row[r];
        double ns = row->kernels_ns + row->fixed_ns;
        for (size_t k = 0; k < KVC_HOST_CONSTANTS; k++)
            ns += row->of[k] * out->fit.constant[k].start;
        if (row->at == i && !(row->measured_ns < 100 * ns && row->measured_ns > ns / 100))
            return kvc_fail_at(err, KVC_ERR_INPUT, i->path, 0, NULL,
                               "by its counters a mean %s of %.4g ms, where %.4g are expected: "
                               "sums in seconds, of this model on this GPU, are expected",
                               names[row->kind], row->measured_ns / 1e6, ns / 1e6);
    }
    return KVC_OK;
}

/* user: whose GPU and kernels these are; its hosts take no part. */
static enum kvc_status model_of(struct kvc_step_model **out, const struct kvc_scenario *s,
                                const struct kvc_user_profile *user, const char *backend,
                                struct kvc_error *err)
{
    struct kvc_step_config c = {.llm = kvc_llm_find(s->model),
                                .gpu = kvc_user_gpu(user, s->cluster.gpu), .user = user,
                                .backend = backend, .tp = s->cluster.tp,
                                .pp = s->cluster.pp, .ep = s->cluster.ep,
                                .dp = s->cluster.dp, .max_seqs = s->engine.max_seqs};

    if (!kvc_dtype_parse(s->weights_dtype, &c.weights) || !kvc_dtype_parse(s->kv_dtype, &c.kv))
        return kvc_fail(err, KVC_ERR_INPUT, "no such dtype");
    return kvc_step_model_create(out, &c, err);
}

static void say_what_is_missing(struct kvc_host_fit *out, const struct interval *i,
                                const struct kvc_scrape *s)
{
    if (isnan(i->queue)) {
        out->fit.constant[KVC_HOST_FRONT].kept = true;
        kvc_text_addf(&out->notes,
                      "%s: without a histogram of waiting (request_queue_time_seconds) "
                      "TTFT is waiting, prefill and front end in one: it is not used\n",
                      s->path);
    }
    if (isnan(i->prefill))
        kvc_text_addf(&out->notes,
                      "%s: no histogram of prefill (request_prefill_time_seconds); "
                      "what of a TTFT is the front end's follows from the model's prefill\n",
                      s->path);
}

static void add_quantiles(struct kvc_text *out, const char *what, const struct kvc_histogram *h)
{
    static const double of[] = {0.5, 0.9, 0.99};

    if (isnan(kvc_histogram_quantile(h, 0.5).value))
        return;
    kvc_text_addf(out, ", %s P50, P90, P99", what);
    for (size_t k = 0; k < 3; k++) {
        struct kvc_histogram_value v = kvc_histogram_quantile(h, of[k]);
        kvc_text_addf(out, "%s %s%.4g", k ? "," : "", isinf(v.high) ? "over " : "", v.value * 1e3);
    }
    kvc_text_add(out, " ms");
}

static void say_buckets(struct kvc_text *out, const struct interval *i)
{
    struct kvc_text t = {0};

    add_quantiles(&t, "TTFT", &i->ttft_buckets);
    add_quantiles(&t, "between tokens", &i->itl_buckets);
    if (t.len)
        kvc_text_addf(out, "%s: by its buckets%s\n", i->path, t.buf + 1);
    kvc_text_clear(&t);
}

/* Means say what all steps took; the middle one of those without prompts is seen in the buckets
 * alone. Steps with prompts are longer, so that it is in the middle of the shorter ones. */
static void check_buckets(struct kvc_host_fit *out, const struct fit *f)
{
    const struct kvc_fit_constant *c = out->fit.constant;

    for (size_t k = 0; k < f->n_intervals; k++) {
        const struct interval *i = &f->interval[k];
        struct kvc_histogram_value v =
            kvc_histogram_quantile(&i->itl_buckets, (1 - i->share) / 2);
        double host = c[KVC_HOST_STEP].value + c[KVC_HOST_SEQUENCE].value * i->batch;
        double ms = (i->plain + host) / 1e6;
        double low = v.low * 1e3, high = v.high * 1e3;
        bool in = ms >= low * (1 - MODEL_OFF) && ms <= high * (1 + MODEL_OFF);
        if (!isnan(v.value))
            kvc_text_addf(&out->notes,
                          "%s: a step without prompts, %.4g ms by the fit, lies %s the bucket of "
                          "its median, %.4g to %.4g ms%s\n", i->path, ms, in ? "in" : "outside",
                          low, high, in ? "" : ": batches differ much, or few steps are very long");
    }
}

static enum kvc_status read_all(struct fit *f, struct kvc_host_fit *out, const char *const *paths,
                                size_t n, const char *served,
                                const struct kvc_scenario *scenario, struct kvc_error *err)
{
    struct kvc_scrape last, next;
    struct kvc_step_model *model = NULL;
    struct kvc_user_profile *user = NULL;
    enum kvc_status status = kvc_scenario_profile(&user, scenario, err);

    if (status == KVC_OK)
        status = model_of(&model, scenario, user, out->backend, err);
    if (status == KVC_OK)
        status = kvc_scrape_read(&last, paths[0], served, err);
    for (size_t i = 1; i < n && status == KVC_OK; i++, last = next) {
        struct interval *at = &f->interval[f->n_intervals++];
        status = kvc_scrape_read(&next, paths[i], served, err);
        if (status == KVC_OK)
            status = measure(at, &last, &next, &out->notes, err);
        if (status != KVC_OK)
            break;
        at->path = paths[i];
        say_what_is_missing(out, at, &next);
        add_rows(f, at, model, scenario->engine.max_batched_tokens);
        if ((status = check_size(f, out, at, err)) != KVC_OK)
            break;
        out->requests += (uint64_t)at->requests;
        kvc_text_addf(&out->notes,
                      "%s: %.0f requests of %.0f + %.0f tokens, %.0f %% of the prompts "
                      "cached, batch %.3g, TTFT %.4g ms, %.4g ms between tokens\n",
                      paths[i], at->requests, at->prompt, at->output,
                      100 * (1 - at->computed / at->prompt), at->batch, at->ttft / 1e6,
                      at->itl / 1e6);
        say_buckets(&out->notes, at);
    }
    kvc_step_model_destroy(model);
    kvc_user_profile_destroy(user);
    return status;
}

enum kvc_status kvc_host_fit_scrapes(struct kvc_host_fit *out, const char *const *paths, size_t n,
                                     const char *served, const struct kvc_scenario *scenario,
                                     struct kvc_error *err)
{
    const struct kvc_engine_profile *engine = NULL;
    struct kvc_scrape first;
    struct fit f = {.interval = kvc_calloc(n, sizeof *f.interval),
                    .row = kvc_calloc(3 * n, sizeof *f.row)};
    enum kvc_status status = KVC_OK;

    if (n < 2)
        status =
            kvc_fail_at(err, KVC_ERR_USAGE, paths[0], 0, NULL,
                        "counters run since the engine's start: what tells is the difference of "
                        "two scrapes; name another with a second --prometheus");
    else if (!f.interval || !f.row)
        status = kvc_fail_nomem(err);
    if (status == KVC_OK)
        status = kvc_scrape_read(&first, paths[0], served, err);
    if (status == KVC_OK) { /* whose metrics they are decides, not the scenario */
        engine = kvc_engine_find(first.backend);
        status = engine ? KVC_OK : kvc_fail(err, KVC_ERR_INTERNAL, "no engine of this name");
    }
    if (status == KVC_OK) {
        kvc_host_fit_start(out, engine);
        status = read_all(&f, out, paths, n, served, scenario, err);
    }
    if (status == KVC_OK) {
        kvc_text_addf(&out->sources, "%zu interval%s between %zu scrapes, %llu requests, %s on %s",
                      f.n_intervals, f.n_intervals == 1 ? "" : "s", n,
                      (unsigned long long)out->requests, scenario->model, scenario->cluster.gpu);
        out->fit.residuals = residuals;
        out->fit.user = &f;
        out->fit.n = f.n_rows;
        out->fit.scale = SCALE;
        out->fit.least_scatter = MODEL_OFF;
        status = kvc_measured_fit_run(&out->fit, err);
        out->fit.user = NULL;
    }
    if (status == KVC_OK)
        check_buckets(out, &f);
    kvc_free(f.interval);
    kvc_free(f.row);
    return status;
}
