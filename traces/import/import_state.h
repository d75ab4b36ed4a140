/* SPDX-License-Identifier: Apache-2.0
 * An import in progress, for the files that drive it; readers see import.h. */
#ifndef KVC_TRACES_IMPORT_STATE_H
#define KVC_TRACES_IMPORT_STATE_H

#include "traces/import/block_size.h"
#include "traces/forest/forest.h"
#include "traces/import/import.h"
#include "traces/import/import_clock.h"
#include "traces/import/intern.h"
#include "traces/import/recent.h"
#include "traces/import/sharing.h"

struct kvc_suspect { /* a row that contradicts the block size supposed so far */
    uint64_t row, line;
    size_t file;
    size_t ids;
    uint32_t tokens;
    uint32_t place;
    bool repeated;
    char where[48];
};

struct kvc_session_entry {
    uint32_t number;
    uint64_t turn_ns; /* KVC_TIME_NONE before the first */
    uint64_t end_ns;  /* of all turns so far, 0 when the last one doesn't say */
};

struct kvc_document {
    uint32_t place;
    uint64_t first_row;
};

struct kvc_import {
    const struct kvc_import_options *options;
    struct kvc_import_report report;
    const struct kvc_format *format;
    const char *const *paths;
    size_t file, n_paths;
    struct kvc_lines lines;
    uint64_t done_before, total; /* stored bytes of the files before, and of all */

    struct kvc_spill spill; /* what grows with the rows */
    struct kvc_forest *forest;
    struct kvc_recent_clock recent;
    struct kvc_recent sessions; /* of struct kvc_session_entry */
    uint32_t n_sessions;        /* numbers given so far */
    struct kvc_intern tenants, models;
    uint64_t name_key[2]; /* of --anonymize */
    struct kvc_breaks *breaks; /* NULL: no prompt yet */
    struct kvc_alignment *alignment; /* NULL: no row with tokens or text yet */
    struct kvc_sharing sharing;
    struct kvc_intern places; /* names of documents */
    uint32_t place;           /* of the document being read, else KVC_ID_NONE */
    struct kvc_document *documents;
    size_t n_documents, documents_cap;
    char where[48]; /* of the row in its document */
    struct kvc_clock clock;
    struct kvc_window window;
    struct kvc_arrivals arrivals;
    bool key_field_found; /* of --key-field, in some row */

    struct kvc_sample_totals totals; /* of all rows, where a sample is kept */
    uint32_t supposed; /* block size */
    uint32_t stated;   /* by documents; 0 = by none */
    struct kvc_block_fit fit;
    uint64_t rows_with_ids;
    struct kvc_suspect *suspects;
    size_t n_suspects;
    struct kvc_spill_array held_suspects;
    struct kvc_text_import *text; /* of formats with prompts as text; NULL: no such row yet */
    void *kept; /* a reader's own */
    void (*clear_kept)(void *kept);
    struct kvc_import_estimate estimate; /* the latest fresh one */
    double packed_row_bytes;
    uint64_t estimated_bytes;            /* of text, when it was made; 0 = not yet */
    uint64_t *seen; /* scratch of a row's repeated-id check */
    size_t seen_cap;
};

/* Name of a document, else of the file. */
const char *kvc_import_place_name(const struct kvc_import *im, uint32_t place, size_t file);
/* When all is read: gives documents their starts. */
enum kvc_status kvc_import_start_documents(struct kvc_import *im, struct kvc_error *err);

/* ---- import_scale.c: logs larger than memory ---- */

/* Makes the forest; first of all. */
enum kvc_status kvc_import_prepare(struct kvc_import *im, struct kvc_error *err);
/* Room for one more suspect. */
bool kvc_import_suspect_room(struct kvc_import *im);
/* A row that contradicts the block size and could not be taken out later, where prefixes are
 * forgotten. */
bool kvc_import_misfit(const struct kvc_import *im, const struct kvc_log_row *row);
/* Whether rows are gone once read, so that none can be taken out at the end. */
static inline bool kvc_import_streams_by(const struct kvc_import *im)
{
    return im->options->forget_ns || im->options->sample_weight;
}
/* Counts a row of whose prompt n blocks are known; does nothing where all rows are kept. */
void kvc_import_total(struct kvc_import *im, uint32_t input_tokens, uint32_t output_tokens,
                      size_t n);
/* The finished trace is a sample: says of what. */
enum kvc_status kvc_import_tell_sample(struct kvc_import *im, struct kvc_trace *trace,
                                       struct kvc_error *err);
/* After each piece read: a forecast when it is due. */
void kvc_import_forecast(struct kvc_import *im, uint64_t position);
/* What the forest did goes into the report, the trace and notes. */
void kvc_import_tell(struct kvc_import *im, const struct kvc_forest_counts *counts,
                     struct kvc_trace *trace);

/* Reads one open file. */
enum kvc_status kvc_import_stream(struct kvc_import *im, struct kvc_stream *stream,
                                  struct kvc_error *err);
/* Whether a format takes this archive as a whole; else each member is read for itself. */
bool kvc_import_takes_archive(const struct kvc_import *im, const struct kvc_stream *stream);
enum kvc_status kvc_import_archive(struct kvc_import *im, struct kvc_stream *stream,
                                   struct kvc_error *err);
/* Of a row that contradicts a block size; advice ends the sentence. */
enum kvc_status kvc_import_suspect_error(const struct kvc_import *im, const struct kvc_suspect *s,
                                         uint32_t block, const char *advice,
                                         struct kvc_error *err);
/* When all is read: the block size that holds, 0 without ids. */
enum kvc_status kvc_import_settle_block_size(struct kvc_import *im, uint32_t *block,
                                             struct kvc_error *err);

#endif
