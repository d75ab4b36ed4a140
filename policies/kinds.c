/* SPDX-License-Identifier: Apache-2.0
 * Kinds of policies, and the built-in ones of those that are made as plug-ins are. */
#include "policies/admission/rules.h"
#include "policies/ordering/rules.h"
#include "policies/plugins/plugin.h"
#include "policies/routing/routers.h"

#include "base/error.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

static const struct kvc_policy *const admission[] = {
    &kvc_admission_always,  &kvc_admission_second, &kvc_admission_depth, &kvc_admission_size,
    &kvc_admission_tinylfu, &kvc_admission_ttl,    NULL,
};

static const struct kvc_policy *const routing[] = {
    &kvc_router_round_robin, &kvc_router_least_loaded,  &kvc_router_prefix,
    &kvc_router_sticky,      &kvc_router_power_of_two, NULL,
};

static const struct kvc_policy *const ordering[] = {
    &kvc_ordering_fcfs, &kvc_ordering_shortest, &kvc_ordering_uncached,
    &kvc_ordering_lpm,  &kvc_ordering_fair,     NULL,
};

static const struct {
    const char *name, *noun;
    const struct kvc_policy *const *table;
} kinds[] = {
    [KVC_POLICY_EVICTION] = {"eviction", "policy", NULL},
    [KVC_POLICY_ADMISSION] = {"admission", "admission policy", admission},
    [KVC_POLICY_ROUTING] = {"routing", "router", routing},
    [KVC_POLICY_ORDERING] = {"ordering", "order of requests", ordering},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *const *kvc_admission_names(void)
{
    static const char *const names[] =
        {"always", "second", "depth", "size", "tinylfu", "ttl", NULL};
    return names;
}

const char *const *kvc_router_names(void)
{
    static const char *const names[] = {"round-robin", "least-loaded",  "prefix",
                                        "sticky",      "power-of-two", NULL};
    return names;
}

const char *const *kvc_ordering_names(void)
{
    static const char *const names[] = {"fcfs", "shortest", "uncached", "lpm", "fair", NULL};
    return names;
}

const char *kvc_policy_kind_name(uint32_t kind)
{
    return kind < N_KINDS ? kinds[kind].name : NULL;
}

const struct kvc_policy *const *kvc_policy_table(uint32_t kind)
{
    return kind < N_KINDS ? kinds[kind].table : NULL;
}

const struct kvc_policy *kvc_policy_find(uint32_t kind, const char *name)
{
    const struct kvc_policy *const *p = kvc_policy_table(kind);
    while (p && *p && !kvc_name_equal((*p)->name, name))
        p++;
    return p ? *p : NULL;
}

static enum kvc_status no_such(uint32_t kind, const char *name, struct kvc_error *err)
{
    const char *names[16] = {NULL}, *near;
    char known[256] = "";
    size_t n = 0;
    for (const struct kvc_policy *const *p = kinds[kind].table; *p && n < 15; p++, n++) {
        names[n] = (*p)->name;
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", n ? ", " : "",
                 names[n]);
    }
    near = kvc_name_nearest(name, names);
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, kinds[kind].name,
                       "there is no %s \"%s\"%s%s%s; known are %s, and plug-ins by their path",
                       kinds[kind].noun, name, near ? " (did you mean \"" : "", near ? near : "",
                       near ? "\"?)" : "", known);
}

enum kvc_status kvc_policy_choose(struct kvc_policy_choice *out, const char *spec, uint32_t kind,
                                  struct kvc_error *err)
{
    char name[32];
    const char *options;
    *out = (struct kvc_policy_choice){0};
    enum kvc_status st = KVC_OK;
    if (kvc_plugin_is(spec)) {
        if ((st = kvc_plugin_open(&out->opened, spec, kind, err)) != KVC_OK)
            return st;
        out->policy = &out->opened->policy;
        out->ops = &out->opened->ops;
        options = kvc_plugin_options(spec);
    } else {
        if ((st = kvc_policy_name(spec, name, sizeof(name), &options, err)) != KVC_OK)
            return st;
        if (!(out->policy = kvc_policy_find(kind, name)))
            return no_such(kind, name, err);
        out->ops = out->policy->ops;
    }
    return kvc_policy_options(out->policy->name, options, out->policy->options,
                              out->policy->n_options, out->option, err);
}

void kvc_policy_drop(struct kvc_policy_choice *choice)
{
    kvc_plugin_close(choice->opened);
    *choice = (struct kvc_policy_choice){0};
}
