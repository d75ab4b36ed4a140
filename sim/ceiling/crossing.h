/* SPDX-License-Identifier: Apache-2.0
 * What namespaces have in common: the content that isolation computes again, and that a tenant
 * could time to learn what another one sent. */
#ifndef KVC_SIM_CROSSING_H
#define KVC_SIM_CROSSING_H

#include "sim/groups.h"
#include "sim/namespaces.h"

/* groups: those that the namespaces were made of. */
enum kvc_status kvc_crossing_of(struct kvc_crossing *out, const struct kvc_trace *trace,
                                const struct kvc_namespaces *spaces,
                                const struct kvc_groups *groups, struct kvc_error *err);

#endif
