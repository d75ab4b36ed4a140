/* SPDX-License-Identifier: Apache-2.0
 * What calibrate and bench print of their fits, and the file they write. */
#ifndef KVC_CLI_PROFILE_REPORT_H
#define KVC_CLI_PROFILE_REPORT_H

#include "models/own_kernels.h"
#include "studies/calibrate/link_fit.h"

#include <stdio.h>

/* bounded: not told, but its value is ruled out by the rows. scale: from what it is kept in to
 * unit. */
void kvc_profile_print_constant(FILE *out, const struct kvc_fit_constant *c, bool bounded,
                                double scale, const char *unit);
void kvc_profile_print_quality(FILE *out, const struct kvc_measured_fit *f);
/* All links of a fit. */
void kvc_profile_print_links(FILE *out, const struct kvc_link_fits *fits);
/* What became of the rows of a GPU's kernels. */
void kvc_profile_print_kernels(FILE *out, const struct kvc_own_kernels *own);
enum kvc_status kvc_profile_put(const char *profile, const char *path, struct kvc_error *err);

#endif
