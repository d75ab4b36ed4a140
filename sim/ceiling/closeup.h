/* SPDX-License-Identifier: Apache-2.0
 * A trace with what a closer look at its ceilings needs; the public functions are in kvcast.h. */
#ifndef KVC_SIM_CLOSEUP_H
#define KVC_SIM_CLOSEUP_H

#include "sim/ceiling/ceiling_cluster.h"
#include "sim/ceiling/ceiling_why.h"
#include "sim/groups.h"

struct kvc_closeup {
    const struct kvc_trace *trace;        /* without namespaces */
    struct kvc_namespaces spaces;
    bool isolated, grouped, why;
    struct kvc_ceiling_view view, shared; /* in namespaces, and without */
    struct kvc_groups groups, tenants;
    struct kvc_crossing crossing;
    uint32_t replicas, most_parts;
    struct kvc_router router;
    uint64_t seed;
    uint32_t *evictor; /* by request: place of its tenant among the larger ones */
    uint32_t n_evictors;
    char evictor_name[KVC_EVICTORS][64];
};

#endif
