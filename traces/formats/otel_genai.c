/* SPDX-License-Identifier: Apache-2.0
 * Spans of OpenTelemetry's GenAI conventions, as OTLP JSON (resourceSpans) or flat ({trace_id,
 * spans}, or a span a row). Calls of models become rows; a call that encloses another in its trace
 * repeats that one's usage, so the inner one counts. */
#include "base/alloc.h"
#include "base/error.h"
#include "traces/formats/otel_span.h"
#include "traces/import/import_state.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

#define HELD_MOST 2048 /* calls held back until their relatives have come */
#define ANCESTORS_MOST 64

struct tree { /* a record, shared by the spans in it that are held */
    struct kvc_jval *root;
    size_t uses;
};

struct relative { /* a span by number of its id, seen or only named */
    uint64_t start_ns, end_ns;
    uint32_t parent, session; /* KVC_ID_NONE without */
    bool seen, call, encloses;
};

struct held {
    struct tree *tree;
    struct kvc_otel_span span;
    uint32_t number;
    uint64_t line;
    char where[48];
};

struct reader {
    struct kvc_import *im;
    struct kvc_intern ids, sessions;
    struct relative *all;
    size_t cap, n;
    struct held *held;
    size_t n_held, held_cap;
    struct kvc_stored stored;
    struct kvc_text scratch;
    struct tree *tree; /* of the record at hand */
    size_t spans;      /* in it so far */
};

/* ---- relatives ---- */

static const char *id_of(const struct kvc_jval *span, const char *names, const char *nested)
{
    struct kvc_jval *parsed = NULL;
    const struct kvc_jval *v = kvc_record_any(span, names, NULL);
    if (!v && nested)
        v = kvc_record_at(span, nested, &parsed);
    kvc_json_free(parsed);
    return v ? kvc_jval_string(v) : NULL;
}

static struct relative *relative(struct reader *r, const char *trace, const char *id,
                                 uint32_t *number)
{
    char key[160];
    snprintf(key, sizeof(key), "%.70s/%.80s", trace ? trace : "", id);
    if (!kvc_intern_get(&r->ids, key, strlen(key), number) ||
        !kvc_grow((void **)&r->all, &r->cap, (size_t)*number + 1, sizeof(*r->all)))
        return NULL;
    for (; r->n <= *number; r->n++)
        r->all[r->n] = (struct relative){ .parent = KVC_ID_NONE, .session = KVC_ID_NONE };
    return &r->all[*number];
}

/* Every call that encloses this one, however far up, is not counted. */
static void mark_ancestors(struct reader *r, uint32_t number)
{
    const struct relative *inner = &r->all[number];
    uint32_t at = inner->parent;
    for (unsigned i = 0; i < ANCESTORS_MOST && at != KVC_ID_NONE && at != number; i++) {
        struct relative *a = &r->all[at];
        if (a->seen && a->call && a->start_ns <= inner->start_ns &&
            inner->end_ns != KVC_TIME_NONE && a->end_ns != KVC_TIME_NONE &&
            inner->end_ns <= a->end_ns)
            a->encloses = true;
        at = a->parent;
    }
}

static uint32_t session_of(const struct reader *r, uint32_t number)
{
    uint32_t at = number;
    for (unsigned i = 0; i < ANCESTORS_MOST && at != KVC_ID_NONE; i++) {
        if (r->all[at].session != KVC_ID_NONE)
            return r->all[at].session;
        at = r->all[at].parent;
    }
    return KVC_ID_NONE;
}

/* ---- rows ---- */

static void span_of(const struct kvc_jval *v, char number[24], struct kvc_span *out)
{
    uint64_t n;
    const char *text = v ? kvc_jval_string(v) : NULL;
    if (!text && v && kvc_jval_u64(v, &n)) {
        snprintf(number, 24, "%llu", (unsigned long long)n);
        text = number;
    }
    if (text)
        *out = (struct kvc_span){ text, strlen(text) };
}

static enum kvc_status read_call(struct reader *r, const struct held *h, struct kvc_log_row *row,
                                 struct kvc_usage *usage, char tenant[24], char model[24],
                                 struct kvc_error *err)
{
    struct kvc_place at = { kvc_import_file(r->im), h->line };
    const char *field = kvc_import_tenant_field(r->im, "user.id|enduser.id");
    const struct kvc_jval *who = kvc_otel_attribute(&h->span, field);
    uint32_t session = session_of(r, h->number);
    enum kvc_status status = kvc_otel_usage(&h->span, &at, usage, err);
    if (status != KVC_OK)
        return status;
    *row = (struct kvc_log_row){ .time_ns = r->all[h->number].start_ns, .think_ns = KVC_TIME_NONE,
                                 .status = KVC_ROW_OK };
    if (r->all[h->number].end_ns != KVC_TIME_NONE)
        row->end_ns = r->all[h->number].end_ns;
    if (kvc_otel_failed(&h->span))
        row->status = KVC_ROW_FAILED;
    kvc_usage_into_row(usage, row);
    span_of(kvc_otel_attribute(&h->span, "gen_ai.request.model|gen_ai.response.model|"
                                         "llm.request.model|llm.model_name"),
            model, &row->model);
    span_of(who ? who : kvc_otel_resource(&h->span, field), tenant, &row->tenant);
    if (session != KVC_ID_NONE) {
        const char *name = r->sessions.bytes + r->sessions.at[session];
        row->session = (struct kvc_span){ name, strlen(name) };
    }
    if (usage->against_custom)
        kvc_import_tally(r->im, "count cached tokens beside the input, as only that adds up; the "
                                "others inside it, as the convention has it");
    return KVC_OK;
}

static enum kvc_status hand_on(struct reader *r, const struct held *h, struct kvc_error *err)
{
    struct kvc_log_row row;
    struct kvc_usage usage;
    struct kvc_error bad;
    char tenant[24], model[24];
    if (r->all[h->number].encloses) {
        kvc_import_tally(r->im, "calls that enclose another call, whose usage they repeat; the "
                                "inner ones count");
        return KVC_OK;
    }
    if (read_call(r, h, &row, &usage, tenant, model, &bad) != KVC_OK)
        return kvc_import_bad(r->im, &bad, err);
    if (kvc_otel_attribute(&h->span, "gen_ai.response.time_to_first_chunk"))
        kvc_import_tally(r->im, "streamed (the time to the first chunk is given)");
    kvc_stored_begin(&r->stored, &row.model);
    kvc_otel_prompt(&h->span, &r->stored, &r->scratch);
    if (r->scratch.failed)
        return kvc_fail_nomem(err);
    return kvc_stored_hand_on(&r->stored, r->im, &row, usage.prompt_stated, usage.output_stated,
                              usage.reasoning_stated ? usage.reasoning_tokens : KVC_ID_NONE, err);
}

static void release(struct tree *tree)
{
    if (--tree->uses)
        return;
    kvc_json_free(tree->root);
    kvc_free(tree);
}

/* Hands on the first so many. */
static enum kvc_status let_go(struct reader *r, size_t n, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    uint64_t line = r->im->lines.line;
    for (size_t i = 0; i < r->n_held; i++)
        mark_ancestors(r, r->held[i].number);
    for (size_t i = 0; i < n; i++) {
        r->im->lines.line = r->held[i].line;
        memcpy(r->im->where, r->held[i].where, sizeof(r->im->where));
        if (status == KVC_OK)
            status = hand_on(r, &r->held[i], err);
        release(r->held[i].tree);
    }
    if (n)
        memmove(r->held, r->held + n, (r->n_held - n) * sizeof(*r->held));
    r->n_held -= n;
    r->im->lines.line = line;
    return status;
}

/* ---- spans ---- */

static enum kvc_status note_span(struct reader *r, const struct kvc_otel_span *span,
                                 const struct kvc_place *at, const char *trace_id,
                                 uint32_t *number, bool *again, struct kvc_error *err)
{
    char made_up[32];
    const char *trace = id_of(span->v, "trace_id|traceId", "context.trace_id");
    const char *id = id_of(span->v, "span_id|spanId", "context.span_id");
    const char *parent = id_of(span->v, "parent_span_id|parentSpanId|parent_id", NULL);
    struct relative *me;
    uint64_t start, end;
    uint32_t above = KVC_ID_NONE, session = KVC_ID_NONE;
    enum kvc_status status = kvc_otel_times(span, r->im, at, &start, &end, err);
    if (status != KVC_OK)
        return status;
    if (!id) {
        snprintf(made_up, sizeof(made_up), "\1%llu", (unsigned long long)r->im->report.rows);
        id = made_up;
    }
    trace = trace ? trace : trace_id;
    if (parent && strspn(parent, "0") < strlen(parent) &&
        !relative(r, trace, parent, &above))
        return kvc_fail_nomem(err);
    if (!(me = relative(r, trace, id, number)))
        return kvc_fail_nomem(err);
    struct kvc_span name = { 0 };
    char digits[24];
    span_of(kvc_otel_session(span), digits, &name);
    if (name.text && !kvc_intern_get(&r->sessions, name.text, name.n, &session))
        return kvc_fail_nomem(err);
    *again = me->seen;
    if (!me->seen)
        *me = (struct relative){ .start_ns = start, .end_ns = end, .parent = above,
                                 .session = session, .seen = true,
                                 .call = kvc_otel_work(span) == KVC_OTEL_CALL };
    return KVC_OK;
}

static enum kvc_status hold(struct reader *r, const struct kvc_otel_span *span,
                            const struct kvc_place *at, uint32_t number, struct kvc_error *err)
{
    if (!kvc_grow((void **)&r->held, &r->held_cap, r->n_held + 1, sizeof(*r->held)))
        return kvc_fail_nomem(err);
    struct held *h = &r->held[r->n_held++];
    *h = (struct held){ r->tree, *span, number, at->line, "" };
    memcpy(h->where, r->im->where, sizeof(h->where));
    r->tree->uses++;
    return r->n_held < HELD_MOST ? KVC_OK : let_go(r, HELD_MOST / 2, err);
}

static enum kvc_status one_span(struct reader *r, const struct kvc_jval *v,
                                const struct kvc_jval *resource, const char *trace_id,
                                struct kvc_error *err)
{
    struct kvc_otel_span span = { v, resource };
    struct kvc_error bad;
    char where[48];
    uint32_t number;
    bool again = false;
    if (r->spans++) { /* the record was counted as a row when it was read */
        snprintf(where, sizeof(where), "span %zu", r->spans);
        kvc_import_begin_row(r->im, kvc_jval_line(v), where);
    }
    struct kvc_place at = { kvc_import_file(r->im), kvc_jval_line(v) };
    if (kvc_jval_kind(v) != KVC_JOBJECT) {
        kvc_field_wrong(&at, "spans", v, "a span is an object", &bad);
        return kvc_import_bad(r->im, &bad, err);
    }
    enum kvc_status status = note_span(r, &span, &at, trace_id, &number, &again, &bad);
    if (status != KVC_OK)
        return kvc_import_bad(r->im, &bad, err);
    if (again) {
        kvc_import_tally(r->im, "spans that came before under the same id; left out");
        return KVC_OK;
    }
    if (!r->all[number].call) {
        kvc_import_tally(r->im, "spans of other work than calls of models (agents, tools, "
                                "embeddings, ..); left out");
        return KVC_OK;
    }
    return hold(r, &span, &at, number, err);
}

static enum kvc_status span_list(struct reader *r, const struct kvc_jval *list,
                                 const struct kvc_jval *resource, const char *trace_id,
                                 struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    if (!list || kvc_jval_kind(list) != KVC_JARRAY)
        return KVC_OK;
    for (const struct kvc_jval *v = kvc_jval_first(list); v && status == KVC_OK;
         v = kvc_jval_next(v))
        status = one_span(r, v, resource, trace_id, err);
    return status;
}

static enum kvc_status otlp(struct reader *r, const struct kvc_jval *list, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    if (kvc_jval_kind(list) != KVC_JARRAY)
        return KVC_OK;
    for (const struct kvc_jval *rs = kvc_jval_first(list); rs && status == KVC_OK;
         rs = kvc_jval_next(rs)) {
        const struct kvc_jval *resource = kvc_field_member(rs, "resource");
        const struct kvc_jval *scopes = kvc_record_any(rs, "scopeSpans|scope_spans|"
                                                           "instrumentationLibrarySpans", NULL);
        resource = resource ? kvc_field_member(resource, "attributes") : NULL;
        if (!scopes || kvc_jval_kind(scopes) != KVC_JARRAY)
            continue;
        for (const struct kvc_jval *s = kvc_jval_first(scopes); s && status == KVC_OK;
             s = kvc_jval_next(s))
            status = span_list(r, kvc_field_member(s, "spans"), resource, NULL, err);
    }
    return status;
}

static enum kvc_status one_record(struct reader *r, struct kvc_jval *root, struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_record_any(root, "resourceSpans|resource_spans", NULL);
    const struct kvc_jval *spans = kvc_field_member(root, "spans");
    enum kvc_status status;
    r->tree = kvc_calloc(1, sizeof(*r->tree));
    if (!r->tree) {
        kvc_json_free(root);
        return kvc_fail_nomem(err);
    }
    *r->tree = (struct tree){ root, 1 };
    r->spans = 0;
    if (v)
        status = otlp(r, v, err);
    else if (spans)
        status = span_list(r, spans, NULL, id_of(root, "trace_id|traceId", NULL), err);
    else
        status = one_span(r, root, NULL, NULL, err);
    if (!r->spans)
        kvc_import_tally(r->im, "records without a span");
    release(r->tree);
    return status;
}

static void clear(struct reader *r)
{
    for (size_t i = 0; i < r->n_held; i++)
        release(r->held[i].tree);
    kvc_free(r->held);
    kvc_free(r->all);
    kvc_intern_clear(&r->ids);
    kvc_intern_clear(&r->sessions);
    kvc_stored_clear(&r->stored);
    kvc_text_clear(&r->scratch);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .im = im };
    struct kvc_records records;
    struct kvc_jval *root = NULL;
    enum kvc_status status = kvc_records_open(&records, im, err);
    while (status == KVC_OK && (status = kvc_records_next(&records, &root, err)) == KVC_OK && root)
        status = one_record(&r, root, err);
    if (status == KVC_OK)
        status = let_go(&r, r.n_held, err);
    clear(&r);
    kvc_records_clear(&records);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    static const char *const any[][4] = {
        { "resourceSpans", NULL }, { "resource_spans", NULL }, { "trace_id", "spans", NULL },
        { "traceId", "spans", NULL }, { "span_id", "attributes", NULL },
        { "spanId", "attributes", NULL }, { "context.span_id", "attributes", NULL },
    };
    for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
        if (kvc_json_sniff(head, n, any[i]))
            return true;
    return false;
}

const struct kvc_format kvc_format_otel_genai = {
    .name = "otel-genai",
    .summary = "OpenTelemetry GenAI spans: OTLP JSON or flat",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
};
