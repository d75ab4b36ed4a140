/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/routing/routers.h"

#include "base/error.h"
#include "policies/plugins/plugin.h"

const struct kvc_router_ops *kvc_router_named(const char *name)
{
    const struct kvc_policy *router = kvc_policy_find(KVC_POLICY_ROUTING, name);
    return router ? router->ops : NULL;
}

enum kvc_status kvc_router_open(struct kvc_router *out, const char *spec, struct kvc_error *err)
{
    enum kvc_status st = kvc_policy_choose(&out->choice, spec, KVC_POLICY_ROUTING, err);
    out->ops = out->choice.ops;
    return st;
}

void kvc_router_close(struct kvc_router *router)
{
    kvc_policy_drop(&router->choice);
    router->ops = NULL;
}

enum kvc_status kvc_router_start(const struct kvc_router *router, uint32_t replicas, void **state,
                                 struct kvc_error *err)
{
    *state = router->ops->create ? router->ops->create(replicas, router->choice.option) : NULL;
    return *state || !router->ops->create ? KVC_OK : kvc_fail_nomem(err);
}

void kvc_router_stop(const struct kvc_router *router, void *state)
{
    if (state)
        router->ops->destroy(state);
}

enum kvc_status kvc_router_strayed(const struct kvc_router *router, uint32_t replicas,
                                   struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_PLUGIN, router->choice.opened ? router->choice.opened->path : NULL, 0, NULL,
                       "%s, in pick, named a replica that is none of the %u, which count from 0",
                       router->choice.policy->name, replicas);
}
