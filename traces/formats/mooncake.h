/* SPDX-License-Identifier: Apache-2.0
 * The two readers of a Mooncake row: a fast scanner, which takes only what it is sure of, and a
 * careful one on a full JSON parser, which has the last word. Where the scanner takes a row, both
 * agree on every value. */
#ifndef KVC_TRACES_MOONCAKE_H
#define KVC_TRACES_MOONCAKE_H

#include "base/json.h"
#include "traces/import/import.h"

/* Reads the row at text, which some newline ends with KVC_LINE_PAD bytes of memory from there on;
 * ids has room for half the bytes up to it + 1; of *row, zeroed once before the first of rows, only
 * what a row may state is set, as zeroing costs more than a short row. Returns how long the row is,
 * its newline not included; 0: not sure, ask the careful reader. */
size_t kvc_mooncake_scan(const char *text, uint64_t *ids, struct kvc_log_row *row);

struct kvc_mooncake_doc { /* what the spans of a carefully read row point into */
    struct kvc_jval *root; /* the caller frees it */
    char session[24], model[24], tenant[24], chosen[2][24]; /* digits of names given as numbers */
};

/* im numbers string ids; without it they are refused. A missing timestamp in a row with session
 * and delay is KVC_TIME_NONE. */
enum kvc_status kvc_mooncake_read(const char *text, size_t n, const char *file, uint64_t line,
                                  struct kvc_import *im, struct kvc_id_buffer *ids,
                                  struct kvc_log_row *row, struct kvc_mooncake_doc *doc,
                                  struct kvc_error *err);
/* Whether two readings of one row are the same; *field names the first difference. */
bool kvc_mooncake_same(const struct kvc_log_row *a, const struct kvc_log_row *b,
                       const char **field);

/* Milliseconds that aren't a plain integer, 0 <= ms; false: beyond range. Rounded to the nearest
 * ns, from the double nearest to the text. */
static inline bool kvc_ms_to_ns(double ms, uint64_t *ns)
{
    if (!(ms < (double)(KVC_LOG_TIME_MAX / 1000000)))
        return false;
    uint64_t whole = (uint64_t)ms;
    *ns = whole * 1000000 + (uint64_t)((ms - (double)whole) * 1e6 + 0.5);
    return true;
}

#endif
