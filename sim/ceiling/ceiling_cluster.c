/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ceiling/ceiling_cluster.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "policies/eviction/runs.h"

/* A request of the window, as its replica sees it. */
struct recent {
    uint32_t replica, input_tokens;
    uint64_t missed_tokens;
};

struct routed {
    const struct kvc_ceiling_view *v;
    const struct kvc_cluster *cluster;
    struct kvc_runs **cache;
    struct kvc_route_view *load, *view; /* by replica; what the router sees of it */
    struct recent *recent; /* a ring */
    uint64_t window, rng;
    struct kvc_routing routing; /* of two replicas and more */
    uint32_t *next; /* by touch, for a policy that knows the future of its one cache; or NULL */
};

static uint64_t full_tokens(const struct kvc_ceiling_view *v, uint64_t request, uint64_t run)
{
    uint64_t full = v->input_tokens[request] / v->block_tokens;
    return (run < full ? run : full) * v->block_tokens;
}

static uint32_t route(struct routed *c, uint64_t request)
{
    const struct kvc_cluster *k = c->cluster;
    uint32_t n = k->replicas, seg = c->v->prompt_seg[request];
    if (n == 1)
        return 0;
    const struct kvc_router_ops *router = k->router->ops;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t hit = 0;
        if (router->wants_prefix && seg != KVC_SEG_NONE)
            hit = full_tokens(c->v, request, kvc_runs_held(c->cache[i], seg));
        c->view[i] = router->wants_load ? c->load[i] : (struct kvc_route_view){0};
        c->view[i].hit_tokens = c->view[i].hit_tokens_any = (uint32_t)hit;
    }
    const struct kvc_route_request asked = {
        .index = request, .session = k->session ? k->session[request] : KVC_ID_NONE,
        .input_tokens = c->v->input_tokens[request],
    };
    return kvc_routing_pick(&c->routing, &asked, c->view, 1.0, &c->rng);
}

/* The window moves on by a request. */
static void weigh(struct routed *c, uint64_t request, uint32_t replica, uint64_t run)
{
    struct recent *at = &c->recent[request % c->window];
    if (request >= c->window) {
        struct kvc_route_view *old = &c->load[at->replica];
        old->running--;
        old->queued_tokens -= at->missed_tokens;
        old->context_tokens -= at->input_tokens;
    }
    uint32_t tokens = c->v->input_tokens[request];
    uint64_t hit = run ? full_tokens(c->v, request, run) : 0; /* block_tokens may be 0 without
                                                                 ids */
    *at = (struct recent){replica, tokens, tokens - hit};
    c->load[replica].running++;
    c->load[replica].queued_tokens += at->missed_tokens;
    c->load[replica].context_tokens += tokens;
}

static uint64_t best_elsewhere(const struct routed *c, uint32_t replica, uint32_t seg)
{
    uint64_t best = 0;
    for (uint32_t i = 0; i < c->cluster->replicas; i++) {
        uint64_t held = i == replica ? 0 : kvc_runs_held(c->cache[i], seg);
        best = held > best ? held : best;
    }
    return best;
}

static void serve(struct routed *c)
{
    const struct kvc_ceiling_view *v = c->v;
    const struct kvc_cluster *k = c->cluster;
    uint64_t touches = 0; /* of segments */
    for (uint64_t r = 0; r < v->n_requests; r++) {
        if (k->request)
            *k->request = r;
        uint32_t seg = v->prompt_seg[r], to = route(c, r);
        if (c->routing.stray)
            return;
        struct kvc_runs_request request = kvc_ceiling_request(v, r);
        request.next = c->next ? c->next + touches : NULL;
        for (uint32_t s = seg; c->next && s != KVC_SEG_NONE; s = v->seg_parent[s])
            touches++;
        uint64_t run = kvc_runs_arrive(c->cache[to], &request);
        if (k->arrived)
            k->arrived(k->user, r, to, run, k->elsewhere ? best_elsewhere(c, to, seg) : 0);
        kvc_runs_touch(c->cache[to]);
        weigh(c, r, to, run);
    }
}

enum kvc_status kvc_ceiling_cluster_of(const struct kvc_ceiling_view *v,
                                       const struct kvc_cluster *cluster, const char *policy,
                                       uint64_t capacity_blocks, struct kvc_error *err)
{
    uint32_t n = cluster->replicas;
    struct routed c = {.v = v, .cluster = cluster, .window = (uint64_t)n * KVC_CLUSTER_WINDOW,
                       .rng = kvc_rng_stream(cluster->seed, "router")};
    enum kvc_status status = KVC_OK;
    c.cache = kvc_calloc(n, sizeof(struct kvc_runs *));
    c.load = kvc_calloc(n, sizeof(*c.load));
    c.view = kvc_calloc(n, sizeof(*c.view));
    c.recent = kvc_calloc(c.window, sizeof(*c.recent));
    bool future = false, ready = c.cache && c.load && c.view && c.recent;
    if (ready && n > 1)
        ready = kvc_routing_begin(&c.routing, cluster->router, n, NULL) == KVC_OK;
    for (uint32_t i = 0; ready && i < n; i++) {
        c.cache[i] = kvc_ceiling_cache(v, policy, capacity_blocks, cluster->left, cluster->user);
        ready = c.cache[i] != NULL;
        future = ready && kvc_runs_wants_next(c.cache[i]);
    }
    if (future && n == 1)
        status = kvc_ceiling_next_uses(v, &c.next, err);
    else if (future)
        status = kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                             "%s must know the future of one cache, and a router parts it; opt is "
                             "the bound behind one", policy);
    if (ready && status == KVC_OK)
        serve(&c);
    if (status == KVC_OK)
        status = kvc_routing_error(&c.routing, err);
    for (uint32_t i = 0; c.cache && i < n; i++) {
        if (c.cache[i] && status == KVC_OK)
            status = kvc_runs_error(c.cache[i], err);
        kvc_runs_destroy(c.cache[i]);
    }
    if (!ready && status == KVC_OK)
        status = kvc_fail_nomem(err);
    kvc_routing_end(&c.routing);
    kvc_free(c.next);
    kvc_free(c.recent);
    kvc_free(c.load);
    kvc_free(c.view);
    kvc_free(c.cache);
    return status;
}

/* ---- bounds of an assignment ---- */

/* The requests of one replica; index[] gets which they are. */
static void take_part(const struct kvc_ceiling_view *v, const uint32_t *replica, uint32_t which,
                      struct kvc_ceiling_view *part, uint32_t *prompt_seg, uint32_t *input_tokens,
                      uint64_t *index)
{
    uint64_t n = 0;
    for (uint64_t r = 0; r < v->n_requests; r++)
        if (replica[r] == which) {
            prompt_seg[n] = v->prompt_seg[r];
            input_tokens[n] = v->input_tokens[r];
            index[n++] = r;
        }
    *part = *v;
    part->n_requests = n;
    part->prompt_seg = prompt_seg;
    part->input_tokens = input_tokens;
    part->arrival_ns = NULL;
}

enum kvc_status kvc_ceiling_assigned_of(const struct kvc_ceiling_view *v, const uint32_t *replica,
                                        uint32_t replicas, bool optimum, uint64_t capacity_blocks,
                                        uint32_t *runs, struct kvc_error *err)
{
    enum kvc_status status = KVC_OK;
    uint32_t *seg = kvc_malloc(v->n_requests, sizeof(*seg));
    uint32_t *tokens = kvc_malloc(v->n_requests, sizeof(*tokens));
    uint32_t *part_runs = kvc_malloc(v->n_requests, sizeof(*part_runs));
    uint64_t *index = kvc_malloc(v->n_requests, sizeof(*index));
    if (!seg || !tokens || !part_runs || !index)
        status = kvc_fail_nomem(err);
    for (uint32_t i = 0; i < replicas && status == KVC_OK; i++) {
        struct kvc_ceiling_view part;
        struct kvc_hits hits;
        take_part(v, replica, i, &part, seg, tokens, index);
        status = optimum ? kvc_ceiling_opt_of(&part, &capacity_blocks, 1, &hits, part_runs, err)
                         : kvc_ceiling_content_of(&part, &hits, part_runs, err);
        for (uint64_t k = 0; k < part.n_requests && status == KVC_OK; k++)
            runs[index[k]] = part_runs[k];
    }
    kvc_free(index);
    kvc_free(part_runs);
    kvc_free(tokens);
    kvc_free(seg);
    return status;
}

/* ---- the optimum, with all that is told of a cluster ---- */

struct knowing {
    struct kvc_ceiling_view *part; /* by replica: the requests it gets */
    struct kvc_opt **opt;
    uint32_t *seg, *tokens; /* those of all parts, side by side */
    uint64_t *index;
};

static void serve_knowing(const struct kvc_ceiling_view *v, const struct kvc_cluster *k,
                          const uint32_t *replica, struct knowing *w)
{
    for (uint64_t r = 0; r < v->n_requests; r++) {
        uint32_t to = replica[r];
        uint64_t best = 0, run = kvc_opt_arrive(w->opt[to]);
        for (uint32_t i = 0; k->elsewhere && i < k->replicas; i++) {
            uint64_t held = i == to ? 0 : kvc_opt_held(w->opt[i], v->prompt_seg[r]);
            best = held > best ? held : best;
        }
        if (k->request)
            *k->request = r;
        k->arrived(k->user, r, to, run, best);
        kvc_opt_touch(w->opt[to]);
    }
}

enum kvc_status kvc_ceiling_optimum_of(const struct kvc_ceiling_view *v,
                                       const struct kvc_cluster *cluster, const uint32_t *replica,
                                       uint64_t capacity_blocks, struct kvc_error *err)
{
    uint32_t n = cluster->replicas;
    struct knowing w = {
        .part = kvc_calloc(n, sizeof(*w.part)), .opt = kvc_calloc(n, sizeof(struct kvc_opt *)),
        .seg = kvc_malloc(v->n_requests, sizeof(*w.seg)),
        .tokens = kvc_malloc(v->n_requests, sizeof(*w.tokens)),
        .index = kvc_malloc(v->n_requests, sizeof(*w.index)),
    };
    bool ready = w.part && w.opt && w.seg && w.tokens && w.index;
    uint64_t at = 0;
    for (uint32_t i = 0; i < n && ready; i++) {
        take_part(v, replica, i, &w.part[i], w.seg + at, w.tokens + at, w.index + at);
        at += w.part[i].n_requests;
        w.opt[i] = kvc_opt_create(&w.part[i], capacity_blocks, cluster->left, cluster->user);
        ready = w.opt[i] != NULL;
    }
    if (ready)
        serve_knowing(v, cluster, replica, &w);
    for (uint32_t i = 0; w.opt && i < n; i++)
        kvc_opt_destroy(w.opt[i]);
    kvc_free(w.part);
    kvc_free(w.opt);
    kvc_free(w.seg);
    kvc_free(w.tokens);
    kvc_free(w.index);
    return ready ? KVC_OK : kvc_fail_nomem(err);
}
