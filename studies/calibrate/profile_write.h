/* SPDX-License-Identifier: Apache-2.0
 * A profile of measured figures as JSON, schema kvcast.profile.v1 (docs/calibrate.md): what was
 * fitted, each figure with its source, range and residuals, and the measurements themselves. */
#ifndef KVC_STUDIES_PROFILE_WRITE_H
#define KVC_STUDIES_PROFILE_WRITE_H

#include "studies/calibrate/host_fit.h"
#include "studies/calibrate/link_fit.h"

struct kvc_profile_parts {
    const char *gpu;  /* beside which it was measured; NULL or "": not stated */
    const struct kvc_readings *readings;
    const struct kvc_link_fits *links;
    const struct kvc_own_kernels *kernels; /* NULL: none; readings has their rows and device */
    double queue_depth;                  /* of storage links, as the user says; 0: not stated */
    const struct kvc_host_fit *host;     /* NULL: none */
    const char *machine;                 /* JSON: what was measured on; NULL: not stated */
    const char *more; /* JSON list: measurements that are no link's; NULL: none */
};

/* *out is the caller's. */
enum kvc_status kvc_profile_text(char **out, const struct kvc_profile_parts *parts,
                                 struct kvc_error *err);
/* "measurements": one object a row; key NULL inside an array. */
void kvc_profile_put_reading(struct kvc_json *j, const struct kvc_reading *row, const char *link,
                             double predicted);

#endif
