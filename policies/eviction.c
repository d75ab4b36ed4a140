/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "policies/policies.h"

static const struct kvc_eviction_ops lru = {
    .name = "lru",
    .summary = "the least recently used first",
    .touch_moves = true,
};

static const struct kvc_eviction_ops fifo = {
    .name = "fifo",
    .summary = "the oldest first, used or not",
    .touch_moves = false,
};

static const struct kvc_eviction_ops *const all[] = {&lru, &fifo};

const struct kvc_eviction_ops *kvc_eviction_find(const char *name)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (kvc_name_equal(all[i]->name, name))
            return all[i];
    return NULL;
}

const char *const *kvc_eviction_names(void)
{
    static const char *const names[] = {"lru", "fifo", NULL};
    return names;
}
