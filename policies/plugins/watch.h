/* SPDX-License-Identifier: Apache-2.0
 * Where plug-ins are at this moment, for another process that watches: hooks are noted in memory
 * that both see, at the price of the note that is taken anyway. */
#ifndef KVC_POLICIES_WATCH_H
#define KVC_POLICIES_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define KVC_WATCH_SLOTS 256

struct kvc_plugged_place {
    volatile uint32_t hook;    /* enum kvc_hook */
    volatile uint64_t request; /* from 0 */
};

struct kvc_watch_slot {
    struct kvc_plugged_place place;
    atomic_bool taken;
    char name[32], path[256];
};

struct kvc_watch { /* zeroed, in shared memory */
    struct kvc_watch_slot slot[KVC_WATCH_SLOTS];
};

/* Before anything runs; NULL: nobody watches. There is one for a process, as there is one
 * parent. */
void kvc_watch_begin(struct kvc_watch *watch);
/* For a plug-in that begins a run; NULL: nobody watches, or more run than there are slots. */
struct kvc_watch_slot *kvc_watch_take(const char *path, const char *name);
void kvc_watch_give(struct kvc_watch_slot *slot); /* NULL is fine */

#endif
