/* SPDX-License-Identifier: Apache-2.0
 * Policies without time on replicas behind a router: one cache each, and a load that needs no
 * clock. Of the last 4 x replicas requests, those a replica got are the requests it runs, their
 * prompt tokens its context, and what they missed the work that it has waiting. */
#ifndef KVC_SIM_CEILING_CLUSTER_H
#define KVC_SIM_CEILING_CLUSTER_H

#include "policies/policies.h"
#include "sim/ceiling/ceiling.h"

#define KVC_CLUSTER_WINDOW 4 /* requests per replica */

struct kvc_cluster {
    uint32_t replicas;                   /* 1: no router needed */
    const struct kvc_router *router;
    const uint32_t *session;             /* by request; NULL: none */
    uint64_t seed;
    bool elsewhere;                      /* wanted below */
    uint64_t *request;                   /* or NULL: set to the request in hand before all else */
    /* Or NULL: a request has looked up its path, and touches it next. run: leading blocks that its
     * replica holds; elsewhere: the most that another does. */
    void (*arrived)(void *user, uint64_t request, uint32_t replica, uint64_t run,
                    uint64_t elsewhere);
    /* Or NULL: blocks of a segment leave the cache of some replica for the request in hand. */
    void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired);
    void *user;
};

/* policy: one of kvc_runs_policies(); capacity of each replica. */
enum kvc_status kvc_ceiling_cluster_of(const struct kvc_ceiling_view *view,
                                       const struct kvc_cluster *cluster, const char *policy,
                                       uint64_t capacity_blocks, struct kvc_error *err);
/* The optimum of each replica by itself, for the requests that replica[] says it gets. */
enum kvc_status kvc_ceiling_optimum_of(const struct kvc_ceiling_view *view,
                                       const struct kvc_cluster *cluster, const uint32_t *replica,
                                       uint64_t capacity_blocks, struct kvc_error *err);
/* Content or the optimum of each replica by itself, for the requests it got; runs and
 * replica by request. */
enum kvc_status kvc_ceiling_assigned_of(const struct kvc_ceiling_view *view,
                                        const uint32_t *replica, uint32_t replicas, bool optimum,
                                        uint64_t capacity_blocks, uint32_t *runs,
                                        struct kvc_error *err);

#endif
