/* SPDX-License-Identifier: Apache-2.0
 * Built-in policies: const tables of functions, looked up by name. */
#ifndef KVC_POLICIES_POLICIES_H
#define KVC_POLICIES_POLICIES_H

#include <kvcast/kvcast.h>
#include <kvcast/policy.h>

struct kvc_watch_slot;

/* ---- options: one const table each makes the checks, the help and the documents ---- */

#define KVC_POLICY_OPTIONS 8 /* of one policy, at most */

/* Splits NAME[:options] at its first colon; options gets the rest, "" without. KVC_ERR_USAGE
 * where the name has no room. Both end before a '+', which adds an admission policy to one of
 * eviction. */
enum kvc_status kvc_policy_name(const char *spec, char *name, size_t size, const char **options,
                                struct kvc_error *err);
/* The values of a policy's options, of the table's n, from "name=value[:name=value]": every one
 * that is not named has its default. KVC_ERR_USAGE says what is wrong with which. */
enum kvc_status kvc_policy_options(const char *policy, const char *text,
                                   const struct kvc_policy_option *table, uint32_t n,
                                   union kvc_option_value *out, struct kvc_error *err);

/* The error of a ':' that nothing follows. */
enum kvc_status kvc_no_options(const char *policy, struct kvc_error *err);

/* ---- policies that are made of kvcast/policy.h alone, as plug-ins are: all but eviction ---- */

const char *kvc_policy_kind_name(uint32_t kind); /* "eviction"; NULL: there is no such kind */
/* The built-in ones of a kind, the default first; ends with NULL. */
const struct kvc_policy *const *kvc_policy_table(uint32_t kind);
const struct kvc_policy *kvc_policy_find(uint32_t kind, const char *name); /* NULL: there is none */

struct kvc_plugin;
struct kvc_policy_choice { /* one that was asked for, with its options */
    const struct kvc_policy *policy;
    const void *ops; /* of its kind, as long as this version's */
    union kvc_option_value option[KVC_POLICY_OPTIONS];
    struct kvc_plugin *opened; /* NULL: a built-in one */
};
/* NAME or PATH, [:option=value]. To be dropped, also when it failed. */
enum kvc_status kvc_policy_choose(struct kvc_policy_choice *out, const char *spec, uint32_t kind,
                                  struct kvc_error *err);
void kvc_policy_drop(struct kvc_policy_choice *choice);

/* ---- ordering: who of those that wait is served next ---- */

const char *const *kvc_ordering_names(void);

/* ---- admission: what of a request a cache stores ---- */

const char *const *kvc_admission_names(void);
/* Whether this is NAME[:option=value] or a plug-in's path with options that it has; *flags (may be
 * NULL): enum kvc_admission_flag. */
enum kvc_status kvc_admission_check(const char *spec, uint32_t *flags, struct kvc_error *err);

struct kvc_admission; /* at work on one cache */
struct kvc_plugged_trial;

/* Arrays by segment, borrowed; capacity in blocks. */
struct kvc_admission_setup {
    const char *spec; /* that kvc_admission_check finds fine */
    uint64_t capacity;
    uint32_t n_segments, block_tokens;
    const uint32_t *seg_len, *seg_depth, *seg_parent;
    struct kvc_plugged_trial *trial; /* of the conformance kit (policies/plugins/guest.h), or
                                        NULL */
};
enum kvc_status kvc_admission_create(struct kvc_admission **out,
                                     const struct kvc_admission_setup *setup,
                                     struct kvc_error *err);
void kvc_admission_destroy(struct kvc_admission *admission); /* NULL is fine */
/* A request arrives. false: kvc_admission_error tells why, as after each of the others. */
bool kvc_admission_ask(struct kvc_admission *admission, const struct kvc_policy_request *request);
/* How many blocks of the path that ends with leaf a request that has asked may store, from the root
 * on, so that nothing lies behind what is refused: up to the first block that is absent and
 * refused. held: leading blocks of a segment that are there. */
uint64_t kvc_admission_limit(struct kvc_admission *admission,
                             const struct kvc_policy_request *request, uint32_t leaf,
                             uint32_t (*held)(const void *user, uint32_t seg), const void *user);
/* The same of the blocks of a segment that come by themselves, whatever lies above them. */
uint64_t kvc_admission_alone(struct kvc_admission *admission, uint32_t seg, uint64_t now_ns);
/* Out of memory, or a plug-in that broke the rules: results are worthless. To be asked at the end,
 * when it also looks whether memory was left alone. */
enum kvc_status kvc_admission_error(struct kvc_admission *admission, struct kvc_error *err);
bool kvc_admission_failed(const struct kvc_admission *admission); /* so far */

/* ---- what goes, of a policy without time ---- */

struct kvc_policy_about {
    const char *name, *summary, *source; /* source NULL: common knowledge */
    bool closed; /* what it holds are always whole leading parts of prompts */
};
const struct kvc_policy_about *kvc_policy_about(const char *name); /* NULL: no such policy */

/* ---- what goes first in a tier of the replay ---- */

struct kvc_eviction {
    bool queue;       /* the pool's own order is all there is to it; else
                         policies/eviction/order.h */
    bool touch_moves; /* a touch moves a block to the young end */
    uint64_t ttl_ns;  /* blocks live no longer than that; 0: no such rule */
};
/* Of NAME[:options] or a plug-in's path; says what is wrong, and which can't run there and why. */
enum kvc_status kvc_eviction_of(const char *spec, struct kvc_eviction *out, struct kvc_error *err);
const char *const *kvc_eviction_names(void);

/* ---- routing ---- */

const char *const *kvc_router_names(void);
const struct kvc_router_ops *kvc_router_named(const char *name); /* built in; NULL: there is none */

struct kvc_router { /* that was asked for */
    struct kvc_policy_choice choice;
    const struct kvc_router_ops *ops;
};
/* NAME, or a plug-in's PATH[:option=value]. */
enum kvc_status kvc_router_open(struct kvc_router *out, const char *spec, struct kvc_error *err);
void kvc_router_close(struct kvc_router *router);

struct kvc_routing { /* one run of it */
    const struct kvc_router *router; /* NULL: not begun */
    uint32_t replicas;
    void *state; /* NULL where it has none */
    struct kvc_watch_slot *slot; /* where it is seen; NULL: nobody looks, or it is built in */
    bool stray;  /* it picked a replica that is none */
};
/* To be ended, also when it failed. The router stays the caller's. */
enum kvc_status kvc_routing_begin(struct kvc_routing *out, const struct kvc_router *router,
                                  uint32_t replicas, struct kvc_error *err);
/* Always a replica; what is none sets stray. */
uint32_t kvc_routing_pick(struct kvc_routing *routing, const struct kvc_route_request *request,
                          const struct kvc_route_view *views, double load_weight, uint64_t *rng);
void kvc_routing_end(struct kvc_routing *routing);
/* Whether it has not strayed. */
enum kvc_status kvc_routing_error(const struct kvc_routing *routing, struct kvc_error *err);

#endif
