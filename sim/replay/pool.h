/* SPDX-License-Identifier: Apache-2.0
 * Who holds which trace blocks in one instance of a tier, HBM included: runs of blocks of equal
 * state per segment, and the queue in which runs without a holder wait to be evicted.
 *
 * Positions are blocks counted from the root of a path. Costs are per segment touched, not per
 * block. docs/replay.md states the rules.
 */
#ifndef KVC_SIM_POOL_H
#define KVC_SIM_POOL_H

#include "policies/eviction/order.h"
#include "sim/scenario/scenario.h"
#include "traces/trace.h"

#define KVC_BY_DECODING UINT32_MAX /* tenants of nobody: what all that decode takes together .. */
#define KVC_BY_TTL (UINT32_MAX - 1) /* .. and what left because its time was up */

struct kvc_span { /* a segment with its place on every path through it, in blocks */
    uint32_t seg, depth, len;
};

struct kvc_path { /* segments of a request's path, root first; borrowed memory */
    const struct kvc_span *spans;
    uint32_t n;
};

/* Blocks [lo, hi) of seg, counted inside the segment, left the pool for good (no copy stays);
 * tenant stored them. */
typedef void (*kvc_evicted_fn)(void *user, uint32_t seg, uint32_t lo, uint32_t hi,
                               uint32_t tenant);

/* Tenants that a pool treats as one; docs/tenants.md says what the limits do. */
struct kvc_pool_limits {
    uint64_t quota, reserve; /* pages; KVC_CAPACITY_INF and 0: none */
    enum kvc_quota_mode mode;
    uint32_t priority;       /* of a higher number: evicted first */
};

struct kvc_pool_ttl { /* blocks leave so long after they were last touched (FIFO: stored) */
    uint64_t ns;
    bool passes_down;     /* to the tier below, as what is evicted does */
};

struct kvc_pool_rules { /* shared by the instances of a tier */
    uint32_t n_classes, n_ttls;
    const uint32_t *class_of;             /* by tenant */
    const struct kvc_pool_limits *limits; /* by class */
    const struct kvc_pool_ttl *ttls;      /* shortest first */
    const uint32_t *ttl_of;               /* by tenant; n_ttls: for ever */
    bool rounds;                          /* a class has an isolated quota */
    const uint64_t *now;
};

struct kvc_pool_class {
    uint32_t head, tail;   /* queue: head is the next victim */
    uint64_t used, queued; /* pages charged to it, and of these without holder; with rules */
};

struct kvc_expiry { /* runs without holder, the one that expires next first */
    uint32_t head, tail;
};

/* Where blocks came in or left last: those who wait look at what is on their path. */
#define KVC_POOL_CHANGES 64
struct kvc_pool_changes {
    uint64_t n; /* ever; the last ones are kept */
    struct { uint32_t seg, lo; } at[KVC_POOL_CHANGES]; /* from block lo of seg on */
};

struct kvc_run;
struct kvc_run_age;

struct kvc_pool {
    const struct kvc_trace *trace;
    uint32_t page_tokens;
    uint32_t pages_per_block;  /* 0: block_tokens is not a multiple of page_tokens */
    bool touch_moves;          /* LRU; else the order of insertion */
    struct kvc_runs *policy;   /* says what goes instead; NULL: the queues do (pool_policy.c) */
    bool uses_are_touches;     /* it is told of touches; else releases are uses */
    const uint64_t *clock;     /* its */
    bool *whose;               /* by class: whose blocks it may take now */
    struct { uint32_t seg, hi; } newcomer; /* the deepest block that pages are for; NONE: none */
    uint64_t pages;            /* capacity */
    uint64_t plain;            /* pages nobody holds and that cache nothing */
    uint64_t queued;           /* pages of cached blocks without holder */
    uint64_t copies;           /* runs that duplicate cached blocks */
    uint64_t peak_used;        /* most pages - plain ever seen */
    uint64_t evicted_blocks, expired_blocks, never_read_blocks;
    uint32_t by;               /* tenant for whom the caller acts; KVC_BY_DECODING: for nobody */
    uint32_t decoders;         /* .. while all who decode are of this class; UINT32_MAX: several */
    const struct kvc_pool_rules *rules; /* NULL: all tenants are one */
    struct kvc_pool_class *classes;
    struct kvc_expiry *expiries; /* per TTL of the rules */
    struct kvc_meter *meter;     /* told who stores and evicts how much; may be NULL */
    uint64_t page_bytes, block_bytes; /* for it */
    bool over;                   /* some class may have come beyond a hard quota */
    uint32_t expiring;           /* the TTL whose blocks leave now */
    uint32_t free_run;
    uint32_t *first;           /* per segment: its chain of runs */
    uint64_t *where, bit;      /* per segment, shared by pools: bit is set where this one has runs;
                                  NULL: nobody wants to know */
    struct kvc_run *runs;
    struct kvc_run_age *ages;  /* beside runs, with rules */
    size_t n_runs, cap_runs, cap_ages;
    uint64_t stamps;
    struct kvc_pool_changes changes;
    kvc_evicted_fn evicted;    /* may be NULL */
    void *evicted_user;
    uint32_t *scratch;
    size_t cap_scratch;
    bool nomem;                /* an allocation failed: results are void, the caller stops .. */
    bool *tell_nomem;          /* .. for which this is set too; may be NULL */
};

bool kvc_pool_init(struct kvc_pool *pool, const struct kvc_trace *trace, uint32_t page_tokens,
                   uint64_t pages, bool touch_moves);
void kvc_pool_clear(struct kvc_pool *pool);
/* Of an empty pool; rules are the caller's and stay. */
bool kvc_pool_set_rules(struct kvc_pool *pool, const struct kvc_pool_rules *rules);

/* Of an empty pool in LRU order that has its rules. KVC_ERR_INPUT .. tell what is wrong with the
 * policy. */
enum kvc_status kvc_pool_set_policy(struct kvc_pool *pool, const char *policy,
                                    bool uses_are_touches, const uint64_t *clock,
                                    struct kvc_error *err);
/* For a policy: pages are taken next for blocks up to this one of the path; 0: for none that it
 * could know. */
void kvc_pool_newcomer(struct kvc_pool *pool, struct kvc_path path, uint32_t to);
/* The policy, if any, learns that a request was admitted. */
void kvc_pool_arrive(struct kvc_pool *pool, const struct kvc_runs_request *request);
/* After blocks came in or lost a holder, the policy may have too much: true when some left for
 * by. */
bool kvc_pool_rest(struct kvc_pool *pool);

/* Pages that end inside blocks [0, b) of a path. */
uint64_t kvc_pool_pages(const struct kvc_pool *pool, uint64_t b);
/* Pages that by could take now: what others have reserved is not among them. */
uint64_t kvc_pool_available_by(const struct kvc_pool *pool);
static inline uint64_t kvc_pool_available(const struct kvc_pool *pool)
{
    return pool->rules ? kvc_pool_available_by(pool) : pool->plain + pool->queued;
}

/* End of the run of readable blocks that starts at block from; at most limit. from itself when
 * it is absent. */
uint32_t kvc_pool_reach(const struct kvc_pool *pool, struct kvc_path path, uint32_t from,
                        uint32_t limit);
/* Whether by, once it holds blocks [0, to), could take so many pages. */
bool kvc_pool_fits(struct kvc_pool *pool, struct kvc_path path, uint32_t to, uint64_t pages);
/* First range [*from, *to) at or after *from and before end that is neither stored nor on its way
 * in; false when there is none. */
bool kvc_pool_gap(const struct kvc_pool *pool, struct kvc_path path, uint32_t *from, uint32_t *to,
                  uint32_t end);

/* Takes hold of readable blocks [from, to) (all present) and marks them read. */
void kvc_pool_hold(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to);
/* Takes pages out of the plain pool, evicting as needed. The caller checked that enough are
 * available. */
void kvc_pool_take(struct kvc_pool *pool, uint64_t pages);
/* Of so many pages, how many by may take to store blocks; makes way for them in its own quota. */
uint64_t kvc_pool_room_by(struct kvc_pool *pool, uint64_t pages);
static inline uint64_t kvc_pool_room(struct kvc_pool *pool, uint64_t pages)
{
    uint64_t room = pool->plain + pool->queued;
    return pool->rules ? kvc_pool_room_by(pool, pages) : room < pages ? room : pages;
}
/* Charges tenant with pages, or takes them off: for what is taken and not yet published. */
static inline void kvc_pool_charge(struct kvc_pool *pool, uint32_t tenant, int64_t pages)
{
    if (pool->rules)
        pool->classes[pool->rules->class_of[tenant]].used += (uint64_t)pages;
}
/* Tenants with a hard quota keep no more without holder than that leaves. */
void kvc_pool_trim_classes(struct kvc_pool *pool);
static inline void kvc_pool_trim(struct kvc_pool *pool)
{
    if (pool->over)
        kvc_pool_trim_classes(pool);
}
/* When the next block's time is up, KVC_TIME_NONE: never; and those whose time it is leave. */
uint64_t kvc_pool_next_expiry(const struct kvc_pool *pool);
void kvc_pool_expire(struct kvc_pool *pool);
/* Isolated quotas are looked at once in so long: whether a round would evict, and one round. */
#define KVC_ROUND_NS UINT64_C(1000000000)
bool kvc_pool_round_due(const struct kvc_pool *pool);
void kvc_pool_round(struct kvc_pool *pool);
static inline void kvc_pool_give(struct kvc_pool *pool, uint64_t pages)
{
    pool->plain += pages;
}
/* Blocks [from, to), whose pages the caller has taken, become cached and held by it; pending: not
 * readable before kvc_pool_settle. True when some became copies. has_copies: whether the owner
 * holds copies on this path already. */
bool kvc_pool_publish(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                      uint32_t owner, bool pending, bool has_copies);
/* Gives up hold of blocks [from, to), deepest first; has_copies: some of them may be owner's
 * copies. */
void kvc_pool_release(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                      uint32_t owner, bool has_copies);
/* owner's pending blocks within [from, to) become readable and lose their holder. */
void kvc_pool_settle(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to,
                     uint32_t owner);
/* Moves unheld blocks [0, to) to the young end of the queue, deepest first. again: for a request
 * that has touched those of them that it found. */
void kvc_pool_touch(struct kvc_pool *pool, struct kvc_path path, uint32_t to, bool again);
/* Forgets unheld blocks in [from, to); not an eviction. */
void kvc_pool_drop(struct kvc_pool *pool, struct kvc_path path, uint32_t from, uint32_t to);
/* Blocks cached now that no hold ever read. */
uint64_t kvc_pool_never_read(const struct kvc_pool *pool);
/* Checks every invariant; NULL when all hold, else what does not. Slow, for tests. */
const char *kvc_pool_check(const struct kvc_pool *pool);

#endif
