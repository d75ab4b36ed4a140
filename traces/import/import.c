/* SPDX-License-Identifier: Apache-2.0
 * Drives the readers over the files and turns what they hand on into one trace. */
#include "traces/import/import_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/siphash.h"
#include "base/sized.h"
#include "base/units.h"
#include "traces/canonical.h"
#include "traces/import/alignment.h"
#include "traces/import/anonymize.h"
#include "traces/import/salt.h"
#include "traces/import/sniff.h"
#include "traces/text/breaks.h"
#include "traces/text/text_blocks.h"
#include "traces/trace_write.h"
#include "traces/where.h"

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

uint64_t kvc_import_text_id(const char *text, size_t n)
{
    struct kvc_sip s;
    kvc_sip_start(&s, 0x6b76636173740002u, 0);
    kvc_sip_bytes(&s, text, n);
    return kvc_sip_end(&s);
}

void kvc_import_recent(struct kvc_import *im, struct kvc_recent *table, size_t size)
{
    *table = (struct kvc_recent){ .clock = &im->recent, .size = size };
}

const char *kvc_import_tenant_field(const struct kvc_import *im, const char *usual)
{
    return im->options->tenant_field ? im->options->tenant_field : usual;
}

void kvc_import_key_found(struct kvc_import *im)
{
    im->key_field_found = true;
}

const struct kvc_import_options *kvc_import_options_of(const struct kvc_import *im)
{
    return im->options;
}

void *kvc_import_kept(const struct kvc_import *im)
{
    return im->kept;
}

void *kvc_import_keep(struct kvc_import *im, size_t bytes, void (*clear)(void *kept))
{
    if (!im->kept)
        im->kept = kvc_calloc(1, bytes);
    im->clear_kept = clear;
    return im->kept;
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
    char keys[96];
    size_t blanks = 0;
    while (blanks < n && memchr(" \t\r\n", head[blanks], 4))
        blanks++;
    if (blanks == n)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                           "no log: blank lines and nothing else where it begins");
    size_t depth = kvc_sniff_depth(head, n);
    if (depth > KVC_JSON_DEPTH)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 1, NULL,
                           "nested deeper than %d levels, which no row of a known format is",
                           KVC_JSON_DEPTH);
    kvc_sniff_keys(head, n, keys, sizeof(keys));
    if (im->options->anonymize)
        keys[0] = '\0';
    return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                       "not a log in a known format%s%s; write rows with timestamp (ms), "
                       "input_length, output_length and, where known, hash_ids, or name it with "
                       "--format when it is one of %s",
                       keys[0] ? ", its first row has the fields " : "", keys, names);
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
                           "an archive within an archive; unpack it");
    if (!*f)
        return unknown_format(im, head, n, names, err);
    if (im->format && im->format != *f)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL,
                           "this log is of the format %s, the one before of %s; import them apart",
                           (*f)->name, im->format->name);
    im->format = *f;
    im->supposed = im->options->block_tokens ? im->options->block_tokens
                   : im->stated              ? im->stated
                                             : im->format->block_tokens;
    return KVC_OK;
}

enum kvc_status kvc_import_stream(struct kvc_import *im, struct kvc_stream *stream,
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
        bool told = kvc_trace_output_known(t, r);
        im->report.zero_output += told && t->output_tokens[r] == 0;
        im->report.unknown_output += !told;
        if (!n)
            im->report.without_ids += tokens >= t->block_tokens;
        else if (tokens % t->block_tokens)
            *(n == tokens / t->block_tokens ? &im->report.floor_rows : &im->report.ceil_rows) += 1;
    }
}

/* Lengths that the log doesn't say become a column of their own. */
static bool settle_outputs(struct kvc_trace *t)
{
    for (uint64_t r = 0; r < t->n_requests; r++) {
        if (t->output_tokens[r] != KVC_TOKENS_UNKNOWN)
            continue;
        if (!t->output_unknown && !(t->output_unknown = kvc_calloc((size_t)t->n_requests, 1)))
            return false;
        t->output_unknown[r] = 1;
        t->output_tokens[r] = 0;
    }
    return true;
}

static bool move_names(struct kvc_import *im, struct kvc_trace *t)
{
    t->n_sessions = im->n_sessions > t->n_sessions ? im->n_sessions : t->n_sessions;
    t->n_tenants = t->n_models = 0;
    t->tenant_names = kvc_import_names(im, "tenant", &im->tenants);
    t->n_tenants = t->tenant_names ? (uint32_t)im->tenants.n : 0;
    t->model_names = kvc_import_names(im, "model", &im->models);
    t->n_models = t->model_names ? (uint32_t)im->models.n : 0;
    return t->n_tenants == im->tenants.n && t->n_models == im->models.n;
}

/* An option that did nothing was misspelt, or means another field than the user thinks. */
static void note_idle_options(struct kvc_import *im)
{
    const struct kvc_import_options *o = im->options;
    if (o->tenant_field && !im->tenants.n)
        kvc_import_note(im, "--tenant-field %.80s: no row names a tenant in it", o->tenant_field);
    if (o->key_field && !im->key_field_found)
        kvc_import_note(im, "--key-field %.80s: not read in any row of this %s log, so that all "
                        "ids were taken to mean the same", o->key_field, im->format->name);
    if (im->arrivals.given && !im->arrivals.drawn)
        kvc_import_note(im, "--arrivals had nothing to do: the log states its times");
}

static enum kvc_status finish(struct kvc_import *im, struct kvc_trace **out, struct kvc_error *err)
{
    uint32_t block = 0;
    struct kvc_trace *t = NULL;
    enum kvc_status status = kvc_text_finish(im, err);
    if (status == KVC_OK)
        status = kvc_import_start_documents(im, err);
    if (status == KVC_OK)
        status = kvc_import_settle_block_size(im, &block, err);
    if (status == KVC_OK)
        status = kvc_import_window(im, err);
    if (status != KVC_OK)
        return status;
    kvc_alignment_note(im, block);
    kvc_import_tell_sharing(im);
    if (!im->report.accepted) {
        if (im->report.n_shown && err)
            *err = im->report.shown[0];
        else
            kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, NULL, "no request in it");
        return KVC_ERR_INPUT;
    }
    struct kvc_forest_counts counts;
    if (im->text && !im->options->sample_weight) /* hashed by a key drawn anew, mostly */
        kvc_forest_hide_ids(im->forest);
    status = kvc_forest_finish_with(im->forest, block, true, im->options->progress,
                                    im->options->progress_user, &counts, &t, err);
    im->forest = NULL;
    if (status != KVC_OK)
        return status;
    if (!settle_outputs(t) || !move_names(im, t) || !kvc_trace_canonical(t, &im->spill)) {
        kvc_trace_destroy(t);
        return kvc_spill_fail(&im->spill, err);
    }
    kvc_import_tell(im, &counts, t);
    if ((status = kvc_import_tell_sample(im, t, err)) != KVC_OK) {
        kvc_trace_destroy(t);
        return status;
    }
    if (kvc_text_rate(im) > 0 && !kvc_breaks_finish(im->breaks, kvc_text_rate(im), t)) {
        kvc_trace_destroy(t);
        return kvc_fail_nomem(err);
    }
    t->objects = im->format->objects;
    count_rows(im, t);
    kvc_import_note_arrivals(im, t);
    note_idle_options(im);
    kvc_trace_digest(t, t->digest);
    uint64_t left_out = 0;
    if (im->options->where)
        status = kvc_trace_where(t, im->options->where, &left_out, err);
    if (status != KVC_OK) {
        kvc_trace_destroy(t);
        return status;
    }
    kvc_where_tell(&im->report, im->options->where, left_out);
    *out = t;
    return KVC_OK;
}

/* The trace goes on telling what became of the log, but quotes none of its rows. */
static enum kvc_status keep_report(const struct kvc_import *im, struct kvc_trace **trace,
                                   struct kvc_error *err)
{
    struct kvc_import_report *r = kvc_malloc(1, sizeof(*r));
    if (!r) {
        kvc_trace_destroy(*trace);
        *trace = NULL;
        return kvc_fail_nomem(err);
    }
    *r = im->report;
    r->n_shown = 0;
    (*trace)->report = r;
    return KVC_OK;
}

static void clear(struct kvc_import *im)
{
    kvc_forest_destroy(im->forest);
    kvc_breaks_destroy(im->breaks);
    kvc_alignment_destroy(im);
    kvc_recent_clear(&im->sessions);
    kvc_intern_clear(&im->tenants);
    kvc_intern_clear(&im->models);
    kvc_intern_clear(&im->places);
    kvc_sharing_clear(&im->sharing);
    kvc_text_destroy(im);
    if (im->kept && im->clear_kept)
        im->clear_kept(im->kept);
    kvc_free(im->kept);
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
    struct kvc_import_options own = { 0 };
    struct kvc_import im = { .options = &own, .paths = paths, .n_paths = n, .place = KVC_ID_NONE };
    enum kvc_status status = KVC_OK;
    if (options)
        kvc_sized_copy(&own, sizeof(own), options);
    kvc_block_fit_init(&im.fit);
    im.total = stored_bytes(paths, n);
    status = kvc_arrivals_init(&im.arrivals, im.options, err);
    if (status == KVC_OK && im.options->where)
        status = kvc_where_check(im.options->where, err);
    if (status == KVC_OK)
        status = kvc_text_check(im.options, err);
    if (status == KVC_OK && im.options->anonymize)
        status = kvc_salt_read(im.options->salt_file, im.name_key, err);
    if (status == KVC_OK)
        status = kvc_import_prepare(&im, err);
    for (; im.file < n && status == KVC_OK; im.file++) {
        struct kvc_stream *stream = im.file == 0 ? first : NULL;
        if (!stream)
            status = kvc_stream_open(&stream, paths[im.file], err);
        if (status != KVC_OK)
            break;
        status = kvc_stream_is_tar(stream) && !kvc_import_takes_archive(&im, stream)
                     ? kvc_import_archive(&im, stream, err)
                     : kvc_import_stream(&im, stream, err);
        if (stream != first)
            kvc_stream_close(stream);
    }
    if (status == KVC_OK) {
        im.file = n - 1;
        if (im.format->end)
            status = im.format->end(&im, err);
    }
    struct kvc_trace *trace = NULL;
    if (status == KVC_OK)
        status = finish(&im, &trace, err);
    if (status == KVC_OK)
        status = keep_report(&im, &trace, err);
    if (status == KVC_OK)
        *out = trace;
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
