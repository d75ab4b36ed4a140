/* SPDX-License-Identifier: Apache-2.0
 * LLMServingSim JSON lines (casys-kaist/LLMServingSim): input_toks, output_toks, arrival_time_ns
 * and, mostly, the token ids of prompt and answer, which are cut into chained blocks here. */
#include "base/alloc.h"
#include "base/error.h"
#include "traces/formats/token_chain.h"
#include "traces/import/alignment.h"
#include "traces/import/recent.h"
#include "traces/parse/fields.h"
#include "traces/parse/scan.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

#define TOKEN_ID_BITS 32 /* of the largest token id taken */

struct tokens_row { /* a row as read, before blocks are cut */
    uint64_t time_ns;
    uint32_t n_in, n_out;
    const uint64_t *in, *out; /* n_in and n_out token ids; NULL: not stated, or none */
};

struct reader {
    struct kvc_id_buffer scan_in, scan_out, read_in, read_out, blocks, states;
    const char *text;
    size_t n;
};

/* ---- the fast reader ---- */

enum field { UNKNOWN = 0, TIME = 1, INPUT = 2, OUTPUT = 4, INPUT_IDS = 8, OUTPUT_IDS = 16,
             SESSION = 32 };

static enum field known_key(const struct kvc_scan_key *k)
{
    static const struct {
        const char *text;
        enum field field;
    } known[] = { { "input_toks", INPUT }, { "output_toks", OUTPUT }, { "arrival_time_ns", TIME },
                  { "input_tok_ids", INPUT_IDS }, { "output_tok_ids", OUTPUT_IDS },
                  { "sub_requests", SESSION } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strlen(known[i].text) == k->n && memcmp(known[i].text, k->text, k->n) == 0)
            return known[i].field;
    return UNKNOWN;
}

static bool small_ids(const uint64_t *ids, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all |= ids[i];
    return all >> TOKEN_ID_BITS == 0;
}

/* *n stays SIZE_MAX for null. */
static bool scan_ids(const char **pp, uint64_t *ids, size_t *n)
{
    if (**pp == 'n')
        return kvc_scan_null(pp);
    bool ignored;
    *n = 0;
    return kvc_scan_id_list(pp, ids, n, &ignored) && small_ids(ids, *n);
}

static bool scan_value(const char **pp, enum field f, struct reader *r, struct tokens_row *row,
                       size_t n_ids[2])
{
    switch (f) {
    case TIME:
        return kvc_scan_digits(pp, &row->time_ns) && row->time_ns < KVC_LOG_TIME_MAX;
    case INPUT:
        return kvc_scan_count(pp, &row->n_in) && row->n_in;
    case OUTPUT:
        return kvc_scan_count(pp, &row->n_out);
    case INPUT_IDS:
        return scan_ids(pp, r->scan_in.v, &n_ids[0]);
    case OUTPUT_IDS:
        return scan_ids(pp, r->scan_out.v, &n_ids[1]);
    case SESSION:
        return false;
    default:
        return kvc_scan_pass_value(pp, 1);
    }
}

/* Whether the row is plain and right; if not, the careful reader has the word. */
static bool scan(struct reader *r, struct tokens_row *row)
{
    struct kvc_scan_key unknown[KVC_SCAN_KEYS], k;
    unsigned n_unknown = 0, seen = 0;
    size_t n_ids[2] = { SIZE_MAX, SIZE_MAX };
    const char *p = kvc_scan_space(r->text);
    *row = (struct tokens_row){ 0 };
    if (*p++ != '{')
        return false;
    for (;; p++) {
        p = kvc_scan_space(p);
        if (*p++ != '"' || !kvc_scan_plain_string(&p, &k))
            return false;
        enum field f = known_key(&k);
        if ((seen & f) || (f == UNKNOWN && !kvc_scan_new_key(unknown, &n_unknown, &k)))
            return false;
        seen |= f;
        p = kvc_scan_space(p);
        if (*p++ != ':')
            return false;
        p = kvc_scan_space(p);
        if (!scan_value(&p, f, r, row, n_ids))
            return false;
        p = kvc_scan_space(p);
        if (*p != ',')
            break;
    }
    if (*p++ != '}' || kvc_scan_space(p) < r->text + r->n)
        return false;
    if ((n_ids[0] != SIZE_MAX && n_ids[0] != row->n_in) ||
        (n_ids[1] != SIZE_MAX && n_ids[1] != row->n_out))
        return false;
    row->in = n_ids[0] == SIZE_MAX ? NULL : r->scan_in.v;
    row->out = n_ids[1] == SIZE_MAX || !row->n_out ? NULL : r->scan_out.v;
    return (seen & (TIME | INPUT | OUTPUT)) == (TIME | INPUT | OUTPUT);
}

/* ---- the careful reader ---- */

static enum kvc_status read_time(const struct kvc_place *at, const struct kvc_jval *root,
                                 uint64_t *ns, struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_jval_member(root, "arrival_time_ns");
    const struct kvc_jval *measured = kvc_field_member(root, "arrival_time"); /* in bench results */
    if (!v && measured)
        return kvc_field_time(at, "arrival_time", measured, KVC_UNIT_S, ns, err);
    if (!v)
        return kvc_field_missing(at, "arrival_time_ns", err);
    if (!kvc_jval_u64(v, ns) || *ns >= KVC_LOG_TIME_MAX)
        return kvc_field_wrong(at, "arrival_time_ns", v,
                               "whole nanoseconds, 0 or more and below 9.2e18, are expected", err);
    return KVC_OK;
}

static enum kvc_status read_ids(const struct kvc_place *at, const struct kvc_jval *root,
                                const char *key, const char *count_key, uint32_t tokens,
                                struct kvc_id_buffer *ids, const uint64_t **out,
                                struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_field_member(root, key);
    char field[40];
    size_t k = 0;
    if (!v)
        return KVC_OK;
    if (kvc_jval_kind(v) != KVC_JARRAY)
        return kvc_field_wrong(at, key, v, "a list of token ids is expected", err);
    if (kvc_jval_count(v) != tokens)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, key,
                           "%zu token ids where %s says %u; give all of them or none",
                           kvc_jval_count(v), count_key, tokens);
    if (!tokens)
        return KVC_OK;
    if (!kvc_grow((void **)&ids->v, &ids->cap, tokens, sizeof(*ids->v)))
        return kvc_fail_nomem(err);
    for (v = kvc_jval_first(v); v; v = kvc_jval_next(v), k++) {
        snprintf(field, sizeof(field), "%s[%zu]", key, k);
        if (!kvc_jval_u64(v, &ids->v[k]) || ids->v[k] >> TOKEN_ID_BITS)
            return kvc_field_wrong(at, field, v, "token ids are whole numbers below 2^32", err);
    }
    *out = ids->v;
    return KVC_OK;
}

/* All that is wrong with a row goes into one error: the first field leads, the others follow. */
static void add_fault(struct kvc_error *all, const struct kvc_error *e)
{
    if (all->status == KVC_OK) {
        *all = *e;
        return;
    }
    size_t n = strlen(all->text);
    snprintf(all->text + n, sizeof(all->text) - n, "; %s: %.200s", e->field, e->text);
}

/* One request; those of a session have no time of their own. */
static enum kvc_status read_members(const struct kvc_place *at, const struct kvc_jval *root,
                                    struct reader *r, bool timed, struct tokens_row *row,
                                    struct kvc_error *err)
{
    struct kvc_error all = { 0 }, e = { 0 };
    *row = (struct tokens_row){ .time_ns = KVC_TIME_NONE };
    if (timed && read_time(at, root, &row->time_ns, &e) != KVC_OK)
        add_fault(&all, &e);
    enum kvc_status in = kvc_field_tokens(at, "input_toks", root, 1, &row->n_in, &e);
    if (in == KVC_OK)
        in = read_ids(at, root, "input_tok_ids", "input_toks", row->n_in, &r->read_in, &row->in,
                      &e);
    if (in != KVC_OK)
        add_fault(&all, &e);
    enum kvc_status out = kvc_field_tokens(at, "output_toks", root, 0, &row->n_out, &e);
    if (out == KVC_OK)
        out = read_ids(at, root, "output_tok_ids", "output_toks", row->n_out, &r->read_out,
                       &row->out, &e);
    if (out != KVC_OK)
        add_fault(&all, &e);
    if (in == KVC_ERR_NOMEM || out == KVC_ERR_NOMEM)
        return kvc_fail_nomem(err);
    if (all.status != KVC_OK && err)
        *err = all;
    return all.status;
}

/* ---- blocks ---- */

static bool cut(struct reader *r, const struct tokens_row *t, uint32_t block,
                struct kvc_log_row *row)
{
    struct kvc_token_chain c = { .block = block };
    size_t full = t->n_in / block, n = full + (t->n_in % block != 0);
    /* The last sampled token is never fed back, so it has no KV. */
    size_t known = t->out ? (size_t)(((uint64_t)t->n_in + t->n_out - 1) / block) : 0;
    if (!t->in)
        return true;
    if (!kvc_grow((void **)&r->blocks.v, &r->blocks.cap, n + known, sizeof(*r->blocks.v)))
        return false;
    row->ids = r->blocks.v;
    row->n_ids = n;
    for (size_t i = 0; i < t->n_in; i++)
        kvc_token_chain_add(&c, t->in[i], r->blocks.v);
    if (n > full)
        r->blocks.v[full] = kvc_token_chain_tail(&c);
    if (known > full) {
        uint64_t *path = r->blocks.v + n;
        memcpy(path, r->blocks.v, full * sizeof(*path));
        for (size_t i = 0; i < t->n_out && c.blocks < known; i++)
            kvc_token_chain_add(&c, t->out[i], path);
        row->output_ids = path;
        row->n_output_ids = known;
    }
    return true;
}

/* How much prompts share to the token, whatever the block. */
static bool watch_alignment(struct kvc_import *im, struct reader *r, const struct tokens_row *t,
                            const struct kvc_log_row *row)
{
    struct kvc_token_chain c = { .block = 1 };
    size_t known = t->out ? (size_t)t->n_in + t->n_out - 1 : t->n_in;
    if (!t->in || !kvc_alignment_wants(im, known))
        return true;
    if (!kvc_grow((void **)&r->states.v, &r->states.cap, known, sizeof(*r->states.v)))
        return false;
    for (size_t i = 0; i < t->n_in; i++)
        kvc_token_chain_add(&c, t->in[i], r->states.v);
    for (size_t i = 0; t->out && c.blocks < known; i++)
        kvc_token_chain_add(&c, t->out[i], r->states.v);
    return kvc_alignment_row(im, row, r->states.v, t->n_in, known);
}

/* ---- the format ---- */

static bool same_ids(const uint64_t *a, const uint64_t *b, size_t n)
{
    return !a == !b && (!a || memcmp(a, b, n * sizeof(*a)) == 0);
}

static enum kvc_status compare(struct kvc_import *im, struct reader *r,
                               const struct tokens_row *scanned, struct kvc_error *err)
{
    struct kvc_place at = { kvc_import_file(im), kvc_import_line_number(im) };
    struct kvc_jval *root = NULL;
    struct tokens_row row;
    enum kvc_status status = kvc_row_parse(&root, r->text, r->n, &at, err);
    if (status == KVC_OK)
        status = read_members(&at, root, r, true, &row, err);
    kvc_json_free(root);
    if (status != KVC_OK)
        return status;
    const char *field = scanned->time_ns != row.time_ns                   ? "arrival_time_ns"
                        : scanned->n_in != row.n_in                       ? "input_toks"
                        : scanned->n_out != row.n_out                     ? "output_toks"
                        : !same_ids(scanned->in, row.in, row.n_in)        ? "input_tok_ids"
                        : !same_ids(scanned->out, row.out, row.n_out)     ? "output_tok_ids"
                                                                          : NULL;
    if (!field)
        return KVC_OK;
    return kvc_fail_at(err, KVC_ERR_INTERNAL, at.file, at.line, field,
                       "the two readers of this format differ here; please report this row");
}

static enum kvc_status hand_on(struct kvc_import *im, struct reader *r, const struct tokens_row *t,
                               const char *session, uint64_t think_ns, bool odd,
                               struct kvc_error *err)
{
    struct kvc_log_row row = { .time_ns = t->time_ns, .think_ns = think_ns,
                               .input_tokens = t->n_in, .output_tokens = t->n_out,
                               .session = { session, session ? strlen(session) : 0 } };
    if (!cut(r, t, kvc_import_block_tokens(im), &row) || !watch_alignment(im, r, t, &row))
        return kvc_fail_nomem(err);
    return kvc_import_row(im, &row, odd, err);
}

/* ---- sessions: one row of several requests, a tool's time between them ---- */

/* A session that is named like one before is another one. */
static enum kvc_status name_session(struct kvc_import *im, const struct kvc_place *at,
                                    const struct kvc_jval *root, char name[160],
                                    struct kvc_error *err)
{
    struct kvc_recent *names = kvc_import_kept(im);
    struct kvc_span span = { 0 };
    char digits[24];
    bool fresh;
    enum kvc_status status = kvc_field_name(at, "session_id", root, digits, &span, err);
    if (status != KVC_OK)
        return status;
    snprintf(name, 160, "%.120s", span.text ? span.text : "session");
    bool known = !span.text || kvc_recent_find(names, name, strlen(name));
    if (span.text && known)
        kvc_import_tally(im, "sessions named like one before, which LLMServingSim would overwrite: "
                             "kept apart under a new name");
    if (known)
        snprintf(name + strlen(name), 32, " (line %llu)", (unsigned long long)at->line);
    return kvc_recent_get(names, name, strlen(name), &fresh) ? KVC_OK : kvc_fail_nomem(err);
}

/* How long the tool behind a request takes; 0 without. */
static enum kvc_status read_tool(const struct kvc_place *at, const struct kvc_jval *request,
                                 uint64_t *ns, struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_field_member(request, "tool_duration_ns");
    *ns = 0;
    if (v && (!kvc_jval_u64(v, ns) || *ns >= KVC_LOG_TIME_MAX))
        return kvc_field_wrong(at, "tool_duration_ns", v, "whole nanoseconds, 0 or more and below "
                               "9.2e18, are expected", err);
    return KVC_OK;
}

/* Reads all requests and, when the session has its name, hands them on. */
static enum kvc_status read_requests(struct kvc_import *im, struct reader *r,
                                     const struct kvc_place *at, const struct kvc_jval *list,
                                     uint64_t time_ns, const char *session, struct kvc_error *err)
{
    uint64_t tool_ns = KVC_TIME_NONE, next_ns;
    size_t k = 0;
    for (const struct kvc_jval *v = kvc_jval_first(list); v; v = kvc_jval_next(v), k++) {
        struct tokens_row t;
        enum kvc_status status = read_members(at, v, r, false, &t, err);
        if (status == KVC_OK)
            status = read_tool(at, v, &next_ns, err);
        if (status != KVC_OK) {
            char field[sizeof(err->field)];
            if (err && status != KVC_ERR_NOMEM) {
                snprintf(field, sizeof(field), "sub_requests[%zu].%.28s", k, err->field);
                snprintf(err->field, sizeof(err->field), "%s", field);
            }
            return status;
        }
        t.time_ns = k ? KVC_TIME_NONE : time_ns;
        if (session)
            status = hand_on(im, r, &t, session, tool_ns, true, err);
        if (status != KVC_OK)
            return status;
        tool_ns = next_ns;
    }
    return KVC_OK;
}

static enum kvc_status read_session(struct kvc_import *im, struct reader *r,
                                    const struct kvc_place *at, const struct kvc_jval *root,
                                    const struct kvc_jval *list, struct kvc_error *err)
{
    struct kvc_error bad;
    char name[160];
    uint64_t time_ns;
    enum kvc_status status = KVC_OK;
    if (kvc_jval_kind(list) != KVC_JARRAY)
        status = kvc_field_wrong(at, "sub_requests", list, "a list of requests is expected", &bad);
    else if (!kvc_jval_count(list))
        status = kvc_fail_at(&bad, KVC_ERR_INPUT, at->file, at->line, "sub_requests",
                             "empty: a session without a request");
    if (status == KVC_OK)
        status = read_time(at, root, &time_ns, &bad);
    if (status == KVC_OK) /* all of a session or none of it */
        status = read_requests(im, r, at, list, time_ns, NULL, &bad);
    if (status == KVC_OK)
        status = name_session(im, at, root, name, &bad);
    if (status != KVC_OK)
        return kvc_import_bad(im, &bad, err);
    return read_requests(im, r, at, list, time_ns, name, err);
}

/* ---- rows ---- */

static enum kvc_status careful(struct kvc_import *im, struct reader *r, struct kvc_error *err)
{
    struct kvc_place at = { kvc_import_file(im), kvc_import_line_number(im) };
    struct kvc_jval *root = NULL;
    struct tokens_row t;
    struct kvc_error bad;
    enum kvc_status status = kvc_row_parse(&root, r->text, r->n, &at, &bad);
    const struct kvc_jval *list = status == KVC_OK ? kvc_field_member(root, "sub_requests") : NULL;
    if (status == KVC_OK && !list)
        status = read_members(&at, root, r, true, &t, &bad);
    if (status != KVC_OK)
        status = kvc_import_bad(im, &bad, err);
    else if (list)
        status = read_session(im, r, &at, root, list, err);
    else
        status = hand_on(im, r, &t, NULL, KVC_TIME_NONE, true, err);
    kvc_json_free(root);
    return status;
}

static enum kvc_status one_row(struct kvc_import *im, struct reader *r, struct kvc_error *err)
{
    struct tokens_row t;
    size_t room = r->n / 2 + 1;
    if (!kvc_grow((void **)&r->scan_in.v, &r->scan_in.cap, room, sizeof(uint64_t)) ||
        !kvc_grow((void **)&r->scan_out.v, &r->scan_out.cap, room, sizeof(uint64_t)))
        return kvc_fail_nomem(err);
    if (!scan(r, &t))
        return careful(im, r, err);
    enum kvc_status status = kvc_import_compares(im) ? compare(im, r, &t, err) : KVC_OK;
    return status == KVC_OK ? hand_on(im, r, &t, NULL, KVC_TIME_NONE, false, err) : status;
}

static void clear_names(void *kept)
{
    kvc_recent_clear(kept);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { 0 };
    enum kvc_status status;
    struct kvc_recent *names = kvc_import_keep(im, sizeof(*names), clear_names);
    if (!names)
        return kvc_fail_nomem(err);
    if (!names->clock)
        kvc_import_recent(im, names, 0);
    while ((status = kvc_import_line(im, &r.text, &r.n, err)) == KVC_OK && r.text)
        if ((status = one_row(im, &r, err)) != KVC_OK)
            break;
    kvc_free(r.scan_in.v);
    kvc_free(r.scan_out.v);
    kvc_free(r.read_in.v);
    kvc_free(r.read_out.v);
    kvc_free(r.blocks.v);
    kvc_free(r.states.v);
    return status;
}

/* Any of the first lines names one of the format's own fields: a long list of ids may keep the
 * others out of sight. */
static bool sniff(const char *head, size_t n)
{
    static const char *const own[] = { "\"input_toks\"", "\"input_tok_ids\"",
                                       "\"arrival_time_ns\"", "\"output_tok_ids\"" };
    size_t i = 0;
    while (i < n && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n'))
        i++;
    bool found = false;
    for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
        found = found || memmem(head, n, own[k], strlen(own[k])) != NULL;
    return found && i < n && head[i] == '{';
}

const struct kvc_format kvc_format_llmservingsim = {
    .name = "llmservingsim",
    .summary = "LLMServingSim JSON lines: arrival_time_ns, input_toks, output_toks, token ids",
    .block_tokens = 16,
    .cuts_blocks = true,
    .sniff = sniff,
    .read = read_log,
};
