/* SPDX-License-Identifier: Apache-2.0
 * SGLang server logs: requests where --log-requests wrote them down, as text or as JSON, what
 * batches and engines state, and the rows of --export-metrics-to-file. */
#include "base/alloc.h"
#include "base/error.h"
#include "traces/formats/engine_log.h"
#include "traces/parse/py_repr.h"
#include "traces/parse/records.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

#define CURE                                                                                       \
    "Start SGLang with --log-requests --log-requests-level 3 (and --log-requests-format json) to " \
    "have requests logged"
#define GIB 1073741824.0
#define TEXT_CUT 2048 /* characters, at log level 2 */

/* Ranks of one group print the same batches: one of each is listened to. */
struct ranks {
    char heard[64][40]; /* "DP0|TP3": group and rank */
    size_t n;
    uint64_t again; /* batches of others */
};

/* ---- engines ---- */

/* Takes "DP0 TP1 PP0" from the tag behind the time. *again: another rank of this group prints the
 * same batches and was there first. */
static struct kvc_engine_facts *engine_of(struct kvc_engine_log *l, bool *again)
{
    char group[40] = "", rank[40] = "";
    struct ranks *ranks = l->own;
    const char *close = memchr(l->line, ']', l->n < 100 ? l->n : 100);
    size_t n = close ? (size_t)(close - l->line) : 0;
    uint64_t number;
    *again = false;
    if (kvc_line_u64(l->line, n, " DP", &number))
        snprintf(group, sizeof(group), "DP%llu", (unsigned long long)number);
    for (size_t i = 0; i + 1 < n; i++)
        if (l->line[i] == ' ' && (l->line[i + 1] < '0' || l->line[i + 1] > '9') && !rank[0])
            snprintf(rank, sizeof(rank), "%.*s", (int)(n - i - 1 < 39 ? n - i - 1 : 39),
                     l->line + i + 1);
    size_t g = strlen(group);
    for (size_t i = 0; i < ranks->n; i++)
        if (strncmp(ranks->heard[i], group, g) == 0 && ranks->heard[i][g] == '|') {
            *again = strcmp(ranks->heard[i] + g + 1, rank) != 0;
            return *again ? NULL : kvc_import_engine(l->im, group);
        }
    if (ranks->n < sizeof(ranks->heard) / sizeof(ranks->heard[0]))
        snprintf(ranks->heard[ranks->n++], sizeof(ranks->heard[0]), "%.9s|%.29s", group, rank);
    return kvc_import_engine(l->im, group);
}

static bool batch(struct kvc_engine_log *l)
{
    bool again;
    uint64_t n;
    double v;
    bool prefill = memmem(l->line, l->n, "] Prefill batch", 15) != NULL;
    if (!prefill && !memmem(l->line, l->n, "] Decode batch", 14))
        return false;
    struct kvc_engine_facts *e = engine_of(l, &again);
    ((struct ranks *)l->own)->again += again;
    if (!e)
        return true;
    e->lines++;
    if (prefill && kvc_line_u64(l->line, l->n, "#new-token: ", &n))
        e->new_tokens += n;
    if (prefill && kvc_line_u64(l->line, l->n, "#cached-token: ", &n))
        e->cached_tokens += n;
    if (kvc_line_u64(l->line, l->n, "#running-req: ", &n))
        kvc_peak_u64(&e->running_peak, n);
    if (kvc_line_u64(l->line, l->n, "#queue-req: ", &n))
        kvc_peak_u64(&e->waiting_peak, n);
    if (kvc_line_number(l->line, l->n, "full token usage: ", &v) ||
        kvc_line_number(l->line, l->n, ", token usage: ", &v))
        kvc_peak(&e->kv_used_peak, v);
    if (kvc_line_number(l->line, l->n, "input throughput (token/s): ", &v))
        kvc_peak(&e->prompt_tokens_per_s_peak, v);
    if (kvc_line_number(l->line, l->n, "gen throughput (token/s): ", &v))
        kvc_peak(&e->output_tokens_per_s_peak, v);
    return true;
}

static bool sizes(struct kvc_engine_log *l)
{
    bool again;
    uint64_t tokens;
    double gb = 0, more;
    size_t rest;
    const char *p = kvc_line_after(l->line, l->n, "KV Cache is allocated. ", &rest);
    if (!p || !kvc_line_u64(p, rest, "#tokens: ", &tokens))
        return false;
    if (!kvc_line_number(p, rest, "KV size: ", &gb) && kvc_line_number(p, rest, "K size: ", &gb) &&
        kvc_line_number(p, rest, "V size: ", &more))
        gb += more;
    struct kvc_engine_facts *e = engine_of(l, &again);
    if (e && gb >= 0 && gb < 1e6) {
        e->kv_cache_tokens = tokens;
        e->kv_cache_bytes = (uint64_t)(gb * GIB);
    }
    return true;
}

/* ---- requests in text ---- */

static struct kvc_open_request *request(struct kvc_engine_log *l, const struct kvc_span *rid)
{
    const char *id = rid->text;
    size_t n = rid->n;
    if (n >= 2 && (*id == '\'' || *id == '"')) {
        id++;
        n -= 2;
    }
    return kvc_open_request(&l->requests, id, n, true, l->time_ns,
                            kvc_import_line_number(l->im));
}

/* "GenerateReqInput(rid='..', text='..', input_ids=[..], ..)" */
static enum kvc_status read_input(struct kvc_engine_log *l, const struct kvc_span *object,
                                  struct kvc_open_request **out, struct kvc_error *err)
{
    struct kvc_py w;
    struct kvc_span key, value, rid = { 0 }, text = { 0 }, ids = { 0 };
    size_t n = 0, characters = 0;
    *out = NULL;
    if (!kvc_py_inside(object, &w))
        return KVC_OK;
    while (kvc_py_member(&w, '=', &key, &value)) {
        if (kvc_py_is(&key, "rid"))
            rid = value;
        else if (kvc_py_is(&key, "text"))
            text = value;
        else if (kvc_py_is(&key, "input_ids"))
            ids = value;
    }
    if (!rid.text || kvc_py_is(&rid, "None") || rid.text[0] == '[')
        return KVC_OK;
    struct kvc_open_request *q = *out = request(l, &rid);
    l->text.len = 0;
    bool tokens = ids.text && kvc_py_ids(&ids, &l->ids, &n) && n && n <= KVC_TOKENS_MAX;
    bool string = !tokens && text.text && kvc_py_string(&text, &l->text, &characters) &&
                  characters;
    if (!q || n == KVC_ID_NONE || l->text.failed)
        return kvc_fail_nomem(err);
    if ((tokens && !kvc_open_request_ids(q, l->ids.v, n)) ||
        (string && !kvc_open_request_text(q, l->text.buf, l->text.len)))
        return kvc_fail_nomem(err);
    return KVC_OK;
}

/* {'meta_info': {'id': '..', 'finish_reason': {..}, 'prompt_tokens': 12, ..}} */
static void read_output(struct kvc_open_request *q, const struct kvc_span *out, double *latency_s)
{
    struct kvc_py w, meta;
    struct kvc_span key, value;
    uint64_t n;
    bool found = false;
    if (!kvc_py_inside(out, &w))
        return;
    while (!found && kvc_py_member(&w, ':', &key, &value))
        found = kvc_py_is(&key, "meta_info") && kvc_py_inside(&value, &meta);
    while (found && kvc_py_member(&meta, ':', &key, &value)) {
        if (kvc_py_is(&key, "e2e_latency"))
            kvc_py_double(&value, latency_s);
        if (kvc_py_is(&key, "finish_reason") && memmem(value.text, value.n, "'abort'", 7))
            q->status = KVC_ROW_CANCELLED;
        if (!kvc_py_u64(&value, &n) || n > KVC_TOKENS_MAX)
            continue;
        if (kvc_py_is(&key, "prompt_tokens")) {
            q->input_tokens = (uint32_t)n;
            q->input_stated = true;
        } else if (kvc_py_is(&key, "completion_tokens")) {
            q->output_tokens = (uint32_t)n;
            q->output_stated = true;
        } else if (kvc_py_is(&key, "cached_tokens")) {
            q->cached_tokens = (uint32_t)n;
            q->cached_stated = true;
        }
    }
}

/* A request whose arrival was not logged came its whole latency before its end. Ids that are not
 * as many as the tokens of the prompt are only a part. */
static void finish(struct kvc_engine_log *l, struct kvc_open_request *q, bool seen_before,
                   double latency_s)
{
    if (!seen_before && latency_s > 0 && latency_s < 1e8 && q->time_ns != KVC_TIME_NONE &&
        q->time_ns > (uint64_t)(latency_s * 1e9))
        q->time_ns -= (uint64_t)(latency_s * 1e9);
    if (q->token_ids && q->input_stated && q->n_token_ids != q->input_tokens) {
        kvc_import_tally(l->im, "requests with fewer or more token ids than prompt_tokens: their "
                                "prefixes are unknown");
        kvc_free(q->token_ids);
        q->token_ids = NULL;
    }
    q->done = true;
}

static enum kvc_status in_text(struct kvc_engine_log *l, bool *known, struct kvc_error *err)
{
    size_t n;
    const char *p = kvc_line_after(l->line, l->n, "] Receive: obj=", &n);
    bool finished = !p;
    if (!p)
        p = kvc_line_after(l->line, l->n, "] Finish: obj=", &n);
    *known = p != NULL;
    if (!p)
        return KVC_OK;
    struct kvc_py w = { p, p + n };
    struct kvc_span object, key, value;
    struct kvc_open_request *q;
    size_t had = l->requests.n;
    double latency_s = 0;
    if (!kvc_py_value(&w, &object))
        return KVC_OK;
    enum kvc_status status = read_input(l, &object, &q, err);
    if (status != KVC_OK || !q || !finished)
        return status;
    if (w.p < w.end && *w.p == ',')
        w.p++;
    while (kvc_py_member(&w, '=', &key, &value))
        if (kvc_py_is(&key, "out"))
            read_output(q, &value, &latency_s);
    finish(l, q, l->requests.n == had, latency_s);
    return KVC_OK;
}

/* ---- requests in JSON ---- */

static bool meta_count(const struct kvc_jval *meta, const char *key, uint32_t *out)
{
    const struct kvc_jval *v = kvc_field_member(meta, key);
    uint64_t n;
    if (!v || !kvc_jval_u64(v, &n) || n > KVC_TOKENS_MAX)
        return false;
    *out = (uint32_t)n;
    return true;
}

/* cuts: this log shortens long texts, as --log-requests does below level 3. */
static enum kvc_status json_input(struct kvc_engine_log *l, struct kvc_open_request *q,
                                  const struct kvc_jval *obj, bool cuts, struct kvc_error *err)
{
    const struct kvc_jval *ids = obj ? kvc_field_member(obj, "input_ids") : NULL;
    const struct kvc_jval *text = obj ? kvc_field_member(obj, "text") : NULL;
    const struct kvc_jval *lora = obj ? kvc_field_member(obj, "lora_path") : NULL;
    const char *string = text ? kvc_jval_string(text) : NULL;
    size_t n = 0;
    bool tokens = ids && kvc_jval_kind(ids) == KVC_JARRAY;
    for (const struct kvc_jval *v = tokens ? kvc_jval_first(ids) : NULL; v; v = kvc_jval_next(v)) {
        if (!kvc_grow((void **)&l->ids.v, &l->ids.cap, n + 1, sizeof(*l->ids.v)))
            return kvc_fail_nomem(err);
        tokens = tokens && kvc_jval_u64(v, &l->ids.v[n++]);
    }
    if (lora && kvc_jval_string(lora) && !q->adapter && !(q->adapter = kvc_strdup(
                                                              kvc_jval_string(lora))))
        return kvc_fail_nomem(err);
    tokens = tokens && n && n <= KVC_TOKENS_MAX;
    bool whole = string && *string &&
                 !(cuts && strlen(string) >= TEXT_CUT && strstr(string, " ... "));
    if (!tokens && string && *string && !whole)
        q->cut = true;
    if ((tokens && !kvc_open_request_ids(q, l->ids.v, n)) ||
        (whole && !kvc_open_request_text(q, string, strlen(string))))
        return kvc_fail_nomem(err);
    return KVC_OK;
}

static void json_output(struct kvc_open_request *q, const struct kvc_jval *meta, double *latency_s)
{
    struct kvc_jval *none = NULL;
    const struct kvc_jval *v = kvc_record_at(meta, "finish_reason.type", &none);
    q->input_stated = meta_count(meta, "prompt_tokens", &q->input_tokens) || q->input_stated;
    q->output_stated = meta_count(meta, "completion_tokens", &q->output_tokens) || q->output_stated;
    q->cached_stated = meta_count(meta, "cached_tokens", &q->cached_tokens) || q->cached_stated;
    kvc_record_double(kvc_field_member(meta, "e2e_latency"), latency_s);
    if (v && kvc_jval_string(v) && strcmp(kvc_jval_string(v), "abort") == 0)
        q->status = KVC_ROW_CANCELLED;
    kvc_json_free(none);
}

static enum kvc_status json_event(struct kvc_engine_log *l, const struct kvc_place *at,
                                  const struct kvc_jval *root, bool *known, struct kvc_error *err)
{
    const struct kvc_jval *event = kvc_field_member(root, "event");
    const struct kvc_jval *time = kvc_field_member(root, "timestamp");
    const struct kvc_jval *out = kvc_field_member(root, "out");
    const char *name = event ? kvc_jval_string(event) : NULL;
    struct kvc_span rid = { 0 };
    char number[24];
    double latency_s = 0;
    bool finished = name && strcmp(name, "request.finished") == 0;
    *known = finished || (name && strcmp(name, "request.received") == 0);
    if (!*known)
        return KVC_OK;
    if (!time)
        return kvc_field_missing(at, "timestamp", err);
    enum kvc_status status = kvc_record_when(l->im, at, "timestamp", time, &l->time_ns, err);
    if (status == KVC_OK)
        status = kvc_field_name(at, "rid", root, number, &rid, err);
    if (status == KVC_OK && !rid.text)
        status = kvc_field_missing(at, "rid", err);
    if (status != KVC_OK)
        return status;
    size_t had = l->requests.n;
    struct kvc_open_request *q = request(l, &rid);
    if (!q)
        return kvc_fail_nomem(err);
    status = json_input(l, q, kvc_field_member(root, "obj"), true, err);
    const struct kvc_jval *meta = out && kvc_jval_kind(out) == KVC_JOBJECT
                                      ? kvc_field_member(out, "meta_info")
                                      : NULL;
    if (meta && kvc_jval_kind(meta) == KVC_JOBJECT)
        json_output(q, meta, &latency_s);
    if (finished && status == KVC_OK)
        finish(l, q, l->requests.n == had, latency_s);
    return status;
}

/* A row of sglang-request-metrics-*.log: the request as JSON in a text, and the members of its
 * meta_info beside it. */
static enum kvc_status json_metrics(struct kvc_engine_log *l, const struct kvc_place *at,
                                    const struct kvc_jval *root, struct kvc_error *err)
{
    struct kvc_jval *parsed = NULL;
    const struct kvc_jval *came = kvc_field_member(root, "request_received_ts");
    const struct kvc_jval *left = kvc_field_member(root, "request_finished_ts");
    const char *field = came ? "request_received_ts" : "request_finished_ts";
    struct kvc_span id = { 0 };
    char number[24];
    double latency_s = 0;
    if (!came && !left)
        return kvc_field_missing(at, "request_received_ts", err);
    enum kvc_status status =
        kvc_record_when(l->im, at, field, came ? came : left, &l->time_ns, err);
    if (status == KVC_OK)
        status = kvc_field_name(at, "id", root, number, &id, err);
    if (status == KVC_OK && !id.text)
        status = kvc_field_missing(at, "id", err);
    if (status != KVC_OK)
        return status;
    struct kvc_open_request *q = request(l, &id);
    if (!q)
        return kvc_fail_nomem(err);
    const struct kvc_jval *asked = kvc_field_member(root, "request_parameters");
    status = json_input(l, q, kvc_record_json(asked, &parsed), false, err);
    kvc_json_free(parsed);
    json_output(q, root, &latency_s);
    if (status == KVC_OK)
        finish(l, q, came != NULL, latency_s);
    return status;
}

static enum kvc_status in_json(struct kvc_engine_log *l, bool *known, struct kvc_error *err)
{
    struct kvc_place at = { kvc_import_file(l->im), kvc_import_line_number(l->im) };
    struct kvc_jval *root = NULL;
    struct kvc_error bad;
    enum kvc_status status = kvc_row_parse(&root, l->line, l->n, &at, &bad);
    *known = status != KVC_OK || kvc_field_member(root, "request_parameters") != NULL;
    if (status == KVC_OK)
        status = *known ? json_metrics(l, &at, root, &bad) : json_event(l, &at, root, known, &bad);
    kvc_json_free(root);
    return status == KVC_OK ? KVC_OK : kvc_import_bad(l->im, &bad, err);
}

/* ---- lines ---- */

static enum kvc_status one_line(struct kvc_engine_log *l, bool *known, struct kvc_error *err)
{
    *known = true;
    if (l->n && l->line[0] == '{')
        return in_json(l, known, err);
    l->time_ns = kvc_line_time(&l->clock, l->line, l->n);
    if (batch(l) || sizes(l))
        return KVC_OK;
    return in_text(l, known, err);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct ranks ranks = { .n = 0 };
    struct kvc_engine_log l = { .im = im, .own = &ranks };
    enum kvc_status status = kvc_engine_log_read(&l, one_line, err);
    if (ranks.again)
        kvc_import_tally_rows(im, "batches that another rank of the same engine printed too",
                              ranks.again);
    return status;
}

static enum kvc_status end(struct kvc_import *im, struct kvc_error *err)
{
    return kvc_engine_log_end(im, CURE, err);
}

static bool sniff(const char *head, size_t n)
{
    static const char *const words[] = { "] Prefill batch", "] Decode batch", "] Receive: obj=",
                                         "] Finish: obj=", "KV Cache is allocated. #tokens" };
    static const char *const event[] = { "event", "rid", "timestamp", NULL };
    static const char metrics[] = "{\"request_parameters\""; /* a long text may follow it */
    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
        if (memmem(head, n, words[k], strlen(words[k])))
            return true;
    return kvc_json_sniff(head, n, event) ||
           (n > sizeof(metrics) && memcmp(head, metrics, sizeof(metrics) - 1) == 0);
}

const struct kvc_format kvc_format_sglang_log = {
    .name = "sglang-log",
    .summary = "SGLang server logs: requests as text or JSON, batches; exported request metrics",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
    .end = end,
};
