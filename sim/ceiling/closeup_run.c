/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling/closeup.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One pass over the requests under a policy. */
struct looking {
    const struct kvc_closeup *c;
    const struct kvc_ceiling_view *view;
    struct kvc_closeup_result *result; /* NULL: runs and replicas are all that is wanted */
    struct kvc_why why;
    uint32_t *runs, *replica; /* by request */
    uint64_t bucket_ns;
};

/* ---- what a request adds to the figures ---- */

static void add_evicted(void *user, uint32_t who, uint64_t tokens)
{
    const struct looking *l = user;
    struct kvc_closeup_result *res = l->result;
    uint32_t whose = l->c->evictor[l->why.request];
    res->evicted_tokens[whose][who == KVC_MARK_NONE ? res->n_evictors : who] += tokens;
}

static void add(struct kvc_part *part, const struct looking *l, uint64_t request,
                const struct kvc_why_missed *missed)
{
    kvc_hits_expect(l->view, request, &part->hits);
    kvc_hits_count(l->view, request, l->runs[request], &part->hits);
    for (unsigned i = 0; i < KVC_MISS_CAUSES; i++)
        part->missed_tokens[i] += missed->tokens[i];
}

static void arrived(void *user, uint64_t r, uint32_t replica, uint64_t run, uint64_t elsewhere)
{
    struct looking *l = user;
    struct kvc_closeup_result *res = l->result;
    struct kvc_why_missed missed = {{0}};
    l->runs[r] = (uint32_t)run;
    l->replica[r] = replica;
    if (!res)
        return;
    if (l->c->why)
        kvc_why_request(&l->why, r, run, elsewhere, &missed,
                        res->has_evictors ? add_evicted : NULL, l);
    add(&res->all, l, r, &missed);
    add(&res->tenants[l->c->tenants.of[r]], l, r, &missed);
    if (res->n_groups)
        add(&res->groups[l->c->groups.of[r]], l, r, &missed);
    if (res->n_replicas)
        add(&res->replicas[replica], l, r, &missed);
    if (res->n_buckets)
        add(&res->buckets[l->c->trace->arrival_ns[r] / l->bucket_ns], l, r, &missed);
}

static void left(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired)
{
    struct looking *l = user;
    kvc_why_left(&l->why, seg, lo, hi, expired);
}

/* ---- runs ---- */

static struct kvc_cluster cluster_of(struct looking *l, uint32_t replicas)
{
    bool why = l->result && l->c->why;
    return (struct kvc_cluster){
        .replicas = replicas, .router = &l->c->router, .session = l->c->trace->session,
        .seed = l->c->seed, .elsewhere = why && replicas > 1, .arrived = arrived,
        .left = why ? left : NULL, .request = &l->why.request, .user = l,
    };
}

static enum kvc_status by_runs(struct looking *l, const char *policy, uint64_t capacity,
                               uint32_t replicas, struct kvc_error *err)
{
    const struct kvc_cluster cluster = cluster_of(l, replicas);
    return kvc_ceiling_cluster_of(l->view, &cluster, policy, capacity, err);
}

static enum kvc_status with_endless_room(struct looking *l, struct kvc_error *err)
{
    struct kvc_hits hits;
    enum kvc_status status = kvc_ceiling_content_of(l->view, &hits, l->runs, err);
    for (uint64_t r = 0; status == KVC_OK && r < l->view->n_requests; r++) {
        l->why.request = r;
        arrived(l, r, 0, l->runs[r], 0);
    }
    return status;
}

/* The optimum goes where requests went under lru. */
static enum kvc_status by_knowing(struct looking *l, uint64_t capacity, uint32_t replicas,
                                  struct kvc_error *err)
{
    struct kvc_closeup_result *res = l->result;
    enum kvc_status status = KVC_OK;
    l->result = NULL;
    if (replicas > 1)
        status = by_runs(l, "lru", capacity, replicas, err);
    else
        memset(l->replica, 0, l->view->n_requests * sizeof(*l->replica));
    l->result = res;
    const struct kvc_cluster cluster = cluster_of(l, replicas);
    return status == KVC_OK
               ? kvc_ceiling_optimum_of(l->view, &cluster, l->replica, capacity, err)
               : status;
}

static enum kvc_status look(struct looking *l, const char *policy, uint64_t capacity,
                            uint32_t replicas, struct kvc_error *err)
{
    if (strcmp(policy, "content") == 0)
        return with_endless_room(l, err);
    if (strcmp(policy, "opt") == 0)
        return by_knowing(l, capacity, replicas, err);
    return by_runs(l, policy, capacity, replicas, err);
}

static void sum_hits(const struct kvc_ceiling_view *v, const uint32_t *runs, struct kvc_hits *out)
{
    kvc_hits_begin(v, out);
    for (uint64_t r = 0; r < v->n_requests; r++)
        kvc_hits_count(v, r, runs[r], out);
}

/* ---- beside it: one pool, bounds of the assignment, and no namespaces ---- */

static enum kvc_status look_at_pools(const struct looking *l, const char *policy,
                                     uint64_t capacity, uint32_t *runs, struct kvc_error *err)
{
    const struct kvc_closeup *c = l->c;
    struct kvc_closeup_result *res = l->result;
    uint64_t all = capacity > KVC_CAPACITY_INF / c->replicas ? KVC_CAPACITY_INF
                                                             : capacity * c->replicas;
    struct looking pool = {.c = c, .view = l->view, .runs = runs};
    pool.replica = kvc_malloc(l->view->n_requests, sizeof(*pool.replica));
    if (!pool.replica)
        return kvc_fail_nomem(err);
    memset(runs, 0, l->view->n_requests * sizeof(*runs));
    enum kvc_status status = look(&pool, "opt", all, 1, err);
    sum_hits(l->view, runs, &res->optimum_pool);
    if (status == KVC_OK)
        status = look(&pool, policy, all, 1, err);
    sum_hits(l->view, runs, &res->pool);
    if (status == KVC_OK)
        status = kvc_ceiling_assigned_of(l->view, l->replica, c->replicas, false, capacity, runs,
                                         err);
    sum_hits(l->view, runs, &res->assigned_content);
    if (status == KVC_OK)
        status = kvc_ceiling_assigned_of(l->view, l->replica, c->replicas, true, capacity, runs,
                                         err);
    sum_hits(l->view, runs, &res->assigned_optimum);
    kvc_free(pool.replica);
    return status;
}

#define FIRST_DEPTH 1024u

static uint64_t depth_from(unsigned i)
{
    return i ? (uint64_t)FIRST_DEPTH << (i - 1) : 0;
}

static uint64_t usable(const struct kvc_ceiling_view *v, uint64_t request, uint64_t run)
{
    uint64_t full = run ? v->input_tokens[request] / v->block_tokens : 0;
    return run < full ? run : full;
}

/* Of the first n blocks, tokens of those that begin in the i-th stretch of depth. */
static uint64_t at_depth(const struct kvc_ceiling_view *v, uint64_t n, unsigned i)
{
    uint64_t size = v->block_tokens ? v->block_tokens : 1;
    uint64_t lo = kvc_div_up(depth_from(i), size), hi = kvc_div_up(depth_from(i + 1), size);
    return ((hi < n ? hi : n) - (lo < n ? lo : n)) * v->block_tokens;
}

static void add_shared(const struct looking *l, uint64_t r, uint64_t blocks)
{
    const struct kvc_closeup *c = l->c;
    struct kvc_closeup_result *res = l->result;
    uint64_t own = usable(l->view, r, l->runs[r]), tokens = blocks * l->view->block_tokens;
    res->all.shared_hit_tokens += tokens;
    res->tenants[c->tenants.of[r]].shared_hit_tokens += tokens;
    if (res->n_groups)
        res->groups[c->groups.of[r]].shared_hit_tokens += tokens;
    if (res->n_replicas)
        res->replicas[l->replica[r]].shared_hit_tokens += tokens;
    if (res->n_buckets)
        res->buckets[c->trace->arrival_ns[r] / l->bucket_ns].shared_hit_tokens += tokens;
    for (unsigned i = 0; i < KVC_DEPTHS; i++) {
        res->depths[i].hit_tokens += at_depth(l->view, own, i);
        res->depths[i].shared_hit_tokens += at_depth(l->view, blocks, i);
    }
}

static enum kvc_status look_without_namespaces(const struct looking *l, const char *policy,
                                               uint64_t capacity, uint32_t *runs,
                                               struct kvc_error *err)
{
    const struct kvc_closeup *c = l->c;
    struct kvc_closeup_result *res = l->result;
    struct looking shared = {.c = c, .view = &c->shared, .runs = runs};
    shared.replica = kvc_malloc(l->view->n_requests, sizeof(*shared.replica));
    if (!shared.replica)
        return kvc_fail_nomem(err);
    enum kvc_status status = look(&shared, policy, capacity, c->replicas, err);
    kvc_free(shared.replica);
    if (status)
        return status;
    sum_hits(&c->shared, runs, &res->shared);
    for (uint64_t r = 0; r < l->view->n_requests; r++)
        add_shared(l, r, usable(&c->shared, r, runs[r]));
    for (unsigned i = 0; i < KVC_DEPTHS; i++) {
        res->depths[i].from_tokens = depth_from(i);
        if (res->depths[i].hit_tokens || res->depths[i].shared_hit_tokens)
            res->n_depths = i + 1;
    }
    return KVC_OK;
}

/* ---- parts ---- */

static void add_part(struct kvc_part *sum, const struct kvc_part *part)
{
    const uint64_t *from = (const uint64_t *)&part->hits;
    uint64_t *to = (uint64_t *)&sum->hits;
    for (size_t i = 0; i < sizeof(sum->hits) / sizeof(*to); i++)
        to[i] += from[i];
    for (unsigned i = 0; i < KVC_MISS_CAUSES; i++)
        sum->missed_tokens[i] += part->missed_tokens[i];
    sum->shared_hit_tokens += part->shared_hit_tokens;
}

static bool adds_up(const struct kvc_part *part)
{
    uint64_t sum = part->hits.hit_tokens;
    for (unsigned i = 0; i < KVC_MISS_CAUSES; i++)
        sum += part->missed_tokens[i];
    return sum == part->hits.tokens;
}

/* Whether every part is hit tokens plus causes, and all parts together are all. */
static bool closes(const struct kvc_part *parts, uint32_t n, const struct kvc_part *all, bool why)
{
    struct kvc_part sum = {.name = ""};
    bool fine = true;
    for (uint32_t k = 0; k < n; k++) {
        add_part(&sum, &parts[k]);
        fine = fine && (!why || adds_up(&parts[k]));
    }
    return fine && (n == 0 || (memcmp(&sum.hits, &all->hits, sizeof(sum.hits)) == 0 &&
                               memcmp(sum.missed_tokens, all->missed_tokens,
                                      sizeof(sum.missed_tokens)) == 0 &&
                               sum.shared_hit_tokens == all->shared_hit_tokens));
}

static bool evictions_close(const struct kvc_closeup_result *res)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < res->n_evictors; i++)
        for (uint32_t k = 0; k <= res->n_evictors; k++)
            sum += res->evicted_tokens[i][k];
    return !res->has_evictors || sum == res->all.missed_tokens[KVC_MISS_EVICTED];
}

static int larger(const void *a, const void *b)
{
    const struct kvc_part *x = a, *y = b;
    if (x->hits.tokens != y->hits.tokens)
        return x->hits.tokens < y->hits.tokens ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Names the groups, drops those without requests, and puts the larger first, the rest together. */
static void arrange(struct kvc_part *parts, uint32_t *n, const struct kvc_groups *groups,
                    uint32_t most)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++) {
        if (!parts[i].hits.requests)
            continue;
        parts[kept] = parts[i];
        kvc_groups_name(groups, i, parts[kept].name, sizeof(parts[kept].name));
        kept++;
    }
    qsort(parts, kept, sizeof(*parts), larger);
    if (kept > most) {
        for (uint32_t i = most; i < kept; i++)
            add_part(&parts[most - 1], &parts[i]);
        snprintf(parts[most - 1].name, sizeof(parts[most - 1].name), "others (%u)",
                 kept - most + 1);
        kept = most;
    }
    *n = kept;
}

static enum kvc_status finish(const struct looking *l, struct kvc_error *err)
{
    const struct kvc_closeup *c = l->c;
    struct kvc_closeup_result *res = l->result;
    if (!closes(&res->all, 1, &res->all, c->why) || !evictions_close(res) ||
        !closes(res->groups, res->n_groups, &res->all, c->why) ||
        !closes(res->tenants, res->n_tenants, &res->all, c->why) ||
        !closes(res->replicas, res->n_replicas, &res->all, c->why) ||
        !closes(res->buckets, res->n_buckets, &res->all, c->why))
        return kvc_fail(err, KVC_ERR_INTERNAL,
                        "hits and causes of misses do not add up to the input tokens; please "
                        "report this with the log");
    arrange(res->groups, &res->n_groups, &c->groups, c->most_parts);
    arrange(res->tenants, &res->n_tenants, &c->tenants, c->most_parts);
    for (uint32_t i = 0; i < res->n_replicas; i++)
        snprintf(res->replicas[i].name, sizeof(res->replicas[i].name), "%u", i);
    for (uint32_t i = 0; i < res->n_buckets; i++)
        snprintf(res->buckets[i].name, sizeof(res->buckets[i].name), "%.1f min",
                 (double)(i * l->bucket_ns) / 60e9);
    return KVC_OK;
}

/* ---- the run ---- */

static bool make_result(struct looking *l, const char *policy)
{
    const struct kvc_closeup *c = l->c;
    const struct kvc_trace *t = c->trace;
    bool content = strcmp(policy, "content") == 0;
    struct kvc_closeup_result *res = l->result = kvc_calloc(1, sizeof(*res));
    l->runs = kvc_malloc(t->n_requests, sizeof(*l->runs));
    l->replica = kvc_malloc(t->n_requests, sizeof(*l->replica));
    if (!res || !l->runs || !l->replica)
        return false;
    l->bucket_ns = (t->n_requests ? t->arrival_ns[t->n_requests - 1] : 0) / KVC_WHY_BUCKETS + 1;
    snprintf(res->all.name, sizeof(res->all.name), "all");
    res->n_tenants = c->tenants.n;
    res->n_groups = c->grouped ? c->groups.n : 0;
    res->n_replicas = c->replicas > 1 && !content ? c->replicas : 0;
    res->n_buckets = c->why ? KVC_WHY_BUCKETS : 0;
    res->has_evictors = c->why && !content;
    res->n_evictors = res->has_evictors ? c->n_evictors : 0;
    memcpy(res->evictor, c->evictor_name, sizeof(res->evictor));
    res->tenants = kvc_calloc(res->n_tenants, sizeof(*res->tenants));
    res->groups = kvc_calloc(res->n_groups, sizeof(*res->groups));
    res->replicas = kvc_calloc(res->n_replicas, sizeof(*res->replicas));
    res->buckets = kvc_calloc(res->n_buckets, sizeof(*res->buckets));
    return res->tenants && res->groups && res->replicas && res->buckets;
}

enum kvc_status kvc_closeup_run(const struct kvc_closeup *c, const char *policy,
                                uint64_t capacity_blocks, struct kvc_closeup_result **out,
                                struct kvc_error *err)
{
    struct looking l = {.c = c, .view = &c->view};
    const char *name = "content";
    enum kvc_status status = KVC_OK;
    if (strcmp(policy, name) != 0)
        status = kvc_ceiling_find_policy(&name, policy, err);
    if (status)
        return status;
    uint32_t *runs = kvc_malloc(c->trace->n_requests, sizeof(*runs));
    if (!make_result(&l, name) || !runs)
        status = kvc_fail_nomem(err);
    if (status == KVC_OK && c->why)
        status = kvc_why_init(&l.why, l.view, c->trace, c->isolated ? &c->spaces : NULL,
                              c->evictor, err);
    if (status == KVC_OK)
        status = look(&l, name, capacity_blocks, c->replicas, err);
    if (status == KVC_OK && l.result->n_replicas)
        status = look_at_pools(&l, name, capacity_blocks, runs, err);
    if (status == KVC_OK && c->isolated)
        status = look_without_namespaces(&l, name, capacity_blocks, runs, err);
    if (status == KVC_OK)
        status = finish(&l, err);
    kvc_why_clear(&l.why);
    kvc_free(runs);
    kvc_free(l.runs);
    kvc_free(l.replica);
    if (status == KVC_OK)
        *out = l.result;
    else
        kvc_closeup_result_destroy(l.result);
    return status;
}

void kvc_closeup_result_destroy(struct kvc_closeup_result *res)
{
    if (!res)
        return;
    kvc_free(res->groups);
    kvc_free(res->tenants);
    kvc_free(res->replicas);
    kvc_free(res->buckets);
    kvc_free(res);
}
