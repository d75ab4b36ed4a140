/* SPDX-License-Identifier: Apache-2.0
 * Built-in policies: const tables of functions, looked up by name. */
#ifndef KVC_POLICIES_POLICIES_H
#define KVC_POLICIES_POLICIES_H

#include <kvcast/kvcast.h>

/* ---- eviction order of a tier: runs wait in one queue, the head is the victim ---- */

struct kvc_eviction_ops {
    const char *name, *summary;
    bool touch_moves; /* a hit moves the run to the tail */
};
const struct kvc_eviction_ops *kvc_eviction_find(const char *name);
const char *const *kvc_eviction_names(void);

/* ---- routing ---- */

struct kvc_route_view { /* of one replica, at the moment of the decision */
    uint32_t running, waiting;   /* requests; parked loads count as waiting */
    uint64_t queued_tokens;      /* prompt tokens not yet computed, of all its requests */
    uint64_t context_tokens;     /* KV tokens of its running requests */
    uint32_t hit_tokens;         /* prefix of this request it holds in HBM; 0 unless wants_prefix */
    uint32_t hit_tokens_any;     /* the same over all of its tiers */
};

struct kvc_route_request {
    uint64_t index;        /* of the request, in arrival order */
    uint32_t session;      /* KVC_ID_NONE without */
    uint32_t input_tokens;
};

struct kvc_router_ops {
    const char *name, *summary;
    const char *assumed; /* a figure of the rule that nobody published, in words; NULL: none */
    bool wants_load;   /* views carry load; else they are empty */
    bool wants_prefix; /* and prefix hits */
    /* Returns the replica. rng is a stream of the router's own; load_weight from the scenario. */
    uint32_t (*pick)(const struct kvc_route_request *request, const struct kvc_route_view *views,
                     uint32_t n, double load_weight, uint64_t *rng);
};
const struct kvc_router_ops *kvc_router_find(const char *name);
const char *const *kvc_router_names(void);

#endif
