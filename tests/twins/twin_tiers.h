/* SPDX-License-Identifier: Apache-2.0
 * What the slow replay keeps below HBM; for twin_tiers.c (moves) and twin_room.c (who goes). */
#ifndef KVC_TESTS_TWIN_TIERS_H
#define KVC_TESTS_TWIN_TIERS_H

#include "tests/twins/twin_order.h"

struct stored {
    uint32_t node, depth, holds; /* holds: loads reading it, and the write that brings it */
    uint32_t tenant;
    uint64_t touched, inserted, touched_ns;
    struct twin_ttl *ttl;
    bool readable;
};

struct twin_admission;

struct instance {
    uint64_t capacity; /* blocks */
    struct twin_admission *admission; /* NULL: all is stored */
    struct twin_order *order;         /* NULL: lru or fifo */
    struct stored *at;
    uint32_t n, cap;
    uint64_t *promised; /* by tenant: blocks that are about to come in */
    uint32_t newcomer;  /* the deepest of them */
};

struct transfer {
    bool load, fetch; /* fetch: into host memory; tier 3: its end in time */
    bool over;
    uint64_t flow;
    uint32_t tier, instance;
    struct req *request; /* load: who waits; write: whose blocks, NULL for evicted ones */
    uint32_t replica;
    uint64_t rest; /* load: bytes that go on from host memory */
    uint32_t *nodes, *depths, *tenants, n;
};

struct twin_tiers {
    struct kvc_links *links;
    uint32_t *host_read, *host_write, *host_both; /* per replica; both: or NULL */
    struct instance *of[3];
    uint32_t n_of[3];
    uint32_t *own_read[3], *own_write[3]; /* per instance; of a cluster's tier, per replica */
    uint64_t stamp;
    struct transfer *transfers;
    uint32_t n_transfers, cap_transfers;
};

struct batch { /* blocks to be stored, shallow first */
    uint32_t *nodes, *depths, *tenants, n;
};

/* twin_flows.c: over the host link, the tier's own, or both, after ahead_ns; and on, from host
 * memory. */
void twin_flow_start(const struct twin *tw, struct transfer *t, bool host, bool own,
                     uint64_t bytes, uint64_t ahead_ns);
/* A flow of no bytes: over after ns. */
void twin_flow_wait(const struct twin *tw, struct transfer *t, uint64_t ns);
void twin_flow_on(const struct twin *tw, const struct transfer *t, uint64_t tag);

static inline struct stored *find(const struct instance *inst, uint32_t node)
{
    for (uint32_t i = 0; i < inst->n; i++)
        if (inst->at[i].node == node)
            return &inst->at[i];
    return NULL;
}

uint32_t twin_instance(const struct twin *tw, int k, uint32_t replica);
/* What left goes to a lower tier that is written on eviction. */
void twin_pass_down(struct twin *tw, int k, struct batch *gone, const struct replica *rep);
struct transfer *twin_transfer(struct twin *tw, int tier, const struct replica *rep, struct req *r,
                               uint32_t n);
/* The first n blocks that a transfer read have gone up; it lets go of all. */
void twin_has_read(struct twin *tw, struct transfer *t, uint32_t n);
/* A replica lets go of what it reads of an instance. */
void twin_let_go(struct twin *tw, int k, struct instance *inst, const uint32_t *nodes, uint32_t n,
                 struct req *r, struct replica *rep);
/* Blocks stay in host memory. */
void twin_goes_up(struct twin *tw, const struct batch *up, struct replica *rep, struct req *r);
void fetch_ended(struct twin *tw, uint32_t transfer);
struct batch batch_new(uint32_t n);
void batch_add(struct batch *b, uint32_t node, uint32_t depth, uint32_t tenant);
void batch_free(struct batch *b);

/* A stored block leaves for by; gone remembers what goes to the tier below, latest first. */
void twin_evict(struct twin *tw, int k, struct instance *inst, uint32_t at, uint32_t by,
                struct batch *gone);
/* Makes way for as many of need blocks of a tenant's as can be. Returns how many. */
/* Whether a round would take something of an instance, and one round. */
bool twin_round_due(const struct twin *tw, int k, const struct instance *inst);
void twin_round(struct twin *tw, int k, struct instance *inst, struct batch *gone);
uint64_t twin_give_room(struct twin *tw, int k, struct instance *inst, uint64_t need,
                        uint32_t by, struct batch *gone);

/* An instance's policy learns of a request. */
void twin_learn(const struct twin *tw, const struct instance *inst, const struct req *r);
/* Those that it lets go after something came in or was let go of. */
void twin_rest(struct twin *tw, int k, struct instance *inst, uint32_t by, struct batch *gone);

/* What is refused (twin_admission.c). NULL: nothing is. */
struct twin_admission *twin_admission_create(const struct twin *tw, const char *spec,
                                             uint64_t capacity);
void twin_admission_destroy(struct twin_admission *a);
void twin_admission_ask(struct twin_admission *a, const struct twin *tw, const struct req *r);
/* Those of a batch that are not there and not refused: of a request, all above the first such block
 * of its path; without one each block comes by itself. */
struct batch twin_lacking(struct twin *tw, int k, const struct instance *inst,
                          const struct batch *batch, const struct req *r);

#endif
