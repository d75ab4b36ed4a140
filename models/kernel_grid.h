/* SPDX-License-Identifier: Apache-2.0
 * What a closed form leaves over, as a matrix of shapes and knots: gathered from rows, its gaps
 * filled, and cut down to a mean and a few components. */
#ifndef KVC_MODELS_KERNEL_GRID_H
#define KVC_MODELS_KERNEL_GRID_H

#include "models/kernel_table.h"

/* Fills the knots, sites, mean, components and weights of a table whose constants stand. Rows are
 * sorted by site. */
enum kvc_status kvc_kernel_grid_fit(struct kvc_kernel_table *table,
                                    const struct kvc_kernel_row *rows, size_t n,
                                    const struct kvc_peaks *peaks, struct kvc_error *err);

#endif
