/* SPDX-License-Identifier: Apache-2.0
 * How the measured shapes of a kernel table share in a prediction at another shape. */
#ifndef KVC_MODELS_KERNEL_BLEND_H
#define KVC_MODELS_KERNEL_BLEND_H

#include "models/kernel_table.h"

/* Where a shape lies: its coordinates and what the family derives from them. */
void kvc_kernel_place(const struct kvc_kernel_family *family, const double *site, double *place);

/* The expected squared difference of the logarithm between two places. */
double kvc_kernel_place_distance(const struct kvc_kernel_table *table, const double *a,
                                 const double *b);

#endif
