/* SPDX-License-Identifier: Apache-2.0
 * The policies by runs: their names, and whether a user's choice of one is sound. */
#include "policies/eviction/runs_internal.h"
#include "policies/plugins/plugin.h"

#include "base/error.h"
#include "base/units.h"

static const struct kvc_runs_ops *const table[] = {
    &kvc_runs_lru,   &kvc_runs_fifo,   &kvc_runs_lfu,  &kvc_runs_plfu, &kvc_runs_lenaware,
    &kvc_runs_sieve, &kvc_runs_s3fifo, &kvc_runs_twoq, &kvc_runs_arc,  &kvc_runs_ttl,
    &kvc_runs_ttlfixed, &kvc_runs_lruk, &kvc_runs_gdsf, &kvc_runs_hyperbolic,
    &kvc_runs_wtinylfu,  &kvc_runs_watermark, &kvc_runs_random,
    &kvc_runs_radix,    &kvc_runs_costaware, &kvc_runs_lirs, &kvc_runs_lecar,
    &kvc_runs_priority, &kvc_runs_thinktime, &kvc_runs_optforced,
};

const char *const *kvc_runs_policies(void)
{
    static const char *const names[] = {"lru",   "fifo",   "lfu",  "plfu", "lenaware",
                                        "sieve", "s3fifo", "twoq", "arc",  "ttl",
                                        "ttlfixed", "lruk", "gdsf", "hyperbolic",
                                        "wtinylfu", "watermark", "random", "radix",
                                        "costaware", "lirs", "lecar", "priority", "thinktime",
                                        NULL};
    return names;
}

static const struct kvc_runs_ops *find(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (kvc_name_equal(table[i]->name, name))
            return table[i];
    return NULL;
}

static enum kvc_status check_admission(const char *spec, struct kvc_error *err)
{
    const char *admission = kvc_policy_admission(spec);
    return admission ? kvc_admission_check(admission, NULL, err) : KVC_OK;
}

enum kvc_status kvc_runs_parse(const char *spec, const struct kvc_runs_ops **ops,
                               union kvc_option_value *option, struct kvc_error *err)
{
    char name[32];
    const char *options;
    enum kvc_status st = kvc_policy_name(spec, name, sizeof(name), &options, err);
    if (st != KVC_OK)
        return st;
    if (!(*ops = find(name)))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy", "there is no policy \"%s\"",
                           name);
    st = kvc_policy_options((*ops)->name, options, (*ops)->options, (*ops)->n_options, option, err);
    return st == KVC_OK ? check_admission(spec, err) : st;
}

static enum kvc_status check_plugin(const char *spec, struct kvc_error *err)
{
    union kvc_option_value option[KVC_POLICY_OPTIONS];
    struct kvc_plugin *p;
    enum kvc_status st = kvc_plugin_open(&p, spec, KVC_POLICY_EVICTION, err);
    if (st != KVC_OK)
        return st;
    st = kvc_policy_options(p->policy.name, kvc_plugin_options(spec), p->policy.options,
                            p->policy.n_options, option, err);
    kvc_plugin_close(p);
    return st == KVC_OK ? check_admission(spec, err) : st;
}

enum kvc_status kvc_runs_check(const char *spec, struct kvc_error *err)
{
    if (kvc_plugin_is(spec))
        return check_plugin(spec, err);
    const struct kvc_runs_ops *ops;
    union kvc_option_value option[KVC_POLICY_OPTIONS];
    return kvc_runs_parse(spec, &ops, option, err);
}

static enum kvc_status needs_future(const char *spec, struct kvc_error *err)
{
    return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                       "%.64s asks when blocks are used next, which no engine knows: take it in "
                       "kvcast ceiling, where it is the bound that others are measured by", spec);
}

enum kvc_status kvc_runs_check_order(const char *spec, struct kvc_error *err)
{
    if (kvc_policy_admission(spec))
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "policy",
                           "what a tier stores is a key of its own there, tiers.*.admission; GPU "
                           "memory stores all that is computed: leave out +%.32s",
                           kvc_policy_admission(spec));
    if (!kvc_plugin_is(spec)) {
        const struct kvc_runs_ops *ops;
        union kvc_option_value option[KVC_POLICY_OPTIONS];
        enum kvc_status st = kvc_runs_parse(spec, &ops, option, err);
        return st == KVC_OK && !ops->order ? needs_future(spec, err) : st;
    }
    struct kvc_plugin *p;
    enum kvc_status st = kvc_plugin_open(&p, spec, KVC_POLICY_EVICTION, err);
    if (st != KVC_OK)
        return st;
    bool oracle = p->ops.evict.flags & KVC_EVICT_ORACLE;
    kvc_plugin_close(p);
    return oracle ? needs_future(spec, err) : KVC_OK;
}

bool kvc_runs_single(const char *policy)
{
    const struct kvc_runs_ops *ops = find(policy);
    return ops && ops->order && ops->order->single;
}

const struct kvc_policy_option *kvc_runs_options(const char *policy, uint32_t *n)
{
    const struct kvc_runs_ops *ops = find(policy);
    *n = ops ? ops->n_options : 0;
    return ops ? ops->options : NULL;
}
