/* SPDX-License-Identifier: Apache-2.0
 * What an import reported, as one column of numbers and one of texts, so that a .kvt still tells
 * what its log said: rows, money, engines. Rows that could not be used are counted but not kept:
 * their messages name files and may quote the log. */
#ifndef KVC_TRACES_REPORT_COLUMN_H
#define KVC_TRACES_REPORT_COLUMN_H

#include <kvcast/kvcast.h>

struct kvc_packed_report {
    uint64_t *numbers; /* how many of each that follow are there, then they themselves */
    char *texts;       /* each ending in NUL: notes, tallies, names of engines */
    size_t n_numbers, n_texts;
};

/* False: no memory. The arrays are for kvc_free. */
bool kvc_report_pack(const struct kvc_import_report *report, struct kvc_packed_report *out);
/* False: this can't be a report. What later versions may have added is passed over. */
bool kvc_report_unpack(const struct kvc_packed_report *packed, struct kvc_import_report *out);

#endif
