/* SPDX-License-Identifier: Apache-2.0
 * The fast reader of a row of Azure's traces, for its test: it proves that a row is plain and
 * right, and leaves all others to the careful one. */
#ifndef KVC_TRACES_AZURE_H
#define KVC_TRACES_AZURE_H

#include "traces/parse/csv_rows.h"

struct kvc_azure_row {
    uint64_t time_ns; /* since 1970 */
    uint32_t input_tokens, output_tokens, images;
};

struct kvc_azure_day { /* of the last row, as the next is mostly of the same; all zero at first */
    char text[11];
    uint64_t ns;
};

#define KVC_AZURE_ROW 128 /* bytes from text on that may be read, whatever they hold */

/* Bytes of the row that text begins with, without its newline or carriage return; 0: not sure. */
size_t kvc_azure_scan(struct kvc_azure_day *day, bool images, const char *text,
                      struct kvc_azure_row *row);

#endif
