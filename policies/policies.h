/* SPDX-License-Identifier: Apache-2.0
 * Built-in policies: const tables of functions, looked up by name. */
#ifndef KVC_POLICIES_POLICIES_H
#define KVC_POLICIES_POLICIES_H

#include <kvcast/kvcast.h>
#include <kvcast/policy.h>

/* ---- options: one const table each makes the checks, the help and the documents ---- */

#define KVC_POLICY_OPTIONS 8 /* of one policy, at most */

/* Splits NAME[:options] at its first colon; options gets the rest, "" without. KVC_ERR_USAGE where
 * the name has no room. */
enum kvc_status kvc_policy_name(const char *spec, char *name, size_t size, const char **options,
                                struct kvc_error *err);
/* The values of a policy's options, of the table's n, from "name=value[:name=value]": every one that
 * is not named has its default. KVC_ERR_USAGE says what is wrong with which. */
enum kvc_status kvc_policy_options(const char *policy, const char *text,
                                   const struct kvc_policy_option *table, uint32_t n,
                                   union kvc_option_value *out, struct kvc_error *err);

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
