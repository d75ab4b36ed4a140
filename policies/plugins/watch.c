/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/plugins/watch.h"

#include <stdio.h>

static struct kvc_watch *_Atomic watched; /* set once, before there are threads */

void kvc_watch_begin(struct kvc_watch *watch)
{
    watched = watch;
}

struct kvc_watch_slot *kvc_watch_take(const char *path, const char *name)
{
    struct kvc_watch *w = watched;
    for (size_t i = 0; w && i < KVC_WATCH_SLOTS; i++) {
        struct kvc_watch_slot *slot = &w->slot[i];
        bool taken = false;
        if (!atomic_compare_exchange_strong(&slot->taken, &taken, true))
            continue;
        slot->place.hook = 0;
        snprintf(slot->path, sizeof(slot->path), "%s", path);
        snprintf(slot->name, sizeof(slot->name), "%s", name);
        return slot;
    }
    return NULL;
}

void kvc_watch_give(struct kvc_watch_slot *slot)
{
    if (!slot)
        return;
    slot->place.hook = 0;
    slot->taken = false;
}
