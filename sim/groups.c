/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/groups.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"tenant", "session", "model", "prefix", NULL};

enum kvc_status kvc_grouping_parse(enum kvc_grouping *out, const char *name, const char *option,
                                   struct kvc_error *err)
{
    for (unsigned i = 0; names[i]; i++)
        if (kvc_name_equal(name, names[i])) {
            *out = (enum kvc_grouping)i;
            return KVC_OK;
        }
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, option,
                       "requests can't be grouped by \"%.64s\"; known are tenant, session, model "
                       "and prefix", name);
}

/* ---- families of prompts ---- */

/* By segment: how many requests pass; returns how many have ids. */
static uint64_t count_passing(const struct kvc_trace *t, uint64_t *passing)
{
    uint64_t all = 0;
    for (uint64_t r = 0; r < t->n_requests; r++)
        if (t->prompt_seg[r] != KVC_SEG_NONE) {
            passing[t->prompt_seg[r]]++;
            all++;
        }
    for (uint32_t s = t->n_segments; s-- > 0;)
        if (t->seg_parent[s] != KVC_SEG_NONE)
            passing[t->seg_parent[s]] += passing[s];
    return all;
}

/* family[s]: the group of prompts that end at s. The first group are those of the trunk, which
 * (nearly) all pass; there is no group without a request. */
static uint32_t find_families(const struct kvc_trace *t, const uint64_t *passing, uint64_t all,
                              uint32_t *family, uint32_t *seg)
{
    uint32_t n = 1;
    seg[0] = KVC_SEG_NONE;
    for (uint32_t s = 0; s < t->n_segments; s++) {
        uint32_t up = t->seg_parent[s];
        if (passing[s] >= all - all / 10)
            family[s] = 0;
        else if (up != KVC_SEG_NONE && family[up] != 0)
            family[s] = family[up];
        else {
            seg[n] = s;
            family[s] = n++;
        }
    }
    return n;
}

static enum kvc_status by_prefix(struct kvc_groups *g, struct kvc_error *err)
{
    const struct kvc_trace *t = g->trace;
    enum kvc_status status = KVC_OK;
    uint64_t *passing = kvc_calloc(t->n_segments, sizeof(*passing));
    uint32_t *family = kvc_malloc(t->n_segments, sizeof(*family));
    g->seg = kvc_malloc((size_t)t->n_segments + 2, sizeof(*g->seg));
    if (passing && family && g->seg) {
        uint64_t all = count_passing(t, passing);
        g->n = find_families(t, passing, all, family, g->seg);
        for (uint64_t r = 0; r < t->n_requests; r++) {
            uint32_t s = t->prompt_seg[r];
            g->of[r] = s == KVC_SEG_NONE ? g->n : family[s];
        }
        g->seg[g->n++] = KVC_SEG_NONE; /* no ids */
    } else {
        status = kvc_fail_nomem(err);
    }
    kvc_free(family);
    kvc_free(passing);
    return status;
}

/* ---- columns ---- */

static const uint32_t *column(const struct kvc_groups *g, uint32_t *n)
{
    const struct kvc_trace *t = g->trace;
    *n = g->by == KVC_BY_TENANT ? t->n_tenants : g->by == KVC_BY_SESSION ? t->n_sessions
                                                                         : t->n_models;
    return g->by == KVC_BY_TENANT ? t->tenant : g->by == KVC_BY_SESSION ? t->session : t->model;
}

static void by_column(struct kvc_groups *g)
{
    uint32_t n;
    const uint32_t *of = column(g, &n);
    for (uint64_t r = 0; r < g->trace->n_requests; r++)
        g->of[r] = of && of[r] < n ? of[r] : n;
    g->n = n + 1;
}

enum kvc_status kvc_groups_create(struct kvc_groups *out, const struct kvc_trace *trace,
                                  enum kvc_grouping by, struct kvc_error *err)
{
    struct kvc_groups g = {.by = by, .trace = trace};
    enum kvc_status status = KVC_OK;
    g.of = kvc_malloc(trace->n_requests, sizeof(*g.of));
    if (!g.of)
        return kvc_fail_nomem(err);
    if (by == KVC_BY_PREFIX)
        status = by_prefix(&g, err);
    else
        by_column(&g);
    if (status)
        kvc_groups_clear(&g);
    else
        *out = g;
    return status;
}

uint32_t kvc_groups_largest(const struct kvc_groups *g, uint32_t most, uint32_t *order,
                            uint32_t *rank, uint64_t *tokens)
{
    uint32_t n = 0;
    memset(tokens, 0, g->n * sizeof(*tokens));
    memset(rank, 0xff, g->n * sizeof(*rank));
    for (uint64_t r = 0; r < g->trace->n_requests; r++)
        tokens[g->of[r]] += g->trace->input_tokens[r];
    while (n < most) {
        uint32_t best = KVC_ID_NONE;
        for (uint32_t i = 0; i < g->n; i++)
            if (rank[i] == KVC_ID_NONE && tokens[i] &&
                (best == KVC_ID_NONE || tokens[i] > tokens[best]))
                best = i;
        if (best == KVC_ID_NONE)
            break;
        rank[best] = n;
        order[n++] = best;
    }
    return n;
}

void kvc_groups_clear(struct kvc_groups *g)
{
    kvc_free(g->of);
    kvc_free(g->seg);
    memset(g, 0, sizeof(*g));
}

static void name_family(const struct kvc_groups *g, uint32_t group, char *out, size_t size)
{
    uint32_t s = g->seg[group];
    const struct kvc_trace *t = g->trace;
    if (group + 1 == g->n)
        snprintf(out, size, "no ids");
    else if (s == KVC_SEG_NONE)
        snprintf(out, size, "no more than all share");
    else
        snprintf(out, size, "prefix %u (%u blocks)", group, t->seg_depth[s] + t->seg_len[s]);
}

void kvc_groups_name(const struct kvc_groups *g, uint32_t group, char *out, size_t size)
{
    if (g->by == KVC_BY_PREFIX)
        name_family(g, group, out, size);
    else if (group + 1 == g->n)
        snprintf(out, size, "none stated");
    else if (g->by == KVC_BY_SESSION)
        snprintf(out, size, "session %u", group);
    else
        snprintf(out, size, "%s", g->by == KVC_BY_TENANT ? g->trace->tenant_names[group]
                                                         : g->trace->model_names[group]);
}
