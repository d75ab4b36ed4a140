/* SPDX-License-Identifier: Apache-2.0
 * Policies of time. ttl: a block lives so long after its last touch, as the prompt cache of
 * Anthropic's API does (5 minutes, begun anew by each use); what makes room is the oldest touch.
 * ttlfixed: it lives so long after it was stored, whatever uses it; what makes room is the oldest.
 * A block of age ttl is gone, and goes before the request that arrives then looks anything up.
 *
 * The queue is in the order of those times, so what has expired is at its old end. note: the
 * request, which keeps runs of different times apart. */
#include "policies/eviction/runs_internal.h"

static const struct kvc_policy_option options[] = {
    {"ttl", KVC_OPTION_TIME, "5m", 1, 1e18, "how long a block lives"},
};

static void expire(struct kvc_runs *c, uint32_t seg)
{
    (void)seg;
    for (uint32_t r; (r = c->queue[0].oldest) != KVC_RUN_NONE;) {
        if (c->now_ns - c->run[r].stamp < c->option[0].time_ns)
            return;
        c->expiring = true;
        kvc_run_drop(c, r, kvc_run_blocks(c, r));
        c->expiring = false;
    }
}

static uint32_t miss(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost)
{
    uint32_t n = kvc_make_room(c, hi - lo);
    (void)ghost;
    uint32_t r = kvc_run_add(c, seg, hi - n, hi, 0, c->request);
    if (r != KVC_RUN_NONE)
        c->run[r].stamp = c->now_ns;
    return n;
}

static void ttl_hit(struct kvc_runs *c, uint32_t r)
{
    kvc_queue_take(c, r);
    c->run[r].note = c->request;
    c->run[r].stamp = c->now_ns;
    kvc_queue_put(c, 0, r);
}

static void ttlfixed_hit(struct kvc_runs *c, uint32_t r)
{
    (void)c, (void)r;
}

const struct kvc_runs_ops kvc_runs_ttl = {.name = "ttl", KVC_OPTIONS(options),
                                          .arrive = expire, .hit = ttl_hit,
                                          .miss = miss};
const struct kvc_runs_ops kvc_runs_ttlfixed = {.name = "ttlfixed", KVC_OPTIONS(options),
                                               .arrive = expire, .hit = ttlfixed_hit, .miss = miss};
