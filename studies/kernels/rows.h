/* SPDX-License-Identifier: Apache-2.0
 * Measured kernel rows from CSV files (plain, .zst or .gz), with the system, family and backend
 * they belong to. */
#ifndef KVC_STUDIES_KERNEL_ROWS_H
#define KVC_STUDIES_KERNEL_ROWS_H

#include "models/kernel_family.h"

#define KVC_KERNEL_LABEL 64

struct kvc_kernel_label { /* from columns of these names, else from the file's name
                             system__family__backend__version.csv, else from device, op_name and
                             framework */
    char system[KVC_KERNEL_LABEL], family[KVC_KERNEL_LABEL], backend[KVC_KERNEL_LABEL],
        version[KVC_KERNEL_LABEL];
};

/* One row; row is NULL where a number is missing or wrong (line tells where). A status other than
 * KVC_OK ends the reading. */
typedef enum kvc_status (*kvc_kernel_row_fn)(void *user, const struct kvc_kernel_label *label,
                                             const struct kvc_kernel_family *family,
                                             const struct kvc_kernel_row *row, uint64_t line,
                                             struct kvc_error *err);
enum kvc_status kvc_kernel_rows(const char *path, kvc_kernel_row_fn fn, void *user,
                                struct kvc_error *err);

#endif
