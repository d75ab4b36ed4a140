/* SPDX-License-Identifier: Apache-2.0
 * State shared by the parts of the slow replay. */
#ifndef KVC_TESTS_TWIN_INTERNAL_H
#define KVC_TESTS_TWIN_INTERNAL_H

#include "tests/twins/replay_twin.h"

#define TWIN_NONE UINT32_MAX

struct twin_ttl { /* ns KVC_TIME_NONE: for ever */
    uint64_t ns;
    bool down; /* what leaves by it goes to the tier below */
};

struct twin_rule { /* what holds for a tenant; level 0 is HBM */
    uint64_t quota[4], reserve[4]; /* pages or blocks */
    enum kvc_quota_mode mode;
    uint32_t priority;
    struct twin_ttl ttl[4];
};

/* One copy of one trace block in one replica's HBM, or (node NONE) one free anonymous page. */
struct copy {
    uint32_t node, pages, holders, tenant;
    uint64_t touched_ns, inserted;
    struct twin_ttl *ttl;         /* the longest of those who touched it */
    struct copy *older, *younger; /* copies of the same node */
    struct copy *q_prev, *q_next; /* in the queue of copies without holder */
    bool queued;
};

struct copy_list {
    struct copy *oldest, *youngest;
};

enum req_state { REQ_AWAY, REQ_WAITING, REQ_PARKED, REQ_READY, REQ_RUNNING, REQ_DONE };

struct req {
    uint32_t index, tenant; /* in the trace */
    uint32_t L, O, N, generated;
    uint32_t c, c_peak;     /* computed tokens; the most ever */
    uint32_t sched;         /* tokens of the step in progress */
    uint32_t *path, n_path; /* publishable blocks as nodes, root first */
    uint32_t n_full;        /* full blocks of the prompt */
    uint32_t asked;         /* leading full prompt blocks an earlier arrival asked for */
    uint32_t shared;        /* leading blocks of the path that an earlier arrival's path has */
    uint32_t usable, h, pub;
    uint32_t offered; /* blocks offered to the first lower tier since admission */
    uint64_t new_pages, anon;
    uint64_t beside; /* pages among anon that are no token's */
    struct copy **held; /* [0, pub) */
    enum req_state state;
    uint32_t replica, lane;
    bool counted, computed_once;
    bool behind; /* preempted, and no token sampled since */
    uint64_t arrival, first_start, first_token, last_token;
    uint64_t parked_at, load_ns, load_before_first;
    uint64_t host_ns, late_ns, first_late;
    uint32_t load_T, loads_open;
    uint64_t park_order;
    bool fetching;       /* for it, and the scheduler has not looked */
    uint32_t fetch_open; /* reads under way */
    uint64_t fetch_tokens, place;
    uint32_t fetch_transfer[3], fetched_from[3], fetched_to[3]; /* by tier; 0: the end in time */
    double rank; /* as last asked for */
    struct kvc_request_result *result;
};

struct reqs { /* a list in order */
    struct req **at;
    uint32_t n, cap;
};

struct twin_use_of_kernels {
    uint32_t size;
    bool rows, padded; /* 16 divides them */
};

struct replica {
    uint32_t index;
    struct copy_list *nodes; /* per node */
    struct copy *q_head, *q_tail;
    uint64_t plain, queue_pages;
    struct twin_order *order; /* NULL: the queue is all there is to it */
    bool fifo;                /* in the order of insertion */
    uint64_t inserted;
    struct reqs running, waiting, ready, parked, away;
    struct reqs late, next; /* came during the step under way, and during the one before */
    bool busy, alone; /* alone: the step computes prompts only */
    double ratio;     /* of outputs that room is kept for */
    int64_t falls;    /* decode steps since it was set */
    uint64_t due; /* step end when busy, wake-up when idle, NONE */
    uint64_t through; /* pipeline stages: when all prefill so far has left the last one */
    /* the pure-decode stretch */
    bool stretch;
    struct reqs members;
    uint64_t t0;
    __extension__ __int128 sum; /* 2^-48 ns */
    struct kvc_decode_cost cost;
    uint64_t host_ns; /* of the step under way */
    uint32_t *evicted; /* nodes that lost a copy in this allocation, for on-evict tiers */
    uint32_t *evicted_of; /* whose they were */
    uint32_t n_evicted, cap_evicted;
    double *served;      /* per tenant: its virtual token counter */
    uint64_t fetching; /* tokens of all that are fetched for */
    uint32_t left_queue; /* 1 + the tenant whose request left the queue last */
    uint32_t ranked;     /* how many waited when ranks were asked for */
    struct twin_use_of_kernels used[18 * 4];
    uint32_t n_used;
};

#define TWIN_DECODING UINT32_MAX /* instead of a tenant: what decoding requests take */

struct twin_tiers;

struct twin {
    const struct kvc_trace *trace;
    const struct kvc_scenario *sc;
    const struct twin_setup *setup;
    struct twin_result *out;
    uint32_t B, P;
    uint64_t now;
    uint32_t n_nodes, *seg_base;
    uint32_t n_req;
    struct req *req;
    bool *ever_published, *asked, *had; /* per node; had: on the path of an arrival so far */
    uint32_t *node_depth, *node_parent;
    struct replica *rep;
    uint32_t n_rep;
    struct { uint64_t time; bool join; } *pending; /* per request; time NONE = no event */
    uint64_t arrivals, in_system, parks, comings;
    uint64_t ended, end_ns; /* requests, and when the last client has its answer */
    uint64_t rng;
    /* closed arrivals */
    uint64_t *own_time; /* per request, in paced mode */
    uint32_t *next_turn, *first_of_session, n_sessions, next_session;
    bool *sent; /* per request, in rounds */
    uint32_t round, under_way;
    uint64_t round_began;
    struct twin_tiers *tiers;
    /* tenants */
    struct twin_rule *rules; /* per tenant */
    uint32_t n_tenants;
    uint32_t decoders; /* whose all requests are that decode now; TWIN_NONE: of several */
    bool ruled, limited[4]; /* by level: quotas, reservations or priorities count there */
    uint32_t *lost_to; /* per node: column of evicted_blocks */
};

/* ---- times of steps (twin_times.c) ---- */
/* What it has compiled before anybody asks. */
void times_start(struct twin *tw, struct replica *rep);
/* What a step of so many tokens waits for kernels that it is the first to use. */
uint64_t times_compile(struct twin *tw, struct replica *rep, uint64_t tokens);
/* When a step ends that only decodes n requests. */
uint64_t times_decode(struct twin *tw, struct replica *rep, uint32_t n, uint64_t context,
                      uint64_t *host);

/* ---- tenants (twin_tenants.c) ---- */
struct twin_use { /* of a pool, by tenant */
    uint64_t used, unheld;
    uint32_t unheld_blocks; /* some may have no page */
};
void tenants_create(struct twin *tw);
void tenants_destroy(struct twin *tw);
uint32_t tenant_of(const struct twin *tw, uint32_t request);
/* What by can have of a pool with so much plain room. */
uint64_t tenants_free(const struct twin *tw, int level, const struct twin_use *use,
                      uint64_t plain, uint32_t by);
/* Whether an unheld block of owner may go when by takes so much, and how early: lower goes first,
 * equals by age. */
bool tenants_own(const struct twin *tw, uint32_t owner, uint32_t by);
bool tenants_may_go(const struct twin *tw, int level, const struct twin_use *use, uint32_t owner,
                    uint32_t by, uint64_t take, uint64_t *rank);
/* How much a round takes of t: LMCache's server, docs/tenants.md. */
uint64_t tenants_round(const struct twin *tw, int level, const struct twin_use *use, uint32_t t);
#define TWIN_ROUND_NS UINT64_C(1000000000)
struct twin_ttl *tenants_longer(struct twin *tw, struct twin_ttl *now, int level, uint32_t by);
/* A block of owner's left a pool. */
void tenants_lost(struct twin *tw, int level, uint32_t node, uint32_t owner, uint32_t by);
#define TWIN_TTL (UINT32_MAX - 1) /* instead of by: its time was up */

void *twin_alloc(size_t n, size_t size);
/* The request is in its replica's queue. */
void twin_hear(struct twin *tw, struct replica *rep, struct req *r);
void reqs_push(struct reqs *list, struct req *r);
void reqs_push_front(struct reqs *list, struct req *r);
void reqs_remove(struct reqs *list, const struct req *r);

/* ---- HBM of one replica ---- */
uint64_t pool_free(const struct twin *tw, const struct replica *rep, uint32_t by);
/* Whether r, once it holds its first h blocks, can have so many pages. */
bool pool_fits(const struct twin *tw, const struct replica *rep, const struct req *r, uint32_t h,
               uint64_t pages);
uint64_t pool_next_expiry(const struct replica *rep);
bool pool_round_due(const struct twin *tw, const struct replica *rep);
void pool_round(struct twin *tw, struct replica *rep);
void pool_expire(struct twin *tw, struct replica *rep);
uint32_t block_pages(const struct twin *tw, uint32_t block);
/* Leading blocks of the path with (b + 1) B <= n_tokens that are cached. */
uint32_t pool_run(const struct twin *tw, const struct replica *rep, const struct req *r,
                  uint32_t n_tokens);
uint32_t pool_usable(const struct twin *tw, uint32_t run, uint32_t n_tokens);
void pool_hold_hit(struct replica *rep, struct req *r, uint32_t h);
/* For blocks of the first tokens; 0: for nothing that becomes a block for sure. */
void pool_alloc(struct twin *tw, struct replica *rep, struct req *r, uint32_t by, uint64_t pages,
                uint32_t tokens);
/* The policies of HBM and of the tiers learn of a request. */
void pool_arrive(const struct twin *tw, struct replica *rep, const struct req *r);
/* Publishes blocks up to the last one whose tokens are all among the first c. */
void pool_publish(struct twin *tw, struct replica *rep, struct req *r, uint32_t c);
void pool_release(struct twin *tw, struct replica *rep, struct req *r);

/* ---- when they arrive (twin_arrivals.c) ---- */
void arrivals_plan(struct twin *tw);
void arrivals_client_sees_end(struct twin *tw, const struct req *r, uint64_t at);

/* ---- who waits (twin_waiting.c) ---- */
/* Who is looked at next; first: in this step. */
struct req *waiting_front(struct twin *tw, struct replica *rep, bool first);
/* Before it is there. */
void waiting_joins(struct twin *tw, struct replica *rep, const struct req *r);
/* admitted: for the first time. */
void waiting_leaves(struct replica *rep, const struct req *r, bool admitted);

/* ---- scheduler ---- */
void step_due(struct twin *tw, struct replica *rep);
/* Something can run now, unless a step is under way. */
void step_wake(struct twin *tw, struct replica *rep);
void twin_end(struct twin *tw, struct req *r, enum kvc_outcome outcome);

/* Rules of the scenario (twin_rules.c). */
#define TWIN_RATIO 0.7
bool twin_decodes(const struct twin *tw, const struct req *r);
/* Pages r needs beside its hit to be admitted with now tokens. */
uint64_t rules_need(const struct twin *tw, const struct replica *rep, const struct req *r,
                    uint64_t now);
/* New pages a request must own beyond its hit to have computed c tokens. */
uint64_t pages_for(const struct twin *tw, const struct req *r, uint64_t c);
struct req *rules_victim(const struct twin *tw, const struct replica *rep);
void rules_guess_again(struct replica *rep);

/* ---- tiers below HBM ---- */
struct reach { /* what a lookup finds */
    uint32_t hbm_run, run; /* blocks in HBM, blocks over all tiers */
    uint32_t usable, T;    /* tokens; T <= usable: no load */
    uint32_t from[3], to[3]; /* blocks each tier adds */
    uint32_t serves[3];      /* tokens it would load */
};
void tiers_create(struct twin *tw);
void tiers_destroy(struct twin *tw);
void tiers_reach(const struct twin *tw, const struct replica *rep, const struct req *r,
                 uint32_t n_tokens, struct reach *out);
/* The same without what the scheduler can't load. */
void tiers_reach_near(const struct twin *tw, const struct replica *rep, const struct req *r,
                      uint32_t n_tokens, struct reach *out);
void tiers_ask(struct twin *tw, const struct replica *rep, const struct req *r);
void tiers_arrive(const struct twin *tw, const struct replica *rep, const struct req *r);
void tiers_touch(struct twin *tw, const struct replica *rep, const struct req *r);
void tiers_load(struct twin *tw, struct replica *rep, struct req *r, const struct reach *reach);
void tiers_after_step(struct twin *tw, struct replica *rep, struct req *r);
void tiers_after_evict(struct twin *tw, struct replica *rep);
uint64_t tiers_next(const struct twin *tw);
uint64_t tiers_next_expiry(const struct twin *tw);
bool tiers_round_due(const struct twin *tw);
void tiers_expire(struct twin *tw, bool round);
/* twin_fetch.c: whether requests are fetched for as they come; one comes, true: it waits outside
 * the queue; one is looked at. Tokens of [from, to) that came from a tier. */
bool twin_fetches(const struct twin *tw);
bool fetch_begin(struct twin *tw, struct replica *rep, struct req *r);
void fetch_seen(struct twin *tw, struct replica *rep, struct req *r);
uint64_t fetch_share(const struct twin *tw, const struct req *r, int k, uint64_t from, uint64_t to);
/* It comes to where its scheduler sees it. */
void twin_come(struct twin *tw, struct req *r);
void tiers_advance(struct twin *tw); /* one transfer that ends now */
void step_load_done(struct twin *tw, struct req *r);

#endif
