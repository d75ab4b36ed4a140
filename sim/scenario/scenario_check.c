/* SPDX-License-Identifier: Apache-2.0
 * What of a scenario does not go together, or is lacking. */
#include "sim/scenario/scenario_internal.h"

#include "base/error.h"
#include "models/user_profile.h"
#include "policies/plugins/plugin.h"
#include "policies/policies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_RANKS 65536

static enum kvc_status check_tier(const struct kvc_scenario *s, size_t i, struct kvc_error *err)
{
    const struct kvc_tier_config *t = &s->tiers[i];
    char name[64];
    snprintf(name, sizeof(name), "tiers.%s", t->name);
    size_t n, stem = strlen(name);
    const struct kvc_scenario_key *keys = kvc_scenario_keys(&n);
    char capacity[80], bandwidth[80], latency[80], efficiency[80];
    snprintf(capacity, sizeof(capacity), "%s.capacity", name);
    snprintf(bandwidth, sizeof(bandwidth), "%s.link.bandwidth", name);
    snprintf(latency, sizeof(latency), "%s.link.latency", name);
    snprintf(efficiency, sizeof(efficiency), "%s.link.efficiency", name);
    for (size_t k = 0; k < n && !t->present && !kvc_scenario_given(s, capacity); k++) {
        if (strncmp(keys[k].name, name, stem) == 0 && keys[k].name[stem] == '.' &&
            kvc_scenario_given(s, keys[k].name))
            return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, keys[k].name,
                               "the tier has no capacity: set %s too", capacity);
    }
    const char *own = kvc_scenario_given(s, latency)      ? latency
                      : kvc_scenario_given(s, efficiency) ? efficiency
                                                          : NULL;
    if (isnan(t->link_bytes_per_s) && own)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, own,
                           "an own link needs its bandwidth: set %s too", bandwidth);
    if (i == 0 && t->link_staged)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "tiers.dram.staged",
                           "dram is host memory itself: set it for nvme or remote");
    if (t->connector && t->link_staged)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "tiers.remote.connector",
                           "it pulls from GPU to GPU, and a block in host memory is one piece: "
                           "leave it out or set tiers.remote.staged to false");
    bool on_evict = t->write == KVC_WRITE_ON_EVICT || t->write == KVC_WRITE_BACK;
    uint32_t flags = 0;
    enum kvc_status st = t->admission[0] ? kvc_admission_check(t->admission, &flags, err) : KVC_OK;
    if (st == KVC_OK && on_evict && flags & KVC_ADMISSION_REQUEST)
        st = kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, name,
                         "%s is a rule for prompts, and a block that was evicted belongs to none: "
                         "set %s.write to through, or %s.admission to depth", t->admission, name,
                         name);
    return st;
}

/* It can be loaded, and is of that kind. */
static enum kvc_status check_plugin(const char *spec, uint32_t kind, struct kvc_error *err)
{
    struct kvc_policy_choice choice;
    if (!kvc_plugin_is(spec))
        return KVC_OK;
    enum kvc_status st = kvc_policy_choose(&choice, spec, kind, err);
    kvc_policy_drop(&choice);
    return st;
}

enum kvc_status kvc_scenario_check(const struct kvc_scenario *s, struct kvc_error *err)
{
    enum kvc_status st = KVC_OK;
    if (!s->model[0]) /* what is there is right; a flag is lacking */
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "model",
                           "no model is named: say which with --model ('kvcast show model' lists "
                           "them) or start from --preset kga-rag");
    if (!s->cluster.gpu[0])
        return kvc_fail_at(err, KVC_ERR_USAGE, NULL, 0, "cluster.gpu",
                           "no GPU is named: say which with --gpu ('kvcast show hardware' lists "
                           "them) or start from --preset kga-rag");
    if (!s->engine.unhashed_first && s->engine.prefix_caching)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "engine.unhashed_first",
                           "only vLLM's rule from 0.24 on (true) is supported yet");
    if (s->engine.prefill == KVC_PREFILL_FIRST && s->engine.publish == KVC_PUBLISH_SCHEDULED)
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "engine.publish",
                           "no engine with engine.prefill first shows KV that is not computed yet: "
                           "set it to inserted or computed");
    if (s->engine.cold && (s->cluster.dp > 1 || s->cluster.pp > 1))
        return kvc_fail_at(err, KVC_ERR_UNSUPPORTED, NULL, 0, "engine.cold",
                           "not modelled with data-parallel ranks or pipeline stages: set "
                           "cluster.dp and cluster.pp to 1");
    if ((uint64_t)s->cluster.dp * s->cluster.replicas > MOST_RANKS)
        return kvc_fail_at(err, KVC_ERR_LIMIT, NULL, 0, "cluster.dp",
                           "more than %d data-parallel ranks in all replicas", MOST_RANKS);
    if (s->arrivals.mode == KVC_ARRIVALS_CLOSED && !s->arrivals.concurrency)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "arrivals.concurrency",
                           "closed arrivals need it: how many sessions are active at once?");
    if (s->arrivals.mode != KVC_ARRIVALS_CLOSED && s->arrivals.concurrency)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "arrivals.concurrency",
                           "only closed arrivals have one: set arrivals.mode to closed too");
    if (s->arrivals.mode != KVC_ARRIVALS_CLOSED && s->arrivals.rounds)
        return kvc_fail_at(err, KVC_ERR_INPUT, NULL, 0, "arrivals.rounds",
                           "only closed arrivals have them: set arrivals.mode to closed too");
    for (size_t i = 0; i < 3 && st == KVC_OK; i++)
        st = check_tier(s, i, err);
    if (st == KVC_OK)
        st = kvc_scenario_tenants_check(s, err);
    if (st == KVC_OK)
        st = check_plugin(s->router.policy, KVC_POLICY_ROUTING, err);
    if (st == KVC_OK)
        st = check_plugin(s->engine.order, KVC_POLICY_ORDERING, err);
    struct kvc_user_profile *profile = NULL;
    if (st == KVC_OK)
        st = kvc_scenario_profile(&profile, s, err);
    kvc_user_profile_destroy(profile);
    return st;
}
