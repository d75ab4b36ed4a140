/* SPDX-License-Identifier: Apache-2.0
 * What the policies by runs are made of: runs, the segment's list of its runs, and queues. */
#ifndef KVC_POLICIES_RUNS_INTERNAL_H
#define KVC_POLICIES_RUNS_INTERNAL_H

#include "policies/eviction/runs.h"

#define KVC_RUN_NONE UINT32_MAX
#define KVC_OPTIONS(table) .options = table, .n_options = sizeof(table) / sizeof((table)[0])

struct kvc_run {
    uint32_t seg, lo, hi;     /* blocks [lo, hi) of the segment */
    uint32_t shallower;       /* next run of the segment; also links free runs */
    uint32_t newer, older;    /* in its queue */
    uint32_t queue;
    uint32_t note;            /* the policy's: frequency, visited */
    uint64_t stamp;           /* of its last touch, where the policy orders by it */
    uint64_t key;             /* the policy's as well */
};

struct kvc_run_order {
    uint32_t newer, older;
};

/* What a touch reads of a segment, side by side: where little is shared, each is a memory
 * access. */
struct kvc_run_segment {
    uint32_t parent, len, depth;
    uint32_t deepest; /* its deepest run */
};

struct kvc_run_queue {
    uint32_t newest, oldest;
    uint64_t blocks;
};

struct kvc_runs_ops {
    const char *name;
    const struct kvc_policy_option *options;
    uint32_t n_options;
    uint32_t resident_queues; /* runs of these are resident, of later ones ghosts; 0: all are */
    uint32_t ghost_queues;    /* or: runs of these are ghosts, of later ones resident */
    bool wants_next;          /* requests come with next uses */
    bool (*start)(struct kvc_runs *c);
    /* Or NULL: before a request looks up the path to a segment; request and now_ns are set. */
    void (*arrive)(struct kvc_runs *c, uint32_t leaf);
    /* Or NULL: touches the path to a segment, instead of hit and miss; returns blocks found. */
    uint64_t (*whole)(struct kvc_runs *c, uint32_t seg);
    /* Or NULL: leading blocks of a segment that are resident, where not runs say so. */
    uint32_t (*lead)(const struct kvc_runs *c, uint32_t seg);
    /* Of policies with a heap: whether a goes before b. */
    bool (*first)(const struct kvc_runs *c, const struct kvc_run *a, const struct kvc_run *b);
    void (*hit)(struct kvc_runs *c, uint32_t run); /* all of a resident run */
    /* Takes in blocks [hi - j, hi) of those up to hi from lo on, none of them resident, and
     * returns j >= 1. ghost: the run that remembers all of [lo, hi), or KVC_RUN_NONE. */
    uint32_t (*miss)(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost);
    const struct kvc_order_ops *order; /* NULL: not for caches of engines */
};

/* The same policy in a cache of an engine (order.h). */
struct kvc_order_ops {
    /* Takes in blocks [lo, hi), none of them resident; there is room. ghost: as in miss. */
    void (*come)(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t ghost);
    /* Blocks that may go (kvc_order_free) leave: as many as are wanted at most where the rule takes
     * blocks and not more at once; returns how many, 0: the rule finds none. */
    uint32_t (*evict)(struct kvc_runs *c, uint32_t want);
    void (*use)(struct kvc_runs *c, uint32_t r);    /* or NULL: hit */
    void (*renew)(struct kvc_runs *c, uint32_t r);  /* or NULL: touched again by one request */
    void (*arrive)(struct kvc_runs *c, uint32_t leaf); /* or NULL: arrive, unless there is rest */
    void (*rest)(struct kvc_runs *c); /* or NULL: blocks came in, or more of them may go */
    /* Or NULL, kvc_queue_put_behind: gives the deeper part of a run that was cut its place. */
    void (*cut)(struct kvc_runs *c, uint32_t r, uint32_t deeper);
    void (*gone)(struct kvc_runs *c, uint32_t r);   /* or NULL: all of a run is about to leave */
    bool tree;   /* wants kids */
    bool single; /* wants segments of one block */
};

struct kvc_plugged;

/* A forest in segments of one block, and where they come from. */
struct kvc_runs_cut {
    uint32_t *end, *seg; /* by segment: behind its last block; by block: its segment. NULL: not
                            cut */
    uint32_t *len, *depth, *parent;
    const uint32_t *seg_len;
    void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired);
    void *left_user;
};

struct kvc_runs {
    const struct kvc_runs_ops *ops;
    uint64_t capacity, size; /* resident blocks */
    uint32_t n_segments;
    const uint32_t *seg_len, *seg_depth, *seg_parent; /* as given */
    struct kvc_run_segment *seg;
    struct kvc_run *run;
    size_t n_runs, room;
    uint32_t free;
    uint32_t scout; /* a victim to come, for speed only; may be any run */
    struct kvc_run_queue *queue;
    size_t n_queues;
    bool failed;
    struct kvc_error why; /* of its admission policy; else out of memory, or the plug-in's */
    bool expiring; /* what leaves now does so because of its age */
    void (*left)(void *user, uint32_t seg, uint32_t lo, uint32_t hi, bool expired);
    void *left_user;

    uint64_t clock;    /* touches of segments */
    uint32_t request;  /* 1 for the first */
    uint32_t session, tenant, leaf, input_tokens; /* of the request in hand */
    uint64_t now_ns;
    union kvc_option_value option[KVC_POLICY_OPTIONS]; /* as in the policy's table */
    uint32_t block_tokens;
    uint32_t hand;     /* sieve */
    double target;     /* arc's p */
    uint64_t small, ghosts, most; /* sizes the policy wants */
    uint64_t rng;            /* random, lecar */
    uint64_t *bits;          /* random: of resident blocks */
    uint32_t *first_block;   /* by segment */
    uint32_t *table;         /* the resident ones */
    size_t table_room;
    double decay;            /* lecar: ln of its d */
    struct kvc_run_order *order; /* by run */
    size_t order_room;
    uint32_t order_newest, order_oldest, notes;
    uint32_t *child, *sibling;   /* priority, by segment */
    struct kvc_runs_session *sessions; /* thinktime */
    size_t n_sessions, session_room;
    uint32_t *session_of, free_session; /* by name; the first free one + 1, or 0 */
    size_t n_ids, id_room;
    uint32_t *by_return[2], n_live;
    size_t return_room[2];
    uint64_t sum_ns, pauses;
    bool awaits; /* not all that was taken as the request arrived held known blocks */
    const uint32_t *next;    /* of the request in hand */
    struct kvc_admission *admission; /* NULL: all is stored */
    uint64_t limit;          /* blocks of the request's path that may be stored */
    uint8_t *sketch;   /* wtinylfu, by segment */
    uint64_t sample, counted;
    uint32_t *below;   /* by segment; policies that take a request as a whole */
    uint64_t cost_blocks;
    uint32_t *path;    /* of the request, root first */
    size_t path_room;
    uint32_t *touches; /* by segment */
    uint64_t *used;    /* bitmap of queues with something in them */
    uint64_t *history; /* lruk, by segment: clock of the last K touches, 0: none */
    uint64_t floor;    /* gdsf's L */
    uint32_t ordered_for; /* request for which the heap is in order */
    uint32_t *heap;    /* of runs */
    size_t n_heap, heap_room;
    struct kvc_plugged *plugged; /* NULL: a built-in policy */
    struct kvc_runs_cut cut;
    /* In an engine's cache. */
    uint32_t turn;         /* uses that belong together have one; else the request */
    uint32_t *tag;         /* by run: whose it is, and in the lowest bit whether it is held; or
                              NULL */
    size_t tag_room;
    uint32_t tag_new;      /* of runs that are made now */
    const bool *allowed;   /* by whose: may go; NULL: all */
    uint64_t in_use;       /* blocks of the cache taken as the request arrived, by whatever */
    uint32_t *kids;        /* by segment: segments with blocks anywhere below */
    uint32_t match, match_lo; /* radix: where the last blocks told of are, if they were new */
    bool matched;             /* and whether some of this turn were known */
    struct { uint32_t seg, hi; } newcomer; /* the deepest block that room is made for; seg NONE:
                                              none */
};

static inline uint32_t kvc_run_blocks(const struct kvc_runs *c, uint32_t r)
{
    return c->run[r].hi - c->run[r].lo;
}

static inline bool kvc_run_resident(const struct kvc_runs *c, uint32_t r)
{
    uint32_t queue = c->run[r].queue;
    return queue >= c->ops->ghost_queues &&
           (!c->ops->resident_queues || queue < c->ops->resident_queues);
}

/* What a policy is told of the request in hand. */
static inline struct kvc_policy_request kvc_runs_said(const struct kvc_runs *c)
{
    return (struct kvc_policy_request){
        .index = c->request - 1,
        .time_ns = c->now_ns,
        .segment = c->leaf,
        .blocks = c->leaf == KVC_RUN_NONE ? 0 : c->seg_depth[c->leaf] + c->seg_len[c->leaf],
        .input_tokens = c->input_tokens,
        .session = c->session,
        .tenant = c->tenant,
    };
}

/* Resident blocks [lo, hi) of the segment leave: said once for each that does. */
static inline void kvc_run_left(const struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi)
{
    if (c->left)
        c->left(c->left_user, seg, lo, hi, c->expiring);
}

/* n newcomers in front of a run take the place of its deepest n, one after the other. */
static inline void kvc_run_slide(struct kvc_runs *c, uint32_t r, uint32_t n)
{
    struct kvc_run *run = &c->run[r];
    kvc_run_left(c, run->seg, run->hi - n, run->hi);
    run->lo -= n;
    run->hi -= n;
}

/* That part of a number, rounded down as if the part were an exact decimal of 6 places. */
static inline uint64_t kvc_share(uint64_t of, double part)
{
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)((u128)of * (uint64_t)(part * 1e6 + 0.5) / 1000000);
}

static inline bool kvc_runs_tags_alike(const struct kvc_runs *c, uint32_t a, uint32_t b)
{
    return !c->tag || c->tag[a] == c->tag[b];
}

static inline uint32_t kvc_least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* The first blocks of a segment that the request in hand may store. */
static inline uint32_t kvc_runs_may_store(const struct kvc_runs *c, uint32_t seg)
{
    return c->limit > c->seg[seg].depth ? kvc_least(c->seg[seg].len, c->limit - c->seg[seg].depth)
                                        : 0;
}

/* ---- queues ---- */

void kvc_queue_take(struct kvc_runs *c, uint32_t r);
/* As the newest; joins the newest there is when that is the next deeper piece with the same note.
 * Returns the run that now holds the blocks. */
uint32_t kvc_queue_put(struct kvc_runs *c, uint32_t queue, uint32_t r);
/* The same, for whoever says what is alike. Where another run than r is returned, the caller ends
 * r. */
static inline uint32_t kvc_queue_join(struct kvc_runs *c, uint32_t queue, uint32_t r,
                                      bool (*alike)(const void *user, uint32_t n, uint32_t r),
                                      const void *user)
{
    struct kvc_run_queue *q = &c->queue[queue];
    struct kvc_run *run = &c->run[r];
    uint32_t n = q->newest;
    q->blocks += run->hi - run->lo;
    run->queue = queue;
    if (n != KVC_RUN_NONE && c->run[n].seg == run->seg && c->run[n].lo == run->hi &&
        alike(user, n, r)) {
        c->run[n].lo = run->lo;
        return n;
    }
    run->newer = KVC_RUN_NONE;
    run->older = n;
    *(n != KVC_RUN_NONE ? &c->run[n].newer : &q->oldest) = r;
    q->newest = r;
    return r;
}

/* A part that was cut off a run's deep end becomes its next older. */
void kvc_queue_put_behind(struct kvc_runs *c, uint32_t r, uint32_t part);

/* ---- runs; each keeps size and the queues' sums right ---- */

/* New blocks as the newest of a queue. The run that now holds them, KVC_RUN_NONE without memory. */
uint32_t kvc_run_add(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t queue,
                     uint32_t note);
/* Forgets the deepest n blocks of a run, which vanishes with its last. */
void kvc_run_drop(struct kvc_runs *c, uint32_t r, uint32_t n);
/* Moves the deepest n blocks of a run to another queue, as its newest. */
void kvc_run_move(struct kvc_runs *c, uint32_t r, uint32_t n, uint32_t queue, uint32_t note);
/* The oldest blocks of a queue go until it has so many at most. */
void kvc_queue_trim(struct kvc_runs *c, uint32_t queue, uint64_t most);
/* A run in no queue, linked into its segment; for policies with an order of their own. */
uint32_t kvc_run_new(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi);
void kvc_run_free(struct kvc_runs *c, uint32_t r);
/* Makes two of a run; it keeps the shallower part. The deeper one, KVC_RUN_NONE without memory. */
uint32_t kvc_run_cut(struct kvc_runs *c, uint32_t r, uint32_t at);
/* The deepest run with blocks before position at. */
uint32_t kvc_run_before(const struct kvc_runs *c, uint32_t seg, uint32_t at);
/* The run just below [.., hi) of the segment that begins at hi, or KVC_RUN_NONE. */
uint32_t kvc_run_at(const struct kvc_runs *c, uint32_t seg, uint32_t lo);

/* The segments to leaf into path, root first; returns how many, 0 without memory. */
uint32_t kvc_runs_path(struct kvc_runs *c, uint32_t leaf);

/* For want newcomers, room for how many in a cache of one queue: without an eviction while there
 * is some, else the oldest run makes room for at most its own length. */
uint32_t kvc_make_room(struct kvc_runs *c, uint32_t want);

/* ---- the heap; each run in it is in no queue ---- */

void kvc_heap_put(struct kvc_runs *c, uint32_t r);
/* New blocks come into the heap, touched now. */
void kvc_heap_come(struct kvc_runs *c, uint32_t seg, uint32_t lo, uint32_t hi, uint32_t note,
                   uint64_t key);
void kvc_heap_take(struct kvc_runs *c, uint32_t r);
/* The run at this place may belong higher or lower. */
void kvc_heap_sift(struct kvc_runs *c, size_t place);
/* Puts all in order when the order itself has changed. */
void kvc_heap_again(struct kvc_runs *c);
/* A run, or the top, loses its n deepest blocks. */
void kvc_heap_shorten(struct kvc_runs *c, uint32_t r, uint32_t n);
void kvc_heap_shorten_top(struct kvc_runs *c, uint32_t n);

bool kvc_queues_grow(struct kvc_runs *c, size_t n);

/* ---- segments of one block ---- */

/* Before anything else is made of the forest. */
bool kvc_runs_cut(struct kvc_runs *c);
void kvc_runs_cut_clear(struct kvc_runs_cut *cut);
/* The segment by which the cache knows the end of a given one, and back. */
static inline uint32_t kvc_runs_leaf(const struct kvc_runs *c, uint32_t seg)
{
    return c->cut.end && seg != KVC_RUN_NONE ? c->cut.end[seg] - 1 : seg;
}

static inline uint32_t kvc_runs_segment(const struct kvc_runs *c, uint32_t seg)
{
    return c->cut.seg ? c->cut.seg[seg] : seg;
}
void kvc_lruk_note(struct kvc_runs *c, uint32_t seg); /* a touch begins */

/* ---- in an engine's cache (order.c) ---- */

bool kvc_order_tag(struct kvc_runs *c, uint32_t r); /* of a new run; false: no memory */
/* Whether a run may leave: nobody holds it, and it is of those whose blocks go now. */
static inline bool kvc_order_free(const struct kvc_runs *c, uint32_t r)
{
    return !(c->tag[r] & 1) && (!c->allowed || c->allowed[c->tag[r] >> 1]);
}

/* And nothing lies below it. */
static inline bool kvc_order_leaf(const struct kvc_runs *c, uint32_t r)
{
    uint32_t seg = c->run[r].seg;
    return c->seg[seg].deepest == r && !c->kids[seg] && kvc_order_free(c, r);
}

/* Of those that may leave, the oldest of a queue and the first of the heap, or KVC_RUN_NONE. */
uint32_t kvc_order_oldest(const struct kvc_runs *c, uint32_t queue);
uint32_t kvc_order_first(const struct kvc_runs *c,
                         bool (*may_go)(const struct kvc_runs *c, uint32_t r));
/* The deepest blocks of a run leave, want at most: out of its queue or the heap. Returns how many;
 * of KVC_RUN_NONE 0. */
uint32_t kvc_order_leave(struct kvc_runs *c, uint32_t r, uint32_t want);
/* To the young end of its queue; the run gets the clock in the heap. */
void kvc_order_requeue(struct kvc_runs *c, uint32_t r);
void kvc_order_restamp(struct kvc_runs *c, uint32_t r);

/* A policy by name and its options; of a plug-in: usage. */
enum kvc_status kvc_runs_parse(const char *spec, const struct kvc_runs_ops **ops,
                               union kvc_option_value *option, struct kvc_error *err);

extern const struct kvc_runs_ops kvc_runs_lru, kvc_runs_fifo, kvc_runs_sieve, kvc_runs_lfu,
    kvc_runs_plfu, kvc_runs_lenaware, kvc_runs_s3fifo, kvc_runs_twoq, kvc_runs_arc, kvc_runs_ttl,
    kvc_runs_ttlfixed, kvc_runs_lruk, kvc_runs_gdsf, kvc_runs_hyperbolic,
    kvc_runs_watermark, kvc_runs_random, kvc_runs_wtinylfu, kvc_runs_radix, kvc_runs_costaware,
    kvc_runs_lirs, kvc_runs_lecar, kvc_runs_priority, kvc_runs_thinktime, kvc_runs_optforced;

#endif
