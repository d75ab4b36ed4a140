/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files of the replay: one run's state. docs/replay.md defines what it does.
 *
 *   replay.c   the call: checks, one run and those it is held against, the result
 *   engine.c   a run's event loop (engine_setup.c: what it starts with)
 *   requests.c they arrive, are sent to a replica, and end
 *   replica.c  one engine instance: accounts a step, jumps over decoding (pipeline.c: when
 *              prefill leaves the last stage)
 *   schedule.c what its next step computes, and the pages for it (waiting.c: who is admitted next)
 *   tiers.c    tiers below HBM: lookup, loads, stores (tiers_setup.c: their links and pools;
 *              tiers_admission.c: what they refuse; tiers_links.c: transfers; tiers_fetch.c: into
 *              host memory, while a request waits)
 *   misses.c   what a request hit, and one cause for each token that it did not
 *   collect*.c the result record; cost.c what it costs, explain.c what it rests on, trust.c how
 *              far it can be trusted (slower.c: formats and kernels that take longer than others)
 *
 * They stand on pool*.c (KV that is held, cached and goes), links*.c (flows that share links),
 * tenants*.c (rules) and meter.c, timeline.c (levels over time), which know no engine.
 */
#ifndef KVC_SIM_ENGINE_H
#define KVC_SIM_ENGINE_H

#include "models/link_use.h"
#include "policies/ordering/ordering.h"
#include "policies/plugins/plugin.h"
#include "sim/replay/arrivals.h"
#include "sim/replay/links.h"
#include "sim/namespaces.h"
#include "sim/replay/pool.h"
#include "sim/scenario/scenario.h"
#include "sim/replay/tenants.h"
#include "sim/replay/timeline.h"

#define KVC_NONE UINT32_MAX
#define KVC_LOWER_TIERS 3 /* dram, nvme, remote */
#define KVC_MAX_LINK_CLASSES 16
#define KVC_PATH_ROWS (2 + KVC_LOWER_TIERS) /* the caller's, publishing, and each tier's stores */

/* A request on its way. Jobs are pooled; index = slot. */
struct kvc_job {
    uint32_t request, replica, tenant;
    uint32_t priority;          /* lower goes first */
    uint32_t input, output;     /* L and O */
    uint32_t known;             /* N: L + generated */
    uint32_t computed;          /* c; while decoding see base */
    uint32_t generated;
    uint32_t leaf, path_blocks; /* of its path; KVC_SEG_NONE and 0 without ids */
    uint32_t held;              /* blocks [0, held) are held: hit or published */
    uint32_t hit_blocks;        /* h */
    uint32_t offered;           /* blocks that the first lower tier was offered since admission */
    uint32_t hit_pages;         /* of those blocks */
    uint32_t chunk;             /* tokens scheduled in the step under way (prefill) */
    uint32_t peak;              /* most c before a preemption */
    uint32_t again;             /* leading blocks of its path that an earlier arrival asked for */
    uint32_t arrived_before;    /* those of the prompt */
    uint32_t known_before;      /* the same, whatever the namespace */
    uint64_t alloc_pages;       /* all it holds, hits included */
    int64_t base;               /* decoding: c = base + replica's finished steps */
    uint64_t order;             /* admission sequence; identifies this admission */
    uint64_t queued_ns, parked_ns, first_scheduled_ns;
    uint64_t came_ns;           /* to where the scheduler sees it: queued, or a fetch's end */
    uint32_t fetch;             /* 1 + its fetch; 0: none */
    uint64_t host_ns;           /* of the steps that computed for it */
    uint64_t late_ns;           /* after a round's end: its batch is behind in the pipeline */
    uint32_t prev, next;        /* running list or a queue */
    uint32_t loads;             /* transfers it waits for */
    uint32_t load_tokens;       /* T */
    bool decoding, has_copies, admitted, running;
    bool waits;                 /* for an order of requests: it is in the queue .. */
    uint32_t told;              /* .. output tokens it was told of .. */
    double place, rank;         /* .. of its class, where in the queue, the rank as last asked .. */
    struct {                    /* .. and what it would find, unless that is no longer so */
        bool known;
        uint32_t hbm, total;    /* blocks */
        uint32_t usable, any;   /* tokens: in HBM, in any tier */
    } found;
};

/* Entries of a replica's step heaps: something happens to a job at step. */
struct kvc_step_entry {
    uint64_t step, order;
    uint32_t job;
};

struct kvc_step_heap {
    struct kvc_step_entry *v;
    size_t n, cap;
};

struct kvc_engine;

/* What a pool evicted, until the tier that receives it is offered it. */
struct kvc_evictions {
    struct kvc_engine *engine;
    uint32_t replica, tier; /* replica: for which it made room */
    uint32_t pieces;        /* list, latest first */
};

struct kvc_queue { /* of jobs, by prev and next */
    uint32_t head, tail, n;
};

struct kvc_replica {
    uint32_t id, node;
    struct kvc_pool pool;
    struct kvc_queue waiting, ready, running;
    struct kvc_queue unheard; /* came when the step after that under way was planned already .. */
    uint32_t unheard_before;  /* .. so many of them before the one under way began */
    struct kvc_ordering *order; /* NULL: first come, first served */
    bool ranks_change;          /* its, while requests wait */
    uint32_t ranked, front;     /* how many waited when ranks were last asked, who was first .. */
    bool unranked;              /* .. and whether somebody came or may find another hit since */
    uint64_t heeded[1 + KVC_LOWER_TIERS]; /* changes of its pools that those who wait know of */
    uint32_t parked, on_the_way;
    uint64_t fetching_tokens; /* of fetches that the scheduler has not looked at */
    uint64_t queued_tokens;  /* prompt tokens not yet computed */
    uint64_t prefill_context;/* c of running jobs that do not decode */

    /* Decoding jobs as one batch. */
    uint32_t n_decode;
    int64_t base_sum;        /* of their bases */
    uint32_t *phase;         /* how many need a page when (phase + steps) % P == 0 */
    struct kvc_step_heap finishes, publishes;

    /* The step or stretch under way. */
    uint64_t steps;          /* finished */
    uint64_t target;         /* finished steps when due */
    uint64_t allocated;      /* pages are taken up to the start of this step, 1-based */
    uint64_t due_ns, started_ns;
    uint64_t through_ns;     /* pipeline stages: when all prefill so far has left the last one */
    bool busy, mixed, retry, batch_changed;
    bool alone;              /* the step computes prompts only: decodes wait */
    bool blocked;            /* nobody is admitted before something changes */
    bool looked;             /* since the one in front was looked up and didn't fit */
    uint64_t promised;       /* pages parked and ready jobs may still take (KVC_RESERVE_FULL) */
    double output_ratio;     /* share of outputs that room is kept for (KVC_RESERVE_ESTIMATED) .. */
    uint64_t ratio_step;     /* .. as of that step; it falls from there */
    uint64_t mixed_host_ns;
    uint32_t *chunk_jobs;    /* with a prefill chunk in the step under way, in running order */
    size_t n_chunks, cap_chunks;

    /* Anchor of the decode stretch. */
    bool anchored;
    uint64_t anchor_ns, anchor_step, anchor_context;
    uint32_t anchor_n;
    struct kvc_decode_cost cost;

    struct kvc_compiled compiled; /* kernels that no step waits for any more */
    uint64_t busy_ns;
    uint32_t h2d_link, d2h_link, both_link; /* both_link KVC_NONE: the directions don't share */
    struct kvc_evictions evictions;
    uint64_t requests, input_tokens, hit_tokens, preemptions;
    uint32_t peak_running;
    uint32_t heap_pos;
};

struct kvc_tier {
    const struct kvc_tier_config *config;
    struct kvc_pool *pools; /* one an instance */
    uint32_t instances;
    uint32_t *read_link, *write_link; /* nvme: per instance; remote: per replica; dram: NULL */
    struct kvc_evictions *evictions;  /* per instance, for the next tier where it takes them */
    uint32_t chunk_tokens;
    struct kvc_link_use read_use, write_use; /* of its own link; dram's: of the host link */
    uint64_t written_bytes, read_bytes, refused_bytes, hit_tokens;
    struct kvc_admission **admissions; /* per instance; NULL: all is stored */
    bool on_evict, selective;
};

/* Blocks [from, to) of the path that ends at leaf; pooled, in lists. */
struct kvc_piece {
    uint32_t leaf, from, to;
    uint32_t tenant; /* who is charged where they come to */
    uint32_t next;
};

/* A load or store under way; pooled, index = its links tag. */
struct kvc_transfer {
    uint32_t job;      /* load: who waits; KVC_NONE: a store */
    uint32_t tier, instance, replica;
    uint32_t pieces;   /* list */
    uint32_t again;    /* store: the job's */
    uint64_t staged_bytes; /* load: what goes from host memory to the GPU afterwards */
    uint32_t request;  /* store: whose; KVC_NONE: what the tier above evicted, as it is */
    uint32_t fetch;    /* 1 + the one it is of, whose end in time has tier KVC_LOWER_TIERS */
    uint64_t flow;     /* of a fetch */
    uint32_t next_free;
};

/* What is brought to host memory for a request that waits; pooled. */
struct kvc_fetch {
    uint32_t job, open;  /* open: reads under way */
    bool seen;           /* the scheduler has looked, and nothing is under way or held */
    uint64_t tokens;     /* it counts for so many among those under way */
    uint32_t transfer[KVC_LOWER_TIERS]; /* per tier; of host memory's place, the end in time */
    uint32_t from[KVC_LOWER_TIERS], to[KVC_LOWER_TIERS]; /* blocks that came from it */
    uint32_t next_free;
};

struct kvc_engine_segment { /* the trace's figures beside what changes, for one cache line */
    uint32_t parent, depth, len;
    uint32_t seen; /* leading blocks that some request has asked for */
    uint32_t ever; /* leading blocks that were ever published anywhere */
};

struct kvc_on_the_way {
    uint64_t time_ns;
    uint32_t job;
};

enum kvc_channel { /* of the timeline: levels first, then sums, then bytes of each link class */
    KVC_CHANNEL_RUNNING,
    KVC_CHANNEL_WAITING,
    KVC_CHANNEL_HBM_USED,
    KVC_CHANNEL_LEVELS,
    KVC_CHANNEL_ARRIVALS = KVC_CHANNEL_LEVELS,
    KVC_CHANNEL_INPUT_TOKENS,
    KVC_CHANNEL_HIT_TOKENS,
    KVC_CHANNEL_MISSED,
    KVC_CHANNEL_LINKS = KVC_CHANNEL_MISSED + KVC_MISS_CAUSES
};

struct kvc_engine {
    const struct kvc_trace *trace;
    const struct kvc_scenario *sc;
    const struct kvc_replay_options *options;
    struct kvc_user_profile *user; /* NULL: none; the outermost run's */
    struct kvc_step_model *model;
    bool model_is_lent; /* by the run that this one is compared with, or by the caller */
    struct kvc_router router;
    struct kvc_routing routing;
    struct kvc_kv_room room; /* as the model's engine shares it out */
    uint64_t router_rng, front_ns, token_bytes;
    uint32_t block_tokens, page_tokens;
    uint64_t sequence_pages; /* that a running request holds beside its tokens' */
    uint32_t max_seqs;
    uint64_t now;

    struct kvc_replica *replicas;
    uint32_t n_replicas;
    uint32_t scheduling; /* the replica that is due now, while it accounts and schedules */
    uint32_t *due_heap; /* replica ids, earliest due first */
    uint32_t n_due;
    uint32_t looking;   /* the replica whose turn it is, KVC_NONE during other events */
    struct kvc_tier tiers[KVC_LOWER_TIERS];
    uint32_t first_tier; /* KVC_LOWER_TIERS: none below HBM */
    struct kvc_links *links;
    uint64_t host_latency_ns;

    struct kvc_job *jobs;
    size_t n_jobs, cap_jobs;
    uint32_t free_job;
    struct kvc_transfer *transfers;
    size_t n_transfers, cap_transfers;
    uint32_t free_transfer;
    struct kvc_piece *pieces;
    size_t n_pieces, cap_pieces;
    uint32_t free_piece;
    struct kvc_fetch *fetches;
    size_t n_fetches, cap_fetches;
    uint32_t free_fetch;
    bool fetches_early;        /* loads of the scheduler's go no deeper than host memory */
    uint64_t prefetch_limit;   /* tokens of a replica's */
    uint64_t orders, comings;

    struct kvc_arrivals *arrivals;
    struct kvc_on_the_way *way; /* ring of jobs between router and queue, in order of time */
    size_t way_head, way_n, way_cap;

    struct kvc_engine_segment *segments;
    /* Per segment: which instances of HBM and of each lower tier hold some of it, by bit; NULL
     * without the tier or with more than 64 instances. */
    uint64_t *where[1 + KVC_LOWER_TIERS];
    struct kvc_span *paths; /* scratch: KVC_PATH_ROWS rows of longest_path segments */
    uint32_t *seg_number, *seg_end; /* below a segment are those numbered from its own on to its
                                       end; NULL: no order asks */
    uint32_t longest_path, path_segments[KVC_PATH_ROWS]; /* in each row now, at its end */
    struct kvc_chunk *chunks; /* scratch for one step */
    size_t cap_chunks;
    struct kvc_route_view *views;

    struct kvc_request_result *results;
    uint32_t *admissions; /* requests in the order of their first admission */
    uint64_t n_admissions;
    struct kvc_tenants tenants;
    const struct kvc_namespaces *spaces; /* what trace is seen in; NULL: content is everybody's */
    uint32_t *seen_anywhere;             /* per segment of the trace behind them */
    uint64_t (*tenant_missed)[KVC_MISS_CAUSES];
    uint64_t missed[KVC_MISS_CAUSES];
    uint64_t hit_blocks, hit_requests, raw_hit_tokens, raw_hit_blocks;
    uint64_t arrived, done, events, steps;
    uint64_t crowded_out;       /* unservable for what others have reserved */
    uint64_t decoded_tokens;    /* whose KV a decode step wrote */
    uint64_t prefill_ns, decode_ns; /* busy time; steps that do both are split by tokens */
    uint64_t computed_tokens;   /* prompt tokens computed, repeats included */
    uint64_t most_step_tokens;  /* of the steps with prefill */
    uint64_t most_contexts;     /* of all that decode in a step */
    uint64_t hbm_only_prefill_ns;   /* without lower tiers; KVC_TIME_NONE: not known */
    uint64_t end_ns;
    struct kvc_timeline timeline;
    struct kvc_timeline tenant_timeline; /* per group of the meter: bytes, input and hit tokens */
    uint32_t *link_class; /* per link: which class, links of one name being one */
    uint32_t n_link_classes;
    uint64_t *class_bytes; /* moved up to the last completed bucket */
    uint64_t running_now, waiting_now;
    bool nomem;
    struct kvc_admission *failed; /* a tier's policy, which says why */
    bool late;                  /* the next event is beyond what is replayed */
};

/* What the run's step model is built from. */
struct kvc_engine_profile;
enum kvc_status kvc_engine_step_config(const struct kvc_engine *e, struct kvc_step_config *config,
                                       struct kvc_engine_profile *engine, struct kvc_error *err);
/* A run: trace, sc and options are the caller's; then run, or open and next until it is false; and
 * close, also when the others fail. next takes one event; false: nothing is left to do. */
enum kvc_status kvc_engine_run(struct kvc_engine *e, struct kvc_error *err);
enum kvc_status kvc_engine_open(struct kvc_engine *e, struct kvc_error *err);
bool kvc_engine_next(struct kvc_engine *e);
void kvc_engine_close(struct kvc_engine *e);

/* The path that ends at leaf, in scratch row row; valid until the row is used again. */
struct kvc_path kvc_engine_path(struct kvc_engine *e, uint32_t leaf, uint32_t row);
/* The replica becomes due at time_ns, or its due time changes. KVC_TIME_NONE: not due. */
void kvc_engine_due(struct kvc_engine *e, struct kvc_replica *r, uint64_t time_ns);

/* requests.c */
void kvc_engine_arrive(struct kvc_engine *e, uint32_t request);
/* The first of those on the way comes to its replica. */
void kvc_engine_routed(struct kvc_engine *e);
/* So many prompt tokens of a request were missed for cause. */
void kvc_engine_missed(struct kvc_engine *e, uint32_t request, enum kvc_miss_cause cause,
                       uint64_t tokens);
/* The request of a job that ended leaves; frees the job. */
void kvc_engine_ended(struct kvc_engine *e, uint32_t job, enum kvc_outcome outcome);

/* replica.c */
void kvc_replica_enqueue(struct kvc_engine *e, uint32_t job);
void kvc_replica_run_due(struct kvc_engine *e, struct kvc_replica *r);
/* Brings pages and published blocks up to the step under way at the engine's now. */
void kvc_replica_catch_up(struct kvc_engine *e, struct kvc_replica *r);
void kvc_replica_view(struct kvc_engine *e, struct kvc_replica *r, struct kvc_route_view *view);
/* A tier that the replica uses holds other blocks than before: who waits in front may fit. */
void kvc_replica_tier_changed(struct kvc_engine *e, struct kvc_replica *r);
/* A job's fetch has ended: it joins the queue. */
void kvc_replica_come(struct kvc_engine *e, uint32_t job);
/* A parked job's loads have ended. */
void kvc_replica_loaded(struct kvc_engine *e, uint32_t job);
/* What a waiting job would find now. */
struct kvc_reach;
void kvc_job_lookup(struct kvc_engine *e, const struct kvc_replica *r, const struct kvc_job *job,
                    struct kvc_reach *out);
/* Usable HBM hit, in tokens, of a request of known tokens when reach blocks are cached. */
uint32_t kvc_replica_usable(const struct kvc_engine *e, uint32_t reach, uint32_t known);

/* tiers.c */
struct kvc_reach { /* how far each tier takes a request; tier i serves blocks [start[i], end[i]) */
    uint32_t hbm;  /* blocks */
    uint32_t usable;
    uint32_t total; /* blocks over all tiers */
    uint32_t tokens; /* T; at most usable: nothing to load */
    uint32_t start[KVC_LOWER_TIERS], end[KVC_LOWER_TIERS];
};
void kvc_tiers_lookup(struct kvc_engine *e, const struct kvc_replica *r, struct kvc_path path,
                      uint32_t limit, uint32_t known, struct kvc_reach *out);
/* The same, no deeper than the scheduler loads from. */
void kvc_tiers_lookup_near(struct kvc_engine *e, const struct kvc_replica *r, struct kvc_path path,
                           uint32_t limit, uint32_t known, struct kvc_reach *out);
void kvc_tiers_touch(struct kvc_engine *e, const struct kvc_replica *r, struct kvc_path path,
                     uint32_t limit, uint32_t tenant);
/* A request is admitted for the first time: the policies of HBM and of the tiers learn of it. */
void kvc_tiers_arrive(struct kvc_engine *e, struct kvc_replica *r, uint32_t request);
void kvc_tiers_load(struct kvc_engine *e, uint32_t job, const struct kvc_reach *reach);
/* Offers the blocks that a job has computed so far to the first tier, when written through. */
void kvc_tiers_store(struct kvc_engine *e, struct kvc_replica *r, uint32_t job);
/* Offers what the replica's HBM evicted while it scheduled. */
void kvc_tiers_store_evicted(struct kvc_engine *e, struct kvc_replica *r);
void kvc_tiers_transfer_done(struct kvc_engine *e, uint32_t transfer);
/* Lets pools note in e->where[level] which segments they hold some of. */
bool kvc_engine_watch(struct kvc_engine *e, uint32_t level, struct kvc_pool *pool,
                      uint32_t instance);
/* Instance of a tier that a replica uses. */
uint32_t kvc_tier_instance(const struct kvc_engine *e, const struct kvc_tier *tier,
                           const struct kvc_replica *r);
/* The next tier below that there is; NULL at the last. */
const struct kvc_tier *kvc_tier_next(const struct kvc_engine *e, uint32_t tier);
/* Notes that a pool lost blocks [lo, hi) of seg, until the pass that evicts is over; user is a
 * struct kvc_evictions. */
void kvc_tiers_note_evicted(void *user, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t tenant);
/* When the next block's time is up in any pool, KVC_TIME_NONE: never; and those whose it is now
 * leave. */
uint64_t kvc_engine_next_expiry(const struct kvc_engine *e);
void kvc_engine_expire(struct kvc_engine *e, bool round);

/* tiers_admission.c */
enum kvc_status kvc_tier_admissions(const struct kvc_engine *e, struct kvc_tier *tier,
                                    struct kvc_error *err);
void kvc_tier_admissions_clear(struct kvc_tier *tier);
enum kvc_status kvc_tiers_admission_error(const struct kvc_engine *e, struct kvc_error *err);
/* A request is admitted or parked for the first time: the tiers of its replica see what it asks
 * for. */
void kvc_tiers_ask(struct kvc_engine *e, const struct kvc_replica *r, uint32_t request);
/* Up to which block of a piece that a store offers the tier takes it, at most piece.to; what it
 * lacks of the others is counted as refused. */
uint32_t kvc_tier_admitted(struct kvc_engine *e, const struct kvc_transfer *what,
                           struct kvc_piece piece, uint32_t row);

/* tiers_fetch.c */
/* Whether requests are fetched for as they come, and how much at once. */
void kvc_fetch_init(struct kvc_engine *e);
/* The job came to its replica: true when it waits outside the queue until its fetch has ended. */
bool kvc_fetch_begin(struct kvc_engine *e, struct kvc_replica *r, uint32_t job);
/* A transfer of a fetch, or its time, has ended. */
void kvc_fetch_done(struct kvc_engine *e, uint32_t transfer);
/* The scheduler looks at the job: what is fetched by now is for it to find. */
void kvc_fetch_seen(struct kvc_engine *e, struct kvc_replica *r, uint32_t job);
/* How many of tokens [from, to) of the job's path were fetched from the tier. */
uint64_t kvc_fetch_tokens(const struct kvc_engine *e, uint32_t job, uint32_t tier, uint64_t from,
                          uint64_t to);
/* The job is admitted or gives up. */
void kvc_fetch_forget(struct kvc_engine *e, uint32_t job);

/* tiers_links.c */
/* Starts a load's bytes on their way, which begin to move no sooner than ahead_ns from now; of a
 * staged one to host memory, from where move_on sends them further: false, there is nothing to
 * send. */
void kvc_tiers_move_up(struct kvc_engine *e, uint32_t transfer, uint64_t bytes,
                       uint64_t ahead_ns);
/* Calls kvc_fetch_done after so long. */
void kvc_tiers_wake_after(struct kvc_engine *e, uint32_t transfer, uint64_t ns);
/* Ends a fetch's transfer. Returns the bytes that have come. */
uint64_t kvc_tiers_cut(struct kvc_engine *e, uint32_t transfer);
bool kvc_tiers_move_on(struct kvc_engine *e, uint32_t transfer);
void kvc_tiers_move_down(struct kvc_engine *e, uint32_t transfer, uint64_t bytes, bool from_above);

/* tiers_setup.c */
/* The link of a tier (NULL: of host memory without one), its operations and devices. false: none
 * of that name. */
bool kvc_tier_link(const struct kvc_engine *e, const char *link, const struct kvc_tier_config *c,
                   struct kvc_link_profile *out);
double kvc_tier_op_bytes(const struct kvc_engine *e, const struct kvc_tier_config *c);
uint32_t kvc_tier_devices(const struct kvc_engine *e, const struct kvc_tier_config *c);
/* The pool, with its rules, goes by the policy; touches: told of touches, as below HBM. */
enum kvc_status kvc_engine_set_policy(struct kvc_engine *e, struct kvc_pool *pool,
                                      const char *policy, bool touches, struct kvc_error *err);
/* What one instance holds. */
uint64_t kvc_tier_instance_bytes(const struct kvc_scenario *sc, uint32_t tier);
enum kvc_status kvc_tiers_init(struct kvc_engine *e, struct kvc_error *err);
void kvc_tiers_clear(struct kvc_engine *e);

/* replay.c */
/* kvc_replay_run with step times that the caller has built, as the scenario has them, and keeps:
 * for many runs of one configuration. NULL: the run builds its own. */
enum kvc_status kvc_replay_run_with(struct kvc_result **out, const struct kvc_trace *trace,
                                    const struct kvc_scenario *scenario,
                                    const struct kvc_replay_options *options,
                                    struct kvc_step_model *model, struct kvc_error *err);

/* collect.c */
enum kvc_status kvc_collect(struct kvc_engine *e, struct kvc_result **out, struct kvc_error *err);

#endif
