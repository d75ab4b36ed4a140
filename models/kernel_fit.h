/* SPDX-License-Identifier: Apache-2.0
 * Fits kernel tables to measured rows. */
#ifndef KVC_MODELS_KERNEL_FIT_H
#define KVC_MODELS_KERNEL_FIT_H

#include "models/kernel_table.h"

struct kvc_kernel_tables { /* all zero = empty */
    struct kvc_kernel_table *table;
    size_t n, cap;
};
void kvc_kernel_tables_clear(struct kvc_kernel_tables *tables);

/* Appends one table per key of the rows, which are sorted in place; keys of fewer than eight rows
 * are left out. Each is fitted three times, to all rows and to three quarters of the rows and of
 * the shapes, so that it can say how well it predicts what it has not seen. */
enum kvc_status kvc_kernel_fit(struct kvc_kernel_tables *out,
                               const struct kvc_kernel_family *family,
                               struct kvc_kernel_row *rows, size_t n,
                               const struct kvc_peaks *peaks, const char *source,
                               struct kvc_error *err);

/* Errors of predictions: add one by one, then sum up. */
struct kvc_kernel_errors { /* all zero = empty */
    double *error; /* signed, relative */
    size_t n, cap;
};
bool kvc_kernel_errors_add(struct kvc_kernel_errors *e, double predicted, double measured);
struct kvc_kernel_error kvc_kernel_errors_sum(struct kvc_kernel_errors *e); /* sorts them */

#endif
