/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/routing/routers.h"

#include "base/error.h"
#include "policies/plugins/guest.h"

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

/* The plug-in is in a hook, or in none. */
static void is_in(const struct kvc_routing *r, uint32_t hook, uint64_t request)
{
    if (!r->slot)
        return;
    r->slot->place.request = request;
    r->slot->place.hook = hook;
}

enum kvc_status kvc_routing_begin(struct kvc_routing *out, const struct kvc_router *router,
                                  uint32_t replicas, struct kvc_error *err)
{
    const struct kvc_policy_choice *choice = &router->choice;
    *out = (struct kvc_routing){.router = router, .replicas = replicas};
    if (choice->opened)
        out->slot = kvc_watch_take(choice->opened->path, choice->policy->name);
    if (!router->ops->create)
        return KVC_OK;
    is_in(out, KVC_HOOK_CREATE, 0);
    out->state = router->ops->create(replicas, choice->option);
    is_in(out, KVC_HOOK_NONE, 0);
    return out->state ? KVC_OK : kvc_fail_nomem(err);
}

uint32_t kvc_routing_pick(struct kvc_routing *r, const struct kvc_route_request *request,
                          const struct kvc_route_view *views, double load_weight, uint64_t *rng)
{
    is_in(r, KVC_HOOK_PICK, request->index);
    uint32_t to = r->router->ops->pick(r->state, request, views, r->replicas, load_weight, rng);
    is_in(r, KVC_HOOK_NONE, request->index);
    r->stray = r->stray || to >= r->replicas;
    return to % r->replicas;
}

void kvc_routing_end(struct kvc_routing *r)
{
    if (r->state) {
        is_in(r, KVC_HOOK_DESTROY, 0);
        r->router->ops->destroy(r->state);
    }
    kvc_watch_give(r->slot);
    *r = (struct kvc_routing){0};
}

enum kvc_status kvc_routing_error(const struct kvc_routing *r, struct kvc_error *err)
{
    if (!r->stray)
        return KVC_OK;
    const struct kvc_policy_choice *choice = &r->router->choice;
    return kvc_fail_at(err, KVC_ERR_PLUGIN, choice->opened ? choice->opened->path : NULL, 0, NULL,
                       "%s, in pick, named a replica that is none of the %u, which count from 0",
                       choice->policy->name, r->replicas);
}
