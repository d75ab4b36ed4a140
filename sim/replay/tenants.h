/* SPDX-License-Identifier: Apache-2.0
 * What a scenario's rules for tenants come to on a trace: classes, limits and times to live of each
 * tier, priorities, namespaces. docs/tenants.md states what they do. */
#ifndef KVC_SIM_TENANTS_H
#define KVC_SIM_TENANTS_H

#include "sim/replay/meter.h"
#include "sim/replay/pool.h"

struct kvc_tenants {
    const struct kvc_trace *trace;
    uint32_t n;           /* those of the trace; requests that name none are one more */
    bool unnamed;         /* it is the last one */
    bool metered, expire; /* whether meter is kept; whether any pool has a TTL or rounds */
    struct kvc_meter meter;
    uint32_t *priority;   /* by tenant; NULL: all the same */
    uint32_t n_classes, *class_of;
    struct kvc_pool_rules rules[KVC_LEVELS]; /* n_classes 0: none at that level */
    struct kvc_pool_limits *limits[KVC_LEVELS];
    struct kvc_pool_ttl *ttls[KVC_LEVELS];
    uint32_t *ttl_of[KVC_LEVELS];
    uint64_t reserved_pages; /* of a replica's HBM, over all classes */
};

struct kvc_level { /* of which limits are a share */
    bool present;
    uint64_t pages, page_bytes; /* of an instance */
};

/* Rules must name tenants of the trace. now is where the run's time is kept. */
enum kvc_status kvc_tenants_create(struct kvc_tenants *out, const struct kvc_trace *trace,
                                   const struct kvc_scenario *sc,
                                   const struct kvc_level levels[KVC_LEVELS], const uint64_t *now,
                                   struct kvc_error *err);
void kvc_tenants_clear(struct kvc_tenants *t);

static inline uint32_t kvc_tenant_of(const struct kvc_tenants *t, uint64_t request)
{
    uint32_t tenant = t->trace->tenant ? t->trace->tenant[request] : 0;
    return tenant == KVC_ID_NONE ? t->n - 1 : tenant;
}

/* Pages of a replica's HBM that others than the tenant have reserved. */
uint64_t kvc_tenants_reserved(const struct kvc_tenants *t, uint32_t tenant);
/* The name of a tenant, "(none)" for requests that name none, "default" where a trace has none. */
const char *kvc_tenant_name(const struct kvc_tenants *t, uint32_t tenant);
/* A pool of that level takes on the rules there and the meter. */
bool kvc_tenants_watch(struct kvc_tenants *t, uint32_t level, struct kvc_pool *pool,
                       uint64_t page_bytes, uint64_t block_bytes);

/* By request, the namespace that its tenant's salt or allow-list gives it, 0 being that of all;
 * NULL when there is only one. isolate: each tenant its own. The caller frees. */
enum kvc_status kvc_tenants_spaces(uint32_t **out, const struct kvc_trace *trace,
                                   const struct kvc_scenario *sc, bool isolate,
                                   struct kvc_error *err);

/* Which tenant of the trace that is, KVC_ID_NONE: none; and the error that says so, with those that
 * there are. */
uint32_t kvc_tenants_find(const struct kvc_trace *trace, const char *name);
enum kvc_status kvc_tenants_missing(const struct kvc_trace *trace, const char *field,
                                    const char *name, struct kvc_error *err);

/* The trace's column of states with a tenant's requests as failed ones. The caller frees. */
enum kvc_status kvc_tenants_without(uint8_t **out, const struct kvc_trace *trace, const char *name,
                                    struct kvc_error *err);

#endif
