/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/prometheus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "studies/calibrate/readings.h"

#define MOST_BYTES ((size_t)64 << 20)

static const char *const backends[] = {"vllm", "sglang", "trtllm"};
#define N_ENGINES (sizeof backends / sizeof backends[0])
enum { VLLM = 1, SGLANG = 2, TRTLLM = 4, ALL = 7 }; /* bits of those, in their order */

#define MOST_NAMES 2

/* What engines call a metric. Of several versions' names that are there the first counts. */
struct name {
    unsigned engines;
    enum kvc_metric metric;
    const char *names[MOST_NAMES]; /* behind the engine's and ':' or '_'; "_total" may follow */
};

/* TensorRT-LLM's times per token are means of requests, so its buckets are no steps'. */
static const struct name names[] = {
    {ALL, KVC_METRIC_TTFT_SUM, {"time_to_first_token_seconds_sum"}},
    {ALL, KVC_METRIC_TTFT_COUNT, {"time_to_first_token_seconds_count"}},
    {ALL, KVC_METRIC_TTFT_BUCKET, {"time_to_first_token_seconds_bucket"}},
    {VLLM | SGLANG, KVC_METRIC_ITL_SUM,
     {"inter_token_latency_seconds_sum", "time_per_output_token_seconds_sum"}},
    {VLLM | SGLANG, KVC_METRIC_ITL_COUNT,
     {"inter_token_latency_seconds_count", "time_per_output_token_seconds_count"}},
    {VLLM | SGLANG, KVC_METRIC_ITL_BUCKET,
     {"inter_token_latency_seconds_bucket", "time_per_output_token_seconds_bucket"}},
    {TRTLLM, KVC_METRIC_ITL_SUM, {"request_decode_time_seconds_sum"}},
    {VLLM | TRTLLM, KVC_METRIC_QUEUE_SUM, {"request_queue_time_seconds_sum"}},
    {VLLM | TRTLLM, KVC_METRIC_QUEUE_COUNT, {"request_queue_time_seconds_count"}},
    {SGLANG, KVC_METRIC_QUEUE_SUM, {"queue_time_seconds_sum"}},
    {SGLANG, KVC_METRIC_QUEUE_COUNT, {"queue_time_seconds_count"}},
    {VLLM | TRTLLM, KVC_METRIC_PREFILL_SUM, {"request_prefill_time_seconds_sum"}},
    {VLLM | TRTLLM, KVC_METRIC_PREFILL_COUNT, {"request_prefill_time_seconds_count"}},
    {ALL, KVC_METRIC_PROMPT, {"prompt_tokens"}},
    {ALL, KVC_METRIC_GENERATED, {"generation_tokens"}},
    {VLLM, KVC_METRIC_STEPS, {"iteration_tokens_total_count"}},
    {VLLM, KVC_METRIC_CACHED, {"prefix_cache_hits", "gpu_prefix_cache_hits"}},
    {SGLANG, KVC_METRIC_CACHED, {"cached_tokens"}},
    {TRTLLM, KVC_METRIC_CACHED, {"prompt_cached_tokens"}},
    {VLLM, KVC_METRIC_LOOKED_UP, {"prefix_cache_queries", "gpu_prefix_cache_queries"}},
    {SGLANG | TRTLLM, KVC_METRIC_LOOKED_UP, {"prompt_tokens"}},
    {VLLM | TRTLLM, KVC_METRIC_RUNNING, {"num_requests_running"}},
    {SGLANG, KVC_METRIC_RUNNING, {"num_running_reqs"}},
};

struct scan {
    struct kvc_scrape *out;
    const char *served; /* NULL: any, but one */
    size_t rank[KVC_METRICS]; /* of the name that a value came from */
    bool any;
    const char *series; /* the first that counted, with its labels: it stands once in a scrape */
    size_t n_series;
};

static bool is_named(const char *text, size_t n, const char *name)
{
    size_t k = strlen(name);

    return (n == k || (n == k + 6 && strncmp(text + k, "_total", 6) == 0)) &&
           strncmp(text, name, k) == 0;
}

static struct kvc_histogram *buckets_of(struct kvc_scrape *s, enum kvc_metric metric)
{
    return metric == KVC_METRIC_TTFT_BUCKET  ? &s->ttft
           : metric == KVC_METRIC_ITL_BUCKET ? &s->itl
                                             : NULL;
}

/* le: the upper bound of a bucket; else it has no meaning. */
static bool add(struct scan *s, enum kvc_metric metric, size_t rank, double le, double value)
{
    struct kvc_histogram *buckets = buckets_of(s->out, metric);
    double *to = &s->out->value[metric];

    if (isnan(*to) || rank < s->rank[metric]) {
        *to = 0;
        if (buckets)
            buckets->n = 0;
    } else if (rank > s->rank[metric]) {
        return true;
    }
    s->rank[metric] = rank;
    *to += value;
    s->any = true;
    s->out->engines += metric == KVC_METRIC_RUNNING;
    return !buckets || kvc_histogram_add(buckets, le, value);
}

/* ---- a line: name{labels} value [time] [# exemplar] ---- */

struct labels {
    double le;                    /* the upper bound of a bucket; NAN: none */
    const char *model;            /* model_name; NULL: not there */
    size_t n_model;
    bool other_rank;              /* of tensor parallelism: says what the first one says */
};

static void take_label(struct labels *l, const char *name, size_t n, const char *value, size_t k,
                       bool *is_replica)
{
    if (n == 2 && strncmp(name, "le", 2) == 0)
        l->le = kvc_readings_number(value, k);
    else if (n == 10 && strncmp(name, "model_name", 10) == 0) {
        l->model = value;
        l->n_model = k;
    } else if (n == 7 && (strncmp(name, "tp_rank", 7) == 0 || strncmp(name, "pp_rank", 7) == 0))
        l->other_rank |= k != 1 || *value != '0';
    else if (n == 7 && strncmp(name, "dp_rank", 7) == 0)
        *is_replica = true;
}

/* name="value", .. up to the brace; what lies behind it. Values may hold anything, quoted. */
static const char *read_labels(const char *at, const char *end, struct labels *l)
{
    bool is_replica = false; /* of attention: each rank is an engine of its own */

    while (at < end && *at != '}') {
        const char *name = at, *value;
        while (at < end && *at != '=' && *at != '}')
            at++;
        size_t n = (size_t)(at - name);
        while (at < end && *at != '"' && *at != '}')
            at++;
        if (at >= end || *at == '}')
            break;
        value = ++at;
        while (at < end && *at != '"')
            at += 1 + (*at == '\\');
        take_label(l, name, n, value, (size_t)((at < end ? at : end) - value), &is_replica);
        at++;
        while (at < end && (*at == ',' || *at == ' '))
            at++;
    }
    l->other_rank &= !is_replica;
    return at < end ? at + 1 : end;
}

/* *counts: it is no other model's. */
static enum kvc_status check_served(struct scan *s, const struct labels *l, uint64_t line,
                                    bool *counts, struct kvc_error *err)
{
    struct kvc_scrape *out = s->out;
    int most = sizeof out->model - 1, n = l->n_model < (size_t)most ? (int)l->n_model : most;

    *counts = !l->model || !s->served ||
              (strlen(s->served) == l->n_model && strncmp(l->model, s->served, l->n_model) == 0);
    if (!l->model || s->served)
        return KVC_OK;
    if (!out->model[0])
        snprintf(out->model, sizeof out->model, "%.*s", n, l->model);
    if (strlen(out->model) == (size_t)n && strncmp(out->model, l->model, (size_t)n) == 0)
        return KVC_OK;
    return kvc_fail_at(err, KVC_ERR_INPUT, out->path, line, "model_name",
                       "metrics of \"%.100s\" and of \"%.*s\": say with --served-model whose count",
                       out->model, n < 100 ? n : 100, l->model);
}

static enum kvc_status take_value(struct scan *s, const struct name *m, size_t rank,
                                  const struct labels *l, const char *value, uint64_t line,
                                  struct kvc_error *err)
{
    const char *name = m->names[rank];
    double v = kvc_readings_number(value, strcspn(value, " \t\r\n"));

    if (!isfinite(v) || v < 0)
        return kvc_fail_at(err, KVC_ERR_INPUT, s->out->path, line, name,
                           "its value is no number from 0 on");
    if (isnan(l->le) && buckets_of(s->out, m->metric))
        return kvc_fail_at(err, KVC_ERR_INPUT, s->out->path, line, name,
                           "the bucket states no upper bound (le)");
    if (!add(s, m->metric, rank, l->le, v))
        return kvc_fail_at(err, KVC_ERR_LIMIT, s->out->path, line, name, "more than %d buckets",
                           KVC_MOST_BUCKETS);
    return KVC_OK;
}

static void take_start(struct scan *s, const char *value)
{
    double v = kvc_readings_number(value, strcspn(value, " \t\r\n"));

    if (v > 0 && !(s->out->started <= v))
        s->out->started = v;
}

/* The engine's name and ':', or '_' where a colon was not allowed. N_ENGINES: nothing of one. */
static size_t engine_of(const char *text, size_t n, const char **name)
{
    size_t i = 0, k = 0;

    for (; i < N_ENGINES; i++) {
        k = strlen(backends[i]);
        if (n > k && strncmp(text, backends[i], k) == 0 &&
            (text[k] == ':' || text[k] == '_'))
            break;
    }
    *name = text + k + 1;
    return i;
}

/* One of the metrics that are read. */
static enum kvc_status take_metric(struct scan *s, size_t engine, const struct name *m, size_t rank,
                                   const struct labels *l, const char *value, uint64_t line,
                                   struct kvc_error *err)
{
    bool counts = false;
    enum kvc_status status = check_served(s, l, line, &counts, err);

    if (status != KVC_OK || !counts)
        return status;
    if (s->out->backend && s->out->backend != backends[engine])
        return kvc_fail_at(err, KVC_ERR_INPUT, s->out->path, line, m->names[rank],
                           "metrics of %s beside those of %s: scrape one engine",
                           backends[engine], s->out->backend);
    s->out->backend = backends[engine];
    return take_value(s, m, rank, l, value, line, err);
}

static enum kvc_status take_line(struct scan *s, const char *text, size_t n, uint64_t line,
                                 struct kvc_error *err)
{
    const char *name, *end = text + n;
    size_t engine = engine_of(text, n, &name);
    struct labels l = {.le = NAN};
    enum kvc_status status = KVC_OK;

    if (engine == N_ENGINES)
        return KVC_OK;
    size_t k = strcspn(name, "{ \t\r\n");
    const char *value = name + k;
    if (*value == '{')
        value = read_labels(value + 1, end, &l);
    size_t n_series = (size_t)(value - text);
    if (s->any && n_series == s->n_series && memcmp(text, s->series, n_series) == 0)
        return kvc_fail_at(err, KVC_ERR_INPUT, s->out->path, line, NULL,
                           "%.*s stands here a second time: put each scrape in a file of its own",
                           (int)k, name);
    value += strspn(value, " \t");
    if (is_named(name, k, "time_to_first_token_seconds_created") && value < end)
        take_start(s, value);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !l.other_rank; i++) {
        const struct name *m = &names[i];
        if (!(m->engines & 1u << engine))
            continue;
        for (size_t rank = 0; rank < MOST_NAMES && m->names[rank] && status == KVC_OK; rank++)
            if (is_named(name, k, m->names[rank]))
                status = value < end
                             ? take_metric(s, engine, m, rank, &l, value, line, err)
                             : kvc_fail_at(err, KVC_ERR_INPUT, s->out->path, line, m->names[rank],
                                           "has no value");
    }
    if (s->any && !s->series) {
        s->series = text;
        s->n_series = n_series;
    }
    return status;
}

/* The first token of each request is no step between tokens. */
static void count_steps(struct kvc_scrape *s)
{
    if (s->backend && strcmp(s->backend, "trtllm") == 0)
        s->value[KVC_METRIC_ITL_COUNT] =
            s->value[KVC_METRIC_GENERATED] - s->value[KVC_METRIC_TTFT_COUNT];
}

enum kvc_status kvc_scrape_read(struct kvc_scrape *out, const char *path, const char *served,
                                struct kvc_error *err)
{
    static const char process[] = "process_start_time_seconds ";
    struct kvc_readings_text t;
    struct scan s = {.out = out, .served = served};
    uint64_t line = 0;
    enum kvc_status status = kvc_readings_open(&t, path, MOST_BYTES, err);

    memset(out, 0, sizeof *out);
    out->path = path;
    out->started = NAN;
    for (size_t i = 0; i < KVC_METRICS; i++)
        out->value[i] = NAN;
    const char *at = status == KVC_OK ? t.text : "", *text;
    size_t n;
    while (status == KVC_OK && (text = kvc_readings_line(&at, &n))) {
        status = take_line(&s, text, n, ++line, err);
        if (strncmp(text, process, sizeof process - 1) == 0)
            take_start(&s, text + sizeof process - 1);
    }
    if (status == KVC_OK && !s.any && served)
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, "model_name",
                             "no metric of a model served as \"%.100s\" in it", served);
    else if (status == KVC_OK && !s.any)
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                             "no metric of vLLM (vllm:..), SGLang (sglang:..) or TensorRT-LLM "
                             "(trtllm_..) in it; a scrape is what 'curl http://HOST:8000/metrics' "
                             "prints (trtllm-serve: /prometheus/metrics)");
    count_steps(out);
    kvc_readings_text_clear(&t);
    return status;
}
