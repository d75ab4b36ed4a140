/* SPDX-License-Identifier: Apache-2.0
 * A slow replay written from docs/replay.md alone: every block copy an object, every step
 * executed, lists and loops. The engine in sim/ must agree with it to the nanosecond. */
#ifndef KVC_TESTS_REPLAY_TWIN_H
#define KVC_TESTS_REPLAY_TWIN_H

#include <kvcast/kvcast.h>

#include "models/models.h"
#include "policies/policies.h"
#include "sim/scenario/scenario.h"
#include "traces/trace.h"

/* Times of steps, replaceable so that a test can run with any model. */
struct twin_clock {
    const void *user;
    uint64_t (*step)(const void *user, const struct kvc_chunk *chunks, size_t n_chunks,
                     uint32_t n_decode, uint64_t context, uint32_t n_sampled, uint64_t *host_ns);
    void (*decode)(const void *user, uint32_t n_decode, uint64_t context,
                   struct kvc_decode_cost *out);
    uint64_t front_ns;
    /* with pipeline stages: how far apart the batches of a round are out; may be NULL without */
    uint64_t (*spacing)(const void *user, const struct kvc_chunk *chunks, size_t n_chunks,
                        uint32_t n_decode, uint64_t context, uint32_t n_sampled,
                        uint32_t *batch);
    /* with data-parallel ranks: of one whose group computes so many tokens, and its busiest rank so
     * many; may be NULL without */
    uint64_t (*rank)(const void *user, const struct kvc_chunk *chunks, size_t n_chunks,
                     uint32_t n_decode, uint64_t context, uint32_t n_sampled,
                     uint64_t sum, uint64_t most, uint64_t *host_ns);
};

/* Of one link, both directions: towards the GPU (read) and away from it (write). Index 0: the
 * host link of a replica, with dram's figures where there is dram; 1 + k: the link of tiers[k],
 * one pair per scope instance, of a cluster's tier one per replica (its own NICs); not dram's. */
struct twin_link {
    double read_bytes_per_s, write_bytes_per_s;
    double both_bytes_per_s; /* both ways at once, of the host link; 0: the sum of the two */
    uint64_t latency_ns;
    /* Where only so many operations are under way (slots; 0: enough), rates and times as
     * docs/replay.md has them, [0] towards the GPU, [1] away from it. */
    double slots, op_bytes, setup_ns, wide[2], each_ns[2];
};

/* What the profiles and the scenario make of the hardware. */
struct twin_setup {
    uint64_t pages; /* of one replica, the null block already taken off */
    uint64_t sequence_pages; /* that a running request holds beside its tokens' */
    uint64_t kv_bytes_per_token;
    struct twin_clock clock;
    struct { /* of kernels that a step is the first to use; ns 0: none is left to compile */
        uint64_t ns;
        uint32_t captured, top_k, experts;
    } compile;
    const struct kvc_router_ops *router;
    struct twin_link links[4];
    /* Readings of docs/replay.md where it leaves a choice; all false = the twin's first choice. */
    bool route_unservable;   /* the router is asked even for a request that is then rejected */
    bool parked_has_no_hit;  /* a parked request counts all its prompt as queued */
    bool selective_by_path;  /* an earlier request's known output counts as having a block */
    bool evict_any_copy;     /* HBM evicts a block whenever one of its copies goes */
};

#define TWIN_WHYS 3 /* columns behind the tenants: decoding, time's up, other */

struct twin_result {
    uint64_t n;
    uint32_t n_tenants;
    uint64_t *evicted_blocks; /* [whose][for whom, or why] */
    uint64_t *missed_to;      /* the same of prompt tokens missed */
    const char *wrong;        /* a law of quotas or reservations that did not hold */
    struct kvc_request_result *requests;
    uint64_t missed[KVC_MISS_CAUSES];
    uint64_t preemptions;
    uint32_t peak_running;
    uint64_t steps, makespan_ns;
    double request_ns;       /* integral over time of requests in the system (Little's law) */
    bool stalled;            /* the rules left a request waiting for ever */
    uint64_t tier_written_blocks[3], tier_read_blocks[3], tier_evicted_blocks[3];
    uint64_t tier_refused_blocks[3];
};

void replay_twin_run(const struct kvc_trace *trace, const struct kvc_scenario *scenario,
              const struct twin_setup *setup, struct twin_result *out);
void replay_twin_clear(struct twin_result *result);

#endif
