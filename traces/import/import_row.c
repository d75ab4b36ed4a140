/* SPDX-License-Identifier: Apache-2.0
 * One row on its way from a reader to the forest. */
#include "traces/import/import_state.h"

#include "base/alloc.h"
#include "base/distribution.h"
#include "base/error.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

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
    if (!row->ascending && !row->unchained && !row->hashed &&
        !has_repeat(im, row->ids, row->n_ids, &repeated))
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

/* The pause that people and tools take is what lies between an answer's end and the next turn.
 * Turns that overlap, as those of parallel calls, have none. */
static void tell_think(struct kvc_session_entry *e, struct kvc_row *r, uint64_t end_ns)
{
    if (r->think_ns == KVC_TIME_NONE && e->end_ns && e->end_ns <= r->time_ns)
        r->think_ns = r->time_ns - e->end_ns;
    if (!end_ns || end_ns > e->end_ns)
        e->end_ns = end_ns;
}

/* The row's session. A turn without a timestamp comes its delay after the turn before; *time_ns
 * KVC_TIME_NONE when there was none. */
static bool place_turn(struct kvc_import *im, const struct kvc_log_row *row, struct kvc_row *r)
{
    const struct kvc_span *name = &row->session;
    r->session = KVC_ID_NONE;
    if (r->time_ns != KVC_TIME_NONE)
        kvc_recent_tick(&im->recent, r->time_ns);
    if (!name->text)
        return true;
    bool fresh;
    struct kvc_session_entry *e = kvc_recent_get(&im->sessions, name->text, name->n, &fresh);
    if (!e || im->n_sessions == UINT32_MAX - 1)
        return false;
    if (fresh)
        *e = (struct kvc_session_entry){ im->n_sessions++, KVC_TIME_NONE, 0 };
    r->session = e->number;
    if (r->time_ns == KVC_TIME_NONE && e->turn_ns != KVC_TIME_NONE &&
        r->think_ns < KVC_LOG_TIME_MAX - e->turn_ns) {
        r->time_ns = e->turn_ns + r->think_ns;
        kvc_import_note(im, "turns without a timestamp placed at the turn before plus their delay; "
                        "the time of the answer between is not in the log");
    }
    if (r->time_ns == KVC_TIME_NONE)
        return true;
    e->turn_ns = r->time_ns;
    tell_think(e, r, row->end_ns >= r->time_ns ? row->end_ns : 0);
    return true;
}

/* KV of one model, adapter or salt is of no use to another, numbers are not strings, and a
 * document's own ids mean nothing elsewhere, nor do an instance's where its keys are its own. What
 * is more than a model is hashed, so that nothing of it need be kept. */
static uint64_t root_key(const struct kvc_import *im, const struct kvc_log_row *row, uint32_t model,
                         bool own_keys)
{
    static const struct kvc_span none = { 0 };
    uint64_t shared = (model == KVC_ID_NONE || im->options->merge_models ? 0 : model + 1) * 2u +
                      row->text_ids;
    const struct kvc_span *instance = own_keys ? &row->instance : &none;
    const struct kvc_span *const spans[] = { &row->adapter, &row->salt, instance };
    if (!row->key_space && !row->adapter.text && !row->salt.text && !instance->text)
        return shared;
    struct kvc_sip s;
    kvc_sip_start(&s, shared, row->key_space);
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        uint64_t n = spans[i]->text ? spans[i]->n : UINT64_MAX; /* none is not an empty one */
        kvc_sip_bytes(&s, &n, sizeof(n));
        if (spans[i]->text)
            kvc_sip_bytes(&s, spans[i]->text, spans[i]->n);
    }
    return (kvc_sip_end(&s) & KVC_ROOT_KEYS) | (uint64_t)1 << 61;
}

/* What instances could share, where the log names them. Ids of a document are its own anyhow. */
static bool count_sharing(struct kvc_import *im, const struct kvc_log_row *row, uint32_t model)
{
    if (!row->instance.text || !row->n_ids || row->unchained || row->key_space ||
        row->status == KVC_ROW_FAILED)
        return true;
    bool fits = im->supposed && kvc_block_fits_row(im->supposed, row->input_tokens, row->n_ids);
    size_t full = fits ? row->input_tokens / im->supposed : row->n_ids - 1;
    return kvc_sharing_row(&im->sharing, &row->instance, root_key(im, row, model, false), row->ids,
                           row->n_ids, full < row->n_ids ? full : row->n_ids);
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

/* Where rows that contradict the block size can't be taken out later. */
static enum kvc_status misfit(struct kvc_import *im, const struct kvc_log_row *row,
                              struct kvc_error *err)
{
    struct kvc_suspect s = { .line = im->lines.line, .file = im->file, .ids = row->n_ids,
                             .tokens = row->input_tokens, .place = im->place };
    struct kvc_error bad;
    memcpy(s.where, im->where, sizeof(s.where));
    kvc_import_suspect_error(im, &s, im->supposed, "; the row is left out", &bad);
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
    if (!row->input_tokens) {
        kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line, im->where,
                    "a prompt of 0 tokens is no request");
        return kvc_import_bad(im, &bad, err);
    }
    if (!intern(&im->tenants, &row->tenant, &r.tenant) ||
        !intern(&im->models, &row->model, &r.model) || !place_turn(im, row, &r))
        return kvc_fail_nomem(err);
    if (r.time_ns == KVC_TIME_NONE && kvc_arrivals_draw(&im->arrivals, &r.time_ns) &&
        !place_turn(im, row, &r))
        return kvc_fail_nomem(err);
    if (r.time_ns == KVC_TIME_NONE) {
        kvc_fail_at(&bad, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line, "timestamp",
                    "missing, and no earlier turn of this session to count the delay from%s",
                    im->arrivals.given ? "; --arrivals is for logs that state no time at all"
                                       : "; --arrivals poisson:R gives R requests per second");
        return kvc_import_bad(im, &bad, err);
    }
    if (!kvc_clock_in_order(&im->clock, r.time_ns)) {
        if (!kvc_import_clock_allows(im, r.time_ns, &bad))
            return kvc_import_bad(im, &bad, err);
        kvc_import_clock_row(im, r.time_ns);
    }
    im->arrivals.stated = im->arrivals.stated || row->time_ns != KVC_TIME_NONE;
    if (!kvc_import_in_window(im, r.time_ns))
        return KVC_OK;
    if (kvc_import_misfit(im, row))
        return misfit(im, row, err);
    if (!check_ids(im, row))
        return kvc_spill_fail(&im->spill, err);
    r.root_key = root_key(im, row, r.model, im->options->key_field != NULL);
    if (!count_sharing(im, row, r.model))
        return kvc_fail_nomem(err);
    if (r.status == KVC_ROW_FAILED) /* nothing says that its KV was ever computed */
        r.n_ids = r.n_output_ids = 0;
    kvc_import_total(im, r.input_tokens, r.output_tokens, r.n_ids);
    enum kvc_status status = kvc_forest_add(im->forest, &r, err);
    if (status != KVC_OK)
        return status;
    im->report.accepted++;
    im->report.odd += odd;
    count_stated(im, row);
    return KVC_OK;
}

enum kvc_status kvc_import_lengths(struct kvc_import *im, const struct kvc_length_row *row,
                                   bool odd, struct kvc_error *err)
{
    struct kvc_error bad;
    if (!kvc_clock_in_order(&im->clock, row->time_ns)) {
        if (!kvc_import_clock_allows(im, row->time_ns, &bad))
            return kvc_import_bad(im, &bad, err);
        kvc_import_clock_row(im, row->time_ns);
    }
    im->arrivals.stated = true;
    if (!kvc_import_in_window(im, row->time_ns))
        return KVC_OK;
    kvc_import_total(im, row->input_tokens, row->output_tokens, 0);
    enum kvc_status status = kvc_forest_add_lengths(im->forest, row->time_ns, row->input_tokens,
                                                    row->output_tokens, err);
    if (status != KVC_OK)
        return status;
    im->report.accepted++;
    im->report.odd += odd;
    return KVC_OK;
}

enum kvc_status kvc_import_lengths_ahead(struct kvc_import *im, const struct kvc_length_row *rows,
                                         size_t n, size_t bytes, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    im->lines.begin += bytes;
    for (size_t i = 0; i < n && status == KVC_OK; i++) {
        im->lines.line++;
        im->report.rows++;
        status = kvc_import_lengths(im, &rows[i], false, err);
    }
    return status;
}
