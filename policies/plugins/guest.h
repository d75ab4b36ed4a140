/* SPDX-License-Identifier: Apache-2.0
 * A policy's code at work: where in it the run is, what memory it was given, its random stream, and
 * the first rule that it broke. */
#ifndef KVC_POLICIES_GUEST_H
#define KVC_POLICIES_GUEST_H

#include "policies/plugins/plugin.h"
#include "policies/plugins/watch.h"

enum kvc_hook {
    KVC_HOOK_NONE,
    KVC_HOOK_LOAD, /* no hook yet: its constructors, and kvc_policy_plugin() */
    KVC_HOOK_CREATE,
    KVC_HOOK_DESTROY,
    KVC_HOOK_REQUEST,
    KVC_HOOK_STORED,
    KVC_HOOK_TOUCHED,
    KVC_HOOK_VICTIM,
    KVC_HOOK_REMOVED,
    KVC_HOOK_ADMITS,
    KVC_HOOK_RANK,
    KVC_HOOK_ARRIVED,
    KVC_HOOK_ADMITTED,
    KVC_HOOK_SERVED,
    KVC_HOOK_ENDED,
    KVC_HOOK_PICK
};
const char *kvc_hook_name(uint32_t hook);
/* " in victim, at request 7" */
void kvc_hook_where(const struct kvc_plugged_place *place, char *buf, size_t size);
/* Whether it is asked as often as it happens, of a state that is const. */
static inline bool kvc_hook_changes_nothing(uint32_t hook)
{
    return hook == KVC_HOOK_ADMITS || hook == KVC_HOOK_RANK;
}

/* What the conformance kit asks for beyond a run. */
struct kvc_plugged_trial {
    const struct kvc_plugin *plugin; /* loaded already */
    struct kvc_plugged_place *place;
    bool null_options, single;       /* pieces of one block, whatever it wants */
    uint32_t noise;                  /* flags whose fields of info hold anything if not declared */
    uint32_t *held_back;             /* by segment: requests that pin it; NULL: none ever */
    uint64_t leaks;                  /* told at the end: allocations not freed .. */
    struct kvc_error error;          /* .. and the first breach, as late as in destroy */
};

struct kvc_guest_memory { /* in front of what alloc gives */
    struct kvc_guest_memory *next, **link;
    size_t bytes;   /* of what was given; a word follows that must stay as it is */
    uint64_t magic; /* whether this is one, and not freed yet */
};

struct kvc_guest_lent { /* an array that it may read: copied, as what others read is not its own */
    const char *name;
    const uint32_t *own;
    uint32_t *copy;
    size_t n;
};

struct kvc_guest {
    const char *path, *name; /* borrowed; path NULL: a built-in policy */
    struct kvc_plugged_trial *trial;
    struct kvc_plugged_place own, *place;
    struct kvc_watch_slot *slot; /* where place is, while somebody watches; or NULL */
    struct kvc_guest_memory *given;
    struct kvc_guest_memory *freed; /* of a trial: kept, to know them when they come again */
    struct kvc_guest_lent lent[3];  /* of a plug-in */
    uint64_t rng;
    bool *failed;           /* its run's, set with the first breach */
    struct kvc_error error; /* that breach */
};

/* What a trial's plug-in, which is loaded already, is asked for by spec. */
enum kvc_status kvc_guest_choose(struct kvc_policy_choice *out,
                                 const struct kvc_plugged_trial *trial, const char *spec,
                                 struct kvc_error *err);
/* trial may be NULL. */
void kvc_guest_begin(struct kvc_guest *guest, const struct kvc_policy_choice *choice,
                     struct kvc_plugged_trial *trial, bool *failed);
/* Of a plug-in puts copies in the place of the segments' arrays, until kvc_guest_end. false: no
 * memory. */
bool kvc_guest_lend(struct kvc_guest *guest, size_t n_segments, const uint32_t **seg_blocks,
                    const uint32_t **seg_depth, const uint32_t **seg_parent);
/* Whether it kept to the memory it was given, and only read what it was lent: a breach if not. */
void kvc_guest_look(struct kvc_guest *guest);
/* Frees what it left behind, which the trial is told of. */
void kvc_guest_end(struct kvc_guest *guest);

/* The run fails with these words, unless it has already. */
KVC_PRINTF(2, 3)
void kvc_guest_breach(struct kvc_guest *guest, const char *fmt, ...);

/* Services. Zeroed; NULL when there is none. */
void *kvc_guest_alloc(struct kvc_guest *guest, size_t n, size_t size);
void kvc_guest_free(struct kvc_guest *guest, void *memory); /* NULL is fine */

/* Around a hook: enter returns what leave takes. */
static inline uint32_t kvc_guest_enter(struct kvc_guest *guest, uint32_t hook)
{
    uint32_t before = guest->place->hook;
    guest->place->hook = hook;
    return before;
}

static inline void kvc_guest_leave(struct kvc_guest *guest, uint32_t before)
{
    guest->place->hook = before;
}

#endif
