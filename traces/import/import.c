/* SPDX-License-Identifier: Apache-2.0
 * Drives the readers over the files and turns what they hand on into one trace. */
#include "traces/import/import_state.h"

#include "base/alloc.h"
#include "base/distribution.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "traces/import/anonymize.h"
#include "traces/text/breaks.h"
#include "traces/canonical.h"
#include "traces/import/salt.h"
#include "traces/import/sniff.h"
#include "traces/text/text_blocks.h"
#include "traces/trace_write.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- for readers ---- */

const char *kvc_import_file(const struct kvc_import *im)
{
    return kvc_import_place_name(im, im->place, im->file);
}

uint64_t kvc_import_line_number(const struct kvc_import *im)
{
    return im->lines.line;
}

bool kvc_import_compares(const struct kvc_import *im)
{
    return im->options->compare_readers;
}

uint32_t kvc_import_block_tokens(const struct kvc_import *im)
{
    return im->supposed;
}

bool kvc_import_text_id(struct kvc_import *im, const char *text, size_t n, uint64_t *id)
{
    uint32_t number;
    if (!kvc_intern_get(&im->text_ids, text, n, &number))
        return false;
    *id = number;
    return true;
}

void kvc_import_note(struct kvc_import *im, const char *fmt, ...)
{
    char text[sizeof(im->report.notes[0])];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (uint32_t i = 0; i < im->report.n_notes; i++)
        if (strcmp(im->report.notes[i], text) == 0)
            return;
    if (im->report.n_notes < KVC_REPORT_NOTES)
        memcpy(im->report.notes[im->report.n_notes++], text, sizeof(text));
}

void kvc_import_tally(struct kvc_import *im, const char *text)
{
    kvc_import_tally_rows(im, text, 1);
}

void kvc_import_tally_rows(struct kvc_import *im, const char *text, uint64_t rows)
{
    struct kvc_import_tally *all = im->report.tallies;
    uint32_t i = 0;
    while (i < im->report.n_tallies &&
           strncmp(all[i].text, text, sizeof(all[i].text) - 1) != 0)
        i++;
    if (i == KVC_REPORT_NOTES || !rows)
        return;
    if (i == im->report.n_tallies)
        snprintf(all[im->report.n_tallies++].text, sizeof(all[i].text), "%s", text);
    all[i].rows += rows;
}

void kvc_import_gateway_answered(struct kvc_import *im)
{
    im->report.gateway_answered++;
}

void kvc_import_failed_unseen(struct kvc_import *im)
{
    im->report.failed++;
    kvc_import_tally(im, "failed before any token was counted; left out");
}

const char *kvc_import_tenant_field(const struct kvc_import *im, const char *usual)
{
    return im->options->tenant_field ? im->options->tenant_field : usual;
}

const struct kvc_import_options *kvc_import_options_of(const struct kvc_import *im)
{
    return im->options;
}

void *kvc_import_kept(const struct kvc_import *im)
{
    return im->kept;
}

void kvc_import_keep(struct kvc_import *im, void *kept, void (*destroy)(void *kept))
{
    im->kept = kept;
    im->destroy_kept = destroy;
}

enum kvc_status kvc_import_bad(struct kvc_import *im, const struct kvc_error *bad,
                               struct kvc_error *err)
{
    if (bad->status == KVC_ERR_NOMEM || im->options->strict) {
        if (err) {
            *err = *bad;
            kvc_import_hide(im, err);
        }
        return bad->status;
    }
    im->report.bad++;
    if (im->report.n_shown < KVC_REPORT_SHOWN) {
        im->report.shown[im->report.n_shown++] = *bad;
        kvc_import_hide(im, &im->report.shown[im->report.n_shown - 1]);
    }
    return KVC_OK;
}

static bool blank(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r'))
        i++;
    return i == n;
}

enum kvc_status kvc_import_line(struct kvc_import *im, const char **text, size_t *n,
                                struct kvc_error *err)
{
    for (;;) {
        enum kvc_line_kind kind;
        enum kvc_status status = kvc_lines_next(&im->lines, &kind, text, n, err);
        if (status != KVC_OK)
            return status;
        if (kind == KVC_LINE_END) {
            *text = NULL;
            return KVC_OK;
        }
        if (kind == KVC_LINE_TEXT && !blank(*text, *n)) {
            im->report.rows++;
            return KVC_OK;
        }
        if (kind == KVC_LINE_TEXT) {
            im->report.blank++;
            continue;
        }
        struct kvc_error bad;
        im->report.rows++;
        kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line, NULL,
                    "the line is longer than %zu MiB, which no request is; is this one row a line?",
                    KVC_LINE_MAX >> 20);
        status = kvc_import_bad(im, &bad, err);
        if (status != KVC_OK)
            return status;
    }
}

size_t kvc_import_ahead(const struct kvc_import *im, const char **text)
{
    *text = im->lines.buf + im->lines.begin;
    return im->lines.end - im->lines.begin;
}

void kvc_import_took_line(struct kvc_import *im, size_t bytes)
{
    im->lines.begin += bytes;
    im->lines.line++;
    im->report.rows++;
}

enum kvc_status kvc_import_line_within(struct kvc_import *im, const char **text, size_t *n,
                                       struct kvc_error *err)
{
    enum kvc_line_kind kind;
    enum kvc_status status = kvc_lines_next(&im->lines, &kind, text, n, err);
    if (status != KVC_OK)
        return status;
    if (kind == KVC_LINE_TOO_LONG)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line, NULL,
                           "the line is longer than %zu MiB", KVC_LINE_MAX >> 20);
    if (kind == KVC_LINE_END)
        *text = NULL;
    return KVC_OK;
}

/* Whether an id occurs twice in the row. Ids numbered at first appearance ascend along a path,
 * so that the common answer needs no sorting. */
static bool has_repeat(struct kvc_import *im, const uint64_t *ids, size_t n, bool *repeated)
{
    size_t descents = 0;
    for (size_t i = 1; i < n; i++)
        descents += ids[i] <= ids[i - 1];
    *repeated = false;
    if (!descents)
        return true;
    if (!kvc_grow((void **)&im->seen, &im->seen_cap, n, sizeof(*im->seen)))
        return false;
    memcpy(im->seen, ids, n * sizeof(*ids));
    qsort(im->seen, n, sizeof(*ids), kvc_order_u64);
    for (size_t i = 1; i < n && !*repeated; i++)
        *repeated = im->seen[i] == im->seen[i - 1];
    return true;
}

static bool intern(struct kvc_intern *in, const struct kvc_span *span, uint32_t *number)
{
    *number = KVC_ID_NONE;
    return !span->text || kvc_intern_get(in, span->text, span->n, number);
}

static bool check_ids(struct kvc_import *im, const struct kvc_log_row *row)
{
    bool repeated = false;
    if (!row->unchained && !row->hashed && !has_repeat(im, row->ids, row->n_ids, &repeated))
        return false;
    im->report.repeated_ids += repeated;
    if (!row->n_ids)
        return true;
    im->rows_with_ids++;
    kvc_block_fit_add(&im->fit, row->input_tokens, row->n_ids);
    if (kvc_block_fits_row(im->supposed, row->input_tokens, row->n_ids))
        return true;
    if (!kvc_import_suspect_room(im))
        return false;
    im->suspects[im->n_suspects++] = (struct kvc_suspect){
        .row = kvc_forest_rows(im->forest), .line = im->lines.line, .file = im->file,
        .ids = row->n_ids, .tokens = row->input_tokens, .place = im->place, .repeated = repeated };
    memcpy(im->suspects[im->n_suspects - 1].where, im->where, sizeof(im->where));
    return true;
}

/* The row's session. A turn without a timestamp comes its delay after the turn before; *time_ns
 * KVC_TIME_NONE when there was none. */
static bool place_turn(struct kvc_import *im, const struct kvc_span *name, struct kvc_row *r)
{
    r->session = KVC_ID_NONE;
    if (r->time_ns != KVC_TIME_NONE)
        kvc_session_clock(&im->sessions, r->time_ns);
    if (!name->text)
        return true;
    struct kvc_session_entry *e = kvc_session_name(&im->sessions, name->text, name->n);
    if (!e)
        return false;
    r->session = e->number;
    if (r->time_ns == KVC_TIME_NONE && e->turn_ns != KVC_TIME_NONE &&
        r->think_ns < KVC_LOG_TIME_MAX - e->turn_ns) {
        r->time_ns = e->turn_ns + r->think_ns;
        kvc_import_note(im, "turns without a timestamp placed at the turn before plus their delay; "
                        "the time of the answer between is not in the log");
    }
    if (r->time_ns != KVC_TIME_NONE)
        e->turn_ns = r->time_ns;
    return true;
}

/* KV of one model, adapter or salt is of no use to another, numbers are not strings, and a
 * document's own ids mean nothing elsewhere. */
static bool root_key(struct kvc_import *im, const struct kvc_log_row *row, uint32_t model,
                     uint32_t *key)
{
    uint32_t shared = (model == KVC_ID_NONE || im->options->merge_models ? 0 : model + 1) * 2 +
                      row->text_ids;
    uint32_t adapter, salt;
    *key = shared * 2;
    if (!row->key_space && !row->adapter.text && !row->salt.text)
        return true;
    if (!intern(&im->variants, &row->adapter, &adapter) ||
        !intern(&im->variants, &row->salt, &salt))
        return false;
    uint64_t of[4] = { row->key_space, shared, adapter, salt };
    bool ok = kvc_intern_get(&im->root_keys, (const char *)of, sizeof(of), key);
    *key = *key * 2 + 1;
    return ok;
}

static void count_stated(struct kvc_import *im, const struct kvc_log_row *row)
{
    struct kvc_import_report *r = &im->report;
    r->failed += row->status == KVC_ROW_FAILED;
    r->cancelled += row->status == KVC_ROW_CANCELLED;
    if (row->cached_stated) {
        r->cached_rows++;
        r->cached_of_tokens += row->input_tokens;
        r->cached_tokens += row->cached_tokens;
    }
    r->cache_write_tokens += row->cache_write_tokens;
    r->spend_rows += row->spend_stated;
    r->spend_usd += row->spend_stated ? row->spend_usd : 0;
}

static enum kvc_status suspect_error(const struct kvc_import *im, const struct kvc_suspect *s,
                                     uint32_t block, const char *advice, struct kvc_error *err)
{
    uint32_t full = s->tokens / block, most = full + (s->tokens % block != 0);
    char expected[48], field[64];
    snprintf(expected, sizeof(expected), full == most ? "%u" : "%u or %u", full, most);
    snprintf(field, sizeof(field), "%s%shash_ids", s->where, s->where[0] ? "." : "");
    return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_place_name(im, s->place, s->file), s->line,
                       field, "%zu ids for %u input tokens; blocks of %u tokens give %s%s", s->ids,
                       s->tokens, block, expected, advice);
}

static enum kvc_status misfit(struct kvc_import *im, const struct kvc_log_row *row,
                              struct kvc_error *err)
{
    struct kvc_suspect s = { .line = im->lines.line, .file = im->file, .ids = row->n_ids,
                             .tokens = row->input_tokens, .place = im->place };
    struct kvc_error bad;
    memcpy(s.where, im->where, sizeof(s.where));
    suspect_error(im, &s, im->supposed, "; the row is left out", &bad);
    return kvc_import_bad(im, &bad, err);
}

enum kvc_status kvc_import_row(struct kvc_import *im, const struct kvc_log_row *row, bool odd,
                               struct kvc_error *err)
{
    struct kvc_row r = { .time_ns = row->time_ns, .think_ns = row->think_ns,
                         .input_tokens = row->input_tokens, .output_tokens = row->output_tokens,
                         .ids = row->ids, .n_ids = row->n_ids, .output_ids = row->output_ids,
                         .n_output_ids = row->n_output_ids, .status = row->status,
                         .cached_stated = row->cached_stated,
                         .shown_stated = row->hashed, .shown_tokens = row->shown_tokens,
                         .cached_tokens = row->cached_tokens };
    struct kvc_error bad;
    if (!intern(&im->tenants, &row->tenant, &r.tenant) ||
        !intern(&im->models, &row->model, &r.model) || !place_turn(im, &row->session, &r))
        return kvc_fail_nomem(err);
    if (r.time_ns == KVC_TIME_NONE && kvc_arrivals_draw(&im->arrivals, &r.time_ns) &&
        !place_turn(im, &row->session, &r))
        return kvc_fail_nomem(err);
    if (r.time_ns == KVC_TIME_NONE) {
        kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line, "timestamp",
                    "missing, and no earlier turn of this session to count the delay from%s",
                    im->arrivals.given ? "; --arrivals is for logs that state no time at all"
                                       : "; --arrivals poisson:R gives R requests per second");
        return kvc_import_bad(im, &bad, err);
    }
    if (!kvc_import_clock_allows(im, r.time_ns, &bad))
        return kvc_import_bad(im, &bad, err);
    if (kvc_import_misfit(im, row))
        return misfit(im, row, err);
    if (!check_ids(im, row))
        return kvc_spill_fail(&im->spill, err);
    if (!root_key(im, row, r.model, &r.root_key))
        return kvc_fail_nomem(err);
    if (r.status == KVC_ROW_FAILED) /* nothing says that its KV was ever computed */
        r.n_ids = r.n_output_ids = 0;
    im->arrivals.stated = im->arrivals.stated || row->time_ns != KVC_TIME_NONE;
    kvc_import_clock_row(im, r.time_ns);
    enum kvc_status status = kvc_forest_add(im->forest, &r, err);
    if (status != KVC_OK)
        return status;
    im->report.accepted++;
    im->report.odd += odd;
    count_stated(im, row);
    return KVC_OK;
}

enum kvc_status kvc_import_lengths(struct kvc_import *im, uint64_t time_ns, uint32_t input_tokens,
                                   uint32_t output_tokens, bool odd, struct kvc_error *err)
{
    struct kvc_error bad;
    if (!kvc_import_clock_allows(im, time_ns, &bad))
        return kvc_import_bad(im, &bad, err);
    im->arrivals.stated = true;
    kvc_import_clock_row(im, time_ns);
    enum kvc_status status = kvc_forest_add_lengths(im->forest, time_ns, input_tokens,
                                                    output_tokens, err);
    if (status != KVC_OK)
        return status;
    im->report.accepted++;
    im->report.odd += odd;
    return KVC_OK;
}

/* ---- the block size ---- */

/* Rows that contradict the block size become bad rows and leave the forest. */
static enum kvc_status reject_suspects(struct kvc_import *im, struct kvc_error *err)
{
    uint64_t *rows = kvc_malloc(im->n_suspects, sizeof(*rows));
    if (!rows)
        return kvc_fail_nomem(err);
    enum kvc_status status = KVC_OK;
    for (size_t i = 0; i < im->n_suspects && status == KVC_OK; i++) {
        struct kvc_error bad;
        rows[i] = im->suspects[i].row;
        im->report.repeated_ids -= im->suspects[i].repeated;
        suspect_error(im, &im->suspects[i], im->supposed, "; the row is left out", &bad);
        status = kvc_import_bad(im, &bad, err);
    }
    if (status == KVC_OK)
        status = kvc_forest_remove(&im->forest, rows, im->n_suspects, err);
    im->report.accepted -= im->n_suspects;
    kvc_free(rows);
    return status;
}

static enum kvc_status settle_block_size(struct kvc_import *im, uint32_t *block,
                                         struct kvc_error *err)
{
    uint32_t given = im->options->block_tokens ? im->options->block_tokens : im->stated;
    struct kvc_block_range range;
    *block = im->rows_with_ids ? im->supposed : 0;
    if (!im->n_suspects) {
        if (!given && im->rows_with_ids && im->format->cuts_blocks)
            kvc_import_note(im, "%s cut into blocks of %u tokens; --block-tokens chooses "
                            "another size", im->text ? "prompts" : "token ids", *block);
        else if (!given && im->rows_with_ids)
            kvc_import_note(im, "blocks of %u tokens assumed, as %s logs have; all rows agree",
                            *block, im->format->name);
        return KVC_OK;
    }
    uint32_t fitting = kvc_block_fit_choose(&im->fit, &range);
    char advice[200];
    bool some_fit = range.low <= range.high;
    if (!given && fitting) {
        kvc_import_note(im, "blocks of %u tokens inferred from lengths and ids (%llu to %llu fit "
                        "every row, %u does not)", fitting, (unsigned long long)range.low,
                        (unsigned long long)range.high, im->supposed);
        *block = fitting;
        return KVC_OK;
    }
    if (some_fit && range.low == range.high)
        snprintf(advice, sizeof(advice), "; --block-tokens %llu fits every row",
                 (unsigned long long)range.low);
    else if (some_fit)
        snprintf(advice, sizeof(advice), "; sizes from %llu to %llu fit every row%s, name it with "
                 "--block-tokens", (unsigned long long)range.low, (unsigned long long)range.high,
                 fitting ? "" : " and none stands out");
    else
        snprintf(advice, sizeof(advice), "; no size fits every row and %zu of %llu rows contradict "
                 "this one: name the right one with --block-tokens", im->n_suspects,
                 (unsigned long long)im->rows_with_ids);
    if (!some_fit && im->options->forget_ns)
        snprintf(advice, sizeof(advice), "; where prefixes are forgotten rows can't be taken out "
                 "at the end: name the size with --block-tokens");
    if (some_fit || im->n_suspects * 2 > im->rows_with_ids || im->options->forget_ns)
        return suspect_error(im, &im->suspects[0], im->supposed, advice, err);
    return reject_suspects(im, err);
}

/* ---- the driver ---- */

static bool tick(void *user, uint64_t position)
{
    struct kvc_import *im = user;
    kvc_import_forecast(im, im->done_before + position);
    return !im->options->progress ||
           im->options->progress(im->options->progress_user, "reading",
                                 im->done_before + position, im->total);
}

static void format_names(char *buf, size_t size)
{
    size_t n = 0;
    for (const char *const *name = kvc_trace_formats(); *name && n < size; name++)
        n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "", *name);
}

static enum kvc_status unknown_format(const struct kvc_import *im, const char *head, size_t n,
                                      const char *names, struct kvc_error *err)
{
    char keys[160];
    size_t depth = kvc_sniff_depth(head, n);
    if (depth > KVC_JSON_DEPTH)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 1, NULL,
                           "nested deeper than %d levels, which no row of a known format is",
                           KVC_JSON_DEPTH);
    kvc_sniff_keys(head, n, keys, sizeof(keys));
    return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                       "not a log in a known format%s%s; name it with --format when it is one of "
                       "%s", keys[0] ? ", its first row has the fields " : "", keys, names);
}

static enum kvc_status choose_format(struct kvc_import *im, const struct kvc_stream *stream,
                                     struct kvc_error *err)
{
    const char *name = im->options->format;
    const struct kvc_format *const *f = kvc_format_table;
    size_t n;
    char names[512];
    const char *head = kvc_stream_head(stream, &n);
    bool by_name = name && !kvc_name_equal(name, "auto");
    while (*f && !(by_name ? kvc_name_equal((*f)->name, name) : (*f)->sniff(head, n)))
        f++;
    format_names(names, sizeof(names));
    if (!*f && by_name)
        return kvc_fail(err, KVC_ERR_USAGE, "unknown format \"%s\"; there are: auto, %s", name,
                        names);
    if (kvc_stream_is_tar(stream) && (!*f || !(*f)->tar))
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                           "this is a tar archive, and not of %s; unpack it and name the files in "
                           "it", *f ? (*f)->name : "a format read from archives");
    if (!*f)
        return unknown_format(im, head, n, names, err);
    if (im->format && im->format != *f)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                           "this is a %s log, the file before a %s one; import them apart",
                           (*f)->name, im->format->name);
    im->format = *f;
    im->supposed = im->options->block_tokens ? im->options->block_tokens
                   : im->stated              ? im->stated
                                             : im->format->block_tokens;
    return KVC_OK;
}

static enum kvc_status read_file(struct kvc_import *im, struct kvc_stream *stream,
                                 struct kvc_error *err)
{
    if (kvc_stream_is_kvt(stream))
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                           "this is a .kvt, imported already; give the logs themselves");
    enum kvc_status status = choose_format(im, stream, err);
    if (status != KVC_OK)
        return status;
    if (!kvc_lines_init(&im->lines, stream))
        return kvc_fail_nomem(err);
    if (im->options->progress || im->options->estimate) {
        im->lines.tick = tick;
        im->lines.tick_user = im;
    }
    kvc_import_clock_start(im);
    status = im->format->read(im, err);
    if (status == KVC_OK)
        status = kvc_import_clock_settle(im, err);
    if (status != KVC_OK && err && !err->file[0] && status != KVC_ERR_CANCELLED)
        snprintf(err->file, sizeof(err->file), "%s", kvc_import_file(im));
    im->place = KVC_ID_NONE;
    im->where[0] = '\0';
    im->report.bytes_in += im->lines.bytes;
    im->done_before += kvc_stream_position(stream);
    kvc_lines_clear(&im->lines);
    return status;
}

static void count_rows(struct kvc_import *im, const struct kvc_trace *t)
{
    for (uint64_t r = 0; r < t->n_requests; r++) {
        uint32_t tokens = t->input_tokens[r], n = kvc_trace_blocks(t, r);
        im->report.zero_output += t->output_tokens[r] == 0;
        if (!n)
            im->report.without_ids += tokens >= t->block_tokens;
        else if (tokens % t->block_tokens)
            *(n == tokens / t->block_tokens ? &im->report.floor_rows : &im->report.ceil_rows) += 1;
    }
}

static bool move_names(struct kvc_import *im, struct kvc_trace *t)
{
    t->n_sessions = im->sessions.n > t->n_sessions ? im->sessions.n : t->n_sessions;
    t->n_tenants = t->n_models = 0;
    t->tenant_names = kvc_import_names(im, "tenant", &im->tenants);
    t->n_tenants = t->tenant_names ? (uint32_t)im->tenants.n : 0;
    t->model_names = kvc_import_names(im, "model", &im->models);
    t->n_models = t->model_names ? (uint32_t)im->models.n : 0;
    return t->n_tenants == im->tenants.n && t->n_models == im->models.n;
}

static enum kvc_status finish(struct kvc_import *im, struct kvc_trace **out, struct kvc_error *err)
{
    uint32_t block = 0;
    struct kvc_trace *t = NULL;
    enum kvc_status status = kvc_text_finish(im, err);
    if (status == KVC_OK)
        status = kvc_import_start_documents(im, err);
    if (status == KVC_OK)
        status = settle_block_size(im, &block, err);
    if (status == KVC_OK)
        status = kvc_import_window(im, err);
    if (status != KVC_OK)
        return status;
    if (!im->report.accepted) {
        if (im->report.n_shown && err)
            *err = im->report.shown[0];
        else
            kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL, "no request in it");
        return KVC_ERR_INPUT;
    }
    struct kvc_forest_counts counts;
    status = kvc_forest_finish_with(im->forest, block, true, im->options->progress,
                                    im->options->progress_user, &counts, &t, err);
    im->forest = NULL;
    if (status != KVC_OK)
        return status;
    if (!move_names(im, t) || !kvc_trace_canonical(t, &im->spill)) {
        kvc_trace_destroy(t);
        return kvc_spill_fail(&im->spill, err);
    }
    kvc_import_tell(im, &counts, t);
    if (kvc_text_rate(im) > 0 && !kvc_breaks_finish(im->breaks, kvc_text_rate(im), t)) {
        kvc_trace_destroy(t);
        return kvc_fail_nomem(err);
    }
    t->objects = im->format->objects;
    count_rows(im, t);
    kvc_import_note_arrivals(im, t);
    kvc_trace_digest(t, t->digest);
    *out = t;
    return KVC_OK;
}

static void clear(struct kvc_import *im)
{
    kvc_forest_destroy(im->forest);
    kvc_breaks_destroy(im->breaks);
    kvc_session_names_clear(&im->sessions);
    kvc_intern_clear(&im->tenants);
    kvc_intern_clear(&im->models);
    kvc_intern_clear(&im->text_ids);
    kvc_intern_clear(&im->root_keys);
    kvc_intern_clear(&im->variants);
    kvc_intern_clear(&im->places);
    kvc_text_destroy(im);
    if (im->destroy_kept)
        im->destroy_kept(im->kept);
    kvc_free(im->documents);
    kvc_spill_free(&im->spill, &im->suspects, &im->held_suspects);
    kvc_spill_clear(&im->spill);
    kvc_free(im->seen);
}

/* Of all files; 0 when one's size isn't known. */
static uint64_t stored_bytes(const char *const *paths, size_t n)
{
    uint64_t sum = 0;
    struct stat st;
    for (size_t i = 0; i < n; i++) {
        if (stat(paths[i], &st) != 0 || !S_ISREG(st.st_mode))
            return 0;
        sum += (uint64_t)st.st_size;
    }
    return sum;
}

enum kvc_status kvc_import_streams(struct kvc_trace **out, const char *const *paths, size_t n,
                                   struct kvc_stream *first,
                                   const struct kvc_import_options *options,
                                   struct kvc_import_report *report, struct kvc_error *err)
{
    static const struct kvc_import_options defaults = { .struct_size = sizeof(defaults) };
    struct kvc_import im = { .options = options ? options : &defaults, .paths = paths,
                             .n_paths = n, .place = KVC_ID_NONE };
    enum kvc_status status = KVC_OK;
    kvc_block_fit_init(&im.fit);
    im.total = stored_bytes(paths, n);
    status = kvc_arrivals_init(&im.arrivals, im.options, err);
    if (status == KVC_OK)
        status = kvc_text_check(im.options, err);
    if (status == KVC_OK && im.options->anonymize)
        status = kvc_salt_read(im.options->salt_file, im.name_key, err);
    if (status == KVC_OK && !(im.breaks = kvc_breaks_create(&im)))
        status = kvc_fail_nomem(err);
    if (status == KVC_OK)
        status = kvc_import_prepare(&im, err);
    for (; im.file < n && status == KVC_OK; im.file++) {
        struct kvc_stream *stream = im.file == 0 ? first : NULL;
        if (!stream)
            status = kvc_stream_open(&stream, paths[im.file], err);
        if (status != KVC_OK)
            break;
        status = read_file(&im, stream, err);
        if (stream != first)
            kvc_stream_close(stream);
    }
    if (status == KVC_OK) {
        im.file = n - 1;
        if (im.format->end)
            status = im.format->end(&im, err);
    }
    if (status == KVC_OK) {
        status = finish(&im, out, err);
    }
    if (report)
        *report = im.report;
    clear(&im);
    return status;
}

enum kvc_status kvc_trace_import(struct kvc_trace **out, const char *const *paths, size_t n_paths,
                                 const struct kvc_import_options *options,
                                 struct kvc_import_report *report, struct kvc_error *err)
{
    if (!n_paths)
        return kvc_fail(err, KVC_ERR_USAGE, "no log named");
    return kvc_import_streams(out, paths, n_paths, NULL, options, report, err);
}
