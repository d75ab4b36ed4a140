/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling/closeup.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "sim/ceiling/crossing.h"

#include <stdio.h>
#include <string.h>

/* The larger tenants have a column each in who evicted whom; if they don't all fit, the others
 * share the last. */
static enum kvc_status rank_tenants(struct kvc_closeup *c, struct kvc_error *err)
{
    const struct kvc_groups *g = &c->tenants;
    uint32_t order[KVC_EVICTORS], *rank = kvc_malloc(g->n, sizeof(*rank));
    uint64_t *tokens = kvc_malloc(g->n, sizeof(*tokens));
    enum kvc_status status = KVC_OK;
    c->evictor = kvc_malloc(c->trace->n_requests, sizeof(*c->evictor));
    if (!rank || !tokens || !c->evictor) {
        status = kvc_fail_nomem(err);
        goto done;
    }
    c->n_evictors = kvc_groups_largest(g, KVC_EVICTORS, order, rank, tokens);
    for (uint32_t i = 0; i < c->n_evictors; i++)
        kvc_groups_name(g, order[i], c->evictor_name[i], sizeof(c->evictor_name[i]));
    bool all = true;
    for (uint64_t r = 0; r < c->trace->n_requests; r++) {
        c->evictor[r] = rank[g->of[r]];
        all = all && (c->evictor[r] != KVC_ID_NONE || c->trace->input_tokens[r] == 0);
    }
    uint32_t last = c->n_evictors ? c->n_evictors - 1 : 0;
    if (!all)
        snprintf(c->evictor_name[last], sizeof(c->evictor_name[last]), "others");
    for (uint64_t r = 0; r < c->trace->n_requests; r++)
        if (c->evictor[r] > last)
            c->evictor[r] = last;
done:
    kvc_free(tokens);
    kvc_free(rank);
    return status;
}

static enum kvc_status isolate(struct kvc_closeup *c, enum kvc_grouping by, struct kvc_error *err)
{
    struct kvc_groups groups = {0};
    enum kvc_status status = kvc_groups_create(&groups, c->trace, by, err);
    if (status == KVC_OK)
        status = kvc_namespaces_create(&c->spaces, c->trace, groups.of, err);
    c->isolated = status == KVC_OK;
    if (status == KVC_OK)
        status = kvc_crossing_of(&c->crossing, c->trace, &c->spaces, &groups, err);
    kvc_groups_clear(&groups);
    return status;
}

static enum kvc_status check(const struct kvc_closeup_options *o, struct kvc_closeup *c,
                             enum kvc_grouping *by, enum kvc_grouping *spaces,
                             struct kvc_error *err)
{
    enum kvc_status status = o->by ? kvc_grouping_parse(by, o->by, "by", err) : KVC_OK;
    if (status == KVC_OK && o->isolate)
        status = kvc_grouping_parse(spaces, o->isolate, "isolate", err);
    if (status == KVC_OK)
        status = kvc_router_open(&c->router, o->router ? o->router : "round-robin", err);
    if (status == KVC_OK && o->replicas > 4096)
        status = kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, "replicas",
                             "%u replicas; at most 4096 are followed one by one", o->replicas);
    c->replicas = o->replicas ? o->replicas : 1;
    c->grouped = o->by != NULL;
    c->why = o->why;
    c->seed = o->seed;
    c->most_parts = o->most_parts ? o->most_parts : UINT32_MAX;
    return status;
}

enum kvc_status kvc_closeup_create(struct kvc_closeup **out, const struct kvc_trace *trace,
                                   const struct kvc_closeup_options *options,
                                   struct kvc_error *err)
{
    struct kvc_closeup_options o = {0};
    enum kvc_grouping by = KVC_BY_TENANT, spaces = KVC_BY_TENANT;
    kvc_sized_copy(&o, sizeof(o), options);
    struct kvc_closeup *c = kvc_calloc(1, sizeof(*c));
    if (!c)
        return kvc_fail_nomem(err);
    c->trace = trace;
    enum kvc_status status = check(&o, c, &by, &spaces, err);
    if (status != KVC_OK || !trace) {
        kvc_closeup_destroy(c);
        return status;
    }
    if (o.isolate)
        status = isolate(c, spaces, err);
    if (status == KVC_OK)
        status = kvc_ceiling_view(&c->shared, trace, err);
    if (status == KVC_OK)
        status = kvc_ceiling_view(&c->view, kvc_closeup_trace(c), err);
    if (status == KVC_OK && o.by)
        status = kvc_groups_create(&c->groups, trace, by, err);
    if (status == KVC_OK)
        status = kvc_groups_create(&c->tenants, trace, KVC_BY_TENANT, err);
    if (status == KVC_OK)
        status = rank_tenants(c, err);
    if (status == KVC_OK)
        *out = c;
    else
        kvc_closeup_destroy(c);
    return status;
}

void kvc_closeup_destroy(struct kvc_closeup *c)
{
    if (!c)
        return;
    if (c->isolated)
        kvc_namespaces_clear(&c->spaces);
    kvc_groups_clear(&c->groups);
    kvc_groups_clear(&c->tenants);
    kvc_router_close(&c->router);
    kvc_free(c->evictor);
    kvc_free(c);
}

const struct kvc_trace *kvc_closeup_trace(const struct kvc_closeup *c)
{
    return c->isolated ? &c->spaces.trace : c->trace;
}

const struct kvc_crossing *kvc_closeup_crossing(const struct kvc_closeup *c)
{
    return c->isolated ? &c->crossing : NULL;
}
