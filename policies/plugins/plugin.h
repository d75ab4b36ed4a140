/* SPDX-License-Identifier: Apache-2.0
 * Policies from shared objects: found by a path, checked before anything of them runs. */
#ifndef KVC_POLICIES_PLUGIN_H
#define KVC_POLICIES_PLUGIN_H

#include "policies/policies.h"

struct kvc_plugin {
    void *object; /* of dlopen */
    char path[256];
    struct kvc_policy policy; /* copies: what a shorter struct lacks is 0 */
    union {
        struct kvc_evict_ops evict;
        struct kvc_admission_ops admission;
        struct kvc_router_ops router;
        struct kvc_ordering_ops ordering;
    } ops; /* of its kind */
};

/* Whether this names a file: it holds a '/' or ends in ".so", before its options. */
bool kvc_plugin_is(const char *spec);
/* What stands behind the '+' that adds an admission policy to one of eviction, or NULL. */
const char *kvc_policy_admission(const char *spec);
/* Loads PATH[:options] as a policy of that kind (0: any). KVC_ERR_INPUT tells what is wrong with
 * the file and how to mend it. */
enum kvc_status kvc_plugin_open(struct kvc_plugin **out, const char *spec, uint32_t kind,
                                struct kvc_error *err);
void kvc_plugin_close(struct kvc_plugin *plugin); /* NULL is fine */
/* Where the options of "NAME:key=value" begin, "" without. */
const char *kvc_plugin_options(const char *spec);

#endif
