/* SPDX-License-Identifier: Apache-2.0
 * BurstGPT (HPMLL/BurstGPT): Timestamp (s), Model, Request tokens, Response tokens, Total tokens,
 * Log Type, and in later files Session ID and Elapsed time. Lengths and arrivals, no prompts. */
#include "base/error.h"
#include "traces/import/recent.h"
#include "traces/parse/csv_rows.h"
#include "traces/trace.h"

struct reader {
    struct kvc_csv csv;
    size_t time, session, elapsed, model, input, output, tenant; /* columns */
    struct kvc_recent sessions; /* of uint64_t: tokens of the last turn, prompt and answer */
    uint64_t without_session, carried, shrunk;
    uint64_t timed_rows, timed_tokens; /* answers whose duration is stated .. */
    double elapsed_s;                  /* .. and the sum of it */
};

static enum kvc_status find_columns(struct reader *r, const struct kvc_import *im,
                                    struct kvc_error *err)
{
    const struct kvc_csv *c = &r->csv;
    enum kvc_status status = kvc_csv_column(c, "Timestamp", true, &r->time, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "Request tokens", true, &r->input, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "Response tokens", true, &r->output, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "Model", false, &r->model, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "Session ID", false, &r->session, err);
    if (status == KVC_OK)
        status = kvc_csv_column(c, "Elapsed time", false, &r->elapsed, err);
    if (status == KVC_OK)
        status = kvc_csv_tenant(c, im, NULL, &r->tenant, err);
    return status;
}

/* Whether a turn can hold all of the turn before it: its prompt and its answer. */
static enum kvc_status count_turn(struct reader *r, const struct kvc_log_row *row,
                                  struct kvc_error *err)
{
    bool fresh;
    if (!row->session.text) {
        r->without_session++;
        return KVC_OK;
    }
    uint64_t *context = kvc_recent_get(&r->sessions, row->session.text, row->session.n, &fresh);
    if (!context)
        return kvc_fail_nomem(err);
    if (*context)
        *(row->input_tokens < *context ? &r->shrunk : &r->carried) += 1;
    *context = (uint64_t)row->input_tokens + row->output_tokens;
    return KVC_OK;
}

static enum kvc_status read_row(struct reader *r, struct kvc_import *im, struct kvc_log_row *row,
                                double *elapsed_s, struct kvc_error *err)
{
    const struct kvc_csv *c = &r->csv;
    bool given = false;
    *elapsed_s = 0;
    enum kvc_status status = kvc_csv_time(c, im, r->time, KVC_UNIT_S, &row->time_ns, err);
    if (status == KVC_OK)
        status = kvc_csv_tokens(c, r->input, 0, &row->input_tokens, err);
    if (status == KVC_OK)
        status = kvc_csv_tokens(c, r->output, 0, &row->output_tokens, err);
    if (status == KVC_OK && r->elapsed != KVC_CSV_NONE)
        status = kvc_csv_double(c, r->elapsed, &given, elapsed_s, err);
    if (status == KVC_OK && *elapsed_s < 0) {
        kvc_import_tally(im, "an Elapsed time below 0: the two clocks differ; it is not used");
        *elapsed_s = 0;
    }
    row->session = kvc_csv_absent(c, r->session) ? (struct kvc_span){ 0 }
                                                 : kvc_csv_get(c, r->session);
    row->model = kvc_csv_get(c, r->model);
    row->tenant = kvc_csv_get(c, r->tenant);
    row->status = row->output_tokens ? KVC_ROW_OK : KVC_ROW_FAILED;
    return status;
}

static enum kvc_status one_row(struct reader *r, struct kvc_import *im, struct kvc_error *err)
{
    struct kvc_log_row row = { .think_ns = KVC_TIME_NONE };
    struct kvc_error bad;
    double elapsed_s;
    if (read_row(r, im, &row, &elapsed_s, &bad) != KVC_OK)
        return kvc_import_bad(im, &bad, err);
    if (!row.input_tokens && !row.output_tokens) {
        kvc_import_failed_unseen(im);
        return KVC_OK;
    }
    if (!row.input_tokens) {
        kvc_csv_wrong(&r->csv, r->input, "there are response tokens, so there must be some here",
                      &bad);
        return kvc_import_bad(im, &bad, err);
    }
    if (elapsed_s > 0 && elapsed_s < 1e9)
        row.end_ns = row.time_ns + (uint64_t)(elapsed_s * 1e9);
    if (elapsed_s > 0 && row.output_tokens) {
        r->timed_rows++;
        r->timed_tokens += row.output_tokens;
        r->elapsed_s += elapsed_s;
    }
    enum kvc_status status = count_turn(r, &row, err);
    return status == KVC_OK ? kvc_import_row(im, &row, false, err) : status;
}

static void say_what_is_missing(const struct reader *r, struct kvc_import *im)
{
    kvc_import_note(im, "burstgpt logs hold no prompt and no block id: reuse is unknown; rows with "
                    "no response token count as failed, with their prompt");
    if (r->session != KVC_CSV_NONE) {
        kvc_import_tally_rows(im, "no session ID, as in the API log", r->without_session);
        kvc_import_tally_rows(im, "turns too short to hold the turn before and its answer: nothing "
                              "was carried over", r->shrunk);
        kvc_import_tally_rows(im, "turns long enough to hold the turn before and its answer",
                              r->carried);
    }
    if (r->timed_rows)
        kvc_import_note(im, "Elapsed time of %llu answers: %.2f s on average, %.1f tokens a second "
                        "(whole requests; the first token's time is not in the log)",
                        (unsigned long long)r->timed_rows, r->elapsed_s / (double)r->timed_rows,
                        (double)r->timed_tokens / r->elapsed_s);
}

static enum kvc_status read_log(struct kvc_import *im, struct kvc_error *err)
{
    struct reader r = { 0 };
    bool more = true;
    kvc_import_recent(im, &r.sessions, sizeof(uint64_t));
    enum kvc_status status = kvc_csv_open(&r.csv, im, err);
    if (status == KVC_OK)
        status = find_columns(&r, im, err);
    while (status == KVC_OK && (status = kvc_csv_next(&r.csv, im, &more, err)) == KVC_OK && more)
        status = one_row(&r, im, err);
    if (status == KVC_OK)
        say_what_is_missing(&r, im);
    kvc_csv_clear(&r.csv);
    kvc_recent_clear(&r.sessions);
    return status;
}

static bool sniff(const char *head, size_t n)
{
    static const char *const columns[] = { "Timestamp", "Model", "Request tokens",
                                           "Response tokens", NULL };
    return kvc_csv_sniff(head, n, columns);
}

const struct kvc_format kvc_format_burstgpt = {
    .name = "burstgpt",
    .summary = "BurstGPT (CSV): Timestamp (s), Session ID, Model, Request and Response tokens",
    .sniff = sniff,
    .read = read_log,
};
