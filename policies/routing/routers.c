/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/routing/routers.h"

#include "base/units.h"
#include "policies/policies.h"

static const struct kvc_policy *const all[] = {
    &kvc_router_round_robin, &kvc_router_least_loaded, &kvc_router_prefix,
    &kvc_router_sticky,      &kvc_router_power_of_two,
};

const struct kvc_policy *kvc_router_find(const char *name)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (kvc_name_equal(all[i]->name, name))
            return all[i];
    return NULL;
}

const char *const *kvc_router_names(void)
{
    static const char *const names[] = {"round-robin", "least-loaded",  "prefix",
                                        "sticky",      "power-of-two", NULL};
    return names;
}

const struct kvc_router_ops *kvc_router_ops_of(const struct kvc_policy *router)
{
    return router ? router->ops : NULL;
}
