/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/routing/routers.h"

#include "base/error.h"
#include "base/units.h"
#include "policies/plugins/plugin.h"

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

/* ---- at work ---- */

enum kvc_status kvc_router_open(struct kvc_router *out, const char *spec, struct kvc_error *err)
{
    *out = (struct kvc_router){0};
    if (kvc_plugin_is(spec)) {
        enum kvc_status st = kvc_plugin_open(&out->opened, spec, KVC_POLICY_ROUTING, err);
        if (st != KVC_OK)
            return st;
        out->policy = &out->opened->policy;
        out->ops = &out->opened->router;
        return kvc_policy_options(out->policy->name, kvc_plugin_options(spec), out->policy->options,
                                  out->policy->n_options, out->option, err);
    }
    out->policy = kvc_router_find(spec);
    out->ops = kvc_router_ops_of(out->policy);
    if (out->ops)
        return KVC_OK;
    const char *near = kvc_name_nearest(spec, kvc_router_names());
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "router",
                       "there is no router \"%.64s\"%s%s%s; known are round-robin, least-loaded, "
                       "prefix, sticky and power-of-two, and plug-ins by their path", spec,
                       near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

void kvc_router_close(struct kvc_router *router)
{
    kvc_plugin_close(router->opened);
    *router = (struct kvc_router){0};
}

enum kvc_status kvc_router_start(const struct kvc_router *router, uint32_t replicas, void **state,
                                 struct kvc_error *err)
{
    *state = router->ops->create ? router->ops->create(replicas, router->option) : NULL;
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
    return kvc_fail_at(err, KVC_ERR_PLUGIN, router->opened ? router->opened->path : NULL, 0, NULL,
                       "%s, in pick, named a replica that is none of the %u, which count from 0",
                       router->policy->name, replicas);
}
