/* SPDX-License-Identifier: Apache-2.0
 * What goes first in a tier of the replay. An engine's own queues keep the order of lru and fifo,
 * with a time to live that of ttl and ttlfixed; all others are told what happens
 * (eviction/order.h). */
#include "base/units.h"
#include "policies/eviction/order.h"
#include "policies/plugins/plugin.h"

#include <string.h>

static const struct {
    const char *name;
    bool touch_moves, ttl;
} queues[] = {
    {"lru", true, false}, {"fifo", false, false}, {"ttl", true, true}, {"ttlfixed", false, true},
};

static enum kvc_status ttl_of(const char *name, const char *options, uint64_t *ttl_ns,
                              struct kvc_error *err)
{
    union kvc_option_value value[KVC_POLICY_OPTIONS];
    uint32_t n;
    const struct kvc_policy_option *table = kvc_runs_options(name, &n);
    enum kvc_status st = kvc_policy_options(name, options, table, n, value, err);
    if (st == KVC_OK)
        *ttl_ns = value[0].time_ns;
    return st;
}

enum kvc_status kvc_eviction_of(const char *spec, struct kvc_eviction *out, struct kvc_error *err)
{
    struct kvc_eviction e = {.touch_moves = true};
    char name[32];
    const char *options;
    enum kvc_status st = kvc_runs_check(spec, err);
    bool built_in = st == KVC_OK && !kvc_plugin_is(spec) &&
                    kvc_policy_name(spec, name, sizeof(name), &options, err) == KVC_OK;
    for (size_t i = 0; built_in && i < sizeof(queues) / sizeof(queues[0]); i++)
        if (kvc_name_equal(queues[i].name, name)) {
            e.queue = true;
            e.touch_moves = queues[i].touch_moves;
            st = queues[i].ttl ? ttl_of(name, options, &e.ttl_ns, err) : KVC_OK;
        }
    if (st == KVC_OK)
        st = e.queue && !strchr(spec, '+') ? KVC_OK : kvc_runs_check_order(spec, err);
    if (st == KVC_OK)
        *out = e;
    return st;
}

const char *const *kvc_eviction_names(void)
{
    return kvc_runs_policies();
}
