/* SPDX-License-Identifier: Apache-2.0
 * The event loop of a run: arrivals, transfers and replicas that are due. */
#include "sim/replay/engine.h"

#include "base/error.h"

#define YEARS 146
#define LATEST_NS (YEARS * 366ull * 86400 * 1000000000) /* sums of two times must fit 64 bits */

struct kvc_path kvc_engine_path(struct kvc_engine *e, uint32_t leaf, uint32_t row)
{
    if (leaf == KVC_SEG_NONE)
        return (struct kvc_path){NULL, 0};
    struct kvc_span *spans = e->paths + (size_t)row * e->longest_path;
    uint32_t *n = &e->path_segments[row], k = e->longest_path; /* filled from the back */
    if (!*n || spans[k - 1].seg != leaf) { /* often it is there from the call before */
        for (uint32_t s = leaf; s != KVC_SEG_NONE; s = e->segments[s].parent)
            spans[--k] = (struct kvc_span){s, e->segments[s].depth, e->segments[s].len};
        *n = e->longest_path - k;
    }
    return (struct kvc_path){spans + e->longest_path - *n, *n};
}

/* ---- replicas that are due: a heap by (time, id) ---- */

static bool due_before(const struct kvc_engine *e, uint32_t a, uint32_t b)
{
    uint64_t ta = e->replicas[a].due_ns, tb = e->replicas[b].due_ns;
    return ta != tb ? ta < tb : a < b;
}

static void heap_set(struct kvc_engine *e, uint32_t i, uint32_t id)
{
    e->due_heap[i] = id;
    e->replicas[id].heap_pos = i;
}

static void heap_sift(struct kvc_engine *e, uint32_t i)
{
    uint32_t id = e->due_heap[i];
    while (i && due_before(e, id, e->due_heap[(i - 1) / 2])) {
        heap_set(e, i, e->due_heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (uint32_t c = 2 * i + 1; c < e->n_due; c = 2 * i + 1) {
        if (c + 1 < e->n_due && due_before(e, e->due_heap[c + 1], e->due_heap[c]))
            c++;
        if (!due_before(e, e->due_heap[c], id))
            break;
        heap_set(e, i, e->due_heap[c]);
        i = c;
    }
    heap_set(e, i, id);
}

void kvc_engine_due(struct kvc_engine *e, struct kvc_replica *r, uint64_t time_ns)
{
    r->due_ns = time_ns;
    if (time_ns == KVC_TIME_NONE) {
        if (r->heap_pos == KVC_NONE)
            return;
        uint32_t at = r->heap_pos, last = e->due_heap[--e->n_due];
        r->heap_pos = KVC_NONE;
        if (last != r->id) {
            heap_set(e, at, last);
            heap_sift(e, at);
        }
        return;
    }
    if (r->heap_pos == KVC_NONE)
        heap_set(e, e->n_due++, r->id);
    heap_sift(e, r->heap_pos);
}

/* ---- the loop ---- */

static void note_link_bytes(struct kvc_engine *e)
{
    if (!e->n_link_classes)
        return;
    uint64_t total[KVC_MAX_LINK_CLASSES] = {0};
    for (uint32_t i = 0; i < kvc_links_count(e->links); i++) {
        struct kvc_link_usage u;
        kvc_links_usage(e->links, e->now, i, &u);
        total[e->link_class[i]] += u.bytes;
    }
    for (uint32_t c = 0; c < e->n_link_classes; c++) {
        kvc_timeline_add(&e->timeline, KVC_CHANNEL_LINKS + c,
                         (double)(total[c] - e->class_bytes[c]));
        e->class_bytes[c] = total[c];
    }
}

static void move_time(struct kvc_engine *e, uint64_t t)
{
    uint64_t used = 0, pages = 0;
    for (uint32_t i = 0; i < e->n_replicas; i++) {
        used += e->replicas[i].pool.pages - e->replicas[i].pool.plain;
        pages += e->replicas[i].pool.pages;
    }
    double level[KVC_CHANNEL_LEVELS] = {(double)e->running_now, (double)e->waiting_now,
                                        pages ? (double)used / (double)pages : 0};
    bool completed = kvc_timeline_advance(&e->timeline, t, level, KVC_CHANNEL_LEVELS);
    if (e->tenants.metered) {
        double held[KVC_METER_GROUPS];
        for (uint32_t g = 0; g < e->tenants.meter.n_groups; g++)
            held[g] = (double)kvc_meter_held(&e->tenants.meter, g);
        kvc_timeline_advance(&e->tenant_timeline, t, held, e->tenants.meter.n_groups);
    }
    e->now = t;
    if (completed)
        note_link_bytes(e);
}

/* What can happen next; of two at one time, the one that is first here. */
enum event {
    EXPIRY,   /* blocks whose time is up */
    TRANSFER, /* loads and stores that end */
    ROUTED,   /* a request that comes from the router to its replica */
    ARRIVAL,
    STEP,     /* a replica's, or its stretch of them, is over */
    NOTHING
};

static enum event next_event(const struct kvc_engine *e, uint64_t *time_ns)
{
    const uint64_t at[] = {
        [TRANSFER] = kvc_links_next(e->links),
        [ROUTED] = e->way_n ? e->way[e->way_head].time_ns : KVC_TIME_NONE,
        [ARRIVAL] = kvc_arrivals_next_ns(e->arrivals),
        [STEP] = e->n_due ? e->replicas[e->due_heap[0]].due_ns : KVC_TIME_NONE,
    };
    enum event first = TRANSFER;
    for (enum event k = ROUTED; k <= STEP; k++)
        if (at[k] < at[first])
            first = k;
    *time_ns = at[first];
    if (*time_ns == KVC_TIME_NONE)
        return NOTHING;
    uint64_t expiry = e->tenants.expire ? kvc_engine_next_expiry(e) : KVC_TIME_NONE;
    if (expiry > *time_ns)
        return first;
    *time_ns = expiry;
    return EXPIRY;
}

static void end_transfers(struct kvc_engine *e)
{
    struct kvc_flow_end end;
    while (kvc_links_pop(e->links, e->now, &end))
        kvc_tiers_transfer_done(e, (uint32_t)end.tag);
}

static void end_steps(struct kvc_engine *e)
{
    e->looking = e->due_heap[0];
    kvc_replica_run_due(e, &e->replicas[e->looking]);
    e->looking = KVC_NONE;
}

/* What lower tiers still write when the last client has its answer is not waited for: it serves
 * nobody, and would count as the time the traffic took. */
bool kvc_engine_next(struct kvc_engine *e)
{
    uint64_t t;
    enum event event = next_event(e, &t);
    e->late = event != NOTHING && t > LATEST_NS;
    if (event == NOTHING || e->late || (e->done == e->trace->n_requests && t > e->end_ns))
        return false;
    bool round = t > e->now && t % KVC_ROUND_NS == 0;
    if (t > e->now)
        move_time(e, t);
    e->events++;
    switch (event) {
    case EXPIRY: kvc_engine_expire(e, round); break;
    case TRANSFER: end_transfers(e); break;
    case ROUTED: kvc_engine_routed(e); break;
    case ARRIVAL: kvc_engine_arrive(e, kvc_arrivals_pop(e->arrivals)); break;
    case STEP: end_steps(e); break;
    case NOTHING: break;
    }
    return true;
}

/* Whether policies kept to their rules, and to the memory they were given. */
static enum kvc_status look_at_policies(const struct kvc_engine *e, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    for (uint32_t i = 0; i < e->n_replicas && st == KVC_OK; i++) {
        const struct kvc_replica *r = &e->replicas[i];
        if (r->pool.policy)
            st = kvc_runs_error(r->pool.policy, err);
        if (st == KVC_OK && r->order)
            st = kvc_hosted_error(&r->order->hosted, err);
    }
    for (uint32_t t = e->first_tier; t < KVC_LOWER_TIERS; t++)
        for (uint32_t i = 0; i < e->tiers[t].instances && st == KVC_OK; i++)
            if (e->tiers[t].pools[i].policy)
                st = kvc_runs_error(e->tiers[t].pools[i].policy, err);
    return st;
}

/* Why a run stops before its end; KVC_OK: it need not. */
static enum kvc_status trouble(const struct kvc_engine *e, struct kvc_error *err)
{
    if (e->nomem) { /* or a policy that broke the rules */
        enum kvc_status st = look_at_policies(e, err);
        return st == KVC_OK ? kvc_fail_nomem(err) : st;
    }
    if (e->failed)
        return kvc_admission_error(e->failed, err);
    return e->routing.stray ? kvc_routing_error(&e->routing, err) : KVC_OK;
}

/* All requests, one event after the other. */
static enum kvc_status run_events(struct kvc_engine *e, struct kvc_error *err)
{
    uint64_t reported = 0, n = e->trace->n_requests;
    enum kvc_status st = KVC_OK;
    while (st == KVC_OK && kvc_engine_next(e)) {
        st = trouble(e, err);
        if (st == KVC_OK && e->options->progress && e->done - reported >= 1024) {
            reported = e->done;
            if (!e->options->progress(e->options->progress_user, "replay", e->done, n))
                st = kvc_fail(err, KVC_ERR_CANCELLED, "the replay was cancelled");
        }
    }
    if (st != KVC_OK || e->done == n)
        return st;
    if (e->late)
        return kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, "arrivals",
                           "the replay would pass %d years: check the unit of the log's time "
                           "stamps and pauses and the rates of the links, or raise arrivals.scale",
                           YEARS);
    return kvc_fail(err, KVC_ERR_INTERNAL, "%llu of %llu requests never ended",
                    (unsigned long long)(n - e->done), (unsigned long long)n);
}

enum kvc_status kvc_engine_run(struct kvc_engine *e, struct kvc_error *err)
{
    enum kvc_status st = kvc_engine_open(e, err);
    if (st == KVC_OK)
        st = run_events(e, err);
    if (st != KVC_OK)
        return st;
    if (e->now < e->end_ns)
        move_time(e, e->end_ns);
    note_link_bytes(e);
    st = kvc_tiers_admission_error(e, err);
    return st == KVC_OK ? look_at_policies(e, err) : st;
}
