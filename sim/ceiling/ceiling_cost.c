/* SPDX-License-Identifier: Apache-2.0
 * Deeper blocks cost more to compute again, so the schedule with most hits need not save most.
 *
 * From above, by Lagrangian relaxation of the capacity: give each instant a price y >= 0 for a
 * place. A request that hits a leading run of k blocks gains upto[k] minus the prices of the
 * instants over which each of them is kept; without a limit each request takes the k that gains
 * most. Then  C x sum of prices + sum of gains  is at least what any cache of C blocks saves,
 * whatever the prices. (Within a segment intervals are equal and blocks ever dearer, so the best k
 * ends at a segment.) Prices are lowered towards the bound by a subgradient method: up where more
 * than C are kept, down where less. At best this is the bound of the linear program with hits
 * closed under prefixes.
 *
 * From below, by the better of two schedules that fit: the one of most hits, and the one the prices
 * chose, packed. */
#include "sim/ceiling/ceiling_cost.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

#define ROUNDS 400
#define PATIENCE 16 /* rounds without a better bound, then a smaller step */
#define CLOSE 1e-6 /* of the bound */

struct relax {
    const struct kvc_ceiling_view *v;
    const double *upto;
    double capacity;
    double *price, *best_price; /* by instant */
    double *paid;               /* price of all instants before each */
    int64_t *held;              /* by instant; its changes at first */
    uint32_t *touched;          /* by segment; UINT32_MAX */
    uint32_t *runs, *best_runs; /* by request: what gains most at these prices */
    double upper, lower;
};

static double worth_of(const struct kvc_ceiling_view *v, const double *upto, const uint32_t *runs)
{
    double sum = 0;
    for (uint64_t r = 0; r < v->n_requests; r++)
        sum += upto[runs[r]];
    return sum;
}

/* The run of a request that gains most; leaf to root, the best of all leading runs of what is
 * below being known. */
static double choose(struct relax *x, uint32_t request)
{
    const struct kvc_ceiling_view *v = x->v;
    double gain = 0;
    uint32_t run = 0;
    for (uint32_t s = v->prompt_seg[request]; s != KVC_SEG_NONE; s = v->seg_parent[s]) {
        uint32_t last = x->touched[s], depth = v->seg_depth[s], end = depth + v->seg_len[s];
        if (last == UINT32_MAX)
            continue;
        if (gain <= 0)
            run = end;
        gain += x->upto[end] - x->upto[depth] -
                (double)v->seg_len[s] * (x->paid[request] - x->paid[last]);
        if (gain <= 0)
            gain = run = 0;
    }
    x->runs[request] = run;
    for (uint32_t s = v->prompt_seg[request]; s != KVC_SEG_NONE; s = v->seg_parent[s]) {
        if (v->seg_depth[s] < run) {
            x->held[x->touched[s]] += v->seg_len[s];
            x->held[request] -= v->seg_len[s];
        }
        x->touched[s] = request;
    }
    return gain;
}

/* The bound at these prices. */
static double evaluate(struct relax *x)
{
    const struct kvc_ceiling_view *v = x->v;
    x->paid[0] = 0;
    for (uint64_t i = 0; i < v->n_requests; i++)
        x->paid[i + 1] = x->paid[i] + x->price[i];
    memset(x->held, 0, v->n_requests * sizeof(*x->held));
    memset(x->touched, 0xff, v->n_segments * sizeof(*x->touched));
    double bound = 0, all = x->paid[v->n_requests];
    for (uint32_t r = 0; r < v->n_requests; r++)
        bound += choose(x, r);
    for (uint64_t i = 1; i < v->n_requests; i++)
        x->held[i] += x->held[i - 1];
    return all > 0 ? bound + x->capacity * all : bound;
}

static double slack(const struct relax *x, uint64_t i)
{
    double free = x->capacity - (double)x->held[i];
    return x->price[i] <= 0 && free > 0 ? 0 : free;
}

/* Moves the prices; false where they are the best already. */
static bool step(struct relax *x, double length)
{
    double norm = 0;
    for (uint64_t i = 0; i < x->v->n_requests; i++)
        norm += slack(x, i) * slack(x, i);
    if (norm <= 0)
        return false;
    for (uint64_t i = 0; i < x->v->n_requests; i++) {
        double price = x->price[i] - length / norm * slack(x, i);
        x->price[i] = price > 0 ? price : 0;
    }
    return true;
}

static void descend(struct relax *x)
{
    uint64_t n = x->v->n_requests;
    double scale = 1;
    int since = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double bound = evaluate(x);
        since++;
        if (bound < x->upper) {
            x->upper = bound;
            memcpy(x->best_price, x->price, n * sizeof(*x->price));
            memcpy(x->best_runs, x->runs, n * sizeof(*x->runs));
            since = 0;
        }
        if (x->upper - x->lower <= CLOSE * x->upper)
            return;
        if (since > PATIENCE) {
            scale /= 2;
            since = 0;
            memcpy(x->price, x->best_price, n * sizeof(*x->price));
            evaluate(x);
            bound = x->upper;
        }
        if (!step(x, scale * (bound - x->lower)))
            return;
    }
}

static void offer(const struct relax *x, const uint32_t *runs, const char *name,
                  struct kvc_cost_bound *out)
{
    double worth = worth_of(x->v, x->upto, runs);
    if (worth <= out->reached)
        return;
    out->reached = worth;
    out->reached_by = name;
}

static bool start(struct relax *x)
{
    uint64_t n = x->v->n_requests;
    x->price = kvc_calloc(n, sizeof(*x->price));
    x->best_price = kvc_calloc(n, sizeof(*x->best_price));
    x->paid = kvc_malloc(n + 1, sizeof(*x->paid));
    x->held = kvc_malloc(n, sizeof(*x->held));
    x->touched = kvc_malloc(x->v->n_segments, sizeof(*x->touched));
    x->runs = kvc_malloc(n, sizeof(*x->runs));
    x->best_runs = kvc_malloc(n, sizeof(*x->best_runs));
    return x->price && x->best_price && x->paid && x->held && x->touched && x->runs &&
           x->best_runs;
}

enum kvc_status kvc_ceiling_cost_of(const struct kvc_ceiling_view *v, const double *upto,
                                    uint64_t capacity_blocks, struct kvc_cost_bound *out,
                                    struct kvc_error *err)
{
    struct relax x = {.v = v, .upto = upto, .capacity = (double)capacity_blocks};
    struct kvc_cost_bound found = {.reached_by = "opt"};
    struct kvc_hits hits;
    enum kvc_status status = start(&x) ? KVC_OK : kvc_fail_nomem(err);
    if (!status)
        status = kvc_ceiling_content_of(v, &hits, x.runs, err);
    if (!status) {
        found.content = worth_of(v, upto, x.runs);
        status = kvc_ceiling_opt_of(v, &capacity_blocks, 1, &hits, x.runs, err);
    }
    if (!status) {
        offer(&x, x.runs, "opt", &found);
        x.upper = INFINITY;
        x.lower = found.reached;
        descend(&x);
        status = kvc_ceiling_pack(v, capacity_blocks, x.best_runs, x.runs, err);
    }
    if (!status) {
        offer(&x, x.runs, "packed", &found);
        found.upper = x.upper;
        *out = found;
    }
    kvc_free(x.price);
    kvc_free(x.best_price);
    kvc_free(x.paid);
    kvc_free(x.held);
    kvc_free(x.touched);
    kvc_free(x.runs);
    kvc_free(x.best_runs);
    return status;
}

enum kvc_status kvc_ceiling_cost(const struct kvc_trace *trace, const double *upto,
                                 uint64_t capacity_blocks, struct kvc_cost_bound *out,
                                 struct kvc_error *err)
{
    struct kvc_ceiling_view full;
    enum kvc_status status = kvc_ceiling_view_full(&full, trace, err);
    if (status)
        return status;
    status = kvc_ceiling_cost_of(&full, upto, capacity_blocks, out, err);
    kvc_ceiling_view_clear(&full);
    return status;
}

enum kvc_status kvc_ceiling_saved(const struct kvc_trace *trace, const double *upto,
                                  const char *policy, uint64_t capacity_blocks, double *out,
                                  struct kvc_error *err)
{
    struct kvc_ceiling_view full;
    struct kvc_hits hits;
    enum kvc_status status = kvc_ceiling_find_policy(&policy, policy, err);
    if (!status)
        status = kvc_ceiling_view_full(&full, trace, err);
    if (status)
        return status;
    uint32_t *runs = kvc_malloc(full.n_requests, sizeof(*runs));
    if (!runs)
        status = kvc_fail_nomem(err);
    else if (strcmp(policy, "opt") == 0)
        status = kvc_ceiling_opt_of(&full, &capacity_blocks, 1, &hits, runs, err);
    else
        status = kvc_ceiling_runs_of(&full, policy, &capacity_blocks, 1, &hits, runs, err);
    if (!status)
        *out = worth_of(&full, upto, runs);
    kvc_free(runs);
    kvc_ceiling_view_clear(&full);
    return status;
}
