/* SPDX-License-Identifier: Apache-2.0
 * Vidur's processed traces (microsoft/vidur): num_prefill_tokens, num_decode_tokens and, mostly,
 * arrived_at in seconds. Files without it need an arrival process. */
#include "base/error.h"
#include "traces/parse/csv_rows.h"
#include "traces/trace.h"

struct reader {
    struct kvc_csv csv;
    size_t time, input, output; /* columns */
};

static enum kvc_status find_columns(struct reader *r, const struct kvc_import *im,
                                    struct kvc_error *err)
{
    const struct kvc_csv *c = &r->csv;
    enum kvc_status status = kvc_csv_column(c, "num_prefill_tokens", true, &r->input, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "num_decode_tokens", true, &r->output, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "arrived_at", false, &r->time, err);
    if (status == KVC_OK && r->time == KVC_CSV_NONE && !kvc_import_options_of(im)->arrivals)
        return kvc_fail_at(err, KVC_ERR_INPUT, c->file, c->line, "arrived_at",
                           "not in the header: this file has lengths only, no arrivals; "
                           "--arrivals poisson:R makes R requests per second arrive at random "
                           "(--seed N draws others)");
    return status;
}

static enum kvc_status read_row(const struct reader *r, struct kvc_import *im,
                                struct kvc_log_row *row, struct kvc_error *err)
{
    const struct kvc_csv *c = &r->csv;
    enum kvc_status status = KVC_OK;
    if (r->time != KVC_CSV_NONE)
        status = kvc_csv_time(c, im, r->time, KVC_UNIT_S, &row->time_ns, err);
    if (status == KVC_OK)
        status = kvc_csv_tokens(c, r->input, 1, &row->input_tokens, err);
    if (status == KVC_OK)
        status = kvc_csv_tokens(c, r->output, 0, &row->output_tokens, err);
    return status;
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { 0 };
    struct kvc_error bad;
    bool more = true;
    enum kvc_status status = kvc_csv_open(&r.csv, im, err);
    if (status == KVC_OK)
        status = find_columns(&r, im, err);
    while (status == KVC_OK && (status = kvc_csv_next(&r.csv, im, &more, err)) == KVC_OK && more) {
        struct kvc_log_row row = { .time_ns = KVC_TIME_NONE, .think_ns = KVC_TIME_NONE };
        if (read_row(&r, im, &row, &bad) != KVC_OK)
            status = kvc_import_bad(im, &bad, err);
        else
            status = kvc_import_row(im, &row, false, err);
    }
    if (status == KVC_OK)
        kvc_import_note(im, "vidur logs hold no session, no prompt and no block id: reuse is "
                        "unknown");
    kvc_csv_clear(&r.csv);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    static const char *const columns[] = { "num_prefill_tokens", "num_decode_tokens", NULL };
    return kvc_csv_sniff(head, n, columns);
}

const struct kvc_format kvc_format_vidur = {
    .name = "vidur",
    .summary = "Vidur (CSV): arrived_at (s), num_prefill_tokens, num_decode_tokens",
    .sniff = sniff,
    .read = read_log,
};
