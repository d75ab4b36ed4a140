/* SPDX-License-Identifier: Apache-2.0
 * JSON values of a log one after the other: one a line, elements of one list, or documents that
 * run over many lines. Which it is, the beginning tells. */
#ifndef KVC_TRACES_JSON_ROWS_H
#define KVC_TRACES_JSON_ROWS_H

#include "traces/import/import.h"

enum kvc_json_layout { KVC_JSON_LINES, KVC_JSON_LIST, KVC_JSON_DOCUMENTS };

struct kvc_json_rows {
    struct kvc_import *im;
    enum kvc_json_layout layout;
    char *buf; /* of a list or documents: bytes not handed on yet are [begin, end) */
    size_t cap, begin, end;
    uint64_t line, index; /* of the byte at begin; of the next element */
    bool opened, eof, done;
};

/* kvc_sniff_row for any layout; of a list or document its first value is looked at. */
bool kvc_json_sniff(const char *head, size_t n, const char *const *keys);
void kvc_json_rows_open(struct kvc_json_rows *r, struct kvc_import *im);
/* The next value, counted as a row; *text NULL at the end. KVC_LINE_PAD bytes behind it may be
 * read. What is not JSON in form is counted as a bad row; within a list that ends the reading. */
enum kvc_status kvc_json_rows_next(struct kvc_json_rows *r, const char **text, size_t *n,
                                   struct kvc_error *err);
void kvc_json_rows_clear(struct kvc_json_rows *r);

#endif
