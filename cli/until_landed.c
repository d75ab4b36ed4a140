/* SPDX-License-Identifier: Apache-2.0
 * Stand-ins for lists of parts that have not landed; goes when they do. */
#include "base/units.h"
#include "models/models.h"
#include "policies/policies.h"

#define WEAK __attribute__((weak))

static const char *const none[] = {"lru", "round-robin", "nvme-gen5-x4", "rdma-400", NULL};

WEAK const char *const *kvc_llm_names(void)
{
    return none;
}
WEAK const char *const *kvc_gpu_names(void)
{
    return none;
}
WEAK const char *const *kvc_link_names(void)
{
    return none;
}
WEAK const char *const *kvc_eviction_names(void)
{
    return none;
}
WEAK const char *const *kvc_router_names(void)
{
    return none;
}
WEAK const struct kvc_gpu *kvc_gpu_find(const char *name)
{
    return name ? NULL : NULL;
}
WEAK const struct kvc_link_profile *kvc_link_find(const char *name)
{
    return name ? NULL : NULL;
}
