/* SPDX-License-Identifier: Apache-2.0
 * Built-in policies: const tables of functions, looked up by name. */
#ifndef KVC_POLICIES_POLICIES_H
#define KVC_POLICIES_POLICIES_H

#include <kvcast/kvcast.h>
#include <kvcast/policy.h>

/* ---- options: one const table each makes the checks, the help and the documents ---- */

#define KVC_POLICY_OPTIONS 8 /* of one policy, at most */

/* Splits NAME[:options] at its first colon; options gets the rest, "" without. KVC_ERR_USAGE where
 * the name has no room. Both end before a '+', which adds an admission policy to one of eviction. */
enum kvc_status kvc_policy_name(const char *spec, char *name, size_t size, const char **options,
                                struct kvc_error *err);
/* The values of a policy's options, of the table's n, from "name=value[:name=value]": every one that
 * is not named has its default. KVC_ERR_USAGE says what is wrong with which. */
enum kvc_status kvc_policy_options(const char *policy, const char *text,
                                   const struct kvc_policy_option *table, uint32_t n,
                                   union kvc_option_value *out, struct kvc_error *err);

/* ---- admission: what of a request a cache stores ---- */

struct kvc_admission;

struct kvc_admission_request {
    uint32_t seg;     /* that its path ends with */
    uint32_t session; /* KVC_ID_NONE without */
    uint64_t now_ns;
};

struct kvc_admission_ops {
    const char *name, *summary;
    const struct kvc_policy_option *options;
    uint32_t n_options;
    bool (*start)(struct kvc_admission *a);
    /* Or NULL: a request for a path arrives. */
    void (*ask)(struct kvc_admission *a, const struct kvc_admission_request *request);
    /* Whether a request may store blocks of a segment of its path. */
    bool (*admits)(const struct kvc_admission *a, const struct kvc_admission_request *request,
                   uint32_t seg);
    /* Or NULL: of a path, this many blocks at most are stored. */
    uint64_t (*bound)(const struct kvc_admission *a);
};

/* Arrays by segment, borrowed; capacity in blocks. NULL: no memory. */
struct kvc_admission *kvc_admission_create(const char *spec, uint64_t capacity, uint32_t n_segments,
                                           const uint32_t *seg_len, const uint32_t *seg_depth,
                                           const uint32_t *seg_parent, uint32_t block_tokens);
void kvc_admission_destroy(struct kvc_admission *admission); /* NULL is fine */
bool kvc_admission_ask(struct kvc_admission *admission,
                       const struct kvc_admission_request *request); /* false: no memory */
/* How many blocks of the path that ends with leaf a request that has asked may store, from the root
 * on, so that nothing lies behind what is refused: up to the first block that is absent and
 * refused. held: leading blocks of a segment that are there. */
uint64_t kvc_admission_limit(const struct kvc_admission *admission,
                             const struct kvc_admission_request *request, uint32_t leaf,
                             uint32_t (*held)(const void *user, uint32_t seg), const void *user);
/* The same of the blocks of a segment that come by themselves, whatever lies above them. */
uint64_t kvc_admission_alone(const struct kvc_admission *admission, uint32_t seg);
enum kvc_status kvc_admission_check(const char *spec, struct kvc_error *err);
const char *const *kvc_admission_names(void);
const struct kvc_policy_option *kvc_admission_options(const char *name, uint32_t *n);

/* ---- what goes, of a policy without time ---- */

struct kvc_policy_about {
    const char *name, *summary, *source; /* source NULL: common knowledge */
    bool closed; /* what it holds are always whole leading parts of prompts */
};
const struct kvc_policy_about *kvc_policy_about(const char *name); /* NULL: no such policy */

/* ---- eviction order of a tier: runs wait in one queue, the head is the victim ---- */

struct kvc_eviction_ops {
    const char *name, *summary;
    bool touch_moves; /* a hit moves the run to the tail */
};
const struct kvc_eviction_ops *kvc_eviction_find(const char *name);
const char *const *kvc_eviction_names(void);

/* ---- routing ---- */

const struct kvc_policy *kvc_router_find(const char *name); /* NULL: there is none */
const struct kvc_router_ops *kvc_router_ops_of(const struct kvc_policy *router); /* of NULL: NULL */
const char *const *kvc_router_names(void);

#endif
