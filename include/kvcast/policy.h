/* SPDX-License-Identifier: Apache-2.0
 *
 * For authors of cache policies: everything a plug-in needs, and nothing to link against.
 *
 * A plug-in is a shared object (cc -shared -fPIC) with one exported function, kvc_policy_plugin. It
 * is loaded where a policy's name is taken and a path is given: kvcast ceiling --policy ./mine.so.
 * 'kvcast policy new' writes one to begin with, 'kvcast policy check' judges it; docs/plugins.md
 * is the tutorial.
 *
 * Stability: structs here only ever grow at their end, and each says how long it is (struct_size).
 * A change of any other kind makes another KVC_POLICY_ABI, which an older plug-in is refused by,
 * and the other way round.
 *
 * Threads: the state that create returns belongs to one run and is used by one thread at a time;
 * several runs go on at once, so a plug-in must not write to global variables.
 */
#ifndef KVCAST_POLICY_H
#define KVCAST_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVC_POLICY_ABI 1

#if defined(__GNUC__)
#define KVC_POLICY_EXPORT __attribute__((visibility("default")))
#else
#define KVC_POLICY_EXPORT
#endif

/* ---- options: one table makes flags, their checks, help and 'kvcast policy list' ------------- */

enum kvc_option_kind {
    KVC_OPTION_COUNT = 1,  /* a whole number; value.count */
    KVC_OPTION_NUMBER = 2, /* any number; value.number */
    KVC_OPTION_TIME = 3    /* with a unit, "10m"; value.time_ns */
};

union kvc_option_value {
    uint64_t count;
    double number;
    uint64_t time_ns;
};

/* Given as --policy NAME:name=value[:name=value]. */
struct kvc_policy_option {
    const char *name;
    uint32_t kind;            /* enum kvc_option_kind */
    const char *default_text; /* as a user would write it */
    double min, max;          /* both allowed; of times in ns */
    const char *help;
};

/* ---- a plug-in ------------------------------------------------------------------------------- */

enum kvc_policy_kind {
    KVC_POLICY_EVICTION = 1,  /* ops: struct kvc_evict_ops */
    KVC_POLICY_ADMISSION = 2, /* ops: struct kvc_admission_ops */
    KVC_POLICY_ROUTING = 3,   /* ops: struct kvc_router_ops */
    KVC_POLICY_ORDERING = 4   /* ops: struct kvc_ordering_ops */
};

struct kvc_policy {
    uint32_t abi;         /* KVC_POLICY_ABI */
    uint32_t struct_size; /* sizeof(struct kvc_policy) */
    uint32_t kind;        /* enum kvc_policy_kind */
    uint32_t n_options;
    const char *name;     /* of small letters, digits and '-'; no built-in policy's */
    const char *summary;  /* one line: what goes, what is stored, or who is served first */
    const char *source;   /* paper or system it is from; NULL: your own */
    const struct kvc_policy_option *options;
    const void *ops;      /* the table for this kind */
};

/* The one symbol that a plug-in exports. What it returns must outlive every run. */
KVC_POLICY_EXPORT const struct kvc_policy *kvc_policy_plugin(void);

/* ---- eviction --------------------------------------------------------------------------------- *
 *
 * A cache holds blocks of prompts. Prompts share beginnings, so blocks form trees; a segment is a
 * chain of blocks that the same requests pass through. A request touches all blocks of its path
 * once, the deepest first (engines free the tail first): one that is resident is touched, another
 * is stored, and when the cache is full a victim makes room for it first.
 *
 * A policy handles pieces: neighbouring blocks of one segment with the same history. It never has
 * to cut or walk blocks: the host does, and a piece of a thousand blocks costs what one block
 * costs. Within a piece the deepest block is the oldest, and is the first to go.
 *
 * A handle stands for a piece until its last block is gone, or until put or rank join it to its
 * neighbour and return another handle. Using it after that fails the run, with a message; so does
 * every other breach of what is written here. */

typedef uint64_t kvc_piece;
#define KVC_PIECE_NONE ((kvc_piece)0)
#define KVC_GHOST_NONE UINT32_MAX
#define KVC_NEVER UINT64_MAX
#define KVC_NO_ID UINT32_MAX

#define KVC_PIECE_BYTES_MOST 256
#define KVC_QUEUES_MOST 4096

enum kvc_evict_flag {
    KVC_EVICT_CLOSED = 1,  /* promises that no block stays when one before it in its prompt goes;
                              the conformance kit holds it to that */
    KVC_EVICT_SINGLE = 2,  /* wants pieces of one block, of the same segments; slow, needed where
                              blocks of a piece differ */
    KVC_EVICT_TOUCHES = 4, /* reads info->touches. What is not read need not keep pieces apart */
    KVC_EVICT_HISTORY = 8, /* reads tenant, times and requests of info */
    KVC_EVICT_ORACLE = 16  /* reads next_use, which only bounds without time can tell */
};

struct kvc_piece_info {
    uint32_t segment, lo, hi;   /* blocks [lo, hi) of the segment */
    uint32_t depth;             /* blocks before block lo in its prompt */
    uint32_t tenant;            /* who stored it; KVC_EVICT_HISTORY, else KVC_NO_ID */
    uint32_t touches;           /* since stored, storing counted; KVC_EVICT_TOUCHES */
    uint64_t stored_ns, touched_ns;           /* when stored and last touched; KVC_EVICT_HISTORY */
    uint64_t stored_request, touched_request; /* by which request, from 0; KVC_EVICT_HISTORY */
    bool resident;              /* false: a ghost */
    bool pinned;                /* a running request reads it: not to be a victim */
};

struct kvc_policy_request {
    uint64_t index;    /* from 0, in the order of arrival */
    uint64_t time_ns;  /* since the first request */
    uint32_t segment;  /* that its path ends with; KVC_NO_ID: nothing of it can be cached */
    uint32_t blocks;   /* of its path */
    uint32_t input_tokens;
    uint32_t session, tenant; /* KVC_NO_ID where the log names none */
};

/* In a replay an engine makes room before blocks are there, and for tokens that no block names:
 * then segment is KVC_NO_ID, and hi - lo blocks are wanted. */
struct kvc_newcomer {
    uint32_t segment, lo, hi; /* blocks that need room; the deepest, hi - 1, first */
    uint32_t ghost;           /* the ghost queue that remembers them, or KVC_GHOST_NONE */
};

/* What the host does for a policy. Pass the pointer on as it came. */
struct kvc_host {
    uint32_t struct_size;
    uint32_t block_tokens;
    uint64_t capacity_blocks; /* UINT64_MAX: endless */
    /* The forest, by segment; parents have smaller numbers. Theirs, not to be written. */
    uint32_t n_segments;
    const uint32_t *seg_blocks, *seg_depth; /* length; blocks above it */
    const uint32_t *seg_parent;             /* KVC_NO_ID: a root */

    uint64_t (*resident)(const struct kvc_host *host); /* blocks */
    /* Valid until the next call of info. */
    const struct kvc_piece_info *(*info)(const struct kvc_host *host, kvc_piece piece);
    /* piece_bytes of memory that belong to the piece: zero at first, copied where it is cut. Pieces
     * that differ in it are not joined. Valid until the next put, rank, drop or return. */
    void *(*memory)(const struct kvc_host *host, kvc_piece piece);

    /* Queues, numbered from 0, then ghost queues. put: as the newest, out of wherever it was;
     * returns the piece that now holds its blocks. */
    kvc_piece (*put)(const struct kvc_host *host, uint32_t queue, kvc_piece piece);
    void (*take)(const struct kvc_host *host, kvc_piece piece); /* out of its queue or the heap */
    /* The deepest blocks, fewer than it has, become a piece of their own: in the same queue as its
     * next older, or in the heap with the same rank. Returned. */
    kvc_piece (*cut)(const struct kvc_host *host, kvc_piece piece, uint32_t blocks);
    /* Both pass over pinned pieces; KVC_PIECE_NONE at the end. */
    kvc_piece (*oldest)(const struct kvc_host *host, uint32_t queue);
    kvc_piece (*newer)(const struct kvc_host *host, kvc_piece piece);
    uint64_t (*queued)(const struct kvc_host *host, uint32_t queue); /* blocks in it */

    /* A heap instead: into it, or to another place in it. Returns as put does. lowest: the piece of
     * the least rank that is not pinned, of equals the one touched longest ago. */
    kvc_piece (*rank)(const struct kvc_host *host, kvc_piece piece, double rank);
    kvc_piece (*lowest)(const struct kvc_host *host);

    /* Ghosts are blocks remembered after they left. In removed only: what leaves is remembered in
     * this ghost queue, from 0 on, as its newest. */
    void (*remember)(const struct kvc_host *host, uint32_t ghost);
    kvc_piece (*oldest_ghost)(const struct kvc_host *host, uint32_t ghost);
    uint64_t (*ghosts)(const struct kvc_host *host, uint32_t ghost); /* blocks in it */

    /* The deepest blocks of a piece leave now: evicted, with a call of removed, or forgotten when
     * it is a ghost. Not in removed. */
    void (*drop)(const struct kvc_host *host, kvc_piece piece, uint32_t blocks);

    /* The request after this one that touches the piece, or KVC_NEVER; KVC_EVICT_ORACLE. */
    uint64_t (*next_use)(const struct kvc_host *host, kvc_piece piece);
    uint64_t (*random)(const struct kvc_host *host); /* a stream of the run's own, seeded */
    /* Zeroed; NULL when there is none. What is not freed is a leak that the kit reports. */
    void *(*alloc)(const struct kvc_host *host, size_t n, size_t size);
    void (*free)(const struct kvc_host *host, void *memory); /* NULL is fine */
    /* Ends the run with these words. Hooks return as they can. */
    void (*fail)(const struct kvc_host *host, const char *why);
};

struct kvc_evict_ops {
    uint32_t struct_size;
    uint32_t flags;         /* enum kvc_evict_flag, added up */
    uint32_t piece_bytes;   /* of memory for each piece */
    uint32_t queues, ghost_queues;

    /* The state of one run, or NULL when memory runs out. options: values in the order of the
     * table, NULL: the defaults. Both may be NULL when there is no state. */
    void *(*create)(const struct kvc_host *host, const union kvc_option_value *options);
    void (*destroy)(const struct kvc_host *host, void *state);
    /* A request arrives, before it looks anything up. Or NULL. */
    void (*request)(const struct kvc_host *host, void *state,
                    const struct kvc_policy_request *request);
    /* New blocks; ghost: the ghost queue that remembered them until now, or KVC_GHOST_NONE. */
    void (*stored)(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t ghost);
    /* Resident blocks are touched, all of the piece. Or NULL. A tier of a replay tells of a
     * request's blocks once more when its writes have ended: info->touches does not count that. */
    void (*touched)(const struct kvc_host *host, void *state, kvc_piece piece);
    /* The cache is full: which piece makes room? *blocks is 1 and may be raised, to hi - lo of the
     * newcomer at most, where storing newcomers one by one would have the same answer so many
     * times; the piece's deepest blocks go, no more than it has. KVC_PIECE_NONE: all are pinned. */
    kvc_piece (*victim)(const struct kvc_host *host, void *state,
                        const struct kvc_newcomer *newcomer, uint32_t *blocks);
    /* The deepest blocks of a piece are about to leave; with all of them the handle ends. The host
     * takes it out of its queue or heap. Or NULL. */
    void (*removed)(const struct kvc_host *host, void *state, kvc_piece piece, uint32_t blocks);
};

/* ---- admission -------------------------------------------------------------------------------- *
 *
 * What of a request a cache stores. The blocks of a segment are always asked for together, so
 * whatever a policy knows of blocks it keeps by segment. Its path is stored up to the first block
 * that is absent and refused, so that nothing lies behind it where no lookup reaches; eviction is
 * another policy's affair. */

enum kvc_admission_flag {
    KVC_ADMISSION_REQUEST = 1 /* judges requests, so blocks that come without one can't be judged:
                                 not for tiers that are written when the tier above evicts */
};

/* What the host does for a policy. Pass the pointer on as it came. */
struct kvc_admission_host {
    uint32_t struct_size;
    uint32_t block_tokens;
    uint64_t capacity_blocks; /* UINT64_MAX: endless */
    /* The forest, by segment; parents have smaller numbers. Theirs, not to be written. */
    uint32_t n_segments;
    const uint32_t *seg_blocks, *seg_depth; /* length; blocks above it */
    const uint32_t *seg_parent;             /* KVC_NO_ID: a root */

    /* A stream of the run's own, seeded by an option called seed; not in admits. */
    uint64_t (*random)(const struct kvc_admission_host *host);
    /* Zeroed; NULL when there is none. What is not freed is a leak that the kit reports. */
    void *(*alloc)(const struct kvc_admission_host *host, size_t n, size_t size);
    void (*free)(const struct kvc_admission_host *host, void *memory); /* NULL is fine */
    /* Ends the run with these words. Hooks return as they can. */
    void (*fail)(const struct kvc_admission_host *host, const char *why);
};

struct kvc_admission_ops {
    uint32_t struct_size;
    uint32_t flags; /* enum kvc_admission_flag, added up */

    /* The state of one cache in a run, or NULL when memory runs out. options: values in the order
     * of the table, NULL: the defaults. Both may be NULL when there is no state. */
    void *(*create)(const struct kvc_admission_host *host, const union kvc_option_value *options);
    void (*destroy)(const struct kvc_admission_host *host, void *state);
    /* A request arrives, before anything of it is judged. Or NULL. */
    void (*request)(const struct kvc_admission_host *host, void *state,
                    const struct kvc_policy_request *request);
    /* Of a segment's blocks, from its first on, how many may be stored: 0 to seg_blocks. It is
     * asked of segments on the path of a request that has arrived, any number of times and in any
     * order, or not at all; so what it says may depend on the state, and must not change it. In a
     * tier below others, blocks that were evicted above come without a request: its segment is
     * KVC_NO_ID. */
    uint32_t (*admits)(const struct kvc_admission_host *host, const void *state,
                       const struct kvc_policy_request *request, uint32_t segment);
};

/* ---- routing --------------------------------------------------------------------------------- */

struct kvc_route_view { /* of one replica, at the moment of the decision */
    uint32_t running, waiting;   /* requests; parked loads count as waiting */
    uint64_t queued_tokens;      /* prompt tokens not yet computed, of all its requests */
    uint64_t context_tokens;     /* KV tokens of its running requests */
    uint32_t hit_tokens;         /* prefix of this request it holds in HBM; 0 unless wants_prefix */
    uint32_t hit_tokens_any;     /* the same over all of its tiers */
};

struct kvc_route_request {
    uint64_t index;        /* of the request, in arrival order */
    uint32_t session;      /* KVC_NO_ID without */
    uint32_t input_tokens;
};

struct kvc_router_ops {
    uint32_t struct_size;
    bool wants_load;     /* views carry load; else they are empty */
    bool wants_prefix;   /* and prefix hits */
    const char *assumed; /* a figure of the rule that nobody published, in words; NULL: none */
    /* The state of one run for so many replicas, or NULL when memory runs out; both or neither. */
    void *(*create)(uint32_t replicas, const union kvc_option_value *options);
    void (*destroy)(void *state);
    /* Returns the replica. rng is a stream of the router's own; load_weight from the scenario. */
    uint32_t (*pick)(void *state, const struct kvc_route_request *request,
                     const struct kvc_route_view *views, uint32_t n, double load_weight,
                     uint64_t *rng);
};

/* ---- what the kinds that follow have in common ------------------------------------------------ *
 *
 * What the host does for a policy. Pass the pointer on as it came. */

struct kvc_policy_host {
    uint32_t struct_size;
    uint32_t block_tokens;    /* 1 where the log names no blocks */
    uint64_t capacity_blocks; /* of the cache that the policy is asked about */
    uint64_t now_ns;          /* since the first request, kept up to date */
    uint32_t n_tenants;       /* they are numbered from 0, requests that name none being one too */
    /* The forest, by segment; parents have smaller numbers. Theirs, not to be written. */
    uint32_t n_segments;
    const uint32_t *seg_blocks, *seg_depth; /* length; blocks above it */
    const uint32_t *seg_parent;             /* KVC_NO_ID: a root */

    /* A stream of the run's own, seeded by an option called seed; not in hooks whose state is
     * const. */
    uint64_t (*random)(const struct kvc_policy_host *host);
    /* Zeroed; NULL when there is none. What is not freed is a leak that the kit reports. */
    void *(*alloc)(const struct kvc_policy_host *host, size_t n, size_t size);
    void (*free)(const struct kvc_policy_host *host, void *memory); /* NULL is fine */
    /* Ends the run with these words. Hooks return as they can. */
    void (*fail)(const struct kvc_policy_host *host, const char *why);
};

/* The ops of those kinds begin with these four, whatever follows. */
#define KVC_POLICY_OPS_HEAD                                                                        \
    uint32_t struct_size;                                                                          \
    uint32_t flags; /* of the kind's enum, added up */                                             \
    /* The state of one run, or NULL when memory runs out. options: values in the order of the     \
     * table, NULL: the defaults. Both may be NULL when there is no state. */                      \
    void *(*create)(const struct kvc_policy_host *host, const union kvc_option_value *options);    \
    void (*destroy)(const struct kvc_policy_host *host, void *state)

/* ---- ordering --------------------------------------------------------------------------------- *
 *
 * Which of the requests that wait at an engine is admitted next: the one of the lowest rank, of
 * equals the one that was preempted last, then the one that has waited longest. Priority classes of
 * tenants come before ranks. When the one in front does not fit, nobody behind it is admitted. Each
 * replica has a policy of its own. */

enum kvc_ordering_flag {
    KVC_ORDERING_ONCE = 1,   /* a rank holds while its request waits, and is asked as it joins the
                                queue: the replay then loses no time. Else all ranks are asked
                                whenever a replica could admit somebody, once in a step .. */
    KVC_ORDERING_EACH = 2,   /* .. or before each admission */
    KVC_ORDERING_PREFIX = 4, /* reads hit_tokens and hit_tokens_any; not with KVC_ORDERING_ONCE */
    KVC_ORDERING_ORACLE = 8  /* reads output_tokens, which no engine knows */
};

struct kvc_waiting { /* a request; whatever is not asked for by a flag is told always */
    uint64_t index;      /* in the log, from 0 */
    uint64_t arrived_ns; /* at the client's end of the engine */
    uint32_t session, tenant; /* session: KVC_NO_ID without; tenant: always one of n_tenants */
    uint32_t priority;   /* its tenant's class; lower goes first, whatever the rank */
    uint32_t segment;    /* that its prompt ends with; KVC_NO_ID: nothing of it can be cached */
    uint32_t input_tokens;
    uint32_t generated_tokens; /* so far */
    uint32_t output_tokens;    /* that there will be in all; 0 unless KVC_ORDERING_ORACLE */
    uint32_t hit_tokens;       /* usable prefix in HBM now; 0 unless KVC_ORDERING_PREFIX */
    uint32_t hit_tokens_any;   /* the same over all tiers */
    uint32_t waiting;          /* how many are in the queue now */
    bool again;                /* it was admitted before, and preempted */
    bool waits;                /* still in the queue: in ended, it was given up there */
};

struct kvc_ordering_ops {
    KVC_POLICY_OPS_HEAD;
    /* Any number but NaN; lower goes first. In any order and number, so that it changes nothing. */
    double (*rank)(const struct kvc_policy_host *host, const void *state,
                   const struct kvc_waiting *request);
    /* What happens to requests, each NULL or a hook. It joins the queue, before its rank is
     * asked. */
    void (*arrived)(const struct kvc_policy_host *host, void *state,
                    const struct kvc_waiting *request);
    /* It leaves the queue to be served; or, when no more than its prefix is loaded, to be served
     * next. */
    void (*admitted)(const struct kvc_policy_host *host, void *state,
                     const struct kvc_waiting *request);
    /* So many output tokens were sampled for it since this was last told: before ranks are asked,
     * and when it ends or is preempted. */
    void (*served)(const struct kvc_policy_host *host, void *state,
                   const struct kvc_waiting *request, uint32_t tokens);
    /* It has all its answer, or was given up while it waited. */
    void (*ended)(const struct kvc_policy_host *host, void *state,
                  const struct kvc_waiting *request);
};

/* ---- random streams for routers (splitmix64, Steele, Lea and Flood 2014) --------------------- */

static inline uint64_t kvc_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t kvc_rng_next(uint64_t *state)
{
    return kvc_mix64(*state += 0x9e3779b97f4a7c15u);
}

/* Uniform in [0, n), n > 0, by multiplication (bias below n / 2^64). */
static inline uint64_t kvc_rng_below(uint64_t *state, uint64_t n)
{
    __extension__ typedef unsigned __int128 kvc_u128;
    return (uint64_t)(((kvc_u128)kvc_rng_next(state) * n) >> 64);
}

#ifdef __cplusplus
}
#endif

#endif
