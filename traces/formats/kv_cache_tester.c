/* SPDX-License-Identifier: Apache-2.0
 * Sessions of coding agents as callanjfox/kv-cache-tester publishes them (WEKA): one JSON document
 * a session, with block ids of its own and sub-agents inside; a file each, or a tar of them. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "traces/parse/json_walk.h"
#include "traces/parse/scan.h"
#include "traces/parse/tar.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DOCUMENT_MAX ((size_t)256 << 20) /* a session; all of the corpus together have 313 MB */
#define DEEPEST_AGENT 4                  /* sub-agents of sub-agents of .. */
#define NS_PER_S ((uint64_t)1000000000)

struct doc {
    struct kvc_import *im;
    struct kvc_walk w;
    char *text; /* with KVC_LINE_PAD zeros behind it */
    size_t n, cap;
    struct kvc_id_buffer ids;
    uint64_t number; /* of the document, from 1 */
    uint64_t agents; /* sub-agents so far in it */
    uint64_t all_agents;
    bool shared_ids;
};

/* What a request or sub-agent holds. */
struct entry {
    char where[40], session[48];
    unsigned seen;
    bool bad, agent;
    struct kvc_error why;
    const char *requests;
    struct kvc_log_row row;
    struct kvc_jval *model; /* what the name points into when it has escapes */
};

static bool no_memory(struct doc *d)
{
    d->w.status = kvc_fail_nomem(d->w.err);
    return false;
}

/* ---- fields ---- */

/* Keeps the first thing wrong with an entry. */
KVC_PRINTF(5, 6)
static void wrong(struct doc *d, struct entry *e, const char *at, const char *field,
                  const char *fmt, ...)
{
    char text[200], path[64];
    va_list args;
    if (e->bad)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(path, sizeof(path), "%s%s%s", e->where, e->where[0] && field[0] ? "." : "", field);
    kvc_fail_at(&e->why, KVC_ERR_INPUT, kvc_import_file(d->im), kvc_walk_line(&d->w, at), path,
                "%s", text);
    e->bad = true;
}

static void is_wrong(struct doc *d, struct entry *e, const char *field,
                     const struct kvc_walk_value *v, const char *rule)
{
    static const char *const kinds[] = { "a number", "text", "a list", "an object",
                                         "true or false", "null" };
    size_t n = (size_t)(d->w.p - v->at);
    if (v->kind == KVC_WALK_NUMBER || v->kind == KVC_WALK_STRING)
        wrong(d, e, v->at, field, "%.*s is wrong: %s", (int)(n < 48 ? n : 48), v->at, rule);
    else
        wrong(d, e, v->at, field, "%s is wrong: %s", kinds[v->kind], rule);
}

static bool whole(const struct kvc_walk_value *v, uint64_t *out)
{
    bool exact;
    return v->kind == KVC_WALK_NUMBER && !v->number.too_precise &&
           (!v->number.negative || !v->number.digits) &&
           kvc_decimal_scale(&v->number, 1, out, &exact) && exact;
}

static void read_seconds(struct doc *d, struct entry *e, const char *field,
                         const struct kvc_walk_value *v, uint64_t *ns)
{
    bool exact;
    if (v->kind != KVC_WALK_NUMBER || (v->number.negative && v->number.digits))
        is_wrong(d, e, field, v, "seconds, 0 or more, are expected");
    else if (v->number.too_precise || !kvc_decimal_scale(&v->number, NS_PER_S, ns, &exact) ||
             *ns >= KVC_LOG_TIME_MAX / 2)
        is_wrong(d, e, field, v, "seconds below 4.6e9 with at most 19 digits are expected");
}

static void read_tokens(struct doc *d, struct entry *e, const char *field,
                        const struct kvc_walk_value *v, uint32_t *out)
{
    uint64_t n;
    if (!whole(v, &n) || n > KVC_TOKENS_MAX || (n == 0 && field[0] == 'i'))
        is_wrong(d, e, field, v, field[0] == 'i'
                     ? "a whole number of tokens from 1 to 2^31-1 is expected"
                     : "a whole number of tokens from 0 to 2^31-1 is expected");
    else
        *out = (uint32_t)n;
}

static bool read_model(struct doc *d, struct entry *e, const struct kvc_walk_value *v)
{
    if (v->kind == KVC_WALK_NIL)
        return true;
    if (v->kind != KVC_WALK_STRING) {
        is_wrong(d, e, "model", v, "text is expected");
    } else if (!v->string.escapes) {
        e->row.model = (struct kvc_span){ v->string.text, v->string.n };
    } else if (!e->model) {
        d->w.status = kvc_json_parse(&e->model, v->at, v->string.n + 2, false,
                                     kvc_import_file(d->im), kvc_walk_line(&d->w, v->at),
                                     d->w.err);
        if (d->w.status != KVC_OK)
            return false;
        const char *text = kvc_jval_string(e->model);
        e->row.model = (struct kvc_span){ text, strlen(text) };
    }
    return true;
}

/* Ids with line breaks between them, or with something wrong. */
static bool read_ids_slowly(struct doc *d, struct entry *e)
{
    bool first = true, more;
    struct kvc_walk_value v;
    for (size_t n = 0;; n++) {
        char field[32];
        uint64_t id = 0;
        if (!kvc_walk_member(&d->w, ']', &first, &more, NULL))
            return false;
        e->row.n_ids = n;
        if (!more)
            return true;
        if (!kvc_walk_value(&d->w, 2, &v))
            return false;
        snprintf(field, sizeof(field), "hash_ids[%zu]", n);
        if (!whole(&v, &id))
            is_wrong(d, e, field, &v, "block ids are whole numbers below 2^64");
        if (!kvc_grow((void **)&d->ids.v, &d->ids.cap, n + 1, sizeof(*d->ids.v)))
            return no_memory(d);
        d->ids.v[n] = id;
    }
}

static bool read_ids(struct doc *d, struct entry *e)
{
    struct kvc_walk_value v;
    if (*d->w.p != '[') {
        if (!kvc_walk_value(&d->w, 1, &v))
            return false;
        if (v.kind != KVC_WALK_NIL)
            is_wrong(d, e, "hash_ids", &v, "a list of block ids is expected");
        return true;
    }
    const char *close = memchr(d->w.p, ']', (size_t)(d->w.end - d->w.p));
    size_t n = (size_t)((close ? close : d->w.end) - d->w.p);
    if (!kvc_grow((void **)&d->ids.v, &d->ids.cap, n / 2 + 16, sizeof(*d->ids.v)))
        return no_memory(d);
    if (kvc_scan_id_list(&d->w.p, d->ids.v, &e->row.n_ids, &e->row.ascending))
        return true;
    d->w.p++;
    return read_ids_slowly(d, e);
}

enum field { OTHER = 0, T = 1, TYPE = 2, MODEL = 4, IN = 8, OUT = 16, IDS = 32, THINK = 64,
             REQUESTS = 128 };

static const struct {
    const char *name;
    enum field field;
} fields[] = {
    { "t", T }, { "type", TYPE }, { "model", MODEL }, { "in", IN }, { "out", OUT },
    { "hash_ids", IDS }, { "think_time", THINK }, { "requests", REQUESTS },
};

static enum field known(const struct kvc_walk_text *key, const char **name)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (kvc_walk_is(key, fields[i].name)) {
            *name = fields[i].name;
            return fields[i].field;
        }
    return OTHER;
}

static bool read_field(struct doc *d, struct entry *e, enum field f)
{
    struct kvc_walk_value v;
    kvc_walk_space(&d->w);
    if (f == IDS)
        return read_ids(d, e);
    if (!kvc_walk_value(&d->w, 1, &v))
        return false;
    switch (f) {
    case T:
        read_seconds(d, e, "t", &v, &e->row.time_ns);
        break;
    case TYPE:
        if (v.kind != KVC_WALK_STRING)
            is_wrong(d, e, "type", &v, "text is expected");
        e->agent |= v.kind == KVC_WALK_STRING && kvc_walk_is(&v.string, "subagent");
        break;
    case MODEL:
        return read_model(d, e, &v);
    case IN:
        read_tokens(d, e, "in", &v, &e->row.input_tokens);
        break;
    case OUT:
        read_tokens(d, e, "out", &v, &e->row.output_tokens);
        break;
    case THINK:
        if (v.kind != KVC_WALK_NIL)
            read_seconds(d, e, "think_time", &v, &e->row.think_ns);
        break;
    case REQUESTS:
        e->agent = true;
        if (v.kind == KVC_WALK_LIST)
            e->requests = v.at;
        else
            is_wrong(d, e, "requests", &v, "a list is expected");
        break;
    default:
        break;
    }
    return true;
}

static bool read_fields(struct doc *d, struct entry *e)
{
    bool first = true, more;
    struct kvc_walk_text key;
    const char *name = NULL;
    for (d->w.p++;;) {
        if (!kvc_walk_member(&d->w, '}', &first, &more, &key))
            return false;
        if (!more)
            return true;
        enum field f = known(&key, &name);
        if (e->seen & f)
            wrong(d, e, key.text, name, "given twice");
        e->seen |= f;
        if (!read_field(d, e, f))
            return false;
    }
}

static void check_fields(struct doc *d, struct entry *e, const char *at)
{
    unsigned needed = e->agent ? T | REQUESTS : T | IN | OUT;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].field & needed & ~e->seen)
            wrong(d, e, at, fields[i].name, "missing");
}

/* ---- sessions ---- */

static bool read_requests(struct doc *d, const char *where, const char *session,
                          uint64_t base_ns, unsigned depth);

/* Counts what was read and hands it on. */
static bool hand_on(struct doc *d, struct entry *e, const char *at, uint64_t base_ns,
                    const char *session)
{
    if (!e->agent || e->bad)
        kvc_import_begin_row(d->im, kvc_walk_line(&d->w, at), e->where);
    if (e->bad) {
        d->w.status = kvc_import_bad(d->im, &e->why, d->w.err);
    } else if (!e->agent) {
        e->row.time_ns += base_ns;
        e->row.ids = d->ids.v;
        e->row.key_space = d->shared_ids ? 0 : d->number;
        e->row.session = (struct kvc_span){ session, strlen(session) };
        d->w.status = kvc_import_row(d->im, &e->row, false, d->w.err);
    }
    return d->w.status == KVC_OK;
}

/* A sub-agent's t counts from its own start. Its requests overlap those of the agent, so that it
 * is a session of its own: turns of one session follow one another. */
static bool read_agent(struct doc *d, struct entry *e, uint64_t base_ns, unsigned depth)
{
    const char *behind = d->w.p;
    if (depth == DEEPEST_AGENT)
        return kvc_walk_broken(&d->w, "sub-agents nested too deeply");
    snprintf(e->session, sizeof(e->session), "%llu.%llu", (unsigned long long)d->number,
             (unsigned long long)++d->agents);
    d->all_agents++;
    d->w.p = e->requests;
    bool ok = read_requests(d, e->where, e->session, base_ns + e->row.time_ns, depth + 1);
    if (ok)
        d->w.p = behind;
    return ok;
}

static bool read_entry(struct doc *d, const char *where, size_t index, const char *session,
                       uint64_t base_ns, unsigned depth)
{
    const char *at = d->w.p;
    struct kvc_walk_value v;
    struct entry e = { .row = { .think_ns = KVC_TIME_NONE } };
    bool ok;
    if (snprintf(e.where, sizeof(e.where), "%s%srequests[%zu]", where, where[0] ? "." : "",
                 index) >= (int)sizeof(e.where))
        snprintf(e.where, sizeof(e.where), "..requests[%zu]", index);
    if (*d->w.p == '{') {
        ok = read_fields(d, &e);
        if (ok)
            check_fields(d, &e, at);
    } else {
        ok = kvc_walk_value(&d->w, 1, &v);
        if (ok)
            is_wrong(d, &e, "", &v, "an object is expected");
    }
    ok = ok && hand_on(d, &e, at, base_ns, session);
    if (ok && e.agent && !e.bad)
        ok = read_agent(d, &e, base_ns, depth);
    kvc_json_free(e.model);
    return ok;
}

/* The list of requests at d->w.p. */
static bool read_requests(struct doc *d, const char *where, const char *session,
                          uint64_t base_ns, unsigned depth)
{
    bool first = true, more;
    d->w.p++;
    for (size_t i = 0;; i++) {
        if (!kvc_walk_member(&d->w, ']', &first, &more, NULL))
            return false;
        if (!more)
            return true;
        if (!read_entry(d, where, i, session, base_ns, depth))
            return false;
    }
}

static bool read_top(struct doc *d)
{
    char session[48];
    snprintf(session, sizeof(session), "%llu", (unsigned long long)d->number);
    return read_requests(d, "", session, 0, 0);
}

static bool top_block_size(struct doc *d, struct entry *e, const struct kvc_walk_value *v)
{
    uint64_t n;
    if (v->kind == KVC_WALK_NIL)
        return true;
    if (!whole(v, &n) || n == 0 || n > KVC_TOKENS_MAX) {
        is_wrong(d, e, "block_size", v, "a whole number of tokens from 1 to 2^31-1 is expected");
        return true;
    }
    d->w.status = kvc_import_block_size(d->im, (uint32_t)n, d->w.err);
    return d->w.status == KVC_OK;
}

static bool top_scope(struct doc *d, struct entry *e, const struct kvc_walk_value *v)
{
    bool text = v->kind == KVC_WALK_STRING;
    bool global = text && kvc_walk_is(&v->string, "global");
    bool local = v->kind == KVC_WALK_NIL || (text && kvc_walk_is(&v->string, "local"));
    if (!global && !local)
        is_wrong(d, e, "hash_id_scope", v, "\"local\" or \"global\" is expected");
    d->shared_ids = global;
    if (!global || !kvc_import_options_of(d->im)->forget_ns)
        return true;
    d->w.status = kvc_fail_at(d->w.err, KVC_ERR_USAGE, kvc_import_file(d->im),
                              kvc_walk_line(&d->w, v->at), "hash_id_scope",
                              "ids that mean the same in all sessions, whose starts are known only "
                              "when all are read: nothing can be forgotten; leave out --forget");
    return false;
}

/* Members of the document. Requests are read at once when what they need came before them; as
 * a rule it did. */
static bool read_members(struct doc *d, struct entry *e, bool *done)
{
    bool first = true, more;
    unsigned seen = 0;
    struct kvc_walk_text key;
    struct kvc_walk_value v;
    for (*done = false, d->w.p++;;) {
        if (!kvc_walk_member(&d->w, '}', &first, &more, &key))
            return false;
        if (!more)
            return true;
        unsigned f = kvc_walk_is(&key, "requests") ? 1 : kvc_walk_is(&key, "block_size") ? 2 :
                     kvc_walk_is(&key, "hash_id_scope") ? 4 : 0;
        if (seen & f)
            return kvc_walk_broken(&d->w, "a member of the session is given twice");
        seen |= f;
        kvc_walk_space(&d->w);
        if (f == 1 && *d->w.p == '[' && (seen & 6) == 6 && !e->bad) {
            *done = true;
            if (!read_top(d))
                return false;
            continue;
        }
        if (!kvc_walk_value(&d->w, 0, &v) || (f == 2 && !top_block_size(d, e, &v)))
            return false;
        if (f == 4 && !top_scope(d, e, &v))
            return false;
        if (f == 1 && v.kind == KVC_WALK_LIST)
            e->requests = v.at;
        else if (f == 1)
            is_wrong(d, e, "requests", &v, "a list is expected");
    }
}

static bool read_document(struct doc *d)
{
    struct entry e = { 0 };
    bool done;
    memset(d->text + d->n, 0, KVC_LINE_PAD);
    kvc_walk_start(&d->w, kvc_import_file(d->im), d->text, d->n);
    d->agents = 0;
    d->shared_ids = false;
    if (d->n >= 3 && memcmp(d->w.p, "\xef\xbb\xbf", 3) == 0)
        d->w.p += 3;
    kvc_walk_space(&d->w);
    if (*d->w.p != '{')
        return kvc_walk_broken(&d->w, "a session is one JSON object");
    if (!read_members(d, &e, &done))
        return false;
    kvc_walk_space(&d->w);
    if (d->w.p < d->w.end)
        return kvc_walk_broken(&d->w, "something stands behind the session; one a file is "
                               "expected");
    if (!done && !e.requests)
        wrong(d, &e, d->text, "requests", "missing; is this a session?");
    if (e.bad) {
        kvc_import_begin_row(d->im, kvc_walk_line(&d->w, d->text), "");
        d->w.status = kvc_import_bad(d->im, &e.why, d->w.err);
        return d->w.status == KVC_OK;
    }
    d->w.p = e.requests;
    return done || read_top(d);
}

/* ---- files and archives ---- */

static bool too_large(struct doc *d)
{
    d->w.status = kvc_fail_at(d->w.err, KVC_ERR_INPUT, kvc_import_file(d->im), 0, NULL,
                            "the session is larger than %zu MiB, which none is",
                            DOCUMENT_MAX >> 20);
    return false;
}

static bool reserve(struct doc *d, size_t n)
{
    if (n > DOCUMENT_MAX)
        return too_large(d);
    return kvc_grow((void **)&d->text, &d->cap, n + KVC_LINE_PAD, 1) || no_memory(d);
}

static bool begin(struct doc *d, const char *member)
{
    d->w.status = kvc_import_document(d->im, member, &d->number, d->w.err);
    return d->w.status == KVC_OK;
}

static bool read_file(struct doc *d)
{
    if (!begin(d, NULL))
        return false;
    for (size_t got = 1; got; d->n += got) {
        if (!reserve(d, d->n + ((size_t)1 << 16)))
            return false;
        d->w.status = kvc_import_bytes(d->im, d->text + d->n, d->cap - KVC_LINE_PAD - d->n, &got,
                                     d->w.err);
        if (d->w.status != KVC_OK)
            return false;
    }
    return read_document(d);
}

static bool is_session_name(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    size_t n = strlen(base);
    /* Archives made on a Mac hold a "._" beside each file. */
    return n > 5 && strcmp(base + n - 5, ".json") == 0 && strncmp(base, "._", 2) != 0;
}

static bool read_archive(struct doc *d)
{
    struct kvc_tar tar;
    uint64_t others = 0, sessions = 0;
    bool more = true;
    kvc_tar_init(&tar, d->im);
    for (;;) {
        d->w.status = kvc_tar_next(&tar, &more, d->w.err);
        if (d->w.status != KVC_OK || !more)
            break;
        if (!is_session_name(tar.name)) {
            others++;
            continue;
        }
        if (!begin(d, tar.name))
            return false;
        if (tar.size > DOCUMENT_MAX)
            return too_large(d);
        d->n = (size_t)tar.size;
        if (!reserve(d, d->n))
            return false;
        d->w.status = kvc_tar_read(&tar, d->text, d->n, d->w.err);
        if (d->w.status != KVC_OK || !read_document(d))
            return false;
        sessions++;
    }
    if (d->w.status == KVC_OK && others)
        kvc_import_note(d->im, "%llu files of the archive passed over: their names don't end in "
                        ".json (%llu do)", (unsigned long long)others,
                        (unsigned long long)sessions);
    return d->w.status == KVC_OK;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct doc d = { .im = im, .w.err = err };
    bool ok = kvc_import_is_tar(im) ? read_archive(&d) : read_file(&d);
    if (ok && d.all_agents)
        kvc_import_note(im, "sub-agents run beside the session that starts them and count as "
                        "sessions of their own");
    kvc_free(d.text);
    kvc_free(d.ids.v);
    return d.w.status;
}

static bool holds(const char *text, size_t n, const char *word)
{
    return memmem(text, n, word, strlen(word)) != NULL;
}

static bool sniff(const char *head, size_t n)
{
    size_t i = 0;
    while (i < n && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n'))
        i++;
    bool tar = n > 262 && memcmp(head + 257, "ustar", 5) == 0;
    return (tar || (i < n && head[i] == '{')) && holds(head, n, "\"requests\"") &&
           (holds(head, n, "\"block_size\"") || holds(head, n, "\"hash_id_scope\""));
}

const struct kvc_format kvc_format_kv_cache_tester = {
    .name = "kv-cache-tester",
    .summary = "kv-cache-tester (WEKA) sessions: one JSON document each, or a tar of them",
    .block_tokens = 64,
    .tar = true,
    .sniff = sniff,
    .read = read_log,
};
