/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/prometheus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "studies/calibrate/readings.h"

#define MOST_BYTES ((size_t)64 << 20)

/* Several versions' names; of two that are there the first counts. */
static const struct {
    enum kvc_metric metric;
    const char *vllm[3], *sglang[3]; /* behind "vllm:" and "sglang:"; "_total" may follow */
} names[] = {
    {KVC_METRIC_TTFT_SUM, {"time_to_first_token_seconds_sum"}, {"time_to_first_token_seconds_sum"}},
    {KVC_METRIC_TTFT_COUNT, {"time_to_first_token_seconds_count"},
     {"time_to_first_token_seconds_count"}},
    {KVC_METRIC_ITL_SUM, {"inter_token_latency_seconds_sum", "time_per_output_token_seconds_sum"},
     {"inter_token_latency_seconds_sum", "time_per_output_token_seconds_sum"}},
    {KVC_METRIC_ITL_COUNT,
     {"inter_token_latency_seconds_count", "time_per_output_token_seconds_count"},
     {"inter_token_latency_seconds_count", "time_per_output_token_seconds_count"}},
    {KVC_METRIC_QUEUE_SUM, {"request_queue_time_seconds_sum"}, {"queue_time_seconds_sum"}},
    {KVC_METRIC_QUEUE_COUNT, {"request_queue_time_seconds_count"}, {"queue_time_seconds_count"}},
    {KVC_METRIC_PREFILL_SUM, {"request_prefill_time_seconds_sum"}, {NULL}},
    {KVC_METRIC_PREFILL_COUNT, {"request_prefill_time_seconds_count"}, {NULL}},
    {KVC_METRIC_PROMPT, {"prompt_tokens"}, {"prompt_tokens"}},
    {KVC_METRIC_GENERATED, {"generation_tokens"}, {"generation_tokens"}},
    {KVC_METRIC_STEPS, {"iteration_tokens_total_count"}, {NULL}},
    {KVC_METRIC_CACHED, {"prefix_cache_hits", "gpu_prefix_cache_hits"}, {"cached_tokens"}},
    {KVC_METRIC_LOOKED_UP, {"prefix_cache_queries", "gpu_prefix_cache_queries"},
     {"prompt_tokens"}},
    {KVC_METRIC_RUNNING, {"num_requests_running"}, {"num_running_reqs"}},
    {KVC_METRIC_TTFT_BUCKET, {"time_to_first_token_seconds_bucket"},
     {"time_to_first_token_seconds_bucket"}},
    {KVC_METRIC_ITL_BUCKET,
     {"inter_token_latency_seconds_bucket", "time_per_output_token_seconds_bucket"},
     {"inter_token_latency_seconds_bucket", "time_per_output_token_seconds_bucket"}},
};
#define N_NAMES (sizeof names / sizeof names[0])

struct scan {
    struct kvc_scrape *out;
    size_t rank[KVC_METRICS]; /* of the name that a value came from */
    bool any;
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

/* What lies behind labels; *le: the bound that a bucket's state, NAN without. Values may hold
 * anything, quoted. */
static const char *skip_labels(const char *at, const char *end, double *le)
{
    bool inside = false;

    for (; at < end && (inside || *at != '}'); at++) {
        if (!inside && (*at == '{' || *at == ',') && end - at > 5 && !strncmp(at + 1, "le=\"", 4))
            *le = kvc_readings_number(at + 5, strcspn(at + 5, "\""));
        inside ^= *at == '"';
        at += *at == '\\';
    }
    return at < end ? at + 1 : end;
}

static void note_model(struct scan *s, const char *labels, const char *end)
{
    const char *at = strstr(labels, "model_name=\"");

    if (s->out->model[0] || !at || at >= end)
        return;
    at += strlen("model_name=\"");
    size_t n = strcspn(at, "\"");
    snprintf(s->out->model, sizeof s->out->model, "%.*s", n < 127 ? (int)n : 127, at);
}

/* name{labels} value [time] */
static enum kvc_status take_line(struct scan *s, const char *text, size_t n, uint64_t line,
                                 struct kvc_error *err)
{
    const char *colon = memchr(text, ':', n), *end = text + n;
    bool sglang = colon && colon - text == 6 && strncmp(text, "sglang", 6) == 0;

    if (!sglang && !(colon && colon - text == 4 && strncmp(text, "vllm", 4) == 0))
        return KVC_OK;
    size_t k = strcspn(colon + 1, "{ \t\r\n");
    const char *value = colon + 1 + k;
    double le = NAN;
    if (*value == '{') {
        note_model(s, value, end);
        value = skip_labels(value, end, &le);
    }
    for (size_t i = 0; i < N_NAMES; i++)
        for (size_t rank = 0; rank < 3; rank++) {
            const char *name = sglang ? names[i].sglang[rank] : names[i].vllm[rank];
            if (!name || !is_named(colon + 1, k, name))
                continue;
            if (value >= end)
                return kvc_fail_at(err, KVC_ERR_INPUT, s->out->path, line, name, "has no value");
            value += strspn(value, " \t");
            double v = kvc_readings_number(value, strcspn(value, " \t\r\n"));
            if (!isfinite(v) || v < 0)
                return kvc_fail_at(err, KVC_ERR_INPUT, s->out->path, line, name,
                                   "its value is no number from 0 on");
            s->out->sglang = sglang;
            if (isnan(le) && buckets_of(s->out, names[i].metric))
                return kvc_fail_at(err, KVC_ERR_INPUT, s->out->path, line, name,
                                   "the bucket states no upper bound (le)");
            if (!add(s, names[i].metric, rank, le, v))
                return kvc_fail_at(err, KVC_ERR_LIMIT, s->out->path, line, name,
                                   "more than %d buckets", KVC_MOST_BUCKETS);
        }
    return KVC_OK;
}

enum kvc_status kvc_scrape_read(struct kvc_scrape *out, const char *path, struct kvc_error *err)
{
    struct kvc_readings_text t;
    struct scan s = {.out = out};
    uint64_t line = 0;
    enum kvc_status status = kvc_readings_open(&t, path, MOST_BYTES, err);

    memset(out, 0, sizeof *out);
    out->path = path;
    for (size_t i = 0; i < KVC_METRICS; i++)
        out->value[i] = NAN;
    const char *at = status == KVC_OK ? t.text : "", *text;
    size_t n;
    while (status == KVC_OK && (text = kvc_readings_line(&at, &n)))
        status = take_line(&s, text, n, ++line, err);
    if (status == KVC_OK && !s.any)
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL,
                             "no metric of vLLM (vllm:..) or SGLang (sglang:..) in it; a scrape is "
                             "what 'curl http://HOST:8000/metrics' prints");
    kvc_readings_text_clear(&t);
    return status;
}
