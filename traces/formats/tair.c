/* SPDX-License-Identifier: Apache-2.0
 * Tair KVCache (alibaba/tair-kvcache): the cache manager's event log, whose lookups are taken as
 * requests, and the optimizer's trace schema. */
#include "base/alloc.h"
#include "base/error.h"
#include "traces/import/anonymize.h"
#include "traces/import/recent.h"
#include "traces/import/sniff.h"
#include "traces/parse/fields.h"
#include "traces/trace.h"

#include <stdio.h>
#include <string.h>

struct writes { /* kept over the files */
    struct kvc_recent keys, open; /* written keys, writes not finished */
    struct kvc_intern spaces;     /* caches */
    uint64_t lookups, looked_up, written, started, finished, announced, succeeded;
};

struct reader {
    struct writes *kept;
    struct kvc_id_buffer ids, total;
};

static void clear_writes(void *kept)
{
    struct writes *w = kept;
    kvc_recent_clear(&w->keys);
    kvc_recent_clear(&w->open);
    kvc_intern_clear(&w->spaces);
}

/* Each cache manager and each instance of the optimizer has keys of its own. */
static enum kvc_status read_space(const struct kvc_place *at, const char *field,
                                  const struct kvc_jval *root, struct reader *r, uint64_t *space,
                                  struct kvc_error *err)
{
    struct kvc_span name = { 0 };
    char digits[24];
    uint32_t number;
    enum kvc_status status = kvc_field_name(at, field, root, digits, &name, err);
    if (status != KVC_OK || !name.text)
        return status;
    if (!kvc_intern_get(&r->kept->spaces, name.text, name.n, &number))
        return kvc_fail_nomem(err);
    *space = (uint64_t)number + 1;
    return KVC_OK;
}

/* Blocks that the engine held itself before it asked: how many (a number) or which (a list). */
static enum kvc_status read_mask(const struct kvc_place *at, const struct kvc_jval *root,
                                 struct kvc_import *im, struct kvc_log_row *row,
                                 struct kvc_error *err)
{
    const struct kvc_jval *v = kvc_field_member(root, "block_mask");
    uint64_t held = 0;
    bool yes, list = v && kvc_jval_kind(v) == KVC_JARRAY;
    if (!v || (list && !kvc_jval_count(v)))
        return KVC_OK;
    for (const struct kvc_jval *b = list ? kvc_jval_first(v) : NULL; b; b = kvc_jval_next(b)) {
        if (!kvc_jval_bool(b, &yes))
            return kvc_field_wrong(at, "block_mask", b, "a list of true and false, or a number of "
                                   "blocks, is expected", err);
        held += yes;
    }
    if (!list && !kvc_jval_u64(v, &held))
        return kvc_field_wrong(at, "block_mask", v, "a number of blocks, or a list of true and "
                               "false, is expected", err);
    if (held > row->n_ids)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, "block_mask",
                           "%llu blocks held of %zu keys", (unsigned long long)held, row->n_ids);
    uint64_t tokens = held * kvc_import_block_tokens(im);
    row->cached_stated = true;
    row->cached_tokens = tokens < row->input_tokens ? (uint32_t)tokens : row->input_tokens;
    return KVC_OK;
}

/* ---- the event log ---- */

static enum kvc_status read_keys(const struct kvc_place *at, const struct kvc_jval *root,
                                 const char *field, struct kvc_id_buffer *ids, size_t *n,
                                 struct kvc_error *err)
{
    const struct kvc_jval *list = kvc_field_member(root, field);
    bool text;
    return list ? kvc_field_ids(at, field, list, NULL, ids, 0, n, &text, err)
                : kvc_field_missing(at, field, err);
}

static void count_lookup(struct reader *r, const struct kvc_log_row *row)
{
    uint64_t of[2] = { row->key_space };
    r->kept->lookups++;
    r->kept->looked_up += row->n_ids;
    for (size_t k = 0; k < row->n_ids; k++) {
        of[1] = row->ids[k];
        if (!kvc_recent_find(&r->kept->keys, (const char *)of, sizeof(of)))
            break;
        r->kept->written++;
    }
}

static enum kvc_status read_lookup(const struct kvc_place *at, const struct kvc_jval *root,
                                   struct kvc_import *im, struct reader *r,
                                   struct kvc_log_row *row, struct kvc_error *err)
{
    const struct kvc_jval *time = kvc_field_member(root, "trigger_time_us");
    enum kvc_status status = time ? KVC_OK : kvc_field_missing(at, "trigger_time_us", err);
    if (status == KVC_OK)
        status = kvc_field_when(im, at, "trigger_time_us", time, KVC_UNIT_US, &row->time_ns, err);
    if (status == KVC_OK)
        status = read_keys(at, root, "keys", &r->ids, &row->n_ids, err);
    if (status != KVC_OK)
        return status;
    uint64_t tokens = (uint64_t)row->n_ids * kvc_import_block_tokens(im);
    if (!row->n_ids || tokens > KVC_TOKENS_MAX)
        return kvc_fail_at(err, KVC_ERR_INPUT, at->file, at->line, "keys",
                           "%zu keys: a lookup of at least one block and fewer than 2^31 tokens "
                           "is expected", row->n_ids);
    row->ids = r->ids.v;
    row->input_tokens = (uint32_t)tokens;
    return read_mask(at, root, im, row, err);
}

static enum kvc_status read_write(const struct kvc_place *at, const struct kvc_jval *root,
                                  struct kvc_import *im, struct reader *r, bool start,
                                  uint64_t space, struct kvc_error *err)
{
    struct kvc_span session = { 0 };
    char digits[24];
    uint64_t blocks, of[2] = { space };
    bool fresh;
    size_t n = 0;
    enum kvc_status status = kvc_field_name(at, "write_session_id", root, digits, &session, err);
    if (status == KVC_OK && !session.text)
        status = kvc_field_missing(at, "write_session_id", err);
    if (status == KVC_OK && start)
        status = read_keys(at, root, "keys", &r->ids, &n, err);
    if (status != KVC_OK)
        return status;
    for (size_t k = 0; k < n; k++) {
        of[1] = r->ids.v[k];
        if (!kvc_recent_get(&r->kept->keys, (const char *)of, sizeof(of), &fresh))
            return kvc_fail_nomem(err);
    }
    if (!kvc_recent_get(&r->kept->open, session.text, session.n, &fresh))
        return kvc_fail_nomem(err);
    if (start) {
        r->kept->started++;
        r->kept->announced += n;
        kvc_import_tally(im, "StartWriteCache events, which are no requests");
    } else {
        r->kept->finished++;
        if (kvc_field_member(root, "success_block") &&
            kvc_jval_u64(kvc_field_member(root, "success_block"), &blocks))
            r->kept->succeeded += blocks;
        if (fresh)
            kvc_import_tally(im, "FinishWriteCache events of writes whose start is not in the log");
        kvc_import_tally(im, "FinishWriteCache events, which are no requests");
    }
    return KVC_OK;
}

static enum kvc_status read_event(const struct kvc_place *at, const struct kvc_jval *root,
                                  struct kvc_import *im, struct reader *r, bool *request,
                                  struct kvc_log_row *row, struct kvc_error *err)
{
    const struct kvc_jval *type = kvc_field_member(root, "type");
    const char *word = type ? kvc_jval_string(type) : NULL;
    char text[96], kind[KVC_SHOWN_NAME];
    enum kvc_status status = read_space(at, "source", root, r, &row->key_space, err);
    if (status != KVC_OK)
        return status;
    if (word && strcmp(word, "StartWriteCache") == 0)
        return read_write(at, root, im, r, true, row->key_space, err);
    if (word && strcmp(word, "FinishWriteCache") == 0)
        return read_write(at, root, im, r, false, row->key_space, err);
    *request = word && strcmp(word, "GetCacheLocation") == 0;
    if (!*request) {
        word = word ? word : "untyped";
        kvc_import_shown_name(im, "kind", word, strlen(word), kind);
        snprintf(text, sizeof(text), "%s events, which are no requests", kind);
        kvc_import_tally(im, text);
        return KVC_OK;
    }
    if (!kvc_import_options_of(im)->block_tokens) {
        kvc_import_note(im, "the log has no lengths: each block counts as one token, so that rates "
                        "are of blocks and all other tokens, bytes and times mean nothing; name "
                        "the size of a block with --block-tokens");
        status = kvc_import_block_size(im, 1, err);
    }
    if (status == KVC_OK)
        status = read_lookup(at, root, im, r, row, err);
    if (status == KVC_OK)
        count_lookup(r, row);
    return status;
}

/* ---- the optimizer's schema ---- */

static enum kvc_status read_times(const struct kvc_place *at, const struct kvc_jval *root,
                                  struct kvc_import *im, struct kvc_log_row *row,
                                  struct kvc_error *err)
{
    const struct kvc_jval *ns = kvc_field_member(root, "timestamp_ns");
    const struct kvc_jval *us = kvc_field_member(root, "timestamp_us");
    if (ns)
        return kvc_field_when(im, at, "timestamp_ns", ns, KVC_UNIT_NS, &row->time_ns, err);
    if (!us)
        return kvc_field_missing(at, "timestamp_us", err);
    return kvc_field_when(im, at, "timestamp_us", us, KVC_UNIT_US, &row->time_ns, err);
}

/* total_keys are the blocks of prompt and answer: those beyond the full ones of the prompt are
 * what was generated. */
static enum kvc_status read_total(const struct kvc_place *at, const struct kvc_jval *root,
                                  struct reader *r, struct kvc_log_row *row,
                                  struct kvc_error *err)
{
    const struct kvc_jval *list = kvc_field_member(root, "total_keys");
    size_t n;
    bool text;
    if (!list || !row->n_ids)
        return KVC_OK;
    enum kvc_status status = kvc_field_ids(at, "total_keys", list, NULL, &r->total, 0, &n, &text,
                                           err);
    if (status != KVC_OK || n <= row->n_ids ||
        memcmp(r->total.v, row->ids, row->n_ids * sizeof(*row->ids)) != 0)
        return status;
    row->output_ids = r->total.v;
    row->n_output_ids = n;
    return KVC_OK;
}

static enum kvc_status read_optimizer(const struct kvc_place *at, const struct kvc_jval *root,
                                      struct kvc_import *im, struct reader *r, bool *request,
                                      struct kvc_log_row *row, struct kvc_error *err)
{
    const struct kvc_jval *type = kvc_field_member(root, "type");
    const char *word = type ? kvc_jval_string(type) : NULL;
    *request = !word || strcmp(word, "write") != 0;
    if (!*request) {
        kvc_import_tally(im, "write events, which are no requests");
        return KVC_OK;
    }
    enum kvc_status status = read_space(at, "instance_id", root, r, &row->key_space, err);
    if (status == KVC_OK)
        status = read_times(at, root, im, row, err);
    if (status == KVC_OK)
        status = read_keys(at, root, "keys", &r->ids, &row->n_ids, err);
    if (status == KVC_OK)
        status = kvc_field_tokens(at, "input_len", root, 1, &row->input_tokens, err);
    if (status == KVC_OK && kvc_field_member(root, "output_len"))
        status = kvc_field_tokens(at, "output_len", root, 0, &row->output_tokens, err);
    else if (status == KVC_OK)
        row->output_tokens = KVC_TOKENS_UNKNOWN;
    row->ids = r->ids.v;
    if (status == KVC_OK)
        status = read_total(at, root, r, row, err);
    /* Blocks held are tokens only where their size is certain. */
    if (status == KVC_OK && kvc_import_options_of(im)->block_tokens)
        status = read_mask(at, root, im, row, err);
    return status;
}

/* ---- the format ---- */

/* Whether it is one of the inputs of Tair's anonymiser. */
static bool is_raw(const char *head, size_t n)
{
    char keys[40];
    kvc_sniff_keys(head, n, keys, sizeof(keys));
    return strcmp(keys, "time, text") == 0 ||
           kvc_sniff_row(head, n, (const char *const[]){ "timestamp", "dialog.messages", NULL }) ||
           kvc_sniff_row(head, n, (const char *const[]){ "ts_str", "token_ids", NULL });
}

static enum kvc_status one_row(struct kvc_import *im, struct reader *r, const char *text, size_t n,
                               struct kvc_error *err)
{
    struct kvc_place at = { kvc_import_file(im), kvc_import_line_number(im) };
    struct kvc_jval *root = NULL;
    struct kvc_log_row row = { .think_ns = KVC_TIME_NONE };
    struct kvc_error bad;
    char digits[2][24];
    bool request = false;
    enum kvc_status status = kvc_row_parse(&root, text, n, &at, &bad);
    if (status == KVC_OK && kvc_field_member(root, "trigger_time_us"))
        status = read_event(&at, root, im, r, &request, &row, &bad);
    else if (status == KVC_OK)
        status = read_optimizer(&at, root, im, r, &request, &row, &bad);
    if (status == KVC_OK && request)
        status = kvc_field_chosen(im, &at, root, digits, &row, &bad);
    if (status != KVC_OK)
        status = kvc_import_bad(im, &bad, err);
    else if (request)
        status = kvc_import_row(im, &row, false, err);
    kvc_json_free(root);
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { .kept = kvc_import_keep(im, sizeof(*r.kept), clear_writes) };
    const char *text;
    size_t n;
    bool first = true;
    enum kvc_status status;
    if (!r.kept)
        return kvc_fail_nomem(err);
    if (!r.kept->keys.clock) {
        kvc_import_recent(im, &r.kept->keys, 0);
        kvc_import_recent(im, &r.kept->open, 0);
    }
    while ((status = kvc_import_line(im, &text, &n, err)) == KVC_OK && text) {
        if (first && is_raw(text, n))
            status = kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im),
                                 kvc_import_line_number(im), NULL,
                                 "an input of Tair's anonymiser, a message a row and not a "
                                 "request; import what it writes, the optimizer's trace "
                                 "(optimizer_trace_*.jsonl)");
        first = false;
        if (status == KVC_OK)
            status = one_row(im, &r, text, n, err);
        if (status != KVC_OK)
            break;
    }
    kvc_free(r.ids.v);
    kvc_free(r.total.v);
    return status;
}

static enum kvc_status end_log(struct kvc_import *im, struct kvc_error *err)
{
    const struct writes *w = kvc_import_kept(im);
    (void)err;
    if (!w->lookups)
        return KVC_OK;
    kvc_import_note(im, "%llu of %llu keys looked up (%.3f) were announced by a StartWriteCache "
                    "before, as a prefix; whether the cache still had them is not in the log",
                    (unsigned long long)w->written, (unsigned long long)w->looked_up,
                    (double)w->written / (double)w->looked_up);
    if (w->started)
        kvc_import_note(im, "%llu writes started (%llu keys), %llu finished (%llu blocks "
                        "stored); what is written is no request and not in the trace",
                        (unsigned long long)w->started, (unsigned long long)w->announced,
                        (unsigned long long)w->finished, (unsigned long long)w->succeeded);
    return KVC_OK;
}

static bool sniff(const char *head, size_t n)
{
    return kvc_sniff_row(head, n, (const char *const[]){ "type", "trigger_time_us", "component",
                                                         NULL }) ||
           kvc_sniff_row(head, n, (const char *const[]){ "instance_id", "keys", "timestamp_us",
                                                         NULL }) ||
           kvc_sniff_row(head, n, (const char *const[]){ "instance_id", "keys", "timestamp_ns",
                                                         NULL }) ||
           is_raw(head, n);
}

const struct kvc_format kvc_format_tair = {
    .name = "tair",
    .summary = "Tair KVCache: the cache manager's event log (GetCacheLocation ..), or the "
               "optimizer's trace (instance_id, timestamp_us, keys, input_len)",
    .block_tokens = 16,
    .sniff = sniff,
    .read = read_log,
    .end = end_log,
};
