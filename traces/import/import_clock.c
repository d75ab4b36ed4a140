/* SPDX-License-Identifier: Apache-2.0 */
#include "traces/import/import_clock.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "traces/import/import_state.h"
#include "traces/profile/profile.h"
#include "traces/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define JUMP_NS ((uint64_t)60 * 1000000000) /* further back than rows get out of order */
#define STRETCH_ROWS 3 /* in order on either side of a clock that starts over */

/* ---- numbers ---- */

enum kvc_time_unit kvc_import_time_unit(const struct kvc_import *im, enum kvc_time_unit usual)
{
    enum kvc_time_unit unit = usual;
    if (im->options->time_unit)
        kvc_time_unit_named(im->options->time_unit, &unit);
    return unit;
}

/* The first number of the file settles whether its numbers are moments since 1970. One that would
 * have to be of a unit a million times the usual is rather a time soon after a start: 1.7e9 where
 * microseconds are usual is 28 minutes. */
static void first_number(struct kvc_import *im, const struct kvc_decimal *number,
                         enum kvc_time_unit usual)
{
    struct kvc_clock *c = &im->clock;
    c->numbers = true;
    c->epoch = !im->options->time_unit && kvc_time_epoch_unit(number, &c->unit) &&
               (uint64_t)c->unit <= (uint64_t)usual * 1000;
    if (!c->epoch) {
        c->unit = kvc_import_time_unit(im, usual);
        if (im->options->time_unit)
            kvc_import_note(im, "plain numbers that are times are in %s, as --time-unit says",
                            kvc_time_unit_name(c->unit));
        return;
    }
    if (c->unit != usual)
        kvc_import_note(im, "times are taken as %s since 1970 by their size, where %s logs have "
                        "%s; --time-unit says otherwise", kvc_time_unit_name(c->unit),
                        im->format->name, kvc_time_unit_name(usual));
}

bool kvc_import_time(struct kvc_import *im, const struct kvc_decimal *number,
                     enum kvc_time_unit usual, uint64_t *ns)
{
    struct kvc_clock *c = &im->clock;
    char text[120];
    if (!c->numbers)
        first_number(im, number, usual);
    /* Fields of several units may stand in one file. */
    enum kvc_time_unit unit = c->epoch ? c->unit : kvc_import_time_unit(im, usual);
    if (c->epoch && kvc_time_epoch_unit(number, &unit) && unit != c->unit) {
        snprintf(text, sizeof(text), "times in %s since 1970, by their size, among others in %s",
                 kvc_time_unit_name(unit), kvc_time_unit_name(c->unit));
        kvc_import_tally(im, text);
    }
    return kvc_time_from_number(number, unit, ns);
}

bool kvc_import_time_text(struct kvc_import *im, const char *text, size_t n,
                          enum kvc_time_unit usual, uint64_t *ns)
{
    struct kvc_decimal number;
    if (kvc_time_from_date(text, n, ns))
        return true;
    return n && kvc_decimal_parse(text, n, &number) == n &&
           kvc_import_time(im, &number, usual, ns);
}

void kvc_import_time_rule(const struct kvc_import *im, enum kvc_time_unit usual, char *buf,
                          size_t size)
{
    snprintf(buf, size, "a time is expected: %s from 0 on, below 292 years, or a date and time "
             "from 1970 to 2261", kvc_time_unit_name(kvc_import_time_unit(im, usual)));
}

/* ---- rows without a time ---- */

enum kvc_status kvc_arrivals_init(struct kvc_arrivals *a, const struct kvc_import_options *options,
                                  struct kvc_error *err)
{
    static const char name[] = "poisson:";
    const char *text = options->arrivals;
    char rate[32];
    memset(a, 0, sizeof(*a));
    if (!text)
        return KVC_OK;
    size_t n = strncmp(text, name, strlen(name)) == 0 ? strlen(text + strlen(name)) : 0;
    if (n > 2 && strcmp(text + strlen(text) - 2, "/s") == 0)
        n -= 2;
    if (n && n < sizeof(rate)) {
        memcpy(rate, text + strlen(name), n);
        rate[n] = '\0';
        if (kvc_parse_double(rate, "arrivals", &a->per_s, NULL) == KVC_OK && a->per_s >= 1e-6 &&
            a->per_s <= 1e9) {
            a->given = true;
            a->rng = kvc_rng_stream(options->seed, "import arrivals");
            return KVC_OK;
        }
    }
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "--arrivals",
                       "\"%s\" is no arrival process; poisson:R with R requests per second is, "
                       "poisson:2.5 say", text);
}

bool kvc_arrivals_draw(struct kvc_arrivals *a, uint64_t *time_ns)
{
    if (!a->given || a->stated)
        return false;
    double gap = -log(1.0 - kvc_rng_unit(&a->rng)) / a->per_s * 1e9;
    if (a->drawn && gap < (double)(KVC_LOG_TIME_MAX - a->last_ns) - 1)
        a->last_ns += (uint64_t)(gap + 0.5);
    a->drawn = true;
    *time_ns = a->last_ns;
    return true;
}

/* ---- order ---- */

void kvc_import_clock_start(struct kvc_import *im)
{
    memset(&im->clock, 0, sizeof(im->clock));
}

/* Times of one log lie within some years of each other; a row that does not would stretch the
 * trace to decades of nothing. */
bool kvc_import_clock_allows(const struct kvc_import *im, uint64_t time_ns, struct kvc_error *bad)
{
    const struct kvc_clock *c = &im->clock;
    uint64_t apart = time_ns > c->first_ns ? time_ns - c->first_ns : c->first_ns - time_ns;
    if (!c->any || apart <= KVC_CLOCK_SPAN_NS)
        return true;
    kvc_fail_at(bad, KVC_ERR_INPUT, kvc_import_file(im), im->lines.line, "timestamp",
                "%.0f years %s the file's first request (line %llu); one of the two has a wrong "
                "clock or unit: take it out, or see --time-unit",
                (double)apart / (double)KVC_YEAR_NS, time_ns > c->first_ns ? "after" : "before",
                (unsigned long long)c->first_line);
    return false;
}

void kvc_import_clock_row(struct kvc_import *im, uint64_t time_ns)
{
    struct kvc_clock *c = &im->clock;
    if (!c->any) {
        c->any = true;
        c->first_ns = c->latest_ns = c->stretch_latest_ns = time_ns;
        c->first_line = im->lines.line;
        c->first_row = kvc_forest_rows(im->forest);
    } else if (time_ns < c->last_ns) {
        im->report.inversions++;
        c->inversions++;
        if (im->place == KVC_ID_NONE && c->last_ns - time_ns > JUMP_NS) {
            if (c->n_breaks < KVC_CLOCK_BREAKS)
                c->breaks[c->n_breaks] = (struct kvc_clock_break){
                    .row = kvc_forest_rows(im->forest), .line = im->lines.line,
                    .from_ns = c->stretch_latest_ns, .to_ns = time_ns,
                    .stretch = c->stretch_rows };
            c->n_breaks++;
            c->stretch_rows = 0;
            c->stretch_latest_ns = time_ns;
        }
    }
    c->stretch_rows++;
    if (time_ns > c->stretch_latest_ns)
        c->stretch_latest_ns = time_ns;
    if (time_ns > c->latest_ns)
        c->latest_ns = time_ns;
    c->last_ns = time_ns;
}

/* A clock that counts from a start of its own (not since 1970) starts over when its server does:
 * rows in order, back to near the beginning, rows in order again. Anything less clear is rows out
 * of order. */
static bool starts_over(const struct kvc_clock *c)
{
    if (!c->n_breaks || c->n_breaks > KVC_CLOCK_BREAKS || c->inversions != c->n_breaks ||
        kvc_time_is_epoch(c->first_ns) || c->stretch_rows < STRETCH_ROWS)
        return false;
    for (uint64_t i = 0; i < c->n_breaks; i++) {
        const struct kvc_clock_break *b = &c->breaks[i];
        if (b->stretch < STRETCH_ROWS || b->from_ns <= c->first_ns ||
            b->to_ns > c->first_ns + (b->from_ns - c->first_ns) / 10)
            return false;
    }
    return true;
}

enum kvc_status kvc_import_clock_settle(struct kvc_import *im, struct kvc_error *err)
{
    const struct kvc_clock *c = &im->clock;
    enum kvc_status status = KVC_OK;
    uint64_t shift = 0;
    if (im->place != KVC_ID_NONE || !c->n_breaks)
        return KVC_OK;
    if (!starts_over(c)) {
        kvc_import_tally_rows(im, "more than a minute earlier than the row before; all rows are "
                              "sorted by time", c->n_breaks);
        return KVC_OK;
    }
    if (im->window.streaming)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), c->breaks[0].line, "--window",
                           "the clock starts over here, which --window with --forget learns too "
                           "late; import the stretches apart, or name one of the two");
    for (uint64_t i = 0; i < c->n_breaks && status == KVC_OK; i++) {
        const struct kvc_clock_break *b = &c->breaks[i];
        uint64_t end = i + 1 < c->n_breaks ? c->breaks[i + 1].row : kvc_forest_rows(im->forest);
        shift += b->from_ns - b->to_ns;
        status = kvc_forest_delay(im->forest, b->row, end - b->row, shift, err);
    }
    kvc_import_tally_rows(im, "the clock starts over here; each stretch is put right behind the "
                          "one before", c->n_breaks);
    kvc_import_note(im, "%s: the clock starts over %llu time%s, first in line %llu (from %.1f s "
                    "back to %.1f s); stretches that ran side by side belong in files of their own",
                    kvc_import_file(im), (unsigned long long)c->n_breaks,
                    c->n_breaks == 1 ? "" : "s", (unsigned long long)c->breaks[0].line,
                    (double)c->breaks[0].from_ns * 1e-9, (double)c->breaks[0].to_ns * 1e-9);
    return status;
}

/* ---- the window ---- */

static bool in_window(const struct kvc_import *im, uint64_t at)
{
    uint64_t end = im->options->window_end_ns;
    return at >= im->options->window_begin_ns && (!end || at < end);
}

bool kvc_import_in_window(struct kvc_import *im, uint64_t time_ns)
{
    struct kvc_window *w = &im->window;
    if (!w->streaming)
        return true;
    if (!w->any) {
        w->any = true;
        w->first_ns = w->last_ns = time_ns;
    }
    bool early = time_ns < w->first_ns;
    if (early && w->first_ns - time_ns > w->earlier_ns)
        w->earlier_ns = w->first_ns - time_ns;
    w->early += early;
    w->last_ns = time_ns > w->last_ns ? time_ns : w->last_ns;
    bool in = in_window(im, early ? 0 : time_ns - w->first_ns);
    w->outside += !in;
    return in;
}

/* What was left out, in words; an error when nothing else is there. */
static enum kvc_status tell_window(struct kvc_import *im, uint64_t outside, bool all,
                                   double last_s, struct kvc_error *err)
{
    char from[32], to[32], text[160];
    const char *until = im->options->window_end_ns ? to : "the end";
    kvc_format_ns(im->options->window_begin_ns, from, sizeof(from));
    kvc_format_ns(im->options->window_end_ns, to, sizeof(to));
    if (all)
        return kvc_fail_at(err, KVC_ERR_INPUT, kvc_import_file(im), 0, "--window",
                           "no request arrives from %s to %s after the first; the last comes "
                           "%.1f s after it", from, until, last_s);
    snprintf(text, sizeof(text), "outside the window from %s to %s after the first request, left "
             "out", from, until);
    kvc_import_tally_rows(im, text, outside);
    return KVC_OK;
}

static enum kvc_status tell_streamed(struct kvc_import *im, struct kvc_error *err)
{
    const struct kvc_window *w = &im->window;
    if (w->early)
        kvc_import_note(im, "--window with --forget counts from the first row read; %llu rows "
                        "are earlier, by %.3f s at most, and count as if they came with it",
                        (unsigned long long)w->early, (double)w->earlier_ns * 1e-9);
    return tell_window(im, w->outside, w->outside && !im->report.accepted,
                       (double)(w->last_ns - w->first_ns) * 1e-9, err);
}

enum kvc_status kvc_import_window(struct kvc_import *im, struct kvc_error *err)
{
    uint64_t rows = kvc_forest_rows(im->forest), first = UINT64_MAX, last = 0, *out = NULL;
    size_t n = 0, cap = 0;
    if (im->window.streaming)
        return tell_streamed(im, err);
    if ((!im->options->window_begin_ns && !im->options->window_end_ns) || !rows)
        return KVC_OK;
    const uint64_t *time_ns;
    enum kvc_status status = kvc_forest_times(im->forest, &time_ns, err);
    if (status != KVC_OK)
        return status;
    for (uint64_t r = 0; r < rows; r++) {
        first = time_ns[r] < first ? time_ns[r] : first;
        last = time_ns[r] > last ? time_ns[r] : last;
    }
    for (uint64_t r = 0; r < rows; r++) {
        if (in_window(im, time_ns[r] - first))
            continue;
        if (!kvc_grow((void **)&out, &cap, n + 1, sizeof(*out))) {
            kvc_free(out);
            return kvc_fail_nomem(err);
        }
        out[n++] = r;
    }
    status = tell_window(im, n, n == rows, (double)(last - first) * 1e-9, err);
    if (status == KVC_OK && n)
        status = kvc_forest_remove(&im->forest, out, n, err);
    im->report.accepted -= n;
    kvc_free(out);
    return status;
}

/* ---- arrivals ---- */

static void note_batches(struct kvc_import *im, const struct kvc_trace *t)
{
    uint64_t distinct = 0, period_ns;
    char period[32];
    for (uint64_t r = 0; r < t->n_requests; r++)
        distinct += r == 0 || t->arrival_ns[r] != t->arrival_ns[r - 1];
    period_ns = kvc_trace_batch_period(t, distinct);
    if (!period_ns)
        return;
    kvc_format_ns(period_ns, period, sizeof(period));
    kvc_import_note(im, "requests arrive in batches %s apart, %.1f at once: the log's clock ticks "
                    "so; a replay with --arrivals.spread %s spreads them", period,
                    (double)t->n_requests / (double)distinct, period);
}

/* A recording that begins before its load does. */
static void note_ramp(struct kvc_import *im, const struct kvc_trace *t)
{
    struct kvc_profile *p = kvc_calloc(1, sizeof(*p)); /* NULL: a note less */
    char until[32];
    if (p && t->n_requests && kvc_profile_slow_start(t, p)) {
        kvc_format_ns(t->arrival_ns[t->n_requests - 1] / 10 / 1000000000 * 1000000000, until,
                      sizeof(until));
        kvc_import_note(im, "a slow start: %.3g requests/s in the first tenth of the time, %.3g in "
                        "the second half; --window %s: leaves it out", p->start_per_s,
                        p->steady_per_s, until);
    }
    kvc_free(p);
}

void kvc_import_note_arrivals(struct kvc_import *im, const struct kvc_trace *t)
{
    note_batches(im, t);
    note_ramp(im, t);
}
