/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/formats/otel_span.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MESSAGES_MOST 4096 /* of conventions that number them */

/* ---- attributes ---- */

/* OTLP wraps values, {"intValue": "5"}; flat spans do not. */
static const struct kvc_jval *unwrap(const struct kvc_jval *v)
{
    static const char *const kinds[] = { "stringValue", "intValue", "doubleValue", "boolValue" };
    if (!v || kvc_jval_kind(v) == KVC_JNULL || kvc_jval_kind(v) == KVC_JARRAY)
        return NULL;
    if (kvc_jval_kind(v) != KVC_JOBJECT) {
        const char *text = kvc_jval_string(v);
        return text && !*text ? NULL : v;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct kvc_jval *inner = kvc_field_member(v, kinds[i]);
        if (inner && kvc_jval_kind(inner) != KVC_JOBJECT)
            return unwrap(inner);
    }
    return NULL;
}

static const struct kvc_jval *as_it_is(const struct kvc_jval *v)
{
    return v;
}

typedef const struct kvc_jval *(*form_of)(const struct kvc_jval *v);

static const struct kvc_jval *find(const struct kvc_jval *attributes, const char *name,
                                   form_of form)
{
    if (!attributes)
        return NULL;
    if (kvc_jval_kind(attributes) == KVC_JOBJECT) {
        const struct kvc_jval *v = kvc_jval_member(attributes, name);
        return v ? form(v) : NULL;
    }
    for (const struct kvc_jval *v = kvc_jval_first(attributes); v; v = kvc_jval_next(v)) {
        const struct kvc_jval *key = kvc_field_member(v, "key");
        if (key && kvc_jval_string(key) && strcmp(kvc_jval_string(key), name) == 0)
            return form(kvc_field_member(v, "value"));
    }
    return NULL;
}

static const struct kvc_jval *find_any(const struct kvc_jval *attributes, const char *names,
                                       form_of form)
{
    char name[80];
    const struct kvc_jval *v = NULL;
    for (const char *p = names; *p && !v;) {
        size_t n = strcspn(p, "|");
        snprintf(name, sizeof(name), "%.*s", (int)n, p);
        v = find(attributes, name, form);
        p += n + (p[n] == '|');
    }
    return v;
}

static const struct kvc_jval *container(const struct kvc_jval *v)
{
    return v && (kvc_jval_kind(v) == KVC_JOBJECT || kvc_jval_kind(v) == KVC_JARRAY) ? v : NULL;
}

static const struct kvc_jval *attributes(const struct kvc_otel_span *s)
{
    return container(kvc_field_member(s->v, "attributes"));
}

const struct kvc_jval *kvc_otel_attribute(const struct kvc_otel_span *s, const char *names)
{
    return find_any(attributes(s), names, unwrap);
}

const struct kvc_jval *kvc_otel_resource(const struct kvc_otel_span *s, const char *names)
{
    const struct kvc_jval *own = container(kvc_field_member(s->v, "resource_attributes"));
    return find_any(own ? own : container(s->resource), names, unwrap);
}

/* NULL: no text. */
static const char *text_of(const struct kvc_otel_span *s, const char *names)
{
    const struct kvc_jval *v = kvc_otel_attribute(s, names);
    return v ? kvc_jval_string(v) : NULL;
}

/* The next attribute behind *position, NULL at first: its name and value; false at the end. */
static bool next(const struct kvc_otel_span *s, const struct kvc_jval **position,
                 const char **name, const struct kvc_jval **value)
{
    const struct kvc_jval *all = attributes(s);
    *position = *position ? kvc_jval_next(*position) : all ? kvc_jval_first(all) : NULL;
    if (!*position)
        return false;
    if (kvc_jval_kind(all) == KVC_JOBJECT) {
        *name = kvc_jval_key(*position);
        *value = unwrap(*position);
        return true;
    }
    const struct kvc_jval *key = kvc_field_member(*position, "key");
    *name = key && kvc_jval_string(key) ? kvc_jval_string(key) : "";
    *value = unwrap(kvc_field_member(*position, "value"));
    return true;
}

/* ---- what kind of span ---- */

enum kvc_otel_work kvc_otel_work(const struct kvc_otel_span *s)
{
    static const char *const calls[] = { "chat", "text_completion", "completion",
                                         "generate_content", "responses" };
    const char *name = text_of(s, "gen_ai.operation.name");
    const char *kind = text_of(s, "openinference.span.kind|llm.request.type");
    for (size_t i = 0; name && i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcasecmp(name, calls[i]) == 0)
            return KVC_OTEL_CALL;
    if (name)
        return KVC_OTEL_OTHER;
    if (kind)
        return strcasecmp(kind, "LLM") == 0 || strcasecmp(kind, "chat") == 0 ||
                       strcasecmp(kind, "completion") == 0
                   ? KVC_OTEL_CALL
                   : KVC_OTEL_OTHER;
    return kvc_otel_attribute(s, "gen_ai.usage.input_tokens|gen_ai.usage.prompt_tokens|"
                                 "llm.usage.prompt_tokens|llm.token_count.prompt|"
                                 "gen_ai.input.messages|gen_ai.request.model")
               ? KVC_OTEL_CALL
               : KVC_OTEL_OTHER;
}

bool kvc_otel_failed(const struct kvc_otel_span *s)
{
    const struct kvc_jval *status = kvc_field_member(s->v, "status");
    const struct kvc_jval *code = status && kvc_jval_kind(status) == KVC_JOBJECT
                                      ? kvc_field_member(status, "code")
                                      : kvc_field_member(s->v, "status_code");
    uint64_t number;
    if (code && kvc_jval_u64(code, &number))
        return number == 2;
    const char *text = code ? kvc_jval_string(code) : NULL;
    return text && (strcasecmp(text, "ERROR") == 0 || strcasecmp(text, "STATUS_CODE_ERROR") == 0 ||
                    strcmp(text, "2") == 0);
}

/* ---- times, tokens, names ---- */

static enum kvc_status one_time(const struct kvc_otel_span *s, struct kvc_import *im,
                                const struct kvc_place *at, const char *nano, const char *other,
                                uint64_t *ns, struct kvc_error *err)
{
    char field[64];
    const struct kvc_jval *v = kvc_record_any(s->v, nano, field);
    if (v)
        return kvc_field_time(at, field, v, KVC_UNIT_NS, ns, err);
    v = kvc_record_any(s->v, other, field);
    *ns = KVC_TIME_NONE;
    return v ? kvc_record_when(im, at, field, v, ns, err) : KVC_OK;
}

enum kvc_status kvc_otel_times(const struct kvc_otel_span *s, struct kvc_import *im,
                               const struct kvc_place *at, uint64_t *start_ns, uint64_t *end_ns,
                               struct kvc_error *err)
{
    enum kvc_status status = one_time(s, im, at, "startTimeUnixNano|start_time_unix_nano",
                                      "start_time|startTime|start", start_ns, err);
    if (status == KVC_OK && *start_ns == KVC_TIME_NONE)
        return kvc_field_missing(at, "start_time", err);
    if (status == KVC_OK)
        status = one_time(s, im, at, "endTimeUnixNano|end_time_unix_nano",
                          "end_time|endTime|end", end_ns, err);
    if (status == KVC_OK && *end_ns == 0)
        *end_ns = KVC_TIME_NONE;
    return status;
}

enum kvc_status kvc_otel_usage(const struct kvc_otel_span *s, const struct kvc_place *at,
                               struct kvc_usage *out, struct kvc_error *err)
{
    struct kvc_usage_counts counts = { 0 };
    const struct kvc_jval *position = NULL, *v;
    const char *name;
    enum kvc_status status = KVC_OK;
    while (status == KVC_OK && next(s, &position, &name, &v))
        if (v && (strncmp(name, "gen_ai.", 7) == 0 || strncmp(name, "llm.", 4) == 0))
            status = kvc_usage_note(&counts, name, v, NULL, at, err);
    return status == KVC_OK ? kvc_usage_settle(&counts, KVC_USAGE_OTEL, NULL, at, out, err)
                            : status;
}

const struct kvc_jval *kvc_otel_session(const struct kvc_otel_span *s)
{
    const struct kvc_jval *position = NULL, *v;
    const char *name;
    v = kvc_otel_attribute(s, "gen_ai.conversation.id|session.id|langfuse.session.id");
    static const char suffix[] = ".session.id";
    while (!v && next(s, &position, &name, &v)) {
        size_t n = strlen(name), k = sizeof(suffix) - 1;
        if (n < k || strcmp(name + n - k, suffix) != 0)
            v = NULL;
    }
    return v;
}

/* ---- text ---- */

static bool is_json(const char *text)
{
    text += strspn(text, " \t\r\n");
    return *text == '[' || *text == '{';
}

static void quote(struct kvc_text *t, const char *text)
{
    kvc_text_add(t, "\"");
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            kvc_text_addf(t, "\\%c", c);
        else if (c < ' ')
            kvc_text_addf(t, "\\u%04x", c);
        else
            kvc_text_addn(t, p, 1);
    }
    kvc_text_add(t, "\"");
}

static void member(struct kvc_text *t, const char *key, const char *text)
{
    kvc_text_addf(t, "%s\"%s\":", t->len > 1 ? "," : "", key);
    if (is_json(text))
        kvc_text_add(t, text);
    else
        quote(t, text);
}

/* A value of OTLP as the JSON that it stands for: arrayValue a list, kvlistValue an object. */
static void put_value(struct kvc_json *j, const char *key, const struct kvc_jval *v);

/* What a wrapper {"arrayValue": {"values": [..]}} holds; false: another one. */
static bool wrapped_list(const struct kvc_jval *v, const char *kind, const struct kvc_jval **list)
{
    const struct kvc_jval *inner = kvc_jval_member(v, kind);
    if (!inner)
        return false;
    const struct kvc_jval *values = kvc_jval_kind(inner) == KVC_JOBJECT
                                        ? kvc_jval_member(inner, "values") : NULL;
    *list = values && kvc_jval_kind(values) == KVC_JARRAY ? kvc_jval_first(values) : NULL;
    return true;
}

static void put_list(struct kvc_json *j, const char *key, const struct kvc_jval *first)
{
    kvc_json_open_array(j, key);
    for (const struct kvc_jval *m = first; m; m = kvc_jval_next(m))
        put_value(j, NULL, m);
    kvc_json_close(j);
}

static void put_pairs(struct kvc_json *j, const char *key, const struct kvc_jval *first)
{
    kvc_json_open_object(j, key);
    for (const struct kvc_jval *m = first; m; m = kvc_jval_next(m)) {
        const struct kvc_jval *name = kvc_field_member(m, "key");
        const struct kvc_jval *value = kvc_field_member(m, "value");
        if (name && kvc_jval_string(name) && value)
            put_value(j, kvc_jval_string(name), value);
    }
    kvc_json_close(j);
}

static void put_object(struct kvc_json *j, const char *key, const struct kvc_jval *v)
{
    static const char *const scalars[] = { "stringValue", "intValue", "doubleValue", "boolValue",
                                           "bytesValue" };
    const struct kvc_jval *first = NULL, *inner;
    if (wrapped_list(v, "arrayValue", &first)) {
        put_list(j, key, first);
        return;
    }
    if (wrapped_list(v, "kvlistValue", &first)) {
        put_pairs(j, key, first);
        return;
    }
    for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++)
        if ((inner = kvc_jval_member(v, scalars[i])) && !container(inner)) {
            put_value(j, key, inner);
            return;
        }
    kvc_json_open_object(j, key);
    for (const struct kvc_jval *m = kvc_jval_first(v); m; m = kvc_jval_next(m))
        put_value(j, kvc_jval_key(m), m);
    kvc_json_close(j);
}

static void put_value(struct kvc_json *j, const char *key, const struct kvc_jval *v)
{
    bool yes;
    size_t n;
    const char *digits = kvc_jval_digits(v, &n);
    char number[64];
    if (kvc_jval_kind(v) == KVC_JOBJECT)
        put_object(j, key, v);
    else if (kvc_jval_kind(v) == KVC_JARRAY)
        put_list(j, key, kvc_jval_first(v));
    else if (kvc_jval_string(v))
        kvc_json_string(j, key, kvc_jval_string(v));
    else if (digits && n < sizeof(number)) {
        snprintf(number, sizeof(number), "%.*s", (int)n, digits);
        kvc_json_raw(j, key, number);
    } else if (kvc_jval_bool(v, &yes))
        kvc_json_bool(j, key, yes);
    else
        kvc_json_null(j, key);
}

/* An attribute's text; of one that is a list or an object its JSON, which *made then holds, for
 * kvc_free. NULL: neither. */
static const char *text_or_json(const struct kvc_otel_span *s, const char *names, char **made)
{
    const char *text = text_of(s, names);
    const struct kvc_jval *v = text ? NULL : container(find_any(attributes(s), names, as_it_is));
    struct kvc_json j;
    *made = NULL;
    if (!v)
        return text;
    kvc_json_init(&j, false);
    put_value(&j, NULL, v);
    *made = kvc_json_take(&j);
    return *made && (**made == '[' || **made == '{') ? *made : NULL;
}

/* gen_ai.prompt.0.role, gen_ai.prompt.0.content, .. as a list of messages. */
static bool numbered(const struct kvc_otel_span *s, struct kvc_text *t)
{
    static const char *const forms[][2] = {
        { "gen_ai.prompt.%u.role", "gen_ai.prompt.%u.content" },
        { "llm.prompts.%u.role", "llm.prompts.%u.content" },
        { "llm.input_messages.%u.message.role", "llm.input_messages.%u.message.content" },
    };
    char role[80], content[80];
    for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
        unsigned i = 0;
        for (; i < MESSAGES_MOST; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(role, sizeof(role), forms[f][0], i);
            snprintf(content, sizeof(content), forms[f][1], i);
#pragma GCC diagnostic pop
            const char *who = text_of(s, role), *what = text_of(s, content);
            if (!who && !what)
                break;
            kvc_text_add(t, i ? ",{" : "{\"messages\":[{");
            kvc_text_add(t, "\"role\":");
            quote(t, who ? who : "user");
            kvc_text_add(t, ",\"content\":");
            quote(t, what ? what : "");
            kvc_text_add(t, "}");
        }
        if (i) {
            kvc_text_add(t, "]}");
            return true;
        }
    }
    return false;
}

static void put_request(const struct kvc_otel_span *s, struct kvc_stored *stored,
                        struct kvc_text *t)
{
    char *made[3];
    const char *messages = text_or_json(s, "gen_ai.input.messages|gen_ai.prompt|input.value|"
                                           "gen_ai.input.text", &made[0]);
    const char *system = text_or_json(s, "gen_ai.system_instructions", &made[1]);
    const char *tools = text_or_json(s, "gen_ai.tool.definitions", &made[2]);
    t->len = 0;
    if (messages && is_json(messages) && messages[strspn(messages, " \t\r\n")] == '[') {
        kvc_text_add(t, "{");
        if (tools && is_json(tools))
            member(t, "tools", tools);
        if (system)
            member(t, "system", system);
        member(t, "messages", messages);
        kvc_text_add(t, "}");
        kvc_stored_request_text(stored, t->buf, t->failed ? 0 : t->len);
    } else if (messages) {
        kvc_stored_request_text(stored, messages, strlen(messages));
    } else if (numbered(s, t)) {
        kvc_stored_request_text(stored, t->buf, t->failed ? 0 : t->len);
    }
    for (size_t i = 0; i < 3; i++)
        kvc_free(made[i]);
}

void kvc_otel_prompt(const struct kvc_otel_span *s, struct kvc_stored *stored,
                     struct kvc_text *t)
{
    static const char answers[] = "gen_ai.output.messages|gen_ai.output.text|gen_ai.completion|"
                                  "gen_ai.completion.0.content|llm.completions.0.content|"
                                  "output.value";
    char *made;
    const char *text = text_or_json(s, answers, &made);
    struct kvc_jval *root = NULL;
    put_request(s, stored, t);
    if (made && text && kvc_log_json(&root, text, strlen(text), "", 0, NULL) == KVC_OK)
        kvc_stored_answer(stored, root);
    else
        kvc_stored_answer(stored, kvc_otel_attribute(s, answers));
    kvc_json_free(root);
    kvc_free(made);
}
