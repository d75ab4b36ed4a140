/* SPDX-License-Identifier: Apache-2.0 */
#include "studies/calibrate/request_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/profiles.h"
#include "studies/csv_table.h"

#define LONGEST_S 1e7 /* what passes for a latency */

enum kvc_status kvc_measured_log_add(struct kvc_measured_log *log, double input, double output,
                                     double ttft_s, double e2e_s, double arrival_s,
                                     const char *path, uint64_t line, struct kvc_error *err)
{
    if (!(input >= 1 && input <= UINT32_MAX && output >= 1 && output <= UINT32_MAX) ||
        input != floor(input) || output != floor(output))
        return kvc_fail_at(err, KVC_ERR_INPUT, path, line, NULL,
                           "tokens of prompt and answer are missing or no whole numbers from 1 on: "
                           "if the request failed, take its row out");
    if (isnan(ttft_s) || isnan(e2e_s))
        return kvc_fail_at(err, KVC_ERR_INPUT, path, line, NULL,
                           "the time of its %s token is missing: if the request failed, take its "
                           "row out", isnan(ttft_s) ? "first" : "last");
    if (!(ttft_s >= 0) || !(e2e_s >= ttft_s) || !(e2e_s < LONGEST_S))
        return kvc_fail_at(err, KVC_ERR_INPUT, path, line, NULL,
                           "its first and last token %g s and %g s after it came make no sense: if "
                           "the request failed, take its row out", ttft_s, e2e_s);
    if (!kvc_grow((void **)&log->request, &log->cap, log->n + 1, sizeof *log->request))
        return kvc_fail_nomem(err);
    log->request[log->n++] = (struct kvc_measured_request){
        (uint32_t)input, (uint32_t)output, (uint64_t)(ttft_s * 1e9 + 0.5),
        (uint64_t)(e2e_s * 1e9 + 0.5), arrival_s};
    return KVC_OK;
}

static const char *const inputs[] = {"input_toks", "input_tokens", "prompt_tokens", NULL};
static const char *const outputs[] = {"output_toks", "output_tokens", "completion_tokens", NULL};
static const char *const arrivals[] = {"arrival_s", "arrival_time", "arrival_ts", "arrival", NULL};
static const char *const first_tokens[] = {"first_token_s", "first_token_time", "first_token_ts",
                                           "first_token", NULL};
static const char *const last_tokens[] = {"last_token_s", "last_token_time", "last_token_ts",
                                          "last_token", NULL};

/* ---- JSON lines ---- */

static double at(const struct kvc_jval *row, const char *key)
{
    return kvc_profile_number(row, key, NAN);
}

/* The first of several names that is there. */
static double any(const struct kvc_jval *row, const char *const *keys)
{
    double v = NAN;

    for (; *keys && isnan(v); keys++)
        v = at(row, *keys);
    return v;
}

static enum kvc_status no_arrival(const char *path, uint64_t line, struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_INPUT, path, line, NULL,
                       "its arrival (or queued_ts) is missing, so how long its tokens took is not "
                       "known: take the row out");
}

static enum kvc_status add_json(struct kvc_measured_log *log, const char *text, size_t n,
                                const char *path, uint64_t line, struct kvc_error *err)
{
    struct kvc_jval *row;
    enum kvc_status status = kvc_json_parse(&row, text, n, false, path, line, err);

    if (status != KVC_OK)
        return status;
    if (kvc_measured_is_bench(row)) {
        status = kvc_measured_log_bench(log, row, path, err);
        kvc_json_free(row);
        return status;
    }
    double queued = at(row, "queued_ts"), arrival = any(row, arrivals), begin = queued;
    double first = any(row, first_tokens), last = any(row, last_tokens);
    if (isnan(queued)) { /* the client's clock */
        begin = arrival;
        log->engine_clock = false;
    }
    status = isnan(begin) && !(isnan(first) && isnan(last))
                 ? no_arrival(path, line, err)
                 : kvc_measured_log_add(log, any(row, inputs), any(row, outputs), first - begin,
                                        last - begin, arrival, path, line, err);
    kvc_json_free(row);
    return status;
}

static enum kvc_status read_json(struct kvc_measured_log *log, const char *path,
                                 struct kvc_error *err)
{
    struct kvc_stream *stream;
    struct kvc_lines lines;
    enum kvc_line_kind kind = KVC_LINE_TEXT;
    const char *text;
    size_t n;
    uint64_t line = 0;
    enum kvc_status status = kvc_stream_open(&stream, path, err);

    if (status != KVC_OK)
        return status;
    if (!kvc_lines_init(&lines, stream))
        status = kvc_fail_nomem(err);
    log->engine_clock = true;
    while (status == KVC_OK) {
        status = kvc_lines_next(&lines, &kind, &text, &n, err);
        if (status != KVC_OK || kind != KVC_LINE_TEXT)
            break;
        line++;
        if (n)
            status = add_json(log, text, n, path, line, err);
    }
    kvc_lines_clear(&lines);
    kvc_stream_close(stream);
    return status;
}

/* ---- CSV ---- */

static const char *column_of(const struct kvc_csv_table *t, const char *const *names)
{
    while (*names && !kvc_csv_table_has(t, *names))
        names++;
    return *names;
}

/* Latencies, or times; what is missing is named. */
struct columns {
    const char *input, *output, *ttft, *e2e, *arrival, *first, *last;
};

static enum kvc_status find_columns(const struct kvc_csv_table *t, struct columns *c,
                                    const char *path, struct kvc_error *err)
{
    static const char *const ttft[] = {"ttft_ms", NULL}, *const e2e[] = {"e2e_ms", NULL};

    *c = (struct columns){column_of(t, inputs), column_of(t, outputs), column_of(t, ttft),
                          column_of(t, e2e), column_of(t, arrivals), column_of(t, first_tokens),
                          column_of(t, last_tokens)};
    const char *missing = !c->input    ? "input_tokens"
                          : !c->output ? "output_tokens"
                          : c->arrival && c->first && c->last ? NULL
                          : !c->ttft   ? "ttft_ms"
                          : !c->e2e    ? "e2e_ms" : NULL;
    return !missing ? KVC_OK
                    : kvc_fail_at(err, KVC_ERR_INPUT, path, 1, missing,
                                  "no such column; input_tokens, output_tokens, and ttft_ms and "
                                  "e2e_ms, or arrival, first_token and last_token in seconds, are "
                                  "expected, or JSON lines with queued_ts, first_token_ts and "
                                  "last_token_ts");
}

/* The columns' numbers; times come out as latencies. */
static enum kvc_status add_row(struct kvc_measured_log *log, struct kvc_csv_table *t,
                               const struct columns *c, struct kvc_error *err)
{
    bool stated = c->ttft && c->e2e;
    double input, output, first, last, arrival = NAN;
    enum kvc_status status = kvc_csv_table_number(t, c->input, &input, err);

    if (status == KVC_OK)
        status = kvc_csv_table_number(t, c->output, &output, err);
    if (status == KVC_OK && c->arrival)
        status = kvc_csv_table_number(t, c->arrival, &arrival, err);
    if (status == KVC_OK)
        status = kvc_csv_table_number(t, stated ? c->ttft : c->first, &first, err);
    if (status == KVC_OK)
        status = kvc_csv_table_number(t, stated ? c->e2e : c->last, &last, err);
    if (status != KVC_OK)
        return status;
    if (!stated && isnan(arrival))
        return no_arrival(t->path, t->line, err);
    return kvc_measured_log_add(log, input, output, stated ? first / 1e3 : first - arrival,
                                stated ? last / 1e3 : last - arrival, arrival, t->path, t->line,
                                err);
}

static enum kvc_status read_csv(struct kvc_measured_log *log, const char *path,
                                struct kvc_error *err)
{
    struct kvc_csv_table t;
    struct columns c;
    bool more = true;
    enum kvc_status status = kvc_csv_table_open(&t, path, err);

    if (status == KVC_OK)
        status = find_columns(&t, &c, path, err);
    while (status == KVC_OK) {
        status = kvc_csv_table_next(&t, &more, err);
        if (status != KVC_OK || !more)
            break;
        const char *outcome = kvc_csv_table_cell(&t, "outcome");
        if (!*outcome || strcmp(outcome, "completed") == 0)
            status = add_row(log, &t, &c, err);
    }
    kvc_csv_table_close(&t);
    return status;
}

/* The first byte decides. */
static enum kvc_status begins_like_json(const char *path, bool *json, struct kvc_error *err)
{
    struct kvc_stream *stream;
    struct kvc_lines lines;
    enum kvc_line_kind kind;
    const char *text;
    size_t n;
    enum kvc_status status = kvc_stream_open(&stream, path, err);

    if (status != KVC_OK)
        return status;
    status = kvc_lines_init(&lines, stream) ? kvc_lines_next(&lines, &kind, &text, &n, err)
                                            : kvc_fail_nomem(err);
    *json = status == KVC_OK && kind == KVC_LINE_TEXT && n && text[0] == '{';
    kvc_lines_clear(&lines);
    kvc_stream_close(stream);
    return status;
}

enum kvc_status kvc_measured_log_read(struct kvc_measured_log *out, const char *path,
                                      struct kvc_error *err)
{
    bool json = false;
    enum kvc_status status = begins_like_json(path, &json, err);

    memset(out, 0, sizeof *out);
    if (status == KVC_OK)
        status = json ? read_json(out, path, err) : read_csv(out, path, err);
    if (status == KVC_OK && out->n == 0)
        status = kvc_fail_at(err, KVC_ERR_INPUT, path, 0, NULL, "no finished request in it");
    if (status != KVC_OK)
        kvc_measured_log_clear(out);
    return status;
}

static int compare(const void *a, const void *b)
{
    const struct kvc_measured_request *x = a, *y = b;

    int order = (x->arrival_s > y->arrival_s) - (x->arrival_s < y->arrival_s);

    if (!order)
        order = (x->ttft_ns > y->ttft_ns) - (x->ttft_ns < y->ttft_ns);
    if (!order)
        order = (x->e2e_ns > y->e2e_ns) - (x->e2e_ns < y->e2e_ns);
    if (!order)
        order = (x->input > y->input) - (x->input < y->input);
    return order ? order : (x->output > y->output) - (x->output < y->output);
}

bool kvc_measured_log_note(const struct kvc_measured_log *log, char out[256])
{
    struct kvc_measured_request *r = kvc_malloc(log->n, sizeof *r);
    size_t n = 0, repeats = 0;

    out[0] = '\0';
    for (size_t i = 0; r && i < log->n; i++)
        if (isfinite(log->request[i].arrival_s))
            r[n++] = log->request[i];
    if (n)
        qsort(r, n, sizeof *r, compare);
    for (size_t i = 1; i < n; i++)
        repeats += compare(&r[i - 1], &r[i]) == 0;
    if (repeats)
        snprintf(out, 256, "%zu of its %zu rows equal another in arrival, tokens and times: each "
                 "is taken for a request of its own; copies must go", repeats, log->n);
    kvc_free(r);
    return r != NULL;
}

void kvc_measured_log_clear(struct kvc_measured_log *log)
{
    kvc_free(log->request);
    memset(log, 0, sizeof *log);
}
