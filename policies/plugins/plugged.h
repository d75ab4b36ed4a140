/* SPDX-License-Identifier: Apache-2.0
 * A plug-in in a cache of runs: every answer it gives and every service it asks for is checked
 * here, so that what breaks the rules of kvcast/policy.h ends the run instead of bending its
 * figures.
 *
 * A handle is the run's number and how often that number has been given out before, so none comes
 * twice. Queues 0 and 1 stand for no queue and the heap; the plug-in's follow, then its ghosts'. */
#ifndef KVC_POLICIES_PLUGGED_H
#define KVC_POLICIES_PLUGGED_H

#include "policies/eviction/runs_internal.h"
#include "policies/plugins/guest.h"

enum { KVC_PLUGGED_LOOSE, KVC_PLUGGED_HEAP, KVC_PLUGGED_QUEUES };

struct kvc_plugged_history { /* of a piece; KVC_EVICT_HISTORY */
    uint64_t stored_ns, touched_ns, stored_request, touched_request;
    uint64_t tenant;
};

struct kvc_plugged {
    struct kvc_host host; /* first: services find the rest behind it */
    struct kvc_runs *c;
    struct kvc_runs_ops ops; /* of this run: how many queues are resident is the plug-in's matter */
    struct kvc_policy_choice choice;
    const struct kvc_evict_ops *evict;
    struct kvc_guest guest;
    void *state;
    bool created;
    uint32_t *birth;
    struct kvc_plugged_history *history;
    unsigned char *memory; /* stride bytes a run: the piece's, and a word that must stay as it is */
    size_t stride;
    size_t birth_room, history_room, memory_room; /* runs */
    uint32_t *next_use; /* by segment of the forest as it was given, host's; KVC_EVICT_ORACLE */
    uint32_t remember; /* engine's queue, KVC_RUN_NONE: nobody asked */
    uint32_t leaving;  /* the run in removed, or KVC_RUN_NONE */
    struct kvc_piece_info info;
    unsigned char spare[KVC_PIECE_BYTES_MOST]; /* memory of pieces that are gone */
    const uint32_t *seg_parent; /* as given: the host has the plug-in's copy */
    uint32_t lent;     /* the run whose memory was asked for last, or KVC_RUN_NONE */
};

/* Loads the plug-in of a cache to be; false: guest.error tells why, or memory ran out. */
bool kvc_plugged_open(struct kvc_runs *c, const struct kvc_runs_setup *setup);
bool kvc_plugged_single(const struct kvc_plugged *p); /* whether it takes blocks one by one */
/* Makes the plug-in's state, when the cache is ready otherwise. */
bool kvc_plugged_start(struct kvc_runs *c);
void kvc_plugged_stop(struct kvc_plugged *p); /* NULL is fine */

/* ---- shared by the hooks and the services ---- */

void kvc_plugged_services(struct kvc_host *host);
/* Whether it kept to the memory of the piece it was last lent. */
void kvc_plugged_look(struct kvc_plugged *p);
/* The run of a handle, or KVC_RUN_NONE when it has ended. */
uint32_t kvc_plugged_run(const struct kvc_plugged *p, kvc_piece piece);
kvc_piece kvc_plugged_handle(const struct kvc_plugged *p, uint32_t r);
bool kvc_plugged_pinned(const struct kvc_plugged *p, uint32_t r);
/* The deepest n blocks of a run leave; removed is called where they were resident. */
void kvc_plugged_leave(struct kvc_plugged *p, uint32_t r, uint32_t n);
void kvc_plugged_unlink(struct kvc_plugged *p, uint32_t r);
/* As the newest of a queue, joined to the newest there is where both are alike. */
uint32_t kvc_plugged_link(struct kvc_plugged *p, uint32_t r, uint32_t queue);
/* Makes the deepest n blocks of a run one of their own, its next older; KVC_RUN_NONE: no memory. */
uint32_t kvc_plugged_cut(struct kvc_plugged *p, uint32_t r, uint32_t n);
/* Whether two neighbours can be one piece. */
bool kvc_plugged_alike(const struct kvc_plugged *p, uint32_t a, uint32_t b);
void kvc_plugged_end(struct kvc_plugged *p, uint32_t r); /* its handle dies */

/* The segment it is told of, where the engine's are single blocks; returns what to add to lo and
 * hi. */
static inline uint32_t kvc_plugged_place(const struct kvc_plugged *p, uint32_t *seg)
{
    const struct kvc_runs_cut *cut = &p->c->cut;
    uint32_t at = *seg;
    if (!cut->seg || at == KVC_NO_ID)
        return 0;
    *seg = cut->seg[at];
    return at - (cut->end[*seg] - cut->seg_len[*seg]);
}

static inline uint32_t kvc_plugged_ghosts(const struct kvc_plugged *p)
{
    return KVC_PLUGGED_QUEUES + p->evict->queues;
}

#endif
