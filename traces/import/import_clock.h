/* SPDX-License-Identifier: Apache-2.0
 * The clock of an import: units of its numbers, its order, where it starts over, rows without a
 * time, and the window that is kept. */
#ifndef KVC_TRACES_IMPORT_CLOCK_H
#define KVC_TRACES_IMPORT_CLOCK_H

#include "traces/import/import.h"

#define KVC_CLOCK_BREAKS 64
#define KVC_YEAR_NS ((uint64_t)31556952 * 1000000000) /* 365.2425 days */
#define KVC_CLOCK_SPAN_NS (10 * KVC_YEAR_NS) /* of one file: beyond it a clock or unit is wrong */

struct kvc_clock_break { /* a row that comes much earlier than the row before */
    uint64_t row, line;
    uint64_t from_ns, to_ns; /* latest time before it, and its own */
    uint64_t stretch;        /* rows since the break before */
};

struct kvc_clock { /* all zero at the start of a file or document */
    bool numbers; /* a plain number was seen: */
    bool epoch;   /* it was a moment since 1970, so the others are too, each of its own unit */
    enum kvc_time_unit unit;

    bool any; /* a row was taken: */
    uint64_t first_ns, first_line, last_ns, latest_ns;
    uint64_t stretch_latest_ns, stretch_rows; /* since the last break */
    uint64_t inversions, first_row;
    uint64_t n_breaks; /* those beyond KVC_CLOCK_BREAKS are counted only */
    struct kvc_clock_break breaks[KVC_CLOCK_BREAKS];
};

struct kvc_window { /* where prefixes are forgotten: rows outside are left out as they come */
    bool streaming, any;
    uint64_t first_ns;           /* of the first row read, from which it counts */
    uint64_t early, earlier_ns;  /* rows before that, and by how much at most */
    uint64_t last_ns, outside;
};

struct kvc_arrivals { /* --arrivals: of rows without a time */
    bool given;
    double per_s;
    uint64_t rng, last_ns;
    bool drawn, stated; /* rows that got one; rows that have their own */
};

/* Takes the time of a row, true, when it is no earlier than the row before and fits its file, as
 * most do: then allows and row below have nothing to add. */
static inline bool kvc_clock_in_order(struct kvc_clock *c, uint64_t time_ns)
{
    if (!c->any || time_ns < c->last_ns || time_ns - c->first_ns > KVC_CLOCK_SPAN_NS)
        return false;
    c->stretch_rows++;
    c->stretch_latest_ns = time_ns > c->stretch_latest_ns ? time_ns : c->stretch_latest_ns;
    c->latest_ns = time_ns > c->latest_ns ? time_ns : c->latest_ns;
    c->last_ns = time_ns;
    return true;
}

enum kvc_status kvc_arrivals_init(struct kvc_arrivals *a, const struct kvc_import_options *options,
                                  struct kvc_error *err);
/* The time of a row that has none; false: no process was given, or rows before had times. */
bool kvc_arrivals_draw(struct kvc_arrivals *a, uint64_t *time_ns);

/* A file or document begins. */
void kvc_import_clock_start(struct kvc_import *im);
/* Whether a time may stand in this file; *bad tells why not. */
bool kvc_import_clock_allows(const struct kvc_import *im, uint64_t time_ns,
                             struct kvc_error *bad);
/* The row about to be added has this time. */
void kvc_import_clock_row(struct kvc_import *im, uint64_t time_ns);
/* At the end of a file: puts the stretches of a clock that started over one behind the other. */
enum kvc_status kvc_import_clock_settle(struct kvc_import *im, struct kvc_error *err);
/* Whether the row is taken now; of a window that is not streaming each is. */
bool kvc_import_in_window(struct kvc_import *im, uint64_t time_ns);
/* When all is read: leaves out what is not in the window. */
enum kvc_status kvc_import_window(struct kvc_import *im, struct kvc_error *err);
/* What the arrivals of the finished trace look like and a replay should know. */
void kvc_import_note_arrivals(struct kvc_import *im, const struct kvc_trace *t);

#endif
