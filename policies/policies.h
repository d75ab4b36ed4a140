/* SPDX-License-Identifier: Apache-2.0
 * Built-in policies: const tables of functions, looked up by name. */
#ifndef KVC_POLICIES_POLICIES_H
#define KVC_POLICIES_POLICIES_H

#include <kvcast/kvcast.h>
#include <kvcast/policy.h>

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
